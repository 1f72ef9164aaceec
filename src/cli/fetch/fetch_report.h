/* SPDX-License-Identifier: MIT */
/* fetch_report.h - writes a JSON line per URL, the progress and a summary.
 *
 *   client thread --> buffer of lines --> writer thread --> file or standard output
 *
 * The reader of the output may be slow. Up to LINES_MAX bytes wait in the buffer; after that the
 * client thread waits as well.
 */
#ifndef WR_CLI_FETCH_FETCH_REPORT_H
#define WR_CLI_FETCH_FETCH_REPORT_H

#include <pthread.h>
#include <stdio.h>
#include <weir/client.h>

#include "base/buf.h"

struct wr_fetch_report {
    FILE *out;
    bool is_quiet;
    bool shares_screen; /* the lines go to a terminal, where the progress may be shown, too */
    pthread_t writer;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* The lock protects the fields below. */
    weir_client *client;
    struct wr_buf lines;
    bool is_writing;  /* the writer is writing lines that it took from `lines` */
    bool is_over;     /* no more lines will be added */
    bool is_lost;     /* a line could not be written or kept */
    int lost_errno;   /* reason of is_lost; 0: out of memory */
    bool is_silenced; /* cancelled requests are no longer reported */
    uint64_t asked, finished, refused;
    uint64_t by_failure[WEIR_FAILURE_INTERNAL + 1];
    uint64_t errors; /* number of responses with a status of 400 or more */
    uint64_t bad;    /* number of URLs with such a status or without a response */
    int64_t began_at;
};

/* Starts the writer thread. Returns false after printing an error. */
bool wr_fetch_report_start(struct wr_fetch_report *ret_report, FILE *out, bool is_quiet);

/* Sets the client whose progress is shown; NULL: none. */
void wr_fetch_report_watch(struct wr_fetch_report *report, weir_client *client);

/* Counts one more URL that is fetched. */
void wr_fetch_report_add(struct wr_fetch_report *report);

/* Reports a URL that is invalid or could not be started, with the reason. `line` is its line in the
 * list, or 0. */
void wr_fetch_report_refused(struct wr_fetch_report *report, const char *url, uint64_t line, const char *why);

void wr_fetch_report_finished(struct wr_fetch_report *report, const char *url, const weir_response *response);

/* Waits until all URLs have finished, or until `is_interrupted` returns true. */
void wr_fetch_report_await(struct wr_fetch_report *report, bool (*is_interrupted)(void));

/* Waits until at most `most` URLs are unfinished, or until `is_interrupted` returns true. */
void wr_fetch_report_await_room(struct wr_fetch_report *report, uint64_t most, bool (*is_interrupted)(void));

/* Waits until half of the unfinished URLs have finished, but not for fewer than `least` + 1 to
 * remain. Returns false without waiting if no more than that are unfinished, or after an interrupt
 * or an output error. */
bool wr_fetch_report_await_fewer(struct wr_fetch_report *report, uint64_t least, bool (*is_interrupted)(void));

/* From now on does not report cancelled requests. */
void wr_fetch_report_mute_cancelled(struct wr_fetch_report *report);

/* Writes the remaining lines, ends the thread and prints the summary. Returns false after printing
 * an error if a line was lost. */
bool wr_fetch_report_end(struct wr_fetch_report *report);

#endif
