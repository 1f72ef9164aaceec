/* SPDX-License-Identifier: MIT */
/* credentials.h - the secret of an Authorization field (RFC 9110 11.4), in one spelling. */
#ifndef WR_CORE_ADMIT_CREDENTIALS_H
#define WR_CORE_ADMIT_CREDENTIALS_H

#include "base/span.h"

#include <weir/admit.h>

/* Whether a header, by its name in lower case, holds credentials. */
bool wr_credentials_are_in(const char *header);

/* The token of "Bearer TOKEN", "Basic TOKEN" or a mere "TOKEN", without its scheme, whose case and distance say nothing
 * and which services mix up ("Bearer x" and "Token x"). WEIR_FAULT_NONE; _CREDENTIALS: more words than two, quotes,
 * commas, parameters (as Digest has them, which differ from one request to the next), or Base64 of Basic or of a JSON
 * Web Token that is not written as RFC 4648 says; _MISSING: nothing. */
weir_fault wr_credentials_read(struct wr_span value, struct wr_span *ret_token);

#endif
