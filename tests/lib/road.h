/* SPDX-License-Identifier: MIT */
/* road.h - a bad road to a server: everything takes its time, and some of it never arrives.
 *
 *     struct road *road = road_new(origin_port(origin), &(struct road_options){.latency_ns = …, .lost = 0.5});
 *     … http://127.0.0.1:road_port(road)/ …
 *     road_free(road);
 *
 * It carries TCP's bytes, so what a network loses it has to show as TCP does: a piece comes late by one or more
 * retransmissions, or never, and then the connection is silent until somebody gives up. Each connection is a thread.
 */
#ifndef WEIR_TEST_ROAD_H
#define WEIR_TEST_ROAD_H

#include <stdint.h>

struct road_options {
    int64_t latency_ns;    /* of each piece, in each direction */
    double lost;           /* so many pieces are lost once, and are late by retransmit_ns; half of those again, … */
    int64_t retransmit_ns; /* 0: ten times the latency */
    double swallowed;      /* so many connections carry nothing any more from some piece on */
    uint64_t seed;         /* 0: 1 */
};

struct road;

struct road *road_new(int to_port, const struct road_options *options);
int road_port(const struct road *road);

/* Connections that were swallowed so far. */
int road_swallowed(struct road *road);

void road_free(struct road *road);

#endif
