/* SPDX-License-Identifier: MIT */
/* crawl_robots.c - fetches robots.txt, follows its redirects, and reads and stores it.
 *
 * For a redirect within the host, the plan repeats ROBOTS, and the URL is kept here meanwhile. A
 * redirect to another host is an robots_hop: the loop of that host sends the request, and answers
 * by message.
 */
#include "base/alloc.h"
#include "core/web/http/field.h"
#include "core/web/url/redirect.h"
#include "crawl/engine/engine_state.h"
#include "http/loop/watchdog.h"
#include "http/net/idna.h"

#define NETWORK_NS (10 * WEIR_SECOND) /* a response within this time means that the network works */
#define HOPS_MAX ((size_t)1 << 24)    /* two for each host that a plan can have */
#define WANTS_MAX 32                  /* hosts that are asked for in one tick */

/* ---- redirects within a host ---- */

struct robots_redirect_key {
    uintptr_t host; /* address of the plan's host */
    uintptr_t is_https;
};

struct robots_redirect {
    struct robots_redirect_key key;
    size_t bytes; /* size of this allocation, bytes */
    char url[];
};

static struct robots_redirect_key robots_redirect_key(const struct wr_plan_host *host, bool is_https)
{
    return (struct robots_redirect_key){(uintptr_t)host, is_https};
}

void wr_robots_redirects_init(struct wr_crawl_loop *loop)
{
    wr_map_init(&loop->hops, loop->engine->allocator, &loop->engine->hash_key, HOPS_MAX);
}

static void free_robots_redirect(struct wr_crawl_loop *loop, struct robots_redirect *hop)
{
    if (hop != NULL)
        wr_free(loop->engine->allocator, hop, hop->bytes, _Alignof(struct robots_redirect));
}

static void put_robots_redirect(struct wr_crawl_loop *loop, const struct wr_plan_host *host, bool is_https,
                                struct wr_span url)
{
    size_t bytes = sizeof(struct robots_redirect) + url.bytes + 1;
    void *old = NULL;
    struct robots_redirect *hop = wr_alloc(loop->engine->allocator, bytes, _Alignof(struct robots_redirect));
    if (hop == NULL)
        return; /* without memory, robots.txt is fetched from its first URL */
    hop->key = robots_redirect_key(host, is_https);
    hop->bytes = bytes;
    memcpy(hop->url, url.data, url.bytes);
    if (wr_map_put(&loop->hops, &hop->key, sizeof hop->key, hop, &old) != 0)
        old = hop;
    free_robots_redirect(loop, old);
}

/* Sets the URL of the fetch to the target of the redirect. */
static void take_robots_redirect(struct wr_crawl_fetch *fetch)
{
    struct wr_crawl_loop *loop = fetch->loop;
    struct robots_redirect_key key = robots_redirect_key(fetch->action.host, fetch->action.is_https);
    struct robots_redirect *hop = wr_map_remove(&loop->hops, &key, sizeof key);
    if (hop != NULL)
        (void)wr_crawl_fetch_set_url(fetch, wr_span_of(hop->url));
    free_robots_redirect(loop, hop);
}

void wr_robots_redirects_free(struct wr_crawl_loop *loop)
{
    const struct wr_map_slot *slot;
    for (size_t cursor = 0; (slot = wr_map_next(&loop->hops, &cursor)) != NULL;)
        free_robots_redirect(loop, slot->value);
    wr_map_release(&loop->hops);
}

void wr_crawl_robots_keep_redirect(struct wr_crawl_fetch *fetch)
{
    if (fetch->action.is_hop)
        put_robots_redirect(fetch->loop, fetch->action.host, fetch->action.is_https, wr_span_of(fetch->url.text));
}

struct wr_span wr_crawl_robots_url(const struct wr_plan_host *host, bool is_https, char memory[WR_ROBOTS_URL_ROOM])
{
    struct wr_buf url;
    wr_buf_init_fixed(&url, memory, WR_ROBOTS_URL_ROOM);
    wr_buf_append_string(&url, is_https ? "https://" : "http://");
    wr_buf_append_span(&url, wr_plan_host_key(host));
    wr_buf_append_string(&url, "/robots.txt");
    return wr_buf_from(&url, 0);
}

