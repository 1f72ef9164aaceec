/* SPDX-License-Identifier: MIT */
/* test_url_forms.c - tests forms of a URL: its host key, its robots.txt, its canonical form, and
 * its bounds (D6). */
#include "url_rig.h"

#include "base/rng.h"

#include <weir/pace.h>

typedef void form(struct wr_buf *buf, const struct wr_url *url);

static void check_form(form *append, const char *input, const char *expected)
{
    static char memory[3 * WR_URL_ROOM];
    struct wr_buf buf;
    struct wr_url url;

    assert_int_equal(parse(input, NULL, &url), WR_URL_OK);
    wr_buf_init_fixed(&buf, memory, sizeof memory);
    append(&buf, &url);
    assert_int_equal(buf.error, 0);
    if (strcmp(memory, expected) != 0)
        fail_msg("\"%s\" became %s and not %s", input, memory, expected);
}

#define check_forms(append, cases)                                     \
    do {                                                               \
        for (size_t i_ = 0; i_ < sizeof cases / sizeof cases[0]; i_++) \
            check_form(append, cases[i_].input, cases[i_].expected);   \
    } while (0)

/* S0-7, R12, D6 */
static void politeness_key_is_the_host_and_an_unusual_port(void **state)
{
    static const struct url_case cases[] = {
        {"http://example.com/a?b#c", "example.com"},
        {"http://EXAMPLE.com.:80/", "example.com"},
        {"https://EXAMPLE.com.:443/", "example.com"},
        {"https://example.com/", "example.com"},
        {"http://example.com:8080/", "example.com:8080"},
        {"http://example.com:443/", "example.com:443"}, /* not the default port of http */
        {"https://example.com:80/", "example.com:80"},
        {"http://example.com:00080/", "example.com"},
        {"http://u:p@example.com/", "example.com"},
        {"http://127.1/", "127.0.0.1"},
        {"http://127.0.0.1.:8080/", "127.0.0.1:8080"},
        {"http://[0:0::1]/", "[::1]"},
        {"http://[::1]:8080/", "[::1]:8080"},
        {"http://b\303\274cher.example:81/", "xn--bcher-kva.example:81"},
    };
    (void)state;
    check_forms(wr_url_append_key, cases);
}

static void url_and_host_give_the_same_key_where_both_know_the_port(void **state)
{
    static const char *const hosts[] = {
        "example.com",          "EXAMPLE.com.:80", "a_b.example:8080",        "127.0.0.1:81",
        "[2001:DB8::0:1]:8443", "[::1]",           "xn--bcher-kva.example:1", "x.:65535"};
    char input[64], key[WEIR_PACE_KEY_MAX + 1];
    (void)state;
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        snprintf(input, sizeof input, "http://%s/", hosts[i]);
        assert_int_equal(weir_host_key(hosts[i], strlen(hosts[i]), key, sizeof key, NULL), 0);
        check_form(wr_url_append_key, input, key);
    }
}

/* B13 */
static void robots_txt_url_has_the_scheme_host_and_port(void **state)
{
    static const struct url_case cases[] = {
        {"http://example.com/a?b#c", "http://example.com/robots.txt"},
        {"https://example.com/a", "https://example.com/robots.txt"},
        {"http://example.com:8080/a", "http://example.com:8080/robots.txt"},
        {"http://example.com:443/", "http://example.com:443/robots.txt"},
        {"https://u:p@EXAMPLE.com.:443/robots.txt", "https://example.com/robots.txt"},
        {"http://[::1]:81/a", "http://[::1]:81/robots.txt"},
    };
    (void)state;
    check_forms(wr_url_append_robots, cases);
}

static void spellings_of_one_page_share_one_canonical_url(void **state)
{
    static const struct url_case cases[] = {
        {"http://example.com", "http://example.com/"},
        {"HTTP://EXAMPLE.com.:80/a/../b#f", "http://example.com/b"},
        {"http://u:p@example.com/a", "http://example.com/a"},
        {"http://example.com/%61%62%63", "http://example.com/abc"},
        {"http://example.com/%41%5A%30%2d%2E%5f%7e", "http://example.com/AZ0-._~"},
        {"http://example.com/%2f%3f%23%25", "http://example.com/%2F%3F%23%25"},
        {"http://example.com/a%c3%bc", "http://example.com/a%C3%BC"},
        {"http://example.com/a\xc3\xbc", "http://example.com/a%C3%BC"},
        {"http://example.com/%", "http://example.com/%25"},
        {"http://example.com/%zz%4", "http://example.com/%25zz%254"},
        /* decoding must not create a new escape */
        {"http://example.com/%%32e", "http://example.com/%252e"},
        {"http://example.com/a%2e", "http://example.com/a."},
        {"http://example.com/a/%2e%2e/b", "http://example.com/b"},
        {"http://example.com/?%61=%2f&b=%C3%a4", "http://example.com/?a=%2F&b=%C3%A4"},
        {"http://example.com/?", "http://example.com/?"},
        {"http://example.com/?a#", "http://example.com/?a"},
        {"http://example.com/A", "http://example.com/A"},
        {"http://example.com/a//b/", "http://example.com/a//b/"},
        {"http://example.com/!$&'()*+,;=:@|", "http://example.com/!$&'()*+,;=:@|"},
        {"https://127.1:443/a", "https://127.0.0.1/a"},
    };
    (void)state;
    check_forms(wr_url_append_canonical, cases);
}

