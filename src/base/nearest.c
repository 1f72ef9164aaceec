/* SPDX-License-Identifier: MIT */
/* nearest.c - finds the known word with the fewest letters changed, added, left out or swapped. */
#include "base/nearest.h"

#include <string.h>

#define LETTERS_MAX 32 /* longer words are never suggested; all known words fit */

static size_t smaller_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Returns how many letters are changed, added, left out or swapped with their neighbour. `b` has at
 * most LETTERS_MAX letters. */
static size_t edit_distance(const char *a, const char *b)
{
    /* matrix rows of the letter before the last, the last letter and this letter */
    size_t rows[3][LETTERS_MAX + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    size_t b_length = strlen(b);
    for (size_t j = 0; j <= b_length; j++)
        row[j] = j;
    for (size_t i = 0; a[i] != '\0'; i++) {
        size_t *oldest = before;
        before = last;
        last = row;
        row = oldest;
        row[0] = i + 1;
        for (size_t j = 0; j < b_length; j++) {
            row[j + 1] = smaller_size(last[j] + (a[i] != b[j]), smaller_size(row[j], last[j + 1]) + 1);
            if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j])
                row[j + 1] = smaller_size(row[j + 1], before[j - 1] + 1);
        }
    }
    return row[b_length];
}

void wr_nearest_offer(struct wr_nearest *nearest, const char *candidate)
{
    size_t length = strlen(candidate);
    size_t word_length = strlen(nearest->word);
    if (length > LETTERS_MAX || word_length > LETTERS_MAX || length < 2)
        return;
    size_t longest = length > word_length ? length : word_length;
    size_t changed = edit_distance(nearest->word, candidate);
    /* A word with more than a third of its letters changed is a different word. */
    if (changed > 3 || (changed > 1 && changed * 3 > longest) ||
        (nearest->best != NULL && changed >= nearest->distance))
        return;
    nearest->best = candidate;
    nearest->distance = changed;
}
