/* SPDX-License-Identifier: MIT */
/* step.h - decides the next step of a page, without clock and network.
 *
 *     GET --> hit, bypass, dynamic, unknown, broken --> OVER
 *      |
 *      +----> miss, expired --> PROBE --> hit --> AGAIN --> OVER
 *                                ^  |
 *                                |  +--> anything else, or the third probe --> OVER
 *                                |  |
 *                                +--+--> miss, expired
 *
 * A page costs one request if the cache has it or never stores it. Otherwise it costs at most five:
 * a GET, three HEADs, each after half a second to a second, and a GET that shows what a visitor
 * gets. A page that the cache does not store is not requested twice.
 */
#ifndef WR_CLI_WARM_STEP_H
#define WR_CLI_WARM_STEP_H

#include <stdint.h>

#include "core/web/http/cache.h"

#define WR_WARM_PROBES_MAX 3
#define WR_WARM_JITTER_MIN_NS (500 * INT64_C(1000000))
#define WR_WARM_JITTER_MAX_NS (1000 * INT64_C(1000000))

enum wr_warm_step {
    WR_WARM_GET,
    WR_WARM_PROBE,     /* HEAD request after a pause */
    WR_WARM_FINAL_GET, /* final GET request */
    WR_WARM_DONE,
};

struct wr_warm_response {
    bool is_sound; /* a response with a status below 400 arrived */
    enum wr_cache_status cache;
    int64_t latency_ns; /* time to the first byte, ns */
};

/* Course of a page. All zero: no request was made yet. */
struct wr_warm_page_steps {
    enum wr_warm_step step;
    unsigned probes;
    bool is_sound; /* the first response had a status below 400 */
    /* Cache status of the first response, and the latest known one. */
    enum wr_cache_status before, after;
    int64_t before_ns, after_ns; /* time to the first byte, ns; after_ns is 0 without a final GET */
};

/* Notes the response to the current step and returns the next step. */
enum wr_warm_step wr_warm_next_step(struct wr_warm_page_steps *course, const struct wr_warm_response *answer);

/* Returns the pause before a probe, ns. `chance` is any 64 random bits. */
int64_t wr_warm_jitter(uint64_t chance);

/* Returns the time that the cache saves a visitor, ns; 0 if it is unknown or not positive. */
int64_t wr_warm_saved_ns(const struct wr_warm_page_steps *course);

#endif
