/* SPDX-License-Identifier: MIT */
/* pace_flags.c - parses the options that set the pace of hosts. */
#include "cli/kit/pace_flags.h"

#include <stdio.h>
#include <string.h>
#include <weir/table.h>

#include "base/error.h"
#include "base/nearest.h"
#include "base/parse.h"
#include "cli/kit/console.h"
#include "core/pace/pace_options.h"

#define FACTOR_MIN 0.01
#define FACTOR_MAX 100

const char *const wr_profile_names[] = {
#define X(profile, name) name,
    WEIR_PROFILES(X)
#undef X
        NULL,
};
const char *const wr_robots_on_error_names[] = {"rfc9309", "allow", "deny", NULL};

/* ---- names ---- */

enum pace_target {
    IN_PACE, /* weir_pace_options_set knows the name */
    PROFILE,
    DELAY_FACTOR,
    MAX_HOSTS,
    SHARDS,
    TTL,
};

/* In the order of interest to users. weir_pace_options_set writes '_' for '-', unless `core` has
 * another name. */
static const struct {
    const char *name, *help;
    const char *core; /* name for weir_pace_options_set; NULL: `name` with '_' for '-' */
    const char *flag; /* name of the option, if it differs */
    enum pace_target more;
} names[] = {
    {"profile", .help = "Profile that sets all numbers; other settings change single ones", .flag = "pace",
     .more = PROFILE},
    {"strategy", .help = "Algorithm that learns the pace"},
    {"off", .help = "No pacing; for your own servers only"},
    {"interval", .help = "Minimum time between two requests to a host", .core = "min_interval"},
    {"max-rate", .help = "Maximum of requests per second to a host"},
    {"per-host", .help = "Maximum of requests in flight to a host", .core = "max_in_flight"},
    {"retry-after-max", .help = "Longest wait that a Retry-After can ask for"},
    {"reservation-max", .help = "Time after which an unused permit is returned"},
    {"jitter-over", .help = "Waits longer than this get up to a tenth longer"},
    {"initial-rate", .help = "aimd: initial requests per second"},
    {"min-rate", .help = "aimd: lowest requests per second"},
    {"rate-ceiling", .help = "aimd: highest requests per second"},
    {"burst", .help = "aimd: requests that may start at once after a pause"},
    {"increase", .help = "aimd: added to the rate after a fast response"},
    {"decrease", .help = "aimd: factor of the rate after an overload"},
    {"latency-target", .help = "aimd: response time that counts as fast"},
    {"degrade-factor", .help = "aimd: a response is slow from this many times latency-target"},
    {"latency-weight", .help = "Weight of a new response time in the mean"},
    {"latency-ring", .help = "Responses that the 95th percentile is computed from"},
    {"window", .help = "Time over which errors are counted"},
    {"window-step", .help = "Resolution of that time"},
    {"breaker", .help = "Whether a circuit breaker stops requests to a failing host"},
    {"error-threshold", .help = "breaker: opens from this share of failures"},
    {"min-samples", .help = "breaker: fewest responses before it opens"},
    {"consecutive-failures", .help = "breaker: opens after this many failures in a row"},
    {"open", .help = "breaker: time before it is tested"},
    {"probes", .help = "breaker: requests that test it"},
    {"base-delay", .help = "learned: initial delay between requests"},
    {"max-delay", .help = "learned: longest delay"},
    {"delay-up", .help = "learned: added to the delay after a 429"},
    {"delay-down", .help = "learned: subtracted from the delay to test a shorter one"},
    {"probe-after", .help = "learned: good responses before a shorter delay is tested"},
    {"learn-on-403", .help = "learned: whether a 403 counts as a 429"},
    {"learn-on-503", .help = "learned: whether a 503 counts as a 429"},
    {"half-life", .help = "learned: time in which a stored delay halves"},
    {"cancel-after-429", .help = "End the job after this many 429 in a row", .core = "cancel_after"},
    {"cancel-delay", .help = "Smallest learned delay at which cancel-after-429 counts"},
    {"concurrency-step", .help = "learned: allow one request in flight fewer for each step of delay"},
    {"retry-base", .help = "Longest wait before the first retry"},
    {"retry-max", .help = "Longest wait before any retry"},
    {"attempts", .help = "Attempts per URL on transient errors", .core = "retry_attempts"},
    {"blocking-retries", .help = "Retries of a URL that gets 429, 403 or 503"},
    {"robots-delay-factor", .help = "Factor of the Crawl-delay of robots.txt", .more = DELAY_FACTOR},
    {"max-hosts", .help = "Most hosts in memory", .more = MAX_HOSTS},
    {"shards", .help = "fetch, warm: number of locks of that memory", .more = SHARDS},
    {"ttl", .help = "fetch, warm: time after which an idle host is forgotten", .more = TTL},
};
#define NAME_COUNT (sizeof names / sizeof names[0])
_Static_assert(NAME_COUNT <= WR_PACE_NAMES_MAX && NAME_COUNT <= WR_OPTIONS_MAX, "there is room for all names");

