/* SPDX-License-Identifier: MIT */
/* lock.h - a spin lock for tens of nanoseconds of work.
 *
 * It has four bytes; taking it is one locked instruction, releasing it a plain store: half the cost
 * of a mutex. A waiting thread spins briefly and then yields, so that a preempted holder gets its
 * processor back. Code under the lock must not block and must not call callbacks. */
#ifndef WR_LIMITER_QUEUE_LOCK_H
#define WR_LIMITER_QUEUE_LOCK_H

#include <assert.h>
#include <stdatomic.h>

struct wr_lock {
    atomic_int taken;
};

/* Waits for a lock that is taken; the slow path of wr_lock_take. */
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

/* Pauses, yields or sleeps, depending on `tries`: longer the more attempts have failed. */
void wr_lock_relax(unsigned tries);

#endif
