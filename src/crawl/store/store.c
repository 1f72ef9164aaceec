/* SPDX-License-Identifier: MIT */
/* store.c - opens and closes a store. */
#include "crawl/store/store.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "crawl/store/store_state.h"
#include "limiter/memory/memory.h"

#include <signal.h>

/* a change costs half as much in a batch of thousands as in one of hundreds */
#define BATCH_NS (200 * WEIR_MILLISECOND)
#define BATCH_CHANGES 8192
#define QUEUE_CHANGES 16384
#define QUEUE_BYTES ((size_t)32 << 20)
#define HOSTS_NS WEIR_SECOND
#define RETRY_NS WEIR_SECOND
#define LEASE_NS (30 * WEIR_SECOND)
#define BUSY_NS (2 * WEIR_SECOND)
#define CHECK_NS (2 * WEIR_SECOND)

static int64_t wall_read(const weir_clock *clock)
{
    (void)clock;
    return weir_wall_now();
}

/* The default wall clock. It is only read, never waited on. */
static const weir_clock system_wall = {wall_read, NULL};

static void fill_store_options(const struct wr_store_options *options, struct wr_store_options *ret_options)
{
    *ret_options = *options;
#define DEFAULT(field, value)    \
    if (ret_options->field == 0) \
    ret_options->field = (value)
    DEFAULT(batch_ns, BATCH_NS);
    DEFAULT(batch_changes, BATCH_CHANGES);
    DEFAULT(queue_changes, QUEUE_CHANGES);
    DEFAULT(queue_bytes, QUEUE_BYTES);
    DEFAULT(robots_bytes, WR_STORE_ROBOTS_BYTES);
    DEFAULT(hosts_ns, HOSTS_NS);
    DEFAULT(retry_ns, RETRY_NS);
    DEFAULT(lease_ns, LEASE_NS);
    DEFAULT(busy_ns, BUSY_NS);
    DEFAULT(check_ns, CHECK_NS);
    DEFAULT(backend, wr_store_is_url(options->path) ? &wr_backend_pg : &wr_backend_sqlite);
    DEFAULT(clock, weir_clock_monotonic());
    DEFAULT(wall, &system_wall);
#undef DEFAULT
    ret_options->allocator = wr_allocator_or_system(options->allocator);
}

static int check_store_options(const struct wr_store_options *options)
{
    if (options->path == NULL || options->path[0] == '\0')
        return wr_invalid("a store needs a path");
    const int64_t durations[] = {options->batch_ns, options->hosts_ns, options->retry_ns,
                                 options->lease_ns, options->busy_ns,  options->check_ns};
    for (size_t i = 0; i < sizeof durations / sizeof durations[0]; i++) {
        bool may_be_negative = i == sizeof durations / sizeof durations[0] - 1;
        if ((durations[i] < 0 && !may_be_negative) || durations[i] > WEIR_DURATION_MAX)
            return wr_invalid("a store's times must be 0 (the default) to WEIR_DURATION_MAX");
    }
    return 0;
}

static int start_store_thread(struct wr_store *store)
{
    sigset_t all, before;

    (void)sigfillset(&all); /* signals are for the program's own threads */
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    int bad = pthread_create(&store->thread, NULL, wr_store_thread_main, store);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return bad == 0 ? 0 : WEIR_E_SYSTEM;
}

/* Creates the locks and starts the thread. Releases everything if it fails. */
static int start_store(struct wr_store *store)
{
    if (pthread_mutex_init(&store->lock, NULL) != 0)
        return WEIR_E_SYSTEM;
    if (pthread_cond_init(&store->moved, NULL) != 0)
        goto lock;
    if (wr_parker_init(&store->parker) != 0)
        goto moved;
    if (start_store_thread(store) == 0)
        return 0;
    wr_parker_release(&store->parker);
moved:
    (void)pthread_cond_destroy(&store->moved);
lock:
    (void)pthread_mutex_destroy(&store->lock);
    return WEIR_E_SYSTEM;
}

static void free_store_memory(struct wr_store *store)
{
    const weir_allocator *allocator = store->options.allocator;

    wr_map_release(&store->hosts);
    wr_free(allocator, (char *)(uintptr_t)store->options.path, store->path_bytes, 1);
    wr_free(allocator, store, sizeof *store, _Alignof(struct wr_store));
}

/* Allocates a store with its own copy of the path. Opens nothing. */
static int allocate_store(const struct wr_store_options *options, struct wr_store **ret_store)
{
    uint8_t secret[WR_HASH_SECRET_BYTES];
    const weir_allocator *allocator = options->allocator;
    size_t path_bytes = strlen(options->path) + 1;

    if (wr_random(secret, sizeof secret) != 0)
        return WEIR_E_SYSTEM;
    struct wr_store *store = wr_alloc(allocator, sizeof *store, _Alignof(struct wr_store));
    char *path = wr_alloc(allocator, path_bytes, 1);
    if (store == NULL || path == NULL) {
        wr_free(allocator, store, sizeof *store, _Alignof(struct wr_store));
        wr_free(allocator, path, path_bytes, 1);
        return WEIR_E_NOMEM;
    }
    memcpy(path, options->path, path_bytes);
    store->options = *options;
    store->options.path = path;
    store->path_bytes = path_bytes;
    wr_hash_key_init(&store->map_key, secret);
    wr_map_init(&store->hosts, allocator, &store->map_key, options->queue_changes);
    *ret_store = store;
    return 0;
}

