/* SPDX-License-Identifier: MIT */
/* read.c - runs queries as SQL statements. */
#include "crawl/store/sqlite/sqlite.h"

/* ---- cells ---- */

static sqlite3_stmt *cells_statement(const struct wr_cells *cells)
{
    return cells->result;
}

static int64_t sqlite_cell_integer(const struct wr_cells *cells, int at)
{
    return sqlite3_column_int64(cells_statement(cells), at);
}

static double sqlite_cell_double(const struct wr_cells *cells, int at)
{
    return sqlite3_column_double(cells_statement(cells), at);
}

static struct wr_span sqlite_cell_bytes(const struct wr_cells *cells, int at)
{
    sqlite3_stmt *statement = cells_statement(cells);
    /* must precede the call for the size; does not convert text */
    const void *data = sqlite3_column_blob(statement, at);

    return (struct wr_span){data, data == NULL ? 0 : (size_t)sqlite3_column_bytes(statement, at)};
}

static bool sqlite_cell_is_text(const struct wr_cells *cells, int at)
{
    return sqlite3_column_type(cells_statement(cells), at) == SQLITE_TEXT;
}

const struct wr_cells_kind wr_sqlite_cells = {sqlite_cell_integer, sqlite_cell_double, sqlite_cell_bytes,
                                              sqlite_cell_is_text};

/* ---- queries ---- */

/* Returns the highest id of a task that the query may look at. */
static int64_t sqlite_scan_end(const struct wr_store_query *query)
{
    bool is_bounded = query->ret_next != NULL && query->after.id < INT64_MAX - WR_STORE_SCAN_MAX;
    return is_bounded ? query->after.id + WR_STORE_SCAN_MAX : INT64_MAX;
}

static enum wr_sqlite_statement query_statement(const struct wr_store_query *query)
{
    static const enum wr_sqlite_statement which[] = {
        [WR_STORE_JOBS] = WR_SQL_READ_JOBS,
        [WR_STORE_TASKS] = WR_SQL_READ_TASKS,
        [WR_STORE_FINGERPRINTS] = WR_SQL_READ_FINGERPRINTS,
        [WR_STORE_HOSTS] = WR_SQL_READ_HOSTS,
        [WR_STORE_ONE_HOST] = WR_SQL_READ_HOST,
        [WR_STORE_ONE_ROBOTS] = WR_SQL_READ_ROBOTS,
        [WR_STORE_OUTPUTS] = WR_SQL_READ_OUTPUTS,
        [WR_STORE_SEEDS] = WR_SQL_READ_SEEDS,
        [WR_STORE_ONE_TASK] = WR_SQL_READ_ONE_TASK,
        [WR_STORE_ALL_TASKS] = WR_SQL_READ_ALL_TASKS,
        [WR_STORE_ALL_HOSTS] = WR_SQL_READ_ALL_HOSTS,
        [WR_STORE_FETCHED_HOSTS] = WR_SQL_READ_FETCHED_HOSTS,
        [WR_STORE_REPORTS] = WR_SQL_READ_REPORTS,
        [WR_STORE_CLAIM] = WR_SQL_READ_CLAIM,
        [WR_STORE_SUMS] = WR_SQL_READ_SUMS,
    };
    if (query->what == WR_STORE_TASKS && query->earlier != 0)
        return WR_SQL_READ_RECRAWL_TASKS;
    if (query->what == WR_STORE_ALL_TASKS && query->has_lines)
        return WR_SQL_READ_LINES;
    return which[query->what];
}

/* Returns the statement of the query with its parameters bound. */
static sqlite3_stmt *bind_query(struct wr_sqlite *sqlite, const struct wr_store_query *query, int64_t wall_now)
{
    sqlite3_stmt *statement = sqlite->statements[query_statement(query)];

    switch (query->what) {
    case WR_STORE_JOBS:
        (void)sqlite3_bind_int64(statement, 1, query->after.id);
        (void)sqlite3_bind_int64(statement, 2, query->job);
        break;
    case WR_STORE_TASKS:
        (void)sqlite3_bind_int64(statement, 1, query->job);
        wr_sqlite_bind_text(statement, 2, query->key);
        (void)sqlite3_bind_int64(statement, 3, query->after.priority);
        (void)sqlite3_bind_int64(statement, 4, query->after.id);
        if (query->earlier != 0)
            (void)sqlite3_bind_int64(statement, 5, query->earlier);
        break;
    case WR_STORE_FINGERPRINTS:
    case WR_STORE_SEEDS:
    case WR_STORE_HOSTS:
    case WR_STORE_CLAIM:
    case WR_STORE_ONE_TASK:
    case WR_STORE_ALL_TASKS:
    case WR_STORE_ALL_HOSTS:
    case WR_STORE_REPORTS:
    case WR_STORE_SUMS:
        (void)sqlite3_bind_int64(statement, 1, query->what == WR_STORE_ALL_HOSTS ? 0 : query->job);
        (void)sqlite3_bind_int64(statement, 2, query->after.id);
        if (query->what == WR_STORE_ALL_TASKS || query->what == WR_STORE_SUMS)
            wr_sqlite_bind_numbers(statement, 3, (const int64_t[]){query->earlier, sqlite_scan_end(query)}, 2);
        if (query->what == WR_STORE_REPORTS)
            (void)sqlite3_bind_int64(statement, 3, query->limit > 0 ? (int64_t)query->limit : -1);
        break;
    case WR_STORE_ONE_HOST:
    case WR_STORE_ONE_ROBOTS:
        wr_sqlite_bind_text(statement, 1, query->key);
        if (query->what == WR_STORE_ONE_HOST)
            (void)sqlite3_bind_int64(statement, 2, query->job);
        break;
    case WR_STORE_FETCHED_HOSTS:
        wr_sqlite_bind_numbers(statement, 1, (const int64_t[]){query->job, wr_backend_ms(wall_now)}, 2);
        break;
    default:
        (void)sqlite3_bind_int64(statement, 1, query->job);
        break;
    }
    return statement;
}

