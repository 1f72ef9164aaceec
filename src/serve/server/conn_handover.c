/* SPDX-License-Identifier: MIT */
/* conn_handover.c - hands a server's open connections to another process, which continues to serve
 * them.
 *
 * While a server is frozen, its threads are parked between two events. They do not read, decide or
 * send, so the thread that froze them may inspect their connections. A descriptor that was passed
 * to another process and is closed here stays open there. */
#include "serve/server/http_server_internal.h"

#include "base/alloc.h"

void wr_http_loop_park(struct wr_http_loop *loop)
{
    struct wr_http_server *server = loop->server;
    (void)pthread_mutex_lock(&server->freeze_lock);
    if (server->is_frozen) {
        server->parked++;
        (void)pthread_cond_broadcast(&server->freeze_changed);
        while (server->is_frozen)
            (void)pthread_cond_wait(&server->freeze_changed, &server->freeze_lock);
        server->parked--;
        (void)pthread_cond_broadcast(&server->freeze_changed);
    }
    (void)pthread_mutex_unlock(&server->freeze_lock);
}

void wr_http_server_freeze(struct wr_http_server *server)
{
    (void)pthread_mutex_lock(&server->freeze_lock);
    while (server->parked > 0) /* threads parked by an earlier freeze */
        (void)pthread_cond_wait(&server->freeze_changed, &server->freeze_lock);
    server->is_frozen = true;
    for (uint32_t i = 0; i < server->options.loops; i++)
        wr_http_loop_wake(server->loops[i]);
    while (server->parked < server->options.loops)
        (void)pthread_cond_wait(&server->freeze_changed, &server->freeze_lock);
    (void)pthread_mutex_unlock(&server->freeze_lock);
}

void wr_http_server_thaw(struct wr_http_server *server)
{
    (void)pthread_mutex_lock(&server->freeze_lock);
    server->is_frozen = false;
    (void)pthread_cond_broadcast(&server->freeze_changed);
    (void)pthread_mutex_unlock(&server->freeze_lock);
}

void wr_http_server_abandon(struct wr_http_server *server)
{
    for (size_t i = 0; i < server->listen_socket_count; i++)
        wr_http_listen_socket_forget_file(&server->listen_sockets[i]);
    server->is_abandoned = true;
    atomic_store(&server->phase, WR_HTTP_ABORTING);
    wr_http_server_thaw(server);
}

/* Returns true if the connection can be handed over. Streams cannot, and neither can a partly read
 * chunked body: its bytes are no longer stored as they were received. */
static bool can_hand_over(const struct wr_http_conn *conn)
{
    if (conn->wait == WR_WAIT_LINGER || conn->is_stream || conn->is_broken || conn->is_half_closed)
        return false;
    if (conn->closes)
        return wr_http_has_output(conn);
    const struct wr_http_inbox *inbox = conn->inbox;
    return inbox == NULL || !inbox->reading.has_head || !inbox->reading.request.is_chunked;
}

static void hand_over_conn(const struct wr_http_conn *conn, wr_http_conn_receiver *give, void *context)
{
    const struct wr_http_inbox *inbox = conn->closes ? NULL : conn->inbox;
    const struct wr_http_conn_state baggage = {
        .fd = conn->fd,
        .listener = conn->acceptor->listener,
        .closes = conn->closes,
        .peer = conn->exchange.peer,
        .out = {conn->out != NULL ? conn->out + conn->out_at : NULL, conn->out_bytes - conn->out_at},
        .in = {inbox != NULL ? inbox->text : NULL, inbox != NULL ? inbox->bytes : 0},
    };
    if (can_hand_over(conn))
        give(context, &baggage);
}

void wr_http_server_each_conn(struct wr_http_server *server, wr_http_conn_receiver *give, void *context)
{
    for (uint32_t i = 0; i < server->options.loops; i++)
        for (size_t acceptor = 0; acceptor < server->listen_socket_count; acceptor++)
            /* the connections of each list are ordered oldest first */
            for (int wait = 0; wait < WR_WAIT_COUNT; wait++)
                for (struct wr_list_link *link = server->loops[i]->acceptors[acceptor].waits[wait].first; link != NULL;
                     link = link->next)
                    hand_over_conn(WR_LINKED(link, struct wr_http_conn, link), give, context);
}

void wr_http_server_adopt_conn(struct wr_http_server *server, const struct wr_http_conn_state *baggage)
{
    struct wr_http_loop *loop = server->loops[server->adopted++ % server->options.loops];
    uint32_t listener = baggage->listener < server->listen_socket_count ? baggage->listener : 0;
    struct wr_http_conn *conn = wr_http_conn_open(&loop->acceptors[listener], baggage->fd, baggage->peer);
    if (conn == NULL)
        return;
    conn->is_fresh = false;
    conn->closes = conn->lingers = baggage->closes;
    wr_http_inbox_fill(conn, baggage->in);
    if (baggage->out.bytes > 0)
        wr_http_buffer_output(conn, baggage->out);
    wr_http_conn_settle_later(conn);
}

int wr_http_server_listen_fd(const struct wr_http_server *server, size_t index)
{
    return index < server->listen_socket_count ? server->listen_sockets[index].fd : -1;
}
