/* SPDX-License-Identifier: MIT */
/* state.h - what the parts of a net share.
 *
 *     net.c       making, closing, posting          socket.c   sockets: judged, opened, watched by libuv, closed
 *     transfer.c  a transfer's life                  easy.c     its handle of libcurl: options and callbacks
 *     deadline.c  when it has lasted too long        result.c   how it ended, in our words
 *     proxy.c     the proxy's URL                    tell.c     what its owner is asked and told
 *     unpack.c    bodies, some of them in each turn  decode.h   their coding
 *     tls.c       servers that never stop talking    lean.h     the way without libcurl, and its files
 *     admit.c     whether libcurl has the memory
 *
 * libcurl must not be called from inside its callbacks, but for getting and setting options. So a callback only notes
 * what is to happen, and transfers end in wr_net_settle, which runs after each call into libcurl.
 */
#ifndef WR_SHELL_NET_STATE_H
#define WR_SHELL_NET_STATE_H

#include "base/heap.h"
#include "shell/loop/wakeup.h"
#include "shell/net/decode.h"
#include "shell/net/lean.h"
#include "shell/net/net.h"

#include <curl/curl.h>
#include <pthread.h>

#define WR_NET_INTERIMS_MAX 16                   /* answers 1xx; servers send one or two */
#define WR_NET_CODINGS "deflate, gzip, br, zstd" /* for Accept-Encoding; decode.c knows them */
#define WR_PIN_MAX (WR_NAME_MAX + sizeof ":65535" + (size_t)WR_ANSWER_MAX * 48) /* "host:port:address,…" */

enum wr_stage {
    WR_STAGE_IDLE,      /* in the pool */
    WR_STAGE_POSTED,    /* started from inside libcurl: begins when that has returned */
    WR_STAGE_RESOLVING, /* asks for addresses */
    WR_STAGE_CURL,      /* is libcurl's */
    WR_STAGE_LEAN,      /* goes the lean way */
    WR_STAGE_ENDED,     /* on_done is due */
    WR_STAGE_LEAVING,   /* all is said; an answer for it is still in the queue of calls */
};

/* A transfer's body, as it comes. */
struct wr_body {
    struct wr_transfer *next, *prev; /* of those that wait for a turn */
    bool is_waiting;
    bool is_held;     /* by its owner, since held_at; before for held_ns in all */
    bool is_paused;   /* libcurl reads no more of it */
    bool is_all_here; /* libcurl is done with it; `code` says how */
    CURLcode code;
    struct wr_decoder *decoder; /* NULL: nothing was decoded yet */
    struct wr_buf waiting;      /* what came and is not decoded yet, */
    size_t waiting_at;          /* from here on */
    uint64_t wire;              /* bytes, as they came */
    int64_t held_at, held_ns;
};

/* A net's transfers of which something waits to be decoded. */
struct wr_unpacking {
    struct wr_transfer *first, *last;
    uv_prepare_t turn; /* while anything waits */
    uv_idle_t no_wait;
};

struct wr_transfer {
    struct wr_net *net;
    struct wr_transfer *next, *prev; /* in the pool (next only), under way, or ended */
    struct wr_net_calls calls;
    void *context;
    enum wr_stage stage;

    /* libcurl's: they stay from one use to the next */
    CURL *easy;
    CURLSH *share;        /* holds what is pinned, for this handle alone: libcurl's cache cannot grow */
    char pin[WR_PIN_MAX]; /* what is in there; "": nothing */
    bool is_pin_known;    /* libcurl has taken it */
    char said[CURL_ERROR_SIZE];

    /* the request */
    struct curl_slist *fields, *pins;
    struct wr_query query;
    struct wr_net_call answered;
    bool is_answer_posted;
    bool is_proxy_asked; /* the query is for the proxy's name */
    bool is_https;
    bool is_lean;               /* goes without libcurl */
    bool is_admitted, is_young; /* see admit.c */
    size_t failures;            /* of libcurl's to get memory, when it began */
    bool is_idempotent;
    bool is_writing;                  /* libcurl is about to write the request */
    struct wr_transfer *next_writing; /* such as well */
    bool has_settings;                /* beyond those of a plain GET: to be reset */
    uint16_t port;
    uint64_t body_max;
    char host[WR_NAME_MAX + 1]; /* without brackets */

    struct wr_lean_part lean;
    struct wr_body body;

    struct wr_socket *connecting; /* few: libcurl tries an address of each family at once */

    /* the answer */
    struct wr_head head;
    bool is_head_told;
    bool is_cancelled;
    bool is_busy;               /* inside calls of the owner, and not libcurl's */
    enum wr_guard_class judged; /* the last address that was refused */
    int socket_errno;           /* why there was no socket */
    struct wr_heap_item due;
    int64_t due_at; /* where it is in the heap */
    int64_t speed_at;
    uint64_t speed_bytes; /* on the wire at speed_at */
    char words[256];
    struct wr_net_result result;
    bool has_end; /* result.end is set: what libcurl says does not matter */
};

