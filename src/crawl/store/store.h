/* SPDX-License-Identifier: MIT */
/* store.h - keeps what outlives the process: jobs, their reports, tasks, hosts and robots.txt
 * files.
 *
 *     wr_store_open(&(struct wr_store_options){.path = "weir.db", .may_create = true}, &store);
 *     wr_store_add_job(store, wr_span_of("{...}"), 0, &job);
 *     wr_store_post(store, changes, count, done, context);  all or none; then done(context, 0, "")
 *     wr_store_read(store, &(struct wr_store_query){.what = WR_STORE_TASKS, ...});
 *     wr_store_free(store);                                 stores everything posted
 *
 * One thread of the store does all writes and reads. A post waits at most 200 ms for others, or
 * until there are enough changes. Then all waiting posts go into one transaction, in the order of
 * posting. Each post is stored as a whole. So put into one post what must be true together: a page
 * that ended, the tasks found on it, and the length of the output file.
 *
 * Every change may be repeated without effect. A task is identified by its job and the fingerprint
 * of its canonical URL; it is found once, ends once and counts once. The fingerprint is wr_hash
 * with wr_store_hash_key, whose secret is kept in the store.
 *
 * When the disk is full, memory is short or the database is away, the store pauses: it keeps the
 * posted changes, retries, and resumes when it can (`changed` reports it). Meanwhile it accepts
 * posts until the queue is full. Any other failure, such as that of a sync, is permanent: there is
 * no retry, and all posts fail.
 *
 * Host memory is noted rather than posted. The store writes only the latest note of a host, at most
 * once per hosts_ns, and loses none. If the host's server named a time, the note is written at
 * once.
 *
 * Where processes share a store, each host is leased to one of them at a time
 * (docs/internals/cluster.md). Processes claim hosts, renew all their leases with a beat, and give
 * the lease under which they fetched. In a store that one process uses alone, leases never end.
 *
 * Instants are wall time in ns since 1970. The store keeps milliseconds and rounds durations up.
 * Values that are read are clamped to their ranges. Invalid rows are skipped and counted, except
 * tasks: an invalid task is returned without its URL, and the reader has to end it.
 *
 * Threads: any, for all functions. The caller's functions (done, row, sync, changed, room) run on
 * the store's thread with no lock held; they must be brief and must not wait for the store. Their
 * arguments are valid during the call.
 *
 * Bounded: queue_changes and queue_bytes of posts and notes, WR_STORE_READS_MAX reads, and the
 * backend's cache (SQLite: 8 MB). On disk each text has its own limit. Texts of robots.txt, which
 * cost their hosts nothing, also have a common limit. Tasks and their hosts are unlimited.
 */
#ifndef WR_CRAWL_STORE_STORE_H
#define WR_CRAWL_STORE_STORE_H

#include "base/hash.h"
#include "base/histogram.h"
#include "base/span.h"
#include "core/web/robots/robots.h"
#include "core/web/url/url.h"

#include <weir/pace.h>

/* ---- stored data ----------------------------------------------------------------------------- */

#define WR_STORE_WORD_MAX 31                      /* bytes of a verdict or a firewall's name */
#define WR_STORE_WHY_MAX 255                      /* bytes of a reason */
#define WR_STORE_VALIDATOR_MAX 255                /* bytes of an ETag or a date */
#define WR_STORE_DIGEST_MAX 80                    /* bytes of a page digest, as text */
#define WR_STORE_LINE_MAX ((size_t)1 << 18)       /* bytes of an output line */
#define WR_STORE_PATH_MAX 4095                    /* bytes of an output file's path */
#define WR_STORE_SETTINGS_MAX ((size_t)1 << 20)   /* bytes of a job's settings */
#define WR_STORE_ROBOTS_MAX ((size_t)128 << 10)   /* bytes of a robots.txt; longer: not stored */
#define WR_STORE_ROBOTS_BYTES ((size_t)256 << 20) /* bytes of all robots.txt, by default */
#define WR_STORE_REPORT_MAX ((size_t)4 << 20)     /* bytes of a run's report */
#define WR_STORE_REPORTS_KEPT 16                  /* newest reports kept per job */
#define WR_STORE_RETRY_MAX_NS ((int64_t)WEIR_DAY) /* limit of a task's delay, whatever the clock */

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

