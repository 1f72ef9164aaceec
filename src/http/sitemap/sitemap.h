/* SPDX-License-Identifier: MIT */
/* sitemap.h - reads the pages that a sitemap, an index of sitemaps, a feed or a list names, in
 * chunks.
 *
 *     wr_sitemap_new(&(struct wr_sitemap_options){.found = note, .context = me}, &sitemap);
 *     while (there are bytes && wr_sitemap_push(sitemap, bytes, count))
 *         continue;                                  note() gets each entry; false ends the reading
 *     end = wr_sitemap_finish(sitemap);
 *     wr_sitemap_free(sitemap);
 *
 * Formats: urlset and sitemapindex (sitemaps.org), RSS and Atom, and plain text with a URL on each
 * line; gzipped or not. The first bytes decide. The file name and the media type are ignored.
 *
 * The bytes are untrusted input. No entities exist except XML's own five, a document type ends the
 * reading, and nothing outside is opened. Everything has a limit: bytes after decompression,
 * entries, depth, the length of a URL and of a tag. Encodings are UTF-8 and UTF-16; a declaration
 * of another is ignored. Broken markup costs the entry that contains it, and reading continues as
 * far as possible. A bare '&', as many URLs have it, stands for itself.
 *
 * URLs are passed on as written, without surrounding blanks. They may have any scheme and host, so
 * check them like links.
 *
 * Not thread-safe. Takes some 60 KB, and as much again while it inflates; libxml2 and zlib allocate
 * their own memory from the system.
 */
#ifndef WR_HTTP_SITEMAP_SITEMAP_H
#define WR_HTTP_SITEMAP_SITEMAP_H

#include "base/span.h"

#include <stdint.h>
#include <weir/error.h>
#include <weir/memory.h>

/* after decompression; 50 MB, the limit of sitemaps.org */
#define WR_SITEMAP_BYTES_MAX UINT64_C(52428800)
#define WR_SITEMAP_ENTRIES_MAX UINT64_C(500000) /* ten times the maximum that sitemaps.org allows */
/* nested elements; a sitemap has 4, pages in a feed more */
#define WR_SITEMAP_DEPTH_MAX 100
#define WR_SITEMAP_TAG_MAX 32768      /* bytes of a tag or comment */
#define WR_SITEMAP_ATTRIBUTES_MAX 128 /* attributes of a tag; also open namespaces */
#define WR_SITEMAP_NO_DATE INT64_MIN

struct wr_sitemap_entry {
    struct wr_span url; /* at most WR_URL_MAX bytes; valid during the call */
    int64_t lastmod_ms; /* last change, ms since 1970; WR_SITEMAP_NO_DATE: none or invalid */
    bool is_day;        /* lastmod_ms has only a day, and is its begin in UTC */
    bool is_index;      /* the URL is that of another sitemap */
};

struct wr_sitemap_options {
    /* Called for each entry in order. Returns false to end the reading. */
    bool (*found)(void *context, const struct wr_sitemap_entry *entry);
    void *context;
    uint64_t bytes_max;   /* byte limit; 0: WR_SITEMAP_BYTES_MAX */
    uint64_t entries_max; /* entry limit; 0: WR_SITEMAP_ENTRIES_MAX */
    const weir_allocator *allocator;
};

#define WR_SITEMAP_ENDS(X)                                                           \
    X(WR_SITEMAP_UNFINISHED, "it is not read to its end yet")                        \
    X(WR_SITEMAP_COMPLETE, "read to its end")                                        \
    X(WR_SITEMAP_STOPPED, "its reader stopped early")                                \
    X(WR_SITEMAP_TOO_LARGE, "it is larger than 50 MB; the rest was not read")        \
    X(WR_SITEMAP_TOO_MANY_ENTRIES, "it has too many entries; the rest was not read") \
    X(WR_SITEMAP_TOO_DEEP, "its elements are nested too deep")                       \
    X(WR_SITEMAP_TAG_TOO_LONG, "a tag or comment in it is too long")                 \
    X(WR_SITEMAP_TOO_MANY_ATTRIBUTES, "it has too many attributes or namespaces")    \
    X(WR_SITEMAP_DOCTYPE, "it has a document type, which sitemaps cannot have")      \
    X(WR_SITEMAP_BROKEN, "it is truncated or malformed")                             \
    X(WR_SITEMAP_NOT_A_SITEMAP, "it is not a sitemap, a feed or a list of URLs")     \
    X(WR_SITEMAP_NO_MEMORY, "out of memory")

enum wr_sitemap_end {
#define X(end, text) end,
    WR_SITEMAP_ENDS(X)
#undef X
};

const char *wr_sitemap_end_text(enum wr_sitemap_end end);

struct wr_sitemap;

/* Makes a reader. Returns WEIR_E_NOMEM if there is no memory. */
int wr_sitemap_new(const struct wr_sitemap_options *options, struct wr_sitemap **ret_sitemap);

/* Reads the next bytes, in chunks of any size. Returns false if no more are wanted. */
bool wr_sitemap_push(struct wr_sitemap *sitemap, const char *data, size_t bytes);

/* Reads the next bytes, but stops after `plain_max` bytes of text or little more, however few
 * gzipped bytes those are. So a caller can limit the time of a call. Returns how many bytes it
 * read; fewer than `bytes` also if no more are wanted. */
/* most bytes of text read beyond plain_max: three pieces */
#define WR_SITEMAP_OVERRUN_MAX ((size_t)24 << 10)
size_t wr_sitemap_push_limited(struct wr_sitemap *sitemap, const char *data, size_t bytes, size_t plain_max);

/* Returns true if more bytes are wanted. */
bool wr_sitemap_wants_more(const struct wr_sitemap *sitemap);

/* Ends the input. May report more entries. Returns how the reading ended, never GOES_ON. */
enum wr_sitemap_end wr_sitemap_finish(struct wr_sitemap *sitemap);

struct wr_sitemap_counts {
    uint64_t bytes;    /* bytes after decompression */
    uint64_t entries;  /* reported entries */
    uint64_t left_out; /* entries that are broken, too long, or without a URL */
};

const struct wr_sitemap_counts *wr_sitemap_counts(const struct wr_sitemap *sitemap);

/* Frees the reader. NULL is allowed. */
void wr_sitemap_free(struct wr_sitemap *sitemap);

#endif
