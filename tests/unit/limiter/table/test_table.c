/* SPDX-License-Identifier: MIT */
/* test_table.c - tests of a table: keys, waiting, plans, batches, all or nothing (S3-20 to S3-36,
 * S0-9 to S0-13). */
#include "lib/alloc.h"
#include "lib/rig.h"

/* ---- keys ---- */

static void each_key_has_its_own_limiter(void **state)
{
    (void)state;
    weir_limit limit = bucket(2, 1, WEIR_SECOND);
    struct keyed fixture = {0};
    keyed_set_up(&fixture, &limit);
    assert_true(takes(fixture.table, "alice", 2));
    assert_false(takes(fixture.table, "alice", 1));
    assert_true(takes(fixture.table, "bob", 2));
    assert_true(try_key(fixture.table, "alice", 1).wait_ns == WEIR_SECOND);
    advance(fixture.clock, WEIR_SECOND);
    assert_true(takes(fixture.table, "alice", 1)); /* the same limiter as before */
    assert_false(takes(fixture.table, "alice", 1));
    assert_int_equal(stats_of(fixture.table).keys, 2);
    keyed_tear_down(&fixture);
}

static void table_keys_are_bytes_of_any_value_and_length(void **state)
{
    (void)state;
    weir_limit limit = bucket(1, 1, WEIR_HOUR);
    struct keyed fixture = {0};
    keyed_set_up(&fixture, &limit);
    char key[WEIR_KEY_MAX + 1];
    weir_decision decision;
    memset(key, 'x', sizeof key);
    key[3] = '\0';
    for (int round = 0; round < 2; round++) {
        for (size_t bytes = 1; bytes <= WEIR_KEY_MAX; bytes++) {
            assert_int_equal(weir_table_try(fixture.table, key, bytes, 1, &decision), 0);
            assert_int_equal(decision.verdict, round == 0 ? WEIR_GO : WEIR_WAIT);
        }
    }
    assert_int_equal(stats_of(fixture.table).keys, WEIR_KEY_MAX);
    keyed_tear_down(&fixture);
}

static void a_hundred_thousand_keys_keep_their_states_while_the_table_grows(void **state)
{
    (void)state;
    enum {
        KEYS = 100000
    };
    weir_limit limit = bucket(5, 1, WEIR_HOUR);
    struct keyed fixture = {0};
    keyed_set_up(&fixture, &limit);
    char key[32];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < KEYS; i++) {
            (void)snprintf(key, sizeof key, "user:%d", i);
            if (round == 0)
                assert_true(takes(fixture.table, key, (uint32_t)(1 + i % 5)));
            else
                assert_int_equal(remaining(fixture.table, key), 4 - i % 5);
        }
    }
    assert_int_equal(stats_of(fixture.table).created, KEYS);
    keyed_tear_down(&fixture);
}

static void peek_release_settle_and_remove_never_add_a_key(void **state)
{
    (void)state;
    weir_limit limit = bucket(1, 1, WEIR_SECOND);
    struct keyed fixture = {0};
    keyed_set_up(&fixture, &limit);
    weir_quota quota;
    weir_receipt receipt = {.permits = 1};
    assert_int_equal(weir_table_peek(fixture.table, "ghost", 5, &quota), WEIR_E_ABSENT);
    assert_int_equal(weir_table_release(fixture.table, "ghost", 5, 1), 0);
    assert_int_equal(weir_table_settle(fixture.table, "ghost", 5, &receipt, 0), 0);
    assert_int_equal(weir_table_remove(fixture.table, "ghost", 5), WEIR_E_ABSENT);
    assert_int_equal(stats_of(fixture.table).keys, 0);
    keyed_tear_down(&fixture);
}

static void released_permits_return_to_their_key_up_to_its_limit(void **state)
{
    (void)state;
    weir_limit limit = concurrency(2);
    struct keyed fixture = {0};
    keyed_set_up(&fixture, &limit);
    assert_true(takes(fixture.table, "k", 2));
    assert_int_equal(try_key(fixture.table, "k", 1).reason, WEIR_REASON_CONCURRENCY);
    for (int i = 0; i < 5; i++)
        assert_int_equal(weir_table_release(fixture.table, "k", 1, 1), 0);
    assert_int_equal(remaining(fixture.table, "k"), 2);
    keyed_tear_down(&fixture);
}

