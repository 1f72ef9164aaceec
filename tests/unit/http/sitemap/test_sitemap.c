/* SPDX-License-Identifier: MIT */
/* test_sitemap.c - tests of reading sitemaps, feeds and lists of URLs (U11). */
#include "rig.h"

#include <zlib.h>

#define SPACE "xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\""
#define TEN_THIRTY INT64_C(1794738600000) /* 2026-11-15T10:30Z, in ms */

static const char urlset[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    "<urlset " SPACE " xmlns:image=\"http://www.google.com/schemas/sitemap-image/1.1\">\n"
    "  <url><loc>\n https://example.org/?a=1&amp;b=2\n </loc><lastmod>2026-11-15T11:30:00+01:00</lastmod>\n"
    "    <image:image><image:loc>https://example.org/i.png</image:loc></image:image></url>\n"
    "  <url><loc><![CDATA[https://example.org/2]]></loc><loc>https://example.org/no</loc></url>\n"
    "  <url><changefreq>daily</changefreq></url>\n"
    "  <url><lastmod>2026-11-15T10:30Z</lastmod><loc>https://example.org/3</loc></url>\n"
    "</urlset>\n";

static void check_urlset(const struct kept *kept)
{
    assert_int_equal(kept->end, WR_SITEMAP_COMPLETE);
    assert_int_equal(kept->count, 3);
    assert_int_equal(kept->facts.entries, 3);
    assert_int_equal(kept->facts.left_out, 1);
    assert_string_equal(kept->urls[0], "https://example.org/?a=1&b=2");
    assert_string_equal(kept->urls[1], "https://example.org/2");
    assert_string_equal(kept->urls[2], "https://example.org/3");
    assert_int_equal(kept->dates[0], TEN_THIRTY);
    assert_true(kept->dates[1] == WR_SITEMAP_NO_DATE);
    assert_int_equal(kept->dates[2], TEN_THIRTY);
    assert_false(kept->indexes[0]);
}

static void sitemap_is_read_in_pieces_of_any_size(void **state)
{
    struct kept kept;

    (void)state;
    for (size_t piece = 1; piece < sizeof urlset; piece++) {
        read_bytes(urlset, sizeof urlset - 1, piece, SIZE_MAX, &kept);
        check_urlset(&kept);
    }
}

/* Compresses a text to one gzip member, as in a .xml.gz file. Returns the compressed size. */
static size_t zip(const char *text, size_t bytes, unsigned char *ret_zipped, size_t room)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)text, .avail_in = (uInt)bytes};
    stream.next_out = ret_zipped;
    stream.avail_out = (uInt)room;
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    assert_int_equal(deflateEnd(&stream), Z_OK);
    return room - stream.avail_out;
}

static void gzipped_sitemap_is_recognized_by_its_first_bytes(void **state)
{
    unsigned char zipped[4096];
    size_t half = sizeof urlset / 2, bytes = zip(urlset, half, zipped, sizeof zipped);
    struct kept kept;

    (void)state;
    bytes += zip(urlset + half, sizeof urlset - 1 - half, zipped + bytes, sizeof zipped - bytes);
    for (size_t piece = 1; piece <= bytes; piece += 3) {
        read_bytes((const char *)zipped, bytes, piece, SIZE_MAX, &kept);
        check_urlset(&kept);
    }
    read_bytes((const char *)zipped, bytes - 20, 100, SIZE_MAX, &kept);
    assert_int_equal(kept.end, WR_SITEMAP_BROKEN);
    assert_true(kept.count >= 1);
    zipped[bytes / 2] ^= 0xff;
    zipped[bytes / 2 + 1] ^= 0xff;
    read_bytes((const char *)zipped, bytes, 100, SIZE_MAX, &kept);
    assert_int_equal(kept.end, WR_SITEMAP_BROKEN);
}

static void sitemap_index_lists_other_sitemaps(void **state)
{
    struct kept kept;

    (void)state;
    read_text("<s:sitemapindex xmlns:s=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><s:sitemap>"
              "<s:loc>https://example.org/1.xml.gz</s:loc><s:lastmod>2026-11-15</s:lastmod></s:sitemap>"
              "<s:sitemap><s:loc>https://example.org/2.xml</s:loc></s:sitemap></s:sitemapindex>",
              &kept);
    assert_int_equal(kept.end, WR_SITEMAP_COMPLETE);
    assert_int_equal(kept.count, 2);
    assert_true(kept.indexes[0] && kept.indexes[1]);
    assert_string_equal(kept.urls[0], "https://example.org/1.xml.gz");
    assert_int_equal(kept.dates[0], TEN_THIRTY - (10 * 60 + 30) * INT64_C(60000));
}

