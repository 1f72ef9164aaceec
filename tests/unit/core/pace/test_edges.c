/* SPDX-License-Identifier: MIT */
/* test_edges.c - tests rules of a gate at their boundary values: feedback, counts, and the reason
 * of a wait. */
#include "core/pace/gate_state.h"
#include "core/pace/gate_transfer.h"
#include "core/pace/strategy.h"
#include "rig.h"

#include <math.h>

static void statuses_are_classified_into_four_kinds(void **state)
{
    (void)state;
    static const struct {
        int status;
        enum wr_pace_response_kind kind;
    } rows[] = {
        {-1, WR_PACE_RESPONSE_LOST},      {0, WR_PACE_RESPONSE_LOST},       {99, WR_PACE_RESPONSE_LOST},
        {600, WR_PACE_RESPONSE_LOST},     {998, WR_PACE_RESPONSE_LOST},     {100, WR_PACE_RESPONSE_OK},
        {200, WR_PACE_RESPONSE_OK},       {304, WR_PACE_RESPONSE_OK},       {404, WR_PACE_RESPONSE_OK},
        {402, WR_PACE_RESPONSE_OK},       {499, WR_PACE_RESPONSE_OK},       {403, WR_PACE_RESPONSE_REJECTED},
        {420, WR_PACE_RESPONSE_REJECTED}, {429, WR_PACE_RESPONSE_REJECTED}, {430, WR_PACE_RESPONSE_REJECTED},
        {503, WR_PACE_RESPONSE_REJECTED}, {509, WR_PACE_RESPONSE_REJECTED}, {529, WR_PACE_RESPONSE_REJECTED},
        {999, WR_PACE_RESPONSE_REJECTED}, {500, WR_PACE_RESPONSE_ERROR},    {502, WR_PACE_RESPONSE_ERROR},
        {599, WR_PACE_RESPONSE_ERROR},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (wr_pace_response_kind(rows[i].status) != rows[i].kind)
            fail_msg("%d is of kind %d", rows[i].status, (int)wr_pace_response_kind(rows[i].status));
}

static void request_being_written_does_not_count_against_itself(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_options options = bare_options();
    options.max_in_flight = 2;
    rig_init(&rig, options);
    rig_send(&rig, T0);
    rig_send(&rig, T0);
    assert_int_equal(wr_gate_ask_unwritten(rig.gate, &rig.options, T0).verdict, WEIR_GO);
    rig.options.max_in_flight = 3;
    rig_send(&rig, T0);
    rig.options.max_in_flight = 2;
    weir_decision decision = wr_gate_ask_unwritten(rig.gate, &rig.options, T0);
    assert_true(decision.verdict == WEIR_WAIT && decision.reason == WEIR_REASON_CONCURRENCY);
    rig_release(&rig);
}

static void unwritten_request_is_denied_where_starts_are_spaced(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, profile_options(WEIR_PROFILE_STRICT));
    weir_decision decision = wr_gate_ask_unwritten(rig.gate, &rig.options, T0);
    assert_true(decision.verdict == WEIR_DENY && decision.reason == WEIR_REASON_PACE && decision.wait_ns == 0);
    rig_release(&rig);
    weir_pace_options options = profile_options(WEIR_PROFILE_STRICT);
    options.off = true;
    rig_init(&rig, options);
    decision = wr_gate_ask_unwritten(rig.gate, &rig.options, T0);
    assert_true(decision.verdict == WEIR_GO && decision.reason == WEIR_REASON_NONE && decision.wait_ns == 0);
    decision = wr_gate_ask_again(rig.gate, &rig.options, 1, T0);
    assert_true(decision.verdict == WEIR_GO && decision.reason == WEIR_REASON_NONE && decision.wait_ns == 0);
    decision = rig_ask(&rig, T0);
    assert_true(decision.verdict == WEIR_GO && decision.reason == WEIR_REASON_NONE && decision.wait_ns == 0);
    rig_release(&rig);
}

