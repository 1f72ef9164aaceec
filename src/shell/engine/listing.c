/* SPDX-License-Identifier: MIT */
/* listing.c - sitemaps of a crawl: tasks like pages, whose URLs are offered as they arrive.
 *
 * When the page of a seed has arrived, the robots.txt of its host is known. The sitemaps that it
 * names are stored with the page. A sitemap is its own parent, which marks it in the store. Its
 * URLs are judged and stored in batches while it is read, so the first pages are fetched before its
 * end. After a crash it is read again, and URLs that are known count once.
 *
 * A few KB may hold megabytes of entries. So data is buffered, and each turn of the loop reads some
 * of it. The buffers are small, because hundreds of servers may send as much as they can.
 */
#include "core/plan/look.h"
#include "core/rules/robots/robots.h"
#include "shell/engine/state.h"
#include "shell/loop/away.h"
#include "shell/loop/round.h"
#include "shell/net/idna.h"
#include "shell/sitemap/sitemap.h"

#define BATCH 1000
/* Bytes of a sitemap that are buffered; then the server waits. */
#define UNREAD_MAX ((size_t)64 << 10)
#define PAGE_DEPTH 1 /* a listed page counts as linked from the seed */
/* From the start of a date in UTC to its end in the last time zone. */
#define DAY_NS (36 * WEIR_HOUR)
#define DEPTH_MAX (1 + 3) /* a sitemap, and three levels of indexes above it */

/* ---- finding sitemaps ---- */

static bool is_at_home(const struct wr_flight *flight, const struct wr_url *url)
{
    char memory[2 * (WEIR_PACE_KEY_MAX + 1)];
    struct wr_buf keys;
    wr_buf_init_fixed(&keys, memory, sizeof memory);
    wr_url_append_key(&keys, url);
    size_t bytes = keys.length;
    wr_url_append_key(&keys, &flight->url);
    return keys.length == 2 * bytes && memcmp(memory, memory + bytes, bytes) == 0;
}

/* Returns true if a sitemap may be at the URL. Its host has to be in scope, but not its path, which
 * is not that of a page. */
bool wr_listing_may_be(const struct wr_flight *flight, const struct wr_url *url)
{
    const struct wr_engine_options *options = &flight->loop->engine->options;
    char text[WR_URL_ROOM], memory[WR_URL_ROOM];
    struct wr_buf buf;
    struct wr_url root;
    if (options->in_scope == NULL || is_at_home(flight, url))
        return true;
    wr_buf_init_fixed(&buf, text, sizeof text);
    wr_buf_append_span(&buf, wr_url_part(url, 0, url->path_at));
    wr_buf_append_char(&buf, '/');
    return wr_url_parse(wr_buf_from(&buf, 0), NULL, NULL, memory, sizeof memory, &root) == WR_URL_OK &&
           options->in_scope(options->scope_context, &root);
}

/* Parses a URL and makes it canonical. Returns false if it cannot be fetched. */
static bool read_url(const struct wr_flight *flight, struct wr_span text, char *memory, struct wr_url *ret_url)
{
    char given[WR_URL_ROOM];
    struct wr_url url;
    return wr_url_parse(text, &flight->url, wr_idna_libidn2(), given, sizeof given, &url) == WR_URL_OK &&
           wr_url_canonical(&url, memory, WR_URL_ROOM, ret_url) == WR_URL_OK;
}

static struct wr_found sitemap_at(const struct wr_flight *flight, const struct wr_url *url)
{
    uint64_t fingerprint = wr_engine_fingerprint(flight->loop->engine, wr_span_of(url->text));
    return (struct wr_found){.fingerprint = fingerprint,
                             .parent = fingerprint,
                             .depth = flight->action.depth + 1,
                             .is_seed = true,
                             .is_sitemap = true};
}

static void offer(struct wr_flight *flight, struct wr_span text)
{
    char memory[WR_URL_ROOM];
    struct wr_url url;
    if (!read_url(flight, text, memory, &url) || !wr_listing_may_be(flight, &url))
        return;
    const struct wr_found found = sitemap_at(flight, &url);
    (void)wr_founds_offer(flight->loop, &flight->founds, &url, &found);
}

/* Returns true if sitemaps of this origin were offered lately; many seeds may have one host. */
static bool was_offered(struct wr_flight *flight)
{
    struct wr_crawl_loop *loop = flight->loop;
    uint64_t origin = wr_engine_fingerprint(loop->engine, wr_url_part(&flight->url, 0, flight->url.path_at));
    uint64_t *slot = &loop->listed[origin % WR_LISTED];
    bool was = *slot == origin;
    *slot = origin;
    return was;
}

