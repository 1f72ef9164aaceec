/* SPDX-License-Identifier: MIT */
/* race.c - measures a weir_table against the lower bound of bound.h. */
#include "cli/bench/race.h"

#include <stdlib.h>
#include <string.h>

#include "cli/bench/cost_bound.h"
#include "cli/bench/resident.h"
#include "cli/bench/sample.h"
#include "cli/bench/threads.h"
#include "cli/kit/console.h"

#define ROUNDS_MIN 3
#define CHUNK (1 << 18) /* number of keys between two progress messages */

/* The limit is 100 permits at once and 1000 per second. Rare keys get nearly all their permits, the
 * most popular keys only a small share. */
#define CAPACITY 100
#define COST_NS WEIR_MILLISECOND

struct race {
    const struct wr_race_options *options;
    weir_table *table;
    struct wr_cost_bound bound;
    struct wr_key_stream *streams; /* key streams, one per thread */
    size_t *granted;               /* permits granted in the last round, one counter per thread */
};

static int fill_table(struct race *race)
{
    char key[WEIR_KEY_MAX];
    weir_decision decision;
    size_t keys = race->options->keys;
    for (size_t i = 0; i < keys; i++) {
        wr_key_stream_key(i, race->options->key_bytes, key);
        int error = weir_table_try(race->table, key, race->options->key_bytes, 1, &decision);
        if (error != 0)
            return error;
        if (i % CHUNK == 0)
            wr_progress("filling: %zu of %zu keys", i, keys);
    }
    return 0;
}

/* Creates and fills the table. Must run before other allocations, so that only the table adds to
 * the resident memory. */
static int make_race_table(struct race *race, struct wr_race_result *result)
{
    weir_limit limit;
    weir_table_options options;
    weir_table_stats stats;
    weir_table_options_init(&options);
    options.max_keys = race->options->keys;
    options.clock = race->options->clock;
    int error = weir_limit_token_bucket(&limit, CAPACITY, 1, COST_NS);
    size_t before_bytes = wr_resident_bytes();
    int64_t start_at = weir_clock_now(weir_clock_monotonic());
    error = error != 0 ? error : weir_table_new(&limit, 1, &options, &race->table);
    error = error != 0 ? error : fill_table(race);
    error = error != 0 ? error : weir_table_stats_get(race->table, &stats);
    if (error != 0)
        return error;
    double fill_ns = (double)(weir_clock_now(weir_clock_monotonic()) - start_at);
    result->keys_held = stats.keys;
    result->bytes_per_key = ((double)wr_resident_bytes() - (double)before_bytes) / (double)stats.keys;
    result->fill_ns = fill_ns / (double)race->options->keys;
    return 0;
}

static int make_bound(struct race *race)
{
    int error = wr_cost_bound_init(&race->bound, race->options->keys, COST_NS, CAPACITY * COST_NS);
    for (uint64_t i = 0; i < race->options->keys && error == 0; i++)
        /* Touches the pages, so that they exist like those of the table. */
        wr_cost_bound_pass(&race->bound, race->options->clock, &i, 1);
    return error;
}

static int make_streams(struct race *race)
{
    const struct wr_race_options *options = race->options;
    race->streams = calloc(options->threads, sizeof *race->streams);
    race->granted = calloc(options->threads, sizeof *race->granted);
    if (race->streams == NULL || race->granted == NULL)
        return WEIR_E_NOMEM;
    int error = 0;
    for (size_t i = 0; i < options->threads && error == 0; i++) {
        wr_progress("drawing the keys of thread %zu", i);
        error = wr_key_stream_init(&race->streams[i], options->ops, options->keys, options->key_bytes, options->dist,
                                   options->seed + i);
    }
    return error;
}

static void race_release(struct race *race)
{
    for (size_t i = 0; race->streams != NULL && i < race->options->threads; i++)
        wr_key_stream_release(&race->streams[i]);
    free(race->streams);
    free(race->granted);
    wr_cost_bound_release(&race->bound);
    weir_table_free(race->table);
    wr_progress("%s", "");
}

