/* SPDX-License-Identifier: MIT */
/* client_internal.h - declarations that the parts of an HTTP client share.
 *
 *     callers' threads        the client's thread
 *     weir_client_fetch_async ──▶ inbox ──▶ origin_queue ──▶ robots.txt? ──▶ gate? ──▶ slot? ──▶ wire_request ──▶ ended
 *                                      ▲                                                     │
 *                                      └────────── another hop, or another try ◀─────────────┤
 *                                                   (at once)   (when it is due)             ▼
 *                                                                                        response
 *
 *     client_options.c  checks and keeps options
 *     header.c          header lines
 *     client.c          creates, inspects, ends clients
 *     client_loop.c     the thread: inbox, timers, origin_queues
 *     client_fetch.c    one fetch, from call to end
 *     blocking_fetch.c  blocking fetch
 *     origin_queue.c    queue of fetches to one origin
 *     wire_request.c    one request on the wire
 *     fetch_result.c    redirect, retry or end
 *     response.c        the response for the caller
 *     client_robots.c   fetches of robots.txt
 *
 * An origin_queue is the queue of fetches to one origin. Only its first fetch asks: robots.txt
 * (which may have to be fetched), then the host's gate. So a slow host delays only its own fetches.
 * Origin queues that may continue are in a run list, which is served while there are slots. A fetch
 * that waits for its host holds no slot.
 *
 * Only the client's thread uses the data, except the inbox, the woken queues and the counters.
 */
#ifndef WR_HTTP_CLIENT_CLIENT_INTERNAL_H
#define WR_HTTP_CLIENT_CLIENT_INTERNAL_H

#include "base/buf.h"
#include "base/heap.h"
#include "base/map.h"
#include "base/rng.h"
#include "core/web/retry/attempts.h"
#include "core/web/url/url.h"
#include "http/loop/wakeup.h"
#include "http/net/net.h"
#include "http/net/policy/policy.h"

#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>
#include <weir/client.h>

#define WR_DETAIL_MAX 160 /* longest failure text, bytes */

struct wr_origin_queue;
struct wr_wire_request;

/* ---- timers (client_loop.c) ---- */

/* A timer of the client's loop. Must be the first member, because `on_due` casts it to its
 * owner. */
struct wr_client_timer {
    struct wr_heap_item item;
    void (*on_due)(struct wr_client_timer *due);
};

/* ---- one fetch (client_fetch.c) ---- */

enum wr_fetch_state {
    WR_FETCH_STATE_NEW,     /* in the inbox, or between two places */
    WR_FETCH_STATE_QUEUED,  /* waiting in the queue of its origin */
    WR_FETCH_STATE_BACKOFF, /* waiting for its next attempt */
    WR_FETCH_STATE_ON_WIRE, /* sent, or about to be sent */
    WR_FETCH_STATE_ENDED,
};

struct weir_fetch {
    struct wr_client_timer due; /* timer for the deadline or for the next attempt */
    weir_client *client;
    const weir_allocator *allocator;          /* the client's; the fetch may outlive the client */
    struct weir_fetch *next, *prev;           /* links in the inbox or in the origin queue */
    struct weir_fetch *next_live, *prev_live; /* list of all fetches of the client's thread */
    struct weir_fetch *next_cancelled;        /* list of cancelled fetches */
    struct wr_origin_queue *origin_queue;     /* origin queue, also while on the wire */
    struct wr_wire_request *wire_request;
    atomic_uint holds; /* references: one of the client, one of the caller */
    atomic_bool is_cancelled;
    uint8_t place; /* enum wr_fetch_state */
    bool asks_robots;
    bool tries_once;
    /* A redirect has left the first origin, to which headers, credentials and key are limited. */
    bool left_first_origin;
    /* The request. All texts follow the struct in memory, except the URL. */
    size_t block_bytes;
    const char *method, *headers, *key, *authorization, *etag, *last_modified; /* NULL: absent */
    const void *body;
    size_t body_bytes;
    uint64_t max_body_bytes;
    bool (*on_body)(void *context, const char *bytes, size_t count);
    bool (*on_status)(void *context, int status);
    void *body_context;
    weir_fetched *fetched;
    void *context;
    struct wr_robots_fetch *robots; /* robots.txt to fetch; NULL: an ordinary fetch */
    struct wr_url url;              /* current URL without user name and password */
    weir_retry_options retry;
    /* Progress of the fetch. */
    struct wr_attempts attempts;
    uint32_t hops;
    uint32_t sent;                          /* requests sent for the current URL */
    int64_t began_at, joined_at, waited_ns; /* joined_at: start of the current wait */
    int64_t longest_ns;                     /* longest single wait, ns */
    weir_reason waited_for, backoff_reason;
    uint32_t robots_line;
};

