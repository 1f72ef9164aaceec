/* SPDX-License-Identifier: MIT */
/* again.c - recrawl: seeds a job with the URLs of an earlier job, and compares both at the end. */
#include "base/error.h"
#include "shell/engine/state.h"

#include <unistd.h>

#define AT_ONCE 256
#define WAIT_US 100000

/* ---- seeding from the earlier job ---- */

struct reading {
    struct wr_engine *engine;
    struct wr_founds founds; /* URLs that were read and not yet passed on as seeds */
    size_t count;            /* number of rows of the last read */
    int64_t last_id;
    bool lacks_memory;
};

/* Adds a task of the earlier job to the batch, on the store's thread. Its seeds are seeds here,
 * too. Other tasks keep their depth; the scope and limits of this job apply. */
static void on_task(void *context, const struct wr_store_row *row)
{
    struct reading *reading = context;
    const struct wr_store_task *task = &row->task;
    char memory[WR_URL_ROOM];
    struct wr_url url;
    reading->count++;
    reading->last_id = task->id;
    if (wr_url_parse(task->url, NULL, NULL, memory, sizeof memory, &url) != WR_URL_OK)
        return;
    if (task->depth == 0)
        wr_engine_seed_known(reading->engine, &url, task->hops == 0);
    const struct wr_found found = {.fingerprint = task->fingerprint,
                                   .depth = task->depth,
                                   .hops = task->hops,
                                   .parent = task->parent,
                                   .verdict = WR_OFFER_LATER,
                                   .is_seed = task->depth == 0 || task->parent == task->fingerprint,
                                   .is_sitemap = task->parent == task->fingerprint};
    reading->lacks_memory |= !wr_founds_add(&reading->founds, &url, &found);
}

static int give(struct reading *reading)
{
    int error = reading->lacks_memory ? WEIR_E_NOMEM : 0;
    for (size_t i = 0; i < reading->founds.count && error == 0; i++)
        error = wr_seeds_add(reading->engine, &reading->founds, &reading->founds.list[i]);
    wr_founds_clear(&reading->founds);
    return error;
}

/* Reads the next AT_ONCE tasks. Waits while the store has no room or its database is away, but
 * returns WEIR_E_CLOSED once the crawl is ending. */
static int read_some(struct reading *reading)
{
    struct wr_engine *engine = reading->engine;
    const struct wr_store_query query = {.what = WR_STORE_ALL_TASKS,
                                         .job = engine->earlier,
                                         .after = {0, reading->last_id},
                                         .limit = AT_ONCE,
                                         .is_hasty = true,
                                         .row = on_task,
                                         .context = reading};
    int error = WEIR_E_FULL;
    while (error == WEIR_E_FULL && atomic_load(&engine->phase) == WR_PHASE_RUNS) {
        error = wr_store_read(engine->store, &query);
        if (error == WEIR_E_FULL)
            (void)usleep(WAIT_US);
    }
    return error == WEIR_E_FULL ? WEIR_E_CLOSED : error;
}

int wr_engine_seed_earlier(struct wr_engine *engine)
{
    struct reading reading = {.engine = engine};
    int error = 0;
    wr_founds_init(&reading.founds, engine->allocator);
    do {
        reading.count = 0;
        error = read_some(&reading);
        if (error == 0)
            error = give(&reading);
    } while (error == 0 && reading.count == AT_ONCE);
    wr_founds_release(&reading.founds);
    return error;
}

/* ---- differences between the two jobs ---- */

struct comparing {
    wr_engine_tell_change *tell;
    void *context;
};

static bool is_gone(const struct wr_store_task *task)
{
    return task->status == 404 || task->status == 410 || (task->status >= 300 && task->status < 400);
}

static void on_pair(void *context, const struct wr_store_row *row)
{
    const struct comparing *comparing = context;
    const struct wr_store_task *task = &row->task;
    bool was_had = task->has_earlier && wr_earlier_had(task->earlier_verdict, &task->earlier);
    bool is_had = wr_span_is(task->verdict, "fetched") || wr_span_is(task->verdict, "too_large");
    if (is_had)
        comparing->tell(comparing->context, was_had ? WR_CHANGE_CHANGED : WR_CHANGE_NEW, task);
    else if (was_had && task->state != WR_TASK_QUEUED && is_gone(task) && !wr_span_is(task->verdict, "unchanged"))
        comparing->tell(comparing->context, WR_CHANGE_GONE, task);
}

int wr_engine_diff(struct wr_engine *engine, wr_engine_tell_change *tell, void *context)
{
    struct comparing comparing = {tell, context};
    return wr_store_read(engine->store, &(struct wr_store_query){.what = WR_STORE_ALL_TASKS,
                                                                 .job = engine->job,
                                                                 .earlier = engine->earlier,
                                                                 .is_hasty = true,
                                                                 .row = on_pair,
                                                                 .context = &comparing});
}

const char *wr_change_name(enum wr_change change)
{
    static const char *const names[] = {
#define X(change, name) name,
        WR_CHANGES(X)
#undef X
    };
    return names[change];
}
