/* SPDX-License-Identifier: MIT */
/* writer.c - the store's thread: gathers what is due into a transaction, tells how it went, and reads. */
#include "base/alloc.h"
#include "shell/store/state.h"

static const char no_room_for_output[] = "the output could not be synced";

/* ---- what is due --------------------------------------------------------------------------------------- */

/* When the next transaction is due; WEIR_FOREVER: there is nothing to write. With the lock. */
static int64_t due_at(const struct wr_store *store)
{
    const struct wr_store_options *options = &store->options;
    int64_t at = WEIR_FOREVER;

    if (store->batch.first != NULL)
        return store->is_closing ? INT64_MIN : store->retry_at;
    if (store->posts.first != NULL)
        at = store->posted_at + options->batch_ns;
    if (store->notes.first != NULL && store->noted_at + options->hosts_ns < at)
        at = store->noted_at + options->hosts_ns;
    bool is_much = store->posts.changes >= options->batch_changes;
    bool is_something = store->posts.first != NULL || store->notes.first != NULL;
    return is_something && (is_much || store->is_urgent || store->is_closing) ? INT64_MIN : at;
}

/* Fills the batch. Notes go with the posts that wait anyway once they are due. With the lock. */
static void gather(struct wr_store *store, int64_t now)
{
    struct wr_posts *batch = &store->batch;
    struct wr_post *post;

    if (store->is_closing || now >= store->noted_at + store->options.hosts_ns) {
        for (post = store->notes.first; post != NULL; post = post->next) {
            struct wr_span key = post->changes[0].host.key;
            (void)wr_map_remove(&store->hosts, key.data, key.bytes);
        }
        wr_posts_move(&store->notes, batch);
    }
    while (store->posts.first != NULL && batch->changes < store->options.batch_changes)
        wr_posts_push(batch, wr_posts_pop(&store->posts));
    store->posted_at = now;
    store->is_urgent = store->is_urgent && store->posts.first != NULL;
    store->batch_changes = batch->changes;
    store->batch_bytes = batch->bytes;
}

/* ---- writing ------------------------------------------------------------------------------------------- */

static int apply(struct wr_store *store, const struct wr_post *post, bool *has_output)
{
    struct wr_backend *backend = store->backend;
    int error = post->ret_job == NULL ? 0 : backend->kind->add_job(backend, post->settings, post->ret_job);

    for (size_t i = 0; i < post->count && error == 0; i++) {
        *has_output |= post->changes[i].kind == WR_STORE_OUTPUT;
        error = backend->kind->apply(backend, &post->changes[i]);
    }
    return error;
}

static int sync_output(struct wr_store *store)
{
    if (store->options.sync == NULL)
        return 0;
    int error = store->options.sync(store->options.context);
    if (error != 0)
        memcpy(store->backend->why, no_room_for_output, sizeof no_room_for_output);
    return error;
}

static int transact(struct wr_store *store)
{
    struct wr_backend *backend = store->backend;
    bool has_output = false;
    int error = backend->kind->begin(backend, wr_clock_now(store->options.wall));

    for (const struct wr_post *post = store->batch.first; post != NULL && error == 0; post = post->next)
        error = apply(store, post, &has_output);
    if (error == 0 && has_output)
        error = sync_output(store);
    if (error == 0)
        error = backend->kind->commit(backend);
    if (error != 0)
        backend->kind->undo(backend);
    return error;
}

/* ---- telling ------------------------------------------------------------------------------------------- */

static void enter(struct wr_store *store, enum wr_store_state state, const char *why)
{
    (void)pthread_mutex_lock(&store->lock);
    bool is_new = store->stats.state != state;
    store->stats.state = state;
    if (is_new) {
        size_t bytes = strnlen(why, sizeof store->why - 1);
        memcpy(store->why, why, bytes);
        store->why[bytes] = '\0';
        store->stats.pauses += state == WR_STORE_PAUSED;
    }
    (void)pthread_cond_broadcast(&store->moved); /* who waits for room shall not wait for ever */
    (void)pthread_mutex_unlock(&store->lock);
    if (is_new && store->options.changed != NULL)
        store->options.changed(store->options.context, state, why);
}

