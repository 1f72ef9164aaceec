/* SPDX-License-Identifier: MIT */
/* test_ledger.c - tests the values of a whole job: rows of failures (S2-15, S2-16), budgets drawn
 * in chunks, and its end. */
#include "rig.h"

static bool end_many(struct wr_ledger *ledger, enum wr_ledger_end end, int count)
{
    bool fails = false;
    for (int i = 0; i < count; i++)
        fails |= wr_ledger_count_end(ledger, end);
    return fails;
}

static void twenty_failures_in_a_row_fail_the_job_once_and_a_success_ends_the_row(void **state)
{
    (void)state;
    struct wr_ledger ledger;
    wr_ledger_init(&ledger, 10, 10, 0);
    assert_false(end_many(&ledger, WR_LEDGER_FAILURE, 19));
    assert_false(wr_ledger_count_end(&ledger, WR_LEDGER_SUCCESS));
    assert_false(end_many(&ledger, WR_LEDGER_FAILURE, 19));
    assert_false(end_many(&ledger, WR_LEDGER_CLIENT_ERROR, 100));
    assert_true(wr_ledger_count_end(&ledger, WR_LEDGER_FAILURE));
    assert_false(end_many(&ledger, WR_LEDGER_FAILURE, 40));
    assert_true(ledger.is_over);
    bool is_last;
    /* requests in flight may still draw */
    assert_int_equal(wr_ledger_take_budget(&ledger, WR_BUDGET_PAGES, 1, &is_last), 1);
    assert_false(is_last);
}

static void tasks_that_expire_fail_a_job_of_one_host_only(void **state)
{
    (void)state;
    struct wr_ledger ledger;
    wr_ledger_init(&ledger, 10, 10, 3);
    assert_true(end_many(&ledger, WR_LEDGER_EXPIRED, 3));
    wr_ledger_init(&ledger, 10, 10, 3);
    ledger.has_many_hosts = true;
    assert_false(end_many(&ledger, WR_LEDGER_EXPIRED, 100));
    assert_true(end_many(&ledger, WR_LEDGER_FAILURE, 3));
}

static void kind_of_an_end_follows_from_outcome_and_status(void **state)
{
    (void)state;
    struct wr_task_outcome done = {.kind = WR_TASK_OUTCOME_DONE},
                           spent = {.kind = WR_TASK_OUTCOME_FAILED, .why = WR_RETRY_SPENT};
    struct wr_task_outcome permanent = {.kind = WR_TASK_OUTCOME_FAILED, .why = WR_RETRY_PERMANENT};
    assert_int_equal(wr_ledger_end_of(&done, 200), WR_LEDGER_SUCCESS);
    assert_int_equal(wr_ledger_end_of(&permanent, 404), WR_LEDGER_CLIENT_ERROR);
    assert_int_equal(wr_ledger_end_of(&permanent, 999), WR_LEDGER_FAILURE);
    assert_int_equal(wr_ledger_end_of(&spent, 429), WR_LEDGER_FAILURE);
    assert_int_equal(wr_ledger_end_of(&spent, 0), WR_LEDGER_FAILURE);
}

static void several_loops_draw_at_most_the_budget(void **state)
{
    (void)state;
    struct wr_ledger ledger;
    bool is_last = false;
    uint64_t sum = 0;
    wr_ledger_init(&ledger, 1000, WR_LEDGER_UNLIMITED, 0);
    while (!is_last)
        sum += wr_ledger_take_budget(&ledger, WR_BUDGET_PAGES, 256, &is_last);
    assert_int_equal(sum, 1000);
    assert_int_equal(wr_ledger_take_budget(&ledger, WR_BUDGET_PAGES, 256, &is_last), 0);
    assert_int_equal(wr_ledger_take_budget(&ledger, WR_BUDGET_BYTES, 1U << 30, &is_last), 1U << 30);
    assert_false(is_last);
}

/* T6: a loop that draws more than it uses takes it from the other loops. */
static void one_loop_draws_at_most_an_eighth_of_what_is_left(void **state)
{
    (void)state;
    struct wr_ledger ledger;
    bool is_last;
    wr_ledger_init(&ledger, 800, 8000, 0);
    assert_int_equal(wr_ledger_take_budget(&ledger, WR_BUDGET_PAGES, 1000, &is_last), 101);
    /* an eighth of 699, and 1 */
    assert_int_equal(wr_ledger_take_budget(&ledger, WR_BUDGET_PAGES, 1000, &is_last), 88);
    assert_int_equal(wr_ledger_take_budget(&ledger, WR_BUDGET_PAGES, 50, &is_last), 50);
    assert_int_equal(wr_ledger_take_budget(&ledger, WR_BUDGET_BYTES, 1U << 30, &is_last), 1001);
    assert_false(is_last);
    wr_ledger_init(&ledger, 1, 0, 0);
    /* the last page can be drawn */
    assert_int_equal(wr_ledger_take_budget(&ledger, WR_BUDGET_PAGES, 1000, &is_last), 1);
    assert_true(is_last);
}

static void concurrency_is_shared_among_loops(void **state)
{
    (void)state;
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 4; i++)
        sum += wr_ledger_share(10, i, 4);
    assert_int_equal(sum, 10);
    assert_int_equal(wr_ledger_share(0, 1, 4), 0);
}

WEIR_TESTS(test(twenty_failures_in_a_row_fail_the_job_once_and_a_success_ends_the_row),
           test(tasks_that_expire_fail_a_job_of_one_host_only), test(kind_of_an_end_follows_from_outcome_and_status),
           test(several_loops_draw_at_most_the_budget), test(one_loop_draws_at_most_an_eighth_of_what_is_left),
           test(concurrency_is_shared_among_loops))
