/* SPDX-License-Identifier: MIT */
/* test_letter.c - tests of messages that report the outcome of a request to another process. */
#include "base/rng.h"
#include "cluster/gate/shared_gate_state.h"
#include "lib/test.h"

#define S WEIR_SECOND

static void gate_message_is_parsed_as_it_was_written(void **state)
{
    (void)state;
    char memory[1000];
    struct wr_buf text;
    struct wr_gate_report one = {.start = {7, 3, 100 * S},
                                 .word = WR_REMOTE_HEAD,
                                 .outcome = {.status = 429, .attempt = 2}},
                          got;
    struct wr_gate_report two = {.outcome = {.latency_ns = 5}},
                          late = {.start = {8, 1, 99 * S}, .word = WR_REMOTE_SENT_LATE};
    one.outcome.has_retry_after = one.outcome.has_quota = true;
    one.outcome.latency_ns = 9;
    one.outcome.retry_after_ns = 60 * S;
    one.outcome.quota_limit = 100;
    one.outcome.quota_remaining = 0;
    one.outcome.quota_reset_ns = -1;
    wr_buf_init_fixed(&text, memory, sizeof memory);
    wr_gate_report_write(&text, &one, 101 * S);
    wr_gate_report_write(&text, &two, 101 * S);
    wr_gate_report_write(&text, &late, 101 * S);
    struct wr_span left = wr_buf_from(&text, 0);
    /* The message took a second, and the receiver's clock shows 5000 s. */
    assert_true(wr_gate_report_read(&left, S, 5000 * S, &got));
    assert_true(got.start.seq == 7 && got.start.in_flight == 3 && got.start.sent_at == 4998 * S &&
                got.word == WR_REMOTE_HEAD);
    assert_true(got.outcome.size == sizeof(weir_outcome) && got.outcome.status == 429 && got.outcome.attempt == 2);
    assert_true(got.outcome.has_retry_after && got.outcome.retry_after_ns == 60 * S && got.outcome.latency_ns == 9);
    assert_true(got.outcome.has_quota && got.outcome.quota_limit == 100 && got.outcome.quota_remaining == 0);
    assert_true(got.outcome.quota_reset_ns == -1);
    assert_true(wr_gate_report_read(&left, S, 5000 * S, &got));
    assert_true(got.start.seq == 0 && got.word == WR_REMOTE_ENDED && got.outcome.status == 0 &&
                got.outcome.latency_ns == 5);
    assert_false(got.outcome.has_retry_after || got.outcome.has_quota);
    assert_true(wr_gate_report_read(&left, S, 5000 * S, &got));
    assert_true(got.start.seq == 8 && got.word == WR_REMOTE_SENT_LATE && got.start.sent_at == 4997 * S);
    assert_false(wr_gate_report_read(&left, S, 5000 * S, &got));
}

static void invalid_gate_message_is_refused(void **state)
{
    (void)state;
    static const char good[] = "0 1 1 5 200 7 -1 -1 -1 -1 1 \n";
    struct wr_gate_report got;
    struct wr_rng rng;
    wr_rng_init(&rng, weir_test_seed());
    for (size_t bytes = 0; bytes < sizeof good - 1; bytes++) {
        struct wr_span cut = {good, bytes};
        assert_false(wr_gate_report_read(&cut, 0, S, &got));
    }
    struct wr_span whole = {good, sizeof good - 1};
    assert_true(wr_gate_report_read(&whole, 0, S, &got));
    for (int i = 0; i < 100000; i++) {
        char text[sizeof good];
        memcpy(text, good, sizeof good);
        text[wr_rng_below(&rng, sizeof good - 1)] = (char)wr_rng_next(&rng);
        struct wr_span odd = {text, sizeof good - 1};
        (void)wr_gate_report_read(&odd, WEIR_DURATION_MAX, S, &got);
        struct wr_span unknown = wr_span_of("3 1 1 5 200 7 -1 -1 -1 -1 1 \n");
        assert_false(wr_gate_report_read(&unknown, 0, S, &got));
        struct wr_span huge = wr_span_of("0 99999999999999999999 1 5 200 7 -1 -1 -1 -1 1 \n");
        assert_false(wr_gate_report_read(&huge, 0, S, &got));
    }
}

WEIR_TESTS(test(gate_message_is_parsed_as_it_was_written), test(invalid_gate_message_is_refused))
