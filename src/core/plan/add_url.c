/* SPDX-License-Identifier: MIT */
/* add_url.c - decides whether a URL is accepted. */
#include "core/plan/plan_state.h"

const char *wr_add_url_verdict_name(enum wr_add_url_verdict verdict)
{
    static const char *const names[] = {
#define X(verdict, name) name,
        WR_ADD_URL_VERDICTS(X)
#undef X
    };
    return (size_t)verdict < sizeof names / sizeof names[0] ? names[verdict] : NULL;
}

static bool is_too_deep(const struct wr_job *job, const struct wr_url_to_add *offer)
{
    uint32_t most = job->options.max_depth;
    return !offer->is_seed && (offer->depth > UINT16_MAX || (most > 0 && offer->depth > most));
}

enum wr_add_url_verdict wr_plan_check_url(const struct wr_plan *plan, const struct wr_url_to_add *offer)
{
    const struct wr_plan_options *options = &plan->options;
    const struct wr_url *url = offer->url;
    const struct wr_job *job = wr_job_find(plan, offer->job);

    if (job == NULL || job->ended)
        return WR_ADD_URL_OVER;
    if (is_too_deep(job, offer))
        return WR_ADD_URL_DEPTH;
    if (offer->hops > options->max_hops)
        return WR_ADD_URL_HOPS;
    if (!offer->is_seed && options->in_scope != NULL && !options->in_scope(options->context, offer->job, url))
        return WR_ADD_URL_SCOPE;
    if (wr_path_repeats(wr_url_part(url, url->path_at, url->query_at), options->max_repeats))
        return WR_ADD_URL_TRAP;
    return WR_ADD_URL_NEW;
}

/* ---- budgets ---- */

/* Returns a hash of job, host and path, for a URL with a query; 0 if it has none. */
static uint64_t hash_of_path(const struct wr_plan *plan, const struct wr_url_to_add *offer)
{
    const struct wr_url *url = offer->url;
    if (url->query_at == url->fragment_at)
        return 0;
    struct wr_span path = wr_url_part(url, url->host_at, url->query_at);
    uint64_t hash = wr_hash(plan->options.hash_key, path.data, path.bytes) ^ (uint64_t)offer->job << 32;
    return hash != 0 ? hash : 1;
}

/* Returns true if the store has checked the host's budget: where processes share hosts it counts,
 * and accepts only what is within bounds. */
static bool is_counted_by_store(const struct wr_plan *plan, const struct wr_url_to_add *offer)
{
    return plan->options.leases && offer->is_stored;
}

static enum wr_add_url_verdict check_url_budgets(const struct wr_plan *plan, const struct wr_url_to_add *offer,
                                                 const struct wr_job *job, const struct wr_host_queue *host_queue,
                                                 uint64_t path)
{
    bool is_sitemap = offer->is_sitemap;
    if (job->options.host_pages > 0 && host_queue != NULL && host_queue->accepted >= job->options.host_pages &&
        !is_counted_by_store(plan, offer))
        return WR_ADD_URL_BUDGET;
    if (is_sitemap && host_queue != NULL && host_queue->sitemaps >= plan->options.max_sitemaps)
        return WR_ADD_URL_TRAP;
    if (path != 0 && wr_variants_of(&plan->variants, path) >= plan->options.max_variants)
        return WR_ADD_URL_TRAP;
    if (job->options.has_page_budget && job->left[WR_BUDGET_PAGES] == 0)
        return job->is_last[WR_BUDGET_PAGES] ? WR_ADD_URL_BUDGET : WR_ADD_URL_LATER;
    return WR_ADD_URL_NEW;
}

/* ---- accepting ---- */

static struct wr_span host_key_of_url(const struct wr_url *url, char memory[WEIR_PACE_KEY_MAX + 1])
{
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, memory, WEIR_PACE_KEY_MAX + 1);
    wr_url_append_key(&buf, url);
    return (struct wr_span){memory, buf.length};
}

/* Counts the task for its host. If the host does not fit into memory, the task stays in the
 * store. */
static int count_queued_url(struct wr_plan *plan, struct wr_job *job, struct wr_span key, bool is_sitemap, int64_t now)
{
    struct wr_plan_host *host;
    struct wr_host_queue *host_queue;
    int error = wr_host_get_or_make(plan, key, now, &host);
    if (error == 0)
        error = wr_host_queue_get_or_make(plan, host, job, &host_queue);
    if (error == WEIR_E_FULL) {
        job->dormant = job->missed = true;
        return 0;
    }
    if (error != 0)
        return error;
    /* With leases, a LOAD reports the count, which may include this one. */
    if (!plan->options.leases)
        host_queue->accepted += host_queue->accepted < UINT32_MAX;
    if (is_sitemap && host_queue->sitemaps < UINT16_MAX)
        host_queue->sitemaps++;
    host_queue->in_store++;
    host_queue->since += host_queue->loading;
    wr_host_queue_list_for_load(plan, host_queue);
    if (host->place.list == &plan->idle)
        wr_list_remove(&host->place);
    if (host->held_by == WEIR_REASON_NONE)
        wr_host_set_held_by(plan, host, WEIR_REASON_QUEUE, now);
    return 0;
}

