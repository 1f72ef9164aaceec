/* SPDX-License-Identifier: MIT */
/* fuzz_links_gumbo.c - compares the link scanner with a full HTML parser, on pages without the
 * known differences (docs/internals/links.md). */
#include "unit/core/web/links/finds.h"

#include "fuzz/fuzz.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define PAGE_MAX ((size_t)2048) /* deeper nesting than this allows may overflow gumbo's stack */

/* Elements whose rules need a tree, or which gumbo treats in its own way. */
static const char *const excluded[] = {"select", "frameset", "svg", "math", "shadowroot"};

static bool has_excluded(const char *page, size_t bytes)
{
    for (size_t i = 0; i < sizeof excluded / sizeof excluded[0]; i++)
        if (memmem(page, bytes, excluded[i], strlen(excluded[i])) != NULL)
            return true;
    /* The parser may move the second of two titles to the front, out of a table. */
    const char *title = memmem(page, bytes, "<title", 6);
    return title != NULL && memmem(title + 1, (size_t)(page + bytes - title - 1), "<title", 6) != NULL;
}

/* Returns true if the page has references other than numbers of few digits and some names that both
 * know. */
static bool has_odd_reference(const char *page, size_t bytes)
{
    static const char *const names[] = {"amp;", "lt;", "gt;", "quot;", "copy=", "amp=", "#"};
    const char *end = page + bytes;

    for (const char *at = memchr(page, '&', bytes); at != NULL; at = memchr(at + 1, '&', (size_t)(end - at - 1))) {
        bool is_known = at + 1 == end || !isalnum((unsigned char)at[1]);
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            is_known = is_known ||
                       ((size_t)(end - at - 1) >= strlen(names[i]) && memcmp(at + 1, names[i], strlen(names[i])) == 0);
        size_t digits = 0;
        while (at + 2 + digits < end &&
               (isxdigit((unsigned char)at[2 + digits]) || tolower((unsigned char)at[2 + digits]) == 'x'))
            digits++;
        if (!is_known || digits > 6)
            return true;
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct finds ours, theirs;
    char page[PAGE_MAX], lower[PAGE_MAX];

    if (bytes > PAGE_MAX)
        return 0;
    for (size_t i = 0; i < bytes; i++) {
        if (data[i] >= 0x7f || (data[i] < ' ' && memchr("\t\n\f\r", data[i], 4) == NULL))
            /* gumbo replaces invalid UTF-8 and control characters. */
            return 0;
        page[i] = (char)data[i];
        lower[i] = (char)tolower(data[i]);
    }
    if (has_excluded(lower, bytes) || has_odd_reference(page, bytes))
        return 0;
    finds_scan(&ours, page, bytes, 0);
    finds_judge_here(&theirs, page, bytes);
    if (!finds_same(&ours, &theirs)) {
        finds_print_difference(&ours, &theirs);
        fflush(stdout);
        fuzz_check(false);
    }
    return 0;
}
