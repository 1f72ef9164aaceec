/* SPDX-License-Identifier: MIT */
/* plan.h - what next? The heart of a crawl: which URL is fetched when, and what becomes of it.
 *
 *     for (;;) {
 *         wr_plan_next(plan, now, &action);         start a page, fetch a robots.txt, load, …; or idle until action.at
 *         … carry it out; tell the plan what comes of it, by one of the functions below …
 *     }
 *
 * Pure: no clock (`now` is an argument), no I/O, no lock. There is one plan per loop, and a host belongs to one loop;
 * the plan owns the gate (core/pace) and the robots.txt (core/rules/robots/lifecycle.h) of each of its hosts. Hosts
 * wait, nobody else does: a host that may not be asked now sits in a heap under the time at which it may.
 *
 *     offered ──▶ store ──load──▶ window of its lane ──start──▶ in flight ──told──▶ done, failed
 *                                    ▲                             │
 *                                    └──── again, after a backoff ─┘   given back: at no cost
 *
 * A *lane* is one job's queue at one host. Tasks live in the store; a lane holds a window of `window` of them, and asks
 * for more by LOAD, once at a time, by the position of the last one it got. What is offered goes to the store and
 * nowhere else, so a window holds nothing that a crash could lose. The store must answer a LOAD after all that was
 * accepted before it was asked: one queue to one writer does that. A task's identity is (job, fingerprint), the
 * fingerprint being a keyed hash of its canonical URL, so that every write may be repeated.
 *
 * A *start* is what gate.h says. START and ROBOTS hold a reservation: the engine connects, asks wr_plan_may_send just
 * before it writes, says wr_plan_sent when it does, and then wr_plan_told. If it may not send, or cannot, or nothing is
 * known of how it ended, wr_plan_given: the task is where it was, and nothing is counted.
 *
 * A *redirect* is a link with one more hop and the same depth: the engine offers its target, and the page that led
 * there has ended. So each hop is a task of its own host, in whatever loop, under its robots.txt, its gate, the scope
 * and the budgets; a loop of redirects ends where a URL comes again, and a chain at max_hops. Hops of a robots.txt are
 * no tasks: within the same host ROBOTS comes again (`is_hop`), and at another host, of whatever loop, they are an
 * errand (wr_plan_errand), which passes that host's gate before its pages.
 *
 * Links to hosts of other loops: wr_plan_screen says whether they are worth posting. They are written with the page
 * they were found on, and offered to their own loop's plan with `is_stored`; what that refuses has to be ended there.
 * (One that is loaded before it is offered is accepted by that; one that was refused is not loaded.) If that says
 * ASK_STORE, it is offered again with `is_new` if the write had found none. A job is completed when nothing is on its
 * way and the store counts none of its tasks as queued; DRAINED is when to look.
 *
 * Fair: of the hosts the one that is ready longest goes first; jobs take turns, and at one host the job that was served
 * longest ago. Limits in flight: max_in_flight in all; the gate's per host; per job its concurrency; and per job and
 * host its concurrency less one for each concurrency_step_ns of learned delay (R14, S2-17).
 *
 * Bounded: max_hosts hosts of wr_plan_host_bytes each, max_tasks tasks in windows, text_bytes of their text,
 * rules_bytes of robots.txt, known_max fingerprints of 8 bytes; beyond that offers say ASK_STORE, hosts sleep in the
 * store (HOSTS asks for them when there is room), and loads are smaller. next, sent, told and given take no memory.
 */
#ifndef WR_CORE_PLAN_PLAN_H
#define WR_CORE_PLAN_PLAN_H

#include "base/hash.h"
#include "core/pace/gate.h"
#include "core/rules/retry/attempts.h"
#include "core/rules/robots/lifecycle.h"
#include "core/rules/url/url.h"

/* ---- making one ---------------------------------------------------------------------------------------- */

struct wr_plan_host_report; /* below */
struct wr_plan_host;

