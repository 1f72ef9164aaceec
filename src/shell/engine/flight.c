/* SPDX-License-Identifier: MIT */
/* flight.c - performs one request: sends it, reads the response, and informs the plan meanwhile. */
#include "base/alloc.h"
#include "core/rules/http/field.h"
#include "core/rules/http/limits.h"
#include "shell/engine/state.h"
#include "shell/loop/away.h"
#include "shell/net/idna.h"

/* Bytes read of an unwanted body; beyond them a new connection costs less. */
#define SKIPPED_MAX ((uint64_t)64 << 10)
#define KEPT_MAX ((size_t)256 << 10) /* largest buffer that is kept for the next fetch, bytes */

/* ---- pool of fetches ---- */

static void free_flight(struct wr_flight *flight)
{
    const weir_allocator *allocator = flight->loop->engine->allocator;
    wr_buf_release(&flight->head_text);
    wr_buf_release(&flight->body);
    wr_buf_release(&flight->words);
    wr_buf_release(&flight->final_url);
    wr_buf_release(&flight->line);
    wr_buf_release(&flight->first);
    wr_founds_release(&flight->founds);
    wr_listing_drop(flight);
    wr_founds_release(&flight->listed);
    wr_page_release(&flight->page);
    wr_digest_free(flight->digest);
    wr_keep_release(&flight->keep, flight->loop->engine);
    wr_give(allocator, flight, sizeof *flight, _Alignof(struct wr_flight));
}

static struct wr_flight *make(struct wr_crawl_loop *loop)
{
    const weir_allocator *allocator = loop->engine->allocator;
    struct wr_flight *flight = wr_take(allocator, sizeof *flight, _Alignof(struct wr_flight));
    if (flight == NULL)
        return NULL;
    flight->loop = loop;
    wr_buf_init(&flight->head_text, allocator, WR_NET_HEAD_MAX);
    wr_buf_init(&flight->body, allocator, WR_ROBOTS_MAX + 1);
    wr_buf_init(&flight->words, allocator, WR_STORE_WHY_MAX);
    wr_buf_init(&flight->final_url, allocator, WR_URL_MAX);
    wr_buf_init(&flight->line, allocator, (size_t)1 << 20);
    wr_buf_init(&flight->first, allocator, WR_FIREWALL_BYTES);
    wr_founds_init(&flight->founds, allocator);
    wr_founds_init(&flight->listed, allocator);
    wr_page_init(&flight->page, allocator);
    wr_keep_init(&flight->keep, loop->engine);
    if (wr_digest_new(loop->engine->options.digest, allocator, &flight->digest) == 0)
        return flight;
    free_flight(flight);
    return NULL;
}

void wr_flight_move(struct wr_flight *flight, enum wr_flight_place place)
{
    struct wr_list *to = &flight->loop->lists[place];
    if (flight->link.list == to)
        return;
    wr_list_take(&flight->link);
    wr_list_push(to, &flight->link);
}

static struct wr_flight *take(struct wr_crawl_loop *loop)
{
    struct wr_list_link *spare = loop->lists[WR_FLIGHT_SPARE].last;
    struct wr_flight *flight = spare != NULL ? WR_LINKED(spare, struct wr_flight, link) : make(loop);
    if (flight == NULL)
        return NULL;
    wr_flight_move(flight, WR_FLIGHT_FLIES);
    (void)atomic_fetch_add(&loop->engine->flights, 1);
    wr_count_add(&loop->counts.in_flight, 1);
    return flight;
}

static void empty(struct wr_buf *buf)
{
    if (buf->room > KEPT_MAX) {
        size_t max = buf->max;
        const weir_allocator *allocator = buf->allocator;
        wr_buf_release(buf);
        wr_buf_init(buf, allocator, max);
    }
    wr_buf_clear(buf);
}

void wr_flight_give_back(struct wr_flight *flight)
{
    struct wr_crawl_loop *loop = flight->loop;
    struct wr_engine *engine = loop->engine;
    empty(&flight->head_text);
    empty(&flight->body);
    wr_robots_let_go(engine, flight->held_bytes);
    flight->held_bytes = 0;
    flight->lacks_room = false;
    empty(&flight->line);
    wr_buf_clear(&flight->first);
    wr_buf_clear(&flight->words);
    wr_buf_clear(&flight->final_url);
    wr_founds_clear(&flight->founds);
    wr_listing_drop(flight);
    empty(&flight->founds.text);
    wr_keep_clear(&flight->keep, engine);
    wr_flight_landed(flight);
    if (flight->is_owed)
        wr_plan_host_pay(loop->plan, flight->action.host, wr_crawl_loop_now(loop));
    flight->is_owed = false;
    if (flight->has_seeds)
        (void)atomic_fetch_sub(&engine->seeding, 1);
    loop->telling -= flight->is_telling;
    flight->is_telling = false;
    wr_flight_move(flight, WR_FLIGHT_SPARE);
    wr_flights_done(engine);
}

