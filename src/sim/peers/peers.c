/* SPDX-License-Identifier: MIT */
/* peers.c - Implements the functions that the comparison pacers share. */
#include "sim/peers/peers.h"

#include <math.h>

void wr_peer_sent(const weir_pace_options *options, void *state, const struct wr_pace_start *start, int64_t now)
{
    (void)options, (void)state, (void)start, (void)now;
}

const char *wr_peer_mode(const void *state)
{
    (void)state;
    return "peer";
}

struct wr_pace_bounds wr_peer_limit(double limit)
{
    return (struct wr_pace_bounds){
        .reason = WEIR_REASON_CONCURRENCY,
        .cap = limit < 1 ? 1 : (uint32_t)limit,
        .rate = (double)INFINITY,
    };
}
