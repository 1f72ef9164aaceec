/* SPDX-License-Identifier: MIT */
/* test_url.c - tests absolute URLs: the result of each spelling, and invalid ones. */
#include "url_rig.h"

static void url_scheme_and_slashes_have_one_spelling(void **state)
{
    static const struct url_case cases[] = {
        {"http://example.org/", "http://example.org/"},
        {"https://example.org/", "https://example.org/"},
        {"http://example.org", "http://example.org/"},
        {"HTTP://example.org/", "http://example.org/"},
        {"hTTpS://example.org/", "https://example.org/"},
        {"http:example.org", "http://example.org/"},
        {"http:/example.org/a", "http://example.org/a"},
        {"http:///example.org/a", "http://example.org/a"},
        {"http://///////example.org/a", "http://example.org/a"},
        {"http:\\\\example.org\\a", "http://example.org/a"},
        {"http:/\\example.org/a", "http://example.org/a"},
        {"http:\\/example.org/a", "http://example.org/a"},
        {"http://\\example.org/a", "http://example.org/a"},
        {"https:example.org:8080", "https://example.org:8080/"},
    };
    (void)state;
    check_all(cases, NULL);
}

static void blanks_around_and_line_breaks_within_a_url_are_dropped(void **state)
{
    static const struct url_case cases[] = {
        {" http://example.org/", "http://example.org/"},
        {"http://example.org/ ", "http://example.org/"},
        {"\t\r\n http://example.org/a \n\t", "http://example.org/a"},
        {"\x01\x1fhttp://example.org/a\x1f\x02", "http://example.org/a"},
        {"ht\ntp://example.org/a", "http://example.org/a"},
        {"http\t:\n/\r/example.org/a", "http://example.org/a"},
        {"http://exa\tmple\n.org/a", "http://example.org/a"},
        {"http://example.org:8\t0\n80/a", "http://example.org:8080/a"},
        {"http://u\ts:p\nw@example.org/", "http://us:pw@example.org/"},
        {"http://example.org/a\tb\nc\rd", "http://example.org/abcd"},
        {"http://example.org/.\t./a", "http://example.org/a"},
        {"http://example.org/a/%\t2\ne%2e/b", "http://example.org/b"},
        {"http://example.org/?a\tb\n", "http://example.org/?ab"},
        {"http://example.org/#a\tb\n", "http://example.org/#ab"},
        {"http://example.org/a b", "http://example.org/a%20b"}, /* an inner blank is encoded */
        {"http://example.org/\x01", "http://example.org/"},
        {"http://example.org/\x01/", "http://example.org/%01/"},
        {"http://example.org/a\xc2\xa0", "http://example.org/a%C2%A0"}, /* not a C0 control */
        {"http://[::\t1]/", "http://[::1]/"},
        {"http://1\n27.1/", "http://127.0.0.1/"},
    };
    (void)state;
    check_all(cases, NULL);
}

static void other_schemes_are_recognised_and_refused(void **state)
{
    static const char *const inputs[] = {
        "ftp://example.org/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "mailto:a@example.org",
        "data:text/html,x",
        "gopher://x/",
        "ws://example.org/",
        "wss://example.org/",
        "about:blank",
        "blob:http://x/y",
        "tel:+123",
        "urn:isbn:1",
        "JAVASCRIPT:x",
        "java\nscript:x",
        " javascript:x",
        "\x01javascript:x",
        "httpx://example.org",
        "htt://example.org",
        "http+unix://x/",
        "http-x:y",
        "view-source:http://",
        "localhost:8080",
        "example.org:80/a",
        "h:",
        "a+b-c.d:e",
        "httpss://example.org",
        "x-very-long-scheme-name-indeed://a/",
    };
    (void)state;
    check_all_refused(inputs, NULL, WR_URL_SCHEME);
    check_all_refused(inputs, base_of("http://example.org/"), WR_URL_SCHEME);
}

