/* SPDX-License-Identifier: MIT */
/* pace_options.c - Defines every pacing option in one table: name, kind, range and default.
 *
 * weir_pace_options_init, wr_pace_options_check and weir_pace_options_set read this table.
 */
#include "core/pace/pace_options.h"

#include "base/error.h"
#include "base/nearest.h"
#include "base/parse.h"

#include <math.h>
#include <string.h>

#define SECOND ((double)WEIR_SECOND)
#define MS ((double)WEIR_MILLISECOND)
#define LONG_NS ((double)WEIR_DURATION_MAX) /* 2^60 is exact in a double */
#define RATE_MAX 1e9                        /* one start per nanosecond */
#define COUNT_MAX ((double)UINT32_MAX)

enum option_kind {
    DURATION, /* an int64_t, in ns */
    NUMBER,   /* a double */
    COUNT,    /* a uint32_t */
};

/* If `normal` is 0, the value 0 does not select the default but means "none". Ranges are doubles
 * for all kinds: durations beyond 2^53 ns (104 days) are accurate to the microsecond. */
struct option {
    const char *name;
    enum option_kind kind;
    size_t offset;
    double min, max, normal;
    const char *right; /* error message for an invalid value, a whole sentence */
};

#define RIGHT_BEGINS(name) (sizeof "the option  must be " - 1 + strlen(name))
#define OPTION(option_kind, name, field, min, max, normal, right)                                                     \
    {                                                                                                                 \
        name, option_kind, offsetof(weir_pace_options, field), min, max, normal, "the option " name " must be " right \
    }

