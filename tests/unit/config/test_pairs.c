/* SPDX-License-Identifier: MIT */
/* test_pairs.c - tests of mappings whose keys a callback (a taker) checks, and of skipped
 * sections. */
#include "lib/test.h"

#include <weir/error.h>

#include "config/config.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

/* Settings of the test. The taker writes what it receives to `told`: "section key=value
 * key=[value,value]". */
struct book {
    uint32_t width;
    struct wr_buf *told;
};

static int take_key(void *settings, const struct wr_config_field *field, const struct wr_config_word *key,
                    struct wr_buf *why)
{
    struct wr_buf *told = ((struct book *)settings)->told;
    if (wr_span_is(key->text, "bad")) {
        wr_buf_append_string(why, "a bad key; take a good one");
        return WEIR_E_INVAL;
    }
    wr_buf_append_string(told, field->name);
    wr_buf_append_char(told, '.');
    wr_buf_append(told, key->text.data, key->text.bytes);
    return 0;
}

static int take_value(void *settings, const struct wr_config_word *word, struct wr_buf *why)
{
    struct wr_buf *told = ((struct book *)settings)->told;
    if (word->part == WR_CONFIG_MAPPING_BEGINS || wr_span_is(word->text, "bad")) {
        wr_buf_append_string(why, "a bad value; take a good one");
        return WEIR_E_INVAL;
    }
    if (word->part == WR_CONFIG_LIST_BEGINS) {
        wr_buf_append_string(told, ":list");
        return 0;
    }
    wr_buf_append_string(told, word->is_item ? "-" : "=");
    wr_buf_append(told, word->text.data, word->text.bytes);
    if (word->part == WR_CONFIG_NULL)
        wr_buf_append_string(told, "(nothing)");
    if (word->is_quoted)
        wr_buf_append_string(told, "(quoted)");
    wr_buf_append_char(told, '@');
    wr_buf_append_u64(told, word->line);
    wr_buf_append_char(told, ' ');
    return 0;
}

static const struct wr_config_taker taker = {take_key, take_value};
static const struct wr_config_field fields[] = {
    {"width", WR_CONFIG_COUNT(struct book, width), .max = 9},
    {"one", WR_CONFIG_PAIRS(&taker)},
    {"two", WR_CONFIG_PAIRS(&taker)},
    {"rules", WR_CONFIG_OTHERS},
};
static const struct wr_config_schema schema = {
    .name = "a book", .bytes = sizeof(struct book), .fields = fields, .count = COUNT(fields), .may_be_empty = true};

static int parse(const char *text, char *told, size_t told_bytes, char *why)
{
    struct wr_buf buf;
    struct book book = {.told = &buf};
    char *copy = malloc(strlen(text) + 1);
    wr_buf_init_fixed(&buf, told, told_bytes);
    memcpy(copy, text, strlen(text));
    int error =
        wr_config_parse(&schema, "x", copy, strlen(text), weir_allocator_system(), &book, why, WR_CONFIG_WHY_BYTES);
    free(copy);
    return error;
}

