/* SPDX-License-Identifier: MIT */
/* html_text.h - parses the contents of attributes and titles: character references, word lists,
 * srcset, refresh, charsets. */
#ifndef WR_CORE_WEB_LINKS_HTML_TEXT_H
#define WR_CORE_WEB_LINKS_HTML_TEXT_H

#include "base/span.h"

#include <stdint.h>

static inline bool wr_html_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r';
}

/* Writes a code point as UTF-8. Returns its length, at most 4 bytes. */
size_t wr_utf8_put(uint32_t point, char *ret_bytes);

/* Returns the code point of a byte in Windows-1252, which the web also calls Latin-1. */
uint32_t wr_latin1_point(uint8_t byte);

/* Decodes the character references of an attribute value and converts line ends to LF, in place.
 * Returns the new length, which is never larger. */
size_t wr_references_decode(char *text, size_t bytes);

/* Removes one character from the front of text between tags and returns it: a byte sequence or a
 * character reference, U+FFFD if it is invalid. */
uint32_t wr_text_take_point(struct wr_span *text, bool is_latin1);

/* Removes the next word from a list separated by blanks. Returns false at the end. */
bool wr_words_next(struct wr_span *list, struct wr_span *ret_word);

/* Removes the next candidate from a srcset and returns its URL. Returns false at the end. */
bool wr_srcset_next(struct wr_span *list, struct wr_span *ret_url);

/* Finds the URL in <meta http-equiv=refresh content=...>. Returns false if it has none. */
bool wr_refresh_url(struct wr_span content, struct wr_span *ret_url);

/* Returns the charset in <meta http-equiv=content-type content=...>; may be empty. */
struct wr_span wr_meta_charset(struct wr_span content);

enum wr_charset {
    WR_CHARSET_OTHER, /* UTF-8, and all encodings that extend ASCII */
    WR_CHARSET_LATIN1,
    WR_CHARSET_UTF16_LE,
    WR_CHARSET_UTF16_BE,
};

enum wr_charset wr_charset_of(struct wr_span label);

#endif
