/* SPDX-License-Identifier: MIT */
/* server_loop.c - runs a thread of the server: accepts connections, ticks, runs calls of other
 * threads, and stops. */
#include "serve/server/http_server_internal.h"

#include "base/address.h"
#include "base/alloc.h"
#include "base/error.h"
#include "http/loop/watchdog.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define ACCEPTS_AT_ONCE 16
#define FRESH_GRACE_MS 1000 /* grace period for connections that have sent nothing at the stop */

/* ---- accepting ---- */

static struct wr_span peer_text(const struct sockaddr_storage *from, char memory[WR_HTTP_PEER_MAX])
{
    struct wr_address address = {{[10] = 0xff, [11] = 0xff}};
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, memory, WR_HTTP_PEER_MAX);
    if (from->ss_family == AF_INET)
        memcpy(address.bytes + 12, &((const struct sockaddr_in *)from)->sin_addr, 4);
    else if (from->ss_family == AF_INET6)
        memcpy(address.bytes, &((const struct sockaddr_in6 *)from)->sin6_addr, 16);
    if (from->ss_family == AF_INET || from->ss_family == AF_INET6)
        wr_address_append(&buf, &address);
    else
        wr_buf_append_string(&buf, "unix:");
    return wr_buf_from(&buf, 0);
}

/* Returns the limit of one loop: the kernel spreads a listener's connections over the loops roughly
 * evenly. */
static uint32_t connections_max(const struct wr_http_server *server)
{
    uint32_t slice = server->options.connections_max / server->options.loops;
    return slice > 0 ? slice : 1;
}

static void admit_conn(struct wr_http_acceptor *acceptor, int fd, const struct sockaddr_storage *from)
{
    struct wr_http_loop *loop = acceptor->loop;
    char memory[WR_HTTP_PEER_MAX];
    wr_http_count(&loop->counts.accepted);
    if (!wr_http_listen_socket_admits(&loop->server->listen_sockets[acceptor->listener], fd)) {
        wr_http_count(&loop->counts.turned);
        (void)close(fd);
        return;
    }
    bool has_room = acceptor->connections < connections_max(loop->server) || wr_http_acceptor_evict_conn(acceptor);
    struct wr_http_conn *conn = wr_http_conn_open(acceptor, fd, peer_text(from, memory));
    if (conn != NULL && !has_room)
        wr_http_conn_reject(conn);
}

/* Pauses accepting until the next tick because descriptors ran out; libuv would report the waiting
 * connection without end. Closes one connection to free a descriptor. */
static void pause_accepting(struct wr_http_acceptor *acceptor)
{
    struct wr_list_link *lingering = acceptor->waits[WR_WAIT_LINGER].first;
    acceptor->is_paused = true;
    (void)uv_poll_stop(&acceptor->poll);
    if (lingering != NULL)
        wr_http_conn_close(WR_LINKED(lingering, struct wr_http_conn, link));
    else
        (void)wr_http_acceptor_evict_conn(acceptor);
}

