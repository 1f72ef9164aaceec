/* SPDX-License-Identifier: MIT */
/* test_address.c - tests that all spellings of an IP address give one key, and that invalid
 * addresses are refused (J2, J5). */
#include "lib/test.h"

#include "base/rng.h"
#include "core/admit/network.h"

/* Returns the canonical text of a peer's address, or "-" if it is invalid. */
static const char *canonical(const char *text, unsigned v4_prefix, unsigned v6_prefix)
{
    static char buffer[64];
    struct wr_buf buf;
    struct wr_address address;

    if (!wr_address_parse_peer(wr_span_of(text), &address))
        return "-";
    wr_buf_init_fixed(&buf, buffer, sizeof buffer);
    wr_network_append(&buf, &address, v4_prefix, v6_prefix);
    assert_int_equal(buf.error, 0);
    return buffer;
}

static void every_spelling_of_an_address_reads_as_one(void **state)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"192.0.2.1", "192.0.2.1"},
        {"0.0.0.0", "0.0.0.0"},
        {"255.255.255.255", "255.255.255.255"},
        {" \t192.0.2.1\t ", "192.0.2.1"},
        {"192.0.2.1:80", "192.0.2.1"},
        {"192.0.2.1:65535", "192.0.2.1"},
        {"::ffff:192.0.2.1", "192.0.2.1"},
        {"::FFFF:192.0.2.1", "192.0.2.1"},
        {"::ffff:c000:201", "192.0.2.1"},
        {"0:0:0:0:0:ffff:192.0.2.1", "192.0.2.1"},
        {"0000:0000:0000:0000:0000:ffff:c000:0201", "192.0.2.1"},
        {"[::ffff:192.0.2.1]:8080", "192.0.2.1"},
        {"2001:db8::1", "2001:db8::1"},
        {"2001:DB8::1", "2001:db8::1"},
        {"2001:0db8:0000:0000:0000:0000:0000:0001", "2001:db8::1"},
        {"2001:db8:0:0:0:0:0:1", "2001:db8::1"},
        {"2001:db8::0:1", "2001:db8::1"},
        {"[2001:db8::1]", "2001:db8::1"},
        {"[2001:db8::1]:443", "2001:db8::1"},
        {"2001:db8::1%eth0", "2001:db8::1"},
        {"[fe80::1%25]:443", "fe80::1"},
        {"::", "::"},
        {"::1", "::1"},
        {"1::", "1::"},
        {"1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"},
        {"1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"}, /* RFC 5952 4.2.2: no "::" for one group */
        {"::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"},
        {"1:0:0:2:0:0:0:3", "1:0:0:2::3"},            /* "::" replaces the longest run */
        {"1:0:0:2:3:0:0:4", "1::2:3:0:0:4"},          /* the first of two equal runs */
        {"::1.2.3.4", "::102:304"},                   /* IPv4-compatible, not IPv4-mapped */
        {"64:ff9b::192.0.2.33", "64:ff9b::c000:221"}, /* NAT64 is not mapped either */
        {"1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"},
        {"0:0:0:0:0:0:0:0", "::"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(canonical(cases[i].text, 32, 128), cases[i].expected);
}

static void assert_none_reads(const char *const *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(canonical(cases[i], 32, 128), "-") != 0)
            fail_msg("\"%s\" was taken for %s", cases[i], canonical(cases[i], 32, 128));
    }
}

static void invalid_ipv4_addresses_are_refused(void **state)
{
    static const char *const cases[] = {
        "",
        " ",
        ".",
        ":",
        ":::",
        "unknown",
        "_hidden",
        "1.2.3",
        "1.2.3.",
        ".1.2.3",
        "1.2.3.4.",
        "1.2.3.4.5",
        "1..2.3",
        "256.1.1.1",
        "1.2.3.999",
        "1.2.3.4444444444444444444",
        "01.2.3.4", /* some parsers read octal */
        "1.2.3.00",
        "0x7f.0.0.1",
        "0x7f000001",
        "2130706433",
        "127.1",
        "1.2.3.-4",
        "+1.2.3.4",
        "1.2.3.4 5",
        "1 .2.3.4",
        "1.2.3.4:",
        "1.2.3.4:x",
        "1.2.3.4:65536",
        "1.2.3.4:080",
        "1.2.3.4:-1",
        "1.2.3.4:80:90",
        "1.2.3.4/24",
        "1.2.3.4%eth0",
    };

    (void)state;
    assert_none_reads(cases, sizeof cases / sizeof cases[0]);
}

