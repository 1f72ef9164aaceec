/* SPDX-License-Identifier: MIT */
/* members.h - appends members of a report as JSON. The name includes the surrounding text: `,
 * "why": `. */
#ifndef WR_CLI_REPORT_MEMBERS_H
#define WR_CLI_REPORT_MEMBERS_H

#include "base/json.h"

/* Appends a string; null for NULL and "". */
void wr_append_member_text(struct wr_buf *buf, const char *name, const char *text);

void wr_append_member_seconds(struct wr_buf *buf, const char *name, int64_t ns);

/* Appends seconds; null for 0. */
void wr_append_member_seconds_or_null(struct wr_buf *buf, const char *name, int64_t ns);

/* Appends a rate; null for 0 and infinity. */
void wr_append_member_rate(struct wr_buf *buf, const char *name, double rate);

/* Appends "statuses" from WR_STATUSES_COUNT counts. The count at index 0, without an answer, comes
 * last. */
void wr_append_member_statuses(struct wr_buf *buf, const uint64_t *counts);

#endif
