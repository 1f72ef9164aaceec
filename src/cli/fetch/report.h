/* SPDX-License-Identifier: MIT */
/* report.h - what became of each URL: a line of JSON for each, progress on the way, and a summary.
 *
 *     the client's thread ──▶ lines, put together ──▶ a thread that writes ──▶ file or standard output
 *
 * Whoever reads the lines may be slow. Up to LINES_MAX bytes wait for him, and then the client does, too.
 */
#ifndef WR_CLI_FETCH_REPORT_H
#define WR_CLI_FETCH_REPORT_H

#include <pthread.h>
#include <stdio.h>
#include <weir/client.h>

#include "base/buf.h"

struct wr_report {
    FILE *out;
    bool is_quiet;
    bool shares_screen; /* the lines go to a terminal, and so may progress */
    pthread_t writer;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* All under the lock. */
    weir_client *client;
    struct wr_buf lines;
    bool is_writing;  /* lines that were taken from there */
    bool is_over;     /* no line comes any more */
    bool is_lost;     /* a line could not be written or kept */
    int lost_errno;   /* why; 0: no memory */
    bool is_silenced; /* lines of what is cancelled from here on are not wanted */
    uint64_t asked, finished, refused;
    uint64_t by_failure[WEIR_FAILURE_INTERNAL + 1];
    uint64_t errors; /* answers of 400 and more */
    uint64_t bad;    /* these, and what has no answer */
    int64_t began_at;
};

/* Starts the thread that writes. False after a complaint. */
bool wr_report_start(struct wr_report *ret_report, FILE *out, bool is_quiet);

/* Whose progress is shown; NULL: nobody's. */
void wr_report_watch(struct wr_report *report, weir_client *client);

/* One more URL is asked for. */
void wr_report_asked(struct wr_report *report);

/* It was no URL, or could not be asked for after all: `why`. `line`: of the list, or 0. */
void wr_report_refused(struct wr_report *report, const char *url, uint64_t line, const char *why);

void wr_report_finished(struct wr_report *report, const char *url, const weir_response *response);

/* Waits until all that was asked for has finished, or `is_interrupted` becomes true. */
void wr_report_await(struct wr_report *report, bool (*is_interrupted)(void));

/* Waits until so few are unfinished, likewise. */
void wr_report_await_room(struct wr_report *report, uint64_t most, bool (*is_interrupted)(void));

/* Waits until half of what is unfinished has finished, but no more than `least` is left. False: there was no more than
 * that, or it is interrupted. */
bool wr_report_await_fewer(struct wr_report *report, uint64_t least, bool (*is_interrupted)(void));

/* What is cancelled from here on is not reported. */
void wr_report_silence(struct wr_report *report);

/* Writes what is left, ends the thread, sums up. False, after a complaint, if a line was lost. */
bool wr_report_end(struct wr_report *report);

#endif
