/* SPDX-License-Identifier: MIT */
/* test_callers.c - tests that any data from clients costs a number of steps proportional to its
 * size (M12, N1-2). */
#include "steps.h"

#include "core/admit/match.h"
#include "core/web/request/http_request.h"
#include "serve/daemon/api_request.h"

#define KIB ((size_t)1024)

/* ---- requests ---- */

/* Parses a head that arrives over a slow line: each call has one byte more. */
static void work_of_head(const char *text, size_t bytes)
{
    struct wr_request request;
    wr_request_init(&request);
    for (size_t at = 1; at <= bytes; at++)
        if (wr_request_head(&request, (struct wr_span){text, at}) != WR_REQUEST_MORE)
            break;
}

static void request_byte_by_byte_costs_steps_in_proportion_to_its_bytes(void **state)
{
    static const char *const texts[] = {"a: b\r\n", "a",     " ", ":", "\r\n", "\n", "\r", ",", "Connection: a,b\r\n",
                                        "\t",       "a:\r\n"};
    static const char *const begins[] = {"GET / HTTP/1.1\r\nHost: h\r\n", "GET /", "",
                                         "GET / HTTP/1.1\r\nConnection: "};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        for (size_t j = 0; j < sizeof begins / sizeof begins[0]; j++)
            steps_grow_with("head", work_of_head, begins[j], texts[i], "\r\n\r\n", 8 * KIB, 150);
}

static void work_of_body(const char *text, size_t bytes)
{
    struct wr_request request;
    struct wr_span rest = {text, bytes}, piece;
    wr_request_init(&request);
    if (wr_request_head(&request, rest) != WR_REQUEST_HEAD)
        return;
    for (size_t at = request.head_bytes, end = at; end <= bytes; end++) {
        rest = (struct wr_span){text + at, end - at};
        enum wr_request_step step;
        while ((step = wr_request_body(&request, &rest, &piece)) == WR_REQUEST_BODY)
            continue;
        if (step != WR_REQUEST_MORE)
            return;
        at = (size_t)(rest.data - text);
    }
}

