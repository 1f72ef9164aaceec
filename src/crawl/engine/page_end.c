/* SPDX-License-Identifier: MIT */
/* page_end.c - decides how a page ends: retried, redirected, read or failed; and writes its
 * line. */
#include "core/web/url/redirect.h"
#include "crawl/engine/engine_state.h"
#include "http/loop/round.h"
#include "http/loop/watchdog.h"
#include "http/net/idna.h"

#define SEED_HOPS 5 /* redirects of a seed whose targets count as seeds, too */

/* ---- reporting to the plan ---- */

/* Reports the end of a page to the plan. The host's gate learns only from outcomes that the host
 * caused. */
static struct wr_task_outcome report_page_to_plan(struct wr_crawl_fetch *fetch)
{
    struct wr_crawl_loop *loop = fetch->loop;
    const struct wr_net_result *result = &fetch->result;
    int64_t now = wr_crawl_loop_now(loop);
    uint32_t task = fetch->action.task;
    bool is_hosts = wr_crawl_fetch_is_caused_by_host(fetch);
    weir_outcome outcome = wr_crawl_fetch_outcome(fetch, wr_crawl_fetch_is_answered(fetch) ? result->status : 0, now);
    if (result->first_byte_at > result->sent_at)
        outcome.latency_ns = result->first_byte_at - result->sent_at;
    if (is_hosts && !fetch->was_sent) /* connecting counts as a request, too */
        wr_crawl_fetch_count_sent(fetch, now);
    if (wr_crawl_fetch_is_answered(fetch))
        return wr_plan_page_finished(loop->plan, task, &outcome, fetch->body_bytes, now);
    bool is_final = result->end == WR_NET_DONE ? result->status == 407 : result->retry == WR_NET_NEVER;
    return wr_plan_page_failed(loop->plan, task, is_hosts ? &outcome : NULL, is_final, now);
}

/* ---- redirects and links ---- */

uint64_t wr_engine_fingerprint(const struct wr_engine *engine, struct wr_span canonical)
{
    return wr_hash(&engine->hash_key, canonical.data, canonical.bytes);
}

static const enum wr_page_verdict refusals[] = {
    [WR_ADD_URL_SCOPE] = WR_VERDICT_SCOPE,   [WR_ADD_URL_DEPTH] = WR_VERDICT_DEPTH,
    [WR_ADD_URL_HOPS] = WR_VERDICT_HOPS,     [WR_ADD_URL_BUDGET] = WR_VERDICT_BUDGET,
    [WR_ADD_URL_TRAP] = WR_VERDICT_TRAP,     [WR_ADD_URL_OVER] = WR_VERDICT_CANCELLED,
    [WR_ADD_URL_MEMORY] = WR_VERDICT_FAILED,
};

/* Offers the target of a redirect as a link with one more hop. The target of a redirected seed
 * counts as a seed, because its user meant that site. */
static void follow_page_redirect(struct wr_crawl_fetch *fetch, const struct wr_url *to)
{
    struct wr_crawl_loop *loop = fetch->loop;
    char memory[WR_URL_ROOM];
    struct wr_url target;
    if (wr_url_canonical(to, memory, sizeof memory, &target) != WR_URL_OK) {
        fetch->verdict = WR_VERDICT_FAILED;
        wr_buf_append_string(&fetch->words, "it redirects to a URL that is too long");
        return;
    }
    struct wr_url_batch_entry link = {.fingerprint = wr_engine_fingerprint(loop->engine, wr_span_of(target.text)),
                                      .depth = fetch->action.depth,
                                      .hops = fetch->action.hops + 1,
                                      .is_seed = fetch->action.depth == 0 && fetch->action.hops < SEED_HOPS};
    link.parent = fetch->is_sitemap ? link.fingerprint : 0;
    link.is_sitemap = fetch->is_sitemap;
    if (link.is_seed)
        wr_engine_register_seed(loop->engine, &target, false);
    link.is_seed = link.is_seed || (link.is_sitemap && wr_crawl_sitemap_is_in_scope(fetch, &target));
    enum wr_add_url_verdict verdict = wr_url_batch_judge_link(loop, &fetch->urls, &target, &link);
    fetch->verdict = verdict < WR_ADD_URL_SCOPE ? WR_VERDICT_REDIRECT : refusals[verdict];
    wr_buf_append(&fetch->final_url, target.text, target.bytes);
}

