/* SPDX-License-Identifier: MIT */
/* http.h - a small strict HTTP/1.1 server on libuv, which knows nothing of what it serves.
 *
 *     wr_http_options_init(&options);
 *     options.listens = &listen, options.listen_count = 1, options.answer = answer, options.context = mine;
 *     error = wr_http_new(&options, &server);              listens: what can fail has failed here
 *     error = wr_http_start(server);                       one thread for each loop
 *     wr_http_free(server);                                wr_http_stop first, for those that have a request
 *
 *     static void answer(void *mine, struct wr_http_exchange *exchange)
 *     {
 *         if (!wr_span_is(exchange->path, "/healthz"))
 *             wr_http_refuse(exchange, 404, "there is nothing here");
 *         else
 *             wr_http_reply(exchange, 200, WR_HTTP_TEXT, wr_span_of("ok\n"));
 *     }
 *
 * An exchange is one request, read whole (its body too), and its answer. Each is answered exactly once: in `answer`, or
 * later in the same thread. A connection has one exchange at a time; requests that are pipelined behind it wait, and
 * answers that are given at once go out together. What core/rules/request refuses never gets here: it is answered, what
 * follows is dropped, and the connection closed.
 *
 * An answer that takes its time: set exchange->gone, return from `answer`, and reply later; whoever works in another
 * thread posts a note to the exchange's loop (wr_http_post). If the client goes away first, or the server stops, `gone`
 * is called, after which the exchange is no more. Spans of the exchange are good in `answer` only; afterwards look at
 * the exchange again: its text has moved.
 *
 * A stream (server-sent events): wr_http_stream_begin instead of reply, then write; `gone` tells when it is over.
 *
 * Bounded: connections of each listener (the one that has been idle longest makes room), bytes of a request, of the
 * unfinished requests and unread answers of each listener (the one that has waited longest makes room),
 * time for a head, for a body, between requests, for an answer to be taken. docs/internals/serve.md has the numbers.
 *
 * A request that has begun to come is answered, whatever happens: 408 if it is late, 503 if there is no room or memory
 * for it or the server ends. Only a client that does not read its answers is hung up on.
 *
 * Threads: functions on an exchange in its loop's thread only; wr_http_post and wr_http_stats in any.
 */
#ifndef WR_SHELL_HTTP_HTTP_H
#define WR_SHELL_HTTP_HTTP_H

#include "core/rules/request/request.h"

#include <sys/types.h>
#include <weir/memory.h>
#include <weir/time.h>

#define WR_HTTP_LISTENS_MAX 16
#define WR_HTTP_LOOPS_MAX 64
#define WR_HTTP_PEER_MAX 48 /* bytes of a peer's address */

struct wr_http;
struct wr_http_loop;
struct wr_http_exchange;

/* ---- answers ------------------------------------------------------------------------------------------- */

/* The first field of every answer, whatever its status and whichever file writes it. A proxy tells by it an answer from
 * silence: its own 502, 503 or 504 does not have it. */
#define WR_HTTP_MARK "X-Weir: 1\r\n"

struct wr_http_exchange {
    const struct wr_request *request; /* wr_request_find for its fields */
    enum wr_request_method method;
    struct wr_span path, query; /* of its target, as they were sent; the query without '?' */
    struct wr_span host;        /* as it was sent; empty: HTTP/1.0 without one */
    struct wr_span body;        /* decoded */
    struct wr_span peer;        /* "203.0.113.7", "2001:db8::1", "unix:"; stays as long as the exchange */
    uint32_t listener;          /* index in options.listens */
    struct wr_http_loop *loop;
    void *context; /* yours; NULL at first */
    /* The client has gone or the server stops, and nobody waits for an answer any more. May be NULL. */
    void (*gone)(struct wr_http_exchange *exchange);
};

/* Fields for wr_http_reply, which are whole lines "Name: value\r\n". Content-Length, Date and Connection come by
 * themselves. */
#define WR_HTTP_TEXT wr_span_of("Content-Type: text/plain; charset=utf-8\r\n")
#define WR_HTTP_JSON wr_span_of("Content-Type: application/json\r\n")
#define WR_HTTP_NOTHING \
    (struct wr_span)    \
    {                   \
        NULL, 0         \
    }

/* Answers. `fields` and `body` are copied, and must be sound: nothing of a stranger's in `fields`. The body of 204 and
 * 304 is empty; that of HEAD is left out. The exchange is over. Without memory for the answer the client gets a 503. */