/* ---- validators ---- */

/* The stored validators of a robots.txt, read before it is fetched again. */
struct validators {
    struct wr_loop_message message;
    struct wr_crawl_fetch *fetch;
    char etag[WR_STORE_VALIDATOR_MAX + 1], modified[WR_STORE_VALIDATOR_MAX + 1];
};

static void free_validators(struct wr_loop_message *message)
{
    struct validators *validators = (struct validators *)(void *)message;
    wr_free(validators->fetch->loop->engine->allocator, validators, sizeof *validators, _Alignof(struct validators));
}

static void send_with_validators(struct wr_crawl_loop *loop, struct wr_loop_message *message)
{
    struct validators *validators = (struct validators *)(void *)message;
    (void)loop;
    wr_crawl_fetch_send(validators->fetch, wr_span_of(validators->etag), wr_span_of(validators->modified));
    free_validators(message);
}

static void copy_validator(char *to, struct wr_span from)
{
    if (from.bytes > 0 && from.bytes <= WR_STORE_VALIDATOR_MAX)
        memcpy(to, from.data, from.bytes);
}

static void on_robots_row(void *context, const struct wr_store_row *row)
{
    struct validators *validators = context;
    copy_validator(validators->etag, row->robots.etag);
    copy_validator(validators->modified, row->robots.modified);
}

static void on_robots_read(void *context, int error, const char *why)
{
    struct validators *validators = context;
    (void)error, (void)why; /* without validators the request is not conditional */
    wr_loop_message_send(validators->fetch->loop, &validators->message);
}

static bool load_validators(struct wr_crawl_fetch *fetch)
{
    struct wr_engine *engine = fetch->loop->engine;
    struct validators *validators = wr_alloc(engine->allocator, sizeof *validators, _Alignof(struct validators));
    if (validators == NULL)
        return false;
    validators->message.read = send_with_validators;
    validators->message.drop = free_validators;
    validators->fetch = fetch;
    const struct wr_store_query query = {.what = WR_STORE_ONE_ROBOTS,
                                         .key = wr_span_of(fetch->url.text),
                                         /* Without it, a stop would wait for an unavailable
                                          * database. */
                                         .is_hasty = true,
                                         .row = on_robots_row,
                                         .done = on_robots_read,
                                         .context = validators};
    if (wr_store_read(engine->store, &query) == 0)
        return true;
    free_validators(&validators->message);
    return false;
}

void wr_crawl_robots_begin(struct wr_crawl_fetch *fetch)
{
    if (fetch->action.is_hop)
        take_robots_redirect(fetch);
    if (fetch->action.is_conditional && !fetch->action.is_hop && load_validators(fetch))
        return;
    wr_crawl_fetch_send(fetch, (struct wr_span){NULL, 0}, (struct wr_span){NULL, 0});
}

/* ---- the body ---- */

#define FREE_BYTES ((size_t)64 << 10) /* bytes of each robots.txt body that are not counted */
#define HELD_MAX ((size_t)64 << 20)   /* limit of the counted bytes of all bodies */

void wr_crawl_robots_uncount(struct wr_engine *engine, size_t held_bytes)
{
    if (held_bytes > 0)
        (void)atomic_fetch_sub(&engine->robots_held, held_bytes);
}

static bool count_robots_bytes(struct wr_crawl_fetch *fetch, size_t bytes)
{
    struct wr_engine *engine = fetch->loop->engine;
    if (atomic_fetch_add(&engine->robots_held, bytes) + bytes > HELD_MAX) {
        (void)atomic_fetch_sub(&engine->robots_held, bytes);
        return false;
    }
    fetch->held_bytes += bytes;
    return true;
}

