/* SPDX-License-Identifier: MIT */
/* test_edges.c - tests of what the rules report besides verdicts, and of values at their limits. */
#include "rig.h"

#include "lib/test.h"
#include "serve/rules/epoch.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weir/time.h>

static const char plain[] = "rules:\n  - {name: a, limit: 5/h fixed_window}\n";
static const struct call somebody = {.peer = "203.0.113.7"};

static void generated_secret_has_64_digits_and_differs_per_instance(void **state)
{
    (void)state;
    struct rules_fixture one, other;
    rig_open(&one, plain);
    rig_open(&other, plain);
    const char *secret = wr_rules_secret(one.book);
    assert_int_equal(strlen(secret), 64);
    assert_int_equal(strspn(secret, "0123456789abcdef"), 64);
    assert_string_not_equal(secret, wr_rules_secret(other.book));
    rig_close(&one);
    rig_close(&other);
    rig_open(&one, "admission: {secret: hush-hush-hush-hush}\nrules:\n  - {name: a, limit: 5/h}\n");
    assert_string_equal(wr_rules_secret(one.book), "hush-hush-hush-hush");
    rig_close(&one);
}

static void reservation_numbers_differ_between_instances(void **state)
{
    (void)state;
    uint64_t numbers[4];
    for (size_t i = 0; i < 4; i++) {
        struct rules_fixture rig;
        rig_open(&rig, "rules:\n  - {name: a, limit: concurrent=1}\n");
        assert_true(rig_try(&rig, &somebody));
        numbers[i] = rig.verdict.hold;
        assert_true(numbers[i] >> 21 != 0 && numbers[i] < UINT64_C(1) << 53);
        rig_close(&rig);
    }
    assert_false(numbers[0] == numbers[1] && numbers[0] == numbers[2] && numbers[0] == numbers[3]);
}

static void verdict_of_a_granted_request_has_no_stale_members(void **state)
{
    (void)state;
    struct rules_fixture rig;
    rig_open(&rig, plain);
    for (int by_key = 0; by_key <= 1; by_key++) {
        memset(&rig.verdict, 0xee, sizeof rig.verdict);
        if (by_key)
            assert_int_equal(wr_rules_try_key(rig.book, "a", "k", 1, 0, &rig.verdict), 0);
        else
            assert_true(rig_try(&rig, &somebody));
        assert_true(rig.verdict.allowed && !rig.verdict.shadowed && rig.verdict.admission.allowed);
        assert_true(rig.verdict.cause == WR_CAUSE_GRANTED && rig.verdict.status == 200);
        assert_int_equal(rig.verdict.retry_after_ns, 0);
        assert_int_equal(rig.verdict.hold, 0);
        assert_int_equal(rig.verdict.fault, WEIR_FAULT_NONE);
        assert_int_equal(rig.verdict.admission.count, 1);
        assert_string_equal(rig.verdict.rule, "a");
    }
    assert_int_equal(rig_count(&rig, &somebody, 5), 4);
    assert_int_equal(rig.verdict.retry_after_ns, WEIR_HOUR);
    rig_close(&rig);
}

static void key_is_decided_at_once_by_local_rules(void **state)
{
    (void)state;
    struct rules_fixture rig;
    struct call_list list;
    weir_request request = request_of(&somebody, &list);
    rig_open(&rig, plain);
    assert_int_equal(wr_rules_try_key_now(rig.book, "a", "k", 1, 4, &rig.verdict), 0);
    assert_true(rig.verdict.allowed);
    assert_int_equal(wr_rules_try_key_now(rig.book, "a", "k", 1, 4, &rig.verdict), 0);
    assert_false(rig.verdict.allowed);
    assert_int_equal(wr_rules_try_key_now(rig.book, "b", "k", 1, 4, &rig.verdict), WEIR_E_ABSENT);
    assert_int_equal(wr_rules_try_key_now(rig.book, "a", "", 0, 4, &rig.verdict), WEIR_E_INVAL);
    assert_true(wr_rules_try_now(rig.book, &request, &rig.verdict) && rig.verdict.allowed);
    assert_true(wr_rules_reserve_now(rig.book, &request, 0, &rig.verdict) && rig.verdict.hold != 0);
    assert_int_equal(wr_reservation_cancel(rig.book, rig.verdict.hold), 0);
    assert_int_equal(rig_count(&rig, &somebody, 9), 4);
    rig_close(&rig);
}

static void wake(void *context)
{
    (void)context;
}

