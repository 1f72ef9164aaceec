/* SPDX-License-Identifier: MIT */
/* test_base.c - tests that resolving a link directly to its canonical URL agrees with parsing it
 * first. */
#include "lib/test.h"

#include "base/rng.h"
#include "core/web/page/base.h"

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])

static struct wr_base base;

static void set_base(const char *text)
{
    static char memory[WR_URL_ROOM];
    struct wr_url url;

    assert_int_equal(wr_url_parse(wr_span_of(text), NULL, NULL, memory, sizeof memory, &url), WR_URL_OK);
    wr_base_init(&base, &url, NULL);
}

static void links_lead_to_canonical_urls(void **state)
{
    static const struct {
        const char *base, *link, *url; /* NULL: no URL */
    } rows[] = {
        {"https://u:p@h.example.:443/a/b?c#d", "", "https://h.example/a/b?c"},
        {"https://u:p@h.example.:443/a/b?c#d", "#top", "https://h.example/a/b?c"},
        {"https://u:p@h.example.:443/a/b?c#d", "e", "https://h.example/a/e"},
        {"https://u:p@h.example.:443/a/b?c#d", "/e?f#g", "https://h.example/e?f"},
        {"https://h.example/a/b", "https://h.example/e#f", "https://h.example/e"},
        {"https://h.example/a/b", "HTTPS://H.EXAMPLE/e", "https://h.example/e"},
        {"https://h.example/a/b", "https://h.example", "https://h.example/"},
        {"https://h.example/a/b", "https://h.example.org/e", "https://h.example.org/e"},
        {"https://h.example/a/b", "https://h.example:8443/e", "https://h.example:8443/e"},
        {"https://h.example:8443/a/b", "https://h.example/e", "https://h.example/e"},
        {"https://h.example:8443/a/b", "/e", "https://h.example:8443/e"},
        {"https://h.example/a/b", "//other.example/e", "https://other.example/e"},
        {"https://h.example/a/b", "/\\other.example/e", "https://other.example/e"},
        {"https://h.example/a/b", "https://h.example//e", "https://h.example//e"},
        {"https://h.example/a/b?c/d", "e", "https://h.example/a/e"},
        {"https://h.example/a/b", "?q", "https://h.example/a/b?q"},
        {"https://h.example/a/b", "../e/./f", "https://h.example/e/f"},
        {"https://h.example/a/b", "/e/../f", "https://h.example/f"},
        {"https://h.example/a/b", "e/%2E%2e/f", "https://h.example/a/f"},
        {"https://h.example/a/b", "e.f/.g/h..", "https://h.example/a/e.f/.g/h.."},
        {"https://h.example/a/b", "/%61%2f\xc3\xa9 '", "https://h.example/a%2F%C3%A9%20'"},
        {"https://h.example/a/b", "/e?f='%41 /../g", "https://h.example/e?f=%27A%20/../g"},
        {"https://h.example/a/b", "/e?f/./g?h:i", "https://h.example/e?f/./g?h:i"},
        {"https://h.example/a/b", "/e:f", "https://h.example/e:f"},
        {"https://h.example/a/b", " /e\n", "https://h.example/e"},
        {"https://h.example/a/b", "/e\\f", "https://h.example/e/f"},
        {"https://h.example/a/b", "e:f", NULL},
        {"https://h.example/a/b", "mailto:a@b.example", NULL},
        {"https://h.example/a/b", "javascript:void(0)", NULL},
        {"https://h.example/a/b", "http://h.example/e", "http://h.example/e"},
        {"http://127.1/%7Ea/b", "c", "http://127.0.0.1/~a/c"},
        {"http://[::1]:81/", "c?d", "http://[::1]:81/c?d"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char memory[WR_URL_ROOM];
        struct wr_url url;
        set_base(rows[i].base);
        bool is_one = wr_base_resolve(&base, wr_span_of(rows[i].link), memory, &url) == WR_URL_OK;
        if (is_one != (rows[i].url != NULL) || (is_one && strcmp(url.text, rows[i].url) != 0))
            fail_msg("\"%s\" from %s leads to %s", rows[i].link, rows[i].base, is_one ? url.text : "nothing");
    }
}

static void assert_same(const struct wr_url *a, const struct wr_url *b)
{
    assert_string_equal(a->text, b->text);
    assert_int_equal(a->bytes, b->bytes);
    assert_int_equal(a->host_at, b->host_at);
    assert_int_equal(a->host_end, b->host_end);
    assert_int_equal(a->path_at, b->path_at);
    assert_int_equal(a->query_at, b->query_at);
    assert_int_equal(a->fragment_at, b->fragment_at);
    assert_int_equal(a->port, b->port);
    assert_int_equal(a->is_https, b->is_https);
}

/* Checks that both ways agree, and that parsing the canonical URL does not change it. */
static void assert_agree(struct wr_span link)
{
    static char memory[4][WR_URL_ROOM];
    struct wr_url ours, parsed, theirs, again;

    enum wr_url_fault fault = wr_base_resolve(&base, link, memory[0], &ours);
    assert_int_equal(fault, wr_url_parse(link, &base.url, NULL, memory[1], WR_URL_ROOM, &parsed));
    if (fault != WR_URL_OK)
        return;
    assert_int_equal(wr_url_canonical(&parsed, memory[2], WR_URL_ROOM, &theirs), WR_URL_OK);
    assert_same(&ours, &theirs);
    assert_int_equal(wr_url_parse((struct wr_span){ours.text, ours.bytes}, NULL, NULL, memory[3], WR_URL_ROOM, &again),
                     WR_URL_OK);
    assert_same(&ours, &again);
}

static void direct_and_two_step_link_resolution_agree(void **state)
{
    static const char *const bases[] = {"https://h.example/",        "https://h.example/a/b/c.html?d=e#f",
                                        "http://u:p@h.example.:81/", "https://h.example/%41/b%2fc/%7e?%",
                                        "http://h.example/a//b",     "http://[::1]/.a/x"};
    static const char *const pieces[] = {"/",
                                         "a",
                                         "b.c",
                                         ".",
                                         "..",
                                         "?",
                                         "#",
                                         ":",
                                         "%",
                                         "%41",
                                         "%2e",
                                         "%2F",
                                         "\\",
                                         "//",
                                         "&",
                                         "=",
                                         "'",
                                         "\"",
                                         "\xc3",
                                         "\t",
                                         " ",
                                         "~",
                                         "@",
                                         "https:",
                                         "http://h.example",
                                         "https://h.example",
                                         "[",
                                         "|",
                                         "^",
                                         "{",
                                         "\x01",
                                         "\x7f",
                                         "A"};
    struct wr_rng rng;

    (void)state;
    wr_rng_init(&rng, weir_test_seed());
    for (int i = 0; i < 200000; i++) {
        char link[256];
        size_t bytes = 0;
        if (i % 1000 == 0)
            set_base(bases[(size_t)i / 1000 % COUNT(bases)]);
        for (uint64_t left = wr_rng_below(&rng, 7); left > 0; left--) {
            const char *piece = pieces[wr_rng_below(&rng, COUNT(pieces))];
            memcpy(link + bytes, piece, strlen(piece));
            bytes += strlen(piece);
        }
        /* exact size, so that sanitizers detect overreads */
        char *exact = malloc(bytes + (bytes == 0));
        assert_non_null(exact);
        memcpy(exact, link, bytes);
        assert_agree((struct wr_span){exact, bytes});
        free(exact);
    }
}

static void too_long_link_is_refused_by_both_ways_of_resolution(void **state)
{
    static char link[WR_URL_ROOM + 1];
    char memory[WR_URL_ROOM];
    struct wr_url url;
    size_t front = strlen("https://h.example");

    (void)state;
    set_base("https://h.example/");
    memset(link, 'a', sizeof link);
    link[0] = '/';
    struct wr_span most = {link, WR_URL_MAX - front}, more = {link, WR_URL_MAX - front + 1};
    assert_int_equal(wr_base_resolve(&base, most, memory, &url), WR_URL_OK);
    assert_int_equal(url.bytes, WR_URL_MAX);
    assert_int_equal(wr_base_resolve(&base, more, memory, &url), WR_URL_LONG);
    memcpy(link + 1, "%z", 2); /* "%z" becomes "%25z" */
    assert_int_equal(wr_base_resolve(&base, most, memory, &url), WR_URL_LONG);
}

/* If the canonical base is too long, links are resolved by parsing. */
static void base_with_a_too_long_canonical_form_still_resolves_links(void **state)
{
    static char text[WR_URL_ROOM];
    char memory[WR_URL_ROOM];
    struct wr_url url;

    (void)state;
    memset(text, '%', sizeof text - 1);
    memcpy(text, "https://h.example/", 18);
    text[4000] = '\0';
    set_base(text);
    assert_int_equal(wr_base_resolve(&base, wr_span_of("/a"), memory, &url), WR_URL_OK);
    assert_string_equal(url.text, "https://h.example/a");
    assert_int_equal(wr_base_resolve(&base, wr_span_of("#a"), memory, &url), WR_URL_LONG);
}

WEIR_TESTS(test(links_lead_to_canonical_urls), test(direct_and_two_step_link_resolution_agree),
           test(too_long_link_is_refused_by_both_ways_of_resolution),
           test(base_with_a_too_long_canonical_form_still_resolves_links))
