/* SPDX-License-Identifier: MIT */
/* serve.c - the thread of the control socket: accepts clients and answers one request of each at a
 * time. */
#include "base/alloc.h"
#include "base/error.h"
#include "shell/desk/desk.h"
#include "shell/desk/place.h"
#include "shell/memory/memory.h"

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
#define SILENT_NS WEIR_SECOND
#define TURN_MS 1000
#define REST_NS (WEIR_SECOND) /* pause of accepting when descriptors ran out */

struct client {
    int fd;        /* -1: the slot is free */
    char *request; /* buffer of WR_DESK_REQUEST_MAX bytes */
    size_t heard;  /* bytes of `request` received */
    struct wr_buf answer;
    size_t sent; /* bytes of `answer` sent */
    /* time of the last progress, ns: accepted, answered, or response bytes sent */
    int64_t moved_at;
};

struct wr_desk {
    struct wr_desk_place place;
    struct wr_desk_source source;
    int fd, wake_fd;
    int64_t rests_until; /* time before which no client is accepted, ns */
    pthread_t thread;
    struct client clients[WR_DESK_CLIENTS];
};

static int64_t now_of(void)
{
    return weir_clock_now(weir_clock_monotonic());
}

/* ---- clients ---- */

static void begin_answer(struct client *client)
{
    wr_buf_init(&client->answer, wr_allocator_or_system(NULL), WR_DESK_ANSWER_MAX);
    client->sent = 0;
}

static void hang_up(struct client *client)
{
    if (client->fd < 0)
        return;
    (void)close(client->fd);
    free(client->request);
    wr_buf_release(&client->answer);
    *client = (struct client){.fd = -1};
}

/* Returns a free slot, or disconnects the client that was silent longest. Returns NULL if all were
 * active within SILENT_NS. */
static struct client *find_room(struct wr_desk *desk)
{
    struct client *oldest = &desk->clients[0];
    for (size_t i = 0; i < WR_DESK_CLIENTS; i++) {
        struct client *client = &desk->clients[i];
        if (client->fd < 0)
            return client;
        if (client->moved_at < oldest->moved_at)
            oldest = client;
    }
    if (now_of() - oldest->moved_at < SILENT_NS)
        return NULL;
    hang_up(oldest);
    return oldest;
}

static void welcome(struct wr_desk *desk)
{
    int fd = accept4(desk->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        bool is_gone = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
        desk->rests_until = is_gone ? 0 : now_of() + REST_NS;
        return;
    }
    char *request = wr_desk_peer_is_ours(fd) ? malloc(WR_DESK_REQUEST_MAX) : NULL;
    struct client *client = request != NULL ? find_room(desk) : NULL;
    if (client == NULL) {
        free(request);
        (void)close(fd);
        return;
    }
    *client = (struct client){.fd = fd, .request = request, .moved_at = now_of()};
    begin_answer(client);
}

static bool has_answer(const struct client *client)
{
    return client->answer.length > client->sent;
}

