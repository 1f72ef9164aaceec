/* SPDX-License-Identifier: MIT */
/* schema.c - the tables, the steps that update older files, and the statements.
 *
 * A step takes a file from one version to the next. Steps are never changed once released: write a
 * new one, raise WR_SQLITE_VERSION, and keep a file of the version before in tests/store/data.
 *
 * Times are in milliseconds; instants since 1970. A queued task is found by its host through
 * tasks_queued, which holds only queued tasks and ends with the task's id; any task is found by its
 * fingerprint.
 */
#include "base/buf.h"
#include "crawl/store/sqlite/sqlite.h"

const char *const wr_sqlite_steps[WR_SQLITE_VERSION] = {
    /* 0 to 1: the first tables */
    "CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;"
    "CREATE TABLE jobs ("
    "  id INTEGER PRIMARY KEY,"
    "  status TEXT NOT NULL,"
    "  why TEXT NOT NULL DEFAULT '',"
    "  settings TEXT NOT NULL DEFAULT '',"
    "  created_at_ms INTEGER NOT NULL,"
    "  updated_at_ms INTEGER NOT NULL,"
    "  queued INTEGER NOT NULL DEFAULT 0,"
    "  done INTEGER NOT NULL DEFAULT 0,"
    "  failed INTEGER NOT NULL DEFAULT 0,"
    "  bytes INTEGER NOT NULL DEFAULT 0,"
    "  retries INTEGER NOT NULL DEFAULT 0,"
    "  rejected INTEGER NOT NULL DEFAULT 0) STRICT;"
    "CREATE TABLE hosts ("
    "  id INTEGER PRIMARY KEY,"
    "  host TEXT NOT NULL UNIQUE,"
    "  adaptive_delay_seconds INTEGER NOT NULL DEFAULT 0,"
    "  adaptive_delay_floor_seconds INTEGER NOT NULL DEFAULT 0,"
    "  adaptive_delay_ms INTEGER NOT NULL DEFAULT 0,"
    "  adaptive_delay_floor_ms INTEGER NOT NULL DEFAULT 0,"
    "  robots_delay_ms INTEGER NOT NULL DEFAULT 0,"
    "  retry_at_ms INTEGER NOT NULL DEFAULT 0,"
    "  updated_at_ms INTEGER NOT NULL DEFAULT 0,"
    "  rate REAL NOT NULL DEFAULT 0,"
    "  cap INTEGER NOT NULL DEFAULT 0,"
    "  traits INTEGER NOT NULL DEFAULT 0,"
    "  block_ms INTEGER NOT NULL DEFAULT 0,"
    "  breaker_open INTEGER NOT NULL DEFAULT 0) STRICT;"
    "CREATE TABLE tasks ("
    "  id INTEGER PRIMARY KEY,"
    "  job INTEGER NOT NULL,"
    "  host INTEGER NOT NULL,"
    "  fingerprint INTEGER NOT NULL,"
    "  parent INTEGER NOT NULL,"
    "  state INTEGER NOT NULL DEFAULT 0,"
    "  priority INTEGER NOT NULL,"
    "  depth INTEGER NOT NULL,"
    "  hops INTEGER NOT NULL,"
    "  attempts INTEGER NOT NULL DEFAULT 0,"
    "  not_before_ms INTEGER NOT NULL DEFAULT 0,"
    "  status INTEGER NOT NULL DEFAULT 0,"
    "  bytes INTEGER NOT NULL DEFAULT 0,"
    "  verdict TEXT NOT NULL DEFAULT '',"
    "  why TEXT NOT NULL DEFAULT '',"
    "  url TEXT NOT NULL) STRICT;"
    "CREATE UNIQUE INDEX tasks_known ON tasks (job, fingerprint);"
    "CREATE INDEX tasks_queued ON tasks (job, host, priority) WHERE state = 0;"
    "CREATE INDEX tasks_seeds ON tasks (job) WHERE depth = 0;"
    "CREATE TABLE robots ("
    "  url TEXT PRIMARY KEY,"
    "  kind INTEGER NOT NULL,"
    "  text BLOB NOT NULL,"
    "  etag BLOB NOT NULL,"
    "  modified BLOB NOT NULL,"
    "  max_age_ms INTEGER NOT NULL,"
    "  fetched_at_ms INTEGER NOT NULL) STRICT;"
    "CREATE TABLE accepted (job INTEGER NOT NULL, host INTEGER NOT NULL, tasks INTEGER NOT NULL,"
    "  PRIMARY KEY (job, host)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE outputs (job INTEGER NOT NULL, path TEXT NOT NULL, bytes INTEGER NOT NULL,"
    "  PRIMARY KEY (job, path)) STRICT, WITHOUT ROWID;",
    /* 1 to 2: hosts whose firewall rejects the crawler */
    "ALTER TABLE hosts ADD COLUMN blocked_until_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE hosts ADD COLUMN blocked_by TEXT NOT NULL DEFAULT '';",
    /* 2 to 3: users' settings of a host, and the time when a task ended */
    "ALTER TABLE hosts ADD COLUMN paused INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE hosts ADD COLUMN set_interval_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE tasks ADD COLUMN ended_at_ms INTEGER NOT NULL DEFAULT 0;",
    /* 3 to 4: the report of each run of a job */
    "CREATE TABLE reports (job INTEGER NOT NULL, run INTEGER NOT NULL, ended_at_ms INTEGER NOT NULL,"
    "  report TEXT NOT NULL, PRIMARY KEY (job, run)) STRICT;",
    /* 4 to 5: the last visit of a page, for jobs that visit it again */
    "ALTER TABLE jobs ADD COLUMN earlier INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE tasks ADD COLUMN validator TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE tasks ADD COLUMN digest TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE tasks ADD COLUMN changes INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE tasks ADD COLUMN since_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE tasks ADD COLUMN visited_at_ms INTEGER NOT NULL DEFAULT 0;",
    /* 5 to 6: a limit for the sum of robots.txt texts */
    "ALTER TABLE robots ADD COLUMN text_bytes INTEGER NOT NULL DEFAULT 0;"
    "DELETE FROM robots WHERE length(text) > 131072;" /* value of WR_STORE_ROBOTS_MAX */
    "UPDATE robots SET text_bytes = length(text);"
    "CREATE INDEX robots_kept ON robots (fetched_at_ms, text_bytes) WHERE text_bytes > 0;",
};

