/* SPDX-License-Identifier: MIT */
/* test_handler.c - tests of weir_handler, which puts a limiter or a pacer around any HTTP
 * library. */
#include "lib/alloc.h"
#include "lib/rig.h"

#include <weir/handler.h>

#define MS WEIR_MILLISECOND

struct handling {
    weir_clock *clock, *wall;
    weir_handler_options options;
    weir_handler *handler;
    /* Number of on_rejected calls, and the arguments of the last one. */
    int rejections, error;
    weir_decision decision;
    char key[KEY_BYTES];
    bool returned; /* true after weir_handler_begin has returned; on_rejected must come before */
};

static void note_rejection(void *context, const char *key, size_t key_bytes, int error, const weir_decision *decision)
{
    struct handling *handling = context;
    handling->rejections++;
    handling->error = error;
    handling->decision = *decision;
    assert_true(key_bytes < sizeof handling->key);
    if (key_bytes > 0)
        memcpy(handling->key, key, key_bytes);
    handling->key[key_bytes] = '\0';
    assert_false(handling->returned);
}

static struct handling handling_new(void)
{
    struct handling handling = {.clock = fake_clock(), .wall = fake_clock()};
    assert_int_equal(weir_clock_fake_set(handling.wall, 13000 * WEIR_DAY), 0); /* a day in 2005 */
    weir_handler_options_init(&handling.options);
    handling.options.clock = handling.clock;
    handling.options.wall = handling.wall;
    return handling;
}

static void start(struct handling *handling)
{
    handling->options.on_rejected = note_rejection;
    handling->options.rejected_context = handling;
    assert_int_equal(weir_handler_new(&handling->options, &handling->handler), 0);
}

static void end(struct handling *handling)
{
    weir_handler_free(handling->handler);
    weir_limiter_free(handling->options.limiter);
    weir_pacer_free(handling->options.pacer);
    weir_clock_fake_free(handling->clock);
    weir_clock_fake_free(handling->wall);
}

static weir_pacer *pacer_of(struct handling *handling, weir_profile profile)
{
    weir_pacer_options options;
    weir_pace_options pace;
    weir_pacer *pacer;
    weir_pacer_options_init(&options);
    options.clock = handling->clock;
    options.wall = handling->wall;
    options.sweep_every_ns = -1;
    assert_int_equal(weir_pace_options_profile(&pace, profile), 0);
    assert_int_equal(weir_pacer_new(&pace, &options, &pacer), 0);
    return pacer;
}

static weir_exchange *begun(struct handling *handling, const char *key)
{
    weir_exchange *exchange;
    handling->returned = false;
    assert_int_equal(weir_handler_begin(handling->handler, key, strlen(key), NULL, &exchange), 0);
    handling->returned = true;
    return exchange;
}

static int refused(struct handling *handling, const char *key)
{
    weir_exchange *exchange = NULL;
    handling->returned = false;
    int error = weir_handler_begin(handling->handler, key, strlen(key), NULL, &exchange);
    handling->returned = true;
    assert_null(exchange);
    return error;
}

/* Runs one exchange whose response has at most one header field. */
static void exchange_with(struct handling *handling, const char *key, int status, const char *name, const char *value)
{
    weir_exchange *exchange = begun(handling, key);
    if (name != NULL)
        weir_exchange_header(exchange, name, value);
    weir_exchange_end(exchange, status);
    weir_exchange_free(exchange);
}

static weir_pace_entry look(struct handling *handling, const char *key)
{
    weir_pace_entry entry;
    assert_int_equal(weir_pacer_inspect(handling->options.pacer, key, strlen(key), &entry, NULL, NULL), 0);
    return entry;
}

/* ---- acquire and release ---- */

static void a_handler_acquires_before_and_releases_after(void **state)
{
    (void)state;
    struct handling handling = handling_new();
    handling.options.limiter = limiter_of(concurrency(1), handling.clock);
    handling.options.acquire_timeout_ns = 0;
    start(&handling);
    weir_exchange *first = begun(&handling, "a");
    assert_int_equal(refused(&handling, "a"), WEIR_E_TIMEOUT);
    weir_exchange_end(first, 200);
    weir_exchange *second = begun(&handling, "a");
    weir_exchange_end(first, 200); /* does not end the second exchange */
    weir_exchange_free(first);
    assert_int_equal(refused(&handling, "a"), WEIR_E_TIMEOUT);
    weir_exchange_end(second, 0);
    weir_exchange_free(second);
    weir_exchange_free(begun(&handling, "a"));
    end(&handling);
}

