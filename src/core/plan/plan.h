/* SPDX-License-Identifier: MIT */
/* plan.h - decides which URL of a crawl is fetched when, and what happens to it afterwards.
 *
 *     for (;;) {
 *         wr_plan_next(plan, now, &action);   start a page, fetch a robots.txt, load, ...; or idle
 *         ... carry it out, and report the result by one of the functions below ...
 *     }
 *
 * Pure: no clock (`now` is an argument), no I/O, no lock. Each loop has one plan, and a host
 * belongs to one loop. The plan owns the gate (core/pace) and the robots.txt state
 * (core/web/robots/lifecycle.h) of its hosts. Only hosts wait: a host that may not be asked yet
 * is in a heap, under the time at which it may.
 *
 *     offered ──▶ store ──load──▶ window of its queue ──start──▶ in flight ──▶ done, failed
 *                                    ▲                              │
 *                                    └──── retry, after a backoff ──┘   given back: at no cost
 *
 * A *host queue* (struct wr_host_queue) holds the tasks of one job at one host. Tasks live in the
 * store. The queue keeps a window of at most `window` of them in memory, and requests more by LOAD:
 * one LOAD at a time, after the position of the last row. An offered URL goes to the store only, so
 * a window holds nothing that a crash could lose. The store must answer a LOAD after all writes
 * that it accepted before; one queue to one writer ensures that. A task is identified by (job,
 * fingerprint), a keyed hash of its canonical URL, so every write may be repeated.
 *
 * A *start* is defined in gate.h. START and ROBOTS hold a reservation: the engine connects, calls
 * wr_plan_may_send just before it writes, wr_plan_sent when it writes, and wr_plan_page_finished at
 * the end. If it must not or cannot send, or does not know how the request ended, it calls
 * wr_plan_task_given_back: the task returns to its place, and nothing is counted.
 *
 * A *redirect* is a link with one more hop and the same depth. The engine offers its target, and
 * the page that redirected has ended. So each hop is a task of its own host, on any loop, under its
 * robots.txt, gate, scope and budgets. A loop of redirects ends at a known URL, a chain at
 * max_hops. Hops of a robots.txt are not tasks: within the host, ROBOTS is returned with `is_hop`;
 * at another host, on any loop, the hop is an errand (wr_plan_robots_hop_add), which passes the
 * gate of that host before its pages.
 *
 * Links to hosts of other loops: wr_plan_check_url returns whether they are worth posting. They are
 * written with the page that contains them, and then offered to the plan of their own loop with
 * `is_stored`. One that this plan refuses must be ended in the store. (One that is loaded before it
 * is offered counts as accepted; one that was refused is not loaded.) If the plan returns
 * ASK_STORE, the URL is offered once more, with `is_new` if the store did not have it. A job is
 * completed when no message is in transit and the store has none of its tasks queued; DRAINED says
 * when to check.
 *
 * Fair: the host that has been ready longest is first. Jobs take turns; at one host, the job served
 * longest ago is first. Limits in flight: max_in_flight in all; the gate's limit per host; the
 * job's concurrency; and per job and host its concurrency minus one for each concurrency_step_ns of
 * learned delay.
 *
 * Bounded: max_hosts hosts of wr_plan_host_bytes each, max_tasks tasks in windows, text_bytes of
 * their text, rules_bytes of robots.txt, known_max fingerprints of 8 bytes. Beyond that offers
 * return ASK_STORE, hosts stay in the store (HOSTS asks for them when there is room), and loads are
 * smaller. wr_plan_next, _sent, _told and _given allocate no memory.
 */
#ifndef WR_CORE_PLAN_PLAN_H
#define WR_CORE_PLAN_PLAN_H

#include "base/hash.h"
#include "core/pace/gate.h"
#include "core/web/retry/attempts.h"
#include "core/web/robots/lifecycle.h"
#include "core/web/url/url.h"

/* ---- creating ---- */

struct wr_plan_host_report; /* defined below */
struct wr_plan_host;