const char *wr_pace_name(size_t index)
{
    return index < NAME_COUNT ? names[index].name : NULL;
}

const char *wr_pace_help(size_t index)
{
    return names[index].help;
}

const char *wr_pace_flag(size_t index)
{
    return names[index].flag != NULL ? names[index].flag : names[index].name;
}

bool wr_pace_find(struct wr_span name, size_t *ret_index)
{
    for (size_t i = 0; i < NAME_COUNT; i++)
        if (wr_span_is(name, names[i].name)) {
            *ret_index = i;
            return true;
        }
    return false;
}

/* Returns the name for weir_pace_options_set. */
static const char *core_name(size_t index, char room[64])
{
    size_t i = 0;
    if (names[index].core != NULL)
        return names[index].core;
    for (; names[index].name[i] != '\0' && i < 63; i++)
        room[i] = names[index].name[i] == '-' ? '_' : names[index].name[i];
    room[i] = '\0';
    return room;
}

const char *wr_pace_expected(size_t index)
{
    char room[64];
    switch (names[index].more) {
    case IN_PACE:
        return wr_pace_option_wanted(core_name(index, room));
    case PROFILE:
        return "adaptive, aimd, strict, learned, unlimited or origin-tuned";
    case DELAY_FACTOR:
        return "a factor of 0.01 ... 100";
    case MAX_HOSTS:
        return "1 ... 100000000 hosts";
    case SHARDS:
        return "1 ... 65536 shards";
    case TTL:
        return "a duration of 1ms or more";
    }
    return NULL;
}

/* ---- values ---- */

static bool parse_pace_count(const char *text, uint64_t max, size_t *ret_count)
{
    uint64_t count;
    if (!wr_scan_u64(text, strlen(text), 1, max, &count))
        return false;
    *ret_count = (size_t)count;
    return true;
}

static bool parse_pace_ttl(const char *text, int64_t *ret_ns)
{
    return wr_parse_duration(text, strlen(text), ret_ns) == 0 && *ret_ns >= WEIR_MILLISECOND;
}

/* Parses a value into `pace` or `more`, depending on the name. Returns false if it is invalid. For
 * a mere check the caller discards both. */
static bool parse_pace_value(size_t index, const char *text, weir_pace_options *pace, struct wr_pacer_settings *more)
{
    weir_profile profile;
    char room[64];
    switch (names[index].more) {
    case IN_PACE:
        return weir_pace_options_set(pace, core_name(index, room), text) == 0;
    case PROFILE:
        return weir_profile_named(text, &profile) == 0;
    case DELAY_FACTOR:
        return wr_parse_number(text, strlen(text), FACTOR_MIN, FACTOR_MAX, &more->delay_factor) == 0;
    case MAX_HOSTS:
        return parse_pace_count(text, 100000000, &more->max_hosts);
    case SHARDS:
        return parse_pace_count(text, 65536, &more->shards);
    case TTL:
        return parse_pace_ttl(text, &more->ttl_ns);
    }
    return false;
}

struct wr_pace_flags *wr_pace_flags_of(const struct wr_usage *usage, void *settings)
{
    for (size_t i = 0; i < usage->count; i++)
        if (usage->options[i].kind == WR_OPTION_SET)
            return (struct wr_pace_flags *)(void *)((char *)settings + usage->options[i].offset -
                                                    offsetof(struct wr_pace_flags, named));
    return NULL;
}

bool wr_usage_has_pace(const struct wr_usage *usage)
{
    for (size_t i = 0; i < usage->count; i++)
        if (usage->options[i].kind == WR_OPTION_SET)
            return true;
    return false;
}

bool wr_pace_assign(const struct wr_usage *usage, size_t index, const char *text, struct wr_value_source origin,
                    void *settings, struct wr_buf *why)
{
    const char *flag = wr_pace_flag(index);
    const struct wr_option *option = wr_usage_has_pace(usage) ? wr_option_find(usage, flag, strlen(flag)) : NULL;
    weir_pace_options pace;
    struct wr_pacer_settings more;
    origin.is_shared = true;
    if (option != NULL)
        return wr_option_assign(usage, option, text, origin, settings, why);
    weir_pace_options_init(&pace);
    if (!parse_pace_value(index, text, &pace, &more)) {
        wr_buf_append_string(why, " cannot be ");
        wr_buf_append_quoted(why, wr_span_of(text));
        wr_buf_append_string(why, ": it must be ");
        wr_buf_append_string(why, wr_pace_expected(index));
        return false;
    }
    struct wr_pace_flags *flags = settings != NULL ? wr_pace_flags_of(usage, settings) : NULL;
    if (flags != NULL && wr_value_source_yields(flags->named.of[index], origin)) {
        flags->named.text[index] = text;
        flags->named.of[index] = origin;
    }
    return true;
}

