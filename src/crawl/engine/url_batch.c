/* SPDX-License-Identifier: MIT */
/* url_batch.c - judges the URLs that pages lead to, by the plan of the loop that has the host.
 *
 * For a host of this loop, the plan says at once whether a URL is new. A URL of another loop is
 * stored with the page, and offered to that loop when the store has said that it is new. A URL that
 * was sent there lately is not sent a second time.
 */
#include "base/alloc.h"
#include "crawl/engine/engine_state.h"

#define TEXT_MAX ((size_t)64 << 20)

void wr_url_batch_init(struct wr_url_batch *ret_founds, const weir_allocator *allocator)
{
    *ret_founds = (struct wr_url_batch){.list = NULL};
    wr_buf_init(&ret_founds->text, allocator, TEXT_MAX);
}

void wr_url_batch_clear(struct wr_url_batch *urls)
{
    urls->count = 0;
    wr_buf_clear(&urls->text);
}

void wr_url_batch_release(struct wr_url_batch *urls)
{
    wr_free(urls->text.allocator, urls->list, urls->room * sizeof *urls->list, _Alignof(struct wr_url_batch_entry));
    urls->list = NULL;
    urls->count = urls->room = 0;
    wr_buf_release(&urls->text);
}

static struct wr_url_batch_entry *add_batch_entry(struct wr_url_batch *urls)
{
    const weir_allocator *allocator = urls->text.allocator;
    if (urls->count == urls->room) {
        size_t room = urls->room == 0 ? 64 : 2 * urls->room;
        struct wr_url_batch_entry *list =
            wr_alloc_array(allocator, room, sizeof *list, _Alignof(struct wr_url_batch_entry));
        if (list == NULL)
            return NULL;
        if (urls->count > 0)
            memcpy(list, urls->list, urls->count * sizeof *list);
        wr_free(allocator, urls->list, urls->room * sizeof *list, _Alignof(struct wr_url_batch_entry));
        urls->list = list;
        urls->room = room;
    }
    return &urls->list[urls->count++];
}

bool wr_url_batch_add(struct wr_url_batch *urls, const struct wr_url *url, const struct wr_url_batch_entry *like)
{
    struct wr_buf *text = &urls->text;
    uint32_t url_at = (uint32_t)text->length;
    wr_buf_append(text, url->text, url->bytes);
    uint32_t key_at = (uint32_t)text->length;
    wr_url_append_key(text, url);
    struct wr_url_batch_entry *found = text->error == 0 ? add_batch_entry(urls) : NULL;
    if (found == NULL)
        return false;
    *found = *like;
    found->url_at = url_at;
    found->url_bytes = url->bytes;
    found->key_at = key_at;
    found->key_bytes = (uint32_t)(text->length - key_at);
    return true;
}

bool wr_url_batch_add_copy(struct wr_url_batch *urls, const struct wr_url_batch *from,
                           const struct wr_url_batch_entry *found, const struct wr_url_batch_entry *copy)
{
    struct wr_buf *text = &urls->text;
    uint32_t url_at = (uint32_t)text->length;
    wr_buf_append_span(text, wr_url_batch_url(from, found));
    uint32_t key_at = (uint32_t)text->length;
    wr_buf_append_span(text, wr_url_batch_key(from, found));
    struct wr_url_batch_entry *place = text->error == 0 ? add_batch_entry(urls) : NULL;
    if (place == NULL)
        return false;
    *place = *copy;
    place->url_at = url_at;
    place->key_at = key_at;
    return true;
}

static bool was_sent_or_known(const struct wr_crawl_loop *loop, uint64_t fingerprint)
{
    return wr_plan_knows_url(loop->plan, (uint32_t)loop->engine->job, fingerprint) ||
           loop->elsewhere[fingerprint & (WR_SENT_URL_SLOTS - 1)] == fingerprint;
}

static bool is_host_of_loop(const struct wr_crawl_loop *loop, const struct wr_url *url)
{
    return wr_engine_loop_of_url(loop->engine, url) == loop->index;
}

/* Returns true if this loop has the host and, if processes share hosts, its lease. Otherwise the
 * process that claims the host finds the URL in the store. */
static bool is_host_held_here(const struct wr_crawl_loop *loop, const struct wr_url *url)
{
    return is_host_of_loop(loop, url) && (!loop->engine->is_shared || wr_host_lease_is_held(loop, url));
}

/* Returns true if the store is to say whether the URL is new: another loop gets it, or the store
 * counts pages. */
static bool is_store_asked(const struct wr_crawl_loop *loop, const struct wr_url *url)
{
    const struct wr_engine *engine = loop->engine;
    return !is_host_of_loop(loop, url) ||
           (engine->is_shared && (engine->options.max_pages > 0 || engine->options.host_pages > 0));
}

/* Offers a URL to the plan, and draws the budget for one page if needed. An accepted URL must be
 * posted before the plan's next step, or a load would miss it: nothing may wait here. */
static enum wr_add_url_verdict offer_to_plan(struct wr_crawl_loop *loop, const struct wr_url_to_add *offer)
{
    enum wr_add_url_verdict verdict = wr_plan_add_url(loop->plan, offer, wr_crawl_loop_now(loop));
    if (verdict != WR_ADD_URL_LATER)
        return verdict;
    (void)wr_job_take_budget(loop, WR_BUDGET_PAGES, 1);
    return wr_plan_add_url(loop->plan, offer, wr_crawl_loop_now(loop));
}

