/* SPDX-License-Identifier: MIT */
/* grace.h - waits until no thread uses a replaced object (epoch-based reclamation).
 *
 *     pass = wr_grace_enter(&grace);             reader: two additions, no lock, never waits
 *     edition = atomic_load(&current);
 *     ...
 *     wr_grace_leave(pass);
 *
 *     old = atomic_exchange(&current, new);      writer; only one at a time
 *     wr_grace_wait(&grace);
 *     free(old);
 *
 * Readers count themselves in and out, in one of two epochs. The counters are spread over several
 * cache lines, so that threads rarely share one. A writer directs new readers to the other epoch
 * and waits until the present one is empty, and then does the same once more. Every reader of the
 * old pointer is in one of the two epochs, and new readers cannot prolong the wait.
 */
#ifndef WR_SHELL_RULEBOOK_GRACE_H
#define WR_SHELL_RULEBOOK_GRACE_H

#include "base/bits.h"

#include <stdatomic.h>
#include <stdint.h>

#define WR_GRACE_STRIPES 16

struct wr_grace {
    atomic_uint turn;
    struct wr_grace_stripe {
        _Alignas(WR_CACHE_LINE) _Atomic uint64_t inside[2];
    } stripes[WR_GRACE_STRIPES];
};

struct wr_grace_pass {
    _Atomic uint64_t *inside;
};

/* Returns the number of the calling thread, counted from 0. */
unsigned wr_grace_thread(void);

static inline struct wr_grace_pass wr_grace_enter(struct wr_grace *grace)
{
    unsigned turn = atomic_load_explicit(&grace->turn, memory_order_relaxed) & 1;
    struct wr_grace_pass pass = {&grace->stripes[wr_grace_thread() % WR_GRACE_STRIPES].inside[turn]};
    /* The addition is sequentially consistent: other threads see it before the pointer is
     * loaded. */
    atomic_fetch_add(pass.inside, 1);
    return pass;
}

static inline void wr_grace_leave(struct wr_grace_pass pass)
{
    atomic_fetch_sub_explicit(pass.inside, 1, memory_order_release);
}

/* Waits until all readers that may have seen the old object have left. Must not be called by a
 * reader. */
void wr_grace_wait(struct wr_grace *grace);

#endif
