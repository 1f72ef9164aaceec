/* SPDX-License-Identifier: MIT */
/* test_client.c - the client as callers use it: responses, failures, callbacks, cancelling. */
#include "rig.h"

#include "lib/alloc.h"
#include "lib/hostile.h"

static struct origin_reply say_hello(void *context, const struct origin_request *request)
{
    (void)context;
    if (strcmp(request->path, "/missing") == 0)
        return (struct origin_reply){.status = 404, .body = "no such page"};
    if (strcmp(request->path, "/slow") == 0)
        return (struct origin_reply){.delay_ns = WEIR_HOUR};
    if (strcmp(request->path, "/quota") == 0)
        return (struct origin_reply){.fields =
                                         "RateLimit-Limit: 100\r\nRateLimit-Remaining: 42\r\nRateLimit-Reset: 60\r\n"};
    if (strcmp(request->path, "/same") == 0)
        return (struct origin_reply){.status = strstr(request->text, "If-None-Match: \"v1\"") != NULL ? 304 : 200,
                                     .fields = "ETag: \"v1\"\r\n"};
    return (struct origin_reply){.fields = "Content-Type: text/plain\r\nX-Two: a\r\nx-two: b\r\n"};
}

/* ---- responses ---- */

static void response_has_status_body_fields_and_times(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct origin *origin = origin_new(say_hello, NULL, NULL);
    rig_set_up(&rig);
    weir_response *response = get(&rig, url_at(origin_port(origin), "/a?b#c"));
    assert_int_equal(response->status, 200);
    assert_int_equal(response->failure, WEIR_FAILURE_NONE);
    assert_string_equal(response->detail, "");
    assert_string_equal(response->body, "hello\n");
    assert_int_equal(response->body_bytes, 6);
    assert_false(response->truncated);
    assert_string_equal(response->url, url_at(origin_port(origin), "/a?b#c"));
    assert_string_equal(response->address, "127.0.0.1");
    assert_string_equal(weir_response_header(response, "content-TYPE"), "text/plain");
    assert_string_equal(weir_response_header(response, "X-Two"), "a");
    assert_null(weir_response_header(response, "X-Three"));
    assert_int_equal(response->hops, 0);
    assert_int_equal(response->attempts, 1);
    assert_true(response->latency_ns > 0 && response->total_ns >= response->latency_ns);
    assert_int_equal(response->said.remaining, -1);
    weir_response_free(response);
    assert_string_equal(origin_request(origin, 0).path, "/a?b");
    rig_tear_down(&rig);
    origin_free(origin);
}

static void error_status_is_a_response_and_no_failure(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct origin *origin = origin_new(say_hello, NULL, NULL);
    rig_set_up(&rig);
    weir_response *response = get(&rig, url_at(origin_port(origin), "/missing"));
    assert_int_equal(response->status, 404);
    assert_int_equal(response->failure, WEIR_FAILURE_NONE);
    assert_string_equal(response->body, "no such page");
    weir_response_free(response);
    rig_tear_down(&rig);
    origin_free(origin);
}

static void limits_named_by_the_server_are_in_the_response(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct origin *origin = origin_new(say_hello, NULL, NULL);
    rig_set_up(&rig);
    weir_response *response = get(&rig, url_at(origin_port(origin), "/quota"));
    assert_int_equal(response->said.limit, 100);
    assert_int_equal(response->said.remaining, 42);
    assert_true(response->said.reset_ns == 60 * WEIR_SECOND);
    weir_response_free(response);
    rig_tear_down(&rig);
    origin_free(origin);
}

static void unchanged_page_is_answered_with_304(void **state)
{
    (void)state;
    struct client_fixture rig;
    weir_fetch_options options;
    struct origin *origin = origin_new(say_hello, NULL, NULL);
    rig_set_up(&rig);
    weir_fetch_options_init(&options);
    options.etag = "\"v1\"";
    weir_response *response = get_with(&rig, url_at(origin_port(origin), "/same"), &options);
    assert_int_equal(response->status, 304);
    assert_int_equal(response->body_bytes, 0);
    weir_response_free(response);
    rig_tear_down(&rig);
    origin_free(origin);
}

