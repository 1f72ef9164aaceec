/* SPDX-License-Identifier: MIT */
/* state.h - state and functions that the parts of the engine share.
 *
 *     engine.c   opens, starts, awaits, ends     answer.c   outcome of a page
 *     resume.c   restores a job                  links.c    judges found URLs
 *     loop.c     a thread: asks its plan         post.c     posts to store and output
 *     flight.c   one request                     robots.c   robots.txt and its redirects
 *     letter.c   messages to loops               load.c     reads from the store for plans
 *     output.c   the file of lines               job.c      budgets, failures, the end
 *     seed.c     seeds                           referrer.c pages that led to tasks
 *     scope.c    which links are followed        line.c     a line of the output
 *     report.c   statistics, report of hosts     log.c      a line for each request
 *     cap.c      limits over all hosts           keep.c     responses that are kept
 *     wall.c     hosts with a firewall           course.c   how fast hosts were asked
 *     archive.c  files of a WARC archive         bodies.c   files of bodies
 *     ask.c      questions to loops              look.c     looks at hosts; why.c, steer.c
 *     events.c   events of hosts                 digest.c   digests of bodies
 *     pattern.c  patterns for URLs               types.c    URLs that are not pages
 *     listing.c  sitemaps                        metrics.c  metrics and health
 *     earlier.c  results of an earlier job       again.c    recrawls
 *     names.c    a set that only grows           group.c    domain of a host
 *     lease.c    hosts that processes share      find.c     jobs in the store
 *
 * A flight is one fetch: from its START until the store has taken its outcome. The next fetch uses
 * its memory.
 *
 * Whatever is under way is counted: fetches (`flights`), messages and loads (`pending`), and
 * `posts`. A job is over when these are 0, no plan has work, and the store counts nothing queued.
 */
#ifndef WR_SHELL_ENGINE_STATE_H
#define WR_SHELL_ENGINE_STATE_H

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "core/plan/ledger.h"
#include "core/rules/http/firewall.h"
#include "core/rules/page/page.h"
#include "shell/engine/archive.h"
#include "shell/engine/counts.h"
#include "shell/engine/engine.h"
#include "shell/engine/letter.h"
#include "shell/engine/look.h"
#include "shell/engine/output.h"
#include "shell/loop/wakeup.h"

#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>
#include <weir/handler.h>
#include <weir/limit.h>

#define WR_LOOPS_MAX 64
#define WR_LOADS_MAX 128   /* loads of a loop that are not answered */
#define WR_ELSEWHERE 65536 /* slots for links sent to other loops lately; a power of two */
#define WR_LISTED 1024     /* slots for origins whose sitemaps were offered lately */
#define WR_FIELDS_MAX 64   /* header lines of the user */

struct wr_crawl_loop;
struct wr_flight;
struct wr_sitemap;

/* Fills in all details of a host; on its loop (look.c). */
void wr_look_fill(const struct wr_crawl_loop *loop, const struct wr_plan_host *host, struct wr_look_host *ret_host);

/* ---- events (events.c) ---- */

int wr_events_new(struct wr_engine *engine);
void wr_events_free(struct wr_engine *engine);
/* Adds an event, after setting its number, time and key. */
void wr_event_add(struct wr_engine *engine, struct wr_span key, struct wr_engine_event event);
/* Adds events for news of a host; the callback `news` of struct wr_plan_options. */
void wr_event_news(void *context, const struct wr_plan_host *host, uint32_t news, int status, int64_t now);

/* ---- links (links.c) ---- */

/* A URL that was found: accepted, or to be judged by this loop or another. */
struct wr_found {
    uint64_t fingerprint;
    uint32_t url_at, url_bytes; /* position and length in wr_founds.text */
    uint32_t key_at, key_bytes;
    uint32_t depth, hops;
    uint64_t parent;               /* fingerprint of its parent; used for batches and sitemaps */
    int64_t changed_wall_at;       /* time of change in a sitemap; 0: unknown, or not needed */
    enum wr_offer_verdict verdict; /* LATER: not judged yet */
    bool is_seed, is_sitemap;
    bool is_stored;         /* stored by another loop for this one: a refusal has to end the task */
    bool asks;              /* the store says if it is new; then its loop judges it */
    bool is_new, is_beyond; /* the store's answers: new; beyond max_pages or host_pages */
};

