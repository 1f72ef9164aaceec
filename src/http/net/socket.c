/* SPDX-License-Identifier: MIT */
/* socket.c - libcurl's sockets: checked and opened here, watched by libuv.
 *
 * When a transfer ends, libcurl stops watching its connection, and starts again with the next
 * transfer. To save these two system calls per page, a socket that libcurl no longer uses stays
 * watched. If bytes arrive while it is idle, the server has closed it or sent unrequested bytes.
 * libcurl would reuse it all the same: it notices a FIN but no RST, and takes early bytes for the
 * next response. So the socket is made to look like one after a FIN. (With TLS, such bytes may
 * belong to TLS itself or be HTTP/2 frames, which libcurl must read.) For the same reason libcurl
 * sends only after the loop has polled.
 *
 * libcurl 7.88 closes sockets that lost the race of addresses, or did not connect in time, without
 * notice; it only stops watching. Such a socket, from which it has not read yet, is released at
 * once. If a new socket gets the same number before that, libcurl would not notice the difference,
 * so it is renumbered.
 */
#include "http/net/net_internal.h"

#include "base/alloc.h"
#include "base/bits.h"
#include "http/loop/watchdog.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#define SOCKETS_MIN 64
#define IDLE_READS 64

/* ---- opening and closing ---- */

enum wr_guard_class wr_net_classify_address(const struct wr_net *net, const struct wr_address *address)
{
    if (net->options.allow_private)
        return WR_GUARD_PUBLIC;
    return net->options.judge(net->options.judge_context, address);
}

static int grow_socket_table(struct wr_net *net, size_t fd)
{
    if (fd < net->sockets_room)
        return 0;
    size_t room = wr_round_up_pow2(fd + 1 < SOCKETS_MIN ? SOCKETS_MIN : fd + 1);
    struct wr_socket **sockets =
        wr_alloc_array(net->allocator, room, sizeof(struct wr_socket *), _Alignof(struct wr_socket *));
    if (sockets == NULL)
        return WEIR_E_NOMEM;
    if (net->sockets_room > 0)
        memcpy(sockets, net->sockets, net->sockets_room * sizeof(struct wr_socket *));
    wr_free(net->allocator, net->sockets, net->sockets_room * sizeof(struct wr_socket *), _Alignof(struct wr_socket *));
    net->sockets = sockets;
    net->sockets_room = room;
    return 0;
}

static struct wr_socket *take_spare(struct wr_net *net)
{
    struct wr_socket *spare = net->spares;

    if (spare == NULL)
        return wr_alloc(net->allocator, sizeof *spare, _Alignof(struct wr_socket));
    net->spares = spare->next;
    return spare;
}

static void keep_spare(struct wr_net *net, struct wr_socket *spare)
{
    spare->next = net->spares;
    net->spares = spare;
}

void wr_socket_free_spares(struct wr_net *net)
{
    while (net->spares != NULL)
        wr_free(net->allocator, take_spare(net), sizeof(struct wr_socket), _Alignof(struct wr_socket));
}

/* Allocates all the memory that watching a socket needs. */
static int reserve_watch(struct wr_net *net, int fd)
{
    if (grow_socket_table(net, (size_t)fd) < 0)
        return WEIR_E_NOMEM;
    struct wr_socket *spare = take_spare(net);
    if (spare == NULL)
        return WEIR_E_NOMEM;
    keep_spare(net, spare);
    return 0;
}

int wr_socket_renumber(struct wr_net *net, int fd)
{
    while (fd >= 0 && (size_t)fd < net->sockets_room && net->sockets[fd] != NULL) {
        int other = fcntl(fd, F_DUPFD_CLOEXEC, fd + 1);
        (void)close(fd);
        fd = other;
    }
    return fd;
}

/* Returns true if a connection may be opened. Evicts idle direct ones, which libcurl ignores. */
static bool may_open_socket(struct wr_net *net)
{
    return net->connections < net->options.connections_max || net->http1.open == 0 || wr_http1_conn_evict(net);
}

