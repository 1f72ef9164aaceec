/* SPDX-License-Identifier: MIT */
/* offer.c - decides whether a URL is accepted. */
#include "core/plan/state.h"

const char *wr_offer_name(enum wr_offer_verdict verdict)
{
    static const char *const names[] = {
#define X(verdict, name) name,
        WR_OFFERS(X)
#undef X
    };
    return (size_t)verdict < sizeof names / sizeof names[0] ? names[verdict] : NULL;
}

static bool is_too_deep(const struct wr_job *job, const struct wr_offer *offer)
{
    uint32_t most = job->options.max_depth;
    return !offer->is_seed && (offer->depth > UINT16_MAX || (most > 0 && offer->depth > most));
}

enum wr_offer_verdict wr_plan_screen(const struct wr_plan *plan, const struct wr_offer *offer)
{
    const struct wr_plan_options *options = &plan->options;
    const struct wr_url *url = offer->url;
    const struct wr_job *job = wr_job_find(plan, offer->job);

    if (job == NULL || job->ended)
        return WR_OFFER_OVER;
    if (is_too_deep(job, offer))
        return WR_OFFER_DEPTH;
    if (offer->hops > options->max_hops)
        return WR_OFFER_HOPS;
    if (!offer->is_seed && options->in_scope != NULL && !options->in_scope(options->context, offer->job, url))
        return WR_OFFER_SCOPE;
    if (wr_path_repeats(wr_url_part(url, url->path_at, url->query_at), options->max_repeats))
        return WR_OFFER_TRAP;
    return WR_OFFER_NEW;
}

/* ---- budgets ---- */

/* Returns a hash of job, host and path, for a URL with a query; 0 if it has none. */
static uint64_t path_of(const struct wr_plan *plan, const struct wr_offer *offer)
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
static bool is_counted(const struct wr_plan *plan, const struct wr_offer *offer)
{
    return plan->options.leases && offer->is_stored;
}

static enum wr_offer_verdict afford(const struct wr_plan *plan, const struct wr_offer *offer, const struct wr_job *job,
                                    const struct wr_lane *lane, uint64_t path)
{
    bool is_sitemap = offer->is_sitemap;
    if (job->options.host_pages > 0 && lane != NULL && lane->accepted >= job->options.host_pages &&
        !is_counted(plan, offer))
        return WR_OFFER_BUDGET;
    if (is_sitemap && lane != NULL && lane->sitemaps >= plan->options.max_sitemaps)
        return WR_OFFER_TRAP;
    if (path != 0 && wr_variants_of(&plan->variants, path) >= plan->options.max_variants)
        return WR_OFFER_TRAP;
    if (job->options.draws_pages && job->left[WR_DRAW_PAGES] == 0)
        return job->is_last[WR_DRAW_PAGES] ? WR_OFFER_BUDGET : WR_OFFER_LATER;
    return WR_OFFER_NEW;
}

/* ---- accepting ---- */

static struct wr_span key_of(const struct wr_url *url, char memory[WEIR_PACE_KEY_MAX + 1])
{
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, memory, WEIR_PACE_KEY_MAX + 1);
    wr_url_append_key(&buf, url);
    return (struct wr_span){memory, buf.length};
}

/* Counts the task for its host. If the host does not fit into memory, the task stays in the
 * store. */
static int queue(struct wr_plan *plan, struct wr_job *job, struct wr_span key, bool is_sitemap, int64_t now)
{
    struct wr_plan_host *host;
    struct wr_lane *lane;
    int error = wr_host_need(plan, key, now, &host);
    if (error == 0)
        error = wr_lane_need(plan, host, job, &lane);
    if (error == WEIR_E_FULL) {
        job->dormant = job->missed = true;
        return 0;
    }
    if (error != 0)
        return error;
    /* With leases, a LOAD reports the count, which may include this one. */
    if (!plan->options.leases)
        lane->accepted += lane->accepted < UINT32_MAX;
    if (is_sitemap && lane->sitemaps < UINT16_MAX)
        lane->sitemaps++;
    lane->in_store++;
    lane->since += lane->loading;
    wr_lane_want(plan, lane);
    if (host->place.list == &plan->idle)
        wr_list_take(&host->place);
    if (host->held_by == WEIR_REASON_NONE)
        wr_host_held(plan, host, WEIR_REASON_QUEUE, now);
    return 0;
}

