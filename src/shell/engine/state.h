/* SPDX-License-Identifier: MIT */
/* state.h - what the parts of an engine share.
 *
 *     engine.c   opens, starts, waits, ends           answer.c   what becomes of a page
 *     resume.c   a job as the store has it            links.c    what it leads to: offers, for whichever loop
 *     loop.c     a thread: pumps its plan             post.c     its end, into store and output at once
 *     flight.c   one request on the wire              robots.c   robots.txt, its hops and errands
 *     letter.c   from thread to thread                load.c     what a plan asks of the store
 *     output.c   the file of lines                    job.c      what the loops share: budgets, streak, the end
 *     seed.c     where it begins                      referrer.c who led to a task
 *     scope.c    which links are followed             line.c     a line of the output
 *     report.c   looking                              log.c      a line for each request
 *     cap.c      limits over everything               keep.c     answers that are kept
 *     wall.c     hosts that do not let us in          course.c   how fast hosts were asked, over time
 *     archive.c  the files that they are kept in      bodies.c   their names
 *     ask.c      questions to loops                   look.c     their answers; steer.c
 *     events.c   what happens to hosts                digest.c   digests of bodies
 *     pattern.c  patterns for URLs                    types.c    URLs that are no pages
 *     listing.c  sitemaps                             metrics.c  the crawl in numbers
 *     earlier.c  what an earlier job knew            again.c    its URLs, and how they differ
 *     names.c    a set that only grows                group.c    a host's registrable domain
 *     lease.c    hosts that processes share           find.c     a job that is in the store
 *
 * A flight is one request, from its START to the moment at which the store has taken what came of it. All that a flight
 * has stays with it and is used again by the next one.
 *
 * Whatever is under way is counted: flights, letters and loads (`pending`), posts. A job is over when nothing is, no
 * plan has more to do, and the store counts nothing queued.
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
#define WR_LOADS_MAX 128   /* of a loop, not answered yet */
#define WR_ELSEWHERE 65536 /* links to other loops' hosts that are remembered as sent; a power of two */
#define WR_LISTED 1024     /* origins whose sitemaps were offered lately */
#define WR_FIELDS_MAX 64   /* header lines of the user's */

struct wr_crawl_loop;
struct wr_flight;
struct wr_sitemap;

/* All that is to be told of a host; on its loop (look.c). */
void wr_look_fill(const struct wr_crawl_loop *loop, const struct wr_plan_host *host, struct wr_look_host *ret_host);

/* ---- events (events.c) ---- */

int wr_events_new(struct wr_engine *engine);
void wr_events_free(struct wr_engine *engine);
/* Its number, time and key are filled in. */
void wr_event_add(struct wr_engine *engine, struct wr_span key, struct wr_engine_event event);
/* As struct wr_plan_options has it. */
void wr_event_news(void *context, const struct wr_plan_host *host, uint32_t news, int status, int64_t now);

/* ---- links (links.c) ---- */

/* A URL that was accepted here, or is to be judged, here or by another loop. */
struct wr_found {
    uint64_t fingerprint;
    uint32_t url_at, url_bytes; /* in the text that goes with it */
    uint32_t key_at, key_bytes;
    uint32_t depth, hops;
    uint64_t parent;               /* of one that an earlier job knows */
    int64_t changed_wall_at;       /* as a sitemap says; 0: it does not, or nobody asks */
    enum wr_offer_verdict verdict; /* LATER: it is to be judged */
    bool is_seed, is_sitemap;
    bool is_stored;         /* and this loop's: if it is refused, it has to be ended */
    bool asks;              /* the store has to say whether it is new; then its loop judges it */
    bool is_new, is_beyond; /* the store's answer; beyond max_pages or host_pages, where it counts them */
};

struct wr_founds {
    struct wr_found *list;
    size_t count, room;
    struct wr_buf text;
};

void wr_founds_init(struct wr_founds *ret_founds, const weir_allocator *allocator);
void wr_founds_clear(struct wr_founds *founds);
void wr_founds_release(struct wr_founds *founds);

/* Takes in a copy of `like` with that URL. False: no memory. */
bool wr_founds_add(struct wr_founds *founds, const struct wr_url *url, const struct wr_found *like);

/* Takes in `copy`, of one in `from`. */
bool wr_founds_copy(struct wr_founds *founds, const struct wr_founds *from, const struct wr_found *found,
                    const struct wr_found *copy);