/* The result of a request, or the reason why none was sent. */
struct wr_fetch_result {
    enum wr_net_end end;
    enum wr_net_retry retry;
    int status; /* status of the response; 0: no response */
    weir_failure failure;
    const char *detail;
    const struct wr_buf *head; /* head of the response, see wr_fields_find; NULL: none */
    struct wr_buf *body;       /* body of the response; NULL: none */
    size_t body_bytes;
    bool is_truncated;
    bool is_body_delivered; /* on_body has received data, so a retry is impossible */
    const char *address;    /* address of the host or proxy; NULL: not connected */
    int64_t latency_ns;
    weir_server_limits said;
};

/* Creates a fetch from checked and copied options. The caller sets the callback or `robots`.
 * Returns WEIR_E_INVAL or WEIR_E_NOMEM on failure. */
int wr_fetch_new(weir_client *client, const char *url, const weir_fetch_options *options,
                 struct weir_fetch **ret_fetch);

/* Gives a fetch another URL, and copies its text. Returns WEIR_E_NOMEM without memory. */
int wr_fetch_set_url(struct weir_fetch *fetch, const struct wr_url *url);

/* Adds a fetch to the list of all fetches that the client's thread has. */
void wr_fetch_link_live(struct weir_fetch *fetch);

/* Ends a fetch in any state. Delivers the result to the caller, or a robots.txt to the policies. */
void wr_fetch_end(struct weir_fetch *fetch, const struct wr_fetch_result *ended);
void wr_fetch_fail(struct weir_fetch *fetch, weir_failure failure, const char *detail);

/* Puts a fetch into the queue of its origin. */
void wr_fetch_enqueue(struct weir_fetch *fetch, bool at_front);

/* Adds the time since joined_at to the fetch's waiting times, with its reason. */
void wr_fetch_add_wait(struct weir_fetch *fetch, weir_reason reason);

/* Handles a fetch's timer: the deadline has passed, or the next attempt is due. */
void wr_fetch_on_timer(struct wr_client_timer *due);

void wr_fetch_drop(struct weir_fetch *fetch);

/* ---- origin_queues (origin_queue.c) ---- */

struct wr_origin_queue {
    struct wr_client_timer due; /* timer to ask robots.txt and gate again */
    weir_client *client;
    struct weir_fetch *first, *last;
    size_t members; /* fetches in the queue or on the wire */
    struct wr_origin_queue *next_to_run, *prev_to_run;
    struct wr_origin_queue *next_woken; /* next in client->woken; guarded by client->lock */
    bool runs;                          /* in the client's run list */
    bool is_woken;                      /* in the client's list `woken`; guarded by client->lock */
    bool asks_robots;
    struct wr_policy_ticket *robots_ticket; /* ticket while waiting for robots.txt, or NULL */
    weir_pace_ticket *gate_ticket;          /* ticket while waiting for the gate, or NULL */
    weir_reason held_by;                    /* why the first fetch waits, or waited last */
    int64_t held_at;                        /* when held_by was last set */
    weir_failure robots_failure;            /* result of the last robots.txt fetch */
    uint32_t robots_failures;               /* consecutive failures of robots.txt fetches */
    bool robots_is_final;                   /* a repeated robots.txt fetch would fail as well */
    bool robots_waits_for_share;            /* the robots.txt fetch waits for a shared gate */
    char robots_detail[WR_DETAIL_MAX];
    int64_t since; /* last start of a request, or when a fetch joined the empty queue */
    size_t name_bytes, key_bytes;
    const char *key; /* key of the gate; points into `name` */
    char name[];     /* key in client->origin_queues */
};

/* Puts a fetch first or last into the queue of its origin. Returns WEIR_E_NOMEM without memory. */
int wr_origin_queue_add(struct weir_fetch *fetch, bool at_front);

/* Removes a fetch from its origin queue. It stays a member until wr_origin_queue_release. */
void wr_origin_queue_remove(struct weir_fetch *fetch);

