/* SPDX-License-Identifier: MIT */
/* show_settings.h - prints the settings in force and their sources, for "weir config".
 *
 * The command runs up to the point where its options are parsed; then they are printed instead.
 */
#ifndef WR_CLI_KIT_SHOW_SETTINGS_H
#define WR_CLI_KIT_SHOW_SETTINGS_H

#include "cli/kit/command_options.h"

/* Switches to printing: from now on commands print their settings instead of running. */
void wr_show_settings_begin(bool is_json);
bool wr_shows_settings(void);

/* Prints the section of the command, and the section pace once for all commands. The output is a
 * valid settings file: settings that are not set, and secrets, are comments. Returns false after
 * printing an error. */
bool wr_show_settings(const struct wr_usage *usage, void *settings);

/* Ends the output, if anything was printed. */
void wr_show_settings_end(void);

#endif
