/* SPDX-License-Identifier: MIT */
/* writer.c - the store's thread: stores due changes in transactions, reports results, and reads. */
#include "base/alloc.h"
#include "crawl/store/store_state.h"
#include "limiter/clock/cpu_slice.h"

#define NO_ROOM "the disk of the output is full; free some space, and the crawl continues by itself"
#define NO_OUTPUT "the output could not be written"
#define NO_MEMORY "out of memory"
#define MEMORY_TRIES 30 /* attempts without memory, retry_ns apart */
#define AWAY_FIRST_NS (100 * WEIR_MILLISECOND)
#define AWAY_LONGEST_NS (10 * WEIR_SECOND)

/* ---- due changes ----------------------------------------------------------------------------- */

/* Returns when the next commit is due; WEIR_FOREVER if none is. The lock is held. */
static int64_t next_commit_at(const struct wr_store *store)
{
    const struct wr_store_options *options = &store->options;
    int64_t at = WEIR_FOREVER;

    if (store->stats.state == WR_STORE_PAUSED && (store->batch.first != NULL || store->asks != NULL))
        return store->is_closing ? INT64_MIN : store->retry_at;
    bool has_posts = store->posts.first != NULL || store->batch.first != NULL;
    if (has_posts)
        at = store->posted_at + options->batch_ns;
    if (store->notes.first != NULL && store->noted_at + options->hosts_ns < at)
        at = store->noted_at + options->hosts_ns;
    bool is_much = store->posts.changes + store->batch.changes >= options->batch_changes;
    bool is_something = has_posts || store->notes.first != NULL;
    return is_something && (is_much || store->is_urgent || store->is_closing) ? INT64_MIN : at;
}

/* Moves posts, and notes that are due, into the batch. Callers that wait for this commit are in it.
 * The lock is held. */
static void fill_batch(struct wr_store *store, int64_t now)
{
    struct wr_post_queue *batch = &store->batch;
    struct wr_post *post;

    if (store->is_closing || now >= store->noted_at + store->options.hosts_ns) {
        for (post = store->notes.first; post != NULL; post = post->next) {
            struct wr_span key = post->changes[0].host.key;
            (void)wr_map_remove(&store->hosts, key.data, key.bytes);
        }
        wr_post_queue_move(&store->notes, batch);
    }
    while (store->posts.first != NULL && batch->changes < store->options.batch_changes)
        wr_post_queue_push(batch, wr_post_queue_pop(&store->posts));
    store->batch_changes = batch->changes;
    store->batch_bytes = batch->bytes;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void close_transaction(struct wr_store *store)
{
    store->is_open = store->has_output = false;
    store->applied = NULL;
}

static void undo_transaction(struct wr_store *store)
{
    store->backend->kind->undo(store->backend);
    close_transaction(store);
}

static int apply_post(struct wr_store *store, const struct wr_post *post)
{
    struct wr_backend *backend = store->backend;
    int error = post->ret_job == NULL
                    ? 0
                    : backend->kind->add_job(backend, post->settings, post->earlier, post->joins, post->ret_job);

    for (size_t i = 0; i < post->count && error == 0; i++) {
        store->has_output |= post->changes[i].kind == WR_STORE_OUTPUT;
        error = backend->kind->apply(backend, &post->changes[i]);
    }
    return error;
}

/* Sets `why` to the reason why the output could not be synced. */
static void explain_sync_error(struct wr_backend *backend, int error)
{
    const char *detail = weir_error_detail();
    struct wr_buf buf;

    wr_buf_init_fixed(&buf, backend->why, sizeof backend->why);
    wr_buf_append_string(&buf, error == WEIR_E_FULL ? NO_ROOM : detail[0] != '\0' ? detail : NO_OUTPUT);
}

static int sync_output(struct wr_store *store)
{
    if (store->options.sync == NULL)
        return 0;
    int error = store->options.sync(store->options.context);
    if (error != 0)
        explain_sync_error(store->backend, error);
    return error;
}

/* Applies the posts of the batch that are not in the transaction yet; begins one if needed. On
 * failure it undoes the whole transaction. */
static int apply_batch(struct wr_store *store)
{
    struct wr_backend *backend = store->backend;
    struct wr_post *next = store->applied == NULL ? store->batch.first : store->applied->next;
    int error = store->is_open ? 0 : backend->kind->begin(backend, wr_clock_now(store->options.wall));

    store->is_open = true;
    for (; next != NULL && error == 0; next = next->next) {
        error = apply_post(store, next);
        store->applied = next;
    }
    if (error == 0)
        error = backend->kind->flush(backend);
    if (error != 0)
        undo_transaction(store);
    return error;
}

static int commit_batch(struct wr_store *store)
{
    int error = apply_batch(store);

    if (error != 0)
        return error;
    if (store->has_output)
        error = sync_output(store);
    if (error == 0)
        error = store->backend->kind->commit(store->backend);
    if (error != 0) {
        undo_transaction(store);
        return error;
    }
    close_transaction(store);
    return 0;
}

/* ---- reporting ------------------------------------------------------------------------------- */

static void enter_store_state(struct wr_store *store, enum wr_store_state state, const char *why)
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
    /* callers that wait for room must not wait forever */
    (void)pthread_cond_broadcast(&store->moved);
    (void)pthread_mutex_unlock(&store->lock);
    if (is_new && store->options.changed != NULL)
        store->options.changed(store->options.context, state, why);
}

