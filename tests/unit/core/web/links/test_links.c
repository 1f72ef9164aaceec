/* SPDX-License-Identifier: MIT */
/* test_links.c - tests the link scanner: the links that it reports, for pages in pieces and for any
 * bytes, and its bounds. */
#include "lib/test.h"

#include "core/web/http/field.h"
#include "core/web/links/links.h"
#include "finds.h"
#include "pages.h"

#include <stdbool.h>

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])

/* ---- reported links -------------------------------------------------------------------------- */

/* Reported links as a text of lines "a URL@offset". */
struct told {
    size_t used;
    char text[65536]; /* links beyond this size are dropped */
};

static void tell(void *context, const struct wr_link *link)
{
    static const char *const kinds[] = {"base",      "a",     "area",    "hint", "resource",
                                        "canonical", "frame", "refresh", "image"};
    struct told *told = context;
    size_t room = sizeof told->text - told->used;

    if (room < link->url.bytes + 64)
        return;
    told->used += (size_t)snprintf(told->text + told->used, room, "%s%s %.*s@%llu\n", kinds[link->kind],
                                   link->nofollow ? "!" : "", (int)link->url.bytes,
                                   link->url.data == NULL ? "" : link->url.data, (unsigned long long)link->at);
}

static struct wr_links links;

static const char *told_by(const char *page, size_t bytes, struct wr_links_options options)
{
    static struct told told;

    told.used = 0;
    told.text[0] = '\0';
    options.kinds = options.kinds == 0 ? WR_LINKS_ALL : options.kinds;
    options.found = tell;
    options.context = &told;
    wr_links_init(&links, &options);
    wr_links_feed(&links, page, bytes);
    return told.text;
}

static const char *told_of(const char *page)
{
    return told_by(page, strlen(page), (struct wr_links_options){.kinds = 0});
}

static void each_kind_of_link_is_reported_with_its_offset(void **state)
{
    (void)state;
    assert_string_equal(told_of("<base href=b>"), "base b@0\n");
    assert_string_equal(told_of("x <a href='u'>"), "a u@2\n");
    assert_string_equal(told_of("\n\n<area rel=nofollow href=\"u\">"), "area! u@2\n");
    assert_string_equal(told_of("<link rel=next href=u>"), "hint u@0\n");
    assert_string_equal(told_of("<link rel=\"alternate stylesheet\" href=u>"), "resource u@0\n");
    assert_string_equal(told_of("<link href=u>"), "resource u@0\n");
    assert_string_equal(told_of("<link href=u rel='x Canonical'>"), "canonical u@0\n");
    assert_string_equal(told_of("<iframe src=u></iframe>"), "frame u@0\n");
    assert_string_equal(told_of("<frameset><frame src=u>"), "frame u@10\n");
    assert_string_equal(told_of("<meta content='0;url=u' http-equiv=refresh>"), "refresh u@0\n");
    assert_string_equal(told_of("<img src=u srcset='v 1x, w 2x'>"), "image u@0\nimage v@0\nimage w@0\n");
    assert_string_equal(told_of("<form action=u><input src=u><script src=u></script><video src=u>"), "");
}

static void only_requested_kinds_of_links_are_reported(void **state)
{
    static const char page[] = "<base href=b><link rel=canonical href=c><link rel=icon href=i><a href=a><img src=j>";

    (void)state;
    assert_string_equal(told_by(page, sizeof page - 1, (struct wr_links_options){.kinds = WR_LINKS_PAGES}),
                        "base b@0\ncanonical c@13\na a@62\n");
    assert_string_equal(told_by(page, sizeof page - 1, (struct wr_links_options){.kinds = 1u << WR_LINK_IMAGE}),
                        "image j@72\n");
}

/* D2 */
static void first_base_counts_and_hostile_values_follow_the_html_standard(void **state)
{
    (void)state;
    assert_string_equal(told_of("<base target=x><base href=1><base href=2><svg><base href=3 /></svg>"), "base 1@15\n");
    assert_string_equal(told_of("<base href='javascript:x'><a href=y>"), "base javascript:x@0\na y@26\n");
    assert_string_equal(told_of("<a href='java&#115;cript&colon;x'>"), "a javascript:x@0\n");
    assert_string_equal(told_by("<a \0href='x' h\0ref=x>", 21, (struct wr_links_options){.kinds = 0}), "");
    assert_string_equal(told_by("<a href='a\0b'>", 14, (struct wr_links_options){.kinds = 0}), "a a\xef\xbf\xbd"
                                                                                               "b@0\n");
}

