/* SPDX-License-Identifier: MIT */
/* transfer.c - the life of a transfer: pool, resolver, libcurl or direct path, on_done, pool. */
#include "http/net/net_internal.h"

#include "base/alloc.h"
#include "base/error.h"
#include "core/web/http/field.h"
#include "limiter/clock/clock.h"

/* ---- lists ---- */

static void link_transfer(struct wr_transfer **list, struct wr_transfer *transfer)
{
    transfer->prev = NULL;
    transfer->next = *list;
    if (*list != NULL)
        (*list)->prev = transfer;
    *list = transfer;
}

static void unlink_transfer(struct wr_transfer **list, struct wr_transfer *transfer)
{
    *(transfer->prev != NULL ? &transfer->prev->next : list) = transfer->next;
    if (transfer->next != NULL)
        transfer->next->prev = transfer->prev;
}

/* ---- ending ---- */

void wr_transfer_end(struct wr_transfer *transfer)
{
    struct wr_net *net = transfer->net;

    if (transfer->stage == WR_STAGE_ENDED)
        return;
    if (transfer->stage == WR_STAGE_RESOLVING)
        wr_resolver_cancel(net->options.resolver, &transfer->query);
    wr_result_fill(transfer);
    wr_transfer_body_dequeue(transfer);
    if (transfer->stage == WR_STAGE_CURL) {
        wr_easy_unpause(transfer);
        wr_socket_release_connecting(transfer);
        (void)curl_multi_remove_handle(net->multi, transfer->easy);
    }
    if (transfer->stage == WR_STAGE_HTTP1)
        wr_http1_detach(transfer);
    wr_memory_guard_release(transfer);
    wr_deadline_end(transfer);
    transfer->stage = WR_STAGE_ENDED;
    unlink_transfer(&net->under_way, transfer);
    link_transfer(&net->ended, transfer);
}

/* Returns a transfer to the pool, unless a resolver's answer for it is still queued as a call. */
static void recycle(struct wr_transfer *transfer)
{
    struct wr_net *net = transfer->net;

    transfer->stage = transfer->is_answer_posted ? WR_STAGE_LEAVING : WR_STAGE_IDLE;
    if (transfer->is_answer_posted)
        return;
    transfer->next = net->pool;
    net->pool = transfer;
    if (--net->transfers == 0)
        uv_unref((uv_handle_t *)&net->wakeup.uv);
}

/* Clears the request and its response. */
static void clear_request(struct wr_transfer *transfer)
{
    if (transfer->bypasses_libcurl)
        wr_http1_clear(transfer);
    else
        wr_easy_clear(transfer);
    wr_transfer_body_clear(transfer);
    wr_head_clear(&transfer->head);
}

void wr_transfer_finish(struct wr_transfer *transfer)
{
    unlink_transfer(&transfer->net->ended, transfer);
    transfer->result.done_at = wr_clock_now(transfer->net->clock);
    transfer->calls.on_done(transfer->context, &transfer->result);
    clear_request(transfer);
    recycle(transfer);
}

void wr_transfer_free(struct wr_transfer *transfer)
{
    const weir_allocator *allocator = transfer->net->allocator;

    wr_easy_free(transfer);
    wr_http1_free(transfer);
    wr_transfer_body_clear(transfer);
    wr_head_release(&transfer->head);
    wr_free(allocator, transfer, sizeof *transfer, _Alignof(struct wr_transfer));
}

void wr_net_cancel(struct wr_transfer *transfer)
{
    if (transfer->stage == WR_STAGE_ENDED)
        return;
    transfer->is_cancelled = true;
    if (!transfer->net->in_curl && !transfer->is_busy) {
        wr_transfer_set_end(transfer, WR_NET_CANCELLED, NULL);
        wr_transfer_end(transfer);
    } else {
        transfer->net->has_cancelled = true;
    }
    wr_net_wake(transfer->net);
}

/* ---- resolving ---- */

static void end_and_wake(struct wr_transfer *transfer, enum wr_net_end end, const char *words)
{
    wr_transfer_set_end(transfer, end, words);
    wr_transfer_end(transfer);
    wr_net_wake(transfer->net);
}

/* Removes blocked addresses. Returns false and ends the transfer if no address is left. */
static bool allow_addresses(struct wr_transfer *transfer, const struct wr_dns_answer *answer,
                            struct wr_dns_answer *ret_allowed)
{
    struct wr_dns_answer allowed = {.kind = WR_DNS_FOUND};
    enum wr_guard_class class = WR_GUARD_PUBLIC;

    for (size_t i = 0; i < answer->count; i++) {
        enum wr_guard_class each = wr_net_classify_address(transfer->net, &answer->list[i]);
        if (each == WR_GUARD_PUBLIC)
            allowed.list[allowed.count++] = answer->list[i];
        else
            class = each;
    }
    if (allowed.count == 0) {
        end_and_wake(transfer, WR_NET_BLOCKED, wr_guard_text(class));
        return false;
    }
    *ret_allowed = allowed;
    return true;
}

