/* SPDX-License-Identifier: MIT */
/* recrawl_diff.c - recrawl: seeds a job with the URLs of an earlier job, and compares both at the
 * end. */
#include "base/error.h"
#include "crawl/engine/engine_state.h"

#include <unistd.h>

#define TASKS_AT_ONCE 256
#define WAIT_US 100000

/* ---- seeding from the earlier job ---- */

struct earlier_tasks_read {
    struct wr_engine *engine;
    struct wr_url_batch urls; /* URLs that were read and not yet passed on as seeds */
    size_t count;             /* number of rows of the last read */
    int64_t last_id;
    bool lacks_memory;
};

/* Adds a task of the earlier job to the batch, on the store's thread. Its seeds are seeds here,
 * too. Other tasks keep their depth; the scope and limits of this job apply. */
static void add_earlier_task(void *context, const struct wr_store_row *row)
{
    struct earlier_tasks_read *reading = context;
    const struct wr_store_task *task = &row->task;
    char memory[WR_URL_ROOM];
    struct wr_url url;
    reading->count++;
    reading->last_id = task->id;
    if (wr_url_parse(task->url, NULL, NULL, memory, sizeof memory, &url) != WR_URL_OK)
        return;
    if (task->depth == 0)
        wr_engine_register_seed(reading->engine, &url, task->hops == 0);
    const struct wr_url_batch_entry found = {.fingerprint = task->fingerprint,
                                             .depth = task->depth,
                                             .hops = task->hops,
                                             .parent = task->parent,
                                             .verdict = WR_ADD_URL_LATER,
                                             .is_seed = task->depth == 0 || task->parent == task->fingerprint,
                                             .is_sitemap = task->parent == task->fingerprint};
    reading->lacks_memory |= !wr_url_batch_add(&reading->urls, &url, &found);
}

static int add_earlier_seeds(struct earlier_tasks_read *reading)
{
    int error = reading->lacks_memory ? WEIR_E_NOMEM : 0;
    for (size_t i = 0; i < reading->urls.count && error == 0; i++)
        error = wr_seed_batch_add(reading->engine, &reading->urls, &reading->urls.list[i]);
    wr_url_batch_clear(&reading->urls);
    return error;
}

/* Reads the next AT_ONCE tasks. Waits while the store has no room or its database is away, but
 * returns WEIR_E_CLOSED once the crawl is ending. */
static int read_earlier_tasks(struct earlier_tasks_read *reading)
{
    struct wr_engine *engine = reading->engine;
    const struct wr_store_query query = {.what = WR_STORE_ALL_TASKS,
                                         .job = engine->earlier,
                                         .after = {0, reading->last_id},
                                         .limit = TASKS_AT_ONCE,
                                         .is_hasty = true,
                                         .row = add_earlier_task,
                                         .context = reading};
    int error = WEIR_E_FULL;
    while (error == WEIR_E_FULL && atomic_load(&engine->phase) == WR_PHASE_RUNS) {
        error = wr_store_read(engine->store, &query);
        if (error == WEIR_E_FULL)
            (void)usleep(WAIT_US);
    }
    return error == WEIR_E_FULL ? WEIR_E_CLOSED : error;
}

int wr_engine_add_recrawl_seeds(struct wr_engine *engine)
{
    struct earlier_tasks_read reading = {.engine = engine};
    int error = 0;
    wr_url_batch_init(&reading.urls, engine->allocator);
    do {
        reading.count = 0;
        error = read_earlier_tasks(&reading);
        if (error == 0)
            error = add_earlier_seeds(&reading);
    } while (error == 0 && reading.count == TASKS_AT_ONCE);
    wr_url_batch_release(&reading.urls);
    return error;
}

/* ---- differences between the two jobs ---- */

struct diff_context {
    wr_engine_on_change *tell;
    void *context;
};

static bool is_task_gone(const struct wr_store_task *task)
{
    return task->status == 404 || task->status == 410 || (task->status >= 300 && task->status < 400);
}

static void compare_task_visits(void *context, const struct wr_store_row *row)
{
    const struct diff_context *comparing = context;
    const struct wr_store_task *task = &row->task;
    bool had_page = task->has_earlier && wr_recrawl_visit_had_page(task->earlier_verdict, &task->earlier);
    bool is_had = wr_span_is(task->verdict, "fetched") || wr_span_is(task->verdict, "too_large");
    if (is_had)
        comparing->tell(comparing->context, had_page ? WR_RECRAWL_CHANGED : WR_RECRAWL_NEW, task);
    else if (had_page && task->state != WR_TASK_QUEUED && is_task_gone(task) && !wr_span_is(task->verdict, "unchanged"))
        comparing->tell(comparing->context, WR_RECRAWL_GONE, task);
}

int wr_engine_diff(struct wr_engine *engine, wr_engine_on_change *tell, void *context)
{
    struct diff_context comparing = {tell, context};
    return wr_store_read(engine->store, &(struct wr_store_query){.what = WR_STORE_ALL_TASKS,
                                                                 .job = engine->job,
                                                                 .earlier = engine->earlier,
                                                                 .is_hasty = true,
                                                                 .row = compare_task_visits,
                                                                 .context = &comparing});
}

const char *wr_recrawl_change_name(enum wr_recrawl_change change)
{
    static const char *const names[] = {
#define X(change, name) name,
        WR_RECRAWL_CHANGES(X)
#undef X
    };
    return names[change];
}
