/* SPDX-License-Identifier: MIT */
/* test_robots.c - tests robots.txt before pages (V3, R11, R20, B8, B9, K4, S4). */
#include "rig.h"

static void obey(struct plan_store_fixture *rig)
{
    rig_init(rig);
    rig->options.ignores_robots = false;
    rig_begin_job(rig);
}

static void robots_txt_goes_first_once_and_then_pages_at_its_crawl_delay(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    obey(&rig);
    rig_offer_many(&rig, 1, "a.example", 3);
    struct wr_plan_action robots = rig_next(&rig);
    assert_kind(robots, WR_PLAN_ROBOTS);
    assert_url(robots, "http://a.example/robots.txt");
    assert_false(robots.is_conditional);
    assert_kind(rig_next(&rig), WR_PLAN_IDLE);
    rig.now += 10 * S;
    assert_kind(rig_next(&rig), WR_PLAN_IDLE);
    int64_t at = rig.now;
    rig_robots(&rig, &robots, 200, "User-agent: *\nCrawl-delay: 5\n");
    for (int i = 0; i < 3; i++) {
        struct wr_plan_action action = rig_wait(&rig, rig.now + 6 * S);
        assert_kind(action, WR_PLAN_START);
        /* the request for robots.txt counts for the spacing */
        assert_int_equal(rig.now, at + 5 * S);
        at = rig.now;
        rig_fetch(&rig, &action, 200);
    }
    rig_release(&rig);
}

/* U9 */
static void crawl_delay_is_multiplied_by_the_configured_factor(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    static const double factors[] = {0.5, 1, 2};
    for (size_t i = 0; i < 3; i++) {
        rig_init(&rig);
        rig.options.ignores_robots = false;
        rig.options.delay_factor = factors[i];
        rig_begin_job(&rig);
        rig_offer_many(&rig, 1, "a.example", 2);
        struct wr_plan_action action = rig_next(&rig);
        int64_t at = rig.now;
        rig_robots(&rig, &action, 200, "User-agent: *\nCrawl-delay: 4\n");
        action = rig_wait(&rig, rig.now + 10 * S);
        assert_kind(action, WR_PLAN_START);
        assert_int_equal(rig.now, at + (int64_t)(4 * factors[i]) * S);
        rig_fetch(&rig, &action, 200);
        rig_release(&rig);
    }
}

static void denied_page_ends_unsent_and_costs_no_time(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    obey(&rig);
    assert_offer(rig_offer(&rig, 1, "http://a.example/private/1"), WR_ADD_URL_NEW);
    assert_offer(rig_offer(&rig, 1, "http://a.example/private/2"), WR_ADD_URL_NEW);
    assert_offer(rig_offer(&rig, 1, "http://a.example/public"), WR_ADD_URL_NEW);
    struct wr_plan_action action = rig_next(&rig);
    int64_t at = rig.now;
    rig_robots(&rig, &action, 200, "User-agent: *\nDisallow: /private\n");
    for (int i = 1; i <= 2; i++) {
        action = rig_wait(&rig, at + S);
        assert_kind(action, WR_PLAN_END);
        assert_true(action.is_denied);
        assert_int_equal(action.reason, WEIR_REASON_ROBOTS);
        rig_ended(&rig, &action);
    }
    action = rig_wait(&rig, at + S);
    assert_kind(action, WR_PLAN_START);
    assert_url(action, "http://a.example/public");
    assert_int_equal(rig.now, at + S);
    rig_release(&rig);
}

/* T2: a page is accepted before its robots.txt is known. If that denies it, another page may be
 * accepted instead. */
static void denied_page_frees_its_part_of_the_page_budget(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_init(&rig);
    rig.options.ignores_robots = false;
    rig_begin(&rig);
    assert_int_equal(wr_plan_job_add(rig.plan, &(struct wr_plan_job){.id = 1, .has_page_budget = true}), 0);
    assert_int_equal(wr_plan_grant_budget(rig.plan, 1, WR_BUDGET_PAGES, 2, true), 0);
    rig_offer_many(&rig, 1, "a.example", 2);
    assert_offer(rig_offer(&rig, 1, "http://a.example/2"), WR_ADD_URL_BUDGET);
    struct wr_plan_action action = rig_wait(&rig, rig.now);
    rig_robots(&rig, &action, 200, "User-agent: *\nDisallow: /0\n");
    action = rig_wait(&rig, rig.now + S);
    assert_kind(action, WR_PLAN_END);
    assert_true(action.is_denied);
    assert_offer(rig_offer(&rig, 1, "http://a.example/2"), WR_ADD_URL_NEW);
    assert_offer(rig_offer(&rig, 1, "http://a.example/3"), WR_ADD_URL_BUDGET);
    rig_release(&rig);
}

