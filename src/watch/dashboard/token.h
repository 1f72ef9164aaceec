/* SPDX-License-Identifier: MIT */
/* token.h - secrets in files of their own: the token for commands, and others. */
#ifndef WR_WATCH_DASHBOARD_TOKEN_H
#define WR_WATCH_DASHBOARD_TOKEN_H

#include <stddef.h>

#define WR_DASHBOARD_TOKEN_ROOM 256

/* Generates a random token of 128 bits, in hex. Returns WEIR_E_SYSTEM on failure. */
int wr_dashboard_token_generate(char ret_token[WR_DASHBOARD_TOKEN_ROOM]);

/* Reads a token from the first line of a file; if there is no such file, writes a new token to it,
 * readable only by the owner. Returns WEIR_E_INVAL if the line does not have 16 to 255 visible
 * characters or other users can read the file, or WEIR_E_SYSTEM; weir_error_detail has the
 * reason. */
int wr_dashboard_token_read(const char *path, char ret_token[WR_DASHBOARD_TOKEN_ROOM]);

/* Reads a secret of at least `min` characters, like wr_dashboard_token_read. Returns WEIR_E_ABSENT
 * if there is no such file. */
int wr_dashboard_secret_read(const char *path, size_t min, char ret_secret[WR_DASHBOARD_TOKEN_ROOM]);

#endif
