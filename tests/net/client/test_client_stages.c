/* SPDX-License-Identifier: MIT */
/* test_client_stages.c - a fetch can be ended at every stage: by its deadline, its caller or
 * closing the client (U13, S0-44). */
#include "rig.h"

#include "http/client/client_internal.h"
#include "lib/hostile.h"

/* A fetch that does not end by itself within an hour. */
struct stuck {
    struct client_fixture rig;
    struct hostile *server;
    struct origin *origin;
    char url[200];
    struct crowd ahead; /* fetches queued before it */
};

static void point_to(struct stuck *stuck, int port, const char *path)
{
    (void)snprintf(stuck->url, sizeof stuck->url, "http://127.0.0.1:%d%s", port, path);
}

static void stick_to(struct stuck *stuck, const struct hostile_step *steps)
{
    point_to(stuck, hostile_listen(stuck->server, &(struct hostile_case){.steps = {steps}}), "/");
    rig_start(&stuck->rig);
}

/* ---- stages ---- */

static atomic_bool may_answer;
static atomic_int lookups;

static void look_up_slowly(void *context, const char *name, struct wr_dns_answer *ret_answer)
{
    (void)context, (void)name;
    atomic_fetch_add(&lookups, 1);
    while (!may_answer)
        sleep_ns(5 * MS);
    ret_answer->kind = WR_DNS_FAILED;
    atomic_fetch_sub(&lookups, 1);
}

static void in_its_name(struct stuck *stuck)
{
    static const struct wr_client_test_hooks slow = {.lookup = look_up_slowly};
    const struct wr_client_test_hooks *before = wr_client_test_hooks;
    may_answer = false;
    (void)snprintf(stuck->url, sizeof stuck->url, "http://slow.example/");
    wr_client_test_hooks = &slow;
    rig_start(&stuck->rig);
    wr_client_test_hooks = before;
}

static void in_connecting(struct stuck *stuck)
{
    point_to(stuck, hostile_black_hole(stuck->server, "127.0.0.1", 0), "/");
    rig_start(&stuck->rig);
}

static void in_silence(struct stuck *stuck)
{
    static const struct hostile_step steps[] = {READ, HOLD, END};
    stick_to(stuck, steps);
}

static void in_a_head_that_drips(struct stuck *stuck)
{
    static const struct hostile_step steps[] = {READ, SAY("HTTP/1.1 200 OK\r\nX: "),
                                                REPEAT("x", HOSTILE_FOREVER, 10 * MS), END};
    stick_to(stuck, steps);
}

static void in_a_body_that_drips(struct stuck *stuck)
{
    static const struct hostile_step steps[] = {READ, SAY("HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n"),
                                                REPEAT("x", HOSTILE_FOREVER, 10 * MS), END};
    stick_to(stuck, steps);
}

static void in_robots(struct stuck *stuck)
{
    static const struct hostile_step steps[] = {READ, HOLD, END};
    stuck->rig.options.robots = WEIR_ROBOTS_RFC9309;
    stick_to(stuck, steps);
}

static struct origin_reply by_path(void *context, const struct origin_request *request)
{
    (void)context;
    int status = (int)strtol(request->path + 1, NULL, 10);
    return (struct origin_reply){.status = status,
                                 .fields = status == 429 ? "Retry-After: 1200\r\n" : NULL,
                                 .delay_ns = strcmp(request->path, "/slow") == 0 ? WEIR_HOUR : 0};
}

static int start_with_origin(struct stuck *stuck)
{
    stuck->origin = origin_new(by_path, NULL, NULL);
    rig_start(&stuck->rig);
    return origin_port(stuck->origin);
}

static void fetch_first(struct stuck *stuck, const char *path)
{
    weir_fetch_options once;
    weir_fetch_options_init(&once);
    once.attempts = 1;
    weir_response_free(get_with(&stuck->rig, url_at(origin_port(stuck->origin), path), &once));
}