/* Options of a plan. 0 means the default. */
struct wr_plan_options {
    weir_pace_options pace;                    /* pacing of each host, already checked */
    struct wr_robots_lifecycle_options robots; /* robots.txt options, already checked */
    const struct wr_statuses *statuses;        /* status codes to retry; NULL: WR_STATUSES_JOBS */
    const struct wr_hash_key *hash_key;        /* secret to hash hosts and paths; must outlive the plan */
    /* Returns true if the URL is in scope of the job. NULL: all URLs are. */
    bool (*in_scope)(void *context, uint32_t job, const struct wr_url *url);
    /* Returns the key of a new host's group, valid until the next call, or an empty one. NULL: no
     * groups. */
    struct wr_span (*group_of)(void *context, struct wr_span key);
    /* Receives the last report of a host that is evicted, so that a report over all hosts is
     * complete. If the host returns, its counts restart. NULL: not called. */
    void (*host_left)(void *context, const struct wr_plan_host_report *report);
    /* Called if a response changed something; `news` is a set of wr_gate_change. NULL: not
     * called. */
    void (*news)(void *context, const struct wr_plan_host *host, uint32_t news, int status, int64_t now);
    void *context;
    bool ignores_robots;
    bool leases;         /* processes share the hosts: send to leased hosts only */
    double delay_factor; /* factor for Crawl-delay, 0.01 ... 100; default 1 */
    uint32_t max_jobs;   /* jobs at the same time; default 64 */
    uint32_t max_hosts;  /* hosts in memory; default 100 000 */
    uint32_t max_tasks;  /* tasks in all windows; default 262 144 */
    size_t text_bytes;   /* bytes of paths and queries of tasks; default 32 MiB */
    /* Bytes of compiled robots.txt; default 64 MiB. When they are used up, new rules displace those
     * of the host with the largest, which must fetch its robots.txt once more. If those are not
     * larger than the new ones, the new host waits. */
    size_t rules_bytes;
    size_t known_max;       /* fingerprints in memory; default 16 Mi, which take 128 MiB */
    uint32_t window;        /* tasks of a host queue in memory; default 64, at most 4096 */
    uint32_t max_loads;     /* LOADs in progress, while other hosts are served; default 1024 */
    uint32_t max_in_flight; /* requests in flight at all hosts; default 256 */
    uint32_t max_hops;      /* redirects in a row; default 10, at most 255 */
    uint32_t max_repeats;   /* repetitions of the same path segments; default 3 */
    uint32_t max_variants;  /* queries of one path; default 1000, at most 65534 */
    uint32_t max_sitemaps;  /* sitemaps per job and host; default 10000, at most 65534 */
    int64_t max_defer_ns;   /* limit of waits for breaker, Retry-After or robots.txt; 30 min */
    uint64_t seed;          /* seed of the random jitter */
    const weir_allocator *allocator;
};

struct wr_plan;
struct wr_plan_host; /* stays in memory while it has tasks or unanswered actions */

/* Makes a plan. Returns 0, WEIR_E_INVAL or WEIR_E_NOMEM. */
int wr_plan_new(const struct wr_plan_options *given, struct wr_plan **ret_plan);
void wr_plan_free(struct wr_plan *plan);

/* ---- jobs ---- */

/* Limits of one job in this plan. Budgets of the whole job are taken from its ledger (ledger.h) by
 * DRAW. 0 means unlimited. */
struct wr_plan_job {
    uint32_t id;          /* id of the job in the store, not 0 */
    uint32_t concurrency; /* most requests in flight: the share of this loop */
    uint32_t max_depth;   /* most links from a seed to a page */
    uint32_t host_pages;  /* most URLs accepted per host */
    int64_t deadline_at;  /* time at which the job ends; 0: never */
    bool has_page_budget; /* accepted URLs are taken from the ledger */
    bool has_byte_budget; /* fetched bytes are taken from the ledger */
};

/* Adds a job. Returns 0, WEIR_E_FULL for more than max_jobs, or WEIR_E_INVAL for an invalid id. */
int wr_plan_job_add(struct wr_plan *plan, const struct wr_plan_job *options);
/* Changes concurrency and deadline. This and all below return WEIR_E_ABSENT for an unknown job. */
int wr_plan_job_change(struct wr_plan *plan, const struct wr_plan_job *options);
/* Stops starting requests of the job, and books the wait under `why`: PAUSED if a user paused it,
 * JOB_LIMIT if it has used up a limit of its own. NONE resumes the job. */
