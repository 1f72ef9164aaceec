/* SPDX-License-Identifier: MIT */
/* test_http_head.c - tests response heads that have one meaning only, and those that are refused
 * (A4, A6 - A9, A19, C9). */
#include "lib/test.h"

#include "core/web/http/head.h"
#include "lib/alloc.h"

static const struct wr_head_limits limits = {.bytes_max = 4096, .interims_max = 3};

/* Feeds lines until the first fault, and returns it. */
static enum wr_head_fault feed(struct wr_head *head, const char *text)
{
    struct wr_span rest = wr_span_of(text);

    while (rest.bytes > 0) {
        size_t end = wr_span_find(rest, '\n');
        struct wr_span line = {rest.data, end < rest.bytes ? end + 1 : end};
        enum wr_head_fault fault = wr_head_line(head, line);
        if (fault != WR_HEAD_OK)
            return fault;
        rest = wr_span_after(rest, line.bytes);
    }
    return WR_HEAD_OK;
}

static enum wr_head_fault fault_of(const char *text)
{
    test_allocator memory;
    struct wr_head head;

    test_allocator_init(&memory);
    wr_head_init(&head, &memory.allocator, &limits);
    enum wr_head_fault fault = feed(&head, text);
    wr_head_release(&head);
    assert_int_equal(memory.live, 0);
    return fault;
}

struct row {
    const char *text;
    enum wr_head_fault fault;
};

#define ASSERT_FAULTS(rows)                                   \
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) \
        if (fault_of(rows[i].text) != rows[i].fault)          \
    fail_msg("row %zu: \"%s\"", i, wr_head_fault_text(fault_of(rows[i].text)))

#define OK "HTTP/1.1 200 OK\r\n"

static void response_head_begins_with_an_http_status_line(void **state)
{
    static const struct row rows[] = {
        {"HTTP/1.1 200 OK\r\n\r\n", WR_HEAD_OK},
        {"HTTP/1.0 404\r\n\r\n", WR_HEAD_OK},
        {"HTTP/2 200 \r\n\r\n", WR_HEAD_OK},
        {"HTTP/1.1 200\n\n", WR_HEAD_OK},
        {"HTTP/1.1 599 x\r\n", WR_HEAD_OK},
        {"HTTP/1.1 600 x\r\n", WR_HEAD_STATUS},
        {"HTTP/1.1 998 x\r\n", WR_HEAD_STATUS},
        {"HTTP/1.1 000 x\r\n", WR_HEAD_STATUS},
        {"HTTP/1.1 099 x\r\n", WR_HEAD_STATUS},
        {"HTTP/1.1 2000 x\r\n", WR_HEAD_STATUS},
        {"HTTP/1.1 20\r\n", WR_HEAD_STATUS},
        {"HTTP/1.1\r\n", WR_HEAD_STATUS},
        {"HTTP/1.1 101 Switching\r\n", WR_HEAD_STATUS},
        {"ICY 200 OK\r\n", WR_HEAD_STATUS},
        {"\r\n", WR_HEAD_STATUS},
        {"<html>\n", WR_HEAD_STATUS},
    };
    (void)state;
    ASSERT_FAULTS(rows);
}

