/* SPDX-License-Identifier: MIT */
/* handover.c - hands a server's open connections to another process, which continues to serve them.
 *
 * While a server is frozen, its threads are parked between two events. They do not read, decide or
 * send, so the thread that froze them may inspect their connections. A descriptor that was passed
 * to another process and is closed here stays open there. */
#include "shell/http/inside.h"

#include "base/alloc.h"

void wr_http_loop_park(struct wr_http_loop *loop)
{
    struct wr_http *server = loop->server;
    (void)pthread_mutex_lock(&server->frost);
    if (server->is_frozen) {
        server->parked++;
        (void)pthread_cond_broadcast(&server->frost_changed);
        while (server->is_frozen)
            (void)pthread_cond_wait(&server->frost_changed, &server->frost);
        server->parked--;
        (void)pthread_cond_broadcast(&server->frost_changed);
    }
    (void)pthread_mutex_unlock(&server->frost);
}

void wr_http_freeze(struct wr_http *server)
{
    (void)pthread_mutex_lock(&server->frost);
    while (server->parked > 0) /* threads parked by an earlier freeze */
        (void)pthread_cond_wait(&server->frost_changed, &server->frost);
    server->is_frozen = true;
    for (uint32_t i = 0; i < server->options.loops; i++)
        wr_http_loop_wake(server->loops[i]);
    while (server->parked < server->options.loops)
        (void)pthread_cond_wait(&server->frost_changed, &server->frost);
    (void)pthread_mutex_unlock(&server->frost);
}

void wr_http_thaw(struct wr_http *server)
{
    (void)pthread_mutex_lock(&server->frost);
    server->is_frozen = false;
    (void)pthread_cond_broadcast(&server->frost_changed);
    (void)pthread_mutex_unlock(&server->frost);
}

void wr_http_leave(struct wr_http *server)
{
    for (size_t i = 0; i < server->place_count; i++)
        wr_http_place_leave(&server->places[i]);
    server->is_left = true;
    atomic_store(&server->phase, WR_HTTP_CUTS);
    wr_http_thaw(server);
}

/* Returns true if the connection can be handed over. Streams cannot, and neither can a partly read
 * chunked body: its bytes are no longer stored as they were received. */
static bool is_fit(const struct wr_http_conn *conn)
{
    if (conn->wait == WR_WAIT_LINGER || conn->is_stream || conn->is_broken || conn->has_half)
        return false;
    if (conn->closes)
        return wr_http_sends(conn);
    const struct wr_http_inbox *inbox = conn->inbox;
    return inbox == NULL || !inbox->reading.has_head || !inbox->reading.request.is_chunked;
}

static void give_one(const struct wr_http_conn *conn, wr_http_give *give, void *context)
{
    const struct wr_http_inbox *inbox = conn->closes ? NULL : conn->inbox;
    const struct wr_http_baggage baggage = {
        .fd = conn->fd,
        .listener = conn->gate->listener,
        .closes = conn->closes,
        .peer = conn->exchange.peer,
        .out = {conn->out != NULL ? conn->out + conn->out_at : NULL, conn->out_bytes - conn->out_at},
        .in = {inbox != NULL ? inbox->text : NULL, inbox != NULL ? inbox->bytes : 0},
    };
    if (is_fit(conn))
        give(context, &baggage);
}

void wr_http_each(struct wr_http *server, wr_http_give *give, void *context)
{
    for (uint32_t i = 0; i < server->options.loops; i++)
        for (size_t gate = 0; gate < server->place_count; gate++)
            /* the connections of each list are ordered oldest first */
            for (int wait = 0; wait < WR_WAIT_COUNT; wait++)
                for (struct wr_list_link *link = server->loops[i]->gates[gate].waits[wait].first; link != NULL;
                     link = link->next)
                    give_one(WR_LINKED(link, struct wr_http_conn, link), give, context);
}

void wr_http_adopt(struct wr_http *server, const struct wr_http_baggage *baggage)
{
    struct wr_http_loop *loop = server->loops[server->adopted++ % server->options.loops];
    uint32_t listener = baggage->listener < server->place_count ? baggage->listener : 0;
    struct wr_http_conn *conn = wr_http_conn_open(&loop->gates[listener], baggage->fd, baggage->peer);
    if (conn == NULL)
        return;
    conn->is_fresh = false;
    conn->closes = conn->lingers = baggage->closes;
    wr_http_inbox_fill(conn, baggage->in);
    if (baggage->out.bytes > 0)
        wr_http_keep(conn, baggage->out);
    wr_http_conn_later(conn);
}

int wr_http_listener(const struct wr_http *server, size_t index)
{
    return index < server->place_count ? server->places[index].fd : -1;
}
