/* SPDX-License-Identifier: MIT */
/* statements.c - turns changes into statements over arrays.
 *
 *     found tasks   -+
 *     changed pages  |
 *     retries        +- a stretch: one statement of each kind, in this order
 *     ends           |
 *     hosts         -+
 *
 * A stretch is a series of changes whose order is lost. So a change begins a new one if it would
 * precede an earlier change of its task, or be its second of a kind; so do a job's status and
 * other limits.
 *
 * All processes lock rows in one order: jobs, hosts by key, tasks by fingerprint, lanes (a job's
 * tasks at a host), their own. With limits per host, lanes come before tasks, to add one at a time.
 */
#include "crawl/store/postgres/statements.h"
#include "base/alloc.h"
#include "crawl/store/postgres/pg.h"

#include <math.h>

#define IDLE_SHARE 3 /* the server ends a transaction that idles for this share of a lease */
#define IDLE_MS 5000 /* longest idle time of a transaction, ms */

/* ---- a stretch ------------------------------------------------------------------------------- */

enum stage {
    STAGE_FOUND = 1,
    STAGE_CHANGED,
    STAGE_RETRY,
    STAGE_ENDED,
    STAGE_HOST,
};

struct change_slot {
    uint64_t key;
    uint32_t stretch; /* stretch of the last change; 0: the slot is free */
    enum stage stage;
};

struct gathering {
    struct wr_pg *pg;
    struct change_slot *slots;
    size_t slot_count; /* number of slots, a power of two */
    uint32_t stretch;
    size_t founds, changes, retries, ends, hosts; /* changes of this stretch, by kind */
    struct wr_pg_params host_keys, lanes, found, changed, retry, ended, host;
    struct wr_store_task_limits bounds;       /* limits of the found tasks */
    const struct wr_store_output *outputs[8]; /* latest length per output file */
    size_t output_count;
    int64_t nonce;
};

static int note_sent(struct wr_pg *pg, struct wr_pg_sent_statement sent)
{
    if (!wr_pg_grow_array(pg->allocator, (void **)&pg->sent, &pg->sent_room, pg->sent_count, sizeof sent))
        return WEIR_E_NOMEM;
    pg->sent[pg->sent_count++] = sent;
    return 0;
}

static int send_statement(struct gathering *all, const char *sql, struct wr_pg_params *params,
                          struct wr_pg_sent_statement sent)
{
    int error = wr_pg_add_to_pipeline(all->pg, sql, params);
    return error != 0 ? error : note_sent(all->pg, sent);
}

/* Sends the statement of a kind if it has changes. Empties its arrays. */
static int send_kind(struct gathering *all, const char *sql, struct wr_pg_params *params, size_t *count,
                     enum wr_pg_result_kind what, size_t first)
{
    struct wr_pg_sent_statement sent = {.first = first, .count = *count};
    if (*count == 0)
        return 0;
    sent.what = what;
    int error = send_statement(all, sql, params, sent);
    wr_pg_params_clear(params);
    *count = 0;
    return error;
}

/* Sets the first two parameters: the process and the time. */
static void encode_self(struct gathering *all, struct wr_pg_params *params)
{
    const int64_t self[] = {all->pg->node, all->pg->wall_ms};
    wr_pg_put_integers(params, 0, self, 2);
}

/* Adds unknown hosts, then the found tasks. If hosts have limits, it first locks their lanes, so
 * that other processes that find tasks there wait. */