static void feeds_list_their_entries(void **state)
{
    struct kept kept;

    (void)state;
    read_text("<rss version=\"2.0\" xmlns:atom=\"http://www.w3.org/2005/Atom\"><channel>"
              "<link>https://example.org/</link><atom:link href=\"https://example.org/rss\"/>"
              "<item><title>a &nbsp; b</title><link>https://example.org/a</link>"
              "<pubDate>Sun, 15 Nov 2026 11:30:00 +0100</pubDate></item>"
              "<item><link>https://example.org/b</link><pubDate>15 Nov 2026 10:30:00 GMT</pubDate></item>"
              "</channel></rss>",
              &kept);
    assert_int_equal(kept.count, 2);
    assert_string_equal(kept.urls[0], "https://example.org/a");
    assert_int_equal(kept.dates[0], TEN_THIRTY);
    assert_int_equal(kept.dates[1], TEN_THIRTY);
    read_text("<feed xmlns=\"http://www.w3.org/2005/Atom\"><link href=\"https://example.org/\"/>"
              "<entry><link rel=\"edit\" href=\"https://example.org/edit\"/>"
              "<link rel=\"alternate\" href=\"https://example.org/?a=1&amp;b=2&#38;c\"/>"
              "<updated>2026-11-15T10:30:00.000Z</updated></entry>"
              "<entry><link href=\"https://example.org/2\"/></entry></feed>",
              &kept);
    assert_int_equal(kept.count, 2);
    assert_string_equal(kept.urls[0], "https://example.org/?a=1&b=2&c");
    assert_int_equal(kept.dates[0], TEN_THIRTY);
    assert_string_equal(kept.urls[1], "https://example.org/2");
    read_text("<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns=\"http://purl.org/rss/1.0/\">"
              "<channel><link>https://example.org/</link></channel><item><link>https://example.org/r</link></item>"
              "</rdf:RDF>",
              &kept);
    assert_int_equal(kept.count, 1);
    assert_string_equal(kept.urls[0], "https://example.org/r");
}

/* Many sites do not escape the '&' in URLs. */
static void ampersand_that_begins_no_reference_is_kept_as_text(void **state)
{
    static const char text[] =
        "<feed xmlns=\"http://www.w3.org/2005/Atom\"><!-- & -->"
        "<entry><link href=\"https://example.org/?a=1&b=2&amp;c=&copy=4\"/></entry>"
        "<entry><link href='https://example.org/?&&aVeryLongNameThatIsLongerThanAnyReferenceMayBe;&'/></entry>"
        "<entry><link href=\"https://example.org/&#x26;&#38;\"/></entry></feed>";
    static const char section[] = "<urlset><url><loc><![CDATA[https://example.org/?a&b&amp;c]]></loc></url>"
                                  "<url><loc>https://example.org/?a&b</loc></url></urlset>";
    struct kept kept;

    (void)state;
    for (size_t piece = 1; piece < 40; piece++) {
        read_bytes(text, sizeof text - 1, piece, SIZE_MAX, &kept);
        assert_int_equal(kept.count, 3);
        assert_string_equal(kept.urls[0], "https://example.org/?a=1&b=2&c=&copy=4");
        assert_string_equal(kept.urls[1], "https://example.org/?&&aVeryLongNameThatIsLongerThanAnyReferenceMayBe;&");
        assert_string_equal(kept.urls[2], "https://example.org/&&");
        read_bytes(section, sizeof section - 1, piece, SIZE_MAX, &kept);
        assert_int_equal(kept.count, 2);
        assert_string_equal(kept.urls[0], "https://example.org/?a&b&amp;c");
        assert_string_equal(kept.urls[1], "https://example.org/?a&b");
    }
}

static void utf_16_sitemap_is_read_with_its_references(void **state)
{
    static const char text[] = "<urlset><url><loc>https://example.org/?a&amp;b</loc></url></urlset>";
    char wide[2 * sizeof text] = {'\xff', '\xfe'};
    struct kept kept;

    (void)state;
    for (size_t i = 0; i + 1 < sizeof text; i++)
        wide[2 + 2 * i] = text[i];
    read_bytes(wide, sizeof wide, SIZE_MAX / 2, SIZE_MAX, &kept);
    assert_int_equal(kept.count, 1);
    assert_string_equal(kept.urls[0], "https://example.org/?a&b");
}

static void text_sitemap_has_a_url_on_each_line(void **state)
{
    static const char text[] = "\xef\xbb\xbf\r\n https://example.org/1\r\n\nHTTP://example.org/2\n# a comment\n"
                               "ftp://example.org/\nhttps://example.org/3";
    struct kept kept;

    (void)state;
    for (size_t piece = 1; piece < sizeof text; piece++) {
        read_bytes(text, sizeof text - 1, piece, SIZE_MAX, &kept);
        assert_int_equal(kept.end, WR_SITEMAP_COMPLETE);
        assert_int_equal(kept.count, 3);
        assert_int_equal(kept.facts.left_out, 2);
        assert_string_equal(kept.urls[0], "https://example.org/1");
        assert_string_equal(kept.urls[2], "https://example.org/3");
    }
}

