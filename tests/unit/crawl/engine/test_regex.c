/* SPDX-License-Identifier: MIT */
/* test_regex.c - tests that regular expressions match as those of the C library do. */
#include "lib/alloc.h"
#include "lib/test.h"

#include "base/rng.h"
#include "crawl/engine/regex.h"

#include <regex.h>
#include <weir/error.h>

static struct wr_regex *compile(const char *text)
{
    struct wr_regex *regex = NULL;
    if (wr_regex_new(text, weir_allocator_system(), &regex) != 0)
        fail_msg("%s: %s", text, weir_error_detail());
    return regex;
}

static bool fits(const char *expression, const char *text)
{
    struct wr_regex *regex = compile(expression);
    bool found = wr_regex_matches(regex, wr_span_of(text));
    wr_regex_free(regex);
    return found;
}

static const struct {
    const char *expression, *text;
    bool fits;
} found[] = {
    {"a", "cba", true},
    {"a", "cb", false},
    {"ab|cd", "xcdx", true},
    {"ab|cd", "acbd", false},
    {"a*", "", true},
    {"a+", "", false},
    {"^a?$", "aa", false},
    {"^a{2}$", "aa", true},
    {"^a{2}$", "aaa", false},
    {"^a{2,}$", "aaaa", true},
    {"^a{2,}$", "a", false},
    {"^a{,2}$", "aa", true},
    {"^a{,2}$", "aaa", false},
    {"^a{1,3}$", "aaaa", false},
    {"^(ab){2}$", "abab", true},
    {"^(a|b)*$", "abba", true},
    {"^(a|b)*$", "abca", false},
    {"a.c", "abc", true},
    {"a.c", "ac", false},
    {"[^/]+/$", "a/b/", true},
    {"^[a-c]+$", "abc", true},
    {"^[a-c]+$", "abd", false},
    {"^[]a]+$", "]a", true},
    {"^[^]a]+$", "b]", false},
    {"^[a-]+$", "a-", true},
    {"[\\1]", "1", true},
    {"[\\1]", "\\", true},
    {"\\.", "a", false},
    {"^[[:digit:]_]+$", "1_2", true},
    {"[[:upper:]]", "abc", false},
    {"\\bfoo\\b", "a-foo/", true},
    {"\\bfoo\\b", "afoo", false},
    {"\\Boo", "foo", true},
    {"\\<a", "b a", true},
    {"a\\>", "ab", false},
    {"^\\w+$", "a_1", true},
    {"\\W", "a_1", false},
    {"a\\sb", "a b", true},
    {"\\S", " ", false},
    {"(^a|b)c", "xbc", true},
    {"(^a|b)c", "xac", false},
    {"a$|b", "ba", true},
    {"()", "", true},
    {"(a|)b", "b", true},
    {"((a{0}){9}){9}b", "b", true},
    {"(a*)*b", "aaab", true},
    {"(a*)+$", "b", true},
    {"^a{0,1000}$", "aaaa", true},
    {"x{0}y", "y", true},
    {"a{0,0}b", "b", true},
    {"\\{2}", "{{}", false},
    {"\\{{2}", "{{", true},
};

static void expressions_match_as_specified(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof found / sizeof found[0]; i++)
        if (fits(found[i].expression, found[i].text) != found[i].fits)
            fail_msg("%s %s", found[i].expression, found[i].text);
}

