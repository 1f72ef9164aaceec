/* SPDX-License-Identifier: MIT */
/* check.c - checks that the file is sound and its counters agree with its rows. Reads all of it. */
#include "crawl/store/sqlite/sqlite.h"

/* Each query returns one text per fault. */
static const char *const checks[] = {
    "SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check != 'ok'",
    "SELECT 'job ' || j.id || ': its counters do not agree with its tasks' FROM jobs AS j"
    " LEFT JOIN (SELECT job, sum(state = 0) AS queued, sum(state = 1) AS done, sum(state = 2) AS failed,"
    "   sum(bytes) AS bytes FROM tasks GROUP BY job) AS t ON t.job = j.id"
    " WHERE (j.queued, j.done, j.failed, j.bytes) IS NOT"
    "   (ifnull(t.queued, 0), ifnull(t.done, 0), ifnull(t.failed, 0), ifnull(t.bytes, 0))",
    "SELECT 'job ' || job || ', host ' || host || ': the tasks accepted do not agree with its tasks' FROM"
    " (SELECT job, host, count(*) AS count FROM tasks GROUP BY job, host"
    "  UNION ALL SELECT job, host, -tasks FROM accepted) GROUP BY job, host HAVING sum(count) != 0",
    "SELECT 'task ' || id || ': it has no such host' FROM tasks WHERE host NOT IN (SELECT id FROM hosts)",
    "SELECT 'task ' || id || ': it has no such job' FROM tasks WHERE job NOT IN (SELECT id FROM jobs)",
    "SELECT 'task ' || id || ': it ended without a verdict' FROM tasks WHERE state != 0 AND verdict = ''",
    "SELECT 'task ' || id || ': it has no such state' FROM tasks WHERE state NOT IN (0, 1, 2)",
    "SELECT 'robots.txt ' || url || ': text_bytes is not its length' FROM robots WHERE text_bytes != length(text)",
};

static int run_damage_check(struct wr_sqlite *sqlite, const char *sql, const struct wr_store_query *query,
                            size_t *count)
{
    sqlite3_stmt *statement;
    int code = sqlite3_prepare_v2(sqlite->db, sql, -1, &statement, NULL);

    if (code != SQLITE_OK)
        return code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        struct wr_store_row row = {.what = WR_STORE_CHECK};
        if (query->limit != 0 && *count == query->limit)
            break;
        row.text.data = (const char *)sqlite3_column_text(statement, 0);
        row.text.bytes = (size_t)sqlite3_column_bytes(statement, 0);
        query->row(query->context, &row);
        ++*count;
    }
    (void)sqlite3_finalize(statement);
    return code;
}

int wr_sqlite_check(struct wr_sqlite *sqlite, const struct wr_store_query *query)
{
    size_t count = 0;
    int error = sqlite3_get_autocommit(sqlite->db) == 0 ? wr_sqlite_write_pending(sqlite) : 0;

    for (size_t i = 0; i < sizeof checks / sizeof checks[0] && error == 0; i++)
        error = wr_sqlite_error(sqlite, run_damage_check(sqlite, checks[i], query, &count));
    return error;
}
