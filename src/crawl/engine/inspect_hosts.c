/* SPDX-License-Identifier: MIT */
/* inspect_hosts.c - looks at a running crawl: each loop finds the foremost of its hosts, a few
 * hundred at a time, and the caller merges them. */
#include "base/ascii.h"
#include "crawl/engine/engine_state.h"

#include <math.h>
#include <stdlib.h>

#define MOST 20
#define HOSTS_AT_ONCE 256 /* hosts per turn: half a millisecond if no cache has them */
#define RESTARTS_MAX 3    /* new walks because the table of hosts has grown */

const char *wr_host_view_sort_name(enum wr_host_view_sort sort)
{
    static const char *const names[] = {
#define X(sort, name) [sort] = (name),
        WR_HOST_VIEW_SORTS(X)
#undef X
    };
    return (size_t)sort < sizeof names / sizeof names[0] ? names[sort] : NULL;
}

bool wr_host_view_sort_parse(struct wr_span name, enum wr_host_view_sort *ret_sort)
{
    for (int i = 0; wr_host_view_sort_name((enum wr_host_view_sort)i) != NULL; i++)
        if (wr_span_is(name, wr_host_view_sort_name((enum wr_host_view_sort)i))) {
            *ret_sort = (enum wr_host_view_sort)i;
            return true;
        }
    return false;
}

/* ---- one host ---- */

static void set_view_key(char to[WEIR_PACE_KEY_MAX + 1], struct wr_span key)
{
    size_t bytes = key.bytes <= WEIR_PACE_KEY_MAX ? key.bytes : WEIR_PACE_KEY_MAX;
    memcpy(to, key.data, bytes);
    to[bytes] = '\0';
}

void wr_host_view_fill(const struct wr_crawl_loop *loop, const struct wr_plan_host *host, struct wr_host_view *ret_host)
{
    struct wr_plan_host_view look;
    const struct wr_plan_host_report *report = &look.report;
    wr_plan_host_view(loop->plan, host, (uint32_t)loop->engine->job, wr_crawl_loop_now(loop), &look);
    *ret_host = (struct wr_host_view){
        .state = look.state,
        .why = look.why,
        .queued = look.queued,
        .in_flight = report->now.in_flight,
        .cap = report->now.cap,
        .rate = look.rate,
        .allowed_rate = look.interval_ns > 0 ? (double)WEIR_SECOND / (double)look.interval_ns : (double)INFINITY,
        .interval_ns = look.interval_ns,
        .requests = report->requests,
        .ok = report->successes,
        .rejected = report->rejected,
        .failed = report->failures,
        .retries = report->retries,
        .bytes = report->bytes,
        .breaker = report->now.breaker,
        .breaker_ns = look.breaker_ns,
        .robots_delay_ns = report->robots_delay_ns,
        .retry_after_ns = look.retry_after_ns,
        .set_interval_ns = look.set_interval_ns,
        .latency_ns = report->now.mean_latency_ns,
        .slow_latency_ns = report->now.p95_latency_ns,
        .error_rate = report->now.error_rate,
        .tokens = report->now.tokens,
        .failures = report->now.consecutive_failures,
        .hasty = report->hasty,
        .is_paused = look.is_paused,
    };
    set_view_key(ret_host->key, report->key);
    memcpy(ret_host->mode, report->now.mode, sizeof ret_host->mode);
    memcpy(ret_host->limit, report->now.limit, sizeof ret_host->limit);
    memcpy(ret_host->limit_why, report->now.limit_why, sizeof ret_host->limit_why);
    memcpy(ret_host->starts, look.starts, sizeof ret_host->starts);
}

struct host_view_request {
    struct wr_loop_query question; /* first member, so that a pointer to it can be cast */
    struct wr_span key;
    struct wr_host_view *host;
    bool is_found;
};

static bool answer_host_view(struct wr_crawl_loop *loop, struct wr_loop_query *question)
{
    struct host_view_request *one = (struct host_view_request *)(void *)question;
    const struct wr_plan_host *host = wr_plan_host_find(loop->plan, one->key);
    one->is_found = host != NULL;
    if (host != NULL)
        wr_host_view_fill(loop, host, one->host);
    return true;
}

