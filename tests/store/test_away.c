/* SPDX-License-Identifier: MIT */
/* test_away.c - an unreachable database is retried at growing intervals, on a fake clock. G2,
 * T17. */
#include "crawl/store/store_state.h"
#include "lib/worker.h"
#include "store/rig.h"

/* ---- a backend that is unreachable on demand ------------------------------------------------- */

static struct {
    struct wr_backend_kind kind;
    const struct wr_backend_kind *real;
    atomic_bool is_away;
    atomic_int begins;
} road;

static int begin(struct wr_backend *backend, int64_t wall_now)
{
    bool is_away = atomic_load(&road.is_away);
    int error = is_away ? WEIR_E_TIMEOUT : road.real->begin(backend, wall_now);
    atomic_fetch_add(&road.begins, 1);
    return error;
}

static void undo(struct wr_backend *backend)
{
    if (!atomic_load(&road.is_away))
        road.real->undo(backend);
}

static weir_clock *open_behind_road(struct store_fixture *rig)
{
    weir_clock *clock;
    assert_int_equal(weir_clock_fake_new(WEIR_DAY, NULL, &clock), 0);
    rig_set_up(rig, &rig_backends[0]);
    rig->options.clock = clock;
    rig->options.check_ns = -1;
    rig_open(rig);
    test_await_waiters(clock, 1);
    (void)pthread_mutex_lock(&rig->store->lock);
    road.real = rig->store->backend->kind;
    road.kind = *road.real;
    road.kind.is_shared = true;
    road.kind.begin = begin;
    road.kind.undo = undo;
    rig->store->backend->kind = &road.kind;
    (void)pthread_mutex_unlock(&rig->store->lock);
    return clock;
}

static void advance(weir_clock *clock, int64_t by_ns)
{
    assert_int_equal(weir_clock_fake_advance(clock, by_ns), 0);
}

/* Waits until the store's thread has failed once more and sleeps. Returns the time until its next
 * attempt. */
static int64_t await_next_try(const struct store_fixture *rig, const weir_clock *clock, int begins)
{
    test_await_number(&road.begins, begins);
    test_await_waiters(clock, 1);
    return rig->store->retry_at - weir_clock_now(clock);
}

/* ---- attempts ---- */

/* The intervals are 0.1, 0.2, … 10 s, each shortened at random by up to half, so that not all
 * processes come at once. */
static void unreachable_database_is_retried_at_growing_intervals(void **state)
{
    struct store_fixture rig;
    weir_clock *clock = open_behind_road(&rig);
    int64_t job = rig_job(&rig, ""), longest_ns = 100 * WEIR_MILLISECOND;
    (void)state;
    atomic_store(&road.is_away, true);
    int before = atomic_load(&road.begins);
    assert_int_equal(rig_post_later(&rig, rig_found(&rig, job, "h", "https://h/", NULL)), 0);
    advance(clock, WEIR_SECOND);
    for (int tries = 1; tries <= 12; tries++) {
        int64_t wait_ns = await_next_try(&rig, clock, before + tries);
        assert_in_range(wait_ns, longest_ns / 2, longest_ns);
        longest_ns = 2 * longest_ns < 10 * WEIR_SECOND ? 2 * longest_ns : 10 * WEIR_SECOND;
        advance(clock, wait_ns - 1);
        test_await_waiters(clock, 1);
        assert_int_equal(atomic_load(&road.begins), before + tries);
        advance(clock, 1);
    }
    (void)await_next_try(&rig, clock, before + 13);
    assert_int_equal(atomic_load(&rig.done), 0);
    atomic_store(&road.is_away, false); /* the database is reachable again */
    advance(clock, 10 * WEIR_SECOND);
    test_await_number(&rig.done, 1);
    assert_int_equal(atomic_load(&rig.failed), 0);
    test_await_waiters(clock, 1);
    atomic_store(&road.is_away, true); /* unreachable again: the intervals start anew */
    before = atomic_load(&road.begins);
    assert_int_equal(rig_post_later(&rig, rig_found(&rig, job, "h", "https://h/2", NULL)), 0);
    advance(clock, WEIR_SECOND);
    assert_in_range(await_next_try(&rig, clock, before + 1), 50 * WEIR_MILLISECOND, 100 * WEIR_MILLISECOND);
    atomic_store(&road.is_away, false);
    rig_close(&rig);
    weir_clock_fake_free(clock);
    rig_tear_down(&rig);
}

WEIR_TESTS(test(unreachable_database_is_retried_at_growing_intervals))
