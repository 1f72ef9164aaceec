/* SPDX-License-Identifier: MIT */
/* headers.h - weir headers: reads header lines and prints the rate limits that weir finds in
 * them. */
#ifndef WR_CLI_HEADERS_HEADERS_H
#define WR_CLI_HEADERS_HEADERS_H

/* Returns an exit status of enum wr_exit. */
int wr_headers_run(int argc, char **argv);

#endif
