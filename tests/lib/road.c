/* SPDX-License-Identifier: MIT */
/* road.c - a proxy that delays and loses bytes, like a bad network. */
#include "lib/road.h"

#include "base/rng.h"
#include "lib/test.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weir/time.h>

#define CONNECTIONS_MAX 1024
#define PIECE_BYTES 16384
#define LATE_MAX 5 /* times at most that one piece is lost */

struct trip {
    struct road *road;
    int near, far; /* sockets to the client and to the server */
    struct wr_rng rng;
    bool is_swallowed;
};

struct road {
    struct road_options options;
    int listener, port, to_port;
    pthread_t acceptor;
    pthread_t threads[CONNECTIONS_MAX];
    struct trip trips[CONNECTIONS_MAX];
    int connections;
    atomic_int swallowed;
    atomic_bool ends;
};

static int64_t now(void)
{
    return weir_clock_now(weir_clock_monotonic());
}

static void sleep_for(const struct road *road, int64_t ns)
{
    for (int64_t until = now() + ns; now() < until && !road->ends;) {
        int64_t left_ns = until - now();
        struct timespec nap = {0, left_ns < 10000000 ? (left_ns > 0 ? (long)left_ns : 0) : 10000000};
        (void)nanosleep(&nap, NULL);
    }
}

/* Returns the delay of the next piece, ns. */
static int64_t delay_of(struct trip *trip)
{
    const struct road_options *options = &trip->road->options;
    int64_t delay_ns = options->latency_ns, late_ns = options->retransmit_ns;
    for (int i = 0; i < LATE_MAX && wr_rng_unit(&trip->rng) < options->lost; i++, late_ns *= 2)
        delay_ns += late_ns;
    return delay_ns;
}

/* Moves a piece from one socket to the other. Returns false at the end of either connection. */
static bool carry(struct trip *trip, int from, int to)
{
    char piece[PIECE_BYTES];
    ssize_t bytes = recv(from, piece, sizeof piece, 0);
    if (bytes <= 0)
        return false;
    /* A connection has about three pieces, so each is the first one swallowed with a third of the
     * chance. */
    if (!trip->is_swallowed && wr_rng_unit(&trip->rng) < trip->road->options.swallowed / 3) {
        trip->is_swallowed = true;
        atomic_fetch_add(&trip->road->swallowed, 1);
    }
    if (trip->is_swallowed)
        return true;
    sleep_for(trip->road, delay_of(trip));
    for (ssize_t at = 0; at < bytes;) {
        ssize_t sent = send(to, piece + at, (size_t)(bytes - at), MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        at += sent;
    }
    return true;
}

static void *travel(void *context)
{
    struct trip *trip = context;
    bool goes_on = true;
    sleep_for(trip->road, delay_of(trip)); /* the delay of the connect */
    while (goes_on && !trip->road->ends) {
        struct pollfd ends[] = {{.fd = trip->near, .events = POLLIN}, {.fd = trip->far, .events = POLLIN}};
        if (poll(ends, 2, 50) <= 0)
            continue;
        if (ends[0].revents != 0)
            goes_on = carry(trip, trip->near, trip->far);
        if (goes_on && ends[1].revents != 0)
            goes_on = carry(trip, trip->far, trip->near) || trip->is_swallowed;
    }
    (void)shutdown(trip->near, SHUT_RDWR);
    (void)shutdown(trip->far, SHUT_RDWR);
    return NULL;
}

static int connect_to(int port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

static void *accept_all(void *context)
{
    struct road *road = context;
    int fd;
    while ((fd = accept(road->listener, NULL, NULL)) >= 0) {
        assert_true(road->connections < CONNECTIONS_MAX);
        struct trip *trip = &road->trips[road->connections];
        *trip = (struct trip){.road = road, .near = fd, .far = connect_to(road->to_port)};
        wr_rng_init(&trip->rng, road->options.seed * 1000 + (uint64_t)road->connections);
        assert_int_equal(pthread_create(&road->threads[road->connections++], NULL, travel, trip), 0);
    }
    return NULL;
}

struct road *road_new(int to_port, const struct road_options *options)
{
    struct road *road = calloc(1, sizeof *road);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    road->options = *options;
    if (road->options.retransmit_ns == 0)
        road->options.retransmit_ns = 10 * options->latency_ns;
    if (road->options.seed == 0)
        road->options.seed = 1;
    road->to_port = to_port;
    road->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(road->listener, (struct sockaddr *)&at, bytes), 0);
    assert_int_equal(listen(road->listener, 128), 0);
    assert_int_equal(getsockname(road->listener, (struct sockaddr *)&at, &bytes), 0);
    road->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&road->acceptor, NULL, accept_all, road), 0);
    return road;
}

int road_port(const struct road *road)
{
    return road->port;
}

int road_swallowed(struct road *road)
{
    return road->swallowed;
}

void road_free(struct road *road)
{
    road->ends = true;
    (void)shutdown(road->listener, SHUT_RDWR);
    (void)pthread_join(road->acceptor, NULL);
    for (int i = 0; i < road->connections; i++) {
        (void)pthread_join(road->threads[i], NULL);
        (void)close(road->trips[i].near);
        (void)close(road->trips[i].far);
    }
    (void)close(road->listener);
    free(road);
}
