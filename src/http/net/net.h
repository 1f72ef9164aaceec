/* SPDX-License-Identifier: MIT */
/* net.h - sends HTTP requests and receives their responses on a libuv loop, mostly with libcurl.
 *
 *     wr_net_new(&options, &net);               on the thread that runs the loop, like all below
 *     wr_net_start(net, &request, &calls, context, &transfer);
 *     uv_run(loop, UV_RUN_DEFAULT);             returns when every transfer has ended
 *     wr_net_close(net);                        then run the loop once more, as for any uv handle
 *
 * A transfer is ONE hop: redirects, retries and pacing belong to its owner. Its steps in order:
 *
 *     A wr_resolver resolves the host's name, never libcurl. The guard checks its addresses, and
 *     they are pinned. A connection is reused or opened, and its address is checked again.
 *     before_send    The request is about to be written, or resent because a reused connection was
 *                    dead. The owner asks its gate; false ends the transfer as WR_NET_REFUSED.
 *     on_head        The final head is complete. A head with doubtful framing or above the size
 *                    limit has already failed the transfer.
 *     on_body        Some bytes of the body, decoded. body_max limits the decoded size.
 *     on_done        Called once for each successful start, never from inside wr_net_start.
 *
 * Only http and https. Certificates are verified. No cookies, no .netrc, no proxy from the
 * environment. Userinfo and fragment of a URL are not sent. With a proxy, the target's addresses
 * are checked before, but the proxy resolves the name itself and connects to any address.
 *
 * Limits exist for connecting (name and TLS included), the first byte, a slow body, the total time,
 * the size of head and body, and the number of transfers and connections.
 *
 * Threads: only the loop's thread; wr_net_post may be called from others. wr_net_new blocks SIGPIPE
 * on the loop's thread, because OpenSSL writes to sockets that the peer may have closed.
 */
#ifndef WR_HTTP_NET_NET_H
#define WR_HTTP_NET_NET_H

#include "core/web/http/head.h"
#include "core/web/url/address_guard.h"
#include "core/web/url/url.h"
#include "http/net/resolver.h"

#include <uv.h>

struct wr_net;
struct wr_transfer;

/* ---- result of a transfer ---- */

/* Whether and how to retry, if the request may be repeated at all. */
enum wr_net_retry {
    WR_NET_NEVER, /* a retry would fail again or is not needed, whatever the status */
    WR_NET_LATER, /* a retry may succeed, and counts as an attempt */
    WR_NET_FREE,  /* nothing was sent: a retry costs no attempt */
};

/* The party that caused a failure. */
enum wr_net_blame {
    WR_NET_BLAME_NONE,
    WR_NET_BLAME_HOST,
    WR_NET_BLAME_PROXY
};

/* end, name, text, retry, blame */
#define WR_NET_ENDS(X)                                                                                               \
    X(WR_NET_DONE, "done", "answered", WR_NET_NEVER, WR_NET_BLAME_NONE)                                              \
    X(WR_NET_CANCELLED, "cancelled", "cancelled", WR_NET_FREE, WR_NET_BLAME_NONE)                                    \
    X(WR_NET_REFUSED, "refused", "refused for now: queue it again", WR_NET_FREE, WR_NET_BLAME_NONE)                  \
    X(WR_NET_SCARCE, "scarce", "out of memory, descriptors or ports", WR_NET_FREE, WR_NET_BLAME_NONE)                \
    X(WR_NET_BLOCKED, "blocked", "the address is not allowed", WR_NET_NEVER, WR_NET_BLAME_NONE)                      \
    X(WR_NET_NO_NAME, "no_name", "there is no such host", WR_NET_NEVER, WR_NET_BLAME_HOST)                           \
    X(WR_NET_NAME_FAILED, "name_failed", "the host's name could not be looked up", WR_NET_LATER, WR_NET_BLAME_NONE)  \
    X(WR_NET_CONNECT, "connect", "no connection", WR_NET_LATER, WR_NET_BLAME_HOST)                                   \
    X(WR_NET_CONNECT_TIMEOUT, "connect_timeout", "connecting took too long", WR_NET_LATER, WR_NET_BLAME_HOST)        \
    X(WR_NET_TLS, "tls", "the TLS handshake failed, or the certificate is invalid", WR_NET_NEVER, WR_NET_BLAME_HOST) \
    X(WR_NET_FIRST_BYTE_TIMEOUT, "first_byte_timeout", "no response in time", WR_NET_LATER, WR_NET_BLAME_HOST)       \
    X(WR_NET_TOTAL_TIMEOUT, "total_timeout", "the response took too long", WR_NET_LATER, WR_NET_BLAME_HOST)          \
    X(WR_NET_TOO_SLOW, "too_slow", "the response arrived too slowly", WR_NET_LATER, WR_NET_BLAME_HOST)               \
    X(WR_NET_BROKEN, "broken", "the connection ended before the response was complete", WR_NET_LATER,                \
      WR_NET_BLAME_HOST)                                                                                             \
    X(WR_NET_PROTOCOL, "protocol", "the response is not valid HTTP", WR_NET_LATER, WR_NET_BLAME_HOST)                \
    X(WR_NET_CODING, "coding", "the body could not be decoded", WR_NET_NEVER, WR_NET_BLAME_HOST)                     \
    X(WR_NET_PROXY, "proxy", "the proxy failed", WR_NET_LATER, WR_NET_BLAME_PROXY)

