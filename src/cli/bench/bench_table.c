/* SPDX-License-Identifier: MIT */
/* bench_table.c - weir bench table: measures the time and memory of a decision by key and compares
 * them with the bound. */
#include <inttypes.h>

#include "base/bits.h"
#include "cli/bench/bench.h"
#include "cli/bench/race.h"
#include "cli/bench/threads.h"
#include "cli/kit/command_options.h"
#include "cli/kit/console.h"

#define OPS_DEFAULT 4000000
/* Maximum bytes of keys per thread if --ops is not given. */
#define STREAM_BYTES_MAX (UINT64_C(256) << 20)
/* Maximum bytes of keys per thread if --ops is given. */
#define STREAM_BYTES_LIMIT (UINT64_C(4) << 30)

struct bench_table_settings {
    uint64_t keys, key_length, threads, batch, ops, seed;
    int64_t least_ns;
    int dist, clock;
    bool json;
};

static const char *const dists[] = {
    [WR_DIST_ONE] = "one", [WR_DIST_UNIFORM] = "uniform", [WR_DIST_ZIPF] = "zipf", NULL};

enum {
    CLOCK_IS_FAST,
    CLOCK_IS_MONOTONIC
};
static const char *const clocks[] = {[CLOCK_IS_FAST] = "fast", [CLOCK_IS_MONOTONIC] = "monotonic", NULL};

static const struct wr_option options[] = {
    {"keys", WR_COUNT(struct bench_table_settings, keys), .value = "N", .min = 1, .max = WEIR_KEYS_MAX,
     .help = "Keys in the table"},
    {"key-length", WR_COUNT(struct bench_table_settings, key_length), .value = "L", .min = 1, .max = WEIR_KEY_MAX,
     .help = "Bytes per key"},
    {"dist", WR_CHOICE(struct bench_table_settings, dist), .choices = dists, .help = "Distribution of the keys"},
    {"threads", WR_COUNT(struct bench_table_settings, threads), .value = "T", .min = 1, .max = WR_BENCH_THREADS_MAX,
     .help = "Number of concurrent threads"},
    {"batch", WR_COUNT(struct bench_table_settings, batch), .value = "B", .min = 1, .max = WR_RACE_BATCH_MAX,
     .help = "Keys per call"},
    {"ops", WR_COUNT(struct bench_table_settings, ops), .value = "N", .min = 0, .max = 1000000000,
     .help = "Decisions per thread and round (0: 4 million, fewer for long keys)"},
    {"seconds", WR_DURATION(struct bench_table_settings, least_ns), .value = "TIME", .min = 0,
     .max = (uint64_t)WEIR_DAY, .help = "Add rounds until this time has passed (0: three rounds)"},
    {"clock", WR_CHOICE(struct bench_table_settings, clock), .choices = clocks,
     .help = "Clock that is read for each decision"},
    {"seed", WR_COUNT(struct bench_table_settings, seed), .value = "N", .min = 0, .max = UINT64_MAX,
     .help = "Seed of the sequence of keys"},
    {"json", WR_FLAG(struct bench_table_settings, json), .help = "Print JSON"},
};

