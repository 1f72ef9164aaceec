/* SPDX-License-Identifier: MIT */
/* pattern.c - matches URLs against patterns. */
#include "crawl/engine/pattern.h"

#include <stddef.h>
#include <string.h>

#include "base/error.h"

#define REGEX_SIGN "re:"

static int refuse_url_pattern(const char *text, const char *wrong, const char *right)
{
    return wr_invalid_text("pattern", text, strlen(text), wrong, WR_NOWHERE, right);
}

/* Returns true if the beginning of the glob can match a URL with this scheme. */
static bool can_match_scheme(const char *glob, const char *scheme)
{
    for (; *scheme != '\0' && *glob != '*'; scheme++, glob++)
        if (*glob == '\0' || (*glob != '?' && *glob != *scheme))
            return false;
    return true;
}

int wr_pattern_init(struct wr_pattern *ret_pattern, const char *text, const weir_allocator *allocator)
{
    size_t bytes = strlen(text);
    ret_pattern->regex = NULL;
    ret_pattern->is_text = false;
    if (strncmp(text, REGEX_SIGN, sizeof REGEX_SIGN - 1) == 0)
        return wr_regex_new(text + sizeof REGEX_SIGN - 1, allocator, &ret_pattern->regex);
    if (bytes == 0)
        return refuse_url_pattern(text, "empty", "it must be one like https://example.org/docs/*");
    if (bytes > WR_PATTERN_MAX)
        return refuse_url_pattern(text, "too long", "a pattern has at most 1023 bytes");
    ret_pattern->is_text = strpbrk(text, "*?") == NULL;
    if (!ret_pattern->is_text && !can_match_scheme(text, "http://") && !can_match_scheme(text, "https://"))
        return refuse_url_pattern(text, "matches no URL",
                                  "with * or ? it must match the whole URL: begin it with * or with scheme and host");
    memcpy(ret_pattern->glob, text, bytes + 1);
    return 0;
}

void wr_pattern_release(struct wr_pattern *pattern)
{
    wr_regex_free(pattern->regex);
    pattern->regex = NULL;
}

/* Returns true if the glob matches the text. Only the last '*' is ever retried, because the part
 * before it has matched as early as possible. */
static bool glob_matches(const char *glob, const char *text)
{
    const char *star = NULL, *tried = text;
    while (*text != '\0') {
        if (*glob == '*') {
            star = glob++;
            tried = text;
        } else if (*glob == '?' || *glob == *text) {
            glob++, text++;
        } else if (star != NULL) {
            glob = star + 1;
            text = ++tried;
        } else {
            return false;
        }
    }
    while (*glob == '*')
        glob++;
    return *glob == '\0';
}

bool wr_pattern_matches(const struct wr_pattern *pattern, const char *url)
{
    if (pattern->regex != NULL)
        return wr_regex_matches(pattern->regex, wr_span_of(url));
    return pattern->is_text ? strstr(url, pattern->glob) != NULL : glob_matches(pattern->glob, url);
}
