/* SPDX-License-Identifier: MIT */
/* test_client_bad_robots.c - robots.txt that is invalid, endless, moved or changed, judged by the
 * server log (B, V3). */
#include "rig.h"

#include "http/client/client_internal.h"
#include "lib/hostile.h"
#include "lib/hostile_tls.h"

/* ---- responses without rules ---- */

/* Replies to /robots.txt as the context says, and to pages with 200. */
struct site {
    int status; /* 0: 200 */
    const char *fields, *body, *raw;
    int64_t delay_ns;
};

static struct origin_reply serve(void *context, const struct origin_request *request)
{
    const struct site *site = context;
    if (strcmp(request->path, "/robots.txt") != 0)
        return (struct origin_reply){.status = 200};
    return (struct origin_reply){.status = site->status,
                                 .fields = site->fields,
                                 .body = site->body,
                                 .raw = site->raw,
                                 .delay_ns = site->delay_ns};
}

static void start_obeying(struct client_fixture *rig, int64_t deadline_ns)
{
    rig_init(rig);
    rig->options.robots = WEIR_ROBOTS_RFC9309;
    rig->options.first_byte_timeout_ns = WEIR_SECOND;
    rig->options.deadline_ns = deadline_ns;
    rig_start(rig);
}

#define HEAD "HTTP/1.1 200 OK\r\n"

static void readable_robots_rules_are_obeyed_and_other_text_is_ignored(void **state)
{
    (void)state;
    static const struct {
        struct site site;
        bool is_denied; /* true: the rules deny /no */
    } cases[] = {
        /* B4: a byte order mark, lone CR, no final line end */
        {{.body = "\xef\xbb\xbfUser-agent: *\rDisallow: /no"}, true},
        /* half a byte order mark */
        {{.body = "\xef\xbbUser-agent: *\nDisallow: /no\n"}, true},
        {{.body = "User-agent: *\n\xff\xfe\x01junk\nDisallow: /no\n"}, true}, /* invalid UTF-8 */
        /* no length: the body ends with the connection */
        {{.raw = HEAD "\r\nUser-agent: *\nDisallow: /no\n"}, true},
        {{.body = "<html><body>Disallow: /no</body></html>"}, false},     /* B5 */
        {{.body = "\x89PNG\r\n\x1a\n Disallow: /no"}, false},             /* an image */
        {{.body = ""}, false},                                            /* an empty file */
        {{.status = 401, .body = "User-agent: *\nDisallow: /\n"}, false}, /* B7 */
        {{.status = 403, .body = "User-agent: *\nDisallow: /\n"}, false},
        {{.status = 404}, false},
        {{.status = 410}, false},                             /* gone: no rules */
        {{.body = "User-agent: *\nDisallow: /%6Eo\n"}, true}, /* B14 */
        {{.body = "User-agent: *\nCrawl-delay: nan\nCrawl-delay: -5\nCrawl-delay: 0x10\nDisallow: /no\n"}, true},
        {{.body = "User-agent: *\nCrawl-delay: 0.0000001\nDisallow: /no\n"}, true}, /* B10 */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct client_fixture rig;
        struct origin *origin = origin_new(serve, (void *)&cases[i].site, NULL);
        start_obeying(&rig, WEIR_MINUTE);
        weir_failure failure = get_failure(&rig, url_at(origin_port(origin), "/no"));
        if (failure != (cases[i].is_denied ? WEIR_FAILURE_ROBOTS : WEIR_FAILURE_NONE))
            fail_msg("case %zu: %s", i, weir_failure_name(failure));
        assert_int_equal(origin_asked(origin, "/no"), !cases[i].is_denied);
        assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/yes")), 200);
        rig_tear_down(&rig);
        origin_free(origin);
    }
}

/* B6, B7: while the rules are unknown, no page is requested, and robots.txt is not requested again
 * at once. */
static void no_page_is_fetched_while_the_rules_are_unknown(void **state)
{
    (void)state;
    static const struct site cases[] = {
        {.status = 500},
        {.status = 503},
        {.status = 429},
        {.raw = ""},              /* no response */
        {.raw = "what?\r\n\r\n"}, /* not HTTP */
        /* half of the file: the missing half may hold the rule */
        {.raw = HEAD "Content-Length: 500\r\n\r\nUser-agent: *\n"},
        {.raw = HEAD "Content-Encoding: gzip\r\n\r\nnot gzip"},
        {.body = "", .delay_ns = 5 * WEIR_SECOND}, /* later than the first-byte limit of a second */
    };
    /* expected requests within seconds: a retry after 0.5 to 1 s, or much later */
    static const int asks[] = {2, 1, 1, 2, 2, 2, 1, 2};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct client_fixture rig;
        struct origin *origin = origin_new(serve, (void *)&cases[i], NULL);
        struct crowd crowd = {.rig = &rig};
        start_obeying(&rig, 10 * WEIR_MINUTE);
        for (int k = 0; k < 5; k++)
            crowd_ask(&crowd, url_at(origin_port(origin), "/"), NULL);
        await_requests(origin, asks[i]);
        assert_int_equal(origin_asked(origin, "/"), 0);
        assert_true(origin_requests(origin) == 1 || origin_least_gap(origin) >= 500 * MS - STAMP_SLACK_NS);
        rig_tear_down(&rig);
        assert_int_equal(crowd.finished, 5);
        assert_int_equal(crowd.statuses[200], 0);
        origin_free(origin);
    }
}

