/* SPDX-License-Identifier: MIT */
/* test_resume.c - what every backend stores for a crawl that resumes an older job. */
#include "store/rig.h"

/* ---- the job to resume ----------------------------------------------------------------------- */

static void keep_newest_open(void *context, const struct wr_store_row *row)
{
    if (!wr_job_is_over(row->job.status))
        *(int64_t *)context = row->job.id;
}

static int64_t newest_open_job(struct store_fixture *rig)
{
    int64_t job = 0;
    struct wr_store_query query = {.what = WR_STORE_JOBS, .row = keep_newest_open, .context = &job};

    assert_int_equal(wr_store_read(rig->store, &query), 0);
    return job;
}

static void newest_unfinished_job_is_found(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        rig_open(rig);
        assert_int_equal(newest_open_job(rig), 0);
        int64_t first = rig_job(rig, "1"), second = rig_job(rig, "2"), third = rig_job(rig, "3");
        rig_post(rig, rig_status(first, WR_JOB_RUNNING, ""));
        rig_post(rig, rig_status(third, WR_JOB_COMPLETED, ""));
        rig_reopen(rig);
        assert_int_equal(newest_open_job(rig), second); /* the second job has not started yet */
        rig_post(rig, rig_status(second, WR_JOB_BLOCKED, "403 everywhere"));
        assert_int_equal(newest_open_job(rig), first);
        rig_post(rig, rig_status(first, WR_JOB_CANCELLED, ""));
        assert_int_equal(newest_open_job(rig), 0);
    }
}

static void resumed_job_has_its_settings_counters_and_outputs(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        size_t count;
        rig_open(rig);
        int64_t job = rig_job(rig, "{\"depth\": 3, \"name\": \"na\xc3\xafve\"}");
        const struct wr_store_change changes[] = {
            rig_status(job, WR_JOB_RUNNING, ""),
            rig_found(rig, job, "h", "https://h/1", NULL),
            rig_found(rig, job, "h", "https://h/2", NULL),
            rig_found(rig, job, "h", "https://h/3", NULL),
            rig_ended(rig, job, "https://h/1", false, "fetched"),
            rig_retry(rig, job, "https://h/2", 1, 429),
            rig_ended(rig, job, "https://h/3", true, "failed"),
            rig_output(job, "/tmp/crawl.jsonl", 321),
        };
        rig_post_all(rig, changes, sizeof changes / sizeof changes[0]);
        rig_reopen(rig);
        struct rig_row *rows = rig_read(rig, (struct wr_store_query){.what = WR_STORE_JOBS, .job = job}, &count);
        assert_int_equal(count, 1);
        assert_int_equal(rows[0].row.job.status, WR_JOB_RUNNING);
        assert_true(rig_is(rows[0].row.job.settings, "{\"depth\": 3, \"name\": \"na\xc3\xafve\"}"));
        assert_int_equal(rows[0].row.job.queued, 1);
        assert_int_equal(rows[0].row.job.done, 1);
        assert_int_equal(rows[0].row.job.failed, 1);
        assert_int_equal(rows[0].row.job.bytes, 100);
        assert_int_equal(rows[0].row.job.retries, 1);
        assert_int_equal(rows[0].row.job.rejected, 1);
        free(rows);
        rows = rig_read(rig, (struct wr_store_query){.what = WR_STORE_OUTPUTS, .job = job}, &count);
        assert_int_equal(count, 1);
        assert_true(rig_is(rows[0].row.output.path, "/tmp/crawl.jsonl"));
        assert_int_equal(rows[0].row.output.bytes, 321);
        free(rows);
    }
}

/* ---- the number of tasks that a host has had ------------------------------------------------- */

static uint64_t accepted(struct store_fixture *rig, int64_t job, const char *host)
{
    size_t count;
    uint64_t tasks = UINT64_MAX;
    struct wr_store_query query = {
        .what = WR_STORE_TASKS, .job = job, .key = wr_span_of(host), .after = WR_STORE_FIRST_POSITION, .limit = 1};

    query.ret_accepted = &tasks;
    free(rig_read(rig, query, &count));
    return tasks;
}

