/* SPDX-License-Identifier: MIT */
/* tag.c - turns tags into links: which elements and attributes matter, and how the text continues
 * after a tag.
 *
 * Of the element tree only this is known: the raw text element (links->state), the number of open
 * templates, and the frames svg, math and, inside them, islands of HTML (foreignObject, desc,
 * title; mi, mo, mn, ms, mtext, annotation-xml). In svg and math, <script>, <style> and <title> are
 * not raw text, and CDATA sections exist.
 */
#include "base/ascii.h"
#include "core/web/http/field.h"
#include "core/web/links/html_text.h"
#include "core/web/links/scan.h"

/* A name of up to eight bytes as one word, the first byte highest. */
#define N1(a) ((uint64_t)(a))
#define N2(a, b) (N1(a) << 8 | (b))
#define N3(a, b, c) (N2(a, b) << 8 | (c))
#define N4(a, b, c, d) (N3(a, b, c) << 8 | (d))
#define N5(a, b, c, d, e) (N4(a, b, c, d) << 8 | (e))
#define N6(a, b, c, d, e, f) (N5(a, b, c, d, e) << 8 | (f))
#define N7(a, b, c, d, e, f, g) (N6(a, b, c, d, e, f) << 8 | (g))
#define N8(a, b, c, d, e, f, g, h) (N7(a, b, c, d, e, f, g) << 8 | (h))

enum html_tag {
    TAG_OTHER,
    TAG_A,
    TAG_AREA,
    TAG_BASE,
    TAG_FRAME,
    TAG_FRAMESET,
    TAG_IFRAME,
    TAG_IMG,
    TAG_LINK,
    TAG_META,
    TAG_SOURCE,
    TAG_TEMPLATE,
    TAG_SVG,
    TAG_MATH,
    TAG_FONT,
    TAG_ISLAND_SVG,  /* islands in svg: foreignobject, desc */
    TAG_ISLAND_MATH, /* islands in math: mi, mo, mn, ms, mtext */
    TAG_ANNOTATION,
    TAG_PLAINTEXT,
    TAG_SCRIPT, /* from here on: raw text elements */
    TAG_STYLE,
    TAG_TEXTAREA,
    TAG_TITLE,
    TAG_XMP,
    TAG_NOEMBED,
    TAG_NOFRAMES,
};

/* Kinds of frames. An island is FRAME_ISLAND plus a number for its name. */
enum {
    FRAME_SVG,
    FRAME_MATH,
    FRAME_ISLAND,
};

/* ---- names ----------------------------------------------------------------------------------- */

static enum html_tag tag_of_long(const struct wr_links_name *name)
{
    static const uint64_t foreignob = N8('f', 'o', 'r', 'e', 'i', 'g', 'n', 'o');
    static const uint64_t annotati = N8('a', 'n', 'n', 'o', 't', 'a', 't', 'i');
    static const uint64_t plaintex = N8('p', 'l', 'a', 'i', 'n', 't', 'e', 'x');

    if (name->bytes == 9 && name->words[0] == plaintex && name->words[1] == 't')
        return TAG_PLAINTEXT;
    if (name->bytes == 13 && name->words[0] == foreignob && name->words[1] == N5('b', 'j', 'e', 'c', 't'))
        return TAG_ISLAND_SVG;
    if (name->bytes == 14 && name->words[0] == annotati && name->words[1] == N6('o', 'n', '-', 'x', 'm', 'l'))
        return TAG_ANNOTATION;
    return TAG_OTHER;
}

