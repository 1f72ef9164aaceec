/* SPDX-License-Identifier: MIT */
/* hostile.c - a hostile server: one thread accepts, and one thread per connection runs the
 * steps. */
#include "lib/test.h"

#include "lib/hostile.h"
#include "lib/hostile_tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORTS_MAX 64
#define CONNECTIONS_MAX 2048
#define REQUESTS_MAX 4096
#define BODY_MAX ((size_t)1 << 20)

struct port {
    struct hostile_case hostile_case;
    int number;
    int listener; /* -1: no thread accepts connections here */
    int kept[2];  /* descriptors that are only kept open */
    int connections, ended;
};

struct connection {
    struct hostile *server;
    struct port *port;
    pthread_t thread;
    int fd, number;
    int steps;   /* number of steps that are done */
    SSL *tls;    /* NULL without TLS and before the handshake */
    char *input; /* bytes of the current request so far */
    size_t input_bytes;
};

struct logged {
    int port, connection;
    int64_t at;
    size_t bytes;
    char *text;
};

struct hostile {
    pthread_t thread;
    pthread_mutex_t lock;
    int stop[2]; /* a pipe that is readable when all threads must end */
    struct port ports[PORTS_MAX];
    int port_count;
    struct connection connections[CONNECTIONS_MAX];
    int connection_count;
    struct logged log[REQUESTS_MAX];
    int log_count;
};

/* ---- bytes ---- */

/* Waits until the socket is ready. Returns false if the server stops first or the time is over;
 * with events 0, true when the time is over. */
static bool await(struct connection *connection, short events, int64_t patience_ns)
{
    struct pollfd polls[] = {{.fd = connection->server->stop[0], .events = POLLIN},
                             {.fd = connection->fd, .events = events}};
    nfds_t count = events != 0 ? 2 : 1;
    int64_t until = weir_clock_now(weir_clock_monotonic()) + patience_ns;

    for (;;) {
        int64_t left = until - weir_clock_now(weir_clock_monotonic());
        struct timespec wait = {.tv_sec = (time_t)(left / WEIR_SECOND), .tv_nsec = (long)(left % WEIR_SECOND)};
        if (left <= 0)
            return events == 0;
        int ready = ppoll(polls, count, &wait, NULL);
        if (ready > 0 && polls[0].revents != 0)
            return false;
        if (ready > 0)
            return true;
    }
}

/* Clears the thread's queue of OpenSSL errors first: SSL_get_error would take an old error for one
 * of this call. */
static ssize_t tls_read(SSL *tls, char *to, size_t room)
{
    ERR_clear_error();
    return SSL_read(tls, to, (int)room);
}

static ssize_t tls_write(SSL *tls, const char *from, size_t bytes)
{
    ERR_clear_error();
    return SSL_write(tls, from, (int)bytes);
}

static ssize_t take(struct connection *connection, char *to, size_t room)
{
    for (;;) {
        ssize_t got = connection->tls != NULL ? tls_read(connection->tls, to, room) : recv(connection->fd, to, room, 0);
        if (got > 0)
            return got;
        bool is_later = connection->tls != NULL ? SSL_get_error(connection->tls, (int)got) == SSL_ERROR_WANT_READ
                                                : got < 0 && errno == EAGAIN;
        if (!is_later || !await(connection, POLLIN, WEIR_HOUR))
            return -1;
    }
}

static bool give(struct connection *connection, const char *from, size_t bytes)
{
    while (bytes > 0) {
        ssize_t sent = connection->tls != NULL ? tls_write(connection->tls, from, bytes)
                                               : send(connection->fd, from, bytes, MSG_NOSIGNAL);
        if (sent > 0) {
            from += sent;
            bytes -= (size_t)sent;
            continue;
        }
        bool is_later = connection->tls != NULL ? SSL_get_error(connection->tls, (int)sent) == SSL_ERROR_WANT_WRITE
                                                : sent < 0 && errno == EAGAIN;
        if (!is_later || !await(connection, POLLOUT, WEIR_HOUR))
            return false;
    }
    return true;
}

static bool greet(struct connection *connection)
{
    SSL *tls = SSL_new(connection->port->hostile_case.tls->context);

    if (tls == NULL || SSL_set_fd(tls, connection->fd) != 1)
        abort();
    for (;;) {
        ERR_clear_error();
        int done = SSL_accept(tls);
        if (done == 1) {
            connection->tls = tls;
            return true;
        }
        if (SSL_get_error(tls, done) != SSL_ERROR_WANT_READ || !await(connection, POLLIN, WEIR_HOUR)) {
            SSL_free(tls);
            return false;
        }
    }
}