static const struct option options_known[] = {
    OPTION(DURATION, "min_interval", min_interval_ns, 0, LONG_NS, 0, "a duration, or 0 for none"),
    OPTION(NUMBER, "max_rate", max_rate, 1e-9, RATE_MAX, 0, "1e-9 ... 1e9 starts per second, or 0 for no limit"),
    OPTION(COUNT, "max_in_flight", max_in_flight, 0, COUNT_MAX, 0, "0 ... 4294967295"),
    OPTION(DURATION, "retry_after_max", retry_after_max_ns, MS, LONG_NS, 86400 * SECOND, "a duration of 1ms or more"),
    OPTION(DURATION, "reservation_max", reservation_max_ns, MS, LONG_NS, 120 * SECOND, "a duration of 1ms or more"),
    OPTION(DURATION, "jitter_over", jitter_over_ns, 1, LONG_NS, SECOND, "a duration"),
    OPTION(NUMBER, "initial_rate", initial_rate, 1e-9, RATE_MAX, 2, "1e-9 ... 1e9 starts per second"),
    OPTION(NUMBER, "min_rate", min_rate, 1e-9, RATE_MAX, 0.25, "1e-9 ... 1e9 starts per second"),
    OPTION(NUMBER, "rate_ceiling", rate_ceiling, 1e-9, RATE_MAX, 8, "1e-9 ... 1e9 starts per second"),
    OPTION(NUMBER, "burst", burst, 1, 1e9, 4, "1 ... 1e9 starts"),
    OPTION(NUMBER, "increase", increase, 1e-9, RATE_MAX, 0.25, "1e-9 ... 1e9 starts per second"),
    OPTION(NUMBER, "decrease", decrease, 0.001, 0.999, 0.5, "a factor of 0.001 ... 0.999"),
    OPTION(DURATION, "latency_target", latency_target_ns, 1000, LONG_NS, SECOND, "a duration of 1us or more"),
    OPTION(NUMBER, "degrade_factor", degrade_factor, 1, 1e6, 2, "a factor of 1 ... 1e6"),
    OPTION(NUMBER, "latency_weight", latency_weight, 0.001, 1, 0.2, "0.001 ... 1"),
    OPTION(COUNT, "latency_ring", latency_ring, 1, WEIR_RING_MAX, 64, "1 ... 1024 answers"),
    OPTION(DURATION, "window", window_ns, MS, LONG_NS, 30 * SECOND, "a duration of 1ms or more"),
    OPTION(DURATION, "window_step", window_step_ns, MS, LONG_NS, 2 * SECOND, "a duration of 1ms or more"),
    OPTION(NUMBER, "error_threshold", error_threshold, 0.001, 1, 0.5, "a share of 0.001 ... 1"),
    OPTION(COUNT, "min_samples", min_samples, 1, COUNT_MAX, 10, "1 ... 4294967295 answers"),
    OPTION(COUNT, "consecutive_failures", consecutive_failures, 1, COUNT_MAX, 5, "1 ... 4294967295 failures"),
    OPTION(DURATION, "open", open_ns, MS, LONG_NS, 15 * SECOND, "a duration of 1ms or more"),
    OPTION(COUNT, "probes", probes, 1, UINT16_MAX, 3, "1 ... 65535 requests"),
    OPTION(DURATION, "base_delay", base_delay_ns, 1, LONG_NS, 500 * MS, "a duration"),
    OPTION(DURATION, "max_delay", max_delay_ns, 1, LONG_NS, 60 * SECOND, "a duration"),
    OPTION(DURATION, "delay_up", delay_up_ns, 1, LONG_NS, SECOND, "a duration"),
    OPTION(DURATION, "delay_down", delay_down_ns, 1, LONG_NS, SECOND, "a duration"),
    OPTION(COUNT, "probe_after", probe_after, 1, COUNT_MAX, 20, "1 ... 4294967295 good responses"),
    OPTION(DURATION, "half_life", half_life_ns, MS, LONG_NS, 21600 * SECOND, "a duration of 1ms or more"),
    OPTION(COUNT, "cancel_after", cancel_after, 0, UINT16_MAX, 0, "1 ... 65535 responses, or 0 for never"),
    OPTION(DURATION, "cancel_delay", cancel_delay_ns, 1, LONG_NS, 60 * SECOND, "a duration"),
    OPTION(DURATION, "concurrency_step", concurrency_step_ns, MS, LONG_NS, 5 * SECOND, "a duration of 1ms or more"),
    OPTION(DURATION, "retry_base", retry.base_ns, 1, LONG_NS, 200 * MS, "a duration"),
    OPTION(DURATION, "retry_max", retry.max_ns, 1, LONG_NS, 5 * SECOND, "a duration"),
    OPTION(COUNT, "retry_attempts", retry.attempts, 1, COUNT_MAX, 3, "1 ... 4294967295"),
    OPTION(COUNT, "blocking_retries", retry.blocking_retries, 1, COUNT_MAX, 3, "1 ... 4294967295"),
};
#define OPTION_COUNT (sizeof options_known / sizeof *options_known)

/* Options that are true or false. The profile sets their defaults. */
static const struct {
    const char *name;
    size_t offset;
} switches[] = {
    {"off", offsetof(weir_pace_options, off)},
    {"breaker", offsetof(weir_pace_options, breaker)},
    {"learn_on_403", offsetof(weir_pace_options, learn_on_403)},
    {"learn_on_503", offsetof(weir_pace_options, learn_on_503)},
};

#define SWITCH_COUNT (sizeof switches / sizeof *switches)

/* ---- names ---- */

static const char *const strategy_names[] = {
#define X(strategy, name) [strategy] = (name),
    WEIR_STRATEGIES(X)
#undef X
};

static const char *const profile_names[] = {
#define X(profile, name) [profile] = (name),
    WEIR_PROFILES(X)
#undef X
};

#define STRATEGY_WORDS "tide, fixed, aimd, learned, both, gradient, pid or none"
#define STRATEGY_COUNT (sizeof strategy_names / sizeof *strategy_names)
#define PROFILE_COUNT (sizeof profile_names / sizeof *profile_names)

