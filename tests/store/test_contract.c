/* SPDX-License-Identifier: MIT */
/* test_contract.c - the guarantees of every backend, tested through the header of the contract
 * only. */
#include "base/rng.h"
#include "store/rig.h"

#define assert_queue(rig, job, host, expected)        \
    do {                                              \
        char *queue_text = rig_queue(rig, job, host); \
        assert_string_equal(queue_text, expected);    \
        free(queue_text);                             \
    } while (0)

/* ---- jobs ------------------------------------------------------------------------------------ */

static void new_store_is_empty_and_a_new_job_is_pending(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        size_t count;
        rig_open(rig);
        free(rig_read(rig, (struct wr_store_query){.what = WR_STORE_JOBS}, &count));
        assert_int_equal(count, 0);
        int64_t job = rig_job(rig, "{\"depth\": 3}");
        rig_reopen(rig);
        struct rig_row *rows = rig_read(rig, (struct wr_store_query){.what = WR_STORE_JOBS}, &count);
        assert_int_equal(count, 1);
        assert_int_equal(rows[0].row.job.id, job);
        assert_int_equal(rows[0].row.job.status, WR_JOB_PENDING);
        assert_true(rig_is(rows[0].row.job.settings, "{\"depth\": 3}"));
        assert_true(rows[0].row.job.created_wall_at > 0);
        free(rows);
    }
}

static void jobs_are_listed_by_id_and_in_pieces(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        size_t count;
        rig_open(rig);
        int64_t first = rig_job(rig, "a"), second = rig_job(rig, "b"), third = rig_job(rig, "c");
        struct wr_store_query query = {.what = WR_STORE_JOBS, .limit = 2};
        struct rig_row *rows = rig_read(rig, query, &count);
        assert_int_equal(count, 2);
        assert_int_equal(rows[0].row.job.id, first);
        assert_int_equal(rows[1].row.job.id, second);
        query.after.id = rows[1].row.job.id;
        free(rows);
        rows = rig_read(rig, query, &count);
        assert_int_equal(count, 1);
        assert_int_equal(rows[0].row.job.id, third);
        free(rows);
    }
}

static void every_status_is_kept_with_its_reason(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        rig_open(rig);
        int64_t job = rig_job(rig, "");
        for (int status = WR_JOB_PENDING; status <= WR_JOB_BLOCKED; status++) {
            size_t count;
            rig_post(rig, rig_status(job, (enum wr_job_status)status, "because"));
            struct rig_row *rows = rig_read(rig, (struct wr_store_query){.what = WR_STORE_JOBS, .job = job}, &count);
            assert_int_equal(rows[0].row.job.status, status);
            assert_true(rig_is(rows[0].row.job.why, "because"));
            free(rows);
        }
    }
}

static void finished_job_takes_no_tasks(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        rig_open(rig);
        int64_t job = rig_job(rig, "");
        rig_post(rig, rig_found(rig, job, "a.example", "https://a.example/1", NULL));
        const struct wr_store_change changes[] = {
            rig_found(rig, job, "a.example", "https://a.example/2", NULL),
            rig_status(job, WR_JOB_CANCELLED, "asked to"),
            rig_found(rig, job, "a.example", "https://a.example/3", NULL),
        };
        rig_post_all(rig, changes, 3);
        rig_post(rig, rig_found(rig, job, "a.example", "https://a.example/4", NULL));
        /* there is no such job */
        rig_post(rig, rig_found(rig, job + 100, "a.example", "https://a.example/5", NULL));
        assert_queue(rig, job, "a.example", "https://a.example/1,https://a.example/2");
        assert_queue(rig, job + 100, "a.example", "");
        assert_int_equal(rig_look_job(rig, job).queued, 2);
        rig_check(rig);
    }
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static void tasks_come_first_in_first_out_and_by_host(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        rig_open(rig);
        int64_t job = rig_job(rig, ""), other = rig_job(rig, "");
        const struct wr_store_change changes[] = {
            rig_found(rig, job, "a.example", "https://a.example/z", NULL),
            rig_found(rig, job, "b.example", "https://b.example/", NULL),
            rig_found(rig, job, "a.example", "https://a.example/a", "https://a.example/z"),
            rig_found(rig, other, "a.example", "https://a.example/z", NULL),
        };
        rig_post_all(rig, changes, 4);
        rig_reopen(rig);
        assert_queue(rig, job, "a.example", "https://a.example/z,https://a.example/a");
        assert_queue(rig, job, "b.example", "https://b.example/");
        assert_queue(rig, other, "a.example", "https://a.example/z");
        assert_queue(rig, job, "c.example", "");
    }
}