static enum html_tag tag_of(const struct wr_links_name *name)
{
    if (name->bytes > 8)
        return tag_of_long(name);
    switch (name->words[0]) {
    case N1('a'):
        return TAG_A;
    case N4('a', 'r', 'e', 'a'):
        return TAG_AREA;
    case N4('b', 'a', 's', 'e'):
        return TAG_BASE;
    case N4('d', 'e', 's', 'c'):
        return TAG_ISLAND_SVG;
    case N4('f', 'o', 'n', 't'):
        return TAG_FONT;
    case N5('f', 'r', 'a', 'm', 'e'):
        return TAG_FRAME;
    case N8('f', 'r', 'a', 'm', 'e', 's', 'e', 't'):
        return TAG_FRAMESET;
    case N6('i', 'f', 'r', 'a', 'm', 'e'):
        return TAG_IFRAME;
    case N3('i', 'm', 'g'):
    case N5('i', 'm', 'a', 'g', 'e'): /* an alias (13.2.6.4.7: "Don't ask.") */
        return TAG_IMG;
    case N4('l', 'i', 'n', 'k'):
        return TAG_LINK;
    case N4('m', 'a', 't', 'h'):
        return TAG_MATH;
    case N4('m', 'e', 't', 'a'):
        return TAG_META;
    case N2('m', 'i'):
    case N2('m', 'n'):
    case N2('m', 'o'):
    case N2('m', 's'):
    case N5('m', 't', 'e', 'x', 't'):
        return TAG_ISLAND_MATH;
    case N7('n', 'o', 'e', 'm', 'b', 'e', 'd'):
        return TAG_NOEMBED;
    case N8('n', 'o', 'f', 'r', 'a', 'm', 'e', 's'):
        return TAG_NOFRAMES;
    case N6('s', 'c', 'r', 'i', 'p', 't'):
        return TAG_SCRIPT;
    case N6('s', 'o', 'u', 'r', 'c', 'e'):
        return TAG_SOURCE;
    case N5('s', 't', 'y', 'l', 'e'):
        return TAG_STYLE;
    case N3('s', 'v', 'g'):
        return TAG_SVG;
    case N8('t', 'e', 'm', 'p', 'l', 'a', 't', 'e'):
        return TAG_TEMPLATE;
    case N8('t', 'e', 'x', 't', 'a', 'r', 'e', 'a'):
        return TAG_TEXTAREA;
    case N5('t', 'i', 't', 'l', 'e'):
        return TAG_TITLE;
    case N3('x', 'm', 'p'):
        return TAG_XMP;
    default:
        return TAG_OTHER;
    }
}

/* Returns true for HTML elements whose start tag ends svg and math (13.2.6.5). */
static bool is_breakout(uint64_t word)
{
    static const char names[] =
        " b big blockquo body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li "
        "listing menu meta nobr ol p pre ruby s small span strong strike sub sup table tt u ul var ";
    char text[11] = " ";
    size_t bytes = 1;

    for (int shift = 56; shift >= 0; shift -= 8)
        if ((word >> shift & 0xff) != 0)
            text[bytes++] = (char)(word >> shift & 0xff);
    text[bytes] = ' ';
    text[bytes + 1] = '\0';
    return strstr(names, text) != NULL;
}

#define NAME_IS(name, first, second, count) \
    ((name)->bytes == (count) && (name)->words[0] == (first) && (name)->words[1] == (second))

static enum wr_links_slot long_attribute_slot(const struct wr_links_name *name)
{
    if (NAME_IS(name, N8('h', 't', 't', 'p', '-', 'e', 'q', 'u'), N2('i', 'v'), 10))
        return WR_SLOT_EQUIV;
    if (NAME_IS(name, N8('x', 'l', 'i', 'n', 'k', ':', 'h', 'r'), N2('e', 'f'), 10))
        return WR_SLOT_XLINK;
    if (NAME_IS(name, N8('s', 'h', 'a', 'd', 'o', 'w', 'r', 'o'), N6('o', 't', 'm', 'o', 'd', 'e'), 14))
        return WR_SLOT_FLAG;
    return WR_SLOT_NONE;
}

