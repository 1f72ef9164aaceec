/* SPDX-License-Identifier: MIT */
/* robots.c - fetches robots.txt, follows its redirects, and reads and stores it.
 *
 * For a redirect within the host, the plan repeats ROBOTS, and the URL is kept here meanwhile. A
 * redirect to another host is an errand: the loop of that host sends the request, and answers by
 * message.
 */
#include "base/alloc.h"
#include "core/rules/http/field.h"
#include "core/rules/url/redirect.h"
#include "shell/engine/state.h"
#include "shell/loop/away.h"
#include "shell/net/idna.h"

#define NETWORK_NS (10 * WEIR_SECOND) /* a response within this time means that the network works */
#define HOPS_MAX ((size_t)1 << 24)    /* two for each host that a plan can have */
#define WANTS_MAX 32                  /* hosts that are asked for in one tick */

/* ---- redirects within a host ---- */

struct hop_key {
    uintptr_t host; /* address of the plan's host */
    uintptr_t is_https;
};

struct hop {
    struct hop_key key;
    size_t bytes; /* size of this allocation, bytes */
    char url[];
};

static struct hop_key hop_key(const struct wr_plan_host *host, bool is_https)
{
    return (struct hop_key){(uintptr_t)host, is_https};
}

void wr_hops_init(struct wr_crawl_loop *loop)
{
    wr_map_init(&loop->hops, loop->engine->allocator, &loop->engine->hash_key, HOPS_MAX);
}

static void free_hop(struct wr_crawl_loop *loop, struct hop *hop)
{
    if (hop != NULL)
        wr_give(loop->engine->allocator, hop, hop->bytes, _Alignof(struct hop));
}

static void put_hop(struct wr_crawl_loop *loop, const struct wr_plan_host *host, bool is_https, struct wr_span url)
{
    size_t bytes = sizeof(struct hop) + url.bytes + 1;
    void *old = NULL;
    struct hop *hop = wr_take(loop->engine->allocator, bytes, _Alignof(struct hop));
    if (hop == NULL)
        return; /* without memory, robots.txt is fetched from its first URL */
    hop->key = hop_key(host, is_https);
    hop->bytes = bytes;
    memcpy(hop->url, url.data, url.bytes);
    if (wr_map_put(&loop->hops, &hop->key, sizeof hop->key, hop, &old) != 0)
        old = hop;
    free_hop(loop, old);
}

/* Sets the URL of the fetch to the target of the redirect. */
static void take_hop(struct wr_flight *flight)
{
    struct wr_crawl_loop *loop = flight->loop;
    struct hop_key key = hop_key(flight->action.host, flight->action.is_https);
    struct hop *hop = wr_map_remove(&loop->hops, &key, sizeof key);
    if (hop != NULL)
        (void)wr_flight_set_url(flight, wr_span_of(hop->url));
    free_hop(loop, hop);
}

void wr_hops_free(struct wr_crawl_loop *loop)
{
    const struct wr_map_slot *slot;
    for (size_t cursor = 0; (slot = wr_map_next(&loop->hops, &cursor)) != NULL;)
        free_hop(loop, slot->value);
    wr_map_release(&loop->hops);
}

void wr_robots_returned(struct wr_flight *flight)
{
    if (flight->action.is_hop)
        put_hop(flight->loop, flight->action.host, flight->action.is_https, wr_span_of(flight->url.text));
}

struct wr_span wr_robots_url(const struct wr_plan_host *host, bool is_https, char memory[WR_ROBOTS_URL_ROOM])
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
    struct wr_letter letter;
    struct wr_flight *flight;
    char etag[WR_STORE_VALIDATOR_MAX + 1], modified[WR_STORE_VALIDATOR_MAX + 1];
};

static void free_validators(struct wr_letter *letter)
{
    struct validators *validators = (struct validators *)(void *)letter;
    wr_give(validators->flight->loop->engine->allocator, validators, sizeof *validators, _Alignof(struct validators));
}

