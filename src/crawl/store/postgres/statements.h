/* SPDX-License-Identifier: MIT */
/* statements.h - one SQL statement over arrays for each kind of change; for gather.c. */
#ifndef WR_CRAWL_STORE_POSTGRES_STATEMENTS_H
#define WR_CRAWL_STORE_POSTGRES_STATEMENTS_H

#define TALLY(columns) "INSERT INTO tallies AS t (job, node, updated_at_ms, " columns ") SELECT job, $1, $2, "
#define ADDS " ON CONFLICT (job, node) DO UPDATE SET updated_at_ms = excluded.updated_at_ms, "
#define ADD(column) column " = t." column " + excluded." column
#define FOUND_TALLY TALLY("queued") "count(*) FROM new GROUP BY job" ADDS ADD("queued")
#define RETRY_TALLY            \
    TALLY("retries, rejected") \
    "count(*), count(*) FILTER (WHERE status = 429) FROM r GROUP BY job" ADDS ADD("retries") ", " ADD("rejected")

static const char new_hosts[] =
    "INSERT INTO hosts (host, rest_until) SELECT k, 'epoch' FROM (SELECT DISTINCT unnest($1) AS k) AS n"
    " WHERE NOT EXISTS (SELECT FROM hosts WHERE host = k) ORDER BY k ON CONFLICT DO NOTHING";

/* Joins the changes `u` to their tasks, by job and fingerprint. `state + 0` keeps the planner from
 * using the index of queued tasks, which would search all of them for each change. */
#define MET                                                                                                     \
    " m AS MATERIALIZED (SELECT u.*, t.id, t.host, t.state AS was FROM u JOIN tasks AS t ON t.job = u.job AND " \
    "t.fingerprint ="                                                                                           \
    "  u.fingerprint ORDER BY t.job, t.fingerprint),"
#define WAITS " t.id = m.id AND t.state + 0 = 0"
/* Locks the hosts of tasks whose lease is still valid, so that no process claims them before the
 * commit. A change under another lease has no effect. Its host is not locked, because the owner may
 * be about to change it. */
#define FENCE                                               \
    " h AS MATERIALIZED (SELECT id, lease_token FROM hosts" \
    "  WHERE (id, lease_token) IN (SELECT host, lease FROM m WHERE lease != 0) ORDER BY id FOR SHARE),"
#define FENCED " AND (m.lease = 0 OR EXISTS (SELECT FROM h WHERE h.id = m.host AND h.lease_token = m.lease))"

#define IS_OPEN " status NOT IN ('completed', 'failed', 'cancelled', 'blocked')"
#define FOUND                                                                                       \
    "WITH f AS MATERIALIZED (SELECT * FROM unnest($3, $4, $5, $6, $7, $8, $9, $10) WITH ORDINALITY" \
    "  AS f (job, host, fingerprint, parent, priority, depth, hops, url, place)),"                  \
    " j AS MATERIALIZED (SELECT id FROM jobs WHERE id IN (SELECT job FROM f) AND" IS_OPEN "),"
#define FOUND_NEW                                                                                           \
    "SELECT f.job, h.id AS host, f.fingerprint, f.parent, f.priority::int, f.depth, f.hops, f.url, f.place" \
    " FROM f JOIN j ON j.id = f.job JOIN hosts AS h ON h.host = f.host"                                     \
    " WHERE NOT EXISTS (SELECT FROM tasks AS k WHERE k.job = f.job AND k.fingerprint = f.fingerprint)"
/* Inserts the tasks of `u`. Ids follow the order of posting; rows are inserted in the order of
 * their keys, as in all processes. */
#define FOUND_INSERT                                                                                          \
    " new AS (INSERT INTO tasks (id, job, host, fingerprint, parent, priority, depth, hops, url)"             \
    "  SELECT id, job, host, fingerprint, parent, priority, depth, hops, url FROM"                            \
    "   (SELECT nextval('tasks_id_seq') AS id, u.* FROM (SELECT * FROM u ORDER BY place) AS u) AS o"          \
    "  ORDER BY o.job, o.fingerprint, o.id ON CONFLICT DO NOTHING RETURNING job, host, fingerprint),"         \
    " l AS (INSERT INTO lanes AS l SELECT job, host, count(*) FROM new GROUP BY job, host ORDER BY job, host" \
    "  ON CONFLICT (job, host) DO UPDATE SET accepted = l.accepted + excluded.accepted),"                     \
    " c AS (" FOUND_TALLY ")"                                                                                 \
    " SELECT min(f.place) FROM new JOIN f ON f.job = new.job AND f.fingerprint = new.fingerprint"             \
    " GROUP BY new.job, new.fingerprint"

