/* SPDX-License-Identifier: MIT */
/* test_client_wire.c - every request that reaches a server has passed its gate, whatever caused it
 * (R20, U8, V1, V2). */
#include "rig.h"

#include "http/client/client_internal.h"

/* ---- U8: each kind of request in one run ---- */

#define INTERVAL_NS (200 * MS)

/* robots.txt is redirected and revalidated; a page is redirected, fails, and breaks off. */
static struct origin_reply serve_trouble(void *context, const struct origin_request *request)
{
    int *times_asked = context;
    if (strcmp(request->path, "/robots.txt") == 0)
        return (struct origin_reply){.status = 301, .fields = "Location: /rules\r\n"};
    if (strcmp(request->path, "/rules") == 0)
        return (struct origin_reply){.status = strstr(request->text, "If-None-Match: \"r1\"") != NULL ? 304 : 200,
                                     .fields = "ETag: \"r1\"\r\nCache-Control: max-age=1\r\n",
                                     .body = "User-agent: *\nDisallow: /no\n"};
    if (strcmp(request->path, "/old") == 0)
        return (struct origin_reply){.status = 302, .fields = "Location: /new\r\n"};
    if (strcmp(request->path, "/new") == 0)
        switch ((*times_asked)++) {
        case 0:
            return (struct origin_reply){.status = 500};
        case 1:
            /* an idle connection dies: libcurl would resend by itself */
            return (struct origin_reply){.raw = ""};
        case 2:
            return (struct origin_reply){.raw = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"};
        }
    if (strstr(request->text, "If-None-Match: \"v1\"") != NULL)
        return (struct origin_reply){.status = 304};
    return (struct origin_reply){.fields = "ETag: \"v1\"\r\n"};
}

static void every_kind_of_request_passes_the_gate(void **state)
{
    (void)state;
    static const struct wr_client_test_hooks hasty = {.life = {.refresh_min_ns = WEIR_SECOND}};
    const struct wr_client_test_hooks *before = wr_client_test_hooks;
    struct client_fixture rig;
    int times_asked = 0;
    struct origin *origin = origin_new(serve_trouble, &times_asked, NULL);
    struct crowd crowd = {.rig = &rig};
    weir_fetch_options options;
    rig_init(&rig);
    rig.pace.min_interval_ns = INTERVAL_NS;
    rig.pace.retry.base_ns = MS;
    rig.pace.retry.attempts = 4; /* a resend that the gate defers counts as another attempt */
    rig.options.robots = WEIR_ROBOTS_RFC9309;
    wr_client_test_hooks = &hasty;
    rig_start(&rig);
    wr_client_test_hooks = before;
    weir_fetch_options_init(&options);
    options.etag = "\"v1\"";
    crowd_ask(&crowd, url_at(origin_port(origin), "/old"), NULL);
    crowd_ask(&crowd, url_at(origin_port(origin), "/same"), &options); /* a conditional request */
    crowd_await(&crowd);
    while (origin_asked(origin, "/rules") < 2) /* until robots.txt is revalidated */
        assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/more")), 200);
    assert_int_equal(crowd.statuses[200], 1);
    assert_int_equal(crowd.statuses[304], 1);
    /* more on a slow machine: the rules expire after a second */
    assert_true(origin_asked(origin, "/robots.txt") >= 2);
    assert_int_equal(origin_asked(origin, "/old"), 1);
    assert_int_equal(origin_asked(origin, "/new"), 4);
    assert_int_equal(origin_asked(origin, "/same"), 1);
    assert_spaced(origin, INTERVAL_NS);
    rig_tear_down(&rig);
    origin_free(origin);
}

static struct origin_reply die_on_the_second(void *context, const struct origin_request *request)
{
    (void)context;
    return (struct origin_reply){.raw = request->number == 1 ? "" : NULL};
}

static void silent_resend_of_libcurl_passes_the_gate(void **state)
{
    (void)state;
    struct client_fixture rig;
    weir_client_stats stats;
    struct origin *origin = origin_new(die_on_the_second, NULL, NULL);
    rig_init(&rig);
    rig.pace.min_interval_ns = INTERVAL_NS;
    rig_start(&rig);
    assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/1")), 200);
    assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/2")), 200);
    assert_int_equal(origin_asked(origin, "/2"), 2);
    assert_spaced(origin, INTERVAL_NS);
    assert_int_equal(weir_client_stats_get(rig.client, &stats), 0);
    assert_int_equal(stats.requests, 3); /* the resend is counted */
    rig_tear_down(&rig);
    origin_free(origin);
}

static struct origin_reply lead_away(void *context, const struct origin_request *request)
{
    (void)request;
    return (struct origin_reply){.status = 302, .fields = context};
}

static struct origin_reply say_hello(void *context, const struct origin_request *request)
{
    (void)context, (void)request;
    return (struct origin_reply){.status = 200};
}

/* A10: a redirect counts against the host that it leads to. */
static void redirect_target_waits_for_its_own_gate(void **state)
{
    (void)state;
    struct client_fixture rig;
    char location[100];
    struct origin *target = origin_new(say_hello, NULL, NULL);
    (void)snprintf(location, sizeof location, "Location: http://127.0.0.1:%d/\r\n", origin_port(target));
    struct origin *leaders[] = {origin_new(lead_away, location, NULL), origin_new(lead_away, location, NULL)};
    struct crowd crowd = {.rig = &rig};
    rig_init(&rig);
    rig.pace.min_interval_ns = INTERVAL_NS;
    rig_start(&rig);
    crowd_ask(&crowd, url_at(origin_port(target), "/"), NULL);
    for (int i = 0; i < 2; i++) /* redirected from two hosts at the same time */
        crowd_ask(&crowd, url_at(origin_port(leaders[i]), "/"), NULL);
    crowd_await(&crowd);
    assert_int_equal(crowd.statuses[200], 3);
    assert_int_equal(origin_requests(target), 3);
    assert_spaced(target, INTERVAL_NS);
    rig_tear_down(&rig);
    origin_free(leaders[0]);
    origin_free(leaders[1]);
    origin_free(target);
}

/* ---- V1, V2: many threads and hosts ---- */

#define HOSTS 6
#define THREADS 12
#define GETS 10

static struct origin_reply turn_away_the_fifth(void *context, const struct origin_request *request)
{
    (void)context;
    if (request->number == 4)
        return (struct origin_reply){.status = 429, .fields = "Retry-After: 1\r\n"};
    return (struct origin_reply){.status = 200};
}

struct visitor {
    struct client_fixture *rig;
    struct origin **origins;
    pthread_t thread;
    int number, answered;
};

static void *visit(void *context)
{
    struct visitor *visitor = context;
    for (int i = 0; i < GETS; i++) {
        char url[64];
        weir_response *response;
        int port = origin_port(visitor->origins[(visitor->number + i) % HOSTS]);
        (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/%d", port, i);
        if (weir_client_fetch(visitor->rig->client, url, NULL, NULL, &response) != 0)
            continue;
        visitor->answered += response->status == 200;
        weir_response_free(response);
    }
    return NULL;
}

static void many_threads_and_hosts_keep_every_interval_and_window(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct origin *origins[HOSTS];
    struct visitor visitors[THREADS];
    int requests = 0;
    rig_init(&rig);
    rig.pace.min_interval_ns = 40 * MS;
    rig_start(&rig);
    for (int i = 0; i < HOSTS; i++)
        origins[i] = origin_new(turn_away_the_fifth, NULL, NULL);
    for (int i = 0; i < THREADS; i++) {
        visitors[i] = (struct visitor){.rig = &rig, .origins = origins, .number = i};
        assert_int_equal(pthread_create(&visitors[i].thread, NULL, visit, &visitors[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(visitors[i].thread, NULL), 0);
        assert_int_equal(visitors[i].answered, GETS);
    }
    for (int i = 0; i < HOSTS; i++) {
        assert_spaced(origins[i], 40 * MS);
        assert_window_kept(origins[i], 4, WEIR_SECOND);
        requests += origin_requests(origins[i]);
        origin_free(origins[i]);
    }
    assert_int_equal(requests, THREADS * GETS + HOSTS); /* each rejected request was sent twice */
    rig_tear_down(&rig);
}

/* ---- S0-92: a scripted server, and the rate that it sees ---- */

static struct origin_reply follow_script(void *context, const struct origin_request *request)
{
    (void)context;
    if (request->number == 10)
        return (struct origin_reply){.status = 429, .fields = "Retry-After: 1\r\n"};
    return (struct origin_reply){.status = request->number > 10 && request->number < 14 ? 503 : 200};
}

static int64_t least_gap_between(struct origin *origin, int from, int to)
{
    int64_t least_ns = INT64_MAX;
    for (int i = from + 1; i <= to; i++) {
        int64_t gap_ns = origin_request(origin, i).at - origin_request(origin, i - 1).at;
        least_ns = gap_ns < least_ns ? gap_ns : least_ns;
    }
    return least_ns;
}

static void rejecting_server_sees_the_rate_fall_and_rise(void **state)
{
    (void)state;
    struct client_fixture rig;
    weir_fetch_options options;
    struct origin *origin = origin_new(follow_script, NULL, NULL);
    rig_init(&rig);
    assert_int_equal(weir_pace_options_profile(&rig.pace, WEIR_PROFILE_AIMD), 0);
    rig.pace.initial_rate = 10;
    rig.pace.rate_ceiling = 100;
    rig.pace.min_rate = 2;
    rig.pace.increase = 2;
    rig.pace.burst = 1;
    rig.pace.latency_target_ns = 5 * WEIR_SECOND; /* latency does not change the rate here */
    rig.pace.consecutive_failures = 10;
    rig_start(&rig);
    weir_fetch_options_init(&options);
    options.attempts = 1;
    for (int i = 0; i < 24; i++)
        weir_response_free(get_with(&rig, url_at(origin_port(origin), "/"), &options));
    assert_int_equal(origin_requests(origin), 24);
    /* The rate starts at 10/s and grows by 2 with each response: 28 before the tenth. It is halved
     * to 14 after the wait, then to 7, 3.5 and 2. */
    assert_true(least_gap_between(origin, 0, 1) >= 83 * MS - STAMP_SLACK_NS);
    assert_true(least_gap_between(origin, 0, 10) >= 33 * MS - STAMP_SLACK_NS);
    assert_true(least_gap_between(origin, 10, 11) >= WEIR_SECOND - STAMP_SLACK_NS);
    int64_t slow_ns = least_gap_between(origin, 13, 14);
    assert_true(slow_ns >= 400 * MS);
    assert_true(least_gap_between(origin, 14, 23) >= 45 * MS - STAMP_SLACK_NS);
    assert_true(least_gap_between(origin, 18, 23) < slow_ns);
    rig_tear_down(&rig);
    origin_free(origin);
}

/* ---- A15, A16: servers that always or alternately reject ---- */

static struct origin_reply always_turn_away(void *context, const struct origin_request *request)
{
    const int *status = context;
    (void)request;
    return (struct origin_reply){.status = *status};
}

/* Fetches from a host that rejects everything for three seconds; another host is served meanwhile.
 * Returns the number of requests that arrived at the rejecting host. */
static int besiege(weir_profile profile, int status)
{
    struct client_fixture rig;
    struct origin *origin = origin_new(always_turn_away, &status, NULL), *other = origin_new(say_hello, NULL, NULL);
    struct crowd siege = {.rig = &rig}, others = {.rig = &rig};
    rig_init(&rig);
    assert_int_equal(weir_pace_options_profile(&rig.pace, profile), 0);
    rig.pace.max_rate = 8;
    rig.options.concurrency = 2;
    rig.options.deadline_ns = 3 * WEIR_SECOND;
    rig_start(&rig);
    for (int i = 0; i < 20; i++)
        crowd_ask(&siege, url_at(origin_port(origin), "/"), NULL);
    for (int i = 0; i < 2; i++)
        crowd_ask(&others, url_at(origin_port(other), "/"), NULL);
    crowd_await(&others);
    crowd_await(&siege);
    assert_int_equal(others.statuses[200], 2);
    assert_int_equal(siege.statuses[200], 0);
    assert_spaced(origin, 125 * MS);
    int requests = origin_requests(origin);
    rig_tear_down(&rig);
    origin_free(origin);
    origin_free(other);
    return requests;
}

static void rejecting_host_is_asked_ever_less_and_others_continue(void **state)
{
    (void)state;
    for (int status = 429; status <= 503; status += 503 - 429) {
        assert_in_range(besiege(WEIR_PROFILE_ADAPTIVE, status), 1, 4); /* after 0, 1, 2, 4 s … */
        assert_in_range(besiege(WEIR_PROFILE_AIMD, status), 3, 8);     /* until the breaker opens */
    }
}

static struct origin_reply cannot_decide(void *context, const struct origin_request *request)
{
    (void)context;
    return (struct origin_reply){.status = request->number % 2 == 0 ? 503 : 200};
}

static struct origin_reply lie(void *context, const struct origin_request *request)
{
    (void)context, (void)request;
    return (struct origin_reply){.body = "<h1>You are being rate limited</h1>"};
}

static void alternating_responses_never_exceed_the_maximum_rate(void **state)
{
    (void)state;
    origin_answer *const answers[] = {cannot_decide, lie};
    for (int i = 0; i < 4; i++) {
        struct client_fixture rig;
        struct origin *origin = origin_new(answers[i / 2], NULL, NULL);
        struct crowd crowd = {.rig = &rig};
        rig_init(&rig);
        assert_int_equal(weir_pace_options_profile(&rig.pace, i % 2 == 0 ? WEIR_PROFILE_ADAPTIVE : WEIR_PROFILE_AIMD),
                         0);
        rig.pace.max_rate = 8;
        rig.options.deadline_ns = 3 * WEIR_SECOND;
        rig_start(&rig);
        for (int k = 0; k < 40; k++)
            crowd_ask(&crowd, url_at(origin_port(origin), "/"), NULL);
        crowd_await(&crowd);
        assert_spaced(origin, 125 * MS);
        assert_true(origin_requests(origin) <= 25);
        /* half of the responses are bad: the rate stays far below max_rate */
        if (answers[i / 2] == cannot_decide)
            assert_true(origin_requests(origin) <= 12);
        rig_tear_down(&rig);
        origin_free(origin);
    }
}

/* ---- R23: a new client with the old state ---- */

static bool keep_memory(void *context, const char *key, size_t key_bytes, const weir_pace_memory *memory)
{
    return weir_pacer_seed(context, key, key_bytes, memory) == 0;
}

static void wait_named_by_a_server_is_kept_by_the_next_client(void **state)
{
    (void)state;
    struct client_fixture first, second;
    weir_fetch_options options;
    struct origin *origin = origin_new(turn_away_the_fifth, NULL, NULL);
    rig_set_up(&first);
    weir_fetch_options_init(&options);
    options.attempts = 1;
    for (int i = 0; i < 5; i++)
        weir_response_free(get_with(&first, url_at(origin_port(origin), "/"), &options));
    rig_set_up(&second);
    assert_int_equal(weir_pacer_export(weir_client_pacer(first.client), keep_memory, weir_client_pacer(second.client)),
                     1);
    rig_tear_down(&first);
    weir_response *response = get(&second, url_at(origin_port(origin), "/"));
    assert_int_equal(response->status, 200);
    assert_int_equal(response->waited_for, WEIR_REASON_RETRY_AFTER);
    assert_window_kept(origin, 4, WEIR_SECOND);
    weir_response_free(response);
    rig_tear_down(&second);
    origin_free(origin);
}

/* ---- V2, K2: a wait begins with the head that names it ---- */

static struct origin_reply turn_away_slowly(void *context, const struct origin_request *request)
{
    (void)context;
    if (request->number == 1)
        return (struct origin_reply){.status = 429, .fields = "Retry-After: 1\r\n", .stall_ns = 600 * MS};
    return (struct origin_reply){.delay_ns = 50 * MS};
}

static void wait_begins_with_the_head_however_slow_the_body(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct origin *origin = origin_new(turn_away_slowly, NULL, NULL);
    struct crowd crowd = {.rig = &rig};
    rig_init(&rig);
    rig.pace.max_in_flight = 2;
    rig_start(&rig);
    for (int i = 0; i < 6; i++)
        crowd_ask(&crowd, url_at(origin_port(origin), "/"), NULL);
    crowd_await(&crowd);
    assert_int_equal(crowd.statuses[200], 6);
    int64_t said_at = origin_request(origin, 1).done_at;
    for (int i = 2; i < origin_requests(origin); i++)
        if (origin_request(origin, i).at > said_at + STAMP_SLACK_NS)
            assert_true(origin_request(origin, i).at >= said_at + WEIR_SECOND - STAMP_SLACK_NS);
    rig_tear_down(&rig);
    origin_free(origin);
}

static struct origin_reply turn_away_at_length(void *context, const struct origin_request *request)
{
    (void)context;
    if (request->number == 0)
        return (struct origin_reply){.status = 429, .fields = "Retry-After: 4\r\n", .stall_ns = 3500 * MS};
    return (struct origin_reply){.status = 200};
}

static void wait_ends_as_its_head_said_however_slow_the_body(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct origin *origin = origin_new(turn_away_at_length, NULL, NULL);
    rig_set_up(&rig);
    assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/")), 200);
    int64_t gap_ns = origin_request(origin, 1).at - origin_request(origin, 0).done_at;
    /* not 3.5 s later, when the body was complete */
    assert_in_range(gap_ns, 4 * WEIR_SECOND - STAMP_SLACK_NS, 6800 * MS);
    rig_tear_down(&rig);
    origin_free(origin);
}

WEIR_TESTS(test(wait_ends_as_its_head_said_however_slow_the_body), test(every_kind_of_request_passes_the_gate),
           test(silent_resend_of_libcurl_passes_the_gate), test(redirect_target_waits_for_its_own_gate),
           test(many_threads_and_hosts_keep_every_interval_and_window),
           test(rejecting_server_sees_the_rate_fall_and_rise),
           test(rejecting_host_is_asked_ever_less_and_others_continue),
           test(alternating_responses_never_exceed_the_maximum_rate),
           test(wait_named_by_a_server_is_kept_by_the_next_client),
           test(wait_begins_with_the_head_however_slow_the_body))