/* 0 means the default. */
struct wr_plan_options {
    weir_pace_options pace;             /* of every host; have been checked (wr_pace_options_check) */
    struct wr_life_options robots;      /* have been checked */
    const struct wr_statuses *statuses; /* whether to try again; NULL: as WR_STATUSES_JOBS */
    const struct wr_hash_key *hash_key; /* of hosts and paths, secret; must outlive the plan */
    bool (*in_scope)(void *context, uint32_t job, const struct wr_url *url); /* NULL: all is */
    /* The group that a host that is made belongs to, valid until the next call; empty: none. NULL: no groups. */
    struct wr_span (*group_of)(void *context, struct wr_span key);
    /* A host makes room for another: its last report, for one over all hosts. It may come back, and then begins anew.
     * NULL: nobody wants it. */
    void (*host_left)(void *context, const struct wr_plan_host_report *report);
    /* An answer changed something: a set of wr_gate_news. NULL: nobody listens. */
    void (*news)(void *context, const struct wr_plan_host *host, uint32_t news, int status, int64_t now);
    void *context;
    bool ignores_robots;
    bool leases;            /* other processes share the hosts: what is not leased (wr_plan_host_lease) is not asked */
    double delay_factor;    /* times Crawl-delay, 0.01 ... 100; 1 (U9) */
    uint32_t max_jobs;      /* at once; 64 */
    uint32_t max_hosts;     /* in memory; 100 000 */
    uint32_t max_tasks;     /* in all windows; 262 144 */
    size_t text_bytes;      /* of their paths and queries; 32 MiB */
    size_t rules_bytes;     /* of compiled robots.txt; 64 MiB. Where there is no room the host that has most of it, if
                               that is more than is wanted, has to ask for its robots.txt again; else a host waits */
    size_t known_max;       /* fingerprints in memory; 16 Mi, 128 MiB */
    uint32_t window;        /* tasks of a lane in memory; 64, at most 4096 */
    uint32_t max_loads;     /* asked for and not answered yet: others are started meanwhile; 1024 */
    uint32_t max_in_flight; /* of all hosts; 256 */
    uint32_t max_hops;      /* redirects one after the other; 10, at most 255 */
    uint32_t max_repeats;   /* of the same path segments one after the other; 3 */
    uint32_t max_variants;  /* queries of one path; 1000, at most 65534 */
    uint32_t max_sitemaps;  /* of a job and host; 10000, at most 65534 */
    int64_t max_defer_ns;   /* how long breaker, Retry-After and unknown robots may keep a task waiting; 30 min (R6) */
    uint64_t seed;          /* of the jitter */
    const weir_allocator *allocator;
};

struct wr_plan;
struct wr_plan_host; /* stays as long as it has tasks, or something was asked of the caller for it */

/* WEIR_E_INVAL, WEIR_E_NOMEM. */
int wr_plan_new(const struct wr_plan_options *given, struct wr_plan **ret_plan);
void wr_plan_free(struct wr_plan *plan);

/* ---- jobs ---------------------------------------------------------------------------------------------- */

/* What one job may do here. Budgets of a whole job are drawn from its ledger (ledger.h) by DRAW. 0 means the default;
 * of the budgets, no limit. */
struct wr_plan_job {
    uint32_t id;          /* the store's, not 0 */
    uint32_t concurrency; /* in flight, of this loop's share; any number */
    uint32_t max_depth;   /* links from a seed */
    uint32_t host_pages;  /* accepted per host */
    int64_t deadline_at;  /* it is over then; 0: never */
    bool draws_pages;     /* accepted URLs are counted against the ledger */
    bool draws_bytes;     /* bytes fetched */
};

/* WEIR_E_FULL: max_jobs. WEIR_E_INVAL: it is here already. */
int wr_plan_job_add(struct wr_plan *plan, const struct wr_plan_job *options);
/* Changes its concurrency and deadline. WEIR_E_ABSENT, here and below: no such job. */
int wr_plan_job_change(struct wr_plan *plan, const struct wr_plan_job *options);
/* Starts nothing more of it, and books the wait as `why`: PAUSED if somebody paused it, JOB_LIMIT if it has used up a
 * limit of its own. NONE: it goes on. */
