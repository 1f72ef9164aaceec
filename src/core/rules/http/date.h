/* SPDX-License-Identifier: MIT */
/* date.h - dates, as servers write them.
 *
 * No locale, no time zone database, no libc: the text and `now_s` in, seconds since 1970 (UTC) out. What is no date is
 * refused, and the output then stays as it was. `now_s` is not negative.
 */
#ifndef WR_CORE_RULES_HTTP_DATE_H
#define WR_CORE_RULES_HTTP_DATE_H

#include "base/span.h"

#include <stdint.h>

/* The three forms of RFC 9110 5.6.7, and two that others send (RFC 5322, and JavaScript's Date):
 *     Sun, 06 Nov 1994 08:49:37 GMT
 *     Sunday, 06-Nov-94 08:49:37 GMT
 *     Sun Nov  6 08:49:37 1994
 *     Sun, 06 Nov 1994 09:49:37 +0100
 *     Sun Nov 06 1994 09:49:37 GMT+0100 (Central European Time)
 * Tolerated: a weekday that is wrong or missing, any case, UTC for GMT, a day of one digit, two digits of a year in the
 * first form, the second 60 (which is the 0 after it). A year of two digits is the one that lies less than 50 years
 * before `now_s` or at most 50 after it. */
bool wr_http_date_parse(struct wr_span text, int64_t now_s, int64_t *ret_s);

/* ISO 8601 as APIs send it: 2026-11-15T10:30Z, 2026-11-15 10:30:00.250+01:00, 2026-11-15 10:30:00 UTC. Without a zone
 * it is UTC. In milliseconds, rounded up. */
bool wr_iso_date_parse(struct wr_span text, int64_t *ret_ms);

#endif
