/* SPDX-License-Identifier: MIT */
/* read.c - runs queries as SQL statements and reads their cells. */
#include "crawl/store/postgres/claim.h"
#include "crawl/store/postgres/pg.h"
#include "crawl/store/row.h"
#include "limiter/clock/clock.h"

/* a sixth of a lease is left unused, so that requests on the way can arrive */
#define LEASE_MARGIN 6

#define STRANDED_HOSTS_MOST 16   /* hosts per query for stranded tasks */
#define STRANDED_TASKS_MOST 4096 /* stranded tasks per host */

/* ---- cells ----------------------------------------------------------------------------------- */

#define TYPE_TEXT 25

static int64_t pg_cell_integer(const struct wr_cells *cells, int at)
{
    return wr_pg_integer(cells->result, cells->row, at);
}

static double pg_cell_double(const struct wr_cells *cells, int at)
{
    int64_t bits = wr_pg_integer(cells->result, cells->row, at);
    double number;

    memcpy(&number, &bits, sizeof number);
    return number;
}

static struct wr_span pg_cell_bytes(const struct wr_cells *cells, int at)
{
    return (struct wr_span){PQgetvalue(cells->result, cells->row, at),
                            (size_t)PQgetlength(cells->result, cells->row, at)};
}

static bool pg_cell_is_text(const struct wr_cells *cells, int at)
{
    return PQftype(cells->result, at) == TYPE_TEXT && PQgetisnull(cells->result, cells->row, at) == 0;
}

static const struct wr_cells_kind cells_kind = {pg_cell_integer, pg_cell_double, pg_cell_bytes, pg_cell_is_text};

/* ---- statements ------------------------------------------------------------------------------ */

/* Column of an instant, converted to this process's clock. */
#define AT(column) "CASE WHEN " column " > 0 THEN greatest(" column " - $11, 1) ELSE 0 END"
#define HOST_COLUMNS                                                                                             \
    "adaptive_delay_ms, adaptive_delay_floor_ms, robots_delay_ms, " AT("retry_at_ms") ", " AT(                   \
        "updated_at_ms") ", rate, cap, traits, block_ms, breaker_open, " AT("blocked_until_ms") ", blocked_by, " \
                                                                                                "paused, "       \
                                                                                                "set_interval_ms"
#define VISIT(t)                                                                                          \
    t ".validator, " t ".digest, " t ".changes, CASE WHEN " t ".since_ms > 0 THEN " t ".since_ms ELSE " t \
      ".ended_at_ms END, CASE WHEN " t ".visited_at_ms > 0 THEN " t ".visited_at_ms ELSE " t ".ended_at_ms END"
#define EARLIER " LEFT JOIN tasks AS e ON e.job = $6 AND e.fingerprint = t.fingerprint"
#define QUEUED_TASKS(more, joined)                                                                                     \
    "SELECT t.id, t.fingerprint, t.parent, t.priority, t.depth, t.attempts, " AT(                                      \
        "t.not_before_ms") ", t.url, p.url, "                                                                          \
                           "t.hops" more " FROM tasks AS t"                                                            \
                           " LEFT JOIN tasks AS p ON t.parent != 0 AND p.job = $1 AND p.fingerprint = t.parent" joined \
                           " WHERE t.job = $1 AND t.state = 0"
#define OF_HOST                                                                                             \
    " AND t.host = (SELECT id FROM hosts WHERE host = $2) AND (t.priority, t.id) > ($5::int, $3) ORDER BY " \
    "t.priority, t.id"
#define SOME_TASKS(referrer, before, more, joined)                                                         \
    "SELECT t.id, t.fingerprint, t.parent, t.priority, t.depth, t.attempts, " AT(                          \
        "t.not_before_ms") ", t.url, " referrer ", t.hops,"                                                \
                           " t.state, t.status, t.bytes, t.verdict, t.why, t.ended_at_ms, h.host, " before \
                           ", " VISIT("t") ", e.verdict, " VISIT("e") more                                 \
        " FROM tasks AS t LEFT JOIN hosts AS h ON h.id = t.host" EARLIER joined " WHERE "
