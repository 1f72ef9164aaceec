/* SPDX-License-Identifier: MIT */
/* outside_tag.c - scans text outside of tags: comments, CDATA sections, and raw text up to its end
 * tag. */
#include "base/ascii.h"
#include "core/web/links/html_text.h"
#include "core/web/links/scan.h"

static bool ends_name(char c)
{
    return c == '>' || c == '/' || wr_html_is_space(c);
}

/* ---- comments and CDATA ---------------------------------------------------------------------- */

static const char *in_markup(struct wr_links *links, const char *at)
{
    links->matched = 1; /* matched the '[' of "[CDATA[" */
    if (*at == '-')
        links->state = WR_IN_MARKUP_DASH;
    else if (*at == '[' && wr_links_has_cdata(links))
        links->state = WR_IN_MARKUP_CDATA;
    else
        links->state = WR_IN_BOGUS_COMMENT;
    return links->state == WR_IN_BOGUS_COMMENT ? at : at + 1;
}

static const char *in_markup_dash(struct wr_links *links, const char *at)
{
    links->dashes = 0;
    links->state = *at == '-' ? WR_IN_COMMENT_START : WR_IN_BOGUS_COMMENT;
    return *at == '-' ? at + 1 : at;
}

static const char *in_markup_cdata(struct wr_links *links, const char *at)
{
    static const char word[] = "[CDATA[";

    if (*at != word[links->matched]) {
        links->state = WR_IN_BOGUS_COMMENT;
        return at;
    }
    if (++links->matched == sizeof word - 1) {
        links->dashes = 0;
        links->state = WR_IN_CDATA;
    }
    return at + 1;
}

static const char *in_bogus_comment(struct wr_links *links, const char *at, const char *end)
{
    at = wr_links_find(at, end, '>');
    if (at == end)
        return end;
    links->state = WR_IN_TEXT;
    return at + 1;
}

/* Scans the start of a comment: "<!-->" and "<!--->" are complete comments. */
static const char *in_comment_start(struct wr_links *links, const char *at)
{
    if (*at == '>') {
        links->state = WR_IN_TEXT;
        return at + 1;
    }
    if (*at != '-' || links->dashes == 1) {
        links->state = WR_IN_COMMENT;
        return at;
    }
    links->dashes = 1;
    return at + 1;
}

/* Scans a comment up to "-->" or "--!>". */
static const char *in_comment(struct wr_links *links, const char *at, const char *end)
{
    if (links->dashes == 0)
        at = wr_links_find(at, end, '-');
    for (; at < end; at++) {
        if (*at == '-') {
            links->dashes = links->dashes < 2 ? links->dashes + 1 : 2;
            continue;
        }
        bool is_end = links->dashes == 2;
        links->dashes = 0;
        if (is_end && (*at == '>' || *at == '!')) {
            links->state = *at == '>' ? WR_IN_TEXT : WR_IN_COMMENT_BANG;
            return at + 1;
        }
        return at + 1;
    }
    return end;
}

static const char *in_comment_bang(struct wr_links *links, const char *at)
{
    links->state = *at == '>' ? WR_IN_TEXT : WR_IN_COMMENT;
    links->dashes = 0;
    return *at == '>' ? at + 1 : at;
}

/* Scans a CDATA section up to "]]>". */
static const char *in_cdata(struct wr_links *links, const char *at, const char *end)
{
    if (links->dashes == 0)
        at = wr_links_find(at, end, ']');
    if (at == end)
        return end;
    if (*at == '>' && links->dashes == 2)
        links->state = WR_IN_TEXT;
    links->dashes = *at != ']' ? 0 : links->dashes < 2 ? links->dashes + 1 : 2;
    return at + 1;
}

/* ---- raw text -------------------------------------------------------------------------------- */

static const char *in_raw_text(struct wr_links *links, const char *at, const char *end)
{
    at = wr_links_find(at, end, '<');
    if (at == end)
        return end;
    links->state = WR_IN_RAW_OPEN;
    return at + 1;
}

static uint8_t raw_state(const struct wr_links *links)
{
    /* only "script" has a 'c' there */
    return wr_links_raw_name(links)[1] == 'c' ? WR_IN_SCRIPT : WR_IN_RAW_TEXT;
}

static const char *in_raw_open(struct wr_links *links, const char *at)
{
    links->state = *at == '/' ? WR_IN_RAW_END : WR_IN_RAW_TEXT;
    links->matched = 0;
    return *at == '/' ? at + 1 : at;
}

/* Scans a possible end tag in raw text: "</title" and a byte that ends a name. Anything else is
 * text. */
static const char *in_raw_end(struct wr_links *links, const char *at)
{
    const char *name = wr_links_raw_name(links);

    if (name[links->matched] != '\0' && wr_ascii_lower(*at) == name[links->matched]) {
        links->matched++;
        return at + 1;
    }
    if (name[links->matched] != '\0' || !ends_name(*at)) {
        links->state = raw_state(links);
        return at;
    }
    if (links->is_in_title)
        links->title_bytes = links->title_mark;
    links->is_in_title = false;
    wr_links_begin_tag(links, true);
    for (links->matched = 0; name[links->matched] != '\0'; links->matched++)
        links->name.words[0] = links->name.words[0] << 8 | (uint8_t)name[links->matched];
    links->name.bytes = links->matched;
    return at; /* the end of the name, from where scan.c continues */
}

