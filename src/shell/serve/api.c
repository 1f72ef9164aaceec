/* SPDX-License-Identifier: MIT */
/* api.c - the JSON API under /v1/, through which programs ask for decisions. */
#include "shell/serve/inside.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/parse.h"
#include "shell/loop/away.h"

/* ---- responses ---- */

static void append_ms(struct wr_buf *buf, const char *before, int64_t ns)
{
    wr_buf_append_string(buf, before);
    wr_buf_append_u64(buf, (uint64_t)((ns + WEIR_MILLISECOND - 1) / WEIR_MILLISECOND));
}

static void append_quota(struct wr_buf *buf, const weir_quota *quota)
{
    wr_append_json_count(buf, ",\"limit\":", quota->limit);
    wr_append_json_count(buf, ",\"remaining\":", quota->remaining);
    if (quota->reset_ns != WEIR_UNTIL_RELEASE) /* otherwise the time of the reset is unknown */
        append_ms(buf, ",\"reset_ms\":", quota->reset_ns);
}

void wr_append_verdict(struct wr_buf *buf, const struct wr_verdict *verdict)
{
    const weir_ruling *ruling = verdict->admission.count > 0 ? weir_admission_decisive(&verdict->admission) : NULL;
    wr_buf_append_string(buf, verdict->allowed ? "{\"allowed\":true,\"cause\":\"" : "{\"allowed\":false,\"cause\":\"");
    wr_buf_append_string(buf, wr_cause_name(verdict->cause));
    wr_buf_append_char(buf, '"');
    if (verdict->rule != NULL)
        wr_append_json_text(buf, ",\"rule\":", wr_span_of(verdict->rule));
    if (!verdict->allowed)
        wr_append_json_count(buf, ",\"status\":", (uint64_t)verdict->status);
    if (verdict->fault != WEIR_FAULT_NONE)
        wr_append_json_text(buf, ",\"why\":", wr_span_of(weir_fault_text(verdict->fault)));
    if (!verdict->allowed && verdict->retry_after_ns > 0 && verdict->retry_after_ns != WEIR_UNTIL_RELEASE)
        append_ms(buf, ",\"retry_after_ms\":", verdict->retry_after_ns);
    if (ruling != NULL && ruling->quota.limit > 0)
        append_quota(buf, &ruling->quota);
    if (verdict->shadowed)
        wr_buf_append_string(buf, ",\"shadowed\":true");
    if (verdict->hold != 0) { /* a string: numbers in JSON are exact only up to 2^53 */
        wr_buf_append_string(buf, ",\"hold\":\"");
        wr_buf_append_u64(buf, verdict->hold);
        wr_buf_append_char(buf, '"');
    }
    wr_buf_append_char(buf, '}');
}

static void reply_out(struct wr_serve_desk *desk, struct wr_http_exchange *exchange)
{
    if (desk->out.error != 0)
        wr_http_refuse(exchange, 503, "out of memory");
    else
        wr_http_reply(exchange, 200, WR_HTTP_JSON, wr_buf_from(&desk->out, 0));
    wr_buf_clear(&desk->out);
}

/* ---- requests ---- */

static void make_request(struct wr_ask *ask, weir_request *ret_request)
{
    *ret_request = (weir_request){
        .size = sizeof *ret_request,
        .method = ask->method.data,
        .method_bytes = ask->method.bytes,
        .host = ask->host.data,
        .host_bytes = ask->host.bytes,
        .target = ask->target.data,
        .target_bytes = ask->target.bytes,
        .peer = ask->client.data,
        .peer_bytes = ask->client.bytes,
        .header = wr_ask_header,
        .header_context = ask,
        .cost = ask->cost,
    };
}

bool wr_serve_name_of(struct wr_span rule, char ret_name[WEIR_RULE_NAME_MAX + 1])
{
    if (rule.bytes == 0 || rule.bytes > WEIR_RULE_NAME_MAX || memchr(rule.data, '\0', rule.bytes) != NULL)
        return false;
    memcpy(ret_name, rule.data, rule.bytes);
    ret_name[rule.bytes] = '\0';
    return true;
}

