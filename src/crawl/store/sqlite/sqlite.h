/* SPDX-License-Identifier: MIT */
/* sqlite.h - the store in one SQLite file. docs/internals/store.md describes its tables.
 *
 * Only one process has the file open at a time: SQLite's exclusive mode keeps its lock until the
 * file is closed, and needs no shared memory beside the write-ahead log. So there is one
 * connection, and only the store's thread uses it.
 */
#ifndef WR_CRAWL_STORE_SQLITE_SQLITE_H
#define WR_CRAWL_STORE_SQLITE_SQLITE_H

#include "crawl/store/backend.h"
#include "crawl/store/row.h"

#include <sqlite3.h>
#include <sys/types.h>

#define WR_SQLITE_APPLICATION 0x77656972 /* "weir" in ASCII */
#define WR_SQLITE_ADVICE "; sqlite3 FILE .recover may save what is in it"
#define WR_SQLITE_VERSION 6 /* version of the tables, stored in user_version */

/* ---- statements ---- */

#define WR_SQLITE_MEMORY_COLUMNS                                                                                   \
    "adaptive_delay_ms, adaptive_delay_floor_ms, robots_delay_ms, retry_at_ms, updated_at_ms, rate, cap, traits, " \
    "block_ms, breaker_open"
#define WR_SQLITE_HOST_COLUMNS ", blocked_until_ms, blocked_by, paused, set_interval_ms"

enum wr_sqlite_statement {
    WR_SQL_BEGIN,
    WR_SQL_COMMIT,
    WR_SQL_ROLLBACK,
    WR_SQL_TASK_FOUND,
    WR_SQL_TASKS_FOUND,
    WR_SQL_NEWEST_TASKS,
    WR_SQL_TASK_ENDED,
    WR_SQL_TASK_ENDED_BY_ID,
    WR_SQL_TASK_RETRY,
    WR_SQL_PAGE_CHANGED,
    WR_SQL_SET_JOB_STATUS,
    WR_SQL_OUTPUT,
    WR_SQL_ROBOTS,
    WR_SQL_ROBOTS_SAME,
    WR_SQL_ROBOTS_GONE,
    WR_SQL_ROBOTS_BYTES,
    WR_SQL_ROBOTS_TRIM,
    WR_SQL_HOST,
    WR_SQL_HOST_BLOCK,
    WR_SQL_HOST_SETTING,
    WR_SQL_HOST_ADD,
    WR_SQL_HOST_ID,
    WR_SQL_ACCEPTED,
    WR_SQL_ACCEPTED_MANY,
    WR_SQL_JOB_ADD,
    WR_SQL_JOB_STATUS,
    WR_SQL_JOB_COUNTS,
    WR_SQL_REPORT,
    WR_SQL_REPORTS_TRIM,
    WR_SQL_READ_JOBS,
    WR_SQL_READ_TASKS,
    WR_SQL_READ_RECRAWL_TASKS,
    WR_SQL_READ_STRANDED,
    WR_SQL_READ_ACCEPTED,
    WR_SQL_READ_FINGERPRINTS,
    WR_SQL_READ_HOSTS,
    WR_SQL_READ_CLAIM,
    WR_SQL_READ_HOST,
    WR_SQL_READ_ROBOTS,
    WR_SQL_READ_OUTPUTS,
    WR_SQL_READ_SEEDS,
    WR_SQL_READ_FETCHED_HOSTS,
    WR_SQL_READ_ONE_TASK,
    WR_SQL_READ_ALL_TASKS,
    WR_SQL_READ_LINES,
    WR_SQL_READ_SUMS,
    WR_SQL_READ_LAST_TASK,
    WR_SQL_READ_NEXT_TASK,
    WR_SQL_READ_ALL_HOSTS,
    WR_SQL_READ_REPORTS,
    WR_SQL_COUNT,
};

/* ---- the backend ---- */

/* What this transaction did to one job. It is added to the job's row before the commit. */
struct wr_sqlite_job_counts {
    int64_t job;
    bool takes_tasks; /* the job exists and is not over */
    int64_t queued, done, failed, bytes, retries, rejected;
};

#define WR_SQLITE_JOBS_COUNTED 16

