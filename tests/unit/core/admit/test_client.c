/* SPDX-License-Identifier: MIT */
/* test_client.c - tests which address identifies the client: forged headers have no effect (J1,
 * S3-26). */
#include "lib/test.h"

#include <weir/admit.h>

#define HEADERS_MAX 6

struct example {
    const char *what;
    const char *peer;
    weir_header headers[HEADERS_MAX];
    const char *expected; /* NULL: no key */
};

/* Returns the key of the request, or NULL if it has none. */
static const char *key_of(const weir_key_rule *key, const struct example *example)
{
    static char buffer[WEIR_KEY_MAX + 1];
    weir_header_list list = {example->headers, HEADERS_MAX};
    weir_request request;
    size_t bytes = 0;

    weir_request_init(&request, "GET", "/", example->peer);
    request.header = weir_header_list_find;
    request.header_context = &list;
    if (weir_key_extract(key, &request, buffer, WEIR_KEY_MAX, &bytes, NULL) < 0)
        return NULL;
    buffer[bytes] = '\0';
    return buffer;
}

static void check(const weir_key_rule *key, const struct example *examples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *got = key_of(key, &examples[i]);
        const char *expected = examples[i].expected;
        if ((got == NULL) != (expected == NULL) || (got != NULL && strcmp(got, expected) != 0))
            fail_msg("%s: got %s, expected %s", examples[i].what, got, expected);
    }
}

/* J1 */
static void forged_headers_are_ignored_unless_the_peer_is_a_trusted_proxy(void **state)
{
    static const struct example examples[] = {
        {"no headers", "203.0.113.7", {{NULL, NULL}}, "203.0.113.7"},
        {"with port", "203.0.113.7:4711", {{NULL, NULL}}, "203.0.113.7"},
        {"forged", "203.0.113.7", {{"X-Forwarded-For", "198.51.100.1"}}, "203.0.113.7"},
        {"forged real ip", "203.0.113.7", {{"X-Real-IP", "198.51.100.1"}}, "203.0.113.7"},
        {"claims to be a proxy", "203.0.113.7", {{"X-Forwarded-For", "10.0.0.1"}}, "203.0.113.7"},
        {"IPv6", "[2001:db8:1:2::3]:99", {{"X-Forwarded-For", "198.51.100.1"}}, "2001:db8:1:2::/64"},
        {"Unix socket", "unix:", {{"X-Forwarded-For", "198.51.100.1"}}, "unknown"},
        {"unknown peer", NULL, {{"X-Forwarded-For", "198.51.100.1"}}, "unknown"},
        {"blank peer", " ", {{"X-Forwarded-For", "198.51.100.1"}}, "unknown"},
        {"odd peer", "localhost", {{"X-Forwarded-For", "198.51.100.1"}}, NULL},
    };
    weir_network proxies;
    weir_key_rule key;

    (void)state;
    weir_key_rule_init(&key, WEIR_KEY_IP);
    check(&key, examples, sizeof examples / sizeof examples[0]);
    assert_int_equal(weir_network_parse("10.0.0.0/8", &proxies), 0);
    key.trusted = &proxies;
    key.trusted_count = 1;
    check(&key, examples, sizeof examples / sizeof examples[0]);
}