static void offer_link(void *context, const struct wr_page_link *link)
{
    struct wr_crawl_fetch *fetch = context;
    const struct wr_url_batch_entry found = {
        .fingerprint = link->fingerprint, .parent = fetch->action.fingerprint, .depth = fetch->action.depth + 1};
    (void)wr_url_batch_judge_link(fetch->loop, &fetch->urls, link->url, &found);
}

/* Offers the host's sitemaps, then closes the page. Sitemaps come first, so that a link to one is
 * known as a sitemap. */
static void close_page(struct wr_crawl_fetch *fetch)
{
    WR_DOING("the facts of a page");
    wr_crawl_sitemaps_offer(fetch);
    if (!fetch->has_page)
        return;
    fetch->has_links = true;
    if (wr_page_close(&fetch->page) != 0)
        wr_job_end(fetch->loop->engine, WR_END_BROKEN, weir_error_text(WEIR_E_NOMEM));
    if ((fetch->result.is_truncated && !fetch->is_enough) || fetch->capture.is_cut)
        fetch->verdict = WR_VERDICT_TOO_LARGE;
    wr_crawl_sitemap_end(fetch);
}

/* Offers the links of a page for a limited time, because 10 000 links may take 100 ms. Links that
 * were offered are posted before the plan's next step. Returns false if links are left. */
static bool offer_links_for_a_while(struct wr_crawl_fetch *fetch)
{
    WR_DOING("links");
    struct wr_time_slice share = wr_time_slice_begin(WR_TIME_SLICE_NS);
    while (fetch->has_links && wr_time_slice_lasts(&share))
        fetch->has_links = wr_page_report(&fetch->page, offer_link, fetch);
    if (fetch->has_links && fetch->urls.count > 0)
        wr_crawl_fetch_post_urls(fetch->loop, &fetch->urls, false);
    return !fetch->has_links;
}

/* ---- verdicts ---- */

static void judge_page_response(struct wr_crawl_fetch *fetch)
{
    char memory[WR_URL_ROOM];
    struct wr_url to;
    int status = fetch->result.status;
    struct wr_redirect redirect =
        wr_redirect_read(status, wr_span_of("GET"), &fetch->url, wr_crawl_fetch_header(fetch, WR_RESPONSE_LOCATION),
                         wr_idna_libidn2(), memory, sizeof memory, &to);
    fetch->verdict = WR_VERDICT_FETCHED;
    if (fetch->firewall != WR_FIREWALL_NONE) {
        fetch->verdict = WR_VERDICT_BLOCKED;
        wr_firewall_set_error(fetch, fetch->firewall, true);
    } else if (redirect.kind == WR_REDIRECT_FOLLOW) {
        follow_page_redirect(fetch, &to);
    } else if (redirect.kind == WR_REDIRECT_BAD) {
        fetch->verdict = WR_VERDICT_FAILED;
        wr_buf_append_string(&fetch->words, "it redirects to a URL that cannot be fetched: ");
        wr_buf_append_string(&fetch->words, wr_url_fault_text(redirect.fault));
    } else if (fetch->is_sitemap && (status == 404 || status == 410)) {
        fetch->verdict = WR_VERDICT_ABSENT;
    } else if (fetch->fate.kind == WR_TASK_OUTCOME_FAILED || status >= 400) {
        fetch->verdict = WR_VERDICT_FAILED;
        wr_buf_append_string(&fetch->words, "the server answered ");
        wr_buf_append_u64(&fetch->words, (uint64_t)status);
    } else {
        close_page(fetch);
    }
}

/* Records the first failure of the run, so that the final report can name it. */
static void note_first_failure(const struct wr_crawl_fetch *fetch)
{
    struct wr_engine *engine = fetch->loop->engine;
    (void)pthread_mutex_lock(&engine->lock);
    if (engine->failed_url[0] == '\0') {
        wr_text_copy(engine->failed_url, sizeof engine->failed_url, fetch->url.text);
        wr_text_copy(engine->failed_why, sizeof engine->failed_why, fetch->words.length > 0 ? fetch->words.bytes : "");
    }
    (void)pthread_mutex_unlock(&engine->lock);
}

static bool is_page_verdict(enum wr_page_verdict verdict)
{
    return verdict == WR_VERDICT_FETCHED || verdict == WR_VERDICT_TOO_LARGE || verdict == WR_VERDICT_UNCHANGED;
}

