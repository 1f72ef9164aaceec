/* SPDX-License-Identifier: MIT */
/* options.h - a host's numbers: named, given their defaults, and checked. */
#ifndef WR_CORE_PACE_OPTIONS_H
#define WR_CORE_PACE_OPTIONS_H

#include <weir/pace.h>

/* Completes and checks: a number that is 0 gets its default, and any other that is out of its range is refused. NULL is
 * the adaptive profile. All of core/pace wants options that went through here. 0 or WEIR_E_INVAL. */
int wr_pace_options_check(const weir_pace_options *given, weir_pace_options *ret_options);

#endif
