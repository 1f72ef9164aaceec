/* SPDX-License-Identifier: MIT */
/* test_json.c - tests writing of JSON from any text. */
#include "lib/test.h"

#include "base/json.h"

static char memory[4096];
static struct wr_buf buf;

static const char *string_of(const char *text, size_t bytes)
{
    wr_buf_init_fixed(&buf, memory, sizeof memory);
    wr_append_json_string(&buf, (struct wr_span){text, bytes});
    assert_int_equal(buf.error, 0);
    return memory;
}

static void any_text_becomes_a_string_of_printable_ascii(void **state)
{
    static const struct {
        const char *text, *json;
    } rows[] = {
        {"", "\"\""},
        {"plain text /~", "\"plain text /~\""},
        {"\"\\", "\"\\\"\\\\\""},
        {"a\nb\tc\x1b[m\x7f", "\"a\\u000ab\\u0009c\\u001b[m\\u007f\""},
        {"</script>", "\"\\u003c/script\\u003e\""},
        {"\xc3\xa9\xe2\x82\xac", "\"\\u00e9\\u20ac\""},
        {"\xf0\x9f\x98\x80", "\"\\ud83d\\ude00\""},
        {"\xf4\x8f\xbf\xbf", "\"\\udbff\\udfff\""},
        {"a\xff\xc3", "\"a\\ufffd\\ufffd\""},
        {"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""}, /* a surrogate is not a character */
        {"\xc0\x80", "\"\\ufffd\\ufffd\""},            /* an over-long form is not a character */
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_string_equal(string_of(rows[i].text, strlen(rows[i].text)), rows[i].json);
    assert_string_equal(string_of("a\0b", 3), "\"a\\u0000b\"");
}

/* A string stays within its line, and only its own quote ends it. */
static void no_byte_of_a_json_string_ends_it_or_its_line(void **state)
{
    (void)state;
    for (int first = 0; first < 256; first++)
        for (int second = 0; second < 256; second++) {
            const char text[3] = {(char)first, (char)second, 'x'};
            const char *json = string_of(text, sizeof text);
            size_t bytes = strlen(json);
            for (size_t i = 1; i < bytes - 1; i++) {
                assert_true(json[i] >= ' ' && json[i] <= '~' && json[i] != '<' && json[i] != '>');
                i += json[i] == '\\'; /* skips the escaped character */
                assert_true(json[i] != '"' || json[i - 1] == '\\');
            }
            assert_true(json[bytes - 2] == 'x');
        }
}

static void json_members_are_texts_counts_and_decimals(void **state)
{
    static const struct {
        uint64_t number;
        unsigned decimals;
        const char *json;
    } rows[] = {
        {0, 3, "0"},
        {1500, 3, "1.5"},
        {5, 3, "0.005"},
        {12000, 3, "12"},
        {1234567, 6, "1.234567"},
        {100001, 5, "1.00001"},
        {7, 0, "7"},
        {UINT64_MAX, 3, "18446744073709551.615"},
    };

    (void)state;
    wr_buf_init_fixed(&buf, memory, sizeof memory);
    wr_append_json_text(&buf, "{\"a\": ", wr_span_of("b"));
    wr_append_json_text(&buf, ", \"c\": ", wr_span_of(""));
    wr_append_json_text(&buf, ", \"d\": ", wr_span_of(NULL));
    wr_append_json_count(&buf, ", \"e\": ", UINT64_MAX);
    wr_append_json_null(&buf, ", \"f\": ");
    assert_string_equal(memory, "{\"a\": \"b\", \"c\": \"\", \"d\": null, \"e\": 18446744073709551615, \"f\": null");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        wr_buf_init_fixed(&buf, memory, sizeof memory);
        wr_append_json_decimal(&buf, "", rows[i].number, rows[i].decimals);
        assert_string_equal(memory, rows[i].json);
    }
}

WEIR_TESTS(test(any_text_becomes_a_string_of_printable_ascii), test(no_byte_of_a_json_string_ends_it_or_its_line),
           test(json_members_are_texts_counts_and_decimals))
