/* SPDX-License-Identifier: MIT */
/* address_guard.c - the table of addresses that are not publicly reachable. */
#include "core/web/url/address_guard.h"

struct address_network {
    uint8_t prefix[16];
    uint8_t bits;
    uint8_t class; /* class of the network: enum wr_guard_class */
};

#define V4(a, b, c, d, bits, class)                                \
    {                                                              \
        {[10] = 0xff, [11] = 0xff, a, b, c, d}, 96 + (bits), class \
    }

/* The first match names the class, so narrow prefixes come first. IPv6 addresses without an entry
 * are public, or outside 2000::/3 and reserved. Sources:
 * https://www.iana.org/assignments/iana-ipv4-special-registry and iana-ipv6-special-registry. */
static const struct address_network networks[] = {
    V4(169, 254, 169, 254, 32, WR_GUARD_METADATA), /* metadata service of most clouds */
    V4(169, 254, 170, 2, 32, WR_GUARD_METADATA),   /* AWS: credentials of containers */
    V4(100, 100, 100, 200, 32, WR_GUARD_METADATA), /* metadata service of Alibaba */
    V4(168, 63, 129, 16, 32, WR_GUARD_METADATA),   /* Azure; inside a public network */
    V4(192, 0, 0, 192, 32, WR_GUARD_METADATA),     /* metadata service of Oracle */
    V4(0, 0, 0, 0, 8, WR_GUARD_UNSPECIFIED),
    V4(10, 0, 0, 0, 8, WR_GUARD_PRIVATE),
    V4(100, 64, 0, 0, 10, WR_GUARD_SHARED),
    V4(127, 0, 0, 0, 8, WR_GUARD_LOOPBACK),
    V4(169, 254, 0, 0, 16, WR_GUARD_LINK_LOCAL),
    V4(172, 16, 0, 0, 12, WR_GUARD_PRIVATE),
    V4(192, 0, 0, 0, 24, WR_GUARD_RESERVED),   /* IETF protocols */
    V4(192, 0, 2, 0, 24, WR_GUARD_EXAMPLE),    /* TEST-NET-1 */
    V4(192, 88, 99, 0, 24, WR_GUARD_RESERVED), /* 6to4 relays */
    V4(192, 168, 0, 0, 16, WR_GUARD_PRIVATE),
    V4(198, 18, 0, 0, 15, WR_GUARD_EXAMPLE),   /* benchmarks */
    V4(198, 51, 100, 0, 24, WR_GUARD_EXAMPLE), /* TEST-NET-2 */
    V4(203, 0, 113, 0, 24, WR_GUARD_EXAMPLE),  /* TEST-NET-3 */
    V4(224, 0, 0, 0, 4, WR_GUARD_MULTICAST),
    V4(240, 0, 0, 0, 4, WR_GUARD_RESERVED), /* class E and broadcast */
    V4(0, 0, 0, 0, 0, WR_GUARD_PUBLIC),
    {{0}, 128, WR_GUARD_UNSPECIFIED},
    {{[15] = 1}, 128, WR_GUARD_LOOPBACK},
    {{0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, 0x54}, 128, WR_GUARD_METADATA}, /* metadata of AWS */
    {{0xfd, 0x20, 0x00, 0xce, [14] = 0x02, 0x54}, 128, WR_GUARD_METADATA}, /* metadata of Google */
    {{0xfc}, 7, WR_GUARD_PRIVATE},                                         /* unique local */
    {{0xfe, 0xc0}, 10, WR_GUARD_PRIVATE},                                  /* old site-local */
    {{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48, WR_GUARD_PRIVATE},          /* RFC 8215 (NAT64) */
    {{0xfe, 0x80}, 10, WR_GUARD_LINK_LOCAL},
    {{0xff}, 8, WR_GUARD_MULTICAST},
    {{0x20, 0x01, 0x00, 0x02}, 48, WR_GUARD_EXAMPLE}, /* benchmarks */
    {{0x20, 0x01, 0x0d, 0xb8}, 32, WR_GUARD_EXAMPLE},
    {{0x3f, 0xff}, 20, WR_GUARD_EXAMPLE},
    /* IETF protocols: ORCHID and others; Teredo has an entry in `carriers` */
    {{0x20, 0x01}, 23, WR_GUARD_RESERVED},
    {{0x20}, 3, WR_GUARD_PUBLIC},
};

/* Prefixes of IPv6 addresses that embed an IPv4 address. */
static const struct {
    uint8_t prefix[16];
    uint8_t bits;
    uint8_t at;   /* offset of the IPv4 address, bytes */
    uint8_t mask; /* xored with each byte of that address */
} carriers[] = {
    {{0x00, 0x64, 0xff, 0x9b}, 96, 12, 0},    /* NAT64 (RFC 6052) */
    {{[8] = 0xff, [9] = 0xff}, 96, 12, 0},    /* SIIT (RFC 2765) */
    {{0}, 96, 12, 0},                         /* IPv4-compatible (RFC 4291 2.5.5.1), obsolete */
    {{0x20, 0x02}, 16, 2, 0},                 /* 6to4 (RFC 3056) */
    {{0x20, 0x01, 0x00, 0x00}, 32, 4, 0},     /* Teredo: server (RFC 4380) */
    {{0x20, 0x01, 0x00, 0x00}, 32, 12, 0xff}, /* Teredo: client */
};

static const char *const texts[] = {
#define X(class, text) text,
    WR_GUARD_CLASSES(X)
#undef X
};

const char *wr_guard_text(enum wr_guard_class guard_class)
{
    return texts[guard_class];
}

static enum wr_guard_class look_up_network(const struct wr_address *address)
{
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++)
        if (wr_address_has_prefix(address, networks[i].prefix, networks[i].bits))
            return (enum wr_guard_class)networks[i].class;
    return WR_GUARD_RESERVED;
}

enum wr_guard_class wr_guard_class(const struct wr_address *address)
{
    enum wr_guard_class own = look_up_network(address);
    bool carries = false;

    /* "::" and "::1" match the IPv4-compatible prefix but embed no IPv4 address */
    if (own == WR_GUARD_UNSPECIFIED || own == WR_GUARD_LOOPBACK)
        return own;
    for (size_t i = 0; i < sizeof carriers / sizeof carriers[0]; i++) {
        struct wr_address carried = {.bytes = {[10] = 0xff, [11] = 0xff}};
        if (!wr_address_has_prefix(address, carriers[i].prefix, carriers[i].bits))
            continue;
        for (size_t byte = 0; byte < 4; byte++)
            carried.bytes[12 + byte] = address->bytes[carriers[i].at + byte] ^ carriers[i].mask;
        enum wr_guard_class inner = look_up_network(&carried);
        if (inner != WR_GUARD_PUBLIC)
            return inner;
        carries = true;
    }
    return carries ? WR_GUARD_PUBLIC : own;
}
