/* SPDX-License-Identifier: MIT */
/* test_sitemap_hostile.c - tests of hostile sitemaps (D9, J11). */
#include "rig.h"

#include "lib/alloc.h"

#include <zlib.h>

#define MANY ((size_t)60 << 20) /* bytes; more than any sitemap may have */

static size_t put(char *at, const char *text)
{
    memcpy(at, text, strlen(text) + 1);
    return strlen(text);
}

/* D9: no entity is expanded, and no file or host is accessed. */
static void document_types_and_entities_are_refused(void **state)
{
    static const char *const texts[] = {
        "<!DOCTYPE urlset [<!ENTITY x SYSTEM \"file:///etc/passwd\">]>"
        "<urlset><url><loc>http://x/&x;</loc></url></urlset>",
        "<!DOCTYPE urlset SYSTEM \"http://127.0.0.1:1/x.dtd\"><urlset><url><loc>http://x/</loc></url></urlset>",
        "<!DOCTYPE l [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;&a;&a;\"><!ENTITY c \"&b;&b;&b;&b;\">"
        "<!ENTITY d \"&c;&c;&c;&c;\">]><urlset><url><loc>http://x/&d;</loc></url></urlset>",
        "<!DOCTYPE r [<!ENTITY % p SYSTEM \"http://127.0.0.1:1/p\"> "
        "%p;]><urlset><url><loc>http://x/</loc></url></urlset>",
    };
    struct kept kept;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        read_text(texts[i], &kept);
        assert_int_equal(kept.end, WR_SITEMAP_DOCTYPE);
        assert_int_equal(kept.count, 0);
    }
}

static void broken_markup_costs_its_own_entry_only(void **state)
{
    struct kept kept;

    (void)state;
    read_text("<urlset><url><loc>http://x/1</loc></url><url><loc>http://x/&nbsp;</loc></url><url><loc>http://x/<b>c</"
              "b></loc></url>"
              "<url><loc>http://x/2</loc></url></urlset>",
              &kept);
    assert_int_equal(kept.count, 2);
    assert_int_equal(kept.facts.left_out, 2);
    assert_string_equal(kept.urls[0], "http://x/1");
    assert_string_equal(kept.urls[1], "http://x/2");
    read_text("<urlset><url><loc>http://x/1</loc></url><url><loc>http://x/2</lo", &kept);
    assert_int_equal(kept.end, WR_SITEMAP_BROKEN);
    assert_int_equal(kept.count, 1);
}

/* A declared encoding never selects a decoder of the system. Invalid UTF-8 does not end the
 * parse. */
static void wrong_encodings_of_a_sitemap_are_ignored(void **state)
{
    static const char *const names[] = {"UTF-16", "ISO-2022-CN-EXT", "UTF-7", "IBM037", "../../x", "nonsense"};
    char text[256];
    struct kept kept;

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(text, sizeof text,
                 "<?xml version=\"1.0\" encoding=\"%s\"?><urlset><url><loc>http://x/1</loc></url></urlset>", names[i]);
        read_text(text, &kept);
        assert_int_equal(kept.count, 1);
        assert_string_equal(kept.urls[0], "http://x/1");
    }
    read_text("<urlset><url><loc>http://x/1</loc><t>\xff\xfe\xc0\x80</t></url></urlset>", &kept);
    assert_string_equal(kept.urls[0], "http://x/1");
}

static void too_long_or_too_deep_sitemap_parts_end_the_read(void **state)
{
    static char text[200000];
    struct kept kept;
    size_t bytes = 0;

    (void)state;
    for (bytes = put(text, "<urlset>"); bytes < 2000;)
        bytes += put(text + bytes, "<a>");
    read_text(text, &kept);
    assert_int_equal(kept.end, WR_SITEMAP_TOO_DEEP);

    bytes = put(text, "<urlset><url><loc>http://x/");
    memset(text + bytes, 'a', 9000);
    (void)put(text + bytes + 9000, "</loc></url><url><loc>http://x/2</loc></url></urlset>");
    read_text(text, &kept);
    assert_int_equal(kept.end, WR_SITEMAP_COMPLETE);
    assert_int_equal(kept.count, 1);
    assert_int_equal(kept.facts.left_out, 1);

    bytes = put(text, "<urlset><url a=\"");
    memset(text + bytes, '>', 100000);
    (void)put(text + bytes + 100000, "\"></url></urlset>");
    read_text(text, &kept);
    assert_int_equal(kept.end, WR_SITEMAP_TAG_TOO_LONG);

    memset(text, 'h', sizeof text - 1); /* a line that is too long */
    (void)put(text + sizeof text - 32, "\nhttp://x/2\n");
    read_text(text, &kept);
    assert_int_equal(kept.count, 1);
    assert_int_equal(kept.facts.left_out, 1);
}

