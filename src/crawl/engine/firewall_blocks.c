/* SPDX-License-Identifier: MIT */
/* firewall_blocks.c - detects, reports and remembers (for a day) hosts whose firewall blocks the
 * crawler. */
#include "crawl/engine/engine_state.h"

#define WARNED_MAX 20 /* blocked hosts that the user is warned of one by one */

void wr_firewall_keep_body(struct wr_crawl_fetch *fetch, const char *data, size_t bytes)
{
    size_t room = WR_FIREWALL_BYTES - fetch->first.length;
    wr_buf_append(&fetch->first, data, bytes < room ? bytes : room);
}

/* Sets the error text of a blocked page, and counts the page. */
void wr_firewall_set_error(struct wr_crawl_fetch *fetch, enum wr_firewall by, bool was_sent)
{
    WR_COUNT_UP(fetch->loop, blocked);
    wr_buf_append_string(&fetch->words, was_sent ? "the site's firewall (" : "not sent: the site's firewall (");
    wr_buf_append_string(&fetch->words, wr_firewall_name(by));
    wr_buf_append_string(&fetch->words, ") blocks the crawler");
}

/* Counts a blocked host, and warns the user of the first TOLD_MAX. */
static void warn_of_blocked_host(struct wr_engine *engine, const struct wr_plan_host *host, enum wr_firewall by,
                                 const char *what)
{
    char line[400];
    struct wr_buf buf;
    if (atomic_fetch_add(&engine->blocked_hosts, 1) >= WARNED_MAX)
        return;
    wr_buf_init_fixed(&buf, line, sizeof line);
    wr_buf_append_span(&buf, wr_plan_host_key(host));
    wr_buf_append_string(&buf, ": its firewall (");
    wr_buf_append_string(&buf, wr_firewall_name(by));
    wr_buf_append_string(&buf, ") ");
    wr_engine_warn(engine, line, what);
}

static void post_host_block(struct wr_crawl_fetch *fetch, int64_t until_wall_at)
{
    struct wr_engine *engine = fetch->loop->engine;
    const struct wr_store_change change = {.kind = WR_STORE_HOST_BLOCK,
                                           .block = {.key = wr_plan_host_key(fetch->action.host),
                                                     .until_wall_at = until_wall_at,
                                                     .by = wr_span_of(wr_firewall_name(fetch->firewall)),
                                                     .lease = fetch->lease}};
    (void)atomic_fetch_add(&engine->posts, 1);
    if (wr_store_post(engine->store, &change, 1, wr_job_on_stored, engine) != 0)
        wr_job_post_done(engine); /* this run knows of the block; the next one detects it */
}

void wr_firewall_note_response(struct wr_crawl_fetch *fetch)
{
    struct wr_crawl_loop *loop = fetch->loop;
    const struct wr_net_result *result = &fetch->result;
    bool is_page = fetch->action.kind == WR_PLAN_START;
    if (result->end != WR_NET_DONE || result->blame == WR_NET_BLAME_PROXY)
        return;
    fetch->firewall = wr_firewall_identify(&fetch->look, wr_buf_from(&fetch->first, 0), fetch->body_bytes);
    bool is_welcome = is_page && ((result->status >= 200 && result->status < 300) || result->status == 304);
    if (fetch->firewall == WR_FIREWALL_NONE && !is_welcome)
        return;
    switch (wr_plan_firewall_seen(loop->plan, fetch->action.host, (uint8_t)fetch->firewall, wr_crawl_loop_now(loop))) {
    case WR_FIREWALL_CHANGE_NONE:
        break;
    case WR_FIREWALL_CHANGE_BLOCKED:
        warn_of_blocked_host(loop->engine, fetch->action.host, fetch->firewall,
                             "blocks the crawler; weir sends it no requests for 24 hours");
        post_host_block(fetch, weir_wall_now() + WR_PLAN_BLOCKED_NS);
        break;
    case WR_FIREWALL_CHANGE_LIFTED:
        post_host_block(fetch, 0);
        break;
    }
}

int64_t wr_firewall_recall_block(struct wr_crawl_loop *loop, const struct wr_plan_host *host, int64_t until_wall_at,
                                 enum wr_firewall by)
{
    struct wr_engine *engine = loop->engine;
    int64_t left_ns = until_wall_at - weir_wall_now();
    if (left_ns <= 0 || engine->options.asks_blocked)
        return 0;
    warn_of_blocked_host(
        engine, host, by,
        "blocked the crawler in the last 24 hours; weir sends it no requests (--ask-blocked tries again)");
    return left_ns;
}
