/* SPDX-License-Identifier: MIT */
/* test_url_relative.c - tests links and redirects that are resolved against a base (C12). */
#include "url_rig.h"

static void references_are_resolved_against_their_base(void **state)
{
    static const struct url_case cases[] = {
        {"", "http://u:p@h.example:81/a/b/c?q"},
        {" \n", "http://u:p@h.example:81/a/b/c?q"},
        {"#", "http://u:p@h.example:81/a/b/c?q#"},
        {"#x", "http://u:p@h.example:81/a/b/c?q#x"},
        {"?", "http://u:p@h.example:81/a/b/c?"},
        {"?x", "http://u:p@h.example:81/a/b/c?x"},
        {"?x#y", "http://u:p@h.example:81/a/b/c?x#y"},
        {"d", "http://u:p@h.example:81/a/b/d"},
        {"./d", "http://u:p@h.example:81/a/b/d"},
        {"d/", "http://u:p@h.example:81/a/b/d/"},
        {"d?x", "http://u:p@h.example:81/a/b/d?x"},
        {"d#x", "http://u:p@h.example:81/a/b/d#x"},
        {";x", "http://u:p@h.example:81/a/b/;x"},
        {".", "http://u:p@h.example:81/a/b/"},
        {"./", "http://u:p@h.example:81/a/b/"},
        {"..", "http://u:p@h.example:81/a/"},
        {"../", "http://u:p@h.example:81/a/"},
        {"../d", "http://u:p@h.example:81/a/d"},
        {"../..", "http://u:p@h.example:81/"},
        {"../../d", "http://u:p@h.example:81/d"},
        {"../../../d", "http://u:p@h.example:81/d"},
        {"%2e%2E/d", "http://u:p@h.example:81/a/d"},
        {"..\\d", "http://u:p@h.example:81/a/d"},
        {"...", "http://u:p@h.example:81/a/b/..."},
        {"/", "http://u:p@h.example:81/"},
        {"/d", "http://u:p@h.example:81/d"},
        {"/./d", "http://u:p@h.example:81/d"},
        {"/../d", "http://u:p@h.example:81/d"},
        {"\\d", "http://u:p@h.example:81/d"},
        {"/?x", "http://u:p@h.example:81/?x"},
    };
    (void)state;
    check_all(cases, base_of("http://u:p@h.example:81/a/b/c?q#f"));
}

static void references_may_name_a_host_or_repeat_the_scheme(void **state)
{
    static const struct url_case cases[] = {
        {"//x.example", "http://x.example/"},
        {"//x.example/d", "http://x.example/d"},
        {"\\\\x.example\\d", "http://x.example/d"},
        {"/\\x.example/d", "http://x.example/d"},
        {"\\/x.example/d", "http://x.example/d"},
        {"///x.example/d", "http://x.example/d"},
        {"////x.example/d", "http://x.example/d"},
        {"/\n/x.example", "http://x.example/"},
        {"//v@x.example:80", "http://v@x.example/"},
        {"http:d", "http://u:p@h.example:81/a/b/d"},
        {"http:/d", "http://u:p@h.example:81/d"},
        {"http:\\d", "http://u:p@h.example:81/d"},
        {"http:../d", "http://u:p@h.example:81/a/d"},
        {"http:?x", "http://u:p@h.example:81/a/b/c?x"},
        {"http:#x", "http://u:p@h.example:81/a/b/c?q#x"},
        {"http:", "http://u:p@h.example:81/a/b/c?q"},
        {"http://x.example", "http://x.example/"},
        {"http:\\\\x.example", "http://x.example/"},
        {"HTTP:d", "http://u:p@h.example:81/a/b/d"},
        {"https:d", "https://d/"},
        {"https:/d", "https://d/"},
        {"https://d", "https://d/"},
        {"./d:e/f", "http://u:p@h.example:81/a/b/d:e/f"},
        {"a b", "http://u:p@h.example:81/a/b/a%20b"},
        {"\xc3\xbc", "http://u:p@h.example:81/a/b/%C3%BC"},
        {"%41", "http://u:p@h.example:81/a/b/%41"},
        {"@x", "http://u:p@h.example:81/a/b/@x"},
        {":80", "http://u:p@h.example:81/a/b/:80"},
        {"http", "http://u:p@h.example:81/a/b/http"},
        {"1http://x", "http://u:p@h.example:81/a/b/1http://x"},
        {"[::1]", "http://u:p@h.example:81/a/b/[::1]"},
    };
    static const char *const schemes[] = {"d:e/f", "x:", "mailto:d"};
    const struct wr_url *base = base_of("http://u:p@h.example:81/a/b/c?q#f");
    (void)state;
    check_all(cases, base);
    check_all_refused(schemes, base, WR_URL_SCHEME);
}

