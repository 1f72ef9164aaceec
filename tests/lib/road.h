/* SPDX-License-Identifier: MIT */
/* road.h - a proxy that acts like a bad network to a server: every byte is delayed, and some never
 * arrive.
 *
 *     const struct road_options options = {.latency_ns = ..., .lost = 0.5};
 *     struct road *road = road_new(origin_port(origin), &options);
 *     ... http://127.0.0.1:road_port(road)/ ...
 *     road_free(road);
 *
 * The proxy moves the bytes of TCP, so it shows a loss as TCP does. Either a piece is late by one
 * or more retransmissions, or it never arrives and the connection is silent until one side gives
 * up. Each connection has a thread.
 */
#ifndef WEIR_TEST_ROAD_H
#define WEIR_TEST_ROAD_H

#include <stdint.h>

struct road_options {
    int64_t latency_ns; /* latency of each piece, in each direction */
    /* probability that a piece is lost and late by retransmit_ns; a further loss doubles the
     * delay */
    double lost;
    int64_t retransmit_ns; /* 0: ten times the latency */
    double swallowed;      /* share of the connections that stop carrying bytes at some piece */
    uint64_t seed;         /* 0: 1 */
};

struct road;

struct road *road_new(int to_port, const struct road_options *options);
int road_port(const struct road *road);

/* Returns the number of connections that were swallowed so far. */
int road_swallowed(struct road *road);

void road_free(struct road *road);

#endif
