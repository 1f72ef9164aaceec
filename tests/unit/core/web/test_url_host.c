/* SPDX-License-Identifier: MIT */
/* test_url_host.c - tests hosts: each has one spelling, and names that could harm a store or a log
 * are refused (D4, D7). */
#include "url_rig.h"

static void hosts_are_decoded_and_in_lower_case(void **state)
{
    static const struct url_case cases[] = {
        {"http://EXAMPLE.Org/", "http://example.org/"},
        {"http://ex%41mple.org/", "http://example.org/"},
        {"http://%65%78%61%6d%70%6C%65%2e%6f%72%67/", "http://example.org/"},
        {"http://example.org./", "http://example.org./"},
        {"http://example%2eorg%2E/", "http://example.org./"},
        {"http://a_b.example/", "http://a_b.example/"},
        {"http://-a-.example/", "http://-a-.example/"},
        {"http://r4---sn-x.example/", "http://r4---sn-x.example/"},
        {"http://a--b.example/", "http://a--b.example/"},
        {"http://x/", "http://x/"},
        {"http://localhost/", "http://localhost/"},
        {"http://1a/", "http://1a/"},
        {"http://1.a/", "http://1.a/"},
        {"http://256.256.a/", "http://256.256.a/"},
        {"http://a.0xg/", "http://a.0xg/"},
        {"http://0xg/", "http://0xg/"},
        {"http://1e3/", "http://1e3/"},
        {"http://0b1/", "http://0b1/"},
        {"http://%31a/", "http://1a/"},
    };
    (void)state;
    check_all(cases, NULL);
}

static void internationalized_hosts_go_through_the_given_function(void **state)
{
    static const struct url_case cases[] = {
        {"http://b\303\274cher.example/", "http://xn--bcher-kva.example/"},
        {"http://b%c3%bccher.example/", "http://xn--bcher-kva.example/"},
        {"http://B\303\234CHER.example/", "http://xn--bcher-kva.example/"},
        {"http://XN--BCHER-KVA.example/", "http://xn--bcher-kva.example/"},
        {"http://\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.1/", "http://127.0.0.1/"},
        {"http://\xef\xbc\x90\xef\xbc\xb8\xef\xbc\x97\xef\xbc\xa6\xef\xbc\x8e\xef\xbc\x91/", "http://127.0.0.1/"},
        {"http://a\343\200\202example/", "http://a.example/"},
    };
    static const char *const unknown[] = {"http://\xc3\xbc.example/", "http://xn--a/",    "http://\xff/", "http://%ff/",
                                          "http://a\x80.b/",          "http://b.xn--a.c/"};
    static const char *const unfit[] = {"http://\xef\xbc\x85\xef\xbc\x94\xef\xbc\x91.example/",
                                        "http://a\343\200\200b.example/"};
    static const char *const no_name[] = {"http://\xe3\x80\x82/"};
    (void)state;
    check_all(cases, NULL);
    check_all_refused(unknown, NULL, WR_URL_IDNA);
    check_all_refused(unfit, NULL, WR_URL_HOST);
    check_all_refused(no_name, NULL, WR_URL_NAME);
}

static enum wr_url_fault parse_without_idna(const char *input, char *memory, struct wr_url *ret_url)
{
    return wr_url_parse(wr_span_of(input), NULL, NULL, memory, WR_URL_ROOM, ret_url);
}

static void hosts_are_ascii_without_an_idna_function(void **state)
{
    char memory[WR_URL_ROOM];
    struct wr_url url;
    (void)state;
    assert_int_equal(parse_without_idna("http://\xc3\xbc.example/", memory, &url), WR_URL_IDNA);
    assert_int_equal(parse_without_idna("http://XN--anything.example/", memory, &url), WR_URL_OK);
    assert_string_equal(url.text, "http://xn--anything.example/");
    assert_int_equal(parse_without_idna("http://xn--a\"b/", memory, &url), WR_URL_HOST);
}

static int out_of_memory(void *context, struct wr_span domain, struct wr_buf *buf)
{
    (void)context;
    (void)domain;
    (void)buf;
    return WEIR_E_NOMEM;
}

static void host_name_without_memory_is_a_memory_fault(void **state)
{
    static const struct wr_idna poor = {.to_ascii = out_of_memory};
    char memory[WR_URL_ROOM];
    struct wr_url url;
    (void)state;
    assert_int_equal(wr_url_parse(wr_span_of("http://\xc3\xbc/"), NULL, &poor, memory, sizeof memory, &url),
                     WR_URL_MEMORY);
    assert_int_equal(wr_url_parse(wr_span_of("http://u/"), NULL, &poor, memory, sizeof memory, &url), WR_URL_OK);
}

