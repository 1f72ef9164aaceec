/* SPDX-License-Identifier: MIT */
/* test_pacer_lend.c - tests of a gate that several processes share, one of them at a time. */
#include "limiter/clock/clock.h"
#include "limiter/pacer/remote_gate.h"
#include "rig.h"

#define PACKED_MAX 4096

struct lending {
    int wanted, told, news;
    struct wr_gate_start start;
    weir_outcome outcome;
    bool has_outcome;
    enum wr_remote_report_kind word;
};

static void want(void *context, const char *key, size_t key_bytes)
{
    struct lending *lending = context;
    assert_int_equal(key_bytes, 1);
    assert_memory_equal(key, "h", 1);
    lending->wanted++;
}

static void told(void *context, const struct wr_remote_report *away)
{
    struct lending *lending = context;
    lending->told++;
    lending->start = *away->start;
    lending->has_outcome = away->outcome != NULL;
    lending->word = away->word;
    if (away->outcome != NULL)
        lending->outcome = *away->outcome;
}

static void news(void *context, const char *key, size_t key_bytes)
{
    struct lending *lending = context;
    assert_memory_equal(key, "h", key_bytes);
    lending->news++;
}

static void set_up(struct pacing *pacing, struct lending *lending)
{
    pacing_set_up(pacing, WEIR_PROFILE_STRICT);
    *lending = (struct lending){.wanted = 0};
    assert_int_equal(wr_pacer_share_gates(pacing->pacer, &(struct wr_remote_gate_callbacks){want, told, news, lending}),
                     0);
    assert_true(wr_pacer_gate_packed_bytes(pacing->pacer) <= PACKED_MAX);
}

static int64_t now_of(const struct pacing *pacing)
{
    return weir_clock_now(pacing->clock);
}

/* Brings a free gate into this pacer for `for_ns`. */
static void bring(struct pacing *pacing, int64_t for_ns)
{
    assert_false(host_goes(pacing, "h")); /* adds the key */
    assert_true(wr_pacer_gate_import(pacing->pacer, "h", 1, "", 0, 0, false));
    pass(pacing, WEIR_SECOND);
    wr_pacer_gate_extend(pacing->pacer, "h", 1, now_of(pacing) + for_ns, wr_clock_sleep_mark());
}

/* Brings the gate for a minute and starts a request. */
static weir_permit set_up_flight(struct pacing *pacing, struct lending *lending)
{
    set_up(pacing, lending);
    bring(pacing, WEIR_MINUTE);
    return acquired(pacing, "h", 0);
}

static void gate_in_another_process_blocks_starts_and_is_requested(void **state)
{
    (void)state;
    struct pacing pacing;
    struct lending lending;
    weir_permit permit;
    set_up(&pacing, &lending);
    weir_decision decision = try_host(&pacing, "h", 0, &permit);
    assert_int_equal(decision.verdict, WEIR_WAIT);
    assert_int_equal(decision.reason, WEIR_REASON_SHARE);
    assert_true(decision.wait_ns == WEIR_UNTIL_RELEASE);
    assert_int_equal(lending.wanted, 1); /* a caller that tries is expected to try again */
    assert_int_equal(look_at(&pacing, "h").decision.reason, WEIR_REASON_SHARE);
    struct fetcher waiter;
    fetcher_wait(&waiter, &pacing, "h", 0, WEIR_FOREVER, NULL);
    assert_int_equal(lending.wanted, 2);
    struct wr_pacer_gate_state lent;
    assert_true(wr_pacer_gate_state_get(pacing.pacer, "h", 1, &lent));
    assert_int_equal(lent.waiters, 1);
    /* Brings the gate without its past, so the first start waits one interval. */
    assert_true(wr_pacer_gate_import(pacing.pacer, "h", 1, "", 0, 0, false));
    pass(&pacing, WEIR_SECOND);
    assert_int_equal(atomic_load(&pacing.finished), 0);
    wr_pacer_gate_extend(pacing.pacer, "h", 1, now_of(&pacing) + WEIR_SECOND, wr_clock_sleep_mark());
    assert_int_equal(fetcher_join(&waiter), 0);
    tell(&waiter.permit, 200);
    assert_int_equal(lending.told, 0);
    pacing_tear_down(&pacing);
}

static void expired_gate_lease_withdraws_unsent_permits(void **state)
{
    (void)state;
    struct pacing pacing;
    struct lending lending;
    set_up(&pacing, &lending);
    bring(&pacing, 500 * MS);
    weir_permit permit = acquired(&pacing, "h", WEIR_REPORTS_SENT);
    pass(&pacing, 500 * MS); /* for example while the process is stopped */
    assert_int_equal(weir_permit_sent(&permit), WEIR_E_WITHDRAWN);
    assert_null(permit.pacer);
    pacing_tear_down(&pacing);
}

