/* SPDX-License-Identifier: MIT */
/* redis_client.c - the thread that talks to the store for all budgets of a process.
 *
 * Callers' threads append errands to a list and wake the loop. A timer renews the membership after
 * a third of its time; while the store is down it probes as often as the breaker allows. Resolving
 * a host name may block this thread. That happens only while connecting, when the store counts as
 * down and no caller waits for it.
 */
#include "cluster/limit/redis_client.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "limiter/clock/clock.h"
#include "limiter/memory/memory.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#define LOOK_MS 25       /* period of the timer, ms */
#define TOLD_AT_ONCE 16  /* most store requests in progress without a waiting caller */
#define LOOKED_AT_ONCE 8 /* budgets that one report looks at */
#define PATIENCE_MS 250  /* longest wait of wr_redis_client_start for the first answer */

/* ---- reports and state ----------------------------------------------------------------------- */

/* Returns the next budget in rotation, with a reference; NULL if there are none. */
static struct wr_shared_limit *next_shared_limit(struct wr_redis_client *redis_client)
{
    (void)pthread_mutex_lock(&redis_client->lock);
    struct wr_list_link *link = redis_client->budgets.first;
    struct wr_shared_limit *budget = link != NULL ? WR_LINKED(link, struct wr_shared_limit, link) : NULL;
    if (budget != NULL) {
        wr_list_remove(link);
        wr_list_push(&redis_client->budgets, link);
        wr_shared_limit_ref(budget);
    }
    (void)pthread_mutex_unlock(&redis_client->lock);
    return budget;
}

/* Sends what accounts have to report: debts after an outage or a missing answer, unused permits,
 * permits in flight, and states that the store may have lost. It sends a few at a time, so that
 * requests of callers are not delayed, and scans without the lock that callers need. */
static void send_reports(struct wr_redis_client *redis_client)
{
    uint32_t room = redis_client->telling == 0 ? TOLD_AT_ONCE : 0, told = 0;
    struct wr_list errands = {0};

    for (int i = 0; i < LOOKED_AT_ONCE && told < room; i++) {
        struct wr_shared_limit *budget = next_shared_limit(redis_client);
        if (budget == NULL)
            break;
        told += wr_shared_limit_make_reports(budget, redis_client->lives, room - told, &errands);
        wr_shared_limit_unref(budget);
    }
    redis_client->telling += told;
    (void)pthread_mutex_lock(&redis_client->lock);
    for (struct wr_list_link *link; (link = errands.first) != NULL;) {
        wr_list_remove(link);
        wr_list_push(&redis_client->errands, link);
    }
    bool calls = told > 0 && !redis_client->is_called;
    redis_client->is_called = redis_client->is_called || calls;
    (void)pthread_mutex_unlock(&redis_client->lock);
    if (calls)
        wr_wakeup_send(&redis_client->called);
}

/* Copies the state of the connection for all threads. */
static void update_redis_state(struct wr_redis_client *redis_client)
{
    bool was_down = atomic_load(&redis_client->is_down), is_down = wr_redis_connection_is_down(redis_client->wire);

    (void)pthread_mutex_lock(&redis_client->lock);
    wr_redis_connection_view_get(redis_client->wire, &redis_client->view.wire);
    is_down = is_down || redis_client->view.wire.answered == 0;
    redis_client->view.wire.down = is_down;
    redis_client->view.seated = wr_membership_is_held(&redis_client->membership, wr_boottime_now());
    if (!was_down && is_down)
        (void)atomic_fetch_add(&redis_client->outages, 1);
    atomic_store(&redis_client->is_lost, wr_redis_connection_is_lost(redis_client->wire));
    atomic_store(&redis_client->is_down, is_down);
    redis_client->lives += was_down && !is_down;
    (void)pthread_mutex_unlock(&redis_client->lock);
}

/* Wakes wr_redis_client_start: the first answer came or was missed. */
static void note_first_answer(struct wr_redis_client *redis_client)
{
    (void)pthread_mutex_lock(&redis_client->lock);
    redis_client->has_first_answer = true;
    (void)pthread_cond_broadcast(&redis_client->heard);
    (void)pthread_mutex_unlock(&redis_client->lock);
}

/* ---- errands --------------------------------------------------------------------------------- */

