/* SPDX-License-Identifier: MIT */
/* row.c - converts the cells of a database row into a store row. */
#include "crawl/store/row.h"

#include <math.h>

#define MS_MAX (INT64_MAX / WEIR_MILLISECOND)

static int64_t read_integer(const struct wr_cells *row, int at, int64_t least, int64_t most)
{
    int64_t number = row->kind->whole(row, at);

    if (number < least)
        return least;
    return number > most ? most : number;
}

static int64_t read_duration_ms(const struct wr_cells *row, int at)
{
    return read_integer(row, at, 0, WEIR_DURATION_MAX / WEIR_MILLISECOND) * WEIR_MILLISECOND;
}

static int64_t read_instant_ms(const struct wr_cells *row, int at)
{
    return read_integer(row, at, 0, MS_MAX) * WEIR_MILLISECOND;
}

static struct wr_span read_bytes_cell(const struct wr_cells *row, int at)
{
    return row->kind->bytes(row, at);
}

/* Reads clean text of `least` to `most` bytes. Returns false if the cell is anything else. */
static bool read_clean_text(const struct wr_cells *row, int at, size_t least, size_t most, struct wr_span *ret_text)
{
    if (!row->kind->is_text(row, at))
        return false;
    *ret_text = read_bytes_cell(row, at);
    return ret_text->bytes >= least && ret_text->bytes <= most && wr_span_is_clean(*ret_text);
}

/* Reads the last visit of a page. Invalid texts become empty, so that the task is not lost. */
static void read_visit(const struct wr_cells *row, int at, struct wr_store_visit *ret_visit)
{
    *ret_visit = (struct wr_store_visit){
        .changes = (uint32_t)read_integer(row, at + 2, 0, UINT32_MAX),
        .since_wall_at = read_instant_ms(row, at + 3),
        .visited_wall_at = read_instant_ms(row, at + 4),
    };
    if (!read_clean_text(row, at, 0, WR_STORE_VALIDATOR_MAX, &ret_visit->validator))
        ret_visit->validator = (struct wr_span){NULL, 0};
    if (!read_clean_text(row, at + 1, 0, WR_STORE_DIGEST_MAX, &ret_visit->digest))
        ret_visit->digest = (struct wr_span){NULL, 0};
}

static void read_earlier(const struct wr_cells *row, int at, struct wr_store_task *ret_task)
{
    ret_task->has_earlier = read_clean_text(row, at, 0, WR_STORE_WORD_MAX, &ret_task->earlier_verdict);
    if (ret_task->has_earlier)
        read_visit(row, at + 1, &ret_task->earlier);
    else
        ret_task->earlier_verdict = (struct wr_span){NULL, 0};
}

bool wr_row_task(const struct wr_cells *row, const struct wr_store_query *query, int64_t wall_now,
                 struct wr_store_task *ret_task)
{
    int64_t latest = wall_now + WR_STORE_RETRY_MAX_NS, not_before = read_instant_ms(row, 6);

    *ret_task = (struct wr_store_task){
        .job = query->job,
        .host = query->key,
        .id = row->kind->whole(row, 0),
        .fingerprint = (uint64_t)row->kind->whole(row, 1),
        .parent = (uint64_t)row->kind->whole(row, 2),
        .priority = (int32_t)read_integer(row, 3, INT32_MIN, INT32_MAX),
        .depth = (uint32_t)read_integer(row, 4, 0, UINT32_MAX),
        .hops = (uint32_t)read_integer(row, 9, 0, UINT32_MAX),
        .attempts = (uint32_t)read_integer(row, 5, 0, UINT32_MAX),
        .not_before_wall_at = not_before < latest ? not_before : latest,
    };
    if (query->what == WR_STORE_TASKS && query->earlier != 0)
        read_earlier(row, 10, ret_task);
    /* an invalid referrer must not lose the task */
    if (!read_clean_text(row, 8, 1, WR_URL_MAX, &ret_task->referrer))
        ret_task->referrer = (struct wr_span){NULL, 0};
    return read_clean_text(row, 7, 1, WR_URL_MAX, &ret_task->url);
}

