/* SPDX-License-Identifier: MIT */
/* complete.h - prints the completions of a command line for a shell, from the tables that also
 * serve parsing and --help.
 *
 * "weir complete WORD..." runs the command that the words name, but at the point where it would
 * parse its options it prints the completions of the last word instead. Each is a line with the
 * completion, a tab and an explanation. The line ":files" asks the shell for file names, ":folders"
 * for folder names.
 */
#ifndef WR_CLI_KIT_COMPLETE_H
#define WR_CLI_KIT_COMPLETE_H

#include "cli/kit/command.h"
#include "cli/kit/command_options.h"

/* Switches to completion: from now on commands print completions instead of running. */
void wr_complete_begin(void);
bool wr_completes(void);

/* Print the completions of the last argument: a command, or an option, its value or an operand.
 * There must be at least one argument. */
void wr_complete_command(const struct wr_commands *commands, const char *word);
void wr_complete_option(const struct wr_usage *usage, int argc, char **argv);

#endif
