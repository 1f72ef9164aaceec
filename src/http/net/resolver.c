/* SPDX-License-Identifier: MIT */
/* resolver.c - names, their queues, and the threads that look them up.
 *
 * A name is in one list at a time: kept (the answer is cached), quick or slow (waits for a lookup),
 * or running. One lock guards everything; no lookup holds it.
 *
 * A worker without work parks. A worker is woken when a name is queued, and when one is taken while
 * others wait. So while names wait, at least one worker is awake, in a lookup, or parked until the
 * next young lookup becomes slow, because then another may start.
 */
#include "http/net/resolver.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/map.h"
#include "limiter/clock/clock.h"
#include "limiter/memory/memory.h"

#include <pthread.h>
#include <signal.h>

#define THREADS_DEFAULT 32
#define THREADS_MAX 1024
#define NAMES_DEFAULT 16384
#define NAMES_MAX ((uint32_t)1 << 24)
#define FOUND_DEFAULT (5 * WEIR_MINUTE)
#define ABSENT_DEFAULT (30 * WEIR_SECOND)
#define FAILED_DEFAULT (5 * WEIR_SECOND)
#define SLOW_DEFAULT WEIR_SECOND
#define SLOW_FOR (5 * WEIR_MINUTE)      /* a domain counts as slow, unless a lookup is quick */
#define SLOW_MARKS 1024                 /* must be a power of two */
#define STACK_BYTES ((size_t)512 << 10) /* glibc's resolver needs some 100 KB */

struct names {
    struct wr_dns_name *first, *last;
    uint32_t count;
};

struct wr_dns_name {
    struct wr_dns_name *prev, *next; /* in the list `in` */
    struct names *in;
    struct wr_dns_query *queries;
    struct wr_dns_answer answer;
    int64_t until;      /* expiry of a cached answer */
    int64_t started_at; /* start of a running lookup */
    bool is_slow;       /* its lookup started as a slow one */
    uint16_t bytes;
    char text[]; /* NUL-terminated */
};

enum worker_place {
    WORKER_FREE,      /* not in a lookup; notices a close soon */
    WORKER_IN_LOOKUP, /* in a lookup, which may take long */
    WORKER_DETACHED,  /* the resolver was freed meanwhile */
};

/* A thread. Uses the system's memory: a lookup may outlive the resolver and its allocator. */
struct worker {
    struct worker *next;          /* next idle worker */
    struct worker *other, **back; /* links all workers */
    struct wr_resolver *resolver;
    struct wr_parker parker;
    enum worker_place place; /* guarded by parker.lock */
    char text[WR_NAME_MAX + 1];
};

struct wr_resolver {
    struct wr_resolver_options options;
    pthread_mutex_t lock;
    struct wr_hash_key hash_key;
    struct wr_map map;
    struct names kept; /* least recently used first */
    struct names quick, slow, running;
    struct worker *idle, *all;
    uint32_t workers;
    pthread_cond_t changed; /* signalled when a worker ends after closing */
    uint64_t lookups;
    bool is_closed;
    int64_t slow_until[SLOW_MARKS]; /* end of slowness, by hash of the domain */
};

/* ---- lists ---- */

static void unlink_name(struct wr_dns_name *name)
{
    struct names *names = name->in;

    *(name->prev != NULL ? &name->prev->next : &names->first) = name->next;
    *(name->next != NULL ? &name->next->prev : &names->last) = name->prev;
    names->count--;
    name->in = NULL;
}

static void link_name(struct names *names, struct wr_dns_name *name)
{
    name->prev = names->last;
    name->next = NULL;
    *(names->last != NULL ? &names->last->next : &names->first) = name;
    names->last = name;
    names->count++;
    name->in = names;
}

static void move_name(struct wr_dns_name *name, struct names *to)
{
    unlink_name(name);
    link_name(to, name);
}

static void free_name(struct wr_resolver *resolver, struct wr_dns_name *name)
{
    unlink_name(name);
    (void)wr_map_remove(&resolver->map, name->text, name->bytes);
    wr_free(resolver->options.allocator, name, sizeof *name + name->bytes + 1, _Alignof(struct wr_dns_name));
}

