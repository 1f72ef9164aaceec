/* SPDX-License-Identifier: MIT */
/* test_options.c - tests pace options, profiles and their names (S0-48 ... S0-66, S0-69, S2-19 ...
 * S2-22, R1, R2, R21, R24, R26). */
#include "rig.h"
#include <math.h>

/* Checks that all fields are equal, without the padding. */
static void assert_same(const weir_pace_options *a, const weir_pace_options *b)
{
#define SAME(field) assert_true(a->field == b->field)
    SAME(size);
    SAME(profile);
    SAME(strategy);
    SAME(off);
    SAME(min_interval_ns);
    SAME(max_rate);
    SAME(max_in_flight);
    SAME(retry_after_max_ns);
    SAME(reservation_max_ns);
    SAME(jitter_over_ns);
    SAME(initial_rate);
    SAME(min_rate);
    SAME(rate_ceiling);
    SAME(burst);
    SAME(increase);
    SAME(decrease);
    SAME(latency_target_ns);
    SAME(degrade_factor);
    SAME(latency_weight);
    SAME(latency_ring);
    SAME(window_ns);
    SAME(window_step_ns);
    SAME(breaker);
    SAME(error_threshold);
    SAME(min_samples);
    SAME(consecutive_failures);
    SAME(open_ns);
    SAME(probes);
    SAME(base_delay_ns);
    SAME(max_delay_ns);
    SAME(delay_up_ns);
    SAME(delay_down_ns);
    SAME(probe_after);
    SAME(learn_on_403);
    SAME(learn_on_503);
    SAME(half_life_ns);
    SAME(cancel_after);
    SAME(cancel_delay_ns);
    SAME(concurrency_step_ns);
    SAME(retry.base_ns);
    SAME(retry.max_ns);
    SAME(retry.attempts);
    SAME(retry.blocking_retries);
#undef SAME
}

/* S0-48 ... S0-66, S2-19 ... S2-22. (S0-67 and S0-68 belong to the registry of hosts.) */
static void every_number_has_the_default_of_the_documents(void **state)
{
    (void)state;
    weir_pace_options o;
    weir_pace_options_init(&o);
    assert_int_equal(o.size, sizeof o);
    assert_false(o.off);
    assert_true(o.initial_rate == 2 && o.min_rate == 0.25 && o.rate_ceiling == 8 && o.burst == 4);
    assert_true(o.increase == 0.25 && o.decrease == 0.5 && o.degrade_factor == 2);
    assert_int_equal(o.latency_target_ns, S);
    assert_true(o.latency_weight == 0.2 && o.latency_ring == 64);
    assert_true(o.breaker && o.error_threshold == 0.5 && o.min_samples == 10 && o.consecutive_failures == 5);
    assert_true(o.open_ns == 15 * S && o.probes == 3);
    assert_true(o.retry.base_ns == 200 * MS && o.retry.max_ns == 5 * S);
    assert_true(o.retry.attempts == 3 && o.retry.blocking_retries == 3);
    assert_true(o.window_ns == 30 * S && o.window_step_ns == 2 * S);
    assert_true(o.base_delay_ns == 500 * MS && o.max_delay_ns == 60 * S && o.probe_after == 20);
    assert_true(o.delay_up_ns == S && o.delay_down_ns == S && o.half_life_ns == 6 * WEIR_HOUR);
    assert_true(o.cancel_after == 0 && o.cancel_delay_ns == 60 * S && o.concurrency_step_ns == 5 * S);
    assert_false(o.learn_on_403 || o.learn_on_503);
    assert_true(o.retry_after_max_ns == WEIR_DAY && o.reservation_max_ns == 2 * WEIR_MINUTE && o.jitter_over_ns == S);
    weir_pace_options_init(NULL);
}

