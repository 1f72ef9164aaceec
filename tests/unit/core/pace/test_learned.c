/* SPDX-License-Identifier: MIT */
/* test_learned.c - tests the learned delay (S2-1 ... S2-6, S2-26, S2-27, S2-30, R2, R3, R4, U2, U3,
 * U7). */
#include "strategy_rig.h"

static struct strategy_fixture learned(weir_pace_options options)
{
    struct strategy_fixture rig;
    rig_init(&rig, &wr_learned, &options, NULL, T0);
    return rig;
}

static int64_t delay_ms(const struct strategy_fixture *rig, int64_t now)
{
    return rig_memory(rig, now).delay_ns / MS;
}

/* Sends `times` requests as soon as the strategy permits. Each is answered with this status after
 * 10 ms. Returns the time of the last answer. */
static int64_t answers(struct strategy_fixture *rig, int64_t now, int status, int times)
{
    for (int i = 0; i < times; i++) {
        now += rig_wait(rig, now);
        rig_send(rig, now);
        now += 10 * MS;
        rig_tell(rig, now, status, 10 * MS, -1);
    }
    return now;
}

/* S2-1, S1-3: at least the base delay after the first start, and no delay before it. */
static void starts_are_the_learned_delay_apart(void **state)
{
    (void)state;
    struct strategy_fixture rig = learned(rig_options());
    assert_int_equal(rig_wait(&rig, T0), 0);
    rig_send(&rig, T0);
    assert_int_equal(rig_wait(&rig, T0), 500 * MS);
    assert_int_equal(rig_wait(&rig, T0 + 400 * MS), 100 * MS);
    assert_int_equal(rig_wait(&rig, T0 + 500 * MS), 0);
    assert_int_equal(rig_want(&rig, T0).reason, WEIR_REASON_PACE);
    rig_release(&rig);
}

/* S2-2, S2-30, R3 */
static void each_429_of_a_streak_adds_a_second_up_to_the_cap(void **state)
{
    (void)state;
    struct strategy_fixture rig = learned(rig_options());
    int64_t now = T0;
    for (int i = 1; i <= 59; i++) {
        now = answers(&rig, now, 429, 1);
        assert_int_equal(delay_ms(&rig, now), 500 + 1000 * i);
    }
    now = answers(&rig, now, 429, 5);
    assert_int_equal(delay_ms(&rig, now), 60000);
    rig_release(&rig);
}

/* S2-27: the next start waits the whole new delay from the moment of the refusal. */
static void start_after_a_429_waits_the_whole_new_delay(void **state)
{
    (void)state;
    struct strategy_fixture rig = learned(rig_options());
    rig_send(&rig, T0);
    rig_tell(&rig, T0 + 300 * MS, 429, 300 * MS, -1);
    assert_int_equal(rig_wait(&rig, T0 + 300 * MS), 1500 * MS);
    rig_release(&rig);
}

/* S2-3, S2-26, S2-30 */
static void twenty_good_answers_in_a_row_begin_a_probe(void **state)
{
    (void)state;
    struct strategy_fixture rig = learned(rig_options());
    int64_t now = answers(&rig, T0, 429, 3);
    now = answers(&rig, now, 200, 19);
    assert_int_equal(delay_ms(&rig, now), 3500);
    assert_string_equal(wr_learned.mode(rig.state), "hold");
    now = answers(&rig, now, 200, 1);
    assert_int_equal(delay_ms(&rig, now), 2500);
    assert_string_equal(wr_learned.mode(rig.state), "probe");
    now = answers(&rig, now, 200, 20);
    assert_int_equal(delay_ms(&rig, now), 1500);
    now = answers(&rig, now, 200, 20);
    assert_int_equal(delay_ms(&rig, now), 500);
    rig_release(&rig);
}

/* S2-26: a 429 ends the row of successes. */
static void row_of_good_answers_restarts_after_a_429(void **state)
{
    (void)state;
    struct strategy_fixture rig = learned(rig_options());
    int64_t now = answers(&rig, T0, 429, 2);
    now = answers(&rig, now, 200, 19);
    now = answers(&rig, now, 429, 1);
    assert_int_equal(delay_ms(&rig, now), 3500);
    now = answers(&rig, now, 200, 19);
    assert_int_equal(delay_ms(&rig, now), 3500);
    now = answers(&rig, now, 200, 1);
    assert_int_equal(delay_ms(&rig, now), 2500);
    rig_release(&rig);
}

