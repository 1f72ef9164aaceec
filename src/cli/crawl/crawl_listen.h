/* SPDX-License-Identifier: MIT */
/* crawl_listen.h - --listen: serves the dashboard and metrics of a running crawl over HTTP, in a
 * thread of its own. */
#ifndef WR_CLI_CRAWL_CRAWL_LISTEN_H
#define WR_CLI_CRAWL_CRAWL_LISTEN_H

#include "cli/crawl/crawl_settings.h"

struct wr_crawl_listen;

/* Starts the server if settings->listen is set, otherwise sets *ret_listen to NULL and returns 0.
 * On WEIR_E_... weir_error_detail has the reason. */
int wr_crawl_listen_open(const struct wr_crawl_settings *settings, struct wr_engine *engine,
                         struct wr_crawl_listen **ret_listen);

/* Writes the address of the dashboard: "http://127.0.0.1:8080/", with the token appended if
 * `is_shown`; the plain address for a Unix socket. */
void wr_crawl_listen_name(const struct wr_crawl_listen *listen, bool is_shown, char *ret_text, size_t room);

/* Stops the server. Call it before wr_engine_finish. Accepts NULL. */
void wr_crawl_listen_close(struct wr_crawl_listen *listen);

#endif
