/* SPDX-License-Identifier: MIT */
/* shared_gate.c - the thread that moves gates between processes, and the calls of other threads. */
#include "cluster/gate/shared_gate_state.h"

#include "base/alloc.h"
#include "base/error.h"
#include "limiter/clock/clock.h"
#include "limiter/memory/memory.h"

#include <signal.h>
#include <string.h>

#define LEGS_MAX ((size_t)1000000)
#define PATIENCE_MS 1000                   /* time limit of the last round trip when ending */
#define MEMORY_NS (100 * WEIR_MILLISECOND) /* time between attempts if there is no memory */

/* ---- calls of other threads ------------------------------------------------------------------ */

/* Finds or makes the gate_turn of a host. Returns NULL if there is no memory. The lock is held. */
static struct wr_gate_turn *get_gate_turn(struct wr_shared_gate *relay, const char *key, size_t key_bytes)
{
    struct wr_gate_turn *gate_turn = wr_map_get(&relay->legs, key, key_bytes);
    if (gate_turn != NULL)
        return gate_turn;
    gate_turn = wr_alloc(relay->allocator, sizeof *gate_turn + key_bytes, _Alignof(struct wr_gate_turn));
    if (gate_turn == NULL)
        return NULL;
    gate_turn->relay = relay;
    gate_turn->key_bytes = key_bytes;
    memcpy(gate_turn->key, key, key_bytes);
    wr_buf_init(&gate_turn->letters, relay->allocator, WR_GATE_REPORTS_MAX);
    if (wr_map_put(&relay->legs, gate_turn->key, key_bytes, gate_turn, NULL) == 0)
        return gate_turn;
    wr_free(relay->allocator, gate_turn, sizeof *gate_turn + key_bytes, _Alignof(struct wr_gate_turn));
    return NULL;
}

static void free_gate_turn(struct wr_gate_turn *gate_turn)
{
    wr_buf_release(&gate_turn->letters);
    wr_free(gate_turn->relay->allocator, gate_turn, sizeof *gate_turn + gate_turn->key_bytes,
            _Alignof(struct wr_gate_turn));
}

/* Asks the thread to look at the gate_turn. The lock is held. */
static void wake_gate_thread(struct wr_shared_gate *relay, struct wr_gate_turn *gate_turn)
{
    if (gate_turn != NULL)
        wr_list_push(&relay->called, &gate_turn->link);
    if (!relay->is_called)
        wr_wakeup_send(&relay->wakeup);
    relay->is_called = true;
}

static void on_gate_wanted(void *context, const char *key, size_t key_bytes)
{
    struct wr_shared_gate *relay = context;
    (void)pthread_mutex_lock(&relay->lock);
    struct wr_gate_turn *gate_turn = get_gate_turn(relay, key, key_bytes);
    if (gate_turn != NULL) {
        gate_turn->wanted_at = wr_pacer_now(relay->pacer);
        wake_gate_thread(relay, gate_turn);
    }
    (void)pthread_mutex_unlock(&relay->lock);
}

static void on_remote_outcome(void *context, const struct wr_remote_report *away)
{
    struct wr_shared_gate *relay = context;
    (void)pthread_mutex_lock(&relay->lock);
    struct wr_gate_turn *gate_turn = get_gate_turn(relay, away->key, away->key_bytes);
    if (gate_turn != NULL && (away->outcome != NULL || away->word == WR_REMOTE_SENT_LATE)) {
        struct wr_gate_report letter = {.start = *away->start, .word = away->word};
        if (away->outcome != NULL)
            letter.outcome = *away->outcome;
        if (letter.outcome.latency_ns == 0 && letter.start.seq != 0)
            letter.outcome.latency_ns = away->now - letter.start.sent_at;
        if (gate_turn->letters.length + sizeof letter <= WR_GATE_REPORTS_MAX)
            wr_buf_append(&gate_turn->letters, &letter, sizeof letter);
    }
    if (gate_turn != NULL)
        wake_gate_thread(relay, gate_turn);
    (void)pthread_mutex_unlock(&relay->lock);
}

