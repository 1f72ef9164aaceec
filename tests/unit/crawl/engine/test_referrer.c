/* SPDX-License-Identifier: MIT */
/* test_referrer.c - tests that the referrers of tasks are kept in bounded memory, however long they
 * are. */
#include "lib/test.h"

#include "crawl/engine/engine_state.h"

#define LONG_URL 8000
#define COUNT 3000 /* long URLs; 24 MB together */

static struct wr_crawl_loop *new_loop(void)
{
    static const uint8_t secret[WR_HASH_SECRET_BYTES] = {1};
    struct wr_engine *engine = calloc(1, sizeof *engine);
    struct wr_crawl_loop *loop = calloc(1, sizeof *loop);
    assert_true(engine != NULL && loop != NULL);
    engine->allocator = weir_allocator_system();
    wr_hash_key_init(&engine->hash_key, secret);
    loop->engine = engine;
    wr_referrers_init(loop);
    return loop;
}

static void free_loop(struct wr_crawl_loop *loop)
{
    wr_referrers_release(loop);
    free(loop->engine);
    free(loop);
}

static struct wr_span url_of(char memory[LONG_URL], int number, size_t bytes)
{
    memset(memory, 'x', bytes);
    int head = snprintf(memory, 64, "https://example.org/%d", number);
    memory[head] = 'x';
    return (struct wr_span){memory, bytes};
}

static bool has(const struct wr_crawl_loop *loop, int number, size_t bytes)
{
    char memory[LONG_URL];
    struct wr_span url = url_of(memory, number, bytes), kept = wr_referrer_get(loop, (uint64_t)number);
    return kept.bytes == url.bytes && memcmp(kept.data, url.data, url.bytes) == 0;
}

/* M13, V6: long referrers have at most 16 MiB, and never displace one of usual length. */
static void long_referrers_are_bounded_and_displace_no_usual_ones(void **state)
{
    char memory[LONG_URL];
    size_t kept = 0;
    (void)state;
    struct wr_crawl_loop *loop = new_loop();
    for (int i = 0; i < 2 * COUNT; i += 2) {
        wr_referrer_put(loop, (uint64_t)i, url_of(memory, i, LONG_URL));
        wr_referrer_put(loop, (uint64_t)i + 1, url_of(memory, i + 1, 500));
    }
    for (int i = 0; i < 2 * COUNT; i += 2) {
        kept += has(loop, i, LONG_URL);
        assert_true(has(loop, i + 1, 500));
    }
    assert_true(kept * LONG_URL <= (size_t)16 << 20);
    assert_true(kept * LONG_URL > (size_t)15 << 20);
    for (int i = 0; i < 2 * COUNT; i += 2)
        wr_referrer_drop(loop, (uint64_t)i);
    /* There is room after referrers were dropped. */
    wr_referrer_put(loop, 2 * COUNT, url_of(memory, 2 * COUNT, LONG_URL));
    assert_true(has(loop, 2 * COUNT, LONG_URL));
    free_loop(loop);
}

static void tasks_of_one_page_share_their_referrer(void **state)
{
    char memory[LONG_URL];
    (void)state;
    struct wr_crawl_loop *loop = new_loop();
    for (int i = 0; i < COUNT; i++)
        wr_referrer_put(loop, (uint64_t)i, url_of(memory, 7, LONG_URL));
    assert_int_equal(loop->referrer_bytes, LONG_URL);
    assert_int_equal(wr_referrer_get(loop, COUNT - 1).bytes, LONG_URL);
    free_loop(loop);
}

WEIR_TESTS(test(long_referrers_are_bounded_and_displace_no_usual_ones), test(tasks_of_one_page_share_their_referrer))
