/* SPDX-License-Identifier: MIT */
/* bench_page.h - the page that the benchmarks scan: 12 KB of typical web markup with 35 links, the
 * same in every run. */
#ifndef WR_CLI_BENCH_BENCH_PAGE_H
#define WR_CLI_BENCH_BENCH_PAGE_H

#include "base/rng.h"

#include <stddef.h>

#define WR_BENCH_PAGE_BYTES_MAX ((size_t)16 * 1024)

struct wr_bench_page {
    struct wr_rng rng;
    size_t bytes;
    char text[WR_BENCH_PAGE_BYTES_MAX];
};

void wr_bench_page_make(struct wr_bench_page *ret_page);

#endif
