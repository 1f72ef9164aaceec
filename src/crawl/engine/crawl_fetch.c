/* SPDX-License-Identifier: MIT */
/* crawl_fetch.c - performs one request: sends it, reads the response, and informs the plan
 * meanwhile. */
#include "base/alloc.h"
#include "core/web/http/field.h"
#include "core/web/http/server_limits.h"
#include "crawl/engine/engine_state.h"
#include "http/loop/watchdog.h"
#include "http/net/idna.h"

/* Bytes read of an unwanted body; beyond them a new connection costs less. */
#define SKIPPED_MAX ((uint64_t)64 << 10)
#define KEPT_MAX ((size_t)256 << 10) /* largest buffer that is kept for the next fetch, bytes */

/* ---- pool of fetches ---- */

static void free_crawl_fetch(struct wr_crawl_fetch *fetch)
{
    const weir_allocator *allocator = fetch->loop->engine->allocator;
    wr_buf_release(&fetch->head_text);
    wr_buf_release(&fetch->body);
    wr_buf_release(&fetch->words);
    wr_buf_release(&fetch->final_url);
    wr_buf_release(&fetch->line);
    wr_buf_release(&fetch->first);
    wr_url_batch_release(&fetch->urls);
    wr_crawl_sitemap_drop(fetch);
    wr_url_batch_release(&fetch->listed);
    wr_page_release(&fetch->page);
    wr_digest_free(fetch->digest);
    wr_capture_release(&fetch->capture, fetch->loop->engine);
    wr_free(allocator, fetch, sizeof *fetch, _Alignof(struct wr_crawl_fetch));
}

static struct wr_crawl_fetch *make_crawl_fetch(struct wr_crawl_loop *loop)
{
    const weir_allocator *allocator = loop->engine->allocator;
    struct wr_crawl_fetch *fetch = wr_alloc(allocator, sizeof *fetch, _Alignof(struct wr_crawl_fetch));
    if (fetch == NULL)
        return NULL;
    fetch->loop = loop;
    wr_buf_init(&fetch->head_text, allocator, WR_NET_HEAD_MAX);
    wr_buf_init(&fetch->body, allocator, WR_ROBOTS_MAX + 1);
    wr_buf_init(&fetch->words, allocator, WR_STORE_WHY_MAX);
    wr_buf_init(&fetch->final_url, allocator, WR_URL_MAX);
    wr_buf_init(&fetch->line, allocator, (size_t)1 << 20);
    wr_buf_init(&fetch->first, allocator, WR_FIREWALL_BYTES);
    wr_url_batch_init(&fetch->urls, allocator);
    wr_url_batch_init(&fetch->listed, allocator);
    wr_page_init(&fetch->page, allocator);
    wr_capture_init(&fetch->capture, loop->engine);
    if (wr_digest_new(loop->engine->options.digest, allocator, &fetch->digest) == 0)
        return fetch;
    free_crawl_fetch(fetch);
    return NULL;
}

void wr_crawl_fetch_move(struct wr_crawl_fetch *fetch, enum wr_crawl_fetch_place place)
{
    struct wr_list *to = &fetch->loop->lists[place];
    if (fetch->link.list == to)
        return;
    wr_list_remove(&fetch->link);
    wr_list_push(to, &fetch->link);
}

static struct wr_crawl_fetch *take_crawl_fetch(struct wr_crawl_loop *loop)
{
    struct wr_list_link *spare = loop->lists[WR_CRAWL_FETCH_SPARE].last;
    struct wr_crawl_fetch *fetch =
        spare != NULL ? WR_LINKED(spare, struct wr_crawl_fetch, link) : make_crawl_fetch(loop);
    if (fetch == NULL)
        return NULL;
    wr_crawl_fetch_move(fetch, WR_CRAWL_FETCH_IN_FLIGHT);
    (void)atomic_fetch_add(&loop->engine->flights, 1);
    wr_count_add(&loop->counts.in_flight, 1);
    return fetch;
}

static void empty_fetch_buf(struct wr_buf *buf)
{
    if (buf->room > KEPT_MAX) {
        size_t max = buf->max;
        const weir_allocator *allocator = buf->allocator;
        wr_buf_release(buf);
        wr_buf_init(buf, allocator, max);
    }
    wr_buf_clear(buf);
}

