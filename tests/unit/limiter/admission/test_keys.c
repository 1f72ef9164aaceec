/* SPDX-License-Identifier: MIT */
/* test_keys.c - tests of weir_admission by key, over a key store: allow, release, remove (S3-20 to
 * S3-24, S3-31 to S3-36). */
#include "unit/limiter/admission/rig.h"

/* S3-20, S3-23 */
static void each_key_has_a_limiter_of_its_own_made_when_first_seen(void **state)
{
    struct admission_fixture *rig = rig_new();
    weir_table_stats stats;

    (void)state;
    rig_add(rig, "r", WEIR_KEY_USER, window(2));
    rig_open(rig);
    assert_int_equal(weir_table_stats_get(rig->tables[0], &stats), 0);
    assert_int_equal(stats.keys, 0);
    assert_true(rig_try_key(rig, 0, "alice"));
    assert_true(rig_try_key(rig, 0, "alice"));
    assert_false(rig_try_key(rig, 0, "alice"));
    assert_true(rig_try_key(rig, 0, "bob"));
    assert_int_equal(weir_table_stats_get(rig->tables[0], &stats), 0);
    assert_int_equal(stats.keys, 2);
    rig_free(rig);
}

static void refusal_reports_the_quota_and_the_retry_time(void **state)
{
    struct admission_fixture *rig = rig_new();
    const weir_ruling *ruling = &rig->admission.rulings[0];

    (void)state;
    rig_add(rig, "per-user", WEIR_KEY_USER, window(2));
    rig_open(rig);
    assert_true(rig_try_key(rig, 0, "alice"));
    assert_int_equal(ruling->quota.limit, 2);
    assert_int_equal(ruling->quota.remaining, 1);
    assert_int_equal(rig->admission.retry_after_s, 0);
    assert_true(rig_try_key(rig, 0, "alice"));
    assert_int_equal(weir_clock_fake_advance(rig->clock, 500 * WEIR_MILLISECOND), 0);
    assert_false(rig_try_key(rig, 0, "alice"));
    assert_int_equal(ruling->outcome, WEIR_OUTCOME_REFUSED);
    assert_int_equal(ruling->decision.verdict, WEIR_WAIT);
    assert_int_equal(ruling->decision.reason, WEIR_REASON_TOKENS);
    assert_int_equal(ruling->quota.remaining, 0);
    assert_int_equal(rig->admission.retry_after_s, 60); /* 59.5 s, rounded up */
    assert_string_equal(ruling->name, "per-user");
    assert_ptr_equal(weir_admission_result_decisive(&rig->admission), ruling);
    assert_int_equal(weir_admission_result_status(&rig->admission), 429);
    rig_free(rig);
}

static void retry_after_is_at_least_1_where_a_retry_can_succeed(void **state)
{
    static const struct {
        weir_verdict verdict;
        int64_t wait_ns, expected;
    } cases[] = {
        {WEIR_WAIT, 0, 1},
        {WEIR_WAIT, 1, 1},
        {WEIR_WAIT, WEIR_SECOND, 1},
        {WEIR_WAIT, WEIR_SECOND + 1, 2},
        {WEIR_WAIT, WEIR_UNTIL_RELEASE, 1},
        {WEIR_DENY, 0, 0}, /* a retry cannot succeed, so there is no Retry-After */
    };
    struct script script = {0};
    struct admission_fixture *rig = rig_new();

    (void)state;
    rig_add_store(rig, "r", WEIR_KEY_USER, script_repository(&script));
    rig_open(rig);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        script.decision = (weir_decision){cases[i].verdict, WEIR_REASON_TOKENS, cases[i].wait_ns};
        assert_false(rig_try_key(rig, 0, "alice"));
        assert_int_equal(rig->admission.retry_after_s, cases[i].expected);
    }
    rig_free(rig);
}