static const struct wr_usage usage = {
    .who = "weir bench table",
    .about = "Fills a table with token buckets (100 at once, 1000 a second) and asks it for one\n"
             "permit at a time. Measured in turns with it, over the same keys and by the same\n"
             "clock, is the bound: a bare compare-and-swap in a flat array, which stores no key.\n"
             "\n"
             "  ns_per_decision  wall time divided by the decisions of all threads together,\n"
             "                   the clock read included; the median of the rounds\n"
             "  bound_ns         the same for the bound (which never takes batches)\n"
             "  ratio            the first divided by the second\n"
             "  bytes_per_key    growth of the resident memory while the table was filled\n",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

/* Checks settings that depend on each other and fills in the default of --ops. Returns false after
 * printing an error. */
static bool check_table_settings(struct bench_table_settings *settings)
{
    uint64_t keys_max = wr_key_stream_keys_max(wr_size_of(settings->key_length));
    if (settings->keys > keys_max) {
        wr_complain("there are only %" PRIu64 " keys of --key-length %" PRIu64
                    "; use fewer --keys or a longer --key-length",
                    keys_max, settings->key_length);
        return false;
    }
    if (settings->ops == 0) {
        uint64_t fitting = STREAM_BYTES_MAX / settings->key_length;
        settings->ops = fitting < OPS_DEFAULT ? fitting : OPS_DEFAULT;
    }
    if (settings->ops > STREAM_BYTES_LIMIT / settings->key_length) {
        wr_complain("--ops of --key-length %" PRIu64 " can be at most %" PRIu64, settings->key_length,
                    STREAM_BYTES_LIMIT / settings->key_length);
        return false;
    }
    return true;
}

static void print_race_json(const struct bench_table_settings *settings, const struct wr_race_result *result)
{
    wr_print("{\"keys\": %" PRIu64 ", \"key_length\": %" PRIu64 ", \"dist\": \"%s\", \"threads\": %" PRIu64
             ", \"batch\": %" PRIu64 ", \"clock\": \"%s\", \"ops\": %" PRIu64 ", \"rounds\": %zu,\n",
             settings->keys, settings->key_length, dists[settings->dist], settings->threads, settings->batch,
             clocks[settings->clock], settings->ops, result->rounds);
    wr_print(" \"ns_per_decision\": %.2f, \"bound_ns\": %.2f, \"ratio\": %.3f, \"decisions_per_second\": %.0f,\n",
             result->table_ns, result->bound_ns, result->table_ns / result->bound_ns, 1e9 / result->table_ns);
    wr_print(" \"granted\": %.4f, \"fill_ns_per_key\": %.1f, \"keys_held\": %zu, \"bytes_per_key\": %.1f}\n",
             result->granted, result->fill_ns, result->keys_held, result->bytes_per_key);
}

static void print_race_text(const struct bench_table_settings *settings, const struct wr_race_result *result)
{
    wr_print("%" PRIu64 " keys of %" PRIu64 " bytes, dist %s, threads %" PRIu64 ", batch %" PRIu64 ", %s clock\n",
             settings->keys, settings->key_length, dists[settings->dist], settings->threads, settings->batch,
             clocks[settings->clock]);
    wr_print("  table   %8.1f ns per decision, %.2f million a second, %.1f %% granted\n", result->table_ns,
             1e3 / result->table_ns, 100 * result->granted);
    wr_print("  bound   %8.1f ns per decision\n", result->bound_ns);
    wr_print("  ratio   %8.2f\n", result->table_ns / result->bound_ns);
    wr_print("  memory  %8.1f bytes per key, %zu keys held\n", result->bytes_per_key, result->keys_held);
}

static struct wr_race_options race_options_of(const struct bench_table_settings *settings)
{
    return (struct wr_race_options){
        .keys = wr_size_of(settings->keys),
        .key_bytes = wr_size_of(settings->key_length),
        .dist = (enum wr_key_distribution)settings->dist,
        .threads = wr_size_of(settings->threads),
        .batch = wr_size_of(settings->batch),
        .ops = wr_size_of(settings->ops),
        .least_ns = settings->least_ns,
        .clock = settings->clock == CLOCK_IS_FAST ? weir_clock_fast() : weir_clock_monotonic(),
        .seed = settings->seed,
    };
}

int wr_bench_table_run(int argc, char **argv)
{
    struct bench_table_settings settings = {.keys = 1000000,
                                            .key_length = 24,
                                            .dist = WR_DIST_UNIFORM,
                                            .threads = 1,
                                            .batch = 1,
                                            .least_ns = 5 * WEIR_SECOND,
                                            .seed = 1};
    int status;
    if (!wr_options_parse(&usage, &argc, argv, &settings, &status))
        return status;
    if (!check_table_settings(&settings))
        return WR_EXIT_USAGE;
    struct wr_race_options race = race_options_of(&settings);
    struct wr_race_result result;
    int error = wr_race_run(&race, &result);
    if (error != 0) {
        wr_complain("%s", weir_error_text(error));
        return WR_EXIT_FAILED;
    }
    (settings.json ? print_race_json : print_race_text)(&settings, &result);
    return WR_EXIT_OK;
}