static void invalid_ipv6_addresses_are_refused(void **state)
{
    static const char *const cases[] = {
        "[1.2.3.4]",
        "[1.2.3.4]:80",
        "[::1",
        "::1]",
        "[]",
        "[::1]x",
        "[::1]:",
        "[::1]:99999",
        "[[::1]]",
        "[ ::1]",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9",
        "1:2:3:4:5:6:7:8::",
        "::1:2:3:4:5:6:7:8",
        "1::2::3",
        "1:::2",
        ":1:2:3:4:5:6:7:8",
        "1:2:3:4:5:6:7:",
        ":1",
        "1:",
        "12345::",
        "00001::",
        "g::1",
        "::1.2.3",
        "::1.2.3.4.5",
        "::01.2.3.4",
        "1.2.3.4::",
        "::1.2.3.4:5",
        "1:2:3:4:5:6:7:1.2.3.4",
        "1:2:3:4:5:6:7::1.2.3.4",
        "fe80::1%",
        "fe80::1%et h0",
        "fe80::1%eth0%eth1",
        "\"192.0.2.1\"",
        "192.0.2.1\n",
        "192.0.2.1,",
    };

    (void)state;
    assert_none_reads(cases, sizeof cases / sizeof cases[0]);
}

static void nul_within_an_address_is_refused(void **state)
{
    static const char text[] = "192.0.2.1\0.evil";
    struct wr_address address;

    (void)state;
    assert_false(wr_address_parse_peer((struct wr_span){text, sizeof text - 1}, &address));
    assert_false(wr_address_parse_peer((struct wr_span){text, 10}, &address));
    assert_true(wr_address_parse_peer((struct wr_span){text, 9}, &address));
    assert_false(wr_address_parse_peer((struct wr_span){NULL, 0}, &address));
}

