/* SPDX-License-Identifier: MIT */
/* given_url.h - a URL that somebody gave on the command line. */
#ifndef WR_CLI_KIT_GIVEN_URL_H
#define WR_CLI_KIT_GIVEN_URL_H

#include "core/rules/url/url.h"

/* "example.org", "localhost:8080/a", "[::1]", but not "mailto:x". */
bool wr_given_lacks_scheme(struct wr_span text);

/* Parses it. False after a complaint that begins with `what`, such as "--base ". `base` may be NULL. */
bool wr_given_url(const char *what, const char *input, const struct wr_url *base, char memory[WR_URL_ROOM],
                  struct wr_url *ret_url);

#endif
