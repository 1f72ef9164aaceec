/* SPDX-License-Identifier: MIT */
/* fast.c - uses the CPU's time-stamp counter as a clock.
 *
 * Each thread keeps an anchor: a counter value and the monotonic time that belongs to it.
 *
 *     monotonic  ──●───────────────────●──────────        ● anchor, at most 10 ms apart
 *     fast         └── ticks x rate ──▶└─ …                 in between: anchor + ticks x rate
 *
 * - The counter bridges at most ANCHOR_NS. If the rate is wrong by 500 ppm (the most that NTP
 *   slews), the time is wrong by 5 us. A counter that jumps (on a suspended or migrated machine)
 *   cannot move the time further.
 * - If a new anchor is earlier than the last time returned, the clock stands still until the anchor
 *   catches up.
 * - If a new anchor shows an error of more than TRUST_NS, the counter is never used again: the
 *   kernel's clock replaces it.
 *
 * Threads share only the rate, which is measured once.
 *
 * Measured on an EPYC in a virtual machine: clock_gettime takes 24 ns and contains a fence, which
 * keeps cache misses from overlapping with the next decision. This clock takes 12 ns and has no
 * fence.
 */
#include "limiter/clock/clock.h"

#include <stdatomic.h>
#include <stddef.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>

#define ANCHOR_NS (10 * WEIR_MILLISECOND)
#define TRUST_NS (50 * WEIR_MICROSECOND)
#define CALIBRATE_NS (2 * WEIR_MILLISECOND)
#define PAIR_TRIES 16

struct anchor {
    uint64_t ticks; /* counter value at the time `at`; 0 in a new thread, which is always too old */
    int64_t at;
    int64_t last_at; /* latest time that the clock returned, ns */
};

static _Thread_local struct anchor mine __attribute__((tls_model("initial-exec")));

static struct {
    pthread_once_t once;
    uint64_t ns_per_tick; /* ns per tick, 32.32 fixed point */
    /* ticks for which an anchor is valid; 0: the counter is not trusted */
    _Atomic uint64_t anchor_ticks;
} counter = {.once = PTHREAD_ONCE_INIT};

static int64_t ticks_to_ns(uint64_t ticks)
{
    /* no overflow: 10 ms fit at up to 100 GHz */
    return (int64_t)((ticks * counter.ns_per_tick) >> 32);
}

/* Reads both clocks together. Takes the fastest of a few attempts, so that a preemption between the
 * two reads does not count. */
static struct anchor read_pair(void)
{
    struct anchor best = {0};
    uint64_t narrowest = UINT64_MAX;
    for (int i = 0; i < PAIR_TRIES && narrowest > 256; i++) {
        uint64_t before = __rdtsc();
        int64_t at = wr_monotonic_now();
        uint64_t width = __rdtsc() - before;
        if (width < narrowest) {
            narrowest = width;
            best = (struct anchor){.ticks = before + width / 2, .at = at};
        }
    }
    return best;
}

static bool counter_is_invariant(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & 1u << 8) != 0;
}

static void calibrate(void)
{
    if (!counter_is_invariant())
        return;
    struct anchor first = read_pair(), second = first;
    while (second.at - first.at < CALIBRATE_NS)
        second = read_pair();
    uint64_t ticks = second.ticks - first.ticks;
    if (ticks >> 31 != 0 || ticks == 0)
        return;
    uint64_t passed_ns = (uint64_t)(second.at - first.at);
    counter.ns_per_tick = (passed_ns << 32) / ticks;
    atomic_store_explicit(&counter.anchor_ticks, ticks * (uint64_t)ANCHOR_NS / passed_ns, memory_order_relaxed);
}

static __attribute__((noinline)) int64_t drop_anchor(void)
{
    struct anchor fresh = read_pair();
    uint64_t age = fresh.ticks - mine.ticks;
    if (mine.ticks != 0 && age < 2 * atomic_load_explicit(&counter.anchor_ticks, memory_order_relaxed)) {
        int64_t error_ns = mine.at + ticks_to_ns(age) - fresh.at;
        if (error_ns > TRUST_NS || error_ns < -TRUST_NS)
            atomic_store_explicit(&counter.anchor_ticks, 0, memory_order_relaxed);
    }
    fresh.last_at = fresh.at > mine.last_at ? fresh.at : mine.last_at;
    mine = fresh;
    return mine.last_at;
}

static int64_t fast_now(const weir_clock *clock)
{
    (void)clock;
    uint64_t ticks = __rdtsc() - mine.ticks;
    if (__builtin_expect(ticks >= atomic_load_explicit(&counter.anchor_ticks, memory_order_relaxed), 0))
        return drop_anchor();
    int64_t now = mine.at + ticks_to_ns(ticks);
    mine.last_at = now > mine.last_at ? now : mine.last_at;
    return mine.last_at;
}

const weir_clock *weir_clock_fast(void)
{
    static const weir_clock fast = {fast_now, wr_monotonic_wait};
    (void)pthread_once(&counter.once, calibrate);
    return atomic_load_explicit(&counter.anchor_ticks, memory_order_relaxed) != 0 ? &fast : weir_clock_monotonic();
}

#else

const weir_clock *weir_clock_fast(void)
{
    return weir_clock_monotonic();
}

#endif
