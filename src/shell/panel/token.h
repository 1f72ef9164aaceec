/* SPDX-License-Identifier: MIT */
/* token.h - secrets in files of their own: the token that commands need, and others. */
#ifndef WR_SHELL_PANEL_TOKEN_H
#define WR_SHELL_PANEL_TOKEN_H

#include <stddef.h>

#define WR_PANEL_TOKEN_ROOM 256

/* 128 bits that nobody knows, in hex. WEIR_E_SYSTEM. */
int wr_panel_token_draw(char ret_token[WR_PANEL_TOKEN_ROOM]);

/* The first line of a file that is there; else a new one, which is written to it for its owner's eyes only.
 * WEIR_E_INVAL (not one line of 16 to 255 visible characters, or others can read it), WEIR_E_SYSTEM: weir_error_detail
 * says what. */
int wr_panel_token_read(const char *path, char ret_token[WR_PANEL_TOKEN_ROOM]);

/* The same for a file that must be there, with a line of at least `min` characters. */
int wr_panel_secret_read(const char *path, size_t min, char ret_secret[WR_PANEL_TOKEN_ROOM]);

#endif
