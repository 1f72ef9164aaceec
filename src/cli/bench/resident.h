/* SPDX-License-Identifier: MIT */
/* resident.h - how much memory the process has. */
#ifndef WR_CLI_BENCH_RESIDENT_H
#define WR_CLI_BENCH_RESIDENT_H

#include <stddef.h>

/* Pages in memory now, in bytes; 0 if the system does not tell. */
size_t wr_resident_bytes(void);

#endif
