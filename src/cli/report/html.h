/* SPDX-License-Identifier: MIT */
/* html.h - what a crawl came to, as one page that needs nothing else: no scripts, no fonts, no images from elsewhere.
 *
 * Names of hosts and URLs are those of strangers: every text is escaped, and the page forbids by its own policy
 * whatever might be loaded or run.
 */
#ifndef WR_CLI_REPORT_HTML_H
#define WR_CLI_REPORT_HTML_H

#include <stdio.h>

#include "cli/report/facts.h"

/* False if it could not be written, see errno. */
bool wr_report_html(const struct wr_facts *facts, const char *title, FILE *out);

/* Text, and what may stand in an attribute. */
void wr_html_text(FILE *out, const char *text);

/* chart.c: how fast the host was asked in the course of the run; nothing if that is not known. */
void wr_html_course(const struct wr_facts *facts, const struct wr_facts_host *host, FILE *out);

#endif
