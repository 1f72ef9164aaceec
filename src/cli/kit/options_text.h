/* SPDX-License-Identifier: MIT */
/* options_text.h - options in words: what a value must be, and a command's --help. */
#ifndef WR_CLI_KIT_OPTIONS_TEXT_H
#define WR_CLI_KIT_OPTIONS_TEXT_H

#include "cli/kit/options.h"

/* What a value must be: "a whole number from 1 to 100". */
void wr_option_wanted(const struct wr_option *option, char *ret_text, size_t text_bytes);

/* A value, as it would be given: "90s", "64k". Nothing for a text that is not there, and for lists. */
void wr_option_append(struct wr_buf *buf, const struct wr_option *option, const void *settings);

/* Prints the command's --help, or --help all; `settings` holds the defaults. */
void wr_options_help(const struct wr_usage *usage, const void *settings, bool lists_all);

#endif
