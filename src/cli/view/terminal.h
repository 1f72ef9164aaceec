/* SPDX-License-Identifier: MIT */
/* terminal.h - draws on a terminal (standard error) and reads its keys (standard input). */
#ifndef WR_CLI_VIEW_TERMINAL_H
#define WR_CLI_VIEW_TERMINAL_H

#include <stdbool.h>
#include <termios.h>

enum wr_key_code {
    WR_KEY_NONE, /* no key was typed */
    WR_KEY_ENTER = '\r',
    WR_KEY_ESCAPE = 27,
    WR_KEY_ERASE = 127,
    WR_KEY_UP = 256, /* first key code that is not a character */
    WR_KEY_DOWN,
    WR_KEY_PAGE_UP,
    WR_KEY_PAGE_DOWN,
    WR_KEY_OTHER, /* any other key */
};

struct wr_terminal {
    struct termios before;
    char typed[64]; /* bytes that were read but not yet parsed as keys */
    int typed_bytes;
    bool is_open;
};

/* Returns true if standard input and standard error are a terminal with a movable cursor. */
bool wr_terminal_fits(void);
/* Return true if colours are allowed (NO_COLOR), and if characters beyond ASCII can be shown. */
bool wr_terminal_has_color(void);
bool wr_terminal_has_unicode(void);

/* Switches to the alternate screen until the terminal is closed. Returns false if that fails. */
bool wr_terminal_open(struct wr_terminal *ret_terminal);
void wr_terminal_close(struct wr_terminal *terminal);

void wr_terminal_size(int *ret_width, int *ret_height);
/* Returns the next key that was typed. Does not wait. */
int wr_terminal_key(struct wr_terminal *terminal);

/* Parses the first key of the bytes. Sets *ret_used to its number of bytes. */
int wr_key_code_parse(const char *typed, int bytes, int *ret_used);

#endif
