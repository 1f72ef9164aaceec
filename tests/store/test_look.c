/* SPDX-License-Identifier: MIT */
/* test_look.c - queries of commands: any task, all hosts, and the settings of a host. */
#include "rig.h"

#include <unistd.h>

static struct wr_store_host host_of(struct store_fixture *rig, const char *key)
{
    size_t count;
    struct rig_row *rows =
        rig_read(rig, (struct wr_store_query){.what = WR_STORE_ONE_HOST, .key = wr_span_of(key)}, &count);
    assert_int_equal(count, 1);
    struct wr_store_host host = rows[0].row.host;
    free(rows);
    return host;
}

static struct wr_store_change setting(const char *key, int paused, int64_t interval_ns)
{
    return (struct wr_store_change){.kind = WR_STORE_HOST_SETTING,
                                    .setting = {.key = wr_span_of(key),
                                                .has_paused = paused >= 0,
                                                .is_paused = paused > 0,
                                                .has_interval = interval_ns >= 0,
                                                .interval_ns = interval_ns}};
}

static void settings_of_a_host_are_separate_from_learned_values(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        rig_open(rig);
        rig_post(rig, setting("a.example", 1, -1)); /* creates a record of an unknown host */
        rig_post(rig, setting("a.example", -1, 2500 * WEIR_MILLISECOND));
        const struct wr_store_host learned = {.key = wr_span_of("a.example"),
                                              .memory = {.saved_wall_at = WEIR_SECOND, .rate = 3}};
        assert_int_equal(wr_store_note_host(rig->store, &learned), 0);
        rig_reopen(rig);
        struct wr_store_host host = host_of(rig, "a.example");
        assert_true(host.is_paused && host.set_interval_ns == 2500 * WEIR_MILLISECOND && host.memory.rate > 2);
        rig_post(rig, setting("a.example", 0, -1));
        host = host_of(rig, "a.example");
        assert_true(!host.is_paused && host.set_interval_ns == 2500 * WEIR_MILLISECOND);
        rig_post(rig, setting("a.example", -1, 0));
        assert_int_equal(host_of(rig, "a.example").set_interval_ns, 0);
        struct wr_store_change bad = setting("a.example", -1, WR_STORE_INTERVAL_MAX_NS + 1);
        assert_int_equal(wr_store_post(rig->store, &bad, 1, NULL, NULL), WEIR_E_INVAL);
        bad = setting("", 1, -1);
        assert_int_equal(wr_store_post(rig->store, &bad, 1, NULL, NULL), WEIR_E_INVAL);
    }
}

/* A later load of the host sees the setting, committed or not. */
static void uncommitted_host_settings_are_visible_to_later_reads(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        rig->options.batch_ns = WEIR_MINUTE;
        rig_open(rig);
        struct wr_store_change change = setting("a.example", 1, -1);
        assert_int_equal(wr_store_post(rig->store, &change, 1, rig_count, rig), 0);
        assert_true(host_of(rig, "a.example").is_paused);
    }
}

static void any_task_can_be_read_with_its_state_and_place(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        size_t count;
        rig_open(rig);
        int64_t job = rig_job(rig, "");
        static const char *const urls[] = {"https://a/0", "https://a/1", "https://a/2", "https://a/3"};
        for (int i = 0; i < 4; i++)
            rig_post(rig, rig_found(rig, job, "a", urls[i], NULL));
        rig_post(rig, rig_found(rig, job, "b", "https://b/", NULL));
        rig_post(rig, rig_ended(rig, job, urls[0], true, "failed"));
        struct wr_store_query query = {.what = WR_STORE_ONE_TASK, .job = job};
        for (int i = 0; i < 4; i++) {
            query.after.id = (int64_t)rig_fingerprint(rig, urls[i]);
            struct rig_row *rows = rig_read(rig, query, &count);
            assert_int_equal(count, 1);
            const struct wr_store_task *task = &rows[0].row.task;
            assert_true(rig_is(task->url, urls[i]) && rig_is(task->host, "a"));
            assert_int_equal(task->state, i == 0 ? WR_TASK_FAILED : WR_TASK_QUEUED);
            assert_int_equal(task->before, i > 1 ? i - 1 : 0);
            assert_true((task->ended_wall_at > 0) == (i == 0));
            assert_true(rig_is(task->verdict, i == 0 ? "failed" : ""));
            free(rows);
        }
        query.after.id = 4711;
        free(rig_read(rig, query, &count));
        assert_int_equal(count, 0);
        query = (struct wr_store_query){.what = WR_STORE_ALL_TASKS, .job = job, .limit = 3};
        struct rig_row *rows = rig_read(rig, query, &count);
        assert_int_equal(count, 3);
        query.after.id = rows[2].row.task.id;
        free(rows);
        rows = rig_read(rig, query, &count);
        assert_int_equal(count, 2);
        assert_true(rig_is(rows[1].row.task.url, "https://b/"));
        free(rows);
    }
}

