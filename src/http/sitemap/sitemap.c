/* SPDX-License-Identifier: MIT */
/* sitemap.c - the sitemap reader: detects the format, reads lists of URLs, sets limits. */
#include "http/sitemap/sitemap.h"

#include "base/alloc.h"
#include "base/ascii.h"
#include "http/sitemap/sitemap_reader.h"
#include "limiter/memory/memory.h"

#define INPUT_MAX ((size_t)1 << 30) /* bytes at a time, because zlib and libxml2 count in 32 bits */

const char *wr_sitemap_end_text(enum wr_sitemap_end end)
{
    static const char *const texts[] = {
#define X(name, text) text,
        WR_SITEMAP_ENDS(X)
#undef X
    };
    return texts[end];
}

void wr_sitemap_stop(struct wr_sitemap *sitemap, enum wr_sitemap_end end)
{
    if (sitemap->end == WR_SITEMAP_UNFINISHED)
        sitemap->end = end;
}

/* ---- entries --------------------------------------------------------------------------------- */

void wr_sitemap_text_add(struct wr_sitemap_text *text, char *memory, size_t room, const void *data, size_t bytes)
{
    if (bytes > room - text->bytes) {
        text->is_long = true;
        return;
    }
    memcpy(memory + text->bytes, data, bytes);
    text->bytes += bytes;
}

