/* SPDX-License-Identifier: MIT */
/* secret.h - hides secrets on the command line. */
#ifndef WR_CLI_KIT_SECRET_H
#define WR_CLI_KIT_SECRET_H

/* Replaces each character of a secret by x in the list of processes (ps): a password in a URL, a
 * user without a password, and the value of --header. `argv` points to copies of the original
 * arguments afterwards. */
void wr_secrets_hide(int argc, char **argv);

#endif
