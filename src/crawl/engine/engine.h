/* SPDX-License-Identifier: MIT */
/* engine.h - a crawl: carries out the actions of plans, on the network and in the store.
 *
 *     wr_engine_open(&place, &engine);                the state file
 *     wr_engine_find_job(engine, 0, &job);            to resume a job: its settings
 *     wr_engine_start(engine, &options);              threads run from here on
 *     wr_engine_add_seed(engine, &url);                   for each seed; waits while there is no room
 *     wr_engine_end_seeds(engine);                       no more seeds follow
 *     while (!wr_engine_wait(engine, 100 * WEIR_MILLISECOND))
 *         wr_engine_stats_get(engine, &stats);        progress; or wr_engine_drain, wr_engine_stop
 *     wr_engine_finish(engine, &result);              threads have ended; reports can be read
 *     wr_engine_free(engine);
 *
 * Threads: `loops` of them. Each has a plan (core/plan), the connections (http/net) and the pages
 * of its hosts. A host belongs to one loop by the hash of its key, so pacing needs no lock. A loop
 * scans pages for links as they arrive, at a microsecond per kilobyte: less than to hand them to
 * another thread. The store's thread writes state and output, in this order: output, sync, commit.
 *
 *     plan --> START --> net --> page --> line, links --> one post to the store --> output, commit
 *      ^                                                           |
 *      +------------ loads, grants, messages of other loops -------+
 *
 * Back-pressure: while the store takes no more, pages that ended wait, and nothing is started.
 *
 * Bounds, besides those of plan.h, net.h and store.h: compiled robots.txt have 128 MiB in all (16
 * MiB per loop, if that is more). A robots.txt that is arriving has 64 KiB, and all of them 64 MiB
 * beyond that. One that would exceed it is fetched later.
 *
 * After a crash, every accepted URL has either ended, with its line in the output, or is queued. A
 * resume cuts the output back to what was committed.
 */
#ifndef WR_CRAWL_ENGINE_ENGINE_H
#define WR_CRAWL_ENGINE_ENGINE_H

#include "core/plan/plan.h"
#include "core/web/url/address_guard.h"
#include "crawl/engine/digest_algorithms.h"
#include "crawl/store/store.h"
#include "http/net/resolver.h"

struct wr_engine;

/* ---- the state file ---- */

struct wr_engine_open_options {
    const char *state_path; /* a file, or the URL of a shared database (wr_store_is_url) */
    bool may_create;
    int64_t lease_ns; /* how long a silent process keeps a host of a database; 0: 30 s */
    const weir_allocator *allocator;
};

/* Opens the store and creates an engine. Errors as of wr_store_open. */
int wr_engine_open(const struct wr_engine_open_options *place, struct wr_engine **ret_engine);

struct wr_engine_job {
    int64_t id;
    enum wr_job_status status;
    struct wr_span settings; /* text given to wr_engine_start; valid as long as the engine */
    uint64_t queued, done, failed;
    bool is_seeded; /* all seeds are stored; else give them again: known ones count once */
};

/* Returns true if the job can be resumed: it is not over, or it failed and has URLs left. */
bool wr_engine_can_resume(const struct wr_engine_job *job);

/* Finds the job `id`, or (0) the newest that can be resumed. Returns 0 or WEIR_E_ABSENT. */
int wr_engine_find_job(struct wr_engine *engine, int64_t id, struct wr_engine_job *ret_job);

/* Other processes that used the same database lately; after wr_engine_start. */
struct wr_engine_peers {
    uint64_t same_job; /* processes that crawl the same job */
    uint64_t others;   /* processes that crawl other jobs */
    int64_t other_job; /* one of these other jobs */
};
int wr_engine_peers_get(struct wr_engine *engine, struct wr_engine_peers *ret_company);

