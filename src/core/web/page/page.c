/* SPDX-License-Identifier: MIT */
/* page.c - extracts links, title, robots directives and digest from a page. */
#include "core/web/page/page.h"

#include "base/alloc.h"
#include "base/ascii.h"
#include "core/web/http/field.h"
#include "core/web/page/base.h"

#define NOWHERE SIZE_MAX
#define KEPT_TEXT ((size_t)64 * 1024) /* bytes of link text that stay allocated between pages */
#define AHEAD 16                      /* links resolved before the first of them is reported */
#define AT_ONCE 64                    /* links per wr_page_report; each may take 10 us */
#define KEPT_SEEN ((size_t)4096)      /* slots of `seen` kept between pages; 32 KiB */

/* Whether the page is searched for links. */
enum html_search {
    LOOK_NO,
    LOOK_YES,
    LOOK_OPEN,   /* undecided: only blanks in the body so far */
    LOOK_OPENED, /* undecided: only blanks and '<' in the body so far */
};

/* Header before each link in page->text. */
struct stored_link_head {
    uint16_t bytes;
    uint8_t kind;
};

void wr_page_init(struct wr_page *ret_page, const weir_allocator *allocator)
{
    memset(ret_page, 0, offsetof(struct wr_page, digest));
    ret_page->allocator = allocator;
    wr_buf_init(&ret_page->text, allocator, WR_PAGE_TEXT_MAX);
}

static void free_seen(struct wr_page *page)
{
    wr_free(page->allocator, page->seen, page->seen_room * sizeof *page->seen, _Alignof(uint64_t));
    page->seen = NULL;
    page->seen_room = 0;
}

void wr_page_release(struct wr_page *page)
{
    wr_buf_release(&page->text);
    free_seen(page);
}

/* ---- while the body arrives ------------------------------------------------------------------ */

/* Stores a link that the scanner found. An empty link is valid: it leads to the page itself. */
static void store_link(void *context, const struct wr_link *link)
{
    struct wr_page *page = context;
    struct stored_link_head head = {.bytes = (uint16_t)link->url.bytes, .kind = (uint8_t)link->kind};
    size_t at = page->text.length;
    bool is_asked = link->kind != WR_LINK_BASE && (page->options.kinds >> link->kind & 1) != 0;

    page->facts.links += is_asked;
    if (link->nofollow && !page->options.follows_nofollow)
        return;
    if (at + sizeof head + link->url.bytes > WR_PAGE_TEXT_MAX)
        return;
    wr_buf_append(&page->text, &head, sizeof head);
    if (link->url.bytes > 0)
        wr_buf_append_span(&page->text, link->url);
    if (link->kind == WR_LINK_BASE)
        page->base_at = at;
    page->kept++;
}

static enum html_search search_by_type(struct wr_span type)
{
    if (type.bytes == 0)
        return LOOK_OPEN;
    return wr_field_is(type, "text/html") || wr_field_is(type, "application/xhtml+xml") ? LOOK_YES : LOOK_NO;
}

void wr_page_begin(struct wr_page *page, const struct wr_page_options *options)
{
    struct wr_content_type type = wr_content_type_parse(options->content_type);

    page->facts = (struct wr_page_facts){.directives = options->directives};
    page->options = *options;
    page->options.kinds = options->kinds == 0 ? WR_LINKS_PAGES : options->kinds;
    page->look = (uint8_t)search_by_type(type.type);
    wr_buf_clear(&page->text);
    page->kept = 0;
    page->report_at = page->resolved = 0;
    page->base_at = NOWHERE;
    struct wr_links_options scan = {
        .kinds = page->options.kinds | 1u << WR_LINK_BASE | 1u << WR_LINK_CANONICAL,
        .max_links = options->max_links == 0 ? WR_PAGE_LINKS_MAX : options->max_links,
        .charset = type.charset,
        .agent = options->agent,
        .found = store_link,
        .context = page,
    };
    if (page->look != LOOK_NO)
        wr_links_init(&page->links, &scan);
    if (options->digest != NULL)
        options->digest->begin(options->digest);
}

