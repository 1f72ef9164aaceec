/* SPDX-License-Identifier: MIT */
/* test_robots_lenient.c - tests robots.txt as sites really write it, and its records beside
 * rules. */
#include "core/web/robots/robots_compiled.h"
#include "robots_rig.h"

static void keys_are_known_in_every_spelling_that_sites_use(void **state)
{
    static const char *const agents[] = {"User-agent:", "user-agent:", "USER-AGENT :",  "useragent:",  "User agent:",
                                         "User_Agent:", "User-agent",  "User-Agent\t:", "user-agents:"};
    static const char *const denials[] = {
        "Disallow:", "disallow:", "DISALLOW :", "Dissallow:", "disalow:",   "dissalow:",
        "diasllow:", "disallaw:", "Disallow",   "Disallow\t", "Dis-allow:", "Disallowed:"};
    char text[256];
    (void)state;
    for (size_t i = 0; i < sizeof agents / sizeof agents[0]; i++)
        for (size_t j = 0; j < sizeof denials / sizeof denials[0]; j++) {
            snprintf(text, sizeof text, "%s weir\n%s /a\n", agents[i], denials[j]);
            if (judge(text, "/a") != -2)
                fail_msg("%s", text);
        }
    assert_int_equal(judge("User-agent: *\nDisallow: /\nallow /a\n", "/a"), 3);
    assert_int_equal(judge("User-agent: *\nDisallow /a:b\n", "/a:b"), -2);
    assert_int_equal(judge("User-agent:*\nDisallow:/a\n", "/a"), -2);
}

static void prose_and_unknown_keys_are_no_rules(void **state)
{
    static const char *const lines[] = {"Disallow everything please",
                                        "Disallow/a",
                                        "Disallow",
                                        "Noindex: /a",
                                        "disallo: /a",
                                        ": /a",
                                        "/a",
                                        "Dis allow: /a",
                                        "# Disallow: /a",
                                        "<p>Disallow: /a",
                                        "xDisallow: /a",
                                        "Disallow=/a",
                                        "Disallow; /a",
                                        "Allow: /a"};
    char text[256];
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        snprintf(text, sizeof text, "User-agent: *\n%s\n", lines[i]);
        if (judge(text, "/a") < 0)
            fail_msg("%s", text);
    }
}

/* B4 */
static void robots_txt_may_have_any_line_ending_or_none_at_the_end(void **state)
{
    (void)state;
    assert_int_equal(judge("User-agent: *\nDisallow: /a\nDisallow: /b", "/b"), -3);
    assert_int_equal(judge("User-agent: *\r\nDisallow: /a\r\nDisallow: /b\r\n", "/b"), -3);
    assert_int_equal(judge("User-agent: *\rDisallow: /a\rDisallow: /b", "/b"), -3);
    assert_int_equal(judge("User-agent: *\r\r\nDisallow: /a\n\rDisallow: /b", "/b"), -5);
    assert_int_equal(judge("\n\n\n\nUser-agent: *\r\n\r\nDisallow: /b", "/b"), -7);
    assert_int_equal(judge("User-agent: *\nDisallow: /a\r", "/a"), -2);
    assert_int_equal(judge("User-agent: *\r\nDisallow: /a\r\n", "/a"), -2);
    assert_int_equal(judge("   \t User-agent \t : \t * \t \n \t Disallow \t : \t /a \t ", "/a"), -2);
    assert_int_equal(judge("User-agent: *\n\vDisallow: /a\f\n", "/a"), -2);
}

/* B4 */
static void complete_and_broken_byte_order_marks_are_skipped(void **state)
{
    (void)state;
    assert_int_equal(judge("\xef\xbb\xbfUser-agent: *\nDisallow: /a", "/a"), -2);
    assert_int_equal(judge("\xef\xbbUser-agent: *\nDisallow: /a", "/a"), -2);
    assert_int_equal(judge("\xefUser-agent: *\nDisallow: /a", "/a"), -2);
    assert_int_equal(judge("\xef\xbb\xbf", "/a"), 0);
    assert_int_equal(judge("User-agent: *\n\xef\xbb\xbf"
                           "Disallow: /a",
                           "/a"),
                     0); /* not at the start: part of the line */
}