#define ANY_TASKS(before) SOME_TASKS("NULL", before, "", "")
#define PARENT " LEFT JOIN tasks AS p ON t.parent != 0 AND p.job = $1 AND p.fingerprint = t.parent"
#define WALK "t.id > $3 AND t.id <= $7 AND t.job = $1"
#define QUEUED_AT_MOST(most)                                                                                           \
    "(SELECT count(*) FROM (SELECT FROM tasks AS q WHERE q.job = $1 AND q.host = hosts.id AND q.state = 0 LIMIT " most \
    ") AS q)"
/* Columns: owner of the host, ms left of its lease, ms for which no process may claim it. */
#define LEASE_COLUMNS                                                                                  \
    ", CASE WHEN lease_until >= clock_timestamp()"                                                     \
    " THEN coalesce((SELECT n.name FROM nodes AS n WHERE n.id = lease_owner), lease_owner::text) END," \
    " CASE WHEN lease_until >= clock_timestamp()"                                                      \
    " THEN (extract(epoch FROM lease_until - clock_timestamp()) * 1000)::int8 ELSE 0 END,"             \
    " CASE WHEN rest_until = 'infinity' THEN -1 WHEN rest_until > clock_timestamp()"                   \
    " THEN (extract(epoch FROM rest_until - clock_timestamp()) * 1000)::int8 ELSE 0 END"
#define COUNT_BEFORE                                                           \
    "CASE t.state WHEN 0 THEN (SELECT count(*) FROM (SELECT 1 FROM tasks AS q" \
    " WHERE q.job = t.job AND q.host = t.host AND q.state = 0"                 \
    " AND (q.priority, q.id) < (t.priority, t.id) LIMIT 100000) AS b) ELSE 0 END"

#define MINE QUEUED_AT_MOST("1000") ", " HOST_COLUMNS ", lease_token, has_rested, held_ms"
#define NEXT_WALK_AT 20 /* column of CLAIM with the next start of the walk */

/* All queries have the same parameters: $1 job, $2 key, $3 id after which the rows begin, $4 most
 * rows (0: all), $5 priority that goes with $3, $6 earlier job, $7 highest task id to look at, $8
 * time in ms, $9 id of this process, $10 duration of a lease in ms, $11 ms by which the database's
 * clock is ahead, $12 name of the process, which begins with the machine's, $13 ms for which a
 * released host rests (-1: while it is paused), $14 ms for which its tasks were held back. */
#define LETTERS "NTNNNNNNNNNTNN"
#define LIMIT " LIMIT nullif($4, 0)"

