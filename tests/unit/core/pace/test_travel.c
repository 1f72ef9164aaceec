/* SPDX-License-Identifier: MIT */
/* test_travel.c - tests that a gate which is handed from process to process decides like one that
 * stays, whatever their clocks. */
#include "base/rng.h"
#include "core/pace/gate_state.h"
#include "core/pace/gate_transfer.h"
#include "core/pace/tide.h"
#include "rig.h"

#include <math.h>

/* length of a bucket of the window; clocks that differ by whole buckets share them */
#define STEP (2 * S)
#define FLIGHTS 64

/* Packs the gate `from` and unpacks it into `to`. Returns whether it could be unpacked. */
static bool hand_over(const struct gate_fixture *from, int64_t from_now, struct gate_fixture *to, int64_t to_now,
                      int64_t elapsed_ns, bool lost)
{
    size_t bytes = wr_gate_packed_bytes(&from->options);
    char *packed = malloc(bytes);
    assert_non_null(packed);
    wr_gate_pack(from->gate, &from->options, from_now, packed);
    bool read = wr_gate_unpack(to->gate, &to->options, packed, bytes, elapsed_ns, lost, to_now);
    assert_true(wr_gate_ok(to->gate, &to->options));
    free(packed);
    return read;
}

struct flight {
    struct wr_gate_start start;
    int64_t answered_at;
};

static weir_outcome random_outcome(struct wr_rng *rng)
{
    static const int statuses[] = {200, 200, 200, 200, 200, 200, 429, 503, 403, 500, 0};
    weir_outcome outcome = {.size = sizeof outcome, .status = statuses[wr_rng_below(rng, 11)]};
    outcome.latency_ns = (int64_t)wr_rng_below(rng, 300) * MS + 1;
    outcome.has_retry_after = outcome.status == 429 && wr_rng_below(rng, 4) == 0;
    outcome.retry_after_ns = (int64_t)wr_rng_below(rng, 20) * S;
    outcome.has_quota = wr_rng_below(rng, 20) == 0;
    outcome.quota_limit = 100;
    outcome.quota_remaining = (int64_t)wr_rng_below(rng, 100);
    outcome.quota_reset_ns = (int64_t)wr_rng_below(rng, 60) * S;
    return outcome;
}

/* Runs the same requests on a gate that stays and on one that is handed over at each step. Their
 * decisions must always be equal. */
static void play(weir_pace_options options, uint64_t seed)
{
    struct gate_fixture stays, travels[2];
    struct flight flights[FLIGHTS];
    size_t count = 0, at = 0;
    struct wr_rng rng;
    wr_rng_init(&rng, seed);
    int64_t offset[2] = {0, ((int64_t)wr_rng_below(&rng, 800) - 400) * STEP}, now = T0;
    rig_init(&stays, options);
    rig_init(&travels[0], options);
    rig_init(&travels[1], options);
    for (int i = 0; i < 3000; i++) {
        now += (int64_t)wr_rng_below(&rng, 400) * MS;
        for (size_t j = 0; j < count;) {
            if (flights[j].answered_at > now) {
                j++;
                continue;
            }
            weir_outcome outcome = random_outcome(&rng);
            struct wr_gate_start there = flights[j].start;
            there.sent_at += offset[at];
            (void)wr_gate_tell(stays.gate, &stays.options, &flights[j].start, &outcome, now, 0.5);
            (void)wr_gate_tell(travels[at].gate, &options, &there, &outcome, now + offset[at], 0.5);
            flights[j] = flights[--count];
        }
        weir_decision a = rig_ask(&stays, now), b = rig_ask(&travels[at], now + offset[at]);
        if (a.verdict != b.verdict || a.reason != b.reason || a.wait_ns != b.wait_ns)
            fail_msg("step %d of seed 0x%llx: %s %lld, but after a handover %s %lld", i, (unsigned long long)seed,
                     weir_reason_name(a.reason), (long long)a.wait_ns, weir_reason_name(b.reason),
                     (long long)b.wait_ns);
        if (a.verdict == WEIR_GO && count < FLIGHTS) {
            flights[count].start = rig_send(&stays, now);
            (void)rig_send(&travels[at], now + offset[at]);
            flights[count++].answered_at = now + (int64_t)wr_rng_below(&rng, 3000) * MS;
        }
        if (wr_rng_below(&rng, 5) == 0) {
            assert_true(hand_over(&travels[at], now + offset[at], &travels[!at], now + offset[!at], 0, false));
            at = !at;
        }
    }
    if (at != 0) /* back on the first clock, the whole state must be equal */
        assert_true(hand_over(&travels[1], now + offset[1], &travels[0], now, 0, false));
    assert_memory_equal(travels[0].gate + 1, stays.gate + 1, wr_gate_bytes(&options) - sizeof(struct wr_gate));
    rig_release(&stays);
    rig_release(&travels[0]);
    rig_release(&travels[1]);
}