int wr_plan_job_pause(struct wr_plan *plan, uint32_t id, weir_reason why);
/* Reschedules some hosts of a paused job, so that their waits are booked while wr_plan_next is not
 * called. Returns true if more are left. */
bool wr_plan_reschedule_paused(struct wr_plan *plan, int64_t now);
/* Ends the job (cancelled, failed, out of budget): accepts and starts nothing more, and empties its
 * windows. Its tasks stay in the store unchanged. Requests in flight may finish. */
int wr_plan_job_end(struct wr_plan *plan, uint32_t id);
/* Returns true if the job is still drained, as DRAINED reported. */
bool wr_plan_job_is_drained(const struct wr_plan *plan, uint32_t id);
/* Removes a drained job, to make room for another. Returns WEIR_E_INVAL if some of it is left. */
int wr_plan_job_forget(struct wr_plan *plan, uint32_t id);

enum wr_budget_kind {
    WR_BUDGET_PAGES,
    WR_BUDGET_BYTES,
    WR_BUDGET_KINDS
};
/* Adds the ledger's answer to DRAW. `is_last`: the budget is used up by it. A job without bytes
 * ends (OVER follows); one without pages accepts no more URLs. */
int wr_plan_grant_budget(struct wr_plan *plan, uint32_t id, enum wr_budget_kind what, uint64_t count, bool is_last);

/* ---- URLs ---- */

#define WR_ADD_URL_VERDICTS(X)                                                                     \
    X(WR_ADD_URL_NEW, "new") /* accepted: the caller writes it to the store */                     \
    X(WR_ADD_URL_KNOWN, "known")                                                                   \
    X(WR_ADD_URL_ASK_STORE, "ask_store") /* write it; if it was not stored, offer with `is_new` */ \
    X(WR_ADD_URL_LATER, "later")         /* waits for the ledger: offer it after the grant */      \
    X(WR_ADD_URL_SCOPE, "scope")         /* this verdict and all below are refusals */             \
    X(WR_ADD_URL_DEPTH, "depth")                                                                   \
    X(WR_ADD_URL_HOPS, "hops")                                                                     \
    X(WR_ADD_URL_BUDGET, "budget") /* the page budget of the job or of this host */                \
    X(WR_ADD_URL_TRAP, "trap")     /* repeated segments, or too many queries of one path */        \
    X(WR_ADD_URL_OVER, "over")     /* the job has ended or is unknown */                           \
    X(WR_ADD_URL_MEMORY, "memory") /* not enough memory */

enum wr_add_url_verdict {
#define X(verdict, name) verdict,
    WR_ADD_URL_VERDICTS(X)
#undef X
};

/* Returns "new" and so on; NULL for an invalid number. */
const char *wr_add_url_verdict_name(enum wr_add_url_verdict verdict);

/* A link that was found, or a seed. */
struct wr_url_to_add {
    uint32_t job;
    uint64_t fingerprint;
    const struct wr_url *url; /* canonical URL of the link */
    uint32_t depth;           /* number of links from the seed; 0 for a seed */
    uint32_t hops;            /* redirects before it: one more than the page that led there has */
    bool is_seed;             /* true: not subject to scope and depth limits */
    bool is_sitemap;
    bool is_new;    /* the store did not have it, after ASK_STORE */
    bool is_stored; /* already written by another loop: if it is refused, end it in the store */
};

/* Checks a link to another loop's host by scope, depth, hops and segments. NEW: worth posting. */
enum wr_add_url_verdict wr_plan_check_url(const struct wr_plan *plan, const struct wr_url_to_add *offer);
enum wr_add_url_verdict wr_plan_add_url(struct wr_plan *plan, const struct wr_url_to_add *offer, int64_t now);

/* Returns true if the URL was accepted here, or refused though stored: it need not be offered. */
bool wr_plan_knows_url(const struct wr_plan *plan, uint32_t job, uint64_t fingerprint);
/* Prefetches the memory that wr_plan_knows_url will read, which is in no cache if the set is
 * large. */
void wr_plan_prefetch_url(const struct wr_plan *plan, uint32_t job, uint64_t fingerprint);

/* Adds a known URL of a resumed job. When all are added (or in a new plan, when nothing was stored)
 * the set is complete. If it is not, call wr_plan_set_known_incomplete: then the store is asked
 * about URLs that are not in the set. */
