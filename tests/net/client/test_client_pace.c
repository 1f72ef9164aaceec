/* SPDX-License-Identifier: MIT */
/* test_client_pace.c - each request passes the gate of its host, by the server log (V1, V2). */
#include "rig.h"

/* V1: spacing */
static struct origin_reply say_hello(void *context, const struct origin_request *request)
{
    (void)context, (void)request;
    return (struct origin_reply){.status = 200};
}

static void starts_at_a_host_keep_their_interval(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct origin *origin = origin_new(say_hello, NULL, NULL);
    struct crowd crowd = {.rig = &rig};
    rig_init(&rig);
    rig.pace.min_interval_ns = 60 * MS;
    rig_start(&rig);
    for (int i = 0; i < 10; i++)
        crowd_ask(&crowd, url_at(origin_port(origin), "/"), NULL);
    crowd_await(&crowd);
    assert_int_equal(crowd.statuses[200], 10);
    assert_spaced(origin, 60 * MS);
    rig_tear_down(&rig);
    origin_free(origin);
}

static struct origin_reply say_slowly(void *context, const struct origin_request *request)
{
    (void)request;
    return (struct origin_reply){.may_go = context};
}

/* Only starts are spaced: all requests are sent before the first response. */
static void slow_responses_do_not_stretch_the_interval(void **state)
{
    (void)state;
    struct client_fixture rig;
    atomic_bool may_answer = false;
    struct origin *origin = origin_new(say_slowly, &may_answer, NULL);
    struct crowd crowd = {.rig = &rig};
    rig_init(&rig);
    rig.pace.min_interval_ns = 50 * MS;
    rig_start(&rig);
    for (int i = 0; i < 10; i++)
        crowd_ask(&crowd, url_at(origin_port(origin), "/"), NULL);
    await_requests(origin, 10);
    may_answer = true;
    crowd_await(&crowd);
    assert_int_equal(crowd.statuses[200], 10);
    assert_int_equal(origin_most_at_once(origin), 10);
    rig_tear_down(&rig);
    origin_free(origin);
}

static void requests_in_flight_at_a_host_stay_below_its_maximum(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct origin *origin = origin_new(say_slowly, NULL, NULL);
    struct crowd crowd = {.rig = &rig};
    rig_init(&rig);
    rig.pace.max_in_flight = 3;
    rig_start(&rig);
    for (int i = 0; i < 20; i++)
        crowd_ask(&crowd, url_at(origin_port(origin), "/"), NULL);
    crowd_await(&crowd);
    assert_int_equal(origin_most_at_once(origin), 3);
    rig_tear_down(&rig);
    origin_free(origin);
}

static void clients_with_a_shared_pacer_space_their_starts_together(void **state)
{
    (void)state;
    struct client_fixture one, two;
    weir_pacer *pacer;
    struct origin *origin = origin_new(say_hello, NULL, NULL);
    rig_init(&one);
    one.pace.min_interval_ns = 50 * MS;
    assert_int_equal(weir_pacer_new(&one.pace, NULL, &pacer), 0);
    one.options.pacer = pacer;
    rig_start(&one);
    two = one;
    rig_start(&two);
    struct crowd first = {.rig = &one}, second = {.rig = &two};
    for (int i = 0; i < 5; i++) {
        crowd_ask(&first, url_at(origin_port(origin), "/"), NULL);
        crowd_ask(&second, url_at(origin_port(origin), "/"), NULL);
    }
    crowd_await(&first);
    crowd_await(&second);
    assert_int_equal(origin_requests(origin), 10);
    assert_spaced(origin, 50 * MS);
    rig_tear_down(&one);
    rig_tear_down(&two);
    weir_pacer_free(pacer);
    origin_free(origin);
}

