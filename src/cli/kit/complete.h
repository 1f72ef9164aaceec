/* SPDX-License-Identifier: MIT */
/* complete.h - what may come next on a command line, for shells: told by the tables that are parsed by and explained.
 *
 * "weir complete WORD…" runs the command that the words name, but for its doing: where it would parse its options, what
 * the last word may become is printed instead, a line each with a tab and an explanation. The line ":files" asks the
 * shell for names of files, ":folders" for folders.
 */
#ifndef WR_CLI_KIT_COMPLETE_H
#define WR_CLI_KIT_COMPLETE_H

#include "cli/kit/command.h"
#include "cli/kit/options.h"

/* From here on nothing is done. */
void wr_complete_begin(void);
bool wr_completes(void);

/* What the last of the words may become: a command; an option, its value or an operand. There is at least one word. */
void wr_complete_command(const struct wr_commands *commands, const char *word);
void wr_complete_option(const struct wr_usage *usage, int argc, char **argv);

#endif
