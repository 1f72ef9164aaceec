/* SPDX-License-Identifier: MIT */
/* rig.h - simulated origins that receive requests at given times. */
#ifndef WEIR_TEST_SIM_RIG_H
#define WEIR_TEST_SIM_RIG_H

#include "lib/test.h"
#include "sim/origin.h"

#include <math.h>

#define MS WEIR_MILLISECOND
#define S WEIR_SECOND

/* Returns a scenario without a limit, in which every request takes 100 ms. */
static inline struct wr_scenario plain_scenario(void)
{
    struct wr_scenario scenario;
    wr_scenario_init(&scenario);
    memcpy(scenario.name, "test", sizeof "test");
    scenario.origin.service.mean_ns = 100 * MS;
    scenario.origin.service.sigma = 0;
    return scenario;
}

/* A request that arrives at `at_ns`, and the expected answer. */
struct arrival {
    int64_t at_ns;
    int status;
    int64_t retry_after_ns; /* -1: no Retry-After */
    int64_t done_ns;        /* ns after the arrival */
};

static inline void check_arrivals(const struct wr_scenario *scenario, const struct arrival *arrivals, size_t count)
{
    struct wr_sim_origin site;
    struct wr_sim_reply reply;
    assert_null(wr_scenario_wrong(scenario));
    assert_int_equal(wr_sim_origin_init(&site, &scenario->origin, scenario->duration_ns, 1, weir_allocator_system()),
                     0);
    for (size_t i = 0; i < count; i++) {
        wr_sim_origin_arrive(&site, arrivals[i].at_ns, &reply);
        if (reply.status != arrivals[i].status || reply.retry_after_ns != arrivals[i].retry_after_ns ||
            reply.done_at - arrivals[i].at_ns != arrivals[i].done_ns)
            fail_msg("arrival %zu: %d, Retry-After %lld, done after %lld", i, reply.status,
                     (long long)reply.retry_after_ns, (long long)(reply.done_at - arrivals[i].at_ns));
    }
    wr_sim_origin_release(&site);
}

#define ARRIVALS(scenario, ...)                                        \
    check_arrivals(&(scenario), (const struct arrival[]){__VA_ARGS__}, \
                   sizeof((const struct arrival[]){__VA_ARGS__}) / sizeof(struct arrival))

#define OK(at)                \
    {                         \
        at, 200, -1, 100 * MS \
    }
#define NO(at)              \
    {                       \
        at, 429, -1, 2 * MS \
    }

#endif