void wr_flight_landed(struct wr_flight *flight)
{
    if (!flight->is_landed)
        wr_count_add(&flight->loop->counts.in_flight, (uint64_t)-1);
    flight->is_landed = true;
}

void wr_flight_owe(struct wr_flight *flight)
{
    flight->is_owed = flight->action.host != NULL;
    if (flight->is_owed)
        wr_plan_host_owe(flight->action.host);
}

void wr_flights_free(struct wr_crawl_loop *loop)
{
    for (int place = 0; place <= WR_FLIGHT_POSTS; place++)
        while (loop->lists[place].first != NULL) {
            struct wr_flight *flight = WR_LINKED(loop->lists[place].first, struct wr_flight, link);
            wr_list_take(&flight->link);
            free_flight(flight);
        }
}

/* ---- sending ---- */

/* Puts the host into the group of its address, which is known now. */
static void join_group(const struct wr_flight *flight, const struct wr_net_send *send)
{
    char memory[WEIR_ADDRESS_MAX + 1];
    struct wr_buf address;
    wr_buf_init_fixed(&address, memory, sizeof memory);
    wr_address_append(&address, &send->address);
    (void)wr_plan_host_group(flight->loop->plan, flight->action.host, wr_buf_from(&address, 0), send->now);
}

void wr_flight_count(struct wr_flight *flight, int64_t now)
{
    struct wr_crawl_loop *loop = flight->loop;
    wr_plan_sent(loop->plan, flight->action.task, now);
    WR_COUNT_UP(loop, requests);
    if (flight->action.kind == WR_PLAN_START)
        wr_counts_start(&loop->counts, &flight->action.waited);
    else
        WR_COUNT_UP(loop, robots);
}

/* Decides whether a request is written. To write it twice, because its connection had died, would
 * be another start: the task goes back to its queue instead. */
static bool before_send(void *context, const struct wr_net_send *send)
{
    struct wr_flight *flight = context;
    struct wr_crawl_loop *loop = flight->loop;
    struct wr_engine *engine = loop->engine;
    uint32_t task = flight->action.task;
    if (send->number > 1 || atomic_load(&engine->phase) >= WR_PHASE_STOPS)
        return false;
    if (engine->options.group == WR_GROUP_IP)
        join_group(flight, send);
    wr_lease_wake(loop);
    if (wr_plan_may_send(loop->plan, task, send->now).verdict != WEIR_GO)
        return false;
    wr_flight_count(flight, send->now);
    flight->was_sent = true;
    if (flight->keep.is_on)
        flight->keep.wall_at = weir_wall_now();
    if (engine->log != NULL)
        wr_log_sent(engine->log, flight, send->now);
    return true;
}

static void on_late(void *context, int64_t now)
{
    const struct wr_flight *flight = context;
    wr_plan_late(flight->loop->plan, flight->action.task, now);
}

/* ---- receiving ---- */

struct wr_span wr_flight_head(const struct wr_flight *flight, enum wr_text which)
{
    return (struct wr_span){flight->head_text.bytes + flight->head_at[which], flight->head_bytes[which]};
}

static void keep_text(struct wr_flight *flight, enum wr_text which, struct wr_span value)
{
    if (flight->head_bytes[which] > 0)
        return; /* the first field of a name counts */
    flight->head_at[which] = (uint32_t)flight->head_text.length;
    wr_buf_append_span(&flight->head_text, value);
    flight->head_bytes[which] = (uint32_t)(flight->head_text.length - flight->head_at[which]);
}

static void read_field(struct wr_flight *flight, struct wr_span name, struct wr_span value)
{
    if (wr_field_is(name, "location"))
        keep_text(flight, WR_TEXT_LOCATION, value);
    else if (wr_field_is(name, "content-type"))
        keep_text(flight, WR_TEXT_TYPE, value);
    else if (wr_field_is(name, "etag"))
        keep_text(flight, WR_TEXT_ETAG, value);
    else if (wr_field_is(name, "last-modified"))
        keep_text(flight, WR_TEXT_MODIFIED, value);
    else if (wr_field_is(name, "cache-control"))
        keep_text(flight, WR_TEXT_CACHE, value);
    else if (wr_field_is(name, "x-robots-tag"))
        flight->wishes |= wr_robots_wishes(value, flight->loop->engine->token);
}

