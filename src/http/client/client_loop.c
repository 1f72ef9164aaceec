/* SPDX-License-Identifier: MIT */
/* client_loop.c - the client's thread: handles posted fetches, timers, and queues that may
 * continue.
 *
 * All of this happens before each wait for the network. Posts and wake-ups from other threads end
 * the wait.
 */
#include "base/error.h"
#include "http/client/client_internal.h"
#include "http/loop/round.h"
#include "http/loop/watchdog.h"
#include "limiter/clock/cpu_slice.h"
#include "limiter/memory/memory.h"

#include <assert.h>
#include <signal.h>

#define DUES_MAX ((size_t)1 << 28)
#define ORIGIN_QUEUES_MAX ((size_t)1 << 26)
/* Idle ones included. When libcurl's connection cache is full, it is searched for each transfer. */
#define CONNECTIONS_MAX 8192

static const struct wr_client_test_hooks no_test_hooks;
const struct wr_client_test_hooks *wr_client_test_hooks = &no_test_hooks;

bool wr_client_loop_is_current(const weir_client *client)
{
    return pthread_equal(pthread_self(), client->self) != 0;
}

/* ---- called from other threads ---- */

/* Wakes the client's thread. The lock is held, and the thread ends under it: the handle exists. */
static void wake_client(weir_client *client)
{
    if (wr_client_loop_is_current(client))
        client->has_own_posts = true;
    else
        wr_wakeup_send(&client->wakeup);
}

int wr_client_loop_post(weir_client *client, struct weir_fetch *fetch)
{
    int error = 0;
    (void)pthread_mutex_lock(&client->lock);
    if (client->is_closing)
        error = WEIR_E_CLOSED;
    else if (atomic_load(&client->unfinished) >= client->options.queue_max)
        error = WEIR_E_FULL;
    if (error == 0) {
        (void)atomic_fetch_add(&client->unfinished, 1);
        *(client->inbox_last != NULL ? &client->inbox_last->next : &client->inbox_first) = fetch;
        client->inbox_last = fetch;
        wake_client(client);
    }
    (void)pthread_mutex_unlock(&client->lock);
    return error;
}

void wr_client_loop_cancel(struct weir_fetch *fetch)
{
    weir_client *client = fetch->client;
    (void)pthread_mutex_lock(&client->lock);
    if (!client->is_closing) {
        (void)atomic_fetch_add(&fetch->holds, 1);
        fetch->next_cancelled = client->cancelled;
        client->cancelled = fetch;
        wake_client(client);
    }
    (void)pthread_mutex_unlock(&client->lock);
}

void wr_client_loop_wake(void *context)
{
    struct wr_origin_queue *origin_queue = context;
    weir_client *client = origin_queue->client;
    (void)pthread_mutex_lock(&client->lock);
    if (!origin_queue->is_woken) {
        origin_queue->is_woken = true;
        origin_queue->next_woken = client->woken;
        client->woken = origin_queue;
        wake_client(client);
    }
    (void)pthread_mutex_unlock(&client->lock);
}

/* ---- origin queues ---- */

void wr_client_loop_schedule(struct wr_origin_queue *origin_queue)
{
    weir_client *client = origin_queue->client;
    if (origin_queue->runs)
        return;
    origin_queue->runs = true;
    origin_queue->next_to_run = NULL;
    origin_queue->prev_to_run = client->run_last;
    *(client->run_last != NULL ? &client->run_last->next_to_run : &client->run_first) = origin_queue;
    client->run_last = origin_queue;
}

static void remove_from_run_list(struct wr_origin_queue *origin_queue)
{
    weir_client *client = origin_queue->client;
    *(origin_queue->prev_to_run != NULL ? &origin_queue->prev_to_run->next_to_run : &client->run_first) =
        origin_queue->next_to_run;
    *(origin_queue->next_to_run != NULL ? &origin_queue->next_to_run->prev_to_run : &client->run_last) =
        origin_queue->prev_to_run;
    origin_queue->runs = false;
}

