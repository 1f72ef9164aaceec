/* SPDX-License-Identifier: MIT */
/* trail.c - the host history: a ring of records for each of a limited number of hosts. */
#include "shell/panel/trail.h"

#include "base/alloc.h"
#include "shell/desk/ask.h"

struct mark {
    int64_t wall_at, latency_ns;
    double rate, allowed_rate;
    uint32_t in_flight, cap;
};

struct path {
    char key[WEIR_PACE_KEY_MAX + 1]; /* key of the host; empty: the slot is free */
    int64_t marked_at;
    uint32_t count; /* records ever made; the last WR_TRAIL_MARKS are kept */
    struct mark marks[WR_TRAIL_MARKS];
};

struct wr_trail {
    const weir_allocator *allocator;
    struct path paths[WR_TRAIL_HOSTS];
};

int wr_trail_new(const weir_allocator *allocator, struct wr_trail **ret_trail)
{
    struct wr_trail *trail = wr_take(allocator, sizeof *trail, _Alignof(struct wr_trail));
    if (trail == NULL)
        return WEIR_E_NOMEM;
    trail->allocator = allocator;
    *ret_trail = trail;
    return 0;
}

void wr_trail_free(struct wr_trail *trail)
{
    if (trail != NULL)
        wr_give(trail->allocator, trail, sizeof *trail, _Alignof(struct wr_trail));
}

static struct path *path_of(struct wr_trail *trail, const char *key)
{
    struct path *oldest = &trail->paths[0];
    for (size_t i = 0; i < WR_TRAIL_HOSTS; i++) {
        struct path *path = &trail->paths[i];
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

void wr_trail_mark(struct wr_trail *trail, const struct wr_look_host *host, int64_t now, int64_t wall_now)
{
    struct path *path = path_of(trail, host->key);
    if (path->count > 0 && now - path->marked_at < WR_TRAIL_EVERY_NS)
        return;
    path->marks[path->count++ % WR_TRAIL_MARKS] = (struct mark){.wall_at = wall_now,
                                                                .latency_ns = host->latency_ns,
                                                                .rate = host->rate,
                                                                .allowed_rate = host->allowed_rate,
                                                                .in_flight = host->in_flight,
                                                                .cap = host->cap};
    path->marked_at = now;
}

static void append_mark(struct wr_buf *buf, const struct mark *mark)
{
    wr_append_json_count(buf, "[", (uint64_t)(mark->wall_at / WEIR_MILLISECOND));
    wr_append_json_rate(buf, ",", mark->rate);
    wr_append_json_rate(buf, ",", mark->allowed_rate);
    wr_append_json_count(buf, ",", mark->in_flight);
    wr_append_json_ms(buf, ",", mark->latency_ns);
    if (mark->cap != UINT32_MAX)
        wr_append_json_count(buf, ",", mark->cap);
    else
        wr_append_json_null(buf, ",");
    wr_buf_append_string(buf, "]");
}

void wr_trail_append(const struct wr_trail *trail, const char *key, struct wr_buf *buf)
{
    wr_buf_append_string(buf, "[");
    for (size_t i = 0; i < WR_TRAIL_HOSTS; i++) {
        const struct path *path = &trail->paths[i];
        if (strcmp(path->key, key) != 0 || key[0] == '\0')
            continue;
        uint32_t first = path->count > WR_TRAIL_MARKS ? path->count - WR_TRAIL_MARKS : 0;
        for (uint32_t number = first; number < path->count; number++) {
            wr_buf_append_string(buf, number > first ? "," : "");
            append_mark(buf, &path->marks[number % WR_TRAIL_MARKS]);
        }
    }
    wr_buf_append_string(buf, "]");
}
