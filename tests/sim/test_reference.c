/* SPDX-License-Identifier: MIT */
/* The study that the scenarios come from left figures for each pacer and scenario: a pacer of one start a second has no
 * choices to make, so its rows must come out to the last request. */
#include "lib/test.h"
#include "sim/listed.h"

#include <math.h>

struct row {
    char scenario[64];
    double goodput, rejected, waste, latency_inflation, sent, ok, rejections;
};

/* The fixed row of a scenario in reference.csv. */
static struct row fixed_row(const char *scenario)
{
    const char *folder = getenv("WEIR_SCENARIOS");
    char path[1024], line[512];
    struct row row = {.sent = 0};
    assert_non_null(folder);
    snprintf(path, sizeof path, "%s/reference.csv", folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (row.sent == 0 && fgets(line, sizeof line, file) != NULL) {
        struct row r;
        if (sscanf(line, "fixed,%63[^,],%lf,%lf,%*f,%*f,%lf,%lf,%lf,%lf,%lf", r.scenario, &r.goodput, &r.rejected,
                   &r.waste, &r.latency_inflation, &r.sent, &r.ok, &r.rejections) == 8 &&
            strcmp(r.scenario, scenario) == 0)
            row = r;
    }
    fclose(file);
    if (row.sent == 0)
        fail_msg("reference.csv has no row for fixed and %s", scenario);
    return row;
}

static struct wr_score score_of(const char *pacer_text, const struct wr_scenario *scenario)
{
    struct wr_sim_pacer pacer;
    struct wr_score score;
    assert_int_equal(wr_sim_pacer_named(pacer_text, &pacer), 0);
    assert_int_equal(wr_sim_score(scenario, &pacer, 0, 1, false, weir_allocator_system(), &score), 0);
    return score;
}

/* Whether chance decides over some answers: errors, a full queue, or services that may outlast the run. */
static bool has_chance(const struct wr_scenario *scenario)
{
    return scenario->origin.errors.p500 > 0 || scenario->origin.errors.p503 > 0 || scenario->origin.service.tail > 0 ||
           scenario->origin.service.sigma > 1 || scenario->origin.service.mean_ns > 500 * WEIR_MILLISECOND;
}

static void assert_close(const char *scenario, const char *what, double is, double should, double slack)
{
    if (!(fabs(is - should) <= slack))
        fail_msg("%s: %s is %.6g, in the reference %.6g", scenario, what, is, should);
}

static void fixed_rows_of_the_reference_come_out_exactly(void **state)
{
    (void)state;
    int exact = 0;
    for (size_t i = 0; i < LISTED_COUNT; i++) {
        const char *name = listed[i].name;
        struct row row = fixed_row(name);
        struct wr_score score = score_of("fixed", &listed[i]);
        bool chance = has_chance(&listed[i]);
        assert_close(name, "sent", score.sent, row.sent, 0);
        assert_close(name, "ok", score.ok, row.ok, chance ? 10 + 0.005 * row.ok : 0);
        assert_close(name, "rejections", score.rejections, row.rejections, chance ? 0.02 * row.rejections : 0);
        assert_close(name, "waste", score.waste, row.waste, 0);
        assert_close(name, "goodput", score.goodput, row.goodput, chance ? 0.005 : 0.00006);
        assert_close(name, "rejected", score.rejected, row.rejected, chance ? 0.005 : 0.000006);
        assert_close(name, "latency", score.latency_inflation, row.latency_inflation,
                     listed[i].origin.service.sigma > 1 ? 0.15 : 0.05);
        exact += !chance;
    }
    assert_int_equal(LISTED_COUNT, 34);
    assert_int_equal(exact, 26);
}

/* Who sends as much as there are workers gets all that the origin has to give, whatever the model. */
static void sending_everything_brings_what_the_oracle_says(void **state)
{
    (void)state;
    struct wr_sim_pacer pacer = {.name = "bare", .strategy = &wr_none};
    struct wr_score score;
    int judged = 0;
    for (size_t i = 0; i < LISTED_COUNT; i++) {
        struct wr_scenario scenario = listed[i];
        enum wr_limiter_kind kind = scenario.origin.limiter.kind;
        if ((kind != WR_LIMITER_NONE && kind != WR_LIMITER_TOKEN_BUCKET) || scenario.origin.cross > 0 ||
            scenario.origin.limiter.burst == 1 || scenario.origin.service.mean_ns > WEIR_SECOND)
            continue; /* bans, windows that are cut, others starved, tokens spilt, and too few answers to tell */
        if (scenario.origin.outage.to_ns == 0)
            scenario.duration_ns = 300 * WEIR_SECOND;
        assert_int_equal(wr_sim_score(&scenario, &pacer, 1, 1, false, weir_allocator_system(), &score), 0);
        bool varies = scenario.origin.vary.kind == WR_VARY_SINE; /* 300 s are half a period */
        assert_close(scenario.name, "goodput", score.goodput, 1, varies ? 0.002 : 0.02);
        judged++;
    }
    assert_int_equal(judged, 21);
}

WEIR_TESTS(test(fixed_rows_of_the_reference_come_out_exactly), test(sending_everything_brings_what_the_oracle_says))