#define FOUR(row) row ", " row ", " row ", " row
#define FOUND_INTO "INSERT OR IGNORE INTO tasks (job, host, fingerprint, parent, priority, depth, hops, url) VALUES "
#define FOUND_ROW "(?, ?, ?, ?, ?, ?, ?, ?)"
#define ENDED_SET                                                                                                    \
    "UPDATE tasks SET state = ?3, status = ?4, attempts = ?5, bytes = ?6, verdict = ?7, why = ?8, ended_at_ms = ?9," \
    " validator = ?11, digest = ?12, changes = ?13, since_ms = ?14, visited_at_ms = ?15 WHERE "
#define VISIT(t)                                                                                                    \
    t ".validator, " t ".digest, " t ".changes, iif(" t ".since_ms > 0, " t ".since_ms, " t ".ended_at_ms), iif(" t \
      ".visited_at_ms > 0, " t ".visited_at_ms, " t ".ended_at_ms)"
#define EARLIER(job) " LEFT JOIN tasks AS e ON e.job = " job " AND e.fingerprint = t.fingerprint"
#define QUEUED_TASKS(more, joined)                                                                           \
    "SELECT t.id, t.fingerprint, t.parent, t.priority, t.depth, t.attempts, t.not_before_ms, t.url, p.url, " \
    "t.hops" more " FROM tasks AS t INDEXED BY tasks_queued"                                                 \
    " LEFT JOIN tasks AS p ON t.parent != 0 AND p.job = ?1 AND p.fingerprint = t.parent" joined              \
    " WHERE t.job = ?1 AND t.state = 0"
#define OF_HOST                                                                              \
    " AND t.host = (SELECT id FROM hosts WHERE host = ?2) AND (t.priority, t.id) > (?3, ?4)" \
    " ORDER BY t.priority, t.id"
