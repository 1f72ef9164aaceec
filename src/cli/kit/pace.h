/* SPDX-License-Identifier: MIT */
/* pace.h - the options by which hosts are paced, the same for every command that sends.
 *
 *     struct settings { struct wr_pace_flags pace; … };
 *     static const struct wr_option options[] = { WR_PACE_OPTIONS(struct settings, pace), … };
 *     if (!wr_pace_make(&settings.pace, &pace))
 *         return WR_EXIT_USAGE;
 */
#ifndef WR_CLI_KIT_PACE_H
#define WR_CLI_KIT_PACE_H

#include <weir/pace.h>

#include "cli/kit/options.h"

struct wr_pace_flags {
    int profile;
    int64_t interval;
    const char *max_rate;
    uint64_t per_host;
    uint64_t attempts;
};

extern const char *const wr_pace_names[];   /* in the order of weir_profile */
extern const char *const wr_robots_names[]; /* of --robots-on-error, as in weir_robots_mode and enum wr_on_error */

#define WR_PACE_OPTIONS(settings, field)                                                                            \
    {"pace", WR_CHOICE(settings, field.profile), .choices = wr_pace_names, .help = "how each host is paced"},       \
        {"interval", WR_DURATION(settings, field.interval), .value = "D",                                           \
         .min = 0,   .max = 86400 * UINT64_C(1000000000),   .help = "at least this between two starts at a host"},  \
        {"max-rate", WR_STRING(settings, field.max_rate), .value = "N",                                             \
         .help = "at most so many starts a second at a host (adaptive: 8)"},                                        \
        {"per-host",   WR_COUNT(settings, field.per_host),                                                          \
         .value = "N", .min = 0,                                                                                    \
         .max = 10000, .help = "at most so many in flight at a host (0: as the pace says)"},                        \
    {                                                                                                               \
        "attempts", WR_COUNT(settings, field.attempts),                                                             \
            .value = "N", .min = 1, .max = 100, .help = "tries of what fails for the moment (1: no retries at all)" \
    }

/* False after a complaint. */
bool wr_pace_make(const struct wr_pace_flags *flags, weir_pace_options *ret_pace);

#endif
