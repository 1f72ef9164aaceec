/* SPDX-License-Identifier: MIT */
/* test_lease.c - leases of hosts by one process at a time: on every backend, and with several
 * stores on one PostgreSQL. */
#include "crawl/store/backend.h"
#include "lib/worker.h"
#include "limiter/clock/clock.h"
#include "store/postgres.h"
#include "store/rig.h"

#include <libpq-fe.h>
#include <sys/socket.h>

#define HOSTS 40

/* ---- every backend --------------------------------------------------------------------------- */

static struct rig_row *claim(struct store_fixture *rig, int64_t job, size_t limit, size_t *ret_count)
{
    return rig_read(rig, (struct wr_store_query){.what = WR_STORE_CLAIM, .job = job, .limit = limit}, ret_count);
}

static void claimed_host_comes_with_its_stored_values(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        size_t count;
        rig_open(rig);
        int64_t job = rig_job(rig, ""), other = rig_job(rig, "");
        rig_find_hosts(rig, job, 2);
        rig_post(rig, rig_found(rig, other, "other", "https://other/", NULL));
        rig_post(rig, (struct wr_store_change){.kind = WR_STORE_HOST,
                                               .host = {.key = wr_span_of("h00"),
                                                        .memory = {.delay_ns = 3 * WEIR_SECOND,
                                                                   .retry_wall_at = 1900000000 * WEIR_SECOND}}});
        struct rig_row *rows = claim(rig, job, 0, &count);
        assert_int_equal(count, 2); /* without the host of the other job */
        assert_true(rig_is(rows[0].row.host.key, "h00"));
        assert_int_equal(rows[0].row.host.queued, 1);
        assert_int_equal(rows[0].row.host.memory.delay_ns, 3 * WEIR_SECOND);
        assert_true(rows[0].row.host.memory.retry_wall_at == 1900000000 * WEIR_SECOND);
        assert_true(rows[0].row.host.lease > 0);
        assert_true(rows[0].row.host.leased_until > weir_clock_now(weir_clock_monotonic()));
        struct wr_store_change ended = rig_ended(rig, job, "https://h00/", false, "fetched");
        bool is_refused = true;
        ended.ended.lease = rows[0].row.host.lease;
        ended.ended.ret_is_refused = &is_refused;
        rig_post(rig, ended);
        assert_false(is_refused);
        assert_int_equal(rig_look_job(rig, job).done, 1);
        free(rows);
    }
}

/* ---- several processes ----------------------------------------------------------------------- */

static void run_out(struct store_fixture *rig)
{
    postgres_run(rig->schema, "UPDATE hosts SET lease_until = clock_timestamp() - interval '1 s'"
                              " WHERE lease_until > '-infinity'");
}

struct claims {
    atomic_int *owners; /* number of owners of each host */
    atomic_int done;
};

static void take_claim(void *context, const struct wr_store_row *row)
{
    struct claims *claims = context;

    int host = (row->host.key.data[1] - '0') * 10 + row->host.key.data[2] - '0';
    atomic_fetch_add(&claims->owners[host], 1);
}

static void end_claim(void *context, int error, const char *why)
{
    if (error != 0)
        print_error("%s\n", why);
    atomic_fetch_add(&((struct claims *)context)->done, 1);
}

/* K6: each host has one owner. */
static void hosts_claimed_by_several_processes_have_one_owner_each(void **state)
{
    (void)state;
    enum {
        STORES = 4
    };
    struct store_fixture rigs[STORES];
    static atomic_int owners[100];
    struct claims claims[STORES];
    int total = 0;

    if (!rig_set_up_shared(&rigs[0]))
        test_skip_missing("PostgreSQL");
    rig_open(&rigs[0]);
    int64_t job = rig_job(&rigs[0], "");
    rig_find_hosts(&rigs[0], job, HOSTS);
    for (int i = 1; i < STORES; i++)
        rig_join(&rigs[0], &rigs[i]);
    for (int i = 0; i < STORES; i++)
        claims[i] = (struct claims){.owners = owners};
    for (int round = 0; round < 8; round++) {
        for (int i = 0; i < STORES; i++) {
            assert_int_equal(wr_store_read(rigs[i].store, &(struct wr_store_query){.what = WR_STORE_CLAIM,
                                                                                   .job = job,
                                                                                   .limit = 3,
                                                                                   .row = take_claim,
                                                                                   .done = end_claim,
                                                                                   .context = &claims[i]}),
                             0);
        }
    }
    for (int i = 0; i < STORES; i++)
        test_await_number(&claims[i].done, 8);
    for (int i = 0; i < HOSTS; i++) {
        assert_true(atomic_load(&owners[i]) <= 1);
        total += atomic_load(&owners[i]);
    }
    total += (int)rig_read_count(&rigs[0], (struct wr_store_query){.what = WR_STORE_CLAIM, .job = job});
    /* a claim skips hosts that another claim is about to take; they remain claimable */
    assert_int_equal(total, HOSTS);
    for (int i = 1; i < STORES; i++)
        rig_close(&rigs[i]);
    rig_tear_down(&rigs[0]);
}

