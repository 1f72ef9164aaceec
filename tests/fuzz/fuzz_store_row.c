/* SPDX-License-Identifier: MIT */
/* fuzz_store_row.c - fuzzes rows of a state file with any values: they are left out, or their
 * values clamped (G9). One byte selects type and length of a value; then the value follows. */
#include "crawl/store/row.h"
#include "crawl/store/sqlite/sqlite.h"

#include "fuzz/fuzz.h"
#include <math.h>
#include <stdlib.h>

#define COLUMNS 13 /* columns of the widest row */
#define WALL_NOW (1790000000 * (int64_t)WEIR_SECOND)

static sqlite3_stmt *row_of_any_values(void)
{
    static sqlite3 *db;
    static sqlite3_stmt *row;

    if (row == NULL) {
        fuzz_check(sqlite3_open(":memory:", &db) == SQLITE_OK);
        fuzz_check(sqlite3_prepare_v2(db, "SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?", -1, &row, NULL) == SQLITE_OK);
    }
    return row;
}

static uint64_t take_number(struct wr_span *input)
{
    uint64_t number = 0;

    for (int i = 0; i < 8 && input->bytes > 0; i++, *input = wr_span_after(*input, 1))
        number = number << 8 | (uint8_t)input->data[0];
    return number;
}

static void bind_value(sqlite3_stmt *row, int at, struct wr_span *input)
{
    uint8_t what = input->bytes > 0 ? (uint8_t)input->data[0] : 0;
    double fraction;

    *input = wr_span_after(*input, input->bytes > 0);
    size_t bytes = what >> 3 < input->bytes ? what >> 3 : input->bytes;
    struct wr_span value = {input->data, bytes};
    switch (what & 7) {
    case 0:
        return; /* NULL */
    case 1:
    case 2:
        (void)sqlite3_bind_int64(row, at, (int64_t)take_number(input));
        return;
    case 3:
        memcpy(&fraction, &(uint64_t){take_number(input)}, sizeof fraction);
        (void)sqlite3_bind_double(row, at, fraction);
        return;
    case 4: /* longer than any value may be */
        (void)sqlite3_bind_zeroblob(row, at, (int)(WR_STORE_REPORT_MAX + bytes));
        return;
    case 5:
        (void)sqlite3_bind_blob(row, at, bytes > 0 ? value.data : "", (int)bytes, SQLITE_TRANSIENT);
        break;
    default:
        (void)sqlite3_bind_text(row, at, bytes > 0 ? value.data : "", (int)bytes, SQLITE_TRANSIENT);
    }
    *input = wr_span_after(*input, bytes);
}

static bool is_text(struct wr_span text, size_t least, size_t most)
{
    return text.bytes >= least && text.bytes <= most && wr_span_is_clean(text);
}

static bool is_time(int64_t ns, int64_t most)
{
    return ns >= 0 && ns <= most;
}

static bool reads(sqlite3_stmt *row, enum wr_store_query_kind what, struct wr_store_row *ret_row)
{
    const struct wr_cells cells = {.kind = &wr_sqlite_cells, .result = row};
    const struct wr_store_query query = {.what = what, .job = 1, .key = wr_span_of("h")};

    return wr_row_read(&cells, &query, WALL_NOW, ret_row);
}

static void check_task(sqlite3_stmt *row)
{
    struct wr_store_row stored;
    const struct wr_store_task *task = &stored.task;

    if (!reads(row, WR_STORE_TASKS, &stored))
        return;
    fuzz_check(is_text(task->url, 1, WR_URL_MAX) && is_text(task->referrer, 0, WR_URL_MAX));
    fuzz_check(is_time(task->not_before_wall_at, WALL_NOW + WR_STORE_RETRY_MAX_NS));
}

static void check_host(sqlite3_stmt *row)
{
    struct wr_store_row stored;
    const weir_pace_memory *memory = &stored.host.memory;

    if (!reads(row, WR_STORE_HOSTS, &stored))
        return;
    fuzz_check(is_text(stored.host.key, 1, WEIR_PACE_KEY_MAX) && stored.host.queued <= INT64_MAX);
    fuzz_check(is_time(memory->delay_ns, WEIR_DURATION_MAX) && is_time(memory->floor_ns, WEIR_DURATION_MAX));
    fuzz_check(is_time(memory->robots_delay_ns, WEIR_DURATION_MAX) && is_time(memory->block_ns, WEIR_DURATION_MAX));
    fuzz_check(memory->retry_wall_at >= 0 && memory->saved_wall_at >= 0);
    fuzz_check(isfinite(memory->rate) && memory->rate >= 0);
}

static void check_others(sqlite3_stmt *row)
{
    struct wr_store_row stored;

    if (reads(row, WR_STORE_JOBS, &stored))
        fuzz_check(wr_job_status_name(stored.job.status) != NULL && is_text(stored.job.why, 0, WR_STORE_WHY_MAX) &&
                   is_text(stored.job.settings, 0, WR_STORE_SETTINGS_MAX) && stored.job.created_wall_at >= 0);
    if (reads(row, WR_STORE_ONE_ROBOTS, &stored))
        fuzz_check(is_text(stored.robots.url, 1, WR_URL_MAX) && stored.robots.kind <= WR_STORE_ROBOTS_NONE &&
                   stored.robots.text.bytes <= WR_STORE_ROBOTS_MAX &&
                   stored.robots.etag.bytes <= WR_STORE_VALIDATOR_MAX &&
                   stored.robots.modified.bytes <= WR_STORE_VALIDATOR_MAX && stored.robots.max_age_ns >= -1 &&
                   stored.robots.max_age_ns <= WEIR_DURATION_MAX && stored.robots.fetched_wall_at >= 0);
    if (reads(row, WR_STORE_REPORTS, &stored))
        fuzz_check(stored.report.text.bytes <= WR_STORE_REPORT_MAX && stored.report.ended_wall_at >= 0);
    if (reads(row, WR_STORE_OUTPUTS, &stored))
        fuzz_check(is_text(stored.output.path, 1, WR_STORE_PATH_MAX) && stored.output.bytes <= INT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    sqlite3_stmt *row = row_of_any_values();
    struct wr_span input = {(const char *)data, bytes};

    for (int i = 1; i <= COLUMNS; i++)
        bind_value(row, i, &input);
    fuzz_check(sqlite3_step(row) == SQLITE_ROW);
    check_task(row);
    check_host(row);
    check_others(row);
    (void)sqlite3_reset(row);
    (void)sqlite3_clear_bindings(row);
    return 0;
}