/* HTML begins with "<" and a letter or "!", after blanks and a UTF-8 byte order mark. */
static enum html_search search_by_byte(enum html_search look, char c)
{
    if (look == LOOK_OPENED)
        return wr_ascii_is_alpha(c) || c == '!' ? LOOK_YES : LOOK_NO;
    if (c == '<')
        return LOOK_OPENED;
    return (c != '\0' && strchr(" \t\n\f\r\xef\xbb\xbf", c) != NULL) ? LOOK_OPEN : LOOK_NO;
}

void wr_page_feed(struct wr_page *page, const char *bytes, size_t count)
{
    page->facts.bytes += count;
    if (page->options.digest != NULL)
        page->options.digest->add(page->options.digest, bytes, count);
    for (size_t i = 0; i < count && page->look >= LOOK_OPEN; i++)
        page->look = (uint8_t)search_by_byte((enum html_search)page->look, bytes[i]);
    if (page->look != LOOK_NO)
        wr_links_feed(&page->links, bytes, count);
}

/* ---- at the end of the page ------------------------------------------------------------------ */

/* Returns the link at offset `at` of the stored links. *ret_next is the offset of the next one. */
static struct wr_span link_at(const struct wr_page *page, size_t at, struct stored_link_head *ret_head,
                              size_t *ret_next)
{
    memcpy(ret_head, page->text.bytes + at, sizeof *ret_head);
    *ret_next = at + sizeof *ret_head + ret_head->bytes;
    return (struct wr_span){page->text.bytes + at + sizeof *ret_head, ret_head->bytes};
}

/* Returns the URL of the page's <base> if it is valid, else the URL of the page. The text of the
 * former is in `memory`. */
static struct wr_url page_base(const struct wr_page *page, char memory[WR_URL_ROOM])
{
    struct wr_url url;
    struct stored_link_head head;
    size_t next;

    if (page->base_at == NOWHERE)
        return *page->options.url;
    struct wr_span link = link_at(page, page->base_at, &head, &next);
    enum wr_url_fault fault = wr_url_parse(link, page->options.url, page->options.idna, memory, WR_URL_ROOM, &url);
    return fault == WR_URL_OK ? url : *page->options.url;
}

/* Clears the stored links after they were reported, and frees a large buffer. */
static void clear_links(struct wr_page *page)
{
    wr_buf_clear(&page->text);
    if (page->text.room > KEPT_TEXT) {
        wr_buf_release(&page->text);
        wr_buf_init(&page->text, page->allocator, WR_PAGE_TEXT_MAX);
    }
}

/* Prepares an empty hash set with at least twice as many slots as there are stored links. */
static int make_seen(struct wr_page *page)
{
    size_t room = 64;

    while (room < 2 * (size_t)page->kept)
        room *= 2;
    if (room > page->seen_room) {
        free_seen(page);
        page->seen = wr_alloc_array(page->allocator, room, sizeof *page->seen, _Alignof(uint64_t));
        if (page->seen == NULL)
            return WEIR_E_NOMEM;
        page->seen_room = room;
    }
    memset(page->seen, 0, room * sizeof *page->seen);
    page->seen_mask = room - 1;
    return 0;
}

/* Adds the fingerprint to the set of the page. Returns true if it is new. */
static bool add_fingerprint(struct wr_page *page, uint64_t fingerprint)
{
    size_t mask = page->seen_mask;
    uint64_t value = fingerprint == 0 ? 1 : fingerprint;
    size_t at = (size_t)value & mask;

    while (page->seen[at] != 0 && page->seen[at] != value)
        at = (at + 1) & mask;
    bool is_new = page->seen[at] == 0;
    page->seen[at] = value;
    return is_new;
}

/* Links that are reported together, so that the memory prefetched by `soon` arrives meanwhile. */
struct link_batch {
    size_t count, used;
    struct wr_page_link links[AHEAD];
    struct wr_url urls[AHEAD];
    char text[2 * WR_URL_ROOM];
};