static void exchange_freed_before_its_end_releases_its_permit(void **state)
{
    (void)state;
    struct handling handling = handling_new();
    handling.options.limiter = limiter_of(concurrency(1), handling.clock);
    handling.options.acquire_timeout_ns = 0;
    start(&handling);
    for (int i = 0; i < 3; i++)
        weir_exchange_free(begun(&handling, "a"));
    assert_int_equal(handling.rejections, 0);
    end(&handling);
}

static void refused_exchange_releases_no_permit(void **state)
{
    (void)state;
    struct handling handling = handling_new();
    handling.options.limiter = limiter_of(concurrency(2), handling.clock);
    handling.options.acquire_timeout_ns = 0;
    start(&handling);
    weir_exchange *first = begun(&handling, "a"), *second = begun(&handling, "a");
    for (int i = 0; i < 3; i++)
        /* If a refused request released a permit, a later one would be admitted. */
        assert_int_equal(refused(&handling, "a"), WEIR_E_TIMEOUT);
    weir_exchange_free(first);
    weir_exchange_free(second);
    end(&handling);
}

/* S3-16 */
static void handler_options_need_only_a_limiter(void **state)
{
    (void)state;
    weir_handler_options options;
    weir_handler *handler = NULL;
    weir_handler_options_init(&options);
    assert_int_equal(options.acquire_timeout_ns, WEIR_FOREVER);
    assert_true(options.on_rejected == NULL && !options.respect_server_headers);
    assert_int_equal(weir_handler_new(&options, &handler), WEIR_E_INVAL);
    assert_non_null(strstr(weir_error_detail(), "needs one of pacer, limiter"));
    assert_null(handler);
    options.limiter = limiter_of(concurrency(1), weir_clock_monotonic());
    assert_int_equal(weir_handler_new(&options, &handler), 0);
    weir_handler_free(handler);
    weir_limiter_free(options.limiter);
}

static void handler_acquire_times_out_after_its_configured_time(void **state)
{
    (void)state;
    struct handling handling = handling_new();
    handling.options.limiter = limiter_of(bucket(1, 1, WEIR_SECOND), weir_clock_monotonic());
    handling.options.acquire_timeout_ns = 10 * MS;
    start(&handling);
    weir_exchange_free(begun(&handling, "a"));
    assert_int_equal(refused(&handling, "a"), WEIR_E_TIMEOUT);
    end(&handling);
}

static void handler_without_timeout_waits_until_admitted(void **state)
{
    (void)state;
    struct handling handling = handling_new();
    assert_true(handling.options.acquire_timeout_ns == WEIR_FOREVER);
    assert_false(handling.options.respect_server_headers);
    assert_null(handling.options.on_rejected);
    handling.options.limiter = limiter_of(bucket(1, 1, 20 * MS), weir_clock_monotonic());
    start(&handling);
    for (int i = 0; i < 3; i++)
        weir_exchange_free(begun(&handling, "a"));
    assert_int_equal(handling.rejections, 0);
    end(&handling);
}

static void on_rejected_is_called_before_the_error_returns(void **state)
{
    (void)state;
    struct handling handling = handling_new();
    handling.options.limiter = limiter_of(bucket(1, 1, WEIR_SECOND), handling.clock);
    handling.options.acquire_timeout_ns = 0;
    start(&handling);
    weir_exchange_free(begun(&handling, "one"));
    advance(handling.clock, 250 * MS);
    assert_int_equal(refused(&handling, "two"), WEIR_E_TIMEOUT);
    assert_int_equal(handling.rejections, 1);
    assert_int_equal(handling.error, WEIR_E_TIMEOUT);
    assert_string_equal(handling.key, "two");
    assert_int_equal(handling.decision.reason, WEIR_REASON_TOKENS);
    assert_true(handling.decision.wait_ns == 750 * MS);
    end(&handling);
}

