/* SPDX-License-Identifier: MIT */
/* test_client_robots.c - the client obeys robots.txt, judged by the server log (V3, U8, S4). */
#include "rig.h"

#include "http/client/client_internal.h"

/* How a site replies to /robots.txt. */
struct site {
    const char *robots;        /* body of robots.txt; NULL: 404 */
    int status;                /* status of robots.txt; 0: 200, or 404 without a body */
    int64_t delay_ns;          /* delay of robots.txt, ns */
    const atomic_bool *may_go; /* holds robots.txt back until it is true; NULL: at once */
    const char *fields;        /* header lines of robots.txt */
};

static struct origin_reply serve(void *context, const struct origin_request *request)
{
    const struct site *site = context;
    if (strcmp(request->path, "/robots.txt") != 0)
        return (struct origin_reply){.status = 200};
    return (struct origin_reply){.status = site->status != 0      ? site->status
                                           : site->robots != NULL ? 200
                                                                  : 404,
                                 .body = site->robots,
                                 .fields = site->fields,
                                 .delay_ns = site->delay_ns,
                                 .may_go = site->may_go};
}

static void rig_init_robots(struct client_fixture *rig, weir_robots_mode mode)
{
    rig_init(rig);
    rig->options.robots = mode;
}

static void no_page_is_fetched_before_robots_is_known(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct site site = {.robots = "User-agent: *\nDisallow: /no\n", .delay_ns = 150 * MS};
    struct origin *origin = origin_new(serve, &site, NULL);
    struct crowd crowd = {.rig = &rig};
    rig_init_robots(&rig, WEIR_ROBOTS_RFC9309);
    rig_start(&rig);
    for (int i = 0; i < 10; i++)
        crowd_ask(&crowd, url_at(origin_port(origin), "/yes"), NULL);
    crowd_await(&crowd);
    assert_int_equal(crowd.statuses[200], 10);
    /* one request serves all pages (K4) */
    assert_int_equal(origin_asked(origin, "/robots.txt"), 1);
    assert_string_equal(origin_request(origin, 0).path, "/robots.txt");
    for (int i = 1; i <= 10; i++)
        assert_true(origin_request(origin, i).at >= origin_request(origin, 0).done_at - STAMP_SLACK_NS);
    rig_tear_down(&rig);
    origin_free(origin);
}

static void page_that_robots_forbids_is_not_fetched_and_its_rule_is_reported(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct site site = {.robots = "User-agent: other\nDisallow: /\n\nUser-agent: *\nAllow: /no/but\nDisallow: /no\n"};
    struct origin *origin = origin_new(serve, &site, NULL);
    rig_init_robots(&rig, WEIR_ROBOTS_RFC9309);
    rig_start(&rig);
    weir_response *response = get(&rig, url_at(origin_port(origin), "/no/really"));
    assert_int_equal(response->status, 0);
    assert_int_equal(response->failure, WEIR_FAILURE_ROBOTS);
    assert_int_equal(response->robots_line, 6);
    assert_int_equal(response->attempts, 0);
    weir_response_free(response);
    assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/no/but")), 200);
    assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/yes")), 200);
    assert_int_equal(origin_asked(origin, "/no/really"), 0);
    rig_tear_down(&rig);
    origin_free(origin);
}

static void robots_group_that_names_the_agent_applies(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct site site = {.robots = "User-agent: *\nDisallow: /\n\nUser-agent: tester\nDisallow: /no\n"};
    struct origin *origin = origin_new(serve, &site, NULL);
    rig_init_robots(&rig, WEIR_ROBOTS_RFC9309);
    rig.options.agent = "Tester/2.0 (+https://example.org)";
    rig_start(&rig);
    assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/yes")), 200);
    assert_int_equal(get_failure(&rig, url_at(origin_port(origin), "/no")), WEIR_FAILURE_ROBOTS);
    rig_tear_down(&rig);
    origin_free(origin);
}

/* S1-27, with a tenth of a second instead of five. */
static void crawl_delay_reaches_the_gate(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct site site = {.robots = "User-agent: *\nCrawl-delay: 0.12\n"};
    struct origin *origin = origin_new(serve, &site, NULL);
    struct crowd crowd = {.rig = &rig};
    rig_init_robots(&rig, WEIR_ROBOTS_RFC9309);
    rig_start(&rig);
    for (int i = 0; i < 6; i++)
        crowd_ask(&crowd, url_at(origin_port(origin), "/"), NULL);
    crowd_await(&crowd);
    assert_int_equal(origin_requests(origin), 7);
    assert_spaced(origin, 120 * MS); /* the request for robots.txt counts as a start */
    rig_tear_down(&rig);
    origin_free(origin);
}

