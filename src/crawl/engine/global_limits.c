/* SPDX-License-Identifier: MIT */
/* global_limits.c - limits over all hosts together: starts per second, and bytes per second.
 *
 * A loop draws the time of its next start from a schedule that all loops share, before it has
 * anything to start. So no two loops have the same time. A loop without work keeps its time for
 * later: at most one per loop. Bytes are charged when they have arrived: starts wait until the
 * average is within the limit.
 */
#include "crawl/engine/engine_state.h"

#define CREDIT_NS WEIR_SECOND /* cost of bytes that may arrive at once before starts wait */

static int64_t later_of_two(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t limited_cost(double ns)
{
    /* A limit below one per day counts as one per day. */
    return ns < (double)WEIR_DAY ? (int64_t)ns : WEIR_DAY;
}

static void hold_loop_starts(struct wr_crawl_loop *loop)
{
    wr_plan_hold_starts(loop->plan, later_of_two(loop->scarce_until, later_of_two(loop->start_at, loop->paid_at)));
}

void wr_global_limits_hold(struct wr_crawl_loop *loop, int64_t for_ns)
{
    loop->scarce_until = later_of_two(loop->scarce_until, wr_crawl_loop_now(loop) + for_ns);
    hold_loop_starts(loop);
}

void wr_global_limits_count_start(struct wr_crawl_loop *loop)
{
    struct wr_engine *engine = loop->engine;
    if (engine->options.global_rate <= 0)
        return;
    int64_t each_ns = limited_cost((double)WEIR_SECOND / engine->options.global_rate);
    (void)pthread_mutex_lock(&engine->lock);
    loop->start_at = later_of_two(wr_crawl_loop_now(loop), engine->next_start_at);
    engine->next_start_at = loop->start_at + each_ns;
    (void)pthread_mutex_unlock(&engine->lock);
    hold_loop_starts(loop);
}

void wr_global_limits_count_bytes(struct wr_crawl_loop *loop, uint64_t bytes)
{
    struct wr_engine *engine = loop->engine;
    if (engine->options.bandwidth == 0 || bytes == 0)
        return;
    int64_t cost_ns = limited_cost((double)bytes * (double)WEIR_SECOND / (double)engine->options.bandwidth);
    (void)pthread_mutex_lock(&engine->lock);
    engine->paid_until = later_of_two(wr_crawl_loop_now(loop), engine->paid_until) + cost_ns;
    loop->paid_at = engine->paid_until - CREDIT_NS;
    (void)pthread_mutex_unlock(&engine->lock);
    hold_loop_starts(loop);
}