/* Feeds `begin`, then copies of `text` until the parser stops or `most` bytes were fed. Returns the
 * bytes fed. */
static uint64_t flood(const char *begin, const char *text, size_t most, enum wr_sitemap_end *ret_end)
{
    struct kept kept = {.wanted = SIZE_MAX};
    struct wr_sitemap_options options = {.found = keep, .context = &kept, .bytes_max = most < MANY ? most / 2 : 0};
    struct wr_sitemap *sitemap;
    size_t bytes = strlen(text);
    uint64_t fed = strlen(begin);

    assert_int_equal(wr_sitemap_new(&options, &sitemap), 0);
    bool goes_on = wr_sitemap_push(sitemap, begin, strlen(begin));
    for (; goes_on && fed < most; fed += bytes)
        goes_on = wr_sitemap_push(sitemap, text, bytes);
    *ret_end = wr_sitemap_finish(sitemap);
    wr_sitemap_free(sitemap);
    return fed;
}

static void endless_sitemap_is_cut_off(void **state)
{
    enum wr_sitemap_end end;

    (void)state;
    assert_true(flood("<urlset>", "<url><lastmod/></url> some text and some more to fill the line with bytes ", MANY,
                      &end) <= WR_SITEMAP_BYTES_MAX + 100);
    assert_int_equal(end, WR_SITEMAP_TOO_LARGE);
    flood("<urlset>", "<url><loc>http://x/</loc></url>", MANY, &end);
    assert_int_equal(end, WR_SITEMAP_TOO_MANY_ENTRIES);
    flood("", "http://x/\n", MANY, &end);
    assert_int_equal(end, WR_SITEMAP_TOO_MANY_ENTRIES);
    flood("<urlset><!--", "a comment without end that goes on and on and on", MANY, &end);
    assert_int_equal(end, WR_SITEMAP_TAG_TOO_LONG);
    flood("<urlset><?a ", "an instruction without end that goes on and on and on", MANY, &end);
    assert_int_equal(end, WR_SITEMAP_TAG_TOO_LONG);
    flood("<urlset><", "anameofatagthatneverendsandgoesonandonandonandon", MANY, &end);
    assert_int_equal(end, WR_SITEMAP_TAG_TOO_LONG);
    flood("<urlset><url><loc>", "textwithoutendthatgoesonandonandonandonandonandon", MANY / 10, &end);
    assert_int_equal(end, WR_SITEMAP_TOO_LARGE);
    flood("<urlset><![CDATA[", "textwithoutendthatgoesonandonandonandonandonandon", MANY / 10, &end);
    assert_int_equal(end, WR_SITEMAP_TOO_LARGE);
    flood("<rss><channel><item><link>http://x/</link><description><![CDATA[", "<p>a long article, and one more ",
          1 << 20, &end);
    assert_int_equal(end, WR_SITEMAP_TOO_LARGE); /* not WR_SITEMAP_TAG_TOO_LONG: a long text is no tag */
    flood("   \n", " ", (size_t)1 << 16, &end);
    assert_int_equal(end, WR_SITEMAP_TOO_LARGE);
}

/* M12: libxml2 compares each attribute of a tag with all others. */
static void tag_with_too_many_attributes_ends_a_sitemap(void **state)
{
    static char text[30000];
    struct kept kept;

    (void)state;
    for (int most = WR_SITEMAP_ATTRIBUTES_MAX; most <= WR_SITEMAP_ATTRIBUTES_MAX + 1; most++) {
        size_t bytes = put(text, "<urlset><url><loc>http://x/1</loc></url><a");
        for (int i = 0; i < most; i++)
            bytes += (size_t)snprintf(text + bytes, 64, " a%d=\"\"", i);
        (void)put(text + bytes, "/><url><loc>http://x/2</loc></url></urlset>");
        read_text(text, &kept);
        assert_int_equal(kept.end,
                         most == WR_SITEMAP_ATTRIBUTES_MAX ? WR_SITEMAP_COMPLETE : WR_SITEMAP_TOO_MANY_ATTRIBUTES);
        assert_int_equal(kept.count, most == WR_SITEMAP_ATTRIBUTES_MAX ? 2 : 1);
    }
}

/* M12: libxml2 searches all open namespaces for that of an element. Nested elements open more and
 * more of them. */
static void nested_namespaces_beyond_the_limit_end_a_sitemap(void **state)
{
    static char text[30000];
    struct kept kept;
    size_t bytes = put(text, "<urlset><url><loc>http://x/1</loc></url>");

    (void)state;
    for (int i = 0; i < 90; i++)
        bytes += (size_t)snprintf(text + bytes, 64, "<a xmlns:p%d=\"u\" xmlns:q%d=\"u\">", i, i);
    read_text(text, &kept);
    assert_int_equal(kept.count, 1);
    assert_int_equal(kept.end, WR_SITEMAP_TOO_MANY_ATTRIBUTES);
}