static int add_name(struct wr_resolver *resolver, struct wr_span text, struct wr_dns_name **ret_name)
{
    if (resolver->map.count == resolver->options.names_max && resolver->kept.first != NULL)
        free_name(resolver, resolver->kept.first);
    struct wr_dns_name *name =
        wr_alloc(resolver->options.allocator, sizeof *name + text.bytes + 1, _Alignof(struct wr_dns_name));
    if (name == NULL)
        return WEIR_E_NOMEM;
    name->bytes = (uint16_t)text.bytes;
    memcpy(name->text, text.data, text.bytes);
    int error = wr_map_put(&resolver->map, name->text, name->bytes, name, NULL);
    if (error < 0) {
        wr_free(resolver->options.allocator, name, sizeof *name + name->bytes + 1, _Alignof(struct wr_dns_name));
        return error;
    }
    *ret_name = name;
    return 0;
}

/* ---- slow domains ---- */

/* Returns the mark of a name's last two labels, because names under one domain mostly share
 * servers. Two domains may share a mark by chance; then one may wait a little too long. */
static int64_t *slow_mark_of(struct wr_resolver *resolver, const struct wr_dns_name *name)
{
    size_t from = name->bytes;
    int dots = 0;

    while (from > 0 && dots < 2) {
        from--;
        dots += name->text[from] == '.' && from + 1 < name->bytes;
    }
    from += dots == 2;
    uint64_t hash = wr_hash(&resolver->hash_key, name->text + from, name->bytes - from);
    return &resolver->slow_until[hash & (SLOW_MARKS - 1)];
}

static bool is_young(const struct wr_resolver *resolver, const struct wr_dns_name *name, int64_t now)
{
    return !name->is_slow && now - name->started_at < resolver->options.slow_ns;
}

/* Returns the next name to look up, or NULL with the time to look again in *ret_wake_at. */
static struct wr_dns_name *choose_name(struct wr_resolver *resolver, int64_t now, int64_t *ret_wake_at)
{
    uint32_t slow_places = resolver->options.threads / 2, young = 0;
    int64_t wake_at = WEIR_FOREVER;

    for (struct wr_dns_name *name = resolver->running.first; name != NULL; name = name->next) {
        if (is_young(resolver, name, now)) {
            young++;
            if (wake_at == WEIR_FOREVER) /* the list is in the order of starts */
                wake_at = name->started_at + resolver->options.slow_ns;
        } else {
            *slow_mark_of(resolver, name) = now + SLOW_FOR;
        }
    }
    if (young < resolver->options.threads - slow_places)
        while (resolver->quick.first != NULL) {
            if (*slow_mark_of(resolver, resolver->quick.first) <= now)
                return resolver->quick.first;
            move_name(resolver->quick.first, &resolver->slow);
        }
    if (resolver->running.count - young < slow_places && resolver->slow.first != NULL) {
        resolver->slow.first->is_slow = true;
        return resolver->slow.first;
    }
    *ret_wake_at = resolver->quick.first != NULL ? wake_at : WEIR_FOREVER;
    return NULL;
}

/* ---- workers ---- */

static int64_t cache_time(const struct wr_resolver_options *options, const struct wr_dns_answer *answer)
{
    switch ((enum wr_dns_answer_kind)answer->kind) {
    case WR_DNS_FOUND:
        return options->found_ns;
    case WR_DNS_ABSENT:
        return options->absent_ns;
    case WR_DNS_SCARCE:
        return 0;
    case WR_DNS_FAILED:
        break;
    }
    return options->failed_ns;
}

/* Stores an answer and delivers it to all queries of the name. */
static void deliver_answer(struct wr_resolver *resolver, struct wr_dns_name *name, const struct wr_dns_answer *found)
{
    int64_t now = wr_clock_now(resolver->options.clock);

    if (now - name->started_at < resolver->options.slow_ns)
        *slow_mark_of(resolver, name) = 0;
    name->is_slow = false;
    name->answer = *found;
    name->until = now + cache_time(&resolver->options, found);
    move_name(name, &resolver->kept);
    while (name->queries != NULL) {
        struct wr_dns_query *query = name->queries;
        name->queries = query->next;
        if (query->next != NULL)
            query->next->back = &name->queries;
        query->name = NULL;
        query->answer = *found;
        query->on_answer(query);
    }
}