/* RFC 9309 2.3.1.4: an unreachable robots.txt denies everything. It is retried with backoff until
 * the tasks expire (R6). */
static void pages_wait_while_robots_txt_fails_and_expire_after_max_defer(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    obey(&rig);
    rig_offer_many(&rig, 1, "dead.example", 3);
    int64_t at = rig.now;
    int fetches = 0, ends = 0;
    while (ends < 3) {
        struct wr_plan_action action = rig_wait(&rig, at + 31 * M);
        if (action.kind == WR_PLAN_ROBOTS) {
            weir_decision why = wr_plan_why(rig.plan, action.host, 1, rig.now);
            assert_int_equal(why.reason, WEIR_REASON_ROBOTS);
            rig_robots(&rig, &action, fetches++ % 2 == 0 ? 503 : 0, NULL);
            continue;
        }
        assert_kind(action, WR_PLAN_END);
        assert_false(action.is_denied);
        assert_int_equal(action.reason, WEIR_REASON_ROBOTS);
        rig_ended(&rig, &action);
        ends++;
    }
    assert_true(rig.now >= at + 30 * M && rig.now < at + 31 * M);
    assert_true(fetches >= 4 && fetches < 30);
    assert_kind(rig_next(&rig), WR_PLAN_DRAINED);
    /* A new page of the host starts new attempts. */
    assert_offer(rig_offer(&rig, 1, "http://dead.example/new"), WR_ADD_URL_NEW);
    assert_kind(rig_wait(&rig, rig.now + 20 * M), WR_PLAN_ROBOTS);
    rig_release(&rig);
}

/* Only pages of one origin end: the other scheme may still work. */
static void pages_of_an_abandoned_origin_end_at_once(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    obey(&rig);
    rig_offer_many(&rig, 1, "dead.example", 3); /* offers http URLs */
    int64_t at = rig.now;
    struct wr_plan_action action = rig_wait(&rig, at + S);
    struct wr_plan_host *host = action.host;
    assert_kind(action, WR_PLAN_ROBOTS);
    rig_robots(&rig, &action, 0, NULL);
    wr_plan_origin_unreachable(rig.plan, host, false, 7, rig.now);
    for (int i = 0; i < 3; i++) {
        action = rig_wait(&rig, at + S);
        assert_kind(action, WR_PLAN_END);
        assert_false(action.is_denied);
        assert_int_equal(action.tag, 7);
        rig_ended(&rig, &action);
    }
    assert_kind(rig_next(&rig), WR_PLAN_DRAINED);
    /* A new page of the host starts new attempts. */
    assert_offer(rig_offer(&rig, 1, "http://dead.example/new"), WR_ADD_URL_NEW);
    action = rig_wait(&rig, rig.now + 20 * M);
    assert_kind(action, WR_PLAN_ROBOTS);
    rig_robots(&rig, &action, 404, NULL);
    assert_kind(rig_wait(&rig, rig.now + M), WR_PLAN_START);
    rig_release(&rig);
}

static void http_and_https_have_rules_of_their_own_and_do_not_block_each_other(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    obey(&rig);
    assert_offer(rig_offer(&rig, 1, "https://a.example/s"), WR_ADD_URL_NEW);
    assert_offer(rig_offer(&rig, 1, "http://a.example/p"), WR_ADD_URL_NEW);
    for (int i = 0; i < 2; i++) {
        struct wr_plan_action action = rig_wait(&rig, rig.now + 2 * S);
        assert_kind(action, WR_PLAN_ROBOTS);
        rig_robots(&rig, &action, action.is_https ? 503 : 404, NULL);
    }
    struct wr_plan_action action = rig_wait(&rig, rig.now + 2 * S);
    assert_kind(action, WR_PLAN_START);
    assert_url(action, "http://a.example/p");
    rig_release(&rig);
}

