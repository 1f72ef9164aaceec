/* SPDX-License-Identifier: MIT */
/* xml.c - reads sitemaps and feeds in XML with libxml2's SAX interface, without building a tree.
 *
 *     urlset > url > loc, lastmod          sitemapindex > sitemap > loc, lastmod
 *     rss > channel > item > link, pubDate      feed > entry > link@href, updated
 *     RDF > item > link
 *
 * Elements count only at their depth: the <loc> of an image, two levels deeper, is ignored. Without
 * a document type nothing can define an entity, so none is ever expanded. libxml2's own limits stay
 * on (no XML_PARSE_HUGE).
 */
#include <libxml/xmlerror.h>

#include "base/ascii.h"
#include "http/sitemap/sitemap_reader.h"

#define CDATA_LEFT 512 /* bytes; libxml2 takes less only when it sees the end */

/* A kind of document. */
struct wr_sitemap_document_kind {
    const char *root, *entry, *url, *date;
    unsigned entry_depth; /* depth of entries; the root has depth 1 */
    bool is_index;
    bool has_any_space; /* entries are not in the root's namespace */
    bool is_atom;       /* the URL is an attribute */
};

static const struct wr_sitemap_document_kind kinds[] = {
    {.root = "urlset", .entry = "url", .url = "loc", .date = "lastmod", .entry_depth = 2},
    {.root = "sitemapindex", .entry = "sitemap", .url = "loc", .date = "lastmod", .entry_depth = 2, .is_index = true},
    {.root = "rss", .entry = "item", .url = "link", .date = "pubDate", .entry_depth = 3},
    {.root = "feed", .entry = "entry", .url = "link", .date = "updated", .entry_depth = 2, .is_atom = true},
    {.root = "RDF", .entry = "item", .url = "link", .date = "date", .entry_depth = 2, .has_any_space = true},
};

static void stop_xml(struct wr_sitemap *sitemap, enum wr_sitemap_end end)
{
    wr_sitemap_stop(sitemap, end);
    xmlStopParser(sitemap->parser);
}

static bool name_is(const xmlChar *name, const char *word)
{
    return name != NULL && strcmp((const char *)name, word) == 0;
}

/* ---- elements -------------------------------------------------------------------------------- */

static void open_root(struct wr_sitemap *sitemap, const xmlChar *name, const xmlChar *space)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (name_is(name, kinds[i].root))
            sitemap->kind = &kinds[i];
    sitemap->space = space;
    if (sitemap->kind == NULL)
        stop_xml(sitemap, WR_SITEMAP_NOT_A_SITEMAP);
}

static bool is_in_root_namespace(const struct wr_sitemap *sitemap, const xmlChar *space)
{
    return sitemap->kind->has_any_space || xmlStrEqual(space, sitemap->space);
}

static void add_url(struct wr_sitemap *sitemap, const void *data, size_t bytes)
{
    wr_sitemap_text_add(&sitemap->url, sitemap->url_text, sizeof sitemap->url_text, data, bytes);
}

/* Adds an attribute to the URL. libxml2 reports an '&' in an attribute as "&#38;". */
static void add_attribute(struct wr_sitemap *sitemap, struct wr_span value)
{
    while (value.bytes > 0) {
        size_t bytes = wr_span_find(value, '&');
        bool is_escaped = value.bytes - bytes >= 5 && memcmp(value.data + bytes, "&#38;", 5) == 0;
        bytes += bytes < value.bytes;
        add_url(sitemap, value.data, bytes);
        value = wr_span_after(value, is_escaped ? bytes + 4 : bytes);
    }
}

/* Reads <link rel="alternate" href="...">, the page's URL. rel is optional (RFC 4287 4.2.7.2). */
static void read_link(struct wr_sitemap *sitemap, int count, const xmlChar **attributes)
{
    struct wr_span href = {NULL, 0}, rel = wr_span_of("alternate");
    /* attributes are name, prefix, namespace, value and its end */
    for (int i = 0; i < count; i++, attributes += 5) {
        struct wr_span value = {(const char *)attributes[3], (size_t)(attributes[4] - attributes[3])};
        if (name_is(attributes[0], "href"))
            href = value;
        else if (name_is(attributes[0], "rel"))
            rel = value;
    }
    if (wr_span_is(rel, "alternate") && sitemap->url.bytes == 0)
        add_attribute(sitemap, href);
}

static void open_field(struct wr_sitemap *sitemap, const xmlChar *name, int count, const xmlChar **attributes)
{
    const struct wr_sitemap_document_kind *kind = sitemap->kind;
    if (name_is(name, kind->url) && kind->is_atom)
        read_link(sitemap, count, attributes);
    else if (name_is(name, kind->url) && sitemap->url.bytes == 0)
        sitemap->field = WR_SITEMAP_FIELD_URL;
    else if (name_is(name, kind->date) && sitemap->date.bytes == 0)
        sitemap->field = WR_SITEMAP_FIELD_DATE;
}

