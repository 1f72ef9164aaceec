/* SPDX-License-Identifier: MIT */
/* world.c - simulates a whole crawl in virtual time: its start, its crashes and its end. */
#include "sim/crawl/world.h"

#include "core/pace/pace_options.h"

#include <stdio.h>
#include <stdlib.h>

#define STEPS_MAX 400000
#define TIME_MAX (10 * WEIR_HOUR)

/* ---- helpers --------- */

bool world_once_in(struct world *world, uint64_t n)
{
    return wr_rng_below(&world->rng, n) == 0;
}

uint32_t world_loop_of(const struct world *world, uint32_t host)
{
    return host * 7 % world->loops;
}

uint64_t world_fingerprint(const struct world *world, const char *url)
{
    return wr_hash(&world->key, url, strlen(url));
}

void world_parse(const char *text, char memory[WR_URL_ROOM], struct wr_url *ret_url)
{
    if (wr_url_parse(wr_span_of(text), NULL, NULL, memory, WR_URL_ROOM, ret_url) != WR_URL_OK)
        abort();
}

struct event *world_event(struct world *world, enum event_kind kind, int64_t at)
{
    struct event *event = world->free_events;
    if (event == NULL)
        abort();
    world->free_events = event->next_free;
    *event = (struct event){.kind = kind, .at = at > world->now ? at : world->now, .row = UINT32_MAX};
    if (wr_heap_push(&world->heap, event->at, &event->item) != 0)
        abort();
    return event;
}

void world_end_job(struct world *world, uint32_t job)
{
    world->over[job] = true;
    wr_ledger_close(&world->ledgers[job]);
    for (uint32_t i = 0; i < world->loops; i++)
        wr_plan_job_end(world->plans[i], job);
}

/* ---- random worlds ---- */

static uint32_t index_of(struct wr_span key)
{
    return (uint32_t)strtoul(key.data + 1, NULL, 10);
}

uint32_t world_index_of(const struct wr_plan_host *host)
{
    return index_of(wr_plan_host_key(host));
}

/* Returns the group of a host, "g0" ... "g3". */
static struct wr_span group_of(void *context, struct wr_span key)
{
    static char name[8];
    (void)context;
    snprintf(name, sizeof name, "g%u", index_of(key) / 2 % GROUPS);
    return wr_span_of(name);
}

static void host_left(void *context, const struct wr_plan_host_report *report)
{
    struct world *world = context;
    world->laws.hosts[index_of(report->key)].left = true;
    laws_reported(&world->laws, index_of(report->key), report, world->now);
}

static void draw_options(struct world *world)
{
    static const weir_profile profiles[] = {WEIR_PROFILE_ADAPTIVE, WEIR_PROFILE_STRICT, WEIR_PROFILE_AIMD,
                                            WEIR_PROFILE_LEARNED, WEIR_PROFILE_UNLIMITED};
    static const unsigned char secret[WR_HASH_SECRET_BYTES] = {11};
    struct wr_plan_options *options = &world->options;
    struct wr_robots_lifecycle_options robots = {.on_error = WR_ROBOTS_ON_ERROR_RFC9309};
    weir_pace_options pace;
    weir_pace_options_profile(&pace, profiles[wr_rng_below(&world->rng, 5)]);
    if (world_once_in(world, 3))
        pace.min_interval_ns = (int64_t)(50 + wr_rng_below(&world->rng, 1000)) * WEIR_MILLISECOND;
    pace.max_in_flight = (uint32_t)(1 + wr_rng_below(&world->rng, 6));
    wr_hash_key_init(&world->key, secret);
    if (wr_pace_options_check(&pace, &options->pace) != 0 ||
        wr_robots_lifecycle_options_check(&robots, &options->robots) != 0)
        abort();
    options->hash_key = &world->key;
    options->allocator = weir_allocator_system();
    options->ignores_robots = world_once_in(world, 8);
    options->max_hosts = world_once_in(world, 4) ? (uint32_t)(2 + wr_rng_below(&world->rng, 6)) : 0;
    options->max_tasks = (uint32_t)(64 + wr_rng_below(&world->rng, 400));
    options->known_max = world_once_in(world, 4) ? 64 : 65536;
    options->window = (uint32_t)(1 + wr_rng_below(&world->rng, 64));
    options->max_in_flight = (uint32_t)(1 + wr_rng_below(&world->rng, 40));
    options->max_variants = (uint32_t)(5 + wr_rng_below(&world->rng, 20));
    options->max_defer_ns = (int64_t)(60 + wr_rng_below(&world->rng, 300)) * WEIR_SECOND;
    options->rules_bytes = world_once_in(world, 4) ? 2000 : 0;
    options->seed = world->seed;
    world->grouping = (enum grouping)wr_rng_below(&world->rng, 3);
    options->group_of = world->grouping == GROUPS_DOMAIN ? group_of : NULL;
    options->host_left = host_left;
    options->context = world;
}