static void read_validators(struct wr_crawl_loop *loop, struct wr_letter *letter)
{
    struct validators *validators = (struct validators *)(void *)letter;
    (void)loop;
    wr_flight_send(validators->flight, wr_span_of(validators->etag), wr_span_of(validators->modified));
    free_validators(letter);
}

static void copy_text(char *to, struct wr_span from)
{
    if (from.bytes > 0 && from.bytes <= WR_STORE_VALIDATOR_MAX)
        memcpy(to, from.data, from.bytes);
}

static void on_robots_row(void *context, const struct wr_store_row *row)
{
    struct validators *validators = context;
    copy_text(validators->etag, row->robots.etag);
    copy_text(validators->modified, row->robots.modified);
}

static void on_robots_read(void *context, int error, const char *why)
{
    struct validators *validators = context;
    (void)error, (void)why; /* without validators the request is not conditional */
    wr_letter_send(validators->flight->loop, &validators->letter);
}

static bool ask_validators(struct wr_flight *flight)
{
    struct wr_engine *engine = flight->loop->engine;
    struct validators *validators = wr_take(engine->allocator, sizeof *validators, _Alignof(struct validators));
    if (validators == NULL)
        return false;
    validators->letter.read = read_validators;
    validators->letter.drop = free_validators;
    validators->flight = flight;
    const struct wr_store_query query = {.what = WR_STORE_ONE_ROBOTS,
                                         .key = wr_span_of(flight->url.text),
                                         /* Without it, a stop would wait for an unavailable
                                          * database. */
                                         .is_hasty = true,
                                         .row = on_robots_row,
                                         .done = on_robots_read,
                                         .context = validators};
    if (wr_store_read(engine->store, &query) == 0)
        return true;
    free_validators(&validators->letter);
    return false;
}

void wr_robots_begin(struct wr_flight *flight)
{
    if (flight->action.is_hop)
        take_hop(flight);
    if (flight->action.is_conditional && !flight->action.is_hop && ask_validators(flight))
        return;
    wr_flight_send(flight, (struct wr_span){NULL, 0}, (struct wr_span){NULL, 0});
}

/* ---- the body ---- */

#define FREE_BYTES ((size_t)64 << 10) /* bytes of each robots.txt body that are not counted */
#define HELD_MAX ((size_t)64 << 20)   /* limit of the counted bytes of all bodies */

void wr_robots_let_go(struct wr_engine *engine, size_t held_bytes)
{
    if (held_bytes > 0)
        (void)atomic_fetch_sub(&engine->robots_held, held_bytes);
}

static bool hold(struct wr_flight *flight, size_t bytes)
{
    struct wr_engine *engine = flight->loop->engine;
    if (atomic_fetch_add(&engine->robots_held, bytes) + bytes > HELD_MAX) {
        (void)atomic_fetch_sub(&engine->robots_held, bytes);
        return false;
    }
    flight->held_bytes += bytes;
    return true;
}

/* Appends a piece to the body, after counting the memory that its buffer will take. */
bool wr_robots_body(struct wr_flight *flight, const char *data, size_t bytes)
{
    size_t wanted = 2 * (flight->body.length + bytes), had = flight->held_bytes + 2 * FREE_BYTES;
    wanted = wanted < WR_ROBOTS_MAX + 2 ? wanted : WR_ROBOTS_MAX + 2;
    if (wanted > had && !hold(flight, wanted - had)) {
        flight->lacks_room = true;
        wr_engine_warn_seldom(flight->loop->engine, "slower for now: ", "many hosts have a long robots.txt");
        return false;
    }
    wr_buf_append(&flight->body, data, bytes);
    return flight->body.error == 0;
}

/* ---- the response ---- */

/* A response about robots.txt. Its texts belong to the fetch or the errand. */
struct came {
    struct wr_life_event event;
    struct wr_robots *rules;
    struct wr_url to; /* target of the redirect, if event.leads is set */
    char to_memory[WR_URL_ROOM];
    bool stays;
};

