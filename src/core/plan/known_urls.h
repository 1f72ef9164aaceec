/* SPDX-License-Identifier: MIT */
/* known_urls.h - the set of URLs that were seen: open-addressed 64-bit fingerprints; it grows only
 * when asked to.
 *
 * After it has grown, each addition moves a few keys from the old slots to the new ones. Moving
 * millions at once would hold up all hosts.
 *
 * Two URLs share a fingerprint with probability n²/2^65: one in 370 000 for ten million.
 */
#ifndef WR_CORE_PLAN_KNOWN_URLS_H
#define WR_CORE_PLAN_KNOWN_URLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/memory.h>

struct wr_known_urls {
    const weir_allocator *allocator;
    uint64_t *slots; /* open-addressed fingerprints; 0: free slot */
    size_t room;     /* number of current slots, a power of two */
    uint64_t *old;   /* half as many slots, while the set grows; NULL: all are moved */
    size_t moved;    /* number of old slots that are already moved */
    size_t count;
    size_t max;      /* maximum number of slots */
    bool incomplete; /* the store has URLs that are not in the set */
};

/* Makes a set of at most `max` slots, rounded up to a power of two. Returns 0 or WEIR_E_NOMEM. */
int wr_known_urls_init(struct wr_known_urls *ret_known, const weir_allocator *allocator, size_t max);
void wr_known_urls_release(struct wr_known_urls *known);

/* Flag in a job id: the URL was refused although it is in the store. */
#define WR_KNOWN_REFUSED (UINT32_C(1) << 31)

/* Prefetches the memory that wr_known_urls_has will read. */
void wr_known_urls_prefetch(const struct wr_known_urls *known, uint32_t job, uint64_t fingerprint);
bool wr_known_urls_has(const struct wr_known_urls *known, uint32_t job, uint64_t fingerprint);
/* Adds a URL; without room, the set becomes incomplete instead. */
void wr_known_urls_add(struct wr_known_urls *known, uint32_t job, uint64_t fingerprint);

size_t wr_known_urls_bytes(const struct wr_known_urls *known);

/* Returns true if the set is half full and may still grow. */
bool wr_known_urls_is_crowded(const struct wr_known_urls *known);
/* Doubles the set. WEIR_E_FULL and WEIR_E_NOMEM leave it unchanged. */
int wr_known_urls_grow(struct wr_known_urls *known);

#endif
