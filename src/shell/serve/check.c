/* SPDX-License-Identifier: MIT */
/* check.c - GET /check: decides whether a proxy may pass on a request (forward-auth).
 *
 * The proxy sends the method, target and host of the original request in header fields of its own.
 * They are used only if the peer is trusted; any other peer is judged by its own request. A trusted
 * proxy must send all three, each once. Otherwise it is misconfigured, and all its requests are
 * refused, because callers could supply what it leaves out. nginx's auth_request takes 2xx, 401 and
 * 403 as decisions and all else as failures. A refusal is therefore 403 unless the proxy asks
 * otherwise (?deny=429). X-Weir-Status has the status that the proxy should give to its client. */
#include "shell/loop/away.h"
#include "shell/serve/inside.h"
#include "shell/serve/said.h"

static void note_untrusted(struct wr_serve_desk *desk, const struct wr_http_exchange *exchange)
{
    if (desk->has_told || !wr_said_is_there(exchange->request))
        return;
    desk->has_told = true;
    wr_serve_tell(desk->serve,
                  "what a proxy says of requests is ignored, because admission: trusted lacks it; if it is yours, "
                  "write there:",
                  wr_span_is(exchange->peer, "unix:") ? "unix" : exchange->peer.data);
}

/* Reads the fields that a trusted proxy sends. The first error is logged. */
static weir_fault read_said(struct wr_serve_desk *desk, const struct wr_request *request, weir_request *said)
{
    const char *field = NULL;
    weir_fault fault = wr_said_read(request, said, &field);
    if (fault == WEIR_FAULT_NONE || desk->has_told_unsaid)
        return fault;
    desk->has_told_unsaid = true;
    wr_serve_tell(desk->serve,
                  fault == WEIR_FAULT_MISSING ? "refused a request from a trusted proxy, which must send exactly one "
                                                "of these fields and sent none (set it as contrib/ does):"
                                              : "refused a request from a trusted proxy, which must send exactly one "
                                                "of these fields and sent two (set it as contrib/ does):",
                  field);
    return fault;
}

static weir_fault make_request(struct wr_serve_desk *desk, const struct wr_http_exchange *exchange,
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
        .header = wr_said_header,
        .header_context = (void *)(uintptr_t)request,
    };
    if (wr_rulebook_trusts(desk->serve->book, exchange->peer))
        return read_said(desk, request, ret_request);
    note_untrusted(desk, exchange);
    return WEIR_FAULT_NONE;
}

static int denied_status(const struct wr_serve_desk *desk, const struct wr_http_exchange *exchange)
{
    if (wr_span_is(exchange->query, "deny=429"))
        return 429;
    if (wr_span_is(exchange->query, "deny=403"))
        return 403;
    return desk->serve->options.denied_status;
}

static void append_field(struct wr_buf *buf, const char *before, uint64_t number)
{
    wr_buf_append_string(buf, before);
    wr_buf_append_u64(buf, number);
    wr_buf_append(buf, "\r\n", 2);
}

static void append_fields(const struct wr_serve_desk *desk, struct wr_buf *buf)
{
    const struct wr_verdict *verdict = &desk->verdict;
    unsigned fields = desk->serve->options.fields;
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
        wr_buf_append_string(buf, weir_fault_text(verdict->fault));
        wr_buf_append_string(buf, "\r\n");
    }
}

static void reply_check(struct wr_serve_desk *desk, struct wr_http_exchange *exchange, void *baggage)
{
    char memory[WEIR_FIELDS_BYTES_MAX + 256];
    struct wr_buf buf;
    (void)baggage;
    wr_buf_init_fixed(&buf, memory, sizeof memory);
    append_fields(desk, &buf);
    int status = 204;
    if (!desk->verdict.allowed) {
        status = denied_status(desk, exchange);
        status = status == 403 ? 403 : desk->verdict.status;
    }
    wr_http_reply(exchange, status, wr_buf_from(&buf, 0), WR_HTTP_NOTHING);
}

static void check(struct wr_serve_desk *desk, struct wr_http_exchange *exchange)
{
    weir_request request;
    weir_fault fault = make_request(desk, exchange, &request);
    if (fault != WEIR_FAULT_NONE) {
        wr_rulebook_refuse(desk->serve->book, fault, &desk->verdict);
        reply_check(desk, exchange, NULL);
        return;
    }
    const struct wr_turn_wish wish = {.request = &request};
    const struct wr_serve_order order = {.wish = &wish, .reply = reply_check};
    if (wr_rulebook_try_now(desk->serve->book, &request, &desk->verdict) ||
        wr_serve_ask(desk, exchange, &order) == WR_ASKED_NOW)
        reply_check(desk, exchange, NULL);
}

const struct wr_buckets wr_check_buckets = {
    .count = 12,
    .upper_ns = {250, 500, 1000, 2000, 4000, 8000, 16000, 32000, 64000, 128000, 1000000, 10000000},
};

/* Handles /check. Measures every 16th call only, because reading the clock has a cost. */
void wr_serve_check(struct wr_serve_desk *desk, struct wr_http_exchange *exchange)
{
    WR_DOING("/check");
    if (desk->checks++ % 16 != 0) {
        check(desk, exchange);
        return;
    }
    int64_t before = weir_clock_now(weir_clock_fast());
    check(desk, exchange);
    wr_histogram_note(&desk->check_times, &wr_check_buckets, weir_clock_now(weir_clock_fast()) - before);
}
