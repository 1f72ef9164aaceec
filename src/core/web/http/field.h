/* SPDX-License-Identifier: MIT */
/* field.h - parses a header line, and the fields about a body's type, freshness and robots
 * directives. */
#ifndef WR_CORE_WEB_HTTP_FIELD_H
#define WR_CORE_WEB_HTTP_FIELD_H

#include "base/ascii.h"
#include "base/span.h"

#include <stdint.h>
#include <weir/time.h>

/* Parses "Name: value", with or without CR and LF at its end. Blanks around the value and before
 * the colon (RFC 9112 5.1) are dropped. Returns false if the line is not a field: a status line,
 * the empty line, a name that is not a token, a value with CR, LF or NUL inside, or a folded line
 * (5.2), which begins with a blank. */
bool wr_field_parse(struct wr_span line, struct wr_span *ret_name, struct wr_span *ret_value);

/* Returns true if a name or token equals `word`, ignoring case. Inline, because it is called a
 * hundred times a page and the length, a compile-time constant, usually decides. */
static inline bool wr_field_is(struct wr_span name, const char *word)
{
    return name.bytes == strlen(word) && wr_ascii_same(name.data, word, name.bytes);
}

/* Returns true for the characters of names and methods (RFC 9110 5.6.2). */
bool wr_field_is_token_char(char c);

/* Returns true for characters that no value may contain: control characters except the tab (RFC
 * 9110 5.5). */
static inline bool wr_field_is_control(char c)
{
    return ((unsigned char)c < 0x20 && c != '\t') || c == 0x7f;
}

/* Returns true if the field may be sent, or accepted from a client: the name is a token, and the
 * value has no control characters except tabs. */
bool wr_field_is_sound(struct wr_span name, struct wr_span value);

/* A Content-Type such as text/html; charset="utf-8" (RFC 9110 8.3). Absent parts are empty. */
struct wr_content_type {
    struct wr_span type; /* media type such as "text/html" */
    struct wr_span charset;
};

struct wr_content_type wr_content_type_parse(struct wr_span value);

/* Parses Cache-Control (RFC 9111 5.2.2). Returns how long the response is fresh, at most
 * WEIR_DURATION_MAX; 0 for no-cache, no-store, and a max-age that is not a number; -1 if no
 * directive gives a time. */
int64_t wr_max_age_ns(struct wr_span cache_control);

/* Robots directives of a page, from X-Robots-Tag or the content of <meta name=robots>. */
enum wr_robots_directive {
    WR_ROBOTS_NOFOLLOW = 1,
    WR_ROBOTS_NOINDEX = 2,
};

/* Parses directives such as "noindex, nofollow", "none" or "otherbot: noindex, nofollow". Returns
 * those for all robots and those for `agent` (a product token; may be empty), as a set of
 * wr_robots_directive. */
unsigned wr_robots_directives_parse(struct wr_span value, struct wr_span agent);

#endif
