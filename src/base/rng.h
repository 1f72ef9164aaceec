/* SPDX-License-Identifier: MIT */
/* rng.h - a seeded random number generator: the same seed always gives the same numbers.
 *
 * xoshiro256** (Blackman and Vigna), which passes the usual statistical tests in a few
 * instructions. Fit for jitter, sampling and tests, not for secrets. There is no global generator:
 * each user has its own.
 */
#ifndef WR_BASE_RNG_H
#define WR_BASE_RNG_H

#include "base/bits.h"

struct wr_rng {
    uint64_t s[4]; /* generator state; never all zero */
};

/* Returns number `n` (from 1) of the sequence of splitmix64 (Steele, Lea, Flood) for this seed.
 * Random numbers without stored state. */
static inline uint64_t wr_rng_pick(uint64_t seed, uint64_t n)
{
    uint64_t z = seed + n * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Initializes the state with splitmix64, as the authors of xoshiro advise: seeds that differ in one
 * bit give unrelated sequences. */
static inline void wr_rng_init(struct wr_rng *ret_rng, uint64_t seed)
{
    for (uint64_t i = 0; i < 4; i++)
        ret_rng->s[i] = wr_rng_pick(seed, i + 1);
}

/* Converts 64 random bits to a number 0 <= x < 1 in steps of 2^-53. */
static inline double wr_rng_unit_of(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

/* Returns 64 random bits. */
static inline uint64_t wr_rng_next(struct wr_rng *rng)
{
    uint64_t *s = rng->s;
    uint64_t x = s[1] * 5;
    uint64_t next = (x << 7 | x >> 57) * 9;
    uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = s[3] << 45 | s[3] >> 19;
    return next;
}

/* Returns a number from 0 to n - 1, each equally likely; n is at least 1. The result is the high
 * half of next * n (Lemire, 2019). The lowest 2^64 mod n products of each result would come once
 * too often: they are drawn anew. */
static inline uint64_t wr_rng_below(struct wr_rng *rng, uint64_t n)
{
    assert(n >= 1);
    wr_u128 product = (wr_u128)wr_rng_next(rng) * n;
    if ((uint64_t)product < n) {
        uint64_t surplus = (0 - n) % n;
        while ((uint64_t)product < surplus)
            product = (wr_u128)wr_rng_next(rng) * n;
    }
    return (uint64_t)(product >> 64);
}

/* Returns a random number 0 <= x < 1 in steps of 2^-53. */
static inline double wr_rng_unit(struct wr_rng *rng)
{
    return wr_rng_unit_of(wr_rng_next(rng));
}

#endif