static int send_found(struct gathering *all)
{
    const int64_t bounds[] = {(int64_t)all->bounds.tasks, (int64_t)all->bounds.host_tasks};
    bool is_bounded = bounds[0] > 0 || bounds[1] > 0;
    size_t first = all->pg->found_count - all->founds, hosts = all->founds;

    encode_self(all, &all->found);
    wr_pg_put_integers(&all->found, 10, bounds, 2);
    int error = send_kind(all, new_hosts, &all->host_keys, &hosts, WR_PG_RESULT_NONE, 0);
    if (error == 0 && bounds[1] > 0 && all->founds > 0)
        error = send_statement(all, new_lanes, &all->lanes, (struct wr_pg_sent_statement){0});
    if (error == 0 && bounds[1] > 0 && all->founds > 0)
        error = send_statement(all, lock_lanes, &all->lanes, (struct wr_pg_sent_statement){0});
    wr_pg_params_clear(&all->lanes);
    if (error == 0)
        error = send_kind(all, is_bounded ? new_tasks_within_bounds : new_tasks, &all->found, &all->founds,
                          WR_PG_RESULT_FOUND, first);
    wr_pg_params_clear(&all->found);
    return error;
}

static int end_stretch(struct gathering *all)
{
    size_t first_end = all->pg->ended_count - all->ends;
    encode_self(all, &all->retry);
    encode_self(all, &all->ended);
    int error = send_found(all);
    if (error == 0)
        error = send_kind(all, changed_tasks, &all->changed, &all->changes, WR_PG_RESULT_NONE, 0);
    if (error == 0)
        error = send_kind(all, retried_tasks, &all->retry, &all->retries, WR_PG_RESULT_COUNT, 0);
    if (error == 0)
        error = send_kind(all, ended_tasks, &all->ended, &all->ends, WR_PG_RESULT_ENDED, first_end);
    if (error == 0)
        error = send_kind(all, known_hosts, &all->host, &all->hosts, WR_PG_RESULT_NONE, 0);
    wr_pg_params_clear(&all->retry);
    wr_pg_params_clear(&all->ended);
    all->stretch++;
    return error;
}

/* Registers a change of the key at this stage. Begins a new stretch if needed. Equal hashes of
 * different keys only cost a stretch. */
static int enter_stage(struct gathering *all, uint64_t key, enum stage stage)
{
    size_t at = (size_t)(key & (all->slot_count - 1));
    while (all->slots[at].stretch != 0 && all->slots[at].key != key)
        at = (at + 1) & (all->slot_count - 1);
    const struct change_slot *slot = &all->slots[at];
    bool is_late =
        slot->stretch == all->stretch && (slot->stage > stage || (slot->stage == stage && stage != STAGE_FOUND));
    int error = is_late ? end_stretch(all) : 0;
    all->slots[at] = (struct change_slot){key, all->stretch, stage};
    return error;
}

static int enter_task_stage(struct gathering *all, int64_t job, uint64_t fingerprint, enum stage stage)
{
    return enter_stage(all, fingerprint ^ (uint64_t)job * 0x9e3779b97f4a7c15u, stage);
}

/* ---- tasks ----------------------------------------------------------------------------------- */

/* Converts an instant to ms by the database's clock. */
static int64_t database_instant_ms(const struct gathering *all, int64_t wall_at)
{
    int64_t ms = wr_backend_ms(wall_at), most = INT64_MAX / WEIR_MILLISECOND;
    if (ms == 0)
        return 0;
    ms += all->pg->skew_ms;
    return ms < 1 ? 1 : ms > most ? most : ms;
}

static int encode_found(struct gathering *all, const struct wr_store_task_found *task)
{
    struct wr_pg *pg = all->pg;
    const int64_t numbers[] = {(int64_t)task->fingerprint, (int64_t)task->parent, task->priority, task->depth,
                               task->hops};
    bool is_other = all->bounds.tasks != task->bounds.tasks || all->bounds.host_tasks != task->bounds.host_tasks;
    int error = is_other && all->founds > 0 ? end_stretch(all) : 0;

    if (error == 0)
        error = enter_task_stage(all, task->job, task->fingerprint, STAGE_FOUND);
    if (error != 0)
        return error;
    all->bounds = task->bounds;
    if (!wr_pg_grow_array(pg->allocator, (void **)(void *)&pg->found, &pg->found_room, pg->found_count, sizeof(void *)))
        return WEIR_E_NOMEM;
    pg->found[pg->found_count++] = task;
    all->founds++;
    wr_pg_put_bytes(&all->host_keys, 0, task->host);
    if (task->bounds.host_tasks > 0) {
        wr_pg_put_integer(&all->lanes, 0, task->job);
        wr_pg_put_bytes(&all->lanes, 1, task->host);
    }
    wr_pg_put_integer(&all->found, 2, task->job);
    wr_pg_put_bytes(&all->found, 3, task->host);
    wr_pg_put_integers(&all->found, 4, numbers, 5);
    wr_pg_put_bytes(&all->found, 9, task->url);
    return 0;
}

