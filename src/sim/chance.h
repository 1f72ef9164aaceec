/* SPDX-License-Identifier: MIT */
/* chance.h - draws from the laws that an origin needs.
 *
 * Each purpose (service times, faults, traffic of others, …) has a stream of its own: a pacer that sends one request
 * more does not change what befalls the others, so two pacers see comparable worlds.
 */
#ifndef WR_SIM_CHANCE_H
#define WR_SIM_CHANCE_H

#include "base/rng.h"

#include <math.h>
#include <stdbool.h>

enum wr_stream {
    WR_STREAM_SERVICE,
    WR_STREAM_FAULTS,
    WR_STREAM_OTHERS,
    WR_STREAM_WALK,
    WR_STREAM_NETWORK,
    WR_STREAM_PACER,
    WR_STREAM_CROWD,
    WR_STREAM_DRAW,
};

struct wr_chance {
    struct wr_rng rng;
    double spare; /* the second normal of a pair */
    bool has_spare;
};

static inline void wr_chance_init(struct wr_chance *ret_chance, uint64_t seed, enum wr_stream stream)
{
    *ret_chance = (struct wr_chance){.has_spare = false};
    wr_rng_init(&ret_chance->rng, seed * 64 + (uint64_t)stream);
}

/* 0 <= x < 1. */
static inline double wr_chance_unit(struct wr_chance *chance)
{
    return wr_rng_unit(&chance->rng);
}

/* Mean 0, deviation 1 (Box and Muller, who make two at a time). */
static inline double wr_chance_normal(struct wr_chance *chance)
{
    if (chance->has_spare) {
        chance->has_spare = false;
        return chance->spare;
    }
    double radius = sqrt(-2 * log(1 - wr_chance_unit(chance)));
    double angle = 2 * M_PI * wr_chance_unit(chance);
    chance->spare = radius * sin(angle);
    chance->has_spare = true;
    return radius * cos(angle);
}

/* Mean 1: the gaps of Poisson traffic. */
static inline double wr_chance_gap(struct wr_chance *chance)
{
    return -log(1 - wr_chance_unit(chance));
}

/* What cannot happen draws nothing. */
static inline bool wr_chance_happens(struct wr_chance *chance, double probability)
{
    return probability > 0 && wr_chance_unit(chance) < probability;
}

#endif
