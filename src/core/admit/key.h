/* SPDX-License-Identifier: MIT */
/* key.h - extracts keys from requests, for callers that have checked both before. */
#ifndef WR_CORE_ADMIT_KEY_H
#define WR_CORE_ADMIT_KEY_H

#include "base/buf.h"

#include <weir/admit.h>

/* Returns 0, or WEIR_E_INVAL with a message if the key or one of its parts is invalid. */
int wr_key_check(const weir_key_rule *key);

#define WR_KEY_BUFFER (WEIR_KEY_MAX + 1) /* bytes of a buffer that holds any key */

/* Works as weir_key_extract, but the key and the request must be valid. Appends to `buf`, which
 * must be empty and have room for any key. After a fault the content of `buf` is undefined. */
weir_request_fault wr_key_extract(const weir_key_rule *key, const weir_request *request, struct wr_buf *buf);

/* Appends the digest that replaces a secret token in keys: '#' and hex digits. wr_digest_is returns
 * true if a text has that form. */
void wr_digest_append(struct wr_buf *buf, const char *secret, struct wr_span token);
bool wr_digest_is(struct wr_span text);

#endif
