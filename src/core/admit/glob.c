/* SPDX-License-Identifier: MIT */
/* glob.c - parses and matches patterns with stars. */
#include "core/admit/glob.h"

#include "base/address.h"
#include "base/ascii.h"
#include "base/error.h"
#include "core/admit/host_name.h"
#include "core/admit/path.h"

static bool has_wildcard(struct wr_span text)
{
    return wr_span_find(text, '*') < text.bytes || wr_span_find(text, '?') < text.bytes;
}

static int refuse_pattern(const char *what, struct wr_span text, const char *wrong, const char *right)
{
    return wr_invalid_text(what, text.data, text.bytes, wrong, WR_NOWHERE, right);
}

static bool has_two(struct wr_span text, char c)
{
    for (size_t i = 0; i + 1 < text.bytes; i++)
        if (text.data[i] == c && text.data[i + 1] == c)
            return true;
    return false;
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* Returns true if a request path can match the pattern. Paths are compared as path.h writes them,
 * so a pattern written differently never matches. A service that decodes escapes reads "/%40me" as
 * "/@me": patterns must be decoded, except for "%2F". This check replaces wildcards and "%2F" with
 * plain characters. */
static bool is_reachable_path(struct wr_span pattern)
{
    char plain[WEIR_KEY_MAX], memory[WEIR_KEY_MAX + 1];
    size_t bytes = 0;
    struct wr_target target;
    struct wr_buf path;

    if (pattern.bytes >= sizeof plain)
        return false;
    if (pattern.data[0] != '/')
        plain[bytes++] = '/';
    for (size_t i = 0; i < pattern.bytes; i++) {
        bool is_slash = pattern.bytes - i >= 3 && memcmp(pattern.data + i, "%2F", 3) == 0;
        bool is_wild = pattern.data[i] == '*' || pattern.data[i] == '?';
        plain[bytes++] = is_slash || is_wild ? 'x' : pattern.data[i];
        i += is_slash ? 2 : 0;
    }
    struct wr_span text = {plain, bytes};
    if (has_two(text, '/') || wr_target_read(text, &target) != WEIR_FAULT_NONE)
        return false;
    wr_buf_init_fixed(&path, memory, sizeof memory);
    return wr_path_append(&path, &target, WR_LOOSE_ESCAPES) == WEIR_FAULT_NONE && path.length == bytes &&
           memcmp(path.bytes, plain, bytes) == 0;
}

/* Parses a path pattern that has two stars in a row. */
static int parse_stars(struct wr_span text, struct wr_glob *ret_pattern)
{
    bool at_start = memcmp(text.data, "**", 2) == 0;
    bool at_end = memcmp(text.data + text.bytes - 2, "**", 2) == 0;
    struct wr_span rest = {text.data + (at_start ? 2 : 0), text.bytes - 2};

    if (at_start == at_end || has_wildcard(rest))
        return refuse_pattern("path", text, "\"**\" among other wildcards",
                              "write it once, after or before plain text, as in /api/** or **.css");
    if (at_start)
        *ret_pattern = (struct wr_glob){WR_GLOB_END, '/', rest};
    else
        *ret_pattern = (struct wr_glob){rest.data[rest.bytes - 1] == '/' ? WR_GLOB_BELOW : WR_GLOB_BEGIN, '/', rest};
    return 0;
}

int wr_glob_parse_path(const char *path, struct wr_glob *ret_pattern)
{
    struct wr_span text = wr_span_of(path);
    /* A suffix pattern need not begin with '/'. */
    bool ends_free = text.bytes > 2 && memcmp(text.data, "**", 2) == 0;

    if (text.bytes == 0 || (text.data[0] != '/' && !ends_free))
        return refuse_pattern("path", text, "it does not begin with '/'", "write it as /login, /api/** or **.css");
    if (!is_reachable_path(text))
        return refuse_pattern("path", text, "no request path can match it",
                              "leave out query, fragment, \".\", \"..\", \"//\" and \"\\\"; write %XX in capitals, and "
                              "only for %2F and characters that a path must escape");
    if (has_two(text, '*'))
        return parse_stars(text, ret_pattern);
    *ret_pattern = (struct wr_glob){has_wildcard(text) ? WR_GLOB_STARS : WR_GLOB_EXACT, '/', text};
    return 0;
}

/* ---- hosts and values ------------------------------------------------------------------------ */

static bool is_normal_v6(struct wr_span text)
{
    char memory[WR_HOST_MAX + 1];
    struct wr_buf host;

    wr_buf_init_fixed(&host, memory, sizeof memory);
    return wr_host_append(&host, text) == WEIR_FAULT_NONE && wr_span_is(text, host.bytes);
}

int wr_glob_parse_host(const char *host, struct wr_glob *ret_pattern)
{
    struct wr_span text = wr_span_of(host);

    if (wr_host_without_port(text).bytes < text.bytes || (text.bytes > 0 && text.data[text.bytes - 1] == '.') ||
        (text.bytes > 0 && text.data[0] == '[' && !has_wildcard(text) && !is_normal_v6(text)))
        return refuse_pattern("host", text, "no request host can match it",
                              "leave out the port and a dot at the end, and write IPv6 as [::1]");
    for (size_t i = 0; i < text.bytes; i++) {
        char c = text.data[i];
        bool is_capital = wr_ascii_lower(c) != c;
        if (is_capital || !(wr_ascii_is_alnum(c) || strchr("-._*?:[]", c) != NULL))
            return wr_invalid_text("host", text.data, text.bytes, "not the name of a host in lower case", i,
                                   "write it as example.org or *.example.org, without a port");
    }
    return wr_glob_parse_value(host, ret_pattern);
}

int wr_glob_parse_value(const char *value, struct wr_glob *ret_pattern)
{
    struct wr_span text = wr_span_of(value);

    if (text.bytes == 0)
        return wr_invalid("the pattern is empty; write what must be there, or *");
    *ret_pattern = (struct wr_glob){has_wildcard(text) ? WR_GLOB_STARS : WR_GLOB_EXACT, '\0', text};
    return 0;
}

/* ---- matching -------------------------------------------------------------------------------- */

static inline bool same_char(char wanted, char c, unsigned loose)
{
    return wanted == c || ((loose & WR_LOOSE_CASE) != 0 && wr_ascii_lower(wanted) == wr_ascii_lower(c));
}

/* Returns true if `bytes` bytes are the same. Compares the last byte first, because it differs for
 * most pairs of a pattern and a path. */
static inline bool same_chars(const char *a, const char *b, size_t bytes, unsigned loose)
{
    if (bytes == 0 || !same_char(a[bytes - 1], b[bytes - 1], loose))
        return bytes == 0;
    return memcmp(a, b, bytes) == 0 || ((loose & WR_LOOSE_CASE) != 0 && wr_ascii_same(a, b, bytes));
}

static inline bool same_text(struct wr_span text, struct wr_span wanted, unsigned loose)
{
    return text.bytes == wanted.bytes && same_chars(text.data, wanted.data, wanted.bytes, loose);
}

static inline bool begins_with_text(struct wr_span text, struct wr_span wanted, unsigned loose)
{
    return text.bytes >= wanted.bytes && same_chars(text.data, wanted.data, wanted.bytes, loose);
}

static bool ends_with_text(struct wr_span text, struct wr_span wanted, unsigned loose)
{
    return text.bytes >= wanted.bytes &&
           same_chars(text.data + (text.bytes - wanted.bytes), wanted.data, wanted.bytes, loose);
}

/* Matches a pattern with '*' and '?'. After a mismatch only the last star needs to match one
 * character more: it can match whatever an earlier star could. */
static bool match_wildcards(struct wr_span wanted, char stop, struct wr_span text, unsigned loose, uint32_t *steps)
{
    const char *p = wanted.data, *end = p + wanted.bytes;
    const char *star = NULL;
    size_t at = 0, star_at = 0;
    uint32_t left = *steps;

    while (left > 0 && (at < text.bytes || p < end)) {
        bool is_free = at < text.bytes && (stop == '\0' || text.data[at] != stop);
        if (p < end && *p == '*') {
            star = p++;
            star_at = at;
        } else if (p < end && at < text.bytes && ((*p == '?' && is_free) || same_char(*p, text.data[at], loose))) {
            p++;
            at++;
        } else {
            if (star == NULL || star_at >= text.bytes || (stop != '\0' && text.data[star_at] == stop))
                break;
            p = star + 1;
            at = ++star_at;
        }
        left--;
    }
    *steps = left;
    return at == text.bytes && p == end;
}

/* Returns the pattern without a '/' at its end, if this reading ignores a '/' at the end of a
 * path. */
static struct wr_span without_slash(struct wr_span wanted, unsigned loose)
{
    bool is_cut = (loose & WR_LOOSE_END) != 0 && wanted.bytes > 1 && wanted.data[wanted.bytes - 1] == '/';

    return (struct wr_span){wanted.data, wanted.bytes - is_cut};
}

unsigned wr_glob_varies(const struct wr_glob *pattern)
{
    struct wr_span text = pattern->text;
    bool has_slash = pattern->kind != WR_GLOB_BELOW && without_slash(text, WR_LOOSE_END).bytes < text.bytes;
    unsigned varies = has_slash ? WR_LOOSE_END : 0;

    for (size_t i = 0; i < text.bytes; i++)
        varies |= wr_ascii_lower(text.data[i]) != text.data[i] ? WR_LOOSE_CASE : 0;
    return varies;
}

/* Charges one step per 8 bytes: comparing without case goes byte by byte, but in a tight loop. */
bool wr_glob_fits(const struct wr_glob *pattern, struct wr_span text, unsigned loose, uint32_t *steps)
{
    struct wr_span wanted = pattern->text;

    if (!wr_steps_take(steps, 1 + wanted.bytes / 8))
        return false;
    switch (pattern->kind) {
    case WR_GLOB_EXACT:
        return same_text(text, without_slash(wanted, loose), loose);
    case WR_GLOB_BELOW:
        return begins_with_text(text, wanted, loose) ||
               same_text(text, (struct wr_span){wanted.data, wanted.bytes - 1}, loose);
    case WR_GLOB_BEGIN:
        return begins_with_text(text, wanted, loose);
    case WR_GLOB_END:
        return ends_with_text(text, without_slash(wanted, loose), loose);
    case WR_GLOB_STARS:
        return match_wildcards(without_slash(wanted, loose), pattern->stop, text, loose, steps);
    }
    return false;
}
