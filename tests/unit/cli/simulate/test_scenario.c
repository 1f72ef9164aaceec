/* SPDX-License-Identifier: MIT */
/* test_scenario.c - tests scenario files: valid, invalid, and randomly damaged. */
#include "lib/alloc.h"
#include "lib/test.h"

#include "base/rng.h"
#include "cli/simulate/builtin.h"
#include "cli/simulate/scenario_file.h"

static const char whole[] = "name: all of it\n"
                            "duration: 2h\n"
                            "workers: 7\n"
                            "seeds: 5\n"
                            "backlog: 99\n"
                            "network: { rtt: 20ms, jitter: 3ms }\n"
                            "origin:\n"
                            "  service: { mean: 80ms, sigma: 1.5, law: uniform, tail: 0.02 }\n"
                            "  limiter: { kind: token_bucket, rate: 12.5, burst: 3 }\n"
                            "  station: { servers: 9, queue: 10 }\n"
                            "  reject: { status: 503, retry_after: true, headers: true }\n"
                            "  errors: { p500: 0.25, p503: 0.125 }\n"
                            "  outage: { from: 10s, to: 20s }\n"
                            "  vary: { kind: walk, period: 30s }\n"
                            "  cross: 0.4\n";

static int parse(const char *text, const weir_allocator *allocator, struct wr_scenario *ret_scenario, char *ret_why)
{
    return wr_scenario_parse("x.yaml", text, strlen(text), allocator, ret_scenario, ret_why);
}

static struct wr_scenario parsed(const char *text)
{
    struct wr_scenario scenario;
    char why[WR_CONFIG_WHY_BYTES];
    if (parse(text, weir_allocator_system(), &scenario, why) < 0)
        fail_msg("%s", why);
    return scenario;
}

static void every_scenario_key_sets_its_field(void **state)
{
    (void)state;
    struct wr_scenario scenario = parsed(whole);
    const struct wr_origin *origin = &scenario.origin;
    assert_string_equal(scenario.name, "all of it");
    assert_true(scenario.duration_ns == 2 * WEIR_HOUR);
    assert_int_equal(scenario.workers, 7);
    assert_int_equal(scenario.seeds, 5);
    assert_int_equal(scenario.backlog, 99);
    assert_int_equal(scenario.network.rtt_ns, 20 * WEIR_MILLISECOND);
    assert_int_equal(scenario.network.jitter_ns, 3 * WEIR_MILLISECOND);
    assert_int_equal(origin->service.mean_ns, 80 * WEIR_MILLISECOND);
    assert_true(origin->service.sigma == 1.5 && origin->service.tail == 0.02);
    assert_int_equal(origin->service.law, WR_LAW_UNIFORM);
    assert_int_equal(origin->limiter.kind, WR_LIMITER_TOKEN_BUCKET);
    assert_true(origin->limiter.rate == 12.5 && origin->limiter.burst == 3);
    assert_int_equal(origin->station.servers, 9);
    assert_int_equal(origin->station.queue, 10);
    assert_int_equal(origin->reject.status, 503);
    assert_true(origin->reject.retry_after && origin->reject.headers);
    assert_true(origin->errors.p500 == 0.25 && origin->errors.p503 == 0.125);
    assert_true(origin->outage.from_ns == 10 * WEIR_SECOND && origin->outage.to_ns == 20 * WEIR_SECOND);
    assert_int_equal(origin->vary.kind, WR_VARY_WALK);
    assert_true(origin->vary.period_ns == 30 * WEIR_SECOND);
    assert_true(origin->cross == 0.4);
    assert_int_equal(scenario.crowd.hosts, 0);
}

