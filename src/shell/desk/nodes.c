/* SPDX-License-Identifier: MIT */
/* nodes.c - answers requests about the processes that share a crawl. */
#include "shell/desk/ask.h"

struct nodes {
    struct wr_buf *buf;
    uint64_t count;
};

static void on_node(void *context, const struct wr_store_row *row)
{
    struct nodes *nodes = context;
    wr_append_json_text(nodes->buf, nodes->count++ > 0 ? ",{\"name\":" : "{\"name\":", row->node.name);
    wr_append_json_count(nodes->buf, ",\"job\":", (uint64_t)row->node.job);
    wr_append_json_count(nodes->buf, ",\"hosts\":", row->node.hosts);
    wr_buf_append_string(nodes->buf, "}");
}

int wr_ask_processes(struct wr_desk_ask *ask, int64_t job, uint64_t *ret_count)
{
    struct nodes nodes = {.buf = ask->answer};
    const struct wr_store_query query = {
        .what = WR_STORE_NODES, .job = job, .is_hasty = true, .row = on_node, .context = &nodes};
    *ret_count = 0;
    if (!wr_store_is_shared(ask->source->store))
        return 0;
    wr_buf_append_string(ask->answer, ",\"processes\":[");
    int error = wr_store_read(ask->source->store, &query);
    wr_buf_append_string(ask->answer, "]");
    if (error == 0)
        *ret_count = nodes.count;
    return error;
}

static void on_counted(void *context, const struct wr_store_row *row)
{
    struct wr_desk_crew *crew = context;
    size_t at = 0;
    while (at < crew->count && crew->jobs[at].job != row->node.job)
        at++;
    if (at == WR_DESK_CREW_JOBS)
        return;
    crew->count += at == crew->count;
    crew->jobs[at].job = row->node.job;
    crew->jobs[at].processes++;
}

int wr_ask_crew(struct wr_desk_ask *ask, struct wr_desk_crew *ret_crew)
{
    const struct wr_store_query query = {
        .what = WR_STORE_NODES, .is_hasty = true, .row = on_counted, .context = ret_crew};
    *ret_crew = (struct wr_desk_crew){.count = 0};
    return wr_store_is_shared(ask->source->store) ? wr_store_read(ask->source->store, &query) : 0;
}

uint64_t wr_desk_crew_of(const struct wr_desk_crew *crew, int64_t job)
{
    for (size_t i = 0; i < crew->count; i++)
        if (crew->jobs[i].job == job)
            return crew->jobs[i].processes;
    return 0;
}