struct wr_founds {
    struct wr_found *list;
    size_t count, room;
    struct wr_buf text;
};

void wr_founds_init(struct wr_founds *ret_founds, const weir_allocator *allocator);
void wr_founds_clear(struct wr_founds *founds);
void wr_founds_release(struct wr_founds *founds);

/* Adds a copy of `like` with this URL. Returns false if memory is short. */
bool wr_founds_add(struct wr_founds *founds, const struct wr_url *url, const struct wr_found *like);

/* Adds `copy`, with the texts of `found` in `from`. Returns false if memory is short. */
bool wr_founds_copy(struct wr_founds *founds, const struct wr_founds *from, const struct wr_found *found,
                    const struct wr_found *copy);

/* Judges a link, and adds it if something is to be posted. Returns the verdict. */
enum wr_offer_verdict wr_founds_offer(struct wr_crawl_loop *loop, struct wr_founds *founds, const struct wr_url *url,
                                      const struct wr_found *link);

struct wr_span wr_found_url(const struct wr_founds *founds, const struct wr_found *found);
struct wr_span wr_found_key(const struct wr_founds *founds, const struct wr_found *found);

/* Judges the URLs with the verdict LATER. Keeps only those for which something is to be posted. */
void wr_founds_judge(struct wr_crawl_loop *loop, struct wr_founds *founds);

/* ---- fetches (flight.c) ---- */

enum wr_flight_place {
    WR_FLIGHT_SPARE,
    WR_FLIGHT_FLIES,
    WR_FLIGHT_POSTS, /* has ended, and waits for room in the store */
};

/* Header fields of the response that are needed after its head. */
enum wr_text {
    WR_TEXT_LOCATION,
    WR_TEXT_TYPE,
    WR_TEXT_ETAG,
    WR_TEXT_MODIFIED,
    WR_TEXT_CACHE,
    WR_TEXTS,
};

struct wr_flight {
    struct wr_crawl_loop *loop;
    struct wr_list_link link;     /* entry in the list of its place */
    struct wr_plan_action action; /* action of the plan; its `url` is not valid */
    struct wr_url url;
    char url_memory[WR_URL_ROOM];
    struct wr_transfer *transfer; /* request on the net; NULL: not started, or ended */
    bool was_sent;
    bool is_landed; /* not counted as in flight any more */
    bool wants_body;
    bool is_sitemap;
    bool is_conditional; /* the request asks only whether the page has changed */
    uint64_t body_bytes;
    /* The response. */
    struct wr_buf head_text;
    uint32_t head_at[WR_TEXTS], head_bytes[WR_TEXTS];
    unsigned wishes; /* directives of X-Robots-Tag */
    weir_said said;
    int64_t said_at;
    struct wr_page page;
    struct wr_digest *digest;   /* digest of the body; NULL: not needed */
    bool has_page;              /* a page was begun */
    bool has_links;             /* the page has ended, and has links that are not offered yet */
    bool is_telling;            /* has, or had, links to offer; counted in loop->telling */
    struct wr_sitemap *sitemap; /* parser of a sitemap; NULL: it is a page */
    struct wr_founds listed;    /* URLs of the sitemap that are not offered yet */
    struct wr_buf unread;       /* buffered bytes of the sitemap */
    size_t read_bytes;          /* bytes of `unread` that were read */
    struct wr_list_link reading;
    bool ends_when_read; /* the response has arrived; ends when all is read and offered */
    bool is_left;        /* the crawl stopped before the end: the task stays queued */
    bool is_enough;      /* no more of the body is needed */
    bool leads_too_deep; /* the sitemap lists others that are nested too deep */
    struct wr_buf body;  /* body of a robots.txt; robots_held counts held_bytes */
    size_t held_bytes;
    bool lacks_room; /* robots_held has reached its limit */
    /* The end of the fetch. */
    struct wr_net_result result;
    struct wr_buf words, final_url;
    struct wr_fate fate;
    struct wr_founds founds;
    struct wr_buf line;
    enum wr_verdict verdict;
    struct wr_store_visit visit; /* texts are the fetch's, or those of the earlier job */
    struct wr_keep keep;
    struct wr_firewall_look look;
    struct wr_buf first; /* first bytes of the body, if it may be a firewall's */
    bool keeps_first;
    enum wr_firewall firewall; /* the firewall that has answered, if any */
    bool is_again;             /* the task is retried: no line */
    bool has_seeds;            /* carries seeds, which `seeding` counts */
    uint64_t lease;            /* token of the host's lease */
    bool is_owed;              /* ended and not posted: the host must not be released */
};

