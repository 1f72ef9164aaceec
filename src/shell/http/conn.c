/* SPDX-License-Identifier: MIT */
/* conn.c - waits for the events of one connection, and opens, refuses and closes connections. */
#include "shell/http/inside.h"

#include "base/alloc.h"
#include "shell/loop/away.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- waiting ---- */

void wr_http_conn_wait(struct wr_http_conn *conn, enum wr_http_wait wait)
{
    int64_t now = wr_http_loop_ms(wr_http_conn_loop(conn));
    if (conn->wait == wait && (!conn->is_renewed || conn->since == now))
        return;
    conn->is_renewed = false;
    wr_list_take(&conn->link);
    conn->wait = (uint8_t)wait;
    conn->since = now;
    wr_list_push(&conn->gate->waits[wait], &conn->link);
}

/* Puts a connection whose last response is sent into the lingering state: it reads and drops
 * further input. Lingering connections have a limit of their own; beyond it the oldest is
 * closed. */
static void linger(struct wr_http_conn *conn)
{
    struct wr_http_gate *gate = conn->gate;
    conn->lingers = false;
    wr_http_inbox_drop(conn);
    wr_http_conn_wait(conn, WR_WAIT_LINGER);
    gate->connections--;
    if (++gate->lingering > WR_HTTP_LINGER_MAX)
        wr_http_conn_close(WR_LINKED(gate->waits[WR_WAIT_LINGER].first, struct wr_http_conn, link));
}

void wr_http_conn_later(struct wr_http_conn *conn)
{
    wr_list_push(&wr_http_conn_loop(conn)->ready, &conn->ready);
}

static void listen_for(struct wr_http_conn *conn, int events)
{
    if (conn->has_half)
        events &= ~UV_DISCONNECT; /* UV_DISCONNECT would be reported again in each round */
    if (conn->events == events)
        return;
    conn->events = (uint8_t)events;
    wr_poll_watch(&conn->poll, events);
}

/* Called when all output is sent and no more will follow: lingers if required, or else closes. */
static void end(struct wr_http_conn *conn)
{
    if (!conn->lingers || conn->has_half || shutdown(conn->fd, SHUT_WR) != 0) {
        wr_http_conn_close(conn);
        return;
    }
    linger(conn);
    listen_for(conn, UV_READABLE);
}

/* Returns the input that the client must send next. */
static enum wr_http_wait next_wait(const struct wr_http_conn *conn)
{
    if (conn->inbox != NULL)
        return conn->inbox->reading.has_head ? WR_WAIT_BODY : WR_WAIT_HEAD;
    return conn->is_fresh ? WR_WAIT_HEAD : WR_WAIT_IDLE;
}

/* Selects the event that the connection waits for now, or ends the connection. */
static void choose(struct wr_http_conn *conn)
{
    struct wr_http_loop *loop = wr_http_conn_loop(conn);
    if (wr_http_sends(conn)) {
        wr_http_conn_wait(conn, WR_WAIT_SEND);
        listen_for(conn, UV_WRITABLE | UV_DISCONNECT);
    } else if (conn->has_exchange) {
        wr_http_conn_wait(conn, WR_WAIT_ANSWER);
        listen_for(conn, UV_DISCONNECT);
    } else if (conn->closes || (loop->is_stopping && conn->inbox == NULL && conn->wait != WR_WAIT_HEAD)) {
        end(conn);
    } else {
        wr_http_conn_wait(conn, next_wait(conn));
        listen_for(conn, UV_READABLE);
    }
}

/* Returns true if the requests in the inbox can be processed: no earlier response is pending or
 * unsent. */
static bool is_ready(const struct wr_http_conn *conn)
{
    return conn->is_behind && !conn->is_broken && !conn->has_exchange && !conn->closes && !wr_http_sends(conn);
}

/* Processes requests from the inbox. Those for which the time slice does not suffice are processed
 * in the next round, as if they had arrived then. */
static void go_on(struct wr_http_conn *conn)
{
    if (wr_share_lasts(&wr_http_conn_loop(conn)->round.share))
        wr_http_read_on(conn);
    if (is_ready(conn))
        wr_poll_put_off(&conn->poll, UV_READABLE);
}

void wr_http_conn_settle(struct wr_http_conn *conn)
{
    if (conn->wait == WR_WAIT_LINGER)
        return;
    if (!conn->is_broken && conn->is_held && !conn->has_exchange)
        wr_http_read_past(conn);
    if (is_ready(conn))
        go_on(conn);
    conn->is_held = conn->has_exchange;
    if (conn->is_broken)
        wr_http_conn_close(conn);
    else
        choose(conn);
}

/* ---- events ---- */

/* The peer has shut down its sending side. A client that waits for a response is treated as gone;
 * one that is still reading a response may finish. */
static void on_half(struct wr_http_conn *conn)
{
    conn->has_half = true;
    conn->is_broken |= conn->has_exchange;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    WR_DOING("a connection");
    struct wr_http_conn *conn = poll->data;
    struct wr_http_loop *loop = wr_http_conn_loop(conn);
    if (status < 0 || ((events & UV_WRITABLE) != 0 && !wr_http_send_on(conn)) ||
        ((events & UV_READABLE) != 0 && !wr_http_read(conn)))
        conn->is_broken = true;
    else if ((events & UV_DISCONNECT) != 0)
        on_half(conn);
    if (conn->wait == WR_WAIT_LINGER && conn->is_broken)
        wr_http_conn_close(conn);
    else
        wr_http_conn_settle(conn);
    wr_http_loop_settle(loop);
}

/* ---- open and close ---- */