/* Ends a fetch's membership in its origin queue. Frees the queue if it was the last member. */
void wr_origin_queue_release(struct weir_fetch *fetch);

/* Starts the first fetch of an origin queue if robots.txt and gate allow. Needs a free slot. */
void wr_origin_queue_step(struct wr_origin_queue *origin_queue);
/* Returns true for reasons that count towards max_defer_ns, the longest time that a host may hold
 * its first fetch. The host's pace is not among them. */
bool wr_is_deferral(weir_reason reason);

/* Returns the origin queue whose pages wait for this robots.txt, or NULL. */
struct wr_origin_queue *wr_origin_queue_of_pages(const struct weir_fetch *robots);

/* Handles the timer of an origin queue: asks robots.txt and gate again. */
void wr_origin_queue_on_timer(struct wr_client_timer *due);

/* ---- on the wire (wire_request.c) ---- */

/* Sends the fetch's request. Takes over the permit. */
void wr_wire_request_start(struct weir_fetch *fetch, const weir_permit *permit);

/* Abandons the fetch's request on the wire. */
void wr_wire_request_abandon(struct weir_fetch *fetch);

/* Frees the wr_wire_request structs that are kept for reuse. */
void wr_wire_requests_free(weir_client *client);

/* ---- after a response (fetch_result.c) ---- */

/* Returns true if a response with this head will be delivered, so neither followed nor retried. */
bool wr_fetch_is_delivered(const struct weir_fetch *fetch, int status, const struct wr_buf *head);

/* Retries a request that was not sent for lack of memory or descriptors. Costs no attempt. */
void wr_fetch_defer(struct weir_fetch *fetch, int64_t wait_ns);

/* Follows a redirect, schedules a retry, or ends the fetch. */
void wr_fetch_on_result(struct weir_fetch *fetch, const struct wr_fetch_result *ended);

/* ---- the response (response.c) ---- */

/* Returns a response that takes over the body. Without memory it is a static one, never NULL. */
weir_response *wr_response_new(const struct weir_fetch *fetch, const struct wr_fetch_result *ended, int64_t now);

/* ---- texts in a memory block ---- */

#define WR_NO_TEXT SIZE_MAX

/* Appends a text with its '\0' and returns its offset. Returns WR_NO_TEXT for NULL. */
static inline size_t wr_text_append(struct wr_buf *buf, const char *text)
{
    size_t at = buf->length;
    if (text == NULL)
        return WR_NO_TEXT;
    wr_buf_append(buf, text, strlen(text) + 1);
    return at;
}

/* Returns the text at this offset in the block; NULL for WR_NO_TEXT. */
static inline const char *wr_text_at(const void *block, size_t at)
{
    return at == WR_NO_TEXT ? NULL : (const char *)block + at;
}

/* ---- headers (header.c) ---- */

#define WR_HEADERS_MAX 100 /* most header lines in a block */

/* Appends header lines as a block: "Name: value" '\0' … '\0'. `lines` ends with NULL, and may be
 * NULL for an empty block. Returns WEIR_E_INVAL if a line is invalid. */
int wr_headers_pack(struct wr_buf *buf, const char *const *lines);

/* Returns the next line of a block, or NULL at its end. */
static inline const char *wr_headers_next(const char *line)
{
    line += strlen(line) + 1;
    return *line != '\0' ? line : NULL;
}

/* Returns true if the block has a line with that name. */
bool wr_headers_has(const char *block, struct wr_span name);

/* Returns the name of a header line. */
struct wr_span wr_header_name(const char *line);

/* Appends "Authorization: Basic …" and '\0' for "user:password", which is percent-encoded. */
void wr_headers_append_basic(struct wr_buf *buf, struct wr_span userinfo);

/* Returns true if a header value is valid: it has no control characters, so it is one line. */
bool wr_header_value_ok(const char *value);

bool wr_method_ok(const char *method);

/* Appends a head as text: name '\0' value '\0' for each field. */
void wr_fields_append(struct wr_buf *buf, const struct wr_head *head);

/* Returns the first value of a field in such a text (see wr_fields_append), or NULL. */
const char *wr_fields_find(const char *fields, size_t bytes, const char *name);

/* Like wr_fields_find, but returns an empty span if nothing is found. `fields` may be NULL. */
struct wr_span wr_fields_value(const struct wr_buf *fields, const char *name);

/* ---- robots.txt (client_robots.c) ---- */