static const char *const queries[] = {
    /* Looks into the queue itself, because a wrong counter would end a job too early or never. */
    [WR_STORE_JOBS] =
        "SELECT j.id, j.status, j.why, j.settings, j.created_at_ms, greatest(j.updated_at_ms, max(t.updated_at_ms)),"
        " CASE WHEN EXISTS (SELECT FROM tasks AS q WHERE q.job = j.id AND q.state = 0)"
        "  THEN greatest(sum(t.queued), 1) ELSE 0 END::int8, coalesce(sum(t.done), 0)::int8, coalesce(sum(t.failed), "
        "0)::int8,"
        " coalesce(sum(t.bytes), 0)::int8, coalesce(sum(t.retries), 0)::int8, coalesce(sum(t.rejected), 0)::int8,"
        " j.earlier, (SELECT dismissed FROM nodes WHERE id = $9) FROM jobs AS j LEFT JOIN tallies AS t ON t.job = j.id"
        " WHERE j.id > $3 AND ($1 = 0 OR j.id = $1) GROUP BY j.id ORDER BY j.id" LIMIT,
    [WR_STORE_TASKS] = QUEUED_TASKS("", "") OF_HOST LIMIT,
    [WR_STORE_FINGERPRINTS] =
        "SELECT fingerprint FROM tasks WHERE job = $1 AND fingerprint > $3 ORDER BY fingerprint" LIMIT,
    [WR_STORE_SEEDS] = "SELECT url, hops, id FROM tasks WHERE job = $1 AND depth = 0 AND id > $3 ORDER BY id" LIMIT,
    /* Includes hosts without a row, so that the damage is noticed. */
    [WR_STORE_HOSTS] = "SELECT q.host, h.host, q.queued, " HOST_COLUMNS LEASE_COLUMNS " FROM"
                       " (SELECT host, count(*) AS queued FROM tasks"
                       "  WHERE job = $1 AND state = 0 AND host > $3 GROUP BY host) AS q"
                       " LEFT JOIN hosts AS h ON h.id = q.host ORDER BY q.host" LIMIT,
    [WR_STORE_ONE_HOST] = "SELECT id, host, " QUEUED_AT_MOST("100000") ", " HOST_COLUMNS LEASE_COLUMNS
                                                                       " FROM hosts WHERE host = $2" LIMIT,
    [WR_STORE_ONE_ROBOTS] = "SELECT url, kind, text, etag, modified, max_age_ms, " AT(
        "fetched_at_ms") " FROM robots"
                         " WHERE md5(url) = md5($2) AND url = $2" LIMIT,
    [WR_STORE_FETCHED_HOSTS] = "SELECT h.id, h.host FROM tasks AS t JOIN hosts AS h ON h.id = t.host WHERE t.job = $1"
                               " AND t.state = 1 AND t.verdict IN ('fetched', 'too_large', 'unchanged')"
                               " AND h.blocked_until_ms <= $8" LIMIT,
    [WR_STORE_OUTPUTS] = "SELECT job, path, bytes FROM outputs WHERE job = $1"
                         " AND machine = split_part($12, '/', 1) ORDER BY path COLLATE \"C\"" LIMIT,
    [WR_STORE_ONE_TASK] = ANY_TASKS(COUNT_BEFORE) "t.job = $1 AND t.fingerprint = $3" LIMIT,
    [WR_STORE_ALL_TASKS] = ANY_TASKS("0::int8") WALK " ORDER BY t.id" LIMIT,
    [WR_STORE_ALL_HOSTS] =
        "SELECT id, host, 0::int8, " HOST_COLUMNS LEASE_COLUMNS " FROM hosts WHERE id > $3 ORDER BY id" LIMIT,
    [WR_STORE_REPORTS] = "SELECT job, run, ended_at_ms, report FROM reports WHERE ($1 = 0 OR job = $1)"
                         " AND ($3 = 0 OR run = $3) ORDER BY ended_at_ms DESC, job DESC, run DESC" LIMIT,
    [WR_STORE_CLAIM] = CLAIM,
    [WR_STORE_CLAIM_ONE] = CLAIM_ONE,
    [WR_STORE_RENEW] = BEAT,
    [WR_STORE_RELEASE] = RELEASE,
    [WR_STORE_NODES] = "SELECT n.name, n.job, (SELECT count(*) FROM hosts AS h WHERE h.lease_owner = n.id"
                       " AND h.lease_owner != 0 AND h.lease_until >= clock_timestamp()) FROM nodes AS n"
                       " WHERE n.seen_until >= clock_timestamp() AND ($1 = 0 OR n.job = $1) AND n.id != $9 ORDER BY "
                       "n.name, n.id" LIMIT,
    [WR_STORE_SUMS] = "SELECT h.host, t.state, t.status, t.verdict, count(*), sum(t.bytes)::int8,"
                      " sum(t.attempts)::int8, min(nullif(t.ended_at_ms, 0)), max(t.ended_at_ms)"
                      " FROM tasks AS t LEFT JOIN hosts AS h ON h.id = t.host WHERE " WALK
                      " GROUP BY h.host, t.state, t.status, t.verdict" LIMIT,
    [WR_STORE_CHECK] =
        "SELECT 'job ' || j.id || ': its counters do not agree with its tasks' FROM jobs AS j"
        " LEFT JOIN (SELECT job, count(*) FILTER (WHERE state = 0) AS queued, count(*) FILTER (WHERE state = 1) AS "
        "done,"
        "  count(*) FILTER (WHERE state = 2) AS failed, sum(bytes) AS bytes FROM tasks GROUP BY job) AS t"
        "  ON t.job = j.id"
        " LEFT JOIN (SELECT job, sum(queued) AS queued, sum(done) AS done, sum(failed) AS failed, sum(bytes) AS bytes"
        "  FROM tallies GROUP BY job) AS c ON c.job = j.id"
        " WHERE (coalesce(c.queued, 0), coalesce(c.done, 0), coalesce(c.failed, 0), coalesce(c.bytes, 0)) !="
        "  (coalesce(t.queued, 0), coalesce(t.done, 0), coalesce(t.failed, 0), coalesce(t.bytes, 0))"
        " UNION ALL SELECT 'job ' || job || ', host ' || host || ': the tasks accepted do not agree with its tasks' "
        "FROM"
        "  (SELECT job, host, count(*) AS count FROM tasks GROUP BY job, host"
        "   UNION ALL SELECT job, host, -accepted FROM lanes) AS b GROUP BY job, host HAVING sum(count) != 0"
        " UNION ALL SELECT 'task ' || id || ': it has no such host' FROM tasks"
        "  WHERE NOT EXISTS (SELECT FROM hosts AS h WHERE h.id = tasks.host)"
        " UNION ALL SELECT 'task ' || id || ': it has no such job' FROM tasks"
        "  WHERE NOT EXISTS (SELECT FROM jobs AS j WHERE j.id = tasks.job)"
        " UNION ALL SELECT 'task ' || id || ': it ended without a verdict' FROM tasks"
        "  WHERE state != 0 AND verdict = ''"
        " UNION ALL SELECT 'task ' || id || ': it has no such state' FROM tasks WHERE state NOT IN (0, 1, 2)" LIMIT,
};

