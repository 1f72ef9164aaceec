/* SPDX-License-Identifier: MIT */
/* http_server_internal.h - internal declarations shared by the files of the HTTP server.
 *
 *     http_server.c    options, start, stop, statistics
 *     server_loop.c    a thread: accepts, ticks, stops
 *     request_input.c  input: splits it into requests
 *     reply.c          responses and streams
 *     conn_handover.c  connections for another process
 *     listen_socket.c  sockets, access to them
 *     conn.c           a connection: waits, closes
 *     send.c           output
 *     cross_origin.c   refuses foreign requests
 *
 * A connection waits for one kind of event at a time and is in its acceptor's list for that kind,
 * oldest first. The first connection of a list is thus the next to time out, and the one to close
 * when a new connection needs room.
 *
 *     HEAD -> (BODY ->) response -> IDLE -> HEAD ...   IDLE: the next request has not begun
 *                          |-> ANSWER -> ...           the response is given later, or is a stream
 *                          |-> SEND -> ...             the client does not read the response
 *                          `-> LINGER -> closed        the last response is sent; input is dropped
 *
 * All connections are read into one buffer of the loop. A connection copies to its own inbox only
 * what remains: an incomplete request, or one whose response is given later. An idle connection
 * thus has no buffers, and a usual request is neither copied nor needs an allocation.
 */
#ifndef WR_SERVE_SERVER_HTTP_SERVER_INTERNAL_H
#define WR_SERVE_SERVER_HTTP_SERVER_INTERNAL_H

#include "base/buf.h"
#include "base/list.h"
#include "http/loop/round.h"
#include "http/loop/wakeup.h"
#include "serve/server/http_server.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <uv.h>

#define WR_HTTP_READ_BYTES 65536
#define WR_HTTP_OUT_MAX ((size_t)64 << 20) /* maximum size of one response, bytes */
#define WR_HTTP_DATE_BYTES 37              /* "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n" */
/* maximum size of an error response that is built without allocating */
#define WR_HTTP_FINAL_ERROR_BYTES 1024
#define WR_HTTP_LINGER_MAX 256 /* lingering connections per acceptor */
#define WR_HTTP_NO_MEMORY "out of memory"
#define WR_HTTP_NO_ROOM "too many connections; retry later"
#define WR_HTTP_NO_BUFFER "too many unfinished requests; retry later"

/* ---- the request that is being read ---- */

struct wr_http_partial_request {
    uint32_t body_bytes; /* body bytes decoded so far; they follow the head */
    /* offset of the first unparsed byte; past the decoded body, as chunk headers are removed */
    uint32_t raw_at;
    bool has_head;
    bool is_continued;         /* 100 Continue was sent */
    struct wr_request request; /* last member: only the fields in use are copied */
};

/* Input that a connection keeps, beginning with the first byte of a request. */
struct wr_http_inbox {
    size_t bytes, room;
    struct wr_http_partial_request reading;
    char text[];
};

/* ---- connections ---- */

enum wr_http_wait {
    WR_WAIT_HEAD,
    WR_WAIT_IDLE,
    WR_WAIT_BODY,
    WR_WAIT_SEND,
    WR_WAIT_ANSWER, /* waits for the response; no time limit, unless a stream has unsent output */
    WR_WAIT_LINGER,
};
#define WR_WAIT_COUNT (WR_WAIT_LINGER + 1)

struct wr_http_conn {
    struct wr_http_exchange exchange; /* first member: the structs are cast into each other */
    struct wr_poll poll;
    struct wr_http_acceptor *acceptor;
    struct wr_list_link link;  /* link in acceptor->waits[wait] */
    struct wr_list_link ready; /* link in loop->ready */
    int64_t since;             /* start of the current wait, ms by the loop's clock */
    struct wr_http_inbox *inbox;
    char *out; /* unsent output, from out_at to out_bytes */
    size_t out_at, out_bytes, out_room;
    uint32_t dropped; /* bytes of input dropped while the connection lingers */
    int fd;
    uint8_t wait;           /* enum wr_http_wait */
    uint8_t events;         /* libuv events that are polled for */
    bool has_exchange;      /* a request is waiting for its response */
    bool is_stream;         /* the current response is a stream that has begun */
    bool is_processing;     /* its requests are being read now: responses gather in loop->out */
    bool closes;            /* the connection is to be closed when all output is sent */
    bool lingers;           /* the connection is to linger before it closes: unread input may follow */
    bool is_broken;         /* sending failed, or the peer is gone */
    bool is_fresh;          /* no request was received yet */
    bool is_renewed;        /* the next wait is timed anew, even if it is of the same kind */
    bool is_held;           /* the inbox begins with the request of the exchange */
    bool has_pending_input; /* the inbox may hold complete requests */
    bool was_read_last;     /* was read from once since the server began to stop */
    bool is_half_closed;    /* the peer has shut down its sending side */
    char peer[WR_HTTP_PEER_MAX];
};

