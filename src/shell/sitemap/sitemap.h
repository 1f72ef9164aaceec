/* SPDX-License-Identifier: MIT */
/* sitemap.h - which pages a site lists: a sitemap, an index of them, a feed or a list, read as its bytes come.
 *
 *     wr_sitemap_new(&(struct wr_sitemap_options){.found = note, .context = me}, &sitemap);
 *     while (there are bytes && wr_sitemap_push(sitemap, bytes, count))
 *         continue;                                          note() gets each entry, and may say "enough"
 *     end = wr_sitemap_finish(sitemap);
 *     wr_sitemap_free(sitemap);
 *
 * Read are urlset and sitemapindex (sitemaps.org), RSS and Atom, and plain text with a URL on each line; gzipped or
 * not, which their first bytes tell. What it is called and what type it was sent as count for nothing.
 *
 * Bytes are a stranger's (D9). There are no entities but XML's own five, a document type ends the reading, and nothing
 * outside is ever opened. Everything has an end: bytes after decompression, entries, depth, the length of a URL and of
 * a tag. Encodings are UTF-8 and UTF-16; a declaration of another is not believed. Broken markup costs the entry that
 * it is in, and the reading goes on as far as it can; but a bare '&', as many URLs have it, stands for itself.
 *
 * URLs are as written, without blanks around them: any scheme, any host, so treat them like links (B12).
 *
 * Not for several threads at once. Takes some 60 KB, and as much again while it inflates; libxml2 and zlib have theirs
 * from the system.
 */
#ifndef WR_SHELL_SITEMAP_SITEMAP_H
#define WR_SHELL_SITEMAP_SITEMAP_H

#include "base/span.h"

#include <stdint.h>
#include <weir/error.h>
#include <weir/memory.h>

#define WR_SITEMAP_BYTES_MAX UINT64_C(52428800) /* after decompression; 50 MB, as sitemaps.org has it */
#define WR_SITEMAP_ENTRIES_MAX UINT64_C(500000) /* ten times what sitemaps.org allows */
#define WR_SITEMAP_DEPTH_MAX 100                /* elements in elements; a sitemap has 4, pages inside a feed more */
#define WR_SITEMAP_TAG_MAX 32768                /* bytes of a tag or comment */
#define WR_SITEMAP_ATTRIBUTES_MAX 128           /* of a tag; and namespaces that are open */
#define WR_SITEMAP_NO_DATE INT64_MIN

struct wr_sitemap_entry {
    struct wr_span url; /* at most WR_URL_MAX bytes; good during the call */
    int64_t lastmod_ms; /* when it last changed, since 1970; WR_SITEMAP_NO_DATE: it does not say, or not so */
    bool is_day;        /* some time on that day, which begins then at Greenwich: more it does not say */
    bool is_index;      /* the URL is that of another sitemap */
};

struct wr_sitemap_options {
    /* Gets each entry in its turn. False: enough, no more is read. */
    bool (*found)(void *context, const struct wr_sitemap_entry *entry);
    void *context;
    uint64_t bytes_max;   /* 0: WR_SITEMAP_BYTES_MAX */
    uint64_t entries_max; /* 0: WR_SITEMAP_ENTRIES_MAX */
    const weir_allocator *allocator;
};

#define WR_SITEMAP_ENDS(X)                                                \
    X(WR_SITEMAP_GOES_ON, "it goes on")                                   \
    X(WR_SITEMAP_WHOLE, "read to its end")                                \
    X(WR_SITEMAP_ENOUGH, "no more was wanted")                            \
    X(WR_SITEMAP_LARGE, "it is larger than 50 MB; the rest was not read") \
    X(WR_SITEMAP_FULL, "it has too many entries; the rest was not read")  \
    X(WR_SITEMAP_DEEP, "its elements are nested too deep")                \
    X(WR_SITEMAP_TAG, "a tag or comment in it is too long")               \
    X(WR_SITEMAP_CROWDED, "it has too many attributes or namespaces")     \
    X(WR_SITEMAP_DOCTYPE, "it has a document type, which no sitemap has") \
    X(WR_SITEMAP_BROKEN, "it breaks off, or what follows cannot be read") \
    X(WR_SITEMAP_NONE, "it is no sitemap, no feed and no list of URLs")   \
    X(WR_SITEMAP_MEMORY, "there is no memory left")

enum wr_sitemap_end {
#define X(end, text) end,
    WR_SITEMAP_ENDS(X)
#undef X
};

const char *wr_sitemap_end_text(enum wr_sitemap_end end);

struct wr_sitemap;

/* WEIR_E_NOMEM. */
int wr_sitemap_new(const struct wr_sitemap_options *options, struct wr_sitemap **ret_sitemap);

/* The next bytes, as many as there are. False: no more are wanted. */
bool wr_sitemap_push(struct wr_sitemap *sitemap, const char *data, size_t bytes);

/* The same for who has little time: stops when it has read `plain_max` bytes of text or somewhat more, however little
 * of the data they are when it is gzipped. Returns how much of it was read; less than all also if no more is wanted. */
#define WR_SITEMAP_MORE_MAX ((size_t)24 << 10) /* than plain_max is not read: three pieces */
size_t wr_sitemap_push_some(struct wr_sitemap *sitemap, const char *data, size_t bytes, size_t plain_max);

/* Whether more is wanted. */
bool wr_sitemap_goes_on(const struct wr_sitemap *sitemap);

/* There are no more. Entries may still come. How it ended: never GOES_ON. */
enum wr_sitemap_end wr_sitemap_finish(struct wr_sitemap *sitemap);

struct wr_sitemap_facts {
    uint64_t bytes;    /* after decompression */
    uint64_t entries;  /* that were told */
    uint64_t left_out; /* broken, too long, or without a URL */
};

const struct wr_sitemap_facts *wr_sitemap_facts(const struct wr_sitemap *sitemap);

/* NULL is fine. */
void wr_sitemap_free(struct wr_sitemap *sitemap);

#endif
