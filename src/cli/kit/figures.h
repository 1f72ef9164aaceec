/* SPDX-License-Identifier: MIT */
/* figures.h - numbers for people: rounded, and with a unit that fits. */
#ifndef WR_CLI_KIT_FIGURES_H
#define WR_CLI_KIT_FIGURES_H

#include <stddef.h>
#include <stdint.h>

/* "18 us", "850 ms", "12.3 s", "4m 05s", "3h 20m", "2d 04h". */
void wr_figure_duration(int64_t duration_ns, char *ret_text, size_t room);

/* "0 B", "12.3 kB", "1.2 GB". */
void wr_figure_bytes(uint64_t bytes, char *ret_text, size_t room);

/* "s", but for one. */
const char *wr_figure_s(uint64_t count);

/* "4.1/s", "0.05/s", "any", "-" for none. */
void wr_figure_rate(double rate, char *ret_text, size_t room);

#endif
