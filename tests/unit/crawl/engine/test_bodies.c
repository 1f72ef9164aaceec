/* SPDX-License-Identifier: MIT */
/* test_bodies.c - tests that the file names of saved bodies are safe, whatever the host and the
 * type are. */
#include "crawl/engine/bodies.h"
#include "lib/test.h"

static const char *name_of(const char *text, const char *type)
{
    static char name[WR_BODY_NAME_MAX + 1];
    char memory[WR_URL_ROOM];
    struct wr_url url;
    assert_int_equal(wr_url_parse(wr_span_of(text), NULL, NULL, memory, sizeof memory, &url), WR_URL_OK);
    wr_body_name(&url, wr_span_of(type), name);
    return name;
}

static void body_is_named_after_its_url(void **state)
{
    (void)state;
    /* The name is the start of: printf %s http://a.example/ | sha256sum */
    assert_string_equal(name_of("http://a.example/", "text/html; charset=utf-8"),
                        "a.example/217fbabc0e7aa17115435afd966b734a.html");
    assert_string_equal(name_of("http://a.example/#x", " TEXT/Plain "),
                        "a.example/217fbabc0e7aa17115435afd966b734a.txt");
}

static void body_name_stays_in_its_folder_for_any_host_and_type(void **state)
{
    static const char *const urls[] = {"http://a.example/../../x", "http://A.Example:8080/..%2f",
                                       "http://[2001:db8::1]/",    "http://con/",
                                       "http://a.example./",       "http://-a.b-/",
                                       "http://a_b.example/"};
    static const char *const folders[] = {"a.example/",  "a.example_8080/", "_2001_db8__1__/", "con_/",
                                          "a.example_/", "_a.b_/",          "a_b.example/"};
    static const char *const types[] = {"", "../../x", "text/../html", "a/b.sh", "image/png;x=/..", "\x1b[31m"};
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        const char *name = name_of(urls[i], types[i % 6]);
        assert_int_equal(strncmp(name, folders[i], strlen(folders[i])), 0);
        const char *file = name + strlen(folders[i]);
        assert_int_equal(strspn(file, "0123456789abcdef"), 32);
        assert_true(strcmp(file + 32, ".bin") == 0 || strcmp(file + 32, ".png") == 0);
    }
}

static void body_name_is_short_however_long_the_url_is(void **state)
{
    char url[1400] = "http://";
    (void)state;
    for (int i = 0; i < 4; i++)
        strcat(url, "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdef.");
    strcat(url, "example/");
    memset(url + strlen(url), 'x', 1000);
    const char *name = name_of(url, "text/html");
    assert_int_equal(strlen(name), 100 + 1 + 32 + 5);
    assert_string_equal(name + strlen(name) - 5, ".html");
}

WEIR_TESTS(test(body_is_named_after_its_url), test(body_name_stays_in_its_folder_for_any_host_and_type),
           test(body_name_is_short_however_long_the_url_is))