/* S2-4, S2-5, S2-30, U7: the floor is the delay before the probe, not the delay that failed. */
static void failed_probe_restores_the_last_safe_delay_as_its_floor(void **state)
{
    (void)state;
    struct strategy_fixture rig = learned(rig_options());
    int64_t now = answers(&rig, T0, 429, 3);
    now = answers(&rig, now, 200, 20); /* the probe is at 2.5 s */
    assert_int_equal(rig_memory(&rig, now).floor_ns, 0);
    now = answers(&rig, now, 429, 1);
    assert_int_equal(delay_ms(&rig, now), 3500);
    assert_int_equal(rig_memory(&rig, now).floor_ns, 3500 * MS);
    now = answers(&rig, now, 200, 100);
    assert_int_equal(delay_ms(&rig, now), 3500); /* never below the floor */
    now = answers(&rig, now, 429, 1);
    assert_int_equal(delay_ms(&rig, now), 4500); /* a 429 outside a probe */
    now = answers(&rig, now, 200, 100);
    assert_int_equal(delay_ms(&rig, now), 3500);
    assert_int_equal(rig_memory(&rig, now).floor_ns, 3500 * MS);
    rig_release(&rig);
}

/* S2-4: a probe is confirmed by as many good answers as started it. */
static void probe_that_was_confirmed_cannot_fail_later(void **state)
{
    (void)state;
    struct strategy_fixture rig = learned(rig_options());
    weir_pace_memory memory = {.delay_ns = 5 * WEIR_SECOND, .floor_ns = 4 * WEIR_SECOND};
    rig_release(&rig);
    rig_init(&rig, &wr_learned, &rig.options, &memory, T0);
    int64_t now = answers(&rig, T0, 200, 20);
    assert_int_equal(delay_ms(&rig, now), 4000);
    now = answers(&rig, now, 200, 20);
    assert_string_equal(wr_learned.mode(rig.state), "hold");
    now = answers(&rig, now, 429, 1);
    assert_int_equal(delay_ms(&rig, now), 5000);
    assert_int_equal(rig_memory(&rig, now).floor_ns, 4000 * MS);
    rig_release(&rig);
}

/* An answer to a request sent at the earlier delay counts for that delay. */
static void late_429_from_before_the_probe_raises_the_delay_before_it(void **state)
{
    (void)state;
    struct strategy_fixture rig = learned(rig_options());
    int64_t now = answers(&rig, T0, 429, 3);
    now = answers(&rig, now, 200, 20);
    assert_int_equal(delay_ms(&rig, now), 2500);
    rig_tell(&rig, now + 1, 429, 4 * WEIR_SECOND, -1);
    assert_int_equal(delay_ms(&rig, now + 1), 4500);
    assert_int_equal(rig_memory(&rig, now).floor_ns, 0);
    rig_release(&rig);
}

/* T1: the probe begins at the instant of the answer that completed the row. */
static void probe_fails_by_a_request_sent_at_the_instant_it_began(void **state)
{
    (void)state;
    for (int64_t before_ns = 0; before_ns <= 1; before_ns++) {
        struct strategy_fixture rig = learned(rig_options());
        int64_t now = answers(&rig, T0, 429, 3);
        now = answers(&rig, now, 200, 20); /* the probe is at 2.5 s */
        rig_tell(&rig, now + 4 * WEIR_SECOND, 429, 4 * WEIR_SECOND + before_ns, -1);
        assert_int_equal(delay_ms(&rig, now + 4 * WEIR_SECOND), before_ns == 0 ? 3500 : 4500);
        assert_int_equal(rig_memory(&rig, now).floor_ns, before_ns == 0 ? 3500 * MS : 0);
        rig_release(&rig);
    }
}

/* T1: the floor ages from its discovery, not from the start of the failed probe, which may have run
 * for long. */
static void floor_ages_from_the_answer_that_found_it(void **state)
{
    (void)state;
    struct strategy_fixture rig = learned(rig_options());
    int64_t now = answers(&rig, T0, 429, 4);
    now = answers(&rig, now, 200, 20);
    now += 2 * WEIR_HOUR;
    now = answers(&rig, now, 429, 1);
    assert_int_equal(rig_memory(&rig, now).floor_ns, 4500 * MS);
    assert_int_equal(rig_memory(&rig, now + 6 * WEIR_HOUR - 1).floor_ns, 4500 * MS);
    assert_int_equal(rig_memory(&rig, now + 6 * WEIR_HOUR).floor_ns, 2500 * MS);
    rig_release(&rig);
}

