/* SPDX-License-Identifier: MIT */
/* links.h - finds the links of an HTML page while its bytes arrive.
 *
 *     struct wr_links links;
 *     wr_links_init(&links, &options);
 *     wr_links_feed(&links, bytes, count);        whenever bytes arrive, in pieces of any size
 *
 * This is a scanner, not a parser. It knows tags, attributes, comments, raw text and character
 * references as tokenised by the HTML standard. Of the element tree it knows only what changes the
 * tokenisation: raw text elements, templates, svg and math. It does not recurse or allocate; the
 * values of one tag are kept in a buffer until the tag ends. docs/internals/links.md lists the
 * differences to a real parser.
 *
 * Links are reported as written, with character references decoded but not resolved. The first
 * <base href> is reported like a link; it applies to all links of the page, also to earlier ones.
 *
 * The title is that of the first <title> in HTML (not in svg), even if it is empty.
 *
 * Text in UTF-16 (by its byte order mark, or the header's charset) and in Latin-1 (by the header's
 * charset or a meta element) becomes UTF-8. Any other text is taken unchanged, byte by byte.
 */
#ifndef WR_CORE_WEB_LINKS_LINKS_H
#define WR_CORE_WEB_LINKS_LINKS_H

#include "base/span.h"

#include <stdint.h>

#define WR_LINKS_VALUE_MAX                                                                     \
    8192                            /* bytes kept of the attributes of one tag; a longer value \
                                     * is dropped, and its link with it */
#define WR_LINKS_TITLE_MAX 512      /* most bytes of a title */
#define WR_LINKS_TITLE_RAW_MAX 2048 /* most bytes of a title as written, such as "&quot;" */
#define WR_LINKS_DEPTH_MAX 16       /* nesting of svg in foreignObject in svg ... */

enum wr_link_kind {
    WR_LINK_BASE,      /* the first <base href> */
    WR_LINK_A,         /* <a href>, also in svg */
    WR_LINK_AREA,      /* <area href> */
    WR_LINK_HINT,      /* <link href> to a page: rel is alternate, next, prev, ... */
    WR_LINK_RESOURCE,  /* <link href> to anything else */
    WR_LINK_CANONICAL, /* <link rel=canonical> */
    WR_LINK_FRAME,     /* <iframe src>, <frame src> */
    WR_LINK_REFRESH,   /* <meta http-equiv=refresh> */
    WR_LINK_IMAGE,     /* <img src>, and each candidate of srcset, also in <source> */
};

#define WR_LINKS_PAGES                                                                                          \
    (1u << WR_LINK_BASE | 1u << WR_LINK_A | 1u << WR_LINK_AREA | 1u << WR_LINK_HINT | 1u << WR_LINK_CANONICAL | \
     1u << WR_LINK_FRAME | 1u << WR_LINK_REFRESH)
#define WR_LINKS_ALL (WR_LINKS_PAGES | 1u << WR_LINK_RESOURCE | 1u << WR_LINK_IMAGE)

struct wr_link {
    enum wr_link_kind kind;
    bool nofollow;      /* rel=nofollow */
    struct wr_span url; /* may be empty; valid during the call */
    /* offset of the tag in the page, bytes; in UTF-8 if the page is in UTF-16 */
    uint64_t at;
};

typedef void wr_links_found(void *context, const struct wr_link *link);

struct wr_links_options {
    unsigned kinds; /* link kinds to report, a set of 1 << kind */
    /* most links to report, then the rest of the page is ignored; 0: no limit */
    uint32_t max_links;
    struct wr_span charset; /* charset of the Content-Type field, or empty */
    /* product token whose <meta name=AGENT> counts like robots, or empty; must stay valid */
    struct wr_span agent;
    wr_links_found *found;
    void *context;
};

/* Attributes whose values are kept. */
enum wr_links_slot {
    WR_SLOT_HREF,
    WR_SLOT_SRC,
    WR_SLOT_SRCSET,
    WR_SLOT_REL,
    WR_SLOT_NAME,
    WR_SLOT_CONTENT,
    WR_SLOT_EQUIV,
    WR_SLOT_CHARSET,
    WR_SLOT_ENCODING,
    WR_SLOT_XLINK,
    WR_SLOT_FLAG, /* only its presence matters */
    WR_SLOTS,
    WR_SLOT_NONE = WR_SLOTS,
};

/* A name of up to 16 bytes in lower case, eight bytes per word. Longer names equal no known
 * name. */
struct wr_links_name {
    uint64_t words[2];
    uint32_t bytes;
};

/* The scanner state. The caller provides the memory; members are private unless noted. */
struct wr_links {
    struct wr_links_options options;
    unsigned directives; /* directives of <meta name=robots>, a set of wr_robots_directive; public */
    uint32_t count;      /* links reported so far; public */
    bool is_full;        /* max_links was reached; public */

    /* Decoding of bytes to text. */
    uint8_t coding;     /* encoding: enum coding of links.c */
    uint8_t held_bytes; /* bytes of a possible byte order mark, or of half a UTF-16 unit */
    uint8_t held[3];
    /* the text is Latin-1; the encoding is final, meta elements are ignored */
    bool is_latin1, is_certain;
    uint32_t surrogate; /* first half of a surrogate pair, or 0 */
    const char *chunk;
    uint64_t chunk_at;

    /* Position in the text. */
    uint8_t state;
    uint8_t dashes;   /* consecutive dashes or brackets just read */
    uint8_t escape;   /* escape level of script data: 0, 1 (escaped), 2 (doubly escaped) */
    uint8_t raw_tag;  /* element whose end tag ends the raw text */
    uint32_t matched; /* bytes matched of a word such as "[CDATA[" */
    uint8_t depth;
    uint8_t frames[WR_LINKS_DEPTH_MAX];  /* stack of svg, math, and islands of HTML in them */
    uint8_t anchors[WR_LINKS_DEPTH_MAX]; /* number of open <a> in each frame */
    bool is_bare_island;                 /* the innermost island has no element yet */
    bool is_in_anchor;                   /* an <a> of HTML is open */
    uint32_t templates;                  /* open templates; their content is not part of the page */
    uint8_t template_depth;
    bool has_base, has_frameset;

    /* The current tag. */
    uint64_t tag_at;
    struct wr_links_name name;
    uint8_t tag;
    bool is_end, is_closed; /* it is an end tag </a>; it is self-closing <svg/> */
    unsigned wanted;        /* attributes still wanted, a set of slots */

    /* The attributes of the current tag. */
    struct wr_links_name attribute;
    uint8_t slot;    /* slot of the current attribute */
    bool is_dropped; /* the current value is too long */
    unsigned has;    /* slots with a value, a set */
    uint16_t used;   /* bytes used in `text` */
    uint16_t starts[WR_SLOTS], ends[WR_SLOTS];

    /* The title, as written. */
    bool has_title, is_in_title;
    uint16_t title_bytes, title_mark; /* bytes kept; bytes before a possible end tag */

    char text[WR_LINKS_VALUE_MAX];
    char title[WR_LINKS_TITLE_RAW_MAX];
};

void wr_links_init(struct wr_links *ret_links, const struct wr_links_options *options);
void wr_links_feed(struct wr_links *links, const char *bytes, size_t count);

/* Writes the title so far to `memory`: character references decoded, white space collapsed, UTF-8,
 * cut at a character. Returns NULL with no bytes if the page has no title. Call it at the end of
 * the page, because a later meta element may set the encoding. */
struct wr_span wr_links_title(const struct wr_links *links, char memory[WR_LINKS_TITLE_MAX]);

#endif
