/* SPDX-License-Identifier: MIT */
/* answer_jobs.c - answers requests about jobs: lists, tasks, cancellation. */
#include "base/error.h"
#include "crawl/engine/output_line.h"
#include "limiter/memory/memory.h"
#include "watch/control/control_request.h"

#define TASKS_MOST 1000 /* limit of tasks per response */
#define TASK_ROOM 65536 /* limit of one task as JSON, bytes */
_Static_assert(6 * (WR_URL_MAX + WEIR_PACE_KEY_MAX + WR_STORE_WORD_MAX + WR_STORE_WHY_MAX) + 512 < TASK_ROOM,
               "however much of it is escaped");
#define JSON_LINE_ROOM WR_STORE_LINE_MAX
#define NO_JOB "there is no such job; \"weir jobs list\" lists them"
_Static_assert(6 * (2 * WR_URL_MAX + WR_STORE_DIGEST_MAX + WR_STORE_WHY_MAX) + 1024 < JSON_LINE_ROOM, "the same");

/* ---- jobs ---- */

struct job_list_answer {
    struct wr_control_request *ask;
    uint64_t told;
    int64_t newest, unfinished; /* job numbers; 0: there is no such job */
    enum wr_job_status status;  /* status of the last job read */
    bool has_settings;
    struct wr_control_process_counts counts_of_process;
};

static void on_listed_job(void *context, const struct wr_store_row *row)
{
    struct job_list_answer *jobs = context;
    struct wr_buf *buf = jobs->ask->answer;
    const struct wr_store_job *job = &row->job;
    const struct wr_engine *engine = jobs->ask->source->engine;
    uint64_t processes = wr_control_processes_of(&jobs->counts_of_process, job->id);
    bool is_running = (engine != NULL && wr_engine_job_id(engine) == job->id) || processes > 0;
    wr_append_json_count(buf, jobs->told++ > 0 ? ",{\"id\":" : "{\"id\":", (uint64_t)job->id);
    wr_append_json_word(buf, ",\"status\":", wr_job_status_name(job->status));
    wr_append_json_bool(buf, ",\"running\":", is_running);
    if (wr_store_is_shared(jobs->ask->source->store))
        wr_append_json_count(buf, ",\"processes\":", processes);
    wr_append_json_bool(buf, ",\"over\":", wr_job_is_over(job->status));
    wr_append_json_text(buf, ",\"why\":", job->why.data != NULL ? job->why : wr_span_of(""));
    wr_append_json_wall(buf, ",\"created_at_ms\":", job->created_wall_at);
    wr_append_json_wall(buf, ",\"updated_at_ms\":", job->updated_wall_at);
    wr_append_json_count(buf, ",\"queued\":", job->queued);
    wr_append_json_count(buf, ",\"done\":", job->done);
    wr_append_json_count(buf, ",\"failed\":", job->failed);
    wr_append_json_count(buf, ",\"bytes\":", job->bytes);
    wr_append_json_count(buf, ",\"retries\":", job->retries);
    wr_append_json_count(buf, ",\"rejected\":", job->rejected);
    if (jobs->has_settings)
        wr_append_json_text(buf, ",\"settings\":", job->settings.data != NULL ? job->settings : wr_span_of(""));
    wr_buf_append_string(buf, "}");
}

int wr_control_answer_jobs(struct wr_control_request *ask)
{
    int64_t job = wr_control_request_number(ask, "job", 0);
    struct job_list_answer jobs = {.ask = ask, .has_settings = job > 0};
    const struct wr_store_query query = {
        .what = WR_STORE_JOBS, .job = job, .is_hasty = true, .row = on_listed_job, .context = &jobs};
    uint64_t count;
    int error = wr_control_count_processes(ask, &jobs.counts_of_process);
    wr_append_json_bool(ask->answer, ",\"live\":", ask->source->engine != NULL);
    wr_buf_append_string(ask->answer, ",\"jobs\":[");
    error = error == 0 ? wr_store_read(ask->source->store, &query) : error;
    wr_buf_append_string(ask->answer, "]");
    if (error == 0 && job > 0)
        error = wr_control_append_processes(ask, job, &count);
    return error == 0 && job > 0 && jobs.told == 0 ? wr_invalid(NO_JOB) : error;
}

static void on_candidate_job(void *context, const struct wr_store_row *row)
{
    struct job_list_answer *jobs = context;
    jobs->newest = row->job.id;
    jobs->status = row->job.status;
    if (!wr_job_is_over(row->job.status))
        jobs->unfinished = row->job.id;
}

int wr_control_request_job(const struct wr_control_request *ask, int64_t *ret_job)
{
    int64_t job = wr_control_request_number(ask, "job", 0);
    struct job_list_answer jobs = {.newest = 0};
    const struct wr_store_query query = {
        .what = WR_STORE_JOBS, .job = job, .is_hasty = true, .row = on_candidate_job, .context = &jobs};
    if (job == 0 && ask->source->engine != NULL) {
        *ret_job = wr_engine_job_id(ask->source->engine);
        return 0;
    }
    int error = wr_store_read(ask->source->store, &query);
    if (error == 0 && jobs.newest == 0)
        error = wr_invalid(job > 0 ? NO_JOB : "there are no jobs in this state file");
    if (error == 0)
        *ret_job = jobs.unfinished != 0 ? jobs.unfinished : jobs.newest;
    return error;
}