static enum wr_links_slot attribute_slot(const struct wr_links_name *name)
{
    if (name->bytes > 8)
        return long_attribute_slot(name);
    if (name->words[0] >> (8 * (name->bytes - 1)) == 0)
        return WR_SLOT_NONE; /* starts with NUL, which is invisible in the word */
    switch (name->words[0]) {
    case N4('h', 'r', 'e', 'f'):
        return WR_SLOT_HREF;
    case N3('s', 'r', 'c'):
        return WR_SLOT_SRC;
    case N6('s', 'r', 'c', 's', 'e', 't'):
        return WR_SLOT_SRCSET;
    case N3('r', 'e', 'l'):
        return WR_SLOT_REL;
    case N4('n', 'a', 'm', 'e'):
        return WR_SLOT_NAME;
    case N7('c', 'o', 'n', 't', 'e', 'n', 't'):
        return WR_SLOT_CONTENT;
    case N7('c', 'h', 'a', 'r', 's', 'e', 't'):
        return WR_SLOT_CHARSET;
    case N8('e', 'n', 'c', 'o', 'd', 'i', 'n', 'g'):
        return WR_SLOT_ENCODING;
    case N5('c', 'o', 'l', 'o', 'r'):
    case N4('f', 'a', 'c', 'e'):
    case N4('s', 'i', 'z', 'e'):
        return WR_SLOT_FLAG;
    default:
        return WR_SLOT_NONE;
    }
}

enum wr_links_slot wr_links_slot_of(const struct wr_links *links)
{
    enum wr_links_slot slot = attribute_slot(&links->attribute);

    return slot != WR_SLOT_NONE && (links->wanted >> slot & 1) != 0 ? slot : WR_SLOT_NONE;
}

const char *wr_links_raw_name(const struct wr_links *links)
{
    static const char *const names[] = {"script", "style", "textarea", "title", "xmp", "noembed", "noframes"};

    return links->raw_tag == TAG_IFRAME ? "iframe" : names[links->raw_tag - TAG_SCRIPT];
}

/* ---- frames ---------------------------------------------------------------------------------- */

static bool is_foreign(const struct wr_links *links)
{
    return links->depth > 0 && links->frames[links->depth - 1] < FRAME_ISLAND;
}

bool wr_links_has_cdata(const struct wr_links *links)
{
    return is_foreign(links) || (links->depth > 0 && links->is_bare_island);
}

static bool is_island_tag(enum html_tag tag)
{
    return tag == TAG_ISLAND_SVG || tag == TAG_ISLAND_MATH || tag == TAG_ANNOTATION || tag == TAG_TITLE;
}

/* Returns the frame of an island. Each name has a different one, by its last letter and whether it
 * is long. */
static uint8_t island_of(const struct wr_links_name *name)
{
    bool is_long = name->bytes > 8;

    return (uint8_t)(FRAME_ISLAND + (name->words[is_long] & 31) + (is_long ? 32 : 0));
}

/* Opens a frame. Frames beyond the maximum depth are not tracked, because real pages do not nest so
 * deep. */
static void open_frame(struct wr_links *links, uint8_t frame)
{
    if (links->depth == WR_LINKS_DEPTH_MAX)
        return;
    links->anchors[links->depth] = 0;
    links->frames[links->depth++] = frame;
}

static void close_foreign_frames(struct wr_links *links)
{
    while (is_foreign(links))
        links->depth--;
}

/* Handles </svg> and </math>, which close the innermost frame of that kind and the islands left
 * open in it. */
static void close_frame(struct wr_links *links, uint8_t frame)
{
    for (uint8_t depth = links->depth; depth > 0; depth--)
        if (links->frames[depth - 1] == frame) {
            links->depth = (uint8_t)(depth - 1);
            return;
        }
}

static bool is_island(const struct wr_links *links, enum html_tag tag)
{
    if (links->frames[links->depth - 1] == FRAME_SVG)
        return tag == TAG_ISLAND_SVG || tag == TAG_TITLE;
    if (tag != TAG_ANNOTATION)
        return tag == TAG_ISLAND_MATH;
    struct wr_span encoding = {links->text + links->starts[WR_SLOT_ENCODING],
                               (size_t)(links->ends[WR_SLOT_ENCODING] - links->starts[WR_SLOT_ENCODING])};
    return (links->has >> WR_SLOT_ENCODING & 1) != 0 &&
           (wr_field_is(encoding, "text/html") || wr_field_is(encoding, "application/xhtml+xml"));
}