static void at_the_gate(struct stuck *stuck)
{
    stuck->rig.pace.min_interval_ns = WEIR_HOUR;
    point_to(stuck, start_with_origin(stuck), "/200");
    fetch_first(stuck, "/200");
}

static void in_a_window(struct stuck *stuck)
{
    point_to(stuck, start_with_origin(stuck), "/200");
    fetch_first(stuck, "/429");
}

static void at_an_open_breaker(struct stuck *stuck)
{
    assert_int_equal(weir_pace_options_profile(&stuck->rig.pace, WEIR_PROFILE_AIMD), 0);
    stuck->rig.pace.consecutive_failures = 1;
    stuck->rig.pace.open_ns = WEIR_HOUR;
    point_to(stuck, start_with_origin(stuck), "/200");
    fetch_first(stuck, "/500");
}

static void before_a_slot(struct stuck *stuck)
{
    stuck->rig.options.concurrency = 1;
    point_to(stuck, start_with_origin(stuck), "/200");
    crowd_ask(&stuck->ahead, url_at(origin_port(stuck->origin), "/slow"), NULL);
    while (origin_requests(stuck->origin) == 0)
        sleep_ns(MS);
}

static void before_a_retry(struct stuck *stuck)
{
    point_to(stuck, start_with_origin(stuck), "/429");
}

static const struct stage {
    const char *name;
    void (*get_stuck)(struct stuck *stuck);
    weir_reason reason; /* reason of the wait */
    /* true: the deadline would pass before the retry, so the response is delivered at once */
    bool is_delivered_early;
} stages[] = {
    {"its name", in_its_name, WEIR_REASON_NONE, false},
    {"connecting", in_connecting, WEIR_REASON_NONE, false},
    {"silence", in_silence, WEIR_REASON_NONE, false},
    {"a head that drips", in_a_head_that_drips, WEIR_REASON_NONE, false},
    {"a body that drips", in_a_body_that_drips, WEIR_REASON_NONE, false},
    {"robots.txt", in_robots, WEIR_REASON_ROBOTS, false},
    {"the gate", at_the_gate, WEIR_REASON_PACE, false},
    {"a window", in_a_window, WEIR_REASON_RETRY_AFTER, false},
    {"an open breaker", at_an_open_breaker, WEIR_REASON_BREAKER, false},
    {"a slot", before_a_slot, WEIR_REASON_GLOBAL, false},
    {"a retry", before_a_retry, WEIR_REASON_RETRY_AFTER, true},
};
#define STAGES (sizeof stages / sizeof stages[0])

static void set_up(struct stuck *stuck, const struct stage *stage)
{
    memset(stuck, 0, sizeof *stuck);
    stuck->ahead.rig = &stuck->rig;
    stuck->server = hostile_new();
    rig_init(&stuck->rig);
    stuck->rig.options.connect_timeout_ns = WEIR_HOUR;
    stuck->rig.options.first_byte_timeout_ns = WEIR_HOUR;
    stuck->rig.options.total_timeout_ns = WEIR_HOUR;
    stuck->rig.options.deadline_ns = WEIR_HOUR;
    stage->get_stuck(stuck);
}

static void tear_down(struct stuck *stuck)
{
    rig_tear_down(&stuck->rig);
    may_answer = true;
    while (lookups > 0)
        sleep_ns(MS);
    if (stuck->origin != NULL)
        origin_free(stuck->origin);
    hostile_free(stuck->server);
}

/* A stage without a wait may still report the global limit on a busy machine. */
static void assert_reason(const weir_response *response, const struct stage *stage)
{
    bool is_idle = stage->reason == WEIR_REASON_NONE && response->waited_for == WEIR_REASON_GLOBAL;
    if (response->waited_for != stage->reason && !is_idle)
        fail_msg("%s: held by %s", stage->name, weir_reason_name(response->waited_for));
}

/* ---- what ends the fetch ---- */

