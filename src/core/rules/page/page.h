/* SPDX-License-Identifier: MIT */
/* page.h - what a fetched page says: its links, title, wishes and digest, read as its bytes stream by.
 *
 *     struct wr_page page;
 *     wr_page_init(&page, allocator);             once; then for one page after the other
 *         wr_page_begin(&page, &options);
 *         wr_page_feed(&page, bytes, count);      as often as bytes arrive
 *         error = wr_page_end(&page, found, context);   or, where all of them at once take too long:
 *         error = wr_page_close(&page);
 *         while (wr_page_tell(&page, found, context)) …
 *     wr_page_release(&page);
 *
 * Only HTML is searched for links (text/html, application/xhtml+xml, and what has no content type but looks like it);
 * of everything else there is a digest. Links are kept as they are written until the page has ended, for a <base>
 * holds for those before it as well, and a page may say nofollow anywhere. Then each is resolved, made canonical (no
 * fragment: U16) and given its fingerprint; the first of equal ones is reported.
 *
 * Bounded: max_links links, WR_PAGE_TEXT_MAX bytes of them, and WR_PAGE_RESOLVED_MAX bytes of links and of the base
 * that each of them is resolved against, which may be long; the page goes on without those beyond. The buffers are used
 * again and again; what a huge page has taken is given back after it.
 */
#ifndef WR_CORE_RULES_PAGE_PAGE_H
#define WR_CORE_RULES_PAGE_PAGE_H

#include "base/hash.h"
#include "core/rules/links/links.h"
#include "core/rules/page/digest.h"
#include "core/rules/url/url.h"

#define WR_PAGE_LINKS_MAX 10000                 /* the usual max_links */
#define WR_PAGE_TEXT_MAX ((size_t)1 << 20)      /* bytes of links */
#define WR_PAGE_RESOLVED_MAX ((size_t)16 << 20) /* bytes of links, and for each of them of the base */

/* A link with this fingerprint will be reported soon: a chance to have the memory fetched that it will be looked up in.
 * With the context of wr_page_end. */
typedef void wr_page_soon(void *context, uint64_t fingerprint);

/* 0 means the default. All that is pointed to must stay until wr_page_end. */
struct wr_page_options {
    const struct wr_url *url;      /* the page's own, after all redirects */
    const struct wr_idna *idna;    /* NULL: hosts of links are ASCII */
    const struct wr_hash_key *key; /* of fingerprints */
    struct wr_digest *digest;      /* NULL: none */
    struct wr_span content_type;   /* the field's value; empty: the first bytes tell */
    struct wr_span agent;          /* our product token, whose <meta name=AGENT> counts beside robots; may be empty */
    unsigned wishes;               /* of the X-Robots-Tag fields, a set of wr_robots_wish */
    unsigned kinds;                /* of links to report, a set of 1 << kind; WR_LINKS_PAGES */
    uint32_t max_links;            /* then the rest of the page is not read; WR_PAGE_LINKS_MAX */
    bool follows_nofollow;         /* report links also where rel, meta or field say nofollow */
    wr_page_soon *soon;            /* NULL: nobody wants to know */
};

/* What is told when the page has ended; good until the next begins. */
struct wr_page_facts {
    bool is_html;          /* it was searched for links */
    uint64_t bytes;        /* of the body */
    uint32_t links;        /* in the page, of the kinds asked for, however often and wherever they lead */
    uint32_t reported;     /* of them */
    unsigned wishes;       /* of the page and of the fields, a set of wr_robots_wish */
    struct wr_span title;  /* NULL: none */
    struct wr_span digest; /* "xxh128:…"; NULL: none was asked for */
};

struct wr_page_link {
    enum wr_link_kind kind;
    const struct wr_url *url; /* canonical */
    uint64_t fingerprint;     /* wr_hash of it */
};

/* `link` is good during the call. */
typedef void wr_page_found(void *context, const struct wr_page_link *link);

/* The caller's memory; its content is page.c's. */
struct wr_page {
    struct wr_page_facts facts; /* may be read after wr_page_end */

    struct wr_page_options options;
    const weir_allocator *allocator;
    uint8_t look;       /* whether it is HTML */
    struct wr_buf text; /* the links that were kept, each behind its head */
    uint32_t kept;      /* of them */
    size_t base_at;     /* where it is in the text; SIZE_MAX: there is none */
    uint64_t *seen;     /* fingerprints, open-addressed; 0: free */
    size_t seen_room;   /* slots */
    size_t seen_mask;   /* this page uses slots 0 ... seen_mask */
    size_t told_at;     /* the next link to report, in the text */
    size_t resolved;    /* bytes that links were resolved to, see WR_PAGE_RESOLVED_MAX */
    char digest[WR_DIGEST_TEXT_MAX];
    char title[WR_LINKS_TITLE_MAX];
    struct wr_links links;
};

void wr_page_init(struct wr_page *ret_page, const weir_allocator *allocator);
void wr_page_release(struct wr_page *page);

void wr_page_begin(struct wr_page *page, const struct wr_page_options *options);
void wr_page_feed(struct wr_page *page, const char *bytes, size_t count);

/* Reports the links in the order in which they stand in the page, and fills page->facts. WEIR_E_NOMEM: links were lost;
 * the facts are right but for them. */
int wr_page_end(struct wr_page *page, wr_page_found *found, void *context);

/* The same in parts: first the facts, then some links with each call. False: that were all. */
int wr_page_close(struct wr_page *page);
bool wr_page_tell(struct wr_page *page, wr_page_found *found, void *context);

#endif
