/* SPDX-License-Identifier: MIT */
/* fuzz_links.c - fuzzes pages: the links are the same for pieces of any size, within the page, and
 * bounded.
 *
 * The first byte of the input is the size of the pieces, the second selects the charset of the
 * header.
 */
#include "core/web/links/links.h"

#include "fuzz/fuzz.h"

#include <stdlib.h>

#define LINKS_MAX 1000

/* Digest of all links, in their order. */
struct digest {
    uint64_t hash;
    uint64_t at;
    size_t page_bytes;
    uint32_t count;
};

static void mix(struct digest *digest, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        digest->hash = (digest->hash ^ ((const uint8_t *)data)[i]) * UINT64_C(0x100000001b3);
}

static void found(void *context, const struct wr_link *link)
{
    struct digest *digest = context;

    fuzz_check(++digest->count <= LINKS_MAX);
    fuzz_check(link->url.bytes <= WR_LINKS_VALUE_MAX);
    /* UTF-16 may become longer as UTF-8. */
    fuzz_check(link->at >= digest->at && link->at < 2 * digest->page_bytes);
    digest->at = link->at;
    mix(digest, &link->kind, sizeof link->kind);
    mix(digest, &link->nofollow, sizeof link->nofollow);
    mix(digest, &link->at, sizeof link->at);
    mix(digest, link->url.data, link->url.bytes);
}

static struct digest scan(const uint8_t *data, size_t bytes, size_t piece, const char *charset)
{
    static struct wr_links links;
    char memory[WR_LINKS_TITLE_MAX];
    struct digest digest = {.page_bytes = bytes};
    struct wr_links_options options = {.kinds = WR_LINKS_ALL,
                                       .max_links = LINKS_MAX,
                                       .charset = wr_span_of(charset),
                                       .agent = wr_span_of("weir"),
                                       .found = found,
                                       .context = &digest};

    wr_links_init(&links, &options);
    for (size_t at = 0; at < bytes; at += piece) {
        size_t count = bytes - at < piece ? bytes - at : piece;
        uint8_t *exact = malloc(count); /* so that a sanitizer reports a read beyond the end */
        fuzz_check(exact != NULL);
        memcpy(exact, data + at, count);
        wr_links_feed(&links, (const char *)exact, count);
        free(exact);
    }
    struct wr_span title = wr_links_title(&links, memory);
    fuzz_check(title.bytes <= WR_LINKS_TITLE_MAX);
    mix(&digest, memory, title.bytes);
    while (title.bytes > 0) {
        size_t before = title.bytes;
        uint32_t point = wr_span_take_point(&title);
        fuzz_check(before - title.bytes > 1 || point < 0x80); /* the title is UTF-8 */
    }
    mix(&digest, &links.directives, sizeof links.directives);
    fuzz_check(links.count == digest.count && links.depth <= WR_LINKS_DEPTH_MAX);
    return digest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char *const charsets[] = {"", "utf-8", "iso-8859-1", "utf-16"};

    if (bytes < 2)
        return 0;
    const char *charset = charsets[data[1] % 4];
    struct digest whole = scan(data + 2, bytes - 2, bytes, charset);
    struct digest pieces = scan(data + 2, bytes - 2, (size_t)data[0] + 1, charset);
    fuzz_check(whole.hash == pieces.hash && whole.count == pieces.count);
    return 0;
}