int wr_plan_job_pause(struct wr_plan *plan, uint32_t id, weir_reason why);
/* For as long as wr_plan_next is not asked: looks at hosts of a job that was paused, so that their waits are booked.
 * Returns whether there are more. */
bool wr_plan_stir(struct wr_plan *plan, int64_t now);
/* It is over (cancelled, failed, out of budget): accepts and starts nothing more, and lets its windows go: the tasks
 * stay in the store as they are. What is in flight may end. DRAINED follows. */
int wr_plan_job_end(struct wr_plan *plan, uint32_t id);
/* What DRAINED said is still so. */
bool wr_plan_job_is_drained(const struct wr_plan *plan, uint32_t id);
/* After DRAINED; makes room for another. WEIR_E_INVAL: something of it is left. */
int wr_plan_job_forget(struct wr_plan *plan, uint32_t id);

enum wr_draw {
    WR_DRAW_PAGES,
    WR_DRAW_BYTES,
    WR_DRAWS
};
/* The ledger's answer to DRAW: so many more; fewer than were asked for: these are the last. Out of bytes the job is
 * over (OVER follows); out of pages it accepts nothing more. */
int wr_plan_grant(struct wr_plan *plan, uint32_t id, enum wr_draw what, uint64_t count, bool is_last);

/* ---- URLs ---------------------------------------------------------------------------------------------- */

#define WR_OFFERS(X)                                                                                      \
    X(WR_OFFER_NEW, "new") /* accepted: write it to the store */                                          \
    X(WR_OFFER_KNOWN, "known")                                                                            \
    X(WR_OFFER_ASK_STORE, "ask_store") /* write it if the store has none; if so offer it with `is_new` */ \
    X(WR_OFFER_LATER, "later")         /* the ledger is being asked: offer it again after the grant */    \
    X(WR_OFFER_SCOPE, "scope")         /* the rest are refusals */                                        \
    X(WR_OFFER_DEPTH, "depth")                                                                            \
    X(WR_OFFER_HOPS, "hops")                                                                              \
    X(WR_OFFER_BUDGET, "budget") /* the job's pages, or those of this host */                             \
    X(WR_OFFER_TRAP, "trap")     /* segments that repeat, or too many queries of one path */              \
    X(WR_OFFER_OVER, "over")     /* the job has ended, or is not known */                                 \
    X(WR_OFFER_MEMORY, "memory") /* there is none */

enum wr_offer_verdict {
#define X(verdict, name) verdict,
    WR_OFFERS(X)
#undef X
};

/* "new", …; NULL for a number that is none. */
const char *wr_offer_name(enum wr_offer_verdict verdict);

/* A link that was found, or a seed. */
struct wr_offer {
    uint32_t job;
    uint64_t fingerprint;
    const struct wr_url *url; /* canonical */
    uint32_t depth;           /* of a seed 0 */
    uint32_t hops;            /* of a redirect's target: one more than of the page that led there */
    bool is_seed;             /* in every scope and at any depth */
    bool is_sitemap;
    bool is_new;    /* the store said so after ASK_STORE */
    bool is_stored; /* it was written already, by another loop: if it is refused, end it */
};

/* Only scope, depth, hops and segments: whether a link to another loop's host is worth posting. NEW: it is. */
enum wr_offer_verdict wr_plan_screen(const struct wr_plan *plan, const struct wr_offer *offer);
enum wr_offer_verdict wr_plan_offer(struct wr_plan *plan, const struct wr_offer *offer, int64_t now);

/* Whether it was accepted here, or refused though it was stored: then it need not be offered. */
bool wr_plan_knows(const struct wr_plan *plan, uint32_t job, uint64_t fingerprint);
/* That will be asked: has the memory fetched, which is in no cache when the set is large. */
void wr_plan_expect(const struct wr_plan *plan, uint32_t job, uint64_t fingerprint);

/* Of a resumed job: this URL is known. When all of them have been told (or nothing was ever stored, as in a new plan)
 * the set is complete; tell so when it is not: then what is not in it is asked of the store. */
