/* SPDX-License-Identifier: MIT */
/* options_text.h - prints options and their values as text, and the --help of a command. */
#ifndef WR_CLI_KIT_OPTIONS_TEXT_H
#define WR_CLI_KIT_OPTIONS_TEXT_H

#include "cli/kit/command_options.h"

/* Describes the valid values of an option, such as "a whole number from 1 to 100". */
void wr_option_expected(const struct wr_option *option, char *ret_text, size_t text_bytes);

/* Appends a value as the user would write it, such as "90s" or "64k". Appends nothing for a missing
 * string and for a list. */
void wr_option_append(struct wr_buf *buf, const struct wr_option *option, const void *settings);

/* Prints the command's --help, or --help all. `settings` holds the defaults. */
void wr_options_help(const struct wr_usage *usage, const void *settings, bool lists_all);

#endif
