/* SPDX-License-Identifier: MIT */
/* address.h - strict parsing and canonical formatting of IP addresses.
 *
 * An address is 16 bytes, IPv4 as ::ffff:a.b.c.d, so that both spellings of an IPv4 address compare
 * equal. Parsing accepts only text that every parser reads alike: four decimal octets without
 * leading zeros (some parsers take them for octal) or the forms of RFC 4291 2.2.
 * wr_address_parse_peer also accepts brackets, a port and a zone, and drops all three.
 */
#ifndef WR_BASE_ADDRESS_H
#define WR_BASE_ADDRESS_H

#include "base/buf.h"
#include "base/seam.h"

#include <stdint.h>

struct wr_address {
    uint8_t bytes[16];
};

/* Parses an address and nothing else: "192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1". */
WR_SEAM bool wr_address_parse(struct wr_span text, struct wr_address *ret_address);

/* Parses an IPv6 address and nothing else: no brackets, no zone. */
WR_SEAM bool wr_address_parse_v6(struct wr_span text, struct wr_address *ret_address);

/* Parses an address as proxies and servers write it, also "192.0.2.1:80", "[2001:db8::1]" or
 * "[fe80::1%eth0]:443". */
bool wr_address_parse_peer(struct wr_span text, struct wr_address *ret_address);

/* Returns the host of a Host field or URL authority without ":port". Brackets stay. */
struct wr_span wr_host_without_port(struct wr_span host);

WR_SEAM bool wr_address_is_v4(const struct wr_address *address);

/* Returns true if the first `bits` (0 to 128) of the address equal those of `prefix`. For an IPv4
 * prefix of N bits, `bits` is 96 + N. */
WR_SEAM bool wr_address_has_prefix(const struct wr_address *address, const uint8_t prefix[16], unsigned bits);

/* Appends the address in the form of RFC 5952: "192.0.2.1" (also for ::ffff:192.0.2.1),
 * "2001:db8::1". */
WR_SEAM void wr_address_append(struct wr_buf *buf, const struct wr_address *address);

/* Appends the 16 bytes as an IPv6 address, also if they are an IPv4 address: "::ffff:c000:201". */
WR_SEAM void wr_address_append_v6(struct wr_buf *buf, const struct wr_address *address);

#endif