static int encode_changed(struct gathering *all, const struct wr_store_page_changed *changed)
{
    const int64_t numbers[] = {changed->job, (int64_t)changed->fingerprint, wr_backend_ms(changed->wall_at)};
    int error = enter_task_stage(all, changed->job, changed->fingerprint, STAGE_CHANGED);

    if (error != 0)
        return error;
    wr_pg_put_integers(&all->changed, 0, numbers, 3);
    all->changes++;
    return 0;
}

static int encode_retry(struct gathering *all, const struct wr_store_task_retry *retry)
{
    const int64_t numbers[] = {retry->job,
                               (int64_t)retry->fingerprint,
                               retry->attempts,
                               retry->status,
                               database_instant_ms(all, retry->not_before_wall_at),
                               (int64_t)retry->lease};
    int error = enter_task_stage(all, retry->job, retry->fingerprint, STAGE_RETRY);

    if (error != 0)
        return error;
    wr_pg_put_integers(&all->retry, 2, numbers, 6);
    all->retries++;
    return 0;
}

static int encode_ended(struct gathering *all, const struct wr_store_task_ended *ended)
{
    const struct wr_store_visit *visit = &ended->visit;
    const int64_t numbers[] = {ended->job,
                               (int64_t)ended->fingerprint,
                               ended->failed ? WR_TASK_FAILED : WR_TASK_DONE,
                               ended->status,
                               ended->attempts,
                               (int64_t)ended->bytes,
                               visit->changes,
                               wr_backend_ms(visit->since_wall_at),
                               wr_backend_ms(visit->visited_wall_at),
                               (int64_t)ended->lease};
    struct wr_pg *pg = all->pg;
    int error = enter_task_stage(all, ended->job, ended->fingerprint, STAGE_ENDED);

    if (error != 0)
        return error;
    if (!wr_pg_grow_array(pg->allocator, (void **)(void *)&pg->ended, &pg->ended_room, pg->ended_count, sizeof(void *)))
        return WEIR_E_NOMEM;
    pg->ended[pg->ended_count++] = ended;
    wr_pg_put_integers(&all->ended, 2, numbers, 10);
    wr_pg_put_bytes(&all->ended, 12, ended->verdict);
    wr_pg_put_bytes(&all->ended, 13, ended->why);
    wr_pg_put_bytes(&all->ended, 14, visit->validator);
    wr_pg_put_bytes(&all->ended, 15, visit->digest);
    wr_pg_put_bytes(&all->ended, 16, ended->line);
    all->ends++;
    return 0;
}

/* ---- hosts ----------------------------------------------------------------------------------- */

static int64_t delay_seconds(int64_t ns)
{
    return ns <= 0 ? 0 : ns / WEIR_SECOND + (ns % WEIR_SECOND > 0);
}

static int encode_host(struct gathering *all, const struct wr_store_host *host)
{
    const weir_pace_memory *memory = &host->memory;
    const int64_t before[] = {delay_seconds(memory->delay_ns),
                              delay_seconds(memory->floor_ns),
                              wr_backend_ms(memory->delay_ns),
                              wr_backend_ms(memory->floor_ns),
                              wr_backend_ms(memory->robots_delay_ns),
                              database_instant_ms(all, memory->retry_wall_at),
                              database_instant_ms(all, memory->saved_wall_at)};
    const int64_t after[] = {memory->cap, memory->traits, wr_backend_ms(memory->block_ns), memory->breaker_open,
                             (int64_t)host->lease};
    int error = enter_stage(all, wr_hash(&all->pg->backend.hash_key, host->key.data, host->key.bytes), STAGE_HOST);

    if (error != 0)
        return error;
    wr_pg_put_bytes(&all->host, 0, host->key);
    wr_pg_put_integers(&all->host, 1, before, 7);
    wr_pg_put_double(&all->host, 8, isfinite(memory->rate) ? memory->rate : 0);
    wr_pg_put_integers(&all->host, 9, after, 5);
    all->hosts++;
    return 0;
}