static void on_gate_must_be_saved(void *context, const char *key, size_t key_bytes)
{
    struct wr_shared_gate *relay = context;
    (void)pthread_mutex_lock(&relay->lock);
    struct wr_gate_turn *gate_turn = wr_map_get(&relay->legs, key, key_bytes);
    if (gate_turn != NULL) {
        gate_turn->has_news = true;
        wake_gate_thread(relay, gate_turn);
    }
    (void)pthread_mutex_unlock(&relay->lock);
}

/* ---- time ------------------------------------------------------------------------------------ */

static void on_gate_timer(uv_timer_t *timer);

static void set_gate_timer(struct wr_shared_gate *relay)
{
    int64_t at = WEIR_FOREVER, now = wr_pacer_now(relay->pacer);
    if (relay->is_closing)
        return;
    (void)wr_heap_peek(&relay->dues, &at);
    if (relay->lacks_memory && at > now + MEMORY_NS)
        at = now + MEMORY_NS;
    if (at == WEIR_FOREVER) {
        (void)uv_timer_stop(&relay->timer);
        return;
    }
    int64_t left_ns = at - now;
    uv_update_time(&relay->loop);
    (void)uv_timer_start(&relay->timer, on_gate_timer,
                         left_ns > 0 ? (uint64_t)((left_ns + WEIR_MILLISECOND - 1) / WEIR_MILLISECOND) : 0, 0);
}

void wr_gate_turn_set_due(struct wr_gate_turn *gate_turn, int64_t at)
{
    struct wr_shared_gate *relay = gate_turn->relay;
    if (wr_heap_item_is_queued(&gate_turn->due))
        wr_heap_remove(&relay->dues, &gate_turn->due);
    if (at != WEIR_FOREVER)
        (void)wr_heap_push(&relay->dues, at, &gate_turn->due); /* next_called has reserved the room */
    set_gate_timer(relay);
}

static void close_gate_loop(struct wr_shared_gate *relay)
{
    if (relay->is_closing)
        return;
    relay->is_closing = true;
    wr_wakeup_close(&relay->wakeup, NULL);
    uv_close((uv_handle_t *)&relay->timer, NULL);
    uv_close((uv_handle_t *)&relay->patience, NULL);
    wr_redis_connection_free(relay->wire);
}

/* Ends the relay although the store has not answered. */
static void on_end_timeout(uv_timer_t *timer)
{
    close_gate_loop(timer->data);
}

void wr_shared_gate_close_if_done(struct wr_shared_gate *relay)
{
    (void)pthread_mutex_lock(&relay->lock);
    bool is_done = relay->is_leaving && relay->legs.count == 0;
    (void)pthread_mutex_unlock(&relay->lock);
    if (is_done)
        close_gate_loop(relay);
}

/* Returns the next called gate_turn; NULL if there are none, or no memory for the time when it is
 * due. */
static struct wr_gate_turn *next_called(struct wr_shared_gate *relay)
{
    (void)pthread_mutex_lock(&relay->lock);
    struct wr_list_link *link = relay->called.first;
    relay->lacks_memory = link != NULL && wr_heap_reserve(&relay->dues, relay->legs.count) != 0;
    if (relay->lacks_memory)
        link = NULL;
    if (link != NULL)
        wr_list_remove(link);
    else
        relay->is_called = false;
    (void)pthread_mutex_unlock(&relay->lock);
    return link != NULL ? WR_LINKED(link, struct wr_gate_turn, link) : NULL;
}

static void step_called_turns(struct wr_shared_gate *relay)
{
    struct wr_gate_turn *gate_turn;
    while ((gate_turn = next_called(relay)) != NULL)
        wr_gate_turn_step(gate_turn);
    wr_shared_gate_close_if_done(relay);
    set_gate_timer(relay);
}

static void on_gate_timer(uv_timer_t *timer)
{
    struct wr_shared_gate *relay = timer->data;
    int64_t now = wr_pacer_now(relay->pacer), at;
    for (struct wr_heap_item *item; (item = wr_heap_peek(&relay->dues, &at)) != NULL && at <= now;) {
        (void)wr_heap_pop(&relay->dues);
        wr_gate_turn_step(WR_LINKED(item, struct wr_gate_turn, due));
    }
    step_called_turns(relay);
}

