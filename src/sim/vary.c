/* SPDX-License-Identifier: MIT */
/* vary.c - Computes how the capacity of an origin varies over time.
 *
 *     step              jump              sine               walk
 *     1 ___       ___   2.5      ______   1.5  _             1.5
 *          |     |               |           / \   /\           _   _|
 *    1/4   |_____|     1  _______|        1 /   \_/           _| |_|
 *                                        0.5                 0.3
 */
#include "sim/vary.h"

#include "sim/chance.h"

#include <math.h>
#include <stdalign.h>

#define STEP_FACTOR 0.25
#define SINE_SWING 0.5
#define WALK_MIN 0.3
#define WALK_MAX 1.5
#define WALK_SIGMA 0.2 /* deviation of one step's logarithm: about a fifth per period */

static int draw_walk(struct wr_vary *vary, uint64_t seed)
{
    vary->periods = (size_t)ceil(vary->end_s / vary->period_s) + 1;
    vary->walk = wr_alloc_array(vary->allocator, 2 * vary->periods, sizeof *vary->walk, alignof(double));
    if (vary->walk == NULL)
        return WEIR_E_NOMEM;
    struct wr_chance chance;
    wr_chance_init(&chance, seed, WR_STREAM_WALK);
    double factor = 1, sum = 0;
    for (size_t i = 0; i < vary->periods; i++) {
        vary->walk[i] = factor;
        vary->walk[vary->periods + i] = sum;
        sum += factor * vary->period_s;
        factor = fmin(WALK_MAX, fmax(WALK_MIN, factor * exp(WALK_SIGMA * wr_chance_normal(&chance))));
    }
    return 0;
}

int wr_vary_init(struct wr_vary *ret_vary, const struct wr_origin *origin, int64_t duration_ns, uint64_t seed,
                 const weir_allocator *allocator)
{
    struct wr_vary vary = {
        .kind = origin->vary.kind,
        .end_s = wr_seconds(duration_ns),
        .period_s = wr_seconds(origin->vary.period_ns),
        .allocator = allocator,
    };
    if (vary.kind == WR_VARY_WALK) {
        int error = draw_walk(&vary, seed);
        if (error < 0)
            return error;
    }
    *ret_vary = vary;
    return 0;
}

void wr_vary_release(struct wr_vary *vary)
{
    wr_free(vary->allocator, vary->walk, 2 * vary->periods * sizeof *vary->walk, alignof(double));
    vary->walk = NULL;
}

static size_t period_at(const struct wr_vary *vary, double t)
{
    size_t period = t > 0 ? (size_t)(t / vary->period_s) : 0;
    return period < vary->periods ? period : vary->periods - 1;
}

double wr_vary_factor(const struct wr_vary *vary, double t)
{
    switch (vary->kind) {
    case WR_VARY_STEP:
        return t >= vary->end_s / 3 && t < vary->end_s * 2 / 3 ? STEP_FACTOR : 1;
    case WR_VARY_JUMP:
        return t >= vary->end_s / 2 ? WR_VARY_MOST : 1;
    case WR_VARY_SINE:
        return 1 + SINE_SWING * sin(2 * M_PI * t / vary->period_s);
    case WR_VARY_WALK:
        return vary->walk[period_at(vary, t)];
    case WR_VARY_NONE:
        break;
    }
    return 1;
}

/* Returns the length of the part of 0 ... t between `from` and `to`. */
static double overlap(double t, double from, double to)
{
    return fmax(0, fmin(t, to) - from);
}

static double walk_sum(const struct wr_vary *vary, double t)
{
    size_t period = period_at(vary, t);
    return vary->walk[vary->periods + period] + vary->walk[period] * (t - (double)period * vary->period_s);
}

double wr_vary_sum(const struct wr_vary *vary, double t)
{
    switch (vary->kind) {
    case WR_VARY_STEP:
        return t - (1 - STEP_FACTOR) * overlap(t, vary->end_s / 3, vary->end_s * 2 / 3);
    case WR_VARY_JUMP:
        return t + (WR_VARY_MOST - 1) * overlap(t, vary->end_s / 2, INFINITY);
    case WR_VARY_SINE:
        return t + SINE_SWING * vary->period_s / (2 * M_PI) * (1 - cos(2 * M_PI * t / vary->period_s));
    case WR_VARY_WALK:
        return walk_sum(vary, t);
    case WR_VARY_NONE:
        break;
    }
    return t;
}

double wr_vary_rise(const struct wr_vary *vary)
{
    if (vary->kind == WR_VARY_STEP)
        return vary->end_s * 2 / 3;
    return vary->kind == WR_VARY_JUMP ? vary->end_s / 2 : (double)NAN;
}
