/* SPDX-License-Identifier: MIT */
/* sitemaps.c - sitemaps of a crawl: tasks like pages, whose URLs are offered as they arrive.
 *
 * When the page of a seed has arrived, the robots.txt of its host is known. The sitemaps that it
 * names are stored with the page. A sitemap is its own parent, which marks it in the store. Its
 * URLs are judged and stored in batches while it is read, so the first pages are fetched before its
 * end. After a crash it is read again, and URLs that are known count once.
 *
 * A few KB may hold megabytes of entries. So data is buffered, and each turn of the loop reads some
 * of it. The buffers are small, because hundreds of servers may send as much as they can.
 */
#include "core/plan/inspect.h"
#include "core/web/robots/robots.h"
#include "crawl/engine/engine_state.h"
#include "http/loop/round.h"
#include "http/loop/watchdog.h"
#include "http/net/idna.h"
#include "http/sitemap/sitemap.h"

#define BATCH 1000
/* Bytes of a sitemap that are buffered; then the server waits. */
#define UNREAD_MAX ((size_t)64 << 10)
#define PAGE_DEPTH 1 /* a listed page counts as linked from the seed */
/* From the start of a date in UTC to its end in the last time zone. */
#define DAY_NS (36 * WEIR_HOUR)
#define DEPTH_MAX (1 + 3) /* a sitemap, and three levels of indexes above it */

/* ---- finding sitemaps ---- */

static bool is_host_of_fetch(const struct wr_crawl_fetch *fetch, const struct wr_url *url)
{
    char memory[2 * (WEIR_PACE_KEY_MAX + 1)];
    struct wr_buf keys;
    wr_buf_init_fixed(&keys, memory, sizeof memory);
    wr_url_append_key(&keys, url);
    size_t bytes = keys.length;
    wr_url_append_key(&keys, &fetch->url);
    return keys.length == 2 * bytes && memcmp(memory, memory + bytes, bytes) == 0;
}

/* Returns true if a sitemap may be at the URL. Its host has to be in scope, but not its path, which
 * is not that of a page. */
bool wr_crawl_sitemap_is_in_scope(const struct wr_crawl_fetch *fetch, const struct wr_url *url)
{
    const struct wr_engine_options *options = &fetch->loop->engine->options;
    char text[WR_URL_ROOM], memory[WR_URL_ROOM];
    struct wr_buf buf;
    struct wr_url root;
    if (options->in_scope == NULL || is_host_of_fetch(fetch, url))
        return true;
    wr_buf_init_fixed(&buf, text, sizeof text);
    wr_buf_append_span(&buf, wr_url_part(url, 0, url->path_at));
    wr_buf_append_char(&buf, '/');
    return wr_url_parse(wr_buf_from(&buf, 0), NULL, NULL, memory, sizeof memory, &root) == WR_URL_OK &&
           options->in_scope(options->scope_context, &root);
}

/* Parses a URL and makes it canonical. Returns false if it cannot be fetched. */
static bool read_sitemap_url(const struct wr_crawl_fetch *fetch, struct wr_span text, char *memory,
                             struct wr_url *ret_url)
{
    char given[WR_URL_ROOM];
    struct wr_url url;
    return wr_url_parse(text, &fetch->url, wr_idna_libidn2(), given, sizeof given, &url) == WR_URL_OK &&
           wr_url_canonical(&url, memory, WR_URL_ROOM, ret_url) == WR_URL_OK;
}

static struct wr_url_batch_entry make_sitemap_entry(const struct wr_crawl_fetch *fetch, const struct wr_url *url)
{
    uint64_t fingerprint = wr_engine_fingerprint(fetch->loop->engine, wr_span_of(url->text));
    return (struct wr_url_batch_entry){.fingerprint = fingerprint,
                                       .parent = fingerprint,
                                       .depth = fetch->action.depth + 1,
                                       .is_seed = true,
                                       .is_sitemap = true};
}