static void reservations_of_a_key_are_settled(void **state)
{
    (void)state;
    weir_limit limit = bucket(10, 1, WEIR_HOUR);
    struct keyed fixture = {0};
    keyed_set_up(&fixture, &limit);
    weir_receipt receipt;
    weir_decision decision;
    assert_int_equal(weir_table_reserve(fixture.table, "k", 1, 6, &receipt, &decision), 0);
    assert_int_equal(remaining(fixture.table, "k"), 4);
    assert_int_equal(weir_table_settle(fixture.table, "k", 1, &receipt, 2), 0);
    assert_int_equal(remaining(fixture.table, "k"), 8);
    /* A receipt of a removed key returns nothing to the new key of that name. */
    assert_int_equal(weir_table_reserve(fixture.table, "k", 1, 6, &receipt, &decision), 0);
    assert_int_equal(weir_table_remove(fixture.table, "k", 1), 0);
    assert_true(takes(fixture.table, "k", 7));
    advance(fixture.clock, 1);
    assert_int_equal(weir_table_settle(fixture.table, "k", 1, &receipt, 0), 0);
    keyed_tear_down(&fixture);
}

/* ---- waiting ---- */

static void start_waiting(struct keyed *fixture, test_worker *worker, const char *key, int64_t timeout_ns)
{
    int waiting = weir_clock_fake_waiters(fixture->clock);
    *worker = (test_worker){
        .table = fixture->table, .key = key, .permits = 1, .timeout_ns = timeout_ns, .finished = &fixture->finished};
    test_worker_start(worker);
    test_await_waiters(fixture->clock, waiting + 1);
}

static void waiters_of_a_key_are_served_in_order_and_others_do_not_wait(void **state)
{
    (void)state;
    weir_limit limit = bucket(1, 1, WEIR_SECOND);
    struct keyed fixture = {0};
    keyed_set_up(&fixture, &limit);
    test_worker workers[6];
    assert_true(takes(fixture.table, "busy", 1));
    for (int i = 0; i < 6; i++)
        start_waiting(&fixture, &workers[i], "busy", WEIR_FOREVER);
    assert_int_equal(try_key(fixture.table, "busy", 1).verdict, WEIR_WAIT);
    assert_true(takes(fixture.table, "idle", 1));
    assert_int_equal(weir_table_acquire(fixture.table, "idle too", 8, 1, WEIR_FOREVER, NULL, NULL, NULL), 0);
    assert_int_equal(stats_of(fixture.table).waiters, 6);
    for (int i = 0; i < 6; i++) {
        advance(fixture.clock, WEIR_SECOND);
        test_worker_join(&workers[i]);
        test_await_waiters(fixture.clock, 5 - i);
        assert_int_equal(workers[i].result, 0);
        assert_int_equal(workers[i].place, i);
    }
    assert_int_equal(stats_of(fixture.table).waiters, 0);
    keyed_tear_down(&fixture);
}

static void waiters_survive_the_growth_of_their_shard(void **state)
{
    (void)state;
    weir_limit limit = bucket(1, 1, WEIR_SECOND);
    struct keyed fixture = {.options = {.shards = 1}};
    keyed_set_up(&fixture, &limit);
    test_worker worker;
    assert_true(takes(fixture.table, "waits", 1));
    start_waiting(&fixture, &worker, "waits", WEIR_FOREVER);
    char key[16];
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(key, sizeof key, "%d", i);
        assert_true(takes(fixture.table, key, 1));
    }
    advance(fixture.clock, WEIR_SECOND);
    test_worker_join(&worker);
    assert_int_equal(worker.result, 0);
    assert_false(takes(fixture.table, "waits", 1));
    keyed_tear_down(&fixture);
}