static const char new_tasks[] = FOUND " u AS (" FOUND_NEW ")," FOUND_INSERT;

/* Inserts at most $11 tasks per job and $12 per lane (a job's tasks on a host), first come first
 * served; 0: no limit. The rows of the job and of its lanes are locked. Returns negative places for
 * dropped tasks. */
static const char new_tasks_within_bounds[] = FOUND
    " n AS MATERIALIZED (SELECT DISTINCT ON (job, fingerprint) * FROM (" FOUND_NEW ") AS n"
    "  ORDER BY job, fingerprint, place),"
    " b AS (SELECT n.*, row_number() OVER (PARTITION BY n.job, n.host ORDER BY n.place)"
    "  + coalesce((SELECT accepted FROM lanes AS l WHERE l.job = n.job AND l.host = n.host), 0) AS nth FROM n),"
    " a AS (SELECT job, sum(queued + done + failed) AS accepted FROM tallies WHERE job IN (SELECT id FROM j)"
    "  GROUP BY job),"
    " d AS (SELECT b.*, row_number() OVER (PARTITION BY b.job ORDER BY b.place) + coalesce(a.accepted, 0) AS of_all"
    "  FROM b LEFT JOIN a USING (job) WHERE $12 = 0 OR b.nth <= $12),"
    " u AS MATERIALIZED (SELECT * FROM d WHERE $11 = 0 OR of_all <= $11)," FOUND_INSERT
    " UNION ALL SELECT -place FROM n WHERE place NOT IN (SELECT place FROM u)";

/* Creates and locks lanes. Two statements, so that later counts see what others have committed. */
static const char new_lanes[] =
    "INSERT INTO lanes (job, host, accepted) SELECT DISTINCT u.job, h.id, 0 FROM unnest($1, $2) AS u (job, host)"
    " JOIN hosts AS h ON h.host = u.host JOIN jobs AS j ON j.id = u.job AND" IS_OPEN
    " WHERE NOT EXISTS (SELECT FROM lanes AS l WHERE l.job = u.job AND l.host = h.id) ORDER BY 1, 2"
    " ON CONFLICT DO NOTHING";
static const char lock_lanes[] =
    "SELECT FROM lanes AS l WHERE (l.job, l.host) IN (SELECT u.job, h.id FROM unnest($1, $2) AS u (job, host)"
    "  JOIN hosts AS h ON h.host = u.host) ORDER BY l.job, l.host FOR NO KEY UPDATE";

static const char changed_tasks[] =
    "WITH m AS MATERIALIZED (SELECT t.id, u.not_before_ms FROM unnest($1, $2, $3) AS u (job, fingerprint, "
    "not_before_ms)"
    "  JOIN tasks AS t ON t.job = u.job AND t.fingerprint = u.fingerprint WHERE t.state + 0 = 0"
    "  AND t.not_before_ms < u.not_before_ms ORDER BY t.job, t.fingerprint FOR NO KEY UPDATE OF t)"
    " UPDATE tasks AS t SET not_before_ms = m.not_before_ms FROM m WHERE t.id = m.id";

static const char retried_tasks[] =
    "WITH u AS (SELECT * FROM unnest($3, $4, $5, $6, $7, $8) AS u (job, fingerprint, attempts, status,"
    "  not_before_ms, lease))," MET FENCE
    " r AS (UPDATE tasks AS t SET attempts = m.attempts, status = m.status::int, not_before_ms = m.not_before_ms FROM m"
    "  WHERE" WAITS " AND t.attempts < m.attempts" FENCED "  RETURNING t.job, t.status),"
    " c AS (" RETRY_TALLY ") SELECT count(*) FROM r";

#define ENDED_SUMS                                                                                      \
    "-count(*), count(*) FILTER (WHERE state = 1), count(*) FILTER (WHERE state = 2), sum(bytes)::int8" \
    " FROM e GROUP BY job"
