/* SPDX-License-Identifier: MIT */
/* host_history.c - the host history: a ring of records for each of a limited number of hosts. */
#include "watch/dashboard/host_history.h"

#include "base/alloc.h"
#include "watch/control/control_request.h"

struct host_record {
    int64_t wall_at, latency_ns;
    double rate, allowed_rate;
    uint32_t in_flight, cap;
};

struct recorded_host {
    char key[WEIR_PACE_KEY_MAX + 1]; /* key of the host; empty: the slot is free */
    int64_t marked_at;
    uint32_t count; /* records ever made; the last WR_HOST_HISTORY_RECORDS are kept */
    struct host_record host_records[WR_HOST_HISTORY_RECORDS];
};

struct wr_host_history {
    const weir_allocator *allocator;
    struct recorded_host paths[WR_HOST_HISTORY_HOSTS];
};

int wr_host_history_new(const weir_allocator *allocator, struct wr_host_history **ret_trail)
{
    struct wr_host_history *history = wr_alloc(allocator, sizeof *history, _Alignof(struct wr_host_history));
    if (history == NULL)
        return WEIR_E_NOMEM;
    history->allocator = allocator;
    *ret_trail = history;
    return 0;
}

void wr_host_history_free(struct wr_host_history *history)
{
    if (history != NULL)
        wr_free(history->allocator, history, sizeof *history, _Alignof(struct wr_host_history));
}

static struct recorded_host *recorded_host_of(struct wr_host_history *history, const char *key)
{
    struct recorded_host *oldest = &history->paths[0];
    for (size_t i = 0; i < WR_HOST_HISTORY_HOSTS; i++) {
        struct recorded_host *path = &history->paths[i];
        if (strcmp(path->key, key) == 0)
            return path;
        if (path->key[0] == '\0' ? oldest->key[0] != '\0'
                                 : oldest->key[0] != '\0' && path->marked_at < oldest->marked_at)
            oldest = path;
    }
    memset(oldest->key, 0, sizeof oldest->key);
    memcpy(oldest->key, key, strlen(key));
    oldest->count = 0;
    return oldest;
}

void wr_host_history_record(struct wr_host_history *history, const struct wr_host_view *host, int64_t now,
                            int64_t wall_now)
{
    struct recorded_host *path = recorded_host_of(history, host->key);
    if (path->count > 0 && now - path->marked_at < WR_HOST_HISTORY_INTERVAL_NS)
        return;
    path->host_records[path->count++ % WR_HOST_HISTORY_RECORDS] =
        (struct host_record){.wall_at = wall_now,
                             .latency_ns = host->latency_ns,
                             .rate = host->rate,
                             .allowed_rate = host->allowed_rate,
                             .in_flight = host->in_flight,
                             .cap = host->cap};
    path->marked_at = now;
}

static void append_record(struct wr_buf *buf, const struct host_record *host_record)
{
    wr_append_json_count(buf, "[", (uint64_t)(host_record->wall_at / WEIR_MILLISECOND));
    wr_append_json_rate(buf, ",", host_record->rate);
    wr_append_json_rate(buf, ",", host_record->allowed_rate);
    wr_append_json_count(buf, ",", host_record->in_flight);
    wr_append_json_ms(buf, ",", host_record->latency_ns);
    if (host_record->cap != UINT32_MAX)
        wr_append_json_count(buf, ",", host_record->cap);
    else
        wr_append_json_null(buf, ",");
    wr_buf_append_string(buf, "]");
}

void wr_host_history_append(const struct wr_host_history *history, const char *key, struct wr_buf *buf)
{
    wr_buf_append_string(buf, "[");
    for (size_t i = 0; i < WR_HOST_HISTORY_HOSTS; i++) {
        const struct recorded_host *path = &history->paths[i];
        if (strcmp(path->key, key) != 0 || key[0] == '\0')
            continue;
        uint32_t first = path->count > WR_HOST_HISTORY_RECORDS ? path->count - WR_HOST_HISTORY_RECORDS : 0;
        for (uint32_t number = first; number < path->count; number++) {
            wr_buf_append_string(buf, number > first ? "," : "");
            append_record(buf, &path->host_records[number % WR_HOST_HISTORY_RECORDS]);
        }
    }
    wr_buf_append_string(buf, "]");
}
