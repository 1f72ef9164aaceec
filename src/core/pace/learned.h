/* SPDX-License-Identifier: MIT */
/* learned.h - a delay between starts that is learned from 429s: what it keeps of a host.
 *
 *     429                             delay += delay_up_ns, at most max_delay_ns, and wait that long      S2-2, S2-27
 *     probe_after good ones in a row  probe: delay -= delay_down_ns, but not below floor and base         S2-3, S2-5
 *     429 before as many again        the probe failed: back to the delay before it, which is the floor   S2-4
 *
 * The floor is the last delay that was safe, not the one that failed. A host may get better: what floor and delay are
 * above the base halves with every half_life_ns, the floor's since it was found and the delay's while nothing is asked.
 */
#ifndef WR_CORE_PACE_LEARNED_H
#define WR_CORE_PACE_LEARNED_H

#include <stdint.h>

struct wr_learned {
    int64_t delay_ns;
    int64_t floor_ns;   /* 0: none found */
    int64_t floor_at;   /* when it was found */
    int64_t before_ns;  /* the delay before the probe that is on trial; 0: none is */
    int64_t probed_at;  /* when that began */
    int64_t next_at;    /* of the next start */
    uint32_t successes; /* in a row */
};

#endif
