/* SPDX-License-Identifier: MIT */
/* parse.h - numbers, durations, sizes and rates, as people write them.
 *
 * Exact: digits become integers without a detour through floating point, and what does not come out whole is refused
 * rather than rounded. (wr_parse_number is for what is a double anyway.) Strict: no signs, spaces, exponents or
 * separators, and nothing before or after. The text is `text_bytes` long and need not be terminated.
 *
 * All return 0, or WEIR_E_INVAL with the outputs untouched; weir_error_detail() then quotes the text and says what is
 * wrong, where, and what would be right.
 */
#ifndef WR_BASE_PARSE_H
#define WR_BASE_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/time.h>

#define WR_BYTES_MAX ((uint64_t)1 << 60) /* of a size: 1 EiB */
#define WR_RATE_COUNT_MAX UINT32_MAX

/* "0", "4294967295": a whole number from min to max. */
int wr_parse_u64(const char *text, size_t text_bytes, uint64_t min, uint64_t max, uint64_t *ret_number);

/* "0.25", "20": a number from min to max, which are finite and at most 10^18. Whatever the locale. */
int wr_parse_number(const char *text, size_t text_bytes, double min, double max, double *ret_number);

/* As wr_parse_u64 without a word: weir_error_detail() stays as it is, for where a stranger's bad number is no error of
 * ours.
 */
bool wr_scan_u64(const char *text, size_t text_bytes, uint64_t min, uint64_t max, uint64_t *ret_number);

/* "500ms", "1.5s", "1h30m", "90": parts of a number and a unit (ns us ms s m h d), from the largest unit to the
 * smallest, each once. A bare number is seconds. A whole number of nanoseconds, 0 … WEIR_DURATION_MAX. */
int wr_parse_duration(const char *text, size_t text_bytes, int64_t *ret_duration_ns);

/* "4096", "64k", "10MB", "1.5GiB": k, M, G, T and KiB, MiB, GiB, TiB are powers of 1024, kB, MB, GB, TB powers of 1000,
 * in capitals or not. A whole number of bytes, 0 … WR_BYTES_MAX. */
int wr_parse_bytes(const char *text, size_t text_bytes, uint64_t *ret_bytes);

/* "10/s", "1000/h", "5/10s", "1/day": a whole number from 1 to WR_RATE_COUNT_MAX per unit (of a duration, or second,
 * minute, hour, day) or per duration, which must have its units and not be 0. */
int wr_parse_rate(const char *text, size_t text_bytes, uint32_t *ret_count, int64_t *ret_period_ns);

#endif
