/* SPDX-License-Identifier: MIT */
/* html.h - writes the report of a crawl as a self-contained HTML page, without scripts and without
 * external fonts and images.
 *
 * Host names and URLs are untrusted: all texts are escaped, and the page's policy forbids to load
 * or run anything.
 */
#ifndef WR_CLI_REPORT_HTML_H
#define WR_CLI_REPORT_HTML_H

#include <stdio.h>

#include "cli/report/report_data.h"

/* Writes the page. Returns false and sets errno if it could not be written. */
bool wr_report_html(const struct wr_report_data *facts, const char *title, FILE *out);

/* Writes text, escaped for use in elements and attributes. */
void wr_html_text(FILE *out, const char *text);

/* Draws the pace of a host over the run; nothing if it is not known. Defined in chart.c. */
void wr_html_rate_chart(const struct wr_report_data *facts, const struct wr_report_data_host *host, FILE *out);

#endif