static void end_shared_request(struct wr_redis_client *redis_client, struct wr_shared_request *shared_request,
                               const struct wr_charge_reply *told)
{
    bool is_last = shared_request->is_report && --redis_client->telling == 0;

    wr_shared_request_end(shared_request, told);
    if (is_last && told != NULL)
        send_reports(redis_client); /* if there is more; after a failure the timer does it */
}

static void on_charged(void *context, const struct redisReply *reply)
{
    struct wr_shared_request *shared_request = context;
    struct wr_redis_client *redis_client = shared_request->budget->redis_client;
    struct wr_charge_reply told;
    bool is_good = reply != NULL && wr_charge_read(reply, &told) == 0;

    if (wr_redis_connection_is_down(redis_client->wire) != atomic_load(&redis_client->is_down))
        update_redis_state(redis_client); /* before callers wake, so that they do not ask a store that is down */
    end_shared_request(redis_client, shared_request, is_good ? &told : NULL);
}

static void send_charge(struct wr_redis_client *redis_client, struct wr_shared_request *shared_request)
{
    const struct wr_charge charge = {
        .key = shared_request->text,
        .key_bytes = shared_request->store_key_bytes,
        .permits = shared_request->permits,
        .extra = shared_request->extra,
        .owed = shared_request->owed,
        .bill = shared_request->bill,
        .back = shared_request->back,
        .charged_at = shared_request->back_at,
        .who = shared_request->budget->who,
        .held = shared_request->held,
        .message = shared_request->message,
        .reset = shared_request->resets,
        .seen = shared_request->text + shared_request->seen_at,
    };
    /* While the store is down only the timer probes it: connecting may block, and a caller waits
     * for this shared_request. */
    if (!wr_redis_connection_is_down(redis_client->wire) &&
        wr_charge_send(redis_client->wire, &shared_request->budget->charge_limits, &charge, on_charged,
                       shared_request) == 0)
        return;
    update_redis_state(redis_client);
    end_shared_request(redis_client, shared_request, NULL);
}

/* Returns the next request to send. Returns NULL if the queue is empty; the caller that queues the
 * next request then wakes the loop. */
static struct wr_shared_request *next_shared_request(struct wr_redis_client *redis_client)
{
    (void)pthread_mutex_lock(&redis_client->lock);
    struct wr_list_link *link = redis_client->errands.first;
    if (link != NULL)
        wr_list_remove(link);
    else
        redis_client->is_called = false;
    (void)pthread_mutex_unlock(&redis_client->lock);
    return link != NULL ? WR_LINKED(link, struct wr_shared_request, link) : NULL;
}

static void close_redis_loop(struct wr_redis_client *redis_client)
{
    wr_wakeup_close(&redis_client->called, NULL);
    uv_close((uv_handle_t *)&redis_client->beat, NULL);
    wr_redis_connection_free(redis_client->wire);
}

static void on_redis_wakeup(struct wr_wakeup *called)
{
    struct wr_redis_client *redis_client = called->uv.data;
    struct wr_shared_request *shared_request;

    while ((shared_request = next_shared_request(redis_client)) != NULL)
        send_charge(redis_client, shared_request);
    (void)pthread_mutex_lock(&redis_client->lock);
    bool is_ending = redis_client->is_ending;
    (void)pthread_mutex_unlock(&redis_client->lock);
    if (is_ending && !wr_wakeup_is_closing(called))
        close_redis_loop(redis_client);
}

void wr_redis_client_send(struct wr_redis_client *redis_client, struct wr_shared_request *shared_request)
{
    (void)pthread_mutex_lock(&redis_client->lock);
    /* The thread may be connecting now, which may block. So an shared_request must not be queued
     * once the store is down. */
    bool is_down = atomic_load(&redis_client->is_down), calls = !is_down && !redis_client->is_called;
    if (!is_down) {
        wr_list_push(&redis_client->errands, &shared_request->link);
        redis_client->is_called = true;
    }
    (void)pthread_mutex_unlock(&redis_client->lock);
    if (is_down)
        wr_shared_request_end(shared_request, NULL);
    else if (calls)
        wr_wakeup_send(&redis_client->called);
}

/* ---- the membership
 * -------------------------------------------------------------------------------- */

