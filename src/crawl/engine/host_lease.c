/* SPDX-License-Identifier: MIT */
/* host_lease.c - claims, renews and releases shared hosts; see docs/internals/cluster.md.
 *
 *     claim --> the plan of its loop --> idle for a while, or above the process's share --> release
 *       beat: renews all leases of this process; hosts that are missing in it are lost
 * The first loop sends the queries. Every loop reads the rows of its hosts.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "crawl/engine/engine_state.h"
#include "limiter/clock/clock.h"

#define RENEWALS 6 /* beats per time of a lease */
#define FIRST_CLAIM 32
#define CLAIM_MAX 1024
#define IDLE_NS WEIR_SECOND        /* idle time after which a host is released */
#define RELEASE_MAX 256            /* hosts that are released at a time */
#define OFFER_NS (2 * WEIR_SECOND) /* pause of claims: others look for hosts every second */
#define OFFER_INTERVAL_MAX_NS WEIR_MINUTE
#define ROWS_MAX ((size_t)64 << 20)
#define LEASE_EXPIRED INT64_MIN               /* end of a lease that has expired: before any `now` */
#define SEED_MARK_NS WEIR_MINUTE              /* time in which a task is stored once it has a number */
#define SLEEP_TOLERANCE_NS (WEIR_SECOND / 10) /* tolerance, because two clocks are not read at once */

/* ---- rows of the store ---- */

struct leased_host {
    uint64_t token, queued;
    int64_t until, set_interval_ns, held_ns;
    size_t key_at, key_bytes;
    bool is_paused, is_wanted, has_rested;
};

/* The rows of a claim or a beat for one loop. */
struct lease_rows {
    struct wr_loop_message message;
    struct wr_engine *engine;
    struct wr_buf list, text;
    uint64_t beat;  /* number of the beat; 0: a claim */
    int64_t asleep; /* how long the machine had slept at the query, ns */
};

/* A claim or a beat: messages for the loops, and what must be known before they are sent. */
struct lease_query {
    struct wr_engine *engine;
    _Atomic int awaited; /* answers still missing */
    _Atomic int error;
    uint64_t share; /* BEAT: hosts per process, see struct wr_store_host */
    bool has_job;   /* BEAT: the row of the job was read */
    int64_t asked_at;
    struct lease_rows *rows[WR_LOOPS_MAX];
};

static void free_lease_rows(struct wr_loop_message *message)
{
    struct lease_rows *rows = (struct lease_rows *)(void *)message;
    wr_buf_release(&rows->list);
    wr_buf_release(&rows->text);
    wr_free(rows->engine->allocator, rows, sizeof *rows, _Alignof(struct lease_rows));
}

static void free_lease_query(struct lease_query *asked)
{
    for (uint32_t i = 0; i < asked->engine->loop_count; i++)
        if (asked->rows[i] != NULL)
            free_lease_rows(&asked->rows[i]->message);
    wr_free(asked->engine->allocator, asked, sizeof *asked, _Alignof(struct lease_query));
}

static struct lease_query *make_lease_query(struct wr_engine *engine, uint64_t beat,
                                            void (*read)(struct wr_crawl_loop *loop, struct wr_loop_message *message))
{
    struct lease_query *asked = wr_alloc(engine->allocator, sizeof *asked, _Alignof(struct lease_query));
    if (asked == NULL)
        return NULL;
    asked->engine = engine;
    asked->asked_at = weir_clock_now(engine->clock);
    for (uint32_t i = 0; i < engine->loop_count; i++) {
        struct lease_rows *rows = wr_alloc(engine->allocator, sizeof *rows, _Alignof(struct lease_rows));
        if (rows == NULL) {
            free_lease_query(asked);
            return NULL;
        }
        rows->message.read = read;
        rows->message.drop = free_lease_rows;
        rows->engine = engine;
        rows->beat = beat;
        rows->asleep = wr_clock_suspended_ns();
        wr_buf_init(&rows->list, engine->allocator, ROWS_MAX);
        wr_buf_init(&rows->text, engine->allocator, ROWS_MAX);
        asked->rows[i] = rows;
    }
    return asked;
}

