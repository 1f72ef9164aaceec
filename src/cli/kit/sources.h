/* SPDX-License-Identifier: MIT */
/* sources.h - settings from elsewhere than the command line: a file, and the environment.
 *
 *     weir crawl --max-pages 100                    counts for most
 *     WEIR_CRAWL_MAX_PAGES=100                      section and option in capitals
 *     crawl:                                        a file, named by --config or WEIR_CONFIG
 *       max-pages: 100
 *
 * A command's table of options is the schema of its section, so there is no second list. What is said of pace for all
 * commands (section pace, WEIR_PACE_..., --set pace.NAME=VALUE) gives way to what is said for one in the same place.
 *
 * The whole file is checked, whichever command reads it: a mistake in another's section is a mistake. Only rules are
 * left to the daemon, and to weir config check.
 */
#ifndef WR_CLI_KIT_SOURCES_H
#define WR_CLI_KIT_SOURCES_H

#include "cli/kit/options.h"
#include "shell/config/config.h"

/* The commands that have a section; ends with NULL. (cli/sections.c) */
extern const struct wr_usage *const wr_sections[];

/* What the words have not said: from the environment, and from the file. A command without a section: nothing. False
 * after a complaint. */
bool wr_sources_load(const struct wr_usage *usage, void *settings);

/* Whether the file is sound: for every command. Errors as wr_config_read, also of pace as a whole. */
int wr_sources_check(const char *path, char *ret_why, size_t why_bytes);

/* What file and environment have said, as words of a command line, "--depth=5"; for jobs that are gone on with. Ends
 * with NULL; one block, to be freed; NULL: no memory. */
char **wr_sources_words(const struct wr_usage *usage, void *settings, int *ret_count);

#endif
