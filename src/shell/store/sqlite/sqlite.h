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

#include <sqlite3.h>
#include <sys/types.h>

#define WR_SQLITE_APPLICATION 0x77656972 /* "weir" */
#define WR_SQLITE_VERSION 1              /* of the tables, in user_version */

enum wr_task_state { /* in tasks.state */
    WR_TASK_QUEUED = 0,
    WR_TASK_DONE = 1,
    WR_TASK_FAILED = 2,
};

/* ---- statements ---- */

#define WR_MEMORY_COLUMNS                                                                                          \
    "adaptive_delay_ms, adaptive_delay_floor_ms, robots_delay_ms, retry_at_ms, updated_at_ms, rate, cap, traits, " \
    "block_ms, breaker_open"

enum wr_statement {
    WR_SQL_BEGIN,
    WR_SQL_COMMIT,
    WR_SQL_ROLLBACK,
    WR_SQL_FOUND,
    WR_SQL_ENDED,
    WR_SQL_RETRY,
    WR_SQL_STATUS,
    WR_SQL_OUTPUT,
    WR_SQL_ROBOTS,
    WR_SQL_ROBOTS_SAME,
    WR_SQL_HOST,
    WR_SQL_HOST_ADD,
    WR_SQL_HOST_ID,
    WR_SQL_JOB_ADD,
    WR_SQL_JOB_STATUS,
    WR_SQL_JOB_TALLY,
    WR_SQL_CONDEMN_TASK,
    WR_SQL_CONDEMN_HOST,
    WR_SQL_READ_JOBS,
    WR_SQL_READ_TASKS,
    WR_SQL_READ_KNOWN,
    WR_SQL_READ_HOSTS,
    WR_SQL_READ_HOST,
    WR_SQL_READ_ROBOTS,
    WR_SQL_READ_OUTPUTS,
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
#define WR_HOST_CACHE 65536 /* a power of two: 1 MB, of which pages that are not used cost nothing */

struct wr_sqlite {
    struct wr_backend backend; /* first */
    sqlite3 *db;
    sqlite3_stmt *statements[WR_SQL_COUNT];
    const weir_allocator *allocator;
    const char *path; /* the store's */
    int64_t wall_ms;  /* of this transaction */
    uint64_t ignored; /* by this transaction */
    struct wr_tally tallies[WR_TALLIES];
    size_t tally_count;
    int wal_pages; /* in the log after the last commit */
    struct {
        uint64_t hash;
        int64_t id;         /* 0: free */
    } hosts[WR_HOST_CACHE]; /* rows that are there for sure */
    dev_t device;           /* which file it is */
    ino_t inode;
    struct wr_sqlite *next; /* among those open in this process */
};

static inline struct wr_sqlite *wr_sqlite_of(struct wr_backend *backend)
{
    return (struct wr_sqlite *)(void *)backend;
}

/* error.c: what a result of SQLite's means to the store; `why` says it in words. 0 for SQLITE_OK, _ROW and _DONE. */
int wr_sqlite_error(struct wr_sqlite *sqlite, int code);

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

/* write.c */
int wr_sqlite_begin(struct wr_backend *backend, int64_t wall_now);
int wr_sqlite_apply(struct wr_backend *backend, const struct wr_store_change *change);
int wr_sqlite_add_job(struct wr_backend *backend, struct wr_span settings, int64_t *ret_job);
int wr_sqlite_commit(struct wr_backend *backend);
void wr_sqlite_undo(struct wr_backend *backend);
int wr_sqlite_settle(struct wr_backend *backend);

/* Tasks that make no sense fail: `which` is WR_SQL_CONDEMN_TASK, and the ids are theirs; or _HOST, and they are those
 * of hosts. In a transaction of its own. */
int wr_sqlite_condemn(struct wr_sqlite *sqlite, enum wr_statement which, int64_t job, const int64_t *ids, size_t count,
                      int64_t wall_now);

/* read.c */
int wr_sqlite_read(struct wr_backend *backend, const struct wr_store_query *query, int64_t wall_now);

/* check.c */
int wr_sqlite_check(struct wr_sqlite *sqlite, const struct wr_store_query *query);

/* row.c: a row as it is, put into range. False: it makes no sense. */
bool wr_row_task(sqlite3_stmt *row, const struct wr_store_query *query, int64_t wall_now,
                 struct wr_store_task *ret_task);
bool wr_row_host(sqlite3_stmt *row, struct wr_store_host *ret_host);
bool wr_row_job(sqlite3_stmt *row, struct wr_store_job *ret_job);
bool wr_row_robots(sqlite3_stmt *row, struct wr_store_robots *ret_robots);
bool wr_row_output(sqlite3_stmt *row, struct wr_store_output *ret_output);

#endif