static void chunked_body_costs_steps_in_proportion_to_its_bytes(void **state)
{
    static const char *const texts[] = {"1\r\na\r\n", "1;a=b\r\na\r\n", "0",   "1 \r\na\r\n", ";",
                                        "a",          "0\r\na: b\r\n",  "\r\n"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        steps_grow_with("body", work_of_body, "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
                        texts[i], "", 8 * KIB, 150);
}

/* ---- paths and hosts ---- */

static struct wr_glob globs[6];

static void work_of_path(const char *text, size_t bytes)
{
    weir_request request;
    struct wr_request_reading asked;
    uint32_t steps = UINT32_MAX;
    weir_request_init(&request, "GET", text, "203.0.113.7");
    assert_int_equal(request.target_bytes, bytes);
    if (wr_request_reading_begin(&request, WR_READS_PATH | WR_READS_HOST | WR_READS_METHOD, 0, &asked) !=
        WEIR_FAULT_NONE)
        return;
    do
        for (size_t i = 0; i < sizeof globs / sizeof globs[0]; i++)
            (void)wr_glob_fits(&globs[i], (struct wr_span){asked.request.target, asked.request.target_bytes},
                               asked.loose, &steps);
    while (wr_request_reading_next(&asked));
}

/* All readings of a path are matched with all kinds of patterns. */
static void path_costs_steps_in_proportion_to_its_bytes(void **state)
{
    static const char *const patterns[] = {"/*a*a*b", "/a/**",   "**a",
                                           "/*/*/*",  "/a?a?*b", "/*aaaaaaaaaaaaaaaaaaaaaaaab*"};
    static const char *const texts[] = {"a",      "/a",       "A", ";a", "/", "%2F", "%40", "%41",
                                        "%C3%A4", "a/A;b%40", "%", "?",  ".", "\\",  "/a;"};
    static const char *const begins[] = {"/", "http://h/", "?", "http://", "/A;b/"};
    (void)state;
    for (size_t i = 0; i < sizeof globs / sizeof globs[0]; i++)
        assert_int_equal(wr_glob_parse_path(patterns[i], &globs[i]), 0);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        for (size_t j = 0; j < sizeof begins / sizeof begins[0]; j++)
            steps_grow_with("path", work_of_path, begins[j], texts[i], "", KIB, 5000);
}

static void work_of_value(const char *text, size_t bytes)
{
    uint32_t steps = UINT32_MAX;
    for (size_t i = 0; i < sizeof globs / sizeof globs[0]; i++)
        (void)wr_glob_fits(&globs[i], (struct wr_span){text, bytes}, WR_LOOSE_CASE, &steps);
}

static void matching_a_header_costs_steps_in_proportion_to_its_bytes(void **state)
{
    static const char *const patterns[] = {"*a*a*a*b", "a*", "*a", "*?a*?b", "a?a?*b", "*aaaaaaaaaaaaaaaaaaaaaaaab*"};
    static const char *const texts[] = {"a", "ab", "aaaaaaaaaaaaaaaaaaaaaaaa"};
    (void)state;
    for (size_t i = 0; i < sizeof globs / sizeof globs[0]; i++)
        assert_int_equal(wr_glob_parse_value(patterns[i], &globs[i]), 0);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        steps_grow_with("value", work_of_value, "", texts[i], "", 8 * KIB, 500);
}

/* ---- addresses and credentials ---- */

static void work_of_hops(const char *text, size_t bytes)
{
    static const char *const networks[] = {"10.0.0.0/8", "fd00::/8", "192.168.0.0/16"};
    weir_network trusted[3];
    weir_header header = {"X-Forwarded-For", text};
    weir_header_list list = {&header, 1};
    weir_request request;
    weir_key_rule key;
    char memory[WEIR_KEY_MAX];
    size_t key_bytes;
    weir_request_fault fault;
    (void)bytes;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(weir_network_parse(networks[i], &trusted[i]), 0);
    weir_key_rule_init(&key, WEIR_KEY_IP);
    key.trusted = trusted;
    key.trusted_count = 3;
    weir_request_init(&request, "GET", "/", "10.0.0.1");
    request.header = weir_header_list_find;
    request.header_context = &list;
    (void)weir_key_extract(&key, &request, memory, sizeof memory, &key_bytes, &fault);
    key = (weir_key_rule){.size = 0};
    weir_key_rule_init(&key, WEIR_KEY_USER);
    key.header = "x-forwarded-for";
    key.secret = "0123456789abcdef";
    (void)weir_key_extract(&key, &request, memory, sizeof memory, &key_bytes, &fault);
}

static void hops_and_credentials_cost_steps_in_proportion_to_their_bytes(void **state)
{
    static const char *const texts[] = {"10.0.0.1, ", "1.1.1.1,", ",", " ", "::1,",     "[",
                                        "unknown, ",  ":",        "0", "a", "[::1]:1,", "."};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        steps_grow_with("hops", work_of_hops, "", texts[i], "", 8 * KIB, 300);
}

/* ---- JSON ---- */

static void work_of_json(const char *text, size_t bytes)
{
    static struct wr_api_reader reader;
    struct wr_api_request ask;
    wr_api_reader_begin(&reader, (struct wr_span){text, bytes});
    while (wr_api_reader_next(&reader, &ask))
        continue;
}

static void json_costs_steps_in_proportion_to_its_bytes(void **state)
{
    static const char *const texts[] = {"[",
                                        "{",
                                        "{},",
                                        "\"",
                                        "\\",
                                        "\\u0041",
                                        "\\ud800\\udc00",
                                        " ",
                                        "{\"cost\":1},",
                                        "1",
                                        "-",
                                        "{\"headers\":{\"a\":\"b\"}},",
                                        "{\"headers\":{\"a\":\"\\n\"},\"cost\":1,\"key\":\"\\n\"},",
                                        ",",
                                        "}",
                                        "]"};
    static const char *const begins[] = {"[",           "",     "{\"key\":\"",           "{\"headers\":{\"",
                                         "[{\"cost\":", "[{\"", "{\"headers\":{\"a\":\""};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        for (size_t j = 0; j < sizeof begins / sizeof begins[0]; j++)
            steps_grow_with("json", work_of_json, begins[j], texts[i], "", 64 * KIB, 500);
}

WEIR_TESTS(test(request_byte_by_byte_costs_steps_in_proportion_to_its_bytes),
           test(chunked_body_costs_steps_in_proportion_to_its_bytes), test(path_costs_steps_in_proportion_to_its_bytes),
           test(matching_a_header_costs_steps_in_proportion_to_its_bytes),
           test(hops_and_credentials_cost_steps_in_proportion_to_their_bytes),
           test(json_costs_steps_in_proportion_to_its_bytes))
