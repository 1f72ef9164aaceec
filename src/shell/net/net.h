/* SPDX-License-Identifier: MIT */
/* net.h - bytes on the wire: one request, one answer, on a libuv loop; by libcurl, or without it (lean.h).
 *
 *     wr_net_new(&options, &net);                       on the thread that runs the loop, as all below
 *     wr_net_start(net, &request, &calls, context, &transfer);
 *     uv_run(loop, UV_RUN_DEFAULT);                     returns when every transfer has ended
 *     wr_net_close(net);                                and run the loop once more, as for any handle of libuv
 *
 * A transfer is ONE hop: redirects, retries and pacing belong to whoever owns it. What happens, in this order:
 *
 *     the host's name is resolved by a wr_resolver, never by libcurl; its addresses are judged, and pinned;
 *     a connection is taken or made; the address that is connected to is judged again (D5);
 *     before_send     the request is about to be written. The owner's gate is asked here; "no" ends the transfer as
 *                     WR_NET_REFUSED. Called again when a reused connection turns out to be dead and it is sent anew;
 *     on_head         the final head is there: refused before, if its framing is doubtful or it is too large (A4 - A9);
 *     on_body         what has come of the body, decoded. Bounded by body_max, after decoding (A5);
 *     on_done         once for each start that succeeded, and never from inside wr_net_start.
 *
 * Only http and https; certificates are verified; no cookies, no .netrc, no proxy from the environment; userinfo and
 * fragment of a URL are not sent. With a proxy the addresses of the target are judged before, but the proxy resolves
 * the name again by itself: what it connects to, nobody here sees.
 *
 * Everything has an end: connecting (name and TLS included), the first byte, a slow body, the whole, the head, the
 * body, transfers, connections.
 *
 * Threads: one, that of the loop; only wr_net_post may be called from others. wr_net_new blocks SIGPIPE on it, for
 * OpenSSL writes to sockets that the peer may have closed.
 */
#ifndef WR_SHELL_NET_NET_H
#define WR_SHELL_NET_NET_H

#include "core/rules/http/head.h"
#include "core/rules/url/guard.h"
#include "core/rules/url/url.h"
#include "shell/net/resolver.h"

#include <uv.h>

struct wr_net;
struct wr_transfer;

/* ---- how a transfer ends ---- */

/* What is to be done about it, if the request may be repeated at all. */
enum wr_net_retry {
    WR_NET_NEVER, /* it will end the same way, or was done; what a status means is the owner's to know */
    WR_NET_LATER, /* may go well next time, and counts as an attempt */
    WR_NET_FREE,  /* nothing was tried: costs no attempt */
};

/* Who is to be held responsible. */
enum wr_net_blame {
    WR_NET_NOBODY,
    WR_NET_HOST,
    WR_NET_PROXY_HOST
};

/* end, name, words, retry, blame */
#define WR_NET_ENDS(X)                                                                                          \
    X(WR_NET_DONE, "done", "answered", WR_NET_NEVER, WR_NET_NOBODY)                                             \
    X(WR_NET_CANCELLED, "cancelled", "cancelled", WR_NET_FREE, WR_NET_NOBODY)                                   \
    X(WR_NET_REFUSED, "refused", "not now: to be queued again", WR_NET_FREE, WR_NET_NOBODY)                     \
    X(WR_NET_SCARCE, "scarce", "out of memory, descriptors or ports", WR_NET_FREE, WR_NET_NOBODY)               \
    X(WR_NET_BLOCKED, "blocked", "the address is not allowed", WR_NET_NEVER, WR_NET_NOBODY)                     \
    X(WR_NET_NO_NAME, "no_name", "there is no such host", WR_NET_NEVER, WR_NET_HOST)                            \
    X(WR_NET_NAME_FAILED, "name_failed", "the host's name could not be looked up", WR_NET_LATER, WR_NET_NOBODY) \
    X(WR_NET_CONNECT, "connect", "no connection", WR_NET_LATER, WR_NET_HOST)                                    \
    X(WR_NET_CONNECT_TIMEOUT, "connect_timeout", "connecting took too long", WR_NET_LATER, WR_NET_HOST)         \
    X(WR_NET_TLS, "tls", "the server could not show who it is", WR_NET_NEVER, WR_NET_HOST)                      \
    X(WR_NET_FIRST_BYTE_TIMEOUT, "first_byte_timeout", "no answer in time", WR_NET_LATER, WR_NET_HOST)          \
    X(WR_NET_TOTAL_TIMEOUT, "total_timeout", "the answer took too long", WR_NET_LATER, WR_NET_HOST)             \
    X(WR_NET_TOO_SLOW, "too_slow", "the answer came too slowly", WR_NET_LATER, WR_NET_HOST)                     \
    X(WR_NET_BROKEN, "broken", "the connection ended before the answer did", WR_NET_LATER, WR_NET_HOST)         \
    X(WR_NET_PROTOCOL, "protocol", "the answer is not sound HTTP", WR_NET_LATER, WR_NET_HOST)                   \
    X(WR_NET_CODING, "coding", "the body could not be decoded", WR_NET_NEVER, WR_NET_HOST)                      \
    X(WR_NET_PROXY, "proxy", "the proxy failed", WR_NET_LATER, WR_NET_PROXY_HOST)

