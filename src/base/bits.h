/* SPDX-License-Identifier: MIT */
/* bits.h - what C lacks for whole numbers. */
#ifndef WR_BASE_BITS_H
#define WR_BASE_BITS_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* Wide enough for the product of any two 64-bit numbers. gcc and clang have them on every 64-bit machine. */
__extension__ typedef unsigned __int128 wr_u128;

/* The smallest power of two that is at least `n`, which is 1 … SIZE_MAX / 2. */
static inline size_t wr_round_up_pow2(size_t n)
{
    assert(n >= 1 && n <= SIZE_MAX / 2);
    size_t power = 1;
    while (power < n)
        power *= 2;
    return power;
}

#endif