static void remove_idle_worker(struct wr_resolver *resolver, struct worker *worker)
{
    struct worker **link = &resolver->idle;

    while (*link != NULL && *link != worker)
        link = &(*link)->next;
    if (*link != NULL)
        *link = worker->next;
}

static int start_worker(struct wr_resolver *resolver);

/* Wakes or starts a worker for waiting names. Returns WEIR_E_SYSTEM if no worker exists. */
static int wake_worker(struct wr_resolver *resolver)
{
    struct worker *worker = resolver->idle;

    if (worker != NULL) {
        resolver->idle = worker->next;
        wr_unpark(&worker->parker);
        return 0;
    }
    if (resolver->workers < resolver->options.threads && start_worker(resolver) < 0 && resolver->workers == 0)
        return WEIR_E_SYSTEM;
    return 0;
}

/* Returns false if the resolver was freed during the lookup. */
static bool end_lookup(struct worker *worker)
{
    (void)pthread_mutex_lock(&worker->parker.lock);
    bool is_welcome = worker->place == WORKER_IN_LOOKUP;
    worker->place = WORKER_FREE;
    (void)pthread_mutex_unlock(&worker->parker.lock);
    return is_welcome;
}

static bool look_up_name(struct worker *worker, struct wr_dns_name *name)
{
    struct wr_resolver *resolver = worker->resolver;
    wr_lookup *lookup = resolver->options.lookup;
    void *context = resolver->options.lookup_context;
    struct wr_dns_answer found = {.kind = WR_DNS_FAILED};

    name->started_at = wr_clock_now(resolver->options.clock);
    move_name(name, &resolver->running);
    resolver->lookups++;
    if (resolver->quick.first != NULL || resolver->slow.first != NULL)
        (void)wake_worker(resolver);
    memcpy(worker->text, name->text, (size_t)name->bytes + 1);
    worker->place = WORKER_IN_LOOKUP; /* readers hold the resolver's lock, held here as well */
    (void)pthread_mutex_unlock(&resolver->lock);
    lookup(context, worker->text, &found);
    if (!end_lookup(worker))
        return false;
    (void)pthread_mutex_lock(&resolver->lock);
    deliver_answer(resolver, name, &found);
    return true;
}

static void park_worker(struct wr_resolver *resolver, struct worker *worker, int64_t wake_at)
{
    worker->next = resolver->idle;
    resolver->idle = worker;
    (void)pthread_mutex_unlock(&resolver->lock);
    wr_park(&worker->parker, resolver->options.clock, wake_at);
    (void)pthread_mutex_lock(&resolver->lock);
    remove_idle_worker(resolver, worker);
}

static void free_worker(struct worker *worker)
{
    wr_parker_release(&worker->parker);
    wr_free(weir_allocator_system(), worker, sizeof *worker, _Alignof(struct worker));
}

/* Removes a worker from the resolver. The resolver's lock is held. */
static void unlink_worker(struct worker *worker)
{
    *worker->back = worker->other;
    if (worker->other != NULL)
        worker->other->back = worker->back;
    worker->resolver->workers--;
}

static void *run_worker(void *argument)
{
    struct worker *worker = argument;
    struct wr_resolver *resolver = worker->resolver;
    bool is_left_behind = false;

    (void)pthread_mutex_lock(&resolver->lock);
    while (!is_left_behind && !resolver->is_closed) {
        int64_t wake_at = WEIR_FOREVER;
        struct wr_dns_name *name = choose_name(resolver, wr_clock_now(resolver->options.clock), &wake_at);
        if (name != NULL)
            is_left_behind = !look_up_name(worker, name);
        else
            park_worker(resolver, worker, wake_at);
    }
    if (!is_left_behind) {
        unlink_worker(worker);
        (void)pthread_cond_signal(&resolver->changed);
        (void)pthread_mutex_unlock(&resolver->lock);
    }
    free_worker(worker);
    return NULL;
}

/* Starts a thread that blocks all signals, so that the program's threads handle them. */
static int start_lookup_thread(struct worker *worker)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;

    if (pthread_attr_init(&attributes) != 0)
        return WEIR_E_SYSTEM;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failure = pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    failure = failure != 0 ? failure : pthread_attr_setstacksize(&attributes, STACK_BYTES);
    failure = failure != 0 ? failure : pthread_create(&thread, &attributes, run_worker, worker);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return failure == 0 ? 0 : WEIR_E_SYSTEM;
}

