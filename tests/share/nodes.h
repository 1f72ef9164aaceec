/* SPDX-License-Identifier: MIT */
/* nodes.h - test fixture: nodes on the store of a test, and requests that the test waits for. */
#ifndef TESTS_SHARE_NODES_H
#define TESTS_SHARE_NODES_H

#include "cluster/limit/shared_limit.h"
#include "share/rig.h"

struct wr_redis_client *node_open(uint32_t nodes, int64_t timeout_ns);

/* Waits until the store counts as down, or as up with this node as a member. */
void wait_until(struct wr_redis_client *redis_client, bool down);

struct wr_shared_limit *budget_open(struct wr_redis_client *redis_client, weir_limit limit, uint32_t overshoot,
                                    enum wr_shared_limit_fallback fallback);

/* Returns a limit of this many permits per hour. */
weir_limit hourly(uint32_t permits);

/* Callback that posts the semaphore in `context`. */
void wake_test(void *context);

struct wr_shared_limit_decision ask(struct wr_shared_limit *budget, const char *key, uint32_t permits);

/* Asks this many times for a permit of key "k". Returns the number of grants. */
uint32_t ask_often(struct wr_shared_limit *budget, int times);

/* Returns those of `permits` granted permits of key "k" that were not `used`. */
void give_back(struct wr_shared_limit *budget, const struct wr_shared_limit_decision *told, uint32_t permits,
               uint32_t used);

/* Returns the number of commands sent to the store. */
uint64_t sent(struct wr_redis_client *redis_client);

/* A node with one shared limit. */
struct node {
    struct wr_redis_client *redis_client;
    struct wr_shared_limit *budget;
};
void node_join(struct node *node, uint32_t nodes, weir_limit limit, uint32_t overshoot,
               enum wr_shared_limit_fallback fallback);
void node_leave(struct node *node);
/* Starts and ends `count` nodes with the same limit. */
void nodes_join(struct node *nodes, uint32_t count, weir_limit limit, uint32_t overshoot,
                enum wr_shared_limit_fallback fallback);
void nodes_leave(struct node *nodes, uint32_t count);
/* waits until all permits admitted without the store are charged */
void node_settle(const struct node *node);

#endif