void wr_flight_start(struct wr_crawl_loop *loop, const struct wr_plan_action *action);
/* Makes a fetch for a task that ends unsent. Its URL may be invalid. NULL without memory. */
struct wr_flight *wr_flight_unsent(struct wr_crawl_loop *loop, const struct wr_plan_action *action);
/* Judges and posts URLs without a request. Takes them out of `founds`. */
void wr_flight_carry(struct wr_crawl_loop *loop, struct wr_founds *founds, bool are_seeds);
bool wr_flight_set_url(struct wr_flight *flight, struct wr_span url);
/* Sends the request, with the validators of a copy; both may be empty. */
void wr_flight_send(struct wr_flight *flight, struct wr_span etag, struct wr_span modified);
void wr_flight_cancel(struct wr_flight *flight);
void wr_flight_landed(struct wr_flight *flight);
/* Keeps the host until the task's end is posted. Called before the plan learns of the end. */
void wr_flight_owe(struct wr_flight *flight);
/* Moves a fetch to the end of the list of that place, unless it is in that list. */
void wr_flight_move(struct wr_flight *flight, enum wr_flight_place place);
void wr_flight_give_back(struct wr_flight *flight); /* returns the fetch to the pool */
void wr_flights_free(struct wr_crawl_loop *loop);

/* Counts the request as sent. A failed connection counts as well. */
void wr_flight_count(struct wr_flight *flight, int64_t now);
struct wr_span wr_flight_head(const struct wr_flight *flight, enum wr_text which);
weir_outcome wr_flight_outcome(const struct wr_flight *flight, int status, int64_t now);
/* Returns true if the host has answered, and not only a proxy. */
bool wr_flight_is_answered(const struct wr_flight *flight);
/* Returns true if the host caused the outcome. Otherwise its gate must not learn from it. */
bool wr_flight_is_hosts(const struct wr_flight *flight);

/* ---- pages (answer.c) and posts (post.c) ---- */

void wr_answer_came(struct wr_flight *flight);
/* Ends a page, after its response was packed as far as needed. */
void wr_answer_end(struct wr_flight *flight);
/* Offers more links of a page, and ends it when no link is left. */
void wr_answer_go_on(struct wr_flight *flight);
void wr_answer_end_unsent(struct wr_crawl_loop *loop, const struct wr_plan_action *action);
/* Ends a task that is damaged in the store; `why` says how. */
void wr_answer_end_damaged(struct wr_crawl_loop *loop, const struct wr_plan_action *action, const char *why);
/* Ends a task whose page has probably not changed. */
void wr_answer_end_not_due(struct wr_crawl_loop *loop, const struct wr_plan_action *action);

/* Judges the URLs of a fetch, and posts its outcome. Waits if the store has no room. */
void wr_post_flight(struct wr_flight *flight);
/* Sends seeds to a loop, and takes them out of `founds`. Returns 0 or WEIR_E_NOMEM. */
int wr_news_send_seeds(struct wr_engine *engine, uint32_t index, struct wr_founds *founds);
/* Adds a copy of a seed to a batch, and sends that if it is full. Errors as of wr_engine_seed. */
int wr_seeds_add(struct wr_engine *engine, const struct wr_founds *from, const struct wr_found *found);
/* Retries posts that wait for room in the store. */
void wr_posts_again(struct wr_crawl_loop *loop);

/* ---- firewalls (wall.c) ---- */

