/* SPDX-License-Identifier: MIT */
/* glob.h - which paths, hosts and values a rule is for.
 *
 *     /login            just this
 *     /v?/users/me*     '?' is one character, '*' any number, but never a '/'
 *     **.css            all that end with it
 *
 * and "/api/" with two stars after it is /api and all below it.
 * In hosts and values, where '/' means nothing, '*' stands for anything. A comparison takes at most as many steps as
 * the text's length times the pattern's. All comparisons of one request share a budget of steps.
 */
#ifndef WR_CORE_ADMIT_GLOB_H
#define WR_CORE_ADMIT_GLOB_H

#include "base/span.h"

enum wr_glob_kind {
    WR_GLOB_EXACT,
    WR_GLOB_BELOW, /* the text without "**", which ends with '/' */
    WR_GLOB_BEGIN, /* the text without the stars at its end */
    WR_GLOB_END,   /* the text without the stars before it */
    WR_GLOB_STARS,
};

struct wr_glob {
    enum wr_glob_kind kind;
    char stop; /* what '*' does not match; '\0': nothing */
    struct wr_span text;
};

/* Keeps the text. WEIR_E_INVAL. */
int wr_glob_parse_path(const char *path, struct wr_glob *ret_pattern);
int wr_glob_parse_host(const char *host, struct wr_glob *ret_pattern);
int wr_glob_parse_value(const char *value, struct wr_glob *ret_pattern);

/* The WR_LOOSE_… that change which paths the pattern fits: it has capitals, or a '/' at its end. A request for "/login"
 * must then be read in these ways as well, or it would escape a rule for "/Login". */
unsigned wr_glob_varies(const struct wr_glob *pattern);

/* `loose`: how the text was read (path.h). With WR_LOOSE_CASE case makes no difference; with WR_LOOSE_END a '/' at
 * the end of a pattern for paths makes none. Takes its steps off *steps. If they do not suffice, *steps becomes 0 and
 * the result means nothing. */
bool wr_glob_fits(const struct wr_glob *pattern, struct wr_span text, unsigned loose, uint32_t *steps);

/* Takes `count` steps off *steps, which becomes 0 if it has no more than that. False: it has become 0. */
static inline bool wr_steps_take(uint32_t *steps, size_t count)
{
    *steps = *steps > count ? *steps - (uint32_t)count : 0;
    return *steps > 0;
}

#endif