/* Accepts up to `most` connections. Returns false if no more are waiting. */
static bool accept_some(struct wr_http_acceptor *acceptor, int most)
{
    struct wr_http_loop *loop = acceptor->loop;
    int listener = loop->server->listen_sockets[acceptor->listener].fd;
    for (int i = 0; i < most; i++) {
        struct sockaddr_storage from = {.ss_family = AF_UNSPEC};
        socklen_t bytes = sizeof from;
        int fd = accept4(listener, (struct sockaddr *)&from, &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
            admit_conn(acceptor, fd, &from);
        else if (i == 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
            /* Only for the first: a later accept4 allocates a descriptor before it finds that no
             * connection waits */
            pause_accepting(acceptor);
        if (fd < 0 && errno != ECONNABORTED && errno != EINTR)
            return false;
    }
    return true;
}

static void on_accept(uv_poll_t *poll, int status, int events)
{
    WR_DOING("accepting");
    struct wr_http_acceptor *acceptor = poll->data;
    (void)events;
    if (status == 0)
        (void)accept_some(acceptor, acceptor->loop->server->options.loops == 1 ? ACCEPTS_AT_ONCE : 1);
    wr_http_loop_settle(acceptor->loop);
}

/* ---- timeouts ---- */

/* Closes the connections whose wait exceeds the limit. Returns false if the time slice ended
 * first. */
static bool close_late(struct wr_http_acceptor *acceptor, enum wr_http_wait wait, int64_t limit_ms,
                       const struct wr_time_slice *slice)
{
    struct wr_list_link *link;
    int64_t now = wr_http_loop_ms(acceptor->loop);
    while ((link = acceptor->waits[wait].first) != NULL) {
        struct wr_http_conn *conn = WR_LINKED(link, struct wr_http_conn, link);
        if (now - conn->since < limit_ms)
            return true;
        if (!wr_time_slice_lasts(slice))
            return false;
        if (wait == WR_WAIT_HEAD || wait == WR_WAIT_BODY || wait == WR_WAIT_SEND)
            wr_http_count(&acceptor->loop->counts.late);
        /* no request has begun, or a response is partly sent */
        if (conn->inbox == NULL || wr_http_has_output(conn)) {
            wr_http_conn_close(conn);
            continue;
        }
        wr_http_conn_refuse(conn, 408, "the request did not arrive in time");
        wr_http_conn_settle(conn);
    }
    return true;
}

/* Closes late connections of all kinds. Returns false if the time slice ended first. */
static bool close_all_late(struct wr_http_loop *loop)
{
    struct wr_time_slice slice = wr_time_slice_begin(WR_TIME_SLICE_NS);
    bool is_done = true;
    for (size_t i = 0; i < loop->server->listen_socket_count; i++) {
        struct wr_http_acceptor *acceptor = &loop->acceptors[i];
        for (int wait = 0; wait < WR_WAIT_COUNT; wait++)
            if (wait != WR_WAIT_ANSWER)
                is_done &= close_late(acceptor, (enum wr_http_wait)wait, loop->server->limits_ms[wait], &slice);
        if (loop->is_stopping)
            is_done &= close_late(acceptor, WR_WAIT_HEAD, FRESH_GRACE_MS, &slice);
    }
    return is_done;
}

static void resume_accepting(struct wr_http_acceptor *acceptor)
{
    if (acceptor->is_paused && acceptor->is_open) {
        acceptor->is_paused = false;
        (void)uv_poll_start(&acceptor->poll, UV_READABLE, on_accept);
    }
}

static void note_lag(struct wr_http_loop *loop)
{
    int64_t now = (int64_t)uv_hrtime();
    int64_t late_ns = loop->ticked_at == 0 ? 0 : now - loop->ticked_at - loop->server->options.tick_ns;
    loop->ticked_at = now;
    atomic_store_explicit(&loop->counts.lag_ns, late_ns > 0 ? late_ns : 0, memory_order_relaxed);
}

static void on_http_tick(uv_timer_t *timer)
{
    WR_DOING("tick");
    struct wr_http_loop *loop = timer->data;
    struct wr_http_server *server = loop->server;
    note_lag(loop);
    wr_http_date_write(loop->date, weir_wall_now() / WEIR_SECOND);
    if (!close_all_late(loop))
        wr_http_loop_wake(loop);
    for (size_t i = 0; i < server->listen_socket_count; i++)
        resume_accepting(&loop->acceptors[i]);
    if (server->options.tick != NULL && !loop->is_cutting)
        server->options.tick(server->options.context, loop);
    wr_http_loop_settle(loop);
}

static void on_alarm(uv_poll_t *poll, int status, int events)
{
    WR_DOING("alarm");
    struct wr_http_loop *loop = poll->data;
    uint64_t times;
    (void)status, (void)events;
    (void)!read(loop->alarm_fd, &times, sizeof times);
    loop->alarm_at = 0;
    loop->server->options.alarm(loop->server->options.context, loop);
    wr_http_loop_settle(loop);
}

void wr_http_alarm(struct wr_http_loop *loop, int64_t at)
{
    if (at == loop->alarm_at || loop->alarm_fd < 0)
        return;
    const struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(at / WEIR_SECOND), .tv_nsec = (long)(at % WEIR_SECOND)}};
    loop->alarm_at = at;
    (void)timerfd_settime(loop->alarm_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static int open_alarm(struct wr_http_loop *loop)
{
    if (loop->server->options.alarm == NULL)
        return 0;
    loop->alarm_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (loop->alarm_fd < 0 || uv_poll_init(&loop->uv, &loop->alarm, loop->alarm_fd) != 0)
        return WEIR_E_SYSTEM;
    loop->alarm.data = loop;
    return 0;
}

/* ---- stop ---- */

static void close_acceptors(struct wr_http_loop *loop)
{
    for (size_t i = 0; i < loop->server->listen_socket_count; i++) {
        struct wr_http_acceptor *acceptor = &loop->acceptors[i];
        if (!acceptor->is_open)
            continue;
        acceptor->is_open = false;
        uv_close((uv_handle_t *)&acceptor->poll, NULL);
    }
}

/* Reads once more from each connection: a request may have been sent before the client could know
 * of the stop. Returns false if the time slice ended first. */
static bool read_last_requests(struct wr_http_acceptor *acceptor, enum wr_http_wait wait,
                               const struct wr_time_slice *slice)
{
    struct wr_list_link *link = acceptor->waits[wait].first, *next;
    for (; link != NULL; link = next) {
        struct wr_http_conn *conn = WR_LINKED(link, struct wr_http_conn, link);
        next = link->next;
        if (conn->was_read_last)
            continue;
        if (!wr_time_slice_lasts(slice))
            return false;
        conn->was_read_last = true;
        if (!wr_http_read(conn))
            conn->is_broken = true;
        wr_http_conn_settle(conn);
        /* settling `conn` closed the next connection to make space */
        if (next != NULL && next->list != &acceptor->waits[wait])
            next = acceptor->waits[wait].first;
    }
    return true;
}

static void end_streams(struct wr_http_acceptor *acceptor)
{
    static const enum wr_http_wait waits[] = {WR_WAIT_ANSWER, WR_WAIT_SEND};
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        struct wr_list_link *link = acceptor->waits[waits[i]].first, *next;
        for (; link != NULL; link = next) {
            struct wr_http_conn *conn = WR_LINKED(link, struct wr_http_conn, link);
            next = link->next;
            if (conn->is_stream && conn->has_exchange)
                wr_http_conn_close(conn);
        }
    }
}

/* Accepts the connections that were made before the stop; they are still served. Returns false if
 * the time slice ended first. */
static bool accept_last(struct wr_http_loop *loop, const struct wr_time_slice *slice)
{
    for (size_t i = 0; i < loop->server->listen_socket_count; i++)
        while (loop->last_accepts < loop->server->options.connections_max && accept_some(&loop->acceptors[i], 1)) {
            loop->last_accepts++;
            if (!wr_time_slice_lasts(slice))
                return false;
        }
    return true;
}

static void begin_stop(struct wr_http_loop *loop)
{
    WR_DOING("stopping");
    loop->is_stopping = true;
    close_acceptors(loop);
    for (size_t i = 0; i < loop->server->listen_socket_count; i++)
        end_streams(&loop->acceptors[i]);
}

/* Begins to stop, then reads from connections until each was read once. Returns false while some
 * remain. */
static bool stop_gently(struct wr_http_loop *loop)
{
    struct wr_time_slice slice = wr_time_slice_begin(WR_TIME_SLICE_NS);
    if (!loop->is_stopping && !accept_last(loop, &slice))
        return false;
    if (!loop->is_stopping)
        begin_stop(loop);
    for (size_t i = 0; i < loop->server->listen_socket_count; i++)
        if (!read_last_requests(&loop->acceptors[i], WR_WAIT_IDLE, &slice) ||
            !read_last_requests(&loop->acceptors[i], WR_WAIT_HEAD, &slice))
            return false;
    return true;
}

static void abort_each(struct wr_list *list, bool is_abandoned)
{
    while (list->first != NULL) {
        struct wr_http_conn *conn = WR_LINKED(list->first, struct wr_http_conn, link);
        if (!is_abandoned && (conn->has_exchange || conn->inbox != NULL))
            wr_http_conn_refuse(conn, 503, "the server is stopping; retry later");
        wr_http_conn_close(conn);
    }
}

static void abort_connections(struct wr_http_loop *loop)
{
    wr_watchdog_excuse(WR_WATCHDOG_STOPPING);
    loop->is_stopping = loop->is_cutting = true;
    close_acceptors(loop);
    for (size_t i = 0; i < loop->server->listen_socket_count; i++)
        for (int wait = 0; wait < WR_WAIT_COUNT; wait++)
            abort_each(&loop->acceptors[i].waits[wait], loop->server->is_abandoned);
}

static void close_server_handles(struct wr_http_loop *loop)
{
    (void)pthread_mutex_lock(&loop->calls_lock);
    loop->takes_calls = false;
    (void)pthread_mutex_unlock(&loop->calls_lock);
    wr_round_close(&loop->round, NULL, NULL);
    uv_close((uv_handle_t *)&loop->timer, NULL);
    wr_wakeup_close(&loop->wakeup, NULL);
    if (loop->alarm_fd >= 0)
        uv_close((uv_handle_t *)&loop->alarm, NULL);
}

void wr_http_loop_settle(struct wr_http_loop *loop)
{
    while (loop->ready.first != NULL) {
        struct wr_http_conn *conn = WR_LINKED(loop->ready.first, struct wr_http_conn, ready);
        wr_list_remove(&conn->ready);
        wr_http_conn_settle(conn);
    }
    if (loop->is_stopping && loop->connections == 0 && !wr_wakeup_is_closing(&loop->wakeup))
        close_server_handles(loop);
}

/* ---- calls ---- */

/* Appends the posted calls to those left over from the last time slice. */
static void take_posted_calls(struct wr_http_loop *loop)
{
    (void)pthread_mutex_lock(&loop->calls_lock);
    if (loop->calls != NULL) {
        *loop->taken_end = loop->calls;
        loop->taken_end = loop->calls_end;
        loop->calls = NULL;
        loop->calls_end = &loop->calls;
    }
    (void)pthread_mutex_unlock(&loop->calls_lock);
}

bool wr_http_loop_run_posted(struct wr_http_loop *loop)
{
    WR_DOING("notes");
    struct wr_time_slice slice = wr_time_slice_begin(WR_TIME_SLICE_NS);
    take_posted_calls(loop);
    while (loop->taken != NULL && wr_time_slice_lasts(&slice)) {
        struct wr_http_posted_call *call = loop->taken;
        loop->taken = call->next; /* the call may free itself when it runs */
        if (loop->taken == NULL)
            loop->taken_end = &loop->taken;
        call->run(call);
    }
    return loop->taken == NULL;
}

void wr_http_post(struct wr_http_loop *loop, struct wr_http_posted_call *call)
{
    (void)pthread_mutex_lock(&loop->calls_lock);
    call->next = NULL;
    *loop->calls_end = call;
    loop->calls_end = &call->next;
    if (loop->takes_calls)
        wr_wakeup_send(&loop->wakeup);
    (void)pthread_mutex_unlock(&loop->calls_lock);
}

void wr_http_loop_wake(struct wr_http_loop *loop)
{
    (void)pthread_mutex_lock(&loop->calls_lock);
    if (loop->takes_calls)
        wr_wakeup_send(&loop->wakeup);
    (void)pthread_mutex_unlock(&loop->calls_lock);
}

static void on_server_wakeup(struct wr_wakeup *wakeup)
{
    struct wr_http_loop *loop = wakeup->uv.data;
    loop->is_late = !wr_http_loop_run_posted(loop);
    /* finish answered requests before the thread parks: they must not be handed over */
    wr_http_loop_settle(loop);
    if (!loop->is_late)
        wr_http_loop_park(loop);
    /* read the phase after parking, during which it may change */
    int phase = atomic_load(&loop->server->phase);
    if (phase >= WR_HTTP_ABORTING)
        abort_connections(loop);
    else if (phase >= WR_HTTP_STOPPING)
        loop->is_late |= !stop_gently(loop);
    loop->is_late |= !close_all_late(loop);
    wr_http_loop_settle(loop);
    if (loop->is_late)
        wr_http_loop_wake(loop);
}

uint32_t wr_http_loop_index(const struct wr_http_loop *loop)
{
    return loop->index;
}

struct wr_http_loop *wr_http_server_loop(const struct wr_http_server *server, uint32_t index)
{
    return server->loops[index];
}

/* ---- start ---- */

static int open_acceptors(struct wr_http_loop *loop)
{
    for (uint32_t i = 0; i < loop->server->listen_socket_count; i++) {
        struct wr_http_acceptor *acceptor = &loop->acceptors[i];
        acceptor->loop = loop;
        acceptor->listener = i;
        if (uv_poll_init(&loop->uv, &acceptor->poll, loop->server->listen_sockets[i].fd) != 0)
            return WEIR_E_SYSTEM;
        acceptor->poll.data = acceptor;
        acceptor->is_open = true;
    }
    return 0;
}

int wr_http_loop_new(struct wr_http_server *server, uint32_t index)
{
    struct wr_http_loop *loop = wr_alloc(server->allocator, sizeof *loop, _Alignof(struct wr_http_loop));
    if (loop == NULL)
        return WEIR_E_NOMEM;
    server->loops[index] = loop;
    loop->server = server;
    loop->index = index;
    loop->calls_end = &loop->calls;
    loop->taken_end = &loop->taken;
    loop->alarm_fd = -1;
    wr_buf_init(&loop->out, server->allocator, WR_HTTP_OUT_MAX);
    wr_buf_init(&loop->late, server->allocator, WR_HTTP_OUT_MAX);
    wr_http_date_write(loop->date, weir_wall_now() / WEIR_SECOND);
    (void)pthread_mutex_init(&loop->calls_lock, NULL);
    if (uv_loop_init(&loop->uv) != 0)
        return WEIR_E_SYSTEM;
    loop->has_uv = true;
    int error = wr_wakeup_init(&loop->wakeup, &loop->uv, on_server_wakeup);
    if (error != 0)
        return error;
    (void)uv_timer_init(&loop->uv, &loop->timer);
    wr_round_open(&loop->round, &loop->uv);
    loop->wakeup.uv.data = loop->timer.data = loop;
    loop->takes_calls = true;
    error = open_alarm(loop);
    return error != 0 ? error : open_acceptors(loop);
}

static void *run_server_loop(void *context)
{
    struct wr_http_loop *loop = context;
    uint64_t tick_ms = (uint64_t)(loop->server->options.tick_ns / WEIR_MILLISECOND);
    uv_update_time(&loop->uv);
    for (size_t i = 0; i < loop->server->listen_socket_count; i++)
        (void)uv_poll_start(&loop->acceptors[i].poll, UV_READABLE, on_accept);
    (void)uv_timer_start(&loop->timer, on_http_tick, tick_ms, tick_ms);
    if (loop->alarm_fd >= 0)
        (void)uv_poll_start(&loop->alarm, UV_READABLE, on_alarm);
    wr_watchdog_begin("the loop of a server");
    wr_http_loop_settle(loop); /* settles connections that were adopted before the start */
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
    wr_watchdog_end();
    (void)sem_post(&loop->server->ended);
    return NULL;
}

int wr_http_loop_start(struct wr_http_loop *loop)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    loop->has_thread = pthread_create(&loop->thread, NULL, run_server_loop, loop) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (loop->has_thread)
        return 0;
    wr_error_set("cannot start a thread for the server");
    return WEIR_E_SYSTEM;
}

static void close_uv_handle(uv_handle_t *handle, void *unused)
{
    (void)unused;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

void wr_http_loop_free(struct wr_http_loop *loop)
{
    if (loop->has_uv) {
        abort_connections(loop); /* closes the connections of a loop that never ran */
        uv_walk(&loop->uv, close_uv_handle, NULL);
        (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
        (void)uv_loop_close(&loop->uv);
    }
    if (loop->alarm_fd >= 0)
        (void)close(loop->alarm_fd);
    while (!wr_http_loop_run_posted(loop))
        continue;
    wr_buf_release(&loop->out);
    wr_buf_release(&loop->late);
    (void)pthread_mutex_destroy(&loop->calls_lock);
    wr_free(loop->server->allocator, loop, sizeof *loop, _Alignof(struct wr_http_loop));
}
