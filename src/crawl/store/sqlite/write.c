/* SPDX-License-Identifier: MIT */
/* write.c - writes changes with SQL statements. Texts are always bound, never part of the SQL. */
#include "crawl/store/sqlite/sqlite.h"

#include <assert.h>
#include <math.h>
#include <sys/stat.h>

#define LOG_PAGES 4000 /* size of the log at which it is copied into the file: 16 MB */

/* ---- values ---------------------------------------------------------------------------------- */

static int64_t seconds_rounded_up(int64_t ns)
{
    return ns <= 0 ? 0 : ns / WEIR_SECOND + (ns % WEIR_SECOND > 0);
}

static void bind_bytes(sqlite3_stmt *statement, int at, struct wr_span bytes)
{
    (void)sqlite3_bind_blob(statement, at, bytes.bytes > 0 ? bytes.data : "", (int)bytes.bytes, SQLITE_STATIC);
}

static sqlite3_stmt *prepared_statement(struct wr_sqlite *sqlite, enum wr_sqlite_statement which)
{
    return sqlite->statements[which];
}

int wr_sqlite_write(struct wr_sqlite *sqlite, enum wr_sqlite_statement which)
{
    sqlite3_stmt *statement = prepared_statement(sqlite, which);
    int code = wr_sqlite_run(statement);

    (void)sqlite3_clear_bindings(statement);
    return wr_sqlite_error(sqlite, code);
}

bool wr_sqlite_changed(struct wr_sqlite *sqlite)
{
    bool is_new = sqlite3_changes(sqlite->db) > 0;

    sqlite->ignored += !is_new;
    return is_new;
}

/* Returns WEIR_E_TIMEOUT if the transaction is gone. SQLite rolls back by itself when some
 * statements fail, also reads. A later write would then be a transaction of its own. */
