/* SPDX-License-Identifier: MIT */
/* store_load.c - reads from the store for the plans: tasks and memory of a host, and hosts with
 * tasks.
 *
 * Rows come on the store's thread and are copied into a message. The loop gives them to its plan.
 */
#include "base/alloc.h"
#include "base/bits.h"
#include "crawl/engine/engine_state.h"

#include "base/error.h"
#include "http/loop/watchdog.h"

#define TEXT_MAX ((size_t)256 << 20) /* maximum text of a list of hosts, which may be all hosts */
#define TASKS_TEXT \
    ((size_t)1 << 20) /* text of one host's tasks: a thousand usual URLs, or a hundred of maximum length */

/* The needed fields of a task; a load may have thousands. Texts are in load->text. */
struct task_row {
    uint64_t fingerprint, parent;
    int64_t not_before_wall_at, id;
    int32_t priority;
    uint32_t depth, hops, attempts;
    size_t url_at, url_bytes;
    size_t referrer_at, referrer_bytes;
    bool has_earlier;
    size_t earlier_at, earlier_verdict_bytes; /* in load->text: verdict, validator and digest */
    struct wr_store_visit earlier;            /* results of the earlier job, without texts */
};

struct robots_copy {
    struct wr_store_robots robots; /* the stored copy, without its texts */
    bool is_known;
    size_t text_at, text_bytes;
};

struct store_load {
    struct wr_loop_message message;
    struct wr_crawl_loop *loop;
    struct wr_plan_action action;
    _Atomic uint32_t awaited; /* number of reads not answered yet */
    _Atomic int error;
    struct wr_buf text;
    struct wr_buf rows;     /* array of struct task_row, or of struct host_row */
    struct wr_buf stranded; /* array of struct task_row: tasks of hosts that cannot be read */
    size_t count;           /* elements of `rows` */
    uint64_t accepted;
    bool is_cut; /* more rows follow in another load */
    bool has_host;
    int64_t blocked_until_wall_at;
    enum wr_firewall blocked_by;
    weir_pace_memory memory;
    bool is_paused; /* set by a user, like set_interval_ns */
    int64_t set_interval_ns;
    struct robots_copy robots[2];
    size_t referrer_at, referrer_bytes; /* the last referrer, which tasks of a page share */
};

static struct store_load *load_of_message(struct wr_loop_message *message)
{
    return (struct store_load *)(void *)message;
}

static void free_store_load(struct wr_loop_message *message)
{
    struct store_load *load = load_of_message(message);
    wr_buf_release(&load->text);
    wr_buf_release(&load->rows);
    wr_buf_release(&load->stranded);
    struct wr_engine *engine = load->loop->engine;
    wr_free(engine->allocator, load, sizeof *load, _Alignof(struct store_load));
    wr_job_pending_done(engine);
}

static size_t add_load_text(struct store_load *load, struct wr_span text)
{
    size_t at = load->text.length;
    wr_buf_append_span(&load->text, text);
    return at;
}

static struct wr_span load_text(const struct store_load *load, size_t at, size_t bytes)
{
    return (struct wr_span){bytes > 0 ? load->text.bytes + at : NULL, bytes};
}

static struct store_load *new_store_load(struct wr_crawl_loop *loop, const struct wr_plan_action *action,
                                         void (*read)(struct wr_crawl_loop *loop, struct wr_loop_message *message))
{
    const weir_allocator *allocator = loop->engine->allocator;
    struct store_load *load = wr_alloc(allocator, sizeof *load, _Alignof(struct store_load));
    if (load == NULL)
        return NULL;
    load->message.read = read;
    load->message.drop = free_store_load;
    load->loop = loop;
    load->action = *action;
    wr_buf_init(&load->text, allocator, TEXT_MAX);
    wr_buf_init(&load->rows, allocator, TEXT_MAX);
    wr_buf_init(&load->stranded, allocator, TEXT_MAX);
    loop->loads++;
    (void)atomic_fetch_add(&loop->engine->pending, 1); /* the load is pending until free_load */
    return load;
}

/* ---- on the store's thread ---- */

static void on_load_read(void *context, int error, const char *why)
{
    struct store_load *load = context;
    if (error != 0) {
        atomic_store(&load->error, error);
        wr_job_end(load->loop->engine, WR_END_BROKEN, why);
    }
    if (atomic_fetch_sub(&load->awaited, 1) == 1)
        wr_loop_message_send(load->loop, &load->message);
}

