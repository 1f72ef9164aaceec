/* SPDX-License-Identifier: MIT */
/* test_book.c - rulebooks with limits in one real store: what they admit together, return and
 * report. */
#include "lib/test.h"
#include "serve/rules/rules.h"
#include "share/rig.h"

#include <errno.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>

static struct wr_rules_settings *settings_of(const char *rules)
{
    static struct wr_rules_settings settings;
    char text[2048], why[WR_CONFIG_WHY_BYTES] = "";

    snprintf(text, sizeof text, "admission:\n  store: {url: \"unix:%s\", nodes: 2, timeout: 20s}\n%s", store.path,
             rules);
    wr_rules_settings_init(&settings);
    if (wr_config_parse(&wr_rules_schema, "t", text, strlen(text), weir_allocator_system(), &settings, why,
                        sizeof why) != 0)
        fail_msg("%s", why);
    return &settings;
}

static struct wr_redis_client_view store_of(struct wr_rules *book)
{
    struct wr_rules_view view;
    wr_rules_view_get(book, &view);
    assert_true(view.has_store);
    return view.store;
}

static void wait_until_store_is(struct wr_rules *book, bool down)
{
    while (store_of(book).wire.down != down || (!down && !store_of(book).seated))
        usleep(1000);
}

static struct wr_rules *book_open(const char *rules)
{
    struct wr_rules *book;
    char why[WR_CONFIG_WHY_BYTES] = "";

    if (wr_rules_new(settings_of(rules), NULL, &book, why, sizeof why) != 0)
        fail_msg("%s", why);
    wait_until_store_is(book, false);
    return book;
}

/* ---- requests -------------------------------------------------------------------------------- */

static weir_request request_of(const char *peer)
{
    weir_request request;
    weir_request_init(&request, "GET", "/", peer);
    return request;
}

static void wake_test(void *context)
{
    (void)sem_post(context);
}

/* Polls a pending decision until it is made, and frees it. Returns the number of polls. */
static int await_turn(struct wr_pending_request *turn, sem_t *woken, struct wr_verdict *ret_verdict)
{
    int64_t wait_ns;
    int polls = 1;
    for (; !wr_pending_request_poll(turn, ret_verdict, &wait_ns); polls++) {
        struct timespec until;
        wait_ns = wait_ns < WEIR_MINUTE ? wait_ns : WEIR_MINUTE;
        (void)clock_gettime(CLOCK_REALTIME, &until);
        int64_t end_ns = until.tv_nsec + wait_ns % WEIR_SECOND;
        until.tv_sec += (time_t)(wait_ns / WEIR_SECOND + end_ns / WEIR_SECOND);
        until.tv_nsec = (long)(end_ns % WEIR_SECOND);
        (void)sem_timedwait(woken, &until);
    }
    wr_pending_request_free(turn);
    return polls;
}

static void decide_wish(struct wr_rules *book, const struct wr_rules_request *wish, struct wr_verdict *ret_verdict)
{
    struct wr_pending_request *turn;
    sem_t woken;
    (void)sem_init(&woken, 0, 0);
    ret_verdict->origin = 0;
    assert_int_equal(wr_rules_enqueue_for_store(book, wish, wake_test, &woken, &turn), 0);
    (void)await_turn(turn, &woken, ret_verdict);
    (void)sem_destroy(&woken);
}

/* Decides as a server does: at once if possible, otherwise after asking the store. */
static bool decide(struct wr_rules *book, const char *peer, struct wr_verdict *ret_verdict)
{
    weir_request request = request_of(peer);
    ret_verdict->origin = 0;
    if (!wr_rules_try_now(book, &request, ret_verdict))
        decide_wish(book, &(struct wr_rules_request){.request = &request}, ret_verdict);
    return ret_verdict->allowed;
}

static int decide_often(struct wr_rules *book, const char *peer, int times)
{
    struct wr_verdict verdict;
    int allowed = 0;
    for (int i = 0; i < times; i++)
        allowed += decide(book, peer, &verdict);
    return allowed;
}

