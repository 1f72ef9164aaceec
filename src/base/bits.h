/* SPDX-License-Identifier: MIT */
/* bits.h - what C lacks for whole numbers. */
#ifndef WR_BASE_BITS_H
#define WR_BASE_BITS_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* Wide enough for the product of any two 64-bit numbers. On 64-bit machines gcc and clang have had such types for long;
 * on 32-bit machines they have those of C23 (on x86 gcc from 14 on). */
#ifdef __SIZEOF_INT128__
__extension__ typedef unsigned __int128 wr_u128;
__extension__ typedef __int128 wr_i128;
#else
__extension__ typedef unsigned _BitInt(128) wr_u128;
__extension__ typedef _BitInt(128) wr_i128;
#endif

/* `n` as a size. Where sizes have 32 bits, SIZE_MAX stands for more: so much memory cannot be had. */
static inline size_t wr_size_of(uint64_t n)
{
#if SIZE_MAX < UINT64_MAX
    return n < SIZE_MAX ? (size_t)n : SIZE_MAX;
#else
    return n;
#endif
}

#define WR_CACHE_LINE 64 /* bytes; what two threads write must not share one */

/* The smallest multiple of `step` that is at least `n`. It must fit. */
static inline size_t wr_round_up(size_t n, size_t step)
{
    assert(step >= 1 && n <= SIZE_MAX - (step - 1));
    return (n + step - 1) / step * step;
}

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