/* Makes a rulebook request of `ask`. Returns what is wrong with it, such as members of other calls;
 * NULL if it is valid. */
static const char *make_wish(struct wr_ask *ask, weir_request *request, char name[WEIR_RULE_NAME_MAX + 1],
                             struct wr_turn_wish *ret_wish)
{
    if ((ask->members & ~(unsigned)WR_ASK_REQUEST) == 0) {
        make_request(ask, request);
        *ret_wish = (struct wr_turn_wish){.request = request};
        return NULL;
    }
    if ((ask->members | WR_ASK_COST) != (WR_ASK_RULE | WR_ASK_KEY | WR_ASK_COST))
        return "give rule and key, or a request (method, target, host, client, headers); and cost";
    if (!wr_serve_name_of(ask->rule, name))
        return "there is no such rule";
    if (ask->key.bytes == 0 || ask->key.bytes > WEIR_KEY_MAX)
        return "key must have 1 ... 1024 bytes";
    *ret_wish =
        (struct wr_turn_wish){.rule = name, .key = ask->key.data, .key_bytes = ask->key.bytes, .cost = ask->cost};
    return NULL;
}

/* Decides at once. Returns false if the store must be asked first. Sets *ret_wrong to an error
 * message if the request is invalid. */
static bool decide_now(struct wr_serve_desk *desk, const struct wr_turn_wish *wish, const char **ret_wrong)
{
    struct wr_rulebook *book = desk->serve->book;
    if (wish->rule == NULL)
        return wr_rulebook_try_now(book, wish->request, &desk->verdict);
    int error = wr_rulebook_try_key_now(book, wish->rule, wish->key, wish->key_bytes, wish->cost, &desk->verdict);
    if (error == WEIR_E_ABSENT)
        *ret_wrong = "there is no such rule";
    return error != WEIR_E_CLOSED;
}

/* Parses the whole body before any decision, so that a malformed list charges no key. Returns what
 * is wrong, or NULL. */
static const char *look_over(struct wr_serve_desk *desk, struct wr_span body)
{
    unsigned count = 0;
    wr_ask_begin(&desk->reader, body);
    while (wr_ask_next(&desk->reader, &desk->ask))
        if (++count > WR_SERVE_BATCH_MAX)
            return "a list of more than 256";
    return desk->reader.wrong;
}

static void append_decision(struct wr_serve_desk *desk, const char *wrong)
{
    if (wrong == NULL) {
        wr_append_verdict(&desk->out, &desk->verdict);
        return;
    }
    wr_append_json_text(&desk->out, "{\"error\":", wr_span_of(wrong));
    wr_buf_append_char(&desk->out, '}');
}

/* The state of a list of requests while the store decides one of them. */
struct batch {
    struct wr_buf out; /* decisions so far, as JSON */
    size_t at;         /* offset in the body of the next request */
    bool is_list;
};

static void drop_batch(struct wr_serve_desk *desk, void *baggage)
{
    struct batch *batch = baggage;
    wr_buf_release(&batch->out);
    wr_give(desk->serve->allocator, batch, sizeof *batch, _Alignof(struct batch));
}

static void go_on(struct wr_serve_desk *desk, struct wr_http_exchange *exchange);

/* Continues a list after the store has decided one of its requests. */
static void resume(struct wr_serve_desk *desk, struct wr_http_exchange *exchange, void *baggage)
{
    struct batch *batch = baggage;
    struct wr_buf out = desk->out;
    desk->out = batch->out;
    batch->out = out;
    wr_ask_go_on(&desk->reader, exchange->body, batch->at, batch->is_list);
    drop_batch(desk, batch);
    append_decision(desk, NULL);
    go_on(desk, exchange);
}

/* Asks the store to decide one request. Returns true if it is decided already; false if it will be
 * later, or if the exchange ended in an error. */
