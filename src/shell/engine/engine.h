/* SPDX-License-Identifier: MIT */
/* engine.h - a crawl: carries out what plans say, on the wire and in the store.
 *
 *     wr_engine_open(&place, &engine);                the state file
 *     wr_engine_find_job(engine, 0, &job);            to go on with one: its settings
 *     wr_engine_start(engine, &options);              threads run from here on
 *     wr_engine_seed(engine, &url);                   as often as there are seeds; waits where there is no room
 *     wr_engine_seeded(engine);                       there are no more
 *     while (!wr_engine_wait(engine, 100 * WEIR_MILLISECOND))
 *         wr_engine_stats_get(engine, &stats);        progress; or wr_engine_drain, wr_engine_stop
 *     wr_engine_finish(engine, &result);              threads have ended; reports may be read
 *     wr_engine_free(engine);
 *
 * Threads: `loops` of them, each with a plan (core/plan), the connections (shell/net) and the pages of its hosts: a
 * host belongs to one loop by the hash of its key, so pacing needs no lock. Pages are scanned for links as they arrive,
 * on the loop: that takes a microsecond per kilobyte, less than to hand them to another thread. The store's thread
 * writes state and output, in this order: output, sync, commit.
 *
 *     plan ──▶ START ──▶ net ──▶ page ──▶ line, links ──▶ one post to the store ──▶ output file, commit
 *      ▲                                                                │
 *      └───────────────────────── loads, grants, mail of other loops ───┘
 *
 * Back-pressure: where the store takes no more, pages that ended wait, and nothing new is started.
 *
 * Bounded, beside what plan.h, net.h and store.h say: what is known of robots.txt has 128 MiB in all (16 MiB a loop, if
 * that is more); one that is coming has 64 KiB, and all of them 64 MiB beyond that: one for which there is no more is
 * asked for again.
 *
 * What a crash leaves: every URL that was accepted has ended and has its line in the output, or is queued. On resume
 * the output is cut back to what was committed.
 */
#ifndef WR_SHELL_ENGINE_ENGINE_H
#define WR_SHELL_ENGINE_ENGINE_H

#include "core/plan/plan.h"
#include "core/rules/url/guard.h"
#include "shell/engine/digest.h"
#include "shell/net/resolver.h"
#include "shell/store/store.h"

struct wr_engine;

/* ---- the state file ---- */

struct wr_engine_place {
    const char *state_path; /* a file, or the URL of a database that other processes may use (wr_store_is_url) */
    bool may_create;
    int64_t lease_ns; /* such a database: how long a host is this process's, if it falls silent; 0: 30 s */
    const weir_allocator *allocator;
};

/* Errors as of wr_store_open. */
int wr_engine_open(const struct wr_engine_place *place, struct wr_engine **ret_engine);

struct wr_engine_job {
    int64_t id;
    enum wr_job_status status;
    struct wr_span settings; /* as given to wr_engine_start; good as long as the engine */
    uint64_t queued, done, failed;
    bool is_seeded; /* else its seeds have to be given again: those that it has count once */
};

/* Whether it can be gone on with: it is not over, or it was given up after failures in a row and has URLs left. */
bool wr_engine_can_resume(const struct wr_engine_job *job);

/* The job `id`, or (0) the newest that can be gone on with. WEIR_E_ABSENT. */
int wr_engine_find_job(struct wr_engine *engine, int64_t id, struct wr_engine_job *ret_job);

/* Other processes on the same database, as they said lately; after wr_engine_start. */
struct wr_engine_company {
    uint64_t mates;    /* that crawl the same job */
    uint64_t others;   /* that crawl another one */
    int64_t other_job; /* one of theirs */
};
int wr_engine_company_get(struct wr_engine *engine, struct wr_engine_company *ret_company);

/* The job `id`, or (0) the newest that was completed: one to visit again. WEIR_E_ABSENT. */
int wr_engine_find_earlier(struct wr_engine *engine, int64_t id, struct wr_engine_job *ret_job);

/* ---- the crawl ---- */

enum wr_engine_group {
    WR_GROUP_HOST,   /* each host is paced by itself */
    WR_GROUP_DOMAIN, /* and all hosts of a registrable domain together */
    WR_GROUP_IP,     /* and all hosts of an address; there is one loop then */
};

