/* SPDX-License-Identifier: MIT */
/* recrawl_visit.c - results of an earlier job: kept for tasks in windows and in flight, and
 * compared with what came.
 *
 * How often a page changes is estimated from its visits: the number of changes between the first
 * and the last. A page that changes at a rate r has changed after a time t with probability 1 -
 * exp(-r t). Before anything is known, r is one change a week, with the weight of one week of
 * watching.
 *
 * Clocks are set. A visit more than a day in the future or more than a year ago says nothing about
 * how often a page changes: the page is due, and its estimate starts anew. A visit up to a day in
 * the future counts as just now.
 */
#include "base/alloc.h"
#include "crawl/engine/engine_state.h"

#define PRIOR_CHANGES 1
#define PRIOR_NS (7 * WEIR_DAY)
#define LIKELY 0.693 /* r t at which a change is as likely as not: ln 2 */
#define AHEAD_NS_MAX WEIR_DAY
#define AGO_NS_MAX (365 * WEIR_DAY)

#define ENTRIES_MAX ((size_t)1 << 24)

struct visit_entry {
    uint64_t fingerprint; /* key of the map */
    bool had_page;
    struct wr_store_visit visit;
    size_t bytes;
    char texts[];
};

void wr_recrawl_visits_init(struct wr_crawl_loop *loop)
{
    wr_map_init(&loop->earlier, loop->engine->allocator, &loop->engine->hash_key, ENTRIES_MAX);
}

static void free_visit_entry(struct wr_crawl_loop *loop, struct visit_entry *entry)
{
    wr_free(loop->engine->allocator, entry, sizeof *entry + entry->bytes, _Alignof(struct visit_entry));
}

static struct wr_span copy_visit_text(char **to, struct wr_span text)
{
    struct wr_span copy = {*to, text.bytes};
    if (text.bytes > 0)
        memcpy(*to, text.data, text.bytes);
    *to += text.bytes;
    return copy;
}

bool wr_recrawl_visit_had_page(struct wr_span verdict, const struct wr_store_visit *visit)
{
    return wr_span_is(verdict, "fetched") || wr_span_is(verdict, "too_large") || wr_span_is(verdict, "unchanged") ||
           wr_span_is(verdict, "not_due") || visit->digest.bytes + visit->validator.bytes > 0;
}

/* Keeps the earlier results of a task. Without memory the page is fetched as if it were new. */
void wr_recrawl_visit_put(struct wr_crawl_loop *loop, const struct wr_store_task *task)
{
    void *old = NULL;
    const struct wr_store_visit *visit = &task->earlier;
    size_t bytes = visit->validator.bytes + visit->digest.bytes;
    struct visit_entry *entry = wr_alloc(loop->engine->allocator, sizeof *entry + bytes, _Alignof(struct visit_entry));
    if (entry == NULL)
        return;
    char *to = entry->texts;
    entry->fingerprint = task->fingerprint;
    entry->had_page = wr_recrawl_visit_had_page(task->earlier_verdict, visit);
    entry->visit = *visit;
    entry->visit.validator = copy_visit_text(&to, visit->validator);
    entry->visit.digest = copy_visit_text(&to, visit->digest);
    entry->bytes = bytes;
    if (wr_map_put(&loop->earlier, &entry->fingerprint, sizeof entry->fingerprint, entry, &old) != 0)
        old = entry;
    if (old != NULL)
        free_visit_entry(loop, old);
}

static const struct visit_entry *find_visit_entry(const struct wr_crawl_fetch *fetch)
{
    const struct wr_crawl_loop *loop = fetch->loop;
    uint64_t fingerprint = fetch->action.fingerprint;
    return loop->engine->earlier != 0 ? wr_map_get(&loop->earlier, &fingerprint, sizeof fingerprint) : NULL;
}

void wr_recrawl_visit_drop(struct wr_crawl_loop *loop, uint64_t fingerprint)
{
    struct visit_entry *entry =
        loop->engine->earlier != 0 ? wr_map_remove(&loop->earlier, &fingerprint, sizeof fingerprint) : NULL;
    if (entry != NULL)
        free_visit_entry(loop, entry);
}

void wr_recrawl_visits_release(struct wr_crawl_loop *loop)
{
    const struct wr_map_slot *slot;
    for (size_t cursor = 0; (slot = wr_map_next(&loop->earlier, &cursor)) != NULL;)
        free_visit_entry(loop, slot->value);
    wr_map_release(&loop->earlier);
}

/* Returns the validator of the earlier visit, or an empty span. With only_due an unchanged sitemap
 * is read too, because a page that it lists may have failed since. */
