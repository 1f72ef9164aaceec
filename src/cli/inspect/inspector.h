/* SPDX-License-Identifier: MIT */
/* inspector.h - sends requests to the crawl that uses a state file, through its control socket.
 * Without a running crawl, or for a database that processes share, it answers them from the
 * state. */
#ifndef WR_CLI_INSPECT_INSPECTOR_H
#define WR_CLI_INSPECT_INSPECTOR_H

#include <jansson.h>

#include "base/buf.h"
#include "cli/kit/check_option.h"
#include "cli/kit/command_options.h"

/* Options that all of these commands have. */
struct wr_inspector_flags {
    const char *state;
    bool json;
};

/* The options for struct wr_inspector_flags, which must be the member `source` of the settings. */
#define WR_INSPECTOR_OPTIONS(settings)                                                     \
    {"state", WR_STRING(settings, source.state), .value = "FILE", .check = wr_check_state, \
     .help = "Read the state of the crawl from FILE or postgres://…"},                     \
    {                                                                                      \
        "json", WR_FLAG(settings, source.json), .help = "Print one line of JSON"           \
    }

struct wr_inspector {
    const char *state;
    int fd;                 /* control socket of the crawl; -1: no crawl is running */
    struct wr_store *store; /* the opened state; NULL: the running crawl has it */
    struct wr_buf answer;   /* text of the last answer */
};

/* Connects to the crawl, or opens the state. Returns WR_EXIT_OK, or another exit status after
 * printing an error. */
int wr_inspector_open(struct wr_inspector *ret_source, const char *state);
void wr_inspector_close(struct wr_inspector *source);

/* Sends a request and returns the answer, which the caller frees with json_decref. Frees the
 * request. Returns NULL after printing an error. */
json_t *wr_inspector_request(struct wr_inspector *source, json_t *request);

/* Prints and frees the last answer: as JSON text, or by `show` for people. `answer` may be NULL.
 * Returns an exit status. */
int wr_inspector_print(const struct wr_inspector *source, json_t *answer, bool as_json,
                       void (*show)(const json_t *answer));

/* Opens the source, sends a request, prints the answer and closes the source. Frees the request.
 * Returns an exit status. */
int wr_inspector_run(const struct wr_inspector_flags *flags, json_t *request, void (*show)(const json_t *answer));

/* ---- output for people ---- */

/* Return a member of an object; "" or 0 if it is missing. */
const char *wr_json_text(const json_t *object, const char *name);
double wr_json_number(const json_t *object, const char *name);
bool wr_json_has(const json_t *object, const char *name); /* the member exists and is not null */
bool wr_json_is(const json_t *object, const char *name);  /* the member is true */

/* Prints the "processes" of an answer that work on the job (0: all), one per line. */
void wr_print_processes(const json_t *answer, json_int_t job);

/* Formats a duration in ms, such as "2.5 s"; "-" for 0 and null. */
const char *wr_format_ms(const json_t *object, const char *name, char *text, size_t room);
/* Formats a time in ms since 1970 as local time, such as "2026-11-15 22:19:33"; "-" if it is
 * missing. */
const char *wr_format_wall_time(const json_t *object, const char *name, char *text, size_t room);

/* A table whose columns are as wide as their widest cell. Untrusted text in it is escaped. */
struct wr_text_table {
    size_t columns;
    const char *rights; /* a character per column: 'r' aligns the column right */
    char **cells;
    size_t count;
};

/* Begins a table; `heads` are its first row. */
void wr_text_table_begin(struct wr_text_table *ret_table, size_t columns, const char *rights, const char *const *heads);
void wr_text_table_add(struct wr_text_table *table, const char *text);
void wr_text_table_addf(struct wr_text_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints and frees the table. */
void wr_text_table_end(struct wr_text_table *table);

#endif
