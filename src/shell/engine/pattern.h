/* SPDX-License-Identifier: MIT */
/* pattern.h - a pattern for URLs.
 *
 *     /docs/                           a text that is found anywhere in the URL
 *     https://example.org/a*           a glob for the whole URL: '*' is any text, '?' any character; all else is itself
 *     re:/[0-9]{4}/.*\.html$           a regular expression (POSIX, extended) that is found anywhere in the URL
 *
 * URLs come from strangers, so none may make a pattern slow: a pattern takes at most as many steps as it has characters
 * (or regex.h nodes) times those of the URL.
 */
#ifndef WR_SHELL_ENGINE_PATTERN_H
#define WR_SHELL_ENGINE_PATTERN_H

#include "shell/engine/regex.h"

#define WR_PATTERN_MAX 1023 /* bytes of a glob or a text */

struct wr_pattern {
    struct wr_regex *regex; /* NULL: the pattern is a glob */
    bool is_text;
    char glob[WR_PATTERN_MAX + 1]; /* or the text */
};

/* WEIR_E_INVAL, WEIR_E_NOMEM. */
int wr_pattern_init(struct wr_pattern *ret_pattern, const char *text, const weir_allocator *allocator);
void wr_pattern_release(struct wr_pattern *pattern);

/* `url` is terminated. Any thread. */
bool wr_pattern_fits(const struct wr_pattern *pattern, const char *url);

#endif