/* Returns "pending" and so on; NULL for an invalid number. */
const char *wr_job_status_name(enum wr_job_status status);

/* Parses the name of a status. Returns false if there is no such status. */
bool wr_job_status_parse(struct wr_span name, enum wr_job_status *ret_status);

/* Returns true if the job is completed, failed, cancelled or blocked: it accepts no new tasks. */
bool wr_job_is_over(enum wr_job_status status);

/* A job and its numbers of tasks by state. The store does the counting. */
struct wr_store_job {
    int64_t id; /* number of the job: 1, 2, ... */
    enum wr_job_status status;
    struct wr_span why;      /* reason if the job failed, was cancelled or was blocked */
    struct wr_span settings; /* any text of the caller's */
    int64_t created_wall_at, updated_wall_at;
    uint64_t queued, done, failed; /* numbers of tasks by state */
    uint64_t bytes;                /* body bytes of all tasks that ended */
    uint64_t retries, rejected;    /* numbers of retries, and of those after a 429 */
    int64_t earlier;               /* job whose pages this one visits again; 0: none */
    bool is_dismissed;             /* this process is asked to leave it: WR_STORE_DISMISS */
};

/* A place in a host's queue. The order is by priority, then first in, first out. */
struct wr_store_position {
    int32_t priority; /* lowest value first */
    int64_t id;
};
#define WR_STORE_FIRST_POSITION ((struct wr_store_position){INT32_MIN, 0}) /* position before all tasks */

enum wr_task_state {
    WR_TASK_QUEUED = 0,
    WR_TASK_DONE = 1,
    WR_TASK_FAILED = 2,
};

/* Result of the last visit of a page. A later job uses it for a conditional request. */
struct wr_store_visit {
    struct wr_span validator; /* ETag, or else the date of Last-Modified; empty: neither */
    struct wr_span digest;    /* digest of the body; empty: none */
    uint32_t changes;         /* changes of the page seen since the first visit */
    int64_t since_wall_at;    /* first visit; 0: this is the first */
    int64_t visited_wall_at;  /* last visit with a response; 0: when the task ended */
};

/* Limits on the number of tasks of a job, ended or not; 0: no limit. A shared store enforces them
 * exactly, even if several processes post at once. A file ignores them: there the caller has to
 * count. */
struct wr_store_task_limits {
    uint64_t tasks;
    uint64_t host_tasks; /* limit of tasks per host */
};

/* A URL to fetch, as posted. Neither host nor url is empty; both are clean text
 * (wr_span_is_clean). */
struct wr_store_task_found {
    int64_t job;
    uint64_t fingerprint;
    struct wr_span host; /* host whose queue takes it: a key of at most WEIR_PACE_KEY_MAX bytes */
    struct wr_span url;  /* URL of at most WR_URL_MAX bytes */
    uint64_t parent;     /* fingerprint of the page that contains the link; 0: a seed */
    uint32_t depth;
    uint32_t hops; /* redirects on the way to this URL */
    int32_t priority;
    bool *ret_is_new;                   /* set before `done`: the task is new to the job; may be NULL */
    struct wr_store_task_limits bounds; /* a task beyond these limits is dropped */
    bool *ret_is_over_limit;            /* set before `done`: it was dropped for `bounds`; may be NULL */
};

