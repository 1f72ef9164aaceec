/* SPDX-License-Identifier: MIT */
/* claim.h - SQL statements that claim, request, renew and release hosts; for read.c.
 *
 * A host without an owner is in one of two indexes, so that a claim reads no host that is leased or
 * resting:
 *
 *     hosts_ready  by rest_until: new hosts, those released with work left ('epoch'), resting ones
 *     hosts_free   by id, rest_until is '-infinity': hosts that had no work when released.
 *                  A walk merges them with the queue: from the next free host to the next one with
 *                  tasks, and so on, at most WALK_STEPS steps
 *
 * Hosts of a dead process are found by its id, because its beats are missing. (A live process
 * releases its expired leases itself.)
 */
#ifndef WR_CRAWL_STORE_POSTGRES_CLAIM_H
#define WR_CRAWL_STORE_POSTGRES_CLAIM_H

#define WORDS_OF(number) #number
#define WORDS(number) WORDS_OF(number)
#define WALK_STEPS "1024"

/* The key passes the checks of row.c. NULL if the host's row is missing. */
#define IS_READABLE \
    "(octet_length(h.host) BETWEEN 1 AND " WORDS(WEIR_PACE_KEY_MAX) " AND h.host !~ '[\\x01-\\x1f\\x7f]')"
/* The host has no lease, and no other process has asked for it. A lease_until more than two days
 * ahead is invalid and ignored. */
#define IS_NOBODYS                                                                              \
    "(h.lease_until < clock_timestamp() OR h.lease_until > clock_timestamp() + interval '2 d')" \
    " AND (h.wanted_by IN (0, $9) OR h.wanted_until < clock_timestamp())"
#define RESTED                              \
    "h.rest_until > 'epoch' AS has_rested," \
    " coalesce((extract(epoch FROM clock_timestamp() - h.held_since) * 1000)::int8, 0) AS held_ms"
#define LEASE_TERM "clock_timestamp() + $10 * interval '1 ms'"
/* A token that no lease had before. The sequence may repeat numbers after a fail-over or if it was
 * reset, so the token also has 20 bits of the process's id. */
#define TOKEN "(nextval('tokens') << 20) | ($9 & 1048575)"
#define TAKE                                                                                        \
    "UPDATE hosts AS h SET lease_owner = $9, lease_job = $1, lease_token = " TOKEN ", lease_until " \
    "= " LEASE_TERM ", wanted_by = 0, rest_until = '-infinity', held_since = NULL"

/* Skip scans by index: from owner to owner, and from free host to host with tasks. */
#define OWNERS                                                                                             \
    "owners AS ((SELECT lease_owner AS id FROM hosts WHERE lease_owner != 0 ORDER BY lease_owner LIMIT 1)" \
    " UNION ALL SELECT n.lease_owner FROM owners CROSS JOIN LATERAL (SELECT lease_owner FROM hosts"        \
    "  WHERE lease_owner != 0 AND lease_owner > owners.id ORDER BY lease_owner LIMIT 1) AS n)"
#define NEXT_FREE " FROM hosts AS h WHERE h.lease_owner = 0 AND h.rest_until = '-infinity'"
#define NEXT_QUEUED "(SELECT t.host FROM tasks AS t WHERE t.job = $1 AND t.state = 0 AND t.host >="
#define MEETINGS                                                                                          \
    "walk AS ((SELECT h.id, " NEXT_QUEUED " h.id ORDER BY t.host LIMIT 1) AS queued, 1 AS step" NEXT_FREE \
    "  AND h.id + 0 > $3 ORDER BY h.id + 0 LIMIT 1)"                                                      \
    " UNION ALL SELECT n.id, " NEXT_QUEUED " n.id ORDER BY t.host LIMIT 1), walk.step + 1"                \
    "  FROM walk CROSS JOIN LATERAL (SELECT h.id" NEXT_FREE                                               \
    "   AND h.id + 0 >= walk.queued AND h.id + 0 > walk.id ORDER BY h.id + 0 LIMIT 1) AS n"               \
    "  WHERE walk.queued IS NOT NULL AND ($4 = 0 OR walk.step < " WALK_STEPS "))"