void wr_crawl_fetch_recycle(struct wr_crawl_fetch *fetch)
{
    struct wr_crawl_loop *loop = fetch->loop;
    struct wr_engine *engine = loop->engine;
    empty_fetch_buf(&fetch->head_text);
    empty_fetch_buf(&fetch->body);
    wr_crawl_robots_uncount(engine, fetch->held_bytes);
    fetch->held_bytes = 0;
    fetch->lacks_room = false;
    empty_fetch_buf(&fetch->line);
    wr_buf_clear(&fetch->first);
    wr_buf_clear(&fetch->words);
    wr_buf_clear(&fetch->final_url);
    wr_url_batch_clear(&fetch->urls);
    wr_crawl_sitemap_drop(fetch);
    empty_fetch_buf(&fetch->urls.text);
    wr_capture_clear(&fetch->capture, engine);
    wr_crawl_fetch_count_out(fetch);
    if (fetch->holds_host)
        wr_plan_host_end_post(loop->plan, fetch->action.host, wr_crawl_loop_now(loop));
    fetch->holds_host = false;
    if (fetch->has_seeds)
        (void)atomic_fetch_sub(&engine->seeding, 1);
    loop->telling -= fetch->offers_links;
    fetch->offers_links = false;
    wr_crawl_fetch_move(fetch, WR_CRAWL_FETCH_SPARE);
    wr_job_fetch_done(engine);
}

void wr_crawl_fetch_count_out(struct wr_crawl_fetch *fetch)
{
    if (!fetch->is_counted_out)
        wr_count_add(&fetch->loop->counts.in_flight, (uint64_t)-1);
    fetch->is_counted_out = true;
}

void wr_crawl_fetch_hold_host(struct wr_crawl_fetch *fetch)
{
    fetch->holds_host = fetch->action.host != NULL;
    if (fetch->holds_host)
        wr_plan_host_begin_post(fetch->action.host);
}

void wr_crawl_fetches_free(struct wr_crawl_loop *loop)
{
    for (int place = 0; place <= WR_CRAWL_FETCH_WAITS_TO_POST; place++)
        while (loop->lists[place].first != NULL) {
            struct wr_crawl_fetch *fetch = WR_LINKED(loop->lists[place].first, struct wr_crawl_fetch, link);
            wr_list_remove(&fetch->link);
            free_crawl_fetch(fetch);
        }
}

/* ---- sending ---- */

/* Puts the host into the group of its address, which is known now. */
static void join_address_group(const struct wr_crawl_fetch *fetch, const struct wr_net_send *send)
{
    char memory[WEIR_ADDRESS_MAX + 1];
    struct wr_buf address;
    wr_buf_init_fixed(&address, memory, sizeof memory);
    wr_address_append(&address, &send->address);
    (void)wr_plan_host_group(fetch->loop->plan, fetch->action.host, wr_buf_from(&address, 0), send->now);
}

void wr_crawl_fetch_count_sent(struct wr_crawl_fetch *fetch, int64_t now)
{
    struct wr_crawl_loop *loop = fetch->loop;
    wr_plan_sent(loop->plan, fetch->action.task, now);
    WR_COUNT_UP(loop, requests);
    if (fetch->action.kind == WR_PLAN_START)
        wr_counts_add_start(&loop->counts, &fetch->action.waited);
    else
        WR_COUNT_UP(loop, robots);
}

/* Decides whether a request is written. To write it twice, because its connection had died, would
 * be another start: the task goes back to its queue instead. */
static bool may_send_now(void *context, const struct wr_net_send *send)
{
    struct wr_crawl_fetch *fetch = context;
    struct wr_crawl_loop *loop = fetch->loop;
    struct wr_engine *engine = loop->engine;
    uint32_t task = fetch->action.task;
    if (send->number > 1 || atomic_load(&engine->phase) >= WR_PHASE_STOPS)
        return false;
    if (engine->options.group == WR_GROUP_IP)
        join_address_group(fetch, send);
    wr_host_lease_check_sleep(loop);
    if (wr_plan_may_send(loop->plan, task, send->now).verdict != WEIR_GO)
        return false;
    wr_crawl_fetch_count_sent(fetch, send->now);
    fetch->was_sent = true;
    if (fetch->capture.is_on)
        fetch->capture.wall_at = weir_wall_now();
    if (engine->log != NULL)
        wr_request_log_sent(engine->log, fetch, send->now);
    return true;
}

