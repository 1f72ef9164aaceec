/* SPDX-License-Identifier: MIT */
/* store.h - what outlives the process: jobs, their reports, tasks, hosts and their robots.txt.
 *
 *     wr_store_open(&(struct wr_store_options){.path = "weir.db", .may_create = true}, &store);
 *     wr_store_add_job(store, wr_span_of("{…}"), 0, &job);
 *     wr_store_post(store, changes, count, done, context);        all of them or none; done(context, 0, "") if stored
 *     wr_store_read(store, &(struct wr_store_query){.what = WR_STORE_TASKS, …});
 *     wr_store_free(store);                                       stores all that was posted
 *
 * One thread of the store's writes and reads. What is posted waits for a fifth of a second at most, or until there is
 * much of it, and goes into one transaction with all else that waits: each post is in it as a whole, and in the order
 * of posting. So put into one post what must be true together: a page that ended, the tasks found on it, and how far
 * the output file is.
 *
 * Every change may be repeated: a task is (job, fingerprint of its canonical URL), it is found once, ends once, and
 * counts once. The fingerprint is wr_hash by wr_store_hash_key, whose secret is kept in the store.
 *
 * When there is no room on the disk the store pauses: it keeps what was posted, tries again, and goes on when there is
 * (`changed` tells). Meanwhile posts are taken until the queue is full. Any other failure, that
 * of a sync above all, is for good: nothing is tried again, and all posts fail.
 *
 * Host memory is noted rather than posted: only the last word about a host is written, at most once in hosts_ns, and
 * none is lost. If the host's server named a time it is written at once.
 *
 * Where processes share a store, a host is leased to one of them at a time (docs/internals/cluster.md): they claim
 * hosts, renew all leases with a beat, and say by which lease they fetched what. A store that one process has for
 * itself leases everything to it for ever.
 *
 * Instants are wall time in ns since 1970; the file has milliseconds, durations rounded up. What is read is put into
 * range; a row that makes no sense is left out and counted. But a task is given, without its URL: whoever reads it has
 * to end it.
 *
 * Threads: any, for all functions. Functions of the caller's (done, row, sync, changed, room) run on the store's thread
 * with no lock held; they must be brief and must not wait for the store. What they are given is valid during the call.
 *
 * Bounded: queue_changes and queue_bytes of posts and notes, WR_STORE_READS_MAX reads, and the backend's cache (SQLite:
 * 8 MB). On the disk each text has its own bound, and those of robots.txt, which cost their hosts nothing, have one in
 * all. What has none is what was asked for: tasks and their hosts.
 */
#ifndef WR_SHELL_STORE_STORE_H
#define WR_SHELL_STORE_STORE_H

#include "base/hash.h"
#include "base/histogram.h"
#include "base/span.h"
#include "core/rules/robots/robots.h"
#include "core/rules/url/url.h"

#include <weir/pace.h>

/* ---- what is kept -------------------------------------------------------------------------------------- */

#define WR_STORE_WORD_MAX 31                      /* bytes of a verdict */
#define WR_STORE_WHY_MAX 255                      /* of a reason */
#define WR_STORE_VALIDATOR_MAX 255                /* of an ETag or a date */
#define WR_STORE_DIGEST_MAX 80                    /* of a digest, in words */
#define WR_STORE_LINE_MAX ((size_t)1 << 18)       /* of a line of output */
#define WR_STORE_PATH_MAX 4095                    /* of an output file's */
#define WR_STORE_SETTINGS_MAX ((size_t)1 << 20)   /* of a job's */
#define WR_STORE_ROBOTS_MAX ((size_t)128 << 10)   /* of a robots.txt. A longer one is fetched again when it is needed */
#define WR_STORE_ROBOTS_BYTES ((size_t)256 << 20) /* of all of them: the usual robots_bytes */
#define WR_STORE_REPORT_MAX ((size_t)4 << 20)     /* of a run's */
#define WR_STORE_REPORTS_KEPT 16                  /* of each job: the newest */
#define WR_STORE_RETRY_MAX_NS ((int64_t)WEIR_DAY) /* a task is never put off for longer, whatever the clock says */

#define WR_JOB_STATUSES(X)           \
    X(WR_JOB_PENDING, "pending")     \
    X(WR_JOB_RUNNING, "running")     \
    X(WR_JOB_COMPLETED, "completed") \
    X(WR_JOB_FAILED, "failed")       \
    X(WR_JOB_CANCELLED, "cancelled") \
    X(WR_JOB_BLOCKED, "blocked")

