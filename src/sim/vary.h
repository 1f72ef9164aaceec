/* SPDX-License-Identifier: MIT */
/* vary.h - how a capacity changes over time: a factor of what the scenario says, and its integral. */
#ifndef WR_SIM_VARY_H
#define WR_SIM_VARY_H

#include "sim/sim.h"

#define WR_VARY_MOST 2.5 /* the largest factor: a jump's */

/* Divided, not multiplied by 1e-9: whole seconds come out whole. */
static inline double wr_seconds(int64_t ns)
{
    return (double)ns / 1e9;
}

struct wr_vary {
    enum wr_vary_kind kind;
    double end_s;    /* of the run */
    double period_s; /* sine, walk */
    double *walk;    /* the factor in each period, and behind them the integrals up to each period's beginning */
    size_t periods;
    const weir_allocator *allocator;
};

/* WEIR_E_NOMEM. */
int wr_vary_init(struct wr_vary *ret_vary, const struct wr_origin *origin, int64_t duration_ns, uint64_t seed,
                 const weir_allocator *allocator);
void wr_vary_release(struct wr_vary *vary);

/* The factor at `t`, in seconds from the run's beginning. */
double wr_vary_factor(const struct wr_vary *vary, double t);

/* Its integral from 0 to `t`. */
double wr_vary_sum(const struct wr_vary *vary, double t);

/* When the capacity has come back or risen, in seconds; NAN: it never does so at once. */
double wr_vary_rise(const struct wr_vary *vary);

#endif