static void draw_jobs(struct world *world)
{
    world->jobs = (uint32_t)(1 + wr_rng_below(&world->rng, STORE_JOBS));
    world->job_options.concurrency =
        world_once_in(world, 2) ? (uint32_t)(world->loops + wr_rng_below(&world->rng, 8)) : 0;
    world->job_options.max_depth = world_once_in(world, 2) ? (uint32_t)(2 + wr_rng_below(&world->rng, 6)) : 0;
    world->job_options.host_pages = world_once_in(world, 4) ? (uint32_t)(5 + wr_rng_below(&world->rng, 30)) : 0;
    world->page_budget = world_once_in(world, 4) ? 20 + wr_rng_below(&world->rng, 200) : WR_LEDGER_UNLIMITED;
    world->job_options.has_page_budget = world->page_budget != WR_LEDGER_UNLIMITED;
}

/* ---- lives ---- */

static void begin_job(struct world *world, uint32_t job)
{
    for (uint32_t i = 0; i < world->loops; i++) {
        struct wr_plan_job options = world->job_options;
        options.id = job;
        options.concurrency = wr_ledger_share(options.concurrency, i, world->loops);
        if (wr_plan_job_add(world->plans[i], &options) != 0)
            abort();
    }
    for (uint32_t i = 0; i < world->store.count; i++)
        if (world->store.rows[i].job == job && !world->store.rows[i].is_gone && !world->is_incomplete)
            wr_plan_add_known_url(world->plans[world_loop_of(world, world->store.rows[i].host)], job,
                                  world->store.rows[i].fingerprint);
    for (uint32_t host = 0; host < world->web.count; host++) {
        char key[24];
        uint32_t waits = store_queued(&world->store, job, host);
        snprintf(key, sizeof key, "h%u.example", host);
        if (waits > 0)
            wr_plan_hosts_row(world->plans[world_loop_of(world, host)], job, wr_span_of(key), waits, world->now);
    }
}

static void begin_life(struct world *world)
{
    for (uint32_t i = 0; i < world->loops; i++) {
        if (wr_plan_new(&world->options, &world->plans[i]) != 0)
            abort();
        if (world->is_incomplete)
            wr_plan_set_known_incomplete(world->plans[i]);
    }
    for (uint32_t job = 1; job <= world->jobs; job++)
        if (!world->over[job])
            begin_job(world, job);
}

static void report(struct world *world, const struct wr_plan *plan)
{
    const struct wr_plan_host *host;
    for (size_t cursor = 0; (host = wr_plan_host_next(plan, &cursor)) != NULL;) {
        struct wr_plan_host_report report;
        wr_plan_host_report(plan, host, world->now, &report);
        laws_reported(&world->laws, index_of(report.key), &report, world->now);
    }
}

static void end_life(struct world *world)
{
    while (wr_heap_peek(&world->heap, NULL) != NULL) {
        struct event *event = (struct event *)(void *)wr_heap_pop(&world->heap);
        event->next_free = world->free_events;
        world->free_events = event;
    }
    memset(world->wake_at, 0, sizeof world->wake_at);
    world->held_until = 0;
    for (int i = 0; i < 64; i++) {
        free(world->errands[i]);
        world->errands[i] = NULL;
    }
    for (uint32_t i = 0; i < world->loops; i++) {
        report(world, world->plans[i]);
        wr_plan_free(world->plans[i]);
    }
    laws_life_ended(&world->laws, world->now);
}

/* Simulates a power failure: only committed data survives. */
static void crash(struct world *world)
{
    end_life(world);
    store_commit(&world->store, world->now);
    store_crash(&world->store);
    world->now += (int64_t)wr_rng_below(&world->rng, world_once_in(world, 2) ? 100 : 60000) * WEIR_MILLISECOND;
    world->is_incomplete = world_once_in(world, 3);
    world->crashes++;
    laws_restart(&world->laws, &world->store, world->now);
    for (uint32_t job = 1; job <= world->jobs; job++)
        world->paused[job] = false;
    begin_life(world);
}

