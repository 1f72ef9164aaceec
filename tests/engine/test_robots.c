/* SPDX-License-Identifier: MIT */
/* test_robots.c - tests of robots.txt of many hosts: obeyed, awaited, and followed through
 * redirects. */
#include "engine/rig.h"

#include "lib/hostile.h"
#include "limiter/clock/clock.h"

/* ---- one robots.txt per host ---- */

static struct origin_reply answer_each(void *context, const struct origin_request *request)
{
    struct crawl_fixture *rig = context;
    if (rig_is_robots(request)) /* host 1 denies /1, host 2 denies /2, ... */
        return (struct origin_reply){.body = rig_text(rig, "User-agent: *\nDisallow: /%d\n", rig_host(request))};
    return rig_tree(rig, request, 7, NULL);
}

/* V3, S4-3: the links of denied pages are not known either. */
static void paths_that_a_host_denies_are_never_fetched_there(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_each);
    rig.options.loops = 2;
    rig_start(&rig);
    for (int host = 1; host <= 3; host++)
        rig_seed(&rig, "%s", rig_url(&rig, host, "/"));
    rig_finish(&rig);
    assert_int_equal(rig_asked(&rig, 1, "/1") + rig_asked(&rig, 2, "/2") + rig_asked(&rig, 3, "/3"), 0);
    assert_string_equal(rig_word(&rig, rig_url(&rig, 1, "/1"), "verdict"), "robots");
    assert_string_equal(rig_word(&rig, rig_url(&rig, 2, "/2"), "verdict"), "robots");
    assert_string_equal(rig_word(&rig, rig_url(&rig, 3, "/3"), "verdict"), "robots");
    assert_string_equal(rig_word(&rig, rig_url(&rig, 3, "/1"), "verdict"), "fetched");
    assert_int_equal(rig.line_count, 5 + 5 + 7);
    assert_int_equal(rig_asked(&rig, -1, "/robots.txt"), 3);
    rig_tear_down(&rig);
}

/* ---- long files ---- */

#define LONG_HOSTS 90 /* more than fit in memory together */

static struct origin_reply answer_shortly(void *context, const struct origin_request *request)
{
    if (rig_is_robots(request))
        return (struct origin_reply){.body = "User-agent: *\nDisallow: /2\n"};
    return rig_tree(context, request, 7, NULL);
}

/* Waits until long files take at least this much memory. */
static void await_held(struct crawl_fixture *rig, size_t least)
{
    struct wr_engine_stats stats = {.robots_bytes = 0};
    for (int64_t until = monotonic() + 60 * WEIR_SECOND; stats.robots_bytes < least; sleep_ns(5 * MS)) {
        wr_engine_stats_get(rig->engine, &stats);
        assert_true(stats.robots_bytes <= (size_t)64 << 20);
        if (monotonic() > until)
            fail_msg("only %zu bytes are held", stats.robots_bytes);
    }
}

/* M13: the memory of long files is bounded, and short files of other hosts are not delayed. */
static void many_long_robots_txts_are_bounded_and_delay_no_others(void **state)
{
    static char half[900000];
    static const struct hostile_step steps[] = {READ,
                                                SAY("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"),
                                                {.what = HOSTILE_SEND, .text = half, .bytes = sizeof half},
                                                HOLD,
                                                END};
    struct crawl_fixture rig;
    struct wr_engine_stats stats;
    (void)state;
    memset(half, '#', sizeof half);
    struct hostile *server = hostile_new();
    int port = hostile_listen(server, &(struct hostile_case){.steps = {steps}, .address = "0.0.0.0"});
    rig_set_up(&rig, answer_shortly);
    rig_start(&rig);
    for (int host = 10; host < 10 + LONG_HOSTS; host++)
        rig_seed(&rig, "http://127.0.0.%d:%d/", host, port);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_seeded(&rig);
    rig_await_requests(&rig, 1 + 4); /* robots.txt and the allowed pages of a tree of seven */
    await_held(&rig, (size_t)56 << 20);
    wr_engine_stop(rig.engine);
    rig_finish(&rig);
    hostile_free(server);
    assert_int_equal(rig_asked(&rig, 1, "/2"), 0);
    assert_int_equal(rig.result.stats.failed, 0);
    stats = rig.result.stats;
    assert_int_equal(stats.robots_bytes, 0); /* all of it is free */
    rig_tear_down(&rig);
}

/* ---- robots.txt that cannot be fetched ---- */

static struct origin_reply answer_unknown(void *context, const struct origin_request *request)
{
    if (rig_is_robots(request) && rig_host(request) == 1)
        return (struct origin_reply){.status = 503};
    return rig_tree(context, request, 7, NULL);
}

/* V3, R6. */
static void without_robots_txt_no_page_is_fetched(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_unknown);
    rig.options.max_defer_ns = 1500 * MS;
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_seed(&rig, "%s", rig_url(&rig, 2, "/"));
    rig_finish(&rig);
    assert_int_equal(rig_asked(&rig, 1, "/"), 0);
    assert_true(rig_asked(&rig, 1, "/robots.txt") >= 1);
    assert_string_equal(rig_word(&rig, rig_url(&rig, 1, "/"), "verdict"), "expired");
    assert_int_equal(rig_verdicts(&rig, "fetched"), 7);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    rig_tear_down(&rig);
}