#define SOME_TASKS(referrer, before, more, joined)                                                             \
    "SELECT t.id, t.fingerprint, t.parent, t.priority, t.depth, t.attempts, t.not_before_ms, t.url, " referrer \
    ", t.hops, t.state, t.status, t.bytes, t.verdict, t.why, t.ended_at_ms, h.host, " before                   \
    ", " VISIT("t") ", e.verdict, " VISIT("e") more                                                            \
        " FROM tasks AS t NOT INDEXED LEFT JOIN hosts AS h ON h.id = t.host" EARLIER("?3") joined " WHERE "
#define ANY_TASKS(before) SOME_TASKS("NULL", before, "", "")
#define PARENT " LEFT JOIN tasks AS p ON t.parent != 0 AND p.job = ?1 AND p.fingerprint = t.parent"
#define WALK "t.id > ?2 AND t.id <= ?4 AND t.job = ?1"
/* Counts the tasks ahead of a queued task in its host's queue, at most 100 000. */
#define COUNT_BEFORE                                                                                       \
    "CASE t.state WHEN 0 THEN (SELECT count(*) FROM (SELECT 1 FROM tasks AS q INDEXED BY tasks_queued"     \
    " WHERE q.job = t.job AND q.host = t.host AND q.state = 0 AND (q.priority, q.id) < (t.priority, t.id)" \
    " LIMIT 100000)) ELSE 0 END"
#define NOBODYS ", NULL, 0, 0" /* a file has no leases */
#define QUEUED_HOSTS(more)                                                                           \
    "SELECT q.host, h.host, q.queued, " WR_SQLITE_MEMORY_COLUMNS WR_SQLITE_HOST_COLUMNS more " FROM" \
    " (SELECT host, count(*) AS queued FROM tasks INDEXED BY tasks_queued"                           \
    "  WHERE job = ?1 AND state = 0 AND host > ?2 GROUP BY host ORDER BY host) AS q"                 \
    " LEFT JOIN hosts AS h ON h.id = q.host"
#define ACCEPTED_INTO "INSERT INTO accepted (job, host, tasks) VALUES "
#define ACCEPTED_ROW "(?, ?, ?)"
#define ACCEPTED_ADDS " ON CONFLICT (job, host) DO UPDATE SET tasks = tasks + excluded.tasks"

_Static_assert(WR_SQLITE_FOUND_MANY == 4 * 4 && WR_SQLITE_ACCEPTED_MANY == 4 * 4,
               "FOUR(FOUR()) must have as many rows");

