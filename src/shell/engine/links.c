/* SPDX-License-Identifier: MIT */
/* links.c - judges the URLs that pages lead to, by the plan of the loop that has the host.
 *
 * For a host of this loop, the plan says at once whether a URL is new. A URL of another loop is
 * stored with the page, and offered to that loop when the store has said that it is new. A URL that
 * was sent there lately is not sent a second time.
 */
#include "base/alloc.h"
#include "shell/engine/state.h"

#define TEXT_MAX ((size_t)64 << 20)

void wr_founds_init(struct wr_founds *ret_founds, const weir_allocator *allocator)
{
    *ret_founds = (struct wr_founds){.list = NULL};
    wr_buf_init(&ret_founds->text, allocator, TEXT_MAX);
}

void wr_founds_clear(struct wr_founds *founds)
{
    founds->count = 0;
    wr_buf_clear(&founds->text);
}

void wr_founds_release(struct wr_founds *founds)
{
    wr_give(founds->text.allocator, founds->list, founds->room * sizeof *founds->list, _Alignof(struct wr_found));
    founds->list = NULL;
    founds->count = founds->room = 0;
    wr_buf_release(&founds->text);
}

static struct wr_found *more(struct wr_founds *founds)
{
    const weir_allocator *allocator = founds->text.allocator;
    if (founds->count == founds->room) {
        size_t room = founds->room == 0 ? 64 : 2 * founds->room;
        struct wr_found *list = wr_take_array(allocator, room, sizeof *list, _Alignof(struct wr_found));
        if (list == NULL)
            return NULL;
        if (founds->count > 0)
            memcpy(list, founds->list, founds->count * sizeof *list);
        wr_give(allocator, founds->list, founds->room * sizeof *list, _Alignof(struct wr_found));
        founds->list = list;
        founds->room = room;
    }
    return &founds->list[founds->count++];
}

bool wr_founds_add(struct wr_founds *founds, const struct wr_url *url, const struct wr_found *like)
{
    struct wr_buf *text = &founds->text;
    uint32_t url_at = (uint32_t)text->length;
    wr_buf_append(text, url->text, url->bytes);
    uint32_t key_at = (uint32_t)text->length;
    wr_url_append_key(text, url);
    struct wr_found *found = text->error == 0 ? more(founds) : NULL;
    if (found == NULL)
        return false;
    *found = *like;
    found->url_at = url_at;
    found->url_bytes = url->bytes;
    found->key_at = key_at;
    found->key_bytes = (uint32_t)(text->length - key_at);
    return true;
}

bool wr_founds_copy(struct wr_founds *founds, const struct wr_founds *from, const struct wr_found *found,
                    const struct wr_found *copy)
{
    struct wr_buf *text = &founds->text;
    uint32_t url_at = (uint32_t)text->length;
    wr_buf_append_span(text, wr_found_url(from, found));
    uint32_t key_at = (uint32_t)text->length;
    wr_buf_append_span(text, wr_found_key(from, found));
    struct wr_found *place = text->error == 0 ? more(founds) : NULL;
    if (place == NULL)
        return false;
    *place = *copy;
    place->url_at = url_at;
    place->key_at = key_at;
    return true;
}

static bool was_sent_or_known(const struct wr_crawl_loop *loop, uint64_t fingerprint)
{
    return wr_plan_knows(loop->plan, (uint32_t)loop->engine->job, fingerprint) ||
           loop->elsewhere[fingerprint & (WR_ELSEWHERE - 1)] == fingerprint;
}

static bool is_here(const struct wr_crawl_loop *loop, const struct wr_url *url)
{
    return wr_engine_loop_of_url(loop->engine, url) == loop->index;
}

/* Returns true if this loop has the host and, if processes share hosts, its lease. Otherwise the
 * process that claims the host finds the URL in the store. */
static bool is_ours(const struct wr_crawl_loop *loop, const struct wr_url *url)
{
    return is_here(loop, url) && (!loop->engine->is_shared || wr_lease_has(loop, url));
}

/* Returns true if the store is to say whether the URL is new: another loop gets it, or the store
 * counts pages. */
static bool asks_of_others(const struct wr_crawl_loop *loop, const struct wr_url *url)
{
    const struct wr_engine *engine = loop->engine;
    return !is_here(loop, url) ||
           (engine->is_shared && (engine->options.max_pages > 0 || engine->options.host_pages > 0));
}

/* Offers a URL to the plan, and draws the budget for one page if needed. An accepted URL must be
 * posted before the plan's next step, or a load would miss it: nothing may wait here. */
static enum wr_offer_verdict offer_here(struct wr_crawl_loop *loop, const struct wr_offer *offer)
{
    enum wr_offer_verdict verdict = wr_plan_offer(loop->plan, offer, wr_crawl_loop_now(loop));
    if (verdict != WR_OFFER_LATER)
        return verdict;
    (void)wr_job_draw(loop, WR_DRAW_PAGES, 1);
    return wr_plan_offer(loop->plan, offer, wr_crawl_loop_now(loop));
}