static void parts_of_a_url_can_be_read(void **state)
{
    struct wr_url url, other;
    (void)state;
    assert_int_equal(parse("https://u:p@example.org:81/a/b?c=d#e", NULL, &url), WR_URL_OK);
    assert_memory_equal(wr_url_host(&url).data, "example.org", wr_url_host(&url).bytes);
    assert_int_equal(wr_url_host(&url).bytes, 11);
    assert_memory_equal(wr_url_target(&url).data, "/a/b?c=d", wr_url_target(&url).bytes);
    assert_int_equal(wr_url_target(&url).bytes, 8);
    assert_true(url.is_https && url.port == 81 && wr_url_has_userinfo(&url));
    assert_int_equal(parse("https://example.org:81/", NULL, &other), WR_URL_OK);
    assert_true(wr_url_same_origin(&url, &other) && !wr_url_has_userinfo(&other));
    assert_int_equal(parse("http://example.org:81/", NULL, &other), WR_URL_OK);
    assert_false(wr_url_same_origin(&url, &other));
    assert_int_equal(parse("https://example.org/", NULL, &other), WR_URL_OK);
    assert_false(wr_url_same_origin(&url, &other));
    assert_int_equal(other.port, 443);
    assert_int_equal(parse("https://example.net:81/", NULL, &other), WR_URL_OK);
    assert_false(wr_url_same_origin(&url, &other));
}

static enum wr_url_fault parse_long(size_t path_bytes, char filler, struct wr_url *ret_url)
{
    static char input[1 << 20];
    memcpy(input, "http://h", 8);
    memset(input + 8, filler, path_bytes);
    input[8] = '/';
    return parse_bytes(input, 8 + path_bytes, NULL, ret_url);
}

/* D6 */
static void urls_longer_than_the_maximum_are_refused(void **state)
{
    static char input[1 << 19];
    struct wr_url url;
    (void)state;
    assert_int_equal(parse_long(WR_URL_MAX - 8, 'a', &url), WR_URL_OK);
    assert_int_equal(url.bytes, WR_URL_MAX);
    check_parts(&url);
    assert_int_equal(parse_long(WR_URL_MAX - 7, 'a', &url), WR_URL_LONG);
    /* blanks at the end are trimmed */
    assert_int_equal(parse_long(WR_URL_MAX / 3 - 2, ' ', &url), WR_URL_OK);
    assert_int_equal(parse_long(WR_URL_MAX / 3 + 2, '"', &url), WR_URL_LONG);
    assert_int_equal(parse_long((1 << 20) - 8, 'a', &url), WR_URL_LONG);
    assert_int_equal(parse_long((1 << 20) - 8, '/', &url), WR_URL_LONG);
    memcpy(input, "http://h/?", 10);
    for (size_t i = 0; i < 65536; i++) /* 65536 parameters */
        memcpy(input + 10 + i * 4, "a=b&", 4);
    assert_int_equal(parse_bytes(input, 10 + 65536 * 4, NULL, &url), WR_URL_LONG);
}

static void million_dot_segments_need_no_memory(void **state)
{
    static char input[3000009];
    struct wr_url url;
    (void)state;
    memcpy(input, "http://h", 8);
    for (size_t i = 0; i < 1000000; i++)
        memcpy(input + 8 + i * 3, "/..", 3);
    assert_int_equal(parse_bytes(input, 3000008, NULL, &url), WR_URL_OK);
    assert_string_equal(url.text, "http://h/");
}

static void url_parser_refuses_every_smaller_buffer_without_overrun(void **state)
{
    static const char *const inputs[] = {"http://u:p@example.org:8080/a/../b c/./d?e f#g h",
                                         "../x/./y?z#w",
                                         "?a",
                                         "#b",
                                         "//x.example/y",
                                         "http://[::1]:8080/"};
    const struct wr_url *base = base_of("http://u:p@h.example:81/a/b/c?q#f");
    (void)state;
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        struct wr_url url = {.bytes = 4711}, whole;
        assert_int_equal(parse(inputs[i], base, &whole), WR_URL_OK);
        for (size_t room = 1; room <= whole.bytes; room++) {
            char *memory = malloc(room); /* exact size, so that sanitizers detect overruns */
            assert_non_null(memory);
            assert_int_equal(wr_url_parse(wr_span_of(inputs[i]), base, &stand_in, memory, room, &url), WR_URL_LONG);
            assert_int_equal(url.bytes, 4711);
            free(memory);
        }
    }
}

/* Random pieces of URLs: each accepted URL parses as itself, is bounded, and has one canonical
 * form. */
