/* SPDX-License-Identifier: MIT */
/* test_postgres.c - problems of a store that only PostgreSQL has: other processes, and a server
 * that disconnects. */
#include "crawl/store/backend.h"
#include "lib/worker.h"
#include "store/postgres.h"
#include "store/rig.h"

#include <pthread.h>
#include <unistd.h>

static void *open_one(void *context)
{
    struct store_fixture *rig = context;

    return wr_store_open(&rig->options, &rig->store) == 0 ? rig : NULL;
}

static void tables_are_created_once_by_stores_that_open_together(void **state)
{
    (void)state;
    enum {
        STORES = 4
    };
    struct store_fixture rigs[STORES];
    pthread_t threads[STORES];

    if (!rig_set_up_shared(&rigs[0]))
        test_skip_missing("PostgreSQL");
    for (int i = 1; i < STORES; i++)
        rigs[i] = rigs[0];
    for (int i = 0; i < STORES; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_one, &rigs[i]), 0);
    for (int i = 0; i < STORES; i++) {
        void *opened = NULL;
        assert_int_equal(pthread_join(threads[i], &opened), 0);
        assert_non_null(opened);
        assert_true(rig_fingerprint(&rigs[i], "https://h/") == rig_fingerprint(&rigs[0], "https://h/"));
    }
    for (int i = 1; i < STORES; i++)
        rig_close(&rigs[i]);
    rig_tear_down(&rigs[0]);
}

/* Two crawls find the same pages: each counts once, and neither blocks for ever (G7). */
static void tasks_found_and_ended_by_several_processes_count_once(void **state)
{
    (void)state;
    enum {
        ROUNDS = 200
    };
    struct store_fixture first, second;
    char url[32];

    if (!rig_set_up_shared(&first))
        test_skip_missing("PostgreSQL");
    rig_open(&first);
    second = first;
    second.options.context = &second;
    rig_open(&second);
    int64_t job = rig_job(&first, "");
    for (int i = 0; i < ROUNDS; i++) {
        snprintf(url, sizeof url, "https://h%d/%d", i % 7, i);
        struct wr_store_change found = rig_found(&first, job, url + 8, url, NULL);
        struct wr_store_change ended = rig_ended(&first, job, url, false, "fetched");
        struct store_fixture *one = i % 2 == 0 ? &first : &second, *other = i % 2 == 0 ? &second : &first;
        assert_int_equal(rig_post_later(one, found), 0);
        assert_int_equal(rig_post_later(other, found), 0);
        assert_int_equal(rig_post_later(one, ended), 0);
        assert_int_equal(rig_post_later(other, ended), 0);
    }
    test_await_number(&first.done, 2 * ROUNDS);
    test_await_number(&second.done, 2 * ROUNDS);
    struct wr_store_job seen = rig_look_job(&first, job);
    assert_int_equal(seen.done + seen.queued, ROUNDS);
    assert_int_equal(seen.done, ROUNDS);
    rig_check(&first);
    rig_close(&second);
    rig_tear_down(&first);
}

/* G2, G7: pg_terminate_backend during the work. */
static void lost_connection_causes_a_pause_and_no_loss(void **state)
{
    (void)state;
    enum {
        TASKS = 300
    };
    struct store_fixture rig;
    char url[32];

    if (!rig_set_up_shared(&rig))
        test_skip_missing("PostgreSQL");
    rig.options.retry_ns = 10 * WEIR_MILLISECOND;
    rig_open(&rig);
    int64_t job = rig_job(&rig, "");
    for (int i = 0; i < TASKS; i++) {
        snprintf(url, sizeof url, "https://h/%d", i);
        assert_int_equal(rig_post_later(&rig, rig_found(&rig, job, "h", url, NULL)), 0);
        assert_int_equal(rig_post_later(&rig, rig_ended(&rig, job, url, i % 2 == 0, "so")), 0);
        if (i == 25) /* a post over a connection known to be dead must fail */
            test_await_number(&rig.done, 2 * (i + 1));
        /* later disconnects hit any moment, also just after a COMMIT, which causes no pause */
        if (i % 50 == 25)
            postgres_run(rig.schema, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                                     " WHERE pid != pg_backend_pid() AND application_name = 'weir'");
    }
    test_await_number(&rig.done, 2 * TASKS);
    assert_true(atomic_load(&rig.paused) > 0);
    assert_int_equal(rig_look_job(&rig, job).done, TASKS / 2);
    assert_int_equal(rig_look_job(&rig, job).failed, TASKS / 2);
    rig_check(&rig);
    rig_tear_down(&rig);
}

