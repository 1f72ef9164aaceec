/* SPDX-License-Identifier: MIT */
/* test_pacer_memory.c - tests that a pacer's memory is bounded, stored, and freed only if it no
 * longer delays requests. */
#include "rig.h"

#include "lib/alloc.h"
#include "limiter/pacer/pacer.h"

/* ---- forgetting hosts ---- */

/* S1-23, S1-24, S0-13: hosts are forgotten after an hour without use. */
static void hosts_unused_for_the_ttl_are_forgotten_and_recent_ones_kept(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_init(&pacing, WEIR_PROFILE_STRICT);
    pacing.options.ttl_ns = WEIR_HOUR;
    pacing_start(&pacing);
    fetch(&pacing, "old", 200);
    pass(&pacing, 40 * WEIR_MINUTE);
    fetch(&pacing, "recent", 200);
    pass(&pacing, 21 * WEIR_MINUTE);
    assert_int_equal(weir_pacer_sweep(pacing.pacer), 1);
    assert_false(host_known(&pacing, "old"));
    assert_true(host_known(&pacing, "recent"));
    pass(&pacing, 40 * WEIR_MINUTE);
    assert_int_equal(weir_pacer_sweep(pacing.pacer), 1);
    assert_int_equal(pacer_stats(&pacing).hosts, 0);
    pacing_tear_down(&pacing);
}

/* R9, S0-90, L5. */
static void sweep_keeps_hosts_that_still_delay_requests(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_init(&pacing, WEIR_PROFILE_STRICT);
    pacing.pace.open_ns = WEIR_HOUR;
    pacing_start(&pacing);
    weir_permit in_flight = acquired(&pacing, "in_flight", 0);
    weir_permit retry = acquired(&pacing, "retry_after", 0);
    weir_outcome outcome = answer_retry_after(429, WEIR_HOUR);
    assert_int_equal(weir_permit_finish(&retry, &outcome), 0);
    fetch(&pacing, "open", 500);
    outcome = answer(500, MS);
    for (int i = 0; i < 4; i++)
        assert_int_equal(weir_pacer_tell(pacing.pacer, "open", 4, &outcome), 0);
    assert_int_equal(weir_pacer_pause(pacing.pacer, "paused", 6, true), 0);
    assert_int_equal(weir_pacer_robots_delay(pacing.pacer, "slow", 4, 10 * WEIR_SECOND), 0);
    fetch(&pacing, "slow", 200);
    fetch(&pacing, "idle", 200);
    pass(&pacing, 20 * WEIR_MINUTE); /* the TTL is 2 minutes */
    assert_int_equal(weir_pacer_sweep(pacing.pacer), 1);
    static const char *const spared[] = {"in_flight", "retry_after", "open", "paused", "slow"};
    for (size_t i = 0; i < sizeof spared / sizeof *spared; i++)
        assert_true(host_known(&pacing, spared[i]));
    assert_false(host_known(&pacing, "idle"));
    tell(&in_flight, 200);
    pass(&pacing, WEIR_HOUR);
    /* Hosts that are paused, half open or have a Crawl-delay are kept. */
    assert_int_equal(weir_pacer_sweep(pacing.pacer), 2);
    pass(&pacing, WEIR_DAY);
    assert_int_equal(weir_pacer_sweep(pacing.pacer), 2); /* only the paused host is left */
    pacing_tear_down(&pacing);
}

/* S0-70, S1-13: the thread sweeps every TTL/2, and ends with the pacer. */
static void pacer_thread_sweeps_every_half_ttl(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_init(&pacing, WEIR_PROFILE_STRICT);
    pacing.options.sweep_every_ns = 0;
    pacing_start(&pacing);
    assert_int_equal(pacing.pacer->table->sweep_every_ns,
                     WEIR_MINUTE); /* half of the 2 minutes after which a host is forgotten */
    fetch(&pacing, "h", 200);
    for (int i = 0; i < 3; i++) {
        test_await_waiters(pacing.clock, 1);
        pass(&pacing, WEIR_MINUTE);
    }
    for (int64_t until = patience_ends_at(); host_known(&pacing, "h");)
        keep_waiting(until);
    weir_pacer_close(pacing.pacer);
    assert_int_equal(weir_clock_fake_waiters(pacing.clock), 0);
    pacing_tear_down(&pacing);
}

