/* SPDX-License-Identifier: MIT */
/* fetch_result.c - decides after a response: follow a redirect, retry, or end the fetch. */
#include "core/web/url/redirect.h"
#include "http/client/client_internal.h"
#include "http/net/idna.h"

#define SCARCE_NS_MAX (30 * WEIR_SECOND)

static bool is_redirect(const struct weir_fetch *fetch, int status, const struct wr_buf *head)
{
    return fetch->robots == NULL && fetch->client->options.max_redirects > 0 && wr_status_redirects(status) &&
           wr_fields_value(head, "Location").bytes > 0;
}

static enum wr_status_class class_of_result(const struct weir_fetch *fetch, const struct wr_fetch_result *ended)
{
    if (fetch->robots != NULL || fetch->tries_once || ended->is_body_delivered)
        return WR_STATUS_DONE;
    if (ended->failure != WEIR_FAILURE_NONE)
        return ended->retry == WR_NET_LATER ? WR_STATUS_TRANSIENT : WR_STATUS_PERMANENT;
    enum wr_status_class class = wr_status_class(&fetch->client->statuses, ended->status);
    return wr_net_is_idempotent(fetch->method) ? class : WR_STATUS_DONE;
}

bool wr_fetch_is_delivered(const struct weir_fetch *fetch, int status, const struct wr_buf *head)
{
    struct wr_attempts attempts = fetch->attempts;
    const struct wr_fetch_result ended = {.status = status};
    if (is_redirect(fetch, status, head))
        return false;
    return wr_attempts_after(&attempts, &fetch->retry, class_of_result(fetch, &ended), 0, wr_client_now(fetch->client),
                             0)
               .what != WR_RETRY_QUEUE;
}

/* ---- retries ---- */

static void back_off(struct weir_fetch *fetch, int64_t delay_ns, weir_reason reason)
{
    weir_client *client = fetch->client;
    fetch->place = WR_FETCH_STATE_BACKOFF;
    fetch->backoff_reason = reason;
    fetch->joined_at = wr_client_now(client);
    wr_origin_queue_release(fetch);
    /* A retry is due before the deadline, so the timer may replace it. */
    if (wr_client_timer_set(client, &fetch->due, fetch->joined_at + delay_ns) != 0)
        wr_fetch_fail(fetch, WEIR_FAILURE_INTERNAL, weir_error_text(WEIR_E_NOMEM));
}

void wr_fetch_defer(struct weir_fetch *fetch, int64_t wait_ns)
{
    struct wr_next_attempt next = wr_attempts_defer(&fetch->attempts, wait_ns, wr_client_now(fetch->client));
    if (next.what == WR_RETRY_QUEUE)
        back_off(fetch, next.delay_ns, WEIR_REASON_RETRY);
    else
        wr_fetch_fail(fetch, WEIR_FAILURE_DEADLINE, "not finished before the deadline");
}

/* Returns how long the host's gate stays closed, ns, and in `ret_reason` why. */
static int64_t gate_wait(const struct weir_fetch *fetch, weir_reason *ret_reason)
{
    weir_pace_entry entry;
    const struct wr_origin_queue *origin_queue = fetch->origin_queue;
    if (weir_pacer_inspect(fetch->client->pacer, origin_queue->key, origin_queue->key_bytes, &entry, NULL, NULL) != 0)
        return 0;
    int64_t wait_ns = entry.decision.verdict == WEIR_GO ? 0 : entry.decision.wait_ns;
    *ret_reason = entry.decision.reason;
    /* A longer wait lasts until a request finishes; the origin queue waits for that. */
    return wait_ns <= WEIR_DURATION_MAX ? wait_ns : 0;
}

