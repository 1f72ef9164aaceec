/* SPDX-License-Identifier: MIT */
/* test_client_failures.c - failures on the wire and how the client reports them (A1, A18, E7,
 * U13). */
#include "rig.h"

#include "lib/hostile.h"

#include <sys/resource.h>

static weir_pace_entry look(struct client_fixture *rig, int port)
{
    weir_pace_entry entry = {.key = NULL};
    char key[64];
    int bytes = snprintf(key, sizeof key, "127.0.0.1:%d", port);
    (void)weir_pacer_inspect(weir_client_pacer(rig->client), key, (size_t)bytes, &entry, NULL, NULL);
    return entry;
}

static void rig_init_quick(struct client_fixture *rig)
{
    rig_init(rig);
    rig->pace.retry.base_ns = MS;
    rig->options.connect_timeout_ns = 300 * MS;
    rig->options.first_byte_timeout_ns = 300 * MS;
    rig->options.total_timeout_ns = 2 * WEIR_SECOND;
}

/* ---- A18: broken responses ---- */

static const struct hostile_step resets_in_head[] = {{.what = HOSTILE_READ},
                                                     {.what = HOSTILE_SEND, .text = "HTTP/1.1 200 OK\r\nContent-"},
                                                     {.what = HOSTILE_RESET},
                                                     {.what = HOSTILE_END}};