static void handler_with_a_key_store_limits_each_key_alone(void **state)
{
    (void)state;
    struct handling handling = handling_new();
    weir_table *table = table_of(concurrency(1), handling.clock, 100);
    weir_key_store repository = weir_table_key_store(table);
    handling.options.repository = &repository;
    handling.options.acquire_timeout_ns = 0;
    start(&handling);
    weir_exchange *a = begun(&handling, "a"), *b = begun(&handling, "b");
    assert_int_equal(refused(&handling, "a"), WEIR_E_TIMEOUT);
    weir_exchange_free(a);
    weir_exchange_free(begun(&handling, "a"));
    assert_int_equal(refused(&handling, "b"), WEIR_E_TIMEOUT);
    weir_exchange_free(b);
    end(&handling);
    weir_table_free(table);
}

static void freeing_a_handler_leaves_the_limiter_alone(void **state)
{
    (void)state;
    struct handling handling = handling_new();
    weir_decision decision;
    handling.options.limiter = limiter_of(concurrency(2), handling.clock);
    start(&handling);
    weir_exchange *exchange = begun(&handling, "a");
    weir_handler_free(handling.handler);
    handling.handler = NULL;
    assert_int_equal(weir_limiter_try(handling.options.limiter, 1, &decision), 0);
    assert_int_equal(decision.verdict, WEIR_GO);
    weir_exchange_free(exchange); /* the open exchange kept the handler alive until here */
    assert_int_equal(weir_limiter_try(handling.options.limiter, 1, &decision), 0);
    assert_int_equal(decision.verdict, WEIR_GO);
    end(&handling);
}

/* ---- composition with a retry loop inside and outside the exchange ---- */

/* Returns 503 twice, then 200, and repeats. */
static int flaky(int *calls)
{
    return ++*calls % 3 == 0 ? 200 : 503;
}

static void handler_composes_with_a_retry_loop_inside_or_outside(void **state)
{
    (void)state;
    struct handling handling = handling_new();
    weir_limiter_stats stats;
    int calls = 0, status = 0;
    handling.options.limiter = limiter_of(bucket(10, 1, WEIR_SECOND), handling.clock);
    start(&handling);
    weir_exchange *exchange = begun(&handling, "a"); /* one permit for all three attempts */
    while (status != 200)
        status = flaky(&calls);
    weir_exchange_end(exchange, status);
    weir_exchange_free(exchange);
    assert_int_equal(weir_limiter_stats_get(handling.options.limiter, &stats), 0);
    assert_int_equal(stats.acquired, 1);
    for (status = 0; status != 200;) { /* one permit per attempt */
        exchange = begun(&handling, "a");
        status = flaky(&calls);
        weir_exchange_end(exchange, status);
        weir_exchange_free(exchange);
    }
    assert_int_equal(weir_limiter_stats_get(handling.options.limiter, &stats), 0);
    assert_int_equal(stats.acquired, 4);
    assert_int_equal(calls, 6);
    end(&handling);
}

/* ---- limits in responses ---- */

