/* SPDX-License-Identifier: MIT */
/* client.h - what the parts of a client share.
 *
 *     callers' threads        the client's thread
 *     weir_client_fetch ──▶ inbox ──▶ lane ──▶ robots.txt? ──▶ gate? ──▶ slot? ──▶ ride ──▶ ended
 *                                      ▲                                                     │
 *                                      └────────── another hop, or another try ◀─────────────┤
 *                                                   (at once)   (when it is due)             ▼
 *                                                                                        response
 *
 *     options.c  checks and keeps options            lane.c      who is next, and may it start
 *     header.c   header lines                        ride.c      one request on the wire
 *     client.c   makes, ends, looks                  answer.c    what comes after an answer
 *     loop.c     the thread: inbox, times, lanes     response.c  what the caller gets
 *     fetch.c    one fetch: asked for, ended         robots.c    robots.txt files are fetches too
 *     get.c      waiting for one
 *
 * A lane is a line of fetches to one origin. Only its first one asks: robots.txt (which may have to be fetched), then
 * the host's gate. So hosts wait, and nobody else does: lanes that may go on stand in a queue and are looked at while
 * there are slots, and who waits for a host holds none.
 *
 * All but the inbox, the list of woken lanes and the counters belongs to the client's thread.
 */
#ifndef WR_SHELL_CLIENT_CLIENT_H
#define WR_SHELL_CLIENT_CLIENT_H

#include "base/buf.h"
#include "base/heap.h"
#include "base/map.h"
#include "base/rng.h"
#include "core/rules/retry/attempts.h"
#include "core/rules/url/url.h"
#include "shell/loop/wakeup.h"
#include "shell/net/net.h"
#include "shell/net/policy/policy.h"

#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>
#include <weir/client.h>

#define WR_DETAIL_MAX 160 /* bytes of a failure in words */

struct wr_lane;
struct wr_ride;

/* ---- times (loop.c) ---- */

/* Something that happens at a time. Put it first, and cast. */
struct wr_due {
    struct wr_heap_item item;
    void (*ring)(struct wr_due *due);
};

/* ---- one fetch (fetch.c) ---- */

enum wr_fetch_place {
    WR_NOWHERE_YET, /* in the inbox, or on its way */
    WR_IN_LANE,     /* in its lane */
    WR_IN_BACKOFF,  /* tried again when due */
    WR_ON_WIRE,     /* on the wire */
    WR_OVER,
};

struct weir_fetch {
    struct wr_due due; /* its deadline, or when it is tried again */
    weir_client *client;
    const weir_allocator *allocator;          /* the client's, who may be gone before the caller lets go */
    struct weir_fetch *next, *prev;           /* in the inbox, or in its lane */
    struct weir_fetch *next_live, *prev_live; /* of all that the client's thread has */
    struct weir_fetch *next_cancelled;        /* in the list of those */
    struct wr_lane *lane;                     /* also while it rides: whom it came from */
    struct wr_ride *ride;
    atomic_uint holds; /* the client's, and the caller's */
    atomic_bool is_cancelled;
    uint8_t place; /* enum wr_fetch_place */
    bool asks_robots;
    bool tries_once;
    bool has_left; /* the origin that was asked for: what was meant for it stays behind */
    /* What is asked. Texts are in the block behind the struct, but for the URL's, which changes with hops. */
    size_t block_bytes;
    const char *method, *headers, *key, *authorization, *etag, *last_modified; /* NULL: none */
    const void *body;
    size_t body_bytes;
    uint64_t max_body_bytes;
    bool (*on_body)(void *context, const char *bytes, size_t count);
    bool (*on_status)(void *context, int status);
    void *body_context;
    weir_fetched *fetched;
    void *context;
    struct wr_robots_fetch *robots; /* not NULL: it is one of these, and nobody's else */
    struct wr_url url;              /* without user name and password */
    weir_retry_options retry;
    /* How it goes. */
    struct wr_attempts attempts;
    uint32_t hops;
    uint32_t sent;                          /* requests of this hop */
    int64_t began_at, joined_at, waited_ns; /* joined_at: its lane, or the time before it is tried again */
    int64_t longest_ns;                     /* of what it waited for at a time */
    weir_reason waited_for, backs_off_for;
    uint32_t robots_line;
};

/* How a request ended, or why none was sent. */
struct wr_ended {
    enum wr_net_end end;
    enum wr_net_retry retry;
    int status; /* 0: no answer */
    weir_failure failure;
    const char *detail;
    const struct wr_buf *head; /* see wr_fields_find; NULL: none */
    struct wr_buf *body;       /* NULL: none */
    size_t body_bytes;
    bool is_truncated;
    bool is_handed_on;   /* on_body had some of it, which cannot be taken back */
    const char *address; /* NULL: none */
    int64_t latency_ns;
    weir_said said;
};

/* Checks and copies; who is told of its end is left to the caller. WEIR_E_INVAL, WEIR_E_NOMEM. */
int wr_fetch_new(weir_client *client, const char *url, const weir_fetch_options *options,
                 struct weir_fetch **ret_fetch);

