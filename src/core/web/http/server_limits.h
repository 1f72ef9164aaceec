/* SPDX-License-Identifier: MIT */
/* server_limits.h - reads the rate limits that a server reports in header fields.
 *
 *     struct wr_server_limits limits;
 *     wr_server_limits_init(&limits, wall_now_ns);
 *     wr_server_limits_field(&limits, name, value);           for each field of the response, in any order
 *     weir_server_limits said = wr_server_limits_result(&limits);
 *
 * Fields that are understood, ignoring case:
 *
 * Retry-After: seconds or a date; and retry-after-ms, x-ms-retry-after-ms, x-ratelimit-retry-after.
 *
 * RateLimit: "name";r=50;t=30, ... (draft-ietf-httpapi-ratelimit-headers-10), or limit=100,
 * remaining=50, reset=30 (-07).
 *
 * RateLimit-Policy, X-RateLimit-Policy: "name";q=100;w=60, ... or 100;w=60.
 *
 * RateLimit-Limit, -Remaining, -Reset; X-RateLimit-*, X-Rate-Limit-*, VENDOR-RateLimit-*; with
 * words before or after that distinguish several quotas: -Limit-Requests, -Requests-Limit,
 * -Remaining-Minute.
 *
 * Date: converts instants of the server's clock to durations, even if that clock is wrong.
 *
 * A reset is a number of seconds from now, an instant in seconds or milliseconds since 1970, a date
 * (HTTP or ISO), or a duration such as 6m0s. docs/internals/headers.md lists which servers send
 * what.
 *
 * If several quotas are reported, the tightest one counts, as a whole: a used-up quota with the
 * longest reset, otherwise the one with the least left per second. Malformed values are ignored.
 * These values are bounds: they can only slow the client down.
 */
#ifndef WR_CORE_WEB_HTTP_SERVER_LIMITS_H
#define WR_CORE_WEB_HTTP_SERVER_LIMITS_H

#include "base/span.h"

#include <stdint.h>
#include <weir/handler.h>

#define WR_SERVER_LIMITS_MAX_NS (31 * WEIR_DAY) /* longer times become this; quotas last at most a month */
#define WR_SERVER_QUOTAS_MAX 16                 /* further quotas of a response are ignored */
#define WR_NOT_REPORTED INT64_C(-1)
#define WR_NO_LIMITS_REPORTED                                              \
    {                                                                      \
        WR_NOT_REPORTED, WR_NOT_REPORTED, WR_NOT_REPORTED, WR_NOT_REPORTED \
    } /* initializer of a weir_server_limits */

/* A time as reported; the latest of several. */
struct wr_server_limit_time {
    int64_t after_ns; /* duration from now, ns; or WR_NOT_REPORTED */
    int64_t at_ms;    /* instant of the server's clock, ms since 1970; INT64_MIN: not reported */
};

enum wr_server_quota_unit {
    WR_UNIT_REQUESTS,
    WR_UNIT_OTHER,   /* tokens or bytes: tells about requests only once it is used up */
    WR_UNIT_AT_ONCE, /* requests in flight: not a quota per time */
};

struct wr_server_quota {
    uint64_t name; /* hash; a server that makes its own names collide only harms itself */
    int64_t limit, remaining;
    struct wr_server_limit_time reset;
    enum wr_server_quota_unit unit;
};

struct wr_server_limits {
    int64_t now_ms;
    int64_t date_ms; /* value of the Date field, ms since 1970; INT64_MIN: absent */
    struct wr_server_limit_time retry;
    struct wr_server_quota quotas[WR_SERVER_QUOTAS_MAX];
    uint32_t count;
};

/* Initializes the state. `wall_now_ns` is not negative. */
void wr_server_limits_init(struct wr_server_limits *ret_limits, int64_t wall_now_ns);

/* Reads one field. Fields that report no limits are ignored. */
void wr_server_limits_field(struct wr_server_limits *limits, struct wr_span name, struct wr_span value);

/* Returns the tightest limits. Durations are 0 to WR_SERVER_LIMITS_MAX_NS, or WR_NOT_REPORTED. */
weir_server_limits wr_server_limits_result(const struct wr_server_limits *limits);

/* Stores the limits in an outcome, with times reduced by `elapsed_ns`. A time above 0 stays at
 * least 1 ns, so that it still counts as reported. */
void wr_server_limits_to_outcome(const weir_server_limits *said, int64_t elapsed_ns, weir_outcome *outcome);

#endif
