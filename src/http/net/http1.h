/* SPDX-License-Identifier: MIT */
/* http1.h - sends GET and HEAD over plain http without libcurl and without a proxy: the direct
 * path.
 *
 * libcurl costs three times as much as the system calls that a page needs. The direct path needs
 * one send, one or two recv, and a share of an epoll_wait. libcurl handles the rest: https,
 * proxies, and requests with a body. Both obey the contract in net.h, and tests/net tests both.
 *
 *     http1.c           queue, connection, sending, resending, end of a transfer
 *     http1_conn.c      connections: opened, idle, closed
 *     http1_response.c  the response: lines, body, framing
 *     http1_request.c   the bytes to send
 *
 *     wr_http1_start ──▶ queue ──(loop polled)──▶ idle or new connection ──▶ before_send ──▶ send
 *                         ▲                                                                   │
 *                         └───── a reused connection was dead: once more, on a new one ◀──────┘
 *
 * A connection stays in epoll for its whole life and waits for bytes. Any event on an idle
 * connection closes it: the server has closed it, or sent unrequested bytes. So transfers wait
 * until the loop has polled, which reveals such events first. wr_net_flush does not wait, but
 * checks the connection instead. Bytes are read into one buffer for all connections, and passed on
 * from there.
 */
#ifndef WR_HTTP_NET_HTTP1_H
#define WR_HTTP_NET_HTTP1_H

#include "base/map.h"
#include "core/web/http/chunks.h"
#include "http/loop/round.h"
#include "http/net/net.h"

#define WR_HTTP1_READ_BYTES ((size_t)64 << 10)
#define WR_HTTP1_KEY_MAX (WR_NAME_MAX + 2) /* bytes: a host, and its port in two */

struct wr_http1_conn {
    struct wr_poll poll;
    struct wr_net *net;
    struct wr_transfer *transfer;          /* transfer that uses the connection; NULL: idle */
    struct wr_http1_conn *next;            /* idle: same host and port; connecting: same transfer */
    struct wr_http1_conn *prev;            /* idle: previous one to the same host and port */
    struct wr_http1_conn *older, *younger; /* list of all idle connections by age */
    int64_t idle_at;
    struct wr_address address;
    int fd;
    int events; /* events that libuv watches */
    bool is_connected;
    bool is_used; /* the connection has carried a response before */
    uint16_t port;
    uint16_t key_bytes;
    char key[WR_HTTP1_KEY_MAX];
};

/* The part of a response that is read next. */
enum wr_http1_framing {
    WR_FRAMING_HEAD,
    WR_FRAMING_LENGTH,
    WR_FRAMING_CHUNKS,
    WR_FRAMING_TRAILER,
    WR_FRAMING_CLOSE,    /* a body that ends when the connection is closed */
    WR_FRAMING_COMPLETE, /* nothing is left: the response is complete */
};

/* The direct path's part of a transfer. */
struct wr_http1_transfer {
    struct wr_transfer *next, *prev; /* the queue of transfers that start after a poll */
    bool is_queued;
    bool is_fresh;    /* uses a new connection, because a reused one was dead */
    bool is_head;     /* HEAD: the response has no body */
    bool is_last;     /* closes the connection after the response */
    bool is_kept;     /* the server keeps the connection open */
    bool is_given_up; /* the server takes no more of the request */
    uint8_t version;
    uint8_t tried; /* number of addresses tried so far */
    struct wr_dns_answer addresses;
    int64_t race_at; /* when to try the next address in parallel; 0: never */
    struct wr_http1_conn *conn, *connecting;
    uint16_t key_bytes;
    char key[WR_HTTP1_KEY_MAX];
    struct wr_buf request;
    size_t written; /* bytes of the request written */

    /* The response. */
    enum wr_http1_framing frame;
    struct wr_chunks chunks;
    struct wr_buf line; /* the beginning of an incomplete line */
    uint64_t left;      /* bytes of the body left, for WR_FRAMING_LENGTH */
    uint64_t received;  /* bytes of head and body received */
};

