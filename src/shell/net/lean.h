/* SPDX-License-Identifier: MIT */
/* lean.h - sends GET and HEAD over plain http without libcurl and without a proxy: the direct path.
 *
 * libcurl costs three times as much as the system calls that a page needs. The direct path needs
 * one send, one or two recv, and a share of an epoll_wait. libcurl handles the rest: https,
 * proxies, and requests with a body. Both obey the contract in net.h, and tests/net tests both.
 *
 *     lean.c         queue, connection, sending, resending, end of a transfer
 *     conn.c         connections: opened, idle, closed        lean_request.c   the bytes to send
 *     lean_answer.c  the response: lines, body, framing
 *
 *     wr_lean_start ──▶ queue ──(loop polled)──▶ idle or new connection ──▶ before_send ──▶ send
 *                         ▲                                                                   │
 *                         └───── a reused connection was dead: once more, on a new one ◀──────┘
 *
 * A connection stays in epoll for its whole life and waits for bytes. Any event on an idle
 * connection closes it: the server has closed it, or sent unrequested bytes. So transfers
 * wait until the loop has polled, which reveals such events first. wr_net_flush does not wait, but
 * checks the connection instead. Bytes are read into one buffer for all connections, and passed on
 * from there.
 */
#ifndef WR_SHELL_NET_LEAN_H
#define WR_SHELL_NET_LEAN_H

#include "base/map.h"
#include "core/rules/http/chunks.h"
#include "shell/loop/round.h"
#include "shell/net/net.h"

#define WR_LEAN_READ_BYTES ((size_t)64 << 10)
#define WR_LEAN_KEY_MAX (WR_NAME_MAX + 2) /* bytes: a host, and its port in two */

struct wr_conn {
    struct wr_poll poll;
    struct wr_net *net;
    struct wr_transfer *transfer;    /* transfer that uses the connection; NULL: idle */
    struct wr_conn *next;            /* idle: same host and port; connecting: same transfer */
    struct wr_conn *prev;            /* idle: previous one to the same host and port */
    struct wr_conn *older, *younger; /* list of all idle connections by age */
    int64_t idle_at;
    struct wr_address address;
    int fd;
    int events; /* events that libuv watches */
    bool is_connected;
    bool is_used; /* the connection has carried a response before */
    uint16_t port;
    uint16_t key_bytes;
    char key[WR_LEAN_KEY_MAX];
};

/* The part of a response that is read next. */
enum wr_frame {
    WR_FRAME_HEAD,
    WR_FRAME_LENGTH,
    WR_FRAME_CHUNKS,
    WR_FRAME_TRAILER,
    WR_FRAME_CLOSE, /* a body that ends when the connection is closed */
    WR_FRAME_WHOLE, /* nothing is left: the response is complete */
};

/* The direct path's part of a transfer. */
struct wr_lean_part {
    struct wr_transfer *next, *prev; /* the queue of transfers that start after a poll */
    bool is_queued;
    bool is_fresh;    /* uses a new connection, because a reused one was dead */
    bool is_head;     /* HEAD: the response has no body */
    bool is_last;     /* closes the connection after the response */
    bool is_kept;     /* the server keeps the connection open */
    bool is_given_up; /* the server takes no more of the request */
    uint8_t version;
    uint8_t tried; /* number of addresses tried so far */
    struct wr_answer addresses;
    int64_t race_at; /* when to try the next address in parallel; 0: never */
    struct wr_conn *conn, *connecting;
    uint16_t key_bytes;
    char key[WR_LEAN_KEY_MAX];
    struct wr_buf request;
    size_t written; /* bytes of the request written */

    /* The response. */
    enum wr_frame frame;
    struct wr_chunks chunks;
    struct wr_buf line; /* the beginning of an incomplete line */
    uint64_t left;      /* bytes of the body left, for WR_FRAME_LENGTH */
    uint64_t received;  /* bytes of head and body received */
};

