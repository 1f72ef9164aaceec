/* SPDX-License-Identifier: MIT */
/* text.h - what stands in attributes and titles: character references, lists of words, srcset, refresh, charsets. */
#ifndef WR_CORE_RULES_LINKS_TEXT_H
#define WR_CORE_RULES_LINKS_TEXT_H

#include "base/span.h"

#include <stdint.h>

static inline bool wr_html_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r';
}

/* Writes a code point as UTF-8; returns how many bytes, at most 4. */
size_t wr_utf8_put(uint32_t point, char *ret_bytes);

/* The code point of a byte of Windows-1252, which is what the web means by Latin-1. */
uint32_t wr_latin1_point(uint8_t byte);

/* Decodes the character references of an attribute's value and turns each line end into LF, in place. Returns the bytes
 * left, which are never more than there were. */
size_t wr_references_decode(char *text, size_t bytes);

/* Takes one character off the front of text between tags: a character reference, or U+FFFD for what is none. */
uint32_t wr_text_take_point(struct wr_span *text, bool is_latin1);

/* The next word of a list with blanks between; takes it off. */
bool wr_words_next(struct wr_span *list, struct wr_span *ret_word);

/* The URL of the next candidate of a srcset; takes it off. */
bool wr_srcset_next(struct wr_span *list, struct wr_span *ret_url);

/* The URL of <meta http-equiv=refresh content=…>; false if it names none. */
bool wr_refresh_url(struct wr_span content, struct wr_span *ret_url);

/* The charset in <meta http-equiv=content-type content=…>; empty if none. */
struct wr_span wr_meta_charset(struct wr_span content);

enum wr_charset {
    WR_CHARSET_OTHER, /* UTF-8, and all in which ASCII is ASCII */
    WR_CHARSET_LATIN1,
    WR_CHARSET_UTF16_LE,
    WR_CHARSET_UTF16_BE,
};

enum wr_charset wr_charset_of(struct wr_span label);

#endif