static void add_leased_host(void *context, const struct wr_store_row *row)
{
    struct lease_query *asked = context;
    const struct wr_store_host *host = &row->host;
    struct lease_rows *rows = asked->rows[wr_engine_loop_of(asked->engine, host->key)];
    struct leased_host lent = {.token = host->lease,
                               .queued = host->queued,
                               .until = host->leased_until,
                               .set_interval_ns = host->set_interval_ns,
                               .held_ns = host->held_ns,
                               .is_paused = host->is_paused,
                               .is_wanted = host->is_wanted,
                               .has_rested = host->has_rested,
                               .key_at = rows->text.length,
                               .key_bytes = host->key.bytes};
    wr_buf_append_span(&rows->text, host->key);
    wr_buf_append(&rows->list, &lent, sizeof lent);
    asked->share = host->share;
}

/* Extends the scope by a seed or what it led to, whichever process found that out. */
static void note_shared_seed(void *context, const struct wr_store_row *row)
{
    struct lease_query *asked = context;
    char memory[WR_URL_ROOM];
    struct wr_url url;
    if (row->task.id > asked->engine->seeds_newest)
        asked->engine->seeds_newest = row->task.id;
    if (wr_url_parse(row->task.url, NULL, NULL, memory, sizeof memory, &url) == WR_URL_OK)
        wr_engine_register_seed(asked->engine, &url, row->task.hops == 0);
}

/* Moves the mark from which seeds are read. Task numbers are drawn in order, but not stored in
 * order: the mark is the newest number of some time ago. */
static void move_seed_mark(struct lease_query *asked)
{
    struct wr_engine *engine = asked->engine;
    if (asked->error != 0 || asked->asked_at - engine->seeds_marked_at < SEED_MARK_NS)
        return;
    atomic_store(&engine->seeds_after, engine->seeds_marked);
    engine->seeds_marked = engine->seeds_newest;
    engine->seeds_marked_at = weir_clock_now(engine->clock);
}

/* Reads the job's state: another process may have ended the job, or a user cancelled it. */
static void note_shared_status(void *context, const struct wr_store_row *row)
{
    struct lease_query *asked = context;
    asked->has_job = true;
    wr_job_note_counts(asked->engine, &row->job);
    wr_job_note_status(asked->engine, row->job.status);
    if (row->job.is_dismissed)
        wr_engine_drain(asked->engine);
}

/* Counts an answer, and ends the job if it is an error. Returns true for the last answer. */
static bool is_last_answer(struct lease_query *asked, int error, const char *why)
{
    if (error != 0) {
        asked->error = error;
        wr_job_end(asked->engine, WR_END_BROKEN, why);
    }
    return atomic_fetch_sub(&asked->awaited, 1) == 1;
}

/* Returns true if the rows are complete. If memory was short, they are ignored. */
static bool are_rows_complete(const struct lease_query *asked, const struct lease_rows *rows)
{
    return asked->error == 0 && rows->list.error == 0 && rows->text.error == 0;
}

static size_t count_leased_hosts(const struct lease_query *asked)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < asked->engine->loop_count; i++)
        bytes += are_rows_complete(asked, asked->rows[i]) ? asked->rows[i]->list.length : 0;
    return bytes / sizeof(struct leased_host);
}

static void send_lease_rows(struct lease_query *asked)
{
    struct wr_engine *engine = asked->engine;
    for (uint32_t i = 0; i < engine->loop_count; i++) {
        struct lease_rows *rows = asked->rows[i];
        if (!are_rows_complete(asked, rows))
            continue;
        asked->rows[i] = NULL;
        wr_loop_message_send(&engine->loops[i], &rows->message);
    }
}

static void apply_claim_answer(struct lease_query *asked)
{
    /* The hosts are counted first, so that no loop ends the job. */
    (void)atomic_fetch_add(&asked->engine->leases, (int64_t)count_leased_hosts(asked));
    move_seed_mark(asked);
    send_lease_rows(asked);
    free_lease_query(asked);
}

static void on_hosts_claimed(void *context, int error, const char *why)
{
    struct lease_query *asked = context;
    struct wr_engine *engine = asked->engine;
    if (!is_last_answer(asked, error, why))
        return;
    if (count_leased_hosts(asked) == 0)
        atomic_store(&engine->claim_at, weir_clock_now(engine->clock) + WEIR_SECOND);
    apply_claim_answer(asked);
    atomic_store(&engine->is_claiming, false);
    wr_job_pending_done(engine);
}

static void on_host_claimed(void *context, int error, const char *why)
{
    struct lease_query *asked = context;
    struct wr_engine *engine = asked->engine;
    if (!is_last_answer(asked, error, why))
        return;
    apply_claim_answer(asked);
    wr_job_pending_done(engine);
}

/* Offers hosts beyond this process's share plus an eighth to others. Those that they do not claim
 * come back, and are offered less and less often: others may have no room. */
