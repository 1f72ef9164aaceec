/* SPDX-License-Identifier: MIT */
/* bits.h - 128-bit integers, rounding, and other integer helpers that C lacks. */
#ifndef WR_BASE_BITS_H
#define WR_BASE_BITS_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* 128 bits hold the product of any two 64-bit numbers. gcc and clang offer __int128 on 64-bit
 * machines and the C23 _BitInt(128) on 32-bit machines (on x86 gcc from 14 on). */
#ifdef __SIZEOF_INT128__
__extension__ typedef unsigned __int128 wr_u128;
__extension__ typedef __int128 wr_i128;
#else
__extension__ typedef unsigned _BitInt(128) wr_u128;
__extension__ typedef _BitInt(128) wr_i128;
#endif

/* Converts `n` to size_t. On 32-bit machines larger values become SIZE_MAX, for which every
 * allocation fails. */
static inline size_t wr_size_of(uint64_t n)
{
#if SIZE_MAX < UINT64_MAX
    return n < SIZE_MAX ? (size_t)n : SIZE_MAX;
#else
    return n;
#endif
}

#define WR_CACHE_LINE 64 /* bytes; data written by different threads must not share a cache line */

/* Returns the smallest multiple of `step` that is at least `n`. The result must fit in a size_t. */
static inline size_t wr_round_up(size_t n, size_t step)
{
    assert(step >= 1 && n <= SIZE_MAX - (step - 1));
    return (n + step - 1) / step * step;
}

/* Returns the smallest power of two that is at least `n`. `n` must be 1 to SIZE_MAX / 2. */
static inline size_t wr_round_up_pow2(size_t n)
{
    assert(n >= 1 && n <= SIZE_MAX / 2);
    size_t power = 1;
    while (power < n)
        power *= 2;
    return power;
}

#endif