/* R1, R2, R21, R24 */
static void profiles_choose_strategy_and_numbers(void **state)
{
    (void)state;
    weir_pace_options o = profile_options(WEIR_PROFILE_ADAPTIVE);
    assert_true(o.strategy == WEIR_STRATEGY_TIDE && o.max_rate == 8 && o.max_in_flight == 8 && o.min_interval_ns == 0);
    o = profile_options(WEIR_PROFILE_AIMD);
    assert_true(o.strategy == WEIR_STRATEGY_AIMD && o.max_rate == 0 && o.max_in_flight == 0 && o.rate_ceiling == 8);
    o = profile_options(WEIR_PROFILE_STRICT);
    assert_true(o.strategy == WEIR_STRATEGY_FIXED && o.min_interval_ns == S);
    o = profile_options(WEIR_PROFILE_LEARNED);
    assert_true(o.strategy == WEIR_STRATEGY_LEARNED && o.base_delay_ns == 500 * MS && o.delay_up_ns == S);
    o = profile_options(WEIR_PROFILE_UNLIMITED);
    assert_true(o.strategy == WEIR_STRATEGY_NONE && !o.breaker && !o.off && o.max_rate == 0 && o.max_in_flight == 0);
    o = profile_options(WEIR_PROFILE_ORIGIN_TUNED);
    assert_true(o.strategy == WEIR_STRATEGY_AIMD_LEARNED && o.error_threshold == 0.4 && o.probe_after == 5);
    assert_true(o.delay_up_ns == 500 * MS && o.delay_down_ns == 500 * MS && o.learn_on_403 && o.learn_on_503);
    assert_int_equal(weir_pace_options_profile(&o, (weir_profile)6), WEIR_E_INVAL);
    assert_int_equal(weir_pace_options_profile(NULL, WEIR_PROFILE_STRICT), WEIR_E_INVAL);
}

static void names_of_profiles_and_strategies_match_their_numbers(void **state)
{
    (void)state;
    weir_profile profile = WEIR_PROFILE_STRICT;
    assert_string_equal(weir_strategy_name(WEIR_STRATEGY_TIDE), "tide");
    assert_string_equal(weir_strategy_name(WEIR_STRATEGY_NONE), "none");
    for (int i = 6; i < 40; i++)
        assert_null(weir_profile_name((weir_profile)i));
    for (int i = 8; i < 40; i++)
        assert_null(weir_strategy_name((weir_strategy)i));
    for (int i = 0; i < 6; i++) {
        assert_int_equal(weir_profile_named(weir_profile_name((weir_profile)i), &profile), 0);
        assert_int_equal(profile, i);
    }
    assert_int_equal(weir_profile_named("polite", &profile), WEIR_E_INVAL);
    assert_string_equal(weir_error_detail(),
                        "profile \"polite\": unknown; use adaptive, aimd, strict, learned, unlimited "
                        "or origin-tuned");
    assert_int_equal(weir_profile_named(NULL, &profile), WEIR_E_INVAL);
    assert_int_equal(weir_profile_named("aimd", NULL), WEIR_E_INVAL);
    assert_int_equal(profile, WEIR_PROFILE_ORIGIN_TUNED);
}

/* R26, S0-69 */
static void zero_option_means_its_default(void **state)
{
    (void)state;
    weir_pace_options zero = {.size = sizeof zero, .breaker = true}, filled, normal;
    weir_pace_options_init(&normal);
    normal.max_rate = normal.max_in_flight = 0; /* 0 means no limit for these */
    assert_int_equal(wr_pace_options_check(&zero, &filled), 0);
    assert_same(&filled, &normal);
    weir_pace_options_init(&normal);
    assert_int_equal(wr_pace_options_check(NULL, &filled), 0);
    assert_same(&filled, &normal);
}