/* Hosts that were met but have no tasks of this job are made free, so that the walks of other jobs
 * meet them. Each row also has the id after which the next walk begins (NULL: from the start). If
 * no host was claimed, one row has only that id. */
#define CLAIM                                                                                                    \
    "WITH RECURSIVE " OWNERS ", " MEETINGS ","                                                                   \
    " ready AS MATERIALIZED (SELECT h.id, " RESTED " FROM hosts AS h"                                            \
    "  WHERE h.lease_owner = 0 AND h.rest_until > '-infinity' AND h.rest_until <= now() AND " IS_NOBODYS         \
    "  ORDER BY h.rest_until LIMIT nullif($4, 0) FOR UPDATE SKIP LOCKED),"                                       \
    " lapsed AS MATERIALIZED (SELECT h.id, false, 0::int8 FROM owners CROSS JOIN LATERAL"                        \
    "  (SELECT h.id FROM hosts AS h WHERE h.lease_owner != 0 AND h.lease_owner = owners.id AND " IS_NOBODYS      \
    "   FOR UPDATE SKIP LOCKED) AS h"                                                                            \
    "  WHERE NOT EXISTS (SELECT FROM nodes AS n WHERE n.id = owners.id AND n.seen_until >= clock_timestamp())"   \
    "  LIMIT CASE WHEN $4 > 0 THEN $4 - (SELECT count(*) FROM ready) END),"                                      \
    " soon AS MATERIALIZED (SELECT * FROM ready UNION ALL SELECT * FROM lapsed),"                                \
    " walked AS MATERIALIZED (SELECT h.id, false, 0::int8 FROM walk CROSS JOIN LATERAL"                          \
    "  (SELECT h.id FROM hosts AS h WHERE walk.queued = walk.id AND h.id = walk.id AND h.lease_owner = 0"        \
    "   AND " IS_NOBODYS " FOR UPDATE SKIP LOCKED) AS h"                                                         \
    "  LIMIT CASE WHEN $4 > 0 THEN $4 - (SELECT count(*) FROM soon) END),"                                       \
    " met AS MATERIALIZED (SELECT m.*, EXISTS (SELECT FROM tasks AS t WHERE t.job = $1 AND t.state = 0"          \
    "  AND t.host = m.id) AS has_tasks FROM (SELECT * FROM soon UNION ALL SELECT * FROM walked) AS m),"          \
    " others AS (UPDATE hosts AS h SET lease_owner = 0, rest_until = '-infinity' FROM met"                       \
    "  WHERE h.id = met.id AND NOT met.has_tasks),"                                                              \
    " mine AS (" TAKE " FROM met WHERE h.id = met.id AND met.has_tasks AND " IS_READABLE                         \
    "  RETURNING h.*, met.has_rested, met.held_ms),"                                                             \
    " next AS (SELECT CASE WHEN (SELECT count(*) FROM met) = $4 THEN coalesce((SELECT max(id) FROM walked), $3)" \
    "  WHEN (SELECT count(*) FROM walk) = " WALK_STEPS " THEN (SELECT max(id) FROM walk) END AS id)"             \
    " SELECT hosts.id, host, " MINE ", next.id FROM next LEFT JOIN mine AS hosts ON true ORDER BY hosts.id"

#define CLAIM_ONE                                                                                                      \
    "WITH seen AS MATERIALIZED (SELECT h.id, h.rest_until <= clock_timestamp() AND " IS_NOBODYS " AS is_free, " RESTED \
    "  FROM hosts AS h WHERE host = $2 FOR UPDATE SKIP LOCKED),"                                                       \
    " taken AS (" TAKE " FROM seen WHERE h.id = seen.id AND seen.is_free"                                              \
    "  RETURNING h.*, seen.has_rested, seen.held_ms),"                                                                 \
    " new AS (INSERT INTO hosts AS h (host, lease_owner, lease_job, lease_token, lease_until)"                         \
    "  SELECT $2, $9, $1, " TOKEN ", " LEASE_TERM " WHERE NOT EXISTS (SELECT FROM hosts WHERE host = $2)"              \
    "  ON CONFLICT DO NOTHING RETURNING h.*, false, 0::int8),"                                                         \
    " wanted AS (UPDATE hosts AS h SET wanted_by = $9, wanted_until = " LEASE_TERM " FROM seen WHERE h.id = seen.id"   \
    "  AND NOT seen.is_free AND h.lease_owner != $9"                                                                   \
    "  AND (h.wanted_by IN (0, $9) OR h.wanted_until < clock_timestamp())),"                                           \
    " mine AS (SELECT * FROM taken UNION ALL SELECT * FROM new)"                                                       \
    " SELECT id, host, " MINE " FROM mine AS hosts"

