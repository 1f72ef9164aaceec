/* SPDX-License-Identifier: MIT */
/* nodes.c - test fixture: nodes on the store of a test, and requests that the test waits for. */
#include "share/nodes.h"

#include "lib/test.h"

#include <semaphore.h>
#include <unistd.h>

struct wr_redis_client *node_open(uint32_t nodes, int64_t timeout_ns)
{
    struct wr_redis_client_options options = {.wire = {.path = store.path, .timeout_ns = timeout_ns}, .nodes = nodes};
    struct wr_redis_client *redis_client = NULL;
    assert_int_equal(wr_redis_client_new(&options, &redis_client), 0);
    assert_true(wr_redis_client_has_options(redis_client, &options));
    assert_int_equal(wr_redis_client_start(redis_client), 0);
    return redis_client;
}

void wait_until(struct wr_redis_client *redis_client, bool down)
{
    struct wr_redis_client_view view;
    do {
        usleep(1000);
        wr_redis_client_view_get(redis_client, &view);
    } while (view.wire.down != down || (!down && !view.seated));
}

struct wr_shared_limit *budget_open(struct wr_redis_client *redis_client, weir_limit limit, uint32_t overshoot,
                                    enum wr_shared_limit_fallback fallback)
{
    struct wr_shared_limit_options options = {
        .name = "rule", .overshoot = overshoot, .fallback = fallback, .max_keys = 1000};
    struct wr_shared_limit *budget = NULL;
    assert_int_equal(weir_stack_init(&options.stack, &limit, 1), 0);
    assert_int_equal(wr_shared_limit_new(redis_client, &options, &budget), 0);
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

struct wr_shared_limit_decision ask(struct wr_shared_limit *budget, const char *key, uint32_t permits)
{
    struct wr_shared_limit_decision told;
    struct wr_shared_request *shared_request = NULL;
    sem_t woken;

    (void)sem_init(&woken, 0, 0);
    assert_int_equal(wr_shared_limit_ask(budget, key, strlen(key), permits, wake_test, &woken, &shared_request, &told),
                     0);
    if (shared_request != NULL) {
        while (sem_wait(&woken) != 0)
            ;
        assert_true(wr_shared_request_poll(shared_request, &told));
        wr_shared_request_free(shared_request);
    }
    (void)sem_destroy(&woken);
    return told;
}

void give_back(struct wr_shared_limit *budget, const struct wr_shared_limit_decision *told, uint32_t permits,
               uint32_t used)
{
    const struct wr_shared_limit_grant grant = {permits, told->source, told->charged_at};
    wr_shared_limit_settle(budget, "k", 1, &grant, used);
}

uint32_t ask_often(struct wr_shared_limit *budget, int times)
{
    uint32_t granted = 0;
    for (int i = 0; i < times; i++)
        granted += ask(budget, "k", 1).decision.verdict == WEIR_GO;
    return granted;
}

uint64_t sent(struct wr_redis_client *redis_client)
{
    struct wr_redis_client_view view;
    usleep(500000); /* the view is updated at each heartbeat */
    wr_redis_client_view_get(redis_client, &view);
    return view.wire.sent;
}

void node_join(struct node *node, uint32_t nodes, weir_limit limit, uint32_t overshoot,
               enum wr_shared_limit_fallback fallback)
{
    node->redis_client = node_open(nodes, PATIENT);
    wait_until(node->redis_client, false);
    node->budget = budget_open(node->redis_client, limit, overshoot, fallback);
}

void node_leave(struct node *node)
{
    wr_shared_limit_free(node->budget);
    wr_redis_client_free(node->redis_client);
}

void nodes_join(struct node *nodes, uint32_t count, weir_limit limit, uint32_t overshoot,
                enum wr_shared_limit_fallback fallback)
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
    struct wr_shared_limit_view view;
    do {
        usleep(1000);
        wr_shared_limit_view_get(node->budget, &view);
    } while (view.owed > 0);
}