static void on_sent_late(void *context, int64_t now)
{
    const struct wr_crawl_fetch *fetch = context;
    wr_plan_sent_late(fetch->loop->plan, fetch->action.task, now);
}

/* ---- receiving ---- */

struct wr_span wr_crawl_fetch_header(const struct wr_crawl_fetch *fetch, enum wr_response_header which)
{
    return (struct wr_span){fetch->head_text.bytes + fetch->head_at[which], fetch->head_bytes[which]};
}

static void keep_header(struct wr_crawl_fetch *fetch, enum wr_response_header which, struct wr_span value)
{
    if (fetch->head_bytes[which] > 0)
        return; /* the first field of a name counts */
    fetch->head_at[which] = (uint32_t)fetch->head_text.length;
    wr_buf_append_span(&fetch->head_text, value);
    fetch->head_bytes[which] = (uint32_t)(fetch->head_text.length - fetch->head_at[which]);
}

static void read_response_header(struct wr_crawl_fetch *fetch, struct wr_span name, struct wr_span value)
{
    if (wr_field_is(name, "location"))
        keep_header(fetch, WR_RESPONSE_LOCATION, value);
    else if (wr_field_is(name, "content-type"))
        keep_header(fetch, WR_RESPONSE_CONTENT_TYPE, value);
    else if (wr_field_is(name, "etag"))
        keep_header(fetch, WR_RESPONSE_ETAG, value);
    else if (wr_field_is(name, "last-modified"))
        keep_header(fetch, WR_RESPONSE_LAST_MODIFIED, value);
    else if (wr_field_is(name, "cache-control"))
        keep_header(fetch, WR_RESPONSE_CACHE_CONTROL, value);
    else if (wr_field_is(name, "x-robots-tag"))
        fetch->directives |= wr_robots_directives_parse(value, fetch->loop->engine->token);
}

weir_outcome wr_crawl_fetch_outcome(const struct wr_crawl_fetch *fetch, int status, int64_t now)
{
    weir_outcome outcome = {.size = sizeof outcome, .status = status, .attempt = fetch->action.attempts + 1};
    wr_server_limits_to_outcome(&fetch->said, now - fetch->said_at, &outcome);
    return outcome;
}

bool wr_crawl_fetch_is_answered(const struct wr_crawl_fetch *fetch)
{
    return fetch->result.end == WR_NET_DONE && fetch->result.blame != WR_NET_BLAME_PROXY;
}

bool wr_crawl_fetch_is_caused_by_host(const struct wr_crawl_fetch *fetch)
{
    return wr_crawl_fetch_is_answered(fetch) || fetch->result.blame == WR_NET_BLAME_HOST;
}

/* Reports a wait that the response names. It binds all requests of the host at once, however slowly
 * the body arrives. */
static void report_server_wait(struct wr_crawl_fetch *fetch, int status)
{
    struct wr_crawl_loop *loop = fetch->loop;
    weir_outcome outcome = wr_crawl_fetch_outcome(fetch, status, fetch->said_at);
    if ((!outcome.has_retry_after && !outcome.has_quota) || wr_net_is_proxy_response(fetch->transfer))
        return;
    if ((wr_plan_response_head(loop->plan, fetch->action.task, &outcome, fetch->said_at) &
         WR_GATE_CHANGE_RETRY_AFTER) != 0)
        wr_crawl_loop_save_host(loop, fetch->action.host);
}

static void expect_link(void *context, uint64_t fingerprint)
{
    const struct wr_crawl_fetch *fetch = context;
    wr_plan_prefetch_url(fetch->loop->plan, (uint32_t)fetch->loop->engine->job, fingerprint);
}

static void begin_page_scan(struct wr_crawl_fetch *fetch, int status)
{
    const struct wr_engine *engine = fetch->loop->engine;
    fetch->wants_body = status >= 200 && status < 300;
    if (!fetch->wants_body)
        return;
    struct wr_page_options options = {.url = &fetch->url,
                                      .idna = wr_idna_libidn2(),
                                      .key = &engine->hash_key,
                                      .digest = fetch->digest,
                                      .content_type = wr_crawl_fetch_header(fetch, WR_RESPONSE_CONTENT_TYPE),
                                      .directives = fetch->directives,
                                      .agent = engine->token,
                                      .follows_nofollow = engine->options.follows_nofollow,
                                      .soon = expect_link};
    wr_page_begin(&fetch->page, &options);
    fetch->has_page = true;
    wr_crawl_sitemap_begin(fetch);
}

