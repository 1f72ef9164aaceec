/* SPDX-License-Identifier: MIT */
/* control_server.c - the thread of the control socket: accepts clients and answers one request of
 * each at a time. */
#include "base/alloc.h"
#include "base/error.h"
#include "limiter/memory/memory.h"
#include "watch/control/control.h"
#include "watch/control/control_socket.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* a client that reads nothing for this long is disconnected */
#define STALLED_NS (10 * WEIR_SECOND)
/* a client silent for this long may be disconnected to admit another */
#define REPLACEABLE_NS WEIR_SECOND
#define POLL_TIMEOUT_MS 1000
#define ACCEPT_PAUSE_NS (WEIR_SECOND) /* pause of accepting when descriptors ran out */

struct control_client {
    int fd;          /* -1: the slot is free */
    char *request;   /* buffer of WR_CONTROL_REQUEST_MAX bytes */
    size_t received; /* bytes of `request` received */
    struct wr_buf answer;
    size_t sent; /* bytes of `answer` sent */
    /* time of the last progress, ns: accepted, answered, or response bytes sent */
    int64_t last_progress_at;
};

struct wr_control {
    struct wr_control_socket control_socket;
    struct wr_control_source source;
    int fd, wake_fd;
    int64_t rests_until; /* time before which no client is accepted, ns */
    pthread_t thread;
    struct control_client clients[WR_CONTROL_CLIENTS];
};

static int64_t control_now(void)
{
    return weir_clock_now(weir_clock_monotonic());
}

/* ---- clients ---- */

static void begin_answer(struct control_client *client)
{
    wr_buf_init(&client->answer, wr_allocator_or_system(NULL), WR_CONTROL_ANSWER_MAX);
    client->sent = 0;
}

static void disconnect_client(struct control_client *client)
{
    if (client->fd < 0)
        return;
    (void)close(client->fd);
    free(client->request);
    wr_buf_release(&client->answer);
    *client = (struct control_client){.fd = -1};
}

/* Returns a free slot, or disconnects the client that was silent longest. Returns NULL if all were
 * active within SILENT_NS. */
static struct control_client *find_client_slot(struct wr_control *control)
{
    struct control_client *oldest = &control->clients[0];
    for (size_t i = 0; i < WR_CONTROL_CLIENTS; i++) {
        struct control_client *client = &control->clients[i];
        if (client->fd < 0)
            return client;
        if (client->last_progress_at < oldest->last_progress_at)
            oldest = client;
    }
    if (control_now() - oldest->last_progress_at < REPLACEABLE_NS)
        return NULL;
    disconnect_client(oldest);
    return oldest;
}

static void accept_client(struct wr_control *control)
{
    int fd = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        bool is_gone = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
        control->rests_until = is_gone ? 0 : control_now() + ACCEPT_PAUSE_NS;
        return;
    }
    char *request = wr_control_peer_is_ours(fd) ? malloc(WR_CONTROL_REQUEST_MAX) : NULL;
    struct control_client *client = request != NULL ? find_client_slot(control) : NULL;
    if (client == NULL) {
        free(request);
        (void)close(fd);
        return;
    }
    *client = (struct control_client){.fd = fd, .request = request, .last_progress_at = control_now()};
    begin_answer(client);
}

static bool has_answer(const struct control_client *client)
{
    return client->answer.length > client->sent;
}

