/* SPDX-License-Identifier: MIT */
/* resident.h - reads the resident memory of the process. */
#ifndef WR_CLI_BENCH_RESIDENT_H
#define WR_CLI_BENCH_RESIDENT_H

#include <stddef.h>

/* Returns the resident memory of the process in bytes; 0 if the system does not report it. */
size_t wr_resident_bytes(void);

#endif
