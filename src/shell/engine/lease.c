/* SPDX-License-Identifier: MIT */
/* lease.c - claims, renews and releases hosts that processes share; see docs/internals/cluster.md.
 *
 *     claim --> the plan of its loop --> idle for a while, or above the process's share --> release
 *       beat: renews all leases of this process; hosts that are missing in it are lost
 *
 * The first loop sends the queries. Every loop reads the rows of its hosts.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "shell/clock/clock.h"
#include "shell/engine/state.h"

#define BEATS 6 /* beats per time of a lease */
#define FIRST_CLAIM 32
#define CLAIM_MAX 1024
#define REST_NS WEIR_SECOND       /* idle time after which a host is released */
#define LEAVE_MAX 256             /* hosts that are released at a time */
#define SHED_NS (2 * WEIR_SECOND) /* pause of claims: others look for hosts every second */
#define SHED_LONGEST_NS WEIR_MINUTE
#define ROWS_MAX ((size_t)64 << 20)
#define RAN_OUT INT64_MIN            /* end of a lease that has expired: before any `now` */
#define SEEDS_NS WEIR_MINUTE         /* time in which a task is stored once it has a number */
#define ASLEEP_NS (WEIR_SECOND / 10) /* tolerance, because two clocks are not read at once */

/* ---- rows of the store ---- */

struct lent {
    uint64_t token, queued;
    int64_t until, set_interval_ns, held_ns;
    size_t key_at, key_bytes;
    bool is_paused, is_wanted, has_rested;
};

/* The rows of a claim or a beat for one loop. */
struct rows {
    struct wr_letter letter;
    struct wr_engine *engine;
    struct wr_buf list, text;
    uint64_t beat;  /* number of the beat; 0: a claim */
    int64_t asleep; /* how long the machine had slept at the query, ns */
};

/* A claim or a beat: messages for the loops, and what must be known before they are sent. */
struct asked {
    struct wr_engine *engine;
    _Atomic int awaited; /* answers still missing */
    _Atomic int error;
    uint64_t share; /* BEAT: hosts per process, see struct wr_store_host */
    bool has_job;   /* BEAT: the row of the job was read */
    int64_t asked_at;
    struct rows *rows[WR_LOOPS_MAX];
};

static void free_rows(struct wr_letter *letter)
{
    struct rows *rows = (struct rows *)(void *)letter;
    wr_buf_release(&rows->list);
    wr_buf_release(&rows->text);
    wr_give(rows->engine->allocator, rows, sizeof *rows, _Alignof(struct rows));
}

static void free_asked(struct asked *asked)
{
    for (uint32_t i = 0; i < asked->engine->loop_count; i++)
        if (asked->rows[i] != NULL)
            free_rows(&asked->rows[i]->letter);
    wr_give(asked->engine->allocator, asked, sizeof *asked, _Alignof(struct asked));
}

static struct asked *make_asked(struct wr_engine *engine, uint64_t beat,
                                void (*read)(struct wr_crawl_loop *loop, struct wr_letter *letter))
{
    struct asked *asked = wr_take(engine->allocator, sizeof *asked, _Alignof(struct asked));
    if (asked == NULL)
        return NULL;
    asked->engine = engine;
    asked->asked_at = weir_clock_now(engine->clock);
    for (uint32_t i = 0; i < engine->loop_count; i++) {
        struct rows *rows = wr_take(engine->allocator, sizeof *rows, _Alignof(struct rows));
        if (rows == NULL) {
            free_asked(asked);
            return NULL;
        }
        rows->letter.read = read;
        rows->letter.drop = free_rows;
        rows->engine = engine;
        rows->beat = beat;
        rows->asleep = wr_clock_asleep();
        wr_buf_init(&rows->list, engine->allocator, ROWS_MAX);
        wr_buf_init(&rows->text, engine->allocator, ROWS_MAX);
        asked->rows[i] = rows;
    }
    return asked;
}

