/* SPDX-License-Identifier: MIT */
/* query.h - what a viewer wants to see: view=hosts&sort=wait&q=example. */
#ifndef WR_SHELL_PANEL_QUERY_H
#define WR_SHELL_PANEL_QUERY_H

#include "base/span.h"

#include <weir/pace.h>

#define WR_PANEL_WORD_MAX 15
#define WR_PANEL_TEXT_MAX 255
#define WR_PANEL_MOST_MAX 500
#define WR_PANEL_RUN_BYTES 16

/* Zero-filled where nothing is given, so that equal ones are equal byte by byte. */
struct wr_panel_query {
    char view[WR_PANEL_WORD_MAX + 1]; /* "overview" if none is given */
    char sort[WR_PANEL_WORD_MAX + 1];
    char text[WR_PANEL_TEXT_MAX + 1]; /* q: to search for */
    char name[WEIR_PACE_KEY_MAX + 1]; /* of the one that is looked at */
    uint32_t most;                    /* rows; 50 if none is given */
    bool is_reversed;
};

/* What it has already. */
struct wr_panel_since {
    char run[WR_PANEL_RUN_BYTES + 1]; /* of which process */
    uint64_t number;                  /* the last sample */
};

/* Percent-encoding and '+' are decoded; names that nobody knows are passed over. WEIR_E_INVAL. */
int wr_panel_query_parse(struct wr_span text, struct wr_panel_query *ret_query, struct wr_panel_since *ret_since);

#endif