/* ---- robots.txt that changes ---- */

static struct origin_reply answer_changing(void *context, const struct origin_request *request)
{
    struct crawl_fixture *rig = context;
    if (rig_is_robots(request))
        return (struct origin_reply){.body = rig_asked_before(rig, request) == 0 ? "User-agent: *\nDisallow: /none\n"
                                                                                 : "User-agent: *\nDisallow: /\n"};
    return rig_tree(rig, request, 30, NULL);
}

/* Replaces the stored copy of host 1 by one that was fetched `by_ns` ago. */
static void age_copy(const struct crawl_fixture *rig, int64_t by_ns)
{
    struct wr_store *store;
    struct wr_store_change change = {.kind = WR_STORE_ROBOTS,
                                     .robots = {.url = wr_span_of(rig_url(rig, 1, "/robots.txt")),
                                                .kind = WR_STORE_ROBOTS_TEXT,
                                                .text = wr_span_of("User-agent: *\nDisallow: /none\n"),
                                                .max_age_ns = -1,
                                                .fetched_wall_at = weir_wall_now() - by_ns}};
    assert_int_equal(wr_store_open(&(struct wr_store_options){.path = rig->state}, &store), 0);
    assert_int_equal(wr_store_post(store, &change, 1, NULL, NULL), 0);
    wr_store_free(store);
}

/* B9: robots.txt is fetched again after a day, and queued URLs are judged by the new rules. */
static void robots_txt_that_begins_to_deny_is_obeyed(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_changing);
    rig_space(&rig, 50 * MS);
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_seeded(&rig);
    rig_await_requests(&rig, 5);
    wr_engine_drain(rig.engine);
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_STOPPED);
    int before = origin_requests(rig.origin), fetched = rig_verdicts(&rig, "fetched");
    age_copy(&rig, 25 * WEIR_HOUR);
    rig_start(&rig);
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    assert_int_equal(origin_requests(rig.origin), before + 1);
    assert_int_equal(rig_asked(&rig, 1, "/robots.txt"), 2);
    assert_int_equal(rig_verdicts(&rig, "fetched"), fetched);
    assert_true(rig_verdicts(&rig, "robots") > 0);
    rig_tear_down(&rig);
}

/* ---- robots.txt that redirects ---- */

static struct origin_reply answer_leading(void *context, const struct origin_request *request)
{
    struct crawl_fixture *rig = context;
    int host = rig_host(request);
    if (rig_is_robots(request) && host == 1)
        return (struct origin_reply){.status = 302, .fields = "Location: /rules/robots.txt\r\n"};
    if (rig_is_robots(request) && host <= 8) /* redirects to another host */
        return (struct origin_reply){
            .status = 301,
            .fields = rig_text(rig, "Location: http://127.0.0.%d:%d/rules/robots.txt\r\n", host + 50, rig->port)};
    if (strcmp(request->path, "/rules/robots.txt") == 0)
        return (struct origin_reply){.body = "User-agent: *\nDisallow: /2\n"};
    return rig_tree(rig, request, 7, NULL);
}

/* A10: robots.txt of the hosts 2 to 8 is at hosts of both loops. */
static void robots_txt_redirects_are_followed_within_and_between_hosts(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_leading);
    rig.options.loops = 2;
    rig_start(&rig);
    for (int host = 1; host <= 8; host++)
        rig_seed(&rig, "%s", rig_url(&rig, host, "/"));
    rig_finish(&rig);
    assert_int_equal(rig_asked(&rig, -1, "/2"), 0);
    assert_int_equal(rig_asked(&rig, 1, "/rules/robots.txt"), 1);
    for (int host = 1; host <= 8; host++) {
        assert_string_equal(rig_word(&rig, rig_url(&rig, host, "/2"), "verdict"), "robots");
        assert_int_equal(rig_asked(&rig, host, "/robots.txt"), 1);
        if (host > 1)
            assert_int_equal(rig_asked(&rig, host + 50, "/rules/robots.txt"), 1);
        assert_int_equal(rig_asked(&rig, host + 50, "/"), 0);
    }
    assert_int_equal(rig_verdicts(&rig, "fetched"), 8 * 4);
    rig_tear_down(&rig);
}

/* A10, V1: a fetch of robots.txt for one host passes the gate of the host that has it. */
static void robots_txt_at_another_host_keeps_that_hosts_interval(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_leading);
    rig.options.loops = 2;
    rig_space(&rig, 150 * MS);
    rig_start(&rig);
    for (int host = 2; host <= 4; host++) {
        rig_seed(&rig, "%s", rig_url(&rig, host, "/"));
        rig_seed(&rig, "%s", rig_url(&rig, host + 50, "/"));
    }
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    for (int host = 2; host <= 4; host++) {
        rig_assert_spaced(&rig, host, 150 * MS);
        rig_assert_spaced(&rig, host + 50, 150 * MS);
    }
    rig_tear_down(&rig);
}

ENGINE_TESTS(test(many_long_robots_txts_are_bounded_and_delay_no_others),
             test(paths_that_a_host_denies_are_never_fetched_there), test(without_robots_txt_no_page_is_fetched),
             test(robots_txt_that_begins_to_deny_is_obeyed),
             test(robots_txt_redirects_are_followed_within_and_between_hosts),
             test(robots_txt_at_another_host_keeps_that_hosts_interval))