/* G2: a read during a disconnect waits and returns no error. */
static void read_on_a_lost_connection_is_answered_over_the_next(void **state)
{
    (void)state;
    struct store_fixture rig;

    if (!rig_set_up_shared(&rig))
        test_skip_missing("PostgreSQL");
    rig_open(&rig);
    int64_t job = rig_job(&rig, "");
    rig_post(&rig, rig_found(&rig, job, "h", "https://h/", NULL));
    for (int i = 0; i < 5; i++) {
        postgres_run(rig.schema, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                                 " WHERE pid != pg_backend_pid() AND application_name = 'weir'");
        assert_int_equal(rig_look_job(&rig, job).queued, 1);
    }
    rig_tear_down(&rig);
}

/* The same command on several machines shares one job; after its end, a new job is created. */
static void processes_with_the_same_settings_share_a_job_until_it_ends(void **state)
{
    (void)state;
    struct store_fixture first, second;
    int64_t jobs[4];

    if (!rig_set_up_shared(&first))
        test_skip_missing("PostgreSQL");
    rig_open(&first);
    second = first;
    second.options.context = &second;
    rig_open(&second);
    assert_int_equal(wr_store_join_job(first.store, wr_span_of("same"), 0, &jobs[0]), 0);
    assert_int_equal(wr_store_join_job(second.store, wr_span_of("same"), 0, &jobs[1]), 0);
    assert_int_equal(wr_store_join_job(second.store, wr_span_of("other"), 0, &jobs[2]), 0);
    assert_true(jobs[0] == jobs[1] && jobs[2] != jobs[1]);
    rig_post(&first, rig_status(jobs[0], WR_JOB_COMPLETED, ""));
    assert_int_equal(wr_store_join_job(second.store, wr_span_of("same"), 0, &jobs[3]), 0);
    assert_true(jobs[3] != jobs[0]);
    rig_close(&second);
    rig_tear_down(&first);
}

/* Simulates a crawl of 40 hosts: each page is two changes, and hosts are claimed and their queues
 * loaded. */
static void crawl_needs_at_most_one_round_trip_per_fifty_pages(void **state)
{
    (void)state;
    enum {
        HOSTS = 40,
        PAGES = 100
    };
    struct store_fixture rig;
    struct wr_store_stats stats;
    char host[16], url[32];
    size_t count;

    if (!rig_set_up_shared(&rig))
        test_skip_missing("PostgreSQL");
    rig.options.batch_ns = WEIR_SECOND;
    rig_open(&rig);
    int64_t job = rig_job(&rig, "");
    for (int i = 0; i < HOSTS * PAGES; i++) {
        snprintf(host, sizeof host, "h%d", i % HOSTS);
        snprintf(url, sizeof url, "https://%s/%d", host, i);
        assert_int_equal(rig_post_later(&rig, rig_found(&rig, job, host, url, NULL)), 0);
    }
    free(rig_read(&rig, (struct wr_store_query){.what = WR_STORE_CLAIM, .job = job}, &count));
    assert_int_equal(count, HOSTS);
    for (int i = 0; i < HOSTS; i++) {
        snprintf(host, sizeof host, "h%d", i);
        free(
            rig_read(&rig,
                     (struct wr_store_query){
                         .what = WR_STORE_TASKS, .job = job, .key = wr_span_of(host), .after = WR_STORE_FIRST_POSITION},
                     &count));
        assert_int_equal(count, PAGES);
    }
    for (int i = 0; i < HOSTS * PAGES; i++) {
        snprintf(url, sizeof url, "https://h%d/%d", i % HOSTS, i);
        assert_int_equal(rig_post_later(&rig, rig_ended(&rig, job, url, false, "fetched")), 0);
    }
    test_await_number(&rig.done, 2 * HOSTS * PAGES);
    wr_store_stats_get(rig.store, &stats);
    assert_true(stats.round_trips * 50 <= HOSTS * PAGES);
    rig_tear_down(&rig);
}