static void deadline_applies_at_every_stage(void **state)
{
    (void)state;
    for (size_t i = 0; i < STAGES; i++) {
        struct stuck stuck;
        weir_fetch_options options;
        set_up(&stuck, &stages[i]);
        weir_fetch_options_init(&options);
        options.deadline_ns = 300 * MS;
        int64_t began_at = monotonic();
        weir_response *response = get_with(&stuck.rig, stuck.url, &options);
        int64_t took_ns = monotonic() - began_at;
        if (response->failure != (stages[i].is_delivered_early ? WEIR_FAILURE_NONE : WEIR_FAILURE_DEADLINE))
            fail_msg("%s: %s", stages[i].name, weir_failure_name(response->failure));
        assert_true(took_ns >= 300 * MS || stages[i].is_delivered_early);
        if (!stages[i].is_delivered_early)
            assert_reason(response, &stages[i]);
        weir_response_free(response);
        tear_down(&stuck);
    }
}

static void fetch_can_be_cancelled_at_every_stage(void **state)
{
    (void)state;
    for (size_t i = 0; i < STAGES; i++) {
        struct stuck stuck;
        struct crowd crowd = {.rig = &stuck.rig, .asked = 1};
        weir_fetch *fetch;
        set_up(&stuck, &stages[i]);
        assert_int_equal(weir_client_fetch_async(stuck.rig.client, stuck.url, NULL, crowd_count, &crowd, &fetch), 0);
        sleep_ns(100 * MS); /* reaches its stage */
        assert_int_equal(crowd.finished, 0);
        weir_fetch_cancel(fetch);
        crowd_await(&crowd);
        if (crowd.failures[WEIR_FAILURE_CANCELLED] != 1)
            fail_msg("%s: not cancelled", stages[i].name);
        weir_fetch_free(fetch);
        tear_down(&stuck);
    }
}

static void keep_response(void *context, weir_response *response)
{
    atomic_store((_Atomic(weir_response *) *)context, response);
}

/* A cancelled fetch does not report waiting time that has not passed. */
static void cancelled_fetch_reports_no_more_waiting_than_it_took(void **state)
{
    (void)state;
    for (size_t i = 0; i < STAGES; i++) {
        struct stuck stuck;
        _Atomic(weir_response *) place = NULL;
        weir_fetch *fetch;
        set_up(&stuck, &stages[i]);
        assert_int_equal(weir_client_fetch_async(stuck.rig.client, stuck.url, NULL, keep_response, &place, &fetch), 0);
        sleep_ns(400 * MS); /* reaches its stage */
        weir_fetch_cancel(fetch);
        weir_fetch_free(fetch);
        while (place == NULL)
            sleep_ns(MS);
        weir_response *response = place;
        assert_true(response->waited_ns <= response->total_ns);
        assert_reason(response, &stages[i]);
        weir_response_free(response);
        tear_down(&stuck);
    }
}

struct getter {
    struct stuck *stuck;
    weir_cancel *cancel;
    weir_failure failure;
};

static void *get_in_thread(void *context)
{
    struct getter *getter = context;
    weir_response *response;
    if (weir_client_fetch(getter->stuck->rig.client, getter->stuck->url, NULL, getter->cancel, &response) == 0) {
        getter->failure = response->failure;
        weir_response_free(response);
    }
    return NULL;
}

static void blocking_get_can_be_cancelled_at_every_stage(void **state)
{
    (void)state;
    for (size_t i = 0; i < STAGES; i++) {
        struct stuck stuck;
        struct getter getter = {.stuck = &stuck};
        pthread_t thread;
        set_up(&stuck, &stages[i]);
        assert_int_equal(weir_cancel_new(NULL, &getter.cancel), 0);
        assert_int_equal(pthread_create(&thread, NULL, get_in_thread, &getter), 0);
        if (i % 2 == 0) /* in the other cases the call may not have started yet */
            sleep_ns(50 * MS);
        weir_cancel_fire(getter.cancel);
        assert_int_equal(pthread_join(thread, NULL), 0);
        if (getter.failure != WEIR_FAILURE_CANCELLED)
            fail_msg("%s: not cancelled", stages[i].name);
        weir_cancel_free(getter.cancel);
        tear_down(&stuck);
    }
}