/* Reads a task in any state. Only an invalid URL makes it invalid; other texts become empty. */
static bool read_any_task(const struct wr_cells *row, const struct wr_store_query *query, int64_t wall_now,
                          struct wr_store_task *ret_task)
{
    static const struct wr_span none = {NULL, 0};
    bool is_sound = wr_row_task(row, query, wall_now, ret_task);

    ret_task->state = (enum wr_task_state)read_integer(row, 10, WR_TASK_QUEUED, WR_TASK_FAILED);
    ret_task->status = (int)read_integer(row, 11, 0, 999);
    ret_task->bytes = (uint64_t)read_integer(row, 12, 0, INT64_MAX);
    if (!read_clean_text(row, 13, 0, WR_STORE_WORD_MAX, &ret_task->verdict))
        ret_task->verdict = none;
    if (!read_clean_text(row, 14, 0, WR_STORE_WHY_MAX, &ret_task->why))
        ret_task->why = none;
    ret_task->ended_wall_at = read_instant_ms(row, 15);
    if (!read_clean_text(row, 16, 1, WEIR_PACE_KEY_MAX, &ret_task->host))
        ret_task->host = none;
    ret_task->before = (uint64_t)read_integer(row, 17, 0, INT64_MAX);
    read_visit(row, 18, &ret_task->visit);
    read_earlier(row, 23, ret_task);
    if (query->has_lines && !read_clean_text(row, 29, 0, WR_STORE_LINE_MAX, &ret_task->line))
        ret_task->line = none;
    return is_sound;
}

static bool read_seed(const struct wr_cells *row, struct wr_store_task *ret_task)
{
    *ret_task =
        (struct wr_store_task){.hops = (uint32_t)read_integer(row, 1, 0, UINT32_MAX), .id = row->kind->whole(row, 2)};
    return read_clean_text(row, 0, 1, WR_URL_MAX, &ret_task->url);
}

static bool read_host_row(const struct wr_cells *row, struct wr_store_host *ret_host)
{
    double rate = row->kind->real(row, 8);

    *ret_host = (struct wr_store_host){
        .id = row->kind->whole(row, 0),
        .queued = (uint64_t)read_integer(row, 2, 0, INT64_MAX),
        .memory =
            {
                .delay_ns = read_duration_ms(row, 3),
                .floor_ns = read_duration_ms(row, 4),
                .robots_delay_ns = read_duration_ms(row, 5),
                .retry_wall_at = read_instant_ms(row, 6),
                .saved_wall_at = read_instant_ms(row, 7),
                .rate = isfinite(rate) && rate > 0 ? rate : 0,
                .cap = (uint32_t)read_integer(row, 9, 0, UINT32_MAX),
                .traits = (uint32_t)read_integer(row, 10, 0, UINT32_MAX),
                .block_ns = read_duration_ms(row, 11),
                .breaker_open = row->kind->whole(row, 12) != 0,
            },
        .is_paused = row->kind->whole(row, 15) != 0,
        .set_interval_ns = read_integer(row, 16, 0, WR_STORE_INTERVAL_MAX_NS / WEIR_MILLISECOND) * WEIR_MILLISECOND,
    };
    ret_host->blocked_until_wall_at = read_instant_ms(row, 13);
    if (!read_clean_text(row, 14, 0, WR_STORE_WORD_MAX, &ret_host->blocked_by))
        ret_host->blocked_by = (struct wr_span){NULL, 0};
    return read_clean_text(row, 1, 1, WEIR_PACE_KEY_MAX, &ret_host->key);
}

static bool read_host_with_lease(const struct wr_cells *row, struct wr_store_host *ret_host)
{
    bool is_sound = read_host_row(row, ret_host);

    if (!read_clean_text(row, 17, 1, WR_STORE_WHY_MAX, &ret_host->leased_by))
        ret_host->leased_by = (struct wr_span){NULL, 0};
    ret_host->lease_left_ns = read_duration_ms(row, 18);
    ret_host->rest_ns = row->kind->whole(row, 19) < 0 ? WEIR_FOREVER : read_duration_ms(row, 19);
    return is_sound;
}

