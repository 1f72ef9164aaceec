/* SPDX-License-Identifier: MIT */
/* answer_nodes.c - answers requests about the processes that share a crawl. */
#include "watch/control/control_request.h"

struct processes_answer {
    struct wr_buf *buf;
    uint64_t count;
};

static void on_listed_process(void *context, const struct wr_store_row *row)
{
    struct processes_answer *nodes = context;
    wr_append_json_text(nodes->buf, nodes->count++ > 0 ? ",{\"name\":" : "{\"name\":", row->node.name);
    wr_append_json_count(nodes->buf, ",\"job\":", (uint64_t)row->node.job);
    wr_append_json_count(nodes->buf, ",\"hosts\":", row->node.hosts);
    wr_buf_append_string(nodes->buf, "}");
}

int wr_control_append_processes(struct wr_control_request *ask, int64_t job, uint64_t *ret_count)
{
    struct processes_answer nodes = {.buf = ask->answer};
    const struct wr_store_query query = {
        .what = WR_STORE_NODES, .job = job, .is_hasty = true, .row = on_listed_process, .context = &nodes};
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

static void on_counted_process(void *context, const struct wr_store_row *row)
{
    struct wr_control_process_counts *counts_of_process = context;
    size_t at = 0;
    while (at < counts_of_process->count && counts_of_process->jobs[at].job != row->node.job)
        at++;
    if (at == WR_CONTROL_COUNTED_JOBS)
        return;
    counts_of_process->count += at == counts_of_process->count;
    counts_of_process->jobs[at].job = row->node.job;
    counts_of_process->jobs[at].processes++;
}

int wr_control_count_processes(struct wr_control_request *ask, struct wr_control_process_counts *ret_crew)
{
    const struct wr_store_query query = {
        .what = WR_STORE_NODES, .is_hasty = true, .row = on_counted_process, .context = ret_crew};
    *ret_crew = (struct wr_control_process_counts){.count = 0};
    return wr_store_is_shared(ask->source->store) ? wr_store_read(ask->source->store, &query) : 0;
}

uint64_t wr_control_processes_of(const struct wr_control_process_counts *counts_of_process, int64_t job)
{
    for (size_t i = 0; i < counts_of_process->count; i++)
        if (counts_of_process->jobs[i].job == job)
            return counts_of_process->jobs[i].processes;
    return 0;
}
