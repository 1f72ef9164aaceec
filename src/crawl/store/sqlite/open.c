/* SPDX-License-Identifier: MIT */
/* open.c - opens and closes a state file. */
#include "base/alloc.h"
#include "base/buf.h"
#include "crawl/store/sqlite/sqlite.h"
#include "limiter/clock/clock.h"

#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>

/* Intervals in instructions of SQLite's virtual machine. */
#define PROGRESS_STEPS 20000 /* about 100 us of a check */
#define TURN_STEPS 1000      /* about 50 us of statements */

/* ---- files open in this process -------------------------------------------------------------- */

/* Closing any descriptor of a file drops all locks that the process has on it (fcntl(2)), including
 * SQLite's. So a file that is open here must not be opened a second time. */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static struct wr_sqlite *open_files;

static bool is_open_here(const char *path)
{
    struct stat node;
    bool found = false;

    if (lstat(path, &node) != 0)
        return false;
    for (const struct wr_sqlite *each = open_files; each != NULL && !found; each = each->next)
        found = each->device == node.st_dev && each->inode == node.st_ino;
    return found;
}

static void remember_open_file(struct wr_sqlite *sqlite, const char *path)
{
    struct stat node = {0};

    (void)lstat(path, &node);
    sqlite->device = node.st_dev;
    sqlite->inode = node.st_ino;
    sqlite->next = open_files;
    open_files = sqlite;
}

static void forget_open_file(const struct wr_sqlite *sqlite)
{
    for (struct wr_sqlite **each = &open_files; *each != NULL; each = &(*each)->next) {
        if (*each == sqlite) {
            *each = sqlite->next;
            return;
        }
    }
}

/* ---- errors ---------------------------------------------------------------------------------- */

static int refuse_locked(const char *path)
{
    char why[96];
    struct wr_buf buf;
    pid_t holder = wr_state_file_lock_owner(path);

    wr_buf_init_fixed(&buf, why, sizeof why);
    wr_buf_append_string(&buf, "is in use by ");
    wr_buf_append_string(&buf, holder > 0 ? "process " : "another process");
    if (holder > 0)
        wr_buf_append_u64(&buf, (uint64_t)holder);
    wr_buf_append_string(&buf, "; wait for it to end, or name another");
    return wr_state_file_refuse(path, WEIR_E_SYSTEM, why);
}

static int refuse_state_file(struct wr_sqlite *sqlite, const char *path, int code)
{
    char why[240];
    struct wr_buf buf;
    int plain = code & 0xff;
    bool is_bad = plain == SQLITE_CORRUPT || plain == SQLITE_NOTADB || plain == SQLITE_ERROR;

    if (plain == SQLITE_NOMEM)
        return WEIR_E_NOMEM;
    wr_buf_init_fixed(&buf, why, sizeof why);
    wr_buf_append_string(&buf, is_bad ? "is damaged: " : "cannot be opened: ");
    wr_buf_append_string(&buf, wr_sqlite_error_text(sqlite->db, code));
    wr_buf_append_string(&buf, is_bad ? WR_SQLITE_ADVICE : "");
    return wr_state_file_refuse(path, is_bad ? WEIR_E_INVAL : WEIR_E_SYSTEM, why);
}

/* ---- check for damage ------------------------------------------------------------------------ */

struct check_deadline {
    const weir_clock *clock;
    int64_t until;
};

static int is_check_time_over(void *context)
{
    const struct check_deadline *patience = context;

    return wr_clock_now(patience->clock) >= patience->until;
}

/* Checks the file until the time limit. Returns SQLITE_OK, SQLITE_CORRUPT, or another failure.
 * Parts that were not reached count as sound. */
