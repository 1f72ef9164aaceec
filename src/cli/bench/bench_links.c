/* SPDX-License-Identifier: MIT */
/* bench_links.c - weir bench links: measures the link scanner on a typical page and on plain text,
 * and the complete processing of such a page. */
#include <stdio.h>
#include <string.h>
#include <weir/time.h>

#include "cli/bench/bench.h"
#include "cli/bench/bench_page.h"
#include "cli/bench/sample.h"
#include "cli/kit/command_options.h"
#include "cli/kit/console.h"
#include "core/web/links/links.h"
#include "core/web/page/page.h"
#include "limiter/memory/memory.h"

#define ROUNDS 301 /* Rounds are short: most end before another process wants the processor. */
#define PAGES_PER_ROUND 50
#define TEXT_BYTES ((size_t)1024 * 1024)

struct bench_links_settings {
    bool json;
};

static const struct wr_option options[] = {
    {"json", WR_FLAG(struct bench_links_settings, json), .help = "Print JSON"},
};

static const struct wr_usage usage = {
    .who = "weir bench links",
    .about = "Measures how fast links are found (the median of 301 rounds, and the best round, which\n"
             "other processes disturbed least):\n"
             "\n"
             "  page   12 KB of typical markup, with 35 links\n"
             "  all    the same, each link made canonical and reported once, as in a crawl\n"
             "  text   1 MB of text in one paragraph\n",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

/* ---- measuring ------------------------------------------------------------------------------ */

static void count_link(void *context, const struct wr_link *link)
{
    (void)link;
    ++*(uint64_t *)context;
}

/* Time per page of the median and the best round, ns. */
struct page_times {
    double median, best;
};

/* Measures the link scanner. Returns the time per page and sets *ret_links to the links per
 * page. */
static struct page_times measure_scanner(const char *page, size_t bytes, int pages, uint64_t *ret_links)
{
    static struct wr_links links;
    static struct wr_sample sample;
    uint64_t found = 0;
    struct wr_links_options scan = {.kinds = WR_LINKS_PAGES, .found = count_link, .context = &found};

    sample.count = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t start_at = weir_clock_now(weir_clock_monotonic());
        for (int i = 0; i < pages; i++) {
            wr_links_init(&links, &scan);
            wr_links_feed(&links, page, bytes);
        }
        int64_t took_ns = weir_clock_now(weir_clock_monotonic()) - start_at;
        wr_sample_add(&sample, (double)took_ns / pages);
    }
    *ret_links = found / (uint64_t)pages / ROUNDS;
    return (struct page_times){wr_sample_median(&sample), wr_sample_least(&sample)};
}

static void count_page_link(void *context, const struct wr_page_link *link)
{
    *(uint64_t *)context += link->fingerprint != 0;
}

/* Measures all that a crawl does with a page except the digest. Returns the time per page and sets
 * *ret_links to the reported links per page. */
static struct page_times measure_page(const struct wr_bench_page *text, uint64_t *ret_links)
{
    static struct wr_page page;
    static struct wr_sample sample;
    static struct wr_hash_key key;
    char memory[64];
    struct wr_url url;
    uint64_t found = 0;

    (void)wr_url_parse(wr_span_of("https://www.example.org/articles/"), NULL, NULL, memory, sizeof memory, &url);
    wr_hash_key_init(&key, text->text); /* any bytes serve as the key */
    wr_page_init(&page, wr_allocator_or_system(NULL));
    struct wr_page_options reading = {.url = &url, .key = &key, .content_type = wr_span_of("text/html; charset=utf-8")};
    sample.count = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t start_at = weir_clock_now(weir_clock_monotonic());
        for (int i = 0; i < PAGES_PER_ROUND; i++) {
            wr_page_begin(&page, &reading);
            wr_page_feed(&page, text->text, text->bytes);
            (void)wr_page_end(&page, count_page_link, &found);
        }
        int64_t took_ns = weir_clock_now(weir_clock_monotonic()) - start_at;
        wr_sample_add(&sample, (double)took_ns / PAGES_PER_ROUND);
    }
    wr_page_release(&page);
    *ret_links = found / PAGES_PER_ROUND / ROUNDS;
    return (struct page_times){wr_sample_median(&sample), wr_sample_least(&sample)};
}

int wr_bench_links_run(int argc, char **argv)
{
    static struct wr_bench_page page;
    static char text[TEXT_BYTES];
    struct bench_links_settings settings = {.json = false};
    uint64_t links, told, none;
    int status;

    if (!wr_options_parse(&usage, &argc, argv, &settings, &status))
        return status;
    wr_bench_page_make(&page);
    for (size_t at = 0; at < sizeof text; at++)
        text[at] = at < 3 ? "<p>"[at] : "words in a paragraph, and no markup in them "[at % 44];
    struct page_times page_ns = measure_scanner(page.text, page.bytes, PAGES_PER_ROUND, &links);
    struct page_times all_ns = measure_page(&page, &told);
    struct page_times text_ns = measure_scanner(text, sizeof text, 1, &none);
    wr_print(settings.json
                 ? "{\"page_bytes\": %zu, \"links\": %llu, \"us_per_page\": %.2f, \"best_us_per_page\": %.2f, "
                   "\"page_gb_per_s\": %.3f, \"links_told\": %llu, \"us_in_all\": %.2f, \"best_us_in_all\": %.2f, "
                   "\"text_bytes\": %zu, \"text_gb_per_s\": %.2f, \"best_text_gb_per_s\": %.2f}\n"
                 : "page of %zu bytes with %llu links: %.2f us (best %.2f), %.3f GB/s\n"
                   "all of it, %llu links reported: %.2f us (best %.2f)\n"
                   "text of %zu bytes: %.2f GB/s (best %.2f)\n",
             page.bytes, (unsigned long long)links, page_ns.median / 1e3, page_ns.best / 1e3,
             (double)page.bytes / page_ns.median, (unsigned long long)told, all_ns.median / 1e3, all_ns.best / 1e3,
             sizeof text, (double)sizeof text / text_ns.median, (double)sizeof text / text_ns.best);
    return WR_EXIT_OK;
}
