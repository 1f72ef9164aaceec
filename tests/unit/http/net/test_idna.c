/* SPDX-License-Identifier: MIT */
/* test_idna.c - tests of internationalized host names as libidn2 maps them (D4). */
#include "lib/test.h"

#include "http/net/idna.h"

/* Returns the host of a URL with this name, or the text of the error. */
static const char *host_of(const char *host)
{
    static char text[WR_URL_ROOM];
    char input[2048], memory[WR_URL_ROOM];
    struct wr_url url;

    snprintf(input, sizeof input, "http://%s/", host);
    enum wr_url_fault fault = wr_url_parse(wr_span_of(input), NULL, wr_idna_libidn2(), memory, sizeof memory, &url);
    if (fault != WR_URL_OK)
        return wr_url_fault_text(fault);
    struct wr_span span = wr_url_host(&url);
    memcpy(text, span.data, span.bytes);
    text[span.bytes] = '\0';
    return text;
}

static void internationalized_names_become_ascii_labels(void **state)
{
    static const char *const cases[][2] = {
        {"b\303\274cher.example", "xn--bcher-kva.example"},
        {"B\303\234CHER.Example", "xn--bcher-kva.example"},
        {"b%C3%BCcher.example", "xn--bcher-kva.example"},
        {"bu\314\210cher.example", "xn--bcher-kva.example"}, /* a combining diaeresis */
        {"xn--bcher-kva.example", "xn--bcher-kva.example"},
        {"XN--BCHER-KVA.example", "xn--bcher-kva.example"},
        {"fa\303\237.example", "xn--fa-hia.example"},               /* sharp s, non-transitional */
        {"\346\227\245\346\234\254.example", "xn--wgv71a.example"}, /* Japan */
        {"a\343\200\202example", "a.example"},                      /* ideographic full stop */
        {"\357\274\245xample.org", "example.org"},                  /* full-width E */
        {"a\302\255b.example", "ab.example"},                       /* soft hyphen */
        {"\303\274_x.example", "xn--_x-wka.example"},
        {"\303\274.example.", "xn--tda.example."},
        {"xn--n3h.example", "xn--n3h.example"}, /* a snowman, as registered */
        {"XN--N3H.Example", "xn--n3h.example"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(host_of(cases[i][0]), cases[i][1]);
}

/* The URL standard maps it to the small letter; some versions of libidn2 map it to "ss". */
static void capital_sharp_s_is_mapped_to_the_small_one(void **state)
{
    (void)state;
    assert_string_equal(host_of("STRA\341\272\236E.example"), "xn--strae-oqa.example");
    assert_string_equal(host_of("\341\272\236.\341\272\236"), "xn--zca.xn--zca");
    assert_string_equal(host_of("stra%E1%BA%9Ee.example"), "xn--strae-oqa.example");
}

static void names_that_map_to_addresses_are_addresses(void **state)
{
    (void)state;
    assert_string_equal(host_of("\357\274\221\357\274\222\357\274\227.1"), "127.0.0.1");
    assert_string_equal(host_of("\357\274\220\357\274\270\357\274\227f.1"), "127.0.0.1");
    assert_string_equal(host_of("127\343\200\202"
                                "0\343\200\202"
                                "0\343\200\202"
                                "1"),
                        "127.0.0.1");
}

static void invalid_internationalized_names_are_refused(void **state)
{
    static const struct {
        const char *host;
        enum wr_url_fault fault;
    } cases[] = {
        {"xn--", WR_URL_IDNA},
        {"xn--a", WR_URL_IDNA},
        {"a.b.c.XN--pokxncvks", WR_URL_IDNA},
        {"\377", WR_URL_IDNA},
        {"\355\240\200.example", WR_URL_IDNA},                 /* a surrogate */
        {"\357\267\220.example", WR_URL_IDNA},                 /* U+FDD0 */
        {"a\342\200\215b", WR_URL_IDNA},                       /* a joiner in a wrong place */
        {"\342\230\203.example", WR_URL_IDNA},                 /* U+2603, a snowman */
        {"\302\255", WR_URL_NO_HOST},                          /* mapped to nothing */
        {"\357\274\205\357\274\224\357\274\221", WR_URL_HOST}, /* mapped to "%41" */
        {"a\343\200\200b", WR_URL_HOST},                       /* mapped to a space */
        {"\343\200\202", WR_URL_NAME},                         /* mapped to a dot */
        {"\303\274..example", WR_URL_NAME},
        {"\303\274\"b.example", WR_URL_HOST},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(host_of(cases[i].host), wr_url_fault_text(cases[i].fault));
}

static void names_of_any_length_are_read_within_bounds(void **state)
{
    char host[1500];
    (void)state;
    for (size_t bytes = 2; bytes + 2 < sizeof host; bytes += 2) {
        for (size_t i = 0; i < bytes; i += 2)
            memcpy(host + i, "\303\274", 3);
        const char *result = host_of(host);
        bool is_name = strncmp(result, "xn--", 4) == 0;
        assert_true(bytes <= 40 ? is_name : bytes >= 200 ? !is_name : true);
    }
}

WEIR_TESTS(test(internationalized_names_become_ascii_labels), test(capital_sharp_s_is_mapped_to_the_small_one),
           test(names_that_map_to_addresses_are_addresses), test(invalid_internationalized_names_are_refused),
           test(names_of_any_length_are_read_within_bounds))