static void fields_are_parsed_only_when_enabled_and_present(void **state)
{
    (void)state;
    static const struct {
        bool enabled;
        const char *name, *value;
        bool there;
    } cases[] = {
        {false, "X-RateLimit-Remaining", "0", false},
        {true, "x-RATElimit-remaining", "0", true},
        {true, NULL, NULL, false},
        {true, "Content-Type", "text/html", false},
        {true, "X-RateLimit-Limit", "many", false},
        {true, "Retry-After", "7", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct handling handling = handling_new();
        handling.options.limiter = limiter_of(concurrency(1), handling.clock);
        handling.options.respect_server_headers = cases[i].enabled;
        start(&handling);
        weir_exchange *exchange = begun(&handling, "a");
        if (cases[i].name != NULL)
            weir_exchange_header(exchange, cases[i].name, cases[i].value);
        assert_null(weir_exchange_limits(exchange));
        weir_exchange_end(exchange, 200);
        assert_int_equal(weir_exchange_limits(exchange) != NULL, cases[i].there);
        weir_exchange_free(exchange);
        end(&handling);
    }
}

static void server_limits_can_be_read_from_the_exchange(void **state)
{
    (void)state;
    struct handling handling = handling_new();
    char epoch[32];
    handling.options.limiter = limiter_of(concurrency(1), handling.clock);
    handling.options.respect_server_headers = true;
    start(&handling);
    weir_exchange *exchange = begun(&handling, "a");
    advance(handling.wall, 5 * WEIR_SECOND); /* a reset counts from the response */
    (void)snprintf(epoch, sizeof epoch, "%lld", (long long)(weir_clock_now(handling.wall) / WEIR_SECOND + 30));
    weir_exchange_header(exchange, "X-RateLimit-Limit", "100");
    weir_exchange_header(exchange, "X-RateLimit-Remaining", "0");
    weir_exchange_header(exchange, "X-RateLimit-Reset", epoch);
    weir_exchange_header(exchange, "Retry-After", "12");
    weir_exchange_end(exchange, 429);
    const weir_server_limits *said = weir_exchange_limits(exchange);
    assert_non_null(said);
    assert_true(said->retry_after_ns == 12 * WEIR_SECOND);
    assert_int_equal(said->limit, 100);
    assert_int_equal(said->remaining, 0);
    assert_true(said->reset_ns == 30 * WEIR_SECOND);
    weir_exchange_free(exchange);
    end(&handling);
}

static void last_of_several_response_heads_counts(void **state)
{
    (void)state;
    static const char *const lines[] = {"HTTP/1.1 302 Found\r\n",    "Retry-After: 100\r\n", "\r\n",
                                        "HTTP/1.1 429 Too Many\r\n", "retry-after : 3",      " folded: 9\r\n"};
    struct handling handling = handling_new();
    handling.options.limiter = limiter_of(concurrency(1), handling.clock);
    handling.options.respect_server_headers = true;
    start(&handling);
    weir_exchange *exchange = begun(&handling, "a");
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        weir_exchange_line(exchange, lines[i], strlen(lines[i]));
    weir_exchange_end(exchange, 429);
    assert_true(weir_exchange_limits(exchange)->retry_after_ns == 3 * WEIR_SECOND);
    weir_exchange_free(exchange);
    end(&handling);
}

/* ---- a handler around a pacer ---- */

static void pacer_obeys_retry_after_without_respect_server_headers(void **state)
{
    (void)state;
    struct handling handling = handling_new();
    handling.options.pacer = pacer_of(&handling, WEIR_PROFILE_UNLIMITED);
    handling.options.acquire_timeout_ns = 0;
    start(&handling);
    exchange_with(&handling, "a", 429, "Retry-After", "10");
    advance(handling.clock, 9999 * MS);
    assert_int_equal(refused(&handling, "a"), WEIR_E_TIMEOUT);
    assert_int_equal(handling.decision.reason, WEIR_REASON_RETRY_AFTER);
    exchange_with(&handling, "b", 200, NULL, NULL); /* the wait of "a" does not delay other keys */
    /* the pacer lengthens long waits by up to a tenth */
    advance(handling.clock, WEIR_SECOND + 2 * MS);
    exchange_with(&handling, "a", 200, NULL, NULL);
    end(&handling);
}

static void retry_after_counts_from_the_end_of_the_head(void **state)
{
    (void)state;
    static const char *const lines[] = {"HTTP/1.1 429 Too Many\r\n", "Retry-After: 10\r\n", "\r\n"};
    struct handling handling = handling_new();
    handling.options.pacer = pacer_of(&handling, WEIR_PROFILE_UNLIMITED);
    handling.options.acquire_timeout_ns = 0;
    start(&handling);
    weir_exchange *exchange = begun(&handling, "a");
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        weir_exchange_line(exchange, lines[i], strlen(lines[i]));
    assert_int_equal(refused(&handling, "a"), WEIR_E_TIMEOUT); /* the body has not arrived yet */
    assert_int_equal(handling.decision.reason, WEIR_REASON_RETRY_AFTER);
    advance(handling.clock, 9 * WEIR_SECOND);
    weir_exchange_end(exchange, 429);
    weir_exchange_free(exchange);
    assert_int_equal(refused(&handling, "a"), WEIR_E_TIMEOUT);
    /* at most a tenth longer than 10 s; the end of the body does not restart the wait */
    advance(handling.clock, 2100 * MS);
    exchange_with(&handling, "a", 200, NULL, NULL);
    end(&handling);
}

static void exhausted_quota_pauses_the_key_until_its_reset(void **state)
{
    (void)state;
    struct handling handling = handling_new();
    handling.options.pacer = pacer_of(&handling, WEIR_PROFILE_UNLIMITED);
    handling.options.acquire_timeout_ns = 0;
    start(&handling);
    weir_exchange *exchange = begun(&handling, "a");
    weir_exchange_header(exchange, "RateLimit-Remaining", "0");
    weir_exchange_header(exchange, "RateLimit-Reset", "4");
    weir_exchange_end(exchange, 200);
    weir_exchange_free(exchange);
    assert_int_equal(refused(&handling, "a"), WEIR_E_TIMEOUT);
    assert_int_equal(handling.decision.reason, WEIR_REASON_RATE_LIMIT_RESET);
    advance(handling.clock, 4400 * MS);
    exchange_with(&handling, "a", 200, NULL, NULL);
    end(&handling);
}

static void the_pacer_learns_the_real_status_and_latency(void **state)
{
    (void)state;
    struct handling handling = handling_new();
    handling.options.pacer = pacer_of(&handling, WEIR_PROFILE_UNLIMITED);
    handling.options.respect_server_headers = true;
    start(&handling);
    weir_exchange *exchange = begun(&handling, "a");
    advance(handling.clock, 70 * MS);
    /* The latency ends at the head; the time of the body does not count. */
    weir_exchange_line(exchange, "HTTP/1.1 500 Oh\r\n", 17);
    advance(handling.clock, 10 * WEIR_SECOND);
    weir_exchange_end(exchange, 500);
    weir_exchange_free(exchange);
    weir_pace_entry entry = look(&handling, "a");
    assert_int_equal(entry.in_flight, 0);
    assert_true(entry.error_rate == 1.0);
    assert_true(entry.p95_latency_ns >= 69 * MS && entry.p95_latency_ns <= 80 * MS);
    end(&handling);
}

static void an_open_breaker_is_a_rejection(void **state)
{
    (void)state;
    struct handling handling = handling_new();
    handling.options.pacer = pacer_of(&handling, WEIR_PROFILE_AIMD);
    start(&handling);
    for (int i = 0; i < 5; i++) {
        exchange_with(&handling, "a", 500, NULL, NULL);
        advance(handling.clock, 10 * WEIR_SECOND);
    }
    assert_int_equal(refused(&handling, "a"), WEIR_E_CIRCUIT);
    assert_int_equal(handling.error, WEIR_E_CIRCUIT);
    assert_int_equal(handling.decision.reason, WEIR_REASON_BREAKER);
    end(&handling);
}

static void a_permit_withdrawn_before_sending_is_not_sent(void **state)
{
    (void)state;
    struct handling handling = handling_new();
    weir_outcome gone = {.size = sizeof gone, .status = 429, .has_retry_after = true, .retry_after_ns = WEIR_SECOND};
    handling.options.pacer = pacer_of(&handling, WEIR_PROFILE_STRICT);
    handling.options.acquire_timeout_ns = 0;
    handling.options.reports_sent = true;
    start(&handling);
    weir_exchange *exchange = begun(&handling, "a");
    assert_int_equal(weir_pacer_tell(handling.options.pacer, "a", 1, &gone), 0);
    assert_int_equal(weir_exchange_sent(exchange), WEIR_E_WITHDRAWN);
    weir_exchange_end(exchange, 200);
    assert_null(weir_exchange_limits(exchange));
    weir_exchange_free(exchange);
    assert_int_equal(look(&handling, "a").starts, 0);
    advance(handling.clock, 1001 * MS);
    exchange = begun(&handling, "a");
    assert_int_equal(weir_exchange_sent(exchange), 0);
    assert_int_equal(weir_exchange_sent(exchange), 0);
    assert_int_equal(look(&handling, "a").starts, 1);
    weir_exchange_end(exchange, 200);
    weir_exchange_free(exchange);
    end(&handling);
}

/* ---- invalid arguments and allocation failures ---- */

static void invalid_handler_options_are_refused(void **state)
{
    (void)state;
    struct handling handling = handling_new();
    weir_handler *handler;
    weir_handler_options options = handling.options;
    weir_key_store bare = {.size = sizeof bare};
    handling.options.limiter = limiter_of(concurrency(1), handling.clock);
    assert_int_equal(weir_handler_new(NULL, &handler), WEIR_E_INVAL);
    /* nothing to acquire from */
    assert_int_equal(weir_handler_new(&options, &handler), WEIR_E_INVAL);
    options.repository = &bare;
    assert_int_equal(weir_handler_new(&options, &handler), WEIR_E_INVAL);
    options.limiter = handling.options.limiter;
    /* both a limiter and a key store */
    assert_int_equal(weir_handler_new(&options, &handler), WEIR_E_INVAL);
    options.repository = NULL;
    assert_int_equal(weir_handler_new(&options, NULL), WEIR_E_INVAL);
    options.reports_sent = true;
    assert_int_equal(weir_handler_new(&options, &handler), WEIR_E_INVAL);
    options.reports_sent = false;
    options.acquire_timeout_ns = -1;
    assert_int_equal(weir_handler_new(&options, &handler), WEIR_E_INVAL);
    options.acquire_timeout_ns = 0;
    options.size--;
    assert_int_equal(weir_handler_new(&options, &handler), WEIR_E_INVAL);
    end(&handling);
}

static void invalid_key_is_refused_without_calling_on_rejected(void **state)
{
    (void)state;
    static char huge[WEIR_KEY_MAX + 1];
    struct handling handling = handling_new();
    weir_exchange *exchange;
    handling.options.pacer = pacer_of(&handling, WEIR_PROFILE_UNLIMITED);
    start(&handling);
    assert_int_equal(weir_handler_begin(handling.handler, NULL, 0, NULL, &exchange), WEIR_E_INVAL);
    assert_int_equal(weir_handler_begin(handling.handler, "", 0, NULL, &exchange), WEIR_E_INVAL);
    assert_int_equal(weir_handler_begin(handling.handler, huge, sizeof huge, NULL, &exchange), WEIR_E_INVAL);
    assert_int_equal(weir_handler_begin(handling.handler, "a", 1, NULL, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_handler_begin(NULL, "a", 1, NULL, &exchange), WEIR_E_INVAL);
    assert_int_equal(weir_exchange_sent(NULL), WEIR_E_INVAL);
    weir_exchange_header(NULL, "a", "b");
    weir_exchange_line(NULL, "a: b", 4);
    weir_exchange_end(NULL, 200);
    assert_null(weir_exchange_limits(NULL));
    weir_exchange_free(NULL);
    weir_handler_free(NULL);
    assert_int_equal(handling.rejections, 0);
    end(&handling);
}

static void handler_allocation_failure_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    test_allocator allocator;
    struct handling handling = handling_new();
    weir_exchange *exchange;
    test_allocator_init(&allocator);
    handling.options.limiter = limiter_of(concurrency(1), handling.clock);
    handling.options.allocator = &allocator.allocator;
    allocator.fail_at = 1;
    assert_int_equal(weir_handler_new(&handling.options, &handling.handler), WEIR_E_NOMEM);
    start(&handling);
    allocator.fail_at = 1;
    assert_int_equal(weir_handler_begin(handling.handler, NULL, 0, NULL, &exchange), WEIR_E_NOMEM);
    /* no permit was lost */
    assert_int_equal(weir_handler_begin(handling.handler, NULL, 0, NULL, &exchange), 0);
    weir_exchange_free(exchange);
    end(&handling);
    assert_int_equal(allocator.live, 0);
}

WEIR_TESTS(test(a_handler_acquires_before_and_releases_after), test(exchange_freed_before_its_end_releases_its_permit),
           test(refused_exchange_releases_no_permit), test(handler_options_need_only_a_limiter),
           test(handler_acquire_times_out_after_its_configured_time),
           test(handler_without_timeout_waits_until_admitted), test(on_rejected_is_called_before_the_error_returns),
           test(handler_with_a_key_store_limits_each_key_alone), test(freeing_a_handler_leaves_the_limiter_alone),
           test(handler_composes_with_a_retry_loop_inside_or_outside),
           test(fields_are_parsed_only_when_enabled_and_present), test(server_limits_can_be_read_from_the_exchange),
           test(last_of_several_response_heads_counts), test(pacer_obeys_retry_after_without_respect_server_headers),
           test(retry_after_counts_from_the_end_of_the_head), test(exhausted_quota_pauses_the_key_until_its_reset),
           test(the_pacer_learns_the_real_status_and_latency), test(an_open_breaker_is_a_rejection),
           test(a_permit_withdrawn_before_sending_is_not_sent), test(invalid_handler_options_are_refused),
           test(invalid_key_is_refused_without_calling_on_rejected),
           test(handler_allocation_failure_is_an_error_and_leaks_nothing))