enum wr_job_status {
#define X(status, name) status,
    WR_JOB_STATUSES(X)
#undef X
};

/* "pending", …; NULL for a number that is none. */
const char *wr_job_status_name(enum wr_job_status status);

/* False for a name that is none. */
bool wr_job_status_named(struct wr_span name, enum wr_job_status *ret_status);

/* Completed, failed, cancelled or blocked: no new tasks. */
bool wr_job_is_over(enum wr_job_status status);

/* A job, and how many of its tasks are in which state: the store counts them itself. */
struct wr_store_job {
    int64_t id; /* 1, 2, … */
    enum wr_job_status status;
    struct wr_span why;      /* it failed, was cancelled or blocked */
    struct wr_span settings; /* the caller's, any text */
    int64_t created_wall_at, updated_wall_at;
    uint64_t queued, done, failed; /* tasks */
    uint64_t bytes;                /* of the pages that ended */
    uint64_t retries, rejected;    /* of the retries, after a 429 */
    int64_t earlier;               /* the job that this one visits again; 0: none */
    bool is_dismissed;             /* this process is asked to leave it, see WR_STORE_DISMISS */
};

/* Where in a host's queue: by priority, and then first in, first out. */
struct wr_store_position {
    int32_t priority; /* the lowest first */
    int64_t id;
};
#define WR_STORE_FRONT ((struct wr_store_position){INT32_MIN, 0}) /* before all */

enum wr_task_state {
    WR_TASK_QUEUED = 0,
    WR_TASK_DONE = 1,
    WR_TASK_FAILED = 2,
};

/* What is known of a page from when it was visited: with it a later job asks whether it has changed. */
struct wr_store_visit {
    struct wr_span validator; /* its ETag, or if it had none the date of its Last-Modified; empty: neither */
    struct wr_span digest;    /* empty: none */
    uint32_t changes;         /* seen, since: */
    int64_t since_wall_at;    /* the first visit; 0: this is it */
    int64_t visited_wall_at;  /* the last one that was answered; 0: when it ended */
};

/* How many tasks a job may have, where processes share the store, ended or not; 0: any number. Exact, whoever finds
 * them at the same time. Of a file, whoever posts has to count. */
struct wr_store_bounds {
    uint64_t tasks;
    uint64_t host_tasks; /* of one host */
};

/* A URL to fetch, as it is posted. Neither host nor url is empty; both are clean text (wr_span_clean). */
struct wr_store_found {
    int64_t job;
    uint64_t fingerprint;
    struct wr_span host; /* whose queue it is in: a key of at most WEIR_PACE_KEY_MAX bytes */
    struct wr_span url;  /* at most WR_URL_MAX bytes */
    uint64_t parent;     /* the fingerprint of the page it was found on; 0: a seed */
    uint32_t depth;
    uint32_t hops; /* redirects on the way to it */
    int32_t priority;
    bool *ret_is_new;              /* whether the job had it not, known when `done` is called; NULL: nobody asks */
    struct wr_store_bounds bounds; /* it is forgotten if the job would have more */
    bool *ret_is_beyond;           /* whether that is so; as ret_is_new */
};

/* And as it is read. */
struct wr_store_task {
    int64_t job;
    uint64_t fingerprint;
    struct wr_span host, url;
    uint64_t parent;
    uint32_t depth, hops;
    int32_t priority;
    struct wr_span referrer;    /* the parent's URL; empty: none */
    uint32_t attempts;          /* so far */
    int64_t not_before_wall_at; /* 0: at once; in the past: see struct wr_store_changed */
    int64_t id;                 /* with the priority: its position */
    /* Only of ONE_TASK and ALL_TASKS: */
    enum wr_task_state state;
    int status; /* of the last answer; 0: none came */
    uint64_t bytes;
    struct wr_span verdict, why;
    int64_t ended_wall_at; /* 0: it has not, or nobody knows */
    uint64_t before;       /* ONE_TASK, queued: in its host's queue, at most 100 000 */
    struct wr_store_visit visit;
    /* Only if query.earlier was given, of TASKS and ALL_TASKS: the same URL in that job. */
    bool has_earlier;
    struct wr_span earlier_verdict;
    struct wr_store_visit earlier; /* both times are there */
    /* Only if query.has_lines was given: and its referrer. */
    struct wr_span line; /* empty: it was not kept */
};