static void one_robots_txt_serves_all_jobs(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    obey(&rig);
    rig_job(&rig, 2);
    rig_offer_many(&rig, 1, "a.example", 1);
    rig_offer_many(&rig, 2, "a.example", 1);
    struct wr_plan_action action = rig_next(&rig);
    assert_kind(action, WR_PLAN_ROBOTS);
    rig_robots(&rig, &action, 404, NULL);
    for (int i = 0; i < 2; i++) {
        action = rig_page(&rig, rig.now + 2 * S);
        rig_fetch(&rig, &action, 200);
    }
    rig_release(&rig);
}

static void robots_txt_that_was_not_sent_has_not_failed(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    obey(&rig);
    rig_offer_many(&rig, 1, "a.example", 1);
    for (int i = 0; i < 5; i++) {
        struct wr_plan_action action = rig_wait(&rig, rig.now + 200 * MS);
        assert_kind(action, WR_PLAN_ROBOTS);
        wr_plan_task_given_back(rig.plan, action.task, rig.now);
    }
    struct wr_plan_action action = rig_wait(&rig, rig.now + 200 * MS);
    rig_robots(&rig, &action, 404, NULL);
    assert_kind(rig_wait(&rig, rig.now + 2 * S), WR_PLAN_START);
    rig_release(&rig);
}

/* B8, R20: a redirect to the same host passes its gate. One to another host is an errand at that
 * host's gate. */
static struct wr_robots_action redirect(struct plan_store_fixture *rig, const struct wr_plan_action *action, bool stays)
{
    weir_outcome outcome = {.size = sizeof outcome, .status = 301};
    struct wr_robots_event event = {
        .kind = WR_ROBOTS_EVENT_ANSWERED, .status = 301, .leads = true, .max_age_ns = -1, .retry_after_ns = -1};
    rig_send(rig, action);
    return wr_plan_robots_finished(rig->plan, action->task, &outcome, &event, NULL, stays, rig->now);
}

static void robots_txt_redirect_within_a_host_waits_for_the_gate_at_each_hop(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    obey(&rig);
    rig_offer_many(&rig, 1, "a.example", 1);
    struct wr_plan_action action = rig_next(&rig);
    for (int i = 0; i < 3; i++) {
        int64_t at = rig.now;
        assert_int_equal(redirect(&rig, &action, true).fetch, WR_ROBOTS_FETCH_REDIRECT);
        action = rig_wait(&rig, rig.now + S);
        assert_kind(action, WR_PLAN_ROBOTS);
        assert_true(action.is_hop);
        assert_int_equal(rig.now, at + S);
    }
    rig_robots(&rig, &action, 200, "User-agent: *\nDisallow: /0\n");
    assert_kind(rig_wait(&rig, rig.now + S), WR_PLAN_END);
    rig_release(&rig);
}

/* T4, B8: a hop that was not sent says nothing about its target. */
static void unsent_hop_of_robots_txt_is_repeated(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    obey(&rig);
    rig_offer_many(&rig, 1, "a.example", 1);
    struct wr_plan_action action = rig_next(&rig);
    redirect(&rig, &action, true);
    for (int i = 0; i < 5; i++) {
        action = rig_wait(&rig, rig.now + S);
        assert_kind(action, WR_PLAN_ROBOTS);
        assert_true(action.is_hop);
        wr_plan_task_given_back(rig.plan, action.task, rig.now);
    }
    action = rig_wait(&rig, rig.now + S);
    assert_true(action.is_hop);
    rig_robots(&rig, &action, 404, NULL);
    assert_kind(rig_wait(&rig, rig.now + S), WR_PLAN_START);
    rig_release(&rig);
}

/* The caller identifies a redirect by the address of its host, so that the plan must keep the
 * host. */
static void host_whose_robots_txt_redirects_is_not_dropped(void **state)
{
    static const bool ways[] = {true, false};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        static struct plan_store_fixture rig;
        rig_init(&rig);
        rig.options.ignores_robots = false;
        rig.options.max_hosts = 1;
        rig_begin_job(&rig);
        rig_offer_many(&rig, 1, "a.example", 1);
        struct wr_plan_action action = rig_next(&rig);
        struct wr_plan_host *host = action.host;
        assert_int_equal(redirect(&rig, &action, ways[i]).fetch, WR_ROBOTS_FETCH_REDIRECT);
        /* no page needs the robots.txt any more */
        assert_int_equal(wr_plan_job_end(rig.plan, 1), 0);
        rig_job(&rig, 2);
        wr_gate_saved(wr_plan_host_gate(host));
        rig.now += 100 * M;
        wr_plan_next(rig.plan, rig.now, &action);
        assert_int_equal(wr_plan_hosts_row(rig.plan, 2, wr_span_of("b.example"), 1, rig.now), WEIR_E_FULL);
        assert_false(wr_plan_host_remove(rig.plan, host, rig.now));
        assert_ptr_equal(wr_plan_host_find(rig.plan, wr_span_of("a.example")), host);
        rig_release(&rig);
    }
}

