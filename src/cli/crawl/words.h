/* SPDX-License-Identifier: MIT */
/* words.h - the words of a command line as the settings of a job, by which it is gone on with.
 *
 *     weir-crawl/1 --depth=5 https://example.org/ -header
 *     |            |         |                    |
 *     |            |         a seed               an option that was given, and is not kept
 *     |            an option with its value
 *     what it is, and the format's version
 *
 * A blank before each word; in a word blanks, '\', and what is not printable ASCII are "\xNN". Kept is what makes the
 * crawl what it is; not whether to be quiet, or where the state file is; and where other processes share the job, not
 * where this one puts its lines. And no secrets (V10): --header never, --proxy
 * if it names a user.
 */
#ifndef WR_CLI_CRAWL_WORDS_H
#define WR_CLI_CRAWL_WORDS_H

#include "base/buf.h"
#include "cli/kit/options.h"

/* Settings begin with it. */
void wr_words_begin(struct wr_buf *buf);

/* Appends words to them. The words have been parsed well by `usage`. */
void wr_words_append(struct wr_buf *buf, const struct wr_usage *usage, bool is_shared, int argc, char *const *argv);

struct wr_words {
    char *text;
    char **list; /* into `text` */
    int count;
    bool lacks_header, lacks_proxy; /* were given, and are not kept */
};

/* WEIR_E_INVAL: they are none of ours. WEIR_E_NOMEM. */
int wr_words_read(struct wr_words *ret_words, struct wr_span settings);
void wr_words_release(struct wr_words *words);

/* The last --user-agent, as much of it as has room; untouched: there is none. */
void wr_words_agent(struct wr_span settings, char *ret_agent, size_t room);

/* A new array: what was given to an earlier job and makes it what it is, but for where it began, and behind it what is
 * given now. To be freed; NULL: no memory. */
char **wr_words_join(const struct wr_words *old, int argc, char **argv, int *ret_count);

#endif