static void hosts_with_one_key_are_paced_as_one(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct origin *a = origin_new(say_hello, NULL, NULL), *b = origin_new(say_hello, NULL, "127.0.0.2");
    struct crowd crowd = {.rig = &rig};
    weir_fetch_options options;
    char other[64];
    rig_init(&rig);
    rig.pace.min_interval_ns = 80 * MS;
    rig_start(&rig);
    weir_fetch_options_init(&options);
    options.key = "token-7";
    (void)snprintf(other, sizeof other, "http://127.0.0.2:%d/", origin_port(b));
    crowd_ask(&crowd, url_at(origin_port(a), "/"), &options);
    crowd_ask(&crowd, other, &options);
    crowd_await(&crowd);
    int64_t gap_ns = origin_request(a, 0).at - origin_request(b, 0).at;
    assert_true((gap_ns > 0 ? gap_ns : -gap_ns) >= 80 * MS - STAMP_SLACK_NS);
    rig_tear_down(&rig);
    origin_free(a);
    origin_free(b);
}

/* ---- every wire request: redirects, retries, resends ---- */

static struct origin_reply lead_on(void *context, const struct origin_request *request)
{
    static const char *const next[] = {"Location: /1\r\n", "Location: /2\r\n", "Location: /3\r\n"};
    (void)context;
    if (request->number < 3)
        return (struct origin_reply){.status = 302, .fields = next[request->number]};
    return (struct origin_reply){.status = 200};
}

static void every_redirect_hop_passes_the_gate(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct origin *origin = origin_new(lead_on, NULL, NULL);
    rig_init(&rig);
    rig.pace.min_interval_ns = 80 * MS;
    rig_start(&rig);
    weir_response *response = get(&rig, url_at(origin_port(origin), "/0"));
    assert_int_equal(response->status, 200);
    assert_int_equal(response->hops, 3);
    assert_int_equal(origin_requests(origin), 4);
    assert_spaced(origin, 80 * MS);
    weir_response_free(response);
    rig_tear_down(&rig);
    origin_free(origin);
}

static struct origin_reply fail_twice(void *context, const struct origin_request *request)
{
    (void)context;
    return (struct origin_reply){.status = request->number < 2 ? 500 : 200};
}

static void every_retry_passes_the_gate(void **state)
{
    (void)state;
    struct client_fixture rig;
    weir_client_stats stats;
    struct origin *origin = origin_new(fail_twice, NULL, NULL);
    rig_init(&rig);
    rig.pace.min_interval_ns = 80 * MS;
    rig.pace.retry.base_ns = MS;
    rig_start(&rig);
    weir_response *response = get(&rig, url_at(origin_port(origin), "/"));
    assert_int_equal(response->status, 200);
    assert_int_equal(response->attempts, 3);
    assert_spaced(origin, 80 * MS);
    assert_int_equal(weir_client_stats_get(rig.client, &stats), 0);
    assert_int_equal(stats.retries, 2);
    weir_response_free(response);
    rig_tear_down(&rig);
    origin_free(origin);
}

static struct origin_reply hang_up(void *context, const struct origin_request *request)
{
    (void)context, (void)request;
    return (struct origin_reply){.closes = true};
}

/* If an idle connection is dead, libcurl would resend at once. */
static void dead_connections_do_not_double_a_start(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct origin *origin = origin_new(hang_up, NULL, NULL);
    struct crowd crowd = {.rig = &rig};
    rig_init(&rig);
    rig.pace.min_interval_ns = 30 * MS;
    rig_start(&rig);
    for (int i = 0; i < 15; i++)
        crowd_ask(&crowd, url_at(origin_port(origin), "/"), NULL);
    crowd_await(&crowd);
    assert_int_equal(crowd.statuses[200], 15);
    assert_spaced(origin, 30 * MS);
    rig_tear_down(&rig);
    origin_free(origin);
}

/* ---- V2: waits that servers name ---- */

static struct origin_reply turn_away_once(void *context, const struct origin_request *request)
{
    const char *fields = context;
    if (request->number == 2)
        return (struct origin_reply){.status = 429, .fields = fields};
    return (struct origin_reply){.status = 200};
}

