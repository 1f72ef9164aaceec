/* SPDX-License-Identifier: MIT */
/* post.c - hands posts, notes and queries to the store's thread, and waits for results. */
#include "base/alloc.h"
#include "base/error.h"
#include "crawl/store/store_state.h"

/* ---- posts ----------------------------------------------------------------------------------- */

void wr_post_free(struct wr_store *store, struct wr_post *post)
{
    wr_free(store->options.allocator, post, post->block_bytes, _Alignof(struct wr_post));
}

void wr_post_queue_push(struct wr_post_queue *posts, struct wr_post *post)
{
    post->next = NULL;
    *(posts->last != NULL ? &posts->last->next : &posts->first) = post;
    posts->last = post;
    posts->changes += post->count;
    posts->bytes += post->block_bytes;
}

struct wr_post *wr_post_queue_pop(struct wr_post_queue *posts)
{
    struct wr_post *post = posts->first;

    if (post == NULL)
        return NULL;
    posts->first = post->next;
    if (posts->first == NULL)
        posts->last = NULL;
    posts->changes -= post->count;
    posts->bytes -= post->block_bytes;
    return post;
}

void wr_post_queue_move(struct wr_post_queue *from, struct wr_post_queue *to)
{
    struct wr_post *post;

    while ((post = wr_post_queue_pop(from)) != NULL)
        wr_post_queue_push(to, post);
}

static struct wr_span copy_to(char **to, struct wr_span text)
{
    struct wr_span copy = {*to, text.bytes};

    if (text.bytes > 0)
        memcpy(*to, text.data, text.bytes);
    *to += text.bytes;
    return copy;
}

static size_t text_bytes(struct wr_store_change change)
{
    struct wr_span *spans[WR_CHANGE_SPANS];
    size_t bytes = 0, count = wr_store_change_spans(&change, spans);

    for (size_t i = 0; i < count; i++)
        bytes += spans[i]->bytes;
    return bytes;
}

static struct wr_post *make_post(struct wr_store *store, const struct wr_store_change *changes, size_t count,
                                 struct wr_span settings)
{
    struct wr_span *spans[WR_CHANGE_SPANS];
    size_t bytes = sizeof(struct wr_post) + count * sizeof changes[0] + settings.bytes;

    for (size_t i = 0; i < count; i++)
        bytes += text_bytes(changes[i]);
    struct wr_post *post = wr_alloc(store->options.allocator, bytes, _Alignof(struct wr_post));
    if (post == NULL)
        return NULL;
    char *text = (char *)(post->changes + count);
    post->block_bytes = bytes;
    post->count = count;
    post->settings = copy_to(&text, settings);
    for (size_t i = 0; i < count; i++) {
        post->changes[i] = changes[i];
        size_t span_count = wr_store_change_spans(&post->changes[i], spans);
        for (size_t s = 0; s < span_count; s++)
            *spans[s] = copy_to(&text, *spans[s]);
    }
    return post;
}

/* ---- waiting --------------------------------------------------------------------------------- */

struct store_waiter {
    struct wr_store *store;
    bool is_over;
    int error;
    char why[WR_BACKEND_WHY_BYTES];
};

static void end_store_wait(void *context, int error, const char *why)
{
    struct store_waiter *waiter = context;
    struct wr_store *store = waiter->store;
    size_t bytes = strnlen(why, sizeof waiter->why - 1);

    (void)pthread_mutex_lock(&store->lock);
    waiter->error = error;
    memcpy(waiter->why, why, bytes);
    waiter->why[bytes] = '\0';
    waiter->is_over = true;
    (void)pthread_cond_broadcast(&store->moved);
    (void)pthread_mutex_unlock(&store->lock);
}

static void note_store_error(const struct wr_store *store, const char *why)
{
    const struct wr_backend *backend = store->backend;

    wr_error_set_cause(backend->kind->noun, backend->place, why);
}

static int wait_for_result(struct store_waiter *waiter)
{
    struct wr_store *store = waiter->store;

    (void)pthread_mutex_lock(&store->lock);
    while (!waiter->is_over)
        (void)pthread_cond_wait(&store->moved, &store->lock);
    (void)pthread_mutex_unlock(&store->lock);
    if (waiter->error != 0)
        note_store_error(store, waiter->why);
    return waiter->error;
}

/* ---- the queue ------------------------------------------------------------------------------- */

static int check_caller(const struct wr_store *store, bool waits)
{
    if (waits && pthread_equal(pthread_self(), store->thread))
        return wr_invalid("the store's own thread cannot wait for the store; give a done function");
    return 0;
}

