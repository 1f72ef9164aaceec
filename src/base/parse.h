/* SPDX-License-Identifier: MIT */
/* parse.h - strict, exact parsers for numbers, durations, sizes and rates.
 *
 * Exact: digits become integers without floating point, and a value that is not a whole number of
 * the smallest unit is refused rather than rounded (except wr_parse_number, whose result is a
 * double). Strict: no signs, spaces, exponents or separators, and nothing before or after. The text
 * is `text_bytes` long and need not be terminated.
 *
 * The wr_parse functions return 0, or WEIR_E_INVAL with the outputs untouched. weir_error_detail()
 * then quotes the text and says what is wrong, where, and what would be right.
 */
#ifndef WR_BASE_PARSE_H
#define WR_BASE_PARSE_H

#include "base/seam.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/time.h>

#define WR_BYTES_MAX ((uint64_t)1 << 60) /* largest size that wr_parse_bytes accepts: 1 EiB */
#define WR_RATE_COUNT_MAX UINT32_MAX

/* Parses a whole number from min to max: "0", "4294967295". */
int wr_parse_u64(const char *text, size_t text_bytes, uint64_t min, uint64_t max, uint64_t *ret_number);

/* Parses a decimal number from min to max, which are finite and at most 10^18: "0.25", "20". The
 * locale has no influence. */
int wr_parse_number(const char *text, size_t text_bytes, double min, double max, double *ret_number);

/* Parses like wr_parse_u64 but returns true or false and does not set weir_error_detail(). For
 * numbers from peers, whose mistakes are not errors of this program. */
WR_SEAM bool wr_scan_u64(const char *text, size_t text_bytes, uint64_t min, uint64_t max, uint64_t *ret_number);

/* Parses a duration: "500ms", "1.5s", "1h30m", "90". Its parts are a number and a unit (ns us ms s
 * m h d), from the largest unit to the smallest, each at most once. A number without a unit is
 * seconds. The result must be a whole number of nanoseconds, 0 to WEIR_DURATION_MAX. */
int wr_parse_duration(const char *text, size_t text_bytes, int64_t *ret_duration_ns);

/* Parses a size: "4096", "64k", "10MB", "1.5GiB". k, M, G, T and KiB, MiB, GiB, TiB are powers of
 * 1024; kB, MB, GB, TB are powers of 1000; case is ignored. The result must be a whole number of
 * bytes, 0 to WR_BYTES_MAX. */
int wr_parse_bytes(const char *text, size_t text_bytes, uint64_t *ret_bytes);

/* Parses a rate: "10/s", "1000/h", "5/10s", "1/day". The count is a whole number from 1 to
 * WR_RATE_COUNT_MAX. The period is a unit (of durations, or second, minute, hour, day) or a
 * duration with units that is not 0. */
int wr_parse_rate(const char *text, size_t text_bytes, uint32_t *ret_count, int64_t *ret_period_ns);

#endif
