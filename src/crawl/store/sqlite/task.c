/* SPDX-License-Identifier: MIT */
/* task.c - stores tasks that are found, end, or are retried.
 *
 * A statement costs SQLite more than a row does, so found tasks are collected and inserted by one
 * statement. Of the changes that may come before that, only the end, the retry or the change of the
 * same task depends on the insertion; it inserts the collected tasks first.
 */
#include "crawl/store/sqlite/sqlite.h"

#define TOO_MANY 429
#define FOUND_COLUMNS 8

/* ---- rows by fingerprint --------------------------------------------------------------------- */

static struct wr_sqlite_task_slot *task_slot_of(struct wr_sqlite *sqlite, uint64_t fingerprint)
{
    return &sqlite->tasks[fingerprint & (WR_SQLITE_TASK_CACHE - 1)];
}

void wr_sqlite_cache_task(struct wr_sqlite *sqlite, uint64_t fingerprint, int64_t id)
{
    *task_slot_of(sqlite, fingerprint) = (struct wr_sqlite_task_slot){fingerprint, id};
}

/* ---- found tasks ----------------------------------------------------------------------------- */

static int bind_found(struct wr_sqlite *sqlite, sqlite3_stmt *statement, int at, const struct wr_store_task_found *task)
{
    struct wr_sqlite_host_slot *host;
    int error = wr_sqlite_host_get(sqlite, task->host, &host);

    if (error != 0)
        return error;
    const int64_t numbers[] = {
        task->job,   host->id,  (int64_t)task->fingerprint, (int64_t)task->parent, task->priority,
        task->depth, task->hops};
    wr_sqlite_bind_numbers(statement, at, numbers, FOUND_COLUMNS - 1);
    wr_sqlite_bind_text(statement, at + FOUND_COLUMNS - 1, task->url);
    return 0;
}

/* Counts a task that became a new row. */
static int count_new(struct wr_sqlite *sqlite, const struct wr_store_task_found *task, int64_t id)
{
    struct wr_sqlite_job_counts *tally;
    struct wr_sqlite_host_slot *host;
    int error = wr_sqlite_counts_of_job(sqlite, task->job, &tally);

    if (error == 0)
        error = wr_sqlite_host_get(sqlite, task->host, &host);
    if (error != 0)
        return error;
    tally->queued++;
    if (task->ret_is_new != NULL)
        *task->ret_is_new = true;
    wr_sqlite_cache_task(sqlite, task->fingerprint, id);
    return wr_sqlite_host_count_task(sqlite, host, task->job);
}

/* Counts the new tasks if some were known. They are the newest rows, in the order of `tasks`. */
static int count_newest(struct wr_sqlite *sqlite, const struct wr_store_task_found *const *tasks, size_t count,
                        int64_t after_id)
{
    sqlite3_stmt *statement = sqlite->statements[WR_SQL_NEWEST_TASKS];
    int code = SQLITE_DONE, error = 0;

    (void)sqlite3_bind_int64(statement, 1, after_id);
    for (size_t i = 0; error == 0 && (code = sqlite3_step(statement)) == SQLITE_ROW; i++) {
        int64_t job = sqlite3_column_int64(statement, 1);
        uint64_t fingerprint = (uint64_t)sqlite3_column_int64(statement, 2);
        while (i < count && (tasks[i]->job != job || tasks[i]->fingerprint != fingerprint))
            i++;
        if (i == count)
            break;
        error = count_new(sqlite, tasks[i], sqlite3_column_int64(statement, 0));
    }
    (void)sqlite3_reset(statement);
    return error != 0 ? error : wr_sqlite_error(sqlite, code);
}

/* Inserts `count` found tasks with the statement `which`, which takes as many. */
static int insert_found_tasks(struct wr_sqlite *sqlite, enum wr_sqlite_statement which,
                              const struct wr_store_task_found *const *tasks, size_t count)
{
    int error = 0;

    for (size_t i = 0; i < count && error == 0; i++)
        error = bind_found(sqlite, sqlite->statements[which], 1 + (int)i * FOUND_COLUMNS, tasks[i]);
    if (error == 0)
        error = wr_sqlite_write(sqlite, which);
    if (error != 0)
        return error;
    size_t new_count = (size_t)sqlite3_changes(sqlite->db);
    int64_t after_id = sqlite3_last_insert_rowid(sqlite->db) - (int64_t)new_count;
    sqlite->ignored += count - new_count;
    if (new_count > 0 && new_count < count)
        return count_newest(sqlite, tasks, count, after_id);
    for (size_t i = 0; i < new_count && error == 0; i++)
        error = count_new(sqlite, tasks[i], after_id + 1 + (int64_t)i);
    return error;
}

int wr_sqlite_flush(struct wr_backend *backend)
{
    struct wr_sqlite *sqlite = wr_sqlite_of(backend);
    size_t count = sqlite->found_count;
    int error = 0;

    sqlite->found_count = 0;
    if (count == WR_SQLITE_FOUND_MANY)
        return insert_found_tasks(sqlite, WR_SQL_TASKS_FOUND, sqlite->found, count);
    for (size_t i = 0; i < count && error == 0; i++)
        error = insert_found_tasks(sqlite, WR_SQL_TASK_FOUND, sqlite->found + i, 1);
    return error;
}