/* J1 */
static void behind_trusted_proxies_the_right_most_untrusted_hop_is_the_caller(void **state)
{
    static const struct example examples[] = {
        {"one proxy", "10.0.0.1", {{"X-Forwarded-For", "203.0.113.7"}}, "203.0.113.7"},
        {"forged before", "10.0.0.1", {{"X-Forwarded-For", "198.51.100.1, 203.0.113.7"}}, "203.0.113.7"},
        {"forged proxy before", "10.0.0.1", {{"X-Forwarded-For", "10.9.9.9,203.0.113.7"}}, "203.0.113.7"},
        {"two proxies", "10.0.0.1", {{"X-Forwarded-For", "198.51.100.1, 203.0.113.7, 10.0.0.2"}}, "203.0.113.7"},
        {"mapped proxy", "::ffff:10.0.0.1", {{"X-Forwarded-For", "203.0.113.7, ::ffff:10.0.0.2"}}, "203.0.113.7"},
        {"IPv6 proxy", "fd00::1", {{"X-Forwarded-For", "2001:db8:1:2:3::4"}}, "2001:db8:1:2::/64"},
        {"name in any case", "10.0.0.1", {{"x-fORWARDED-fOR", "203.0.113.7"}}, "203.0.113.7"},
        {"several lines",
         "10.0.0.1",
         {{"X-Forwarded-For", "198.51.100.1"}, {"Accept", "*/*"}, {"X-Forwarded-For", "203.0.113.7, 10.0.0.2"}},
         "203.0.113.7"},
        {"the last line is the right-most",
         "10.0.0.1",
         {{"X-Forwarded-For", "203.0.113.7"}, {"X-Forwarded-For", "198.51.100.1"}},
         "198.51.100.1"},
        {"empty parts", "10.0.0.1", {{"X-Forwarded-For", " , 203.0.113.7 ,, "}}, "203.0.113.7"},
        {"port", "10.0.0.1", {{"X-Forwarded-For", "203.0.113.7:5555"}}, "203.0.113.7"},
        {"garbage, then the caller", "10.0.0.1", {{"X-Forwarded-For", "<script>, 203.0.113.7"}}, "203.0.113.7"},
        {"garbage last", "10.0.0.1", {{"X-Forwarded-For", "198.51.100.1, unknown"}}, "10.0.0.1"},
        {"garbage before a proxy", "10.0.0.1", {{"X-Forwarded-For", "198.51.100.1, _x, 10.0.0.2"}}, "10.0.0.2"},
        {"garbage before two proxies", "10.0.0.1", {{"X-Forwarded-For", "9.9.9.9, x, 10.0.0.3, 10.0.0.2"}}, "10.0.0.3"},
        {"only proxies", "10.0.0.1", {{"X-Forwarded-For", "10.0.0.3, 10.0.0.2"}}, "10.0.0.3"},
        {"nothing forwarded", "10.0.0.1", {{"Accept", "*/*"}}, "10.0.0.1"},
        {"empty header", "10.0.0.1", {{"X-Forwarded-For", ""}}, "10.0.0.1"},
        {"the other header is not believed", "10.0.0.1", {{"X-Real-IP", "198.51.100.1"}}, "10.0.0.1"},
    };
    weir_network proxies[2];
    weir_key_rule key;

    (void)state;
    assert_int_equal(weir_network_parse("10.0.0.0/8", &proxies[0]), 0);
    assert_int_equal(weir_network_parse("fd00::/8", &proxies[1]), 0);
    weir_key_rule_init(&key, WEIR_KEY_IP);
    key.trusted = proxies;
    key.trusted_count = 2;
    check(&key, examples, sizeof examples / sizeof examples[0]);
}

static void a_proxy_may_name_the_caller_in_another_header(void **state)
{
    static const struct example examples[] = {
        {"named", "10.0.0.1", {{"CF-Connecting-IP", "203.0.113.7"}, {"X-Forwarded-For", "1.1.1.1"}}, "203.0.113.7"},
        {"not named", "10.0.0.1", {{"X-Forwarded-For", "1.1.1.1"}}, "10.0.0.1"},
    };
    weir_network proxy;
    weir_key_rule key;

    (void)state;
    assert_int_equal(weir_network_parse("10.0.0.1", &proxy), 0);
    weir_key_rule_init(&key, WEIR_KEY_IP);
    key.header = "cf-connecting-ip";
    key.trusted = &proxy;
    key.trusted_count = 1;
    check(&key, examples, sizeof examples / sizeof examples[0]);
}