static void pending_request_for_one_rule_is_decided_like_its_key(void **state)
{
    (void)state;
    struct rules_fixture rig;
    struct wr_pending_request *turn;
    struct wr_rules_view view;
    int64_t wait_ns;
    rig_open(&rig, plain);
    struct wr_rules_request wish = {.rule = "a", .key = "k", .key_bytes = 1, .cost = 2};
    for (int i = 0; i < 3; i++) { /* two requests of cost 2 fit in 5 */
        assert_int_equal(wr_rules_enqueue_for_store(rig.book, &wish, wake, NULL, &turn), 0);
        wr_rules_view_get(rig.book, &view);
        assert_int_equal(view.waiting, 1);
        assert_true(wr_pending_request_poll(turn, &rig.verdict, &wait_ns));
        assert_int_equal(rig.verdict.allowed, i < 2);
        wr_rules_view_get(rig.book, &view);
        assert_int_equal(view.waiting, 0);
        wr_pending_request_free(turn);
    }
    wish.cost = 0; /* 0: the cost of the rule, 1 */
    wish.holds = true;
    wish.lease_ns = WEIR_SECOND;
    assert_int_equal(wr_rules_enqueue_for_store(rig.book, &wish, wake, NULL, &turn), 0);
    assert_true(wr_pending_request_poll(turn, &rig.verdict, &wait_ns));
    assert_true(rig.verdict.allowed && rig.verdict.hold != 0);
    wr_pending_request_free(turn);
    assert_int_equal(wr_reservation_cancel(rig.book, rig.verdict.hold), 0);
    assert_int_equal(wr_rules_enqueue_for_store(rig.book, &wish, wake, NULL, &turn), 0);
    wr_pending_request_free(turn); /* freed before it was polled */
    wr_rules_view_get(rig.book, &view);
    assert_int_equal(view.waiting, 0);
    wish.rule = "b";
    assert_int_equal(wr_rules_enqueue_for_store(rig.book, &wish, wake, NULL, &turn), WEIR_E_ABSENT);
    wish.rule = "a";
    wish.key_bytes = 0;
    assert_int_equal(wr_rules_enqueue_for_store(rig.book, &wish, wake, NULL, &turn), WEIR_E_INVAL);
    wr_rules_view_get(rig.book, &view);
    assert_int_equal(view.waiting, 0);
    assert_int_equal(view.holds, 0);
    rig_close(&rig);
}

static void trusted_peers_are_reported_and_can_be_reloaded(void **state)
{
    (void)state;
    struct rules_fixture rig;
    static const char yaml[] =
        "admission: {trusted: [10.0.0.0/8, unix]}\nrules:\n  - {name: a, limit: 5/h fixed_window}\n";
    rig_open(&rig, yaml);
    assert_true(wr_rules_peer_is_trusted(rig.book, wr_span_of("10.1.2.3")));
    assert_false(wr_rules_peer_is_trusted(rig.book, wr_span_of("11.1.2.3")));
    assert_int_equal(rig_reload(&rig, plain), 0); /* waits until no thread reads the old rules */
    assert_false(wr_rules_peer_is_trusted(rig.book, wr_span_of("10.1.2.3")));
    rig_close(&rig);
}

static void empty_or_unknown_plan_means_the_limits_of_the_rule(void **state)
{
    (void)state;
    struct rules_fixture rig;
    rig_open(&rig, "rules:\n"
                   "  - name: a\n"
                   "    limit: 2/h\n"
                   "    plan_header: x-plan\n"
                   "    plans: [{name: p, limit: 4/h}, {name: q, limit: 6/h}]\n");
    static const struct {
        const char *plan;
        int allowed;
        /* An unknown plan means the rule's own limits, which are used up by then. */
    } rows[] = {{"", 2}, {"p", 4}, {"q", 6}, {"r", 0}, {"P", 0}};
    for (size_t i = 0; i < 5; i++) {
        struct call call = {.peer = "1.1.1.1", .headers = {"x-plan", rows[i].plan}};
        if (rig_count(&rig, &call, 9) != rows[i].allowed)
            fail_msg("on plan \"%s\"", rows[i].plan);
    }
    rig_close(&rig);
}