/* S0-9, S0-68: 16 shards, or one for each 4096 hosts if that is more; fewer if a shard would hold
 * only a few hosts. */
static void shards_are_16_or_one_per_4096_hosts_if_that_is_more(void **state)
{
    (void)state;
    static const struct {
        size_t max_hosts, shards;
    } rows[] = {{100, 1}, {1000, 16}, {10000, 16}, {65535, 16}, {131072, 32}, {0, 256}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pacing pacing;
        weir_table_stats stats;
        pacing_init(&pacing, WEIR_PROFILE_STRICT);
        pacing.options.max_hosts = rows[i].max_hosts;
        pacing_start(&pacing);
        assert_int_equal(weir_table_stats_get(pacing.pacer->table, &stats), 0);
        assert_int_equal(stats.shards, rows[i].shards);
        pacing_tear_down(&pacing);
    }
}

/* S0-71: the pacer is full of hosts that no longer delay requests. */
static void new_host_takes_the_place_of_one_that_is_idle(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_init(&pacing, WEIR_PROFILE_STRICT);
    pacing.options.max_hosts = 32;
    pacing_start(&pacing);
    char key[KEY_BYTES];
    for (int i = 0; i < 100; i++) {
        (void)snprintf(key, sizeof key, "host%d", i);
        fetch(&pacing, key, 200);
        pass(&pacing, 3 * WEIR_SECOND);
    }
    assert_int_equal(pacer_stats(&pacing).hosts, 32);
    assert_int_equal(pacer_stats(&pacing).evicted, 68);
    assert_true(host_known(&pacing, "host99"));
    pacing_tear_down(&pacing);
}

/* The pacer is full of hosts that delay requests. New hosts are refused: a shared gate could not
 * keep the limits of each. */
static void full_pacer_refuses_new_hosts_and_serves_known_ones(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_init(&pacing, WEIR_PROFILE_STRICT);
    pacing.options.max_hosts = 4;
    pacing_start(&pacing);
    char key[KEY_BYTES];
    weir_permit permits[4], permit;
    for (int i = 0; i < 4; i++) {
        (void)snprintf(key, sizeof key, "host%d", i);
        permits[i] = acquired(&pacing, key, 0);
    }
    pass(&pacing, WEIR_HOUR);
    weir_decision decision;
    assert_int_equal(weir_pacer_acquire(pacing.pacer, "newcomer", 8, 0, WEIR_FOREVER, NULL, &permit, &decision),
                     WEIR_E_FULL);
    assert_null(permit.pacer);
    assert_int_equal(decision.reason, WEIR_REASON_CONCURRENCY);
    assert_int_equal(try_host(&pacing, "newcomer", 0, &permit).verdict, WEIR_WAIT);
    weir_pace_ticket *ticket;
    assert_int_equal(weir_pacer_enqueue(pacing.pacer, "newcomer", 8, NULL, 0, 0, ignore_wake, NULL, &ticket),
                     WEIR_E_FULL);
    assert_int_equal(weir_pacer_pause(pacing.pacer, "newcomer", 8, true), WEIR_E_FULL);
    assert_int_equal(weir_pacer_robots_delay(pacing.pacer, "newcomer", 8, 1), WEIR_E_FULL);
    assert_true(host_goes(&pacing, "host2"));
    tell(&permits[3], 200);
    pass(&pacing, WEIR_MINUTE);
    assert_true(host_goes(&pacing, "newcomer"));
    assert_false(host_known(&pacing, "host3"));
    for (int i = 0; i < 3; i++)
        tell(&permits[i], 200);
    pacing_tear_down(&pacing);
}

/* ---- storing hosts ---- */

#define SAVED_MAX 8

struct store {
    struct pacing *pacing;
    size_t count;
    bool refuses;
    bool meddles; /* the host learns something while it is being saved */
    char keys[SAVED_MAX][KEY_BYTES];
    weir_pace_memory memories[SAVED_MAX];
};

static bool save(void *context, const char *key, size_t key_bytes, const weir_pace_memory *memory)
{
    struct store *store = context;
    assert_in_range(store->count, 0, SAVED_MAX - 1);
    assert_in_range(key_bytes, 1, KEY_BYTES - 1);
    memcpy(store->keys[store->count], key, key_bytes);
    store->keys[store->count][key_bytes] = '\0';
    store->memories[store->count++] = *memory;
    if (store->meddles) {
        pass(store->pacing, WEIR_MINUTE);
        fetch(store->pacing, store->keys[store->count - 1], 429);
    }
    return !store->refuses;
}