/* G6: the result of an old lease is refused. */
static void task_end_after_the_lease_was_lost_is_refused(void **state)
{
    (void)state;
    struct rig_pair pair;
    size_t count;
    bool is_refused[2] = {false, true};

    if (!rig_pair_set_up(&pair, 1))
        test_skip_missing("PostgreSQL");
    struct rig_row *old = claim(&pair.first, pair.job, 0, &count);
    assert_int_equal(count, 1);
    assert_int_equal(rig_read_count(&pair.second, (struct wr_store_query){.what = WR_STORE_CLAIM, .job = pair.job}), 0);
    run_out(&pair.first); /* the first process was suspended for long */
    struct rig_row *new = claim(&pair.second, pair.job, 0, &count);
    assert_int_equal(count, 1);
    assert_true(new[0].row.host.lease > old[0].row.host.lease);
    struct wr_store_change retry = rig_retry(&pair.first, pair.job, "https://h00/", 1, 503);
    retry.retry.lease = old[0].row.host.lease;
    rig_post(&pair.first, retry);
    struct wr_store_change late = rig_ended(&pair.first, pair.job, "https://h00/", true, "late");
    late.ended.lease = old[0].row.host.lease;
    late.ended.ret_is_refused = &is_refused[0];
    rig_post(&pair.first, late);
    assert_true(is_refused[0]);
    assert_int_equal(rig_look_job(&pair.second, pair.job).queued, 1);
    assert_int_equal(rig_look_job(&pair.second, pair.job).retries, 0);
    struct wr_store_change good = rig_ended(&pair.second, pair.job, "https://h00/", false, "fetched");
    good.ended.lease = new[0].row.host.lease;
    good.ended.ret_is_refused = &is_refused[1];
    rig_post(&pair.second, good);
    assert_false(is_refused[1]);
    /* the other process counted it */
    assert_int_equal(rig_look_job(&pair.first, pair.job).done, 1);
    assert_int_equal(rig_look_job(&pair.first, pair.job).failed, 0);
    rig_check(&pair.first);
    free(old);
    free(new);
    rig_pair_tear_down(&pair);
}

/* ---- a commit whose reply is lost ------------------------------------------------------------ */

/* 1: the reply to the next COMMIT will be lost; 2: the COMMIT was sent; 3: the connection breaks
 * now */
static atomic_int loses;
static _Atomic(PGconn *) losing;

int __real_PQsendQueryParams(PGconn *conn, const char *sql, int count, const Oid *types, const char *const *values,
                             const int *lengths, const int *formats, int format);
int __wrap_PQsendQueryParams(PGconn *conn, const char *sql, int count, const Oid *types, const char *const *values,
                             const int *lengths, const int *formats, int format);
int __real_PQconsumeInput(PGconn *conn);
int __wrap_PQconsumeInput(PGconn *conn);

int __wrap_PQsendQueryParams(PGconn *conn, const char *sql, int count, const Oid *types, const char *const *values,
                             const int *lengths, const int *formats, int format)
{
    if (strcmp(sql, "COMMIT") == 0 && atomic_load(&loses) == 1) {
        atomic_store(&losing, conn);
        atomic_store(&loses, 2);
    }
    return __real_PQsendQueryParams(conn, sql, count, types, values, lengths, formats, format);
}

int __wrap_PQconsumeInput(PGconn *conn)
{
    if (conn == atomic_load(&losing)) {
        test_await_number(&loses, 3);
        atomic_store(&losing, NULL);
        (void)shutdown(PQsocket(conn), SHUT_RDWR);
        return 0;
    }
    return __real_PQconsumeInput(conn);
}

static void note_stored(void *context, int error, const char *why)
{
    (void)why;
    atomic_store((atomic_int *)context, error == 0 ? 1 : -1);
}

