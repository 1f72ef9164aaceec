/* SPDX-License-Identifier: MIT */
/* fetch.h - weir fetch: fetches given URLs politely. */
#ifndef WR_CLI_FETCH_FETCH_H
#define WR_CLI_FETCH_FETCH_H

/* An exit status, of enum wr_exit, or 130 if it was interrupted. */
int wr_fetch_run(int argc, char **argv);

#endif
