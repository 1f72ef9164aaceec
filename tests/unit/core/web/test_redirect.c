/* SPDX-License-Identifier: MIT */
/* test_redirect.c - tests the targets of redirects (A10, A11, A13, C12). */
#include "core/web/url/redirect.h"
#include "lib/test.h"

static char from_memory[WR_URL_ROOM], to_memory[WR_URL_ROOM];

static struct wr_url url_of(const char *text)
{
    struct wr_url url;
    assert_int_equal(wr_url_parse(wr_span_of(text), NULL, NULL, from_memory, sizeof from_memory, &url), WR_URL_OK);
    return url;
}

static struct wr_redirect lead(int status, const char *method, const char *from_text, struct wr_span location,
                               struct wr_url *ret_to)
{
    struct wr_url from = url_of(from_text);
    return wr_redirect_read(status, wr_span_of(method), &from, location, NULL, to_memory, sizeof to_memory, ret_to);
}

static void locations_are_resolved_as_browsers_do(void **state)
{
    static const struct {
        const char *from, *location, *to; /* NULL: not followed */
        bool keeps_origin;
    } cases[] = {
        {"http://a.example/x/y?q", "/z", "http://a.example/z", true},
        {"http://a.example/x/y?q", "z", "http://a.example/x/z", true},
        {"http://a.example/x/y?q", "?r", "http://a.example/x/y?r", true},
        {"http://a.example/x/y?q", "//b.example/w", "http://b.example/w", false},
        {"http://a.example/x/y?q", "\\\\b.example\\w", "http://b.example/w", false},
        {"http://a.example/x/y?q", "\\b", "http://a.example/b", true},
        {"http://a.example/", "http://A.EXAMPLE:80/x", "http://a.example/x", true},
        {"http://a.example/", "https://a.example/", "https://a.example/", false},
        {"https://a.example/", "http://a.example/", "http://a.example/", false},
        {"http://a.example/", "http://a.example:8080/", "http://a.example:8080/", false},
        {"http://a.example/", "http://www.a.example/", "http://www.a.example/", false},
        {"http://a.example/", "/\xc3\xa4\xff", "http://a.example/%C3%A4%FF", true},
        {"http://a.example/", "file:///etc/passwd", NULL, false},
        {"http://a.example/", "ftp://a.example/", NULL, false},
        {"http://a.example/", "gopher://a.example/", NULL, false},
        {"http://a.example/", "data:text/html,x", NULL, false},
        {"http://a.example/", "javascript:alert(1)", NULL, false},
        {"http://a.example/", "http://", NULL, false},
        {"http://a.example/", "http://a b/", NULL, false},
        {"http://a.example/", "http://a.example:65536/", NULL, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wr_url to;
        struct wr_redirect redirect = lead(302, "GET", cases[i].from, wr_span_of(cases[i].location), &to);
        if (cases[i].to == NULL) {
            assert_int_equal(redirect.kind, WR_REDIRECT_BAD);
            assert_int_not_equal(redirect.fault, WR_URL_OK);
            continue;
        }
        assert_int_equal(redirect.kind, WR_REDIRECT_FOLLOW);
        assert_string_equal(to.text, cases[i].to);
        assert_int_equal(redirect.keeps_origin, cases[i].keeps_origin);
    }
}

static void only_redirects_with_a_location_are_followed(void **state)
{
    static const int leading[] = {301, 302, 303, 307, 308};
    static const int others[] = {0, 100, 200, 201, 300, 304, 305, 306, 399, 401, 404, 429, 503, 999};
    struct wr_url to;
    (void)state;
    for (size_t i = 0; i < sizeof leading / sizeof leading[0]; i++) {
        assert_int_equal(lead(leading[i], "GET", "http://a.example/", wr_span_of("/b"), &to).kind, WR_REDIRECT_FOLLOW);
        assert_int_equal(lead(leading[i], "GET", "http://a.example/", wr_span_of(""), &to).kind, WR_REDIRECT_NOT);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_int_equal(lead(others[i], "GET", "http://a.example/", wr_span_of("/b"), &to).kind, WR_REDIRECT_NOT);
}

static void redirect_method_follows_the_status(void **state)
{
    static const struct {
        int status;
        const char *method;
        bool becomes_get;
    } cases[] = {
        {301, "GET", false},  {301, "POST", true}, {302, "POST", true},  {302, "PUT", false},
        {303, "POST", true},  {303, "PUT", true},  {303, "HEAD", false}, {303, "GET", false},
        {307, "POST", false}, {308, "PUT", false}, {301, "HEAD", false},
    };
    struct wr_url to;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wr_redirect redirect =
            lead(cases[i].status, cases[i].method, "http://a.example/", wr_span_of("/b"), &to);
        assert_int_equal(redirect.becomes_get, cases[i].becomes_get);
    }
}

static void credentials_in_a_location_are_dropped(void **state)
{
    struct wr_url to;
    (void)state;
    (void)lead(302, "GET", "https://a.example/", wr_span_of("http://user:secret@b.example:81/p?q#f"), &to);
    assert_string_equal(to.text, "http://b.example:81/p?q#f");
    assert_false(wr_url_has_userinfo(&to));
    assert_memory_equal(wr_url_host(&to).data, "b.example", 9);
    assert_int_equal(wr_url_host(&to).bytes, 9);
    assert_memory_equal(wr_url_target(&to).data, "/p?q", 4);
    assert_int_equal(wr_url_target(&to).bytes, 4);
    assert_int_equal(to.bytes, strlen(to.text));
    /* a relative Location would inherit them */
    (void)lead(302, "GET", "https://user:secret@a.example/", wr_span_of("b"), &to);
    assert_string_equal(to.text, "https://a.example/b");
}

static void a_location_of_64_kilobytes_is_refused(void **state)
{
    static char huge[65536];
    struct wr_url to;
    (void)state;
    memset(huge, 'a', sizeof huge);
    huge[0] = '/';
    struct wr_redirect redirect = lead(301, "GET", "http://a.example/", (struct wr_span){huge, sizeof huge}, &to);
    assert_int_equal(redirect.kind, WR_REDIRECT_BAD);
    assert_int_equal(redirect.fault, WR_URL_LONG);
}

WEIR_TESTS(test(locations_are_resolved_as_browsers_do), test(only_redirects_with_a_location_are_followed),
           test(redirect_method_follows_the_status), test(credentials_in_a_location_are_dropped),
           test(a_location_of_64_kilobytes_is_refused))
