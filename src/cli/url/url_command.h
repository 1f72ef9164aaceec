/* SPDX-License-Identifier: MIT */
/* url_command.h - weir url: prints one URL, resolved and normalised. */
#ifndef WR_CLI_URL_URL_COMMAND_H
#define WR_CLI_URL_URL_COMMAND_H

/* Returns an exit status of enum wr_exit. */
int wr_url_run(int argc, char **argv);

#endif
