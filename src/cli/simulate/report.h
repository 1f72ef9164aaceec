/* SPDX-License-Identifier: MIT */
/* report.h - the scores as a table for people or as JSON. */
#ifndef WR_CLI_SIMULATE_REPORT_H
#define WR_CLI_SIMULATE_REPORT_H

#include "cli/simulate/matrix.h"

/* One object on a line for each cell that is done. */
void wr_report_json(const struct wr_matrix *matrix, const struct wr_cell *cells);

/* A row for each family (or scenario, if `each`, or if there is only one family), a column for each pacer. False for
 * want of memory. */
bool wr_report_table(const struct wr_matrix *matrix, const struct wr_cell *cells, bool each);

/* `text` as a JSON string, quotes included. */
void wr_json_quote(const char *text, char *ret_text, size_t text_bytes);

#endif