static bool append_unknown_pace_name(const char *name, size_t length, struct wr_buf *why)
{
    char word[64] = "";
    memcpy(word, name, length < sizeof word ? length : sizeof word - 1);
    struct wr_nearest nearest = {.word = word};
    for (size_t i = 0; i < NAME_COUNT; i++)
        wr_nearest_offer(&nearest, names[i].name);
    wr_buf_append_string(why, " has no setting pace.");
    wr_buf_append_string(why, word);
    wr_buf_append_string(why, nearest.best != NULL ? "; did you mean pace." : "; weir.yaml(5) lists them all");
    if (nearest.best != NULL) {
        wr_buf_append_string(why, nearest.best);
        wr_buf_append_char(why, '?');
    }
    return false;
}

bool wr_pace_set(const struct wr_usage *usage, const char *text, void *settings, struct wr_buf *why)
{
    size_t length = strcspn(text, "="), index;
    if (strncmp(text, "pace.", 5) != 0 || text[length] == '\0') {
        wr_buf_append_string(why, " cannot be ");
        wr_buf_append_quoted(why, wr_span_of(text));
        wr_buf_append_string(why, ": it must be pace.NAME=VALUE, as in --set pace.open=30s");
        return false;
    }
    if (!wr_pace_find((struct wr_span){text + 5, length - 5}, &index))
        return append_unknown_pace_name(text + 5, length - 5, why);
    wr_buf_append_string(why, ": pace.");
    wr_buf_append_string(why, names[index].name);
    return wr_pace_assign(usage, index, text + length + 1, (struct wr_value_source){.kind = WR_FROM_FLAG}, settings,
                          why);
}

/* ---- pace options ---- */

static bool may_be_off(const weir_pace_options *pace, bool is_own)
{
    if (!pace->off)
        return true;
    wr_complain(is_own ? "pacing is off: requests are not delayed, even if a server asks for it"
                       : "pace.off is for servers of your own: give --allow-private if all of them are");
    return is_own;
}

/* Notes the error of the pace options with '-' in their names, as users write them. */
static int note_conflict(void)
{
    char words[160];
    snprintf(words, sizeof words, "pace: %s", weir_error_detail());
    for (char *c = words; *c != '\0'; c++)
        if (*c == '_')
            *c = '-';
    wr_error_set(words);
    return WEIR_E_INVAL;
}

int wr_pace_options_from_flags(const struct wr_pace_flags *flags, weir_pace_options *ret_pace)
{
    struct wr_pacer_settings more;
    weir_pace_options pace, checked;
    (void)weir_pace_options_profile(&pace, (weir_profile)flags->profile);
    for (size_t i = 0; i < NAME_COUNT; i++)
        if (flags->named.text[i] != NULL)
            /* The value was checked when it was set. */
            (void)parse_pace_value(i, flags->named.text[i], &pace, &more);
    if (flags->interval > 0)
        pace.min_interval_ns = flags->interval;
    if (flags->per_host > 0)
        pace.max_in_flight = (uint32_t)flags->per_host;
    if (flags->attempts > 0)
        pace.retry.attempts = (uint32_t)flags->attempts;
    if (flags->max_rate != NULL && weir_pace_options_set(&pace, "max_rate", flags->max_rate) != 0)
        return note_conflict();
    if (wr_pace_options_check(&pace, &checked) != 0)
        return note_conflict();
    *ret_pace = pace;
    return 0;
}

bool wr_pace_make(const struct wr_pace_flags *flags, bool is_own, weir_pace_options *ret_pace)
{
    weir_pace_options pace;
    if (wr_pace_options_from_flags(flags, &pace) != 0) {
        wr_complain("%s", weir_error_detail());
        return false;
    }
    *ret_pace = pace;
    return may_be_off(&pace, is_own);
}

void wr_pace_append(struct wr_buf *buf, const struct wr_pace_texts *named, const weir_pace_options *pace, size_t index)
{
    char room[64];
    if (names[index].more == IN_PACE)
        wr_pace_option_append(buf, pace, core_name(index, room));
    else if (named->text[index] != NULL)
        wr_buf_append_string(buf, named->text[index]);
}

void wr_pacer_settings_make(const struct wr_pace_flags *flags, struct wr_pacer_settings *ret_more)
{
    weir_pace_options unused;
    *ret_more = (struct wr_pacer_settings){.max_hosts = 0};
    weir_pace_options_init(&unused);
    for (size_t i = 0; i < NAME_COUNT; i++)
        if (flags->named.text[i] != NULL)
            (void)parse_pace_value(i, flags->named.text[i], &unused, ret_more);
}
