/* SPDX-License-Identifier: MIT */
/* stored_report.c - stores reports in a state file and finds them. */
#include "cli/report/stored_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/kit/console.h"

/* ---- storing ---- */

struct report_post {
    bool is_stored;
    char why[160];
};

static void on_report_stored(void *context, int error, const char *why)
{
    struct report_post *post = context;
    post->is_stored = error == 0;
    if (error != 0)
        (void)snprintf(post->why, sizeof post->why, "%s", why);
}

/* The call does not wait for room on a full disk: a post that cannot be stored fails when the store
 * is closed. */
bool wr_stored_report_write(const char *state, int64_t job, struct wr_span text)
{
    const struct wr_store_change change = {.kind = WR_STORE_REPORT, .report = {.job = job, .text = text}};
    struct report_post post = {.is_stored = false};
    struct wr_store *store;
    int error = wr_store_open(&(struct wr_store_options){.path = state, .check_ns = -1}, &store);
    if (error == 0) {
        error = wr_store_post(store, &change, 1, on_report_stored, &post);
        wr_store_free(store);
    }
    if (error == 0 && post.is_stored)
        return true;
    wr_complain("the report could not be stored for weir report: %s", error != 0 ? wr_error_message(error) : post.why);
    return false;
}

/* ---- finding ---- */

static void on_report_row(void *context, const struct wr_store_row *row)
{
    struct wr_stored_report *found = context;
    found->job = row->report.job;
    found->run = row->report.run;
    found->text = malloc(row->report.text.bytes + 1);
    if (found->text == NULL)
        return;
    memcpy(found->text, row->report.text.data, row->report.text.bytes);
    found->bytes = row->report.text.bytes;
}

int wr_stored_report_find(const char *state, struct wr_stored_report *found)
{
    struct wr_store *store;
    struct wr_store_query query = {.what = WR_STORE_REPORTS,
                                   .job = found->job,
                                   .after.id = found->run,
                                   .limit = 1,
                                   .row = on_report_row,
                                   .context = found};
    found->text = NULL;
    int error = wr_store_open(&(struct wr_store_options){.path = state, .check_ns = -1}, &store);
    if (error != 0)
        return error;
    error = wr_store_read(store, &query);
    wr_store_free(store);
    if (error == 0 && found->text == NULL)
        error = WEIR_E_ABSENT;
    return error;
}
