/* SPDX-License-Identifier: MIT */
/* net_internal.h - declarations that the parts of a net share.
 *
 *     net.c            creates, closes, posts           socket.c     libcurl's sockets
 *     transfer.c       life of a transfer               easy.c       its libcurl handle
 *     deadline.c       timeouts                         result.c     result of a transfer
 *     proxy.c          the proxy's URL                  callbacks.c  calls to the owner
 *     transfer_body.c  bodies, a part in each round     decode.h     content codings
 *     tls.c            servers that never stop sending  http1.h      the direct path: no libcurl
 *     memory_guard.c   checks memory for libcurl
 *
 * libcurl must not be called from inside its callbacks, except to get and set options. So a
 * callback only notes what must happen. Transfers end in wr_net_settle, which runs after each call
 * into libcurl.
 */
#ifndef WR_HTTP_NET_NET_INTERNAL_H
#define WR_HTTP_NET_NET_INTERNAL_H

#include "base/heap.h"
#include "http/loop/wakeup.h"
#include "http/net/decode.h"
#include "http/net/http1.h"
#include "http/net/net.h"

#include <curl/curl.h>
#include <pthread.h>

#define WR_NET_INTERIMS_MAX 16                   /* most 1xx responses; servers send one or two */
#define WR_NET_CODINGS "deflate, gzip, br, zstd" /* for Accept-Encoding; implemented in decode.c */
/* Fits "host:port:address,…". */
#define WR_PIN_MAX (WR_NAME_MAX + sizeof ":65535" + (size_t)WR_DNS_ADDRESSES_MAX * 48)

enum wr_transfer_stage {
    WR_STAGE_IDLE,      /* in the pool */
    WR_STAGE_POSTED,    /* started in a libcurl callback; begins when libcurl returns */
    WR_STAGE_RESOLVING, /* waits for addresses */
    WR_STAGE_CURL,      /* handled by libcurl */
    WR_STAGE_HTTP1,     /* handled without libcurl */
    WR_STAGE_ENDED,     /* on_done will be called */
    WR_STAGE_LEAVING,   /* on_done was called; a resolver's answer is still on the way */
};

/* A transfer's body while it is received. */
struct wr_transfer_body {
    struct wr_transfer *next, *prev; /* list of transfers whose body waits to be decoded */
    bool is_waiting;
    bool is_held;     /* held by the owner since held_at; held_ns: earlier holds */
    bool is_paused;   /* libcurl reads no more of this body */
    bool is_received; /* libcurl has finished the transfer; `code` is its result */
    CURLcode code;
    struct wr_decoder *decoder; /* decoder of the content coding; NULL: not needed so far */
    struct wr_buf waiting;      /* received bytes, not all decoded yet */
    size_t waiting_at;          /* start of the undecoded bytes in `waiting` */
    uint64_t wire;              /* bytes of the body received, before decoding */
    int64_t held_at, held_ns;
};

/* A net's transfers whose bodies wait to be decoded. */
struct wr_decode_queue {
    struct wr_transfer *first, *last;
    uv_prepare_t turn; /* active while a body waits */
    uv_idle_t no_wait;
};

struct wr_transfer {
    struct wr_net *net;
    struct wr_transfer *next, *prev; /* list of pooled (next only), running or ended transfers */
    struct wr_net_callbacks calls;
    void *context;
    enum wr_transfer_stage stage;

    /* Data for libcurl, kept from one use to the next. */
    CURL *easy;
    CURLSH *share;        /* this handle's own DNS cache, for pins: libcurl's cannot grow */
    char pin[WR_PIN_MAX]; /* the pinned addresses; "": none */
    bool is_pin_known;    /* libcurl has processed the pin */
    char error_text[CURL_ERROR_SIZE];