static void robots_delay_is_the_reason_if_another_bound_is_as_long(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, profile_options(WEIR_PROFILE_STRICT)); /* one request a second */
    wr_gate_robots_delay(rig.gate, S, T0);
    rig_send(&rig, T0);
    assert_waits(&rig, T0, WEIR_REASON_ROBOTS_DELAY, S);
    wr_gate_hold(rig.gate, &rig.options, T0 + S, T0);
    assert_waits(&rig, T0, WEIR_REASON_ROBOTS_DELAY, S);
    wr_gate_hold(rig.gate, &rig.options, T0 + S + 1, T0);
    assert_waits(&rig, T0, WEIR_REASON_RETRY_AFTER, S + 1);
    rig_release(&rig);
}

static void host_view_shows_the_limit_that_tide_believes_in(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, profile_options(WEIR_PROFILE_ADAPTIVE));
    for (int64_t i = 0; i < 3; i++)
        rig_tell(&rig, rig_send(&rig, T0 + i * 10 * S), 200, T0 + i * 10 * S);
    char text[sizeof(((weir_pace_entry *)0)->limit_why)];
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, text, sizeof text);
    const char *kind = wr_strategy_of(rig.options.strategy)->describe_limit(rig.gate + 1, T0 + WEIR_MINUTE, &buf);
    weir_pace_entry entry = rig_look(&rig, T0 + WEIR_MINUTE);
    assert_true(strlen(kind) > 0);
    assert_string_equal(entry.limit, kind);
    assert_string_equal(entry.limit_why, text);
    assert_string_equal(entry.mode, wr_strategy_of(rig.options.strategy)->mode(rig.gate + 1));
    rig_release(&rig);
}

static void open_breaker(struct gate_fixture *rig, int64_t now)
{
    for (int i = 0; i < 5; i++)
        rig_tell_all(rig, NULL, (weir_outcome){.status = 500}, now, 0);
    assert_int_equal(wr_gate_breaker(rig->gate, now), WEIR_BREAKER_OPEN);
}

static void closing_of_the_breaker_is_reported_by_the_last_good_probe_only(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_options options = bare_options();
    options.breaker = true;
    rig_init(&rig, options);
    open_breaker(&rig, T0);
    assert_true(rig.news & WR_GATE_CHANGE_BREAKER);
    int64_t now = T0 + 15 * S;
    assert_false(rig_tell(&rig, rig_send(&rig, now), 200, now) & WR_GATE_CHANGE_BREAKER);
    assert_false(rig_tell(&rig, rig_send(&rig, now), 200, now) & WR_GATE_CHANGE_BREAKER);
    assert_true(rig_tell(&rig, rig_send(&rig, now), 200, now) & WR_GATE_CHANGE_BREAKER);
    rig_release(&rig);
}

static void answer_without_a_start_was_sent_its_latency_ago(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_options options = bare_options();
    options.breaker = true;
    options.probes = 1;
    rig_init(&rig, options);
    open_breaker(&rig, T0);
    int64_t now = T0 + 20 * S;
    rig_tell_all(&rig, NULL, (weir_outcome){.status = 200, .latency_ns = 5 * S + 1}, now, 0);
    /* sent while the breaker was open */
    assert_int_equal(wr_gate_breaker(rig.gate, now), WEIR_BREAKER_HALF_OPEN);
    rig_tell_all(&rig, NULL, (weir_outcome){.status = 200, .latency_ns = 5 * S}, now, 0);
    assert_int_equal(wr_gate_breaker(rig.gate, now), WEIR_BREAKER_CLOSED);
    rig_release(&rig);
}

static void tide_opens_the_breaker_for_a_tenth_of_the_outage_within_bounds(void **state)
{
    (void)state;
    static const struct {
        int64_t outage_ns, open_ns;
    } rows[] = {{5 * S, S}, {10 * S, S}, {20 * S, 2 * S}, {50 * S, 5 * S}, {WEIR_HOUR, 15 * S}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gate_fixture rig;
        rig_init(&rig, profile_options(WEIR_PROFILE_ADAPTIVE));
        rig_tell(&rig, rig_send(&rig, T0), 200, T0);
        int64_t now = T0 + rows[i].outage_ns;
        open_breaker(&rig, now);
        assert_int_equal(wr_gate_breaker(rig.gate, now + rows[i].open_ns - 1), WEIR_BREAKER_OPEN);
        assert_int_equal(wr_gate_breaker(rig.gate, now + rows[i].open_ns), WEIR_BREAKER_HALF_OPEN);
        rig_release(&rig);
    }
    struct gate_fixture rig;
    rig_init(&rig, profile_options(WEIR_PROFILE_ADAPTIVE)); /* no success so far */
    open_breaker(&rig, T0 + 20 * S);
    assert_int_equal(wr_gate_breaker(rig.gate, T0 + 35 * S - 1), WEIR_BREAKER_OPEN);
    assert_int_equal(wr_gate_breaker(rig.gate, T0 + 35 * S), WEIR_BREAKER_HALF_OPEN);
    rig_release(&rig);
}

