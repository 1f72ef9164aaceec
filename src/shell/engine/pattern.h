/* SPDX-License-Identifier: MIT */
/* pattern.h - a pattern for URLs.
 *
 *     /docs/                           a text that is found anywhere in the URL
 *     https://example.org/a*           a glob for the whole URL: '*' is any text, '?' any character; all else is itself
 *     re:/[0-9]{4}/.*\.html$           a regular expression (POSIX, extended) that is found anywhere in the URL
 *
 * URLs come from strangers, so none may make a pattern slow: a glob takes at most pattern times URL steps, and regular
 * expressions have no references back, few repetitions, and a bounded length.
 */
#ifndef WR_SHELL_ENGINE_PATTERN_H
#define WR_SHELL_ENGINE_PATTERN_H

#include <regex.h>
#include <stdbool.h>

#define WR_PATTERN_MAX 1023      /* bytes of a glob or a text */
#define WR_PATTERN_REGEX_MAX 255 /* of a regular expression */

struct wr_pattern {
    bool is_regex, is_text;
    regex_t regex;
    char glob[WR_PATTERN_MAX + 1]; /* or the text */
};

/* WEIR_E_INVAL, WEIR_E_NOMEM. */
int wr_pattern_init(struct wr_pattern *ret_pattern, const char *text);
void wr_pattern_release(struct wr_pattern *pattern);

/* `url` is terminated. Any thread. */
bool wr_pattern_fits(const struct wr_pattern *pattern, const char *url);

#endif