/* Appends a piece to the body, after counting the memory that its buffer will take. */
bool wr_crawl_robots_body(struct wr_crawl_fetch *fetch, const char *data, size_t bytes)
{
    size_t wanted = 2 * (fetch->body.length + bytes), had = fetch->held_bytes + 2 * FREE_BYTES;
    wanted = wanted < WR_ROBOTS_MAX + 2 ? wanted : WR_ROBOTS_MAX + 2;
    if (wanted > had && !count_robots_bytes(fetch, wanted - had)) {
        fetch->lacks_room = true;
        wr_engine_warn_seldom(fetch->loop->engine, "slower for a while: ", "many hosts have a long robots.txt");
        return false;
    }
    wr_buf_append(&fetch->body, data, bytes);
    return fetch->body.error == 0;
}

/* ---- the response ---- */

/* A response about robots.txt. Its texts belong to the fetch or the robots_hop. */
struct robots_response {
    struct wr_robots_event event;
    struct wr_robots *rules;
    struct wr_url to; /* target of the redirect, if event.leads is set */
    char to_memory[WR_URL_ROOM];
    bool stays;
};

static bool is_url_at_host(const struct wr_url *url, const struct wr_plan_host *host)
{
    char memory[WEIR_PACE_KEY_MAX + 1];
    struct wr_buf key;
    struct wr_span of = wr_plan_host_key(host);
    wr_buf_init_fixed(&key, memory, sizeof memory);
    wr_url_append_key(&key, url);
    return key.length == of.bytes && memcmp(memory, of.data, of.bytes) == 0;
}

static void parse_robots_body(const struct wr_engine *engine, struct wr_span body, struct robots_response *came)
{
    WR_DOING("parsing robots.txt");
    const struct wr_robots_options options = {.agent = wr_span_of(engine->agent),
                                              .delay_max_ns = WR_ROBOTS_DELAY_MAX_NS};
    if (wr_robots_parse(body, &options, engine->allocator, &came->rules) != 0)
        came->event = (struct wr_robots_event){
            .kind = WR_ROBOTS_EVENT_FAILED, .lacks_room = true, .retry_after_ns = -1, .max_age_ns = -1};
}

static void read_robots_response(const struct wr_crawl_fetch *fetch, const struct wr_plan_host *host,
                                 struct robots_response *came)
{
    const struct wr_net_result *result = &fetch->result;
    struct wr_span location = wr_crawl_fetch_header(fetch, WR_RESPONSE_LOCATION);
    bool is_answer = wr_crawl_fetch_is_answered(fetch);
    came->rules = NULL;
    came->event =
        (struct wr_robots_event){.kind = is_answer ? WR_ROBOTS_EVENT_ANSWERED : WR_ROBOTS_EVENT_FAILED,
                                 .status = result->status,
                                 .max_age_ns = wr_max_age_ns(wr_crawl_fetch_header(fetch, WR_RESPONSE_CACHE_CONTROL)),
                                 .retry_after_ns = fetch->said.retry_after_ns};
    came->event.has_validators = wr_crawl_fetch_header(fetch, WR_RESPONSE_ETAG).bytes +
                                     wr_crawl_fetch_header(fetch, WR_RESPONSE_LAST_MODIFIED).bytes >
                                 0;
    if (location.bytes > 0 &&
        wr_url_parse(location, &fetch->url, wr_idna_libidn2(), came->to_memory, WR_URL_ROOM, &came->to) == WR_URL_OK) {
        wr_url_drop_userinfo(&came->to, came->to_memory);
        came->event.leads = true;
    }
    came->stays = came->event.leads && is_url_at_host(&came->to, host);
    if (is_answer && result->status >= 200 && result->status < 300)
        parse_robots_body(fetch->loop->engine, wr_buf_from(&fetch->body, 0), came);
}

/* Returns a validator that the store takes; none after a redirect: it is of another URL. */
static struct wr_span robots_validator(const struct wr_crawl_fetch *fetch, enum wr_response_header which)
{
    struct wr_span text = wr_crawl_fetch_header(fetch, which);
    bool is_good = text.bytes <= WR_STORE_VALIDATOR_MAX && !fetch->action.is_hop && wr_span_is_clean(text);
    return is_good ? text : (struct wr_span){NULL, 0};
}

