/* SPDX-License-Identifier: MIT */
/* dashboard_query.h - the query of a viewer, such as view=hosts&sort=wait&q=example. */
#ifndef WR_WATCH_DASHBOARD_DASHBOARD_QUERY_H
#define WR_WATCH_DASHBOARD_DASHBOARD_QUERY_H

#include "base/span.h"

#include <weir/pace.h>

#define WR_DASHBOARD_WORD_MAX 15
#define WR_DASHBOARD_TEXT_MAX 255
#define WR_DASHBOARD_ROWS_MAX 500
#define WR_DASHBOARD_RUN_BYTES 16

/* The view that a viewer requests. Unused bytes are 0, so that equal queries can be compared with
 * memcmp. */
struct wr_dashboard_query {
    char view[WR_DASHBOARD_WORD_MAX + 1]; /* name of the view; default: "overview" */
    char sort[WR_DASHBOARD_WORD_MAX + 1];
    char text[WR_DASHBOARD_TEXT_MAX + 1]; /* parameter q: text to search for */
    char name[WEIR_PACE_KEY_MAX + 1];     /* host or other object of a detail view */
    uint32_t most;                        /* number of rows; default 50 */
    bool is_reversed;
};

/* The samples that a reconnecting viewer already has. */
struct wr_dashboard_since {
    char run[WR_DASHBOARD_RUN_BYTES + 1]; /* process that sent the samples */
    uint64_t number;                      /* number of the last sample */
};

/* Parses a query. Decodes percent-encoding and '+', ignores unknown names. Returns WEIR_E_INVAL on
 * failure. */
int wr_dashboard_query_parse(struct wr_span text, struct wr_dashboard_query *ret_query,
                             struct wr_dashboard_since *ret_since);

#endif
