/* SPDX-License-Identifier: MIT */
/* engine_state.h - state and functions that the parts of the engine share.
 *
 *     engine.c           opens, starts, awaits, ends    rate_history.c        how fast hosts were asked
 *     job.c              budgets, failures, the end     global_limits.c       limits over all hosts
 *     job_resume.c       restores a job                 registrable_domain.c  domain of a host
 *     job_lookup.c       jobs in the store              output_file.c         the file of lines
 *     seed.c             seeds                          output_line.c         a line of the output
 *     crawl_loop.c       a thread: asks its plan        bodies.c              files of bodies
 *     loop_message.c     messages to loops              archive.c             files of a WARC archive
 *     loop_query.c       questions to loops             digest_algorithms.c   digests of bodies
 *     crawl_fetch.c      one request                    recrawl_visit.c       results of an earlier job
 *     crawl_robots.c     robots.txt and its redirects   recrawl_diff.c        recrawls
 *     sitemaps.c         sitemaps                       store_load.c          reads of the store
 *     page_end.c         outcome of a page              host_lease.c          hosts that processes share
 *     page_post.c        posts to store and output      inspect_hosts.c       views of hosts
 *     url_batch.c        judges found URLs              inspect_why.c         what holds a URL
 *     scope.c            which links are followed       inspect_control.c     pauses, cancels, sets
 *     pattern.c          patterns for URLs              inspect_events.c      events of hosts
 *     skipped_types.c    URLs that are not pages        engine_metrics.c      metrics and health
 *     referrer.c         pages that led to tasks        crawl_stats.c         statistics, report of hosts
 *     capture.c          responses that are kept        request_log.c         a line for each request
 *     firewall_blocks.c  hosts with a firewall          string_set.c          a set that only grows
 *
 * A fetch lives from its START until the store has taken its outcome. Its memory is used again.
 * A job is over when no fetch (`flights`), message, load (`pending`) or post (`posts`) is under
 * way, no plan has work, and the store counts nothing queued.
 */
#ifndef WR_CRAWL_ENGINE_ENGINE_STATE_H
#define WR_CRAWL_ENGINE_ENGINE_STATE_H

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "core/plan/ledger.h"
#include "core/web/http/firewall.h"
#include "core/web/page/page.h"
#include "crawl/engine/archive.h"
#include "crawl/engine/counts.h"
#include "crawl/engine/crawl_inspect.h"
#include "crawl/engine/engine.h"
#include "crawl/engine/loop_message.h"
#include "crawl/engine/output_file.h"
#include "http/loop/wakeup.h"

#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>
#include <weir/handler.h>
#include <weir/limit.h>

#define WR_LOOPS_MAX 64
#define WR_LOADS_MAX 128             /* loads of a loop that are not answered */
#define WR_SENT_URL_SLOTS 65536      /* slots for links sent to other loops lately; a power of two */
#define WR_SITEMAP_ORIGIN_SLOTS 1024 /* slots for origins whose sitemaps were offered lately */
#define WR_USER_HEADERS_MAX 64       /* header lines of the user */

struct wr_crawl_loop;
struct wr_crawl_fetch;
struct wr_sitemap;

/* Fills in all details of a host; on its loop (inspect_hosts.c). */
void wr_host_view_fill(const struct wr_crawl_loop *loop, const struct wr_plan_host *host,
                       struct wr_host_view *ret_host);

/* ---- events (inspect_events.c) ---- */

int wr_events_new(struct wr_engine *engine);
void wr_events_free(struct wr_engine *engine);
/* Adds an event, after setting its number, time and key. */
void wr_event_add(struct wr_engine *engine, struct wr_span key, struct wr_engine_event event);
/* Adds events for news of a host; the callback `news` of struct wr_plan_options. */
void wr_events_on_host_change(void *context, const struct wr_plan_host *host, uint32_t news, int status, int64_t now);

/* ---- links (url_batch.c) ---- */