/* Stores a robots.txt. If that fails, it is only fetched again after a restart. */
static void store_robots_copy(struct wr_engine *engine, const struct wr_plan_host *host, bool is_https,
                              enum wr_robots_copy_action copy, const struct wr_robots_event *event,
                              struct wr_store_robots read)
{
    char memory[WR_ROBOTS_URL_ROOM];
    if (copy == WR_ROBOTS_COPY_KEEP)
        return;
    struct wr_store_robots robots = {.url = wr_crawl_robots_url(host, is_https, memory),
                                     .kind =
                                         copy == WR_ROBOTS_COPY_CONFIRM ? WR_STORE_ROBOTS_SAME : WR_STORE_ROBOTS_NONE,
                                     .max_age_ns = event->max_age_ns,
                                     .fetched_wall_at = weir_wall_now()};
    if (copy == WR_ROBOTS_COPY_READ && read.text.bytes > WR_STORE_ROBOTS_MAX) {
        robots.kind = WR_STORE_ROBOTS_GONE;
    } else if (copy == WR_ROBOTS_COPY_READ) {
        robots.kind = WR_STORE_ROBOTS_TEXT;
        robots.text = read.text;
        robots.etag = read.etag;
        robots.modified = read.modified;
    }
    const struct wr_store_change change = {.kind = WR_STORE_ROBOTS, .robots = robots};
    (void)atomic_fetch_add(&engine->posts, 1);
    if (wr_store_post(engine->store, &change, 1, wr_job_on_stored, engine) != 0)
        wr_job_post_done(engine);
}

/* ---- redirects to other hosts ---- */

/* A request that another loop sends for this one. It goes there and comes back as a message. */
struct wr_robots_hop {
    struct wr_loop_message message;
    struct wr_list_link link; /* entry in the list of the loop that sends it */
    struct wr_crawl_loop *asker;
    struct wr_plan_host *host; /* the asker's host, whose robots.txt it is */
    bool is_https;
    bool is_placed;     /* the plan has it: this process has the target's lease */
    int64_t timeout_at; /* the robots_hop fails if it is not placed by then */
    struct robots_response came;
    struct wr_buf body;
    size_t held_bytes; /* bytes of `body` that robots_held counts */
    size_t key_bytes;
    char key[WEIR_PACE_KEY_MAX + 1]; /* host that the redirect leads to */
    char url[WR_URL_ROOM];
};

static void free_robots_hop(struct wr_loop_message *message)
{
    struct wr_robots_hop *robots_hop = (struct wr_robots_hop *)(void *)message;
    wr_robots_free(robots_hop->came.rules);
    wr_buf_release(&robots_hop->body);
    wr_crawl_robots_uncount(robots_hop->asker->engine, robots_hop->held_bytes);
    wr_free(robots_hop->asker->engine->allocator, robots_hop, sizeof *robots_hop, _Alignof(struct wr_robots_hop));
}

void wr_robots_hops_free(struct wr_crawl_loop *loop)
{
    while (loop->robots_hops.first != NULL) {
        struct wr_robots_hop *robots_hop = WR_LINKED(loop->robots_hops.first, struct wr_robots_hop, link);
        wr_list_remove(&robots_hop->link);
        free_robots_hop(&robots_hop->message);
    }
}

static void follow_robots_response(struct wr_crawl_loop *loop, struct wr_plan_host *host, bool is_https,
                                   const struct robots_response *came);