/* G7: the commit took effect, and another process leases the host before the first one knows. No
 * process fetches the page again, so its line must stay. */
static void task_end_with_an_unanswered_commit_is_not_refused(void **state)
{
    (void)state;
    struct rig_pair pair;
    atomic_int stored = 0, also = 0;
    size_t count;
    bool is_refused = false;

    if (!rig_pair_set_up(&pair, 1))
        test_skip_missing("PostgreSQL");
    struct rig_row *old = claim(&pair.first, pair.job, 0, &count);
    assert_int_equal(count, 1);
    struct wr_store_change changes[] = {
        rig_ended(&pair.first, pair.job, "https://h00/", false, "fetched"),
        {.kind = WR_STORE_OUTPUT, .output = {.job = pair.job, .path = wr_span_of("/out"), .bytes = 100}}};
    changes[0].ended.lease = old[0].row.host.lease;
    changes[0].ended.ret_is_refused = &is_refused;
    atomic_store(&loses, 1);
    assert_int_equal(wr_store_post(pair.first.store, changes, 2, note_stored, &stored), 0);
    test_await_number(&loses, 2);
    postgres_await(pair.first.schema, "SELECT FROM tasks WHERE state != 0");
    run_out(&pair.first);
    const struct wr_store_change later = rig_found(&pair.first, pair.job, "h00", "https://h00/later", NULL);
    /* posted while the commit of the first post is in doubt */
    assert_int_equal(wr_store_post(pair.first.store, &later, 1, note_stored, &also), 0);
    rig_post(&pair.second, rig_found(&pair.second, pair.job, "h00", "https://h00/more", NULL));
    struct rig_row *new = claim(&pair.second, pair.job, 0, &count);
    assert_int_equal(count, 1);
    assert_true(new[0].row.host.lease > old[0].row.host.lease);
    atomic_store(&loses, 3);
    test_await_number(&stored, 1);
    test_await_number(&also, 1);
    assert_false(is_refused);
    assert_int_equal(rig_look_job(&pair.second, pair.job).done, 1);
    rig_check(&pair.first);
    free(old);
    free(new);
    rig_pair_tear_down(&pair);
}

/* G3: after a fail-over the server has lost the last claims and issues their token numbers
 * again. */
static void token_issued_again_after_a_fail_over_is_not_the_same_lease(void **state)
{
    (void)state;
    struct rig_pair pair;
    size_t count;
    bool is_refused = false;

    if (!rig_pair_set_up(&pair, 1))
        test_skip_missing("PostgreSQL");
    struct rig_row *old = claim(&pair.first, pair.job, 0, &count);
    assert_int_equal(count, 1);
    postgres_run(pair.first.schema, "UPDATE hosts SET lease_owner = 0, lease_token = 0, lease_until = '-infinity';"
                                    "SELECT setval('tokens', 1, false)");
    free(claim(&pair.second, pair.job, 0, &count));
    assert_int_equal(count, 1);
    struct wr_store_change late = rig_ended(&pair.first, pair.job, "https://h00/", false, "late");
    late.ended.lease = old[0].row.host.lease;
    late.ended.ret_is_refused = &is_refused;
    rig_post(&pair.first, late);
    assert_true(is_refused);
    assert_int_equal(rig_look_job(&pair.second, pair.job).queued, 1);
    free(old);
    rig_pair_tear_down(&pair);
}

static void heartbeat_renews_leases_and_omits_lost_ones(void **state)
{
    (void)state;
    struct rig_pair pair;
    size_t count;

    if (!rig_pair_set_up(&pair, 3))
        test_skip_missing("PostgreSQL");
    free(claim(&pair.first, pair.job, 0, &count));
    assert_int_equal(count, 3);
    postgres_run(pair.first.schema,
                 "UPDATE hosts SET lease_until = clock_timestamp() - interval '1 s' WHERE host = 'h01'");
    rig_post(&pair.second,
             (struct wr_store_change){.kind = WR_STORE_HOST_SETTING,
                                      .setting = {.key = wr_span_of("h02"), .has_paused = true, .is_paused = true}});
    struct rig_row *rows = rig_read(&pair.first, (struct wr_store_query){.what = WR_STORE_RENEW}, &count);
    assert_int_equal(count, 2);
    for (size_t i = 0; i < count; i++) {
        assert_false(rig_is(rows[i].row.host.key, "h01"));
        /* set by the other process */
        assert_int_equal(rows[i].row.host.is_paused, rig_is(rows[i].row.host.key, "h02"));
        assert_true(rows[i].row.host.leased_until > weir_clock_now(weir_clock_monotonic()));
    }
    free(rows);
    free(claim(&pair.second, pair.job, 0, &count));
    assert_int_equal(count, 1);
    rig_pair_tear_down(&pair);
}