/* Returns true if there are too many attributes or open namespaces. libxml2 compares all attributes
 * of a tag with each other, and searches all open namespaces for each element, so few bytes could
 * cost much time. The first tag with too many is still parsed, but it is shorter than
 * WR_SITEMAP_TAG_MAX. */
static bool has_too_many_attributes(struct wr_sitemap *sitemap, int spaces, int attributes)
{
    unsigned open = sitemap->spaces[sitemap->depth - 1] + (unsigned)spaces;

    sitemap->spaces[sitemap->depth] = (uint16_t)open;
    return open > WR_SITEMAP_ATTRIBUTES_MAX || attributes > WR_SITEMAP_ATTRIBUTES_MAX;
}

static void on_element_start(void *context, const xmlChar *name, const xmlChar *prefix, const xmlChar *space,
                             int space_count, const xmlChar **spaces, int count, int default_count,
                             const xmlChar **attributes)
{
    struct wr_sitemap *sitemap = context;
    (void)prefix, (void)spaces, (void)default_count;
    if (sitemap->field == WR_SITEMAP_FIELD_URL) /* a URL contains no elements */
        sitemap->is_bad = true;
    if (++sitemap->depth > WR_SITEMAP_DEPTH_MAX) {
        stop_xml(sitemap, WR_SITEMAP_TOO_DEEP);
    } else if (has_too_many_attributes(sitemap, space_count, count)) {
        stop_xml(sitemap, WR_SITEMAP_TOO_MANY_ATTRIBUTES);
    } else if (sitemap->depth == 1) {
        open_root(sitemap, name, space);
    } else if (!is_in_root_namespace(sitemap, space)) {
        return;
    } else if (sitemap->depth == sitemap->kind->entry_depth && name_is(name, sitemap->kind->entry)) {
        sitemap->is_entry = true;
        sitemap->is_bad = false;
    } else if (sitemap->is_entry && sitemap->depth == sitemap->kind->entry_depth + 1) {
        open_field(sitemap, name, count, attributes);
    }
}

static void on_element_end(void *context, const xmlChar *name, const xmlChar *prefix, const xmlChar *space)
{
    struct wr_sitemap *sitemap = context;
    (void)name, (void)prefix, (void)space;
    if (sitemap->depth == 0 || sitemap->kind == NULL)
        return;
    if (sitemap->is_entry && sitemap->depth == sitemap->kind->entry_depth) {
        sitemap->is_entry = false;
        wr_sitemap_report_entry(sitemap, sitemap->kind->is_index);
    } else if (sitemap->depth == sitemap->kind->entry_depth + 1) {
        sitemap->field = WR_SITEMAP_FIELD_NONE;
    }
    sitemap->depth--;
    if (sitemap->end != WR_SITEMAP_UNFINISHED)
        xmlStopParser(sitemap->parser);
}

/* Adds a piece of text or CDATA to the current field. */
static void on_text(void *context, const xmlChar *text, int bytes)
{
    struct wr_sitemap *sitemap = context;
    if (sitemap->field == WR_SITEMAP_FIELD_URL)
        add_url(sitemap, text, (size_t)bytes);
    else if (sitemap->field == WR_SITEMAP_FIELD_DATE)
        wr_sitemap_text_add(&sitemap->date, sitemap->date_text, sizeof sitemap->date_text, text, (size_t)bytes);
}

/* ---- document types and errors --------------------------------------------------------------- */

static void on_doctype(void *context, const xmlChar *name, const xmlChar *public_id, const xmlChar *system_id)
{
    (void)public_id, (void)system_id;
    stop_xml(context, name_is(name, "html") || name_is(name, "HTML") ? WR_SITEMAP_NOT_A_SITEMAP : WR_SITEMAP_DOCTYPE);
}

/* Marks the entry as broken if the error may concern its URL. Undeclared namespaces do no harm. */
static void on_error(void *context, xmlError *error)
{
    struct wr_sitemap *sitemap = context;
    if (error->code == XML_ERR_NO_MEMORY)
        wr_sitemap_stop(sitemap, WR_SITEMAP_NO_MEMORY);
    else if (error->level >= XML_ERR_ERROR && error->domain != XML_FROM_NAMESPACE)
        sitemap->is_bad |= sitemap->field == WR_SITEMAP_FIELD_URL || (sitemap->kind != NULL && sitemap->kind->is_atom);
}

/* ---- the parser ------------------------------------------------------------------------------ */

static bool begin_xml(struct wr_sitemap *sitemap)
{
    static const xmlSAXHandler calls = {
        .initialized = XML_SAX2_MAGIC,
        .internalSubset = on_doctype,
        .startElementNs = on_element_start,
        .endElementNs = on_element_end,
        .characters = on_text,
        .cdataBlock = on_text,
        .serror = (xmlStructuredErrorFunc)on_error,
    };
    xmlSAXHandler copy = calls; /* not const, as libxml2 requires; it copies the struct */
    xmlInitParser();
    sitemap->parser = xmlCreatePushParserCtxt(&copy, sitemap, NULL, 0, NULL);
    if (sitemap->parser != NULL &&
        xmlCtxtUseOptions(sitemap->parser, XML_PARSE_RECOVER | XML_PARSE_NONET | XML_PARSE_NOERROR |
                                               XML_PARSE_NOWARNING | XML_PARSE_IGNORE_ENC | XML_PARSE_COMPACT) >= 0)
        return true;
    wr_sitemap_stop(sitemap, WR_SITEMAP_NO_MEMORY);
    return false;
}

