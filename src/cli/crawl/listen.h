/* SPDX-License-Identifier: MIT */
/* listen.h - --listen: a crawl is watched over HTTP, by a thread of its own while it runs. */
#ifndef WR_CLI_CRAWL_LISTEN_H
#define WR_CLI_CRAWL_LISTEN_H

#include "cli/crawl/settings.h"

struct wr_crawl_listen;

/* Listens, if settings->listen says so. WEIR_E_…: weir_error_detail says why not. */
int wr_crawl_listen_open(const struct wr_crawl_settings *settings, struct wr_engine *engine,
                         struct wr_crawl_listen **ret_listen);

/* "http://127.0.0.1:8080/", with the token behind it where `is_shown`; of a Unix socket its address. */
void wr_crawl_listen_name(const struct wr_crawl_listen *listen, bool is_shown, char *ret_text, size_t room);

/* Before wr_engine_finish. NULL is fine. */
void wr_crawl_listen_close(struct wr_crawl_listen *listen);

#endif