void wr_plan_known(struct wr_plan *plan, uint32_t job, uint64_t fingerprint);
void wr_plan_known_incomplete(struct wr_plan *plan);
/* Whether the set of fingerprints is crowded, and doubling it now: between steps, for it takes memory and time. */
bool wr_plan_is_crowded(const struct wr_plan *plan);
int wr_plan_grow(struct wr_plan *plan);

/* ---- what comes out of the store ----------------------------------------------------------------------- */

/* In the order of a host's queue. All zero but the priority: before all. */
struct wr_plan_position {
    int64_t id;
    int32_t priority;
};
#define WR_PLAN_FRONT ((struct wr_plan_position){0, INT32_MIN})

/* A host of this loop has `queued` tasks of the job in the store: of a resumed job, and in answer to HOSTS. Hosts that
 * are here already are left alone; but one that has nothing left of the job, when nobody asked, is read again from the
 * front. WEIR_E_FULL: no room; HOSTS will ask again. WEIR_E_ABSENT, WEIR_E_NOMEM. */
int wr_plan_host_waits(struct wr_plan *plan, uint32_t id, struct wr_span key, uint64_t queued, int64_t now);
/* The answer to HOSTS is complete; `is_end`: there are none after the last. */
void wr_plan_hosts_listed(struct wr_plan *plan, uint32_t id, int64_t last_id, bool is_end, int64_t now);

/* What the store knows of a host and its robots.txt, [1] that of https. */
struct wr_plan_memory {
    const weir_pace_memory *pace; /* NULL: it is new */
    int64_t blocked_ns;           /* from now on it is blocked for so long, see wr_plan_wall; 0: it is not */
    uint8_t blocked_by;           /* or was: the store does not know that it may be asked again; 0: it never was */
    bool is_paused;
    int64_t set_interval_ns; /* 0: none */
    struct {
        bool is_known;
        struct wr_robots *rules; /* NULL: there is none. Becomes the plan's */
        bool has_validators;
        int64_t max_age_ns; /* negative: not said */
        int64_t age_ns;
    } robots[2];
};
/* The first answer to a LOAD with `wants_memory`. */
void wr_plan_remember(struct wr_plan *plan, struct wr_plan_host *host, const struct wr_plan_memory *memory, int64_t now,
                      int64_t wall_now);

struct wr_plan_row {
    uint64_t fingerprint;
    struct wr_plan_position position;
    const struct wr_url *url; /* NULL: none, or it is left aside. The caller ends it; here it has ended */
    uint32_t depth, hops, attempts;
    int64_t not_before_ns; /* from now; 0: at once */
};
/* A row of the answer to a LOAD, in order. WEIR_E_NOMEM, WEIR_E_FULL: it was not taken, and what follows must not be
 * given: end the answer with is_end false. */
int wr_plan_load(struct wr_plan *plan, struct wr_plan_host *host, uint32_t id, const struct wr_plan_row *row,
                 int64_t now);
/* The answer is complete. `is_end`: there were fewer than asked for. `accepted`: tasks of this job and host that the
 * store has, ended or not; 0: not counted. */
void wr_plan_loaded(struct wr_plan *plan, struct wr_plan_host *host, uint32_t id, bool is_end, uint32_t accepted,
                    int64_t now);

/* ---- what next ----------------------------------------------------------------------------------------- */

#define WR_PLAN_KINDS(X)                                                                                         \
    X(WR_PLAN_IDLE, "idle")       /* nothing until `at`, or (WEIR_FOREVER) until something is told */            \
    X(WR_PLAN_START, "start")     /* fetch `url`: the task's page */                                             \
    X(WR_PLAN_ERRAND, "errand")   /* the same for an errand, which `tag` names */                                \
    X(WR_PLAN_ROBOTS, "robots")   /* fetch `url`: the host's robots.txt; is_hop: the Location of the last one */ \
    X(WR_PLAN_LOAD, "load")       /* `count` tasks of the job for the host, after `after` */                     \
    X(WR_PLAN_HOSTS, "hosts")     /* up to `count` hosts with tasks of the job, after `after.id` */              \
    X(WR_PLAN_END, "end")         /* the task ends unsent: `reason` robots (denied), or what deferred it (R6) */ \
    X(WR_PLAN_DRAW, "draw")       /* ask the job's ledger for `count` of `draw`, then wr_plan_grant */           \
    X(WR_PLAN_OVER, "over")       /* out of `draw`, or of time (WR_DRAWS): end the job everywhere */             \
    X(WR_PLAN_DRAINED, "drained") /* nothing of the job is left here; comes again after more was offered */