void wr_wall_body(struct wr_flight *flight, const char *data, size_t bytes);
/* Finds out if a firewall has answered. If it blocks the host, informs the store and the user. */
void wr_wall_judge(struct wr_flight *flight);
/* Returns how long a stored block of a host still lasts, ns; 0: the host may be asked. */
int64_t wr_wall_recall(struct wr_crawl_loop *loop, const struct wr_plan_host *host, int64_t until_wall_at,
                       enum wr_firewall by);
/* Sets the error text of a blocked page. Once per page, because it counts the page. */
void wr_wall_words(struct wr_flight *flight, enum wr_firewall by, bool was_sent);

/* ---- robots.txt (robots.c) ---- */

/* Returns the URL of a host's robots.txt, which is its key in the store. */
#define WR_ROBOTS_URL_ROOM (WEIR_PACE_KEY_MAX + sizeof "https:///robots.txt")
struct wr_span wr_robots_url(const struct wr_plan_host *host, bool is_https, char memory[WR_ROBOTS_URL_ROOM]);
/* Appends a piece of the body. Returns false without room: the request goes back to the plan. */
bool wr_robots_body(struct wr_flight *flight, const char *data, size_t bytes);
/* Subtracts bytes from robots_held. */
void wr_robots_let_go(struct wr_engine *engine, size_t held_bytes);
/* Carries out ROBOTS: finds the URL and the validators, and sends the request. */
void wr_robots_begin(struct wr_flight *flight);
void wr_robots_came(struct wr_flight *flight);
/* Keeps the redirect of a request that was not sent. */
void wr_robots_returned(struct wr_flight *flight);
void wr_errand_came(struct wr_flight *flight);
void wr_hops_init(struct wr_crawl_loop *loop);
void wr_hops_free(struct wr_crawl_loop *loop);
void wr_errands_tick(struct wr_crawl_loop *loop); /* places errands; fails those that are late */
void wr_errands_place(struct wr_crawl_loop *loop, struct wr_span key);
void wr_errands_free(struct wr_crawl_loop *loop);

/* ---- loads (load.c) ---- */

void wr_load_begin(struct wr_crawl_loop *loop, const struct wr_plan_action *action);
void wr_hosts_begin(struct wr_crawl_loop *loop, const struct wr_plan_action *action);
/* Lists all hosts with tasks, though the plan has not asked for them. */
void wr_hosts_again(struct wr_crawl_loop *loop);

/* Referrers: the URL that led to each task in windows and in flight. Empty: unknown. */
void wr_referrers_init(struct wr_crawl_loop *loop);
void wr_referrer_put(struct wr_crawl_loop *loop, uint64_t fingerprint, struct wr_span url);
struct wr_span wr_referrer_get(const struct wr_crawl_loop *loop, uint64_t fingerprint);
void wr_referrer_drop(struct wr_crawl_loop *loop, uint64_t fingerprint);
void wr_referrers_release(struct wr_crawl_loop *loop);

/* ---- sitemaps (listing.c) ---- */

/* Offers the sitemaps of a seed's host when the seed's page has arrived, if they are wanted. */
void wr_listing_offer(struct wr_flight *flight);
/* Returns true if the task is a sitemap. */
bool wr_listing_is(const struct wr_flight *flight);
/* Returns true if a sitemap may be at the URL: its host is in scope. */
bool wr_listing_may_be(const struct wr_flight *flight, const struct wr_url *url);
/* Read a sitemap as it arrives; do nothing for a page. False: no more of it is needed. */
void wr_listing_begin(struct wr_flight *flight);
bool wr_listing_feed(struct wr_flight *flight, const char *data, size_t bytes);
/* Reads sitemaps in each turn of the loop. Call it when the store may have room. */
void wr_listings_again(struct wr_crawl_loop *loop);
/* Returns true if a sitemap has arrived and is not read yet. wr_answer_end is called afterwards. */
bool wr_listing_waits(struct wr_flight *flight);
/* Has wr_answer_go_on called in a later turn of the loop, because links are left. */
void wr_listing_wait(struct wr_flight *flight);
/* Ends a sitemap, and offers the rest of its URLs. */
void wr_listing_end(struct wr_flight *flight);
void wr_listing_drop(struct wr_flight *flight);

