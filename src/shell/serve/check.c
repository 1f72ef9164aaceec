/* SPDX-License-Identifier: MIT */
/* check.c - GET /check: may the request go that a proxy asks about?
 *
 * The proxy tells the original request's method, target and host in fields of its own, which are believed of trusted
 * peers only; whoever else asks is judged by what it sent itself. nginx's auth_request takes 2xx, 401 and 403 for
 * answers and all else for failures, so that a refusal is 403 unless the proxy says otherwise (?deny=429);
 * X-Weir-Status is the status that fits, for the proxy to give to its client.
 */
#include "shell/loop/away.h"
#include "shell/serve/inside.h"

/* nginx's custom names first, then those that Caddy and Traefik send. */
static const char *const method_fields[] = {"x-original-method", "x-forwarded-method"};
static const char *const target_fields[] = {"x-original-uri", "x-forwarded-uri"};
static const char *const host_fields[] = {"x-original-host", "x-forwarded-host"};

const char *wr_serve_header(void *context, const char *name, size_t index, size_t *ret_bytes)
{
    const struct wr_request *request = context;
    struct wr_span value;
    uint32_t cursor = 0;
    do {
        if (!wr_request_find(request, name, &cursor, &value))
            return NULL;
    } while (index-- > 0);
    *ret_bytes = value.bytes;
    return value.data;
}

/* The first of the two names that is there; *ret_value stays if none is. False: it is there twice, and one of them is
 * the caller's own. */
static bool find_one(const struct wr_request *request, const char *const names[2], struct wr_span *ret_value)
{
    for (int i = 0; i < 2; i++) {
        struct wr_span second;
        uint32_t cursor = 0;
        if (wr_request_find(request, names[i], &cursor, ret_value))
            return !wr_request_find(request, names[i], &cursor, &second);
    }
    return true;
}

static void note_untrusted(struct wr_serve_desk *desk, const struct wr_http_exchange *exchange)
{
    struct wr_span value = {NULL, 0};
    if (desk->has_told || (find_one(exchange->request, target_fields, &value) && value.data == NULL))
        return;
    desk->has_told = true;
    wr_serve_tell(desk->serve,
                  "what a proxy says of requests is ignored, since its address is not in "
                  "admission: trusted:",
                  exchange->peer.data);
}

static void make_request(struct wr_serve_desk *desk, const struct wr_http_exchange *exchange, weir_request *ret_request)
{
    const struct wr_request *request = exchange->request;
    struct wr_span method = wr_span_of(wr_request_method_name(exchange->method));
    struct wr_span target = wr_request_target(request), host = exchange->host;
    bool is_sound = true;
    if (wr_rulebook_trusts(desk->serve->book, exchange->peer))
        is_sound = find_one(request, method_fields, &method) && find_one(request, target_fields, &target) &&
                   find_one(request, host_fields, &host);
    else
        note_untrusted(desk, exchange);
    *ret_request = (weir_request){
        .size = is_sound ? sizeof *ret_request : 0, /* one that is not filled is malformed */
        .method = method.data,
        .method_bytes = method.bytes,
        .host = host.data,
        .host_bytes = host.bytes,
        .target = target.data,
        .target_bytes = target.bytes,
        .peer = exchange->peer.data,
        .peer_bytes = exchange->peer.bytes,
        .header = wr_serve_header,
        .header_context = (void *)(uintptr_t)request,
    };
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
}

static void reply_check(struct wr_serve_desk *desk, struct wr_http_exchange *exchange, void *baggage)
{
    char memory[WEIR_FIELDS_BYTES_MAX + 128];
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
    make_request(desk, exchange, &request);
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

/* Looking at the clock is not free: every 16th is enough to know how long they take. */
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