enum wr_plan_kind {
#define X(kind, name) kind,
    WR_PLAN_KINDS(X)
#undef X
};

/* "start", …; NULL for a number that is none. */
const char *wr_plan_kind_name(enum wr_plan_kind kind);

/* For how long a task was held, in ms, and by what: since it was loaded, or came back after an attempt or unsent. While
 * it is first in line at its host, that is what holds the host (wr_plan_why); before, QUEUE, or RETRY for as long as it
 * backs off itself. A host that is held by nothing of its own and still not asked waits for JOB_LIMIT, if its job had
 * as many in flight as it may meanwhile; else for GLOBAL, if all jobs together had; else for its turn, QUEUE. */
#define WR_PLAN_REASONS (WEIR_REASON_QUEUE + 1)
struct wr_plan_waited {
    uint32_t ms[WR_PLAN_REASONS];
};

struct wr_plan_action {
    enum wr_plan_kind kind;
    int64_t at;    /* IDLE */
    uint32_t job;  /* not of ROBOTS and ERRAND */
    uint32_t task; /* START, ROBOTS, ERRAND: the number by which it is told of; END: not any more */
    uint64_t fingerprint;
    struct wr_plan_host *host;
    struct wr_span url; /* valid until the next call of wr_plan_next */
    uint32_t depth, hops, attempts;
    bool is_https;       /* ROBOTS: of which origin */
    bool is_conditional; /* ROBOTS: send the validators of the copy */
    bool is_hop;         /* ROBOTS */
    bool is_denied;      /* END: robots.txt says no; else it was deferred for too long */
    bool wants_memory;   /* LOAD: wr_plan_remember comes first */
    uint64_t tag;        /* ERRAND; END: of wr_plan_give_up, or 0 */
    uint8_t blocked_by;  /* END: not 0: by the wall of this number, see wr_plan_wall */
    struct wr_plan_position after;
    uint64_t count;
    enum wr_draw draw;
    weir_reason reason;
    int64_t next_ns; /* START, ROBOTS, ERRAND: the least time to the host's next; WEIR_FOREVER: none is known of */
    struct wr_plan_waited waited; /* START, END; ROBOTS and ERRAND: the host's next task, so far */
};

void wr_plan_next(struct wr_plan *plan, int64_t now, struct wr_plan_action *ret_action);

/* No START, ERRAND or ROBOTS before `until`: for limits over everything, such as a rate or bandwidth of all hosts
 * together. What was started may still be sent. A time that has passed: go on. */
void wr_plan_hold(struct wr_plan *plan, int64_t until);

/* ---- requests ------------------------------------------------------------------------------------------ */

/* Asked just before writing. Anything but WEIR_GO: wr_plan_given. */
weir_decision wr_plan_may_send(struct wr_plan *plan, uint32_t number, int64_t now);
void wr_plan_sent(struct wr_plan *plan, uint32_t number, int64_t now);
/* What was said to be sent got out only now: spacing counts from here. */
void wr_plan_late(struct wr_plan *plan, uint32_t number, int64_t now);
/* Not sent after all; or sent, and nothing is known of how it ended: our own fault, or it was cancelled. It is where it
 * was, for at least 100 ms. */
void wr_plan_given(struct wr_plan *plan, uint32_t number, int64_t now);

/* The head of an answer is there: what it says of waiting binds at once; how it ended is told later. Returns news, as
 * wr_fate has it. */