/* Counts a URL in scope that only a limit has excluded. */
static void count_left_out(struct wr_crawl_loop *loop, const struct wr_url *url, const struct wr_url_batch_entry *found,
                           enum wr_add_url_verdict verdict)
{
    const struct wr_engine_options *options = &loop->engine->options;
    if (verdict == WR_ADD_URL_TRAP && found->is_sitemap)
        WR_COUNT_UP(loop, unread);
    else if (verdict == WR_ADD_URL_BUDGET)
        WR_COUNT_UP(loop, beyond);
    else if (verdict == WR_ADD_URL_DEPTH &&
             (options->in_scope == NULL || options->in_scope(options->scope_context, url)))
        WR_COUNT_UP(loop, deeper);
}

/* Judges a URL. One that another loop has stored is this loop's to judge: nothing else is asked. */
static enum wr_add_url_verdict judge_url(struct wr_crawl_loop *loop, const struct wr_url *url,
                                         struct wr_url_batch_entry *found)
{
    struct wr_url_to_add offer = {.job = (uint32_t)loop->engine->job,
                                  .fingerprint = found->fingerprint,
                                  .url = url,
                                  .depth = found->depth,
                                  .hops = found->hops,
                                  .is_seed = found->is_seed,
                                  .is_sitemap = found->is_sitemap,
                                  .is_new = found->is_stored,
                                  .is_stored = found->is_stored};
    if (!found->is_stored && was_sent_or_known(loop, found->fingerprint)) { /* true of most links */
        found->verdict = WR_ADD_URL_KNOWN;
        return WR_ADD_URL_KNOWN;
    }
    bool ours = (found->is_stored && !loop->engine->is_shared) || is_host_held_here(loop, url);
    if (found->is_stored && !ours) { /* this loop had the host when the URL was posted */
        found->verdict = WR_ADD_URL_KNOWN;
        return WR_ADD_URL_KNOWN;
    }
    enum wr_add_url_verdict verdict = ours ? offer_to_plan(loop, &offer) : wr_plan_check_url(loop->plan, &offer);
    if (atomic_load(&loop->engine->has_max_pages) && !found->is_stored &&
        (verdict == WR_ADD_URL_NEW || verdict == WR_ADD_URL_ASK_STORE))
        verdict = WR_ADD_URL_BUDGET; /* the store would refuse the page */
    found->asks = verdict == WR_ADD_URL_ASK_STORE || (verdict != WR_ADD_URL_KNOWN && is_store_asked(loop, url));
    /* Counts new URLs, and stored ones that were loaded before this offer. */
    if (ours && (verdict == WR_ADD_URL_NEW || (verdict == WR_ADD_URL_KNOWN && found->is_stored)))
        WR_COUNT_UP(loop, accepted);
    if (verdict == WR_ADD_URL_NEW && ours) {
        atomic_store(&loop->is_drained, false);
        if (wr_plan_known_is_crowded(loop->plan))
            (void)wr_plan_known_grow(loop->plan); /* without memory the plan says ASK_STORE */
    }
    if (verdict == WR_ADD_URL_NEW && !ours)
        loop->elsewhere[found->fingerprint & (WR_SENT_URL_SLOTS - 1)] = found->fingerprint;
    count_left_out(loop, url, found, verdict);
    found->verdict = verdict;
    return verdict;
}

/* Returns true if something is to be posted for the URL. */
static bool is_to_be_posted(const struct wr_url_batch_entry *found)
{
    switch (found->verdict) {
    case WR_ADD_URL_NEW:
    case WR_ADD_URL_ASK_STORE:
        return !found->is_stored;
    case WR_ADD_URL_KNOWN:
        /* A known URL: only the time of its change is posted. */
        return !found->is_stored && found->changed_wall_at > 0;
    case WR_ADD_URL_OVER:
        return false;
    default:
        return found->is_stored; /* refused, so the stored task has to end */
    }
}

enum wr_add_url_verdict wr_url_batch_judge_link(struct wr_crawl_loop *loop, struct wr_url_batch *urls,
                                                const struct wr_url *url, const struct wr_url_batch_entry *link)
{
    struct wr_url_batch_entry found = *link;
    enum wr_add_url_verdict verdict = judge_url(loop, url, &found);
    if (is_to_be_posted(&found) && !wr_url_batch_add(urls, url, &found))
        return WR_ADD_URL_MEMORY;
    return verdict;
}

struct wr_span wr_url_batch_url(const struct wr_url_batch *urls, const struct wr_url_batch_entry *found)
{
    return (struct wr_span){urls->text.bytes + found->url_at, found->url_bytes};
}

struct wr_span wr_url_batch_key(const struct wr_url_batch *urls, const struct wr_url_batch_entry *found)
{
    return (struct wr_span){urls->text.bytes + found->key_at, found->key_bytes};
}

void wr_url_batch_judge(struct wr_crawl_loop *loop, struct wr_url_batch *urls)
{
    char memory[WR_URL_ROOM];
    struct wr_url url;
    size_t kept = 0;
    for (size_t i = 0; i < urls->count; i++) {
        struct wr_url_batch_entry found = urls->list[i];
        if (found.verdict == WR_ADD_URL_LATER) {
            if (wr_url_parse(wr_url_batch_url(urls, &found), NULL, NULL, memory, sizeof memory, &url) != WR_URL_OK)
                continue; /* cannot happen: the URL was valid */
            (void)judge_url(loop, &url, &found);
        }
        if (is_to_be_posted(&found))
            urls->list[kept++] = found;
    }
    urls->count = kept;
}