/* ---- an earlier job (earlier.c) ---- */

/* Returns true if the earlier job had the page. */
bool wr_earlier_had(struct wr_span verdict, const struct wr_store_visit *visit);
void wr_earlier_init(struct wr_crawl_loop *loop);
/* Keeps the earlier results of a task while it is in a window or in flight. */
void wr_earlier_put(struct wr_crawl_loop *loop, const struct wr_store_task *task);
void wr_earlier_drop(struct wr_crawl_loop *loop, uint64_t fingerprint);
void wr_earlier_release(struct wr_crawl_loop *loop);
/* Returns true if the page has probably changed, or its sitemap says so. */
bool wr_earlier_is_due(const struct wr_store_task *task, int64_t wall_now);
/* Returns the validator for a conditional request; empty: none. */
struct wr_span wr_earlier_validator(const struct wr_flight *flight);
/* Fills flight->visit after the verdict, and finds out if the page is unchanged. */
void wr_earlier_compare(struct wr_flight *flight);

/* ---- loops (loop.c) ---- */

struct wr_crawl_loop {
    struct wr_engine *engine;
    uint32_t index;
    pthread_t thread;
    pthread_mutex_t mail_lock;
    bool takes_mail; /* accepts messages; mail_lock protects it */
    uv_loop_t uv;
    uv_prepare_t prepare;
    uv_poll_t timer;
    uv_timer_t ticks;
    struct wr_wakeup wakeup;
    uv_idle_t reads; /* runs while `reading` has sitemaps */
    struct wr_list reading;
    uint32_t telling; /* pages that have, or had, links to offer */
    int timer_fd;
    int64_t timer_at; /* when the timer ends; WEIR_FOREVER: it is off */
    int64_t next_at;  /* when to ask the plan next */
    struct wr_net *net;
    struct wr_plan *plan;
    struct wr_list lists[WR_FLIGHT_POSTS + 1]; /* lists of fetches, by place */
    bool is_stalled;                           /* the store has no room */
    _Atomic bool has_room;                     /* the store has room now */
    /* The store has hosts that the plan lacks: list them. */
    _Atomic bool lists_again;
    bool has_uv, has_thread;
    uint32_t loads;
    int64_t start_at, paid_at, scarce_until; /* no start before these times: see cap.c */
    bool is_paused;                          /* the plan starts nothing more */
    _Atomic bool is_drained;                 /* the plan has no work */
    struct wr_warc *warc;                    /* packs records; NULL: nothing is kept */
    struct wr_map referrers;
    struct wr_map earlier; /* results of the earlier job, by task */
    struct wr_referrer *last_referrer;
    size_t referrer_bytes;           /* bytes of long referrers */
    struct wr_map hops;              /* redirects of robots.txt, by host and scheme */
    struct wr_list errands;          /* robots.txt requests for other loops, not answered yet */
    struct wr_store_change *changes; /* scratch space for a post */
    size_t changes_room;
    uint64_t *elsewhere;
    int64_t asleep_ns;          /* how long the machine had slept at the last wr_lease_wake, ns */
    uint64_t listed[WR_LISTED]; /* origins whose sitemaps were offered lately */
    struct wr_crawl_counts counts;
};

int wr_crawl_loop_open(struct wr_crawl_loop *loop, struct wr_engine *engine, uint32_t index);
int wr_crawl_loop_run(struct wr_crawl_loop *loop); /* starts the loop's thread */
void wr_crawl_loop_close(struct wr_crawl_loop *loop);
/* Makes the loop look for work; from any thread. */
void wr_crawl_loop_wake(struct wr_crawl_loop *loop);
/* Asks the plan between two events, if it is due. */
void wr_crawl_loop_due(struct wr_crawl_loop *loop);
/* Stores what is known of a host. */
void wr_crawl_loop_note(struct wr_crawl_loop *loop, struct wr_plan_host *host);
static inline int64_t wr_crawl_loop_now(const struct wr_crawl_loop *loop);

/* ---- responses that are kept (keep.c, archive.c) ---- */