curl_socket_t wr_socket_open(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct wr_transfer *transfer = context;
    struct wr_net *net = transfer->net;
    struct wr_address to;

    transfer->is_pin_known = true;
    if (purpose != CURLSOCKTYPE_IPCXN || !wr_address_of_socket(&address->addr, &to))
        return CURL_SOCKET_BAD;
    enum wr_guard_class class = net->proxy.is_set ? WR_GUARD_PUBLIC : wr_net_classify_address(net, &to);
    if (class != WR_GUARD_PUBLIC) {
        transfer->judged = class;
        return CURL_SOCKET_BAD;
    }
    int fd = -1;
    errno = EMFILE;
    if (may_open_socket(net))
        fd = socket(address->family, address->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address->protocol);
    fd = wr_socket_renumber(net, fd);
    if (fd < 0) {
        transfer->socket_errno = errno;
        return CURL_SOCKET_BAD;
    }
    if (reserve_watch(net, fd) < 0) {
        transfer->socket_errno = ENOMEM;
        (void)close(fd);
        return CURL_SOCKET_BAD;
    }
    net->opened++;
    return fd;
}

static void on_socket_closed(uv_handle_t *handle)
{
    struct wr_socket *gone = handle->data;
    struct wr_net *net = gone->net;

    wr_free(net->allocator, gone, sizeof *gone, _Alignof(struct wr_socket));
    wr_net_handle_closed(net);
}

/* Removes a socket from its transfer, because it is connected or closed. */
static void clear_owner(struct wr_socket *watched)
{
    if (watched->owner == NULL)
        return;
    struct wr_socket **link = &watched->owner->connecting;
    while (*link != watched)
        link = &(*link)->next;
    *link = watched->next;
    watched->owner = NULL;
}

static void unwatch_socket(struct wr_socket *watched)
{
    clear_owner(watched);
    watched->net->sockets[watched->fd] = NULL;
    watched->net->connections--;
    wr_poll_close(&watched->poll, on_socket_closed); /* stops watching at once */
    wr_http1_start_soon(watched->net);
}

void wr_socket_release_connecting(struct wr_transfer *transfer)
{
    while (transfer->connecting != NULL)
        unwatch_socket(transfer->connecting);
}

int wr_socket_close(void *context, curl_socket_t fd)
{
    struct wr_net *net = context;

    if (net->sockets[fd] != NULL)
        unwatch_socket(net->sockets[fd]);
    return close(fd);
}

/* ---- watching ---- */

/* Reports requests that libcurl has written in the call that has just returned. */
static void report_written(struct wr_net *net)
{
    while (net->writing != NULL) {
        struct wr_transfer *transfer = net->writing;
        net->writing = transfer->next_writing;
        transfer->is_writing = false;
        wr_callback_written(transfer);
    }
}

static void run_curl(struct wr_net *net, curl_socket_t fd, int events)
{
    int running;

    net->in_curl = true;
    net->records = net->looks = 0;
    net->last_progress = NULL;
    {
        WR_DOING("libcurl");
        (void)curl_multi_socket_action(net->multi, fd, events, &running);
    }
    report_written(net);
    net->in_curl = false;
    wr_net_settle(net);
}

static void watch_socket(struct wr_socket *watched, int events)
{
    watched->events = events;
    wr_poll_watch(&watched->poll, events);
}

/* Reads unrequested bytes, or the error after a RST. Afterwards the socket looks closed. */
static void end_idle_socket(struct wr_socket *ended)
{
    char bin[4096];
    int reads = 0;

    watch_socket(ended, 0);
    if (ended->is_tls) {
        (void)recv(ended->fd, bin, 1, MSG_PEEK | MSG_DONTWAIT);
        return;
    }
    while (reads < IDLE_READS && recv(ended->fd, bin, sizeof bin, MSG_DONTWAIT) > 0)
        reads++;
    (void)shutdown(ended->fd, SHUT_RDWR);
}

