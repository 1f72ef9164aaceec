/* SPDX-License-Identifier: MIT */
/* structured.h - reads Structured Fields (RFC 9651, and RFC 8941 before it) one piece at a time.
 *
 *     struct wr_sf sf = {text};
 *     while ((more = wr_sf_member(&sf, &value)) > 0)               of a List; wr_sf_entry for a Dictionary
 *         while ((more = wr_sf_parameter(&sf, &name, &value)) > 0)
 *             ...
 *     if (more < 0)  the field is malformed: ignore all of it
 *
 * Every call says 1 (there is one), 0 (no more) or -1 (malformed; the rest must not be read). Nothing is stored, so
 * time is linear and there is no bound to run into. Inner Lists count as malformed: no field that we read has them.
 */
#ifndef WR_CORE_RULES_HTTP_STRUCTURED_H
#define WR_CORE_RULES_HTTP_STRUCTURED_H

#include "base/span.h"

#include <stdint.h>

enum wr_sf_kind {
    WR_SF_INTEGER,
    WR_SF_DECIMAL,
    WR_SF_STRING, /* `text` is what stands between the quotes, escapes and all */
    WR_SF_TOKEN,
    WR_SF_OTHER, /* Byte Sequence, Boolean, Date, Display String */
};

struct wr_sf_value {
    enum wr_sf_kind kind;
    int64_t number;      /* Integer, or the whole part of a Decimal, towards zero: at most 15 digits */
    struct wr_span text; /* String and Token */
};

struct wr_sf {
    struct wr_span rest;
    bool started;
};

/* The next member of a List. What is left of the last one's parameters must have been read. */
int wr_sf_member(struct wr_sf *sf, struct wr_sf_value *ret_value);

/* The next entry of a Dictionary; one without "=" is the Boolean true (WR_SF_OTHER). */
int wr_sf_entry(struct wr_sf *sf, struct wr_span *ret_name, struct wr_sf_value *ret_value);

/* The next parameter of the member or entry just read. */
int wr_sf_parameter(struct wr_sf *sf, struct wr_span *ret_name, struct wr_sf_value *ret_value);

#endif
