/* SPDX-License-Identifier: MIT */
/* address.h - IP addresses: read strictly, written in one way.
 *
 * An address is 16 bytes, IPv4 as ::ffff:a.b.c.d, so that the two spellings of an IPv4 address are equal (J2). A text
 * is an address only if no reader could take it for another: four decimal octets without leading zeros (which some read
 * as octal), or RFC 4291 2.2; then what comes with it in practice: brackets, a port, a zone, both dropped.
 */
#ifndef WR_CORE_ADMIT_ADDRESS_H
#define WR_CORE_ADMIT_ADDRESS_H

#include "base/buf.h"

#include <stdint.h>
#include <weir/admit.h>

struct wr_address {
    uint8_t bytes[16];
};

/* Just an address: "192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1". */
bool wr_address_parse(struct wr_span text, struct wr_address *ret_address);

/* As proxies and servers write it: also "192.0.2.1:80", "[2001:db8::1]", "[fe80::1%eth0]:443". */
bool wr_address_parse_peer(struct wr_span text, struct wr_address *ret_address);

bool wr_address_is_v4(const struct wr_address *address);

bool wr_network_holds(const weir_network *network, const struct wr_address *address);

/* The network of that many leading bits, by RFC 5952: "192.0.2.1", "192.0.2.0/24", "2001:db8::/64". */
void wr_network_append(struct wr_buf *buf, const struct wr_address *address, unsigned v4_prefix, unsigned v6_prefix);

#endif