static bool on_response_head(void *context, const struct wr_head *head)
{
    WR_DOING("fields of a head");
    struct wr_crawl_fetch *fetch = context;
    struct wr_server_limits limits;
    struct wr_span name, value;
    wr_server_limits_init(&limits, weir_wall_now());
    fetch->look = wr_firewall_begin(head->status);
    for (size_t cursor = 0; wr_head_next(head, &cursor, &name, &value);) {
        wr_server_limits_field(&limits, name, value);
        wr_firewall_field(&fetch->look, name, value);
        read_response_header(fetch, name, value);
    }
    fetch->keeps_first_bytes = wr_firewall_needs_body(&fetch->look);
    fetch->said = wr_server_limits_result(&limits);
    fetch->said_at = wr_crawl_loop_now(fetch->loop);
    atomic_store_explicit(&fetch->loop->engine->answered_at, fetch->said_at, memory_order_relaxed);
    report_server_wait(fetch, head->status);
    if (fetch->action.kind == WR_PLAN_START)
        begin_page_scan(fetch, head->status);
    else
        fetch->wants_body = head->status >= 200 && head->status < 300;
    return true;
}

static void on_head_line(void *context, struct wr_span line)
{
    struct wr_crawl_fetch *fetch = context;
    wr_capture_head_line(&fetch->capture, line);
}

static bool on_response_body(void *context, const char *data, size_t bytes)
{
    WR_DOING("scanning a page");
    struct wr_crawl_fetch *fetch = context;
    fetch->body_bytes += bytes;
    wr_count_add(&fetch->loop->counts.bytes, bytes);
    if (fetch->capture.is_on && !wr_capture_body(fetch, data, bytes))
        return false;
    if (fetch->keeps_first_bytes)
        wr_firewall_keep_body(fetch, data, bytes);
    if (!fetch->wants_body)
        return fetch->capture.is_on || fetch->body_bytes <= SKIPPED_MAX;
    if (!fetch->has_page)
        return wr_crawl_robots_body(fetch, data, bytes);
    wr_page_feed(&fetch->page, data, bytes);
    return wr_crawl_sitemap_feed(fetch, data, bytes);
}

/* ---- the end ---- */

/* Makes the result a failed attempt: the connection died after the request was written. This has to
 * count, because servers close the connection on some pages every time. */
static void count_as_attempt(struct wr_crawl_fetch *fetch)
{
    fetch->result.end = WR_NET_BROKEN;
    fetch->result.retry = WR_NET_LATER;
    fetch->result.blame = WR_NET_BLAME_NONE;
    wr_buf_clear(&fetch->words);
    wr_buf_append_string(&fetch->words, wr_net_end_text(WR_NET_BROKEN));
}

/* Returns true if the task goes back to its queue: the host got no request, or nothing is known of
 * how it ended. */
static bool is_returned_to_queue(const struct wr_crawl_fetch *fetch)
{
    enum wr_net_end end = fetch->result.end;
    return end == WR_NET_CANCELLED || end == WR_NET_REFUSED || end == WR_NET_SCARCE || fetch->capture.trouble != 0 ||
           fetch->lacks_room;
}

/* Holds all starts of the loop for a while, because memory or descriptors are short. An immediate
 * retry would busy-loop. */
static void hold_starts_for_scarcity(struct wr_crawl_loop *loop, const char *words)
{
    wr_engine_warn_scarcity(loop->engine, words);
    wr_global_limits_hold(loop, WR_RETRY_UNSENT_MIN_NS);
}

static void count_status(struct wr_crawl_loop *loop, int status)
{
    WR_COUNT_UP(loop, statuses[status > 0 && status < WR_STATUSES_COUNT ? status : 0]);
}

