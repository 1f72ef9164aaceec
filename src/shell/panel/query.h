/* SPDX-License-Identifier: MIT */
/* query.h - the query of a viewer, such as view=hosts&sort=wait&q=example. */
#ifndef WR_SHELL_PANEL_QUERY_H
#define WR_SHELL_PANEL_QUERY_H

#include "base/span.h"

#include <weir/pace.h>

#define WR_PANEL_WORD_MAX 15
#define WR_PANEL_TEXT_MAX 255
#define WR_PANEL_MOST_MAX 500
#define WR_PANEL_RUN_BYTES 16

/* The view that a viewer requests. Unused bytes are 0, so that equal queries can be compared with
 * memcmp. */
struct wr_panel_query {
    char view[WR_PANEL_WORD_MAX + 1]; /* name of the view; default: "overview" */
    char sort[WR_PANEL_WORD_MAX + 1];
    char text[WR_PANEL_TEXT_MAX + 1]; /* parameter q: text to search for */
    char name[WEIR_PACE_KEY_MAX + 1]; /* host or other object of a detail view */
    uint32_t most;                    /* number of rows; default 50 */
    bool is_reversed;
};

/* The samples that a reconnecting viewer already has. */
struct wr_panel_since {
    char run[WR_PANEL_RUN_BYTES + 1]; /* process that sent the samples */
    uint64_t number;                  /* number of the last sample */
};

/* Parses a query. Decodes percent-encoding and '+', ignores unknown names. Returns WEIR_E_INVAL on
 * failure. */
int wr_panel_query_parse(struct wr_span text, struct wr_panel_query *ret_query, struct wr_panel_since *ret_since);

#endif