static void accepted_urls_and_their_canonical_forms_are_stable(void **state)
{
    static const char *const pieces[] = {
        "http:", "https:", "//",    "/",      "\\",       "?",           "#",     "@",     ":",  "80",
        "443",   "65535",  "[::1]", "[",      "]",        "example.org", "127.1", "0x7f",  "..", ".",
        "%2e",   "%",      "%41",   "%c3%bc", "\xc3\xbc", "\xff",        " ",     "\t",    "\n", "a",
        "B",     "_",      "-",     "\"",     "<",        "^",           "u:p@",  "xn--a", "&",  "=",
        "'",     "`",      "{",     "|",      "~",        "*",           "$",     "%2F",   "%%", "%25",
    };
    static char first[3 * WR_URL_ROOM], second[3 * WR_URL_ROOM];
    const struct wr_url *base = base_of("http://b.example/x/y");
    struct wr_rng rng;
    size_t accepted = 0;
    (void)state;
    wr_rng_init(&rng, weir_test_seed());
    for (int round = 0; round < 100000; round++) {
        char input[512] = "";
        struct wr_url url, again;
        struct wr_buf buf;
        if (wr_rng_below(&rng, 2) == 0)
            strcat(input, "http://h");
        for (uint64_t count = wr_rng_below(&rng, 16); count > 0; count--)
            strcat(input, pieces[wr_rng_below(&rng, sizeof pieces / sizeof pieces[0])]);
        if (parse(input, wr_rng_below(&rng, 2) == 0 ? NULL : base, &url) != WR_URL_OK)
            continue;
        accepted++;
        check_parts(&url);
        check_stable(&url);
        wr_buf_init_fixed(&buf, first, sizeof first);
        wr_url_append_canonical(&buf, &url);
        assert_int_equal(parse(first, NULL, &again), WR_URL_OK);
        assert_string_equal(again.text, first);
        wr_buf_init_fixed(&buf, second, sizeof second);
        wr_url_append_canonical(&buf, &again);
        assert_string_equal(second, first);
    }
    assert_true(accepted > 20000);
}

static void a_shown_url_has_neither_user_nor_password(void **state)
{
    static const char *const cases[][2] = {
        {"http://user:secret@example.org/a@b", "http://example.org/a@b"},
        {"https://a:b@c@example.org", "https://example.org"},
        {"https://example.org/@name?a@b#c@d", "https://example.org/@name?a@b#c@d"},
        {"http:\\\\user:secret@example.org", "http:\\\\example.org"},
        {" ht\ntp:/\t/user:secret@[", " ht\ntp:/\t/["},
        {"//user:secret@x", "//x"},
        {"user:secret@x", "user:x"},
        {"secret@x", "x"},
        {"http:user:secret@x?@", "http:x?@"},
        {"http://user:secret@", "http://"},
        {"http://@", "http://"},
        {"http:", "http:"},
        {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[100];
        (void)snprintf(text, sizeof text, "%s", cases[i][0]);
        wr_url_hide_user(text);
        assert_string_equal(text, cases[i][1]);
    }
}

/* V10 */
static void shown_invalid_url_has_neither_user_nor_password(void **state)
{
    static const char *const cases[][2] = {
        {"http://user:secret@[/a", "http://[/a"},
        {"https://user:sec/ret@example.org/a", "https://example.org/a"},
        {"https://user:s?c#r@t@example.org/a", "https://example.org/a"},
        {"https://user:secret", "https://user:..."},
        {"https://user:secret%40example.org/a", "https://user:..."},
        {"//user:secret@x:y", "//x:..."},
        {"user:secret@x", "user:x"},
        {"https://exa mple.org/@name", "https://exa mple.org/@name"},
        {"https://exa mple.org:80/@name", "https://exa mple.org:80/@name"},
        {"https://[::1/@name", "https://[::1/@name"},
        {"https://user@", "https://"},
        {"https://", "https://"},
        {"", ""},
    };
    char shown[100], whole[300], small[20];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        wr_url_redact_invalid(wr_span_of(cases[i][0]), shown, sizeof shown);
        assert_string_equal(shown, cases[i][1]);
    }
    /* The user is removed before the text is truncated. */
    (void)snprintf(whole, sizeof whole, "https://user:%0200d@example.org/", 7);
    wr_url_redact_invalid(wr_span_of(whole), small, sizeof small);
    assert_string_equal(small, "https://example.org");
}

WEIR_TESTS(test(shown_invalid_url_has_neither_user_nor_password), test(a_shown_url_has_neither_user_nor_password),
           test(politeness_key_is_the_host_and_an_unusual_port),
           test(url_and_host_give_the_same_key_where_both_know_the_port),
           test(robots_txt_url_has_the_scheme_host_and_port), test(spellings_of_one_page_share_one_canonical_url),
           test(parts_of_a_url_can_be_read), test(urls_longer_than_the_maximum_are_refused),
           test(million_dot_segments_need_no_memory), test(url_parser_refuses_every_smaller_buffer_without_overrun),
           test(accepted_urls_and_their_canonical_forms_are_stable))
