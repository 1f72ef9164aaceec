/* SPDX-License-Identifier: MIT */
/* test_pacer_look.c - tests of what a pacer reports: hosts, statistics, events. */
#include "rig.h"

static void caller_can_distinguish_granted_waited_and_refused(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    weir_permit permit;
    weir_decision decision;
    assert_int_equal(weir_pacer_acquire(pacing.pacer, "h", 1, 0, WEIR_FOREVER, NULL, &permit, &decision), 0);
    assert_int_equal(decision.verdict, WEIR_GO);
    assert_int_equal(permit.waited_ns, 0);
    tell(&permit, 200);
    struct fetcher fetcher;
    fetcher_wait(&fetcher, &pacing, "h", 0, WEIR_FOREVER, NULL);
    pass(&pacing, WEIR_SECOND);
    assert_int_equal(fetcher_join(&fetcher), 0);
    assert_true(fetcher.permit.waited_ns == WEIR_SECOND);
    assert_int_equal(fetcher.permit.waited_for, WEIR_REASON_PACE);
    tell(&fetcher.permit, 200);
    assert_int_equal(weir_pacer_acquire(pacing.pacer, "h", 1, 0, 0, NULL, &permit, &decision), WEIR_E_TIMEOUT);
    assert_int_equal(decision.verdict, WEIR_WAIT);
    assert_null(permit.pacer);
    weir_pacer_stats stats = pacer_stats(&pacing);
    assert_int_equal(stats.requests, 2);
    assert_int_equal(stats.throttled, 1);
    assert_true(stats.waited_ns == (uint64_t)WEIR_SECOND);
    pacing_tear_down(&pacing);
}

/* S0-93. */
static void wait_of_more_than_10_ms_counts_as_throttled(void **state)
{
    static const struct {
        int64_t waits_ns;
        uint64_t throttled;
    } rows[] = {{10 * WEIR_MILLISECOND, 0}, {10 * WEIR_MILLISECOND + 1, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pacing pacing;
        struct fetcher fetcher;
        pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
        fetch(&pacing, "h", 200);
        pass(&pacing, WEIR_SECOND - rows[i].waits_ns);
        fetcher_wait(&fetcher, &pacing, "h", 0, WEIR_FOREVER, NULL);
        pass(&pacing, rows[i].waits_ns);
        assert_int_equal(fetcher_join(&fetcher), 0);
        assert_true(fetcher.permit.waited_ns == rows[i].waits_ns);
        tell(&fetcher.permit, 200);
        assert_int_equal(pacer_stats(&pacing).throttled, rows[i].throttled);
        pacing_tear_down(&pacing);
    }
}

static void inspect_shows_a_host_and_each_of_its_limits(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_AIMD);
    assert_int_equal(weir_pacer_robots_delay(pacing.pacer, "h", 1, 3 * WEIR_SECOND), 0);
    weir_permit permit = acquired(&pacing, "h", 0);
    weir_outcome outcome = answer_retry_after(503, 10 * WEIR_SECOND);
    outcome.attempt = 2;
    assert_int_equal(weir_permit_finish(&permit, &outcome), 0);
    weir_pace_entry entry;
    weir_pace_bound bounds[WEIR_PACE_BOUNDS_MAX];
    size_t count = 0, robots = 0, retry_after = 0;
    assert_int_equal(weir_pacer_inspect(pacing.pacer, "h", 1, &entry, bounds, &count), 0);
    for (size_t i = 0; i < count; i++) {
        robots += bounds[i].reason == WEIR_REASON_ROBOTS_DELAY && bounds[i].wait_ns == 3 * WEIR_SECOND;
        retry_after += bounds[i].reason == WEIR_REASON_RETRY_AFTER && bounds[i].wait_ns >= 10 * WEIR_SECOND;
    }
    assert_int_equal(robots, 1);
    assert_int_equal(retry_after, 1);
    assert_int_equal(entry.key_bytes, 1);
    assert_int_equal(entry.decision.reason, WEIR_REASON_RETRY_AFTER);
    assert_true(entry.delay_ns >= 3 * WEIR_SECOND);
    assert_int_equal(entry.error_streak, 1);
    assert_int_equal(entry.rejected, 1);
    assert_int_equal(pacer_stats(&pacing).retries, 1);
    assert_int_equal(weir_pacer_inspect(pacing.pacer, "k", 1, &entry, NULL, NULL), WEIR_E_ABSENT);
    assert_int_equal(weir_pacer_inspect(pacing.pacer, "h", 1, &entry, bounds, NULL), WEIR_E_INVAL);
    pacing_tear_down(&pacing);
}

