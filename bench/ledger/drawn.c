/* SPDX-License-Identifier: MIT */
/* drawn.c - replaces the system's random numbers by the same sequence in each run, so that tables
 * hash their keys in the same way and each figure can be reproduced. */
#include <stdbool.h>
#include <stddef.h>
#include <sys/random.h>

#include "base/rng.h"

/* Replaces the function of the C library. */
ssize_t getrandom(void *bytes, size_t count, unsigned flags)
{
    static struct wr_rng rng;
    static bool has_begun;
    unsigned char *to = bytes;
    (void)flags;
    if (!has_begun)
        wr_rng_init(&rng, 1);
    has_begun = true;
    for (size_t i = 0; i < count; i++)
        to[i] = (unsigned char)wr_rng_below(&rng, 256);
    return (ssize_t)count;
}
