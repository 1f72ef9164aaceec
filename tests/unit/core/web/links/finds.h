/* SPDX-License-Identifier: MIT */
/* finds.h - sets of links, found by our scanner or by gumbo. */
#ifndef WEIR_TEST_FINDS_H
#define WEIR_TEST_FINDS_H

#include <stdbool.h>
#include <stddef.h>

#define FINDS_MAX 4096
#define FINDS_BYTES (1 << 20)

/* A set of links. Each is a line of text: "a nofollow URL", "frame URL" and so on, or "title
 * TEXT". */
struct finds {
    size_t count;
    const char *lines[FINDS_MAX];
    size_t used;
    char text[FINDS_BYTES];
};

void finds_clear(struct finds *finds);

/* Adds a link. Unprintable bytes are escaped, so that it stays one line. */
void finds_add(struct finds *finds, const char *kind, bool nofollow, const char *url, size_t url_bytes);

/* Sorts the lines and removes duplicates. */
void finds_sort(struct finds *finds);

bool finds_same(const struct finds *a, const struct finds *b);

/* Prints the lines that only one of the sets has. Both must be sorted. */
void finds_print_difference(const struct finds *ours, const struct finds *theirs);

/* Adds the links that our scanner finds in pieces of `piece` bytes (0: in one piece). */
void finds_scan(struct finds *finds, const char *page, size_t bytes, size_t piece);

/* Adds the links that gumbo finds in a child process, because hostile nesting may overflow its
 * stack. Returns false if the child died. */
bool finds_judge(struct finds *finds, const char *page, size_t bytes);

/* Adds the links that gumbo finds, in this process. For pages without deep nesting. */
void finds_judge_here(struct finds *finds, const char *page, size_t bytes);

#endif