static void text_that_is_no_sitemap_is_reported_as_none(void **state)
{
    static const char *const texts[] = {"",
                                        "  \n ",
                                        "<",
                                        "Not found\n",
                                        "{\"error\": 404}",
                                        "<!DOCTYPE html><html><body>https://example.org/</body></html>",
                                        "<html><url><loc>https://example.org/</loc></url></html>",
                                        "<opml><body/></opml>"};
    struct kept kept;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        read_text(texts[i], &kept);
        assert_int_equal(kept.end, WR_SITEMAP_NOT_A_SITEMAP);
        assert_int_equal(kept.count, 0);
    }
}

/* U11: once the first five of 100 000 entries are read, no more bytes are taken. */
static void reading_ends_once_enough_entries_are_found(void **state)
{
    struct kept kept = {.wanted = 5};
    struct wr_sitemap_options options = {.found = keep, .context = &kept};
    struct wr_sitemap *sitemap;
    char entry[64];

    (void)state;
    assert_int_equal(wr_sitemap_new(&options, &sitemap), 0);
    assert_true(wr_sitemap_push(sitemap, "<urlset>", 8));
    size_t n = 0;
    bool goes_on = true;
    for (; goes_on && n < 100000; n++) {
        int bytes = snprintf(entry, sizeof entry, "<url><loc>http://x/%zu</loc></url>", n);
        goes_on = wr_sitemap_push(sitemap, entry, (size_t)bytes);
    }
    assert_true(n < 50); /* libxml2 reads a few bytes ahead */
    assert_int_equal(kept.count, 5);
    assert_false(wr_sitemap_push(sitemap, "<url><loc>http://x/more</loc></url></urlset>", 44));
    assert_int_equal(wr_sitemap_finish(sitemap), WR_SITEMAP_STOPPED);
    assert_int_equal(kept.count, 5);
    wr_sitemap_free(sitemap);
}

#define THE_DAY INT64_C(1794700800000)

static void lastmod_dates_of_all_usual_forms_are_read(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } rows[] = {
        {"2026", INT64_C(1767225600000)},
        {"2026-11", INT64_C(1793491200000)},
        {"2026-11-15", THE_DAY},
        {"\n 2026-11-15 ", THE_DAY},
        {" 2026-11-15T10:30Z\n", TEN_THIRTY},
        {"2026-11-15T10:30:00Z", TEN_THIRTY},
        {"2026-11-15T05:00:00-05:30", TEN_THIRTY},
        {"2026-11-15T10:30:00.250Z", TEN_THIRTY + 250},
        {"2026-11-15 10:30:00", TEN_THIRTY},
        {"Sun, 15 Nov 2026 10:30:00 GMT", TEN_THIRTY},
        {"Sun, 15 Nov 2026 05:00:00 -0530", TEN_THIRTY},
        {"15.11.2026", WR_SITEMAP_NO_DATE},
        {"2026-13-01", WR_SITEMAP_NO_DATE},
        {"0000-00", WR_SITEMAP_NO_DATE},
        {"yesterday", WR_SITEMAP_NO_DATE},
        {"", WR_SITEMAP_NO_DATE},
        {"2026-11-15T10:30Z2026-11-15T10:30Z2026-11-15T10:30Z2026-11-15T10:30Z2026-11-15", WR_SITEMAP_NO_DATE},
    };
    char text[512];
    struct kept kept;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snprintf(text, sizeof text, "<urlset><url><loc>http://x/</loc><lastmod>%s</lastmod></url></urlset>",
                 rows[i].text);
        read_text(text, &kept);
        bool is_day = kept.days[0] && kept.dates[0] != WR_SITEMAP_NO_DATE;
        if (kept.count != 1 || kept.dates[0] != rows[i].ms || is_day != (rows[i].ms == THE_DAY))
            fail_msg("%s: %lld", rows[i].text, (long long)kept.dates[0]);
    }
}

WEIR_TESTS(test(sitemap_is_read_in_pieces_of_any_size), test(gzipped_sitemap_is_recognized_by_its_first_bytes),
           test(sitemap_index_lists_other_sitemaps), test(feeds_list_their_entries),
           test(ampersand_that_begins_no_reference_is_kept_as_text), test(utf_16_sitemap_is_read_with_its_references),
           test(text_sitemap_has_a_url_on_each_line), test(text_that_is_no_sitemap_is_reported_as_none),
           test(reading_ends_once_enough_entries_are_found), test(lastmod_dates_of_all_usual_forms_are_read))