static uint64_t reserve(struct wr_rules *book, const char *peer)
{
    struct wr_verdict verdict = {0};
    weir_request request = request_of(peer);
    if (!wr_rules_reserve_now(book, &request, WEIR_HOUR, &verdict))
        decide_wish(book, &(struct wr_rules_request){.request = &request, .holds = true, .lease_ns = WEIR_HOUR},
                    &verdict);
    return verdict.hold;
}

static struct wr_rule_view rule_of(struct wr_rules *book, uint32_t index)
{
    struct wr_rule_view view;
    assert_int_equal(wr_rule_view_get(book, index, &view), 0);
    return view;
}

/* ---- with a store ---------------------------------------------------------------------------- */

static const char exact[] =
    "rules:\n  - {name: r, limit: 10/h fixed_window, share: {overshoot: 0%, on_outage: closed}}\n";

static void rulebooks_that_share_a_store_admit_exactly_the_limit(void **state)
{
    (void)state;
    struct wr_rules *one = book_open(exact), *other = book_open(exact);
    int allowed = 0;
    for (int i = 0; i < 10; i++)
        allowed += decide_often(one, "1.1.1.1", 1) + decide_often(other, "1.1.1.1", 1);
    assert_int_equal(allowed, 10);
    assert_int_equal(decide_often(other, "2.2.2.2", 3), 3); /* a key of its own */
    struct wr_verdict verdict = {0};
    assert_false(decide(one, "1.1.1.1", &verdict));
    assert_true(verdict.cause == WR_CAUSE_LIMITED && verdict.status == 429);
    assert_string_equal(verdict.rule, "r");
    assert_in_range(verdict.retry_after_ns, 1, WEIR_HOUR);
    assert_int_equal(verdict.admission.rulings[0].quota.limit, 10);
    assert_int_equal(verdict.admission.rulings[0].quota.remaining, 0);
    wr_rules_free(one);
    wr_rules_free(other);
}

static void caller_that_cannot_wait_for_the_store_gets_the_on_error_decision(void **state)
{
    (void)state;
    static const char *const on_error[] = {"", "  on_error: open\n"};
    for (int opens = 0; opens <= 1; opens++) {
        char rules[512];
        struct wr_verdict verdict = {0};
        const char *peer = opens ? "2.2.2.2" : "1.1.1.1";
        weir_request request = request_of(peer);
        snprintf(rules, sizeof rules, "%s%s", on_error[opens], exact);
        struct wr_rules *book = book_open(rules);
        wr_rules_try(book, &request, &verdict);
        assert_int_equal(verdict.allowed, opens);
        assert_int_equal(verdict.cause, opens ? WR_CAUSE_FAILED_OPEN : WR_CAUSE_FAILED);
        assert_int_equal(verdict.status, opens ? 200 : 503);
        assert_int_equal(wr_rules_try_key(book, "r", peer, 7, 0, &verdict), 0);
        assert_int_equal(verdict.cause, opens ? WR_CAUSE_FAILED_OPEN : WR_CAUSE_FAILED);
        wr_rules_reserve(book, &request, 0, &verdict);
        assert_int_equal(verdict.cause, opens ? WR_CAUSE_FAILED_OPEN : WR_CAUSE_FAILED);
        /* the failed attempts charged nothing */
        assert_int_equal(decide_often(book, peer, 20), 10);
        wr_rules_free(book);
    }
}