static void crawl_delay_of_five_seconds_spaces_starts_by_five(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct site site = {.robots = "User-agent: *\nCrawl-delay: 5\n"};
    struct origin *origin = origin_new(serve, &site, NULL);
    rig_init_robots(&rig, WEIR_ROBOTS_RFC9309);
    rig_start(&rig);
    assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/")), 200);
    assert_spaced(origin, 5 * WEIR_SECOND);
    assert_true(origin_least_gap(origin) < 10 * WEIR_SECOND);
    rig_tear_down(&rig);
    origin_free(origin);
}

static void crawl_delay_can_be_multiplied(void **state)
{
    (void)state;
    struct client_fixture rig;
    /* without the factor longer than this test waits */
    struct site site = {.robots = "User-agent: *\nCrawl-delay: 100\n"};
    struct origin *origin = origin_new(serve, &site, NULL);
    struct crowd crowd = {.rig = &rig};
    rig_init_robots(&rig, WEIR_ROBOTS_RFC9309);
    rig.options.robots_delay_factor = 0.01;
    rig_start(&rig);
    for (int i = 0; i < 3; i++)
        crowd_ask(&crowd, url_at(origin_port(origin), "/"), NULL);
    crowd_await(&crowd);
    assert_spaced(origin, WEIR_SECOND);
    rig_tear_down(&rig);
    origin_free(origin);
}

static void robots_passes_the_gate_like_every_request(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct site site = {.robots = NULL};
    struct origin *origin = origin_new(serve, &site, NULL);
    rig_init_robots(&rig, WEIR_ROBOTS_RFC9309);
    rig.pace.min_interval_ns = 150 * MS;
    rig_start(&rig);
    assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/")), 200);
    assert_int_equal(origin_requests(origin), 2);
    assert_spaced(origin, 150 * MS);
    rig_tear_down(&rig);
    origin_free(origin);
}

/* The longest wait gives the reason, and all waits are added up. */
static void longest_of_several_waits_is_reported(void **state)
{
    (void)state;
    weir_clock *clock;
    assert_int_equal(weir_clock_fake_new(WEIR_DAY, NULL, &clock), 0);
    struct weir_client client = {.clock = clock};
    struct weir_fetch fetch = {.client = &client};
    static const struct {
        int64_t wait_ns;
        weir_reason reason, longest;
    } waits[] = {{200 * MS, WEIR_REASON_PACE, WEIR_REASON_PACE},
                 {400 * MS, WEIR_REASON_ROBOTS, WEIR_REASON_ROBOTS},
                 {500 * MS, WEIR_REASON_NONE, WEIR_REASON_ROBOTS},
                 {399 * MS, WEIR_REASON_RETRY, WEIR_REASON_ROBOTS},
                 {401 * MS, WEIR_REASON_BREAKER, WEIR_REASON_BREAKER}};
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        fetch.joined_at = weir_clock_now(clock);
        assert_int_equal(weir_clock_fake_advance(clock, waits[i].wait_ns), 0);
        wr_fetch_add_wait(&fetch, waits[i].reason);
        assert_int_equal(fetch.waited_for, waits[i].longest);
    }
    assert_int_equal(fetch.waited_ns, 1900 * MS);
    weir_clock_fake_free(clock);
}

static void waits_for_robots_and_for_the_gate_are_added_up(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct site site = {.robots = "", .delay_ns = 400 * MS};
    struct origin *origin = origin_new(serve, &site, NULL);
    rig_init_robots(&rig, WEIR_ROBOTS_RFC9309);
    /* the request for robots.txt is a start: the page waits for the gate, too */
    rig.pace.min_interval_ns = 600 * MS;
    rig_start(&rig);
    weir_response *response = get(&rig, url_at(origin_port(origin), "/"));
    assert_true(response->waited_for == WEIR_REASON_ROBOTS || response->waited_for == WEIR_REASON_PACE);
    assert_true(response->waited_ns >= 590 * MS && response->waited_ns <= response->total_ns);
    weir_response_free(response);
    rig_tear_down(&rig);
    origin_free(origin);
}

