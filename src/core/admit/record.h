/* SPDX-License-Identifier: MIT */
/* record.h - what a key has used up, as a line of a state file.
 *
 *     k 616c696365 17 3/1500000000
 *
 * The key in hex, then for each limit of its stack what was used, and how long before the file was written that counts
 * from, in nanoseconds, if it is not 0. No instants: the clock of another life means nothing. A line of another kind
 * has another letter: "c 616c696365 0" is a key that has changed since it was last written down, and
 * "t 616c696365 2" are two permits of the key that a hold has taken.
 */
#ifndef WR_CORE_ADMIT_RECORD_H
#define WR_CORE_ADMIT_RECORD_H

#include "base/buf.h"

#include <weir/table.h>

struct wr_past {
    uint32_t used;
    int64_t back_ns; /* 0 … WEIR_DURATION_MAX */
};

struct wr_record {
    char kind;
    char key[WEIR_KEY_MAX];
    size_t key_bytes; /* 1 … */
    struct wr_past pasts[WEIR_STACK_MAX];
    uint32_t count; /* 1 … */
};

#define WR_RECORD_BYTES_MAX (2 + 2 * WEIR_KEY_MAX + WEIR_STACK_MAX * 32) /* of a line */

void wr_record_append(struct wr_buf *buf, char kind, struct wr_span key, const struct wr_past *pasts, uint32_t count);

/* False if the line, without its end, is none that wr_record_append writes. */
bool wr_record_parse(struct wr_span line, struct wr_record *ret_record);

#endif