/* No request arrives within a second after the third response, although several are queued. */
static void check_window(const char *fields)
{
    struct client_fixture rig;
    struct origin *origin = origin_new(turn_away_once, (void *)fields, NULL);
    struct crowd crowd = {.rig = &rig};
    rig_init(&rig);
    rig.pace.min_interval_ns = 20 * MS;
    rig_start(&rig);
    for (int i = 0; i < 8; i++)
        crowd_ask(&crowd, url_at(origin_port(origin), "/"), NULL);
    crowd_await(&crowd);
    assert_int_equal(crowd.statuses[200], 8); /* the rejected request was retried */
    assert_int_equal(origin_requests(origin), 9);
    assert_window_kept(origin, 2, WEIR_SECOND);
    rig_tear_down(&rig);
    origin_free(origin);
}

static void nothing_is_sent_while_retry_after_holds(void **state)
{
    (void)state;
    check_window("Retry-After: 1\r\n");
}

static void nothing_is_sent_until_a_used_up_quota_is_reset(void **state)
{
    (void)state;
    check_window("X-RateLimit-Limit: 10\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 1\r\n");
}

static struct origin_reply say_the_last(void *context, const struct origin_request *request)
{
    (void)context;
    return (struct origin_reply){.fields = request->number == 0 ? "RateLimit: \"a\";r=0;t=1\r\n" : NULL};
}

static void quota_in_a_successful_response_applies_too(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct origin *origin = origin_new(say_the_last, NULL, NULL);
    rig_set_up(&rig);
    assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/")), 200);
    weir_response *response = get(&rig, url_at(origin_port(origin), "/"));
    assert_int_equal(response->waited_for, WEIR_REASON_RATE_LIMIT_RESET);
    assert_spaced(origin, WEIR_SECOND);
    weir_response_free(response);
    rig_tear_down(&rig);
    origin_free(origin);
}

/* ---- U8: outcomes reported to the gate ---- */

static struct origin_reply by_path(void *context, const struct origin_request *request)
{
    (void)context;
    return (struct origin_reply){.status = (int)strtol(request->path + 1, NULL, 10)};
}

static weir_pace_entry look(struct client_fixture *rig, int port)
{
    weir_pace_entry entry;
    char key[64];
    int bytes = snprintf(key, sizeof key, "127.0.0.1:%d", port);
    assert_int_equal(weir_pacer_inspect(weir_client_pacer(rig->client), key, (size_t)bytes, &entry, NULL, NULL), 0);
    return entry;
}