/* S4-10, S4-11: a pending robots.txt of one host does not delay another host. */
static void slow_robots_delays_no_other_host(void **state)
{
    (void)state;
    struct client_fixture rig;
    atomic_bool may_answer = false;
    struct site slow = {.robots = "", .may_go = &may_answer}, quick = {.robots = ""};
    struct origin *one = origin_new(serve, &slow, NULL), *two = origin_new(serve, &quick, NULL);
    struct crowd waits = {.rig = &rig}, goes = {.rig = &rig};
    rig_init_robots(&rig, WEIR_ROBOTS_RFC9309);
    rig.options.concurrency = 2;
    rig_start(&rig);
    for (int i = 0; i < 20; i++)
        crowd_ask(&waits, url_at(origin_port(one), "/"), NULL);
    while (origin_requests(one) == 0)
        sleep_ns(MS);
    for (int i = 0; i < 50; i++)
        crowd_ask(&goes, url_at(origin_port(two), "/"), NULL);
    crowd_await(&goes);
    assert_int_equal(waits.finished, 0);
    may_answer = true;
    crowd_await(&waits);
    assert_int_equal(waits.statuses[200], 20);
    assert_int_equal(origin_asked(one, "/robots.txt"), 1);
    rig_tear_down(&rig);
    origin_free(one);
    origin_free(two);
}

