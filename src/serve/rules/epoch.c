/* SPDX-License-Identifier: MIT */
/* epoch.c - waits until no thread uses a replaced object. */
#include "serve/rules/epoch.h"

#include "limiter/queue/lock.h"

#include <stdbool.h>

unsigned wr_thread_number(void)
{
    static atomic_uint threads;
    static _Thread_local unsigned own; /* number of this thread plus 1; 0: not assigned */

    if (own == 0)
        own = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) + 1;
    return own - 1;
}

static bool epoch_is_empty(struct wr_epoch *epoch, unsigned parity)
{
    for (unsigned i = 0; i < WR_EPOCH_STRIPES; i++) {
        if (atomic_load(&epoch->stripes[i].inside[parity]) != 0)
            return false;
    }
    return true;
}

void wr_epoch_wait_for_readers(struct wr_epoch *epoch)
{
    for (int round = 0; round < 2; round++) {
        unsigned parity = atomic_fetch_xor(&epoch->parity, 1) & 1;
        for (unsigned tries = 0; !epoch_is_empty(epoch, parity); tries++)
            wr_lock_relax(tries);
    }
}