static size_t widen(const char *text, bool is_big, bool has_mark, char *ret_wide)
{
    size_t bytes = 0;
    if (has_mark) {
        ret_wide[bytes++] = is_big ? '\xfe' : '\xff';
        ret_wide[bytes++] = is_big ? '\xff' : '\xfe';
    }
    for (; *text != '\0'; text++) {
        ret_wide[bytes++] = is_big ? '\0' : *text;
        ret_wide[bytes++] = is_big ? *text : '\0';
    }
    return bytes;
}

/* B4 */
static void utf_16_robots_txt_is_detected_by_its_mark_or_its_zeros(void **state)
{
    char wide[256];
    (void)state;
    for (int form = 0; form < 4; form++) {
        size_t bytes = widen("User-agent: *\r\nDisallow: /a\r\n", form & 1, form & 2, wide);
        assert_int_equal(judge_bytes(wide, bytes, "/a"), -2);
        assert_int_equal(judge_bytes(wide, bytes - 1, "/a"), -2); /* half a code unit at the end */
    }
    size_t bytes = widen("User-agent: *\nDisallow: /", false, true, wide);
    /* a letter, a surrogate pair, half a pair */
    memcpy(wide + bytes, "\xfc\x00\x3d\xd8\x00\xde\x00\xd8", 8);
    assert_int_equal(judge_bytes(wide, bytes + 8, "/%C3%BC%F0%9F%98%80%EF%BF%BD"), -2);
    /* the pair ends the file */
    assert_int_equal(judge_bytes(wide, bytes + 6, "/%C3%BC%F0%9F%98%80"), -2);
    assert_int_equal(judge_bytes("\xff\xfe", 2, "/a"), 0);
    assert_int_equal(judge_bytes("\xff", 1, "/a"), 0);
}

/* B4 */
static void nul_bytes_and_garbage_affect_only_their_own_line(void **state)
{
    static const char text[] =
        "User-agent: *\n\0Disallow: /a\0\nDis\0allow: /b\nDisallow: /c\0d\n\xff\xfe\x80\nDisallow: /\xc3\n";
    size_t bytes = sizeof text - 1;
    (void)state;
    assert_int_equal(judge_bytes(text, bytes, "/a"), -2);
    assert_int_equal(judge_bytes(text, bytes, "/b"), 0);
    assert_int_equal(judge_bytes(text, bytes, "/c%00d"), -4);
    assert_int_equal(judge_bytes(text, bytes, "/c"), 0);
    assert_int_equal(judge_bytes(text, bytes, "/%C3"), -6);
    for (size_t cut = 0; cut < bytes; cut++) { /* exact size, so that sanitizers detect overreads */
        char *exact = malloc(cut + 1);
        assert_non_null(exact);
        memcpy(exact, text, cut);
        judge_bytes(exact, cut, "/a");
        free(exact);
    }
}

