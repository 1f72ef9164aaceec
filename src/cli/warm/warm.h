/* SPDX-License-Identifier: MIT */
/* warm.h - weir warm: fetches the pages that a site's sitemaps list, so that its cache stores
 * them. */
#ifndef WR_CLI_WARM_WARM_H
#define WR_CLI_WARM_WARM_H

/* Returns an exit status of enum wr_exit, or 130 after an interrupt. */
int wr_warm_run(int argc, char **argv);

#endif