static void requested_lease_is_kept_up_to_the_longest_duration(void **state)
{
    (void)state;
    static const struct {
        int64_t lease_ns;
        bool is_own; /* false: the lease of the settings, one minute */
    } rows[] = {{WEIR_DURATION_MAX, true}, {WEIR_DURATION_MAX + 1, false}, {0, false}, {-1, false}, {WEIR_HOUR, true}};
    for (size_t i = 0; i < 5; i++) {
        struct rules_fixture rig;
        struct call_list list;
        weir_request request = request_of(&somebody, &list);
        rig_open(&rig, "admission: {lease: 60s}\nrules:\n  - {name: a, limit: concurrent=1}\n");
        wr_rules_reserve(rig.book, &request, rows[i].lease_ns, &rig.verdict);
        assert_true(rig.verdict.allowed);
        rig_advance(&rig, WEIR_MINUTE - 1);
        wr_rules_tick(rig.book);
        assert_false(rig_try(&rig, &somebody));
        rig_advance(&rig, 1);
        wr_rules_tick(rig.book);
        assert_int_equal(rig_try(&rig, &somebody), !rows[i].is_own);
        rig_close(&rig);
    }
}

static void host_is_checked_only_if_a_rule_needs_it(void **state)
{
    (void)state;
    static const struct call odd = {.peer = "1.1.1.1", .method = "GET", .target = "/", .host = "a b"};
    static const struct {
        const char *yaml;
        bool allowed;
    } rows[] = {
        {"rules:\n  - {name: a, limit: 5/h}\n", true},
        {"rules:\n  - {name: a, key: method, limit: 5/h}\n", true},
        {"rules:\n  - {name: a, match: {host: example.org}, limit: 5/h}\n", false},
        {"rules:\n  - {name: a, key: host, limit: 5/h}\n", false},
    };
    for (size_t i = 0; i < 4; i++) {
        struct rules_fixture rig;
        rig_open(&rig, rows[i].yaml);
        if (rig_try(&rig, &odd) != rows[i].allowed)
            fail_msg("%s", rows[i].yaml);
        assert_int_equal(rig.verdict.cause, rows[i].allowed ? WR_CAUSE_GRANTED : WR_CAUSE_MALFORMED);
        rig_close(&rig);
    }
}

static void requests_without_the_parts_of_a_key_share_one(void **state)
{
    (void)state;
    static const char *const keys[] = {"host", "route", "method", "global"};
    for (size_t i = 0; i < 4; i++) {
        struct rules_fixture rig;
        char yaml[128];
        static const struct call one = {.peer = "1.1.1.1"}, other = {.peer = "2.2.2.2"};
        snprintf(yaml, sizeof yaml, "rules:\n  - {name: a, key: %s, limit: 5/h}\n", keys[i]);
        rig_open(&rig, yaml);
        if (rig_count(&rig, &one, 3) != 3 || rig_count(&rig, &other, 9) != 2)
            fail_msg("key: %s", keys[i]);
        rig_close(&rig);
    }
}

static void error_of_an_invalid_network_names_its_list(void **state)
{
    (void)state;
    static const char *const lists[] = {"allow", "deny", "trusted"};
    for (size_t i = 0; i < 3; i++) {
        struct wr_rules_settings *settings = settings_of(plain);
        char why[WR_CONFIG_WHY_BYTES] = "";
        wr_rule_word *word = i == 0 ? settings->allow : i == 1 ? settings->deny : settings->trusted;
        *(i == 0 ? &settings->allow_count : i == 1 ? &settings->deny_count : &settings->trusted_count) = 1;
        memcpy(word[0], "10.0.0.0/99", 12);
        assert_int_equal(wr_rules_check(settings, why, sizeof why), WEIR_E_INVAL);
        assert_non_null(strstr(why, lists[i]));
        assert_non_null(strstr(why, "10.0.0.0/99"));
        free(settings);
    }
}

static void top_without_memory_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    struct rules_fixture rig;
    weir_table_entry *top = NULL;
    size_t count;
    rig_open(&rig, "rules:\n  - {name: a, limit: 5/h, plans: [{name: p, limit: 7/h, keys: [1.1.1.1]}]}\n");
    assert_int_equal(rig_count(&rig, &somebody, 2), 2);
    int error = WEIR_E_NOMEM;
    long at = 1;
    for (; error == WEIR_E_NOMEM; at++) {
        rig.memory.fail_at = at;
        error = wr_rules_top_keys(rig.book, "a", WEIR_TOP_RECENT, 5, &top, &count);
    }
    rig.memory.fail_at = 0;
    assert_true(at > 3); /* each earlier allocation has failed once */
    assert_int_equal(error, 0);
    assert_int_equal(count, 1);
    wr_rules_top_keys_free(rig.book, top);
    wr_rules_top_keys_free(rig.book, NULL);
    rig_close(&rig);
}

