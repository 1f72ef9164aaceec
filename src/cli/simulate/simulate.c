/* SPDX-License-Identifier: MIT */
/* simulate.c - weir simulate: shows how close a pacer stays to a host's limit. */
#include "cli/simulate/simulate.h"

#include <inttypes.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/nearest.h"
#include "cli/kit/command_options.h"
#include "cli/kit/console.h"
#include "cli/simulate/limit_trials.h"
#include "cli/simulate/scenario_file.h"
#include "cli/simulate/scores.h"
#include "cli/simulate/trace.h"

#define PACER_DEFAULT "tide"
#define TRAFFIC_DEFAULT "5/s for 10s, pause 10s, 100/s for 2s"
#define OPERANDS_MAX 10000

struct simulate_settings {
    struct wr_option_list pacers, scenarios, limits;
    uint64_t random, real, seeds, seed, jobs;
    bool warm, late, each, json, list;
    const char *plot, *trace, *traffic;
    int64_t take_ns, wait_ns;
};

static const struct wr_option options[] = {
    {"pacer", WR_LIST(struct simulate_settings, pacers), .value = "NAME[:KEY=VALUE,…]",
     .help = "Try this pacer (repeatable; default " PACER_DEFAULT ")"},
    {"scenario", WR_LIST(struct simulate_settings, scenarios), .value = "FILE|DIR|NAME",
     .help = "Run this scenario (repeatable)"},
    {"random", WR_COUNT(struct simulate_settings, random), .value = "N", .min = 0, .max = 100000,
     .help = "Run also N random origins, drawn by --seed"},
    {"real", WR_COUNT(struct simulate_settings, real), .value = "N", .min = 0, .max = 100000,
     .help = "Also run N models of real-world limiters, drawn by --seed"},
    {"seeds", WR_COUNT(struct simulate_settings, seeds), .value = "N", .min = 0, .max = 10000,
     .help = "Runs per scenario (0: as the scenario says)"},
    {"seed", WR_COUNT(struct simulate_settings, seed), .value = "S", .min = 0, .max = UINT64_MAX,
     .help = "Seed of the first run and of random origins"},
    {"warm", WR_FLAG(struct simulate_settings, warm), .help = "Start with what an earlier run has learned"},
    {"late", WR_FLAG(struct simulate_settings, late), .help = "Judge by the second half of each run"},
    {"each", WR_FLAG(struct simulate_settings, each), .help = "Print a row per scenario instead of one per family"},
    {"json", WR_FLAG(struct simulate_settings, json), .help = "Print a JSON object per pacer and scenario"},
    {"plot", WR_STRING(struct simulate_settings, plot), .value = "OUT.svg",
     .help = "Draw the first run of one scenario to OUT.svg"},
    {"trace", WR_STRING(struct simulate_settings, trace), .value = "FILE",
     .help = "Write each event of that run to FILE, as JSON lines"},
    {"jobs", WR_COUNT(struct simulate_settings, jobs), .value = "N", .min = 0, .max = WR_MATRIX_JOBS_MAX,
     .help = "Runs at the same time (0: one per processor)"},
    {"limit", WR_LIST(struct simulate_settings, limits), .value = "LIMIT",
     .help = "Show what this limit of weir.yaml grants instead (repeatable)"},
    {"traffic", WR_STRING(struct simulate_settings, traffic), .value = "TEXT",
     .help = "With --limit: when requests arrive"},
    {"take", WR_DURATION(struct simulate_settings, take_ns), .value = "TIME", .min = 1, .max = WEIR_DURATION_MAX,
     .help = "With --limit: how long each request is in flight"},
    {"wait", WR_DURATION(struct simulate_settings, wait_ns), .value = "TIME", .min = 0, .max = WEIR_DURATION_MAX,
     .help = "With --limit: how long each request waits in the queue (0: not)"},
    {"list", WR_FLAG(struct simulate_settings, list), .help = "List pacers and built-in scenarios"},
};

