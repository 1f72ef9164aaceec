/* SPDX-License-Identifier: MIT */
/* crawl_state.h - opens the state file or database of a crawl and finds the job in it. The
 * functions return an exit status, and print an error unless it is WR_EXIT_OK. */
#ifndef WR_CLI_CRAWL_CRAWL_STATE_H
#define WR_CLI_CRAWL_CRAWL_STATE_H

#include "cli/crawl/crawl_settings.h"

/* Returns the name of the state for messages, without a password. The text is valid until the next
 * call. */
const char *wr_crawl_state_name(const struct wr_crawl_settings *settings);

int wr_crawl_state_open(const struct wr_crawl_settings *settings, struct wr_engine **ret_engine);

/* Finds the job that --resume continues. */
int wr_crawl_state_find(const struct wr_crawl_settings *settings, struct wr_engine *engine,
                        struct wr_engine_job *ret_job);

/* Finds the job whose URLs --recrawl visits. */
int wr_crawl_state_find_earlier(const struct wr_crawl_settings *settings, struct wr_engine *engine,
                                struct wr_engine_job *ret_job);

#endif