/* S0-44: no retry runs after the client is closed. */
static void closing_ends_stuck_fetches_at_every_stage(void **state)
{
    (void)state;
    for (size_t i = 0; i < STAGES; i++) {
        struct stuck stuck;
        struct crowd crowd = {.rig = &stuck.rig};
        set_up(&stuck, &stages[i]);
        for (int k = 0; k < 3; k++)
            crowd_ask(&crowd, stuck.url, NULL);
        sleep_ns(100 * MS); /* reach their stage */
        weir_client_close(stuck.rig.client);
        if (crowd.failures[WEIR_FAILURE_CANCELLED] != 3)
            fail_msg("%s: %d of 3 cancelled", stages[i].name, crowd.failures[WEIR_FAILURE_CANCELLED]);
        assert_int_equal(crowd.finished, 3);
        int sent = stuck.origin != NULL ? origin_requests(stuck.origin) : 0;
        sleep_ns(100 * MS);
        assert_int_equal(stuck.origin != NULL ? origin_requests(stuck.origin) : 0, sent);
        tear_down(&stuck);
    }
}

/* ---- fetches that the client's thread has not read yet ---- */

static atomic_bool is_held, may_go, is_read, may_end, has_posted;

static void await(const atomic_bool *event)
{
    for (int64_t until = monotonic() + WEIR_MINUTE; !atomic_load(event); sleep_ns(MS))
        assert_true(monotonic() < until);
}

static void block_the_thread(void *context, weir_response *response)
{
    crowd_count(context, response);
    is_held = true;
    while (!may_go)
        sleep_ns(MS);
}

/* Uses up the time slice of the thread: fetches read after this one are left for the next slice. */
static void use_up_the_time_slice(void *context, weir_response *response)
{
    crowd_count(context, response);
    is_read = true;
    while (!may_end)
        sleep_ns(MS);
    sleep_ns(20 * MS);
}

static void post_until_closed(void *context, weir_response *response)
{
    struct crowd *crowd = context;
    int error;
    do {
        error = weir_client_fetch_async(crowd->rig->client, "http://127.0.0.1:1/", NULL, crowd_count, crowd, NULL);
        crowd->asked += error == 0;
        has_posted = true;
    } while (error != WEIR_E_CLOSED);
    may_end = true;
    use_up_the_time_slice(context, response);
}

static void ask_and_cancel(struct crowd *crowd, weir_fetched *fetched)
{
    weir_fetch *fetch;
    assert_int_equal(weir_client_fetch_async(crowd->rig->client, "http://127.0.0.1:1/", NULL, fetched, crowd, &fetch),
                     0);
    crowd->asked++;
    weir_fetch_cancel(fetch);
    weir_fetch_free(fetch);
}

/* Makes the thread read two fetches at once; the first has this callback. */
static void start_with_two_unread_fetches(struct crowd *crowd, weir_fetched *fetched)
{
    is_held = may_go = is_read = may_end = has_posted = false;
    rig_init(crowd->rig);
    crowd->rig->options.queue_max = 4;
    rig_start(crowd->rig);
    ask_and_cancel(crowd, block_the_thread);
    await(&is_held);
    ask_and_cancel(crowd, fetched);
    ask_and_cancel(crowd, crowd_count);
    may_go = true;
}

/* The thread has unread fetches when this one is posted: no further call wakes it. */
static void fetch_posted_while_others_are_unread_is_started(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct crowd crowd = {.rig = &rig};
    weir_fetch_options options;
    start_with_two_unread_fetches(&crowd, use_up_the_time_slice);
    await(&is_read);
    weir_fetch_options_init(&options);
    options.attempts = 1;
    crowd_ask(&crowd, "http://127.0.0.1:1/", &options);
    may_end = true;
    crowd_await(&crowd);
    assert_int_equal(crowd.failures[WEIR_FAILURE_CONNECT], 1);
    rig_tear_down(&rig);
}