/* ---- links ----------------------------------------------------------------------------------- */

static bool has_attribute(const struct wr_links *links, enum wr_links_slot slot)
{
    return (links->has >> slot & 1) != 0;
}

static struct wr_span slot_value(const struct wr_links *links, enum wr_links_slot slot)
{
    if (!has_attribute(links, slot))
        return (struct wr_span){NULL, 0};
    return (struct wr_span){links->text + links->starts[slot], (size_t)(links->ends[slot] - links->starts[slot])};
}

static void report_link(struct wr_links *links, enum wr_link_kind kind, struct wr_span url, bool nofollow)
{
    struct wr_link link = {.kind = kind, .nofollow = nofollow, .url = url, .at = links->tag_at};

    if ((links->options.kinds >> kind & 1) == 0 || links->is_full)
        return;
    links->options.found(links->options.context, &link);
    links->count++;
    links->is_full = links->options.max_links > 0 && links->count >= links->options.max_links;
    if (links->is_full)
        links->state = WR_IN_PLAIN_TEXT;
}

static bool has_word(struct wr_span list, const char *wanted)
{
    struct wr_span word;

    while (wr_words_next(&list, &word))
        if (wr_field_is(word, wanted))
            return true;
    return false;
}

/* Returns what a <link> leads to, by its rel. */
static enum wr_link_kind link_kind(struct wr_span rel)
{
    static const char *const pages[] = {"alternate", "next",  "prev",   "previous", "first",   "last",
                                        "up",        "index", "start",  "contents", "chapter", "bookmark",
                                        "section",   "help",  "author", "license",  "amphtml"};

    if (has_word(rel, "canonical"))
        return WR_LINK_CANONICAL;
    if (has_word(rel, "stylesheet"))
        return WR_LINK_RESOURCE; /* an alternate stylesheet, too */
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++)
        if (has_word(rel, pages[i]))
            return WR_LINK_HINT;
    return WR_LINK_RESOURCE;
}

static void report_anchor(struct wr_links *links, enum wr_link_kind kind, enum wr_links_slot slot)
{
    if (has_attribute(links, slot))
        report_link(links, kind, slot_value(links, slot), has_word(slot_value(links, WR_SLOT_REL), "nofollow"));
}

static void report_images(struct wr_links *links)
{
    struct wr_span list = slot_value(links, WR_SLOT_SRCSET), url;

    if (has_attribute(links, WR_SLOT_SRC))
        report_link(links, WR_LINK_IMAGE, slot_value(links, WR_SLOT_SRC), false);
    while (wr_srcset_next(&list, &url))
        report_link(links, WR_LINK_IMAGE, url, false);
}

static void report_base(struct wr_links *links)
{
    if (!has_attribute(links, WR_SLOT_HREF) || links->has_base)
        return;
    links->has_base = true;
    report_link(links, WR_LINK_BASE, slot_value(links, WR_SLOT_HREF), false);
}

/* Takes the encoding that the page declares, unless the header or a byte order mark gave one. A
 * declaration that can be read here shows that the page is not in UTF-16, whatever it says. */
static void note_charset(struct wr_links *links, struct wr_span label)
{
    if (label.bytes == 0 || links->is_certain)
        return;
    links->is_latin1 = wr_charset_of(label) == WR_CHARSET_LATIN1;
    links->is_certain = true;
}

