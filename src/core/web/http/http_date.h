/* SPDX-License-Identifier: MIT */
/* http_date.h - parses dates as servers write them.
 *
 * The result depends only on the text and `now_s`, not on locale, time zone database or libc. Dates
 * are seconds since 1970 (UTC). The functions return false and leave the output unchanged if the
 * text is not a date. `now_s` is not negative.
 */
#ifndef WR_CORE_WEB_HTTP_HTTP_DATE_H
#define WR_CORE_WEB_HTTP_HTTP_DATE_H

#include "base/span.h"

#include <stdint.h>

/* Parses the three forms of RFC 9110 5.6.7, and two that other programs send (RFC 5322, and Date of
 * JavaScript):
 *     Sun, 06 Nov 1994 08:49:37 GMT
 *     Sunday, 06-Nov-94 08:49:37 GMT
 *     Sun Nov  6 08:49:37 1994
 *     Sun, 06 Nov 1994 09:49:37 +0100
 *     Sun Nov 06 1994 09:49:37 GMT+0100 (Central European Time)
 * Tolerated: a wrong or missing weekday, any case, UTC for GMT, a day of one digit, a two-digit
 * year in the first form, and the second 60, which means the 0 after it. A two-digit year means the
 * year less than 50 years before `now_s` or at most 50 years after it.
 */
bool wr_http_date_parse(struct wr_span text, int64_t now_s, int64_t *ret_s);

/* Parses ISO 8601 as APIs send it: 2026-11-15T10:30Z, 2026-11-15 10:30:00.250+01:00, 2026-11-15
 * 10:30:00 UTC. Without a zone it is UTC. The result is in milliseconds, rounded up. */
bool wr_iso_date_parse(struct wr_span text, int64_t *ret_ms);

#endif
