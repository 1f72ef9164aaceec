/* SPDX-License-Identifier: MIT */
/* wire_request.c - one request on the wire: sends it, receives the response, reports to the gate.
 *
 * An abandoned request continues by itself until its transfer has ended; the fetch is gone by then.
 */
#include "base/alloc.h"
#include "core/web/http/server_limits.h"
#include "http/client/client_internal.h"
#include "limiter/pacer/delay.h"

/* Bytes of an unwanted body that are read and dropped. With more, a new connection is cheaper. */
#define SKIPPED_MAX ((uint64_t)64 << 10)
#define KEPT_MAX ((size_t)64 << 10) /* largest head buffer kept for reuse, bytes */

struct wr_wire_request {
    weir_client *client;
    struct weir_fetch *fetch; /* NULL: the request was abandoned */
    struct wr_transfer *transfer;
    weir_permit permit;
    bool is_wanted; /* the body is stored or passed to on_body */
    uint64_t body_bytes;
    weir_server_limits said;
    int64_t said_at;
    struct wr_buf head, body;
    struct wr_wire_request *next_spare;
};

/* ---- reuse of wr_wire_request structs ---- */

static struct wr_wire_request *take_wire_request(weir_client *client)
{
    struct wr_wire_request *wire_request = client->spare_wire_requests;
    if (wire_request != NULL) {
        client->spare_wire_requests = wire_request->next_spare;
    } else {
        wire_request = wr_alloc(client->allocator, sizeof *wire_request, _Alignof(struct wr_wire_request));
        if (wire_request == NULL)
            return NULL;
        wire_request->client = client;
        wr_buf_init(&wire_request->head, client->allocator, (size_t)client->options.max_header_bytes);
    }
    (void)atomic_fetch_add_explicit(&client->in_flight, 1, memory_order_relaxed);
    return wire_request;
}

/* Empties the head for the next response, and frees an unusually large buffer. */
static void empty_head(struct wr_wire_request *wire_request)
{
    if (wire_request->head.room > KEPT_MAX) {
        wr_buf_release(&wire_request->head);
        wr_buf_init(&wire_request->head, wire_request->client->allocator,
                    (size_t)wire_request->client->options.max_header_bytes);
    }
    wr_buf_clear(&wire_request->head);
}

static void give_wire_request(struct wr_wire_request *wire_request)
{
    weir_client *client = wire_request->client;
    (void)atomic_fetch_sub_explicit(&client->in_flight, 1, memory_order_relaxed);
    empty_head(wire_request);
    wr_buf_release(&wire_request->body);
    wire_request->fetch = NULL;
    wire_request->next_spare = client->spare_wire_requests;
    client->spare_wire_requests = wire_request;
}

void wr_wire_requests_free(weir_client *client)
{
    struct wr_wire_request *wire_request = client->spare_wire_requests;
    while (wire_request != NULL) {
        struct wr_wire_request *next = wire_request->next_spare;
        wr_buf_release(&wire_request->head);
        wr_free(client->allocator, wire_request, sizeof *wire_request, _Alignof(struct wr_wire_request));
        wire_request = next;
    }
    client->spare_wire_requests = NULL;
}

/* ---- sending ---- */

/* Asks the gate for a second start, to resend a request whose reused connection was dead. Reports
 * the first start as failed, because a reset connection may be a refusal. A connection to a proxy
 * is not the host's, so its failure is not reported. Returns false if the gate refuses. */
static bool ask_gate_again(struct wr_wire_request *wire_request)
{
    const struct wr_origin_queue *origin_queue = wire_request->fetch->origin_queue;
    const weir_outcome lost = {.size = sizeof lost, .status = 0, .attempt = wire_request->fetch->sent};
    weir_decision decision;
    if (wire_request->client->options.proxy == NULL)
        (void)weir_permit_finish(&wire_request->permit, &lost);
    else
        weir_permit_abandon(&wire_request->permit);
    return weir_pacer_try(wire_request->client->pacer, origin_queue->key, origin_queue->key_bytes, NULL,
                          WEIR_REPORTS_SENT, &wire_request->permit, &decision) == 0 &&
           decision.verdict == WEIR_GO;
}

static bool before_wire_send(void *context, const struct wr_net_send *send)
{
    struct wr_wire_request *wire_request = context;
    struct weir_fetch *fetch = wire_request->fetch;
    weir_client *client = wire_request->client;
    if (fetch == NULL || (send->number > 1 && !ask_gate_again(wire_request)) ||
        weir_permit_sent(&wire_request->permit) != 0)
        return false;
    fetch->origin_queue->since = send->now;
    fetch->sent++;
    (void)atomic_fetch_add_explicit(&client->requests, 1, memory_order_relaxed);
    if (fetch->sent > 1)
        (void)atomic_fetch_add_explicit(&client->retries, 1, memory_order_relaxed);
    if (fetch->robots != NULL)
        (void)atomic_fetch_add_explicit(&client->robots, 1, memory_order_relaxed);
    return true;
}

