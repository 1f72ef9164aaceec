/* SPDX-License-Identifier: MIT */
/* conn.c - waits for the events of one connection, and opens, refuses and closes connections. */
#include "serve/server/http_server_internal.h"

#include "base/alloc.h"
#include "http/loop/watchdog.h"

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
    wr_list_remove(&conn->link);
    conn->wait = (uint8_t)wait;
    conn->since = now;
    wr_list_push(&conn->acceptor->waits[wait], &conn->link);
}

/* Puts a connection whose last response is sent into the lingering state: it reads and drops
 * further input. Lingering connections have a limit of their own; beyond it the oldest is
 * closed. */
static void linger(struct wr_http_conn *conn)
{
    struct wr_http_acceptor *acceptor = conn->acceptor;
    conn->lingers = false;
    wr_http_inbox_drop(conn);
    wr_http_conn_wait(conn, WR_WAIT_LINGER);
    acceptor->connections--;
    if (++acceptor->lingering > WR_HTTP_LINGER_MAX)
        wr_http_conn_close(WR_LINKED(acceptor->waits[WR_WAIT_LINGER].first, struct wr_http_conn, link));
}

void wr_http_conn_settle_later(struct wr_http_conn *conn)
{
    wr_list_push(&wr_http_conn_loop(conn)->ready, &conn->ready);
}

static void listen_for(struct wr_http_conn *conn, int events)
{
    if (conn->is_half_closed)
        events &= ~UV_DISCONNECT; /* UV_DISCONNECT would be reported again in each round */
    if (conn->events == events)
        return;
    conn->events = (uint8_t)events;
    wr_poll_watch(&conn->poll, events);
}