int wr_control_answer_cancel(struct wr_control_request *ask)
{
    struct wr_engine *engine = ask->source->engine;
    int64_t job = wr_control_request_number(ask, "job", 0);
    struct job_list_answer jobs = {.newest = 0};
    const struct wr_store_query query = {
        .what = WR_STORE_JOBS, .job = job, .is_hasty = true, .row = on_candidate_job, .context = &jobs};
    if (job <= 0)
        return wr_invalid("no job is given; give the number of the job to cancel");
    wr_append_json_count(ask->answer, ",\"job\":", (uint64_t)job);
    if (engine != NULL && wr_engine_job_id(engine) == job) {
        wr_engine_cancel(engine);
        return 0;
    }
    int error = wr_store_read(ask->source->store, &query);
    if (error != 0 || jobs.newest == 0)
        return error != 0 ? error : wr_invalid(NO_JOB);
    if (wr_job_is_over(jobs.status))
        return wr_invalid("the job is over already");
    const struct wr_store_change change = {
        .kind = WR_STORE_JOB_STATUS,
        .status = {.job = job, .status = WR_JOB_CANCELLED, .why = wr_span_of("by the user")}};
    return wr_store_post_now(ask->source->store, &change, 1);
}

/* ---- tasks ---- */

const char *wr_task_state_name(enum wr_task_state state)
{
    static const char *const names[] = {"queued", "done", "failed"};
    return names[state];
}

void wr_append_task(struct wr_buf *buf, const struct wr_store_task *task)
{
    wr_append_json_text(buf, "{\"url\":", task->url);
    wr_append_json_text(buf, ",\"host\":", task->host);
    wr_append_json_word(buf, ",\"state\":", wr_task_state_name(task->state));
    wr_append_json_count(buf, ",\"depth\":", task->depth);
    wr_append_json_count(buf, ",\"hops\":", task->hops);
    wr_append_json_count(buf, ",\"attempts\":", task->attempts);
    if (task->status > 0)
        wr_append_json_count(buf, ",\"status\":", (uint64_t)task->status);
    else
        wr_append_json_null(buf, ",\"status\":");
    wr_append_json_text(buf, ",\"verdict\":", task->verdict.bytes > 0 ? task->verdict : (struct wr_span){NULL, 0});
    wr_append_json_text(buf, ",\"error\":", task->why.bytes > 0 ? task->why : (struct wr_span){NULL, 0});
    wr_append_json_count(buf, ",\"bytes\":", task->bytes);
    wr_append_json_wall(buf, ",\"not_before_ms\":", task->state == WR_TASK_QUEUED ? task->not_before_wall_at : 0);
    wr_append_json_wall(buf, ",\"ended_at_ms\":", task->ended_wall_at);
    wr_buf_append_string(buf, "}");
}

struct task_list_answer {
    struct wr_control_request *ask;
    uint64_t told;
    int64_t last;
    bool is_full; /* the response is full */
};

static void on_listed_task(void *context, const struct wr_store_row *row)
{
    struct task_list_answer *tasks = context;
    tasks->is_full = tasks->is_full || tasks->ask->answer->length + TASK_ROOM > WR_CONTROL_ANSWER_MAX;
    if (tasks->is_full)
        return;
    wr_buf_append_string(tasks->ask->answer, tasks->told++ > 0 ? "," : "");
    wr_append_task(tasks->ask->answer, &row->task);
    tasks->last = row->task.id;
}

/* Appends an output line as a JSON string: the stored line, or else one made from the task. */
static void append_output_line(struct wr_buf *buf, struct wr_span kept, const struct wr_store_task *task)
{
    struct wr_buf line;
    wr_buf_init(&line, wr_allocator_or_system(NULL), JSON_LINE_ROOM);
    if (kept.bytes == 0) {
        wr_output_line_append_task(&line, task);
        wr_buf_cut(&line, line.length > 0 ? line.length - 1 : 0);
        kept = wr_buf_from(&line, 0);
    }
    wr_append_json_text(buf, "", kept);
    buf->error = buf->error != 0 ? buf->error : line.error;
    wr_buf_release(&line);
}

static void on_task_with_line(void *context, const struct wr_store_row *row)
{
    struct task_list_answer *tasks = context;
    const struct wr_store_task *task = &row->task;
    size_t room = 2 * JSON_LINE_ROOM + 64; /* escaping can double each byte */
    tasks->is_full = tasks->is_full || tasks->ask->answer->length + room > WR_CONTROL_ANSWER_MAX;
    if (tasks->is_full)
        return;
    tasks->last = task->id;
    if (task->state == WR_TASK_QUEUED)
        return;
    wr_buf_append_string(tasks->ask->answer, tasks->told++ > 0 ? "," : "");
    append_output_line(tasks->ask->answer, task->line, task);
}

/* Answers with one page of tasks. The next page begins after the returned `after`. */
int wr_control_answer_tasks(struct wr_control_request *ask)
{
    struct task_list_answer tasks = {.ask = ask, .last = wr_control_request_number(ask, "after", 0)};
    int64_t next = 0;
    struct wr_store_query query = {.what = WR_STORE_ALL_TASKS,
                                   .after = {0, tasks.last},
                                   .limit = TASKS_MOST,
                                   .has_lines = json_is_true(json_object_get(ask->request, "lines")),
                                   .is_hasty = true,
                                   .ret_next = &next,
                                   .row = on_listed_task,
                                   .context = &tasks};
    if (query.has_lines)
        query.row = on_task_with_line;
    int error = wr_control_request_job(ask, &query.job);
    if (error != 0)
        return error;
    wr_buf_append_string(ask->answer, query.has_lines ? ",\"lines\":[" : ",\"tasks\":[");
    error = wr_store_read(ask->source->store, &query);
    next = tasks.is_full ? tasks.last : next;
    wr_append_json_count(ask->answer, "],\"after\":", (uint64_t)(next != 0 ? next : tasks.last));
    wr_append_json_bool(ask->answer, ",\"end\":", next == 0);
    return error;
}
