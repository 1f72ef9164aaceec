/* SPDX-License-Identifier: MIT */
/* crawl_files.h - checks the files of a crawl before any of them is created. */
#ifndef WR_CLI_CRAWL_CRAWL_FILES_H
#define WR_CLI_CRAWL_CRAWL_FILES_H

#include "cli/crawl/crawl_settings.h"

/* Checks that no two options name the same file or standard output. Returns false after printing an
 * error. */
bool wr_crawl_files_fit(const struct wr_crawl_settings *settings);

/* Checks that all files can be written. Returns false after printing an error. */
bool wr_crawl_files_writable(const struct wr_crawl_settings *settings);

/* Returns true if the result lines go into the database instead of a file. */
bool wr_crawl_keeps_lines(const struct wr_crawl_settings *settings);

/* Checks that no results of another crawl are overwritten or mixed with new ones by mistake: the
 * output file is missing or empty, or --append was given. Sets `append` for a pipe or device.
 * Returns false after printing an error. */
bool wr_crawl_out_is_unused(struct wr_crawl_settings *settings);

#endif
