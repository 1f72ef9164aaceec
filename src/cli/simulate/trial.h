/* SPDX-License-Identifier: MIT */
/* trial.h - tries one limit on the requests of one caller in virtual time: which are granted, and
 * when. */
#ifndef WR_CLI_SIMULATE_TRIAL_H
#define WR_CLI_SIMULATE_TRIAL_H

#include "cli/simulate/traffic.h"

#include <weir/limit.h>

/* Result of one request. */
struct wr_trial_answer {
    int64_t asked_at;
    int64_t granted_at;    /* time of the grant, ns; -1: refused, or it gave up waiting */
    int64_t retry_after_s; /* Retry-After of a refused request, s; 0: none */
};

struct wr_trial_plan {
    const struct wr_traffic *traffic;
    int64_t take_ns; /* time that a granted request is in flight, ns */
    int64_t wait_ns; /* maximum time that a request waits in the queue, ns; 0: refused at once */
};

/* Runs the trial. `ret_answers` must have room for all requests of the traffic. Returns
 * WEIR_E_INVAL or WEIR_E_NOMEM. */
int wr_trial_run(const struct wr_trial_plan *plan, const weir_limit *limits, size_t count,
                 struct wr_trial_answer *ret_answers);

/* Summary of a trial. */
struct wr_trial_sum {
    size_t asked, granted;
    size_t most_in_window; /* maximum number of grants in any window of `window_ns` */
    size_t most_in_flight;
    int64_t retry_min_s, retry_max_s; /* Retry-After of refused requests, s; 0: none */
    int64_t longest_ns;               /* longest wait of a granted request, ns */
};

struct wr_trial_sum wr_trial_sum(const struct wr_trial_plan *plan, const struct wr_trial_answer *answers,
                                 int64_t window_ns);

#endif