static void accepted_tasks_of_a_host_are_counted_ended_or_not(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        /* the counts are read before the changes are committed */
        rig->options.batch_ns = WEIR_HOUR;
        rig_open(rig);
        int64_t job = rig_job(rig, ""), other = rig_job(rig, "");
        const struct wr_store_change changes[] = {
            rig_found(rig, job, "a", "https://a/1", NULL),         rig_found(rig, job, "a", "https://a/2", NULL),
            rig_found(rig, job, "a", "https://a/1", NULL),         rig_found(rig, other, "a", "https://a/1", NULL),
            rig_found(rig, job, "b", "https://b/", "https://a/1"), rig_ended(rig, job, "https://a/1", false, "fetched"),
            rig_found(rig, job, "a", "https://a/1", NULL),         rig_found(rig, other + 1, "a", "https://a/", NULL),
        };
        assert_int_equal(accepted(rig, job, "a"), 0);
        for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++)
            assert_int_equal(rig_post_later(rig, changes[i]), 0);
        assert_int_equal(accepted(rig, job, "a"), 2);
        assert_int_equal(accepted(rig, other, "a"), 1);
        assert_int_equal(rig_post_later(rig, rig_ended(rig, job, "https://a/2", true, "failed")), 0);
        for (int round = 0; round < 2; round++) {
            assert_int_equal(accepted(rig, job, "a"), 2); /* although no task is queued */
            assert_int_equal(accepted(rig, job, "b"), 1);
            assert_int_equal(accepted(rig, other, "a"), 1);
            assert_int_equal(accepted(rig, other, "b"), 0);
            assert_int_equal(accepted(rig, other + 1, "a"), 0);
            assert_int_equal(accepted(rig, job, "nobody"), 0);
            rig_check(rig);
            rig_reopen(rig);
        }
        rig_post(rig, rig_found(rig, job, "a", "https://a/3", NULL));
        assert_int_equal(accepted(rig, job, "a"), 3);
    }
}

/* One transaction has more hosts than any table in memory has room for, and two jobs that
 * alternate. */
static void thousands_of_hosts_in_one_transaction_are_counted_correctly(void **state)
{
    enum {
        HOSTS = 6000,
        ROUNDS = 3
    };
    (void)state;
    EACH_BACKEND(rig)
    {
        static char hosts[HOSTS][16], urls[HOSTS * ROUNDS][32];
        static struct wr_store_change changes[2 * HOSTS * ROUNDS];
        size_t count = 0;
        rig_open(rig);
        int64_t jobs[] = {rig_job(rig, ""), rig_job(rig, "")};
        for (size_t i = 0; i < (size_t)HOSTS * ROUNDS; i++) {
            snprintf(hosts[i % HOSTS], sizeof hosts[0], "h%zu", i % HOSTS);
            snprintf(urls[i], sizeof urls[0], "https://%s/%zu", hosts[i % HOSTS], i / HOSTS);
            changes[count++] = rig_found(rig, jobs[0], hosts[i % HOSTS], urls[i], NULL);
            if (i / HOSTS > 0)
                changes[count++] = rig_found(rig, jobs[1], hosts[i % HOSTS], urls[i], NULL);
        }
        rig_post_all(rig, changes, count);
        rig_check(rig);
        for (size_t i = 0; i < HOSTS; i += 997) {
            assert_int_equal(accepted(rig, jobs[0], hosts[i]), ROUNDS);
            assert_int_equal(accepted(rig, jobs[1], hosts[i]), ROUNDS - 1);
        }
    }
}

/* ---- large posts ----------------------------------------------------------------------------- */

/* Known and repeated tasks stand among the new ones, in more numbers than SQLite inserts at a
 * time. */
static void new_and_known_tasks_are_distinguished_in_large_posts(void **state)
{
    enum {
        TASKS = 100
    };
    (void)state;
    EACH_BACKEND(rig)
    {
        struct wr_store_change changes[2 * TASKS];
        bool is_new[2 * TASKS];
        char urls[TASKS][32];
        size_t count = 0, queued;
        struct wr_store_stats stats;
        rig_open(rig);
        int64_t job = rig_job(rig, "");
        for (size_t i = 0; i < TASKS; i++) {
            snprintf(urls[i], sizeof urls[0], "https://h/%zu", i);
            if (i % 3 == 0)
                rig_post(rig, rig_found(rig, job, "h", urls[i], NULL));
        }
        for (size_t i = 0; i < TASKS; i++) {
            for (size_t twice = 0; twice <= (i % 5 == 0); twice++, count++) {
                changes[count] = rig_found(rig, job, i % 3 == 0 ? "h" : "g", urls[i], NULL);
                changes[count].found.ret_is_new = &is_new[count];
                is_new[count] = i % 3 == 0; /* the wrong value before the post */
            }
        }
        rig_post_all(rig, changes, count);
        count = 0;
        for (size_t i = 0; i < TASKS; i++)
            for (size_t twice = 0; twice <= (i % 5 == 0); twice++, count++)
                assert_int_equal(is_new[count], i % 3 != 0 && twice == 0);
        struct wr_store_query query = {
            .what = WR_STORE_TASKS, .job = job, .key = wr_span_of("g"), .after = WR_STORE_FIRST_POSITION};
        struct rig_row *rows = rig_read(rig, query, &queued);
        assert_int_equal(queued, 66);
        for (size_t i = 0; i < queued; i++) /* in the order in which they were found */
            assert_true(rig_is(rows[i].row.task.url, urls[i / 2 * 3 + 1 + i % 2]));
        free(rows);
        assert_int_equal(rig_look_job(rig, job).queued, TASKS);
        wr_store_stats_get(rig->store, &stats);
        assert_int_equal(stats.ignored, 34 + 20);
        rig_check(rig);
    }
}