/* What is known of a host. */
struct wr_store_host {
    struct wr_span key; /* at most WEIR_PACE_KEY_MAX bytes */
    weir_pace_memory memory;
    /* Only of one that is read: */
    int64_t blocked_until_wall_at; /* see struct wr_store_block; 0: never was */
    struct wr_span blocked_by;
    bool is_paused; /* these two by somebody: see struct wr_store_setting */
    int64_t set_interval_ns;
    int64_t id;
    uint64_t queued;          /* tasks of the job that was asked for; WR_STORE_HOSTS, of CLAIM at most 1000, and of
                                 ONE_HOST at most 100 000 */
    struct wr_span leased_by; /* HOSTS, ONE_HOST, ALL_HOSTS: the process that has it; empty: none */
    int64_t lease_left_ns;    /* and for how long, unless that is renewed */
    int64_t rest_ns;          /* for so long nobody claims it; WEIR_FOREVER: while it is paused */
    int64_t leased_until;     /* CLAIM, BEAT: by the store's clock: nothing may be started later */
    uint64_t share;           /* BEAT: hosts for each process of the job, if all had as many */
    bool is_wanted;           /* BEAT: another process asks for it, see WR_STORE_CLAIM_ONE */
    bool has_rested;          /* CLAIM: it was released with a rest, which is over: nothing was sent to it meanwhile */
    int64_t held_ns;          /* and for how long its tasks have waited for what its server said */
    /* Also of one that is posted or noted: */
    uint64_t lease; /* the host is this process's alone by this token; 0: it is not leased. If it is another's by now
                       nothing changes */
};

/* A process that works for a job now. */
struct wr_store_node {
    struct wr_span name; /* "machine/pid" */
    int64_t job;
    uint64_t hosts; /* that it has */
};

/* Tasks of a host with the same end. */
struct wr_store_sum {
    struct wr_span host;
    enum wr_task_state state;
    int status; /* of the last answer; 0: none came */
    struct wr_span verdict;
    uint64_t tasks, bytes, attempts;
    int64_t first_wall_at, last_wall_at; /* when the first and the last of them ended; 0: nobody knows */
};

/* What somebody wants of a host, for this crawl and later ones. */
struct wr_store_setting {
    struct wr_span key;
    bool has_paused, is_paused;
    bool has_interval;
    int64_t interval_ns; /* between starts; 0: none; at most WR_STORE_INTERVAL_MAX_NS */
};
#define WR_STORE_INTERVAL_MAX_NS (30 * WEIR_DAY)

enum wr_store_robots_kind {
    WR_STORE_ROBOTS_TEXT, /* the rules are in `text` */
    WR_STORE_ROBOTS_NONE, /* there is no robots.txt */
    /* These two are only posted. */
    WR_STORE_ROBOTS_SAME, /* as stored, and confirmed now. Nothing stored: nothing happens */
    WR_STORE_ROBOTS_GONE, /* there is one that is too long to be stored: what was stored is removed */
};

struct wr_store_robots {
    struct wr_span url; /* of the robots.txt: the key */
    enum wr_store_robots_kind kind;
    struct wr_span text;           /* as it came, any bytes: at most WR_STORE_ROBOTS_MAX */
    struct wr_span etag, modified; /* empty: none */
    int64_t max_age_ns;            /* negative: not said */
    int64_t fetched_wall_at;
};

/* A host's firewall does not let us in: it is not asked before this time. */
struct wr_store_block {
    struct wr_span key;
    int64_t until_wall_at; /* 0: it may be asked again */
    struct wr_span by;     /* the firewall's name: a clean word, not empty unless it may be asked */
    uint64_t lease;        /* as of wr_store_host */
};

/* How much of an output file counts: on resume it is cut back to this. */
struct wr_store_output {
    int64_t job;
    struct wr_span path;
    uint64_t bytes;
};

/* What a run of a job came to: the caller's text. Runs are numbered by the store. */
struct wr_store_report {
    int64_t job;
    struct wr_span text; /* at most WR_STORE_REPORT_MAX bytes */
    /* Only of one that is read: */
    int64_t run; /* 1, 2, … */
    int64_t ended_wall_at;
};

/* ---- changing ------------------------------------------------------------------------------------------ */

