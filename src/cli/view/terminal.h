/* SPDX-License-Identifier: MIT */
/* terminal.h - a terminal that is drawn on and typed at: standard error, and standard input. */
#ifndef WR_CLI_VIEW_TERMINAL_H
#define WR_CLI_VIEW_TERMINAL_H

#include <stdbool.h>
#include <termios.h>

enum wr_key {
    WR_KEY_NONE, /* nothing was typed */
    WR_KEY_ENTER = '\r',
    WR_KEY_ESCAPE = 27,
    WR_KEY_ERASE = 127,
    WR_KEY_UP = 256, /* all below are characters */
    WR_KEY_DOWN,
    WR_KEY_PAGE_UP,
    WR_KEY_PAGE_DOWN,
    WR_KEY_OTHER, /* one that nobody knows */
};

struct wr_terminal {
    struct termios before;
    char typed[64]; /* and not yet read as keys */
    int typed_bytes;
    bool is_open;
};

/* Whether it is one on which the cursor can be moved, and that can be typed at. */
bool wr_terminal_fits(void);
/* Whether colours are wanted (NO_COLOR), and letters beyond ASCII shown. */
bool wr_terminal_has_color(void);
bool wr_terminal_has_unicode(void);

/* Takes the whole screen, until it is closed. False: it cannot be. */
bool wr_terminal_open(struct wr_terminal *ret_terminal);
void wr_terminal_close(struct wr_terminal *terminal);

void wr_terminal_size(int *ret_width, int *ret_height);
/* The next key that was typed. Does not wait. */
int wr_terminal_key(struct wr_terminal *terminal);

/* The first key of these bytes, and how many they are. */
int wr_key_read(const char *typed, int bytes, int *ret_used);

#endif
