/* SPDX-License-Identifier: MIT */
/* host.h - the name of a host (RFC 9110 7.2), in one spelling. */
#ifndef WR_CORE_ADMIT_HOST_H
#define WR_CORE_ADMIT_HOST_H

#include "base/buf.h"

#include <weir/admit.h>

#define WR_HOST_MAX 255 /* bytes (RFC 1035 2.3.4) */

/* Writes the host of "Example.ORG.:8080" as "example.org": in lower case, without port and without the root's dot;
 * IPv6 as RFC 5952 writes it, in brackets. WEIR_FAULT_NONE; _HOST: a port that is none, an empty label, a byte that
 * stands in no name (userinfo and blanks among them), a number that is no IPv4 address; _MISSING: empty; _LONG. */
weir_fault wr_host_append(struct wr_buf *buf, struct wr_span host);

#endif
