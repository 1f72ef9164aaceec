/* SPDX-License-Identifier: MIT */
/* row.h - reads database rows into store rows. Anyone may have changed the database, so each value
 * is clamped to its range, and a row with invalid texts is rejected. All backends share it and
 * supply the cells. */
#ifndef WR_CRAWL_STORE_ROW_H
#define WR_CRAWL_STORE_ROW_H

#include "crawl/store/store.h"

struct wr_cells;

/* Access to the cells of a row, numbered from 0. A NULL cell reads as 0 and as no bytes. */
struct wr_cells_kind {
    int64_t (*whole)(const struct wr_cells *cells, int at);
    double (*real)(const struct wr_cells *cells, int at);
    struct wr_span (*bytes)(const struct wr_cells *cells, int at);
    bool (*is_text)(const struct wr_cells *cells, int at);
};

struct wr_cells {
    const struct wr_cells_kind *kind;
    void *result; /* the backend's result */
    int row;      /* row number, if the result has several rows */
};

/* Reads the row that the query asks for. The cells must be in the order that row.c expects. Returns
 * false if the row is invalid; of a task all but its URL is set even so. */
bool wr_row_read(const struct wr_cells *row, const struct wr_store_query *query, int64_t wall_now,
                 struct wr_store_row *ret_row);

/* Reads a queued task, whatever kind the query has. */
bool wr_row_task(const struct wr_cells *row, const struct wr_store_query *query, int64_t wall_now,
                 struct wr_store_task *ret_task);

#endif