static void invalid_expressions_are_refused_with_a_hint(void **state)
{
    static const char *const cases[][2] = {
        {"", "nothing after"},
        {"a(b", "( without its )"},
        {"a)b", ") without its ("},
        {"[a", "[ without its ]"},
        {"[]", "[ without its ]"},
        {"[b-a]", "has a range"},
        {"[[:no:]]", "has a class"},
        {"[[.a.]]", "has [. .]"},
        {"*a", "repeats nothing"},
        {"a|*", "repeats nothing"},
        {"(+)", "repeats nothing"},
        {"{2}", "repeats nothing"},
        {"^*", "repeats an anchor"},
        {"a\\b{2}", "repeats an anchor"},
        {"a{", "invalid count"},
        {"a{}", "invalid count"},
        {"a{2,1}", "invalid count"},
        {"a{1", "invalid count"},
        {"a{1001}", "at most 1000"},
        {"a\\", "ends with"},
        {"(a)\\1", "has a back-reference"},
        {"\\d", "for \\d write"},
        {"(a{50}){50}", "repeats too much"},
        {"((((a{9}){9}){9}){9}){9}", "repeats too much"},
        {"(.?){999}(.?){999}", "repeats too much"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wr_regex *regex;
        assert_int_equal(wr_regex_new(cases[i][0], weir_allocator_system(), &regex), WEIR_E_INVAL);
        if (strstr(weir_error_detail(), cases[i][1]) == NULL)
            fail_msg("%s: %s", cases[i][0], weir_error_detail());
    }
}

/* Joins random parts; some of the resulting expressions are invalid. */
static void make_text(struct wr_rng *rng, const char *const *parts, size_t count, size_t most, char *ret_text)
{
    ret_text[0] = '\0';
    for (size_t i = (size_t)wr_rng_below(rng, (uint32_t)most); i > 0; i--)
        strcat(ret_text, parts[wr_rng_below(rng, (uint32_t)count)]);
}

static void expressions_match_as_those_of_the_c_library(void **state)
{
    static const char *const pieces[] = {"a", "b", "a", "b",   "c",     ".",     "|",    "(",    ")",    "(", ")",
                                         "*", "+", "?", "{2}", "{1,2}", "{0,1}", "{2,}", "[ab]", "[^a]", "^", "$"};
    static const char *const letters[] = {"a", "b", "c"};
    char expression[256], text[256];
    struct wr_rng rng;
    size_t compared = 0;
    (void)state;
    wr_rng_init(&rng, weir_test_seed());
    for (int i = 0; i < 20000; i++) {
        struct wr_regex *ours = NULL;
        regex_t theirs;
        make_text(&rng, pieces, sizeof pieces / sizeof pieces[0], 12, expression);
        /* The C library takes very long for two counts, and matches a count with an anchor
         * wrongly. */
        char *count = strchr(expression, '{');
        bool is_doubtful = count != NULL && (strchr(count + 1, '{') != NULL || strpbrk(expression, "^$") != NULL);
        if (is_doubtful || wr_regex_new(expression, weir_allocator_system(), &ours) != 0)
            continue;
        assert_int_equal(regcomp(&theirs, expression, REG_EXTENDED | REG_NOSUB), 0);
        for (int j = 0; j < 8; j++, compared++) {
            make_text(&rng, letters, 3, 9, text);
            bool is_there = regexec(&theirs, text, 0, NULL, 0) == 0;
            if (wr_regex_matches(ours, wr_span_of(text)) != is_there)
                fail_msg("%s %s", expression, text);
        }
        regfree(&theirs);
        wr_regex_free(ours);
    }
    assert_true(compared > 10000);
}

static void regex_allocation_failure_is_an_error_and_leaks_nothing(void **state)
{
    test_allocator allocator;
    struct wr_regex *regex = NULL;
    (void)state;
    test_allocator_init(&allocator);
    atomic_store(&allocator.fail_at, 1);
    assert_int_equal(wr_regex_new("a[bc]+", &allocator.allocator, &regex), WEIR_E_NOMEM);
    assert_null(regex);
    assert_int_equal(wr_regex_new("a[bc]+", &allocator.allocator, &regex), 0);
    wr_regex_free(regex);
    assert_int_equal(atomic_load(&allocator.live), 0);
}

WEIR_TESTS(test(expressions_match_as_specified), test(invalid_expressions_are_refused_with_a_hint),
           test(expressions_match_as_those_of_the_c_library),
           test(regex_allocation_failure_is_an_error_and_leaks_nothing))
