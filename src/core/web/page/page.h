/* SPDX-License-Identifier: MIT */
/* page.h - extracts links, title, robots directives and digest from a page while its bytes arrive.
 *
 *     struct wr_page page;
 *     wr_page_init(&page, allocator);             once; then for each page
 *         wr_page_begin(&page, &options);
 *         wr_page_feed(&page, bytes, count);      whenever bytes arrive
 *         error = wr_page_end(&page, found, context);   or in steps, for pages with many links:
 *         error = wr_page_close(&page);
 *         while (wr_page_report(&page, found, context)) ...
 *     wr_page_release(&page);
 *
 * Only HTML is searched for links: text/html, application/xhtml+xml, and bodies without a content
 * type that look like HTML. Other bodies only get a digest. Links are stored as written until the
 * page ends, because a <base> applies also to the links before it, and a page may say nofollow
 * anywhere. Then each link is resolved, made canonical (without fragment) and fingerprinted, and
 * the first of equal links is reported.
 *
 * Bounds: max_links links, WR_PAGE_TEXT_MAX bytes of stored links, and WR_PAGE_RESOLVED_MAX bytes
 * for resolving them; further links are ignored. Buffers are reused; a large buffer is freed after
 * its page.
 */
#ifndef WR_CORE_WEB_PAGE_PAGE_H
#define WR_CORE_WEB_PAGE_PAGE_H

#include "base/hash.h"
#include "core/web/links/links.h"
#include "core/web/page/digest_function.h"
#include "core/web/url/url.h"

#define WR_PAGE_LINKS_MAX 10000                 /* default of max_links */
#define WR_PAGE_TEXT_MAX ((size_t)1 << 20)      /* most bytes of stored links per page */
#define WR_PAGE_RESOLVED_MAX ((size_t)16 << 20) /* most bytes resolved: each link plus its base */

/* Called shortly before a link with this fingerprint is reported, so that the caller can prefetch
 * the memory of its lookup. `context` is that of wr_page_end. */
typedef void wr_page_prefetch(void *context, uint64_t fingerprint);

/* Options of one page; 0 means the default. Everything pointed to must stay valid until wr_page_end
 * returns. */
struct wr_page_options {
    const struct wr_url *url;      /* URL of the page after all redirects */
    const struct wr_idna *idna;    /* NULL: hosts of links are ASCII */
    const struct wr_hash_key *key; /* key of the fingerprints */
    struct wr_digest *digest;      /* hash function for the body; NULL: no digest */
    struct wr_span content_type;   /* Content-Type field; if empty, the first bytes decide */
    /* our product token: <meta name=TOKEN> counts like robots; may be empty */
    struct wr_span agent;
    /* directives of the X-Robots-Tag fields, a set of wr_robots_directive */
    unsigned directives;
    /* link kinds to report, a set of 1 << kind; default WR_LINKS_PAGES */
    unsigned kinds;
    uint32_t max_links;     /* most links to read per page; default WR_PAGE_LINKS_MAX */
    bool follows_nofollow;  /* report links also where rel, meta or field say nofollow */
    wr_page_prefetch *soon; /* NULL: no prefetching */
};

/* The results when the page has ended; valid until the next page begins. */
struct wr_page_facts {
    bool is_html;          /* the page was searched for links */
    uint64_t bytes;        /* bytes of the body */
    uint32_t links;        /* links of the wanted kinds in the page, duplicates included */
    uint32_t reported;     /* links that were reported */
    unsigned directives;   /* robots directives of page and fields, a set of wr_robots_directive */
    struct wr_span title;  /* NULL: the page has no title */
    struct wr_span digest; /* such as "xxh128:..."; NULL: no digest was asked for */
};

struct wr_page_link {
    enum wr_link_kind kind;
    const struct wr_url *url; /* canonical URL */
    uint64_t fingerprint;     /* wr_hash of the canonical URL */
};

/* Receives one link. `link` is valid during the call only. */
typedef void wr_page_found(void *context, const struct wr_page_link *link);

/* The state of a page. The caller provides the memory; all members except `facts` are private to
 * page.c. */
struct wr_page {
    struct wr_page_facts facts; /* public: may be read after wr_page_end */

    struct wr_page_options options;
    const weir_allocator *allocator;
    uint8_t look;       /* enum look of page.c: whether the page is HTML */
    struct wr_buf text; /* stored links, each behind its struct head */
    uint32_t kept;      /* number of stored links */
    size_t base_at;     /* offset of the <base> in `text`; SIZE_MAX: the page has no <base> */
    uint64_t *seen;     /* hash set of fingerprints, open-addressed; 0: free slot */
    size_t seen_room;   /* allocated slots of `seen` */
    size_t seen_mask;   /* this page uses slots 0 to seen_mask */
    size_t report_at;   /* offset in `text` of the next link to report */
    size_t resolved;    /* bytes of links and bases resolved so far, see WR_PAGE_RESOLVED_MAX */
    char digest[WR_DIGEST_TEXT_MAX];
    char title[WR_LINKS_TITLE_MAX];
    struct wr_links links;
};

void wr_page_init(struct wr_page *ret_page, const weir_allocator *allocator);
void wr_page_release(struct wr_page *page);

void wr_page_begin(struct wr_page *page, const struct wr_page_options *options);
void wr_page_feed(struct wr_page *page, const char *bytes, size_t count);

/* Ends the page: fills page->facts and reports the links in the order of the page. Returns
 * WEIR_E_NOMEM if links were lost; the other facts are then still right. */
int wr_page_end(struct wr_page *page, wr_page_found *found, void *context);

/* Ends the page in steps: wr_page_close fills the facts, and each wr_page_report reports some
 * links. wr_page_report returns false when all links are reported. */
int wr_page_close(struct wr_page *page);
bool wr_page_report(struct wr_page *page, wr_page_found *found, void *context);

#endif