/* S4-16, R11: the mode decides whether pages are fetched while robots.txt fails. */
static void robots_mode_decides_while_robots_fails(void **state)
{
    (void)state;
    static const struct {
        weir_robots_mode mode;
        weir_failure failure;
        int status;
    } cases[] = {
        {WEIR_ROBOTS_ALLOW, WEIR_FAILURE_NONE, 200},
        {WEIR_ROBOTS_DENY, WEIR_FAILURE_ROBOTS, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct client_fixture rig;
        struct site site = {.status = 500};
        struct origin *origin = origin_new(serve, &site, NULL);
        rig_init_robots(&rig, cases[i].mode);
        rig_start(&rig);
        weir_response *response = get(&rig, url_at(origin_port(origin), "/"));
        assert_int_equal(response->failure, cases[i].failure);
        assert_int_equal(response->status, cases[i].status);
        assert_int_equal(origin_asked(origin, "/"), cases[i].status == 200 ? 1 : 0);
        weir_response_free(response);
        rig_tear_down(&rig);
        origin_free(origin);
    }
}

static void note_reason(void *context, weir_response *response)
{
    atomic_int *reason = context;
    *reason = response->failure == WEIR_FAILURE_CANCELLED ? (int)response->waited_for : -1;
    weir_response_free(response);
}

/* S4-16: in the mode RFC9309 the page waits while robots.txt fails. */
static void page_waits_while_robots_fails(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct site site = {.status = 500};
    struct origin *origin = origin_new(serve, &site, NULL);
    atomic_int reason = -1;
    rig_init_robots(&rig, WEIR_ROBOTS_RFC9309);
    rig_start(&rig);
    assert_int_equal(
        weir_client_fetch_async(rig.client, url_at(origin_port(origin), "/"), NULL, note_reason, &reason, NULL), 0);
    await_requests(origin, 3);
    rig_tear_down(&rig);
    assert_int_equal(reason, WEIR_REASON_ROBOTS);
    assert_int_equal(origin_asked(origin, "/"), 0);
    origin_free(origin);
}

static void pages_fetched_without_robots_keep_the_configured_rate(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct site site = {.status = 500};
    struct origin *origin = origin_new(serve, &site, NULL);
    struct crowd crowd = {.rig = &rig};
    rig_init_robots(&rig, WEIR_ROBOTS_ALLOW);
    assert_int_equal(weir_pace_options_profile(&rig.pace, WEIR_PROFILE_STRICT), 0);
    rig.pace.min_interval_ns = 200 * MS;
    rig_start(&rig);
    for (int i = 0; i < 5; i++)
        crowd_ask(&crowd, url_at(origin_port(origin), "/"), NULL);
    crowd_await(&crowd);
    assert_int_equal(crowd.statuses[200], 5);
    assert_spaced(origin, 200 * MS);
    rig_tear_down(&rig);
    origin_free(origin);
}

static void retry_after_of_robots_is_awaited(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct site site = {.status = 429, .fields = "Retry-After: 100\r\n"};
    struct origin *origin = origin_new(serve, &site, NULL);
    struct crowd crowd = {.rig = &rig};
    rig_init_robots(&rig, WEIR_ROBOTS_ALLOW);
    rig_start(&rig);
    crowd_ask(&crowd, url_at(origin_port(origin), "/"), NULL);
    await_requests(origin, 1);
    sleep_ns(300 * MS);
    assert_int_equal(origin_requests(origin), 1);
    rig_tear_down(&rig);
    /* the fetch waited until the client was closed */
    assert_int_equal(crowd.failures[WEIR_FAILURE_CANCELLED], 1);
    origin_free(origin);
}

static void fetch_that_robots_defers_for_too_long_fails(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct site site = {.status = 503};
    struct origin *origin = origin_new(serve, &site, NULL);
    struct crowd crowd = {.rig = &rig};
    rig_init_robots(&rig, WEIR_ROBOTS_RFC9309);
    rig.options.max_defer_ns = 300 * MS;
    rig_start(&rig);
    for (int i = 0; i < 5; i++)
        crowd_ask(&crowd, url_at(origin_port(origin), "/"), NULL);
    crowd_await(&crowd);
    assert_int_equal(crowd.failures[WEIR_FAILURE_DEFERRED], 5);
    assert_int_equal(origin_asked(origin, "/"), 0);
    rig_tear_down(&rig);
    origin_free(origin);
}

/* The page fails like its robots.txt instead of waiting for a host that does not exist. */
static void page_of_a_missing_host_fails_like_its_robots(void **state)
{
    (void)state;
    struct client_fixture rig;
    rig_init_robots(&rig, WEIR_ROBOTS_RFC9309);
    rig_start(&rig);
    weir_response *response = get(&rig, "http://nobody.invalid/");
    assert_int_equal(response->failure, WEIR_FAILURE_DNS);
    assert_non_null(strstr(response->detail, "robots.txt"));
    weir_response_free(response);
    rig_tear_down(&rig);
}

/* ---- which host is to blame ---- */

static const struct wr_client_test_hooks prompt = {.life = {.retry = {.base_ns = WEIR_SECOND, .max_ns = WEIR_SECOND}}};

/* Starts a client that retries robots.txt after 0.5 to 1 s and fails its pages after this many
 * attempts. */
static void start_impatient(struct client_fixture *rig, uint32_t attempts, int64_t deadline_ns)
{
    const struct wr_client_test_hooks *before = wr_client_test_hooks;
    rig_init_robots(rig, WEIR_ROBOTS_RFC9309);
    rig->pace.retry.attempts = attempts;
    rig->options.deadline_ns = deadline_ns;
    wr_client_test_hooks = &prompt;
    rig_start(rig);
    wr_client_test_hooks = before;
}

static struct origin_reply say_nothing_of_moved(void *context, const struct origin_request *request)
{
    (void)context;
    if (strcmp(request->path, "/moved") == 0)
        return (struct origin_reply){.raw = ""};
    return (struct origin_reply){.status = 503};
}

static struct origin_reply lead_robots_away(void *context, const struct origin_request *request)
{
    (void)request;
    return (struct origin_reply){.status = 301, .fields = context};
}

/* The robots.txt of one host has moved to another host and fails there: pages of the other host
 * still wait for their own robots.txt. */
static void moved_robots_that_fails_is_not_blamed_on_its_new_host(void **state)
{
    (void)state;
    struct client_fixture rig;
    char location[100];
    struct crowd waits = {.rig = &rig}, moved = {.rig = &rig};
    struct origin *other = origin_new(say_nothing_of_moved, NULL, NULL);
    (void)snprintf(location, sizeof location, "Location: http://127.0.0.1:%d/moved\r\n", origin_port(other));
    struct origin *origin = origin_new(lead_robots_away, location, NULL);
    start_impatient(&rig, 1, 10 * WEIR_MINUTE);
    crowd_ask(&waits, url_at(origin_port(other), "/"), NULL);
    while (origin_asked(other, "/robots.txt") == 0)
        sleep_ns(MS);
    crowd_ask(&moved, url_at(origin_port(origin), "/"), NULL);
    for (int64_t until = monotonic() + WEIR_MINUTE; origin_asked(other, "/moved") < 2; sleep_ns(MS))
        assert_true(monotonic() < until);
    assert_int_equal(waits.finished, 0);
    rig_tear_down(&rig);
    assert_int_equal(waits.failures[WEIR_FAILURE_CANCELLED], 1);
    origin_free(origin);
    origin_free(other);
}

static struct origin_reply serve_robots_late_once(void *context, const struct origin_request *request)
{
    (void)context;
    return (struct origin_reply){.body = "", .delay_ns = request->number == 0 ? WEIR_HOUR : 0};
}

/* The client's own deadline ended the first attempt, not the host. */
static void robots_request_that_the_client_ended_is_not_blamed_on_the_host(void **state)
{
    (void)state;
    struct client_fixture rig;
    weir_fetch_options options;
    struct origin *origin = origin_new(serve_robots_late_once, NULL, NULL);
    start_impatient(&rig, 1, WEIR_SECOND);
    weir_fetch_options_init(&options);
    options.deadline_ns = WEIR_MINUTE;
    weir_response *response = get_with(&rig, url_at(origin_port(origin), "/"), &options);
    assert_int_equal(response->status, 200);
    weir_response_free(response);
    assert_true(origin_asked(origin, "/robots.txt") >= 2);
    rig_tear_down(&rig);
    origin_free(origin);
}

/* Replies with nothing, an error, nothing, and then rules. */
static struct origin_reply serve_robots_at_last(void *context, const struct origin_request *request)
{
    (void)context;
    /* closes the connection: on an idle one the next request would be resent at once */
    if (request->number == 1)
        return (struct origin_reply){.raw = "HTTP/1.1 503 Not now\r\nContent-Length: 0\r\n\r\n"};
    if (request->number < 3)
        return (struct origin_reply){.raw = ""};
    return (struct origin_reply){.body = ""};
}

/* Two failures in a row would be enough to fail the page. */
static void failures_of_robots_count_only_in_a_row(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct origin *origin = origin_new(serve_robots_at_last, NULL, NULL);
    start_impatient(&rig, 2, WEIR_MINUTE);
    assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/")), 200);
    assert_int_equal(origin_asked(origin, "/robots.txt"), 4);
    rig_tear_down(&rig);
    origin_free(origin);
}

/* Three attempts of robots.txt, 0.5 to 1 s and 1 to 2 s apart. */
static void closed_port_is_reported_within_seconds_despite_robots(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct site site = {.status = 200};
    struct origin *origin = origin_new(serve, &site, NULL);
    int port = origin_port(origin);
    origin_free(origin);
    rig_init_robots(&rig, WEIR_ROBOTS_RFC9309);
    rig_start(&rig);
    int64_t began_at = monotonic();
    assert_int_equal(get_failure(&rig, url_at(port, "/")), WEIR_FAILURE_CONNECT);
    assert_true(monotonic() - began_at >= 1400 * MS);
    rig_tear_down(&rig);
}

static void find_nothing(void *context, const char *name, struct wr_dns_answer *ret_answer)
{
    (void)context, (void)name;
    *ret_answer = (struct wr_dns_answer){.kind = WR_DNS_ABSENT};
}

/* A retry of robots.txt an hour later would give the same result. */
static void host_that_does_not_exist_fails_at_once(void **state)
{
    (void)state;
    static const struct wr_client_test_hooks empty = {.lookup = find_nothing,
                                                      .life = {.retry = {.base_ns = WEIR_HOUR}}};
    const struct wr_client_test_hooks *before = wr_client_test_hooks;
    struct client_fixture rig;
    rig_init_robots(&rig, WEIR_ROBOTS_RFC9309);
    rig.options.deadline_ns = 10 * WEIR_SECOND;
    wr_client_test_hooks = &empty;
    rig_start(&rig);
    wr_client_test_hooks = before;
    assert_int_equal(get_failure(&rig, "http://nobody.invalid/"), WEIR_FAILURE_DNS);
    rig_tear_down(&rig);
}

static void robots_can_be_ignored_per_client_and_per_fetch(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct site site = {.robots = "User-agent: *\nDisallow: /\n"};
    struct origin *origin = origin_new(serve, &site, NULL);
    weir_fetch_options options;
    rig_init_robots(&rig, WEIR_ROBOTS_IGNORE);
    rig_start(&rig);
    assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/")), 200);
    rig_tear_down(&rig);
    rig_init_robots(&rig, WEIR_ROBOTS_RFC9309);
    rig_start(&rig);
    weir_fetch_options_init(&options);
    options.ignore_robots = true;
    weir_response *response = get_with(&rig, url_at(origin_port(origin), "/"), &options);
    assert_int_equal(response->status, 200);
    weir_response_free(response);
    assert_int_equal(origin_asked(origin, "/robots.txt"), 0);
    assert_int_equal(get_failure(&rig, url_at(origin_port(origin), "/")), WEIR_FAILURE_ROBOTS);
    rig_tear_down(&rig);
    origin_free(origin);
}

static void own_headers_are_not_sent_for_robots(void **state)
{
    (void)state;
    static const char *const headers[] = {"Authorization: Bearer secret", "Cookie: a=b", NULL};
    struct client_fixture rig;
    struct site site = {.robots = ""};
    struct origin *origin = origin_new(serve, &site, NULL);
    rig_init_robots(&rig, WEIR_ROBOTS_RFC9309);
    rig.options.headers = headers;
    rig_start(&rig);
    assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/")), 200);
    assert_null(strstr(origin_request(origin, 0).text, "secret"));
    assert_null(strstr(origin_request(origin, 0).text, "Cookie"));
    assert_non_null(strstr(origin_request(origin, 1).text, "secret"));
    rig_tear_down(&rig);
    origin_free(origin);
}

static struct origin_reply lead_robots_to(void *context, const struct origin_request *request)
{
    if (strcmp(request->path, "/robots.txt") == 0)
        return (struct origin_reply){.status = 301, .fields = context};
    return (struct origin_reply){.status = 200};
}

static void redirected_robots_request_passes_the_gate_of_its_new_host(void **state)
{
    (void)state;
    struct client_fixture rig;
    char location[100];
    struct site site = {.robots = "User-agent: *\nDisallow: /no\n"};
    struct origin *other = origin_new(serve, &site, NULL);
    (void)snprintf(location, sizeof location, "Location: http://127.0.0.1:%d/robots.txt\r\n", origin_port(other));
    struct origin *origin = origin_new(lead_robots_to, location, NULL);
    rig_init_robots(&rig, WEIR_ROBOTS_RFC9309);
    rig.pace.min_interval_ns = 200 * MS;
    rig_start(&rig);
    /* its own robots.txt and a page */
    assert_int_equal(get_status(&rig, url_at(origin_port(other), "/")), 200);
    assert_int_equal(get_failure(&rig, url_at(origin_port(origin), "/no")), WEIR_FAILURE_ROBOTS);
    assert_int_equal(origin_requests(other), 3);
    assert_spaced(other, 200 * MS);
    rig_tear_down(&rig);
    origin_free(origin);
    origin_free(other);
}

WEIR_TESTS(test(longest_of_several_waits_is_reported), test(page_waits_while_robots_fails),
           test(moved_robots_that_fails_is_not_blamed_on_its_new_host),
           test(robots_request_that_the_client_ended_is_not_blamed_on_the_host),
           test(failures_of_robots_count_only_in_a_row), test(no_page_is_fetched_before_robots_is_known),
           test(page_that_robots_forbids_is_not_fetched_and_its_rule_is_reported),
           test(robots_group_that_names_the_agent_applies), test(crawl_delay_reaches_the_gate),
           test(crawl_delay_of_five_seconds_spaces_starts_by_five), test(crawl_delay_can_be_multiplied),
           test(robots_passes_the_gate_like_every_request), test(waits_for_robots_and_for_the_gate_are_added_up),
           test(slow_robots_delays_no_other_host), test(robots_mode_decides_while_robots_fails),
           test(pages_fetched_without_robots_keep_the_configured_rate), test(retry_after_of_robots_is_awaited),
           test(fetch_that_robots_defers_for_too_long_fails), test(page_of_a_missing_host_fails_like_its_robots),
           test(closed_port_is_reported_within_seconds_despite_robots), test(host_that_does_not_exist_fails_at_once),
           test(robots_can_be_ignored_per_client_and_per_fetch), test(own_headers_are_not_sent_for_robots),
           test(redirected_robots_request_passes_the_gate_of_its_new_host))
