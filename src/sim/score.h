/* SPDX-License-Identifier: MIT */
/* score.h - counting what happens in a run, and what it is worth. */
#ifndef WR_SIM_SCORE_H
#define WR_SIM_SCORE_H

#include "sim/oracle.h"

struct wr_tally {
    uint32_t *sent_in, *ok_in, *refused_in; /* in each second */
    size_t seconds;
    uint64_t sent, ok, rejections, waste;
    double latency_ns; /* of all 200s together */
    int64_t last_ok_at;
    const weir_allocator *allocator;
};

/* WEIR_E_NOMEM. */
int wr_tally_init(struct wr_tally *ret_tally, int64_t duration_ns, const weir_allocator *allocator);
void wr_tally_release(struct wr_tally *tally);

void wr_tally_sent(struct wr_tally *tally, int64_t now);
void wr_tally_answered(struct wr_tally *tally, int64_t now, const struct wr_reply *reply, int64_t latency_ns);

/* `ret_ideal_s` is the oracle's makespan; NAN without a backlog. */
void wr_tally_score(const struct wr_tally *tally, const struct wr_site *site, const struct wr_scenario *scenario,
                    uint32_t backlog, struct wr_score *ret_score, double *ret_ideal_s);

/* Adds each number; one that is NAN in either stays so. */
void wr_score_add(struct wr_score *sum, const struct wr_score *more);
void wr_score_divide(struct wr_score *sum, double by);

#endif
