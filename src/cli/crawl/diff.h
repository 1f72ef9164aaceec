/* SPDX-License-Identifier: MIT */
/* diff.h - writes the differences between a recrawl and the earlier job as JSON lines. */
#ifndef WR_CLI_CRAWL_DIFF_H
#define WR_CLI_CRAWL_DIFF_H

#include "crawl/engine/engine.h"

/* Writes the differences to a file, or to standard output if `path` is "-". Call it before
 * wr_engine_finish. Returns false after printing an error. */
bool wr_crawl_diff_write(struct wr_engine *engine, const char *path);

#endif
