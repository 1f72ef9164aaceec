/* SPDX-License-Identifier: MIT */
/* bench_rules.c - weir bench rules: measures a decision by the rules of a daemon. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/rng.h"
#include "cli/bench/bench.h"
#include "cli/bench/sample.h"
#include "cli/kit/command_options.h"
#include "cli/kit/console.h"
#include "limiter/memory/memory.h"
#include "serve/rules/rules.h"

#define ROUNDS 101 /* Rounds are short: most end before another process wants the processor. */
#define REQUESTS_PER_ROUND 5000
#define NAME_BYTES 32

struct bench_rules_settings {
    uint64_t keys, rules;
    bool json;
};

static const struct wr_option options[] = {
    {"keys", WR_COUNT(struct bench_rules_settings, keys), .value = "N", .min = 1, .max = 10000000,
     .help = "Number of callers"},
    {"rules", WR_COUNT(struct bench_rules_settings, rules), .value = "N", .min = 1, .max = WR_RULES_MAX,
     .help = "Number of rules, of which only the last matches"},
    {"json", WR_FLAG(struct bench_rules_settings, json), .help = "Print JSON"},
};

static const struct wr_usage usage = {
    .who = "weir bench rules",
    .about = "Measures a decision of weir serve without its HTTP: a request that nginx makes with\n"
             "auth_request is matched against rules by path, its key is a header, and its quota is\n"
             "reported (the median of 101 rounds, and the best round). Keys are chosen at random.\n",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

/* Fields that nginx passes on. The last one holds the name of the caller. */
static weir_header headers[] = {
    {"Host", "weir"},
    {"X-Original-URI", "/articles/2026/november/weirs?page=2&sort=date"},
    {"X-Original-Method", "GET"},
    {"X-Real-IP", "203.0.113.9"},
    {"X-Forwarded-For", "203.0.113.9"},
    {"X-Forwarded-Proto", "https"},
    {"User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"},
    {"Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"},
    {"Accept-Language", "en-US,en;q=0.5"},
    {"Accept-Encoding", "gzip, deflate, br, zstd"},
    {"Cookie", "session=9b1d2c3e4f5a6b7c8d9e0f1a2b3c4d5e; theme=dark"},
    {"X-User-Id", NULL},
};
#define HEADERS (sizeof headers / sizeof headers[0])

struct rules_bench {
    struct wr_rules *book;
    char (*names)[NAME_BYTES];
    uint64_t keys;
    struct wr_rng rng;
    uint64_t granted;
};

static void write_bench_rules(const struct bench_rules_settings *settings, struct wr_rules_settings *book)
{
    wr_rules_settings_init(book);
    book->rule_count = (uint32_t)settings->rules;
    book->max_keys = settings->keys * 2;
    for (uint32_t i = 0; i < book->rule_count; i++) {
        struct wr_rule_settings *rule = &book->rules[i];
        bool is_last = i + 1 == book->rule_count;
        snprintf(rule->name, sizeof rule->name, "rule-%" PRIu32, i);
        snprintf(rule->limits[0], sizeof rule->limits[0], "1000/s burst=100");
        snprintf(rule->key[0], sizeof rule->key[0], "header:x-user-id");
        snprintf(rule->match.paths[0], sizeof rule->match.paths[0],
                 is_last ? "/articles/**" : "/service-%" PRIu32 "/**", i);
        rule->limit_count = rule->key_count = rule->match.path_count = rule->cost = 1;
    }
}

static double measure_decisions(struct rules_bench *bench, struct wr_verdict *verdict)
{
    weir_header_list list = {headers, HEADERS};
    weir_request request;

    weir_request_init(&request, "GET", headers[1].value, "unix:");
    request.header = weir_header_list_find;
    request.header_context = &list;
    int64_t start_at = weir_clock_now(weir_clock_monotonic());
    for (int i = 0; i < REQUESTS_PER_ROUND; i++) {
        headers[HEADERS - 1].value = bench->names[wr_rng_below(&bench->rng, bench->keys)];
        wr_rules_try(bench->book, &request, verdict);
        bench->granted += verdict->allowed;
    }
    return (double)(weir_clock_now(weir_clock_monotonic()) - start_at) / REQUESTS_PER_ROUND;
}

/* Asks for every key once, so that the table knows all callers before the measurement. */
static void fill_callers(struct rules_bench *bench, struct wr_verdict *verdict)
{
    char rule[32] = "";
    struct wr_rule_view view;

    for (uint32_t i = 0; wr_rule_view_get(bench->book, i, &view) == 0; i++)
        snprintf(rule, sizeof rule, "rule-%" PRIu32, i);
    for (uint64_t i = 0; i < bench->keys; i++) {
        snprintf(bench->names[i], NAME_BYTES, "user-%010" PRIu64, i);
        (void)wr_rules_try_key(bench->book, rule, bench->names[i], strlen(bench->names[i]), 1, verdict);
    }
}

static void run_rules_bench(struct rules_bench *bench, const struct bench_rules_settings *settings)
{
    static struct wr_sample sample;
    static struct wr_verdict verdict;

    fill_callers(bench, &verdict);
    for (int round = 0; round < ROUNDS; round++)
        wr_sample_add(&sample, measure_decisions(bench, &verdict));
    wr_print(settings->json ? "{\"keys\": %" PRIu64 ", \"rules\": %" PRIu64 ", \"requests\": %d, \"granted\": %.3f, "
                              "\"ns_per_decision\": %.1f, \"best_ns_per_decision\": %.1f}\n"
                            : "%" PRIu64 " keys, %" PRIu64
                              " rules, %d requests, %.3f of them granted: %.1f ns (best %.1f)\n",
             settings->keys, settings->rules, ROUNDS * REQUESTS_PER_ROUND,
             (double)bench->granted / (ROUNDS * REQUESTS_PER_ROUND), wr_sample_median(&sample),
             wr_sample_least(&sample));
}

int wr_bench_rules_run(int argc, char **argv)
{
    struct bench_rules_settings settings = {.keys = 50000, .rules = 1};
    const weir_allocator *allocator = weir_allocator_system();
    struct rules_bench bench = {.book = NULL};
    char why[WR_CONFIG_WHY_BYTES] = "out of memory";
    int status;

    if (!wr_options_parse(&usage, &argc, argv, &settings, &status))
        return status;
    struct wr_rules_settings *book = wr_alloc(allocator, sizeof *book, _Alignof(struct wr_rules_settings));
    bench.keys = settings.keys;
    bench.names = wr_alloc_array(allocator, wr_size_of(settings.keys), sizeof *bench.names, 1);
    wr_rng_init(&bench.rng, 1);
    int error = WEIR_E_NOMEM;
    if (book != NULL && bench.names != NULL) {
        write_bench_rules(&settings, book);
        error = wr_rules_new(book, NULL, &bench.book, why, sizeof why);
    }
    if (error == 0)
        run_rules_bench(&bench, &settings);
    else
        wr_complain("%s", why);
    wr_rules_free(bench.book);
    wr_free(allocator, bench.names, wr_size_of(settings.keys) * sizeof *bench.names, 1);
    wr_free(allocator, book, sizeof *book, _Alignof(struct wr_rules_settings));
    return error == 0 ? WR_EXIT_OK : WR_EXIT_FAILED;
}