static void learned_state_is_exported_once_and_after_each_change(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_LEARNED);
    struct store store = {.pacing = &pacing};
    fetch(&pacing, "h", 200);
    fetch(&pacing, "dull", 200);
    pass(&pacing, WEIR_MINUTE);
    fetch(&pacing, "h", 429);
    store.refuses = true;
    assert_int_equal(weir_pacer_export(pacing.pacer, save, &store), 0); /* the store fails */
    assert_int_equal(store.count, 1);
    store = (struct store){.pacing = &pacing};
    assert_int_equal(weir_pacer_export(pacing.pacer, save, &store), 1);
    assert_string_equal(store.keys[0], "h");
    assert_true(store.memories[0].delay_ns == 1500 * MS);
    assert_true(store.memories[0].saved_wall_at == weir_clock_now(pacing.wall));
    assert_int_equal(weir_pacer_export(pacing.pacer, save, &store), 0);
    weir_pace_memory memory;
    assert_int_equal(weir_pacer_memory(pacing.pacer, "h", 1, &memory), 0);
    assert_true(memory.delay_ns == store.memories[0].delay_ns);
    pacing_tear_down(&pacing);
}

/* U7: a change that comes during a save must be saved by the next one. */
static void change_during_a_save_is_exported_by_the_next_one(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_init(&pacing, WEIR_PROFILE_LEARNED);
    pacing.pace.breaker = false;
    pacing_start(&pacing);
    fetch(&pacing, "h", 429);
    struct store store = {.pacing = &pacing, .meddles = true};
    assert_int_equal(weir_pacer_export(pacing.pacer, save, &store), 1);
    assert_true(store.memories[0].delay_ns == 1500 * MS);
    store = (struct store){.pacing = &pacing};
    assert_int_equal(weir_pacer_export(pacing.pacer, save, &store), 1);
    assert_true(store.memories[0].delay_ns == 2500 * MS);
    assert_int_equal(weir_pacer_export(pacing.pacer, save, &store), 0);
    pacing_tear_down(&pacing);
}

/* R23, S2-9: a host from the store waits one interval first, and keeps to the time that its server
 * named. */
static void seeded_host_resumes_where_it_was(void **state)
{
    (void)state;
    struct pacing before, after;
    pacing_init(&before, WEIR_PROFILE_LEARNED);
    before.pace.jitter_over_ns = WEIR_DAY;
    pacing_start(&before);
    assert_int_equal(weir_pacer_robots_delay(before.pacer, "delayed", 7, 4 * WEIR_SECOND), 0);
    weir_permit permit = acquired(&before, "named", 0);
    weir_outcome outcome = answer_retry_after(429, 10 * WEIR_MINUTE);
    assert_int_equal(weir_permit_finish(&permit, &outcome), 0);
    struct store store = {.pacing = &before};
    assert_int_equal(weir_pacer_export(before.pacer, save, &store), 2);

    pacing_init(&after, WEIR_PROFILE_LEARNED);
    after.pace.jitter_over_ns = WEIR_DAY;
    pacing_start(&after);
    assert_int_equal(weir_clock_fake_set(after.wall, weir_clock_now(before.wall)), 0);
    /* The restart took this long. The monotonic clock does not show it. */
    advance(after.wall, 4 * WEIR_MINUTE);
    for (size_t i = 0; i < store.count; i++)
        assert_int_equal(weir_pacer_seed(after.pacer, store.keys[i], strlen(store.keys[i]), &store.memories[i]), 0);
    assert_true(host_wait(&after, "named") == 6 * WEIR_MINUTE);
    assert_int_equal(look_at(&after, "named").decision.reason, WEIR_REASON_RETRY_AFTER);
    assert_true(look_at(&after, "named").delay_ns > 1400 * MS);
    assert_true(host_wait(&after, "delayed") == 4 * WEIR_SECOND);
    assert_true(host_wait(&after, "unknown") == 0);
    pass(&after, 6 * WEIR_MINUTE);
    assert_true(host_goes(&after, "named"));
    pacing_tear_down(&before);
    pacing_tear_down(&after);
}