static void keep_task_row(struct store_load *load, struct wr_buf *rows, const struct wr_store_task *task)
{
    struct task_row row = {.fingerprint = task->fingerprint,
                           .parent = task->parent,
                           .not_before_wall_at = task->not_before_wall_at,
                           .id = task->id,
                           .priority = task->priority,
                           .depth = task->depth,
                           .hops = task->hops,
                           .attempts = task->attempts,
                           .url_at = add_load_text(load, task->url),
                           .url_bytes = task->url.bytes,
                           .referrer_bytes = task->referrer.bytes,
                           .has_earlier = task->has_earlier,
                           .earlier_verdict_bytes = task->earlier_verdict.bytes,
                           .earlier = task->earlier};
    struct wr_span last = load_text(load, load->referrer_at, load->referrer_bytes);
    if (last.bytes == 0 || last.bytes != task->referrer.bytes ||
        memcmp(last.data, task->referrer.data, last.bytes) != 0) {
        load->referrer_at = add_load_text(load, task->referrer);
        load->referrer_bytes = task->referrer.bytes;
    }
    row.referrer_at = load->referrer_at;
    row.earlier_at = add_load_text(load, task->earlier_verdict);
    (void)add_load_text(load, task->earlier.validator);
    (void)add_load_text(load, task->earlier.digest);
    wr_buf_append(rows, &row, sizeof row);
}

static void on_task_row(void *context, const struct wr_store_row *read)
{
    struct store_load *load = context;
    load->is_cut |= load->text.length >= TASKS_TEXT;
    if (load->is_cut)
        return;
    keep_task_row(load, &load->rows, &read->task);
    load->count++;
}

static void on_host_row(void *context, const struct wr_store_row *row)
{
    struct store_load *load = context;
    load->memory = row->host.memory;
    load->is_paused = row->host.is_paused;
    load->set_interval_ns = row->host.set_interval_ns;
    load->blocked_until_wall_at = row->host.blocked_until_wall_at;
    load->blocked_by = wr_firewall_by_name(row->host.blocked_by);
    /* Else the row exists only for its tasks. */
    load->has_host = row->host.memory.saved_wall_at > 0;
}

static void keep_robots_copy(struct store_load *load, bool is_https, const struct wr_store_robots *robots)
{
    struct robots_copy *copy = &load->robots[is_https];
    copy->robots = *robots;
    copy->is_known = true;
    copy->text_at = add_load_text(load, robots->text);
    copy->text_bytes = robots->text.bytes;
}

static void on_http_robots(void *context, const struct wr_store_row *row)
{
    keep_robots_copy(context, false, &row->robots);
}

static void on_https_robots(void *context, const struct wr_store_row *row)
{
    keep_robots_copy(context, true, &row->robots);
}

/* ---- informing the plan ---- */

/* Returns the error of a load, or 0. Without memory the crawl ends: the plan would ask for ever. */
static int load_error(struct store_load *load)
{
    int error = load->text.error != 0 ? load->text.error : load->rows.error;
    error = error != 0 ? error : load->stranded.error;
    if (error != 0)
        wr_job_end(load->loop->engine, WR_END_BROKEN, weir_error_text(error));
    return atomic_load(&load->error) != 0 ? atomic_load(&load->error) : error;
}

static void give_host_memory(struct wr_crawl_loop *loop, struct store_load *load)
{
    const struct wr_engine *engine = loop->engine;
    const struct wr_robots_options options = {.agent = wr_span_of(engine->agent),
                                              .delay_max_ns = WR_ROBOTS_DELAY_MAX_NS};
    struct wr_plan_stored_host memory = {.pace = load->has_host ? &load->memory : NULL,
                                         .is_paused = load->is_paused,
                                         .set_interval_ns = load->set_interval_ns};
    int64_t wall_now = weir_wall_now();
    if (load->blocked_until_wall_at > 0) {
        memory.blocked_ns =
            wr_firewall_recall_block(loop, load->action.host, load->blocked_until_wall_at, load->blocked_by);
        memory.blocked_by = (uint8_t)load->blocked_by;
    }
    for (int i = 0; i < 2; i++) {
        const struct robots_copy *copy = &load->robots[i];
        struct wr_span text = load_text(load, copy->text_at, copy->text_bytes);
        if (!copy->is_known || (copy->robots.kind == WR_STORE_ROBOTS_TEXT &&
                                wr_robots_parse(text, &options, engine->allocator, &memory.robots[i].rules) != 0))
            continue; /* treated as if no robots.txt were stored */
        memory.robots[i].is_known = true;
        memory.robots[i].has_validators = copy->robots.etag.bytes + copy->robots.modified.bytes > 0;
        memory.robots[i].max_age_ns = copy->robots.max_age_ns;
        memory.robots[i].age_ns = wall_now - copy->robots.fetched_wall_at;
    }
    wr_plan_restore_host(loop->plan, load->action.host, &memory, wr_crawl_loop_now(loop), wall_now);
}