static bool put_off(struct wr_serve_desk *desk, struct wr_http_exchange *exchange, const struct wr_turn_wish *wish)
{
    struct batch *batch = wr_take(desk->serve->allocator, sizeof *batch, _Alignof(struct batch));
    if (batch == NULL) {
        wr_http_refuse(exchange, 503, "out of memory");
        return false;
    }
    *batch = (struct batch){
        .out = desk->out, .at = (size_t)(desk->reader.at - exchange->body.data), .is_list = desk->reader.is_list};
    wr_buf_init(&desk->out, desk->serve->allocator, batch->out.max);
    const struct wr_serve_order order = {.wish = wish, .reply = resume, .drop = drop_batch, .baggage = batch};
    enum wr_serve_asked asked = wr_serve_ask(desk, exchange, &order);
    if (asked == WR_ASKED_LATER)
        return false;
    struct wr_buf empty = desk->out;
    desk->out = batch->out;
    batch->out = empty;
    drop_batch(desk, batch);
    return asked == WR_ASKED_NOW;
}

/* Decides one request and appends the result. Returns false if it will be decided later, or the
 * exchange has ended. */
static bool answer_one(struct wr_serve_desk *desk, struct wr_http_exchange *exchange)
{
    char name[WEIR_RULE_NAME_MAX + 1];
    struct wr_turn_wish wish;
    weir_request request;
    const char *wrong = make_wish(&desk->ask, &request, name, &wish);
    if (wrong == NULL && !decide_now(desk, &wish, &wrong) && !put_off(desk, exchange, &wish))
        return false;
    if (wrong != NULL && !desk->reader.is_list) {
        wr_http_refuse(exchange, 400, wrong);
        return false;
    }
    append_decision(desk, wrong);
    return true;
}

/* Decides the remaining requests, then sends the response. */
static void go_on(struct wr_serve_desk *desk, struct wr_http_exchange *exchange)
{
    while (wr_ask_next(&desk->reader, &desk->ask)) {
        wr_buf_append_string(&desk->out, desk->out.length <= 1 ? "" : ",");
        if (!answer_one(desk, exchange))
            return;
    }
    wr_buf_append_string(&desk->out, desk->reader.is_list ? "]\n" : "\n");
    reply_out(desk, exchange);
}

/* Handles /v1/try: one object, or a list of them. A list gets a list of results, in which an
 * invalid request has its error message in its place. */
static void answer_try(struct wr_serve_desk *desk, struct wr_http_exchange *exchange)
{
    const char *wrong = look_over(desk, exchange->body);
    if (wrong != NULL) {
        wr_http_refuse(exchange, 400, wrong);
        return;
    }
    wr_buf_clear(&desk->out);
    wr_buf_append_string(&desk->out, desk->reader.is_list ? "[" : "");
    wr_ask_begin(&desk->reader, exchange->body);
    go_on(desk, exchange);
}

/* ---- calls with one request ---- */

bool wr_serve_read_one(struct wr_serve_desk *desk, struct wr_http_exchange *exchange)
{
    struct wr_ask_reader *reader = &desk->reader;
    wr_ask_begin(reader, exchange->body);
    bool is_there = wr_ask_next(reader, &desk->ask);
    bool is_one = is_there && !reader->is_list;
    if (is_one)
        /* reads to the end of the body, or to the next error */
        (void)wr_ask_next(reader, &desk->ask);
    const char *wrong = reader->wrong;
    if (wrong == NULL && !is_one)
        wrong = "one object is wanted here";
    if (wrong != NULL)
        wr_http_refuse(exchange, 400, wrong);
    return wrong == NULL;
}

/* Reads a request that has no members of other calls. Returns false after it refused the
 * request. */
static bool read_request(struct wr_serve_desk *desk, struct wr_http_exchange *exchange, bool may_wait,
                         weir_request *ret_request)
{
    struct wr_ask *ask = &desk->ask;
    unsigned taken = WR_ASK_REQUEST | (may_wait ? WR_ASK_TIMEOUT : WR_ASK_LEASE);
    if (!wr_serve_read_one(desk, exchange))
        return false;
    if ((ask->members & ~taken) != 0) {
        wr_http_refuse(exchange, 400,
                       may_wait ? "give a request (method, target, host, client, headers), cost and timeout_ms"
                                : "give a request (method, target, host, client, headers), cost and lease_ms");
        return false;
    }
    make_request(ask, ret_request);
    return true;
}

