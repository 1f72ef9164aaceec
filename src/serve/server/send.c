/* SPDX-License-Identifier: MIT */
/* send.c - sends output at once as far as the kernel accepts it, and buffers the rest. */
#include "serve/server/http_server_internal.h"

#include "base/alloc.h"

#include <errno.h>
#include <sys/socket.h>

#define OUT_LEAST 4096
#define OUT_KEPT (1 << 20) /* a loop's buffer with more bytes is freed after use */

static atomic_size_t *buffered_count(struct wr_http_conn *conn)
{
    return &wr_http_conn_loop(conn)->server->buffered_bytes[conn->acceptor->listener];
}

bool wr_http_buffer_reserve(struct wr_http_conn *conn, size_t bytes)
{
    size_t most = wr_http_conn_loop(conn)->server->buffered_max;
    do {
        size_t before = atomic_fetch_add(buffered_count(conn), bytes);
        if (before + bytes <= most)
            return true;
        (void)atomic_fetch_sub(buffered_count(conn), bytes);
    } while (bytes <= most && wr_http_acceptor_free_buffers(conn->acceptor, conn));
    return false;
}

void wr_http_buffer_release(struct wr_http_conn *conn, size_t bytes)
{
    (void)atomic_fetch_sub(buffered_count(conn), bytes);
}

void wr_http_buf_empty(const struct wr_http_server *server, struct wr_buf *buf)
{
    wr_buf_clear(buf);
    if (buf->room <= OUT_KEPT)
        return;
    wr_buf_release(buf);
    wr_buf_init(buf, server->allocator, WR_HTTP_OUT_MAX);
}

void wr_http_output_drop(struct wr_http_conn *conn)
{
    if (conn->out != NULL)
        wr_http_buffer_release(conn, conn->out_room);
    wr_free(wr_http_conn_loop(conn)->server->allocator, conn->out, conn->out_room, 1);
    conn->out = NULL;
    conn->out_at = conn->out_bytes = conn->out_room = 0;
}

/* Makes room for `more` bytes behind the unsent output. */
static bool grow_output(struct wr_http_conn *conn, size_t more)
{
    size_t waiting = conn->out_bytes - conn->out_at;
    size_t room = conn->out_room < OUT_LEAST ? OUT_LEAST : conn->out_room;
    if (conn->out_bytes + more <= conn->out_room)
        return true;
    while (room < waiting + more)
        room *= 2;
    if (!wr_http_buffer_reserve(conn, room))
        return false;
    char *out = wr_alloc(wr_http_conn_loop(conn)->server->allocator, room, 1);
    if (out == NULL) {
        wr_http_buffer_release(conn, room);
        return false;
    }
    if (waiting > 0)
        memcpy(out, conn->out + conn->out_at, waiting);
    wr_http_output_drop(conn);
    conn->out = out;
    conn->out_room = room;
    conn->out_bytes = waiting;
    return true;
}

void wr_http_buffer_output(struct wr_http_conn *conn, struct wr_span bytes)
{
    if (!grow_output(conn, bytes.bytes)) {
        conn->is_broken = true;
        return;
    }
    memcpy(conn->out + conn->out_bytes, bytes.data, bytes.bytes);
    conn->out_bytes += bytes.bytes;
}

/* Returns how many bytes the kernel took; sets is_broken if the connection failed. */
static size_t send_now(struct wr_http_conn *conn, struct wr_span bytes)
{
    size_t sent = 0;
    while (sent < bytes.bytes) {
        ssize_t count = send(conn->fd, bytes.data + sent, bytes.bytes - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0) {
            conn->is_broken |= errno != EAGAIN && errno != EWOULDBLOCK;
            break;
        }
        sent += (size_t)count;
    }
    return sent;
}

void wr_http_send(struct wr_http_conn *conn, struct wr_span bytes)
{
    if (!wr_http_has_output(conn))
        bytes = wr_span_after(bytes, send_now(conn, bytes));
    if (bytes.bytes > 0 && !conn->is_broken)
        wr_http_buffer_output(conn, bytes);
}

bool wr_http_send_buffered(struct wr_http_conn *conn)
{
    if (wr_http_has_output(conn))
        conn->out_at += send_now(conn, (struct wr_span){conn->out + conn->out_at, conn->out_bytes - conn->out_at});
    if (!wr_http_has_output(conn))
        wr_http_output_drop(conn);
    return !conn->is_broken;
}