static void loaded_task_has_all_fields_that_were_found(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        size_t count;
        rig_open(rig);
        int64_t job = rig_job(rig, "");
        rig_post(rig, rig_found(rig, job, "a.example:8080", "http://a.example:8080/", NULL));
        struct wr_store_change change =
            rig_found(rig, job, "b.example", "https://b.example/x", "http://a.example:8080/");
        change.found.depth = 7;
        change.found.hops = 2;
        change.found.priority = -3;
        rig_post(rig, change);
        /* the parent stays known */
        rig_post(rig, rig_ended(rig, job, "http://a.example:8080/", false, "fetched"));
        struct wr_store_query query = {
            .what = WR_STORE_TASKS, .job = job, .key = wr_span_of("b.example"), .after = WR_STORE_FIRST_POSITION};
        struct rig_row *rows = rig_read(rig, query, &count);
        assert_int_equal(count, 1);
        const struct wr_store_task *task = &rows[0].row.task;
        assert_int_equal(task->job, job);
        assert_true(task->fingerprint == rig_fingerprint(rig, "https://b.example/x"));
        assert_true(task->parent == rig_fingerprint(rig, "http://a.example:8080/"));
        assert_true(rig_is(task->url, "https://b.example/x"));
        assert_true(rig_is(task->host, "b.example"));
        assert_true(rig_is(task->referrer, "http://a.example:8080/"));
        assert_int_equal(task->depth, 7);
        assert_int_equal(task->hops, 2);
        assert_int_equal(task->priority, -3);
        assert_int_equal(task->attempts, 0);
        assert_int_equal(task->not_before_wall_at, 0);
        free(rows);
    }
}

static void task_with_the_lowest_priority_number_comes_first(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        int32_t priority;
    } tasks[] = {{"a", 5}, {"b", INT32_MAX}, {"c", -1}, {"d", 5}, {"e", INT32_MIN}, {"f", 0}};
    EACH_BACKEND(rig)
    {
        rig_open(rig);
        int64_t job = rig_job(rig, "");
        for (size_t i = 0; i < sizeof tasks / sizeof tasks[0]; i++) {
            struct wr_store_change change = rig_found(rig, job, "h", tasks[i].url, NULL);
            change.found.priority = tasks[i].priority;
            rig_post(rig, change);
        }
        assert_queue(rig, job, "h", "e,c,f,a,d,b");
    }
}

static void loading_tasks_continues_where_it_stopped(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        char url[32];
        int seen = 0;
        size_t count;
        rig_open(rig);
        int64_t job = rig_job(rig, "");
        for (int i = 0; i < 100; i++) {
            snprintf(url, sizeof url, "https://h/%03d", i);
            struct wr_store_change change = rig_found(rig, job, "h", url, NULL);
            change.found.priority = i / 30;
            assert_int_equal(rig_post_later(rig, change), 0);
        }
        struct wr_store_query query = {
            .what = WR_STORE_TASKS, .job = job, .key = wr_span_of("h"), .after = WR_STORE_FIRST_POSITION, .limit = 7};
        rig_post_all(rig, NULL, 0); /* waits until all posts are stored */
        do {
            struct rig_row *rows = rig_read(rig, query, &count);
            assert_true(count <= 7);
            for (size_t i = 0; i < count; i++) {
                snprintf(url, sizeof url, "https://h/%03d", seen++);
                assert_true(rig_is(rows[i].row.task.url, url));
                query.after = (struct wr_store_position){rows[i].row.task.priority, rows[i].row.task.id};
            }
            free(rows);
        } while (count > 0);
        assert_int_equal(seen, 100);
    }
}

