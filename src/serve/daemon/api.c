/* SPDX-License-Identifier: MIT */
/* api.c - the JSON API under /v1/, through which programs ask for decisions. */
#include "serve/daemon/serve_internal.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/parse.h"
#include "http/loop/watchdog.h"

/* ---- responses ---- */

static void append_verdict_ms(struct wr_buf *buf, const char *before, int64_t ns)
{
    wr_buf_append_string(buf, before);
    wr_buf_append_u64(buf, (uint64_t)((ns + WEIR_MILLISECOND - 1) / WEIR_MILLISECOND));
}

static void append_quota(struct wr_buf *buf, const weir_quota *quota)
{
    wr_append_json_count(buf, ",\"limit\":", quota->limit);
    wr_append_json_count(buf, ",\"remaining\":", quota->remaining);
    if (quota->reset_ns != WEIR_UNTIL_RELEASE) /* otherwise the time of the reset is unknown */
        append_verdict_ms(buf, ",\"reset_ms\":", quota->reset_ns);
}

void wr_append_verdict_json(struct wr_buf *buf, const struct wr_verdict *verdict)
{
    const weir_ruling *ruling =
        verdict->admission.count > 0 ? weir_admission_result_decisive(&verdict->admission) : NULL;
    wr_buf_append_string(buf, verdict->allowed ? "{\"allowed\":true,\"cause\":\"" : "{\"allowed\":false,\"cause\":\"");
    wr_buf_append_string(buf, wr_cause_name(verdict->cause));
    wr_buf_append_char(buf, '"');
    if (verdict->rule != NULL)
        wr_append_json_text(buf, ",\"rule\":", wr_span_of(verdict->rule));
    if (!verdict->allowed)
        wr_append_json_count(buf, ",\"status\":", (uint64_t)verdict->status);
    if (verdict->fault != WEIR_FAULT_NONE)
        wr_append_json_text(buf, ",\"why\":", wr_span_of(weir_request_fault_text(verdict->fault)));
    if (!verdict->allowed && verdict->retry_after_ns > 0 && verdict->retry_after_ns != WEIR_UNTIL_RELEASE)
        append_verdict_ms(buf, ",\"retry_after_ms\":", verdict->retry_after_ns);
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

static void reply_json(struct wr_serve_worker *worker, struct wr_http_exchange *exchange)
{
    if (worker->out.error != 0)
        wr_http_refuse(exchange, 503, "out of memory");
    else
        wr_http_reply(exchange, 200, WR_HTTP_JSON, wr_buf_from(&worker->out, 0));
    wr_buf_clear(&worker->out);
}

/* ---- requests ---- */

static void make_api_request(struct wr_api_request *ask, weir_request *ret_request)
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
        .header = wr_api_request_header,
        .header_context = ask,
        .cost = ask->cost,
    };
}

bool wr_serve_copy_rule_name(struct wr_span rule, char ret_name[WEIR_RULE_NAME_MAX + 1])
{
    if (rule.bytes == 0 || rule.bytes > WEIR_RULE_NAME_MAX || memchr(rule.data, '\0', rule.bytes) != NULL)
        return false;
    memcpy(ret_name, rule.data, rule.bytes);
    ret_name[rule.bytes] = '\0';
    return true;
}

/* Makes a rulebook request of `ask`. Returns what is wrong with it, such as members of other calls;
 * NULL if it is valid. */
static const char *make_rules_request(struct wr_api_request *ask, weir_request *request,
                                      char name[WEIR_RULE_NAME_MAX + 1], struct wr_rules_request *ret_wish)
{
    if ((ask->members & ~(unsigned)WR_API_REQUEST_MEMBERS) == 0) {
        make_api_request(ask, request);
        *ret_wish = (struct wr_rules_request){.request = request};
        return NULL;
    }
    if ((ask->members | WR_API_COST) != (WR_API_RULE | WR_API_KEY | WR_API_COST))
        return "give rule and key, or a request (method, target, host, client, headers); and cost";
    if (!wr_serve_copy_rule_name(ask->rule, name))
        return "there is no such rule";
    if (ask->key.bytes == 0 || ask->key.bytes > WEIR_KEY_MAX)
        return "key must have 1 ... 1024 bytes";
    *ret_wish =
        (struct wr_rules_request){.rule = name, .key = ask->key.data, .key_bytes = ask->key.bytes, .cost = ask->cost};
    return NULL;
}

