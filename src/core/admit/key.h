/* SPDX-License-Identifier: MIT */
/* key.h - keys out of requests, for those who have checked them before. */
#ifndef WR_CORE_ADMIT_KEY_H
#define WR_CORE_ADMIT_KEY_H

#include "base/buf.h"

#include <weir/admit.h>

/* WEIR_E_INVAL unless it is sound, with all its parts. */
int wr_key_check(const weir_key *key);

#define WR_KEY_BUFFER (WEIR_KEY_MAX + 1) /* bytes of memory for a fixed buffer that any key fits */

/* As weir_key_extract, of a sound key and request: appends to `buf`, which is empty and has room for any key. After a
 * fault its content is undefined. */
weir_fault wr_key_extract(const weir_key *key, const weir_request *request, struct wr_buf *buf);

/* What is kept of a token: "#…"; and whether a text is that. */
void wr_digest_append(struct wr_buf *buf, const char *secret, struct wr_span token);
bool wr_digest_is(struct wr_span text);

#endif
