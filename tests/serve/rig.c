/* SPDX-License-Identifier: MIT */
/* rig.c - test fixture: an HTTP server in this process, and its clients. */
#include "serve/rig.h"

#include "base/list.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LARGE ((size_t)4 << 20)

/* ---- the server ---- */

static void on_gone(struct wr_http_exchange *exchange)
{
    struct http_server_fixture *rig = exchange->context;
    rig->late = NULL;
    atomic_fetch_add(&rig->gone, 1);
}

static void hold(struct http_server_fixture *rig, struct wr_http_exchange *exchange)
{
    exchange->context = rig;
    exchange->gone = on_gone;
    rig->late = exchange;
    atomic_fetch_add(&rig->held, 1);
}

static void answer_large(struct wr_http_exchange *exchange)
{
    char *text = malloc(LARGE);
    memset(text, 'x', LARGE);
    wr_http_reply(exchange, 200, WR_HTTP_TEXT, (struct wr_span){text, LARGE});
    free(text);
}

static void answer(void *context, struct wr_http_exchange *exchange)
{
    struct http_server_fixture *rig = context;
    struct wr_span path = exchange->path;
    if (wr_span_is(path, "/ok"))
        wr_http_reply(exchange, 200, WR_HTTP_TEXT, wr_span_of("ok\n"));
    else if (wr_span_is(path, "/empty") || wr_span_is(path, "/"))
        wr_http_reply(exchange, 204, WR_HTTP_NOTHING, WR_HTTP_NOTHING);
    else if (wr_span_is(path, "/echo"))
        wr_http_reply(exchange, 200, WR_HTTP_TEXT, exchange->body);
    else if (wr_span_is(path, "/query"))
        wr_http_reply(exchange, 200, WR_HTTP_TEXT, exchange->query);
    else if (wr_span_is(path, "/peer"))
        wr_http_reply(exchange, 200, WR_HTTP_TEXT, exchange->peer);
    else if (wr_span_is(path, "/large"))
        answer_large(exchange);
    else if (wr_span_is(path, "/token"))
        wr_http_reply(exchange, wr_http_has_token(exchange, "s3cret") ? 204 : 401, WR_HTTP_NOTHING, WR_HTTP_NOTHING);
    else if (wr_span_is(path, "/late"))
        hold(rig, exchange);
    else if (wr_span_is(path, "/stream")) {
        wr_http_stream_begin(exchange, 200, wr_span_of("Content-Type: text/event-stream\r\n"));
        hold(rig, exchange);
    } else
        wr_http_refuse(exchange, 404, "there is nothing here");
}

static void tick(void *context, struct wr_http_loop *loop)
{
    struct http_server_fixture *rig = context;
    (void)loop;
    atomic_fetch_add(&rig->ticks, 1);
}

void rig_init(struct http_server_fixture *rig)
{
    static const char *const names[] = {"weir.example", NULL};
    *rig = (struct http_server_fixture){.written = 1};
    rig->listens[0].address = "127.0.0.1:0";
    wr_http_server_options_init(&rig->options);
    rig->options.listens = rig->listens;
    rig->options.listen_count = 1;
    rig->options.answer = answer;
    rig->options.names = names;
    rig->options.tick = tick;
    rig->options.tick_ns = 20 * WEIR_MILLISECOND;
    rig->options.context = rig;
}

void rig_start(struct http_server_fixture *rig)
{
    assert_int_equal(wr_http_server_new(&rig->options, &rig->server), 0);
    assert_int_equal(wr_http_server_start(rig->server), 0);
}

void rig_stop(struct http_server_fixture *rig)
{
    struct wr_http_server_stats stats;
    wr_http_server_stop(rig->server, 0);
    wr_http_server_stats(rig->server, &stats);
    assert_int_equal(stats.connections, 0);
    assert_int_equal(stats.streams, 0);
    assert_int_equal(stats.buffered_bytes, 0); /* all buffers were freed */
    wr_http_server_free(rig->server);
}

static void run_release(struct wr_http_posted_call *note)
{
    struct http_server_fixture *rig = WR_LINKED(note, struct http_server_fixture, note);
    struct wr_http_exchange *exchange = rig->late;
    rig->late = NULL;
    if (exchange != NULL)
        wr_http_reply(exchange, 200, WR_HTTP_TEXT, exchange->query);
}

void rig_release(struct http_server_fixture *rig)
{
    rig->note.run = run_release;
    wr_http_post(rig->late->loop, &rig->note);
}

static void run_stream(struct wr_http_posted_call *note)
{
    struct http_server_fixture *rig = WR_LINKED(note, struct http_server_fixture, note);
    atomic_store(&rig->written, rig->late == NULL ? WEIR_E_CLOSED : wr_http_stream_write(rig->late, rig->wish));
}