/* Judges a link, and takes it in if something is to be done about it. */
enum wr_offer_verdict wr_founds_offer(struct wr_crawl_loop *loop, struct wr_founds *founds, const struct wr_url *url,
                                      const struct wr_found *link);

struct wr_span wr_found_url(const struct wr_founds *founds, const struct wr_found *found);
struct wr_span wr_found_key(const struct wr_founds *founds, const struct wr_found *found);

/* Judges those that are LATER. */
void wr_founds_judge(struct wr_crawl_loop *loop, struct wr_founds *founds);

/* ---- flights (flight.c) ---- */

enum wr_flight_place {
    WR_FLIGHT_SPARE,
    WR_FLIGHT_FLIES,
    WR_FLIGHT_POSTS, /* the store has no room for its end */
};

/* Texts of the head that are needed after it. */
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
    struct wr_list_link link;     /* in its place's list */
    struct wr_plan_action action; /* but for its url */
    struct wr_url url;
    char url_memory[WR_URL_ROOM];
    struct wr_transfer *transfer; /* NULL: none yet, or no more */
    bool was_sent;
    bool is_landed; /* not counted in flight any more */
    bool wants_body;
    bool is_sitemap;
    bool is_conditional; /* it asks only whether the page has changed */
    uint64_t body_bytes;
    /* The answer. */
    struct wr_buf head_text;
    uint32_t head_at[WR_TEXTS], head_bytes[WR_TEXTS];
    unsigned wishes; /* of X-Robots-Tag */
    weir_said said;
    int64_t said_at;
    struct wr_page page;
    struct wr_digest *digest;   /* NULL: none is wanted */
    bool has_page;              /* the page was begun */
    bool has_links;             /* it has ended, and not all of its links were told */
    bool is_telling;            /* it waits for that, or has; counted in loop->telling */
    struct wr_sitemap *sitemap; /* being read; NULL: it is none */
    struct wr_founds listed;    /* in it, and not offered yet */
    struct wr_buf unread;       /* of it; there while the sitemap is */
    size_t read_bytes;          /* of those */
    struct wr_list_link reading;
    bool ends_when_read; /* it has come, and the end waits for that, or for links to be told */
    bool is_left;        /* the crawl stopped before it was read: it stays queued in the store */
    bool is_enough;      /* no more of it is wanted */
    bool leads_too_deep; /* it lists sitemaps that are left out for that */
    struct wr_buf body;  /* of a robots.txt; of what all have together it holds: */
    size_t held_bytes;
    bool lacks_room; /* there was no more */
    /* Its end. */
    struct wr_net_result result;
    struct wr_buf words, final_url;
    struct wr_fate fate;
    struct wr_founds founds;
    struct wr_buf line;
    enum wr_verdict verdict;
    struct wr_store_visit visit; /* its texts are the flight's, or the earlier job's */
    struct wr_keep keep;
    struct wr_firewall_look look;
    struct wr_buf first; /* of the body, if it may be a firewall's */
    bool keeps_first;
    enum wr_firewall firewall; /* whose answer this is */
    bool is_again;             /* tried again: no line */
    bool has_seeds;            /* it carries some, which are counted */
    uint64_t lease;            /* of its host */
    bool is_owed;              /* it has ended, and its host is not another's before that is posted */
};

void wr_flight_start(struct wr_crawl_loop *loop, const struct wr_plan_action *action);
/* One for a task that ends unsent, whose URL may be none; NULL: no memory. */
struct wr_flight *wr_flight_unsent(struct wr_crawl_loop *loop, const struct wr_plan_action *action);
/* One that is no request: URLs to be judged and stored, which become the flight's. */
void wr_flight_carry(struct wr_crawl_loop *loop, struct wr_founds *founds, bool are_seeds);
bool wr_flight_set_url(struct wr_flight *flight, struct wr_span url);
/* Sends it, with the validators of a copy; both may be empty. */
void wr_flight_send(struct wr_flight *flight, struct wr_span etag, struct wr_span modified);
void wr_flight_cancel(struct wr_flight *flight);
void wr_flight_landed(struct wr_flight *flight);
/* Before the plan is told of its end. */
void wr_flight_owe(struct wr_flight *flight);
/* To the end of those that are there; who is there stays where it is. */
void wr_flight_move(struct wr_flight *flight, enum wr_flight_place place);
void wr_flight_give_back(struct wr_flight *flight); /* into the pool */
void wr_flights_free(struct wr_crawl_loop *loop);

