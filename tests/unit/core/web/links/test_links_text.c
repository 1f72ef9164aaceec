/* SPDX-License-Identifier: MIT */
/* test_links_text.c - tests the small grammars of attribute values. */
#include "lib/test.h"

#include "base/rng.h"
#include "core/web/links/html_text.h"
#include "core/web/links/references.h"

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])

static void assert_span(struct wr_span span, const char *text)
{
    assert_int_equal(span.bytes, strlen(text));
    assert_memory_equal(span.data == NULL ? "" : span.data, text, span.bytes);
}

static void character_references_are_decoded_as_in_attributes(void **state)
{
    static const struct {
        const char *text, *decoded;
    } rows[] = {
        {"", ""},
        {"plain", "plain"},
        {"a&amp;b", "a&b"},
        {"a&ampb", "a&ampb"},
        {"a&amp", "a&"},
        {"a&amp=b", "a&amp=b"},
        {"a&amp;=b", "a&=b"},
        {"a&amp b", "a& b"},
        {"?a=1&copy=2", "?a=1&copy=2"},
        {"?a=1&copy", "?a=1\xc2\xa9"},
        {"&hearts;", "\xe2\x99\xa5"},
        {"&hearts", "&hearts"}, /* not one of the references that need no semicolon */
        {"&Eacute;&eacute;", "\xc3\x89\xc3\xa9"},
        {"&EACUTE;", "&EACUTE;"},
        {"&thetasym;", "\xcf\x91"},
        {"&thetasymx;", "&thetasymx;"},
        {"&notit;", "&notit;"},
        {"&;&#;&#x;&#xg;", "&;&#;&#x;&#xg;"},
        {"&#65;&#x42;&#X43;&#68", "ABCD"},
        {"&#65x", "Ax"},
        {"&#0;&#x110000;&#xD800;&#xDFFF;", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"&#99999999999999999999999999;", "\xef\xbf\xbd"},
        {"&#x10ffff;&#x1f600;", "\xf4\x8f\xbf\xbf\xf0\x9f\x98\x80"},
        {"&#128;&#x9f;&#x81;", "\xe2\x82\xac\xc5\xb8\xc2\x81"},
        {"a\r\nb\rc\nd\r", "a\nb\nc\nd\n"},
        {"&#13;&#10;", "\r\n"},
        {"&am\rp;", "&am\np;"},
        {"&&&&amp;&&", "&&&&&&"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t bytes = strlen(rows[i].text);
        char *text = malloc(bytes + 1);
        assert_non_null(text);
        memcpy(text, rows[i].text, bytes);
        bytes = wr_references_decode(text, bytes);
        assert_span((struct wr_span){text, bytes}, rows[i].decoded);
        free(text);
    }
}

static void every_named_character_reference_is_found_and_no_other(void **state)
{
    bool is_old;

    (void)state;
    /* the first reference that needs no semicolon */
    assert_int_equal(wr_char_reference_point(wr_span_of("AElig"), &is_old), 0xc6);
    assert_true(is_old);
    /* the last reference that needs no semicolon */
    assert_int_equal(wr_char_reference_point(wr_span_of("yuml"), &is_old), 0xff);
    assert_true(is_old);
    assert_int_equal(wr_char_reference_point(wr_span_of("Alpha"), &is_old), 0x391);
    assert_false(is_old);
    assert_int_equal(wr_char_reference_point(wr_span_of("zwnj"), &is_old), 0x200c);
    assert_int_equal(wr_char_reference_point(wr_span_of("am"), &is_old), 0);
    assert_int_equal(wr_char_reference_point(wr_span_of("amps"), &is_old), 0);
    assert_int_equal(wr_char_reference_point(wr_span_of("thetasymm"), &is_old), 0);
    assert_int_equal(wr_char_reference_point(wr_span_of(""), &is_old), 0);
}

/* Decoding is in place, so writing must never overtake reading. */
static void decoding_never_makes_a_text_longer(void **state)
{
    static const char *const pieces[] = {"&",  "#", "x", "amp", "lt", ";",  "9",  "128",    "eacute", "\r",
                                         "\n", "=", "a", "ni",  "Mu", "le", "or", "10ffff", "hearts", "\xff"};
    struct wr_rng rng;

    (void)state;
    wr_rng_init(&rng, weir_test_seed());
    for (int i = 0; i < 100000; i++) {
        char text[128], copy[128];
        size_t bytes = 0;
        for (uint64_t count = wr_rng_below(&rng, 12); count > 0; count--) {
            const char *piece = pieces[wr_rng_below(&rng, COUNT(pieces))];
            memcpy(text + bytes, piece, strlen(piece));
            bytes += strlen(piece);
        }
        memcpy(copy, text, bytes);
        size_t left = wr_references_decode(text, bytes);
        assert_true(left <= bytes);
        if (memchr(copy, '&', bytes) == NULL && memchr(copy, '\r', bytes) == NULL)
            assert_memory_equal(text, copy, bytes);
    }
}

static void candidates_of_srcset_are_parsed_as_urls(void **state)
{
    static const struct {
        const char *list, *urls;
    } rows[] = {
        {"", ""},
        {" , ,, ", ""},
        {"a", "a "},
        {"a,", "a "},
        {"a 1x, b 2x", "a b "},
        {"a,b", "a,b "}, /* without a blank, the comma is part of the URL */
        {"a, b", "a b "},
        {"a,,, b", "a b "},
        {" a  100w ,b 200w", "a b "},
        {"a calc(1,2) x, b", "a b "},
        {"a (x, b", "a "},
        {"data:image/png;base64,AA== 1x, b", "data:image/png;base64,AA== b "},
        {"a\n1x,\tb\f2x", "a b "},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct wr_span list = wr_span_of(rows[i].list), url;
        char urls[128] = "";
        while (wr_srcset_next(&list, &url))
            snprintf(urls + strlen(urls), sizeof urls - strlen(urls), "%.*s ", (int)url.bytes, url.data);
        assert_string_equal(urls, rows[i].urls);
    }
}

static void refresh_names_a_url_or_none(void **state)
{
    static const struct {
        const char *content, *url; /* NULL: no URL */
    } rows[] = {
        {"0; url=a", "a"},
        {"0;url=a", "a"},
        {"0,url=a", "a"},
        {"0 url=a", "a"},
        {" 5 ; URL = a b ", "a b "},
        {"5;a", "a"},
        {"5 a", "a"},
        {"5; url='a' b", "a"},
        {"5; url=\"a", "a"},
        {"5; 'a'", "a"},
        {"5; url=", ""},
        {"5; url", "url"},
        {"5; urla", "urla"},
        {"5; url a", "url a"},
        {".5; url=a", "a"},
        {"1.2.3; url=a", "a"},
        {"0; ur", "ur"},
        {"5", NULL},
        {"5;", NULL},
        {"5 ", NULL},
        {"", NULL},
        {"url=a", NULL},
        {"-1; url=a", NULL},
        {"5x; url=a", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct wr_span url = {"untouched", 9};
        bool has_url = wr_refresh_url(wr_span_of(rows[i].content), &url);
        assert_true(has_url == (rows[i].url != NULL));
        assert_span(url, has_url ? rows[i].url : "untouched");
    }
}

static void charsets_are_known_by_their_labels(void **state)
{
    static const struct {
        const char *content, *label;
        enum wr_charset charset;
    } rows[] = {
        {"text/html; charset=utf-8", "utf-8", WR_CHARSET_OTHER},
        {"text/html charset = \"Latin1\"", "Latin1", WR_CHARSET_LATIN1},
        {"charset='ISO-8859-1'x", "ISO-8859-1", WR_CHARSET_LATIN1},
        {"charset=windows-1252;x", "windows-1252", WR_CHARSET_LATIN1},
        {"charset=utf-16", "utf-16", WR_CHARSET_UTF16_LE},
        {"charset=UTF-16BE x", "UTF-16BE", WR_CHARSET_UTF16_BE},
        {"charset=shift_jis", "shift_jis", WR_CHARSET_OTHER},
        {"charset='utf-8", "", WR_CHARSET_OTHER},
        {"charset", "", WR_CHARSET_OTHER},
        {"charset=", "", WR_CHARSET_OTHER},
        {"text/html", "", WR_CHARSET_OTHER},
        {"", "", WR_CHARSET_OTHER},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct wr_span label = wr_meta_charset(wr_span_of(rows[i].content));
        assert_span(label, rows[i].label);
        assert_int_equal(wr_charset_of(label), rows[i].charset);
    }
    assert_int_equal(wr_charset_of(wr_span_of(" l1 ")), WR_CHARSET_LATIN1);
}

static void attribute_words_are_separated_by_blanks(void **state)
{
    struct wr_span list = wr_span_of(" a\tbc\n\fd\r "), word;
    char words[32] = "";

    (void)state;
    while (wr_words_next(&list, &word))
        snprintf(words + strlen(words), sizeof words - strlen(words), "[%.*s]", (int)word.bytes, word.data);
    assert_string_equal(words, "[a][bc][d]");
}

WEIR_TESTS(test(character_references_are_decoded_as_in_attributes),
           test(every_named_character_reference_is_found_and_no_other), test(decoding_never_makes_a_text_longer),
           test(candidates_of_srcset_are_parsed_as_urls), test(refresh_names_a_url_or_none),
           test(charsets_are_known_by_their_labels), test(attribute_words_are_separated_by_blanks))
