/* SPDX-License-Identifier: MIT */
/* scan.c - turns text into tags: the tokenisation of the HTML standard (13.2.5), one function per
 * state.
 *
 *     text -'<'-> tag open --> tag name --> before attribute <------------+
 *      ^                          |            |  |                       |
 *      |                          |            |  attribute -'='-> value -'
 *      `------------ '>' ---------+------------'
 *
 * outside_tag.c handles comments, CDATA sections and raw text.
 *
 * A state function gets the bytes from `at` to `end`, at least one, and returns where it stopped:
 * at `end`, or where another state continues. All memory of earlier bytes is in `links`, so pages
 * may be split anywhere.
 */
#include "core/web/links/scan.h"

#include "base/ascii.h"
#include "core/web/links/html_text.h"

/* Classes of bytes that delimit names and values in a tag. */
enum {
    SPACE = 1,
    SLASH = 2,
    MORE = 4, /* the byte '>' */
    EQUALS = 8,
};

static const uint8_t classes[256] = {
    ['\t'] = SPACE, ['\n'] = SPACE, ['\f'] = SPACE, ['\r'] = SPACE,
    [' '] = SPACE,  ['/'] = SLASH,  ['>'] = MORE,   ['='] = EQUALS,
};

static bool is_class(char c, unsigned any)
{
    return (classes[(uint8_t)c] & any) != 0;
}

static const char *skip_tag_spaces(const char *at, const char *end)
{
    while (at < end && is_class(*at, SPACE))
        at++;
    return at;
}

/* Reads a name of one to eight letters at once, up to a byte of the classes `stops`. Returns NULL,
 * with the name unchanged, if it is another name or does not end before `end`. */
static inline const char *take_letters(struct wr_links_name *name, const char *at, const char *end, unsigned stops)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t word;

    if (end - at <= (ptrdiff_t)sizeof word)
        return NULL;
    memcpy(&word, at, sizeof word);
    uint64_t lower = word | 0x20 * ones, low = lower & 0x7f * ones;
    uint64_t is_letter = (low + (0x80 - 'a') * ones) & ~(low + (0x7f - 'z') * ones) & ~word;
    uint64_t others = ~is_letter & 0x80 * ones;
    unsigned bytes = others != 0 ? (unsigned)__builtin_ctzll(others) / 8 : 8;
    if (bytes == 0 || !is_class(at[bytes], stops))
        return NULL;
    *name = (struct wr_links_name){{__builtin_bswap64(lower) >> (64 - 8 * bytes), 0}, bytes};
    return at + bytes;
#else
    (void)name, (void)at, (void)end, (void)stops;
    return NULL;
#endif
}

/* Appends the bytes up to one of the classes `stops` to a name, which usually fits in one word. */
static const char *take_name(struct wr_links_name *name, const char *at, const char *end, unsigned stops)
{
    uint32_t bytes = name->bytes;
    uint64_t word = name->words[0];

    for (; at < end && !is_class(*at, stops) && bytes < 8; at++, bytes++)
        word = word << 8 | (uint8_t)wr_ascii_lower(*at);
    name->words[0] = word;
    for (; at < end && !is_class(*at, stops); at++) {
        if (bytes < 16)
            name->words[1] = name->words[1] << 8 | (uint8_t)wr_ascii_lower(*at);
        bytes += bytes <= 16; /* counts to 17 at most, which means too long */
    }
    name->bytes = bytes;
    return at;
}

/* ---- values ---------------------------------------------------------------------------------- */

static void begin_value(struct wr_links *links)
{
    links->slot = links->wanted != 0 ? (uint8_t)wr_links_slot_of(links) : WR_SLOT_NONE;
    links->is_dropped = false;
    if (links->slot != WR_SLOT_NONE)
        links->starts[links->slot] = links->used;
}

static void put_value_bytes(struct wr_links *links, const char *bytes, size_t count)
{
    if (count > sizeof links->text - links->used) {
        links->is_dropped = true;
        return;
    }
    memcpy(links->text + links->used, bytes, count);
    links->used = (uint16_t)(links->used + count);
}