void wr_http_reply(struct wr_http_exchange *exchange, int status, struct wr_span fields, struct wr_span body);

/* Answers {"error": "why"}. Control characters and quotes are escaped. */
void wr_http_refuse(struct wr_http_exchange *exchange, int status, const char *why);

/* Begins an answer without an end, which the end of the connection will end. `fields` as above. The exchange stays
 * until `gone`, or until stream_end. */
void wr_http_stream_begin(struct wr_http_exchange *exchange, int status, struct wr_span fields);

/* Sends, or keeps what cannot be sent yet. WEIR_E_FULL: something waits already, and with this it would be more than
 * stream_max: nothing was written.
 * Never calls `gone` itself: where there is no memory for what waits, the stream ends soon. */
int wr_http_stream_write(struct wr_http_exchange *exchange, struct wr_span bytes);

/* What waits to be sent. */
size_t wr_http_stream_waiting(const struct wr_http_exchange *exchange);

/* Ends it without calling `gone`. */
void wr_http_stream_end(struct wr_http_exchange *exchange);

/* ---- who may ------------------------------------------------------------------------------------------- */

/* What a page of another origin can make a browser send is refused before `answer`, on every path: a Host that is no
 * address, not "localhost" and none of options.names; an Origin that is not this Host; a Sec-Fetch-Site of another
 * site, but for links to "/" (403); a body that is not application/json (415). Peers of a Unix socket may write any
 * Host. */

/* Whether it has "Authorization: Bearer TOKEN", compared in constant time. False if `token` is NULL or empty. */
bool wr_http_has_token(const struct wr_http_exchange *exchange, const char *token);

/* ---- the server ---------------------------------------------------------------------------------------- */

/* Where to listen. */
struct wr_http_listen {
    /* "127.0.0.1:8080", "[::1]:8080", ":8080" (loopback), "unix:/run/weir/weir.sock". Names are not resolved. */
    const char *address;
    int fd;            /* listens already, and is ours from wr_http_new on if that succeeds; -1: none */
    bool has_fd;       /* `fd` counts */
    bool is_inherited; /* `fd` is from an earlier server of the same address, and we take a Unix socket away at the end
                        */
    mode_t mode;       /* of a Unix socket; 0: 0600 */
    gid_t group;       /* of a Unix socket, if has_group: whose members may connect where `mode` lets them */
    bool has_group;
    uid_t user; /* who may connect besides ourselves and root, if has_user */
    bool has_user;
};

struct wr_http_options {
    const struct wr_http_listen *listens; /* 1 … WR_HTTP_LISTENS_MAX */
    size_t listen_count;
    void (*answer)(void *context, struct wr_http_exchange *exchange);
    const char *const *names; /* Hosts that are ours besides addresses and localhost, each without port; ends with NULL;
                               * NULL: none */
    /* Whether the exchange is a proxy's question about another request, whose Origin, Sec-Fetch-Site and body it has
     * passed on. Asked only of what would be refused for these. NULL: there are none. */
    bool (*speaks)(void *context, const struct wr_http_exchange *exchange);
    /* Something was refused as foreign; `why` has no text of a stranger's. May be NULL. */
    void (*foreign)(void *context, const struct wr_http_exchange *exchange, const char *why);
    /* Every tick_ns in each loop's thread, for what happens now and then; NULL: never. */
    void (*tick)(void *context, struct wr_http_loop *loop);
    /* The time of wr_http_alarm has come; NULL: there is no alarm. */
    void (*alarm)(void *context, struct wr_http_loop *loop);
    void *context;
    int64_t tick_ns;          /* default 250 ms */
    uint32_t loops;           /* default 1 */
    uint32_t connections_max; /* of each listener; default 16384, less if descriptors are scarce */
    uint32_t body_max;        /* default WR_REQUEST_BODY_MAX, which is the most */
    size_t stream_max;        /* bytes that may wait for the reader of a stream; default 256 KiB */
    size_t buffered_max;      /* bytes of all buffers; each listener has an equal part; default 64 MiB */
    int64_t head_ns;          /* for the whole head, from the connection's or the request's first byte; default 10 s */
    int64_t body_ns;          /* for the whole body; default 30 s */
    int64_t idle_ns;          /* between two requests; default 90 s: longer than nginx's 60 */
    int64_t send_ns;          /* for an answer to be taken, or what waits in a stream; default 30 s */
    const weir_allocator *allocator; /* default: the system's */
};

