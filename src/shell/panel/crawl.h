/* SPDX-License-Identifier: MIT */
/* crawl.h - the dashboard of a crawl: shows responses of its control socket (shell/desk), and the
 * history of host paces. */
#ifndef WR_SHELL_PANEL_CRAWL_H
#define WR_SHELL_PANEL_CRAWL_H

#include "shell/desk/desk.h"
#include "shell/panel/panel.h"

struct wr_panel_crawl;

/* Creates the data source; call it after wr_engine_start. Returns WEIR_E_NOMEM on failure. */
int wr_panel_crawl_new(struct wr_engine *engine, struct wr_panel_crawl **ret_crawl);

/* Call it after the dashboard was freed, and before wr_engine_finish. Accepts NULL. */
void wr_panel_crawl_free(struct wr_panel_crawl *crawl);

/* Returns the source, which is valid until wr_panel_crawl_free. */
const struct wr_panel_source *wr_panel_crawl_source(const struct wr_panel_crawl *crawl);

#endif
