/* SPDX-License-Identifier: MIT */
/* sqlite.h - the store in one SQLite file: docs/internals/store.md has its tables.
 *
 * The file is ours alone while it is open: SQLite's exclusive mode holds its lock for the life of the process, and
 * needs no shared memory beside the write-ahead log. So there is one connection, and the store's thread does
 * everything.
 */
#ifndef WR_SHELL_STORE_SQLITE_SQLITE_H
#define WR_SHELL_STORE_SQLITE_SQLITE_H

#include "shell/store/backend.h"
#include "shell/store/row.h"

#include <sqlite3.h>
#include <sys/types.h>

#define WR_SQLITE_APPLICATION 0x77656972 /* "weir" */
#define WR_SQLITE_ADVICE "; sqlite3 FILE .recover may save what is in it"
#define WR_SQLITE_VERSION 6 /* of the tables, in user_version */

/* ---- statements ---- */

#define WR_MEMORY_COLUMNS                                                                                          \
    "adaptive_delay_ms, adaptive_delay_floor_ms, robots_delay_ms, retry_at_ms, updated_at_ms, rate, cap, traits, " \
    "block_ms, breaker_open"
#define WR_HOST_COLUMNS ", blocked_until_ms, blocked_by, paused, set_interval_ms"

enum wr_statement {
    WR_SQL_BEGIN,
    WR_SQL_COMMIT,
    WR_SQL_ROLLBACK,
    WR_SQL_FOUND,
    WR_SQL_FOUND_MANY,
    WR_SQL_NEWEST,
    WR_SQL_ENDED,
    WR_SQL_ENDED_ROW,
    WR_SQL_RETRY,
    WR_SQL_CHANGED,
    WR_SQL_STATUS,
    WR_SQL_OUTPUT,
    WR_SQL_ROBOTS,
    WR_SQL_ROBOTS_SAME,
    WR_SQL_ROBOTS_GONE,
    WR_SQL_ROBOTS_BYTES,
    WR_SQL_ROBOTS_TRIM,
    WR_SQL_HOST,
    WR_SQL_BLOCK,
    WR_SQL_HOST_SETTING,
    WR_SQL_HOST_ADD,
    WR_SQL_HOST_ID,
    WR_SQL_ACCEPTED,
    WR_SQL_ACCEPTED_MANY,
    WR_SQL_JOB_ADD,
    WR_SQL_JOB_STATUS,
    WR_SQL_JOB_TALLY,
    WR_SQL_REPORT,
    WR_SQL_REPORTS_TRIM,
    WR_SQL_READ_JOBS,
    WR_SQL_READ_TASKS,
    WR_SQL_READ_TASKS_AGAIN,
    WR_SQL_READ_STRANDED,
    WR_SQL_READ_ACCEPTED,
    WR_SQL_READ_KNOWN,
    WR_SQL_READ_HOSTS,
    WR_SQL_READ_CLAIM,
    WR_SQL_READ_HOST,
    WR_SQL_READ_ROBOTS,
    WR_SQL_READ_OUTPUTS,
    WR_SQL_READ_SEEDS,
    WR_SQL_READ_FREE,
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

/* What this transaction did to one job: added to its row before the commit. */
struct wr_tally {
    int64_t job;
    bool takes_tasks; /* it exists and is not over */
    int64_t queued, done, failed, bytes, retries, rejected;
};

#define WR_TALLIES 16

/* A host's row, which is there for sure, and what this transaction added to a job's tasks on it. */
struct wr_host_slot {
    uint64_t hash; /* of its key */
    int64_t id;    /* 0: free */
    int64_t job;
    int64_t accepted; /* not in the file yet */
};

/* A task's row, as it was when it was written or read. */
struct wr_task_slot {
    uint64_t fingerprint;
    int64_t id; /* 0: free */
};

#define WR_OUTPUTS 8
#define WR_FOUND_MANY 16 /* tasks that one statement inserts */
#define WR_TASK_CACHE 65536
#define WR_HOST_CACHE 65536 /* a power of two: 2 MB, of which pages that are not used cost nothing */
#define WR_HOST_COUNTED 4096
#define WR_ACCEPTED_MANY 16 /* counts that one statement writes */

struct wr_sqlite {
    struct wr_backend backend; /* first */
    sqlite3 *db;
    sqlite3_stmt *statements[WR_SQL_COUNT];
    const weir_allocator *allocator;
    const char *path; /* the store's */
    size_t robots_bytes;
    int64_t wall_ms;  /* of this transaction */
    uint64_t ignored; /* by this transaction */
    struct wr_tally tallies[WR_TALLIES];
    size_t tally_count;
    int wal_pages;                                     /* in the log after the last commit */
    const struct wr_store_output *outputs[WR_OUTPUTS]; /* the last words about these, not written yet */
    size_t output_count;
    const struct wr_store_found *found[WR_FOUND_MANY]; /* not written yet */
    size_t found_count;
    struct wr_task_slot tasks[WR_TASK_CACHE];
    struct wr_host_slot hosts[WR_HOST_CACHE];
    uint32_t counted[WR_HOST_COUNTED]; /* slots where `accepted` is not 0, or was not */
    size_t counted_count;
    dev_t device; /* which file it is */
    ino_t inode;
    struct wr_sqlite *next; /* among those open in this process */
};

static inline struct wr_sqlite *wr_sqlite_of(struct wr_backend *backend)
{
    return (struct wr_sqlite *)(void *)backend;
}

/* Binding copies nothing, so it cannot fail: every size was checked when it was posted. */
static inline void wr_bind_text(sqlite3_stmt *statement, int at, struct wr_span text)
{
    (void)sqlite3_bind_text(statement, at, text.bytes > 0 ? text.data : "", (int)text.bytes, SQLITE_STATIC);
}

static inline void wr_bind_numbers(sqlite3_stmt *statement, int at, const int64_t *numbers, int count)
{
    for (int i = 0; i < count; i++)
        (void)sqlite3_bind_int64(statement, at + i, numbers[i]);
}

/* error.c: what a result of SQLite's means to the store; `why` says it in words. 0 for SQLITE_OK, _ROW and _DONE. */
int wr_sqlite_error(struct wr_sqlite *sqlite, int code);
/* The words for a result, whether SQLite returned it or not. `db` may be NULL. */
const char *wr_sqlite_words(sqlite3 *db, int code);

/* Runs one statement to its end, and makes it ready again. A SQLite code: SQLITE_OK, or what went wrong. */
int wr_sqlite_run(sqlite3_stmt *statement);

/* schema.c: brings the tables to WR_SQLITE_VERSION, one transaction for each version. A SQLite code. */
int wr_sqlite_migrate(sqlite3 *db, const char *const *steps, int count);
extern const char *const wr_sqlite_steps[WR_SQLITE_VERSION];

/* A new, empty state file as bytes, for sqlite3_free. NULL: no memory. */
unsigned char *wr_sqlite_blank(const void *secret, size_t secret_bytes, size_t *ret_bytes);

/* SQLITE_OK, or why one of them cannot be prepared. */
int wr_sqlite_prepare(sqlite3 *db, sqlite3_stmt **ret_statements);

/* place.c: the file before SQLite sees it. Sets the detail. WEIR_E_ABSENT, WEIR_E_INVAL, WEIR_E_SYSTEM. */
int wr_place_check(const char *path);
int wr_place_create(const char *path);

/* Refuses it in this word's favour. Returns `error`. */
int wr_place_refuse(const char *path, int error, const char *why);

/* The process that holds SQLite's lock on the file; 0: nobody can tell. The file is not open in this one. */
pid_t wr_place_holder(const char *path);

/* open.c */
int wr_sqlite_open(const struct wr_store_options *options, struct wr_backend **ret_backend);
void wr_sqlite_close(struct wr_backend *backend);

/* host.c: the row of a host, which is made if there is none. WEIR_E_ codes, as of all of these. */
int wr_sqlite_host(struct wr_sqlite *sqlite, struct wr_span key, struct wr_host_slot **ret_slot);

/* One more task of the job on the host of the slot. */
int wr_sqlite_host_accept(struct wr_sqlite *sqlite, struct wr_host_slot *slot, int64_t job);

/* Writes what was counted, before the commit. */
int wr_sqlite_host_settle(struct wr_sqlite *sqlite);

/* After a transaction was taken back: rows that it made are gone. */
void wr_sqlite_host_forget(struct wr_sqlite *sqlite);

/* Tasks of the job on the host, with those that are not written yet. */
int wr_sqlite_host_accepted(struct wr_sqlite *sqlite, int64_t job, struct wr_span key, uint64_t *ret_accepted);

/* task.c: what is found gathers until there is enough for one statement, or wr_sqlite_flush. */
int wr_sqlite_put_found(struct wr_sqlite *sqlite, const struct wr_store_found *task);
int wr_sqlite_put_ended(struct wr_sqlite *sqlite, const struct wr_store_ended *ended);
int wr_sqlite_put_retry(struct wr_sqlite *sqlite, const struct wr_store_retry *retry);
int wr_sqlite_put_changed(struct wr_sqlite *sqlite, const struct wr_store_changed *changed);
int wr_sqlite_flush(struct wr_backend *backend);

/* Where the task's row is. */
void wr_sqlite_task_note(struct wr_sqlite *sqlite, uint64_t fingerprint, int64_t id);

/* write.c: runs a statement whose parameters are bound, to its end. WEIR_E_ codes. */
int wr_sqlite_write(struct wr_sqlite *sqlite, enum wr_statement which);

/* Whether that changed anything; counts it if not. */
bool wr_sqlite_changed(struct wr_sqlite *sqlite);

/* The job's in this transaction; stays until the next is asked for. */
int wr_sqlite_tally(struct wr_sqlite *sqlite, int64_t job, struct wr_tally **ret_tally);

int wr_sqlite_begin(struct wr_backend *backend, int64_t wall_now);
int wr_sqlite_apply(struct wr_backend *backend, const struct wr_store_change *change);
int wr_sqlite_add_job(struct wr_backend *backend, struct wr_span settings, int64_t earlier, bool joins,
                      int64_t *ret_job);
int wr_sqlite_commit(struct wr_backend *backend);
void wr_sqlite_undo(struct wr_backend *backend);
int wr_sqlite_settle(struct wr_backend *backend);

/* Writes what this transaction has counted: the books agree with the tasks. */
int wr_sqlite_balance(struct wr_sqlite *sqlite);

/* read.c: `result` of the cells is a statement that was stepped. */
extern const struct wr_cells_kind wr_sqlite_cells;
int wr_sqlite_read(struct wr_backend *backend, const struct wr_store_query *query, int64_t wall_now);

/* check.c */
int wr_sqlite_check(struct wr_sqlite *sqlite, const struct wr_store_query *query);

#endif