static void method_body_headers_and_agent_are_sent(void **state)
{
    (void)state;
    static const char *const always[] = {"X-Client: c", "X-Both: client", "X-Gone: here", NULL};
    static const char *const once[] = {"X-Fetch: f", "x-both: fetch", "X-Gone:", NULL};
    struct client_fixture rig;
    weir_fetch_options options;
    struct origin *origin = origin_new(say_hello, NULL, NULL);
    rig_init(&rig);
    rig.options.headers = always;
    rig.options.agent = "tester/1.0 (+https://example.org)";
    rig_start(&rig);
    weir_fetch_options_init(&options);
    options.method = "PUT";
    options.headers = once;
    options.body = "payload";
    options.body_bytes = 7;
    weir_response_free(get_with(&rig, url_at(origin_port(origin), "/"), &options));
    struct origin_request request = origin_request(origin, 0);
    assert_string_equal(request.method, "PUT");
    assert_non_null(strstr(request.text, "\r\nUser-Agent: tester/1.0 (+https://example.org)\r\n"));
    assert_non_null(strstr(request.text, "\r\nX-Client: c\r\n"));
    assert_non_null(strstr(request.text, "\r\nX-Fetch: f\r\n"));
    assert_non_null(strstr(request.text, "\r\nx-both: fetch\r\n"));
    assert_null(strstr(request.text, "X-Both: client"));
    assert_null(strcasestr(request.text, "X-Gone"));
    assert_non_null(strstr(request.text, "\r\nContent-Length: 7\r\n"));
    rig_tear_down(&rig);
    origin_free(origin);
}

static void url_credentials_are_sent_as_a_header_and_never_shown(void **state)
{
    (void)state;
    struct client_fixture rig;
    char url[100];
    struct origin *origin = origin_new(say_hello, NULL, NULL);
    rig_set_up(&rig);
    (void)snprintf(url, sizeof url, "http://Aladdin:open%%20sesame@127.0.0.1:%d/", origin_port(origin));
    weir_response *response = get(&rig, url);
    assert_int_equal(response->status, 200);
    assert_string_equal(response->url, url_at(origin_port(origin), "/"));
    assert_non_null(strstr(origin_request(origin, 0).text,
                           /* the example of RFC 7617 section 2 */
                           "\r\nAuthorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"));
    weir_response_free(response);
    rig_tear_down(&rig);
    origin_free(origin);
}

/* ---- bodies by callback ---- */

struct collector {
    char text[64];
    size_t bytes, most;
};

static bool collect(void *context, const char *bytes, size_t count)
{
    struct collector *collector = context;
    assert_true(collector->bytes + count < sizeof collector->text);
    memcpy(collector->text + collector->bytes, bytes, count);
    collector->bytes += count;
    return collector->bytes < collector->most;
}

static void body_can_be_received_in_pieces(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct collector collector = {.most = SIZE_MAX};
    weir_fetch_options options;
    struct origin *origin = origin_new(say_hello, NULL, NULL);
    rig_set_up(&rig);
    weir_fetch_options_init(&options);
    options.on_body = collect;
    options.context = &collector;
    weir_response *response = get_with(&rig, url_at(origin_port(origin), "/"), &options);
    assert_string_equal(collector.text, "hello\n");
    assert_string_equal(response->body, "");
    assert_int_equal(response->body_bytes, 6);
    assert_false(response->truncated);
    weir_response_free(response);
    collector = (struct collector){.most = 1}; /* the callback stops the body */
    response = get_with(&rig, url_at(origin_port(origin), "/"), &options);
    assert_int_equal(response->status, 200);
    assert_true(response->truncated);
    weir_response_free(response);
    rig_tear_down(&rig);
    origin_free(origin);
}