static void tell(struct wr_store *store, struct wr_posts *posts, int error, const char *why)
{
    struct wr_post *post;

    while ((post = wr_posts_pop(posts)) != NULL) {
        if (post->done != NULL)
            post->done(post->context, error, why);
        wr_post_free(store, post);
    }
}

/* The batch is done with: there is room again. True: somebody is to be told. */
static bool make_room(struct wr_store *store, bool is_stored)
{
    (void)pthread_mutex_lock(&store->lock);
    store->stats.commits += is_stored;
    store->stats.changes += is_stored ? store->batch_changes : 0;
    store->stats.ignored = store->backend->ignored;
    store->batch_changes = store->batch_bytes = 0;
    bool is_half_free = store->posts.changes + store->notes.changes <= store->options.queue_changes / 2 &&
                        store->posts.bytes + store->notes.bytes <= store->options.queue_bytes / 2;
    bool tells = store->was_full && is_half_free;
    store->was_full = store->was_full && !is_half_free;
    (void)pthread_cond_broadcast(&store->moved);
    (void)pthread_mutex_unlock(&store->lock);
    return tells && store->options.room != NULL;
}

/* All of the batch, and then that there is room. Whoever is told finds it counted, and may post again. */
static void tell_batch(struct wr_store *store, int error, const char *why)
{
    bool has_room = make_room(store, error == 0);

    tell(store, &store->batch, error, why);
    if (has_room)
        store->options.room(store->options.context);
}

/* Nothing can be stored any more. */
static void give_up(struct wr_store *store, int error)
{
    struct wr_posts rest = {0};

    enter(store, WR_STORE_FAILED, store->backend->why);
    (void)pthread_mutex_lock(&store->lock);
    for (struct wr_post *post = store->notes.first; post != NULL; post = post->next)
        (void)wr_map_remove(&store->hosts, post->changes[0].host.key.data, post->changes[0].host.key.bytes);
    wr_posts_move(&store->notes, &rest);
    wr_posts_move(&store->posts, &rest);
    (void)pthread_mutex_unlock(&store->lock);
    tell_batch(store, error, store->why);
    tell(store, &rest, error, store->why);
}

static bool may_pass(int error)
{
    return error == WEIR_E_FULL || error == WEIR_E_NOMEM || error == WEIR_E_TIMEOUT;
}

static void write_batch(struct wr_store *store, bool is_closing)
{
    int error = transact(store);

    if (may_pass(error) && !is_closing) {
        store->retry_at = wr_clock_now(store->options.clock) + store->options.retry_ns;
        enter(store, WR_STORE_PAUSED, store->backend->why);
        return;
    }
    if (error != 0) {
        give_up(store, error);
        return;
    }
    enter(store, WR_STORE_RUNS, "");
    tell_batch(store, 0, "");
    if (store->backend->kind->settle(store->backend) != 0)
        give_up(store, WEIR_E_SYSTEM);
}

static void read_all(struct wr_store *store, struct wr_ask *ask)
{
    struct wr_backend *backend = store->backend;

    while (ask != NULL) {
        struct wr_ask *next = ask->next;
        int error = backend->kind->read(backend, &ask->query, wr_clock_now(store->options.wall));
        (void)pthread_mutex_lock(&store->lock);
        store->stats.damaged = backend->damaged;
        store->ask_count--;
        (void)pthread_cond_broadcast(&store->moved);
        (void)pthread_mutex_unlock(&store->lock);
        ask->done(ask->done_context, error, error == 0 ? "" : backend->why);
        wr_ask_free(store, ask);
        ask = next;
    }
}

/* ---- the thread ---------------------------------------------------------------------------------------- */

void *wr_store_run(void *context)
{
    struct wr_store *store = context;

    for (;;) {
        int64_t now = wr_clock_now(store->options.clock);
        (void)pthread_mutex_lock(&store->lock);
        int64_t at = due_at(store);
        bool is_due = at <= now, is_closing = store->is_closing;
        if (is_due && store->batch.first == NULL)
            gather(store, now);
        struct wr_ask *asks = store->asks;
        store->asks = store->last_ask = NULL;
        (void)pthread_mutex_unlock(&store->lock);
        if (is_due)
            write_batch(store, is_closing);
        read_all(store, asks);
        if (is_due || asks != NULL)
            continue;
        if (is_closing)
            return NULL;
        wr_park(&store->parker, store->options.clock, at);
    }
}
