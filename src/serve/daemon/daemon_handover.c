/* SPDX-License-Identifier: MIT */
/* daemon_handover.c - hands the sockets, keys and connections of a running daemon over to its
 * successor. */
#include "serve/daemon/daemon_handover.h"

#include "base/error.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define HANDOVER_TIMEOUT_S 10 /* socket timeout while no daemon decides */
#define COPY_TIMEOUT_S 300    /* socket timeout while the old daemon still decides */
#define COPIES 2              /* the second copy has only the keys changed during the first */
#define MESSAGE_MAX 131072    /* bytes; less than a socket's buffer */
#define ACCEPT_PAUSE_MS 100   /* wait before accept is retried for lack of descriptors */

/* ---- messages ---- */

struct connection_head {
    uint32_t listener, closes, peer_bytes, out_bytes, in_bytes;
};

struct handover_message {
    int fd; /* descriptor received with the message; -1 if there was none */
    size_t bytes;
    char data[MESSAGE_MAX];
};

/* Sends a message of `count` parts, with a descriptor unless `fd` is -1. Returns false on
 * failure. */
static bool send_message(int to, struct iovec *parts, size_t count, int fd)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.room = {0}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
    if (fd >= 0) {
        message.msg_control = control.room;
        message.msg_controllen = sizeof control.room;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(head), &fd, sizeof fd);
    }
    ssize_t sent;
    do
        sent = sendmsg(to, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent >= 0;
}

static bool send_text(int to, const char *letter, const char *text, int fd)
{
    struct iovec parts[] = {{(void *)(uintptr_t)letter, 1}, {(void *)(uintptr_t)text, strlen(text)}};
    return send_message(to, parts, 2, fd);
}

/* Receives a message. Retries after EINTR: the kernel does not restart calls on a socket with a
 * timeout, and io_uring in the loops interrupts them without a signal. */
static bool receive_message(int from, struct handover_message *ret_message)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.room = {0}};
    struct iovec part = {ret_message->data, sizeof ret_message->data - 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
    ssize_t bytes;
    do
        bytes = recvmsg(from, &message, MSG_CMSG_CLOEXEC);
    while (bytes < 0 && errno == EINTR);
    ret_message->fd = -1;
    for (struct cmsghdr *head = bytes > 0 ? CMSG_FIRSTHDR(&message) : NULL; head != NULL;
         head = CMSG_NXTHDR(&message, head))
        if (head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
            memcpy(&ret_message->fd, CMSG_DATA(head), sizeof(int));
    if (bytes <= 0 || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
        return false;
    ret_message->bytes = (size_t)bytes;
    ret_message->data[bytes] = '\0';
    return true;
}

/* ---- sockets ---- */

static bool make_address(const char *path, struct sockaddr_un *ret_address)
{
    size_t bytes = strlen(path);
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (bytes == 0 || bytes >= sizeof ret_address->sun_path)
        return false;
    memcpy(ret_address->sun_path, path, bytes);
    return true;
}

static void set_socket_timeouts(int fd, int seconds)
{
    const struct timeval limit = {.tv_sec = seconds};
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

static bool daemon_is_ours(int fd)
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && (peer.uid == geteuid() || peer.uid == 0);
}

static bool copy_path(const char *path, char ret_path[256])
{
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, ret_path, 256);
    wr_buf_append_string(&buf, path);
    wr_buf_append_string(&buf, ".state");
    return buf.error == 0;
}

static int note_handover_error(const char *what, const char *path)
{
    wr_error_set_cause(what, path, strerror(errno));
    return WEIR_E_SYSTEM;
}

/* ---- the new daemon ---- */

static void place_listener(struct wr_http_listen_options *listens, size_t count, const struct handover_message *message)
{
    for (size_t i = 0; i < count; i++) {
        if (listens[i].has_fd || strcmp(listens[i].address, message->data + 1) != 0)
            continue;
        listens[i].fd = message->fd;
        listens[i].has_fd = listens[i].is_inherited = true;
        return;
    }
    (void)close(message->fd); /* the new daemon does not listen there */
}

int wr_handover_begin(struct wr_serve *serve, struct wr_http_listen_options *listens, size_t count, int *ret_fd)
{
    static struct handover_message message;
    const char *path = serve->options.handover;
    struct sockaddr_un address;
    if (!make_address(path, &address))
        return wr_invalid("the path of --handover is empty or too long; use at most 107 bytes");
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        bool is_nobody = errno == ENOENT || errno == ECONNREFUSED;
        int error = is_nobody ? WEIR_E_ABSENT : note_handover_error("cannot connect to", path);
        if (fd >= 0)
            (void)close(fd);
        return error;
    }
    set_socket_timeouts(fd, HANDOVER_TIMEOUT_S);
    while (receive_message(fd, &message) && message.data[0] == 'L' && message.fd >= 0)
        place_listener(listens, count, &message);
    if (daemon_is_ours(fd) && message.bytes >= 1 && message.data[0] == 'R') {
        *ret_fd = fd;
        int error = wr_rules_adopt_secret(serve->book, serve->settings, message.data + 1);
        if (error != 0)
            (void)close(fd);
        return error;
    }
    (void)close(fd);
    wr_error_set_text("the daemon at", path, strlen(path), "does not hand over");
    return WEIR_E_SYSTEM;
}

