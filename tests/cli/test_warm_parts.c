/* SPDX-License-Identifier: MIT */
/* test_warm_parts.c - parts of weir warm: the next request for a page (U12), and which URLs belong
 * to a site (B12). */
#include "lib/test.h"

#include "cli/warm/step.h"
#include "cli/warm/warm_operand.h"

#include <string.h>

/* ---- steps ---- */

struct course {
    const char *answers; /* cache status of each response, a letter each: see status_of */
    const char *steps;   /* requests made: G get, P probe, A get again */
    enum wr_cache_status after;
};

static enum wr_cache_status status_of(char letter)
{
    switch (letter) {
    case 'h':
        return WR_CACHE_HIT;
    case 'm':
        return WR_CACHE_MISS;
    case 'e':
        return WR_CACHE_EXPIRED;
    case 's':
        return WR_CACHE_STALE;
    case 'r':
        return WR_CACHE_REVALIDATED;
    case 'b':
        return WR_CACHE_BYPASS;
    case 'd':
        return WR_CACHE_DYNAMIC;
    default:
        return WR_CACHE_UNKNOWN;
    }
}

/* Takes the page through its steps; '!' is a failed response. */
static void run(const struct course *row, struct wr_warm_page_steps *ret_course)
{
    static const char letters[] = {[WR_WARM_GET] = 'G', [WR_WARM_PROBE] = 'P', [WR_WARM_FINAL_GET] = 'A'};
    char steps[16] = "";
    *ret_course = (struct wr_warm_page_steps){0};
    for (size_t i = 0; ret_course->step != WR_WARM_DONE; i++) {
        struct wr_warm_response answer = {row->answers[i] != '!', status_of(row->answers[i]), 100 - (int64_t)i};
        assert_true(i < strlen(row->answers));
        steps[i] = letters[ret_course->step];
        (void)wr_warm_next_step(ret_course, &answer);
    }
    if (strcmp(steps, row->steps) != 0 || ret_course->after != row->after)
        fail_msg("%s: %s, %s", row->answers, steps, wr_cache_name(ret_course->after));
}

static void only_miss_and_expired_are_probed_with_at_most_five_requests(void **state)
{
    static const struct course rows[] = {
        {"h", "G", WR_CACHE_HIT},           {"s", "G", WR_CACHE_STALE},       {"r", "G", WR_CACHE_REVALIDATED},
        {"b", "G", WR_CACHE_BYPASS},        {"d", "G", WR_CACHE_DYNAMIC},     {"?", "G", WR_CACHE_UNKNOWN},
        {"!", "G", WR_CACHE_UNKNOWN},       {"mhh", "GPA", WR_CACHE_HIT},     {"ehh", "GPA", WR_CACHE_HIT},
        {"mmhh", "GPPA", WR_CACHE_HIT},     {"mmehh", "GPPPA", WR_CACHE_HIT}, {"mmmm", "GPPP", WR_CACHE_MISS},
        {"emme", "GPPP", WR_CACHE_EXPIRED}, {"mb", "GP", WR_CACHE_BYPASS},    {"mmd", "GPP", WR_CACHE_DYNAMIC},
        {"m!", "GP", WR_CACHE_MISS},        {"m?", "GP", WR_CACHE_MISS},      {"mhm", "GPA", WR_CACHE_MISS},
        {"mh!", "GPA", WR_CACHE_HIT},       {"ms?", "GPA", WR_CACHE_UNKNOWN},
    };
    struct wr_warm_page_steps course;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        run(&rows[i], &course);
        assert_true(course.probes <= WR_WARM_PROBES_MAX && strlen(rows[i].steps) <= 5);
    }
}

static void time_is_saved_only_if_the_second_response_was_cached(void **state)
{
    struct wr_warm_page_steps course;

    (void)state;
    run(&(struct course){"mhh", "GPA", WR_CACHE_HIT}, &course);
    assert_int_equal(wr_warm_saved_ns(&course), 2);
    run(&(struct course){"mhm", "GPA", WR_CACHE_MISS}, &course);
    assert_int_equal(wr_warm_saved_ns(&course), 0);
    run(&(struct course){"h", "G", WR_CACHE_HIT}, &course);
    assert_int_equal(wr_warm_saved_ns(&course), 0);
    course = (struct wr_warm_page_steps){.after = WR_CACHE_HIT, .before_ns = 5, .after_ns = 9};
    assert_int_equal(wr_warm_saved_ns(&course), 0);
}