static void removing_a_key_fails_its_waiters_only(void **state)
{
    (void)state;
    weir_limit limit = bucket(1, 1, WEIR_SECOND);
    struct keyed fixture = {0};
    keyed_set_up(&fixture, &limit);
    test_worker gone[3], stays;
    assert_true(takes(fixture.table, "gone", 1));
    assert_true(takes(fixture.table, "stays", 1));
    for (int i = 0; i < 3; i++)
        start_waiting(&fixture, &gone[i], "gone", WEIR_FOREVER);
    start_waiting(&fixture, &stays, "stays", WEIR_FOREVER);
    assert_int_equal(weir_table_remove(fixture.table, "gone", 4), 0);
    for (int i = 0; i < 3; i++) {
        test_worker_join(&gone[i]);
        assert_int_equal(gone[i].result, WEIR_E_CLOSED);
    }
    assert_true(takes(fixture.table, "gone", 1)); /* a new limiter */
    advance(fixture.clock, WEIR_SECOND);
    test_worker_join(&stays);
    assert_int_equal(stays.result, 0);
    keyed_tear_down(&fixture);
}

static void closing_a_table_fails_its_waiters_and_later_calls(void **state)
{
    (void)state;
    weir_limit limit = bucket(1, 1, WEIR_SECOND);
    struct keyed fixture = {0};
    keyed_set_up(&fixture, &limit);
    test_worker workers[4];
    static const char *const keys[] = {"a", "b", "a", "b"};
    assert_true(takes(fixture.table, "a", 1));
    assert_true(takes(fixture.table, "b", 1));
    for (int i = 0; i < 4; i++)
        start_waiting(&fixture, &workers[i], keys[i], WEIR_FOREVER);
    weir_table_close(fixture.table);
    weir_table_close(fixture.table);
    for (int i = 0; i < 4; i++) {
        test_worker_join(&workers[i]);
        assert_int_equal(workers[i].result, WEIR_E_CLOSED);
    }
    weir_decision decision;
    weir_quota quota;
    weir_receipt receipt = {0};
    weir_table *table = fixture.table;
    assert_int_equal(weir_table_try(table, "a", 1, 1, &decision), WEIR_E_CLOSED);
    assert_int_equal(weir_table_acquire(table, "a", 1, 1, 0, NULL, NULL, NULL), WEIR_E_CLOSED);
    assert_int_equal(weir_table_settle(table, "a", 1, &receipt, 0), WEIR_E_CLOSED);
    assert_int_equal(weir_table_release(table, "a", 1, 1), WEIR_E_CLOSED);
    assert_int_equal(weir_table_peek(table, "a", 1, &quota), WEIR_E_CLOSED);
    assert_int_equal(weir_table_remove(table, "a", 1), WEIR_E_CLOSED);
    keyed_tear_down(&fixture);
}

static void count_wakes(void *context)
{
    ++*(int *)context;
}

static void ticket_of_a_key_is_granted_after_a_release(void **state)
{
    (void)state;
    weir_limit limit = concurrency(1);
    struct keyed fixture = {0};
    keyed_set_up(&fixture, &limit);
    weir_ticket *ticket;
    weir_decision decision;
    int woken = 0;
    assert_true(takes(fixture.table, "k", 1));
    assert_int_equal(weir_table_enqueue(fixture.table, "k", 1, 1, WEIR_FOREVER, count_wakes, &woken, &ticket), 0);
    assert_int_equal(weir_ticket_poll(ticket, &decision), 0);
    assert_int_equal(decision.verdict, WEIR_WAIT);
    assert_int_equal(weir_table_release(fixture.table, "k", 1, 1), 0);
    assert_int_equal(woken, 1);
    assert_int_equal(weir_ticket_poll(ticket, &decision), 0);
    assert_int_equal(decision.verdict, WEIR_GO);
    weir_ticket_free(ticket);
    /* A ticket that is freed leaves the key unchanged. */
    assert_int_equal(weir_table_enqueue(fixture.table, "k", 1, 1, WEIR_FOREVER, count_wakes, &woken, &ticket), 0);
    weir_ticket_free(ticket);
    assert_int_equal(weir_table_release(fixture.table, "k", 1, 1), 0);
    assert_int_equal(remaining(fixture.table, "k"), 1);
    keyed_tear_down(&fixture);
}

