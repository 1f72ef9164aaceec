/* SPDX-License-Identifier: MIT */
/* network.h - networks of IP addresses: whether one contains an address, and the network of an
 * address. */
#ifndef WR_CORE_ADMIT_NETWORK_H
#define WR_CORE_ADMIT_NETWORK_H

#include "base/address.h"

#include <weir/admit.h>

bool wr_network_holds(const weir_network *network, const struct wr_address *address);

/* Appends the network with the given number of leading bits, as in RFC 5952: "192.0.2.1",
 * "192.0.2.0/24", "2001:db8::/64". */
void wr_network_append(struct wr_buf *buf, const struct wr_address *address, unsigned v4_prefix, unsigned v6_prefix);

#endif