static void on_lent(void *context, const struct wr_store_row *row)
{
    struct asked *asked = context;
    const struct wr_store_host *host = &row->host;
    struct rows *rows = asked->rows[wr_engine_loop_of(asked->engine, host->key)];
    struct lent lent = {.token = host->lease,
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
static void on_seed(void *context, const struct wr_store_row *row)
{
    struct asked *asked = context;
    char memory[WR_URL_ROOM];
    struct wr_url url;
    if (row->task.id > asked->engine->seeds_newest)
        asked->engine->seeds_newest = row->task.id;
    if (wr_url_parse(row->task.url, NULL, NULL, memory, sizeof memory, &url) == WR_URL_OK)
        wr_engine_seed_known(asked->engine, &url, row->task.hops == 0);
}

/* Moves the mark from which seeds are read. Task numbers are drawn in order, but not stored in
 * order: the mark is the newest number of some time ago. */
static void note_seeds(struct asked *asked)
{
    struct wr_engine *engine = asked->engine;
    if (asked->error != 0 || asked->asked_at - engine->seeds_marked_at < SEEDS_NS)
        return;
    atomic_store(&engine->seeds_after, engine->seeds_marked);
    engine->seeds_marked = engine->seeds_newest;
    engine->seeds_marked_at = weir_clock_now(engine->clock);
}

/* Reads the job's state: another process may have ended the job, or a user cancelled it. */
static void on_status(void *context, const struct wr_store_row *row)
{
    struct asked *asked = context;
    asked->has_job = true;
    wr_job_counted(asked->engine, &row->job);
    wr_job_seen(asked->engine, row->job.status);
    if (row->job.is_dismissed)
        wr_engine_drain(asked->engine);
}

/* Counts an answer, and ends the job if it is an error. Returns true for the last answer. */
static bool is_last(struct asked *asked, int error, const char *why)
{
    if (error != 0) {
        asked->error = error;
        wr_job_over(asked->engine, WR_END_BROKEN, why);
    }
    return atomic_fetch_sub(&asked->awaited, 1) == 1;
}

/* Returns true if the rows are complete. If memory was short, they are ignored. */
static bool has_come(const struct asked *asked, const struct rows *rows)
{
    return asked->error == 0 && rows->list.error == 0 && rows->text.error == 0;
}

static size_t count_rows(const struct asked *asked)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < asked->engine->loop_count; i++)
        bytes += has_come(asked, asked->rows[i]) ? asked->rows[i]->list.length : 0;
    return bytes / sizeof(struct lent);
}

static void send_rows(struct asked *asked)
{
    struct wr_engine *engine = asked->engine;
    for (uint32_t i = 0; i < engine->loop_count; i++) {
        struct rows *rows = asked->rows[i];
        if (!has_come(asked, rows))
            continue;
        asked->rows[i] = NULL;
        wr_letter_send(&engine->loops[i], &rows->letter);
    }
}

static void end_claim(struct asked *asked)
{
    /* The hosts are counted first, so that no loop ends the job. */
    (void)atomic_fetch_add(&asked->engine->leases, (int64_t)count_rows(asked));
    note_seeds(asked);
    send_rows(asked);
    free_asked(asked);
}

static void on_claimed(void *context, int error, const char *why)
{
    struct asked *asked = context;
    struct wr_engine *engine = asked->engine;
    if (!is_last(asked, error, why))
        return;
    if (count_rows(asked) == 0)
        atomic_store(&engine->claim_at, weir_clock_now(engine->clock) + WEIR_SECOND);
    end_claim(asked);
    atomic_store(&engine->is_claiming, false);
    wr_pending_done(engine);
}

static void on_claimed_one(void *context, int error, const char *why)
{
    struct asked *asked = context;
    struct wr_engine *engine = asked->engine;
    if (!is_last(asked, error, why))
        return;
    end_claim(asked);
    wr_pending_done(engine);
}

/* Offers hosts beyond this process's share plus an eighth to others. Those that they do not claim
 * come back, and are offered less and less often: others may have no room. */
