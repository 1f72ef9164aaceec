/* SPDX-License-Identifier: MIT */
/* guard.h - addresses that a stranger's link must not lead us to.
 *
 * Links and redirects come from anybody, and so do the answers of DNS: any of them may point into the network that we
 * run in, where a request of ours is trusted. So the address that is connected to is judged, not the text that led
 * there (D4, D5), and only what is meant to be reached from everywhere is let through: the registries of
 * special-purpose addresses (RFC 6890 and its updates), whatever is not assigned, and the few public addresses behind
 * which clouds keep their machines' secrets.
 *
 * An address that carries an IPv4 address (mapped, NAT64, 6to4, Teredo, …) is judged by that one: translators and
 * tunnels take the packet there.
 */
#ifndef WR_CORE_RULES_URL_GUARD_H
#define WR_CORE_RULES_URL_GUARD_H

#include "base/address.h"

#define WR_GUARD_CLASSES(X)                                            \
    X(WR_GUARD_PUBLIC, "a public address")                             \
    X(WR_GUARD_UNSPECIFIED, "no address of its own: this machine")     \
    X(WR_GUARD_LOOPBACK, "loopback: this machine")                     \
    X(WR_GUARD_PRIVATE, "private: an inner network")                   \
    X(WR_GUARD_SHARED, "shared: a carrier's or cloud's inner network") \
    X(WR_GUARD_LINK_LOCAL, "link-local: the wire we are on")           \
    X(WR_GUARD_METADATA, "metadata: where a cloud keeps secrets")      \
    X(WR_GUARD_MULTICAST, "multicast: many machines")                  \
    X(WR_GUARD_EXAMPLE, "for documentation and measurements only")     \
    X(WR_GUARD_RESERVED, "reserved: nobody's address")

enum wr_guard_class {
#define X(class, text) class,
    WR_GUARD_CLASSES(X)
#undef X
};

/* Anything but WR_GUARD_PUBLIC is blocked. */
enum wr_guard_class wr_guard_class(const struct wr_address *address);

const char *wr_guard_text(enum wr_guard_class guard_class);

#endif