/* Connects to one of these addresses, with libcurl or directly. */
static void connect_transfer(struct wr_transfer *transfer, const struct wr_dns_answer *answer)
{
    struct wr_net *net = transfer->net;

    transfer->result.resolved_at = wr_clock_now(net->clock);
    if (transfer->bypasses_libcurl)
        wr_http1_start(transfer, answer);
    else if (wr_easy_pin(transfer, answer) < 0 || curl_multi_add_handle(net->multi, transfer->easy) != CURLM_OK)
        end_and_wake(transfer, WR_NET_SCARCE, NULL);
    else
        transfer->stage = WR_STAGE_CURL;
}

/* Asks for the addresses of a host, or parses it as one. Returns true if the answer is known. */
static bool resolve_host(struct wr_transfer *transfer, const char *host)
{
    struct wr_address address;
    bool is_ready = true;

    transfer->stage = WR_STAGE_RESOLVING;
    transfer->query.name = NULL;
    if (wr_address_parse(wr_span_of(host), &address)) {
        transfer->query.answer = (struct wr_dns_answer){.kind = WR_DNS_FOUND};
        wr_dns_answer_add(&transfer->query.answer, &address);
    } else if (wr_resolver_resolve(transfer->net->options.resolver, wr_span_of(host), &transfer->query, &is_ready) <
               0) {
        end_and_wake(transfer, WR_NET_SCARCE, "too few resources to look up its name");
        return false;
    }
    return is_ready;
}

static void end_without_name(struct wr_transfer *transfer)
{
    if (transfer->query.answer.kind == WR_DNS_SCARCE)
        end_and_wake(transfer, WR_NET_SCARCE, "too few resources to look up its name");
    else if (transfer->is_proxy_asked)
        end_and_wake(transfer, WR_NET_PROXY, "its name could not be looked up");
    else
        end_and_wake(transfer, transfer->query.answer.kind == WR_DNS_ABSENT ? WR_NET_NO_NAME : WR_NET_NAME_FAILED,
                     NULL);
}

/* Handles the resolver's answer. Returns true if the proxy's addresses are needed next; then those
 * of the target were only checked by the guard. */
static bool take_dns_answer(struct wr_transfer *transfer)
{
    const struct wr_dns_answer *answer = &transfer->query.answer;
    struct wr_dns_answer allowed;

    if (answer->kind != WR_DNS_FOUND) {
        end_without_name(transfer);
        return false;
    }
    if (transfer->is_proxy_asked) {
        connect_transfer(transfer, answer);
        return false;
    }
    if (!allow_addresses(transfer, answer, &allowed))
        return false;
    transfer->is_proxy_asked = transfer->net->proxy.is_set;
    if (!transfer->is_proxy_asked)
        connect_transfer(transfer, &allowed);
    return transfer->is_proxy_asked;
}

static void continue_resolving(struct wr_transfer *transfer)
{
    bool has_answer = true;

    while (has_answer && take_dns_answer(transfer))
        has_answer = resolve_host(transfer, transfer->net->proxy.host);
}

/* Asks for the target's addresses, which the guard checks; without it, a proxy's are enough. */
static void resolve_first(struct wr_transfer *transfer)
{
    const struct wr_net *net = transfer->net;

    transfer->is_proxy_asked = net->proxy.is_set && net->options.allow_private;
    if (resolve_host(transfer, transfer->is_proxy_asked ? net->proxy.host : transfer->host))
        continue_resolving(transfer);
}

/* Continues a transfer on the loop's thread after the resolver's answer. */
static void on_answer_posted(struct wr_net_posted_call *call)
{
    struct wr_transfer *transfer = (struct wr_transfer *)((char *)call - offsetof(struct wr_transfer, answered));

    transfer->is_answer_posted = false;
    if (transfer->stage == WR_STAGE_POSTED)
        resolve_first(transfer);
    else if (transfer->stage == WR_STAGE_RESOLVING)
        continue_resolving(transfer);
    else if (transfer->stage == WR_STAGE_LEAVING)
        recycle(transfer);
}

/* Called on a thread of the resolver. */
static void on_dns_answer(struct wr_dns_query *query)
{
    struct wr_transfer *transfer = (struct wr_transfer *)((char *)query - offsetof(struct wr_transfer, query));

    transfer->is_answer_posted = true;
    wr_net_post(transfer->net, &transfer->answered);
}

/* ---- starting ---- */

static int check_fields(const struct wr_net_request *request)
{
    static const char *const ours[] = {"Host", "Connection", "Content-Length", "Transfer-Encoding", "TE", "Expect"};

    for (size_t i = 0; i < request->field_count; i++) {
        const struct wr_net_field *field = &request->fields[i];
        if (!wr_field_is_sound(field->name, field->value))
            return wr_invalid("a header field has a name that is a token, and a value without control characters");
        for (size_t j = 0; j < sizeof ours / sizeof ours[0]; j++)
            if (wr_field_is(field->name, ours[j]))
                return wr_invalid("a header field that frames the request cannot be set by the caller");
    }
    return 0;
}