static void on_wire_late(void *context, int64_t now)
{
    struct wr_wire_request *wire_request = context;
    if (wire_request->fetch != NULL)
        wire_request->fetch->origin_queue->since = now;
    weir_permit_sent_late(&wire_request->permit);
}

/* ---- receiving ---- */

static void read_head_limits(struct wr_wire_request *wire_request, const struct wr_head *head)
{
    struct wr_server_limits limits;
    struct wr_span name, value;
    wr_server_limits_init(&limits, weir_wall_now());
    for (size_t cursor = 0; wr_head_next(head, &cursor, &name, &value);)
        wr_server_limits_field(&limits, name, value);
    wire_request->said = wr_server_limits_result(&limits);
    wire_request->said_at = wr_client_now(wire_request->client);
}

static weir_outcome wire_outcome(const struct wr_wire_request *wire_request, int status)
{
    weir_outcome outcome = {.size = sizeof outcome, .status = status, .attempt = wire_request->fetch->sent};
    wr_server_limits_to_outcome(&wire_request->said, wr_client_now(wire_request->client) - wire_request->said_at,
                                &outcome);
    return outcome;
}

/* Reports a waiting time in the head at once, so that it binds the host's other requests even while
 * the body arrives slowly. */
static void report_limits_early(struct wr_wire_request *wire_request, int status)
{
    weir_outcome outcome = wire_outcome(wire_request, status);
    if ((outcome.has_retry_after || outcome.has_quota) && !wr_net_is_proxy_response(wire_request->transfer))
        (void)weir_permit_head(&wire_request->permit, &outcome);
}

/* Asks on_status whether a streamed body is wanted, but only if this response is delivered. */
static bool is_body_wanted(const struct wr_wire_request *wire_request, int status)
{
    struct weir_fetch *fetch = wire_request->fetch;
    if (fetch->on_body == NULL)
        return true;
    return wr_fetch_is_delivered(fetch, status, &wire_request->head) &&
           (fetch->on_status == NULL || fetch->on_status(fetch->body_context, status));
}

static bool on_wire_head(void *context, const struct wr_head *head)
{
    struct wr_wire_request *wire_request = context;
    if (wire_request->fetch == NULL)
        return false;
    read_head_limits(wire_request, head);
    report_limits_early(wire_request, head->status);
    wr_fields_append(&wire_request->head, head);
    wire_request->is_wanted = is_body_wanted(wire_request, head->status);
    return true;
}

static bool on_wire_body(void *context, const char *data, size_t bytes)
{
    struct wr_wire_request *wire_request = context;
    struct weir_fetch *fetch = wire_request->fetch;
    if (fetch == NULL)
        return false;
    wire_request->body_bytes += bytes;
    if (!wire_request->is_wanted)
        return wire_request->body_bytes <= SKIPPED_MAX;
    (void)atomic_fetch_add_explicit(&wire_request->client->body_bytes, bytes, memory_order_relaxed);
    if (fetch->on_body != NULL)
        return fetch->on_body(fetch->body_context, data, bytes);
    wr_buf_append(&wire_request->body, data, bytes);
    return wire_request->body.error == 0;
}

/* ---- ending ---- */

static const weir_failure failures[] = {
    [WR_NET_DONE] = WEIR_FAILURE_NONE,
    [WR_NET_CANCELLED] = WEIR_FAILURE_CANCELLED,
    [WR_NET_REFUSED] = WEIR_FAILURE_INTERNAL, /* never delivered: the fetch is queued again */
    [WR_NET_SCARCE] = WEIR_FAILURE_INTERNAL,
    [WR_NET_BLOCKED] = WEIR_FAILURE_GUARD,
    [WR_NET_NO_NAME] = WEIR_FAILURE_DNS,
    [WR_NET_NAME_FAILED] = WEIR_FAILURE_DNS,
    [WR_NET_CONNECT] = WEIR_FAILURE_CONNECT,
    [WR_NET_CONNECT_TIMEOUT] = WEIR_FAILURE_CONNECT_TIMEOUT,
    [WR_NET_TLS] = WEIR_FAILURE_TLS,
    [WR_NET_FIRST_BYTE_TIMEOUT] = WEIR_FAILURE_FIRST_BYTE_TIMEOUT,
    [WR_NET_TOTAL_TIMEOUT] = WEIR_FAILURE_TOTAL_TIMEOUT,
    [WR_NET_TOO_SLOW] = WEIR_FAILURE_SLOW,
    [WR_NET_BROKEN] = WEIR_FAILURE_BROKEN,
    [WR_NET_PROTOCOL] = WEIR_FAILURE_FRAMING,
    [WR_NET_CODING] = WEIR_FAILURE_ENCODING,
    [WR_NET_PROXY] = WEIR_FAILURE_PROXY,
};

