/* SPDX-License-Identifier: MIT */
/* secret.h - passwords and header fields on the command line. */
#ifndef WR_CLI_KIT_SECRET_H
#define WR_CLI_KIT_SECRET_H

/* A list of the processes (ps) shows x for every character of a password in a URL, of a user without one, and of what
 * is given to --header; `argv` goes on with what it was. */
void wr_secrets_hide(int argc, char **argv);

#endif