static void shed(struct wr_engine *engine, uint64_t share)
{
    int64_t now = weir_clock_now(engine->clock);
    int64_t excess = atomic_load(&engine->leases) - (int64_t)(share + share / 8 + 1);
    if (now < engine->shed_at)
        return;
    if (excess <= 0) {
        engine->shed_ns = 0;
        return;
    }
    engine->shed_ns = engine->shed_ns == 0 ? 2 * SHED_NS : 2 * engine->shed_ns;
    engine->shed_ns = engine->shed_ns < SHED_LONGEST_NS ? engine->shed_ns : SHED_LONGEST_NS;
    engine->shed_at = now + engine->shed_ns;
    atomic_store(&engine->claim_at, now + SHED_NS);
    atomic_store(&engine->excess, excess);
}

static void on_beaten(void *context, int error, const char *why)
{
    struct asked *asked = context;
    struct wr_engine *engine = asked->engine;
    if (!is_last(asked, error, why))
        return;
    if (asked->error == 0 && !asked->has_job)
        wr_job_over(engine, WR_END_BROKEN, WR_JOB_ROW_LOST);
    if (asked->error == 0 && asked->share > 0)
        shed(engine, asked->share);
    send_rows(asked);
    atomic_store(&engine->is_beating, false);
    free_asked(asked);
    wr_pending_done(engine);
}

/* ---- informing the plans ---- */

static struct wr_span key_of(const struct rows *rows, const struct lent *lent)
{
    return (struct wr_span){rows->text.bytes + lent->key_at, lent->key_bytes};
}

static void on_released(void *context, int error, const char *why)
{
    struct wr_engine *engine = context;
    (void)error, (void)why; /* after a failure the next beat releases the host */
    wr_pending_done(engine);
}

/* A release has no rows. */
static void on_none(void *context, const struct wr_store_row *row)
{
    (void)context, (void)row;
}

/* Releases the lease of this token; a newer lease stays. No process claims the host for rest_ns. */
static void release(struct wr_engine *engine, struct wr_span key, uint64_t token, int64_t rest_ns, int64_t held_ns)
{
    const struct wr_store_query query = {.what = WR_STORE_RELEASE,
                                         .key = key,
                                         .after = {.id = (int64_t)token},
                                         .rest_ns = rest_ns,
                                         .held_ns = held_ns,
                                         .row = on_none,
                                         .done = on_released,
                                         .context = engine};
    (void)atomic_fetch_add(&engine->pending, 1);
    if (wr_store_read(engine->store, &query) != 0)
        wr_pending_done(engine);
}

static void lose(struct wr_crawl_loop *loop, struct wr_plan_host *host)
{
    wr_plan_host_lose(loop->plan, host, wr_crawl_loop_now(loop));
    (void)atomic_fetch_sub(&loop->engine->leases, 1);
}

void wr_lease_wake(struct wr_crawl_loop *loop)
{
    int64_t asleep = loop->engine->is_shared ? wr_clock_asleep() : loop->asleep_ns, now = wr_crawl_loop_now(loop);
    struct wr_plan_host *host;
    if (asleep - loop->asleep_ns < ASLEEP_NS)
        return;
    loop->asleep_ns = asleep;
    for (size_t cursor = 0; (host = wr_plan_host_next(loop->plan, &cursor)) != NULL;)
        if (wr_plan_host_token(host) != 0)
            wr_plan_host_lease(loop->plan, host, wr_plan_host_token(host), RAN_OUT, now);
}

/* Returns when the lease ends: at once if the machine has slept since the query. */
static int64_t until_of(struct wr_crawl_loop *loop, const struct rows *rows, const struct lent *lent)
{
    wr_lease_wake(loop);
    return loop->asleep_ns - rows->asleep < ASLEEP_NS ? lent->until : RAN_OUT;
}

/* Gives a claimed host to its plan. Returns false if the plan has no room, or if the host was lost
 * and still has a request in flight. */