/* S0-44: each callback is called, even if the thread was busy with earlier fetches. */
static void fetches_queued_behind_unread_ones_end_when_the_client_closes(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct crowd crowd = {.rig = &rig};
    start_with_two_unread_fetches(&crowd, post_until_closed);
    await(&has_posted);
    weir_client_close(rig.client);
    assert_true(crowd.asked > 3);
    assert_int_equal(crowd.finished, crowd.asked);
    assert_int_equal(crowd.failures[WEIR_FAILURE_CANCELLED], crowd.asked);
    rig_tear_down(&rig);
}

/* S0-47: a fetch refused by the breaker may be retried later; a cancelled one may not. */
static void open_circuit_is_not_a_cancellation(void **state)
{
    (void)state;
    struct stuck stuck;
    struct crowd crowd = {.rig = &stuck.rig};
    memset(&stuck, 0, sizeof stuck);
    stuck.server = hostile_new();
    rig_init(&stuck.rig);
    stuck.rig.options.circuit_fails = true;
    at_an_open_breaker(&stuck);
    weir_response *response = get(&stuck.rig, stuck.url);
    assert_int_equal(response->failure, WEIR_FAILURE_CIRCUIT);
    assert_string_equal(weir_failure_name(response->failure), "circuit");
    assert_int_equal(response->attempts, 0);
    weir_response_free(response);
    crowd_ask(&crowd, stuck.url, NULL); /* a caller may retry in the callback; this test counts */
    crowd_await(&crowd);
    assert_int_equal(crowd.failures[WEIR_FAILURE_CIRCUIT], 1);
    assert_int_equal(crowd.failures[WEIR_FAILURE_CANCELLED], 0);
    tear_down(&stuck);
}

/* A retry waits for its own backoff, or for the gate if that wait is longer. */
static void retry_reports_whether_backoff_or_gate_delayed_it(void **state)
{
    (void)state;
    static const struct {
        int64_t interval_ns, base_ns;
        weir_reason reason;
    } cases[] = {{0, 2 * WEIR_SECOND, WEIR_REASON_RETRY}, {WEIR_SECOND, MS, WEIR_REASON_PACE}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct client_fixture rig;
        struct origin *origin = origin_new(by_path, NULL, NULL);
        rig_init(&rig);
        rig.pace.min_interval_ns = cases[i].interval_ns;
        rig.pace.retry.base_ns = cases[i].base_ns;
        rig_start(&rig);
        weir_response *response = get(&rig, url_at(origin_port(origin), "/500"));
        assert_int_equal(response->attempts, 3);
        assert_string_equal(weir_reason_name(response->waited_for), weir_reason_name(cases[i].reason));
        weir_response_free(response);
        rig_tear_down(&rig);
        origin_free(origin);
    }
}

/* K3: a weir_fetch outlives its client. AddressSanitizer finds the error otherwise. */
static void fetch_can_be_cancelled_and_freed_after_its_client(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct crowd crowd = {.rig = &rig};
    weir_fetch *fetch;
    rig_set_up(&rig);
    assert_int_equal(weir_client_fetch_async(rig.client, "http://127.0.0.1:1/", NULL, crowd_count, &crowd, &fetch), 0);
    rig_tear_down(&rig);
    assert_int_equal(crowd.finished, 1);
    weir_fetch_cancel(fetch);
    weir_fetch_cancel(fetch);
    weir_fetch_free(fetch);
}

static struct origin_reply answer_slowly_once(void *context, const struct origin_request *request)
{
    (void)context;
    return (struct origin_reply){.delay_ns = request->number == 0 ? 6 * WEIR_SECOND : 0};
}

