/* SPDX-License-Identifier: MIT */
/* address_guard.h - classifies addresses that links from untrusted pages must not lead to.
 *
 * Links, redirects and DNS responses are untrusted: any of them may point into the network where
 * weir runs, in which its requests are trusted. So the check is on the address to connect to, not
 * on the text of the link. Only globally reachable addresses pass. Blocked are the registries of
 * special-purpose addresses (RFC 6890 and its updates), unassigned addresses, and the few public
 * addresses at which clouds serve the secrets of their machines.
 *
 * An address that embeds an IPv4 address (mapped, NAT64, 6to4, Teredo, ...) is classified by the
 * embedded one, because translators and tunnels deliver the packet there.
 */
#ifndef WR_CORE_WEB_URL_ADDRESS_GUARD_H
#define WR_CORE_WEB_URL_ADDRESS_GUARD_H

#include "base/address.h"

#define WR_GUARD_CLASSES(X)                                                   \
    X(WR_GUARD_PUBLIC, "a public address")                                    \
    X(WR_GUARD_UNSPECIFIED, "unspecified: this machine")                      \
    X(WR_GUARD_LOOPBACK, "loopback: this machine")                            \
    X(WR_GUARD_PRIVATE, "private: an internal network")                       \
    X(WR_GUARD_SHARED, "shared: a carrier's or cloud's internal network")     \
    X(WR_GUARD_LINK_LOCAL, "link-local: the network segment of this machine") \
    X(WR_GUARD_METADATA, "metadata: a cloud service with credentials")        \
    X(WR_GUARD_MULTICAST, "multicast: a group of machines")                   \
    X(WR_GUARD_EXAMPLE, "for documentation and measurements only")            \
    X(WR_GUARD_RESERVED, "reserved: not assigned")

enum wr_guard_class {
#define X(class, text) class,
    WR_GUARD_CLASSES(X)
#undef X
};

/* Returns the class of an address. Every class except WR_GUARD_PUBLIC is blocked. */
enum wr_guard_class wr_guard_class(const struct wr_address *address);

const char *wr_guard_text(enum wr_guard_class guard_class);

#endif
