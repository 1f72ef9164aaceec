/* SPDX-License-Identifier: MIT */
/* stored_args.h - stores the arguments of a crawl with its job, so that --resume can use them.
 *
 *   weir-crawl/1 --depth=5 https://example.org/ -header
 *   |            |         |                    |
 *   |            |         a seed               an option that was given but is not stored
 *   |            an option with its value
 *   name and version of the format
 *
 * A blank precedes each argument. Within an argument, blanks, '\' and bytes that are not printable
 * ASCII are written as "\xNN". Stored are the options that define the crawl. Not stored are options
 * such as --quiet and --state, and, if processes share the job, those that are local to a process,
 * such as --out. Secrets are not stored: neither --header nor a --proxy with a user name.
 */
#ifndef WR_CLI_CRAWL_STORED_ARGS_H
#define WR_CLI_CRAWL_STORED_ARGS_H

#include "base/buf.h"
#include "cli/kit/command_options.h"

/* Writes the name and version of the format, with which stored settings start. */
void wr_stored_args_begin(struct wr_buf *buf);

/* Appends arguments to the settings. They must have been parsed by `usage` without error. */
void wr_stored_args_append(struct wr_buf *buf, const struct wr_usage *usage, bool is_shared, int argc,
                           char *const *argv);

struct wr_stored_args {
    char *text;
    char **list; /* arguments, pointers into `text` */
    int count;
    bool lacks_header, lacks_proxy; /* the option was given, but is not stored */
};

/* Parses stored settings. Returns WEIR_E_INVAL if they have another format, or WEIR_E_NOMEM. */
int wr_stored_args_read(struct wr_stored_args *ret_words, struct wr_span settings);
void wr_stored_args_release(struct wr_stored_args *words);

/* Copies the last --user-agent of stored settings, cut to `room`. Leaves *ret_agent unchanged
 * without one. */
void wr_stored_args_agent(struct wr_span settings, char *ret_agent, size_t room);

/* Returns a new array: the arguments that define an earlier job, without its seeds, followed by
 * those of this run. The caller frees it. Returns NULL if out of memory. */
char **wr_stored_args_join(const struct wr_stored_args *old, int argc, char **argv, int *ret_count);

#endif