static void streaks_and_rejections_are_counted_one_by_one(void **state)
{
    (void)state;
    static const struct {
        int status;
        unsigned good, bad, rejected;
    } rows[] = {{200, 1, 0, 0}, {404, 2, 0, 0}, {429, 0, 1, 1}, {403, 0, 2, 2}, {500, 0, 2, 2},
                {0, 0, 2, 2},   {503, 0, 3, 3}, {301, 1, 0, 3}, {200, 2, 0, 3}, {0, 0, 0, 3},
                {200, 1, 0, 3}, {500, 0, 0, 3}, {429, 0, 1, 4}};
    struct gate_fixture rig;
    rig_init(&rig, bare_options());
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rig_tell_all(&rig, NULL, (weir_outcome){.status = rows[i].status}, T0, 0);
        weir_pace_entry entry = rig_look(&rig, T0);
        if (entry.success_streak != rows[i].good || entry.error_streak != rows[i].bad ||
            entry.rejected != rows[i].rejected)
            fail_msg("after %zu answers: %u good, %u bad in a row, %u rejected", i + 1, entry.success_streak,
                     entry.error_streak, (unsigned)entry.rejected);
    }
    rig_release(&rig);
}

static void setting_the_count_in_flight_keeps_the_reservation(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, bare_options());
    uint32_t seq = wr_gate_reserve(rig.gate, &rig.options, T0);
    wr_gate_set_in_flight(rig.gate, 3);
    assert_true(wr_gate_ok(rig.gate, &rig.options));
    assert_int_equal(rig_look(&rig, T0).in_flight, 4);
    wr_gate_give(rig.gate, &rig.options, seq, T0);
    assert_int_equal(rig_look(&rig, T0).in_flight, 3);
    rig_release(&rig);
}

/* Both gates have a state of the same size, and rings of the same sizes. */
static void packed_state_of_another_strategy_of_equal_size_is_not_used(void **state)
{
    (void)state;
    weir_pace_options fixed = profile_options(WEIR_PROFILE_STRICT), pid = fixed, checked;
    pid.strategy = WEIR_STRATEGY_PID;
    struct gate_fixture here, there;
    assert_int_equal(wr_pace_options_check(&fixed, &checked), 0);
    pid.latency_ring =
        checked.latency_ring -
        (uint32_t)((wr_strategy_of(WEIR_STRATEGY_PID)->state_bytes - wr_strategy_of(WEIR_STRATEGY_FIXED)->state_bytes) /
                   sizeof(uint16_t));
    rig_init(&here, pid);
    rig_init(&there, fixed);
    assert_int_equal(wr_gate_packed_bytes(&here.options), wr_gate_packed_bytes(&there.options));
    rig_tell(&here, rig_send(&here, T0), 200, T0);
    size_t bytes = wr_gate_bytes(&there.options) - sizeof(struct wr_gate);
    char *packed = malloc(wr_gate_packed_bytes(&here.options)), *before = malloc(bytes);
    assert_non_null(packed);
    assert_non_null(before);
    memcpy(before, there.gate + 1, bytes);
    wr_gate_pack(here.gate, &here.options, T0, packed);
    assert_true(wr_gate_unpack(there.gate, &there.options, packed, wr_gate_packed_bytes(&here.options), 0, false, T0));
    assert_memory_equal(before, there.gate + 1, bytes);
    free(packed);
    free(before);
    rig_release(&here);
    rig_release(&there);
}