static bool read_node(const struct wr_cells *row, struct wr_store_node *ret_node)
{
    *ret_node = (struct wr_store_node){
        .job = row->kind->whole(row, 1),
        .hosts = (uint64_t)read_integer(row, 2, 0, INT64_MAX),
    };
    return read_clean_text(row, 0, 1, WR_STORE_WHY_MAX, &ret_node->name);
}

/* Reads a sum. Invalid texts become empty, so that no task is left out of the counts. */
static bool read_sum(const struct wr_cells *row, struct wr_store_task_sum *ret_sum)
{
    *ret_sum = (struct wr_store_task_sum){
        .state = (enum wr_task_state)read_integer(row, 1, WR_TASK_QUEUED, WR_TASK_FAILED),
        .status = (int)read_integer(row, 2, 0, 999),
        .tasks = (uint64_t)read_integer(row, 4, 0, INT64_MAX),
        .bytes = (uint64_t)read_integer(row, 5, 0, INT64_MAX),
        .attempts = (uint64_t)read_integer(row, 6, 0, INT64_MAX),
        .first_wall_at = read_instant_ms(row, 7),
        .last_wall_at = read_instant_ms(row, 8),
    };
    if (!read_clean_text(row, 0, 1, WEIR_PACE_KEY_MAX, &ret_sum->host))
        ret_sum->host = (struct wr_span){NULL, 0};
    if (!read_clean_text(row, 3, 0, WR_STORE_WORD_MAX, &ret_sum->verdict))
        ret_sum->verdict = (struct wr_span){NULL, 0};
    return true;
}

static bool read_claimed_host(const struct wr_cells *row, struct wr_store_host *ret_host)
{
    bool is_sound = read_host_row(row, ret_host);

    ret_host->lease = (uint64_t)read_integer(row, 17, 0, INT64_MAX);
    ret_host->has_rested = row->kind->whole(row, 18) != 0;
    ret_host->held_ns = read_duration_ms(row, 19);
    return is_sound;
}

static bool read_renewed_host(const struct wr_cells *row, struct wr_store_host *ret_host)
{
    *ret_host = (struct wr_store_host){
        .id = row->kind->whole(row, 0),
        .lease = (uint64_t)read_integer(row, 2, 0, INT64_MAX),
        .is_paused = row->kind->whole(row, 3) != 0,
        .set_interval_ns = read_integer(row, 4, 0, WR_STORE_INTERVAL_MAX_NS / WEIR_MILLISECOND) * WEIR_MILLISECOND,
        .is_wanted = row->kind->whole(row, 5) != 0,
        .share = (uint64_t)read_integer(row, 6, 0, INT64_MAX),
    };
    return read_clean_text(row, 1, 1, WEIR_PACE_KEY_MAX, &ret_host->key);
}

static bool read_fetched_host(const struct wr_cells *row, struct wr_store_host *ret_host)
{
    *ret_host = (struct wr_store_host){.id = row->kind->whole(row, 0)};
    return read_clean_text(row, 1, 1, WEIR_PACE_KEY_MAX, &ret_host->key);
}

static bool read_job(const struct wr_cells *row, struct wr_store_job *ret_job)
{
    struct wr_span status;

    *ret_job = (struct wr_store_job){
        .id = row->kind->whole(row, 0),
        .created_wall_at = read_instant_ms(row, 4),
        .updated_wall_at = read_instant_ms(row, 5),
        .queued = (uint64_t)read_integer(row, 6, 0, INT64_MAX),
        .done = (uint64_t)read_integer(row, 7, 0, INT64_MAX),
        .failed = (uint64_t)read_integer(row, 8, 0, INT64_MAX),
        .bytes = (uint64_t)read_integer(row, 9, 0, INT64_MAX),
        .retries = (uint64_t)read_integer(row, 10, 0, INT64_MAX),
        .rejected = (uint64_t)read_integer(row, 11, 0, INT64_MAX),
        .earlier = read_integer(row, 12, 0, INT64_MAX),
        .is_dismissed = row->kind->whole(row, 13) != 0,
    };
    return read_clean_text(row, 1, 1, WR_STORE_WORD_MAX, &status) && wr_job_status_parse(status, &ret_job->status) &&
           read_clean_text(row, 2, 0, WR_STORE_WHY_MAX, &ret_job->why) &&
           read_clean_text(row, 3, 0, WR_STORE_SETTINGS_MAX, &ret_job->settings);
}

