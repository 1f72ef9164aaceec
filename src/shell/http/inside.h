/* SPDX-License-Identifier: MIT */
/* inside.h - what the files of the server know of each other.
 *
 *     http.c     options, beginning, end, figures      listen.c   sockets that listen, and who may connect
 *     loop.c     a thread: connections come, ticks     conn.c     a connection: what it waits for, and its end
 *     read.c     bytes in: requests out of them        send.c     bytes out
 *     reply.c    answers and streams                   ours.c     whether another page may have sent it
 *     handover.c what another process goes on with
 *
 * A connection waits for one thing at a time, and stands in its gate's list of those who wait for the same, oldest
 * first: so the time that is over is found at the front, and so is the one that makes room for a new one.
 *
 *     HEAD -> (BODY ->) answer -> IDLE -> HEAD …          IDLE: no byte of the next request is here
 *                         |-> ANSWER -> …                 somebody answers later, or streams
 *                         |-> SEND -> …                   the client does not take it
 *                         `-> LINGER -> closed            the last answer was given; what comes is dropped
 *
 * Requests are read from the loop's own buffer, where all connections' bytes arrive. Only what is left of them when
 * there is nothing more to do (half a request, or one that is answered later) is kept by the connection, in an inbox.
 * So an idle connection has no buffers, and the usual request is neither copied nor allocated for.
 */
#ifndef WR_SHELL_HTTP_INSIDE_H
#define WR_SHELL_HTTP_INSIDE_H

#include "base/buf.h"
#include "base/list.h"
#include "shell/http/http.h"
#include "shell/loop/round.h"
#include "shell/loop/wakeup.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <uv.h>

#define WR_HTTP_READ_BYTES 65536
#define WR_HTTP_OUT_MAX ((size_t)64 << 20) /* of one answer */
#define WR_HTTP_DATE_BYTES 37              /* "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n" */
#define WR_HTTP_LAST_BYTES 1024            /* of an answer that needs no memory */
#define WR_HTTP_LINGER_MAX 256             /* connections of a gate */
#define WR_HTTP_NO_MEMORY "out of memory"
#define WR_HTTP_NO_ROOM "too many connections; retry later"
#define WR_HTTP_NO_BUFFER "too many unfinished requests; retry later"

/* ---- requests that are being read ---- */

struct wr_http_reading {
    uint32_t body_bytes; /* decoded so far: they follow the head */
    uint32_t raw_at;     /* from here on nothing was looked at; the body of a request in chunks shrinks as it is read */
    bool has_head;
    bool is_continued;         /* was told to go on */
    struct wr_request request; /* last: only as many of its fields are copied as there are */
};

/* Text of a connection's own: from a request's first byte on. */
struct wr_http_inbox {
    size_t bytes, room;
    struct wr_http_reading reading;
    char text[];
};

/* ---- connections ---- */

enum wr_http_wait {
    WR_WAIT_HEAD,
    WR_WAIT_IDLE,
    WR_WAIT_BODY,
    WR_WAIT_SEND,
    WR_WAIT_ANSWER, /* for ever, or until a stream's reader is too slow */
    WR_WAIT_LINGER,
};
#define WR_WAIT_COUNT (WR_WAIT_LINGER + 1)

struct wr_http_conn {
    struct wr_http_exchange exchange; /* first */
    struct wr_poll poll;
    struct wr_http_gate *gate;
    struct wr_list_link link;  /* in gate->waits[wait] */
    struct wr_list_link ready; /* in loop->ready */
    int64_t since;             /* when it began to wait, in the loop's ms */
    struct wr_http_inbox *inbox;
    char *out; /* what could not be sent yet: from out_at on */
    size_t out_at, out_bytes, out_room;
    uint32_t dropped; /* bytes, while it lingers */
    int fd;
    uint8_t wait;       /* enum wr_http_wait */
    uint8_t events;     /* that are polled for */
    bool has_exchange;  /* that is not answered */
    bool is_stream;     /* and was begun */
    bool is_turn;       /* its requests are being read just now: answers gather in loop->out */
    bool closes;        /* when all is sent */
    bool lingers;       /* before that: there may be bytes that nobody will read */
    bool is_broken;     /* cannot be written to, or nobody is there */
    bool is_fresh;      /* has not sent a request yet */
    bool is_renewed;    /* what it waits for now is new, whatever it waited for */
    bool is_held;       /* the front of the inbox is the exchange's request */
    bool is_behind;     /* there may be whole requests in the inbox */
    bool was_looked_at; /* since the server stops */
    bool has_half;      /* the other side sends no more */
    char peer[WR_HTTP_PEER_MAX];
};

