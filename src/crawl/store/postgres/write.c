/* SPDX-License-Identifier: MIT */
/* write.c - collects, sends and commits a transaction, and repeats it after a conflict. */
#include "base/alloc.h"
#include "crawl/store/postgres/pg.h"
#include "limiter/memory/memory.h"

#include <stdlib.h>

#define CONFLICT_TRIES 8 /* immediate attempts of one transaction */

const struct wr_backend_kind wr_backend_pg = {
    .name = "postgres",
    .noun = "database",
    .needs_commit = true,
    .is_shared = true,
    .open = wr_pg_open,
    .close = wr_pg_close,
    .begin = wr_pg_begin,
    .apply = wr_pg_apply,
    .add_job = wr_pg_add_job,
    .flush = wr_pg_flush,
    .commit = wr_pg_commit,
    .undo = wr_pg_undo,
    .settle = wr_pg_settle,
    .read = wr_pg_read,
    .read_many = wr_pg_read_many,
    .can_pipeline = wr_pg_can_pipeline,
};

bool wr_pg_grow_array(const weir_allocator *allocator, void **array, size_t *room, size_t count, size_t each)
{
    if (count < *room)
        return true;
    size_t larger = *room == 0 ? 64 : *room * 2;
    void *block = wr_alloc_array(allocator, larger, each, _Alignof(max_align_t));
    if (block == NULL)
        return false;
    if (count > 0)
        memcpy(block, *array, count * each);
    wr_free(allocator, *array, *room * each, _Alignof(max_align_t));
    *array = block;
    *room = larger;
    return true;
}

static int note_out_of_memory(struct wr_pg *pg)
{
    static const char why[] = "out of memory";

    memcpy(pg->backend.why, why, sizeof why);
    return WEIR_E_NOMEM;
}

/* ---- collecting ------------------------------------------------------------------------------ */

int wr_pg_begin(struct wr_backend *backend, int64_t wall_now)
{
    struct wr_pg *pg = wr_pg_of(backend);

    if (pg->nonce == 0 && wr_random(&pg->nonce, sizeof pg->nonce) != 0)
        return note_out_of_memory(pg);
    pg->item_count = 0;
    pg->settled_items = 0;
    int error = wr_pg_connect(pg); /* connects now, because the database may be away */
    pg->wall_ms = wr_backend_ms(wall_now) + pg->skew_ms;
    return error;
}

static int push_item(struct wr_pg *pg, struct wr_pg_item item)
{
    if (!wr_pg_grow_array(pg->allocator, (void **)&pg->items, &pg->item_room, pg->item_count, sizeof item))
        return note_out_of_memory(pg);
    pg->items[pg->item_count++] = item;
    return 0;
}

int wr_pg_apply(struct wr_backend *backend, const struct wr_store_change *change)
{
    return push_item(wr_pg_of(backend), (struct wr_pg_item){.change = change});
}

int wr_pg_add_job(struct wr_backend *backend, struct wr_span settings, int64_t earlier, bool joins, int64_t *ret_job)
{
    return push_item(wr_pg_of(backend),
                     (struct wr_pg_item){.settings = settings, .earlier = earlier, .joins = joins, .ret_job = ret_job});
}

/* ---- sending --------------------------------------------------------------------------------- */

static void report_task_found(const struct wr_store_task_found *found, bool is_new, bool is_beyond)
{
    if (found->ret_is_new != NULL)
        *found->ret_is_new = is_new;
    if (found->ret_is_over_limit != NULL)
        *found->ret_is_over_limit = is_beyond;
}

/* Reports which found tasks are new. After a commit with unknown outcome a known task may be from
 * this transaction, so it counts as new, and its poster takes care of it. */
static void take_found_result(struct wr_pg *pg, const struct wr_pg_sent_statement *sent, const PGresult *result)
{
    const struct wr_store_task_found **found = pg->found + sent->first;
    int count = PQntuples(result);

    for (size_t i = 0; i < sent->count; i++)
        report_task_found(found[i], pg->is_doubtful, false);
    for (int row = 0; row < count; row++) {
        int64_t place = wr_pg_integer(result, row, 0), at = llabs(place) - 1;
        pg->ignored -= place > 0;
        if (at >= 0 && at < (int64_t)sent->count)
            report_task_found(found[at], place > 0, place < 0);
    }
    pg->ignored += sent->count;
}

/* Reports which ends were refused. The row with place 0 has the number of changed tasks. After a
 * commit with unknown outcome, an end without a lease that the database already has may be ours,
 * and is not refused. */