static bool is_at(const struct wr_url *url, const struct wr_plan_host *host)
{
    char memory[WEIR_PACE_KEY_MAX + 1];
    struct wr_buf key;
    struct wr_span of = wr_plan_host_key(host);
    wr_buf_init_fixed(&key, memory, sizeof memory);
    wr_url_append_key(&key, url);
    return key.length == of.bytes && memcmp(memory, of.data, of.bytes) == 0;
}

static void read_rules(const struct wr_engine *engine, struct wr_span body, struct came *came)
{
    WR_DOING("parsing robots.txt");
    const struct wr_robots_options options = {.agent = wr_span_of(engine->agent),
                                              .delay_max_ns = WR_ROBOTS_DELAY_MAX_NS};
    if (wr_robots_parse(body, &options, engine->allocator, &came->rules) != 0)
        came->event =
            (struct wr_life_event){.kind = WR_LIFE_FAILED, .lacks_room = true, .retry_after_ns = -1, .max_age_ns = -1};
}

static void read_answer(const struct wr_flight *flight, const struct wr_plan_host *host, struct came *came)
{
    const struct wr_net_result *result = &flight->result;
    struct wr_span location = wr_flight_head(flight, WR_TEXT_LOCATION);
    bool is_answer = wr_flight_is_answered(flight);
    came->rules = NULL;
    came->event = (struct wr_life_event){.kind = is_answer ? WR_LIFE_ANSWERED : WR_LIFE_FAILED,
                                         .status = result->status,
                                         .max_age_ns = wr_max_age_ns(wr_flight_head(flight, WR_TEXT_CACHE)),
                                         .retry_after_ns = flight->said.retry_after_ns};
    came->event.has_validators =
        wr_flight_head(flight, WR_TEXT_ETAG).bytes + wr_flight_head(flight, WR_TEXT_MODIFIED).bytes > 0;
    if (location.bytes > 0 &&
        wr_url_parse(location, &flight->url, wr_idna_libidn2(), came->to_memory, WR_URL_ROOM, &came->to) == WR_URL_OK) {
        wr_url_drop_userinfo(&came->to, came->to_memory);
        came->event.leads = true;
    }
    came->stays = came->event.leads && is_at(&came->to, host);
    if (is_answer && result->status >= 200 && result->status < 300)
        read_rules(flight->loop->engine, wr_buf_from(&flight->body, 0), came);
}

/* Returns a validator that the store takes; none after a redirect: it is of another URL. */
static struct wr_span validator_of(const struct wr_flight *flight, enum wr_text which)
{
    struct wr_span text = wr_flight_head(flight, which);
    bool is_good = text.bytes <= WR_STORE_VALIDATOR_MAX && !flight->action.is_hop && wr_span_clean(text);
    return is_good ? text : (struct wr_span){NULL, 0};
}

/* Stores a robots.txt. If that fails, it is only fetched again after a restart. */
static void store_copy(struct wr_engine *engine, const struct wr_plan_host *host, bool is_https, enum wr_life_copy copy,
                       const struct wr_life_event *event, struct wr_store_robots read)
{
    char memory[WR_ROBOTS_URL_ROOM];
    if (copy == WR_COPY_KEEP)
        return;
    struct wr_store_robots robots = {.url = wr_robots_url(host, is_https, memory),
                                     .kind = copy == WR_COPY_CONFIRM ? WR_STORE_ROBOTS_SAME : WR_STORE_ROBOTS_NONE,
                                     .max_age_ns = event->max_age_ns,
                                     .fetched_wall_at = weir_wall_now()};
    if (copy == WR_COPY_READ && read.text.bytes > WR_STORE_ROBOTS_MAX) {
        robots.kind = WR_STORE_ROBOTS_GONE;
    } else if (copy == WR_COPY_READ) {
        robots.kind = WR_STORE_ROBOTS_TEXT;
        robots.text = read.text;
        robots.etag = read.etag;
        robots.modified = read.modified;
    }
    const struct wr_store_change change = {.kind = WR_STORE_ROBOTS, .robots = robots};
    (void)atomic_fetch_add(&engine->posts, 1);
    if (wr_store_post(engine->store, &change, 1, wr_on_stored, engine) != 0)
        wr_posts_done(engine);
}