static void gate_receives_the_real_status(void **state)
{
    (void)state;
    static const struct {
        int status;
        bool is_error, is_rejection;
    } cases[] = {{200, false, false}, {404, false, false}, {500, true, false}, {429, true, true}, {301, false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct client_fixture rig;
        char path[16];
        struct origin *origin = origin_new(by_path, NULL, NULL);
        weir_fetch_options options;
        rig_set_up(&rig);
        weir_fetch_options_init(&options);
        options.attempts = 1;
        (void)snprintf(path, sizeof path, "/%d", cases[i].status);
        weir_response *response = get_with(&rig, url_at(origin_port(origin), path), &options);
        assert_int_equal(response->status, cases[i].status);
        weir_response_free(response);
        weir_pace_entry entry = look(&rig, origin_port(origin));
        assert_true(entry.error_rate == (cases[i].is_error ? 1.0 : 0.0));
        assert_int_equal(entry.rejected, cases[i].is_rejection ? 1 : 0);
        assert_int_equal(entry.starts, 1);
        assert_int_equal(entry.in_flight, 0);
        rig_tear_down(&rig);
        origin_free(origin);
    }
}

/* ---- retries ---- */

static void attempts_end_with_their_budget(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        uint32_t attempts; /* options.attempts; 0: the default */
        int requests;
    } cases[] = {
        {"/500", 0, 3}, /* three attempts */
        {"/503", 0, 4}, /* rejected: three more attempts */
        {"/403", 0, 4}, {"/404", 0, 1}, {"/500", 1, 1}, {"/503", 1, 1}, {"/500", 5, 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct client_fixture rig;
        struct origin *origin = origin_new(by_path, NULL, NULL);
        weir_fetch_options options;
        rig_init(&rig);
        rig.pace.retry.base_ns = MS;
        rig_start(&rig);
        weir_fetch_options_init(&options);
        options.attempts = cases[i].attempts;
        weir_response *response = get_with(&rig, url_at(origin_port(origin), cases[i].path), &options);
        assert_int_equal(response->status, strtol(cases[i].path + 1, NULL, 10));
        assert_int_equal(response->failure, WEIR_FAILURE_NONE);
        assert_int_equal(origin_requests(origin), cases[i].requests);
        assert_int_equal(response->attempts, cases[i].requests);
        weir_response_free(response);
        rig_tear_down(&rig);
        origin_free(origin);
    }
}

static void status_classes_can_be_configured(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct origin *origin = origin_new(by_path, NULL, NULL);
    rig_init(&rig);
    rig.options.statuses = "403=permanent, 500=done, 404=transient";
    rig.pace.retry.base_ns = MS;
    rig_start(&rig);
    assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/403")), 403);
    assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/500")), 500);
    assert_int_equal(origin_requests(origin), 2);
    assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/404")), 404);
    assert_int_equal(origin_requests(origin), 5);
    rig_tear_down(&rig);
    origin_free(origin);
}

static void request_that_is_not_idempotent_is_sent_once(void **state)
{
    (void)state;
    static const char *const methods[] = {"POST", "PATCH", "BUY"};
    struct client_fixture rig;
    struct origin *origin = origin_new(by_path, NULL, NULL);
    weir_fetch_options options;
    rig_init(&rig);
    rig.pace.retry.base_ns = MS;
    rig_start(&rig);
    weir_fetch_options_init(&options);
    options.body = "x";
    options.body_bytes = 1;
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        options.method = methods[i];
        weir_response_free(get_with(&rig, url_at(origin_port(origin), "/500"), &options));
        weir_response_free(get_with(&rig, url_at(origin_port(origin), "/503"), &options));
        assert_int_equal(origin_requests(origin), 2 * (i + 1));
    }
    rig_tear_down(&rig);
    origin_free(origin);
}

static void waiting_for_the_pace_costs_no_attempt(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct origin *origin = origin_new(fail_twice, NULL, NULL);
    struct crowd crowd = {.rig = &rig};
    rig_init(&rig);
    rig.pace.min_interval_ns = 40 * MS;
    rig.pace.retry.base_ns = MS;
    rig_start(&rig);
    for (int i = 0; i < 10; i++)
        crowd_ask(&crowd, url_at(origin_port(origin), "/"), NULL);
    crowd_await(&crowd);
    assert_int_equal(crowd.statuses[200], 10);
    assert_int_equal(origin_requests(origin), 12);
    rig_tear_down(&rig);
    origin_free(origin);
}

static void retry_after_the_deadline_is_not_awaited(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct origin *origin = origin_new(turn_away_once, "Retry-After: 100\r\n", NULL);
    weir_fetch_options options;
    rig_set_up(&rig);
    assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/")), 200);
    assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/")), 200);
    weir_fetch_options_init(&options);
    options.deadline_ns = 90 * WEIR_SECOND;
    weir_response *response = get_with(&rig, url_at(origin_port(origin), "/"), &options);
    assert_int_equal(response->status, 429);
    assert_int_equal(response->failure, WEIR_FAILURE_NONE);
    assert_string_equal(response->body, "hello\n");
    assert_true(response->said.retry_after_ns == 100 * WEIR_SECOND);
    assert_true(response->total_ns < options.deadline_ns);
    weir_response_free(response);
    rig_tear_down(&rig);
    origin_free(origin);
}

/* ---- U1, S0-8: a host that waits delays no other host ---- */

