/* SPDX-License-Identifier: MIT */
/* crawl.h - weir crawl: sites, politely and whole. */
#ifndef WR_CLI_CRAWL_CRAWL_H
#define WR_CLI_CRAWL_CRAWL_H

/* Gets the words after "crawl"; returns an exit status. */
int wr_crawl_run(int argc, char **argv);

#endif
