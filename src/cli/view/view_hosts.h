/* SPDX-License-Identifier: MIT */
/* view_hosts.h - draws the table of hosts in the full-screen view, with as many columns as fit. */
#ifndef WR_CLI_VIEW_VIEW_HOSTS_H
#define WR_CLI_VIEW_VIEW_HOSTS_H

#include "cli/view/text_frame.h"
#include "crawl/engine/crawl_inspect.h"

void wr_view_draw_hosts_head(struct wr_text_frame *frame, int row);
void wr_view_draw_host(struct wr_text_frame *frame, int row, const struct wr_host_view *host, bool is_chosen);

#endif