static void speak(struct client *client)
{
    while (has_answer(client)) {
        ssize_t sent = send(client->fd, client->answer.bytes + client->sent, client->answer.length - client->sent,
                            MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (sent <= 0) {
            hang_up(client);
            return;
        }
        client->sent += (size_t)sent;
        client->moved_at = now_of();
    }
    wr_buf_release(&client->answer); /* frees the memory of the response, which may be large */
    begin_answer(client);
}

/* Answers the first complete request in the buffer, if there is one. */
static void answer_next(const struct wr_desk *desk, struct client *client)
{
    struct wr_span heard = {client->request, client->heard};
    size_t bytes = wr_span_find(heard, '\n');
    if (bytes == heard.bytes) {
        if (heard.bytes == WR_DESK_REQUEST_MAX)
            hang_up(client);
        return;
    }
    wr_desk_answer(&desk->source, (struct wr_span){client->request, bytes}, &client->answer);
    client->heard -= bytes + 1;
    memmove(client->request, client->request + bytes + 1, client->heard);
    client->moved_at = now_of();
    speak(client);
}

static void listen_to(const struct wr_desk *desk, struct client *client)
{
    ssize_t got = recv(client->fd, client->request + client->heard, WR_DESK_REQUEST_MAX - client->heard, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        hang_up(client);
        return;
    }
    client->heard += (size_t)got;
    answer_next(desk, client);
}

/* Returns true if a complete request is in the buffer and no response is pending. */
static bool is_behind(const struct client *client)
{
    return client->fd >= 0 && !has_answer(client) && client->heard > 0 &&
           memchr(client->request, '\n', client->heard) != NULL;
}

static void attend(const struct wr_desk *desk, struct client *client, short events)
{
    if (client->fd < 0)
        return;
    if (has_answer(client) && now_of() - client->moved_at > STALLED_NS)
        hang_up(client);
    else if (has_answer(client) && (events & (POLLOUT | POLLERR | POLLHUP)) != 0)
        speak(client);
    else if (is_behind(client))
        answer_next(desk, client);
    else if (!has_answer(client) && (events & (POLLIN | POLLERR | POLLHUP)) != 0)
        listen_to(desk, client);
}

/* ---- the thread ---- */

static short wants(const struct client *client)
{
    return has_answer(client) ? POLLOUT : POLLIN;
}

static void *run(void *context)
{
    struct wr_desk *desk = context;
    struct pollfd polls[WR_DESK_CLIENTS + 2];
    for (;;) {
        int timeout_ms = TURN_MS;
        for (size_t i = 0; i < WR_DESK_CLIENTS; i++) {
            const struct client *client = &desk->clients[i];
            polls[i] = (struct pollfd){.fd = client->fd, .events = wants(client)};
            timeout_ms = is_behind(client) ? 0 : timeout_ms;
        }
        bool rests = now_of() < desk->rests_until;
        polls[WR_DESK_CLIENTS] = (struct pollfd){.fd = rests ? -1 : desk->fd, .events = POLLIN};
        polls[WR_DESK_CLIENTS + 1] = (struct pollfd){.fd = desk->wake_fd, .events = POLLIN};
        if (poll(polls, WR_DESK_CLIENTS + 2, timeout_ms) < 0 && errno != EINTR)
            return NULL;
        if (polls[WR_DESK_CLIENTS + 1].revents != 0)
            return NULL;
        for (size_t i = 0; i < WR_DESK_CLIENTS; i++)
            attend(desk, &desk->clients[i], polls[i].revents);
        if (polls[WR_DESK_CLIENTS].revents != 0)
            welcome(desk);
    }
}

static int start(struct wr_desk *desk)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&desk->thread, NULL, run, desk);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0)
        wr_error_note("there is no thread for the socket");
    return failed == 0 ? 0 : WEIR_E_SYSTEM;
}

int wr_desk_open(const char *state_path, struct wr_engine *engine, struct wr_desk **ret_desk)
{
    struct wr_desk *desk = calloc(1, sizeof *desk);
    if (desk == NULL)
        return WEIR_E_NOMEM;
    desk->source = (struct wr_desk_source){.engine = engine, .store = wr_engine_store(engine)};
    for (size_t i = 0; i < WR_DESK_CLIENTS; i++)
        desk->clients[i].fd = -1;
    int error = wr_desk_place_listen(&desk->place, state_path, &desk->fd);
    if (error != 0) {
        free(desk);
        return error;
    }
    desk->wake_fd = eventfd(0, EFD_CLOEXEC);
    if (desk->wake_fd < 0)
        wr_error_note("there is no descriptor for the socket");
    error = desk->wake_fd < 0 ? WEIR_E_SYSTEM : start(desk);
    if (error != 0) {
        if (desk->wake_fd >= 0)
            (void)close(desk->wake_fd);
        (void)close(desk->fd);
        wr_desk_place_leave(&desk->place);
        free(desk);
        return error;
    }
    *ret_desk = desk;
    return 0;
}

void wr_desk_close(struct wr_desk *desk)
{
    static const uint64_t one = 1;
    if (desk == NULL)
        return;
    (void)!write(desk->wake_fd, &one, sizeof one);
    (void)pthread_join(desk->thread, NULL);
    for (size_t i = 0; i < WR_DESK_CLIENTS; i++)
        hang_up(&desk->clients[i]);
    wr_desk_place_leave(&desk->place);
    (void)close(desk->fd);
    (void)close(desk->wake_fd);
    free(desk);
}