/* The store keeps no state on the server beyond a transaction. */
static void store_works_through_pgbouncer_in_transaction_mode(void **state)
{
    (void)state;
    struct store_fixture rigs[3];
    char url[RIG_PATH], page[32];

    /* three processes on two connections */
    if (!rig_set_up_shared(&rigs[0]) || !postgres_bounce(url, sizeof url))
        test_skip_missing("PostgreSQL or PgBouncer");
    snprintf(rigs[0].path, sizeof rigs[0].path, "%s", url);
    for (int i = 0; i < 3; i++) {
        rigs[i] = rigs[0];
        rigs[i].options.path = url;
        rigs[i].options.context = &rigs[i];
        rig_open(&rigs[i]);
    }
    int64_t job = rig_job(&rigs[0], "");
    for (int i = 0; i < 60; i++) {
        snprintf(page, sizeof page, "https://h%d/%d", i % 7, i);
        assert_int_equal(rig_post_later(&rigs[i % 3], rig_found(&rigs[0], job, page + 8, page, NULL)), 0);
        assert_int_equal(rig_post_later(&rigs[i % 3], rig_ended(&rigs[0], job, page, false, "fetched")), 0);
    }
    for (int i = 0; i < 3; i++)
        test_await_number(&rigs[i].done, 40);
    rig_post(&rigs[1], rig_found(&rigs[0], job, "last", "https://last/", NULL));
    size_t count;
    free(rig_read(&rigs[1], (struct wr_store_query){.what = WR_STORE_CLAIM, .job = job}, &count));
    assert_int_equal(count, 1);
    free(rig_read(&rigs[1], (struct wr_store_query){.what = WR_STORE_RENEW, .job = job}, &count));
    assert_int_equal(count, 1);
    assert_int_equal(rig_look_job(&rigs[2], job).done, 60);
    rig_check(&rigs[2]);
    rig_close(&rigs[1]);
    rig_close(&rigs[2]);
    rig_tear_down(&rigs[0]);
}

/* G1, V10: also for URLs that libpq would quote in its error. */
static void unreachable_server_is_named_without_the_password(void **state)
{
    (void)state;
    static const struct {
        const char *url, *shown;
        int error;
    } cases[] = {
        {"postgres://me:s3cret@localhost:1/crawl?password=s3cret", "postgres://me@localhost:1/crawl", WEIR_E_SYSTEM},
        {"postgres://me:s3%40cret@localhost:1/crawl", "postgres://me@localhost:1/crawl", WEIR_E_SYSTEM},
        {"postgres://me:s3?cret@localhost:1/crawl", "postgres://me", WEIR_E_SYSTEM},
        {"postgres://me:se@s3cret:x@localhost:1/crawl", "postgres://me@localhost:1/crawl", WEIR_E_INVAL},
        {"postgres://me:s3/s3cret@localhost:1/crawl", "postgres://me@localhost:1/crawl", WEIR_E_INVAL},
        {"postgres://me:s3/s?3cret@localhost:1/crawl", "postgres://me", WEIR_E_INVAL},
        {"postgres://me:s3cret%zz@localhost:1/crawl", "postgres://me@localhost:1/crawl", WEIR_E_INVAL},
        {"postgres://localhost:1/crawl?user=me%40home", "postgres://localhost:1/crawl", WEIR_E_SYSTEM},
        {"postgres://localhost:1/crawl?user=me@home", "postgres://localhost", WEIR_E_SYSTEM},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wr_store *store = NULL;
        const struct wr_store_options options = {.path = cases[i].url, .backend = &wr_backend_pg};
        char name[128];
        assert_int_equal(wr_store_open(&options, &store), cases[i].error);
        assert_null(store);
        assert_non_null(strstr(weir_error_detail(), cases[i].shown));
        assert_null(strstr(weir_error_detail(), "s3"));
        assert_null(strstr(weir_error_detail(), "cret"));
        wr_store_name(cases[i].url, name, sizeof name);
        assert_string_equal(name, cases[i].shown);
    }
}

/* 1: the sync callback blocks, like a process that is suspended */
static atomic_int stalls;