static void offer_excess_hosts(struct wr_engine *engine, uint64_t share)
{
    int64_t now = weir_clock_now(engine->clock);
    int64_t excess = atomic_load(&engine->leases) - (int64_t)(share + share / 8 + 1);
    if (now < engine->next_offer_at)
        return;
    if (excess <= 0) {
        engine->offer_interval_ns = 0;
        return;
    }
    int64_t interval_ns = 2 * (engine->offer_interval_ns == 0 ? OFFER_NS : engine->offer_interval_ns);
    engine->offer_interval_ns = interval_ns < OFFER_INTERVAL_MAX_NS ? interval_ns : OFFER_INTERVAL_MAX_NS;
    engine->next_offer_at = now + engine->offer_interval_ns;
    atomic_store(&engine->claim_at, now + OFFER_NS);
    atomic_store(&engine->excess, excess);
}

static void on_leases_renewed(void *context, int error, const char *why)
{
    struct lease_query *asked = context;
    struct wr_engine *engine = asked->engine;
    if (!is_last_answer(asked, error, why))
        return;
    if (asked->error == 0 && !asked->has_job)
        wr_job_end(engine, WR_END_BROKEN, WR_JOB_ROW_LOST);
    if (asked->error == 0 && asked->share > 0)
        offer_excess_hosts(engine, asked->share);
    send_lease_rows(asked);
    atomic_store(&engine->is_renewing, false);
    free_lease_query(asked);
    wr_job_pending_done(engine);
}

/* ---- informing the plans ---- */

static struct wr_span leased_host_key(const struct lease_rows *rows, const struct leased_host *lent)
{
    return (struct wr_span){rows->text.bytes + lent->key_at, lent->key_bytes};
}

static void on_lease_released(void *context, int error, const char *why)
{
    struct wr_engine *engine = context;
    (void)error, (void)why; /* after a failure the next beat releases the host */
    wr_job_pending_done(engine);
}

/* A release has no rows. */
static void ignore_row(void *context, const struct wr_store_row *row)
{
    (void)context, (void)row;
}

/* Releases the lease of this token; a newer lease stays. No process claims the host for rest_ns. */
static void release_lease(struct wr_engine *engine, struct wr_span key, uint64_t token, int64_t rest_ns,
                          int64_t held_ns)
{
    const struct wr_store_query query = {.what = WR_STORE_RELEASE,
                                         .key = key,
                                         .after = {.id = (int64_t)token},
                                         .rest_ns = rest_ns,
                                         .held_ns = held_ns,
                                         .row = ignore_row,
                                         .done = on_lease_released,
                                         .context = engine};
    (void)atomic_fetch_add(&engine->pending, 1);
    if (wr_store_read(engine->store, &query) != 0)
        wr_job_pending_done(engine);
}

static void lose_lease(struct wr_crawl_loop *loop, struct wr_plan_host *host)
{
    wr_plan_host_lease_lost(loop->plan, host, wr_crawl_loop_now(loop));
    (void)atomic_fetch_sub(&loop->engine->leases, 1);
}

void wr_host_lease_check_sleep(struct wr_crawl_loop *loop)
{
    int64_t asleep = loop->engine->is_shared ? wr_clock_suspended_ns() : loop->asleep_ns, now = wr_crawl_loop_now(loop);
    struct wr_plan_host *host;
    if (asleep - loop->asleep_ns < SLEEP_TOLERANCE_NS)
        return;
    loop->asleep_ns = asleep;
    for (size_t cursor = 0; (host = wr_plan_host_next(loop->plan, &cursor)) != NULL;)
        if (wr_plan_host_lease_token(host) != 0)
            wr_plan_host_lease(loop->plan, host, wr_plan_host_lease_token(host), LEASE_EXPIRED, now);
}

/* Returns when the lease ends: at once if the machine has slept since the query. */
static int64_t lease_end(struct wr_crawl_loop *loop, const struct lease_rows *rows, const struct leased_host *lent)
{
    wr_host_lease_check_sleep(loop);
    return loop->asleep_ns - rows->asleep < SLEEP_TOLERANCE_NS ? lent->until : LEASE_EXPIRED;
}

/* Gives a claimed host to its plan. Returns false if the plan has no room, or if the host was lost
 * and still has a request in flight. */
