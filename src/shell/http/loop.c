/* SPDX-License-Identifier: MIT */
/* loop.c - runs a thread of the server: accepts connections, ticks, runs notes of other threads,
 * and stops. */
#include "shell/http/inside.h"

#include "base/address.h"
#include "base/alloc.h"
#include "base/error.h"
#include "shell/loop/away.h"

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
static uint32_t connections_max(const struct wr_http *server)
{
    uint32_t share = server->options.connections_max / server->options.loops;
    return share > 0 ? share : 1;
}

static void let_in(struct wr_http_gate *gate, int fd, const struct sockaddr_storage *from)
{
    struct wr_http_loop *loop = gate->loop;
    char memory[WR_HTTP_PEER_MAX];
    wr_http_count(&loop->counts.accepted);
    if (!wr_http_place_admits(&loop->server->places[gate->listener], fd)) {
        wr_http_count(&loop->counts.turned);
        (void)close(fd);
        return;
    }
    bool has_room = gate->connections < connections_max(loop->server) || wr_http_gate_make_room(gate);
    struct wr_http_conn *conn = wr_http_conn_open(gate, fd, peer_text(from, memory));
    if (conn != NULL && !has_room)
        wr_http_conn_turn_away(conn);
}

/* Pauses accepting until the next tick because descriptors ran out; libuv would report the waiting
 * connection without end. Closes one connection to free a descriptor. */
static void look_away(struct wr_http_gate *gate)
{
    struct wr_list_link *lingering = gate->waits[WR_WAIT_LINGER].first;
    gate->is_paused = true;
    (void)uv_poll_stop(&gate->poll);
    if (lingering != NULL)
        wr_http_conn_close(WR_LINKED(lingering, struct wr_http_conn, link));
    else
        (void)wr_http_gate_make_room(gate);
}