struct wr_socket {
    struct wr_poll poll;
    struct wr_net *net;
    struct wr_socket *next;    /* spare, or the owner's */
    struct wr_transfer *owner; /* that connects it; NULL when it is connected */
    int fd;
    int events;     /* that libuv watches; 0: none */
    bool is_wanted; /* by libcurl; else it is idle */
    bool has_read;  /* libcurl has waited for bytes: it is connected */
    bool is_tls;
};

struct wr_proxy {
    bool is_set;
    bool is_https;
    char url[WR_NAME_MAX + sizeof "https://[]:65535"]; /* without user and password */
    char user[256], password[256];                     /* "": none */
    char host[WR_NAME_MAX + 1];                        /* a name, or an address without brackets */
    uint16_t port;
};

struct wr_net {
    struct wr_net_options options; /* filled; its strings are copies */
    struct wr_proxy proxy;
    const weir_allocator *allocator;
    const weir_clock *clock;
    CURLM *multi;
    struct wr_transfer *writing; /* what libcurl has begun to write since it was called */
    CURLSH *nowhere;             /* shares connections, and never has one; see wr_easy_forget. NULL: not needed */
    uv_timer_t curl_timer, due_timer;
    uv_idle_t no_wait; /* with it the loop polls without waiting */
    uv_check_t polled; /* when it has polled */
    struct wr_wakeup wakeup;
    struct wr_round round;
    int open_handles; /* of libuv */
    bool in_curl;
    uint32_t records; /* of TLS, that came in one call into libcurl */
    int64_t talks_since;
    const struct wr_transfer *looked_at; /* whose progress libcurl told last in one call into it */
    uint32_t looks;                      /* how often in a row */
    bool speaks_http2;
    bool has_trust; /* an https server has answered: libcurl has read the certificates that it trusts */
    bool in_settle;
    bool has_cancelled; /* a transfer that could not be ended when it was cancelled */
    bool is_short;      /* of memory: connections are not kept */

    struct wr_socket **sockets; /* by descriptor: those that libcurl watches, or has watched */
    size_t sockets_room;
    struct wr_socket *spares; /* so that watching needs no memory */
    uint32_t connections;
    uint64_t opened, started;

    struct wr_lean lean;
    struct wr_unpacking unpacking;
    uint32_t paused; /* transfers of libcurl's: too much waits to be decoded */

    struct wr_transfer *pool, *under_way, *ended;
    uint32_t made, transfers; /* in all, and not in the pool */
    struct wr_heap dues;
    int64_t due_armed_at; /* WEIR_FOREVER: the timer sleeps */

    pthread_mutex_t post_lock;
    struct wr_net_call *posted, **posted_end;
    struct wr_net_call *calls, **calls_end; /* that were posted, and are the loop's to run */
};

/* ---- net.c ---- */

/* Ends what has ended, after a call into libcurl or a change of ours. */
void wr_net_settle(struct wr_net *net);

/* Calls on_done of those that have ended. */
void wr_net_finish(struct wr_net *net);

/* wr_net_settle, soon. */
void wr_net_wake(struct wr_net *net);

/* Whether connections are closed after use: there are so many that libcurl's cache, and what it may still open, must
 * have room. Once that cache is full, each return of a connection walks over all of it. */
bool wr_net_is_crowded(const struct wr_net *net);

/* Whether a validator that a server gave us is sent back to it (C11). */
bool wr_net_may_echo(struct wr_span validator);

/* One handle of libuv less; with the last the net goes. */
void wr_net_let_go(struct wr_net *net);

/* ---- proxy.c ---- */

/* WEIR_E_INVAL. */
int wr_proxy_parse(const char *text, struct wr_proxy *ret_proxy);

/* ---- socket.c ---- */

/* libcurl's callbacks; the context of the first is the transfer, of the others the net. */
curl_socket_t wr_socket_open(void *context, curlsocktype purpose, struct curl_sockaddr *address);
int wr_socket_close(void *context, curl_socket_t fd);
int wr_socket_watch(CURL *easy, curl_socket_t fd, int what, void *context, void *unused);
int wr_socket_set_timer(CURLM *multi, long after_ms, void *context);
void wr_socket_give_spares(struct wr_net *net);

/* The same socket, by a number that libcurl does not take for another's. -1 if that fails, or fd is: errno tells. */
int wr_socket_renumber(struct wr_net *net, int fd);

/* Before a transfer is taken from libcurl, which then closes what it was connecting without telling: by the time that
 * we heard of it, another thread might have a descriptor of that number. */