static void task_is_found_once_and_ends_once(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        rig_open(rig);
        int64_t job = rig_job(rig, "");
        for (int i = 0; i < 3; i++)
            rig_post(rig, rig_found(rig, job, "h", "https://h/", NULL));
        assert_queue(rig, job, "h", "https://h/");
        for (int i = 0; i < 3; i++)
            rig_post(rig, rig_ended(rig, job, "https://h/", false, "fetched"));
        rig_post(rig, rig_ended(rig, job, "https://h/", true, "late"));
        rig_post(rig, rig_ended(rig, job, "https://h/never-found", true, "stray"));
        /* a finished task stays known */
        rig_post(rig, rig_found(rig, job, "h", "https://h/", NULL));
        assert_queue(rig, job, "h", "");
        struct wr_store_job seen = rig_look_job(rig, job);
        assert_int_equal(seen.queued, 0);
        assert_int_equal(seen.done, 1);
        assert_int_equal(seen.failed, 0);
        assert_int_equal(seen.bytes, 100);
        rig_check(rig);
    }
}

static void store_reports_which_tasks_were_new(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        bool is_new[3] = {false, true, true};
        rig_open(rig);
        int64_t job = rig_job(rig, "");
        struct wr_store_change changes[] = {rig_found(rig, job, "h", "https://h/1", NULL),
                                            rig_found(rig, job, "h", "https://h/1", NULL),
                                            rig_found(rig, job + 1, "h", "https://h/2", NULL)};
        for (size_t i = 0; i < 3; i++)
            changes[i].found.ret_is_new = &is_new[i];
        rig_post_all(rig, changes, 3);
        assert_true(is_new[0]);
        assert_false(is_new[1]);
        assert_false(is_new[2]); /* no such job */
    }
}

static void all_fingerprints_of_a_job_are_listed_in_pieces(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        char url[32];
        size_t count, seen = 0;
        uint64_t sum = 0, expected = 0;
        rig_open(rig);
        int64_t job = rig_job(rig, ""), other = rig_job(rig, "");
        for (int i = 0; i < 50; i++) {
            snprintf(url, sizeof url, "https://h/%d", i);
            expected += rig_fingerprint(rig, url);
            rig_post(rig, rig_found(rig, job, "h", url, NULL));
            if (i % 2 == 0)
                rig_post(rig, rig_ended(rig, job, url, i % 4 == 0, "so"));
        }
        rig_post(rig, rig_found(rig, other, "h", "https://h/other", NULL));
        struct wr_store_query query = {.what = WR_STORE_FINGERPRINTS, .job = job, .after.id = INT64_MIN, .limit = 7};
        do {
            struct rig_row *rows = rig_read(rig, query, &count);
            for (size_t i = 0; i < count; i++, seen++) {
                sum += rows[i].row.task.fingerprint;
                query.after.id = (int64_t)rows[i].row.task.fingerprint;
            }
            free(rows);
        } while (count > 0);
        assert_int_equal(seen, 50);
        assert_true(sum == expected);
    }
}