static void conflicting_or_invalid_content_lengths_are_refused(void **state)
{
    static const struct row rows[] = {
        {OK "Content-Length: 5\r\n\r\n", WR_HEAD_OK},
        {OK "Content-Length: 0\r\n\r\n", WR_HEAD_OK},
        {OK "content-length:5\r\nCONTENT-LENGTH:  5 \r\n\r\n", WR_HEAD_OK},
        {OK "Content-Length: 9223372036854775807\r\n\r\n", WR_HEAD_OK},
        {OK "Content-Length: 9223372036854775808\r\n", WR_HEAD_LENGTH},
        {OK "Content-Length: 18446744073709551621\r\n", WR_HEAD_LENGTH},
        {OK "Content-Length: -1\r\n", WR_HEAD_LENGTH},
        {OK "Content-Length: +5\r\n", WR_HEAD_LENGTH},
        {OK "Content-Length: 0x5\r\n", WR_HEAD_LENGTH},
        {OK "Content-Length: 5, 5\r\n", WR_HEAD_LENGTH},
        {OK "Content-Length: 5 6\r\n", WR_HEAD_LENGTH},
        {OK "Content-Length:\r\n", WR_HEAD_LENGTH},
        {OK "Content-Length: 5\r\nContent-Length: 6\r\n", WR_HEAD_LENGTHS},
        {OK "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", WR_HEAD_BOTH},
        {OK "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", WR_HEAD_BOTH},
        {OK "Transfer-Encoding: Chunked\r\n\r\n", WR_HEAD_OK},
        {OK "Transfer-Encoding: identity\r\n\r\n", WR_HEAD_OK},
        {OK "Transfer-Encoding: identity\r\nContent-Length: 5\r\n", WR_HEAD_BOTH},
        {OK "Transfer-Encoding: gzip, chunked\r\n", WR_HEAD_TRANSFER},
        {OK "Transfer-Encoding: chunked, chunked\r\n", WR_HEAD_TRANSFER},
        {OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", WR_HEAD_TRANSFER},
        {OK "Transfer-Encoding: xchunked\r\n", WR_HEAD_TRANSFER},
        {OK "Transfer-Encoding:\r\n", WR_HEAD_TRANSFER},
        /* fields of an interim head do not count for the final one */
        {"HTTP/1.1 103 x\r\nContent-Length: 5\r\n\r\n" OK "Content-Length: 6\r\n\r\n", WR_HEAD_OK},
    };
    (void)state;
    ASSERT_FAULTS(rows);
}

static void framing_headers_have_one_spelling(void **state)
{
    static const struct row rows[] = {
        {OK "Content-Length : 5\r\n", WR_HEAD_FIELD},
        {OK "Transfer-Encoding\t: chunked\r\n", WR_HEAD_FIELD},
        {OK "Content-Length: 5\r6\r\n", WR_HEAD_FIELD},
        {OK "Content-Length: 5\r\r\n", WR_HEAD_FIELD},
        {OK "Content-Encoding: br\r\r\n", WR_HEAD_FIELD},
        {OK "Content-Length: 5\r\n 6\r\n", WR_HEAD_FIELD},
        {OK "Transfer-Encoding:chunked\r\n\t,x\r\n", WR_HEAD_FIELD},
        {OK "Content-Encoding: gzip\r\n ,gzip\r\n", WR_HEAD_FIELD},
    };
    (void)state;
    ASSERT_FAULTS(rows);
}

static void response_head_line_that_is_no_field_is_refused(void **state)
{
    static const struct row rows[] = {
        {OK "no colon\r\n", WR_HEAD_NO_FIELD},
        {OK "A: 1\r\nB\r\n", WR_HEAD_NO_FIELD},
        {OK "A B: 1\r\n\r\n", WR_HEAD_OK},
    };
    test_allocator memory;
    struct wr_head head;

    (void)state;
    ASSERT_FAULTS(rows);
    test_allocator_init(&memory);
    wr_head_init(&head, &memory.allocator, &limits);
    assert_int_equal(feed(&head, OK), WR_HEAD_OK);
    assert_int_equal(wr_head_line(&head, (struct wr_span){"A: b\0c\r\n", 8}), WR_HEAD_NO_FIELD);
    wr_head_clear(&head);
    assert_int_equal(feed(&head, OK "A: b\r\n"), WR_HEAD_OK);
    assert_int_equal(wr_head_line(&head, (struct wr_span){" c\0d\r\n", 6}), WR_HEAD_NO_FIELD);
    wr_head_clear(&head);
    assert_int_equal(wr_head_line(&head, (struct wr_span){"HTTP/1.1 200\0OK\r\n", 17}), WR_HEAD_STATUS);
    wr_head_clear(&head);
    assert_int_equal(wr_head_line(&head, (struct wr_span){"HTTP/1.1 200 O\0K\r\n", 18}), WR_HEAD_STATUS);
    wr_head_release(&head);
}

static void content_codings_are_counted_over_all_lines_of_the_final_head(void **state)
{
    static const struct {
        const char *text;
        uint32_t codings;
    } rows[] = {
        {OK "\r\n", 0},
        {OK "Content-Encoding: gzip, br\r\n\r\n", 2},
        {OK "Content-Encoding: gzip\r\ncontent-encoding: gzip\r\nContent-encoding:gzip\r\n\r\n", 3},
        {OK "Content-Encoding: identity, ,identity,Identity, gzip\r\n\r\n", 1},
        {"HTTP/1.1 103 x\r\nContent-Encoding: gzip, gzip\r\n\r\n" OK "Content-Encoding: br\r\n\r\n", 1},
    };
    test_allocator memory;
    struct wr_head head;

    (void)state;
    test_allocator_init(&memory);
    wr_head_init(&head, &memory.allocator, &limits);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(feed(&head, rows[i].text), WR_HEAD_OK);
        assert_int_equal(head.codings, rows[i].codings);
        wr_head_clear(&head);
    }
    wr_head_release(&head);
}