void wr_socket_leave(struct wr_transfer *transfer);

/* No transfer is paused any more: idle sockets are watched again. */
void wr_socket_look_again(struct wr_net *net);

/* The class of an address that is blocked, or WR_GUARD_PUBLIC. */
enum wr_guard_class wr_net_judge(const struct wr_net *net, const struct wr_address *address);

/* ---- transfer.c ---- */

/* Takes it from libcurl, and puts it where wr_net_settle finds it. Not inside libcurl. */
void wr_transfer_end(struct wr_transfer *transfer);

/* Calls on_done, and puts it into the pool. */
void wr_transfer_finish(struct wr_transfer *transfer);

void wr_transfer_free(struct wr_transfer *transfer);

/* ---- tell.c: false, the transfer has an end ---- */

/* The request is about to be written: asks before_send. */
bool wr_tell_send(struct wr_transfer *transfer, const struct wr_address *address, uint16_t port);

/* Its first bytes go to the kernel next (libcurl does not say so), or have gone there. Since wr_tell_send the process
 * may have been stopped, or had no processor. */
void wr_tell_writing(struct wr_transfer *transfer);
void wr_tell_written(struct wr_transfer *transfer);

void wr_tell_first_byte(struct wr_transfer *transfer);

/* The next line of a head or trailer; a body's next bytes, decoded. */
bool wr_tell_line(struct wr_transfer *transfer, struct wr_span line);
bool wr_tell_data(struct wr_transfer *transfer, const char *data, size_t bytes);

/* ---- unpack.c ---- */

void wr_body_init(struct wr_transfer *transfer);

/* The next bytes of the body. False: the transfer has an end. */
bool wr_body_take(struct wr_transfer *transfer, struct wr_span piece);

/* Some of what came waits to be decoded, or its owner wants no more for now: the transfer does not end. */
bool wr_body_waits(const struct wr_transfer *transfer);

/* So much waits that no more should be read. */
bool wr_body_is_full(const struct wr_transfer *transfer);

/* The transfer ends. */
void wr_body_leave(struct wr_transfer *transfer);

void wr_body_clear(struct wr_transfer *transfer);

/* ---- easy.c ---- */

/* A handle with the options that are the same for all. WEIR_E_NOMEM. */
int wr_easy_new(struct wr_transfer *transfer);
void wr_easy_free(struct wr_transfer *transfer);

/* The options of one request. WEIR_E_NOMEM. */
int wr_easy_set(struct wr_transfer *transfer, const struct wr_net_request *request);

/* Pins the name that is connected to (the proxy's, if there is one) to these addresses. WEIR_E_NOMEM. */
int wr_easy_pin(struct wr_transfer *transfer, const struct wr_answer *answer);

/* Forgets which connection it had, once libcurl has said that it is done. */
void wr_easy_forget(struct wr_transfer *transfer);

/* libcurl is done with it. */
void wr_easy_done(struct wr_transfer *transfer, CURLcode code);

/* All that came is decoded. */
void wr_easy_unpacked(struct wr_transfer *transfer);

/* It ends: it is paused no longer. */
void wr_easy_unpause(struct wr_transfer *transfer);

/* Forgets the request. */
void wr_easy_clear(struct wr_transfer *transfer);

/* ---- tls.c ---- */

/* Connections of this handle cannot hold up the loop. False: libcurl is not built upon OpenSSL. */
bool wr_tls_watch(struct wr_net *net, CURL *easy);

/* ---- admit.c ---- */

/* Whether one more may be libcurl's. */
bool wr_admit(struct wr_transfer *transfer);

/* It has all the memory that it takes, but for a decoder's; it has ended. */
void wr_admit_grown(struct wr_transfer *transfer);
void wr_admit_over(struct wr_transfer *transfer);

/* Whether libcurl was denied memory since the transfer began. */
bool wr_admit_was_denied(const struct wr_transfer *transfer);

/* ---- deadline.c ---- */

int wr_due_begin(struct wr_transfer *transfer);
void wr_due_change(struct wr_transfer *transfer, int64_t now); /* after a step was made */
void wr_due_end(struct wr_transfer *transfer);
void wr_due_on_timer(uv_timer_t *timer);

/* ---- result.c ---- */

/* Sets how it ends, unless that is known. `words` may be NULL: those of the end. */
void wr_transfer_set_end(struct wr_transfer *transfer, enum wr_net_end end, const char *words);

/* Whether an errno means that we are out of something. */
bool wr_result_is_scarce(int error);

/* What libcurl's result means; sets the end. */
void wr_result_from_curl(struct wr_transfer *transfer, CURLcode code);

/* The numbers that were counted, by libcurl or by us. */
void wr_result_fill(struct wr_transfer *transfer);

#endif
