/* SPDX-License-Identifier: MIT */
/* ranges.h - finds an address in a list of many networks, by binary search. */
#ifndef WR_CORE_ADMIT_RANGES_H
#define WR_CORE_ADMIT_RANGES_H

#include "core/admit/network.h"

struct wr_range {
    uint8_t first[16], last[16];
};

/* Converts `count` networks to sorted ranges that do not overlap. The caller provides memory for
 * `count` ranges. Returns their number. */
size_t wr_ranges_make(const weir_network *networks, size_t count, struct wr_range *ret_ranges);

bool wr_ranges_hold(const struct wr_range *ranges, size_t count, const struct wr_address *address);

#endif