static bool adopt_connection(struct wr_serve *serve, const struct handover_message *message)
{
    struct connection_head head;
    const char *at = message->data + 1 + sizeof head;
    if (message->fd < 0 || message->bytes < 1 + sizeof head)
        return false;
    memcpy(&head, message->data + 1, sizeof head);
    if (message->bytes != 1 + sizeof head + head.peer_bytes + head.out_bytes + head.in_bytes ||
        head.peer_bytes >= WR_HTTP_PEER_MAX)
        return false;
    const struct wr_http_conn_state baggage = {
        .fd = message->fd,
        .listener = head.listener,
        .closes = head.closes != 0,
        .peer = {at, head.peer_bytes},
        .out = {at + head.peer_bytes, head.out_bytes},
        .in = {at + head.peer_bytes + head.out_bytes, head.in_bytes},
    };
    wr_http_server_adopt_conn(serve->http, &baggage);
    return true;
}

/* Requests a copy of the keys by the message `letter`, and loads it. */
static bool receive_keys(struct wr_serve *serve, int fd, const char *letter, struct handover_message *message,
                         char *ret_why, size_t why_bytes)
{
    char path[256];
    if (!send_text(fd, letter, "", -1) || !receive_message(fd, message) || message->data[0] != 'S' ||
        !copy_path(serve->options.handover, path))
        return false;
    int error = wr_rules_load_keys(serve->book, path, ret_why, why_bytes);
    (void)unlink(path);
    return error == 0;
}

static bool receive_all(struct wr_serve *serve, int fd, struct handover_message *message, char *ret_why,
                        size_t why_bytes)
{
    set_socket_timeouts(fd, COPY_TIMEOUT_S);
    for (int i = 0; i < COPIES; i++)
        if (!receive_keys(serve, fd, "P", message, ret_why, why_bytes))
            return false;
    set_socket_timeouts(fd, HANDOVER_TIMEOUT_S);
    if (!receive_keys(serve, fd, "G", message, ret_why, why_bytes))
        return false;
    while (receive_message(fd, message)) {
        if (message->data[0] == 'E')
            return send_text(fd, "K", "", -1) && receive_message(fd, message) && message->data[0] == 'A';
        if (message->data[0] != 'C' || !adopt_connection(serve, message))
            return false;
    }
    return false;
}

int wr_handover_take(struct wr_serve *serve, int fd, char *ret_why, size_t why_bytes)
{
    static struct handover_message message;
    struct wr_buf why;
    bool is_taken = receive_all(serve, fd, &message, ret_why, why_bytes);
    (void)close(fd);
    if (is_taken)
        return 0;
    wr_http_server_abandon(serve->http); /* the sockets still belong to the old daemon */
    wr_buf_init_fixed(&why, ret_why, why_bytes);
    wr_buf_append_string(&why, "the previous daemon did not hand over, and continues to run");
    return WEIR_E_SYSTEM;
}

