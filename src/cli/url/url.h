/* SPDX-License-Identifier: MIT */
/* url.h - weir url: one URL, the way weir sees it. */
#ifndef WR_CLI_URL_URL_H
#define WR_CLI_URL_URL_H

/* An exit status, of enum wr_exit. */
int wr_url_run(int argc, char **argv);

#endif