static const char tasks_again[] = QUEUED_TASKS(", e.verdict, " VISIT("e"), EARLIER) OF_HOST LIMIT;
static const char lines[] = SOME_TASKS("p.url", "0::int8", ", t.line", PARENT) WALK " ORDER BY t.id" LIMIT;
static const char stranded[] = QUEUED_TASKS("", "") " AND t.host = $3" LIMIT;
static const char stranded_hosts[] = STRANDED_HOSTS LIMIT;
static const char accepted[] = "SELECT accepted FROM lanes WHERE job = $1"
                               " AND host = (SELECT id FROM hosts WHERE host = $2)";
static const char last_task[] = "SELECT coalesce(max(id), 0) FROM tasks";
static const char next_task[] = "SELECT coalesce(min(id), 0) FROM tasks WHERE job = $1 AND id > $3";

/* ---- sending --------------------------------------------------------------------------------- */

/* Returns the highest id of a task that the query may look at. */
static int64_t pg_scan_end(const struct wr_store_query *query)
{
    bool is_bounded = query->ret_next != NULL && query->after.id < INT64_MAX - WR_STORE_SCAN_MAX;
    return is_bounded ? query->after.id + WR_STORE_SCAN_MAX : INT64_MAX;
}

/* Returns the host after which a claim walks the free hosts: where the last walk ended. */
static int64_t walk_start(struct wr_pg *pg, const struct wr_store_query *query)
{
    if (pg->walk_job != query->job || query->limit == 0)
        pg->walked_to = INT64_MIN;
    pg->walk_job = query->job;
    return pg->walked_to;
}

