/* SPDX-License-Identifier: MIT */
/* origin.c - a well-behaved web server for tests. */
#include "lib/origin.h"

#include "lib/test.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define REQUESTS_MAX 16384
#define CONNECTIONS_MAX 4096

struct origin {
    origin_answer *answer;
    void *context;
    int listener, port;
    pthread_t acceptor;
    pthread_mutex_t lock;
    struct origin_request *log;
    int requests;
    int fds[CONNECTIONS_MAX];
    pthread_t threads[CONNECTIONS_MAX];
    int connections, closed;
    atomic_bool ends;
};

struct visit {
    struct origin *origin;
    int fd;
};

static int64_t now(void)
{
    return weir_clock_now(weir_clock_monotonic());
}

static void sleep_for(const struct origin *origin, int64_t ns)
{
    for (int64_t until = now() + ns; now() < until && !origin->ends;) {
        int64_t left_ns = until - now();
        int64_t most_ns = left_ns < 10 * WEIR_MILLISECOND ? left_ns : 10 * WEIR_MILLISECOND;
        struct timespec nap = {.tv_nsec = most_ns > 0 ? (long)most_ns : 0};
        (void)nanosleep(&nap, NULL);
    }
}

/* Returns how long ago the kernel received the last bytes read, ns. */
static int64_t age_of(struct msghdr *message)
{
    struct timespec stamp, real;
    struct cmsghdr *control = CMSG_FIRSTHDR(message);
    if (control == NULL || control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_TIMESTAMPNS)
        return 0;
    memcpy(&stamp, CMSG_DATA(control), sizeof stamp);
    clock_gettime(CLOCK_REALTIME, &real);
    int64_t age_ns = (real.tv_sec - stamp.tv_sec) * WEIR_SECOND + real.tv_nsec - stamp.tv_nsec;
    return age_ns > 0 ? age_ns : 0;
}

/* Waits for the first byte and does not consume it. Returns the time at which the kernel received
 * it, because this thread may read it late. Returns 0 at the end of the connection. */
static int64_t await_request(int fd)
{
    char byte, control[256];
    struct iovec piece = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    return recvmsg(fd, &message, MSG_PEEK) == 1 ? now() - age_of(&message) : 0;
}

/* Reads a piece of a head that has `length` bytes so far, and nothing after its end. Returns the
 * bytes read, or 0 at the end of the connection. */
static size_t read_piece(int fd, struct origin_request *request, size_t length)
{
    size_t before = length < 3 ? length : 3, room = sizeof request->text - 1 - length;
    ssize_t got = recv(fd, request->text + length, room, MSG_PEEK);
    if (got <= 0)
        return 0;
    const char *from = request->text + length - before;
    const char *end = memmem(from, (size_t)got + before, "\r\n\r\n", 4);
    size_t wanted = end != NULL ? (size_t)(end + 4 - request->text) - length : (size_t)got;
    memset(request->text + length, 0, room);
    got = recv(fd, request->text + length, wanted, 0);
    return got > 0 ? (size_t)got : 0;
}

/* Reads a head, and a body of its Content-Length. Returns false at the end of the connection. */
static bool read_request(int fd, struct origin_request *ret_request)
{
    size_t length = 0;
    memset(ret_request, 0, sizeof *ret_request);
    ret_request->at = await_request(fd);
    while (length < 4 || memcmp(ret_request->text + length - 4, "\r\n\r\n", 4) != 0) {
        size_t got = length + 1 < sizeof ret_request->text ? read_piece(fd, ret_request, length) : 0;
        if (got == 0)
            return false;
        length += got;
    }
    const char *announced = strcasestr(ret_request->text, "\r\nContent-Length:");
    for (long left = announced != NULL ? strtol(announced + 17, NULL, 10) : 0; left > 0; left--) {
        char byte;
        if (recv(fd, &byte, 1, 0) != 1)
            return false;
    }
    return sscanf(ret_request->text, "%15s %1023s", ret_request->method, ret_request->path) == 2;
}

