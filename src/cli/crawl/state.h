/* SPDX-License-Identifier: MIT */
/* state.h - where a crawl is remembered, and the job there. Exit statuses; what is not WR_EXIT_OK was complained of. */
#ifndef WR_CLI_CRAWL_STATE_H
#define WR_CLI_CRAWL_STATE_H

#include "cli/crawl/settings.h"

/* As it may be shown; good until the next call. */
const char *wr_crawl_state_name(const struct wr_crawl_settings *settings);

int wr_crawl_state_open(const struct wr_crawl_settings *settings, struct wr_engine **ret_engine);

/* That can be gone on with. */
int wr_crawl_state_find(const struct wr_crawl_settings *settings, struct wr_engine *engine,
                        struct wr_engine_job *ret_job);

/* That is visited again. */
int wr_crawl_state_find_earlier(const struct wr_crawl_settings *settings, struct wr_engine *engine,
                                struct wr_engine_job *ret_job);

#endif