static void task_of_two_jobs_ends_only_in_the_job_that_reports_it(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        rig_open(rig);
        int64_t one = rig_job(rig, ""), other = rig_job(rig, "");
        const struct wr_store_change changes[] = {
            rig_found(rig, one, "h", "https://h/", NULL),
            rig_found(rig, other, "h", "https://h/", NULL),
            rig_ended(rig, one, "https://h/", false, "fetched"),
        };
        rig_post_all(rig, changes, 3);
        assert_int_equal(rig_look_job(rig, one).done, 1);
        assert_int_equal(rig_look_job(rig, other).queued, 1);
        /* the second end has no effect */
        rig_post(rig, rig_ended(rig, one, "https://h/", true, "failed"));
        assert_int_equal(rig_look_job(rig, one).failed, 0);
        assert_int_equal(rig_look_job(rig, other).queued, 1);
        rig_check(rig);
    }
}

static void task_may_be_found_end_and_be_found_again_in_one_post(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        rig_open(rig);
        int64_t job = rig_job(rig, "");
        const struct wr_store_change changes[] = {
            rig_ended(rig, job, "https://h/1", false, "fetched"), /* no effect on an unknown task */
            rig_found(rig, job, "h", "https://h/1", NULL),        rig_retry(rig, job, "https://h/1", 1, 429),
            rig_found(rig, job, "h", "https://h/2", NULL),        rig_ended(rig, job, "https://h/2", false, "fetched"),
            rig_found(rig, job, "h", "https://h/2", NULL),
        };
        rig_post_all(rig, changes, sizeof changes / sizeof changes[0]);
        struct wr_store_job seen = rig_look_job(rig, job);
        assert_int_equal(seen.queued, 1);
        assert_int_equal(seen.done, 1);
        assert_int_equal(seen.rejected, 1);
        char *queue = rig_queue(rig, job, "h");
        assert_string_equal(queue, "https://h/1");
        free(queue);
        rig_check(rig);
    }
}

static void post_lengths(struct store_fixture *rig, int64_t job, size_t path_count)
{
    enum {
        PATHS = 20,
        ROUNDS = 5
    };
    struct wr_store_change changes[PATHS * ROUNDS];
    char paths[PATHS][16];
    size_t count;

    for (size_t i = 0; i < path_count * ROUNDS; i++) {
        snprintf(paths[i % path_count], sizeof paths[0], "out-%02zu", i % path_count);
        changes[i] = rig_output(job, paths[i % path_count], 1000 + i);
    }
    rig_post_all(rig, changes, path_count * ROUNDS);
    rig_reopen(rig);
    struct rig_row *rows = rig_read(rig, (struct wr_store_query){.what = WR_STORE_OUTPUTS, .job = job}, &count);
    assert_int_equal(count, path_count);
    for (size_t i = 0; i < count; i++) {
        assert_true(rig_is(rows[i].row.output.path, paths[i]));
        assert_int_equal(rows[i].row.output.bytes, 1000 + path_count * (ROUNDS - 1) + i);
    }
    free(rows);
}

static void last_of_many_output_lengths_is_stored(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        rig_open(rig);
        post_lengths(rig, rig_job(rig, ""), 2);
        post_lengths(rig, rig_job(rig, ""), 20);
    }
}

WEIR_TESTS(test(newest_unfinished_job_is_found), test(resumed_job_has_its_settings_counters_and_outputs),
           test(accepted_tasks_of_a_host_are_counted_ended_or_not),
           test(thousands_of_hosts_in_one_transaction_are_counted_correctly),
           test(new_and_known_tasks_are_distinguished_in_large_posts),
           test(task_of_two_jobs_ends_only_in_the_job_that_reports_it),
           test(task_may_be_found_end_and_be_found_again_in_one_post), test(last_of_many_output_lengths_is_stored))
