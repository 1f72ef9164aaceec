/* SPDX-License-Identifier: MIT */
/* bench_robots.c - weir bench robots: measures parsing a robots.txt, matching paths, and matching
 * hostile rules. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <weir/time.h>

#include "base/buf.h"
#include "base/rng.h"
#include "cli/bench/bench.h"
#include "cli/bench/sample.h"
#include "cli/kit/command_options.h"
#include "cli/kit/console.h"
#include "core/web/robots/robots.h"

#define ROUNDS 101         /* Rounds are short: most pass undisturbed. */
#define ROUND_BYTES 100000 /* bytes to parse per round, enough for the resolution of the clock */
#define PATHS 1000
#define PATH_MAX_BYTES 128
#define HOSTILE_PATH_BYTES 5000
#define HOSTILE_STARS 2000

struct bench_robots_settings {
    uint64_t rules, wild, seed;
    bool json;
};

static const struct wr_option options[] = {
    {"rules", WR_COUNT(struct bench_robots_settings, rules), .value = "N", .min = 1, .max = 30000,
     .help = "Rules in the file"},
    {"wild", WR_COUNT(struct bench_robots_settings, wild), .value = "PERCENT", .min = 0, .max = 100,
     .help = "Percentage of rules with a * or a $"},
    {"seed", WR_COUNT(struct bench_robots_settings, seed), .value = "N", .min = 0, .max = UINT64_MAX,
     .help = "Seed of the rules and paths"},
    {"json", WR_FLAG(struct bench_robots_settings, json), .help = "Print JSON"},
};