static void gate_handed_between_processes_decides_as_one_that_stays(void **state)
{
    (void)state;
    uint64_t seed = weir_test_seed();
    for (int strategy = WEIR_STRATEGY_TIDE; weir_strategy_name((weir_strategy)strategy) != NULL; strategy++) {
        weir_pace_options options = profile_options(WEIR_PROFILE_ADAPTIVE), checked;
        options.strategy = (weir_strategy)strategy;
        options.window_step_ns = STEP;
        assert_int_equal(wr_pace_options_check(&options, &checked), 0);
        for (uint64_t i = 0; i < 5; i++)
            play(checked, wr_rng_pick(seed, (uint64_t)strategy * 100 + i));
    }
}

static void unknown_transfer_time_of_a_gate_only_delays(void **state)
{
    (void)state;
    struct gate_fixture here, there;
    rig_init(&here, profile_options(WEIR_PROFILE_STRICT));
    rig_init(&there, profile_options(WEIR_PROFILE_STRICT));
    rig_send(&here, T0);
    /* The transfer took 300 ms, of which 100 are known. */
    assert_true(hand_over(&here, T0, &there, 7 * S, 100 * MS, false));
    assert_waits(&there, 7 * S, WEIR_REASON_PACE, 900 * MS);
    rig_send(&there, 7900 * MS);
    assert_waits(&there, 7900 * MS, WEIR_REASON_PACE, S);
    rig_release(&here);
    rig_release(&there);
}

static void gate_of_a_lost_holder_waits_a_full_interval(void **state)
{
    (void)state;
    struct gate_fixture here, there;
    rig_init(&here, profile_options(WEIR_PROFILE_STRICT));
    rig_init(&there, profile_options(WEIR_PROFILE_STRICT));
    rig_send(&here, T0);
    assert_true(hand_over(&here, T0, &there, T0, 50 * S, true));
    assert_waits(&there, T0, WEIR_REASON_PACE, S);
    rig_release(&here);
    rig_release(&there);
}

static void server_named_times_are_kept_by_sender_and_receiver_of_a_gate(void **state)
{
    (void)state;
    struct gate_fixture here, there;
    rig_init(&here, bare_options());
    rig_init(&there, bare_options());
    rig_tell_retry_after(&here, rig_send(&here, T0), 429, 60 * S, T0);
    assert_true(hand_over(&here, T0, &there, 3 * T0, 10 * S, false));
    assert_waits(&there, 3 * T0, WEIR_REASON_RETRY_AFTER, 50 * S);
    /* The other direction: the receiver knows a longer window. */
    wr_gate_hold(there.gate, &there.options, 3 * T0 + 500 * S, 3 * T0);
    assert_true(hand_over(&here, T0, &there, 3 * T0, 10 * S, false));
    assert_waits(&there, 3 * T0, WEIR_REASON_RETRY_AFTER, 500 * S);
    wr_gate_robots_delay(there.gate, 30 * S, 3 * T0);
    assert_true(hand_over(&here, T0, &there, 3 * T0, 10 * S, false));
    assert_int_equal(wr_gate_min_interval(there.gate, &there.options), 30 * S);
    rig_release(&here);
    rig_release(&there);
}