/* A URL that was found: accepted, or to be judged by this loop or another. */
struct wr_url_batch_entry {
    uint64_t fingerprint;
    uint32_t url_at, url_bytes; /* position and length in wr_url_batch.text */
    uint32_t key_at, key_bytes;
    uint32_t depth, hops;
    uint64_t parent;                 /* fingerprint of its parent; used for batches and sitemaps */
    int64_t changed_wall_at;         /* time of change in a sitemap; 0: unknown, or not needed */
    enum wr_add_url_verdict verdict; /* LATER: not judged yet */
    bool is_seed, is_sitemap;
    bool is_stored;         /* stored by another loop for this one: a refusal has to end the task */
    bool asks;              /* the store says if it is new; then its loop judges it */
    bool is_new, is_beyond; /* the store's answers: new; beyond max_pages or host_pages */
};

struct wr_url_batch {
    struct wr_url_batch_entry *list;
    size_t count, room;
    struct wr_buf text;
};

void wr_url_batch_init(struct wr_url_batch *ret_founds, const weir_allocator *allocator);
void wr_url_batch_clear(struct wr_url_batch *urls);
void wr_url_batch_release(struct wr_url_batch *urls);

/* Adds a copy of `like` with this URL. Returns false if memory is short. */
bool wr_url_batch_add(struct wr_url_batch *urls, const struct wr_url *url, const struct wr_url_batch_entry *like);

/* Adds `copy`, with the texts of `found` in `from`. Returns false if memory is short. */
bool wr_url_batch_add_copy(struct wr_url_batch *urls, const struct wr_url_batch *from,
                           const struct wr_url_batch_entry *found, const struct wr_url_batch_entry *copy);

/* Judges a link, and adds it if something is to be posted. Returns the verdict. */
enum wr_add_url_verdict wr_url_batch_judge_link(struct wr_crawl_loop *loop, struct wr_url_batch *urls,
                                                const struct wr_url *url, const struct wr_url_batch_entry *link);

struct wr_span wr_url_batch_url(const struct wr_url_batch *urls, const struct wr_url_batch_entry *found);
struct wr_span wr_url_batch_key(const struct wr_url_batch *urls, const struct wr_url_batch_entry *found);

/* Judges the URLs with the verdict LATER. Keeps only those for which something is to be posted. */
void wr_url_batch_judge(struct wr_crawl_loop *loop, struct wr_url_batch *urls);

/* ---- fetches (crawl_fetch.c) ---- */

enum wr_crawl_fetch_place {
    WR_CRAWL_FETCH_SPARE,
    WR_CRAWL_FETCH_IN_FLIGHT,
    WR_CRAWL_FETCH_WAITS_TO_POST, /* has ended, and waits for room in the store */
};

/* Header fields of the response that are needed after its head. */
enum wr_response_header {
    WR_RESPONSE_LOCATION,
    WR_RESPONSE_CONTENT_TYPE,
    WR_RESPONSE_ETAG,
    WR_RESPONSE_LAST_MODIFIED,
    WR_RESPONSE_CACHE_CONTROL,
    WR_RESPONSE_HEADERS,
};