weir_outcome wr_flight_outcome(const struct wr_flight *flight, int status, int64_t now)
{
    weir_outcome outcome = {.size = sizeof outcome, .status = status, .attempt = flight->action.attempts + 1};
    wr_limits_tell(&flight->said, now - flight->said_at, &outcome);
    return outcome;
}

bool wr_flight_is_answered(const struct wr_flight *flight)
{
    return flight->result.end == WR_NET_DONE && flight->result.blame != WR_NET_PROXY_HOST;
}

bool wr_flight_is_hosts(const struct wr_flight *flight)
{
    return wr_flight_is_answered(flight) || flight->result.blame == WR_NET_HOST;
}

/* Reports a wait that the response names. It binds all requests of the host at once, however slowly
 * the body arrives. */
static void hear(struct wr_flight *flight, int status)
{
    struct wr_crawl_loop *loop = flight->loop;
    weir_outcome outcome = wr_flight_outcome(flight, status, flight->said_at);
    if ((!outcome.has_retry_after && !outcome.has_quota) || wr_net_is_proxys(flight->transfer))
        return;
    if ((wr_plan_hear(loop->plan, flight->action.task, &outcome, flight->said_at) & WR_NEWS_RETRY_AFTER) != 0)
        wr_crawl_loop_note(loop, flight->action.host);
}

static void expect_link(void *context, uint64_t fingerprint)
{
    const struct wr_flight *flight = context;
    wr_plan_expect(flight->loop->plan, (uint32_t)flight->loop->engine->job, fingerprint);
}

static void begin_page(struct wr_flight *flight, int status)
{
    const struct wr_engine *engine = flight->loop->engine;
    flight->wants_body = status >= 200 && status < 300;
    if (!flight->wants_body)
        return;
    struct wr_page_options options = {.url = &flight->url,
                                      .idna = wr_idna_libidn2(),
                                      .key = &engine->hash_key,
                                      .digest = flight->digest,
                                      .content_type = wr_flight_head(flight, WR_TEXT_TYPE),
                                      .wishes = flight->wishes,
                                      .agent = engine->token,
                                      .follows_nofollow = engine->options.follows_nofollow,
                                      .soon = expect_link};
    wr_page_begin(&flight->page, &options);
    flight->has_page = true;
    wr_listing_begin(flight);
}

static bool on_head(void *context, const struct wr_head *head)
{
    WR_DOING("fields of a head");
    struct wr_flight *flight = context;
    struct wr_limits limits;
    struct wr_span name, value;
    wr_limits_init(&limits, weir_wall_now());
    flight->look = wr_firewall_begin(head->status);
    for (size_t cursor = 0; wr_head_next(head, &cursor, &name, &value);) {
        wr_limits_field(&limits, name, value);
        wr_firewall_field(&flight->look, name, value);
        read_field(flight, name, value);
    }
    flight->keeps_first = wr_firewall_wants(&flight->look);
    flight->said = wr_limits_result(&limits);
    flight->said_at = wr_crawl_loop_now(flight->loop);
    atomic_store_explicit(&flight->loop->engine->answered_at, flight->said_at, memory_order_relaxed);
    hear(flight, head->status);
    if (flight->action.kind == WR_PLAN_START)
        begin_page(flight, head->status);
    else
        flight->wants_body = head->status >= 200 && head->status < 300;
    return true;
}

static void on_line(void *context, struct wr_span line)
{
    struct wr_flight *flight = context;
    wr_keep_line(&flight->keep, line);
}

static bool on_body(void *context, const char *data, size_t bytes)
{
    WR_DOING("scanning a page");
    struct wr_flight *flight = context;
    flight->body_bytes += bytes;
    wr_count_add(&flight->loop->counts.bytes, bytes);
    if (flight->keep.is_on && !wr_keep_body(flight, data, bytes))
        return false;
    if (flight->keeps_first)
        wr_wall_body(flight, data, bytes);
    if (!flight->wants_body)
        return flight->keep.is_on || flight->body_bytes <= SKIPPED_MAX;
    if (!flight->has_page)
        return wr_robots_body(flight, data, bytes);
    wr_page_feed(&flight->page, data, bytes);
    return wr_listing_feed(flight, data, bytes);
}

/* ---- the end ---- */

/* Makes the result a failed attempt: the connection died after the request was written. This has to
 * count, because servers close the connection on some pages every time. */