/* Returns true if the page budget allows the task. A task that was not offered yet is accepted by
 * this load and draws from the budget; if nothing is left, its offer will be refused. */
static bool take_page_budget(struct wr_crawl_loop *loop, uint64_t fingerprint)
{
    const struct wr_engine *engine = loop->engine;
    return engine->options.max_pages == 0 || engine->is_shared ||
           wr_plan_knows_url(loop->plan, (uint32_t)engine->job, fingerprint) ||
           wr_job_take_budget(loop, WR_BUDGET_PAGES, 1) > 0;
}

/* Ends a task that is not fetched: it is damaged, as `why` says, or not due if `why` is NULL. It
 * was accepted, so it gets a line. */
static void end_unfetched_task(struct wr_crawl_loop *loop, const struct store_load *load, const struct task_row *row,
                               const char *why)
{
    const struct wr_plan_action action = {.kind = WR_PLAN_END,
                                          .job = load->action.job,
                                          .fingerprint = row->fingerprint,
                                          .url = load_text(load, row->url_at, row->url_bytes),
                                          .depth = row->depth,
                                          .hops = row->hops,
                                          .attempts = row->attempts};
    if (why != NULL)
        wr_crawl_page_end_damaged(loop, &action, why);
    else
        wr_crawl_page_end_not_due(loop, &action);
}

static void keep_task_referrer(struct wr_crawl_loop *loop, const struct store_load *load, const struct task_row *row)
{
    if (row->referrer_bytes > 0)
        wr_referrer_put(loop, row->fingerprint, load_text(load, row->referrer_at, row->referrer_bytes));
}

/* Returns the earlier results of a task, with texts in load->text. */
static struct wr_store_task earlier_task_of(const struct store_load *load, const struct task_row *row)
{
    struct wr_store_task task = {.fingerprint = row->fingerprint,
                                 .parent = row->parent,
                                 .depth = row->depth,
                                 .not_before_wall_at = row->not_before_wall_at,
                                 .has_earlier = row->has_earlier,
                                 .earlier_verdict = load_text(load, row->earlier_at, row->earlier_verdict_bytes),
                                 .earlier = row->earlier};
    size_t validator_at = row->earlier_at + row->earlier_verdict_bytes;
    size_t digest_at = validator_at + row->earlier.validator.bytes;
    task.earlier.validator = load_text(load, validator_at, row->earlier.validator.bytes);
    task.earlier.digest = load_text(load, digest_at, row->earlier.digest.bytes);
    return task;
}

/* Returns true if the task is due. Sitemaps always are: they say which pages have changed. */
static bool is_task_due(const struct wr_engine *engine, const struct wr_store_task *task)
{
    bool is_sitemap = engine->options.sitemaps && task->parent == task->fingerprint;
    return !engine->options.only_due || is_sitemap || wr_recrawl_visit_is_due(task, weir_wall_now());
}

/* Puts a task aside, because a sitemap may still say that its page has changed. It stays queued in
 * the store, and is loaded again when all other work is done. */
static int put_task_aside(struct wr_crawl_loop *loop, const struct store_load *load, const struct task_row *row)
{
    const struct wr_plan_row given = {.fingerprint = row->fingerprint, .position = {row->id, row->priority}};
    return wr_plan_load_row(loop->plan, load->action.host, load->action.job, &given, wr_crawl_loop_now(loop));
}

/* Returns true if the URL belongs to the loaded host, whose lease covers no other. Only checked if
 * processes share hosts. */
static bool is_url_of_host(const struct store_load *load, const struct wr_url *url)
{
    char memory[WEIR_PACE_KEY_MAX + 1];
    struct wr_buf key;
    wr_buf_init_fixed(&key, memory, sizeof memory);
    wr_url_append_key(&key, url);
    struct wr_span host = wr_plan_host_key(load->action.host);
    return !load->loop->engine->is_shared ||
           (key.length == host.bytes && memcmp(key.bytes, host.data, host.bytes) == 0);
}

