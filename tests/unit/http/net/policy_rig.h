/* SPDX-License-Identifier: MIT */
/* policy_rig.h - a fixture for tests of the registry of robots.txt policies: fake clocks, a pacer,
 * a scripted fetcher. */
#ifndef WEIR_TEST_POLICY_RIG_H
#define WEIR_TEST_POLICY_RIG_H

#include "lib/alloc.h"
#include "lib/test.h"
#include "unit/limiter/pacer/rig.h"

#include "http/net/idna.h"
#include "http/net/policy/policy.h"

#define S WEIR_SECOND
#define H WEIR_HOUR
#define COUNT(rows) (sizeof rows / sizeof rows[0])
#define PENDING_MAX 64
#define LOG_MAX 256

/* A response that the fetcher gives at once to any request for this URL ("*": any URL). */
struct page {
    const char *url;
    int status;
    const char *body, *location, *etag, *modified, *cache_control;
    int64_t retry_after_ns; /* 0: no Retry-After */
};

struct site {
    struct pacing pacing;
    test_allocator memory;
    struct wr_policies_options options;
    struct wr_policies *policies;
    const struct page *pages; /* NULL: fetches stay pending */
    size_t page_count;
    pthread_mutex_t lock;
    struct wr_robots_fetch *pending[PENDING_MAX];
    atomic_int sent;        /* number of fetches that were started */
    char log[LOG_MAX][128]; /* URLs that were fetched; "?etag,modified" follows if conditional */
    bool bare;              /* for many hosts: neither log nor pending list */
};

static inline struct wr_span span_or_none(const char *text)
{
    return wr_span_of(text);
}

static inline void end_with(struct wr_robots_fetch *fetch, const struct page *page)
{
    struct wr_robots_fetched fetched = {.status = page->status,
                                        .body = span_or_none(page->body),
                                        .location = span_or_none(page->location),
                                        .etag = span_or_none(page->etag),
                                        .modified = span_or_none(page->modified),
                                        .cache_control = span_or_none(page->cache_control),
                                        .retry_after_ns = page->retry_after_ns > 0 ? page->retry_after_ns : -1};
    wr_robots_fetch_end(fetch, &fetched);
}

static inline const struct page *page_of(const struct site *site, const char *url)
{
    for (size_t i = 0; i < site->page_count; i++)
        if (strcmp(site->pages[i].url, "*") == 0 || strcmp(site->pages[i].url, url) == 0)
            return &site->pages[i];
    return NULL;
}

static inline void site_fetch(void *context, struct wr_robots_fetch *fetch)
{
    struct site *site = context;
    (void)pthread_mutex_lock(&site->lock);
    int n = atomic_fetch_add(&site->sent, 1);
    if (!site->bare) {
        assert_true(n < LOG_MAX);
        int bytes = snprintf(site->log[n], sizeof site->log[n], "%s", fetch->url.text);
        if (fetch->etag.bytes + fetch->modified.bytes > 0)
            (void)snprintf(site->log[n] + bytes, sizeof site->log[n] - (size_t)bytes, "?%.*s,%.*s",
                           (int)fetch->etag.bytes, fetch->etag.data, (int)fetch->modified.bytes, fetch->modified.data);
    }
    const struct page *page = page_of(site, fetch->url.text);
    for (size_t i = 0; page == NULL && i < PENDING_MAX; i++)
        if (site->pending[i] == NULL) {
            site->pending[i] = fetch;
            break;
        }
    (void)pthread_mutex_unlock(&site->lock);
    if (page != NULL)
        end_with(fetch, page);
}

/* Ends the pending fetch of the page's URL with this response. */
static inline void site_answer(struct site *site, const struct page *page)
{
    struct wr_robots_fetch *fetch = NULL;
    (void)pthread_mutex_lock(&site->lock);
    for (size_t i = 0; i < PENDING_MAX && fetch == NULL; i++)
        if (site->pending[i] != NULL && strcmp(site->pending[i]->url.text, page->url) == 0) {
            fetch = site->pending[i];
            site->pending[i] = NULL;
        }
    (void)pthread_mutex_unlock(&site->lock);
    if (fetch == NULL)
        fail_msg("no pending fetch of %s", page->url);
    else
        end_with(fetch, page);
}

