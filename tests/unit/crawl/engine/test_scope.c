/* SPDX-License-Identifier: MIT */
/* test_scope.c - tests of the scope, which decides which links a crawl follows (U16). */
#include "lib/alloc.h"
#include "lib/test.h"

#include <pthread.h>
#include <sched.h>
#include <weir/error.h>

#include "crawl/engine/pattern.h"
#include "crawl/engine/scope.h"
#include <weir/web.h>

static struct wr_scope *new_scope(enum wr_scope_kind kind)
{
    struct wr_scope *scope;
    assert_int_equal(wr_scope_new(&(struct wr_scope_options){.kind = kind}, &scope), 0);
    return scope;
}

static void parse(const char *text, char *memory, struct wr_url *ret_url)
{
    assert_int_equal(wr_url_parse(wr_span_of(text), NULL, NULL, memory, WR_URL_ROOM, ret_url), WR_URL_OK);
}

static void seed(struct wr_scope *scope, const char *text)
{
    char memory[WR_URL_ROOM];
    struct wr_url url;
    parse(text, memory, &url);
    assert_int_equal(wr_scope_add_seed(scope, &url), 0);
}

static bool has(struct wr_scope *scope, const char *text)
{
    char memory[WR_URL_ROOM];
    struct wr_url url;
    parse(text, memory, &url);
    return wr_scope_has(scope, &url);
}

#define inside(scope, text) assert_true(has(scope, text))
#define outside(scope, text) assert_false(has(scope, text))

/* ---- scopes that seeds define ---- */

static void by_default_the_hosts_of_the_seeds_are_followed(void **state)
{
    (void)state;
    struct wr_scope *scope = new_scope(WR_SCOPE_HOST);
    outside(scope, "https://example.org/");
    seed(scope, "https://example.org/some/where");
    seed(scope, "http://localhost:8080/");
    inside(scope, "https://example.org/");
    inside(scope, "http://example.org/other?q"); /* pacing treats both schemes as one server */
    inside(scope, "https://example.org./");
    outside(scope, "https://www.example.org/");
    outside(scope, "https://org/");
    outside(scope, "https://example.org:8443/");
    outside(scope, "https://example.org.evil.example/");
    inside(scope, "http://localhost:8080/a");
    outside(scope, "http://localhost/");
    outside(scope, "http://localhost:8081/");
    wr_scope_free(scope);
}

static void domain_spans_all_hosts_that_its_owner_has(void **state)
{
    (void)state;
    struct wr_scope *scope = new_scope(WR_SCOPE_DOMAIN);
    if (weir_registrable_domain(NULL, "a.example.co.uk", 15) == 0)
        SKIP("this libpsl has no list of public suffixes");
    seed(scope, "https://www.example.co.uk/");
    seed(scope, "https://amazonaws.com/");
    seed(scope, "http://192.0.2.1:8080/");
    seed(scope, "http://localhost:8080/");
    for (int again = 0; again < 2; again++) { /* looked up, then found in the cache */
        inside(scope, "https://example.co.uk/");
        inside(scope, "http://a.b.example.co.uk:8080/x");
        inside(scope, "https://www.example.co.uk./");
        outside(scope, "https://other.co.uk/");
        outside(scope, "https://co.uk/");
        outside(scope, "https://notexample.co.uk/");
        inside(scope, "https://aws.amazonaws.com/");
        /* another owner's: s3.amazonaws.com is a public suffix */
        outside(scope, "https://bucket.s3.amazonaws.com/");
        inside(scope, "http://192.0.2.1/");
        outside(scope, "http://192.0.2.2/");
        outside(scope, "http://2.1/");
        inside(scope, "http://localhost/");
    }
    wr_scope_free(scope);
}