const char *weir_strategy_name(weir_strategy strategy)
{
    return (size_t)strategy < STRATEGY_COUNT ? strategy_names[strategy] : NULL;
}

const char *weir_profile_name(weir_profile profile)
{
    return (size_t)profile < PROFILE_COUNT ? profile_names[profile] : NULL;
}

/* Returns the index of the name in the list; `count` if the list does not contain it. */
static size_t index_of_name(const char *name, const char *const *names, size_t count)
{
    size_t i = 0;
    while (i < count && (name == NULL || strcmp(name, names[i]) != 0))
        i++;
    return i;
}

int weir_profile_named(const char *name, weir_profile *ret_profile)
{
    size_t place = index_of_name(name, profile_names, PROFILE_COUNT);
    if (ret_profile == NULL)
        return wr_invalid("ret_profile is NULL; it must point to a weir_profile");
    if (place == PROFILE_COUNT)
        return wr_invalid_text("profile", name, name == NULL ? 0 : strlen(name), "unknown", WR_NOWHERE,
                               "use adaptive, aimd, strict, learned, unlimited or origin-tuned");
    *ret_profile = (weir_profile)place;
    return 0;
}

/* ---- numbers ---- */

static double value_of_option(const weir_pace_options *options, const struct option *option)
{
    const char *field = (const char *)options + option->offset;
    if (option->kind == DURATION)
        return (double)*(const int64_t *)(const void *)field;
    return option->kind == NUMBER ? *(const double *)(const void *)field : *(const uint32_t *)(const void *)field;
}

/* Stores a value, which must be in the option's range. */
static void set_value(weir_pace_options *options, const struct option *option, double value)
{
    char *field = (char *)options + option->offset;
    if (option->kind == DURATION)
        *(int64_t *)(void *)field = (int64_t)value;
    else if (option->kind == NUMBER)
        *(double *)(void *)field = value;
    else
        *(uint32_t *)(void *)field = (uint32_t)value;
}

static bool in_range(const struct option *option, double value)
{
    return value >= option->min && value <= option->max; /* false for NaN */
}

static void set_profile(weir_pace_options *options, weir_profile profile)
{
    *options = (weir_pace_options){.size = sizeof *options, .profile = profile, .breaker = true};
    for (size_t i = 0; i < OPTION_COUNT; i++)
        set_value(options, &options_known[i], options_known[i].normal);
    switch (profile) {
    case WEIR_PROFILE_ADAPTIVE:
        options->strategy = WEIR_STRATEGY_TIDE;
        options->max_rate = 8;
        options->max_in_flight = 8;
        break;
    case WEIR_PROFILE_AIMD:
        options->strategy = WEIR_STRATEGY_AIMD;
        break;
    case WEIR_PROFILE_STRICT:
        options->strategy = WEIR_STRATEGY_FIXED;
        options->min_interval_ns = WEIR_SECOND;
        break;
    case WEIR_PROFILE_LEARNED:
        options->strategy = WEIR_STRATEGY_LEARNED;
        break;
    case WEIR_PROFILE_UNLIMITED:
        options->strategy = WEIR_STRATEGY_NONE;
        options->breaker = false;
        break;
    case WEIR_PROFILE_ORIGIN_TUNED:
        options->strategy = WEIR_STRATEGY_AIMD_LEARNED;
        options->error_threshold = 0.4;
        options->probe_after = 5;
        options->delay_up_ns = options->delay_down_ns = 500 * WEIR_MILLISECOND;
        options->learn_on_403 = options->learn_on_503 = true;
        break;
    }
}

void weir_pace_options_init(weir_pace_options *ret_options)
{
    if (ret_options != NULL)
        set_profile(ret_options, WEIR_PROFILE_ADAPTIVE);
}