/* Returns true if bytes, an end or an error have arrived. */
static bool has_input(const struct wr_socket *idle)
{
    char byte;

    return recv(idle->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

/* Handles an event on an idle socket. The event may be old, and libcurl may have read the bytes
 * since. A paused transfer's socket also looks unused, and libcurl does not tell which it is. So
 * while any transfer is paused, nothing is read. */
static void on_idle_ready(struct wr_socket *ready)
{
    if (ready->net->paused > 0)
        watch_socket(ready, 0);
    else if (has_input(ready))
        end_idle_socket(ready);
}

static void on_socket_poll(uv_poll_t *poll, int status, int events)
{
    struct wr_socket *ready = poll->data;

    if (status < 0) /* libuv has stopped polling */
        ready->events = 0;
    if (!ready->is_wanted) {
        on_idle_ready(ready);
        return;
    }
    if (ready->is_tls && !ready->net->has_read_certificates)
        wr_watchdog_excuse(WR_WATCHDOG_CERTIFICATES);
    /* After an error, 0 makes libcurl look itself. An error flag would prevent a resend. */
    int what = (events & UV_READABLE ? CURL_CSELECT_IN : 0) | (events & UV_WRITABLE ? CURL_CSELECT_OUT : 0);
    run_curl(ready->net, ready->fd, status < 0 ? 0 : what);
}

/* Handles a socket that libcurl no longer uses. */
static void set_idle(struct wr_socket *watched)
{
    if (!watched->has_read) {
        unwatch_socket(watched);
        return;
    }
    watched->is_wanted = false;
    watched->poll.is_urgent = true; /* otherwise libcurl might reuse it too early */
    uv_unref((uv_handle_t *)&watched->poll.uv);
    if (watched->events != UV_READABLE) /* an idle socket is always writable */
        watch_socket(watched, UV_READABLE);
}

void wr_socket_watch_idle(struct wr_net *net)
{
    for (size_t fd = 0; fd < net->sockets_room; fd++) {
        struct wr_socket *watched = net->sockets[fd];
        if (watched != NULL && !watched->is_wanted && watched->events == 0)
            watch_socket(watched, UV_READABLE);
    }
}

/* Starts watching a socket. Returns NULL without memory; then the transfer ends by its timeout. */
static struct wr_socket *begin_watch(struct wr_net *net, int fd, CURL *easy)
{
    struct wr_socket *watched = take_spare(net);
    struct wr_transfer *transfer = NULL;

    if (watched == NULL)
        return NULL;
    (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&transfer);
    *watched = (struct wr_socket){
        .net = net, .fd = fd, .is_tls = transfer == NULL || transfer->is_https || net->proxy.is_https};
    if (wr_poll_init(&watched->poll, &net->round, fd, on_socket_poll) < 0) {
        keep_spare(net, watched);
        return NULL;
    }
    watched->poll.uv.data = watched;
    if (transfer != NULL) {
        watched->owner = transfer;
        watched->next = transfer->connecting;
        transfer->connecting = watched;
    }
    net->sockets[fd] = watched;
    net->open_handles++;
    net->connections++;
    return watched;
}

int wr_socket_watch(CURL *easy, curl_socket_t fd, int what, void *context, void *unused)
{
    struct wr_net *net = context;
    struct wr_socket *watched = net->sockets[fd];
    int events = (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);

    (void)unused;
    if (what == CURL_POLL_REMOVE) {
        if (watched != NULL)
            set_idle(watched);
        return 0;
    }
    if (watched == NULL)
        watched = begin_watch(net, fd, easy);
    if (watched == NULL)
        return 0;
    watched->is_wanted = true;
    watched->poll.is_urgent = false;
    if (events & UV_READABLE) {
        watched->has_read = true;
        clear_owner(watched);
    }
    uv_ref((uv_handle_t *)&watched->poll.uv);
    if (events != watched->events)
        watch_socket(watched, events);
    return 0;
}

/* ---- libcurl's timer ---- */

static void on_curl_polled(uv_check_t *polled)
{
    struct wr_net *net = polled->data;

    (void)uv_check_stop(&net->polled);
    (void)uv_idle_stop(&net->no_wait);
    run_curl(net, CURL_SOCKET_TIMEOUT, 0);
}

static void on_curl_idle(uv_idle_t *no_wait)
{
    (void)no_wait;
}

/* Lets libcurl act as soon as the loop has polled, which it does without waiting. */
static void run_curl_after_poll(struct wr_net *net)
{
    (void)uv_check_start(&net->polled, on_curl_polled);
    (void)uv_idle_start(&net->no_wait, on_curl_idle);
}

static void on_curl_timer(uv_timer_t *timer)
{
    run_curl_after_poll(timer->data);
}

int wr_socket_set_timer(CURLM *multi, long after_ms, void *context)
{
    struct wr_net *net = context;

    (void)multi;
    if (after_ms <= 0)
        (void)uv_timer_stop(&net->curl_timer);
    if (after_ms == 0 && !net->in_curl && !net->in_settle) /* a start outside of any event */
        run_curl_after_poll(net);
    else if (after_ms >= 0)
        (void)uv_timer_start(&net->curl_timer, on_curl_timer, (uint64_t)after_ms, 0);
    return 0;
}
