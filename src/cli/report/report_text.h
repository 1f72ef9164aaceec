/* SPDX-License-Identifier: MIT */
/* report_text.h - prints the report of a crawl as text. */
#ifndef WR_CLI_REPORT_REPORT_TEXT_H
#define WR_CLI_REPORT_REPORT_TEXT_H

#include <stdio.h>

#include "cli/report/report_data.h"

/* Returns a text for the end of a crawl, such as "broken off" for "broken"; `end` itself if there
 * is no other text. */
const char *wr_report_end_words(const char *end);

/* Formats the longest waits by reason, such as "pace 12.3 s, robots 1.0 s"; "-" without waits. */
void wr_report_waits(const int64_t waited_ns[WEIR_REASON_QUEUE + 1], char *ret_text, size_t room);

/* Prints the totals and the hosts with the most requests. `where` names the command or option that
 * shows all hosts, or is NULL. */
void wr_report_text(const struct wr_report_data *facts, const char *where, FILE *out);

#endif