/* It was sent; or it could not be, and to connect is to ask, too. */
void wr_flight_count(struct wr_flight *flight, int64_t now);
struct wr_span wr_flight_head(const struct wr_flight *flight, enum wr_text which);
weir_outcome wr_flight_outcome(const struct wr_flight *flight, int status, int64_t now);
/* By its host, and not only by a proxy. */
bool wr_flight_is_answered(const struct wr_flight *flight);
/* How it ended is its host's doing; else none of its gate's business. */
bool wr_flight_is_hosts(const struct wr_flight *flight);

/* ---- pages (answer.c), their end (post.c) ---- */

void wr_answer_came(struct wr_flight *flight);
/* What is to be kept of it is. */
void wr_answer_end(struct wr_flight *flight);
/* Tells more of its links, and ends it if that were all. */
void wr_answer_go_on(struct wr_flight *flight);
/* A task that ends unsent. */
void wr_answer_end_unsent(struct wr_crawl_loop *loop, const struct wr_plan_action *action);
/* The same for one that the store has lost something of; `why` says what. */
void wr_answer_end_damaged(struct wr_crawl_loop *loop, const struct wr_plan_action *action, const char *why);
/* And for one that is not likely to have changed. */
void wr_answer_end_not_due(struct wr_crawl_loop *loop, const struct wr_plan_action *action);

/* All there is to say is said: its links are judged, and then it goes to the store. */
void wr_post_flight(struct wr_flight *flight);
/* Seeds for a loop, which become the letter's. WEIR_E_NOMEM. */
int wr_news_send_seeds(struct wr_engine *engine, uint32_t index, struct wr_founds *founds);
/* The same for one of them, which is copied: when there are enough. WEIR_E_CLOSED, as of wr_engine_seed (seed.c). */
int wr_seeds_add(struct wr_engine *engine, const struct wr_founds *from, const struct wr_found *found);
/* Tries again what waits for room in the store. */
void wr_posts_again(struct wr_crawl_loop *loop);

/* ---- hosts that do not let us in (wall.c) ---- */

void wr_wall_body(struct wr_flight *flight, const char *data, size_t bytes);
/* It has ended: whose answer is it? If the host is blocked by it, the store and the user are told. */
void wr_wall_judge(struct wr_flight *flight);
/* What the store knows of it; 0: it may be asked. */
int64_t wr_wall_recall(struct wr_crawl_loop *loop, const struct wr_plan_host *host, int64_t until_wall_at,
                       enum wr_firewall by);
/* Why it is not fetched; once for each page. */
void wr_wall_words(struct wr_flight *flight, enum wr_firewall by, bool was_sent);

/* ---- robots.txt (robots.c) ---- */

/* Of a host's robots.txt: by it the store knows the copy. */
#define WR_ROBOTS_URL_ROOM (WEIR_PACE_KEY_MAX + sizeof "https:///robots.txt")
struct wr_span wr_robots_url(const struct wr_plan_host *host, bool is_https, char memory[WR_ROBOTS_URL_ROOM]);
/* A piece of its body. False: there is no room, and the flight is to be given back. */
bool wr_robots_body(struct wr_flight *flight, const char *data, size_t bytes);
/* What it holds is free again. */
void wr_robots_let_go(struct wr_engine *engine, size_t held_bytes);
/* A ROBOTS: finds its URL and validators, and sends. */
void wr_robots_begin(struct wr_flight *flight);
void wr_robots_came(struct wr_flight *flight);
/* It was not sent. */
void wr_robots_returned(struct wr_flight *flight);
void wr_errand_came(struct wr_flight *flight);
void wr_hops_init(struct wr_crawl_loop *loop);
void wr_hops_free(struct wr_crawl_loop *loop);
void wr_errands_tick(struct wr_crawl_loop *loop); /* asks again for their hosts, and gives up late ones */
void wr_errands_place(struct wr_crawl_loop *loop, struct wr_span key);
void wr_errands_free(struct wr_crawl_loop *loop);

/* ---- loads (load.c) ---- */

