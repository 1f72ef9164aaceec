/* SPDX-License-Identifier: MIT */
/* test_origins.c - tests http and https of one host: they share a gate, and each has its
 * robots.txt. */
#include "core/plan/inspect.h"
#include "rig.h"

static struct plan_store_fixture rig;

static void begin(void)
{
    rig_init(&rig);
    rig.options.ignores_robots = false;
    rig_begin_job(&rig);
}

static struct wr_plan_action next_robots(bool is_https)
{
    struct wr_plan_action action = rig_wait(&rig, rig.now + 10 * S);
    assert_kind(action, WR_PLAN_ROBOTS);
    assert_int_equal(action.is_https, is_https);
    if (is_https)
        assert_url(action, "https://a.example/robots.txt");
    else
        assert_url(action, "http://a.example/robots.txt");
    return action;
}

static void assert_next(enum wr_plan_action_kind kind, const char *url)
{
    struct wr_plan_action action = rig_wait(&rig, rig.now + 10 * S);
    assert_kind(action, kind);
    assert_url(action, url);
    if (kind == WR_PLAN_START)
        rig_fetch(&rig, &action, 200);
    else
        rig_ended(&rig, &action);
}

/* RFC 9309 2.3 */
static void pages_are_judged_by_the_rules_of_their_scheme(void **state)
{
    (void)state;
    static const char *const urls[] = {"http://a.example/p", "https://a.example/p", "http://a.example/s",
                                       "https://a.example/s"};
    begin();
    for (size_t i = 0; i < 4; i++)
        assert_offer(rig_offer(&rig, 1, urls[i]), WR_ADD_URL_NEW);
    struct wr_plan_action action = next_robots(false);
    const struct wr_plan_host *host = action.host;
    rig_robots(&rig, &action, 200, "User-agent: *\nDisallow: /s\n");
    action = next_robots(true);
    rig_robots(&rig, &action, 200, "User-agent: *\nDisallow: /p\n");
    struct wr_span rule;
    assert_int_equal(wr_plan_ruling(rig.plan, host, true, wr_span_of("/p"), rig.now, &rule).decision.verdict,
                     WEIR_DENY);
    assert_true(wr_span_is(rule, "/p"));
    assert_int_equal(wr_plan_ruling(rig.plan, host, true, wr_span_of("/s"), rig.now, &rule).decision.verdict, WEIR_GO);
    assert_int_equal(rule.bytes, 0);
    assert_next(WR_PLAN_START, "http://a.example/p");
    assert_next(WR_PLAN_END, "https://a.example/p");
    assert_next(WR_PLAN_END, "http://a.example/s");
    assert_next(WR_PLAN_START, "https://a.example/s");
    rig_release(&rig);
}

/* Both schemes are one host: the Crawl-delay of either file applies to requests of both. */
static void longer_crawl_delay_of_both_schemes_binds(void **state)
{
    static const int delays[][2] = {{3, 7}, {7, 3}};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char text[64];
        struct wr_plan_bound bounds[WR_PLAN_BOUNDS_MAX];
        begin();
        assert_offer(rig_offer(&rig, 1, "http://a.example/1"), WR_ADD_URL_NEW);
        assert_offer(rig_offer(&rig, 1, "https://a.example/2"), WR_ADD_URL_NEW);
        struct wr_plan_action action = next_robots(false);
        snprintf(text, sizeof text, "\nUser-agent: *\nCrawl-delay: %d\n", delays[i][0]);
        rig_robots(&rig, &action, 200, text);
        action = next_robots(true);
        snprintf(text, sizeof text, "User-agent: *\nCrawl-delay: %d\n", delays[i][1]);
        rig_robots(&rig, &action, 200, text);
        size_t count = wr_plan_bounds(rig.plan, action.host, rig.now, bounds), named = count;
        for (size_t k = 0; k < count; k++)
            named = bounds[k].reason == WEIR_REASON_ROBOTS_DELAY ? k : named;
        assert_true(named < count);
        assert_int_equal(bounds[named].value_ns, 7 * S);
        /* line in the file with the longer delay */
        assert_int_equal(bounds[named].line, delays[i][0] == 7 ? 3 : 2);
        int64_t asked_at = rig.now - 10 * MS;
        action = rig_page(&rig, rig.now + 10 * S);
        assert_true(rig.now == asked_at + 7 * S);
        rig_fetch(&rig, &action, 200);
        rig_release(&rig);
    }
}

