/* SPDX-License-Identifier: MIT */
/* vary.h - The variation of a capacity over time: a factor, and its integral. */
#ifndef WR_SIM_VARY_H
#define WR_SIM_VARY_H

#include "sim/sim.h"

#define WR_VARY_MOST 2.5 /* largest factor: that of a jump */

/* Converts ns to seconds. A division, unlike a product with 1e-9, keeps whole seconds exact. */
static inline double wr_seconds(int64_t ns)
{
    return (double)ns / 1e9;
}

struct wr_vary {
    enum wr_vary_kind kind;
    double end_s;    /* end of the run */
    double period_s; /* sine and walk: length of a period */
    /* The factor in each period, followed by the integrals up to the beginning of each period. */
    double *walk;
    size_t periods;
    const weir_allocator *allocator;
};

/* Initialises the variation. Returns 0 or WEIR_E_NOMEM. */
int wr_vary_init(struct wr_vary *ret_vary, const struct wr_origin *origin, int64_t duration_ns, uint64_t seed,
                 const weir_allocator *allocator);
void wr_vary_release(struct wr_vary *vary);

/* Returns the factor at `t`, in seconds since the beginning of the run. */
double wr_vary_factor(const struct wr_vary *vary, double t);

/* Returns the integral of the factor from 0 to `t`. */
double wr_vary_sum(const struct wr_vary *vary, double t);

/* Returns when the capacity returns or rises at once, in seconds; NAN if it never does. */
double wr_vary_rise(const struct wr_vary *vary);

#endif
