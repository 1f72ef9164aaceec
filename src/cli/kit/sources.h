/* SPDX-License-Identifier: MIT */
/* sources.h - reads settings from a file and from the environment.
 *
 *     weir crawl --max-pages 100              has precedence
 *     WEIR_CRAWL_MAX_PAGES=100                section and option in capitals
 *     crawl:                                  a file, named by --config or WEIR_CONFIG
 *         max-pages: 100
 *
 * The option table of a command is also the schema of its section. Values of pace for all commands
 * (section pace, WEIR_PACE_..., --set pace.NAME=VALUE) yield to a value for the command from the
 * same source.
 *
 * The whole file is checked, whichever command reads it: an error in the section of another command
 * is reported as well. Only rules are left to the daemon and to weir config check.
 */
#ifndef WR_CLI_KIT_SOURCES_H
#define WR_CLI_KIT_SOURCES_H

#include "cli/kit/command_options.h"
#include "config/config.h"

/* Commands with a section; ends with NULL. Defined in cli/config/config_command.c. */
extern const struct wr_usage *const wr_sections[];

/* Fills in settings that are not given as arguments, from the environment and from the file. Does
 * nothing for a command without a section. Returns false after printing an error. */
bool wr_sources_load(const struct wr_usage *usage, void *settings);

/* Checks the sections of all commands in the file, and the pace as a whole. Returns the errors of
 * wr_config_read. */
int wr_sources_check(const char *path, char *ret_why, size_t why_bytes);

/* Returns the settings from file and environment as arguments, such as "--depth=5", to store with a
 * job. The array ends with NULL and is one block, which the caller frees. Returns NULL if out of
 * memory. */
char **wr_sources_args(const struct wr_usage *usage, void *settings, int *ret_count);

#endif