static void failures_are_counted_by_scheme(void **state)
{
    (void)state;
    begin();
    assert_offer(rig_offer(&rig, 1, "https://a.example/1"), WR_ADD_URL_NEW);
    for (uint32_t i = 1; i <= 3; i++) {
        struct wr_plan_action action = rig_wait(&rig, rig.now + M);
        assert_kind(action, WR_PLAN_ROBOTS);
        assert_true(action.is_https);
        rig_robots(&rig, &action, 503, NULL);
        assert_int_equal(wr_plan_robots_failures(action.host, true), i);
        assert_int_equal(wr_plan_robots_failures(action.host, false), 0);
    }
    rig_release(&rig);
}

static void giving_up_one_scheme_ends_its_pages_only(void **state)
{
    (void)state;
    begin();
    assert_offer(rig_offer(&rig, 1, "https://a.example/1"), WR_ADD_URL_NEW);
    assert_offer(rig_offer(&rig, 1, "http://a.example/2"), WR_ADD_URL_NEW);
    assert_offer(rig_offer(&rig, 1, "https://a.example/3"), WR_ADD_URL_NEW);
    struct wr_plan_action action = next_robots(false);
    rig_robots(&rig, &action, 404, NULL);
    action = next_robots(true);
    rig_robots(&rig, &action, 0, NULL);
    wr_plan_origin_unreachable(rig.plan, action.host, true, 9, rig.now);
    for (int i = 0; i < 2; i++) {
        action = rig_next(&rig);
        assert_kind(action, WR_PLAN_END);
        assert_true(action.is_https);
        assert_int_equal(action.tag, 9);
        rig_ended(&rig, &action);
    }
    assert_next(WR_PLAN_START, "http://a.example/2");
    assert_kind(rig_next(&rig), WR_PLAN_DRAINED);
    rig_release(&rig);
}

/* B8: an unsent hop to https is repeated with https. */
static void unsent_hop_of_https_is_repeated_with_https(void **state)
{
    struct wr_robots_event leads = {
        .kind = WR_ROBOTS_EVENT_ANSWERED, .status = 301, .leads = true, .max_age_ns = -1, .retry_after_ns = -1};
    weir_outcome outcome = {.size = sizeof outcome, .status = 301};
    (void)state;
    begin();
    assert_offer(rig_offer(&rig, 1, "https://a.example/1"), WR_ADD_URL_NEW);
    struct wr_plan_action action = next_robots(true);
    assert_false(action.is_hop);
    rig_send(&rig, &action);
    wr_plan_robots_finished(rig.plan, action.task, &outcome, &leads, NULL, true, rig.now);
    for (int i = 0; i < 2; i++) {
        action = next_robots(true);
        assert_true(action.is_hop);
        wr_plan_task_given_back(rig.plan, action.task, rig.now);
    }
    action = next_robots(true);
    assert_true(action.is_hop);
    rig_robots(&rig, &action, 200, "User-agent: *\nDisallow: /1\n");
    assert_next(WR_PLAN_END, "https://a.example/1");
    rig_release(&rig);
}

/* R6: pages expire exactly on time, although nothing else wakes the host. */
static void pages_of_https_expire_like_those_of_http(void **state)
{
    static const char *const schemes[] = {"http", "https"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char url[64];
        rig_plain(&rig);
        for (int page = 0; page < 3; page++) {
            snprintf(url, sizeof url, "%s://a.example/%d", schemes[i], page);
            assert_offer(rig_offer(&rig, 1, url), WR_ADD_URL_NEW);
        }
        struct wr_plan_action action = rig_page(&rig, rig.now);
        int64_t started_at = rig.now;
        rig_send(&rig, &action);
        weir_outcome outcome = {
            .size = sizeof outcome, .status = 503, .has_retry_after = true, .retry_after_ns = 2 * WEIR_HOUR};
        wr_plan_page_finished(rig.plan, action.task, &outcome, 0, rig.now);
        for (int page = 0; page < 3; page++) {
            action = rig_wait(&rig, rig.now + WEIR_HOUR);
            assert_kind(action, WR_PLAN_END);
            assert_int_equal(action.is_https, i);
            assert_int_equal(action.reason, WEIR_REASON_RETRY_AFTER);
            assert_true(rig.now == started_at + 30 * M);
            rig_ended(&rig, &action);
        }
        rig_release(&rig);
    }
}

static void robots_txt_in_backoff_is_a_bound_of_its_host(void **state)
{
    struct wr_plan_bound bounds[WR_PLAN_BOUNDS_MAX];
    (void)state;
    begin();
    assert_offer(rig_offer(&rig, 1, "https://a.example/1"), WR_ADD_URL_NEW);
    struct wr_plan_action action = next_robots(true);
    rig_robots(&rig, &action, 503, NULL);
    size_t count = wr_plan_bounds(rig.plan, action.host, rig.now, bounds);
    const struct wr_plan_bound *last = &bounds[count - 1];
    assert_true(last->reason == WEIR_REASON_ROBOTS && last->source == WR_BOUND_FROM_ROBOTS);
    assert_int_equal(last->wait_ns, wr_plan_why(rig.plan, action.host, 1, rig.now).wait_ns);
    assert_true(last->wait_ns > 0 && last->wait_ns <= rig.options.robots.retry.base_ns);
    rig_release(&rig);
}