/* ---- single statements ----------------------------------------------------------------------- */

/* Sends one statement. Letters are those of wr_pg_params; numbers and texts in their order. */
static int send_one(struct gathering *all, const char *sql, const char *letters, const int64_t *numbers,
                    const struct wr_span *texts, struct wr_pg_sent_statement sent)
{
    struct wr_pg_params params;
    wr_pg_params_init(&params, all->pg->allocator, letters);
    for (int i = 0; letters[i] != '\0'; i++) {
        if (letters[i] == 'N')
            wr_pg_put_integer(&params, i, *numbers++);
        else
            wr_pg_put_bytes(&params, i, *texts++);
    }
    int error = send_statement(all, sql, &params, sent);
    wr_pg_params_release(&params);
    return error;
}

static int send_job_status(struct gathering *all, const struct wr_store_job_status *status)
{
    const int64_t numbers[] = {status->job, all->pg->wall_ms};
    const struct wr_span texts[] = {wr_span_of(wr_job_status_name(status->status)), status->why};
    int error = end_stretch(all);

    if (error != 0)
        return error;
    return send_one(all,
                    "WITH s AS (UPDATE jobs SET status = $3, why = $4, updated_at_ms = $2 WHERE id = $1"
                    " AND NOT ($3 = 'running' AND status IN ('completed', 'cancelled', 'blocked')) RETURNING id)"
                    " SELECT count(*) FROM s",
                    "NNTT", numbers, texts, (struct wr_pg_sent_statement){.what = WR_PG_RESULT_COUNT, .count = 1});
}

static int send_robots(struct gathering *all, const struct wr_store_robots *robots)
{
    const int64_t numbers[] = {robots->max_age_ns < 0 ? -1 : wr_backend_ms(robots->max_age_ns),
                               database_instant_ms(all, robots->fetched_wall_at), (int64_t)robots->kind};
    const struct wr_span texts[] = {robots->url, robots->text, robots->etag, robots->modified};

    if (robots->kind == WR_STORE_ROBOTS_SAME)
        return send_one(all,
                        "UPDATE robots SET max_age_ms = $1, fetched_at_ms = $2 WHERE md5(url) = md5($3) AND url = $3"
                        " AND fetched_at_ms <= $2",
                        "NNT", numbers, texts, (struct wr_pg_sent_statement){0});
    if (robots->kind == WR_STORE_ROBOTS_GONE)
        return send_one(all, "DELETE FROM robots WHERE md5(url) = md5($2) AND url = $2 AND fetched_at_ms <= $1", "NT",
                        numbers + 1, texts, (struct wr_pg_sent_statement){0});
    /* robots_room is a lower bound: undone or replaced texts add nothing to it */
    all->pg->backend.robots_room -= (int64_t)robots->text.bytes;
    return send_one(all, new_robots, "NNNTBBB", numbers, texts, (struct wr_pg_sent_statement){0});
}

static int send_host_block(struct gathering *all, const struct wr_store_host_block *block)
{
    const int64_t numbers[] = {database_instant_ms(all, block->until_wall_at), (int64_t)block->lease};
    const struct wr_span texts[] = {block->key, block->by};

    return send_one(all,
                    "INSERT INTO hosts AS h (blocked_until_ms, host, blocked_by) VALUES ($1, $3, $4)"
                    " ON CONFLICT (host) DO UPDATE SET " SAME("blocked_until_ms") ", " SAME(
                        "blocked_by") " WHERE $2 = 0 OR h.lease_token = $2",
                    "NNTT", numbers, texts, (struct wr_pg_sent_statement){0});
}

