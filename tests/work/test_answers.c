/* SPDX-License-Identifier: MIT */
/* test_answers.c - tests that any data from servers costs a number of steps proportional to its
 * size (M12, N1-2, B3). */
#include "steps.h"

#include "core/web/http/cache.h"
#include "core/web/http/field.h"
#include "core/web/http/firewall.h"
#include "core/web/http/head.h"
#include "core/web/http/http_date.h"
#include "core/web/http/server_limits.h"
#include "core/web/page/page.h"
#include "core/web/robots/robots.h"
#include "crawl/engine/pattern.h"
#include "http/sitemap/sitemap.h"

#define KIB ((size_t)1024)

static const char here_text[] = "https://h.example/a/b";

static void parse_url(const char *text, size_t bytes, const struct wr_url *base, char *memory, struct wr_url *ret_url)
{
    assert_int_equal(wr_url_parse((struct wr_span){text, bytes}, base, NULL, memory, WR_URL_ROOM, ret_url), WR_URL_OK);
}

/* ---- robots.txt ---- */

static struct wr_robots *read_robots(const char *text, size_t bytes)
{
    const struct wr_robots_options options = {.agent = wr_span_of("weir"), .delay_max_ns = WR_ROBOTS_DELAY_MAX_NS};
    struct wr_robots *robots = NULL;
    assert_int_equal(wr_robots_parse((struct wr_span){text, bytes}, &options, weir_allocator_system(), &robots), 0);
    return robots;
}

static void work_of_robots(const char *text, size_t bytes)
{
    wr_robots_free(read_robots(text, bytes));
}

static void robots_txt_costs_steps_in_proportion_to_its_bytes(void **state)
{
    static const char *const lines[] = {
        "\n",
        "\r",
        "#",
        " ",
        "-",
        "*",
        "%",
        "a",
        ":",
        "Disallow: /a\n",
        "Disallow: /*a\n",
        "Disallow:/\n",
        "Allow:*$\n",
        "Disallow: /%%%%%%%\n",
        "User-agent: weir\n",
        "User-agent: *\nAllow: /\n",
        "user-",
        "user ",
        "Crawl-delay: 0.00001\n",
        "Crawl-delay: 1e999999999\n",
        "Request-rate: 1/1\n",
        "Sitemap: http://h/\n",
        "\xff\xfe",
        "\xef\xbb\xbf",
    };
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        steps_grow_with("robots", work_of_robots, "User-agent: *\n", lines[i], "", 64 * KIB, 100);
        steps_grow_with("robots", work_of_robots, "User-agent: *\nDisallow: /", lines[i], "", 64 * KIB, 100);
        steps_grow_with("robots", work_of_robots, "User-agent: *\nCrawl-delay: 1", lines[i], "", 64 * KIB, 100);
    }
    steps_grow_with("robots", work_of_robots, "User-agent: *\nCrawl-delay: 0.", "1", "", 64 * KIB, 100);
    steps_grow_with("robots", work_of_robots, "User-agent: *\nCrawl-delay: 1e", "9", "", 64 * KIB, 100);
}

/* Returns a MiB of rules. Each consists of `begin`, `letters` letters, and `end`. */
static struct wr_robots *many_rules(const char *begin, size_t letters, const char *end)
{
    const size_t room = WR_ROBOTS_MAX + 20000;
    char *text = malloc(room);
    size_t at = (size_t)snprintf(text, room, "User-agent: *\n");
    for (size_t n = 0; at < WR_ROBOTS_MAX; n++) {
        size_t count = letters > 0 ? letters : n % 2000; /* 0: all lengths in turn */
        at += (size_t)snprintf(text + at, room - at, "Disallow: %s", begin);
        memset(text + at, 'a', count);
        at += count + (size_t)snprintf(text + at + count, room - at - count, "%s\n", end);
    }
    struct wr_robots *robots = read_robots(text, at);
    free(text);
    return robots;
}