/* ---- requests ---- */

static void log_request(struct connection *connection, size_t bytes)
{
    struct hostile *server = connection->server;
    size_t kept = bytes < HOSTILE_TEXT_MAX ? bytes : HOSTILE_TEXT_MAX;
    char *text = malloc(kept + 1);

    if (text == NULL)
        abort();
    memcpy(text, connection->input, kept);
    text[kept] = '\0';
    (void)pthread_mutex_lock(&server->lock);
    if (server->log_count == REQUESTS_MAX)
        abort();
    server->log[server->log_count++] = (struct logged){.port = connection->port->number,
                                                       .connection = connection->number,
                                                       .at = weir_clock_now(weir_clock_monotonic()),
                                                       .bytes = bytes,
                                                       .text = text};
    (void)pthread_mutex_unlock(&server->lock);
    connection->input_bytes -= bytes;
    memmove(connection->input, connection->input + bytes, connection->input_bytes);
    connection->input[connection->input_bytes] = '\0';
}

/* Returns the length of the first request in the input, or 0 if it is incomplete. */
static size_t request_bytes(const struct connection *connection)
{
    const char *end = strstr(connection->input, "\r\n\r\n");
    if (end == NULL)
        return 0;
    const char *length = strcasestr(connection->input, "\r\ncontent-length:");
    size_t bytes = (size_t)(end + 4 - connection->input);
    if (length != NULL && length < end)
        bytes += strtoul(length + strlen("\r\ncontent-length:"), NULL, 10);
    return bytes <= connection->input_bytes ? bytes : 0;
}

static bool read_request(struct connection *connection, bool is_sip)
{
    for (;;) {
        size_t bytes = is_sip ? connection->input_bytes : request_bytes(connection);
        if (bytes > 0) {
            log_request(connection, bytes);
            return true;
        }
        if (connection->input_bytes == BODY_MAX)
            return false;
        ssize_t got = take(connection, connection->input + connection->input_bytes, BODY_MAX - connection->input_bytes);
        if (got <= 0)
            return false;
        connection->input_bytes += (size_t)got;
        connection->input[connection->input_bytes] = '\0';
    }
}

/* ---- steps ---- */

static bool send_step(struct connection *connection, const struct hostile_step *step)
{
    size_t bytes = step->bytes != 0 ? step->bytes : strlen(step->text);

    for (int i = 0; step->times == HOSTILE_FOREVER || i < (step->times == 0 ? 1 : step->times); i++) {
        if (!give(connection, step->text, bytes))
            return false;
        if (step->pause_ns > 0 && !await(connection, 0, step->pause_ns))
            return false;
    }
    return true;
}

static void hold(struct connection *connection)
{
    char bin[4096];

    while (take(connection, bin, sizeof bin) > 0)
        ;
}

static void set_reset(struct connection *connection)
{
    const struct linger linger = {.l_onoff = 1};

    (void)setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    if (connection->tls != NULL)
        SSL_set_quiet_shutdown(connection->tls, 1); /* no close_notify */
}

static bool ask_again(struct connection *connection)
{
    return SSL_renegotiate(connection->tls) == 1 && SSL_do_handshake(connection->tls) == 1;
}

static bool run_step(struct connection *connection, const struct hostile_step *step)
{
    switch (step->what) {
    case HOSTILE_READ:
    case HOSTILE_SIP:
        return read_request(connection, step->what == HOSTILE_SIP);
    case HOSTILE_SEND:
        return send_step(connection, step);
    case HOSTILE_PAUSE:
        return await(connection, 0, step->pause_ns);
    case HOSTILE_HOLD:
        hold(connection);
        return false;
    case HOSTILE_RESET:
        set_reset(connection);
        return false;
    case HOSTILE_GREET:
        return greet(connection);
    case HOSTILE_ASK_AGAIN:
        return ask_again(connection);
    case HOSTILE_END:
    case HOSTILE_AGAIN:
        break;
    }
    return false;
}

static const struct hostile_step *steps_of(const struct connection *connection)
{
    const struct hostile_case *hostile_case = &connection->port->hostile_case;
    int list = connection->number;

    while (list > 0 && (list >= HOSTILE_LISTS || hostile_case->steps[list] == NULL))
        list--;
    return hostile_case->steps[list];
}

static bool has_greeting(const struct hostile_step *steps)
{
    for (; steps->what != HOSTILE_END; steps++)
        if (steps->what == HOSTILE_GREET)
            return true;
    return false;
}

