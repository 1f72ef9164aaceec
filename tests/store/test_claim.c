/* SPDX-License-Identifier: MIT */
/* test_claim.c - claims on a PostgreSQL with many hosts, and hosts that no process can claim. */
#include "store/postgres.h"
#include "store/rig.h"

/* Sets up a job and 9000 hosts: of three in a row the first is done, the second leased by another
 * process, and the third rests. */
static bool set_up(struct store_fixture *rig, int64_t *ret_job)
{
    if (!postgres_start())
        return false;
    rig_set_up(rig, &rig_backends[1]);
    rig_open(rig);
    *ret_job = rig_job(rig, "");
    postgres_run(rig->schema,
                 "INSERT INTO nodes VALUES (7, 1, clock_timestamp() + interval '1 h', 'other/7', 0);"
                 "INSERT INTO hosts (id, host, lease_owner, lease_job, lease_until, rest_until) SELECT n, 'h' || n,"
                 " CASE n % 3 WHEN 1 THEN 7 ELSE 0 END, 1,"
                 " CASE n % 3 WHEN 1 THEN clock_timestamp() + interval '1 h' ELSE '-infinity' END,"
                 " CASE n % 3 WHEN 2 THEN clock_timestamp() + interval '1 h' ELSE '-infinity' END"
                 " FROM generate_series(1, 9000) AS n;"
                 "INSERT INTO tasks (job, host, fingerprint, parent, depth, hops, priority, url)"
                 " SELECT 1, n, n, 0, 0, 0, 0, 'https://h' || n || '/' FROM generate_series(1, 9000) AS n"
                 " WHERE n % 3 != 0");
    return true;
}

static size_t claim(struct store_fixture *rig, int64_t job, size_t limit)
{
    size_t count;

    free(rig_read(rig, (struct wr_store_query){.what = WR_STORE_CLAIM, .job = job, .limit = limit}, &count));
    return count;
}

/* PostgreSQL reports statistics when a connection ends. */
static void claims_do_not_read_leased_or_resting_hosts(void **state)
{
    (void)state;
    struct store_fixture rig, other;
    int64_t job = 0;

    if (!set_up(&rig, &job))
        test_skip_missing("PostgreSQL");
    postgres_run(rig.schema,
                 "DELETE FROM hosts WHERE id % 3 = 0 AND id NOT IN (6000, 9000);"
                 "INSERT INTO tasks (job, host, fingerprint, parent, depth, hops, priority, url)"
                 " VALUES (1, 6000, 6000, 0, 0, 0, 0, 'https://h6000/'), (1, 9000, 9000, 0, 0, 0, 0, 'https://h9000/');"
                 "UPDATE hosts SET rest_until = clock_timestamp() - interval '1 s' WHERE id IN (2, 8000)");
    postgres_await(rig.schema, "SELECT FROM pg_stat_user_tables WHERE relid = 'hosts'::regclass AND n_tup_ins >= 9000"
                               " AND n_tup_del >= 2998 AND n_tup_upd >= 2");
    postgres_run(rig.schema, "SELECT pg_stat_reset_single_table_counters('hosts'::regclass)");
    rig_join(&rig, &other);
    assert_int_equal(claim(&other, job, 3), 3); /* hosts that have finished their rest come first */
    assert_int_equal(claim(&other, job, 32), 1);
    for (int i = 0; i < 8; i++)
        assert_int_equal(claim(&other, job, 32), 0);
    rig_close(&other);
    postgres_await(rig.schema, "SELECT FROM pg_stat_user_tables WHERE relid = 'hosts'::regclass AND n_tup_upd >= 4");
    postgres_run(rig.schema, "DO $$ DECLARE r bigint; BEGIN SELECT seq_tup_read + idx_tup_fetch INTO r FROM"
                             " pg_stat_user_tables WHERE relid = 'hosts'::regclass;"
                             " ASSERT r < 2000, r || ' rows of hosts were read'; END $$");
    rig_tear_down(&rig);
}

/* Finished hosts lie between leased ones: a claim looks at a part of the hosts, and the next claim
 * continues there. */
static void host_among_thousands_of_finished_ones_is_found_in_few_claims(void **state)
{
    (void)state;
    struct store_fixture rig;
    int64_t job = 0;
    int claims = 1;

    if (!set_up(&rig, &job))
        test_skip_missing("PostgreSQL");
    postgres_run(rig.schema, "INSERT INTO tasks (job, host, fingerprint, parent, depth, hops, priority, url)"
                             " VALUES (1, 8997, 8997, 0, 0, 0, 0, 'https://h8997/')");
    while (claim(&rig, job, 32) == 0)
        assert_true(++claims < 9);
    assert_true(claims > 1); /* otherwise the test shows nothing */
    rig_tear_down(&rig);
}

/* G9: a host with a damaged row is skipped. */
static void unreadable_hosts_are_not_claimed_and_their_tasks_are_listed(void **state)
{
    (void)state;
    static const char *const harm[] = {
        "UPDATE hosts SET host = E'a\nb' WHERE host = 'bad'",
        "UPDATE hosts SET host = '' WHERE host = 'bad'",
        "UPDATE hosts SET host = repeat('x', 2000) WHERE host = 'bad'",
        "DELETE FROM hosts WHERE host = 'bad'",
        "ALTER TABLE hosts ALTER rest_until DROP NOT NULL; UPDATE hosts SET rest_until = NULL WHERE host = 'bad'",
    };
    if (!postgres_start())
        test_skip_missing("PostgreSQL");
    for (size_t i = 0; i < sizeof harm / sizeof harm[0]; i++) {
        for (int is_leased = 0; is_leased < 2; is_leased++) {
            struct store_fixture rig;
            size_t count;
            rig_set_up(&rig, &rig_backends[1]);
            rig_open(&rig);
            int64_t job = rig_job(&rig, "");
            rig_post(&rig, rig_found(&rig, job, "bad", "https://bad/", NULL));
            rig_post(&rig, rig_found(&rig, job, "good", "https://good/", NULL));
            if (is_leased)
                assert_int_equal(claim(&rig, job, 0), 2);
            postgres_run(rig.schema, harm[i]);
            bool is_kept = is_leased && i == 4; /* its key is intact */
            if (!is_leased)
                assert_int_equal(claim(&rig, job, 0), 1);
            free(rig_read(&rig, (struct wr_store_query){.what = WR_STORE_RENEW, .job = job}, &count));
            assert_int_equal(count, is_kept ? 2 : 1);
            struct rig_row *rows = rig_read(
                &rig, (struct wr_store_query){.what = WR_STORE_HOSTS, .job = job, .only_stranded = true}, &count);
            assert_int_equal(count, 1);
            assert_int_equal(rows[0].row.what, WR_STORE_TASKS);
            assert_true(rig_is(rows[0].row.task.url, "https://bad/"));
            free(rows);
            rig_tear_down(&rig);
        }
    }
}

WEIR_TESTS(test(claims_do_not_read_leased_or_resting_hosts),
           test(host_among_thousands_of_finished_ones_is_found_in_few_claims),
           test(unreadable_hosts_are_not_claimed_and_their_tasks_are_listed))