struct wr_crawl_fetch {
    struct wr_crawl_loop *loop;
    struct wr_list_link link;     /* entry in the list of its place */
    struct wr_plan_action action; /* action of the plan; its `url` is not valid */
    struct wr_url url;
    char url_memory[WR_URL_ROOM];
    struct wr_transfer *transfer; /* request on the net; NULL: not started, or ended */
    bool was_sent;
    bool is_counted_out; /* not counted as in flight any more */
    bool wants_body;
    bool is_sitemap;
    bool is_conditional; /* the request asks only whether the page has changed */
    uint64_t body_bytes;
    /* The response. */
    struct wr_buf head_text;
    uint32_t head_at[WR_RESPONSE_HEADERS], head_bytes[WR_RESPONSE_HEADERS];
    unsigned directives; /* directives of X-Robots-Tag */
    weir_server_limits said;
    int64_t said_at;
    struct wr_page page;
    struct wr_digest *digest;   /* digest of the body; NULL: not needed */
    bool has_page;              /* a page was begun */
    bool has_links;             /* the page has ended, and has links that are not offered yet */
    bool offers_links;          /* has, or had, links to offer; counted in loop->telling */
    struct wr_sitemap *sitemap; /* parser of a sitemap; NULL: it is a page */
    struct wr_url_batch listed; /* URLs of the sitemap that are not offered yet */
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
    struct wr_task_outcome fate;
    struct wr_url_batch urls;
    struct wr_buf line;
    enum wr_page_verdict verdict;
    struct wr_store_visit visit; /* texts are the fetch's, or those of the earlier job */
    struct wr_capture capture;
    struct wr_firewall_evidence look;
    struct wr_buf first; /* first bytes of the body, if it may be a firewall's */
    bool keeps_first_bytes;
    enum wr_firewall firewall; /* the firewall that has answered, if any */
    bool is_again;             /* the task is retried: no line */
    bool has_seeds;            /* carries seeds, which `seeding` counts */
    uint64_t lease;            /* token of the host's lease */
    bool holds_host;           /* ended and not posted: the host must not be released */
};

void wr_crawl_fetch_start(struct wr_crawl_loop *loop, const struct wr_plan_action *action);
/* Makes a fetch for a task that ends unsent. Its URL may be invalid. NULL without memory. */
struct wr_crawl_fetch *wr_crawl_fetch_new_unsent(struct wr_crawl_loop *loop, const struct wr_plan_action *action);
/* Judges and posts URLs without a request. Takes them out of `urls`. */
void wr_crawl_fetch_post_urls(struct wr_crawl_loop *loop, struct wr_url_batch *urls, bool are_seeds);
bool wr_crawl_fetch_set_url(struct wr_crawl_fetch *fetch, struct wr_span url);
/* Sends the request, with the validators of a copy; both may be empty. */
void wr_crawl_fetch_send(struct wr_crawl_fetch *fetch, struct wr_span etag, struct wr_span modified);
void wr_crawl_fetch_cancel(struct wr_crawl_fetch *fetch);
void wr_crawl_fetch_count_out(struct wr_crawl_fetch *fetch);
/* Keeps the host until the task's end is posted. Called before the plan learns of the end. */
void wr_crawl_fetch_hold_host(struct wr_crawl_fetch *fetch);
/* Moves a fetch to the end of the list of that place, unless it is in that list. */
void wr_crawl_fetch_move(struct wr_crawl_fetch *fetch, enum wr_crawl_fetch_place place);
void wr_crawl_fetch_recycle(struct wr_crawl_fetch *fetch); /* returns the fetch to the pool */
void wr_crawl_fetches_free(struct wr_crawl_loop *loop);

/* Counts the request as sent. A failed connection counts as well. */
void wr_crawl_fetch_count_sent(struct wr_crawl_fetch *fetch, int64_t now);
struct wr_span wr_crawl_fetch_header(const struct wr_crawl_fetch *fetch, enum wr_response_header which);
weir_outcome wr_crawl_fetch_outcome(const struct wr_crawl_fetch *fetch, int status, int64_t now);
/* Returns true if the host has answered, and not only a proxy. */
bool wr_crawl_fetch_is_answered(const struct wr_crawl_fetch *fetch);
/* Returns true if the host caused the outcome. Otherwise its gate must not learn from it. */
bool wr_crawl_fetch_is_caused_by_host(const struct wr_crawl_fetch *fetch);

/* ---- pages (page_end.c) and posts (page_post.c) ---- */