static void count_verdict(const struct wr_crawl_fetch *fetch)
{
    struct wr_crawl_loop *loop = fetch->loop;
    enum wr_page_verdict verdict = fetch->verdict;
    WR_COUNT_UP(loop, pages);
    WR_COUNT_UP(loop, verdicts[verdict]);
    if (verdict == WR_VERDICT_UNCHANGED)
        WR_COUNT_UP(loop, unchanged);
    if (is_page_verdict(verdict))
        WR_COUNT_UP(loop, fetched);
    else if (verdict == WR_VERDICT_ROBOTS)
        WR_COUNT_UP(loop, denied);
    else if (verdict == WR_VERDICT_REDIRECT)
        WR_COUNT_UP(loop, redirects);
    if (!wr_page_verdict_is_failure(verdict))
        return;
    WR_COUNT_UP(loop, failed);
    note_first_failure(fetch);
}

/* ---- the output line ---- */

static int64_t duration_between(int64_t from, int64_t to)
{
    return from != 0 && to >= from ? to - from : -1;
}

/* Appends the error as a word for programs, such as "http_404". Appends nothing if the page was
 * fetched, redirected or unchanged. */
static void append_error_word(struct wr_buf *buf, const struct wr_crawl_fetch *fetch)
{
    const struct wr_net_result *result = &fetch->result;
    if (fetch->verdict == WR_VERDICT_FETCHED || fetch->verdict == WR_VERDICT_REDIRECT ||
        fetch->verdict == WR_VERDICT_UNCHANGED)
        return;
    if (result->end != WR_NET_DONE) {
        wr_buf_append_string(buf, wr_net_end_name(result->end));
    } else if (fetch->verdict == WR_VERDICT_BLOCKED) {
        wr_buf_append_string(buf, "firewall");
    } else if (result->status >= 400) {
        wr_buf_append_string(buf, "http_");
        wr_buf_append_u64(buf, (uint64_t)result->status);
    } else {
        wr_buf_append_string(buf, wr_page_verdict_name(fetch->verdict));
    }
}

static void write_page_line(struct wr_crawl_fetch *fetch)
{
    struct wr_crawl_loop *loop = fetch->loop;
    const struct wr_net_result *result = &fetch->result;
    char memory[32];
    struct wr_buf error;
    wr_buf_init_fixed(&error, memory, sizeof memory);
    append_error_word(&error, fetch);
    struct wr_span url = wr_url_part(&fetch->url, 0, fetch->url.bytes);
    struct wr_output_line line = {
        .url = url,
        .final_url = fetch->final_url.length > 0 ? wr_buf_from(&fetch->final_url, 0) : url,
        .status = result->status,
        .bytes = fetch->body_bytes,
        .content_type = wr_crawl_fetch_header(fetch, WR_RESPONSE_CONTENT_TYPE),
        .depth = fetch->action.depth,
        .referrer = fetch->is_sitemap ? (struct wr_span){NULL, 0} : wr_referrer_get(loop, fetch->action.fingerprint),
        .attempts = fetch->fate.attempts,
        .links = -1,
        .verdict = fetch->verdict,
        .error = wr_buf_from(&error, 0),
        .error_text = wr_buf_from(&fetch->words, 0),
        .waited = fetch->action.waited.ms,
        .dns_ns = duration_between(result->asked_at, result->resolved_at),
        .connect_ns = duration_between(result->resolved_at, result->sent_at),
        .first_byte_ns = duration_between(result->sent_at, result->first_byte_at),
        .total_ns = duration_between(result->asked_at, result->done_at),
    };
    if (is_page_verdict(fetch->verdict))
        line.digest = fetch->visit.digest;
    if (fetch->has_page && is_page_verdict(fetch->verdict)) {
        line.title = fetch->page.facts.title;
        line.links = fetch->page.facts.links;
        line.body = wr_span_of(fetch->capture.name);
    }
    wr_output_line_append(&fetch->line, &line);
}

/* ---- the end ---- */

static void finish_page(struct wr_crawl_fetch *fetch)
{
    wr_recrawl_visit_compare(fetch);
    count_verdict(fetch);
    write_page_line(fetch);
    wr_crawl_page_post(fetch);
}

static void retry_page(struct wr_crawl_fetch *fetch)
{
    fetch->is_again = true;
    wr_crawl_page_post(fetch);
}