    /* The request. */
    struct curl_slist *fields, *pins;
    struct wr_dns_query query;
    struct wr_net_posted_call answered;
    bool is_answer_posted;
    bool is_proxy_asked; /* the query is for the proxy's name */
    bool is_https;
    bool bypasses_libcurl;      /* takes the direct path, without libcurl */
    bool is_admitted, is_young; /* counted in memory_guard.c */
    size_t failures;            /* number of failed allocations when the transfer began */
    bool is_idempotent;
    bool is_writing;                  /* libcurl is about to write the request */
    struct wr_transfer *next_writing; /* next in net->writing */
    bool has_settings;                /* the handle has options beyond a plain GET */
    uint16_t port;
    uint64_t body_max;
    char host[WR_NAME_MAX + 1]; /* host name or address, without brackets */

    struct wr_http1_transfer http1;
    struct wr_transfer_body body;

    struct wr_socket *connecting; /* few: libcurl tries one address of each family at once */

    /* The response. */
    struct wr_head head;
    bool is_head_reported;
    bool is_cancelled;
    bool is_busy;               /* in a callback of the owner, but not inside libcurl */
    enum wr_guard_class judged; /* class of the last blocked address */
    int socket_errno;           /* errno of the last failure to open or connect a socket */
    struct wr_heap_item due;
    int64_t due_at; /* time of the transfer in the heap of deadlines */
    int64_t speed_at;
    uint64_t speed_bytes; /* bytes on the wire at speed_at */
    char words[256];
    struct wr_net_result result;
    bool has_end; /* result.end is set; libcurl's result is ignored */
};

struct wr_socket {
    struct wr_poll poll;
    struct wr_net *net;
    struct wr_socket *next;    /* next in the spare list or in its owner's list */
    struct wr_transfer *owner; /* transfer that connects the socket; NULL once connected */
    int fd;
    int events;     /* events that libuv watches; 0: none */
    bool is_wanted; /* true: libcurl uses the socket; false: idle */
    bool has_read;  /* libcurl has waited for bytes, so the socket is connected */
    bool is_tls;
};

struct wr_proxy {
    bool is_set;
    bool is_https;
    char url[WR_NAME_MAX + sizeof "https://[]:65535"]; /* the proxy without user and password */
    char user[256], password[256];                     /* decoded credentials; "": none */
    char host[WR_NAME_MAX + 1];                        /* a name, or an address without brackets */
    uint16_t port;
};

struct wr_net {
    struct wr_net_options options; /* options with defaults; strings are copies */
    struct wr_proxy proxy;
    const weir_allocator *allocator;
    const weir_clock *clock;
    CURLM *multi;
    struct wr_transfer *writing; /* requests that libcurl began to write in this call */
    CURLSH *empty_cache;         /* empty connection cache, see wr_easy_forget_connection; or NULL */
    uv_timer_t curl_timer, due_timer;
    uv_idle_t no_wait; /* while active, the loop polls without waiting */
    uv_check_t polled; /* runs after the loop has polled */
    struct wr_wakeup wakeup;
    struct wr_round round;
    int open_handles; /* open libuv handles */
    bool in_curl;
    uint32_t records; /* TLS records received in the current call into libcurl */
    int64_t records_since;
    const struct wr_transfer *last_progress; /* transfer of libcurl's last progress callback */
    uint32_t looks;                          /* consecutive progress callbacks for last_progress */
    bool speaks_http2;
    bool has_read_certificates; /* libcurl has read its certificates: an https server has responded */
    bool in_settle;
    bool has_cancelled; /* a cancelled transfer could not be ended at once */
    bool is_short;      /* memory is short: connections are not kept */

    struct wr_socket **sockets; /* sockets that libcurl watches or watched, by descriptor */
    size_t sockets_room;
    struct wr_socket *spares; /* spare structs, so that watching needs no memory */
    uint32_t connections;
    uint64_t opened, started;

    struct wr_http1 http1;
    struct wr_decode_queue decode_queue;
    uint32_t paused; /* libcurl's transfers that are paused: too much waits to be decoded */

