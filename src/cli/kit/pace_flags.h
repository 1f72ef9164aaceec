/* SPDX-License-Identifier: MIT */
/* pace_flags.h - the options that set the pace of hosts, the same for each command that sends
 * requests.
 *
 *     struct settings { struct wr_pace_flags pace; ... };
 *     static const struct wr_option options[] = { WR_PACE_OPTIONS(struct settings, pace), ... };
 *     if (!wr_pace_make(&settings.pace, settings.allow_private, &pace))
 *         return WR_EXIT_USAGE;
 *
 * A few settings have options of their own. All have names, which are used in the section pace of a
 * file, in the environment and by --set. If the command has an option of the same name, the value
 * is stored in that option.
 */
#ifndef WR_CLI_KIT_PACE_FLAGS_H
#define WR_CLI_KIT_PACE_FLAGS_H

#include <weir/pace.h>

#include "cli/kit/check_option.h"
#include "cli/kit/command_options.h"

#define WR_PACE_NAMES_MAX 64

/* Values that were set by name and have no option. */
struct wr_pace_texts {
    const char *text[WR_PACE_NAMES_MAX]; /* text of the value; NULL: not set */
    struct wr_value_source of[WR_PACE_NAMES_MAX];
};

struct wr_pace_flags {
    int profile;
    int64_t interval;
    const char *max_rate;
    uint64_t per_host;
    uint64_t attempts;
    struct wr_pace_texts named;
};

extern const char *const wr_profile_names[]; /* names of the profiles, in the order of weir_profile */
/* Choices of --robots-on-error, in the order of weir_robots_mode and enum wr_robots_on_error. */
extern const char *const wr_robots_on_error_names[];

#define WR_SET(settings, field) WR_FIELD(settings, field, struct wr_pace_texts, WR_OPTION_SET)

#define WR_PACE_OPTIONS(settings, field)                                                                             \
    {"pace", WR_CHOICE(settings, field.profile), .choices = wr_profile_names, .help = "How to pace each host",       \
     .heading = "Pace"},                                                                                             \
        {"interval",                                                                                                 \
         WR_DURATION(settings, field.interval),                                                                      \
         .value = "D",                                                                                               \
         .min = 0,                                                                                                   \
         .max = 86400 * UINT64_C(1000000000),                                                                        \
         .help = "Wait at least D between two requests to a host",                                                   \
         .is_basic = true},                                                                                          \
        {"max-rate", WR_STRING(settings, field.max_rate), .value = "N", .check = wr_check_rate,                      \
         .help = "Limit requests per second to each host (adaptive: 8)"},                                            \
        {"per-host",   WR_COUNT(settings, field.per_host),                                                           \
         .value = "N", .min = 0,                                                                                     \
         .max = 10000, .help = "Limit requests in flight to each host (0: by --pace)"},                              \
        {"attempts",   WR_COUNT(settings, field.attempts),                                                           \
         .value = "N", .min = 1,                                                                                     \
         .max = 100,   .help = "Attempts per URL on transient errors (1: no retries)"},                              \
    {                                                                                                                \
        "set", WR_SET(settings, field.named), .value = "pace.NAME=VALUE",                                            \
                                              .help = "Change one setting of the pace; weir.yaml(5) lists the names" \
    }

/* ---- names ---- */

/* Returns the name with this index; NULL after the last one. */
const char *wr_pace_name(size_t index);
bool wr_pace_find(struct wr_span name, size_t *ret_index);
const char *wr_pace_help(size_t index);
const char *wr_pace_expected(size_t index);

/* Returns the name of the option with the same meaning; the command may lack that option. */
const char *wr_pace_flag(size_t index);

/* Returns true if the command paces hosts. */
bool wr_usage_has_pace(const struct wr_usage *usage);

/* Stores a value like wr_option_assign, in the option with the same meaning if the command has
 * one. */
bool wr_pace_assign(const struct wr_usage *usage, size_t index, const char *text, struct wr_value_source origin,
                    void *settings, struct wr_buf *why);

/* Stores a value of --set, "pace.NAME=VALUE". Fails like wr_pace_assign. */
bool wr_pace_set(const struct wr_usage *usage, const char *text, void *settings, struct wr_buf *why);

/* ---- pace options ---- */

/* Creates the pace options. Returns WEIR_E_INVAL with a detail if the values contradict each
 * other. */
int wr_pace_options_from_flags(const struct wr_pace_flags *flags, weir_pace_options *ret_pace);

/* Creates the pace options like wr_pace_options_from_flags. `is_own` means that all servers belong
 * to the user, so that pacing may be off. Returns false after printing an error. */
bool wr_pace_make(const struct wr_pace_flags *flags, bool is_own, weir_pace_options *ret_pace);

/* Appends the value of a name as the user would write it. Appends nothing if it was not set and is
 * not a number of each host. */
void wr_pace_append(struct wr_buf *buf, const struct wr_pace_texts *named, const weir_pace_options *pace, size_t index);

/* Returns the pace settings; NULL if the command does not pace hosts. */
struct wr_pace_flags *wr_pace_flags_of(const struct wr_usage *usage, void *settings);

/* Settings that do not belong to a single host: max-hosts, shards and ttl, and the factor of
 * Crawl-delay. 0: not set. */
struct wr_pacer_settings {
    size_t max_hosts, shards;
    int64_t ttl_ns;
    double delay_factor;
};
void wr_pacer_settings_make(const struct wr_pace_flags *flags, struct wr_pacer_settings *ret_more);

#endif