static void nothing_is_charged_or_counted_before_the_store_is_asked(void **state)
{
    (void)state;
    static const char rules[] = "  match: all\n"
                                "rules:\n"
                                "  - {name: own, limit: 3/h fixed_window}\n"
                                "  - {name: r, limit: 10/h fixed_window, share: {overshoot: 0%, on_outage: closed}}\n";
    struct wr_rules *book = book_open(rules);
    struct wr_rules_view view;
    struct wr_verdict verdict = {0};
    weir_request request = request_of("1.1.1.1");
    for (int i = 0; i < 20; i++) {
        assert_false(wr_rules_try_now(book, &request, &verdict));
        assert_false(wr_rules_reserve_now(book, &request, 0, &verdict));
    }
    assert_int_equal(wr_rules_try_key_now(book, "r", "1.1.1.1", 7, 0, &verdict), WEIR_E_CLOSED);
    assert_int_equal(wr_rules_try_key_now(book, "none", "1.1.1.1", 7, 0, &verdict), WEIR_E_ABSENT);
    wr_rules_view_get(book, &view);
    for (size_t i = 0; i < WR_CAUSE_COUNT; i++)
        assert_int_equal(view.causes[i], 0);
    assert_int_equal(decide_often(book, "1.1.1.1", 9), 3);
    /* this rule needs no store */
    assert_int_equal(wr_rules_try_key_now(book, "own", "9.9.9.9", 7, 0, &verdict), 0);
    assert_true(verdict.allowed);
    wr_rules_view_get(book, &view);
    assert_int_equal(view.causes[WR_CAUSE_GRANTED], 4);
    assert_int_equal(view.causes[WR_CAUSE_LIMITED], 6);
    assert_int_equal(view.waiting, 0);
    wr_rules_free(book);
}

static void rule_and_key_are_charged_in_the_store_at_the_given_cost(void **state)
{
    (void)state;
    struct wr_rules *book = book_open(exact);
    struct wr_verdict verdict = {0};
    struct wr_rules_request wish = {.rule = "r", .key = "k", .key_bytes = 1, .cost = 4};
    for (int i = 0; i < 2; i++) {
        decide_wish(book, &wish, &verdict);
        assert_true(verdict.allowed);
        assert_int_equal(verdict.admission.rulings[0].permits, 4);
        assert_int_equal(verdict.hold, 0);
    }
    decide_wish(book, &wish, &verdict);
    assert_false(verdict.allowed);
    wish.cost = 0; /* the cost given by the rule, which is 1 */
    for (int i = 0; i < 2; i++) {
        decide_wish(book, &wish, &verdict);
        assert_true(verdict.allowed);
    }
    wish.key = "l";
    decide_wish(book, &wish, &verdict);
    assert_true(verdict.allowed);
    wr_rules_free(book);
}

static void reservations_are_settled_with_the_store(void **state)
{
    (void)state;
    struct wr_rules *book = book_open(exact), *other = book_open(exact);
    uint64_t cheap = reserve(book, "1.1.1.1"), dear = reserve(book, "1.1.1.1"), as_said = reserve(book, "1.1.1.1");
    assert_true(cheap != 0 && dear != 0 && as_said != 0);
    assert_int_equal(wr_reservation_cancel(book, cheap), 0);
    assert_int_equal(wr_reservation_commit(book, dear, 4), 0);
    assert_int_equal(wr_reservation_end(book, as_said), 0);
    assert_int_equal(wr_reservation_end(book, as_said), WEIR_E_ABSENT);
    /* 4 + 1 of ten permits are used */
    assert_int_equal(decide_often(book, "1.1.1.1", 20) + decide_often(other, "1.1.1.1", 20), 5);
    wr_rules_free(book);
    wr_rules_free(other);
}