void wr_client_loop_unschedule(struct wr_origin_queue *origin_queue)
{
    weir_client *client = origin_queue->client;
    if (origin_queue->runs)
        remove_from_run_list(origin_queue);
    (void)pthread_mutex_lock(&client->lock);
    if (origin_queue->is_woken) {
        struct wr_origin_queue **place = &client->woken;
        while (*place != origin_queue)
            place = &(*place)->next_woken;
        *place = origin_queue->next_woken;
    }
    (void)pthread_mutex_unlock(&client->lock);
}

/* ---- timers ---- */

int wr_client_timer_set(weir_client *client, struct wr_client_timer *due, int64_t at)
{
    wr_heap_remove(&client->dues, &due->item);
    return at == WEIR_FOREVER ? 0 : wr_heap_push(&client->dues, at, &due->item);
}

static void run_timers(weir_client *client)
{
    int64_t now = wr_client_now(client), at;
    struct wr_heap_item *item;
    struct wr_time_slice slice = wr_time_slice_begin(WR_TIME_SLICE_NS);
    while ((item = wr_heap_peek(&client->dues, &at)) != NULL && at <= now && wr_time_slice_lasts(&slice)) {
        (void)wr_heap_pop(&client->dues);
        ((struct wr_client_timer *)item)->on_due((struct wr_client_timer *)item);
    }
}

static void on_client_timer(uv_timer_t *timer)
{
    (void)timer; /* the timer only ends the wait */
}

/* Sets the timer for the next due time, or for now if work is left. */
static void set_loop_timer(weir_client *client, bool at_once)
{
    int64_t at = 0, left_ns = 0;
    if (!at_once && wr_heap_peek(&client->dues, &at) == NULL) {
        (void)uv_timer_stop(&client->timer);
        return;
    }
    if (!at_once)
        left_ns = at - wr_client_now(client);
    uint64_t left_ms = left_ns > 0 ? (uint64_t)((left_ns + WEIR_MILLISECOND - 1) / WEIR_MILLISECOND) : 0;
    uv_update_time(&client->loop);
    (void)uv_timer_start(&client->timer, on_client_timer, left_ms, 0);
}

/* ---- posted fetches and cancellations ---- */

static void accept_fetch(weir_client *client, struct weir_fetch *fetch)
{
    fetch->next = NULL;
    wr_fetch_link_live(fetch);
    if (atomic_load(&fetch->is_cancelled) || client->is_ending)
        wr_fetch_fail(fetch, WEIR_FAILURE_CANCELLED, "cancelled");
    else
        wr_fetch_enqueue(fetch, false);
}

static void cancel_fetch(struct weir_fetch *fetch)
{
    if (fetch->place != WR_FETCH_STATE_ENDED)
        wr_fetch_fail(fetch, WEIR_FAILURE_CANCELLED, "cancelled");
    wr_fetch_drop(fetch);
}

static bool has_posts(const weir_client *client)
{
    return client->arrived != NULL || client->to_cancel != NULL;
}

/* Takes over posted fetches, cancellations and wake-ups. Returns false if some of the last round
 * are left: they come first, and the inbox stays as it is. */
static bool collect_posts(weir_client *client)
{
    bool is_all = !has_posts(client);
    (void)pthread_mutex_lock(&client->lock);
    client->is_ending = client->is_closing;
    if (is_all) {
        client->arrived = client->inbox_first;
        client->to_cancel = client->cancelled;
        client->inbox_first = client->inbox_last = client->cancelled = NULL;
    }
    for (struct wr_origin_queue *origin_queue = client->woken; origin_queue != NULL;
         origin_queue = origin_queue->next_woken) {
        origin_queue->is_woken = false;
        wr_client_loop_schedule(origin_queue);
    }
    client->woken = NULL;
    (void)pthread_mutex_unlock(&client->lock);
    return is_all;
}

/* Handles one posted fetch or else one cancellation, so that a cancelled fetch has arrived. */
static void apply_post(weir_client *client)
{
    struct weir_fetch *fetch = client->arrived;
    if (fetch != NULL) {
        client->arrived = fetch->next;
        accept_fetch(client, fetch);
        return;
    }
    fetch = client->to_cancel;
    client->to_cancel = fetch->next_cancelled;
    cancel_fetch(fetch);
}