/* Appends the query to the pipeline. */
static int send_query(struct wr_pg *pg, const char *sql, const struct wr_store_query *query, int64_t wall_now,
                      size_t limit)
{
    struct wr_pg_params params;
    int error = wr_pg_connect(pg); /* connects first, because that measures the clock difference */
    if (error != 0)
        return error;
    const int64_t numbers[] = {query->what == WR_STORE_CLAIM ? walk_start(pg, query) : query->after.id,
                               limit <= SIZE_MAX / 2 ? (int64_t)limit : 0,
                               query->after.priority,
                               query->earlier,
                               pg_scan_end(query),
                               wr_backend_ms(wall_now) + pg->skew_ms,
                               pg->node,
                               wr_backend_ms(pg->lease_ns),
                               pg->skew_ms};
    const int64_t rest[] = {query->rest_ns == WEIR_FOREVER ? -1 : wr_backend_ms(query->rest_ns),
                            wr_backend_ms(query->held_ns)};

    wr_pg_params_init(&params, pg->allocator, LETTERS);
    wr_pg_put_integer(&params, 0, query->job);
    wr_pg_put_bytes(&params, 1, query->key);
    wr_pg_put_integers(&params, 2, numbers, (int)(sizeof numbers / sizeof numbers[0]));
    wr_pg_put_bytes(&params, 11, wr_span_of(pg->name));
    wr_pg_put_integers(&params, 12, rest, 2);
    error = wr_pg_add_to_pipeline(pg, sql, &params);
    wr_pg_params_release(&params);
    return error;
}

static void keep_query_result(void *context, size_t number, PGresult **result)
{
    (void)number;
    *(PGresult **)context = *result;
    *result = NULL;
}

static int run_query(struct wr_pg *pg, const char *sql, const struct wr_store_query *query, int64_t wall_now,
                     size_t limit, PGresult **ret_result)
{
    PGresult *result = NULL;
    int error = send_query(pg, sql, query, wall_now, limit);

    if (error == 0)
        error = wr_pg_run_pipeline(pg, keep_query_result, &result);
    if (error != 0)
        PQclear(result);
    else
        *ret_result = result;
    return error;
}

/* Reads the number in the first cell; 0 if there is no row. */
static int query_number(struct wr_pg *pg, const char *sql, const struct wr_store_query *query, int64_t *ret_number)
{
    PGresult *result;
    int error = run_query(pg, sql, query, 0, 0, &result);

    if (error != 0)
        return error;
    *ret_number = PQntuples(result) > 0 ? wr_pg_integer(result, 0, 0) : 0;
    PQclear(result);
    return 0;
}

/* ---- results --------------------------------------------------------------------------------- */

/* Returns the tasks of a host whose row is invalid: no query by the host's key finds them. */
static int pg_report_stranded(struct wr_pg *pg, const struct wr_store_query *query, int64_t host, int64_t wall_now,
                              size_t limit)
{
    struct wr_store_query of_host = *query;
    PGresult *result;

    of_host.after.id = host;
    int error = run_query(pg, stranded, &of_host, wall_now, limit, &result);
    if (error != 0)
        return error;
    for (int i = 0; i < PQntuples(result); i++) {
        const struct wr_cells cells = {&cells_kind, result, i};
        struct wr_store_row row = {.what = WR_STORE_TASKS};
        if (!wr_row_task(&cells, query, wall_now, &row.task))
            row.task.url = (struct wr_span){NULL, 0};
        query->row(query->context, &row);
    }
    PQclear(result);
    return 0;
}

static bool read_row(const struct wr_cells *cells, const struct wr_store_query *query, int64_t wall_now,
                     struct wr_store_row *ret_row)
{
    if (query->what != WR_STORE_CHECK)
        return wr_row_read(cells, query, wall_now, ret_row);
    *ret_row = (struct wr_store_row){.what = WR_STORE_CHECK, .text = cells->kind->bytes(cells, 0)};
    return true;
}

/* Returns some tasks of hosts that no process can claim. Later queries return the others. */
static int read_stranded(struct wr_pg *pg, const struct wr_store_query *query, int64_t wall_now)
{
    PGresult *result;
    int error = run_query(pg, stranded_hosts, query, wall_now, STRANDED_HOSTS_MOST, &result);

    if (error != 0)
        return error;
    for (int i = 0; i < PQntuples(result) && error == 0; i++)
        error = pg_report_stranded(pg, query, wr_pg_integer(result, i, 0), wall_now, STRANDED_TASKS_MOST);
    pg->backend.damaged += (uint64_t)PQntuples(result);
    PQclear(result);
    return error;
}