static const struct wr_usage usage = {
    .who = "weir bench robots",
    .about = "Makes a robots.txt of rules such as shops and blogs have, then measures (the median of\n"
             "101 rounds; best_... is the best round, which other processes disturbed least):\n"
             "\n"
             "  parse_mb_per_s   parsing and compiling it, in 10^6 bytes a second\n"
             "  match_ns         matching one of 1000 ordinary paths\n"
             "  hostile_ms       matching a path of 5000 bytes against \"Disallow: /*a*a*a…\",\n"
             "                   and against a file of slow patterns only; the longer of the two\n"
             "  block_bytes      memory of the compiled rules\n",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

struct robots_bench_result {
    double parse_mb_per_s, match_ns, hostile_ms; /* medians of the rounds */
    double best_parse_mb_per_s, best_match_ns, best_hostile_ms;
    double allowed;
    size_t text_bytes, block_bytes;
    uint32_t rules;
};

static int64_t robots_bench_now_ns(void)
{
    return weir_clock_now(weir_clock_monotonic());
}

/* ---- generated rules and paths ---- */

static const char *random_word(struct wr_rng *rng)
{
    static const char *const words[] = {
        "search",  "admin",  "user",   "login",    "cart",    "checkout", "catalog", "product",
        "page",    "tag",    "feed",   "private",  "tmp",     "api",      "v1",      "images",
        "account", "orders", "static", "includes", "content", "plugins",  "print",   "compare",
    };
    return words[wr_rng_below(rng, sizeof words / sizeof words[0])];
}

/* Appends a path such as "/catalog/product-1234/". */
static void append_plain_pattern(struct wr_buf *buf, struct wr_rng *rng)
{
    wr_buf_append_char(buf, '/');
    wr_buf_append_string(buf, random_word(rng));
    wr_buf_append_char(buf, '/');
    wr_buf_append_string(buf, random_word(rng));
    wr_buf_append_char(buf, '-');
    wr_buf_append_u64(buf, wr_rng_below(rng, 10000));
    wr_buf_append_string(buf, wr_rng_below(rng, 2) == 0 ? "/" : "");
}

/* Appends a pattern: "/catalog/" or "/", then '*', then "?sort1234=" or "/login42$". */
static void append_wild_pattern(struct wr_buf *buf, struct wr_rng *rng)
{
    wr_buf_append_char(buf, '/');
    if (wr_rng_below(rng, 2) == 0) {
        wr_buf_append_string(buf, random_word(rng));
        wr_buf_append_char(buf, '/');
    }
    wr_buf_append_char(buf, '*');
    wr_buf_append_string(buf, wr_rng_below(rng, 2) == 0 ? "?" : "/");
    wr_buf_append_string(buf, random_word(rng));
    wr_buf_append_u64(buf, wr_rng_below(rng, 1000));
    wr_buf_append_string(buf, wr_rng_below(rng, 3) == 0 ? "$" : "=");
}

static void append_robots_file(struct wr_buf *buf, struct wr_rng *rng, const struct bench_robots_settings *settings)
{
    wr_buf_append_string(buf, "User-agent: *\n");
    for (uint64_t i = 0; i < settings->rules; i++) {
        wr_buf_append_string(buf, wr_rng_below(rng, 8) == 0 ? "Allow: " : "Disallow: ");
        (wr_rng_below(rng, 100) < settings->wild ? append_wild_pattern : append_plain_pattern)(buf, rng);
        wr_buf_append_char(buf, '\n');
    }
    wr_buf_append_string(buf, "Sitemap: https://example.org/sitemap.xml\n");
}

/* Appends a path such as "/catalog/product-1234/page2.html?sort=price". */
static void append_path(struct wr_buf *buf, struct wr_rng *rng)
{
    append_plain_pattern(buf, rng);
    wr_buf_append_char(buf, '/');
    wr_buf_append_string(buf, random_word(rng));
    wr_buf_append_u64(buf, wr_rng_below(rng, 100));
    wr_buf_append_string(buf, wr_rng_below(rng, 4) == 0 ? ".html?sort=price&page=2" : ".html");
}

/* ---- measuring ---- */

static int parse_bench_robots(struct wr_span text, struct wr_robots **ret_robots)
{
    struct wr_robots_options robots_options = {.agent = wr_span_of("weir"), .delay_max_ns = WR_ROBOTS_DELAY_MAX_NS};
    return wr_robots_parse(text, &robots_options, weir_allocator_system(), ret_robots);
}

static int measure_parse(struct wr_span text, struct robots_bench_result *result)
{
    struct wr_sample sample = {.count = 0};
    struct wr_robots *robots = NULL;
    size_t repeats = 1 + ROUND_BYTES / text.bytes;

    for (int round = 0; round < ROUNDS; round++) {
        int64_t start_at = robots_bench_now_ns();
        for (size_t i = 0; i < repeats; i++) {
            wr_robots_free(robots);
            robots = NULL;
            int error = parse_bench_robots(text, &robots);
            if (error != 0)
                return error;
        }
        int64_t took_ns = robots_bench_now_ns() - start_at;
        wr_sample_add(&sample, (double)(took_ns > 0 ? took_ns : 1) / (double)(repeats * text.bytes));
    }
    result->parse_mb_per_s = 1000 / wr_sample_median(&sample); /* converts from ns per byte */
    result->best_parse_mb_per_s = 1000 / wr_sample_least(&sample);
    result->block_bytes = wr_robots_facts(robots)->block_bytes;
    result->rules = wr_robots_facts(robots)->rules;
    wr_robots_free(robots);
    return 0;
}

static int measure_match(struct wr_span text, struct wr_rng *rng, struct robots_bench_result *result)
{
    static char paths[PATHS][PATH_MAX_BYTES];
    static size_t bytes[PATHS];
    struct wr_sample sample = {.count = 0};
    struct wr_robots *robots;
    size_t allowed = 0;
    int error = parse_bench_robots(text, &robots);

    if (error != 0)
        return error;
    for (size_t i = 0; i < PATHS; i++) {
        struct wr_buf buf;
        wr_buf_init_fixed(&buf, paths[i], sizeof paths[i]);
        append_path(&buf, rng);
        bytes[i] = buf.length;
    }
    for (int round = 0; round < ROUNDS; round++) {
        int64_t start_at = robots_bench_now_ns();
        for (size_t i = 0; i < PATHS; i++)
            allowed += wr_robots_match(robots, (struct wr_span){paths[i], bytes[i]}).allowed;
        wr_sample_add(&sample, (double)(robots_bench_now_ns() - start_at) / PATHS);
    }
    wr_robots_free(robots);
    result->match_ns = wr_sample_median(&sample);
    result->best_match_ns = wr_sample_least(&sample);
    result->allowed = (double)allowed / PATHS / ROUNDS;
    return 0;
}

/* Measures a path that contains every part of the slow patterns, but not in their order. */
static int measure_slow(struct wr_span text, struct robots_bench_result *result)
{
    static char path[HOSTILE_PATH_BYTES];
    struct wr_sample sample = {.count = 0};
    struct wr_robots *robots;
    int error = parse_bench_robots(text, &robots);

    if (error != 0)
        return error;
    memset(path, 'a', sizeof path);
    path[0] = '/';
    path[2] = 'b';
    for (int round = 0; round < ROUNDS; round++) {
        int64_t start_at = robots_bench_now_ns();
        (void)wr_robots_match(robots, (struct wr_span){path, sizeof path});
        wr_sample_add(&sample, (double)(robots_bench_now_ns() - start_at) / WEIR_MILLISECOND);
    }
    wr_robots_free(robots);
    double ms = wr_sample_median(&sample), best_ms = wr_sample_least(&sample);
    result->hostile_ms = ms > result->hostile_ms ? ms : result->hostile_ms;
    result->best_hostile_ms = best_ms > result->best_hostile_ms ? best_ms : result->best_hostile_ms;
    return 0;
}

static int measure_hostile(struct wr_buf *buf, struct robots_bench_result *result)
{
    wr_buf_clear(buf);
    wr_buf_append_string(buf, "User-agent: *\nDisallow: /");
    for (int i = 0; i < HOSTILE_STARS; i++)
        wr_buf_append_string(buf, "*a");
    int error = measure_slow(wr_buf_from(buf, 0), result);
    wr_buf_clear(buf);
    wr_buf_append_string(buf, "User-agent: *\n");
    while (buf->length + 32 < WR_ROBOTS_MAX)
        wr_buf_append_string(buf, "Disallow: /*aab\n");
    return error != 0 ? error : measure_slow(wr_buf_from(buf, 0), result);
}

static int measure_robots(const struct bench_robots_settings *settings, struct robots_bench_result *ret_result)
{
    struct robots_bench_result result = {0};
    struct wr_buf buf;
    struct wr_rng rng;

    wr_rng_init(&rng, settings->seed);
    wr_buf_init(&buf, weir_allocator_system(), WR_ROBOTS_MAX);
    append_robots_file(&buf, &rng, settings);
    result.text_bytes = buf.length;
    int error = buf.error;
    error = error != 0 ? error : measure_parse(wr_buf_from(&buf, 0), &result);
    error = error != 0 ? error : measure_match(wr_buf_from(&buf, 0), &rng, &result);
    error = error != 0 ? error : measure_hostile(&buf, &result);
    wr_buf_release(&buf);
    *ret_result = result;
    return error;
}

static void print_robots_result(const struct robots_bench_result *result, bool json)
{
    wr_print(json ? "{\"rules\": %" PRIu32 ", \"text_bytes\": %zu, \"block_bytes\": %zu, \"parse_mb_per_s\": %.1f, "
                    "\"best_parse_mb_per_s\": %.1f, \"match_ns\": %.1f, \"best_match_ns\": %.1f, \"allowed\": %.4f, "
                    "\"hostile_ms\": %.4f, \"best_hostile_ms\": %.4f}\n"
                  : "rules           %" PRIu32 "\ntext_bytes      %zu\nblock_bytes     %zu\n"
                    "parse_mb_per_s  %.1f (best %.1f)\nmatch_ns        %.1f (best %.1f)\nallowed         %.4f\n"
                    "hostile_ms      %.4f (best %.4f)\n",
             result->rules, result->text_bytes, result->block_bytes, result->parse_mb_per_s,
             result->best_parse_mb_per_s, result->match_ns, result->best_match_ns, result->allowed, result->hostile_ms,
             result->best_hostile_ms);
}

int wr_bench_robots_run(int argc, char **argv)
{
    struct bench_robots_settings settings = {.rules = 1000, .wild = 20, .seed = 1};
    struct robots_bench_result result;
    int status;

    if (!wr_options_parse(&usage, &argc, argv, &settings, &status))
        return status;
    int error = measure_robots(&settings, &result);
    if (error != 0) {
        wr_complain("%s", weir_error_text(error));
        return WR_EXIT_FAILED;
    }
    print_robots_result(&result, settings.json);
    return WR_EXIT_OK;
}