static void report_meta(struct wr_links *links)
{
    struct wr_span equiv = slot_value(links, WR_SLOT_EQUIV), name = slot_value(links, WR_SLOT_NAME);
    struct wr_span content = slot_value(links, WR_SLOT_CONTENT), agent = links->options.agent, url;

    if (wr_field_is(equiv, "refresh") && wr_refresh_url(content, &url))
        report_link(links, WR_LINK_REFRESH, url, false);
    if (wr_field_is(equiv, "content-type"))
        note_charset(links, wr_meta_charset(content));
    note_charset(links, slot_value(links, WR_SLOT_CHARSET));
    bool is_ours = agent.bytes > 0 && name.bytes == agent.bytes && wr_ascii_same(name.data, agent.data, agent.bytes);
    if (wr_field_is(name, "robots") || is_ours)
        links->directives |= wr_robots_directives_parse(content, (struct wr_span){NULL, 0});
}

static void report_links(struct wr_links *links)
{
    switch ((enum html_tag)links->tag) {
    case TAG_A:
        report_anchor(links, WR_LINK_A, WR_SLOT_HREF);
        break;
    case TAG_AREA:
        report_anchor(links, WR_LINK_AREA, WR_SLOT_HREF);
        break;
    case TAG_LINK:
        report_anchor(links, link_kind(slot_value(links, WR_SLOT_REL)), WR_SLOT_HREF);
        break;
    case TAG_FRAME:
        if (links->has_frameset)
            report_anchor(links, WR_LINK_FRAME, WR_SLOT_SRC);
        break;
    case TAG_FRAMESET:
        links->has_frameset = true;
        break;
    case TAG_IFRAME:
        report_anchor(links, WR_LINK_FRAME, WR_SLOT_SRC);
        break;
    case TAG_IMG:
    case TAG_SOURCE:
        report_images(links);
        break;
    case TAG_BASE:
        report_base(links);
        break;
    case TAG_META:
        report_meta(links);
        break;
    default:
        break;
    }
}

/* ---- tags ------------------------------------------------------------------------------------ */

static unsigned wanted_of(const struct wr_links *links)
{
    bool images = (links->options.kinds >> WR_LINK_IMAGE & 1) != 0;

    switch ((enum html_tag)links->tag) {
    case TAG_A:
    case TAG_AREA:
    case TAG_LINK:
        return 1u << WR_SLOT_HREF | 1u << WR_SLOT_REL | (is_foreign(links) ? 1u << WR_SLOT_XLINK : 0);
    case TAG_BASE:
        return 1u << WR_SLOT_HREF;
    case TAG_IFRAME:
    case TAG_FRAME:
        return 1u << WR_SLOT_SRC;
    case TAG_IMG:
        return images ? 1u << WR_SLOT_SRC | 1u << WR_SLOT_SRCSET : 0;
    case TAG_SOURCE:
        return images ? 1u << WR_SLOT_SRCSET : 0;
    case TAG_META:
        return 1u << WR_SLOT_NAME | 1u << WR_SLOT_CONTENT | 1u << WR_SLOT_EQUIV | 1u << WR_SLOT_CHARSET;
    case TAG_TEMPLATE:
        return 1u << WR_SLOT_FLAG;
    case TAG_FONT:
        return is_foreign(links) ? 1u << WR_SLOT_FLAG : 0;
    case TAG_ANNOTATION:
        return 1u << WR_SLOT_ENCODING;
    default:
        return 0;
    }
}

unsigned wr_links_tag_of(const struct wr_links_name *name)
{
    if (name->bytes == 1) /* one letter: the most frequent case */
        return name->words[0] == 'a' ? TAG_A : TAG_OTHER;
    return tag_of(name);
}

void wr_links_on_tag_name(struct wr_links *links, unsigned tag)
{
    links->tag = (uint8_t)tag;
    if (links->tag != TAG_OTHER && !links->is_end)
        links->wanted = wanted_of(links);
}