static int check_transaction_open(struct wr_sqlite *sqlite)
{
    static const char why[] = "the transaction was rolled back";

    if (sqlite3_get_autocommit(sqlite->db) == 0)
        return 0;
    memcpy(sqlite->backend.why, why, sizeof why);
    return WEIR_E_TIMEOUT;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static int write_job_counts(struct wr_sqlite *sqlite)
{
    int error = 0;

    for (size_t i = 0; i < sqlite->tally_count && error == 0; i++) {
        const struct wr_sqlite_job_counts *tally = &sqlite->tallies[i];
        const int64_t numbers[] = {tally->job,   tally->queued,  tally->done,     tally->failed,
                                   tally->bytes, tally->retries, tally->rejected, sqlite->wall_ms};
        wr_sqlite_bind_numbers(prepared_statement(sqlite, WR_SQL_JOB_COUNTS), 1, numbers, 8);
        error = wr_sqlite_write(sqlite, WR_SQL_JOB_COUNTS);
    }
    sqlite->tally_count = 0;
    return error;
}

int wr_sqlite_counts_of_job(struct wr_sqlite *sqlite, int64_t job, struct wr_sqlite_job_counts **ret_tally)
{
    for (size_t i = sqlite->tally_count; i-- > 0;) {
        if (sqlite->tallies[i].job == job) {
            *ret_tally = &sqlite->tallies[i];
            return 0;
        }
    }
    int error = sqlite->tally_count == WR_SQLITE_JOBS_COUNTED ? write_job_counts(sqlite) : 0;
    if (error != 0)
        return error;
    sqlite3_stmt *statement = prepared_statement(sqlite, WR_SQL_JOB_STATUS);
    (void)sqlite3_bind_int64(statement, 1, job);
    int code = sqlite3_step(statement);
    bool takes_tasks = code == SQLITE_ROW && sqlite3_column_int(statement, 0) != 0;
    (void)sqlite3_reset(statement);
    error = wr_sqlite_error(sqlite, code);
    if (error != 0)
        return error;
    *ret_tally = &sqlite->tallies[sqlite->tally_count++];
    **ret_tally = (struct wr_sqlite_job_counts){.job = job, .takes_tasks = takes_tasks};
    return 0;
}

static int write_job_status(struct wr_sqlite *sqlite, const struct wr_store_job_status *status)
{
    struct wr_sqlite_job_counts *tally;
    sqlite3_stmt *statement = prepared_statement(sqlite, WR_SQL_SET_JOB_STATUS);
    int error = wr_sqlite_counts_of_job(sqlite, status->job, &tally);

    if (error != 0)
        return error;
    (void)sqlite3_bind_int64(statement, 1, status->job);
    wr_sqlite_bind_text(statement, 2, wr_span_of(wr_job_status_name(status->status)));
    wr_sqlite_bind_text(statement, 3, status->why);
    (void)sqlite3_bind_int64(statement, 4, sqlite->wall_ms);
    error = wr_sqlite_write(sqlite, WR_SQL_SET_JOB_STATUS);
    if (error == 0 && wr_sqlite_changed(sqlite))
        tally->takes_tasks = !wr_job_is_over(status->status);
    return error;
}

int wr_sqlite_add_job(struct wr_backend *backend, struct wr_span settings, int64_t earlier, bool joins,
                      int64_t *ret_job)
{
    (void)joins; /* no other process has the file */
    struct wr_sqlite *sqlite = wr_sqlite_of(backend);
    sqlite3_stmt *statement = prepared_statement(sqlite, WR_SQL_JOB_ADD);
    int error = check_transaction_open(sqlite);

    if (error != 0)
        return error;
    wr_sqlite_bind_text(statement, 1, settings);
    (void)sqlite3_bind_int64(statement, 2, sqlite->wall_ms);
    (void)sqlite3_bind_int64(statement, 3, earlier);
    error = wr_sqlite_write(sqlite, WR_SQL_JOB_ADD);
    if (error == 0)
        *ret_job = sqlite3_last_insert_rowid(sqlite->db);
    return error;
}

/* ---- hosts ----------------------------------------------------------------------------------- */

static int write_host_block(struct wr_sqlite *sqlite, const struct wr_store_host_block *block)
{
    sqlite3_stmt *statement = prepared_statement(sqlite, WR_SQL_HOST_BLOCK);

    wr_sqlite_bind_text(statement, 1, block->key);
    (void)sqlite3_bind_int64(statement, 2, wr_backend_ms(block->until_wall_at));
    wr_sqlite_bind_text(statement, 3, block->by);
    return wr_sqlite_write(sqlite, WR_SQL_HOST_BLOCK);
}

static int write_host_memory(struct wr_sqlite *sqlite, const struct wr_store_host *host)
{
    sqlite3_stmt *statement = prepared_statement(sqlite, WR_SQL_HOST);
    const weir_pace_memory *memory = &host->memory;
    const int64_t before[] = {seconds_rounded_up(memory->delay_ns),   seconds_rounded_up(memory->floor_ns),
                              wr_backend_ms(memory->delay_ns),        wr_backend_ms(memory->floor_ns),
                              wr_backend_ms(memory->robots_delay_ns), wr_backend_ms(memory->retry_wall_at),
                              wr_backend_ms(memory->saved_wall_at)};
    const int64_t after[] = {memory->cap, memory->traits, wr_backend_ms(memory->block_ns), memory->breaker_open};

    wr_sqlite_bind_text(statement, 1, host->key);
    wr_sqlite_bind_numbers(statement, 2, before, 7);
    (void)sqlite3_bind_double(statement, 9, isfinite(memory->rate) ? memory->rate : 0);
    wr_sqlite_bind_numbers(statement, 10, after, 4);
    return wr_sqlite_write(sqlite, WR_SQL_HOST);
}

static int write_host_setting(struct wr_sqlite *sqlite, const struct wr_store_host_setting *setting)
{
    sqlite3_stmt *statement = prepared_statement(sqlite, WR_SQL_HOST_SETTING);
    const int64_t numbers[] = {setting->has_paused ? (int64_t)setting->is_paused : -1,
                               setting->has_interval ? wr_backend_ms(setting->interval_ns) : -1};

    wr_sqlite_bind_text(statement, 1, setting->key);
    wr_sqlite_bind_numbers(statement, 2, numbers, 2);
    return wr_sqlite_write(sqlite, WR_SQL_HOST_SETTING);
}

static int write_robots(struct wr_sqlite *sqlite, const struct wr_store_robots *robots)
{
    const int64_t times[] = {robots->max_age_ns < 0 ? -1 : wr_backend_ms(robots->max_age_ns),
                             wr_backend_ms(robots->fetched_wall_at)};

    if (robots->kind == WR_STORE_ROBOTS_SAME) {
        wr_sqlite_bind_text(prepared_statement(sqlite, WR_SQL_ROBOTS_SAME), 1, robots->url);
        wr_sqlite_bind_numbers(prepared_statement(sqlite, WR_SQL_ROBOTS_SAME), 2, times, 2);
        return wr_sqlite_write(sqlite, WR_SQL_ROBOTS_SAME);
    }
    if (robots->kind == WR_STORE_ROBOTS_GONE) {
        wr_sqlite_bind_text(prepared_statement(sqlite, WR_SQL_ROBOTS_GONE), 1, robots->url);
        return wr_sqlite_write(sqlite, WR_SQL_ROBOTS_GONE);
    }
    sqlite3_stmt *statement = prepared_statement(sqlite, WR_SQL_ROBOTS);
    wr_sqlite_bind_text(statement, 1, robots->url);
    (void)sqlite3_bind_int(statement, 2, (int)robots->kind);
    bind_bytes(statement, 3, robots->text);
    bind_bytes(statement, 4, robots->etag);
    bind_bytes(statement, 5, robots->modified);
    wr_sqlite_bind_numbers(statement, 6, times, 2);
    sqlite->backend.robots_room -=
        (int64_t)robots->text.bytes; /* a lower bound: undone or replaced texts add no room */
    return wr_sqlite_write(sqlite, WR_SQL_ROBOTS);
}

static int sqlite_sum_robots(struct wr_sqlite *sqlite, int64_t *ret_bytes)
{
    sqlite3_stmt *statement = prepared_statement(sqlite, WR_SQL_ROBOTS_BYTES);
    int code = sqlite3_step(statement);

    *ret_bytes = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    (void)sqlite3_reset(statement);
    return wr_sqlite_error(sqlite, code);
}

/* Removes the oldest robots.txt texts beyond the limit. Called before the commit, so that the file
 * never has too many. */
static int sqlite_trim_robots(struct wr_sqlite *sqlite)
{
    int64_t bytes = 0, most = (int64_t)sqlite->robots_bytes, kept = wr_backend_robots_kept(sqlite->robots_bytes);

    if (sqlite->backend.robots_room >= 0)
        return 0;
    int error = sqlite_sum_robots(sqlite, &bytes);
    if (error == 0 && bytes > most) {
        (void)sqlite3_bind_int64(prepared_statement(sqlite, WR_SQL_ROBOTS_TRIM), 1, kept);
        error = wr_sqlite_write(sqlite, WR_SQL_ROBOTS_TRIM);
        if (error == 0)
            error = sqlite_sum_robots(sqlite, &bytes);
    }
    if (error == 0)
        sqlite->backend.robots_room = most - bytes;
    return error;
}

/* ---- outputs --------------------------------------------------------------------------------- */

static int write_output(struct wr_sqlite *sqlite, const struct wr_store_output *output)
{
    sqlite3_stmt *statement = prepared_statement(sqlite, WR_SQL_OUTPUT);

    (void)sqlite3_bind_int64(statement, 1, output->job);
    wr_sqlite_bind_text(statement, 2, output->path);
    (void)sqlite3_bind_int64(statement, 3, (int64_t)output->bytes);
    return wr_sqlite_write(sqlite, WR_SQL_OUTPUT);
}

static int write_outputs(struct wr_sqlite *sqlite)
{
    int error = 0;

    for (size_t i = 0; i < sqlite->output_count && error == 0; i++)
        error = write_output(sqlite, sqlite->outputs[i]);
    sqlite->output_count = 0;
    return error;
}

static bool is_same_output(const struct wr_store_output *one, const struct wr_store_output *other)
{
    return one->job == other->job && one->path.bytes == other->path.bytes &&
           memcmp(one->path.data, other->path.data, one->path.bytes) == 0;
}

/* Every page brings an output length; only the last one of a transaction is written per file. */
static int note_output_length(struct wr_sqlite *sqlite, const struct wr_store_output *output)
{
    for (size_t i = 0; i < sqlite->output_count; i++) {
        if (is_same_output(sqlite->outputs[i], output)) {
            sqlite->outputs[i] = output;
            return 0;
        }
    }
    int error = sqlite->output_count == WR_SQLITE_OUTPUTS ? write_outputs(sqlite) : 0;
    sqlite->outputs[sqlite->output_count++] = output;
    return error;
}

/* ---- reports --------------------------------------------------------------------------------- */

static int insert_job_report(struct wr_sqlite *sqlite, const struct wr_store_report *report)
{
    sqlite3_stmt *statement = prepared_statement(sqlite, WR_SQL_REPORT);

    wr_sqlite_bind_numbers(statement, 1, (const int64_t[]){report->job, sqlite->wall_ms}, 2);
    wr_sqlite_bind_text(statement, 3, report->text);
    int error = wr_sqlite_write(sqlite, WR_SQL_REPORT);
    if (error != 0)
        return error;
    wr_sqlite_bind_numbers(prepared_statement(sqlite, WR_SQL_REPORTS_TRIM), 1,
                           (const int64_t[]){report->job, WR_STORE_REPORTS_KEPT}, 2);
    return wr_sqlite_write(sqlite, WR_SQL_REPORTS_TRIM);
}

int wr_sqlite_apply(struct wr_backend *backend, const struct wr_store_change *change)
{
    struct wr_sqlite *sqlite = wr_sqlite_of(backend);
    int error = check_transaction_open(sqlite);

    if (error != 0)
        return error;
    switch (change->kind) {
    case WR_STORE_TASK_FOUND:
        return wr_sqlite_put_found(sqlite, &change->found);
    case WR_STORE_TASK_ENDED:
        return wr_sqlite_put_ended(sqlite, &change->ended);
    case WR_STORE_TASK_RETRY:
        return wr_sqlite_put_retry(sqlite, &change->retry);
    case WR_STORE_PAGE_CHANGED:
        return wr_sqlite_put_changed(sqlite, &change->changed);
    case WR_STORE_JOB_STATUS:
        return write_job_status(sqlite, &change->status);
    case WR_STORE_OUTPUT:
        return note_output_length(sqlite, &change->output);
    case WR_STORE_ROBOTS:
        return write_robots(sqlite, &change->robots);
    case WR_STORE_HOST_BLOCK:
        return write_host_block(sqlite, &change->block);
    case WR_STORE_HOST_SETTING:
        return write_host_setting(sqlite, &change->setting);
    case WR_STORE_REPORT:
        return insert_job_report(sqlite, &change->report);
    case WR_STORE_DISMISS:
        return 0;
    case WR_STORE_HOST:
        break;
    }
    return write_host_memory(sqlite, &change->host);
}

/* ---- transactions ---------------------------------------------------------------------------- */

/* Returns true if the file was removed or replaced: later writes would be lost. */
static bool is_file_replaced(struct wr_sqlite *sqlite)
{
    static const char why[] = "was removed or replaced while it was in use";
    struct stat node;

    if (lstat(sqlite->path, &node) == 0 && node.st_dev == sqlite->device && node.st_ino == sqlite->inode)
        return false;
    memcpy(sqlite->backend.why, why, sizeof why);
    return true;
}

int wr_sqlite_begin(struct wr_backend *backend, int64_t wall_now)
{
    struct wr_sqlite *sqlite = wr_sqlite_of(backend);

    assert(sqlite3_get_autocommit(sqlite->db) != 0);
    if (is_file_replaced(sqlite))
        return WEIR_E_SYSTEM;
    sqlite->wall_ms = wr_backend_ms(wall_now);
    sqlite->tally_count = sqlite->output_count = sqlite->found_count = 0;
    sqlite->ignored = 0;
    return wr_sqlite_write(sqlite, WR_SQL_BEGIN);
}

int wr_sqlite_write_pending(struct wr_sqlite *sqlite)
{
    int error = wr_sqlite_host_write_counts(sqlite);

    if (error == 0)
        error = sqlite_trim_robots(sqlite);
    if (error == 0)
        error = write_outputs(sqlite);
    return error != 0 ? error : write_job_counts(sqlite);
}

int wr_sqlite_commit(struct wr_backend *backend)
{
    struct wr_sqlite *sqlite = wr_sqlite_of(backend);
    int error = check_transaction_open(sqlite);

    if (error == 0)
        error = wr_sqlite_write_pending(sqlite);
    if (error == 0)
        error = wr_sqlite_write(sqlite, WR_SQL_COMMIT);
    if (error == 0)
        backend->ignored += sqlite->ignored;
    return error;
}

void wr_sqlite_undo(struct wr_backend *backend)
{
    struct wr_sqlite *sqlite = wr_sqlite_of(backend);

    if (sqlite3_get_autocommit(sqlite->db) == 0)
        (void)wr_sqlite_run(prepared_statement(sqlite, WR_SQL_ROLLBACK));
    wr_sqlite_host_clear_cache(sqlite);
}

/* Copies the log into the file. If there is no room it does nothing: the log grows until a later
 * attempt. A failed sync is permanent: its data may be lost, and yet the next sync may succeed. */
int wr_sqlite_settle(struct wr_backend *backend)
{
    struct wr_sqlite *sqlite = wr_sqlite_of(backend);

    if (sqlite->wal_pages < LOG_PAGES)
        return 0;
    int code = sqlite3_wal_checkpoint_v2(sqlite->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    int error = wr_sqlite_error(sqlite, code);
    return error == WEIR_E_SYSTEM ? error : 0;
}