/* ---- plans and changes ---- */

static uint32_t pro_if_it_says_so(void *context, const char *key, size_t key_bytes)
{
    (void)context;
    return key_bytes > 4 && memcmp(key, "pro:", 4) == 0 ? 1 : 7 /* no such plan: the first one */;
}

static void keys_have_the_limits_of_their_plan(void **state)
{
    (void)state;
    weir_limit standard = bucket(1, 1, WEIR_SECOND), pro = bucket(5, 1, WEIR_SECOND), large[2] = {pro, pro};
    struct keyed fixture = {.options = {.plan_of = pro_if_it_says_so}};
    keyed_set_up(&fixture, &standard);
    uint32_t plan = 0;
    assert_int_equal(weir_table_add_plan(fixture.table, &pro, 1, &plan), 0);
    assert_int_equal(plan, 1);
    /* needs more state than plan 0 */
    assert_int_equal(weir_table_add_plan(fixture.table, large, 2, NULL), WEIR_E_INVAL);
    assert_true(takes(fixture.table, "pro:x", 5));
    assert_int_equal(try_key(fixture.table, "free:x", 5).verdict, WEIR_DENY);
    assert_true(takes(fixture.table, "free:x", 1));
    weir_limit more = bucket(9, 1, WEIR_SECOND);
    assert_int_equal(weir_table_change(fixture.table, 1, &more, 1), 0);
    assert_int_equal(weir_table_change(fixture.table, 2, &more, 1), WEIR_E_INVAL);
    assert_int_equal(try_key(fixture.table, "free:x", 2).verdict, WEIR_DENY);
    assert_int_equal(remaining(fixture.table, "pro:x"), 0); /* used permits stay used */
    assert_true(takes(fixture.table, "pro:y", 9));
    for (uint32_t i = 2; i < WEIR_PLANS_MAX; i++)
        assert_int_equal(weir_table_add_plan(fixture.table, &pro, 1, NULL), 0);
    assert_int_equal(weir_table_add_plan(fixture.table, &pro, 1, &plan), WEIR_E_FULL);
    assert_int_equal(plan, 1);
    keyed_tear_down(&fixture);
}

static void changed_limits_apply_to_all_keys_and_keep_their_usage(void **state)
{
    (void)state;
    weir_limit before = bucket(10, 10, WEIR_SECOND), after = bucket(4, 1, WEIR_SECOND), other;
    struct keyed fixture = {0};
    keyed_set_up(&fixture, &before);
    char key[16];
    for (int i = 0; i < 2000; i++) {
        (void)snprintf(key, sizeof key, "%d", i);
        assert_true(takes(fixture.table, key, (uint32_t)(1 + i % 10)));
    }
    assert_int_equal(weir_limit_concurrency(&other, 1), 0);
    assert_int_equal(weir_table_change(fixture.table, 0, &other, 1), WEIR_E_INVAL);
    assert_int_equal(weir_table_change(fixture.table, 0, &after, 1), 0);
    for (int i = 0; i < 2000; i++) {
        (void)snprintf(key, sizeof key, "%d", i);
        int left = 9 - i % 10;
        assert_int_equal(remaining(fixture.table, key), left < 4 ? left : 4);
    }
    keyed_tear_down(&fixture);
}

static void change_of_limits_wakes_waiters_of_keys(void **state)
{
    (void)state;
    weir_limit one, two;
    assert_int_equal(weir_limit_concurrency(&one, 1), 0);
    assert_int_equal(weir_limit_concurrency(&two, 2), 0);
    struct keyed fixture = {0};
    keyed_set_up(&fixture, &one);
    test_worker worker;
    assert_true(takes(fixture.table, "k", 1));
    start_waiting(&fixture, &worker, "k", WEIR_FOREVER);
    assert_int_equal(weir_table_change(fixture.table, 0, &two, 1), 0);
    test_worker_join(&worker);
    assert_int_equal(worker.result, 0);
    keyed_tear_down(&fixture);
}

