/* SPDX-License-Identifier: MIT */
/* url_list.h - reads a text with one URL per line, from a file or from standard input.
 *
 *     if (wr_url_list_open(&list, "urls.txt"))
 *         while (wr_url_list_next(&list, &url))           list.line is the line number
 *             ...
 *     well = wr_url_list_close(&list);
 *
 * Blanks around a URL are removed. Empty lines and lines that begin with '#' are skipped. A line
 * that is too long for any URL is returned cut, which is still too long. A list may arrive slowly
 * through a pipe: `is_over` ends the wait.
 */
#ifndef WR_CLI_KIT_URL_LIST_H
#define WR_CLI_KIT_URL_LIST_H

#include <stdint.h>

#include "base/span.h"

#define WR_URL_LIST_LINE_MAX 65536

struct wr_url_list {
    const char *name;      /* name for error messages */
    bool (*is_over)(void); /* returns true when the caller needs no more lines; NULL: never */
    uint64_t line;         /* number of the line that was returned last */
    int fd;
    bool has_failed;
    bool is_end;    /* the end of the input was read */
    bool is_cut;    /* inside the rest of a line that was cut */
    size_t at, end; /* bounds of the bytes that were read but not returned yet */
    char bytes[2 * WR_URL_LIST_LINE_MAX];
};

/* Opens a list; "-" is standard input. Returns false after printing an error. */
bool wr_url_list_open(struct wr_url_list *ret_list, const char *name);

/* Returns the next URL, which is terminated and valid until the next call. Returns false at the
 * end, when the list is over, and after printing an error. */
bool wr_url_list_next(struct wr_url_list *list, struct wr_span *ret_text);

/* Returns false if reading failed; the error was printed then. */
bool wr_url_list_close(struct wr_url_list *list);

#endif