/* A task ended; unless it is not known, or had ended already. */
struct wr_store_ended {
    int64_t job;
    uint64_t fingerprint;
    bool failed;
    int status; /* of the answer; 0: none came */
    uint32_t attempts;
    uint64_t bytes;
    struct wr_span verdict; /* "fetched", "robots", …: a clean word, not empty */
    struct wr_span why;     /* clean text */
    struct wr_store_visit visit;
    struct wr_span line;  /* of output, clean text, to be kept where processes share the store; empty: none */
    uint64_t lease;       /* under which it was fetched; 0: none. If the host is another's by now nothing changes */
    bool *ret_is_refused; /* whether that is so, known when `done` is called; NULL: nobody asks */
};

/* A task is tried again, from the place it has in the queue; unless it has had so many attempts already. */
struct wr_store_retry {
    int64_t job;
    uint64_t fingerprint;
    uint32_t attempts; /* so far: 1, 2, … */
    int status;        /* of the last answer */
    int64_t not_before_wall_at;
    uint64_t lease; /* as of wr_store_ended */
};

/* The site says that the page has changed: a visit before is worth nothing. A queued task is then not wanted before,
 * unless it is put off for longer already. */
struct wr_store_changed {
    int64_t job;
    uint64_t fingerprint;
    int64_t wall_at;
};

struct wr_store_status {
    int64_t job;
    enum wr_job_status status;
    struct wr_span why;
};

enum wr_store_change_kind {
    WR_STORE_FOUND, /* a task; forgotten if the job has it, has enough, is over, or is not known */
    WR_STORE_ENDED,
    WR_STORE_RETRY,
    WR_STORE_CHANGED,
    WR_STORE_STATUS,
    WR_STORE_OUTPUT,
    WR_STORE_ROBOTS,
    WR_STORE_HOST,
    WR_STORE_BLOCK, /* of a host, which need not be known */
    WR_STORE_SETTING,
    WR_STORE_REPORT,
    WR_STORE_DISMISS, /* all processes that work for `job` now are asked to leave it; of a file there are none */
};

struct wr_store_change {
    enum wr_store_change_kind kind;
    union {
        struct wr_store_found found;
        struct wr_store_ended ended;
        struct wr_store_retry retry;
        struct wr_store_changed changed;
        struct wr_store_status status;
        struct wr_store_output output;
        struct wr_store_robots robots;
        struct wr_store_host host;
        struct wr_store_block block;
        struct wr_store_setting setting;
        struct wr_store_report report;
        int64_t job;
    };
};

/* 0: it is stored for good, or read. Else it is not, and `why` says why in one line. */
typedef void wr_store_done(void *context, int error, const char *why);

/* ---- the store ----------------------------------------------------------------------------------------- */

enum wr_store_state {
    WR_STORE_RUNS,
    WR_STORE_PAUSED, /* no room; tries again */
    WR_STORE_FAILED, /* for good */
};

struct wr_store;
struct wr_backend_kind;

/* 0 and NULL mean the default. */
struct wr_store_options {
    const char *path;       /* of a file, or wr_store_is_url; copied; not NULL */
    bool may_create;        /* if there is no such file; else WEIR_E_ABSENT */
    int64_t batch_ns;       /* a post waits at most so long for others; 200 ms */
    uint32_t batch_changes; /* from so many on it does not; 8192 */
    uint32_t queue_changes; /* WEIR_E_FULL beyond; 16384 */
    size_t queue_bytes;     /* the same; 32 MiB */
    size_t robots_bytes;    /* of texts of robots.txt in all; beyond it the oldest are removed; WR_STORE_ROBOTS_BYTES */
    int64_t hosts_ns;       /* a host's memory is written at most so often; 1 s */
    int64_t retry_ns;       /* how soon a paused store tries again; 1 s */
    int64_t lease_ns;       /* a host is this process's for so long, unless that is renewed; 30 s */
    int64_t busy_ns;        /* how long to wait for who else has the file open; 2 s */
    int64_t check_ns;       /* how long looking for damage may take at the start; 2 s; negative: not at all */
    /* Syncs the output files, before a transaction that holds a WR_STORE_OUTPUT is committed. WEIR_E_FULL: no room,
     * and is tried again. Any other failure is the store's. */
    int (*sync)(void *context);
    void (*changed)(void *context, enum wr_store_state state, const char *why);
    void (*room)(void *context);           /* after a WEIR_E_FULL: half of the queue is free */
    void *context;                         /* of these three */
    const struct wr_backend_kind *backend; /* PostgreSQL if the path is a URL, else SQLite */
    const weir_clock *clock;               /* monotonic */
    const weir_clock *wall;                /* the system's */
    const weir_allocator *allocator;
};