/* Finds the job `id`, or (0) the newest completed one, to recrawl. Returns 0 or WEIR_E_ABSENT. */
int wr_engine_find_job_to_recrawl(struct wr_engine *engine, int64_t id, struct wr_engine_job *ret_job);

/* ---- the crawl ---- */

enum wr_engine_group {
    WR_GROUP_HOST,   /* each host is paced by itself */
    WR_GROUP_DOMAIN, /* hosts of a registrable domain share a pace, too */
    WR_GROUP_IP,     /* hosts of an address share a pace, too; uses one loop */
};

/* Options of a crawl. 0 and NULL mean the default. Texts are copied. */
struct wr_engine_options {
    int64_t resume_job;  /* job to resume; 0: a new one */
    int64_t earlier_job; /* new job: the job whose pages it visits again; 0: none */
    bool only_due;       /* recrawl only pages that have probably changed */
    /* Seeds follow: no job, new or resumed, is over before wr_engine_end_seeds. */
    bool has_seeds;
    struct wr_span settings; /* new job: the caller's text, which a resume finds */
    const char *out_path;    /* output of JSON lines; "-": standard output; NULL: none */
    bool keeps_lines;        /* keep lines in the store, which has to be shared */
    bool appends;            /* append to an output file that has lines; else it is refused */
    const char *warc_path;   /* archive in files named this and "-00000.warc.gz", ...; NULL: none */
    uint64_t warc_size;      /* size of an archive file, bytes; default 1 GiB */
    const char *body_folder; /* folder for bodies; NULL: none. Needs lines or an archive */
    uint64_t kept_max;       /* bytes of a body that are kept; default 256 MiB */
    size_t pieces_max;       /* bytes of pieces that wait to be written; default 128 MiB */
    const char *log_path;    /* log of requests and of changes of pace; NULL: none */
    uint32_t loops;          /* threads, at most 64; default: one per processor */
    uint32_t concurrency;    /* requests in flight in all; default 256 */
    weir_pace_options pace;  /* pace of every host; already checked */
    enum wr_engine_group group;
    double global_rate; /* starts per second in all; 0: no limit */
    uint64_t bandwidth; /* bytes per second in all; 0: no limit */

    const char *agent;          /* User-Agent; its first word selects rules in robots.txt */
    const char *const *headers; /* lines "Name: value" for origins of seeds only; NULL at the end */
    const char *proxy;
    const char *ca_file;
    bool allows_private;
    bool ignores_robots;
    enum wr_robots_on_error on_error; /* decision if robots.txt is unavailable */
    double delay_factor;              /* factor for Crawl-delay, 0.01 to 100; default 1 */
    bool asks_blocked;                /* ask even hosts whose firewall blocked the crawler within a day */
    bool follows_nofollow;
    bool sitemaps; /* read the sitemaps of the seeds' hosts, too */
    enum wr_digest_kind digest;

    /* Returns true to follow a link (not for seeds). Any thread, several at once. NULL: all. */
    bool (*in_scope)(void *context, const struct wr_url *url);
    /* Reports a seed, also of a resumed job, or where it led: scopes grow by it. Any thread. */
    void (*on_seed)(void *context, const struct wr_url *url);
    void *scope_context;

    uint32_t max_depth;         /* links from a seed; 0: no limit */
    uint64_t max_pages;         /* accepted URLs in all; 0: no limit */
    uint32_t host_pages;        /* accepted URLs per host; 0: no limit */
    uint64_t max_bytes;         /* bytes of bodies in all; 0: no limit */
    int64_t max_time_ns;        /* duration of this run; 0: no limit */
    uint32_t max_hops;          /* redirects in a row; default 10 */
    uint32_t failure_threshold; /* failures in a row to end the job; default 20; UINT32_MAX: off */
    int64_t max_defer_ns;       /* how long a host may hold a task; default 30 min */
    uint64_t body_max;          /* bytes of a body that are read; default 32 MiB */
    int64_t request_ns;         /* time limit of one request; default 2 min */
    int64_t drain_ns;           /* time limit of draining, until the crawl stops; default 30 s */
    uint32_t max_hosts;         /* hosts in memory in all; default 100 000 */
    const char *statuses;       /* text for wr_statuses_parse; NULL: WR_STATUSES_JOBS */

