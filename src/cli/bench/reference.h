/* SPDX-License-Identifier: MIT */
/* reference.h - the page that the benchmarks scan: 12 KB of typical web markup with 35 links, the
 * same in every run. */
#ifndef WR_CLI_BENCH_REFERENCE_H
#define WR_CLI_BENCH_REFERENCE_H

#include "base/rng.h"

#include <stddef.h>

#define WR_REFERENCE_BYTES_MAX ((size_t)16 * 1024)

struct wr_reference {
    struct wr_rng rng;
    size_t bytes;
    char text[WR_REFERENCE_BYTES_MAX];
};

void wr_reference_make(struct wr_reference *ret_page);

#endif