/* 0 and NULL mean the default. Texts are copied. */
struct wr_engine_options {
    int64_t resume_job;  /* 0: a new one */
    int64_t earlier_job; /* of a new one: the job that it visits again; 0: none */
    bool only_due;       /* of what that one knew, only pages that are likely to have changed */
    bool has_seeds;      /* seeds follow, also of a job that is gone on with: it is not over before wr_engine_seeded */
    struct wr_span settings; /* of a new job: the caller's, to be found again */
    const char *out_path;    /* JSON lines; "-": standard output; NULL: none */
    bool keeps_lines;        /* in the store, which has to be shared */
    bool appends;            /* to a file that has lines; else WEIR_E_INVAL */
    const char *warc_path;   /* an archive, in files of this name and "-00000.warc.gz", …; NULL: none */
    uint64_t warc_size;      /* of each of them; 1 GiB */
    const char *body_folder; /* where bodies are saved; NULL: nowhere. There must be lines, or an archive */
    uint64_t kept_max;       /* bytes of a body that are kept; 256 MiB */
    size_t pieces_max;       /* bytes of records and bodies that wait to be written; 128 MiB */
    const char *log_path;    /* a line for each request as it is sent, and each change of a pace; NULL: none */
    uint32_t loops;          /* one for each processor, at most 64 */
    uint32_t concurrency;    /* requests in flight in all; 256 */
    weir_pace_options pace;  /* of every host; have been checked */
    enum wr_engine_group group;
    double global_rate; /* starts a second in all; 0: any number (R18) */
    uint64_t bandwidth; /* bytes a second in all; 0: any number */

    const char *agent;          /* User-Agent; its first word is asked for in robots.txt */
    const char *const *headers; /* lines "Name: value" for the origins of seeds only; ends with NULL */
    const char *proxy;
    const char *ca_file;
    bool allows_private;
    bool ignores_robots;
    enum wr_on_error on_error; /* of robots.txt */
    double delay_factor;       /* times its Crawl-delay, 0.01 ... 100; 1 */
    bool asks_blocked;         /* also hosts that did not let us in within a day */
    bool follows_nofollow;
    bool sitemaps; /* those of the seeds' hosts are read, too */
    enum wr_digest_kind digest;

    /* Whether a link is to be followed; of seeds it is not asked. Any thread, several at once. NULL: all are. */
    bool (*in_scope)(void *context, const struct wr_url *url);
    /* A seed was accepted, also of a job that is gone on with, or a seed leads here: scopes grow by it. Any thread. */
    void (*on_seed)(void *context, const struct wr_url *url);
    void *scope_context;

    uint32_t max_depth;         /* links from a seed; 0: any number */
    uint64_t max_pages;         /* accepted in all; 0: any number */
    uint32_t host_pages;        /* accepted per host; 0: any number */
    uint64_t max_bytes;         /* of bodies in all; 0: any number */
    int64_t max_time_ns;        /* of this run; 0: no limit */
    uint32_t max_hops;          /* 10 */
    uint32_t failure_threshold; /* failures in a row after which the job fails; 20; UINT32_MAX: never */
    int64_t max_defer_ns;       /* 30 min (R6) */
    uint64_t body_max;          /* bytes of a body that are read; 32 MiB */
    int64_t request_ns;         /* one request on the wire; 2 min (S1-9, U13) */
    int64_t drain_ns;           /* after wr_engine_drain: then it stops; 30 s */
    uint32_t max_hosts;         /* in memory, in all; 100 000 */
    const char *statuses;       /* as for wr_statuses_parse; NULL: as WR_STATUSES_JOBS */

    /* Something went wrong that the user should know: one line. Any thread. NULL: nobody listens. */
    void (*warn)(void *context, const char *line);
    void *warn_context;

    /* What tests put in the place of the world. NULL: the world's. */
    enum wr_guard_class (*judge)(void *context, const struct wr_address *address);
    void *judge_context;
    wr_lookup *lookup;
    void *lookup_context;
};

/* Makes the job, or goes on with one; opens the output. WEIR_E_INVAL (weir_error_detail says what would be right),
 * WEIR_E_SYSTEM, WEIR_E_NOMEM. */
int wr_engine_start(struct wr_engine *engine, const struct wr_engine_options *given);

/* Waits while there is no room. WEIR_E_CLOSED: the crawl is ending. */
int wr_engine_seed(struct wr_engine *engine, const struct wr_url *url);
/* All URLs that the earlier job knows, as deep as it found them. The same. */
int wr_engine_seed_earlier(struct wr_engine *engine);
/* There are no more. WEIR_E_CLOSED: the crawl is ending, and they have to be given again when it goes on. */
int wr_engine_seeded(struct wr_engine *engine);

/* True: the crawl has ended by itself or was ended; wr_engine_finish does not wait long. */
bool wr_engine_wait(struct wr_engine *engine, int64_t timeout_ns);

/* Starts no more requests and lets those in flight end. From any thread, as is stop. */
void wr_engine_drain(struct wr_engine *engine);
/* Gives up what is in flight: it stays queued. */
void wr_engine_stop(struct wr_engine *engine);

/* ---- looking ---- */

