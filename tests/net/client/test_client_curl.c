/* SPDX-License-Identifier: MIT */
/* test_client_curl.c - a handler around the caller's own CURL handle, judged by the server log
 * (S3-14 to S3-19, S3-41). */
#include "rig.h"

#include <weir/curl.h>

/* A pacer or a limiter, a handler around it, and a CURL handle. */
struct handling {
    weir_pacer *pacer;
    weir_limiter *limiter;
    weir_handler *handler;
    weir_handler_options options;
    CURL *easy;
    int rejections, error;
};

static size_t ignore_body(char *data, size_t size, size_t count, void *context)
{
    (void)data, (void)context;
    return size * count;
}

static void on_rejected(void *context, const char *key, size_t key_bytes, int error, const weir_decision *decision)
{
    struct handling *handling = context;
    (void)key, (void)key_bytes, (void)decision;
    handling->rejections++;
    handling->error = error;
}

static void start(struct handling *handling)
{
    handling->options.pacer = handling->pacer;
    handling->options.limiter = handling->limiter;
    handling->options.reports_sent = handling->pacer != NULL;
    handling->options.on_rejected = on_rejected;
    handling->options.rejected_context = handling;
    assert_int_equal(weir_handler_new(&handling->options, &handling->handler), 0);
    handling->easy = curl_easy_init();
    assert_non_null(handling->easy);
    curl_easy_setopt(handling->easy, CURLOPT_WRITEFUNCTION, ignore_body);
    curl_easy_setopt(handling->easy, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(handling->easy, CURLOPT_NOSIGNAL, 1L);
}

static void start_paced(struct handling *handling, int64_t interval_ns)
{
    weir_pace_options pace;
    memset(handling, 0, sizeof *handling);
    assert_int_equal(weir_pace_options_profile(&pace, WEIR_PROFILE_UNLIMITED), 0);
    pace.min_interval_ns = interval_ns;
    assert_int_equal(weir_pacer_new(&pace, NULL, &handling->pacer), 0);
    weir_handler_options_init(&handling->options);
    start(handling);
}

/* Starts a handler that allows one request at a time. Change handling->options before. */
static void start_limited(struct handling *handling)
{
    weir_limit limit;
    assert_int_equal(weir_limit_concurrency(&limit, 1), 0);
    assert_int_equal(weir_limiter_new(&limit, 1, NULL, &handling->limiter), 0);
    start(handling);
}

static void end(struct handling *handling)
{
    curl_easy_cleanup(handling->easy);
    weir_handler_free(handling->handler);
    weir_pacer_free(handling->pacer);
    weir_limiter_free(handling->limiter);
}

/* Returns the status, or minus the libcurl error code. Fails if the handler refused. */
static long perform(struct handling *handling, const char *url, weir_server_limits *ret_said)
{
    CURLcode code = CURLE_OK;
    long status = 0;
    curl_easy_setopt(handling->easy, CURLOPT_URL, url);
    assert_int_equal(weir_curl_perform(handling->handler, handling->easy, NULL, NULL, &code, ret_said), 0);
    (void)curl_easy_getinfo(handling->easy, CURLINFO_RESPONSE_CODE, &status);
    return code == CURLE_OK ? status : -(long)code;
}

/* ---- the server ---- */

static struct origin_reply serve(void *context, const struct origin_request *request)
{
    int *asked = context; /* number of requests for paths that fail at first */
    if (strcmp(request->path, "/old") == 0)
        return (struct origin_reply){.status = 301, .fields = "Location: /older\r\nRetry-After: 0\r\n"};
    if (strcmp(request->path, "/older") == 0)
        return (struct origin_reply){.status = 301, .fields = "Location: /new\r\n"};
    if (strcmp(request->path, "/dies") == 0 && (*asked)++ == 0)
        return (struct origin_reply){.raw = ""};
    if (strcmp(request->path, "/later") == 0 && (*asked)++ > 0)
        return (struct origin_reply){.status = 302, .fields = "Location: /a\r\nRetry-After: 1\r\n"};
    if (strcmp(request->path, "/later") == 0)
        return (struct origin_reply){.raw = ""};
    if (strcmp(request->path, "/away") == 0)
        return (struct origin_reply){.status = 429, .fields = "Retry-After: 1\r\n"};
    if (strcmp(request->path, "/cut") == 0)
        return (struct origin_reply){.raw = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"};
    if (strcmp(request->path, "/500") == 0)
        return (struct origin_reply){.status = 500};
    return (struct origin_reply){.fields = "RateLimit-Limit: 9\r\nRateLimit-Remaining: 4\r\nRateLimit-Reset: 30\r\n"};
}

/* ---- every request of libcurl passes the gate ---- */

static void every_request_of_libcurl_passes_the_gate(void **state)
{
    (void)state;
    struct handling handling;
    int asked = 0;
    struct origin *origin = origin_new(serve, &asked, NULL);
    start_paced(&handling, 150 * MS);
    assert_int_equal(perform(&handling, url_at(origin_port(origin), "/a"), NULL), 200);
    /* follows two redirects */
    assert_int_equal(perform(&handling, url_at(origin_port(origin), "/old"), NULL), 200);
    /* resent after the connection died */
    assert_int_equal(perform(&handling, url_at(origin_port(origin), "/dies"), NULL), 200);
    assert_int_equal(origin_requests(origin), 1 + 3 + 2);
    assert_spaced(origin, 150 * MS);
    weir_pacer_stats stats;
    assert_int_equal(weir_pacer_stats_get(handling.pacer, &stats), 0);
    assert_int_equal(stats.requests, 6); /* one permit per wire request */
    end(&handling);
    origin_free(origin);
}

static void wait_named_by_the_server_is_kept_with_libcurl(void **state)
{
    (void)state;
    struct handling handling;
    int asked = 0;
    weir_server_limits said;
    struct origin *origin = origin_new(serve, &asked, NULL);
    start_paced(&handling, 0);
    assert_int_equal(perform(&handling, url_at(origin_port(origin), "/away"), &said), 429);
    assert_true(said.retry_after_ns == WEIR_SECOND);
    assert_int_equal(perform(&handling, url_at(origin_port(origin), "/a"), &said), 200);
    assert_int_equal(said.remaining, 4);
    assert_spaced(origin, WEIR_SECOND);
    end(&handling);
    origin_free(origin);
}

/* Each response head within one call counts when it arrives: also after a resend and a redirect. */
static void wait_named_by_a_redirect_is_kept(void **state)
{
    (void)state;
    struct handling handling;
    int asked = 0;
    struct origin *origin = origin_new(serve, &asked, NULL);
    start_paced(&handling, 0);
    /* leaves an idle connection */
    assert_int_equal(perform(&handling, url_at(origin_port(origin), "/a"), NULL), 200);
    assert_int_equal(perform(&handling, url_at(origin_port(origin), "/later"), NULL), 200);
    assert_int_equal(origin_asked(origin, "/later"), 2);
    assert_int_equal(origin_requests(origin), 4);
    assert_true(origin_request(origin, 3).at - origin_request(origin, 2).at >= WEIR_SECOND - STAMP_SLACK_NS);
    end(&handling);
    origin_free(origin);
}

/* ---- S3-14, S3-15: every permit is released exactly once ---- */

static bool is_free(struct handling *handling)
{
    weir_decision decision;
    assert_int_equal(weir_limiter_try(handling->limiter, 1, &decision), 0);
    if (decision.verdict == WEIR_GO)
        assert_int_equal(weir_limiter_release(handling->limiter, 1), 0);
    return decision.verdict == WEIR_GO;
}

static int stop(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    (void)context, (void)a, (void)b, (void)c, (void)d;
    return 1;
}

static void permit_is_released_however_the_request_ends(void **state)
{
    (void)state;
    struct handling handling = {.pacer = NULL};
    int asked = 1;
    struct origin *origin = origin_new(serve, &asked, NULL);
    weir_handler_options_init(&handling.options);
    handling.options.acquire_timeout_ns = 0;
    start_limited(&handling);
    int port = origin_port(origin);
    assert_int_equal(perform(&handling, url_at(port, "/a"), NULL), 200);
    assert_int_equal(perform(&handling, url_at(port, "/500"), NULL), 500);
    assert_int_equal(perform(&handling, url_at(port, "/old"), NULL), 200);
    assert_int_equal(perform(&handling, url_at(port, "/cut"), NULL), -CURLE_PARTIAL_FILE);
    assert_int_equal(perform(&handling, "http://127.0.0.1:1/", NULL), -CURLE_COULDNT_CONNECT);
    curl_easy_setopt(handling.easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(handling.easy, CURLOPT_XFERINFOFUNCTION, stop);
    assert_int_equal(perform(&handling, url_at(port, "/a"), NULL), -CURLE_ABORTED_BY_CALLBACK);
    assert_true(is_free(&handling));
    assert_int_equal(handling.rejections, 0); /* every request got its permit */
    end(&handling);
    origin_free(origin);
}

static void rejected_request_is_not_sent_and_releases_no_permit(void **state)
{
    (void)state;
    struct handling handling = {.pacer = NULL};
    int asked = 0;
    struct origin *origin = origin_new(serve, &asked, NULL);
    weir_exchange *other;
    CURLcode code = CURLE_OK;
    weir_handler_options_init(&handling.options);
    handling.options.acquire_timeout_ns = 20 * MS;
    start_limited(&handling);
    /* takes the only permit */
    assert_int_equal(weir_handler_begin(handling.handler, NULL, 0, NULL, &other), 0);
    curl_easy_setopt(handling.easy, CURLOPT_URL, url_at(origin_port(origin), "/a"));
    assert_int_equal(weir_curl_perform(handling.handler, handling.easy, NULL, NULL, &code, NULL), WEIR_E_TIMEOUT);
    assert_int_equal(handling.rejections, 1);
    assert_int_equal(handling.error, WEIR_E_TIMEOUT);
    assert_int_equal(origin_requests(origin), 0);
    assert_false(is_free(&handling)); /* the permit of the other exchange is still taken */
    weir_exchange_free(other);
    assert_int_equal(perform(&handling, url_at(origin_port(origin), "/a"), NULL), 200);
    end(&handling);
    origin_free(origin);
}

static void *cancel_soon(void *context)
{
    sleep_ns(50 * MS);
    weir_cancel_fire(context);
    return NULL;
}

/* Cancels while waiting for the first permit, and between two redirect hops. */
static void waiting_for_a_permit_can_be_cancelled(void **state)
{
    (void)state;
    static const char *const paths[] = {"/a", "/old"};
    for (int i = 0; i < 2; i++) {
        struct handling handling;
        int asked = 0;
        struct origin *origin = origin_new(serve, &asked, NULL);
        weir_cancel *cancel;
        pthread_t thread;
        CURLcode code = CURLE_OK;
        start_paced(&handling, WEIR_MINUTE);
        if (i == 0)
            assert_int_equal(perform(&handling, url_at(origin_port(origin), "/a"), NULL), 200);
        assert_int_equal(weir_cancel_new(NULL, &cancel), 0);
        assert_int_equal(pthread_create(&thread, NULL, cancel_soon, cancel), 0);
        curl_easy_setopt(handling.easy, CURLOPT_URL, url_at(origin_port(origin), paths[i]));
        assert_int_equal(weir_curl_perform(handling.handler, handling.easy, NULL, cancel, &code, NULL),
                         WEIR_E_CANCELLED);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(origin_requests(origin), 1);
        weir_cancel_free(cancel);
        end(&handling);
        origin_free(origin);
    }
}

/* ---- S3-16, S3-19: limits named by the server ---- */

static void server_limits_are_reported_only_if_enabled(void **state)
{
    (void)state;
    for (int asks = 0; asks < 2; asks++) {
        struct handling handling = {.pacer = NULL};
        int asked = 0;
        weir_server_limits said;
        struct origin *origin = origin_new(serve, &asked, NULL);
        weir_handler_options_init(&handling.options);
        handling.options.respect_server_headers = asks != 0;
        start_limited(&handling);
        assert_int_equal(perform(&handling, url_at(origin_port(origin), "/a"), &said), 200);
        assert_int_equal(said.limit, asks ? 9 : -1);
        assert_int_equal(said.remaining, asks ? 4 : -1);
        assert_true(said.reset_ns == (asks ? 30 * WEIR_SECOND : -1));
        end(&handling);
        origin_free(origin);
    }
}

/* ---- S3-17: the caller's own retries, around and inside an exchange ---- */

static struct origin_reply fail_twice(void *context, const struct origin_request *request)
{
    (void)context;
    return (struct origin_reply){.status = request->number % 3 < 2 ? 503 : 200};
}

static void callers_retries_work_around_or_inside_an_exchange(void **state)
{
    (void)state;
    struct handling handling;
    struct origin *origin = origin_new(fail_twice, NULL, NULL);
    weir_exchange *exchange;
    long status = 0;
    start_paced(&handling, 100 * MS);
    for (int i = 0; i < 3; i++) /* around: each attempt needs its own permit */
        status = perform(&handling, url_at(origin_port(origin), "/"), NULL);
    assert_int_equal(status, 200);
    assert_spaced(origin, 100 * MS);
    /* inside: one permit for all attempts */
    assert_int_equal(weir_handler_begin(handling.handler, "a", 1, NULL, &exchange), 0);
    assert_int_equal(weir_exchange_sent(exchange), 0);
    curl_easy_setopt(handling.easy, CURLOPT_URL, url_at(origin_port(origin), "/"));
    for (int i = 0; i < 3; i++)
        assert_int_equal(curl_easy_perform(handling.easy), CURLE_OK);
    (void)curl_easy_getinfo(handling.easy, CURLINFO_RESPONSE_CODE, &status);
    assert_int_equal(status, 200);
    weir_exchange_end(exchange, (int)status);
    weir_exchange_free(exchange);
    assert_int_equal(origin_requests(origin), 6);
    end(&handling);
    origin_free(origin);
}

/* ---- S3-41: lifetimes ---- */

static void limiter_outlives_its_handler(void **state)
{
    (void)state;
    struct handling handling = {.pacer = NULL};
    int asked = 0;
    weir_decision decision;
    struct origin *origin = origin_new(serve, &asked, NULL);
    weir_handler_options_init(&handling.options);
    start_limited(&handling);
    assert_int_equal(perform(&handling, url_at(origin_port(origin), "/a"), NULL), 200);
    weir_handler_free(handling.handler);
    handling.handler = NULL;
    assert_int_equal(weir_limiter_try(handling.limiter, 1, &decision), 0);
    assert_int_equal(decision.verdict, WEIR_GO);
    end(&handling);
    origin_free(origin);
}

/* ---- reuse of a handle ---- */

static struct origin_reply lead_to(void *context, const struct origin_request *request)
{
    (void)request;
    return (struct origin_reply){.status = 302, .fields = context};
}

static uint64_t starts_at(const struct handling *handling, struct origin *origin)
{
    weir_pace_entry entry;
    char key[64];
    int bytes = snprintf(key, sizeof key, "127.0.0.1:%d", origin_port(origin));
    assert_int_equal(weir_pacer_inspect(handling->pacer, key, (size_t)bytes, &entry, NULL, NULL), 0);
    return entry.starts;
}

/* libcurl reports the redirected URL as the effective one until the next request starts. */
static void reused_handle_waits_at_the_first_host_after_a_redirect(void **state)
{
    (void)state;
    struct handling handling;
    int asked = 0;
    char location[2048];
    CURLcode code;
    struct origin *there = origin_new(serve, &asked, NULL);
    (void)snprintf(location, sizeof location, "Location: %s\r\n", url_at(origin_port(there), "/a"));
    struct origin *here = origin_new(lead_to, location, NULL);
    start_paced(&handling, MS);
    assert_int_equal(perform(&handling, url_at(origin_port(here), "/"), NULL), 200);
    assert_int_equal(weir_curl_perform(handling.handler, handling.easy, NULL, NULL, &code, NULL), 0);
    assert_int_equal(origin_requests(here), 2);
    assert_int_equal(starts_at(&handling, here), 2);
    assert_int_equal(starts_at(&handling, there), 2);
    end(&handling);
    origin_free(here);
    origin_free(there);
}

WEIR_TESTS(test(every_request_of_libcurl_passes_the_gate), test(wait_named_by_the_server_is_kept_with_libcurl),
           test(wait_named_by_a_redirect_is_kept), test(permit_is_released_however_the_request_ends),
           test(rejected_request_is_not_sent_and_releases_no_permit), test(waiting_for_a_permit_can_be_cancelled),
           test(server_limits_are_reported_only_if_enabled), test(callers_retries_work_around_or_inside_an_exchange),
           test(limiter_outlives_its_handler), test(reused_handle_waits_at_the_first_host_after_a_redirect))