enum wr_net_end {
#define X(end, name, words, retry, blame) end,
    WR_NET_ENDS(X)
#undef X
};

/* "connect_timeout", … for logs and metrics. */
const char *wr_net_end_name(enum wr_net_end end);
/* "there is no such host", … for people. */
const char *wr_net_end_text(enum wr_net_end end);

struct wr_net_result {
    enum wr_net_end end;
    enum wr_net_retry retry; /* WR_NET_NEVER also if it was sent and must not be sent twice (A18) */
    enum wr_net_blame blame;
    int status;        /* of the final head; 0 if none came */
    const char *words; /* why, for people: printable ASCII and without secrets (V10); good until on_done returns */
    struct wr_address address; /* that the request was sent to; with a proxy, the proxy's */
    uint16_t port;             /* 0: nothing was sent */
    uint8_t version;           /* 10, 11, 20; 0: no answer */
    bool is_reused;            /* by a connection that was there before */
    bool is_truncated;         /* the body ends where body_max or on_body cut it */
    uint32_t sends;            /* how often the request was written: 0, 1, or more where it was sent anew */
    uint32_t head_bytes;       /* of all heads and the trailer */
    uint64_t wire_bytes;       /* of the body as it came */
    uint64_t body_bytes;       /* decoded, as given to on_body */
    int64_t asked_at;          /* of wr_net_start; instants by the net's clock, 0 where it did not come so far */
    int64_t resolved_at, sent_at, first_byte_at, done_at;
};

/* ---- a request ---- */

struct wr_net_field {
    struct wr_span name, value;
};

/* Whether doing it twice is as good as once (RFC 9110 9.2.2); of a method that nobody knows it is not. NULL: GET. */
bool wr_net_is_idempotent(const char *method);

/* All of it is read by wr_net_start and may go afterwards, but for `body`. */
struct wr_net_request {
    const struct wr_url *url;
    const char *method; /* NULL: GET */
    /* Header lines, credentials among them. Not Host, Connection, Content-Length, Transfer-Encoding, TE, Expect. */
    const struct wr_net_field *fields;
    size_t field_count;
    struct wr_span etag;          /* for If-None-Match; left out if it is not one, or absurdly long (C11) */
    struct wr_span last_modified; /* for If-Modified-Since; likewise */
    struct wr_span body;          /* stays until on_done; only with a method that has one */
    uint64_t body_max;            /* of the answer, at most WR_NET_BODY_MAX; 0: as in the options */
    bool is_last;                 /* close the connection afterwards: pacing will not use it again in time */
};

/* What before_send is told. */
struct wr_net_send {
    struct wr_address address;
    uint16_t port;
    uint32_t number; /* 1, or more when it is sent anew */
    int64_t now;
};

/* All but on_done may be NULL. They may start and cancel transfers, but not close the net. */
struct wr_net_calls {
    bool (*before_send)(void *context, const struct wr_net_send *send); /* false: do not send */
    void (*on_late)(void *context, int64_t now); /* it got out only now, later than before_send was told */
    bool (*on_head)(void *context, const struct wr_head *head);     /* false: the body is not wanted */
    bool (*on_body)(void *context, const char *data, size_t bytes); /* false: no more is wanted */
    void (*on_done)(void *context, const struct wr_net_result *result);
    /* Each line of the heads as it came, with its end; those of interim answers as well, but not of a trailer. */
    void (*on_line)(void *context, struct wr_span line);
};

/* ---- the net ---- */

#define WR_NET_HEAD_MAX ((uint32_t)256 << 10) /* libcurl takes little more */
#define WR_NET_BODY_MAX ((uint64_t)1 << 40)
#define WR_NET_IDLE_NS (60 * WEIR_SECOND)

