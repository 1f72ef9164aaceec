/* SPDX-License-Identifier: MIT */
/* limit_trials.h - weir simulate --limit: shows which requests a limit grants, and when. */
#ifndef WR_CLI_SIMULATE_LIMIT_TRIALS_H
#define WR_CLI_SIMULATE_LIMIT_TRIALS_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/simulate/trial.h"

struct wr_limit_trials_settings {
    /* Each a limit as in weir.yaml; commas separate the limits of a stack. */
    const char *const *limits;
    size_t count;
    const char *traffic;
    int64_t take_ns, wait_ns; /* time in flight and maximum wait of a request, ns */
    bool json;
    const char *plot; /* file for the plot; NULL: no plot */
};

/* Returns an exit status; prints an error if it is not 0. */
int wr_limit_trials_run(const struct wr_limit_trials_settings *settings);

/* One limit: a row of the table and a panel of the plot. */
struct wr_limit_trials_row {
    const char *text;
    const struct wr_trial_answer *answers;
    struct wr_trial_sum sum;
};

struct wr_limit_trials_table {
    const char *traffic_text;
    struct wr_trial_plan plan;
    /* Window in which grants are counted, ns: the longest period of all limits. */
    int64_t window_ns;
    const struct wr_limit_trials_row *rows;
    size_t count;
};

/* Draws the plot. The caller checks the file for write errors. */
void wr_limit_trials_plot(FILE *file, const struct wr_limit_trials_table *table);

#endif