void wr_listing_offer(struct wr_flight *flight)
{
    struct wr_crawl_loop *loop = flight->loop;
    char memory[WEIR_PACE_KEY_MAX + 1];
    struct wr_buf key;
    if (!loop->engine->options.sitemaps || flight->action.depth > 0 || was_offered(flight))
        return;
    wr_buf_init_fixed(&key, memory, sizeof memory);
    wr_url_append_key(&key, &flight->url);
    const struct wr_plan_host *host = wr_plan_host_find(loop->plan, wr_buf_from(&key, 0));
    const struct wr_robots *rules = host != NULL ? wr_plan_host_rules(host, flight->url.is_https) : NULL;
    uint32_t count = rules != NULL ? wr_robots_facts(rules)->sitemaps : 0;
    for (uint32_t i = 0; i < count; i++)
        offer(flight, wr_robots_sitemap(rules, i));
    if (count == 0)
        offer(flight, wr_span_of("/sitemap.xml"));
}

/* ---- reading a sitemap ---- */

bool wr_listing_is(const struct wr_flight *flight)
{
    const struct wr_crawl_loop *loop = flight->loop;
    if (!loop->engine->options.sitemaps)
        return false;
    struct wr_span by = wr_referrer_get(loop, flight->action.fingerprint);
    return by.bytes == flight->url.bytes && memcmp(by.data, flight->url.text, by.bytes) == 0;
}

static bool has_budget(struct wr_engine *engine)
{
    (void)pthread_mutex_lock(&engine->lock);
    bool has = engine->ledger.left[WR_DRAW_PAGES] > 0;
    (void)pthread_mutex_unlock(&engine->lock);
    return has;
}

static void carry(struct wr_flight *flight)
{
    if (flight->listed.count > 0)
        wr_flight_carry(flight->loop, &flight->listed, false);
}

/* Returns when a page has changed; 0 if that is unknown, or not needed because the job does not
 * select pages that are due. For a date it is the end of the day: a visit on that day may have come
 * before the change. */
static int64_t changed_at(const struct wr_engine *engine, const struct wr_sitemap_entry *entry)
{
    int64_t now = weir_wall_now(), ms = entry->lastmod_ms;
    if (engine->earlier == 0 || !engine->options.only_due || ms <= 0)
        return 0;
    if (ms > now / WEIR_MILLISECOND)
        return now;
    int64_t at = ms * WEIR_MILLISECOND + (entry->is_day ? DAY_NS : 0);
    return at < now ? at : now;
}

static bool on_entry(void *context, const struct wr_sitemap_entry *entry)
{
    struct wr_flight *flight = context;
    struct wr_engine *engine = flight->loop->engine;
    char memory[WR_URL_ROOM];
    struct wr_url url;
    bool is_too_deep = entry->is_index && flight->action.depth >= DEPTH_MAX;
    flight->leads_too_deep |= is_too_deep;
    if (is_too_deep)
        WR_COUNT_UP(flight->loop, unread);
    if (is_too_deep || !read_url(flight, entry->url, memory, &url) ||
        (entry->is_index && !wr_listing_may_be(flight, &url)))
        return true;
    struct wr_found found = entry->is_index
                                ? sitemap_at(flight, &url)
                                : (struct wr_found){.fingerprint = wr_engine_fingerprint(engine, wr_span_of(url.text)),
                                                    .parent = flight->action.fingerprint,
                                                    .depth = PAGE_DEPTH,
                                                    .changed_wall_at = changed_at(engine, entry)};
    found.verdict = WR_OFFER_LATER;
    if (!wr_founds_add(&flight->listed, &url, &found)) {
        wr_job_over(engine, WR_END_BROKEN, weir_error_text(WEIR_E_NOMEM));
        return false;
    }
    if (flight->listed.count < BATCH)
        return true;
    carry(flight);
    return has_budget(engine);
}

void wr_listing_begin(struct wr_flight *flight)
{
    const weir_allocator *allocator = flight->loop->engine->allocator;
    const struct wr_sitemap_options options = {.found = on_entry, .context = flight, .allocator = allocator};
    if (!flight->is_sitemap)
        return;
    wr_buf_init(&flight->unread, allocator, (size_t)WR_NET_BODY_MAX);
    flight->read_bytes = 0;
    if (wr_sitemap_new(&options, &flight->sitemap) != 0)
        wr_job_over(flight->loop->engine, WR_END_BROKEN, weir_error_text(WEIR_E_NOMEM));
}

/* Continues the fetch in the next turns of the loop. */
static void go_on_later(struct wr_flight *flight)
{
    wr_list_push(&flight->loop->reading, &flight->reading);
    wr_listings_again(flight->loop);
}

