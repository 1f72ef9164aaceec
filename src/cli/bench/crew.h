/* SPDX-License-Identifier: MIT */
/* crew.h - several threads that do the same work at the same time. */
#ifndef WR_CLI_BENCH_CREW_H
#define WR_CLI_BENCH_CREW_H

#include <stddef.h>
#include <stdint.h>

#define WR_CREW_MAX 1024 /* threads */

typedef void wr_crew_work(void *context, size_t thread);

/* Runs `work` on threads 0 … threads - 1, which start together. *ret_wall_ns is from the first start to the last end.
 * WEIR_E_SYSTEM: some thread could not be made, and nothing was run. */
int wr_crew_run(size_t threads, wr_crew_work *work, void *context, int64_t *ret_wall_ns);

#endif