/* ---- redirects to other hosts ---- */

/* A request that another loop sends for this one. It goes there and comes back as a message. */
struct wr_errand {
    struct wr_letter letter;
    struct wr_list_link link; /* entry in the list of the loop that sends it */
    struct wr_crawl_loop *asker;
    struct wr_plan_host *host; /* the asker's host, whose robots.txt it is */
    bool is_https;
    bool is_placed;        /* the plan has it: this process has the target's lease */
    int64_t patient_until; /* the errand fails if it is not placed by then */
    struct came came;
    struct wr_buf body;
    size_t held_bytes; /* bytes of `body` that robots_held counts */
    size_t key_bytes;
    char key[WEIR_PACE_KEY_MAX + 1]; /* host that the redirect leads to */
    char url[WR_URL_ROOM];
};

static void free_errand(struct wr_letter *letter)
{
    struct wr_errand *errand = (struct wr_errand *)(void *)letter;
    wr_robots_free(errand->came.rules);
    wr_buf_release(&errand->body);
    wr_robots_let_go(errand->asker->engine, errand->held_bytes);
    wr_give(errand->asker->engine->allocator, errand, sizeof *errand, _Alignof(struct wr_errand));
}

void wr_errands_free(struct wr_crawl_loop *loop)
{
    while (loop->errands.first != NULL) {
        struct wr_errand *errand = WR_LINKED(loop->errands.first, struct wr_errand, link);
        wr_list_take(&errand->link);
        free_errand(&errand->letter);
    }
}

static void go_on(struct wr_crawl_loop *loop, struct wr_plan_host *host, bool is_https, const struct came *came);

/* Handles the response at the asking loop. Validators are not stored: they are another URL's. */
static void read_errands_answer(struct wr_crawl_loop *loop, struct wr_letter *letter)
{
    struct wr_errand *errand = (struct wr_errand *)(void *)letter;
    struct came *came = &errand->came;
    came->stays = came->event.leads && is_at(&came->to, errand->host);
    struct wr_life_action action = wr_plan_robots_came(loop->plan, errand->host, errand->is_https, &came->event,
                                                       came->rules, came->stays, wr_crawl_loop_now(loop));
    came->rules = NULL; /* the plan owns the rules */
    if (errand->body.error == 0)
        store_copy(loop->engine, errand->host, errand->is_https, action.copy, &came->event,
                   (struct wr_store_robots){.text = wr_buf_from(&errand->body, 0)});
    if (action.fetch == WR_FETCH_ON)
        go_on(loop, errand->host, errand->is_https, came);
    free_errand(letter);
}

static void send_back(struct wr_errand *errand)
{
    errand->letter.read = read_errands_answer;
    wr_letter_send(errand->asker, &errand->letter);
}

static void fail_errand(struct wr_errand *errand)
{
    wr_list_take(&errand->link);
    errand->came.event = (struct wr_life_event){.kind = WR_LIFE_FAILED, .retry_after_ns = -1, .max_age_ns = -1};
    send_back(errand);
}

static struct wr_span target_key(const struct wr_errand *errand)
{
    return (struct wr_span){errand->key, errand->key_bytes};
}

static void place(struct wr_crawl_loop *loop, struct wr_errand *errand)
{
    char memory[WR_URL_ROOM];
    struct wr_url url;
    int error = wr_url_parse(wr_span_of(errand->url), NULL, NULL, memory, sizeof memory, &url) == WR_URL_OK
                    ? wr_plan_errand(loop->plan, &url, (uint64_t)(uintptr_t)errand, wr_crawl_loop_now(loop))
                    : WEIR_E_INVAL;
    errand->is_placed = error == 0;
    if (error != 0)
        fail_errand(errand);
}

void wr_errands_place(struct wr_crawl_loop *loop, struct wr_span key)
{
    for (struct wr_list_link *link = loop->errands.first, *next; link != NULL; link = next) {
        struct wr_errand *errand = WR_LINKED(link, struct wr_errand, link);
        next = link->next;
        if (!errand->is_placed && errand->key_bytes == key.bytes && memcmp(errand->key, key.data, key.bytes) == 0)
            place(loop, errand);
    }
}

