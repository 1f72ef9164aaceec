/* SPDX-License-Identifier: MIT */
/* field.h - one line of a response's head, and the fields that say what its body is and for how long. */
#ifndef WR_CORE_RULES_HTTP_FIELD_H
#define WR_CORE_RULES_HTTP_FIELD_H

#include "base/ascii.h"
#include "base/span.h"

#include <stdint.h>
#include <weir/time.h>

/* Takes "Name: value" apart, with or without CR and LF at its end; blanks around the value and before the colon (RFC
 * 9112 5.1) are dropped. False for what is no field: a status line, the empty line, a name that is no token, a value
 * with CR, LF or NUL inside, and the continuation of a folded line (5.2), which begins with a blank. */
bool wr_field_parse(struct wr_span line, struct wr_span *ret_name, struct wr_span *ret_value);

/* Whether a name or token is this one, in any case. In line, for it is asked a hundred times a page, and mostly the
 * length, which the compiler knows, tells. */
static inline bool wr_field_is(struct wr_span name, const char *word)
{
    return name.bytes == strlen(word) && wr_ascii_same(name.data, word, name.bytes);
}

/* What names and methods are made of (RFC 9110 5.6.2). */
bool wr_field_is_token_char(char c);

/* What no value may have in it: control characters, but for the tab (RFC 9110 5.5). */
static inline bool wr_field_is_control(char c)
{
    return ((unsigned char)c < 0x20 && c != '\t') || c == 0x7f;
}

/* Whether we may send it (C10), and take it from who asks us: a name that is a token, a value without control
 * characters but the tab. */
bool wr_field_is_sound(struct wr_span name, struct wr_span value);

/* text/html; charset="utf-8" (RFC 9110 8.3). What is absent is empty. */
struct wr_content_type {
    struct wr_span type; /* "text/html" */
    struct wr_span charset;
};

struct wr_content_type wr_content_type_parse(struct wr_span value);

/* Cache-Control (RFC 9111 5.2.2): for how long the response may be taken for fresh, at most WEIR_DURATION_MAX; 0 for
 * no-cache and no-store, and for a max-age that is no number; -1 if it does not say. */
int64_t wr_max_age_ns(struct wr_span cache_control);

/* What a page asks of robots: X-Robots-Tag, and the content of <meta name=robots>. */
enum wr_robots_wish {
    WR_ROBOTS_NOFOLLOW = 1,
    WR_ROBOTS_NOINDEX = 2,
};

/* "noindex, nofollow", "none", "otherbot: noindex, nofollow": the wishes for all robots and those for `agent` (a
 * product token; may be empty), a set of wr_robots_wish. */
unsigned wr_robots_wishes(struct wr_span value, struct wr_span agent);

#endif
