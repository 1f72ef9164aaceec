/* SPDX-License-Identifier: MIT */
/* crowd.c - Runs a simulation of one origin or of many hosts, and averages several runs.
 *
 * The hosts of a crowd are drawn from the crowd's own seed, so that every run has the same hosts:
 * host k (from 1) has largest/k^zipf URLs and one of the mix's origins. Hosts do not affect each
 * other, because the workers are per host. So they run one after another, each with its own gate,
 * and the crowd is done when its slowest host is done.
 */
#include "sim/chance.h"
#include "sim/run.h"
#include "sim/score.h"

#include <math.h>
#include <stdalign.h>

static const struct wr_origin *draw_origin(const struct wr_scenario *scenario, struct wr_chance *chance)
{
    double all = 0;
    for (uint32_t i = 0; i < scenario->mix_count; i++)
        all += scenario->mix[i].weight;
    double left = wr_chance_unit(chance) * all;
    uint32_t i = 0;
    while (i + 1 < scenario->mix_count && left >= scenario->mix[i].weight)
        left -= scenario->mix[i++].weight;
    return &scenario->mix[i].origin;
}

static uint32_t backlog_of(const struct wr_scenario *scenario, uint32_t rank)
{
    return (uint32_t)fmax(1, round(scenario->crowd.largest / pow(rank, scenario->crowd.zipf)));
}

/* Runs all hosts of a crowd. Sums their scores and compares the slowest with the oracle's. */
static int play_crowd(const struct wr_sim_run *run, struct wr_score *ret_score)
{
    struct wr_score sum = {.makespan_s = 0}, one;
    struct wr_chance chance;
    double makespan_s = 0, ideal_s = 0, latency = 0, overshoot = 0, one_ideal_s;

    wr_chance_init(&chance, run->scenario->crowd.seed, WR_STREAM_CROWD);
    for (uint32_t i = 0; i < run->scenario->crowd.hosts; i++) {
        struct wr_sim_run host = *run;
        host.seed = run->seed * run->scenario->crowd.hosts + i;
        host.memory = run->memory == NULL ? NULL : &run->memory[i];
        host.ret_memory = run->ret_memory == NULL ? NULL : &run->ret_memory[i];
        const struct wr_origin *origin = draw_origin(run->scenario, &chance);
        int error = wr_sim_play(&host, origin, backlog_of(run->scenario, i + 1), &one, &one_ideal_s);
        if (error < 0)
            return error;
        wr_score_add(&sum, &one);
        makespan_s = fmax(makespan_s, one.makespan_s);
        ideal_s = fmax(ideal_s, one_ideal_s);
        latency += one.latency_inflation * one.ok;
        overshoot = fmax(overshoot, one.overshoot);
    }
    sum.goodput = ideal_s / makespan_s;
    sum.rejected = sum.rejections / sum.sent;
    sum.t90_s = sum.recovery_s = NAN;
    sum.latency_inflation = latency / sum.ok;
    sum.overshoot = overshoot;
    sum.makespan_s = makespan_s;
    *ret_score = sum;
    return 0;
}

int wr_sim_run(const struct wr_sim_run *run, struct wr_score *ret_score)
{
    double ideal_s;
    assert(wr_scenario_wrong(run->scenario) == NULL);
    if (run->scenario->crowd.hosts > 0)
        return play_crowd(run, ret_score);
    return wr_sim_play(run, &run->scenario->origin, run->scenario->backlog, ret_score, &ideal_s);
}

/* Runs the scenario once for its memory. The seed differs, so that the pacer knows the host but not
 * its random numbers. */
static int run_before(const struct wr_sim_run *run, weir_pace_memory *ret_memory)
{
    struct wr_sim_run before = *run;
    struct wr_score score;
    before.seed = ~run->seed;
    before.ret_memory = ret_memory;
    before.listener = NULL;
    return wr_sim_run(&before, &score);
}

static int run_seeds(struct wr_sim_run *run, uint32_t seeds, weir_pace_memory *memory, struct wr_score *ret_sum)
{
    struct wr_score sum = {.makespan_s = 0}, one;
    for (uint32_t i = 0; i < seeds; i++, run->seed++) {
        run->memory = NULL;
        int error = memory == NULL ? 0 : run_before(run, memory);
        run->memory = memory;
        if (error == 0)
            error = wr_sim_run(run, &one);
        if (error < 0)
            return error;
        wr_score_add(&sum, &one);
    }
    *ret_sum = sum;
    return 0;
}

static int score_runs(struct wr_sim_run *run, uint32_t seeds, bool warm, struct wr_score *ret_score)
{
    size_t hosts = run->scenario->crowd.hosts > 0 ? run->scenario->crowd.hosts : 1;
    size_t bytes = hosts * sizeof(weir_pace_memory);
    weir_pace_memory *memory = NULL;
    struct wr_score sum;

    if (warm && (memory = wr_alloc(run->allocator, bytes, alignof(weir_pace_memory))) == NULL)
        return WEIR_E_NOMEM;
    int error = run_seeds(run, seeds, memory, &sum);
    wr_free(run->allocator, memory, bytes, alignof(weir_pace_memory));
    if (error < 0)
        return error;
    wr_score_divide(&sum, seeds);
    *ret_score = sum;
    return 0;
}

int wr_sim_score(const struct wr_scenario *scenario, const struct wr_sim_pacer *pacer, uint32_t seeds, uint64_t seed,
                 bool warm, const weir_allocator *allocator, struct wr_score *ret_score)
{
    struct wr_sim_run run = {.scenario = scenario, .pacer = pacer, .seed = seed, .allocator = allocator};
    return score_runs(&run, seeds == 0 ? scenario->seeds : seeds, warm, ret_score);
}

int wr_sim_watch(const struct wr_scenario *scenario, const struct wr_sim_pacer *pacer, uint64_t seed, bool warm,
                 const weir_allocator *allocator, wr_sim_listener *listener, void *context, struct wr_score *ret_score)
{
    struct wr_sim_run run = {.scenario = scenario, .pacer = pacer, .seed = seed, .allocator = allocator};
    run.listener = listener;
    run.context = context;
    return score_runs(&run, 1, warm, ret_score);
}