int wr_engine_inspect_host(struct wr_engine *engine, struct wr_span key, struct wr_host_view *ret_host)
{
    struct wr_host_view found;
    struct host_view_request one = {.question.answer = answer_host_view, .key = key, .host = &found};
    int error = wr_loop_query_run(&engine->loops[wr_engine_loop_of(engine, key)], &one.question);
    if (error == 0 && !one.is_found)
        error = WEIR_E_ABSENT;
    if (error == 0)
        *ret_host = found;
    return error;
}

/* ---- many hosts ---- */

/* One of the foremost hosts found so far. */
struct top_host {
    int64_t rank; /* sort value; the greatest comes first */
    uint16_t key_bytes;
    char key[WEIR_PACE_KEY_MAX + 1];
};

/* The hosts that one loop finds. */
struct host_views_part {
    struct wr_loop_query question; /* first member, so that a pointer to it can be cast */
    const struct wr_host_view_query *query;
    struct top_host *entries; /* array of `room` elements */
    uint16_t *order;          /* indexes of entries, the foremost first */
    size_t room, count;
    size_t cursor, slots; /* state of the walk; size of the host table at its start */
    int restarts;
    bool was_walked;
    struct wr_host_view_sums sums;
    int64_t took_ns;
    struct wr_host_view *hosts; /* the foremost hosts with all details */
    int64_t *ranks;
    size_t filled;
};

static int64_t rank_by_sort(const struct wr_plan_host_brief *glance, enum wr_host_view_sort sort)
{
    bool is_idle = glance->queued == 0 && glance->in_flight == 0;
    switch (sort) {
    case WR_SORT_WAIT:
        return is_idle && glance->reason != WEIR_REASON_PAUSED ? -1 : glance->wait_ns;
    case WR_SORT_QUEUE:
        return (int64_t)glance->queued;
    case WR_SORT_RATE:
        return glance->recent;
    case WR_SORT_REJECTED:
        return glance->rejected;
    case WR_SORT_NAME:
        break;
    }
    return 0;
}

static int64_t rank_top_host(const struct wr_plan_host_brief *glance, const struct wr_host_view_query *query)
{
    return query->hasty_first && glance->hasty > 0 ? INT64_MAX : rank_by_sort(glance, query->sort);
}

bool wr_host_view_is_before(const struct wr_host_view_query *query, int64_t rank, struct wr_span key,
                            int64_t other_rank, struct wr_span other_key)
{
    if (rank != other_rank)
        return (rank > other_rank) != query->is_reversed;
    size_t bytes = key.bytes < other_key.bytes ? key.bytes : other_key.bytes;
    int order = memcmp(key.data, other_key.data, bytes);
    if (order == 0)
        order = key.bytes < other_key.bytes ? -1 : key.bytes > other_key.bytes;
    return order != 0 && (order < 0) != (query->is_reversed && query->sort == WR_SORT_NAME);
}

static struct wr_span top_host_key(const struct top_host *entry)
{
    return (struct wr_span){entry->key, entry->key_bytes};
}

/* Returns true if the host is listed already: a walk in several steps may meet it twice. */
static bool has_top_host(const struct host_views_part *part, struct wr_span key)
{
    for (size_t i = 0; i < part->count; i++)
        if (part->entries[i].key_bytes == key.bytes && memcmp(part->entries[i].key, key.data, key.bytes) == 0)
            return true;
    return false;
}

static void offer_top_host(struct host_views_part *part, const struct wr_plan_host_brief *glance)
{
    int64_t rank = rank_top_host(glance, part->query);
    size_t low = 0, high = part->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct top_host *entry = &part->entries[part->order[middle]];
        if (wr_host_view_is_before(part->query, rank, glance->key, entry->rank, top_host_key(entry)))
            high = middle;
        else
            low = middle + 1;
    }
    if (low == part->room || has_top_host(part, glance->key))
        return;
    bool is_full = part->count == part->room;
    uint16_t place = is_full ? part->order[part->count - 1] : (uint16_t)part->count;
    part->count += !is_full;
    memmove(&part->order[low + 1], &part->order[low], (part->count - 1 - low) * sizeof *part->order);
    part->order[low] = place;
    struct top_host *entry = &part->entries[place];
    entry->rank = rank;
    entry->key_bytes = (uint16_t)glance->key.bytes;
    memcpy(entry->key, glance->key.data, glance->key.bytes);
}

static bool matches_filter(const struct host_views_part *part, struct wr_span key)
{
    struct wr_span filter = part->query->filter;
    return filter.bytes == 0 || memmem(key.data, key.bytes, filter.data, filter.bytes) != NULL;
}