static void requests_in_flight_are_counted_over_all_rulebooks(void **state)
{
    (void)state;
    static const char rules[] =
        "rules:\n  - {name: r, limit: concurrent=2, share: {overshoot: 0%, on_outage: closed}}\n";
    struct wr_rules *one = book_open(rules), *other = book_open(rules);
    struct wr_verdict verdict = {0};
    assert_true(decide(one, "1.1.1.1", &verdict));
    uint64_t first = verdict.hold;
    assert_true(decide(other, "1.1.1.1", &verdict));
    assert_true(first != 0 && verdict.hold != 0);
    assert_false(decide(other, "1.1.1.1", &verdict));
    struct wr_rule_view view = rule_of(one, 0);
    assert_int_equal(view.share.held, 1);

    weir_request request = request_of("1.1.1.1");
    struct wr_pending_request *turn;
    sem_t woken;
    (void)sem_init(&woken, 0, 0);
    assert_int_equal(wr_rules_enqueue(other, &request, 50 * MS, wake_test, &woken, &turn), 0);
    (void)await_turn(turn, &woken, &verdict);
    assert_true(!verdict.allowed && verdict.cause == WR_CAUSE_TIMED_OUT && verdict.status == 429);

    int64_t wait_ns;
    assert_int_equal(wr_rules_enqueue(other, &request, WEIR_FOREVER, wake_test, &woken, &turn), 0);
    struct wr_rules_view seen;
    wr_rules_view_get(other, &seen);
    assert_int_equal(seen.waiting, 1);
    assert_false(wr_pending_request_poll(turn, &verdict, &wait_ns));
    assert_int_equal(wr_reservation_end(one, first), 0);
    (void)await_turn(turn, &woken, &verdict);
    assert_true(verdict.allowed && verdict.hold != 0);
    wr_rules_view_get(other, &seen);
    assert_int_equal(seen.waiting, 0);
    (void)sem_destroy(&woken);
    wr_rules_free(one);
    wr_rules_free(other);
}

static uint64_t refusals_of(struct wr_rules *book)
{
    struct wr_rule_view view = rule_of(book, 0);
    uint64_t sum = 0;
    for (size_t i = 0; i < WR_SOURCE_COUNT; i++)
        sum += view.share.refused[i];
    return sum;
}

static void pending_decision_polled_early_does_not_ask_the_store(void **state)
{
    (void)state;
    struct wr_rules *book = book_open(exact);
    struct wr_verdict verdict = {0};
    struct wr_pending_request *turn;
    sem_t woken;
    int64_t wait_ns = 0;
    weir_request request = request_of("1.1.1.1");
    (void)sem_init(&woken, 0, 0);
    assert_int_equal(decide_often(book, "1.1.1.1", 11), 10); /* the window ends in an hour */
    uint64_t before = refusals_of(book);
    assert_int_equal(wr_rules_enqueue(book, &request, WEIR_FOREVER, wake_test, &woken, &turn), 0);
    while (refusals_of(book) == before) {
        assert_false(wr_pending_request_poll(turn, &verdict, &wait_ns));
        usleep(1000);
    }
    assert_false(wr_pending_request_poll(turn, &verdict, &wait_ns)); /* this poll receives the reply */
    before = refusals_of(book);
    for (int i = 0; i < 100; i++) {
        assert_false(wr_pending_request_poll(turn, &verdict, &wait_ns));
        assert_in_range(wait_ns, WEIR_MINUTE, WEIR_HOUR);
    }
    assert_int_equal(refusals_of(book), before);
    wr_pending_request_free(turn);
    (void)sem_destroy(&woken);
    wr_rules_free(book);
}

static void abandoned_decision_no_longer_counts_as_waiting(void **state)
{
    (void)state;
    struct wr_rules *book = book_open(exact);
    struct wr_rules_view view;
    struct wr_verdict verdict = {0};
    struct wr_pending_request *turn;
    sem_t woken;
    int64_t wait_ns = 0;
    weir_request request = request_of("1.1.1.1");
    (void)sem_init(&woken, 0, 0);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(wr_rules_enqueue(book, &request, WEIR_FOREVER, wake_test, &woken, &turn), 0);
        (void)wr_pending_request_poll(turn, &verdict, &wait_ns);
        wr_pending_request_free(turn);
    }
    (void)sem_destroy(&woken);
    wr_rules_view_get(book, &view);
    assert_int_equal(view.waiting, 0);
    wr_rules_free(book);
}

