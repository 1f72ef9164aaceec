/* SPDX-License-Identifier: MIT */
/* pattern.c - a pattern for URLs. */
#include "shell/engine/pattern.h"

#include <stddef.h>
#include <string.h>

#include "base/ascii.h"
#include "base/error.h"

#define REGEX_SIGN "re:"
#define REPEATS_MAX 1000 /* the counts of "{…}" multiplied: each is a copy of what it repeats */

static int refuse(const char *text, const char *wrong, const char *right)
{
    return wr_invalid_text("pattern", text, strlen(text), wrong, WR_NOWHERE, right);
}

/* Multiplies *repeats by the largest number between here and the '}'. */
static void count_repeats(const char *at, unsigned long *repeats)
{
    unsigned long most = 1, number = 0;
    for (; *at != '\0' && *at != '}'; at++) {
        number = wr_ascii_is_digit(*at) ? number * 10 + (unsigned long)(*at - '0') : 0;
        number = number > REPEATS_MAX ? REPEATS_MAX + 1 : number;
        most = number > most ? number : most;
    }
    *repeats = *repeats * most > REPEATS_MAX ? REPEATS_MAX + 1 : *repeats * most;
}

static int check_regex(const char *text)
{
    unsigned long repeats = 1;
    if (strlen(text) > WR_PATTERN_REGEX_MAX)
        return refuse(text, "too long", "a regular expression has at most 255 bytes");
    if (text[0] == '\0')
        return refuse(text, "nothing after \"re:\"", "a regular expression follows it");
    for (const char *at = text; *at != '\0'; at++) {
        if (at[0] == '\\' && at[1] >= '1' && at[1] <= '9')
            return refuse(text, "refers back", "\\1 and the like would let a URL take for ever");
        if (at[0] == '\\' && at[1] != '\0')
            at++;
        else if (at[0] == '{')
            count_repeats(at + 1, &repeats);
    }
    if (repeats > REPEATS_MAX)
        return refuse(text, "repeats too much", "the counts in {} may be 1000, multiplied with each other");
    return 0;
}

static int init_regex(struct wr_pattern *pattern, const char *text)
{
    char why[128];
    if (check_regex(text) != 0)
        return WEIR_E_INVAL;
    int error = regcomp(&pattern->regex, text, REG_EXTENDED | REG_NOSUB);
    pattern->is_regex = error == 0;
    if (error == 0)
        return 0;
    if (error == REG_ESPACE)
        return WEIR_E_NOMEM;
    (void)regerror(error, NULL, why, sizeof why);
    return refuse(text, why, "it must be an extended regular expression, see regex(7)");
}

/* Whether the glob's beginning is one that a URL with this scheme can have. */
static bool can_begin(const char *glob, const char *scheme)
{
    for (; *scheme != '\0' && *glob != '*'; scheme++, glob++)
        if (*glob == '\0' || (*glob != '?' && *glob != *scheme))
            return false;
    return true;
}

int wr_pattern_init(struct wr_pattern *ret_pattern, const char *text)
{
    size_t bytes = strlen(text);
    ret_pattern->is_regex = ret_pattern->is_text = false;
    if (strncmp(text, REGEX_SIGN, sizeof REGEX_SIGN - 1) == 0)
        return init_regex(ret_pattern, text + sizeof REGEX_SIGN - 1);
    if (bytes == 0)
        return refuse(text, "empty", "it must be one like https://example.org/docs/*");
    if (bytes > WR_PATTERN_MAX)
        return refuse(text, "too long", "a pattern has at most 1023 bytes");
    ret_pattern->is_text = strpbrk(text, "*?") == NULL;
    if (!ret_pattern->is_text && !can_begin(text, "http://") && !can_begin(text, "https://"))
        return refuse(text, "fits no URL",
                      "with * or ? it is for the whole URL: put a * in front, or the scheme and host");
    memcpy(ret_pattern->glob, text, bytes + 1);
    return 0;
}

void wr_pattern_release(struct wr_pattern *pattern)
{
    if (pattern->is_regex)
        regfree(&pattern->regex);
    pattern->is_regex = false;
}

/* Only the last '*' is ever tried again: what stood before it has found the earliest place that it could. */
static bool glob_fits(const char *glob, const char *text)
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

bool wr_pattern_fits(const struct wr_pattern *pattern, const char *url)
{
    if (pattern->is_regex)
        return regexec(&pattern->regex, url, 0, NULL, 0) == 0;
    return pattern->is_text ? strstr(url, pattern->glob) != NULL : glob_fits(pattern->glob, url);
}
