/* SPDX-License-Identifier: MIT */
/* score.h - Counts the events of a run and computes its score. */
#ifndef WR_SIM_SCORE_H
#define WR_SIM_SCORE_H

#include "sim/oracle.h"

struct wr_sim_counts {
    uint32_t *sent_in, *ok_in, *refused_in; /* counts in each second */
    size_t seconds;
    uint64_t sent, ok, rejections, waste;
    double latency_ns; /* sum of the latencies of all 200s */
    int64_t last_ok_at;
    const weir_allocator *allocator;
};

/* Creates an empty tally. Returns 0 or WEIR_E_NOMEM. */
int wr_sim_counts_init(struct wr_sim_counts *ret_tally, int64_t duration_ns, const weir_allocator *allocator);
void wr_sim_counts_release(struct wr_sim_counts *tally);

void wr_sim_counts_sent(struct wr_sim_counts *tally, int64_t now);
void wr_sim_counts_answered(struct wr_sim_counts *tally, int64_t now, const struct wr_sim_reply *reply,
                            int64_t latency_ns);

/* Computes the score. `ret_ideal_s` is the oracle's time for the backlog; NAN without a backlog. */
void wr_sim_counts_score(const struct wr_sim_counts *tally, const struct wr_sim_origin *site,
                         const struct wr_scenario *scenario, uint32_t backlog, struct wr_score *ret_score,
                         double *ret_ideal_s);

/* Adds each number of a score; NAN in either operand gives NAN. */
void wr_score_add(struct wr_score *sum, const struct wr_score *more);
void wr_score_divide(struct wr_score *sum, double by);

#endif