static int note_store_failure(const struct wr_store *store, int error)
{
    note_store_error(store, store->why);
    return error;
}

/* Returns true if the post fits into the queue. One larger than the whole queue fits when that is
 * empty. */
static bool fits_into_queue(const struct wr_store *store, const struct wr_post *post)
{
    size_t changes = store->posts.changes + store->notes.changes + store->batch_changes;
    size_t bytes = store->posts.bytes + store->notes.bytes + store->batch_bytes;

    return bytes == 0 || (changes + post->count <= store->options.queue_changes &&
                          bytes + post->block_bytes <= store->options.queue_bytes);
}

/* Waits for room if `waits`. The lock is held. Fails with WEIR_E_FULL or WEIR_E_SYSTEM. */
static int wait_for_queue_room(struct wr_store *store, const struct wr_post *post, bool waits)
{
    while (store->stats.state != WR_STORE_FAILED && !fits_into_queue(store, post)) {
        if (post->is_hasty && store->stats.state == WR_STORE_PAUSED)
            break;
        store->was_full = true;
        if (!waits)
            return WEIR_E_FULL;
        store->is_urgent = true;
        wr_unpark(&store->parker);
        (void)pthread_cond_wait(&store->moved, &store->lock);
    }
    if (post->is_hasty && store->stats.state == WR_STORE_PAUSED)
        return note_store_failure(store, WEIR_E_FULL);
    return store->stats.state == WR_STORE_FAILED ? note_store_failure(store, WEIR_E_SYSTEM) : 0;
}

static int enqueue_post(struct wr_store *store, struct wr_post *post, bool waits)
{
    (void)pthread_mutex_lock(&store->lock);
    int error = wait_for_queue_room(store, post, waits);
    if (error == 0) {
        bool was_empty = store->posts.first == NULL && store->batch_bytes == 0;
        if (was_empty)
            store->posted_at = wr_clock_now(store->options.clock);
        wr_post_queue_push(&store->posts, post);
        store->is_urgent |= waits;
        if (was_empty || waits || store->posts.changes + store->batch_changes >= store->options.batch_changes)
            wr_unpark(&store->parker);
    }
    (void)pthread_mutex_unlock(&store->lock);
    return error;
}

/* Enqueues the post. Waits for its result if `done` is NULL. Frees the post on failure. */
static int submit_post(struct wr_store *store, struct wr_post *post, wr_store_done *done, void *context)
{
    struct store_waiter waiter = {.store = store};

    post->done = done != NULL ? done : end_store_wait;
    post->context = done != NULL ? context : &waiter;
    int error = enqueue_post(store, post, done == NULL);
    if (error != 0) {
        wr_post_free(store, post);
        return error;
    }
    return done != NULL ? 0 : wait_for_result(&waiter);
}

static int post_all(struct wr_store *store, const struct wr_store_change *changes, size_t count, wr_store_done *done,
                    void *context, bool is_hasty)
{
    int error = check_caller(store, done == NULL);

    for (size_t i = 0; i < count && error == 0; i++)
        error = wr_store_change_check(&changes[i]);
    if (error != 0)
        return error;
    struct wr_post *post = make_post(store, changes, count, (struct wr_span){NULL, 0});
    if (post == NULL)
        return WEIR_E_NOMEM;
    post->is_hasty = is_hasty;
    return submit_post(store, post, done, context);
}

int wr_store_post(struct wr_store *store, const struct wr_store_change *changes, size_t count, wr_store_done *done,
                  void *context)
{
    return post_all(store, changes, count, done, context, false);
}

int wr_store_post_now(struct wr_store *store, const struct wr_store_change *changes, size_t count)
{
    return post_all(store, changes, count, NULL, NULL, true);
}

static int post_new_job(struct wr_store *store, struct wr_span settings, int64_t earlier, bool joins, int64_t *ret_job)
{
    int64_t job = 0;
    int error = check_caller(store, true);

    if (error != 0)
        return error;
    if (settings.bytes > WR_STORE_SETTINGS_MAX || !wr_span_is_clean(settings))
        return wr_invalid("a job's settings must be clean text of at most WR_STORE_SETTINGS_MAX bytes");
    struct wr_post *post = make_post(store, NULL, 0, settings);
    if (post == NULL)
        return WEIR_E_NOMEM;
    post->is_hasty = true;
    post->earlier = earlier;
    post->joins = joins;
    post->ret_job = &job;
    error = submit_post(store, post, NULL, NULL);
    if (error == 0)
        *ret_job = job;
    return error;
}

