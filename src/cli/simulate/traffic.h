/* SPDX-License-Identifier: MIT */
/* traffic.h - parses the times of requests from a text such as "100/s for 2s, pause 8s, 30 at
 * once". */
#ifndef WR_CLI_SIMULATE_TRAFFIC_H
#define WR_CLI_SIMULATE_TRAFFIC_H

#include <stddef.h>
#include <stdint.h>

#define WR_TRAFFIC_PARTS_MAX 32
#define WR_TRAFFIC_MAX 1000000 /* maximum number of requests */

/* A part with `count` requests in each `period_ns`, evenly spaced, the first at once. With period 0
 * all requests come at once. */
struct wr_traffic_part {
    uint32_t count;
    int64_t period_ns, duration_ns;
};

struct wr_traffic {
    struct wr_traffic_part parts[WR_TRAFFIC_PARTS_MAX];
    size_t part_count;
    size_t requests;
    int64_t duration_ns;
};

/* Parses the text. Returns WEIR_E_INVAL with a detail if it is invalid. */
int wr_traffic_parse(const char *text, struct wr_traffic *ret_traffic);

/* Sets the times of all requests, in ns from 0. `ret_at` must have room for traffic->requests. */
void wr_traffic_fill(const struct wr_traffic *traffic, int64_t *ret_at);

#endif