/* All paths have the letters and pairs that the rules need, so that each rule must be tried. */
static void no_robots_txt_makes_a_path_cost_more_than_the_bound(void **state)
{
    static const struct {
        const char *begin;
        size_t letters;
        const char *end;
    } files[] = {{"/*", 2, "b"},     {"/*", 32, "b"},      {"/*a*a*a*a*a*", 2, "b"}, {"/*", 8000, "b$"},
                 {"/*", 8000, "b*"}, {"/*b*", 8000, "b$"}, {"/", 0, "*bb"},          {"/*", 0, "bb"},
                 {"*", 2, "b$"},     {"/*abba*", 1, "bb"}};
    static const char *const paths[] = {"/bcaba", "/bbaaba", "/abbabb"};
    static char path[WR_URL_MAX];
    bool has_given_up = false;
    (void)state;
    for (size_t file = 0; file < sizeof files / sizeof files[0]; file++) {
        struct wr_robots *robots = many_rules(files[file].begin, files[file].letters, files[file].end);
        for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
            memset(path, 'a', sizeof path);
            memcpy(path, paths[i], strlen(paths[i]));
            uint64_t before = steps_now();
            has_given_up |= wr_robots_match(robots, (struct wr_span){path, sizeof path}).gave_up;
            uint64_t steps = steps_now() - before;
            if (getenv("WEIR_TEST_STEPS") != NULL)
                print_message("%s, %zu letters, %s: %llu steps\n", files[file].begin, files[file].letters,
                              files[file].end, (unsigned long long)steps);
            assert_true(steps < UINT64_C(6) * WR_ROBOTS_WORK_MAX);
        }
        wr_robots_free(robots);
    }
    assert_true(has_given_up);
}

/* ---- pages ---- */

static struct wr_hash_key hash_key;
static bool is_byte_by_byte;

static void found(void *context, const struct wr_page_link *link)
{
    *(size_t *)context += link->url->bytes;
}

static size_t read_page(const char *text, size_t bytes)
{
    static struct wr_page page;
    char memory[WR_URL_ROOM];
    struct wr_url here;
    size_t told = 0, piece = is_byte_by_byte ? 1 : bytes;
    parse_url(here_text, strlen(here_text), NULL, memory, &here);
    const struct wr_page_options options = {
        .url = &here, .key = &hash_key, .content_type = wr_span_of("text/html"), .kinds = WR_LINKS_ALL};
    wr_page_init(&page, weir_allocator_system());
    wr_page_begin(&page, &options);
    for (size_t at = 0; at < bytes; at += piece)
        wr_page_feed(&page, text + at, piece);
    assert_int_equal(wr_page_end(&page, found, &told), 0);
    wr_page_release(&page);
    return told;
}

static void work_of_page(const char *text, size_t bytes)
{
    (void)read_page(text, bytes);
}

static const char *const page_texts[] = {
    "<",
    "<a",
    "</",
    "<a href=x>",
    "<a href='",
    "<!",
    "<!-",
    "<!--",
    "-",
    "--!",
    "<!-- -->",
    "]",
    "]]",
    "&",
    "&amp",
    "&#1",
    "<svg>",
    "</svg>",
    "<svg><a>",
    "</a>",
    "<math><mi>",
    "<svg><desc>",
    "</desc>",
    "<template>",
    "</template>",
    "<b a=1 ",
    "a=b ",
    " a",
    "=",
    "\"",
    "'",
    "/",
    ">",
    "<title>",
    "<title>&#",
    "<script>",
    "<script><!--<script>",
    "</scrip",
    "<textarea>",
    "<plaintext>",
    "<img srcset='a, b 2x'>",
    ",",
    "a,(",
    "<base href=b>",
    "<meta name=robots content=a,b>",
    "<meta http-equiv=refresh content=0;url=x>",
    "<link rel='a b c d' href=x>",
    "<font size=1>",
    "<a href='../../../..'>",
    "<a href=//xn--a.b.c>",
    "<a href='%41%'>",
    "<a href='http:a'>",
};