static struct wr_store_change visited(struct store_fixture *rig, int64_t job, const char *url, const char *validator,
                                      const char *digest)
{
    struct wr_store_change change = rig_ended(rig, job, url, false, "fetched");

    change.ended.visit = (struct wr_store_visit){.validator = wr_span_of(validator),
                                                 .digest = wr_span_of(digest),
                                                 .changes = 3,
                                                 .since_wall_at = 2 * WEIR_SECOND,
                                                 .visited_wall_at = 5 * WEIR_SECOND};
    return change;
}

/* Tasks of other jobs are read in pieces, and after a while the query skips to the next task of
 * this job. */
static void tasks_of_a_job_are_read_without_scanning_all_others(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        size_t count, told = 0;
        int64_t next = 0, walks = 0;
        char url[64];
        rig_open(rig);
        int64_t job = rig_job(rig, ""), other = rig_job(rig, "");
        for (int i = 0; i < 4 * WR_STORE_SCAN_MAX + 100; i++) {
            (void)snprintf(url, sizeof url, "https://a/%d", i);
            struct wr_store_change change =
                rig_found(rig, i == 0 || i > 4 * WR_STORE_SCAN_MAX ? job : other, "a", url, NULL);
            while (wr_store_post(rig->store, &change, 1, rig_count, rig) == WEIR_E_FULL)
                (void)usleep(1000);
        }
        rig_post_all(rig, NULL, 0);
        do {
            struct wr_store_query query = {
                .what = WR_STORE_ALL_TASKS, .job = job, .after = {0, next}, .limit = 60, .ret_next = &next};
            free(rig_read(rig, query, &count));
            told += count;
            walks++;
        } while (next != 0);
        assert_int_equal(told, 100);
        /* 1 task; none, and skipping the others; 60; 39; perhaps an empty piece */
        assert_true(walks == 4 || walks == 5);
    }
}

static void visit_of_a_page_is_known_to_a_later_job(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        size_t count;
        int64_t later;
        rig_open(rig);
        int64_t job = rig_job(rig, "");
        rig_post(rig, rig_found(rig, job, "a", "https://a/", NULL));
        rig_post(rig, visited(rig, job, "https://a/", "\"v1\"", "xxh128:00"));
        assert_int_equal(wr_store_add_job(rig->store, wr_span_of("s"), job, &later), 0);
        assert_int_equal(rig_look_job(rig, later).earlier, job);
        assert_int_equal(rig_look_job(rig, job).earlier, 0);
        rig_post(rig, rig_found(rig, later, "a", "https://a/", NULL));
        rig_post(rig, rig_found(rig, later, "a", "https://a/new", NULL));
        rig_reopen(rig);
        struct wr_store_query query = {.what = WR_STORE_TASKS,
                                       .job = later,
                                       .key = wr_span_of("a"),
                                       .after = WR_STORE_FIRST_POSITION,
                                       .earlier = job};
        for (int i = 0; i < 2; i++, query.what = WR_STORE_ALL_TASKS) {
            struct rig_row *rows = rig_read(rig, query, &count);
            assert_int_equal(count, 2);
            const struct wr_store_task *task = &rows[0].row.task;
            assert_true(task->has_earlier && rig_is(task->earlier_verdict, "fetched"));
            assert_true(rig_is(task->earlier.validator, "\"v1\"") && rig_is(task->earlier.digest, "xxh128:00"));
            assert_int_equal(task->earlier.changes, 3);
            assert_int_equal(task->earlier.since_wall_at, 2 * WEIR_SECOND);
            assert_int_equal(task->earlier.visited_wall_at, 5 * WEIR_SECOND);
            assert_false(rows[1].row.task.has_earlier);
            free(rows);
        }
        query = (struct wr_store_query){.what = WR_STORE_TASKS, .job = later, .key = wr_span_of("a")};
        query.after = WR_STORE_FIRST_POSITION;
        struct rig_row *rows = rig_read(rig, query, &count);
        assert_false(rows[0].row.task.has_earlier); /* the query has no earlier job */
        free(rows);
    }
}