void wr_load_begin(struct wr_crawl_loop *loop, const struct wr_plan_action *action);
void wr_hosts_begin(struct wr_crawl_loop *loop, const struct wr_plan_action *action);
/* Lists all hosts with tasks, unasked. */
void wr_hosts_again(struct wr_crawl_loop *loop);

/* Who led to a task; of tasks in windows and in flight. Empty: nobody. */
void wr_referrers_init(struct wr_crawl_loop *loop);
void wr_referrer_put(struct wr_crawl_loop *loop, uint64_t fingerprint, struct wr_span url);
struct wr_span wr_referrer_get(const struct wr_crawl_loop *loop, uint64_t fingerprint);
void wr_referrer_drop(struct wr_crawl_loop *loop, uint64_t fingerprint);
void wr_referrers_release(struct wr_crawl_loop *loop);

/* ---- sitemaps (listing.c) ---- */

/* A seed's page has come: offers the sitemaps of its host, if they are wanted. */
void wr_listing_offer(struct wr_flight *flight);
/* Whether the task is one. */
bool wr_listing_is(const struct wr_flight *flight);
/* Whether the flight may lead to a sitemap there. */
bool wr_listing_may_be(const struct wr_flight *flight, const struct wr_url *url);
/* While it comes; nothing if it is none. False: no more is wanted. */
void wr_listing_begin(struct wr_flight *flight);
bool wr_listing_feed(struct wr_flight *flight, const char *data, size_t bytes);
/* Reads a piece in each turn of the loop, unless the store has no room; ask again when it may have. */
void wr_listings_again(struct wr_crawl_loop *loop);
/* It has come. True: wr_answer_end is called when it has been read. */
bool wr_listing_waits(struct wr_flight *flight);
/* The flight has links that were not told: wr_answer_go_on is called in a later turn of the loop. */
void wr_listing_wait(struct wr_flight *flight);
/* It has ended: offers the rest. */
void wr_listing_end(struct wr_flight *flight);
void wr_listing_drop(struct wr_flight *flight);

/* ---- an earlier job (earlier.c) ---- */

/* Whether it had the page. */
bool wr_earlier_had(struct wr_span verdict, const struct wr_store_visit *visit);
void wr_earlier_init(struct wr_crawl_loop *loop);
/* What it knew of a task; for those in windows and in flight. */
void wr_earlier_put(struct wr_crawl_loop *loop, const struct wr_store_task *task);
void wr_earlier_drop(struct wr_crawl_loop *loop, uint64_t fingerprint);
void wr_earlier_release(struct wr_crawl_loop *loop);
/* Whether it is likely to have changed since, or its site says so. */
bool wr_earlier_is_due(const struct wr_store_task *task, int64_t wall_now);
/* To ask with whether it has changed; empty: none. */
struct wr_span wr_earlier_validator(const struct wr_flight *flight);
/* The flight has its verdict: fills its visit, and finds out whether the page is unchanged. */
void wr_earlier_compare(struct wr_flight *flight);

/* ---- loops (loop.c) ---- */

struct wr_crawl_loop {
    struct wr_engine *engine;
    uint32_t index;
    pthread_t thread;
    pthread_mutex_t mail_lock;
    bool takes_mail; /* under the lock */
    uv_loop_t uv;
    uv_prepare_t prepare;
    uv_poll_t timer;
    uv_timer_t ticks;
    struct wr_wakeup wakeup;
    uv_idle_t reads; /* sitemaps, while there are some to read: */
    struct wr_list reading;
    uint32_t telling; /* flights whose page has more links than could be told at once */
    int timer_fd;
    int64_t timer_at; /* WEIR_FOREVER: it sleeps */
    int64_t next_at;  /* when the plan is to be asked again */
    struct wr_net *net;
    struct wr_plan *plan;
    struct wr_list lists[WR_FLIGHT_POSTS + 1]; /* of flights, by place */
    bool is_stalled;                           /* the store has no room */
    _Atomic bool has_room;                     /* it has again */
    _Atomic bool lists_again;                  /* the store has hosts that the plan has not */
    bool has_uv, has_thread;
    uint32_t loads;
    int64_t start_at, paid_at, scarce_until; /* by limits over everything: no start before */
    bool is_paused;                          /* the plan starts no more */
    _Atomic bool is_drained;                 /* the plan has nothing to do */
    struct wr_warc *warc;                    /* NULL: nothing is kept */
    struct wr_map referrers;
    struct wr_map earlier; /* see earlier.c */
    struct wr_referrer *last_referrer;
    size_t referrer_bytes;           /* of the long ones */
    struct wr_map hops;              /* of robots.txt, by host and scheme */
    struct wr_list errands;          /* for other loops, not answered yet */
    struct wr_store_change *changes; /* scratch */
    size_t changes_room;
    uint64_t *elsewhere;
    int64_t asleep_ns;          /* of the machine, when leases were last looked at (wr_lease_wake) */
    uint64_t listed[WR_LISTED]; /* fingerprints of origins */
    struct wr_crawl_counts counts;
};