static const struct hostile_step allows_all[] = {READ, SAY("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), AGAIN, END};

/* B6: an unauthenticated server cannot allow anything. */
static void robots_with_a_wrong_certificate_allows_no_page(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct hostile_tls tls;
    char url[100];
    hostile_tls_init(&tls, HOSTILE_SELF_SIGNED, NULL, false);
    struct hostile *server = hostile_new();
    int port = hostile_listen(server, &(struct hostile_case){.steps = {allows_all}, .tls = &tls});
    start_obeying(&rig, WEIR_MINUTE);
    (void)snprintf(url, sizeof url, "https://127.0.0.1:%d/", port);
    weir_response *response = get(&rig, url);
    assert_int_equal(response->failure, WEIR_FAILURE_TLS);
    assert_non_null(strstr(response->detail, "robots.txt"));
    weir_response_free(response);
    assert_int_equal(hostile_requests(server, port), 0);
    rig_tear_down(&rig);
    hostile_free(server);
    hostile_tls_release(&tls);
}

/* ---- B1, B2: endless files ---- */

#define ENDLESS_BYTES ((size_t)24 << 20)

static void endless_robots_is_read_up_to_its_limit(void **state)
{
    (void)state;
    static const char *const lines[] = {"# and so on\n", "x", "User-agent: a\nDisallow: /a\n", "Disallow: /*a*a*a$\n"};
    char *endless = malloc(ENDLESS_BYTES + 1);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct client_fixture rig;
        struct site site = {.raw = endless};
        size_t at = (size_t)snprintf(endless, ENDLESS_BYTES, HEAD "\r\nUser-agent: *\nDisallow: /no\n");
        for (size_t bytes = strlen(lines[i]); at + bytes <= ENDLESS_BYTES; at += bytes)
            memcpy(endless + at, lines[i], bytes);
        endless[at] = '\0';
        struct origin *origin = origin_new(serve, &site, NULL);
        start_obeying(&rig, WEIR_MINUTE);
        rig_memory_mark();
        assert_int_equal(get_failure(&rig, url_at(origin_port(origin), "/no")), WEIR_FAILURE_ROBOTS);
        assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/yes")), 200);
        assert_true(rig_memory_grown() < 16 << 20);
        rig_tear_down(&rig);
        origin_free(origin);
    }
    free(endless);
}

/* ---- B8: redirected robots.txt ---- */

/* Redirects robots.txt to /1, /2 … as many times as the context says. */
static struct origin_reply lead_on(void *context, const struct origin_request *request)
{
    static _Thread_local char location[64];
    int hops = *(const int *)context, hop = (int)strtol(request->path + 1, NULL, 10);
    if (strcmp(request->path, "/no") == 0 || strcmp(request->path, "/yes") == 0)
        return (struct origin_reply){.status = 200};
    if (hop == hops)
        return (struct origin_reply){.body = "User-agent: *\nDisallow: /no\n"};
    (void)snprintf(location, sizeof location, "Location: /%d\r\n", hop + 1);
    return (struct origin_reply){.status = 301, .fields = location};
}

static void five_redirects_of_robots_are_followed(void **state)
{
    (void)state;
    for (int hops = 4; hops <= 7; hops++) {
        struct client_fixture rig;
        struct origin *origin = origin_new(lead_on, &hops, NULL);
        start_obeying(&rig, WEIR_MINUTE);
        assert_int_equal(get_failure(&rig, url_at(origin_port(origin), "/no")),
                         /* after too many redirects: as if there were no rules */
                         hops <= 5 ? WEIR_FAILURE_ROBOTS : WEIR_FAILURE_NONE);
        assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/yes")), 200);
        rig_tear_down(&rig);
        origin_free(origin);
    }
}

/* ---- B9: changed robots.txt ---- */

/* Replies with stricter rules from the second request on. */
static struct origin_reply serve_changing(void *context, const struct origin_request *request)
{
    int *asked = context;
    if (strcmp(request->path, "/robots.txt") != 0)
        return (struct origin_reply){.status = 200};
    return (struct origin_reply){.fields = "Cache-Control: max-age=1\r\n",
                                 .body = (*asked)++ > 0 ? "User-agent: *\nDisallow: /\n"
                                                        : "User-agent: *\nCrawl-delay: 0.3\n"};
}

static void changed_robots_rules_apply_to_waiting_fetches(void **state)
{
    (void)state;
    static const struct wr_client_test_hooks hasty = {.life = {.refresh_min_ns = WEIR_SECOND}};
    const struct wr_client_test_hooks *before = wr_client_test_hooks;
    struct client_fixture rig;
    int asked = 0;
    struct origin *origin = origin_new(serve_changing, &asked, NULL);
    struct crowd crowd = {.rig = &rig};
    rig_init(&rig);
    rig.options.robots = WEIR_ROBOTS_RFC9309;
    wr_client_test_hooks = &hasty;
    rig_start(&rig);
    wr_client_test_hooks = before;
    for (int i = 0; i < 20; i++) /* at a Crawl-delay of 0.3 s these take six seconds */
        crowd_ask(&crowd, url_at(origin_port(origin), "/"), NULL);
    crowd_await(&crowd);
    assert_true(origin_asked(origin, "/robots.txt") >= 2);
    assert_in_range(crowd.statuses[200], 0, 19);
    assert_int_equal(crowd.failures[WEIR_FAILURE_ROBOTS], 20 - crowd.statuses[200]);
    assert_int_equal(origin_asked(origin, "/"), crowd.statuses[200]);
    rig_tear_down(&rig);
    origin_free(origin);
}

/* ---- K4, S4-10: one request serves all waiting pages ---- */

#define THREADS 50

struct visitor {
    struct client_fixture *rig;
    const char *url;
    pthread_t thread;
    int status;
};

static void *visit(void *context)
{
    struct visitor *visitor = context;
    weir_response *response;
    if (weir_client_fetch(visitor->rig->client, visitor->url, NULL, NULL, &response) == 0) {
        visitor->status = response->status;
        weir_response_free(response);
    }
    return NULL;
}

static atomic_bool may_answer;

/* Holds robots.txt back until the test allows the reply. */
static struct origin_reply serve_slowly(void *context, const struct origin_request *request)
{
    (void)context;
    bool is_robots = strcmp(request->path, "/robots.txt") == 0;
    return (struct origin_reply){.body = is_robots ? "" : NULL, .may_go = is_robots ? &may_answer : NULL};
}

static void await_unfinished(struct client_fixture *rig, size_t count)
{
    weir_client_stats stats;
    int64_t until = monotonic() + WEIR_MINUTE;
    do {
        sleep_ns(MS);
        assert_true(monotonic() < until);
        assert_int_equal(weir_client_stats_get(rig->client, &stats), 0);
    } while (stats.unfinished < count);
}

static void fifty_threads_at_a_new_host_send_one_robots_request(void **state)
{
    (void)state;
    static struct visitor visitors[THREADS];
    struct client_fixture rig;
    char url[64];
    struct origin *origin = origin_new(serve_slowly, NULL, NULL);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/", origin_port(origin));
    may_answer = false;
    rig_init(&rig);
    rig.options.robots = WEIR_ROBOTS_RFC9309;
    rig_start(&rig);
    for (int i = 0; i < THREADS; i++) {
        visitors[i] = (struct visitor){.rig = &rig, .url = url};
        assert_int_equal(pthread_create(&visitors[i].thread, NULL, visit, &visitors[i]), 0);
    }
    await_unfinished(&rig, THREADS);
    await_requests(origin, 1);
    /* no page is requested before the rules are known */
    assert_int_equal(origin_requests(origin), 1);
    may_answer = true;
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(visitors[i].thread, NULL), 0);
        assert_int_equal(visitors[i].status, 200);
    }
    assert_int_equal(origin_asked(origin, "/robots.txt"), 1);
    rig_tear_down(&rig);
    origin_free(origin);
}