void wr_crawl_page_arrived(struct wr_crawl_fetch *fetch);
/* Ends a page, after its response was packed as far as needed. */
void wr_crawl_page_end(struct wr_crawl_fetch *fetch);
/* Offers more links of a page, and ends it when no link is left. */
void wr_crawl_page_offer_links(struct wr_crawl_fetch *fetch);
void wr_crawl_page_end_unsent(struct wr_crawl_loop *loop, const struct wr_plan_action *action);
/* Ends a task that is damaged in the store; `why` says how. */
void wr_crawl_page_end_damaged(struct wr_crawl_loop *loop, const struct wr_plan_action *action, const char *why);
/* Ends a task whose page has probably not changed. */
void wr_crawl_page_end_not_due(struct wr_crawl_loop *loop, const struct wr_plan_action *action);

/* Judges the URLs of a fetch, and posts its outcome. Waits if the store has no room. */
void wr_crawl_page_post(struct wr_crawl_fetch *fetch);
/* Sends seeds to a loop, and takes them out of `urls`. Returns 0 or WEIR_E_NOMEM. */
int wr_url_message_send_seeds(struct wr_engine *engine, uint32_t index, struct wr_url_batch *urls);
/* Adds a copy of a seed to a batch, and sends a full one. Errors as of wr_engine_add_seed. */
int wr_seed_batch_add(struct wr_engine *engine, const struct wr_url_batch *from,
                      const struct wr_url_batch_entry *found);
/* Retries posts that wait for room in the store. */
void wr_crawl_page_retry_posts(struct wr_crawl_loop *loop);

/* ---- firewalls (firewall_blocks.c) ---- */

void wr_firewall_keep_body(struct wr_crawl_fetch *fetch, const char *data, size_t bytes);
/* Finds out if a firewall has answered. If it blocks the host, informs the store and the user. */
void wr_firewall_note_response(struct wr_crawl_fetch *fetch);
/* Returns how long a stored block of a host still lasts, ns; 0: the host may be asked. */
int64_t wr_firewall_recall_block(struct wr_crawl_loop *loop, const struct wr_plan_host *host, int64_t until_wall_at,
                                 enum wr_firewall by);
/* Sets the error text of a blocked page. Once per page, because it counts the page. */
void wr_firewall_set_error(struct wr_crawl_fetch *fetch, enum wr_firewall by, bool was_sent);

/* ---- robots.txt (crawl_robots.c) ---- */

/* Returns the URL of a host's robots.txt, which is its key in the store. */
#define WR_ROBOTS_URL_ROOM (WEIR_PACE_KEY_MAX + sizeof "https:///robots.txt")
struct wr_span wr_crawl_robots_url(const struct wr_plan_host *host, bool is_https, char memory[WR_ROBOTS_URL_ROOM]);
/* Appends a piece of the body. Returns false without room: the request goes back to the plan. */
bool wr_crawl_robots_body(struct wr_crawl_fetch *fetch, const char *data, size_t bytes);
/* Subtracts bytes from robots_held. */
void wr_crawl_robots_uncount(struct wr_engine *engine, size_t held_bytes);
/* Carries out ROBOTS: finds the URL and the validators, and sends the request. */
void wr_crawl_robots_begin(struct wr_crawl_fetch *fetch);
void wr_crawl_robots_arrived(struct wr_crawl_fetch *fetch);
/* Keeps the redirect of a request that was not sent. */
void wr_crawl_robots_keep_redirect(struct wr_crawl_fetch *fetch);
void wr_robots_hop_arrived(struct wr_crawl_fetch *fetch);
void wr_robots_redirects_init(struct wr_crawl_loop *loop);
void wr_robots_redirects_free(struct wr_crawl_loop *loop);
void wr_robots_hops_tick(struct wr_crawl_loop *loop); /* places robots_hops; fails those that are late */
void wr_robots_hops_schedule(struct wr_crawl_loop *loop, struct wr_span key);
void wr_robots_hops_free(struct wr_crawl_loop *loop);

/* ---- loads (store_load.c) ---- */

void wr_load_host(struct wr_crawl_loop *loop, const struct wr_plan_action *action);
void wr_load_host_list(struct wr_crawl_loop *loop, const struct wr_plan_action *action);
/* Lists all hosts with tasks, though the plan has not asked for them. */
void wr_load_all_hosts(struct wr_crawl_loop *loop);