static void relative_input_without_a_base_is_refused(void **state)
{
    static const char *const inputs[] = {
        "",
        " ",
        "\t\n",
        "example.org",
        "/a",
        "//example.org/",
        "?a",
        "#a",
        ".",
        "..",
        "a/b",
        "://example.org",
        "1http://x",
        "-http://x",
        "http//example.org",
        "http ://example.org",
        "ht tp://x",
        "\xc3\xbc:x",
        "%68ttp://example.org",
        "@",
        ":",
        "http",
        "https",
        "[::1]",
        "\\\\example.org",
    };
    (void)state;
    check_all_refused(inputs, NULL, WR_URL_RELATIVE);
}

static void user_and_password_are_encoded_and_the_last_at_sign_counts(void **state)
{
    static const struct url_case cases[] = {
        {"http://u@example.org/", "http://u@example.org/"},
        {"http://u:p@example.org/", "http://u:p@example.org/"},
        {"http://u:@example.org/", "http://u@example.org/"},
        {"http://:p@example.org/", "http://:p@example.org/"},
        {"http://:@example.org/", "http://example.org/"},
        {"http://@example.org/", "http://example.org/"},
        {"http://a:b:c@example.org/", "http://a:b%3Ac@example.org/"},
        {"http://a@b@example.org/", "http://a%40b@example.org/"},
        {"http://a@b:c@d@example.org/", "http://a%40b:c%40d@example.org/"},
        {"http://@@example.org/", "http://%40@example.org/"},
        {"http://%40:%3a@example.org/", "http://%40:%3a@example.org/"},
        {"http://a b:c d@example.org/", "http://a%20b:c%20d@example.org/"},
        {"http://;=[]^|`{}\"<>@example.org/", "http://%3B%3D%5B%5D%5E%7C%60%7B%7D%22%3C%3E@example.org/"},
        {"http://$&'()*+,-._~!@example.org/", "http://$&'()*+,-._~!@example.org/"},
        {"http://\xc3\xbc@example.org/", "http://%C3%BC@example.org/"},
        {"http://\xff@example.org/", "http://%FF@example.org/"},
        {"http:u@example.org", "http://u@example.org/"},
        {"http:/@example.org", "http://example.org/"},
        {"http:///u:p@example.org:8080/", "http://u:p@example.org:8080/"},
        {"http://example.org/a@b", "http://example.org/a@b"},
        {"http://example.org?a@b", "http://example.org/?a@b"},
        {"http://example.org#a@b", "http://example.org/#a@b"},
        {"http://good.example:80@evil.example/", "http://good.example:80@evil.example/"},
        {"http://good.example\\@evil.example/", "http://good.example/@evil.example/"},
        {"http://good.example#@evil.example/", "http://good.example/#@evil.example/"},
    };
    (void)state;
    check_all(cases, NULL);
}

static void ports_are_numbers_and_the_usual_one_is_dropped(void **state)
{
    static const struct url_case cases[] = {
        {"http://example.org:80/", "http://example.org/"},
        {"https://example.org:443/", "https://example.org/"},
        {"http://example.org:443/", "http://example.org:443/"},
        {"https://example.org:80/", "https://example.org:80/"},
        {"http://example.org:/", "http://example.org/"},
        {"http://example.org:", "http://example.org/"},
        {"http://example.org:8080", "http://example.org:8080/"},
        {"http://example.org:00080/", "http://example.org/"},
        {"http://example.org:0000000000000000000000000008080/", "http://example.org:8080/"},
        {"http://example.org:1/", "http://example.org:1/"},
        {"http://example.org:65535/", "http://example.org:65535/"},
        {"http://example.org:81?a", "http://example.org:81/?a"},
        {"http://example.org:81#a", "http://example.org:81/#a"},
        {"http://example.org:81\\a", "http://example.org:81/a"},
        {"http://[::1]:80", "http://[::1]/"},
        {"http://[::1]:8080", "http://[::1]:8080/"},
        {"http://1.2.3.4:8080", "http://1.2.3.4:8080/"},
    };
    static const char *const bad[] = {
        "http://example.org:65536/",
        "http://example.org:0/",
        "https://example.org:000/",
        "http://example.org:-1/",
        "http://example.org:8a/",
        "http://example.org:a/",
        "http://example.org:+80/",
        "http://example.org:8 0/",
        "http://example.org: 80/",
        "http://a:b:c/",
        "http://example.org:80:80/",
        "http://example.org:0x50/",
        "http://example.org:8.0/",
        "http://example.org:99999999999999999999999/",
        "http://[::1]:x/",
        "http://[::1]:65536/",
        "http://example.org:4294967376/", /* 2^32 + 80 */
    };
    (void)state;
    check_all(cases, NULL);
    check_all_refused(bad, NULL, WR_URL_PORT);
}

