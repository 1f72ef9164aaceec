/* SPDX-License-Identifier: MIT */
/* text_frame.h - composes a screen of text line by line and writes only the changed lines.
 *
 * Each byte of a text takes one column: control characters and bytes beyond ASCII are shown as '?'.
 */
#ifndef WR_CLI_VIEW_TEXT_FRAME_H
#define WR_CLI_VIEW_TEXT_FRAME_H

#include <stdbool.h>
#include <stddef.h>

#define WR_TEXT_FRAME_WIDTH_MAX 300
#define WR_TEXT_FRAME_HEIGHT_MAX 150
/* Bars take three bytes per column; the rest is for styles. */
#define WR_TEXT_FRAME_LINE_ROOM (3 * WR_TEXT_FRAME_WIDTH_MAX + 256)
#define WR_TEXT_FRAME_LEVELS 8 /* maximum level of a bar */

enum wr_text_style {
    WR_STYLE_PLAIN,
    WR_STYLE_BOLD,
    WR_STYLE_CHOSEN, /* reversed colours; visible also without colour support */
    WR_STYLE_FAINT,
    WR_STYLE_GOOD,
    WR_STYLE_WAITING,
    WR_STYLE_BAD,
};

struct wr_text_frame_line {
    char text[WR_TEXT_FRAME_LINE_ROOM];
    size_t bytes;
    int columns; /* number of columns used in the line */
};

struct wr_text_frame {
    int width, height;
    bool has_color, has_unicode;
    bool is_stale; /* `shown` does not match the screen: all lines must be written */
    struct wr_text_frame_line lines[WR_TEXT_FRAME_HEIGHT_MAX], shown[WR_TEXT_FRAME_HEIGHT_MAX];
};

/* Empties the frame. A size that differs from the last one makes it stale. */
void wr_text_frame_begin(struct wr_text_frame *frame, int width, int height);

/* Appends text to a row; cuts what does not fit. Ignores rows outside the frame. */
__attribute__((format(printf, 3, 4))) void wr_text_frame_put(struct wr_text_frame *frame, int row, const char *format,
                                                             ...);
/* Appends a bar of a level from 0 to WR_TEXT_FRAME_LEVELS. */
void wr_text_frame_bar(struct wr_text_frame *frame, int row, unsigned level);
void wr_text_frame_style(struct wr_text_frame *frame, int row, enum wr_text_style style);
/* Fills the row with blanks up to a column. */
void wr_text_frame_pad(struct wr_text_frame *frame, int row, int column);

/* Writes the lines that have changed. */
void wr_text_frame_write(struct wr_text_frame *frame, int fd);

#endif
