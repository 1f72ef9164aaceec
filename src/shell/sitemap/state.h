/* SPDX-License-Identifier: MIT */
/* state.h - what the parts of a sitemap's reader share.
 *
 *     bytes ──▶ sitemap.c ──▶ inflate.c ──▶ sitemap.c: what is it? ──▶ xml.c or lines ──▶ found()
 *                    └──── not gzipped ────────▲
 */
#ifndef WR_SHELL_SITEMAP_STATE_H
#define WR_SHELL_SITEMAP_STATE_H

#include "core/rules/url/url.h"
#include "shell/sitemap/sitemap.h"

#include <libxml/parser.h>
#include <zlib.h>

#define WR_SITEMAP_DATE_ROOM 64
#define WR_SITEMAP_REFERENCE_ROOM 32
#define WR_SITEMAP_PIECE 8192 /* bytes that are inflated or parsed at a time */

/* A text that is put together from pieces; what does not fit makes it too long. */
struct wr_sitemap_text {
    size_t bytes;
    bool is_long;
};

enum wr_sitemap_form {
    WR_FORM_UNKNOWN,
    WR_FORM_XML,
    WR_FORM_LINES,
};

enum wr_sitemap_field {
    WR_FIELD_NONE,
    WR_FIELD_URL,
    WR_FIELD_DATE,
};

struct wr_sitemap {
    struct wr_sitemap_options options;
    const weir_allocator *allocator;
    struct wr_sitemap_facts facts;
    enum wr_sitemap_end end;
    enum wr_sitemap_form form;
    /* gzip */
    uint8_t lead[2]; /* the first bytes, which tell */
    size_t lead_bytes;
    bool is_gzip, is_member; /* within a member of it */
    z_stream stream;
    /* XML */
    xmlParserCtxt *parser;
    bool is_wide;                              /* UTF-16 */
    char reference[WR_SITEMAP_REFERENCE_ROOM]; /* '&' and what follows, until it is seen whether it is one */
    size_t reference_bytes;
    const struct wr_sitemap_kind *kind; /* NULL: before the root element */
    const xmlChar *space;               /* the root's namespace; NULL: none */
    unsigned depth;
    uint16_t spaces[WR_SITEMAP_DEPTH_MAX + 1]; /* namespaces that are open, of each depth; the first is 0 */
    bool is_entry;                             /* within one */
    bool is_bad;                               /* which is broken */
    enum wr_sitemap_field field;
    /* The entry, or the line. */
    struct wr_sitemap_text url, date;
    char url_text[WR_URL_ROOM], date_text[WR_SITEMAP_DATE_ROOM];
};

/* Ends it, unless it has ended. */
void wr_sitemap_stop(struct wr_sitemap *sitemap, enum wr_sitemap_end end);

/* Appends to a text in `memory` of `room` bytes. */
void wr_sitemap_text_add(struct wr_sitemap_text *text, char *memory, size_t room, const void *data, size_t bytes);

/* Without blanks and line ends around it. */
struct wr_span wr_sitemap_trim(struct wr_span text);

/* Tells what has been gathered, if it is an entry; and begins anew. */
void wr_sitemap_tell(struct wr_sitemap *sitemap, bool is_index);

/* Of the text as it is, not gzipped any more. */
void wr_sitemap_plain(struct wr_sitemap *sitemap, struct wr_span data);

/* inflate.c */
/* Until there were so many bytes of text in all. Returns how many of the data were not read then. */
size_t wr_sitemap_inflate(struct wr_sitemap *sitemap, struct wr_span data, uint64_t until);

/* xml.c */
void wr_sitemap_xml(struct wr_sitemap *sitemap, struct wr_span data, bool is_last);
void wr_sitemap_xml_release(struct wr_sitemap *sitemap);

/* date.c: a W3C datetime (2026, 2026-11, 2026-11-15, 2026-11-15T10:30Z, …) or one of RFC 822 as feeds have it, in ms
 * since 1970. A date without time is its first moment, in UTC; *ret_is_day if it is a day. WR_SITEMAP_NO_DATE: it is
 * none. */
int64_t wr_sitemap_date(struct wr_span text, bool *ret_is_day);

#endif