static void on_membership(void *context, const struct redisReply *reply)
{
    struct wr_redis_client *redis_client = context;
    int64_t now = wr_boottime_now();

    redis_client->is_asking = false;
    uint64_t born = redis_client->store_born;
    bool is_seated = wr_membership_read(reply, &born);
    (void)pthread_mutex_lock(&redis_client->lock);
    if (is_seated)
        wr_membership_renew(&redis_client->membership, redis_client->asked_at, now, WR_MEMBERSHIP_NS);
    redis_client->lives += born != redis_client->store_born; /* the store lost its data, or is another one */
    redis_client->store_born = born;
    for (struct wr_list_link *link = redis_client->budgets.first; link != NULL && is_seated; link = link->next)
        wr_shared_limit_set_membership(WR_LINKED(link, struct wr_shared_limit, link), &redis_client->membership);
    (void)pthread_mutex_unlock(&redis_client->lock);
    update_redis_state(redis_client);
    note_first_answer(redis_client);
}

static void on_redis_timer(uv_timer_t *timer)
{
    struct wr_redis_client *redis_client = timer->data;
    int64_t now = wr_boottime_now();
    bool is_down = atomic_load(&redis_client->is_down),
         is_due = is_down || now - redis_client->asked_at >= WR_MEMBERSHIP_NS / 3;

    if (!is_down)
        send_reports(redis_client);
    if (redis_client->is_asking || !is_due)
        return;
    redis_client->asked_at = now;
    if (wr_membership_send(redis_client->wire, redis_client->prefix, redis_client->who, redis_client->nodes,
                           on_membership, redis_client) == 0) {
        redis_client->is_asking = true;
        return;
    }
    update_redis_state(redis_client);
    note_first_answer(redis_client);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void *run_redis_loop(void *context)
{
    struct wr_redis_client *redis_client = context;
    uv_update_time(&redis_client->loop);
    (void)uv_timer_start(&redis_client->beat, on_redis_timer, 0, LOOK_MS);
    (void)uv_run(&redis_client->loop, UV_RUN_DEFAULT);
    return NULL;
}

static void wait_for_first_answer(struct wr_redis_client *redis_client)
{
    int64_t until = wr_monotonic_now() + PATIENCE_MS * WEIR_MILLISECOND;
    const struct timespec at = {.tv_sec = (time_t)(until / WEIR_SECOND), .tv_nsec = (long)(until % WEIR_SECOND)};
    (void)pthread_mutex_lock(&redis_client->lock);
    while (!redis_client->has_first_answer &&
           pthread_cond_timedwait(&redis_client->heard, &redis_client->lock, &at) == 0)
        ;
    (void)pthread_mutex_unlock(&redis_client->lock);
}

int wr_redis_client_start(struct wr_redis_client *redis_client)
{
    sigset_t all, before;

    if (redis_client->has_thread)
        return 0;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    redis_client->has_thread = pthread_create(&redis_client->thread, NULL, run_redis_loop, redis_client) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!redis_client->has_thread) {
        wr_error_set("cannot start a thread for the store");
        return WEIR_E_SYSTEM;
    }
    wait_for_first_answer(redis_client);
    return 0;
}

/* ---- new and free ---------------------------------------------------------------------------- */

/* Writes all that identifies a store as one text. */
static int write_store_identity(const struct wr_redis_client_options *options, char ret_address[WR_REDIS_ADDRESS_BYTES])
{
    const struct wr_redis_connection_options *wire = &options->wire;
    const char *parts[] = {wire->path, wire->host, wire->user, wire->password, options->prefix};
    struct wr_buf buf;

    wr_buf_init_fixed(&buf, ret_address, WR_REDIS_ADDRESS_BYTES);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        wr_buf_append_string(&buf, parts[i] != NULL ? parts[i] : "\1");
        wr_buf_append_char(&buf, '\n');
    }
    wr_buf_append_u64(&buf, (uint64_t)wire->port);
    return buf.error;
}

static int name_node(struct wr_redis_client *redis_client)
{
    uint8_t random[WR_NODE_DIGITS / 2];
    struct wr_buf who;
    int error = wr_random(random, sizeof random);

    wr_buf_init_fixed(&who, redis_client->who, sizeof redis_client->who);
    for (size_t i = 0; i < sizeof random && error == 0; i++)
        wr_buf_append_hex(&who, random[i], 2, WR_HEX_SMALL);
    return error;
}

