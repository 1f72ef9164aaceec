/* SPDX-License-Identifier: MIT */
/* test_page.c - tests the facts about a fetched page: its links without duplicates, title, robots
 * directives and digest, within bounds. */
#include "lib/test.h"

#include "core/web/http/field.h"
#include "core/web/page/page.h"
#include "lib/alloc.h"

/* ---- reading a page -------------------------------------------------------------------------- */

static const char secret[WR_HASH_SECRET_BYTES] = "any bytes do";

static struct wr_page page;
static struct wr_hash_key key;
static struct wr_url here;
static test_allocator memory;

struct told {
    size_t used;
    char text[65536]; /* links beyond this size are dropped */
};

static struct told told;

static void tell(void *context, const struct wr_page_link *link)
{
    static const char *const kinds[] = {"base",       "",       "area ",    "hint ", "resource ",
                                        "canonical ", "frame ", "refresh ", "image "};
    struct told *ours = context;
    size_t room = sizeof ours->text - ours->used;

    assert_true(link->kind != WR_LINK_BASE);
    assert_true(link->fingerprint == wr_hash(&key, link->url->text, link->url->bytes));
    if (room > (size_t)link->url->bytes + 64)
        ours->used += (size_t)snprintf(ours->text + ours->used, room, "%s%s\n", kinds[link->kind], link->url->text);
}

static int set_up(void **state)
{
    static char text[64];

    (void)state;
    assert_int_equal(wr_url_parse(wr_span_of("https://h.example/a/b"), NULL, NULL, text, sizeof text, &here),
                     WR_URL_OK);
    wr_hash_key_init(&key, secret);
    test_allocator_init(&memory);
    wr_page_init(&page, &memory.allocator);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    wr_page_release(&page);
    assert_int_equal(memory.live, 0);
    return 0;
}

static int read_in_pieces(const char *text, size_t bytes, size_t piece, struct wr_page_options options)
{
    options.url = options.url == NULL ? &here : options.url;
    options.key = &key;
    told.used = 0;
    told.text[0] = '\0';
    wr_page_begin(&page, &options);
    for (size_t at = 0; at < bytes; at += piece)
        wr_page_feed(&page, text + at, bytes - at < piece ? bytes - at : piece);
    return wr_page_end(&page, tell, &told);
}

static const char *read_with(const char *text, struct wr_page_options options)
{
    options.content_type = options.content_type.data == NULL ? wr_span_of("text/html") : options.content_type;
    assert_int_equal(read_in_pieces(text, strlen(text), strlen(text) + 1, options), 0);
    return told.text;
}

static const char *read_page(const char *text)
{
    return read_with(text, (struct wr_page_options){.kinds = 0});
}

static void assert_fact(struct wr_span fact, const char *text)
{
    if (text == NULL) {
        assert_null(fact.data);
        return;
    }
    assert_int_equal(fact.bytes, strlen(text));
    assert_memory_equal(fact.data, text, fact.bytes);
}

/* ---- links ----------------------------------------------------------------------------------- */

static void each_link_is_reported_once_canonical_and_in_order(void **state)
{
    (void)state;
    assert_string_equal(read_page("<a href=/z><a href=c><a href='../a/c#x'><a href=https://H.example/z><area href=y>"
                                  "<a href=/%7a><iframe src=f></iframe>"),
                        "https://h.example/z\nhttps://h.example/a/c\narea https://h.example/a/y\n"
                        "frame https://h.example/a/f\n");
    assert_int_equal(page.facts.links, 7);
    assert_int_equal(page.facts.reported, 4);
    assert_true(page.facts.is_html);
}

static void links_to_other_schemes_and_to_no_url_are_dropped(void **state)
{
    (void)state;
    assert_string_equal(
        read_page("<a href=mailto:a@b.example><a href='javascript:f()'><a href=data:,x><a href=ftp://h/>"
                  "<a href='http://'><a href='https://h.example:99999/'><a href=tel:1><a href=/yes>"),
        "https://h.example/yes\n");
    assert_int_equal(page.facts.links, 8);
}

/* V10 */
static void user_and_password_of_a_link_are_not_reported(void **state)
{
    (void)state;
    assert_string_equal(
        read_page("<a href=https://me:secret@h.example/x><link rel=canonical href=//me:secret@h.example/>"),
        "https://h.example/x\ncanonical https://h.example/\n");
}