/* Counts a URL in scope that only a limit has excluded. */
static void count_left_out(struct wr_crawl_loop *loop, const struct wr_url *url, const struct wr_found *found,
                           enum wr_offer_verdict verdict)
{
    const struct wr_engine_options *options = &loop->engine->options;
    if (verdict == WR_OFFER_TRAP && found->is_sitemap)
        WR_COUNT_UP(loop, unread);
    else if (verdict == WR_OFFER_BUDGET)
        WR_COUNT_UP(loop, beyond);
    else if (verdict == WR_OFFER_DEPTH && (options->in_scope == NULL || options->in_scope(options->scope_context, url)))
        WR_COUNT_UP(loop, deeper);
}

/* Judges a URL. One that another loop has stored is this loop's to judge: nothing else is asked. */
static enum wr_offer_verdict judge(struct wr_crawl_loop *loop, const struct wr_url *url, struct wr_found *found)
{
    struct wr_offer offer = {.job = (uint32_t)loop->engine->job,
                             .fingerprint = found->fingerprint,
                             .url = url,
                             .depth = found->depth,
                             .hops = found->hops,
                             .is_seed = found->is_seed,
                             .is_sitemap = found->is_sitemap,
                             .is_new = found->is_stored,
                             .is_stored = found->is_stored};
    if (!found->is_stored && was_sent_or_known(loop, found->fingerprint)) { /* true of most links */
        found->verdict = WR_OFFER_KNOWN;
        return WR_OFFER_KNOWN;
    }
    bool ours = (found->is_stored && !loop->engine->is_shared) || is_ours(loop, url);
    if (found->is_stored && !ours) { /* this loop had the host when the URL was posted */
        found->verdict = WR_OFFER_KNOWN;
        return WR_OFFER_KNOWN;
    }
    enum wr_offer_verdict verdict = ours ? offer_here(loop, &offer) : wr_plan_screen(loop->plan, &offer);
    if (atomic_load(&loop->engine->has_max_pages) && !found->is_stored &&
        (verdict == WR_OFFER_NEW || verdict == WR_OFFER_ASK_STORE))
        verdict = WR_OFFER_BUDGET; /* the store would refuse the page */
    found->asks = verdict == WR_OFFER_ASK_STORE || (verdict != WR_OFFER_KNOWN && asks_of_others(loop, url));
    /* Counts new URLs, and stored ones that were loaded before this offer. */
    if (ours && (verdict == WR_OFFER_NEW || (verdict == WR_OFFER_KNOWN && found->is_stored)))
        WR_COUNT_UP(loop, accepted);
    if (verdict == WR_OFFER_NEW && ours) {
        atomic_store(&loop->is_drained, false);
        if (wr_plan_is_crowded(loop->plan))
            (void)wr_plan_grow(loop->plan); /* without memory the plan says ASK_STORE */
    }
    if (verdict == WR_OFFER_NEW && !ours)
        loop->elsewhere[found->fingerprint & (WR_ELSEWHERE - 1)] = found->fingerprint;
    count_left_out(loop, url, found, verdict);
    found->verdict = verdict;
    return verdict;
}

/* Returns true if something is to be posted for the URL. */
static bool is_wanted(const struct wr_found *found)
{
    switch (found->verdict) {
    case WR_OFFER_NEW:
    case WR_OFFER_ASK_STORE:
        return !found->is_stored;
    case WR_OFFER_KNOWN:
        /* A known URL: only the time of its change is posted. */
        return !found->is_stored && found->changed_wall_at > 0;
    case WR_OFFER_OVER:
        return false;
    default:
        return found->is_stored; /* refused, so the stored task has to end */
    }
}

enum wr_offer_verdict wr_founds_offer(struct wr_crawl_loop *loop, struct wr_founds *founds, const struct wr_url *url,
                                      const struct wr_found *link)
{
    struct wr_found found = *link;
    enum wr_offer_verdict verdict = judge(loop, url, &found);
    if (is_wanted(&found) && !wr_founds_add(founds, url, &found))
        return WR_OFFER_MEMORY;
    return verdict;
}

struct wr_span wr_found_url(const struct wr_founds *founds, const struct wr_found *found)
{
    return (struct wr_span){founds->text.bytes + found->url_at, found->url_bytes};
}

struct wr_span wr_found_key(const struct wr_founds *founds, const struct wr_found *found)
{
    return (struct wr_span){founds->text.bytes + found->key_at, found->key_bytes};
}

void wr_founds_judge(struct wr_crawl_loop *loop, struct wr_founds *founds)
{
    char memory[WR_URL_ROOM];
    struct wr_url url;
    size_t kept = 0;
    for (size_t i = 0; i < founds->count; i++) {
        struct wr_found found = founds->list[i];
        if (found.verdict == WR_OFFER_LATER) {
            if (wr_url_parse(wr_found_url(founds, &found), NULL, NULL, memory, sizeof memory, &url) != WR_URL_OK)
                continue; /* cannot happen: the URL was valid */
            (void)judge(loop, &url, &found);
        }
        if (is_wanted(&found))
            founds->list[kept++] = found;
    }
    founds->count = kept;
}