/* Stores the text of a title, including a possible end tag, which is removed later if it is one.
 * Runs of blanks are stored as one, so that they cannot fill the buffer. */
static const char *keep_title(struct wr_links *links, const char *from, const char *to)
{
    for (const char *at = from; links->is_in_title && at < to; at++) {
        uint16_t used = links->title_bytes;
        bool is_space = wr_html_is_space(*at);
        if (*at == '<')
            links->title_mark = used;
        if (used == sizeof links->title || (is_space && (used == 0 || links->title[used - 1] == ' ')))
            continue;
        links->title[links->title_bytes++] = is_space ? ' ' : *at;
    }
    return to;
}

/* ---- script data ----------------------------------------------------------------------------- */

/* Scans script data escaped by "<!--", up to "-->". In it "<script" starts a second escape
 * level. */
static const char *in_script_escaped(struct wr_links *links, const char *at, const char *end)
{
    for (; at < end; at++) {
        if (*at == '<') {
            links->dashes = 0;
            links->state = WR_IN_SCRIPT_OPEN;
            return at + 1;
        }
        if (*at == '>' && links->dashes == 2) {
            links->escape = 0;
            return at + 1;
        }
        links->dashes = *at != '-' ? 0 : links->dashes < 2 ? links->dashes + 1 : 2;
    }
    return end;
}

static const char *in_script(struct wr_links *links, const char *at, const char *end)
{
    if (links->escape > 0)
        return in_script_escaped(links, at, end);
    at = wr_links_find(at, end, '<');
    if (at == end)
        return end;
    links->state = WR_IN_SCRIPT_OPEN;
    return at + 1;
}

/* Scans script data after '<'. */
static const char *in_script_open(struct wr_links *links, const char *at)
{
    bool is_word = (links->escape == 1 && wr_ascii_is_alpha(*at)) || (links->escape == 2 && *at == '/');

    links->matched = 0;
    links->state = is_word                            ? WR_IN_SCRIPT_WORD
                   : *at == '/'                       ? WR_IN_RAW_END
                   : *at == '!' && links->escape == 0 ? WR_IN_SCRIPT_BANG
                                                      : WR_IN_SCRIPT;
    return *at == '/' || links->state == WR_IN_SCRIPT_BANG ? at + 1 : at;
}

/* Scans script data after "<!" or "<!-"; "<!--" starts the escaped state. */
static const char *in_script_bang(struct wr_links *links, const char *at)
{
    if (*at != '-') {
        links->state = WR_IN_SCRIPT;
        return at;
    }
    if (++links->matched == 2) {
        links->escape = 1;
        links->dashes = 2;
        links->state = WR_IN_SCRIPT;
    }
    return at + 1;
}

/* Scans a possible "script" followed by a byte that ends a name, which raises or lowers the escape
 * level. */
static const char *in_script_word(struct wr_links *links, const char *at)
{
    static const char word[] = "script";
    bool is_same = links->matched < sizeof word - 1 && wr_ascii_lower(*at) == word[links->matched];

    if (wr_ascii_is_alpha(*at)) {
        links->matched = is_same ? links->matched + 1 : sizeof word;
        return at + 1;
    }
    links->state = WR_IN_SCRIPT;
    if (!ends_name(*at))
        return at;
    if (links->matched == sizeof word - 1)
        links->escape = links->escape == 1 ? 2 : 1;
    return at + 1;
}

/* ---- all states ------------------------------------------------------------------------------ */

const char *wr_links_step_outside_tag(struct wr_links *links, const char *at, const char *end)
{
    switch ((enum wr_links_state)links->state) {
    case WR_IN_MARKUP:
        return in_markup(links, at);
    case WR_IN_MARKUP_DASH:
        return in_markup_dash(links, at);
    case WR_IN_MARKUP_CDATA:
        return in_markup_cdata(links, at);
    case WR_IN_BOGUS_COMMENT:
        return in_bogus_comment(links, at, end);
    case WR_IN_COMMENT_START:
        return in_comment_start(links, at);
    case WR_IN_COMMENT:
        return in_comment(links, at, end);
    case WR_IN_COMMENT_BANG:
        return in_comment_bang(links, at);
    case WR_IN_CDATA:
        return in_cdata(links, at, end);
    case WR_IN_RAW_TEXT:
        return keep_title(links, at, in_raw_text(links, at, end));
    case WR_IN_RAW_OPEN:
        return keep_title(links, at, in_raw_open(links, at));
    case WR_IN_RAW_END:
        return keep_title(links, at, in_raw_end(links, at));
    case WR_IN_SCRIPT:
        return in_script(links, at, end);
    case WR_IN_SCRIPT_OPEN:
        return in_script_open(links, at);
    case WR_IN_SCRIPT_BANG:
        return in_script_bang(links, at);
    case WR_IN_SCRIPT_WORD:
        return in_script_word(links, at);
    default: /* WR_IN_PLAIN_TEXT never ends */
        return end;
    }
}