static void retried_task_keeps_its_place_and_counts_once(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        size_t count;
        int64_t soon = weir_wall_now() + 90 * WEIR_SECOND + 1;
        rig_open(rig);
        int64_t job = rig_job(rig, "");
        rig_post(rig, rig_found(rig, job, "h", "https://h/1", NULL));
        rig_post(rig, rig_found(rig, job, "h", "https://h/2", NULL));
        struct wr_store_change retry = rig_retry(rig, job, "https://h/1", 1, 429);
        retry.retry.not_before_wall_at = soon;
        rig_post(rig, retry);
        rig_post(rig, retry);
        rig_post(rig, rig_retry(rig, job, "https://h/2", 1, 503));
        rig_reopen(rig);
        assert_queue(rig, job, "h", "https://h/1,https://h/2");
        struct wr_store_query query = {
            .what = WR_STORE_TASKS, .job = job, .key = wr_span_of("h"), .after = WR_STORE_FIRST_POSITION, .limit = 1};
        struct rig_row *rows = rig_read(rig, query, &count);
        assert_int_equal(rows[0].row.task.attempts, 1);
        /* the stored time is rounded up, never earlier */
        assert_in_range(rows[0].row.task.not_before_wall_at, soon, soon + WEIR_MILLISECOND);
        free(rows);
        assert_int_equal(rig_look_job(rig, job).retries, 2);
        assert_int_equal(rig_look_job(rig, job).rejected, 1);
        rig_post(rig, rig_ended(rig, job, "https://h/1", true, "refused"));
        rig_post(rig, rig_retry(rig, job, "https://h/1", 2, 429)); /* the task has ended */
        assert_int_equal(rig_look_job(rig, job).retries, 2);
        rig_check(rig);
    }
}

/* H2: the clock was a year ahead when the time was stored. */
static void task_is_never_deferred_for_years(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        size_t count;
        rig_open(rig);
        int64_t job = rig_job(rig, "");
        rig_post(rig, rig_found(rig, job, "h", "https://h/", NULL));
        struct wr_store_change retry = rig_retry(rig, job, "https://h/", 1, 503);
        retry.retry.not_before_wall_at = INT64_MAX;
        rig_post(rig, retry);
        struct wr_store_query query = {
            .what = WR_STORE_TASKS, .job = job, .key = wr_span_of("h"), .after = WR_STORE_FIRST_POSITION};
        struct rig_row *rows = rig_read(rig, query, &count);
        assert_int_equal(count, 1);
        assert_true(rows[0].row.task.not_before_wall_at <= weir_wall_now() + WR_STORE_RETRY_MAX_NS);
        free(rows);
    }
}

/* The latest change time that a site reports for a page is kept. It does not shorten the wait of a
 * deferred task. */
static void change_time_of_a_page_is_kept_until_its_task_is_deferred(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        int64_t now = weir_wall_now() / WEIR_SECOND * WEIR_SECOND, soon = now + WEIR_MINUTE;
        const int64_t said[] = {now - WEIR_DAY, now - WEIR_HOUR, now - 2 * WEIR_DAY},
                      least[] = {said[0], said[1], said[1]};
        struct wr_store_change known[2], changed = {.kind = WR_STORE_PAGE_CHANGED};
        size_t count;
        rig_open(rig);
        int64_t job = rig_job(rig, "");
        struct wr_store_query query = {
            .what = WR_STORE_TASKS, .job = job, .key = wr_span_of("h"), .after = WR_STORE_FIRST_POSITION};
        known[0] = rig_found(rig, job, "h", "https://h/", NULL);
        changed.changed.job = job;
        changed.changed.fingerprint = known[0].found.fingerprint;
        for (size_t i = 0; i < 3; i++) {
            known[1] = changed;
            known[1].changed.wall_at = said[i];
            assert_int_equal(wr_store_post(rig->store, known, 2, NULL, NULL), 0);
            struct rig_row *rows = rig_read(rig, query, &count);
            assert_int_equal(count, 1);
            assert_true(rows[0].row.task.not_before_wall_at == least[i]);
            free(rows);
        }
        struct wr_store_change retry = rig_retry(rig, job, "https://h/", 1, 503);
        retry.retry.not_before_wall_at = soon;
        rig_post(rig, retry);
        rig_post(rig, known[1]);
        rig_reopen(rig);
        struct rig_row *rows = rig_read(rig, query, &count);
        assert_true(rows[0].row.task.not_before_wall_at >= soon);
        free(rows);
        rig_post(rig, rig_ended(rig, job, "https://h/", false, "fetched"));
        rig_post(rig, known[1]); /* the task has ended */
        rig_check(rig);
    }
}

/* ---- the counters ---------------------------------------------------------------------------- */

enum {
    TASKS = 200,
    JOBS = 20
}; /* more jobs than one transaction counts at a time */