static int give_task_to_plan(struct wr_crawl_loop *loop, const struct store_load *load, const struct task_row *row)
{
    char memory[WR_URL_ROOM];
    struct wr_url url;
    int64_t wait_ns = row->not_before_wall_at - weir_wall_now();
    if (!take_page_budget(loop, row->fingerprint))
        return 0;
    struct wr_span text = load_text(load, row->url_at, row->url_bytes);
    bool is_url =
        wr_url_parse(text, NULL, NULL, memory, sizeof memory, &url) == WR_URL_OK && is_url_of_host(load, &url);
    const struct wr_store_task earlier = earlier_task_of(load, row);
    bool is_now = !is_url || is_task_due(loop->engine, &earlier);
    if (!is_now && loop->engine->options.sitemaps && !atomic_load(&loop->engine->is_listed))
        return put_task_aside(loop, load, row);
    const struct wr_plan_row given = {.fingerprint = row->fingerprint,
                                      .position = {row->id, row->priority},
                                      .url = is_url && is_now ? &url : NULL,
                                      .depth = row->depth,
                                      .hops = row->hops,
                                      .attempts = row->attempts,
                                      .not_before_ns = wait_ns > 0 ? wait_ns : 0};
    int error = wr_plan_load_row(loop->plan, load->action.host, load->action.job, &given, wr_crawl_loop_now(loop));
    if (error == 0)
        keep_task_referrer(loop, load, row);
    if (error == 0 && row->has_earlier)
        wr_recrawl_visit_put(loop, &earlier);
    if (!is_now)
        end_unfetched_task(loop, load, row, NULL);
    else if (!is_url)
        end_unfetched_task(loop, load, row,
                           text.bytes > 0 ? "its stored text is not a URL of its host" : "the state has lost its URL");
    return error;
}

static void read_loaded_tasks(struct wr_crawl_loop *loop, struct wr_loop_message *message)
{
    WR_DOING("tasks out of the store");
    struct store_load *load = load_of_message(message);
    const struct wr_plan_action *action = &load->action;
    int error = load_error(load);
    loop->loads--;
    if (action->wants_memory) {
        give_host_memory(loop, load);
        if (!load->has_host) /* stores the host, so that a restart keeps its pace */
            wr_crawl_loop_save_host(loop, action->host);
    }
    for (size_t i = 0; i < load->count && error == 0; i++) {
        struct task_row row;
        memcpy(&row, load->rows.bytes + i * sizeof row, sizeof row);
        error = give_task_to_plan(loop, load, &row);
    }
    if (action->count > 0) {
        bool is_end = error == 0 && !load->is_cut && load->count < action->count;
        uint32_t accepted = load->accepted < UINT32_MAX ? (uint32_t)load->accepted : UINT32_MAX;
        wr_plan_load_end(loop->plan, action->host, action->job, is_end, accepted, wr_crawl_loop_now(loop));
    }
    free_store_load(message);
}

/* ---- queries ---- */

static void send_load_query(struct store_load *load, struct wr_store_query *query)
{
    query->done = on_load_read;
    query->context = load;
    (void)atomic_fetch_add(&load->awaited, 1);
    int error = wr_store_read(load->loop->engine->store, query);
    if (error != 0)
        on_load_read(load, error, wr_error_message(error));
}

static void load_robots_copy(struct store_load *load, bool is_https)
{
    char memory[WR_ROBOTS_URL_ROOM];
    send_load_query(load, &(struct wr_store_query){.what = WR_STORE_ONE_ROBOTS,
                                                   .key = wr_crawl_robots_url(load->action.host, is_https, memory),
                                                   .row = is_https ? on_https_robots : on_http_robots});
}

void wr_load_host(struct wr_crawl_loop *loop, const struct wr_plan_action *action)
{
    struct store_load *load = new_store_load(loop, action, read_loaded_tasks);
    if (load == NULL) {
        wr_job_end(loop->engine, WR_END_BROKEN, weir_error_text(WEIR_E_NOMEM));
        return;
    }
    struct wr_span key = wr_plan_host_key(action->host);
    load->awaited = 1; /* 1 for this function, until all queries are sent */
    if (action->wants_memory) {
        send_load_query(load, &(struct wr_store_query){.what = WR_STORE_ONE_HOST, .key = key, .row = on_host_row});
        if (!loop->engine->options.ignores_robots) {
            load_robots_copy(load, false);
            load_robots_copy(load, true);
        }
    }
    if (action->count > 0) {
        wr_buf_reserve(&load->rows, wr_size_of(action->count) * sizeof(struct task_row));
        send_load_query(load, &(struct wr_store_query){.what = WR_STORE_TASKS,
                                                       .job = action->job,
                                                       .key = key,
                                                       .after = {action->after.priority, action->after.id},
                                                       .earlier = loop->engine->earlier,
                                                       .limit = wr_size_of(action->count),
                                                       .ret_accepted = &load->accepted,
                                                       .row = on_task_row});
    }
    on_load_read(load, 0, NULL);
}

