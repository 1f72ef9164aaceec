/* SPDX-License-Identifier: MIT */
/* crawl_command.h - weir crawl: fetches whole sites politely. */
#ifndef WR_CLI_CRAWL_CRAWL_COMMAND_H
#define WR_CLI_CRAWL_CRAWL_COMMAND_H

/* Runs the command with the arguments after "crawl". Returns an exit status. */
int wr_crawl_run(int argc, char **argv);

#endif