struct book {
    bool known, over;
    uint32_t attempts;
};

static void one_change(struct store_fixture *rig, struct wr_rng *rng, const int64_t *jobs,
                       struct book book[JOBS][TASKS], struct wr_store_job *expected, struct wr_store_change *ret_change)
{
    static char urls[TASKS][32];
    size_t j = (size_t)wr_rng_below(rng, JOBS), t = (size_t)wr_rng_below(rng, TASKS);
    struct book *task = &book[j][t];
    snprintf(urls[t], sizeof urls[t], "https://h%zu/%zu", t % 7, t);
    uint64_t kind = wr_rng_below(rng, 4);
    if (kind < 2) {
        *ret_change = rig_found(rig, jobs[j], "h", urls[t], NULL);
        expected[j].queued += !task->known;
        task->known = true;
    } else if (kind == 2) {
        bool failed = wr_rng_below(rng, 2) == 0, counts = task->known && !task->over;
        *ret_change = rig_ended(rig, jobs[j], urls[t], failed, "so");
        expected[j].queued -= counts;
        expected[j].done += counts && !failed;
        expected[j].failed += counts && failed;
        expected[j].bytes += counts && !failed ? 100 : 0;
        task->over |= counts;
    } else {
        uint32_t attempts = 1 + (uint32_t)wr_rng_below(rng, 4);
        bool counts = task->known && !task->over && task->attempts < attempts;
        *ret_change = rig_retry(rig, jobs[j], urls[t], attempts, 429);
        expected[j].retries += counts;
        task->attempts = counts ? attempts : task->attempts;
    }
}

/* V5: counters agree with the tasks, even if changes are repeated. */
static void counters_agree_with_the_tasks_despite_repeated_changes(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        static struct book book[JOBS][TASKS];
        int64_t jobs[JOBS];
        struct wr_store_job expected[JOBS] = {0};
        struct wr_rng rng;
        memset(book, 0, sizeof book);
        wr_rng_init(&rng, weir_test_seed());
        rig_open(rig);
        for (size_t i = 0; i < JOBS; i++)
            jobs[i] = rig_job(rig, "");
        for (int round = 0; round < 3000; round++) {
            struct wr_store_change changes[8];
            size_t count = 1 + (size_t)wr_rng_below(&rng, 8);
            for (size_t i = 0; i < count; i++)
                one_change(rig, &rng, jobs, book, expected, &changes[i]);
            while (wr_store_post(rig->store, changes, count, rig_count, rig) == WEIR_E_FULL)
                rig_post_all(rig, NULL, 0);
        }
        rig_reopen(rig);
        assert_int_equal(atomic_load(&rig->done), 3000);
        for (size_t i = 0; i < JOBS; i++) {
            struct wr_store_job seen = rig_look_job(rig, jobs[i]);
            assert_int_equal(seen.queued, expected[i].queued);
            assert_int_equal(seen.done, expected[i].done);
            assert_int_equal(seen.failed, expected[i].failed);
            assert_int_equal(seen.bytes, expected[i].bytes);
            assert_int_equal(seen.retries, expected[i].retries);
            assert_int_equal(seen.rejected, expected[i].retries);
        }
        rig_check(rig);
    }
}

/* ---- untrusted texts ------------------------------------------------------------------------- */

/* G10: texts with SQL syntax are stored as texts. */
static void texts_are_never_executed_as_sql(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "'; DROP TABLE tasks; --",
        "\"); DELETE FROM jobs; --",
        "?1",
        ":name",
        "$1",
        "%s%n",
        "\\",
        "NULL",
        "''",
        "é漢字",
    };
    EACH_BACKEND(rig)
    {
        rig_open(rig);
        int64_t job = rig_job(rig, "'); DROP TABLE jobs; --");
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
            struct wr_store_host seen, host = rig_known_host(texts[i]);
            rig_post(rig, rig_found(rig, job, texts[i], texts[i], NULL));
            rig_post(rig, (struct wr_store_change){.kind = WR_STORE_HOST, .host = host});
            rig_post(rig, rig_output(job, texts[i], i));
            assert_queue(rig, job, texts[i], texts[i]);
            assert_true(rig_look_host(rig, texts[i], &seen));
            struct wr_store_change ended = rig_ended(rig, job, texts[i], true, "x' OR 1=1");
            ended.ended.why = wr_span_of(texts[i]);
            rig_post(rig, ended);
        }
        assert_int_equal(rig_look_job(rig, job).failed, sizeof texts / sizeof texts[0]);
        rig_check(rig);
    }
}