/* The client of the cancelled fetch still has a request in flight at that host. */
static void fetch_cancelled_at_a_gate_does_not_delay_the_next_one(void **state)
{
    (void)state;
    struct client_fixture one, two;
    weir_pacer *pacer;
    weir_fetch *waits;
    struct origin *origin = origin_new(answer_slowly_once, NULL, NULL);
    rig_init(&one);
    one.pace.min_interval_ns = 500 * MS;
    assert_int_equal(weir_pacer_new(&one.pace, NULL, &pacer), 0);
    one.options.pacer = pacer;
    rig_start(&one);
    two = one;
    rig_start(&two);
    struct crowd slow = {.rig = &one}, cancelled = {.rig = &one, .asked = 1};
    crowd_ask(&slow, url_at(origin_port(origin), "/slow"), NULL);
    while (origin_requests(origin) == 0)
        sleep_ns(MS);
    assert_int_equal(weir_client_fetch_async(one.client, url_at(origin_port(origin), "/waits"), NULL, crowd_count,
                                             &cancelled, &waits),
                     0);
    sleep_ns(100 * MS);
    weir_fetch_cancel(waits);
    weir_fetch_free(waits);
    crowd_await(&cancelled);
    assert_int_equal(get_status(&two, url_at(origin_port(origin), "/next")), 200);
    assert_int_equal(origin_request(origin, 0).done_at, 0); /* the slow request has not ended yet */
    crowd_await(&slow);
    rig_tear_down(&one);
    rig_tear_down(&two);
    weir_pacer_free(pacer);
    origin_free(origin);
}

static void get_without_a_client_or_a_result_pointer_is_refused(void **state)
{
    (void)state;
    struct client_fixture rig;
    weir_response *response;
    rig_set_up(&rig);
    assert_int_equal(weir_client_fetch(NULL, "http://127.0.0.1/", NULL, NULL, &response), WEIR_E_INVAL);
    assert_int_equal(weir_client_fetch(rig.client, "http://127.0.0.1/", NULL, NULL, NULL), WEIR_E_INVAL);
    rig_tear_down(&rig);
}

/* S1-9, U13, R6, R11, S4-16: the default options limit every wait and obey robots.txt. */
static void default_client_has_the_documented_numbers(void **state)
{
    (void)state;
    weir_client *client;
    assert_int_equal(weir_client_new(NULL, &client), 0);
    const weir_client_options *made = &client->options;
    assert_int_equal(made->connect_timeout_ns, 10 * WEIR_SECOND);
    assert_int_equal(made->first_byte_timeout_ns, 30 * WEIR_SECOND);
    assert_int_equal(made->total_timeout_ns, 2 * WEIR_MINUTE);
    assert_int_equal(made->deadline_ns, 10 * WEIR_MINUTE);
    assert_int_equal(made->max_defer_ns, 30 * WEIR_MINUTE);
    assert_int_equal(made->min_bytes_per_s, 64);
    assert_int_equal(made->max_header_bytes, 256 << 10);
    assert_int_equal(made->max_body_bytes, 16 << 20);
    assert_int_equal(made->max_redirects, 10);
    assert_int_equal(made->robots, WEIR_ROBOTS_RFC9309);
    assert_true(made->robots_delay_factor == 1 && !made->allow_private && !made->circuit_fails);
    assert_int_equal(client->retry.attempts, 3);
    assert_int_equal(client->retry.blocking_retries, 3);
    weir_client_free(client);
}

WEIR_TESTS(test(default_client_has_the_documented_numbers), test(get_without_a_client_or_a_result_pointer_is_refused),
           test(fetch_cancelled_at_a_gate_does_not_delay_the_next_one), test(deadline_applies_at_every_stage),
           test(fetch_can_be_cancelled_at_every_stage), test(cancelled_fetch_reports_no_more_waiting_than_it_took),
           test(blocking_get_can_be_cancelled_at_every_stage), test(closing_ends_stuck_fetches_at_every_stage),
           test(fetch_posted_while_others_are_unread_is_started),
           test(fetches_queued_behind_unread_ones_end_when_the_client_closes), test(open_circuit_is_not_a_cancellation),
           test(retry_reports_whether_backoff_or_gate_delayed_it),
           test(fetch_can_be_cancelled_and_freed_after_its_client))
