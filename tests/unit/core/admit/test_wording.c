/* SPDX-License-Identifier: MIT */
/* test_wording.c - tests parsing of limits, keys, networks and lists as users write them, and of
 * lines of a state file. */
#include "core/admit/key_source.h"

#include "core/admit/numbered_keys.h"
#include "core/admit/ranges.h"
#include "core/admit/usage_record.h"
#include "lib/test.h"

static void key_texts_name_their_source_and_hide_secrets(void **state)
{
    (void)state;
    enum wr_key_source source;
    const char *header;
    assert_int_equal(wr_key_source_parse("ip", &source, &header), 0);
    assert_int_equal(source, WR_KEY_FROM_IP);
    assert_null(header);
    assert_int_equal(wr_key_source_parse("header:x-user-id", &source, &header), 0);
    assert_int_equal(source, WR_KEY_FROM_HEADER);
    assert_string_equal(header, "x-user-id");
    assert_int_equal(wr_key_source_parse("token:authorization", &source, &header), 0);
    assert_int_equal(source, WR_KEY_FROM_TOKEN);
    static const char *const wrong[] = {"",           "IP",     "header:",       "header:X-User",
                                        "header:a b", "cookie", "header:cookie", "header:authorization"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(wr_key_source_parse(wrong[i], &source, &header), WEIR_E_INVAL);
}

static void address_is_found_among_adjacent_and_nested_networks(void **state)
{
    (void)state;
    static const char *const texts[] = {"10.0.0.0/8",    "10.1.0.0/16",  "192.0.2.7",       "192.0.2.0/31",
                                        "2001:db8::/32", "10.0.0.0/9",   "::ffff:9.0.0.1",  "172.16.0.0/25",
                                        "172.16.1.0/24", "198.51.100.0", "198.51.100.0/31", "203.0.113.0/31",
                                        "203.0.113.0"};
    static const struct {
        const char *address;
        bool held;
    } rows[] = {{"10.200.0.1", true},    {"10.1.2.3", true},         {"9.255.255.255", false},  {"11.0.0.0", false},
                {"192.0.2.7", true},     {"192.0.2.6", false},       {"192.0.2.1", true},       {"192.0.2.2", false},
                {"2001:db8:1::", true},  {"2001:db9::", false},      {"::ffff:10.0.0.1", true}, {"9.0.0.1", true},
                {"::a00:1", false},      {"255.255.255.255", false}, {"172.16.0.127", true},    {"172.16.0.128", false},
                {"172.16.0.255", false}, {"172.16.1.0", true},       {"172.16.1.255", true},    {"198.51.100.1", true},
                {"198.51.100.2", false}, {"203.0.113.1", true},      {"203.0.113.2", false}};
    weir_network networks[13];
    struct wr_range ranges[13];
    for (size_t i = 0; i < 13; i++)
        assert_int_equal(weir_network_parse(texts[i], &networks[i]), 0);
    size_t count = wr_ranges_make(networks, 13, ranges);
    assert_int_equal(count, 9);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wr_address address;
        assert_true(wr_address_parse(wr_span_of(rows[i].address), &address));
        if (wr_ranges_hold(ranges, count, &address) != rows[i].held)
            fail_msg("%s", rows[i].address);
    }
    assert_int_equal(wr_ranges_make(NULL, 0, ranges), 0);
}

/* The search halves a sorted array, so wr_ranges_make must sort the networks. */
static void networks_may_be_listed_in_any_order(void **state)
{
    (void)state;
    static const char *const texts[][3] = {{"192.0.2.0/24", "10.0.0.0/8", "172.16.0.0/12"},
                                           {"192.0.2.0/24", "172.16.0.0/12", "10.0.0.0/8"},
                                           {"10.0.0.0/8", "192.0.2.0/24", "172.16.0.0/12"}};
    static const char *const held[] = {"10.1.2.3", "172.16.0.1", "192.0.2.1"};
    for (size_t i = 0; i < 3; i++)
        for (size_t count = 2; count <= 3; count++) {
            weir_network networks[3];
            struct wr_range ranges[3];
            for (size_t k = 0; k < 3; k++)
                assert_int_equal(weir_network_parse(texts[i][k], &networks[k]), 0);
            assert_int_equal(wr_ranges_make(networks, count, ranges), count);
            for (size_t k = 0; k + 1 < count; k++)
                assert_true(memcmp(ranges[k].last, ranges[k + 1].first, 16) < 0);
            for (size_t k = 0; k < 3 && count == 3; k++) {
                struct wr_address address;
                assert_true(wr_address_parse(wr_span_of(held[k]), &address));
                assert_true(wr_ranges_hold(ranges, count, &address));
            }
        }
}

static void words_are_found_and_duplicates_reported(void **state)
{
    (void)state;
    struct wr_numbered_key words[] = {{wr_span_of("pear"), 1}, {wr_span_of("fig"), 2}, {wr_span_of("apple"), 3}};
    assert_null(wr_numbered_keys_sort(words, 3));
    assert_int_equal(wr_numbered_keys_find(words, 3, wr_span_of("fig"))->number, 2);
    assert_int_equal(wr_numbered_keys_find(words, 3, wr_span_of("apple"))->number, 3);
    assert_null(wr_numbered_keys_find(words, 3, wr_span_of("appl")));
    assert_null(wr_numbered_keys_find(words, 0, wr_span_of("fig")));
    words[0].text = words[2].text;
    assert_non_null(wr_numbered_keys_sort(words, 3));
}

static void state_line_parses_as_written_and_invalid_ones_are_refused(void **state)
{
    (void)state;
    char memory[WR_USAGE_RECORD_BYTES_MAX];
    struct wr_buf buf;
    struct wr_usage_record record;
    struct wr_limit_usage usages[] = {{17, 0}, {3, 1500000000}};
    wr_buf_init_fixed(&buf, memory, sizeof memory);
    wr_usage_record_append(&buf, 'k', (struct wr_span){"a\0\n", 3}, usages, 2);
    assert_string_equal(buf.bytes, "k 61000a 17 3/1500000000");
    assert_true(wr_usage_record_parse(wr_buf_from(&buf, 0), &record));
    assert_int_equal(record.key_bytes, 3);
    assert_memory_equal(record.key, "a\0\n", 3);
    assert_int_equal(record.count, 2);
    assert_int_equal(record.usages[1].used, 3);
    assert_int_equal(record.usages[1].back_ns, 1500000000);
    /* the first of its two limits is unused */
    assert_true(wr_usage_record_parse(wr_span_of("k 61 0 1"), &record));
    assert_true(record.count == 2 && record.usages[0].used == 0 && record.usages[1].used == 1);
    static const char *const wrong[] = {"",
                                        "k",
                                        "k 61",
                                        "k  1",
                                        "k 6 1",
                                        "k 6x 1",
                                        "x 61 1",
                                        "k 61 -1",
                                        "k 61 4294967296",
                                        "k 61 1/0",
                                        "k 61 1/",
                                        "k 61 1/99999999999999999999",
                                        "k 61 1 1 1 1 1 1 1 1 1",
                                        "k 61 1  2"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (wr_usage_record_parse(wr_span_of(wrong[i]), &record))
            fail_msg("\"%s\"", wrong[i]);
    }
}

WEIR_TESTS(test(networks_may_be_listed_in_any_order), test(key_texts_name_their_source_and_hide_secrets),
           test(address_is_found_among_adjacent_and_nested_networks), test(words_are_found_and_duplicates_reported),
           test(state_line_parses_as_written_and_invalid_ones_are_refused))