void wr_plan_add_known_url(struct wr_plan *plan, uint32_t job, uint64_t fingerprint);
void wr_plan_set_known_incomplete(struct wr_plan *plan);
/* Returns true if the set of fingerprints is crowded. wr_plan_known_grow doubles it: call it
 * between steps, because it takes memory and time. */
bool wr_plan_known_is_crowded(const struct wr_plan *plan);
int wr_plan_known_grow(struct wr_plan *plan);

/* ---- answers of the store ---- */

/* A position in the stored queue of a host. WR_PLAN_FRONT is before all tasks. */
struct wr_plan_position {
    int64_t id;
    int32_t priority;
};
#define WR_PLAN_FRONT ((struct wr_plan_position){0, INT32_MIN})

/* Reports that a host of this loop has `queued` tasks of the job in the store: for a resumed job,
 * and in answer to HOSTS. Ignored if the job's queue at this host is in memory; but outside an
 * answer to HOSTS an empty queue is read from the front once more. Returns 0; WEIR_E_FULL if there
 * is no room, and HOSTS will ask later; WEIR_E_ABSENT; WEIR_E_NOMEM. */
int wr_plan_hosts_row(struct wr_plan *plan, uint32_t id, struct wr_span key, uint64_t queued, int64_t now);
/* Completes the answer to HOSTS. `is_end`: no host follows `last_id`. */
void wr_plan_hosts_end(struct wr_plan *plan, uint32_t id, int64_t last_id, bool is_end, int64_t now);

/* The stored state of a host and its robots.txt; [1] is for https. */
struct wr_plan_stored_host {
    const weir_pace_memory *pace; /* learned pacing; NULL: the host is new */
    int64_t blocked_ns;           /* time left of its block (wr_plan_firewall_seen), ns; 0: not blocked */
    uint8_t blocked_by;           /* number of the wall, until a good response lifts it; 0: none */
    bool is_paused;
    int64_t set_interval_ns; /* interval that a user set; 0: none */
    struct {
        bool is_known;
        struct wr_robots *rules; /* rules; NULL: there are none. Owned by the plan */
        bool has_validators;
        int64_t max_age_ns; /* max-age of the response, ns; negative: not stated */
        int64_t age_ns;
    } robots[2];
};
/* Passes what the store knows of a host: first in the answer to a LOAD with `wants_memory`. */
void wr_plan_restore_host(struct wr_plan *plan, struct wr_plan_host *host, const struct wr_plan_stored_host *memory,
                          int64_t now, int64_t wall_now);

struct wr_plan_row {
    uint64_t fingerprint;
    struct wr_plan_position position;
    const struct wr_url *url; /* NULL: invalid or set aside; ended here, and the caller ends it */
    uint32_t depth, hops, attempts;
    int64_t not_before_ns; /* time from now until the task may start; 0: at once */
};
/* Passes a row of the answer to a LOAD, in order. WEIR_E_NOMEM and WEIR_E_FULL: it was not taken.
 * Then pass no more rows, and end the answer with is_end false. */
int wr_plan_load_row(struct wr_plan *plan, struct wr_plan_host *host, uint32_t id, const struct wr_plan_row *row,
                     int64_t now);
/* Completes the answer to a LOAD. `is_end`: the store had fewer rows than requested. `accepted`:
 * tasks of this job and host in the store, ended or not; 0: not counted. */
void wr_plan_load_end(struct wr_plan *plan, struct wr_plan_host *host, uint32_t id, bool is_end, uint32_t accepted,
                      int64_t now);

/* ---- next action ---- */

#define WR_PLAN_ACTION_KINDS(X)                                                                               \
    X(WR_PLAN_IDLE, "idle")         /* nothing to do until `at`; WEIR_FOREVER: until a report */              \
    X(WR_PLAN_START, "start")       /* fetch `url`, the page of the task */                                   \
    X(WR_PLAN_ROBOTS_HOP, "errand") /* fetch `url` for the errand with this `tag` */                          \
    X(WR_PLAN_ROBOTS, "robots")     /* fetch `url`, a robots.txt; is_hop: a redirect of it */                 \
    X(WR_PLAN_LOAD, "load")         /* load `count` tasks of the job for the host, after `after` */           \
    X(WR_PLAN_HOSTS, "hosts")       /* list up to `count` hosts of the job, after `after.id` */               \
    X(WR_PLAN_END, "end")           /* end the task unsent: `reason` is robots, or the deferral */            \
    X(WR_PLAN_TAKE_BUDGET, "draw")  /* take `count` of `draw` from the ledger, then wr_plan_grant_budget */   \
    X(WR_PLAN_OVER, "over")         /* out of `draw`, or of time (WR_BUDGET_KINDS): end the job everywhere */ \
    X(WR_PLAN_DRAINED, "drained")   /* nothing of the job is left here; repeated after more offers */

