/* SPDX-License-Identifier: MIT */
/* ranges.c - finds an address in a list of many networks. */
#include "core/admit/ranges.h"

static struct wr_range range_of(const weir_network *network)
{
    struct wr_range range;

    for (unsigned i = 0; i < 16; i++) {
        unsigned bits = network->prefix <= i * 8 ? 0 : network->prefix - i * 8 >= 8 ? 8 : network->prefix - i * 8;
        uint8_t free_bits = (uint8_t)(0xff >> bits);
        range.first[i] = (uint8_t)(network->address[i] & ~free_bits);
        range.last[i] = network->address[i] | free_bits;
    }
    return range;
}

/* Sorts by first address. An insertion sort suffices: lists have a few hundred entries, and are
 * read with the rules. */
static void sort_ranges(struct wr_range *ranges, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct wr_range range = ranges[i];
        size_t at = i;
        for (; at > 0 && memcmp(range.first, ranges[at - 1].first, 16) < 0; at--)
            ranges[at] = ranges[at - 1];
        ranges[at] = range;
    }
}

size_t wr_ranges_make(const weir_network *networks, size_t count, struct wr_range *ret_ranges)
{
    size_t made = 0;

    for (size_t i = 0; i < count; i++)
        ret_ranges[i] = range_of(&networks[i]);
    sort_ranges(ret_ranges, count);
    for (size_t i = 0; i < count; i++) {
        /* If two networks overlap, one contains the other; those with the same first address come
         * in any order. */
        if (made > 0 && memcmp(ret_ranges[i].first, ret_ranges[made - 1].last, 16) <= 0) {
            if (memcmp(ret_ranges[i].last, ret_ranges[made - 1].last, 16) > 0)
                memcpy(ret_ranges[made - 1].last, ret_ranges[i].last, 16);
        } else {
            ret_ranges[made++] = ret_ranges[i];
        }
    }
    return made;
}

bool wr_ranges_hold(const struct wr_range *ranges, size_t count, const struct wr_address *address)
{
    size_t low = 0;

    while (low < count) {
        size_t middle = low + (count - low) / 2;
        if (memcmp(address->bytes, ranges[middle].first, 16) < 0)
            count = middle;
        else if (memcmp(address->bytes, ranges[middle].last, 16) > 0)
            low = middle + 1;
        else
            return true;
    }
    return false;
}