/* Places an errand in the plan if this process has the host and does not yield it. Asks the store
 * for a host of another process. */
static void place_or_want(struct wr_crawl_loop *loop, struct wr_errand *errand)
{
    const struct wr_plan_host *host = wr_plan_host_find(loop->plan, target_key(errand));
    bool is_ours = host != NULL && wr_plan_host_token(host) != 0;
    if (!loop->engine->is_shared || (is_ours && !wr_plan_host_yields(host)))
        place(loop, errand);
    else if (!is_ours)
        wr_lease_want(loop, target_key(errand));
}

/* Takes an errand back from the plan: its host was lost before the request was sent. */
static void take_back(struct wr_crawl_loop *loop, struct wr_errand *errand, int64_t now)
{
    struct wr_plan_host *host = wr_plan_host_find(loop->plan, target_key(errand));
    if (errand->is_placed && host != NULL && wr_plan_host_token(host) == 0)
        errand->is_placed = !wr_plan_errand_take(loop->plan, host, (uint64_t)(uintptr_t)errand, now);
}

void wr_errands_tick(struct wr_crawl_loop *loop)
{
    int64_t now = wr_crawl_loop_now(loop);
    struct wr_list_link *last = loop->errands.last, *next = loop->errands.first;
    for (int wants = 0; next != NULL && wants < WANTS_MAX;) {
        struct wr_errand *errand = WR_LINKED(next, struct wr_errand, link);
        next = next != last ? next->next : NULL;
        take_back(loop, errand, now);
        if (errand->is_placed)
            continue;
        if (now >= errand->patient_until) {
            fail_errand(errand);
            continue;
        }
        wr_list_take(&errand->link); /* moved to the end, so that others have their turn */
        wr_list_push(&loop->errands, &errand->link);
        place_or_want(loop, errand);
        wants++;
    }
}

/* Returns how long an errand waits. Two processes may wait for each other's hosts, so one waits
 * less, and yields. */
static int64_t patience_ns(const struct wr_errand *errand)
{
    struct wr_span from = wr_plan_host_key(errand->host), to = target_key(errand);
    int order = memcmp(from.data, to.data, from.bytes < to.bytes ? from.bytes : to.bytes);
    bool is_first = order < 0 || (order == 0 && from.bytes < to.bytes);
    return (is_first ? 4 : 2) * errand->asker->engine->lease_ns;
}

static void read_errand(struct wr_crawl_loop *loop, struct wr_letter *letter)
{
    struct wr_errand *errand = (struct wr_errand *)(void *)letter;
    wr_list_push(&loop->errands, &errand->link);
    place_or_want(loop, errand);
}

/* Follows a redirect of robots.txt. */
static void go_on(struct wr_crawl_loop *loop, struct wr_plan_host *host, bool is_https, const struct came *came)
{
    if (came->stays) {
        put_hop(loop, host, is_https, wr_span_of(came->to.text));
        return;
    }
    struct wr_errand *errand = wr_take(loop->engine->allocator, sizeof *errand, _Alignof(struct wr_errand));
    struct wr_buf key;
    if (errand == NULL) {
        const struct wr_life_event failed = {.kind = WR_LIFE_FAILED, .retry_after_ns = -1, .max_age_ns = -1};
        (void)wr_plan_robots_came(loop->plan, host, is_https, &failed, NULL, false, wr_crawl_loop_now(loop));
        return;
    }
    errand->letter.read = read_errand;
    errand->letter.drop = free_errand;
    errand->asker = loop;
    errand->host = host;
    errand->is_https = is_https;
    wr_buf_init(&errand->body, loop->engine->allocator, WR_ROBOTS_MAX + 1);
    memcpy(errand->url, came->to.text, came->to.bytes);
    wr_buf_init_fixed(&key, errand->key, sizeof errand->key);
    wr_url_append_key(&key, &came->to);
    errand->key_bytes = key.length;
    errand->patient_until = wr_crawl_loop_now(loop) + patience_ns(errand);
    wr_letter_send(&loop->engine->loops[wr_engine_loop_of_url(loop->engine, &came->to)], &errand->letter);
}