/* Stores one byte that needs conversion: NUL becomes U+FFFD (13.2.5), and Latin-1 becomes UTF-8. */
static void put_converted_byte(struct wr_links *links, char byte)
{
    char bytes[4];
    uint32_t point = byte == '\0' ? 0xfffd : links->is_latin1 ? wr_latin1_point((uint8_t)byte) : (uint8_t)byte;
    bool is_point = byte == '\0' || links->is_latin1;

    put_value_bytes(links, is_point ? bytes : &byte, is_point ? wr_utf8_put(point, bytes) : 1);
}

static void put_value(struct wr_links *links, const char *at, const char *end)
{
    if (links->slot == WR_SLOT_NONE || links->is_dropped || at == end)
        return;
    if (!links->is_latin1 && memchr(at, '\0', (size_t)(end - at)) == NULL) {
        put_value_bytes(links, at, (size_t)(end - at));
        return;
    }
    for (; at < end && !links->is_dropped; at++)
        put_converted_byte(links, *at);
}

/* Ends the value of an attribute. If an attribute occurs twice, the first one counts:
 * wr_links_slot_of returns no slot for the second. */
static void end_value(struct wr_links *links)
{
    if (links->slot == WR_SLOT_NONE)
        return;
    uint16_t start = links->starts[links->slot];
    if (links->is_dropped)
        links->used = start;
    else
        links->used = (uint16_t)(start + wr_references_decode(links->text + start, (size_t)(links->used - start)));
    links->ends[links->slot] = links->used;
    links->has |= links->is_dropped ? 0 : 1u << links->slot;
    links->wanted &= ~(1u << links->slot);
    links->slot = WR_SLOT_NONE;
}

/* ---- tags ------------------------------------------------------------------------------------ */

void wr_links_begin_tag(struct wr_links *links, bool is_end)
{
    links->name = (struct wr_links_name){{0, 0}, 0};
    links->is_end = is_end;
    links->is_closed = false;
    links->wanted = links->has = 0;
    links->used = 0;
    links->slot = WR_SLOT_NONE;
    links->state = WR_IN_TAG_NAME;
}

/* Handles the byte of class SPACE, SLASH or MORE that ends a name or a value. Returns the position
 * after it. */
static const char *end_name_or_value(struct wr_links *links, const char *at)
{
    if (*at == '>')
        wr_links_on_tag(links);
    else
        links->state = *at == '/' ? WR_IN_SELF_CLOSING : WR_BEFORE_ATTRIBUTE;
    return at + 1;
}

static const char *in_tag_open(struct wr_links *links, const char *at)
{
    if (wr_ascii_is_alpha(*at)) {
        wr_links_begin_tag(links, false);
        return at;
    }
    links->state = *at == '/'   ? WR_IN_END_TAG_OPEN
                   : *at == '!' ? WR_IN_MARKUP
                   : *at == '?' ? WR_IN_BOGUS_COMMENT
                                : WR_IN_TEXT;
    return links->state == WR_IN_TEXT ? at : at + 1;
}

static const char *in_end_tag_open(struct wr_links *links, const char *at)
{
    if (wr_ascii_is_alpha(*at)) {
        wr_links_begin_tag(links, true);
        return at;
    }
    links->state = *at == '>' ? WR_IN_TEXT : WR_IN_BOGUS_COMMENT;
    return *at == '>' ? at + 1 : at;
}

/* Skips the attributes of a tag from which nothing is wanted. Returns NULL if the tag does not end
 * before `end`. */
static const char *skip_attributes(const char *at, const char *end)
{
    while (at < end) {
        if (is_class(*at, SPACE | SLASH)) {
            at++;
            continue;
        }
        if (*at == '>')
            return at + 1;
        do
            at++; /* the first byte of a name may be '=' */
        while (at < end && !is_class(*at, SPACE | SLASH | MORE | EQUALS));
        at = skip_tag_spaces(at, end);
        if (at == end || *at != '=')
            continue;
        at = skip_tag_spaces(at + 1, end);
        if (at < end && (*at == '"' || *at == '\'')) {
            const char *quote = wr_links_find(at + 1, end, *at);
            at = quote < end ? quote + 1 : end;
            continue;
        }
        while (at < end && !is_class(*at, SPACE | MORE))
            at++;
    }
    return NULL;
}

