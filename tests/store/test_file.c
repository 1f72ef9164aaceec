/* SPDX-License-Identifier: MIT */
/* test_file.c - the content of an SQLite state file: its columns, its versions, and damaged
 * rows. */
#include "crawl/store/sqlite/sqlite.h"
#include "lib/sql.h"
#include "store/rig.h"

#include <sys/stat.h>

/* Returns the first column of the first row. */
static int64_t ask_sql(const char *path, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *statement;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t number = sqlite3_column_int64(statement, 0);
    (void)sqlite3_finalize(statement);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return number;
}

/* ---- columns --------------------------------------------------------------------------------- */

/* S2-7, R15, U7: the columns have whole seconds, rounded up, beside the exact value. */
static void learned_delays_are_in_the_documented_columns(void **state)
{
    (void)state;
    struct store_fixture rig;
    rig_set_up(&rig, rig_backends);
    rig_open(&rig);
    int64_t job = rig_job(&rig, "");
    rig_post(&rig, rig_found(&rig, job, "fresh", "https://fresh/", NULL));
    rig_post(&rig, (struct wr_store_change){
                       .kind = WR_STORE_HOST,
                       .host = {.key = wr_span_of("slow"),
                                .memory = {.delay_ns = 21500 * WEIR_MILLISECOND, .floor_ns = 500 * WEIR_MILLISECOND}}});
    rig_close(&rig);
    assert_int_equal(ask_sql(rig.path, "SELECT adaptive_delay_seconds FROM hosts WHERE host = 'slow'"), 22);
    assert_int_equal(ask_sql(rig.path, "SELECT adaptive_delay_floor_seconds FROM hosts WHERE host = 'slow'"), 1);
    assert_int_equal(ask_sql(rig.path, "SELECT adaptive_delay_ms FROM hosts WHERE host = 'slow'"), 21500);
    assert_int_equal(ask_sql(rig.path, "SELECT adaptive_delay_floor_ms FROM hosts WHERE host = 'slow'"), 500);
    assert_int_equal(ask_sql(rig.path, "SELECT adaptive_delay_seconds + adaptive_delay_floor_seconds FROM hosts"
                                       " WHERE host = 'fresh'"),
                     0);
    rig_tear_down(&rig);
}

/* ---- versions -------------------------------------------------------------------------------- */

static char *read_text(const char *name)
{
    char path[600];
    struct stat node;

    snprintf(path, sizeof path, "%s/%s", STORE_DATA, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &node), 0);
    char *text = calloc(1, (size_t)node.st_size + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)node.st_size, file), node.st_size);
    (void)fclose(file);
    return text;
}

/* Every version up to WR_SQLITE_VERSION has a file data/vN.sql. */
static void state_files_of_every_version_are_migrated(void **state)
{
    (void)state;
    for (int version = 1; version <= WR_SQLITE_VERSION; version++) {
        struct store_fixture rig;
        char name[32];
        size_t count;
        rig_set_up(&rig, rig_backends);
        snprintf(name, sizeof name, "v%d.sql", version);
        char *sql = read_text(name);
        run_sql(rig.path, sql);
        free(sql);
        assert_int_equal(chmod(rig.path, 0600), 0);
        assert_int_equal(ask_sql(rig.path, "PRAGMA user_version"), version);
        rig.options.may_create = false;
        rig_open(&rig);
        rig_check(&rig);
        struct wr_store_job job = rig_look_job(&rig, 1);
        assert_int_equal(job.status, WR_JOB_RUNNING);
        assert_int_equal(job.queued, 2);
        assert_int_equal(job.done, 1);
        assert_int_equal(job.failed, 1);
        char *queue = rig_queue(&rig, 1, "a.example");
        assert_string_equal(queue, "https://a.example/two,https://a.example/three");
        free(queue);
        struct wr_store_query query = {.what = WR_STORE_ONE_HOST, .key = wr_span_of("a.example")};
        struct rig_row *rows = rig_read(&rig, query, &count);
        assert_int_equal(count, 1);
        assert_int_equal(rows[0].row.host.memory.delay_ns, 1500 * WEIR_MILLISECOND);
        assert_int_equal(rows[0].row.host.memory.traits, 5);
        free(rows);
        query = (struct wr_store_query){.what = WR_STORE_ONE_ROBOTS, .key = wr_span_of("https://a.example/robots.txt")};
        rows = rig_read(&rig, query, &count);
        assert_int_equal(count, 1);
        assert_true(rig_is(rows[0].row.robots.text, "User-agent: *\nDisallow: /private\n"));
        free(rows);
        rig_post(&rig, rig_found(&rig, 1, "b.example", "https://b.example/", NULL));
        rig_check(&rig);
        rig_close(&rig);
        assert_int_equal(ask_sql(rig.path, "PRAGMA user_version"), WR_SQLITE_VERSION);
        rig_tear_down(&rig);
    }
}

