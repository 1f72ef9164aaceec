/* SPDX-License-Identifier: MIT */
/* sitemap_reader.h - the state that the parts of the sitemap reader share.
 *
 *     bytes --> sitemap.c --> inflate.c --> sitemap.c: which format? --> xml.c or lines --> found()
 *                   +------ not gzipped -------^
 */
#ifndef WR_HTTP_SITEMAP_SITEMAP_READER_H
#define WR_HTTP_SITEMAP_SITEMAP_READER_H

#include "core/web/url/url.h"
#include "http/sitemap/sitemap.h"

#include <libxml/parser.h>
#include <zlib.h>

#define WR_SITEMAP_DATE_ROOM 64
#define WR_SITEMAP_REFERENCE_ROOM 32
#define WR_SITEMAP_PIECE 8192 /* bytes that are inflated or parsed at a time */

/* A text that is assembled from pieces. A piece that does not fit makes it too long. */
struct wr_sitemap_text {
    size_t bytes;
    bool is_long;
};

enum wr_sitemap_format {
    WR_SITEMAP_FORMAT_UNKNOWN,
    WR_SITEMAP_FORMAT_XML,
    WR_SITEMAP_FORMAT_LINES,
};

enum wr_sitemap_field {
    WR_SITEMAP_FIELD_NONE,
    WR_SITEMAP_FIELD_URL,
    WR_SITEMAP_FIELD_DATE,
};

struct wr_sitemap {
    struct wr_sitemap_options options;
    const weir_allocator *allocator;
    struct wr_sitemap_counts facts;
    enum wr_sitemap_end end;
    enum wr_sitemap_format form;
    /* State of decompression: */
    uint8_t lead[2]; /* the first two bytes, which show whether it is gzipped */
    size_t lead_bytes;
    bool is_gzip, is_member; /* is_member: inside a gzip member */
    z_stream stream;
    /* State of the XML parser: */
    xmlParserCtxt *parser;
    bool is_wide; /* the text is UTF-16 */
    /* '&' and what follows, until it is known whether it is a reference */
    char reference[WR_SITEMAP_REFERENCE_ROOM];
    size_t reference_bytes;
    const struct wr_sitemap_document_kind *kind; /* kind of document; NULL: before the root element */
    const xmlChar *space;                        /* namespace of the root element; NULL: none */
    unsigned depth;
    uint16_t spaces[WR_SITEMAP_DEPTH_MAX + 1]; /* open namespaces at each depth; depth 0 has none */
    bool is_entry;                             /* the parser is inside an entry */
    bool is_bad;                               /* the entry or line is broken */
    enum wr_sitemap_field field;
    /* Texts of the current entry or line: */
    struct wr_sitemap_text url, date;
    char url_text[WR_URL_ROOM], date_text[WR_SITEMAP_DATE_ROOM];
};

/* Ends the reading with this result, unless it has ended. */
void wr_sitemap_stop(struct wr_sitemap *sitemap, enum wr_sitemap_end end);

/* Appends to a text that is kept in `memory` of `room` bytes. */
void wr_sitemap_text_add(struct wr_sitemap_text *text, char *memory, size_t room, const void *data, size_t bytes);

/* Returns the text without surrounding blanks and line ends. */
struct wr_span wr_sitemap_trim(struct wr_span text);

/* Reports the collected entry if it is valid, then starts a new one. */
void wr_sitemap_report_entry(struct wr_sitemap *sitemap, bool is_index);

/* Reads uncompressed text. */
void wr_sitemap_read_plain(struct wr_sitemap *sitemap, struct wr_span data);

/* inflate.c. Reads gzipped bytes until facts.bytes reaches `until`. Returns how many bytes were
 * left unread. */
size_t wr_sitemap_inflate(struct wr_sitemap *sitemap, struct wr_span data, uint64_t until);

/* xml.c */
void wr_sitemap_read_xml(struct wr_sitemap *sitemap, struct wr_span data, bool is_last);
void wr_sitemap_xml_release(struct wr_sitemap *sitemap);

/* date.c. Parses a W3C datetime (2026, 2026-11, 2026-11-15, 2026-11-15T10:30Z, ...) or a date by
 * RFC 822, as in feeds. Returns ms since 1970, or WR_SITEMAP_NO_DATE if it is neither. A date
 * without a time is its first moment in UTC; *ret_is_day is true if it is a day. */
int64_t wr_sitemap_date(struct wr_span text, bool *ret_is_day);

#endif