    struct wr_transfer *pool, *under_way, *ended;
    uint32_t made, transfers; /* made: all transfers; transfers: those not in the pool */
    struct wr_heap dues;
    int64_t due_armed_at; /* time set in due_timer; WEIR_FOREVER: off */

    pthread_mutex_t post_lock;
    struct wr_net_posted_call *posted, **posted_end;
    struct wr_net_posted_call *calls, **calls_end; /* posted calls that the loop has taken over */
};

/* ---- net.c ---- */

/* Ends transfers that have finished. Called after each call into libcurl or change of state. */
void wr_net_settle(struct wr_net *net);

/* Calls on_done of ended transfers. */
void wr_net_finish(struct wr_net *net);

/* Makes the loop call wr_net_settle soon. */
void wr_net_wake(struct wr_net *net);

/* Returns true if connections should be closed after use, so that libcurl's cache has room for
 * those that it may still open. With a full cache, each return of a connection scans all of it. */
bool wr_net_is_crowded(const struct wr_net *net);

/* Returns true if a server's validator is short and sound enough to be sent back to it. */
bool wr_net_validator_is_usable(struct wr_span validator);

/* Counts a closed libuv handle. Frees the net with the last one. */
void wr_net_handle_closed(struct wr_net *net);

/* ---- proxy.c ---- */

/* Parses a proxy URL. Returns WEIR_E_INVAL if it is invalid. */
int wr_proxy_parse(const char *text, struct wr_proxy *ret_proxy);

/* ---- socket.c ---- */

/* libcurl's callbacks. The context is the transfer for wr_socket_open, the net for the others. */
curl_socket_t wr_socket_open(void *context, curlsocktype purpose, struct curl_sockaddr *address);
int wr_socket_close(void *context, curl_socket_t fd);
int wr_socket_watch(CURL *easy, curl_socket_t fd, int what, void *context, void *unused);
int wr_socket_set_timer(CURLM *multi, long after_ms, void *context);
void wr_socket_free_spares(struct wr_net *net);

/* Returns the same socket under a descriptor number that libcurl does not confuse with another
 * socket. Returns -1 with errno set if that fails or fd is -1. */
int wr_socket_renumber(struct wr_net *net, int fd);

/* Releases the sockets that a transfer is connecting. Must be called before the transfer is removed
 * from libcurl, which then closes them without notice: afterwards another thread might have a
 * descriptor of the same number. */
void wr_socket_release_connecting(struct wr_transfer *transfer);

/* Watches idle sockets again, because no transfer is paused any more. */
void wr_socket_watch_idle(struct wr_net *net);

/* Returns the class of a blocked address, or WR_GUARD_PUBLIC if it is allowed. */
enum wr_guard_class wr_net_classify_address(const struct wr_net *net, const struct wr_address *address);

/* ---- transfer.c ---- */

/* Ends a transfer: removes it from libcurl and all lists, for wr_net_finish. Not inside libcurl. */
void wr_transfer_end(struct wr_transfer *transfer);

/* Calls on_done, and returns the transfer to the pool. */
void wr_transfer_finish(struct wr_transfer *transfer);

void wr_transfer_free(struct wr_transfer *transfer);

/* ---- callbacks.c: bool functions return false if the transfer must end ---- */

/* Calls before_send, because the request is about to be written. */
bool wr_callback_before_send(struct wr_transfer *transfer, const struct wr_address *address, uint16_t port);

/* Report that the first bytes of the request will be or have been passed to the kernel, which
 * libcurl does not report. Since wr_callback_before_send the process may have been stopped or
 * preempted. */
void wr_callback_writing(struct wr_transfer *transfer);
void wr_callback_written(struct wr_transfer *transfer);

void wr_callback_first_byte(struct wr_transfer *transfer);

/* Handle the next line of a head or trailer, and the next decoded bytes of a body. */
bool wr_callback_line(struct wr_transfer *transfer, struct wr_span line);
bool wr_callback_body(struct wr_transfer *transfer, const char *data, size_t bytes);

