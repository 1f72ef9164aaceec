/* SPDX-License-Identifier: MIT */
/* grace.c - waits until no thread uses a replaced object. */
#include "shell/rulebook/grace.h"

#include "shell/line/lock.h"

#include <stdbool.h>

unsigned wr_grace_thread(void)
{
    static atomic_uint threads;
    static _Thread_local unsigned own; /* number of this thread plus 1; 0: not assigned */

    if (own == 0)
        own = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) + 1;
    return own - 1;
}

static bool is_empty(struct wr_grace *grace, unsigned turn)
{
    for (unsigned i = 0; i < WR_GRACE_STRIPES; i++) {
        if (atomic_load(&grace->stripes[i].inside[turn]) != 0)
            return false;
    }
    return true;
}

void wr_grace_wait(struct wr_grace *grace)
{
    for (int round = 0; round < 2; round++) {
        unsigned turn = atomic_fetch_xor(&grace->turn, 1) & 1;
        for (unsigned tries = 0; !is_empty(grace, turn); tries++)
            wr_lock_relax(tries);
    }
}