static int send_host_setting(struct gathering *all, const struct wr_store_host_setting *setting)
{
    const int64_t numbers[] = {setting->has_paused ? (int64_t)setting->is_paused : -1,
                               setting->has_interval ? wr_backend_ms(setting->interval_ns) : -1};

    return send_one(
        all,
        "INSERT INTO hosts AS h (paused, set_interval_ms, host) VALUES (greatest($1, 0), greatest($2, 0), $3)"
        " ON CONFLICT (host) DO UPDATE SET paused = CASE WHEN $1 < 0 THEN h.paused ELSE $1 END,"
        " set_interval_ms = CASE WHEN $2 < 0 THEN h.set_interval_ms ELSE $2 END, rest_until = 'epoch'",
        "NNT", numbers, &setting->key, (struct wr_pg_sent_statement){0});
}

static int send_job_report(struct gathering *all, const struct wr_store_report *report)
{
    const int64_t numbers[] = {report->job, all->pg->wall_ms, all->nonce++},
                  kept[] = {report->job, WR_STORE_REPORTS_KEPT};
    /* Processes may end at the same time; each needs its own run number. */
    int error = send_one(all, "SELECT pg_advisory_xact_lock(2003134836, hashint8($1))", "N", numbers, NULL,
                         (struct wr_pg_sent_statement){0});
    if (error != 0)
        return error;
    error = send_one(all,
                     "INSERT INTO reports (job, run, ended_at_ms, nonce, report)"
                     " SELECT $1, coalesce(max(run), 0) + 1, $2, $3, $4 FROM reports WHERE job = $1"
                     " ON CONFLICT (nonce) DO NOTHING",
                     "NNNB", numbers, &report->text, (struct wr_pg_sent_statement){0});
    if (error != 0)
        return error;
    return send_one(all,
                    "DELETE FROM reports WHERE job = $1 AND run <= (SELECT max(run) FROM reports WHERE job = $1) - $2",
                    "NN", kept, NULL, (struct wr_pg_sent_statement){0});
}

/* Joins or adds a job. The statement after the lock sees jobs that other processes added. */
static int send_joined_job(struct gathering *all, const struct wr_pg_item *item, const int64_t *numbers, size_t at)
{
    int error = send_one(all, "SELECT pg_advisory_xact_lock(2003134835, hashtext(current_schema()))", "", NULL, NULL,
                         (struct wr_pg_sent_statement){0});
    if (error != 0)
        return error;
    return send_one(all,
                    "WITH old AS (SELECT id FROM jobs WHERE settings = $4 AND earlier = $3"
                    "  AND status IN ('pending', 'running') ORDER BY id DESC LIMIT 1),"
                    " new AS (INSERT INTO jobs (nonce, status, settings, created_at_ms, updated_at_ms, earlier)"
                    "  SELECT $1, 'pending', $4, $2, $2, $3 WHERE NOT EXISTS (SELECT FROM old)"
                    "  ON CONFLICT (nonce) DO UPDATE SET nonce = excluded.nonce RETURNING id)"
                    " SELECT id FROM old UNION ALL SELECT id FROM new",
                    "NNNT", numbers, &item->settings,
                    (struct wr_pg_sent_statement){.what = WR_PG_RESULT_JOB, .first = at});
}

static int send_new_job(struct gathering *all, size_t at)
{
    const struct wr_pg_item *item = &all->pg->items[at];
    const int64_t numbers[] = {all->nonce++, all->pg->wall_ms, item->earlier};

    if (item->joins)
        return send_joined_job(all, item, numbers, at);
    return send_one(all,
                    "INSERT INTO jobs (nonce, status, settings, created_at_ms, updated_at_ms, earlier)"
                    " VALUES ($1, 'pending', $4, $2, $2, $3) ON CONFLICT (nonce) DO UPDATE SET nonce = excluded.nonce"
                    " RETURNING id",
                    "NNNT", numbers, &item->settings,
                    (struct wr_pg_sent_statement){.what = WR_PG_RESULT_JOB, .first = at});
}