/* Decides at once. Returns false if the store must be asked first. Sets *ret_wrong to an error
 * message if the request is invalid. */
static bool decide_now(struct wr_serve_worker *worker, const struct wr_rules_request *rules_request,
                       const char **ret_wrong)
{
    struct wr_rules *book = worker->serve->book;
    if (rules_request->rule == NULL)
        return wr_rules_try_now(book, rules_request->request, &worker->verdict);
    int error = wr_rules_try_key_now(book, rules_request->rule, rules_request->key, rules_request->key_bytes,
                                     rules_request->cost, &worker->verdict);
    if (error == WEIR_E_ABSENT)
        *ret_wrong = "there is no such rule";
    return error != WEIR_E_CLOSED;
}

/* Parses the whole body before any decision, so that a malformed list charges no key. Returns what
 * is wrong, or NULL. */
static const char *check_whole_body(struct wr_serve_worker *worker, struct wr_span body)
{
    unsigned count = 0;
    wr_api_reader_begin(&worker->reader, body);
    while (wr_api_reader_next(&worker->reader, &worker->ask))
        if (++count > WR_SERVE_BATCH_MAX)
            return "a list of more than 256";
    return worker->reader.wrong;
}

static void append_decision(struct wr_serve_worker *worker, const char *wrong)
{
    if (wrong == NULL) {
        wr_append_verdict_json(&worker->out, &worker->verdict);
        return;
    }
    wr_append_json_text(&worker->out, "{\"error\":", wr_span_of(wrong));
    wr_buf_append_char(&worker->out, '}');
}

/* The state of a list of requests while the store decides one of them. */
struct api_batch {
    struct wr_buf out; /* decisions so far, as JSON */
    size_t at;         /* offset in the body of the next request */
    bool is_list;
};

static void drop_batch(struct wr_serve_worker *worker, void *reply_context)
{
    struct api_batch *batch = reply_context;
    wr_buf_release(&batch->out);
    wr_free(worker->serve->allocator, batch, sizeof *batch, _Alignof(struct api_batch));
}

static void answer_remaining(struct wr_serve_worker *worker, struct wr_http_exchange *exchange);

/* Continues a list after the store has decided one of its requests. */
static void resume_batch(struct wr_serve_worker *worker, struct wr_http_exchange *exchange, void *reply_context)
{
    struct api_batch *batch = reply_context;
    struct wr_buf out = worker->out;
    worker->out = batch->out;
    batch->out = out;
    wr_api_reader_resume(&worker->reader, exchange->body, batch->at, batch->is_list);
    drop_batch(worker, batch);
    append_decision(worker, NULL);
    answer_remaining(worker, exchange);
}

/* Asks the store to decide one request. Returns true if it is decided already; false if it will be
 * later, or if the exchange ended in an error. */
static bool ask_store_for_batch(struct wr_serve_worker *worker, struct wr_http_exchange *exchange,
                                const struct wr_rules_request *rules_request)
{
    struct api_batch *batch = wr_alloc(worker->serve->allocator, sizeof *batch, _Alignof(struct api_batch));
    if (batch == NULL) {
        wr_http_refuse(exchange, 503, "out of memory");
        return false;
    }
    *batch = (struct api_batch){
        .out = worker->out, .at = (size_t)(worker->reader.at - exchange->body.data), .is_list = worker->reader.is_list};
    wr_buf_init(&worker->out, worker->serve->allocator, batch->out.max);
    const struct wr_serve_deferred_reply deferred = {
        .rules_request = rules_request, .reply = resume_batch, .drop = drop_batch, .reply_context = batch};
    enum wr_serve_ask_result asked = wr_serve_ask_store(worker, exchange, &deferred);
    if (asked == WR_SERVE_DECIDED_LATER)
        return false;
    struct wr_buf empty = worker->out;
    worker->out = batch->out;
    batch->out = empty;
    drop_batch(worker, batch);
    return asked == WR_SERVE_DECIDED_NOW;
}

