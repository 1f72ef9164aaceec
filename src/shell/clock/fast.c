/* SPDX-License-Identifier: MIT */
/* fast.c - the time-stamp counter as a clock.
 *
 * Each thread keeps an anchor: a counter value and the monotonic time that belongs to it.
 *
 *     monotonic  ──●───────────────────●──────────        ● anchor, at most 10 ms apart
 *     fast         └── ticks x rate ──▶└─ …                 in between: anchor + ticks x rate
 *
 * - The counter only ever bridges ANCHOR_NS, so a rate that is off by 500 ppm (the most that NTP slews) is off by 5 us,
 *   and a counter that jumps (a suspended or migrated machine) cannot carry the time with it.
 * - An anchor that would take the time back lets it stand still instead.
 * - An anchor that shows more than TRUST_NS of error ends the counter's use for good: the kernel's clock takes over.
 * Threads share nothing but the rate, which is measured once.
 *
 * Measured on an EPYC in a virtual machine: clock_gettime 24 ns and a fence, which lets no cache miss overlap the next
 * decision; this 12 ns and none.
 */
#include "shell/clock/clock.h"

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
    uint64_t ticks; /* counter value that belongs to `at`; an anchor of zeroes is always too old */
    int64_t at;
    int64_t last_at; /* the latest instant told */
};

static _Thread_local struct anchor mine __attribute__((tls_model("initial-exec")));

static struct {
    pthread_once_t once;
    uint64_t ns_per_tick;          /* 32.32 fixed point */
    _Atomic uint64_t anchor_ticks; /* how long an anchor holds; 0: not at all, the counter is not to be trusted */
} counter = {.once = PTHREAD_ONCE_INIT};

static int64_t ticks_to_ns(uint64_t ticks)
{
    return (int64_t)((ticks * counter.ns_per_tick) >> 32); /* 10 ms at up to 100 GHz fit */
}

/* Reads both clocks at one moment: the narrowest of a few tries, so that being preempted in between does not count. */
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
