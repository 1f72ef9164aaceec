/* SPDX-License-Identifier: MIT */
/* method.h - the method of a request (RFC 9110 9). */
#ifndef WR_CORE_ADMIT_METHOD_H
#define WR_CORE_ADMIT_METHOD_H

#include "base/buf.h"

/* In capitals, if RFC 9110 or RFC 5789 knows it, however it is written: services that ignore case are among those that
 * take it. Else NULL. */
const char *wr_method_known(struct wr_span method);

/* Whether it is a token (RFC 9110 5.6.2), or empty. No service takes another, or a parser might take its first word:
 * "POST x". */
bool wr_method_is_token(struct wr_span method);

/* Whether a rule for `wanted` is for a request with `method`: they differ at most in case, or a HEAD is what services
 * answer as the GET that is wanted. */
bool wr_method_fits(struct wr_span wanted, struct wr_span method);

/* Writes a method that is known in capitals, any other as "OTHER": callers must not be able to make up keys. */
void wr_method_append(struct wr_buf *buf, struct wr_span method);

#endif