static void on_request_done(void *context, const struct wr_net_result *result)
{
    struct wr_crawl_fetch *fetch = context;
    struct wr_crawl_loop *loop = fetch->loop;
    fetch->transfer = NULL;
    fetch->result = *result;
    wr_buf_append_string(&fetch->words, result->words != NULL ? result->words : "");
    fetch->result.words = NULL;
    wr_crawl_fetch_count_out(fetch);
    wr_global_limits_count_bytes(loop, result->wire_bytes);
    if (result->end == WR_NET_REFUSED && fetch->was_sent && atomic_load(&loop->engine->phase) < WR_PHASE_STOPS)
        count_as_attempt(fetch);
    if (result->end != WR_NET_SCARCE && fetch->capture.trouble == 0)
        wr_engine_end_scarcity(loop->engine);
    if (!is_returned_to_queue(fetch))
        count_status(loop, result->status);
    if (is_returned_to_queue(fetch)) {
        if (result->end == WR_NET_SCARCE)
            hold_starts_for_scarcity(loop, result->words);
        if (fetch->capture.trouble != 0)
            wr_capture_failed(fetch);
        wr_plan_task_given_back(loop->plan, fetch->action.task, wr_crawl_loop_now(loop));
        if (fetch->action.kind == WR_PLAN_ROBOTS)
            wr_crawl_robots_keep_redirect(fetch);
        wr_crawl_fetch_recycle(fetch);
    } else if (fetch->action.kind == WR_PLAN_START) {
        wr_crawl_page_arrived(fetch);
    } else if (fetch->action.kind == WR_PLAN_ROBOTS) {
        wr_crawl_robots_arrived(fetch);
    } else {
        wr_robots_hop_arrived(fetch);
    }
    wr_crawl_loop_run_due(loop);
}

void wr_crawl_fetch_cancel(struct wr_crawl_fetch *fetch)
{
    if (fetch->transfer != NULL)
        wr_net_cancel(fetch->transfer);
}

/* ---- starting ---- */

/* Returns true if the host's next request comes too late to use the connection. An unknown time
 * does not count as late, because the page may lead to more. */
static bool is_next_request_far(int64_t next_ns)
{
    return next_ns >= WR_NET_IDLE_NS && next_ns != WEIR_FOREVER;
}

void wr_crawl_fetch_send(struct wr_crawl_fetch *fetch, struct wr_span etag, struct wr_span modified)
{
    static const struct wr_net_callbacks calls = {may_send_now,     on_sent_late,    on_response_head,
                                                  on_response_body, on_request_done, NULL};
    static const struct wr_net_callbacks keeping = {may_send_now,     on_sent_late,    on_response_head,
                                                    on_response_body, on_request_done, on_head_line};
    struct wr_crawl_loop *loop = fetch->loop;
    struct wr_engine *engine = loop->engine;
    bool is_page = fetch->action.kind == WR_PLAN_START;
    struct wr_net_request request = {.url = &fetch->url,
                                     .etag = etag,
                                     .last_modified = modified,
                                     .body_max = is_page ? 0 : WR_ROBOTS_MAX + 1,
                                     .is_last = is_next_request_far(fetch->action.next_ns)};
    if (engine->field_count > 0 && is_page && wr_engine_is_seed_origin(engine, &fetch->url)) {
        request.fields = engine->fields;
        request.field_count = engine->field_count;
    }
    if (fetch->capture.is_on)
        wr_net_append_head(&fetch->capture.request, loop->net, &request, true);
    int error = wr_net_start(loop->net, &request, fetch->capture.is_on ? &keeping : &calls, fetch, &fetch->transfer);
    if (error == 0)
        return;
    if (error == WEIR_E_NOMEM)
        hold_starts_for_scarcity(loop, weir_error_text(error));
    wr_plan_task_given_back(loop->plan, fetch->action.task, wr_crawl_loop_now(loop));
    if (fetch->action.kind == WR_PLAN_ROBOTS)
        wr_crawl_robots_keep_redirect(fetch);
    wr_crawl_fetch_recycle(fetch);
}

static void reset_fetch(struct wr_crawl_fetch *fetch, const struct wr_plan_action *action)
{
    fetch->action = *action;
    fetch->transfer = NULL;
    fetch->was_sent = fetch->is_counted_out = fetch->wants_body = fetch->has_page = fetch->has_links = fetch->is_again =
        fetch->has_seeds = fetch->is_conditional = fetch->is_sitemap = fetch->is_enough = fetch->leads_too_deep =
            fetch->ends_when_read = fetch->is_left = false;
    fetch->body_bytes = 0;
    fetch->lease = action->host != NULL ? wr_plan_host_lease_token(action->host) : 0;
    fetch->directives = 0;
    fetch->said = (weir_server_limits)WR_NO_LIMITS_REPORTED;
    fetch->said_at = 0;
    memset(fetch->head_bytes, 0, sizeof fetch->head_bytes);
    fetch->keeps_first_bytes = false;
    fetch->firewall = WR_FIREWALL_NONE;
    fetch->capture.is_on = fetch->loop->engine->archive.is_on && action->kind == WR_PLAN_START;
}