static bool take_in(struct wr_crawl_loop *loop, struct wr_span key, const struct lent *lent)
{
    int64_t now = wr_crawl_loop_now(loop);
    struct wr_plan_host *host = wr_plan_host_find(loop->plan, key);
    if (host != NULL && wr_plan_host_token(host) != 0)
        lose(loop, host); /* the lease expired, and no beat has reported it yet */
    if (host != NULL && !wr_plan_host_leave(loop->plan, host, now))
        return false;
    if (wr_plan_host_waits(loop->plan, (uint32_t)loop->engine->job, key, lent->queued, now) != 0)
        return false;
    wr_errands_place(loop, key);
    host = wr_plan_host_find(loop->plan, key);
    if (host == NULL)
        return false;
    if (lent->has_rested)
        wr_plan_host_rested_for(host, lent->held_ns);
    wr_plan_host_lease(loop->plan, host, lent->token, lent->until, now);
    wr_plan_host_mark(host, atomic_load(&loop->engine->beat), 0);
    return true;
}

static void read_claim(struct wr_crawl_loop *loop, struct wr_letter *letter)
{
    struct rows *rows = (struct rows *)(void *)letter;
    struct lent lent;
    for (size_t at = 0; at < rows->list.length; at += sizeof lent) {
        memcpy(&lent, rows->list.bytes + at, sizeof lent);
        lent.until = until_of(loop, rows, &lent);
        if (take_in(loop, key_of(rows, &lent), &lent))
            continue;
        release(loop->engine, key_of(rows, &lent), lent.token, 0, 0);
        (void)atomic_fetch_sub(&loop->engine->leases, 1);
    }
    free_rows(letter);
}

/* Applies what a user set for the host, on whichever machine. */
static void obey(struct wr_crawl_loop *loop, struct wr_plan_host *host, const struct lent *lent)
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

static void lose_missing(struct wr_crawl_loop *loop, uint64_t beat)
{
    struct wr_plan_host *host;
    for (size_t cursor = 0; (host = wr_plan_host_next(loop->plan, &cursor)) != NULL;) {
        if (wr_plan_host_token(host) == 0 || wr_plan_host_marked(host) >= beat)
            continue;
        lose(loop, host);
    }
}

/* Renews leases. Releases a host if no plan has its lease: the answer to the claim was lost, and
 * beats would renew it for ever. */
static void read_beat(struct wr_crawl_loop *loop, struct wr_letter *letter)
{
    struct rows *rows = (struct rows *)(void *)letter;
    struct lent lent;
    for (size_t at = 0; at < rows->list.length; at += sizeof lent) {
        memcpy(&lent, rows->list.bytes + at, sizeof lent);
        struct wr_plan_host *host = wr_plan_host_find(loop->plan, key_of(rows, &lent));
        if (host == NULL || wr_plan_host_token(host) != lent.token) {
            release(loop->engine, key_of(rows, &lent), lent.token, 0, 0);
            continue;
        }
        wr_plan_host_lease(loop->plan, host, lent.token, until_of(loop, rows, &lent), wr_crawl_loop_now(loop));
        wr_plan_host_mark(host, rows->beat, wr_plan_host_rested(host));
        if (lent.is_wanted || wr_plan_host_yields(host))
            wr_plan_host_yield(loop->plan, host, lent.is_wanted, wr_crawl_loop_now(loop));
        obey(loop, host, &lent);
    }
    lose_missing(loop, rows->beat);
    free_rows(letter);
}

bool wr_lease_has(const struct wr_crawl_loop *loop, const struct wr_url *url)
{
    char memory[WEIR_PACE_KEY_MAX + 1];
    struct wr_buf key;
    wr_buf_init_fixed(&key, memory, sizeof memory);
    wr_url_append_key(&key, url);
    const struct wr_plan_host *host = wr_plan_host_find(loop->plan, wr_buf_from(&key, 0));
    return host != NULL && wr_plan_host_token(host) != 0;
}

/* ---- queries ---- */

static void ask(struct asked *asked, struct wr_store_query query, wr_store_done *done)
{
    query.job = asked->engine->job;
    query.done = done;
    query.context = asked;
    int error = wr_store_read(asked->engine->store, &query);
    if (error != 0)
        done(asked, error, wr_error_words(error));
}