static void offer_sitemap(struct wr_crawl_fetch *fetch, struct wr_span text)
{
    char memory[WR_URL_ROOM];
    struct wr_url url;
    if (!read_sitemap_url(fetch, text, memory, &url) || !wr_crawl_sitemap_is_in_scope(fetch, &url))
        return;
    const struct wr_url_batch_entry found = make_sitemap_entry(fetch, &url);
    (void)wr_url_batch_judge_link(fetch->loop, &fetch->urls, &url, &found);
}

/* Returns true if sitemaps of this origin were offered lately; many seeds may have one host. */
static bool were_sitemaps_offered(struct wr_crawl_fetch *fetch)
{
    struct wr_crawl_loop *loop = fetch->loop;
    uint64_t origin = wr_engine_fingerprint(loop->engine, wr_url_part(&fetch->url, 0, fetch->url.path_at));
    uint64_t *slot = &loop->listed[origin % WR_SITEMAP_ORIGIN_SLOTS];
    bool was = *slot == origin;
    *slot = origin;
    return was;
}

void wr_crawl_sitemaps_offer(struct wr_crawl_fetch *fetch)
{
    struct wr_crawl_loop *loop = fetch->loop;
    char memory[WEIR_PACE_KEY_MAX + 1];
    struct wr_buf key;
    if (!loop->engine->options.sitemaps || fetch->action.depth > 0 || were_sitemaps_offered(fetch))
        return;
    wr_buf_init_fixed(&key, memory, sizeof memory);
    wr_url_append_key(&key, &fetch->url);
    const struct wr_plan_host *host = wr_plan_host_find(loop->plan, wr_buf_from(&key, 0));
    const struct wr_robots *rules = host != NULL ? wr_plan_host_rules(host, fetch->url.is_https) : NULL;
    uint32_t count = rules != NULL ? wr_robots_facts(rules)->sitemaps : 0;
    for (uint32_t i = 0; i < count; i++)
        offer_sitemap(fetch, wr_robots_sitemap(rules, i));
    if (count == 0)
        offer_sitemap(fetch, wr_span_of("/sitemap.xml"));
}

/* ---- reading a sitemap ---- */

bool wr_crawl_sitemap_is_task(const struct wr_crawl_fetch *fetch)
{
    const struct wr_crawl_loop *loop = fetch->loop;
    if (!loop->engine->options.sitemaps)
        return false;
    struct wr_span by = wr_referrer_get(loop, fetch->action.fingerprint);
    return by.bytes == fetch->url.bytes && memcmp(by.data, fetch->url.text, by.bytes) == 0;
}

static bool has_pages_left(struct wr_engine *engine)
{
    (void)pthread_mutex_lock(&engine->lock);
    bool has = engine->ledger.left[WR_BUDGET_PAGES] > 0;
    (void)pthread_mutex_unlock(&engine->lock);
    return has;
}

static void post_listed_urls(struct wr_crawl_fetch *fetch)
{
    if (fetch->listed.count > 0)
        wr_crawl_fetch_post_urls(fetch->loop, &fetch->listed, false);
}

/* Returns when a page has changed; 0 if that is unknown, or not needed because the job does not
 * select pages that are due. For a date it is the end of the day: a visit on that day may have come
 * before the change. */
static int64_t page_change_time(const struct wr_engine *engine, const struct wr_sitemap_entry *entry)
{
    int64_t now = weir_wall_now(), ms = entry->lastmod_ms;
    if (engine->earlier == 0 || !engine->options.only_due || ms <= 0)
        return 0;
    if (ms > now / WEIR_MILLISECOND)
        return now;
    int64_t at = ms * WEIR_MILLISECOND + (entry->is_day ? DAY_NS : 0);
    return at < now ? at : now;
}

