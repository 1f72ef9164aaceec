/* SPDX-License-Identifier: MIT */
/* http_server.c - creates, starts, stops and frees a server, and sums its statistics. */
#include "serve/server/http_server_internal.h"

#include "base/alloc.h"
#include "base/error.h"
#include "limiter/memory/memory.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#define LINGER_NS (2 * WEIR_SECOND)
#define SPARE_DESCRIPTORS 64 /* descriptors left for all other uses */

void wr_http_server_options_init(struct wr_http_server_options *ret_options)
{
    *ret_options = (struct wr_http_server_options){
        .tick_ns = 250 * WEIR_MILLISECOND,
        .loops = 1,
        .connections_max = 16384,
        .body_max = WR_REQUEST_BODY_MAX,
        .stream_max = (size_t)256 << 10,
        .buffered_max = (size_t)64 << 20,
        .head_ns = 10 * WEIR_SECOND,
        .body_ns = 30 * WEIR_SECOND,
        .idle_ns = 90 * WEIR_SECOND,
        .send_ns = 30 * WEIR_SECOND,
    };
}

/* ---- start ---- */

static int check_server_options(const struct wr_http_server_options *options)
{
    if (options->listens == NULL || options->listen_count == 0 || options->listen_count > WR_HTTP_LISTENS_MAX)
        return wr_invalid("a server listens at 1 ... 16 places");
    if (options->loops == 0 || options->loops > WR_HTTP_LOOPS_MAX)
        return wr_invalid("a server has 1 ... 64 loops");
    if (options->answer == NULL || options->connections_max == 0 || options->body_max > WR_REQUEST_BODY_MAX)
        return wr_invalid("a server needs a request handler, connections, and bodies of at most 1 MiB");
    const int64_t times[] = {options->head_ns, options->body_ns, options->idle_ns, options->send_ns, options->tick_ns};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        if (times[i] < WEIR_MILLISECOND || times[i] > WEIR_DAY)
            return wr_invalid("the times of a server are 1ms ... 1d");
    return 0;
}

/* Divides memory and descriptors evenly among the listeners, so that clients of one listener cannot
 * exhaust those of another. */
static void divide_limits(struct wr_http_server *server)
{
    struct wr_http_server_options *options = &server->options;
    struct rlimit files;
    server->buffered_max = options->buffered_max / options->listen_count;
    server->limits_ms[WR_WAIT_HEAD] = options->head_ns / WEIR_MILLISECOND;
    server->limits_ms[WR_WAIT_IDLE] = options->idle_ns / WEIR_MILLISECOND;
    server->limits_ms[WR_WAIT_BODY] = options->body_ns / WEIR_MILLISECOND;
    server->limits_ms[WR_WAIT_SEND] = options->send_ns / WEIR_MILLISECOND;
    server->limits_ms[WR_WAIT_ANSWER] = INT64_MAX;
    server->limits_ms[WR_WAIT_LINGER] = LINGER_NS / WEIR_MILLISECOND;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY)
        return;
    rlim_t most = files.rlim_cur > 2 * SPARE_DESCRIPTORS ? files.rlim_cur - SPARE_DESCRIPTORS : SPARE_DESCRIPTORS;
    rlim_t lingering = (rlim_t)WR_HTTP_LINGER_MAX * options->loops;
    most /= options->listen_count;
    most = most > 2 * lingering ? most - lingering : most / 2;
    if (options->connections_max > most)
        options->connections_max = (uint32_t)most;
}

static int open_sockets_and_loops(struct wr_http_server *server)
{
    const struct wr_http_server_options *options = &server->options;
    int error = 0;
    for (size_t i = 0; i < options->listen_count && error == 0; i++) {
        error = wr_http_listen_socket_open(&options->listens[i], &server->listen_sockets[i]);
        server->listen_socket_count += error == 0;
    }
    for (uint32_t i = 0; i < options->loops && error == 0; i++)
        error = wr_http_loop_new(server, i);
    return error;
}

/* After a failed start, descriptors and socket files that the caller supplied remain the
 * caller's. */
static void forget_given_sockets(struct wr_http_server *server)
{
    for (size_t i = 0; i < server->listen_socket_count; i++)
        if (server->options.listens[i].has_fd) {
            wr_http_listen_socket_forget_file(&server->listen_sockets[i]);
            server->listen_sockets[i].fd = -1;
        }
}

