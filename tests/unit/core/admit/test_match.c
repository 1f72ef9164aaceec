/* SPDX-License-Identifier: MIT */
/* test_match.c - which requests a rule is for: patterns, and one spelling for all that mean the same. */
#include "core/admit/match.h"

#include "lib/test.h"

static bool fits(int parse(const char *, struct wr_glob *), const char *text, const char *value)
{
    struct wr_glob pattern;

    if (parse(text, &pattern) != 0)
        fail_msg("%s: %s", text, weir_error_detail());
    return wr_glob_fits(&pattern, wr_span_of(value));
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
        {"/users/*/posts", "/users//posts", true}, /* never seen: paths come without empty parts */
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
    static const char *const paths[] = {"login", "",     "/a?b=1", "/a//b",   "/a/../b", "/./a", "/%61",  "/a#b/c",
                                        "/a b",  "/%2f", "/**/x",  "/a/**b*", "/**/**",  "**",   "**a**", "/a/*/**"};
    struct wr_glob pattern;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        bool is_question = strcmp(paths[i], "/a?b=1") == 0; /* '?' is a wildcard: nobody can tell */
        if ((wr_glob_parse_path(paths[i], &pattern) == 0) != is_question)
            fail_msg("\"%s\"", paths[i]);
    }
    assert_int_equal(wr_glob_parse_host("Example.org", &pattern), WEIR_E_INVAL);
    assert_int_equal(wr_glob_parse_host("example.org/x", &pattern), WEIR_E_INVAL);
    assert_int_equal(wr_glob_parse_value("", &pattern), WEIR_E_INVAL);
}

static void a_star_costs_no_more_than_the_lengths_multiplied(void **state)
{
    (void)state;
    /* Would take longer than the sun lasts if each star were tried against each. */
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

/* The path that is compared, or NULL if the request is malformed. */
static const char *path_of(struct wr_asked *asked, const char *target)
{
    static char text[WR_PATH_MAX + 1];
    weir_request request;
    weir_request_init(&request, "GET", target, NULL);
    if (wr_asked_read(&request, WR_ASKED_PATH, asked) != WEIR_FAULT_NONE)
        return NULL;
    memcpy(text, asked->request.target, asked->request.target_bytes);
    text[asked->request.target_bytes] = '\0';
    return text;
}

static void all_spellings_of_a_path_are_one(void **state)
{
    (void)state;
    static const char *const spellings[] = {
        "/login",       "/login?a=/x",     "/%6Cogin",   "/%6cogin",       "//login",
        "/./login",     "/x/../login",     "/login#f",   "http://h/login", "https://h:1/login?x",
        "/../../login", "/x/%2e%2e/login", "/%2E/login",
    };
    struct wr_asked asked;
    for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++)
        assert_string_equal(path_of(&asked, spellings[i]), "/login");
    assert_string_equal(path_of(&asked, "/a%2Fb"), "/a%2Fb");
    assert_string_equal(path_of(&asked, "/.well-known/x"), "/.well-known/x");
    assert_null(path_of(&asked, "login"));
    assert_string_equal(path_of(&asked, "*"), "*");
    assert_string_equal(path_of(&asked, "?a.css"), ""); /* a query is no path */
}

static void a_path_too_long_to_rewrite_is_malformed(void **state)
{
    (void)state;
    static char target[20000];
    struct wr_asked asked;
    memset(target, 'a', sizeof target - 1);
    target[0] = '/';
    weir_request request;
    weir_request_init(&request, "GET", target, NULL);
    assert_int_equal(wr_asked_read(&request, WR_ASKED_PATH, &asked), WEIR_FAULT_NONE); /* is compared where it is */
    target[5] = '%';
    assert_int_equal(wr_asked_read(&request, WR_ASKED_PATH, &asked), WEIR_FAULT_LONG);
}

static void hosts_are_compared_in_small_letters_without_port(void **state)
{
    (void)state;
    static const struct {
        const char *host, *read;
    } rows[] = {{"Example.ORG", "example.org"},
                {"example.org:8080", "example.org"},
                {"example.org.", "example.org"},
                {"example.org.:80", "example.org"},
                {"[2001:DB8::1]:443", "[2001:db8::1]"},
                {"a:", "a"},
                {":80", ""}};
    struct wr_asked asked;
    weir_request request;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weir_request_init(&request, NULL, NULL, NULL);
        request.host = rows[i].host;
        request.host_bytes = strlen(rows[i].host);
        assert_int_equal(wr_asked_read(&request, WR_ASKED_HOST, &asked), WEIR_FAULT_NONE);
        assert_int_equal(asked.request.host_bytes, strlen(rows[i].read));
        assert_memory_equal(asked.request.host, rows[i].read, strlen(rows[i].read));
    }
    static char long_host[300];
    memset(long_host, 'a', sizeof long_host);
    request.host = long_host;
    request.host_bytes = sizeof long_host;
    assert_int_equal(wr_asked_read(&request, WR_ASKED_HOST, &asked), WEIR_FAULT_LONG);
}

static void every_list_must_have_one_that_fits_and_all_headers_must(void **state)
{
    (void)state;
    struct wr_span methods[] = {{"POST", 4}, {"PUT", 3}};
    struct wr_glob path, value;
    assert_int_equal(wr_glob_parse_path("/a", &path), 0);
    assert_int_equal(wr_glob_parse_value("b*", &value), 0);
    struct wr_header_pattern headers[] = {{"x-a", true, {0}}, {"x-b", false, value}};
    struct wr_match match = {methods, &path, NULL, headers, 2, 1, 0, 2};
    weir_header sent[] = {{"X-A", ""}, {"X-B", "c"}, {"x-b", " bb "}};
    weir_header_list list = {sent, 3};
    weir_request request;
    weir_request_init(&request, "PUT", "/a", NULL);
    request.header = weir_header_list_find;
    request.header_context = &list;
    assert_true(wr_match_fits(&match, &request));
    list.count = 2;
    assert_false(wr_match_fits(&match, &request));
    list.count = 3;
    weir_request_init(&request, "put", "/a", NULL);
    assert_false(wr_match_fits(&match, &request));
    weir_request_init(&request, "PUT", "/b", NULL);
    assert_false(wr_match_fits(&match, &request));
    weir_request_init(&request, "PUT", NULL, NULL); /* what is not known fits nothing */
    assert_false(wr_match_fits(&match, &request));
}

WEIR_TESTS(test(paths_fit_exactly_below_a_prefix_or_by_stars), test(stars_in_hosts_and_values_stand_for_anything),
           test(patterns_that_no_path_could_fit_are_refused), test(a_star_costs_no_more_than_the_lengths_multiplied),
           test(all_spellings_of_a_path_are_one), test(a_path_too_long_to_rewrite_is_malformed),
           test(hosts_are_compared_in_small_letters_without_port),
           test(every_list_must_have_one_that_fits_and_all_headers_must))
