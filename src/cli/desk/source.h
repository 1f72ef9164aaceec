/* SPDX-License-Identifier: MIT */
/* source.h - who is asked: the crawl that has the state file, through its socket, or else the file; or the database
 * that processes share. */
#ifndef WR_CLI_DESK_SOURCE_H
#define WR_CLI_DESK_SOURCE_H

#include <jansson.h>

#include "base/buf.h"
#include "cli/kit/check.h"
#include "cli/kit/options.h"

/* What all of these commands are given. */
struct wr_source_flags {
    const char *state;
    bool json;
};

/* The options for that, where the settings have it as `source`. */
#define WR_SOURCE_OPTIONS(settings)                                                        \
    {"state", WR_STRING(settings, source.state), .value = "FILE", .check = wr_check_state, \
     .help = "Read the state of the crawl from FILE or postgres://…"},                     \
    {                                                                                      \
        "json", WR_FLAG(settings, source.json), .help = "Print one line of JSON"           \
    }

struct wr_answerer {
    const char *state;
    int fd;                 /* -1: no crawl runs */
    struct wr_store *store; /* NULL: it is the crawl's */
    struct wr_buf answer;   /* the last one, as it came */
};

/* WR_EXIT_OK, or else after a complaint. */
int wr_source_open(struct wr_answerer *ret_source, const char *state);
void wr_source_close(struct wr_answerer *source);

/* The answer to a request, which is given up here; for json_decref. NULL after a complaint. */
json_t *wr_source_ask(struct wr_answerer *source, json_t *request);

/* Prints the last answer, which is given up here: as it came, or by `show` for people. NULL: there was none. An exit
 * status. */
int wr_source_tell(const struct wr_answerer *source, json_t *answer, bool as_json, void (*show)(const json_t *answer));

/* The same from the beginning to the end: opens, asks and tells. */
int wr_source_run(const struct wr_source_flags *flags, json_t *request, void (*show)(const json_t *answer));

/* ---- for people ---- */

/* Of an object: "" and 0 for what is not there. */
const char *wr_json_text(const json_t *object, const char *name);
double wr_json_number(const json_t *object, const char *name);
bool wr_json_has(const json_t *object, const char *name); /* and it is not null */
bool wr_json_is(const json_t *object, const char *name);  /* true */

/* The "processes" of an answer that work for the job (0: any), a line each. */
void wr_show_processes(const json_t *answer, json_int_t job);

/* Durations that JSON has in ms: "2.5 s", "-" for 0 and null. */
const char *wr_show_ms(const json_t *object, const char *name, char *text, size_t room);
/* An instant in ms since 1970, in local time: "2026-11-15 22:19:33"; "-": none. */
const char *wr_show_wall(const json_t *object, const char *name, char *text, size_t room);

/* A table whose columns are as wide as what is in them; what strangers wrote is shown harmlessly. */
struct wr_table {
    size_t columns;
    const char *rights; /* for each column: 'r' if it is aligned to the right */
    char **cells;
    size_t count;
};

/* `heads` are the first row. */
void wr_table_begin(struct wr_table *ret_table, size_t columns, const char *rights, const char *const *heads);
void wr_table_add(struct wr_table *table, const char *text);
void wr_table_addf(struct wr_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints, and lets go. */
void wr_table_end(struct wr_table *table);

#endif