static void body_that_is_too_large_is_truncated(void **state)
{
    (void)state;
    struct client_fixture rig;
    weir_fetch_options options;
    struct origin *origin = origin_new(say_hello, NULL, NULL);
    rig_set_up(&rig);
    weir_fetch_options_init(&options);
    options.max_body_bytes = 3;
    weir_response *response = get_with(&rig, url_at(origin_port(origin), "/"), &options);
    assert_int_equal(response->status, 200);
    assert_string_equal(response->body, "hel");
    assert_int_equal(response->body_bytes, 3);
    assert_true(response->truncated);
    weir_response_free(response);
    rig_tear_down(&rig);
    origin_free(origin);
}

/* ---- invalid arguments (C10) ---- */

static void control_characters_in_agent_headers_and_values_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"X: a\r\nEvil: b",
                                      "X: a\nb",
                                      "X\r: a",
                                      "X : a",
                                      "X",
                                      ": a",
                                      "X: \x01",
                                      "",
                                      "Host: other",
                                      "content-length: 5",
                                      "Transfer-Encoding: chunked",
                                      "User-Agent: x"};
    weir_client *client;
    struct client_fixture rig;
    weir_response *response;
    weir_fetch_options options;
    rig_set_up(&rig);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char *const lines[] = {bad[i], NULL};
        weir_client_options client_options = rig.options;
        client_options.headers = lines;
        assert_int_equal(weir_client_new(&client_options, &client), WEIR_E_INVAL);
        weir_fetch_options_init(&options);
        options.headers = lines;
        assert_int_equal(weir_client_fetch(rig.client, "http://127.0.0.1/", &options, NULL, &response), WEIR_E_INVAL);
    }
    weir_client_options client_options = rig.options;
    client_options.agent = "weir\r\nEvil: x";
    assert_int_equal(weir_client_new(&client_options, &client), WEIR_E_INVAL);
    weir_fetch_options_init(&options);
    options.etag = "\"a\"\r\nEvil: x";
    assert_int_equal(weir_client_fetch(rig.client, "http://127.0.0.1/", &options, NULL, &response), WEIR_E_INVAL);
    options.etag = NULL;
    options.method = "GET / HTTP/1.1\r\nX:";
    assert_int_equal(weir_client_fetch(rig.client, "http://127.0.0.1/", &options, NULL, &response), WEIR_E_INVAL);
    rig_tear_down(&rig);
}

static void impossible_methods_and_bodies_are_refused(void **state)
{
    static const char *const bodiless[] = {NULL, "GET", "HEAD"};
    struct client_fixture rig;
    weir_response *response;
    weir_fetch_options options;
    (void)state;
    rig_set_up(&rig);
    weir_fetch_options_init(&options);
    options.method = "CONNECT";
    assert_int_equal(weir_client_fetch(rig.client, "http://127.0.0.1/", &options, NULL, &response), WEIR_E_INVAL);
    assert_non_null(strstr(weir_error_detail(), "CONNECT"));
    options.body = "x";
    options.body_bytes = 1;
    for (size_t i = 0; i < sizeof bodiless / sizeof bodiless[0]; i++) {
        options.method = bodiless[i];
        assert_int_equal(weir_client_fetch(rig.client, "http://127.0.0.1/", &options, NULL, &response), WEIR_E_INVAL);
        assert_non_null(strstr(weir_error_detail(), "body"));
    }
    rig_tear_down(&rig);
}

static void invalid_urls_are_refused_by_the_client(void **state)
{
    (void)state;
    static const char *const bad[] = {"",        "/a",          "ftp://example.org/",        "file:///etc/passwd",
                                      "http://", "http://a b/", "http://example.org:99999/", "javascript:alert(1)"};
    struct client_fixture rig;
    weir_response *response;
    rig_set_up(&rig);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(weir_client_fetch(rig.client, bad[i], NULL, NULL, &response), WEIR_E_INVAL);
        assert_non_null(strstr(weir_error_detail(), "url"));
    }
    rig_tear_down(&rig);
}