/* Counts the request if it failed before it was written, and returns its outcome. */
static weir_outcome end_try(struct wr_flight *flight, int64_t now)
{
    if (!flight->was_sent)
        wr_flight_count(flight, now);
    return wr_flight_outcome(flight, wr_flight_is_answered(flight) ? flight->result.status : 0, now);
}

static void hand_over(struct wr_flight *flight, struct wr_errand *errand)
{
    struct wr_buf empty = errand->body;
    errand->body = flight->body;
    flight->body = empty;
    errand->held_bytes = flight->held_bytes;
    flight->held_bytes = 0;
}

void wr_errand_came(struct wr_flight *flight)
{
    struct wr_crawl_loop *loop = flight->loop;
    struct wr_errand *errand = (struct wr_errand *)(uintptr_t)flight->action.tag;
    int64_t now = wr_crawl_loop_now(loop);
    weir_outcome outcome = end_try(flight, now);
    read_answer(flight, flight->action.host, &errand->came);
    if (errand->came.rules != NULL)
        hand_over(flight, errand);
    uint32_t news =
        wr_plan_errand_told(loop->plan, flight->action.task, wr_flight_is_hosts(flight) ? &outcome : NULL, now);
    if ((news & WR_NEWS_RETRY_AFTER) != 0)
        wr_crawl_loop_note(loop, flight->action.host);
    wr_list_take(&errand->link);
    send_back(errand);
    wr_flight_give_back(flight);
}

/* Returns false if hosts have answered, but none lately: the network is down, and hosts wait. */
static bool is_network_there(struct wr_engine *engine, int64_t now)
{
    int64_t answered_at = atomic_load(&engine->answered_at);
    return answered_at == 0 || now - answered_at < NETWORK_NS;
}

/* Returns true if the host's pages would fail as well: it cannot be asked at all, or its robots.txt
 * has failed as often as a page is tried. */
static bool is_hopeless(const struct wr_flight *flight, int64_t now)
{
    struct wr_engine *engine = flight->loop->engine;
    enum wr_net_end end = flight->result.end;
    if (end == WR_NET_BLOCKED || end == WR_NET_NO_NAME || end == WR_NET_TLS)
        return true;
    return end != WR_NET_DONE && is_network_there(engine, now) &&
           wr_plan_robots_failures(flight->action.host, flight->action.is_https) >= engine->options.pace.retry.attempts;
}

void wr_robots_came(struct wr_flight *flight)
{
    struct wr_crawl_loop *loop = flight->loop;
    struct wr_plan_host *host = flight->action.host;
    bool is_https = flight->action.is_https;
    struct came came;
    int64_t now = wr_crawl_loop_now(loop);
    wr_wall_judge(flight);
    weir_outcome outcome = end_try(flight, now);
    read_answer(flight, host, &came);
    const struct wr_life_event event = came.event;
    struct wr_life_action action =
        wr_plan_robots_told(loop->plan, flight->action.task, wr_flight_is_hosts(flight) ? &outcome : NULL, &event,
                            came.rules, came.stays, now);
    store_copy(loop->engine, host, is_https, action.copy, &event,
               (struct wr_store_robots){.text = wr_buf_from(&flight->body, 0),
                                        .etag = validator_of(flight, WR_TEXT_ETAG),
                                        .modified = validator_of(flight, WR_TEXT_MODIFIED)});
    if (outcome.has_retry_after)
        wr_crawl_loop_note(loop, host);
    if (action.fetch == WR_FETCH_ON)
        go_on(loop, host, is_https, &came);
    else if (is_hopeless(flight, now) && !flight->action.is_hop)
        wr_plan_give_up(loop->plan, host, is_https, (uint8_t)flight->result.end, now);
    wr_flight_give_back(flight);
}
