/* SPDX-License-Identifier: MIT */
/* test_rest.c - hosts that rest for some time, and hosts that another process wants. */
#include "store/postgres.h"
#include "store/rig.h"

/* Claims the only host that is free. */
static struct wr_store_host claim(struct store_fixture *rig, int64_t job)
{
    size_t count;
    struct rig_row *rows = rig_read(rig, (struct wr_store_query){.what = WR_STORE_CLAIM, .job = job}, &count);
    struct wr_store_host host = {0};

    assert_int_equal(count, 1);
    host.has_rested = rows[0].row.host.has_rested;
    host.held_ns = rows[0].row.host.held_ns;
    free(rows);
    return host;
}

static struct wr_store_host beat(struct store_fixture *rig)
{
    size_t count;
    struct rig_row *rows = rig_read(rig, (struct wr_store_query){.what = WR_STORE_RENEW}, &count);
    struct wr_store_host host = {0};

    assert_int_equal(count, 1);
    host.lease = rows[0].row.host.lease;
    host.is_wanted = rows[0].row.host.is_wanted;
    free(rows);
    return host;
}

static void release(struct store_fixture *rig, int64_t rest_ns, int64_t held_ns)
{
    (void)rig_read_count(rig, (struct wr_store_query){.what = WR_STORE_RELEASE,
                                                      .key = wr_span_of("h00"),
                                                      .after = {.id = (int64_t)beat(rig).lease},
                                                      .rest_ns = rest_ns,
                                                      .held_ns = held_ns});
}

/* V2: the next owner learns that it may send at once if no request was sent meanwhile. */
static void resting_host_is_claimed_when_its_rest_is_over(void **state)
{
    (void)state;
    struct rig_pair pair;

    if (!rig_pair_set_up(&pair, 1))
        test_skip_missing("PostgreSQL");
    assert_false(claim(&pair.first, pair.job).has_rested);
    release(&pair.first, WEIR_HOUR, WEIR_MINUTE);
    assert_int_equal(rig_read_count(&pair.second, (struct wr_store_query){.what = WR_STORE_CLAIM, .job = pair.job}), 0);
    postgres_run(pair.first.schema, "UPDATE hosts SET rest_until = rest_until - interval '1 h'");
    struct wr_store_host host = claim(&pair.second, pair.job);
    assert_true(host.has_rested);
    assert_in_range(host.held_ns, WEIR_MINUTE, 2 * WEIR_MINUTE);
    postgres_run(pair.first.schema, "UPDATE hosts SET lease_until = clock_timestamp() - interval '1 s'");
    /* the second process died: the time of its last request is unknown */
    host = claim(&pair.first, pair.job);
    assert_true(!host.has_rested && host.held_ns == 0);
    rig_pair_tear_down(&pair);
}

static void set_paused(struct store_fixture *rig, bool is_paused)
{
    rig_post(rig, (struct wr_store_change){
                      .kind = WR_STORE_HOST_SETTING,
                      .setting = {.key = wr_span_of("h00"), .has_paused = true, .is_paused = is_paused}});
}

static void paused_host_rests_until_a_setting_changes(void **state)
{
    (void)state;
    struct rig_pair pair;

    if (!rig_pair_set_up(&pair, 1))
        test_skip_missing("PostgreSQL");
    struct store_fixture *rig = &pair.first;
    struct wr_store_query all = {.what = WR_STORE_CLAIM, .job = pair.job};
    assert_int_equal(rig_read_count(rig, all), 1);
    set_paused(&pair.second, true);
    release(rig, WEIR_FOREVER, 0);
    assert_int_equal(rig_read_count(rig, all), 0);
    set_paused(&pair.second, false);
    assert_int_equal(rig_read_count(rig, all), 1);
    release(rig, WEIR_FOREVER, 0); /* the host was resumed meanwhile */
    assert_int_equal(rig_read_count(rig, all), 1);
    rig_pair_tear_down(&pair);
}

static size_t claim_one(struct store_fixture *rig, int64_t job, const char *host)
{
    return rig_read_count(rig,
                          (struct wr_store_query){.what = WR_STORE_CLAIM_ONE, .job = job, .key = wr_span_of(host)});
}

/* V1: a wanted host goes to the process that asked for it. */
static void host_wanted_by_another_process_is_released_to_it(void **state)
{
    (void)state;
    struct rig_pair pair;
    struct store_fixture third, *owner = &pair.first, *asker = &pair.second, *other = &third;

    if (!rig_pair_set_up(&pair, 1))
        test_skip_missing("PostgreSQL");
    rig_join(owner, other);
    int64_t job = pair.job;
    struct wr_store_query all = {.what = WR_STORE_CLAIM, .job = job};
    assert_int_equal(claim_one(owner, job, "h00"), 1);
    assert_int_equal(claim_one(owner, job, "h00"), 0); /* the owner has it already */
    assert_false(beat(owner).is_wanted);
    assert_int_equal(claim_one(asker, job, "h00"), 0);
    assert_true(beat(owner).is_wanted);
    assert_int_equal(claim_one(other, job, "h00"), 0); /* only one process waits at a time */
    release(owner, 0, 0);
    assert_int_equal(rig_read_count(owner, all), 0);
    assert_int_equal(rig_read_count(other, all), 0);
    assert_int_equal(claim_one(other, job, "h00"), 0);
    assert_int_equal(claim_one(asker, job, "h00"), 1);
    assert_false(beat(asker).is_wanted);
    release(asker, 0, 0);
    assert_int_equal(rig_read_count(other, all), 1);
    assert_int_equal(claim_one(asker, job, "nobody.knows"), 1); /* a host without tasks */
    assert_int_equal(claim_one(owner, job, "h00"), 0);
    postgres_run(owner->schema, "UPDATE hosts SET wanted_until = clock_timestamp() - interval '1 s'");
    assert_false(beat(other).is_wanted); /* the process that wanted it is gone */
    rig_close(other);
    rig_pair_tear_down(&pair);
}

WEIR_TESTS(test(resting_host_is_claimed_when_its_rest_is_over), test(paused_host_rests_until_a_setting_changes),
           test(host_wanted_by_another_process_is_released_to_it))
