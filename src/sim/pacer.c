/* SPDX-License-Identifier: MIT */
/* pacer.c - Finds the pacers for simulations by name. */
#include "base/error.h"
#include "core/pace/pace_options.h"
#include "sim/peers/peers.h"
#include "sim/sim.h"

#include <string.h>

#define KEY_MAX 31   /* maximum length, bytes */
#define VALUE_MAX 31 /* maximum length of a number or a duration, bytes */

/* Set of differences between a pacer and its normal use. */
enum how {
    WEIRS = 0,    /* no difference from normal use */
    UNCAPPED = 1, /* no cap except the workers, so that the origin's limit is found */
    DEAF = 2,     /* without rate-limit fields: the published rule has none */
    WITHOUT = 4,  /* without breaker and jitter: the published rule has neither */
    LEARNS_503 = 8,
    STUDIED = 16, /* values of the study of reference.csv: min rate 0.1, one probe, no jitter */
};

/* name, profile, strategy, how, description */
#define PACERS(X)                                                                                                  \
    X("tide", ADAPTIVE, TIDE, UNCAPPED, "weir's own: finds the limit and stays below it; no caps but the workers") \
    X("fixed", STRICT, FIXED, DEAF | WITHOUT, "one start a second, whatever happens")                              \
    X("aimd", AIMD, AIMD, DEAF | STUDIED, "additive increase, multiplicative decrease, with a token bucket")       \
    X("learned", LEARNED, LEARNED, DEAF | WITHOUT | LEARNS_503, "a delay that grows with each 429 and is probed")  \
    X("both", ORIGIN_TUNED, AIMD_LEARNED, WEIRS, "aimd and learned together, the slower wins")                     \
    X("gradient", AIMD, GRADIENT, WEIRS, "a limit in flight that follows the latency")                             \
    X("pid", AIMD, PID, WEIRS, "a rate that holds latency and rejections at a set point")                          \
    X("none", UNLIMITED, NONE, WEIRS, "no limit except the number of workers and Retry-After")                     \
    X("adaptive", ADAPTIVE, TIDE, WEIRS, "the default profile: tide, at most 8 starts a second and 8 in flight")   \
    X("strict", STRICT, FIXED, WEIRS, "the profile: fixed with breaker and rate-limit fields")                     \
    X("unlimited", UNLIMITED, NONE, WEIRS, "the profile: none")                                                    \
    X("origin-tuned", ORIGIN_TUNED, AIMD_LEARNED, WEIRS, "the profile: both")

/* name, rule, description; these run bare */
#define PEERS(X)                                                                                      \
    X("autothrottle-1", autothrottle_1, "Scrapy's AutoThrottle, one request in flight on average")    \
    X("autothrottle-8", autothrottle_8, "Scrapy's AutoThrottle, eight requests in flight on average") \
    X("cubic", cubic, "the AWS SDKs' client rate limiter (adaptive retry mode)")                      \
    X("vegas", vegas, "VegasLimit of Netflix concurrency-limits")                                     \
    X("gradient2", gradient2, "Gradient2Limit of Netflix concurrency-limits")                         \
    X("envoy", envoy, "the gradient controller of Envoy's adaptive concurrency filter")               \
    X("bbr", bbr, "TCP's BBR, with requests for packets")

static const struct wr_sim_pacer_name names[] = {
#define X(name, profile, strategy, how, what) {name, what},
    PACERS(X)
#undef X
#define X(name, rule, what) {name, what},
        PEERS(X)
#undef X
            {NULL, NULL},
};

static const struct {
    weir_profile profile;
    weir_strategy strategy;
    int how;
    const struct wr_strategy *peer;
} rules[] = {
#define X(name, profile, strategy, how, what) {WEIR_PROFILE_##profile, WEIR_STRATEGY_##strategy, how, NULL},
    PACERS(X)
#undef X
#define X(name, rule, what) {WEIR_PROFILE_UNLIMITED, WEIR_STRATEGY_NONE, DEAF | WITHOUT, &wr_peer_##rule},
        PEERS(X)
#undef X
};

const struct wr_sim_pacer_name *wr_sim_pacer_names(void)
{
    return names;
}

