/* SPDX-License-Identifier: MIT */
/* test_bounds.c - the limits of tasks per job and per host hold for all processes together, on
 * PostgreSQL. */
#include "lib/worker.h"
#include "store/postgres.h"
#include "store/rig.h"

#define HOSTS 7
#define STORES 4
#define ROUNDS 12
#define AT_ONCE 16

struct answers {
    bool is_new[AT_ONCE], is_beyond[AT_ONCE];
};

/* Makes changes for the pages `first` and following, of all hosts in turn. The texts stay valid
 * until the next call of this thread. */
static void make_found(struct store_fixture *rig, int64_t job, int first, size_t count,
                       struct wr_store_task_limits bounds, struct answers *answers, struct wr_store_change *ret_changes)
{
    static _Thread_local char hosts[AT_ONCE][16], urls[AT_ONCE][48];

    for (size_t i = 0; i < count; i++) {
        int number = first + (int)i;
        snprintf(hosts[i], sizeof hosts[i], "h%d", number % HOSTS);
        snprintf(urls[i], sizeof urls[i], "https://h%d/%d", number % HOSTS, number);
        ret_changes[i] = rig_found(rig, job, hosts[i], urls[i], NULL);
        ret_changes[i].found.bounds = bounds;
        ret_changes[i].found.ret_is_new = &answers->is_new[i];
        ret_changes[i].found.ret_is_over_limit = &answers->is_beyond[i];
    }
}

static void find(struct store_fixture *rig, int64_t job, int first, size_t count, struct wr_store_task_limits bounds,
                 struct answers *answers)
{
    struct wr_store_change changes[AT_ONCE];

    make_found(rig, job, first, count, bounds, answers, changes);
    rig_post_all(rig, changes, count);
}

static size_t count_true(const bool *list, size_t count)
{
    size_t sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += list[i];
    return sum;
}

static void tasks_beyond_the_limit_of_a_job_are_dropped_and_reported(void **state)
{
    (void)state;
    struct store_fixture rig;
    struct answers answers;

    if (!rig_set_up_shared(&rig))
        test_skip_missing("PostgreSQL");
    rig_open(&rig);
    int64_t job = rig_job(&rig, ""), other = rig_job(&rig, "");
    /* tasks of another job do not count */
    find(&rig, other, 0, 16, (struct wr_store_task_limits){0}, &answers);
    find(&rig, job, 0, 6, (struct wr_store_task_limits){.tasks = 10}, &answers);
    assert_int_equal(count_true(answers.is_new, 6), 6);
    rig_post(&rig, rig_ended(&rig, job, "https://h0/0", false, "fetched"));
    /* finished tasks do count */
    rig_post(&rig, rig_ended(&rig, job, "https://h1/1", true, "failed"));
    find(&rig, job, 4, 10, (struct wr_store_task_limits){.tasks = 10}, &answers);
    for (size_t i = 0; i < 10; i++) { /* two are known and four fit, in the order of posting */
        assert_int_equal(answers.is_new[i], i >= 2 && i < 6);
        assert_int_equal(answers.is_beyond[i], i >= 6);
    }
    find(&rig, job, 9, 2, (struct wr_store_task_limits){.tasks = 10}, &answers);
    assert_false(answers.is_new[0] || answers.is_beyond[0]); /* already known */
    assert_true(!answers.is_new[1] && answers.is_beyond[1]);
    /* resumed with a larger limit */
    find(&rig, job, 10, 1, (struct wr_store_task_limits){.tasks = 11}, &answers);
    assert_true(answers.is_new[0] && !answers.is_beyond[0]);
    struct wr_store_job seen = rig_look_job(&rig, job);
    assert_int_equal(seen.queued + seen.done + seen.failed, 11);
    rig_check(&rig);
    rig_tear_down(&rig);
}

static void tasks_beyond_the_limit_of_a_host_are_dropped_and_reported(void **state)
{
    (void)state;
    struct store_fixture rig;
    struct answers answers;
    const struct wr_store_task_limits bounds = {.host_tasks = 2};

    if (!rig_set_up_shared(&rig))
        test_skip_missing("PostgreSQL");
    rig_open(&rig);
    int64_t job = rig_job(&rig, "");
    find(&rig, job, 0, HOSTS + 1, bounds, &answers);
    assert_int_equal(count_true(answers.is_new, HOSTS + 1), HOSTS + 1);
    find(&rig, job, HOSTS, 2 * HOSTS, bounds, &answers);
    for (size_t i = 0; i < 2 * HOSTS; i++) {
        assert_int_equal(answers.is_new[i], i > 0 && i < HOSTS);
        assert_int_equal(answers.is_beyond[i], i >= HOSTS);
    }
    /* With both limits, the one of the host is checked first: tasks beyond it do not use up the
     * limit of the job. */
    find(&rig, job, 3 * HOSTS, 3, (struct wr_store_task_limits){2 * HOSTS + 1, 3}, &answers);
    assert_true(answers.is_new[0] && answers.is_beyond[1] && answers.is_beyond[2]);
    find(&rig, job + 7, 0, 3, bounds, &answers); /* an unknown job has no limit */
    assert_int_equal(count_true(answers.is_new, 3) + count_true(answers.is_beyond, 3), 0);
    rig_check(&rig);
    rig_tear_down(&rig);
}

