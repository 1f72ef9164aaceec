/* SPDX-License-Identifier: MIT */
/* row.h - rows as a database has them, which anybody may have changed: each value is put into its range, and a row
 * whose texts make no sense is left out. The same for every backend, which brings the cells.
 */
#ifndef WR_SHELL_STORE_ROW_H
#define WR_SHELL_STORE_ROW_H

#include "shell/store/store.h"

struct wr_cells;

/* Cells are numbered from 0. One that is NULL is 0, and no bytes. */
struct wr_cells_kind {
    int64_t (*whole)(const struct wr_cells *cells, int at);
    double (*real)(const struct wr_cells *cells, int at);
    struct wr_span (*bytes)(const struct wr_cells *cells, int at);
    bool (*is_text)(const struct wr_cells *cells, int at);
};

struct wr_cells {
    const struct wr_cells_kind *kind;
    void *result; /* the backend's */
    int row;      /* of the result, if that has many */
};

/* What the query asked for; cells are in the order in which row.c takes them. False: it makes
 * no sense. Of a task all but its URL is there all the same. */
bool wr_row_read(const struct wr_cells *row, const struct wr_store_query *query, int64_t wall_now,
                 struct wr_store_row *ret_row);

/* A queued task, whatever was asked for. */
bool wr_row_task(const struct wr_cells *row, const struct wr_store_query *query, int64_t wall_now,
                 struct wr_store_task *ret_task);

#endif
