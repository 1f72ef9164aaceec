/* SPDX-License-Identifier: MIT */
/* watch.h - one run of each pacer against one scenario, for --trace and --plot. */
#ifndef WR_CLI_SIMULATE_WATCH_H
#define WR_CLI_SIMULATE_WATCH_H

#include <stdio.h>

#include "cli/simulate/matrix.h"

/* The paths may be NULL. Returns an exit status, after a complaint if it is not 0. */
int wr_watch(const struct wr_matrix *matrix, const char *trace_path, const char *plot_path);

/* A file to be written. NULL as path is none, and fine. False after a complaint. */
bool wr_watch_open(const char *path, FILE **ret_file);
bool wr_watch_close(const char *path, FILE *file);

#endif