int wr_store_open(const struct wr_store_options *options, struct wr_store **ret_store)
{
    struct wr_store_options filled;
    struct wr_store *store;

    int error = check_store_options(options);
    if (error != 0)
        return error;
    fill_store_options(options, &filled);
    error = allocate_store(&filled, &store);
    if (error != 0)
        return error;
    error = filled.backend->open(&store->options, &store->backend);
    if (error != 0) {
        free_store_memory(store);
        return error;
    }
    error = start_store(store);
    if (error != 0) {
        filled.backend->close(store->backend);
        free_store_memory(store);
        wr_error_set("the store's thread could not be started");
        return error;
    }
    *ret_store = store;
    return 0;
}

void wr_store_free(struct wr_store *store)
{
    if (store == NULL)
        return;
    (void)pthread_mutex_lock(&store->lock);
    store->is_closing = true;
    wr_unpark(&store->parker);
    (void)pthread_mutex_unlock(&store->lock);
    (void)pthread_join(store->thread, NULL);
    store->backend->kind->close(store->backend);
    wr_parker_release(&store->parker);
    (void)pthread_cond_destroy(&store->moved);
    (void)pthread_mutex_destroy(&store->lock);
    free_store_memory(store);
}

bool wr_store_is_url(const char *path)
{
    return strncmp(path, "postgres://", 11) == 0 || strncmp(path, "postgresql://", 13) == 0;
}

void wr_store_name(const char *path, char *ret_name, size_t name_bytes)
{
    struct wr_buf buf;

    if (wr_store_is_url(path)) {
        wr_pg_name_without_password(path, ret_name, name_bytes);
        return;
    }
    wr_buf_init_fixed(&buf, ret_name, name_bytes);
    wr_buf_append_string(&buf, path);
}

bool wr_store_is_shared(const struct wr_store *store)
{
    return store->backend->kind->is_shared;
}

const struct wr_hash_key *wr_store_hash_key(const struct wr_store *store)
{
    return &store->backend->hash_key;
}

const struct wr_buckets wr_store_commit_buckets = {
    9,
    {WEIR_MILLISECOND, 5 * WEIR_MILLISECOND, 10 * WEIR_MILLISECOND, 25 * WEIR_MILLISECOND, 50 * WEIR_MILLISECOND,
     100 * WEIR_MILLISECOND, 250 * WEIR_MILLISECOND, WEIR_SECOND, 5 * WEIR_SECOND}};

void wr_store_stats_get(struct wr_store *store, struct wr_store_stats *ret_stats)
{
    int64_t now = wr_clock_now(store->options.clock);
    (void)pthread_mutex_lock(&store->lock);
    *ret_stats = store->stats;
    ret_stats->queue_changes = store->posts.changes + store->notes.changes + store->batch_changes;
    ret_stats->queue_bytes = store->posts.bytes + store->notes.bytes + store->batch_bytes;
    if (store->posts.first != NULL || store->batch_bytes > 0)
        ret_stats->lag_ns = now > store->posted_at ? now - store->posted_at : 0;
    (void)pthread_mutex_unlock(&store->lock);
    wr_histogram_sum(&store->commit_times, &ret_stats->commit_times);
}

/* ---- forgetting a host ----------------------------------------------------------------------- */

struct stored_memory {
    bool is_there;
    weir_pace_memory memory;
};

static void on_host_to_forget(void *context, const struct wr_store_row *row)
{
    struct stored_memory *found = context;

    found->is_there = true;
    found->memory = row->host.memory;
}

int wr_store_forget_host(struct wr_store *store, struct wr_span key)
{
    struct stored_memory found = {.is_there = false};
    const struct wr_store_query query = {
        .what = WR_STORE_ONE_HOST, .key = key, .row = on_host_to_forget, .context = &found, .is_hasty = true};
    int error = wr_store_read(store, &query);

    if (error == 0 && !found.is_there)
        error = WEIR_E_ABSENT;
    if (error != 0)
        return error;
    const struct wr_store_change change = {.kind = WR_STORE_HOST,
                                           .host = {.key = key,
                                                    .memory = {.robots_delay_ns = found.memory.robots_delay_ns,
                                                               .retry_wall_at = found.memory.retry_wall_at,
                                                               .saved_wall_at = found.memory.saved_wall_at}}};
    return wr_store_post_now(store, &change, 1);
}