static void answer_acquire(struct wr_serve_desk *desk, struct wr_http_exchange *exchange)
{
    const struct wr_serve_options *options = &desk->serve->options;
    weir_request request;
    if (!read_request(desk, exchange, true, &request))
        return;
    bool is_said = (desk->ask.members & WR_ASK_TIMEOUT) != 0;
    int64_t timeout_ns = is_said ? desk->ask.timeout_ns : options->timeout_max_ns;
    if (timeout_ns > options->timeout_max_ns)
        timeout_ns = options->timeout_max_ns;
    wr_serve_acquire(desk, exchange, &request, timeout_ns);
}

static void reply_later(struct wr_serve_desk *desk, struct wr_http_exchange *exchange, void *baggage)
{
    (void)baggage;
    wr_serve_reply_verdict(desk, exchange);
}

static void answer_reserve(struct wr_serve_desk *desk, struct wr_http_exchange *exchange)
{
    weir_request request;
    if (!read_request(desk, exchange, false, &request))
        return;
    const struct wr_turn_wish wish = {.request = &request, .holds = true, .lease_ns = desk->ask.lease_ns};
    const struct wr_serve_order order = {.wish = &wish, .reply = reply_later};
    if (wr_rulebook_reserve_now(desk->serve->book, &request, desk->ask.lease_ns, &desk->verdict) ||
        wr_serve_ask(desk, exchange, &order) == WR_ASKED_NOW)
        wr_serve_reply_verdict(desk, exchange);
}

void wr_serve_reply_verdict(struct wr_serve_desk *desk, struct wr_http_exchange *exchange)
{
    wr_buf_clear(&desk->out);
    wr_append_verdict(&desk->out, &desk->verdict);
    wr_buf_append_char(&desk->out, '\n');
    reply_out(desk, exchange);
}

/* ---- reservations ---- */

enum ending {
    RELEASE,
    COMMIT,
    CANCEL
};

static void answer_end(struct wr_serve_desk *desk, struct wr_http_exchange *exchange, enum ending ending)
{
    struct wr_rulebook *book = desk->serve->book;
    const struct wr_ask *ask = &desk->ask;
    uint64_t hold = 0;
    if (!wr_serve_read_one(desk, exchange))
        return;
    if (ask->members != (ending == COMMIT ? WR_ASK_HOLD | WR_ASK_USED : WR_ASK_HOLD) ||
        wr_parse_u64(ask->hold.data, ask->hold.bytes, 1, UINT64_MAX, &hold) != 0) {
        wr_http_refuse(exchange, 400,
                       ending == COMMIT ? "give hold, as it was told, and used, the permits that it cost"
                                        : "give hold, as it was told, and nothing else");
        return;
    }
    int error = ending == COMMIT   ? wr_rulebook_commit(book, hold, ask->used)
                : ending == CANCEL ? wr_rulebook_cancel(book, hold)
                                   : wr_rulebook_end(book, hold);
    if (error != 0)
        wr_http_refuse(exchange, 404, "there is no such hold, or not any more");
    else
        wr_http_reply(exchange, 200, WR_HTTP_JSON, wr_span_of("{\"ok\":true}\n"));
}

/* ---- paths ---- */

bool wr_serve_api(struct wr_serve_desk *desk, struct wr_http_exchange *exchange)
{
    WR_DOING("/v1/");
    static const char *const calls[] = {"/v1/try",     "/v1/batch",  "/v1/acquire", "/v1/reserve",
                                        "/v1/release", "/v1/commit", "/v1/cancel"};
    size_t call = 0;
    while (call < sizeof calls / sizeof calls[0] && !wr_span_is(exchange->path, calls[call]))
        call++;
    if (call == sizeof calls / sizeof calls[0])
        return false;
    if (exchange->method != WR_METHOD_POST) {
        wr_http_reply(exchange, 405, wr_span_of("Allow: POST\r\n"), WR_HTTP_NOTHING);
        return true;
    }
    if (call <= 1)
        answer_try(desk, exchange);
    else if (call == 2)
        answer_acquire(desk, exchange);
    else if (call == 3)
        answer_reserve(desk, exchange);
    else
        answer_end(desk, exchange, call == 4 ? RELEASE : call == 5 ? COMMIT : CANCEL);
    return true;
}