    /* Reports a problem that the user should know, as one line; any thread. NULL: no reports. */
    void (*warn)(void *context, const char *line);
    void *warn_context;

    /* Replacements for tests; NULL: the real functions. */
    enum wr_guard_class (*judge)(void *context, const struct wr_address *address);
    void *judge_context;
    wr_lookup *lookup;
    void *lookup_context;
};

/* Creates or resumes the job, and opens the output. Returns WEIR_E_INVAL (weir_error_detail says
 * what would be right), WEIR_E_SYSTEM or WEIR_E_NOMEM. */
int wr_engine_start(struct wr_engine *engine, const struct wr_engine_options *given);

/* Adds a seed; waits while there is no room. Returns WEIR_E_CLOSED if the crawl is ending. */
int wr_engine_add_seed(struct wr_engine *engine, const struct wr_url *url);
/* Adds all URLs of the earlier job, as deep as it found them. Errors as of wr_engine_add_seed. */
int wr_engine_add_recrawl_seeds(struct wr_engine *engine);
/* Ends the seeds. Returns WEIR_E_CLOSED if the crawl is ending: a resume needs them again. */
int wr_engine_end_seeds(struct wr_engine *engine);

/* Returns true if the crawl has ended, by itself or by a call; wr_engine_finish is quick then. */
bool wr_engine_wait(struct wr_engine *engine, int64_t timeout_ns);

/* Starts no more requests; those in flight end. Any thread may call this and wr_engine_stop. */
void wr_engine_drain(struct wr_engine *engine);
/* Gives up what is in flight: its tasks stay queued. */
void wr_engine_stop(struct wr_engine *engine);

/* ---- statistics ---- */

/* Statistics of this run, unless a field says otherwise. */
struct wr_engine_stats {
    uint64_t pages;     /* lines of the output */
    uint64_t fetched;   /* pages with a good response */
    uint64_t unchanged; /* pages that are as an earlier job saw them */
    uint64_t failed;    /* pages that failed or expired */
    uint64_t denied;    /* pages that robots.txt forbids */
    uint64_t beyond;    /* links left out by max_pages or host_pages */
    uint64_t deeper;    /* links left out by max_depth */
    uint64_t unread;    /* sitemaps left out: nested too deep, or too many of a host */
    uint64_t redirects;
    uint64_t blocked;       /* failed pages that a firewall blocked, requested or not */
    uint64_t blocked_hosts; /* hosts whose firewall blocks the crawler */
    uint64_t requests;      /* all requests, also for robots.txt, and failed connections */
    uint64_t robots;        /* requests for robots.txt */
    uint64_t rejected;      /* responses 429, 403 and 503 */
    uint64_t retries;
    uint64_t overrides; /* times that a host's concurrency was lowered or restored */
    uint64_t bytes;     /* bytes of response bodies */
    uint64_t accepted;  /* URLs accepted by all runs, seeds included */
    uint64_t queued;    /* URLs that have not ended; if shared, of all processes, seconds old */
    uint64_t in_flight;
    uint64_t hosts; /* hosts in memory */
    uint64_t connections;
    size_t memory_bytes; /* memory of the plans */
    size_t robots_bytes; /* bytes of arriving robots.txt, beyond 64 KiB of each */
    int64_t elapsed_ns;
    bool is_shared;    /* other processes may crawl the same job */
    bool has_no_hosts; /* URLs are queued, but other processes have all hosts */
    bool is_seeding, is_draining;
    bool is_answered; /* a host has answered: the network works */
    bool is_paused;   /* the store takes nothing, see pause_why */
    char pause_why[160];
};
void wr_engine_stats_get(struct wr_engine *engine, struct wr_engine_stats *ret_stats);