static struct wr_plan_action errand(struct plan_store_fixture *rig, const char *text, uint64_t tag)
{
    char memory[WR_URL_ROOM];
    struct wr_url url;
    assert_int_equal(wr_url_parse(wr_span_of(text), NULL, NULL, memory, sizeof memory, &url), WR_URL_OK);
    assert_int_equal(wr_plan_robots_hop_add(rig->plan, &url, tag, rig->now), 0);
    struct wr_plan_action action = rig_wait(rig, rig->now + S);
    assert_kind(action, WR_PLAN_ROBOTS_HOP);
    rig_send(rig, &action);
    return action;
}

static void robots_txt_redirect_to_another_host_passes_its_gate(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    obey(&rig);
    rig_offer_many(&rig, 1, "a.example", 1);
    struct wr_plan_action action = rig_next(&rig);
    struct wr_plan_host *host = action.host;
    redirect(&rig, &action, false);
    action = errand(&rig, "https://www.a.example/robots.txt?x", 4711);
    assert_int_equal(action.tag, 4711);
    assert_url(action, "https://www.a.example/robots.txt?x");
    weir_outcome outcome = {.size = sizeof outcome, .status = 200};
    assert_int_equal(wr_plan_robots_hop_finished(rig.plan, action.task, &outcome, rig.now), 0);
    struct wr_robots_event event = {
        .kind = WR_ROBOTS_EVENT_ANSWERED, .status = 404, .max_age_ns = -1, .retry_after_ns = -1};
    assert_int_equal(wr_plan_robots_arrived(rig.plan, host, false, &event, NULL, false, rig.now).copy,
                     WR_ROBOTS_COPY_DROP);
    action = rig_wait(&rig, rig.now + S);
    assert_kind(action, WR_PLAN_START);
    assert_url(action, "http://a.example/0");
    rig_release(&rig);
}

/* E7: a failure of the proxy is not a failure of the host. */
static void errand_that_failed_at_the_proxy_teaches_its_host_nothing(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    weir_outcome lost = {.size = sizeof lost, .status = 0};
    struct wr_plan_host_report report;
    obey(&rig);
    for (int i = 0; i < 10; i++) {
        struct wr_plan_action action = errand(&rig, "http://b.example/robots.txt", 1);
        assert_int_equal(wr_plan_robots_hop_finished(rig.plan, action.task, NULL, rig.now), 0);
    }
    const struct wr_plan_host *host = wr_plan_host_find(rig.plan, wr_span_of("b.example"));
    wr_plan_host_report(rig.plan, host, rig.now, &report);
    assert_int_equal(report.failures, 0);
    assert_int_equal(report.now.breaker, WEIR_BREAKER_CLOSED);
    assert_int_equal(report.now.in_flight, 0);
    struct wr_plan_action action = errand(&rig, "http://b.example/robots.txt", 1);
    wr_plan_robots_hop_finished(rig.plan, action.task, &lost, rig.now);
    wr_plan_host_report(rig.plan, host, rig.now, &report);
    assert_int_equal(report.failures, 1);
    rig_release(&rig);
}

/* S4-19, B9: a stored robots.txt is used, and refreshed when it is old. Queued URLs are judged by
 * the latest rules. */