static void stored_cap_and_rate_are_clamped_and_otherwise_unchanged(void **state)
{
    (void)state;
    weir_pace_options checked, options = profile_options(WEIR_PROFILE_ADAPTIVE);
    assert_int_equal(wr_pace_options_check(&options, &checked), 0);
    static const uint32_t caps[][2] = {{0, 0}, {7, 7}, {999999, 999999}, {1000000, 1000000}, {1000001, 1000000}};
    for (size_t i = 0; i < sizeof caps / sizeof *caps; i++) {
        weir_pace_memory memory = {.cap = caps[i][0], .saved_wall_at = WALL0};
        assert_int_equal(wr_memory_aged(&memory, &checked, WALL0).cap, caps[i][1]);
    }
    static const double rates[][2] = {{5, 5}, {0, 0}, {-1, 0}, {1e9, 1e9}, {2e9, 0}, {1e-300, 1.0 / 86400}};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        weir_pace_memory memory = {.rate = rates[i][0], .saved_wall_at = WALL0};
        assert_true(fabs(wr_memory_aged(&memory, &checked, WALL0).rate - rates[i][1]) <= 1e-12);
    }
    /* If the time of saving is not known, the wait lasts until the stored time. */
    weir_pace_memory memory = {.retry_wall_at = 5 * S};
    assert_int_equal(wr_memory_wait(&memory, &checked, -5 * S), 10 * S);
    memory.saved_wall_at = 2 * S; /* no longer than it was at the time of saving */
    assert_int_equal(wr_memory_wait(&memory, &checked, -5 * S), 3 * S);
}

static void gate_that_is_off_ignores_late_starts_and_response_heads(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_options options = profile_options(WEIR_PROFILE_STRICT);
    weir_outcome outcome = {.size = sizeof outcome, .status = 429, .has_retry_after = true, .retry_after_ns = S};
    options.off = true;
    rig_init(&rig, options);
    struct wr_gate_start start = rig_send(&rig, T0);
    wr_gate_sent_late(rig.gate, &rig.options, WEIR_HOUR, T0);
    assert_int_equal(wr_gate_tell_head(rig.gate, &rig.options, &start, &outcome, T0, 0), 0);
    rig.options.off = false;
    assert_true(rig_goes(&rig, T0));
    /* this request was not counted as a start */
    assert_int_equal(wr_gate_tell_head(rig.gate, &rig.options, &start, &outcome, T0, 0), 0);
    assert_true(rig_goes(&rig, T0));
    rig_release(&rig);
}

static void head_of_a_response_binds_at_once_and_ends_no_request(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_outcome outcome = {.size = sizeof outcome, .status = 429, .has_retry_after = true, .retry_after_ns = 7 * S};
    rig_init(&rig, bare_options());
    struct wr_gate_start start = rig_send(&rig, T0);
    assert_int_equal(wr_gate_tell_head(rig.gate, &rig.options, &start, &outcome, T0, 0), WR_GATE_CHANGE_RETRY_AFTER);
    assert_waits(&rig, T0, WEIR_REASON_RETRY_AFTER, 7 * S);
    assert_true(rig_look(&rig, T0).in_flight == 1 && rig_look(&rig, T0).rejected == 0);
    /* repeated: reports nothing new */
    assert_int_equal(wr_gate_tell_head(rig.gate, &rig.options, &start, &outcome, T0, 0), 0);
    assert_true(wr_gate_unsaved(rig.gate));
    rig_tell_all(&rig, &start, outcome, T0, 0);
    assert_true(rig_look(&rig, T0).in_flight == 0 && rig_look(&rig, T0).rejected == 1);
    rig_release(&rig);
}

static void gate_reports_a_pause_until_it_ends(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, bare_options());
    assert_false(wr_gate_paused(rig.gate));
    wr_gate_pause(rig.gate, true);
    assert_true(wr_gate_paused(rig.gate));
    wr_gate_pause(rig.gate, false);
    assert_false(wr_gate_paused(rig.gate));
    rig_release(&rig);
}

static void asking_beyond_a_reservation_ignores_it(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, profile_options(WEIR_PROFILE_STRICT)); /* one request a second */
    rig_tell(&rig, rig_send(&rig, T0), 200, T0);
    uint32_t seq = wr_gate_reserve(rig.gate, &rig.options, T0 + S);
    assert_waits(&rig, T0 + S, WEIR_REASON_PACE, 120 * S);
    assert_int_equal(wr_gate_ask_as_holder(rig.gate, &rig.options, T0 + S).verdict, WEIR_GO);
    assert_int_equal(wr_gate_ask_again(rig.gate, &rig.options, seq, T0 + S).verdict, WEIR_GO);
    assert_int_equal(wr_gate_ask_again(rig.gate, &rig.options, seq + 1, T0 + S).wait_ns, 120 * S);
    rig_release(&rig);
}

