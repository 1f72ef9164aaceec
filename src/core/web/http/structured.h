/* SPDX-License-Identifier: MIT */
/* structured.h - parses Structured Fields (RFC 9651, and RFC 8941 before it) piece by piece.
 *
 *     struct wr_sf sf = {text};
 *     while ((more = wr_sf_member(&sf, &value)) > 0)       for a List; wr_sf_entry for a Dictionary
 *         while ((more = wr_sf_parameter(&sf, &name, &value)) > 0)
 *             ...
 *     if (more < 0)  the field is malformed: ignore all of it
 *
 * Every call returns 1 (one more), 0 (no more) or -1 (malformed: stop reading). Nothing is stored,
 * so time is linear and there is no size limit. Inner Lists count as malformed, because no field
 * that weir reads has them.
 */
#ifndef WR_CORE_WEB_HTTP_STRUCTURED_H
#define WR_CORE_WEB_HTTP_STRUCTURED_H

#include "base/span.h"

#include <stdint.h>

enum wr_sf_kind {
    WR_SF_INTEGER,
    WR_SF_DECIMAL,
    WR_SF_STRING, /* `text` is the text between the quotes, with its escapes */
    WR_SF_TOKEN,
    WR_SF_OTHER, /* Byte Sequence, Boolean, Date, Display String */
};

struct wr_sf_value {
    enum wr_sf_kind kind;
    /* an Integer, or the whole part of a Decimal, rounded towards zero: at most 15 digits */
    int64_t number;
    struct wr_span text; /* text of a String or Token */
};

struct wr_sf {
    struct wr_span rest;
    bool started;
};

/* Parses the next member of a List. All parameters of the previous member must have been read. */
int wr_sf_member(struct wr_sf *sf, struct wr_sf_value *ret_value);

/* Parses the next entry of a Dictionary. An entry without "=" is the Boolean true (WR_SF_OTHER). */
int wr_sf_entry(struct wr_sf *sf, struct wr_span *ret_name, struct wr_sf_value *ret_value);

/* Parses the next parameter of the current member or entry. */
int wr_sf_parameter(struct wr_sf *sf, struct wr_span *ret_name, struct wr_sf_value *ret_value);

#endif