/* S2-5 */
static void probes_never_go_below_the_base(void **state)
{
    (void)state;
    weir_pace_options options = rig_options();
    options.base_delay_ns = 800 * MS;
    struct strategy_fixture rig = learned(options);
    int64_t now = answers(&rig, T0, 200, 100);
    assert_int_equal(delay_ms(&rig, now), 800);
    now = answers(&rig, now, 429, 1);
    assert_int_equal(delay_ms(&rig, now), 1800);
    now = answers(&rig, now, 200, 60);
    assert_int_equal(delay_ms(&rig, now), 800);
    rig_release(&rig);
}

/* U7: steps of half a second, and of any ns, are exact. U2: steps that users prefer. */
static void steps_are_exact_to_the_nanosecond(void **state)
{
    (void)state;
    weir_pace_options options = rig_options();
    options.delay_up_ns = 500 * MS + 1;
    options.delay_down_ns = 500 * MS;
    options.probe_after = 5;
    struct strategy_fixture rig = learned(options);
    int64_t now = answers(&rig, T0, 429, 7);
    assert_int_equal(rig_memory(&rig, now).delay_ns, 4000 * MS + 7);
    now = answers(&rig, now, 200, 15);
    assert_int_equal(rig_memory(&rig, now).delay_ns, 2500 * MS + 7);
    rig_release(&rig);
}

/* U2: from 21 s to 10 s takes an hour with the default numbers, and a quarter of that if 5 good
 * answers start a probe. */
static void recovery_takes_as_long_as_its_options_imply(void **state)
{
    (void)state;
    const struct {
        uint32_t probe_after;
        int64_t down_ns;
        int64_t least_min, most_min;
    } rows[] = {{20, WEIR_SECOND, 55, 60}, {5, WEIR_SECOND, 13, 15}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        weir_pace_options options = rig_options();
        options.probe_after = rows[i].probe_after;
        options.delay_down_ns = rows[i].down_ns;
        weir_pace_memory memory = {.delay_ns = 21 * WEIR_SECOND};
        struct strategy_fixture rig;
        rig_init(&rig, &wr_learned, &options, &memory, T0);
        int64_t now = T0;
        while (delay_ms(&rig, now) > 10000)
            now = answers(&rig, now, 200, 1);
        assert_in_range((now - T0) / WEIR_MINUTE, rows[i].least_min, rows[i].most_min);
        rig_release(&rig);
    }
}

/* R4 */
static void blocking_statuses_raise_the_delay_only_if_configured(void **state)
{
    (void)state;
    const struct {
        int status;
        bool on_403, on_503;
        int64_t delay_ms;
    } rows[] = {
        {429, false, false, 1500}, {403, false, true, 500}, {403, true, false, 1500}, {503, true, false, 500},
        {503, false, true, 1500},  {500, true, true, 500},  {404, true, true, 500},   {0, true, true, 500},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        weir_pace_options options = rig_options();
        options.learn_on_403 = rows[i].on_403;
        options.learn_on_503 = rows[i].on_503;
        struct strategy_fixture rig = learned(options);
        int64_t now = answers(&rig, T0, rows[i].status, 1);
        assert_int_equal(delay_ms(&rig, now), rows[i].delay_ms);
        rig_release(&rig);
    }
}

/* S2-13: other errors are not successes, but they do not end a row of successes. */
static void errors_that_say_nothing_about_pace_are_ignored(void **state)
{
    (void)state;
    const int others[] = {500, 503, 403, 0};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct strategy_fixture rig = learned(rig_options());
        int64_t now = answers(&rig, T0, 429, 2);
        now = answers(&rig, now, 200, 19);
        now = answers(&rig, now, others[i], 30);
        assert_int_equal(delay_ms(&rig, now), 2500);
        now = answers(&rig, now, 404, 1); /* 404 counts as a success */
        assert_int_equal(delay_ms(&rig, now), 1500);
        rig_release(&rig);
    }
}