/* Asks for hosts, and for seeds right after them, so that the scope of a host is known with it. */
static void ask_hosts(struct asked *asked, struct wr_store_query query, wr_store_done *done)
{
    int64_t after = atomic_load(&asked->engine->seeds_after);
    (void)atomic_fetch_add(&asked->engine->pending, 1);
    asked->awaited = 2;
    ask(asked, query, done);
    ask(asked, (struct wr_store_query){.what = WR_STORE_SEEDS, .after = {INT32_MIN, after}, .row = on_seed}, done);
}

static void claim(struct wr_engine *engine, size_t limit)
{
    struct asked *asked = make_asked(engine, 0, read_claim);
    if (asked == NULL)
        return;
    atomic_store(&engine->is_claiming, true);
    ask_hosts(asked, (struct wr_store_query){.what = WR_STORE_CLAIM, .limit = limit, .row = on_lent}, on_claimed);
}

/* A message to the first loop: the sender wants a host. */
struct wish {
    struct wr_letter letter;
    struct wr_engine *engine;
    size_t key_bytes;
    char key[WEIR_PACE_KEY_MAX + 1];
};

static void free_wish(struct wr_letter *letter)
{
    struct wish *wish = (struct wish *)(void *)letter;
    wr_give(wish->engine->allocator, wish, sizeof *wish, _Alignof(struct wish));
}

static void read_wish(struct wr_crawl_loop *loop, struct wr_letter *letter)
{
    struct wish *wish = (struct wish *)(void *)letter;
    struct asked *asked = make_asked(loop->engine, 0, read_claim);
    if (asked != NULL)
        ask_hosts(
            asked,
            (struct wr_store_query){.what = WR_STORE_CLAIM_ONE, .key = {wish->key, wish->key_bytes}, .row = on_lent},
            on_claimed_one);
    free_wish(letter);
}

/* Lets the first loop send the query, so that no beat between its two parts reports the host. */
void wr_lease_want(struct wr_crawl_loop *loop, struct wr_span key)
{
    struct wr_engine *engine = loop->engine;
    struct wish *wish = wr_take(engine->allocator, sizeof *wish, _Alignof(struct wish));
    if (wish == NULL)
        return;
    wish->letter.read = read_wish;
    wish->letter.drop = free_wish;
    wish->engine = engine;
    wish->key_bytes = key.bytes;
    memcpy(wish->key, key.data, key.bytes);
    wr_letter_send(&engine->loops[0], &wish->letter);
}

static void beat(struct wr_engine *engine)
{
    struct asked *asked = make_asked(engine, atomic_load(&engine->beat) + 1, read_beat);
    if (asked == NULL)
        return;
    (void)atomic_fetch_add(&engine->pending, 1);
    (void)atomic_fetch_add(&engine->beat, 1);
    atomic_store(&engine->is_beating, true);
    asked->awaited = 2;
    ask(asked, (struct wr_store_query){.what = WR_STORE_BEAT, .row = on_lent}, on_beaten);
    ask(asked, (struct wr_store_query){.what = WR_STORE_JOBS, .row = on_status}, on_beaten);
}

static void ask_store(struct wr_crawl_loop *loop, int64_t now)
{
    struct wr_engine *engine = loop->engine;
    int phase = atomic_load(&engine->phase);
    if (phase < WR_PHASE_RUNS || phase >= WR_PHASE_CLOSES)
        return;
    if (!atomic_load(&engine->is_beating) && now >= engine->beat_at) {
        engine->beat_at = now + engine->lease_ns / BEATS;
        beat(engine);
    }
    int64_t held = atomic_load(&engine->leases), wanted = 8 * (int64_t)engine->options.concurrency;
    int64_t limit = held + FIRST_CLAIM < CLAIM_MAX ? held + FIRST_CLAIM : CLAIM_MAX;
    limit = limit < wanted - held ? limit : wanted - held;
    if (phase == WR_PHASE_RUNS && limit > 0 && !atomic_load(&engine->is_claiming) &&
        now >= atomic_load(&engine->claim_at))
        claim(engine, (size_t)limit);
}

