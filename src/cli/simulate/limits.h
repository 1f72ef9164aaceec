/* SPDX-License-Identifier: MIT */
/* limits.h - weir simulate --limit: which requests does a limit grant, and when? */
#ifndef WR_CLI_SIMULATE_LIMITS_H
#define WR_CLI_SIMULATE_LIMITS_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/simulate/trial.h"

struct wr_limits_settings {
    const char *const *limits; /* each as in weir.yaml; those of a stack with commas between */
    size_t count;
    const char *traffic;
    int64_t take_ns, wait_ns; /* of struct wr_trial_plan */
    bool json;
    const char *plot; /* a file; NULL: none */
};

/* Returns an exit status, after a complaint if it is not 0. */
int wr_limits_run(const struct wr_limits_settings *settings);

/* One limit's row, and panel. */
struct wr_limits_row {
    const char *text;
    const struct wr_answer *answers;
    struct wr_trial_sum sum;
};

struct wr_limits_table {
    const char *traffic_text;
    struct wr_trial_plan plan;
    int64_t window_ns; /* in which the most are counted: the longest period of all limits */
    const struct wr_limits_row *rows;
    size_t count;
};

/* Whether it could be written is the file's to say. */
void wr_limits_plot(FILE *file, const struct wr_limits_table *table);

#endif