static void page_costs_steps_in_proportion_to_its_bytes(void **state)
{
    (void)state;
    for (int byte_by_byte = 0; byte_by_byte < 2; byte_by_byte++)
        for (size_t i = 0; i < sizeof page_texts / sizeof page_texts[0]; i++) {
            is_byte_by_byte = byte_by_byte != 0;
            steps_grow_with("page", work_of_page, "<html>", page_texts[i], "", 64 * KIB, 150);
            steps_grow_with("page", work_of_page, "<a href='", page_texts[i], "", 64 * KIB, 150);
            steps_grow_with("page", work_of_page, "<title>", page_texts[i], "</title>", 64 * KIB, 150);
            steps_grow_with("page", work_of_page, "<svg><math ", page_texts[i], "", 64 * KIB, 150);
            steps_grow_with("page", work_of_page, "<script>", page_texts[i], "", 64 * KIB, 150);
            steps_grow_with("page", work_of_page, "<img srcset='", page_texts[i], "'>", 64 * KIB, 150);
        }
}

static void a_long_base_does_not_multiply_the_links_of_a_page(void **state)
{
    static const char *const links[] = {"<a href=%x>", "<a href=%x/../../..>", "<a href=./%x>", "<a href=%%%x>"};
    const size_t room = 1 << 20;
    char *text = malloc(room);
    (void)state;
    is_byte_by_byte = false;
    for (size_t kind = 0; kind < sizeof links / sizeof links[0]; kind++) {
        size_t at = (size_t)snprintf(text, room, "<base href='/%0*d/'>", (int)WR_URL_MAX - 100, 0);
        for (unsigned i = 0; i < WR_PAGE_LINKS_MAX; i++)
            at += (size_t)snprintf(text + at, room - at, links[kind], i);
        uint64_t before = steps_now();
        size_t told = read_page(text, at);
        uint64_t steps = steps_now() - before;
        if (getenv("WEIR_TEST_STEPS") != NULL)
            print_message("%s: %zu bytes of URLs, %llu steps\n", links[kind], told, (unsigned long long)steps);
        assert_true(told <= WR_PAGE_RESOLVED_MAX);
        assert_true(steps < 4 * WR_PAGE_RESOLVED_MAX);
    }
    free(text);
}

/* ---- URLs ---- */

static void work_of_url(const char *text, size_t bytes)
{
    char memory[WR_URL_ROOM], canonical[WR_URL_ROOM], base_memory[WR_URL_ROOM];
    struct wr_url base, url;
    parse_url(here_text, strlen(here_text), NULL, base_memory, &base);
    if (wr_url_parse((struct wr_span){text, bytes}, &base, NULL, memory, sizeof memory, &url) == WR_URL_OK)
        (void)wr_url_canonical(&url, canonical, sizeof canonical, &url);
}

static void url_costs_steps_in_proportion_to_its_bytes(void **state)
{
    static const char *const texts[] = {"/..",    "/.", "/%2e", "../", "a/",  "/",  "\\",   "@",        ":", "[",
                                        "[::",    "]",  "\t",   "%",   "%41", "?",  "&a=b", "#",        ".", "a.",
                                        "xn--a.", "0x", "1.",   "a@",  ":1",  "a:", " ",    "\xc3\xa4", "`"};
    static const char *const begins[] = {"http://h/",  "http://",   "",  "//",    "http://h/?",
                                         "http://h/#", "http://u@", "?", "/a/../"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        for (size_t j = 0; j < sizeof begins / sizeof begins[0]; j++)
            steps_grow_with("url", work_of_url, begins[j], texts[i], "", 2 * KIB, 150);
}

static struct wr_pattern pattern;

static void work_of_pattern(const char *text, size_t bytes)
{
    (void)bytes;
    (void)wr_pattern_matches(&pattern, text);
}

static void matching_a_url_costs_steps_in_proportion_to_its_bytes(void **state)
{
    static const char *const patterns[] = {
        "re:a.*b",
        "re:sessionid=.*&",
        "re:(a|b)*a.{20}c",
        "re:^(a*)*$",
        "re:(a|a)*c",
        "re:((a?){30}){30}c",
        "re:[ab]*[ab]*[ab]*c$",
        "re:\\ba\\b.*\\<b",
        "re:(.*a){5}$",
        "re:.*.*.*.*=",
        "*a*a*a*b",
        "*aaaaaaaab*",
        "*?a*?b",
        "aaaaaaab",
        "re:^http",
        "re:c$",
    };
    static const char *const texts[] = {"a", "ab", "sessionid=", "a-", "aaaaaaaa", "b"};
    (void)state;
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        assert_int_equal(wr_pattern_init(&pattern, patterns[i], weir_allocator_system()), 0);
        for (size_t j = 0; j < sizeof texts / sizeof texts[0]; j++)
            steps_grow_with(patterns[i], work_of_pattern, "https://h/", texts[j], "", 2 * KIB, 20 * WR_REGEX_NODES_MAX);
        wr_pattern_release(&pattern);
    }
}