int wr_crawl_loop_open(struct wr_crawl_loop *loop, struct wr_engine *engine, uint32_t index);
int wr_crawl_loop_run(struct wr_crawl_loop *loop); /* its thread */
void wr_crawl_loop_close(struct wr_crawl_loop *loop);
/* Looks again soon; from any thread. */
void wr_crawl_loop_wake(struct wr_crawl_loop *loop);
/* Between two events: does what is due. */
void wr_crawl_loop_due(struct wr_crawl_loop *loop);
/* Stores what is known of the host. */
void wr_crawl_loop_note(struct wr_crawl_loop *loop, struct wr_plan_host *host);
static inline int64_t wr_crawl_loop_now(const struct wr_crawl_loop *loop);

/* ---- what is kept beside lines (keep.c, archive.c) ---- */

void wr_keep_init(struct wr_keep *keep, const struct wr_engine *engine);
void wr_keep_clear(struct wr_keep *keep, struct wr_engine *engine);
void wr_keep_release(struct wr_keep *keep, struct wr_engine *engine);
void wr_keep_line(struct wr_keep *keep, struct wr_span line);
/* False: it cannot be kept, so the rest is not wanted, and wr_keep_failed is to be called at the end. */
bool wr_keep_body(struct wr_flight *flight, const char *data, size_t bytes);
void wr_keep_failed(struct wr_flight *flight);
/* It has ended: makes what is to be kept, if anything is, and then calls wr_answer_end; now or later. */
void wr_keep_flight(struct wr_flight *flight);

struct wr_piece *wr_piece_new(struct wr_engine *engine); /* NULL: no memory */
void wr_piece_free(struct wr_engine *engine, struct wr_piece *piece);
void wr_pieces_free(struct wr_engine *engine, struct wr_piece *piece); /* and those after it; NULL is fine */

/* WEIR_E_INVAL, WEIR_E_SYSTEM, WEIR_E_NOMEM. */
int wr_archive_open(struct wr_engine *engine, const struct wr_engine_options *given);
/* Once there is a job; waits for the store. */
int wr_archive_begin(struct wr_engine *engine);

/* Where a record goes, under the output's lock: found before the post, taken after it. */
struct wr_archive_place {
    uint32_t number;
    uint64_t begin, end;
    struct wr_piece *info; /* not NULL: it begins a file */
};
/* WEIR_E_NOMEM; WEIR_E_FULL: later. */
int wr_archive_place(struct wr_engine *engine, const struct wr_flight *flight, struct wr_archive_place *ret_place,
                     struct wr_store_change *ret_change);
/* NULL: there is no record, but a body. */
void wr_archive_take(struct wr_engine *engine, struct wr_flight *flight, const struct wr_archive_place *place);
/* Of a file that was to come next; NULL is fine. */
void wr_archive_unclaim(struct wr_engine *engine, struct wr_output *file);
/* As wr_output_sync. */
int wr_archive_sync(struct wr_engine *engine);
void wr_archive_close(struct wr_engine *engine);

/* ---- what the loops share (job.c) ---- */

enum wr_engine_phase {
    WR_PHASE_IDLE,
    WR_PHASE_RUNS,
    WR_PHASE_OVER,   /* the job is: what is under way ends */
    WR_PHASE_DRAINS, /* a signal, or its time or bytes are used up: it can be resumed */
    WR_PHASE_STOPS,
    WR_PHASE_CLOSES, /* nothing is under way any more: threads end */
};

#define WR_END_WHY_ROOM 256 /* for why it ended, in words */

/* What the store is told of how the job ended. */
enum wr_settling {
    WR_UNSETTLED,
    WR_SETTLES, /* posted */
    WR_SETTLED, /* stored, failed, or there was nothing to say */
};

