/* SPDX-License-Identifier: MIT */
/* pattern.h - patterns for URLs.
 *
 *     /docs/                    text, found anywhere in the URL
 *     https://example.org/a*    glob for the whole URL: '*' is any text, '?' any character
 *     re:/[0-9]{4}/.*\.html$    regular expression (POSIX, extended), found anywhere in the URL
 *
 * URLs are untrusted input, so none may make a pattern slow. A match takes at most as many steps as
 * the pattern has characters (or nodes, regex.h) times those of the URL.
 */
#ifndef WR_CRAWL_ENGINE_PATTERN_H
#define WR_CRAWL_ENGINE_PATTERN_H

#include "crawl/engine/regex.h"

#define WR_PATTERN_MAX 1023 /* maximum length of a glob or a text, bytes */

struct wr_pattern {
    struct wr_regex *regex; /* NULL: the pattern is a glob or a text */
    bool is_text;
    char glob[WR_PATTERN_MAX + 1]; /* the glob, or the text if `is_text` is set */
};

/* Compiles a pattern. Returns 0, WEIR_E_INVAL or WEIR_E_NOMEM. */
int wr_pattern_init(struct wr_pattern *ret_pattern, const char *text, const weir_allocator *allocator);
void wr_pattern_release(struct wr_pattern *pattern);

/* Returns true if the pattern matches the URL, which ends with a NUL. Any thread may call it. */
bool wr_pattern_matches(const struct wr_pattern *pattern, const char *url);

#endif