static void offer_seeds(struct world *world)
{
    for (uint32_t job = 1; job <= world->jobs; job++)
        for (uint32_t i = 0; i < 3; i++) {
            struct event link = {.job = job};
            struct store_row row = {.job = job};
            uint32_t host = (uint32_t)wr_rng_below(&world->rng, world->web.count), number;
            web_seed_url(&world->web, host, link.url);
            row.fingerprint = world_fingerprint(world, link.url);
            row.host = host;
            snprintf(row.url, sizeof row.url, "%s", link.url);
            enum wr_add_url_verdict verdict;
            while ((verdict = world_offer(world, world_loop_of(world, host), &link)) == WR_ADD_URL_LATER)
                world_pump(world, world_loop_of(world, host));
            if (verdict == WR_ADD_URL_NEW) {
                store_insert(&world->store, &row, world->now, &number);
            }
        }
    store_commit(&world->store, world->now);
}

/* ---- running ---- */

static void hold(struct world *world)
{
    world->held_until = world->now + (int64_t)wr_rng_below(&world->rng, 3000) * WEIR_MILLISECOND;
    for (uint32_t i = 0; i < world->loops; i++)
        wr_plan_hold_starts(world->plans[i], world->held_until);
}

static void meddle(struct world *world)
{
    uint32_t job = (uint32_t)(1 + wr_rng_below(&world->rng, world->jobs));
    if (world->over[job])
        return;
    if (world_once_in(world, 6)) {
        world_end_job(world, job);
        return;
    }
    world->paused[job] = !world->paused[job];
    for (uint32_t i = 0; i < world->loops; i++)
        wr_plan_job_pause(world->plans[i], job, world->paused[job] ? WEIR_REASON_PAUSED : WEIR_REASON_NONE);
}

static void check_bounds(struct world *world)
{
    for (uint32_t i = 0; i < world->loops; i++) {
        struct wr_plan_stats stats;
        wr_plan_stats_get(world->plans[i], &stats);
        uint32_t hosts = world->options.max_hosts != 0 ? world->options.max_hosts : 100000;
        if (stats.hosts > hosts || stats.in_flight > world->options.max_in_flight ||
            stats.tasks > world->options.max_tasks + world->options.max_in_flight + 64)
            laws_break(&world->laws, "V6: more than there may be", wr_span_of("-"), world->now);
        if (!wr_plan_ok(world->plans[i]))
            laws_break(&world->laws, "the plan's invariants do not hold", wr_span_of("-"), world->now);
        if (wr_plan_known_is_crowded(world->plans[i]) && world_once_in(world, 2))
            wr_plan_known_grow(world->plans[i]);
    }
}

static bool is_over(const struct world *world)
{
    for (uint32_t job = 1; job <= world->jobs; job++)
        if (!world->over[job] && world->store.open[job] > 0)
            return false;
    return true;
}

static void unpause(struct world *world)
{
    for (uint32_t job = 1; job <= world->jobs; job++)
        if (world->paused[job] && !world->over[job]) {
            world->paused[job] = false;
            for (uint32_t i = 0; i < world->loops; i++)
                wr_plan_job_pause(world->plans[i], job, WEIR_REASON_NONE);
        }
}

/* Resumes all jobs that were paused. */
static void go_on(struct world *world)
{
    unpause(world);
    for (uint32_t i = 0; i < world->loops; i++)
        world_pump(world, i);
}

static void step(struct world *world)
{
    struct event *event = (struct event *)(void *)wr_heap_pop(&world->heap);
    world->now = event->at > world->now ? event->at : world->now;
    store_commit(&world->store, world->now);
    struct event copy = *event;
    event->next_free = world->free_events;
    world->free_events = event;
    world_happen(world, &copy);
    if (world_once_in(world, 400))
        meddle(world);
    else if (world_once_in(world, 50))
        unpause(world);
    else if (world_once_in(world, 200))
        hold(world);
    for (uint32_t i = 0; i < world->loops; i++)
        world_pump(world, i);
    if (world_once_in(world, 20))
        check_bounds(world);
    if (world->crashes_left > 0 && world_once_in(world, 300)) {
        world->crashes_left--;
        crash(world);
        for (uint32_t i = 0; i < world->loops; i++)
            world_pump(world, i);
    }
}

/* ---- the end ---- */