/* Referrers: the URL that led to each task in windows and in flight. Empty: unknown. */
void wr_referrers_init(struct wr_crawl_loop *loop);
void wr_referrer_put(struct wr_crawl_loop *loop, uint64_t fingerprint, struct wr_span url);
struct wr_span wr_referrer_get(const struct wr_crawl_loop *loop, uint64_t fingerprint);
void wr_referrer_drop(struct wr_crawl_loop *loop, uint64_t fingerprint);
void wr_referrers_release(struct wr_crawl_loop *loop);

/* ---- sitemaps (sitemaps.c) ---- */

/* Offers the sitemaps of a seed's host when the seed's page has arrived, if they are wanted. */
void wr_crawl_sitemaps_offer(struct wr_crawl_fetch *fetch);
/* Returns true if the task is a sitemap. */
bool wr_crawl_sitemap_is_task(const struct wr_crawl_fetch *fetch);
/* Returns true if a sitemap may be at the URL: its host is in scope. */
bool wr_crawl_sitemap_is_in_scope(const struct wr_crawl_fetch *fetch, const struct wr_url *url);
/* Read a sitemap as it arrives; do nothing for a page. False: no more of it is needed. */
void wr_crawl_sitemap_begin(struct wr_crawl_fetch *fetch);
bool wr_crawl_sitemap_feed(struct wr_crawl_fetch *fetch, const char *data, size_t bytes);
/* Reads sitemaps in each turn of the loop. Call it when the store may have room. */
void wr_crawl_sitemaps_resume(struct wr_crawl_loop *loop);
/* Returns true if a sitemap has arrived and is not read yet; then wr_crawl_page_end is called. */
bool wr_crawl_sitemap_defers_end(struct wr_crawl_fetch *fetch);
/* Has wr_crawl_page_offer_links called in a later turn of the loop, because links are left. */
void wr_crawl_sitemap_defer_links(struct wr_crawl_fetch *fetch);
/* Ends a sitemap, and offers the rest of its URLs. */
void wr_crawl_sitemap_end(struct wr_crawl_fetch *fetch);
void wr_crawl_sitemap_drop(struct wr_crawl_fetch *fetch);

/* ---- an earlier job (recrawl_visit.c) ---- */

/* Returns true if the earlier job had the page. */
bool wr_recrawl_visit_had_page(struct wr_span verdict, const struct wr_store_visit *visit);
void wr_recrawl_visits_init(struct wr_crawl_loop *loop);
/* Keeps the earlier results of a task while it is in a window or in flight. */
void wr_recrawl_visit_put(struct wr_crawl_loop *loop, const struct wr_store_task *task);
void wr_recrawl_visit_drop(struct wr_crawl_loop *loop, uint64_t fingerprint);
void wr_recrawl_visits_release(struct wr_crawl_loop *loop);
/* Returns true if the page has probably changed, or its sitemap says so. */
bool wr_recrawl_visit_is_due(const struct wr_store_task *task, int64_t wall_now);
/* Returns the validator for a conditional request; empty: none. */
struct wr_span wr_recrawl_visit_validator(const struct wr_crawl_fetch *fetch);
/* Fills flight->visit after the verdict, and finds out if the page is unchanged. */
void wr_recrawl_visit_compare(struct wr_crawl_fetch *fetch);

/* ---- loops (crawl_loop.c) ---- */

