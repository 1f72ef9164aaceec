/* SPDX-License-Identifier: MIT */
/* route.h - the path of a request, written in one way. */
#ifndef WR_CORE_ADMIT_ROUTE_H
#define WR_CORE_ADMIT_ROUTE_H

#include "base/buf.h"

#include <weir/admit.h>

/* The path of a request target (RFC 9112 3.2), without query and fragment. WEIR_FAULT_NONE, _MISSING, _BYTES (neither a
 * path nor a URI), _LONG. */
weir_fault wr_route_append(struct wr_buf *buf, struct wr_span target);

/* Bytes of the path at the front of a target that is written in this one way already, as nearly all are; 0: it has to
 * be rewritten, or is none. */
size_t wr_route_plain(struct wr_span target);

/* The method if RFC 9110 or RFC 5789 knows it, else "OTHER": callers must not be able to make up keys. */
void wr_method_append(struct wr_buf *buf, struct wr_span method);

#endif