void wr_keep_init(struct wr_keep *keep, const struct wr_engine *engine);
void wr_keep_clear(struct wr_keep *keep, struct wr_engine *engine);
void wr_keep_release(struct wr_keep *keep, struct wr_engine *engine);
void wr_keep_line(struct wr_keep *keep, struct wr_span line);
/* Keeps a piece of the body. Returns false if it cannot be kept: then ends with wr_keep_failed. */
bool wr_keep_body(struct wr_flight *flight, const char *data, size_t bytes);
void wr_keep_failed(struct wr_flight *flight);
/* Packs a response that is to be kept, and then calls wr_answer_end; now or later. */
void wr_keep_flight(struct wr_flight *flight);

struct wr_piece *wr_piece_new(struct wr_engine *engine); /* returns NULL without memory */
void wr_piece_free(struct wr_engine *engine, struct wr_piece *piece);
void wr_pieces_free(struct wr_engine *engine, struct wr_piece *piece); /* frees a list of pieces */

/* Opens the archive and the bodies. Returns 0, WEIR_E_INVAL, WEIR_E_SYSTEM or WEIR_E_NOMEM. */
int wr_archive_open(struct wr_engine *engine, const struct wr_engine_options *given);
/* Begins the archive when there is a job; waits for the store. */
int wr_archive_begin(struct wr_engine *engine);

/* The place of a record; found before its post, taken after it, under the output's lock. */
struct wr_archive_place {
    uint32_t number;
    uint64_t begin, end;
    struct wr_piece *info; /* first record of a new file; NULL: no new file */
};
/* Finds the place of a record. Returns 0, WEIR_E_NOMEM, or WEIR_E_FULL to retry later. */
int wr_archive_place(struct wr_engine *engine, const struct wr_flight *flight, struct wr_archive_place *ret_place,
                     struct wr_store_change *ret_change);
/* Takes the place, and queues the pieces. `place` is NULL for a body without a record. */
void wr_archive_take(struct wr_engine *engine, struct wr_flight *flight, const struct wr_archive_place *place);
/* Gives up a claimed file that has no contents; NULL is fine. */
void wr_archive_unclaim(struct wr_engine *engine, struct wr_output *file);
/* Writes posted pieces and syncs, as wr_output_sync. */
int wr_archive_sync(struct wr_engine *engine);
void wr_archive_close(struct wr_engine *engine);

/* ---- state that the loops share (job.c) ---- */

enum wr_engine_phase {
    WR_PHASE_IDLE,
    WR_PHASE_RUNS,
    WR_PHASE_OVER,   /* the job is over: work under way ends */
    WR_PHASE_DRAINS, /* ends and can be resumed: by a signal, or out of time or bytes */
    WR_PHASE_STOPS,
    WR_PHASE_CLOSES, /* nothing is under way: threads end */
};

#define WR_END_WHY_ROOM 256 /* bytes for the reason of the end */

/* Whether the end of the job is stored. */
enum wr_settling {
    WR_UNSETTLED,
    WR_SETTLES, /* the end is posted */
    WR_SETTLED, /* the end is stored, has failed, or is not to be stored */
};

