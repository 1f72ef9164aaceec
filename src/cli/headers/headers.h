/* SPDX-License-Identifier: MIT */
/* headers.h - weir headers: what a response's header says about limits. */
#ifndef WR_CLI_HEADERS_HEADERS_H
#define WR_CLI_HEADERS_HEADERS_H

/* An exit status, of enum wr_exit. */
int wr_headers_run(int argc, char **argv);

#endif
