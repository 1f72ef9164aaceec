/* SPDX-License-Identifier: MIT */
/* text.h - what a crawl came to, in words. */
#ifndef WR_CLI_REPORT_TEXT_H
#define WR_CLI_REPORT_TEXT_H

#include <stdio.h>

#include "cli/report/facts.h"

/* "completed", "given up", … for "completed", "failed", …; the word itself if it is none of them. */
const char *wr_report_end_words(const char *end);

/* The reasons that cost most, "pace 12.3 s, robots 1.0 s"; "-": none. */
void wr_report_waits(const int64_t waited_ns[WEIR_REASON_QUEUE + 1], char *ret_text, size_t room);

/* The totals, and the hosts that were asked most; `where`: who has them all, or NULL. */
void wr_report_text(const struct wr_facts *facts, const char *where, FILE *out);

#endif