/* H5: whatever the clock of a machine says, the owner trusts a lease no longer than the database
 * grants it. */
static void lease_ends_for_its_owner_before_it_ends_for_others(void **state)
{
    (void)state;
    struct store_fixture rig;
    size_t count;

    if (!rig_set_up_shared(&rig))
        test_skip_missing("PostgreSQL");
    rig_open(&rig);
    int64_t job = rig_job(&rig, "");
    rig_find_hosts(&rig, job, 1);
    int64_t before = weir_clock_now(weir_clock_monotonic());
    struct rig_row *rows = claim(&rig, job, 0, &count);
    int64_t after = weir_clock_now(weir_clock_monotonic());
    assert_int_equal(count, 1);
    assert_in_range(rows[0].row.host.leased_until, before + 20 * WEIR_SECOND, after + 25 * WEIR_SECOND);
    postgres_run(rig.schema, "DO $$ BEGIN ASSERT (SELECT lease_until > clock_timestamp() + interval '0 s'"
                             " AND lease_until <= clock_timestamp() + interval '30 s' FROM hosts); END $$");
    free(rows);
    rig_tear_down(&rig);
}

static void release(struct store_fixture *rig, const struct rig_row *claimed)
{
    const struct wr_store_host *host = &claimed->row.host;

    assert_int_equal(rig_read_count(rig, (struct wr_store_query){.what = WR_STORE_RELEASE,
                                                                 .key = host->key,
                                                                 .after = {.id = (int64_t)host->lease}}),
                     0);
}

static void released_hosts_can_be_claimed_at_once(void **state)
{
    (void)state;
    struct rig_pair pair;
    size_t count;

    if (!rig_pair_set_up(&pair, 3))
        test_skip_missing("PostgreSQL");
    struct wr_store_query all = {.what = WR_STORE_CLAIM, .job = pair.job};
    struct rig_row *rows = claim(&pair.first, pair.job, 0, &count);
    assert_int_equal(count, 3);
    release(&pair.second, &rows[1]); /* the second process is not the owner */
    assert_int_equal(rig_read_count(&pair.second, all), 0);
    release(&pair.first, &rows[1]);
    assert_int_equal(rig_read_count(&pair.second, all), 1);
    rig_close(&pair.first); /* the process ends, for example after SIGTERM */
    assert_int_equal(rig_read_count(&pair.second, all), 2);
    free(rows);
    rig_pair_tear_down(&pair);
}

/* The release is under way while the lease expires and the host is claimed again. */
static void release_of_an_earlier_lease_leaves_the_present_one(void **state)
{
    (void)state;
    struct rig_pair pair;
    size_t count;

    if (!rig_pair_set_up(&pair, 1))
        test_skip_missing("PostgreSQL");
    struct rig_row *old = claim(&pair.first, pair.job, 0, &count);
    run_out(&pair.first);
    struct rig_row *new = claim(&pair.first, pair.job, 0, &count);
    assert_int_equal(count, 1);
    release(&pair.first, old);
    assert_int_equal(rig_read_count(&pair.second, (struct wr_store_query){.what = WR_STORE_CLAIM, .job = pair.job}), 0);
    release(&pair.first, new);
    assert_int_equal(rig_read_count(&pair.second, (struct wr_store_query){.what = WR_STORE_CLAIM, .job = pair.job}), 1);
    free(old);
    free(new);
    rig_pair_tear_down(&pair);
}