static void outcome_after_the_gate_has_moved_is_reported_to_its_holder(void **state)
{
    (void)state;
    struct pacing pacing;
    struct lending lending;
    char packed[PACKED_MAX];
    weir_permit permit = set_up_flight(&pacing, &lending);
    int64_t sent_at = now_of(&pacing);
    assert_true(wr_pacer_gate_export(pacing.pacer, "h", 1, true, packed));
    assert_false(wr_pacer_gate_export(pacing.pacer, "h", 1, true, packed)); /* it was packed already */
    struct wr_pacer_gate_state lent;
    assert_true(wr_pacer_gate_state_get(pacing.pacer, "h", 1, &lent));
    assert_int_equal(lent.flights, 1);
    pass(&pacing, 300 * MS);
    weir_outcome outcome = answer_retry_after(429, WEIR_MINUTE);
    assert_int_equal(weir_permit_head(&permit, &outcome), 0);
    assert_true(lending.told == 1 && lending.word == WR_REMOTE_HEAD && lending.outcome.retry_after_ns == WEIR_MINUTE);
    assert_int_equal(weir_permit_finish(&permit, &outcome), 0);
    assert_true(lending.told == 2 && lending.word == WR_REMOTE_ENDED && lending.outcome.status == 429);
    assert_true(lending.start.seq == 1 && lending.start.sent_at == sent_at);
    assert_true(wr_pacer_gate_state_get(pacing.pacer, "h", 1, &lent));
    assert_int_equal(lent.flights, 0);
    assert_int_equal(lending.news, 0);
    pacing_tear_down(&pacing);
}

static void outcome_that_arrives_with_the_gate_applies_before_any_start(void **state)
{
    (void)state;
    struct pacing here, there;
    struct lending lending[2];
    char packed[PACKED_MAX];
    weir_permit permit = set_up_flight(&here, &lending[0]);
    set_up(&there, &lending[1]);
    assert_true(wr_pacer_gate_export(here.pacer, "h", 1, true, packed));
    weir_outcome outcome = answer_retry_after(429, WEIR_MINUTE);
    assert_int_equal(weir_permit_finish(&permit, &outcome), 0);
    assert_false(host_goes(&there, "h"));
    pass(&there, WEIR_HOUR); /* the other process has another clock */
    assert_true(wr_pacer_gate_import(there.pacer, "h", 1, packed, wr_pacer_gate_packed_bytes(here.pacer), 0, false));
    struct wr_remote_report away = {"h", 1, &lending[0].start, &lending[0].outcome, WR_REMOTE_ENDED, now_of(&there)};
    wr_pacer_gate_tell_remote(there.pacer, &away);
    wr_pacer_gate_set_remote_count(there.pacer, "h", 1, 3);
    wr_pacer_gate_extend(there.pacer, "h", 1, now_of(&there) + WEIR_HOUR, wr_clock_sleep_mark());
    weir_permit other;
    weir_decision decision = try_host(&there, "h", 0, &other);
    assert_int_equal(decision.reason, WEIR_REASON_RETRY_AFTER);
    assert_true(decision.wait_ns >= WEIR_MINUTE);
    assert_int_equal(look_at(&there, "h").in_flight, 3);
    pacing_tear_down(&here);
    pacing_tear_down(&there);
}

/* The process with the gate has another clock, and the message arrives half a second late. */
static void late_send_is_reported_to_the_process_with_the_gate(void **state)
{
    (void)state;
    struct pacing here, there;
    struct lending lending[2];
    char packed[PACKED_MAX];
    weir_permit other;
    weir_permit permit = set_up_flight(&here, &lending[0]);
    set_up(&there, &lending[1]);
    weir_permit_sent_late(&permit);
    assert_int_equal(lending[0].told, 0); /* the gate is still here */
    assert_true(wr_pacer_gate_export(here.pacer, "h", 1, true, packed));
    assert_false(host_goes(&there, "h"));
    pass(&there, WEIR_HOUR);
    pass(&here, 2 * WEIR_SECOND);
    weir_permit_sent_late(&permit);
    assert_true(lending[0].told == 1 && lending[0].word == WR_REMOTE_SENT_LATE && !lending[0].has_outcome);
    assert_true(lending[0].start.sent_at == now_of(&here));
    assert_true(wr_pacer_gate_import(there.pacer, "h", 1, packed, wr_pacer_gate_packed_bytes(here.pacer),
                                     3 * WEIR_SECOND, false));
    struct wr_gate_start start = lending[0].start;
    start.sent_at = now_of(&there) - 500 * MS;
    struct wr_remote_report away = {"h", 1, &start, NULL, WR_REMOTE_SENT_LATE, now_of(&there)};
    wr_pacer_gate_tell_remote(there.pacer, &away);
    wr_pacer_gate_extend(there.pacer, "h", 1, now_of(&there) + WEIR_HOUR, wr_clock_sleep_mark());
    assert_int_equal(try_host(&there, "h", 0, &other).wait_ns, 500 * MS); /* the interval is 1 s */
    pass(&there, 500 * MS);
    assert_true(host_goes(&there, "h"));
    weir_outcome outcome = {.size = sizeof outcome, .status = 200};
    assert_int_equal(weir_permit_finish(&permit, &outcome), 0);
    pacing_tear_down(&here);
    pacing_tear_down(&there);
}