void wr_crawl_page_arrived(struct wr_crawl_fetch *fetch)
{
    WR_DOING("the end of a page");
    struct wr_crawl_loop *loop = fetch->loop;
    wr_firewall_note_response(fetch);
    wr_crawl_fetch_hold_host(fetch);
    struct wr_task_outcome fate = fetch->fate = report_page_to_plan(fetch);
    if ((fate.news & (WR_GATE_CHANGE_RETRY_AFTER | WR_GATE_CHANGE_BREAKER)) != 0)
        wr_crawl_loop_save_host(loop, fetch->action.host);
    if ((fate.news & WR_GATE_CHANGE_HOPELESS) != 0)
        wr_job_end(loop->engine, WR_END_CANCELLED, "too many 429 responses in a row at a delay of a minute or more");
    if (fate.kind == WR_TASK_OUTCOME_RETRY)
        retry_page(fetch);
    else
        wr_capture_finish(fetch);
}

void wr_crawl_page_end(struct wr_crawl_fetch *fetch)
{
    struct wr_crawl_loop *loop = fetch->loop;
    if (fetch->is_left) {
        wr_crawl_fetch_recycle(fetch);
        return;
    }
    if (wr_crawl_sitemap_defers_end(fetch))
        return;
    if (wr_crawl_fetch_is_answered(fetch)) {
        wr_buf_clear(&fetch->words);
        judge_page_response(fetch);
    } else {
        fetch->verdict = fetch->result.end == WR_NET_BLOCKED ? WR_VERDICT_BLOCKED : WR_VERDICT_FAILED;
    }
    wr_job_count_task_end(loop, wr_ledger_end_of(&fetch->fate, fetch->result.status));
    wr_crawl_page_offer_links(fetch);
}

void wr_crawl_page_offer_links(struct wr_crawl_fetch *fetch)
{
    if (offer_links_for_a_while(fetch)) {
        finish_page(fetch);
        return;
    }
    fetch->loop->telling += !fetch->offers_links;
    fetch->offers_links = true;
    wr_crawl_sitemap_defer_links(fetch);
}

/* Sets the verdict of a task that was not sent: its host is blocked by a firewall, was given up
 * (`tag` is the enum wr_net_end), or held the task for too long. */
static void end_deferred_page(struct wr_crawl_fetch *fetch)
{
    const struct wr_plan_action *action = &fetch->action;
    if (action->blocked_by != 0) { /* not counted as a failure in a row: nothing was sent */
        fetch->verdict = WR_VERDICT_BLOCKED;
        wr_firewall_set_error(fetch, (enum wr_firewall)action->blocked_by, false);
        return;
    }
    fetch->verdict = WR_VERDICT_EXPIRED;
    if (action->tag != 0) {
        fetch->result.end = (enum wr_net_end)action->tag;
        fetch->verdict = fetch->result.end == WR_NET_BLOCKED ? WR_VERDICT_BLOCKED : WR_VERDICT_FAILED;
        wr_buf_append_string(&fetch->words, wr_net_end_text(fetch->result.end));
    } else {
        wr_buf_append_string(&fetch->words, "its host held it back for too long: ");
        wr_buf_append_string(&fetch->words, weir_reason_name(action->reason));
    }
    wr_job_count_task_end(fetch->loop, WR_LEDGER_EXPIRED);
}

void wr_crawl_page_end_unsent(struct wr_crawl_loop *loop, const struct wr_plan_action *action)
{
    struct wr_crawl_fetch *fetch = wr_crawl_fetch_new_unsent(loop, action);
    if (fetch == NULL)
        return;
    if (action->is_denied)
        fetch->verdict = WR_VERDICT_ROBOTS;
    else
        end_deferred_page(fetch);
    finish_page(fetch);
}

void wr_crawl_page_end_damaged(struct wr_crawl_loop *loop, const struct wr_plan_action *action, const char *why)
{
    struct wr_crawl_fetch *fetch = wr_crawl_fetch_new_unsent(loop, action);
    if (fetch == NULL)
        return;
    fetch->verdict = WR_VERDICT_DAMAGED;
    wr_buf_append_string(&fetch->words, why);
    finish_page(fetch);
}

void wr_crawl_page_end_not_due(struct wr_crawl_loop *loop, const struct wr_plan_action *action)
{
    struct wr_crawl_fetch *fetch = wr_crawl_fetch_new_unsent(loop, action);
    if (fetch == NULL)
        return;
    fetch->verdict = WR_VERDICT_NOT_DUE;
    finish_page(fetch);
}
