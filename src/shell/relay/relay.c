/* SPDX-License-Identifier: MIT */
/* relay.c - the thread that moves gates between processes, and the calls of other threads. */
#include "shell/relay/inside.h"

#include "base/alloc.h"
#include "base/error.h"
#include "shell/clock/clock.h"
#include "shell/memory/memory.h"

#include <signal.h>
#include <string.h>

#define LEGS_MAX ((size_t)1000000)
#define PATIENCE_MS 1000                   /* time limit of the last round trip when ending */
#define MEMORY_NS (100 * WEIR_MILLISECOND) /* time between attempts if there is no memory */

/* ---- calls of other threads ------------------------------------------------------------------ */

/* Finds or makes the leg of a host. Returns NULL if there is no memory. The lock is held. */
static struct wr_leg *get_leg(struct wr_relay *relay, const char *key, size_t key_bytes)
{
    struct wr_leg *leg = wr_map_get(&relay->legs, key, key_bytes);
    if (leg != NULL)
        return leg;
    leg = wr_take(relay->allocator, sizeof *leg + key_bytes, _Alignof(struct wr_leg));
    if (leg == NULL)
        return NULL;
    leg->relay = relay;
    leg->key_bytes = key_bytes;
    memcpy(leg->key, key, key_bytes);
    wr_buf_init(&leg->letters, relay->allocator, WR_LETTERS_MAX);
    if (wr_map_put(&relay->legs, leg->key, key_bytes, leg, NULL) == 0)
        return leg;
    wr_give(relay->allocator, leg, sizeof *leg + key_bytes, _Alignof(struct wr_leg));
    return NULL;
}

static void free_leg(struct wr_leg *leg)
{
    wr_buf_release(&leg->letters);
    wr_give(leg->relay->allocator, leg, sizeof *leg + leg->key_bytes, _Alignof(struct wr_leg));
}

/* Asks the thread to look at the leg. The lock is held. */
static void call_thread(struct wr_relay *relay, struct wr_leg *leg)
{
    if (leg != NULL)
        wr_list_push(&relay->called, &leg->link);
    if (!relay->is_called)
        wr_wakeup_send(&relay->wakeup);
    relay->is_called = true;
}

static void want(void *context, const char *key, size_t key_bytes)
{
    struct wr_relay *relay = context;
    (void)pthread_mutex_lock(&relay->lock);
    struct wr_leg *leg = get_leg(relay, key, key_bytes);
    if (leg != NULL) {
        leg->wanted_at = wr_pacer_now(relay->pacer);
        call_thread(relay, leg);
    }
    (void)pthread_mutex_unlock(&relay->lock);
}

static void told(void *context, const struct wr_away *away)
{
    struct wr_relay *relay = context;
    (void)pthread_mutex_lock(&relay->lock);
    struct wr_leg *leg = get_leg(relay, away->key, away->key_bytes);
    if (leg != NULL && (away->outcome != NULL || away->word == WR_WORD_LATE)) {
        struct wr_letter letter = {.start = *away->start, .word = away->word};
        if (away->outcome != NULL)
            letter.outcome = *away->outcome;
        if (letter.outcome.latency_ns == 0 && letter.start.seq != 0)
            letter.outcome.latency_ns = away->now - letter.start.sent_at;
        if (leg->letters.length + sizeof letter <= WR_LETTERS_MAX)
            wr_buf_append(&leg->letters, &letter, sizeof letter);
    }
    if (leg != NULL)
        call_thread(relay, leg);
    (void)pthread_mutex_unlock(&relay->lock);
}

static void news(void *context, const char *key, size_t key_bytes)
{
    struct wr_relay *relay = context;
    (void)pthread_mutex_lock(&relay->lock);
    struct wr_leg *leg = wr_map_get(&relay->legs, key, key_bytes);
    if (leg != NULL) {
        leg->has_news = true;
        call_thread(relay, leg);
    }
    (void)pthread_mutex_unlock(&relay->lock);
}

/* ---- time ------------------------------------------------------------------------------------ */

static void on_timer(uv_timer_t *timer);

static void set_timer(struct wr_relay *relay)
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
    (void)uv_timer_start(&relay->timer, on_timer,
                         left_ns > 0 ? (uint64_t)((left_ns + WEIR_MILLISECOND - 1) / WEIR_MILLISECOND) : 0, 0);
}

void wr_leg_due(struct wr_leg *leg, int64_t at)
{
    struct wr_relay *relay = leg->relay;
    if (wr_heap_item_waits(&leg->due))
        wr_heap_remove(&relay->dues, &leg->due);
    if (at != WEIR_FOREVER)
        (void)wr_heap_push(&relay->dues, at, &leg->due); /* next_called has reserved the room */
    set_timer(relay);
}

