/* SPDX-License-Identifier: MIT */
/* table.c - one pacer against the listed scenarios: table PACER [warm] [SEEDS [SEED]]. For trying things out.
 */
#include "sim/listed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int main(int argc, char **argv)
{
    struct wr_sim_pacer pacer;
    int at = 2;
    if (wr_sim_pacer_named(argc > 1 ? argv[1] : "tide", &pacer) < 0) {
        fprintf(stderr, "%s\n", weir_error_detail());
        return 2;
    }
    bool warm = argc > at && strcmp(argv[at], "warm") == 0;
    at += warm;
    uint32_t seeds = argc > at ? (uint32_t)strtoul(argv[at++], NULL, 0) : 0;
    uint64_t seed = argc > at ? strtoull(argv[at++], NULL, 0) : 1;
    uint32_t drawn = argc > at ? (uint32_t)strtoul(argv[at], NULL, 0) : 0;
    uint32_t count = drawn > 0 ? drawn : (uint32_t)LISTED_COUNT;
    double goodput = 0, rejected = 0, all = 0;
    clock_t began = clock();
    printf("%-26s goodput rejected   sent      ok     rej.  waste   t90 recov. latency oversh. bans\n", "");
    for (uint32_t i = 0; i < count; i++) {
        struct wr_scenario scenario = listed[drawn > 0 ? 0 : i];
        struct wr_score s;
        if (drawn > 0)
            wr_scenario_random(seed, i, &scenario);
        if (wr_sim_score(&scenario, &pacer, seeds, seed, warm, weir_allocator_system(), &s) < 0)
            return 1;
        printf("%-26s %7.4f %8.5f %8.1f %8.1f %6.1f %5.1f %6.1f %6.1f %6.2f %6.2f %5.2f\n", scenario.name, s.goodput,
               s.rejected, s.sent, s.ok, s.rejections, s.waste, s.t90_s, s.recovery_s, s.latency_inflation, s.overshoot,
               s.bans);
        goodput += fmin(1, s.goodput), rejected += s.rejected, all += s.sent * (seeds ? seeds : scenario.seeds);
    }
    double took = (double)(clock() - began) / CLOCKS_PER_SEC;
    printf("mean goodput %.4f rejected %.5f; %.0f requests, %.0f ns each\n", goodput / count, rejected / count, all,
           took / all * 1e9);
    return 0;
}