static void prefix_spans_the_directory_of_a_seed(void **state)
{
    (void)state;
    struct wr_scope *scope = new_scope(WR_SCOPE_PREFIX);
    seed(scope, "https://example.org/docs/guide/index.html?x=/y/");
    seed(scope, "https://example.org/wiki/");
    seed(scope, "https://whole.example");
    seed(scope, "https://name.example/page");
    inside(scope, "https://example.org/docs/guide/");
    inside(scope, "http://example.org/docs/guide/deep/er/page");
    outside(scope, "https://example.org/docs/guide");
    outside(scope, "https://example.org/docs/");
    outside(scope, "https://example.org/");
    outside(scope, "https://example.org/docs/guidelines/");
    outside(scope, "https://example.org/?/docs/guide/");
    inside(scope, "https://example.org/wiki/a");
    outside(scope, "https://example.org:8443/wiki/a");
    outside(scope, "https://other.example/wiki/a");
    inside(scope, "https://whole.example/a/b/c");
    inside(scope, "https://name.example/other");
    wr_scope_free(scope);
}

static void folders_beyond_the_limit_do_not_narrow_a_prefix(void **state)
{
    (void)state;
    char text[2048] = "https://example.org/", near[sizeof text];
    struct wr_scope *scope = new_scope(WR_SCOPE_PREFIX);
    for (int i = 0; i < WR_SCOPE_FOLDERS_MAX; i++)
        strcat(text, "a/");
    snprintf(near, sizeof near, "%sz", text);
    strcat(text, "b/c/d");
    seed(scope, text);
    inside(scope, text);
    inside(scope, near);
    outside(scope, "https://example.org/a/a/");
    wr_scope_free(scope);
}

static void any_follows_every_link(void **state)
{
    (void)state;
    struct wr_scope *scope = new_scope(WR_SCOPE_ANY);
    inside(scope, "https://example.org/");
    inside(scope, "http://[2001:db8::1]:81/a?b");
    wr_scope_free(scope);
}

static void seeds_beyond_the_first_tables_are_all_found(void **state)
{
    (void)state;
    char text[64];
    struct wr_scope *scope = new_scope(WR_SCOPE_HOST);
    for (int i = 0; i < 5000; i++) {
        snprintf(text, sizeof text, "https://h%d.example/", i % 4000);
        seed(scope, text);
    }
    for (int i = 0; i < 4100; i++) {
        snprintf(text, sizeof text, "https://h%d.example/", i);
        assert_int_equal(has(scope, text), i < 4000);
    }
    wr_scope_free(scope);
}

/* ---- file name endings ---- */

static void urls_with_endings_of_other_types_are_not_followed(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        bool is_page;
    } cases[] = {
        {"", true},       {"a", true},        {"a.html", true},          {"a.php?b=c.zip", true}, {"a.jpg/", true},
        {"v1.2/", true},  {"jpg", true},      {"a.jpgs", true},          {"a.x.y", true},         {"zip.", true},
        {"a.jpg", false}, {"A.JPG", false},   {"x/y.z/a.tar.gz", false}, {".png", false},         {"a.woff2", false},
        {"a.3gp", false}, {"a.zst?b", false}, {"a.pdf", true},           {"a.Css", false},        {"a.longjpg", true},
    };
    char text[128];
    struct wr_scope *scope = new_scope(WR_SCOPE_HOST), *all;
    assert_int_equal(wr_scope_new(&(struct wr_scope_options){.all_types = true}, &all), 0);
    seed(scope, "https://example.org/");
    seed(all, "https://example.org/");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(text, sizeof text, "https://example.org/%s", cases[i].path);
        if (has(scope, text) != cases[i].is_page)
            fail_msg("%s", text);
        inside(all, text);
    }
    wr_scope_free(scope);
    wr_scope_free(all);
}

/* ---- patterns ---- */

static void links_must_match_an_included_and_no_excluded_pattern(void **state)
{
    (void)state;
    struct wr_scope *scope = new_scope(WR_SCOPE_ANY);
    assert_int_equal(wr_scope_exclude(scope, "*sort=*"), 0);
    inside(scope, "https://example.org/b");
    outside(scope, "https://example.org/?sort=up");
    assert_int_equal(wr_scope_include(scope, "https://example.org/a/*"), 0);
    assert_int_equal(wr_scope_include(scope, "re:\\.html$"), 0);
    inside(scope, "https://example.org/a/x");
    inside(scope, "https://example.org/b.html");
    outside(scope, "https://example.org/b");
    outside(scope, "https://example.org/a/?sort=up");
    wr_scope_free(scope);
}

