/* SPDX-License-Identifier: MIT */
/* known.h - which URLs were seen: a set of 64-bit fingerprints, open-addressed, that grows only when told to.
 *
 * It moves from the old slots to the new ones bit by bit, with what is added: millions at once would hold up all hosts.
 *
 * Two URLs share a fingerprint with probability n²/2^65: one in 370 000 for ten million.
 */
#ifndef WR_CORE_PLAN_KNOWN_H
#define WR_CORE_PLAN_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/memory.h>

struct wr_known {
    const weir_allocator *allocator;
    uint64_t *slots; /* 0: free */
    size_t room;     /* a power of two */
    uint64_t *old;   /* half as many, while it grows; NULL: all are moved */
    size_t moved;    /* of the old slots */
    size_t count;
    size_t max;      /* most slots */
    bool incomplete; /* there are others that are not in it */
};

/* At most `max` fingerprints, rounded up to a power of two. WEIR_E_NOMEM. */
int wr_known_init(struct wr_known *ret_known, const weir_allocator *allocator, size_t max);
void wr_known_release(struct wr_known *known);

#define WR_KNOWN_REFUSED (UINT32_C(1) << 31) /* with a job: refused although it is in the store */

/* It will be asked for: has the memory fetched. */
void wr_known_expect(const struct wr_known *known, uint32_t job, uint64_t fingerprint);
bool wr_known_has(const struct wr_known *known, uint32_t job, uint64_t fingerprint);
/* Where there is no room, it becomes incomplete. */
void wr_known_add(struct wr_known *known, uint32_t job, uint64_t fingerprint);

size_t wr_known_bytes(const struct wr_known *known);

/* Half full, and may still grow. */
bool wr_known_is_crowded(const struct wr_known *known);
/* Twice as large. WEIR_E_FULL, WEIR_E_NOMEM: as it was. */
int wr_known_grow(struct wr_known *known);

#endif