/* The direct path's part of a net. */
struct wr_http1 {
    struct wr_hash_key hash_key;
    struct wr_map idle; /* by key: the youngest idle connection to the host and port */
    struct wr_http1_conn *youngest, *oldest;
    struct wr_transfer *first, *last; /* queue of transfers that start after a poll */
    uint32_t queued;
    bool is_flushing; /* the loop has not polled: idle connections need a check */
    uint32_t open;    /* number of open connections */
    char *bytes;      /* buffer for the bytes read last */
    uv_idle_t no_wait;
    uv_check_t polled;
};

/* ---- http1.c: called by the net ---- */

/* Prepares a net for the direct path. Returns WEIR_E_NOMEM or WEIR_E_SYSTEM on failure. */
int wr_http1_open(struct wr_net *net);
/* Closes all idle connections. */
void wr_http1_close(struct wr_net *net);
void wr_http1_release(struct wr_net *net);

/* Returns true if a request can take the direct path. */
bool wr_http1_can_send(const struct wr_net *net, const struct wr_net_request *request);

/* Queues a transfer that connects to one of these addresses once the loop has polled. */
void wr_http1_start(struct wr_transfer *transfer, const struct wr_dns_answer *addresses);

/* Tries the next address in parallel, because race_at has come. */
void wr_http1_try_next_address(struct wr_transfer *transfer);

/* Releases the queue place and connections of a transfer that ends. */
void wr_http1_detach(struct wr_transfer *transfer);

/* Starts queued transfers soon, because a connection may be available. */
void wr_http1_start_soon(struct wr_net *net);
/* Starts queued transfers now. */
void wr_http1_flush(struct wr_net *net);

/* ---- http1_request.c ---- */

/* Builds the request of a transfer. Returns WEIR_E_NOMEM without memory. */
int wr_http1_set_request(struct wr_transfer *transfer, const struct wr_net_request *request);

/* Clears request and response; keeps buffers that are not large. */
void wr_http1_clear(struct wr_transfer *transfer);
void wr_http1_free(struct wr_transfer *transfer);

/* ---- http1_conn.c ---- */

/* Starts a connection. Returns NULL on failure, with the reason in transfer->socket_errno. */
struct wr_http1_conn *wr_http1_conn_open(struct wr_transfer *transfer, const struct wr_address *address);

/* Returns true if the connection is established; otherwise sets errno. */
bool wr_http1_conn_is_established(struct wr_http1_conn *conn);

/* Closes a connection, idle or not. Its memory is freed when the loop has run. */
void wr_http1_conn_close(struct wr_http1_conn *conn);

/* Returns an idle connection to the transfer's host and port, no longer idle, or NULL. */
struct wr_http1_conn *wr_http1_conn_take_idle(struct wr_transfer *transfer);
/* Returns true if an idle connection has received neither its end nor unrequested bytes. */
bool wr_http1_conn_is_quiet(const struct wr_http1_conn *conn);

/* Makes a connection idle, or closes it if there are too many. */
void wr_http1_conn_make_idle(struct wr_http1_conn *conn);

/* Closes the oldest idle connection. Returns false if there is no idle connection. */
bool wr_http1_conn_evict(struct wr_net *net);

/* Sets the events that libuv reports. */
void wr_http1_conn_watch(struct wr_http1_conn *conn, int events);

/* ---- http1.c: called by the other files ---- */

void wr_http1_on_poll(uv_poll_t *poll, int status, int events);

/* Continues or ends a transfer whose received bytes are all decoded. */
void wr_http1_decoded(struct wr_transfer *transfer);

/* ---- http1_response.c ---- */

enum wr_http1_read_result {
    WR_HTTP1_READ_INCOMPLETE, /* the response is incomplete */
    WR_HTTP1_READ_ENDED,      /* the transfer must end, or the response is complete */
    WR_HTTP1_READ_DECODING,   /* received bytes wait to be decoded */
    WR_HTTP1_READ_BROKEN,     /* the connection ended too early */
};

/* Reads and handles the bytes that have arrived. */
enum wr_http1_read_result wr_http1_read(struct wr_http1_conn *conn, int *ret_errno);

#endif