enum wr_net_end {
#define X(end, name, words, retry, blame) end,
    WR_NET_ENDS(X)
#undef X
};

/* Returns the name of an end for logs and metrics: "connect_timeout". */
const char *wr_net_end_name(enum wr_net_end end);
/* Returns the text of an end for people: "there is no such host". */
const char *wr_net_end_text(enum wr_net_end end);

struct wr_net_result {
    enum wr_net_end end;
    enum wr_net_retry retry; /* NEVER also if sent and not repeatable */
    enum wr_net_blame blame;
    int status;                /* status of the final head; 0: no final head */
    const char *words;         /* reason: printable ASCII, no secrets; valid during on_done */
    struct wr_address address; /* where the request was sent; with a proxy, the proxy's address */
    uint16_t port;             /* port of `address`; 0: nothing was sent */
    uint8_t version;           /* HTTP version: 10, 11, 20; 0: no response */
    bool is_reused;            /* the connection had carried a request before */
    bool is_truncated;         /* body_max or on_body cut the body */
    uint32_t sends;            /* how often the request was written; above 1: resent */
    uint32_t head_bytes;       /* size of all heads and the trailer */
    uint64_t wire_bytes;       /* size of the body as received */
    uint64_t body_bytes;       /* size of the decoded body, as given to on_body */
    int64_t asked_at;          /* time of wr_net_start; 0 in the others: not reached */
    int64_t resolved_at, sent_at, first_byte_at, done_at;
};

/* ---- a request ---- */

struct wr_net_field {
    struct wr_span name, value;
};

/* Returns true if a repetition has the same effect as one request (RFC 9110 9.2.2), false for
 * unknown methods. NULL means GET. */
bool wr_net_is_idempotent(const char *method);

/* A request. wr_net_start copies everything that it needs, except `body`. */
struct wr_net_request {
    const struct wr_url *url;
    const char *method; /* NULL: GET */
    /* Header lines, including credentials, but not Host, Connection, Content-Length,
     * Transfer-Encoding, TE or Expect. */
    const struct wr_net_field *fields;
    size_t field_count;
    struct wr_span etag;          /* for If-None-Match; ignored if invalid or very long */
    struct wr_span last_modified; /* for If-Modified-Since; ignored if invalid or very long */
    struct wr_span body;          /* valid until on_done; not for GET and HEAD */
    uint64_t body_max;            /* most bytes of the response; 0: as in the options */
    bool is_last;                 /* close the connection: the next start is too late for it */
};

/* Arguments of before_send. */
struct wr_net_send {
    struct wr_address address;
    uint16_t port;
    uint32_t number; /* 1, 2, …; above 1: the request is resent */
    int64_t now;
};

/* Callbacks; all except on_done may be NULL. May start and cancel transfers, not close the net. */
struct wr_net_callbacks {
    bool (*before_send)(void *context, const struct wr_net_send *send); /* false: do not send */
    /* The request was written only now, later than before_send reported. */
    void (*on_late)(void *context, int64_t now);
    bool (*on_head)(void *context, const struct wr_head *head);     /* false: read no body */
    bool (*on_body)(void *context, const char *data, size_t bytes); /* false: read no more of it */
    void (*on_done)(void *context, const struct wr_net_result *result);
    /* A raw line of a head with its line end, interim responses included, trailers excluded. */
    void (*on_line)(void *context, struct wr_span line);
};

/* ---- the net ---- */

#define WR_NET_HEAD_MAX ((uint32_t)256 << 10) /* libcurl's limit is little higher */
#define WR_NET_BODY_MAX ((uint64_t)1 << 40)
#define WR_NET_IDLE_NS (60 * WEIR_SECOND)

