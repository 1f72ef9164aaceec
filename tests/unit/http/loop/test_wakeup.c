/* SPDX-License-Identifier: MIT */
/* test_wakeup.c - tests of threads that wake a loop. */
#include "http/loop/wakeup.h"
#include "lib/test.h"

#include <weir/time.h>

#define SENDERS 4
#define SENDS 20000 /* wakeups sent by each thread */

struct fixture {
    uv_loop_t loop;
    struct wr_wakeup wakeup;
    atomic_int published; /* units of work that were published and not taken */
    int taken, wakeups;
};

static void take_all(struct wr_wakeup *wakeup)
{
    struct fixture *fixture = wakeup->uv.data;
    fixture->wakeups++;
    fixture->taken += atomic_exchange(&fixture->published, 0);
}

static void open_fixture(struct fixture *fixture)
{
    *fixture = (struct fixture){.taken = 0};
    assert_int_equal(uv_loop_init(&fixture->loop), 0);
    assert_int_equal(wr_wakeup_init(&fixture->wakeup, &fixture->loop, take_all), 0);
    fixture->wakeup.uv.data = fixture;
}

static void close_fixture(struct fixture *fixture)
{
    if (!wr_wakeup_is_closing(&fixture->wakeup))
        wr_wakeup_close(&fixture->wakeup, NULL);
    assert_int_equal(uv_run(&fixture->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
}

static void publish(struct fixture *fixture)
{
    atomic_fetch_add(&fixture->published, 1);
    wr_wakeup_send(&fixture->wakeup);
}

static void wakeups_sent_before_the_loop_turns_are_one(void **state)
{
    struct fixture fixture;
    (void)state;
    open_fixture(&fixture);
    for (int i = 0; i < 3; i++)
        publish(&fixture);
    (void)uv_run(&fixture.loop, UV_RUN_NOWAIT);
    (void)uv_run(&fixture.loop, UV_RUN_NOWAIT);
    assert_int_equal(fixture.wakeups, 1);
    assert_int_equal(fixture.taken, 3);
    publish(&fixture);
    (void)uv_run(&fixture.loop, UV_RUN_ONCE);
    assert_int_equal(fixture.wakeups, 2);
    assert_int_equal(fixture.taken, 4);
    close_fixture(&fixture);
}

static void *send_often(void *context)
{
    for (int i = 0; i < SENDS; i++)
        publish(context);
    return NULL;
}

/* If a wakeup were lost, the loop would wait forever. */
static void all_work_published_before_a_wakeup_is_taken(void **state)
{
    struct fixture fixture;
    pthread_t senders[SENDERS];
    (void)state;
    open_fixture(&fixture);
    for (int i = 0; i < SENDERS; i++)
        assert_int_equal(pthread_create(&senders[i], NULL, send_often, &fixture), 0);
    while (fixture.taken < SENDERS * SENDS)
        (void)uv_run(&fixture.loop, UV_RUN_ONCE);
    for (int i = 0; i < SENDERS; i++)
        (void)pthread_join(senders[i], NULL);
    assert_int_equal(fixture.taken, SENDERS * SENDS);
    close_fixture(&fixture);
}

static void count_one(uv_timer_t *timer)
{
    (*(int *)timer->data)++;
}

/* Holds the lock like a sender that is interrupted in the middle of wr_wakeup_send. The loop must
 * not wait for it. With uv_async_send of libuv 1.44 the loop would spin here. */
static void interrupted_sender_does_not_block_the_loop(void **state)
{
    struct fixture fixture;
    uv_timer_t timer;
    int rounds = 0;
    (void)state;
    open_fixture(&fixture);
    (void)uv_timer_init(&fixture.loop, &timer);
    timer.data = &rounds;
    (void)uv_timer_start(&timer, count_one, 0, 0);
    publish(&fixture);
    (void)pthread_mutex_lock(&fixture.wakeup.lock);
    (void)uv_run(&fixture.loop, UV_RUN_NOWAIT);
    assert_int_equal(rounds, 1);
    assert_int_equal(fixture.taken, 1);
    (void)pthread_mutex_unlock(&fixture.wakeup.lock);
    uv_close((uv_handle_t *)&timer, NULL);
    close_fixture(&fixture);
}

static void wakeup_sent_after_close_has_no_effect(void **state)
{
    struct fixture fixture;
    (void)state;
    open_fixture(&fixture);
    wr_wakeup_close(&fixture.wakeup, NULL);
    publish(&fixture);
    close_fixture(&fixture);
    publish(&fixture);
    assert_int_equal(fixture.wakeups, 0);
}

WEIR_TESTS(test(wakeups_sent_before_the_loop_turns_are_one), test(all_work_published_before_a_wakeup_is_taken),
           test(interrupted_sender_does_not_block_the_loop), test(wakeup_sent_after_close_has_no_effect))