/* J5: clients with unreadable addresses must not share the key of clients without an address. */
static void an_unreadable_peer_is_malformed_not_missing(void **state)
{
    static const char *const peers[] = {"garbage", "999.1.1.1", "1.2.3", "01.2.3.4", "[::1", "::1]:80", "1.2.3.4:x"};
    char buffer[WEIR_KEY_MAX];
    weir_key_rule key;

    (void)state;
    weir_key_rule_init(&key, WEIR_KEY_IP);
    for (size_t i = 0; i < sizeof peers / sizeof peers[0]; i++) {
        weir_request request;
        weir_request_fault fault = WEIR_FAULT_NONE;
        size_t bytes = 4711;
        weir_request_init(&request, "GET", "/", peers[i]);
        key.share_malformed = false;
        assert_int_equal(weir_key_extract(&key, &request, buffer, sizeof buffer, &bytes, &fault), WEIR_E_ABSENT);
        assert_int_equal(fault, WEIR_FAULT_ADDRESS);
        assert_int_equal(bytes, 4711);
        key.share_malformed = true;
        assert_int_equal(weir_key_extract(&key, &request, buffer, sizeof buffer, &bytes, &fault), 0);
        assert_memory_equal(buffer, "unknown", bytes);
    }
}

static void unix_socket_peer_is_trusted_only_if_configured(void **state)
{
    static const struct example examples[] = {
        {"nginx", "unix:", {{"X-Forwarded-For", "198.51.100.1, 203.0.113.7"}}, "203.0.113.7"},
        {"a path", "unix:/run/x", {{"X-Forwarded-For", "203.0.113.7"}}, "203.0.113.7"},
        {"no peer", NULL, {{"X-Forwarded-For", "203.0.113.7"}}, "203.0.113.7"},
        {"garbage", "unix:", {{"X-Forwarded-For", "203.0.113.7, x"}}, "unknown"},
        {"nothing", "unix:", {{NULL, NULL}}, "unknown"},
        {"an address is not a Unix socket", "203.0.113.7", {{"X-Forwarded-For", "1.1.1.1"}}, "203.0.113.7"},
        {"garbage is not either", "unknown", {{"X-Forwarded-For", "1.1.1.1"}}, NULL},
    };
    weir_key_rule key;

    (void)state;
    weir_key_rule_init(&key, WEIR_KEY_IP);
    key.trust_unix = true;
    check(&key, examples, sizeof examples / sizeof examples[0]);
}

/* S3-26 */
static void first_hop_mode_takes_the_first_forwarded_address(void **state)
{
    static const struct example examples[] = {
        {"first of a list", "10.0.0.1", {{"X-Forwarded-For", "198.51.100.1, 203.0.113.7"}}, "198.51.100.1"},
        {"first line",
         "10.0.0.1",
         {{"X-Forwarded-For", "198.51.100.1"}, {"X-Forwarded-For", "203.0.113.7"}},
         "198.51.100.1"},
        {"before X-Real-IP", NULL, {{"X-Real-IP", "1.1.1.1"}, {"X-Forwarded-For", "198.51.100.1"}}, "198.51.100.1"},
        {"else X-Real-IP", NULL, {{"X-Real-IP", "1.1.1.1"}}, "1.1.1.1"},
        {"X-Real-IP if the other is empty", NULL, {{"X-Forwarded-For", " ,"}, {"X-Real-IP", "1.1.1.1"}}, "1.1.1.1"},
        {"else the fallback", "10.0.0.1", {{"Accept", "*/*"}}, "unknown"},
        {"one spelling", NULL, {{"X-Forwarded-For", "[2001:DB8:1:2::3]:80"}}, "2001:db8:1:2::/64"},
        {"no address", NULL, {{"X-Forwarded-For", "evil\"key"}}, NULL},
    };
    weir_key_rule key;

    (void)state;
    weir_key_rule_init(&key, WEIR_KEY_IP);
    key.hops = WEIR_HOPS_FIRST;
    check(&key, examples, sizeof examples / sizeof examples[0]);
}