/* D10: these are hints. The scanner reports them like links, and does not follow them. */
static void refresh_and_canonical_are_reported_as_hints(void **state)
{
    static const char page[] =
        "<meta http-equiv=refresh content='0;url=/self'><link rel=canonical href='//other.example/'>";

    (void)state;
    assert_string_equal(told_of(page), "refresh /self@0\ncanonical //other.example/@47\n");
    /* a refresh to the page itself */
    assert_string_equal(told_of("<meta http-equiv=refresh content=0>"), "");
    assert_string_equal(told_by(page, sizeof page - 1, (struct wr_links_options){.kinds = 1u << WR_LINK_A}), "");
}

static void meta_robots_directives_are_recorded(void **state)
{
    static const struct {
        const char *page;
        unsigned directives;
    } rows[] = {
        {"<meta name=robots content=nofollow>", WR_ROBOTS_NOFOLLOW},
        {"<META CONTENT='NOINDEX,FOLLOW' NAME=Robots>", WR_ROBOTS_NOINDEX},
        {"<meta name=robots content=none>", WR_ROBOTS_NOFOLLOW | WR_ROBOTS_NOINDEX},
        {"<meta name=weir content=nofollow>", WR_ROBOTS_NOFOLLOW},
        {"<meta name=googlebot content=nofollow>", 0},
        {"<meta name=description content=nofollow>", 0},
        {"<meta name=robots>", 0},
        {"<!-- <meta name=robots content=nofollow> -->", 0},
        {"<template><meta name=robots content=nofollow></template>", 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        (void)told_by(rows[i].page, strlen(rows[i].page), (struct wr_links_options){.agent = wr_span_of("Weir")});
        assert_int_equal(links.directives, rows[i].directives);
    }
}

/* ---- encodings ------------------------------------------------------------------------------- */

static size_t to_utf16(const char *text, bool big, char *ret_bytes)
{
    size_t used = 0;
    for (; *text != '\0'; text++, used += 2) {
        ret_bytes[used + !big] = '\0';
        ret_bytes[used + big] = *text;
    }
    return used;
}

static void utf16_page_is_detected_by_its_mark_or_the_header(void **state)
{
    static const char page[] = "<a href='x'>";
    char bytes[256];

    (void)state;
    for (int big = 0; big < 2; big++) {
        struct wr_links_options options = {.charset = wr_span_of(big ? "UTF-16BE" : "utf-16")};
        size_t count = to_utf16(page, big, bytes);
        assert_string_equal(told_by(bytes, count, options), "a x@0\n");
        memcpy(bytes, big ? "\xfe\xff" : "\xff\xfe", 2);
        count = 2 + to_utf16(page, big, bytes + 2);
        assert_string_equal(told_by(bytes, count, (struct wr_links_options){.kinds = 0}), "a x@0\n");
        /* the byte order mark overrides the header */
        options.charset = wr_span_of(big ? "UTF-16LE" : "utf-8");
        assert_string_equal(told_by(bytes, count, options), "a x@0\n");
    }
}

static void utf16_beyond_ascii_becomes_utf8_and_lone_surrogates_are_replaced(void **state)
{
    static const char page[] =
        "\xff\xfe<\0a\0 \0h\0r\0e\0f\0=\0\xe9\0\x3d\xd8\x00\xde\xac\x20\x00\xd8\x00\xde\x00\xdcx\0\x00\xd8>\0";

    (void)state;
    assert_string_equal(told_by(page, sizeof page - 1, (struct wr_links_options){.kinds = 0}),
                        "a \xc3\xa9\xf0\x9f\x98\x80\xe2\x82\xac\xf0\x90\x88\x80\xef\xbf\xbdx\xef\xbf\xbd@0\n");
}

static void declared_latin1_becomes_utf8(void **state)
{
    static const struct {
        const char *page, *charset, *told;
    } rows[] = {
        {"<a href=\xe9\x80>", "iso-8859-1", "a \xc3\xa9\xe2\x82\xac@0\n"},
        {"<a href=\xe9>", "", "a \xe9@0\n"}, /* undeclared encoding: bytes are kept */
        {"<meta charset=latin1><a href=\xe9>", "", "a \xc3\xa9@21\n"},
        {"<meta http-equiv=Content-Type content='text/html; charset=windows-1252'><a href=\xe9>", "",
         "a \xc3\xa9@72\n"},
        /* the header overrides the meta element */
        {"<meta charset=latin1><a href=\xc3\xa9>", "utf-8", "a \xc3\xa9@21\n"},
        {"<meta charset=utf-8><meta charset=latin1><a href=\xc3\xa9>", "", "a \xc3\xa9@41\n"},
        {"<meta charset=utf-16><a href=\xc3\xa9>", "", "a \xc3\xa9@21\n"},
        /* the byte order mark overrides both */
        {"\xef\xbb\xbf<meta charset=latin1><a href=\xc3\xa9>", "latin1", "a \xc3\xa9@24\n"},
        {"\xef\xbb<a href=x>", "", "a x@2\n"},
        {"\xff<a href=x>", "", "a x@1\n"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct wr_links_options options = {.charset = wr_span_of(rows[i].charset)};
        assert_string_equal(told_by(rows[i].page, strlen(rows[i].page), options), rows[i].told);
    }
}

/* ---- the title ------------------------------------------------------------------------------- */

static const char *title_of(const char *page, size_t bytes, const char *charset)
{
    static char memory[WR_LINKS_TITLE_MAX + 1];

    told_by(page, bytes, (struct wr_links_options){.charset = wr_span_of(charset)});
    struct wr_span title = wr_links_title(&links, memory);
    if (title.data == NULL)
        return NULL;
    memory[title.bytes] = '\0';
    return memory;
}

static void the_title_is_the_first_of_html_decoded_and_collapsed(void **state)
{
    static const struct {
        const char *page, *title;
    } rows[] = {
        {"<p>none", NULL},
        {"<title>t</title>", "t"},
        {"<TITLE\nx='>'>\n  All  the\tNews \r\n</Title >", "All the News"},
        {"<title></title><title>second</title>", ""},
        {"<title>first</title><title>second</title>", "first"},
        {"<svg><title>svg</title></svg><title>page</title>", "page"},
        {"<svg><title>svg</title></svg>", NULL},
        {"<template><title>no</title></template><title>yes</title>", "yes"},
        {"<!-- <title>no</title> --><script>'<title>no</title>'</script><title>yes</title>", "yes"},
        {"<title>a <b>&amp; &lt;c&gt;</b> &copy2 &notit; &#8364;&#x41</title>", "a <b>& <c></b> \xc2\xa9"
                                                                                "2 \xc2\xacit; \xe2\x82\xac"
                                                                                "A"},
        {"<title>&#32;a&#32;&#10;&Tab; b&nbsp; </title>", "a b\xc2\xa0"},
        {"<title>a</titl </ title> </titlex></title>", "a</titl </ title> </titlex>"},
        {"<title>never ends </titl", "never ends </titl"},
        {"<title>no UTF-8: \xff\xc3</title>", "no UTF-8: \xef\xbf\xbd\xef\xbf\xbd"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *title = title_of(rows[i].page, strlen(rows[i].page), NULL);
        if (rows[i].title == NULL)
            assert_null(title);
        else
            assert_string_equal(title, rows[i].title);
    }
    assert_string_equal(title_of("<title>a\0b</title>", 19, NULL), "a\xef\xbf\xbd"
                                                                   "b");
}

static void a_title_is_read_in_the_encoding_of_the_page(void **state)
{
    static const char late[] = "<title>caf\xe9</title><meta charset=latin1>";
    static const char wide[] = "\xff\xfe<\0t\0i\0t\0l\0e\0>\0\xac\x20<\0/\0t\0i\0t\0l\0e\0>";

    (void)state;
    assert_string_equal(title_of("<title>caf\xe9</title>", 19, "iso-8859-1"), "caf\xc3\xa9");
    assert_string_equal(title_of(late, sizeof late - 1, NULL), "caf\xc3\xa9");
    assert_string_equal(title_of(wide, sizeof wide, NULL), "\xe2\x82\xac");
}

static void a_long_title_is_cut_at_a_character(void **state)
{
    static char page[9000];
    const char *title;

    (void)state;
    size_t used = (size_t)snprintf(page, sizeof page, "<title>x");
    memset(page + used, ' ', 3000); /* blanks are collapsed */
    used += 3000;
    for (int i = 0; i < 300; i++)
        used += (size_t)snprintf(page + used, sizeof page - used, "\xe2\x82\xac");
    used += (size_t)snprintf(page + used, sizeof page - used, "</title><a href=x>");
    title = title_of(page, used, NULL);
    assert_int_equal(strlen(title), 512); /* x, a blank, and 170 characters of three bytes */
    assert_memory_equal(title, "x \xe2\x82\xac", 5);
    assert_memory_equal(title + 509, "\xe2\x82\xac", 3);
    assert_int_equal(links.count, 1);
    used = (size_t)snprintf(page, sizeof page, "<title>%0511d\xc3\xa9</title>", 0);
    assert_int_equal(strlen(title_of(page, used, NULL)), 511); /* half a character is dropped */
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static void assert_pieces_do_not_matter(const char *page, size_t bytes, size_t step)
{
    static struct told whole, parts;
    struct wr_links_options options = {.kinds = WR_LINKS_ALL, .max_links = 100, .found = tell};

    whole.used = parts.used = 0;
    options.context = &whole;
    wr_links_init(&links, &options);
    wr_links_feed(&links, page, bytes);
    options.context = &parts;
    for (size_t cut = 0; cut <= bytes; cut += step) {
        parts.used = 0;
        parts.text[0] = '\0';
        wr_links_init(&links, &options);
        wr_links_feed(&links, page, cut);
        wr_links_feed(&links, page + cut, bytes - cut);
        assert_int_equal(parts.used, whole.used);
        assert_memory_equal(parts.text, whole.text, whole.used);
    }
}

static void links_do_not_depend_on_where_a_page_is_cut(void **state)
{
    static char page[PAGE_BYTES];
    struct wr_rng rng;

    (void)state;
    for (uint64_t i = 0; i < 60; i++) {
        wr_rng_init(&rng, weir_test_seed() + i);
        size_t bytes = make_page(&rng, 20, true, page);
        assert_pieces_do_not_matter(page, bytes, 1);
    }
}

static void pieces_of_any_size_give_the_same_links(void **state)
{
    static char page[PAGE_BYTES];
    static struct finds whole, parts;
    struct wr_rng rng;
    size_t found = 0;

    (void)state;
    for (uint64_t i = 0; i < 200; i++) {
        wr_rng_init(&rng, weir_test_seed() + 1000 + i);
        size_t bytes = make_page(&rng, 30, true, page);
        finds_scan(&whole, page, bytes, 0);
        for (size_t piece = 1; piece < 40; piece = piece * 2 + 1) {
            finds_scan(&parts, page, bytes, piece);
            if (!finds_same(&whole, &parts)) {
                finds_print_difference(&whole, &parts);
                fail_msg("page %llu in pieces of %zu", (unsigned long long)i, piece);
            }
        }
        found += whole.count;
    }
    assert_true(found > 1000);
}

static void utf16_may_be_cut_anywhere(void **state)
{
    static const char page[] =
        "<title>x</title><a href=\"one&amp;two\" rel=nofollow><!-- x --><img srcset='a 1x,b 2x'>";
    char bytes[2 * sizeof page + 2] = "\xff\xfe";

    (void)state;
    assert_pieces_do_not_matter(bytes, 2 + to_utf16(page, false, bytes + 2), 1);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static void too_long_attribute_value_is_dropped_and_scanning_continues(void **state)
{
    static char page[3 * WR_LINKS_VALUE_MAX];
    const size_t room = sizeof page;
    size_t used = 0;

    (void)state;
    used += (size_t)snprintf(page, room, "<a href='");
    memset(page + used, 'x', WR_LINKS_VALUE_MAX + 1);
    used += WR_LINKS_VALUE_MAX + 1;
    used += (size_t)snprintf(page + used, room - used, "'><a href=y><img src='");
    memset(page + used, 'z', WR_LINKS_VALUE_MAX + 1);
    used += WR_LINKS_VALUE_MAX + 1;
    used += (size_t)snprintf(page + used, room - used, "' srcset='v'>");
    assert_string_equal(told_by(page, used, (struct wr_links_options){.kinds = 0}), "a y@8204\nimage v@8214\n");
}

static void scanner_reports_at_most_the_maximum_of_links(void **state)
{
    static const char page[] = "<a href=1><img srcset='2,, 3 1x, 4'><a href=5><a href=6>";

    (void)state;
    assert_string_equal(told_by(page, sizeof page - 1, (struct wr_links_options){.max_links = 3}),
                        "a 1@0\nimage 2@10\nimage 3@10\n");
    assert_true(links.is_full);
    assert_int_equal(links.count, 3);
    assert_string_equal(told_by(page, sizeof page - 1, (struct wr_links_options){.max_links = 6}),
                        "a 1@0\nimage 2@10\nimage 3@10\nimage 4@10\na 5@36\na 6@46\n");
    assert_true(links.is_full);
}

static void count_only(void *context, const struct wr_link *link)
{
    (void)link;
    ++*(size_t *)context;
}

/* D1: quadratic work would take so long here that the test would time out. */
static void scanning_hostile_pages_takes_linear_time_and_no_memory(void **state)
{
    static const char *const patterns[] = {"<a",
                                           "<a ",
                                           "<a href=x>",
                                           "<div>",
                                           "<svg>",
                                           "<svg><foreignObject>",
                                           "<template>",
                                           "</svg>",
                                           "<!--",
                                           "<!-- -- ",
                                           "\"",
                                           "<a x='",
                                           "&amp;",
                                           "<a href='&amp;",
                                           "<",
                                           "</",
                                           "<script>",
                                           "</script",
                                           "<!-- <script",
                                           "<b><i>",
                                           "<a href=x y=",
                                           "<math><mi>",
                                           "-",
                                           "]",
                                           "<svg><![CDATA[",
                                           "<title>",
                                           "<img srcset='a,",
                                           "<meta http-equiv=refresh content='0;",
                                           "<a rel='a b c ",
                                           "=",
                                           " "};
    static char chunk[64 * 1024];

    (void)state;
    for (size_t i = 0; i < COUNT(patterns); i++) {
        size_t length = strlen(patterns[i]), bytes = sizeof chunk / length * length, found = 0;
        struct wr_links_options options = {
            .kinds = WR_LINKS_ALL, .max_links = 10000, .found = count_only, .context = &found};
        for (size_t at = 0; at < bytes; at += length)
            memcpy(chunk + at, patterns[i], length);
        wr_links_init(&links, &options);
        for (size_t fed = 0, all = (size_t)(i == 0 ? 50 : 8) << 20; fed < all; fed += bytes)
            wr_links_feed(&links, chunk, bytes);
        assert_true(found <= 10000);
    }
}

static void deep_nesting_is_only_counted(void **state)
{
    static char page[100000 * 5 + 64];
    size_t used = 0;

    (void)state;
    for (int i = 0; i < 100000; i++, used += 5)
        memcpy(page + used, i % 2 == 0 ? "<svg>" : "<div>", 5);
    used += (size_t)snprintf(page + used, sizeof page - used, "<a href=x>");
    assert_string_equal(told_by(page, used, (struct wr_links_options){.kinds = 0}), "a x@500000\n");
    assert_true(links.depth <= WR_LINKS_DEPTH_MAX);
}

static void scanner_survives_mutated_pages_in_any_pieces(void **state)
{
    static char page[PAGE_BYTES];
    static const char bytes_that_matter[] = "<>/='\"!-?&;# \t\n\r\0[]ahrefscipt";
    struct wr_rng rng;

    (void)state;
    wr_rng_init(&rng, weir_test_seed());
    for (int i = 0; i < 3000; i++) {
        size_t bytes = make_page(&rng, 8, true, page);
        for (uint64_t changes = wr_rng_below(&rng, 8) + 1; changes > 0 && bytes > 0; changes--)
            page[wr_rng_below(&rng, bytes)] = bytes_that_matter[wr_rng_below(&rng, sizeof bytes_that_matter - 1)];
        assert_pieces_do_not_matter(page, bytes, 1 + (size_t)wr_rng_below(&rng, 97));
    }
}

WEIR_TESTS(test(each_kind_of_link_is_reported_with_its_offset), test(only_requested_kinds_of_links_are_reported),
           test(first_base_counts_and_hostile_values_follow_the_html_standard),
           test(refresh_and_canonical_are_reported_as_hints), test(meta_robots_directives_are_recorded),
           test(utf16_page_is_detected_by_its_mark_or_the_header),
           test(utf16_beyond_ascii_becomes_utf8_and_lone_surrogates_are_replaced), test(declared_latin1_becomes_utf8),
           test(the_title_is_the_first_of_html_decoded_and_collapsed),
           test(a_title_is_read_in_the_encoding_of_the_page), test(a_long_title_is_cut_at_a_character),
           test(links_do_not_depend_on_where_a_page_is_cut), test(pieces_of_any_size_give_the_same_links),
           test(utf16_may_be_cut_anywhere), test(too_long_attribute_value_is_dropped_and_scanning_continues),
           test(scanner_reports_at_most_the_maximum_of_links),
           test(scanning_hostile_pages_takes_linear_time_and_no_memory), test(deep_nesting_is_only_counted),
           test(scanner_survives_mutated_pages_in_any_pieces))
