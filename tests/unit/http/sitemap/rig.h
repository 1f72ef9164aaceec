/* SPDX-License-Identifier: MIT */
/* rig.h - reads a text as a sitemap, in pieces of any size, and stores the entries. */
#ifndef WEIR_SITEMAP_RIG_H
#define WEIR_SITEMAP_RIG_H

#include "lib/test.h"

#include "http/sitemap/sitemap.h"

#include <stdio.h>

#define KEPT_MAX 16

struct kept {
    size_t count; /* number of entries; the first KEPT_MAX are stored */
    size_t wanted;
    char urls[KEPT_MAX][256];
    int64_t dates[KEPT_MAX];
    bool days[KEPT_MAX];
    bool indexes[KEPT_MAX];
    enum wr_sitemap_end end;
    struct wr_sitemap_counts facts;
};

static inline bool keep(void *context, const struct wr_sitemap_entry *entry)
{
    struct kept *kept = context;
    assert_true(kept->count < kept->wanted);
    if (kept->count < KEPT_MAX) {
        snprintf(kept->urls[kept->count], sizeof kept->urls[0], "%.*s", (int)entry->url.bytes, entry->url.data);
        kept->dates[kept->count] = entry->lastmod_ms;
        kept->days[kept->count] = entry->is_day;
        kept->indexes[kept->count] = entry->is_index;
    }
    return ++kept->count < kept->wanted;
}

/* Reads `data` in pieces of `piece` bytes, and stops after `wanted` entries. */
static inline void read_bytes(const char *data, size_t bytes, size_t piece, size_t wanted, struct kept *ret_kept)
{
    struct wr_sitemap_options options = {.found = keep, .context = ret_kept};
    struct wr_sitemap *sitemap;
    *ret_kept = (struct kept){.wanted = wanted};
    assert_int_equal(wr_sitemap_new(&options, &sitemap), 0);
    for (size_t at = 0; at < bytes; at += piece)
        if (!wr_sitemap_push(sitemap, data + at, bytes - at < piece ? bytes - at : piece))
            break;
    ret_kept->end = wr_sitemap_finish(sitemap);
    ret_kept->facts = *wr_sitemap_counts(sitemap);
    wr_sitemap_free(sitemap);
}

static inline void read_text(const char *text, struct kept *ret_kept)
{
    read_bytes(text, strlen(text), SIZE_MAX / 2, SIZE_MAX, ret_kept);
}

#endif