static void count_in(struct wr_http_conn *conn)
{
    struct wr_http_loop *loop = wr_http_conn_loop(conn);
    conn->gate->connections++;
    loop->connections++;
    wr_http_count(&loop->counts.connections);
}

struct wr_http_conn *wr_http_conn_open(struct wr_http_gate *gate, int fd, struct wr_span peer)
{
    struct wr_http_loop *loop = gate->loop;
    struct wr_http_conn *conn = wr_take(loop->server->allocator, sizeof *conn, _Alignof(struct wr_http_conn));
    int on = 1;
    if (conn == NULL || wr_poll_init(&conn->poll, &loop->round, fd, on_poll) != 0) {
        wr_give(loop->server->allocator, conn, sizeof *conn, _Alignof(struct wr_http_conn));
        (void)wr_http_last_send(loop, fd, 503, WR_HTTP_NO_MEMORY);
        (void)close(fd);
        wr_http_count(&loop->counts.turned);
        return NULL;
    }
    conn->poll.uv.data = conn;
    conn->gate = gate;
    conn->fd = fd;
    conn->is_fresh = conn->is_renewed = true;
    memcpy(conn->peer, peer.data, peer.bytes);
    conn->exchange.peer = (struct wr_span){conn->peer, peer.bytes};
    conn->exchange.listener = gate->listener;
    conn->exchange.loop = loop;
    if (!loop->server->places[gate->listener].is_unix)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    count_in(conn);
    choose(conn);
    return conn;
}

static void drop_exchange(struct wr_http_conn *conn)
{
    if (conn->has_exchange && conn->exchange.gone != NULL)
        conn->exchange.gone(&conn->exchange);
    conn->has_exchange = false;
    conn->exchange.gone = NULL;
    conn->exchange.context = NULL;
}

static void on_closed(uv_handle_t *handle)
{
    struct wr_http_conn *conn = handle->data;
    wr_give(wr_http_conn_loop(conn)->server->allocator, conn, sizeof *conn, _Alignof(struct wr_http_conn));
}

void wr_http_conn_close(struct wr_http_conn *conn)
{
    struct wr_http_loop *loop = wr_http_conn_loop(conn);
    if (uv_is_closing((uv_handle_t *)&conn->poll.uv))
        return;
    if (conn->is_stream)
        wr_http_uncount(&loop->counts.streams);
    drop_exchange(conn);
    wr_http_inbox_drop(conn);
    wr_http_out_drop(conn);
    wr_list_take(&conn->link);
    wr_list_take(&conn->ready);
    *(conn->wait == WR_WAIT_LINGER ? &conn->gate->lingering : &conn->gate->connections) -= 1;
    loop->connections--;
    wr_http_uncount(&loop->counts.connections);
    wr_poll_close(&conn->poll, on_closed);
    (void)close(conn->fd);
}

/* ---- refusals ---- */

void wr_http_conn_refuse(struct wr_http_conn *conn, int status, const char *why)
{
    /* a response is partly sent: no other may follow */
    bool has_begun = wr_http_sends(conn) || conn->is_stream;
    drop_exchange(conn);
    wr_http_inbox_drop(conn);
    conn->is_held = conn->is_behind = false;
    conn->closes = conn->lingers = true;
    conn->is_broken |= has_begun || !wr_http_last_send(wr_http_conn_loop(conn), conn->fd, status, why);
}

void wr_http_conn_turn_away(struct wr_http_conn *conn)
{
    wr_http_count(&wr_http_conn_loop(conn)->counts.turned);
    wr_http_conn_refuse(conn, 503, WR_HTTP_NO_ROOM);
    wr_http_conn_settle(conn);
}

bool wr_http_gate_make_room(struct wr_http_gate *gate)
{
    static const enum wr_http_wait first[] = {WR_WAIT_HEAD, WR_WAIT_IDLE, WR_WAIT_BODY};
    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++) {
        struct wr_list_link *link = gate->waits[first[i]].first;
        if (link == NULL)
            continue;
        struct wr_http_conn *conn = WR_LINKED(link, struct wr_http_conn, link);
        if (first[i] == WR_WAIT_IDLE) {
            wr_http_count(&gate->loop->counts.turned);
            wr_http_conn_close(conn);
        } else
            wr_http_conn_turn_away(conn);
        return true;
    }
    return false;
}

/* Returns the connection that has waited longest for this event; NULL if there is none. Streams are
 * skipped: they have a limit of their own, and their writer may hold a pointer to the
 * connection. */
static struct wr_http_conn *oldest_of(const struct wr_http_gate *gate, enum wr_http_wait wait,
                                      const struct wr_http_conn *besides)
{
    for (struct wr_list_link *link = gate->waits[wait].first; link != NULL; link = link->next) {
        struct wr_http_conn *conn = WR_LINKED(link, struct wr_http_conn, link);
        if (conn != besides && !conn->is_stream)
            return conn;
    }
    return NULL;
}

bool wr_http_gate_make_space(struct wr_http_gate *gate, const struct wr_http_conn *conn)
{
    static const enum wr_http_wait waits[] = {WR_WAIT_BODY, WR_WAIT_HEAD, WR_WAIT_SEND};
    struct wr_http_conn *oldest = NULL;
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        struct wr_http_conn *next = oldest_of(gate, waits[i], conn);
        if (next != NULL && (oldest == NULL || next->since < oldest->since))
            oldest = next;
    }
    if (oldest == NULL)
        return false;
    wr_http_count(&gate->loop->counts.turned);
    wr_http_conn_refuse(oldest, 503, WR_HTTP_NO_BUFFER);
    wr_http_conn_settle(oldest);
    return true;
}
