/* SPDX-License-Identifier: MIT */
/* check.h - texts of options that must be something: 0, or WEIR_E_INVAL with a detail that says what would be right. */
#ifndef WR_CLI_KIT_CHECK_H
#define WR_CLI_KIT_CHECK_H

int wr_check_rate(const char *text);     /* a number of starts a second */
int wr_check_contact(const char *text);  /* a URL or a mail address, or nothing */
int wr_check_header(const char *text);   /* "Name: value"; may be a secret, and is not in the detail */
int wr_check_statuses(const char *text); /* "403=permanent,500=done" */
int wr_check_proxy(const char *text);
int wr_check_state(const char *text);   /* a file, or a database; may have a password, which is not in the detail */
int wr_check_file(const char *text);    /* and no database; the same */
int wr_check_pattern(const char *text); /* of URLs, as wr_scope_include takes it */

#endif
