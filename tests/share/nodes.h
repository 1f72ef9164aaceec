/* SPDX-License-Identifier: MIT */
/* nodes.h - nodes on the store of a test, and asks that are waited for. */
#ifndef TESTS_SHARE_NODES_H
#define TESTS_SHARE_NODES_H

#include "cluster/limit/shared_limit.h"
#include "share/rig.h"

struct wr_redis_client *node_open(uint32_t nodes, int64_t timeout_ns);

/* Until the store counts as down, or as up and the node has a membership. */
void wait_until(struct wr_redis_client *redis_client, bool down);

struct wr_shared_limit *budget_open(struct wr_redis_client *redis_client, weir_limit limit, uint32_t overshoot,
                                    enum wr_shared_limit_fallback fallback);

/* So many in an hour. */
weir_limit hourly(uint32_t permits);

/* Posts a semaphore. */
void wake_test(void *context);

struct wr_shared_limit_decision ask(struct wr_shared_limit *budget, const char *key, uint32_t permits);

/* How many of so many asks for key "k" were granted. */
uint32_t ask_often(struct wr_shared_limit *budget, int times);

/* Of `permits` of key "k" that were granted `used` were needed. */
void give_back(struct wr_shared_limit *budget, const struct wr_shared_limit_decision *told, uint32_t permits,
               uint32_t used);

/* Commands that were sent. */
uint64_t sent(struct wr_redis_client *redis_client);

/* A node with one budget. */
struct node {
    struct wr_redis_client *redis_client;
    struct wr_shared_limit *budget;
};
void node_join(struct node *node, uint32_t nodes, weir_limit limit, uint32_t overshoot,
               enum wr_shared_limit_fallback fallback);
void node_leave(struct node *node);
/* All of them. */
void nodes_join(struct node *nodes, uint32_t count, weir_limit limit, uint32_t overshoot,
                enum wr_shared_limit_fallback fallback);
void nodes_leave(struct node *nodes, uint32_t count);
void node_settle(const struct node *node); /* until nothing is owed any more */

#endif
