/* SPDX-License-Identifier: MIT */
/* test_error.c - tests names, texts and details of errors. */
#include "base/error.h"
#include "lib/test.h"

#include <pthread.h>
#include <weir/version.h>

static void every_error_code_has_its_own_name_and_text(void **state)
{
    (void)state;
    static const int codes[] = {WEIR_OK,
#define X(code, value, text) code,
                                WEIR_ERRORS(X)
#undef X
    };
    size_t count = sizeof codes / sizeof codes[0];
    for (size_t i = 0; i < count; i++) {
        assert_string_not_equal(weir_error_text(codes[i]), "unknown error");
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(weir_error_text(codes[i]), weir_error_text(codes[j]));
            assert_string_not_equal(weir_error_name(codes[i]), weir_error_name(codes[j]));
        }
    }
    assert_string_equal(weir_error_name(WEIR_OK), "WEIR_OK");
    assert_string_equal(weir_error_name(WEIR_E_NOMEM), "WEIR_E_NOMEM");
    assert_string_equal(weir_error_text(WEIR_E_NOMEM), "out of memory");
}

static void number_that_is_no_error_code_is_an_unknown_error(void **state)
{
    (void)state;
    static const int numbers[] = {1, -1000, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        assert_string_equal(weir_error_text(numbers[i]), "unknown error");
        assert_string_equal(weir_error_name(numbers[i]), "unknown error");
    }
}

static void error_detail_is_the_latest_one(void **state)
{
    (void)state;
    assert_int_equal(wr_invalid("capacity is 0; it must be 1 ... 4294967295"), WEIR_E_INVAL);
    assert_string_equal(weir_error_detail(), "capacity is 0; it must be 1 ... 4294967295");
    assert_int_equal(wr_invalid_text("colour", "blu", 3, "incomplete", 3, "use blue"), WEIR_E_INVAL);
    assert_string_equal(weir_error_detail(), "colour \"blu\": incomplete at character 4; use blue");
    wr_invalid_text("colour", NULL, 5, "empty", WR_NOWHERE, "use blue");
    assert_string_equal(weir_error_detail(), "colour \"\": empty; use blue");
    assert_int_equal(wr_invalid_in("door"), WEIR_E_INVAL);
    assert_string_equal(weir_error_detail(), "door: colour \"\": empty; use blue");
}

static void *detail_of_a_new_thread(void *ret_detail)
{
    strcpy(ret_detail, weir_error_detail());
    wr_invalid("of the other thread");
    return NULL;
}

static void each_thread_has_its_own_error_detail(void **state)
{
    (void)state;
    char detail[200];
    pthread_t thread;
    wr_invalid("of this thread");
    assert_int_equal(pthread_create(&thread, NULL, detail_of_a_new_thread, detail), 0);
    pthread_join(thread, NULL);
    assert_string_equal(detail, "no error");
    assert_string_equal(weir_error_detail(), "of this thread");
}

static void quoted_bytes_cannot_control_a_terminal_or_forge_a_line(void **state)
{
    (void)state;
    static const char text[] = "a\"b\\c\n\x1b[2J\0\x7f\xe2\x80\xae~";
    wr_invalid_text("key", text, sizeof text - 1, "odd", WR_NOWHERE, "use letters");
    assert_string_equal(weir_error_detail(),
                        "key \"a\\\"b\\\\c\\x0a\\x1b[2J\\x00\\x7f\\xe2\\x80\\xae~\": odd; use letters");
}

/* Whatever bytes a long text has, the detail is short and printable, and still says what is
 * valid. */
static void long_text_in_an_error_is_truncated(void **state)
{
    (void)state;
    size_t bytes = 1000000;
    char *text = malloc(bytes);
    for (int byte = 0; byte < 256; byte++) {
        memset(text, byte, bytes);
        wr_invalid_text("key", text, bytes, "too long", bytes - 1, "use at most 1024 bytes");
        const char *detail = weir_error_detail();
        assert_in_range(strlen(detail), 90, 140);
        assert_non_null(strstr(detail, "...\": too long at character 1000000; use at most 1024 bytes"));
        for (const char *c = detail; *c != '\0'; c++)
            assert_in_range(*c, 0x20, 0x7e);
    }
    free(text);
}

static void longest_error_detail_is_truncated_and_terminated(void **state)
{
    (void)state;
    char words[300];
    memset(words, 'w', sizeof words);
    words[sizeof words - 1] = '\0';
    wr_invalid_text(words, words, 299, words, 0, words);
    assert_int_equal(strlen(weir_error_detail()), 199);
}

static void library_version_is_that_of_the_header(void **state)
{
    (void)state;
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", WEIR_VERSION_MAJOR, WEIR_VERSION_MINOR, WEIR_VERSION_PATCH);
    assert_string_equal(weir_version(), version);
}

/* M10 */
static void plain_error_detail_contains_no_quoted_text(void **state)
{
    (void)state;
    const char *text = "hunter2";
    (void)wr_invalid_text("duration", text, strlen(text), "unknown unit", 2, "use ns");
    assert_string_equal(wr_error_unquoted(), "unknown unit at character 3; use ns");
    assert_int_equal(wr_invalid_in("forget"), WEIR_E_INVAL);
    assert_string_equal(weir_error_detail(), "forget: duration \"hunter2\": unknown unit at character 3; use ns");
    assert_string_equal(wr_error_unquoted(), "unknown unit at character 3; use ns");
    wr_error_set_cause("cannot read", text, "no such file");
    assert_string_equal(wr_error_unquoted(), "no such file");
    wr_error_set(wr_error_unquoted());
    assert_int_equal(wr_invalid_in("item 3"), WEIR_E_INVAL);
    assert_string_equal(weir_error_detail(), "item 3: no such file");
    char where[300];
    memset(where, 'a', sizeof where);
    where[sizeof where - 1] = '\0';
    (void)wr_invalid_text("duration", text, strlen(text), "unknown unit", 2, "use ns");
    (void)wr_invalid_in(where);
    assert_string_equal(wr_error_unquoted(), "");
    (void)wr_invalid("it is 0");
    assert_string_equal(wr_error_unquoted(), "it is 0");
}

WEIR_TESTS(test(every_error_code_has_its_own_name_and_text), test(number_that_is_no_error_code_is_an_unknown_error),
           test(error_detail_is_the_latest_one), test(each_thread_has_its_own_error_detail),
           test(quoted_bytes_cannot_control_a_terminal_or_forge_a_line), test(long_text_in_an_error_is_truncated),
           test(longest_error_detail_is_truncated_and_terminated), test(plain_error_detail_contains_no_quoted_text),
           test(library_version_is_that_of_the_header))