static void cache_probes_wait_between_500_ms_and_1_s(void **state)
{
    (void)state;
    assert_int_equal(wr_warm_jitter(0), INT64_C(500000000));
    assert_true(wr_warm_jitter(UINT64_MAX) < INT64_C(1000000000));
    assert_true(wr_warm_jitter(UINT64_MAX) > INT64_C(999000000));
    assert_int_equal(wr_warm_jitter(UINT64_MAX / 2 + 1), INT64_C(750000000));
}

/* ---- kinds of operands, and sites ---- */

static struct wr_url parse(const char *text, char *memory)
{
    struct wr_url url;
    assert_int_equal(wr_url_parse(wr_span_of(text), NULL, NULL, memory, WR_URL_ROOM, &url), WR_URL_OK);
    return url;
}

static void warm_operand_is_site_sitemap_or_page_by_its_path(void **state)
{
    static const struct {
        const char *url;
        enum wr_warm_operand place;
    } rows[] = {
        {"https://example.org", WR_WARM_SITE},
        {"https://example.org/", WR_WARM_SITE},
        {"http://localhost:8080/#top", WR_WARM_SITE},
        {"https://example.org/?x", WR_WARM_PAGE},
        {"https://example.org/a", WR_WARM_PAGE},
        {"https://example.org/sitemap.xml", WR_WARM_SITEMAP},
        {"https://example.org/News.XML.gz?v=2", WR_WARM_SITEMAP},
        {"https://example.org/Sitemap.php", WR_WARM_SITEMAP},
        {"https://example.org/urls.txt", WR_WARM_SITEMAP},
        {"https://example.org/a?b=sitemap.xml", WR_WARM_PAGE},
    };
    char memory[WR_URL_ROOM];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wr_url url = parse(rows[i].url, memory);
        if (wr_warm_operand_kind(&url) != rows[i].place)
            fail_msg("%s", rows[i].url);
    }
}

static void sitemap_may_list_only_urls_of_its_own_domain(void **state)
{
    static const struct {
        const char *home, *url;
        bool is_at_home;
    } rows[] = {
        {"https://example.org/", "https://example.org/a", true},
        {"https://example.org/", "http://example.org/a", true},
        {"https://example.org/", "https://www.example.org./a", true},
        {"https://blog.example.co.uk/", "https://www.example.co.uk/a", true},
        {"https://a.co.uk/", "https://b.co.uk/", false},
        {"https://a.github.io/", "https://b.github.io/", false},
        {"https://example.org/", "https://example.com/", false},
        {"https://example.org/", "https://notexample.org/", false},
        {"https://example.org/", "https://example.org:22/", false},
        {"https://example.org:8443/", "https://example.org:8443/a", true},
        {"https://example.org:8443/", "http://example.org:8443/a", true},
        {"http://127.0.0.1:8080/", "http://127.0.0.1:8080/a", true},
        {"http://127.0.0.1:8080/", "http://127.0.0.2:8080/a", false},
        {"http://127.0.0.1:8080/", "http://127.0.0.1:8081/a", false},
        {"http://localhost/", "http://metadata/", false},
    };
    char memory[2][WR_URL_ROOM];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wr_url home = parse(rows[i].home, memory[0]), url = parse(rows[i].url, memory[1]);
        if (wr_warm_is_same_site(&home, &url) != rows[i].is_at_home)
            fail_msg("%s, %s", rows[i].home, rows[i].url);
    }
}

WEIR_TESTS(test(only_miss_and_expired_are_probed_with_at_most_five_requests),
           test(time_is_saved_only_if_the_second_response_was_cached), test(cache_probes_wait_between_500_ms_and_1_s),
           test(warm_operand_is_site_sitemap_or_page_by_its_path), test(sitemap_may_list_only_urls_of_its_own_domain))