static const struct hostile_step resets_in_body[] = {
    {.what = HOSTILE_READ},
    {.what = HOSTILE_SEND, .text = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome"},
    {.what = HOSTILE_PAUSE, .pause_ns = 20 * MS},
    {.what = HOSTILE_RESET},
    {.what = HOSTILE_END}};
static const struct hostile_step ends_in_body[] = {
    {.what = HOSTILE_READ},
    {.what = HOSTILE_SEND, .text = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome"},
    {.what = HOSTILE_END}};
static const struct hostile_step answers[] = {
    {.what = HOSTILE_READ},
    {.what = HOSTILE_SEND, .text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole"},
    {.what = HOSTILE_AGAIN},
    {.what = HOSTILE_END}};

static void get_with_a_broken_response_is_retried(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct hostile *server = hostile_new();
    int port = hostile_listen(server, &(struct hostile_case){.steps = {resets_in_head, ends_in_body, answers}});
    rig_init_quick(&rig);
    rig_start(&rig);
    weir_response *response = get(&rig, url_at(port, "/"));
    assert_int_equal(response->status, 200);
    assert_int_equal(response->failure, WEIR_FAILURE_NONE);
    assert_string_equal(response->body, "whole"); /* without the bytes of the failed attempts */
    assert_int_equal(response->attempts, 3);
    weir_response_free(response);
    rig_tear_down(&rig);
    hostile_free(server);
}

/* A16: some limiters refuse by closing the connection. A silent resend would hide that from the
 * gate. */
static void closing_a_reused_connection_unanswered_is_a_failure_of_the_host(void **state)
{
    static const struct hostile_step refuses[] = {
        {.what = HOSTILE_READ},
        {.what = HOSTILE_SEND, .text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole"},
        {.what = HOSTILE_READ},
        {.what = HOSTILE_END}};
    (void)state;
    struct client_fixture rig;
    struct hostile *server = hostile_new();
    int port = hostile_listen(server, &(struct hostile_case){.steps = {refuses}});
    rig_init_quick(&rig);
    rig.pace.breaker = true;
    rig.pace.consecutive_failures = 1;
    rig.pace.open_ns = WEIR_MINUTE;
    rig.options.max_defer_ns = WEIR_SECOND;
    rig_start(&rig);
    assert_int_equal(get_status(&rig, url_at(port, "/")), 200);
    weir_response *response = get(&rig, url_at(port, "/"));
    assert_int_equal(response->failure, WEIR_FAILURE_BROKEN);
    assert_int_equal(response->attempts, 1);
    weir_response_free(response);
    assert_int_equal(look(&rig, port).breaker, WEIR_BREAKER_OPEN);
    assert_int_equal(hostile_requests(server, port), 2);
    rig_tear_down(&rig);
    hostile_free(server);
}

static void partial_body_is_never_taken_for_the_whole(void **state)
{
    (void)state;
    static const struct hostile_step *const cases[] = {resets_in_body, ends_in_body};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct client_fixture rig;
        struct hostile *server = hostile_new();
        int port = hostile_listen(server, &(struct hostile_case){.steps = {cases[i]}});
        rig_init_quick(&rig);
        rig_start(&rig);
        weir_response *response = get(&rig, url_at(port, "/"));
        assert_int_equal(response->failure, WEIR_FAILURE_BROKEN);
        assert_true(response->truncated);
        assert_true(response->detail[0] != '\0');
        assert_int_equal(hostile_requests(server, port), 3);
        assert_int_equal(look(&rig, port).in_flight, 0);
        assert_true(look(&rig, port).error_rate == 1.0);
        weir_response_free(response);
        rig_tear_down(&rig);
        hostile_free(server);
    }
}

static void post_that_was_sent_is_not_sent_twice(void **state)
{
    (void)state;
    struct client_fixture rig;
    weir_fetch_options options;
    struct hostile *server = hostile_new();
    int port = hostile_listen(server, &(struct hostile_case){.steps = {resets_in_head}});
    rig_init_quick(&rig);
    rig_start(&rig);
    weir_fetch_options_init(&options);
    options.method = "POST";
    options.body = "order";
    options.body_bytes = 5;
    weir_response *response = get_with(&rig, url_at(port, "/"), &options);
    assert_int_equal(response->failure, WEIR_FAILURE_BROKEN);
    assert_int_equal(response->attempts, 1);
    assert_int_equal(hostile_requests(server, port), 1);
    weir_response_free(response);
    rig_tear_down(&rig);
    hostile_free(server);
}

struct pieces {
    size_t bytes;
};

static bool count_bytes(void *context, const char *bytes, size_t count)
{
    (void)bytes;
    ((struct pieces *)context)->bytes += count;
    return true;
}

/* Bytes that the caller has received cannot be taken back: no second attempt may follow. */
static void body_that_the_caller_received_is_not_restarted(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct pieces pieces = {0};
    weir_fetch_options options;
    struct hostile *server = hostile_new();
    int port = hostile_listen(server, &(struct hostile_case){.steps = {resets_in_body}});
    rig_init_quick(&rig);
    rig_start(&rig);
    weir_fetch_options_init(&options);
    options.on_body = count_bytes;
    options.context = &pieces;
    weir_response *response = get_with(&rig, url_at(port, "/"), &options);
    assert_int_equal(response->failure, WEIR_FAILURE_BROKEN);
    assert_true(response->truncated);
    assert_int_equal(pieces.bytes, 4);
    assert_int_equal(hostile_requests(server, port), 1);
    weir_response_free(response);
    rig_tear_down(&rig);
    hostile_free(server);
}

static struct origin_reply say_absent(void *context, const struct origin_request *request)
{
    (void)context, (void)request;
    return (struct origin_reply){.status = 404, .body = "nothing here"};
}

static bool is_success(void *context, int status)
{
    (void)context;
    return status >= 200 && status <= 299;
}

static void body_of_an_unwanted_status_is_not_delivered(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct pieces pieces = {0};
    weir_fetch_options options;
    struct origin *origin = origin_new(say_absent, NULL, NULL);
    rig_set_up(&rig);
    weir_fetch_options_init(&options);
    options.on_body = count_bytes;
    options.on_status = is_success;
    options.context = &pieces;
    weir_response *response = get_with(&rig, url_at(origin_port(origin), "/"), &options);
    assert_int_equal(response->status, 404);
    assert_int_equal(pieces.bytes, 0);
    assert_true(response->truncated);
    weir_response_free(response);
    rig_tear_down(&rig);
    origin_free(origin);
}

/* ---- timeouts and refusals ---- */

static const struct hostile_step never_answers[] = {
    {.what = HOSTILE_READ}, {.what = HOSTILE_HOLD}, {.what = HOSTILE_END}};
static const struct hostile_step speaks_nonsense[] = {
    {.what = HOSTILE_READ}, {.what = HOSTILE_SEND, .text = "\x16\x03\x01 what?\r\n\r\n"}, {.what = HOSTILE_END}};
static const struct hostile_step two_lengths[] = {
    {.what = HOSTILE_READ},
    {.what = HOSTILE_SEND, .text = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"},
    {.what = HOSTILE_END}};

static void server_that_never_responds_times_out_and_counts_as_an_error(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct hostile *server = hostile_new();
    int port = hostile_listen(server, &(struct hostile_case){.steps = {never_answers}});
    rig_init_quick(&rig);
    rig_start(&rig);
    weir_response *response = get(&rig, url_at(port, "/"));
    assert_int_equal(response->failure, WEIR_FAILURE_FIRST_BYTE_TIMEOUT);
    assert_int_equal(response->attempts, 3);
    assert_true(look(&rig, port).error_rate == 1.0);
    weir_response_free(response);
    rig_tear_down(&rig);
    hostile_free(server);
}

static void invalid_http_is_a_framing_failure(void **state)
{
    (void)state;
    static const struct hostile_step *const cases[] = {speaks_nonsense, two_lengths};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct client_fixture rig;
        struct hostile *server = hostile_new();
        int port = hostile_listen(server, &(struct hostile_case){.steps = {cases[i]}});
        rig_init_quick(&rig);
        rig_start(&rig);
        assert_int_equal(get_failure(&rig, url_at(port, "/")), WEIR_FAILURE_FRAMING);
        assert_true(look(&rig, port).error_rate == 1.0); /* the failure is blamed on the host */
        rig_tear_down(&rig);
        hostile_free(server);
    }
}

static void closed_port_is_a_connect_failure(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct hostile *server = hostile_new();
    int port = hostile_refuse(server);
    weir_fetch_options options;
    rig_init_quick(&rig);
    rig_start(&rig);
    weir_fetch_options_init(&options);
    options.method = "POST"; /* never sent, so it may be retried */
    weir_response *response = get_with(&rig, url_at(port, "/"), &options);
    assert_int_equal(response->failure, WEIR_FAILURE_CONNECT);
    assert_int_equal(response->attempts, 0);
    assert_true(look(&rig, port).error_rate == 1.0);
    weir_response_free(response);
    rig_tear_down(&rig);
    hostile_free(server);
}

static void unknown_name_is_a_dns_failure(void **state)
{
    (void)state;
    struct client_fixture rig;
    rig_init_quick(&rig);
    rig_start(&rig);
    assert_int_equal(get_failure(&rig, "http://nobody.invalid/"), WEIR_FAILURE_DNS);
    rig_tear_down(&rig);
}

/* U13: the deadline covers all attempts and waits. */
static void deadline_covers_all_retries(void **state)
{
    (void)state;
    struct client_fixture rig;
    weir_fetch_options options;
    struct hostile *server = hostile_new();
    int port = hostile_listen(server, &(struct hostile_case){.steps = {never_answers}});
    rig_init_quick(&rig);
    rig.options.first_byte_timeout_ns = 100 * MS;
    rig_start(&rig);
    weir_fetch_options_init(&options);
    options.deadline_ns = 600 * MS;
    options.attempts = 100;
    weir_response *response = get_with(&rig, url_at(port, "/"), &options);
    /* The fetch may also end early, because the next attempt would start after the deadline. */
    assert_true(response->failure == WEIR_FAILURE_DEADLINE || response->failure == WEIR_FAILURE_FIRST_BYTE_TIMEOUT);
    assert_true(response->attempts < 100);
    assert_true(response->total_ns >= 600 * MS || response->failure != WEIR_FAILURE_DEADLINE);
    weir_response_free(response);
    rig_tear_down(&rig);
    hostile_free(server);
}

/* ---- E7: proxies ---- */

static const struct hostile_step wants_password[] = {
    {.what = HOSTILE_READ},
    {.what = HOSTILE_SEND, .text = "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"},
    {.what = HOSTILE_END}};
static const struct hostile_step finds_no_way[] = {
    {.what = HOSTILE_READ},
    {.what = HOSTILE_SEND, .text = "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"},
    {.what = HOSTILE_END}};

static void failing_proxy_is_blamed_and_not_bypassed(void **state)
{
    (void)state;
    struct hostile *server = hostile_new();
    int target = hostile_listen(server, &(struct hostile_case){.steps = {answers}});
    const int proxies[] = {hostile_refuse(server),
                           hostile_listen(server, &(struct hostile_case){.steps = {wants_password}}),
                           hostile_listen(server, &(struct hostile_case){.steps = {finds_no_way}})};
    for (size_t i = 0; i < sizeof proxies / sizeof proxies[0]; i++) {
        struct client_fixture rig;
        char proxy[64];
        rig_init_quick(&rig);
        (void)snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", proxies[i]);
        rig.options.proxy = proxy;
        rig_start(&rig);
        assert_int_equal(get_failure(&rig, url_at(target, "/")), WEIR_FAILURE_PROXY);
        assert_int_equal(hostile_connections(server, target), 0);
        assert_true(look(&rig, target).error_rate == 0);
        assert_int_equal(look(&rig, target).in_flight, 0);
        rig_tear_down(&rig);
    }
    hostile_free(server);
}

/* Replies as a proxy: an origin that answers for every host. */
static struct origin_reply fail_as_proxy(void *context, const struct origin_request *request)
{
    const int *status = context;
    if (request->number > 0)
        return (struct origin_reply){.status = *status == 407 ? 407 : 200};
    return (struct origin_reply){.status = *status, .fields = "Retry-After: 100\r\n"};
}

static void wait_named_by_a_proxy_does_not_apply_to_the_host(void **state)
{
    (void)state;
    int status = 502;
    struct client_fixture rig;
    char proxy[64];
    struct origin *origin = origin_new(fail_as_proxy, &status, NULL);
    (void)snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", origin_port(origin));
    rig_init_quick(&rig);
    rig.options.proxy = proxy;
    rig.options.deadline_ns = 20 * WEIR_SECOND;
    rig_start(&rig);
    /* the second attempt succeeds */
    assert_int_equal(get_status(&rig, "http://127.0.0.1:9/"), 200);
    assert_int_equal(origin_requests(origin), 2);
    rig_tear_down(&rig);
    origin_free(origin);
}

static void proxy_that_wants_a_password_is_not_retried(void **state)
{
    (void)state;
    int status = 407;
    struct client_fixture rig;
    char proxy[64];
    struct origin *origin = origin_new(fail_as_proxy, &status, NULL);
    (void)snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", origin_port(origin));
    rig_init_quick(&rig);
    rig.options.proxy = proxy;
    rig_start(&rig);
    weir_response *response = get(&rig, "http://127.0.0.1:9/");
    assert_int_equal(response->failure, WEIR_FAILURE_PROXY);
    assert_int_equal(response->attempts, 1);
    weir_response_free(response);
    assert_int_equal(origin_requests(origin), 1);
    rig_tear_down(&rig);
    origin_free(origin);
}

static struct origin_reply answer_late(void *context, const struct origin_request *request)
{
    (void)context, (void)request;
    return (struct origin_reply){.delay_ns = WEIR_SECOND};
}

/* E5: a request that waits for a connection is not connecting yet, so its connect timeout does not
 * run. */
static void few_descriptors_slow_fetches_down_but_fail_none(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct rlimit before, few;
    struct crowd crowd = {.rig = &rig};
    struct origin *origin = origin_new(answer_late, NULL, NULL);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    /* the library leaves 64 descriptors to the program */
    few = (struct rlimit){66, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    rig_init(&rig);
    rig.options.connect_timeout_ns = 2 * WEIR_SECOND;
    rig_start(&rig);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    weir_fetch_options once;
    weir_fetch_options_init(&once);
    once.attempts = 1;
    for (int i = 0; i < 8; i++)
        crowd_ask(&crowd, url_at(origin_port(origin), "/"), &once);
    crowd_await(&crowd);
    assert_int_equal(crowd.statuses[200], 8);
    assert_int_equal(origin_requests(origin), 8);
    assert_in_range(origin_most_at_once(origin), 1, 2);
    rig_tear_down(&rig);
    origin_free(origin);
}

static struct origin_reply turn_away_third(void *context, const struct origin_request *request)
{
    bool is_third = request->number == 2;
    return (struct origin_reply){.status = is_third ? 429 : 200, .fields = is_third ? context : NULL};
}

/* M14: the host names a wait beyond max_defer_ns. Three requests show that the client did not
 * wait. */
static void retry_deferred_beyond_the_maximum_is_not_awaited(void **state)
{
    struct client_fixture rig;
    struct origin *origin = origin_new(turn_away_third, (void *)"Retry-After: 100\r\n", NULL);
    (void)state;
    rig_init(&rig);
    rig.options.max_defer_ns = 300 * MS;
    rig.options.deadline_ns = WEIR_FOREVER;
    rig_start(&rig);
    assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/")), 200);
    assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/")), 200);
    /* the response of the last attempt */
    assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/")), 429);
    assert_int_equal(origin_requests(origin), 3);
    rig_tear_down(&rig);
    origin_free(origin);
}

WEIR_TESTS(test(retry_deferred_beyond_the_maximum_is_not_awaited),
           test(wait_named_by_a_proxy_does_not_apply_to_the_host), test(proxy_that_wants_a_password_is_not_retried),
           test(get_with_a_broken_response_is_retried), test(partial_body_is_never_taken_for_the_whole),
           test(closing_a_reused_connection_unanswered_is_a_failure_of_the_host),
           test(post_that_was_sent_is_not_sent_twice), test(body_that_the_caller_received_is_not_restarted),
           test(body_of_an_unwanted_status_is_not_delivered),
           test(server_that_never_responds_times_out_and_counts_as_an_error), test(invalid_http_is_a_framing_failure),
           test(closed_port_is_a_connect_failure), test(unknown_name_is_a_dns_failure),
           test(deadline_covers_all_retries), test(failing_proxy_is_blamed_and_not_bypassed),
           test(few_descriptors_slow_fetches_down_but_fail_none))