/* base, reference, URL */
static void odd_bases_resolve_as_the_standard_says(void **state)
{
    static const char *const cases[][3] = {
        {"http://h", "a", "http://h/a"},
        {"http://h", "", "http://h/"},
        {"http://h", "?a", "http://h/?a"},
        {"http://h", "..", "http://h/"},
        {"http://h/", ".", "http://h/"},
        {"http://h/a/", "b", "http://h/a/b"},
        {"http://h/a/", "..", "http://h/"},
        {"http://h/a//", "b", "http://h/a//b"},
        {"http://h/a//", "..", "http://h/a/"},
        {"http://h//a", "b", "http://h//b"},
        {"http://h//a", "..", "http://h/"},
        {"http://h/a?b/c", "d", "http://h/d"},
        {"http://h/a?b/c", "#d", "http://h/a?b/c#d"},
        {"http://h/a#b/c", "d", "http://h/d"},
        {"http://h/a#b", "", "http://h/a"},
        {"http://h/a?#", "", "http://h/a?"},
        {"https://h/a", "//x", "https://x/"},
        {"https://h/a", "https:b", "https://h/b"},
        {"https://h/a", "http:b", "http://b/"},
        {"https://[::1]:8443/a", "b", "https://[::1]:8443/b"},
        {"https://127.1/a", "b", "https://127.0.0.1/b"},
        {"http://h:80/a", "https:///x", "https://x/"},
        {"http://h/a/b/c/d", "../../e/../f", "http://h/a/f"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct url_case one = {cases[i][1], cases[i][2]};
        check_one(&one, base_of(cases[i][0]));
    }
}

/* C12 */
static void location_headers_resolve_as_specified_or_fail(void **state)
{
    static const struct url_case cases[] = {
        {"/next", "https://h.example/next"},
        {"next", "https://h.example/a/next"},
        {"", "https://h.example/a/b"},
        {"//evil.example", "https://evil.example/"},
        {"\\evil.example", "https://h.example/evil.example"},
        {"\\\\evil.example", "https://evil.example/"},
        {"/\\evil.example", "https://evil.example/"},
        {"/caf\xc3\xa9", "https://h.example/caf%C3%A9"},
        {"/caf\xe9", "https://h.example/caf%E9"},
        {"/a b\r\nSet-Cookie: x", "https://h.example/a%20bSet-Cookie:%20x"},
        {"https:/next", "https://h.example/next"},
    };
    static char long_one[65536];
    const struct wr_url *base = base_of("https://h.example/a/b");
    struct wr_url url;
    (void)state;
    check_all(cases, base);
    memset(long_one, 'a', sizeof long_one);
    assert_int_equal(parse_bytes(long_one, sizeof long_one, base, &url), WR_URL_LONG);
}

static void an_absolute_url_is_the_same_against_any_base(void **state)
{
    static const char *const bases[] = {"http://b/", "https://b:8080/x/y?z#w", "http://[::1]"};
    static const char *const inputs[] = {"http://h/a/../b", "https://u:p@h/?q#f", "http://127.1", "https://h/%2e/x y"};
    (void)state;
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 4; j++) {
            struct wr_url alone, resolved;
            assert_int_equal(parse(inputs[j], NULL, &alone), WR_URL_OK);
            assert_int_equal(parse(inputs[j], base_of(bases[i]), &resolved), WR_URL_OK);
            assert_string_equal(resolved.text, alone.text);
        }
}

WEIR_TESTS(test(references_are_resolved_against_their_base), test(references_may_name_a_host_or_repeat_the_scheme),
           test(odd_bases_resolve_as_the_standard_says), test(location_headers_resolve_as_specified_or_fail),
           test(an_absolute_url_is_the_same_against_any_base))
