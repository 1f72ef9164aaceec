/* SPDX-License-Identifier: MIT */
/* token.h - the secret that commands need. */
#ifndef WR_SHELL_PANEL_TOKEN_H
#define WR_SHELL_PANEL_TOKEN_H

#define WR_PANEL_TOKEN_ROOM 256

/* 128 bits that nobody knows, in hex. WEIR_E_SYSTEM. */
int wr_panel_token_draw(char ret_token[WR_PANEL_TOKEN_ROOM]);

/* The first line of a file that is there; else a new one, which is written to it for its owner's eyes only.
 * WEIR_E_INVAL (not one line of 16 to 255 visible characters, or others can read it), WEIR_E_SYSTEM: weir_error_detail
 * says what. */
int wr_panel_token_read(const char *path, char ret_token[WR_PANEL_TOKEN_ROOM]);

#endif