static void reservation_is_kept_given_and_used_by_its_holder_only(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, bare_options());
    uint32_t seq = wr_gate_reserve(rig.gate, &rig.options, T0);
    wr_gate_keep(rig.gate, &rig.options, seq + 1, true, T0);
    wr_gate_give(rig.gate, &rig.options, seq + 1, T0);
    assert_true(wr_gate_reserved(rig.gate, &rig.options, T0 + 120 * S - 1));
    /* the holder did not extend it */
    assert_false(wr_gate_reserved(rig.gate, &rig.options, T0 + 120 * S));
    wr_gate_keep(rig.gate, &rig.options, seq, true, T0 + 60 * S);
    assert_true(wr_gate_reserved(rig.gate, &rig.options, T0 + WEIR_DAY));
    wr_gate_keep(rig.gate, &rig.options, seq, false, T0 + WEIR_DAY);
    /* the reservation time starts anew */
    assert_true(wr_gate_reserved(rig.gate, &rig.options, T0 + WEIR_DAY + 120 * S - 1));
    assert_false(wr_gate_reserved(rig.gate, &rig.options, T0 + WEIR_DAY + 120 * S));
    /* too late: the gate has taken it back */
    wr_gate_keep(rig.gate, &rig.options, seq, true, T0 + 2 * WEIR_DAY);
    assert_false(wr_gate_reserved(rig.gate, &rig.options, T0 + 2 * WEIR_DAY));
    assert_int_equal(rig_look(&rig, T0 + 2 * WEIR_DAY).in_flight, 0);
    rig_release(&rig);
}

static void truncated_packed_gate_is_refused(void **state)
{
    (void)state;
    struct gate_fixture here, there;
    rig_init(&here, profile_options(WEIR_PROFILE_STRICT));
    rig_init(&there, profile_options(WEIR_PROFILE_STRICT));
    size_t bytes = wr_gate_packed_bytes(&here.options);
    char *packed = malloc(bytes);
    assert_non_null(packed);
    wr_gate_pack(here.gate, &here.options, T0, packed);
    for (size_t few = 0; few < bytes; few++) {
        char *copy = malloc(few + 1); /* exact size, so that sanitizers detect overreads */
        assert_non_null(copy);
        memcpy(copy, packed, few);
        assert_false(wr_gate_unpack(there.gate, &there.options, copy, few, 0, false, T0));
        free(copy);
    }
    assert_true(wr_gate_unpack(there.gate, &there.options, packed, bytes, 0, false, T0));
    free(packed);
    rig_release(&here);
    rig_release(&there);
}

static void gate_counters_saturate_at_their_maximum(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, bare_options());
    rig.gate->streak = INT32_MAX - 1;
    for (int i = 0; i < 3; i++)
        rig_tell_all(&rig, NULL, (weir_outcome){.status = 200}, T0, 0);
    assert_int_equal(rig.gate->streak, INT32_MAX);
    rig.gate->streak = -INT32_MAX + 1;
    rig.gate->rejected = UINT32_MAX - 1;
    for (int i = 0; i < 3; i++)
        rig_tell_all(&rig, NULL, (weir_outcome){.status = 429}, T0, 0);
    assert_int_equal(rig.gate->streak, -INT32_MAX);
    assert_int_equal(rig.gate->rejected, UINT32_MAX);
    rig_release(&rig);
}

static void wait_that_has_already_ended_needs_no_saving(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, bare_options());
    wr_gate_saved(rig.gate);
    wr_gate_hold(rig.gate, &rig.options, T0, T0);
    assert_false(wr_gate_unsaved(rig.gate));
    wr_gate_hold(rig.gate, &rig.options, T0 + 1, T0);
    assert_true(wr_gate_unsaved(rig.gate));
    wr_gate_saved(rig.gate);
    wr_gate_hold(rig.gate, &rig.options, T0 + 1, T0);
    assert_false(wr_gate_unsaved(rig.gate));
    rig_release(&rig);
}