/* Checks the budgets, and whether the store must be asked if the URL is known. */
static enum wr_add_url_verdict check_new_url(const struct wr_plan *plan, const struct wr_url_to_add *offer,
                                             const struct wr_job *job, struct wr_span key, uint64_t path)
{
    const struct wr_plan_host *host = wr_plan_host_find(plan, key);
    const struct wr_host_queue *host_queue = host != NULL ? wr_host_queue_find(host, job) : NULL;
    /* A stored URL may be loaded already, which an incomplete set does not show. */
    if (plan->known.incomplete && (offer->is_new || offer->is_stored) && host_queue != NULL &&
        wr_host_queue_has(plan, host_queue, offer->fingerprint))
        return WR_ADD_URL_KNOWN;
    enum wr_add_url_verdict verdict = check_url_budgets(plan, offer, job, host_queue, path);
    if (verdict == WR_ADD_URL_NEW && !offer->is_new && plan->known.incomplete)
        return WR_ADD_URL_ASK_STORE;
    return verdict;
}

static enum wr_add_url_verdict accept_url(struct wr_plan *plan, const struct wr_url_to_add *offer, struct wr_job *job,
                                          struct wr_span key, uint64_t path, int64_t now)
{
    if (count_queued_url(plan, job, key, offer->is_sitemap, now) != 0)
        return WR_ADD_URL_MEMORY;
    wr_known_urls_add(&plan->known, offer->job, offer->fingerprint);
    if (path != 0)
        wr_variants_add(&plan->variants, path);
    if (job->options.has_page_budget)
        job->left[WR_BUDGET_PAGES]--;
    job->open++;
    job->says_drained = false;
    return WR_ADD_URL_NEW;
}

/* Remembers the refusal of a stored URL, so that it is not loaded before its end is stored. */
static enum wr_add_url_verdict remember_refused_url(struct wr_plan *plan, const struct wr_url_to_add *offer,
                                                    enum wr_add_url_verdict verdict)
{
    if ((offer->is_stored || offer->is_new) && verdict >= WR_ADD_URL_SCOPE)
        wr_known_urls_add(&plan->known, offer->job | WR_KNOWN_REFUSED, offer->fingerprint);
    return verdict;
}

bool wr_plan_knows_url(const struct wr_plan *plan, uint32_t job, uint64_t fingerprint)
{
    return wr_known_urls_has(&plan->known, job, fingerprint) ||
           wr_known_urls_has(&plan->known, job | WR_KNOWN_REFUSED, fingerprint);
}

void wr_plan_prefetch_url(const struct wr_plan *plan, uint32_t job, uint64_t fingerprint)
{
    wr_known_urls_prefetch(&plan->known, job, fingerprint);
}

enum wr_add_url_verdict wr_plan_add_url(struct wr_plan *plan, const struct wr_url_to_add *offer, int64_t now)
{
    char memory[WEIR_PACE_KEY_MAX + 1];
    const struct wr_job *asked = wr_job_find(plan, offer->job);
    /* Most offers are of known URLs. */
    if (asked != NULL && !asked->ended && wr_plan_knows_url(plan, offer->job, offer->fingerprint))
        return WR_ADD_URL_KNOWN;
    enum wr_add_url_verdict verdict = wr_plan_check_url(plan, offer);
    if (verdict != WR_ADD_URL_NEW)
        return remember_refused_url(plan, offer, verdict);
    struct wr_job *job = wr_job_find(plan, offer->job);
    struct wr_span key = host_key_of_url(offer->url, memory);
    uint64_t path = hash_of_path(plan, offer);
    verdict = check_new_url(plan, offer, job, key, path);
    if (verdict != WR_ADD_URL_NEW)
        return remember_refused_url(plan, offer, verdict);
    return accept_url(plan, offer, job, key, path, now);
}

/* ---- set of known URLs ---- */

void wr_plan_add_known_url(struct wr_plan *plan, uint32_t job, uint64_t fingerprint)
{
    wr_known_urls_add(&plan->known, job, fingerprint);
}

void wr_plan_set_known_incomplete(struct wr_plan *plan)
{
    plan->known.incomplete = true;
}

bool wr_plan_known_is_crowded(const struct wr_plan *plan)
{
    return wr_known_urls_is_crowded(&plan->known);
}

int wr_plan_known_grow(struct wr_plan *plan)
{
    return wr_known_urls_grow(&plan->known);
}
