/* SPDX-License-Identifier: MIT */
/* request.h - looking into a request. */
#ifndef WR_CORE_ADMIT_REQUEST_H
#define WR_CORE_ADMIT_REQUEST_H

#include "core/admit/network.h"

/* WEIR_E_INVAL unless it can be looked into. */
int wr_request_check(const weir_request *request);

/* A header's name in lower case: of the token of RFC 9110 5.6.2, what is in use. NULL is none. */
bool wr_header_name_ok(const char *name);

/* The only value of a header, trimmed. WEIR_FAULT_NONE, _MISSING (also if empty) or _REPEATED. */
weir_fault wr_request_header(const weir_request *request, const char *name, struct wr_span *ret_value);

/* The caller's address, as the key says whom to believe. WEIR_FAULT_NONE, _MISSING or _ADDRESS. */
weir_fault wr_request_client(const weir_request *request, const weir_key *key, struct wr_address *ret_address);

/* Whether a peer is a proxy whom the key believes. */
bool wr_peer_is_trusted(const weir_key *key, struct wr_span peer);

#endif