/* ---- outputs --------------------------------------------------------------------------------- */

static int send_output(struct gathering *all, const struct wr_store_output *output)
{
    const int64_t numbers[] = {output->job, (int64_t)output->bytes};
    const struct wr_span texts[] = {output->path, wr_span_of(all->pg->name)};

    return send_one(all,
                    "INSERT INTO outputs (job, bytes, path, machine) VALUES ($1, $2, $3, split_part($4, '/', 1))"
                    " ON CONFLICT (job, machine, md5(path)) DO UPDATE SET " SAME("bytes") ", " SAME("path"),
                    "NNTT", numbers, texts, (struct wr_pg_sent_statement){0});
}

static int send_outputs(struct gathering *all)
{
    int error = 0;

    for (size_t i = 0; i < all->output_count && error == 0; i++)
        error = send_output(all, all->outputs[i]);
    all->output_count = 0;
    return error;
}

bool wr_pg_is_same_output(const struct wr_store_output *one, const struct wr_store_output *other)
{
    return one->job == other->job && one->path.bytes == other->path.bytes &&
           memcmp(one->path.data, other->path.data, one->path.bytes) == 0;
}

/* Every page brings a length; only the last one of a transaction is written per file. */
static int remember_output_length(struct gathering *all, const struct wr_store_output *output)
{
    for (size_t i = 0; i < all->output_count; i++) {
        if (wr_pg_is_same_output(all->outputs[i], output)) {
            all->outputs[i] = output;
            return 0;
        }
    }
    int error = all->output_count == sizeof all->outputs / sizeof all->outputs[0] ? send_outputs(all) : 0;
    all->outputs[all->output_count++] = output;
    return error;
}

/* ---- the transaction ------------------------------------------------------------------------- */

static int encode_or_send_change(struct gathering *all, const struct wr_store_change *change)
{
    switch (change->kind) {
    case WR_STORE_TASK_FOUND:
        return encode_found(all, &change->found);
    case WR_STORE_TASK_ENDED:
        return encode_ended(all, &change->ended);
    case WR_STORE_TASK_RETRY:
        return encode_retry(all, &change->retry);
    case WR_STORE_PAGE_CHANGED:
        return encode_changed(all, &change->changed);
    case WR_STORE_JOB_STATUS:
        return send_job_status(all, &change->status);
    case WR_STORE_OUTPUT:
        return remember_output_length(all, &change->output);
    case WR_STORE_ROBOTS:
        return send_robots(all, &change->robots);
    case WR_STORE_HOST_BLOCK:
        return send_host_block(all, &change->block);
    case WR_STORE_HOST_SETTING:
        return send_host_setting(all, &change->setting);
    case WR_STORE_REPORT:
        return send_job_report(all, &change->report);
    case WR_STORE_DISMISS:
        return send_one(all, "UPDATE nodes SET dismissed = 1 WHERE job = $1", "N", &change->job, NULL,
                        (struct wr_pg_sent_statement){0});
    case WR_STORE_HOST:
        break;
    }
    return encode_host(all, &change->host);
}

/* Begins. The server rolls back if this process hangs before its commit, so that others need not
 * wait for it. The planner prefers indexes, which are in memory; short statements need no JIT. */
static int send_begin(struct gathering *all)
{
    int64_t most_ms = wr_backend_ms(all->pg->lease_ns) / IDLE_SHARE;
    const int64_t numbers[] = {most_ms < IDLE_MS ? most_ms + 1 : IDLE_MS};
    int error = send_statement(all, "BEGIN", NULL, (struct wr_pg_sent_statement){0});

    if (error != 0)
        return error;
    return send_one(all,
                    "SELECT set_config('idle_in_transaction_session_timeout', $1::text, true),"
                    " set_config('random_page_cost', '1', true), set_config('jit', 'off', true)",
                    "N", numbers, NULL, (struct wr_pg_sent_statement){0});
}