/* A listener of one loop, and the connections that were accepted there. */
struct wr_http_acceptor {
    struct wr_http_loop *loop;
    uint32_t listener;
    uint32_t connections; /* open connections, except those that linger */
    uint32_t lingering;
    /* is_paused: descriptors ran out; accepting resumes at the next tick */
    bool is_open, is_paused;
    uv_poll_t poll;
    struct wr_list waits[WR_WAIT_COUNT];
};

/* ---- loops ---- */

enum wr_http_phase {
    WR_HTTP_NEW,
    WR_HTTP_RUNNING,
    WR_HTTP_STOPPING,
    WR_HTTP_ABORTING,
    WR_HTTP_ENDED
};

struct wr_http_counts {
    atomic_uint_fast64_t accepted, requests, refused, foreign, late, turned, connections, streams;
    atomic_uint_fast64_t answered[6];
    atomic_int_fast64_t lag_ns;
};

struct wr_http_loop {
    struct wr_http_server *server;
    uint32_t index;
    uv_loop_t uv;
    struct wr_wakeup wakeup;
    uv_timer_t timer;
    struct wr_round round;
    uv_poll_t alarm;
    int alarm_fd; /* timerfd, or -1; timers of libuv are up to a millisecond late */
    int64_t alarm_at;
    pthread_t thread;
    bool has_uv, has_thread;
    bool is_stopping, is_cutting;
    uint32_t last_accepts; /* connections accepted after the stop was requested */
    struct wr_http_acceptor acceptors[WR_HTTP_LISTENS_MAX];
    uint32_t connections;
    struct wr_list ready; /* connections that must be settled before the loop waits */
    struct wr_buf out;    /* responses of the connection being read */
    struct wr_buf late;   /* a response given outside of reading (is_processing is false) */
    int64_t ticked_at;    /* time of the last tick, ns; 0 before the first */
    char date[WR_HTTP_DATE_BYTES + 1];
    struct wr_http_counts counts;
    pthread_mutex_t calls_lock;
    struct wr_http_posted_call *calls, **calls_end;
    bool takes_calls;
    /* calls moved out of the lock, to be run by the loop */
    struct wr_http_posted_call *taken, **taken_end;
    bool is_late; /* work remains that exceeded the time slice; see on_server_wakeup */
    struct wr_http_partial_request reading;
    char in[WR_HTTP_READ_BYTES];
};

struct wr_http_listen_socket {
    int fd; /* listening descriptor; -1: closed */
    bool is_unix;
    char *path; /* socket file to unlink at the end; NULL if there is none */
    dev_t device;
    ino_t inode;
    mode_t mode;
    gid_t group;
    uid_t user;
    bool has_group, has_user;
};

struct wr_http_server {
    struct wr_http_server_options options;
    const weir_allocator *allocator;
    struct wr_http_listen_socket listen_sockets[WR_HTTP_LISTENS_MAX];
    size_t listen_socket_count;
    atomic_int phase; /* enum wr_http_phase */
    sem_t ended;      /* posted once by each loop that ends */
    /* bytes buffered for each listener's connections */
    atomic_size_t buffered_bytes[WR_HTTP_LISTENS_MAX];
    size_t buffered_max; /* limit of buffered_bytes, per listener */
    int64_t limits_ms[WR_WAIT_COUNT];
    struct wr_http_loop *loops[WR_HTTP_LOOPS_MAX];
    pthread_mutex_t freeze_lock; /* guards the members below, except is_abandoned and adopted */
    pthread_cond_t freeze_changed;
    bool is_frozen;
    bool is_abandoned; /* another process has the connections: nothing more is sent */
    uint32_t parked;
    uint32_t adopted; /* connections adopted before the start */
};

/* ---- listen_socket.c ---- */

int wr_http_listen_socket_open(const struct wr_http_listen_options *listen,
                               struct wr_http_listen_socket *ret_listen_socket);
void wr_http_listen_socket_close(struct wr_http_listen_socket *listen_socket);
/* Forgets the socket file, which now belongs to another process. */
void wr_http_listen_socket_forget_file(struct wr_http_listen_socket *listen_socket);
/* Returns true if mode, group and user permit the peer of `fd` to connect. */
bool wr_http_listen_socket_admits(const struct wr_http_listen_socket *listen_socket, int fd);

/* ---- server_loop.c ---- */

int wr_http_loop_new(struct wr_http_server *server, uint32_t index);
int wr_http_loop_start(struct wr_http_loop *loop);
void wr_http_loop_free(struct wr_http_loop *loop);
/* Settles the connections that were deferred. Every callback from libuv ends with it. */
void wr_http_loop_settle(struct wr_http_loop *loop);
/* Runs posted calls. Returns false if some remain because the time slice was used up. */
bool wr_http_loop_run_posted(struct wr_http_loop *loop);
/* Wakes the loop, which then checks the phase of the server. */
void wr_http_loop_wake(struct wr_http_loop *loop);

