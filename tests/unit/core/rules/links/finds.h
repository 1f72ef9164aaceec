/* SPDX-License-Identifier: MIT */
/* finds.h - sets of links, found by our scanner or by a judge. */
#ifndef WEIR_TEST_FINDS_H
#define WEIR_TEST_FINDS_H

#include <stdbool.h>
#include <stddef.h>

#define FINDS_MAX 4096
#define FINDS_BYTES (1 << 20)

/* Each is a line of text: "a nofollow URL", "frame URL", …; and "title TEXT". */
struct finds {
    size_t count;
    const char *lines[FINDS_MAX];
    size_t used;
    char text[FINDS_BYTES];
};

void finds_clear(struct finds *finds);

/* Adds one; bytes that cannot be printed are escaped, so that a line is a line. */
void finds_add(struct finds *finds, const char *kind, bool nofollow, const char *url, size_t url_bytes);

/* Sorts, and drops what is there twice. */
void finds_sort(struct finds *finds);

bool finds_same(const struct finds *a, const struct finds *b);

/* Prints what only one of them has. Both are sorted. */
void finds_print_difference(const struct finds *ours, const struct finds *theirs);

/* By our scanner, in pieces of `piece` bytes (0: in one). */
void finds_scan(struct finds *finds, const char *page, size_t bytes, size_t piece);

/* By gumbo, in a child process: hostile nesting may overflow its stack. False if the child died. */
bool finds_judge(struct finds *finds, const char *page, size_t bytes);

/* The same in this process, for pages that do not nest deep. */
void finds_judge_here(struct finds *finds, const char *page, size_t bytes);

#endif
