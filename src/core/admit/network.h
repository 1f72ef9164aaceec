/* SPDX-License-Identifier: MIT */
/* network.h - networks of IP addresses: who is in one, and which one is somebody in. */
#ifndef WR_CORE_ADMIT_NETWORK_H
#define WR_CORE_ADMIT_NETWORK_H

#include "base/address.h"

#include <weir/admit.h>

bool wr_network_holds(const weir_network *network, const struct wr_address *address);

/* The network of that many leading bits, by RFC 5952: "192.0.2.1", "192.0.2.0/24", "2001:db8::/64". */
void wr_network_append(struct wr_buf *buf, const struct wr_address *address, unsigned v4_prefix, unsigned v6_prefix);

#endif
