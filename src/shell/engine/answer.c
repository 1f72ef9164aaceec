/* SPDX-License-Identifier: MIT */
/* answer.c - decides how a page ends: retried, redirected, read or failed; and writes its line. */
#include "core/rules/url/redirect.h"
#include "shell/engine/state.h"
#include "shell/loop/away.h"
#include "shell/loop/round.h"
#include "shell/net/idna.h"

#define SEED_HOPS 5 /* redirects of a seed whose targets count as seeds, too */

/* ---- reporting to the plan ---- */

/* Reports the end of a page to the plan. The host's gate learns only from outcomes that the host
 * caused. */
static struct wr_fate tell_plan(struct wr_flight *flight)
{
    struct wr_crawl_loop *loop = flight->loop;
    const struct wr_net_result *result = &flight->result;
    int64_t now = wr_crawl_loop_now(loop);
    uint32_t task = flight->action.task;
    bool is_hosts = wr_flight_is_hosts(flight);
    weir_outcome outcome = wr_flight_outcome(flight, wr_flight_is_answered(flight) ? result->status : 0, now);
    if (result->first_byte_at > result->sent_at)
        outcome.latency_ns = result->first_byte_at - result->sent_at;
    if (is_hosts && !flight->was_sent) /* connecting counts as a request, too */
        wr_flight_count(flight, now);
    if (wr_flight_is_answered(flight))
        return wr_plan_told(loop->plan, task, &outcome, flight->body_bytes, now);
    bool is_final = result->end == WR_NET_DONE ? result->status == 407 : result->retry == WR_NET_NEVER;
    return wr_plan_failed(loop->plan, task, is_hosts ? &outcome : NULL, is_final, now);
}

/* ---- redirects and links ---- */

uint64_t wr_engine_fingerprint(const struct wr_engine *engine, struct wr_span canonical)
{
    return wr_hash(&engine->hash_key, canonical.data, canonical.bytes);
}

static const enum wr_verdict refusals[] = {
    [WR_OFFER_SCOPE] = WR_VERDICT_SCOPE,   [WR_OFFER_DEPTH] = WR_VERDICT_DEPTH, [WR_OFFER_HOPS] = WR_VERDICT_HOPS,
    [WR_OFFER_BUDGET] = WR_VERDICT_BUDGET, [WR_OFFER_TRAP] = WR_VERDICT_TRAP,   [WR_OFFER_OVER] = WR_VERDICT_CANCELLED,
    [WR_OFFER_MEMORY] = WR_VERDICT_FAILED,
};

/* Offers the target of a redirect as a link with one more hop. The target of a redirected seed
 * counts as a seed, because its user meant that site. */
static void follow(struct wr_flight *flight, const struct wr_url *to)
{
    struct wr_crawl_loop *loop = flight->loop;
    char memory[WR_URL_ROOM];
    struct wr_url target;
    if (wr_url_canonical(to, memory, sizeof memory, &target) != WR_URL_OK) {
        flight->verdict = WR_VERDICT_FAILED;
        wr_buf_append_string(&flight->words, "it leads to a URL that is too long");
        return;
    }
    struct wr_found link = {.fingerprint = wr_engine_fingerprint(loop->engine, wr_span_of(target.text)),
                            .depth = flight->action.depth,
                            .hops = flight->action.hops + 1,
                            .is_seed = flight->action.depth == 0 && flight->action.hops < SEED_HOPS};
    link.parent = flight->is_sitemap ? link.fingerprint : 0;
    link.is_sitemap = flight->is_sitemap;
    if (link.is_seed)
        wr_engine_seed_known(loop->engine, &target, false);
    link.is_seed = link.is_seed || (link.is_sitemap && wr_listing_may_be(flight, &target));
    enum wr_offer_verdict verdict = wr_founds_offer(loop, &flight->founds, &target, &link);
    flight->verdict = verdict < WR_OFFER_SCOPE ? WR_VERDICT_REDIRECT : refusals[verdict];
    wr_buf_append(&flight->final_url, target.text, target.bytes);
}

