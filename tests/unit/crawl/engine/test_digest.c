/* SPDX-License-Identifier: MIT */
/* test_digest.c - tests that digests equal those of xxh128sum and sha256sum. */
#include "lib/test.h"

#include "core/web/page/page.h"
#include "crawl/engine/digest_algorithms.h"
#include "lib/alloc.h"

static void ignore_link(void *context, const struct wr_page_link *link)
{
    (void)context;
    (void)link;
}

/* Feeds each body in two pieces, and each digest object with several bodies. The values are as
 * xxh128sum and sha256sum print them. */
static void digests_equal_those_of_xxh128sum_and_sha256sum(void **state)
{
    static const struct {
        enum wr_digest_kind kind;
        const char *body, *digest;
    } rows[] = {
        {WR_DIGEST_XXH128, "", "xxh128:99aa06d3014798d86001c324468d497f"},
        {WR_DIGEST_XXH128, "abc", "xxh128:06b05ab6733a618578af5f94892f3950"},
        {WR_DIGEST_SHA256, "", "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {WR_DIGEST_SHA256, "abc", "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    };
    static struct wr_page page;
    test_allocator memory;
    struct wr_digest *digests[2];

    (void)state;
    test_allocator_init(&memory);
    wr_page_init(&page, &memory.allocator);
    assert_int_equal(wr_digest_new(WR_DIGEST_XXH128, &memory.allocator, &digests[WR_DIGEST_XXH128]), 0);
    assert_int_equal(wr_digest_new(WR_DIGEST_SHA256, &memory.allocator, &digests[WR_DIGEST_SHA256]), 0);
    for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
        size_t row = i % (sizeof rows / sizeof rows[0]), bytes = strlen(rows[row].body), half = bytes / 2;
        struct wr_page_options options = {.digest = digests[rows[row].kind], .content_type = wr_span_of("text/plain")};
        wr_page_begin(&page, &options);
        wr_page_feed(&page, rows[row].body, half);
        wr_page_feed(&page, rows[row].body + half, bytes - half);
        assert_int_equal(wr_page_end(&page, ignore_link, NULL), 0);
        assert_int_equal(page.facts.digest.bytes, strlen(rows[row].digest));
        assert_string_equal(page.facts.digest.data, rows[row].digest);
    }
    wr_digest_free(digests[0]);
    wr_digest_free(digests[1]);
    wr_page_release(&page);
    assert_int_equal(memory.live, 0);
}

static void digest_none_is_null_and_a_failed_allocation_is_an_error(void **state)
{
    test_allocator memory;
    struct wr_digest *digest = (struct wr_digest *)(void *)&memory;

    (void)state;
    test_allocator_init(&memory);
    memory.fail_at = 1;
    assert_int_equal(wr_digest_new(WR_DIGEST_SHA256, &memory.allocator, &digest), WEIR_E_NOMEM);
    assert_int_equal(wr_digest_new(WR_DIGEST_NONE, &memory.allocator, &digest), 0);
    assert_null(digest);
    wr_digest_free(digest);
    assert_int_equal(memory.live, 0);
}

WEIR_TESTS(test(digests_equal_those_of_xxh128sum_and_sha256sum),
           test(digest_none_is_null_and_a_failed_allocation_is_an_error))