struct wr_engine {
    const weir_allocator *allocator;
    const weir_clock *clock;
    struct wr_store *store;
    struct wr_hash_key hash_key;      /* a copy of the store's, because plans outlive the store */
    struct wr_engine_options options; /* options with defaults; the engine owns the texts */
    char *agent, *proxy, *ca_file;
    char *settings; /* settings of the job that was found */
    char *header_lines[WR_FIELDS_MAX];
    struct wr_net_field fields[WR_FIELDS_MAX];
    size_t field_count;
    pthread_rwlock_t origins_lock; /* protects `origins`, which get the user's header lines */
    struct wr_map origins;
    struct wr_resolver *resolver;
    struct wr_statuses statuses;
    struct wr_span token; /* first word of the agent, for robots.txt */
    struct wr_output output;
    struct wr_archive archive;
    struct wr_log *log;
    struct wr_crawl_loop *loops;
    uint32_t loop_count, loops_room; /* loop_count is 0 before the loops are there */
    uint32_t connections;            /* connections that each loop may have */
    int64_t began_at;
    int64_t job;
    int64_t earlier;                                       /* the job to recrawl; 0: none */
    uint64_t accepted_before, ended_before, failed_before; /* URLs of earlier runs of the job */
    _Atomic int64_t flights;
    _Atomic int64_t scarce_since; /* start of a lack of memory or descriptors; 0: none */
    _Atomic int64_t pending;      /* messages and loads under way */
    _Atomic int64_t posts;        /* posts that are not confirmed */
    _Atomic size_t robots_held;   /* counted bytes of arriving robots.txt */
    _Atomic int64_t seeding;      /* batches of seeds that are not stored */
    _Atomic int phase;
    _Atomic uint64_t blocked_hosts;
    bool has_row, has_free; /* answers of the last look: the job's row; an unblocked host */
    bool is_shared;         /* processes share hosts, by leases */
    int64_t lease_ns, beat_at, silent_since, unanswered;
    _Atomic bool is_claiming, is_beating;
    _Atomic bool is_end_stored;   /* another process has stored the end */
    _Atomic int settling;         /* enum wr_settling */
    _Atomic int64_t leases;       /* hosts that this process has */
    _Atomic uint64_t left_in_all; /* queued URLs, as of the last beat */
    _Atomic uint64_t beyond;      /* links that the store has left out */
    _Atomic int64_t excess;       /* leases to give up to other processes */
    /* Time of the next offer of excess, and the pause after it; only the store's thread uses
     * them. */
    int64_t shed_at, shed_ns;
    _Atomic int64_t claim_at, look_at, stranded_at; /* earliest times of the next queries */
    _Atomic uint64_t beat;                          /* number of the last beat */
    _Atomic int64_t seeds_after;                    /* seeds are read after this task number */
    /* Marks from which seeds_after is set (lease.c); only the store's thread uses them. */
    int64_t seeds_newest, seeds_marked, seeds_marked_at;
    enum wr_job_status seen; /* stored status, at the last look */
    _Atomic bool is_seeded, is_looking, is_store_paused, has_max_pages;
    _Atomic bool is_listed;                 /* all sitemaps are read: changes are known */
    _Atomic uint32_t relisting;             /* loops that list hosts; none works before all have */
    _Atomic int64_t warned_at, answered_at; /* times of last warning, response; 0: never */
    uint64_t left;                          /* queued tasks, as the store said last */
    pthread_mutex_t lock;                   /* protects all fields below */
    pthread_cond_t changed;
    struct wr_ledger ledger;
    int64_t next_start_at, paid_until; /* schedule of limits over all hosts, see cap.c */
    int64_t drain_at;                  /* time at which the end began; 0: not ending */
    uint32_t running;                  /* running threads of loops */
    bool has_end;
    enum wr_engine_end end;
    char why[WR_END_WHY_ROOM], pause_why[160], failed_url[256], failed_why[256];
    struct wr_founds *seeds; /* batches, one for each loop; of the caller's thread */
    struct wr_tally *tally;
    struct wr_events *events;
};

static inline int64_t wr_crawl_loop_now(const struct wr_crawl_loop *loop)
{
    return weir_clock_now(loop->engine->clock);
}