static bool on_crawl_sitemap_entry(void *context, const struct wr_sitemap_entry *entry)
{
    struct wr_crawl_fetch *fetch = context;
    struct wr_engine *engine = fetch->loop->engine;
    char memory[WR_URL_ROOM];
    struct wr_url url;
    bool is_too_deep = entry->is_index && fetch->action.depth >= DEPTH_MAX;
    fetch->leads_too_deep |= is_too_deep;
    if (is_too_deep)
        WR_COUNT_UP(fetch->loop, unread);
    if (is_too_deep || !read_sitemap_url(fetch, entry->url, memory, &url) ||
        (entry->is_index && !wr_crawl_sitemap_is_in_scope(fetch, &url)))
        return true;
    struct wr_url_batch_entry found =
        entry->is_index
            ? make_sitemap_entry(fetch, &url)
            : (struct wr_url_batch_entry){.fingerprint = wr_engine_fingerprint(engine, wr_span_of(url.text)),
                                          .parent = fetch->action.fingerprint,
                                          .depth = PAGE_DEPTH,
                                          .changed_wall_at = page_change_time(engine, entry)};
    found.verdict = WR_ADD_URL_LATER;
    if (!wr_url_batch_add(&fetch->listed, &url, &found)) {
        wr_job_end(engine, WR_END_BROKEN, weir_error_text(WEIR_E_NOMEM));
        return false;
    }
    if (fetch->listed.count < BATCH)
        return true;
    post_listed_urls(fetch);
    return has_pages_left(engine);
}

void wr_crawl_sitemap_begin(struct wr_crawl_fetch *fetch)
{
    const weir_allocator *allocator = fetch->loop->engine->allocator;
    const struct wr_sitemap_options options = {
        .found = on_crawl_sitemap_entry, .context = fetch, .allocator = allocator};
    if (!fetch->is_sitemap)
        return;
    wr_buf_init(&fetch->unread, allocator, (size_t)WR_NET_BODY_MAX);
    fetch->read_bytes = 0;
    if (wr_sitemap_new(&options, &fetch->sitemap) != 0)
        wr_job_end(fetch->loop->engine, WR_END_BROKEN, weir_error_text(WEIR_E_NOMEM));
}

/* Continues the fetch in the next turns of the loop. */
static void schedule_sitemap(struct wr_crawl_fetch *fetch)
{
    wr_list_push(&fetch->loop->reading, &fetch->reading);
    wr_crawl_sitemaps_resume(fetch->loop);
}

bool wr_crawl_sitemap_feed(struct wr_crawl_fetch *fetch, const char *data, size_t bytes)
{
    struct wr_crawl_loop *loop = fetch->loop;
    if (fetch->sitemap == NULL || fetch->is_enough)
        return !fetch->is_enough;
    wr_buf_append(&fetch->unread, data, bytes);
    if (fetch->unread.error != 0) {
        wr_job_end(loop->engine, WR_END_BROKEN, weir_error_text(WEIR_E_NOMEM));
        return false;
    }
    if (fetch->unread.length - fetch->read_bytes >= UNREAD_MAX)
        wr_net_pause_body(fetch->transfer);
    schedule_sitemap(fetch);
    return true;
}

static bool has_unread_bytes(const struct wr_crawl_fetch *fetch)
{
    return fetch->sitemap != NULL && fetch->unread.length > 0;
}

/* Reads at least one part of a sitemap, and more while there is time. */
static void read_sitemap_step(struct wr_crawl_fetch *fetch)
{
    struct wr_time_slice share = wr_time_slice_begin(WR_TIME_SLICE_NS);
    do {
        struct wr_span rest = wr_buf_from(&fetch->unread, fetch->read_bytes);
        fetch->read_bytes += wr_sitemap_push_limited(fetch->sitemap, rest.data, rest.bytes, 1);
        fetch->is_enough = !wr_sitemap_wants_more(fetch->sitemap);
    } while (!fetch->is_enough && fetch->read_bytes < fetch->unread.length && wr_time_slice_lasts(&share));
    if (fetch->is_enough || fetch->read_bytes == fetch->unread.length) {
        wr_buf_clear(&fetch->unread);
        fetch->read_bytes = 0;
    }
}

bool wr_crawl_sitemap_defers_end(struct wr_crawl_fetch *fetch)
{
    fetch->ends_when_read = wr_list_is_linked(&fetch->reading) && wr_crawl_fetch_is_answered(fetch);
    return fetch->ends_when_read;
}