static void refuses(weir_pace_options options, const char *why)
{
    weir_pace_options filled;
    memset(&filled, 7, sizeof filled);
    assert_int_equal(wr_pace_options_check(&options, &filled), WEIR_E_INVAL);
    if (strstr(weir_error_detail(), why) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", weir_error_detail(), why);
    assert_int_equal(filled.size, SIZE_MAX / 255 * 7); /* unchanged */
}

#define REFUSES(field, value, why)                                     \
    do {                                                               \
        weir_pace_options o_ = profile_options(WEIR_PROFILE_ADAPTIVE); \
        o_.field = (value);                                            \
        refuses(o_, why);                                              \
    } while (0)

/* R26 */
static void invalid_pace_options_are_refused_and_the_error_says_what_is_valid(void **state)
{
    (void)state;
    REFUSES(size, 8, "weir_pace_options_init");
    REFUSES(profile, (weir_profile)77, "WEIR_PROFILE_ADAPTIVE");
    REFUSES(strategy, (weir_strategy)77, "WEIR_STRATEGY_TIDE");
    REFUSES(max_rate, -1, "the option max_rate must be 1e-9 ... 1e9 starts per second, or 0 for no limit");
    REFUSES(max_rate, (double)NAN, "max_rate");
    REFUSES(max_rate, (double)INFINITY, "max_rate");
    REFUSES(decrease, 1.5, "the option decrease must be a factor of 0.001 ... 0.999");
    REFUSES(decrease, 1, "decrease");
    REFUSES(error_threshold, (double)NAN, "error_threshold");
    REFUSES(error_threshold, 1.01, "error_threshold");
    REFUSES(open_ns, -1, "the option open must be a duration of 1ms or more");
    REFUSES(min_interval_ns, -1, "min_interval");
    REFUSES(min_interval_ns, INT64_MAX, "min_interval");
    REFUSES(latency_ring, WEIR_RING_MAX + 1, "1 ... 1024");
    REFUSES(probes, UINT16_MAX + 1, "probes");
    REFUSES(cancel_after, UINT16_MAX + 1, "cancel_after");
    REFUSES(retry.base_ns, -1, "retry_base");
    REFUSES(burst, 0.5, "burst");
    REFUSES(degrade_factor, 0.5, "degrade_factor");
    REFUSES(min_rate, 9, "rate_ceiling");
    REFUSES(base_delay_ns, WEIR_HOUR, "max_delay");
    REFUSES(window_step_ns, WEIR_MINUTE, "window");
    REFUSES(window_step_ns, 30 * S / 129, "128");
    REFUSES(retry.base_ns, WEIR_MINUTE, "retry_max");
}

static void set(weir_pace_options *options, const char *name, const char *value)
{
    if (weir_pace_options_set(options, name, value) != 0)
        fail_msg("%s=%s: %s", name, value, weir_error_detail());
}

/* Returns the options that every_option_can_be_set_by_its_name sets. */
static weir_pace_options all_set(void)
{
    int64_t ns = 1500 * MS;
    return (weir_pace_options){.size = sizeof(weir_pace_options),
                               .profile = WEIR_PROFILE_UNLIMITED,
                               .strategy = WEIR_STRATEGY_PID,
                               .off = true,
                               .min_interval_ns = ns,
                               .max_rate = 7.5,
                               .max_in_flight = 7,
                               .retry_after_max_ns = ns,
                               .reservation_max_ns = ns,
                               .jitter_over_ns = ns,
                               .initial_rate = 7.5,
                               .min_rate = 7.5,
                               .rate_ceiling = 7.5,
                               .burst = 7.5,
                               .increase = 7.5,
                               .decrease = 0.75,
                               .latency_target_ns = ns,
                               .degrade_factor = 7.5,
                               .latency_weight = 0.75,
                               .latency_ring = 7,
                               .window_ns = ns,
                               .window_step_ns = ns,
                               .breaker = true,
                               .error_threshold = 0.75,
                               .min_samples = 7,
                               .consecutive_failures = 7,
                               .open_ns = ns,
                               .probes = 7,
                               .base_delay_ns = ns,
                               .max_delay_ns = ns,
                               .delay_up_ns = ns,
                               .delay_down_ns = ns,
                               .probe_after = 7,
                               .learn_on_403 = true,
                               .learn_on_503 = true,
                               .half_life_ns = ns,
                               .cancel_after = 7,
                               .cancel_delay_ns = ns,
                               .concurrency_step_ns = ns,
                               .retry = {.base_ns = ns, .max_ns = ns, .attempts = 7, .blocking_retries = 7}};
}

/* Every field of S0 and S2 can be set by a flag or a file. */
static void every_option_can_be_set_by_its_name(void **state)
{
    (void)state;
    weir_pace_options o = profile_options(WEIR_PROFILE_UNLIMITED);
    static const char *const durations[] = {
        "min_interval", "retry_after_max",  "reservation_max", "jitter_over", "latency_target", "window",
        "open",         "base_delay",       "max_delay",       "delay_up",    "delay_down",     "half_life",
        "cancel_delay", "concurrency_step", "retry_base",      "retry_max",   "window_step"};
    static const char *const numbers[] = {"max_rate",       "initial_rate",   "min_rate", "rate_ceiling",
                                          "burst",          "increase",       "decrease", "degrade_factor",
                                          "latency_weight", "error_threshold"};
    static const char *const counts[] = {"max_in_flight",        "latency_ring",   "min_samples",
                                         "consecutive_failures", "probes",         "probe_after",
                                         "cancel_after",         "retry_attempts", "blocking_retries"};
    for (size_t i = 0; i < sizeof durations / sizeof *durations; i++)
        set(&o, durations[i], "1500ms");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        bool is_share = strchr("dle", numbers[i][0]) != NULL && strcmp(numbers[i], "degrade_factor") != 0;
        set(&o, numbers[i], is_share ? "0.75" : "7.5");
    }
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        set(&o, counts[i], "7");
    set(&o, "strategy", "pid");
    set(&o, "off", "yes");
    set(&o, "breaker", "on");
    set(&o, "learn_on_403", "1");
    set(&o, "learn_on_503", "true");
    weir_pace_options wanted = all_set();
    assert_same(&o, &wanted);
    set(&o, "open", "0");
    assert_int_equal(o.open_ns, 15 * S);
    set(&o, "max_rate", "0");
    assert_true(o.max_rate == 0);
    set(&o, "profile", "strict");
    assert_true(o.strategy == WEIR_STRATEGY_FIXED && o.min_interval_ns == S && !o.off);
}