/* Where a loop accepts, and the connections that came in there. */
struct wr_http_gate {
    struct wr_http_loop *loop;
    uint32_t listener;
    uint32_t connections; /* without those that linger */
    uint32_t lingering;
    bool is_open, is_paused; /* paused: no descriptor was left; until the next tick */
    uv_poll_t poll;
    struct wr_list waits[WR_WAIT_COUNT];
};

/* ---- loops ---- */

enum wr_http_phase {
    WR_HTTP_NEW,
    WR_HTTP_RUNS,
    WR_HTTP_STOPS,
    WR_HTTP_CUTS,
    WR_HTTP_ENDED
};

struct wr_http_counts {
    atomic_uint_fast64_t accepted, requests, refused, foreign, late, turned, connections, streams;
    atomic_uint_fast64_t answered[6];
    atomic_int_fast64_t lag_ns;
};

struct wr_http_loop {
    struct wr_http *server;
    uint32_t index;
    uv_loop_t uv;
    struct wr_wakeup wakeup;
    uv_timer_t timer;
    struct wr_round round;
    uv_poll_t alarm;
    int alarm_fd; /* of the kernel: timers of libuv are late by a millisecond */
    int64_t alarm_at;
    pthread_t thread;
    bool has_uv, has_thread;
    bool is_stopping, is_cutting;
    uint32_t last_accepts; /* before it stops */
    struct wr_http_gate gates[WR_HTTP_LISTENS_MAX];
    uint32_t connections;
    struct wr_list ready; /* to be looked at before the loop waits */
    struct wr_buf out;    /* answers of the connection whose turn it is */
    struct wr_buf late;   /* an answer out of turn */
    int64_t ticked_at;    /* ns */
    char date[WR_HTTP_DATE_BYTES + 1];
    struct wr_http_counts counts;
    pthread_mutex_t notes_lock;
    struct wr_http_note *notes, **notes_end;
    bool takes_notes;
    struct wr_http_note *taken, **taken_end; /* notes that are the loop's to run */
    bool is_late;                            /* more is to be done than there was time for: see on_async */
    struct wr_http_reading reading;
    char in[WR_HTTP_READ_BYTES];
};

struct wr_http_place {
    int fd; /* -1: none any more */
    bool is_unix;
    char *path; /* of a socket that we made in the file system; NULL */
    dev_t device;
    ino_t inode;
    mode_t mode;
    gid_t group;
    uid_t user;
    bool has_group, has_user;
};

struct wr_http {
    struct wr_http_options options;
    const weir_allocator *allocator;
    struct wr_http_place places[WR_HTTP_LISTENS_MAX];
    size_t place_count;
    atomic_int phase;                                  /* enum wr_http_phase */
    sem_t ended;                                       /* how many loops have */
    atomic_size_t buffered_bytes[WR_HTTP_LISTENS_MAX]; /* of each listener's connections */
    size_t buffered_max;                               /* of each listener */
    int64_t limits_ms[WR_WAIT_COUNT];
    struct wr_http_loop *loops[WR_HTTP_LOOPS_MAX];
    pthread_mutex_t frost; /* of what follows */
    pthread_cond_t frost_changed;
    bool is_frozen;
    bool is_left; /* its connections are another process's: nothing is sent any more */
    uint32_t parked;
    uint32_t adopted; /* before the start */
};

/* ---- listen.c ---- */

int wr_http_place_open(const struct wr_http_listen *listen, struct wr_http_place *ret_place);
void wr_http_place_close(struct wr_http_place *place);
/* It is another process's from here on. */
void wr_http_place_leave(struct wr_http_place *place);
/* Whether the mode, group and user let the one at the other end in. */
bool wr_http_place_admits(const struct wr_http_place *place, int fd);

/* ---- loop.c ---- */

int wr_http_loop_new(struct wr_http *server, uint32_t index);
int wr_http_loop_start(struct wr_http_loop *loop);
void wr_http_loop_free(struct wr_http_loop *loop);
/* Does what was put off; at the end of whatever the loop calls us for. */
void wr_http_loop_settle(struct wr_http_loop *loop);
/* Those that were posted; false: there are more than there is time for. */
bool wr_http_loop_notes(struct wr_http_loop *loop);
/* It looks what phase the server is in. */
void wr_http_loop_wake(struct wr_http_loop *loop);

