/* SPDX-License-Identifier: MIT */
/* given_url.h - parses a URL from the command line. */
#ifndef WR_CLI_KIT_GIVEN_URL_H
#define WR_CLI_KIT_GIVEN_URL_H

#include "core/web/url/url.h"

/* Returns true for texts such as "example.org", "localhost:8080/a" and "[::1]"; false for
 * "mailto:x". */
bool wr_given_lacks_scheme(struct wr_span text);

/* Parses a URL, relative to `base` unless that is NULL. Returns false after printing an error that
 * begins with `what`, such as "--base ". */
bool wr_given_url(const char *what, const char *input, const struct wr_url *base, char memory[WR_URL_ROOM],
                  struct wr_url *ret_url);

#endif
