/* SPDX-License-Identifier: MIT */
/* limits.h - what a response says about its server's limits, whichever of the many ways it says it.
 *
 *     struct wr_limits limits;
 *     wr_limits_init(&limits, wall_now_ns);
 *     wr_limits_field(&limits, name, value);           for each field of the response, in any order
 *     weir_said said = wr_limits_result(&limits);
 *
 * Read are, in any case of letters:
 *
 * Retry-After: seconds or a date; and retry-after-ms, x-ms-retry-after-ms, x-ratelimit-retry-after.
 *
 * RateLimit: "name";r=50;t=30, … (draft-ietf-httpapi-ratelimit-headers-10), or limit=100, remaining=50, reset=30 (-07).
 *
 * RateLimit-Policy, X-RateLimit-Policy: "name";q=100;w=60, … or 100;w=60.
 *
 * RateLimit-Limit, -Remaining, -Reset; X-RateLimit-*, X-Rate-Limit-*, VENDOR-RateLimit-*; with words that tell several
 * quotas apart in front or behind: -Limit-Requests, -Requests-Limit, -Remaining-Minute.
 *
 * Date: by it instants of the server's clock become durations, however wrong that clock is.
 *
 * A reset is a number of seconds from now, an instant in seconds or in milliseconds since 1970, a date (HTTP or ISO),
 * or a duration such as 6m0s. docs/internals/headers.md lists who sends what.
 *
 * Where several quotas are told, the tightest counts, as a whole: one that is used up, for the longest time; else the
 * one with the least left per second. What is malformed counts as not said. Nothing here can make anybody faster: these
 * are bounds.
 */
#ifndef WR_CORE_RULES_HTTP_LIMITS_H
#define WR_CORE_RULES_HTTP_LIMITS_H

#include "base/span.h"

#include <stdint.h>
#include <weir/handler.h>

#define WR_LIMITS_MAX_NS (31 * WEIR_DAY) /* longer is taken as this: no quota is counted by more than a month */
#define WR_LIMITS_QUOTAS_MAX 16          /* further ones of a response are ignored */
#define WR_NOT_SAID INT64_C(-1)
#define WR_NOTHING_SAID                                    \
    {                                                      \
        WR_NOT_SAID, WR_NOT_SAID, WR_NOT_SAID, WR_NOT_SAID \
    } /* a weir_said */

/* A time as it was told; of several the latest. */
struct wr_limits_time {
    int64_t after_ns; /* WR_NOT_SAID */
    int64_t at_ms;    /* by the server's clock, since 1970; INT64_MIN: not said */
};

enum wr_limits_unit {
    WR_UNIT_REQUESTS,
    WR_UNIT_OTHER,   /* tokens, bytes: says something about requests only once it is used up */
    WR_UNIT_AT_ONCE, /* requests in flight: no quota per time */
};

struct wr_limits_quota {
    uint64_t name; /* a hash: who makes two of his own names collide deceives himself */
    int64_t limit, remaining;
    struct wr_limits_time reset;
    enum wr_limits_unit unit;
};

struct wr_limits {
    int64_t now_ms;
    int64_t date_ms; /* of the Date field; INT64_MIN: none */
    struct wr_limits_time retry;
    struct wr_limits_quota quotas[WR_LIMITS_QUOTAS_MAX];
    uint32_t count;
};

/* `wall_now_ns` is not negative. */
void wr_limits_init(struct wr_limits *ret_limits, int64_t wall_now_ns);

/* One field; one that says nothing of limits is ignored. */
void wr_limits_field(struct wr_limits *limits, struct wr_span name, struct wr_span value);

/* Its durations are 0 … WR_LIMITS_MAX_NS, if they are said. */
weir_said wr_limits_result(const struct wr_limits *limits);

/* Puts it into an outcome: of the times that were named, what is left `elapsed_ns` later. They stay named. */
void wr_limits_tell(const weir_said *said, int64_t elapsed_ns, weir_outcome *outcome);

#endif