/* Checks the budgets, and whether the store must be asked if the URL is known. */
static enum wr_offer_verdict judge(const struct wr_plan *plan, const struct wr_offer *offer, const struct wr_job *job,
                                   struct wr_span key, uint64_t path)
{
    const struct wr_plan_host *host = wr_plan_host_find(plan, key);
    const struct wr_lane *lane = host != NULL ? wr_lane_find(host, job) : NULL;
    /* A stored URL may be loaded already, which an incomplete set does not show. */
    if (plan->known.incomplete && (offer->is_new || offer->is_stored) && lane != NULL &&
        wr_lane_has(plan, lane, offer->fingerprint))
        return WR_OFFER_KNOWN;
    enum wr_offer_verdict verdict = afford(plan, offer, job, lane, path);
    if (verdict == WR_OFFER_NEW && !offer->is_new && plan->known.incomplete)
        return WR_OFFER_ASK_STORE;
    return verdict;
}

static enum wr_offer_verdict accept(struct wr_plan *plan, const struct wr_offer *offer, struct wr_job *job,
                                    struct wr_span key, uint64_t path, int64_t now)
{
    if (queue(plan, job, key, offer->is_sitemap, now) != 0)
        return WR_OFFER_MEMORY;
    wr_known_add(&plan->known, offer->job, offer->fingerprint);
    if (path != 0)
        wr_variants_add(&plan->variants, path);
    if (job->options.draws_pages)
        job->left[WR_DRAW_PAGES]--;
    job->open++;
    job->says_drained = false;
    return WR_OFFER_NEW;
}

/* Remembers the refusal of a stored URL, so that it is not loaded before its end is stored. */
static enum wr_offer_verdict refuse(struct wr_plan *plan, const struct wr_offer *offer, enum wr_offer_verdict verdict)
{
    if ((offer->is_stored || offer->is_new) && verdict >= WR_OFFER_SCOPE)
        wr_known_add(&plan->known, offer->job | WR_KNOWN_REFUSED, offer->fingerprint);
    return verdict;
}

bool wr_plan_knows(const struct wr_plan *plan, uint32_t job, uint64_t fingerprint)
{
    return wr_known_has(&plan->known, job, fingerprint) ||
           wr_known_has(&plan->known, job | WR_KNOWN_REFUSED, fingerprint);
}

void wr_plan_expect(const struct wr_plan *plan, uint32_t job, uint64_t fingerprint)
{
    wr_known_expect(&plan->known, job, fingerprint);
}

enum wr_offer_verdict wr_plan_offer(struct wr_plan *plan, const struct wr_offer *offer, int64_t now)
{
    char memory[WEIR_PACE_KEY_MAX + 1];
    const struct wr_job *asked = wr_job_find(plan, offer->job);
    /* Most offers are of known URLs. */
    if (asked != NULL && !asked->ended && wr_plan_knows(plan, offer->job, offer->fingerprint))
        return WR_OFFER_KNOWN;
    enum wr_offer_verdict verdict = wr_plan_screen(plan, offer);
    if (verdict != WR_OFFER_NEW)
        return refuse(plan, offer, verdict);
    struct wr_job *job = wr_job_find(plan, offer->job);
    struct wr_span key = key_of(offer->url, memory);
    uint64_t path = path_of(plan, offer);
    verdict = judge(plan, offer, job, key, path);
    if (verdict != WR_OFFER_NEW)
        return refuse(plan, offer, verdict);
    return accept(plan, offer, job, key, path, now);
}

/* ---- set of known URLs ---- */

void wr_plan_known(struct wr_plan *plan, uint32_t job, uint64_t fingerprint)
{
    wr_known_add(&plan->known, job, fingerprint);
}

void wr_plan_known_incomplete(struct wr_plan *plan)
{
    plan->known.incomplete = true;
}

bool wr_plan_is_crowded(const struct wr_plan *plan)
{
    return wr_known_is_crowded(&plan->known);
}

int wr_plan_grow(struct wr_plan *plan)
{
    return wr_known_grow(&plan->known);
}
