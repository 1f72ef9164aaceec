/* SPDX-License-Identifier: MIT */
/* numbered_keys.h - sorts and searches a list of keys, each with a number. */
#ifndef WR_CORE_ADMIT_NUMBERED_KEYS_H
#define WR_CORE_ADMIT_NUMBERED_KEYS_H

#include "base/span.h"

struct wr_numbered_key {
    struct wr_span text; /* text in memory of the caller */
    uint32_t number;
};

/* Sorts the list. Returns a key that is in it twice, or NULL if all differ. */
const struct wr_numbered_key *wr_numbered_keys_sort(struct wr_numbered_key *words, size_t count);

/* Finds a key in the sorted list. Returns NULL if it is not there. */
const struct wr_numbered_key *wr_numbered_keys_find(const struct wr_numbered_key *words, size_t count,
                                                    struct wr_span text);

#endif
