/* SPDX-License-Identifier: MIT */
/* read.c - queries as statements. */
#include "shell/store/sqlite/sqlite.h"

#define CONDEMN_AT_ONCE 256 /* further ones are met again */

/* Which statement, ready to be stepped. */
static sqlite3_stmt *prepare(struct wr_sqlite *sqlite, const struct wr_store_query *query)
{
    static const enum wr_statement which[] = {
        [WR_STORE_JOBS] = WR_SQL_READ_JOBS,       [WR_STORE_TASKS] = WR_SQL_READ_TASKS,
        [WR_STORE_KNOWN] = WR_SQL_READ_KNOWN,     [WR_STORE_HOSTS] = WR_SQL_READ_HOSTS,
        [WR_STORE_ONE_HOST] = WR_SQL_READ_HOST,   [WR_STORE_ONE_ROBOTS] = WR_SQL_READ_ROBOTS,
        [WR_STORE_OUTPUTS] = WR_SQL_READ_OUTPUTS, [WR_STORE_SEEDS] = WR_SQL_READ_SEEDS,
    };
    sqlite3_stmt *statement = sqlite->statements[which[query->what]];

    switch (query->what) {
    case WR_STORE_JOBS:
        (void)sqlite3_bind_int64(statement, 1, query->after.id);
        (void)sqlite3_bind_int64(statement, 2, query->job);
        break;
    case WR_STORE_TASKS:
        (void)sqlite3_bind_int64(statement, 1, query->job);
        wr_bind_text(statement, 2, query->key);
        (void)sqlite3_bind_int64(statement, 3, query->after.priority);
        (void)sqlite3_bind_int64(statement, 4, query->after.id);
        break;
    case WR_STORE_KNOWN:
    case WR_STORE_SEEDS:
    case WR_STORE_HOSTS:
        (void)sqlite3_bind_int64(statement, 1, query->job);
        (void)sqlite3_bind_int64(statement, 2, query->after.id);
        break;
    case WR_STORE_ONE_HOST:
    case WR_STORE_ONE_ROBOTS:
        wr_bind_text(statement, 1, query->key);
        break;
    case WR_STORE_OUTPUTS:
    case WR_STORE_CHECK:
        (void)sqlite3_bind_int64(statement, 1, query->job);
        break;
    }
    return statement;
}

static bool decode(sqlite3_stmt *statement, const struct wr_store_query *query, int64_t wall_now,
                   struct wr_store_row *ret_row)
{
    ret_row->what = query->what;
    switch (query->what) {
    case WR_STORE_JOBS:
        return wr_row_job(statement, &ret_row->job);
    case WR_STORE_TASKS:
        return wr_row_task(statement, query, wall_now, &ret_row->task);
    case WR_STORE_KNOWN:
        ret_row->task = (struct wr_store_task){.fingerprint = (uint64_t)sqlite3_column_int64(statement, 0)};
        return true;
    case WR_STORE_SEEDS:
        return wr_row_seed(statement, &ret_row->task);
    case WR_STORE_HOSTS:
    case WR_STORE_ONE_HOST:
        return wr_row_host(statement, &ret_row->host);
    case WR_STORE_ONE_ROBOTS:
        return wr_row_robots(statement, &ret_row->robots);
    case WR_STORE_OUTPUTS:
        return wr_row_output(statement, &ret_row->output);
    case WR_STORE_CHECK:
        break;
    }
    return false;
}

int wr_sqlite_read(struct wr_backend *backend, const struct wr_store_query *query, int64_t wall_now)
{
    struct wr_sqlite *sqlite = wr_sqlite_of(backend);
    int64_t bad[CONDEMN_AT_ONCE];
    size_t good_count = 0, bad_count = 0;
    int code = SQLITE_DONE;

    if (query->what == WR_STORE_CHECK)
        return wr_sqlite_check(sqlite, query);
    sqlite3_stmt *statement = prepare(sqlite, query);
    while ((query->limit == 0 || good_count < query->limit) && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        struct wr_store_row row;
        if (decode(statement, query, wall_now, &row)) {
            if (query->what == WR_STORE_TASKS)
                wr_sqlite_task_note(sqlite, row.task.fingerprint, row.task.id);
            query->row(query->context, &row);
            good_count++;
        } else {
            backend->damaged++;
            if (bad_count < CONDEMN_AT_ONCE)
                bad[bad_count++] = sqlite3_column_int64(statement, 0);
        }
    }
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    if (bad_count > 0 && (query->what == WR_STORE_TASKS || query->what == WR_STORE_HOSTS)) {
        enum wr_statement which = query->what == WR_STORE_TASKS ? WR_SQL_CONDEMN_TASK : WR_SQL_CONDEMN_HOST;
        (void)wr_sqlite_condemn(sqlite, which, query->job, bad, bad_count, wall_now); /* or they are met again */
    }
    int error = wr_sqlite_error(sqlite, code);
    if (error == 0 && query->what == WR_STORE_TASKS && query->ret_accepted != NULL)
        error = wr_sqlite_host_accepted(sqlite, query->job, query->key, query->ret_accepted);
    return error;
}