/* ---- the old daemon ---- */

struct connection_sender {
    int to;
    bool is_well;
    bool leaves; /* a connection had more data than fits into a message, and was skipped */
};

static void send_connection(void *context, const struct wr_http_conn_state *baggage)
{
    struct connection_sender *giving = context;
    struct connection_head head = {baggage->listener, baggage->closes, (uint32_t)baggage->peer.bytes,
                                   (uint32_t)baggage->out.bytes, (uint32_t)baggage->in.bytes};
    struct iovec parts[] = {
        {(void *)(uintptr_t) "C", 1},
        {&head, sizeof head},
        {(void *)(uintptr_t)baggage->peer.data, baggage->peer.bytes},
        {(void *)(uintptr_t)baggage->out.data, baggage->out.bytes},
        {(void *)(uintptr_t)baggage->in.data, baggage->in.bytes},
    };
    if (baggage->out.bytes + baggage->in.bytes > MESSAGE_MAX - 256) {
        giving->leaves = true;
        return;
    }
    giving->is_well = giving->is_well && send_message(giving->to, parts, 5, baggage->fd);
}

static bool send_listeners(struct wr_serve *serve, int to)
{
    const struct wr_http_server_options *http = &serve->options.http;
    for (size_t i = 0; i < http->listen_count; i++)
        if (http->listens[i].address != NULL &&
            !send_text(to, "L", http->listens[i].address, wr_http_server_listen_fd(serve->http, i)))
            return false;
    return send_text(to, "R", wr_rules_secret(serve->book), -1);
}

static bool send_keys(struct wr_serve *serve, int to, struct wr_rules_copy *copy, bool is_last)
{
    char path[256], why[WR_CONFIG_WHY_BYTES];
    return copy_path(serve->options.handover, path) &&
           wr_rules_copy(serve->book, copy, is_last, path, why, sizeof why) == 0 && send_text(to, "S", "", -1);
}

/* Sends copies of the keys until the new daemon says go. */
static bool send_key_copies(struct wr_serve *serve, int to, struct wr_rules_copy *copy,
                            struct handover_message *message)
{
    bool is_there;
    set_socket_timeouts(to, COPY_TIMEOUT_S);
    while ((is_there = receive_message(to, message)) && message->data[0] == 'P')
        if (!send_keys(serve, to, copy, false))
            return false;
    set_socket_timeouts(to, HANDOVER_TIMEOUT_S);
    return is_there && message->data[0] == 'G';
}

/* Sends the last changes and all connections while the server is frozen. */
static bool send_all_frozen(struct wr_serve *serve, int to, struct wr_rules_copy *copy,
                            struct handover_message *message)
{
    struct connection_sender giving = {.to = to, .is_well = true};
    if (!send_keys(serve, to, copy, true))
        return false;
    wr_http_server_each_conn(serve->http, send_connection, &giving);
    if (!giving.is_well || !send_text(to, "E", "", -1) || !receive_message(to, message) || message->data[0] != 'K')
        return false;
    /* from here on only the new daemon writes the state file */
    atomic_store(&serve->is_handed_over, true);
    bool is_told = send_text(to, "A", "", -1);
    atomic_store(&serve->is_handed_over, is_told);
    if (is_told && giving.leaves)
        wr_serve_log(serve, "connections with more than 128 KiB in transit are closed", NULL);
    return is_told;
}

