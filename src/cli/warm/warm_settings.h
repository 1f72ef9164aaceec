/* SPDX-License-Identifier: MIT */
/* warm_settings.h - the options of weir warm. */
#ifndef WR_CLI_WARM_WARM_SETTINGS_H
#define WR_CLI_WARM_WARM_SETTINGS_H

#include <weir/client.h>

#include "cli/kit/command_options.h"
#include "cli/kit/pace_flags.h"

struct wr_warm_settings {
    struct wr_sources sources;
    const char *urls_file, *out, *report, *state, *agent, *proxy, *ca_file;
    struct wr_option_list sitemaps, headers;
    struct wr_pace_flags pace;
    int robots_on_error;
    int64_t timeout, max_defer;
    uint64_t concurrency, max_pages, min_hit_ratio;
    bool append, ignore_robots, allow_private, json, quiet;
};

extern const struct wr_usage wr_warm_usage;

void wr_warm_settings_init(struct wr_warm_settings *ret_settings);

/* Checks that the options fit together. Returns false after printing an error. */
bool wr_warm_settings_check(const struct wr_warm_settings *settings);

/* Returns how many pages of a site are requested at a time: enough to keep it busy, but so few that
 * probes do not queue for long. */
unsigned wr_warm_window(const struct wr_warm_settings *settings);

#endif