static int start_worker(struct wr_resolver *resolver)
{
    struct worker *worker = wr_alloc(weir_allocator_system(), sizeof *worker, _Alignof(struct worker));

    if (worker == NULL)
        return WEIR_E_NOMEM;
    worker->resolver = resolver;
    if (wr_parker_init(&worker->parker) < 0) {
        wr_free(weir_allocator_system(), worker, sizeof *worker, _Alignof(struct worker));
        return WEIR_E_SYSTEM;
    }
    if (start_lookup_thread(worker) < 0) {
        free_worker(worker);
        return WEIR_E_SYSTEM;
    }
    worker->other = resolver->all;
    worker->back = &resolver->all;
    if (worker->other != NULL)
        worker->other->back = &worker->other;
    resolver->all = worker;
    resolver->workers++;
    return 0;
}

/* ---- asking ---- */

static void add_query(struct wr_dns_name *name, struct wr_dns_query *query)
{
    query->name = name;
    query->next = name->queries;
    query->back = &name->queries;
    if (query->next != NULL)
        query->next->back = &query->next;
    name->queries = query;
}

static void remove_query(struct wr_dns_query *query)
{
    *query->back = query->next;
    if (query->next != NULL)
        query->next->back = query->back;
    query->name = NULL;
}

/* Asks for a name. The lock is held. */
static int ask_for_name(struct wr_resolver *resolver, struct wr_span text, struct wr_dns_query *query,
                        bool *ret_is_ready)
{
    int64_t now = wr_clock_now(resolver->options.clock);
    struct wr_dns_name *name = wr_map_get(&resolver->map, text.data, text.bytes);
    int error = 0;

    if (name == NULL) {
        error = add_name(resolver, text, &name);
        if (error < 0)
            return error;
        link_name(&resolver->quick, name);
    } else if (name->in == &resolver->kept) {
        *ret_is_ready = now < name->until;
        move_name(name, *ret_is_ready ? &resolver->kept : &resolver->quick);
        query->answer = name->answer;
        if (*ret_is_ready)
            return 0;
    }
    *ret_is_ready = false;
    add_query(name, query);
    if (name->in == &resolver->quick)
        error = wake_worker(resolver);
    if (error < 0) {
        remove_query(query);
        free_name(resolver, name);
    }
    return error;
}

int wr_resolver_resolve(struct wr_resolver *resolver, struct wr_span name, struct wr_dns_query *query,
                        bool *ret_is_ready)
{
    if (name.bytes == 0 || name.bytes > WR_NAME_MAX || wr_span_find(name, '\0') != name.bytes)
        return wr_invalid("a name to look up has 1 ... 254 bytes, none of them 0");
    (void)pthread_mutex_lock(&resolver->lock);
    int error = ask_for_name(resolver, name, query, ret_is_ready);
    (void)pthread_mutex_unlock(&resolver->lock);
    return error;
}

void wr_resolver_cancel(struct wr_resolver *resolver, struct wr_dns_query *query)
{
    (void)pthread_mutex_lock(&resolver->lock);
    struct wr_dns_name *name = query->name;
    if (name != NULL) {
        remove_query(query);
        if (name->queries == NULL && name->in != &resolver->running) /* no query is left */
            free_name(resolver, name);
    }
    (void)pthread_mutex_unlock(&resolver->lock);
}

void wr_resolver_stats(struct wr_resolver *resolver, struct wr_resolver_stats *ret_stats)
{
    (void)pthread_mutex_lock(&resolver->lock);
    *ret_stats = (struct wr_resolver_stats){
        .threads = resolver->workers,
        .running = resolver->running.count,
        .waiting = resolver->quick.count + resolver->slow.count,
        .names = (uint32_t)resolver->map.count,
        .lookups = resolver->lookups,
    };
    (void)pthread_mutex_unlock(&resolver->lock);
}

/* ---- creating and freeing ---- */

static int64_t or_resolver_default(int64_t value, int64_t otherwise)
{
    return value != 0 ? value : otherwise;
}