/* Feeds declare a namespace in the element that uses it, and close it there. */
static void consecutive_namespaces_do_not_reach_the_limit(void **state)
{
    static char text[200000];
    struct kept kept;
    size_t bytes = put(text, "<rss xmlns:a=\"u\"><channel>");

    (void)state;
    for (int i = 0; i < 1000; i++)
        bytes += put(text + bytes, "<item><m:c xmlns:m=\"http://m\" m:url=\"x\"><m:t xmlns:n=\"v\"/></m:c>"
                                   "<link>http://x/1</link></item>");
    (void)put(text + bytes, "</channel></rss>");
    read_text(text, &kept);
    assert_int_equal(kept.end, WR_SITEMAP_COMPLETE);
    assert_int_equal(kept.count, 1000);
}

static unsigned char bomb[1 << 17];

/* Writes a gzip bomb, 60 MB in 60 KB, to `bomb`. Returns its compressed size. */
static size_t make_bomb(void)
{
    static unsigned char zeros[1 << 16];
    z_stream stream = {.next_out = bomb, .avail_out = sizeof bomb};

    memset(zeros, ' ', sizeof zeros);
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    for (size_t fed = 0; fed < MANY; fed += sizeof zeros) {
        stream.next_in = zeros;
        stream.avail_in = sizeof zeros;
        assert_int_equal(deflate(&stream, Z_NO_FLUSH), Z_OK);
    }
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    size_t bytes = sizeof bomb - stream.avail_out;
    assert_int_equal(deflateEnd(&stream), Z_OK);
    return bytes;
}

/* D9 */
static void a_gzip_bomb_is_cut_off(void **state)
{
    struct kept kept;

    (void)state;
    read_bytes((const char *)bomb, make_bomb(), 4096, SIZE_MAX, &kept);
    assert_int_equal(kept.end, WR_SITEMAP_TOO_LARGE);
    assert_true(kept.facts.bytes == WR_SITEMAP_BYTES_MAX);
}

/* D9: a loop can do other work between two pieces. */
static void a_gzip_bomb_is_read_in_bounded_pieces(void **state)
{
    struct kept kept = {.wanted = SIZE_MAX};
    struct wr_sitemap_options options = {.found = keep, .context = &kept};
    struct wr_sitemap *sitemap;
    size_t bytes = make_bomb(), read = 0;
    uint64_t before = 0;

    (void)state;
    assert_int_equal(wr_sitemap_new(&options, &sitemap), 0);
    while (wr_sitemap_wants_more(sitemap)) {
        size_t more = wr_sitemap_push_limited(sitemap, (const char *)bomb + read, bytes - read, 10000);
        uint64_t now = wr_sitemap_counts(sitemap)->bytes;
        assert_true(more > 0 && read + more <= bytes);
        assert_true(now - before <= 10000 + WR_SITEMAP_OVERRUN_MAX);
        before = now;
        read += more;
    }
    assert_true(before == WR_SITEMAP_BYTES_MAX);
    assert_int_equal(wr_sitemap_finish(sitemap), WR_SITEMAP_TOO_LARGE);
    wr_sitemap_free(sitemap);
}

static void sitemap_allocation_failure_is_an_error_and_leaks_nothing(void **state)
{
    struct kept kept = {.wanted = SIZE_MAX};
    struct wr_sitemap *sitemap = NULL;
    test_allocator allocator;

    (void)state;
    test_allocator_init(&allocator);
    struct wr_sitemap_options options = {.found = keep, .context = &kept, .allocator = &allocator.allocator};
    allocator.fail_at = 1;
    assert_int_equal(wr_sitemap_new(&options, &sitemap), WEIR_E_NOMEM);
    assert_null(sitemap);
    assert_int_equal(wr_sitemap_new(&options, &sitemap), 0);
    assert_true(wr_sitemap_push(sitemap, "\x1f\x8b\x08", 3));
    wr_sitemap_free(sitemap);
    assert_int_equal(allocator.live, 0);
}

WEIR_TESTS(test(document_types_and_entities_are_refused), test(broken_markup_costs_its_own_entry_only),
           test(wrong_encodings_of_a_sitemap_are_ignored), test(too_long_or_too_deep_sitemap_parts_end_the_read),
           test(endless_sitemap_is_cut_off), test(tag_with_too_many_attributes_ends_a_sitemap),
           test(nested_namespaces_beyond_the_limit_end_a_sitemap), test(consecutive_namespaces_do_not_reach_the_limit),
           test(a_gzip_bomb_is_cut_off), test(a_gzip_bomb_is_read_in_bounded_pieces),
           test(sitemap_allocation_failure_is_an_error_and_leaks_nothing))