static void send_answer(struct control_client *client)
{
    while (has_answer(client)) {
        ssize_t sent = send(client->fd, client->answer.bytes + client->sent, client->answer.length - client->sent,
                            MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (sent <= 0) {
            disconnect_client(client);
            return;
        }
        client->sent += (size_t)sent;
        client->last_progress_at = control_now();
    }
    wr_buf_release(&client->answer); /* frees the memory of the response, which may be large */
    begin_answer(client);
}

/* Answers the first complete request in the buffer, if there is one. */
static void answer_next(const struct wr_control *control, struct control_client *client)
{
    struct wr_span received = {client->request, client->received};
    size_t bytes = wr_span_find(received, '\n');
    if (bytes == received.bytes) {
        if (received.bytes == WR_CONTROL_REQUEST_MAX)
            disconnect_client(client);
        return;
    }
    wr_control_answer(&control->source, (struct wr_span){client->request, bytes}, &client->answer);
    client->received -= bytes + 1;
    memmove(client->request, client->request + bytes + 1, client->received);
    client->last_progress_at = control_now();
    send_answer(client);
}

static void receive_requests(const struct wr_control *control, struct control_client *client)
{
    ssize_t got =
        recv(client->fd, client->request + client->received, WR_CONTROL_REQUEST_MAX - client->received, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        disconnect_client(client);
        return;
    }
    client->received += (size_t)got;
    answer_next(control, client);
}

/* Returns true if a complete request is in the buffer and no response is pending. */
static bool has_request(const struct control_client *client)
{
    return client->fd >= 0 && !has_answer(client) && client->received > 0 &&
           memchr(client->request, '\n', client->received) != NULL;
}

static void serve_client(const struct wr_control *control, struct control_client *client, short events)
{
    if (client->fd < 0)
        return;
    if (has_answer(client) && control_now() - client->last_progress_at > STALLED_NS)
        disconnect_client(client);
    else if (has_answer(client) && (events & (POLLOUT | POLLERR | POLLHUP)) != 0)
        send_answer(client);
    else if (has_request(client))
        answer_next(control, client);
    else if (!has_answer(client) && (events & (POLLIN | POLLERR | POLLHUP)) != 0)
        receive_requests(control, client);
}

/* ---- the thread ---- */

static short poll_events_of(const struct control_client *client)
{
    return has_answer(client) ? POLLOUT : POLLIN;
}

static void *run_control_thread(void *context)
{
    struct wr_control *control = context;
    struct pollfd polls[WR_CONTROL_CLIENTS + 2];
    for (;;) {
        int timeout_ms = POLL_TIMEOUT_MS;
        for (size_t i = 0; i < WR_CONTROL_CLIENTS; i++) {
            const struct control_client *client = &control->clients[i];
            polls[i] = (struct pollfd){.fd = client->fd, .events = poll_events_of(client)};
            timeout_ms = has_request(client) ? 0 : timeout_ms;
        }
        bool rests = control_now() < control->rests_until;
        polls[WR_CONTROL_CLIENTS] = (struct pollfd){.fd = rests ? -1 : control->fd, .events = POLLIN};
        polls[WR_CONTROL_CLIENTS + 1] = (struct pollfd){.fd = control->wake_fd, .events = POLLIN};
        if (poll(polls, WR_CONTROL_CLIENTS + 2, timeout_ms) < 0 && errno != EINTR)
            return NULL;
        if (polls[WR_CONTROL_CLIENTS + 1].revents != 0)
            return NULL;
        for (size_t i = 0; i < WR_CONTROL_CLIENTS; i++)
            serve_client(control, &control->clients[i], polls[i].revents);
        if (polls[WR_CONTROL_CLIENTS].revents != 0)
            accept_client(control);
    }
}

static int start_control_thread(struct wr_control *control)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&control->thread, NULL, run_control_thread, control);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0)
        wr_error_set("cannot start a thread for the control socket");
    return failed == 0 ? 0 : WEIR_E_SYSTEM;
}

int wr_control_open(const char *state_path, struct wr_engine *engine, struct wr_control **ret_desk)
{
    struct wr_control *control = calloc(1, sizeof *control);
    if (control == NULL)
        return WEIR_E_NOMEM;
    control->source = (struct wr_control_source){.engine = engine, .store = wr_engine_store(engine)};
    for (size_t i = 0; i < WR_CONTROL_CLIENTS; i++)
        control->clients[i].fd = -1;
    int error = wr_control_socket_listen(&control->control_socket, state_path, &control->fd);
    if (error != 0) {
        free(control);
        return error;
    }
    control->wake_fd = eventfd(0, EFD_CLOEXEC);
    if (control->wake_fd < 0)
        wr_error_set("no file descriptor is free for the control socket");
    error = control->wake_fd < 0 ? WEIR_E_SYSTEM : start_control_thread(control);
    if (error != 0) {
        if (control->wake_fd >= 0)
            (void)close(control->wake_fd);
        (void)close(control->fd);
        wr_control_socket_remove(&control->control_socket);
        free(control);
        return error;
    }
    *ret_desk = control;
    return 0;
}

void wr_control_close(struct wr_control *control)
{
    static const uint64_t one = 1;
    if (control == NULL)
        return;
    (void)!write(control->wake_fd, &one, sizeof one);
    (void)pthread_join(control->thread, NULL);
    for (size_t i = 0; i < WR_CONTROL_CLIENTS; i++)
        disconnect_client(&control->clients[i]);
    wr_control_socket_remove(&control->control_socket);
    (void)close(control->fd);
    (void)close(control->wake_fd);
    free(control);
}