/* Scans up to an attribute. A '=' here is the first byte of its name. */
static const char *before_attribute(struct wr_links *links, const char *at, const char *end)
{
    at = skip_tag_spaces(at, end);
    if (at == end)
        return end;
    if (is_class(*at, SLASH | MORE))
        return end_name_or_value(links, at);
    links->attribute = (struct wr_links_name){{0, 0}, 0};
    links->state = WR_IN_ATTRIBUTE;
    return take_name(&links->attribute, at, at + 1, 0);
}

static const char *in_attribute(struct wr_links *links, const char *at, const char *end)
{
    at = take_name(&links->attribute, at, end, SPACE | SLASH | MORE | EQUALS);
    if (at == end)
        return end;
    begin_value(links);
    if (is_class(*at, EQUALS | SPACE)) {
        links->state = *at == '=' ? WR_BEFORE_VALUE : WR_AFTER_ATTRIBUTE;
        return at + 1;
    }
    end_value(links);
    return end_name_or_value(links, at);
}

static const char *after_attribute(struct wr_links *links, const char *at, const char *end)
{
    at = skip_tag_spaces(at, end);
    if (at == end)
        return end;
    if (*at == '=') {
        links->state = WR_BEFORE_VALUE;
        return at + 1;
    }
    end_value(links);
    links->state = WR_BEFORE_ATTRIBUTE;
    return at;
}

static const char *before_value(struct wr_links *links, const char *at, const char *end)
{
    at = skip_tag_spaces(at, end);
    if (at == end)
        return end;
    if (*at == '>') {
        end_value(links);
        return end_name_or_value(links, at);
    }
    links->state = *at == '"' ? WR_IN_VALUE_DOUBLE : *at == '\'' ? WR_IN_VALUE_SINGLE : WR_IN_VALUE_BARE;
    return links->state == WR_IN_VALUE_BARE ? at : at + 1;
}

static const char *in_value_quoted(struct wr_links *links, const char *at, const char *end, char quote)
{
    const char *stop = wr_links_find(at, end, quote);

    put_value(links, at, stop);
    if (stop == end)
        return end;
    end_value(links);
    links->state = WR_AFTER_VALUE;
    return stop + 1;
}

static const char *in_value_bare(struct wr_links *links, const char *at, const char *end)
{
    const char *stop = at;

    while (stop < end && !is_class(*stop, SPACE | MORE))
        stop++;
    put_value(links, at, stop);
    if (stop == end)
        return end;
    end_value(links);
    return end_name_or_value(links, stop);
}

static const char *after_value(struct wr_links *links, const char *at)
{
    if (is_class(*at, SPACE | SLASH | MORE))
        return end_name_or_value(links, at);
    links->state = WR_BEFORE_ATTRIBUTE;
    return at;
}

static const char *in_self_closing(struct wr_links *links, const char *at)
{
    links->state = WR_BEFORE_ATTRIBUTE;
    links->is_closed = *at == '>';
    return *at == '>' ? end_name_or_value(links, at) : at;
}

/* ---- fast path ------------------------------------------------------------------------------- */

/* Reads a whole attribute name="value". Returns NULL if it is anything else or incomplete. */
static const char *run_attribute(struct wr_links *links, const char *at, const char *end)
{
    at = take_letters(&links->attribute, at, end, EQUALS);
    if (at == NULL || end - at < 2 || at[1] != '"')
        return NULL;
    const char *value = at + 2, *quote = wr_links_find(value, end, '"');
    if (quote == end)
        return NULL;
    begin_value(links);
    put_value(links, value, quote);
    end_value(links);
    return quote + 1; /* WR_BEFORE_ATTRIBUTE handles the next byte like WR_AFTER_VALUE */
}

/* Runs the states of attributes in their usual order. In a loop over all states with one jump
 * table, the processor mispredicts half of the jumps. */