/* S3-22 */
static void release_by_key_ends_a_request_in_flight(void **state)
{
    struct admission_fixture *rig = rig_new();
    weir_table_stats stats;

    (void)state;
    rig_add(rig, "r", WEIR_KEY_USER, at_once(1));
    rig_open(rig);
    assert_true(rig_try_key(rig, 0, "alice"));
    assert_false(rig_try_key(rig, 0, "alice"));
    assert_int_equal(weir_admission_release_key(rig->counter, 0, "alice", 5, 0), 0);
    assert_true(rig_try_key(rig, 0, "alice"));

    /* U15: a release of a key without a request in flight adds no key and no permits. */
    assert_int_equal(weir_admission_release_key(rig->counter, 0, "bob", 3, 0), 0);
    assert_int_equal(weir_table_stats_get(rig->tables[0], &stats), 0);
    assert_int_equal(stats.keys, 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(weir_admission_release_key(rig->counter, 0, "alice", 5, 0), 0);
    assert_true(rig_try_key(rig, 0, "alice"));
    assert_false(rig_try_key(rig, 0, "alice"));
    rig_free(rig);
}

/* R17 */
static void an_admission_is_released_once(void **state)
{
    struct admission_fixture *rig = rig_new();
    static weir_admission_result first, second;

    (void)state;
    rig_add(rig, "r", WEIR_KEY_USER, at_once(2));
    rig_open(rig);
    assert_int_equal(weir_admission_try_key(rig->counter, 0, "a", 1, 0, &first), 0);
    assert_int_equal(weir_admission_try_key(rig->counter, 0, "a", 1, 0, &second), 0);
    assert_true(first.allowed && second.allowed);
    for (int i = 0; i < 3; i++)
        assert_int_equal(weir_admission_release(rig->counter, &first), 0);
    assert_int_equal(rig_left(rig, 0, "a"), 1);
    assert_int_equal(weir_admission_cancel(rig->counter, &first), 0);
    assert_int_equal(rig_left(rig, 0, "a"), 1);
    assert_int_equal(weir_admission_release(rig->counter, &second), 0);
    assert_int_equal(rig_left(rig, 0, "a"), 2);
    rig_free(rig);
}

static void releasing_a_refused_request_does_nothing(void **state)
{
    struct admission_fixture *rig = rig_new();
    static weir_admission_result refused;

    (void)state;
    rig_add(rig, "r", WEIR_KEY_USER, at_once(1));
    rig_open(rig);
    assert_true(rig_try_key(rig, 0, "a"));
    assert_int_equal(weir_admission_try_key(rig->counter, 0, "a", 1, 0, &refused), 0);
    assert_false(refused.allowed);
    assert_int_equal(weir_admission_release(rig->counter, &refused), 0);
    assert_int_equal(weir_admission_cancel(rig->counter, &refused), 0);
    assert_int_equal(rig_left(rig, 0, "a"), 0);
    rig_free(rig);
}

/* S3-24: a header callback and a URI are enough for a request. */
static void header_callback_and_uri_are_enough_for_a_request(void **state)
{
    weir_header headers[] = {{"X-User-Id", "alice"}};
    weir_header_list list = {headers, 1};
    struct admission_fixture *rig = rig_new();

    (void)state;
    rig_add(rig, "user", WEIR_KEY_USER, window(1));
    rig_add(rig, "route", WEIR_KEY_ROUTE, window(5));
    rig_open(rig);
    weir_request_init(&rig->request, NULL, "https://example.org/items?page=1", NULL);
    rig->request.header = weir_header_list_find;
    rig->request.header_context = &list;
    assert_true(rig_try(rig));
    assert_int_equal(rig_left(rig, 0, "alice"), 0);
    assert_int_equal(rig_left(rig, 1, "/items"), 4);
    assert_false(rig_try(rig));
    headers[0].value = "bob";
    assert_true(rig_try(rig));
    rig_free(rig);
}

static void admission_result_lists_the_keys_that_were_charged(void **state)
{
    struct admission_fixture *rig = rig_new();
    const weir_ruling *rulings = rig->admission.rulings;

    (void)state;
    rig_add(rig, "ip", WEIR_KEY_IP, window(5));
    rig_add(rig, "route", WEIR_KEY_ROUTE, window(5));
    rig_open(rig);
    assert_true(rig_try(rig));
    assert_int_equal(rig->admission.count, 2);
    assert_int_equal(rulings[0].key_bytes, 11);
    assert_memory_equal(rig->admission.keys + rulings[0].key_at, "203.0.113.7", 11);
    assert_int_equal(rulings[1].key_bytes, 2);
    assert_memory_equal(rig->admission.keys + rulings[1].key_at, "/a", 2);
    rig_free(rig);
}

static void any_bytes_are_a_valid_key_in_try_key(void **state)
{
    struct admission_fixture *rig = rig_new();
    char key[WEIR_KEY_MAX];

    (void)state;
    memset(key, 0, sizeof key);
    rig_add(rig, "r", WEIR_KEY_USER, window(1));
    rig_open(rig);
    for (size_t bytes = 1; bytes <= WEIR_KEY_MAX; bytes += 93) {
        assert_int_equal(weir_admission_try_key(rig->counter, 0, key, bytes, 0, &rig->admission), 0);
        assert_true(rig->admission.allowed);
        assert_int_equal(weir_admission_try_key(rig->counter, 0, key, bytes, 0, &rig->admission), 0);
        assert_false(rig->admission.allowed);
    }
    rig_free(rig);
}

/* ---- key stores ---- */

/* S3-31 */
static void rules_over_one_key_store_share_the_limiter_of_a_key(void **state)
{
    struct admission_fixture *rig = rig_new();

    (void)state;
    rig_add(rig, "one", WEIR_KEY_USER, window(2));
    rig_add_store(rig, "two", WEIR_KEY_USER, rig->repositories[0]);
    rig_open(rig);
    assert_true(rig_try_key(rig, 0, "alice"));
    assert_true(rig_try_key(rig, 1, "alice"));
    assert_false(rig_try_key(rig, 0, "alice"));
    assert_false(rig_try_key(rig, 1, "alice"));
    rig_free(rig);
}

/* S3-32 */
static void removed_key_starts_with_its_full_limit(void **state)
{
    struct admission_fixture *rig = rig_new();
    const weir_key_store *repository = &rig->repositories[0];

    (void)state;
    rig_add(rig, "r", WEIR_KEY_USER, window(1));
    rig_open(rig);
    assert_true(rig_try_key(rig, 0, "alice"));
    assert_true(rig_try_key(rig, 0, "bob"));
    assert_int_equal(repository->remove(repository->context, "alice", 5), 0);
    assert_int_equal(repository->remove(repository->context, "alice", 5), WEIR_E_ABSENT);
    assert_true(rig_try_key(rig, 0, "alice"));
    assert_false(rig_try_key(rig, 0, "bob"));
    rig_free(rig);
}

static bool begins_with_a(void *context, const weir_table_entry *entry)
{
    (void)context;
    return entry->key[0] == 'a';
}

/* S3-33 */
static void keys_are_removed_by_a_predicate(void **state)
{
    struct admission_fixture *rig = rig_new();
    const weir_key_store *repository = &rig->repositories[0];

    (void)state;
    rig_add(rig, "r", WEIR_KEY_USER, window(1));
    rig_open(rig);
    assert_true(rig_try_key(rig, 0, "alice"));
    assert_true(rig_try_key(rig, 0, "anna"));
    assert_true(rig_try_key(rig, 0, "bob"));
    assert_int_equal(repository->remove_where(repository->context, begins_with_a, NULL), 2);
    assert_true(rig_try_key(rig, 0, "alice"));
    assert_false(rig_try_key(rig, 0, "bob"));
    rig_free(rig);
}

/* S3-34 */
static void owned_key_store_is_freed_once_with_its_admission(void **state)
{
    struct script script = {0};
    struct admission_fixture *rig = rig_new();

    (void)state;
    rig_add_store(rig, "one", WEIR_KEY_USER, script_repository(&script))->owns_store = true;
    rig_add_store(rig, "two", WEIR_KEY_IP, script_repository(&script))->owns_store = true;
    rig_add(rig, "three", WEIR_KEY_IP, window(1))->owns_store = true;
    rig_open(rig);
    assert_true(rig_try_key(rig, 2, "alice"));
    rig_free(rig); /* fails the test if the table's memory was not freed */
    assert_int_equal(script.freed, 1);
}

/* S3-41 */
static void key_store_that_is_not_owned_outlives_its_admission(void **state)
{
    struct script script = {0};
    struct admission_fixture *rig = rig_new();

    (void)state;
    rig_add_store(rig, "one", WEIR_KEY_USER, script_repository(&script));
    rig_add(rig, "two", WEIR_KEY_USER, window(1));
    rig_open(rig);
    assert_true(rig_try_key(rig, 1, "alice"));
    weir_admission_free(rig->counter);
    assert_int_equal(rig_left(rig, 1, "alice"), 0);
    rig_open(rig); /* a second weir_admission over the same table */
    assert_false(rig_try_key(rig, 1, "alice"));
    rig_free(rig);
    assert_int_equal(script.freed, 0);
}

/* S3-35 */
static void custom_key_store_replaces_the_table(void **state)
{
    struct script script = {.quota = {10, 4, WEIR_SECOND, WEIR_MINUTE}};
    struct admission_fixture *rig = rig_new();

    (void)state;
    rig_add_store(rig, "r", WEIR_KEY_USER, script_repository(&script));
    /* A key store needs no other function than attempt. */
    rig->repositories[0].reserve = NULL;
    rig->repositories[0].settle = NULL;
    rig->repositories[0].release = NULL;
    rig_open(rig);
    assert_true(rig_try_key(rig, 0, "alice"));
    assert_int_equal(script.asked, 1);
    assert_int_equal(rig->admission.rulings[0].quota.remaining, 4);
    assert_int_equal(weir_admission_release(rig->counter, &rig->admission), 0);
    assert_int_equal(weir_admission_release_key(rig->counter, 0, "alice", 5, 0), 0);
    script.decision.verdict = WEIR_WAIT;
    assert_false(rig_try_key(rig, 0, "alice"));
    rig_free(rig);
}

/* S3-36 */
static void admission_keys_do_not_expire_by_themselves(void **state)
{
    struct admission_fixture *rig = rig_new();
    weir_table_stats stats;

    (void)state;
    rig_add(rig, "r", WEIR_KEY_USER, window(1));
    rig_add(rig, "in flight", WEIR_KEY_USER, at_once(1));
    rig_open(rig);
    assert_true(rig_try_key(rig, 0, "alice"));
    assert_true(rig_try_key(rig, 1, "alice"));
    assert_int_equal(weir_clock_fake_advance(rig->clock, 365 * WEIR_DAY), 0);
    assert_int_equal(weir_table_sweep(rig->tables[0]), 0);
    assert_int_equal(weir_table_stats_get(rig->tables[0], &stats), 0);
    assert_int_equal(stats.keys, 1);
    assert_false(rig_try_key(rig, 1, "alice"));
    rig_free(rig);
}

/* ---- settling at the real cost ---- */

static void request_is_settled_at_its_real_cost(void **state)
{
    struct admission_fixture *rig = rig_new();

    (void)state;
    rig_add(rig, "r", WEIR_KEY_USER, window(100));
    rig_open(rig);
    assert_int_equal(weir_admission_try_key(rig->counter, 0, "a", 1, 40, &rig->admission), 0);
    assert_int_equal(rig_left(rig, 0, "a"), 60);
    assert_int_equal(weir_admission_settle(rig->counter, &rig->admission, 0, 10), 0);
    assert_int_equal(rig_left(rig, 0, "a"), 90);
    assert_int_equal(weir_admission_settle(rig->counter, &rig->admission, 0, 0), 0); /* no effect */
    assert_int_equal(rig_left(rig, 0, "a"), 90);
    assert_int_equal(weir_admission_try_key(rig->counter, 0, "a", 1, 1, &rig->admission), 0);
    /* more than it took */
    assert_int_equal(weir_admission_settle(rig->counter, &rig->admission, 0, 50), 0);
    assert_int_equal(rig_left(rig, 0, "a"), 40);
    assert_int_equal(weir_admission_settle(rig->counter, &rig->admission, 1, 0), WEIR_E_INVAL);
    rig_free(rig);
}

static void settled_permits_in_flight_are_all_released(void **state)
{
    struct admission_fixture *rig = rig_new();
    static weir_admission_result other;

    (void)state;
    rig_add(rig, "r", WEIR_KEY_USER, at_once(10));
    rig_open(rig);
    assert_int_equal(weir_admission_try_key(rig->counter, 0, "a", 1, 3, &other), 0);
    assert_int_equal(weir_admission_try_key(rig->counter, 0, "a", 1, 6, &rig->admission), 0);
    assert_int_equal(weir_admission_settle(rig->counter, &rig->admission, 0, 2), 0);
    assert_int_equal(rig_left(rig, 0, "a"), 5);
    assert_int_equal(weir_admission_release(rig->counter, &rig->admission), 0);
    assert_int_equal(rig_left(rig, 0, "a"), 7); /* the other request still holds three permits */
    rig_free(rig);
}

static void a_cancelled_request_costs_nothing(void **state)
{
    struct admission_fixture *rig = rig_new();

    (void)state;
    rig_add(rig, "window", WEIR_KEY_IP, window(3));
    rig_add(rig, "at once", WEIR_KEY_IP, at_once(3));
    rig_open(rig);
    assert_true(rig_try(rig));
    assert_int_equal(weir_admission_cancel(rig->counter, &rig->admission), 0);
    assert_int_equal(rig_left(rig, 0, "203.0.113.7"), 3);
    assert_int_equal(rig_left(rig, 1, "203.0.113.7"), 3);
    assert_int_equal(weir_admission_cancel(rig->counter, &rig->admission), 0);
    assert_int_equal(rig_left(rig, 1, "203.0.113.7"), 3);
    rig_free(rig);
}

WEIR_TESTS(test(each_key_has_a_limiter_of_its_own_made_when_first_seen),
           test(refusal_reports_the_quota_and_the_retry_time),
           test(retry_after_is_at_least_1_where_a_retry_can_succeed), test(release_by_key_ends_a_request_in_flight),
           test(an_admission_is_released_once), test(releasing_a_refused_request_does_nothing),
           test(header_callback_and_uri_are_enough_for_a_request),
           test(admission_result_lists_the_keys_that_were_charged), test(any_bytes_are_a_valid_key_in_try_key),
           test(rules_over_one_key_store_share_the_limiter_of_a_key), test(removed_key_starts_with_its_full_limit),
           test(keys_are_removed_by_a_predicate), test(owned_key_store_is_freed_once_with_its_admission),
           test(key_store_that_is_not_owned_outlives_its_admission), test(custom_key_store_replaces_the_table),
           test(admission_keys_do_not_expire_by_themselves), test(request_is_settled_at_its_real_cost),
           test(settled_permits_in_flight_are_all_released), test(a_cancelled_request_costs_nothing))