static void errand_without_room_for_its_host_is_an_error(void **state)
{
    char memory[WR_URL_ROOM];
    struct wr_url url;
    (void)state;
    rig_init(&rig);
    rig.options.max_hosts = 1;
    rig_begin_job(&rig);
    assert_int_equal(wr_url_parse(wr_span_of("http://b.example/r"), NULL, NULL, memory, sizeof memory, &url),
                     WR_URL_OK);
    rig.allocator.fail_at = 1;
    assert_int_equal(wr_plan_robots_hop_add(rig.plan, &url, 1, rig.now), WEIR_E_NOMEM);
    rig.allocator.fail_at = 0;
    rig_offer_many(&rig, 1, "a.example", 1);
    assert_int_equal(wr_plan_robots_hop_add(rig.plan, &url, 1, rig.now), WEIR_E_FULL);
    rig_release(&rig);
}

/* The store returns the memory of a host with its first tasks. Only if there are none is the memory
 * asked for alone. */
static void errand_does_not_ask_twice_for_the_memory_of_a_host(void **state)
{
    char memory[WR_URL_ROOM];
    struct wr_url url;
    (void)state;
    begin();
    rig.store_is_slow = true;
    assert_offer(rig_offer(&rig, 1, "http://a.example/1"), WR_ADD_URL_NEW);
    struct wr_plan_action load = rig_next(&rig);
    assert_kind(load, WR_PLAN_LOAD);
    assert_true(load.wants_memory && load.count > 0);
    assert_int_equal(wr_url_parse(wr_span_of("http://a.example/r"), NULL, NULL, memory, sizeof memory, &url),
                     WR_URL_OK);
    assert_int_equal(wr_plan_robots_hop_add(rig.plan, &url, 1, rig.now), 0);
    assert_kind(rig_next(&rig), WR_PLAN_IDLE);
    rig_answer_load(&rig, &load);
    rig.store_is_slow = false;
    assert_kind(rig_next(&rig), WR_PLAN_ROBOTS_HOP);
    rig_release(&rig);
}

/* A robots.txt request that was sent and given back counts as failed, and is repeated after a
 * backoff. */
static void robots_txt_that_was_sent_and_given_back_has_failed(void **state)
{
    (void)state;
    begin();
    assert_offer(rig_offer(&rig, 1, "https://a.example/1"), WR_ADD_URL_NEW);
    struct wr_plan_action action = next_robots(true);
    rig_send(&rig, &action);
    wr_plan_task_given_back(rig.plan, action.task, rig.now);
    assert_int_equal(wr_plan_robots_failures(action.host, true), 1);
    int64_t given_at = rig.now;
    action = next_robots(true);
    assert_true(rig.now >= given_at + rig.options.robots.retry.base_ns / 2);
    assert_false(action.is_hop);
    rig_robots(&rig, &action, 404, NULL);
    assert_next(WR_PLAN_START, "https://a.example/1");
    rig_release(&rig);
}

/* The stored robots.txt of https applies while it is refreshed with its validators. */
static void stored_rules_of_https_deny_and_are_refreshed(void **state)
{
    struct wr_robots_options options = {.agent = wr_span_of("weir"), .delay_max_ns = WR_ROBOTS_DELAY_MAX_NS};
    struct wr_plan_stored_host memory = {.pace = NULL};
    (void)state;
    rig_init(&rig);
    rig.options.ignores_robots = false;
    rig.store_is_slow = true;
    rig_begin_job(&rig);
    assert_offer(rig_offer(&rig, 1, "https://a.example/0"), WR_ADD_URL_NEW);
    assert_offer(rig_offer(&rig, 1, "https://a.example/1"), WR_ADD_URL_NEW);
    struct wr_plan_action load = rig_next(&rig);
    memory.robots[1].is_known = memory.robots[1].has_validators = true;
    memory.robots[0].max_age_ns = memory.robots[1].max_age_ns = -1;
    memory.robots[1].age_ns = 22 * WEIR_HOUR;
    assert_int_equal(wr_robots_parse(wr_span_of("User-agent: *\nDisallow: /0\n"), &options, rig.options.allocator,
                                     &memory.robots[1].rules),
                     0);
    wr_plan_restore_host(rig.plan, load.host, &memory, rig.now, 0);
    assert_non_null(wr_plan_host_rules(load.host, true));
    assert_null(wr_plan_host_rules(load.host, false));
    load.wants_memory = false;
    rig_answer_load(&rig, &load);
    rig.store_is_slow = false;
    struct wr_plan_action action = next_robots(true);
    assert_true(action.is_conditional);
    rig_robots(&rig, &action, 304, NULL);
    assert_non_null(wr_plan_host_rules(action.host, true));
    assert_next(WR_PLAN_END, "https://a.example/0");
    assert_next(WR_PLAN_START, "https://a.example/1");
    rig_release(&rig);
}

