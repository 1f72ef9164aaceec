/* SPDX-License-Identifier: MIT */
/* http_server.h - a small strict HTTP/1.1 server on libuv. It knows nothing about the content it
 * serves.
 *
 *     wr_http_server_options_init(&options);
 *     options.listens = &listen, options.listen_count = 1;
 *     options.answer = answer, options.context = mine;
 *     error = wr_http_server_new(&options, &server);       opens the sockets; all other errors show here
 *     error = wr_http_server_start(server);                one thread per loop
 *     wr_http_server_free(server);                         wr_http_server_stop first, to finish requests
 *
 *     static void answer(void *mine, struct wr_http_exchange *exchange)
 *     {
 *         if (!wr_span_is(exchange->path, "/healthz"))
 *             wr_http_refuse(exchange, 404, "there is nothing here");
 *         else
 *             wr_http_reply(exchange, 200, WR_HTTP_TEXT, wr_span_of("ok\n"));
 *     }
 *
 * An exchange is one request, read with its whole body, and its one response, given in `answer` or
 * later in the same thread. A connection has one exchange at a time. Pipelined requests wait behind
 * it; responses that are given at once are sent together. A request that core/web/request refuses
 * never reaches `answer`: it gets an error response, and the connection drops further input and
 * closes.
 *
 * To respond later, set exchange->gone, return from `answer`, and reply when ready. Other threads
 * must post a call to the exchange's loop (wr_http_post). If the client disconnects or the server
 * stops first, `gone` is called, and the exchange ends. Its spans are valid in `answer` only;
 * later, read them from the exchange again: the text has moved.
 *
 * A stream (server-sent events) starts with wr_http_stream_begin instead of wr_http_reply; then
 * write.
 *
 * Limits per listener: connections (beyond it the longest idle is closed), and bytes of unfinished
 * requests and unsent responses (the longest waiting is ended). Also limited: the size of a
 * request, and the time for a head, a body, between requests, and to read a response;
 * docs/internals/serve.md.
 *
 * Every request whose first byte arrived gets a response: 408 if it is late, 503 without room or
 * memory for it or if the server stops. Only a client that does not read its responses is
 * disconnected.
 *
 * Threads: use an exchange in its loop's thread only; wr_http_post and wr_http_server_stats in any.
 */
#ifndef WR_SERVE_SERVER_HTTP_SERVER_H
#define WR_SERVE_SERVER_HTTP_SERVER_H

#include "core/web/request/http_request.h"

#include <sys/types.h>
#include <weir/memory.h>
#include <weir/time.h>

#define WR_HTTP_LISTENS_MAX 16
#define WR_HTTP_LOOPS_MAX 64
#define WR_HTTP_PEER_MAX 48 /* size of the text of a peer's address, bytes */

struct wr_http_server;
struct wr_http_loop;
struct wr_http_exchange;

/* ---- responses ------------------------------------------------------------------------------- */

/* The first header field of every response, with any status. It tells a proxy that weir responded:
 * a 502, 503 or 504 of the proxy's own does not have it. */
#define WR_HTTP_MARK "X-Weir: 1\r\n"

struct wr_http_exchange {
    const struct wr_request *request; /* read its header fields with wr_request_find */
    enum wr_request_method method;
    struct wr_span path, query; /* parts of the request target, not decoded; query without '?' */
    struct wr_span host;        /* Host as received; empty for HTTP/1.0 without Host */
    struct wr_span body;        /* request body, after chunked decoding */
    /* "203.0.113.7", "2001:db8::1" or "unix:"; lives as long as the exchange */
    struct wr_span peer;
    uint32_t listener; /* index in options.listens */
    struct wr_http_loop *loop;
    void *context; /* for the caller's use; initially NULL */
    /* Called if the client disconnects or the server stops before the response. May be NULL. */
    void (*gone)(struct wr_http_exchange *exchange);
};

/* Header fields for wr_http_reply: complete lines "Name: value\r\n". The server adds
 * Content-Length, Date and Connection. */
#define WR_HTTP_TEXT wr_span_of("Content-Type: text/plain; charset=utf-8\r\n")
#define WR_HTTP_JSON wr_span_of("Content-Type: application/json\r\n")
#define WR_HTTP_NOTHING \
    (struct wr_span)    \
    {                   \
        NULL, 0         \
    }

/* Sends a response and ends the exchange. Copies `fields` and `body`. `fields` must not contain
 * untrusted input. 204 and 304 are sent without a body, and so is the response to HEAD. If memory
 * is short, the client gets 503 instead. */
void wr_http_reply(struct wr_http_exchange *exchange, int status, struct wr_span fields, struct wr_span body);