/* Sends the request of a page; a conditional one if an earlier job had the page. */
static void send_page_request(struct wr_crawl_fetch *fetch)
{
    static const struct wr_span none = {NULL, 0};
    fetch->is_sitemap = wr_crawl_sitemap_is_task(fetch);
    struct wr_span validator = wr_recrawl_visit_validator(fetch);
    bool is_etag = wr_span_find(validator, '"') < validator.bytes;
    fetch->is_conditional = validator.bytes > 0;
    wr_crawl_fetch_send(fetch, is_etag ? validator : none, is_etag ? none : validator);
}

bool wr_crawl_fetch_set_url(struct wr_crawl_fetch *fetch, struct wr_span url)
{
    return wr_url_parse(url, NULL, NULL, fetch->url_memory, sizeof fetch->url_memory, &fetch->url) == WR_URL_OK;
}

void wr_crawl_fetch_start(struct wr_crawl_loop *loop, const struct wr_plan_action *action)
{
    WR_DOING("starting a request");
    struct wr_crawl_fetch *fetch = take_crawl_fetch(loop);
    if (fetch == NULL) {
        hold_starts_for_scarcity(loop, weir_error_text(WEIR_E_NOMEM));
        wr_plan_task_given_back(loop->plan, action->task, wr_crawl_loop_now(loop));
        return;
    }
    reset_fetch(fetch, action);
    /* Cannot happen: the URL was valid when it was accepted. */
    if (!wr_crawl_fetch_set_url(fetch, action->url)) {
        wr_plan_task_given_back(loop->plan, action->task, wr_crawl_loop_now(loop));
        wr_crawl_fetch_recycle(fetch);
    } else if (action->kind == WR_PLAN_ROBOTS) {
        wr_crawl_robots_begin(fetch);
    } else {
        send_page_request(fetch);
    }
}

/* Sets the URL for the output line. Text that is not a URL is kept as it is. */
static void keep_unsent_url(struct wr_crawl_fetch *fetch, struct wr_span text)
{
    if (wr_crawl_fetch_set_url(fetch, text))
        return;
    fetch->url = (struct wr_url){.text = fetch->url_memory, .bytes = (uint16_t)text.bytes};
    if (text.bytes > 0)
        memcpy(fetch->url_memory, text.data, text.bytes);
}

struct wr_crawl_fetch *wr_crawl_fetch_new_unsent(struct wr_crawl_loop *loop, const struct wr_plan_action *action)
{
    struct wr_crawl_fetch *fetch = take_crawl_fetch(loop);
    if (fetch == NULL) {
        wr_job_end(loop->engine, WR_END_BROKEN, weir_error_text(WEIR_E_NOMEM));
        return NULL;
    }
    reset_fetch(fetch, action);
    keep_unsent_url(fetch, action->url);
    fetch->result = (struct wr_net_result){.end = WR_NET_DONE};
    fetch->fate = (struct wr_task_outcome){.kind = WR_TASK_OUTCOME_FAILED, .attempts = action->attempts};
    wr_crawl_fetch_count_out(fetch);
    wr_crawl_fetch_hold_host(fetch);
    return fetch;
}

void wr_crawl_fetch_post_urls(struct wr_crawl_loop *loop, struct wr_url_batch *urls, bool are_seeds)
{
    const struct wr_plan_action nothing = {.kind = WR_PLAN_IDLE};
    struct wr_crawl_fetch *fetch = take_crawl_fetch(loop);
    if (fetch == NULL) {
        wr_job_end(loop->engine, WR_END_BROKEN, weir_error_text(WEIR_E_NOMEM));
        return;
    }
    reset_fetch(fetch, &nothing);
    fetch->has_seeds = are_seeds;
    wr_crawl_fetch_count_out(fetch);
    struct wr_url_batch empty_ones = fetch->urls;
    fetch->urls = *urls;
    *urls = empty_ones;
    wr_crawl_page_post(fetch);
}