/* ---- heads and fields ---- */

static void read_field(struct wr_span name, struct wr_span value)
{
    struct wr_firewall_evidence look = {.status = 403};
    struct wr_cache cache = {.status = 0};
    struct wr_server_limits limits;
    int64_t at;
    wr_server_limits_init(&limits, 0);
    wr_server_limits_field(&limits, name, value);
    (void)wr_server_limits_result(&limits);
    wr_cache_field(&cache, name, value);
    wr_firewall_field(&look, name, value);
    (void)wr_max_age_ns(value);
    (void)wr_robots_directives_parse(value, wr_span_of("weir"));
    (void)wr_content_type_parse(value);
    (void)wr_http_date_parse(value, 0, &at);
}

static void work_of_head(const char *text, size_t bytes)
{
    const struct wr_head_limits limits = {.bytes_max = 256 << 10, .interims_max = 16};
    struct wr_span rest = {text, bytes}, name, value;
    struct wr_head head;
    wr_head_init(&head, weir_allocator_system(), &limits);
    while (rest.bytes > 0) {
        size_t end = wr_span_find(rest, '\n');
        end += end < rest.bytes;
        if (wr_head_line(&head, (struct wr_span){rest.data, end}) != WR_HEAD_OK)
            break;
        rest = wr_span_after(rest, end);
    }
    for (size_t cursor = 0; wr_head_next(&head, &cursor, &name, &value);)
        read_field(name, value);
    wr_head_release(&head);
}

static void response_head_costs_steps_in_proportion_to_its_bytes(void **state)
{
    static const char *const texts[] = {"a: b\r\n",
                                        "a:\n",
                                        " \r\n",
                                        "\t x\r\n",
                                        " ",
                                        "a",
                                        ":",
                                        ",",
                                        "Content-Encoding: ,\r\n",
                                        "Set-Cookie: a=b; c\r\n",
                                        "Set-Cookie: incap_ses\r\n",
                                        "Connection: a, b\r\n",
                                        "X-Ratelimit-Limit-A: 1\r\n",
                                        "Retry-After: 1\r\n",
                                        "Server: cloudflar\r\n",
                                        "\r\n"};
    static const char *const begins[] = {"HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Encoding: ",
                                         "HTTP/1.1 200 OK\r\nRateLimit: ", "HTTP/1.1 200 OK\r\nServer: "};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        for (size_t j = 0; j < sizeof begins / sizeof begins[0]; j++)
            steps_grow_with("head", work_of_head, begins[j], texts[i], "\r\n\r\n", 32 * KIB, 300);
}