static void host_is_hopeless_once_after_n_rejections_at_the_longest_delay(void **state)
{
    (void)state;
    for (int64_t delay_ns = S; delay_ns <= S + 1; delay_ns++) {
        struct gate_fixture rig;
        weir_pace_options options = profile_options(WEIR_PROFILE_STRICT); /* one request a second */
        options.breaker = false;
        options.cancel_after = 3;
        options.cancel_delay_ns = delay_ns;
        rig_init(&rig, options);
        for (int i = 1; i <= 5; i++) {
            uint32_t hopeless = i == 3 && delay_ns == S ? WR_GATE_CHANGE_HOPELESS : 0;
            assert_int_equal(rig_answer(&rig, 429, T0 + i * WEIR_MINUTE), WR_GATE_CHANGE_REJECTED | hopeless);
        }
        rig_release(&rig);
    }
}

static void gate_of_a_lost_holder_waits_at_most_the_longest_retry_after(void **state)
{
    (void)state;
    struct gate_fixture here, there;
    weir_pace_options options = profile_options(WEIR_PROFILE_STRICT);
    options.min_interval_ns = 10 * WEIR_DAY;
    rig_init(&here, options);
    rig_init(&there, options);
    size_t bytes = wr_gate_packed_bytes(&here.options);
    char *packed = malloc(bytes);
    assert_non_null(packed);
    wr_gate_pack(here.gate, &here.options, T0, packed);
    assert_true(wr_gate_unpack(there.gate, &there.options, packed, bytes, 0, true, T0));
    assert_true(wr_gate_ok(there.gate, &there.options));
    weir_pace_bound bounds[WEIR_PACE_BOUNDS_MAX];
    (void)wr_gate_bounds(there.gate, &there.options, T0, bounds);
    assert_int_equal(there.gate->hold_until, T0 + WEIR_DAY);
    assert_int_equal(bounds[0].wait_ns, 10 * WEIR_DAY); /* the gate's own interval still holds */
    free(packed);
    rig_release(&here);
    rig_release(&there);
}

#define STEP (2 * S) /* length of a bucket of the window */

/* Returns the good answers per second of the last `span_ns`, computed from a list with one entry
 * per second. Answers are stored in buckets; the bucket in which the span begins counts in part. */
static double plain_rate(const int *good, int64_t second, int64_t span_ns, int64_t now)
{
    double count = 0;
    for (int64_t i = 0; i <= second; i++) {
        int64_t end = ((T0 + i * S) / STEP + 1) * STEP, within_ns = end - (now - span_ns);
        double share = end > now || within_ns >= STEP ? 1 : within_ns > 0 ? (double)within_ns / (double)STEP : 0;
        count += share * good[i];
    }
    return count * 1e9 / (double)span_ns;
}

static void good_rate_equals_that_of_a_list_of_answers(void **state)
{
    (void)state;
    weir_pace_options checked, options = profile_options(WEIR_PROFILE_STRICT);
    assert_int_equal(wr_pace_options_check(&options, &checked), 0);
    struct wr_window *window = calloc(1, wr_window_bytes(&checked));
    assert_non_null(window);
    int good[200];
    wr_window_init(window, &checked, T0);
    for (int64_t i = 0; i < 200; i++) {
        int64_t now = T0 + i * S;
        good[i] = (int)(i * i % 7 + (i % 50 == 3 ? 30 : 0));
        for (int k = 0; k < good[i]; k++)
            wr_window_add(window, &checked, WR_WINDOW_OK, now);
        wr_window_add(window, &checked, WR_WINDOW_REJECTED, now);
        /* the ring holds 28 s and the current bucket */
        for (int64_t span = 2; span <= 28 && span <= i; span++) {
            double rate = wr_window_good_rate(window, &checked, span * S, now);
            double plain = plain_rate(good, i, span * S, now);
            if (fabs(rate - plain) > 1e-9 * plain)
                fail_msg("%g in the last %d s of %d, not %g", rate, (int)span, (int)i, plain);
        }
    }
    free(window);
}

static void good_answer_without_a_breaker_reports_nothing(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, bare_options());
    assert_int_equal(rig_answer(&rig, 200, T0), 0);
    assert_int_equal(rig_answer(&rig, 500, T0), 0);
    assert_int_equal(rig_answer(&rig, 429, T0), WR_GATE_CHANGE_REJECTED);
    rig_release(&rig);
}