/* V4: all links of a fetched page are in the store, except those that were refused. */
static void check_closed(struct world *world, const struct store_row *page)
{
    char links[WEB_LINKS_MAX][WEB_URL], memory[WR_URL_ROOM];
    size_t count = web_links(&world->web, wr_span_of(page->url), links);
    for (size_t i = 0; i < count; i++) {
        struct wr_url url;
        world_parse(links[i], memory, &url);
        struct wr_url_to_add offer = {.job = page->job, .url = &url, .depth = page->depth + 1};
        char kind = web_kind_of(wr_span_of(links[i]));
        if (kind == 't' || wr_plan_check_url(world->plans[0], &offer) != WR_ADD_URL_NEW)
            continue;
        if (store_find(&world->store, page->job, world_fingerprint(world, links[i])) == UINT32_MAX)
            laws_break(&world->laws, "V4: a link was lost", wr_span_of(links[i]), world->now);
    }
}

static void check_end(struct world *world)
{
    bool has_budget = world->job_options.host_pages != 0 || world->job_options.has_page_budget;
    for (uint32_t i = 0; i < world->store.count; i++) {
        const struct store_row *row = &world->store.rows[i];
        if (row->is_gone || world->over[row->job])
            continue;
        if (!row->has_ended)
            laws_break(&world->laws, "V4: a URL is neither done nor failed", wr_span_of(row->url), world->now);
        if (row->was_page && !has_budget)
            check_closed(world, row);
    }
    check_bounds(world);
    for (uint32_t job = 1; job <= world->jobs; job++)
        for (uint32_t i = 0; i < world->loops && !world->over[job] && !world->is_incomplete; i++)
            if (wr_plan_job_forget(world->plans[i], job) != 0 && world->options.known_max > 64)
                laws_break(&world->laws, "V5: all has ended, and a plan thinks that something is open", wr_span_of("-"),
                           world->now);
}

static void begin(struct world *world, uint64_t seed)
{
    world->seed = seed;
    wr_rng_init(&world->rng, seed * 3 + 1);
    web_init(&world->web, seed);
    draw_options(world);
    world->loops = (uint32_t)(1 + wr_rng_below(&world->rng, LOOPS_MAX));
    draw_jobs(world);
    world->crashes_left = world_once_in(world, 2) ? (uint32_t)(1 + wr_rng_below(&world->rng, 5)) : 0;
    wr_heap_init(&world->heap, weir_allocator_system(), EVENTS_MAX);
    for (size_t i = 0; i < EVENTS_MAX; i++) {
        world->events[i].next_free = world->free_events;
        world->free_events = &world->events[i];
    }
    for (uint32_t job = 1; job <= world->jobs; job++) {
        wr_ledger_init(&world->ledgers[job], world->page_budget, WR_LEDGER_UNLIMITED, 0);
        world->ledgers[job].has_many_hosts = world_once_in(world, 2);
    }
    laws_init(&world->laws, &world->options);
    world->laws.concurrency = world->job_options.concurrency;
    begin_life(world);
    offer_seeds(world);
    for (uint32_t i = 0; i < world->loops; i++)
        world_pump(world, i);
}

const char *world_run(uint64_t seed, char ret_detail[160], struct wr_plan_stats *ret_stats)
{
    static struct world world;
    memset(&world, 0, sizeof world);
    begin(&world, seed);
    while (!is_over(&world) && world.laws.broken == NULL && world.steps++ < STEPS_MAX && world.now < TIME_MAX) {
        if (wr_heap_peek(&world.heap, NULL) == NULL)
            go_on(&world);
        if (wr_heap_peek(&world.heap, NULL) == NULL) {
            laws_break(&world.laws, "V7: nothing happens any more, and jobs are open", wr_span_of("-"), world.now);
            break;
        }
        step(&world);
    }
    if (world.laws.broken == NULL && !is_over(&world))
        laws_break(&world.laws, "V7: the crawl does not end", wr_span_of("-"), world.now);
    for (int i = 0; i < 1000 && world.laws.broken == NULL && wr_heap_peek(&world.heap, NULL) != NULL; i++)
        step(&world); /* late answers of the store */
    if (world.laws.broken == NULL && is_over(&world))
        check_end(&world);
    wr_plan_stats_get(world.plans[0], ret_stats);
    end_life(&world);
    wr_heap_release(&world.heap);
    web_release(&world.web);
    snprintf(ret_detail, 160, "%s", world.laws.detail);
    return world.laws.broken;
}