/* Options. A field that is 0 has the default in its comment. */
struct wr_net_options {
    const weir_allocator *allocator;
    const weir_clock *clock;
    uv_loop_t *loop;              /* required; must outlive the net */
    struct wr_resolver *resolver; /* required, must outlive the net; nets may share it */
    const char *agent;            /* User-Agent; NULL: none is sent */
    const char *proxy;            /* http:// or https:// URL, optionally with user:password@ */
    const char *ca_file;          /* trusted certificates; NULL: the system's */
    bool allow_private;           /* allow private addresses: check none */
    bool uses_libcurl_only;       /* for tests: no transfer bypasses libcurl */
    /* Classifies addresses. Default wr_guard_class; tests set others. */
    enum wr_guard_class (*judge)(void *context, const struct wr_address *address);
    void *judge_context;
    uint32_t transfers_max; /* simultaneous transfers; default 256, at most 65536 */
    /* Open connections, idle included. Default 4 * transfers_max, if descriptors suffice. */
    uint32_t connections_max;
    int64_t idle_ns;       /* longest idle time, whole seconds; default WR_NET_IDLE_NS */
    uint32_t head_max;     /* largest head, bytes; default and maximum WR_NET_HEAD_MAX */
    uint64_t body_max;     /* largest body, bytes; default 32 MiB, at most WR_NET_BODY_MAX */
    int64_t connect_ns;    /* limit for connecting; default 15 s */
    int64_t first_byte_ns; /* limit from sending to the first byte; default 30 s */
    int64_t total_ns;      /* limit for the whole transfer; default 5 minutes */
    int64_t speed_ns;      /* time window in which speed_min is measured; default 30 s */
    uint32_t speed_min;    /* least bytes per second after the first byte; default 64 */
};

/* Returns WEIR_E_INVAL if the text is invalid for options.proxy. The detail does not show the text,
 * because it may contain a password. */
int wr_net_proxy_check(const char *proxy);

/* Creates a net. Returns WEIR_E_INVAL, WEIR_E_NOMEM or WEIR_E_SYSTEM on failure. */
int wr_net_new(const struct wr_net_options *options, struct wr_net **ret_net);

/* Starts a transfer, which is valid until on_done returns. Returns WEIR_E_INVAL (the detail names
 * the fault of the request), WEIR_E_FULL (transfers_max) or WEIR_E_NOMEM, and makes no calls. */
int wr_net_start(struct wr_net *net, const struct wr_net_request *request, const struct wr_net_callbacks *calls,
                 void *context, struct wr_transfer **ret_transfer);

/* Appends the head of a request as HTTP/1.1 sends it. `is_bare`: omits the caller's fields, which
 * may be secret, and the default fields that they replace. */
void wr_net_append_head(struct wr_buf *buf, const struct wr_net *net, const struct wr_net_request *request,
                        bool is_bare);

/* Sends requests at once, not after the loop's next poll. For callers that must not be late. Calls
 * before_send. Has no effect on libcurl's transfers. Must not be called from on_head or on_body. */
void wr_net_flush(struct wr_net *net);

/* wr_net_pause_body stops a body, called from on_body if the owner cannot take data so fast. The
 * rest of the body waits at the server until wr_net_resume_body, and no timeout counts that time.
 * Data that was read before may still be delivered. Callbacks of the net must not call
 * wr_net_resume_body. */
void wr_net_pause_body(struct wr_transfer *transfer);
void wr_net_resume_body(struct wr_transfer *transfer);

/* Cancels a transfer. Afterwards only on_done is called, later and from the loop. */
void wr_net_cancel(struct wr_transfer *transfer);

/* Returns the connection limit. It is lower than requested if there are too few descriptors. */
uint32_t wr_net_connections(const struct wr_net *net);

/* Returns true if the response comes from the proxy, not the host. The head must be complete. */
bool wr_net_is_proxy_response(const struct wr_transfer *transfer);

/* A function to run on the loop's thread. */
struct wr_net_posted_call {
    struct wr_net_posted_call *next;
    void (*run)(struct wr_net_posted_call *call);
};

/* Runs a call on the loop's thread, in the order of posting. May be called from any thread. The
 * call must stay valid until it runs, and must not be posted twice before. */
void wr_net_post(struct wr_net *net, struct wr_net_posted_call *call);

struct wr_net_stats {
    uint32_t transfers;       /* number of running transfers */
    uint32_t connections;     /* number of open connections, idle ones included */
    uint64_t started, opened; /* totals of transfers and connections */
};
void wr_net_stats(const struct wr_net *net, struct wr_net_stats *ret_stats);

/* Cancels all transfers and calls their on_done, runs all posted calls, and closes the net. Must
 * not be called from a callback. Memory is freed when the loop has run again. NULL is allowed. */
void wr_net_close(struct wr_net *net);

#endif
