/* SPDX-License-Identifier: MIT */
/* grace.h - waiting until nobody uses what was replaced.
 *
 *     pass = wr_grace_enter(&grace);             a reader: two additions, no lock, never waits
 *     edition = atomic_load(&current);
 *     …
 *     wr_grace_leave(pass);
 *
 *     old = atomic_exchange(&current, new);      the one that replaces; one at a time
 *     wr_grace_wait(&grace);
 *     free(old);
 *
 * Readers count themselves in and out, in one of several cache lines so that threads seldom meet, and in one of two
 * turns. To wait is to let newcomers take the other turn until nobody is left in this one, and then the same with the
 * other: whoever read the old pointer is in one of the two, and readers that keep coming cannot hold the wait up.
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

/* A number of the calling thread, from 0 on. */
unsigned wr_grace_thread(void);

static inline struct wr_grace_pass wr_grace_enter(struct wr_grace *grace)
{
    unsigned turn = atomic_load_explicit(&grace->turn, memory_order_relaxed) & 1;
    struct wr_grace_pass pass = {&grace->stripes[wr_grace_thread() % WR_GRACE_STRIPES].inside[turn]};
    atomic_fetch_add(pass.inside, 1); /* seen by all before the pointer is read */
    return pass;
}

static inline void wr_grace_leave(struct wr_grace_pass pass)
{
    atomic_fetch_sub_explicit(pass.inside, 1, memory_order_release);
}

/* Not from inside. */
void wr_grace_wait(struct wr_grace *grace);

#endif
