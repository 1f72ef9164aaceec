/* SPDX-License-Identifier: MIT */
/* nearest.h - suggests the known word that the user may have meant by an unknown one. */
#ifndef WR_BASE_NEAREST_H
#define WR_BASE_NEAREST_H

#include <stddef.h>

/* Start with {.word = "tabel"}, offer every valid word, then read `best`. */
struct wr_nearest {
    const char *word;
    const char *best; /* closest word so far; NULL if no word was close */
    size_t distance;  /* number of edits between `word` and `best` */
};

void wr_nearest_offer(struct wr_nearest *nearest, const char *candidate);

#endif