enum wr_plan_action_kind {
#define X(kind, name) kind,
    WR_PLAN_ACTION_KINDS(X)
#undef X
};

/* Returns "start" and so on; NULL for an invalid number. */
const char *wr_plan_action_kind_name(enum wr_plan_action_kind kind);

/* How long a task was held, in ms by reason, since it was loaded, was retried or was given back.
 * While it is the host's next task, the reason is what holds the host (wr_plan_why). Before, it is
 * QUEUE, or RETRY during its own backoff. A host that could start but does not waits for JOB_LIMIT
 * if its job had the most requests in flight meanwhile; else for GLOBAL if all jobs together had;
 * else for its turn, QUEUE. */
#define WR_PLAN_REASONS (WEIR_REASON_QUEUE + 1)
struct wr_plan_waited {
    uint32_t ms[WR_PLAN_REASONS];
};

struct wr_plan_action {
    enum wr_plan_action_kind kind;
    int64_t at;    /* IDLE: time of the next call of wr_plan_next */
    uint32_t job;  /* job of the action; not set for ROBOTS and ERRAND */
    uint32_t task; /* START, ROBOTS, ERRAND: number for reports; END: no longer valid */
    uint64_t fingerprint;
    struct wr_plan_host *host;
    struct wr_span url; /* valid until the next call of wr_plan_next */
    uint32_t depth, hops, attempts;
    bool is_https;       /* ROBOTS: true for https, false for http */
    bool is_conditional; /* ROBOTS: send the validators of the copy */
    bool is_hop;         /* ROBOTS: `url` is a redirect target */
    bool is_denied;      /* END: robots.txt denies it; else it was deferred too long */
    bool wants_memory;   /* LOAD: call wr_plan_restore_host first */
    uint64_t tag;        /* ERRAND: its tag; END: tag of wr_plan_origin_unreachable, or 0 */
    uint8_t blocked_by;  /* END: number of the wall that blocks the host; 0: none */
    struct wr_plan_position after;
    uint64_t count;
    enum wr_budget_kind draw;
    weir_reason reason;
    /* START, ROBOTS, ERRAND: least time to the host's next; WEIR_FOREVER: none */
    int64_t next_ns;
    struct wr_plan_waited waited; /* START, END; for ROBOTS and ERRAND of the host's next task */
};

void wr_plan_next(struct wr_plan *plan, int64_t now, struct wr_plan_action *ret_action);

/* Returns no START, ERRAND or ROBOTS before `until`: for limits over all hosts, such as a total
 * rate or bandwidth. Requests that have started may still be sent. A time in the past resumes. */
void wr_plan_hold_starts(struct wr_plan *plan, int64_t until);

/* ---- requests ---- */

/* Checks a request just before it is written. If the verdict is not WEIR_GO, call
 * wr_plan_task_given_back. */
weir_decision wr_plan_may_send(struct wr_plan *plan, uint32_t number, int64_t now);
void wr_plan_sent(struct wr_plan *plan, uint32_t number, int64_t now);
/* Reports that a request reported as sent is written only now: spacing counts from here. */
void wr_plan_sent_late(struct wr_plan *plan, uint32_t number, int64_t now);
/* Returns a task whose request was not sent, or was sent and ended in an unknown way (our own
 * fault, or cancelled). It goes back to its place, and its host waits at least 100 ms. */
void wr_plan_task_given_back(struct wr_plan *plan, uint32_t number, int64_t now);

/* Reports the head of a response: the waiting times in it bind at once, the result is reported
 * later. Returns news, as in wr_task_outcome. */
uint32_t wr_plan_response_head(struct wr_plan *plan, uint32_t number, const weir_outcome *outcome, int64_t now);