/* J2 */
static void rotating_within_a_prefix_does_not_change_the_key(void **state)
{
    static const struct {
        const char *text;
        unsigned v4_prefix, v6_prefix;
        const char *expected;
    } cases[] = {
        {"2001:db8:1:2:aaaa::1", 32, 64, "2001:db8:1:2::/64"},
        {"2001:db8:1:2:ffff:ffff:ffff:ffff", 32, 64, "2001:db8:1:2::/64"},
        {"2001:db8:1:3::1", 32, 64, "2001:db8:1:3::/64"},
        {"2001:db8:1:2ff::1", 32, 56, "2001:db8:1:200::/56"},
        {"2001:db8:ffff::1", 32, 33, "2001:db8:8000::/33"},
        {"ffff::1", 32, 1, "8000::/1"},
        {"2001:db8::1", 32, 127, "2001:db8::/127"},
        {"2001:db8::1", 24, 128, "2001:db8::1"},
        {"192.0.2.77", 24, 64, "192.0.2.0/24"},
        {"::ffff:192.0.2.77", 24, 64, "192.0.2.0/24"},
        {"192.0.2.77", 31, 64, "192.0.2.76/31"},
        {"192.0.2.77", 1, 64, "128.0.0.0/1"},
        {"192.0.2.77", 32, 64, "192.0.2.77"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(canonical(cases[i].text, cases[i].v4_prefix, cases[i].v6_prefix), cases[i].expected);
}

static void formatted_address_parses_as_the_same_address(void **state)
{
    struct wr_rng rng;

    (void)state;
    wr_rng_init(&rng, weir_test_seed());
    for (int round = 0; round < 100000; round++) {
        struct wr_address address, again;
        for (int i = 0; i < 16; i++) /* many zeros, so that there are runs of them */
            address.bytes[i] = (uint8_t)(wr_rng_below(&rng, 3) == 0 ? wr_rng_next(&rng) : 0);
        char buffer[64];
        struct wr_buf buf;
        wr_buf_init_fixed(&buf, buffer, sizeof buffer);
        wr_network_append(&buf, &address, 32, 128);
        assert_true(wr_address_parse(wr_buf_from(&buf, 0), &again));
        assert_memory_equal(&address, &again, sizeof address);
    }
}

static void parsing_random_bytes_as_an_address_never_overruns(void **state)
{
    static const char alphabet[] = "0123456789abcdefF:.[]%/ g\0";
    struct wr_rng rng;

    (void)state;
    wr_rng_init(&rng, weir_test_seed());
    for (int round = 0; round < 200000; round++) {
        size_t bytes = (size_t)wr_rng_below(&rng, 24);
        char *text = malloc(bytes + 1); /* exact size: the sanitizer sees overreads */
        assert_non_null(text);
        for (size_t i = 0; i < bytes; i++)
            text[i] = alphabet[wr_rng_below(&rng, sizeof alphabet - 1)];
        char *exact = realloc(text, bytes > 0 ? bytes : 1);
        struct wr_address address;
        (void)wr_address_parse_peer((struct wr_span){exact, bytes}, &address);
        free(exact);
    }
}

static void networks_are_read_strictly(void **state)
{
    static const struct {
        const char *text;
        int prefix; /* -1: refused */
    } cases[] = {
        {"10.0.0.0/8", 104},
        {"10.0.0.1", 128},
        {"0.0.0.0/0", 96},
        {"192.0.2.1/32", 128},
        {"2001:db8::/32", 32},
        {"2001:db8::1", 128},
        {"::/0", 0},
        {"::ffff:10.0.0.0/104", 104},
        {"10.0.0.1/8", -1},
        {"10.0.0.0/33", -1},
        {"10.0.0.0/", -1},
        {"10.0.0.0/-1", -1},
        {"10.0.0.0/8 ", -1},
        {"10.0.0.0/8/8", -1},
        {"10.0.0.0/255.0.0.0", -1},
        {"2001:db8::1/32", -1},
        {"2001:db8::/129", -1},
        {"[2001:db8::]/32", -1},
        {"10.0.0.0:80/8", -1},
        {"", -1},
        {"/8", -1},
        {"10.0.0.0/99999999999999999999", -1},
        {"example.org", -1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        weir_network network = {.prefix = 77};
        int error = weir_network_parse(cases[i].text, &network);
        if (cases[i].prefix < 0) {
            assert_int_equal(error, WEIR_E_INVAL);
            assert_int_equal(network.prefix, 77);
            assert_non_null(strstr(weir_error_detail(), "network"));
        } else {
            assert_int_equal(error, 0);
            assert_int_equal(network.prefix, cases[i].prefix);
        }
    }
    assert_int_equal(weir_network_parse(NULL, &(weir_network){0}), WEIR_E_INVAL);
    assert_int_equal(weir_network_parse("10.0.0.0/8", NULL), WEIR_E_INVAL);
}

static void a_network_holds_its_addresses_and_no_others(void **state)
{
    static const struct {
        const char *network, *address;
        bool holds;
    } cases[] = {
        {"10.0.0.0/8", "10.255.1.2", true},
        {"10.0.0.0/8", "11.0.0.0", false},
        {"10.0.0.0/8", "::ffff:10.1.1.1", true},
        {"10.0.0.0/8", "a00::", false},
        {"172.16.0.0/12", "172.31.255.255", true},
        {"172.16.0.0/12", "172.32.0.0", false},
        {"0.0.0.0/0", "8.8.8.8", true},
        {"0.0.0.0/0", "2001:db8::1", false},
        {"::/0", "8.8.8.8", true},
        {"::/0", "::", true},
        {"::1", "::1", true},
        {"::1", "::2", false},
        {"2001:db8::/33", "2001:db8:7fff::", true},
        {"2001:db8::/33", "2001:db8:8000::", false},
        {"fc00::/7", "fdff::1", true},
        {"fc00::/7", "fe00::1", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        weir_network network;
        struct wr_address address;
        assert_int_equal(weir_network_parse(cases[i].network, &network), 0);
        assert_true(wr_address_parse(wr_span_of(cases[i].address), &address));
        assert_int_equal(wr_network_holds(&network, &address), cases[i].holds);
    }
}

WEIR_TESTS(test(every_spelling_of_an_address_reads_as_one), test(invalid_ipv4_addresses_are_refused),
           test(invalid_ipv6_addresses_are_refused), test(nul_within_an_address_is_refused),
           test(rotating_within_a_prefix_does_not_change_the_key), test(formatted_address_parses_as_the_same_address),
           test(parsing_random_bytes_as_an_address_never_overruns), test(networks_are_read_strictly),
           test(a_network_holds_its_addresses_and_no_others))
