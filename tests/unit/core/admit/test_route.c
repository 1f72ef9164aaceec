/* SPDX-License-Identifier: MIT */
/* test_route.c - all spellings of a path that servers take for the same are one key (J5). */
#include "lib/test.h"

#include "base/rng.h"
#include "core/admit/route.h"

static char buffer[WEIR_KEY_MAX + 1];

static weir_fault route(const char *target)
{
    struct wr_buf buf;

    wr_buf_init_fixed(&buf, buffer, sizeof buffer);
    return wr_route_append(&buf, wr_span_of(target));
}

static void all_spellings_of_a_path_are_one_route(void **state)
{
    static const struct {
        const char *target, *expected;
    } cases[] = {
        {"/login", "/login"},
        {"/login?user=a", "/login"},
        {"/login#top", "/login"},
        {"/login?a#b?c", "/login"},
        {"/login#b?c", "/login"},
        {"/%6cogin", "/login"},
        {"/%6Cogin", "/login"},
        {"//login", "/login"},
        {"/./login", "/login"},
        {"/%2e/login", "/login"},
        {"/x/../login", "/login"},
        {"/x/%2E%2e/login", "/login"},
        {"/../../login", "/login"},
        {"http://example.org/login", "/login"},
        {"https://user@example.org:8443/login?x=http://y/z", "/login"},
        {"/", "/"},
        {"//", "/"},
        {"/.", "/"},
        {"/..", "/"},
        {"/a/..", "/"},
        {"/a/b/..", "/a/"},
        {"/a/b/.", "/a/b/"},
        {"/a//", "/a/"},
        {"/...", "/..."},
        {"/a/..b", "/a/..b"},
        {"http://example.org", "/"},
        {"http://example.org?q", "/"},
        {"/users/@me:x;y=1,2!", "/users/@me:x;y=1,2!"},
        {"/users/%40me", "/users/@me"},
        {"/caf\xc3\xa9", "/caf%C3%A9"},
        {"/caf%c3%a9", "/caf%C3%A9"},
        {"/a b", "/a%20b"},
        {"/a%20b", "/a%20b"},
        {"/a\"<>\\^`{|}", "/a%22%3C%3E%5C%5E%60%7B%7C%7D"},
        {"/a\r\nb", "/a%0D%0Ab"},
        {"/100%", "/100%25"},
        {"/100%25", "/100%25"},
        {"/%zz", "/%25zz"},
        {"/%", "/%25"},
        {"/%00", "/%00"},
        {"*", "*"},
        /* Servers may tell these apart from "/a/b". */
        {"/a%2Fb", "/a%2Fb"},
        {"/a/b/", "/a/b/"},
        {"/A/b", "/A/b"},
        {"/a%3Fb", "/a%3Fb"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(route(cases[i].target), WEIR_FAULT_NONE);
        assert_string_equal(buffer, cases[i].expected);
    }
}

static void what_is_no_path_has_no_route(void **state)
{
    (void)state;
    assert_int_equal(route(""), WEIR_FAULT_MISSING);
    assert_int_equal(route("?q"), WEIR_FAULT_MISSING);
    assert_int_equal(route("#f"), WEIR_FAULT_MISSING);
    assert_int_equal(route("example.org:443"), WEIR_FAULT_BYTES);
    assert_int_equal(route("login"), WEIR_FAULT_BYTES);
    assert_int_equal(route("\\login"), WEIR_FAULT_BYTES);
    assert_int_equal(route("**"), WEIR_FAULT_BYTES);
    assert_int_equal(route("://x/login"), WEIR_FAULT_BYTES);
}

static void a_route_fits_up_to_the_last_byte(void **state)
{
    char target[WEIR_KEY_MAX + 2];

    (void)state;
    memset(target, 'a', sizeof target);
    target[0] = '/';
    target[WEIR_KEY_MAX] = '\0';
    assert_int_equal(route(target), WEIR_FAULT_NONE);
    assert_int_equal(strlen(buffer), WEIR_KEY_MAX);
    target[WEIR_KEY_MAX] = 'a';
    target[WEIR_KEY_MAX + 1] = '\0';
    assert_int_equal(route(target), WEIR_FAULT_LONG);
    target[WEIR_KEY_MAX - 1] = ' '; /* three bytes when written */
    target[WEIR_KEY_MAX] = '\0';
    assert_int_equal(route(target), WEIR_FAULT_LONG);
}

/* What goes in a second time comes out as it was: there is only one spelling. */
static void a_route_is_its_own_route(void **state)
{
    static const char alphabet[] = "/./%2eE25aF\xff? ";
    struct wr_rng rng;

    (void)state;
    wr_rng_init(&rng, weir_test_seed());
    for (int round = 0; round < 100000; round++) {
        char target[32] = "/", once[sizeof buffer];
        size_t bytes = 1 + (size_t)wr_rng_below(&rng, 30);
        for (size_t i = 1; i < bytes; i++)
            target[i] = alphabet[wr_rng_below(&rng, sizeof alphabet - 1)];
        assert_int_equal(route(target), WEIR_FAULT_NONE);
        memcpy(once, buffer, sizeof once);
        assert_int_equal(once[0], '/');
        assert_null(strstr(once, "//"));
        assert_null(strstr(once, "/../"));
        assert_int_equal(route(once), WEIR_FAULT_NONE);
        assert_string_equal(buffer, once);
    }
}

static void callers_cannot_make_up_methods(void **state)
{
    static const struct {
        const char *method, *expected;
    } cases[] = {{"GET", "GET"}, {"DELETE", "DELETE"}, {"PATCH", "PATCH"}, {"get", "OTHER"},  {"GETX", "OTHER"},
                 {"", "OTHER"},  {NULL, "OTHER"},      {"GE", "OTHER"},    {"A\x01", "OTHER"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wr_buf buf;
        wr_buf_init_fixed(&buf, buffer, sizeof buffer);
        wr_method_append(&buf, wr_span_of(cases[i].method));
        assert_string_equal(buffer, cases[i].expected);
    }
}

WEIR_TESTS(test(all_spellings_of_a_path_are_one_route), test(what_is_no_path_has_no_route),
           test(a_route_fits_up_to_the_last_byte), test(a_route_is_its_own_route), test(callers_cannot_make_up_methods))