static void rules_and_plans_with_the_same_key_have_separate_permits(void **state)
{
    (void)state;
    static const char rules[] =
        "rules:\n"
        "  - name: r\n"
        "    limit: 10/h fixed_window\n"
        "    plan_header: x-plan\n"
        "    plans: [{name: p, limit: 10/h fixed_window}, {name: q, limit: 10/h fixed_window}]\n"
        "    share: {overshoot: 0%, on_outage: closed}\n"
        "  - {name: s, match: {path: /s}, limit: 10/h fixed_window, share: {overshoot: 0%, on_outage: closed}}\n";
    struct wr_rules *book = book_open(rules);
    struct wr_verdict verdict = {0};
    static const char *const names[] = {"r", "s"};
    for (size_t i = 0; i < 2; i++)
        for (int k = 0; k < 12; k++) {
            decide_wish(book, &(struct wr_rules_request){.rule = names[i], .key = "1.1.1.1", .key_bytes = 7}, &verdict);
            assert_int_equal(verdict.allowed, k < 10);
        }
    static const char *const plans[] = {"p", "q"};
    for (size_t i = 0; i < 2; i++)
        for (int k = 0; k < 12; k++) {
            weir_header header = {"x-plan", plans[i]};
            weir_header_list list = {&header, 1};
            weir_request request = request_of("1.1.1.1");
            request.header = weir_header_list_find;
            request.header_context = &list;
            decide_wish(book, &(struct wr_rules_request){.request = &request}, &verdict);
            assert_int_equal(verdict.allowed, k < 10);
        }
    wr_rules_free(book);
}

static void reset_key_is_new_for_all_rulebooks(void **state)
{
    (void)state;
    struct wr_rules *one = book_open(exact), *other = book_open(exact);
    assert_int_equal(decide_often(one, "1.1.1.1", 11), 10);
    assert_int_equal(decide_often(one, "2.2.2.2", 11), 10);
    assert_int_equal(wr_rules_reset_key(one, "r", "1.1.1.1", 7), 0);
    assert_int_equal(wr_rules_reset_key(one, "none", "1.1.1.1", 7), WEIR_E_ABSENT);
    assert_int_equal(wr_rules_reset_key(one, "r", "", 0), WEIR_E_INVAL);
    /* over the same connection, so that the reset comes first */
    assert_int_equal(decide_often(one, "1.1.1.1", 1), 1);
    assert_int_equal(decide_often(other, "1.1.1.1", 11), 9);
    assert_int_equal(decide_often(other, "2.2.2.2", 11), 0);
    wr_rules_free(one);
    wr_rules_free(other);
}

static void view_of_a_rule_sums_the_shared_limits_of_its_plans(void **state)
{
    (void)state;
    static const char rules[] = "rules:\n"
                                "  - name: r\n"
                                "    limit: 100000/h fixed_window\n"
                                "    plans: [{name: p, limit: 200000/h fixed_window, keys: [2.2.2.2]}]\n"
                                "    share: {overshoot: 2%, on_outage: share}\n"
                                "  - {name: own, match: {path: /own}, limit: 5/h}\n";
    struct wr_rules *book = book_open(rules);
    assert_int_equal(decide_often(book, "1.1.1.1", 50), 50);
    assert_int_equal(decide_often(book, "2.2.2.2", 70), 70);
    struct wr_rule_view view = rule_of(book, 0);
    assert_true(view.is_shared);
    assert_int_equal(view.share.granted[WR_SOURCE_LEASE] + view.share.granted[WR_SOURCE_STORE], 120);
    assert_true(view.share.granted[WR_SOURCE_STORE] >= 2 && view.share.granted[WR_SOURCE_STORE] < 20);
    assert_int_equal(view.share.keys, 2);
    assert_int_equal(view.share.batch, 2000); /* 2 % of 200000, for two nodes */
    assert_int_equal(view.share.bound, 4000);
    assert_true(view.share.longest_wait_ns > 0);
    assert_int_equal(view.share.owed + view.share.held + view.share.damaged, 0);
    assert_false(rule_of(book, 1).is_shared);
    struct wr_redis_client_view seen = store_of(book);
    assert_true(seen.seated && seen.nodes == 2 && !seen.wire.down && seen.wire.connected);
    wr_rules_free(book);
}