#define WR_TASK_OUTCOMES(X)                                             \
    X(WR_TASK_OUTCOME_DONE, "done")                                     \
    X(WR_TASK_OUTCOME_RETRY, "again") /* the page is retried at `at` */ \
    X(WR_TASK_OUTCOME_FAILED, "failed")

enum wr_task_outcome_kind {
#define X(kind, name) kind,
    WR_TASK_OUTCOMES(X)
#undef X
};

struct wr_task_outcome {
    enum wr_task_outcome_kind kind;
    enum wr_retry_step why; /* FAILED: permanent, or no attempts left */
    int64_t at;             /* AGAIN: time of the retry */
    uint32_t attempts;      /* attempts at the task so far */
    uint32_t news;          /* wr_gate_change; RETRY_AFTER: store the host now; HOPELESS: end the job */
};

/* Reports the response to a page. */
struct wr_task_outcome wr_plan_page_finished(struct wr_plan *plan, uint32_t number, const weir_outcome *outcome,
                                             uint64_t bytes, int64_t now);

/* Reports that a page failed, but not by a response. `outcome` is for the host's gate; NULL if the
 * host was not the cause. `is_final`: a retry would fail too. Otherwise as
 * wr_plan_page_finished. */
struct wr_task_outcome wr_plan_page_failed(struct wr_plan *plan, uint32_t number, const weir_outcome *outcome,
                                           bool is_final, int64_t now);

/* Reports the result of a robots.txt (`outcome` may be NULL, as for wr_plan_page_failed). `event`
 * is ANSWERED or FAILED; its `unit` is set here. The plan owns `rules` in any case; NULL: there are
 * none. In the result, `fetch` ON means that the Location is fetched next: by another ROBOTS if
 * `stays` (it is at the same host), else by an errand of the caller, whose response is reported by
 * wr_plan_robots_arrived. `copy` says what to store. */
struct wr_robots_action wr_plan_robots_finished(struct wr_plan *plan, uint32_t number, const weir_outcome *outcome,
                                                const struct wr_robots_event *event, struct wr_robots *rules,
                                                bool stays, int64_t now);
/* Reports the result of a hop that was an errand; otherwise as wr_plan_robots_finished. */
struct wr_robots_action wr_plan_robots_arrived(struct wr_plan *plan, struct wr_plan_host *host, bool is_https,
                                               const struct wr_robots_event *event, struct wr_robots *rules, bool stays,
                                               int64_t now);

/* Reports that all requests to this origin fail: the host does not exist, must not be asked or does
 * not answer. Until its robots.txt is known, pages that wait for it end at once, not only after
 * max_defer_ns, and their END has `tag`, which is not 0. */
void wr_plan_origin_unreachable(struct wr_plan *plan, struct wr_plan_host *host, bool is_https, uint8_t tag,
                                int64_t now);

/* Reports whether a response came from a firewall that blocks the crawl: `by` is the caller's
 * number for that wall, 0 for a good response. After WR_PLAN_FIREWALL_PAGES of the former without
 * one of the latter in between the host is blocked for WR_PLAN_BLOCKED_NS: only errands are sent,
 * and its tasks end. The first good response after that lifts the block. */
#define WR_PLAN_FIREWALL_PAGES 2
#define WR_PLAN_BLOCKED_NS WEIR_DAY
enum wr_firewall_change {
    WR_FIREWALL_CHANGE_NONE,
    WR_FIREWALL_CHANGE_BLOCKED, /* the host is blocked from now on */
    WR_FIREWALL_CHANGE_LIFTED,  /* a block known to this plan or to the store has ended */
};
enum wr_firewall_change wr_plan_firewall_seen(struct wr_plan *plan, struct wr_plan_host *host, uint8_t by, int64_t now);

/* Returns how many times in a row its robots.txt could not be fetched. */
uint32_t wr_plan_robots_failures(const struct wr_plan_host *host, bool is_https);

/* Adds a request to a host of this plan for the robots.txt of another host: ERRAND follows when its
 * gate opens, before pages. Returns 0, WEIR_E_FULL or WEIR_E_NOMEM. */
