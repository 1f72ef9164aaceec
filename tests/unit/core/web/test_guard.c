/* SPDX-License-Identifier: MIT */
/* test_guard.c - tests which addresses weir may connect to (A12, D4). */
#include "lib/test.h"

#include "base/rng.h"
#include "core/web/url/address_guard.h"

static enum wr_guard_class class_of(const char *text)
{
    struct wr_address address;
    assert_true(wr_address_parse(wr_span_of(text), &address));
    return wr_guard_class(&address);
}

struct row {
    const char *address;
    enum wr_guard_class class;
};

static void assert_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (class_of(rows[i].address) != rows[i].class)
            fail_msg("%s is \"%s\"", rows[i].address, wr_guard_text(class_of(rows[i].address)));
}

#define ASSERT_ROWS(rows) assert_rows(rows, sizeof rows / sizeof rows[0])

/* Both ends of each network, and the addresses next to them. */
static void inner_ipv4_addresses_are_blocked_and_their_neighbours_are_not(void **state)
{
    static const struct row rows[] = {
        {"0.0.0.0", WR_GUARD_UNSPECIFIED},
        {"0.255.255.255", WR_GUARD_UNSPECIFIED},
        {"1.0.0.0", WR_GUARD_PUBLIC},
        {"9.255.255.255", WR_GUARD_PUBLIC},
        {"10.0.0.0", WR_GUARD_PRIVATE},
        {"10.255.255.255", WR_GUARD_PRIVATE},
        {"11.0.0.0", WR_GUARD_PUBLIC},
        {"100.63.255.255", WR_GUARD_PUBLIC},
        {"100.64.0.0", WR_GUARD_SHARED},
        {"100.127.255.255", WR_GUARD_SHARED},
        {"100.128.0.0", WR_GUARD_PUBLIC},
        {"100.100.100.200", WR_GUARD_METADATA},
        {"126.255.255.255", WR_GUARD_PUBLIC},
        {"127.0.0.0", WR_GUARD_LOOPBACK},
        {"127.0.0.1", WR_GUARD_LOOPBACK},
        {"127.255.255.255", WR_GUARD_LOOPBACK},
        {"128.0.0.0", WR_GUARD_PUBLIC},
        {"168.63.129.15", WR_GUARD_PUBLIC},
        {"168.63.129.16", WR_GUARD_METADATA},
        {"169.253.255.255", WR_GUARD_PUBLIC},
        {"169.254.0.0", WR_GUARD_LINK_LOCAL},
        {"169.254.169.253", WR_GUARD_LINK_LOCAL},
        {"169.254.169.254", WR_GUARD_METADATA},
        {"169.254.255.255", WR_GUARD_LINK_LOCAL},
        {"169.255.0.0", WR_GUARD_PUBLIC},
        {"172.15.255.255", WR_GUARD_PUBLIC},
        {"172.16.0.0", WR_GUARD_PRIVATE},
        {"172.31.255.255", WR_GUARD_PRIVATE},
        {"172.32.0.0", WR_GUARD_PUBLIC},
        {"191.255.255.255", WR_GUARD_PUBLIC},
        {"192.0.0.0", WR_GUARD_RESERVED},
        {"192.0.0.192", WR_GUARD_METADATA},
        {"192.0.1.0", WR_GUARD_PUBLIC},
        {"192.0.2.1", WR_GUARD_EXAMPLE},
        {"192.0.3.0", WR_GUARD_PUBLIC},
        {"192.88.99.1", WR_GUARD_RESERVED},
        {"192.167.255.255", WR_GUARD_PUBLIC},
        {"192.168.0.0", WR_GUARD_PRIVATE},
        {"192.168.255.255", WR_GUARD_PRIVATE},
        {"192.169.0.0", WR_GUARD_PUBLIC},
        {"198.17.255.255", WR_GUARD_PUBLIC},
        {"198.18.0.0", WR_GUARD_EXAMPLE},
        {"198.19.255.255", WR_GUARD_EXAMPLE},
        {"198.20.0.0", WR_GUARD_PUBLIC},
        {"198.51.100.7", WR_GUARD_EXAMPLE},
        {"203.0.113.7", WR_GUARD_EXAMPLE},
        {"223.255.255.255", WR_GUARD_PUBLIC},
        {"224.0.0.0", WR_GUARD_MULTICAST},
        {"239.255.255.255", WR_GUARD_MULTICAST},
        {"240.0.0.0", WR_GUARD_RESERVED},
        {"255.255.255.255", WR_GUARD_RESERVED},
        {"8.8.8.8", WR_GUARD_PUBLIC},
    };
    (void)state;
    ASSERT_ROWS(rows);
}