static void new_state_file_has_the_tables_of_the_newest_version(void **state)
{
    (void)state;
    struct store_fixture rig;
    rig_set_up(&rig, rig_backends);
    rig_open(&rig);
    rig_close(&rig);
    assert_int_equal(ask_sql(rig.path, "PRAGMA user_version"), WR_SQLITE_VERSION);
    assert_int_equal(ask_sql(rig.path, "PRAGMA application_id"), WR_SQLITE_APPLICATION);
    rig_tear_down(&rig);
}

static void failed_migration_step_leaves_the_previous_version(void **state)
{
    (void)state;
    static const char *const broken[] = {"CREATE TABLE a (x)",
                                         "CREATE TABLE b (x); INSERT INTO a VALUES (1); INSERT INTO nowhere VALUES (1)",
                                         "CREATE TABLE c (x)"};
    static const char *const mended[] = {"", "CREATE TABLE b (x); INSERT INTO a VALUES (1)", "CREATE TABLE c (x)"};
    struct store_fixture rig;
    sqlite3 *db;
    rig_set_up(&rig, rig_backends);
    assert_int_equal(sqlite3_open(rig.path, &db), SQLITE_OK);
    assert_int_not_equal(wr_sqlite_migrate(db, broken, 3), SQLITE_OK);
    assert_int_equal(ask_sql(rig.path, "PRAGMA user_version"), 1);
    assert_int_equal(ask_sql(rig.path, "SELECT count(*) FROM sqlite_schema"), 1);
    assert_int_equal(ask_sql(rig.path, "SELECT count(*) FROM a"), 0);
    assert_int_equal(wr_sqlite_migrate(db, mended, 3), SQLITE_OK);
    /* the second time there is nothing to do */
    assert_int_equal(wr_sqlite_migrate(db, mended, 3), SQLITE_OK);
    assert_int_equal(ask_sql(rig.path, "PRAGMA user_version"), 3);
    assert_int_equal(ask_sql(rig.path, "SELECT count(*) FROM sqlite_schema"), 3);
    assert_int_equal(ask_sql(rig.path, "SELECT count(*) FROM a"), 1);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    rig_tear_down(&rig);
}

/* ---- damaged rows ---------------------------------------------------------------------------- */

/* Opens a store with ten tasks of one host, after `sql` damaged the closed file. */
static int64_t open_spoilt(struct store_fixture *rig, const char *sql)
{
    char url[32];

    rig_set_up(rig, rig_backends);
    rig_open(rig);
    int64_t job = rig_job(rig, "");
    for (int i = 0; i < 10; i++) {
        snprintf(url, sizeof url, "https://h/%d", i);
        rig_post(rig, rig_found(rig, job, "h", url, i == 0 ? NULL : "https://h/0"));
    }
    rig_post(rig,
             (struct wr_store_change){.kind = WR_STORE_ROBOTS, .robots = {.url = wr_span_of("https://h/robots.txt")}});
    rig_post(rig, rig_output(job, "crawl.jsonl", 5));
    rig_close(rig);
    run_sql(rig->path, sql);
    rig_open(rig);
    return job;
}

static struct wr_store_stats stats_of(struct store_fixture *rig)
{
    struct wr_store_stats stats;

    wr_store_stats_get(rig->store, &stats);
    return stats;
}