static void invalid_client_options_are_refused(void **state)
{
    (void)state;
    struct client_fixture rig;
    weir_client *client;
    rig_init(&rig);
#define REFUSED(field, value)                                               \
    do {                                                                    \
        weir_client_options options = rig.options;                          \
        options.field = (value);                                            \
        assert_int_equal(weir_client_new(&options, &client), WEIR_E_INVAL); \
        assert_non_null(strstr(weir_error_detail(), #field));               \
    } while (0)
    REFUSED(size, 1);
    REFUSED(agent, "");
    REFUSED(proxy, "http://a\n");
    REFUSED(proxy, "http://a:1/path");
    REFUSED(robots, (weir_robots_mode)9);
    REFUSED(robots_delay_factor, 1000);
    REFUSED(robots_delay_factor, -1);
    REFUSED(concurrency, 1000000);
    REFUSED(queue_max, SIZE_MAX);
    REFUSED(max_robots, SIZE_MAX);
    REFUSED(connect_timeout_ns, -1);
    REFUSED(first_byte_timeout_ns, WEIR_DURATION_MAX + 1);
    REFUSED(total_timeout_ns, -1);
    REFUSED(max_defer_ns, WEIR_FOREVER);
    REFUSED(min_bytes_per_s, UINT64_C(1) << 32);
    REFUSED(deadline_ns, -1);
    REFUSED(statuses, "what");
    REFUSED(max_header_bytes, (256 << 10) + 1);
    assert_int_equal(weir_client_new(&rig.options, NULL), WEIR_E_INVAL);
    weir_pace_options pace = rig.pace;
    pace.max_rate = -1;
    weir_client_options options = rig.options;
    options.pace = &pace;
    assert_int_equal(weir_client_new(&options, &client), WEIR_E_INVAL);
    assert_non_null(strstr(weir_error_detail(), "max_rate"));
#undef REFUSED
}

/* ---- callbacks ---- */

struct chain {
    struct client_fixture *rig;
    int port, left;
    atomic_bool done;
};

static void fetch_next(void *context, weir_response *response)
{
    struct chain *chain = context;
    weir_response *nested;
    assert_int_equal(response->status, 200);
    weir_response_free(response);
    assert_int_equal(weir_client_fetch(chain->rig->client, "http://127.0.0.1/", NULL, NULL, &nested), WEIR_E_INVAL);
    if (--chain->left == 0)
        chain->done = true;
    else
        assert_int_equal(
            weir_client_fetch_async(chain->rig->client, url_at(chain->port, "/"), NULL, fetch_next, chain, NULL), 0);
}

static void callback_may_start_fetches_but_not_block(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct origin *origin = origin_new(say_hello, NULL, NULL);
    struct chain chain = {.rig = &rig, .port = origin_port(origin), .left = 20};
    rig_set_up(&rig);
    assert_int_equal(weir_client_fetch_async(rig.client, url_at(chain.port, "/"), NULL, fetch_next, &chain, NULL), 0);
    while (!chain.done)
        sleep_ns(MS);
    assert_int_equal(origin_requests(origin), 20);
    rig_tear_down(&rig);
    origin_free(origin);
}

static void many_fetches_stay_within_the_concurrency(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct origin *origin = origin_new(say_hello, NULL, NULL);
    struct crowd crowd = {.rig = &rig};
    weir_client_stats stats;
    rig_init(&rig);
    rig.options.concurrency = 5;
    rig_start(&rig);
    for (int i = 0; i < 300; i++)
        crowd_ask(&crowd, url_at(origin_port(origin), "/"), NULL);
    crowd_await(&crowd);
    assert_int_equal(crowd.statuses[200], 300);
    assert_int_equal(origin_requests(origin), 300);
    assert_true(origin_most_at_once(origin) <= 5);
    assert_int_equal(weir_client_stats_get(rig.client, &stats), 0);
    assert_int_equal(stats.requests, 300);
    assert_int_equal(stats.finished, 300);
    assert_int_equal(stats.unfinished, 0);
    assert_int_equal(stats.body_bytes, 1800);
    rig_tear_down(&rig);
    origin_free(origin);
}

static void fetch_is_refused_if_the_client_queue_is_full(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct origin *origin = origin_new(say_hello, NULL, NULL);
    struct crowd crowd = {.rig = &rig};
    rig_init(&rig);
    rig.options.queue_max = 3;
    rig_start(&rig);
    for (int i = 0; i < 3; i++)
        crowd_ask(&crowd, url_at(origin_port(origin), "/slow"), NULL);
    assert_int_equal(
        weir_client_fetch_async(rig.client, url_at(origin_port(origin), "/"), NULL, crowd_count, &crowd, NULL),
        WEIR_E_FULL);
    rig_tear_down(&rig);
    assert_int_equal(crowd.finished, 3);
    assert_int_equal(crowd.failures[WEIR_FAILURE_CANCELLED], 3);
    origin_free(origin);
}

/* ---- cancelling and closing ---- */

static void fetch_in_flight_can_be_cancelled(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct origin *origin = origin_new(say_hello, NULL, NULL);
    struct crowd crowd = {.rig = &rig, .asked = 1};
    weir_fetch *fetch;
    rig_set_up(&rig);
    assert_int_equal(
        weir_client_fetch_async(rig.client, url_at(origin_port(origin), "/slow"), NULL, crowd_count, &crowd, &fetch),
        0);
    while (origin_requests(origin) == 0)
        sleep_ns(MS);
    weir_fetch_cancel(fetch);
    weir_fetch_cancel(fetch);
    crowd_await(&crowd);
    assert_int_equal(crowd.failures[WEIR_FAILURE_CANCELLED], 1);
    weir_fetch_cancel(fetch); /* no effect after the end */
    weir_fetch_free(fetch);
    assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/")), 200);
    rig_tear_down(&rig);
    origin_free(origin);
}

struct getter {
    struct client_fixture *rig;
    const char *url;
    weir_cancel *cancel;
    weir_failure failure;
    int error;
};

static void *get_in_thread(void *context)
{
    struct getter *getter = context;
    weir_response *response;
    getter->error = weir_client_fetch(getter->rig->client, getter->url, NULL, getter->cancel, &response);
    if (getter->error == 0) {
        getter->failure = response->failure;
        weir_response_free(response);
    }
    return NULL;
}

static void blocking_get_can_be_cancelled_from_another_thread(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct origin *origin = origin_new(say_hello, NULL, NULL);
    struct getter getter = {.rig = &rig, .url = url_at(origin_port(origin), "/slow")};
    pthread_t thread;
    rig_set_up(&rig);
    assert_int_equal(weir_cancel_new(NULL, &getter.cancel), 0);
    assert_int_equal(pthread_create(&thread, NULL, get_in_thread, &getter), 0);
    while (origin_requests(origin) == 0)
        sleep_ns(MS);
    weir_cancel_fire(getter.cancel);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(getter.error, 0);
    assert_int_equal(getter.failure, WEIR_FAILURE_CANCELLED);
    weir_cancel_free(getter.cancel);
    rig_tear_down(&rig);
    origin_free(origin);
}

static void closing_the_client_ends_running_and_queued_fetches(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct origin *origin = origin_new(say_hello, NULL, NULL);
    struct crowd crowd = {.rig = &rig};
    weir_response *response;
    rig_init(&rig);
    rig.options.concurrency = 4;
    rig_start(&rig);
    for (int i = 0; i < 50; i++)
        crowd_ask(&crowd, url_at(origin_port(origin), "/slow"), NULL);
    while (origin_requests(origin) < 4)
        sleep_ns(MS);
    weir_client_close(rig.client);
    assert_int_equal(crowd.finished, 50);
    assert_int_equal(crowd.failures[WEIR_FAILURE_CANCELLED], 50);
    assert_int_equal(weir_client_fetch(rig.client, "http://127.0.0.1/", NULL, NULL, &response), WEIR_E_CLOSED);
    weir_client_close(rig.client);
    rig_tear_down(&rig);
    weir_client_free(NULL);
    origin_free(origin);
}

static void idle_client_closes_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        struct client_fixture rig;
        rig_set_up(&rig);
        rig_tear_down(&rig);
    }
}