/* Called when all output is sent and no more will follow: lingers if required, or else closes. */
static void end_conn(struct wr_http_conn *conn)
{
    if (!conn->lingers || conn->is_half_closed || shutdown(conn->fd, SHUT_WR) != 0) {
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
static void choose_wait(struct wr_http_conn *conn)
{
    struct wr_http_loop *loop = wr_http_conn_loop(conn);
    if (wr_http_has_output(conn)) {
        wr_http_conn_wait(conn, WR_WAIT_SEND);
        listen_for(conn, UV_WRITABLE | UV_DISCONNECT);
    } else if (conn->has_exchange) {
        wr_http_conn_wait(conn, WR_WAIT_ANSWER);
        listen_for(conn, UV_DISCONNECT);
    } else if (conn->closes || (loop->is_stopping && conn->inbox == NULL && conn->wait != WR_WAIT_HEAD)) {
        end_conn(conn);
    } else {
        wr_http_conn_wait(conn, next_wait(conn));
        listen_for(conn, UV_READABLE);
    }
}

/* Returns true if the requests in the inbox can be processed: no earlier response is pending or
 * unsent. */
static bool has_ready_request(const struct wr_http_conn *conn)
{
    return conn->has_pending_input && !conn->is_broken && !conn->has_exchange && !conn->closes &&
           !wr_http_has_output(conn);
}

/* Processes requests from the inbox. Those for which the time slice does not suffice are processed
 * in the next round, as if they had arrived then. */
static void read_inbox(struct wr_http_conn *conn)
{
    if (wr_time_slice_lasts(&wr_http_conn_loop(conn)->round.slice))
        wr_http_read_buffered(conn);
    if (has_ready_request(conn))
        wr_poll_defer(&conn->poll, UV_READABLE);
}

void wr_http_conn_settle(struct wr_http_conn *conn)
{
    if (conn->wait == WR_WAIT_LINGER)
        return;
    if (!conn->is_broken && conn->is_held && !conn->has_exchange)
        wr_http_inbox_next(conn);
    if (has_ready_request(conn))
        read_inbox(conn);
    conn->is_held = conn->has_exchange;
    if (conn->is_broken)
        wr_http_conn_close(conn);
    else
        choose_wait(conn);
}

/* ---- events ---- */

/* The peer has shut down its sending side. A client that waits for a response is treated as gone;
 * one that is still reading a response may finish. */
static void on_half_close(struct wr_http_conn *conn)
{
    conn->is_half_closed = true;
    conn->is_broken |= conn->has_exchange;
}

static void on_conn_poll(uv_poll_t *poll, int status, int events)
{
    WR_DOING("a connection");
    struct wr_http_conn *conn = poll->data;
    struct wr_http_loop *loop = wr_http_conn_loop(conn);
    if (status < 0 || ((events & UV_WRITABLE) != 0 && !wr_http_send_buffered(conn)) ||
        ((events & UV_READABLE) != 0 && !wr_http_read(conn)))
        conn->is_broken = true;
    else if ((events & UV_DISCONNECT) != 0)
        on_half_close(conn);
    if (conn->wait == WR_WAIT_LINGER && conn->is_broken)
        wr_http_conn_close(conn);
    else
        wr_http_conn_settle(conn);
    wr_http_loop_settle(loop);
}

/* ---- open and close ---- */

static void count_conn(struct wr_http_conn *conn)
{
    struct wr_http_loop *loop = wr_http_conn_loop(conn);
    conn->acceptor->connections++;
    loop->connections++;
    wr_http_count(&loop->counts.connections);
}

struct wr_http_conn *wr_http_conn_open(struct wr_http_acceptor *acceptor, int fd, struct wr_span peer)
{
    struct wr_http_loop *loop = acceptor->loop;
    struct wr_http_conn *conn = wr_alloc(loop->server->allocator, sizeof *conn, _Alignof(struct wr_http_conn));
    int on = 1;
    if (conn == NULL || wr_poll_init(&conn->poll, &loop->round, fd, on_conn_poll) != 0) {
        wr_free(loop->server->allocator, conn, sizeof *conn, _Alignof(struct wr_http_conn));
        (void)wr_http_final_error_send(loop, fd, 503, WR_HTTP_NO_MEMORY);
        (void)close(fd);
        wr_http_count(&loop->counts.turned);
        return NULL;
    }
    conn->poll.uv.data = conn;
    conn->acceptor = acceptor;
    conn->fd = fd;
    conn->is_fresh = conn->is_renewed = true;
    memcpy(conn->peer, peer.data, peer.bytes);
    conn->exchange.peer = (struct wr_span){conn->peer, peer.bytes};
    conn->exchange.listener = acceptor->listener;
    conn->exchange.loop = loop;
    if (!loop->server->listen_sockets[acceptor->listener].is_unix)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    count_conn(conn);
    choose_wait(conn);
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

static void on_server_conn_closed(uv_handle_t *handle)
{
    struct wr_http_conn *conn = handle->data;
    wr_free(wr_http_conn_loop(conn)->server->allocator, conn, sizeof *conn, _Alignof(struct wr_http_conn));
}

void wr_http_conn_close(struct wr_http_conn *conn)
{
    struct wr_http_loop *loop = wr_http_conn_loop(conn);
    if (uv_is_closing((uv_handle_t *)&conn->poll.uv))
        return;
    if (conn->is_stream)
        wr_http_count_down(&loop->counts.streams);
    drop_exchange(conn);
    wr_http_inbox_drop(conn);
    wr_http_output_drop(conn);
    wr_list_remove(&conn->link);
    wr_list_remove(&conn->ready);
    *(conn->wait == WR_WAIT_LINGER ? &conn->acceptor->lingering : &conn->acceptor->connections) -= 1;
    loop->connections--;
    wr_http_count_down(&loop->counts.connections);
    wr_poll_close(&conn->poll, on_server_conn_closed);
    (void)close(conn->fd);
}

/* ---- refusals ---- */

void wr_http_conn_refuse(struct wr_http_conn *conn, int status, const char *why)
{
    /* a response is partly sent: no other may follow */
    bool has_begun = wr_http_has_output(conn) || conn->is_stream;
    drop_exchange(conn);
    wr_http_inbox_drop(conn);
    conn->is_held = conn->has_pending_input = false;
    conn->closes = conn->lingers = true;
    conn->is_broken |= has_begun || !wr_http_final_error_send(wr_http_conn_loop(conn), conn->fd, status, why);
}

void wr_http_conn_reject(struct wr_http_conn *conn)
{
    wr_http_count(&wr_http_conn_loop(conn)->counts.turned);
    wr_http_conn_refuse(conn, 503, WR_HTTP_NO_ROOM);
    wr_http_conn_settle(conn);
}

bool wr_http_acceptor_evict_conn(struct wr_http_acceptor *acceptor)
{
    static const enum wr_http_wait first[] = {WR_WAIT_HEAD, WR_WAIT_IDLE, WR_WAIT_BODY};
    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++) {
        struct wr_list_link *link = acceptor->waits[first[i]].first;
        if (link == NULL)
            continue;
        struct wr_http_conn *conn = WR_LINKED(link, struct wr_http_conn, link);
        if (first[i] == WR_WAIT_IDLE) {
            wr_http_count(&acceptor->loop->counts.turned);
            wr_http_conn_close(conn);
        } else
            wr_http_conn_reject(conn);
        return true;
    }
    return false;
}

/* Returns the connection that has waited longest for this event; NULL if there is none. Streams are
 * skipped: they have a limit of their own, and their writer may hold a pointer to the
 * connection. */
static struct wr_http_conn *oldest_of(const struct wr_http_acceptor *acceptor, enum wr_http_wait wait,
                                      const struct wr_http_conn *besides)
{
    for (struct wr_list_link *link = acceptor->waits[wait].first; link != NULL; link = link->next) {
        struct wr_http_conn *conn = WR_LINKED(link, struct wr_http_conn, link);
        if (conn != besides && !conn->is_stream)
            return conn;
    }
    return NULL;
}

bool wr_http_acceptor_free_buffers(struct wr_http_acceptor *acceptor, const struct wr_http_conn *conn)
{
    static const enum wr_http_wait waits[] = {WR_WAIT_BODY, WR_WAIT_HEAD, WR_WAIT_SEND};
    struct wr_http_conn *oldest = NULL;
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        struct wr_http_conn *next = oldest_of(acceptor, waits[i], conn);
        if (next != NULL && (oldest == NULL || next->since < oldest->since))
            oldest = next;
    }
    if (oldest == NULL)
        return false;
    wr_http_count(&acceptor->loop->counts.turned);
    wr_http_conn_refuse(oldest, 503, WR_HTTP_NO_BUFFER);
    wr_http_conn_settle(oldest);
    return true;
}
