/* SPDX-License-Identifier: MIT */
/* hosts.c - the hosts of the demo web and their sizes, so that a polite crawl takes about a
 * minute. */
#include "demo/hosts.h"

#define MS WEIR_MILLISECOND
#define S WEIR_SECOND
#define LATENCY(ms)                    \
    {                                  \
        .mean_ns = (ms)*MS, .sigma = 0 \
    }
#define BUCKET(tokens, capacity)                                               \
    {                                                                          \
        .kind = WR_LIMITER_TOKEN_BUCKET, .rate = (tokens), .burst = (capacity) \
    }

static const struct host_kind full[] = {
    {"fast", "no limit", 0, {.service = LATENCY(10)}, .pages = 600},
    {"slow", "no limit, 300 ms per answer", 0, {.service = LATENCY(300)}, .pages = 150},
    {"delay", "Crawl-delay 2", 0.5, {.service = LATENCY(10)}, .pages = 25, .crawl_delay_s = 2},
    {"bucket",
     "5/s, bursts of 5, says Retry-After",
     5,
     {.service = LATENCY(20), .limiter = BUCKET(5, 5), .reject = {.status = 429, .retry_after = true}},
     .pages = 200},
    {"silent",
     "5/s, bursts of 5, says nothing",
     5,
     {.service = LATENCY(20), .limiter = BUCKET(5, 5), .reject.status = 429},
     .pages = 150},
    {"quota",
     "40 per 10 s, RateLimit fields",
     4,
     {.service = LATENCY(20),
      .limiter = {.kind = WR_LIMITER_FIXED_WINDOW, .quota = 40, .window_ns = 10 * S},
      .reject = {.status = 429, .headers = true}},
     .pages = 160},
    {"ban",
     "20 per 4 s, else banned",
     5,
     {.service = LATENCY(20),
      .limiter = {.kind = WR_LIMITER_SLIDING_BAN, .quota = 20, .window_ns = 4 * S, .ban_ns = 6 * S, .status = 429}},
     .pages = 120},
    {"flaky", "no limit, 5 % fail", 0, {.service = LATENCY(30), .errors.p500 = 0.03}, .pages = 200, .reset_every = 50},
    {"outage",
     "no limit, once down for a while",
     0,
     {.service = LATENCY(20)},
     .pages = 150,
     .outage_after = 60,
     .outage_ns = 8 * S},
    {"mute", "no limit, robots.txt down at first", 0, {.service = LATENCY(20)}, .pages = 100, .robots_down_ns = 6 * S},
    {"maze", "redirects, some in circles", 0, {.service = LATENCY(10)}, .shape = SHAPE_MAZE},
    {"trap", "pages without end", 0, {.service = LATENCY(10)}, .shape = SHAPE_TRAP},
    {"huge", "a page of 50 MB", 0, {.service = LATENCY(10)}, .shape = SHAPE_HUGE, .pages = 10},
};
#define KINDS (sizeof full / sizeof *full)

/* Makes the short version of a host: fewer pages and shorter times. */
static void shorten(struct host_kind *kind)
{
    kind->pages = kind->crawl_delay_s > 0 ? 5 : kind->pages / 5;
    kind->origin.limiter.ban_ns /= 4;
    kind->outage_after /= 5;
    kind->outage_ns /= 4;
    kind->robots_down_ns /= 6;
}

const struct host_kind *host_kind_at(size_t index, bool is_short)
{
    static struct host_kind small[KINDS];
    if (index >= KINDS)
        return NULL;
    if (!is_short)
        return &full[index];
    small[index] = full[index];
    shorten(&small[index]);
    return &small[index];
}