/* ---- releasing ---- */

static bool has_rested(struct wr_plan_host *host, int64_t now)
{
    int64_t since = wr_plan_host_rested(host);
    if (!wr_plan_host_rests(host)) {
        wr_plan_host_mark(host, wr_plan_host_marked(host), 0);
        return false;
    }
    if (since == 0)
        wr_plan_host_mark(host, wr_plan_host_marked(host), now);
    return since != 0 && now - since >= REST_NS;
}

static void leave(struct wr_crawl_loop *loop, struct wr_plan_host *host, int64_t now)
{
    char memory[WEIR_PACE_KEY_MAX + 1];
    int64_t held_ns, rests_until = wr_plan_host_rests_until(loop->plan, host, now, &held_ns);
    struct wr_span key = wr_plan_host_key(host);
    uint64_t token = wr_plan_host_token(host);
    memcpy(memory, key.data, key.bytes);
    key.data = memory;
    if (token != 0) {
        wr_crawl_loop_note(loop, host); /* stored, because the next owner needs its pace */
        lose(loop, host);
        release(loop->engine, key, token, rests_until == WEIR_FOREVER ? WEIR_FOREVER : rests_until - now, held_ns);
    }
    (void)wr_plan_host_leave(loop->plan, host, now);
}

/* Takes one host from the excess. Loops share it, because one of them may have most hosts. */
static bool is_excess(struct wr_engine *engine)
{
    int64_t left = atomic_load(&engine->excess);
    while (left > 0)
        if (atomic_compare_exchange_weak(&engine->excess, &left, left - 1))
            return true;
    return false;
}

/* Returns true if the host has no work, or none for a while, or another process asks for it. */
static bool may_leave(const struct wr_crawl_loop *loop, struct wr_plan_host *host, int64_t now)
{
    int64_t held_ns;
    if (wr_plan_host_token(host) == 0)
        return wr_plan_host_rests(host);
    return has_rested(host, now) || (wr_plan_host_yields(host) && !wr_plan_host_flies(host)) ||
           wr_plan_host_rests_until(loop->plan, host, now, &held_ns) - loop->engine->lease_ns > now;
}

/* Releases hosts that may leave, that were lost, or that exceed this process's share. */
static void sweep(struct wr_crawl_loop *loop, int64_t now, bool drains)
{
    struct wr_plan_host *list[LEAVE_MAX], *host;
    size_t count = 0;
    for (size_t cursor = 0; count < LEAVE_MAX && (host = wr_plan_host_next(loop->plan, &cursor)) != NULL;)
        if (may_leave(loop, host, now))
            list[count++] = host;
    for (size_t i = 0; i < count; i++)
        (void)(wr_plan_host_token(list[i]) != 0 && is_excess(loop->engine));
    for (size_t cursor = 0; count < LEAVE_MAX && (host = wr_plan_host_next(loop->plan, &cursor)) != NULL;)
        /* Hosts that may leave are in the list already. */
        if (wr_plan_host_token(host) != 0 && !wr_plan_host_flies(host) && !wr_plan_host_rests(host) &&
            !may_leave(loop, host, now) && (drains || is_excess(loop->engine)))
            list[count++] = host;
    for (size_t i = 0; i < count; i++)
        leave(loop, list[i], now);
}

void wr_lease_tick(struct wr_crawl_loop *loop)
{
    int64_t now = wr_crawl_loop_now(loop);
    if (!loop->engine->is_shared)
        return;
    int phase = atomic_load(&loop->engine->phase);
    if (phase == WR_PHASE_RUNS)
        wr_errands_tick(loop);
    if (phase == WR_PHASE_RUNS || phase == WR_PHASE_DRAINS)
        sweep(loop, now, phase == WR_PHASE_DRAINS);
    if (loop->index == 0)
        ask_store(loop, now);
}