static void take_ended_result(struct wr_pg *pg, const struct wr_pg_sent_statement *sent, const PGresult *result)
{
    const struct wr_store_task_ended **ended = pg->ended + sent->first;
    int64_t settled = (int64_t)pg->settled_ends - (int64_t)sent->first;

    for (size_t i = 0; i < sent->count; i++)
        if ((int64_t)i >= settled && ended[i]->ret_is_refused != NULL)
            *ended[i]->ret_is_refused = false;
    for (int row = 0; row < PQntuples(result); row++) {
        int64_t at = wr_pg_integer(result, row, 0) - 1;
        if (at < 0)
            pg->ignored += sent->count - (uint64_t)wr_pg_integer(result, row, 1);
        else if (at >= settled && at < (int64_t)sent->count && ended[at]->ret_is_refused != NULL)
            *ended[at]->ret_is_refused = ended[at]->lease != 0 || !pg->is_doubtful;
    }
}

static void take_statement_result(void *context, size_t number, PGresult **taken)
{
    struct wr_pg *pg = context;
    const PGresult *result = *taken;
    const struct wr_pg_sent_statement *sent = number < pg->sent_count ? &pg->sent[number] : NULL;

    if (sent == NULL || PQresultStatus(result) != PGRES_TUPLES_OK)
        return;
    if (sent->what == WR_PG_RESULT_FOUND)
        take_found_result(pg, sent, result);
    else if (sent->what == WR_PG_RESULT_ENDED)
        take_ended_result(pg, sent, result);
    else if (sent->what == WR_PG_RESULT_COUNT && PQntuples(result) == 1)
        pg->ignored += sent->count - (uint64_t)wr_pg_integer(result, 0, 0);
    else if (sent->what == WR_PG_RESULT_JOB && PQntuples(result) == 1)
        *pg->items[sent->first].ret_job = wr_pg_integer(result, 0, 0);
}

static int send_pipeline(struct wr_pg *pg)
{
    pg->ignored = 0;
    pg->sent_count = pg->found_count = pg->ended_count = pg->settled_ends = 0;
    int error = wr_pg_send_transaction(pg);
    if (error == 0)
        return wr_pg_run_pipeline(pg, take_statement_result, pg);
    wr_pg_disconnect(pg); /* the pipeline is incomplete */
    return error;
}

static const struct wr_store_output *output_of(const struct wr_pg_item *item)
{
    bool is_output = item->change != NULL && item->change->kind == WR_STORE_OUTPUT;
    return is_output ? &item->change->output : NULL;
}

/* Returns how many of the first items the database has if it stores this length of the output. */
static size_t settled_by(const struct wr_pg *pg, const struct wr_store_output *output, uint64_t bytes)
{
    size_t count = 0;

    for (size_t i = 0; i < pg->item_count; i++) {
        const struct wr_store_output *other = output_of(&pg->items[i]);
        if (other != NULL && other->bytes <= bytes && wr_pg_is_same_output(other, output))
            count = i + 1;
    }
    return count;
}

/* Finds out what an unanswered commit has stored. Every transaction with an output makes it longer,
 * so its stored length tells which items took effect. Those are repeated like the others, but their
 * ends keep the result that they got before that commit, even if another process has the lease by
 * now. The lock waits for a commit that is still running; the first commit of an output has no
 * row to lock. */
static int find_committed_items(struct wr_pg *pg)
{
    const struct wr_store_output *output = NULL;
    struct wr_pg_params params;
    PGresult *result = NULL;

    for (size_t i = 0; i < pg->item_count && output == NULL; i++)
        output = output_of(&pg->items[i]);
    if (output == NULL)
        return 0;
    wr_pg_params_init(&params, pg->allocator, "NTT");
    wr_pg_put_integer(&params, 0, output->job);
    wr_pg_put_bytes(&params, 1, output->path);
    wr_pg_put_bytes(&params, 2, wr_span_of(pg->name));
    int error = wr_pg_query(pg,
                            "SELECT bytes FROM outputs WHERE job = $1 AND md5(path) = md5($2)"
                            " AND machine = split_part($3, '/', 1) FOR UPDATE",
                            &params, &result);
    if (error == 0 && PQntuples(result) == 1)
        pg->settled_items = settled_by(pg, output, (uint64_t)wr_pg_integer(result, 0, 0));
    PQclear(result);
    wr_pg_params_release(&params);
    return error;
}

