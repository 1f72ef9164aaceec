/* SPDX-License-Identifier: MIT */
/* rate_history.c - records how fast each host was asked in the course of a run. */
#include "crawl/engine/rate_history.h"

#include <string.h>

#define VIEW_NS 2000    /* estimated time of a loop to look at one host */
#define SAMPLE_SHARE 50 /* samples take at most 1/50 of the loops' time */

void wr_rate_history_init(struct wr_rate_history *ret_course)
{
    memset(ret_course, 0, sizeof *ret_course);
    ret_course->step_ns = WEIR_SECOND;
}

/* ---- time steps ---- */

static void join_step_pairs(struct wr_rate_history *history)
{
    for (size_t i = 0; i < history->count; i++) {
        struct wr_rate_history_host *host = &history->hosts[i];
        for (size_t n = 0; n < WR_RATE_HISTORY_POINTS; n++)
            host->starts[n] = n < WR_RATE_HISTORY_POINTS / 2 ? host->starts[2 * n] + host->starts[2 * n + 1] : 0;
        host->from = (host->from + 1) / 2;
    }
    history->points /= 2;
    history->step_ns *= 2;
}

void wr_rate_history_advance(struct wr_rate_history *history, int64_t elapsed_ns)
{
    while (elapsed_ns / history->step_ns >= WR_RATE_HISTORY_POINTS) /* keeps room for the current step */
        join_step_pairs(history);
    history->points = (uint32_t)(elapsed_ns / history->step_ns);
}

void wr_rate_history_widen(struct wr_rate_history *history, uint64_t hosts)
{
    while (hosts > (uint64_t)(history->step_ns / SAMPLE_SHARE / VIEW_NS))
        join_step_pairs(history);
}

/* ---- hosts ---- */

static struct wr_rate_history_host *find_history_host(const struct wr_rate_history *history, struct wr_span key)
{
    for (size_t i = 0; i < history->count; i++)
        if (wr_span_is(key, history->hosts[i].key))
            return (struct wr_rate_history_host *)&history->hosts[i];
    return NULL;
}

/* Returns a free entry, or that of a host with less than half as many requests. Returns NULL if all
 * entries are taken by busier hosts. */
static struct wr_rate_history_host *make_history_host(struct wr_rate_history *history, uint64_t requests)
{
    struct wr_rate_history_host *least = &history->hosts[0];
    if (history->count < WR_RATE_HISTORY_HOSTS)
        return &history->hosts[history->count++];
    for (size_t i = 1; i < history->count; i++)
        least = history->hosts[i].seen < least->seen ? &history->hosts[i] : least;
    return least->seen < requests / 2 ? least : NULL;
}

void wr_rate_history_note(struct wr_rate_history *history, const char *key, uint64_t requests, bool is_whole)
{
    struct wr_rate_history_host *host = find_history_host(history, wr_span_of(key));
    size_t key_bytes = strlen(key);
    if (history->points == 0 || key_bytes > WEIR_PACE_KEY_MAX)
        return;
    if (host == NULL) {
        host = make_history_host(history, requests);
        if (host == NULL)
            return;
        memset(host, 0, sizeof *host);
        memcpy(host->key, key, key_bytes);
        host->from = is_whole ? 0 : history->points;
        host->seen = is_whole ? 0 : requests;
    }
    if (requests < host->seen) {
        host->was_lost = true;
        host->seen = 0;
    }
    host->starts[history->points - 1] += (uint32_t)(requests - host->seen);
    host->seen = requests;
}

static bool has_host_view(const struct wr_host_views *look, const char *key)
{
    for (size_t i = 0; i < look->count; i++)
        if (strcmp(look->hosts[i].key, key) == 0)
            return true;
    return false;
}

void wr_rate_history_sample(struct wr_rate_history *history, struct wr_engine *engine, int64_t elapsed_ns)
{
    const struct wr_host_view_query query = {.sort = WR_SORT_RATE, .most = WR_RATE_HISTORY_HOSTS};
    struct wr_host_view one;
    struct wr_host_views *look;
    if (elapsed_ns < (history->points + 1) * history->step_ns)
        return;
    wr_rate_history_advance(history, elapsed_ns);
    if (wr_engine_inspect_hosts(engine, &query, &look) != 0)
        return;
    for (size_t i = 0; i < history->count; i++) {
        if (has_host_view(look, history->hosts[i].key))
            continue;
        if (wr_engine_inspect_host(engine, wr_span_of(history->hosts[i].key), &one) == 0)
            wr_rate_history_note(history, one.key, one.requests, false);
        else
            history->hosts[i].was_lost = true;
    }
    history->last_at = elapsed_ns + look->sums.last_ns;
    /* True if earlier looks cannot have left out a host. */
    bool is_whole = look->sums.matched <= WR_RATE_HISTORY_HOSTS;
    for (size_t i = 0; i < look->count; i++)
        if (look->hosts[i].requests > 0)
            wr_rate_history_note(history, look->hosts[i].key, look->hosts[i].requests, is_whole);
    wr_rate_history_widen(history, look->sums.matched);
    wr_host_views_free(look);
}

size_t wr_rate_history_read(const struct wr_rate_history *history, struct wr_span key, uint64_t requests,
                            int64_t elapsed_ns, int64_t ret_starts[WR_RATE_HISTORY_POINTS])
{
    const struct wr_rate_history_host *host = find_history_host(history, key);
    uint64_t told = 0;
    if (host == NULL && history->points > 0)
        return 0;
    int64_t last = elapsed_ns / history->step_ns;
    last = last < WR_RATE_HISTORY_POINTS ? last : WR_RATE_HISTORY_POINTS - 1;
    for (int64_t i = 0; i <= last; i++) {
        bool is_known = host == NULL || (uint32_t)i >= host->from;
        uint32_t starts = is_known && host != NULL ? host->starts[i] : 0;
        ret_starts[i] = is_known ? (int64_t)starts : -1;
        told += starts;
    }
    if (host == NULL || (host->from == 0 && !host->was_lost)) /* adds starts after the last look */
        ret_starts[last] += requests > told ? (int64_t)(requests - told) : 0;
    return (size_t)last + 1;
}