#define INTERIM "HTTP/1.1 100 Continue\r\n\r\n"

static void too_many_interim_responses_are_refused(void **state)
{
    static const struct row rows[] = {
        {INTERIM INTERIM "HTTP/1.1 103 Early\r\nLink: x\r\n\r\n" OK "\r\n", WR_HEAD_OK},
        {INTERIM INTERIM INTERIM INTERIM OK "\r\n", WR_HEAD_INTERIMS},
    };
    (void)state;
    ASSERT_FAULTS(rows);
}

static void trailers_are_fields_or_refused(void **state)
{
    static const struct row rows[] = {
        {OK "\r\nExpires: 0\r\n\r\n", WR_HEAD_OK},
        {OK "\r\nabcdefghijklmnop\r\n", WR_HEAD_TRAILER},
        {OK "\r\n0\r\n", WR_HEAD_TRAILER},
    };
    (void)state;
    ASSERT_FAULTS(rows);
}

static void response_head_size_is_bounded(void **state)
{
    test_allocator memory;
    struct wr_head head;
    char line[1024];

    (void)state;
    test_allocator_init(&memory);
    wr_head_init(&head, &memory.allocator, &limits);
    assert_int_equal(feed(&head, OK), WR_HEAD_OK);
    memset(line, 'a', sizeof line);
    line[1] = ':';
    for (size_t bytes = strlen(OK); bytes + sizeof line <= limits.bytes_max; bytes += sizeof line)
        assert_int_equal(wr_head_line(&head, (struct wr_span){line, sizeof line}), WR_HEAD_OK);
    assert_int_equal(wr_head_line(&head, (struct wr_span){line, sizeof line}), WR_HEAD_LARGE);
    assert_true(memory.live_bytes <= (long)limits.bytes_max + 1);
    wr_head_release(&head);
    assert_int_equal(memory.live, 0);
}

/* Returns the fields as "name=value
 * name=value
 * ". */
static const char *fields_of(const char *text)
{
    static char said[1024];
    test_allocator memory;
    struct wr_head head;
    struct wr_span name, value;
    int at = 0;

    test_allocator_init(&memory);
    wr_head_init(&head, &memory.allocator, &limits);
    assert_int_equal(feed(&head, text), WR_HEAD_OK);
    said[0] = '\0';
    for (size_t cursor = 0; wr_head_next(&head, &cursor, &name, &value);)
        at += snprintf(said + at, sizeof said - (size_t)at, "%.*s=%.*s|", (int)name.bytes, name.data, (int)value.bytes,
                       value.data);
    wr_head_release(&head);
    return said;
}

