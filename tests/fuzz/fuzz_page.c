/* SPDX-License-Identifier: MIT */
/* fuzz_page.c - fuzzes pages: links and facts are the same for pieces of any size; each link is a
 * canonical URL, reported once, without user and password.
 *
 * The first byte of the input is the size of the pieces, the second selects the content type.
 */
#include "core/web/page/page.h"

#include "fuzz/fuzz.h"

#include <stdlib.h>

#define LINKS_MAX 500

static struct wr_hash_key key;

struct digest {
    uint64_t hash;
    size_t count;
    uint64_t fingerprints[LINKS_MAX];
};

static void mix(struct digest *digest, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        digest->hash = (digest->hash ^ ((const uint8_t *)data)[i]) * UINT64_C(0x100000001b3);
}

static void found(void *context, const struct wr_page_link *link)
{
    static char memory[2][WR_URL_ROOM];
    struct digest *digest = context;
    struct wr_span text = {link->url->text, link->url->bytes};
    struct wr_url again, canonical;

    fuzz_check(wr_url_parse(text, NULL, NULL, memory[0], WR_URL_ROOM, &again) == WR_URL_OK);
    fuzz_check(wr_url_canonical(&again, memory[1], WR_URL_ROOM, &canonical) == WR_URL_OK);
    fuzz_check(canonical.bytes == text.bytes && memcmp(canonical.text, text.data, text.bytes) == 0);
    fuzz_check(canonical.query_at == link->url->query_at && canonical.host_end == link->url->host_end);
    fuzz_check(!wr_url_has_userinfo(link->url) && digest->count < LINKS_MAX);
    for (size_t i = 0; i < digest->count; i++)
        fuzz_check(digest->fingerprints[i] != link->fingerprint);
    digest->fingerprints[digest->count++] = link->fingerprint;
    mix(digest, text.data, text.bytes);
    mix(digest, &link->kind, sizeof link->kind);
}

static void *take(void *context, size_t bytes, size_t align)
{
    (void)context;
    (void)align;
    return calloc(1, bytes);
}

static void give(void *context, void *block, size_t bytes, size_t align)
{
    (void)context;
    (void)bytes;
    (void)align;
    free(block);
}

static uint64_t scan(const uint8_t *data, size_t bytes, size_t piece, const char *type)
{
    static const weir_allocator allocator = {.take = take, .give = give};
    static struct wr_page page;
    static struct digest digest;
    char memory[64];
    struct wr_url url;
    struct wr_page_options options = {
        .url = &url, .key = &key, .content_type = wr_span_of(type), .kinds = WR_LINKS_ALL, .max_links = LINKS_MAX};

    fuzz_check(wr_url_parse(wr_span_of("https://u:p@h.example/a/b?c#d"), NULL, NULL, memory, sizeof memory, &url) ==
               WR_URL_OK);
    digest.hash = digest.count = 0;
    wr_page_init(&page, &allocator);
    wr_page_begin(&page, &options);
    for (size_t at = 0; at < bytes; at += piece)
        wr_page_feed(&page, (const char *)data + at, bytes - at < piece ? bytes - at : piece);
    fuzz_check(wr_page_end(&page, found, &digest) == 0);
    fuzz_check(page.facts.reported == digest.count && page.facts.reported <= page.facts.links);
    fuzz_check(page.facts.bytes == bytes);
    mix(&digest, &page.facts.links, sizeof page.facts.links);
    mix(&digest, &page.facts.directives, sizeof page.facts.directives);
    mix(&digest, page.facts.title.data, page.facts.title.bytes);
    wr_page_release(&page);
    return digest.hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char *const types[] = {"text/html", "text/html; charset=utf-16", "", "text/plain"};
    static const char secret[WR_HASH_SECRET_BYTES] = "any bytes do";

    if (bytes < 2)
        return 0;
    wr_hash_key_init(&key, secret);
    const char *type = types[data[1] % 4];
    fuzz_check(scan(data + 2, bytes - 2, bytes, type) == scan(data + 2, bytes - 2, (size_t)data[0] + 1, type));
    return 0;
}