static bool add_leased_host_to_plan(struct wr_crawl_loop *loop, struct wr_span key, const struct leased_host *lent)
{
    int64_t now = wr_crawl_loop_now(loop);
    struct wr_plan_host *host = wr_plan_host_find(loop->plan, key);
    if (host != NULL && wr_plan_host_lease_token(host) != 0)
        lose_lease(loop, host); /* the lease expired, and no beat has reported it yet */
    if (host != NULL && !wr_plan_host_remove(loop->plan, host, now))
        return false;
    if (wr_plan_hosts_row(loop->plan, (uint32_t)loop->engine->job, key, lent->queued, now) != 0)
        return false;
    wr_robots_hops_schedule(loop, key);
    host = wr_plan_host_find(loop->plan, key);
    if (host == NULL)
        return false;
    if (lent->has_rested)
        wr_plan_host_was_released(host, lent->held_ns);
    wr_plan_host_lease(loop->plan, host, lent->token, lent->until, now);
    wr_plan_host_set_lease_seen(host, atomic_load(&loop->engine->beat), 0);
    return true;
}

static void read_claimed_hosts(struct wr_crawl_loop *loop, struct wr_loop_message *message)
{
    struct lease_rows *rows = (struct lease_rows *)(void *)message;
    struct leased_host lent;
    for (size_t at = 0; at < rows->list.length; at += sizeof lent) {
        memcpy(&lent, rows->list.bytes + at, sizeof lent);
        lent.until = lease_end(loop, rows, &lent);
        if (add_leased_host_to_plan(loop, leased_host_key(rows, &lent), &lent))
            continue;
        release_lease(loop->engine, leased_host_key(rows, &lent), lent.token, 0, 0);
        (void)atomic_fetch_sub(&loop->engine->leases, 1);
    }
    free_lease_rows(message);
}

/* Applies what a user set for the host, on whichever machine. */
static void apply_host_settings(struct wr_crawl_loop *loop, struct wr_plan_host *host, const struct leased_host *lent)
{
    int64_t now = wr_crawl_loop_now(loop);
    if (loop->engine->options.pace.off)
        return;
    if (wr_gate_paused(wr_plan_host_gate(host)) != lent->is_paused)
        wr_plan_host_pause(loop->plan, host, lent->is_paused, now);
    int64_t usual_ns = loop->engine->options.pace.min_interval_ns;
    int64_t wanted_ns = lent->set_interval_ns > 0 ? lent->set_interval_ns : usual_ns;
    if (wr_plan_host_options(loop->plan, host)->min_interval_ns != wanted_ns)
        (void)wr_plan_host_pace(loop->plan, host, lent->set_interval_ns, now);
}

static void lose_missing_leases(struct wr_crawl_loop *loop, uint64_t beat)
{
    struct wr_plan_host *host;
    for (size_t cursor = 0; (host = wr_plan_host_next(loop->plan, &cursor)) != NULL;) {
        if (wr_plan_host_lease_token(host) == 0 || wr_plan_host_lease_beat(host) >= beat)
            continue;
        lose_lease(loop, host);
    }
}

/* Renews leases. Releases a host if no plan has its lease: the answer to the claim was lost, and
 * beats would renew it for ever. */
static void read_renewed_leases(struct wr_crawl_loop *loop, struct wr_loop_message *message)
{
    struct lease_rows *rows = (struct lease_rows *)(void *)message;
    struct leased_host lent;
    for (size_t at = 0; at < rows->list.length; at += sizeof lent) {
        memcpy(&lent, rows->list.bytes + at, sizeof lent);
        struct wr_plan_host *host = wr_plan_host_find(loop->plan, leased_host_key(rows, &lent));
        if (host == NULL || wr_plan_host_lease_token(host) != lent.token) {
            release_lease(loop->engine, leased_host_key(rows, &lent), lent.token, 0, 0);
            continue;
        }
        wr_plan_host_lease(loop->plan, host, lent.token, lease_end(loop, rows, &lent), wr_crawl_loop_now(loop));
        wr_plan_host_set_lease_seen(host, rows->beat, wr_plan_host_idle_since(host));
        if (lent.is_wanted || wr_plan_host_yields_lease(host))
            wr_plan_host_yield_lease(loop->plan, host, lent.is_wanted, wr_crawl_loop_now(loop));
        apply_host_settings(loop, host, &lent);
    }
    lose_missing_leases(loop, rows->beat);
    free_lease_rows(message);
}

bool wr_host_lease_is_held(const struct wr_crawl_loop *loop, const struct wr_url *url)
{
    char memory[WEIR_PACE_KEY_MAX + 1];
    struct wr_buf key;
    wr_buf_init_fixed(&key, memory, sizeof memory);
    wr_url_append_key(&key, url);
    const struct wr_plan_host *host = wr_plan_host_find(loop->plan, wr_buf_from(&key, 0));
    return host != NULL && wr_plan_host_lease_token(host) != 0;
}