static void count_as_attempt(struct wr_flight *flight)
{
    flight->result.end = WR_NET_BROKEN;
    flight->result.retry = WR_NET_LATER;
    flight->result.blame = WR_NET_NOBODY;
    wr_buf_clear(&flight->words);
    wr_buf_append_string(&flight->words, wr_net_end_text(WR_NET_BROKEN));
}

/* Returns true if the task goes back to its queue: the host got no request, or nothing is known of
 * how it ended. */
static bool is_given_back(const struct wr_flight *flight)
{
    enum wr_net_end end = flight->result.end;
    return end == WR_NET_CANCELLED || end == WR_NET_REFUSED || end == WR_NET_SCARCE || flight->keep.trouble != 0 ||
           flight->lacks_room;
}

/* Holds all starts of the loop for a while, because memory or descriptors are short. An immediate
 * retry would busy-loop. */
static void wait_a_while(struct wr_crawl_loop *loop, const char *words)
{
    wr_engine_warn_scarce(loop->engine, words);
    wr_cap_hold(loop, WR_PUSH_BACK_NS);
}

static void count_status(struct wr_crawl_loop *loop, int status)
{
    WR_COUNT_UP(loop, statuses[status > 0 && status < WR_STATUSES_COUNT ? status : 0]);
}

static void on_done(void *context, const struct wr_net_result *result)
{
    struct wr_flight *flight = context;
    struct wr_crawl_loop *loop = flight->loop;
    flight->transfer = NULL;
    flight->result = *result;
    wr_buf_append_string(&flight->words, result->words != NULL ? result->words : "");
    flight->result.words = NULL;
    wr_flight_landed(flight);
    wr_cap_fetched(loop, result->wire_bytes);
    if (result->end == WR_NET_REFUSED && flight->was_sent && atomic_load(&loop->engine->phase) < WR_PHASE_STOPS)
        count_as_attempt(flight);
    if (result->end != WR_NET_SCARCE && flight->keep.trouble == 0)
        wr_engine_has_enough(loop->engine);
    if (!is_given_back(flight))
        count_status(loop, result->status);
    if (is_given_back(flight)) {
        if (result->end == WR_NET_SCARCE)
            wait_a_while(loop, result->words);
        if (flight->keep.trouble != 0)
            wr_keep_failed(flight);
        wr_plan_given(loop->plan, flight->action.task, wr_crawl_loop_now(loop));
        if (flight->action.kind == WR_PLAN_ROBOTS)
            wr_robots_returned(flight);
        wr_flight_give_back(flight);
    } else if (flight->action.kind == WR_PLAN_START) {
        wr_answer_came(flight);
    } else if (flight->action.kind == WR_PLAN_ROBOTS) {
        wr_robots_came(flight);
    } else {
        wr_errand_came(flight);
    }
    wr_crawl_loop_due(loop);
}

void wr_flight_cancel(struct wr_flight *flight)
{
    if (flight->transfer != NULL)
        wr_net_cancel(flight->transfer);
}

/* ---- starting ---- */

/* Returns true if the host's next request comes too late to use the connection. An unknown time
 * does not count as late, because the page may lead to more. */
static bool is_far(int64_t next_ns)
{
    return next_ns >= WR_NET_IDLE_NS && next_ns != WEIR_FOREVER;
}

void wr_flight_send(struct wr_flight *flight, struct wr_span etag, struct wr_span modified)
{
    static const struct wr_net_calls calls = {before_send, on_late, on_head, on_body, on_done, NULL};
    static const struct wr_net_calls keeping = {before_send, on_late, on_head, on_body, on_done, on_line};
    struct wr_crawl_loop *loop = flight->loop;
    struct wr_engine *engine = loop->engine;
    bool is_page = flight->action.kind == WR_PLAN_START;
    struct wr_net_request request = {.url = &flight->url,
                                     .etag = etag,
                                     .last_modified = modified,
                                     .body_max = is_page ? 0 : WR_ROBOTS_MAX + 1,
                                     .is_last = is_far(flight->action.next_ns)};
    if (engine->field_count > 0 && is_page && wr_engine_is_seeds(engine, &flight->url)) {
        request.fields = engine->fields;
        request.field_count = engine->field_count;
    }
    if (flight->keep.is_on)
        wr_net_append_head(&flight->keep.request, loop->net, &request, true);
    int error = wr_net_start(loop->net, &request, flight->keep.is_on ? &keeping : &calls, flight, &flight->transfer);
    if (error == 0)
        return;
    if (error == WEIR_E_NOMEM)
        wait_a_while(loop, weir_error_text(error));
    wr_plan_given(loop->plan, flight->action.task, wr_crawl_loop_now(loop));
    if (flight->action.kind == WR_PLAN_ROBOTS)
        wr_robots_returned(flight);
    wr_flight_give_back(flight);
}

