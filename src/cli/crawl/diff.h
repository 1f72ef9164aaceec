/* SPDX-License-Identifier: MIT */
/* diff.h - what a job saw differently from the earlier one, as lines of JSON. */
#ifndef WR_CLI_CRAWL_DIFF_H
#define WR_CLI_CRAWL_DIFF_H

#include "shell/engine/engine.h"

/* Before wr_engine_finish. "-" is standard output. False after a complaint. */
bool wr_crawl_diff_write(struct wr_engine *engine, const char *path);

#endif
