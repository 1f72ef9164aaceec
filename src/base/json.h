/* SPDX-License-Identifier: MIT */
/* json.h - JSON, appended piece by piece.
 *
 *     wr_append_json_text(buf, "{\"url\": ", url);
 *     wr_append_json_count(buf, ", \"status\": ", status);
 *     wr_buf_append_string(buf, "}\n");
 *
 * Whatever the text, only printable ASCII comes out, and no '<' and '>': what strangers wrote can harm no terminal, log
 * or page. What is not UTF-8 becomes U+FFFD.
 */
#ifndef WR_BASE_JSON_H
#define WR_BASE_JSON_H

#include "base/buf.h"

/* A string with its quotes. */
void wr_append_json_string(struct wr_buf *buf, struct wr_span text);

/* What is between them. */
void wr_append_json_inside(struct wr_buf *buf, struct wr_span text);

/* A member; `before` is all that stands before its value. A text without data is null. */
void wr_append_json_text(struct wr_buf *buf, const char *before, struct wr_span text);
void wr_append_json_count(struct wr_buf *buf, const char *before, uint64_t count);
void wr_append_json_null(struct wr_buf *buf, const char *before);

/* A number that is given in 10^-decimals: 1500 with three of them is 1.5. */
void wr_append_json_decimal(struct wr_buf *buf, const char *before, uint64_t number, unsigned decimals);

#endif