int wr_sqlite_put_found(struct wr_sqlite *sqlite, const struct wr_store_task_found *task)
{
    struct wr_sqlite_job_counts *tally;
    int error = wr_sqlite_counts_of_job(sqlite, task->job, &tally);

    if (task->ret_is_new != NULL)
        *task->ret_is_new = false;
    if (task->ret_is_over_limit != NULL)
        *task->ret_is_over_limit = false;
    if (error != 0)
        return error;
    if (!tally->takes_tasks) {
        sqlite->ignored++;
        return 0;
    }
    sqlite->found[sqlite->found_count++] = task;
    return sqlite->found_count == WR_SQLITE_FOUND_MANY ? wr_sqlite_flush(&sqlite->backend) : 0;
}

/* Inserts the collected tasks if this task is among them. */
static int flush_task(struct wr_sqlite *sqlite, int64_t job, uint64_t fingerprint)
{
    for (size_t i = 0; i < sqlite->found_count; i++)
        if (sqlite->found[i]->fingerprint == fingerprint && sqlite->found[i]->job == job)
            return wr_sqlite_flush(&sqlite->backend);
    return 0;
}

/* ---- ended tasks ----------------------------------------------------------------------------- */

static void bind_visit(sqlite3_stmt *statement, const struct wr_store_visit *visit)
{
    const int64_t numbers[] = {visit->changes, wr_backend_ms(visit->since_wall_at),
                               wr_backend_ms(visit->visited_wall_at)};

    wr_sqlite_bind_text(statement, 11, visit->validator);
    wr_sqlite_bind_text(statement, 12, visit->digest);
    wr_sqlite_bind_numbers(statement, 13, numbers, 3);
}

static int write_ended(struct wr_sqlite *sqlite, enum wr_sqlite_statement which,
                       const struct wr_store_task_ended *ended, bool *ret_changed)
{
    sqlite3_stmt *statement = sqlite->statements[which];
    const int64_t numbers[] = {
        ended->job,      (int64_t)ended->fingerprint, ended->failed ? WR_TASK_FAILED : WR_TASK_DONE, ended->status,
        ended->attempts, (int64_t)ended->bytes};

    wr_sqlite_bind_numbers(statement, 1, numbers, 6);
    wr_sqlite_bind_text(statement, 7, ended->verdict);
    wr_sqlite_bind_text(statement, 8, ended->why);
    (void)sqlite3_bind_int64(statement, 9, sqlite->wall_ms);
    bind_visit(statement, &ended->visit);
    int error = wr_sqlite_write(sqlite, which);
    *ret_changed = error == 0 && sqlite3_changes(sqlite->db) > 0;
    return error;
}

/* Ends a task by its cached row id if that is still right, else by its fingerprint: slower. */
static int end_task(struct wr_sqlite *sqlite, const struct wr_store_task_ended *ended, bool *ret_changed)
{
    const struct wr_sqlite_task_slot *slot = task_slot_of(sqlite, ended->fingerprint);
    int error = 0;

    *ret_changed = false;
    if (slot->id != 0 && slot->fingerprint == ended->fingerprint) {
        (void)sqlite3_bind_int64(sqlite->statements[WR_SQL_TASK_ENDED_BY_ID], 10, slot->id);
        error = write_ended(sqlite, WR_SQL_TASK_ENDED_BY_ID, ended, ret_changed);
    }
    if (error == 0 && !*ret_changed)
        error = write_ended(sqlite, WR_SQL_TASK_ENDED, ended, ret_changed);
    return error;
}

int wr_sqlite_put_ended(struct wr_sqlite *sqlite, const struct wr_store_task_ended *ended)
{
    struct wr_sqlite_job_counts *tally;
    bool is_new = false;
    int error = flush_task(sqlite, ended->job, ended->fingerprint);

    if (error == 0)
        error = wr_sqlite_counts_of_job(sqlite, ended->job, &tally);
    if (error == 0)
        error = end_task(sqlite, ended, &is_new);
    if (error != 0)
        return error;
    if (ended->ret_is_refused != NULL)
        *ended->ret_is_refused = false;
    if (!is_new) {
        sqlite->ignored++;
        return 0;
    }
    tally->queued--;
    tally->done += !ended->failed;
    tally->failed += ended->failed;
    tally->bytes += (int64_t)ended->bytes;
    return 0;
}

int wr_sqlite_put_retry(struct wr_sqlite *sqlite, const struct wr_store_task_retry *retry)
{
    struct wr_sqlite_job_counts *tally;
    int error = flush_task(sqlite, retry->job, retry->fingerprint);

    if (error == 0)
        error = wr_sqlite_counts_of_job(sqlite, retry->job, &tally);
    if (error != 0)
        return error;
    const int64_t numbers[] = {retry->job, (int64_t)retry->fingerprint, retry->attempts, retry->status,
                               wr_backend_ms(retry->not_before_wall_at)};
    wr_sqlite_bind_numbers(sqlite->statements[WR_SQL_TASK_RETRY], 1, numbers, 5);
    error = wr_sqlite_write(sqlite, WR_SQL_TASK_RETRY);
    if (error == 0 && wr_sqlite_changed(sqlite)) {
        tally->retries++;
        tally->rejected += retry->status == TOO_MANY;
    }
    return error;
}

int wr_sqlite_put_changed(struct wr_sqlite *sqlite, const struct wr_store_page_changed *changed)
{
    int error = flush_task(sqlite, changed->job, changed->fingerprint);

    if (error != 0)
        return error;
    const int64_t numbers[] = {changed->job, (int64_t)changed->fingerprint, wr_backend_ms(changed->wall_at)};
    wr_sqlite_bind_numbers(sqlite->statements[WR_SQL_PAGE_CHANGED], 1, numbers, 3);
    return wr_sqlite_write(sqlite, WR_SQL_PAGE_CHANGED);
}