/* Creates the client's robots.txt policies. Returns WEIR_E_NOMEM, WEIR_E_SYSTEM or WEIR_E_INVAL. */
int wr_client_make_policies(weir_client *client);

/* Passes the result of a robots.txt fetch to the policies. */
void wr_fetch_deliver_robots(struct weir_fetch *fetch, const struct wr_fetch_result *ended);

/* ---- the client ---- */

struct weir_client {
    weir_client_options options; /* options with defaults; texts are in `texts` */
    struct wr_statuses statuses;
    weir_retry_options retry;
    const weir_allocator *allocator;
    const weir_clock *clock;
    const char *headers; /* the client's own header lines; see wr_headers_pack */
    char *texts;
    size_t texts_bytes;
    weir_pacer *pacer;
    bool owns_pacer;
    /* The following fields are for any thread. */
    pthread_mutex_t lock;
    struct weir_fetch *inbox_first, *inbox_last; /* guarded by `lock`, as are the next three */
    struct weir_fetch *cancelled;
    struct wr_origin_queue *woken;
    bool is_closing;
    atomic_size_t unfinished;
    atomic_size_t in_flight; /* written by the client's thread only */
    _Atomic uint64_t requests, retries, robots, finished, body_bytes;
    pthread_mutex_t joining; /* held while the thread is joined */
    bool is_joined;
    /* The following fields are for the client's thread only. */
    pthread_t thread, self; /* the same thread; `self` is set by the thread itself */
    uv_loop_t loop;
    struct wr_wakeup wakeup;
    uv_prepare_t prepare;
    uv_timer_t timer;
    struct wr_net *net;
    struct wr_policies *policies; /* NULL: robots.txt is ignored */
    struct wr_heap dues;
    struct wr_hash_key hash_key;
    struct wr_map origin_queues;
    struct weir_fetch *arrived, *to_cancel; /* taken from the inbox and the cancelled list */
    struct wr_origin_queue *run_first, *run_last;
    struct weir_fetch *live;
    struct wr_wire_request *spare_wire_requests;
    struct wr_resolver *resolver;
    struct wr_rng rng;
    int64_t scarce_since; /* start of a shortage of memory or descriptors; 0: no shortage */
    bool has_own_posts;   /* the thread posted something itself: the next round must not wait */
    bool is_ending;
};

/* Checks and copies options and fills in defaults. Returns WEIR_E_INVAL or WEIR_E_NOMEM. */
int wr_client_options_copy(weir_client *client, const weir_client_options *options);

static inline int64_t wr_client_now(const weir_client *client)
{
    return weir_clock_now(client->clock);
}

/* ---- the loop (client_loop.c) ---- */

/* Parts of the network that tests replace, for clients created afterwards. NULL: the real part. */
struct wr_client_test_hooks {
    enum wr_guard_class (*judge)(void *context, const struct wr_address *address);
    void *judge_context;
    wr_lookup *lookup;
    void *lookup_context;
    struct wr_robots_lifecycle_options life; /* life of a cached robots.txt; on_error is ignored */
};
extern const struct wr_client_test_hooks *wr_client_test_hooks;

/* Starts the client's thread. Returns WEIR_E_SYSTEM or WEIR_E_NOMEM on failure. */
int wr_client_loop_start(weir_client *client);

/* Cancels all fetches, and returns when the thread has ended. */
void wr_client_loop_end(weir_client *client);

/* Puts a fetch into the inbox, from any thread. Returns WEIR_E_CLOSED or WEIR_E_FULL on failure. */
int wr_client_loop_post(weir_client *client, struct weir_fetch *fetch);
void wr_client_loop_cancel(struct weir_fetch *fetch);

/* Wakes an origin queue, from any thread. For tickets; `context` is the wr_origin_queue. */
void wr_client_loop_wake(void *context);

bool wr_client_loop_is_current(const weir_client *client);

/* Puts an origin queue into the run list, so that the loop serves it. */
void wr_client_loop_schedule(struct wr_origin_queue *origin_queue);

/* Removes an origin queue from the run list and from the list of woken queues. */
void wr_client_loop_unschedule(struct wr_origin_queue *origin_queue);

/* Sets a timer to a new time; WEIR_FOREVER stops it. Returns WEIR_E_NOMEM without memory. */
int wr_client_timer_set(weir_client *client, struct wr_client_timer *due, int64_t at);

#endif