static void waiting_host_holds_no_concurrency_slot(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct origin *strict = origin_new(turn_away_once, "Retry-After: 300\r\n", NULL);
    struct origin *free_host = origin_new(say_hello, NULL, NULL);
    struct crowd waits = {.rig = &rig}, goes = {.rig = &rig};
    rig_init(&rig);
    rig.options.concurrency = 1;
    rig_start(&rig);
    for (int i = 0; i < 6; i++)
        crowd_ask(&waits, url_at(origin_port(strict), "/"), NULL);
    await_requests(strict, 3);
    for (int i = 0; i < 50; i++)
        crowd_ask(&goes, url_at(origin_port(free_host), "/"), NULL);
    crowd_await(&goes);
    assert_int_equal(origin_requests(strict), 3);
    rig_tear_down(&rig);
    assert_int_equal(waits.failures[WEIR_FAILURE_CANCELLED], 4);
    origin_free(strict);
    origin_free(free_host);
}

/* Fetches that a host defers for longer than max_defer_ns fail; these fields name the wait. */
static void check_deferral(const char *fields)
{
    struct client_fixture rig;
    struct origin *origin = origin_new(turn_away_once, (void *)fields, NULL);
    struct crowd crowd = {.rig = &rig};
    rig_init(&rig);
    rig.options.max_defer_ns = 300 * MS;
    rig_start(&rig);
    assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/")), 200);
    assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/")), 200);
    weir_fetch_options options;
    weir_fetch_options_init(&options);
    options.attempts = 1;
    weir_response_free(get_with(&rig, url_at(origin_port(origin), "/"), &options)); /* reply 429 */
    for (int i = 0; i < 5; i++)
        crowd_ask(&crowd, url_at(origin_port(origin), "/"), NULL);
    crowd_await(&crowd);
    assert_int_equal(crowd.failures[WEIR_FAILURE_DEFERRED], 5);
    assert_int_equal(origin_requests(origin), 3);
    rig_tear_down(&rig);
    origin_free(origin);
}

static void fetch_that_a_host_defers_for_too_long_fails(void **state)
{
    (void)state;
    check_deferral("Retry-After: 100\r\n");
    check_deferral("RateLimit-Limit: 3\r\nRateLimit-Remaining: 0\r\nRateLimit-Reset: 100\r\n");
}

/* ---- S0-92: a scripted server, the rate and the breaker ---- */

/* Replies by path: /slow 200 after a delay, /429 429, others 200, or 500 while the server is
 * down. */
static struct origin_reply scripted(void *context, const struct origin_request *request)
{
    const atomic_bool *is_down = context;
    if (strcmp(request->path, "/slow") == 0)
        return (struct origin_reply){.delay_ns = 250 * MS};
    if (strcmp(request->path, "/429") == 0)
        return (struct origin_reply){.status = 429};
    return (struct origin_reply){.status = *is_down ? 500 : 200};
}

static double rate_after(struct client_fixture *rig, int port, const char *path)
{
    weir_fetch_options options;
    weir_fetch_options_init(&options);
    options.attempts = 1;
    weir_response_free(get_with(rig, url_at(port, path), &options));
    return look(rig, port).rate;
}