static void task_found_twice_in_one_post_counts_once(void **state)
{
    (void)state;
    struct store_fixture rig;
    struct answers answers = {{false}, {false}};
    struct wr_store_change changes[AT_ONCE];

    if (!rig_set_up_shared(&rig))
        test_skip_missing("PostgreSQL");
    rig_open(&rig);
    int64_t job = rig_job(&rig, "");
    for (int pass = 0; pass < 2; pass++) {
        const struct wr_store_task_limits bounds = {pass == 0 ? 2 : 0, pass == 0 ? 0 : 3};
        for (size_t i = 0; i < 4; i++) {
            changes[i] = rig_found(&rig, job, "h", i < 3 ? "https://h/same" : "https://h/other", NULL);
            if (pass == 1)
                changes[i] = rig_found(&rig, job, "h", i < 3 ? "https://h/third" : "https://h/fourth", NULL);
            changes[i].found.bounds = bounds;
            changes[i].found.ret_is_new = &answers.is_new[i];
            changes[i].found.ret_is_over_limit = &answers.is_beyond[i];
        }
        rig_post_all(&rig, changes, 4);
        assert_int_equal(count_true(answers.is_new, 3), 1);
        assert_int_equal(answers.is_new[3], pass == 0);
        assert_int_equal(count_true(answers.is_beyond, 4), pass);
    }
    rig_check(&rig);
    rig_tear_down(&rig);
}

/* Several processes find the same and other pages at the same time, some in large transactions, and
 * finish some. */
static void limits_hold_while_several_processes_find_tasks(void **state)
{
    (void)state;
    struct store_fixture rigs[STORES];
    static struct answers answers[STORES][ROUNDS];
    const struct wr_store_task_limits bounds[] = {{.tasks = 101}, {.host_tasks = 9}, {.tasks = 50, .host_tasks = 9}};
    const uint64_t expected[] = {101, HOSTS * 9, 50};

    if (!rig_set_up_shared(&rigs[0]))
        test_skip_missing("PostgreSQL");
    rig_open(&rigs[0]);
    for (int i = 1; i < STORES; i++)
        rig_join(&rigs[0], &rigs[i]);
    for (size_t k = 0; k < sizeof bounds / sizeof bounds[0]; k++) {
        int64_t job = rig_job(&rigs[0], "");
        uint64_t new = 0;
        for (int i = 0; i < STORES; i++)
            atomic_store(&rigs[i].done, 0);
        for (int round = 0; round < ROUNDS; round++)
            for (int i = 0; i < STORES; i++) {
                struct wr_store_change changes[AT_ONCE + 1];
                make_found(&rigs[i], job, (round * STORES + i) * AT_ONCE / 2, AT_ONCE, bounds[k], &answers[i][round],
                           changes);
                /* no effect if the task is unknown */
                changes[AT_ONCE] = rig_ended(&rigs[i], job, "https://h1/1", false, "fetched");
                assert_int_equal(wr_store_post(rigs[i].store, changes, AT_ONCE + 1, rig_count, &rigs[i]), 0);
            }
        for (int i = 0; i < STORES; i++) {
            test_await_number(&rigs[i].done, ROUNDS);
            assert_int_equal(atomic_load(&rigs[i].failed), 0);
            for (int round = 0; round < ROUNDS; round++)
                new += count_true(answers[i][round].is_new, AT_ONCE);
        }
        struct wr_store_job seen = rig_look_job(&rigs[0], job);
        assert_int_equal(seen.queued + seen.done + seen.failed, expected[k]);
        assert_int_equal(new, expected[k]);
    }
    postgres_run(rigs[0].schema, "DO $$ BEGIN ASSERT (SELECT max(accepted) <= 9 FROM lanes WHERE job > 1); END $$");
    rig_check(&rigs[0]);
    for (int i = 1; i < STORES; i++)
        rig_close(&rigs[i]);
    rig_tear_down(&rigs[0]);
}

WEIR_TESTS(test(tasks_beyond_the_limit_of_a_job_are_dropped_and_reported),
           test(tasks_beyond_the_limit_of_a_host_are_dropped_and_reported),
           test(task_found_twice_in_one_post_counts_once), test(limits_hold_while_several_processes_find_tasks))