#define HAS_JOB "EXISTS (SELECT FROM jobs AS j WHERE j.id = m.job)"
#define ENDED_ADDS ADD("queued") ", " ADD("done") ", " ADD("failed") ", " ADD("bytes")
/* Places of refused ends: another process has the lease, or there is no lease and the task had
 * ended already. Without its job's row no task ends, as links on it could not be stored. */
#define REFUSED                                                                              \
    " (SELECT m.place FROM m WHERE NOT " HAS_JOB " OR CASE WHEN m.lease = 0 THEN m.was != 0" \
    "  ELSE NOT EXISTS (SELECT FROM h WHERE h.id = m.host AND h.lease_token = m.lease) END)"

/* Ends tasks. Returns the number of changed tasks and the places of refused ends. */
static const char ended_tasks[] =
    "WITH u AS (SELECT * FROM unnest($3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)"
    "  WITH ORDINALITY AS u (job, fingerprint, state, status, attempts, bytes, changes, since_ms, visited_at_ms, lease,"
    "  verdict, why, validator, digest, line, place))," MET FENCE
    " e AS (UPDATE tasks AS t SET state = m.state::smallint, status = m.status::int, attempts = m.attempts,"
    "  bytes = m.bytes, verdict = m.verdict, why = m.why, ended_at_ms = $2, validator = m.validator,"
    "  digest = m.digest, line = nullif(m.line, ''), changes = m.changes, since_ms = m.since_ms,"
    "  visited_at_ms = m.visited_at_ms FROM m WHERE" WAITS FENCED "  AND " HAS_JOB
    " RETURNING t.job, t.state, t.bytes),"
    " c AS (" TALLY("queued, done, failed, bytes") ENDED_SUMS ADDS ENDED_ADDS
    "), r AS" REFUSED " SELECT 0, count(*) FROM e UNION ALL SELECT place, 0 FROM r";

#define SAME(column) column " = excluded." column
/* Updates hosts. A change under an earlier lease has no effect and locks no row. */
static const char known_hosts[] =
    "INSERT INTO hosts AS h (host, adaptive_delay_seconds, adaptive_delay_floor_seconds, adaptive_delay_ms,"
    " adaptive_delay_floor_ms, robots_delay_ms, retry_at_ms, updated_at_ms, rate, cap, traits, block_ms, breaker_open,"
    " lease_token)"
    " SELECT u.* FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"
    "  AS u (host, a, b, c, d, e, f, g, rate, i, j, k, l, lease) WHERE u.lease = 0"
    "  OR EXISTS (SELECT FROM hosts AS o WHERE o.host = u.host AND o.lease_token = u.lease) ORDER BY u.host"
    " ON CONFLICT (host) DO UPDATE SET (adaptive_delay_seconds, adaptive_delay_floor_seconds, adaptive_delay_ms,"
    " adaptive_delay_floor_ms, robots_delay_ms, retry_at_ms, updated_at_ms, rate, cap, traits, block_ms, breaker_open)"
    " = (excluded.adaptive_delay_seconds, excluded.adaptive_delay_floor_seconds, excluded.adaptive_delay_ms,"
    " excluded.adaptive_delay_floor_ms, excluded.robots_delay_ms, excluded.retry_at_ms, excluded.updated_at_ms,"
    " excluded.rate, excluded.cap, excluded.traits, excluded.block_ms, excluded.breaker_open)"
    " WHERE excluded.lease_token = 0 OR h.lease_token = excluded.lease_token";

/* Stores a robots.txt, unless the stored one is newer. */
static const char new_robots[] =
    "INSERT INTO robots AS r (max_age_ms, fetched_at_ms, kind, url, text, etag, modified, text_bytes)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7, octet_length($5)) ON CONFLICT (md5(url)) DO UPDATE SET"
    " (max_age_ms, fetched_at_ms, kind, url, text, etag, modified, text_bytes) = (excluded.max_age_ms,"
    " excluded.fetched_at_ms, excluded.kind, excluded.url, excluded.text, excluded.etag, excluded.modified,"
    " excluded.text_bytes) WHERE r.fetched_at_ms <= excluded.fetched_at_ms";

#endif