static void errands_are_sent_in_order_and_any_can_be_withdrawn(void **state)
{
    static const char *const urls[] = {"https://a.example/r0", "http://a.example/r1", "https://a.example/r2",
                                       "http://a.example/r3"};
    (void)state;
    begin();
    for (uint64_t i = 0; i < 4; i++) {
        char memory[WR_URL_ROOM];
        struct wr_url url;
        assert_int_equal(wr_url_parse(wr_span_of(urls[i]), NULL, NULL, memory, sizeof memory, &url), WR_URL_OK);
        assert_int_equal(wr_plan_robots_hop_add(rig.plan, &url, i, rig.now), 0);
    }
    struct wr_plan_host *host = wr_plan_host_find(rig.plan, wr_span_of("a.example"));
    assert_true(wr_plan_host_is_busy(host));
    assert_true(wr_plan_robots_hop_remove(rig.plan, host, 2, rig.now));
    assert_false(wr_plan_robots_hop_remove(rig.plan, host, 2, rig.now));
    /* the last errand: the next one must follow the one before */
    assert_true(wr_plan_robots_hop_remove(rig.plan, host, 3, rig.now));
    for (uint64_t i = 0; i < 2; i++) {
        struct wr_plan_action action = rig_wait(&rig, rig.now + S);
        assert_kind(action, WR_PLAN_ROBOTS_HOP);
        assert_url(action, urls[i]);
        assert_int_equal(action.tag, i);
        assert_true(action.next_ns == (i == 0 ? S : WEIR_FOREVER));
        assert_false(wr_plan_robots_hop_remove(rig.plan, host, i, rig.now)); /* the errand is in flight */
        rig_send(&rig, &action);
        weir_outcome outcome = {.size = sizeof outcome, .status = 200};
        (void)wr_plan_robots_hop_finished(rig.plan, action.task, &outcome, rig.now);
    }
    assert_false(wr_plan_host_is_busy(host));
    assert_true(wr_plan_host_is_idle(host));
    rig_release(&rig);
}

/* U4 */
static void unsent_errand_stays_first(void **state)
{
    (void)state;
    begin();
    for (uint64_t i = 0; i < 2; i++) {
        char memory[WR_URL_ROOM];
        struct wr_url url;
        assert_int_equal(wr_url_parse(wr_span_of("http://a.example/r"), NULL, NULL, memory, sizeof memory, &url),
                         WR_URL_OK);
        assert_int_equal(wr_plan_robots_hop_add(rig.plan, &url, i, rig.now), 0);
    }
    struct wr_plan_action action = rig_wait(&rig, rig.now + S);
    assert_int_equal(action.tag, 0);
    int64_t given_at = rig.now;
    wr_plan_task_given_back(rig.plan, action.task, rig.now);
    for (uint64_t i = 0; i < 2; i++) {
        action = rig_wait(&rig, rig.now + S);
        assert_true(rig.now >= given_at + 100 * MS);
        assert_kind(action, WR_PLAN_ROBOTS_HOP);
        assert_int_equal(action.tag, i);
        rig_send(&rig, &action);
        weir_outcome outcome = {.size = sizeof outcome, .status = 200};
        (void)wr_plan_robots_hop_finished(rig.plan, action.task, &outcome, rig.now);
    }
    rig_release(&rig);
}

WEIR_TESTS(test(pages_of_https_expire_like_those_of_http), test(robots_txt_in_backoff_is_a_bound_of_its_host),
           test(errand_without_room_for_its_host_is_an_error), test(errand_does_not_ask_twice_for_the_memory_of_a_host),
           test(pages_are_judged_by_the_rules_of_their_scheme), test(longer_crawl_delay_of_both_schemes_binds),
           test(failures_are_counted_by_scheme), test(giving_up_one_scheme_ends_its_pages_only),
           test(unsent_hop_of_https_is_repeated_with_https), test(robots_txt_that_was_sent_and_given_back_has_failed),
           test(stored_rules_of_https_deny_and_are_refreshed), test(errands_are_sent_in_order_and_any_can_be_withdrawn),
           test(unsent_errand_stays_first))
