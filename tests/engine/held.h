/* SPDX-License-Identifier: MIT */
/* held.h - a crawl on a clock that stands still until the test lets it run, and that is never ahead
 * of the real clock.
 *
 *     hold_clock();
 *     start_held(&rig);       instead of rig_start
 *     let_clock_run();        when the crawl is in the state that the test needs
 *     free_clock();           after rig_tear_down
 *
 * For one source file of a program that is linked with --wrap=weir_clock_monotonic.
 */
#ifndef WEIR_TEST_ENGINE_HELD_H
#define WEIR_TEST_ENGINE_HELD_H

#include "engine/rig.h"

#include <pthread.h>

static struct {
    weir_clock *clock;
    pthread_t thread;
    atomic_bool is_wanted; /* set while the engine that gets this clock is opened */
    atomic_bool runs, ends;
} held;

const weir_clock *__wrap_weir_clock_monotonic(void);
const weir_clock *__real_weir_clock_monotonic(void);

const weir_clock *__wrap_weir_clock_monotonic(void)
{
    return atomic_load(&held.is_wanted) ? held.clock : __real_weir_clock_monotonic();
}

static inline void *move_clock(void *unused)
{
    while (!atomic_load(&held.ends)) {
        sleep_ns(MS);
        if (atomic_load(&held.runs))
            (void)weir_clock_fake_advance(held.clock, MS);
    }
    return unused;
}

static inline void hold_clock(void)
{
    atomic_store(&held.runs, false);
    atomic_store(&held.ends, false);
    assert_int_equal(weir_clock_fake_new(monotonic(), NULL, &held.clock), 0);
    assert_int_equal(pthread_create(&held.thread, NULL, move_clock, NULL), 0);
}

static inline void free_clock(void)
{
    atomic_store(&held.ends, true);
    assert_int_equal(pthread_join(held.thread, NULL), 0);
    weir_clock_fake_free(held.clock);
}

/* Starts an engine that uses the held clock. */
static inline void start_held(struct crawl_fixture *rig)
{
    atomic_store(&held.is_wanted, true);
    rig_start(rig);
    atomic_store(&held.is_wanted, false);
}

static inline void let_clock_run(void)
{
    atomic_store(&held.runs, true);
}

#endif