static void globs_match_whole_urls_and_texts_or_expressions_match_parts(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *url;
        bool fits;
    } cases[] = {
        {"*", "http://a/", true},
        {"http://a/", "http://a/", true},
        {"http://a/*", "http://a/", true},
        {"http://a/?", "http://a/", false},
        {"http://a/?b", "http://a/?b", true},
        {"http://a/?b", "http://a/xb", true},
        {"*.html", "http://a/x.html.html", true},
        {"*.html", "http://a/x.htm", false},
        {"*/a/*/b*", "http://h/a/x/a/y/c/b1", true},
        {"*/a/*/b", "http://h/a/x/a/y/c/b1", false},
        {"http://[::1]/*", "http://[::1]/x", true}, /* brackets have no special meaning */
        {"**a**", "http://a/", true},
        {"http?://a/", "https://a/", true},
        {"h*", "https://a/", true},
        {"http://a/", "http://a/b", true}, /* without a wildcard it is a substring */
        {"/docs/", "http://a/docs/b", true},
        {"/docs/", "http://a/docs", false},
        {"logout", "http://a/user/logout/now", true},
        {"re:b+", "http://a/bb", true},
        {"re:^b+", "http://a/bb", false},
        {"re:/[0-9]{4}/", "http://a/2026/x", true},
        {"re:(x|y)$", "http://a/z", false},
        {"re:a\\.b", "http://a/axb", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wr_pattern pattern;
        assert_int_equal(wr_pattern_init(&pattern, cases[i].pattern, weir_allocator_system()), 0);
        if (wr_pattern_matches(&pattern, cases[i].url) != cases[i].fits)
            fail_msg("%s %s", cases[i].pattern, cases[i].url);
        wr_pattern_release(&pattern);
    }
}

static void slow_or_invalid_patterns_are_refused(void **state)
{
    (void)state;
    char longest[WR_PATTERN_MAX + 2] = "re:";
    const char *cases[][2] = {
        {"", "empty"},
        /* No URL begins with a slash, so the pattern would match nothing. */
        {"/docs/*", "matches no URL"},
        {"?replytocom=", "begin it with *"},
        {"example.org/*", "matches no URL"},
        {"HTTP://a/*", "matches no URL"},
        {"re:", "nothing after"},
        {"re:(a)\\1", "has a back-reference"},
        {"re:a{1001}", "repeats too much"},
        {"re:((a{20}){20}){20}", "repeats too much"},
        {"re:a{99999999999999999999}", "repeats too much"},
        {"re:a(b", "pattern \"a(b\""},
        {longest, "at most 255 bytes"},
    };
    memset(longest + 3, 'a', WR_REGEX_MAX + 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wr_pattern pattern;
        assert_int_equal(wr_pattern_init(&pattern, cases[i][0], weir_allocator_system()), WEIR_E_INVAL);
        if (strstr(weir_error_detail(), cases[i][1]) == NULL)
            fail_msg("%s: %s", cases[i][0], weir_error_detail());
    }
    struct wr_pattern pattern;
    memset(longest, 'a', WR_PATTERN_MAX + 1);
    assert_int_equal(wr_pattern_init(&pattern, longest, weir_allocator_system()), WEIR_E_INVAL);
    longest[WR_PATTERN_MAX] = '\0';
    assert_int_equal(wr_pattern_init(&pattern, longest, weir_allocator_system()), 0);
    wr_pattern_release(&pattern);
    assert_int_equal(wr_pattern_init(&pattern, "re:(a{30}){30}\\{9999", weir_allocator_system()), 0);
    wr_pattern_release(&pattern);
}