static void dot_segments_are_resolved_in_every_spelling(void **state)
{
    static const struct url_case cases[] = {
        {"http://h/.", "http://h/"},
        {"http://h/..", "http://h/"},
        {"http://h/./", "http://h/"},
        {"http://h/../", "http://h/"},
        {"http://h/../../../a", "http://h/a"},
        {"http://h/a/.", "http://h/a/"},
        {"http://h/a/..", "http://h/"},
        {"http://h/a/./b", "http://h/a/b"},
        {"http://h/a/../b", "http://h/b"},
        {"http://h/a/b/../../c", "http://h/c"},
        {"http://h/a/b/..", "http://h/a/"},
        {"http://h/a/b/.", "http://h/a/b/"},
        {"http://h/a/../../b", "http://h/b"},
        {"http://h/a//../b", "http://h/a/b"},
        {"http://h/a//b", "http://h/a//b"},
        {"http://h//", "http://h//"},
        {"http://h///a", "http://h///a"},
        {"http://h//..//a", "http://h//a"},
        {"http://h/a\\..\\b", "http://h/b"},
        {"http://h/%2e", "http://h/"},
        {"http://h/%2E%2e/a", "http://h/a"},
        {"http://h/a/.%2e", "http://h/"},
        {"http://h/a/%2E.", "http://h/"},
        {"http://h/a/%2e%2E/b", "http://h/b"},
        {"http://h/a/%2e/b", "http://h/a/b"},
        {"http://h/...", "http://h/..."},
        {"http://h/a/.../b", "http://h/a/.../b"},
        {"http://h/..a/.b/c./d..", "http://h/..a/.b/c./d.."},
        {"http://h/%2e%2e%2e", "http://h/%2e%2e%2e"},
        {"http://h/%2e%2f%2e%2e", "http://h/%2e%2f%2e%2e"}, /* an encoded slash separates nothing */
        {"http://h/..%2fa", "http://h/..%2fa"},
        {"http://h/%252e%252e/a", "http://h/%252e%252e/a"},
        {"http://h/a/..;/b", "http://h/a/..;/b"},
        {"http://h/a?/../b", "http://h/a?/../b"},
        {"http://h/a#/../b", "http://h/a#/../b"},
        {"http://h/a/..?b", "http://h/?b"},
        {"http://h/a/.#b", "http://h/a/#b"},
        {"http://h?a", "http://h/?a"},
        {"http://h#a", "http://h/#a"},
        {"http://h/C|/a", "http://h/C|/a"}, /* drive letters are not special */
        {"http://h/C:/../a", "http://h/a"},
    };
    (void)state;
    check_all(cases, NULL);
}

