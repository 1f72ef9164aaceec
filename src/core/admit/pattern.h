/* SPDX-License-Identifier: MIT */
/* pattern.h - which paths, hosts and values a rule is for.
 *
 *     /login            just this
 *     /v?/users/me*     '?' is one character, '*' any number, but never a '/'
 *     **.css            all that end with it
 *
 * and "/api/" with two stars after it is /api and all below it.
 * In hosts and values, where '/' means nothing, '*' stands for anything. What strangers send is compared in time
 * proportional to its length times the pattern's.
 */
#ifndef WR_CORE_ADMIT_PATTERN_H
#define WR_CORE_ADMIT_PATTERN_H

#include "base/span.h"

enum wr_pattern_kind {
    WR_PATTERN_EXACT,
    WR_PATTERN_BELOW, /* the text without "**", which ends with '/' */
    WR_PATTERN_BEGIN, /* the text without the stars at its end */
    WR_PATTERN_END,   /* the text without the stars before it */
    WR_PATTERN_GLOB,
};

struct wr_pattern {
    enum wr_pattern_kind kind;
    char stop; /* what '*' does not match; '\0': nothing */
    struct wr_span text;
};

/* Keeps the text. WEIR_E_INVAL. */
int wr_pattern_parse_path(const char *path, struct wr_pattern *ret_pattern);
int wr_pattern_parse_host(const char *host, struct wr_pattern *ret_pattern);
int wr_pattern_parse_value(const char *value, struct wr_pattern *ret_pattern);

bool wr_pattern_fits(const struct wr_pattern *pattern, struct wr_span text);

#endif
