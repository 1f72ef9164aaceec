/* SPDX-License-Identifier: MIT */
/* glob.c - patterns with stars. */
#include "core/admit/glob.h"

#include "base/address.h"
#include "base/ascii.h"
#include "base/error.h"
#include "core/admit/route.h"

static bool has_wildcard(struct wr_span text)
{
    return wr_span_find(text, '*') < text.bytes || wr_span_find(text, '?') < text.bytes;
}

static int refuse(const char *what, struct wr_span text, const char *wrong, const char *right)
{
    return wr_invalid_text(what, text.data, text.bytes, wrong, WR_NOWHERE, right);
}

/* ---- paths --------------------------------------------------------------------------------------------- */

/* Requests are compared by their path as wr_route_append writes it, so a pattern that is written otherwise would never
 * fit. Stars and question marks stand for plain characters here. */
static bool is_written_right(struct wr_span path)
{
    char plain[WEIR_KEY_MAX], memory[WEIR_KEY_MAX + 1];
    struct wr_buf route;

    if (path.bytes > sizeof plain)
        return false;
    for (size_t i = 0; i < path.bytes; i++)
        plain[i] = path.data[i] == '*' || path.data[i] == '?' ? '-' : path.data[i];
    wr_buf_init_fixed(&route, memory, sizeof memory);
    return wr_route_append(&route, (struct wr_span){plain, path.bytes}) == WEIR_FAULT_NONE &&
           route.length == path.bytes && memcmp(route.bytes, plain, path.bytes) == 0;
}

static int parse_stars(struct wr_span text, struct wr_glob *ret_pattern)
{
    bool at_start = text.bytes >= 2 && memcmp(text.data, "**", 2) == 0;
    bool at_end = text.bytes >= 2 && memcmp(text.data + text.bytes - 2, "**", 2) == 0;
    struct wr_span rest = {text.data + (at_start ? 2 : 0), text.bytes - (at_start || at_end ? 2 : 0)};

    if (at_start == at_end || has_wildcard(rest))
        return refuse("path", text, "\"**\" among other wildcards",
                      "write it once, after or before plain text, as in /api/** or **.css");
    if (at_start)
        *ret_pattern = (struct wr_glob){WR_GLOB_END, '/', rest};
    else
        *ret_pattern = (struct wr_glob){rest.data[rest.bytes - 1] == '/' ? WR_GLOB_BELOW : WR_GLOB_BEGIN, '/', rest};
    return 0;
}

static bool has_two_stars(struct wr_span text)
{
    for (size_t i = 0; i + 1 < text.bytes; i++)
        if (text.data[i] == '*' && text.data[i + 1] == '*')
            return true;
    return false;
}

int wr_glob_parse_path(const char *path, struct wr_glob *ret_pattern)
{
    struct wr_span text = wr_span_of(path);
    bool ends_free = text.bytes > 2 && memcmp(text.data, "**", 2) == 0; /* an ending need not begin with '/' */

    if (text.bytes == 0 || (text.data[0] != '/' && !ends_free))
        return refuse("path", text, "it does not begin with '/'", "write it as /login, /api/** or **.css");
    if (!ends_free && !is_written_right(text))
        return refuse(
            "path", text, "no path looks like this once it is read",
            "leave out query and fragment, \".\", \"..\" and \"//\", and write %XX in capitals and only where it "
            "must be");
    if (has_two_stars(text))
        return parse_stars(text, ret_pattern);
    *ret_pattern = (struct wr_glob){has_wildcard(text) ? WR_GLOB_STARS : WR_GLOB_EXACT, '/', text};
    return 0;
}

/* ---- hosts and values ---------------------------------------------------------------------------------- */

int wr_glob_parse_host(const char *host, struct wr_glob *ret_pattern)
{
    struct wr_span text = wr_span_of(host);

    if (wr_host_without_port(text).bytes < text.bytes || (text.bytes > 0 && text.data[text.bytes - 1] == '.'))
        return refuse("host", text, "no host looks like this once it is read",
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

/* ---- comparing ----------------------------------------------------------------------------------------- */

static bool same(struct wr_span a, struct wr_span b)
{
    return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.data, b.data, a.bytes) == 0);
}

static bool begins(struct wr_span text, struct wr_span with)
{
    return text.bytes >= with.bytes && memcmp(text.data, with.data, with.bytes) == 0;
}

static bool ends(struct wr_span text, struct wr_span with)
{
    return text.bytes >= with.bytes && memcmp(text.data + text.bytes - with.bytes, with.data, with.bytes) == 0;
}

/* After a mismatch only the last star need take one character more: what an earlier one could take, the last can take
 * as well. */
static bool glob(const struct wr_glob *pattern, struct wr_span text)
{
    const char *p = pattern->text.data, *end = p + pattern->text.bytes;
    const char *star = NULL;
    size_t at = 0, star_at = 0;

    while (at < text.bytes || p < end) {
        bool is_free = at < text.bytes && (pattern->stop == '\0' || text.data[at] != pattern->stop);
        if (p < end && *p == '*') {
            star = p++;
            star_at = at;
        } else if (p < end && at < text.bytes && ((*p == '?' && is_free) || *p == text.data[at])) {
            p++;
            at++;
        } else {
            if (star == NULL || star_at >= text.bytes || (pattern->stop != '\0' && text.data[star_at] == pattern->stop))
                return false;
            p = star + 1;
            at = ++star_at;
        }
    }
    return true;
}

bool wr_glob_fits(const struct wr_glob *pattern, struct wr_span text)
{
    struct wr_span wanted = pattern->text;

    switch (pattern->kind) {
    case WR_GLOB_EXACT:
        return same(text, wanted);
    case WR_GLOB_BELOW:
        return begins(text, wanted) || same(text, (struct wr_span){wanted.data, wanted.bytes - 1});
    case WR_GLOB_BEGIN:
        return begins(text, wanted);
    case WR_GLOB_END:
        return ends(text, wanted);
    case WR_GLOB_STARS:
        return glob(pattern, text);
    }
    return false;
}
