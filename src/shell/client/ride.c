/* SPDX-License-Identifier: MIT */
/* ride.c - one request on the wire: sends it, receives the response, reports to the gate.
 *
 * An abandoned request continues by itself until its transfer has ended; the fetch is gone by then.
 */
#include "base/alloc.h"
#include "core/rules/http/limits.h"
#include "shell/client/client.h"
#include "shell/hosts/delay.h"

/* Bytes of an unwanted body that are read and dropped. With more, a new connection is cheaper. */
#define SKIPPED_MAX ((uint64_t)64 << 10)
#define KEPT_MAX ((size_t)64 << 10) /* largest head buffer kept for reuse, bytes */

struct wr_ride {
    weir_client *client;
    struct weir_fetch *fetch; /* NULL: the request was abandoned */
    struct wr_transfer *transfer;
    weir_permit permit;
    bool is_wanted; /* the body is stored or passed to on_body */
    uint64_t body_bytes;
    weir_said said;
    int64_t said_at;
    struct wr_buf head, body;
    struct wr_ride *next_spare;
};

/* ---- reuse of wr_ride structs ---- */

static struct wr_ride *take_ride(weir_client *client)
{
    struct wr_ride *ride = client->spare_rides;
    if (ride != NULL) {
        client->spare_rides = ride->next_spare;
    } else {
        ride = wr_take(client->allocator, sizeof *ride, _Alignof(struct wr_ride));
        if (ride == NULL)
            return NULL;
        ride->client = client;
        wr_buf_init(&ride->head, client->allocator, (size_t)client->options.max_header_bytes);
    }
    (void)atomic_fetch_add_explicit(&client->in_flight, 1, memory_order_relaxed);
    return ride;
}

/* Empties the head for the next response, and frees an unusually large buffer. */
static void empty_head(struct wr_ride *ride)
{
    if (ride->head.room > KEPT_MAX) {
        wr_buf_release(&ride->head);
        wr_buf_init(&ride->head, ride->client->allocator, (size_t)ride->client->options.max_header_bytes);
    }
    wr_buf_clear(&ride->head);
}

static void give_ride(struct wr_ride *ride)
{
    weir_client *client = ride->client;
    (void)atomic_fetch_sub_explicit(&client->in_flight, 1, memory_order_relaxed);
    empty_head(ride);
    wr_buf_release(&ride->body);
    ride->fetch = NULL;
    ride->next_spare = client->spare_rides;
    client->spare_rides = ride;
}

void wr_rides_free(weir_client *client)
{
    struct wr_ride *ride = client->spare_rides;
    while (ride != NULL) {
        struct wr_ride *next = ride->next_spare;
        wr_buf_release(&ride->head);
        wr_give(client->allocator, ride, sizeof *ride, _Alignof(struct wr_ride));
        ride = next;
    }
    client->spare_rides = NULL;
}

/* ---- sending ---- */

/* Asks the gate for a second start, to resend a request whose reused connection was dead. Reports
 * the first start as failed, because a reset connection may be a refusal. A connection to a proxy
 * is not the host's, so its failure is not reported. Returns false if the gate refuses. */
static bool asks_again(struct wr_ride *ride)
{
    const struct wr_lane *lane = ride->fetch->lane;
    const weir_outcome lost = {.size = sizeof lost, .status = 0, .attempt = ride->fetch->sent};
    weir_decision decision;
    if (ride->client->options.proxy == NULL)
        (void)weir_permit_tell(&ride->permit, &lost);
    else
        weir_permit_release(&ride->permit);
    return weir_pacer_try(ride->client->pacer, lane->key, lane->key_bytes, NULL, WEIR_REPORTS_SENT, &ride->permit,
                          &decision) == 0 &&
           decision.verdict == WEIR_GO;
}

static bool before_send(void *context, const struct wr_net_send *send)
{
    struct wr_ride *ride = context;
    struct weir_fetch *fetch = ride->fetch;
    weir_client *client = ride->client;
    if (fetch == NULL || (send->number > 1 && !asks_again(ride)) || weir_permit_sent(&ride->permit) != 0)
        return false;
    fetch->lane->since = send->now;
    fetch->sent++;
    (void)atomic_fetch_add_explicit(&client->requests, 1, memory_order_relaxed);
    if (fetch->sent > 1)
        (void)atomic_fetch_add_explicit(&client->retries, 1, memory_order_relaxed);
    if (fetch->robots != NULL)
        (void)atomic_fetch_add_explicit(&client->robots, 1, memory_order_relaxed);
    return true;
}

static void on_late(void *context, int64_t now)
{
    struct wr_ride *ride = context;
    if (ride->fetch != NULL)
        ride->fetch->lane->since = now;
    weir_permit_late(&ride->permit);
}

