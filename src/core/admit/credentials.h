/* SPDX-License-Identifier: MIT */
/* credentials.h - extracts the secret of an Authorization field (RFC 9110 11.4), if it has only one
 * spelling. */
#ifndef WR_CORE_ADMIT_CREDENTIALS_H
#define WR_CORE_ADMIT_CREDENTIALS_H

#include "base/span.h"

#include <weir/admit.h>

/* Returns true if the header, named in lower case, holds credentials. */
bool wr_credentials_are_in(const char *header);

/* Reads the token of "Bearer TOKEN", "Basic TOKEN" or just "TOKEN". Drops the scheme: its case and
 * the blanks after it carry no meaning, and services accept several ("Bearer x" and "Token x").
 * Returns WEIR_FAULT_NONE; _MISSING if the value is empty; _CREDENTIALS if it has more than two
 * words, quotes, commas, or parameters (those of Digest differ from one request to the next), or if
 * the Base64 of Basic or of a JSON Web Token is not as RFC 4648 requires. */
weir_request_fault wr_credentials_read(struct wr_span value, struct wr_span *ret_token);

#endif