static void scripted_responses_change_the_rate_and_open_the_breaker(void **state)
{
    (void)state;
    struct client_fixture rig;
    atomic_bool is_down = false;
    struct origin *origin = origin_new(scripted, &is_down, NULL);
    int port = origin_port(origin);
    rig_init(&rig);
    assert_int_equal(weir_pace_options_profile(&rig.pace, WEIR_PROFILE_AIMD), 0);
    rig.pace.initial_rate = 20;
    rig.pace.rate_ceiling = 100;
    rig.pace.min_rate = 5;
    rig.pace.increase = 4;
    rig.pace.burst = 10;
    rig.pace.latency_target_ns = 100 * MS;
    rig.pace.open_ns = 400 * MS;
    rig.pace.consecutive_failures = 3;
    rig_start(&rig);
    assert_true(rate_after(&rig, port, "/") == 24); /* good and fast: up by 4 */
    /* more than twice the latency target: halved */
    assert_true(rate_after(&rig, port, "/slow") == 12);
    assert_true(rate_after(&rig, port, "/429") == 6); /* halved */
    assert_true(rate_after(&rig, port, "/") == 10);
    assert_true(rate_after(&rig, port, "/") == 14);
    is_down = true;
    for (int i = 0; i < 3; i++)
        (void)rate_after(&rig, port, "/");
    assert_int_equal(look(&rig, port).breaker, WEIR_BREAKER_OPEN);
    assert_true(look(&rig, port).rate == 5); /* halved three times, but not below min_rate */
    is_down = false;
    int before = origin_requests(origin);
    /* waits for the breaker and is its first probe */
    assert_int_equal(get_status(&rig, url_at(port, "/")), 200);
    int64_t shut_ns = origin_request(origin, before).at - origin_request(origin, before - 1).done_at;
    assert_true(shut_ns >= 400 * MS - STAMP_SLACK_NS);
    assert_int_equal(look(&rig, port).breaker, WEIR_BREAKER_HALF_OPEN);
    (void)rate_after(&rig, port, "/");
    (void)rate_after(&rig, port, "/");
    assert_int_equal(look(&rig, port).breaker, WEIR_BREAKER_CLOSED);
    rig_tear_down(&rig);
    origin_free(origin);
}

/* Returns the failure of a fetch whose host has an open breaker. */
static weir_failure meet_breaker(bool circuit_fails)
{
    struct client_fixture rig;
    atomic_bool is_down = true;
    struct origin *origin = origin_new(scripted, &is_down, NULL);
    rig_init(&rig);
    assert_int_equal(weir_pace_options_profile(&rig.pace, WEIR_PROFILE_AIMD), 0);
    rig.pace.consecutive_failures = 2;
    rig.pace.open_ns = 20 * WEIR_SECOND;
    rig.options.max_defer_ns = 300 * MS;
    rig.options.circuit_fails = circuit_fails;
    rig_start(&rig);
    for (int i = 0; i < 2; i++)
        (void)rate_after(&rig, origin_port(origin), "/");
    weir_failure failure = get_failure(&rig, url_at(origin_port(origin), "/"));
    assert_int_equal(origin_requests(origin), 2);
    rig_tear_down(&rig);
    origin_free(origin);
    return failure;
}

static void open_breaker_fails_fetches_at_once_if_configured(void **state)
{
    (void)state;
    assert_int_equal(meet_breaker(true), WEIR_FAILURE_CIRCUIT);
}

static void open_breaker_defers_fetches_no_longer_than_allowed(void **state)
{
    (void)state;
    assert_int_equal(meet_breaker(false), WEIR_FAILURE_DEFERRED);
}

WEIR_TESTS(test(starts_at_a_host_keep_their_interval), test(slow_responses_do_not_stretch_the_interval),
           test(requests_in_flight_at_a_host_stay_below_its_maximum),
           test(clients_with_a_shared_pacer_space_their_starts_together), test(hosts_with_one_key_are_paced_as_one),
           test(every_redirect_hop_passes_the_gate), test(every_retry_passes_the_gate),
           test(dead_connections_do_not_double_a_start), test(nothing_is_sent_while_retry_after_holds),
           test(nothing_is_sent_until_a_used_up_quota_is_reset), test(quota_in_a_successful_response_applies_too),
           test(gate_receives_the_real_status), test(attempts_end_with_their_budget),
           test(status_classes_can_be_configured), test(request_that_is_not_idempotent_is_sent_once),
           test(waiting_for_the_pace_costs_no_attempt), test(retry_after_the_deadline_is_not_awaited),
           test(waiting_host_holds_no_concurrency_slot), test(fetch_that_a_host_defers_for_too_long_fails),
           test(scripted_responses_change_the_rate_and_open_the_breaker),
           test(open_breaker_fails_fetches_at_once_if_configured),
           test(open_breaker_defers_fetches_no_longer_than_allowed))
