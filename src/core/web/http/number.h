/* SPDX-License-Identifier: MIT */
/* number.h - parses numbers in header fields from untrusted servers: never wrapped, never negative,
 * rounded up. */
#ifndef WR_CORE_WEB_HTTP_NUMBER_H
#define WR_CORE_WEB_HTTP_NUMBER_H

#include "base/span.h"

#include <stdint.h>

#define WR_NUMBER_MAX UINT64_C(1000000000000000000) /* 10^18; larger numbers become this */

/* The number whole + nanos / 10^9. */
struct wr_number {
    uint64_t whole; /* whole part, at most WR_NUMBER_MAX */
    uint32_t nanos; /* fraction in 10^-9, 0 to 10^9, rounded up */
};

struct wr_numbers {
    struct wr_number first, least, most;
};

/* Parses numbers separated by commas, each with optional parameters, which are skipped: "100",
 * "1.25", "100, 100;w=60". Returns false for signs, exponents and anything else. */
bool wr_numbers_parse(struct wr_span text, struct wr_numbers *ret_numbers);

/* Returns number * unit_ns, rounded up, at most `max_ns`. */
int64_t wr_number_ns(const struct wr_number *number, int64_t unit_ns, int64_t max_ns);

/* Parses a duration as the sum of parts with units, at most `max_ns`: "6m0s", "1h30m", "120ms",
 * "8.64s", "4 seconds". */
bool wr_number_duration(struct wr_span text, int64_t max_ns, int64_t *ret_ns);

#endif