/* B5 */
static void html_page_or_image_as_robots_txt_allows_everything(void **state)
{
    static const char *const pages[] = {
        "<!DOCTYPE html>\n<pre>\nUser-agent: *\nDisallow: /\n</pre>\n",
        "\r\n  <html>\nUser-agent: *\nDisallow: /\n",
        "\xef\xbb\xbf<HTML><body>\nUser-agent: *\nDisallow: /\n",
        "<?xml version=\"1.0\"?>\nUser-agent: *\nDisallow: /\n",
        "<html><head><title>Disallow: /</title></head><body>User-agent: * Disallow: /</body></html>",
        "<p>User-agent: *</p>\n<p>Disallow: /</p>\n",
        "\x89PNG\r\n\x1a\n\x01\x02Disallow: /\n",
        "GIF89a Disallow: /",
        "",
        "\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++)
        assert_int_equal(judge(pages[i], "/a"), 0);
    /* rules after a warning of the server count */
    assert_int_equal(judge("<br />\n<b>Warning</b>: x in y on line 1<br />\nUser-agent: *\nDisallow: /a", "/a"), -4);
}

/* ---- records beside rules ---- */

static int64_t delay_of(const char *agent, const char *text)
{
    struct robots_fixture rig;
    rig_read_as(&rig, agent, text, strlen(text));
    int64_t delay_ns = wr_robots_facts(rig.robots)->delay_ns;
    rig_release(&rig);
    return delay_ns;
}

static int64_t delay_for(const char *value)
{
    char text[256];
    snprintf(text, sizeof text, "User-agent: *\nCrawl-delay: %s\n", value);
    return delay_of("weir", text);
}

/* U9, B10 */
static void crawl_delays_are_read_exactly_and_within_bounds(void **state)
{
    static const struct {
        const char *value;
        int64_t expected;
    } cases[] = {
        {"0", 0},
        {"1", WEIR_SECOND},
        {"10", 10 * WEIR_SECOND},
        {"0.5", WEIR_SECOND / 2},
        {".5", WEIR_SECOND / 2},
        {"5.", 5 * WEIR_SECOND},
        {"1.25", 1250 * WEIR_MILLISECOND},
        {"0010", 10 * WEIR_SECOND},
        {"1.000000000", WEIR_SECOND},
        {"1.0000000001", WEIR_SECOND + 1}, /* rounded up: never sooner */
        {"0.0000001", 100},
        {"0.0000000000000000000000000000000000001", 1},
        {"1e1", 10 * WEIR_SECOND},
        {"1E+1", 10 * WEIR_SECOND},
        {"25e-1", 2500 * WEIR_MILLISECOND},
        {"1e-400", 1},
        {"0e999999999999", 0},
        {"86400", WEIR_DAY},
        {"86401", WR_ROBOTS_DELAY_MAX_NS},
        {"1e308", WR_ROBOTS_DELAY_MAX_NS},
        {"1e99999999999999999999", WR_ROBOTS_DELAY_MAX_NS},
        {"9999999999999999999999999999999999999999", WR_ROBOTS_DELAY_MAX_NS},
        {"18446744073709551617", WR_ROBOTS_DELAY_MAX_NS}, /* 2^64 + 1 */
        {"9223372036.854775808", WR_ROBOTS_DELAY_MAX_NS}, /* 2^63 ns */
        {"nan", -1},
        {"inf", -1},
        {"-5", -1},
        {"+5", -1},
        {"0x10", -1},
        {"", -1},
        {".", -1},
        {"e5", -1},
        {"1e", -1},
        {"1e+", -1},
        {"1.2.3", -1},
        {"1,5", -1},
        {"5s", -1},
        {"5 6", -1},
        {"\xd9\xa5", -1}, /* an Arabic digit */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (delay_for(cases[i].value) != cases[i].expected)
            fail_msg("\"%s\": %lld", cases[i].value, (long long)delay_for(cases[i].value));
}

/* B10 */
static void crawl_delay_above_the_maximum_is_clamped_and_reported(void **state)
{
    struct wr_robots_options options = {.agent = wr_span_of("weir"), .delay_max_ns = 30 * WEIR_SECOND};
    struct wr_span text = wr_span_of("User-agent: *\nCrawl-delay: 60\nRequest-rate: 2/5m\n");
    test_allocator memory;
    struct wr_robots *robots;
    struct robots_fixture rig;
    (void)state;
    test_allocator_init(&memory);
    assert_int_equal(wr_robots_parse(text, &options, &memory.allocator, &robots), 0);
    assert_true(wr_robots_facts(robots)->is_clamped);
    assert_int_equal(wr_robots_facts(robots)->delay_ns, 30 * WEIR_SECOND);
    assert_int_equal(wr_robots_facts(robots)->rate_period_ns, WEIR_MINUTE);
    assert_int_equal(wr_robots_interval_ns(robots), 30 * WEIR_SECOND);
    wr_robots_free(robots);
    rig_read(&rig, "User-agent: *\nCrawl-delay: 60\n");
    assert_false(wr_robots_facts(rig.robots)->is_clamped);
    rig_release(&rig);
}

/* A value ends where its span ends, whatever bytes follow. */
static void unit_of_a_rate_is_not_taken_from_the_next_line(void **state)
{
    uint32_t requests;
    int64_t period_ns;
    (void)state;
    assert_true(wr_robots_rate_parse((struct wr_span){"1/2m", 4}, &requests, &period_ns));
    assert_int_equal(period_ns, 2 * WEIR_MINUTE);
    assert_true(wr_robots_rate_parse((struct wr_span){"1/2m", 3}, &requests, &period_ns));
    assert_int_equal(period_ns, 2 * WEIR_SECOND);
}

static void crawl_delay_at_the_maximum_is_not_reported_as_clamped(void **state)
{
    static const struct {
        const char *text;
        bool is_clamped;
    } rows[] = {{"User-agent: *\nRequest-rate: 2/1m\n", false},
                {"User-agent: *\nRequest-rate: 2/61\n", true},
                {"User-agent: *\nCrawl-delay: 30\n", false},
                {"User-agent: *\nCrawl-delay: 31\n", true}};
    struct wr_robots_options options = {.agent = wr_span_of("weir"), .delay_max_ns = 30 * WEIR_SECOND};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wr_robots *robots;
        test_allocator memory;
        test_allocator_init(&memory);
        assert_int_equal(wr_robots_parse(wr_span_of(rows[i].text), &options, &memory.allocator, &robots), 0);
        assert_int_equal(wr_robots_facts(robots)->is_clamped, rows[i].is_clamped);
        assert_int_equal(wr_robots_interval_ns(robots), 30 * WEIR_SECOND);
        wr_robots_free(robots);
    }
}

/* B11 */
static void longer_of_two_crawl_delays_counts(void **state)
{
    (void)state;
    assert_int_equal(delay_of("weir", "User-agent: *\nCrawl-delay: 5\nCrawl-delay: 2\n"), 5 * WEIR_SECOND);
    assert_int_equal(delay_of("weir", "User-agent: *\nCrawl-delay: 2\nCrawl-delay: 5\n"), 5 * WEIR_SECOND);
    assert_int_equal(delay_of("weir", "User-agent: *\nCrawl-delay: 2\nCrawl-delay: nan\n"), 2 * WEIR_SECOND);
    assert_int_equal(
        delay_of("weir", "User-agent: weir\nCrawl-delay: 2\nDisallow: /a\nUser-agent: weir\nCrawl-delay: 3\n"),
        3 * WEIR_SECOND);
}

static void crawl_delay_applies_to_the_agents_named_before_it(void **state)
{
    static const char text[] = "User-agent: slow\nCrawl-delay: 30\n\nUser-agent: *\nDisallow: /x\nCrawl-delay: 1\n";
    (void)state;
    assert_int_equal(delay_of("slow", text), 30 * WEIR_SECOND);
    assert_int_equal(delay_of("weir", text), WEIR_SECOND);
    assert_int_equal(delay_of("weir", "Crawl-delay: 9\nUser-agent: *\nDisallow: /x\n"), -1);
    assert_int_equal(delay_of("weir", "User-agent: *\nCrawl-delay: 9\nDisallow: /\nUser-agent: weir\nDisallow: /x\n"),
                     -1);
    assert_int_equal(delay_of("weir", "User-agent: weir\nUser-agent: x\nDisallow: /\nCrawl delay 7\n"),
                     7 * WEIR_SECOND);
}

static int64_t interval_for(const char *lines)
{
    char text[256];
    struct robots_fixture rig;
    snprintf(text, sizeof text, "User-agent: *\n%s\n", lines);
    rig_read(&rig, text);
    int64_t interval_ns = wr_robots_interval_ns(rig.robots);
    rig_release(&rig);
    return interval_ns;
}

static void request_rates_are_read_and_the_slowest_bound_counts(void **state)
{
    static const struct {
        const char *lines;
        int64_t expected;
    } cases[] = {
        {"Request-rate: 1/5", 5 * WEIR_SECOND},
        {"Request-rate: 1/5s", 5 * WEIR_SECOND},
        {"Request-rate: 1/10m", 10 * WEIR_MINUTE},
        {"Request-rate: 1/1h", WEIR_HOUR},
        {"Request-rate: 1/1d", WEIR_DAY},
        {"Request-rate: 2/1S", WEIR_SECOND / 2},
        {"Request-rate: 3/1", 333333334},
        {"request rate: 1/2.5", 2500 * WEIR_MILLISECOND},
        {"Request-rate: 1/5 0600-0845", 5 * WEIR_SECOND},
        {"Request-rate: 1/5\nRequest-rate: 1/7\nRequest-rate: 1/6", 7 * WEIR_SECOND},
        {"Request-rate: 2/10\nRequest-rate: 1/6", 6 * WEIR_SECOND},
        {"Request-rate: 1/5\nCrawl-delay: 8", 8 * WEIR_SECOND},
        {"Request-rate: 1/9\nCrawl-delay: 8", 9 * WEIR_SECOND},
        {"Request-rate: 1/100d", WEIR_DAY},
        {"Request-rate: 4294967295/1", 1},
        {"Request-rate: 0/5", 0},
        {"Request-rate: 1/0", 0},
        {"Request-rate: 5", 0},
        {"Request-rate: 1/", 0},
        {"Request-rate: /5", 0},
        {"Request-rate: -1/5", 0},
        {"Request-rate: 1/5x", 0},
        {"Request-rate: 1/5sm", 0},
        {"Request-rate: 4294967296/1", 0},
        {"Request-rate: 99999999999999999999/1", 0},
        {"Request-rate: 1.5/1", 0},
        {"Crawl-delay: 3", 3 * WEIR_SECOND},
        {"Disallow: /", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (interval_for(cases[i].lines) != cases[i].expected)
            fail_msg("%s: %lld", cases[i].lines, (long long)interval_for(cases[i].lines));
}

static void sitemaps_apply_to_all_agents_wherever_they_stand(void **state)
{
    struct robots_fixture rig;
    (void)state;
    rig_read(&rig, "Sitemap: https://example.org/a.xml\nUser-agent: other\nsite-map: /b.xml\nDisallow: /\n"
                   "Sitemap:https://example.org/c.xml?d=e # comment\nSitemap:\nSITEMAPS: x y\n");
    static const char *const expected[] = {"https://example.org/a.xml", "/b.xml", "https://example.org/c.xml?d=e",
                                           "x y"};
    assert_int_equal(wr_robots_facts(rig.robots)->sitemaps, 4);
    for (uint32_t i = 0; i < 4; i++) {
        struct wr_span sitemap = wr_robots_sitemap(rig.robots, i);
        assert_int_equal(sitemap.bytes, strlen(expected[i]));
        assert_memory_equal(sitemap.data, expected[i], sitemap.bytes);
    }
    rig_release(&rig);
}

WEIR_TESTS(
    test(unit_of_a_rate_is_not_taken_from_the_next_line), test(crawl_delay_at_the_maximum_is_not_reported_as_clamped),
    test(keys_are_known_in_every_spelling_that_sites_use), test(prose_and_unknown_keys_are_no_rules),
    test(robots_txt_may_have_any_line_ending_or_none_at_the_end),
    test(complete_and_broken_byte_order_marks_are_skipped),
    test(utf_16_robots_txt_is_detected_by_its_mark_or_its_zeros),
    test(nul_bytes_and_garbage_affect_only_their_own_line), test(html_page_or_image_as_robots_txt_allows_everything),
    test(crawl_delays_are_read_exactly_and_within_bounds), test(crawl_delay_above_the_maximum_is_clamped_and_reported),
    test(longer_of_two_crawl_delays_counts), test(crawl_delay_applies_to_the_agents_named_before_it),
    test(request_rates_are_read_and_the_slowest_bound_counts), test(sitemaps_apply_to_all_agents_wherever_they_stand))
