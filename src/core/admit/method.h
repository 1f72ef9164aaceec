/* SPDX-License-Identifier: MIT */
/* method.h - normalises and compares request methods (RFC 9110 9). */
#ifndef WR_CORE_ADMIT_METHOD_H
#define WR_CORE_ADMIT_METHOD_H

#include "base/buf.h"

/* Returns the method in capitals if RFC 9110 or RFC 5789 defines it, else NULL. Case is ignored,
 * because some services ignore it too. */
const char *wr_method_known(struct wr_span method);

/* Returns true if the method is a token (RFC 9110 5.6.2) or empty. No service accepts another, or
 * its parser might use only the first word of "POST x". */
bool wr_method_is_token(struct wr_span method);

/* Returns true if a rule for `wanted` applies to a request with `method`: they are equal without
 * case, or `wanted` is GET and the request a HEAD, which services answer like a GET. */
bool wr_method_fits(struct wr_span wanted, struct wr_span method);

/* Appends a known method in capitals, and any other as "OTHER", so that callers cannot invent
 * keys. */
void wr_method_append(struct wr_buf *buf, struct wr_span method);

#endif