static const char *const sql[WR_SQL_COUNT] = {
    [WR_SQL_BEGIN] = "BEGIN IMMEDIATE",
    [WR_SQL_COMMIT] = "COMMIT",
    [WR_SQL_ROLLBACK] = "ROLLBACK",
    [WR_SQL_TASK_FOUND] = FOUND_INTO FOUND_ROW,
    [WR_SQL_TASKS_FOUND] = FOUND_INTO FOUR(FOUR(FOUND_ROW)),
    [WR_SQL_NEWEST_TASKS] = "SELECT id, job, fingerprint FROM tasks WHERE id > ?1 ORDER BY id",
    [WR_SQL_TASK_ENDED] = ENDED_SET "job = ?1 AND fingerprint = ?2 AND state = 0",
    [WR_SQL_TASK_ENDED_BY_ID] = ENDED_SET "id = ?10 AND +job = ?1 AND +fingerprint = ?2 AND state = 0",
    [WR_SQL_TASK_RETRY] = "UPDATE tasks SET attempts = ?3, status = ?4, not_before_ms = ?5"
                          " WHERE job = ?1 AND fingerprint = ?2 AND state = 0 AND attempts < ?3",
    [WR_SQL_PAGE_CHANGED] = "UPDATE tasks SET not_before_ms = ?3"
                            " WHERE job = ?1 AND fingerprint = ?2 AND state = 0 AND not_before_ms < ?3",
    [WR_SQL_SET_JOB_STATUS] = "UPDATE jobs SET status = ?2, why = ?3, updated_at_ms = ?4 WHERE id = ?1",
    [WR_SQL_OUTPUT] = "INSERT INTO outputs (job, path, bytes) VALUES (?1, ?2, ?3)"
                      " ON CONFLICT (job, path) DO UPDATE SET bytes = excluded.bytes",
    [WR_SQL_ROBOTS] =
        "INSERT OR REPLACE INTO robots (url, kind, text, etag, modified, max_age_ms, fetched_at_ms, text_bytes)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, length(?3))",
    [WR_SQL_ROBOTS_SAME] = "UPDATE robots SET max_age_ms = ?2, fetched_at_ms = ?3 WHERE url = ?1",
    [WR_SQL_ROBOTS_GONE] = "DELETE FROM robots WHERE url = ?1",
    [WR_SQL_ROBOTS_BYTES] = WR_BACKEND_ROBOTS_BYTES,
    [WR_SQL_ROBOTS_TRIM] = "DELETE FROM robots WHERE " WR_BACKEND_OLD_ROBOTS("?1"),
    [WR_SQL_HOST] =
        "INSERT INTO hosts (host, adaptive_delay_seconds, adaptive_delay_floor_seconds, " WR_SQLITE_MEMORY_COLUMNS
        ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) ON CONFLICT (host) DO UPDATE SET"
        " adaptive_delay_seconds = ?2, adaptive_delay_floor_seconds = ?3, adaptive_delay_ms = ?4,"
        " adaptive_delay_floor_ms = ?5, robots_delay_ms = ?6, retry_at_ms = ?7, updated_at_ms = ?8,"
        " rate = ?9, cap = ?10, traits = ?11, block_ms = ?12, breaker_open = ?13",
    [WR_SQL_HOST_BLOCK] = "INSERT INTO hosts (host, blocked_until_ms, blocked_by) VALUES (?1, ?2, ?3)"
                          " ON CONFLICT (host) DO UPDATE SET blocked_until_ms = ?2, blocked_by = ?3",
    [WR_SQL_HOST_SETTING] =
        "INSERT INTO hosts (host, paused, set_interval_ms) VALUES (?1, max(?2, 0), max(?3, 0)) ON CONFLICT (host)"
        " DO UPDATE SET paused = iif(?2 < 0, paused, ?2), set_interval_ms = iif(?3 < 0, set_interval_ms, ?3)",
    [WR_SQL_HOST_ADD] = "INSERT INTO hosts (host) VALUES (?1)",
    [WR_SQL_HOST_ID] = "SELECT id FROM hosts WHERE host = ?1",
    [WR_SQL_ACCEPTED] = ACCEPTED_INTO ACCEPTED_ROW ACCEPTED_ADDS,
    [WR_SQL_ACCEPTED_MANY] = ACCEPTED_INTO FOUR(FOUR(ACCEPTED_ROW)) ACCEPTED_ADDS,
    [WR_SQL_JOB_ADD] =
        "INSERT INTO jobs (status, settings, created_at_ms, updated_at_ms, earlier) VALUES ('pending', ?1, ?2, ?2, ?3)",
    [WR_SQL_JOB_STATUS] = "SELECT status IN ('pending', 'running') FROM jobs WHERE id = ?1",
    [WR_SQL_JOB_COUNTS] = "UPDATE jobs SET queued = queued + ?2, done = done + ?3, failed = failed + ?4,"
                          " bytes = bytes + ?5, retries = retries + ?6, rejected = rejected + ?7, updated_at_ms = ?8"
                          " WHERE id = ?1",
    [WR_SQL_REPORT] = "INSERT INTO reports (job, run, ended_at_ms, report)"
                      " SELECT ?1, coalesce(max(run), 0) + 1, ?2, ?3 FROM reports WHERE job = ?1",
    [WR_SQL_REPORTS_TRIM] = "DELETE FROM reports WHERE job = ?1"
                            " AND run <= (SELECT max(run) FROM reports WHERE job = ?1) - ?2",
    [WR_SQL_READ_JOBS] = "SELECT id, status, why, settings, created_at_ms, updated_at_ms, queued, done, failed, bytes,"
                         " retries, rejected, earlier, 0 FROM jobs WHERE id > ?1 AND (?2 = 0 OR id = ?2) ORDER BY id",
    [WR_SQL_READ_TASKS] = QUEUED_TASKS("", "") OF_HOST,
    [WR_SQL_READ_RECRAWL_TASKS] = QUEUED_TASKS(", e.verdict, " VISIT("e"), EARLIER("?5")) OF_HOST,
    [WR_SQL_READ_STRANDED] = QUEUED_TASKS("", "") " AND t.host = ?2",
    [WR_SQL_READ_ACCEPTED] = "SELECT tasks FROM accepted WHERE job = ?1"
                             " AND host = (SELECT id FROM hosts WHERE host = ?2)",
    [WR_SQL_READ_FINGERPRINTS] =
        "SELECT fingerprint FROM tasks INDEXED BY tasks_known WHERE job = ?1 AND fingerprint > ?2"
        " ORDER BY fingerprint",
    [WR_SQL_READ_SEEDS] = "SELECT url, hops, id FROM tasks INDEXED BY tasks_seeds WHERE job = ?1 AND depth = 0"
                          " AND id > ?2 ORDER BY id",
    /* Includes hosts without a row, so that the damage is noticed. */
    [WR_SQL_READ_HOSTS] = QUEUED_HOSTS(NOBODYS),
    [WR_SQL_READ_CLAIM] = QUEUED_HOSTS(", 1, 0, 0"),
    [WR_SQL_READ_HOST] =
        "SELECT id, host, (SELECT count(*) FROM (SELECT 1 FROM tasks AS q INDEXED BY tasks_queued"
        " WHERE q.job = ?2 AND q.host = hosts.id AND q.state = 0 LIMIT 100000)), " WR_SQLITE_MEMORY_COLUMNS
            WR_SQLITE_HOST_COLUMNS NOBODYS " FROM hosts WHERE host = ?1",
    [WR_SQL_READ_ALL_HOSTS] = "SELECT id, host, 0, " WR_SQLITE_MEMORY_COLUMNS WR_SQLITE_HOST_COLUMNS NOBODYS
                              " FROM hosts WHERE id > ?2 AND ?1 = 0 ORDER BY id",
    [WR_SQL_READ_ONE_TASK] =
        ANY_TASKS(COUNT_BEFORE) "t.id = (SELECT id FROM tasks WHERE job = ?1 AND fingerprint = ?2)",
    [WR_SQL_READ_ALL_TASKS] = ANY_TASKS("0") WALK " ORDER BY t.id",
    [WR_SQL_READ_LINES] = SOME_TASKS("p.url", "0", ", NULL", PARENT) WALK " ORDER BY t.id",
    [WR_SQL_READ_SUMS] = "SELECT h.host, t.state, t.status, t.verdict, count(*), sum(t.bytes), sum(t.attempts),"
                         " min(nullif(t.ended_at_ms, 0)), max(t.ended_at_ms)"
                         " FROM tasks AS t NOT INDEXED LEFT JOIN hosts AS h ON h.id = t.host WHERE " WALK
                         " GROUP BY t.host, t.state, t.status, t.verdict",
    [WR_SQL_READ_LAST_TASK] = "SELECT coalesce(max(id), 0) FROM tasks",
    [WR_SQL_READ_NEXT_TASK] =
        "SELECT coalesce(min(id), 0) FROM tasks INDEXED BY tasks_known WHERE job = ?1 AND id > ?2",
    [WR_SQL_READ_ROBOTS] =
        "SELECT url, kind, text, etag, modified, max_age_ms, fetched_at_ms FROM robots WHERE url = ?1",
    [WR_SQL_READ_FETCHED_HOSTS] =
        "SELECT h.id, h.host FROM tasks AS t JOIN hosts AS h ON h.id = t.host WHERE t.job = ?1"
        " AND t.state = 1 AND t.verdict IN ('fetched', 'too_large', 'unchanged') AND h.blocked_until_ms <= ?2",
    [WR_SQL_READ_REPORTS] = "SELECT job, run, ended_at_ms, report FROM reports WHERE rowid IN"
                            " (SELECT rowid FROM reports WHERE (?1 = 0 OR job = ?1) AND (?2 = 0 OR run = ?2)"
                            " ORDER BY ended_at_ms DESC, job DESC, run DESC LIMIT ?3)"
                            /* texts are long, so only those wanted are read */
                            " ORDER BY ended_at_ms DESC, job DESC, run DESC",
    [WR_SQL_READ_OUTPUTS] = "SELECT job, path, bytes FROM outputs WHERE job = ?1 ORDER BY path",
};