static void report_posts(struct wr_store *store, struct wr_post_queue *posts, int error, const char *why)
{
    struct wr_post *post;

    while ((post = wr_post_queue_pop(posts)) != NULL) {
        if (post->done != NULL)
            post->done(post->context, error, why);
        wr_post_free(store, post);
    }
}

/* Makes room in the queue for the batch that is done. Returns true if `room` has to be called. */
static bool free_queue_room(struct wr_store *store, bool is_stored)
{
    (void)pthread_mutex_lock(&store->lock);
    store->stats.commits += is_stored;
    store->stats.changes += is_stored ? store->batch_changes : 0;
    store->stats.ignored = store->backend->ignored;
    store->stats.round_trips = store->backend->round_trips;
    store->batch_changes = store->batch_bytes = 0;
    /* time of the posts that came during the commit */
    store->posted_at = wr_clock_now(store->options.clock);
    store->is_urgent = store->is_urgent && store->posts.first != NULL;
    bool is_half_free = store->posts.changes + store->notes.changes <= store->options.queue_changes / 2 &&
                        store->posts.bytes + store->notes.bytes <= store->options.queue_bytes / 2;
    bool tells = store->was_full && is_half_free;
    store->was_full = store->was_full && !is_half_free;
    (void)pthread_cond_broadcast(&store->moved);
    (void)pthread_mutex_unlock(&store->lock);
    return tells && store->options.room != NULL;
}

/* Reports all posts of the batch, then room in the queue. The statistics are updated before, and
 * the called functions may post. */
static void report_batch(struct wr_store *store, int error, const char *why)
{
    bool has_room = free_queue_room(store, error == 0);

    report_posts(store, &store->batch, error, why);
    if (has_room)
        store->options.room(store->options.context);
}

/* Fails the store permanently, with all its posts. */
static void fail_store(struct wr_store *store, int error)
{
    struct wr_post_queue rest = {0};

    enter_store_state(store, WR_STORE_FAILED, store->backend->why);
    (void)pthread_mutex_lock(&store->lock);
    for (struct wr_post *post = store->notes.first; post != NULL; post = post->next)
        (void)wr_map_remove(&store->hosts, post->changes[0].host.key.data, post->changes[0].host.key.bytes);
    wr_post_queue_move(&store->notes, &rest);
    wr_post_queue_move(&store->posts, &rest);
    (void)pthread_mutex_unlock(&store->lock);
    report_batch(store, error, store->why);
    report_posts(store, &rest, error, store->why);
}

static bool is_temporary_error(int error)
{
    return error == WEIR_E_FULL || error == WEIR_E_NOMEM || error == WEIR_E_TIMEOUT;
}

/* Returns true if memory has been short for too long. A user can make room on a disk only. */
static bool lacks_memory_too_long(struct wr_store *store, int error)
{
    if (error != WEIR_E_NOMEM)
        store->without_memory = 0;
    else
        store->without_memory++;
    if (store->without_memory <= MEMORY_TRIES)
        return false;
    memcpy(store->backend->why, NO_MEMORY, sizeof NO_MEMORY);
    return true;
}