/* Sends the response {"error": "why"}. Escapes control characters and quotes in `why`. */
void wr_http_refuse(struct wr_http_exchange *exchange, int status, const char *why);

/* Begins a response of unknown length, which ends when the connection closes. `fields` are as for
 * wr_http_reply. The exchange remains until `gone` is called or wr_http_stream_end. */
void wr_http_stream_begin(struct wr_http_exchange *exchange, int status, struct wr_span fields);

/* Sends `bytes`, or buffers them until the client reads. Returns WEIR_E_FULL and writes nothing if
 * earlier bytes are still buffered and the total would exceed stream_max. Never calls `gone`
 * itself: if memory for the buffer is short, the stream ends soon after. */
int wr_http_stream_write(struct wr_http_exchange *exchange, struct wr_span bytes);

/* Returns the number of buffered bytes that are not sent yet. */
size_t wr_http_stream_waiting(const struct wr_http_exchange *exchange);

/* Ends the stream without calling `gone`. */
void wr_http_stream_end(struct wr_http_exchange *exchange);

/* ---- access ---------------------------------------------------------------------------------- */

/* Before `answer`, on every path, the server refuses requests that a page of another origin can
 * make a browser send. 403: a Host that is not an address, "localhost" or one of options.names; an
 * Origin other than this Host; a Sec-Fetch-Site of another site, except for links to "/". 415: a
 * body that is not application/json. Peers of a Unix socket may send any Host. */

/* Returns true if the request has "Authorization: Bearer TOKEN", compared in constant time. Returns
 * false if `token` is NULL or empty. */
bool wr_http_has_token(const struct wr_http_exchange *exchange, const char *token);

/* ---- the server ------------------------------------------------------------------------------ */

/* One address to listen at. */
struct wr_http_listen_options {
    /* "127.0.0.1:8080", "[::1]:8080", ":8080" (loopback) or "unix:/run/weir/weir.sock"; no names */
    const char *address;
    int fd;            /* listening descriptor; the server owns it if wr_http_server_new succeeds */
    bool has_fd;       /* true if `fd` is used instead of `address` */
    bool is_inherited; /* `fd` comes from an earlier server: unlink its Unix socket at the end */
    mode_t mode;       /* permissions of the Unix socket; 0: 0600 */
    gid_t group;       /* group whose members may connect if `mode` permits; with has_group */
    bool has_group;
    uid_t user; /* user that may connect besides ours and root; with has_user */
    bool has_user;
};

struct wr_http_server_options {
    const struct wr_http_listen_options *listens; /* 1 ... WR_HTTP_LISTENS_MAX addresses */
    size_t listen_count;
    void (*answer)(void *context, struct wr_http_exchange *exchange);
    const char *const *names; /* further names accepted as Host; ends with NULL; may be NULL */
    /* Returns true if the exchange is a proxy's query about another request, whose Origin,
     * Sec-Fetch-Site and body type the proxy passed on. Called only before a refusal for one of
     * these. NULL: there is no such proxy. */
    bool (*speaks)(void *context, const struct wr_http_exchange *exchange);
    /* Called when a request of another origin was refused; `why` is a constant. May be NULL. */
    void (*foreign)(void *context, const struct wr_http_exchange *exchange, const char *why);
    /* Periodic work: called every tick_ns in each loop's thread. May be NULL. */
    void (*tick)(void *context, struct wr_http_loop *loop);
    /* Called at the time set by wr_http_alarm. NULL: the alarm is not used. */
    void (*alarm)(void *context, struct wr_http_loop *loop);
    void *context;
    int64_t tick_ns; /* interval of `tick`; default 250 ms */
    uint32_t loops;  /* number of loops, each with a thread; default 1 */
    /* limit of connections per listener; default 16384, less if descriptors are scarce */
    uint32_t connections_max;
    uint32_t body_max; /* bytes of a request body; default and maximum WR_REQUEST_BODY_MAX */
    size_t stream_max; /* bytes that a stream may buffer; default 256 KiB */
    /* bytes of all buffers, divided evenly among listeners; default 64 MiB */
    size_t buffered_max;
    /* time for a head, from accept or its first byte; default 10 s */
    int64_t head_ns;
    int64_t body_ns;                 /* time for a whole body; default 30 s */
    int64_t idle_ns;                 /* time between requests; default 90 s: above nginx's 60 */
    int64_t send_ns;                 /* time for the client to read output; default 30 s */
    const weir_allocator *allocator; /* default: the system allocator */
};

void wr_http_server_options_init(struct wr_http_server_options *ret_options);

