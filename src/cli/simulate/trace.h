/* SPDX-License-Identifier: MIT */
/* trace.h - runs each pacer once against one scenario, for --trace and --plot. */
#ifndef WR_CLI_SIMULATE_TRACE_H
#define WR_CLI_SIMULATE_TRACE_H

#include <stdio.h>

#include "cli/simulate/matrix.h"

/* Runs the pacers and writes the files. The paths may be NULL. Returns an exit status; prints an
 * error if it is not 0. */
int wr_trace_run(const struct wr_matrix *matrix, const char *trace_path, const char *plot_path);

/* Open and close an output file; a NULL path means no file. Return false after printing an
 * error. */
bool wr_trace_file_open(const char *path, FILE **ret_file);
bool wr_trace_file_close(const char *path, FILE *file);

#endif