static void report_link_batch(struct wr_page *page, struct link_batch *batch, wr_page_found *found, void *context)
{
    for (size_t i = 0; i < batch->count; i++)
        found(context, &batch->links[i]);
    page->facts.reported += (uint32_t)batch->count;
    batch->count = batch->used = 0;
}

static void report_links_batchwise(struct wr_page *page, const struct wr_base *base, wr_page_found *found,
                                   void *context)
{
    const struct wr_page_options *options = &page->options;
    struct link_batch batch;
    struct stored_link_head head;

    batch.count = batch.used = 0;
    for (int i = 0; i < AT_ONCE && page->report_at < page->text.length && page->resolved < WR_PAGE_RESOLVED_MAX; i++) {
        struct wr_span text = link_at(page, page->report_at, &head, &page->report_at);
        struct wr_url *url = &batch.urls[batch.count];
        page->resolved += base->url.bytes + text.bytes;
        if (head.kind == WR_LINK_BASE || (options->kinds >> head.kind & 1) == 0 ||
            wr_base_resolve(base, text, batch.text + batch.used, url) != WR_URL_OK)
            continue;
        uint64_t fingerprint = wr_hash(options->key, url->text, url->bytes);
        if (!add_fingerprint(page, fingerprint))
            continue;
        if (options->soon != NULL)
            options->soon(context, fingerprint);
        batch.links[batch.count++] = (struct wr_page_link){(enum wr_link_kind)head.kind, url, fingerprint};
        batch.used += url->bytes + 1u;
        if (batch.count == AHEAD || sizeof batch.text - batch.used < WR_URL_ROOM)
            report_link_batch(page, &batch, found, context);
    }
    report_link_batch(page, &batch, found, context);
    if (page->resolved >= WR_PAGE_RESOLVED_MAX)
        page->report_at = page->text.length;
}

bool wr_page_report(struct wr_page *page, wr_page_found *found, void *context)
{
    char memory[WR_URL_ROOM];
    struct wr_base base;

    if (page->report_at < page->text.length) {
        struct wr_url url = page_base(page, memory);
        wr_base_init(&base, &url, page->options.idna);
        report_links_batchwise(page, &base, found, context);
    }
    if (page->report_at < page->text.length)
        return true;
    clear_links(page);
    page->report_at = 0;
    if (page->seen_room > KEPT_SEEN)
        free_seen(page);
    return false;
}

/* Decides whether the links are reported and prepares for it. Returns 0, or WEIR_E_NOMEM: then no
 * links are reported. */
static int ready_links(struct wr_page *page)
{
    bool follows = page->options.follows_nofollow || (page->facts.directives & WR_ROBOTS_NOFOLLOW) == 0;
    /* the last stored link may be incomplete */
    int error = page->text.error != 0 ? WEIR_E_NOMEM : 0;

    if (error == 0 && follows && page->kept > 0)
        error = make_seen(page);
    if (error != 0 || !follows)
        clear_links(page);
    return error;
}

static void format_digest(struct wr_page *page)
{
    struct wr_digest *digest = page->options.digest;
    uint8_t value[WR_DIGEST_MAX];
    struct wr_buf buf;

    if (digest == NULL)
        return;
    digest->end(digest, value);
    wr_buf_init_fixed(&buf, page->digest, sizeof page->digest);
    wr_buf_append_string(&buf, digest->name);
    wr_buf_append_char(&buf, ':');
    for (size_t i = 0; i < digest->bytes; i++)
        wr_buf_append_hex(&buf, value[i], 2, WR_HEX_SMALL);
    page->facts.digest = wr_buf_from(&buf, 0);
}

int wr_page_close(struct wr_page *page)
{
    format_digest(page);
    page->facts.is_html = page->look == LOOK_YES;
    if (!page->facts.is_html) {
        clear_links(page);
        return 0;
    }
    page->facts.directives |= page->links.directives;
    page->facts.title = wr_links_title(&page->links, page->title);
    return ready_links(page);
}

int wr_page_end(struct wr_page *page, wr_page_found *found, void *context)
{
    int error = wr_page_close(page);

    while (wr_page_report(page, found, context))
        continue;
    return error;
}