static void seeding_a_known_host_changes_only_a_later_retry_time(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_init(&pacing, WEIR_PROFILE_LEARNED);
    pacing.pace.jitter_over_ns = WEIR_DAY;
    pacing_start(&pacing);
    fetch(&pacing, "h", 200);
    pass(&pacing, WEIR_MINUTE);
    int64_t wall_now = weir_clock_now(pacing.wall);
    weir_pace_memory memory = {.delay_ns = 30 * WEIR_SECOND, .saved_wall_at = wall_now};
    assert_int_equal(weir_pacer_seed(pacing.pacer, "h", 1, &memory), 0);
    assert_true(look_at(&pacing, "h").delay_ns == 500 * MS);
    assert_true(host_wait(&pacing, "h") == 0);
    memory.retry_wall_at = wall_now + WEIR_MINUTE;
    assert_int_equal(weir_pacer_seed(pacing.pacer, "h", 1, &memory), 0);
    assert_true(host_wait(&pacing, "h") == WEIR_MINUTE);
    memory.retry_wall_at = INT64_MAX; /* a corrupt record: waits at most a day */
    memory.saved_wall_at = 0;
    assert_int_equal(weir_pacer_seed(pacing.pacer, "h", 1, &memory), 0);
    assert_true(host_wait(&pacing, "h") <= WEIR_DAY);
    pacing_tear_down(&pacing);
}

static void host_with_unsaved_state_is_kept_if_keeps_unsaved_is_set(void **state)
{
    (void)state;
    for (int keeps = 0; keeps < 2; keeps++) {
        struct pacing pacing;
        pacing_init(&pacing, WEIR_PROFILE_LEARNED);
        pacing.options.keeps_unsaved = keeps;
        pacing_start(&pacing);
        fetch(&pacing, "h", 429);
        pass(&pacing, 3 * WEIR_DAY); /* long enough that the host no longer delays requests */
        assert_int_equal(weir_pacer_sweep(pacing.pacer), !keeps);
        struct store store = {.pacing = &pacing};
        assert_int_equal(weir_pacer_export(pacing.pacer, save, &store), keeps);
        assert_int_equal(weir_pacer_sweep(pacing.pacer), keeps);
        pacing_tear_down(&pacing);
    }
}

/* ---- memory ---- */

static void steady_pacing_allocates_nothing(void **state)
{
    (void)state;
    struct pacing pacing;
    test_allocator allocator;
    test_allocator_init(&allocator);
    pacing_init(&pacing, WEIR_PROFILE_AIMD);
    pacing.options.allocator = &allocator.allocator;
    pacing.options.groups = WEIR_GROUP_DOMAIN | WEIR_GROUP_ADDRESS;
    pacing_start(&pacing);
    long takes = 0;
    for (int i = 0; i < 1000; i++) {
        weir_permit permit;
        weir_decision decision;
        int status = i % 50 == 0 ? 429 : 200;
        uint32_t flags = i % 2 == 0 ? 0 : WEIR_REPORTS_SENT;
        assert_int_equal(weir_pacer_try(pacing.pacer, "www.example.org", 15, "192.0.2.1", flags, &permit, &decision),
                         0);
        assert_int_equal(weir_permit_sent(&permit), 0);
        weir_outcome outcome = answer(status, MS);
        assert_int_equal(weir_permit_finish(&permit, &outcome), 0);
        (void)weir_pacer_concurrency(pacing.pacer, "www.example.org", 15, 4);
        (void)weir_pacer_sweep(pacing.pacer);
        pass(&pacing, 300 * MS);
        if (i == 0)
            takes = atomic_load(&allocator.takes); /* the three keys are added */
    }
    assert_int_equal(atomic_load(&allocator.takes), takes);
    pacing_tear_down(&pacing);
    assert_int_equal(atomic_load(&allocator.live), 0);
}