/* Reports the outcome to the gate if the host caused it. Otherwise releases the permit, because the
 * gate must not learn from failures of a proxy or of this machine. */
static void report_to_gate(struct wr_wire_request *wire_request, const struct wr_net_result *result)
{
    bool is_hosts =
        result->end == WR_NET_DONE ? result->blame != WR_NET_BLAME_PROXY : result->blame == WR_NET_BLAME_HOST;
    if (!is_hosts) {
        weir_permit_abandon(&wire_request->permit);
        return;
    }
    weir_outcome outcome = wire_outcome(wire_request, result->end == WR_NET_DONE ? result->status : 0);
    if (result->first_byte_at > result->sent_at)
        outcome.latency_ns = result->first_byte_at - result->sent_at;
    (void)weir_permit_finish(&wire_request->permit, &outcome);
}

/* Returns true if the connection was dead and the gate refused the second start. This counts as an
 * attempt, otherwise a request that the server never answers would be resent without end. */
static bool was_resend_refused(const struct wr_wire_request *wire_request, const struct wr_net_result *result)
{
    return result->end == WR_NET_REFUSED && result->sends > 0 && wire_request->client->options.proxy == NULL;
}

static struct wr_fetch_result describe_result(struct wr_wire_request *wire_request, const struct wr_net_result *result)
{
    bool is_whole = result->end == WR_NET_DONE;
    struct wr_fetch_result ended = {
        .end = result->end,
        .retry = result->retry,
        .status = result->status,
        .failure = failures[result->end],
        .detail = is_whole ? NULL : result->words,
        .head = &wire_request->head,
        .body = &wire_request->body,
        .body_bytes = (size_t)wire_request->body_bytes,
        .is_truncated = result->is_truncated || (!is_whole && result->status != 0) || !wire_request->is_wanted,
        .is_body_delivered =
            wire_request->is_wanted && wire_request->fetch->on_body != NULL && wire_request->body_bytes > 0,
        .latency_ns = result->first_byte_at > result->sent_at ? result->first_byte_at - result->sent_at : 0,
        .said = wire_request->said,
    };
    if (was_resend_refused(wire_request, result)) {
        ended.end = WR_NET_BROKEN;
        ended.failure = WEIR_FAILURE_BROKEN;
        ended.retry = WR_NET_LATER;
        ended.detail = "closed by the server";
    }
    if (is_whole && result->blame == WR_NET_BLAME_PROXY) {
        ended.failure = WEIR_FAILURE_PROXY;
        ended.detail = "this is the proxy's response, not the host's";
        ended.retry = result->status == 407 ? WR_NET_NEVER : WR_NET_LATER;
    }
    if (is_whole && (wire_request->head.error == WEIR_E_NOMEM || wire_request->body.error == WEIR_E_NOMEM)) {
        ended.failure = WEIR_FAILURE_INTERNAL;
        ended.detail = "out of memory for the response";
    }
    return ended;
}

static void on_wire_done(void *context, const struct wr_net_result *result)
{
    struct wr_wire_request *wire_request = context;
    struct weir_fetch *fetch = wire_request->fetch;
    char address[WEIR_ADDRESS_MAX + 1];
    if (fetch == NULL) { /* abandoned: wr_wire_request_abandon has released the permit */
        give_wire_request(wire_request);
        return;
    }
    struct wr_fetch_result ended = describe_result(wire_request, result);
    if (result->port != 0) {
        struct wr_buf text;
        wr_buf_init_fixed(&text, address, sizeof address);
        wr_address_append(&text, &result->address);
        ended.address = address;
    }
    report_to_gate(wire_request, result);
    fetch->wire_request = NULL;
    wr_fetch_on_result(fetch, &ended);
    give_wire_request(wire_request);
}

void wr_wire_request_abandon(struct weir_fetch *fetch)
{
    struct wr_wire_request *wire_request = fetch->wire_request;
    if (wire_request == NULL)
        return;
    fetch->wire_request = NULL;
    wire_request->fetch = NULL;
    weir_permit_abandon(&wire_request->permit);
    wr_net_cancel(wire_request->transfer);
}