static void follow_link(void *context, const struct wr_page_link *link)
{
    struct wr_flight *flight = context;
    const struct wr_found found = {
        .fingerprint = link->fingerprint, .parent = flight->action.fingerprint, .depth = flight->action.depth + 1};
    (void)wr_founds_offer(flight->loop, &flight->founds, link->url, &found);
}

/* Offers the host's sitemaps, then closes the page. Sitemaps come first, so that a link to one is
 * known as a sitemap. */
static void end_page(struct wr_flight *flight)
{
    WR_DOING("the facts of a page");
    wr_listing_offer(flight);
    if (!flight->has_page)
        return;
    flight->has_links = true;
    if (wr_page_close(&flight->page) != 0)
        wr_job_over(flight->loop->engine, WR_END_BROKEN, weir_error_text(WEIR_E_NOMEM));
    if ((flight->result.is_truncated && !flight->is_enough) || flight->keep.is_cut)
        flight->verdict = WR_VERDICT_TOO_LARGE;
    wr_listing_end(flight);
}

/* Offers the links of a page for a limited time, because 10 000 links may take 100 ms. Links that
 * were offered are posted before the plan's next step. Returns false if links are left. */
static bool tell_links(struct wr_flight *flight)
{
    WR_DOING("links");
    struct wr_share share = wr_share_begin(WR_SHARE_NS);
    while (flight->has_links && wr_share_lasts(&share))
        flight->has_links = wr_page_tell(&flight->page, follow_link, flight);
    if (flight->has_links && flight->founds.count > 0)
        wr_flight_carry(flight->loop, &flight->founds, false);
    return !flight->has_links;
}

/* ---- verdicts ---- */

static void judge_answer(struct wr_flight *flight)
{
    char memory[WR_URL_ROOM];
    struct wr_url to;
    int status = flight->result.status;
    struct wr_redirect redirect =
        wr_redirect_read(status, wr_span_of("GET"), &flight->url, wr_flight_head(flight, WR_TEXT_LOCATION),
                         wr_idna_libidn2(), memory, sizeof memory, &to);
    flight->verdict = WR_VERDICT_FETCHED;
    if (flight->firewall != WR_FIREWALL_NONE) {
        flight->verdict = WR_VERDICT_BLOCKED;
        wr_wall_words(flight, flight->firewall, true);
    } else if (redirect.kind == WR_REDIRECT_FOLLOW) {
        follow(flight, &to);
    } else if (redirect.kind == WR_REDIRECT_BAD) {
        flight->verdict = WR_VERDICT_FAILED;
        wr_buf_append_string(&flight->words, "it leads to what is no URL to fetch: ");
        wr_buf_append_string(&flight->words, wr_url_fault_text(redirect.fault));
    } else if (flight->is_sitemap && (status == 404 || status == 410)) {
        flight->verdict = WR_VERDICT_ABSENT;
    } else if (flight->fate.kind == WR_FATE_FAILED || status >= 400) {
        flight->verdict = WR_VERDICT_FAILED;
        wr_buf_append_string(&flight->words, "the server answered ");
        wr_buf_append_u64(&flight->words, (uint64_t)status);
    } else {
        end_page(flight);
    }
}

/* Records the first failure of the run, so that the final report can name it. */
static void note_failure(const struct wr_flight *flight)
{
    struct wr_engine *engine = flight->loop->engine;
    (void)pthread_mutex_lock(&engine->lock);
    if (engine->failed_url[0] == '\0') {
        wr_text_set(engine->failed_url, sizeof engine->failed_url, flight->url.text);
        wr_text_set(engine->failed_why, sizeof engine->failed_why, flight->words.length > 0 ? flight->words.bytes : "");
    }
    (void)pthread_mutex_unlock(&engine->lock);
}

static bool is_page(enum wr_verdict verdict)
{
    return verdict == WR_VERDICT_FETCHED || verdict == WR_VERDICT_TOO_LARGE || verdict == WR_VERDICT_UNCHANGED;
}