/* The direct path's part of a net. */
struct wr_lean {
    struct wr_hash_key hash_key;
    struct wr_map idle; /* by key: the youngest idle connection to the host and port */
    struct wr_conn *youngest, *oldest;
    struct wr_transfer *first, *last; /* queue of transfers that start after a poll */
    uint32_t queued;
    bool is_flushing; /* the loop has not polled: idle connections need a check */
    uint32_t open;    /* number of open connections */
    char *bytes;      /* buffer for the bytes read last */
    uv_idle_t no_wait;
    uv_check_t polled;
};

/* ---- lean.c: called by the net ---- */

/* Prepares a net for the direct path. Returns WEIR_E_NOMEM or WEIR_E_SYSTEM on failure. */
int wr_lean_open(struct wr_net *net);
/* Closes all idle connections. */
void wr_lean_close(struct wr_net *net);
void wr_lean_release(struct wr_net *net);

/* Returns true if a request can take the direct path. */
bool wr_lean_takes(const struct wr_net *net, const struct wr_net_request *request);

/* Queues a transfer that connects to one of these addresses once the loop has polled. */
void wr_lean_start(struct wr_transfer *transfer, const struct wr_answer *addresses);

/* Tries the next address in parallel, because race_at has come. */
void wr_lean_race(struct wr_transfer *transfer);

/* Releases the queue place and connections of a transfer that ends. */
void wr_lean_leave(struct wr_transfer *transfer);

/* Starts queued transfers soon, because a connection may be available. */
void wr_lean_freed(struct wr_net *net);
/* Starts queued transfers now. */
void wr_lean_flush(struct wr_net *net);

/* ---- lean_request.c ---- */

/* Builds the request of a transfer. Returns WEIR_E_NOMEM without memory. */
int wr_lean_set(struct wr_transfer *transfer, const struct wr_net_request *request);

/* Clears request and response; keeps buffers that are not large. */
void wr_lean_clear(struct wr_transfer *transfer);
void wr_lean_free(struct wr_transfer *transfer);

/* ---- conn.c ---- */

/* Starts a connection. Returns NULL on failure, with the reason in transfer->socket_errno. */
struct wr_conn *wr_conn_open(struct wr_transfer *transfer, const struct wr_address *address);

/* Returns true if the connection is established; otherwise sets errno. */
bool wr_conn_is_up(struct wr_conn *conn);

/* Closes a connection, idle or not. Its memory is freed when the loop has run. */
void wr_conn_close(struct wr_conn *conn);

/* Returns an idle connection to the transfer's host and port, no longer idle, or NULL. */
struct wr_conn *wr_conn_take(struct wr_transfer *transfer);
/* Returns true if an idle connection has received neither its end nor unrequested bytes. */
bool wr_conn_is_quiet(const struct wr_conn *conn);

/* Makes a connection idle, or closes it if there are too many. */
void wr_conn_keep(struct wr_conn *conn);

/* Closes the oldest idle connection. Returns false if there is no idle connection. */
bool wr_conn_evict(struct wr_net *net);

/* Sets the events that libuv reports. */
void wr_conn_watch(struct wr_conn *conn, int events);

/* ---- lean.c: called by the other files ---- */

void wr_lean_on_poll(uv_poll_t *poll, int status, int events);

/* Continues or ends a transfer whose received bytes are all decoded. */
void wr_lean_unpacked(struct wr_transfer *transfer);

/* ---- lean_answer.c ---- */

enum wr_read {
    WR_READ_ON,    /* the response is incomplete */
    WR_READ_ENDED, /* the transfer must end, or the response is complete */
    WR_READ_WAITS, /* received bytes wait to be decoded */
    WR_READ_BROKE, /* the connection ended too early */
};

/* Reads and handles the bytes that have arrived. */
enum wr_read wr_lean_read(struct wr_conn *conn, int *ret_errno);

#endif