/* Gives it another URL, whose text is copied. WEIR_E_NOMEM. */
int wr_fetch_lead(struct weir_fetch *fetch, const struct wr_url *url);

/* It is among those that the client's thread has. */
void wr_fetch_enlist(struct weir_fetch *fetch);

/* Ends it, wherever it is, and tells whoever asked. */
void wr_fetch_end(struct weir_fetch *fetch, const struct wr_ended *ended);
void wr_fetch_fail(struct weir_fetch *fetch, weir_failure failure, const char *detail);

/* Puts it into its lane. */
void wr_fetch_join(struct weir_fetch *fetch, bool at_front);

/* It has waited for that since joined_at. */
void wr_fetch_waited(struct weir_fetch *fetch, weir_reason reason);

/* Its deadline, or the time to try again, has come. */
void wr_fetch_ring(struct wr_due *due);

void wr_fetch_drop(struct weir_fetch *fetch);

/* ---- lanes (lane.c) ---- */

struct wr_lane {
    struct wr_due due; /* look again */
    weir_client *client;
    struct weir_fetch *first, *last;
    size_t members; /* those in line, and those on the wire */
    struct wr_lane *next_to_run, *prev_to_run;
    struct wr_lane *next_woken; /* under the lock */
    bool runs;                  /* it is in the queue of those that may go on */
    bool is_woken;              /* it is in the list of those; under the lock */
    bool asks_robots;
    struct wr_policy_ticket *robots_ticket; /* waits for robots.txt */
    weir_pace_ticket *gate_ticket;          /* waits for the gate */
    weir_reason held_by;                    /* what holds it, or did last */
    int64_t held_at;                        /* when that was last said */
    weir_failure robots_failure;            /* how fetching robots.txt failed last; NONE: there was an answer */
    uint32_t robots_failures;               /* in a row */
    bool robots_is_final;                   /* it would fail in the same way again */
    bool robots_waits_for_share;            /* and so do the pages */
    char robots_detail[WR_DETAIL_MAX];
    int64_t since; /* the last start, or when somebody came to the empty lane */
    size_t name_bytes, key_bytes;
    const char *key; /* of the gate; in the name */
    char name[];     /* in the map of lanes */
};

/* WEIR_E_NOMEM. */
int wr_lane_join(struct weir_fetch *fetch, bool at_front);

/* The fetch leaves the line; its lane stays until it rides no more. */
void wr_lane_leave(struct weir_fetch *fetch);

/* The lane forgets it, and goes if it was the last. */
void wr_lane_drop(struct weir_fetch *fetch);

/* Asks for its first one, and starts it if it may. There must be a slot. */
void wr_lane_step(struct wr_lane *lane);
/* What a host may do for max_defer_ns at most, before what is next in line fails. Its pace is not among them. */
bool wr_is_deferral(weir_reason reason);

/* The lane whose pages wait for this robots.txt, or NULL. */
struct wr_lane *wr_lane_of_pages(const struct weir_fetch *robots);

/* It is time to look again. */
void wr_lane_ring(struct wr_due *due);

/* ---- on the wire (ride.c) ---- */

/* Sends the fetch's request. The permit is the ride's. */
void wr_ride_start(struct weir_fetch *fetch, const weir_permit *permit);

/* Gives up what is on the wire. */
void wr_ride_stop(struct weir_fetch *fetch);

/* Frees those that wait to be used again. */
void wr_rides_free(weir_client *client);

/* ---- after an answer (answer.c) ---- */

/* Whether an answer with this status is delivered, as far as that can be told from its head. */
bool wr_answer_is_last(const struct weir_fetch *fetch, int status, const struct wr_buf *head);

/* It could not be sent for want of something of ours: tries again soon, at no cost. */
void wr_answer_defer(struct weir_fetch *fetch, int64_t wait_ns);

/* Follows it, tries again, or ends the fetch. */
void wr_answer_judge(struct weir_fetch *fetch, const struct wr_ended *ended);

/* ---- the response (response.c) ---- */

/* Never NULL: without memory, one that says so. Takes the body. */
weir_response *wr_response_new(const struct weir_fetch *fetch, const struct wr_ended *ended, int64_t now);

/* ---- texts in a block ---- */

#define WR_NO_TEXT SIZE_MAX

/* Appends a text with its '\0', and returns where it begins; NULL: WR_NO_TEXT. */
static inline size_t wr_text_append(struct wr_buf *buf, const char *text)
{
    size_t at = buf->length;
    if (text == NULL)
        return WR_NO_TEXT;
    wr_buf_append(buf, text, strlen(text) + 1);
    return at;
}

/* The text that begins there in the block; NULL for none. */
static inline const char *wr_text_at(const void *block, size_t at)
{
    return at == WR_NO_TEXT ? NULL : (const char *)block + at;
}

/* ---- headers (header.c) ---- */

#define WR_HEADERS_MAX 100 /* lines of one block */

/* Lines in a block: "Name: value" '\0' … '\0'. NULL is an empty one. Appends those of an array that ends with NULL, and
 * the last '\0'. WEIR_E_INVAL. */