static bool has_body(const char *method)
{
    return method != NULL && strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0;
}

static int check_request(const struct wr_net_request *request)
{
    const char *method = request->method;

    if (request->url == NULL)
        return wr_invalid("a request needs a URL");
    if (method != NULL && (!wr_field_is_sound(wr_span_of(method), wr_span_of("")) || strcmp(method, "CONNECT") == 0))
        return wr_invalid("a method is a token, and not CONNECT");
    if (request->body_max > WR_NET_BODY_MAX)
        return wr_invalid("a body has 2^40 bytes at most");
    if (request->body.bytes > 0 && !has_body(method))
        return wr_invalid("GET and HEAD have no body");
    return check_fields(request);
}

static int make_transfer(struct wr_net *net, struct wr_transfer **ret_transfer)
{
    const struct wr_head_limits limits = {.bytes_max = net->options.head_max, .interims_max = WR_NET_INTERIMS_MAX};

    if (net->made == net->options.transfers_max)
        return WEIR_E_FULL;
    struct wr_transfer *transfer = wr_alloc(net->allocator, sizeof *transfer, _Alignof(struct wr_transfer));
    if (transfer == NULL)
        return WEIR_E_NOMEM;
    transfer->net = net;
    transfer->query.on_answer = on_dns_answer;
    transfer->answered.run = on_answer_posted;
    wr_head_init(&transfer->head, net->allocator, &limits);
    wr_transfer_body_init(transfer);
    net->made++;
    transfer->next = net->pool;
    net->pool = transfer;
    *ret_transfer = transfer;
    return 0;
}

bool wr_net_is_idempotent(const char *method)
{
    static const char *const those[] = {"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"};

    for (size_t i = 0; method != NULL && i < sizeof those / sizeof those[0]; i++)
        if (strcmp(method, those[i]) == 0)
            return true;
    return method == NULL;
}

static void note_request(struct wr_transfer *transfer, const struct wr_net_request *request)
{
    wr_host_copy(wr_url_host(request->url), transfer->host);
    transfer->port = request->url->port;
    transfer->is_https = request->url->is_https;
    transfer->is_idempotent = wr_net_is_idempotent(request->method);
    transfer->is_proxy_asked = false;
    transfer->is_head_reported = transfer->is_cancelled = transfer->has_end = false;
    transfer->body_max = request->body_max != 0 ? request->body_max : transfer->net->options.body_max;
    transfer->judged = WR_GUARD_PUBLIC;
    transfer->socket_errno = 0;
    transfer->speed_at = 0;
    transfer->speed_bytes = 0;
    transfer->result = (struct wr_net_result){.asked_at = wr_clock_now(transfer->net->clock)};
}

/* Prepares the libcurl handle. Does nothing if memory is short: the transfer then ends at once. */
static int set_easy(struct wr_transfer *transfer, const struct wr_net_request *request)
{
    if (!wr_memory_guard_admit(transfer))
        return 0;
    int error = transfer->easy != NULL ? 0 : wr_easy_new(transfer);
    return error == 0 ? wr_easy_set_request(transfer, request) : error;
}

/* Does every step of starting a transfer that can fail. */
static int prepare_transfer(struct wr_transfer *transfer, const struct wr_net_request *request)
{
    note_request(transfer, request);
    transfer->bypasses_libcurl = wr_http1_can_send(transfer->net, request);
    int error = transfer->bypasses_libcurl ? wr_http1_set_request(transfer, request) : set_easy(transfer, request);
    if (error == 0)
        error = wr_deadline_begin(transfer);
    if (error < 0) {
        wr_memory_guard_release(transfer);
        clear_request(transfer);
    }
    return error;
}

static void begin_transfer(struct wr_transfer *transfer)
{
    struct wr_net *net = transfer->net;

    net->pool = transfer->next;
    link_transfer(&net->under_way, transfer);
    if (net->transfers++ == 0)
        uv_ref((uv_handle_t *)&net->wakeup.uv);
    net->started++;
    if (!transfer->bypasses_libcurl && !transfer->is_admitted) {
        end_and_wake(transfer, WR_NET_SCARCE, "memory is low");
    } else if (net->in_curl) { /* libcurl can take no transfer inside a callback */
        transfer->stage = WR_STAGE_POSTED;
        on_dns_answer(&transfer->query);
    } else {
        resolve_first(transfer);
    }
}

void wr_net_flush(struct wr_net *net)
{
    wr_http1_flush(net);
}

int wr_net_start(struct wr_net *net, const struct wr_net_request *request, const struct wr_net_callbacks *calls,
                 void *context, struct wr_transfer **ret_transfer)
{
    struct wr_transfer *transfer = net->pool;
    int error = check_request(request);

    if (error == 0 && transfer == NULL)
        error = make_transfer(net, &transfer);
    if (error == 0)
        error = prepare_transfer(transfer, request);
    if (error < 0)
        return error;
    transfer->calls = *calls;
    transfer->context = context;
    *ret_transfer = transfer;
    begin_transfer(transfer);
    return 0;
}