#define STILL_MINE "h.lease_until >= c.now AND " IS_READABLE

/* Leases that have expired, or whose host's key is invalid, are not renewed but given up: the host
 * has no owner, and is free when its lease ends. */
#define BEAT                                                                                                          \
    "WITH me AS (INSERT INTO nodes (id, job, seen_until, name) VALUES ($9, $1, " LEASE_TERM ", $12) ON CONFLICT (id)" \
    "  DO UPDATE SET job = excluded.job, seen_until = excluded.seen_until),"                                          \
    " gone AS (DELETE FROM nodes WHERE seen_until < clock_timestamp() - interval '1 h'),"                             \
    " kept AS (UPDATE hosts AS h SET lease_owner = CASE WHEN " STILL_MINE " THEN $9 ELSE 0 END,"                      \
    "  lease_until = CASE WHEN " STILL_MINE " THEN " LEASE_TERM " ELSE h.lease_until END"                             \
    "  FROM (SELECT clock_timestamp() AS now) AS c WHERE h.lease_owner = $9 RETURNING h.*),"                          \
    " n AS (SELECT count(*) + 1 AS nodes FROM nodes WHERE job = $1 AND id != $9 AND seen_until >"                     \
    "  clock_timestamp()),"                                                                                           \
    " l AS (SELECT count(*) AS hosts FROM hosts WHERE lease_owner != 0 AND lease_job = $1"                            \
    "  AND lease_until >= clock_timestamp())"                                                                         \
    " SELECT kept.id, kept.host, kept.lease_token, kept.paused, kept.set_interval_ms, kept.wanted_by NOT IN (0, $9)"  \
    "  AND kept.wanted_until >= clock_timestamp(), (l.hosts + n.nodes - 1) / n.nodes FROM kept, n, l"                 \
    "  WHERE kept.lease_owner = $9"

#define RELEASE                                                                                               \
    WR_PG_RELEASE_HOSTS ", rest_until = CASE WHEN $13 > 0 THEN clock_timestamp() + $13 * interval '1 ms'"     \
                        "  WHEN $13 < 0 AND paused != 0 THEN 'infinity'"                                      \
                        "  WHEN EXISTS (SELECT FROM tasks AS t WHERE t.job = lease_job AND t.host = hosts.id" \
                        "   AND t.state = 0) THEN 'epoch' ELSE '-infinity' END,"                              \
                        " held_since = CASE WHEN $14 > 0 THEN clock_timestamp() - $14 * interval '1 ms' END"  \
                        " WHERE lease_owner = $9 AND host = $2 AND lease_token = $3"

/* Hosts with queued tasks that no process can claim, because their rows are missing or invalid. */
#define STRANDED_HOSTS                                                                                    \
    "WITH RECURSIVE walk AS ((SELECT host FROM tasks WHERE job = $1 AND state = 0 ORDER BY host LIMIT 1)" \
    "  UNION ALL SELECT (SELECT t.host FROM tasks AS t WHERE t.job = $1 AND t.state = 0"                  \
    "  AND t.host > walk.host ORDER BY t.host LIMIT 1) FROM walk WHERE walk.host IS NOT NULL)"            \
    " SELECT walk.host FROM walk LEFT JOIN hosts AS h ON h.id = walk.host WHERE walk.host IS NOT NULL"    \
    "  AND (" IS_READABLE                                                                                 \
    "  AND num_nulls(h.lease_owner, h.lease_until, h.rest_until, h.wanted_by, h.wanted_until) = 0) IS NOT TRUE"

#endif