int wr_headers_pack(struct wr_buf *buf, const char *const *lines);

/* The next line, or NULL at the end. */
static inline const char *wr_headers_next(const char *line)
{
    line += strlen(line) + 1;
    return *line != '\0' ? line : NULL;
}

/* Whether the block has a line of that name. */
bool wr_headers_has(const char *block, struct wr_span name);

/* The name of a line. */
struct wr_span wr_header_name(const char *line);

/* "Authorization: Basic …" for "user:password@", percent-encoded, with a '\0'. */
void wr_headers_append_basic(struct wr_buf *buf, struct wr_span userinfo);

/* Whether a value may stand in a header: no control characters, so that it stays one line. */
bool wr_header_value_ok(const char *value);

bool wr_method_ok(const char *method);

/* A head as text: name '\0' value '\0' for each field. */
void wr_fields_append(struct wr_buf *buf, const struct wr_head *head);

/* The first value of that name in such a text, or NULL. */
const char *wr_fields_find(const char *fields, size_t bytes, const char *name);

/* Likewise, but empty if there is none. `fields` may be NULL. */
struct wr_span wr_fields_value(const struct wr_buf *fields, const char *name);

/* ---- robots.txt (robots.c) ---- */

/* Makes the client's policies. WEIR_E_NOMEM, WEIR_E_SYSTEM, WEIR_E_INVAL. */
int wr_client_policies(weir_client *client);

/* A robots.txt was fetched. */
void wr_robots_answer(struct weir_fetch *fetch, const struct wr_ended *ended);

/* ---- the client ---- */

struct weir_client {
    weir_client_options options; /* with the defaults filled in; texts in the block */
    struct wr_statuses statuses;
    weir_retry_options retry;
    const weir_allocator *allocator;
    const weir_clock *clock;
    const char *headers; /* of its own; see wr_headers_pack */
    char *texts;
    size_t texts_bytes;
    weir_pacer *pacer;
    bool owns_pacer;
    /* Any thread. */
    pthread_mutex_t lock;
    struct weir_fetch *inbox_first, *inbox_last; /* under the lock, as are the next three */
    struct weir_fetch *cancelled;
    struct wr_lane *woken;
    bool is_closing;
    atomic_size_t unfinished;
    atomic_size_t in_flight; /* changed by the client's thread only */
    _Atomic uint64_t requests, retries, robots, finished, body_bytes;
    pthread_mutex_t joining; /* whoever ends the thread */
    bool is_joined;
    /* The client's thread. */
    pthread_t thread, self; /* the same, as its maker and as it itself knows it */
    uv_loop_t loop;
    struct wr_wakeup wakeup;
    uv_prepare_t prepare;
    uv_timer_t timer;
    struct wr_net *net;
    struct wr_policies *policies; /* NULL: robots.txt is ignored */
    struct wr_heap dues;
    struct wr_hash_key hash_key;
    struct wr_map lanes;
    struct weir_fetch *arrived, *given_up; /* taken from the inbox and from those that are cancelled */
    struct wr_lane *run_first, *run_last;
    struct weir_fetch *live;
    struct wr_ride *spare_rides;
    struct wr_resolver *resolver;
    struct wr_rng rng;
    int64_t scarce_since; /* 0: it is not */
    bool has_own_mail;    /* it has put something in the inbox or a list itself: no call ends its wait */
    bool is_ending;
};

/* Copies options and fills in defaults. WEIR_E_INVAL, WEIR_E_NOMEM. */
int wr_client_options_keep(weir_client *client, const weir_client_options *options);

static inline int64_t wr_client_now(const weir_client *client)
{
    return weir_clock_now(client->clock);
}

/* ---- the loop (loop.c) ---- */

/* What tests put in the place of the world; clients made from then on have it. Fields that are NULL: the world's. */
struct wr_client_world {
    enum wr_guard_class (*judge)(void *context, const struct wr_address *address);
    void *judge_context;
    wr_lookup *lookup;
    void *lookup_context;
    struct wr_life_options life; /* of robots.txt files, but for on_error */
};
extern const struct wr_client_world *wr_client_world;

/* WEIR_E_SYSTEM, WEIR_E_NOMEM. */
int wr_loop_start(weir_client *client);

/* Ends the thread once all has ended. */
void wr_loop_end(weir_client *client);

/* From any thread. WEIR_E_CLOSED, WEIR_E_FULL. */
int wr_loop_post(weir_client *client, struct weir_fetch *fetch);
void wr_loop_cancel(struct weir_fetch *fetch);

/* Wakes the lane that is its context; for tickets. */
void wr_loop_wake(void *context);

bool wr_loop_is_here(const weir_client *client);

/* The lane may go on. */
void wr_loop_run(struct wr_lane *lane);

/* It will not be looked at any more. */
void wr_loop_forget(struct wr_lane *lane);

/* Rings at that time, and not at another it was set to; WEIR_FOREVER: never. WEIR_E_NOMEM. */
int wr_due_set(weir_client *client, struct wr_due *due, int64_t at);

#endif