/* G6: neither learned values nor a block are stored for a former owner. */
static void host_values_from_a_former_owner_are_refused(void **state)
{
    (void)state;
    struct rig_pair pair;
    size_t count;

    if (!rig_pair_set_up(&pair, 1))
        test_skip_missing("PostgreSQL");
    struct rig_row *old = claim(&pair.first, pair.job, 0, &count);
    run_out(&pair.first);
    struct rig_row *new = claim(&pair.second, pair.job, 0, &count);
    assert_int_equal(count, 1);
    struct wr_store_change said = {.kind = WR_STORE_HOST,
                                   .host = {.key = wr_span_of("h00"),
                                            .memory = {.delay_ns = 2 * WEIR_SECOND, .saved_wall_at = WEIR_SECOND},
                                            .lease = new[0].row.host.lease}};
    rig_post(&pair.second, said);
    said.host.memory.delay_ns = WEIR_SECOND;
    said.host.lease = old[0].row.host.lease;
    rig_post(&pair.first, said);
    rig_post(&pair.first, (struct wr_store_change){.kind = WR_STORE_HOST_BLOCK,
                                                   .block = {wr_span_of("h00"), 1900000000 * WEIR_SECOND,
                                                             wr_span_of("cloudflare"), old[0].row.host.lease}});
    struct rig_row *host =
        rig_read(&pair.second, (struct wr_store_query){.what = WR_STORE_ONE_HOST, .key = wr_span_of("h00")}, &count);
    assert_int_equal(count, 1);
    assert_int_equal(host[0].row.host.memory.delay_ns, 2 * WEIR_SECOND);
    assert_int_equal(host[0].row.host.blocked_until_wall_at, 0);
    free(host);
    free(old);
    free(new);
    rig_pair_tear_down(&pair);
}

static int64_t read_fast(const weir_clock *clock)
{
    (void)clock;
    return weir_wall_now() + 5 * WEIR_MINUTE;
}
static const weir_clock fast_wall = {read_fast, NULL};

/* H5: a time named by a server is the same for a machine whose clock is five minutes ahead. */
static void retry_after_time_holds_whatever_the_clock_of_the_next_owner(void **state)
{
    (void)state;
    struct store_fixture first, second;
    size_t count;

    if (!rig_set_up_shared(&first))
        test_skip_missing("PostgreSQL");
    rig_open(&first);
    second = first;
    second.options.context = &second;
    second.options.wall = &fast_wall;
    rig_open(&second);
    int64_t job = rig_job(&first, ""), until = weir_wall_now() + WEIR_HOUR;
    rig_find_hosts(&first, job, 1);
    rig_post(&first, (struct wr_store_change){.kind = WR_STORE_HOST,
                                              .host = {.key = wr_span_of("h00"),
                                                       .memory = {.retry_wall_at = until, .saved_wall_at = until}}});
    struct rig_row *rows = claim(&second, job, 0, &count);
    assert_int_equal(count, 1);
    int64_t seen = rows[0].row.host.memory.retry_wall_at;
    assert_in_range(seen, until + 5 * WEIR_MINUTE - WEIR_SECOND, until + 5 * WEIR_MINUTE + WEIR_SECOND);
    free(rows);
    rig_close(&second);
    rig_tear_down(&first);
}

/* Values noted for a host are written before its release. */
static void released_host_comes_with_its_last_values(void **state)
{
    (void)state;
    struct store_fixture first, second;
    size_t count;

    if (!rig_set_up_shared(&first))
        test_skip_missing("PostgreSQL");
    first.options.hosts_ns = WEIR_HOUR;
    rig_open(&first);
    rig_join(&first, &second);
    int64_t job = rig_job(&first, "");
    rig_find_hosts(&first, job, 1);
    struct rig_row *claimed = claim(&first, job, 0, &count);
    const struct wr_store_host note = {.key = wr_span_of("h00"),
                                       .memory = {.delay_ns = 7 * WEIR_SECOND, .saved_wall_at = WEIR_SECOND}};
    assert_int_equal(wr_store_note_host(first.store, &note), 0);
    release(&first, claimed);
    free(claimed);
    struct rig_row *rows = claim(&second, job, 0, &count);
    assert_int_equal(count, 1);
    assert_int_equal(rows[0].row.host.memory.delay_ns, 7 * WEIR_SECOND);
    free(rows);
    rig_close(&second);
    rig_tear_down(&first);
}

/* A heartbeat returns the number of hosts per process if all had the same number. */
static void heartbeat_reports_the_fair_number_of_hosts(void **state)
{
    (void)state;
    struct rig_pair pair;
    size_t count;

    if (!rig_pair_set_up(&pair, 5))
        test_skip_missing("PostgreSQL");
    free(claim(&pair.first, pair.job, 0, &count));
    assert_int_equal(count, 5);
    const struct wr_store_query beat = {.what = WR_STORE_RENEW, .job = pair.job};
    assert_int_equal(rig_read_count(&pair.second, beat), 0); /* registers the second process */
    struct rig_row *rows = rig_read(&pair.first, beat, &count);
    assert_int_equal(count, 5);
    assert_int_equal(rows[0].row.host.share, 3);
    free(rows);
    rig_close(&pair.second);
    rows = rig_read(&pair.first, beat, &count);
    assert_int_equal(rows[0].row.host.share, 5);
    free(rows);
    rig_pair_tear_down(&pair);
}

