/* SPDX-License-Identifier: MIT */
/* pace_options.h - The pacing options by name, with their defaults, checks and text form. */
#ifndef WR_CORE_PACE_PACE_OPTIONS_H
#define WR_CORE_PACE_PACE_OPTIONS_H

#include <weir/pace.h>

#include "base/buf.h"
#include "base/seam.h"

/* Completes and checks options: a number of 0 becomes the default, any other number out of range is
 * an error. NULL stands for the adaptive profile. All of core/pace expects options that passed this
 * check. Returns 0 or WEIR_E_INVAL. */
WR_SEAM int wr_pace_options_check(const weir_pace_options *given, weir_pace_options *ret_options);

/* Returns the name of the option at `index` as weir_pace_options_set accepts it, without "profile";
 * NULL after the last one. */
const char *wr_pace_option_name(size_t index);

/* Returns what is valid for the option, such as "a duration of 1ms or more"; NULL if unknown. */
const char *wr_pace_option_wanted(const char *name);

/* Appends the value of the option in the form that weir_pace_options_set accepts. */
void wr_pace_option_append(struct wr_buf *buf, const weir_pace_options *options, const char *name);

#endif
