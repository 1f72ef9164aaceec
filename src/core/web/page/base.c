/* SPDX-License-Identifier: MIT */
/* base.c - resolves the links of one page to canonical URLs. */
#include "core/web/page/base.h"

#include "base/ascii.h"

/* Classes of bytes in a link that may be copied unchanged. */
enum {
    ODD, /* may have a meaning or need escaping: the URL parser must handle it */
    PLAIN,
    SLASH,
    DOT,
    QUESTION,
    HASH,
    COLON,
};

/* Class of each byte: PLAIN bytes mean themselves in path and query alike. '%' is ODD, because an
 * escape may have another spelling. */
static const uint8_t classes[256] = {
    ['a'] = PLAIN, ['b'] = PLAIN, ['c'] = PLAIN,    ['d'] = PLAIN, ['e'] = PLAIN, ['f'] = PLAIN, ['g'] = PLAIN,
    ['h'] = PLAIN, ['i'] = PLAIN, ['j'] = PLAIN,    ['k'] = PLAIN, ['l'] = PLAIN, ['m'] = PLAIN, ['n'] = PLAIN,
    ['o'] = PLAIN, ['p'] = PLAIN, ['q'] = PLAIN,    ['r'] = PLAIN, ['s'] = PLAIN, ['t'] = PLAIN, ['u'] = PLAIN,
    ['v'] = PLAIN, ['w'] = PLAIN, ['x'] = PLAIN,    ['y'] = PLAIN, ['z'] = PLAIN, ['A'] = PLAIN, ['B'] = PLAIN,
    ['C'] = PLAIN, ['D'] = PLAIN, ['E'] = PLAIN,    ['F'] = PLAIN, ['G'] = PLAIN, ['H'] = PLAIN, ['I'] = PLAIN,
    ['J'] = PLAIN, ['K'] = PLAIN, ['L'] = PLAIN,    ['M'] = PLAIN, ['N'] = PLAIN, ['O'] = PLAIN, ['P'] = PLAIN,
    ['Q'] = PLAIN, ['R'] = PLAIN, ['S'] = PLAIN,    ['T'] = PLAIN, ['U'] = PLAIN, ['V'] = PLAIN, ['W'] = PLAIN,
    ['X'] = PLAIN, ['Y'] = PLAIN, ['Z'] = PLAIN,    ['0'] = PLAIN, ['1'] = PLAIN, ['2'] = PLAIN, ['3'] = PLAIN,
    ['4'] = PLAIN, ['5'] = PLAIN, ['6'] = PLAIN,    ['7'] = PLAIN, ['8'] = PLAIN, ['9'] = PLAIN, ['-'] = PLAIN,
    ['_'] = PLAIN, ['~'] = PLAIN, ['!'] = PLAIN,    ['$'] = PLAIN, ['&'] = PLAIN, ['('] = PLAIN, [')'] = PLAIN,
    ['*'] = PLAIN, ['+'] = PLAIN, [','] = PLAIN,    [';'] = PLAIN, ['='] = PLAIN, ['@'] = PLAIN, ['.'] = DOT,
    ['/'] = SLASH, [':'] = COLON, ['?'] = QUESTION, ['#'] = HASH,
};

void wr_base_init(struct wr_base *ret_base, const struct wr_url *url, const struct wr_idna *idna)
{
    ret_base->url = *url;
    ret_base->idna = idna;
    ret_base->folder_end = 0;
    if (wr_url_canonical(url, ret_base->memory, sizeof ret_base->memory, &ret_base->canonical) != WR_URL_OK)
        return;
    ret_base->folder_end = ret_base->canonical.query_at;
    while (ret_base->memory[ret_base->folder_end - 1] != '/')
        ret_base->folder_end--;
}

/* ---- simple links ---------------------------------------------------------------------------- */

/* Returns how many bytes of path and query can be copied unchanged, up to the fragment; 0 if they
 * cannot. *ret_query is the offset of the query. `text` is not empty. A segment that begins with a
 * dot is not copied, because it may be a dot segment. */
static size_t plain_bytes(struct wr_span text, size_t *ret_query)
{
    size_t at = 0;
    bool begins_segment = true;

    for (; at < text.bytes; at++) {
        uint8_t class = classes[(uint8_t)text.data[at]];
        if (class == PLAIN || (class == COLON && text.data[0] == '/') || (class == DOT && !begins_segment)) {
            begins_segment = false;
            continue;
        }
        if (class != SLASH)
            break;
        begins_segment = true;
    }
    *ret_query = at;
    if (at < text.bytes && text.data[at] == '?')
        for (at++; at < text.bytes; at++)
            if (classes[(uint8_t)text.data[at]] == ODD || text.data[at] == '#')
                break;
    return at == text.bytes || text.data[at] == '#' ? at : 0;
}

/* Returns true if the link begins with the scheme, host and port of the base and has a path. */
static bool has_origin(const struct wr_base *base, struct wr_span link)
{
    size_t origin = base->canonical.path_at;

    return link.bytes > origin && link.data[origin] == '/' && memcmp(link.data, base->memory, origin) == 0;
}

/* Returns how many bytes of the base to put before the rest of the link, and cuts the origin off
 * the link if it has one. Returns 0 if the link must be parsed. */
static size_t front_of(const struct wr_base *base, struct wr_span *link)
{
    if (base->folder_end == 0)
        return 0;
    if (link->data[0] == '/')
        /* plain_bytes() refuses "/\", which means "//" */
        return link->bytes > 1 && link->data[1] == '/' ? 0 : base->canonical.path_at;
    if (has_origin(base, *link)) {
        *link = wr_span_after(*link, base->canonical.path_at);
        return base->canonical.path_at;
    }
    return wr_ascii_is_alnum(link->data[0]) ? base->folder_end : 0;
}

static bool resolve_plain(const struct wr_base *base, struct wr_span link, char memory[WR_URL_ROOM],
                          struct wr_url *ret_url)
{
    size_t front = front_of(base, &link), query;
    size_t bytes = front == 0 ? 0 : plain_bytes(link, &query);

    if (bytes == 0 || front + bytes > WR_URL_MAX)
        return false;
    memcpy(memory, base->memory, front);
    memcpy(memory + front, link.data, bytes);
    memory[front + bytes] = '\0';
    *ret_url = base->canonical;
    ret_url->text = memory;
    ret_url->query_at = (uint16_t)(front + query);
    ret_url->bytes = ret_url->fragment_at = (uint16_t)(front + bytes);
    return true;
}

/* ---- all links ------------------------------------------------------------------------------- */

enum wr_url_fault wr_base_resolve(const struct wr_base *base, struct wr_span link, char memory[WR_URL_ROOM],
                                  struct wr_url *ret_url)
{
    char scratch[WR_URL_ROOM];
    struct wr_url url;

    if (base->folder_end > 0 && (link.bytes == 0 || link.data[0] == '#')) {
        *ret_url = base->canonical;
        return WR_URL_OK;
    }
    if (link.bytes > 0 && resolve_plain(base, link, memory, ret_url))
        return WR_URL_OK;
    enum wr_url_fault fault = wr_url_parse(link, &base->url, base->idna, scratch, sizeof scratch, &url);
    return fault != WR_URL_OK ? fault : wr_url_canonical(&url, memory, WR_URL_ROOM, ret_url);
}