int wr_sqlite_prepare(sqlite3 *db, sqlite3_stmt **ret_statements)
{
    for (size_t i = 0; i < WR_SQL_COUNT; i++) {
        int code = sqlite3_prepare_v3(db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &ret_statements[i], NULL);
        if (code != SQLITE_OK)
            return code;
    }
    return SQLITE_OK;
}

/* ---- versions -------------------------------------------------------------------------------- */

static int read_table_version(sqlite3 *db, int *ret_version)
{
    sqlite3_stmt *statement;
    int code = sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &statement, NULL);

    if (code != SQLITE_OK)
        return code;
    code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        *ret_version = sqlite3_column_int(statement, 0);
    (void)sqlite3_finalize(statement);
    return code == SQLITE_ROW ? SQLITE_OK : code;
}

static int set_table_version(sqlite3 *db, int version)
{
    char text[40];
    struct wr_buf buf;

    wr_buf_init_fixed(&buf, text, sizeof text); /* a PRAGMA takes no parameters */
    wr_buf_append_string(&buf, "PRAGMA user_version = ");
    wr_buf_append_u64(&buf, (uint64_t)version);
    return sqlite3_exec(db, text, NULL, NULL, NULL);
}

int wr_sqlite_migrate(sqlite3 *db, const char *const *steps, int count)
{
    int version = 0, code = read_table_version(db, &version);

    while (code == SQLITE_OK && version >= 0 && version < count) {
        code = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
        if (code == SQLITE_OK)
            code = sqlite3_exec(db, steps[version], NULL, NULL, NULL);
        if (code == SQLITE_OK)
            code = set_table_version(db, ++version);
        if (code == SQLITE_OK)
            code = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
        if (code != SQLITE_OK && sqlite3_get_autocommit(db) == 0)
            (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    }
    return code;
}

/* ---- a new file ------------------------------------------------------------------------------ */

static int sqlite_insert_secret(sqlite3 *db, const void *secret, size_t secret_bytes)
{
    sqlite3_stmt *statement;
    int code = sqlite3_prepare_v2(db, "INSERT INTO secrets VALUES ('fingerprints', ?1)", -1, &statement, NULL);

    if (code != SQLITE_OK)
        return code;
    code = sqlite3_bind_blob(statement, 1, secret, (int)secret_bytes, SQLITE_STATIC);
    if (code == SQLITE_OK)
        code = wr_sqlite_run(statement);
    (void)sqlite3_finalize(statement);
    return code;
}

unsigned char *wr_sqlite_new_image(const void *secret, size_t secret_bytes, size_t *ret_bytes)
{
    sqlite3 *db = NULL;
    sqlite3_int64 bytes = 0;
    unsigned char *image = NULL;
    int code = sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);

    if (code == SQLITE_OK) /* application_id is 0x77656972, "weir" */
        code = sqlite3_exec(db, "PRAGMA application_id = 2003134834", NULL, NULL, NULL);
    if (code == SQLITE_OK)
        code = wr_sqlite_migrate(db, wr_sqlite_steps, WR_SQLITE_VERSION);
    if (code == SQLITE_OK)
        code = sqlite_insert_secret(db, secret, secret_bytes);
    if (code == SQLITE_OK)
        image = sqlite3_serialize(db, "main", &bytes, 0);
    (void)sqlite3_close(db);
    *ret_bytes = (size_t)bytes;
    return image;
}
