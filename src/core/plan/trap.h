/* SPDX-License-Identifier: MIT */
/* trap.h - detects endless sites: paths that repeat segments, and paths with ever new queries. */
#ifndef WR_CORE_PLAN_TRAP_H
#define WR_CORE_PLAN_TRAP_H

#include "base/hash.h"
#include "base/span.h"

#include <weir/memory.h>

/* Returns true if one to four path segments occur more than `most` times in a row: "/a/b/a/b/a/b/".
 * Checks the first 64 segments; a path with more counts as repeating. */
bool wr_path_repeats(struct wr_span path, uint32_t most);

/* Counts the queries of each path, in a table of fixed size. If many paths share slots, those with
 * the fewest are forgotten. So it errs on the side of fetching, and a trap stays known. */
struct wr_variants {
    const weir_allocator *allocator;
    uint64_t *slots; /* upper 48 bits: path; lower 16: queries. 0: free */
};

#define WR_VARIANT_SLOTS ((size_t)1 << 16) /* slots of the table, which takes 512 KiB */

/* Allocates the table. Returns 0 or WEIR_E_NOMEM. */
int wr_variants_init(struct wr_variants *ret_variants, const weir_allocator *allocator);
void wr_variants_release(struct wr_variants *variants);

/* Returns the number of queries. `path` is a hash of job, host and path. */
uint32_t wr_variants_of(const struct wr_variants *variants, uint64_t path);
/* Counts one more query of the path. */
void wr_variants_add(struct wr_variants *variants, uint64_t path);

#endif