/* Decides one request and appends the result. Returns false if it will be decided later, or the
 * exchange has ended. */
static bool answer_batch_item(struct wr_serve_worker *worker, struct wr_http_exchange *exchange)
{
    char name[WEIR_RULE_NAME_MAX + 1];
    struct wr_rules_request rules_request;
    weir_request request;
    const char *wrong = make_rules_request(&worker->ask, &request, name, &rules_request);
    if (wrong == NULL && !decide_now(worker, &rules_request, &wrong) &&
        !ask_store_for_batch(worker, exchange, &rules_request))
        return false;
    if (wrong != NULL && !worker->reader.is_list) {
        wr_http_refuse(exchange, 400, wrong);
        return false;
    }
    append_decision(worker, wrong);
    return true;
}

/* Decides the remaining requests, then sends the response. */
static void answer_remaining(struct wr_serve_worker *worker, struct wr_http_exchange *exchange)
{
    while (wr_api_reader_next(&worker->reader, &worker->ask)) {
        wr_buf_append_string(&worker->out, worker->out.length <= 1 ? "" : ",");
        if (!answer_batch_item(worker, exchange))
            return;
    }
    wr_buf_append_string(&worker->out, worker->reader.is_list ? "]\n" : "\n");
    reply_json(worker, exchange);
}

/* Handles /v1/try: one object, or a list of them. A list gets a list of results, in which an
 * invalid request has its error message in its place. */
static void answer_try(struct wr_serve_worker *worker, struct wr_http_exchange *exchange)
{
    const char *wrong = check_whole_body(worker, exchange->body);
    if (wrong != NULL) {
        wr_http_refuse(exchange, 400, wrong);
        return;
    }
    wr_buf_clear(&worker->out);
    wr_buf_append_string(&worker->out, worker->reader.is_list ? "[" : "");
    wr_api_reader_begin(&worker->reader, exchange->body);
    answer_remaining(worker, exchange);
}

/* ---- calls with one request ---- */

bool wr_serve_read_one_object(struct wr_serve_worker *worker, struct wr_http_exchange *exchange)
{
    struct wr_api_reader *reader = &worker->reader;
    wr_api_reader_begin(reader, exchange->body);
    bool is_there = wr_api_reader_next(reader, &worker->ask);
    bool is_one = is_there && !reader->is_list;
    if (is_one)
        /* reads to the end of the body, or to the next error */
        (void)wr_api_reader_next(reader, &worker->ask);
    const char *wrong = reader->wrong;
    if (wrong == NULL && !is_one)
        wrong = "the body must be one object";
    if (wrong != NULL)
        wr_http_refuse(exchange, 400, wrong);
    return wrong == NULL;
}

/* Reads a request that has no members of other calls. Returns false after it refused the
 * request. */
static bool read_api_request(struct wr_serve_worker *worker, struct wr_http_exchange *exchange, bool may_wait,
                             weir_request *ret_request)
{
    struct wr_api_request *ask = &worker->ask;
    unsigned taken = WR_API_REQUEST_MEMBERS | (may_wait ? WR_API_TIMEOUT : WR_API_LEASE);
    if (!wr_serve_read_one_object(worker, exchange))
        return false;
    if ((ask->members & ~taken) != 0) {
        wr_http_refuse(exchange, 400,
                       may_wait ? "give a request (method, target, host, client, headers), cost and timeout_ms"
                                : "give a request (method, target, host, client, headers), cost and lease_ms");
        return false;
    }
    make_api_request(ask, ret_request);
    return true;
}