static void retry_after_is_reported_to_all_processes_at_once(void **state)
{
    (void)state;
    struct pacing pacing;
    struct lending lending;
    weir_permit permit = set_up_flight(&pacing, &lending);
    weir_outcome outcome = answer_retry_after(429, WEIR_MINUTE);
    assert_int_equal(weir_permit_finish(&permit, &outcome), 0);
    assert_int_equal(lending.news, 1);
    assert_int_equal(lending.told, 0);
    pacing_tear_down(&pacing);
}

static void refusal_without_retry_after_is_not_reported_to_all_processes(void **state)
{
    (void)state;
    struct pacing pacing;
    struct lending lending;
    weir_permit permit = set_up_flight(&pacing, &lending);
    tell(&permit, 429);
    assert_int_equal(lending.news, 0);
    pacing_tear_down(&pacing);
}

/* The request was not sent, so its report must not name a start that another request made. */
static void unsent_request_reports_no_start_after_its_gate_has_moved(void **state)
{
    (void)state;
    struct pacing pacing;
    struct lending lending;
    char packed[PACKED_MAX];
    set_up(&pacing, &lending);
    bring(&pacing, WEIR_MINUTE);
    weir_permit permit = acquired(&pacing, "h", WEIR_REPORTS_SENT);
    lending.start.seq = 99;
    assert_true(wr_pacer_gate_export(pacing.pacer, "h", 1, true, packed));
    weir_permit_abandon(&permit);
    assert_true(lending.told == 1 && !lending.has_outcome && lending.start.seq == 0);
    pacing_tear_down(&pacing);
}

static void gate_of_an_unknown_host_is_neither_imported_nor_exported(void **state)
{
    (void)state;
    struct pacing pacing;
    struct lending lending;
    struct wr_pacer_gate_state lent;
    char packed[PACKED_MAX];
    set_up(&pacing, &lending);
    assert_false(wr_pacer_gate_import(pacing.pacer, "h", 1, "", 0, 0, false));
    assert_false(wr_pacer_gate_export(pacing.pacer, "h", 1, true, packed));
    assert_false(wr_pacer_gate_state_get(pacing.pacer, "h", 1, &lent));
    assert_false(host_known(&pacing, "h"));
    pacing_tear_down(&pacing);
}

static void host_with_requests_in_flight_is_kept_after_its_gate_moved(void **state)
{
    (void)state;
    struct pacing pacing;
    struct lending lending;
    char packed[PACKED_MAX];
    weir_permit permit = set_up_flight(&pacing, &lending);
    assert_true(wr_pacer_gate_export(pacing.pacer, "h", 1, true, packed));
    pass(&pacing, WEIR_DAY);
    assert_int_equal(weir_pacer_sweep(pacing.pacer), 0);
    weir_permit_abandon(&permit);
    assert_true(lending.told == 1 && !lending.has_outcome);
    pass(&pacing, WEIR_DAY);
    assert_int_equal(weir_pacer_sweep(pacing.pacer), 1);
    pacing_tear_down(&pacing);
}

static void pacer_with_groups_cannot_share_gates(void **state)
{
    (void)state;
    struct pacing pacing;
    struct lending lending = {.wanted = 0};
    pacing_init(&pacing, WEIR_PROFILE_STRICT);
    pacing.options.groups = WEIR_GROUP_ADDRESS;
    pacing_start(&pacing);
    assert_int_equal(wr_pacer_share_gates(pacing.pacer, &(struct wr_remote_gate_callbacks){want, told, news, &lending}),
                     WEIR_E_INVAL);
    pacing_tear_down(&pacing);
}

WEIR_TESTS(test(refusal_without_retry_after_is_not_reported_to_all_processes),
           test(unsent_request_reports_no_start_after_its_gate_has_moved),
           test(gate_of_an_unknown_host_is_neither_imported_nor_exported),
           test(gate_in_another_process_blocks_starts_and_is_requested),
           test(expired_gate_lease_withdraws_unsent_permits),
           test(outcome_after_the_gate_has_moved_is_reported_to_its_holder),
           test(outcome_that_arrives_with_the_gate_applies_before_any_start),
           test(late_send_is_reported_to_the_process_with_the_gate),
           test(retry_after_is_reported_to_all_processes_at_once),
           test(host_with_requests_in_flight_is_kept_after_its_gate_moved), test(pacer_with_groups_cannot_share_gates))
