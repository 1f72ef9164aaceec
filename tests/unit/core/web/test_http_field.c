/* SPDX-License-Identifier: MIT */
/* test_http_field.c - tests header lines, Content-Type and X-Robots-Tag. */
#include "lib/test.h"

#include "core/web/http/field.h"

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])

static void assert_span(struct wr_span span, const char *text)
{
    assert_int_equal(span.bytes, strlen(text));
    assert_memory_equal(span.data == NULL ? "" : span.data, text, span.bytes);
}

/* C9 */
static void header_line_is_split_into_name_and_value_or_refused(void **state)
{
    static const struct {
        const char *line, *name, *value; /* name NULL: refused */
    } rows[] = {
        {"Name: value", "Name", "value"},
        {"Name: value\r\n", "Name", "value"},
        {"Name:value\n", "Name", "value"},
        {"Name:\t  value \t", "Name", "value"},
        {"Name:", "Name", ""},
        {"Name : value", "Name", "value"},
        {"a!#$%&'*+-.^_`|~9: b: c", "a!#$%&'*+-.^_`|~9", "b: c"},
        {"Name: \xc3\xa9\xff", "Name", "\xc3\xa9\xff"},
        {"", NULL, NULL},
        {"\r\n", NULL, NULL},
        {"Name", NULL, NULL},
        {":", NULL, NULL},
        {" Name: value", NULL, NULL},
        {"\tName: value", NULL, NULL},
        {"Na me: value", NULL, NULL},
        {"N\xc3\xa4me: value", NULL, NULL},
        {"Na(me: value", NULL, NULL},
        {"Name: a\rb", NULL, NULL},
        {"Name: a\nb", NULL, NULL},
        {"Name: a\r\r\n", NULL, NULL},
        {"HTTP/1.1 200 OK", NULL, NULL},
        {"HTTP/1.1 200 OK: fine", NULL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct wr_span name = {"untouched", 9}, value = name;
        bool is_field = wr_field_parse(wr_span_of(rows[i].line), &name, &value);
        assert_true(is_field == (rows[i].name != NULL));
        assert_span(name, is_field ? rows[i].name : "untouched");
        assert_span(value, is_field ? rows[i].value : "untouched");
    }
}

static void header_line_with_a_zero_byte_is_refused(void **state)
{
    struct wr_span name, value;

    (void)state;
    assert_false(wr_field_parse((struct wr_span){"Na\0e: value", 11}, &name, &value));
    assert_false(wr_field_parse((struct wr_span){"Name: va\0ue", 11}, &name, &value));
    assert_false(wr_field_parse((struct wr_span){NULL, 0}, &name, &value));
}

static void header_names_are_compared_without_case(void **state)
{
    (void)state;
    assert_true(wr_field_is(wr_span_of("RETRY-after"), "Retry-After"));
    assert_false(wr_field_is(wr_span_of("Retry-Afte"), "Retry-After"));
    assert_false(wr_field_is(wr_span_of("Retry-After-"), "Retry-After"));
    assert_true(wr_field_is((struct wr_span){NULL, 0}, ""));
}

static void content_type_gives_type_and_charset(void **state)
{
    static const struct {
        const char *value, *type, *charset;
    } rows[] = {
        {"text/html", "text/html", ""},
        {"text/html; charset=utf-8", "text/html", "utf-8"},
        {"text/html;charset=\"utf-8\"", "text/html", "utf-8"},
        {"Text/HTML ; Charset = ISO-8859-1 ; x=y", "Text/HTML", "ISO-8859-1"},
        {"text/html; profile=\"a;charset=koi8-r\"; charset=utf-8", "text/html", "utf-8"},
        {"text/html; profile=\"a\\\";charset=x\"; charset=utf-8", "text/html", "utf-8"},
        {"text/html; charset=a; charset=b", "text/html", "a"},
        {"text/html; charset=", "text/html", ""},
        {"text/html; charset=\"", "text/html", ""},
        {"text/html; charset=\"utf-8", "text/html", "utf-8"},
        {"text/html; charset", "text/html", ""},
        {"text/html;", "text/html", ""},
        {";charset=utf-8", "", "utf-8"},
        {"", "", ""},
        {"text/html; x=\"\\", "text/html", ""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct wr_content_type found = wr_content_type_parse(wr_span_of(rows[i].value));
        assert_span(found.type, rows[i].type);
        assert_span(found.charset, rows[i].charset);
    }
}

static void x_robots_tag_applies_to_all_agents_or_the_named_one(void **state)
{
    enum {
        F = WR_ROBOTS_NOFOLLOW,
        I = WR_ROBOTS_NOINDEX
    };
    static const struct {
        const char *value;
        unsigned directives;
    } rows[] = {
        {"nofollow", F},
        {"NoIndex", I},
        {"noindex, nofollow", F | I},
        {"none", F | I},
        {"all", 0},
        {"index, follow", 0},
        {"nofollowing", 0},
        {"", 0},
        {", ,nofollow,", F},
        {"googlebot: nofollow", 0},
        {"weir: nofollow", F},
        {"WEIR : noindex, nofollow", F | I},
        {"weirdo: nofollow", 0},
        {"googlebot: noindex, nofollow, weir: noindex", I},
        {"noindex, googlebot: nofollow", I},
        {"unavailable_after: 25 Jun 2010 15:00:00 PST, nofollow", F},
        {"max-snippet: -1, nofollow, max-image-preview: large", F},
        {": nofollow", 0},
        {"weir:", 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(wr_robots_directives_parse(wr_span_of(rows[i].value), wr_span_of("weir")), rows[i].directives);
    assert_int_equal(wr_robots_directives_parse(wr_span_of("weir: nofollow"), (struct wr_span){NULL, 0}), 0);
}

static void max_age_of_cache_control_is_parsed(void **state)
{
    static const struct {
        const char *value;
        int64_t ns;
    } rows[] = {
        {"max-age=60", WEIR_MINUTE},
        {"public, Max-Age=3600, must-revalidate", WEIR_HOUR},
        {"max-age=\"60\"", WEIR_MINUTE},
        {"max-age = 60", WEIR_MINUTE},
        {"max-age=60, max-age=30", 30 * WEIR_SECOND},
        {"no-cache", 0},
        {"no-store, max-age=60", 0},
        {"no-cache=\"Set-Cookie, max-age=9\", max-age=60", 0},
        {"x=\"max-age=1\", max-age=60", WEIR_MINUTE},
        {"max-age=0", 0},
        {"max-age=-1", 0},
        {"max-age=soon", 0},
        {"max-age", 0},
        {"max-age=99999999999999999999999999", WEIR_DURATION_MAX},
        {"s-maxage=60", -1},
        {"public", -1},
        {"", -1},
        {",,", -1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(wr_max_age_ns(wr_span_of(rows[i].value)), rows[i].ns);
}

/* RFC 9110 5.6.2 */
static void token_characters_are_those_of_rfc_9110(void **state)
{
    static const char others[] = "!#$%&'*+-.^_`|~";

    (void)state;
    for (int c = 0; c < 256; c++) {
        bool is_one = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      (c != 0 && strchr(others, c) != NULL);
        if (wr_field_is_token_char((char)c) != is_one)
            fail_msg("byte %d", c);
    }
}

static void header_value_with_a_control_character_is_invalid(void **state)
{
    (void)state;
    char text[24];

    for (size_t bytes = 1; bytes <= sizeof text; bytes++)
        for (size_t at = 0; at < bytes; at++)
            for (int c = 0; c < 256; c++) {
                memset(text, "a\t\xff"[bytes % 3], sizeof text);
                text[at] = (char)c;
                bool is_sound = c == '\t' || (c >= 0x20 && c != 0x7f);
                if (wr_field_is_sound(wr_span_of("A"), (struct wr_span){text, bytes}) != is_sound)
                    fail_msg("byte %d at %zu of %zu", c, at, bytes);
            }
    assert_true(wr_field_is_sound(wr_span_of("A"), (struct wr_span){NULL, 0}));
    assert_false(wr_field_is_sound(wr_span_of("A b"), wr_span_of("c")));
    assert_false(wr_field_is_sound(wr_span_of(""), wr_span_of("c")));
}

WEIR_TESTS(test(header_value_with_a_control_character_is_invalid), test(token_characters_are_those_of_rfc_9110),
           test(max_age_of_cache_control_is_parsed), test(header_line_is_split_into_name_and_value_or_refused),
           test(header_line_with_a_zero_byte_is_refused), test(header_names_are_compared_without_case),
           test(content_type_gives_type_and_charset), test(x_robots_tag_applies_to_all_agents_or_the_named_one))