uint32_t wr_engine_loop_of(const struct wr_engine *engine, struct wr_span key);
uint32_t wr_engine_loop_of_url(const struct wr_engine *engine, const struct wr_url *url);
uint64_t wr_engine_fingerprint(const struct wr_engine *engine, struct wr_span canonical);
/* Lets all loops retry posts that wait for room. */
void wr_engine_has_room(struct wr_engine *engine);
void wr_engine_wake(struct wr_engine *engine);
/* Ends the job; the first reason counts. */
#define WR_JOB_ROW_LOST "the row of the job is gone or cannot be read; put it back as it was"
void wr_job_over(struct wr_engine *engine, enum wr_engine_end end, const char *why);
/* Stores how the job ended, once. Returns true if that is done. */
bool wr_job_settle(struct wr_engine *engine);
/* Returns the reason under which waits count once nothing is started any more. */
weir_reason wr_job_halted_for(struct wr_engine *engine);
#define WR_TIME_IS_OVER "the time limit was reached (--max-time)"
/* Counts the end of a task towards failures in a row. */
void wr_job_told(struct wr_crawl_loop *loop, enum wr_ledger_end end);
/* Draws from a budget for the loop's plan. Returns what it got; less than `count` is the last. */
uint64_t wr_job_draw(struct wr_crawl_loop *loop, enum wr_draw what, uint64_t count);
/* Decrement a count of work under way. At 0, the job may be over. */
void wr_flights_done(struct wr_engine *engine);
void wr_pending_done(struct wr_engine *engine);
void wr_posts_done(struct wr_engine *engine);
/* Completes a post that needs nothing else; the context is the engine. */
void wr_on_stored(void *context, int error, const char *why);
void wr_job_tick(struct wr_crawl_loop *loop);
void wr_engine_loop_ended(struct wr_engine *engine);
/* Counts a loop that has listed its hosts with tasks. */
void wr_relisted(struct wr_crawl_loop *loop);
/* Finds out whether the job is over, and asks the store if needed; from a loop. */
void wr_job_look(struct wr_engine *engine);
/* Warns at most once in ten seconds. */
void wr_engine_warn_seldom(struct wr_engine *engine, const char *what, const char *why);
void wr_engine_warn_scarce(struct wr_engine *engine, const char *words);
void wr_engine_has_enough(struct wr_engine *engine);
/* Warns the user with one line: both texts. */
void wr_engine_warn(struct wr_engine *engine, const char *what, const char *why);
/* Copies as much of the text as fits. */
void wr_text_set(char *to, size_t to_bytes, const char *text);
/* Returns true if the user's header lines go to this URL. */
bool wr_engine_is_seeds(struct wr_engine *engine, const struct wr_url *url);
/* Extends the scope by a seed; `is_given`: the user gave it, else a seed led to it. */
void wr_engine_seed_known(struct wr_engine *engine, const struct wr_url *url, bool is_given);
void wr_origins_free(struct wr_engine *engine);

/* ---- limits over all hosts (cap.c) ---- */

void wr_cap_started(struct wr_crawl_loop *loop);
/* Holds all starts of a loop: descriptors, ports, memory or room are short. */
void wr_cap_hold(struct wr_crawl_loop *loop, int64_t for_ns);
void wr_cap_fetched(struct wr_crawl_loop *loop, uint64_t bytes);

/* ---- log (log.c) and report (report.c) ---- */

int wr_log_open(const char *path, const weir_allocator *allocator, struct wr_log **ret_log);
void wr_log_sent(struct wr_log *log, const struct wr_flight *flight, int64_t now);
void wr_log_pace(struct wr_log *log, struct wr_span host, const weir_pace_entry *entry, int64_t now);
/* Writes what can be written without waiting. */
void wr_log_flush(struct wr_log *log);
/* Closes the log. Returns how many lines were dropped. */
uint64_t wr_log_close(struct wr_log *log);

/* Collects reports of hosts, when they leave memory and at the end. */
int wr_tally_new(struct wr_engine *engine);
void wr_tally_add(struct wr_engine *engine, const struct wr_plan_host_report *report);
void wr_tally_free(struct wr_engine *engine);

/* ---- processes that share a store (lease.c) ---- */

/* Claims, renews and releases hosts; every half second, on each loop. */
void wr_lease_tick(struct wr_crawl_loop *loop);
/* Expires all leases if the machine was suspended. Called before each request is sent. */
void wr_lease_wake(struct wr_crawl_loop *loop);
/* Returns true if this loop has the lease of the URL's host. */
bool wr_lease_has(const struct wr_crawl_loop *loop, const struct wr_url *url);
/* Claims a host. If another process has it, that one is asked to release it. */
void wr_lease_want(struct wr_crawl_loop *loop, struct wr_span key);
/* Take the counts and the status of the job from the store. Another process may have ended it. */
void wr_job_counted(struct wr_engine *engine, const struct wr_store_job *job);
void wr_job_seen(struct wr_engine *engine, enum wr_job_status status);

/* ---- resuming a job (resume.c) ---- */

int wr_resume(struct wr_engine *engine);

#endif
