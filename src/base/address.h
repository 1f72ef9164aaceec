/* SPDX-License-Identifier: MIT */
/* address.h - IP addresses: read strictly, written in one way.
 *
 * An address is 16 bytes, IPv4 as ::ffff:a.b.c.d, so that the two spellings of an IPv4 address are equal (J2). A text
 * is an address only if no reader could take it for another: four decimal octets without leading zeros (which some read
 * as octal), or RFC 4291 2.2; then what comes with it in practice: brackets, a port, a zone, both dropped.
 */
#ifndef WR_BASE_ADDRESS_H
#define WR_BASE_ADDRESS_H

#include "base/buf.h"

#include <stdint.h>

struct wr_address {
    uint8_t bytes[16];
};

/* Just an address: "192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1". */
bool wr_address_parse(struct wr_span text, struct wr_address *ret_address);

/* Just an IPv6 address, without brackets or zone. */
bool wr_address_parse_v6(struct wr_span text, struct wr_address *ret_address);

/* As proxies and servers write it: also "192.0.2.1:80", "[2001:db8::1]", "[fe80::1%eth0]:443". */
bool wr_address_parse_peer(struct wr_span text, struct wr_address *ret_address);

/* A host as it is sent, without ":port", which may follow "[…]". */
struct wr_span wr_host_without_port(struct wr_span host);

bool wr_address_is_v4(const struct wr_address *address);

/* Whether the first `bits` (0 … 128) are those of `prefix`. For IPv4 add 96 to what is written after the slash. */
bool wr_address_begins(const struct wr_address *address, const uint8_t prefix[16], unsigned bits);

/* By RFC 5952: "192.0.2.1" (also for ::ffff:192.0.2.1), "2001:db8::1". */
void wr_address_append(struct wr_buf *buf, const struct wr_address *address);

/* All 16 bytes, whatever they mean: "::ffff:c000:201". */
void wr_address_append_v6(struct wr_buf *buf, const struct wr_address *address);

#endif
