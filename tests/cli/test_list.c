/* SPDX-License-Identifier: MIT */
/* test_list.c - reading lists of URLs from files and standard input. */
#include "lib/test.h"

#include <unistd.h>

#include "cli/kit/url_list.h"

static struct wr_url_list list;

/* Opens a list with this text. */
static void open_text(const char *text, size_t bytes)
{
    char path[] = "/tmp/weir-list-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, bytes), (ssize_t)bytes);
    (void)close(fd);
    assert_true(wr_url_list_open(&list, path));
    (void)unlink(path);
}

static void expect(uint64_t line, const char *text)
{
    struct wr_span got;
    assert_true(wr_url_list_next(&list, &got));
    assert_string_equal(got.data, text);
    assert_int_equal(got.bytes, strlen(text));
    assert_int_equal(list.line, line);
}

static void expect_end(void)
{
    struct wr_span got;
    assert_false(wr_url_list_next(&list, &got));
    assert_true(wr_url_list_close(&list));
}

static void list_lines_have_numbers_and_are_trimmed(void **state)
{
    (void)state;
    static const char text[] = "a\n\n# no\n  b \t\r\n\t#neither\nc d\n\r\ne";
    open_text(text, sizeof text - 1);
    expect(1, "a");
    expect(4, "b");
    expect(6, "c d");
    expect(8, "e");
    expect_end();
}

static void empty_url_list_has_no_lines(void **state)
{
    (void)state;
    open_text("", 0);
    expect_end();
    open_text("\n\n", 2);
    expect_end();
}

static void overlong_list_line_is_cut_and_counts_as_one(void **state)
{
    (void)state;
    size_t bytes = 5 * WR_URL_LIST_LINE_MAX;
    struct wr_span got;
    char *text = malloc(bytes + 8);
    assert_non_null(text);
    memset(text, 'x', bytes);
    memcpy(text + bytes, "\nnext\nz", 7);
    open_text(text, bytes + 7);
    free(text);
    assert_true(wr_url_list_next(&list, &got));
    assert_true(got.bytes >= WR_URL_LIST_LINE_MAX && got.data[got.bytes] == '\0' && strlen(got.data) == got.bytes);
    expect(2, "next");
    expect(3, "z");
    expect_end();
}

static void list_lines_across_read_buffers_stay_whole(void **state)
{
    (void)state;
    char *text = malloc(400000), *at = text, line[64];
    assert_non_null(text);
    for (int i = 0; i < 10000; i++)
        at += snprintf(at, 64, "https://host%d.example/%.*s\n", i, i % 13, "abcdefghijklm");
    open_text(text, (size_t)(at - text));
    free(text);
    for (int i = 0; i < 10000; i++) {
        snprintf(line, sizeof line, "https://host%d.example/%.*s", i, i % 13, "abcdefghijklm");
        expect((uint64_t)i + 1, line);
    }
    expect_end();
}

static int asked;

static bool is_over_after_a_while(void)
{
    return ++asked > 3;
}

static void reading_a_slow_list_stops_when_the_crawl_is_over(void **state)
{
    (void)state;
    struct wr_span got;
    int ends[2], kept = dup(STDIN_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    assert_int_equal(write(ends[1], "a\nb", 3), 3);
    assert_true(wr_url_list_open(&list, "-"));
    expect(1, "a");
    list.is_over = is_over_after_a_while;
    assert_false(wr_url_list_next(&list, &got)); /* the line "b" is not complete yet */
    assert_true(wr_url_list_close(&list));
    /* works only if closing the list left standard input open */
    assert_int_equal(dup2(kept, STDIN_FILENO), STDIN_FILENO);
    (void)close(ends[0]);
    (void)close(ends[1]);
    (void)close(kept);
}

static void unreadable_url_list_is_a_failure(void **state)
{
    (void)state;
    struct wr_span got;
    assert_false(wr_url_list_open(&list, "/nonexistent/list"));
    assert_true(wr_url_list_open(&list, "/tmp"));
    assert_false(wr_url_list_next(&list, &got));
    assert_false(wr_url_list_close(&list));
}

WEIR_TESTS(test(list_lines_have_numbers_and_are_trimmed), test(empty_url_list_has_no_lines),
           test(overlong_list_line_is_cut_and_counts_as_one), test(list_lines_across_read_buffers_stay_whole),
           test(reading_a_slow_list_stops_when_the_crawl_is_over), test(unreadable_url_list_is_a_failure))