/* Returns 0 if `address` is a valid listening address, without opening it. Otherwise WEIR_E_INVAL;
 * weir_error_detail suggests a form. */
int wr_http_address_check(const char *address);

/* Opens the listening sockets; requests are served after wr_http_server_start. Returns
 * WEIR_E_INVAL, WEIR_E_NOMEM or WEIR_E_SYSTEM (weir_error_detail has the address and the reason) on
 * failure. */
int wr_http_server_new(const struct wr_http_server_options *options, struct wr_http_server **ret_server);

/* Starts one thread per loop, with all signals blocked. Returns WEIR_E_SYSTEM on failure. */
int wr_http_server_start(struct wr_http_server *server);

/* Stops accepting, answers the requests already sent with "Connection: close", and returns when all
 * connections have ended. Ends streams at once, and the rest after `grace_ns`. May be repeated. */
void wr_http_server_stop(struct wr_http_server *server, int64_t grace_ns);

/* Stops the server without grace, unlinks its Unix sockets and frees it. Accepts NULL. */
void wr_http_server_free(struct wr_http_server *server);

/* Returns the TCP port of listener `index`, for listeners at port 0; 0 if it is not TCP. */
uint16_t wr_http_server_port(const struct wr_http_server *server, size_t index);

/* ---- loops ----------------------------------------------------------------------------------- */

/* A function to run in a loop's thread. The caller owns the call, and may reuse it once it runs. */
struct wr_http_posted_call {
    struct wr_http_posted_call *next; /* next call in the loop's queue */
    void (*run)(struct wr_http_posted_call *call);
};

/* Queues a call for the loop, from any thread, until wr_http_server_free. Notes run in order.
 * wr_http_server_stop runs those that a stopped loop left, in its caller's thread. */
void wr_http_post(struct wr_http_loop *loop, struct wr_http_posted_call *call);

/* Schedules options.alarm for `at` (monotonic clock, ns) or slightly later. Call it in the loop's
 * thread. It replaces the time set before. */
void wr_http_alarm(struct wr_http_loop *loop, int64_t at);

/* Returns the index of a loop, counted from 0. */
uint32_t wr_http_loop_index(const struct wr_http_loop *loop);
struct wr_http_loop *wr_http_server_loop(const struct wr_http_server *server, uint32_t index);

/* ---- handover to another process ------------------------------------------------------------- */

/* The state of a connection that is handed over. `in` is the text received of requests without a
 * response; `out` is output not sent yet. */
struct wr_http_conn_state {
    int fd;
    uint32_t listener;
    bool closes; /* close the connection when `out` is sent */
    struct wr_span peer, out, in;
};

typedef void wr_http_conn_receiver(void *context, const struct wr_http_conn_state *baggage);

/* Freezes a running server: it does not read, decide or send until wr_http_server_thaw or
 * wr_http_server_abandon. Not for use in the server's own threads. */
void wr_http_server_freeze(struct wr_http_server *server);
void wr_http_server_thaw(struct wr_http_server *server);
/* Calls `give` for each connection of a frozen server, the longest waiting of each kind first.
 * Skips streams and partly read chunked requests, which cannot be handed over. */
void wr_http_server_each_conn(struct wr_http_server *server, wr_http_conn_receiver *give, void *context);
/* Ends a frozen server, or one that was not started: closes its connections without sending a
 * response and keeps its socket files. wr_http_server_free must follow. */
void wr_http_server_abandon(struct wr_http_server *server);

/* Takes over a connection before the start of the server. Its requests are processed afterwards. */
void wr_http_server_adopt_conn(struct wr_http_server *server, const struct wr_http_conn_state *baggage);

/* Returns the listening descriptor; -1 if there are not as many listeners. */
int wr_http_server_listen_fd(const struct wr_http_server *server, size_t index);

/* ---- statistics ------------------------------------------------------------------------------ */

/* Totals over all loops since the start. */
struct wr_http_server_stats {
    uint64_t accepted, requests;
    uint64_t refused;     /* requests that were malformed or too large */
    uint64_t foreign;     /* requests refused because a page of another origin sent them */
    uint64_t late;        /* connections closed because a head, a body or a reader took too long */
    uint64_t turned;      /* connections refused or closed for lack of room or permission */
    uint64_t answered[6]; /* responses by first digit of the status; [0]: streams begun */
    uint64_t connections; /* connections open now */
    uint64_t streams;     /* streams open now; included in `connections` */
    uint64_t buffered_bytes;
    int64_t lag_ns; /* delay of the last tick, in the loop where it is greatest */
};

void wr_http_server_stats(const struct wr_http_server *server, struct wr_http_server_stats *ret_stats);

#endif