/* A URL to fetch, as read. */
struct wr_store_task {
    int64_t job;
    uint64_t fingerprint;
    struct wr_span host, url;
    uint64_t parent;
    uint32_t depth, hops;
    int32_t priority;
    struct wr_span referrer;    /* URL of the parent page; empty: none */
    uint32_t attempts;          /* attempts so far */
    int64_t not_before_wall_at; /* earliest start; 0: at once; past: see struct wr_store_page_changed */
    int64_t id;                 /* gives the position in the queue, with `priority` */
    /* Only ONE_TASK and ALL_TASKS fill the fields from here on. */
    enum wr_task_state state;
    int status; /* HTTP status of the last response; 0: no response */
    uint64_t bytes;
    struct wr_span verdict, why;
    int64_t ended_wall_at; /* time of the end; 0: not ended, or unknown */
    uint64_t before;       /* ONE_TASK, queued: tasks ahead in its host's queue, at most 100 000 */
    struct wr_store_visit visit;
    /* The result of the same URL in the job query.earlier; only for TASKS and ALL_TASKS. */
    bool has_earlier;
    struct wr_span earlier_verdict;
    struct wr_store_visit earlier; /* result of that visit, with both times */
    /* Only ALL_TASKS fills `line`, and `referrer`, if query.has_lines is set. */
    struct wr_span line; /* output line; empty: not kept */
};

/* The stored state of a host. */
struct wr_store_host {
    struct wr_span key; /* key of at most WEIR_PACE_KEY_MAX bytes */
    weir_pace_memory memory;
    /* The fields from here to held_ns are only read, never posted. blocked_until_wall_at: end of
     * the block (struct wr_store_host_block); 0: never blocked. */
    int64_t blocked_until_wall_at;
    struct wr_span blocked_by;
    bool is_paused; /* a user set the pause and the interval: struct wr_store_host_setting */
    int64_t set_interval_ns;
    int64_t id;
    /* queued tasks of the job; CLAIM: at most 1000; ONE_HOST: at most 100 000 */
    uint64_t queued;
    struct wr_span leased_by; /* HOSTS, ONE_HOST, ALL_HOSTS: leasing process; empty: none */
    int64_t lease_left_ns;    /* time left of the lease of `leased_by` */
    int64_t rest_ns;          /* time without claims of the host; WEIR_FOREVER: while paused */
    int64_t leased_until;     /* CLAIM, BEAT: no request may start later, by options.clock */
    uint64_t share;           /* BEAT: hosts per process of the job, if shared evenly */
    bool is_wanted;           /* BEAT: another process wants it, see WR_STORE_CLAIM_ONE */
    /* CLAIM: it was released with a rest, now over, and got no requests */
    bool has_rested;
    int64_t held_ns; /* CLAIM: time its tasks have waited because of its server */
    /* Read and posted. Token of this process's lease; 0: not leased. A change has no effect if
     * another process has the host by now. */
    uint64_t lease;
};

/* A process that works for a job now. */
struct wr_store_node {
    struct wr_span name; /* name of the process: "machine/pid" */
    int64_t job;
    uint64_t hosts; /* hosts that the process leases */
};

/* The sum of all tasks of a host with the same outcome. */
struct wr_store_task_sum {
    struct wr_span host;
    enum wr_task_state state;
    int status; /* HTTP status of the last response; 0: no response */
    struct wr_span verdict;
    uint64_t tasks, bytes, attempts;
    int64_t first_wall_at, last_wall_at; /* ends of the first and the last task; 0: unknown */
};

/* A user's settings for a host. They hold for this crawl and later ones. */
struct wr_store_host_setting {
    struct wr_span key;
    bool has_paused, is_paused;
    bool has_interval;
    int64_t interval_ns; /* time between requests; 0: not set; at most WR_STORE_INTERVAL_MAX_NS */
};
#define WR_STORE_INTERVAL_MAX_NS (30 * WEIR_DAY)

enum wr_store_robots_kind {
    WR_STORE_ROBOTS_TEXT, /* `text` has the rules */
    WR_STORE_ROBOTS_NONE, /* the host has no robots.txt */
    /* The next two are only posted, never read. */
    WR_STORE_ROBOTS_SAME, /* the stored robots.txt was confirmed now; no effect if none is stored */
    WR_STORE_ROBOTS_GONE, /* the robots.txt is too long to be stored: removes the stored one */
};