static void every_kind_of_limiter_has_its_own_scenario_keys(void **state)
{
    (void)state;
    struct wr_scenario scenario =
        parsed("name: x\norigin: { limiter: { kind: sliding_ban, quota: 4, window: 5s, ban: 6s, "
               "status: 403, extend: true } }\n");
    assert_int_equal(scenario.origin.limiter.kind, WR_LIMITER_SLIDING_BAN);
    assert_int_equal(scenario.origin.limiter.quota, 4);
    assert_int_equal(scenario.origin.limiter.window_ns, 5 * WEIR_SECOND);
    assert_int_equal(scenario.origin.limiter.ban_ns, 6 * WEIR_SECOND);
    assert_int_equal(scenario.origin.limiter.status, 403);
    assert_true(scenario.origin.limiter.extend);
    scenario = parsed("name: x\norigin: { limiter: { kind: concurrency, max: 8 } }\n");
    assert_int_equal(scenario.origin.limiter.max, 8);

    static const char *const slips[] = {"fixed_window, rate: 5", "token_bucket, quota: 5", "fixed_window, ban: 5s",
                                        "token_bucket, max: 5",  "concurrency, burst: 5",  "none, status: 403"};
    for (size_t i = 0; i < sizeof slips / sizeof *slips; i++) {
        char text[128], why[WR_CONFIG_WHY_BYTES];
        snprintf(text, sizeof text, "name: x\norigin: { limiter: { kind: %s } }\n", slips[i]);
        assert_int_equal(parse(text, weir_allocator_system(), &scenario, why), WEIR_E_INVAL);
        assert_memory_equal(why, "x.yaml:2:20: ", 13);
    }
}

static void missing_scenario_keys_have_the_defaults_of_the_simulator(void **state)
{
    (void)state;
    struct wr_scenario wanted, scenario = parsed("name: x\norigin: {}\n");
    wr_scenario_init(&wanted);
    wanted.name[0] = 'x';
    assert_memory_equal(&scenario, &wanted, sizeof scenario);
}

static void crowd_mixes_origins_that_have_the_usual_defaults(void **state)
{
    (void)state;
    struct wr_scenario usual, scenario = parsed("name: x\n"
                                                "crowd: { hosts: 3, zipf: 1.5, largest: 10, seed: 4 }\n"
                                                "mix:\n"
                                                "  - weight: 2.5\n"
                                                "    origin: { limiter: { kind: concurrency, max: 3 } }\n"
                                                "  - origin: { station: { servers: 2, queue: 1 } }\n");
    wr_scenario_init(&usual);
    assert_int_equal(scenario.crowd.hosts, 3);
    assert_true(scenario.crowd.zipf == 1.5);
    assert_int_equal(scenario.crowd.largest, 10);
    assert_int_equal(scenario.crowd.seed, 4);
    assert_int_equal(scenario.mix_count, 2);
    assert_true(scenario.mix[0].weight == 2.5 && scenario.mix[1].weight == 1);
    assert_int_equal(scenario.mix[0].origin.limiter.max, 3);
    assert_int_equal(scenario.mix[1].origin.station.servers, 2);
    assert_int_equal(scenario.mix[1].origin.service.mean_ns, usual.origin.service.mean_ns);
}

static void built_in_scenarios_are_parsed_and_described(void **state)
{
    (void)state;
    char text[256];
    assert_true(wr_builtins_count >= 34);
    for (size_t i = 0; i < wr_builtins_count; i++) {
        struct wr_scenario scenario = parsed(wr_builtins[i].text);
        assert_string_equal(scenario.name, wr_builtins[i].name);
        assert_null(wr_scenario_wrong(&scenario));
        wr_scenario_describe(&scenario, text, sizeof text);
        assert_true(strlen(text) > 3 && strlen(text) < 100);
    }
}

static void scenario_description_names_the_essentials(void **state)
{
    (void)state;
    char text[512];
    struct wr_scenario scenario = parsed(whole);
    wr_scenario_describe(&scenario, text, sizeof text);
    assert_string_equal(text, "token bucket, 12.5/s, burst 3, 9 servers, queue of 10, Retry-After, X-RateLimit, "
                              "wanders, others take 40 %, 25 % are 500, 12.5 % are 503, down for 10s, heavy-tailed "
                              "latency");
    wr_scenario_describe(&scenario, text, 13); /* too small: truncated */
    assert_string_equal(text, "token bucket");
}

