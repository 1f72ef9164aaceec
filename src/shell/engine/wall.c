/* SPDX-License-Identifier: MIT */
/* wall.c - detects, reports and remembers (for a day) hosts whose firewall blocks the crawler. */
#include "shell/engine/state.h"

#define TOLD_MAX 20 /* blocked hosts that the user is warned of one by one */

void wr_wall_body(struct wr_flight *flight, const char *data, size_t bytes)
{
    size_t room = WR_FIREWALL_BYTES - flight->first.length;
    wr_buf_append(&flight->first, data, bytes < room ? bytes : room);
}

/* Sets the error text of a blocked page, and counts the page. */
void wr_wall_words(struct wr_flight *flight, enum wr_firewall by, bool was_sent)
{
    WR_COUNT_UP(flight->loop, blocked);
    wr_buf_append_string(&flight->words, was_sent ? "the site's firewall (" : "not sent: the site's firewall (");
    wr_buf_append_string(&flight->words, wr_firewall_name(by));
    wr_buf_append_string(&flight->words, ") does not let us in");
}

/* Counts a blocked host, and warns the user of the first TOLD_MAX. */
static void tell_user(struct wr_engine *engine, const struct wr_plan_host *host, enum wr_firewall by, const char *what)
{
    char line[400];
    struct wr_buf buf;
    if (atomic_fetch_add(&engine->blocked_hosts, 1) >= TOLD_MAX)
        return;
    wr_buf_init_fixed(&buf, line, sizeof line);
    wr_buf_append_span(&buf, wr_plan_host_key(host));
    wr_buf_append_string(&buf, ": its firewall (");
    wr_buf_append_string(&buf, wr_firewall_name(by));
    wr_buf_append_string(&buf, ") ");
    wr_engine_warn(engine, line, what);
}

static void post_block(struct wr_flight *flight, int64_t until_wall_at)
{
    struct wr_engine *engine = flight->loop->engine;
    const struct wr_store_change change = {.kind = WR_STORE_BLOCK,
                                           .block = {.key = wr_plan_host_key(flight->action.host),
                                                     .until_wall_at = until_wall_at,
                                                     .by = wr_span_of(wr_firewall_name(flight->firewall)),
                                                     .lease = flight->lease}};
    (void)atomic_fetch_add(&engine->posts, 1);
    if (wr_store_post(engine->store, &change, 1, wr_on_stored, engine) != 0)
        wr_posts_done(engine); /* this run knows of the block; the next one detects it */
}

void wr_wall_judge(struct wr_flight *flight)
{
    struct wr_crawl_loop *loop = flight->loop;
    const struct wr_net_result *result = &flight->result;
    bool is_page = flight->action.kind == WR_PLAN_START;
    if (result->end != WR_NET_DONE || result->blame == WR_NET_PROXY_HOST)
        return;
    flight->firewall = wr_firewall_judge(&flight->look, wr_buf_from(&flight->first, 0), flight->body_bytes);
    bool is_welcome = is_page && ((result->status >= 200 && result->status < 300) || result->status == 304);
    if (flight->firewall == WR_FIREWALL_NONE && !is_welcome)
        return;
    switch (wr_plan_wall(loop->plan, flight->action.host, (uint8_t)flight->firewall, wr_crawl_loop_now(loop))) {
    case WR_WALL_NO_NEWS:
        break;
    case WR_WALL_BLOCKED:
        tell_user(loop->engine, flight->action.host, flight->firewall,
                  "does not let us in; it is left alone for 24 hours");
        post_block(flight, weir_wall_now() + WR_PLAN_BLOCKED_NS);
        break;
    case WR_WALL_LIFTED:
        post_block(flight, 0);
        break;
    }
}

int64_t wr_wall_recall(struct wr_crawl_loop *loop, const struct wr_plan_host *host, int64_t until_wall_at,
                       enum wr_firewall by)
{
    struct wr_engine *engine = loop->engine;
    int64_t left_ns = until_wall_at - weir_wall_now();
    if (left_ns <= 0 || engine->options.asks_blocked)
        return 0;
    tell_user(engine, host, by,
              "did not let us in within the last 24 hours; it is not asked (--ask-blocked asks once more)");
    return left_ns;
}
