/* SPDX-License-Identifier: MIT */
/* test_buf.c - tests buffers that build text. */
#include "base/alloc.h"
#include "base/buf.h"
#include "lib/alloc.h"
#include "lib/test.h"

/* Takes the text of a buffer, compares it, and checks that no memory is left. */
static void expect_taken(test_allocator *test, struct wr_buf *buf, const char *expected)
{
    char *string = NULL;
    size_t bytes = 0;
    assert_int_equal(wr_buf_take_string(buf, &string, &bytes), 0);
    assert_string_equal(string, expected);
    assert_int_equal(bytes, strlen(expected));
    wr_free(&test->allocator, string, bytes + 1, 1);
    wr_buf_release(buf);
    assert_int_equal(test->live_bytes, 0);
}

static void appended_pieces_become_one_string(void **state)
{
    (void)state;
    test_allocator test;
    struct wr_buf buf;
    test_allocator_init(&test);
    wr_buf_init(&buf, &test.allocator, 1000);
    wr_buf_append_string(&buf, "limit=");
    wr_buf_append_u64(&buf, 0);
    wr_buf_append_char(&buf, ',');
    wr_buf_append_u64(&buf, UINT64_MAX);
    wr_buf_append_string(&buf, "");
    wr_buf_append(&buf, NULL, 0);
    wr_buf_append(&buf, ";windowless", 7);
    expect_taken(&test, &buf, "limit=0,18446744073709551615;window");
}

static void empty_buffer_takes_no_memory_until_its_string_is_wanted(void **state)
{
    (void)state;
    test_allocator test;
    struct wr_buf buf;
    test_allocator_init(&test);
    wr_buf_init(&buf, &test.allocator, 0);
    wr_buf_append_string(&buf, "");
    assert_int_equal(test.takes, 0);
    expect_taken(&test, &buf, "");
}

static void buffer_grows_to_its_maximum_and_no_further(void **state)
{
    (void)state;
    static const size_t maxima[] = {0, 1, 63, 64, 65, 127, 128, 1000};
    for (size_t i = 0; i < sizeof maxima / sizeof maxima[0]; i++) {
        test_allocator test;
        struct wr_buf buf;
        test_allocator_init(&test);
        wr_buf_init(&buf, &test.allocator, maxima[i]);
        for (size_t n = 0; n < maxima[i]; n++)
            wr_buf_append_char(&buf, 'x');
        assert_int_equal(buf.error, 0);
        wr_buf_append_char(&buf, 'y');
        assert_int_equal(buf.error, WEIR_E_SPACE);
        assert_int_equal(buf.length, maxima[i]);
        assert_in_range(test.live_bytes, 0, maxima[i] + 1);
        wr_buf_release(&buf);
        assert_int_equal(test.live_bytes, 0);
    }
}

static void first_error_sticks_and_nothing_follows_it(void **state)
{
    (void)state;
    test_allocator test;
    struct wr_buf buf;
    char *string = NULL;
    size_t bytes = 77;
    test_allocator_init(&test);
    wr_buf_init(&buf, &test.allocator, 5);
    wr_buf_append_string(&buf, "abc");
    wr_buf_append_string(&buf, "defg");
    wr_buf_append_char(&buf, 'h');
    assert_string_equal(buf.bytes, "abcde");
    assert_int_equal(wr_buf_take_string(&buf, &string, &bytes), WEIR_E_SPACE);
    assert_null(string);
    assert_int_equal(bytes, 77);
    wr_buf_release(&buf);
    assert_int_equal(test.live, 0);
}

static void fixed_buffer_truncates_and_stays_terminated(void **state)
{
    (void)state;
    char memory[8];
    struct wr_buf buf;
    memset(memory, '#', sizeof memory);
    wr_buf_init_fixed(&buf, memory, sizeof memory - 1);
    assert_string_equal(memory, "");
    wr_buf_append_string(&buf, "abcd");
    wr_buf_append_u64(&buf, 12);
    assert_int_equal(buf.error, 0);
    assert_string_equal(memory, "abcd12");
    wr_buf_append_u64(&buf, 345);
    assert_int_equal(buf.error, WEIR_E_SPACE);
    assert_string_equal(memory, "abcd12");
    assert_int_equal(memory[7], '#');
    wr_buf_release(&buf);
}