/* ---- differences from an earlier job ---- */

#define WR_RECRAWL_CHANGES(X)                                                    \
    X(WR_RECRAWL_NEW, "new")         /* the earlier job had no such page */      \
    X(WR_RECRAWL_CHANGED, "changed") /* the page differs from the earlier one */ \
    X(WR_RECRAWL_GONE, "gone")       /* the earlier page is missing now, or has moved */

enum wr_recrawl_change {
#define X(change, name) change,
    WR_RECRAWL_CHANGES(X)
#undef X
};

const char *wr_recrawl_change_name(enum wr_recrawl_change change);

typedef void wr_engine_on_change(void *context, enum wr_recrawl_change change, const struct wr_store_task *task);
/* Calls `tell` for the differences among pages that have ended, in the order in which they were
 * found. Call it after the end of the crawl, before wr_engine_finish. `tell` runs on the store's
 * thread. Errors as of wr_store_read. */
int wr_engine_diff(struct wr_engine *engine, wr_engine_on_change *tell, void *context);

/* How a crawl ended. */
enum wr_engine_end {
    WR_END_COMPLETED,
    WR_END_FAILED,    /* too many failures in a row; can be resumed */
    WR_END_CANCELLED, /* cancelled by the user, or too many 429 in a row */
    WR_END_BUDGET,    /* out of time or bytes; the other URLs stay queued */
    WR_END_BLOCKED,   /* the firewalls of all its hosts block the crawler */
    WR_END_STOPPED,   /* stopped by wr_engine_drain or wr_engine_stop; can be resumed */
    WR_END_BROKEN,    /* the store or the output failed; can be resumed */
};

struct wr_engine_result {
    enum wr_engine_end end;
    int64_t job;
    struct wr_engine_stats stats;
    uint64_t failed;                       /* failed URLs of all runs of the job */
    uint64_t round_trips;                  /* round trips to the store's server, if it has one */
    char failed_url[256], failed_why[256]; /* first failure of this run, cut to fit; "": none */
    char why[256];                         /* reason of the end in words; "" if completed */
};

/* Waits for the threads, and stores what is left. */
void wr_engine_finish(struct wr_engine *engine, struct wr_engine_result *ret_result);

/* The report of one host; after wr_engine_finish. */
struct wr_engine_host_report {
    struct wr_span key;
    uint64_t requests;             /* requests of all kinds */
    uint64_t ok, rejected, failed; /* responses 2xx, 3xx; 429, 403, 503; all others, and none */
    uint64_t retries, bytes;
    uint64_t hasty;          /* starts sooner than Crawl-delay and options allow: must be 0 */
    double reached_rate;     /* starts per second, first to last; 0: fewer than two */
    double allowed_rate;     /* learned starts per second; INFINITY: no limit */
    int64_t interval_ns;     /* time between starts at the end of the run */
    int64_t closest_ns;      /* least time between two starts; 0: fewer than two */
    int64_t robots_delay_ns; /* Crawl-delay; 0: none */
    /* Waits by weir_reason. */
    int64_t waited_ns[WEIR_REASON_QUEUE + 1];
};
typedef void wr_engine_on_host(void *context, const struct wr_engine_host_report *host);
/* Calls `tell` for at most WR_ENGINE_REPORT_MAX hosts, the most requested first. Returns how many
 * were left out. */
#define WR_ENGINE_REPORT_MAX 100000
uint64_t wr_engine_report(struct wr_engine *engine, wr_engine_on_host *tell, void *context);

/* Counts responses by status, with robots.txt and retries; [0]: no response. After
 * wr_engine_finish. */
#define WR_STATUSES_COUNT 1000
void wr_engine_report_statuses(const struct wr_engine *engine, uint64_t ret_counts[WR_STATUSES_COUNT]);

void wr_engine_free(struct wr_engine *engine);

#endif