static void reservation_is_not_handed_over_and_requests_are_recounted(void **state)
{
    (void)state;
    struct gate_fixture here, there;
    rig_init(&here, bare_options());
    rig_init(&there, bare_options());
    rig_send(&here, T0);
    (void)wr_gate_reserve(here.gate, &here.options, T0);
    assert_true(wr_gate_reserved(here.gate, &here.options, T0));
    assert_true(hand_over(&here, T0, &there, T0, 0, false));
    assert_false(wr_gate_reserved(there.gate, &there.options, T0));
    assert_int_equal(rig_look(&there, T0).in_flight, 1);
    assert_int_equal(rig_look(&there, T0).starts, 1);
    wr_gate_set_in_flight(there.gate, 5);
    assert_int_equal(rig_look(&there, T0).in_flight, 5);
    rig_release(&here);
    rig_release(&there);
}

static void gate_of_another_strategy_hands_over_server_named_times(void **state)
{
    (void)state;
    struct gate_fixture here, there;
    rig_init(&here, profile_options(WEIR_PROFILE_ADAPTIVE));
    rig_init(&there, profile_options(WEIR_PROFILE_STRICT));
    rig_tell_retry_after(&here, rig_send(&here, T0), 429, 60 * S, T0);
    assert_true(hand_over(&here, T0, &there, 3 * T0, 0, false));
    assert_waits(&there, 3 * T0, WEIR_REASON_RETRY_AFTER, 60 * S);
    rig_release(&here);
    rig_release(&there);
}

/* The ring is longer and the window is shorter, so that the sizes are equal but the layouts
 * differ. */
static void gate_with_other_ring_sizes_hands_over_server_named_times(void **state)
{
    (void)state;
    weir_pace_options options = profile_options(WEIR_PROFILE_ADAPTIVE), others = options, checked, others_checked;
    struct gate_fixture here, there;
    others.latency_ring = options.latency_ring + 3;
    others.window_ns = options.window_ns - options.window_step_ns;
    assert_int_equal(wr_pace_options_check(&options, &checked), 0);
    assert_int_equal(wr_pace_options_check(&others, &others_checked), 0);
    assert_int_equal(wr_gate_bytes(&checked), wr_gate_bytes(&others_checked));
    rig_init(&here, checked);
    rig_init(&there, others_checked);
    for (int i = 0; i < 200; i++) /* the ring is full */
        rig_tell(&here, rig_send(&here, T0 + i * S), 200, T0 + i * S);
    rig_tell_retry_after(&here, rig_send(&here, T0 + 200 * S), 429, 60 * S, T0 + 200 * S);
    size_t bytes = wr_gate_bytes(&checked) - sizeof(struct wr_gate);
    char *before = malloc(bytes);
    assert_non_null(before);
    memcpy(before, there.gate + 1, bytes);
    assert_true(hand_over(&here, T0 + 200 * S, &there, 3 * T0, 0, false));
    assert_waits(&there, 3 * T0, WEIR_REASON_RETRY_AFTER, 60 * S);
    assert_memory_equal(before, there.gate + 1, bytes);
    free(before);
    rig_release(&here);
    rig_release(&there);
}

/* A process that can write to the store may write anything, with a correct checksum. */
static void packed_gate_with_state_out_of_range_keeps_the_receivers_state(void **state)
{
    (void)state;
    weir_pace_options checked, options = profile_options(WEIR_PROFILE_ADAPTIVE);
    assert_int_equal(wr_pace_options_check(&options, &checked), 0);
    const struct wr_strategy *strategy = wr_strategy_of(checked.strategy);
    for (int what = 0; what < 5; what++) {
        struct gate_fixture here, there;
        rig_init(&here, checked);
        rig_init(&there, checked);
        size_t bytes = wr_gate_bytes(&checked) - sizeof(struct wr_gate);
        char *gate = (char *)here.gate, *before = malloc(bytes);
        assert_non_null(before);
        memcpy(before, there.gate + 1, bytes);
        if (what == 0)
            ((struct wr_window *)(void *)(gate + wr_window_offset(strategy, &checked)))->at = UINT8_MAX;
        else if (what == 1)
            ((struct wr_window *)(void *)(gate + wr_window_offset(strategy, &checked)))->count = UINT8_MAX;
        else if (what == 2)
            ((struct wr_latency *)(void *)(gate + wr_latency_offset(strategy)))->at = UINT16_MAX;
        else if (what == 3)
            *(int64_t *)(void *)(gate + sizeof(struct wr_gate)) = INT64_MAX;
        else
            ((struct wr_tide *)(void *)(here.gate + 1))->rate = NAN;
        assert_true(hand_over(&here, T0, &there, T0, 0, false));
        assert_memory_equal(before, there.gate + 1, bytes);
        free(before);
        rig_release(&here);
        rig_release(&there);
    }
}