/* Handles posts for a limited time. The wake-up that announced them is used up, so if any are left,
 * the next round must not wait. */
static void apply_posts(weir_client *client)
{
    WR_DOING("mail");
    struct wr_time_slice slice = wr_time_slice_begin(WR_TIME_SLICE_NS);
    bool is_all;
    client->has_own_posts = false;
    do {
        is_all = collect_posts(client);
        while (has_posts(client) && (client->is_ending || wr_time_slice_lasts(&slice)))
            apply_post(client);
    } while (!is_all && !has_posts(client));
    client->has_own_posts |= has_posts(client);
}

static bool has_slot(const weir_client *client)
{
    return atomic_load_explicit(&client->in_flight, memory_order_relaxed) < client->options.concurrency;
}

static void run_origin_queues(weir_client *client)
{
    struct wr_time_slice slice = wr_time_slice_begin(WR_TIME_SLICE_NS);
    while (has_slot(client) && client->run_first != NULL && wr_time_slice_lasts(&slice)) {
        struct wr_origin_queue *origin_queue = client->run_first;
        remove_from_run_list(origin_queue);
        wr_origin_queue_step(origin_queue);
    }
}

static void run_due_work(weir_client *client)
{
    WR_DOING("lanes");
    run_timers(client);
    run_origin_queues(client);
    set_loop_timer(client, client->has_own_posts || (client->run_first != NULL && has_slot(client)));
}

/* ---- ending ---- */

static void close_client_handles(weir_client *client)
{
    uv_close((uv_handle_t *)&client->prepare, NULL);
    wr_wakeup_close(&client->wakeup, NULL);
    uv_close((uv_handle_t *)&client->timer, NULL);
}

/* Cancels all fetches and closes network and handles. Nothing can be posted any more. */
static void end_client_work(weir_client *client)
{
    client->is_ending = true;
    while (client->live != NULL)
        wr_fetch_fail(client->live, WEIR_FAILURE_CANCELLED, "the client was closed");
    wr_policies_free(client->policies);
    client->policies = NULL;
    wr_net_close(client->net);
    client->net = NULL;
    close_client_handles(client);
}

static void on_client_prepare(uv_prepare_t *prepare)
{
    weir_client *client = prepare->data;
    apply_posts(client);
    if (client->is_ending)
        end_client_work(client);
    else
        run_due_work(client);
}

static void on_client_wakeup(struct wr_wakeup *wakeup)
{
    (void)wakeup; /* the wake-up only ends the wait */
}

/* ---- starting ---- */

static int make_client_net(weir_client *client)
{
    const weir_client_options *options = &client->options;
    struct wr_resolver_options names = {.allocator = client->allocator,
                                        .clock = client->clock,
                                        .lookup = wr_client_test_hooks->lookup,
                                        .lookup_context = wr_client_test_hooks->lookup_context};
    int error = wr_resolver_new(&names, &client->resolver);
    if (error != 0)
        return error;
    struct wr_net_options net = {
        .allocator = client->allocator,
        .clock = client->clock,
        .loop = &client->loop,
        .resolver = client->resolver,
        .agent = options->agent,
        .proxy = options->proxy,
        .ca_file = options->ca_file,
        .allow_private = options->allow_private,
        .judge = wr_client_test_hooks->judge,
        .judge_context = wr_client_test_hooks->judge_context,
        .transfers_max = 2 * options->concurrency, /* twice, because cancelled ones end late */
        .connections_max = CONNECTIONS_MAX,
        .head_max = (uint32_t)options->max_header_bytes,
        .body_max = options->max_body_bytes,
        .connect_ns = options->connect_timeout_ns,
        .first_byte_ns = options->first_byte_timeout_ns,
        .total_ns = options->total_timeout_ns,
        .speed_min = (uint32_t)options->min_bytes_per_s,
    };
    error = wr_net_new(&net, &client->net);
    /* A request that waits for a free connection would count as connecting. */
    if (error == 0 && wr_net_connections(client->net) < options->concurrency)
        client->options.concurrency = wr_net_connections(client->net);
    return error;
}