/* Schedules a retry if the result calls for one. Returns false if the fetch is over. */
static bool schedule_retry(struct weir_fetch *fetch, const struct wr_fetch_result *ended)
{
    weir_client *client = fetch->client;
    enum wr_status_class class = class_of_result(fetch, ended);
    weir_reason gate_reason = WEIR_REASON_RETRY;
    int64_t wait_ns = class == WR_STATUS_DONE || class == WR_STATUS_PERMANENT ? 0 : gate_wait(fetch, &gate_reason);
    if (wr_is_deferral(gate_reason) && wait_ns > client->options.max_defer_ns)
        return false; /* the retry counts as too late */
    struct wr_next_attempt next = wr_attempts_after(&fetch->attempts, &fetch->retry, class, wait_ns,
                                                    wr_client_now(client), wr_rng_unit(&client->rng));
    if (next.what != WR_RETRY_QUEUE)
        return false;
    back_off(fetch, next.delay_ns, next.delay_ns > wait_ns ? WEIR_REASON_RETRY : gate_reason);
    return true;
}

/* ---- redirects ---- */

static void end_with_failure(struct weir_fetch *fetch, const struct wr_fetch_result *ended, weir_failure failure,
                             const char *detail)
{
    struct wr_fetch_result bad = *ended;
    bad.failure = failure;
    bad.detail = detail;
    wr_fetch_end(fetch, &bad);
}

static void follow_redirect(struct weir_fetch *fetch, const struct wr_fetch_result *ended)
{
    char memory[WR_URL_ROOM];
    struct wr_url to;
    struct wr_redirect redirect =
        wr_redirect_read(ended->status, wr_span_of(fetch->method), &fetch->url,
                         wr_fields_value(ended->head, "Location"), wr_idna_libidn2(), memory, sizeof memory, &to);
    bool takes_body_away = !redirect.keeps_origin && !redirect.becomes_get && fetch->body_bytes > 0;
    if (redirect.kind == WR_REDIRECT_BAD) {
        end_with_failure(fetch, ended, WEIR_FAILURE_REDIRECT, wr_url_fault_text(redirect.fault));
    } else if (takes_body_away) {
        /* A body meant for one origin is not sent to another. The caller may do so. */
        wr_fetch_end(fetch, ended);
    } else if (fetch->hops == fetch->client->options.max_redirects) {
        end_with_failure(fetch, ended, WEIR_FAILURE_REDIRECT, "too many redirects");
    } else if (wr_fetch_set_url(fetch, &to) != 0) {
        end_with_failure(fetch, ended, WEIR_FAILURE_INTERNAL, weir_error_text(WEIR_E_NOMEM));
    } else {
        fetch->hops++;
        fetch->sent = 0;
        fetch->left_first_origin = fetch->left_first_origin || !redirect.keeps_origin;
        if (redirect.becomes_get) {
            fetch->method = "GET";
            fetch->body = NULL;
            fetch->body_bytes = 0;
        }
        wr_origin_queue_release(fetch);
        wr_fetch_enqueue(fetch, true);
    }
}

/* Returns true if the fetch only has to wait for memory or a descriptor. With nothing else in
 * flight, nothing will be freed, so it then gives up after SCARCE_NS_MAX. A request that was sent
 * and must not be repeated, or whose body was passed on, is not retried. */
static bool waits_for_resources(struct weir_fetch *fetch, const struct wr_fetch_result *ended)
{
    weir_client *client = fetch->client;
    int64_t now = wr_client_now(client);
    if (ended->end != WR_NET_SCARCE) {
        client->scarce_since = 0;
        return false;
    }
    if (client->scarce_since == 0)
        client->scarce_since = now;
    bool is_alone = atomic_load_explicit(&client->in_flight, memory_order_relaxed) <= 1;
    return ended->retry == WR_NET_FREE && !ended->is_body_delivered &&
           !(is_alone && now - client->scarce_since > SCARCE_NS_MAX);
}

void wr_fetch_on_result(struct weir_fetch *fetch, const struct wr_fetch_result *ended)
{
    bool waits = waits_for_resources(fetch, ended);
    if (ended->end == WR_NET_REFUSED) { /* before_send refused: the gate has closed */
        wr_origin_queue_release(fetch);
        wr_fetch_enqueue(fetch, true);
    } else if (waits) {
        wr_fetch_defer(fetch, 0);
    } else if (ended->failure == WEIR_FAILURE_NONE && is_redirect(fetch, ended->status, ended->head)) {
        follow_redirect(fetch, ended);
    } else if (!schedule_retry(fetch, ended)) {
        wr_fetch_end(fetch, ended);
    }
}