static void dropped_start_keeps_the_reservation_in_place(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, bare_options());
    struct wr_gate_start start = rig_send(&rig, T0);
    (void)wr_gate_reserve(rig.gate, &rig.options, T0);
    wr_gate_drop(rig.gate, &rig.options, &start, T0);
    assert_int_equal(rig_look(&rig, T0).in_flight, 1);
    wr_gate_drop(rig.gate, &rig.options, &start, T0); /* dropped twice */
    assert_int_equal(rig_look(&rig, T0).in_flight, 1);
    assert_true(wr_gate_ok(rig.gate, &rig.options));
    rig_release(&rig);
}

static void retry_after_beside_a_quota_holds_except_on_a_success(void **state)
{
    (void)state;
    static const struct {
        int status;
        bool holds;
    } rows[] = {{199, true}, {200, false}, {299, false}, {300, true}, {404, true}, {503, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gate_fixture rig;
        rig_init(&rig, bare_options());
        weir_outcome outcome = {.status = rows[i].status,
                                .has_retry_after = true,
                                .retry_after_ns = 7 * S,
                                .has_quota = true,
                                .quota_limit = 10,
                                .quota_remaining = 5,
                                .quota_reset_ns = -1};
        rig_tell_all(&rig, NULL, outcome, T0, 0);
        assert_int_equal(rig_goes(&rig, T0 + 6 * S), !rows[i].holds);
        assert_true(rig_goes(&rig, T0 + 7 * S));
        rig_release(&rig);
    }
}

/* The ring covers thirty seconds, of which the last bucket of two has just begun. */
static void good_rate_covers_at_most_the_length_of_the_ring(void **state)
{
    (void)state;
    weir_pace_options checked, options = profile_options(WEIR_PROFILE_STRICT);
    assert_int_equal(wr_pace_options_check(&options, &checked), 0);
    struct wr_window *window = calloc(1, wr_window_bytes(&checked));
    assert_non_null(window);
    wr_window_init(window, &checked, T0);
    for (int64_t i = 0; i < 60; i++)
        wr_window_add(window, &checked, WR_WINDOW_OK, T0 + i * S);
    int64_t now = T0 + 59 * S;
    double most = wr_window_good_rate(window, &checked, 30 * S, now);
    assert_true(most > 0.9 && most < 1.1);
    assert_true(wr_window_good_rate(window, &checked, WEIR_HOUR, now) == most);
    assert_true(wr_window_good_rate(window, &checked, 32 * S, now) == most);
    /* counts the whole current bucket */
    assert_true(wr_window_good_rate(window, &checked, S, now) == 2);
    assert_true(wr_window_good_rate(window, &checked, 0, now) == 0);
    free(window);
}

WEIR_TESTS(test(good_answer_without_a_breaker_reports_nothing), test(dropped_start_keeps_the_reservation_in_place),
           test(retry_after_beside_a_quota_holds_except_on_a_success), test(gate_counters_saturate_at_their_maximum),
           test(wait_that_has_already_ended_needs_no_saving),
           test(host_is_hopeless_once_after_n_rejections_at_the_longest_delay),
           test(gate_of_a_lost_holder_waits_at_most_the_longest_retry_after),
           test(good_rate_equals_that_of_a_list_of_answers),
           test(gate_that_is_off_ignores_late_starts_and_response_heads),
           test(head_of_a_response_binds_at_once_and_ends_no_request), test(gate_reports_a_pause_until_it_ends),
           test(asking_beyond_a_reservation_ignores_it), test(reservation_is_kept_given_and_used_by_its_holder_only),
           test(truncated_packed_gate_is_refused), test(good_rate_covers_at_most_the_length_of_the_ring),
           test(statuses_are_classified_into_four_kinds), test(request_being_written_does_not_count_against_itself),
           test(unwritten_request_is_denied_where_starts_are_spaced),
           test(robots_delay_is_the_reason_if_another_bound_is_as_long),
           test(host_view_shows_the_limit_that_tide_believes_in),
           test(closing_of_the_breaker_is_reported_by_the_last_good_probe_only),
           test(answer_without_a_start_was_sent_its_latency_ago),
           test(tide_opens_the_breaker_for_a_tenth_of_the_outage_within_bounds),
           test(streaks_and_rejections_are_counted_one_by_one), test(setting_the_count_in_flight_keeps_the_reservation),
           test(packed_state_of_another_strategy_of_equal_size_is_not_used),
           test(stored_cap_and_rate_are_clamped_and_otherwise_unchanged))