/* Refuses what is no state file of ours, and leaves it as it is: weir_error_detail says why in one line. WEIR_E_ABSENT:
 * there is none. WEIR_E_INVAL: foreign, damaged, or of a newer weir. WEIR_E_SYSTEM: in use, or cannot be opened.
 * WEIR_E_NOMEM. */
int wr_store_open(const struct wr_store_options *options, struct wr_store **ret_store);

/* Stores what was posted and noted, and closes. What cannot be stored now, fails. NULL is fine. */
void wr_store_free(struct wr_store *store);

/* For the fingerprints of URLs; the same on every machine. Stays as long as the store. */
const struct wr_hash_key *wr_store_hash_key(const struct wr_store *store);

/* All of the changes or none. Everything is copied. If it fails `done` is never called. With `done` NULL it waits, for
 * room as well, and returns how it went; a paused store may keep it waiting for as long as it is paused. WEIR_E_INVAL:
 * a text is too long, not clean, or missing. WEIR_E_FULL: wait for `room`. WEIR_E_NOMEM. WEIR_E_SYSTEM: the store has
 * failed; weir_error_detail says why. */
int wr_store_post(struct wr_store *store, const struct wr_store_change *changes, size_t count, wr_store_done *done,
                  void *context);

/* As wr_store_post that waits, but not for room on a disk. WEIR_E_FULL, beside its other errors: the store is paused,
 * and weir_error_detail says why; what was posted before it paused is kept, and stored if there is room in time. */
int wr_store_post_now(struct wr_store *store, const struct wr_store_change *changes, size_t count);

/* The last word about a host: to be written soon. Errors as of post. */
int wr_store_note_host(struct wr_store *store, const struct wr_store_host *host);

/* Forgets what was learned of a host, but not what its server said: Crawl-delay, and a time that it named. Waits,
 * as wr_store_post_now. WEIR_E_ABSENT: nothing is known of it. */
int wr_store_forget_host(struct wr_store *store, struct wr_span key);

/* A new job, pending, that visits again what the job `earlier` knows; 0: none. Waits, as wr_store_post_now: a disk that
 * is full, or a database that is away, is an error. */
int wr_store_add_job(struct wr_store *store, struct wr_span settings, int64_t earlier, int64_t *ret_job);

/* The same; but where processes share the store, the job with these settings that is not over, if there is one. */
int wr_store_join_job(struct wr_store *store, struct wr_span settings, int64_t earlier, int64_t *ret_job);

/* Whether other processes may use it, too: then hosts are to be claimed. */
bool wr_store_is_shared(const struct wr_store *store);

/* The path as it may be shown: without a password. */
void wr_store_name(const char *path, char *ret_name, size_t name_bytes);

/* Whether a path means a database, postgres:// or postgresql://, and no file. */
bool wr_store_is_url(const char *path);

/* ---- reading ------------------------------------------------------------------------------------------- */