static int stall(void *context)
{
    (void)context;
    for (int tries = 0; atomic_load(&stalls) == 1 && tries < 6000; tries++)
        usleep(10000);
    return 0;
}

static void note_stored(void *context, int error, const char *why)
{
    (void)why;
    atomic_store((atomic_int *)context, error == 0 ? 1 : -1);
}

/* G7: the lock of a suspended process expires. */
static void crawl_suspended_before_its_commit_blocks_others_only_briefly(void **state)
{
    (void)state;
    struct store_fixture rig, other;
    atomic_int stored = 0;

    if (!rig_set_up_shared(&rig))
        test_skip_missing("PostgreSQL");
    rig.options.lease_ns = 6 * WEIR_SECOND;
    rig_open(&rig);
    int64_t job = rig_job(&rig, "");
    memset(&other, 0, sizeof other);
    other.backend = rig.backend;
    other.options = rig.options;
    other.options.context = &other;
    other.options.sync = stall;
    rig_open(&other);
    atomic_store(&stalls, 1);
    const struct wr_store_change changes[] = {
        rig_found(&other, job, "a", "https://a/", NULL),
        {.kind = WR_STORE_OUTPUT, .output = {.job = job, .path = wr_span_of("/out"), .bytes = 1}}};
    assert_int_equal(wr_store_post(other.store, changes, 2, note_stored, &stored), 0);
    postgres_await(rig.schema, "SELECT FROM pg_stat_activity WHERE state = 'idle in transaction'");
    /* waits for the transaction of the other process */
    rig_post(&rig, rig_found(&rig, job, "a", "https://a/", NULL));
    assert_int_equal(atomic_load(&stalls), 1);
    assert_int_equal(rig_look_job(&rig, job).queued, 1);
    atomic_store(&stalls, 2);
    rig_close(&other);
    assert_int_equal(atomic_load(&stored), 1);
    assert_int_equal(rig_look_job(&rig, job).queued, 1);
    rig_check(&rig);
    rig_tear_down(&rig);
}

static void note_post(void *context, int error, const char *why)
{
    if (error != 0)
        print_error("%s\n", why);
    atomic_fetch_add((atomic_int *)context, error == 0 ? 1 : 1000);
}

/* G7: all stores find tasks at unknown hosts, and some post the status of the job, as crawls do at
 * their start and end. */
static void concurrent_posts_to_one_job_do_not_deadlock(void **state)
{
    (void)state;
    enum {
        STORES = 4,
        HOSTS = 20,
        ROUNDS = 30
    };
    struct store_fixture rigs[STORES];
    char urls[HOSTS][32];
    atomic_int stored = 0;

    if (!rig_set_up_shared(&rigs[0]))
        test_skip_missing("PostgreSQL");
    rig_open(&rigs[0]);
    int64_t job = rig_job(&rigs[0], "");
    for (int i = 1; i < STORES; i++) {
        memset(&rigs[i], 0, sizeof rigs[i]);
        rigs[i].backend = rigs[0].backend;
        rigs[i].options = rigs[0].options;
        rigs[i].options.context = &rigs[i];
        rig_open(&rigs[i]);
    }
    postgres_run(rigs[0].schema, "CREATE TABLE before AS SELECT deadlocks FROM pg_stat_database"
                                 " WHERE datname = current_database()");
    for (int round = 0; round < ROUNDS; round++) {
        for (int at = 0; at < HOSTS; at++)
            snprintf(urls[at], sizeof urls[at], "https://h%d-%d/", round, at);
        for (int i = 0; i < STORES; i++) {
            struct wr_store_change changes[HOSTS + 1];
            for (int at = 0; at < HOSTS; at++)
                changes[at] = rig_found(&rigs[i], job, urls[at] + 8, urls[at], NULL);
            changes[HOSTS] =
                (struct wr_store_change){.kind = WR_STORE_JOB_STATUS, .status = {.job = job, .status = WR_JOB_RUNNING}};
            size_t count = i % 2 == 0 ? HOSTS : HOSTS + 1;
            assert_int_equal(wr_store_post(rigs[i].store, changes, count, note_post, &stored), 0);
        }
        for (int tries = 0; atomic_load(&stored) < STORES * (round + 1) && tries < 6000; tries++)
            usleep(10000);
    }
    assert_int_equal(atomic_load(&stored), STORES * ROUNDS);
    for (int i = 1; i < STORES; i++)
        rig_close(&rigs[i]);
    assert_int_equal(rig_look_job(&rigs[0], job).queued, ROUNDS * HOSTS);
    postgres_await(rigs[0].schema, "SELECT FROM pg_stat_database AS d, before AS b"
                                   " WHERE d.datname = current_database() AND d.deadlocks = b.deadlocks");
    rig_tear_down(&rigs[0]);
}