struct wr_store_robots {
    struct wr_span url; /* URL of the robots.txt: the key */
    enum wr_store_robots_kind kind;
    struct wr_span text;           /* content as received, any bytes; at most WR_STORE_ROBOTS_MAX */
    struct wr_span etag, modified; /* response headers ETag and Last-Modified; empty: none */
    int64_t max_age_ns;            /* how long it is fresh; negative: unknown */
    int64_t fetched_wall_at;
};

/* A host's firewall rejects the crawler: the host gets no requests before `until_wall_at`. */
struct wr_store_host_block {
    struct wr_span key;
    int64_t until_wall_at; /* end of the block; 0: ends it now */
    struct wr_span by;     /* name of the firewall: a clean word, empty only if the block ends */
    uint64_t lease;        /* token of this process's lease, as in struct wr_store_host */
};

/* The valid length of an output file. On resume the file is truncated to it. */
struct wr_store_output {
    int64_t job;
    struct wr_span path;
    uint64_t bytes;
};

/* The report of one run of a job: any text of the caller's. The store numbers the runs. */
struct wr_store_report {
    int64_t job;
    struct wr_span text; /* report of at most WR_STORE_REPORT_MAX bytes */
    /* Only read, never posted: */
    int64_t run; /* number of the run: 1, 2, ... */
    int64_t ended_wall_at;
};

/* ---- changes --------------------------------------------------------------------------------- */

/* A task ended. No effect if the task is unknown or has already ended, or if another process has
 * the lease of its host by now. */
struct wr_store_task_ended {
    int64_t job;
    uint64_t fingerprint;
    bool failed;
    int status; /* HTTP status of the response; 0: no response */
    uint32_t attempts;
    uint64_t bytes;
    struct wr_span verdict; /* outcome: "fetched", "robots", ...; a clean word, not empty */
    struct wr_span why;     /* reason for the verdict, clean text */
    struct wr_store_visit visit;
    struct wr_span line; /* output line to keep in a shared store, clean text; empty: none */
    uint64_t lease;      /* token of the lease it was fetched under; 0: none */
    /* set before `done`: the end was refused because of its lease; may be NULL */
    bool *ret_is_refused;
};

/* A task is to be retried, from its place in the queue. No effect if it has had that many attempts
 * already. */
struct wr_store_task_retry {
    int64_t job;
    uint64_t fingerprint;
    uint32_t attempts; /* attempts so far: 1, 2, ... */
    int status;        /* HTTP status of the last response */
    int64_t not_before_wall_at;
    uint64_t lease; /* token of this process's lease, as in struct wr_store_task_ended */
};

/* The site says that the page changed at `wall_at`, so an earlier visit is outdated. A queued task
 * is then not fetched before that time; a longer delay stays. */
struct wr_store_page_changed {
    int64_t job;
    uint64_t fingerprint;
    int64_t wall_at;
};

struct wr_store_job_status {
    int64_t job;
    enum wr_job_status status;
    struct wr_span why;
};

enum wr_store_change_kind {
    /* a new task; dropped if the job has it, is at its limit, is over, or is unknown */
    WR_STORE_TASK_FOUND,
    WR_STORE_TASK_ENDED,
    WR_STORE_TASK_RETRY,
    WR_STORE_PAGE_CHANGED,
    WR_STORE_JOB_STATUS,
    WR_STORE_OUTPUT,
    WR_STORE_ROBOTS,
    WR_STORE_HOST,
    WR_STORE_HOST_BLOCK, /* block of a host; the host may be new to the store */
    WR_STORE_HOST_SETTING,
    WR_STORE_REPORT,
    /* asks all processes that now work for `job` to leave it; no effect on a file */
    WR_STORE_DISMISS,
};

