/* SPDX-License-Identifier: MIT */
/* lock.h - a lock for tens of nanoseconds of work.
 *
 * Four bytes, one locked instruction to take it and a plain store to give it back: half of what a mutex costs. Whoever
 * finds it taken spins for a moment and then lets other threads run, so a holder that lost its processor gets it back.
 * Nothing that can block or call out may run under it.
 */
#ifndef WR_SHELL_LINE_LOCK_H
#define WR_SHELL_LINE_LOCK_H

#include <assert.h>
#include <stdatomic.h>

struct wr_lock {
    atomic_int taken;
};

/* The slow path of wr_lock_take. */
void wr_lock_wait(struct wr_lock *lock);

static inline void wr_lock_take(struct wr_lock *lock)
{
    if (atomic_exchange_explicit(&lock->taken, 1, memory_order_acquire) != 0)
        wr_lock_wait(lock);
}

static inline void wr_lock_give(struct wr_lock *lock)
{
    assert(atomic_load_explicit(&lock->taken, memory_order_relaxed) != 0);
    atomic_store_explicit(&lock->taken, 0, memory_order_release);
}

/* Lets another thread run; sleeps once `tries` shows that yielding does not help. */
void wr_lock_relax(unsigned tries);

#endif
