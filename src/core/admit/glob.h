/* SPDX-License-Identifier: MIT */
/* glob.h - patterns that select the paths, hosts and values to which a rule applies.
 *
 *     /login            exactly this path
 *     /v?/users/me*     '?' is one character, '*' any number, but never a '/'
 *     **.css            all paths with this suffix
 *
 * "/api/" with two stars after it is /api and all paths below it. In hosts and values, where '/'
 * has no meaning, '*' matches any characters. A comparison takes at most as many steps as the
 * text's length times the pattern's. All comparisons of one request share a budget of steps.
 */
#ifndef WR_CORE_ADMIT_GLOB_H
#define WR_CORE_ADMIT_GLOB_H

#include "base/span.h"

enum wr_glob_kind {
    WR_GLOB_EXACT,
    WR_GLOB_BELOW, /* text is the pattern without "**"; it ends with '/' */
    WR_GLOB_BEGIN, /* text is the pattern without the stars at its end */
    WR_GLOB_END,   /* text is the pattern without the stars before it */
    WR_GLOB_STARS,
};

struct wr_glob {
    enum wr_glob_kind kind;
    char stop; /* the character that '*' does not match; '\0': it matches all */
    struct wr_span text;
};

/* Parse a pattern, which refers to the given text: the text must outlive it. Return 0, or
 * WEIR_E_INVAL with a message. */
int wr_glob_parse_path(const char *path, struct wr_glob *ret_pattern);
int wr_glob_parse_host(const char *host, struct wr_glob *ret_pattern);
int wr_glob_parse_value(const char *value, struct wr_glob *ret_pattern);

/* Returns the set of WR_LOOSE_... that change which paths match, because the pattern has capitals
 * or a '/' at its end. A request for "/login" must then be read in these ways too, or it would
 * bypass a rule for "/Login". */
unsigned wr_glob_varies(const struct wr_glob *pattern);

/* Returns true if `text` matches. `loose` is how the text was read (path.h): WR_LOOSE_CASE ignores
 * case, WR_LOOSE_END ignores a '/' at the end of a path pattern. Subtracts its steps from *steps.
 * If they do not suffice, *steps becomes 0 and the result is meaningless. */
bool wr_glob_fits(const struct wr_glob *pattern, struct wr_span text, unsigned loose, uint32_t *steps);

/* Subtracts `count` from *steps, down to 0. Returns false if no steps are left. */
static inline bool wr_steps_take(uint32_t *steps, size_t count)
{
    *steps = *steps > count ? *steps - (uint32_t)count : 0;
    return *steps > 0;
}

#endif
