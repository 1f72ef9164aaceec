/* SPDX-License-Identifier: MIT */
/* scan.h - the interface between the parts of the link scanner: links.c (bytes to text), scan.c
 * (text to tags), outside_tag.c (comments and raw text), tag.c (tags to links). */
#ifndef WR_CORE_WEB_LINKS_SCAN_H
#define WR_CORE_WEB_LINKS_SCAN_H

#include "core/web/links/links.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* State of the scanner, named as in the tokenisation of the HTML standard, 13.2.5. */
enum wr_links_state {
    WR_IN_TEXT,
    WR_IN_TAG_OPEN, /* after '<' */
    WR_IN_END_TAG_OPEN,
    WR_IN_TAG_NAME,
    WR_BEFORE_ATTRIBUTE,
    WR_IN_ATTRIBUTE,
    WR_AFTER_ATTRIBUTE,
    WR_BEFORE_VALUE,
    WR_IN_VALUE_DOUBLE,
    WR_IN_VALUE_SINGLE,
    WR_IN_VALUE_BARE,
    WR_AFTER_VALUE,
    WR_IN_SELF_CLOSING, /* after '/' */
    WR_IN_MARKUP,       /* after "<!" */
    WR_IN_MARKUP_DASH,
    WR_IN_MARKUP_CDATA,
    WR_IN_BOGUS_COMMENT,
    WR_IN_COMMENT_START,
    WR_IN_COMMENT,
    WR_IN_COMMENT_BANG, /* after "--!" */
    WR_IN_CDATA,
    WR_IN_RAW_TEXT,
    WR_IN_RAW_OPEN,
    WR_IN_RAW_END, /* after "</", matching the name */
    WR_IN_SCRIPT,
    WR_IN_SCRIPT_OPEN,
    WR_IN_SCRIPT_BANG, /* after "<!" or "<!-" */
    WR_IN_SCRIPT_WORD, /* after "<" or "</" in escaped data, matching "script" */
    WR_IN_PLAIN_TEXT,  /* up to the end of the page */
};

/* Returns the first `byte`, or `end`. The byte is usually so near that a call of memchr costs
 * more. */
static inline const char *wr_links_find(const char *at, const char *end, char byte)
{
#ifdef __SSE2__
    for (int i = 0; i < 4 && end - at >= 16; i++, at += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
        int hits = _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte)));
        if (hits != 0)
            return at + __builtin_ctz((unsigned)hits);
    }
#endif
    const char *hit = memchr(at, byte, (size_t)(end - at));
    return hit != NULL ? hit : end;
}

/* scan.c: scans a piece of ASCII-compatible text. */
void wr_links_scan(struct wr_links *links, const char *bytes, size_t count);

/* Starts a tag; its name follows. */
void wr_links_begin_tag(struct wr_links *links, bool is_end);

/* outside_tag.c: does one step in a state outside of tags, like the functions of scan.c. */
const char *wr_links_step_outside_tag(struct wr_links *links, const char *at, const char *end);

/* tag.c: returns the tag of a name; 0 for a tag that is ignored outside of svg and math. */
unsigned wr_links_tag_of(const struct wr_links_name *name);
/* Handles a complete tag name; sets which attributes are wanted. */
void wr_links_on_tag_name(struct wr_links *links, unsigned tag);
/* Returns the slot for the attribute whose name is complete. */
enum wr_links_slot wr_links_slot_of(const struct wr_links *links);
/* Handles a complete tag: reports its links and sets the state of the following text. */
void wr_links_on_tag(struct wr_links *links);
/* Returns true if CDATA sections exist at this point: in svg and math. */
bool wr_links_has_cdata(const struct wr_links *links);
/* Returns the name whose end tag ends the raw text. */
const char *wr_links_raw_name(const struct wr_links *links);

#endif