static void set_rule(struct wr_sim_pacer *pacer, size_t place)
{
    weir_pace_options *options = &pacer->options;
    weir_pace_options_profile(options, rules[place].profile);
    options->strategy = rules[place].strategy;
    pacer->strategy = rules[place].peer;
    if (rules[place].how & UNCAPPED) {
        options->max_rate = 0;
        options->max_in_flight = 0;
    }
    if (rules[place].how & WITHOUT) {
        options->breaker = false;
        options->jitter_over_ns = WEIR_DURATION_MAX;
    }
    if (rules[place].how & STUDIED) {
        options->min_rate = 0.1;
        options->probes = 1;
        options->jitter_over_ns = WEIR_DURATION_MAX;
    }
    options->learn_on_503 |= (rules[place].how & LEARNS_503) != 0;
    pacer->ignores_quota_fields = (rules[place].how & DEAF) != 0;
}

/* ---- options --------------------------------------------------------------------------------- */

/* Returns the option name for a key of a published rule. */
static const char *option_name_of_key(const weir_pace_options *options, const char *key)
{
    static const char *const words[][2] = {
        {"alpha", "increase"},         {"beta", "decrease"},         {"start", "initial_rate"},    {"min", "min_rate"},
        {"degrade", "degrade_factor"}, {"target", "latency_target"}, {"interval", "min_interval"},
    };
    bool tide = options->strategy == WEIR_STRATEGY_TIDE || options->strategy == WEIR_STRATEGY_NONE;
    if (strcmp(key, "max") == 0)
        return tide ? "max_rate" : "rate_ceiling";
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(key, words[i][0]) == 0)
            return words[i][1];
    return key;
}

static int set_headers_option(struct wr_sim_pacer *pacer, const char *value)
{
    bool heard = strcmp(value, "true") == 0;
    if (!heard && strcmp(value, "false") != 0)
        return wr_invalid_text("headers", value, strlen(value), "unknown", WR_NOWHERE, "use true or false");
    pacer->ignores_quota_fields = !heard;
    return 0;
}

static int set_one(struct wr_sim_pacer *pacer, const char *key, const char *value)
{
    if (strcmp(key, "headers") == 0)
        return set_headers_option(pacer, value);
    return weir_pace_options_set(&pacer->options, option_name_of_key(&pacer->options, key), value);
}

/* Parses "key=value" and sets the option. */
static int set_pair(struct wr_sim_pacer *pacer, const char *text, size_t bytes)
{
    char key[KEY_MAX + 1] = "", value[VALUE_MAX + 1] = "";
    const char *equals = memchr(text, '=', bytes);
    size_t key_bytes = equals == NULL ? bytes : (size_t)(equals - text);
    size_t value_bytes = equals == NULL ? 0 : bytes - key_bytes - 1;

    if (equals == NULL || key_bytes == 0 || key_bytes > KEY_MAX || value_bytes == 0 || value_bytes > VALUE_MAX)
        return wr_invalid_text("option", text, bytes, "not a key and a value", WR_NOWHERE, "write key=value");
    memcpy(key, text, key_bytes);
    memcpy(value, equals + 1, value_bytes);
    return set_one(pacer, key, value);
}

/* Sets pairs that are separated by commas. There must be at least one. */
static int set_pairs(struct wr_sim_pacer *pacer, const char *text)
{
    for (;;) {
        size_t bytes = strcspn(text, ",");
        int error = set_pair(pacer, text, bytes);
        if (error < 0 || text[bytes] == '\0')
            return error;
        text += bytes + 1;
    }
}

/* ---- pacers by name -------------------------------------------------------------------------- */

int wr_sim_pacer_named(const char *text, struct wr_sim_pacer *ret_pacer)
{
    struct wr_sim_pacer pacer = {.strategy = NULL};
    size_t name_bytes = strcspn(text, ":");
    size_t place = 0;

    if (strlen(text) >= sizeof pacer.name)
        return wr_invalid_text("pacer", text, strlen(text), "too long", WR_NOWHERE, "use at most 127 characters");
    while (names[place].name != NULL &&
           (strlen(names[place].name) != name_bytes || memcmp(names[place].name, text, name_bytes) != 0))
        place++;
    if (names[place].name == NULL)
        return wr_invalid_text("pacer", text, name_bytes, "unknown", WR_NOWHERE, "weir simulate --list shows them");
    memcpy(pacer.name, text, strlen(text));
    set_rule(&pacer, place);
    if (pacer.strategy != NULL && text[name_bytes] == ':')
        return wr_invalid("this pacer has the numbers of its publication; name it without options");
    int error = text[name_bytes] == ':' ? set_pairs(&pacer, text + name_bytes + 1) : 0;
    if (error == 0)
        error = wr_pace_options_check(&pacer.options, &pacer.options);
    if (error == 0)
        *ret_pacer = pacer;
    return error;
}