static void base_element_applies_to_links_before_it(void **state)
{
    (void)state;
    assert_string_equal(read_page("<a href=c><base href=/x/y/><a href=d><base href=/no/>"),
                        "https://h.example/x/y/c\nhttps://h.example/x/y/d\n");
    assert_string_equal(read_page("<base href=//other.example:81/x><a href=c><a href=/d><a href=#e>"),
                        "https://other.example:81/c\nhttps://other.example:81/d\nhttps://other.example:81/x\n");
    assert_string_equal(read_page("<base href=data:text/html,x><a href=c>"), "https://h.example/a/c\n");
    assert_string_equal(read_page("<base href='http://:'><a href=c>"), "https://h.example/a/c\n");
}

static void page_reports_only_requested_kinds_of_links(void **state)
{
    static const char text[] = "<base href=/x/><link rel=canonical href=c><img src=i><a href=a>"
                               "<link rel=stylesheet href=s><link rel=next href=n>";
    (void)state;
    assert_string_equal(read_page(text), "canonical https://h.example/x/c\nhttps://h.example/x/a\n"
                                         "hint https://h.example/x/n\n");
    assert_string_equal(read_with(text, (struct wr_page_options){.kinds = 1u << WR_LINK_A}), "https://h.example/x/a\n");
    assert_int_equal(page.facts.links, 1);
    assert_string_equal(read_with(text, (struct wr_page_options){.kinds = WR_LINKS_ALL}),
                        "canonical https://h.example/x/c\nimage https://h.example/x/i\nhttps://h.example/x/a\n"
                        "resource https://h.example/x/s\nhint https://h.example/x/n\n");
}

static void a_refresh_to_another_url_is_a_link_like_others(void **state)
{
    (void)state;
    assert_string_equal(read_page("<meta http-equiv=refresh content='5; url=../next'>"),
                        "refresh https://h.example/next\n");
    assert_string_equal(read_page("<meta http-equiv=refresh content='5'>"), "");
}

/* U16 */
static void links_that_differ_only_in_the_fragment_are_one(void **state)
{
    (void)state;
    assert_string_equal(read_page("<a href=c#1><a href=c#2><a href=c><a href=#3><a href='?#'>"),
                        "https://h.example/a/c\nhttps://h.example/a/b\nhttps://h.example/a/b?\n");
}

/* ---- nofollow -------------------------------------------------------------------------------- */