/* ---- reload ---------------------------------------------------------------------------------- */

static int reload(struct wr_rules *book, struct wr_rules_settings *settings, char *ret_why)
{
    ret_why[0] = '\0';
    return wr_rules_reload(book, settings, ret_why, WR_CONFIG_WHY_BYTES);
}

static void reload_keeps_shared_limits_that_did_not_change(void **state)
{
    (void)state;
    static const char leased[] =
        "rules:\n  - {name: r, limit: 10000/h fixed_window, share: {overshoot: 2%, on_outage: closed}}\n";
    static const char others[][160] = {
        "rules:\n  - {name: r, limit: 20000/h fixed_window, share: {overshoot: 2%, on_outage: closed}}\n",
        "rules:\n  - {name: r, limit: 10000/h fixed_window, share: {overshoot: 4%, on_outage: closed}}\n",
        "rules:\n  - {name: r, limit: 10000/h fixed_window, share: {overshoot: 2%, on_outage: open}}\n",
        "rules:\n  - {name: r, limit: 10000/h fixed_window}\n",
    };
    char why[WR_CONFIG_WHY_BYTES];
    struct wr_rules *book = book_open(leased);
    assert_int_equal(decide_often(book, "1.1.1.1", 5), 5);
    assert_int_equal(rule_of(book, 0).share.keys, 1);
    assert_int_equal(reload(book, settings_of(leased), why), 0);
    assert_int_equal(rule_of(book, 0).share.keys, 1); /* the key and its leased permits are kept */
    assert_int_equal(rule_of(book, 0).share.granted[WR_SOURCE_LEASE] + rule_of(book, 0).share.granted[WR_SOURCE_STORE],
                     5);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(reload(book, settings_of(others[i]), why), 0);
        assert_int_equal(rule_of(book, 0).is_shared, i < 3);
        assert_int_equal(rule_of(book, 0).share.keys, 0); /* a changed rule starts without keys */
        assert_int_equal(rule_of(book, 0).table.keys, 0);
        assert_int_equal(decide_often(book, "1.1.1.1", 1), 1);
    }
    struct wr_rules_view view;
    wr_rules_view_get(book, &view);
    assert_false(view.has_store);
    wr_rules_free(book);
}

static void changing_the_store_needs_a_restart(void **state)
{
    (void)state;
    static const char sentence[] = "the store or its number of nodes differs, which needs a restart";
    char why[WR_CONFIG_WHY_BYTES];
    struct wr_rules *book = book_open(exact);
    struct wr_rules_settings *settings = settings_of(exact);
    settings->store.nodes = 3;
    assert_int_equal(reload(book, settings, why), WEIR_E_INVAL);
    assert_non_null(strstr(why, sentence));
    settings = settings_of(exact);
    memcpy(settings->store.prefix, "other", 6);
    assert_int_equal(reload(book, settings, why), WEIR_E_INVAL);
    settings = settings_of(exact);
    memcpy(settings->store.url, "unix:/other", 12);
    assert_int_equal(reload(book, settings, why), WEIR_E_INVAL);
    settings = settings_of(exact);
    settings->store.url[0] = '\0';
    assert_int_equal(reload(book, settings, why), WEIR_E_INVAL);
    assert_non_null(strstr(why, "there is no store"));
    assert_int_equal(decide_often(book, "1.1.1.1", 20), 10);
    wr_rules_free(book);
}

/* ---- without a store ------------------------------------------------------------------------- */

