/* SPDX-License-Identifier: MIT */
/* said.h - what a proxy says of the request that it asks about, in fields of its own: nginx's X-Original-…, or those
 * that Caddy and Traefik send, X-Forwarded-…. */
#ifndef WR_SHELL_SERVE_SAID_H
#define WR_SHELL_SERVE_SAID_H

#include "core/rules/request/request.h"

#include <weir/admit.h>

/* Puts method, target and host into *said, whose texts are those of `asks`. A target that is a URL has the host in it,
 * so that a field for it may be absent. WEIR_FAULT_NONE; _MISSING: a field is absent; _REPEATED: it is there twice, and
 * one of them is the caller's own. Then *ret_field names it, and *said is as it was. */
weir_fault wr_said_read(const struct wr_request *asks, weir_request *said, const char **ret_field);

/* Whether it says what the target is, rightly or not. */
bool wr_said_is_there(const struct wr_request *asks);

/* A request's value of a field, for weir_request.header: `context` is the struct wr_request. */
const char *wr_said_header(void *context, const char *name, size_t index, size_t *ret_bytes);

#endif