static int make_network(weir_client *client)
{
    int error = make_client_net(client);
    if (error == 0 && client->options.robots != WEIR_ROBOTS_IGNORE)
        error = wr_client_make_policies(client);
    return error;
}

/* Result that the new thread passes to its creator. */
struct client_thread_start {
    weir_client *client;
    uv_sem_t done;
    int error;
};

static void *run_thread(void *context)
{
    struct client_thread_start *starting = context;
    weir_client *client = starting->client;
    client->self = pthread_self();
    wr_cpu_slice_short();
    int error = make_network(client);
    if (error != 0)
        end_client_work(client);
    starting->error = error;
    uv_sem_post(&starting->done);
    wr_watchdog_begin("the loop of a client");
    (void)uv_run(&client->loop, UV_RUN_DEFAULT);
    wr_watchdog_end();
    return NULL;
}

/* Starts the thread with all signals blocked, so that the program's own threads handle them. */
static int start_client_thread(struct client_thread_start *starting)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&starting->client->thread, NULL, run_thread, starting);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0)
        return WEIR_E_SYSTEM;
    uv_sem_wait(&starting->done);
    if (starting->error != 0)
        (void)pthread_join(starting->client->thread, NULL);
    /* All options were checked before. Here the error detail would be lost with the thread. */
    assert(starting->error != WEIR_E_INVAL);
    return starting->error;
}

static int open_client_loop(weir_client *client)
{
    if (uv_loop_init(&client->loop) != 0)
        return WEIR_E_SYSTEM;
    int error = wr_wakeup_init(&client->wakeup, &client->loop, on_client_wakeup);
    if (error != 0) {
        (void)uv_loop_close(&client->loop);
        return error;
    }
    (void)uv_prepare_init(&client->loop, &client->prepare);
    (void)uv_timer_init(&client->loop, &client->timer);
    client->prepare.data = client;
    (void)uv_prepare_start(&client->prepare, on_client_prepare);
    return 0;
}

/* Closes the loop and frees its data. `has_handles`: no thread has closed the handles yet. */
static void close_loop(weir_client *client, bool has_handles)
{
    if (has_handles) {
        close_client_handles(client);
        (void)uv_run(&client->loop, UV_RUN_DEFAULT);
    }
    (void)uv_loop_close(&client->loop);
    wr_resolver_free(client->resolver);
    wr_wire_requests_free(client);
    wr_heap_release(&client->dues);
    wr_map_release(&client->origin_queues);
}

int wr_client_loop_start(weir_client *client)
{
    uint8_t secret[WR_HASH_SECRET_BYTES];
    uint64_t seed;
    struct client_thread_start starting = {.client = client};
    if (wr_random(secret, sizeof secret) != 0 || wr_random(&seed, sizeof seed) != 0)
        return WEIR_E_SYSTEM;
    wr_hash_key_init(&client->hash_key, secret);
    wr_rng_init(&client->rng, seed);
    wr_heap_init(&client->dues, client->allocator, DUES_MAX);
    wr_map_init(&client->origin_queues, client->allocator, &client->hash_key, ORIGIN_QUEUES_MAX);
    int error = open_client_loop(client);
    if (error != 0)
        return error;
    if (uv_sem_init(&starting.done, 0) != 0) {
        close_loop(client, true);
        return WEIR_E_SYSTEM;
    }
    error = start_client_thread(&starting);
    uv_sem_destroy(&starting.done);
    if (error != 0)
        close_loop(client, !client->is_ending);
    return error;
}

void wr_client_loop_end(weir_client *client)
{
    (void)pthread_mutex_lock(&client->lock);
    if (!client->is_closing) {
        client->is_closing = true;
        wr_wakeup_send(&client->wakeup);
    }
    (void)pthread_mutex_unlock(&client->lock);
    (void)pthread_mutex_lock(&client->joining);
    if (!client->is_joined) {
        (void)pthread_join(client->thread, NULL);
        close_loop(client, false);
    }
    client->is_joined = true;
    (void)pthread_mutex_unlock(&client->joining);
}
