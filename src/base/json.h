/* SPDX-License-Identifier: MIT */
/* json.h - appends JSON values to a buffer, piece by piece.
 *
 *     wr_append_json_text(buf, "{\"url\": ", url);
 *     wr_append_json_count(buf, ", \"status\": ", status);
 *     wr_buf_append_string(buf, "}\n");
 *
 * The output is always printable ASCII without '<' and '>', so that untrusted text can harm no
 * terminal, log or HTML page. Bytes that are not UTF-8 become U+FFFD.
 */
#ifndef WR_BASE_JSON_H
#define WR_BASE_JSON_H

#include "base/buf.h"

/* Appends `text` as a JSON string, with its quotes. */
void wr_append_json_string(struct wr_buf *buf, struct wr_span text);

/* Appends `text` escaped as in a JSON string, without the quotes. */
void wr_append_json_escaped(struct wr_buf *buf, struct wr_span text);

/* Appends `before` and then the value. `before` holds everything in front of the value, such as the
 * member's name and a colon. A text whose data is NULL becomes null. */
void wr_append_json_text(struct wr_buf *buf, const char *before, struct wr_span text);
void wr_append_json_count(struct wr_buf *buf, const char *before, uint64_t count);
void wr_append_json_null(struct wr_buf *buf, const char *before);

/* Appends `before` and then number / 10^decimals: 1500 with 3 decimals is 1.5. */
void wr_append_json_decimal(struct wr_buf *buf, const char *before, uint64_t number, unsigned decimals);

#endif
