/* SPDX-License-Identifier: MIT */
/* lock.c - waits for a spin lock, whose holder may have lost its processor. */
#include "limiter/queue/lock.h"

#include <sched.h>
#include <stddef.h>
#include <time.h>

#define SPINS 64   /* attempts before yielding: a microsecond, longer than the lock is held */
#define YIELDS 256 /* yields before sleeping: a thread of higher priority may block the holder */
#define SLEEP_NS 50000

static void pause_processor(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

void wr_lock_relax(unsigned tries)
{
    if (tries < SPINS) {
        pause_processor();
    } else if (tries < SPINS + YIELDS) {
        (void)sched_yield();
    } else {
        struct timespec nap = {.tv_sec = 0, .tv_nsec = SLEEP_NS};
        (void)nanosleep(&nap, NULL);
    }
}

void wr_lock_wait(struct wr_lock *lock)
{
    for (unsigned tries = 0;; tries++) {
        if (atomic_load_explicit(&lock->taken, memory_order_relaxed) == 0 &&
            atomic_exchange_explicit(&lock->taken, 1, memory_order_acquire) == 0)
            return;
        wr_lock_relax(tries);
    }
}
