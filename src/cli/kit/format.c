/* SPDX-License-Identifier: MIT */
/* format.c - formats numbers for people. */
#include "cli/kit/format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <weir/time.h>

static void format_pair(int64_t large, const char *large_unit, int64_t small, const char *small_unit, char *ret_text,
                        size_t room)
{
    (void)snprintf(ret_text, room, "%" PRId64 "%s %02" PRId64 "%s", large, large_unit, small, small_unit);
}

void wr_format_duration(int64_t duration_ns, char *ret_text, size_t room)
{
    int64_t seconds = duration_ns / WEIR_SECOND;
    if (duration_ns > 0 && duration_ns < WEIR_MILLISECOND)
        (void)snprintf(ret_text, room, "%" PRId64 " us", duration_ns / WEIR_MICROSECOND);
    else if (duration_ns < WEIR_SECOND)
        (void)snprintf(ret_text, room, "%" PRId64 " ms", duration_ns / WEIR_MILLISECOND);
    else if (seconds < 100)
        (void)snprintf(ret_text, room, "%.1f s", (double)duration_ns / 1e9);
    else if (seconds < 3600)
        format_pair(seconds / 60, "m", seconds % 60, "s", ret_text, room);
    else if (seconds < 86400)
        format_pair(seconds / 3600, "h", seconds / 60 % 60, "m", ret_text, room);
    else
        format_pair(seconds / 86400, "d", seconds / 3600 % 24, "h", ret_text, room);
}

void wr_format_bytes(uint64_t bytes, char *ret_text, size_t room)
{
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    double amount = (double)bytes / 1000;
    size_t unit = 0;
    if (bytes < 1000) {
        (void)snprintf(ret_text, room, "%" PRIu64 " B", bytes);
        return;
    }
    for (; amount >= 999.95 && unit + 1 < sizeof units / sizeof units[0]; unit++)
        amount /= 1000;
    (void)snprintf(ret_text, room, "%.1f %s", amount, units[unit]);
}

const char *wr_plural_ending(uint64_t count)
{
    return count == 1 ? "" : "s";
}

void wr_format_rate(double rate, char *ret_text, size_t room)
{
    if (isinf(rate))
        (void)snprintf(ret_text, room, "any");
    else if (!(rate > 0))
        (void)snprintf(ret_text, room, "-");
    else
        (void)snprintf(ret_text, room, rate < 0.995 ? "%.2f/s" : "%.1f/s", rate);
}