/* D4 */
static void every_spelling_of_an_ipv4_address_is_written_with_four_numbers(void **state)
{
    static const struct url_case cases[] = {
        {"http://127.0.0.1/", "http://127.0.0.1/"},
        {"http://127.1/", "http://127.0.0.1/"},
        {"http://127.0.1/", "http://127.0.0.1/"},
        {"http://2130706433/", "http://127.0.0.1/"},
        {"http://0x7f000001/", "http://127.0.0.1/"},
        {"http://0X7F000001/", "http://127.0.0.1/"},
        {"http://0x7F.1/", "http://127.0.0.1/"},
        {"http://0x7f.0x0.0x0.0x1/", "http://127.0.0.1/"},
        {"http://017700000001/", "http://127.0.0.1/"},
        {"http://0177.0.0.01/", "http://127.0.0.1/"},
        {"http://0177.0.0.0x1/", "http://127.0.0.1/"},
        {"http://00000000000000000000000177.1/", "http://127.0.0.1/"},
        {"http://127.0.0.1./", "http://127.0.0.1/"},
        {"http://127.1./", "http://127.0.0.1/"},
        {"http://%31%32%37.1/", "http://127.0.0.1/"},
        {"http://%30x7f.1/", "http://127.0.0.1/"},
        {"http://0/", "http://0.0.0.0/"},
        {"http://0x/", "http://0.0.0.0/"},
        {"http://0x./", "http://0.0.0.0/"},
        {"http://1/", "http://0.0.0.1/"},
        {"http://0x0x/", "http://0x0x/"}, /* not a number: a name */
        {"http://1.0x/", "http://1.0.0.0/"},
        {"http://1.2.3/", "http://1.2.0.3/"},
        {"http://1.2.65535/", "http://1.2.255.255/"},
        {"http://1.16777215/", "http://1.255.255.255/"},
        {"http://4294967295/", "http://255.255.255.255/"},
        {"http://0xffffffff/", "http://255.255.255.255/"},
        {"http://037777777777/", "http://255.255.255.255/"},
        {"http://010.010.010.010/", "http://8.8.8.8/"},
        {"http://169.254.169.254/", "http://169.254.169.254/"},
        {"http://0xa9fea9fe/", "http://169.254.169.254/"},
    };
    (void)state;
    check_all(cases, NULL);
}

/* D4 */
static void hosts_that_end_in_a_number_are_addresses_or_refused(void **state)
{
    static const char *const bad[] = {
        "http://256.0.0.1/",
        "http://256.256.256.256/",
        "http://1.256.0.1/",
        "http://1.2.3.256/",
        "http://1.2.65536/",
        "http://1.16777216/",
        "http://4294967296/",
        "http://0x100000000/",
        "http://1.2.3.4.5/",
        "http://09/",
        "http://1.2.3.08/",
        "http://a.1/",
        "http://a.0x1/",
        "http://a.08/",
        "http://a.b.0x/",
        "http://1.2.3.4.0x/",
        "http://0xg.1/",
        "http://1.0xg.1/",
        "http://example.1/",
        "http://1.a.2/",
        "http://a.1./",
        "http://99999999999999999999999999/",
        "http://0xfffffffffffffffffffffffffffffff/",
        "http://1.2.3.-1.4/",
        "http://1.2.3.4%2e5/",
    };
    (void)state;
    check_all_refused(bad, NULL, WR_URL_V4);
}

/* D4 */
static void every_spelling_of_an_ipv6_address_is_written_in_one_way(void **state)
{
    static const struct url_case cases[] = {
        {"http://[::1]/", "http://[::1]/"},
        {"http://[::]/", "http://[::]/"},
        {"http://[0:0:0:0:0:0:0:1]/", "http://[::1]/"},
        {"http://[2001:DB8::A]/", "http://[2001:db8::a]/"},
        {"http://[2001:0db8:0000:0000:0000:0000:0000:0001]/", "http://[2001:db8::1]/"},
        {"http://[1:2:3:4:5:6:7:8]/", "http://[1:2:3:4:5:6:7:8]/"},
        {"http://[1:2:3:4:5:6:7::]/", "http://[1:2:3:4:5:6:7:0]/"},
        {"http://[::2:3:4:5:6:7:8]/", "http://[0:2:3:4:5:6:7:8]/"},
        {"http://[1:0:0:2:0:0:0:3]/", "http://[1:0:0:2::3]/"},
        {"http://[1:0:0:2:3:0:0:4]/", "http://[1::2:3:0:0:4]/"},
        {"http://[::ffff:10.0.0.1]/", "http://[::ffff:a00:1]/"},
        {"http://[::ffff:7f00:1]/", "http://[::ffff:7f00:1]/"},
        {"http://[::127.0.0.1]/", "http://[::7f00:1]/"},
        {"http://[64:ff9b::192.0.2.33]/", "http://[64:ff9b::c000:221]/"},
        {"http://[1:2:3:4:5:6:1.2.3.4]/", "http://[1:2:3:4:5:6:102:304]/"},
        {"http://u:p@[::1]:8080/a", "http://u:p@[::1]:8080/a"},
        {"http://[1::]?a", "http://[1::]/?a"},
    };
    static const char *const bad[] = {
        "http://[::1",
        "http://[::1/",
        "http://[]/",
        "http://[/",
        "http://[::1]x/",
        "http://[::1%25eth0]/",
        "http://[::1%eth0]/",
        "http://[1:2]/",
        "http://[1::2::3]/",
        "http://[:1]/",
        "http://[::12345]/",
        "http://[g::1]/",
        "http://[1.2.3.4]/",
        "http://[::1.2.3]/",
        "http://[::01.2.3.4]/",
        "http://[::1.2.3.256]/",
        "http://[::1.2.3.4:5]/",
        "http://[1:2:3:4:5:6:7:8:9]/",
        "http://[1:2:3:4:5:6:7:1.2.3.4]/",
        "http://[[::1]]/",
        "http://[ ::1]/",
        "http://[%3a%3a1]/",
        "http://[v1.a]/",
        "http://[example.org]/",
    };
    static const char *const no_brackets[] = {"http://a[::1]/", "http://%5b::1]/", "http://::1]/"};
    (void)state;
    check_all(cases, NULL);
    check_all_refused(bad, NULL, WR_URL_V6);
    for (size_t i = 0; i < sizeof no_brackets / sizeof no_brackets[0]; i++) {
        struct wr_url url;
        enum wr_url_fault fault = parse(no_brackets[i], NULL, &url);
        assert_true(fault == WR_URL_HOST || fault == WR_URL_PORT || fault == WR_URL_NO_HOST);
    }
}