struct wr_span wr_recrawl_visit_validator(const struct wr_crawl_fetch *fetch)
{
    const struct visit_entry *entry = find_visit_entry(fetch);
    bool is_needed = fetch->is_sitemap && fetch->loop->engine->options.only_due;
    return entry != NULL && !is_needed ? entry->visit.validator : (struct wr_span){NULL, 0};
}

/* Returns true if the time of the visit is plausible, so that the estimate can use it. */
static bool is_plausible_visit(const struct wr_store_visit *visit, int64_t wall_now)
{
    int64_t at = visit->visited_wall_at;
    return at > 0 && at > wall_now - AGO_NS_MAX && at < wall_now + AHEAD_NS_MAX;
}

bool wr_recrawl_visit_is_due(const struct wr_store_task *task, int64_t wall_now)
{
    const struct wr_store_visit *visit = &task->earlier;
    bool had_page = task->has_earlier && wr_recrawl_visit_had_page(task->earlier_verdict, visit);
    /* A sitemap named a later change, or the task was retried. */
    if (task->depth == 0 || !had_page || !is_plausible_visit(visit, wall_now) ||
        task->not_before_wall_at > visit->visited_wall_at)
        return true;
    double watched = (double)(visit->visited_wall_at - visit->since_wall_at);
    double rate = (PRIOR_CHANGES + (double)visit->changes) / ((double)PRIOR_NS + (watched > 0 ? watched : 0));
    return rate * (double)(wall_now - visit->visited_wall_at) >= LIKELY;
}

/* ---- comparing the response ---- */

/* Returns the validator to store: the ETag, else the date. One is enough, because a server that
 * gets an ETag must ignore the date. */
static struct wr_span response_validator(const struct wr_crawl_fetch *fetch)
{
    struct wr_span etag = wr_crawl_fetch_header(fetch, WR_RESPONSE_ETAG),
                   modified = wr_crawl_fetch_header(fetch, WR_RESPONSE_LAST_MODIFIED);
    struct wr_span best = wr_span_find(etag, '"') < etag.bytes ? etag : modified;
    bool is_fit = best.bytes <= WR_STORE_VALIDATOR_MAX && wr_span_is_clean(best);
    return is_fit ? best : (struct wr_span){NULL, 0};
}

/* Returns true if the server says that the page does not exist here, or not any more. */
static bool is_page_gone(const struct wr_crawl_fetch *fetch)
{
    int status = fetch->result.status;
    return wr_crawl_fetch_is_answered(fetch) && (status == 404 || status == 410 || (status >= 300 && status < 400));
}

static bool is_same_digest(struct wr_span one, struct wr_span other)
{
    return one.bytes > 0 && one.bytes == other.bytes && memcmp(one.data, other.data, one.bytes) == 0;
}

static void note_page_visit(struct wr_crawl_fetch *fetch)
{
    struct wr_store_visit *visit = &fetch->visit;
    /* No validator: the unread part may be needed later. */
    visit->validator = fetch->is_enough ? (struct wr_span){NULL, 0} : response_validator(fetch);
    visit->digest = fetch->has_page ? fetch->page.facts.digest : (struct wr_span){NULL, 0};
}

static void note_visit_time(struct wr_store_visit *visit, const struct wr_store_visit *earlier)
{
    visit->visited_wall_at = weir_wall_now();
    if (!is_plausible_visit(earlier, visit->visited_wall_at)) {
        visit->since_wall_at = visit->visited_wall_at;
        visit->changes = 0;
    }
}

/* Fills flight->visit. The verdict becomes "unchanged" if the server or the digest says so. */
void wr_recrawl_visit_compare(struct wr_crawl_fetch *fetch)
{
    const struct visit_entry *entry = find_visit_entry(fetch);
    struct wr_store_visit *visit = &fetch->visit;
    bool is_had = fetch->verdict == WR_VERDICT_FETCHED || fetch->verdict == WR_VERDICT_TOO_LARGE;
    bool is_answer = is_had || is_page_gone(fetch);
    *visit = entry != NULL ? entry->visit : (struct wr_store_visit){.changes = 0};
    if (is_had && fetch->is_conditional && fetch->result.status == 304) {
        struct wr_span validator = response_validator(fetch);
        visit->validator = validator.bytes > 0 ? validator : visit->validator;
        fetch->verdict = WR_VERDICT_UNCHANGED;
    } else if (is_answer) {
        *visit = (struct wr_store_visit){.changes = visit->changes, .since_wall_at = visit->since_wall_at};
        if (is_had)
            note_page_visit(fetch);
        if (entry != NULL && is_had && is_same_digest(visit->digest, entry->visit.digest))
            fetch->verdict = WR_VERDICT_UNCHANGED;
        else if (entry != NULL && (is_had || entry->had_page))
            visit->changes += entry->had_page;
    }
    if (entry != NULL && is_answer)
        note_visit_time(visit, &entry->visit);
}
