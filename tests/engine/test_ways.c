/* SPDX-License-Identifier: MIT */
/* test_ways.c - tests of where pages lead: redirects, traps, and bodies that break off or never
 * end. */
#include "engine/rig.h"
#include "lib/hostile.h"

static struct origin_reply lead_to(struct crawl_fixture *rig, int host, const char *path)
{
    return (struct origin_reply){
        .status = 302, .fields = rig_text(rig, "Location: http://127.0.0.%d:%d%s\r\n", host, rig->port, path)};
}

/* ---- redirects ---- */

static struct origin_reply answer_maze(void *context, const struct origin_request *request)
{
    struct crawl_fixture *rig = context;
    int n;
    if (rig_is_robots(request))
        return (struct origin_reply){.body = "User-agent: *\nDisallow: /private\n"};
    if (strcmp(request->path, "/self") == 0)
        return lead_to(rig, rig_host(request), "/self");
    if (strcmp(request->path, "/ping") == 0)
        return lead_to(rig, 2, "/pong");
    if (strcmp(request->path, "/pong") == 0)
        return lead_to(rig, 1, "/ping");
    if (strcmp(request->path, "/into-private") == 0)
        return lead_to(rig, 2, "/private/page");
    if (strcmp(request->path, "/across") == 0)
        return lead_to(rig, 3, "/target");
    if (sscanf(request->path, "/chain/%d", &n) == 1)
        return lead_to(rig, 1, rig_text(rig, "/chain/%d", n + 1));
    return rig_html("here");
}

/* A10. */
static void circular_redirects_end(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_maze);
    rig.options.loops = 2;
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/self"));
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/ping"));
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    assert_int_equal(rig_asked(&rig, -1, "/self"), 1);
    assert_int_equal(rig_asked(&rig, -1, "/ping"), 1);
    assert_int_equal(rig_asked(&rig, -1, "/pong"), 1);
    assert_int_equal(rig.line_count, 3);
    assert_string_equal(rig_word(&rig, rig_url(&rig, 1, "/ping"), "verdict"), "redirect");
    assert_string_equal(rig_word(&rig, rig_url(&rig, 1, "/ping"), "final_url"), rig_url(&rig, 2, "/pong"));
    rig_tear_down(&rig);
}

/* A10: a chain ends after max_hops redirects, and the last line says so. */
static void redirect_chain_of_a_crawl_is_bounded(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_maze);
    rig.options.max_hops = 6;
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/chain/0"));
    rig_finish(&rig);
    assert_int_equal(rig_asked(&rig, 1, "/chain/6"), 1);
    assert_int_equal(rig_asked(&rig, 1, "/chain/7"), 0);
    assert_int_equal(rig.line_count, 7);
    assert_string_equal(rig_word(&rig, rig_url(&rig, 1, "/chain/5"), "verdict"), "redirect");
    assert_string_equal(rig_word(&rig, rig_url(&rig, 1, "/chain/6"), "verdict"), "hops");
    assert_string_equal(rig_word(&rig, rig_url(&rig, 1, "/chain/6"), "error"), "hops");
    rig_tear_down(&rig);
}

/* A10, V1, V3. */
static void redirect_to_another_host_passes_its_robots_txt_and_its_gate(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_maze);
    rig.options.loops = 2;
    rig_space(&rig, 100 * MS);
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/into-private"));
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/across"));
    rig_seed(&rig, "%s", rig_url(&rig, 3, "/"));
    rig_finish(&rig);
    assert_int_equal(rig_asked(&rig, -1, "/private/page"), 0);
    assert_string_equal(rig_word(&rig, rig_url(&rig, 2, "/private/page"), "verdict"), "robots");
    assert_string_equal(rig_word(&rig, rig_url(&rig, 3, "/target"), "verdict"), "fetched");
    assert_int_equal(rig_asked(&rig, 2, "/robots.txt"), 1);
    for (int host = 1; host <= 3; host++)
        rig_assert_spaced(&rig, host, 100 * MS);
    rig_tear_down(&rig);
}