static void hostile_url_does_not_make_a_glob_slow(void **state)
{
    (void)state;
    static char url[WR_URL_MAX + 1];
    struct wr_pattern pattern;
    memset(url, 'a', WR_URL_MAX);
    assert_int_equal(
        wr_pattern_init(&pattern, "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", weir_allocator_system()),
        0);
    /* Would take exponential time if each '*' were tried at every position. */
    assert_false(wr_pattern_matches(&pattern, url));
    wr_pattern_release(&pattern);
}

/* ---- threads and memory ---- */

#define CROWD 4
#define HOSTS 2000

static void *test_many_urls(void *context)
{
    char text[64];
    for (int i = 0; i < HOSTS; i++) {
        snprintf(text, sizeof text, "https://sub.h%d.example/", i);
        while (!has(context, text))
            sched_yield();
        outside(context, "https://foreign.example/");
    }
    return NULL;
}

static void *add_many_seeds(void *context)
{
    char text[64];
    for (int i = 0; i < HOSTS; i++) {
        snprintf(text, sizeof text, "https://h%d.example/", i);
        seed(context, text);
    }
    return NULL;
}

static void threads_can_test_urls_while_seeds_are_added(void **state)
{
    (void)state;
    pthread_t askers[CROWD], seeders[2];
    struct wr_scope *scope = new_scope(WR_SCOPE_DOMAIN);
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(pthread_create(&askers[i], NULL, test_many_urls, scope), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&seeders[i], NULL, add_many_seeds, scope), 0);
    for (int i = 0; i < 2; i++)
        (void)pthread_join(seeders[i], NULL);
    for (int i = 0; i < CROWD; i++)
        (void)pthread_join(askers[i], NULL);
    wr_scope_free(scope);
}

/* Creates and uses a scope with an allocator that fails at its n-th allocation. */
static int try_all(const weir_allocator *allocator)
{
    char memory[WR_URL_ROOM];
    struct wr_url url;
    struct wr_scope *scope;
    parse("https://a.example.org/x/y", memory, &url);
    int error = wr_scope_new(&(struct wr_scope_options){.kind = WR_SCOPE_DOMAIN, .allocator = allocator}, &scope);
    if (error != 0)
        return error;
    if ((error = wr_scope_include(scope, "re:x")) == 0 && (error = wr_scope_exclude(scope, "z")) == 0)
        error = wr_scope_add_seed(scope, &url);
    assert_int_equal(wr_scope_has(scope, &url), error == 0);
    wr_scope_free(scope);
    return error;
}

static void scope_allocation_failure_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    test_allocator allocator;
    int error = WEIR_E_NOMEM;
    test_allocator_init(&allocator);
    for (long n = 1; error != 0; n++) {
        assert_true(n < 100);
        atomic_store(&allocator.fail_at, n);
        error = try_all(&allocator.allocator);
        if (error != 0)
            assert_int_equal(error, WEIR_E_NOMEM);
        /* the scope works without the cache entry of a host, so its allocation may fail */
        else if (atomic_load(&allocator.fail_at) <= 0)
            error = WEIR_E_NOMEM;
        assert_int_equal(atomic_load(&allocator.live), 0);
    }
}

WEIR_TESTS(test(by_default_the_hosts_of_the_seeds_are_followed), test(domain_spans_all_hosts_that_its_owner_has),
           test(prefix_spans_the_directory_of_a_seed), test(folders_beyond_the_limit_do_not_narrow_a_prefix),
           test(any_follows_every_link), test(seeds_beyond_the_first_tables_are_all_found),
           test(urls_with_endings_of_other_types_are_not_followed),
           test(links_must_match_an_included_and_no_excluded_pattern),
           test(globs_match_whole_urls_and_texts_or_expressions_match_parts),
           test(slow_or_invalid_patterns_are_refused), test(hostile_url_does_not_make_a_glob_slow),
           test(threads_can_test_urls_while_seeds_are_added),
           test(scope_allocation_failure_is_an_error_and_leaks_nothing))