int wr_plan_robots_hop_add(struct wr_plan *plan, const struct wr_url *url, uint64_t tag, int64_t now);
/* Removes an errand. Returns false if it has started or is not here. */
bool wr_plan_robots_hop_remove(struct wr_plan *plan, struct wr_plan_host *host, uint64_t tag, int64_t now);
/* Reports the result of an errand (`outcome` may be NULL). Returns news, as in wr_task_outcome. */
uint32_t wr_plan_robots_hop_finished(struct wr_plan *plan, uint32_t number, const weir_outcome *outcome, int64_t now);

/* ---- leases ---- */

/* Records the lease of a host: nothing is sent to it after `until`. */
void wr_plan_host_lease(struct wr_plan *plan, struct wr_plan_host *host, uint64_t token, int64_t until, int64_t now);
uint64_t wr_plan_host_lease_token(const struct wr_plan_host *host); /* 0: the host is not leased */
/* Marks a host that was just leased, and had been released for a rest: the rest is over, and
 * nothing was sent to it. Its tasks were held for `held_ns` before, which counts against
 * max_defer_ns. */
void wr_plan_host_was_released(struct wr_plan_host *host, int64_t held_ns);
/* Stops or resumes starts at a host; another process asks for it, so that it can be released. */
void wr_plan_host_yield_lease(struct wr_plan *plan, struct wr_plan_host *host, bool yields, int64_t now);
bool wr_plan_host_yields_lease(const struct wr_plan_host *host);
/* Returns the time at which the host may be asked next, if only its gate holds it and nothing is
 * lost by releasing it until then. Returns WEIR_FOREVER if it is paused; `now` if it has work, or
 * the time is unknown. `ret_held_ns` is that of wr_plan_host_was_released. */
int64_t wr_plan_host_releasable_until(const struct wr_plan *plan, struct wr_plan_host *host, int64_t now,
                                      int64_t *ret_held_ns);
/* Gives up a host that another process has: drops its tasks from memory, which stay in the store
 * unchanged. Errands wait (wr_plan_robots_hop_remove). Requests in flight may finish. */
void wr_plan_host_lease_lost(struct wr_plan *plan, struct wr_plan_host *host, int64_t now);
/* Returns true if the host has no tasks here, none known in the store, and nothing in progress. */
bool wr_plan_host_is_idle(const struct wr_plan_host *host);
/* Marks a host that has a result not yet posted to the store: until wr_plan_host_end_post it does
 * not rest, counts as in progress, and stays in memory. */
void wr_plan_host_begin_post(struct wr_plan_host *host);
void wr_plan_host_end_post(struct wr_plan *plan, struct wr_plan_host *host, int64_t now);
/* Returns true if a request, LOAD or errand is in progress, or a result is not yet posted. */
bool wr_plan_host_is_busy(const struct wr_plan_host *host);
/* Removes a host from memory. Returns false if it does not rest. */
bool wr_plan_host_remove(struct wr_plan *plan, struct wr_plan_host *host, int64_t now);
/* Keeps for the caller the beat at which it last saw the lease, and the start of a rest, or 0. */
void wr_plan_host_set_lease_seen(struct wr_plan_host *host, uint64_t beat, int64_t rests_since);
uint64_t wr_plan_host_lease_beat(const struct wr_plan_host *host);
int64_t wr_plan_host_idle_since(const struct wr_plan_host *host);

/* ---- groups ---- */

/* Hosts of this plan that share a gate besides their own: those of a domain, or of an address. The
 * stricter gate binds: a start needs both, and both receive the reports of requests and responses.
 * Crawl-delay and robots.txt stay per host. Of the hosts that wait only for the gate of their
 * group, the one ready longest is first. There are at most max_hosts groups. Their gates are not
 * stored: after a restart only those of the hosts are known.
 *
 * Sets the group of a host; an empty key: none. A host with requests in flight at its group keeps
 * it. If the group becomes known when a request is about to be sent, call wr_plan_may_send once
 * more. Returns 0; WEIR_E_FULL, WEIR_E_NOMEM and WEIR_E_INVAL leave the host unchanged. */
int wr_plan_host_group(struct wr_plan *plan, struct wr_plan_host *host, struct wr_span key, int64_t now);
/* Returns the key of the host's group; empty: none. */
struct wr_span wr_plan_host_group_key(const struct wr_plan *plan, const struct wr_plan_host *host);

/* ---- inspecting ---- */

