/* SPDX-License-Identifier: MIT */
/* scores.h - prints the scores as a table or as JSON. */
#ifndef WR_CLI_SIMULATE_SCORES_H
#define WR_CLI_SIMULATE_SCORES_H

#include "cli/simulate/matrix.h"

/* Prints a JSON line for each finished cell. */
void wr_scores_print_json(const struct wr_matrix *matrix, const struct wr_matrix_cell *cells);

/* Prints a table with a column for each pacer and a row for each family; a row for each scenario if
 * `each`, or if there is only one family. Returns false if out of memory. */
bool wr_scores_print_table(const struct wr_matrix *matrix, const struct wr_matrix_cell *cells, bool each);

/* Writes `text` as a JSON string with quotes. */
void wr_json_quote(const char *text, char *ret_text, size_t text_bytes);

#endif