static void first_visit_has_the_time_when_the_page_ended(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        size_t count;
        rig_open(rig);
        int64_t job = rig_job(rig, "");
        rig_post(rig, rig_found(rig, job, "a", "https://a/", NULL));
        rig_post(rig, rig_ended(rig, job, "https://a/", false, "fetched"));
        struct wr_store_query query = {.what = WR_STORE_ALL_TASKS, .job = job};
        struct rig_row *rows = rig_read(rig, query, &count);
        const struct wr_store_task *task = &rows[0].row.task;
        assert_true(task->ended_wall_at > 0);
        assert_int_equal(task->visit.since_wall_at, task->ended_wall_at);
        assert_int_equal(task->visit.visited_wall_at, task->ended_wall_at);
        free(rows);
    }
}

static void all_hosts_are_listed_in_pieces(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        size_t count;
        rig_open(rig);
        int64_t job = rig_job(rig, "");
        rig_post(rig, rig_found(rig, job, "a", "https://a/", NULL));
        rig_post(rig, setting("b", 1, -1));
        rig_post(rig, rig_found(rig, job, "c", "https://c/", NULL));
        struct wr_store_query query = {.what = WR_STORE_ALL_HOSTS, .limit = 2};
        struct rig_row *rows = rig_read(rig, query, &count);
        assert_int_equal(count, 2);
        assert_true(rig_is(rows[1].row.host.key, "b") && rows[1].row.host.is_paused);
        query.after.id = rows[1].row.host.id;
        free(rows);
        rows = rig_read(rig, query, &count);
        assert_int_equal(count, 1);
        assert_true(rig_is(rows[0].row.host.key, "c"));
        free(rows);
    }
}

static struct wr_store_change report(int64_t job, const char *text)
{
    return (struct wr_store_change){.kind = WR_STORE_REPORT, .report = {.job = job, .text = wr_span_of(text)}};
}

static void reports_of_all_runs_are_listed_newest_first(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        size_t count;
        rig_open(rig);
        int64_t job = rig_job(rig, "one"), other = rig_job(rig, "other");
        rig_post(rig, report(job, "first\n"));
        rig_post(rig, report(other, "of another"));
        rig_post(rig, report(job, "second"));
        rig_reopen(rig);
        struct wr_store_query query = {.what = WR_STORE_REPORTS, .job = job};
        struct rig_row *rows = rig_read(rig, query, &count);
        assert_int_equal(count, 2);
        assert_true(rig_is(rows[0].row.report.text, "second") && rows[0].row.report.run == 2);
        assert_true(rig_is(rows[1].row.report.text, "first\n") && rows[1].row.report.run == 1);
        assert_true(rows[0].row.report.job == job && rows[0].row.report.ended_wall_at > 0);
        free(rows);
        query.after.id = 1;
        rows = rig_read(rig, query, &count);
        assert_true(count == 1 && rig_is(rows[0].row.report.text, "first\n"));
        free(rows);
        rows = rig_read(rig, (struct wr_store_query){.what = WR_STORE_REPORTS}, &count);
        assert_int_equal(count, 3);
        free(rows);
        rig_check(rig);
    }
}

static void reports_of_a_job_are_bounded_in_number_and_size(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        size_t count;
        rig_open(rig);
        int64_t job = rig_job(rig, "");
        for (int i = 0; i < WR_STORE_REPORTS_KEPT + 3; i++)
            rig_post(rig, report(job, "text"));
        struct wr_store_query query = {.what = WR_STORE_REPORTS, .job = job};
        struct rig_row *rows = rig_read(rig, query, &count);
        assert_int_equal(count, WR_STORE_REPORTS_KEPT);
        assert_int_equal(rows[count - 1].row.report.run, 4);
        free(rows);
        char *large = calloc(1, WR_STORE_REPORT_MAX + 1);
        assert_non_null(large);
        struct wr_store_change change = report(job, "");
        change.report.text = (struct wr_span){large, WR_STORE_REPORT_MAX + 1};
        assert_int_equal(wr_store_post(rig->store, &change, 1, NULL, NULL), WEIR_E_INVAL);
        free(large);
    }
}

