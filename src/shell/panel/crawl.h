/* SPDX-License-Identifier: MIT */
/* crawl.h - the panel of a crawl: it shows what the desk tells (shell/desk), and how paces came about. */
#ifndef WR_SHELL_PANEL_CRAWL_H
#define WR_SHELL_PANEL_CRAWL_H

#include "shell/desk/desk.h"
#include "shell/panel/panel.h"

struct wr_panel_crawl;

/* From wr_engine_start on. WEIR_E_NOMEM. */
int wr_panel_crawl_new(struct wr_engine *engine, struct wr_panel_crawl **ret_crawl);

/* After its panel, and before wr_engine_finish. NULL is fine. */
void wr_panel_crawl_free(struct wr_panel_crawl *crawl);

/* As long as the crawl's panel. */
const struct wr_panel_source *wr_panel_crawl_source(const struct wr_panel_crawl *crawl);

#endif