static void close_all(struct wr_relay *relay)
{
    if (relay->is_closing)
        return;
    relay->is_closing = true;
    wr_wakeup_close(&relay->wakeup, NULL);
    uv_close((uv_handle_t *)&relay->timer, NULL);
    uv_close((uv_handle_t *)&relay->patience, NULL);
    wr_wire_free(relay->wire);
}

/* Ends the relay although the store has not answered. */
static void on_patience(uv_timer_t *timer)
{
    close_all(timer->data);
}

void wr_relay_rest(struct wr_relay *relay)
{
    (void)pthread_mutex_lock(&relay->lock);
    bool is_done = relay->is_leaving && relay->legs.count == 0;
    (void)pthread_mutex_unlock(&relay->lock);
    if (is_done)
        close_all(relay);
}

/* Returns the next called leg; NULL if there are none, or no memory for the time when it is due. */
static struct wr_leg *next_called(struct wr_relay *relay)
{
    (void)pthread_mutex_lock(&relay->lock);
    struct wr_list_link *link = relay->called.first;
    relay->lacks_memory = link != NULL && wr_heap_reserve(&relay->dues, relay->legs.count) != 0;
    if (relay->lacks_memory)
        link = NULL;
    if (link != NULL)
        wr_list_take(link);
    else
        relay->is_called = false;
    (void)pthread_mutex_unlock(&relay->lock);
    return link != NULL ? WR_LINKED(link, struct wr_leg, link) : NULL;
}

static void look_at_called(struct wr_relay *relay)
{
    struct wr_leg *leg;
    while ((leg = next_called(relay)) != NULL)
        wr_leg_step(leg);
    wr_relay_rest(relay);
    set_timer(relay);
}

static void on_timer(uv_timer_t *timer)
{
    struct wr_relay *relay = timer->data;
    int64_t now = wr_pacer_now(relay->pacer), at;
    for (struct wr_heap_item *item; (item = wr_heap_peek(&relay->dues, &at)) != NULL && at <= now;) {
        (void)wr_heap_pop(&relay->dues);
        wr_leg_step(WR_LINKED(item, struct wr_leg, due));
    }
    look_at_called(relay);
}