/* Starts a walk over the hosts; also a new one if their table has grown and moved them. */
static void begin_host_walk(struct host_views_part *part, size_t slots)
{
    part->cursor = 0;
    part->slots = slots;
    part->count = 0;
    part->sums = (struct wr_host_view_sums){0};
}

/* Returns the time until the host has been asked for all that it has queued, if nothing changes. */
static int64_t time_to_last_start(const struct wr_plan_host_brief *glance)
{
    int64_t wait_ns = glance->wait_ns != WEIR_UNTIL_RELEASE ? glance->wait_ns : 0;
    if (glance->queued == 0 || wait_ns >= WEIR_DURATION_MAX)
        return glance->queued == 0 ? 0 : WEIR_DURATION_MAX;
    if (glance->interval_ns > 0 && glance->queued - 1 > (uint64_t)((WEIR_DURATION_MAX - wait_ns) / glance->interval_ns))
        return WEIR_DURATION_MAX;
    return wait_ns + (int64_t)(glance->queued - 1) * glance->interval_ns;
}

static void add_host_to_sums(struct wr_host_view_sums *sums, const struct wr_plan_host_brief *glance)
{
    sums->matched++;
    sums->states[wr_host_state_of(glance->reason, glance->queued, glance->in_flight)]++;
    sums->breakers[glance->breaker]++;
    sums->queued += glance->queued;
    sums->in_flight += glance->in_flight;
    sums->recent += glance->recent;
    int64_t last_ns = time_to_last_start(glance);
    sums->last_ns = last_ns > sums->last_ns ? last_ns : sums->last_ns;
}

/* Looks at the next hosts. Returns true at the end of the walk. */
static bool walk_hosts(struct wr_crawl_loop *loop, struct host_views_part *part)
{
    const struct wr_plan_host *host = NULL;
    size_t slots = wr_plan_host_slots(loop->plan);
    int64_t now = wr_crawl_loop_now(loop);
    if (slots != part->slots && part->restarts++ < RESTARTS_MAX)
        begin_host_walk(part, slots);
    for (int i = 0; i < HOSTS_AT_ONCE && (host = wr_plan_host_next(loop->plan, &part->cursor)) != NULL; i++) {
        struct wr_plan_host_brief glance;
        wr_plan_host_brief(loop->plan, host, now, &glance);
        if (!matches_filter(part, glance.key))
            continue;
        add_host_to_sums(&part->sums, &glance);
        offer_top_host(part, &glance);
    }
    return host == NULL;
}

/* Fills in the next hosts. Returns true when all are filled in. */
static bool fill_host_views(struct wr_crawl_loop *loop, struct host_views_part *part)
{
    for (int i = 0; i < HOSTS_AT_ONCE / 4 && part->filled < part->count; i++) {
        const struct top_host *entry = &part->entries[part->order[part->filled]];
        const struct wr_plan_host *host = wr_plan_host_find(loop->plan, top_host_key(entry));
        if (host == NULL) { /* the host has left memory */
            part->count--;
            memmove(&part->order[part->filled], &part->order[part->filled + 1],
                    (part->count - part->filled) * sizeof *part->order);
            continue;
        }
        part->ranks[part->filled] = entry->rank;
        wr_host_view_fill(loop, host, &part->hosts[part->filled++]);
    }
    return part->filled == part->count;
}

static bool answer_host_views(struct wr_crawl_loop *loop, struct wr_loop_query *question)
{
    struct host_views_part *part = (struct host_views_part *)(void *)question;
    int64_t began_at = wr_crawl_loop_now(loop);
    bool is_filled = part->was_walked && fill_host_views(loop, part);
    if (!part->was_walked)
        part->was_walked = walk_hosts(loop, part);
    part->took_ns += wr_crawl_loop_now(loop) - began_at;
    return is_filled;
}

static bool make_host_views_part(struct host_views_part *part, const struct wr_host_view_query *query)
{
    *part = (struct host_views_part){.question.answer = answer_host_views, .query = query, .slots = SIZE_MAX};
    part->room = query->most;
    part->entries = calloc(part->room, sizeof *part->entries);
    part->order = calloc(part->room + 1, sizeof *part->order);
    part->hosts = calloc(part->room, sizeof *part->hosts);
    part->ranks = calloc(part->room, sizeof *part->ranks);
    return part->entries != NULL && part->order != NULL && part->hosts != NULL && part->ranks != NULL;
}