/* Handles a start tag in svg or math. */
static void on_foreign_start_tag(struct wr_links *links)
{
    uint8_t top = (uint8_t)(links->depth - 1), frame = links->frames[top];
    enum html_tag tag = (enum html_tag)links->tag;

    if (tag == TAG_A && frame == FRAME_SVG && links->templates == 0)
        report_anchor(links, WR_LINK_A, has_attribute(links, WR_SLOT_HREF) ? WR_SLOT_HREF : WR_SLOT_XLINK);
    if (links->is_closed)
        return;
    if (tag == TAG_A) {
        links->anchors[top] = (uint8_t)(links->anchors[top] + (links->anchors[top] < UINT8_MAX));
    } else if ((tag == TAG_SVG && frame == FRAME_SVG) || (tag == TAG_MATH && frame == FRAME_MATH)) {
        open_frame(links, frame);
    } else if (is_island(links, tag)) {
        open_frame(links, island_of(&links->name));
        links->is_bare_island = true;
    }
}

static void on_template_start(struct wr_links *links)
{
    if (links->templates == 0 && has_attribute(links, WR_SLOT_FLAG))
        return; /* a declarative shadow root: its content is displayed */
    if (links->templates++ == 0)
        links->template_depth = links->depth;
}

static void on_start_tag(struct wr_links *links)
{
    enum html_tag tag = (enum html_tag)links->tag;

    if (links->templates == 0)
        report_links(links);
    if (links->is_full)
        return;
    if (tag == TAG_A) {
        links->is_in_anchor = true;
    } else if (tag == TAG_SVG || tag == TAG_MATH) {
        if (!links->is_closed)
            open_frame(links, (uint8_t)(tag == TAG_SVG ? FRAME_SVG : FRAME_MATH));
    } else if (tag == TAG_TEMPLATE) {
        on_template_start(links);
    } else if (tag >= TAG_SCRIPT || tag == TAG_IFRAME) {
        links->is_in_title = tag == TAG_TITLE && !links->has_title && links->templates == 0;
        links->has_title |= links->is_in_title;
        links->raw_tag = links->tag;
        links->escape = 0;
        links->state = tag == TAG_SCRIPT ? WR_IN_SCRIPT : WR_IN_RAW_TEXT;
    } else if (tag == TAG_PLAINTEXT) {
        links->state = WR_IN_PLAIN_TEXT;
    }
}

static bool breaks_out(const struct wr_links *links)
{
    if (links->tag == TAG_FONT)
        return has_attribute(links, WR_SLOT_FLAG);
    return (links->name.bytes <= 8 || links->name.bytes == 10) && is_breakout(links->name.words[0]);
}

static void on_template_end(struct wr_links *links)
{
    if (links->templates > 0 && --links->templates == 0)
        links->depth = links->template_depth;
}

/* Handles </a>: in svg or math it closes an <a> there, or else one outside, and svg and math with
 * it. */
static void on_anchor_end(struct wr_links *links)
{
    uint8_t *inside = links->depth > 0 ? &links->anchors[links->depth - 1] : NULL;

    if (is_foreign(links) && *inside > 0) {
        (*inside)--;
        return;
    }
    if (links->is_in_anchor)
        close_foreign_frames(links);
    links->is_in_anchor = false;
}

static void on_end_tag(struct wr_links *links)
{
    enum html_tag tag = (enum html_tag)links->tag;

    if (tag == TAG_TEMPLATE)
        on_template_end(links);
    else if (tag == TAG_A)
        on_anchor_end(links);
    else if (links->depth == 0)
        return;
    else if (tag == TAG_SVG || tag == TAG_MATH)
        close_frame(links, tag == TAG_SVG ? FRAME_SVG : FRAME_MATH);
    else if (is_foreign(links) && breaks_out(links))
        close_foreign_frames(links);
    else if (is_island_tag(tag) && links->frames[links->depth - 1] == island_of(&links->name))
        links->depth--;
}

void wr_links_on_tag(struct wr_links *links)
{
    links->state = WR_IN_TEXT;
    if (links->is_end) {
        on_end_tag(links);
        return;
    }
    if (is_foreign(links)) {
        if (!breaks_out(links)) {
            on_foreign_start_tag(links);
            return;
        }
        close_foreign_frames(links);
    }
    links->is_bare_island = false;
    if (links->tag != TAG_OTHER)
        on_start_tag(links);
}
