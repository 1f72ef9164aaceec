/* SPDX-License-Identifier: MIT */
/* fuzz_sitemap.c - fuzzes sitemaps in pieces of any size: entries and bytes are bounded, URLs are
 * not empty and have no spaces around them, and after enough entries no more are reported.
 *
 * The first byte of the input is the size of the pieces, the second the number of entries wanted.
 */
#include "core/web/url/url.h"
#include "http/sitemap/sitemap.h"

#include "fuzz/fuzz.h"

#define BYTES_MAX ((uint64_t)1 << 20)
#define ENTRIES_MAX 100

struct seen {
    uint64_t count, wanted;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool found(void *context, const struct wr_sitemap_entry *entry)
{
    struct seen *seen = context;
    struct wr_span url = entry->url;
    fuzz_check(seen->count < seen->wanted && seen->count < ENTRIES_MAX);
    fuzz_check(url.bytes > 0 && url.bytes <= WR_URL_MAX);
    fuzz_check(!is_blank(url.data[0]) && !is_blank(url.data[url.bytes - 1]));
    return ++seen->count < seen->wanted;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct seen seen = {0};
    struct wr_sitemap_options options = {
        .found = found, .context = &seen, .bytes_max = BYTES_MAX, .entries_max = ENTRIES_MAX};
    struct wr_sitemap *sitemap;
    if (bytes < 2)
        return 0;
    size_t piece = (size_t)data[0] * 16 + 1, at = 2;
    seen.wanted = (uint64_t)data[1] + 1;
    fuzz_check(wr_sitemap_new(&options, &sitemap) == 0);
    while (at < bytes) {
        size_t count = bytes - at < piece ? bytes - at : piece;
        bool goes_on = wr_sitemap_push(sitemap, (const char *)data + at, count);
        fuzz_check(goes_on || !wr_sitemap_push(sitemap, "http://x/\n", 10));
        if (!goes_on)
            break;
        at += count;
    }
    enum wr_sitemap_end end = wr_sitemap_finish(sitemap);
    const struct wr_sitemap_counts *facts = wr_sitemap_counts(sitemap);
    fuzz_check(end != WR_SITEMAP_UNFINISHED && end <= WR_SITEMAP_NO_MEMORY && wr_sitemap_end_text(end)[0] != '\0');
    fuzz_check((end == WR_SITEMAP_STOPPED) == (seen.count == seen.wanted));
    fuzz_check(facts->entries == seen.count && facts->bytes <= BYTES_MAX);
    wr_sitemap_free(sitemap);
    return 0;
}
