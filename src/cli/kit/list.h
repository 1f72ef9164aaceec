/* SPDX-License-Identifier: MIT */
/* list.h - a text with one URL on each line: a file, or standard input.
 *
 *     if (wr_list_open(&list, "urls.txt"))
 *         while (wr_list_next(&list, &url))           list.line is where it stands
 *             …
 *     well = wr_list_close(&list);
 *
 * Blanks around a URL do not count; empty lines and those that begin with '#' are left out. A line that is too long for
 * any URL is told as its beginning, which is still too long. A list may come slowly, from a pipe: when it is not wanted
 * any more `is_over` says so.
 */
#ifndef WR_CLI_KIT_LIST_H
#define WR_CLI_KIT_LIST_H

#include <stdint.h>

#include "base/span.h"

#define WR_LIST_LINE_MAX 65536

struct wr_list {
    const char *name;      /* for complaints */
    bool (*is_over)(void); /* NULL: never */
    uint64_t line;         /* of what next has told */
    int fd;
    bool has_failed;
    bool is_end;    /* there is no more to be read */
    bool is_cut;    /* in the rest of a line that was too long */
    size_t at, end; /* of what was read and not told yet */
    char bytes[2 * WR_LIST_LINE_MAX];
};

/* "-" is standard input. False after a complaint. */
bool wr_list_open(struct wr_list *ret_list, const char *name);

/* False at the end, if it is over, and after a complaint. The text is good until the next call, and terminated. */
bool wr_list_next(struct wr_list *list, struct wr_span *ret_text);

/* False if reading failed, of which was complained. */
bool wr_list_close(struct wr_list *list);

#endif