static bool read_robots(const struct wr_cells *row, struct wr_store_robots *ret_robots)
{
    int64_t kind = row->kind->whole(row, 1),
            max_age_ms = read_integer(row, 5, -1, WEIR_DURATION_MAX / WEIR_MILLISECOND);

    *ret_robots = (struct wr_store_robots){
        .kind = kind == WR_STORE_ROBOTS_TEXT ? WR_STORE_ROBOTS_TEXT : WR_STORE_ROBOTS_NONE,
        .text = read_bytes_cell(row, 2),
        .etag = read_bytes_cell(row, 3),
        .modified = read_bytes_cell(row, 4),
        .max_age_ns = max_age_ms < 0 ? -1 : max_age_ms * WEIR_MILLISECOND,
        .fetched_wall_at = read_instant_ms(row, 6),
    };
    return (kind == WR_STORE_ROBOTS_TEXT || kind == WR_STORE_ROBOTS_NONE) &&
           read_clean_text(row, 0, 1, WR_URL_MAX, &ret_robots->url) && ret_robots->text.bytes <= WR_STORE_ROBOTS_MAX &&
           ret_robots->etag.bytes <= WR_STORE_VALIDATOR_MAX && ret_robots->modified.bytes <= WR_STORE_VALIDATOR_MAX;
}

/* Reads a report. The caller checks its text. */
static bool read_report(const struct wr_cells *row, struct wr_store_report *ret_report)
{
    *ret_report = (struct wr_store_report){
        .job = row->kind->whole(row, 0),
        .run = row->kind->whole(row, 1),
        .ended_wall_at = read_instant_ms(row, 2),
        .text = read_bytes_cell(row, 3),
    };
    return ret_report->text.bytes > 0 && ret_report->text.bytes <= WR_STORE_REPORT_MAX;
}

static bool read_output(const struct wr_cells *row, struct wr_store_output *ret_output)
{
    *ret_output = (struct wr_store_output){
        .job = row->kind->whole(row, 0),
        .bytes = (uint64_t)read_integer(row, 2, 0, INT64_MAX),
    };
    return read_clean_text(row, 1, 1, WR_STORE_PATH_MAX, &ret_output->path);
}

bool wr_row_read(const struct wr_cells *row, const struct wr_store_query *query, int64_t wall_now,
                 struct wr_store_row *ret_row)
{
    ret_row->what = query->what;
    switch (query->what) {
    case WR_STORE_JOBS:
        return read_job(row, &ret_row->job);
    case WR_STORE_TASKS:
        return wr_row_task(row, query, wall_now, &ret_row->task);
    case WR_STORE_FINGERPRINTS:
        ret_row->task = (struct wr_store_task){.fingerprint = (uint64_t)row->kind->whole(row, 0)};
        return true;
    case WR_STORE_SEEDS:
        return read_seed(row, &ret_row->task);
    case WR_STORE_ONE_TASK:
    case WR_STORE_ALL_TASKS:
        return read_any_task(row, query, wall_now, &ret_row->task);
    case WR_STORE_HOSTS:
    case WR_STORE_ONE_HOST:
    case WR_STORE_ALL_HOSTS:
        return read_host_with_lease(row, &ret_row->host);
    case WR_STORE_NODES:
        return read_node(row, &ret_row->node);
    case WR_STORE_SUMS:
        return read_sum(row, &ret_row->sum);
    case WR_STORE_CLAIM:
    case WR_STORE_CLAIM_ONE:
        return read_claimed_host(row, &ret_row->host);
    case WR_STORE_RENEW:
        return read_renewed_host(row, &ret_row->host);
    case WR_STORE_FETCHED_HOSTS:
        return read_fetched_host(row, &ret_row->host);
    case WR_STORE_ONE_ROBOTS:
        return read_robots(row, &ret_row->robots);
    case WR_STORE_REPORTS:
        return read_report(row, &ret_row->report);
    case WR_STORE_OUTPUTS:
        return read_output(row, &ret_row->output);
    case WR_STORE_RELEASE:
    case WR_STORE_CHECK:
        break;
    }
    return false;
}