static inline int64_t wr_http_loop_ms(const struct wr_http_loop *loop)
{
    return (int64_t)uv_now(&loop->uv);
}

/* ---- handover.c ---- */

/* Waits while the server is frozen. */
void wr_http_loop_park(struct wr_http_loop *loop);

/* ---- conn.c ---- */

/* Takes the descriptor over, also if it fails: then it is NULL. */
struct wr_http_conn *wr_http_conn_open(struct wr_http_gate *gate, int fd, struct wr_span peer);
/* Tells whoever has the exchange, and is gone. */
void wr_http_conn_close(struct wr_http_conn *conn);
/* Gives up the request that is being read or waits for its answer, and says so to the client. To be settled. */
void wr_http_conn_refuse(struct wr_http_conn *conn, int status, const char *why);
/* The same for want of room, and settles it. */
void wr_http_conn_turn_away(struct wr_http_conn *conn);
void wr_http_conn_wait(struct wr_http_conn *conn, enum wr_http_wait wait);
/* To be looked at by wr_http_loop_settle. */
void wr_http_conn_later(struct wr_http_conn *conn);
/* Waits for what the connection is waiting for, closes it if that is nothing. */
void wr_http_conn_settle(struct wr_http_conn *conn);
/* The oldest that does nothing makes room. False: there is none. */
bool wr_http_gate_make_room(struct wr_http_gate *gate);
/* Of the requests that are not whole and the answers that are not taken, the oldest gives its buffer back, unless it is
 * `conn`'s. False: there is none. */
bool wr_http_gate_make_space(struct wr_http_gate *gate, const struct wr_http_conn *conn);

/* ---- read.c ---- */

/* What has come in. False: nobody is there any more. */
bool wr_http_read(struct wr_http_conn *conn);
/* Requests that are in the inbox already. */
void wr_http_read_on(struct wr_http_conn *conn);
/* The request at the front of the inbox was answered. */
void wr_http_read_past(struct wr_http_conn *conn);
void wr_http_inbox_drop(struct wr_http_conn *conn);
/* With what another process has read. */
void wr_http_inbox_fill(struct wr_http_conn *conn, struct wr_span text);

/* ---- send.c ---- */

/* Sends, or keeps what cannot be sent; is_broken if neither is possible. */
void wr_http_send(struct wr_http_conn *conn, struct wr_span bytes);
/* Keeps it behind what waits already. */
void wr_http_keep(struct wr_http_conn *conn, struct wr_span bytes);
/* What waits. False: it is broken. */
bool wr_http_send_on(struct wr_http_conn *conn);
void wr_http_out_drop(struct wr_http_conn *conn);
/* Empties a loop's buffer. */
void wr_http_buf_empty(const struct wr_http *server, struct wr_buf *buf);
/* Counts bytes of buffers with the connection's listener; false: that would be too many. */
bool wr_http_buffer_take(struct wr_http_conn *conn, size_t bytes);
void wr_http_buffer_give(struct wr_http_conn *conn, size_t bytes);

static inline bool wr_http_sends(const struct wr_http_conn *conn)
{
    return conn->out_at < conn->out_bytes;
}

/* ---- ours.c ---- */

/* Refuses what a page of another origin may have sent. False: it did not. */
bool wr_http_refuse_foreign(struct wr_http_exchange *exchange);

/* ---- reply.c ---- */

/* Answers where there is no exchange, or none any more, and reads no further: nothing that was sent can be trusted,
 * least of all where it ends. Takes no memory while the client reads. */
void wr_http_last_reply(struct wr_http_conn *conn, int status, const char *why);
/* The same at once, whatever becomes of it. False: the client has not taken it whole. */
bool wr_http_last_send(struct wr_http_loop *loop, int fd, int status, const char *why);
void wr_http_reply_continue(struct wr_http_conn *conn);
void wr_http_date_write(char ret_line[WR_HTTP_DATE_BYTES + 1], int64_t wall_s);

static inline struct wr_http_loop *wr_http_conn_loop(const struct wr_http_conn *conn)
{
    return conn->gate->loop;
}

static inline void wr_http_count(atomic_uint_fast64_t *count)
{
    /* one thread writes */
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1, memory_order_relaxed);
}

static inline void wr_http_uncount(atomic_uint_fast64_t *count)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) - 1, memory_order_relaxed);
}

#endif
