/* SPDX-License-Identifier: MIT */
/* test_client_memory.c - memory is bounded whatever servers send, and the client survives lack of
 * memory (V6, L1, L3). */
#include "rig.h"

#include "lib/alloc.h"
#include "lib/hostile.h"
#include "lib/rig.h"

#define KB ((size_t)1 << 10)
#define MB ((size_t)1 << 20)

/* ---- V6: bounded memory ---- */

#define AT_ONCE 20

static char block[64 << 10];

/* Each body has 64 MB, of which the client accepts one. Half of the responses announce the
 * length. */
static void bodies_take_no_more_memory_than_their_limit(void **state)
{
    (void)state;
    const struct hostile_step endless[] = {READ,
                                           SAY("HTTP/1.1 200 OK\r\n\r\n"),
                                           {.what = HOSTILE_SEND, .text = block, .bytes = sizeof block, .times = 1024},
                                           END};
    const struct hostile_step announced[] = {
        READ,
        SAY("HTTP/1.1 200 OK\r\nContent-Length: 67108864\r\n\r\n"),
        {.what = HOSTILE_SEND, .text = block, .bytes = sizeof block, .times = 1024},
        END};
    struct client_fixture rig;
    struct hostile *server = hostile_new();
    const int ports[] = {hostile_listen(server, &(struct hostile_case){.steps = {endless}}),
                         hostile_listen(server, &(struct hostile_case){.steps = {announced}})};
    struct crowd crowd = {.rig = &rig};
    memset(block, 'x', sizeof block);
    rig_init(&rig);
    rig.options.max_body_bytes = MB;
    rig_start(&rig);
    rig_memory_mark();
    for (int i = 0; i < AT_ONCE; i++)
        crowd_ask(&crowd, url_at(ports[i % 2], "/"), NULL);
    crowd_await(&crowd);
    assert_int_equal(crowd.statuses[200], AT_ONCE);
    /* Each fetch holds a megabyte, a second one while the buffer grows, and the buffers of
     * libcurl. */
    assert_true(rig_memory_grown() < (long)(AT_ONCE * 3 * MB));
    rig_tear_down(&rig);
    hostile_free(server);
}

static struct origin_reply say_hello(void *context, const struct origin_request *request)
{
    (void)context, (void)request;
    return (struct origin_reply){.status = 200};
}

/* A waiting fetch costs its struct and its URL, and frees both. */
static void waiting_fetches_take_little_memory_and_free_it(void **state)
{
    (void)state;
    enum {
        WAITING = 20000
    };
    struct client_fixture rig;
    test_allocator allocator;
    struct origin *origin = origin_new(say_hello, NULL, NULL);
    struct crowd crowd = {.rig = &rig};
    test_allocator_init(&allocator);
    rig_init(&rig);
    rig.options.allocator = &allocator.allocator;
    rig.pace.min_interval_ns = WEIR_MINUTE;
    rig_start(&rig);
    assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/")), 200);
    for (int i = 0; i < WAITING; i++)
        crowd_ask(&crowd, url_at(origin_port(origin), "/waiting"), NULL);
    assert_true(allocator.live_bytes < (long)(WAITING * KB));
    rig_tear_down(&rig);
    assert_int_equal(crowd.failures[WEIR_FAILURE_CANCELLED], WAITING);
    assert_int_equal(allocator.live, 0);
    origin_free(origin);
}

/* ---- L1: failing allocations ---- */

/* Uses every part of the client: robots.txt, a redirect, a failure and a quota. */
static struct origin_reply serve_all(void *context, const struct origin_request *request)
{
    (void)context;
    if (strcmp(request->path, "/robots.txt") == 0)
        return (struct origin_reply){.body = "User-agent: *\nDisallow: /no\n", .fields = "ETag: \"r\"\r\n"};
    if (strcmp(request->path, "/old") == 0)
        return (struct origin_reply){.status = 301, .fields = "Location: /new?a=b\r\n"};
    if (request->number % 2 == 0)
        return (struct origin_reply){.status = 500};
    return (struct origin_reply){.fields = "RateLimit-Remaining: 10\r\n"};
}

/* Runs one client in which the n-th allocation fails. Returns true if none failed. */
static bool live_with_want(struct origin *origin, long n, bool for_ever)
{
    static const char *const headers[] = {"X-Some: thing", NULL};
    test_allocator allocator;
    struct client_fixture rig;
    weir_response *response;
    weir_fetch_options options;
    bool went_well = false;
    test_allocator_init(&allocator);
    rig_init(&rig);
    rig.options.allocator = &allocator.allocator;
    rig.options.robots = WEIR_ROBOTS_ALLOW;
    rig.options.headers = headers;
    rig.options.deadline_ns = 20 * WEIR_SECOND;
    rig.pace.retry.base_ns = MS;
    weir_fetch_options_init(&options);
    options.headers = headers;
    options.etag = "\"e\"";
    allocator.fail_for_ever = for_ever;
    allocator.fail_at = n;
    if (weir_client_new(&rig.options, &rig.client) == 0) {
        int error = weir_client_fetch(rig.client, url_at(origin_port(origin), "/old"), &options, NULL, &response);
        assert_true(error == 0 || error == WEIR_E_NOMEM);
        if (error == 0) {
            went_well = response->status == 200 && response->failure == WEIR_FAILURE_NONE && allocator.fail_at > 0;
            weir_response_free(response);
        }
        allocator.fail_at = 0;
        error = weir_client_fetch(rig.client, url_at(origin_port(origin), "/new"), NULL, NULL, &response);
        assert_int_equal(error, 0); /* the client is still usable */
        assert_int_equal(response->status, 200);
        weir_response_free(response);
        weir_client_free(rig.client);
    }
    for (int i = 0; i < 1000 && allocator.live > 0; i++)
        sleep_ns(MS); /* resolver threads free their memory when they end */
    assert_int_equal(allocator.live, 0);
    return went_well;
}