static void reset(struct wr_flight *flight, const struct wr_plan_action *action)
{
    flight->action = *action;
    flight->transfer = NULL;
    flight->was_sent = flight->is_landed = flight->wants_body = flight->has_page = flight->has_links =
        flight->is_again = flight->has_seeds = flight->is_conditional = flight->is_sitemap = flight->is_enough =
            flight->leads_too_deep = flight->ends_when_read = flight->is_left = false;
    flight->body_bytes = 0;
    flight->lease = action->host != NULL ? wr_plan_host_token(action->host) : 0;
    flight->wishes = 0;
    flight->said = (weir_said)WR_NOTHING_SAID;
    flight->said_at = 0;
    memset(flight->head_bytes, 0, sizeof flight->head_bytes);
    flight->keeps_first = false;
    flight->firewall = WR_FIREWALL_NONE;
    flight->keep.is_on = flight->loop->engine->archive.is_on && action->kind == WR_PLAN_START;
}

/* Sends the request of a page; a conditional one if an earlier job had the page. */
static void send_page(struct wr_flight *flight)
{
    static const struct wr_span none = {NULL, 0};
    flight->is_sitemap = wr_listing_is(flight);
    struct wr_span validator = wr_earlier_validator(flight);
    bool is_etag = wr_span_find(validator, '"') < validator.bytes;
    flight->is_conditional = validator.bytes > 0;
    wr_flight_send(flight, is_etag ? validator : none, is_etag ? none : validator);
}

bool wr_flight_set_url(struct wr_flight *flight, struct wr_span url)
{
    return wr_url_parse(url, NULL, NULL, flight->url_memory, sizeof flight->url_memory, &flight->url) == WR_URL_OK;
}

void wr_flight_start(struct wr_crawl_loop *loop, const struct wr_plan_action *action)
{
    WR_DOING("starting a request");
    struct wr_flight *flight = take(loop);
    if (flight == NULL) {
        wait_a_while(loop, weir_error_text(WEIR_E_NOMEM));
        wr_plan_given(loop->plan, action->task, wr_crawl_loop_now(loop));
        return;
    }
    reset(flight, action);
    /* Cannot happen: the URL was valid when it was accepted. */
    if (!wr_flight_set_url(flight, action->url)) {
        wr_plan_given(loop->plan, action->task, wr_crawl_loop_now(loop));
        wr_flight_give_back(flight);
    } else if (action->kind == WR_PLAN_ROBOTS) {
        wr_robots_begin(flight);
    } else {
        send_page(flight);
    }
}

/* Sets the URL for the output line. Text that is not a URL is kept as it is. */
static void keep_url(struct wr_flight *flight, struct wr_span text)
{
    if (wr_flight_set_url(flight, text))
        return;
    flight->url = (struct wr_url){.text = flight->url_memory, .bytes = (uint16_t)text.bytes};
    if (text.bytes > 0)
        memcpy(flight->url_memory, text.data, text.bytes);
}

struct wr_flight *wr_flight_unsent(struct wr_crawl_loop *loop, const struct wr_plan_action *action)
{
    struct wr_flight *flight = take(loop);
    if (flight == NULL) {
        wr_job_over(loop->engine, WR_END_BROKEN, weir_error_text(WEIR_E_NOMEM));
        return NULL;
    }
    reset(flight, action);
    keep_url(flight, action->url);
    flight->result = (struct wr_net_result){.end = WR_NET_DONE};
    flight->fate = (struct wr_fate){.kind = WR_FATE_FAILED, .attempts = action->attempts};
    wr_flight_landed(flight);
    wr_flight_owe(flight);
    return flight;
}

void wr_flight_carry(struct wr_crawl_loop *loop, struct wr_founds *founds, bool are_seeds)
{
    const struct wr_plan_action nothing = {.kind = WR_PLAN_IDLE};
    struct wr_flight *flight = take(loop);
    if (flight == NULL) {
        wr_job_over(loop->engine, WR_END_BROKEN, weir_error_text(WEIR_E_NOMEM));
        return;
    }
    reset(flight, &nothing);
    flight->has_seeds = are_seeds;
    wr_flight_landed(flight);
    struct wr_founds empty_ones = flight->founds;
    flight->founds = *founds;
    *founds = empty_ones;
    wr_post_flight(flight);
}