static int quick_check(sqlite3 *db, const struct wr_store_options *options)
{
    struct check_deadline patience = {options->clock, wr_clock_now(options->clock) + options->check_ns};
    sqlite3_stmt *statement;
    int code = sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &statement, NULL);

    if (code != SQLITE_OK)
        return code;
    sqlite3_progress_handler(db, PROGRESS_STEPS, is_check_time_over, &patience);
    code = sqlite3_step(statement);
    const unsigned char *text = code == SQLITE_ROW ? sqlite3_column_text(statement, 0) : NULL;
    if (code == SQLITE_ROW)
        code = text != NULL && strcmp((const char *)text, "ok") == 0 ? SQLITE_OK : SQLITE_CORRUPT;
    sqlite3_progress_handler(db, 0, NULL, NULL);
    (void)sqlite3_finalize(statement);
    return code == SQLITE_INTERRUPT ? SQLITE_OK : code;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Yields the processor to an event loop that may share it: unlike this thread it has deadlines. */
static int yield_processor(void *context)
{
    (void)context;
    (void)sched_yield();
    return 0;
}

static int note_log_pages(void *context, sqlite3 *db, const char *name, int pages)
{
    struct wr_sqlite *sqlite = context;

    (void)db;
    (void)name;
    sqlite->wal_pages = pages;
    return SQLITE_OK;
}