static void a_stored_robots_txt_is_used_and_refreshed(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    obey(&rig);
    rig.store_is_slow = true;
    rig_offer_many(&rig, 1, "a.example", 3);
    struct wr_plan_action load = rig_next(&rig);
    struct wr_robots_options options = {.agent = wr_span_of("weir"), .delay_max_ns = WR_ROBOTS_DELAY_MAX_NS};
    struct wr_plan_stored_host memory = {.pace = NULL};
    memory.robots[0].is_known = memory.robots[0].has_validators = true;
    memory.robots[0].max_age_ns = -1;
    memory.robots[0].age_ns = 20 * WEIR_HOUR;
    assert_int_equal(wr_robots_parse(wr_span_of("User-agent: *\nDisallow: /0\nCrawl-delay: 3"), &options,
                                     rig.options.allocator, &memory.robots[0].rules),
                     0);
    wr_plan_restore_host(rig.plan, load.host, &memory, rig.now, 0);
    load.wants_memory = false;
    rig_answer_load(&rig, &load);
    assert_kind(rig_next(&rig), WR_PLAN_END);
    struct wr_plan_action action = rig_next(&rig);
    assert_kind(action, WR_PLAN_START);
    rig_fetch(&rig, &action, 200);
    rig.now += 2 * WEIR_HOUR; /* 22 hours old: above 7/8 of 24 hours */
    action = rig_wait(&rig, rig.now);
    assert_kind(action, WR_PLAN_ROBOTS);
    assert_true(action.is_conditional);
    rig_robots(&rig, &action, 200, "User-agent: *\nDisallow: /2\n");
    action = rig_wait(&rig, rig.now + S);
    assert_kind(action, WR_PLAN_END);
    assert_url(action, "http://a.example/2");
    rig_release(&rig);
}

/* L5, V6: rules beyond the limit on memory are not kept, and without them nothing is fetched. */
static void memory_for_rules_is_bounded_and_hosts_wait_for_it(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    static char text[40000] = "User-agent: *\n";
    struct wr_plan_stats stats;
    for (int i = 0; strlen(text) < sizeof text - 100; i++)
        snprintf(text + strlen(text), 100, "Disallow: /x/%d/long/enough/to/take/some/room\n", i);
    rig_init(&rig);
    rig.options.ignores_robots = false;
    rig.options.rules_bytes = 100000;
    rig_begin_job(&rig);
    static const char *const hosts[] = {"a.example", "b.example", "c.example"};
    int robots = 0, pages[3] = {0};
    for (int i = 0; i < 3; i++)
        rig_offer_many(&rig, 1, hosts[i], 3);
    while (pages[0] + pages[1] + pages[2] < 9) {
        struct wr_plan_action action = rig_wait(&rig, rig.now + 10 * M);
        if (action.kind == WR_PLAN_ROBOTS) {
            rig_robots(&rig, &action, 200, text);
            robots++;
        } else {
            assert_kind(action, WR_PLAN_START);
            pages[action.url.data[7] - 'a']++;
            rig_fetch(&rig, &action, 200);
        }
        wr_plan_stats_get(rig.plan, &stats);
        assert_true(stats.rules_bytes <= 100000);
    }
    assert_true(robots > 3);
    rig_release(&rig);
}

/* Returns a robots.txt of about `bytes` bytes that denies /secret. */
static const char *text_of(size_t bytes, const char *more)
{
    static char text[80000];
    (void)snprintf(text, sizeof text, "User-agent: *\nDisallow: /secret\n%s", more);
    for (int i = 0; strlen(text) < bytes; i++)
        snprintf(text + strlen(text), 100, "Disallow: /x/%d/long/enough/to/take/some/room\n", i);
    return text;
}

/* Fetches one page of a host. Answers its robots.txt requests with `text` until the rules are
 * stored. Returns the time of the page's start. */
static int64_t fetch_one(struct plan_store_fixture *rig, const char *host, const char *text, int *ret_robots)
{
    for (;;) {
        struct wr_plan_action action = rig_wait(rig, rig->now + M);
        assert_true(action.kind == WR_PLAN_ROBOTS || action.kind == WR_PLAN_START);
        assert_non_null(strstr(action.url.data, host));
        *ret_robots += action.kind == WR_PLAN_ROBOTS;
        if (action.kind == WR_PLAN_START) {
            int64_t started_at = rig->now;
            rig_fetch(rig, &action, 200);
            return started_at;
        }
        rig_robots(rig, &action, 200, text);
    }
}

/* M13, V3: large robots.txt files cost the hosts that have them, not hosts with small ones. Dropped
 * rules are fetched before the next page. Until then the Crawl-delay and server-named times still
 * apply. */
