/* SPDX-License-Identifier: MIT */
/* options.h - a host's numbers: named, given their defaults, and checked. */
#ifndef WR_CORE_PACE_OPTIONS_H
#define WR_CORE_PACE_OPTIONS_H

#include <weir/pace.h>

#include "base/buf.h"

/* Completes and checks: a number that is 0 gets its default, and any other that is out of its range is refused. NULL is
 * the adaptive profile. All of core/pace wants options that went through here. 0 or WEIR_E_INVAL. */
int wr_pace_options_check(const weir_pace_options *given, weir_pace_options *ret_options);

/* What weir_pace_options_set takes, but for "profile", one after another; NULL at the end. */
const char *wr_pace_option_name(size_t index);

/* What the option of this name must be, "a duration of 1ms or more"; NULL if there is none. */
const char *wr_pace_option_wanted(const char *name);

/* Its value, as weir_pace_options_set takes it. */
void wr_pace_option_append(struct wr_buf *buf, const weir_pace_options *options, const char *name);

#endif
