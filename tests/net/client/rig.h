/* SPDX-License-Identifier: MIT */
/* rig.h - test fixture: a client, and helpers to fetch from servers on loopback. */
#ifndef WEIR_TEST_CLIENT_RIG_H
#define WEIR_TEST_CLIENT_RIG_H

#include "lib/origin.h"
#include "lib/test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <weir/client.h>

#define MS WEIR_MILLISECOND

/* Tolerance of time checks. The kernel stamps arrivals, but a loaded machine may delay a sender
 * between the gate's permission and the write. */
#define STAMP_SLACK_NS (15 * MS)

struct client_fixture {
    weir_client_options options;
    weir_pace_options pace;
    weir_client *client;
};

/* Sets options that allow loopback, pace nothing and ignore robots.txt. Change options before
 * rig_start. */
static inline void rig_init(struct client_fixture *rig)
{
    memset(rig, 0, sizeof *rig);
    weir_client_options_init(&rig->options);
    assert_int_equal(weir_pace_options_profile(&rig->pace, WEIR_PROFILE_UNLIMITED), 0);
    rig->options.pace = &rig->pace;
    rig->options.allow_private = true;
    rig->options.robots = WEIR_ROBOTS_IGNORE;
}

static inline void rig_start(struct client_fixture *rig)
{
    assert_int_equal(weir_client_new(&rig->options, &rig->client), 0);
}

static inline void rig_set_up(struct client_fixture *rig)
{
    rig_init(rig);
    rig_start(rig);
}

static inline void rig_tear_down(struct client_fixture *rig)
{
    weir_client_free(rig->client);
}

/* Returns "http://127.0.0.1:PORT/path" in a static buffer; it stays valid for the next three
 * calls. */
static inline const char *url_at(int port, const char *path)
{
    static char texts[4][2048];
    static int next;
    char *text = texts[next++ % 4];
    (void)snprintf(text, sizeof texts[0], "http://127.0.0.1:%d%s", port, path);
    return text;
}

static inline weir_response *get_with(struct client_fixture *rig, const char *url, const weir_fetch_options *options)
{
    weir_response *response;
    assert_int_equal(weir_client_fetch(rig->client, url, options, NULL, &response), 0);
    return response;
}

static inline weir_response *get(struct client_fixture *rig, const char *url)
{
    return get_with(rig, url, NULL);
}

/* Fetches a URL and returns only the status. */
static inline int get_status(struct client_fixture *rig, const char *url)
{
    weir_response *response = get(rig, url);
    int status = response->status;
    weir_response_free(response);
    return status;
}

static inline weir_failure get_failure(struct client_fixture *rig, const char *url)
{
    weir_response *response = get(rig, url);
    weir_failure failure = response->failure;
    weir_response_free(response);
    return failure;
}

static inline int64_t monotonic(void)
{
    return weir_clock_now(weir_clock_monotonic());
}

static inline void sleep_ns(int64_t ns)
{
    const struct timespec nap = {(time_t)(ns / WEIR_SECOND), (long)(ns % WEIR_SECOND)};
    (void)nanosleep(&nap, NULL);
}

/* From net/rig.c: the growth of the peak resident memory since the last rig_memory_mark, bytes. */
void rig_memory_mark(void);
long rig_memory_grown(void);

static inline void await_requests(struct origin *origin, int count)
{
    for (int64_t until = monotonic() + WEIR_MINUTE; origin_requests(origin) < count; sleep_ns(MS))
        assert_true(monotonic() < until);
}

/* Fails and prints all arrival times if two arrivals were closer together than this. */
static inline void assert_spaced(struct origin *origin, int64_t least_ns)
{
    int64_t gap_ns = origin_least_gap(origin);
    if (gap_ns >= least_ns - STAMP_SLACK_NS)
        return;
    for (int i = 0; i < origin_requests(origin); i++) {
        struct origin_request request = origin_request(origin, i);
        print_error("%4d %10.3f ms %s\n", i, (double)(request.at - origin_request(origin, 0).at) / 1e6, request.path);
    }
    fail_msg("two arrivals were %.3f ms apart, not %.3f", (double)gap_ns / 1e6, (double)least_ns / 1e6);
}

/* Fails if a request arrived within the wait that response `said_by` named. Requests under way when
 * the response was complete are allowed, and the wait counts from the start of the response, which
 * a busy server may finish later. */
static inline void assert_window_kept(struct origin *origin, int said_by, int64_t window_ns)
{
    struct origin_request said = origin_request(origin, said_by);
    for (int i = 0; i < origin_requests(origin); i++) {
        int64_t at = origin_request(origin, i).at;
        if (at >= said.told_at + STAMP_SLACK_NS && at < said.done_at + window_ns - STAMP_SLACK_NS)
            fail_msg("a request arrived %.3f ms after a wait of %.0f ms was named", (double)(at - said.told_at) / 1e6,
                     (double)window_ns / 1e6);
    }
}

/* Many fetches at once; each result is counted. */
struct crowd {
    struct client_fixture *rig;
    atomic_int finished;
    atomic_int statuses[600];
    atomic_int failures[WEIR_FAILURE_INTERNAL + 1];
    int asked;
};

static inline void crowd_count(void *context, weir_response *response)
{
    struct crowd *crowd = context;
    atomic_fetch_add(&crowd->statuses[response->status], 1);
    atomic_fetch_add(&crowd->failures[response->failure], 1);
    weir_response_free(response);
    atomic_fetch_add(&crowd->finished, 1);
}

static inline void crowd_ask(struct crowd *crowd, const char *url, const weir_fetch_options *options)
{
    assert_int_equal(weir_client_fetch_async(crowd->rig->client, url, options, crowd_count, crowd, NULL), 0);
    crowd->asked++;
}

static inline void crowd_await(struct crowd *crowd)
{
    int64_t until = monotonic() + 2 * WEIR_MINUTE;
    while (crowd->finished < crowd->asked) {
        assert_true(monotonic() < until);
        sleep_ns(MS);
    }
}

#endif
