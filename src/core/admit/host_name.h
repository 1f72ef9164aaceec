/* SPDX-License-Identifier: MIT */
/* host_name.h - normalises the name of a host (RFC 9110 7.2) to one spelling. */
#ifndef WR_CORE_ADMIT_HOST_NAME_H
#define WR_CORE_ADMIT_HOST_NAME_H

#include "base/buf.h"

#include <weir/admit.h>

#define WR_HOST_MAX 255 /* maximum length of a name in bytes (RFC 1035 2.3.4) */

/* Writes the host of "Example.ORG.:8080" as "example.org": in lower case, without the port and the
 * dot of the root. Writes IPv6 as in RFC 5952, in brackets. Returns WEIR_FAULT_NONE; _MISSING if
 * the host is empty; _LONG; _HOST for an invalid port, an empty label, a byte that no name has
 * (userinfo and blanks included), or a number that is not an IPv4 address. */
weir_request_fault wr_host_append(struct wr_buf *buf, struct wr_span host);

#endif
