/* SPDX-License-Identifier: MIT */
/* lean.c - a transfer on the direct path: from the queue over a connection to its end. */
#include "shell/net/state.h"

#include "base/alloc.h"
#include "shell/clock/clock.h"
#include "shell/loop/away.h"
#include "shell/memory/memory.h"

#include <errno.h>
#include <sys/socket.h>

/* Delay before the next address is tried in parallel (RFC 8305 8: 100 ms … 2 s). */
#define RACE_NS (200 * WEIR_MILLISECOND)

/* ---- the queue ---- */

static void enqueue(struct wr_transfer *transfer)
{
    struct wr_lean *lean = &transfer->net->lean;
    struct wr_lean_part *part = &transfer->lean;

    part->next = NULL;
    part->prev = lean->last;
    *(lean->last != NULL ? &lean->last->lean.next : &lean->first) = transfer;
    lean->last = transfer;
    lean->queued++;
    part->is_queued = true;
}

static void dequeue(struct wr_transfer *transfer)
{
    struct wr_lean *lean = &transfer->net->lean;
    struct wr_lean_part *part = &transfer->lean;

    if (!part->is_queued)
        return;
    *(part->prev != NULL ? &part->prev->lean.next : &lean->first) = part->next;
    *(part->next != NULL ? &part->next->lean.prev : &lean->last) = part->prev;
    lean->queued--;
    part->is_queued = false;
}

/* ---- ending ---- */

static void end(struct wr_transfer *transfer, enum wr_net_end how, const char *words)
{
    wr_transfer_set_end(transfer, how, words);
    wr_transfer_end(transfer);
}

static const char *words_of(int failure)
{
    return uv_strerror(uv_translate_sys_error(failure)); /* a static string for known errors */
}

/* Ends a transfer that could not connect to any address. */
static void end_unconnected(struct wr_transfer *transfer)
{
    int failure = transfer->socket_errno;

    if (transfer->judged != WR_GUARD_PUBLIC)
        end(transfer, WR_NET_BLOCKED, wr_guard_text(transfer->judged));
    else
        end(transfer, wr_result_is_scarce(failure) ? WR_NET_SCARCE : WR_NET_CONNECT, words_of(failure));
}

void wr_lean_leave(struct wr_transfer *transfer)
{
    struct wr_lean_part *lean = &transfer->lean;

    dequeue(transfer);
    if (lean->conn != NULL)
        wr_conn_close(lean->conn);
    lean->conn = NULL;
    while (lean->connecting != NULL) {
        struct wr_conn *conn = lean->connecting;
        lean->connecting = conn->next;
        conn->next = NULL;
        wr_conn_close(conn);
    }
    lean->race_at = 0;
}

/* ---- sending ---- */

static void read_answer(struct wr_conn *conn);

static void watch(struct wr_conn *conn)
{
    const struct wr_lean_part *lean = &conn->transfer->lean;
    bool is_unsent = lean->written < lean->request.length && !lean->is_given_up;

    wr_conn_watch(conn, (wr_body_waits(conn->transfer) ? 0 : UV_READABLE) | (is_unsent ? UV_WRITABLE : 0));
}

/* Writes the rest of the request. If the connection is dead, a read reports why. */
static void write_rest(struct wr_conn *conn)
{
    struct wr_lean_part *lean = &conn->transfer->lean;
    struct wr_span rest = wr_buf_from(&lean->request, lean->written);
    bool is_first = lean->written == 0;

    if (is_first)
        wr_tell_writing(conn->transfer);
    ssize_t sent = send(conn->fd, rest.data, rest.bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0 && is_first)
        wr_tell_written(conn->transfer);
    if (sent > 0)
        lean->written += (size_t)sent;
    bool is_dead = sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR;
    if (is_dead && wr_body_waits(conn->transfer)) /* the connection is read later */
        lean->is_last = lean->is_given_up = true;
    if (is_dead && !wr_body_waits(conn->transfer))
        read_answer(conn);
    else
        watch(conn);
}

/* Sends the request on a connection that is established and belongs to this transfer. */
static void send_request(struct wr_transfer *transfer, struct wr_conn *conn)
{
    struct wr_lean_part *lean = &transfer->lean;

    lean->conn = conn;
    lean->written = 0;
    transfer->is_busy = true;
    bool may_go = wr_tell_send(transfer, &conn->address, conn->port);
    transfer->is_busy = false;
    if (may_go) {
        transfer->result.is_reused = conn->is_used;
        write_rest(conn);
        return;
    }
    if (conn->is_used) {
        lean->conn = NULL;
        wr_conn_keep(conn);
    }
    wr_transfer_end(transfer);
}

