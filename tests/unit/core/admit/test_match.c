/* SPDX-License-Identifier: MIT */
/* test_match.c - tests which requests a rule applies to: its patterns, and the text that they are
 * compared with. */
#include "core/admit/match.h"

#include "lib/test.h"

static bool fits(int parse(const char *, struct wr_glob *), const char *text, const char *value)
{
    struct wr_glob pattern;

    if (parse(text, &pattern) != 0)
        fail_msg("%s: %s", text, weir_error_detail());
    uint32_t steps = WR_MATCH_STEPS_MAX;
    return wr_glob_fits(&pattern, wr_span_of(value), 0, &steps);
}

static void paths_fit_exactly_below_a_prefix_or_by_stars(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *path;
        bool fits;
    } rows[] = {
        {"/login", "/login", true},
        {"/login", "/login/", false},
        {"/login", "/logins", false},
        {"/api/**", "/api/", true},
        {"/api/**", "/api/a/b", true},
        {"/api/**", "/api", true},
        {"/api/**", "/apis", false},
        {"/api/**", "/ap", false},
        {"/img**", "/images/x", false},
        {"/img**", "/img-2/x", true},
        {"**.css", "/a/b.css", true},
        {"**.css", "/a/b.css.map", false},
        {"/users/*/posts", "/users/7/posts", true},
        {"/users/*/posts", "/users//posts", true}, /* a star also matches an empty segment */
        {"/users/*/posts", "/users/7/8/posts", false},
        {"/users/*/posts", "/users/7/posts/1", false},
        {"/v?/x", "/v1/x", true},
        {"/v?/x", "/v/x", false},
        {"/v?x", "/v/x", false},
        {"/*a*b", "/xaxb", true},
        {"/*a*b", "/xaxbx", false},
        {"/*ab", "/aab", true},
        {"/*", "/", true},
        {"/*", "/a/b", false},
        {"/**", "/", true},
        {"/**", "/a/b", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (fits(wr_glob_parse_path, rows[i].pattern, rows[i].path) != rows[i].fits)
            fail_msg("%s on %s should %sfit", rows[i].pattern, rows[i].path, rows[i].fits ? "" : "not ");
    }
}

static void stars_in_hosts_and_values_stand_for_anything(void **state)
{
    (void)state;
    assert_true(fits(wr_glob_parse_host, "*.example.org", "a.b.example.org"));
    assert_false(fits(wr_glob_parse_host, "*.example.org", "example.org"));
    assert_true(fits(wr_glob_parse_host, "example.org", "example.org"));
    assert_true(fits(wr_glob_parse_value, "Mozilla/*", "Mozilla/5.0 (X11; a/b)"));
    assert_false(fits(wr_glob_parse_value, "Mozilla/*", "curl/8"));
}

static void patterns_that_no_path_could_fit_are_refused(void **state)
{
    (void)state;
    static const char *const paths[] = {"login",  "",        "/a?b=1", "/a//b", "/a/../b", "/./a",   "/%61",
                                        "/a#b/c", "/a b",    "/%2f",   "/%40a", "/a\\b",   "**//x",  "**.%6a",
                                        "/**/x",  "/a/**b*", "/**/**", "**",    "**a**",   "/a/*/**"};
    struct wr_glob pattern;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        /* '?' is a wildcard, so this pattern is accepted */
        bool is_question = strcmp(paths[i], "/a?b=1") == 0;
        if ((wr_glob_parse_path(paths[i], &pattern) == 0) != is_question)
            fail_msg("\"%s\"", paths[i]);
    }
    assert_int_equal(wr_glob_parse_host("Example.org", &pattern), WEIR_E_INVAL);
    assert_int_equal(wr_glob_parse_host("example.org/x", &pattern), WEIR_E_INVAL);
    assert_int_equal(wr_glob_parse_host("[::1]", &pattern), 0);
    assert_int_equal(wr_glob_parse_host("[0:0::1]", &pattern), WEIR_E_INVAL);
    assert_int_equal(wr_glob_parse_value("", &pattern), WEIR_E_INVAL);
}

static void a_star_costs_no_more_than_the_lengths_multiplied(void **state)
{
    (void)state;
    /* Backtracking over all stars would take exponential time here. */
    char path[8192], pattern[256] = "/";
    memset(path, 'a', sizeof path);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    for (size_t i = 1; i + 3 < sizeof pattern; i += 2)
        memcpy(pattern + i, "*a", 3);
    size_t end = strlen(pattern);
    memcpy(pattern + end, "b", 2);
    assert_false(fits(wr_glob_parse_path, pattern, path));
}

static void patterns_are_compared_with_each_reading_of_a_path(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *path;
        unsigned loose;
        bool fits;
    } rows[] = {
        {"/Login", "/login", 0, false},
        {"/Login", "/login", WR_LOOSE_CASE, true},
        {"/L*/b", "/lx/b", WR_LOOSE_CASE, true},
        {"/API/**", "/api", WR_LOOSE_CASE, true},
        {"**.CSS", "/a.css", WR_LOOSE_CASE, true},
        {"/login/", "/login", 0, false},
        {"/login/", "/login", WR_LOOSE_END, true},
        {"/login/", "/login", WR_LOOSE_SLASHES, false},
        {"/users/*/", "/users/7", WR_LOOSE_END, true},
        {"**/feed/", "/x/feed", WR_LOOSE_END, true},
        {"/api/**", "/api", WR_LOOSE_END, true},
        {"/", "/", WR_LOOSE_END, true},
        {"**/", "/a", WR_LOOSE_END, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wr_glob pattern;
        assert_int_equal(wr_glob_parse_path(rows[i].pattern, &pattern), 0);
        uint32_t steps = WR_MATCH_STEPS_MAX;
        if (wr_glob_fits(&pattern, wr_span_of(rows[i].path), rows[i].loose, &steps) != rows[i].fits)
            fail_msg("%s on %s should %sfit", rows[i].pattern, rows[i].path, rows[i].fits ? "" : "not ");
    }
}

