/* SPDX-License-Identifier: MIT */
/* nodes.c - nodes on the store of a test, and asks that are waited for. */
#include "share/nodes.h"

#include "lib/test.h"

#include <semaphore.h>
#include <unistd.h>

struct wr_agency *node_open(uint32_t nodes, int64_t timeout_ns)
{
    struct wr_agency_options options = {.wire = {.path = store.path, .timeout_ns = timeout_ns}, .nodes = nodes};
    struct wr_agency *agency = NULL;
    assert_int_equal(wr_agency_new(&options, &agency), 0);
    assert_true(wr_agency_is(agency, &options));
    assert_int_equal(wr_agency_start(agency), 0);
    return agency;
}

void wait_until(struct wr_agency *agency, bool down)
{
    struct wr_agency_view view;
    do {
        usleep(1000);
        wr_agency_view_get(agency, &view);
    } while (view.wire.down != down || (!down && !view.seated));
}

struct wr_budget *budget_open(struct wr_agency *agency, weir_limit limit, uint32_t overshoot, enum wr_fallback fallback)
{
    struct wr_budget_options options = {.name = "rule", .overshoot = overshoot, .fallback = fallback, .max_keys = 1000};
    struct wr_budget *budget = NULL;
    assert_int_equal(weir_stack_init(&options.stack, &limit, 1), 0);
    assert_int_equal(wr_budget_new(agency, &options, &budget), 0);
    return budget;
}

weir_limit hourly(uint32_t permits)
{
    weir_limit limit;
    assert_int_equal(weir_limit_fixed_window(&limit, permits, WEIR_HOUR), 0);
    return limit;
}

void wake_test(void *context)
{
    (void)sem_post(context);
}

struct wr_share_told ask(struct wr_budget *budget, const char *key, uint32_t permits)
{
    struct wr_share_told told;
    struct wr_errand *errand = NULL;
    sem_t woken;

    (void)sem_init(&woken, 0, 0);
    assert_int_equal(wr_budget_ask(budget, key, strlen(key), permits, wake_test, &woken, &errand, &told), 0);
    if (errand != NULL) {
        while (sem_wait(&woken) != 0)
            ;
        assert_true(wr_errand_poll(errand, &told));
        wr_errand_free(errand);
    }
    (void)sem_destroy(&woken);
    return told;
}

void give_back(struct wr_budget *budget, const struct wr_share_told *told, uint32_t permits, uint32_t used)
{
    const struct wr_grant grant = {permits, told->source, told->charged_at};
    wr_budget_settle(budget, "k", 1, &grant, used);
}

uint32_t ask_often(struct wr_budget *budget, int times)
{
    uint32_t granted = 0;
    for (int i = 0; i < times; i++)
        granted += ask(budget, "k", 1).decision.verdict == WEIR_GO;
    return granted;
}

uint64_t sent(struct wr_agency *agency)
{
    struct wr_agency_view view;
    usleep(500000); /* it is looked at with each beat */
    wr_agency_view_get(agency, &view);
    return view.wire.sent;
}

void node_join(struct node *node, uint32_t nodes, weir_limit limit, uint32_t overshoot, enum wr_fallback fallback)
{
    node->agency = node_open(nodes, PATIENT);
    wait_until(node->agency, false);
    node->budget = budget_open(node->agency, limit, overshoot, fallback);
}

void node_leave(struct node *node)
{
    wr_budget_free(node->budget);
    wr_agency_free(node->agency);
}

void nodes_join(struct node *nodes, uint32_t count, weir_limit limit, uint32_t overshoot, enum wr_fallback fallback)
{
    for (uint32_t i = 0; i < count; i++)
        node_join(&nodes[i], count, limit, overshoot, fallback);
}

void nodes_leave(struct node *nodes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        node_leave(&nodes[i]);
}

void node_settle(const struct node *node)
{
    struct wr_budget_view view;
    do {
        usleep(1000);
        wr_budget_view_get(node->budget, &view);
    } while (view.owed > 0);
}
