/* SPDX-License-Identifier: MIT */
/* http1.c - a transfer on the direct path: from the queue over a connection to its end. */
#include "http/net/net_internal.h"

#include "base/alloc.h"
#include "http/loop/watchdog.h"
#include "limiter/clock/clock.h"
#include "limiter/memory/memory.h"

#include <errno.h>
#include <sys/socket.h>

/* Delay before the next address is tried in parallel (RFC 8305 8: 100 ms … 2 s). */
#define RACE_NS (200 * WEIR_MILLISECOND)

/* ---- the queue ---- */

static void enqueue_transfer(struct wr_transfer *transfer)
{
    struct wr_http1 *http1 = &transfer->net->http1;
    struct wr_http1_transfer *part = &transfer->http1;

    part->next = NULL;
    part->prev = http1->last;
    *(http1->last != NULL ? &http1->last->http1.next : &http1->first) = transfer;
    http1->last = transfer;
    http1->queued++;
    part->is_queued = true;
}

static void dequeue_transfer(struct wr_transfer *transfer)
{
    struct wr_http1 *http1 = &transfer->net->http1;
    struct wr_http1_transfer *part = &transfer->http1;

    if (!part->is_queued)
        return;
    *(part->prev != NULL ? &part->prev->http1.next : &http1->first) = part->next;
    *(part->next != NULL ? &part->next->http1.prev : &http1->last) = part->prev;
    http1->queued--;
    part->is_queued = false;
}

/* ---- ending ---- */

static void end_transfer(struct wr_transfer *transfer, enum wr_net_end how, const char *words)
{
    wr_transfer_set_end(transfer, how, words);
    wr_transfer_end(transfer);
}

static const char *errno_text(int failure)
{
    return uv_strerror(uv_translate_sys_error(failure)); /* a static string for known errors */
}

/* Ends a transfer that could not connect to any address. */
static void end_unconnected(struct wr_transfer *transfer)
{
    int failure = transfer->socket_errno;

    if (transfer->judged != WR_GUARD_PUBLIC)
        end_transfer(transfer, WR_NET_BLOCKED, wr_guard_text(transfer->judged));
    else
        end_transfer(transfer, wr_result_is_scarce(failure) ? WR_NET_SCARCE : WR_NET_CONNECT, errno_text(failure));
}

void wr_http1_detach(struct wr_transfer *transfer)
{
    struct wr_http1_transfer *http1 = &transfer->http1;

    dequeue_transfer(transfer);
    if (http1->conn != NULL)
        wr_http1_conn_close(http1->conn);
    http1->conn = NULL;
    while (http1->connecting != NULL) {
        struct wr_http1_conn *conn = http1->connecting;
        http1->connecting = conn->next;
        conn->next = NULL;
        wr_http1_conn_close(conn);
    }
    http1->race_at = 0;
}

/* ---- sending ---- */

static void read_response(struct wr_http1_conn *conn);

static void watch_transfer(struct wr_http1_conn *conn)
{
    const struct wr_http1_transfer *http1 = &conn->transfer->http1;
    bool is_unsent = http1->written < http1->request.length && !http1->is_given_up;

    wr_http1_conn_watch(conn,
                        (wr_transfer_body_waits(conn->transfer) ? 0 : UV_READABLE) | (is_unsent ? UV_WRITABLE : 0));
}

/* Writes the rest of the request. If the connection is dead, a read reports why. */
static void write_rest(struct wr_http1_conn *conn)
{
    struct wr_http1_transfer *http1 = &conn->transfer->http1;
    struct wr_span rest = wr_buf_from(&http1->request, http1->written);
    bool is_first = http1->written == 0;

    if (is_first)
        wr_callback_writing(conn->transfer);
    ssize_t sent = send(conn->fd, rest.data, rest.bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0 && is_first)
        wr_callback_written(conn->transfer);
    if (sent > 0)
        http1->written += (size_t)sent;
    bool is_dead = sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR;
    if (is_dead && wr_transfer_body_waits(conn->transfer)) /* the connection is read later */
        http1->is_last = http1->is_given_up = true;
    if (is_dead && !wr_transfer_body_waits(conn->transfer))
        read_response(conn);
    else
        watch_transfer(conn);
}

/* Sends the request on a connection that is established and belongs to this transfer. */
static void send_http1_request(struct wr_transfer *transfer, struct wr_http1_conn *conn)
{
    struct wr_http1_transfer *http1 = &transfer->http1;

    http1->conn = conn;
    http1->written = 0;
    transfer->is_busy = true;
    bool may_go = wr_callback_before_send(transfer, &conn->address, conn->port);
    transfer->is_busy = false;
    if (may_go) {
        transfer->result.is_reused = conn->is_used;
        write_rest(conn);
        return;
    }
    if (conn->is_used) {
        http1->conn = NULL;
        wr_http1_conn_make_idle(conn);
    }
    wr_transfer_end(transfer);
}