static void run_steps(struct connection *connection)
{
    const struct hostile_step *steps = steps_of(connection), *step = steps;

    if (connection->port->hostile_case.tls != NULL && !has_greeting(steps) && !greet(connection))
        return;
    while (step->what != HOSTILE_END) {
        if (step->what == HOSTILE_AGAIN)
            step = steps;
        if (!run_step(connection, step++))
            return;
        (void)pthread_mutex_lock(&connection->server->lock);
        connection->steps++;
        (void)pthread_mutex_unlock(&connection->server->lock);
    }
}

static void *serve(void *argument)
{
    struct connection *connection = argument;
    struct hostile *server = connection->server;

    connection->input = calloc(1, BODY_MAX + 1);
    if (connection->input == NULL)
        abort();
    run_steps(connection);
    if (connection->tls != NULL) {
        (void)SSL_shutdown(connection->tls);
        SSL_free(connection->tls);
    }
    free(connection->input);
    (void)close(connection->fd);
    (void)pthread_mutex_lock(&server->lock);
    connection->port->ended++;
    (void)pthread_mutex_unlock(&server->lock);
    return NULL;
}

/* ---- accepting ---- */

static void accept_one(struct hostile *server, struct port *port)
{
    int fd = accept4(port->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return;
    (void)pthread_mutex_lock(&server->lock);
    if (server->connection_count == CONNECTIONS_MAX)
        abort();
    struct connection *connection = &server->connections[server->connection_count++];
    *connection = (struct connection){.server = server, .port = port, .fd = fd, .number = port->connections++};
    if (pthread_create(&connection->thread, NULL, serve, connection) != 0)
        abort();
    (void)pthread_mutex_unlock(&server->lock);
}

static void *accept_all(void *argument)
{
    struct hostile *server = argument;
    struct pollfd polls[PORTS_MAX + 1];

    for (;;) {
        (void)pthread_mutex_lock(&server->lock);
        int count = server->port_count;
        (void)pthread_mutex_unlock(&server->lock);
        for (int i = 0; i < count; i++)
            polls[i + 1] = (struct pollfd){.fd = server->ports[i].listener, .events = POLLIN};
        polls[0] = (struct pollfd){.fd = server->stop[0], .events = POLLIN};
        if (poll(polls, (nfds_t)count + 1, 10) <= 0) /* returns every 10 ms to look for new ports */
            continue;
        if (polls[0].revents != 0)
            return NULL;
        for (int i = 0; i < count; i++)
            if (polls[i + 1].revents != 0)
                accept_one(server, &server->ports[i]);
    }
}

/* ---- interface for tests ---- */

struct hostile *hostile_new(void)
{
    struct hostile *server = calloc(1, sizeof *server);

    assert_non_null(server);
    (void)signal(SIGPIPE, SIG_IGN); /* OpenSSL may write to a closed connection */
    assert_int_equal(pthread_mutex_init(&server->lock, NULL), 0);
    assert_int_equal(pipe2(server->stop, O_CLOEXEC), 0);
    assert_int_equal(pthread_create(&server->thread, NULL, accept_all, server), 0);
    return server;
}

/* Returns a socket bound to the address, and sets the port if it is 0. */
static int bound(const char *address, int *port)
{
    bool is_v6 = strchr(address, ':') != NULL;
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)*port)};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)*port)};
    struct sockaddr *at = is_v6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;
    socklen_t bytes = is_v6 ? sizeof v6 : sizeof v4;
    int fd = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

    assert_true(fd >= 0);
    assert_int_equal(inet_pton(at->sa_family, address, is_v6 ? (void *)&v6.sin6_addr : (void *)&v4.sin_addr), 1);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    assert_int_equal(bind(fd, at, bytes), 0);
    assert_int_equal(getsockname(fd, at, &bytes), 0);
    *port = ntohs(is_v6 ? v6.sin6_port : v4.sin_port);
    return fd;
}

static struct port *add_port(struct hostile *server, const char *address, int number, int backlog)
{
    assert_true(server->port_count < PORTS_MAX);
    struct port *port = &server->ports[server->port_count];
    *port = (struct port){.number = number, .kept = {-1, -1}};
    port->listener = bound(address, &port->number);
    if (backlog >= 0)
        assert_int_equal(listen(port->listener, backlog), 0);
    return port;
}

static void publish(struct hostile *server)
{
    (void)pthread_mutex_lock(&server->lock);
    server->port_count++;
    (void)pthread_mutex_unlock(&server->lock);
}