static void without_the_store_each_rule_follows_its_on_outage_setting(void **state)
{
    (void)state;
    static const struct {
        const char *on_outage;
        enum wr_decision_source source;
        int allowed; /* grants of 20 requests */
    } rows[] = {
        {"share", WR_SOURCE_SHARE, 0}, /* the local share starts empty */
        {"open", WR_SOURCE_OPEN, 20},
        {"closed", WR_SOURCE_CLOSED, 0},
    };
    for (size_t i = 0; i < 3; i++) {
        char rules[256];
        snprintf(rules, sizeof rules,
                 "rules:\n  - {name: r, limit: 10/h fixed_window, share: {overshoot: 0%%, on_outage: %s}}\n",
                 rows[i].on_outage);
        struct wr_rules *book = book_open(rules);
        store_kill(&store);
        wait_until_store_is(book, true);
        int allowed = decide_often(book, "1.1.1.1", 20);
        struct wr_rule_view view = rule_of(book, 0);
        int reset = wr_rules_reset_key(book, "r", "1.1.1.1", 7);
        wr_rules_free(book);
        store_start(&store);
        assert_int_equal(allowed, rows[i].allowed);
        assert_int_equal(reset, WEIR_E_CLOSED);
        assert_int_equal(view.share.owed, rows[i].allowed);
        for (size_t k = 0; k < WR_SOURCE_COUNT; k++) {
            assert_int_equal(view.share.granted[k], k == rows[i].source ? rows[i].allowed : 0);
            if (view.share.refused[k] != (k == rows[i].source ? 20U - (unsigned)rows[i].allowed : 0))
                fail_msg("%s: %llu refused by %s", rows[i].on_outage, (unsigned long long)view.share.refused[k],
                         wr_decision_source_name((enum wr_decision_source)k));
        }
    }
}

/* ---- handover to another rulebook ------------------------------------------------------------ */

static void permits_in_flight_are_handed_over_to_the_next_rulebook(void **state)
{
    (void)state;
    static const char rules[] =
        "rules:\n  - {name: r, limit: concurrent=2, share: {overshoot: 0%, on_outage: closed}}\n";
    char path[128], why[WR_CONFIG_WHY_BYTES] = "";
    struct wr_rules_copy copy = {false, 0};
    struct wr_verdict verdict = {0};
    struct wr_rules *before = book_open(rules), *after = book_open(rules);
    assert_true(decide(before, "1.1.1.1", &verdict));
    uint64_t hold = verdict.hold;
    snprintf(path, sizeof path, "%s/keys", store.folder);
    assert_int_equal(wr_rules_copy(before, &copy, true, path, why, sizeof why), 0);
    assert_int_equal(wr_rules_load_keys(after, path, why, sizeof why), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rule_of(after, 0).share.held, 1);
    assert_int_equal(wr_reservation_end(after, hold), 0);
    assert_int_equal(rule_of(after, 0).share.held, 0);
    wr_rules_free(before);
    wr_rules_free(after);
}

WEIR_TESTS(served(rulebooks_that_share_a_store_admit_exactly_the_limit),
           served(caller_that_cannot_wait_for_the_store_gets_the_on_error_decision),
           served(nothing_is_charged_or_counted_before_the_store_is_asked),
           served(rule_and_key_are_charged_in_the_store_at_the_given_cost),
           served(reservations_are_settled_with_the_store), served(requests_in_flight_are_counted_over_all_rulebooks),
           served(pending_decision_polled_early_does_not_ask_the_store),
           served(abandoned_decision_no_longer_counts_as_waiting),
           served(rules_and_plans_with_the_same_key_have_separate_permits), served(reset_key_is_new_for_all_rulebooks),
           served(view_of_a_rule_sums_the_shared_limits_of_its_plans),
           served(reload_keeps_shared_limits_that_did_not_change), served(changing_the_store_needs_a_restart),
           served(without_the_store_each_rule_follows_its_on_outage_setting),
           served(permits_in_flight_are_handed_over_to_the_next_rulebook))
