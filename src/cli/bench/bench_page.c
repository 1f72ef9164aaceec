/* SPDX-License-Identifier: MIT */
/* bench_page.c - generates the page that the benchmarks scan. */
#include "cli/bench/bench_page.h"

#include <stdio.h>
#include <string.h>

static void put_page_text(struct wr_bench_page *page, const char *text)
{
    size_t bytes = strlen(text);

    if (bytes > sizeof page->text - page->bytes)
        return;
    memcpy(page->text + page->bytes, text, bytes);
    page->bytes += bytes;
}

static void put_page_words(struct wr_bench_page *page, int count)
{
    static const char *const words[] = {"the ",    "quick ",   "brown ",   "fox ",   "jumps ",   "over ",
                                        "lazy ",   "dogs ",    "while ",   "seven ", "wizards ", "mix ",
                                        "potent ", "elixirs ", "beneath ", "towers "};

    for (int i = 0; i < count; i++)
        put_page_text(page, words[wr_rng_below(&page->rng, sizeof words / sizeof words[0])]);
}

static void put_page_link(struct wr_bench_page *page, const char *before, const char *path, int number)
{
    char text[96];

    snprintf(text, sizeof text, "%s%s%d\">", before, path, number);
    put_page_text(page, text);
    put_page_words(page, 2);
    put_page_text(page, "</a>");
}

void wr_bench_page_make(struct wr_bench_page *ret_page)
{
    struct wr_bench_page *page = ret_page;
    page->bytes = 0;
    wr_rng_init(&page->rng, 1);
    put_page_text(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Weirs</title>\n"
        "<link rel=\"canonical\" href=\"https://www.example.org/articles/2026/weirs\">\n"
        "<link rel=\"stylesheet\" href=\"/static/css/main.css\">\n<script src=\"/static/js/app.js\" defer></script>\n"
        "</head>\n<body class=\"page article\">\n<nav class=\"menu\">\n<ul>\n");
    for (int i = 0; i < 8; i++) {
        put_page_link(page, "<li class=\"item\"><a class=\"link\" href=\"", "/section/index.html?from=nav&amp;pos=", i);
        put_page_text(page, "</li>\n");
    }
    put_page_text(page, "</ul>\n</nav>\n<main id=\"content\">\n");
    for (int i = 0; i < 24; i++) {
        put_page_text(page, "<div class=\"card\" data-kind=\"article\"><h2>");
        put_page_words(page, 4);
        put_page_text(page, "</h2>\n<p>");
        put_page_words(page, 20);
        put_page_link(page, "<a title=\"Read on\" href=\"", "/articles/2026/november/", i);
        put_page_words(page, 20);
        put_page_text(page, "</p>\n<span class=\"meta\"><b>today</b> <i>by a user</i></span></div>\n");
    }
    put_page_text(
        page,
        "</main>\n<footer><p><a href=\"/imprint\">Imprint</a> <a rel=\"nofollow\" href=\"https://other.example/\">Other"
        "</a></p></footer>\n<script>\nwindow.data = {\"a\": 1, \"b\": \"x < y\"};\n</script>\n</body>\n</html>\n");
}
