/* SPDX-License-Identifier: MIT */
/* show.h - settings as they are in force, and where each came from; for "weir config".
 *
 * It runs a command, but for its doing: where its options have been parsed, they are printed instead.
 */
#ifndef WR_CLI_KIT_SHOW_H
#define WR_CLI_KIT_SHOW_H

#include "cli/kit/options.h"

/* From here on nothing is done. */
void wr_show_begin(bool is_json);
bool wr_shows(void);

/* Prints the command's section, and pace, of several commands once. What is printed may be used as a file: what is not
 * set, and secrets, stand in comments. False after a complaint. */
bool wr_show(const struct wr_usage *usage, void *settings);

/* Ends what was printed, if anything was. */
void wr_show_end(void);

#endif