/* Returns true if the row of a claim has no host. Keeps where the next walk begins. */
static bool is_no_host(struct wr_pg *pg, const PGresult *result, int row, const struct wr_store_query *query)
{
    if (query->what != WR_STORE_CLAIM)
        return false;
    bool is_end = PQgetisnull(result, row, NEXT_WALK_AT) != 0;
    pg->walked_to = is_end ? INT64_MIN : wr_pg_integer(result, row, NEXT_WALK_AT);
    return PQgetisnull(result, row, 0) != 0;
}

/* Returns rows up to the limit. Invalid rows are counted and skipped; but an invalid task is given
 * without its URL, because a task that never ends would keep its job from ending. */
static int report_rows(struct wr_pg *pg, PGresult *result, const struct wr_store_query *query, int64_t wall_now,
                       int64_t asked_at, size_t *ret_count, int64_t *ret_last)
{
    int error = 0;

    for (int i = 0; i < PQntuples(result) && error == 0 && (query->limit == 0 || *ret_count < query->limit); i++) {
        const struct wr_cells cells = {&cells_kind, result, i};
        struct wr_store_row row;
        if (is_no_host(pg, result, i, query))
            continue;
        bool is_sound = read_row(&cells, query, wall_now, &row);
        pg->backend.damaged += !is_sound;
        if (!is_sound && query->what == WR_STORE_HOSTS)
            error = pg_report_stranded(pg, query, wr_pg_integer(result, i, 0), wall_now, 0);
        if (!is_sound && query->what != WR_STORE_TASKS)
            continue;
        if (!is_sound)
            row.task.url = (struct wr_span){NULL, 0};
        if (query->what == WR_STORE_CLAIM || query->what == WR_STORE_CLAIM_ONE || query->what == WR_STORE_RENEW)
            row.host.leased_until = asked_at + pg->lease_ns - pg->lease_ns / LEASE_MARGIN;
        query->row(query->context, &row);
        ++*ret_count;
        *ret_last = query->what == WR_STORE_ALL_TASKS && *ret_count == query->limit ? row.task.id : 0;
    }
    return error;
}

/* Returns true if invalid rows took the place of valid ones within the limit. */
static bool is_short(const PGresult *result, const struct wr_store_query *query, int64_t wall_now)
{
    int count = PQntuples(result);
    struct wr_store_row row;
    bool is_all_sound = true;

    if (query->limit == 0 || (size_t)count < query->limit || query->what == WR_STORE_TASKS ||
        query->what == WR_STORE_CLAIM)
        return false;
    for (int i = 0; i < count && is_all_sound; i++) {
        const struct wr_cells cells = {&cells_kind, (void *)(uintptr_t)result, i};
        is_all_sound = read_row(&cells, query, wall_now, &row);
    }
    return !is_all_sound;
}

/* Sets *ret_next. `last` is the row at which the limit was reached; 0: it was not reached. */
static int pg_find_next_scan(struct wr_pg *pg, const struct wr_store_query *query, int64_t last, bool met_none)
{
    int64_t end = last != 0 ? last : pg_scan_end(query), newest = 0, next = 0;
    int error = query_number(pg, last_task, query, &newest);

    if (error == 0 && met_none && end < newest) {
        struct wr_store_query from = *query;
        from.after.id = end;
        error = query_number(pg, next_task, &from, &next);
        end = next > 0 ? next - 1 : newest;
    }
    if (error == 0)
        *query->ret_next = end < newest ? end : 0;
    return error;
}

/* ---- several queries at once ----------------------------------------------------------------- */

/* Returns true for queries of one statement, or two for TASKS with ret_accepted, whatever the
 * results. CLAIM_ONE is not among them: with its lock on a host of another process, a beat in the
 * same pipeline could deadlock with that process. */
