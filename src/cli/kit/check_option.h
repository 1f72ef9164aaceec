/* SPDX-License-Identifier: MIT */
/* check_option.h - checks the texts of options with a syntax of their own. The functions return 0,
 * or WEIR_E_INVAL with a detail that says what would be valid. */
#ifndef WR_CLI_KIT_CHECK_OPTION_H
#define WR_CLI_KIT_CHECK_OPTION_H

int wr_check_rate(const char *text);    /* a number of requests per second */
int wr_check_contact(const char *text); /* a URL or a mail address, or empty */
/* "Name: value"; may be a secret, so the detail does not contain it. */
int wr_check_header(const char *text);
int wr_check_statuses(const char *text); /* a list such as "403=permanent,500=done" */
int wr_check_proxy(const char *text);
/* A file or a database URL; may have a password, so the detail does not contain it. */
int wr_check_state(const char *text);
int wr_check_file(const char *text);    /* a file name and no URL; the detail does not contain it */
int wr_check_pattern(const char *text); /* a URL pattern, as for wr_scope_include */

#endif