/* Returns how many bytes libxml2 has not parsed yet. */
static size_t unparsed_bytes(const xmlParserCtxt *parser)
{
    return parser->input != NULL ? (size_t)(parser->input->end - parser->input->cur) : 0;
}

static void parse_piece(struct wr_sitemap *sitemap, struct wr_span piece)
{
    xmlParserCtxt *parser = sitemap->parser;
    size_t before = SIZE_MAX;
    (void)xmlParseChunk(parser, piece.data, (int)piece.bytes, 0);
    /* While libxml2 sees no end of a CDATA section, it takes only some 300 bytes per call. */
    while (parser->instate == XML_PARSER_CDATA_SECTION && unparsed_bytes(parser) < before &&
           unparsed_bytes(parser) > CDATA_LEFT) {
        before = unparsed_bytes(parser);
        (void)xmlParseChunk(parser, "", 0, 0);
    }
    if (parser->instate == XML_PARSER_EOF) /* the root element has ended, or libxml2 gave up */
        wr_sitemap_stop(sitemap, sitemap->depth == 0 ? WR_SITEMAP_COMPLETE : WR_SITEMAP_BROKEN);
    else if (unparsed_bytes(parser) > WR_SITEMAP_TAG_MAX)
        stop_xml(sitemap, WR_SITEMAP_TAG_TOO_LONG);
}

static void finish_xml(struct wr_sitemap *sitemap)
{
    (void)xmlParseChunk(sitemap->parser, "", 0, 1);
    if (sitemap->kind == NULL)
        wr_sitemap_stop(sitemap, WR_SITEMAP_NOT_A_SITEMAP);
    else if (sitemap->depth > 0)
        wr_sitemap_stop(sitemap, WR_SITEMAP_BROKEN);
}

static void parse_xml(struct wr_sitemap *sitemap, struct wr_span data)
{
    while (data.bytes > 0 && sitemap->end == WR_SITEMAP_UNFINISHED) {
        size_t bytes = data.bytes < WR_SITEMAP_PIECE ? data.bytes : WR_SITEMAP_PIECE;
        parse_piece(sitemap, (struct wr_span){data.data, bytes});
        data = wr_span_after(data, bytes);
    }
}

/* ---- ampersands ------------------------------------------------------------------------------ */

/* Passes a collected reference on. If it is not one, its '&' is escaped: many sitemaps write URLs
 * with a bare '&'. */
static void end_reference(struct wr_sitemap *sitemap, bool is_one)
{
    struct wr_span text = {sitemap->reference, sitemap->reference_bytes};
    sitemap->reference_bytes = 0;
    if (!is_one && sitemap->parser->instate != XML_PARSER_CDATA_SECTION) {
        parse_xml(sitemap, wr_span_of("&amp;"));
        text = wr_span_after(text, 1);
    }
    parse_xml(sitemap, text);
}

static bool is_of_reference(char c)
{
    return c == '#' || wr_ascii_is_alnum(c);
}

/* Collects the characters that may belong to a reference. */
static struct wr_span read_reference(struct wr_sitemap *sitemap, struct wr_span data)
{
    while (data.bytes > 0 && sitemap->reference_bytes < sizeof sitemap->reference && is_of_reference(data.data[0])) {
        sitemap->reference[sitemap->reference_bytes++] = data.data[0];
        data = wr_span_after(data, 1);
    }
    if (data.bytes > 0)
        end_reference(sitemap, data.data[0] == ';' && sitemap->reference_bytes > 1);
    return data;
}

void wr_sitemap_read_xml(struct wr_sitemap *sitemap, struct wr_span data, bool is_last)
{
    if (sitemap->parser == NULL && !begin_xml(sitemap))
        return;
    while (data.bytes > 0 && sitemap->end == WR_SITEMAP_UNFINISHED) {
        if (sitemap->reference_bytes > 0) {
            data = read_reference(sitemap, data);
            continue;
        }
        size_t bytes = sitemap->is_wide ? data.bytes : wr_span_find(data, '&');
        parse_xml(sitemap, (struct wr_span){data.data, bytes});
        data = wr_span_after(data, bytes);
        if (data.bytes > 0) {
            sitemap->reference[sitemap->reference_bytes++] = '&';
            data = wr_span_after(data, 1);
        }
    }
    if (is_last && sitemap->reference_bytes > 0)
        end_reference(sitemap, false);
    if (is_last && sitemap->end == WR_SITEMAP_UNFINISHED)
        finish_xml(sitemap);
}

void wr_sitemap_xml_release(struct wr_sitemap *sitemap)
{
    if (sitemap->parser != NULL)
        xmlFreeParserCtxt(sitemap->parser);
}