uint32_t wr_plan_hear(struct wr_plan *plan, uint32_t number, const weir_outcome *outcome, int64_t now);

#define WR_FATES(X)                                        \
    X(WR_FATE_DONE, "done")                                \
    X(WR_FATE_AGAIN, "again") /* queued again, for `at` */ \
    X(WR_FATE_FAILED, "failed")

enum wr_fate_kind {
#define X(kind, name) kind,
    WR_FATES(X)
#undef X
};

struct wr_fate {
    enum wr_fate_kind kind;
    enum wr_next why;  /* FAILED: permanent or spent */
    int64_t at;        /* AGAIN */
    uint32_t attempts; /* so far */
    uint32_t news; /* of wr_gate_news: RETRY_AFTER: store the host's memory at once; HOPELESS: end the job (S2-14) */
};

/* How a page ended. */
struct wr_fate wr_plan_told(struct wr_plan *plan, uint32_t number, const weir_outcome *outcome, uint64_t bytes,
                            int64_t now);

/* It failed, and no answer was the cause. `outcome`: what the host's gate learns of it; NULL: nothing, for it was not
 * the host's doing. `is_final`: it would fail again. As told otherwise. */
struct wr_fate wr_plan_failed(struct wr_plan *plan, uint32_t number, const weir_outcome *outcome, bool is_final,
                              int64_t now);

/* How a robots.txt ended (`outcome` may be NULL, as of failed): `event` is ANSWERED or FAILED, its unit is set here.
 * `rules` become the plan's, whatever comes of them; NULL: there are none. Of what it returns, `fetch` ON: it goes on
 * at its Location, by ROBOTS again if `stays` (Location is at the same host), else by an errand of the caller's, whose
 * answer is told by wr_plan_robots_came. `copy`: what to store. */
struct wr_life_action wr_plan_robots_told(struct wr_plan *plan, uint32_t number, const weir_outcome *outcome,
                                          const struct wr_life_event *event, struct wr_robots *rules, bool stays,
                                          int64_t now);
/* The same for a hop that was an errand. */
struct wr_life_action wr_plan_robots_came(struct wr_plan *plan, struct wr_plan_host *host, bool is_https,
                                          const struct wr_life_event *event, struct wr_robots *rules, bool stays,
                                          int64_t now);

/* Whatever is asked of this origin fails: there is no such host, it must not be asked, or does not answer. Pages that
 * wait for its robots.txt end now, not only after max_defer_ns, and their END has the tag, which is not 0. Until it is
 * known. */
void wr_plan_give_up(struct wr_plan *plan, struct wr_plan_host *host, bool is_https, uint8_t tag, int64_t now);

/* A host that does not let us in (U10). `by`: an answer said so, in the caller's numbers; 0: one was as it should be.
 * After WR_PLAN_WALLS of the former and none of the latter in between it is blocked for WR_PLAN_BLOCKED_NS: nothing
 * more is sent to it but errands, and its tasks end. The first of the latter when it may be asked again lifts that. */
#define WR_PLAN_WALLS 2
#define WR_PLAN_BLOCKED_NS WEIR_DAY
enum wr_wall_news {
    WR_WALL_NO_NEWS,
    WR_WALL_BLOCKED, /* from now on */
    WR_WALL_LIFTED,  /* it was, now or as the store knows it */
};
enum wr_wall_news wr_plan_wall(struct wr_plan *plan, struct wr_plan_host *host, uint8_t by, int64_t now);

/* How often in a row its robots.txt could not be had. */
uint32_t wr_plan_robots_failures(const struct wr_plan_host *host, bool is_https);

/* A request for a host of this plan on behalf of somebody else: ERRAND follows when its gate opens, before pages.
 * WEIR_E_FULL, WEIR_E_NOMEM. */
int wr_plan_errand(struct wr_plan *plan, const struct wr_url *url, uint64_t tag, int64_t now);
/* Takes it back. False: it is under way, or not here. */
bool wr_plan_errand_take(struct wr_plan *plan, struct wr_plan_host *host, uint64_t tag, int64_t now);
/* How it ended (`outcome` may be NULL, as of failed). Returns news, as wr_fate has it. */
uint32_t wr_plan_errand_told(struct wr_plan *plan, uint32_t number, const weir_outcome *outcome, int64_t now);