/* ---- connecting ---- */

/* Connects to the next allowed address, beside earlier attempts. Ends the transfer if all fail. */
static void connect_next(struct wr_transfer *transfer)
{
    struct wr_http1_transfer *http1 = &transfer->http1;
    struct wr_http1_conn *conn = NULL;

    while (conn == NULL && http1->tried < http1->addresses.count) {
        const struct wr_address *address = &http1->addresses.list[http1->tried++];
        enum wr_guard_class class = wr_net_classify_address(transfer->net, address);
        if (class == WR_GUARD_PUBLIC)
            conn = wr_http1_conn_open(transfer, address);
        else
            transfer->judged = class;
    }
    http1->race_at = 0;
    if (conn != NULL) {
        conn->next = http1->connecting;
        http1->connecting = conn;
    }
    if (conn != NULL && http1->tried < http1->addresses.count) {
        int64_t now = wr_clock_now(transfer->net->clock);
        http1->race_at = now + RACE_NS;
        wr_deadline_change(transfer, now);
    }
    if (http1->connecting == NULL)
        end_unconnected(transfer);
}

static bool has_free_connection(struct wr_net *net)
{
    return net->connections < net->options.connections_max || wr_http1_conn_evict(net);
}

void wr_http1_try_next_address(struct wr_transfer *transfer)
{
    if (has_free_connection(transfer->net))
        connect_next(transfer);
    else
        transfer->http1.race_at = 0; /* no free connection: the attempts in progress continue */
}

/* Removes a connection from its transfer's attempts. */
static void remove_connecting(struct wr_http1_conn *conn)
{
    struct wr_http1_conn **link = &conn->transfer->http1.connecting;

    while (*link != conn)
        link = &(*link)->next;
    *link = conn->next;
    conn->next = NULL;
}

/* Handles the result of an attempt. If it succeeded, closes the parallel attempts. */
static void on_connected(struct wr_http1_conn *conn)
{
    struct wr_transfer *transfer = conn->transfer;

    remove_connecting(conn);
    if (!wr_http1_conn_is_established(conn)) {
        transfer->socket_errno = errno;
        wr_http1_conn_close(conn);
        connect_next(transfer);
        return;
    }
    wr_http1_detach(transfer);
    send_http1_request(transfer, conn);
}

/* ---- starting after a poll ---- */

/* Starts a queued transfer. Returns false if it stays queued, because there are no connections. */
static bool start_queued(struct wr_transfer *transfer)
{
    struct wr_http1_transfer *http1 = &transfer->http1;
    struct wr_http1_conn *conn = http1->is_fresh ? NULL : wr_http1_conn_take_idle(transfer);

    while (conn != NULL && transfer->net->http1.is_flushing && !wr_http1_conn_is_quiet(conn)) {
        wr_http1_conn_close(conn);
        conn = wr_http1_conn_take_idle(transfer);
    }

    if (conn == NULL && !has_free_connection(transfer->net))
        return false;
    dequeue_transfer(transfer);
    if (conn != NULL)
        send_http1_request(transfer, conn);
    else
        connect_next(transfer);
    return true;
}

/* Starts the queued transfers, but none added meanwhile: the loop has not polled since. */
static void start_all_queued(struct wr_net *net)
{
    WR_DOING("starts");
    struct wr_http1 *http1 = &net->http1;

    struct wr_time_slice slice = wr_time_slice_begin(WR_TIME_SLICE_NS);

    (void)uv_check_stop(&http1->polled);
    (void)uv_idle_stop(&http1->no_wait);
    for (uint32_t left = http1->queued; left > 0 && http1->first != NULL; left--) {
        if (!wr_time_slice_lasts(&slice)) {
            wr_http1_start_soon(net); /* the others start when the loop has polled again */
            return;
        }
        if (!start_queued(http1->first))
            return;
    }
}

static void on_http1_polled(uv_check_t *polled)
{
    struct wr_net *net = polled->data;

    start_all_queued(net);
    wr_net_finish(net);
}

void wr_http1_flush(struct wr_net *net)
{
    if (net->http1.first == NULL)
        return;
    net->http1.is_flushing = true;
    start_all_queued(net);
    net->http1.is_flushing = false;
    if (!net->in_settle)
        wr_net_finish(net);
}

static void on_http1_idle(uv_idle_t *no_wait)
{
    (void)no_wait;
}