/* Returns the first post whose caller waits, but not for room on a disk; NULL if there is none. */
static struct wr_post *find_hasty_post(struct wr_post *post)
{
    while (post != NULL && (!post->is_hasty || post->done == NULL))
        post = post->next;
    return post;
}

/* Reports WEIR_E_FULL for all hasty posts. Their changes stay queued. */
static void fail_hasty_posts(struct wr_store *store)
{
    for (;;) {
        (void)pthread_mutex_lock(&store->lock);
        struct wr_post *post = find_hasty_post(store->batch.first);
        post = post != NULL ? post : find_hasty_post(store->posts.first);
        wr_store_done *done = post != NULL ? post->done : NULL;
        if (post != NULL)
            post->done = NULL;
        (void)pthread_mutex_unlock(&store->lock);
        if (done == NULL)
            return;
        done(post->context, WEIR_E_FULL, store->backend->why);
    }
}

/* Returns the time to the next attempt. A database that is away is retried soon, then ever less
 * often. A random part keeps processes apart. */
static int64_t retry_ns(struct wr_store *store, int error, int64_t now)
{
    if (error != WEIR_E_TIMEOUT || !store->backend->kind->is_shared)
        return store->options.retry_ns;
    int64_t ns = AWAY_FIRST_NS << store->tries;
    store->tries += ns < AWAY_LONGEST_NS;
    ns = ns < AWAY_LONGEST_NS ? ns : AWAY_LONGEST_NS;
    uint64_t chance = ((uint64_t)now * 0x9e3779b97f4a7c15u) >> 32;
    return ns / 2 + (int64_t)(chance % (uint64_t)(ns / 2));
}

/* Handles a failed transaction: pauses to retry it, or fails the store. */
static void pause_or_fail(struct wr_store *store, int error, bool is_closing)
{
    if (is_temporary_error(error) && !is_closing && !lacks_memory_too_long(store, error)) {
        int64_t now = wr_clock_now(store->options.clock);
        store->retry_at = now + retry_ns(store, error, now);
        bool is_new = store->stats.state != WR_STORE_PAUSED;
        enter_store_state(store, WR_STORE_PAUSED, store->backend->why);
        if (is_new)
            fail_hasty_posts(store);
    } else {
        fail_store(store, error);
    }
}