/* Handles the response at the asking loop. Validators are not stored: they are another URL's. */
static void read_robots_hop_response(struct wr_crawl_loop *loop, struct wr_loop_message *message)
{
    struct wr_robots_hop *robots_hop = (struct wr_robots_hop *)(void *)message;
    struct robots_response *came = &robots_hop->came;
    came->stays = came->event.leads && is_url_at_host(&came->to, robots_hop->host);
    struct wr_robots_action action =
        wr_plan_robots_arrived(loop->plan, robots_hop->host, robots_hop->is_https, &came->event, came->rules,
                               came->stays, wr_crawl_loop_now(loop));
    came->rules = NULL; /* the plan owns the rules */
    if (robots_hop->body.error == 0)
        store_robots_copy(loop->engine, robots_hop->host, robots_hop->is_https, action.copy, &came->event,
                          (struct wr_store_robots){.text = wr_buf_from(&robots_hop->body, 0)});
    if (action.fetch == WR_ROBOTS_FETCH_REDIRECT)
        follow_robots_response(loop, robots_hop->host, robots_hop->is_https, came);
    free_robots_hop(message);
}

static void send_robots_hop_back(struct wr_robots_hop *robots_hop)
{
    robots_hop->message.read = read_robots_hop_response;
    wr_loop_message_send(robots_hop->asker, &robots_hop->message);
}

static void fail_robots_hop(struct wr_robots_hop *robots_hop)
{
    wr_list_remove(&robots_hop->link);
    robots_hop->came.event =
        (struct wr_robots_event){.kind = WR_ROBOTS_EVENT_FAILED, .retry_after_ns = -1, .max_age_ns = -1};
    send_robots_hop_back(robots_hop);
}

static struct wr_span robots_hop_target(const struct wr_robots_hop *robots_hop)
{
    return (struct wr_span){robots_hop->key, robots_hop->key_bytes};
}

static void schedule_robots_hop(struct wr_crawl_loop *loop, struct wr_robots_hop *robots_hop)
{
    char memory[WR_URL_ROOM];
    struct wr_url url;
    int error = wr_url_parse(wr_span_of(robots_hop->url), NULL, NULL, memory, sizeof memory, &url) == WR_URL_OK
                    ? wr_plan_robots_hop_add(loop->plan, &url, (uint64_t)(uintptr_t)robots_hop, wr_crawl_loop_now(loop))
                    : WEIR_E_INVAL;
    robots_hop->is_placed = error == 0;
    if (error != 0)
        fail_robots_hop(robots_hop);
}

void wr_robots_hops_schedule(struct wr_crawl_loop *loop, struct wr_span key)
{
    for (struct wr_list_link *link = loop->robots_hops.first, *next; link != NULL; link = next) {
        struct wr_robots_hop *robots_hop = WR_LINKED(link, struct wr_robots_hop, link);
        next = link->next;
        if (!robots_hop->is_placed && robots_hop->key_bytes == key.bytes &&
            memcmp(robots_hop->key, key.data, key.bytes) == 0)
            schedule_robots_hop(loop, robots_hop);
    }
}

/* Places an robots_hop in the plan if this process has the host and does not yield it. Asks the
 * store for a host of another process. */
static void schedule_or_claim_host(struct wr_crawl_loop *loop, struct wr_robots_hop *robots_hop)
{
    const struct wr_plan_host *host = wr_plan_host_find(loop->plan, robots_hop_target(robots_hop));
    bool is_ours = host != NULL && wr_plan_host_lease_token(host) != 0;
    if (!loop->engine->is_shared || (is_ours && !wr_plan_host_yields_lease(host)))
        schedule_robots_hop(loop, robots_hop);
    else if (!is_ours)
        wr_host_lease_request(loop, robots_hop_target(robots_hop));
}

/* Takes an robots_hop back from the plan: its host was lost before the request was sent. */
static void withdraw_robots_hop(struct wr_crawl_loop *loop, struct wr_robots_hop *robots_hop, int64_t now)
{
    struct wr_plan_host *host = wr_plan_host_find(loop->plan, robots_hop_target(robots_hop));
    if (robots_hop->is_placed && host != NULL && wr_plan_host_lease_token(host) == 0)
        robots_hop->is_placed = !wr_plan_robots_hop_remove(loop->plan, host, (uint64_t)(uintptr_t)robots_hop, now);
}

