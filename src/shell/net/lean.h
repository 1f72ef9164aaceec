/* SPDX-License-Identifier: MIT */
/* lean.h - the short way for what most of a crawl is: GET and HEAD over plain http, without a proxy, by ourselves.
 *
 * libcurl costs three times as much as the system calls that a page needs; here it is one send, one or two recv, and a
 * share of an epoll_wait. All else is libcurl's: https, proxies, requests with a body. The owner sees no difference
 * (net.h is the contract of both, tests/net holds both to it).
 *
 *     lean.c         a transfer's way: queue, connection, sending, sending anew, the end
 *     conn.c         connections: opened, idle, closed        lean_request.c   the bytes that are sent
 *     lean_answer.c  what comes: lines, body, is it whole
 *
 *     wr_lean_start ──▶ queue ──(the loop has polled)──▶ idle connection, or a new one ──▶ before_send ──▶ send
 *                         ▲                                                                               │
 *                         └───────── a used connection was dead: once more, on a new one ◀────────────────┘
 *
 * A connection stays in epoll for as long as it lives, waiting for bytes. What comes while it is idle ends it: the
 * server has closed it, or says what nobody asked for. That is why transfers wait until the loop has polled: what has
 * come by then is seen first; who cannot wait (wr_net_flush) has the connection looked at instead. Bytes are read into
 * one buffer for all, and handed on from there.
 */
#ifndef WR_SHELL_NET_LEAN_H
#define WR_SHELL_NET_LEAN_H

#include "base/map.h"
#include "core/rules/http/chunks.h"
#include "shell/loop/round.h"
#include "shell/net/net.h"

#define WR_LEAN_READ_BYTES ((size_t)64 << 10)
#define WR_LEAN_KEY_MAX (WR_NAME_MAX + 2) /* host, and port in two bytes */

struct wr_conn {
    struct wr_poll poll;
    struct wr_net *net;
    struct wr_transfer *transfer;    /* that it is for; NULL: idle */
    struct wr_conn *next;            /* idle: to the same host and port; connecting: for the same transfer */
    struct wr_conn *prev;            /* idle only */
    struct wr_conn *older, *younger; /* idle: among all */
    int64_t idle_at;
    struct wr_address address;
    int fd;
    int events; /* that libuv watches */
    bool is_connected;
    bool is_used; /* has answered before */
    uint16_t port;
    uint16_t key_bytes;
    char key[WR_LEAN_KEY_MAX];
};

/* How the answer goes on. */
enum wr_frame {
    WR_FRAME_HEAD,
    WR_FRAME_LENGTH,
    WR_FRAME_CHUNKS,
    WR_FRAME_TRAILER,
    WR_FRAME_CLOSE, /* until the connection is closed */
    WR_FRAME_WHOLE, /* it has ended */
};

/* A transfer's. */
struct wr_lean_part {
    struct wr_transfer *next, *prev; /* in the queue */
    bool is_queued;
    bool is_fresh;    /* takes no used connection: one had died */
    bool is_head;     /* HEAD: the answer has no body */
    bool is_last;     /* closes the connection */
    bool is_kept;     /* the server will keep the connection */
    bool is_given_up; /* what is left of the request: the server takes no more */
    uint8_t version;
    uint8_t tried; /* of the addresses */
    struct wr_answer addresses;
    int64_t race_at; /* when the next is tried beside those that do not answer; 0: never */
    struct wr_conn *conn, *connecting;
    uint16_t key_bytes;
    char key[WR_LEAN_KEY_MAX];
    struct wr_buf request;
    size_t written; /* of it */

    /* the answer */
    enum wr_frame frame;
    struct wr_chunks chunks;
    struct wr_buf line; /* the beginning of one that has not come in full */
    uint64_t left;      /* WR_FRAME_LENGTH: of the body */
    uint64_t received;  /* bytes of all kinds */
};

/* A net's. */
struct wr_lean {
    struct wr_hash_key hash_key;
    struct wr_map idle; /* by key: the youngest */
    struct wr_conn *youngest, *oldest;
    struct wr_transfer *first, *last; /* the queue */
    uint32_t queued;
    bool is_flushing; /* the loop has not polled: a connection is looked at before it is used */
    uint32_t open;    /* connections */
    char *bytes;      /* that were read last */
    uv_idle_t no_wait;
    uv_check_t polled;
};

/* ---- lean.c: what the net calls ---- */

/* WEIR_E_NOMEM, WEIR_E_SYSTEM. */
int wr_lean_open(struct wr_net *net);
void wr_lean_close(struct wr_net *net); /* connections */
void wr_lean_release(struct wr_net *net);

/* Whether this is one for the lean way. */
bool wr_lean_takes(const struct wr_net *net, const struct wr_net_request *request);

/* Goes to one of these addresses, when the loop has polled. */
void wr_lean_start(struct wr_transfer *transfer, const struct wr_answer *addresses);

/* race_at has come. */
void wr_lean_race(struct wr_transfer *transfer);

/* The transfer ends: lets go what it has. */
void wr_lean_leave(struct wr_transfer *transfer);

/* There is room for a connection again. */
void wr_lean_freed(struct wr_net *net);
/* Begins those in the queue now. */
void wr_lean_flush(struct wr_net *net);

/* ---- lean_request.c ---- */

/* Writes the request's head. WEIR_E_NOMEM. */
int wr_lean_set(struct wr_transfer *transfer, const struct wr_net_request *request);

/* Forgets request and answer; keeps memory, unless it is large. */
void wr_lean_clear(struct wr_transfer *transfer);
void wr_lean_free(struct wr_transfer *transfer);

/* ---- conn.c ---- */

/* Begins to connect. NULL: transfer->socket_errno tells why not. */
struct wr_conn *wr_conn_open(struct wr_transfer *transfer, const struct wr_address *address);

/* Whether it is connected now; else errno tells. */
bool wr_conn_is_up(struct wr_conn *conn);

/* Also if it is idle. Its memory goes when the loop has run. */
void wr_conn_close(struct wr_conn *conn);

/* An idle one to where the transfer goes, no longer idle; or NULL. */
struct wr_conn *wr_conn_take(struct wr_transfer *transfer);
/* Nothing has come on an idle one: neither its end nor what nobody asked for. */
bool wr_conn_is_quiet(const struct wr_conn *conn);

/* It is idle from now on; or closed, if there are too many. */
void wr_conn_keep(struct wr_conn *conn);

/* Closes the oldest idle one. False: there is none. */
bool wr_conn_evict(struct wr_net *net);

/* What libuv is to tell of. */
void wr_conn_watch(struct wr_conn *conn, int events);

/* ---- lean.c: what the others call ---- */

void wr_lean_on_poll(uv_poll_t *poll, int status, int events);

/* All that came is decoded. */
void wr_lean_unpacked(struct wr_transfer *transfer);

/* ---- lean_answer.c ---- */

enum wr_read {
    WR_READ_ON,    /* the answer goes on */
    WR_READ_ENDED, /* the transfer has an end, or the answer is whole */
    WR_READ_WAITS, /* for what came to be decoded, whole or not */
    WR_READ_BROKE, /* the connection has ended before */
};

/* Reads what has come. */
enum wr_read wr_lean_read(struct wr_conn *conn, int *ret_errno);

#endif