static void count_verdict(const struct wr_flight *flight)
{
    struct wr_crawl_loop *loop = flight->loop;
    enum wr_verdict verdict = flight->verdict;
    WR_COUNT_UP(loop, pages);
    WR_COUNT_UP(loop, verdicts[verdict]);
    if (verdict == WR_VERDICT_UNCHANGED)
        WR_COUNT_UP(loop, unchanged);
    if (is_page(verdict))
        WR_COUNT_UP(loop, fetched);
    else if (verdict == WR_VERDICT_ROBOTS)
        WR_COUNT_UP(loop, denied);
    else if (verdict == WR_VERDICT_REDIRECT)
        WR_COUNT_UP(loop, redirects);
    if (!wr_verdict_is_failure(verdict))
        return;
    WR_COUNT_UP(loop, failed);
    note_failure(flight);
}

/* ---- the output line ---- */

static int64_t between(int64_t from, int64_t to)
{
    return from != 0 && to >= from ? to - from : -1;
}

/* Appends the error as a word for programs, such as "http_404". Appends nothing if the page was
 * fetched, redirected or unchanged. */
static void append_error(struct wr_buf *buf, const struct wr_flight *flight)
{
    const struct wr_net_result *result = &flight->result;
    if (flight->verdict == WR_VERDICT_FETCHED || flight->verdict == WR_VERDICT_REDIRECT ||
        flight->verdict == WR_VERDICT_UNCHANGED)
        return;
    if (result->end != WR_NET_DONE) {
        wr_buf_append_string(buf, wr_net_end_name(result->end));
    } else if (flight->verdict == WR_VERDICT_BLOCKED) {
        wr_buf_append_string(buf, "firewall");
    } else if (result->status >= 400) {
        wr_buf_append_string(buf, "http_");
        wr_buf_append_u64(buf, (uint64_t)result->status);
    } else {
        wr_buf_append_string(buf, wr_verdict_name(flight->verdict));
    }
}

static void write_line(struct wr_flight *flight)
{
    struct wr_crawl_loop *loop = flight->loop;
    const struct wr_net_result *result = &flight->result;
    char memory[32];
    struct wr_buf error;
    wr_buf_init_fixed(&error, memory, sizeof memory);
    append_error(&error, flight);
    struct wr_span url = wr_url_part(&flight->url, 0, flight->url.bytes);
    struct wr_line line = {
        .url = url,
        .final_url = flight->final_url.length > 0 ? wr_buf_from(&flight->final_url, 0) : url,
        .status = result->status,
        .bytes = flight->body_bytes,
        .content_type = wr_flight_head(flight, WR_TEXT_TYPE),
        .depth = flight->action.depth,
        .referrer = flight->is_sitemap ? (struct wr_span){NULL, 0} : wr_referrer_get(loop, flight->action.fingerprint),
        .attempts = flight->fate.attempts,
        .links = -1,
        .verdict = flight->verdict,
        .error = wr_buf_from(&error, 0),
        .error_text = wr_buf_from(&flight->words, 0),
        .waited = flight->action.waited.ms,
        .dns_ns = between(result->asked_at, result->resolved_at),
        .connect_ns = between(result->resolved_at, result->sent_at),
        .first_byte_ns = between(result->sent_at, result->first_byte_at),
        .total_ns = between(result->asked_at, result->done_at),
    };
    if (is_page(flight->verdict))
        line.digest = flight->visit.digest;
    if (flight->has_page && is_page(flight->verdict)) {
        line.title = flight->page.facts.title;
        line.links = flight->page.facts.links;
        line.body = wr_span_of(flight->keep.name);
    }
    wr_line_append(&flight->line, &line);
}

/* ---- the end ---- */

static void finish(struct wr_flight *flight)
{
    wr_earlier_compare(flight);
    count_verdict(flight);
    write_line(flight);
    wr_post_flight(flight);
}

static void try_again(struct wr_flight *flight)
{
    flight->is_again = true;
    wr_post_flight(flight);
}