/* Returns the job whose row the change locks: alone if `is_whole`, else shared; 0 if none. */
static int64_t job_to_lock(const struct wr_store_change *change, bool is_whole)
{
    if (change->kind == WR_STORE_JOB_STATUS)
        return is_whole ? change->status.job : 0;
    if (change->kind == WR_STORE_TASK_FOUND)
        return (change->found.bounds.tasks > 0) == is_whole ? change->found.job : 0;
    return 0;
}

/* Lists the jobs to lock, consecutive duplicates once. Returns false if there are none. */
static bool encode_jobs_to_lock(const struct gathering *all, bool is_whole, struct wr_pg_params *params)
{
    int64_t last = 0;

    for (size_t i = 0; i < all->pg->item_count; i++) {
        const struct wr_store_change *change = all->pg->items[i].change;
        int64_t job = change != NULL ? job_to_lock(change, is_whole) : 0;
        if (job != 0 && job != last)
            wr_pg_put_integer(params, 0, job);
        last = job != 0 ? job : last;
    }
    return last != 0;
}

/* Locks the rows of jobs before anything else: shared for found tasks; alone for a new status,
 * because a shared lock could never be upgraded, and to count all tasks for a job's limit, so that
 * those of others are committed before or found after. A process that waits here holds nothing that
 * the owner could need, such as a host that both have found. */
static int lock_jobs(struct gathering *all)
{
    static const char *const locks[] = {"SELECT FROM jobs WHERE id = ANY ($1) ORDER BY id FOR SHARE",
                                        "SELECT FROM jobs WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE"};
    int error = 0;

    for (int is_whole = 1; is_whole >= 0 && error == 0; is_whole--) {
        struct wr_pg_params params;
        wr_pg_params_init(&params, all->pg->allocator, "n");
        if (encode_jobs_to_lock(all, is_whole, &params))
            error = send_statement(all, locks[is_whole], &params, (struct wr_pg_sent_statement){0});
        wr_pg_params_release(&params);
    }
    return error;
}

static int send_all_changes(struct gathering *all)
{
    struct wr_pg *pg = all->pg;
    int error = send_begin(all);

    if (error == 0)
        error = lock_jobs(all);
    for (size_t i = 0; i < pg->item_count && error == 0; i++) {
        error = pg->items[i].change != NULL ? encode_or_send_change(all, pg->items[i].change) : send_new_job(all, i);
        if (i < pg->settled_items)
            pg->settled_ends = pg->ended_count;
    }
    if (error == 0)
        error = end_stretch(all);
    return error != 0 ? error : send_outputs(all);
}

int wr_pg_send_transaction(struct wr_pg *pg)
{
    struct gathering all = {.pg = pg, .stretch = 1, .slot_count = 64, .nonce = pg->nonce};

    while (all.slot_count < 2 * pg->item_count)
        all.slot_count *= 2;
    all.slots = wr_alloc_array(pg->allocator, all.slot_count, sizeof *all.slots, _Alignof(struct change_slot));
    if (all.slots == NULL)
        return WEIR_E_NOMEM;
    wr_pg_params_init(&all.host_keys, pg->allocator, "t");
    wr_pg_params_init(&all.lanes, pg->allocator, "nt");
    wr_pg_params_init(&all.found, pg->allocator, "NNntnnnnntNN");
    wr_pg_params_init(&all.changed, pg->allocator, "nnn");
    wr_pg_params_init(&all.retry, pg->allocator, "NNnnnnnn");
    wr_pg_params_init(&all.ended, pg->allocator, "NNnnnnnnnnnnttttt");
    wr_pg_params_init(&all.host, pg->allocator, "tnnnnnnnfnnnnn");
    int error = send_all_changes(&all);
    wr_pg_params_release(&all.host_keys);
    wr_pg_params_release(&all.lanes);
    wr_pg_params_release(&all.found);
    wr_pg_params_release(&all.changed);
    wr_pg_params_release(&all.retry);
    wr_pg_params_release(&all.ended);
    wr_pg_params_release(&all.host);
    wr_free(pg->allocator, all.slots, all.slot_count * sizeof *all.slots, _Alignof(struct change_slot));
    return error;
}