static void parsing_a_scenario_reports_each_failed_allocation(void **state)
{
    (void)state;
    test_allocator test;
    int error = WEIR_E_NOMEM;
    test_allocator_init(&test);
    for (long n = 1; error != 0; n++) {
        struct wr_scenario scenario;
        char why[WR_CONFIG_WHY_BYTES];
        test.fail_at = n;
        error = parse(whole, &test.allocator, &scenario, why);
        assert_int_equal(test.live, 0);
        if (error != 0) {
            assert_int_equal(error, WEIR_E_NOMEM);
            assert_string_equal(why, "x.yaml: out of memory");
        }
    }
    assert_true(test.takes > 1);
}

/* Inserts a random word at a random position and returns the new size. */
static size_t put_word(struct wr_rng *rng, char *text, size_t bytes, size_t room)
{
    static const char *const words[] = {
        "0",    "-1",          "1e9",      "nan",   ".inf",   "999999999999999999999",
        "1us",  "9999d",       "{}",       "[]",    "null",   "true",
        "&a",   "*a",          "!!int",    "---\n", "kind: ", "\t",
        "\xff", "limiter: ",   "mix:",     "- ",    "{",      "name:",
        "step", "sliding_ban", "0.000001", ", ",    "65536",  "\n",
    };
    const char *word = words[wr_rng_below(rng, sizeof words / sizeof words[0])];
    size_t length = strlen(word), at = (size_t)wr_rng_below(rng, bytes + 1);
    size_t over = (size_t)wr_rng_below(rng, 8); /* number of bytes that the word replaces */
    over = over < bytes - at ? over : bytes - at;
    if (bytes - over + length > room)
        return bytes;
    memmove(text + at + length, text + at + over, bytes - at - over);
    memcpy(text + at, word, length);
    return bytes - over + length;
}

static void damaged_scenario_files_are_parsed_within_bounds_or_refused(void **state)
{
    (void)state;
    struct wr_rng rng;
    unsigned read = 0, refused = 0;
    wr_rng_init(&rng, weir_test_seed());
    for (int step = 0; step < 30000; step++) {
        char text[2048], why[WR_CONFIG_WHY_BYTES] = "";
        struct wr_scenario scenario = {.workers = 12345};
        size_t which = (size_t)wr_rng_below(&rng, wr_builtins_count + 1);
        const char *good = which == wr_builtins_count ? whole : wr_builtins[which].text;
        size_t bytes = strlen(good) < sizeof text ? strlen(good) : sizeof text;
        memcpy(text, good, bytes);
        for (uint64_t changes = 1 + wr_rng_below(&rng, 3); changes > 0; changes--)
            bytes = put_word(&rng, text, bytes, sizeof text);
        char *copy = malloc(bytes + 1);
        memcpy(copy, text, bytes);
        int error = wr_scenario_parse("x.yaml", copy, bytes, weir_allocator_system(), &scenario, why);
        free(copy);
        if (error == 0) {
            read++;
            assert_null(wr_scenario_wrong(&scenario));
            continue;
        }
        refused++;
        assert_int_equal(error, WEIR_E_INVAL);
        assert_int_equal(scenario.workers, 12345);
        unsigned line = 0, column = 0;
        assert_int_equal(sscanf(why, "x.yaml:%u:%u: ", &line, &column), 2);
        assert_true(line >= 1 && column >= 1);
        assert_non_null(strstr(why, "; "));
    }
    assert_true(read > 200 && refused > 1000); /* otherwise the words are badly chosen */
}

WEIR_TESTS(test(every_scenario_key_sets_its_field), test(every_kind_of_limiter_has_its_own_scenario_keys),
           test(missing_scenario_keys_have_the_defaults_of_the_simulator),
           test(crowd_mixes_origins_that_have_the_usual_defaults), test(built_in_scenarios_are_parsed_and_described),
           test(scenario_description_names_the_essentials), test(parsing_a_scenario_reports_each_failed_allocation),
           test(damaged_scenario_files_are_parsed_within_bounds_or_refused))