void wr_http1_start_soon(struct wr_net *net)
{
    if (net->http1.first == NULL)
        return;
    (void)uv_check_start(&net->http1.polled, on_http1_polled);
    (void)uv_idle_start(&net->http1.no_wait, on_http1_idle);
}

void wr_http1_start(struct wr_transfer *transfer, const struct wr_dns_answer *addresses)
{
    transfer->stage = WR_STAGE_HTTP1;
    transfer->http1.addresses = *addresses;
    transfer->http1.tried = 0;
    enqueue_transfer(transfer);
    wr_http1_start_soon(transfer->net);
}

/* ---- events of a connection ---- */

/* Handles a connection that ended before the response did. A reused one may have been dead before
 * the request was written: resends it once, on a new connection. */
static void on_conn_broken(struct wr_transfer *transfer, int failure)
{
    struct wr_http1_transfer *http1 = &transfer->http1;

    if (!http1->conn->is_used || http1->is_fresh || http1->received > 0) {
        end_transfer(transfer, WR_NET_BROKEN, failure != 0 ? errno_text(failure) : "closed by the server");
        return;
    }
    wr_http1_detach(transfer);
    http1->is_fresh = true;
    http1->tried = 0;
    enqueue_transfer(transfer);
    wr_http1_start_soon(transfer->net);
}

static void on_response_ended(struct wr_transfer *transfer, struct wr_http1_conn *conn)
{
    struct wr_http1_transfer *http1 = &transfer->http1;
    bool is_whole = !transfer->has_end && http1->frame == WR_FRAMING_COMPLETE;

    if (is_whole && http1->is_kept && !http1->is_last && http1->written == http1->request.length) {
        http1->conn = NULL;
        wr_http1_conn_make_idle(conn);
    }
    end_transfer(transfer, WR_NET_DONE, NULL);
}

static void read_response(struct wr_http1_conn *conn)
{
    struct wr_transfer *transfer = conn->transfer;
    int failure = 0;

    transfer->is_busy = true;
    enum wr_http1_read_result read = wr_http1_read(conn, &failure);
    transfer->is_busy = false;
    if (read == WR_HTTP1_READ_BROKEN)
        on_conn_broken(transfer, failure);
    else if (read == WR_HTTP1_READ_ENDED)
        on_response_ended(transfer, conn);
    else if (read == WR_HTTP1_READ_DECODING)
        watch_transfer(conn);
}

void wr_http1_decoded(struct wr_transfer *transfer)
{
    struct wr_http1_conn *conn = transfer->http1.conn;

    if (transfer->has_end || transfer->http1.frame == WR_FRAMING_COMPLETE)
        on_response_ended(transfer, conn);
    else
        watch_transfer(conn);
}

void wr_http1_on_poll(uv_poll_t *poll, int status, int events)
{
    WR_DOING("an answer on the wire");
    struct wr_http1_conn *conn = poll->data;
    struct wr_net *net = conn->net;
    bool was_in = net->in_settle;

    if (conn->transfer == NULL) {
        wr_http1_conn_close(conn);
        return;
    }
    net->in_settle = true;
    if (status < 0) { /* libuv has stopped polling; bytes may precede the error */
        conn->events = 0;
        wr_http1_conn_watch(conn, UV_READABLE);
    }
    if (!conn->is_connected)
        on_connected(conn);
    else if (status == 0 && (events & UV_READABLE) == 0)
        write_rest(conn);
    else
        read_response(conn);
    net->in_settle = was_in;
    wr_net_finish(net);
}

/* ---- setup of a net ---- */

int wr_http1_open(struct wr_net *net)
{
    uint8_t secret[WR_HASH_SECRET_BYTES];

    if (wr_random(secret, sizeof secret) < 0)
        return WEIR_E_SYSTEM;
    wr_hash_key_init(&net->http1.hash_key, secret);
    wr_map_init(&net->http1.idle, net->allocator, &net->http1.hash_key, net->options.connections_max);
    net->http1.bytes = wr_alloc(net->allocator, WR_HTTP1_READ_BYTES, 1);
    return net->http1.bytes != NULL ? 0 : WEIR_E_NOMEM;
}

void wr_http1_close(struct wr_net *net)
{
    while (wr_http1_conn_evict(net))
        ;
}

void wr_http1_release(struct wr_net *net)
{
    wr_map_release(&net->http1.idle);
    wr_free(net->allocator, net->http1.bytes, WR_HTTP1_READ_BYTES, 1);
}

bool wr_http1_can_send(const struct wr_net *net, const struct wr_net_request *request)
{
    const char *method = request->method;

    return !net->options.uses_libcurl_only && !net->proxy.is_set && !request->url->is_https &&
           (method == NULL || strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0);
}