static void write_batch(struct wr_store *store, bool is_closing)
{
    int64_t began_at = wr_clock_now(store->options.clock);
    int error = commit_batch(store);

    wr_histogram_add(&store->commit_times, &wr_store_commit_buckets, wr_clock_now(store->options.clock) - began_at);
    if (error != 0) {
        pause_or_fail(store, error, is_closing);
        return;
    }
    store->without_memory = store->tries = 0;
    enter_store_state(store, WR_STORE_RUNNING, "");
    report_batch(store, 0, "");
    if (store->backend->kind->settle(store->backend) != 0)
        fail_store(store, WEIR_E_SYSTEM);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Returns true if the query must see everything that was posted before it. */
static bool must_see_posts(const struct wr_store_read_request *ask)
{
    return ask->query.what == WR_STORE_TASKS || ask->query.what == WR_STORE_HOSTS ||
           ask->query.what == WR_STORE_ONE_HOST || ask->query.what == WR_STORE_FINGERPRINTS ||
           ask->query.what == WR_STORE_SEEDS || ask->query.what == WR_STORE_CLAIM ||
           ask->query.what == WR_STORE_CLAIM_ONE || ask->query.what == WR_STORE_RELEASE;
}

/* Makes everything that was posted visible to reads, and returns true if it succeeded. It applies
 * the changes without a commit, which comes when it is due, unless the backend reads only committed
 * changes. If the store cannot apply changes any more, only committed ones are visible. */
static bool make_posts_visible(struct wr_store *store, bool wants_notes, bool is_closing)
{
    if (store->stats.state != WR_STORE_RUNNING) /* only this thread changes the state */
        return store->stats.state == WR_STORE_FAILED || is_closing;
    for (;;) {
        (void)pthread_mutex_lock(&store->lock);
        if (wants_notes)
            store->noted_at = INT64_MIN / 2;
        if (store->posts.first != NULL || (wants_notes && store->notes.first != NULL))
            fill_batch(store, wr_clock_now(store->options.clock));
        bool is_all = store->posts.first == NULL;
        (void)pthread_mutex_unlock(&store->lock);
        bool is_seen = store->batch.first == NULL || !store->backend->kind->needs_commit;
        int error = store->batch.first != NULL && is_seen ? apply_batch(store) : 0;
        if (error != 0) {
            pause_or_fail(store, error, is_closing);
            return false;
        }
        if (is_all && is_seen)
            return true;
        write_batch(store, is_closing); /* the batch is full, or must be committed to be seen */
        if (store->stats.state != WR_STORE_RUNNING)
            return false;
        if (is_all)
            return true;
    }
}

static void report_read(struct wr_store *store, struct wr_store_read_request *ask, int error)
{
    const struct wr_backend *backend = store->backend;

    (void)pthread_mutex_lock(&store->lock);
    store->stats.damaged = backend->damaged;
    store->stats.round_trips = backend->round_trips;
    store->ask_count--;
    (void)pthread_cond_broadcast(&store->moved);
    (void)pthread_mutex_unlock(&store->lock);
    ask->done(ask->done_context, error, error == 0 ? "" : error == WEIR_E_FULL ? store->why : backend->why);
    wr_store_read_request_free(store, ask);
}

/* One round of reading. */
struct read_round {
    struct wr_store *store;
    bool is_closing, has_read;
    bool wants_notes, has_tried, is_all_seen;                     /* shared by all queries of the round */
    struct wr_store_read_request *together[WR_BACKEND_READS_MAX]; /* queries that are read at once */
    size_t count;
    struct wr_store_read_request *kept, **last_kept; /* queries kept for a later round */
};

/* Returns true if the database is away and the next attempt is not due. */
static bool is_database_away(const struct wr_store *store, bool is_closing)
{
    return store->stats.state == WR_STORE_PAUSED && store->tries > 0 && !is_closing;
}

/* Returns true if the store is closing while the database is away: there will be no retry. */
static bool is_closing_without_database(const struct read_round *turn)
{
    return turn->is_closing && turn->store->stats.state == WR_STORE_FAILED && turn->store->backend->kind->is_shared;
}

static void keep_for_next_round(struct read_round *turn, struct wr_store_read_request *ask)
{
    *turn->last_kept = ask;
    turn->last_kept = &ask->next;
}

/* Reports the result of a query. If the database is away the query is kept and repeated when it is
 * back, unless the store is closing. */
static void finish_read(struct read_round *turn, struct wr_store_read_request *ask, int error)
{
    struct wr_store *store = turn->store;
    bool waits = error == WEIR_E_TIMEOUT && store->backend->kind->is_shared && !turn->is_closing;

    if (waits && store->stats.state == WR_STORE_RUNNING)
        pause_or_fail(store, error, false);
    else if (error == WEIR_E_TIMEOUT && turn->is_closing && store->stats.state != WR_STORE_FAILED)
        fail_store(store, error); /* the timeout is waited for only once */
    if (waits && !ask->query.is_hasty) {
        keep_for_next_round(turn, ask);
        return;
    }
    report_read(store, ask, waits ? WEIR_E_FULL : error);
    turn->has_read = true;
}

static void run_one_read(struct read_round *turn, struct wr_store_read_request *ask)
{
    struct wr_store *store = turn->store;
    struct wr_backend *backend = store->backend;

    if (is_database_away(store, turn->is_closing) || is_closing_without_database(turn))
        finish_read(turn, ask, WEIR_E_TIMEOUT);
    else
        finish_read(turn, ask, backend->kind->read(backend, &ask->query, wr_clock_now(store->options.wall)));
}

static void run_pipelined_reads(struct read_round *turn)
{
    struct wr_backend *backend = turn->store->backend;
    const struct wr_store_query *queries[WR_BACKEND_READS_MAX];
    size_t count = turn->count;

    turn->count = 0;
    for (size_t i = 0; i < count; i++)
        queries[i] = &turn->together[i]->query;
    int64_t wall_now = wr_clock_now(turn->store->options.wall);
    int error = count > 1 ? backend->kind->read_many(backend, queries, count, wall_now) : WEIR_E_SYSTEM;
    for (size_t i = 0; i < count; i++) {
        if (error == 0 || (error == WEIR_E_TIMEOUT && turn->is_closing))
            finish_read(turn, turn->together[i], error);
        else
            run_one_read(turn, turn->together[i]); /* one by one, because one may be at fault */
    }
}

static void add_read_to_round(struct read_round *turn, struct wr_store_read_request *ask)
{
    const struct wr_backend_kind *kind = turn->store->backend->kind;

    if (kind->read_many != NULL && kind->can_pipeline(&ask->query)) {
        turn->together[turn->count++] = ask;
        if (turn->count == WR_BACKEND_READS_MAX)
            run_pipelined_reads(turn);
        return;
    }
    run_pipelined_reads(turn); /* runs earlier queries first */
    run_one_read(turn, ask);
}

/* Returns true if everything posted before the round is visible. */
static bool are_posts_visible(struct read_round *turn)
{
    if (!turn->has_tried)
        turn->is_all_seen = make_posts_visible(turn->store, turn->wants_notes, turn->is_closing);
    turn->has_tried = true;
    return turn->is_all_seen;
}

/* Puts the queries that were kept back at the front of the list. */
static void requeue_kept_reads(struct wr_store *store, const struct read_round *turn)
{
    if (turn->kept == NULL)
        return;
    (void)pthread_mutex_lock(&store->lock);
    *turn->last_kept = store->asks;
    if (store->last_ask == NULL)
        for (store->last_ask = turn->kept; store->last_ask->next != NULL; store->last_ask = store->last_ask->next)
            ;
    store->asks = turn->kept;
    (void)pthread_mutex_unlock(&store->lock);
}

/* Answers all queries. Keeps those that must see changes that a paused store cannot write, and all
 * while the database is away. Returns true if it answered any. */
static bool run_read_round(struct wr_store *store, bool is_closing)
{
    struct read_round turn = {.store = store, .is_closing = is_closing};
    struct wr_store_read_request *ask, *next;

    turn.last_kept = &turn.kept;
    (void)pthread_mutex_lock(&store->lock);
    ask = store->asks;
    store->asks = store->last_ask = NULL;
    (void)pthread_mutex_unlock(&store->lock);
    for (next = ask; next != NULL; next = next->next)
        /* the next owner of the host needs the notes */
        turn.wants_notes |= next->query.what == WR_STORE_RELEASE;
    for (; ask != NULL; ask = next) {
        next = ask->next;
        ask->next = NULL;
        bool is_late = is_database_away(store, is_closing) || (must_see_posts(ask) && !are_posts_visible(&turn));
        if (is_closing_without_database(&turn)) {
            finish_read(&turn, ask, WEIR_E_TIMEOUT);
        } else if (is_late && !ask->query.is_hasty) {
            keep_for_next_round(&turn, ask);
        } else if (is_late) {
            report_read(store, ask, WEIR_E_FULL);
            turn.has_read = true;
        } else {
            add_read_to_round(&turn, ask);
        }
    }
    run_pipelined_reads(&turn);
    requeue_kept_reads(store, &turn);
    return turn.has_read;
}

/* ---- the thread ------------------------------------------------------------------------------ */

void *wr_store_thread_main(void *context)
{
    struct wr_store *store = context;

    wr_cpu_slice_long();
    for (;;) {
        int64_t now = wr_clock_now(store->options.clock);
        (void)pthread_mutex_lock(&store->lock);
        int64_t at = next_commit_at(store);
        bool is_due = at <= now, is_closing = store->is_closing;
        if (is_due)
            fill_batch(store, now);
        (void)pthread_mutex_unlock(&store->lock);
        if (is_due)
            write_batch(store, is_closing);
        if (run_read_round(store, is_closing) || is_due)
            continue;
        if (is_closing)
            return NULL;
        (void)pthread_mutex_lock(&store->lock);
        at = next_commit_at(store); /* time of the next attempt for kept queries */
        (void)pthread_mutex_unlock(&store->lock);
        wr_park(&store->parker, store->options.clock, at);
    }
}
