/* SPDX-License-Identifier: MIT */
/* forwarded_request.h - reads a proxy's header fields about the request that it asks about:
 * X-Original-... of nginx, or X-Forwarded-... of Caddy and Traefik. */
#ifndef WR_SERVE_DAEMON_FORWARDED_REQUEST_H
#define WR_SERVE_DAEMON_FORWARDED_REQUEST_H

#include "core/web/request/http_request.h"

#include <weir/admit.h>

/* Sets method, target and host of *said to spans of `asks`. A target that is a URL includes the
 * host, so the host field may be absent. Returns WEIR_FAULT_NONE on success. Otherwise returns
 * WEIR_FAULT_MISSING if a field is absent, or WEIR_FAULT_REPEATED if it appears twice, so that one
 * may come from the caller; then *ret_field names the field and *said is unchanged. */
weir_request_fault wr_forwarded_request_read(const struct wr_request *asks, weir_request *said, const char **ret_field);

/* Returns true if a field for the target is present, even if it appears twice. */
bool wr_forwarded_request_is_present(const struct wr_request *asks);

/* Returns a header field of a struct wr_request (`context`); for weir_request.header. */
const char *wr_forwarded_request_header(void *context, const char *name, size_t index, size_t *ret_bytes);

#endif