bool wr_listing_feed(struct wr_flight *flight, const char *data, size_t bytes)
{
    struct wr_crawl_loop *loop = flight->loop;
    if (flight->sitemap == NULL || flight->is_enough)
        return !flight->is_enough;
    wr_buf_append(&flight->unread, data, bytes);
    if (flight->unread.error != 0) {
        wr_job_over(loop->engine, WR_END_BROKEN, weir_error_text(WEIR_E_NOMEM));
        return false;
    }
    if (flight->unread.length - flight->read_bytes >= UNREAD_MAX)
        wr_net_hold(flight->transfer);
    go_on_later(flight);
    return true;
}

static bool has_unread(const struct wr_flight *flight)
{
    return flight->sitemap != NULL && flight->unread.length > 0;
}

/* Reads at least one part of a sitemap, and more while there is time. */
static void read_some(struct wr_flight *flight)
{
    struct wr_share share = wr_share_begin(WR_SHARE_NS);
    do {
        struct wr_span rest = wr_buf_from(&flight->unread, flight->read_bytes);
        flight->read_bytes += wr_sitemap_push_some(flight->sitemap, rest.data, rest.bytes, 1);
        flight->is_enough = !wr_sitemap_goes_on(flight->sitemap);
    } while (!flight->is_enough && flight->read_bytes < flight->unread.length && wr_share_lasts(&share));
    if (flight->is_enough || flight->read_bytes == flight->unread.length) {
        wr_buf_clear(&flight->unread);
        flight->read_bytes = 0;
    }
}

bool wr_listing_waits(struct wr_flight *flight)
{
    flight->ends_when_read = wr_list_holds(&flight->reading) && wr_flight_is_answered(flight);
    return flight->ends_when_read;
}

/* Stops reading. A sitemap that was not read to its end stays queued in the store. */
static void stop_reading(struct wr_flight *flight)
{
    bool has_ended = flight->ends_when_read;
    wr_listing_drop(flight);
    flight->is_left = true;
    if (has_ended)
        wr_flight_give_back(flight);
}

/* Returns the next fetch to continue, or NULL. While the store has no room, listed URLs would fill
 * the memory. But a fetch with archive pieces continues, because others may wait for it. */
static struct wr_flight *next_to_read(const struct wr_crawl_loop *loop)
{
    bool reads_all = !loop->is_stalled || atomic_load(&loop->engine->phase) >= WR_PHASE_STOPS;
    for (struct wr_list_link *link = loop->reading.first; link != NULL; link = link->next) {
        struct wr_flight *flight = WR_LINKED(link, struct wr_flight, reading);
        if (reads_all || flight->keep.pieces != NULL)
            return flight;
    }
    return NULL;
}

/* Reads more of a sitemap. At its end, offers links that are left, or ends the fetch. */
static void go_on(struct wr_flight *flight)
{
    WR_DOING("a sitemap");
    if (has_unread(flight))
        read_some(flight);
    if (has_unread(flight))
        go_on_later(flight); /* other sitemaps have their turn first */
    else if (flight->has_links)
        wr_answer_go_on(flight);
    else if (flight->ends_when_read)
        wr_answer_end(flight);
    else if (flight->transfer != NULL)
        wr_net_go_on(flight->transfer);
}

void wr_listing_wait(struct wr_flight *flight)
{
    flight->ends_when_read = true;
    go_on_later(flight);
}

static void read_in_turn(uv_idle_t *idle)
{
    struct wr_crawl_loop *loop = idle->data;
    struct wr_share share = wr_share_begin(WR_SHARE_NS);
    struct wr_flight *flight;
    while ((flight = next_to_read(loop)) != NULL && wr_share_lasts(&share)) {
        wr_list_take(&flight->reading);
        if (atomic_load(&loop->engine->phase) >= WR_PHASE_STOPS)
            stop_reading(flight);
        else
            go_on(flight);
    }
    if (flight == NULL)
        (void)uv_idle_stop(idle);
    wr_crawl_loop_due(loop);
}

void wr_listings_again(struct wr_crawl_loop *loop)
{
    if (next_to_read(loop) != NULL)
        (void)uv_idle_start(&loop->reads, read_in_turn);
}

void wr_listing_end(struct wr_flight *flight)
{
    if (flight->sitemap == NULL)
        return;
    enum wr_sitemap_end end = wr_sitemap_finish(flight->sitemap);
    carry(flight);
    if (end != WR_SITEMAP_WHOLE && end != WR_SITEMAP_ENOUGH)
        wr_buf_append_string(&flight->words, wr_sitemap_end_text(end));
    else if (flight->leads_too_deep)
        wr_buf_append_string(&flight->words, "it lists sitemaps that are nested too deep; they were not read");
    wr_listing_drop(flight);
}

void wr_listing_drop(struct wr_flight *flight)
{
    if (flight->sitemap != NULL)
        wr_buf_release(&flight->unread);
    wr_list_take(&flight->reading);
    wr_sitemap_free(flight->sitemap);
    flight->sitemap = NULL;
    wr_founds_clear(&flight->listed);
}