static void foreign_newer_and_missing_postgres_tables_are_refused(void **state)
{
    (void)state;
    struct store_fixture rig;

    if (!rig_set_up_shared(&rig))
        test_skip_missing("PostgreSQL");
    rig.options.may_create = false;
    assert_int_equal(wr_store_open(&rig.options, &rig.store), WEIR_E_ABSENT);
    rig.options.may_create = true;
    postgres_run(rig.schema, "CREATE TABLE jobs (mine int)");
    assert_int_equal(wr_store_open(&rig.options, &rig.store), WEIR_E_INVAL);
    postgres_run(rig.schema, "DROP TABLE jobs");
    rig_open(&rig);
    rig_close(&rig);
    postgres_run(rig.schema, "UPDATE weir SET version = 99");
    assert_int_equal(wr_store_open(&rig.options, &rig.store), WEIR_E_INVAL);
    assert_non_null(strstr(weir_error_detail(), "newer weir"));
    rig_tear_down(&rig);
}

/* Each statement turns the tables into those of an earlier version. */
static void postgres_tables_of_an_earlier_version_are_migrated(void **state)
{
    (void)state;
    static const char *const earlier[] = {
        ("DROP INDEX hosts_free, hosts_ready; ALTER TABLE hosts DROP wanted_by, DROP wanted_until, DROP rest_until,"
         " DROP held_since; ALTER TABLE robots DROP text_bytes; UPDATE weir SET version = 1"),
        "DROP INDEX hosts_free, hosts_ready; ALTER TABLE robots DROP text_bytes; UPDATE weir SET version = 2",
        "ALTER TABLE robots DROP text_bytes; UPDATE weir SET version = 3",
    };
    struct store_fixture rig;
    size_t count;

    if (!rig_set_up_shared(&rig))
        test_skip_missing("PostgreSQL");
    rig_open(&rig);
    int64_t job = rig_job(&rig, "");
    rig_post(&rig, rig_found(&rig, job, "a", "https://a/", NULL));
    rig_close(&rig);
    for (size_t i = 0; i < sizeof earlier / sizeof earlier[0]; i++) {
        postgres_run(rig.schema, earlier[i]);
        rig_open(&rig);
        free(rig_read(&rig, (struct wr_store_query){.what = WR_STORE_CLAIM, .job = job}, &count));
        assert_int_equal(count, 1);
        postgres_run(rig.schema, "DO $$ BEGIN ASSERT (SELECT version = 4 FROM weir) AND"
                                 " to_regclass('hosts_free') IS NOT NULL AND to_regclass('hosts_ready') IS NOT NULL AND"
                                 " to_regclass('robots_kept') IS NOT NULL;"
                                 " END $$");
        rig_close(&rig);
    }
    rig_tear_down(&rig);
}

WEIR_TESTS(test(tables_are_created_once_by_stores_that_open_together),
           test(postgres_tables_of_an_earlier_version_are_migrated),
           test(tasks_found_and_ended_by_several_processes_count_once),
           test(lost_connection_causes_a_pause_and_no_loss), test(read_on_a_lost_connection_is_answered_over_the_next),
           test(processes_with_the_same_settings_share_a_job_until_it_ends),
           test(crawl_needs_at_most_one_round_trip_per_fifty_pages),
           test(store_works_through_pgbouncer_in_transaction_mode),
           test(unreachable_server_is_named_without_the_password),
           test(crawl_suspended_before_its_commit_blocks_others_only_briefly),
           test(concurrent_posts_to_one_job_do_not_deadlock),
           test(foreign_newer_and_missing_postgres_tables_are_refused))