/* A cached host, whose row exists, and the tasks that this transaction added to one job on it. */
struct wr_sqlite_host_slot {
    uint64_t hash; /* hash of the host's key */
    int64_t id;    /* row id; 0: the slot is free */
    int64_t job;
    int64_t accepted; /* tasks that are not in the file yet */
};

/* A cached task: its row id when it was last written or read. */
struct wr_sqlite_task_slot {
    uint64_t fingerprint;
    int64_t id; /* row id; 0: the slot is free */
};

#define WR_SQLITE_OUTPUTS 8
#define WR_SQLITE_FOUND_MANY 16 /* tasks that one statement inserts */
#define WR_SQLITE_TASK_CACHE 65536
#define WR_SQLITE_HOST_CACHE 65536 /* a power of two: 2 MB; unused pages of it take no memory */
#define WR_SQLITE_HOSTS_COUNTED 4096
#define WR_SQLITE_ACCEPTED_MANY 16 /* counts that one statement writes */

struct wr_sqlite {
    struct wr_backend backend; /* must be first */
    sqlite3 *db;
    sqlite3_stmt *statements[WR_SQL_COUNT];
    const weir_allocator *allocator;
    const char *path; /* path of the state file */
    size_t robots_bytes;
    int64_t wall_ms;  /* time of this transaction */
    uint64_t ignored; /* changes without effect in this transaction */
    struct wr_sqlite_job_counts tallies[WR_SQLITE_JOBS_COUNTED];
    size_t tally_count;
    int wal_pages;                                            /* pages in the log after the last commit */
    const struct wr_store_output *outputs[WR_SQLITE_OUTPUTS]; /* latest length per file, not written yet */
    size_t output_count;
    const struct wr_store_task_found *found[WR_SQLITE_FOUND_MANY]; /* found tasks, not written yet */
    size_t found_count;
    struct wr_sqlite_task_slot tasks[WR_SQLITE_TASK_CACHE];
    struct wr_sqlite_host_slot hosts[WR_SQLITE_HOST_CACHE];
    uint32_t counted[WR_SQLITE_HOSTS_COUNTED]; /* slots of `hosts` whose `accepted` is or was not 0 */
    size_t counted_count;
    dev_t device; /* identity of the file */
    ino_t inode;
    struct wr_sqlite *next; /* next file that is open in this process */
};

static inline struct wr_sqlite *wr_sqlite_of(struct wr_backend *backend)
{
    return (struct wr_sqlite *)(void *)backend;
}

/* Binds a text without copying it. This cannot fail, because sizes were checked when posting. */
static inline void wr_sqlite_bind_text(sqlite3_stmt *statement, int at, struct wr_span text)
{
    (void)sqlite3_bind_text(statement, at, text.bytes > 0 ? text.data : "", (int)text.bytes, SQLITE_STATIC);
}

static inline void wr_sqlite_bind_numbers(sqlite3_stmt *statement, int at, const int64_t *numbers, int count)
{
    for (int i = 0; i < count; i++)
        (void)sqlite3_bind_int64(statement, at + i, numbers[i]);
}

/* error.c. Converts a SQLite result to a WEIR_E_ code and sets `why`. Returns 0 for SQLITE_OK,
 * SQLITE_ROW and SQLITE_DONE. */
int wr_sqlite_error(struct wr_sqlite *sqlite, int code);
/* Returns the text for a result, also one that SQLite did not return itself. `db` may be NULL. */
const char *wr_sqlite_error_text(sqlite3 *db, int code);

/* Runs a statement to its end and resets it. Returns SQLITE_OK or the SQLite error. */
int wr_sqlite_run(sqlite3_stmt *statement);

/* schema.c. Updates to WR_SQLITE_VERSION, one transaction per step. Returns a SQLite code. */
int wr_sqlite_migrate(sqlite3 *db, const char *const *steps, int count);
extern const char *const wr_sqlite_steps[WR_SQLITE_VERSION];

/* Returns a new, empty state file as bytes, for sqlite3_free; NULL if there is no memory. */
unsigned char *wr_sqlite_new_image(const void *secret, size_t secret_bytes, size_t *ret_bytes);