/* Of this run, but for queued. */
struct wr_engine_stats {
    uint64_t pages;     /* lines in the output */
    uint64_t fetched;   /* of them, answered well */
    uint64_t unchanged; /* of them, as an earlier job had seen them */
    uint64_t failed;    /* failed, or expired */
    uint64_t denied;    /* by robots.txt */
    uint64_t beyond;    /* links that were left out, by max_pages or host_pages */
    uint64_t deeper;    /* by max_depth */
    uint64_t unread;    /* sitemaps that were left out: nested too deep, or too many of a host */
    uint64_t redirects;
    uint64_t blocked;       /* of the failed, by firewalls: answered so, or not sent for it */
    uint64_t blocked_hosts; /* that do not let us in */
    uint64_t requests;      /* robots.txt, and those that could not connect, included */
    uint64_t robots;        /* of them */
    uint64_t rejected;      /* answers 429, 403 and 503 */
    uint64_t retries;
    uint64_t overrides; /* how often a host's concurrency was lowered or restored (S2-24) */
    uint64_t bytes;     /* of bodies */
    uint64_t accepted;  /* URLs, seeds included, of all runs */
    uint64_t queued;    /* accepted and not ended; of a job that processes share, in all, as of some seconds ago */
    uint64_t in_flight;
    uint64_t hosts; /* in memory */
    uint64_t connections;
    size_t memory_bytes; /* of the plans */
    size_t robots_bytes; /* of robots.txt that are coming, beyond the first 64 KiB of each; at most 64 MiB */
    int64_t elapsed_ns;
    bool is_shared; /* other processes may crawl the same job */
    bool has_none;  /* they have all its hosts */
    bool is_seeding, is_draining;
    bool is_answered; /* somebody has, so there is a network */
    bool is_paused;   /* the store takes nothing, see pause_why */
    char pause_why[160];
};
void wr_engine_stats_get(struct wr_engine *engine, struct wr_engine_stats *ret_stats);

/* ---- what an earlier job saw differently ---- */

#define WR_CHANGES(X)                                         \
    X(WR_CHANGE_NEW, "new")         /* it had no such page */ \
    X(WR_CHANGE_CHANGED, "changed") /* it had another one */  \
    X(WR_CHANGE_GONE, "gone")       /* it had one, and now there is none, or it has moved */

enum wr_change {
#define X(change, name) change,
    WR_CHANGES(X)
#undef X
};

const char *wr_change_name(enum wr_change change);

typedef void wr_engine_tell_change(void *context, enum wr_change change, const struct wr_store_task *task);
/* In the order in which URLs were found; of what has ended by now. When the crawl has ended, before wr_engine_finish;
 * `tell` is called on the store's thread. Errors as of wr_store_read. */
int wr_engine_diff(struct wr_engine *engine, wr_engine_tell_change *tell, void *context);

/* How it ended. */
enum wr_engine_end {
    WR_END_COMPLETED,
    WR_END_FAILED,    /* failures in a row: it can be resumed */
    WR_END_CANCELLED, /* too many 429 in a row */
    WR_END_BUDGET,    /* out of time or bytes: the rest stays queued */
    WR_END_BLOCKED,   /* all its hosts have firewalls that do not let us in (U10) */
    WR_END_STOPPED,   /* by wr_engine_drain or stop: it can be resumed */
    WR_END_BROKEN,    /* the store or the output failed: it can be resumed */
};

struct wr_engine_result {
    enum wr_engine_end end;
    int64_t job;
    struct wr_engine_stats stats;
    uint64_t failed;                       /* URLs of the job, by all its runs */
    uint64_t round_trips;                  /* to the store's server, if it has one */
    char failed_url[256], failed_why[256]; /* the first of this run, as much of it as fits; "": none */
    char why[256];                         /* in words; "" if completed */
};

/* Waits for the threads; stores what is left. */
void wr_engine_finish(struct wr_engine *engine, struct wr_engine_result *ret_result);

/* One host of the report; after wr_engine_finish. */
struct wr_engine_host {
    struct wr_span key;
    uint64_t requests;             /* of all kinds */
    uint64_t ok, rejected, failed; /* answered by 2xx and 3xx; by 429, 403 and 503; otherwise, or not at all */
    uint64_t retries, bytes;
    uint64_t hasty;                           /* sooner after another than Crawl-delay and options allow: must be 0 */
    double reached_rate;                      /* starts a second between the first and the last; 0: fewer than two */
    double allowed_rate;                      /* as learned; INFINITY: any */
    int64_t interval_ns;                      /* that held at the end */
    int64_t closest_ns;                       /* between two starts; 0: fewer than two */
    int64_t robots_delay_ns;                  /* Crawl-delay; 0: none */
    int64_t waited_ns[WEIR_REASON_QUEUE + 1]; /* by weir_reason */
};
typedef void wr_engine_tell_host(void *context, const struct wr_engine_host *host);
/* Those with the most requests come first; at most WR_ENGINE_REPORT_MAX are kept. Returns how many were left out. */
#define WR_ENGINE_REPORT_MAX 100000
uint64_t wr_engine_report(struct wr_engine *engine, wr_engine_tell_host *tell, void *context);

/* How often each status was answered, robots.txt and what was tried again included; [0]: no answer. After
 * wr_engine_finish. */
#define WR_STATUSES_COUNT 1000
void wr_engine_report_statuses(const struct wr_engine *engine, uint64_t ret_counts[WR_STATUSES_COUNT]);

void wr_engine_free(struct wr_engine *engine);

#endif