static void *number_of_thread(void *context)
{
    unsigned *number = context;
    *number = wr_thread_number();
    assert_int_equal(*number, wr_thread_number());
    return NULL;
}

static void threads_are_numbered_from_0_on(void **state)
{
    (void)state;
    bool seen[200] = {false};
    unsigned number;
    (void)number_of_thread(&number);
    assert_true(number < 100);
    seen[number] = true;
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, number_of_thread, &number), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(number < 200 && !seen[number]);
        seen[number] = true;
    }
}

static void unreadable_settings_count_as_a_failed_reload(void **state)
{
    (void)state;
    struct rules_fixture rig;
    struct wr_rules_view view;
    rig_open(&rig, plain);
    wr_rules_count_failed_reload(rig.book);
    assert_int_equal(rig_reload(&rig, plain), 0);
    assert_int_equal(rig_reload(&rig, plain), 0);
    wr_rules_view_get(rig.book, &view);
    assert_true(view.reloads == 2 && view.reloads_failed == 1 && view.rules == 1 && !view.has_store);
    assert_int_equal(view.holds_max, 65536);
    rig_close(&rig);
}

static void causes_have_the_names_of_the_metrics(void **state)
{
    (void)state;
    assert_string_equal(wr_cause_name(WR_CAUSE_GRANTED), "granted");
    assert_string_equal(wr_cause_name(WR_CAUSE_DENY_LIST), "deny_list");
    assert_string_equal(wr_cause_name(WR_CAUSE_FULL), "full");
    assert_string_equal(wr_cause_name((enum wr_cause)(WR_CAUSE_FULL + 1)), "unknown");
}

/* ---- the path of the state file ---- */

static void path_of_the_key_file_is_checked_in_advance(void **state)
{
    (void)state;
    char folder[] = "/tmp/weir-edges-XXXXXX", path[64], why[256];
    static char long_path[8192];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/keys", folder);
    assert_int_equal(wr_rules_check_state_path(path, why, sizeof why), 0);
    assert_int_equal(access(path, F_OK), -1); /* the check creates nothing */
    assert_int_equal(wr_rules_check_state_path(folder, why, sizeof why), WEIR_E_SYSTEM);
    assert_memory_equal(why, folder, strlen(folder));
    assert_string_equal(why + strlen(folder), ": it is a folder; name a file in it");
    snprintf(path, sizeof path, "%s/none/keys", folder);
    assert_int_equal(wr_rules_check_state_path(path, why, sizeof why), WEIR_E_SYSTEM);
    assert_string_equal(why + strlen(path), ": its folder does not exist; create it, or name another file");
    if (geteuid() != 0) {
        snprintf(path, sizeof path, "%s/keys", folder);
        assert_int_equal(chmod(folder, 0500), 0);
        assert_int_equal(wr_rules_check_state_path(path, why, sizeof why), WEIR_E_SYSTEM);
        assert_string_equal(why + strlen(path),
                            ": its folder is not writable; change its permissions, or name another file");
    }
    memset(long_path, '/', sizeof long_path - 1);
    assert_int_equal(wr_rules_check_state_path(long_path, why, sizeof why), WEIR_E_SYSTEM);
    assert_int_equal(why[0], '/');
    long_path[100] = '\0';
    assert_int_equal(wr_rules_check_state_path("keys-in-this-folder", why, sizeof why), 0);
    assert_int_equal(rmdir(folder), 0);
}

WEIR_TESTS(test(generated_secret_has_64_digits_and_differs_per_instance),
           test(reservation_numbers_differ_between_instances), test(verdict_of_a_granted_request_has_no_stale_members),
           test(key_is_decided_at_once_by_local_rules), test(pending_request_for_one_rule_is_decided_like_its_key),
           test(trusted_peers_are_reported_and_can_be_reloaded),
           test(empty_or_unknown_plan_means_the_limits_of_the_rule),
           test(requested_lease_is_kept_up_to_the_longest_duration), test(host_is_checked_only_if_a_rule_needs_it),
           test(requests_without_the_parts_of_a_key_share_one), test(error_of_an_invalid_network_names_its_list),
           test(top_without_memory_is_an_error_and_leaks_nothing), test(threads_are_numbered_from_0_on),
           test(unreadable_settings_count_as_a_failed_reload), test(causes_have_the_names_of_the_metrics),
           test(path_of_the_key_file_is_checked_in_advance))