/* ---- time ---- */

static void deadline_ends_a_slow_fetch(void **state)
{
    (void)state;
    struct client_fixture rig;
    weir_fetch_options options;
    struct origin *origin = origin_new(say_hello, NULL, NULL);
    rig_set_up(&rig);
    weir_fetch_options_init(&options);
    options.deadline_ns = 200 * MS;
    int64_t began_at = monotonic();
    weir_response *response = get_with(&rig, url_at(origin_port(origin), "/slow"), &options);
    assert_int_equal(response->failure, WEIR_FAILURE_DEADLINE);
    assert_true(monotonic() - began_at >= 200 * MS);
    weir_response_free(response);
    rig_tear_down(&rig);
    origin_free(origin);
}

static void deadline_includes_waiting_for_the_pace(void **state)
{
    (void)state;
    struct client_fixture rig;
    weir_fetch_options options;
    struct origin *origin = origin_new(say_hello, NULL, NULL);
    rig_init(&rig);
    rig.pace.min_interval_ns = 30 * WEIR_SECOND;
    rig_start(&rig);
    assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/")), 200);
    weir_fetch_options_init(&options);
    options.deadline_ns = WEIR_SECOND;
    weir_response *response = get_with(&rig, url_at(origin_port(origin), "/"), &options);
    assert_int_equal(response->failure, WEIR_FAILURE_DEADLINE);
    assert_int_equal(response->waited_for, WEIR_REASON_PACE);
    assert_true(response->waited_ns >= 500 * MS && response->waited_ns <= response->total_ns);
    assert_int_equal(origin_requests(origin), 1);
    weir_response_free(response);
    rig_tear_down(&rig);
    origin_free(origin);
}