/* Returns the tasks of a host whose row is invalid: no query by the host's key finds them. */
static void sqlite_report_stranded(struct wr_sqlite *sqlite, const struct wr_store_query *query, int64_t host,
                                   int64_t wall_now)
{
    sqlite3_stmt *statement = sqlite->statements[WR_SQL_READ_STRANDED];
    const struct wr_cells cells = {.kind = &wr_sqlite_cells, .result = statement};

    wr_sqlite_bind_numbers(statement, 1, (const int64_t[]){query->job, host}, 2);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        struct wr_store_row row = {.what = WR_STORE_TASKS};
        if (!wr_row_task(&cells, query, wall_now, &row.task))
            row.task.url = (struct wr_span){NULL, 0};
        query->row(query->context, &row);
    }
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
}

/* Handles an invalid row. Returns true if it gave a row: an invalid task is given without its URL,
 * because a task that never ends would keep its job from ending. */
static bool report_damaged_row(struct wr_sqlite *sqlite, sqlite3_stmt *statement, const struct wr_store_query *query,
                               struct wr_store_row *row, int64_t wall_now)
{
    sqlite->backend.damaged++;
    if (query->what == WR_STORE_HOSTS || query->what == WR_STORE_CLAIM)
        sqlite_report_stranded(sqlite, query, sqlite3_column_int64(statement, 0), wall_now);
    if (query->what != WR_STORE_TASKS)
        return false;
    row->task.url = (struct wr_span){NULL, 0};
    query->row(query->context, row);
    return true;
}

static int step_to_number(struct wr_sqlite *sqlite, sqlite3_stmt *statement, int64_t *ret_number)
{
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        *ret_number = sqlite3_column_int64(statement, 0);
    (void)sqlite3_reset(statement);
    return code == SQLITE_ROW ? 0 : wr_sqlite_error(sqlite, code);
}

/* Sets *ret_next. `last` is the row at which the limit was reached; 0 if the query went as far as
 * it may. If it met no task of the job, the tasks of other jobs that follow are skipped at once.
 * That is rare, because the tasks of jobs seldom alternate. */
static int sqlite_find_next_scan(struct wr_sqlite *sqlite, const struct wr_store_query *query, int64_t last,
                                 bool met_none)
{
    sqlite3_stmt *after = sqlite->statements[WR_SQL_READ_NEXT_TASK];
    int64_t end = last != 0 ? last : sqlite_scan_end(query), newest = 0, next = 0;
    int error = step_to_number(sqlite, sqlite->statements[WR_SQL_READ_LAST_TASK], &newest);

    if (error == 0 && met_none && end < newest) {
        wr_sqlite_bind_numbers(after, 1, (const int64_t[]){query->job, end}, 2);
        error = step_to_number(sqlite, after, &next);
        end = next > 0 ? next - 1 : newest;
    }
    if (error == 0)
        *query->ret_next = end < newest ? end : 0;
    return error;
}

int wr_sqlite_read(struct wr_backend *backend, const struct wr_store_query *query, int64_t wall_now)
{
    struct wr_sqlite *sqlite = wr_sqlite_of(backend);
    size_t count = 0;
    int64_t last = 0;
    int code = SQLITE_DONE;

    if (query->what == WR_STORE_CHECK)
        return wr_sqlite_check(sqlite, query);
    if (query->what == WR_STORE_RENEW || query->what == WR_STORE_RELEASE || query->what == WR_STORE_CLAIM_ONE ||
        query->what == WR_STORE_NODES) /* no other process has the file */
        return 0;
    sqlite3_stmt *statement = bind_query(sqlite, query, wall_now);
    const struct wr_cells cells = {.kind = &wr_sqlite_cells, .result = statement};
    while ((query->limit == 0 || count < query->limit) && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        struct wr_store_row row;
        if (wr_row_read(&cells, query, wall_now, &row)) {
            if (query->only_stranded)
                continue;
            if (query->what == WR_STORE_TASKS)
                wr_sqlite_cache_task(sqlite, row.task.fingerprint, row.task.id);
            if (query->what == WR_STORE_CLAIM)
                row.host.leased_until = WEIR_FOREVER;
            query->row(query->context, &row);
            count++;
            last = query->what == WR_STORE_ALL_TASKS && count == query->limit ? row.task.id : 0;
        } else {
            count += report_damaged_row(sqlite, statement, query, &row, wall_now);
        }
    }
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    int error = wr_sqlite_error(sqlite, code);
    if (error == 0 && query->what == WR_STORE_TASKS && query->ret_accepted != NULL)
        error = wr_sqlite_host_task_count(sqlite, query->job, query->key, query->ret_accepted);
    if (error == 0 && query->ret_next != NULL)
        error = sqlite_find_next_scan(sqlite, query, last, count == 0);
    return error;
}