/* Fields that are 0 have the defaults that stand beside them. */
struct wr_net_options {
    const weir_allocator *allocator;
    const weir_clock *clock;
    uv_loop_t *loop;              /* must be given, and outlive the net */
    struct wr_resolver *resolver; /* likewise; several nets may have one */
    const char *agent;            /* User-Agent; NULL: none is sent */
    const char *proxy;            /* http:// or https://, with user and password if it wants them */
    const char *ca_file;          /* certificates to trust; NULL: the system's */
    bool allow_private;           /* judge no address */
    bool uses_libcurl_only;       /* nothing goes the lean way; for tests, that compare the two */
    enum wr_guard_class (*judge)(void *context, const struct wr_address *address); /* wr_guard_class; for tests */
    void *judge_context;
    uint32_t transfers_max;   /* at once: 256; at most 65536 */
    uint32_t connections_max; /* open, idle ones included: 4 * transfers_max, as far as the descriptors reach */
    int64_t idle_ns;          /* how long a connection may lie idle and still be used: WR_NET_IDLE_NS; whole seconds */
    uint32_t head_max;        /* bytes: WR_NET_HEAD_MAX, which is also the most */
    uint64_t body_max;        /* bytes: 32 MiB; at most WR_NET_BODY_MAX */
    int64_t connect_ns;       /* 15 s */
    int64_t first_byte_ns;    /* from the request's sending: 30 s */
    int64_t total_ns;         /* 5 minutes */
    int64_t speed_ns;         /* the window for speed_min: 30 s */
    uint32_t speed_min;       /* bytes a second on the wire from the first byte on: 64 */
};

/* Whether options.proxy may be this. WEIR_E_INVAL; the detail does not show it, for it may have a password. */
int wr_net_proxy_check(const char *proxy);

/* WEIR_E_INVAL, WEIR_E_NOMEM, WEIR_E_SYSTEM. */
int wr_net_new(const struct wr_net_options *options, struct wr_net **ret_net);

/* WEIR_E_INVAL (what is wrong with the request: C10), WEIR_E_FULL (transfers_max), WEIR_E_NOMEM; then nothing is
 * called. Else the transfer is good until on_done returns. */
int wr_net_start(struct wr_net *net, const struct wr_net_request *request, const struct wr_net_calls *calls,
                 void *context, struct wr_transfer **ret_transfer);

/* The head of such a request, as it is sent by HTTP/1.1. `is_bare`: without the caller's fields, which may be secrets,
 * and without what they stand in for (V10). */
void wr_net_append_head(struct wr_buf *buf, const struct wr_net *net, const struct wr_net_request *request,
                        bool is_bare);

/* Sends what was started now, and not only after the loop has looked at all that came meanwhile: for who must not be
 * late. before_send is called in here. What libcurl has is left to it. Not from on_head and on_body. */
void wr_net_flush(struct wr_net *net);

/* From on_body, for who cannot take so much so fast: what is left of the body waits at the server, and the time does
 * not count as the server's, until wr_net_go_on is called: not from a call of the net's. Some may be given all the
 * same, that had been read. */
void wr_net_hold(struct wr_transfer *transfer);
void wr_net_go_on(struct wr_transfer *transfer);

/* From here on nothing but on_done is called, from the loop and not from here. */
void wr_net_cancel(struct wr_transfer *transfer);

/* How many connections there may be: fewer than asked for, if descriptors do not reach. */
uint32_t wr_net_connections(const struct wr_net *net);

/* Once the head is there: whether these are the words of the proxy, and not of the host. */
bool wr_net_is_proxys(const struct wr_transfer *transfer);

/* Something to run on the loop's thread. */
struct wr_net_call {
    struct wr_net_call *next;
    void (*run)(struct wr_net_call *call);
};

/* From any thread; runs in the order of posting. The call must stay put until it runs, and be posted once at a time. */
void wr_net_post(struct wr_net *net, struct wr_net_call *call);

struct wr_net_stats {
    uint32_t transfers;       /* under way */
    uint32_t connections;     /* open, idle ones included */
    uint64_t started, opened; /* transfers and connections so far */
};
void wr_net_stats(const struct wr_net *net, struct wr_net_stats *ret_stats);

/* Cancels what is under way (each on_done is called in here), runs what was posted, and ends. Not from inside a call.
 * The memory goes when the loop has run once more. NULL is fine. */
void wr_net_close(struct wr_net *net);

#endif