enum wr_store_what {
    WR_STORE_JOBS,  /* all after `after.id`, by id; or only `job` */
    WR_STORE_TASKS, /* of `job`, queued for the host `key`, after `after` */
    WR_STORE_KNOWN, /* of `job`, in any state: only fingerprints, after `after.id` (INT64_MIN: all), as int64_t */
    WR_STORE_SEEDS, /* of `job`, in any state, and what they led to by redirects: URLs, hops and ids, after `after.id`
                     */
    WR_STORE_HOSTS, /* with queued tasks of `job`, after `after.id`, by id; of one that cannot be read, its tasks
                       come instead, as rows of WR_STORE_TASKS: nobody can ask for them by its key */
    WR_STORE_ONE_HOST,   /* the host `key` */
    WR_STORE_ONE_ROBOTS, /* of the robots.txt at `key` */
    WR_STORE_FREE,       /* hosts that are not blocked and of which `job` has fetched a page, one for each page */
    WR_STORE_OUTPUTS,    /* of `job`, by path; where machines share the store, those of this one */
    WR_STORE_ONE_TASK,   /* of `job`, in any state, whose fingerprint is `after.id` */
    WR_STORE_ALL_TASKS,  /* of `job`, in any state, after `after.id`, by id */
    WR_STORE_ALL_HOSTS,  /* after `after.id`, by id */
    WR_STORE_REPORTS,    /* of `job` (0: any), of the run `after.id` (0: any); the newest first */
    WR_STORE_CLAIM,      /* hosts with queued tasks of `job` that nobody has, by id: they are this process's now,
                            for lease_ns, by a token that is higher than any before */
    WR_STORE_CLAIM_ONE,  /* the host `key`, whether it has tasks or not, in the same way; if another process has it,
                            that one is told with its next beat, and nobody else claims it for lease_ns */
    WR_STORE_BEAT,       /* all hosts that this process has: it has them for lease_ns from now, and works for `job`.
                            Those that are missing it has lost. Keys, settings and leases */
    WR_STORE_RELEASE, /* the host `key`, if it is this process's by the token `after.id`, is nobody's; and nobody claims
                         it for rest_ns (WEIR_FOREVER: while it is paused), or until somebody sets something; no
                         rows */
    WR_STORE_NODES,   /* other processes that work for `job` (0: any) and have told so lately, by name */
    WR_STORE_SUMS,    /* of `job`, the tasks after `after.id` as sums; in several rows if `ret_next` is given */
    WR_STORE_CHECK,   /* a text for each damage found and each counter that is wrong; nothing is written while it reads
                         all */
};

struct wr_store_row {
    enum wr_store_what what;
    union {
        struct wr_store_job job;
        struct wr_store_task task;
        struct wr_store_host host;
        struct wr_store_robots robots;
        struct wr_store_output output;
        struct wr_store_report report;
        struct wr_store_node node;
        struct wr_store_sum sum;
        struct wr_span text;
    };
};

struct wr_store_query {
    enum wr_store_what what;
    int64_t job;
    struct wr_span key;
    struct wr_store_position after;
    int64_t earlier;        /* TASKS, ALL_TASKS: what this job knew of them comes, too; 0: none */
    size_t limit;           /* rows at most; 0: all */
    int64_t rest_ns;        /* RELEASE; 0: it may be claimed at once */
    int64_t held_ns;        /* RELEASE: see struct wr_store_host */
    bool only_stranded;     /* HOSTS: only tasks of those that cannot be read, some at a time */
    bool has_lines;         /* ALL_TASKS: lines and referrers come, too */
    bool is_hasty;          /* WEIR_E_FULL rather than waiting for a paused store */
    uint64_t *ret_accepted; /* TASKS: how many of `job` and `key` there are, ended or not, known when `done` is called;
                               NULL: nobody asks */
    int64_t
        *ret_next; /* ALL_TASKS, SUMS: go on after this, known when `done` is called; 0: those were all. With it, only
                      WR_STORE_WALK tasks of all jobs are looked at, so that no other waits long for its turn */
    void (*row)(void *context, const struct wr_store_row *row);
    wr_store_done *done; /* NULL: waits */
    void *context;
};

/* TASKS, KNOWN, SEEDS, HOSTS, ONE_HOST, CLAIM (also of one) and RELEASE see all that was posted before, whether it is
 * committed or not, and wait while the store is paused, unless they are hasty; the others see what is committed, or
 * about to be. Errors as of post, but that WEIR_E_FULL means that WR_STORE_READS_MAX reads are not answered yet: ask
 * again when one is. What is found out while reading goes to `done`.
 */
#define WR_STORE_READS_MAX 4096
#define WR_STORE_WALK 16384
int wr_store_read(struct wr_store *store, const struct wr_store_query *query);

struct wr_store_stats {
    enum wr_store_state state;
    size_t queue_changes, queue_bytes; /* waiting, notes included */
    uint64_t commits, changes;         /* so far */
    uint64_t pauses;
    uint64_t ignored;                     /* changes that changed nothing: known tasks, those of jobs that are over */
    uint64_t damaged;                     /* rows that made no sense */
    uint64_t round_trips;                 /* to a server */
    int64_t lag_ns;                       /* how long the oldest post has waited; 0: none waits */
    struct wr_histogram_sum commit_times; /* in wr_commit_buckets */
};

extern const struct wr_buckets wr_commit_buckets;

void wr_store_stats_get(struct wr_store *store, struct wr_store_stats *ret_stats);

#endif