bool wr_leg_end(struct wr_leg *leg)
{
    struct wr_relay *relay = leg->relay;
    (void)pthread_mutex_lock(&relay->lock);
    bool ends = !wr_list_holds(&leg->link) && leg->letters.length == 0;
    if (ends)
        (void)wr_map_remove(&relay->legs, leg->key, leg->key_bytes);
    (void)pthread_mutex_unlock(&relay->lock);
    if (!ends)
        return false;
    wr_leg_due(leg, WEIR_FOREVER);
    free_leg(leg);
    return true;
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Calls all legs for the last time if the relay is ending. */
static void call_all(struct wr_relay *relay)
{
    const struct wr_map_slot *slot;
    (void)pthread_mutex_lock(&relay->lock);
    if (relay->is_ending && !relay->is_leaving) {
        relay->is_leaving = true;
        (void)uv_timer_start(&relay->patience, on_patience, PATIENCE_MS, 0);
        for (size_t cursor = 0; (slot = wr_map_next(&relay->legs, &cursor)) != NULL;)
            wr_list_push(&relay->called, &((struct wr_leg *)slot->value)->link);
    }
    (void)pthread_mutex_unlock(&relay->lock);
}

static void on_wakeup(struct wr_wakeup *wakeup)
{
    struct wr_relay *relay = wakeup->uv.data;
    call_all(relay);
    look_at_called(relay);
}

void wr_relay_watch(struct wr_relay *relay)
{
    struct wr_wire_view view;
    wr_wire_view_get(relay->wire, &view);
    (void)pthread_mutex_lock(&relay->lock);
    relay->view.wire = view;
    (void)pthread_mutex_unlock(&relay->lock);
    if (view.down != relay->was_down && relay->options.notice != NULL)
        relay->options.notice(relay->options.notice_context, view.down ? view.why : NULL);
    relay->was_down = view.down;
}

static void *run(void *context)
{
    struct wr_relay *relay = context;
    (void)uv_run(&relay->loop, UV_RUN_DEFAULT);
    return NULL;
}

/* Starts the thread with all signals blocked: they are for the program's own threads. */
static int start_thread(struct wr_relay *relay)
{
    sigset_t every, before;
    (void)sigfillset(&every);
    (void)pthread_sigmask(SIG_SETMASK, &every, &before);
    int failed = pthread_create(&relay->thread, NULL, run, relay);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0 ? 0 : WEIR_E_SYSTEM;
}

/* ---- new and free ---------------------------------------------------------------------------- */

static int name_process(struct wr_relay *relay)
{
    uint8_t random[WR_WHO_DIGITS / 2], secret[WR_HASH_SECRET_BYTES];
    struct wr_buf who;
    if (wr_random(random, sizeof random) != 0 || wr_random(secret, sizeof secret) != 0)
        return WEIR_E_SYSTEM;
    wr_buf_init_fixed(&who, relay->who, sizeof relay->who);
    for (size_t i = 0; i < sizeof random; i++)
        wr_buf_append_hex(&who, random[i], 2, WR_HEX_SMALL);
    wr_hash_key_init(&relay->hash_key, secret);
    return who.error;
}

static int fill(struct wr_relay *relay, const struct wr_relay_options *options)
{
    const char *prefix = options->prefix != NULL ? options->prefix : "weir";
    if (strlen(prefix) > WR_RELAY_PREFIX_MAX || strpbrk(prefix, "{}") != NULL)
        return wr_invalid("the prefix of keys must be at most 100 bytes, without { and }");
    memcpy(relay->prefix, prefix, strlen(prefix) + 1);
    relay->options = *options;
    relay->packed_bytes = wr_pacer_packed_bytes(relay->pacer);
    relay->packed = wr_take(relay->allocator, relay->packed_bytes, 8);
    wr_heap_init(&relay->dues, relay->allocator, LEGS_MAX);
    wr_map_init(&relay->legs, relay->allocator, &relay->hash_key, LEGS_MAX);
    return relay->packed != NULL ? name_process(relay) : WEIR_E_NOMEM;
}

static int open_loop(struct wr_relay *relay)
{
    struct wr_wire_options wire = relay->options.wire;
    wire.timeout_ns = wire.timeout_ns > 0 ? wire.timeout_ns : WR_RELAY_TIMEOUT;
    wire.allocator = relay->allocator;
    if (uv_loop_init(&relay->loop) != 0)
        return WEIR_E_SYSTEM;
    int error = wr_wakeup_init(&relay->wakeup, &relay->loop, on_wakeup);
    if (error == 0) {
        (void)uv_timer_init(&relay->loop, &relay->timer);
        (void)uv_timer_init(&relay->loop, &relay->patience);
        relay->wakeup.uv.data = relay->timer.data = relay->patience.data = relay;
        error = wr_wire_new(&wire, &relay->loop, &relay->wire);
        if (error == 0)
            return 0;
        close_all(relay);
        (void)uv_run(&relay->loop, UV_RUN_DEFAULT);
    }
    (void)uv_loop_close(&relay->loop);
    return error;
}

static void release(struct wr_relay *relay)
{
    const struct wr_map_slot *slot;
    wr_heap_release(&relay->dues); /* released before the legs, which contain its items */
    for (size_t cursor = 0; (slot = wr_map_next(&relay->legs, &cursor)) != NULL;)
        free_leg(slot->value);
    wr_map_release(&relay->legs);
    if (relay->packed != NULL)
        wr_give(relay->allocator, relay->packed, relay->packed_bytes, 8);
    (void)pthread_mutex_destroy(&relay->lock);
    wr_give(relay->allocator, relay, sizeof *relay, _Alignof(struct wr_relay));
}

static int start(struct wr_relay *relay)
{
    const struct wr_lender lender = {want, told, news, relay};
    int error = wr_pacer_lend(relay->pacer, &lender);
    if (error == 0)
        error = open_loop(relay);
    if (error != 0)
        return error;
    error = start_thread(relay);
    if (error != 0) {
        close_all(relay);
        (void)uv_run(&relay->loop, UV_RUN_DEFAULT);
        (void)uv_loop_close(&relay->loop);
    }
    return error;
}

int wr_relay_new(const struct wr_relay_options *options, weir_pacer *pacer, struct wr_relay **ret_relay)
{
    const weir_allocator *allocator = wr_allocator_or_system(NULL);
    struct wr_relay *relay = wr_take(allocator, sizeof *relay, _Alignof(struct wr_relay));
    if (relay == NULL)
        return wr_failed(WEIR_E_NOMEM);
    relay->allocator = allocator;
    relay->pacer = pacer;
    (void)pthread_mutex_init(&relay->lock, NULL);
    int error = fill(relay, options);
    if (error == 0)
        error = start(relay);
    if (error != 0) {
        release(relay);
        return wr_failed(error);
    }
    *ret_relay = relay;
    return 0;
}

void wr_relay_look(struct wr_relay *relay, struct wr_relay_view *ret_view)
{
    (void)pthread_mutex_lock(&relay->lock);
    *ret_view = relay->view;
    (void)pthread_mutex_unlock(&relay->lock);
}

void wr_relay_free(struct wr_relay *relay)
{
    if (relay == NULL)
        return;
    (void)pthread_mutex_lock(&relay->lock);
    relay->is_ending = true;
    relay->is_called = false;
    call_thread(relay, NULL);
    (void)pthread_mutex_unlock(&relay->lock);
    (void)pthread_join(relay->thread, NULL);
    (void)uv_loop_close(&relay->loop);
    release(relay);
}
