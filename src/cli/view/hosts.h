/* SPDX-License-Identifier: MIT */
/* hosts.h - draws the table of hosts in the full-screen view, with as many columns as fit. */
#ifndef WR_CLI_VIEW_HOSTS_H
#define WR_CLI_VIEW_HOSTS_H

#include "cli/view/frame.h"
#include "shell/engine/look.h"

void wr_hosts_draw_head(struct wr_frame *frame, int row);
void wr_hosts_draw(struct wr_frame *frame, int row, const struct wr_look_host *host, bool is_chosen);

#endif