static inline void site_answer_with(struct site *site, const char *url, int status, const char *body)
{
    site_answer(site, &(struct page){.url = url, .status = status, .body = body});
}

static inline void site_init(struct site *site, weir_profile profile)
{
    memset(site, 0, sizeof *site);
    pacing_init(&site->pacing, profile);
    test_allocator_init(&site->memory);
    assert_int_equal(pthread_mutex_init(&site->lock, NULL), 0);
    site->options = (struct wr_policies_options){.fetch = site_fetch,
                                                 .fetch_context = site,
                                                 .seed = 1,
                                                 .clock = site->pacing.clock,
                                                 .wall = site->pacing.wall,
                                                 .allocator = &site->memory.allocator};
}

static inline void site_start(struct site *site)
{
    pacing_start(&site->pacing);
    site->options.pacer = site->pacing.pacer;
    assert_int_equal(wr_policies_new(&site->options, &site->policies), 0);
}

static inline void site_set_up(struct site *site)
{
    site_init(site, WEIR_PROFILE_UNLIMITED);
    site_start(site);
}

static inline void site_serve(struct site *site, const struct page *pages, size_t count)
{
    site->pages = pages;
    site->page_count = count;
}

#define site_serve_all(site, pages) site_serve(site, pages, COUNT(pages))

/* Frees the site. All fetches must have ended. */
static inline void site_tear_down(struct site *site)
{
    wr_policies_free(site->policies);
    pacing_tear_down(&site->pacing);
    assert_int_equal(atomic_load(&site->memory.live), 0);
    (void)pthread_mutex_destroy(&site->lock);
}

/* ---- requests for rulings ---- */

struct target {
    char memory[WR_URL_ROOM];
    struct wr_url url;
};

static inline const struct wr_url *url_of(struct target *target, const char *text)
{
    assert_int_equal(
        wr_url_parse(wr_span_of(text), NULL, wr_idna_libidn2(), target->memory, sizeof target->memory, &target->url),
        WR_URL_OK);
    return &target->url;
}

static inline struct wr_robots_decision ask(struct site *site, const char *url)
{
    struct target target;
    struct wr_robots_decision ruling;
    assert_int_equal(wr_policies_ask(site->policies, url_of(&target, url), &ruling), 0);
    return ruling;
}

/* Formats a ruling as "go", "deny" or "wait", then "@line" of the rule that decided, then "+ms" for
 * a wait of known length. */
static inline const char *said(struct wr_robots_decision ruling)
{
    static _Thread_local char text[40];
    static const char *const words[] = {"go", "wait", "deny"};
    size_t bytes = (size_t)snprintf(text, sizeof text, "%s", words[ruling.decision.verdict]);
    if (ruling.line > 0)
        bytes += (size_t)snprintf(text + bytes, sizeof text - bytes, "@%u", ruling.line);
    if (ruling.decision.verdict == WEIR_WAIT && ruling.decision.wait_ns != WEIR_UNTIL_RELEASE)
        (void)snprintf(text + bytes, sizeof text - bytes, "+%lld", (long long)(ruling.decision.wait_ns / MS));
    assert_int_equal(ruling.decision.reason,
                     ruling.decision.verdict == WEIR_GO ? WEIR_REASON_NONE : WEIR_REASON_ROBOTS);
    return text;
}

#define assert_said(site, url, words) assert_string_equal(said(ask(site, url)), words)

static inline struct wr_policy_info look(struct site *site, const char *url)
{
    struct target target;
    struct wr_policy_info seen;
    assert_int_equal(wr_policies_inspect(site->policies, url_of(&target, url), &seen), 0);
    return seen;
}

static inline bool knows(struct site *site, const char *url)
{
    struct target target;
    struct wr_policy_info seen;
    return wr_policies_inspect(site->policies, url_of(&target, url), &seen) == 0;
}

static inline struct wr_policies_stats stats(struct site *site)
{
    return wr_policies_stats(site->policies);
}

#endif