static void work_of_fields(const char *text, size_t bytes)
{
    static const char *const names[] = {"RateLimit",     "RateLimit-Policy", "X-RateLimit-Reset",
                                        "Retry-After",   "Cache-Status",     "X-Cache",
                                        "Server-Timing", "X-Varnish",        "Age",
                                        "Set-Cookie",    "Server",           "Location",
                                        "Date"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        read_field(wr_span_of(names[i]), (struct wr_span){text, bytes});
}

static void response_header_costs_steps_in_proportion_to_its_bytes(void **state)
{
    static const char *const texts[] = {",",
                                        "a,",
                                        "a=1;",
                                        "\"",
                                        "\\\"",
                                        "\"a\";b=1,",
                                        "1,",
                                        "1.5,",
                                        "0",
                                        "9",
                                        "a;a;",
                                        "?1,",
                                        ":a:",
                                        " ",
                                        "\t",
                                        "incap_ses",
                                        "ts0",
                                        "1;w=1, ",
                                        "\"a\";r=1;t=1, ",
                                        "hit; ",
                                        "TCP_",
                                        "cdn-cache; ",
                                        "1s",
                                        "1h2m",
                                        "Mon, ",
                                        "max-age=1,",
                                        "nofollow, ",
                                        "weir: ",
                                        "charset=",
                                        "@1,",
                                        "%\"",
                                        "-1,"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        steps_grow_with("field", work_of_fields, "", texts[i], "", 8 * KIB, 3000);
}

static void work_of_firewall(const char *text, size_t bytes)
{
    for (uint32_t signs = 0; signs < 1u << 15; signs = signs * 2 + 1) {
        const struct wr_firewall_evidence look = {
            .status = 403, .signs = signs & ~(1u << 1 | 1u << 6 | 1u << 8 | 1u << 10 | 1u << 14)};
        (void)wr_firewall_identify(&look, (struct wr_span){text, bytes}, bytes);
    }
}

static void firewall_check_costs_steps_in_proportion_to_the_body_bytes(void **state)
{
    static const char *const texts[] = {"a",
                                        "reference ",
                                        "the requested url was rejected. please consult with your administrato",
                                        "cf-error-detail",
                                        "errors.edgesuite.net",
                                        "fgd_ico",
                                        "g",
                                        "generated by "};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        steps_grow_with("firewall", work_of_firewall, "", texts[i], "", 2 * KIB, 3000);
}

/* ---- sitemaps ---- */

static bool take_entry(void *context, const struct wr_sitemap_entry *entry)
{
    (void)context, (void)entry;
    return true;
}

static void work_of_sitemap(const char *text, size_t bytes)
{
    const struct wr_sitemap_options options = {.found = take_entry};
    struct wr_sitemap *sitemap;
    assert_int_equal(wr_sitemap_new(&options, &sitemap), 0);
    (void)wr_sitemap_push(sitemap, text, bytes);
    (void)wr_sitemap_finish(sitemap);
    wr_sitemap_free(sitemap);
}

/* The work of libxml2 is not counted; its input is bounded. */
static void sitemap_costs_steps_in_proportion_to_its_bytes(void **state)
{
    static const char *const texts[] = {
        "&", "&a",    "&amp;",         "<a/>",     "<url><loc>http://x/</loc></url>",    "http://x/\n", "\n",
        " ", "<loc>", "<![CDATA[a]]>", "<!-- -->", "<url><lastmod>2026</lastmod></url>", "<?a ?>"};
    static const char *const begins[] = {"<urlset>", "<urlset><url><loc>", "http://x/"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        for (size_t j = 0; j < sizeof begins / sizeof begins[0]; j++)
            steps_grow_with("sitemap", work_of_sitemap, begins[j], texts[i], "", 32 * KIB, 300);
}

static int set_up(void)
{
    static const char secret[WR_HASH_SECRET_BYTES] = "any bytes do";
    wr_hash_key_init(&hash_key, secret);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        test(robots_txt_costs_steps_in_proportion_to_its_bytes),
        test(no_robots_txt_makes_a_path_cost_more_than_the_bound),
        test(page_costs_steps_in_proportion_to_its_bytes),
        test(a_long_base_does_not_multiply_the_links_of_a_page),
        test(url_costs_steps_in_proportion_to_its_bytes),
        test(matching_a_url_costs_steps_in_proportion_to_its_bytes),
        test(response_head_costs_steps_in_proportion_to_its_bytes),
        test(response_header_costs_steps_in_proportion_to_its_bytes),
        test(firewall_check_costs_steps_in_proportion_to_the_body_bytes),
        test(sitemap_costs_steps_in_proportion_to_its_bytes),
    };
    set_up();
    return weir_tests_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