/* Makes every call that may allocate. Returns the first error, except errors of a full table. */
static int exercise(struct pacing *pacing)
{
    weir_pacer *pacer;
    int bad = weir_pacer_new(&pacing->pace, &pacing->options, &pacer);
    if (bad != 0)
        return bad;
    weir_permit permit = {0};
    weir_decision decision;
    weir_pace_ticket *ticket = NULL;
    weir_pace_memory memory = {.delay_ns = WEIR_SECOND};
    weir_pace_entry *entries;
    size_t count;
    static const char key[] =
        "a-host-with-a-name-so-long-that-it-does-not-fit-inside-the-entry-and-needs-memory-of-its-own."
        "in.its-domain-too.example.org";
    bad = weir_pacer_acquire_at(pacer, key, strlen(key), "192.0.2.1", 0, 0, NULL, &permit, &decision);
    if (bad == 0)
        bad = weir_pacer_enqueue(pacer, key, strlen(key), "192.0.2.1", 0, WEIR_FOREVER, ignore_wake, NULL, &ticket);
    weir_permit other;
    if (bad == 0)
        bad = weir_pace_ticket_poll(ticket, &other, &decision);
    weir_pace_ticket_free(ticket);
    weir_permit_abandon(&permit);
    if (bad == 0)
        bad = weir_pacer_seed(pacer, "seeded.example.org", 18, &memory);
    if (bad == 0)
        bad = weir_pacer_pause(pacer, "paused.example.org", 18, true);
    if (bad == 0)
        bad = weir_pacer_top(pacer, 5, &entries, &count);
    if (bad == 0)
        weir_pacer_top_free(pacer, entries);
    if (bad == 0)
        bad = weir_pacer_change(pacer, &pacing->pace);
    /* The pacer still works, whichever call failed. */
    if (bad == 0)
        assert_int_equal(weir_pacer_sweep(pacer), 0);
    weir_pacer_free(pacer);
    return bad;
}

static void any_pacer_allocation_may_fail_without_a_leak(void **state)
{
    (void)state;
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        int bad = WEIR_E_NOMEM;
        for (long n = 1; bad != 0; n++) {
            struct pacing pacing;
            test_allocator allocator;
            test_allocator_init(&allocator);
            pacing_init(&pacing, WEIR_PROFILE_STRICT);
            pacing.options.allocator = &allocator.allocator;
            pacing.options.max_hosts = 100;
            pacing.options.groups = WEIR_GROUP_DOMAIN | WEIR_GROUP_ADDRESS;
            atomic_store(&allocator.fail_at, n);
            atomic_store(&allocator.fail_for_ever, for_ever != 0);
            bad = exercise(&pacing);
            assert_true(bad == 0 || bad == WEIR_E_NOMEM);
            assert_int_equal(atomic_load(&allocator.live), 0);
            pacing_tear_down(&pacing);
            assert_in_range(n, 1, 100);
        }
    }
}

/* S1-31, S1-14, I1. */
static void million_hosts_stay_within_800_bytes_each(void **state)
{
    (void)state;
    struct pacing pacing;
    size_t hosts = SANITIZED ? 20000 : 1000000;
    pacing_init(&pacing, WEIR_PROFILE_STRICT);
    pacing_start(&pacing);
    char key[KEY_BYTES];
    for (size_t i = 0; i < hosts; i++) {
        (void)snprintf(key, sizeof key, "host%07zu.example.org", i);
        fetch(&pacing, key, 200);
        if (i + 1 == 10000)
            assert_true(pacer_stats(&pacing).memory_bytes < 10 * 1000 * 1000);
    }
    weir_pacer_stats stats = pacer_stats(&pacing);
    assert_int_equal(stats.hosts, hosts);
    assert_int_equal(stats.requests, hosts);
    assert_true(stats.memory_bytes / hosts < 800);
    print_message("%zu hosts, %zu bytes for each\n", hosts, stats.memory_bytes / hosts);
    assert_false(host_goes(&pacing, "host0000007.example.org"));
    pass(&pacing, WEIR_HOUR);
    assert_int_equal(weir_pacer_sweep(pacing.pacer), hosts);
    pacing_tear_down(&pacing);
}

WEIR_TESTS(test(shards_are_16_or_one_per_4096_hosts_if_that_is_more),
           test(hosts_unused_for_the_ttl_are_forgotten_and_recent_ones_kept),
           test(sweep_keeps_hosts_that_still_delay_requests), test(pacer_thread_sweeps_every_half_ttl),
           test(new_host_takes_the_place_of_one_that_is_idle), test(full_pacer_refuses_new_hosts_and_serves_known_ones),
           test(learned_state_is_exported_once_and_after_each_change),
           test(change_during_a_save_is_exported_by_the_next_one), test(seeded_host_resumes_where_it_was),
           test(seeding_a_known_host_changes_only_a_later_retry_time),
           test(host_with_unsaved_state_is_kept_if_keeps_unsaved_is_set), test(steady_pacing_allocates_nothing),
           test(any_pacer_allocation_may_fail_without_a_leak), test(million_hosts_stay_within_800_bytes_each))
