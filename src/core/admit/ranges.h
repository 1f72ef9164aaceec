/* SPDX-License-Identifier: MIT */
/* ranges.h - many networks at once: is this address in one of them? Found by halving, however many there are. */
#ifndef WR_CORE_ADMIT_RANGES_H
#define WR_CORE_ADMIT_RANGES_H

#include "core/admit/network.h"

struct wr_range {
    uint8_t first[16], last[16];
};

/* Makes ranges, in order and apart from each other, of `count` networks, in the caller's memory for as many. Returns
 * how many there are. */
size_t wr_ranges_make(const weir_network *networks, size_t count, struct wr_range *ret_ranges);

bool wr_ranges_hold(const struct wr_range *ranges, size_t count, const struct wr_address *address);

#endif