/* ---- starting ---- */

static void add_header_line(struct wr_net_field *fields, size_t *count, const char *line)
{
    struct wr_span name = wr_header_name(line);
    struct wr_span value = wr_span_trim(wr_span_of(line + name.bytes + 1));
    if (value.bytes > 0) /* "Name:" suppresses the field */
        fields[(*count)++] = (struct wr_net_field){name, value};
}

/* Collects the header fields of the request. Those of the caller and the client go to the first
 * origin only. */
static size_t collect_fields(const struct weir_fetch *fetch, struct wr_net_field *ret_fields)
{
    size_t count = 0;
    if (fetch->left_first_origin || fetch->robots != NULL)
        return 0;
    const char *own = fetch->client->headers;
    for (const char *line = *own != '\0' ? own : NULL; line != NULL; line = wr_headers_next(line))
        if (!wr_headers_has(fetch->headers, wr_header_name(line)))
            add_header_line(ret_fields, &count, line);
    if (fetch->headers != NULL && *fetch->headers != '\0')
        for (const char *line = fetch->headers; line != NULL; line = wr_headers_next(line))
            add_header_line(ret_fields, &count, line);
    if (fetch->authorization != NULL)
        add_header_line(ret_fields, &count, fetch->authorization);
    return count;
}

/* Returns true if the connection would stay idle and should be closed. Either the host's next start
 * comes too late to reuse it, or no fetch waits and most connections are open. */
static bool closes_after_response(const struct weir_fetch *fetch)
{
    const struct wr_origin_queue *origin_queue = fetch->origin_queue;
    const struct wr_net *net = fetch->client->net;
    struct wr_net_stats stats;
    if (wr_pacer_delay(fetch->client->pacer, origin_queue->key, origin_queue->key_bytes) >= WR_NET_IDLE_NS)
        return true;
    wr_net_stats(net, &stats);
    return origin_queue->first == NULL && stats.connections > wr_net_connections(net) / 2;
}

static int start_transfer(struct weir_fetch *fetch, struct wr_wire_request *wire_request)
{
    static const struct wr_net_callbacks calls = {before_wire_send, on_wire_late, on_wire_head,
                                                  on_wire_body,     on_wire_done, NULL};
    struct wr_net_field fields[2 * WR_HEADERS_MAX + 1];
    bool is_first = fetch->hops == 0;
    struct wr_net_request request = {
        .url = &fetch->url,
        .method = fetch->method,
        .fields = fields,
        .field_count = collect_fields(fetch, fields),
        .etag = wr_span_of(is_first ? fetch->etag : NULL),
        .last_modified = wr_span_of(is_first ? fetch->last_modified : NULL),
        .body = {fetch->body, fetch->body_bytes},
        .body_max = fetch->max_body_bytes,
        .is_last = closes_after_response(fetch),
    };
    return wr_net_start(wire_request->client->net, &request, &calls, wire_request, &wire_request->transfer);
}

void wr_wire_request_start(struct weir_fetch *fetch, const weir_permit *permit)
{
    weir_client *client = fetch->client;
    weir_permit held = *permit;
    struct wr_wire_request *wire_request = take_wire_request(client);
    fetch->place = WR_FETCH_STATE_ON_WIRE;
    if (wire_request == NULL) {
        weir_permit_abandon(&held);
        wr_fetch_fail(fetch, WEIR_FAILURE_INTERNAL, weir_error_text(WEIR_E_NOMEM));
        return;
    }
    wire_request->permit = held;
    wire_request->fetch = fetch;
    wire_request->body_bytes = 0;
    wire_request->is_wanted = true;
    wire_request->said = (weir_server_limits)WR_NO_LIMITS_REPORTED;
    wr_buf_init(&wire_request->body, client->allocator, (size_t)fetch->max_body_bytes);
    fetch->wire_request = wire_request;
    int error = start_transfer(fetch, wire_request);
    if (error == 0)
        return;
    fetch->wire_request = NULL;
    weir_permit_abandon(&wire_request->permit);
    give_wire_request(wire_request);
    bool is_alone = atomic_load_explicit(&client->in_flight, memory_order_relaxed) == 0;
    /* Requests in flight will free transfers or memory. */
    if (error == WEIR_E_FULL || (error == WEIR_E_NOMEM && !is_alone))
        wr_fetch_defer(fetch, 0);
    else
        wr_fetch_fail(fetch, WEIR_FAILURE_INTERNAL,
                      error == WEIR_E_INVAL ? weir_error_detail() : weir_error_text(error));
}