static void pass_bound(void *context, size_t thread)
{
    struct race *race = context;
    const struct wr_key_stream *stream = &race->streams[thread];
    race->granted[thread] = wr_cost_bound_pass(&race->bound, race->options->clock, stream->numbers, stream->count);
}

static void pass_single(void *context, size_t thread)
{
    struct race *race = context;
    const struct wr_key_stream *stream = &race->streams[thread];
    const char *key = stream->texts;
    size_t granted = 0;
    for (size_t i = 0; i < stream->count; i++, key += stream->key_bytes) {
        weir_decision decision;
        if (weir_table_try(race->table, key, stream->key_bytes, 1, &decision) == 0)
            granted += decision.verdict == WEIR_GO;
    }
    race->granted[thread] = granted;
}

static size_t decide_many(weir_table *table, weir_table_item *items, size_t count)
{
    size_t granted = 0;
    if (weir_table_try_many(table, items, count) < 0)
        return 0;
    for (size_t i = 0; i < count; i++)
        granted += items[i].error == 0 && items[i].decision.verdict == WEIR_GO;
    return granted;
}

static void pass_batches(void *context, size_t thread)
{
    struct race *race = context;
    const struct wr_key_stream *stream = &race->streams[thread];
    const char *key = stream->texts;
    weir_table_item items[WR_RACE_BATCH_MAX];
    size_t granted = 0;
    for (size_t i = 0; i < stream->count;) {
        size_t count = 0;
        for (; count < race->options->batch && i < stream->count; count++, i++, key += stream->key_bytes) {
            items[count].key = key;
            items[count].key_bytes = stream->key_bytes;
            items[count].permits = 1;
        }
        granted += decide_many(race->table, items, count);
    }
    race->granted[thread] = granted;
}

/* Runs one round and adds its nanoseconds per decision to `sample`. */
static int run_race_round(struct race *race, wr_bench_thread_work *pass, struct wr_sample *sample)
{
    int64_t wall_ns;
    int error = wr_bench_threads_run(race->options->threads, pass, race, &wall_ns);
    if (error == 0)
        wr_sample_add(sample, (double)wall_ns / (double)(race->options->ops * race->options->threads));
    return error;
}

static double race_granted_share(const struct race *race)
{
    size_t granted = 0;
    for (size_t i = 0; i < race->options->threads; i++)
        granted += race->granted[i];
    return (double)granted / (double)(race->options->ops * race->options->threads);
}

static int run_rounds(struct race *race, struct wr_race_result *result)
{
    static struct wr_sample table, bound, granted;
    wr_bench_thread_work *pass_table = race->options->batch == 1 ? pass_single : pass_batches;
    int64_t start_at = weir_clock_now(weir_clock_monotonic());
    int64_t passed_ns = 0;
    size_t rounds = 0;
    for (; rounds < ROUNDS_MIN || (passed_ns < race->options->least_ns && rounds < WR_SAMPLE_MAX); rounds++) {
        wr_progress("round %zu", rounds + 1);
        int error = run_race_round(race, pass_bound, &bound);
        error = error != 0 ? error : run_race_round(race, pass_table, &table);
        if (error != 0)
            return error;
        wr_sample_add(&granted, race_granted_share(race));
        passed_ns = weir_clock_now(weir_clock_monotonic()) - start_at;
    }
    result->table_ns = wr_sample_median(&table);
    result->bound_ns = wr_sample_median(&bound);
    result->granted = wr_sample_median(&granted);
    result->rounds = rounds;
    return 0;
}

int wr_race_run(const struct wr_race_options *options, struct wr_race_result *ret_result)
{
    struct race race = {.options = options};
    struct wr_race_result result = {.rounds = 0};
    int error = make_race_table(&race, &result);
    error = error != 0 ? error : make_bound(&race);
    error = error != 0 ? error : make_streams(&race);
    error = error != 0 ? error : run_rounds(&race, &result);
    race_release(&race);
    if (error == 0)
        *ret_result = result;
    return error;
}