/* J2 */
static void a_mapped_address_and_its_ipv4_address_are_one_caller(void **state)
{
    static const struct example examples[] = {
        {"IPv4", "1.2.3.4", {{NULL, NULL}}, "1.2.3.4"},
        {"mapped", "::ffff:1.2.3.4", {{NULL, NULL}}, "1.2.3.4"},
        {"mapped, in hex", "[::FFFF:102:304]:1", {{NULL, NULL}}, "1.2.3.4"},
    };
    weir_key_rule key;

    (void)state;
    weir_key_rule_init(&key, WEIR_KEY_IP);
    check(&key, examples, sizeof examples / sizeof examples[0]);
}

/* A header value of a megabyte is read in one pass. */
static void a_long_list_of_hops_is_read_to_its_end(void **state)
{
    enum {
        HOPS = 100000
    };
    static char value[HOPS * 10 + 32];
    struct example example = {"long", "10.0.0.1", {{"X-Forwarded-For", value}}, "203.0.113.7"};
    weir_network proxy;
    weir_key_rule key;

    (void)state;
    for (int i = 0; i < HOPS; i++)
        memcpy(value + 9 * i, "1.2.3.4 ,", 9);
    memcpy(value + 9 * HOPS, "203.0.113.7", sizeof "203.0.113.7");
    assert_int_equal(weir_network_parse("10.0.0.0/8", &proxy), 0);
    weir_key_rule_init(&key, WEIR_KEY_IP);
    key.trusted = &proxy;
    key.trusted_count = 1;
    check(&key, &example, 1);
}

/* J1: the work that a client can cause is bounded. More header lines than the bound are refused. */
static void too_many_forwarding_header_lines_are_refused(void **state)
{
    (void)state;
    static weir_header lines[WEIR_HEADER_LINES_MAX + 1];
    for (size_t i = 0; i <= WEIR_HEADER_LINES_MAX; i++)
        lines[i] = (weir_header){"X-Forwarded-For", "203.0.113.7"};
    weir_network proxies;
    assert_int_equal(weir_network_parse("10.0.0.0/8", &proxies), 0);
    weir_key_rule key;
    weir_key_rule_init(&key, WEIR_KEY_IP);
    key.trusted = &proxies;
    key.trusted_count = 1;
    weir_request request;
    weir_request_init(&request, "GET", "/", "10.0.0.1");
    weir_header_list list = {lines, WEIR_HEADER_LINES_MAX};
    request.header = weir_header_list_find;
    request.header_context = &list;
    char buffer[WEIR_KEY_MAX];
    size_t bytes;
    weir_request_fault fault;
    assert_int_equal(weir_key_extract(&key, &request, buffer, sizeof buffer, &bytes, &fault), 0);
    assert_int_equal(fault, WEIR_FAULT_NONE);
    assert_memory_equal(buffer, "203.0.113.7", bytes);
    list.count++;
    assert_int_equal(weir_key_extract(&key, &request, buffer, sizeof buffer, &bytes, &fault), WEIR_E_ABSENT);
    assert_int_equal(fault, WEIR_FAULT_REPEATED);
}

WEIR_TESTS(test(too_many_forwarding_header_lines_are_refused),
           test(forged_headers_are_ignored_unless_the_peer_is_a_trusted_proxy),
           test(behind_trusted_proxies_the_right_most_untrusted_hop_is_the_caller),
           test(a_proxy_may_name_the_caller_in_another_header), test(an_unreadable_peer_is_malformed_not_missing),
           test(unix_socket_peer_is_trusted_only_if_configured), test(first_hop_mode_takes_the_first_forwarded_address),
           test(a_mapped_address_and_its_ipv4_address_are_one_caller), test(a_long_list_of_hops_is_read_to_its_end))
