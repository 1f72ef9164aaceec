/* SPDX-License-Identifier: MIT */
/* http1_conn.c - connections of the direct path: opened, idle, closed.
 *
 * Idle connections are found by host and port. The map has the youngest of each, which is reused
 * first and links to the older ones. All idle connections are also in one list, to evict the
 * oldest.
 */
#include "http/net/net_internal.h"

#include "base/alloc.h"
#include "limiter/clock/clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- idle ---- */

static void unlink_same_host(struct wr_http1 *http1, struct wr_http1_conn *conn)
{
    if (conn->next != NULL)
        conn->next->prev = conn->prev;
    if (conn->prev != NULL)
        conn->prev->next = conn->next;
    else if (conn->next != NULL) /* replaces the map entry, which needs no memory */
        (void)wr_map_put(&http1->idle, conn->next->key, conn->key_bytes, conn->next, NULL);
    else
        (void)wr_map_remove(&http1->idle, conn->key, conn->key_bytes);
    conn->next = conn->prev = NULL;
}

static void remove_idle(struct wr_http1_conn *conn)
{
    struct wr_http1 *http1 = &conn->net->http1;

    unlink_same_host(http1, conn);
    *(conn->younger != NULL ? &conn->younger->older : &http1->youngest) = conn->older;
    *(conn->older != NULL ? &conn->older->younger : &http1->oldest) = conn->younger;
    conn->older = conn->younger = NULL;
}

static int add_idle(struct wr_http1_conn *conn)
{
    struct wr_http1 *http1 = &conn->net->http1;
    void *elder = NULL;

    int error = wr_map_put(&http1->idle, conn->key, conn->key_bytes, conn, &elder);
    if (error < 0)
        return error;
    conn->next = elder;
    if (conn->next != NULL)
        conn->next->prev = conn;
    conn->older = http1->youngest;
    *(conn->older != NULL ? &conn->older->younger : &http1->oldest) = conn;
    http1->youngest = conn;
    return 0;
}

static bool is_stale(const struct wr_http1_conn *conn, int64_t now)
{
    return now - conn->idle_at > conn->net->options.idle_ns;
}

/* Returns true if the connection's address is still one of the name's allowed addresses. */
static bool has_allowed_address(const struct wr_dns_answer *addresses, const struct wr_http1_conn *conn)
{
    for (size_t i = 0; i < addresses->count; i++)
        if (memcmp(&addresses->list[i], &conn->address, sizeof conn->address) == 0)
            return true;
    return false;
}

struct wr_http1_conn *wr_http1_conn_take_idle(struct wr_transfer *transfer)
{
    struct wr_net *net = transfer->net;
    int64_t now = wr_clock_now(net->clock);
    struct wr_http1_conn *conn;

    while ((conn = wr_map_get(&net->http1.idle, transfer->http1.key, transfer->http1.key_bytes)) != NULL) {
        if (!is_stale(conn, now) && has_allowed_address(&transfer->http1.addresses, conn) &&
            !wr_poll_is_deferred(&conn->poll)) {
            remove_idle(conn);
            conn->transfer = transfer;
            return conn;
        }
        wr_http1_conn_close(conn);
    }
    return NULL;
}

