/* SPDX-License-Identifier: MIT */
/* links.h - finds the links of an HTML page, as its bytes arrive.
 *
 *     struct wr_links links;
 *     wr_links_init(&links, &options);
 *     wr_links_feed(&links, bytes, count);        as often as bytes arrive; how they are cut does not matter
 *
 * A scanner, not a parser: it knows tags, attributes, comments, raw text and character references as the HTML standard
 * tokenises them, and of the tree only what decides how to tokenise on: elements of raw text, templates, svg and math.
 * No recursion, no allocation; one tag's values are kept in a buffer of its own until the tag ends. Where that differs
 * from a real parser, docs/internals/links.md says so.
 *
 * Links are reported as they are written: character references decoded, not resolved. The first <base href> is reported
 * like a link, and holds for all links of the page, also for those before it.
 *
 * The page's title is that of the first <title> in HTML (not svg's), even if it is empty.
 *
 * Text in UTF-16 (by its byte order mark, or the header's charset) and in Latin-1 (by the header's charset or a meta
 * element) becomes UTF-8; all else is taken as it is, byte by byte.
 */
#ifndef WR_CORE_RULES_LINKS_LINKS_H
#define WR_CORE_RULES_LINKS_LINKS_H

#include "base/span.h"

#include <stdint.h>

#define WR_LINKS_VALUE_MAX \
    8192                       /* bytes kept of one tag's attributes; a longer value is dropped, and its link with it */
#define WR_LINKS_TITLE_MAX 512 /* bytes of a title */
#define WR_LINKS_TITLE_RAW_MAX 2048 /* bytes kept of what is written there: "&quot;" is one byte of it */
#define WR_LINKS_DEPTH_MAX 16       /* of svg in foreignObject in svg … */

enum wr_link_kind {
    WR_LINK_BASE,      /* <base href>, the first */
    WR_LINK_A,         /* <a href>, also of svg */
    WR_LINK_AREA,      /* <area href> */
    WR_LINK_HINT,      /* <link href> to a page: rel is alternate, next, prev, … */
    WR_LINK_RESOURCE,  /* <link href> to anything else */
    WR_LINK_CANONICAL, /* <link rel=canonical> */
    WR_LINK_FRAME,     /* <iframe src>, <frame src> */
    WR_LINK_REFRESH,   /* <meta http-equiv=refresh> */
    WR_LINK_IMAGE,     /* <img src>, and each candidate of srcset, also of <source> */
};

#define WR_LINKS_PAGES                                                                                          \
    (1u << WR_LINK_BASE | 1u << WR_LINK_A | 1u << WR_LINK_AREA | 1u << WR_LINK_HINT | 1u << WR_LINK_CANONICAL | \
     1u << WR_LINK_FRAME | 1u << WR_LINK_REFRESH)
#define WR_LINKS_ALL (WR_LINKS_PAGES | 1u << WR_LINK_RESOURCE | 1u << WR_LINK_IMAGE)

struct wr_link {
    enum wr_link_kind kind;
    bool nofollow;      /* rel=nofollow */
    struct wr_span url; /* may be empty; good during the call */
    uint64_t at;        /* where the tag begins: bytes from the page's start, in UTF-8 if it was UTF-16 */
};

typedef void wr_links_found(void *context, const struct wr_link *link);

struct wr_links_options {
    unsigned kinds;         /* which to report: a set of 1 << kind */
    uint32_t max_links;     /* then the rest of the page is ignored; 0: none */
    struct wr_span charset; /* of the Content-Type field, or empty */
    struct wr_span agent;   /* whose <meta name=AGENT> counts beside robots; must stay, or be empty */
    wr_links_found *found;
    void *context;
};

/* Where an attribute's value goes. */
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
    WR_SLOT_FLAG, /* that it is there says all */
    WR_SLOTS,
    WR_SLOT_NONE = WR_SLOTS,
};

/* A name of up to 16 bytes in lower case, eight to a word; longer ones equal none that we know. */
struct wr_links_name {
    uint64_t words[2];
    uint32_t bytes;
};

/* The caller's memory; its content is links*.c's. */
struct wr_links {
    struct wr_links_options options;
    unsigned wishes; /* of <meta name=robots>: a set of wr_robots_wish. May be read at any time */
    uint32_t count;  /* of links reported. May be read at any time */
    bool is_full;    /* max_links was reached. May be read at any time */

    /* The text. */
    uint8_t coding;     /* how bytes become text */
    uint8_t held_bytes; /* of what may be a byte order mark, or half a UTF-16 unit */
    uint8_t held[3];
    bool is_latin1, is_certain; /* whether Latin-1; whether a meta element has no say in it */
    uint32_t surrogate;         /* the first half of a pair, or 0 */
    const char *chunk;
    uint64_t chunk_at;

    /* Where in the text. */
    uint8_t state;
    uint8_t dashes;   /* or brackets, in a row */
    uint8_t escape;   /* of script data: 0, 1 (escaped), 2 (doubly) */
    uint8_t raw_tag;  /* whose end tag ends the raw text */
    uint32_t matched; /* bytes of a word that has begun */
    uint8_t depth;
    uint8_t frames[WR_LINKS_DEPTH_MAX];  /* svg, math, and islands of HTML in them */
    uint8_t anchors[WR_LINKS_DEPTH_MAX]; /* <a> that are open in each */
    bool is_bare_island;                 /* the innermost has no element in it yet */
    bool is_in_anchor;                   /* an <a> of HTML is open */
    uint32_t templates;                  /* open ones; their content is no part of the page */
    uint8_t template_depth;
    bool has_base, has_frameset;

    /* The tag. */
    uint64_t tag_at;
    struct wr_links_name name;
    uint8_t tag;
    bool is_end, is_closed; /* </a>; <svg/> */
    unsigned wanted;        /* slots: a set */

    /* Its attributes. */
    struct wr_links_name attribute;
    uint8_t slot;    /* of the one that is being read */
    bool is_dropped; /* its value is too long */
    unsigned has;    /* slots that are filled: a set */
    uint16_t used;   /* of text */
    uint16_t starts[WR_SLOTS], ends[WR_SLOTS];

    /* The title, as it is written. */
    bool has_title, is_in_title;
    uint16_t title_bytes, title_mark; /* kept; of these before what may be its end tag */

    char text[WR_LINKS_VALUE_MAX];
    char title[WR_LINKS_TITLE_RAW_MAX];
};

void wr_links_init(struct wr_links *ret_links, const struct wr_links_options *options);
void wr_links_feed(struct wr_links *links, const char *bytes, size_t count);

/* The title so far, in `memory`: character references decoded, white space collapsed, UTF-8, cut at a character. NULL
 * with no bytes: there is none. What a meta element behind it says of the encoding counts as well: ask at the end. */
struct wr_span wr_links_title(const struct wr_links *links, char memory[WR_LINKS_TITLE_MAX]);

#endif