/* Hands over to the daemon that has connected. Returns true if the new daemon has taken over. */
static bool hand_over_to(struct wr_serve *serve, int to)
{
    static struct handover_message message;
    struct wr_rules_copy copy = {false, 0};
    set_socket_timeouts(to, HANDOVER_TIMEOUT_S);
    if (!daemon_is_ours(to) || !send_listeners(serve, to) || !send_key_copies(serve, to, &copy, &message))
        return false;
    wr_http_server_freeze(serve->http);
    if (send_all_frozen(serve, to, &copy, &message)) {
        wr_http_server_abandon(serve->http);
        return true;
    }
    wr_http_server_thaw(serve->http);
    wr_serve_log(serve, "the next daemon did not take over; this one continues to run", NULL);
    return false;
}

/* Records the connected daemon, whose socket is shut down when this daemon ends. */
static void set_peer(struct wr_serve *serve, int fd)
{
    (void)pthread_mutex_lock(&serve->lock);
    serve->handover_peer = fd;
    (void)pthread_mutex_unlock(&serve->lock);
}

/* Accepts a connection. Returns -1 when this daemon ends. Retries if no descriptor is free: the new
 * daemon waits in the backlog. */
static int accept_next(struct wr_serve *serve)
{
    while (!atomic_load(&serve->is_handover_closing)) {
        int fd = accept4(serve->handover_fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
            return fd;
        if (errno != EINTR && errno != ECONNABORTED && errno != EINVAL)
            (void)poll(NULL, 0, ACCEPT_PAUSE_MS);
    }
    return -1;
}

static void *wait_for_successor(void *context)
{
    struct wr_serve *serve = context;
    bool is_over = false;
    while (!is_over) {
        int fd = accept_next(serve);
        if (fd < 0)
            return NULL;
        set_peer(serve, fd);
        is_over = hand_over_to(serve, fd);
        set_peer(serve, -1);
        (void)close(fd);
    }
    wr_serve_log(serve, "handed over to the next daemon", NULL);
    if (serve->options.handed != NULL)
        serve->options.handed(serve->options.context);
    return NULL;
}

/* Listens at `path`. Removes the socket file of a crashed daemon, or of the predecessor, which has
 * ended. */
static int listen_at_path(const char *path)
{
    struct sockaddr_un address;
    struct stat node;
    if (!make_address(path, &address))
        return -1;
    if (lstat(path, &node) == 0 && S_ISSOCK(node.st_mode))
        (void)unlink(path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd >= 0 && fchmod(fd, 0600) == 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        listen(fd, 4) == 0)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

static int refuse_listen_path(const char *path)
{
    static const char what[] = "cannot listen at";
    int number = errno;
    if (number == ENOENT)
        wr_error_set_cause(what, path, "its folder does not exist; create it first");
    else if (number == EADDRINUSE)
        wr_error_set_cause(what, path, "a file that is not a socket has this name; remove it, or name another path");
    else
        wr_error_set_cause(what, path, strerror(number));
    return WEIR_E_SYSTEM;
}

int wr_handover_open(struct wr_serve *serve)
{
    sigset_t all, before;
    serve->handover_peer = -1;
    atomic_store(&serve->is_handover_closing, false);
    serve->handover_fd = listen_at_path(serve->options.handover);
    if (serve->handover_fd < 0)
        return refuse_listen_path(serve->options.handover);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    serve->has_handover = pthread_create(&serve->handover_thread, NULL, wait_for_successor, serve) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (serve->has_handover)
        return 0;
    (void)close(serve->handover_fd);
    return WEIR_E_SYSTEM;
}

void wr_handover_close(struct wr_serve *serve)
{
    if (!serve->has_handover)
        return;
    atomic_store(&serve->is_handover_closing, true);
    (void)shutdown(serve->handover_fd, SHUT_RDWR);
    (void)pthread_mutex_lock(&serve->lock);
    if (serve->handover_peer >= 0)
        (void)shutdown(serve->handover_peer, SHUT_RDWR);
    (void)pthread_mutex_unlock(&serve->lock);
    (void)pthread_join(serve->handover_thread, NULL);
    (void)close(serve->handover_fd);
    serve->has_handover = false;
    /* after a handover the socket file belongs to the new daemon */
    if (!atomic_load(&serve->is_handed_over))
        (void)unlink(serve->options.handover);
}