/* ---- receiving ---- */

static void read_limits(struct wr_ride *ride, const struct wr_head *head)
{
    struct wr_limits limits;
    struct wr_span name, value;
    wr_limits_init(&limits, weir_wall_now());
    for (size_t cursor = 0; wr_head_next(head, &cursor, &name, &value);)
        wr_limits_field(&limits, name, value);
    ride->said = wr_limits_result(&limits);
    ride->said_at = wr_client_now(ride->client);
}

static weir_outcome outcome_of(const struct wr_ride *ride, int status)
{
    weir_outcome outcome = {.size = sizeof outcome, .status = status, .attempt = ride->fetch->sent};
    wr_limits_tell(&ride->said, wr_client_now(ride->client) - ride->said_at, &outcome);
    return outcome;
}

/* Reports a waiting time in the head at once, so that it binds the host's other requests even while
 * the body arrives slowly. */
static void obey_head(struct wr_ride *ride, int status)
{
    weir_outcome outcome = outcome_of(ride, status);
    if ((outcome.has_retry_after || outcome.has_quota) && !wr_net_is_proxys(ride->transfer))
        (void)weir_permit_hear(&ride->permit, &outcome);
}

/* Asks on_status whether a streamed body is wanted, but only if this response is delivered. */
static bool is_body_wanted(const struct wr_ride *ride, int status)
{
    struct weir_fetch *fetch = ride->fetch;
    if (fetch->on_body == NULL)
        return true;
    return wr_answer_is_last(fetch, status, &ride->head) &&
           (fetch->on_status == NULL || fetch->on_status(fetch->body_context, status));
}

static bool on_head(void *context, const struct wr_head *head)
{
    struct wr_ride *ride = context;
    if (ride->fetch == NULL)
        return false;
    read_limits(ride, head);
    obey_head(ride, head->status);
    wr_fields_append(&ride->head, head);
    ride->is_wanted = is_body_wanted(ride, head->status);
    return true;
}

static bool on_body(void *context, const char *data, size_t bytes)
{
    struct wr_ride *ride = context;
    struct weir_fetch *fetch = ride->fetch;
    if (fetch == NULL)
        return false;
    ride->body_bytes += bytes;
    if (!ride->is_wanted)
        return ride->body_bytes <= SKIPPED_MAX;
    (void)atomic_fetch_add_explicit(&ride->client->body_bytes, bytes, memory_order_relaxed);
    if (fetch->on_body != NULL)
        return fetch->on_body(fetch->body_context, data, bytes);
    wr_buf_append(&ride->body, data, bytes);
    return ride->body.error == 0;
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
static void tell_gate(struct wr_ride *ride, const struct wr_net_result *result)
{
    bool is_hosts = result->end == WR_NET_DONE ? result->blame != WR_NET_PROXY_HOST : result->blame == WR_NET_HOST;
    if (!is_hosts) {
        weir_permit_release(&ride->permit);
        return;
    }
    weir_outcome outcome = outcome_of(ride, result->end == WR_NET_DONE ? result->status : 0);
    if (result->first_byte_at > result->sent_at)
        outcome.latency_ns = result->first_byte_at - result->sent_at;
    (void)weir_permit_tell(&ride->permit, &outcome);
}

/* Returns true if the connection was dead and the gate refused the second start. This counts as an
 * attempt, otherwise a request that the server never answers would be resent without end. */
static bool was_lost(const struct wr_ride *ride, const struct wr_net_result *result)
{
    return result->end == WR_NET_REFUSED && result->sends > 0 && ride->client->options.proxy == NULL;
}

static struct wr_ended describe(struct wr_ride *ride, const struct wr_net_result *result)
{
    bool is_whole = result->end == WR_NET_DONE;
    struct wr_ended ended = {
        .end = result->end,
        .retry = result->retry,
        .status = result->status,
        .failure = failures[result->end],
        .detail = is_whole ? NULL : result->words,
        .head = &ride->head,
        .body = &ride->body,
        .body_bytes = (size_t)ride->body_bytes,
        .is_truncated = result->is_truncated || (!is_whole && result->status != 0) || !ride->is_wanted,
        .is_handed_on = ride->is_wanted && ride->fetch->on_body != NULL && ride->body_bytes > 0,
        .latency_ns = result->first_byte_at > result->sent_at ? result->first_byte_at - result->sent_at : 0,
        .said = ride->said,
    };
    if (was_lost(ride, result)) {
        ended.end = WR_NET_BROKEN;
        ended.failure = WEIR_FAILURE_BROKEN;
        ended.retry = WR_NET_LATER;
        ended.detail = "closed by the server";
    }
    if (is_whole && result->blame == WR_NET_PROXY_HOST) {
        ended.failure = WEIR_FAILURE_PROXY;
        ended.detail = "this is the proxy's answer, not the host's";
        ended.retry = result->status == 407 ? WR_NET_NEVER : WR_NET_LATER;
    }
    if (is_whole && (ride->head.error == WEIR_E_NOMEM || ride->body.error == WEIR_E_NOMEM)) {
        ended.failure = WEIR_FAILURE_INTERNAL;
        ended.detail = "out of memory for the answer";
    }
    return ended;
}

static void on_done(void *context, const struct wr_net_result *result)
{
    struct wr_ride *ride = context;
    struct weir_fetch *fetch = ride->fetch;
    char address[WEIR_ADDRESS_MAX + 1];
    if (fetch == NULL) { /* abandoned: wr_ride_stop has released the permit */
        give_ride(ride);
        return;
    }
    struct wr_ended ended = describe(ride, result);
    if (result->port != 0) {
        struct wr_buf text;
        wr_buf_init_fixed(&text, address, sizeof address);
        wr_address_append(&text, &result->address);
        ended.address = address;
    }
    tell_gate(ride, result);
    fetch->ride = NULL;
    wr_answer_judge(fetch, &ended);
    give_ride(ride);
}

void wr_ride_stop(struct weir_fetch *fetch)
{
    struct wr_ride *ride = fetch->ride;
    if (ride == NULL)
        return;
    fetch->ride = NULL;
    ride->fetch = NULL;
    weir_permit_release(&ride->permit);
    wr_net_cancel(ride->transfer);
}

/* ---- starting ---- */

static void add_line(struct wr_net_field *fields, size_t *count, const char *line)
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
    if (fetch->has_left || fetch->robots != NULL)
        return 0;
    const char *own = fetch->client->headers;
    for (const char *line = *own != '\0' ? own : NULL; line != NULL; line = wr_headers_next(line))
        if (!wr_headers_has(fetch->headers, wr_header_name(line)))
            add_line(ret_fields, &count, line);
    if (fetch->headers != NULL && *fetch->headers != '\0')
        for (const char *line = fetch->headers; line != NULL; line = wr_headers_next(line))
            add_line(ret_fields, &count, line);
    if (fetch->authorization != NULL)
        add_line(ret_fields, &count, fetch->authorization);
    return count;
}