static void inner_ipv6_addresses_are_blocked_and_the_public_ones_are_not(void **state)
{
    static const struct row rows[] = {
        {"::", WR_GUARD_UNSPECIFIED},
        {"::1", WR_GUARD_LOOPBACK},
        {"fe80::1", WR_GUARD_LINK_LOCAL},
        {"febf:ffff::", WR_GUARD_LINK_LOCAL},
        {"fec0::1", WR_GUARD_PRIVATE},
        {"fc00::", WR_GUARD_PRIVATE},
        {"fdff:ffff::1", WR_GUARD_PRIVATE},
        {"fd00:ec2::254", WR_GUARD_METADATA},
        {"fd20:ce::254", WR_GUARD_METADATA},
        {"ff02::1", WR_GUARD_MULTICAST},
        {"2001:db8::1", WR_GUARD_EXAMPLE},
        {"3fff::1", WR_GUARD_EXAMPLE},
        {"3fff:1000::1", WR_GUARD_PUBLIC},
        {"2001:2::1", WR_GUARD_EXAMPLE},
        {"2001:10::1", WR_GUARD_RESERVED},
        {"2001:20::1", WR_GUARD_RESERVED},
        {"2001:200::1", WR_GUARD_PUBLIC},
        {"2606:4700::1111", WR_GUARD_PUBLIC},
        {"2a00:1450:4001::200e", WR_GUARD_PUBLIC},
        {"1fff::1", WR_GUARD_RESERVED},
        {"4000::1", WR_GUARD_RESERVED},
        {"100::1", WR_GUARD_RESERVED},
        {"5f00::1", WR_GUARD_RESERVED},
    };
    (void)state;
    ASSERT_ROWS(rows);
}

static void address_that_embeds_an_ipv4_address_is_judged_by_it(void **state)
{
    static const struct row rows[] = {
        {"::ffff:10.0.0.1", WR_GUARD_PRIVATE}, /* IPv4-mapped */
        {"::ffff:8.8.8.8", WR_GUARD_PUBLIC},
        {"::ffff:0:127.0.0.1", WR_GUARD_LOOPBACK}, /* SIIT */
        {"::ffff:0:8.8.8.8", WR_GUARD_PUBLIC},
        {"::127.0.0.1", WR_GUARD_LOOPBACK}, /* IPv4-compatible */
        {"::2", WR_GUARD_UNSPECIFIED},
        {"64:ff9b::169.254.169.254", WR_GUARD_METADATA}, /* NAT64 */
        {"64:ff9b::8.8.8.8", WR_GUARD_PUBLIC},
        {"64:ff9b:1::8.8.8.8", WR_GUARD_PRIVATE}, /* local prefix of a translator */
        {"2002:7f00:1::1", WR_GUARD_LOOPBACK},    /* 6to4 */
        {"2002:c0a8:101::", WR_GUARD_PRIVATE},
        {"2002:808:808::1", WR_GUARD_PUBLIC},
        {"2001:0:a00:1::f7f7:f7f7", WR_GUARD_PRIVATE},    /* Teredo, server 10.0.0.1 */
        {"2001:0:808:808::80ff:fffe", WR_GUARD_LOOPBACK}, /* Teredo, client 127.0.0.1 */
        {"2001:0:808:808::f7f7:f7f7", WR_GUARD_PUBLIC},
    };
    (void)state;
    ASSERT_ROWS(rows);
}

/* Model of the registry: outside of 2000::/3, only addresses that embed a public IPv4 address are
 * public. */
static void unassigned_ipv6_addresses_are_not_public(void **state)
{
    struct wr_rng rng;
    struct wr_address address;

    (void)state;
    wr_rng_init(&rng, weir_test_seed());
    for (int round = 0; round < 100000; round++) {
        for (size_t i = 0; i < 16; i++)
            address.bytes[i] = (uint8_t)wr_rng_next(&rng);
        bool is_assigned = address.bytes[0] >> 5 == 1;
        bool is_nat64 = address.bytes[0] == 0 && address.bytes[1] == 0x64;
        if (!is_assigned && !is_nat64)
            assert_int_not_equal(wr_guard_class(&address), WR_GUARD_PUBLIC);
    }
}

WEIR_TESTS(test(inner_ipv4_addresses_are_blocked_and_their_neighbours_are_not),
           test(inner_ipv6_addresses_are_blocked_and_the_public_ones_are_not),
           test(address_that_embeds_an_ipv4_address_is_judged_by_it), test(unassigned_ipv6_addresses_are_not_public))
