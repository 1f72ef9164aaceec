/* SPDX-License-Identifier: MIT */
/* text_frame.c - composes a screen of text and writes the changed lines. */
#include "cli/view/text_frame.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STYLES_ROOM 64 /* bytes kept free in each line, so that a style can always be ended */

static int clamp_int(int value, int low, int high)
{
    return value < low ? low : value > high ? high : value;
}

void wr_text_frame_begin(struct wr_text_frame *frame, int width, int height)
{
    width = clamp_int(width, 1, WR_TEXT_FRAME_WIDTH_MAX);
    height = clamp_int(height, 1, WR_TEXT_FRAME_HEIGHT_MAX);
    if (width != frame->width || height != frame->height)
        frame->is_stale = true;
    frame->width = width;
    frame->height = height;
    for (int row = 0; row < height; row++)
        frame->lines[row].bytes = 0, frame->lines[row].columns = 0;
}

static struct wr_text_frame_line *frame_line_at(struct wr_text_frame *frame, int row)
{
    return row >= 0 && row < frame->height ? &frame->lines[row] : NULL;
}

/* Appends text that takes `columns` columns, if it fits. */
static void add_to_line(struct wr_text_frame *frame, struct wr_text_frame_line *line, const char *text, size_t bytes,
                        int columns)
{
    size_t room = sizeof line->text - (columns > 0 ? STYLES_ROOM : 0);

    if (line == NULL || line->columns + columns > frame->width || line->bytes + bytes > room)
        return;
    memcpy(line->text + line->bytes, text, bytes);
    line->bytes += bytes;
    line->columns += columns;
}

void wr_text_frame_put(struct wr_text_frame *frame, int row, const char *format, ...)
{
    char text[WR_TEXT_FRAME_WIDTH_MAX + 1];
    va_list args;

    if (frame_line_at(frame, row) == NULL)
        return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (const char *c = text; *c != '\0'; c++)
        add_to_line(frame, frame_line_at(frame, row), *c >= ' ' && *c <= '~' ? c : "?", 1, 1);
}

void wr_text_frame_bar(struct wr_text_frame *frame, int row, unsigned level)
{
    static const char *const bars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const plain[] = {" ", ".", ".", ":", "-", "=", "+", "*", "#"};
    const char *bar = (frame->has_unicode ? bars : plain)[level <= WR_TEXT_FRAME_LEVELS ? level : WR_TEXT_FRAME_LEVELS];

    if (frame_line_at(frame, row) != NULL)
        add_to_line(frame, frame_line_at(frame, row), bar, strlen(bar), 1);
}

void wr_text_frame_style(struct wr_text_frame *frame, int row, enum wr_text_style style)
{
    static const char *const colored[] = {"\033[0m",  "\033[1m",  "\033[7m", "\033[2m",
                                          "\033[32m", "\033[33m", "\033[31m"};
    static const char *const plain[] = {"\033[0m", "\033[1m", "\033[7m", "", "", "", ""};
    const char *code = (frame->has_color ? colored : plain)[style];

    if (frame_line_at(frame, row) != NULL)
        add_to_line(frame, frame_line_at(frame, row), code, strlen(code), 0);
}

void wr_text_frame_pad(struct wr_text_frame *frame, int row, int column)
{
    struct wr_text_frame_line *line = frame_line_at(frame, row);

    if (line == NULL)
        return;
    column = column < frame->width ? column : frame->width;
    while (line->columns < column)
        add_to_line(frame, line, " ", 1, 1);
}

static bool line_is_shown(const struct wr_text_frame *frame, int row)
{
    const struct wr_text_frame_line *line = &frame->lines[row], *shown = &frame->shown[row];

    return !frame->is_stale && shown->bytes == line->bytes && memcmp(shown->text, line->text, line->bytes) == 0;
}

/* Writes all bytes. Returns false on a write error: the terminal may be gone while the crawl
 * continues. */
static bool write_to_terminal(int fd, const char *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t written = write(fd, data, bytes);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        data += written;
        bytes -= (size_t)written;
    }
    return true;
}

void wr_text_frame_write(struct wr_text_frame *frame, int fd)
{
    char text[WR_TEXT_FRAME_LINE_ROOM + STYLES_ROOM];

    bool is_written = !frame->is_stale || write_to_terminal(fd, "\033[0m\033[2J", 8);
    for (int row = 0; row < frame->height; row++) {
        struct wr_text_frame_line *line = &frame->lines[row];
        if (line_is_shown(frame, row))
            continue;
        int bytes = snprintf(text, sizeof text, "\033[%d;1H%.*s\033[0m\033[K", row + 1, (int)line->bytes, line->text);
        is_written = write_to_terminal(fd, text, (size_t)bytes) && is_written;
        frame->shown[row] = *line;
    }
    frame->is_stale = !is_written; /* after a write error the content of the screen is unknown */
}