static int fill_resolver_options(const struct wr_resolver_options *given, struct wr_resolver_options *ret_options)
{
    struct wr_resolver_options options = *given;

    options.allocator = wr_allocator_or_system(given->allocator);
    options.clock = wr_clock_or_fast(given->clock);
    options.threads = (uint32_t)or_resolver_default(given->threads, THREADS_DEFAULT);
    options.names_max = (uint32_t)or_resolver_default(given->names_max, NAMES_DEFAULT);
    options.found_ns = or_resolver_default(given->found_ns, FOUND_DEFAULT);
    options.absent_ns = or_resolver_default(given->absent_ns, ABSENT_DEFAULT);
    options.failed_ns = or_resolver_default(given->failed_ns, FAILED_DEFAULT);
    options.slow_ns = or_resolver_default(given->slow_ns, SLOW_DEFAULT);
    options.lookup = given->lookup != NULL ? given->lookup : wr_lookup_system;
    if (options.threads < 2 || options.threads > THREADS_MAX)
        return wr_invalid("a resolver has 2 ... 1024 threads");
    if (options.names_max < options.threads || options.names_max > NAMES_MAX)
        return wr_invalid("a resolver knows as many names as it has threads at least, and 2^24 at most");
    const int64_t durations[] = {options.found_ns, options.absent_ns, options.failed_ns, options.slow_ns};
    for (size_t i = 0; i < sizeof durations / sizeof durations[0]; i++)
        if (durations[i] < 0 || durations[i] > WEIR_DURATION_MAX)
            return wr_invalid("a resolver's duration is 1 ns ... 2^60 ns");
    *ret_options = options;
    return 0;
}

int wr_resolver_new(const struct wr_resolver_options *options, struct wr_resolver **ret_resolver)
{
    struct wr_resolver_options filled;
    uint8_t secret[WR_HASH_SECRET_BYTES];
    int error = fill_resolver_options(options, &filled);

    if (error < 0)
        return error;
    if (wr_random(secret, sizeof secret) < 0)
        return WEIR_E_SYSTEM;
    struct wr_resolver *resolver = wr_alloc(filled.allocator, sizeof *resolver, _Alignof(struct wr_resolver));
    if (resolver == NULL)
        return WEIR_E_NOMEM;
    resolver->options = filled;
    wr_hash_key_init(&resolver->hash_key, secret);
    wr_map_init(&resolver->map, filled.allocator, &resolver->hash_key, filled.names_max);
    (void)pthread_mutex_init(&resolver->lock, NULL); /* cannot fail without attributes */
    (void)pthread_cond_init(&resolver->changed, NULL);
    *ret_resolver = resolver;
    return 0;
}

static void free_resolver(struct wr_resolver *resolver)
{
    const weir_allocator *allocator = resolver->options.allocator;
    struct names *const lists[] = {&resolver->kept, &resolver->quick, &resolver->slow, &resolver->running};

    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        while (lists[i]->first != NULL)
            free_name(resolver, lists[i]->first);
    wr_map_release(&resolver->map);
    (void)pthread_cond_destroy(&resolver->changed);
    (void)pthread_mutex_destroy(&resolver->lock);
    wr_free(allocator, resolver, sizeof *resolver, _Alignof(struct wr_resolver));
}

/* Detaches workers that are in a lookup. They do not use the resolver's memory any more. */
static void detach_busy_workers(struct wr_resolver *resolver)
{
    for (struct worker *worker = resolver->all, *next; worker != NULL; worker = next) {
        next = worker->other;
        (void)pthread_mutex_lock(&worker->parker.lock);
        bool is_away = worker->place == WORKER_IN_LOOKUP;
        if (is_away) {
            unlink_worker(worker);
            worker->place = WORKER_DETACHED;
        }
        (void)pthread_mutex_unlock(&worker->parker.lock);
    }
}

void wr_resolver_free(struct wr_resolver *resolver)
{
    if (resolver == NULL)
        return;
    (void)pthread_mutex_lock(&resolver->lock);
    resolver->is_closed = true;
    detach_busy_workers(resolver);
    while (resolver->idle != NULL)
        (void)wake_worker(resolver);
    while (resolver->workers > 0)
        (void)pthread_cond_wait(&resolver->changed, &resolver->lock);
    (void)pthread_mutex_unlock(&resolver->lock);
    free_resolver(resolver);
}