static struct origin_reply log_request(struct origin *origin, struct origin_request *request)
{
    pthread_mutex_lock(&origin->lock);
    request->number = origin->requests;
    assert_true(origin->requests < REQUESTS_MAX);
    origin->log[origin->requests++] = *request;
    struct origin_reply reply = origin->answer(origin->context, request);
    pthread_mutex_unlock(&origin->lock);
    return reply;
}

static bool send_all(int fd, const char *text, size_t bytes)
{
    while (bytes > 0) {
        ssize_t sent = send(fd, text, bytes, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        text += sent;
        bytes -= (size_t)sent;
    }
    return true;
}

static bool send_reply(struct origin *origin, int fd, const struct origin_reply *reply, bool is_head)
{
    char head[4096];
    const char *body = reply->body != NULL ? reply->body : "hello\n";
    if (reply->raw != NULL)
        return send_all(fd, reply->raw, strlen(reply->raw)) && false;
    int bytes =
        snprintf(head, sizeof head, "HTTP/1.1 %d Status\r\n%sContent-Length: %zu\r\n\r\n",
                 reply->status != 0 ? reply->status : 200, reply->fields != NULL ? reply->fields : "", strlen(body));
    bool has_body = !is_head && reply->status != 304;
    if (!send_all(fd, head, (size_t)bytes))
        return false;
    sleep_for(origin, reply->stall_ns);
    return (!has_body || send_all(fd, body, strlen(body))) && !reply->closes;
}

static void stamp(struct origin *origin, int64_t *place)
{
    pthread_mutex_lock(&origin->lock);
    *place = now();
    pthread_mutex_unlock(&origin->lock);
}

static void *serve(void *context)
{
    struct visit visit = *(struct visit *)context;
    struct origin_request request;
    bool goes_on = true;
    free(context);
    while (goes_on && read_request(visit.fd, &request)) {
        struct origin_reply reply = log_request(visit.origin, &request);
        sleep_for(visit.origin, reply.delay_ns);
        while (reply.may_go != NULL && !atomic_load(reply.may_go) && !visit.origin->ends)
            sleep_for(visit.origin, WEIR_MILLISECOND);
        stamp(visit.origin, &visit.origin->log[request.number].done_at);
        goes_on = send_reply(visit.origin, visit.fd, &reply, strcmp(request.method, "HEAD") == 0);
        stamp(visit.origin, &visit.origin->log[request.number].told_at);
    }
    pthread_mutex_lock(&visit.origin->lock);
    visit.origin->closed++;
    pthread_mutex_unlock(&visit.origin->lock);
    shutdown(visit.fd, SHUT_RDWR);
    return NULL;
}

static void *accept_all(void *context)
{
    struct origin *origin = context;
    int fd, one = 1;
    while ((fd = accept(origin->listener, NULL, NULL)) >= 0) {
        struct visit *visit = malloc(sizeof *visit);
        *visit = (struct visit){origin, fd};
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        pthread_mutex_lock(&origin->lock);
        assert_true(origin->connections < CONNECTIONS_MAX);
        origin->fds[origin->connections] = fd;
        assert_int_equal(pthread_create(&origin->threads[origin->connections++], NULL, serve, visit), 0);
        pthread_mutex_unlock(&origin->lock);
    }
    return NULL;
}

struct origin *origin_new(origin_answer *answer, void *context, const char *address)
{
    struct origin *origin = calloc(1, sizeof *origin);
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t bytes = sizeof at;
    assert_int_equal(inet_pton(AF_INET, address != NULL ? address : "127.0.0.1", &at.sin_addr), 1);
    origin->answer = answer;
    origin->context = context;
    origin->log = calloc(REQUESTS_MAX, sizeof *origin->log);
    pthread_mutex_init(&origin->lock, NULL);
    origin->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    /* Connections inherit the option, so bytes that arrive before accept() are stamped, too. */
    const int one = 1;
    assert_int_equal(setsockopt(origin->listener, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one), 0);
    assert_int_equal(bind(origin->listener, (struct sockaddr *)&at, bytes), 0);
    assert_int_equal(listen(origin->listener, 1024), 0);
    assert_int_equal(getsockname(origin->listener, (struct sockaddr *)&at, &bytes), 0);
    origin->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&origin->acceptor, NULL, accept_all, origin), 0);
    return origin;
}

