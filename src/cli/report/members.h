/* SPDX-License-Identifier: MIT */
/* members.h - members of a report in JSON; a name comes with what stands around it: `, "why": `. */
#ifndef WR_CLI_REPORT_MEMBERS_H
#define WR_CLI_REPORT_MEMBERS_H

#include "base/json.h"

/* null: there is none, or it is empty. */
void wr_append_member_text(struct wr_buf *buf, const char *name, const char *text);

void wr_append_member_seconds(struct wr_buf *buf, const char *name, int64_t ns);

/* null: there are none. */
void wr_append_member_some_seconds(struct wr_buf *buf, const char *name, int64_t ns);

/* null: there is none, or no end to it. */
void wr_append_member_rate(struct wr_buf *buf, const char *name, double rate);

/* "statuses", of WR_STATUSES_COUNT counts: those of no answer at last. */
void wr_append_member_statuses(struct wr_buf *buf, const uint64_t *counts);

#endif
