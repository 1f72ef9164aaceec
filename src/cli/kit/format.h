/* SPDX-License-Identifier: MIT */
/* format.h - formats numbers for people: rounded, with a suitable unit. */
#ifndef WR_CLI_KIT_FORMAT_H
#define WR_CLI_KIT_FORMAT_H

#include <stddef.h>
#include <stdint.h>

/* Formats a duration, such as "18 us", "850 ms", "12.3 s", "4m 05s", "3h 20m" or "2d 04h". */
void wr_format_duration(int64_t duration_ns, char *ret_text, size_t room);

/* Formats a size, such as "0 B", "12.3 kB" or "1.2 GB". */
void wr_format_bytes(uint64_t bytes, char *ret_text, size_t room);

/* Returns the ending of a noun after a count: "" for 1, otherwise "s". */
const char *wr_plural_ending(uint64_t count);

/* Formats a rate per second, such as "4.1/s" or "0.05/s"; "any" for infinity, "-" for 0. */
void wr_format_rate(double rate, char *ret_text, size_t room);

#endif
