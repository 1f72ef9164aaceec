/* SPDX-License-Identifier: MIT */
/* epoch.h - waits until no thread uses a replaced object (epoch-based reclamation).
 *
 *     pass = wr_epoch_enter(&epoch);             reader: two additions, no lock, never waits
 *     snapshot = atomic_load(&current);
 *     ...
 *     wr_epoch_leave(pass);
 *
 *     old = atomic_exchange(&current, new);      writer; only one at a time
 *     wr_epoch_wait_for_readers(&epoch);
 *     free(old);
 *
 * Readers count themselves in and out, in one of two epochs. The counters are spread over several
 * cache lines, so that threads rarely share one. A writer directs new readers to the other epoch
 * and waits until the present one is empty, and then does the same once more. Every reader of the
 * old pointer is in one of the two epochs, and new readers cannot prolong the wait.
 */
#ifndef WR_SERVE_RULES_EPOCH_H
#define WR_SERVE_RULES_EPOCH_H

#include "base/bits.h"

#include <stdatomic.h>
#include <stdint.h>

#define WR_EPOCH_STRIPES 16

struct wr_epoch {
    atomic_uint parity;
    struct wr_epoch_stripe {
        _Alignas(WR_CACHE_LINE) _Atomic uint64_t inside[2];
    } stripes[WR_EPOCH_STRIPES];
};

struct wr_epoch_guard {
    _Atomic uint64_t *inside;
};

/* Returns the number of the calling thread, counted from 0. */
unsigned wr_thread_number(void);

static inline struct wr_epoch_guard wr_epoch_enter(struct wr_epoch *epoch)
{
    unsigned parity = atomic_load_explicit(&epoch->parity, memory_order_relaxed) & 1;
    struct wr_epoch_guard pass = {&epoch->stripes[wr_thread_number() % WR_EPOCH_STRIPES].inside[parity]};
    /* The addition is sequentially consistent: other threads see it before the pointer is
     * loaded. */
    atomic_fetch_add(pass.inside, 1);
    return pass;
}

static inline void wr_epoch_leave(struct wr_epoch_guard pass)
{
    atomic_fetch_sub_explicit(pass.inside, 1, memory_order_release);
}

/* Waits until all readers that may have seen the old object have left. Must not be called by a
 * reader. */
void wr_epoch_wait_for_readers(struct wr_epoch *epoch);

#endif