static inline int64_t wr_http_loop_ms(const struct wr_http_loop *loop)
{
    return (int64_t)uv_now(&loop->uv);
}

/* ---- conn_handover.c ---- */

/* Blocks the loop's thread while the server is frozen. */
void wr_http_loop_park(struct wr_http_loop *loop);

/* ---- conn.c ---- */

/* Adds a connection to the acceptor. Takes ownership of `fd` even on failure, when it returns
 * NULL. */
struct wr_http_conn *wr_http_conn_open(struct wr_http_acceptor *acceptor, int fd, struct wr_span peer);
/* Closes the connection; calls `gone` of an exchange that has no response yet. */
void wr_http_conn_close(struct wr_http_conn *conn);
/* Abandons the request that is being read or waits for its response, and sends the client an error
 * response. The caller must settle the connection afterwards. */
void wr_http_conn_refuse(struct wr_http_conn *conn, int status, const char *why);
/* Refuses a connection for lack of room, with status 503, and settles it. */
void wr_http_conn_reject(struct wr_http_conn *conn);
void wr_http_conn_wait(struct wr_http_conn *conn, enum wr_http_wait wait);
/* Adds the connection to loop->ready, for wr_http_loop_settle. */
void wr_http_conn_settle_later(struct wr_http_conn *conn);
/* Processes pending input, then waits for the next event, or closes the connection if there is none
 * to wait for. */
void wr_http_conn_settle(struct wr_http_conn *conn);
/* Closes a connection to admit a new one: the oldest that sends a head, is idle or sends a body, in
 * this order. Returns false if there is no such connection. */
bool wr_http_acceptor_evict_conn(struct wr_http_acceptor *acceptor);
/* Frees buffers: ends the oldest connection, other than `conn`, with an incomplete request or an
 * unread response. Returns false if there is none. */
bool wr_http_acceptor_free_buffers(struct wr_http_acceptor *acceptor, const struct wr_http_conn *conn);

/* ---- request_input.c ---- */

/* Reads from the connection and processes the input. Returns false if the peer is gone. */
bool wr_http_read(struct wr_http_conn *conn);
/* Processes requests that are already in the inbox. */
void wr_http_read_buffered(struct wr_http_conn *conn);
/* Removes the request at the front of the inbox, after its response. */
void wr_http_inbox_next(struct wr_http_conn *conn);
void wr_http_inbox_drop(struct wr_http_conn *conn);
/* Fills the inbox with input that another process has read. */
void wr_http_inbox_fill(struct wr_http_conn *conn, struct wr_span text);

/* ---- send.c ---- */

/* Sends `bytes` and buffers the rest; sets is_broken if both fail. */
void wr_http_send(struct wr_http_conn *conn, struct wr_span bytes);
/* Appends `bytes` to the unsent output; sets is_broken if there is no room. */
void wr_http_buffer_output(struct wr_http_conn *conn, struct wr_span bytes);
/* Sends buffered output. Returns false if the connection failed. */
bool wr_http_send_buffered(struct wr_http_conn *conn);
void wr_http_output_drop(struct wr_http_conn *conn);
/* Empties a buffer of a loop and frees it if it has grown large. */
void wr_http_buf_empty(const struct wr_http_server *server, struct wr_buf *buf);
/* Counts `bytes` towards the buffers of the listener, and ends other connections to make space.
 * Returns false if the limit would still be exceeded. */
bool wr_http_buffer_reserve(struct wr_http_conn *conn, size_t bytes);
void wr_http_buffer_release(struct wr_http_conn *conn, size_t bytes);

static inline bool wr_http_has_output(const struct wr_http_conn *conn)
{
    return conn->out_at < conn->out_bytes;
}

/* ---- cross_origin.c ---- */

/* Refuses a request that a page of another origin may have sent. Returns false if it is not one. */
bool wr_http_refuse_cross_origin(struct wr_http_exchange *exchange);

/* ---- reply.c ---- */

/* Sends an error response outside an exchange and stops reading: the rest of the input cannot be
 * trusted, because its message boundaries are unknown. Allocates nothing while the client reads. */
void wr_http_final_error(struct wr_http_conn *conn, int status, const char *why);
/* Sends an error response to `fd` at once. Returns false if the kernel did not take all of it. */
bool wr_http_final_error_send(struct wr_http_loop *loop, int fd, int status, const char *why);
void wr_http_reply_continue(struct wr_http_conn *conn);
void wr_http_date_write(char ret_line[WR_HTTP_DATE_BYTES + 1], int64_t wall_s);

static inline struct wr_http_loop *wr_http_conn_loop(const struct wr_http_conn *conn)
{
    return conn->acceptor->loop;
}

static inline void wr_http_count(atomic_uint_fast64_t *count)
{
    /* only one thread writes, so no atomic addition is needed */
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1, memory_order_relaxed);
}

static inline void wr_http_count_down(atomic_uint_fast64_t *count)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) - 1, memory_order_relaxed);
}

#endif