/* ---- connecting ---- */

/* Connects to the next allowed address, beside earlier attempts. Ends the transfer if all fail. */
static void connect_next(struct wr_transfer *transfer)
{
    struct wr_lean_part *lean = &transfer->lean;
    struct wr_conn *conn = NULL;

    while (conn == NULL && lean->tried < lean->addresses.count) {
        const struct wr_address *address = &lean->addresses.list[lean->tried++];
        enum wr_guard_class class = wr_net_judge(transfer->net, address);
        if (class == WR_GUARD_PUBLIC)
            conn = wr_conn_open(transfer, address);
        else
            transfer->judged = class;
    }
    lean->race_at = 0;
    if (conn != NULL) {
        conn->next = lean->connecting;
        lean->connecting = conn;
    }
    if (conn != NULL && lean->tried < lean->addresses.count) {
        int64_t now = wr_clock_now(transfer->net->clock);
        lean->race_at = now + RACE_NS;
        wr_due_change(transfer, now);
    }
    if (lean->connecting == NULL)
        end_unconnected(transfer);
}

static bool has_room(struct wr_net *net)
{
    return net->connections < net->options.connections_max || wr_conn_evict(net);
}

void wr_lean_race(struct wr_transfer *transfer)
{
    if (has_room(transfer->net))
        connect_next(transfer);
    else
        transfer->lean.race_at = 0; /* no free connection: the attempts in progress continue */
}

/* Removes a connection from its transfer's attempts. */
static void leave_connecting(struct wr_conn *conn)
{
    struct wr_conn **link = &conn->transfer->lean.connecting;

    while (*link != conn)
        link = &(*link)->next;
    *link = conn->next;
    conn->next = NULL;
}

/* Handles the result of an attempt. If it succeeded, closes the parallel attempts. */
static void on_connected(struct wr_conn *conn)
{
    struct wr_transfer *transfer = conn->transfer;

    leave_connecting(conn);
    if (!wr_conn_is_up(conn)) {
        transfer->socket_errno = errno;
        wr_conn_close(conn);
        connect_next(transfer);
        return;
    }
    wr_lean_leave(transfer);
    send_request(transfer, conn);
}

/* ---- starting after a poll ---- */

/* Starts a queued transfer. Returns false if it stays queued, because there are no connections. */
static bool begin(struct wr_transfer *transfer)
{
    struct wr_lean_part *lean = &transfer->lean;
    struct wr_conn *conn = lean->is_fresh ? NULL : wr_conn_take(transfer);

    while (conn != NULL && transfer->net->lean.is_flushing && !wr_conn_is_quiet(conn)) {
        wr_conn_close(conn);
        conn = wr_conn_take(transfer);
    }

    if (conn == NULL && !has_room(transfer->net))
        return false;
    dequeue(transfer);
    if (conn != NULL)
        send_request(transfer, conn);
    else
        connect_next(transfer);
    return true;
}

/* Starts the queued transfers, but none added meanwhile: the loop has not polled since. */
static void begin_queued(struct wr_net *net)
{
    WR_DOING("starts");
    struct wr_lean *lean = &net->lean;

    struct wr_share share = wr_share_begin(WR_SHARE_NS);

    (void)uv_check_stop(&lean->polled);
    (void)uv_idle_stop(&lean->no_wait);
    for (uint32_t left = lean->queued; left > 0 && lean->first != NULL; left--) {
        if (!wr_share_lasts(&share)) {
            wr_lean_freed(net); /* the others start when the loop has polled again */
            return;
        }
        if (!begin(lean->first))
            return;
    }
}

static void on_polled(uv_check_t *polled)
{
    struct wr_net *net = polled->data;

    begin_queued(net);
    wr_net_finish(net);
}

void wr_lean_flush(struct wr_net *net)
{
    if (net->lean.first == NULL)
        return;
    net->lean.is_flushing = true;
    begin_queued(net);
    net->lean.is_flushing = false;
    if (!net->in_settle)
        wr_net_finish(net);
}

static void on_idle(uv_idle_t *no_wait)
{
    (void)no_wait;
}