/* G9, V4: the reader of a damaged task ends it; otherwise it would stay queued for ever. */
static void damaged_tasks_are_returned_without_their_urls(void **state)
{
    (void)state;
    struct store_fixture rig;
    int64_t job =
        open_spoilt(&rig, "UPDATE tasks SET url = '' WHERE url = 'https://h/1';"
                          "UPDATE tasks SET url = 'https://h/' || char(10) WHERE url = 'https://h/3';"
                          "UPDATE tasks SET url = CAST(x'68ff68' AS TEXT) WHERE url = 'https://h/4';"
                          "UPDATE tasks SET url = 'https://h/' || char(0) || 'x' WHERE url = 'https://h/5';"
                          "UPDATE tasks SET url = CAST(zeroblob(10000000) AS TEXT) WHERE url = 'https://h/6'");
    size_t count;
    struct wr_store_query query = {
        .what = WR_STORE_TASKS, .job = job, .key = wr_span_of("h"), .after = WR_STORE_FIRST_POSITION, .limit = 9};
    struct rig_row *rows = rig_read(&rig, query, &count);
    assert_int_equal(count, 9); /* the limit is reached: enough tasks are stored */
    for (size_t i = 0; i < count; i++) {
        const struct wr_store_task *task = &rows[i].row.task;
        assert_int_equal(task->url.bytes == 0, i == 1 || (i >= 3 && i <= 6));
        assert_true(i == 0 || rig_is(task->referrer, "https://h/0"));
        assert_int_equal(task->id, i + 1);
        assert_true(task->fingerprint != 0);
    }
    free(rows);
    assert_int_equal(stats_of(&rig).damaged, 5);
    assert_int_equal(rig_look_job(&rig, job).queued, 10);
    rig_check(&rig);
    rig_tear_down(&rig);
}

/* Tasks whose host row is damaged or missing can never be loaded otherwise. */
static void tasks_of_a_damaged_host_are_returned_when_hosts_are_listed(void **state)
{
    (void)state;
    static const char *const spoils[] = {"UPDATE hosts SET host = ''", "UPDATE tasks SET host = 99"};
    for (size_t i = 0; i < sizeof spoils / sizeof spoils[0]; i++) {
        struct store_fixture rig;
        size_t count;
        int64_t job = open_spoilt(&rig, spoils[i]);
        rig_post(&rig, rig_found(&rig, job, "sound", "https://sound/", NULL));
        struct rig_row *rows = rig_read(&rig, (struct wr_store_query){.what = WR_STORE_HOSTS, .job = job}, &count);
        assert_int_equal(count, 11);
        int tasks = 0;
        for (size_t j = 0; j < count; j++) {
            tasks += rows[j].row.what == WR_STORE_TASKS && rows[j].row.task.url.bytes == strlen("https://h/0");
            assert_true(rows[j].row.what == WR_STORE_TASKS || rig_is(rows[j].row.host.key, "sound"));
        }
        free(rows);
        assert_int_equal(tasks, 10);
        assert_int_equal(stats_of(&rig).damaged, 1);
        rig_tear_down(&rig);
    }
}

static void absurd_numbers_of_a_task_are_clamped(void **state)
{
    (void)state;
    struct store_fixture rig;
    int64_t job = open_spoilt(&rig, "UPDATE tasks SET attempts = -5, depth = 1 << 62, priority = 1 << 40,"
                                    " not_before_ms = 9223372036854775807, parent = 77");
    size_t count;
    struct wr_store_query query = {
        .what = WR_STORE_TASKS, .job = job, .key = wr_span_of("h"), .after = WR_STORE_FIRST_POSITION};
    struct rig_row *rows = rig_read(&rig, query, &count);
    assert_int_equal(count, 10);
    for (size_t i = 0; i < count; i++) {
        const struct wr_store_task *task = &rows[i].row.task;
        assert_int_equal(task->attempts, 0);
        assert_int_equal(task->depth, UINT32_MAX);
        assert_int_equal(task->priority, INT32_MAX);
        assert_true(task->not_before_wall_at <= weir_wall_now() + WR_STORE_RETRY_MAX_NS);
        assert_int_equal(task->referrer.bytes, 0);
    }
    free(rows);
    rig_tear_down(&rig);
}

static void absurd_numbers_of_a_host_are_clamped(void **state)
{
    (void)state;
    struct store_fixture rig;
    (void)open_spoilt(&rig, "UPDATE hosts SET adaptive_delay_ms = -1, adaptive_delay_floor_ms = 9223372036854775807,"
                            " robots_delay_ms = 1 << 60, retry_at_ms = 9223372036854775807, updated_at_ms = -9,"
                            " rate = 9e999, cap = -1, traits = 1 << 50, block_ms = -1, breaker_open = 12");
    size_t count;
    struct wr_store_query query = {.what = WR_STORE_ONE_HOST, .key = wr_span_of("h")};
    struct rig_row *rows = rig_read(&rig, query, &count);
    assert_int_equal(count, 1);
    const weir_pace_memory *memory = &rows[0].row.host.memory;
    assert_int_equal(memory->delay_ns, 0);
    assert_in_range(memory->floor_ns, 0, WEIR_DURATION_MAX);
    assert_in_range(memory->robots_delay_ns, 0, WEIR_DURATION_MAX);
    assert_true(memory->retry_wall_at >= 0); /* the gate caps this time at retry_after_max_ns */
    assert_int_equal(memory->saved_wall_at, 0);
    assert_true(memory->rate == 0);
    assert_int_equal(memory->cap, 0);
    assert_int_equal(memory->traits, UINT32_MAX);
    assert_int_equal(memory->block_ns, 0);
    assert_true(memory->breaker_open);
    free(rows);
    rig_tear_down(&rig);
}