bool wr_gate_turn_end(struct wr_gate_turn *gate_turn)
{
    struct wr_shared_gate *relay = gate_turn->relay;
    (void)pthread_mutex_lock(&relay->lock);
    bool ends = !wr_list_is_linked(&gate_turn->link) && gate_turn->letters.length == 0;
    if (ends)
        (void)wr_map_remove(&relay->legs, gate_turn->key, gate_turn->key_bytes);
    (void)pthread_mutex_unlock(&relay->lock);
    if (!ends)
        return false;
    wr_gate_turn_set_due(gate_turn, WEIR_FOREVER);
    free_gate_turn(gate_turn);
    return true;
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Calls all legs for the last time if the relay is ending. */
static void call_all_turns(struct wr_shared_gate *relay)
{
    const struct wr_map_slot *slot;
    (void)pthread_mutex_lock(&relay->lock);
    if (relay->is_ending && !relay->is_leaving) {
        relay->is_leaving = true;
        (void)uv_timer_start(&relay->patience, on_end_timeout, PATIENCE_MS, 0);
        for (size_t cursor = 0; (slot = wr_map_next(&relay->legs, &cursor)) != NULL;)
            wr_list_push(&relay->called, &((struct wr_gate_turn *)slot->value)->link);
    }
    (void)pthread_mutex_unlock(&relay->lock);
}

static void on_gate_wakeup(struct wr_wakeup *wakeup)
{
    struct wr_shared_gate *relay = wakeup->uv.data;
    call_all_turns(relay);
    step_called_turns(relay);
}

void wr_shared_gate_update_connection(struct wr_shared_gate *relay)
{
    struct wr_redis_connection_view view;
    wr_redis_connection_view_get(relay->wire, &view);
    (void)pthread_mutex_lock(&relay->lock);
    relay->view.wire = view;
    (void)pthread_mutex_unlock(&relay->lock);
    if (view.down != relay->was_down && relay->options.notice != NULL)
        relay->options.notice(relay->options.notice_context, view.down ? view.why : NULL);
    relay->was_down = view.down;
}

static void *run_gate_loop(void *context)
{
    struct wr_shared_gate *relay = context;
    (void)uv_run(&relay->loop, UV_RUN_DEFAULT);
    return NULL;
}

/* Starts the thread with all signals blocked: they are for the program's own threads. */
static int start_gate_thread(struct wr_shared_gate *relay)
{
    sigset_t every, before;
    (void)sigfillset(&every);
    (void)pthread_sigmask(SIG_SETMASK, &every, &before);
    int failed = pthread_create(&relay->thread, NULL, run_gate_loop, relay);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0 ? 0 : WEIR_E_SYSTEM;
}

/* ---- new and free ---------------------------------------------------------------------------- */

static int name_process(struct wr_shared_gate *relay)
{
    uint8_t random[WR_PEER_NAME_DIGITS / 2], secret[WR_HASH_SECRET_BYTES];
    struct wr_buf who;
    if (wr_random(random, sizeof random) != 0 || wr_random(secret, sizeof secret) != 0)
        return WEIR_E_SYSTEM;
    wr_buf_init_fixed(&who, relay->who, sizeof relay->who);
    for (size_t i = 0; i < sizeof random; i++)
        wr_buf_append_hex(&who, random[i], 2, WR_HEX_SMALL);
    wr_hash_key_init(&relay->hash_key, secret);
    return who.error;
}

static int fill_shared_gate(struct wr_shared_gate *relay, const struct wr_shared_gate_options *options)
{
    const char *prefix = options->prefix != NULL ? options->prefix : "weir";
    if (strlen(prefix) > WR_SHARED_GATE_PREFIX_MAX || strpbrk(prefix, "{}") != NULL)
        return wr_invalid("the prefix of keys must be at most 100 bytes, without { and }");
    memcpy(relay->prefix, prefix, strlen(prefix) + 1);
    relay->options = *options;
    relay->packed_bytes = wr_pacer_gate_packed_bytes(relay->pacer);
    relay->packed = wr_alloc(relay->allocator, relay->packed_bytes, 8);
    wr_heap_init(&relay->dues, relay->allocator, LEGS_MAX);
    wr_map_init(&relay->legs, relay->allocator, &relay->hash_key, LEGS_MAX);
    return relay->packed != NULL ? name_process(relay) : WEIR_E_NOMEM;
}

static int open_gate_loop(struct wr_shared_gate *relay)
{
    struct wr_redis_connection_options wire = relay->options.wire;
    wire.timeout_ns = wire.timeout_ns > 0 ? wire.timeout_ns : WR_SHARED_GATE_TIMEOUT;
    wire.allocator = relay->allocator;
    if (uv_loop_init(&relay->loop) != 0)
        return WEIR_E_SYSTEM;
    int error = wr_wakeup_init(&relay->wakeup, &relay->loop, on_gate_wakeup);
    if (error == 0) {
        (void)uv_timer_init(&relay->loop, &relay->timer);
        (void)uv_timer_init(&relay->loop, &relay->patience);
        relay->wakeup.uv.data = relay->timer.data = relay->patience.data = relay;
        error = wr_redis_connection_new(&wire, &relay->loop, &relay->wire);
        if (error == 0)
            return 0;
        close_gate_loop(relay);
        (void)uv_run(&relay->loop, UV_RUN_DEFAULT);
    }
    (void)uv_loop_close(&relay->loop);
    return error;
}

static void release_shared_gate(struct wr_shared_gate *relay)
{
    const struct wr_map_slot *slot;
    wr_heap_release(&relay->dues); /* released before the legs, which contain its items */
    for (size_t cursor = 0; (slot = wr_map_next(&relay->legs, &cursor)) != NULL;)
        free_gate_turn(slot->value);
    wr_map_release(&relay->legs);
    if (relay->packed != NULL)
        wr_free(relay->allocator, relay->packed, relay->packed_bytes, 8);
    (void)pthread_mutex_destroy(&relay->lock);
    wr_free(relay->allocator, relay, sizeof *relay, _Alignof(struct wr_shared_gate));
}

static int start_shared_gate(struct wr_shared_gate *relay)
{
    const struct wr_remote_gate_callbacks lender = {on_gate_wanted, on_remote_outcome, on_gate_must_be_saved, relay};
    int error = wr_pacer_share_gates(relay->pacer, &lender);
    if (error == 0)
        error = open_gate_loop(relay);
    if (error != 0)
        return error;
    error = start_gate_thread(relay);
    if (error != 0) {
        close_gate_loop(relay);
        (void)uv_run(&relay->loop, UV_RUN_DEFAULT);
        (void)uv_loop_close(&relay->loop);
    }
    return error;
}

int wr_shared_gate_new(const struct wr_shared_gate_options *options, weir_pacer *pacer,
                       struct wr_shared_gate **ret_relay)
{
    const weir_allocator *allocator = wr_allocator_or_system(NULL);
    struct wr_shared_gate *relay = wr_alloc(allocator, sizeof *relay, _Alignof(struct wr_shared_gate));
    if (relay == NULL)
        return wr_failed(WEIR_E_NOMEM);
    relay->allocator = allocator;
    relay->pacer = pacer;
    (void)pthread_mutex_init(&relay->lock, NULL);
    int error = fill_shared_gate(relay, options);
    if (error == 0)
        error = start_shared_gate(relay);
    if (error != 0) {
        release_shared_gate(relay);
        return wr_failed(error);
    }
    *ret_relay = relay;
    return 0;
}

void wr_shared_gate_view_get(struct wr_shared_gate *relay, struct wr_shared_gate_view *ret_view)
{
    (void)pthread_mutex_lock(&relay->lock);
    *ret_view = relay->view;
    (void)pthread_mutex_unlock(&relay->lock);
}

void wr_shared_gate_free(struct wr_shared_gate *relay)
{
    if (relay == NULL)
        return;
    (void)pthread_mutex_lock(&relay->lock);
    relay->is_ending = true;
    relay->is_called = false;
    wake_gate_thread(relay, NULL);
    (void)pthread_mutex_unlock(&relay->lock);
    (void)pthread_join(relay->thread, NULL);
    (void)uv_loop_close(&relay->loop);
    release_shared_gate(relay);
}