/* ---- output lines and sums ---- */

#define LINE "{\"url\": \"https://a.example/1\"}"

static void output_line_is_stored_if_processes_share_the_store(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        size_t count;
        rig_open(rig);
        int64_t job = rig_job(rig, "");
        rig_post(rig, rig_found(rig, job, "a.example", "https://a.example/1", NULL));
        rig_post(rig, rig_found(rig, job, "a.example", "https://a.example/2", NULL));
        struct wr_store_change ended = rig_ended(rig, job, "https://a.example/1", false, "fetched");
        ended.ended.line = wr_span_of(LINE);
        rig_post(rig, ended);
        ended.ended.line = wr_span_of("a line\n");
        assert_int_equal(wr_store_post(rig->store, &ended, 1, NULL, NULL), WEIR_E_INVAL);
        struct rig_row *rows =
            rig_read(rig, (struct wr_store_query){.what = WR_STORE_ALL_TASKS, .job = job, .has_lines = true}, &count);
        assert_int_equal(count, 2);
        assert_true(rig_is(rows[0].row.task.line, wr_store_is_shared(rig->store) ? LINE : ""));
        assert_int_equal(rows[1].row.task.line.bytes, 0);
        free(rows);
    }
}

static void sums_count_the_task_results_of_each_host(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        size_t count;
        int64_t next = -1;
        rig_open(rig);
        int64_t job = rig_job(rig, ""), other = rig_job(rig, "");
        rig_post(rig, rig_found(rig, job, "a.example", "https://a.example/1", NULL));
        rig_post(rig, rig_found(rig, job, "a.example", "https://a.example/2", NULL));
        rig_post(rig, rig_found(rig, job, "b.example", "https://b.example/", NULL));
        rig_post(rig, rig_found(rig, other, "a.example", "https://a.example/1", NULL));
        for (int i = 0; i < 2; i++) {
            struct wr_store_change ended =
                rig_ended(rig, job, i == 0 ? "https://a.example/1" : "https://a.example/2", false, "fetched");
            ended.ended.status = 200, ended.ended.bytes = 50, ended.ended.attempts = 2;
            rig_post(rig, ended);
        }
        struct rig_row *rows =
            rig_read(rig, (struct wr_store_query){.what = WR_STORE_SUMS, .job = job, .ret_next = &next}, &count);
        assert_int_equal(count, 2);
        assert_int_equal(next, 0);
        size_t at = rig_is(rows[0].row.sum.host, "a.example") ? 0 : 1;
        const struct wr_store_task_sum *ended = &rows[at].row.sum, *queued = &rows[1 - at].row.sum;
        assert_true(ended->state == WR_TASK_DONE && ended->status == 200 && rig_is(ended->verdict, "fetched"));
        assert_true(ended->tasks == 2 && ended->bytes == 100 && ended->attempts == 4);
        assert_true(ended->first_wall_at > 0 && ended->last_wall_at >= ended->first_wall_at);
        assert_true(rig_is(queued->host, "b.example") && queued->state == WR_TASK_QUEUED && queued->tasks == 1);
        free(rows);
    }
}

WEIR_TESTS(test(settings_of_a_host_are_separate_from_learned_values),
           test(uncommitted_host_settings_are_visible_to_later_reads),
           test(any_task_can_be_read_with_its_state_and_place),
           test(tasks_of_a_job_are_read_without_scanning_all_others), test(visit_of_a_page_is_known_to_a_later_job),
           test(first_visit_has_the_time_when_the_page_ended), test(all_hosts_are_listed_in_pieces),
           test(reports_of_all_runs_are_listed_newest_first), test(reports_of_a_job_are_bounded_in_number_and_size),
           test(output_line_is_stored_if_processes_share_the_store), test(sums_count_the_task_results_of_each_host))