/* The text that prints an option also sets it. */
static void every_printed_option_value_can_be_set(void **state)
{
    (void)state;
    weir_pace_options from = all_set(), to = profile_options(WEIR_PROFILE_UNLIMITED);
    size_t count = 0;
    for (const char *name; (name = wr_pace_option_name(count)) != NULL; count++) {
        char text[64] = "";
        struct wr_buf buf;
        wr_buf_init_fixed(&buf, text, sizeof text);
        wr_pace_option_append(&buf, &from, name);
        assert_int_equal(buf.error, 0);
        set(&to, name, text);
        assert_true(strlen(wr_pace_option_wanted(name)) > 8);
    }
    assert_same(&from, &to);
    assert_int_equal(count, 41);
    assert_null(wr_pace_option_wanted("opne"));
    assert_string_equal(wr_pace_option_wanted("open"), "a duration of 1ms or more");
}

static void invalid_texts_for_options_are_refused_and_change_nothing(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"open", "15 parsecs"}, {"open", "-1s"},     {"open", "1us"},        {"max_rate", "fast"}, {"max_rate", "nan"},
        {"max_rate", "inf"},    {"max_rate", "-2"},  {"max_rate", "1e3"},    {"probes", "2.5"},    {"probes", "70000"},
        {"off", "maybe"},       {"strategy", "ebb"}, {"profile", "polite"},  {"open_ns", "15s"},   {"", "1"},
        {"decrease", "1"},      {"breaker", ""},     {"latency_ring", "-1"}, {"burst", "0.5"},     {"size", "1"}};
    weir_pace_options o, normal;
    weir_pace_options_init(&o);
    weir_pace_options_init(&normal);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (weir_pace_options_set(&o, bad[i][0], bad[i][1]) != WEIR_E_INVAL)
            fail_msg("%s=%s was accepted", bad[i][0], bad[i][1]);
        assert_same(&o, &normal);
    }
    assert_int_equal(weir_pace_options_set(&o, "max_rates", "1"), WEIR_E_INVAL);
    assert_string_equal(weir_error_detail(), "option \"max_rates\": unknown; did you mean max_rate?");
    static const char *const near[] = {"strategi", "profiles", "breakr", "learn_on_404", "brust", "retry_atempts"};
    static const char *const meant[] = {"strategy", "profile", "breaker", "learn_on_403", "burst", "retry_attempts"};
    for (size_t i = 0; i < sizeof near / sizeof *near; i++) {
        char words[128];
        snprintf(words, sizeof words, "option \"%s\": unknown; did you mean %s?", near[i], meant[i]);
        assert_int_equal(weir_pace_options_set(&o, near[i], "1"), WEIR_E_INVAL);
        assert_string_equal(weir_error_detail(), words);
    }
    assert_int_equal(weir_pace_options_set(&o, "open", "15 parsecs"), WEIR_E_INVAL);
    assert_string_equal(weir_error_detail(),
                        "open: duration \"15 parsecs\": unknown unit at character 3; use ns, us, ms, s, m, h or d");
    assert_int_equal(weir_pace_options_set(&o, "breaker", "maybe"), WEIR_E_INVAL);
    assert_string_equal(weir_error_detail(), "breaker \"maybe\": unknown; use true or false");
    assert_int_equal(weir_pace_options_set(&o, "xyzzy", "1"), WEIR_E_INVAL);
    assert_non_null(strstr(weir_error_detail(), "use for example max_rate or open"));
    assert_int_equal(weir_pace_options_set(NULL, "open", "1s"), WEIR_E_INVAL);
    assert_int_equal(weir_pace_options_set(&o, NULL, "1s"), WEIR_E_INVAL);
    assert_int_equal(weir_pace_options_set(&o, "open", NULL), WEIR_E_INVAL);
}