/* ---- leases -------------------------------------------------------------------------------------------- */

/* The host is this plan's by that token, until then: nothing is sent to it later. */
void wr_plan_host_lease(struct wr_plan *plan, struct wr_plan_host *host, uint64_t token, int64_t until, int64_t now);
uint64_t wr_plan_host_token(const struct wr_plan_host *host); /* 0: it is not leased */
/* Of one that has just been leased, and was released to rest before: the rest is over, and nothing was sent to it. Its
 * tasks were held for `held_ns` already, which counts against max_defer_ns. */
void wr_plan_host_rested_for(struct wr_plan_host *host, int64_t held_ns);
/* Somebody else asks for it: nothing more is started, so that it can be released soon; or goes on. */
void wr_plan_host_yield(struct wr_plan *plan, struct wr_plan_host *host, bool yields, int64_t now);
bool wr_plan_host_yields(const struct wr_plan_host *host);
/* When it may be asked next, if its gate alone says so, and nothing is lost if it is released until then: WEIR_FOREVER
 * if it is paused; `now` if it has something to do, or nobody knows. `ret_held_ns` as of wr_plan_host_rested_for. */
int64_t wr_plan_host_rests_until(const struct wr_plan *plan, struct wr_plan_host *host, int64_t now,
                                 int64_t *ret_held_ns);
/* It is another's: its tasks are let go, and stay in the store as they are; errands wait (wr_plan_errand_take). What is
 * in flight may end. */
void wr_plan_host_lose(struct wr_plan *plan, struct wr_plan_host *host, int64_t now);
/* Whether nothing of it is here, in the store as far as is known, or under way. */
bool wr_plan_host_rests(const struct wr_plan_host *host);
/* Something of it has ended, and is not posted to the store yet: it neither rests nor is it still, and stays where it
 * is, until that is paid. */
void wr_plan_host_owe(struct wr_plan_host *host);
void wr_plan_host_pay(struct wr_plan *plan, struct wr_plan_host *host, int64_t now);
/* Whether something was asked for and has not come, or is owed. */
bool wr_plan_host_flies(const struct wr_plan_host *host);
/* Forgets it. False: it does not rest. */
bool wr_plan_host_leave(struct wr_plan *plan, struct wr_plan_host *host, int64_t now);
/* The caller's: the beat at which it was last seen to be leased, and since when it rests; 0: it does not. */
void wr_plan_host_mark(struct wr_plan_host *host, uint64_t beat, int64_t rests_since);
uint64_t wr_plan_host_marked(const struct wr_plan_host *host);
int64_t wr_plan_host_rested(const struct wr_plan_host *host);

/* ---- groups -------------------------------------------------------------------------------------------- */

/* Hosts of this plan that share a gate beside their own (D8): those of a domain, or of an address. The strictest binds:
 * a start needs both gates, and what is sent and answered is told to both. A Crawl-delay and a robots.txt stay the
 * host's own. Of hosts that wait for their group's gate alone the one that is ready longest goes first. Groups are at
 * most max_hosts; their gates are not stored, so that after a restart only the hosts' own are known.
 *
 * Names the group of a host; an empty key: none. One that has requests in flight at its group keeps it. Where that is
 * learned when a request is about to be sent, ask wr_plan_may_send again. WEIR_E_FULL, WEIR_E_NOMEM, WEIR_E_INVAL: the
 * host is as it was. */
int wr_plan_host_group(struct wr_plan *plan, struct wr_plan_host *host, struct wr_span key, int64_t now);
/* Empty: none. */
struct wr_span wr_plan_host_group_key(const struct wr_plan *plan, const struct wr_plan_host *host);

/* ---- looking ------------------------------------------------------------------------------------------- */

