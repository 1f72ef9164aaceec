/* SPDX-License-Identifier: MIT */
/* forward_auth.c - GET /check: decides whether a proxy may pass on a request (forward-auth).
 *
 * The proxy sends the method, target and host of the original request in header fields of its own.
 * They are used only if the peer is trusted; any other peer is judged by its own request. A trusted
 * proxy must send all three, each once. Otherwise it is misconfigured, and all its requests are
 * refused, because callers could supply what it leaves out. nginx's auth_request takes 2xx, 401 and
 * 403 as decisions and all else as failures. A refusal is therefore 403 unless the proxy asks
 * otherwise (?deny=429). X-Weir-Status has the status that the proxy should give to its client. */
#include "http/loop/watchdog.h"
#include "serve/daemon/forwarded_request.h"
#include "serve/daemon/serve_internal.h"

static void warn_untrusted(struct wr_serve_worker *worker, const struct wr_http_exchange *exchange)
{
    if (worker->has_warned_untrusted || !wr_forwarded_request_is_present(exchange->request))
        return;
    worker->has_warned_untrusted = true;
    wr_serve_log(
        worker->serve,
        "fields of a proxy are ignored, because admission: trusted does not list it; if it is yours, add it there:",
        wr_span_is(exchange->peer, "unix:") ? "unix" : exchange->peer.data);
}

/* Reads the fields that a trusted proxy sends. The first error is logged. */
static weir_request_fault read_forwarded(struct wr_serve_worker *worker, const struct wr_request *request,
                                         weir_request *said)
{
    const char *field = NULL;
    weir_request_fault fault = wr_forwarded_request_read(request, said, &field);
    if (fault == WEIR_FAULT_NONE || worker->has_warned_fields)
        return fault;
    worker->has_warned_fields = true;
    wr_serve_log(worker->serve,
                 fault == WEIR_FAULT_MISSING ? "refused a request from a trusted proxy, which must send exactly one "
                                               "of these fields and sent none (set it as contrib/ does):"
                                             : "refused a request from a trusted proxy, which must send exactly one "
                                               "of these fields and sent two (set it as contrib/ does):",
                 field);
    return fault;
}

static weir_request_fault make_checked_request(struct wr_serve_worker *worker, const struct wr_http_exchange *exchange,
                                               weir_request *ret_request)
{
    const struct wr_request *request = exchange->request;
    struct wr_span method = wr_span_of(wr_request_method_name(exchange->method)), target = wr_request_target(request);
    *ret_request = (weir_request){
        .size = sizeof *ret_request,
        .method = method.data,
        .method_bytes = method.bytes,
        .host = exchange->host.data,
        .host_bytes = exchange->host.bytes,
        .target = target.data,
        .target_bytes = target.bytes,
        .peer = exchange->peer.data,
        .peer_bytes = exchange->peer.bytes,
        .header = wr_forwarded_request_header,
        .header_context = (void *)(uintptr_t)request,
    };
    if (wr_rules_peer_is_trusted(worker->serve->book, exchange->peer))
        return read_forwarded(worker, request, ret_request);
    warn_untrusted(worker, exchange);
    return WEIR_FAULT_NONE;
}

static int denied_status(const struct wr_serve_worker *worker, const struct wr_http_exchange *exchange)
{
    if (wr_span_is(exchange->query, "deny=429"))
        return 429;
    if (wr_span_is(exchange->query, "deny=403"))
        return 403;
    return worker->serve->options.denied_status;
}

static void append_field(struct wr_buf *buf, const char *before, uint64_t number)
{
    wr_buf_append_string(buf, before);
    wr_buf_append_u64(buf, number);
    wr_buf_append(buf, "\r\n", 2);
}

static void append_fields(const struct wr_serve_worker *worker, struct wr_buf *buf)
{
    const struct wr_verdict *verdict = &worker->verdict;
    unsigned fields = worker->serve->options.fields;
    int64_t wall_ns = (fields & WEIR_FIELD_X_RESET) != 0 ? weir_wall_now() : 0;
    size_t bytes = 0;
    if (fields != 0 && verdict->admission.count > 0 && buf->error == 0 &&
        weir_fields_format(&verdict->admission, fields, wall_ns, buf->bytes + buf->length, buf->room - buf->length,
                           &bytes) == 0)
        buf->length += bytes;
    if (verdict->hold != 0)
        append_field(buf, "X-Weir-Hold: ", verdict->hold);
    if (!verdict->allowed)
        append_field(buf, "X-Weir-Status: ", (uint64_t)verdict->status);
    if (verdict->fault != WEIR_FAULT_NONE) {
        wr_buf_append_string(buf, "X-Weir-Why: ");
        wr_buf_append_string(buf, weir_request_fault_text(verdict->fault));
        wr_buf_append_string(buf, "\r\n");
    }
}

static void reply_check(struct wr_serve_worker *worker, struct wr_http_exchange *exchange, void *reply_context)
{
    char memory[WEIR_FIELDS_BYTES_MAX + 256];
    struct wr_buf buf;
    (void)reply_context;
    wr_buf_init_fixed(&buf, memory, sizeof memory);
    append_fields(worker, &buf);
    int status = 204;
    if (!worker->verdict.allowed) {
        status = denied_status(worker, exchange);
        status = status == 403 ? 403 : worker->verdict.status;
    }
    wr_http_reply(exchange, status, wr_buf_from(&buf, 0), WR_HTTP_NOTHING);
}

static void decide_check(struct wr_serve_worker *worker, struct wr_http_exchange *exchange)
{
    weir_request request;
    weir_request_fault fault = make_checked_request(worker, exchange, &request);
    if (fault != WEIR_FAULT_NONE) {
        wr_rules_refuse_malformed(worker->serve->book, fault, &worker->verdict);
        reply_check(worker, exchange, NULL);
        return;
    }
    const struct wr_rules_request rules_request = {.request = &request};
    const struct wr_serve_deferred_reply deferred = {.rules_request = &rules_request, .reply = reply_check};
    if (wr_rules_try_now(worker->serve->book, &request, &worker->verdict) ||
        wr_serve_ask_store(worker, exchange, &deferred) == WR_SERVE_DECIDED_NOW)
        reply_check(worker, exchange, NULL);
}

const struct wr_buckets wr_check_buckets = {
    .count = 12,
    .upper_ns = {250, 500, 1000, 2000, 4000, 8000, 16000, 32000, 64000, 128000, 1000000, 10000000},
};

/* Handles /check. Measures every 16th call only, because reading the clock has a cost. */
void wr_serve_check(struct wr_serve_worker *worker, struct wr_http_exchange *exchange)
{
    WR_DOING("/check");
    if (worker->checks++ % 16 != 0) {
        decide_check(worker, exchange);
        return;
    }
    int64_t before = weir_clock_now(weir_clock_fast());
    decide_check(worker, exchange);
    wr_histogram_add(&worker->check_times, &wr_check_buckets, weir_clock_now(weir_clock_fast()) - before);
}