struct wr_store_change {
    enum wr_store_change_kind kind;
    union {
        struct wr_store_task_found found;
        struct wr_store_task_ended ended;
        struct wr_store_task_retry retry;
        struct wr_store_page_changed changed;
        struct wr_store_job_status status;
        struct wr_store_output output;
        struct wr_store_robots robots;
        struct wr_store_host host;
        struct wr_store_host_block block;
        struct wr_store_host_setting setting;
        struct wr_store_report report;
        int64_t job;
    };
};

/* Called when a post or a query is done. error 0: stored permanently, or read. Otherwise it failed,
 * and `why` gives the reason in one line. */
typedef void wr_store_done(void *context, int error, const char *why);

/* ---- the store ------------------------------------------------------------------------------- */

enum wr_store_state {
    WR_STORE_RUNNING,
    WR_STORE_PAUSED, /* retries: no room, no memory, or no database */
    WR_STORE_FAILED, /* failed permanently */
};

struct wr_store;
struct wr_backend_kind;

/* Fields that are 0 or NULL get their default, which is given last. */
struct wr_store_options {
    const char *path;       /* file, or URL (wr_store_is_url); copied; not NULL */
    bool may_create;        /* false: a missing file is WEIR_E_ABSENT */
    int64_t batch_ns;       /* longest time a post waits for others; 200 ms */
    uint32_t batch_changes; /* this many changes are stored without waiting; 8192 */
    uint32_t queue_changes; /* queue limit in changes, else WEIR_E_FULL; 16384 */
    size_t queue_bytes;     /* queue limit in bytes, else WEIR_E_FULL; 32 MiB */
    size_t robots_bytes;    /* limit of all robots.txt; drops the oldest; WR_STORE_ROBOTS_BYTES */
    int64_t hosts_ns;       /* shortest time between two writes of a host's memory; 1 s */
    int64_t retry_ns;       /* time between retries of a paused store; 1 s */
    int64_t lease_ns;       /* duration of a host's lease unless it is renewed; 30 s */
    int64_t busy_ns;        /* longest wait for another user of the file; 2 s */
    int64_t check_ns;       /* time limit of the damage check at opening; 2 s; negative: no check */
    /* Syncs the output files. Called before the commit of a transaction with a WR_STORE_OUTPUT.
     * WEIR_E_FULL means no room and is retried. Any other error makes the store fail. */
    int (*sync)(void *context);
    void (*changed)(void *context, enum wr_store_state state, const char *why);
    /* called after a WEIR_E_FULL when half of the queue is free */
    void (*room)(void *context);
    void *context;                         /* argument of sync, changed and room */
    const struct wr_backend_kind *backend; /* PostgreSQL if the path is a URL, else SQLite */
    const weir_clock *clock;               /* monotonic clock; weir_clock_monotonic() */
    const weir_clock *wall;                /* wall clock; the system's */
    const weir_allocator *allocator;
};

/* Opens a store. Refuses a file that is not a state file of weir and leaves it unchanged;
 * weir_error_detail gives the reason in one line. Returns WEIR_E_ABSENT if it does not exist;
 * WEIR_E_INVAL if it is another program's, damaged, or of a newer weir; WEIR_E_SYSTEM if it is in
 * use or cannot be opened; or WEIR_E_NOMEM. */
int wr_store_open(const struct wr_store_options *options, struct wr_store **ret_store);

/* Stores everything posted and noted, then closes the store. Changes that cannot be stored now
 * fail. NULL is allowed. */
void wr_store_free(struct wr_store *store);

/* Returns the key for fingerprints of URLs, the same on every machine. Valid until the store is
 * freed. */
const struct wr_hash_key *wr_store_hash_key(const struct wr_store *store);

