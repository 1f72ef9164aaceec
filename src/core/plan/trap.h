/* SPDX-License-Identifier: MIT */
/* trap.h - sites without end: paths that repeat themselves, and paths with ever new queries (A20). */
#ifndef WR_CORE_PLAN_TRAP_H
#define WR_CORE_PLAN_TRAP_H

#include "base/hash.h"
#include "base/span.h"

#include <weir/memory.h>

/* Whether one to four path segments come more than `most` times one after the other: "/a/b/a/b/a/b/a/b/". Only the
 * first 64 segments are looked at, and a path of more is one that repeats. */
bool wr_path_repeats(struct wr_span path, uint32_t most);

/* How many queries of one path were seen: a table of fixed size. Where many paths meet, those with the fewest are
 * forgotten, so that it errs on the side of fetching, and a trap stays known. */
struct wr_variants {
    const weir_allocator *allocator;
    uint64_t *slots; /* upper 48 bits: which path; lower 16: how many. 0: free */
};

#define WR_VARIANT_SLOTS ((size_t)1 << 16) /* 512 KiB */

/* WEIR_E_NOMEM. */
int wr_variants_init(struct wr_variants *ret_variants, const weir_allocator *allocator);
void wr_variants_release(struct wr_variants *variants);

/* `path` is a hash of job, host and path. */
uint32_t wr_variants_of(const struct wr_variants *variants, uint64_t path);
/* One more. */
void wr_variants_add(struct wr_variants *variants, uint64_t path);

#endif