/* Opens the file and takes its lock, which is held until the file is closed. */
static int open_and_lock(struct wr_sqlite *sqlite, const struct wr_store_options *options)
{
    /* first, so that SQLite needs no shared memory */
    static const char settings[] = "PRAGMA locking_mode = EXCLUSIVE;"
                                   "PRAGMA journal_mode = WAL;"
                                   /* FULL: a reported commit survives a power cut */
                                   "PRAGMA synchronous = FULL;"
                                   "PRAGMA cache_size = -8192;" /* -8192: 8 MiB */
                                   "PRAGMA journal_size_limit = 67108864;"
                                   /* off: wr_sqlite_settle copies the log and checks the result */
                                   "PRAGMA wal_autocheckpoint = 0;"
                                   "PRAGMA trusted_schema = OFF;"
                                   "BEGIN IMMEDIATE; COMMIT;";
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    int64_t busy_ms = options->busy_ns / WEIR_MILLISECOND;
    int code = sqlite3_open_v2(options->path, &sqlite->db, flags, NULL);

    if (code == SQLITE_OK)
        code = sqlite3_busy_timeout(sqlite->db, (int)(busy_ms < INT32_MAX ? busy_ms : INT32_MAX));
    if (code == SQLITE_OK)
        code = sqlite3_exec(sqlite->db, settings, NULL, NULL, NULL);
    if ((code & 0xff) == SQLITE_BUSY) {
        (void)sqlite3_close(sqlite->db);
        sqlite->db = NULL;
        return refuse_locked(options->path);
    }
    if (code != SQLITE_OK)
        return refuse_state_file(sqlite, options->path, code);
    (void)sqlite3_db_config(sqlite->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_wal_hook(sqlite->db, note_log_pages, sqlite);
    return 0;
}

static int read_pragma(sqlite3 *db, const char *text, int64_t *ret_number)
{
    sqlite3_stmt *statement;
    int code = sqlite3_prepare_v2(db, text, -1, &statement, NULL);

    if (code != SQLITE_OK)
        return code;
    code = sqlite3_step(statement);
    *ret_number = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    (void)sqlite3_finalize(statement);
    return code == SQLITE_ROW ? SQLITE_OK : code;
}

static int sqlite_read_secret(struct wr_sqlite *sqlite)
{
    sqlite3_stmt *statement;
    int code =
        sqlite3_prepare_v2(sqlite->db, "SELECT value FROM secrets WHERE name = 'fingerprints'", -1, &statement, NULL);

    if (code != SQLITE_OK)
        return code;
    code = sqlite3_step(statement);
    if (code == SQLITE_ROW && sqlite3_column_bytes(statement, 0) == WR_HASH_SECRET_BYTES) {
        wr_hash_key_init(&sqlite->backend.hash_key, sqlite3_column_blob(statement, 0));
        /* the file may move to a processor without AES instructions */
        sqlite->backend.hash_key.has_aes = false;
        code = SQLITE_OK;
    } else if (code == SQLITE_ROW || code == SQLITE_DONE) {
        code = SQLITE_CORRUPT;
    }
    (void)sqlite3_finalize(statement);
    return code;
}

/* Checks the content: a known version, no damage, all tables. Updates older versions. */
static int check_content(struct wr_sqlite *sqlite, const struct wr_store_options *options)
{
    int64_t version = 0;
    /* the log may have a newer version than the header */
    int code = read_pragma(sqlite->db, "PRAGMA user_version", &version);

    if (code == SQLITE_OK && version > WR_SQLITE_VERSION)
        return wr_state_file_refuse(options->path, WEIR_E_INVAL, "was written by a newer weir; use that one");
    if (code == SQLITE_OK && version < 1)
        return wr_state_file_refuse(options->path, WEIR_E_INVAL, "is damaged: its version is below 1; restore a copy");
    if (code == SQLITE_OK && options->check_ns > 0)
        code = quick_check(sqlite->db, options);
    if (code == SQLITE_CORRUPT)
        return wr_state_file_refuse(options->path, WEIR_E_INVAL, "is damaged" WR_SQLITE_ADVICE);
    if (code == SQLITE_OK)
        code = wr_sqlite_migrate(sqlite->db, wr_sqlite_steps, WR_SQLITE_VERSION);
    if (code == SQLITE_OK)
        code = wr_sqlite_prepare(sqlite->db, sqlite->statements);
    if (code == SQLITE_OK)
        code = sqlite_read_secret(sqlite);
    return code == SQLITE_OK ? 0 : refuse_state_file(sqlite, options->path, code);
}

static void close_state_file(struct wr_sqlite *sqlite)
{
    for (size_t i = 0; i < WR_SQL_COUNT; i++)
        (void)sqlite3_finalize(sqlite->statements[i]);
    (void)sqlite3_close(sqlite->db);
    wr_free(sqlite->allocator, sqlite, sizeof *sqlite, _Alignof(struct wr_sqlite));
}

/* Opens the file. open_lock is held. */
static int open_state_file(const struct wr_store_options *options, struct wr_sqlite **ret_sqlite)
{
    if (is_open_here(options->path))
        return wr_state_file_refuse(options->path, WEIR_E_SYSTEM, "is already open in this process");
    int error = wr_state_file_check(options->path);
    if (error == WEIR_E_ABSENT && options->may_create) {
        error = wr_state_file_create(options->path);
        if (error == 0)
            error = wr_state_file_check(options->path);
    }
    if (error != 0)
        return error;
    struct wr_sqlite *sqlite = wr_alloc(options->allocator, sizeof *sqlite, _Alignof(struct wr_sqlite));
    if (sqlite == NULL)
        return WEIR_E_NOMEM;
    sqlite->backend.kind = &wr_backend_sqlite;
    sqlite->allocator = options->allocator;
    sqlite->robots_bytes = options->robots_bytes;
    sqlite->backend.robots_room = -1; /* unknown: the sum must be computed */
    sqlite->path = sqlite->backend.place = options->path;
    error = open_and_lock(sqlite, options);
    if (error == 0)
        error = check_content(sqlite, options);
    if (error != 0) {
        close_state_file(sqlite);
        return error;
    }
    sqlite3_progress_handler(sqlite->db, TURN_STEPS, yield_processor, NULL);
    remember_open_file(sqlite, options->path);
    *ret_sqlite = sqlite;
    return 0;
}

int wr_sqlite_open(const struct wr_store_options *options, struct wr_backend **ret_backend)
{
    struct wr_sqlite *sqlite = NULL;

    (void)pthread_mutex_lock(&open_lock);
    /* SQLite's memory statistics are not used and cost a lock per allocation. No effect once SQLite
     * is initialised. */
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    int error = open_state_file(options, &sqlite);
    (void)pthread_mutex_unlock(&open_lock);
    if (error == 0)
        *ret_backend = &sqlite->backend;
    return error;
}

void wr_sqlite_close(struct wr_backend *backend)
{
    struct wr_sqlite *sqlite = wr_sqlite_of(backend);

    (void)pthread_mutex_lock(&open_lock);
    forget_open_file(sqlite);
    close_state_file(sqlite);
    (void)pthread_mutex_unlock(&open_lock);
}