static void client_stays_usable_whichever_allocation_fails(void **state)
{
    (void)state;
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        bool through = false;
        for (long n = 1; !through && n < 600; n++) {
            struct origin *origin = origin_new(serve_all, NULL, NULL);
            through = live_with_want(origin, n, for_ever != 0);
            origin_free(origin);
        }
        assert_true(through);
    }
}

/* Replies, and lets the allocations of the client fail for the first response. */
static struct origin_reply answer_without_memory(void *context, const struct origin_request *request)
{
    test_allocator *allocator = context;
    allocator->fail_at = request->number == 0;
    return (struct origin_reply){.status = 200};
}

static void lack_of_memory_does_not_send_a_post_twice(void **state)
{
    (void)state;
    test_allocator allocator;
    struct client_fixture rig;
    weir_response *response;
    weir_fetch_options options;
    struct origin *origin = origin_new(answer_without_memory, &allocator, NULL);
    test_allocator_init(&allocator);
    rig_init(&rig);
    rig.options.allocator = &allocator.allocator;
    rig_start(&rig);
    weir_fetch_options_init(&options);
    options.method = "POST";
    options.body = "x";
    options.body_bytes = 1;
    assert_int_equal(weir_client_fetch(rig.client, url_at(origin_port(origin), "/"), &options, NULL, &response), 0);
    assert_int_equal(response->failure, WEIR_FAILURE_INTERNAL);
    assert_int_equal(origin_requests(origin), 1);
    weir_response_free(response);
    rig_tear_down(&rig);
    origin_free(origin);
}

/* ---- L3: small stacks ---- */

struct small {
    struct client_fixture *rig;
    int port, status, error;
};

static void *get_with_a_small_stack(void *context)
{
    struct small *small = context;
    weir_response *response;
    char url[64];
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/old", small->port);
    small->error = weir_client_fetch(small->rig->client, url, NULL, NULL, &response);
    if (small->error == 0) {
        small->status = response->status;
        weir_response_free(response);
    }
    return NULL;
}

static void stack_of_64_kilobytes_is_enough_for_a_fetch(void **state)
{
    (void)state;
    struct client_fixture rig;
    pthread_t thread;
    pthread_attr_t attributes;
    if ((size_t)PTHREAD_STACK_MIN > 64 * KB)
        SKIP("this machine's threads need larger stacks");
    struct origin *origin = origin_new(serve_all, NULL, NULL);
    rig_init(&rig);
    rig.options.robots = WEIR_ROBOTS_RFC9309;
    rig.pace.retry.base_ns = MS;
    rig_start(&rig);
    struct small small = {.rig = &rig, .port = origin_port(origin)};
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, SANITIZED ? MB : 64 * KB), 0);
    assert_int_equal(pthread_create(&thread, &attributes, get_with_a_small_stack, &small), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(small.error, 0);
    assert_int_equal(small.status, 200);
    (void)pthread_attr_destroy(&attributes);
    rig_tear_down(&rig);
    origin_free(origin);
}

/* Without a limit an endless body would be kept in memory. */
static void body_limits_above_the_maximum_are_refused(void **state)
{
    struct client_fixture rig;
    weir_client *none;
    weir_response *response;
    weir_fetch_options options;
    struct origin *origin = origin_new(serve_all, NULL, NULL);
    (void)state;
    rig_set_up(&rig);
    weir_fetch_options_init(&options);
    options.max_body_bytes = UINT64_MAX;
    assert_int_equal(weir_client_fetch(rig.client, url_at(origin_port(origin), "/"), &options, NULL, &response),
                     WEIR_E_INVAL);
    assert_non_null(strstr(weir_error_detail(), "max_body_bytes must be 1 to 2^40"));
    rig.options.max_body_bytes = (UINT64_C(1) << 40) + 1;
    assert_int_equal(weir_client_new(&rig.options, &none), WEIR_E_INVAL);
    assert_non_null(strstr(weir_error_detail(), "max_body_bytes must be 1 to 2^40"));
    options.max_body_bytes = UINT64_C(1) << 40;
    response = get_with(&rig, url_at(origin_port(origin), "/"), &options);
    assert_int_equal(response->status, 200);
    weir_response_free(response);
    rig_tear_down(&rig);
    origin_free(origin);
}

WEIR_TESTS(test(body_limits_above_the_maximum_are_refused), test(bodies_take_no_more_memory_than_their_limit),
           test(waiting_fetches_take_little_memory_and_free_it), test(client_stays_usable_whichever_allocation_fails),
           test(lack_of_memory_does_not_send_a_post_twice), test(stack_of_64_kilobytes_is_enough_for_a_fetch))