/* Prepares all statements. Returns SQLITE_OK, or the SQLite error of the first that fails. */
int wr_sqlite_prepare(sqlite3 *db, sqlite3_stmt **ret_statements);

/* place.c. Checks or creates the file before SQLite opens it. Sets the error detail. Returns
 * WEIR_E_ABSENT, WEIR_E_INVAL or WEIR_E_SYSTEM. */
int wr_state_file_check(const char *path);
int wr_state_file_create(const char *path);

/* Sets the error detail to the path and `why`. Returns `error`. */
int wr_state_file_refuse(const char *path, int error, const char *why);

/* Returns the id of the process that holds SQLite's lock on the file; 0 if unknown. This process
 * must not have the file open. */
pid_t wr_state_file_lock_owner(const char *path);

int wr_sqlite_open(const struct wr_store_options *options, struct wr_backend **ret_backend);
void wr_sqlite_close(struct wr_backend *backend);

/* host.c. Finds or creates the row of a host. Its functions return WEIR_E_ codes. */
int wr_sqlite_host_get(struct wr_sqlite *sqlite, struct wr_span key, struct wr_sqlite_host_slot **ret_slot);

/* Counts one more task of the job on the host of the slot. */
int wr_sqlite_host_count_task(struct wr_sqlite *sqlite, struct wr_sqlite_host_slot *slot, int64_t job);

/* Writes the counted tasks. Called before the commit. */
int wr_sqlite_host_write_counts(struct wr_sqlite *sqlite);

/* Empties the cache after a rollback, because rows that the transaction added are gone. */
void wr_sqlite_host_clear_cache(struct wr_sqlite *sqlite);

/* Gives the number of the job's tasks on the host, including those not written yet. */
int wr_sqlite_host_task_count(struct wr_sqlite *sqlite, int64_t job, struct wr_span key, uint64_t *ret_accepted);

/* task.c. Found tasks are collected until there are enough for one statement, or until
 * wr_sqlite_flush. */
int wr_sqlite_put_found(struct wr_sqlite *sqlite, const struct wr_store_task_found *task);
int wr_sqlite_put_ended(struct wr_sqlite *sqlite, const struct wr_store_task_ended *ended);
int wr_sqlite_put_retry(struct wr_sqlite *sqlite, const struct wr_store_task_retry *retry);
int wr_sqlite_put_changed(struct wr_sqlite *sqlite, const struct wr_store_page_changed *changed);
int wr_sqlite_flush(struct wr_backend *backend);

/* Caches the row id of a task. */
void wr_sqlite_cache_task(struct wr_sqlite *sqlite, uint64_t fingerprint, int64_t id);

/* write.c. Runs a statement whose parameters are bound, to its end. Returns a WEIR_E_ code. */
int wr_sqlite_write(struct wr_sqlite *sqlite, enum wr_sqlite_statement which);

/* Returns true if the last statement changed a row; otherwise counts it as ignored. */
bool wr_sqlite_changed(struct wr_sqlite *sqlite);

/* Gives what this transaction did to the job. The pointer is valid until the next call. */
int wr_sqlite_counts_of_job(struct wr_sqlite *sqlite, int64_t job, struct wr_sqlite_job_counts **ret_tally);

int wr_sqlite_begin(struct wr_backend *backend, int64_t wall_now);
int wr_sqlite_apply(struct wr_backend *backend, const struct wr_store_change *change);
int wr_sqlite_add_job(struct wr_backend *backend, struct wr_span settings, int64_t earlier, bool joins,
                      int64_t *ret_job);
int wr_sqlite_commit(struct wr_backend *backend);
void wr_sqlite_undo(struct wr_backend *backend);
int wr_sqlite_settle(struct wr_backend *backend);

/* Writes everything that this transaction has counted, so that counters agree with the tasks. */
int wr_sqlite_write_pending(struct wr_sqlite *sqlite);

/* read.c. `result` of the cells is a statement that was stepped. */
extern const struct wr_cells_kind wr_sqlite_cells;
int wr_sqlite_read(struct wr_backend *backend, const struct wr_store_query *query, int64_t wall_now);

int wr_sqlite_check(struct wr_sqlite *sqlite, const struct wr_store_query *query);

#endif