/* ---- lack of memory ---- */

static void client_reports_lack_of_memory_and_leaks_nothing(void **state)
{
    (void)state;
    struct origin *origin = origin_new(say_hello, NULL, NULL);
    bool through = false;
    for (long n = 1; !through && n < 400; n++) {
        test_allocator allocator;
        struct client_fixture rig;
        weir_response *response;
        test_allocator_init(&allocator);
        rig_init(&rig);
        rig.options.allocator = &allocator.allocator;
        allocator.fail_at = n;
        if (weir_client_new(&rig.options, &rig.client) == 0) {
            int error = weir_client_fetch(rig.client, url_at(origin_port(origin), "/"), NULL, NULL, &response);
            assert_true(error == 0 || error == WEIR_E_NOMEM);
            if (error == 0) {
                through = response->status == 200 && allocator.fail_at > 0;
                weir_response_free(response);
            }
            weir_client_free(rig.client);
        }
        sleep_ns(MS); /* resolver threads free their memory when they end */
        assert_int_equal(allocator.live, 0);
    }
    assert_true(through);
    origin_free(origin);
}

WEIR_TESTS(test(response_has_status_body_fields_and_times), test(error_status_is_a_response_and_no_failure),
           test(limits_named_by_the_server_are_in_the_response), test(unchanged_page_is_answered_with_304),
           test(method_body_headers_and_agent_are_sent), test(url_credentials_are_sent_as_a_header_and_never_shown),
           test(body_can_be_received_in_pieces), test(body_that_is_too_large_is_truncated),
           test(control_characters_in_agent_headers_and_values_are_refused),
           test(impossible_methods_and_bodies_are_refused), test(invalid_urls_are_refused_by_the_client),
           test(invalid_client_options_are_refused), test(callback_may_start_fetches_but_not_block),
           test(many_fetches_stay_within_the_concurrency), test(fetch_is_refused_if_the_client_queue_is_full),
           test(fetch_in_flight_can_be_cancelled), test(blocking_get_can_be_cancelled_from_another_thread),
           test(closing_the_client_ends_running_and_queued_fetches), test(idle_client_closes_at_once),
           test(deadline_ends_a_slow_fetch), test(deadline_includes_waiting_for_the_pace),
           test(client_reports_lack_of_memory_and_leaks_nothing))