bool wr_pg_can_pipeline(const struct wr_store_query *query)
{
    switch (query->what) {
    case WR_STORE_TASKS:
    case WR_STORE_CLAIM:
    case WR_STORE_RENEW:
    case WR_STORE_RELEASE:
    case WR_STORE_ONE_HOST:
    case WR_STORE_ONE_ROBOTS:
        return true;
    case WR_STORE_JOBS:
    case WR_STORE_SEEDS:
        return query->limit == 0;
    default:
        return false;
    }
}

static const char *sql_of(const struct wr_store_query *query)
{
    if (query->what == WR_STORE_ALL_TASKS && query->has_lines)
        return lines;
    return query->what == WR_STORE_TASKS && query->earlier != 0 ? tasks_again : queries[query->what];
}

static bool wants_accepted(const struct wr_store_query *query)
{
    return query->what == WR_STORE_TASKS && query->ret_accepted != NULL;
}

static void take_query_result(void *context, size_t number, PGresult **result)
{
    PGresult **results = context;

    if (number < 2 * WR_BACKEND_READS_MAX) {
        results[number] = *result;
        *result = NULL;
    }
}

static int exchange_many(struct wr_pg *pg, const struct wr_store_query *const *list, size_t count, int64_t wall_now,
                         PGresult **results)
{
    int error = 0;

    for (size_t i = 0; i < count && error == 0; i++) {
        error = send_query(pg, sql_of(list[i]), list[i], wall_now, list[i]->limit);
        if (error == 0 && wants_accepted(list[i]))
            error = send_query(pg, accepted, list[i], wall_now, 0);
    }
    if (error == 0)
        return wr_pg_run_pipeline(pg, take_query_result, results);
    wr_pg_disconnect(pg); /* the pipeline is incomplete */
    return error;
}

int wr_pg_read_many(struct wr_backend *backend, const struct wr_store_query *const *list, size_t count,
                    int64_t wall_now)
{
    struct wr_pg *pg = wr_pg_of(backend);
    PGresult *results[2 * WR_BACKEND_READS_MAX] = {NULL};
    int64_t asked_at = wr_clock_now(pg->clock), last = 0;
    int error = exchange_many(pg, list, count, wall_now, results);

    for (size_t i = 0, at = 0; i < count && error == 0; i++, at++) {
        size_t rows = 0;
        (void)report_rows(pg, results[at], list[i], wall_now, asked_at, &rows, &last);
        if (!wants_accepted(list[i]))
            continue;
        at++;
        bool is_known = results[at] != NULL && PQntuples(results[at]) > 0;
        *list[i]->ret_accepted = is_known ? (uint64_t)wr_pg_integer(results[at], 0, 0) : 0;
    }
    for (size_t i = 0; i < 2 * WR_BACKEND_READS_MAX; i++)
        PQclear(results[i]);
    return error;
}

/* ---- one query ------------------------------------------------------------------------------- */

int wr_pg_read(struct wr_backend *backend, const struct wr_store_query *query, int64_t wall_now)
{
    struct wr_pg *pg = wr_pg_of(backend);
    const char *sql = sql_of(query);
    size_t count = 0;

    if (wants_accepted(query))
        return wr_pg_read_many(backend, &query, 1, wall_now);
    if (query->what == WR_STORE_HOSTS && query->only_stranded)
        return read_stranded(pg, query, wall_now);
    int64_t last = 0;
    PGresult *result;
    /* before the query, because the database starts the lease later */
    int64_t asked_at = wr_clock_now(pg->clock);
    int error = run_query(pg, sql, query, wall_now, query->limit, &result);

    if (error == 0 && is_short(result, query, wall_now)) {
        PQclear(result);
        error = run_query(pg, sql, query, wall_now, 0, &result);
    }
    if (error != 0)
        return error;
    error = report_rows(pg, result, query, wall_now, asked_at, &count, &last);
    PQclear(result);
    if (error == 0 && query->ret_next != NULL)
        error = pg_find_next_scan(pg, query, last, count == 0);
    return error;
}
