/* SPDX-License-Identifier: MIT */
/* words.h - a list of keys, each with a number: found by halving. */
#ifndef WR_CORE_ADMIT_WORDS_H
#define WR_CORE_ADMIT_WORDS_H

#include "base/span.h"

struct wr_word {
    struct wr_span text; /* somebody else's */
    uint32_t number;
};

/* Puts them in order. Returns one that is there twice, or NULL. */
const struct wr_word *wr_words_sort(struct wr_word *words, size_t count);

/* NULL if it is not in the list. */
const struct wr_word *wr_words_find(const struct wr_word *words, size_t count, struct wr_span text);

#endif