static void texts_that_are_too_long_invalid_or_missing_are_refused(void **state)
{
    (void)state;
    static char long_url[WR_URL_MAX + 2], long_key[WEIR_PACE_KEY_MAX + 2];
    memset(long_url, 'u', sizeof long_url - 1);
    memset(long_key, 'k', sizeof long_key - 1);
    EACH_BACKEND(rig)
    {
        rig_open(rig);
        int64_t job = rig_job(rig, "");
        struct wr_store_change nul = rig_found(rig, job, "h", "https://h/", NULL);
        nul.found.url = (struct wr_span){"a\0b", 3};
        const struct wr_store_change bad[] = {
            rig_found(rig, job, "h", long_url, NULL),
            rig_found(rig, job, long_key, "https://h/", NULL),
            rig_found(rig, job, "h", "", NULL),
            rig_found(rig, job, "", "https://h/", NULL),
            rig_found(rig, job, "h\n", "https://h/", NULL),
            rig_found(rig, job, "h", "https://h/\xff", NULL),
            nul,
            rig_ended(rig, job, "https://h/", true, ""), /* failed, but without a reason */
            rig_status(job, (enum wr_job_status)77, ""),
            {.kind = (enum wr_store_change_kind)99},
            {.kind = WR_STORE_HOST},
            {.kind = WR_STORE_ROBOTS},
            {.kind = WR_STORE_OUTPUT},
        };
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
            assert_int_equal(wr_store_post(rig->store, &bad[i], 1, rig_count, rig), WEIR_E_INVAL);
        const struct wr_store_change mixed[] = {rig_found(rig, job, "h", "https://h/", NULL), bad[0]};
        assert_int_equal(wr_store_post(rig->store, mixed, 2, rig_count, rig), WEIR_E_INVAL);
        assert_queue(rig, job, "h", "");
        /* no callback was called */
        assert_int_equal(atomic_load(&rig->done) + atomic_load(&rig->failed), 0);
    }
}

static void fingerprints_are_the_same_after_a_restart_and_differ_between_stores(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        struct store_fixture second;
        rig_open(rig);
        uint64_t before = rig_fingerprint(rig, "https://h/");
        rig_reopen(rig);
        assert_true(rig_fingerprint(rig, "https://h/") == before);
        rig_set_up(&second, rig->backend);
        rig_open(&second);
        assert_true(rig_fingerprint(&second, "https://h/") != before);
        rig_tear_down(&second);
    }
}

WEIR_TESTS(test(new_store_is_empty_and_a_new_job_is_pending), test(jobs_are_listed_by_id_and_in_pieces),
           test(every_status_is_kept_with_its_reason), test(finished_job_takes_no_tasks),
           test(tasks_come_first_in_first_out_and_by_host), test(loaded_task_has_all_fields_that_were_found),
           test(task_with_the_lowest_priority_number_comes_first), test(loading_tasks_continues_where_it_stopped),
           test(task_is_found_once_and_ends_once), test(store_reports_which_tasks_were_new),
           test(all_fingerprints_of_a_job_are_listed_in_pieces), test(retried_task_keeps_its_place_and_counts_once),
           test(task_is_never_deferred_for_years), test(change_time_of_a_page_is_kept_until_its_task_is_deferred),
           test(counters_agree_with_the_tasks_despite_repeated_changes), test(texts_are_never_executed_as_sql),
           test(texts_that_are_too_long_invalid_or_missing_are_refused),
           test(fingerprints_are_the_same_after_a_restart_and_differ_between_stores))