static void free_host_views_parts(struct host_views_part *parts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        free(parts[i].entries);
        free(parts[i].order);
        free(parts[i].hosts);
        free(parts[i].ranks);
    }
    free(parts);
}

/* Returns the part whose next host comes before those of the others; NULL if no host is left. */
static struct host_views_part *foremost_part(struct host_views_part *parts, uint32_t count, const size_t *taken)
{
    struct host_views_part *best = NULL;
    for (uint32_t i = 0; i < count; i++) {
        struct host_views_part *part = &parts[i];
        if (taken[i] == part->filled)
            continue;
        size_t n = taken[i], m = best != NULL ? taken[best - parts] : 0;
        if (best == NULL || wr_host_view_is_before(part->query, part->ranks[n], wr_span_of(part->hosts[n].key),
                                                   best->ranks[m], wr_span_of(best->hosts[m].key)))
            best = part;
    }
    return best;
}

static void add_part_sums(struct wr_host_view_sums *into, const struct wr_host_view_sums *sums)
{
    into->matched += sums->matched;
    into->queued += sums->queued;
    into->in_flight += sums->in_flight;
    into->recent += sums->recent;
    into->last_ns = sums->last_ns > into->last_ns ? sums->last_ns : into->last_ns;
    for (int state = 0; state < WR_HOST_STATES_COUNT; state++)
        into->states[state] += sums->states[state];
    for (int state = 0; state <= WEIR_BREAKER_HALF_OPEN; state++)
        into->breakers[state] += sums->breakers[state];
}

static int merge_host_views(struct host_views_part *parts, uint32_t count, size_t most, struct wr_host_views **ret_look)
{
    size_t taken[WR_LOOPS_MAX] = {0}, total = 0;
    struct host_views_part *part;
    for (uint32_t i = 0; i < count; i++)
        total += parts[i].filled;
    total = total < most ? total : most;
    struct wr_host_views *look = calloc(1, sizeof *look + total * sizeof look->hosts[0]);
    if (look == NULL)
        return WEIR_E_NOMEM;
    while (look->count < total && (part = foremost_part(parts, count, taken)) != NULL)
        look->hosts[look->count++] = part->hosts[taken[part - parts]++];
    for (uint32_t i = 0; i < count; i++) {
        add_part_sums(&look->sums, &parts[i].sums);
        look->took_ns += parts[i].took_ns;
    }
    *ret_look = look;
    return 0;
}

static int ask_all_loops(struct wr_engine *engine, struct host_views_part *parts)
{
    struct wr_loop_queries asking;
    wr_loop_queries_begin(&asking);
    for (uint32_t i = 0; i < engine->loop_count; i++)
        wr_loop_queries_send(&asking, &engine->loops[i], &parts[i].question);
    return wr_loop_queries_wait(&asking);
}

int wr_engine_inspect_hosts(struct wr_engine *engine, const struct wr_host_view_query *query,
                            struct wr_host_views **ret_look)
{
    char filter[WEIR_PACE_KEY_MAX + 1];
    struct wr_host_view_query wanted = *query;
    bool is_made = true;
    if (wanted.most == 0 || wanted.most > WR_HOST_VIEWS_MAX)
        wanted.most = wanted.most == 0 ? MOST : WR_HOST_VIEWS_MAX;
    wanted.filter.bytes = wanted.filter.bytes < sizeof filter ? wanted.filter.bytes : sizeof filter;
    for (size_t i = 0; i < wanted.filter.bytes; i++)
        filter[i] = wr_ascii_lower(wanted.filter.data[i]);
    wanted.filter.data = filter;
    struct host_views_part *parts = calloc(engine->loop_count, sizeof *parts);
    for (uint32_t i = 0; parts != NULL && i < engine->loop_count; i++)
        is_made &= make_host_views_part(&parts[i], &wanted);
    int error = parts != NULL && is_made ? ask_all_loops(engine, parts) : WEIR_E_NOMEM;
    if (error == 0)
        error = merge_host_views(parts, engine->loop_count, wanted.most, ret_look);
    if (parts != NULL)
        free_host_views_parts(parts, engine->loop_count);
    return error;
}

void wr_host_views_free(struct wr_host_views *look)
{
    free(look);
}