static void packed_gate_of_absurd_values_is_refused_and_costs_an_interval(void **state)
{
    (void)state;
    for (int what = 0; what < 5; what++) {
        struct gate_fixture here, there;
        rig_init(&here, profile_options(WEIR_PROFILE_STRICT));
        rig_init(&there, profile_options(WEIR_PROFILE_STRICT));
        if (what == 0)
            here.gate->robots_delay_ns = INT64_MAX;
        else if (what == 1)
            here.gate->robots_delay_ns = -1;
        else if (what == 2)
            here.gate->last_start_at = T0 + S;
        else if (what == 3)
            here.gate->noted_rate = NAN;
        else
            here.gate->hold_reason = UINT8_MAX;
        assert_false(hand_over(&here, T0, &there, T0, 0, false));
        assert_waits(&there, T0, WEIR_REASON_PACE, S);
        rig_release(&here);
        rig_release(&there);
    }
}

static void damaged_packed_gate_is_refused_and_costs_an_interval(void **state)
{
    (void)state;
    struct gate_fixture rig, other;
    rig_init(&rig, profile_options(WEIR_PROFILE_STRICT));
    rig_init(&other, profile_options(WEIR_PROFILE_STRICT));
    size_t bytes = wr_gate_packed_bytes(&rig.options);
    char *packed = malloc(bytes);
    assert_non_null(packed);
    for (size_t i = 0; i < bytes; i++) {
        wr_gate_pack(rig.gate, &rig.options, T0, packed);
        packed[i] = (char)(packed[i] ^ 0x41);
        assert_false(wr_gate_unpack(other.gate, &other.options, packed, bytes, 0, false, T0 + S * (int64_t)i));
        assert_waits(&other, T0 + S * (int64_t)i, WEIR_REASON_PACE, S);
        assert_false(wr_gate_unpack(other.gate, &other.options, packed, i, 0, false, T0 + S * (int64_t)i));
    }
    free(packed);
    rig_release(&rig);
    rig_release(&other);
}

static void gate_with_any_strategy_is_at_most_512_bytes(void **state)
{
    (void)state;
    weir_pace_options options = profile_options(WEIR_PROFILE_UNLIMITED);
    size_t bare = wr_gate_bytes(&options);
    assert_true(bare + 184 <= 512); /* the size that a strategy's state may have */
    for (int i = 0; weir_strategy_name((weir_strategy)i) != NULL; i++) {
        options.strategy = (weir_strategy)i;
        print_message("%s: %zu bytes\n", weir_strategy_name(options.strategy), wr_gate_bytes(&options));
        assert_true(wr_strategy_of(options.strategy)->state_bytes <= 192);
        assert_true(wr_gate_bytes(&options) <= 512);
        assert_int_equal(wr_gate_bytes(&options) % 8, 0);
    }
}

WEIR_TESTS(test(gate_with_any_strategy_is_at_most_512_bytes),
           test(gate_handed_between_processes_decides_as_one_that_stays),
           test(unknown_transfer_time_of_a_gate_only_delays), test(gate_of_a_lost_holder_waits_a_full_interval),
           test(server_named_times_are_kept_by_sender_and_receiver_of_a_gate),
           test(reservation_is_not_handed_over_and_requests_are_recounted),
           test(gate_of_another_strategy_hands_over_server_named_times),
           test(gate_with_other_ring_sizes_hands_over_server_named_times),
           test(packed_gate_with_state_out_of_range_keeps_the_receivers_state),
           test(packed_gate_of_absurd_values_is_refused_and_costs_an_interval),
           test(damaged_packed_gate_is_refused_and_costs_an_interval))
