/* SPDX-License-Identifier: MIT */
/* test_resume.c - what every backend must tell a crawl that goes on with an older job. */
#include "store/rig.h"

/* ---- which job ----------------------------------------------------------------------------------------- */

static void keep_newest_open(void *context, const struct wr_store_row *row)
{
    if (!wr_job_is_over(row->job.status))
        *(int64_t *)context = row->job.id;
}

static int64_t newest_open_job(struct rig *rig)
{
    int64_t job = 0;
    struct wr_store_query query = {.what = WR_STORE_JOBS, .row = keep_newest_open, .context = &job};

    assert_int_equal(wr_store_read(rig->store, &query), 0);
    return job;
}

static void the_newest_job_that_is_not_over_is_found_among_others(void **state)
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
        assert_int_equal(newest_open_job(rig), second); /* it has not begun */
        rig_post(rig, rig_status(second, WR_JOB_BLOCKED, "403 everywhere"));
        assert_int_equal(newest_open_job(rig), first);
        rig_post(rig, rig_status(first, WR_JOB_CANCELLED, ""));
        assert_int_equal(newest_open_job(rig), 0);
    }
}

static void a_job_goes_on_with_its_settings_counters_and_outputs(void **state)
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

/* ---- how many tasks a host has had --------------------------------------------------------------------- */

static uint64_t accepted(struct rig *rig, int64_t job, const char *host)
{
    size_t count;
    uint64_t tasks = UINT64_MAX;
    struct wr_store_query query = {
        .what = WR_STORE_TASKS, .job = job, .key = wr_span_of(host), .after = WR_STORE_FRONT, .limit = 1};

    query.ret_accepted = &tasks;
    free(rig_read(rig, query, &count));
    return tasks;
}

static void tasks_of_a_job_and_host_are_counted_whether_they_ended_or_not(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        rig->options.batch_ns = WEIR_HOUR; /* what is counted is not committed yet when it is asked for */
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
            assert_int_equal(accepted(rig, job, "a"), 2); /* though none is queued */
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

/* More of them in one transaction than any table of the store's has room for, and two jobs that take turns. */
static void thousands_of_hosts_in_one_transaction_are_counted_right(void **state)
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

WEIR_TESTS(test(the_newest_job_that_is_not_over_is_found_among_others),
           test(a_job_goes_on_with_its_settings_counters_and_outputs),
           test(tasks_of_a_job_and_host_are_counted_whether_they_ended_or_not),
           test(thousands_of_hosts_in_one_transaction_are_counted_right))