/* Fails the first, second, third ... allocation until the whole test succeeds. */
static void failed_allocations_of_a_buffer_are_reported_at_the_end(void **state)
{
    (void)state;
    int error = WEIR_E_NOMEM;
    long n = 0;
    while (error != 0) {
        test_allocator test;
        struct wr_buf buf;
        char *string = NULL;
        size_t bytes = 0;
        test_allocator_init(&test);
        test.fail_at = ++n;
        wr_buf_init(&buf, &test.allocator, 1000);
        for (int i = 0; i < 100; i++)
            wr_buf_append_string(&buf, "abc");
        error = wr_buf_take_string(&buf, &string, &bytes);
        if (error == 0)
            wr_free(&test.allocator, string, bytes + 1, 1);
        else
            assert_int_equal(error, WEIR_E_NOMEM);
        wr_buf_release(&buf);
        assert_int_equal(test.live, 0);
    }
    assert_in_range(n, 4, 6); /* 64, 128, 256, 512 and the exact copy */
}

static void string_of_a_buffer_can_be_taken_after_a_failed_attempt(void **state)
{
    (void)state;
    test_allocator test;
    struct wr_buf buf;
    char *string = NULL;
    size_t bytes = 0;
    test_allocator_init(&test);
    wr_buf_init(&buf, &test.allocator, 1000);
    wr_buf_append_string(&buf, "abc");
    test.fail_at = 1;
    assert_int_equal(wr_buf_take_string(&buf, &string, &bytes), WEIR_E_NOMEM);
    wr_buf_append_string(&buf, "def");
    expect_taken(&test, &buf, "abcdef");
}

static void buffer_appends_numbers_and_escapes(void **state)
{
    (void)state;
    char memory[64];
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, memory, sizeof memory);
    wr_buf_append_hex(&buf, 0xBEEF, 4, WR_HEX_SMALL);
    wr_buf_append_hex(&buf, 0xBEEF, 2, WR_HEX_CAPITAL);
    wr_buf_append_hex(&buf, 0xA, 6, WR_HEX_CAPITAL);
    wr_buf_append_span(&buf, wr_span_of(" "));
    wr_buf_append_escaped(&buf, wr_span_of("a\"b\\c:"), '"');
    wr_buf_append_span(&buf, (struct wr_span){NULL, 0});
    assert_int_equal(buf.error, 0);
    assert_string_equal(memory, "beefEF00000A a\\\"b\\\\c:");
    assert_int_equal(buf.length, strlen(memory));
}

static void decimal_numbers_are_written_without_trailing_zeros(void **state)
{
    (void)state;
    static const struct {
        double number;
        const char *text;
    } rows[] = {{0, "0"},
                {20, "20"},
                {0.004, "0.004"},
                {-1.5, "-1.5"},
                {0.1 + 0.2, "0.3"},
                {0.9999999999, "1"},
                {0.000000001, "0.000000001"},
                {1e17, "100000000000000000"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char memory[40];
        struct wr_buf buf;
        wr_buf_init_fixed(&buf, memory, sizeof memory);
        wr_buf_append_number(&buf, rows[i].number);
        assert_string_equal(memory, rows[i].text);
    }
}

static void buffer_can_be_cut_back_to_an_earlier_length(void **state)
{
    (void)state;
    char memory[6];
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, memory, sizeof memory);
    wr_buf_append_string(&buf, "abcd");
    assert_memory_equal(wr_buf_from(&buf, 1).data, "bcd", 3);
    assert_int_equal(wr_buf_from(&buf, 1).bytes, 3);
    assert_int_equal(wr_buf_from(&buf, 4).bytes, 0);
    wr_buf_cut(&buf, 9);
    assert_string_equal(memory, "abcd");
    wr_buf_cut(&buf, 2);
    assert_string_equal(memory, "ab");
    wr_buf_append_char(&buf, 'x');
    wr_buf_append_string(&buf, "yzzz");
    assert_string_equal(memory, "abxyz");
    wr_buf_cut(&buf, 1);
    wr_buf_append_char(&buf, 'q');
    assert_int_equal(buf.error, WEIR_E_SPACE);
    assert_string_equal(memory, "a");
    wr_buf_clear(&buf);
    wr_buf_append_char(&buf, 'n');
    assert_int_equal(buf.error, 0);
    assert_string_equal(memory, "n");
}

