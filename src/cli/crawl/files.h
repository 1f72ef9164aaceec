/* SPDX-License-Identifier: MIT */
/* files.h - the files of a crawl: can they be what they are named for? Found out before any is made. */
#ifndef WR_CLI_CRAWL_FILES_H
#define WR_CLI_CRAWL_FILES_H

#include "cli/crawl/settings.h"

/* Standard output is for one thing, and each file too. False after a complaint. */
bool wr_crawl_files_fit(const struct wr_crawl_settings *settings);

/* All can be written. False after a complaint. */
bool wr_crawl_files_writable(const struct wr_crawl_settings *settings);

/* The lines go into the database, and not into a file. */
bool wr_crawl_keeps_lines(const struct wr_crawl_settings *settings);

/* Results of another crawl are not written over or mixed with these by mistake: there are none, or that is what was
 * asked for. Into a pipe or a device lines are added. False after a complaint. */
bool wr_crawl_out_free(struct wr_crawl_settings *settings);

#endif