static void each_url_part_encodes_only_the_required_characters(void **state)
{
    static const struct url_case cases[] = {
        {"http://h/ \"<>^`{}\x7f", "http://h/%20%22%3C%3E%5E%60%7B%7D%7F"},
        {"http://h/!$&'()*+,-.:;=@[]_|~", "http://h/!$&'()*+,-.:;=@[]_|~"},
        {"http://h/%", "http://h/%"},
        {"http://h/%z1%4%", "http://h/%z1%4%"},
        {"http://h/%7e%41%2f", "http://h/%7e%41%2f"}, /* only the canonical form decodes */
        {"http://h/\xc3\xbc", "http://h/%C3%BC"},
        {"http://h/\xf0\x9f\x98\x80", "http://h/%F0%9F%98%80"},
        {"http://h/\xe9", "http://h/%E9"},
        {"http://h/a\xff\xfe", "http://h/a%FF%FE"},
        {"http://h/?\"<>'", "http://h/?%22%3C%3E%27"},
        {"http://h/?^`{}|\\[]", "http://h/?^`{}|\\[]"},
        {"http://h/? a\x7f\x01z", "http://h/?%20a%7F%01z"},
        {"http://h/?a?b", "http://h/?a?b"},
        {"http://h/?", "http://h/?"},
        {"http://h/?#", "http://h/?#"},
        {"http://h/#", "http://h/#"},
        {"http://h/?\xc3\xbc", "http://h/?%C3%BC"},
        {"http://h/?%zz&%E4", "http://h/?%zz&%E4"},
        {"http://h/#\"<>` a", "http://h/#%22%3C%3E%60%20a"},
        {"http://h/#^{}|\\'#?[]", "http://h/#^{}|\\'#?[]"},
        {"http://h/#\xc3\xbc", "http://h/#%C3%BC"},
        {"http://h/a;b=c,d", "http://h/a;b=c,d"},
        {"http://h/a:b@c", "http://h/a:b@c"},
        {"http://h/a=b&c?d=e&f", "http://h/a=b&c?d=e&f"},
    };
    (void)state;
    check_all(cases, NULL);
}

static void nul_bytes_are_trimmed_or_encoded_like_other_controls(void **state)
{
    struct wr_url url;
    (void)state;
    assert_int_equal(parse_bytes("\0http://h/a\0b?\0c#\0d\0", 21, NULL, &url), WR_URL_OK);
    assert_string_equal(url.text, "http://h/a%00b?%00c#%00d");
    assert_int_equal(parse_bytes("http://a\0b/", 11, NULL, &url), WR_URL_HOST);
    assert_int_equal(parse_bytes("http://u\0:p\0@h/", 15, NULL, &url), WR_URL_OK);
    assert_string_equal(url.text, "http://u%00:p%00@h/");
    assert_int_equal(parse_bytes("h\0ttp://h/", 10, NULL, &url), WR_URL_RELATIVE);
    assert_int_equal(parse_bytes("http://h:8\0/", 12, NULL, &url), WR_URL_PORT);
}

static void missing_hosts_are_refused(void **state)
{
    static const char *const inputs[] = {
        "http:",      "http://",          "http:///",       "https:\\\\",    "http://?a",       "http://#a",
        "http://:80", "http://:80/",      "http://u@",      "http://u@/",    "http://u:p@:80/", "http://@",
        "http://@/a", "http://:@/",       "http://\t/",     "http:////\\//", "http://u@?x",     "http:?",
        "http:#a",    "http://\xc2\xad/", "http://%c2%ad/", "http://:",      "http:@/a",        "http:/:80",
    };
    (void)state;
    check_all_refused(inputs, NULL, WR_URL_NO_HOST);
}

static void url_fault_texts_say_what_is_wrong(void **state)
{
    (void)state;
    assert_string_equal(wr_url_fault_text(WR_URL_OK), "nothing is wrong");
    assert_string_equal(wr_url_fault_text(WR_URL_SCHEME), "its scheme is not http or https");
    assert_string_equal(wr_url_fault_text(WR_URL_MEMORY), "out of memory");
}

WEIR_TESTS(test(url_scheme_and_slashes_have_one_spelling), test(blanks_around_and_line_breaks_within_a_url_are_dropped),
           test(other_schemes_are_recognised_and_refused), test(relative_input_without_a_base_is_refused),
           test(user_and_password_are_encoded_and_the_last_at_sign_counts),
           test(ports_are_numbers_and_the_usual_one_is_dropped), test(dot_segments_are_resolved_in_every_spelling),
           test(each_url_part_encodes_only_the_required_characters),
           test(nul_bytes_are_trimmed_or_encoded_like_other_controls), test(missing_hosts_are_refused),
           test(url_fault_texts_say_what_is_wrong))