struct wr_crawl_loop {
    struct wr_engine *engine;
    uint32_t index;
    pthread_t thread;
    pthread_mutex_t message_lock;
    bool accepts_messages; /* accepts messages; message_lock protects it */
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
    struct wr_list lists[WR_CRAWL_FETCH_WAITS_TO_POST + 1]; /* lists of fetches, by place */
    bool is_stalled;                                        /* the store has no room */
    _Atomic bool has_room;                                  /* the store has room now */
    /* The store has hosts that the plan lacks: list them. */
    _Atomic bool lists_again;
    bool has_uv, has_thread;
    uint32_t loads;
    int64_t start_at, paid_at, scarce_until; /* no start before these times: see global_limits.c */
    bool is_paused;                          /* the plan starts nothing more */
    _Atomic bool is_drained;                 /* the plan has no work */
    struct wr_warc *warc;                    /* packs records; NULL: nothing is kept */
    struct wr_map referrers;
    struct wr_map earlier; /* results of the earlier job, by task */
    struct wr_referrer *last_referrer;
    size_t referrer_bytes;           /* bytes of long referrers */
    struct wr_map hops;              /* redirects of robots.txt, by host and scheme */
    struct wr_list robots_hops;      /* robots.txt requests for other loops, not answered yet */
    struct wr_store_change *changes; /* scratch space for a post */
    size_t changes_room;
    uint64_t *elsewhere;
    int64_t asleep_ns; /* how long the machine had slept at the last wr_host_lease_check_sleep, ns */
    uint64_t listed[WR_SITEMAP_ORIGIN_SLOTS]; /* origins whose sitemaps were offered lately */
    struct wr_crawl_counts counts;
};

int wr_crawl_loop_open(struct wr_crawl_loop *loop, struct wr_engine *engine, uint32_t index);
int wr_crawl_loop_start_thread(struct wr_crawl_loop *loop); /* starts the loop's thread */
void wr_crawl_loop_close(struct wr_crawl_loop *loop);
/* Makes the loop look for work; from any thread. */
void wr_crawl_loop_wake(struct wr_crawl_loop *loop);
/* Asks the plan between two events, if it is due. */
void wr_crawl_loop_run_due(struct wr_crawl_loop *loop);
/* Stores what is known of a host. */
void wr_crawl_loop_save_host(struct wr_crawl_loop *loop, struct wr_plan_host *host);
static inline int64_t wr_crawl_loop_now(const struct wr_crawl_loop *loop);

/* ---- responses that are kept (capture.c, archive.c) ---- */

void wr_capture_init(struct wr_capture *capture, const struct wr_engine *engine);
void wr_capture_clear(struct wr_capture *capture, struct wr_engine *engine);
void wr_capture_release(struct wr_capture *capture, struct wr_engine *engine);
void wr_capture_head_line(struct wr_capture *capture, struct wr_span line);
/* Keeps a piece of the body. Returns false if it cannot: then ends with wr_capture_failed. */
bool wr_capture_body(struct wr_crawl_fetch *fetch, const char *data, size_t bytes);
void wr_capture_failed(struct wr_crawl_fetch *fetch);
/* Packs a response that is to be kept, and then calls wr_crawl_page_end; now or later. */
void wr_capture_finish(struct wr_crawl_fetch *fetch);

struct wr_archive_piece *wr_archive_piece_new(struct wr_engine *engine); /* returns NULL without memory */
void wr_archive_piece_free(struct wr_engine *engine, struct wr_archive_piece *piece);
void wr_archive_pieces_free(struct wr_engine *engine, struct wr_archive_piece *piece); /* frees a list of pieces */

/* Opens the archive and the bodies. Returns 0, WEIR_E_INVAL, WEIR_E_SYSTEM or WEIR_E_NOMEM. */
int wr_archive_open(struct wr_engine *engine, const struct wr_engine_options *given);
/* Begins the archive when there is a job; waits for the store. */
int wr_archive_begin(struct wr_engine *engine);

/* The place of a record; found before its post, taken after it, under the output's lock. */
struct wr_archive_position {
    uint32_t number;
    uint64_t begin, end;
    struct wr_archive_piece *info; /* first record of a new file; NULL: no new file */
};
/* Finds the place of a record. Returns 0, WEIR_E_NOMEM, or WEIR_E_FULL to retry later. */
int wr_archive_position(struct wr_engine *engine, const struct wr_crawl_fetch *fetch,
                        struct wr_archive_position *ret_place, struct wr_store_change *ret_change);