/* Returns NULL if the host is not in memory. */
struct wr_plan_host *wr_plan_host_find(const struct wr_plan *plan, struct wr_span key);
struct wr_span wr_plan_host_key(const struct wr_plan_host *host);
/* Returns the rules of its robots.txt; NULL if there are none or they are unknown. */
const struct wr_robots *wr_plan_host_rules(const struct wr_plan_host *host, bool is_https);
/* Returns its gate, for reports or to pause it. After a change call wr_plan_host_changed. */
struct wr_gate *wr_plan_host_gate(struct wr_plan_host *host);
/* Returns the pacing options that its gate uses. */
const weir_pace_options *wr_plan_host_options(const struct wr_plan *plan, const struct wr_plan_host *host);
void wr_plan_host_changed(struct wr_plan *plan, struct wr_plan_host *host, int64_t now);

/* Returns what holds the job's next task at this host, and for how long; NONE: it may start. */
weir_decision wr_plan_why(const struct wr_plan *plan, const struct wr_plan_host *host, uint32_t id, int64_t now);

/* Requests to a host since it came into memory (pages, robots.txt, errands), and its state. */
struct wr_plan_host_report {
    struct wr_span key;           /* host key, valid as long as the host */
    uint32_t requests;            /* requests sent to the host */
    uint32_t successes;           /* requests answered by 2xx and 3xx */
    uint32_t rejected;            /* requests that its gate counts as rejected: 429, 403, 503 */
    uint32_t failures;            /* requests that failed for other reasons */
    uint32_t retries;             /* pages that were retried */
    uint32_t hasty;               /* starts too soon for Crawl-delay and options: must be 0 */
    uint64_t bytes;               /* bytes of page responses */
    int64_t closest_ns;           /* least time between two starts; WEIR_FOREVER: fewer than two */
    int64_t first_at;             /* first start; undefined if requests is 0 */
    int64_t last_at;              /* last start; pace: (requests - 1) / (last_at - first_at) */
    int64_t robots_delay_ns;      /* Crawl-delay of the host; 0: none */
    weir_pace_entry now;          /* state of its gate: one start per delay_ns, `cap` in flight */
    struct wr_plan_waited waited; /* waits of its next tasks; QUEUE: for the store or its turn */
};
void wr_plan_host_report(const struct wr_plan *plan, const struct wr_plan_host *host, int64_t now,
                         struct wr_plan_host_report *ret_report);
/* Iterates over all hosts in memory: starts with *cursor 0, and returns NULL at the end. No host
 * may come or go meanwhile. */
struct wr_plan_host *wr_plan_host_next(const struct wr_plan *plan, size_t *cursor);
/* Returns the number of slots of the host table; if it has changed, hosts have moved. */
size_t wr_plan_host_slots(const struct wr_plan *plan);

/* Returns the next host whose memory changed since the last call for it, to be stored, or NULL. */
const struct wr_plan_host *wr_plan_next_unsaved_host(struct wr_plan *plan, int64_t now, int64_t wall_now,
                                                     weir_pace_memory *ret_memory);

struct wr_plan_stats {
    size_t hosts, tasks, in_flight, known; /* tasks: those in windows and in flight */
    uint64_t starts, robots, retries, expired, denied;
    uint64_t rejected; /* requests rejected, as in wr_plan_host_report */
    /* Starts that came too soon, also at evicted hosts: must be 0. */
    uint64_t hasty;
    uint64_t hopeless;                /* times that WR_GATE_CHANGE_HOPELESS was reported */
    size_t lowered;                   /* hosts whose learned delay lowers a job's concurrency */
    uint64_t overrides;               /* changes of such a reduction at a host */
    uint64_t dropped;                 /* robots.txt rules dropped for lack of room */
    size_t memory_bytes, known_bytes; /* all memory except rules; part of it, the fingerprints */
    size_t rules_bytes;
};
void wr_plan_stats_get(const struct wr_plan *plan, struct wr_plan_stats *ret_stats);

/* Returns the bytes of a host with a key of `key_bytes` bytes and one host queue. */
size_t wr_plan_host_bytes(const struct wr_plan_options *options, size_t key_bytes);

/* Returns true if all invariants hold. Slow: it visits all hosts and tasks. */
bool wr_plan_ok(const struct wr_plan *plan);

#endif
