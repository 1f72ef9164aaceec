/* SPDX-License-Identifier: MIT */
/* chance.h - Random draws from the distributions that an origin needs.
 *
 * Each purpose (service times, faults, traffic of others, ...) has its own stream. So an additional
 * request of one pacer does not change the other events, and two pacers see comparable worlds.
 */
#ifndef WR_SIM_CHANCE_H
#define WR_SIM_CHANCE_H

#include "base/rng.h"

#include <math.h>
#include <stdbool.h>

enum wr_random_stream {
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
    double spare; /* the second normal number of a pair */
    bool has_spare;
};

static inline void wr_chance_init(struct wr_chance *ret_chance, uint64_t seed, enum wr_random_stream stream)
{
    *ret_chance = (struct wr_chance){.has_spare = false};
    wr_rng_init(&ret_chance->rng, seed * 64 + (uint64_t)stream);
}

/* Returns a uniform random number, 0 <= x < 1. */
static inline double wr_chance_unit(struct wr_chance *chance)
{
    return wr_rng_unit(&chance->rng);
}

/* Returns a normal random number with mean 0 and deviation 1, by Box and Muller (two at a time). */
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

/* Returns an exponential random number with mean 1: a gap in Poisson traffic. */
static inline double wr_chance_gap(struct wr_chance *chance)
{
    return -log(1 - wr_chance_unit(chance));
}

/* Returns true with this probability. A probability of 0 consumes no random number. */
static inline bool wr_chance_happens(struct wr_chance *chance, double probability)
{
    return probability > 0 && wr_chance_unit(chance) < probability;
}

#endif
