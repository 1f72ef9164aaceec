/* SPDX-License-Identifier: MIT */
/* limits.c - measures one decision of each limiter, and of a table. */
#include "cost.h"

#include <stdlib.h>
#include <weir/limit.h>
#include <weir/table.h>

#include "base/rng.h"

#define DECISIONS 5000
#define STEP_NS (10 * WEIR_MICROSECOND)
#define HITS 5000
#define KEYS 3000
#define MISSES 4000

/* ---- limiters ---- */

static weir_limiter *limiter;

/* Each limiter grants some requests and refuses others. */
static void open_limiter(int error, const weir_limit *limit)
{
    weir_limiter_options options;
    weir_limiter_options_init(&options);
    options.clock = &cost_clock.clock;
    cost_need(error == 0 && weir_limiter_new(limit, 1, &options, &limiter) == 0, "no limiter");
}

static void open_token_bucket(void)
{
    weir_limit limit;
    open_limiter(weir_limit_token_bucket(&limit, 100, 50, WEIR_MILLISECOND), &limit);
}

static void open_fixed_window(void)
{
    weir_limit limit;
    open_limiter(weir_limit_fixed_window(&limit, 50, WEIR_MILLISECOND), &limit);
}

static void open_sliding_window(void)
{
    weir_limit limit;
    open_limiter(weir_limit_sliding_window(&limit, 50, WEIR_MILLISECOND), &limit);
}

static void open_sliding_log(void)
{
    weir_limit limit;
    open_limiter(weir_limit_sliding_log(&limit, 50, WEIR_MILLISECOND), &limit);
}

static void open_leaky_bucket(void)
{
    weir_limit limit;
    open_limiter(weir_limit_leaky_bucket(&limit, 2, 20 * WEIR_MICROSECOND), &limit);
}

static void open_concurrency(void)
{
    weir_limit limit;
    open_limiter(weir_limit_concurrency(&limit, 10), &limit);
}

static void decide(uint32_t number)
{
    weir_decision decision;
    (void)number;
    cost_clock.now += STEP_NS;
    cost_need(weir_limiter_try(limiter, 1, &decision) == 0, "a limiter did not decide");
}

/* Half of the permits are released before the next request. */
static void decide_and_release(uint32_t number)
{
    decide(number);
    if (number % 2 == 0)
        (void)weir_limiter_release(limiter, 1);
}

static void close_limiter(void)
{
    weir_limiter_free(limiter);
}

/* ---- a table ---- */

static weir_table *table;
static char keys[KEYS + 2 * MISSES][COST_KEY_BYTES + 1];
static struct wr_rng rng;

static void ask_table(const char *key)
{
    weir_decision decision;
    cost_clock.now += STEP_NS;
    cost_need(weir_table_try(table, key, COST_KEY_BYTES, 1, &decision) == 0, "a table did not decide");
}

static void open_table(void)
{
    weir_limit limit;
    weir_table_options options;
    weir_table_options_init(&options);
    options.clock = &cost_clock.clock;
    options.max_keys = 2 * (KEYS + 2 * MISSES);
    wr_rng_init(&rng, 1);
    cost_need(weir_limit_token_bucket(&limit, 100, 1000, WEIR_SECOND) == 0 &&
                  weir_table_new(&limit, 1, &options, &table) == 0,
              "no table");
    for (size_t i = 0; i < KEYS + 2 * MISSES; i++)
        cost_key(i, keys[i]);
    for (size_t i = 0; i < KEYS; i++)
        ask_table(keys[i]);
}

static void hit(uint32_t number)
{
    (void)number;
    ask_table(keys[wr_rng_below(&rng, KEYS)]);
}

/* The shards of the table grow during the measurement; that cost is included. */
static void miss(uint32_t number)
{
    ask_table(keys[KEYS + number]);
}

static void close_table(void)
{
    weir_table_free(table);
}

const struct cost_figure cost_limits[] = {
    {"token_bucket", DECISIONS, open_token_bucket, decide, close_limiter},
    {"fixed_window", DECISIONS, open_fixed_window, decide, close_limiter},
    {"sliding_window", DECISIONS, open_sliding_window, decide, close_limiter},
    {"sliding_log", DECISIONS, open_sliding_log, decide, close_limiter},
    {"leaky_bucket", DECISIONS, open_leaky_bucket, decide, close_limiter},
    {"concurrency", DECISIONS, open_concurrency, decide_and_release, close_limiter},
    {"table_hit", HITS, open_table, hit, close_table},
    {"table_miss", MISSES, open_table, miss, close_table},
    {.name = NULL},
};
