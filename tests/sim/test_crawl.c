/* SPDX-License-Identifier: MIT */
/* test_crawl.c - simulates whole crawls in virtual time: plans, a store that commits late and
 * crashes, and a web of hostile hosts, all drawn from a seed. The laws are checked from outside
 * after every step (sim/crawl/laws.h).
 *
 * WEIR_TEST_CRAWL_SEEDS: number of worlds (default 300). WEIR_TEST_CRAWL_SEED: only this one. */
#include "lib/test.h"
#include "sim/crawl/world.h"

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 0) : otherwise;
}

static void simulated_crawls_keep_the_laws_under_all_faults(void **state)
{
    (void)state;
    char detail[160];
    struct wr_plan_stats stats;
    uint64_t only = number_from("WEIR_TEST_CRAWL_SEED", 0), starts = 0, expired = 0, denied = 0;
    uint64_t last = only != 0 ? only : number_from("WEIR_TEST_CRAWL_SEEDS", 300);
    for (uint64_t seed = only != 0 ? only : 1; seed <= last; seed++) {
        const char *broken = world_run(seed, detail, &stats);
        if (broken != NULL)
            fail_msg("%s (%s)\nto repeat: WEIR_TEST_CRAWL_SEED=%llu", broken, detail, (unsigned long long)seed);
        starts += stats.starts;
        expired += stats.expired;
        denied += stats.denied;
    }
    print_message("%llu starts, %llu expired, %llu denied\n", (unsigned long long)starts, (unsigned long long)expired,
                  (unsigned long long)denied);
    if (only == 0 && last >= 100)
        /* the crawls covered all of these */
        assert_true(starts > 100 * last / 10 && expired > 0 && denied > 0);
}

WEIR_TESTS(test(simulated_crawls_keep_the_laws_under_all_faults))