/* ---- transfer_body.c ---- */

void wr_transfer_body_init(struct wr_transfer *transfer);

/* Takes the next bytes of a body as received. Returns false if the transfer must end. */
bool wr_transfer_body_take(struct wr_transfer *transfer, struct wr_span piece);

/* Returns true if bytes wait to be decoded or the owner holds the body, so it has not ended. */
bool wr_transfer_body_waits(const struct wr_transfer *transfer);

/* Returns true if the connection must not be read: the body is held or has FULL_BYTES waiting. */
bool wr_transfer_body_is_full(const struct wr_transfer *transfer);

/* Removes an ending transfer from the queue of bodies to decode. */
void wr_transfer_body_dequeue(struct wr_transfer *transfer);

void wr_transfer_body_clear(struct wr_transfer *transfer);

/* ---- easy.c ---- */

/* Creates a handle with the options that all requests share. Returns WEIR_E_NOMEM on failure. */
int wr_easy_new(struct wr_transfer *transfer);
void wr_easy_free(struct wr_transfer *transfer);

/* Sets the options of one request. Returns WEIR_E_NOMEM on failure. */
int wr_easy_set_request(struct wr_transfer *transfer, const struct wr_net_request *request);

/* Pins the name to connect to (a proxy's, if set) to addresses. Returns WEIR_E_NOMEM on failure. */
int wr_easy_pin(struct wr_transfer *transfer, const struct wr_dns_answer *answer);

/* Makes a handle forget its last connection, after libcurl has finished with it. */
void wr_easy_forget_connection(struct wr_transfer *transfer);

/* Handles libcurl's result for a transfer. */
void wr_easy_done(struct wr_transfer *transfer, CURLcode code);

/* Continues or ends a transfer whose received bytes are all decoded. */
void wr_easy_decoded(struct wr_transfer *transfer);

/* Clears the pause of a transfer that ends. */
void wr_easy_unpause(struct wr_transfer *transfer);

/* Clears the request in a transfer's handle. */
void wr_easy_clear(struct wr_transfer *transfer);

/* ---- tls.c ---- */

/* Makes OpenSSL report records of this handle, so that no server can hold up the loop. Returns
 * false if libcurl does not use OpenSSL. */
bool wr_tls_watch(struct wr_net *net, CURL *easy);

/* ---- memory_guard.c ---- */

/* Returns true if there is memory for one more transfer by libcurl. */
bool wr_memory_guard_admit(struct wr_transfer *transfer);

/* Note that a transfer has all its memory, except a decoder's; and that a transfer has ended. */
void wr_memory_guard_mark_grown(struct wr_transfer *transfer);
void wr_memory_guard_release(struct wr_transfer *transfer);

/* Returns true if an allocation by libcurl has failed since the transfer began. */
bool wr_memory_guard_alloc_failed(const struct wr_transfer *transfer);

/* ---- deadline.c ---- */

int wr_deadline_begin(struct wr_transfer *transfer);
/* Moves a transfer in the heap of deadlines after a completed step. */
void wr_deadline_change(struct wr_transfer *transfer, int64_t now);
void wr_deadline_end(struct wr_transfer *transfer);
void wr_deadline_on_timer(uv_timer_t *timer);

/* ---- result.c ---- */

/* Sets how a transfer ends, unless it is already set. `words` adds details; NULL: none. */
void wr_transfer_set_end(struct wr_transfer *transfer, enum wr_net_end end, const char *words);

/* Returns true if an errno means that memory, descriptors or ports are exhausted. */
bool wr_result_is_scarce(int error);

/* Sets how a transfer ends from libcurl's result. */
void wr_result_from_curl(struct wr_transfer *transfer, CURLcode code);

/* Fills in the sizes and flags of the result, counted by libcurl or by this code. */
void wr_result_fill(struct wr_transfer *transfer);

#endif