int wr_http_server_new(const struct wr_http_server_options *options, struct wr_http_server **ret_server)
{
    int error = check_server_options(options);
    if (error != 0)
        return error;
    const weir_allocator *allocator = wr_allocator_or_system(options->allocator);
    struct wr_http_server *server = wr_alloc(allocator, sizeof *server, _Alignof(struct wr_http_server));
    if (server == NULL)
        return WEIR_E_NOMEM;
    server->options = *options;
    server->allocator = allocator;
    (void)pthread_mutex_init(&server->freeze_lock, NULL);
    (void)pthread_cond_init(&server->freeze_changed, NULL);
    (void)sem_init(&server->ended, 0, 0);
    divide_limits(server);
    error = open_sockets_and_loops(server);
    if (error == 0) {
        *ret_server = server;
        return 0;
    }
    forget_given_sockets(server);
    wr_http_server_free(server);
    return error;
}

int wr_http_server_start(struct wr_http_server *server)
{
    int error = 0;
    atomic_store(&server->phase, WR_HTTP_RUNNING);
    for (uint32_t i = 0; i < server->options.loops && error == 0; i++)
        error = wr_http_loop_start(server->loops[i]);
    if (error != 0)
        wr_http_server_stop(server, 0);
    return error;
}

/* ---- stop ---- */

static void set_phase(struct wr_http_server *server, enum wr_http_phase phase)
{
    atomic_store(&server->phase, phase);
    for (uint32_t i = 0; i < server->options.loops; i++)
        if (server->loops[i] != NULL)
            wr_http_loop_wake(server->loops[i]);
}

/* Waits until all loops have ended. Returns false if `until` passes first. */
static bool await_loops(struct wr_http_server *server, const struct timespec *until)
{
    for (uint32_t i = 0; i < server->options.loops; i++)
        while (server->loops[i]->has_thread && sem_clockwait(&server->ended, CLOCK_MONOTONIC, until) != 0)
            if (errno != EINTR)
                return false;
    return true;
}

void wr_http_server_stop(struct wr_http_server *server, int64_t grace_ns)
{
    int64_t until_ns = (int64_t)uv_hrtime() + grace_ns;
    struct timespec until = {.tv_sec = (time_t)(until_ns / WEIR_SECOND), .tv_nsec = (long)(until_ns % WEIR_SECOND)};
    int before = atomic_load(&server->phase);
    if (before == WR_HTTP_NEW || before == WR_HTTP_ENDED)
        return;
    set_phase(server, grace_ns > 0 && before == WR_HTTP_RUNNING ? WR_HTTP_STOPPING : WR_HTTP_ABORTING);
    if (!await_loops(server, &until))
        set_phase(server, WR_HTTP_ABORTING);
    for (uint32_t i = 0; i < server->options.loops; i++) {
        if (server->loops[i]->has_thread)
            (void)pthread_join(server->loops[i]->thread, NULL);
        server->loops[i]->has_thread = false;
        wr_http_loop_run_posted(server->loops[i]);
    }
    set_phase(server, WR_HTTP_ENDED);
}

void wr_http_server_free(struct wr_http_server *server)
{
    if (server == NULL)
        return;
    wr_http_server_stop(server, 0);
    for (uint32_t i = 0; i < server->options.loops; i++)
        if (server->loops[i] != NULL)
            wr_http_loop_free(server->loops[i]);
    for (size_t i = 0; i < server->listen_socket_count; i++)
        wr_http_listen_socket_close(&server->listen_sockets[i]);
    (void)pthread_mutex_destroy(&server->freeze_lock);
    (void)pthread_cond_destroy(&server->freeze_changed);
    (void)sem_destroy(&server->ended);
    wr_free(server->allocator, server, sizeof *server, _Alignof(struct wr_http_server));
}

/* ---- statistics ---- */

uint16_t wr_http_server_port(const struct wr_http_server *server, size_t index)
{
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    socklen_t bytes = sizeof address;
    if (getsockname(server->listen_sockets[index].fd, (struct sockaddr *)&address, &bytes) != 0)
        return 0;
    if (address.ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)&address)->sin_port);
    return address.ss_family == AF_INET6 ? ntohs(((const struct sockaddr_in6 *)&address)->sin6_port) : 0;
}

void wr_http_server_stats(const struct wr_http_server *server, struct wr_http_server_stats *ret_stats)
{
    struct wr_http_server_stats sum = {0};
    for (size_t i = 0; i < server->listen_socket_count; i++)
        sum.buffered_bytes += atomic_load(&server->buffered_bytes[i]);
    for (uint32_t i = 0; i < server->options.loops; i++) {
        const struct wr_http_counts *counts = &server->loops[i]->counts;
        sum.accepted += counts->accepted;
        sum.requests += counts->requests;
        sum.refused += counts->refused;
        sum.foreign += counts->foreign;
        sum.late += counts->late;
        sum.turned += counts->turned;
        sum.connections += counts->connections;
        sum.streams += counts->streams;
        for (int k = 0; k < 6; k++)
            sum.answered[k] += counts->answered[k];
        sum.lag_ns = counts->lag_ns > sum.lag_ns ? counts->lag_ns : sum.lag_ns;
    }
    *ret_stats = sum;
}