int rig_stream(struct http_server_fixture *rig, struct wr_span bytes)
{
    struct wr_http_exchange *exchange = rig->late;
    if (exchange == NULL)
        return WEIR_E_CLOSED;
    rig->wish = bytes;
    rig->note.run = run_stream;
    atomic_store(&rig->written, 1);
    wr_http_post(exchange->loop, &rig->note);
    while (atomic_load(&rig->written) == 1)
        (void)usleep(1000);
    return atomic_load(&rig->written);
}

void wait_until(atomic_int *count, int least)
{
    for (int i = 0; i < 60000 && atomic_load(count) < least; i++)
        (void)usleep(1000);
    assert_true(atomic_load(count) >= least);
}

struct wr_http_server_stats rig_stats(const struct http_server_fixture *rig)
{
    struct wr_http_server_stats stats;
    wr_http_server_stats(rig->server, &stats);
    return stats;
}

/* ---- clients ---- */

/* Sets time limits for the socket, because then the kernel does not restart an interrupted call.
 * Linux interrupts calls also without a signal, to clean up after the io_uring of a libuv loop that
 * has ended (libuv 1.45 and later). */
static int ready(int fd)
{
    struct timeval limit = {.tv_sec = 60};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit), 0);
    return fd;
}

int dial(const struct http_server_fixture *rig)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(wr_http_server_port(rig->server, 0))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return ready(fd);
}

int dial_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memcpy(address.sun_path, path, strlen(path));
    assert_true(fd >= 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        (void)close(fd);
        return -1;
    }
    return ready(fd);
}

int rig_open(struct http_server_fixture *rig)
{
    rig_init(rig);
    rig_start(rig);
    return dial(rig);
}

void rig_close(struct http_server_fixture *rig, int fd)
{
    (void)close(fd);
    rig_stop(rig);
}

void say_bytes(int fd, const void *bytes, size_t count)
{
    const char *from = bytes;
    while (count > 0) {
        ssize_t sent = send(fd, from, count, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return; /* a server that refuses a request may close the connection */
        from += sent;
        count -= (size_t)sent;
    }
}

void say(int fd, const char *text)
{
    say_bytes(fd, text, strlen(text));
}

ssize_t hear_some(int fd, void *to, size_t room)
{
    ssize_t got;
    do
        got = recv(fd, to, room, 0);
    while (got < 0 && errno == EINTR);
    return got;
}

static char heard[HEAR_MAX + 1];

/* Returns true if the text starts with `count` complete responses. */
static bool has_answers(const char *text, size_t bytes, int count)
{
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        const char *head = text + at, *end = strstr(head, "\r\n\r\n");
        if (end == NULL)
            return false;
        const char *length = strstr(head, "Content-Length: ");
        at = (size_t)(end - text) + 4;
        if (length != NULL && length < end)
            at += strtoul(length + 16, NULL, 10);
        if (at > bytes)
            return false;
    }
    return true;
}

static const char *hear_until(int fd, int count, bool *ret_ended)
{
    size_t bytes = 0;
    *ret_ended = false;
    while (bytes < HEAR_MAX && (count < 0 || !has_answers(heard, bytes, count))) {
        ssize_t got = hear_some(fd, heard + bytes, HEAR_MAX - bytes);
        *ret_ended = got <= 0 && !(got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
        if (got <= 0)
            break;
        bytes += (size_t)got;
        heard[bytes] = '\0';
    }
    heard[bytes] = '\0';
    return heard;
}

const char *hear(int fd, int count)
{
    bool ended;
    heard[0] = '\0';
    const char *text = hear_until(fd, count, &ended);
    assert_true(has_answers(text, strlen(text), count));
    return text;
}

const char *hear_end(int fd)
{
    bool ended;
    const char *text = hear_until(fd, -1, &ended);
    assert_true(ended);
    return text;
}

bool is_hung_up(int fd)
{
    return hear_end(fd)[0] == '\0';
}

int count_of(const char *text, const char *word)
{
    int count = 0;
    for (; (text = strstr(text, word)) != NULL; text += strlen(word))
        count++;
    return count;
}

int status_of(const char *text)
{
    if (strncmp(text, "HTTP/1.1 ", 9) != 0)
        return 0;
    int status = (int)strtol(text + 9, NULL, 10);
    const char *mark = strstr(text, "\r\n" WR_HTTP_MARK);
    if (status >= 200 && (mark == NULL || mark > strstr(text, "\r\n\r\n")))
        fail_msg("a response without the mark of weir: %s", text);
    return status;
}