int weir_pace_options_profile(weir_pace_options *ret_options, weir_profile profile)
{
    if (ret_options == NULL)
        return wr_invalid("ret_options is NULL; it must point to a weir_pace_options");
    if ((size_t)profile >= PROFILE_COUNT)
        return wr_invalid("no such profile; use one of WEIR_PROFILE_ADAPTIVE ... WEIR_PROFILE_ORIGIN_TUNED");
    set_profile(ret_options, profile);
    return 0;
}

/* ---- validation ---- */

/* Checks the profile, the strategy and the rules that involve several options. */
static int check_together(const weir_pace_options *options)
{
    if ((size_t)options->profile >= PROFILE_COUNT)
        return wr_invalid("the profile is unknown; use one of WEIR_PROFILE_ADAPTIVE ... WEIR_PROFILE_ORIGIN_TUNED");
    if ((size_t)options->strategy >= STRATEGY_COUNT)
        return wr_invalid("the strategy is unknown; use one of WEIR_STRATEGY_TIDE ... WEIR_STRATEGY_NONE");
    if (options->min_rate > options->rate_ceiling)
        return wr_invalid("the option min_rate is above rate_ceiling; it must be at most that");
    if (options->base_delay_ns > options->max_delay_ns)
        return wr_invalid("the option base_delay is longer than max_delay; it must be at most that");
    if (options->window_step_ns > options->window_ns)
        return wr_invalid("the option window_step is longer than the window; it must be at most that");
    if ((options->window_ns - 1) / options->window_step_ns >= WEIR_WINDOW_BUCKETS)
        return wr_invalid("the window has more than 128 steps; make window_step longer");
    if (options->retry.base_ns > options->retry.max_ns)
        return wr_invalid("the option retry_base is longer than retry_max; it must be at most that");
    return 0;
}

int wr_pace_options_check(const weir_pace_options *given, weir_pace_options *ret_options)
{
    weir_pace_options options;
    if (given == NULL) {
        weir_pace_options_init(ret_options);
        return 0;
    }
    if (given->size != sizeof *given)
        return wr_invalid("options->size is not that of weir_pace_options; use weir_pace_options_init");
    options = *given;
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *option = &options_known[i];
        double value = value_of_option(&options, option);
        if (value == 0)
            set_value(&options, option, option->normal);
        else if (!in_range(option, value))
            return wr_invalid(option->right);
    }
    int error = check_together(&options);
    if (error == 0)
        *ret_options = options;
    return error;
}

/* ---- options by name ---- */

static const struct option *find_number(const char *name)
{
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (strcmp(name, options_known[i].name) == 0)
            return &options_known[i];
    return NULL;
}

static int parse_option(const struct option *option, const char *text, double *ret_value)
{
    int64_t duration_ns;
    if (option->kind != DURATION)
        return wr_parse_number(text, strlen(text), 0, option->max, ret_value);
    int error = wr_parse_duration(text, strlen(text), &duration_ns);
    if (error == 0)
        *ret_value = (double)duration_ns;
    return error;
}

static int set_number(weir_pace_options *options, const struct option *option, const char *text)
{
    double value;
    if (parse_option(option, text, &value) != 0)
        return wr_invalid_in(option->name);
    if ((value != 0 && !in_range(option, value)) || (option->kind == COUNT && value != floor(value)))
        return wr_invalid(option->right);
    set_value(options, option, value == 0 ? option->normal : value);
    return 0;
}

static int set_switch(bool *ret_on, const char *name, const char *text)
{
    static const char *const words[] = {"true", "yes", "on", "1", "false", "no", "off", "0"};
    size_t place = index_of_name(text, words, 8);
    if (place == 8)
        return wr_invalid_text(name, text, strlen(text), "unknown", WR_NOWHERE, "use true or false");
    *ret_on = place < 4;
    return 0;
}