/* ---- queries ---- */

static void send_lease_query(struct lease_query *asked, struct wr_store_query query, wr_store_done *done)
{
    query.job = asked->engine->job;
    query.done = done;
    query.context = asked;
    int error = wr_store_read(asked->engine->store, &query);
    if (error != 0)
        done(asked, error, wr_error_message(error));
}

/* Asks for hosts, and for seeds right after them, so that the scope of a host is known with it. */
static void ask_hosts_and_seeds(struct lease_query *asked, struct wr_store_query query, wr_store_done *done)
{
    int64_t after = atomic_load(&asked->engine->seeds_after);
    (void)atomic_fetch_add(&asked->engine->pending, 1);
    asked->awaited = 2;
    send_lease_query(asked, query, done);
    const struct wr_store_query seeds = {.what = WR_STORE_SEEDS, .after = {INT32_MIN, after}, .row = note_shared_seed};
    send_lease_query(asked, seeds, done);
}

static void claim_hosts(struct wr_engine *engine, size_t limit)
{
    struct lease_query *asked = make_lease_query(engine, 0, read_claimed_hosts);
    if (asked == NULL)
        return;
    atomic_store(&engine->is_claiming, true);
    const struct wr_store_query hosts = {.what = WR_STORE_CLAIM, .limit = limit, .row = add_leased_host};
    ask_hosts_and_seeds(asked, hosts, on_hosts_claimed);
}

/* A message to the first loop: the sender wants a host. */
struct host_request {
    struct wr_loop_message message;
    struct wr_engine *engine;
    size_t key_bytes;
    char key[WEIR_PACE_KEY_MAX + 1];
};

static void free_host_request(struct wr_loop_message *message)
{
    struct host_request *wish = (struct host_request *)(void *)message;
    wr_free(wish->engine->allocator, wish, sizeof *wish, _Alignof(struct host_request));
}

static void send_host_request(struct wr_crawl_loop *loop, struct wr_loop_message *message)
{
    struct host_request *wish = (struct host_request *)(void *)message;
    struct lease_query *asked = make_lease_query(loop->engine, 0, read_claimed_hosts);
    if (asked != NULL)
        ask_hosts_and_seeds(asked,
                            (struct wr_store_query){.what = WR_STORE_CLAIM_ONE,
                                                    .key = {wish->key, wish->key_bytes},
                                                    .row = add_leased_host},
                            on_host_claimed);
    free_host_request(message);
}

/* Lets the first loop send the query, so that no beat between its two parts reports the host. */
void wr_host_lease_request(struct wr_crawl_loop *loop, struct wr_span key)
{
    struct wr_engine *engine = loop->engine;
    struct host_request *wish = wr_alloc(engine->allocator, sizeof *wish, _Alignof(struct host_request));
    if (wish == NULL)
        return;
    wish->message.read = send_host_request;
    wish->message.drop = free_host_request;
    wish->engine = engine;
    wish->key_bytes = key.bytes;
    memcpy(wish->key, key.data, key.bytes);
    wr_loop_message_send(&engine->loops[0], &wish->message);
}

static void beat(struct wr_engine *engine)
{
    struct lease_query *asked = make_lease_query(engine, atomic_load(&engine->beat) + 1, read_renewed_leases);
    if (asked == NULL)
        return;
    (void)atomic_fetch_add(&engine->pending, 1);
    (void)atomic_fetch_add(&engine->beat, 1);
    atomic_store(&engine->is_renewing, true);
    asked->awaited = 2;
    send_lease_query(asked, (struct wr_store_query){.what = WR_STORE_RENEW, .row = add_leased_host}, on_leases_renewed);
    send_lease_query(asked, (struct wr_store_query){.what = WR_STORE_JOBS, .row = note_shared_status},
                     on_leases_renewed);
}