static void host_with_the_most_rules_is_dropped_first_and_refetched(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    struct wr_plan_stats stats;
    int large = 0, small = 0;
    rig_init(&rig);
    rig.options.ignores_robots = false;
    rig.options.rules_bytes = 100000;
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "large.example", 3);
    rig_offer(&rig, 1, "http://large.example/secret");
    int64_t last_at = fetch_one(&rig, "large.example", text_of(30000, "Crawl-delay: 7\n"), &large);
    assert_int_equal(large, 1);
    const struct wr_plan_host *host = wr_plan_host_find(rig.plan, wr_span_of("large.example"));
    assert_non_null(wr_plan_host_rules(host, false));
    for (int i = 0; i < 8; i++) { /* smaller hosts, until there is no room */
        char name[32], url[64];
        (void)snprintf(name, sizeof name, "small%d.example", i);
        (void)snprintf(url, sizeof url, "http://%s/", name);
        rig_offer(&rig, 1, url);
        struct wr_plan_action action = rig_next(&rig);
        assert_kind(action, WR_PLAN_ROBOTS);
        assert_non_null(strstr(action.url.data, name));
        rig_robots(&rig, &action, 200, text_of(6000, ""));
        wr_plan_stats_get(rig.plan, &stats);
        assert_true(stats.rules_bytes <= 100000);
        assert_non_null(wr_plan_host_rules(wr_plan_host_find(rig.plan, wr_span_of(name)), false));
    }
    assert_int_equal(stats.dropped, 1);
    assert_null(wr_plan_host_rules(host, false));
    for (int i = 0; i < 8; i++) /* before the large host may get a request */
        (void)fetch_one(&rig, "small", text_of(6000, ""), &small);
    assert_int_equal(small, 0);
    assert_true(rig.now < last_at + 7 * S);
    /* there is room, because the others are done */
    struct wr_plan_action action = rig_wait(&rig, rig.now + M);
    assert_kind(action, WR_PLAN_ROBOTS);
    assert_false(action.is_conditional); /* no stored rules that a 304 could confirm */
    assert_true(rig.now >= last_at + 7 * S);
    rig_robots(&rig, &action, 200, text_of(30000, "Crawl-delay: 7\n"));
    for (int i = 0; i < 2; i++)
        (void)fetch_one(&rig, "large.example", NULL, &large);
    action = rig_wait(&rig, rig.now + M);
    assert_kind(action, WR_PLAN_END);
    assert_true(action.is_denied);
    assert_int_equal(large, 1);
    rig_release(&rig);
}

/* Two hosts with equally large rules do not displace each other, or they would fetch them in turns
 * without end. */
static void hosts_with_equally_large_rules_do_not_displace_each_other(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    struct wr_plan_stats stats;
    int robots = 0;
    rig_init(&rig);
    rig.options.ignores_robots = false;
    rig.options.rules_bytes = 100000;
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.example", 2);
    (void)fetch_one(&rig, "a.example", text_of(40000, ""), &robots);
    rig_offer_many(&rig, 1, "b.example", 2);
    for (int pages = 1; pages < 4;) {
        struct wr_plan_action action = rig_wait(&rig, rig.now + 10 * M);
        if (action.kind == WR_PLAN_ROBOTS) {
            rig_robots(&rig, &action, 200, text_of(40000, ""));
            robots++;
        } else {
            assert_kind(action, WR_PLAN_START);
            rig_fetch(&rig, &action, 200);
            pages++;
        }
    }
    wr_plan_stats_get(rig.plan, &stats);
    assert_int_equal(stats.dropped, 0);
    assert_true(robots >= 3 && robots <= 6);
    rig_release(&rig);
}

WEIR_TESTS(test(denied_page_frees_its_part_of_the_page_budget), test(unsent_hop_of_robots_txt_is_repeated),
           test(host_whose_robots_txt_redirects_is_not_dropped),
           test(host_with_the_most_rules_is_dropped_first_and_refetched),
           test(hosts_with_equally_large_rules_do_not_displace_each_other),
           test(memory_for_rules_is_bounded_and_hosts_wait_for_it),
           test(robots_txt_goes_first_once_and_then_pages_at_its_crawl_delay),
           test(crawl_delay_is_multiplied_by_the_configured_factor), test(denied_page_ends_unsent_and_costs_no_time),
           test(pages_wait_while_robots_txt_fails_and_expire_after_max_defer),
           test(pages_of_an_abandoned_origin_end_at_once),
           test(http_and_https_have_rules_of_their_own_and_do_not_block_each_other),
           test(one_robots_txt_serves_all_jobs), test(robots_txt_that_was_not_sent_has_not_failed),
           test(robots_txt_redirect_within_a_host_waits_for_the_gate_at_each_hop),
           test(robots_txt_redirect_to_another_host_passes_its_gate),
           test(errand_that_failed_at_the_proxy_teaches_its_host_nothing),
           test(a_stored_robots_txt_is_used_and_refreshed))