/* Posts changes, which are stored all or none. Copies everything. If `done` is NULL it waits, also
 * for room in the queue, and returns the result; that may take as long as the store is paused. If
 * it returns an error, `done` is never called. Returns WEIR_E_INVAL if a text is too long, not
 * clean, or missing; WEIR_E_FULL if there is no room, so wait for `room`; WEIR_E_NOMEM;
 * WEIR_E_SYSTEM if the store has failed (see weir_error_detail). */
int wr_store_post(struct wr_store *store, const struct wr_store_change *changes, size_t count, wr_store_done *done,
                  void *context);

/* Posts changes and waits like wr_store_post, but not for room on a disk. Also returns WEIR_E_FULL
 * if the store is paused (see weir_error_detail). Changes posted before the pause stay queued, and
 * are stored if the store resumes before it closes. */
int wr_store_post_now(struct wr_store *store, const struct wr_store_change *changes, size_t count);

/* Notes the newest memory of a host, to be written soon. Returns the errors of wr_store_post. */
int wr_store_note_host(struct wr_store *store, const struct wr_store_host *host);

/* Forgets what was learned of a host, except what its server said: Crawl-delay, and a retry time.
 * Waits like wr_store_post_now. Returns WEIR_E_ABSENT if the host is unknown. */
int wr_store_forget_host(struct wr_store *store, struct wr_span key);

/* Adds a pending job that visits the pages of the job `earlier` again; 0: none. Waits like
 * wr_store_post_now. Fails if the disk is full or the database is away. */
int wr_store_add_job(struct wr_store *store, struct wr_span settings, int64_t earlier, int64_t *ret_job);

/* Adds a job like wr_store_add_job. In a shared store it first looks for a job with the same
 * settings that is not over, and returns that. */
int wr_store_join_job(struct wr_store *store, struct wr_span settings, int64_t earlier, int64_t *ret_job);

/* Returns true if other processes may use the store too. Then hosts have to be claimed. */
bool wr_store_is_shared(const struct wr_store *store);

/* Writes the path without a password, fit for messages. */
void wr_store_name(const char *path, char *ret_name, size_t name_bytes);

/* Returns true if the path is a database URL (postgres:// or postgresql://) rather than a file. */
bool wr_store_is_url(const char *path);

/* ---- queries --------------------------------------------------------------------------------- */

enum wr_store_query_kind {
    WR_STORE_JOBS,  /* all jobs after `after.id`, by id; or only `job` if not 0 */
    WR_STORE_TASKS, /* tasks queued for the host `key` in `job`, after `after` */
    /* fingerprints of all tasks of `job` after `after.id` (INT64_MIN: all), as int64_t */
    WR_STORE_FINGERPRINTS,
    /* seeds of `job` and the tasks that they redirected to, in any state, after `after.id`; only
     * URLs, hops and ids */
    WR_STORE_SEEDS,
    /* hosts with queued tasks of `job`, after `after.id`, by id. For a host whose row is invalid
     * its tasks come instead, as rows of WR_STORE_TASKS, because no query by key finds them */
    WR_STORE_HOSTS,
    WR_STORE_ONE_HOST,      /* the host `key` */
    WR_STORE_ONE_ROBOTS,    /* the robots.txt at the URL `key` */
    WR_STORE_FETCHED_HOSTS, /* hosts of pages that `job` fetched, one row per page; not blocked ones */
    /* output files of `job`, by path; in a shared store those of this machine */
    WR_STORE_OUTPUTS,
    WR_STORE_ONE_TASK,  /* the task of `job` whose fingerprint is `after.id`, in any state */
    WR_STORE_ALL_TASKS, /* tasks of `job` in any state, after `after.id`, by id */
    WR_STORE_ALL_HOSTS, /* hosts after `after.id`, by id */
    WR_STORE_REPORTS,   /* reports of `job` (0: any) and run `after.id` (0: any); newest first */
    /* claims hosts with queued tasks of `job` that no process has, by id: leases them to this
     * process for lease_ns, with a token that no lease had before */
    WR_STORE_CLAIM,
    /* claims the host `key` in the same way, whether it has tasks or not. If another process has
     * it, that one learns of it with its next beat, and no third claims it for lease_ns */
    WR_STORE_CLAIM_ONE,
    /* renews all leases of this process for lease_ns, and reports that it works for `job`. Rows:
     * the hosts that it still has, with keys, settings and leases; it has lost the others */
    WR_STORE_RENEW,
    /* releases the host `key` if this process leases it with the token `after.id`. No process
     * claims it for rest_ns (WEIR_FOREVER: while it is paused) or until a user changes a setting.
     * No rows */
    WR_STORE_RELEASE,
    WR_STORE_NODES, /* other active processes of `job` (0: any), by name */
    /* sums of the tasks of `job` after `after.id`; in several rows if `ret_next` is given */
    WR_STORE_SUMS,
    /* a text for each damage and each wrong counter; blocks writes while it reads everything */
    WR_STORE_CHECK,
};

