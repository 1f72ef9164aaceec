/* SPDX-License-Identifier: MIT */
/* warm.h - weir warm: fetches what a site's sitemaps list, so that its cache has it. */
#ifndef WR_CLI_WARM_WARM_H
#define WR_CLI_WARM_WARM_H

/* An exit status, of enum wr_exit, or 130 if it was interrupted. */
int wr_warm_run(int argc, char **argv);

#endif
