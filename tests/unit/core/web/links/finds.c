/* SPDX-License-Identifier: MIT */
/* finds.c - sets of links, and scanning of a page by our scanner. */
#include "finds.h"

#include "core/web/links/links.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void finds_clear(struct finds *finds)
{
    finds->count = finds->used = 0;
}

void finds_add(struct finds *finds, const char *kind, bool nofollow, const char *url, size_t url_bytes)
{
    char *line = finds->text + finds->used;
    size_t room = sizeof finds->text - finds->used;

    if (finds->count == FINDS_MAX || room < url_bytes * 4 + 64)
        abort(); /* no test page has that many links */
    size_t at = (size_t)snprintf(line, room, "%s%s ", kind, nofollow ? " nofollow" : "");
    for (size_t i = 0; i < url_bytes; i++) {
        bool is_plain = url[i] > 0x20 && url[i] < 0x7f;
        at += (size_t)snprintf(line + at, room - at, is_plain ? "%c" : "\\x%02x", (unsigned char)url[i]);
    }
    finds->lines[finds->count++] = line;
    finds->used += at + 1;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void finds_sort(struct finds *finds)
{
    size_t kept = 0;

    qsort(finds->lines, finds->count, sizeof finds->lines[0], compare);
    for (size_t i = 0; i < finds->count; i++)
        if (kept == 0 || strcmp(finds->lines[kept - 1], finds->lines[i]) != 0)
            finds->lines[kept++] = finds->lines[i];
    finds->count = kept;
}

bool finds_same(const struct finds *a, const struct finds *b)
{
    bool same = a->count == b->count;

    for (size_t i = 0; same && i < a->count; i++)
        same = strcmp(a->lines[i], b->lines[i]) == 0;
    return same;
}

void finds_print_difference(const struct finds *ours, const struct finds *theirs)
{
    size_t i = 0, j = 0;

    while (i < ours->count || j < theirs->count) {
        int order = i == ours->count ? 1 : j == theirs->count ? -1 : strcmp(ours->lines[i], theirs->lines[j]);
        if (order < 0)
            printf("    only ours:    %s\n", ours->lines[i]);
        if (order > 0)
            printf("    only theirs:  %s\n", theirs->lines[j]);
        i += order <= 0;
        j += order >= 0;
    }
}

static void found(void *context, const struct wr_link *link)
{
    static const char *const kinds[] = {
        [WR_LINK_BASE] = "base",   [WR_LINK_A] = "a",           [WR_LINK_AREA] = "area",
        [WR_LINK_HINT] = "link",   [WR_LINK_RESOURCE] = "link", [WR_LINK_CANONICAL] = "link",
        [WR_LINK_FRAME] = "frame", [WR_LINK_IMAGE] = "image",   [WR_LINK_REFRESH] = "refresh",
    };

    finds_add(context, kinds[link->kind], link->nofollow, link->url.data, link->url.bytes);
}

void finds_scan(struct finds *finds, const char *page, size_t bytes, size_t piece)
{
    static struct wr_links links;
    char memory[WR_LINKS_TITLE_MAX];
    struct wr_links_options options = {.kinds = WR_LINKS_ALL, .found = found, .context = finds};

    finds_clear(finds);
    wr_links_init(&links, &options);
    for (size_t at = 0; at < bytes; at += piece) {
        piece = piece == 0 ? bytes : piece;
        size_t count = bytes - at < piece ? bytes - at : piece;
        char *copy = malloc(count); /* exact size, so that sanitizers detect overreads */
        if (copy == NULL)
            abort();
        memcpy(copy, page + at, count);
        wr_links_feed(&links, copy, count);
        free(copy);
    }
    struct wr_span title = wr_links_title(&links, memory);
    if (title.data != NULL)
        finds_add(finds, "title", false, title.data, title.bytes);
    finds_sort(finds);
}
