/* SPDX-License-Identifier: MIT */
/* pages.c - writes the pages of the demo web. A path has the same page each time, except session
 * ids. */
#include "base/parse.h"
#include "demo/hosts.h"

#include <stdio.h>
#include <string.h>

#define BRANCHES 6 /* links from a page of a tree to further pages */
#define WORDS 40   /* sentences of filler on a page */
#define CHAINS 5
#define CHAIN 4       /* redirects in a chain */
#define LONG_CHAIN 40 /* redirects in the long chain, more than any client follows */
#define LOOPS 3
#define LOOP 3

static void link_to(struct wr_buf *body, const char *path)
{
    wr_buf_append_string(body, "<li><a href=\"");
    wr_buf_append_string(body, path);
    wr_buf_append_string(body, "\">");
    wr_buf_append_string(body, path);
    wr_buf_append_string(body, "</a>\n");
}

static void link_numbered(struct wr_buf *body, const char *path, uint64_t number)
{
    char text[64];
    (void)snprintf(text, sizeof text, "%s%llu", path, (unsigned long long)number);
    link_to(body, text);
}

static void link_to_page(struct wr_buf *body, uint64_t number)
{
    if (number == 0)
        link_to(body, "/");
    else
        link_numbered(body, "/page/", number);
}

static void begin(struct wr_buf *body, const struct host_kind *kind, const char *path)
{
    wr_buf_append_string(body, "<!doctype html><html lang=en><title>");
    wr_buf_append_string(body, kind->name);
    wr_buf_append_string(body, path);
    wr_buf_append_string(body, "</title>\n");
    for (int i = 0; i < WORDS; i++)
        wr_buf_append_string(body, "<p>A weir lets through what the river below can bear.\n");
    wr_buf_append_string(body, "<ul>\n");
}

/* Parses the number that follows `prefix`. Returns false if the path is anything else. */
static bool numbered(const char *path, const char *prefix, uint64_t max, uint64_t *ret_number)
{
    size_t bytes = strlen(prefix);
    return strncmp(path, prefix, bytes) == 0 && wr_scan_u64(path + bytes, strlen(path + bytes), 0, max, ret_number);
}

static void redirect(struct page *page, int status, const char *prefix, uint64_t number)
{
    page->status = status;
    wr_buf_append_string(page->body, prefix);
    wr_buf_append_u64(page->body, number);
}

/* ---- kinds of sites -------------------------------------------------------------------------- */

static void tree_page(const struct host_kind *kind, uint64_t number, struct wr_buf *body)
{
    for (uint64_t i = 1; i <= BRANCHES; i++)
        if (number * BRANCHES + i < kind->pages)
            link_to_page(body, number * BRANCHES + i);
    link_to_page(body, 0);
    /* Most of these are known already: real sites repeat links. */
    link_to_page(body, (number + 1) % kind->pages);
    link_to_page(body, number * 7 % kind->pages);
    link_to(body, "/private/door"); /* robots.txt forbids it */
    if (kind->shape == SHAPE_HUGE)
        link_to(body, "/huge");
}

static void tree_write(const struct host_kind *kind, const char *path, struct page *page)
{
    uint64_t number = 0;
    page->is_huge = kind->shape == SHAPE_HUGE && strcmp(path, "/huge") == 0;
    if (page->is_huge)
        return;
    if (strcmp(path, "/") != 0 && !numbered(path, "/page/", kind->pages - 1, &number)) {
        page->status = 404;
        return;
    }
    begin(page->body, kind, path);
    tree_page(kind, number, page->body);
}

static void maze_home(struct wr_buf *body)
{
    for (uint64_t i = 0; i < CHAINS; i++)
        link_numbered(body, "/chain/", i * CHAIN + CHAIN - 1);
    for (uint64_t i = 0; i < LOOPS; i++)
        link_numbered(body, "/loop/", i * LOOP);
    link_numbered(body, "/long/", LONG_CHAIN);
    link_to(body, "/secret"); /* redirects to a path that robots.txt forbids */
}

static void maze_write(const struct host_kind *kind, const char *path, struct page *page)
{
    uint64_t n;
    if (strcmp(path, "/") == 0) {
        begin(page->body, kind, path);
        maze_home(page->body);
    } else if (numbered(path, "/chain/", CHAINS * CHAIN - 1, &n)) {
        redirect(page, 301, n % CHAIN == 0 ? "/end/" : "/chain/", n % CHAIN == 0 ? n / CHAIN : n - 1);
    } else if (numbered(path, "/loop/", LOOPS * LOOP - 1, &n)) {
        redirect(page, 302, "/loop/", n - n % LOOP + (n + 1) % LOOP);
    } else if (numbered(path, "/long/", LONG_CHAIN, &n) && n > 0) {
        redirect(page, 307, "/long/", n - 1);
    } else if (strcmp(path, "/secret") == 0) {
        redirect(page, 308, "/private/", 1);
    } else if (numbered(path, "/end/", CHAINS - 1, &n) || strcmp(path, "/long/0") == 0) {
        begin(page->body, kind, path);
    } else {
        page->status = 404;
    }
}

/* Writes the trap: the calendar has no last month, each link to the shop has a new session id, and
 * /deeper/ links to a path below itself. */
static void trap_write(const struct host_kind *kind, const char *path, struct page *page)
{
    static uint64_t session;
    uint64_t month;
    begin(page->body, kind, path);
    if (numbered(path, "/calendar/", UINT32_MAX, &month)) {
        link_numbered(page->body, "/calendar/", month + 1);
        link_numbered(page->body, "/calendar/", month == 0 ? 0 : month - 1);
        return;
    }
    if (strcmp(path, "/") == 0)
        link_numbered(page->body, "/calendar/", 24311); /* November 2026, in months */
    if (strcmp(path, "/") == 0 || strncmp(path, "/shop", 5) == 0)
        link_numbered(page->body, "/shop?session=", ++session);
    if (strcmp(path, "/") == 0 || strncmp(path, "/deeper/", 8) == 0)
        link_to(page->body, "deeper/");
}

static void robots_write(const struct host_kind *kind, struct page *page)
{
    page->is_plain = true;
    wr_buf_append_string(page->body, "User-agent: *\nDisallow: /private/\n");
    if (kind->crawl_delay_s == 0)
        return;
    wr_buf_append_string(page->body, "Crawl-delay: ");
    wr_buf_append_u64(page->body, kind->crawl_delay_s);
    wr_buf_append_string(page->body, "\n");
}

void page_write(const struct host_kind *kind, const char *path, struct page *page)
{
    page->status = 200;
    if (strcmp(path, "/robots.txt") == 0) {
        robots_write(kind, page);
        return;
    }
    switch (kind->shape) {
    case SHAPE_TREE:
    case SHAPE_HUGE:
        tree_write(kind, path, page);
        return;
    case SHAPE_MAZE:
        maze_write(kind, path, page);
        return;
    case SHAPE_TRAP:
        trap_write(kind, path, page);
        return;
    }
}

bool page_is_allowed(const char *path)
{
    return strncmp(path, "/private/", 9) != 0;
}