/* ---- bodies ---- */

/* A18: neither the page nor its links are used. */
static void truncated_page_is_not_used(void **state)
{
    static const struct hostile_step steps[] = {
        READ,
        SAY("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1000\r\n\r\n<a href=\"/next\">next</a>"),
        RESET, END};
    struct crawl_fixture rig;
    char url[64];
    (void)state;
    rig_set_up(&rig, NULL);
    struct hostile *server = hostile_new();
    int port = hostile_listen(server, &(struct hostile_case){.steps = {steps}});
    rig.options.ignores_robots = true;
    rig.options.pace.retry.base_ns = 10 * MS;
    rig_start(&rig);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/", port);
    rig_seed(&rig, "%s", url);
    rig_finish(&rig);
    assert_int_equal(rig.line_count, 1);
    assert_string_equal(rig_word(&rig, url, "verdict"), "failed");
    assert_string_equal(rig_word(&rig, url, "error"), "broken");
    assert_int_equal(rig_number(&rig, url, "attempts"), 3);
    assert_true(json_is_null(json_object_get(rig_line(&rig, url), "digest")));
    assert_int_equal(hostile_requests(server, port), 3);
    hostile_free(server);
    rig_tear_down(&rig);
}

/* The body never ends; the part that was read counts. */
static void endless_page_is_truncated(void **state)
{
    static const struct hostile_step steps[] = {
        READ, SAY("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<a href=\"/next\">next</a>"),
        REPEAT("<p>and so on and so on and so on</p>", HOSTILE_FOREVER, 0), END};
    struct crawl_fixture rig;
    char url[64], next[64];
    (void)state;
    rig_set_up(&rig, NULL);
    struct hostile *server = hostile_new();
    int port = hostile_listen(server, &(struct hostile_case){.steps = {steps}});
    rig.options.ignores_robots = true;
    rig.options.body_max = 100000;
    rig_start(&rig);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/", port);
    (void)snprintf(next, sizeof next, "http://127.0.0.1:%d/next", port);
    rig_seed(&rig, "%s", url);
    rig_finish(&rig);
    assert_string_equal(rig_word(&rig, url, "verdict"), "too_large");
    assert_true(rig_number(&rig, url, "bytes") <= 100000);
    assert_int_equal(rig_number(&rig, url, "attempts"), 1);
    assert_string_equal(rig_word(&rig, next, "verdict"), "too_large");
    hostile_free(server);
    rig_tear_down(&rig);
}

/* ---- traps ---- */

/* Returns a calendar without end for host 1, and a tree for other hosts. */
static struct origin_reply answer_calendar(void *context, const struct origin_request *request)
{
    struct crawl_fixture *rig = context;
    int day = 0;
    if (rig_is_robots(request) || rig_host(request) != 1)
        return rig_tree(rig, request, 60, NULL);
    (void)sscanf(request->path, "/calendar?day=%d", &day);
    return rig_html(
        rig_text(rig, "<a href=\"/calendar?day=%d\">a</a><a href=\"/calendar?day=%d\">b</a>", day + 1, day + 1000000));
}

/* A20, U16. */
static void endless_calendar_ends_and_starves_no_other_host(void **state)
{
    struct crawl_fixture rig;
    int count;
    (void)state;
    rig_set_up(&rig, answer_calendar);
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/calendar"));
    rig_seed(&rig, "%s", rig_url(&rig, 2, "/"));
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    rig_assert_trees(&rig, 2, 1, 60);
    int64_t *trap = rig_arrivals(&rig, 1, &count), *honest;
    print_message("%d pages of the trap\n", count);
    assert_true(count > 100 && count < 1200);
    honest = rig_arrivals(&rig, 2, &count);
    assert_true(honest[count - 1] < trap[600]); /* done before half of the trap */
    free(trap);
    free(honest);
    rig_tear_down(&rig);
}