/* ---- listing processes and leases ------------------------------------------------------------ */

static void host_record_names_the_owner_of_its_lease(void **state)
{
    (void)state;
    struct rig_pair pair;
    size_t count;

    if (!rig_pair_set_up(&pair, 3))
        test_skip_missing("PostgreSQL");
    const struct wr_store_query beat = {.what = WR_STORE_RENEW, .job = pair.job};
    const struct wr_store_query nodes = {.what = WR_STORE_NODES, .job = pair.job};
    const struct wr_store_query one = {.what = WR_STORE_ONE_HOST, .job = pair.job, .key = wr_span_of("h00")};
    assert_int_equal(rig_read_count(&pair.first, nodes), 0); /* no process has sent a heartbeat */
    assert_int_equal(rig_read_count(&pair.first, beat), 0);
    free(claim(&pair.first, pair.job, 2, &count));
    assert_int_equal(count, 2);
    /* a process that only reads is not listed */
    struct rig_row *rows = rig_read(&pair.second, nodes, &count);
    char name[sizeof rows[0].text];
    assert_int_equal(count, 1);
    assert_int_equal(rows[0].row.node.job, pair.job);
    assert_int_equal(rows[0].row.node.hosts, 2);
    snprintf(name, sizeof name, "%.*s", (int)rows[0].row.node.name.bytes, rows[0].row.node.name.data);
    free(rows);
    rows = rig_read(&pair.second, one, &count);
    assert_int_equal(count, 1);
    assert_true(rig_is(rows[0].row.host.leased_by, name));
    assert_true(rows[0].row.host.lease_left_ns > 0);
    assert_int_equal(rows[0].row.host.queued, 1);
    free(rows);
    rows = rig_read(&pair.second, (struct wr_store_query){.what = WR_STORE_ALL_HOSTS}, &count);
    assert_int_equal(count, 3);
    assert_true(rig_is(rows[1].row.host.leased_by, name));
    assert_int_equal(rows[2].row.host.leased_by.bytes, 0);
    free(rows);
    rig_close(&pair.first);
    rows = rig_read(&pair.second, one, &count);
    assert_int_equal(rows[0].row.host.leased_by.bytes, 0);
    assert_int_equal(rig_read_count(&pair.second, nodes), 0);
    free(rows);
    rig_close(&pair.second);
    rig_open(&pair.first);
    rig_pair_tear_down(&pair);
}

/* Machines may have files of the same name: the stored length belongs to a file of one machine. */
static void output_record_belongs_to_one_machine(void **state)
{
    (void)state;
    struct store_fixture rig;
    size_t count;

    if (!rig_set_up_shared(&rig))
        test_skip_missing("PostgreSQL");
    rig_open(&rig);
    int64_t job = rig_job(&rig, "");
    rig_post(&rig, (struct wr_store_change){.kind = WR_STORE_OUTPUT, .output = {job, wr_span_of("/out"), 100}});
    postgres_run(rig.schema, "INSERT INTO outputs SELECT job, 'elsewhere', path, 7 FROM outputs");
    struct rig_row *rows = rig_read(&rig, (struct wr_store_query){.what = WR_STORE_OUTPUTS, .job = job}, &count);
    assert_int_equal(count, 1);
    assert_int_equal(rows[0].row.output.bytes, 100);
    free(rows);
    rig_tear_down(&rig);
}

WEIR_TESTS(test(claimed_host_comes_with_its_stored_values),
           test(hosts_claimed_by_several_processes_have_one_owner_each),
           test(task_end_after_the_lease_was_lost_is_refused), test(task_end_with_an_unanswered_commit_is_not_refused),
           test(token_issued_again_after_a_fail_over_is_not_the_same_lease),
           test(heartbeat_renews_leases_and_omits_lost_ones), test(lease_ends_for_its_owner_before_it_ends_for_others),
           test(released_hosts_can_be_claimed_at_once), test(release_of_an_earlier_lease_leaves_the_present_one),
           test(host_values_from_a_former_owner_are_refused),
           test(retry_after_time_holds_whatever_the_clock_of_the_next_owner),
           test(released_host_comes_with_its_last_values), test(heartbeat_reports_the_fair_number_of_hosts),
           test(host_record_names_the_owner_of_its_lease), test(output_record_belongs_to_one_machine))