static void an_empty_growing_buffer_can_be_cleared(void **state)
{
    (void)state;
    test_allocator test;
    struct wr_buf buf;
    test_allocator_init(&test);
    wr_buf_init(&buf, &test.allocator, 100);
    wr_buf_clear(&buf);
    assert_int_equal(wr_buf_from(&buf, 0).bytes, 0);
    test.fail_at = 1;
    wr_buf_append_char(&buf, 'x');
    assert_int_equal(buf.error, WEIR_E_NOMEM);
    wr_buf_clear(&buf);
    wr_buf_append_char(&buf, 'y');
    expect_taken(&test, &buf, "y");
}

static void reserved_room_of_a_buffer_is_filled_without_moving(void **state)
{
    (void)state;
    test_allocator test;
    struct wr_buf buf;
    test_allocator_init(&test);
    wr_buf_init(&buf, &test.allocator, 1000);
    wr_buf_append_string(&buf, "ab");
    test.fail_at = 1;
    wr_buf_reserve(&buf, 500);
    assert_int_equal(buf.error, 0);
    wr_buf_reserve(&buf, 500);
    const char *bytes = buf.bytes;
    assert_string_equal(bytes, "ab");
    for (int i = 0; i < 498; i++)
        wr_buf_append_char(&buf, 'x');
    assert_ptr_equal(buf.bytes, bytes);
    wr_buf_reserve(&buf, 1001); /* more than its maximum */
    assert_ptr_equal(buf.bytes, bytes);
    wr_buf_release(&buf);
    assert_int_equal(test.live_bytes, 0);
}

/* M10 */
static void only_the_valid_part_of_a_name_is_shown(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"max-pages", "\"max-pages\""},
        {"secret:hunter2", "\"secret...\""},
        {"", "\"\""},
        {"header Cookie", "\"header...\""},
        {":hunter2", "\"...\""},
        {"a_\x1b[0m", "\"a_...\""},
    };
    char memory[64], name[64];
    struct wr_buf buf;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        wr_buf_init_fixed(&buf, memory, sizeof memory);
        wr_buf_append_name(&buf, wr_span_of(cases[i][0]));
        assert_string_equal(memory, cases[i][1]);
    }
    memset(name, 'a', sizeof name);
    assert_int_equal(wr_name_bytes((struct wr_span){name, 40}), 40);
    assert_int_equal(wr_name_bytes((struct wr_span){name, 41}), 40);
}

WEIR_TESTS(test(reserved_room_of_a_buffer_is_filled_without_moving), test(buffer_appends_numbers_and_escapes),
           test(decimal_numbers_are_written_without_trailing_zeros), test(buffer_can_be_cut_back_to_an_earlier_length),
           test(an_empty_growing_buffer_can_be_cleared), test(appended_pieces_become_one_string),
           test(empty_buffer_takes_no_memory_until_its_string_is_wanted),
           test(buffer_grows_to_its_maximum_and_no_further), test(first_error_sticks_and_nothing_follows_it),
           test(fixed_buffer_truncates_and_stays_terminated),
           test(failed_allocations_of_a_buffer_are_reported_at_the_end),
           test(string_of_a_buffer_can_be_taken_after_a_failed_attempt), test(only_the_valid_part_of_a_name_is_shown))
