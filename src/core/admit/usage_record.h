/* SPDX-License-Identifier: MIT */
/* usage_record.h - writes and parses the usage of a key as a line of a state file.
 *
 *     k 616c696365 17 3/1500000000
 *
 * The key in hex, then for each limit of its stack the permits used and, if not 0, the age of
 * that usage when the file was written, in ns. It holds no instants: the clock of another process
 * has no meaning here. The letter is the kind of the line: "c 616c696365 0" is a key that has
 * changed since it was last written, and "t 616c696365 2" are two permits of the key that a
 * reservation has taken.
 */
#ifndef WR_CORE_ADMIT_USAGE_RECORD_H
#define WR_CORE_ADMIT_USAGE_RECORD_H

#include "base/buf.h"

#include <weir/table.h>

struct wr_limit_usage {
    uint32_t used;
    int64_t back_ns; /* age of the usage when written, 0 ... WEIR_DURATION_MAX */
};

struct wr_usage_record {
    char kind;
    char key[WEIR_KEY_MAX];
    size_t key_bytes; /* length of the key, at least 1 */
    struct wr_limit_usage usages[WEIR_STACK_MAX];
    uint32_t count; /* number of `usages`, at least 1 */
};

/* Bytes of the longest line. */
#define WR_USAGE_RECORD_BYTES_MAX (2 + 2 * WEIR_KEY_MAX + WEIR_STACK_MAX * 32)

void wr_usage_record_append(struct wr_buf *buf, char kind, struct wr_span key, const struct wr_limit_usage *usages,
                            uint32_t count);

/* Parses a line without its line end. Returns false if wr_usage_record_append cannot have written
 * it. */
bool wr_usage_record_parse(struct wr_span line, struct wr_usage_record *ret_record);

#endif