/* Stops reading. A sitemap that was not read to its end stays queued in the store. */
static void stop_sitemap(struct wr_crawl_fetch *fetch)
{
    bool has_ended = fetch->ends_when_read;
    wr_crawl_sitemap_drop(fetch);
    fetch->is_left = true;
    if (has_ended)
        wr_crawl_fetch_recycle(fetch);
}

/* Returns the next fetch to continue, or NULL. While the store has no room, listed URLs would fill
 * the memory. But a fetch with archive pieces continues, because others may wait for it. */
static struct wr_crawl_fetch *next_sitemap_to_read(const struct wr_crawl_loop *loop)
{
    bool reads_all = !loop->is_stalled || atomic_load(&loop->engine->phase) >= WR_PHASE_STOPS;
    for (struct wr_list_link *link = loop->reading.first; link != NULL; link = link->next) {
        struct wr_crawl_fetch *fetch = WR_LINKED(link, struct wr_crawl_fetch, reading);
        if (reads_all || fetch->capture.pieces != NULL)
            return fetch;
    }
    return NULL;
}

/* Reads more of a sitemap. At its end, offers links that are left, or ends the fetch. */
static void continue_sitemap(struct wr_crawl_fetch *fetch)
{
    WR_DOING("a sitemap");
    if (has_unread_bytes(fetch))
        read_sitemap_step(fetch);
    if (has_unread_bytes(fetch))
        schedule_sitemap(fetch); /* other sitemaps have their turn first */
    else if (fetch->has_links)
        wr_crawl_page_offer_links(fetch);
    else if (fetch->ends_when_read)
        wr_crawl_page_end(fetch);
    else if (fetch->transfer != NULL)
        wr_net_resume_body(fetch->transfer);
}

void wr_crawl_sitemap_defer_links(struct wr_crawl_fetch *fetch)
{
    fetch->ends_when_read = true;
    schedule_sitemap(fetch);
}

static void read_sitemaps_on_idle(uv_idle_t *idle)
{
    struct wr_crawl_loop *loop = idle->data;
    struct wr_time_slice share = wr_time_slice_begin(WR_TIME_SLICE_NS);
    struct wr_crawl_fetch *fetch;
    while ((fetch = next_sitemap_to_read(loop)) != NULL && wr_time_slice_lasts(&share)) {
        wr_list_remove(&fetch->reading);
        if (atomic_load(&loop->engine->phase) >= WR_PHASE_STOPS)
            stop_sitemap(fetch);
        else
            continue_sitemap(fetch);
    }
    if (fetch == NULL)
        (void)uv_idle_stop(idle);
    wr_crawl_loop_run_due(loop);
}

void wr_crawl_sitemaps_resume(struct wr_crawl_loop *loop)
{
    if (next_sitemap_to_read(loop) != NULL)
        (void)uv_idle_start(&loop->reads, read_sitemaps_on_idle);
}

void wr_crawl_sitemap_end(struct wr_crawl_fetch *fetch)
{
    if (fetch->sitemap == NULL)
        return;
    enum wr_sitemap_end end = wr_sitemap_finish(fetch->sitemap);
    post_listed_urls(fetch);
    if (end != WR_SITEMAP_COMPLETE && end != WR_SITEMAP_STOPPED)
        wr_buf_append_string(&fetch->words, wr_sitemap_end_text(end));
    else if (fetch->leads_too_deep)
        wr_buf_append_string(&fetch->words, "it lists sitemaps that are nested too deep; they were not read");
    wr_crawl_sitemap_drop(fetch);
}

void wr_crawl_sitemap_drop(struct wr_crawl_fetch *fetch)
{
    if (fetch->sitemap != NULL)
        wr_buf_release(&fetch->unread);
    wr_list_remove(&fetch->reading);
    wr_sitemap_free(fetch->sitemap);
    fetch->sitemap = NULL;
    wr_url_batch_clear(&fetch->listed);
}