struct wr_store_row {
    enum wr_store_query_kind what;
    union {
        struct wr_store_job job;
        struct wr_store_task task;
        struct wr_store_host host;
        struct wr_store_robots robots;
        struct wr_store_output output;
        struct wr_store_report report;
        struct wr_store_node node;
        struct wr_store_task_sum sum;
        struct wr_span text;
    };
};

struct wr_store_query {
    enum wr_store_query_kind what;
    int64_t job;
    struct wr_span key;
    struct wr_store_position after;
    int64_t earlier;    /* TASKS, ALL_TASKS: adds what this job knew of the same URLs; 0: none */
    size_t limit;       /* limit of rows; 0: all */
    int64_t rest_ns;    /* RELEASE: no process may claim the host for this long */
    int64_t held_ns;    /* RELEASE: held_ns of struct wr_store_host */
    bool only_stranded; /* HOSTS: only some tasks of hosts with invalid rows */
    bool has_lines;     /* ALL_TASKS: adds output lines and referrers */
    bool is_hasty;      /* returns WEIR_E_FULL rather than wait for a paused store */
    /* TASKS: tasks of `job` at `key`, ended or not; set before `done`; may be NULL */
    uint64_t *ret_accepted;
    /* ALL_TASKS, SUMS: `after.id` of the next query; 0: none is left; set before `done`. If given,
     * at most WR_STORE_SCAN_MAX tasks of all jobs are read, so that other queries wait only
     * briefly. */
    int64_t *ret_next;
    void (*row)(void *context, const struct wr_store_row *row);
    wr_store_done *done; /* called at the end; NULL: the query waits */
    void *context;
};

/* Runs a query. TASKS, KNOWN, SEEDS, HOSTS, ONE_HOST, CLAIM, CLAIM_ONE and RELEASE see everything
 * posted before, committed or not. They wait while the store is paused, unless is_hasty is set. The
 * others see what is committed or about to be. Returns the errors of wr_store_post, but WEIR_E_FULL
 * means that WR_STORE_READS_MAX reads are unanswered: retry when one is done. Errors of the reading
 * itself go to `done`. */
#define WR_STORE_READS_MAX 4096
#define WR_STORE_SCAN_MAX 16384
int wr_store_read(struct wr_store *store, const struct wr_store_query *query);

struct wr_store_stats {
    enum wr_store_state state;
    size_t queue_changes, queue_bytes; /* waiting posts and notes */
    uint64_t commits, changes;         /* totals so far */
    uint64_t pauses;
    /* changes without effect, such as known tasks or jobs that are over */
    uint64_t ignored;
    uint64_t damaged;                     /* invalid rows that were read */
    uint64_t round_trips;                 /* round trips to a database server */
    int64_t lag_ns;                       /* wait of the oldest post so far; 0: none waits */
    struct wr_histogram_sum commit_times; /* durations of commits, by wr_store_commit_buckets */
};

extern const struct wr_buckets wr_store_commit_buckets;

void wr_store_stats_get(struct wr_store *store, struct wr_store_stats *ret_stats);

#endif
