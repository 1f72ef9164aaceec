/* SPDX-License-Identifier: MIT */
/* frame.h - a screenful of text: composed line by line, of which only lines that have changed are written.
 *
 * Whatever a text holds, it takes the columns that it seems to: control characters and what is not ASCII show as '?'.
 */
#ifndef WR_CLI_VIEW_FRAME_H
#define WR_CLI_VIEW_FRAME_H

#include <stdbool.h>
#include <stddef.h>

#define WR_FRAME_WIDTH_MAX 300
#define WR_FRAME_HEIGHT_MAX 150
#define WR_FRAME_LINE_ROOM (3 * WR_FRAME_WIDTH_MAX + 256) /* bars take three bytes, styles some more */
#define WR_FRAME_LEVELS 8                                 /* of a bar */

enum wr_style {
    WR_STYLE_PLAIN,
    WR_STYLE_BOLD,
    WR_STYLE_CHOSEN, /* reversed: also without colours */
    WR_STYLE_FAINT,
    WR_STYLE_GOOD,
    WR_STYLE_WAITING,
    WR_STYLE_BAD,
};

struct wr_frame_line {
    char text[WR_FRAME_LINE_ROOM];
    size_t bytes;
    int columns; /* used */
};

struct wr_frame {
    int width, height;
    bool has_color, has_unicode;
    bool is_stale; /* nothing of what is shown counts */
    struct wr_frame_line lines[WR_FRAME_HEIGHT_MAX], shown[WR_FRAME_HEIGHT_MAX];
};

/* Empties it; a size that differs from the last makes it stale. */
void wr_frame_begin(struct wr_frame *frame, int width, int height);

/* At the end of a row; what does not fit is cut. Rows outside the frame take nothing. */
__attribute__((format(printf, 3, 4))) void wr_frame_put(struct wr_frame *frame, int row, const char *format, ...);
/* From 0 to WR_FRAME_LEVELS. */
void wr_frame_bar(struct wr_frame *frame, int row, unsigned level);
void wr_frame_style(struct wr_frame *frame, int row, enum wr_style style);
/* Blanks up to a column. */
void wr_frame_pad(struct wr_frame *frame, int row, int column);

/* Writes what has changed. */
void wr_frame_write(struct wr_frame *frame, int fd);

#endif