static void odd_fields_are_joined_or_dropped_and_never_split(void **state)
{
    (void)state;
    assert_string_equal(fields_of(OK "A: 1\r\nb:2\r\n\r\n"), "A=1|b=2|");
    assert_string_equal(fields_of(OK "A : 1\r\n"), "A=1|");
    assert_string_equal(fields_of(OK "A: 1\r\n 2\r\n\t3\r\nB: 4\r\n"), "A=1 2 3|B=4|");
    assert_string_equal(fields_of(OK "A:\r\n 2\r\n"), "A=2|");
    assert_string_equal(fields_of(OK "A:\r\nB: \r\n"), "A=|B=|");
    assert_string_equal(fields_of(OK "A: 1\rB: 2\r\nC: 3\r\n"), "C=3|");
    assert_string_equal(fields_of(OK "A B: 1\r\n 2\r\nC: 3\r\n"), "C=3|");
    assert_string_equal(fields_of(OK "A: 1\r\n x\ry\r\n"), "A=1 x y|");
    assert_string_equal(fields_of(OK " 1\r\nA: 2\r\n"), "A=2|");
    assert_string_equal(fields_of("HTTP/1.1 103 x\r\nA: 1\r\n\r\n" OK "B: 2\r\n\r\n"), "B=2|");
}

static void response_head_is_searched_by_name_and_can_be_reused(void **state)
{
    test_allocator memory;
    struct wr_head head;
    struct wr_span value;

    (void)state;
    test_allocator_init(&memory);
    wr_head_init(&head, &memory.allocator, &limits);
    assert_int_equal(feed(&head, "HTTP/1.1 301 x\r\nLocation: /a\r\nlocation: /b\r\n"), WR_HEAD_OK);
    assert_false(wr_head_is_whole(&head));
    assert_int_equal(feed(&head, "\r\n"), WR_HEAD_OK);
    assert_true(wr_head_is_whole(&head));
    assert_int_equal(head.status, 301);
    assert_true(wr_head_find(&head, "LOCATION", &value));
    assert_int_equal(value.bytes, 2);
    assert_memory_equal(value.data, "/a", 2);
    assert_false(wr_head_find(&head, "Locatio", &value));
    wr_head_clear(&head);
    assert_int_equal(head.status, 0);
    assert_int_equal(feed(&head, OK "\r\n"), WR_HEAD_OK);
    assert_false(wr_head_find(&head, "Location", &value));
    wr_head_release(&head);
    assert_int_equal(memory.live, 0);
}

static void response_head_without_memory_is_a_fault(void **state)
{
    test_allocator memory;
    struct wr_head head;

    (void)state;
    test_allocator_init(&memory);
    wr_head_init(&head, &memory.allocator, &limits);
    memory.fail_at = 1;
    assert_int_equal(feed(&head, OK "A: 1\r\n"), WR_HEAD_MEMORY);
    wr_head_clear(&head);
    assert_int_equal(feed(&head, OK "A: 1\r\n\r\n"), WR_HEAD_OK);
    wr_head_release(&head);
    assert_int_equal(memory.live, 0);
}

WEIR_TESTS(test(response_head_begins_with_an_http_status_line),
           test(conflicting_or_invalid_content_lengths_are_refused), test(framing_headers_have_one_spelling),
           test(response_head_line_that_is_no_field_is_refused),
           test(content_codings_are_counted_over_all_lines_of_the_final_head),
           test(too_many_interim_responses_are_refused), test(trailers_are_fields_or_refused),
           test(response_head_size_is_bounded), test(odd_fields_are_joined_or_dropped_and_never_split),
           test(response_head_is_searched_by_name_and_can_be_reused), test(response_head_without_memory_is_a_fault))