int origin_port(const struct origin *origin)
{
    return origin->port;
}

int origin_requests(struct origin *origin)
{
    pthread_mutex_lock(&origin->lock);
    int requests = origin->requests;
    pthread_mutex_unlock(&origin->lock);
    return requests;
}

struct origin_request origin_request(struct origin *origin, int n)
{
    assert_true(n < origin_requests(origin));
    pthread_mutex_lock(&origin->lock);
    struct origin_request request = origin->log[n];
    pthread_mutex_unlock(&origin->lock);
    return request;
}

int origin_asked(struct origin *origin, const char *path)
{
    int count = 0;
    pthread_mutex_lock(&origin->lock);
    for (int i = 0; i < origin->requests; i++)
        count += strcmp(origin->log[i].path, path) == 0;
    pthread_mutex_unlock(&origin->lock);
    return count;
}

int origin_connections(struct origin *origin)
{
    pthread_mutex_lock(&origin->lock);
    int connections = origin->connections;
    pthread_mutex_unlock(&origin->lock);
    return connections;
}

int origin_open_connections(struct origin *origin)
{
    pthread_mutex_lock(&origin->lock);
    int open = origin->connections - origin->closed;
    pthread_mutex_unlock(&origin->lock);
    return open;
}

static int by_arrival(const void *a, const void *b)
{
    int64_t x = ((const struct origin_request *)a)->at, y = ((const struct origin_request *)b)->at;
    return (x > y) - (x < y);
}

/* Returns a copy of the log in order of arrival; for free(). */
static struct origin_request *sorted(struct origin *origin, int *ret_count)
{
    pthread_mutex_lock(&origin->lock);
    *ret_count = origin->requests;
    struct origin_request *log = calloc((size_t)origin->requests + 1, sizeof *log);
    memcpy(log, origin->log, (size_t)origin->requests * sizeof *log);
    pthread_mutex_unlock(&origin->lock);
    qsort(log, (size_t)*ret_count, sizeof *log, by_arrival);
    return log;
}

int64_t origin_least_gap(struct origin *origin)
{
    int count;
    int64_t least_ns = INT64_MAX;
    struct origin_request *log = sorted(origin, &count);
    for (int i = 1; i < count; i++)
        least_ns = log[i].at - log[i - 1].at < least_ns ? log[i].at - log[i - 1].at : least_ns;
    free(log);
    return least_ns;
}

int origin_most_at_once(struct origin *origin)
{
    int count, most = 0;
    struct origin_request *log = sorted(origin, &count);
    for (int i = 0; i < count; i++) {
        int at_once = 0;
        for (int j = 0; j <= i; j++)
            at_once += log[j].done_at == 0 || log[j].done_at > log[i].at;
        most = at_once > most ? at_once : most;
    }
    free(log);
    return most;
}

void origin_free(struct origin *origin)
{
    origin->ends = true;
    shutdown(origin->listener, SHUT_RDWR);
    pthread_join(origin->acceptor, NULL);
    for (int i = 0; i < origin->connections; i++) {
        shutdown(origin->fds[i], SHUT_RDWR);
        pthread_join(origin->threads[i], NULL);
        close(origin->fds[i]);
    }
    close(origin->listener);
    pthread_mutex_destroy(&origin->lock);
    free(origin->log);
    free(origin);
}