int wr_pg_flush(struct wr_backend *backend)
{
    struct wr_pg *pg = wr_pg_of(backend);
    int error = 0;

    if (pg->item_count == 0)
        return 0;
    for (int tries = 0; tries < CONFLICT_TRIES; tries++) {
        error = wr_pg_connect(pg);
        if (error == 0 && pg->is_doubtful)
            error = find_committed_items(pg);
        if (error == 0) {
            pg->is_open = true;
            error = send_pipeline(pg);
        }
        if (error == 0 || !pg->is_conflict)
            return error;
        wr_pg_undo(backend);
    }
    return error;
}

/* ---- ending ---------------------------------------------------------------------------------- */

static void take_commit_result(void *context, size_t number, PGresult **result)
{
    (void)number;
    *(bool *)context = strcmp(PQcmdStatus(*result), "COMMIT") == 0;
}

/* Commits. A server that rolled the transaction back answers ROLLBACK without an error. */
static int send_commit(struct wr_pg *pg)
{
    static const char why[] = "the transaction was rolled back";
    bool is_committed = false;

    if (!pg->is_open || pg->conn == NULL || PQstatus(pg->conn) != CONNECTION_OK) {
        memcpy(pg->backend.why, why, sizeof why);
        return WEIR_E_TIMEOUT;
    }
    int error = wr_pg_add_to_pipeline(pg, "COMMIT", NULL);
    if (error == 0)
        error = wr_pg_run_pipeline(pg, take_commit_result, &is_committed);
    /* stays set until a commit is known to be done */
    pg->is_doubtful = pg->is_doubtful || (error != 0 && pg->conn == NULL);
    if (error != 0)
        return error;
    pg->is_open = false;
    if (is_committed)
        return 0;
    memcpy(pg->backend.why, why, sizeof why);
    return WEIR_E_TIMEOUT;
}

int wr_pg_commit(struct wr_backend *backend)
{
    struct wr_pg *pg = wr_pg_of(backend);
    int error = pg->item_count > 0 ? send_commit(pg) : 0;

    if (error != 0)
        return error;
    backend->ignored += pg->item_count > 0 ? pg->ignored : 0;
    pg->item_count = 0;
    pg->nonce = 0;
    pg->is_doubtful = false;
    return 0;
}

void wr_pg_undo(struct wr_backend *backend)
{
    struct wr_pg *pg = wr_pg_of(backend);
    char why[WR_BACKEND_WHY_BYTES];

    if (!pg->is_open || pg->conn == NULL)
        return;
    memcpy(why, backend->why, sizeof why); /* keeps the reason of the failure */
    if (wr_pg_execute(pg, "ROLLBACK") != 0)
        wr_pg_disconnect(pg);
    memcpy(backend->why, why, sizeof why);
    pg->is_open = false;
}

static int pg_sum_robots(struct wr_pg *pg, int64_t *ret_bytes)
{
    PGresult *result = NULL;
    int error = wr_pg_query(pg, WR_BACKEND_ROBOTS_BYTES, NULL, &result);

    *ret_bytes = error == 0 && PQntuples(result) == 1 ? wr_pg_integer(result, 0, 0) : 0;
    PQclear(result);
    return error;
}

/* Removes the oldest robots.txt texts. Skips rows that another process is writing. */
static int pg_trim_robots(struct wr_pg *pg)
{
    struct wr_pg_params params;
    PGresult *result = NULL;

    wr_pg_params_init(&params, pg->allocator, "N");
    wr_pg_put_integer(&params, 0, wr_backend_robots_kept(pg->robots_bytes));
    int error = wr_pg_query(pg,
                            "DELETE FROM robots WHERE ctid IN (SELECT ctid FROM robots WHERE " WR_BACKEND_OLD_ROBOTS(
                                "$1") " FOR UPDATE SKIP LOCKED)",
                            &params, &result);
    PQclear(result);
    wr_pg_params_release(&params);
    return error;
}

/* Removes robots.txt texts beyond the limit, when this process's own may have passed it; the sum
 * includes those of other processes. Errors are ignored: the next transaction retries it. */
int wr_pg_settle(struct wr_backend *backend)
{
    struct wr_pg *pg = wr_pg_of(backend);
    int64_t bytes, most = (int64_t)pg->robots_bytes;

    if (backend->robots_room >= 0 || pg->conn == NULL)
        return 0;
    int error = pg_sum_robots(pg, &bytes);
    if (error == 0 && bytes > most)
        error = pg_trim_robots(pg);
    if (error == 0 && bytes > most)
        error = pg_sum_robots(pg, &bytes);
    int64_t room = most - bytes;
    /* other processes add texts too, so each recounts after at most a sixteenth of the limit */
    if (error == 0)
        backend->robots_room = room < most / 16 ? room : most / 16;
    return 0;
}