void wr_robots_hops_tick(struct wr_crawl_loop *loop)
{
    int64_t now = wr_crawl_loop_now(loop);
    struct wr_list_link *last = loop->robots_hops.last, *next = loop->robots_hops.first;
    for (int wants = 0; next != NULL && wants < WANTS_MAX;) {
        struct wr_robots_hop *robots_hop = WR_LINKED(next, struct wr_robots_hop, link);
        next = next != last ? next->next : NULL;
        withdraw_robots_hop(loop, robots_hop, now);
        if (robots_hop->is_placed)
            continue;
        if (now >= robots_hop->timeout_at) {
            fail_robots_hop(robots_hop);
            continue;
        }
        wr_list_remove(&robots_hop->link); /* moved to the end, so that others have their turn */
        wr_list_push(&loop->robots_hops, &robots_hop->link);
        schedule_or_claim_host(loop, robots_hop);
        wants++;
    }
}

/* Returns how long an robots_hop waits. Two processes may wait for each other's hosts, so one waits
 * less, and yields. */
static int64_t robots_hop_timeout_ns(const struct wr_robots_hop *robots_hop)
{
    struct wr_span from = wr_plan_host_key(robots_hop->host), to = robots_hop_target(robots_hop);
    int order = memcmp(from.data, to.data, from.bytes < to.bytes ? from.bytes : to.bytes);
    bool is_first = order < 0 || (order == 0 && from.bytes < to.bytes);
    return (is_first ? 4 : 2) * robots_hop->asker->engine->lease_ns;
}

static void read_robots_hop(struct wr_crawl_loop *loop, struct wr_loop_message *message)
{
    struct wr_robots_hop *robots_hop = (struct wr_robots_hop *)(void *)message;
    wr_list_push(&loop->robots_hops, &robots_hop->link);
    schedule_or_claim_host(loop, robots_hop);
}

/* Follows a redirect of robots.txt. */
static void follow_robots_response(struct wr_crawl_loop *loop, struct wr_plan_host *host, bool is_https,
                                   const struct robots_response *came)
{
    if (came->stays) {
        put_robots_redirect(loop, host, is_https, wr_span_of(came->to.text));
        return;
    }
    struct wr_robots_hop *robots_hop =
        wr_alloc(loop->engine->allocator, sizeof *robots_hop, _Alignof(struct wr_robots_hop));
    struct wr_buf key;
    if (robots_hop == NULL) {
        const struct wr_robots_event failed = {.kind = WR_ROBOTS_EVENT_FAILED, .retry_after_ns = -1, .max_age_ns = -1};
        (void)wr_plan_robots_arrived(loop->plan, host, is_https, &failed, NULL, false, wr_crawl_loop_now(loop));
        return;
    }
    robots_hop->message.read = read_robots_hop;
    robots_hop->message.drop = free_robots_hop;
    robots_hop->asker = loop;
    robots_hop->host = host;
    robots_hop->is_https = is_https;
    wr_buf_init(&robots_hop->body, loop->engine->allocator, WR_ROBOTS_MAX + 1);
    memcpy(robots_hop->url, came->to.text, came->to.bytes);
    wr_buf_init_fixed(&key, robots_hop->key, sizeof robots_hop->key);
    wr_url_append_key(&key, &came->to);
    robots_hop->key_bytes = key.length;
    robots_hop->timeout_at = wr_crawl_loop_now(loop) + robots_hop_timeout_ns(robots_hop);
    wr_loop_message_send(&loop->engine->loops[wr_engine_loop_of_url(loop->engine, &came->to)], &robots_hop->message);
}

/* Counts the request if it failed before it was written, and returns its outcome. */
static weir_outcome end_robots_attempt(struct wr_crawl_fetch *fetch, int64_t now)
{
    if (!fetch->was_sent)
        wr_crawl_fetch_count_sent(fetch, now);
    return wr_crawl_fetch_outcome(fetch, wr_crawl_fetch_is_answered(fetch) ? fetch->result.status : 0, now);
}

