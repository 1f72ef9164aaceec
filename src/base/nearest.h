/* SPDX-License-Identifier: MIT */
/* nearest.h - what the user may have meant by a word that we do not know. */
#ifndef WR_BASE_NEAREST_H
#define WR_BASE_NEAREST_H

#include <stddef.h>

/* Start with {.word = "tabel"}, offer every word that would have been right, then read `best`. */
struct wr_nearest {
    const char *word;
    const char *best; /* NULL while nothing is near */
    size_t distance;  /* of best */
};

void wr_nearest_offer(struct wr_nearest *nearest, const char *candidate);

#endif