static void taker_gets_keys_and_values_in_their_order_and_with_their_lines(void **state)
{
    (void)state;
    static const struct {
        const char *text, *told;
    } rows[] = {
        {"one:\n  a: b\n  c: '5'\ntwo: {d: }\n", "one.a=b@2 one.c=5(quoted)@3 two.d=(nothing)@4 "},
        {"one:\n  a: [b, \"c\"]\n  d:\n    - e\nwidth: 5\n", "one.a:list-b@2 -c(quoted)@2 one.d:list-e@4 "},
        {"one: {a: []}\n", "one.a:list"},
        {"one:\ntwo: {}\n", ""},
        {"rules:\n  - a: {b: [c, {d: e}]}\n  - one: {a: bad}\none: {a: 1}\nwidth: 5\n", "one.a=1@4 "},
        {"rules: 5\n", ""},
        {"rules:\n", ""},
        {"", ""},
        {"# nothing\n", ""},
        {"---\n", ""},
        {"~\n", ""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char told[256], why[WR_CONFIG_WHY_BYTES] = "";
        told[0] = '\0';
        int error = parse(rows[i].text, told, sizeof told, why);
        if (error != 0 || strcmp(told, rows[i].told) != 0)
            fail_msg("error %d, \"%s\", \"%s\" instead of \"%s\", for\n%s", error, why, told, rows[i].told,
                     rows[i].text);
    }
}

static void value_refused_by_a_taker_is_reported_with_line_and_column(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"one:\n  a: 1\n  bad: 2\n", "x:3:3: a bad key; take a good one"},
        {"one: {a: bad}\n", "x:1:10: a bad value; take a good one"},
        {"one: {a: [b, bad]}\n", "x:1:14: a bad value; take a good one"},
        {"one: {a: {b: c}}\n", "x:1:10: a bad value; take a good one"},
        {"one: {a: [[b]]}\n", "x:1:11: an item that is not a plain value; write \"- value\""},
        {"one: {a: [~]}\n", "x:1:11: an item that is not a plain value; write \"- value\""},
        {"one: {a: [{b: c}]}\n", "x:1:11: an item that is not a plain value; write \"- value\""},
        {"one: {[a]: b}\n", "x:1:7: a key that is not a plain word; write lines of \"key: value\""},
        {"one: {{a: b}: c}\n", "x:1:7: a key that is not a plain word; write lines of \"key: value\""},
        {"one: 5\n", "x:1:6: one is a text; it must be lines of \"key: value\", indented"},
        {"one: [a]\n", "x:1:6: one is a list; it must be lines of \"key: value\", indented"},
        {"one: {}\none: {}\n", "x:2:1: one is given twice; remove one of them"},
        {"one: {a: &b c}\n", "x:1:10: an anchor (&); write the value out where it belongs"},
        {"one: {a: !b c}\n", "x:1:10: a tag (!); write the plain value"},
        {"one: {a: *b}\n", "x:1:10: an alias (*); write the value out where it belongs"},
        {"rules: [a, {b: &c d}]\n", "x:1:16: an anchor (&); write the value out where it belongs"},
        {"rules: [*a]\n", "x:1:9: an alias (*); write the value out where it belongs"},
        {"ones: {}\n", "x:1:1: unknown key \"ones\" in a book; did you mean \"one\"?"},
        {"rules: []\nrules: []\n", "x:2:1: rules is given twice; remove one of them"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char told[256], why[WR_CONFIG_WHY_BYTES] = "";
        int error = parse(rows[i].text, told, sizeof told, why);
        if (error != WEIR_E_INVAL || strcmp(why, rows[i].why) != 0)
            fail_msg("error %d, \"%s\" instead of \"%s\", for\n%s", error, why, rows[i].why, rows[i].text);
    }
}

/* A skipped section is not stored, so it may be nested as deeply as libyaml allows. */
static void nesting_bombs_in_skipped_sections_are_refused(void **state)
{
    (void)state;
    static const char *const units[] = {"[", "{a: ", "[a,", "!", "a: "};
    char told[16], why[WR_CONFIG_WHY_BYTES];
    char *text = calloc(1, 200001);
    for (size_t unit = 0; unit < COUNT(units); unit++)
        for (size_t section = 0; section < 2; section++) {
            memcpy(text, section == 0 ? "rules: " : "one: {a", 7);
            for (size_t i = 7; i < 200000; i++)
                text[i] = units[unit][(i - 7) % strlen(units[unit])];
            assert_int_equal(parse(text, told, sizeof told, why), WEIR_E_INVAL);
            assert_memory_equal(why, "x:", 2);
        }
    free(text);
}

WEIR_TESTS(test(taker_gets_keys_and_values_in_their_order_and_with_their_lines),
           test(value_refused_by_a_taker_is_reported_with_line_and_column),
           test(nesting_bombs_in_skipped_sections_are_refused))
