/* SPDX-License-Identifier: MIT */
/* threads.h - runs the same work on several threads at the same time. */
#ifndef WR_CLI_BENCH_THREADS_H
#define WR_CLI_BENCH_THREADS_H

#include <stddef.h>
#include <stdint.h>

#define WR_BENCH_THREADS_MAX 1024 /* maximum number of threads */

typedef void wr_bench_thread_work(void *context, size_t thread);

/* Runs `work` on threads 0 ... threads - 1, which start together. Sets *ret_wall_ns to the time
 * from the first start to the last end. Returns WEIR_E_SYSTEM, without running any work, if a
 * thread could not be created. */
int wr_bench_threads_run(size_t threads, wr_bench_thread_work *work, void *context, int64_t *ret_wall_ns);

#endif