static void renew_and_claim(struct wr_crawl_loop *loop, int64_t now)
{
    struct wr_engine *engine = loop->engine;
    int phase = atomic_load(&engine->phase);
    if (phase < WR_PHASE_RUNS || phase >= WR_PHASE_CLOSES)
        return;
    if (!atomic_load(&engine->is_renewing) && now >= engine->renew_at) {
        engine->renew_at = now + engine->lease_ns / RENEWALS;
        beat(engine);
    }
    int64_t held = atomic_load(&engine->leases), wanted = 8 * (int64_t)engine->options.concurrency;
    int64_t limit = held + FIRST_CLAIM < CLAIM_MAX ? held + FIRST_CLAIM : CLAIM_MAX;
    limit = limit < wanted - held ? limit : wanted - held;
    if (phase == WR_PHASE_RUNS && limit > 0 && !atomic_load(&engine->is_claiming) &&
        now >= atomic_load(&engine->claim_at))
        claim_hosts(engine, (size_t)limit);
}

/* ---- releasing ---- */

static bool has_rested(struct wr_plan_host *host, int64_t now)
{
    int64_t since = wr_plan_host_idle_since(host);
    if (!wr_plan_host_is_idle(host)) {
        wr_plan_host_set_lease_seen(host, wr_plan_host_lease_beat(host), 0);
        return false;
    }
    if (since == 0)
        wr_plan_host_set_lease_seen(host, wr_plan_host_lease_beat(host), now);
    return since != 0 && now - since >= IDLE_NS;
}

static void release_host(struct wr_crawl_loop *loop, struct wr_plan_host *host, int64_t now)
{
    char memory[WEIR_PACE_KEY_MAX + 1];
    int64_t held_ns, rests_until = wr_plan_host_releasable_until(loop->plan, host, now, &held_ns);
    struct wr_span key = wr_plan_host_key(host);
    uint64_t token = wr_plan_host_lease_token(host);
    memcpy(memory, key.data, key.bytes);
    key.data = memory;
    if (token != 0) {
        wr_crawl_loop_save_host(loop, host); /* stored, because the next owner needs its pace */
        lose_lease(loop, host);
        release_lease(loop->engine, key, token, rests_until == WEIR_FOREVER ? WEIR_FOREVER : rests_until - now,
                      held_ns);
    }
    (void)wr_plan_host_remove(loop->plan, host, now);
}

/* Takes one host from the excess. Loops share it, because one of them may have most hosts. */
static bool take_from_excess(struct wr_engine *engine)
{
    int64_t left = atomic_load(&engine->excess);
    while (left > 0)
        if (atomic_compare_exchange_weak(&engine->excess, &left, left - 1))
            return true;
    return false;
}

/* Returns true if the host has no work, or none for a while, or another process asks for it. */
static bool may_release(const struct wr_crawl_loop *loop, struct wr_plan_host *host, int64_t now)
{
    int64_t held_ns;
    if (wr_plan_host_lease_token(host) == 0)
        return wr_plan_host_is_idle(host);
    return has_rested(host, now) || (wr_plan_host_yields_lease(host) && !wr_plan_host_is_busy(host)) ||
           wr_plan_host_releasable_until(loop->plan, host, now, &held_ns) - loop->engine->lease_ns > now;
}

/* Releases hosts that may leave, that were lost, or that exceed this process's share. */
static void release_hosts(struct wr_crawl_loop *loop, int64_t now, bool drains)
{
    struct wr_plan_host *list[RELEASE_MAX], *host;
    size_t count = 0;
    for (size_t cursor = 0; count < RELEASE_MAX && (host = wr_plan_host_next(loop->plan, &cursor)) != NULL;)
        if (may_release(loop, host, now))
            list[count++] = host;
    for (size_t i = 0; i < count; i++)
        (void)(wr_plan_host_lease_token(list[i]) != 0 && take_from_excess(loop->engine));
    for (size_t cursor = 0; count < RELEASE_MAX && (host = wr_plan_host_next(loop->plan, &cursor)) != NULL;)
        /* Hosts that may leave are in the list already. */
        if (wr_plan_host_lease_token(host) != 0 && !wr_plan_host_is_busy(host) && !wr_plan_host_is_idle(host) &&
            !may_release(loop, host, now) && (drains || take_from_excess(loop->engine)))
            list[count++] = host;
    for (size_t i = 0; i < count; i++)
        release_host(loop, list[i], now);
}

void wr_host_lease_tick(struct wr_crawl_loop *loop)
{
    int64_t now = wr_crawl_loop_now(loop);
    if (!loop->engine->is_shared)
        return;
    int phase = atomic_load(&loop->engine->phase);
    if (phase == WR_PHASE_RUNS)
        wr_robots_hops_tick(loop);
    if (phase == WR_PHASE_RUNS || phase == WR_PHASE_DRAINS)
        release_hosts(loop, now, phase == WR_PHASE_DRAINS);
    if (loop->index == 0)
        renew_and_claim(loop, now);
}