bool wr_http1_conn_is_quiet(const struct wr_http1_conn *conn)
{
    char byte;
    return recv(conn->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

void wr_http1_conn_make_idle(struct wr_http1_conn *conn)
{
    struct wr_net *net = conn->net;

    conn->idle_at = wr_clock_now(net->clock);
    conn->transfer = NULL;
    conn->is_used = true;
    if (wr_net_is_crowded(net) && net->http1.oldest != NULL && is_stale(net->http1.oldest, conn->idle_at))
        wr_http1_conn_close(net->http1.oldest);
    if (wr_net_is_crowded(net) || add_idle(conn) < 0) {
        wr_http1_conn_close(conn);
        return;
    }
    wr_http1_conn_watch(conn, UV_READABLE);
    wr_http1_start_soon(net);
}

bool wr_http1_conn_evict(struct wr_net *net)
{
    if (net->http1.oldest == NULL)
        return false;
    wr_http1_conn_close(net->http1.oldest);
    return true;
}

/* ---- opening and closing ---- */

static void on_http1_conn_closed(uv_handle_t *handle)
{
    struct wr_http1_conn *conn = handle->data;
    struct wr_net *net = conn->net;

    wr_free(net->allocator, conn, sizeof *conn, _Alignof(struct wr_http1_conn));
    wr_net_handle_closed(net);
}

void wr_http1_conn_close(struct wr_http1_conn *conn)
{
    struct wr_net *net = conn->net;

    if (net->http1.youngest == conn || conn->younger != NULL)
        remove_idle(conn);
    wr_poll_close(&conn->poll, on_http1_conn_closed); /* stops watching at once */
    (void)close(conn->fd);
    net->connections--;
    net->http1.open--;
    wr_http1_start_soon(net);
}

static socklen_t socket_address(const struct wr_address *address, uint16_t port, struct sockaddr_storage *ret_to)
{
    memset(ret_to, 0, sizeof *ret_to);
    if (wr_address_is_v4(address)) {
        struct sockaddr_in *to = (void *)ret_to;
        to->sin_family = AF_INET;
        to->sin_port = htons(port);
        memcpy(&to->sin_addr, address->bytes + 12, 4);
        return sizeof *to;
    }
    struct sockaddr_in6 *to = (void *)ret_to;
    to->sin6_family = AF_INET6;
    to->sin6_port = htons(port);
    memcpy(&to->sin6_addr, address->bytes, 16);
    return sizeof *to;
}

/* Returns a connecting socket; -1 with errno set on failure. */
static int connect_socket(struct wr_net *net, const struct wr_address *address, uint16_t port)
{
    struct sockaddr_storage to;
    socklen_t bytes = socket_address(address, port, &to);
    const int yes = 1;

    int fd = wr_socket_renumber(net, socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
    if (fd < 0)
        return -1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (connect(fd, (const struct sockaddr *)&to, bytes) == 0 || errno == EINPROGRESS)
        return fd;
    int failure = errno;
    (void)close(fd);
    errno = failure;
    return -1;
}

static struct wr_http1_conn *open_failed(struct wr_transfer *transfer, int failure)
{
    transfer->socket_errno = failure;
    return NULL;
}

struct wr_http1_conn *wr_http1_conn_open(struct wr_transfer *transfer, const struct wr_address *address)
{
    struct wr_net *net = transfer->net;
    int fd = connect_socket(net, address, transfer->port);
    if (fd < 0)
        return open_failed(transfer, errno);
    struct wr_http1_conn *conn = wr_alloc(net->allocator, sizeof *conn, _Alignof(struct wr_http1_conn));
    if (conn == NULL || wr_poll_init(&conn->poll, &net->round, fd, wr_http1_on_poll) < 0) {
        wr_free(net->allocator, conn, sizeof *conn, _Alignof(struct wr_http1_conn));
        (void)close(fd);
        return open_failed(transfer, ENOMEM);
    }
    uv_unref((uv_handle_t *)&conn->poll.uv); /* only transfers keep the loop running */
    conn->poll.uv.data = conn;
    conn->net = net;
    conn->transfer = transfer;
    conn->fd = fd;
    conn->address = *address;
    conn->port = transfer->port;
    conn->key_bytes = transfer->http1.key_bytes;
    memcpy(conn->key, transfer->http1.key, conn->key_bytes);
    net->open_handles++;
    net->connections++;
    net->opened++;
    net->http1.open++;
    wr_http1_conn_watch(conn, UV_WRITABLE);
    return conn;
}

bool wr_http1_conn_is_established(struct wr_http1_conn *conn)
{
    int failure = 0;
    socklen_t bytes = sizeof failure;

    if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &failure, &bytes) < 0)
        failure = errno;
    errno = failure;
    conn->is_connected = failure == 0;
    return conn->is_connected;
}

void wr_http1_conn_watch(struct wr_http1_conn *conn, int events)
{
    if (conn->events == events)
        return;
    conn->events = events;
    wr_poll_watch(&conn->poll, events);
}