/* NULL: not here. */
struct wr_plan_host *wr_plan_host_find(const struct wr_plan *plan, struct wr_span key);
struct wr_span wr_plan_host_key(const struct wr_plan_host *host);
/* Its robots.txt; NULL: there is none, or it is not known. */
const struct wr_robots *wr_plan_host_rules(const struct wr_plan_host *host, bool is_https);
/* Its gate, for reports, or to pause it (then call wr_plan_host_changed). */
struct wr_gate *wr_plan_host_gate(struct wr_plan_host *host);
/* By which its gate decides. */
const weir_pace_options *wr_plan_host_options(const struct wr_plan *plan, const struct wr_plan_host *host);
void wr_plan_host_changed(struct wr_plan *plan, struct wr_plan_host *host, int64_t now);

/* What holds the job's next task at this host, in R28's words, and for how long: NONE, if it may start now. */
weir_decision wr_plan_why(const struct wr_plan *plan, const struct wr_plan_host *host, uint32_t id, int64_t now);

/* What was sent to a host since it came into memory, pages, robots.txt and errands alike, and how it is doing. */
struct wr_plan_host_report {
    struct wr_span key;      /* valid as long as the host */
    uint32_t requests;       /* sent */
    uint32_t successes;      /* of them, answered by 2xx and 3xx */
    uint32_t rejected;       /* by what its gate takes for a rejection: 429, 403, 503 */
    uint32_t failures;       /* otherwise, or not at all */
    uint32_t retries;        /* pages that are tried again */
    uint32_t hasty;          /* sent sooner after another than Crawl-delay and options allow: must be 0 (S1-29) */
    uint64_t bytes;          /* of pages */
    int64_t closest_ns;      /* between two sends; WEIR_FOREVER: there were no two */
    int64_t first_at;        /* of the sends; with no requests meaningless */
    int64_t last_at;         /* the pace reached is (requests - 1) / (last_at - first_at) */
    int64_t robots_delay_ns; /* Crawl-delay; 0: none */
    weir_pace_entry now;     /* as its gate sees it; the pace allowed is one start each delay_ns, and `cap` in flight */
    struct wr_plan_waited waited; /* its next task each time, so QUEUE is only for the store, and for its turn */
};
void wr_plan_host_report(const struct wr_plan *plan, const struct wr_plan_host *host, int64_t now,
                         struct wr_plan_host_report *ret_report);
/* Walks over all hosts in memory: start with *cursor 0, and end at NULL. No host may come or go meanwhile. */
struct wr_plan_host *wr_plan_host_next(const struct wr_plan *plan, size_t *cursor);
/* Of the table that they are in: another number means that they have moved. */
size_t wr_plan_host_slots(const struct wr_plan *plan);

/* The next host whose memory changed since it was last taken here; NULL: none. Store it. */
const struct wr_plan_host *wr_plan_save(struct wr_plan *plan, int64_t now, int64_t wall_now,
                                        weir_pace_memory *ret_memory);

struct wr_plan_stats {
    size_t hosts, tasks, in_flight, known; /* tasks: in windows and in flight */
    uint64_t starts, robots, retries, expired, denied;
    uint64_t rejected;                /* as in wr_plan_host_report */
    uint64_t hasty;                   /* of all hosts, also those that have left: must be 0 (S1-29) */
    uint64_t hopeless;                /* times that WR_NEWS_HOPELESS was told */
    size_t lowered;                   /* hosts at which jobs may have fewer in flight than elsewhere (S2-17) */
    uint64_t overrides;               /* times that this was changed */
    uint64_t dropped;                 /* rules of robots.txt, for want of room */
    size_t memory_bytes, known_bytes; /* all but rules; of it the set of fingerprints */
    size_t rules_bytes;
};
void wr_plan_stats_get(const struct wr_plan *plan, struct wr_plan_stats *ret_stats);

/* Bytes of a host with a key of so many bytes, and one lane. */
size_t wr_plan_host_bytes(const struct wr_plan_options *options, size_t key_bytes);

/* Asserted invariants; looks at everything. */
bool wr_plan_ok(const struct wr_plan *plan);

#endif