/* S4-11: a pending robots.txt of one host does not delay pages of another. */
static void robots_request_of_one_host_does_not_delay_pages_of_another(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct site quick = {.body = ""};
    struct origin *known = origin_new(serve, &quick, NULL), *slow = origin_new(serve_slowly, NULL, NULL);
    struct crowd waits = {.rig = &rig};
    may_answer = false;
    rig_init(&rig);
    rig.options.robots = WEIR_ROBOTS_RFC9309;
    rig_start(&rig);
    assert_int_equal(get_status(&rig, url_at(origin_port(known), "/")), 200);
    crowd_ask(&waits, url_at(origin_port(slow), "/"), NULL);
    await_requests(slow, 1);
    for (int i = 0; i < 20; i++)
        assert_int_equal(get_status(&rig, url_at(origin_port(known), "/")), 200);
    assert_int_equal(waits.finished, 0);
    may_answer = true;
    crowd_await(&waits);
    assert_int_equal(waits.statuses[200], 1);
    rig_tear_down(&rig);
    origin_free(known);
    origin_free(slow);
}

WEIR_TESTS(test(robots_with_a_wrong_certificate_allows_no_page),
           test(readable_robots_rules_are_obeyed_and_other_text_is_ignored),
           test(no_page_is_fetched_while_the_rules_are_unknown), test(endless_robots_is_read_up_to_its_limit),
           test(five_redirects_of_robots_are_followed), test(changed_robots_rules_apply_to_waiting_fetches),
           test(fifty_threads_at_a_new_host_send_one_robots_request),
           test(robots_request_of_one_host_does_not_delay_pages_of_another))
