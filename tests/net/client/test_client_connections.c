/* SPDX-License-Identifier: MIT */
/* test_client_connections.c - connections stay open only if the pace will reuse them, and hosts do
 * not share a pace, judged by the servers. */
#include "rig.h"

#include <sys/resource.h>

static struct origin_reply say_hello(void *context, const struct origin_request *request)
{
    (void)context, (void)request;
    return (struct origin_reply){.status = 200};
}

static void await_open(struct origin *origin, int wanted)
{
    int64_t until = monotonic() + WEIR_MINUTE;
    while (origin_open_connections(origin) != wanted) {
        assert_true(monotonic() < until);
        sleep_ns(MS);
    }
}

static void connection_is_closed_if_the_next_start_is_too_late_for_it(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct crowd crowd = {.rig = &rig};
    struct origin *origin = origin_new(say_hello, NULL, NULL);
    rig_init(&rig);
    rig.pace.min_interval_ns = WEIR_MINUTE;
    rig_start(&rig);
    assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/")), 200);
    /* queued, but not due for a minute */
    crowd_ask(&crowd, url_at(origin_port(origin), "/next"), NULL);
    await_open(origin, 0);
    assert_int_equal(origin_requests(origin), 1);
    rig_tear_down(&rig);
    origin_free(origin);
}

static void long_crawl_delay_closes_idle_connections(void **state)
{
    (void)state;
    struct client_fixture rig;
    weir_pacer *pacer;
    char key[64];
    struct origin *origin = origin_new(say_hello, NULL, NULL);
    rig_init(&rig);
    assert_int_equal(weir_pacer_new(&rig.pace, NULL, &pacer), 0);
    int bytes = snprintf(key, sizeof key, "127.0.0.1:%d", origin_port(origin));
    assert_int_equal(weir_pacer_robots_delay(pacer, key, (size_t)bytes, 2 * WEIR_MINUTE), 0);
    rig.options.pacer = pacer;
    rig_start(&rig);
    assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/")), 200);
    await_open(origin, 0);
    rig_tear_down(&rig);
    weir_pacer_free(pacer);
    origin_free(origin);
}

static void connection_stays_open_if_the_pace_will_reuse_it(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct origin *origin = origin_new(say_hello, NULL, NULL);
    rig_init(&rig);
    rig.pace.min_interval_ns = 300 * MS;
    rig_start(&rig);
    for (int i = 0; i < 3; i++)
        assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/")), 200);
    assert_int_equal(origin_connections(origin), 1);
    assert_int_equal(origin_open_connections(origin), 1);
    rig_tear_down(&rig);
    await_open(origin, 0);
    origin_free(origin);
}

/* Starts a client that may open at most this many connections. */
static void start_with_few(struct client_fixture *rig, rlim_t connections)
{
    struct rlimit before, few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    /* the library leaves 64 descriptors to the program */
    few = (struct rlimit){64 + connections, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    rig_start(rig);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void with_many_connections_a_host_with_an_empty_queue_keeps_none(void **state)
{
    (void)state;
    enum {
        HOSTS = 4
    };
    struct client_fixture rig;
    struct origin *origins[HOSTS];
    rig_init(&rig);
    start_with_few(&rig, 2 * HOSTS);
    for (int i = 0; i < HOSTS; i++)
        origins[i] = origin_new(say_hello, NULL, NULL);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < HOSTS; i++)
            assert_int_equal(get_status(&rig, url_at(origin_port(origins[i]), "/")), 200);
    for (int i = 0; i < HOSTS; i++)
        /* half of the allowed connections are in use, which is not many */
        assert_int_equal(origin_open_connections(origins[i]), 1);
    struct origin *more = origin_new(say_hello, NULL, NULL), *late = origin_new(say_hello, NULL, NULL);
    assert_int_equal(get_status(&rig, url_at(origin_port(more), "/")), 200);
    assert_int_equal(get_status(&rig, url_at(origin_port(late), "/")), 200);
    await_open(late, 0);
    rig_tear_down(&rig);
    for (int i = 0; i < HOSTS; i++)
        origin_free(origins[i]);
    origin_free(more);
    origin_free(late);
}

struct followers {
    struct crowd crowd;
    struct origin *origin;
    const char *url;
    int connections_before;
    atomic_bool are_in_line;
};

/* Queues three requests in the client's thread, so that all are queued before the first starts,
 * however long the machine stalls. */
static void ask_thrice(void *context, weir_response *response)
{
    struct followers *followers = context;
    weir_response_free(response);
    followers->connections_before = origin_connections(followers->origin);
    for (int i = 0; i < 3; i++)
        if (weir_client_fetch_async(followers->crowd.rig->client, followers->url, NULL, crowd_count, &followers->crowd,
                                    NULL) == 0)
            followers->crowd.asked++;
    followers->are_in_line = true;
}

static void with_many_connections_queued_requests_reuse_that_of_their_host(void **state)
{
    (void)state;
    enum {
        HOSTS = 4
    };
    struct client_fixture rig;
    struct origin *origins[HOSTS];
    rig_init(&rig);
    rig.pace.min_interval_ns = 300 * MS;
    /* with two in flight, a late response would make the next request open another connection */
    rig.pace.max_in_flight = 1;
    start_with_few(&rig, HOSTS);
    for (int i = 0; i < HOSTS; i++)
        origins[i] = origin_new(say_hello, NULL, NULL);
    for (int i = 0; i < HOSTS - 1; i++)
        assert_int_equal(get_status(&rig, url_at(origin_port(origins[i]), "/")), 200);
    struct origin *last = origins[HOSTS - 1];
    struct followers followers = {.crowd = {.rig = &rig}, .origin = last, .url = url_at(origin_port(last), "/")};
    assert_int_equal(weir_client_fetch_async(rig.client, followers.url, NULL, ask_thrice, &followers, NULL), 0);
    while (!followers.are_in_line)
        sleep_ns(MS);
    crowd_await(&followers.crowd);
    assert_int_equal(followers.crowd.statuses[200], 3);
    assert_int_equal(origin_connections(last), followers.connections_before + 1);
    await_open(last, 0); /* the queue of this host is empty */
    rig_tear_down(&rig);
    for (int i = 0; i < HOSTS; i++)
        origin_free(origins[i]);
}

/* S4-13: no limiter applies to all hosts together. */
static void start_at_one_host_delays_no_other_host(void **state)
{
    (void)state;
    enum {
        HOSTS = 8
    };
    struct client_fixture rig;
    struct crowd crowd = {.rig = &rig};
    struct origin *origins[HOSTS];
    rig_init(&rig);
    rig.pace.min_interval_ns = WEIR_MINUTE;
    rig_start(&rig);
    for (int i = 0; i < HOSTS; i++) {
        origins[i] = origin_new(say_hello, NULL, NULL);
        crowd_ask(&crowd, url_at(origin_port(origins[i]), "/"), NULL);
    }
    crowd_await(&crowd); /* with a shared pace this would take minutes */
    assert_int_equal(crowd.statuses[200], HOSTS);
    rig_tear_down(&rig);
    for (int i = 0; i < HOSTS; i++)
        origin_free(origins[i]);
}

WEIR_TESTS(test(start_at_one_host_delays_no_other_host),
           test(with_many_connections_queued_requests_reuse_that_of_their_host),
           test(connection_is_closed_if_the_next_start_is_too_late_for_it),
           test(long_crawl_delay_closes_idle_connections), test(connection_stays_open_if_the_pace_will_reuse_it),
           test(with_many_connections_a_host_with_an_empty_queue_keeps_none))