static void nofollow_is_obeyed_wherever_it_is_stated(void **state)
{
    static const struct {
        const char *text;
        unsigned directives;
        const char *told;
    } rows[] = {
        {"<a href=c><a href=d>", 0, "https://h.example/a/c\nhttps://h.example/a/d\n"},
        {"<a rel='x nofollow' href=c><a href=d>", 0, "https://h.example/a/d\n"},
        /* the element comes after the link */
        {"<a href=c><meta name=robots content='noindex, nofollow'>", 0, ""},
        {"<a href=c><meta name=Weir content=none>", 0, ""},
        {"<a href=c><meta name=other content=none>", 0, "https://h.example/a/c\n"},
        {"<a href=c><meta name=robots content=noindex>", 0, "https://h.example/a/c\n"},
        {"<a href=c>", WR_ROBOTS_NOFOLLOW, ""},
        {"<a href=c>", WR_ROBOTS_NOINDEX, "https://h.example/a/c\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wr_page_options options = {.agent = wr_span_of("weir"), .directives = rows[i].directives};
        assert_string_equal(read_with(rows[i].text, options), rows[i].told);
        options.follows_nofollow = true;
        assert_non_null(strstr(read_with(rows[i].text, options), "https://h.example/a/c\n"));
    }
}

static void robots_directives_of_page_and_headers_are_combined(void **state)
{
    (void)state;
    (void)read_with("<meta name=robots content=noindex>", (struct wr_page_options){.directives = WR_ROBOTS_NOFOLLOW});
    assert_int_equal(page.facts.directives, WR_ROBOTS_NOINDEX | WR_ROBOTS_NOFOLLOW);
    (void)read_page("<p>");
    assert_int_equal(page.facts.directives, 0);
}

/* ---- which pages ----------------------------------------------------------------------------- */

static void only_html_is_searched_for_links(void **state)
{
    static const struct {
        const char *type;
        bool is_html;
    } rows[] = {
        {"text/html", true},        {"Text/HTML; charset=utf-8", true}, {"application/xhtml+xml", true},
        {"text/plain", false},      {"application/json", false},        {"text/htmlx", false},
        {"application/pdf", false}, {"text/html,text/plain", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wr_page_options options = {.content_type = wr_span_of(rows[i].type)};
        assert_string_equal(read_with("<title>t</title><a href=c>", options),
                            rows[i].is_html ? "https://h.example/a/c\n" : "");
        assert_int_equal(page.facts.is_html, rows[i].is_html);
        assert_int_equal(page.facts.bytes, 26);
        assert_fact(page.facts.title, rows[i].is_html ? "t" : NULL);
    }
}

static void html_without_a_content_type_is_detected_by_its_first_bytes(void **state)
{
    static const struct {
        const char *text;
        bool is_html;
    } rows[] = {
        {"<!DOCTYPE html><a href=c>", true},
        {"\xef\xbb\xbf \r\n\t<html><a href=c>", true},
        {"<a href=c>", true},
        {"<!-- x --><a href=c>", true},
        {"text <a href=c>", false},
        {"<?xml?><a href=c>", false},
        {"< a><a href=c>", false},
        {"%PDF <a href=c>", false},
        {" ", false},
        {"<", false},
        {"", false},
        {"{\"a\": \"<a href=c>\"}", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t piece = 1; piece < 30; piece++) {
            struct wr_page_options options = {.kinds = 0};
            assert_int_equal(read_in_pieces(rows[i].text, strlen(rows[i].text), piece, options), 0);
            assert_string_equal(told.text, rows[i].is_html ? "https://h.example/a/c\n" : "");
            assert_int_equal(page.facts.is_html, rows[i].is_html);
        }
}

static void charset_of_the_content_type_header_counts(void **state)
{
    (void)state;
    assert_string_equal(read_with("<title>\xe9</title><a href=\xe9>",
                                  (struct wr_page_options){.content_type = wr_span_of("text/html; charset=latin1")}),
                        "https://h.example/a/%C3%A9\n");
    assert_fact(page.facts.title, "\xc3\xa9");
}

/* ---- facts about the page -------------------------------------------------------------------- */

/* A trivial digest: the sum of the bytes. */
struct sum {
    struct wr_digest base;
    uint8_t value;
};

static void sum_begin(struct wr_digest *digest)
{
    ((struct sum *)(void *)digest)->value = 0;
}

static void sum_add(struct wr_digest *digest, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ((struct sum *)(void *)digest)->value += ((const uint8_t *)data)[i];
}

static void sum_end(struct wr_digest *digest, uint8_t ret_value[WR_DIGEST_MAX])
{
    memset(ret_value, 0, WR_DIGEST_MAX);
    ret_value[1] = ((struct sum *)(void *)digest)->value;
}

static void every_body_has_a_digest(void **state)
{
    struct sum sum = {.base = {"sum", 2, sum_begin, sum_add, sum_end}};
    struct wr_page_options options = {.digest = &sum.base, .content_type = wr_span_of("image/png")};

    (void)state;
    assert_int_equal(read_in_pieces("\xff\x10\x0b", 3, 1, options), 0);
    assert_fact(page.facts.digest, "sum:001a");
    options.content_type = wr_span_of("text/html");
    assert_int_equal(read_in_pieces("a", 1, 1, options), 0);
    assert_fact(page.facts.digest, "sum:0061");
    (void)read_page("a");
    assert_fact(page.facts.digest, NULL);
}

static void title_of_a_page_is_reported(void **state)
{
    (void)state;
    (void)read_page("<title> A &amp;\n B </title>");
    assert_fact(page.facts.title, "A & B");
    (void)read_page("<p>no title</p>");
    assert_fact(page.facts.title, NULL);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static void links_beyond_the_maximum_of_a_page_are_dropped(void **state)
{
    (void)state;
    assert_string_equal(read_with("<a href=c><a href=c><a href=d><a href=e>", (struct wr_page_options){.max_links = 3}),
                        "https://h.example/a/c\nhttps://h.example/a/d\n");
}

/* 300 links of 8000 bytes exceed 1 MiB. After the page the memory is freed. */
static void a_page_of_huge_links_is_bounded_and_its_memory_given_back(void **state)
{
    static char text[8000];
    struct wr_page_options options = {.url = &here, .key = &key, .content_type = wr_span_of("text/html")};

    (void)state;
    memset(text, 'x', sizeof text);
    told.used = 0;
    wr_page_begin(&page, &options);
    for (int i = 0; i < 300; i++) {
        char number[32];
        wr_page_feed(&page, number, (size_t)snprintf(number, sizeof number, "<a href='%d", i));
        wr_page_feed(&page, text, sizeof text);
        wr_page_feed(&page, "'>", 2);
    }
    assert_true(memory.live_bytes < 3 << 20);
    assert_int_equal(wr_page_end(&page, tell, &told), 0);
    assert_int_equal(page.facts.links, 300);
    assert_int_equal(page.facts.reported, 130); /* links of 8 KB with their headers fill 1 MiB */
    assert_true(memory.live_bytes < 128 << 10);
}

static size_t make_many(char *ret_text, size_t room, int links)
{
    size_t used = 0;

    for (int i = 0; i < links; i++)
        used += (size_t)snprintf(ret_text + used, room - used, "<a href='/l%d'><a href=/l%d#x>", i, i / 2);
    return used;
}

static void each_of_many_links_is_reported_once(void **state)
{
    static char text[400000];
    struct wr_page_options options = {.content_type = wr_span_of("text/html")};
    size_t bytes = make_many(text, sizeof text, 5000);

    (void)state;
    assert_int_equal(read_in_pieces(text, bytes, 1400, options), 0);
    assert_int_equal(page.facts.links, 10000);
    assert_int_equal(page.facts.reported, 5000);
    assert_true(memory.live_bytes <= 128 << 10);
}

/* M12, N1-2: each call reports a few links. Together the calls report the same as one call. */
static void links_reported_in_parts_are_all_reported_at_most_64_per_call(void **state)
{
    static char text[60000];
    struct wr_page_options options = {.url = &here, .key = &key, .content_type = wr_span_of("text/html")};
    uint32_t before = 0, calls = 0;

    (void)state;
    size_t bytes = make_many(text, sizeof text, 1000);
    told.used = 0;
    wr_page_begin(&page, &options);
    wr_page_feed(&page, text, bytes);
    assert_int_equal(wr_page_close(&page), 0);
    assert_int_equal(page.facts.links, 2000);
    for (bool has_more = true; has_more; calls++) {
        has_more = wr_page_report(&page, tell, &told);
        assert_true(page.facts.reported - before <= 64);
        before = page.facts.reported;
    }
    assert_int_equal(before, 1000);
    assert_int_equal(calls, (2000 + 63) / 64);
    assert_false(wr_page_report(&page, tell, &told));
}

static void later_pages_allocate_no_more_memory(void **state)
{
    static char text[20000];
    struct wr_page_options options = {.content_type = wr_span_of("text/html")};
    size_t bytes = make_many(text, sizeof text, 100);

    (void)state;
    assert_int_equal(read_in_pieces(text, bytes, 1400, options), 0);
    long takes = memory.takes;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(read_in_pieces(text, bytes, 1400, options), 0);
        assert_int_equal(page.facts.reported, 100);
    }
    assert_int_equal(memory.takes, takes);
}

static void page_without_memory_is_an_error_and_the_next_one_is_read(void **state)
{
    static char text[20000];
    struct wr_page_options options = {.content_type = wr_span_of("text/html")};
    size_t bytes = make_many(text, sizeof text, 100);
    int error = WEIR_E_NOMEM;
    long failures = 0;

    (void)state;
    for (; error == WEIR_E_NOMEM; failures++) {
        wr_page_release(&page);
        wr_page_init(&page, &memory.allocator);
        memory.fail_at = failures + 1;
        error = read_in_pieces(text, bytes, 1400, options);
        assert_true(error == 0 || (error == WEIR_E_NOMEM && page.facts.links == 200));
        memory.fail_at = 0;
        assert_int_equal(read_in_pieces(text, bytes, 1400, options), 0);
        assert_int_equal(page.facts.reported, 100);
    }
    assert_int_equal(error, 0);
    assert_true(failures > 2);
}

#define page_test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

WEIR_TESTS(page_test(each_link_is_reported_once_canonical_and_in_order),
           page_test(links_to_other_schemes_and_to_no_url_are_dropped),
           page_test(user_and_password_of_a_link_are_not_reported), page_test(base_element_applies_to_links_before_it),
           page_test(page_reports_only_requested_kinds_of_links),
           page_test(a_refresh_to_another_url_is_a_link_like_others),
           page_test(links_that_differ_only_in_the_fragment_are_one),
           page_test(nofollow_is_obeyed_wherever_it_is_stated),
           page_test(robots_directives_of_page_and_headers_are_combined), page_test(only_html_is_searched_for_links),
           page_test(html_without_a_content_type_is_detected_by_its_first_bytes),
           page_test(charset_of_the_content_type_header_counts), page_test(every_body_has_a_digest),
           page_test(title_of_a_page_is_reported), page_test(links_beyond_the_maximum_of_a_page_are_dropped),
           page_test(a_page_of_huge_links_is_bounded_and_its_memory_given_back),
           page_test(each_of_many_links_is_reported_once),
           page_test(links_reported_in_parts_are_all_reported_at_most_64_per_call),
           page_test(later_pages_allocate_no_more_memory),
           page_test(page_without_memory_is_an_error_and_the_next_one_is_read))
