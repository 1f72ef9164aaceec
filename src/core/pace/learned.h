/* SPDX-License-Identifier: MIT */
/* learned.h - The state of the strategy learned for one host: a delay that is learned from 429s.
 *
 *     429                                delay += delay_up_ns, at most max_delay_ns; wait that long
 *     probe_after good responses         probe: delay -= delay_down_ns, not below floor and base
 *     429 before as many more responses  probe failed: restore the delay before it as the floor
 *
 * The floor is the last safe delay, not the one that failed. A host may improve: the excess of
 * floor and delay over the base halves with every half_life_ns. The floor ages from the time when
 * it was found, the delay while no request is sent.
 */
#ifndef WR_CORE_PACE_LEARNED_H
#define WR_CORE_PACE_LEARNED_H

#include <stdint.h>

struct wr_learned {
    int64_t delay_ns;
    int64_t floor_ns;   /* last safe delay; 0 if unknown */
    int64_t floor_at;   /* time at which the floor was found */
    int64_t before_ns;  /* delay before the current probe; 0 without a probe */
    int64_t probed_at;  /* start of the current probe */
    int64_t next_at;    /* earliest time of the next start */
    uint32_t successes; /* successes in a row */
};

#endif