static const struct wr_usage usage = {
    .who = "weir simulate",
    .operands = "[FILE|DIR|NAME]…",
    .operands_max = OPERANDS_MAX,
    .about = "Tries pacers against modelled origins in virtual time: 30 minutes take a moment, and the\n"
             "same seed gives the same figures. An oracle knows the true limit of each origin. Goodput\n"
             "is what was delivered, as a share of what the oracle allows. Rejected is the share of\n"
             "requests that the origin refused because of the pacer.\n"
             "\n"
             "Without a scenario, --random or --real, the built-in ones are run: families P1 to P12 of\n"
             "modelled origins, and R1 to R13 after limiters in use.\n"
             "\n"
             "  weir simulate                                   tide against all built-in scenarios\n"
             "  weir simulate --pacer tide --pacer aimd P1 P4   two pacers, two families\n"
             "  weir simulate --pacer adaptive:max_rate=20      tide with its usual caps, and one changed;\n"
             "                                                  weir_pace(3) lists the keys\n"
             "  weir simulate --pacer aimd:alpha=0.1,start=1,max=500,burst=5\n"
             "  weir simulate P6a --plot step.svg               a picture of a limit that moves\n"
             "  weir simulate --random 500 --seed 7             500 random origins\n"
             "  weir simulate --real 110 --late                 models of real limiters, second half only\n"
             "  weir simulate P4-r14 --seed 7 --plot ban.svg    one random origin\n"
             "  weir simulate my-api.yaml                       your own; weir-simulate(1) has the format\n"
             "\n"
             "With --limit it shows what limits of weir.yaml grant to one caller.\n"
             "\n"
             "  weir simulate --limit 10/s --limit \"10/s fixed_window\" --plot limits.svg\n"
             "  weir simulate --limit concurrent=5 --take 2s --traffic \"4/s for 10s, 40 at once\"\n",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

static int complain_error(int error)
{
    wr_complain("%s", weir_error_text(error));
    return WR_EXIT_FAILED;
}

/* ---- --list ---- */

static int print_pacers_and_scenarios(void)
{
    struct wr_catalog catalog;
    char text[256];
    wr_catalog_init(&catalog, weir_allocator_system());
    int status = wr_catalog_add_builtins(&catalog);
    wr_print("Pacers:\n");
    for (const struct wr_sim_pacer_name *name = wr_sim_pacer_names(); name->name != NULL; name++)
        wr_print("  %-28s%s\n", name->name, name->what);
    wr_print("\nScenarios:\n");
    for (size_t i = 0; i < catalog.listed; i++) {
        wr_scenario_describe(catalog.list[i], text, sizeof text);
        wr_print("  %-28s%s\n", catalog.list[i]->name, text);
    }
    wr_catalog_release(&catalog);
    return status;
}

/* ---- pacers and scenarios ---- */

static int refuse_pacer(const char *text)
{
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)strcspn(text, ":"), text);
    struct wr_nearest nearest = {.word = word};
    for (const struct wr_sim_pacer_name *name = wr_sim_pacer_names(); name->name != NULL; name++)
        wr_nearest_offer(&nearest, name->name);
    if (nearest.best != NULL && nearest.distance > 0)
        wr_complain("unknown pacer \"%s\"; did you mean %s?", word, nearest.best);
    else
        wr_complain("--pacer %s: %s", text, weir_error_detail());
    return WR_EXIT_USAGE;
}

static int parse_pacers(const struct wr_option_list *names, struct wr_sim_pacer *ret_pacers, size_t *ret_count)
{
    static const struct wr_option_list usual = {.items = {PACER_DEFAULT}, .count = 1};
    if (names->count == 0)
        names = &usual;
    for (size_t i = 0; i < names->count; i++)
        if (wr_sim_pacer_named(names->items[i], &ret_pacers[i]) < 0)
            return refuse_pacer(names->items[i]);
    *ret_count = names->count;
    return WR_EXIT_OK;
}

static int fill_catalog(const struct simulate_settings *settings, int argc, char **argv, struct wr_catalog *catalog)
{
    int status = WR_EXIT_OK;
    catalog->seed = settings->seed;
    for (size_t i = 0; status == WR_EXIT_OK && i < settings->scenarios.count; i++)
        status = wr_catalog_add(catalog, settings->scenarios.items[i]);
    for (int i = 0; status == WR_EXIT_OK && i < argc; i++)
        status = wr_catalog_add(catalog, argv[i]);
    catalog->drawn = (uint32_t)settings->random;
    catalog->drawn_real = (uint32_t)settings->real;
    if (status == WR_EXIT_OK && wr_catalog_count(catalog) == 0)
        status = wr_catalog_add_builtins(catalog);
    return status;
}