static int set_strategy(weir_pace_options *options, const char *text)
{
    size_t place = index_of_name(text, strategy_names, STRATEGY_COUNT);
    if (place == STRATEGY_COUNT)
        return wr_invalid_text("strategy", text, strlen(text), "unknown", WR_NOWHERE, "use " STRATEGY_WORDS);
    options->strategy = (weir_strategy)place;
    return 0;
}

static int refuse_option_name(const char *name)
{
    char right[64];
    struct wr_nearest nearest = {.word = name};
    struct wr_buf buf;
    wr_nearest_offer(&nearest, "strategy");
    wr_nearest_offer(&nearest, "profile");
    for (size_t i = 0; i < SWITCH_COUNT; i++)
        wr_nearest_offer(&nearest, switches[i].name);
    for (size_t i = 0; i < OPTION_COUNT; i++)
        wr_nearest_offer(&nearest, options_known[i].name);
    wr_buf_init_fixed(&buf, right, sizeof right);
    wr_buf_append_string(&buf, nearest.best != NULL ? "did you mean " : "use for example max_rate or open");
    if (nearest.best != NULL) {
        wr_buf_append_string(&buf, nearest.best);
        wr_buf_append_char(&buf, '?');
    }
    return wr_invalid_text("option", name, strlen(name), "unknown", WR_NOWHERE, right);
}

int weir_pace_options_set(weir_pace_options *options, const char *name, const char *value)
{
    weir_profile profile = WEIR_PROFILE_ADAPTIVE;
    if (options == NULL || name == NULL || value == NULL)
        return wr_invalid("NULL; give options, a name and a text");
    if (strcmp(name, "strategy") == 0)
        return set_strategy(options, value);
    if (strcmp(name, "profile") == 0)
        return weir_profile_named(value, &profile) == 0 ? weir_pace_options_profile(options, profile) : WEIR_E_INVAL;
    for (size_t i = 0; i < SWITCH_COUNT; i++)
        if (strcmp(name, switches[i].name) == 0)
            return set_switch((bool *)((char *)options + switches[i].offset), name, value);
    const struct option *option = find_number(name);
    return option != NULL ? set_number(options, option, value) : refuse_option_name(name);
}

/* ---- enumeration ---- */

const char *wr_pace_option_name(size_t index)
{
    if (index == 0)
        return "strategy";
    if (index <= SWITCH_COUNT)
        return switches[index - 1].name;
    return index <= SWITCH_COUNT + OPTION_COUNT ? options_known[index - SWITCH_COUNT - 1].name : NULL;
}

const char *wr_pace_option_wanted(const char *name)
{
    const struct option *option = find_number(name);
    if (option != NULL)
        return option->right + RIGHT_BEGINS(name);
    if (strcmp(name, "strategy") == 0)
        return STRATEGY_WORDS;
    for (size_t i = 0; i < SWITCH_COUNT; i++)
        if (strcmp(name, switches[i].name) == 0)
            return "true or false";
    return NULL;
}

static void append_switch(struct wr_buf *buf, const weir_pace_options *options, const char *name)
{
    for (size_t i = 0; i < SWITCH_COUNT; i++)
        if (strcmp(name, switches[i].name) == 0)
            wr_buf_append_string(buf, ((const bool *)options)[switches[i].offset] ? "true" : "false");
}

void wr_pace_option_append(struct wr_buf *buf, const weir_pace_options *options, const char *name)
{
    const struct option *option = find_number(name);
    const char *field = (const char *)options + (option != NULL ? option->offset : 0);
    if (option == NULL && strcmp(name, "strategy") == 0)
        wr_buf_append_string(buf, weir_strategy_name(options->strategy));
    else if (option == NULL)
        append_switch(buf, options, name);
    else if (option->kind == DURATION)
        wr_buf_append_duration(buf, *(const int64_t *)(const void *)field);
    else if (option->kind == NUMBER)
        wr_buf_append_number(buf, *(const double *)(const void *)field);
    else
        wr_buf_append_u64(buf, *(const uint32_t *)(const void *)field);
}