/* ---- hosts ---- */

struct host_row {
    int64_t id;
    uint64_t queued;
    size_t key_at, key_bytes;
};

/* Reads a host with tasks. Tasks of a host that cannot be read belong to no loop. The first loop
 * ends them when all hosts are listed again: nothing else is under way then, and they come once. */
static void on_queued_host_row(void *context, const struct wr_store_row *read)
{
    struct store_load *load = context;
    if (read->what == WR_STORE_TASKS) {
        if (load->action.kind == WR_PLAN_IDLE && load->loop->index == 0)
            keep_task_row(load, &load->stranded, &read->task);
        return;
    }
    struct host_row row = {.id = read->host.id, .queued = read->host.queued, .key_bytes = read->host.key.bytes};
    row.key_at = add_load_text(load, read->host.key);
    wr_buf_append(&load->rows, &row, sizeof row);
    load->count++;
}

/* Warns of tasks whose hosts are lost. Processes that share hosts get some at a time, so the next
 * look asks for more at once. */
static void warn_of_stranded_tasks(struct wr_engine *engine, size_t count)
{
    char text[32];
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, text, sizeof text);
    wr_buf_append_u64(&buf, count);
    wr_buf_append_string(&buf, count == 1 ? " page" : " pages");
    wr_engine_warn_seldom(engine, "rows of hosts are gone or cannot be read; their queued URLs end as damaged: ", text);
    atomic_store(&engine->stranded_at, 0);
}

static void end_stranded_tasks(struct wr_crawl_loop *loop, const struct store_load *load)
{
    struct task_row row;
    if (loop->engine->is_shared && load->stranded.length > 0)
        warn_of_stranded_tasks(loop->engine, load->stranded.length / sizeof row);
    for (size_t at = 0; at < load->stranded.length; at += sizeof row) {
        memcpy(&row, load->stranded.bytes + at, sizeof row);
        keep_task_referrer(loop, load, &row);
        end_unfetched_task(loop, load, &row, "the state has lost its host");
    }
}

static void read_loaded_hosts(struct wr_crawl_loop *loop, struct wr_loop_message *message)
{
    WR_DOING("hosts out of the store");
    struct store_load *load = load_of_message(message);
    int64_t last_id = load->action.after.id, now = wr_crawl_loop_now(loop);
    int error = load_error(load);
    loop->loads--;
    for (size_t i = 0; i < load->count && error == 0; i++) {
        struct host_row row;
        memcpy(&row, load->rows.bytes + i * sizeof row, sizeof row);
        struct wr_span key = load_text(load, row.key_at, row.key_bytes);
        if (wr_engine_loop_of(loop->engine, key) == loop->index)
            error = wr_plan_hosts_row(loop->plan, load->action.job, key, row.queued, now);
        last_id = error == 0 ? row.id : last_id;
    }
    if (error == 0)
        end_stranded_tasks(loop, load);
    if (load->action.kind == WR_PLAN_HOSTS)
        wr_plan_hosts_end(loop->plan, load->action.job, last_id, error == 0 && load->count < load->action.count, now);
    else if (!loop->engine->is_shared)
        wr_job_loop_relisted(loop);
    free_store_load(message);
}

void wr_load_host_list(struct wr_crawl_loop *loop, const struct wr_plan_action *action)
{
    struct store_load *load = new_store_load(loop, action, read_loaded_hosts);
    if (load == NULL) {
        wr_job_end(loop->engine, WR_END_BROKEN, weir_error_text(WEIR_E_NOMEM));
        return;
    }
    load->awaited = 1;
    send_load_query(load, &(struct wr_store_query){.what = WR_STORE_HOSTS,
                                                   .job = action->job,
                                                   .after = {0, action->after.id},
                                                   .limit = wr_size_of(action->count),
                                                   .only_stranded = loop->engine->is_shared,
                                                   .row = on_queued_host_row});
    on_load_read(load, 0, NULL);
}

void wr_load_all_hosts(struct wr_crawl_loop *loop)
{
    const struct wr_plan_action all = {.kind = WR_PLAN_IDLE, .job = (uint32_t)loop->engine->job, .count = 0};
    wr_load_host_list(loop, &all);
}