void wr_answer_came(struct wr_flight *flight)
{
    WR_DOING("the end of a page");
    struct wr_crawl_loop *loop = flight->loop;
    wr_wall_judge(flight);
    wr_flight_owe(flight);
    struct wr_fate fate = flight->fate = tell_plan(flight);
    if ((fate.news & (WR_NEWS_RETRY_AFTER | WR_NEWS_BREAKER)) != 0)
        wr_crawl_loop_note(loop, flight->action.host);
    if ((fate.news & WR_NEWS_HOPELESS) != 0)
        wr_job_over(loop->engine, WR_END_CANCELLED, "too many answers 429 in a row at a delay of a minute and more");
    if (fate.kind == WR_FATE_AGAIN)
        try_again(flight);
    else
        wr_keep_flight(flight);
}

void wr_answer_end(struct wr_flight *flight)
{
    struct wr_crawl_loop *loop = flight->loop;
    if (flight->is_left) {
        wr_flight_give_back(flight);
        return;
    }
    if (wr_listing_waits(flight))
        return;
    if (wr_flight_is_answered(flight)) {
        wr_buf_clear(&flight->words);
        judge_answer(flight);
    } else {
        flight->verdict = flight->result.end == WR_NET_BLOCKED ? WR_VERDICT_BLOCKED : WR_VERDICT_FAILED;
    }
    wr_job_told(loop, wr_ledger_end_of(&flight->fate, flight->result.status));
    wr_answer_go_on(flight);
}

void wr_answer_go_on(struct wr_flight *flight)
{
    if (tell_links(flight)) {
        finish(flight);
        return;
    }
    flight->loop->telling += !flight->is_telling;
    flight->is_telling = true;
    wr_listing_wait(flight);
}

/* Sets the verdict of a task that was not sent: its host is blocked by a firewall, was given up
 * (`tag` is the enum wr_net_end), or held the task for too long. */
static void end_deferred(struct wr_flight *flight)
{
    const struct wr_plan_action *action = &flight->action;
    if (action->blocked_by != 0) { /* not counted as a failure in a row: nothing was sent */
        flight->verdict = WR_VERDICT_BLOCKED;
        wr_wall_words(flight, (enum wr_firewall)action->blocked_by, false);
        return;
    }
    flight->verdict = WR_VERDICT_EXPIRED;
    if (action->tag != 0) {
        flight->result.end = (enum wr_net_end)action->tag;
        flight->verdict = flight->result.end == WR_NET_BLOCKED ? WR_VERDICT_BLOCKED : WR_VERDICT_FAILED;
        wr_buf_append_string(&flight->words, wr_net_end_text(flight->result.end));
    } else {
        wr_buf_append_string(&flight->words, "the host could not be asked for too long: ");
        wr_buf_append_string(&flight->words, weir_reason_name(action->reason));
    }
    wr_job_told(flight->loop, WR_LEDGER_EXPIRED);
}

void wr_answer_end_unsent(struct wr_crawl_loop *loop, const struct wr_plan_action *action)
{
    struct wr_flight *flight = wr_flight_unsent(loop, action);
    if (flight == NULL)
        return;
    if (action->is_denied)
        flight->verdict = WR_VERDICT_ROBOTS;
    else
        end_deferred(flight);
    finish(flight);
}

void wr_answer_end_damaged(struct wr_crawl_loop *loop, const struct wr_plan_action *action, const char *why)
{
    struct wr_flight *flight = wr_flight_unsent(loop, action);
    if (flight == NULL)
        return;
    flight->verdict = WR_VERDICT_DAMAGED;
    wr_buf_append_string(&flight->words, why);
    finish(flight);
}

void wr_answer_end_not_due(struct wr_crawl_loop *loop, const struct wr_plan_action *action)
{
    struct wr_flight *flight = wr_flight_unsent(loop, action);
    if (flight == NULL)
        return;
    flight->verdict = WR_VERDICT_NOT_DUE;
    finish(flight);
}