/* ---- many keys at once ---- */

static void a_batch_decides_as_single_calls_do(void **state)
{
    (void)state;
    enum {
        ITEMS = 50
    };
    weir_limit limit = bucket(3, 1, WEIR_SECOND);
    struct keyed fixture = {0}, single = {0};
    keyed_set_up(&fixture, &limit);
    keyed_set_up(&single, &limit);
    char keys[ITEMS][8];
    weir_table_item items[ITEMS];
    for (int i = 0; i < ITEMS; i++) {
        (void)snprintf(keys[i], sizeof keys[i], "%d", i % 7);
        items[i] = (weir_table_item){.key = keys[i], .key_bytes = strlen(keys[i]), .permits = (uint32_t)(1 + i % 2)};
    }
    assert_int_equal(weir_table_try_many(fixture.table, items, ITEMS), 0);
    for (int i = 0; i < ITEMS; i++) {
        weir_decision expected = try_key(single.table, keys[i], items[i].permits);
        assert_int_equal(items[i].error, 0);
        assert_int_equal(items[i].decision.verdict, expected.verdict);
        assert_true(items[i].decision.wait_ns == expected.wait_ns);
    }
    items[49].permits = 0;
    weir_table_stats before = stats_of(fixture.table);
    assert_int_equal(weir_table_try_many(fixture.table, items, ITEMS), WEIR_E_INVAL);
    assert_int_equal(stats_of(fixture.table).rejected, before.rejected); /* nothing was decided */
    assert_int_equal(weir_table_try_many(fixture.table, NULL, 0), 0);
    keyed_tear_down(&fixture);
    keyed_tear_down(&single);
}

static void all_parts_grant_or_nothing_is_charged(void **state)
{
    (void)state;
    weir_limit wide = bucket(100, 1, WEIR_SECOND), narrow = bucket(3, 1, WEIR_SECOND);
    struct keyed fixture = {0};
    keyed_set_up(&fixture, &wide);
    weir_table *users;
    assert_int_equal(weir_table_new(&narrow, 1, &fixture.options, &users), 0);
    weir_table_part parts[] = {{.table = fixture.table, .key = "everybody", .key_bytes = 9, .permits = 1},
                               {.table = users, .key = "alice", .key_bytes = 5, .permits = 1},
                               {.table = fixture.table, .key = "/route", .key_bytes = 6, .permits = 1}};
    weir_decision decision;
    size_t part = 9;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(weir_table_try_all(parts, 3, &decision, &part), 0);
        assert_int_equal(decision.verdict, WEIR_GO);
    }
    assert_int_equal(weir_table_try_all(parts, 3, &decision, &part), 0);
    assert_int_equal(decision.verdict, WEIR_WAIT);
    assert_int_equal(part, 1);
    assert_true(decision.wait_ns == WEIR_SECOND);
    assert_int_equal(remaining(fixture.table, "everybody"), 97);
    assert_int_equal(remaining(fixture.table, "/route"), 97);
    /* A key that is in two parts must have permits for both. */
    weir_table_part twice[] = {{.table = users, .key = "bob", .key_bytes = 3, .permits = 2},
                               {.table = users, .key = "bob", .key_bytes = 3, .permits = 2}};
    assert_int_equal(weir_table_try_all(twice, 2, &decision, &part), 0);
    assert_int_equal(decision.verdict, WEIR_WAIT);
    assert_int_equal(remaining(users, "bob"), 3);
    assert_int_equal(stats_of(users).acquired, 3);
    twice[1].permits = 1;
    assert_int_equal(weir_table_try_all(twice, 2, &decision, NULL), 0);
    assert_int_equal(decision.verdict, WEIR_GO);
    assert_int_equal(weir_table_settle(users, "bob", 3, &twice[0].receipt, 0), 0);
    assert_int_equal(remaining(users, "bob"), 2);
    assert_int_equal(weir_table_try_all(twice, 1, &decision, NULL), 0);
    assert_int_equal(decision.verdict, WEIR_GO);
    assert_int_equal(remaining(users, "bob"), 0);
    assert_int_equal(weir_table_try_all(twice, 0, &decision, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_table_try_all(twice, 9, &decision, NULL), WEIR_E_INVAL);
    weir_table_free(users);
    keyed_tear_down(&fixture);
}

