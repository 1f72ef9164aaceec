/* SPDX-License-Identifier: MIT */
/* step.h - what comes next for one page that is warmed: no clock, no wire.
 *
 *     GET ──▶ hit, bypass, dynamic, unknown, broken ──▶ over
 *      └────▶ miss, expired ──▶ PROBE ──▶ hit ──▶ AGAIN ──▶ over
 *                               ▲   ├───▶ miss, expired: three in all
 *                               └───┘
 *                                   └───▶ anything else ──▶ over
 *
 * A page costs one request if the cache has it or never will, and at most five: GET, three HEADs with half a second to
 * a second before each, and a GET that shows what a visitor gets. What the cache is told to pass by is not asked for
 * twice.
 */
#ifndef WR_CLI_WARM_STEP_H
#define WR_CLI_WARM_STEP_H

#include <stdint.h>

#include "core/rules/http/cache.h"

#define WR_WARM_PROBES_MAX 3
#define WR_WARM_JITTER_MIN_NS (500 * INT64_C(1000000))
#define WR_WARM_JITTER_MAX_NS (1000 * INT64_C(1000000))

enum wr_warm_step {
    WR_WARM_GET,
    WR_WARM_PROBE, /* HEAD, after a while */
    WR_WARM_AGAIN, /* GET once more */
    WR_WARM_OVER,
};

struct wr_warm_answer {
    bool is_sound; /* it came, and with a status below 400 */
    enum wr_cache_status cache;
    int64_t latency_ns; /* to the first byte */
};

/* All zero: nothing was asked yet. */
struct wr_warm_course {
    enum wr_warm_step step;
    unsigned probes;
    bool is_sound;                      /* the first answer was */
    enum wr_cache_status before, after; /* `after`: what is known last */
    int64_t before_ns, after_ns;        /* to the first byte; after_ns 0: it was not asked for again */
};

/* Notes the answer to the step, and returns the next. */
enum wr_warm_step wr_warm_next(struct wr_warm_course *course, const struct wr_warm_answer *answer);

/* How long to wait before a probe; `chance` is any 64 bits. */
int64_t wr_warm_jitter(uint64_t chance);

/* What the cache saves a visitor; 0 if that is not known, or nothing. */
int64_t wr_warm_saved_ns(const struct wr_warm_course *course);

#endif
