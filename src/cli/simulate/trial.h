/* SPDX-License-Identifier: MIT */
/* trial.h - one caller, one limit, in virtual time: which of its requests are granted, and when? */
#ifndef WR_CLI_SIMULATE_TRIAL_H
#define WR_CLI_SIMULATE_TRIAL_H

#include "cli/simulate/traffic.h"

#include <weir/limit.h>

/* What became of one request. */
struct wr_answer {
    int64_t asked_at;
    int64_t granted_at;    /* -1: refused, or it gave up */
    int64_t retry_after_s; /* that a refused one was told; 0: none */
};

struct wr_trial_plan {
    const struct wr_traffic *traffic;
    int64_t take_ns; /* how long a granted request is in flight */
    int64_t wait_ns; /* how long a request stands in the queue; 0: it is refused at once */
};

/* `ret_answers` has room for all requests of the traffic. WEIR_E_INVAL, WEIR_E_NOMEM. */
int wr_trial_run(const struct wr_trial_plan *plan, const weir_limit *limits, size_t count,
                 struct wr_answer *ret_answers);

/* What it came to. */
struct wr_trial_sum {
    size_t asked, granted;
    size_t most_in_window; /* granted, in any time of `window_ns` */
    size_t most_in_flight;
    int64_t retry_min_s, retry_max_s; /* told to those refused; 0: none was */
    int64_t longest_ns;               /* that a granted one has waited */
};

struct wr_trial_sum wr_trial_sum(const struct wr_trial_plan *plan, const struct wr_answer *answers, int64_t window_ns);

#endif