/* Returns true if the connection would stay idle and should be closed. Either the host's next start
 * comes too late to reuse it, or no fetch waits and most connections are open. */
static bool is_last(const struct weir_fetch *fetch)
{
    const struct wr_lane *lane = fetch->lane;
    const struct wr_net *net = fetch->client->net;
    struct wr_net_stats stats;
    if (wr_pacer_delay(fetch->client->pacer, lane->key, lane->key_bytes) >= WR_NET_IDLE_NS)
        return true;
    wr_net_stats(net, &stats);
    return lane->first == NULL && stats.connections > wr_net_connections(net) / 2;
}

static int send_request(struct weir_fetch *fetch, struct wr_ride *ride)
{
    static const struct wr_net_calls calls = {before_send, on_late, on_head, on_body, on_done, NULL};
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
        .is_last = is_last(fetch),
    };
    return wr_net_start(ride->client->net, &request, &calls, ride, &ride->transfer);
}

void wr_ride_start(struct weir_fetch *fetch, const weir_permit *permit)
{
    weir_client *client = fetch->client;
    weir_permit held = *permit;
    struct wr_ride *ride = take_ride(client);
    fetch->place = WR_ON_WIRE;
    if (ride == NULL) {
        weir_permit_release(&held);
        wr_fetch_fail(fetch, WEIR_FAILURE_INTERNAL, weir_error_text(WEIR_E_NOMEM));
        return;
    }
    ride->permit = held;
    ride->fetch = fetch;
    ride->body_bytes = 0;
    ride->is_wanted = true;
    ride->said = (weir_said)WR_NOTHING_SAID;
    wr_buf_init(&ride->body, client->allocator, (size_t)fetch->max_body_bytes);
    fetch->ride = ride;
    int error = send_request(fetch, ride);
    if (error == 0)
        return;
    fetch->ride = NULL;
    weir_permit_release(&ride->permit);
    give_ride(ride);
    bool is_alone = atomic_load_explicit(&client->in_flight, memory_order_relaxed) == 0;
    /* Requests in flight will free transfers or memory. */
    if (error == WEIR_E_FULL || (error == WEIR_E_NOMEM && !is_alone))
        wr_answer_defer(fetch, 0);
    else
        wr_fetch_fail(fetch, WEIR_FAILURE_INTERNAL,
                      error == WEIR_E_INVAL ? weir_error_detail() : weir_error_text(error));
}