/* U3: a delay learned in a spike is not kept for ever, but only idleness reduces it. */
static void delay_above_the_base_halves_with_every_half_life_of_idleness(void **state)
{
    (void)state;
    struct strategy_fixture rig = learned(rig_options());
    int64_t now = answers(&rig, T0, 429, 8); /* the delay is 8.5 s */
    int64_t due_at = now + rig_wait(&rig, now);
    assert_int_equal(delay_ms(&rig, due_at + 6 * WEIR_HOUR - 1), 8500);
    assert_int_equal(delay_ms(&rig, due_at + 6 * WEIR_HOUR), 4500);
    assert_int_equal(delay_ms(&rig, due_at + 12 * WEIR_HOUR), 2500);
    assert_int_equal(delay_ms(&rig, due_at + 10000 * WEIR_HOUR), 500);
    now = due_at + 7 * WEIR_HOUR;
    rig_send(&rig, now);
    assert_int_equal(rig_wait(&rig, now), 4500 * MS);
    rig_release(&rig);

    rig = learned(rig_options());
    now = answers(&rig, T0, 429, 60);
    for (int i = 0; i < 1000; i++) { /* seventeen hours without idle time */
        now += rig_wait(&rig, now);
        rig_send(&rig, now);
    }
    assert_int_equal(delay_ms(&rig, now), 60000);
    rig_release(&rig);
}

/* U2, U3: the floor ages, so that a host that became faster is used faster. */
static void floor_ages_so_that_a_faster_host_is_noticed(void **state)
{
    (void)state;
    struct strategy_fixture rig = learned(rig_options());
    int64_t now = answers(&rig, T0, 429, 4);
    now = answers(&rig, now, 200, 20);
    now = answers(&rig, now, 429, 1);
    int64_t found_at = now;
    assert_int_equal(rig_memory(&rig, now).floor_ns, 4500 * MS);
    while (now < found_at + 6 * WEIR_HOUR - WEIR_MINUTE)
        now = answers(&rig, now, 200, 1);
    assert_int_equal(delay_ms(&rig, now), 4500);
    while (now < found_at + 8 * WEIR_HOUR)
        now = answers(&rig, now, 200, 1);
    assert_int_equal(rig_memory(&rig, now).floor_ns, 2500 * MS);
    assert_int_equal(delay_ms(&rig, now), 2500);
    while (now < found_at + 50 * WEIR_HOUR)
        now = answers(&rig, now, 200, 1);
    /* the 4 s above the base have been halved eight times */
    assert_int_equal(delay_ms(&rig, now), 515);
    rig_release(&rig);
}

/* S2-6, S2-9, R2, R23: a known host starts with the stored values within the bounds, one delay
 * before the first start. */
static void known_host_starts_at_its_stored_delay_and_floor(void **state)
{
    (void)state;
    const struct {
        int64_t stored_ms, floor_ms, delay_ms;
    } rows[] = {{0, 0, 500}, {7000, 6000, 7000}, {900000, 900000, 60000}, {100, 50, 500}};
    weir_pace_options options = rig_options();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        weir_pace_memory memory = {.delay_ns = rows[i].stored_ms * MS, .floor_ns = rows[i].floor_ms * MS};
        struct strategy_fixture rig;
        rig_init(&rig, &wr_learned, &options, &memory, T0);
        assert_int_equal(delay_ms(&rig, T0), rows[i].delay_ms);
        assert_int_equal(rig_wait(&rig, T0), rows[i].delay_ms * MS);
        assert_true(rig_memory(&rig, T0).floor_ns <= options.max_delay_ns);
        rig_release(&rig);
    }
    weir_pace_memory memory = {.delay_ns = 7 * WEIR_SECOND, .floor_ns = 6 * WEIR_SECOND};
    struct strategy_fixture rig;
    rig_init(&rig, &wr_learned, &options, &memory, T0);
    int64_t now = answers(&rig, T0, 200, 100);
    assert_int_equal(delay_ms(&rig, now), 6000);
    rig_release(&rig);
}

WEIR_TESTS(test(probe_fails_by_a_request_sent_at_the_instant_it_began), test(floor_ages_from_the_answer_that_found_it),
           test(starts_are_the_learned_delay_apart), test(each_429_of_a_streak_adds_a_second_up_to_the_cap),
           test(start_after_a_429_waits_the_whole_new_delay), test(twenty_good_answers_in_a_row_begin_a_probe),
           test(row_of_good_answers_restarts_after_a_429), test(failed_probe_restores_the_last_safe_delay_as_its_floor),
           test(probe_that_was_confirmed_cannot_fail_later),
           test(late_429_from_before_the_probe_raises_the_delay_before_it), test(probes_never_go_below_the_base),
           test(steps_are_exact_to_the_nanosecond), test(recovery_takes_as_long_as_its_options_imply),
           test(blocking_statuses_raise_the_delay_only_if_configured),
           test(errors_that_say_nothing_about_pace_are_ignored),
           test(delay_above_the_base_halves_with_every_half_life_of_idleness),
           test(floor_ages_so_that_a_faster_host_is_noticed), test(known_host_starts_at_its_stored_delay_and_floor))
