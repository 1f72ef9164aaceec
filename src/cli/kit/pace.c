/* SPDX-License-Identifier: MIT */
/* pace.c - the options by which hosts are paced. */
#include "cli/kit/pace.h"

#include <string.h>

#include "base/parse.h"
#include "cli/kit/output.h"

const char *const wr_pace_names[] = {
#define X(profile, name) name,
    WEIR_PROFILES(X)
#undef X
        NULL,
};
const char *const wr_robots_names[] = {"rfc9309", "allow", "deny", NULL};

/* By itself first: what is wrong is told without the library's name for it. */
static bool set_rate(const char *text, weir_pace_options *pace)
{
    double rate;
    if (wr_parse_number(text, strlen(text), 0, 1e9, &rate) == 0 && weir_pace_options_set(pace, "max_rate", text) == 0)
        return true;
    wr_complain("--max-rate: %s", weir_error_detail());
    return false;
}

bool wr_pace_make(const struct wr_pace_flags *flags, weir_pace_options *ret_pace)
{
    (void)weir_pace_options_profile(ret_pace, (weir_profile)flags->profile);
    if (flags->interval > 0)
        ret_pace->min_interval_ns = flags->interval;
    if (flags->per_host > 0)
        ret_pace->max_in_flight = (uint32_t)flags->per_host;
    if (flags->max_rate != NULL && !set_rate(flags->max_rate, ret_pace))
        return false;
    if (flags->attempts > 0)
        ret_pace->retry.attempts = (uint32_t)flags->attempts;
    return true;
}