static void move_robots_body(struct wr_crawl_fetch *fetch, struct wr_robots_hop *robots_hop)
{
    struct wr_buf empty = robots_hop->body;
    robots_hop->body = fetch->body;
    fetch->body = empty;
    robots_hop->held_bytes = fetch->held_bytes;
    fetch->held_bytes = 0;
}

void wr_robots_hop_arrived(struct wr_crawl_fetch *fetch)
{
    struct wr_crawl_loop *loop = fetch->loop;
    struct wr_robots_hop *robots_hop = (struct wr_robots_hop *)(uintptr_t)fetch->action.tag;
    int64_t now = wr_crawl_loop_now(loop);
    weir_outcome outcome = end_robots_attempt(fetch, now);
    read_robots_response(fetch, fetch->action.host, &robots_hop->came);
    if (robots_hop->came.rules != NULL)
        move_robots_body(fetch, robots_hop);
    uint32_t news = wr_plan_robots_hop_finished(loop->plan, fetch->action.task,
                                                wr_crawl_fetch_is_caused_by_host(fetch) ? &outcome : NULL, now);
    if ((news & WR_GATE_CHANGE_RETRY_AFTER) != 0)
        wr_crawl_loop_save_host(loop, fetch->action.host);
    wr_list_remove(&robots_hop->link);
    send_robots_hop_back(robots_hop);
    wr_crawl_fetch_recycle(fetch);
}

/* Returns false if hosts have answered, but none lately: the network is down, and hosts wait. */
static bool is_network_up(struct wr_engine *engine, int64_t now)
{
    int64_t answered_at = atomic_load(&engine->answered_at);
    return answered_at == 0 || now - answered_at < NETWORK_NS;
}

/* Returns true if the host's pages would fail as well: it cannot be asked at all, or its robots.txt
 * has failed as often as a page is tried. */
static bool will_pages_fail(const struct wr_crawl_fetch *fetch, int64_t now)
{
    struct wr_engine *engine = fetch->loop->engine;
    enum wr_net_end end = fetch->result.end;
    if (end == WR_NET_BLOCKED || end == WR_NET_NO_NAME || end == WR_NET_TLS)
        return true;
    return end != WR_NET_DONE && is_network_up(engine, now) &&
           wr_plan_robots_failures(fetch->action.host, fetch->action.is_https) >= engine->options.pace.retry.attempts;
}

void wr_crawl_robots_arrived(struct wr_crawl_fetch *fetch)
{
    struct wr_crawl_loop *loop = fetch->loop;
    struct wr_plan_host *host = fetch->action.host;
    bool is_https = fetch->action.is_https;
    struct robots_response came;
    int64_t now = wr_crawl_loop_now(loop);
    wr_firewall_note_response(fetch);
    weir_outcome outcome = end_robots_attempt(fetch, now);
    read_robots_response(fetch, host, &came);
    const struct wr_robots_event event = came.event;
    struct wr_robots_action action = wr_plan_robots_finished(loop->plan, fetch->action.task,
                                                             wr_crawl_fetch_is_caused_by_host(fetch) ? &outcome : NULL,
                                                             &event, came.rules, came.stays, now);
    store_robots_copy(loop->engine, host, is_https, action.copy, &event,
                      (struct wr_store_robots){.text = wr_buf_from(&fetch->body, 0),
                                               .etag = robots_validator(fetch, WR_RESPONSE_ETAG),
                                               .modified = robots_validator(fetch, WR_RESPONSE_LAST_MODIFIED)});
    if (outcome.has_retry_after)
        wr_crawl_loop_save_host(loop, host);
    if (action.fetch == WR_ROBOTS_FETCH_REDIRECT)
        follow_robots_response(loop, host, is_https, &came);
    else if (will_pages_fail(fetch, now) && !fetch->action.is_hop)
        wr_plan_origin_unreachable(loop->plan, host, is_https, (uint8_t)fetch->result.end, now);
    wr_crawl_fetch_recycle(fetch);
}