void wr_lean_freed(struct wr_net *net)
{
    if (net->lean.first == NULL)
        return;
    (void)uv_check_start(&net->lean.polled, on_polled);
    (void)uv_idle_start(&net->lean.no_wait, on_idle);
}

void wr_lean_start(struct wr_transfer *transfer, const struct wr_answer *addresses)
{
    transfer->stage = WR_STAGE_LEAN;
    transfer->lean.addresses = *addresses;
    transfer->lean.tried = 0;
    enqueue(transfer);
    wr_lean_freed(transfer->net);
}

/* ---- events of a connection ---- */

/* Handles a connection that ended before the response did. A reused one may have been dead before
 * the request was written: resends it once, on a new connection. */
static void on_broken(struct wr_transfer *transfer, int failure)
{
    struct wr_lean_part *lean = &transfer->lean;

    if (!lean->conn->is_used || lean->is_fresh || lean->received > 0) {
        end(transfer, WR_NET_BROKEN, failure != 0 ? words_of(failure) : "closed by the server");
        return;
    }
    wr_lean_leave(transfer);
    lean->is_fresh = true;
    lean->tried = 0;
    enqueue(transfer);
    wr_lean_freed(transfer->net);
}

static void on_ended(struct wr_transfer *transfer, struct wr_conn *conn)
{
    struct wr_lean_part *lean = &transfer->lean;
    bool is_whole = !transfer->has_end && lean->frame == WR_FRAME_WHOLE;

    if (is_whole && lean->is_kept && !lean->is_last && lean->written == lean->request.length) {
        lean->conn = NULL;
        wr_conn_keep(conn);
    }
    end(transfer, WR_NET_DONE, NULL);
}

static void read_answer(struct wr_conn *conn)
{
    struct wr_transfer *transfer = conn->transfer;
    int failure = 0;

    transfer->is_busy = true;
    enum wr_read read = wr_lean_read(conn, &failure);
    transfer->is_busy = false;
    if (read == WR_READ_BROKE)
        on_broken(transfer, failure);
    else if (read == WR_READ_ENDED)
        on_ended(transfer, conn);
    else if (read == WR_READ_WAITS)
        watch(conn);
}

void wr_lean_unpacked(struct wr_transfer *transfer)
{
    struct wr_conn *conn = transfer->lean.conn;

    if (transfer->has_end || transfer->lean.frame == WR_FRAME_WHOLE)
        on_ended(transfer, conn);
    else
        watch(conn);
}

void wr_lean_on_poll(uv_poll_t *poll, int status, int events)
{
    WR_DOING("an answer on the wire");
    struct wr_conn *conn = poll->data;
    struct wr_net *net = conn->net;
    bool was_in = net->in_settle;

    if (conn->transfer == NULL) {
        wr_conn_close(conn);
        return;
    }
    net->in_settle = true;
    if (status < 0) { /* libuv has stopped polling; bytes may precede the error */
        conn->events = 0;
        wr_conn_watch(conn, UV_READABLE);
    }
    if (!conn->is_connected)
        on_connected(conn);
    else if (status == 0 && (events & UV_READABLE) == 0)
        write_rest(conn);
    else
        read_answer(conn);
    net->in_settle = was_in;
    wr_net_finish(net);
}

/* ---- setup of a net ---- */

int wr_lean_open(struct wr_net *net)
{
    uint8_t secret[WR_HASH_SECRET_BYTES];

    if (wr_random(secret, sizeof secret) < 0)
        return WEIR_E_SYSTEM;
    wr_hash_key_init(&net->lean.hash_key, secret);
    wr_map_init(&net->lean.idle, net->allocator, &net->lean.hash_key, net->options.connections_max);
    net->lean.bytes = wr_take(net->allocator, WR_LEAN_READ_BYTES, 1);
    return net->lean.bytes != NULL ? 0 : WEIR_E_NOMEM;
}

void wr_lean_close(struct wr_net *net)
{
    while (wr_conn_evict(net))
        ;
}

void wr_lean_release(struct wr_net *net)
{
    wr_map_release(&net->lean.idle);
    wr_give(net->allocator, net->lean.bytes, WR_LEAN_READ_BYTES, 1);
}

bool wr_lean_takes(const struct wr_net *net, const struct wr_net_request *request)
{
    const char *method = request->method;

    return !net->options.uses_libcurl_only && !net->proxy.is_set && !request->url->is_https &&
           (method == NULL || strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0);
}