/* Takes the place, and queues the pieces. `place` is NULL for a body without a record. */
void wr_archive_append(struct wr_engine *engine, struct wr_crawl_fetch *fetch, const struct wr_archive_position *place);
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
enum wr_job_end_state {
    WR_JOB_END_OPEN,
    WR_JOB_END_POSTED, /* the end is posted */
    WR_JOB_END_STORED, /* the end is stored, has failed, or is not to be stored */
};

struct wr_engine {
    const weir_allocator *allocator;
    const weir_clock *clock;
    struct wr_store *store;
    struct wr_hash_key hash_key;      /* a copy of the store's, because plans outlive the store */
    struct wr_engine_options options; /* options with defaults; the engine owns the texts */
    char *agent, *proxy, *ca_file;
    char *settings; /* settings of the job that was found */
    char *header_lines[WR_USER_HEADERS_MAX];
    struct wr_net_field fields[WR_USER_HEADERS_MAX];
    size_t field_count;
    pthread_rwlock_t origins_lock; /* protects `origins`, which get the user's header lines */
    struct wr_map origins;
    struct wr_resolver *resolver;
    struct wr_statuses statuses;
    struct wr_span token; /* first word of the agent, for robots.txt */
    struct wr_output output;
    struct wr_archive archive;
    struct wr_request_log *log;
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
    int64_t lease_ns, renew_at, silent_since, unanswered;
    _Atomic bool is_claiming, is_renewing;
    _Atomic bool is_end_stored;     /* another process has stored the end */
    _Atomic int settling;           /* enum wr_job_end_state */
    _Atomic int64_t leases;         /* hosts that this process has */
    _Atomic uint64_t queued_in_all; /* queued URLs, as of the last beat */
    _Atomic uint64_t beyond;        /* links that the store has left out */
    _Atomic int64_t excess;         /* leases to give up to other processes */
    /* Time of the next offer of excess, and the pause after it; only the store's thread uses
     * them. */
    int64_t next_offer_at, offer_interval_ns;
    _Atomic int64_t claim_at, look_at, stranded_at; /* earliest times of the next queries */
    _Atomic uint64_t beat;                          /* number of the last beat */
    _Atomic int64_t seeds_after;                    /* seeds are read after this task number */
    /* Marks from which seeds_after is set (host_lease.c); only the store's thread uses them. */
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
    int64_t next_start_at, paid_until; /* schedule of limits over all hosts, see global_limits.c */
    int64_t drain_at;                  /* time at which the end began; 0: not ending */
    uint32_t running;                  /* running threads of loops */
    bool has_end;
    enum wr_engine_end end;
    char why[WR_END_WHY_ROOM], pause_why[160], failed_url[256], failed_why[256];
    struct wr_url_batch *seeds; /* batches, one for each loop; of the caller's thread */
    struct wr_host_reports *tally;
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
void wr_engine_retry_posts(struct wr_engine *engine);
void wr_engine_wake_loops(struct wr_engine *engine);
/* Ends the job; the first reason counts. */
#define WR_JOB_ROW_LOST "the row of the job is gone or cannot be read; restore it"
void wr_job_end(struct wr_engine *engine, enum wr_engine_end end, const char *why);
/* Stores how the job ended, once. Returns true if that is done. */
bool wr_job_store_end(struct wr_engine *engine);
/* Returns the reason under which waits count once nothing is started any more. */
weir_reason wr_job_halt_reason(struct wr_engine *engine);
#define WR_TIME_LIMIT_REACHED "the time limit was reached (--max-time)"
/* Counts the end of a task towards failures in a row. */
void wr_job_count_task_end(struct wr_crawl_loop *loop, enum wr_ledger_end end);
/* Draws from a budget for the loop's plan. Returns what it got; less than `count` is the last. */
uint64_t wr_job_take_budget(struct wr_crawl_loop *loop, enum wr_budget_kind what, uint64_t count);
/* Decrement a count of work under way. At 0, the job may be over. */
void wr_job_fetch_done(struct wr_engine *engine);
void wr_job_pending_done(struct wr_engine *engine);
void wr_job_post_done(struct wr_engine *engine);
/* Completes a post that needs nothing else; the context is the engine. */
void wr_job_on_stored(void *context, int error, const char *why);
void wr_job_tick(struct wr_crawl_loop *loop);
void wr_engine_loop_ended(struct wr_engine *engine);
/* Counts a loop that has listed its hosts with tasks. */
void wr_job_loop_relisted(struct wr_crawl_loop *loop);
/* Finds out whether the job is over, and asks the store if needed; from a loop. */
void wr_job_check_end(struct wr_engine *engine);
/* Warns at most once in ten seconds. */
void wr_engine_warn_seldom(struct wr_engine *engine, const char *what, const char *why);
void wr_engine_warn_scarcity(struct wr_engine *engine, const char *words);
void wr_engine_end_scarcity(struct wr_engine *engine);
/* Warns the user with one line: both texts. */
void wr_engine_warn(struct wr_engine *engine, const char *what, const char *why);
/* Copies as much of the text as fits. */
void wr_text_copy(char *to, size_t to_bytes, const char *text);
/* Returns true if the user's header lines go to this URL. */
bool wr_engine_is_seed_origin(struct wr_engine *engine, const struct wr_url *url);
/* Extends the scope by a seed; `is_given`: the user gave it, else a seed led to it. */
void wr_engine_register_seed(struct wr_engine *engine, const struct wr_url *url, bool is_given);
void wr_seed_origins_free(struct wr_engine *engine);

/* ---- limits over all hosts (global_limits.c) ---- */

void wr_global_limits_count_start(struct wr_crawl_loop *loop);
/* Holds all starts of a loop: descriptors, ports, memory or room are short. */
void wr_global_limits_hold(struct wr_crawl_loop *loop, int64_t for_ns);
void wr_global_limits_count_bytes(struct wr_crawl_loop *loop, uint64_t bytes);

/* ---- log (request_log.c) and report (crawl_stats.c) ---- */

int wr_request_log_open(const char *path, const weir_allocator *allocator, struct wr_request_log **ret_log);
void wr_request_log_sent(struct wr_request_log *log, const struct wr_crawl_fetch *fetch, int64_t now);
void wr_request_log_pace(struct wr_request_log *log, struct wr_span host, const weir_pace_entry *entry, int64_t now);
/* Writes what can be written without waiting. */
void wr_request_log_flush(struct wr_request_log *log);
/* Closes the log. Returns how many lines were dropped. */
uint64_t wr_request_log_close(struct wr_request_log *log);

/* Collects reports of hosts, when they leave memory and at the end. */
int wr_host_reports_new(struct wr_engine *engine);
void wr_host_reports_add(struct wr_engine *engine, const struct wr_plan_host_report *report);
void wr_host_reports_free(struct wr_engine *engine);

/* ---- processes that share a store (host_lease.c) ---- */

/* Claims, renews and releases hosts; every half second, on each loop. */
void wr_host_lease_tick(struct wr_crawl_loop *loop);
/* Expires all leases if the machine was suspended. Called before each request is sent. */
void wr_host_lease_check_sleep(struct wr_crawl_loop *loop);
/* Returns true if this loop has the lease of the URL's host. */
bool wr_host_lease_is_held(const struct wr_crawl_loop *loop, const struct wr_url *url);
/* Claims a host. If another process has it, that one is asked to release it. */
void wr_host_lease_request(struct wr_crawl_loop *loop, struct wr_span key);
/* Take the counts and the status of the job from the store. Another process may have ended it. */
void wr_job_note_counts(struct wr_engine *engine, const struct wr_store_job *job);
void wr_job_note_status(struct wr_engine *engine, enum wr_job_status status);

/* ---- resuming a job (job_resume.c) ---- */

int wr_job_resume(struct wr_engine *engine);

#endif