static void answer_acquire(struct wr_serve_worker *worker, struct wr_http_exchange *exchange)
{
    const struct wr_serve_options *options = &worker->serve->options;
    weir_request request;
    if (!read_api_request(worker, exchange, true, &request))
        return;
    bool is_said = (worker->ask.members & WR_API_TIMEOUT) != 0;
    int64_t timeout_ns = is_said ? worker->ask.timeout_ns : options->timeout_max_ns;
    if (timeout_ns > options->timeout_max_ns)
        timeout_ns = options->timeout_max_ns;
    wr_serve_acquire(worker, exchange, &request, timeout_ns);
}

static void reply_later(struct wr_serve_worker *worker, struct wr_http_exchange *exchange, void *reply_context)
{
    (void)reply_context;
    wr_serve_reply_verdict(worker, exchange);
}

static void answer_reserve(struct wr_serve_worker *worker, struct wr_http_exchange *exchange)
{
    weir_request request;
    if (!read_api_request(worker, exchange, false, &request))
        return;
    const struct wr_rules_request rules_request = {
        .request = &request, .holds = true, .lease_ns = worker->ask.lease_ns};
    const struct wr_serve_deferred_reply deferred = {.rules_request = &rules_request, .reply = reply_later};
    if (wr_rules_reserve_now(worker->serve->book, &request, worker->ask.lease_ns, &worker->verdict) ||
        wr_serve_ask_store(worker, exchange, &deferred) == WR_SERVE_DECIDED_NOW)
        wr_serve_reply_verdict(worker, exchange);
}

void wr_serve_reply_verdict(struct wr_serve_worker *worker, struct wr_http_exchange *exchange)
{
    wr_buf_clear(&worker->out);
    wr_append_verdict_json(&worker->out, &worker->verdict);
    wr_buf_append_char(&worker->out, '\n');
    reply_json(worker, exchange);
}

/* ---- reservations ---- */

enum reservation_call {
    RELEASE,
    COMMIT,
    CANCEL
};

static void answer_end(struct wr_serve_worker *worker, struct wr_http_exchange *exchange, enum reservation_call ending)
{
    struct wr_rules *book = worker->serve->book;
    const struct wr_api_request *ask = &worker->ask;
    uint64_t hold = 0;
    if (!wr_serve_read_one_object(worker, exchange))
        return;
    if (ask->members != (ending == COMMIT ? WR_API_HOLD | WR_API_USED : WR_API_HOLD) ||
        wr_parse_u64(ask->hold.data, ask->hold.bytes, 1, UINT64_MAX, &hold) != 0) {
        wr_http_refuse(exchange, 400,
                       ending == COMMIT ? "give hold as it was returned, and used, the permits that the request cost"
                                        : "give hold as it was returned, and nothing else");
        return;
    }
    int error = ending == COMMIT   ? wr_reservation_commit(book, hold, ask->used)
                : ending == CANCEL ? wr_reservation_cancel(book, hold)
                                   : wr_reservation_end(book, hold);
    if (error != 0)
        wr_http_refuse(exchange, 404, "there is no such hold, or it has ended");
    else
        wr_http_reply(exchange, 200, WR_HTTP_JSON, wr_span_of("{\"ok\":true}\n"));
}

/* ---- paths ---- */

bool wr_serve_api(struct wr_serve_worker *worker, struct wr_http_exchange *exchange)
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
        answer_try(worker, exchange);
    else if (call == 2)
        answer_acquire(worker, exchange);
    else if (call == 3)
        answer_reserve(worker, exchange);
    else
        answer_end(worker, exchange, call == 4 ? RELEASE : call == 5 ? COMMIT : CANCEL);
    return true;
}