static const char *run_attributes(struct wr_links *links, const char *at, const char *end)
{
    while (at < end && links->state == WR_BEFORE_ATTRIBUTE) {
        at = skip_tag_spaces(at, end);
        const char *next = at < end && *at != '>' ? run_attribute(links, at, end) : NULL;
        if (next != NULL) {
            at = next;
            continue;
        }
        at = at < end ? before_attribute(links, at, end) : end;
        if (at < end && links->state == WR_IN_ATTRIBUTE)
            at = in_attribute(links, at, end);
        if (at < end && links->state == WR_BEFORE_VALUE)
            at = before_value(links, at, end);
        if (at < end && links->state == WR_IN_VALUE_DOUBLE)
            at = in_value_quoted(links, at, end, '"');
        if (at < end && links->state == WR_AFTER_VALUE)
            at = after_value(links, at);
    }
    return at;
}

static const char *in_tag_name(struct wr_links *links, const char *at, const char *end)
{
    at = take_name(&links->name, at, end, SPACE | SLASH | MORE);
    if (at == end)
        return end;
    wr_links_on_tag_name(links, wr_links_tag_of(&links->name));
    return run_attributes(links, end_name_or_value(links, at), end);
}

/* Reads a tag after '<' if its name is complete, up to its end if nothing in it matters, as in "<p
 * class=x>" or "</p>". Returns NULL if that is not possible. */
static const char *take_tag(struct wr_links *links, const char *at, const char *end)
{
    struct wr_links_name name = {{0, 0}, 0};
    bool is_end = at < end && *at == '/';
    uint64_t tag_at = links->chunk_at + (uint64_t)(at - 1 - links->chunk);

    at += is_end;
    if (at == end || !wr_ascii_is_alpha(*at))
        return NULL;
    const char *stop = take_letters(&name, at, end, SPACE | SLASH | MORE);
    if (stop == NULL)
        stop = take_name(&name, at, end, SPACE | SLASH | MORE);
    if (stop == end)
        return NULL;
    unsigned tag = wr_links_tag_of(&name);
    if (tag == 0 && links->depth == 0)
        return *stop == '>' ? stop + 1 : skip_attributes(stop, end);
    wr_links_begin_tag(links, is_end);
    links->tag_at = tag_at;
    links->name = name;
    wr_links_on_tag_name(links, tag);
    return run_attributes(links, end_name_or_value(links, stop), end);
}

static const char *in_text(struct wr_links *links, const char *at, const char *end)
{
    while (links->state == WR_IN_TEXT) {
        at = wr_links_find(at, end, '<');
        if (at == end)
            return end;
        const char *next = take_tag(links, at + 1, end);
        if (next == NULL) {
            links->tag_at = links->chunk_at + (uint64_t)(at - links->chunk);
            links->state = WR_IN_TAG_OPEN;
        }
        at = next != NULL ? next : at + 1;
    }
    return at;
}

/* ---- all states ------------------------------------------------------------------------------ */

static const char *step_in_tag(struct wr_links *links, const char *at, const char *end)
{
    switch ((enum wr_links_state)links->state) {
    case WR_IN_TEXT:
        return in_text(links, at, end);
    case WR_IN_TAG_OPEN:
        return in_tag_open(links, at);
    case WR_IN_END_TAG_OPEN:
        return in_end_tag_open(links, at);
    case WR_IN_TAG_NAME:
        return in_tag_name(links, at, end);
    case WR_BEFORE_ATTRIBUTE:
        return before_attribute(links, at, end);
    case WR_IN_ATTRIBUTE:
        return in_attribute(links, at, end);
    case WR_AFTER_ATTRIBUTE:
        return after_attribute(links, at, end);
    case WR_BEFORE_VALUE:
        return before_value(links, at, end);
    case WR_IN_VALUE_DOUBLE:
        return in_value_quoted(links, at, end, '"');
    case WR_IN_VALUE_SINGLE:
        return in_value_quoted(links, at, end, '\'');
    case WR_IN_VALUE_BARE:
        return in_value_bare(links, at, end);
    case WR_AFTER_VALUE:
        return after_value(links, at);
    case WR_IN_SELF_CLOSING:
        return in_self_closing(links, at);
    default:
        return wr_links_step_outside_tag(links, at, end);
    }
}

void wr_links_scan(struct wr_links *links, const char *bytes, size_t count)
{
    const char *at = bytes, *end = bytes + count;

    links->chunk = bytes;
    while (at < end)
        at = step_in_tag(links, at, end);
    links->chunk_at += count;
    links->chunk = NULL;
}