/* D7 */
static void hosts_that_could_harm_a_store_a_file_or_a_log_are_refused(void **state)
{
    static const char *const odd[] = {
        "http://a\"b/",     "http://a'b/",   "http://a`b/",      "http://a<b/",       "http://a>b/",
        "http://a%3cb/",    "http://a b/",   "http://a%20b/",    "http://a%0ab/",     "http://a%0d%0ab/",
        "http://a%00b/",    "http://a%7fb/", "http://a\x7f/",    "http://a\x1b[b/",   "http://a%1b%5bm/",
        "http://a%2fb/",    "http://a%5cb/", "http://a%3fb/",    "http://a%23b/",     "http://a%40b/",
        "http://a%3ab/",    "http://a%25b/", "http://a%zzb/",    "http://a%/",        "http://a|b/",
        "http://a^b/",      "http://a{b}/",  "http://a*b/",      "http://*/",         "http://a+b/",
        "http://a,b/",      "http://a;b/",   "http://a&b/",      "http://a=b/",       "http://a!b/",
        "http://a$b/",      "http://a(b)/",  "http://a~b/",      "http://%2e%2e%2f/", "http://a%2F..%2Fb/",
        "http://';drop--/", "http://a[b]/",  "http://<script>/", "http://a\001b/",
    };
    static const char *const shapeless[] = {
        "http://../",   "http://./",   "http://.../",    "http://.a/",        "http://a../",
        "http://a..b/", "http://..a/", "http://%2e%2e/", "http://1.2.3.4../", "http://.1.2.3.4/",
    };
    (void)state;
    check_all_refused(odd, NULL, WR_URL_HOST);
    check_all_refused(shapeless, NULL, WR_URL_NAME);
}

static enum wr_url_fault parse_labels(size_t label_bytes, size_t labels, const char *end, size_t *ret_host_bytes)
{
    char input[4096] = "http://";
    struct wr_url url;

    for (size_t i = 0; i < labels; i++) {
        memset(input + strlen(input), 'a', label_bytes);
        if (i + 1 < labels)
            strcat(input, ".");
    }
    strcat(input, end);
    enum wr_url_fault fault = parse(input, NULL, &url);
    *ret_host_bytes = fault == WR_URL_OK ? wr_url_host(&url).bytes : 0;
    return fault;
}

/* D7 */
static void host_names_are_no_longer_than_dns_allows(void **state)
{
    size_t bytes;
    (void)state;
    assert_int_equal(parse_labels(63, 1, "/", &bytes), WR_URL_OK);
    assert_int_equal(bytes, 63);
    assert_int_equal(parse_labels(64, 1, "/", &bytes), WR_URL_NAME);
    assert_int_equal(parse_labels(49, 5, ".aaa/", &bytes), WR_URL_OK);
    assert_int_equal(bytes, WR_URL_HOST_MAX);
    assert_int_equal(parse_labels(49, 5, ".aaa./", &bytes), WR_URL_OK);
    assert_int_equal(parse_labels(49, 5, ".aaaa/", &bytes), WR_URL_NAME);
    assert_int_equal(parse_labels(50, 6, "/", &bytes), WR_URL_NAME);
    assert_int_equal(parse_labels(60, 50, "/", &bytes), WR_URL_NAME);
    assert_int_equal(parse_labels(60, 60, "/", &bytes), WR_URL_NAME);
}

WEIR_TESTS(test(hosts_are_decoded_and_in_lower_case), test(internationalized_hosts_go_through_the_given_function),
           test(hosts_are_ascii_without_an_idna_function), test(host_name_without_memory_is_a_memory_fault),
           test(every_spelling_of_an_ipv4_address_is_written_with_four_numbers),
           test(hosts_that_end_in_a_number_are_addresses_or_refused),
           test(every_spelling_of_an_ipv6_address_is_written_in_one_way),
           test(hosts_that_could_harm_a_store_a_file_or_a_log_are_refused),
           test(host_names_are_no_longer_than_dns_allows))