struct wr_engine {
    const weir_allocator *allocator;
    const weir_clock *clock;
    struct wr_store *store;
    struct wr_hash_key hash_key;      /* the store's, of which it is a copy: plans outlive it */
    struct wr_engine_options options; /* filled; texts are the engine's */
    char *agent, *proxy, *ca_file;
    char *settings; /* of the job that was found */
    char *header_lines[WR_FIELDS_MAX];
    struct wr_net_field fields[WR_FIELDS_MAX];
    size_t field_count;
    pthread_rwlock_t origins_lock; /* of the seeds, if there are fields for them */
    struct wr_map origins;
    struct wr_resolver *resolver;
    struct wr_statuses statuses;
    struct wr_span token; /* of the agent */
    struct wr_output output;
    struct wr_archive archive;
    struct wr_log *log;
    struct wr_crawl_loop *loops;
    uint32_t loop_count, loops_room; /* the count is 0 before they are there */
    uint32_t connections;            /* that each loop may have open */
    int64_t began_at;
    int64_t job;
    int64_t earlier;                                       /* the job whose pages are visited again; 0: none */
    uint64_t accepted_before, ended_before, failed_before; /* by earlier runs of the job */
    _Atomic int64_t flights;
    _Atomic int64_t scarce_since; /* 0: it is not */
    _Atomic int64_t pending;      /* letters, and loads */
    _Atomic int64_t posts;        /* that the store has not confirmed */
    _Atomic size_t robots_held;   /* bytes of robots.txt that are being read, beyond the first of each */
    _Atomic int64_t seeding;      /* letters with seeds that are not stored yet */
    _Atomic int phase;
    _Atomic uint64_t blocked_hosts;
    bool has_row, has_free; /* the job; a host that lets us in: while the store is looked at */
    bool is_shared;         /* with other processes: hosts are leased */
    int64_t lease_ns, beat_at, silent_since, unanswered;
    _Atomic bool is_claiming, is_beating;
    _Atomic bool is_end_stored;   /* the job is over, as somebody has said: whoever is first says why */
    _Atomic int settling;         /* enum wr_settling */
    _Atomic int64_t leases;       /* hosts that are ours */
    _Atomic uint64_t left_in_all; /* URLs of the job that have not ended, as a beat told last */
    _Atomic uint64_t beyond;      /* links that the store has left out */
    _Atomic int64_t excess;       /* of them, that others should have */
    int64_t shed_at, shed_ns;     /* no excess is offered before, and for how long; of the store's thread */
    _Atomic int64_t claim_at, look_at, stranded_at; /* not before */
    _Atomic uint64_t beat;                          /* the last that was asked for */
    _Atomic int64_t seeds_after;                    /* the number of a task: who reads seeds need read none before */
    int64_t seeds_newest, seeds_marked, seeds_marked_at; /* see lease.c; the store's thread */
    enum wr_job_status seen;                             /* as the store has it; while it is looked at */
    _Atomic bool is_seeded, is_looking, is_store_paused, has_max_pages;
    _Atomic bool is_listed;                 /* all sitemaps have been read: what they say of pages is known */
    _Atomic uint32_t relisting;             /* loops that list their hosts again: nothing begins before all have */
    _Atomic int64_t warned_at, answered_at; /* 0: never */
    uint64_t left;                          /* tasks that are queued, as the store last said */
    pthread_mutex_t lock;                   /* of all below */
    pthread_cond_t changed;
    struct wr_ledger ledger;
    int64_t next_start_at, paid_until; /* see cap.c */
    int64_t drain_at;                  /* since when it ends; 0: it does not */
    uint32_t running;                  /* threads */
    bool has_end;
    enum wr_engine_end end;
    char why[WR_END_WHY_ROOM], pause_why[160], failed_url[256], failed_why[256];
    struct wr_founds *seeds; /* one for each loop, being filled; the caller's thread */
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
/* Who waited to post tries again. */
void wr_engine_has_room(struct wr_engine *engine);
/* Has all loops look again. */
void wr_engine_wake(struct wr_engine *engine);
/* The job's end; the first counts. */
#define WR_JOB_ROW_LOST "the row of the job is gone or cannot be read; put it back as it was"
void wr_job_over(struct wr_engine *engine, enum wr_engine_end end, const char *why);
/* Tells the store how the job ended, once. True: nothing more has to be awaited for it. */
bool wr_job_settle(struct wr_engine *engine);
/* As what the wait of all that is not started any more is booked. */
weir_reason wr_job_halted_for(struct wr_engine *engine);
#define WR_TIME_IS_OVER "the time limit was reached (--max-time)"
/* A task ended: the streak. */
void wr_job_told(struct wr_crawl_loop *loop, enum wr_ledger_end end);
/* Draws from the budget for the loop's plan. Returns how many there were; fewer than asked for: the last. */
uint64_t wr_job_draw(struct wr_crawl_loop *loop, enum wr_draw what, uint64_t count);
/* One less of those that are counted: it may have been the last. */
void wr_flights_done(struct wr_engine *engine);
void wr_pending_done(struct wr_engine *engine);
void wr_posts_done(struct wr_engine *engine);
/* Of a post that needs nothing more; its context is the engine. */
void wr_on_stored(void *context, int error, const char *why);
void wr_job_tick(struct wr_crawl_loop *loop);
void wr_engine_loop_ended(struct wr_engine *engine);
/* The loop's hosts with tasks are listed again. */
void wr_relisted(struct wr_crawl_loop *loop);
/* Whether all is over; asks the store. From a loop. */
void wr_job_look(struct wr_engine *engine);
/* At most once in ten seconds. */
void wr_engine_warn_seldom(struct wr_engine *engine, const char *what, const char *why);
void wr_engine_warn_scarce(struct wr_engine *engine, const char *words);
void wr_engine_has_enough(struct wr_engine *engine);
/* One line for the user: both texts. */
void wr_engine_warn(struct wr_engine *engine, const char *what, const char *why);
/* As much of it as fits. */
void wr_text_set(char *to, size_t to_bytes, const char *text);
/* The seeds' own header lines go to this URL. */
bool wr_engine_is_seeds(struct wr_engine *engine, const struct wr_url *url);
/* `is_given`: by the user; else a seed led to it. */
void wr_engine_seed_known(struct wr_engine *engine, const struct wr_url *url, bool is_given);
void wr_origins_free(struct wr_engine *engine);

/* ---- limits over everything (cap.c) ---- */

void wr_cap_started(struct wr_crawl_loop *loop);
/* There is no descriptor, port, memory or room for one more: others would find none, either. */
void wr_cap_hold(struct wr_crawl_loop *loop, int64_t for_ns);
void wr_cap_fetched(struct wr_crawl_loop *loop, uint64_t bytes);

/* ---- log (log.c) and report (report.c) ---- */

int wr_log_open(const char *path, const weir_allocator *allocator, struct wr_log **ret_log);
void wr_log_sent(struct wr_log *log, const struct wr_flight *flight, int64_t now);
/* The pace of a host has changed. */
void wr_log_pace(struct wr_log *log, struct wr_span host, const weir_pace_entry *entry, int64_t now);
/* Writes what can be written now. */
void wr_log_flush(struct wr_log *log);
/* Returns how many lines were dropped. */
uint64_t wr_log_close(struct wr_log *log);

/* What is known of hosts when they leave, and at the end. */
int wr_tally_new(struct wr_engine *engine);
void wr_tally_add(struct wr_engine *engine, const struct wr_plan_host_report *report);
void wr_tally_free(struct wr_engine *engine);

/* ---- processes that share a store (lease.c) ---- */

/* Every half second, on each loop. */
void wr_lease_tick(struct wr_crawl_loop *loop);
/* Before something is sent: a machine that was suspended has no lease until it is told so again. */
void wr_lease_wake(struct wr_crawl_loop *loop);
/* Whether the URL's host is this loop's now. */
bool wr_lease_has(const struct wr_crawl_loop *loop, const struct wr_url *url);
/* Asks for this host: it is claimed if nobody has it; else whoever does is asked to release it. */
void wr_lease_want(struct wr_crawl_loop *loop, struct wr_span key);
/* What the store says of the job: how many URLs it has; and if it is over, another process has said so. */
void wr_job_counted(struct wr_engine *engine, const struct wr_store_job *job);
void wr_job_seen(struct wr_engine *engine, enum wr_job_status status);

/* ---- of a job that is gone on with (resume.c) ---- */

int wr_resume(struct wr_engine *engine);

#endif