/* ---- the table as a key store ---- */

static void table_can_be_used_as_a_key_store(void **state)
{
    (void)state;
    weir_limit limit = bucket(1, 1, WEIR_HOUR);
    struct keyed fixture = {0};
    keyed_set_up(&fixture, &limit);
    weir_key_store store = weir_table_key_store(fixture.table);
    weir_decision decision;
    weir_quota quota;
    assert_int_equal(store.attempt(store.context, "k", 1, 1, &decision), 0);
    assert_int_equal(decision.verdict, WEIR_GO);
    assert_int_equal(store.acquire(store.context, "k", 1, 1, 0, NULL, NULL, &decision), WEIR_E_TIMEOUT);
    assert_int_equal(store.peek(store.context, "k", 1, &quota), 0);
    assert_int_equal(store.remove(store.context, "k", 1), 0);
    assert_int_equal(store.attempt(store.context, "k", 1, 1, &decision), 0);
    assert_int_equal(decision.verdict, WEIR_GO);
    store.free(store.context);
    weir_clock_fake_free(fixture.clock);
}

/* ---- invalid arguments and allocation failures ---- */

static void invalid_table_keys_and_options_are_refused(void **state)
{
    (void)state;
    weir_limit limit = bucket(1, 1, WEIR_SECOND);
    struct keyed fixture = {0};
    keyed_set_up(&fixture, &limit);
    static char megabyte[1 << 20];
    weir_decision decision;
    weir_table *made = NULL, *table = fixture.table;
    assert_int_equal(weir_table_try(NULL, "k", 1, 1, &decision), WEIR_E_INVAL);
    assert_int_equal(weir_table_try(table, NULL, 1, 1, &decision), WEIR_E_INVAL);
    assert_int_equal(weir_table_try(table, "", 0, 1, &decision), WEIR_E_INVAL);
    assert_int_equal(weir_table_try(table, megabyte, sizeof megabyte, 1, &decision), WEIR_E_INVAL);
    assert_non_null(strstr(weir_error_detail(), "WEIR_KEY_MAX"));
    assert_int_equal(weir_table_try(table, "k", 1, 0, &decision), WEIR_E_INVAL);
    assert_int_equal(weir_table_try(table, "k", 1, 1, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_table_acquire(table, "k", 1, 1, -5, NULL, NULL, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_table_acquire(table, "k", 1, 1, WEIR_DURATION_MAX + 1, NULL, NULL, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_table_settle(table, "k", 1, NULL, 0), WEIR_E_INVAL);
    assert_int_equal(weir_table_peek(table, "k", 1, NULL), WEIR_E_INVAL);
    assert_int_equal(stats_of(table).keys, 0);
    const weir_table_options bad[] = {{.size = 1},
                                      {.size = sizeof bad[0], .max_keys = SIZE_MAX},
                                      {.size = sizeof bad[0], .shards = SIZE_MAX},
                                      {.size = sizeof bad[0], .ttl_ns = -1},
                                      {.size = sizeof bad[0], .ttl_ns = INT64_MAX},
                                      {.size = sizeof bad[0], .ttl_ns = 1, .sweep_every_ns = -1},
                                      {.size = sizeof bad[0], .sweep_every_ns = WEIR_SECOND},
                                      {.size = sizeof bad[0], .sweep_every_ns = 1}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(weir_table_new(&limit, 1, &bad[i], &made), WEIR_E_INVAL);
    assert_int_equal(weir_table_new(NULL, 1, NULL, &made), WEIR_E_INVAL);
    assert_int_equal(weir_table_new(&limit, 1, NULL, NULL), WEIR_E_INVAL);
    assert_null(made);
    weir_table_options_init(NULL);
    weir_table_free(NULL);
    weir_table_close(NULL);
    keyed_tear_down(&fixture);
}

/* Makes every call that may allocate, with an allocator that fails once. Returns the error of a
 * failed call, or 0. */
static int use_everything(test_allocator *allocator)
{
    weir_limit limit = bucket(2, 1, WEIR_HOUR);
    weir_table_options options = {.size = sizeof options, .allocator = &allocator->allocator, .shards = 1};
    weir_table *table = NULL;
    weir_ticket *ticket = NULL;
    weir_decision decision;
    weir_table_entry *entries = NULL;
    size_t count;
    int worst = weir_table_new(&limit, 1, &options, &table);
    if (worst != 0)
        return worst;
    char key[WEIR_KEY_MAX];
    memset(key, 'k', sizeof key);
    for (size_t i = 1; i <= 40; i++) {
        int bad = weir_table_try(table, key, i * 20, 1, &decision);
        worst = bad != 0 ? bad : worst;
    }
    int bad = weir_table_enqueue(table, "waits", 5, 1, WEIR_FOREVER, count_wakes, &(int){0}, &ticket);
    worst = bad != 0 ? bad : worst;
    bad = weir_table_change(table, 0, &limit, 1);
    worst = bad != 0 ? bad : worst;
    bad = weir_table_top(table, WEIR_TOP_DENIED, 10, &entries, &count);
    worst = bad != 0 ? bad : worst;
    weir_table_top_free(table, entries);
    weir_ticket_free(ticket);
    assert_int_equal(weir_table_try(table, "after", 5, 1, &decision), 0); /* still usable */
    weir_table_free(table);
    return worst;
}

static void each_table_call_may_fail_for_memory_without_a_leak(void **state)
{
    (void)state;
    test_allocator allocator;
    int bad = WEIR_E_NOMEM;
    for (long n = 1; bad != 0; n++) {
        test_allocator_init(&allocator);
        allocator.fail_at = n;
        bad = use_everything(&allocator);
        assert_true(bad == 0 || bad == WEIR_E_NOMEM);
        assert_int_equal(allocator.live, 0);
        assert_int_equal(allocator.live_bytes, 0);
        assert_in_range(n, 1, 200);
    }
}

static void table_decisions_on_known_keys_allocate_nothing(void **state)
{
    (void)state;
    test_allocator allocator;
    test_allocator_init(&allocator);
    weir_limit limit = bucket(2, 1, WEIR_HOUR);
    struct keyed fixture = {.options = {.allocator = &allocator.allocator}};
    keyed_set_up(&fixture, &limit);
    assert_true(takes(fixture.table, "k", 1));
    long takes = allocator.takes;
    for (int i = 0; i < 1000; i++)
        (void)try_key(fixture.table, "k", 1);
    assert_int_equal(allocator.takes, takes);
    assert_int_equal(stats_of(fixture.table).memory_bytes, allocator.live_bytes);
    keyed_tear_down(&fixture);
    assert_int_equal(allocator.live, 0);
}

WEIR_TESTS(test(each_key_has_its_own_limiter), test(table_keys_are_bytes_of_any_value_and_length),
           test(a_hundred_thousand_keys_keep_their_states_while_the_table_grows),
           test(peek_release_settle_and_remove_never_add_a_key),
           test(released_permits_return_to_their_key_up_to_its_limit), test(reservations_of_a_key_are_settled),
           test(waiters_of_a_key_are_served_in_order_and_others_do_not_wait),
           test(waiters_survive_the_growth_of_their_shard), test(removing_a_key_fails_its_waiters_only),
           test(closing_a_table_fails_its_waiters_and_later_calls), test(ticket_of_a_key_is_granted_after_a_release),
           test(keys_have_the_limits_of_their_plan), test(changed_limits_apply_to_all_keys_and_keep_their_usage),
           test(change_of_limits_wakes_waiters_of_keys), test(a_batch_decides_as_single_calls_do),
           test(all_parts_grant_or_nothing_is_charged), test(table_can_be_used_as_a_key_store),
           test(invalid_table_keys_and_options_are_refused), test(each_table_call_may_fail_for_memory_without_a_leak),
           test(table_decisions_on_known_keys_allocate_nothing))