static void try_text(const char *name, const char *text)
{
    weir_pace_options o, before, checked;
    weir_pace_options_init(&o);
    before = o;
    int result = weir_pace_options_set(&o, name, text);
    assert_true(result == 0 || result == WEIR_E_INVAL);
    if (result != 0)
        assert_same(&o, &before);
    /* contradicting options can be corrected by a later call */
    else if (wr_pace_options_check(&o, &checked) != 0)
        assert_true(strstr(weir_error_detail(), "at most that") != NULL ||
                    strstr(weir_error_detail(), "128 steps") != NULL);
}

/* Tries many texts for every option: each is refused, or gives a value in range. */
static void no_text_sets_an_option_out_of_range(void **state)
{
    (void)state;
    static char long_text[5000];
    memset(long_text, '9', sizeof long_text - 1);
    static const char *const names[] = {"min_interval",
                                        "max_rate",
                                        "max_in_flight",
                                        "retry_after_max",
                                        "reservation_max",
                                        "jitter_over",
                                        "initial_rate",
                                        "min_rate",
                                        "rate_ceiling",
                                        "burst",
                                        "increase",
                                        "decrease",
                                        "open",
                                        "latency_target",
                                        "degrade_factor",
                                        "latency_weight",
                                        "latency_ring",
                                        "window",
                                        "window_step",
                                        "breaker",
                                        "error_threshold",
                                        "min_samples",
                                        "consecutive_failures",
                                        "probes",
                                        "base_delay",
                                        "max_delay",
                                        "delay_up",
                                        "delay_down",
                                        "probe_after",
                                        "learn_on_403",
                                        "learn_on_503",
                                        "half_life",
                                        "cancel_after",
                                        "cancel_delay",
                                        "concurrency_step",
                                        "retry_base",
                                        "retry_max",
                                        "retry_attempts",
                                        "blocking_retries",
                                        "off",
                                        "strategy",
                                        "profile"};
    const char *const texts[] = {
        "",     " ",    "0",     "-0",         "+1",         "1",          "0.5",       "1e999",
        "1e-9", "nan",  "NaN",   "inf",        "-inf",       "0x10",       "0x1p3",     "1,5",
        "1 ",   " 1",   "1\n",   "\xff",       "1s",         "1000000d",   "36000000d", "99999999999999999999",
        "1ns",  "-1ms", "1.5ms", "4294967295", "4294967296", "2147483648", "true",      long_text};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
            try_text(names[i], texts[k]);
}

WEIR_TESTS(test(every_number_has_the_default_of_the_documents), test(profiles_choose_strategy_and_numbers),
           test(names_of_profiles_and_strategies_match_their_numbers), test(zero_option_means_its_default),
           test(invalid_pace_options_are_refused_and_the_error_says_what_is_valid),
           test(every_option_can_be_set_by_its_name), test(every_printed_option_value_can_be_set),
           test(invalid_texts_for_options_are_refused_and_change_nothing), test(no_text_sets_an_option_out_of_range))