static void top_lists_the_most_active_hosts_and_no_more_than_asked_for(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    char key[KEY_BYTES];
    for (int i = 0; i < 30; i++) {
        (void)snprintf(key, sizeof key, "host%02d", i);
        fetch(&pacing, key, i == 29 ? 500 : 200);
        pass(&pacing, WEIR_SECOND);
    }
    weir_pace_entry *entries;
    size_t count;
    assert_int_equal(weir_pacer_top(pacing.pacer, 3, &entries, &count), 0);
    assert_int_equal(count, 3);
    assert_memory_equal(entries[0].key, "host29", 6);
    assert_memory_equal(entries[1].key, "host28", 6);
    assert_memory_equal(entries[2].key, "host27", 6);
    assert_int_equal(entries[0].key_bytes, 6);
    assert_true(entries[0].error_rate > 0.99);
    assert_true(entries[1].error_rate < 0.01);
    assert_int_equal(entries[1].starts, 1);
    weir_pacer_top_free(pacing.pacer, entries);
    assert_int_equal(weir_pacer_top(pacing.pacer, 0, &entries, &count), 0);
    assert_int_equal(count, 10);
    weir_pacer_top_free(pacing.pacer, entries);
    assert_int_equal(weir_pacer_top(pacing.pacer, WEIR_PACE_TOP_MAX + 1, &entries, &count), WEIR_E_INVAL);
    assert_int_equal(pacer_stats(&pacing).hosts, 30);
    pacing_tear_down(&pacing);
}

/* S2-17, S2-18: the base delay is 500 ms; each 5 s above it reduces the concurrency by one. */
static void recommended_concurrency_falls_with_the_delay_and_comes_back(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_LEARNED);
    assert_int_equal(weir_pacer_concurrency(pacing.pacer, "h", 1, 4), 4);
    uint32_t at_delay[] = {4, 4, 4, 4, 4, 3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1};
    for (size_t i = 1; i < sizeof at_delay / sizeof *at_delay; i++) {
        pass(&pacing, 2 * WEIR_MINUTE);
        fetch(&pacing, "h", 429);
        uint32_t now = weir_pacer_concurrency(pacing.pacer, "h", 1, 4);
        uint32_t expected = look_at(&pacing, "h").delay_ns >= (int64_t)i * WEIR_SECOND ? at_delay[i] : 0;
        assert_int_equal(now, expected);
    }
    for (int i = 0; i < 500 && look_at(&pacing, "h").delay_ns > 5 * WEIR_SECOND; i++) {
        pass(&pacing, WEIR_MINUTE);
        fetch(&pacing, "h", 200);
    }
    assert_int_equal(weir_pacer_concurrency(pacing.pacer, "h", 1, 4), 4);
    pacing_tear_down(&pacing);
}

/* ---- events ---- */

#define HEARD_MAX 64

struct heard {
    struct pacing *pacing;
    int count;
    weir_pace_event events[HEARD_MAX];
};

/* Calls the pacer, which holds no lock while it calls a listener. */
static void listen(void *context, const weir_pace_event *event)
{
    struct heard *heard = context;
    weir_pace_entry entry;
    assert_int_equal(weir_pacer_inspect(heard->pacing->pacer, event->key, event->key_bytes, &entry, NULL, NULL), 0);
    assert_non_null(weir_pace_event_name(event->kind));
    assert_in_range(heard->count, 0, HEARD_MAX - 1);
    heard->events[heard->count++] = *event;
}

/* Initializes like pacing_init, with a listener that records all events. */
static void listening_init(struct pacing *pacing, struct heard *heard, weir_profile profile)
{
    pacing_init(pacing, profile);
    *heard = (struct heard){.pacing = pacing};
    pacing->options.listener = listen;
    pacing->options.listener_context = heard;
}

static const weir_pace_event *heard_of(const struct heard *heard, weir_pace_event_kind kind)
{
    for (int i = 0; i < heard->count; i++)
        if (heard->events[i].kind == kind)
            return &heard->events[i];
    return NULL;
}

static void listener_gets_all_changes_and_may_call_the_pacer(void **state)
{
    (void)state;
    struct pacing pacing;
    struct heard heard;
    listening_init(&pacing, &heard, WEIR_PROFILE_LEARNED);
    pacing.pace.consecutive_failures = 3;
    pacing_start(&pacing);
    fetch(&pacing, "h", 200);
    assert_int_equal(heard.count, 0);
    pass(&pacing, 10 * WEIR_SECOND);
    fetch(&pacing, "h", 429);
    const weir_pace_event *changed = heard_of(&heard, WEIR_PACE_CHANGED);
    assert_non_null(changed);
    assert_true(changed->delay_ns == 1500 * MS);
    assert_int_equal(changed->error_streak, 1);
    assert_non_null(heard_of(&heard, WEIR_PACE_REJECTED));
    assert_int_equal(heard_of(&heard, WEIR_PACE_REJECTED)->status, 429);
    assert_null(heard_of(&heard, WEIR_PACE_RETRY_AFTER));
    pass(&pacing, 10 * WEIR_SECOND);
    weir_permit permit = acquired(&pacing, "h", 0);
    weir_outcome outcome = answer_retry_after(503, 5 * WEIR_SECOND);
    assert_int_equal(weir_permit_finish(&permit, &outcome), 0);
    assert_non_null(heard_of(&heard, WEIR_PACE_RETRY_AFTER));
    assert_true(heard_of(&heard, WEIR_PACE_RETRY_AFTER)->wait_ns >= 5 * WEIR_SECOND);
    for (int i = 0; i < 3; i++) {
        pass(&pacing, WEIR_MINUTE);
        fetch(&pacing, "h", 0);
    }
    assert_non_null(heard_of(&heard, WEIR_PACE_BREAKER));
    assert_int_equal(heard_of(&heard, WEIR_PACE_BREAKER)->breaker, WEIR_BREAKER_OPEN);
    pacing_tear_down(&pacing);
}