void wr_http_options_init(struct wr_http_options *ret_options);

/* Whether it is one; nothing is made. WEIR_E_INVAL: weir_error_detail says what would be right. */
int wr_http_address_check(const char *address);

/* Listens; nobody is served yet. WEIR_E_INVAL, WEIR_E_SYSTEM (weir_error_detail says where and why), WEIR_E_NOMEM. */
int wr_http_new(const struct wr_http_options *options, struct wr_http **ret_server);

/* One thread for each loop, in which signals are blocked. WEIR_E_SYSTEM. */
int wr_http_start(struct wr_http *server);

/* Accepts no more, answers what has been sent, with "Connection: close", and returns when all connections have ended or
 * `grace_ns` is over; the rest is cut off. Streams end at once. Again is fine. */
void wr_http_stop(struct wr_http *server, int64_t grace_ns);

/* Stops without grace, if it runs, and takes sockets of the file system away. NULL is fine. */
void wr_http_free(struct wr_http *server);

/* The port of listener `index`, where it is TCP: for listens at port 0. */
uint16_t wr_http_port(const struct wr_http *server, size_t index);

/* ---- loops --------------------------------------------------------------------------------------------- */

/* Something to be done in a loop's thread. It is the caller's memory and may be posted again once it runs. */
struct wr_http_note {
    struct wr_http_note *next; /* the loop's */
    void (*run)(struct wr_http_note *note);
};

/* From any thread, until wr_http_free. Notes run in the order in which they came; those that no loop runs any more when
 * it stops are run by wr_http_stop, in its thread. */
void wr_http_post(struct wr_http_loop *loop, struct wr_http_note *note);

/* options.alarm is called at `at` (of the monotonic clock) or a little later, in the loop's thread, from which this is
 * called. It replaces what was set before. */
void wr_http_alarm(struct wr_http_loop *loop, int64_t at);

/* From 0 on. */
uint32_t wr_http_loop_index(const struct wr_http_loop *loop);
struct wr_http_loop *wr_http_loop_at(const struct wr_http *server, uint32_t index);

/* ---- for another process ------------------------------------------------------------------------------- */

/* A connection, and what is known of it. The text is what has come of requests that are not answered. */
struct wr_http_baggage {
    int fd;
    uint32_t listener;
    bool closes; /* when `out` is sent */
    struct wr_span peer, out, in;
};

typedef void wr_http_give(void *context, const struct wr_http_baggage *baggage);

/* From here on nothing is read, decided or sent, until thaw or leave. For a server that runs; not from its threads. */
void wr_http_freeze(struct wr_http *server);
void wr_http_thaw(struct wr_http *server);
/* Of a frozen server: its connections, in which order they wait. What cannot be handed over (streams, and requests in
 * chunks that are half read) is left out. */
void wr_http_each(struct wr_http *server, wr_http_give *give, void *context);
/* Of a frozen server, or one that was not started: it ends, and lets go of its sockets without a word; their names in
 * the file system stay. wr_http_free must follow. */
void wr_http_leave(struct wr_http *server);

/* Of a server that was not started: takes the connection over. Its requests are answered once it starts. */
void wr_http_adopt(struct wr_http *server, const struct wr_http_baggage *baggage);

/* The descriptor that listens; -1: there are not so many. */
int wr_http_listener(const struct wr_http *server, size_t index);

/* ---- figures ------------------------------------------------------------------------------------------- */

/* Sums over all loops since the start. */
struct wr_http_stats {
    uint64_t accepted, requests;
    uint64_t refused;     /* requests that were not well-formed, or too large */
    uint64_t foreign;     /* requests that were refused as those of other pages */
    uint64_t late;        /* connections that were closed because a head, a body or a reader took too long */
    uint64_t turned;      /* connections that were closed for want of room, or because of who was there */
    uint64_t answered[6]; /* by hundreds of the status; [0]: streams begun */
    uint64_t connections; /* open now */
    uint64_t streams;     /* of them, streams */
    uint64_t buffered_bytes;
    int64_t lag_ns; /* how late the last tick was, of the latest loop */
};

void wr_http_stats(const struct wr_http *server, struct wr_http_stats *ret_stats);

#endif