/* ---- many hosts ---- */

static struct origin_reply answer_portal(void *context, const struct origin_request *request)
{
    struct crawl_fixture *rig = context;
    if (rig_is_robots(request))
        return (struct origin_reply){.status = 404};
    if (rig_host(request) != 1)
        return rig_html("a small site");
    char *text = NULL;
    size_t bytes;
    FILE *stream = open_memstream(&text, &bytes);
    for (int host = 2; host <= 401; host++)
        (void)fprintf(stream, "<a href=\"%s\">x</a>", rig_url(rig, host, "/"));
    (void)fclose(stream);
    const char *kept = rig_text(rig, "%s", text);
    free(text);
    return rig_html(kept);
}

static void crawl_portal(uint32_t loops)
{
    struct crawl_fixture rig;
    struct wr_engine_stats stats = {.hosts = 0};
    uint64_t most = 0;
    rig_set_up(&rig, answer_portal);
    rig.options.loops = loops;
    rig.options.max_hosts = 50;
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_seeded(&rig);
    while (!rig_await_end(&rig, 5 * MS)) {
        wr_engine_stats_get(rig.engine, &stats);
        most = stats.hosts > most ? stats.hosts : most;
    }
    rig_finish(&rig);
    print_message("%llu hosts in memory at most\n", (unsigned long long)most);
    assert_true(most <= 50 + loops);
    assert_int_equal(rig_verdicts(&rig, "fetched"), 401);
    assert_int_equal(rig_asked(&rig, -1, "/"), 401);
    rig_tear_down(&rig);
}

/* D3. */
static void links_to_many_new_hosts_wait_in_the_store(void **state)
{
    (void)state;
    crawl_portal(1);
    crawl_portal(2);
}

/* ---- long URLs ---- */

#define LONG_URL 3500
#define HUBS 4
#define LONG_PAGES 200 /* pages per hub; all together are more than one read of the store returns */

static struct origin_reply answer_with_long_ones(void *context, const struct origin_request *request)
{
    static char tail[LONG_URL];
    char *links = NULL;
    size_t bytes;
    int hub = -1;
    bool is_hub = sscanf(request->path, "/hub%d", &hub) == 1;
    if (!is_hub && strcmp(request->path, "/") != 0)
        return (struct origin_reply){.status = rig_is_robots(request) ? 404 : 200};
    memset(tail, 'x', sizeof tail - 1);
    FILE *stream = open_memstream(&links, &bytes);
    for (int i = 0; i < (is_hub ? LONG_PAGES : HUBS); i++)
        if (is_hub)
            (void)fprintf(stream, "<a href=/%d-%d%s>", hub, i, tail);
        else
            (void)fprintf(stream, "<a href=/hub%d>", i);
    (void)fclose(stream);
    const char *kept = rig_text(context, "%s", links);
    free(links);
    return rig_html(kept);
}

/* M13: the store returns long URLs in several reads, and none is lost. */
static void pages_with_long_urls_are_all_fetched_once(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_with_long_ones);
    rig.options.pace.max_in_flight = 8; /* else a busy machine answers too late */
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    assert_int_equal(rig.line_count, HUBS * LONG_PAGES + HUBS + 1);
    assert_int_equal(origin_requests(rig.origin), HUBS * LONG_PAGES + HUBS + 2);
    rig_check_store(&rig);
    rig_tear_down(&rig);
}

ENGINE_TESTS(test(pages_with_long_urls_are_all_fetched_once), test(circular_redirects_end),
             test(redirect_chain_of_a_crawl_is_bounded),
             test(redirect_to_another_host_passes_its_robots_txt_and_its_gate), test(truncated_page_is_not_used),
             test(endless_page_is_truncated), test(endless_calendar_ends_and_starves_no_other_host),
             test(links_to_many_new_hosts_wait_in_the_store))