static void pattern_reports_which_readings_matter_to_it(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        unsigned varies;
    } rows[] = {
        {"/login", 0},
        {"/api/**", 0},
        {"/", 0},
        {"**/", 0},
        {"/Login", WR_LOOSE_CASE},
        {"/api/*/", WR_LOOSE_END},
        {"**/feed/", WR_LOOSE_END},
        {"/API/**", WR_LOOSE_CASE},
        {"/Login/", WR_LOOSE_CASE | WR_LOOSE_END},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wr_glob pattern;
        assert_int_equal(wr_glob_parse_path(rows[i].pattern, &pattern), 0);
        if (wr_glob_varies(&pattern) != rows[i].varies)
            fail_msg("%s: %u", rows[i].pattern, wr_glob_varies(&pattern));
    }
}

static void a_path_too_long_to_rewrite_is_malformed(void **state)
{
    (void)state;
    static char target[20000];
    static struct wr_request_reading asked;
    memset(target, 'a', sizeof target - 1);
    target[0] = '/';
    weir_request request;
    weir_request_init(&request, "GET", target, NULL);
    /* compared in place, without a copy */
    assert_int_equal(wr_request_reading_begin(&request, WR_READS_PATH, 0, &asked), WEIR_FAULT_NONE);
    target[5] = '|';
    assert_int_equal(wr_request_reading_begin(&request, WR_READS_PATH, 0, &asked), WEIR_FAULT_LONG);
    target[5] = 'A';
    assert_int_equal(wr_request_reading_begin(&request, WR_READS_PATH, 0, &asked), WEIR_FAULT_LONG);
    /* no rule compares the path */
    assert_int_equal(wr_request_reading_begin(&request, WR_READS_HOST, 0, &asked), WEIR_FAULT_NONE);
}

static void a_host_that_is_too_long_is_malformed(void **state)
{
    static char long_host[WR_HOST_MAX + 2];
    static struct wr_request_reading asked;
    weir_request request;

    (void)state;
    memset(long_host, 'a', sizeof long_host);
    weir_request_init(&request, NULL, NULL, NULL);
    request.host = long_host;
    request.host_bytes = WR_HOST_MAX;
    assert_int_equal(wr_request_reading_begin(&request, WR_READS_HOST, 0, &asked), WEIR_FAULT_NONE);
    request.host_bytes = WR_HOST_MAX + 1;
    assert_int_equal(wr_request_reading_begin(&request, WR_READS_HOST, 0, &asked), WEIR_FAULT_LONG);
}

static bool fits_request(const struct wr_match *match, const char *method, const char *target, weir_header_list *list)
{
    static struct wr_request_reading asked;
    weir_request request;

    weir_request_init(&request, method, target, NULL);
    request.header = weir_header_list_find;
    request.header_context = list;
    assert_int_equal(wr_request_reading_begin(&request, WR_READS_PATH, 0, &asked), WEIR_FAULT_NONE);
    return wr_match_fits(match, &asked);
}

static void rule_matches_one_entry_of_each_list_and_all_headers(void **state)
{
    (void)state;
    struct wr_span methods[] = {{"POST", 4}, {"PUT", 3}};
    struct wr_glob path, value;
    assert_int_equal(wr_glob_parse_path("/a", &path), 0);
    assert_int_equal(wr_glob_parse_value("b*", &value), 0);
    struct wr_header_pattern headers[] = {{"x-a", true, {0}}, {"x-b", false, value}};
    struct wr_match match = {methods, &path, NULL, headers, 2, 1, 0, 2};
    weir_header sent[] = {{"X-A", ""}, {"X-B", "c"}, {"x-b", " BB "}};
    weir_header_list list = {sent, 3};
    assert_true(fits_request(&match, "PUT", "/a", &list));
    assert_true(fits_request(&match, "put", "/a", &list));
    list.count = 2;
    assert_false(fits_request(&match, "PUT", "/a", &list));
    list.count = 3;
    assert_false(fits_request(&match, "GET", "/a", &list));
    assert_false(fits_request(&match, "PUT", "/b", &list));
    /* an unknown target matches no pattern */
    assert_false(fits_request(&match, "PUT", NULL, &list));
}

WEIR_TESTS(test(paths_fit_exactly_below_a_prefix_or_by_stars), test(stars_in_hosts_and_values_stand_for_anything),
           test(patterns_that_no_path_could_fit_are_refused), test(a_star_costs_no_more_than_the_lengths_multiplied),
           test(patterns_are_compared_with_each_reading_of_a_path), test(pattern_reports_which_readings_matter_to_it),
           test(a_path_too_long_to_rewrite_is_malformed), test(a_host_that_is_too_long_is_malformed),
           test(rule_matches_one_entry_of_each_list_and_all_headers))
