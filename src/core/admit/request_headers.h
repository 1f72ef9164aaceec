/* SPDX-License-Identifier: MIT */
/* request_headers.h - reads headers of a request, and finds the address of its client. */
#ifndef WR_CORE_ADMIT_REQUEST_HEADERS_H
#define WR_CORE_ADMIT_REQUEST_HEADERS_H

#include "core/admit/network.h"

/* Returns 0, or WEIR_E_INVAL with a message if the request is invalid. */
int wr_request_check(const weir_request *request);

/* Returns true for a header name in lower case, made of the characters of RFC 9110 5.6.2 tokens
 * that are in use. Returns false for NULL. */
bool wr_header_name_ok(const char *name);

/* Finds the only value of a header, trimmed. Returns WEIR_FAULT_NONE, _MISSING (also if it is
 * empty) or _REPEATED. */
weir_request_fault wr_request_header(const weir_request *request, const char *name, struct wr_span *ret_value);

/* Finds the client's address, with the proxies that the key trusts. Returns WEIR_FAULT_NONE,
 * _MISSING, _ADDRESS, or _REPEATED if the header has too many lines. */
weir_request_fault wr_request_client(const weir_request *request, const weir_key_rule *key,
                                     struct wr_address *ret_address);

/* Returns true if the peer is a proxy that the key trusts. */
bool wr_peer_is_trusted(const weir_key_rule *key, struct wr_span peer);

#endif