int hostile_listen(struct hostile *server, const struct hostile_case *hostile_case)
{
    const char *address = hostile_case->address != NULL ? hostile_case->address : "127.0.0.1";
    struct port *port = add_port(server, address, hostile_case->port, 64);

    port->hostile_case = *hostile_case;
    publish(server);
    return port->number;
}

int hostile_refuse(struct hostile *server)
{
    struct port *port = add_port(server, "127.0.0.1", 0, -1); /* bound, but not listening */
    int number = port->number;

    port->kept[0] = port->listener;
    port->listener = -1;
    publish(server);
    return number;
}

/* The queue of this listener has one place, which is taken: the kernel drops other connections. */
int hostile_black_hole(struct hostile *server, const char *address, int number)
{
    struct port *port = add_port(server, address, number, 0);
    int found = port->number;
    struct sockaddr_storage at;
    socklen_t bytes = sizeof at;

    assert_int_equal(getsockname(port->listener, (struct sockaddr *)&at, &bytes), 0);
    port->kept[0] = port->listener;
    port->listener = -1;
    port->kept[1] = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(port->kept[1] >= 0);
    assert_int_equal(connect(port->kept[1], (struct sockaddr *)&at, bytes), 0);
    publish(server);
    return found;
}

static const struct port *find_port(struct hostile *server, int number)
{
    for (int i = 0; i < server->port_count; i++)
        if (server->ports[i].number == number)
            return &server->ports[i];
    fail_msg("no port %d", number);
    return NULL;
}

bool hostile_request(struct hostile *server, int port, int n, struct hostile_request *ret_request)
{
    bool is_found = false;

    (void)pthread_mutex_lock(&server->lock);
    for (int i = 0; i < server->log_count && !is_found; i++) {
        const struct logged *logged = &server->log[i];
        is_found = logged->port == port && n-- == 0;
        if (!is_found)
            continue;
        *ret_request =
            (struct hostile_request){.at = logged->at, .connection = logged->connection, .bytes = logged->bytes};
        snprintf(ret_request->text, sizeof ret_request->text, "%s", logged->text);
    }
    (void)pthread_mutex_unlock(&server->lock);
    return is_found;
}

int hostile_requests(struct hostile *server, int port)
{
    int count = 0;

    (void)pthread_mutex_lock(&server->lock);
    for (int i = 0; i < server->log_count; i++)
        count += server->log[i].port == port;
    (void)pthread_mutex_unlock(&server->lock);
    return count;
}

int hostile_connections(struct hostile *server, int port)
{
    (void)pthread_mutex_lock(&server->lock);
    int count = find_port(server, port)->connections;
    (void)pthread_mutex_unlock(&server->lock);
    return count;
}

static void await_count(struct hostile *server, int (*count)(struct hostile *server, int port, int connection),
                        int port, int connection, int least)
{
    int64_t until = weir_clock_now(weir_clock_monotonic()) + WEIR_MINUTE;

    for (int counted = 0; counted < least;) {
        (void)pthread_mutex_lock(&server->lock);
        counted = count(server, port, connection);
        (void)pthread_mutex_unlock(&server->lock);
        assert_true(weir_clock_now(weir_clock_monotonic()) < until);
        (void)sched_yield();
    }
}

static int count_ended(struct hostile *server, int port, int connection)
{
    (void)connection;
    return find_port(server, port)->ended;
}

static int count_steps(struct hostile *server, int port, int connection)
{
    for (int i = 0; i < server->connection_count; i++)
        if (server->connections[i].port->number == port && server->connections[i].number == connection)
            return server->connections[i].steps;
    return 0;
}

void hostile_await_ended(struct hostile *server, int port, int connections)
{
    await_count(server, count_ended, port, 0, connections);
}

void hostile_await_steps(struct hostile *server, int port, int connection, int steps)
{
    await_count(server, count_steps, port, connection, steps);
}

void hostile_free(struct hostile *server)
{
    assert_int_equal(write(server->stop[1], "", 1), 1);
    assert_int_equal(pthread_join(server->thread, NULL), 0);
    for (int i = 0; i < server->connection_count; i++)
        assert_int_equal(pthread_join(server->connections[i].thread, NULL), 0);
    for (int i = 0; i < server->port_count; i++) {
        const struct port *port = &server->ports[i];
        const int fds[] = {port->listener, port->kept[0], port->kept[1]};
        for (int j = 0; j < 3; j++)
            if (fds[j] >= 0)
                (void)close(fds[j]);
    }
    for (int i = 0; i < server->log_count; i++)
        free(server->log[i].text);
    (void)close(server->stop[0]);
    (void)close(server->stop[1]);
    (void)pthread_mutex_destroy(&server->lock);
    free(server);
}