static void hopeless_host_is_reported_once(void **state)
{
    (void)state;
    struct pacing pacing;
    struct heard heard;
    listening_init(&pacing, &heard, WEIR_PROFILE_LEARNED);
    pacing.pace.max_delay_ns = pacing.pace.cancel_delay_ns = 2 * WEIR_SECOND;
    pacing.pace.cancel_after = 3;
    pacing.pace.breaker = false;
    pacing_start(&pacing);
    int hopeless = 0;
    for (int i = 0; i < 12; i++) {
        pass(&pacing, WEIR_MINUTE);
        heard.count = 0;
        fetch(&pacing, "h", 429);
        hopeless += heard_of(&heard, WEIR_PACE_HOPELESS) != NULL;
    }
    assert_int_equal(hopeless, 1);
    pacing_tear_down(&pacing);
}

static void listener_gets_the_reason_and_length_of_a_wait(void **state)
{
    (void)state;
    struct pacing pacing;
    struct heard heard;
    listening_init(&pacing, &heard, WEIR_PROFILE_STRICT);
    pacing_start(&pacing);
    fetch(&pacing, "example.org", 200);
    pass(&pacing, 250 * MS);
    struct fetcher fetcher;
    fetcher_wait(&fetcher, &pacing, "example.org", 0, WEIR_FOREVER, NULL);
    assert_int_equal(heard.count, 1);
    assert_int_equal(heard.events[0].kind, WEIR_PACE_WAITING);
    assert_int_equal(heard.events[0].reason, WEIR_REASON_PACE);
    assert_true(heard.events[0].wait_ns == 750 * MS);
    pass(&pacing, 750 * MS);
    assert_int_equal(fetcher_join(&fetcher), 0);
    tell(&fetcher.permit, 200);
    pacing_tear_down(&pacing);
}

/* K3 */
struct ending {
    weir_pacer *pacer;
    int times;
};

static void free_at_once(void *context, const weir_pace_event *event)
{
    (void)event;
    struct ending *ending = context;
    if (ending->times++ == 0)
        weir_pacer_free(ending->pacer);
}

static bool free_while_saving(void *context, const char *key, size_t key_bytes, const weir_pace_memory *memory)
{
    (void)key, (void)key_bytes, (void)memory;
    free_at_once(context, NULL);
    return true;
}

static void callback_may_free_the_pacer(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        struct pacing pacing;
        struct ending ending = {.times = 0};
        weir_outcome outcome = answer_retry_after(429, WEIR_SECOND);
        pacing_init(&pacing, WEIR_PROFILE_LEARNED);
        pacing.options.groups = WEIR_GROUP_DOMAIN;
        if (way < 3) {
            pacing.options.listener = free_at_once;
            pacing.options.listener_context = &ending;
        }
        pacing_start(&pacing);
        ending.pacer = pacing.pacer;
        weir_permit permit = acquired(&pacing, "www.example.org", 0);
        if (way == 0) {
            assert_int_equal(weir_permit_finish(&permit, &outcome), 0);
        } else if (way == 1) {
            weir_permit_abandon(&permit);
            assert_int_equal(weir_pacer_tell(pacing.pacer, "www.example.org", 15, &outcome), 0);
        } else if (way == 2) {
            weir_permit_abandon(&permit);
            assert_int_equal(
                weir_pacer_acquire(pacing.pacer, "www.example.org", 15, 0, WEIR_FOREVER, NULL, &permit, NULL),
                WEIR_E_CLOSED);
        } else {
            weir_permit_abandon(&permit);
            assert_int_equal(weir_pacer_robots_delay(pacing.pacer, "example.org", 11, WEIR_SECOND), 0);
            assert_int_equal(weir_pacer_export(pacing.pacer, free_while_saving, &ending), 1);
        }
        assert_true(ending.times > 0);
        weir_clock_fake_free(pacing.clock);
        weir_clock_fake_free(pacing.wall);
    }
}

WEIR_TESTS(test(caller_can_distinguish_granted_waited_and_refused), test(wait_of_more_than_10_ms_counts_as_throttled),
           test(inspect_shows_a_host_and_each_of_its_limits),
           test(top_lists_the_most_active_hosts_and_no_more_than_asked_for),
           test(recommended_concurrency_falls_with_the_delay_and_comes_back),
           test(listener_gets_all_changes_and_may_call_the_pacer), test(hopeless_host_is_reported_once),
           test(listener_gets_the_reason_and_length_of_a_wait), test(callback_may_free_the_pacer))