static size_t processor_count(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : count > WR_MATRIX_JOBS_MAX ? WR_MATRIX_JOBS_MAX : (size_t)count;
}

/* ---- running ---- */

static int print_scores(const struct simulate_settings *settings, const struct wr_matrix *matrix,
                        const struct wr_matrix_cell *cells)
{
    if (settings->json)
        wr_scores_print_json(matrix, cells);
    else if (!wr_scores_print_table(matrix, cells, settings->each))
        return complain_error(WEIR_E_NOMEM);
    return WR_EXIT_OK;
}

/* Prints why not all cells are finished. */
static int complain_unfinished(const struct wr_matrix_cell *cells, size_t count, size_t done)
{
    for (size_t i = 0; i < count; i++)
        if (cells[i].error != 0)
            return complain_error(cells[i].error);
    wr_complain("stopped: %zu of %zu were simulated", done, count);
    return WR_EXIT_FAILED;
}

static int run_matrix(const struct simulate_settings *settings, const struct wr_matrix *matrix)
{
    size_t count = matrix->pacer_count * wr_catalog_count(matrix->catalog);
    struct wr_matrix_cell *cells =
        wr_alloc_array(matrix->allocator, count, sizeof *cells, alignof(struct wr_matrix_cell));
    if (cells == NULL)
        return complain_error(WEIR_E_NOMEM);
    size_t done = wr_matrix_run(matrix, cells);
    int status = done > 0 ? print_scores(settings, matrix, cells) : WR_EXIT_OK;
    if (status == WR_EXIT_OK && done < count)
        status = complain_unfinished(cells, count, done);
    wr_free(matrix->allocator, cells, count * sizeof *cells, alignof(struct wr_matrix_cell));
    return status;
}

static int run_simulation(const struct simulate_settings *settings, const struct wr_catalog *catalog)
{
    struct wr_sim_pacer pacers[WR_OPTION_LIST_MAX];
    struct wr_matrix matrix = {
        .catalog = catalog,
        .pacers = pacers,
        .seeds = (uint32_t)settings->seeds,
        .seed = settings->seed,
        .warm = settings->warm,
        .late = settings->late,
        .jobs = settings->jobs > 0 ? wr_size_of(settings->jobs) : processor_count(),
        .allocator = catalog->allocator,
    };
    int status = parse_pacers(&settings->pacers, pacers, &matrix.pacer_count);
    /* wr_trace_run checks the options and is quick; the matrix takes long. */
    if (status == WR_EXIT_OK && (settings->trace != NULL || settings->plot != NULL))
        status = wr_trace_run(&matrix, settings->trace, settings->plot);
    return status == WR_EXIT_OK ? run_matrix(settings, &matrix) : status;
}

/* ---- --limit ---- */

static int run_limits_option(const struct simulate_settings *settings, int operands)
{
    struct wr_limit_trials_settings limits = {
        .limits = settings->limits.items,
        .count = settings->limits.count,
        .traffic = settings->traffic,
        .take_ns = settings->take_ns,
        .wait_ns = settings->wait_ns,
        .json = settings->json,
        .plot = settings->plot,
    };
    if (settings->pacers.count + settings->scenarios.count + settings->random + settings->real > 0 || operands > 0 ||
        settings->trace != NULL) {
        wr_complain("--limit takes no pacer, scenario or trace; leave them out");
        return WR_EXIT_USAGE;
    }
    return wr_limit_trials_run(&limits);
}

int wr_simulate_run(int argc, char **argv)
{
    struct simulate_settings settings = {.seed = 1, .traffic = TRAFFIC_DEFAULT, .take_ns = 100 * WEIR_MILLISECOND};
    struct wr_catalog catalog;
    int status;
    if (!wr_options_parse(&usage, &argc, argv, &settings, &status))
        return status;
    if (settings.list)
        return print_pacers_and_scenarios();
    if (settings.limits.count > 0)
        return run_limits_option(&settings, argc);
    wr_catalog_init(&catalog, weir_allocator_system());
    status = fill_catalog(&settings, argc, argv, &catalog);
    if (status == WR_EXIT_OK)
        status = run_simulation(&settings, &catalog);
    wr_catalog_release(&catalog);
    return status;
}