static size_t rows_of(struct store_fixture *rig, enum wr_store_query_kind what, int64_t job, const char *key)
{
    size_t count;

    free(rig_read(rig, (struct wr_store_query){.what = what, .job = job, .key = wr_span_of(key)}, &count));
    return count;
}

static void damaged_hosts_jobs_and_robots_are_skipped_and_counted(void **state)
{
    (void)state;
    static const struct {
        const char *sql;
        enum wr_store_query_kind what;
        const char *key;
    } cases[] = {
        {"UPDATE hosts SET host = ''", WR_STORE_HOSTS, ""},
        {"UPDATE hosts SET host = CAST(zeroblob(300) AS TEXT)", WR_STORE_HOSTS, ""},
        {"UPDATE jobs SET status = 'dancing'", WR_STORE_JOBS, ""},
        {"UPDATE jobs SET why = CAST(zeroblob(300) AS TEXT)", WR_STORE_JOBS, ""},
        {"UPDATE jobs SET settings = CAST(zeroblob(2000000) AS TEXT)", WR_STORE_JOBS, ""},
        {"UPDATE robots SET kind = 77", WR_STORE_ONE_ROBOTS, "https://h/robots.txt"},
        {"UPDATE robots SET text = zeroblob(10000000)", WR_STORE_ONE_ROBOTS, "https://h/robots.txt"},
        {"UPDATE robots SET etag = zeroblob(1000)", WR_STORE_ONE_ROBOTS, "https://h/robots.txt"},
        {"UPDATE outputs SET path = ''", WR_STORE_OUTPUTS, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct store_fixture rig;
        int64_t job = open_spoilt(&rig, cases[i].sql);
        assert_int_equal(rows_of(&rig, cases[i].what, job, cases[i].key), cases[i].what == WR_STORE_HOSTS ? 10 : 0);
        assert_int_equal(stats_of(&rig).damaged, 1);
        rig_tear_down(&rig);
    }
}

/* V5: a check reports contradictions between rows and counters. */
static void check_finds_counters_that_do_not_agree(void **state)
{
    (void)state;
    static const struct {
        const char *sql, *words;
    } cases[] = {
        {"UPDATE jobs SET queued = queued + 1", "counters do not agree"},
        {"UPDATE jobs SET bytes = 1", "counters do not agree"},
        {"DELETE FROM tasks WHERE url = 'https://h/3'", "counters do not agree"},
        {"UPDATE tasks SET host = 99 WHERE url = 'https://h/3'", "no such host"},
        {"UPDATE tasks SET job = 99 WHERE url = 'https://h/3'", "no such job"},
        {"UPDATE tasks SET state = 1 WHERE url = 'https://h/3'; UPDATE jobs SET queued = 9, done = 1",
         "without a verdict"},
        {"UPDATE tasks SET state = 7, verdict = 'x' WHERE url = 'https://h/3'; UPDATE jobs SET queued = 9",
         "no such state"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct store_fixture rig;
        size_t count, hits = 0;
        (void)open_spoilt(&rig, cases[i].sql);
        struct rig_row *rows = rig_read(&rig, (struct wr_store_query){.what = WR_STORE_CHECK}, &count);
        for (size_t row = 0; row < count; row++)
            hits += strstr(rows[row].text, cases[i].words) != NULL;
        assert_int_equal(hits, 1);
        free(rows);
        rig_tear_down(&rig);
    }
}

WEIR_TESTS(test(learned_delays_are_in_the_documented_columns), test(state_files_of_every_version_are_migrated),
           test(new_state_file_has_the_tables_of_the_newest_version),
           test(failed_migration_step_leaves_the_previous_version), test(damaged_tasks_are_returned_without_their_urls),
           test(tasks_of_a_damaged_host_are_returned_when_hosts_are_listed), test(absurd_numbers_of_a_task_are_clamped),
           test(absurd_numbers_of_a_host_are_clamped), test(damaged_hosts_jobs_and_robots_are_skipped_and_counted),
           test(check_finds_counters_that_do_not_agree))