int wr_store_add_job(struct wr_store *store, struct wr_span settings, int64_t earlier, int64_t *ret_job)
{
    return post_new_job(store, settings, earlier, false, ret_job);
}

int wr_store_join_job(struct wr_store *store, struct wr_span settings, int64_t earlier, int64_t *ret_job)
{
    return post_new_job(store, settings, earlier, true, ret_job);
}

/* ---- hosts ----------------------------------------------------------------------------------- */

#define LONG_AGO (INT64_MIN / 2) /* value of noted_at that makes all notes due */

/* Adds a note, which the store owns if it returns 0. The lock is held. */
static int add_note(struct wr_store *store, struct wr_post *post)
{
    struct wr_span key = post->changes[0].host.key;
    int error = wait_for_queue_room(store, post, false);

    if (error == 0)
        error = wr_map_put(&store->hosts, key.data, key.bytes, post, NULL);
    if (error != 0)
        return error;
    if (store->notes.first == NULL)
        store->noted_at = wr_clock_now(store->options.clock);
    wr_post_queue_push(&store->notes, post);
    bool are_many = store->notes.changes >= store->options.batch_changes; /* keeps room for posts */
    if (are_many)
        store->noted_at = LONG_AGO;
    if (are_many || store->notes.first == post)
        wr_unpark(&store->parker);
    return 0;
}

int wr_store_note_host(struct wr_store *store, const struct wr_store_host *host)
{
    struct wr_store_change change = {.kind = WR_STORE_HOST, .host = *host};
    int error = wr_store_change_check(&change);

    if (error != 0)
        return error;
    bool is_urgent = host->memory.retry_wall_at > wr_clock_now(store->options.wall);
    (void)pthread_mutex_lock(&store->lock);
    struct wr_post *note = wr_map_get(&store->hosts, host->key.data, host->key.bytes);
    if (note != NULL) {
        note->changes[0].host.memory = host->memory;
    } else {
        struct wr_post *post = make_post(store, &change, 1, (struct wr_span){NULL, 0});
        error = post == NULL ? WEIR_E_NOMEM : add_note(store, post);
        if (error != 0 && post != NULL)
            wr_post_free(store, post);
    }
    if (error == 0 && is_urgent) {
        store->noted_at = LONG_AGO;
        wr_unpark(&store->parker);
    }
    (void)pthread_mutex_unlock(&store->lock);
    return error;
}

/* ---- reading --------------------------------------------------------------------------------- */

void wr_store_read_request_free(struct wr_store *store, struct wr_store_read_request *ask)
{
    wr_free(store->options.allocator, ask, sizeof *ask + ask->query.key.bytes, _Alignof(struct wr_store_read_request));
}

static int enqueue_read(struct wr_store *store, struct wr_store_read_request *ask, bool waits)
{
    (void)pthread_mutex_lock(&store->lock);
    while (waits && store->ask_count >= WR_STORE_READS_MAX)
        (void)pthread_cond_wait(&store->moved, &store->lock);
    int error = store->ask_count >= WR_STORE_READS_MAX ? WEIR_E_FULL : 0;
    if (error == 0) {
        *(store->last_ask != NULL ? &store->last_ask->next : &store->asks) = ask;
        store->last_ask = ask;
        store->ask_count++;
        wr_unpark(&store->parker);
    }
    (void)pthread_mutex_unlock(&store->lock);
    return error;
}

int wr_store_read(struct wr_store *store, const struct wr_store_query *query)
{
    struct store_waiter waiter = {.store = store};
    int error = check_caller(store, query->done == NULL);

    if (error != 0)
        return error;
    if (query->what > WR_STORE_CHECK || query->row == NULL || query->key.bytes > WR_URL_MAX)
        return wr_invalid(
            "a query needs a kind of enum wr_store_query_kind, a row function, and a key that is no longer "
            "than WR_URL_MAX");
    struct wr_store_read_request *ask =
        wr_alloc(store->options.allocator, sizeof *ask + query->key.bytes, _Alignof(struct wr_store_read_request));
    if (ask == NULL)
        return WEIR_E_NOMEM;
    char *text = ask->key;
    ask->query = *query;
    ask->query.key = copy_to(&text, query->key);
    /* `done` of a waiting caller needs another context than `row`. */
    ask->done = query->done != NULL ? query->done : end_store_wait;
    ask->done_context = query->done != NULL ? query->context : &waiter;
    error = enqueue_read(store, ask, query->done == NULL);
    if (error != 0) {
        wr_store_read_request_free(store, ask);
        return error;
    }
    return query->done != NULL ? 0 : wait_for_result(&waiter);
}
