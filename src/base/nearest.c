/* SPDX-License-Identifier: MIT */
/* nearest.c - the known word with the fewest letters changed, added or left out. */
#include "base/nearest.h"

#include <string.h>

#define LETTERS_MAX 32 /* no word of ours is longer */

static size_t least(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Levenshtein's distance, one row of his matrix at a time. `b` has at most LETTERS_MAX letters. */
static size_t distance(const char *a, const char *b)
{
    size_t row[LETTERS_MAX + 1];
    size_t b_length = strlen(b);
    for (size_t j = 0; j <= b_length; j++)
        row[j] = j;
    for (size_t i = 0; a[i] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < b_length; j++) {
            size_t swapped = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            row[j + 1] = least(swapped, row[j] + 1, diagonal + 1);
        }
    }
    return row[b_length];
}

void wr_nearest_offer(struct wr_nearest *nearest, const char *candidate)
{
    size_t length = strlen(candidate);
    if (length > LETTERS_MAX || strlen(nearest->word) > LETTERS_MAX)
        return;
    size_t changed = distance(nearest->word, candidate);
    /* With half of its letters changed it is another word. */
    if (changed > 3 || changed * 2 > length || (nearest->best != NULL && changed >= nearest->distance))
        return;
    nearest->best = candidate;
    nearest->distance = changed;
}