static int fill_redis_client(struct wr_redis_client *redis_client, const struct wr_redis_client_options *options)
{
    const char *prefix = options->prefix != NULL ? options->prefix : "weir";

    if (options->nodes == 0 || options->nodes > WR_CLUSTER_NODES_MAX)
        return wr_invalid("nodes is out of range; it must be 1 ... 10000");
    if (strlen(prefix) > WR_REDIS_PREFIX_MAX || strpbrk(prefix, "{}") != NULL)
        return wr_invalid("a prefix of the store's keys has at most 31 bytes, and no braces");
    memcpy(redis_client->prefix, prefix, strlen(prefix) + 1);
    redis_client->nodes = options->nodes;
    redis_client->timeout_ns = options->wire.timeout_ns;
    if (write_store_identity(options, redis_client->address) != 0)
        return wr_invalid("the store's address is too long; it has at most 1000 bytes");
    return name_node(redis_client);
}

static int open_redis_loop(struct wr_redis_client *redis_client, const struct wr_redis_client_options *options)
{
    struct wr_redis_connection_options wire = options->wire;

    wire.allocator = redis_client->allocator;
    if (uv_loop_init(&redis_client->loop) != 0)
        return WEIR_E_SYSTEM;
    (void)uv_timer_init(&redis_client->loop, &redis_client->beat);
    int error = wr_wakeup_init(&redis_client->called, &redis_client->loop, on_redis_wakeup);
    if (error == 0 && (error = wr_redis_connection_new(&wire, &redis_client->loop, &redis_client->wire)) != 0)
        wr_wakeup_close(&redis_client->called, NULL);
    if (error == 0) {
        redis_client->called.uv.data = redis_client->beat.data = redis_client;
        return 0;
    }
    uv_close((uv_handle_t *)&redis_client->beat, NULL);
    (void)uv_run(&redis_client->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&redis_client->loop);
    return error;
}

int wr_redis_client_new(const struct wr_redis_client_options *options, struct wr_redis_client **ret_agency)
{
    const weir_allocator *allocator = wr_allocator_or_system(options->allocator);
    struct wr_redis_client *redis_client = wr_alloc(allocator, sizeof *redis_client, _Alignof(struct wr_redis_client));
    pthread_condattr_t attributes;

    if (redis_client == NULL)
        return WEIR_E_NOMEM;
    redis_client->allocator = allocator;
    redis_client->view.nodes = options->nodes;
    redis_client->view.wire.down = true;
    atomic_init(&redis_client->is_down, true);
    atomic_init(&redis_client->is_lost, false);
    atomic_init(&redis_client->outages, 1);
    int error = fill_redis_client(redis_client, options);
    if (error == 0)
        error = open_redis_loop(redis_client, options);
    if (error < 0) {
        wr_free(allocator, redis_client, sizeof *redis_client, _Alignof(struct wr_redis_client));
        return error;
    }
    (void)pthread_mutex_init(&redis_client->lock, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&redis_client->heard, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    *ret_agency = redis_client;
    return 0;
}

bool wr_redis_client_has_options(const struct wr_redis_client *redis_client,
                                 const struct wr_redis_client_options *options)
{
    char address[WR_REDIS_ADDRESS_BYTES];

    return write_store_identity(options, address) == 0 && strcmp(address, redis_client->address) == 0 &&
           redis_client->nodes == options->nodes && redis_client->timeout_ns == options->wire.timeout_ns;
}

void wr_redis_client_free(struct wr_redis_client *redis_client)
{
    if (redis_client == NULL)
        return;
    if (redis_client->has_thread) {
        (void)pthread_mutex_lock(&redis_client->lock);
        redis_client->is_ending = true;
        (void)pthread_mutex_unlock(&redis_client->lock);
        wr_wakeup_send(&redis_client->called);
        (void)pthread_join(redis_client->thread, NULL);
    } else {
        close_redis_loop(redis_client);
        (void)uv_run(&redis_client->loop, UV_RUN_DEFAULT);
    }
    (void)uv_loop_close(&redis_client->loop);
    (void)pthread_cond_destroy(&redis_client->heard);
    (void)pthread_mutex_destroy(&redis_client->lock);
    wr_free(redis_client->allocator, redis_client, sizeof *redis_client, _Alignof(struct wr_redis_client));
}

void wr_redis_client_view_get(struct wr_redis_client *redis_client, struct wr_redis_client_view *ret_view)
{
    (void)pthread_mutex_lock(&redis_client->lock);
    *ret_view = redis_client->view;
    (void)pthread_mutex_unlock(&redis_client->lock);
}