static bool is_blank_char(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct wr_span wr_sitemap_trim(struct wr_span text)
{
    while (text.bytes > 0 && is_blank_char(text.data[0]))
        text = wr_span_after(text, 1);
    while (text.bytes > 0 && is_blank_char(text.data[text.bytes - 1]))
        text.bytes--;
    return text;
}

static void report_valid_entry(struct wr_sitemap *sitemap, struct wr_span url, bool is_index)
{
    struct wr_sitemap_entry entry = {.url = url, .lastmod_ms = WR_SITEMAP_NO_DATE, .is_index = is_index};
    if (!sitemap->date.is_long)
        entry.lastmod_ms = wr_sitemap_date((struct wr_span){sitemap->date_text, sitemap->date.bytes}, &entry.is_day);
    if (sitemap->facts.entries == sitemap->options.entries_max) {
        wr_sitemap_stop(sitemap, WR_SITEMAP_TOO_MANY_ENTRIES);
        return;
    }
    sitemap->facts.entries++;
    if (!sitemap->options.found(sitemap->options.context, &entry))
        wr_sitemap_stop(sitemap, WR_SITEMAP_STOPPED);
}

void wr_sitemap_report_entry(struct wr_sitemap *sitemap, bool is_index)
{
    struct wr_span url = wr_sitemap_trim((struct wr_span){sitemap->url_text, sitemap->url.bytes});
    if (sitemap->end != WR_SITEMAP_UNFINISHED)
        return;
    if (url.bytes == 0 || url.bytes > WR_URL_MAX || sitemap->url.is_long || sitemap->is_bad)
        sitemap->facts.left_out++;
    else
        report_valid_entry(sitemap, url, is_index);
    sitemap->url = sitemap->date = (struct wr_sitemap_text){0};
    sitemap->is_bad = false;
}

/* ---- lists of URLs --------------------------------------------------------------------------- */

static bool is_http(struct wr_span text)
{
    return (text.bytes > 7 && wr_ascii_same(text.data, "http://", 7)) ||
           (text.bytes > 8 && wr_ascii_same(text.data, "https://", 8));
}

static void end_url_line(struct wr_sitemap *sitemap)
{
    struct wr_span line = wr_sitemap_trim((struct wr_span){sitemap->url_text, sitemap->url.bytes});
    sitemap->is_bad = !is_http(line);
    if (line.bytes > 0 || sitemap->url.is_long)
        wr_sitemap_report_entry(sitemap, false);
    sitemap->url = (struct wr_sitemap_text){0};
}

static void read_url_lines(struct wr_sitemap *sitemap, struct wr_span data)
{
    while (data.bytes > 0 && sitemap->end == WR_SITEMAP_UNFINISHED) {
        size_t end = wr_span_find(data, '\n');
        wr_sitemap_text_add(&sitemap->url, sitemap->url_text, sizeof sitemap->url_text, data.data, end);
        if (end == data.bytes)
            return;
        end_url_line(sitemap);
        data = wr_span_after(data, end + 1);
    }
}

/* ---- format ---------------------------------------------------------------------------------- */

static bool is_mark(char c)
{
    return c == '\xef' || c == '\xbb' || c == '\xbf';
}

static bool begins_xml(char c)
{
    return c == '<' || c == '\xff' || c == '\xfe' || c == '\0';
}

/* Finds the format by the first byte that is not blank and not part of UTF-8's byte order mark. A
 * byte order mark of UTF-16 means XML. Returns the rest. */
static struct wr_span detect_format(struct wr_sitemap *sitemap, struct wr_span data)
{
    while (data.bytes > 0 && (is_blank_char(data.data[0]) || is_mark(data.data[0])))
        data = wr_span_after(data, 1);
    if (data.bytes > 0) {
        sitemap->form = begins_xml(data.data[0]) ? WR_SITEMAP_FORMAT_XML : WR_SITEMAP_FORMAT_LINES;
        sitemap->is_wide = data.data[0] != '<';
    }
    return data;
}

void wr_sitemap_read_plain(struct wr_sitemap *sitemap, struct wr_span data)
{
    uint64_t left = sitemap->options.bytes_max - sitemap->facts.bytes;
    bool is_large = data.bytes > left;
    if (is_large)
        data.bytes = (size_t)left;
    sitemap->facts.bytes += data.bytes;
    if (sitemap->form == WR_SITEMAP_FORMAT_UNKNOWN)
        data = detect_format(sitemap, data);
    if (sitemap->form == WR_SITEMAP_FORMAT_XML)
        wr_sitemap_read_xml(sitemap, data, false);
    else if (sitemap->form == WR_SITEMAP_FORMAT_LINES)
        read_url_lines(sitemap, data);
    if (is_large)
        wr_sitemap_stop(sitemap, WR_SITEMAP_TOO_LARGE);
}

/* Reads bytes, gzipped ones until facts.bytes reaches `until`. Returns the number left. */
static size_t read_bytes(struct wr_sitemap *sitemap, struct wr_span data, uint64_t until)
{
    if (sitemap->is_gzip)
        return wr_sitemap_inflate(sitemap, data, until);
    wr_sitemap_read_plain(sitemap, data);
    return 0;
}

/* Collects the first two bytes, which show if the input is gzipped. Returns false until then. */
static bool read_lead(struct wr_sitemap *sitemap, struct wr_span *data, bool is_last)
{
    size_t room = sizeof sitemap->lead;
    if (sitemap->lead_bytes == room)
        return true;
    while (sitemap->lead_bytes < room && data->bytes > 0) {
        sitemap->lead[sitemap->lead_bytes++] = (uint8_t)data->data[0];
        *data = wr_span_after(*data, 1);
    }
    if (sitemap->lead_bytes < room && !is_last)
        return false;
    struct wr_span lead = {(const char *)sitemap->lead, sitemap->lead_bytes};
    sitemap->is_gzip = lead.bytes == room && sitemap->lead[0] == 0x1f && sitemap->lead[1] == 0x8b;
    sitemap->lead_bytes = room;
    (void)read_bytes(sitemap, lead, UINT64_MAX);
    return true;
}

bool wr_sitemap_wants_more(const struct wr_sitemap *sitemap)
{
    return sitemap->end == WR_SITEMAP_UNFINISHED;
}

bool wr_sitemap_push(struct wr_sitemap *sitemap, const char *data, size_t bytes)
{
    struct wr_span rest = {data, bytes};
    while (wr_sitemap_wants_more(sitemap) && rest.bytes > 0 && read_lead(sitemap, &rest, false)) {
        struct wr_span piece = {rest.data, rest.bytes < INPUT_MAX ? rest.bytes : INPUT_MAX};
        rest = wr_span_after(rest, piece.bytes);
        (void)read_bytes(sitemap, piece, UINT64_MAX);
    }
    return wr_sitemap_wants_more(sitemap);
}

size_t wr_sitemap_push_limited(struct wr_sitemap *sitemap, const char *data, size_t bytes, size_t plain_max)
{
    struct wr_span rest = {data, bytes};
    uint64_t until = sitemap->facts.bytes + plain_max;
    while (wr_sitemap_wants_more(sitemap) && rest.bytes > 0 && sitemap->facts.bytes < until &&
           read_lead(sitemap, &rest, false)) {
        struct wr_span piece = {rest.data, rest.bytes < WR_SITEMAP_PIECE ? rest.bytes : WR_SITEMAP_PIECE};
        rest = wr_span_after(rest, piece.bytes - read_bytes(sitemap, piece, until));
    }
    return bytes - rest.bytes;
}

/* ---- begin and end --------------------------------------------------------------------------- */

enum wr_sitemap_end wr_sitemap_finish(struct wr_sitemap *sitemap)
{
    struct wr_span nothing = {"", 0};
    if (sitemap->end == WR_SITEMAP_UNFINISHED)
        (void)read_lead(sitemap, &nothing, true);
    if (sitemap->end == WR_SITEMAP_UNFINISHED && sitemap->form == WR_SITEMAP_FORMAT_LINES)
        end_url_line(sitemap);
    if (sitemap->end == WR_SITEMAP_UNFINISHED && sitemap->form == WR_SITEMAP_FORMAT_XML)
        wr_sitemap_read_xml(sitemap, nothing, true);
    if (sitemap->is_member)
        wr_sitemap_stop(sitemap, WR_SITEMAP_BROKEN);
    bool is_none = sitemap->form == WR_SITEMAP_FORMAT_UNKNOWN ||
                   (sitemap->form == WR_SITEMAP_FORMAT_LINES && sitemap->facts.entries == 0);
    wr_sitemap_stop(sitemap, is_none ? WR_SITEMAP_NOT_A_SITEMAP : WR_SITEMAP_COMPLETE);
    return sitemap->end;
}

int wr_sitemap_new(const struct wr_sitemap_options *options, struct wr_sitemap **ret_sitemap)
{
    const weir_allocator *allocator = wr_allocator_or_system(options->allocator);
    struct wr_sitemap *sitemap = wr_alloc(allocator, sizeof *sitemap, _Alignof(struct wr_sitemap));
    if (sitemap == NULL)
        return WEIR_E_NOMEM;
    sitemap->allocator = allocator;
    sitemap->options = *options;
    if (options->bytes_max == 0)
        sitemap->options.bytes_max = WR_SITEMAP_BYTES_MAX;
    if (options->entries_max == 0)
        sitemap->options.entries_max = WR_SITEMAP_ENTRIES_MAX;
    *ret_sitemap = sitemap;
    return 0;
}

const struct wr_sitemap_counts *wr_sitemap_counts(const struct wr_sitemap *sitemap)
{
    return &sitemap->facts;
}

void wr_sitemap_free(struct wr_sitemap *sitemap)
{
    if (sitemap == NULL)
        return;
    wr_sitemap_xml_release(sitemap);
    (void)inflateEnd(&sitemap->stream); /* allowed even if it was never initialised */
    wr_free(sitemap->allocator, sitemap, sizeof *sitemap, _Alignof(struct wr_sitemap));
}