/* Accepts up to `most` connections. Returns false if no more are waiting. */
static bool accept_some(struct wr_http_gate *gate, int most)
{
    struct wr_http_loop *loop = gate->loop;
    int listener = loop->server->places[gate->listener].fd;
    for (int i = 0; i < most; i++) {
        struct sockaddr_storage from = {.ss_family = AF_UNSPEC};
        socklen_t bytes = sizeof from;
        int fd = accept4(listener, (struct sockaddr *)&from, &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
            let_in(gate, fd, &from);
        else if (i == 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
            /* Only for the first: a later accept4 allocates a descriptor before it finds that no
             * connection waits */
            look_away(gate);
        if (fd < 0 && errno != ECONNABORTED && errno != EINTR)
            return false;
    }
    return true;
}

static void on_accept(uv_poll_t *poll, int status, int events)
{
    WR_DOING("accepting");
    struct wr_http_gate *gate = poll->data;
    (void)events;
    if (status == 0)
        (void)accept_some(gate, gate->loop->server->options.loops == 1 ? ACCEPTS_AT_ONCE : 1);
    wr_http_loop_settle(gate->loop);
}

/* ---- timeouts ---- */

/* Closes the connections whose wait exceeds the limit. Returns false if the time slice ended
 * first. */
static bool close_late(struct wr_http_gate *gate, enum wr_http_wait wait, int64_t limit_ms,
                       const struct wr_share *share)
{
    struct wr_list_link *link;
    int64_t now = wr_http_loop_ms(gate->loop);
    while ((link = gate->waits[wait].first) != NULL) {
        struct wr_http_conn *conn = WR_LINKED(link, struct wr_http_conn, link);
        if (now - conn->since < limit_ms)
            return true;
        if (!wr_share_lasts(share))
            return false;
        if (wait == WR_WAIT_HEAD || wait == WR_WAIT_BODY || wait == WR_WAIT_SEND)
            wr_http_count(&gate->loop->counts.late);
        /* no request has begun, or a response is partly sent */
        if (conn->inbox == NULL || wr_http_sends(conn)) {
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
    struct wr_share share = wr_share_begin(WR_SHARE_NS);
    bool is_done = true;
    for (size_t i = 0; i < loop->server->place_count; i++) {
        struct wr_http_gate *gate = &loop->gates[i];
        for (int wait = 0; wait < WR_WAIT_COUNT; wait++)
            if (wait != WR_WAIT_ANSWER)
                is_done &= close_late(gate, (enum wr_http_wait)wait, loop->server->limits_ms[wait], &share);
        if (loop->is_stopping)
            is_done &= close_late(gate, WR_WAIT_HEAD, FRESH_GRACE_MS, &share);
    }
    return is_done;
}

static void tick_gate(struct wr_http_gate *gate)
{
    if (gate->is_paused && gate->is_open) {
        gate->is_paused = false;
        (void)uv_poll_start(&gate->poll, UV_READABLE, on_accept);
    }
}

static void note_lag(struct wr_http_loop *loop)
{
    int64_t now = (int64_t)uv_hrtime();
    int64_t late_ns = loop->ticked_at == 0 ? 0 : now - loop->ticked_at - loop->server->options.tick_ns;
    loop->ticked_at = now;
    atomic_store_explicit(&loop->counts.lag_ns, late_ns > 0 ? late_ns : 0, memory_order_relaxed);
}

static void on_tick(uv_timer_t *timer)
{
    WR_DOING("tick");
    struct wr_http_loop *loop = timer->data;
    struct wr_http *server = loop->server;
    note_lag(loop);
    wr_http_date_write(loop->date, weir_wall_now() / WEIR_SECOND);
    if (!close_all_late(loop))
        wr_http_loop_wake(loop);
    for (size_t i = 0; i < server->place_count; i++)
        tick_gate(&loop->gates[i]);
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

static void close_gates(struct wr_http_loop *loop)
{
    for (size_t i = 0; i < loop->server->place_count; i++) {
        struct wr_http_gate *gate = &loop->gates[i];
        if (!gate->is_open)
            continue;
        gate->is_open = false;
        uv_close((uv_handle_t *)&gate->poll, NULL);
    }
}

/* Reads once more from each connection: a request may have been sent before the client could know
 * of the stop. Returns false if the time slice ended first. */
static bool last_look(struct wr_http_gate *gate, enum wr_http_wait wait, const struct wr_share *share)
{
    struct wr_list_link *link = gate->waits[wait].first, *next;
    for (; link != NULL; link = next) {
        struct wr_http_conn *conn = WR_LINKED(link, struct wr_http_conn, link);
        next = link->next;
        if (conn->was_looked_at)
            continue;
        if (!wr_share_lasts(share))
            return false;
        conn->was_looked_at = true;
        if (!wr_http_read(conn))
            conn->is_broken = true;
        wr_http_conn_settle(conn);
        /* settling `conn` closed the next connection to make space */
        if (next != NULL && next->list != &gate->waits[wait])
            next = gate->waits[wait].first;
    }
    return true;
}

static void end_streams(struct wr_http_gate *gate)
{
    static const enum wr_http_wait waits[] = {WR_WAIT_ANSWER, WR_WAIT_SEND};
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        struct wr_list_link *link = gate->waits[waits[i]].first, *next;
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
static bool accept_last(struct wr_http_loop *loop, const struct wr_share *share)
{
    for (size_t i = 0; i < loop->server->place_count; i++)
        while (loop->last_accepts < loop->server->options.connections_max && accept_some(&loop->gates[i], 1)) {
            loop->last_accepts++;
            if (!wr_share_lasts(share))
                return false;
        }
    return true;
}

static void begin_stop(struct wr_http_loop *loop)
{
    WR_DOING("stopping");
    loop->is_stopping = true;
    close_gates(loop);
    for (size_t i = 0; i < loop->server->place_count; i++)
        end_streams(&loop->gates[i]);
}

/* Begins to stop, then reads from connections until each was read once. Returns false while some
 * remain. */
static bool stop(struct wr_http_loop *loop)
{
    struct wr_share share = wr_share_begin(WR_SHARE_NS);
    if (!loop->is_stopping && !accept_last(loop, &share))
        return false;
    if (!loop->is_stopping)
        begin_stop(loop);
    for (size_t i = 0; i < loop->server->place_count; i++)
        if (!last_look(&loop->gates[i], WR_WAIT_IDLE, &share) || !last_look(&loop->gates[i], WR_WAIT_HEAD, &share))
            return false;
    return true;
}

static void cut_each(struct wr_list *list, bool is_left)
{
    while (list->first != NULL) {
        struct wr_http_conn *conn = WR_LINKED(list->first, struct wr_http_conn, link);
        if (!is_left && (conn->has_exchange || conn->inbox != NULL))
            wr_http_conn_refuse(conn, 503, "the server is stopping; retry later");
        wr_http_conn_close(conn);
    }
}

static void cut_off(struct wr_http_loop *loop)
{
    wr_away_excuse(WR_AWAY_ENDS);
    loop->is_stopping = loop->is_cutting = true;
    close_gates(loop);
    for (size_t i = 0; i < loop->server->place_count; i++)
        for (int wait = 0; wait < WR_WAIT_COUNT; wait++)
            cut_each(&loop->gates[i].waits[wait], loop->server->is_left);
}

static void finish(struct wr_http_loop *loop)
{
    (void)pthread_mutex_lock(&loop->notes_lock);
    loop->takes_notes = false;
    (void)pthread_mutex_unlock(&loop->notes_lock);
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
        wr_list_take(&conn->ready);
        wr_http_conn_settle(conn);
    }
    if (loop->is_stopping && loop->connections == 0 && !wr_wakeup_is_closing(&loop->wakeup))
        finish(loop);
}

/* ---- notes ---- */

/* Appends the posted notes to those left over from the last time slice. */
static void take_notes(struct wr_http_loop *loop)
{
    (void)pthread_mutex_lock(&loop->notes_lock);
    if (loop->notes != NULL) {
        *loop->taken_end = loop->notes;
        loop->taken_end = loop->notes_end;
        loop->notes = NULL;
        loop->notes_end = &loop->notes;
    }
    (void)pthread_mutex_unlock(&loop->notes_lock);
}

bool wr_http_loop_notes(struct wr_http_loop *loop)
{
    WR_DOING("notes");
    struct wr_share share = wr_share_begin(WR_SHARE_NS);
    take_notes(loop);
    while (loop->taken != NULL && wr_share_lasts(&share)) {
        struct wr_http_note *note = loop->taken;
        loop->taken = note->next; /* the note may free itself when it runs */
        if (loop->taken == NULL)
            loop->taken_end = &loop->taken;
        note->run(note);
    }
    return loop->taken == NULL;
}

void wr_http_post(struct wr_http_loop *loop, struct wr_http_note *note)
{
    (void)pthread_mutex_lock(&loop->notes_lock);
    note->next = NULL;
    *loop->notes_end = note;
    loop->notes_end = &note->next;
    if (loop->takes_notes)
        wr_wakeup_send(&loop->wakeup);
    (void)pthread_mutex_unlock(&loop->notes_lock);
}

void wr_http_loop_wake(struct wr_http_loop *loop)
{
    (void)pthread_mutex_lock(&loop->notes_lock);
    if (loop->takes_notes)
        wr_wakeup_send(&loop->wakeup);
    (void)pthread_mutex_unlock(&loop->notes_lock);
}

static void on_wakeup(struct wr_wakeup *wakeup)
{
    struct wr_http_loop *loop = wakeup->uv.data;
    loop->is_late = !wr_http_loop_notes(loop);
    /* settle before parking: requests with a response must not be handed over */
    wr_http_loop_settle(loop);
    if (!loop->is_late)
        wr_http_loop_park(loop);
    /* read the phase after parking, during which it may change */
    int phase = atomic_load(&loop->server->phase);
    if (phase >= WR_HTTP_CUTS)
        cut_off(loop);
    else if (phase >= WR_HTTP_STOPS)
        loop->is_late |= !stop(loop);
    loop->is_late |= !close_all_late(loop);
    wr_http_loop_settle(loop);
    if (loop->is_late)
        wr_http_loop_wake(loop);
}

uint32_t wr_http_loop_index(const struct wr_http_loop *loop)
{
    return loop->index;
}

struct wr_http_loop *wr_http_loop_at(const struct wr_http *server, uint32_t index)
{
    return server->loops[index];
}

/* ---- start ---- */

static int open_gates(struct wr_http_loop *loop)
{
    for (uint32_t i = 0; i < loop->server->place_count; i++) {
        struct wr_http_gate *gate = &loop->gates[i];
        gate->loop = loop;
        gate->listener = i;
        if (uv_poll_init(&loop->uv, &gate->poll, loop->server->places[i].fd) != 0)
            return WEIR_E_SYSTEM;
        gate->poll.data = gate;
        gate->is_open = true;
    }
    return 0;
}

int wr_http_loop_new(struct wr_http *server, uint32_t index)
{
    struct wr_http_loop *loop = wr_take(server->allocator, sizeof *loop, _Alignof(struct wr_http_loop));
    if (loop == NULL)
        return WEIR_E_NOMEM;
    server->loops[index] = loop;
    loop->server = server;
    loop->index = index;
    loop->notes_end = &loop->notes;
    loop->taken_end = &loop->taken;
    loop->alarm_fd = -1;
    wr_buf_init(&loop->out, server->allocator, WR_HTTP_OUT_MAX);
    wr_buf_init(&loop->late, server->allocator, WR_HTTP_OUT_MAX);
    wr_http_date_write(loop->date, weir_wall_now() / WEIR_SECOND);
    (void)pthread_mutex_init(&loop->notes_lock, NULL);
    if (uv_loop_init(&loop->uv) != 0)
        return WEIR_E_SYSTEM;
    loop->has_uv = true;
    int error = wr_wakeup_init(&loop->wakeup, &loop->uv, on_wakeup);
    if (error != 0)
        return error;
    (void)uv_timer_init(&loop->uv, &loop->timer);
    wr_round_open(&loop->round, &loop->uv);
    loop->wakeup.uv.data = loop->timer.data = loop;
    loop->takes_notes = true;
    error = open_alarm(loop);
    return error != 0 ? error : open_gates(loop);
}

static void *run(void *context)
{
    struct wr_http_loop *loop = context;
    uint64_t tick_ms = (uint64_t)(loop->server->options.tick_ns / WEIR_MILLISECOND);
    uv_update_time(&loop->uv);
    for (size_t i = 0; i < loop->server->place_count; i++)
        (void)uv_poll_start(&loop->gates[i].poll, UV_READABLE, on_accept);
    (void)uv_timer_start(&loop->timer, on_tick, tick_ms, tick_ms);
    if (loop->alarm_fd >= 0)
        (void)uv_poll_start(&loop->alarm, UV_READABLE, on_alarm);
    wr_away_begin("the loop of a server");
    wr_http_loop_settle(loop); /* settles connections that were adopted before the start */
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
    wr_away_end();
    (void)sem_post(&loop->server->ended);
    return NULL;
}

int wr_http_loop_start(struct wr_http_loop *loop)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    loop->has_thread = pthread_create(&loop->thread, NULL, run, loop) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (loop->has_thread)
        return 0;
    wr_error_note("a thread for the server could not be had");
    return WEIR_E_SYSTEM;
}

static void close_each(uv_handle_t *handle, void *unused)
{
    (void)unused;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

void wr_http_loop_free(struct wr_http_loop *loop)
{
    if (loop->has_uv) {
        cut_off(loop); /* closes the connections of a loop that never ran */
        uv_walk(&loop->uv, close_each, NULL);
        (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
        (void)uv_loop_close(&loop->uv);
    }
    if (loop->alarm_fd >= 0)
        (void)close(loop->alarm_fd);
    while (!wr_http_loop_notes(loop))
        continue;
    wr_buf_release(&loop->out);
    wr_buf_release(&loop->late);
    (void)pthread_mutex_destroy(&loop->notes_lock);
    wr_give(loop->server->allocator, loop, sizeof *loop, _Alignof(struct wr_http_loop));
}
