/* SPDX-License-Identifier: MIT */
/* test_request_refused.c - tests that requests which two parsers might read differently, or which
 * are too large, are refused (J6, J7). */
#include "request_rig.h"

#define HOST "Host: weir\r\n"
#define GET "GET / HTTP/1.1\r\n" HOST
#define POST "POST / HTTP/1.1\r\n" HOST
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"

/* bytes 0: the length of the string */
struct row {
    const char *text;
    enum wr_request_fault fault;
    int status;
    size_t bytes;
};

#define WITH_NUL(text) text, WR_REQUEST_CONTROL, 400, sizeof(text) - 1

static const struct row request_lines[] = {
    {"\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n", WR_REQUEST_BLANK_LINES, 400, 0},
    {"\nGET / HTTP/1.1\r\n" HOST "\r\n", WR_REQUEST_BARE_LF, 400, 0},
    {"GET / HTTP/1.1\n" HOST "\r\n", WR_REQUEST_BARE_LF, 400, 0},
    {"GET /\r HTTP/1.1\r\n" HOST "\r\n", WR_REQUEST_BARE_CR, 400, 0},
    {"\rGET / HTTP/1.1\r\n" HOST "\r\n", WR_REQUEST_BARE_CR, 400, 0},
    {"GET / HTTP/1.1\r\r\n" HOST "\r\n", WR_REQUEST_BARE_CR, 400, 0},
    {WITH_NUL("GET /\0 HTTP/1.1\r\n" HOST "\r\n")},
    {"GET /\x01 HTTP/1.1\r\n" HOST "\r\n", WR_REQUEST_CONTROL, 400, 0},
    {"GET /\x7f HTTP/1.1\r\n" HOST "\r\n", WR_REQUEST_CONTROL, 400, 0},
    {"get / HTTP/1.1\r\n" HOST "\r\n", WR_REQUEST_METHOD, 400, 0},
    {"GEt / HTTP/1.1\r\n" HOST "\r\n", WR_REQUEST_METHOD, 400, 0},
    {"G@T / HTTP/1.1\r\n" HOST "\r\n", WR_REQUEST_METHOD, 400, 0},
    {"GE[ / HTTP/1.1\r\n" HOST "\r\n", WR_REQUEST_METHOD, 400, 0},
    {"M-SEARCH / HTTP/1.1\r\n" HOST "\r\n", WR_REQUEST_METHOD, 400, 0},
    {"TRACE / HTTP/1.1\r\n" HOST "\r\n", WR_REQUEST_METHOD_UNKNOWN, 501, 0},
    {"CONNECT weir:80 HTTP/1.1\r\n" HOST "\r\n", WR_REQUEST_METHOD_UNKNOWN, 501, 0},
    {"GETX / HTTP/1.1\r\n" HOST "\r\n", WR_REQUEST_METHOD_UNKNOWN, 501, 0},
    {"OPTIONS * HTTP/1.1\r\n" HOST "\r\n", WR_REQUEST_TARGET_FORM, 400, 0},
    {"GET http://weir/ HTTP/1.1\r\n" HOST "\r\n", WR_REQUEST_TARGET_FORM, 400, 0},
    {"GET weir:80 HTTP/1.1\r\n" HOST "\r\n", WR_REQUEST_TARGET_FORM, 400, 0},
    {"GET ?a HTTP/1.1\r\n" HOST "\r\n", WR_REQUEST_TARGET_FORM, 400, 0},
    {"GET /a#b HTTP/1.1\r\n" HOST "\r\n", WR_REQUEST_TARGET_BYTE, 400, 0},
    {"GET /a\tb HTTP/1.1\r\n" HOST "\r\n", WR_REQUEST_TARGET_BYTE, 400, 0},
    {"GET /\xc3\xa4 HTTP/1.1\r\n" HOST "\r\n", WR_REQUEST_TARGET_BYTE, 400, 0},
    {"GET /a b HTTP/1.1\r\n" HOST "\r\n", WR_REQUEST_SPACES, 400, 0},
    {"GET  / HTTP/1.1\r\n" HOST "\r\n", WR_REQUEST_SPACES, 400, 0},
    {"GET /  HTTP/1.1\r\n" HOST "\r\n", WR_REQUEST_SPACES, 400, 0},
    {" GET / HTTP/1.1\r\n" HOST "\r\n", WR_REQUEST_SPACES, 400, 0},
    {" / HTTP/1.1\r\n" HOST "\r\n", WR_REQUEST_SPACES, 400, 0},
    {"GET  HTTP/1.1\r\n" HOST "\r\n", WR_REQUEST_SPACES, 400, 0},
    {"GET / HTTP/1.1 \r\n" HOST "\r\n", WR_REQUEST_SPACES, 400, 0},
    {"GET /\r\n", WR_REQUEST_VERSION_MISSING, 400, 0},
    {"GET\r\n", WR_REQUEST_VERSION_MISSING, 400, 0},
    {"GET\t/\tHTTP/1.1\r\n" HOST "\r\n", WR_REQUEST_VERSION_MISSING, 400, 0},
    {"GET / \r\n", WR_REQUEST_VERSION_FORM, 400, 0},
    {"GET / http/1.1\r\n" HOST "\r\n", WR_REQUEST_VERSION_FORM, 400, 0},
    {"GET / HTTP/1.10\r\n" HOST "\r\n", WR_REQUEST_VERSION_FORM, 400, 0},
    {"GET / HTTPX1.1\r\n" HOST "\r\n", WR_REQUEST_VERSION_FORM, 400, 0},
    {"GET / HTTP/1\r\n" HOST "\r\n", WR_REQUEST_VERSION_FORM, 400, 0},
    {"GET / HTTP/1.x\r\n" HOST "\r\n", WR_REQUEST_VERSION_FORM, 400, 0},
    {"GET / HTTP/1,1\r\n" HOST "\r\n", WR_REQUEST_VERSION_FORM, 400, 0},
    {"GET / HTTP/ 1.1\r\n" HOST "\r\n", WR_REQUEST_SPACES, 400, 0},
    {"GET / HTTP/0.9\r\n" HOST "\r\n", WR_REQUEST_VERSION, 505, 0},
    {"GET / HTTP/1.2\r\n" HOST "\r\n", WR_REQUEST_VERSION, 505, 0},
    {"GET / HTTP/2.0\r\n" HOST "\r\n", WR_REQUEST_VERSION, 505, 0},
    {"GET / HTTP/2.1\r\n" HOST "\r\n", WR_REQUEST_VERSION, 505, 0},
    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", WR_REQUEST_VERSION, 505, 0},
};

static const struct row field_lines[] = {
    {GET "A: b\n\r\n", WR_REQUEST_BARE_LF, 400, 0},
    {GET "\n", WR_REQUEST_BARE_LF, 400, 0},
    {GET "A: b\rc\r\n\r\n", WR_REQUEST_BARE_CR, 400, 0},
    {GET "A: b\r\r\n\r\n", WR_REQUEST_BARE_CR, 400, 0},
    {GET "A\r: b\r\n\r\n", WR_REQUEST_BARE_CR, 400, 0},
    {GET "\r\r\n", WR_REQUEST_BARE_CR, 400, 0},
    {WITH_NUL(GET "A: b\0c\r\n\r\n")},
    {WITH_NUL(GET "A\0: b\r\n\r\n")},
    {GET "A: \x1b[0m\r\n\r\n", WR_REQUEST_CONTROL, 400, 0},
    {GET "A: \x7f\r\n\r\n", WR_REQUEST_CONTROL, 400, 0},
    {GET "A: b\r\n c\r\n\r\n", WR_REQUEST_FOLD, 400, 0},
    {GET "A: b\r\n\tc\r\n\r\n", WR_REQUEST_FOLD, 400, 0},
    {GET "A: b\r\n \r\n\r\n", WR_REQUEST_FOLD, 400, 0},
    {"GET / HTTP/1.1\r\n " HOST "\r\n", WR_REQUEST_FOLD, 400, 0},
    {GET "A b\r\n\r\n", WR_REQUEST_NO_FIELD, 400, 0},
    {GET "A : b\r\n\r\n", WR_REQUEST_COLON, 400, 0},
    {GET "A\t: b\r\n\r\n", WR_REQUEST_COLON, 400, 0},
    {GET "Content-Length : 5\r\n\r\nhello", WR_REQUEST_COLON, 400, 0},
    {GET ": b\r\n\r\n", WR_REQUEST_NAME, 400, 0},
    {GET "A B: c\r\n\r\n", WR_REQUEST_NAME, 400, 0},
    {GET "A(: c\r\n\r\n", WR_REQUEST_NAME, 400, 0},
    {GET "A\xc3\xa4: c\r\n\r\n", WR_REQUEST_NAME, 400, 0},
    {GET HOST "\r\n", WR_REQUEST_HOSTS, 400, 0},
    {GET "host:\r\n\r\n", WR_REQUEST_HOSTS, 400, 0},
    {"GET / HTTP/1.0\r\n" HOST HOST "\r\n", WR_REQUEST_HOSTS, 400, 0},
    {"GET / HTTP/1.1\r\n\r\n", WR_REQUEST_NO_HOST, 400, 0},
    {"GET / HTTP/1.1\r\nX-Host: weir\r\n\r\n", WR_REQUEST_NO_HOST, 400, 0},
    {"GET / HTTP/1.1\r\nHost: we ir\r\n\r\n", WR_REQUEST_HOST, 400, 0},
    {"GET / HTTP/1.1\r\nHost: a@weir\r\n\r\n", WR_REQUEST_HOST, 400, 0},
    {"GET / HTTP/1.1\r\nHost: weir/x\r\n\r\n", WR_REQUEST_HOST, 400, 0},
    {"GET / HTTP/1.1\r\nHost: w\xc3\xa4\r\n\r\n", WR_REQUEST_HOST, 400, 0},
    {GET "Expect: 200-ok\r\n\r\n", WR_REQUEST_EXPECT, 417, 0},
    {GET "Expect: 100-continue, x\r\n\r\n", WR_REQUEST_EXPECT, 417, 0},
    {GET "Expect:\r\n\r\n", WR_REQUEST_EXPECT, 417, 0},
};

static const struct row framings[] = {
    {POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", WR_REQUEST_LENGTHS, 400, 0},
    {POST "Content-Length: 5\r\ncontent-length: 5\r\n\r\nhello", WR_REQUEST_LENGTHS, 400, 0},
    {POST "Content-Length: 5, 5\r\n\r\nhello", WR_REQUEST_LENGTH, 400, 0},
    {POST "Content-Length: 5,6\r\n\r\nhello", WR_REQUEST_LENGTH, 400, 0},
    {POST "Content-Length: +5\r\n\r\nhello", WR_REQUEST_LENGTH, 400, 0},
    {POST "Content-Length: -5\r\n\r\nhello", WR_REQUEST_LENGTH, 400, 0},
    {POST "Content-Length: -0\r\n\r\n", WR_REQUEST_LENGTH, 400, 0},
    {POST "Content-Length: 0x5\r\n\r\nhello", WR_REQUEST_LENGTH, 400, 0},
    {POST "Content-Length: 5 5\r\n\r\nhello", WR_REQUEST_LENGTH, 400, 0},
    {POST "Content-Length: 5.0\r\n\r\nhello", WR_REQUEST_LENGTH, 400, 0},
    {POST "Content-Length: 5e0\r\n\r\nhello", WR_REQUEST_LENGTH, 400, 0},
    {POST "Content-Length: \"5\"\r\n\r\nhello", WR_REQUEST_LENGTH, 400, 0},
    {POST "Content-Length: five\r\n\r\nhello", WR_REQUEST_LENGTH, 400, 0},
    {POST "Content-Length:\r\n\r\n", WR_REQUEST_LENGTH, 400, 0},
    {POST "Content-Length: 9223372036854775808\r\n\r\n", WR_REQUEST_LENGTH, 400, 0},
    {POST "Content-Length: 18446744073709551621\r\n\r\nhello", WR_REQUEST_LENGTH, 400, 0},
    {POST "Content-Length: 340282366920938463463374607431768211461\r\n\r\nhello", WR_REQUEST_LENGTH, 400, 0},
    {POST "Content-Length: 9223372036854775807\r\n\r\n", WR_REQUEST_BODY_LARGE, 413, 0},
    {POST "Content-Length: 1048577\r\n\r\n", WR_REQUEST_BODY_LARGE, 413, 0},
    {GET "Content-Length: 1048577\r\n\r\n", WR_REQUEST_BODY_LARGE, 413, 0},
    {POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", WR_REQUEST_BOTH, 400, 0},
    {POST "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n", WR_REQUEST_BOTH, 400, 0},
    {POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", WR_REQUEST_TRANSFERS, 400, 0},
    {"POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", WR_REQUEST_TRANSFER_OLD, 400, 0},
    {POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", WR_REQUEST_TRANSFER, 501, 0},
    {POST "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", WR_REQUEST_TRANSFER, 501, 0},
    {POST "Transfer-Encoding: chunked,\r\n\r\n0\r\n\r\n", WR_REQUEST_TRANSFER, 501, 0},
    {POST "Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n", WR_REQUEST_TRANSFER, 501, 0},
    {POST "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", WR_REQUEST_TRANSFER, 501, 0},
    {POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", WR_REQUEST_TRANSFER, 501, 0},
    {POST "Transfer-Encoding: identity\r\n\r\n", WR_REQUEST_TRANSFER, 501, 0},
    {POST "Transfer-Encoding:\r\n\r\n", WR_REQUEST_TRANSFER, 501, 0},
    {POST "Transfer-Encoding: \x0b"
          "chunked\r\n\r\n0\r\n\r\n",
     WR_REQUEST_CONTROL, 400, 0},
    {POST "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", WR_REQUEST_TRANSFER, 501, 0},
    {POST "X: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", WR_REQUEST_FOLD, 400, 0},
};

static const struct row chunks[] = {
    {CHUNKED "-1\r\nx\r\n0\r\n\r\n", WR_REQUEST_CHUNK, 400, 0},
    {CHUNKED "+1\r\nx\r\n0\r\n\r\n", WR_REQUEST_CHUNK, 400, 0},
    {CHUNKED "0x1\r\nx\r\n0\r\n\r\n", WR_REQUEST_CHUNK, 400, 0},
    {CHUNKED " 1\r\nx\r\n0\r\n\r\n", WR_REQUEST_CHUNK, 400, 0},
    {CHUNKED "\r\n", WR_REQUEST_CHUNK, 400, 0},
    {CHUNKED "g\r\n", WR_REQUEST_CHUNK, 400, 0},
    {CHUNKED "1\nx\r\n0\r\n\r\n", WR_REQUEST_CHUNK, 400, 0},
    {CHUNKED "1\r\nxx\r\n0\r\n\r\n", WR_REQUEST_CHUNK, 400, 0},
    {CHUNKED "1\r\nx\n0\r\n\r\n", WR_REQUEST_CHUNK, 400, 0},
    {CHUNKED "1;a\nb\r\nx\r\n0\r\n\r\n", WR_REQUEST_CHUNK, 400, 0},
    {CHUNKED "ffffffffffffffff\r\nx", WR_REQUEST_CHUNK, 400, 0},
    {CHUNKED "10000000000000001\r\nx", WR_REQUEST_CHUNK, 400, 0},
    {CHUNKED "7fffffffffffffff\r\nx", WR_REQUEST_BODY_LARGE, 413, 0},
    {CHUNKED "100001\r\nx", WR_REQUEST_BODY_LARGE, 413, 0},
    {CHUNKED "1\r\nx\r\n100000\r\nx", WR_REQUEST_BODY_LARGE, 413, 0},
    {CHUNKED "0\r\nA\r\n\r\n", WR_REQUEST_TRAILER, 400, 0},
    {CHUNKED "0\r\nA : b\r\n\r\n", WR_REQUEST_TRAILER, 400, 0},
    {CHUNKED "0\r\n: b\r\n\r\n", WR_REQUEST_TRAILER, 400, 0},
    {CHUNKED "0\r\nA: b\n\r\n", WR_REQUEST_TRAILER, 400, 0},
    {CHUNKED "0\r\nA: b\rc\r\n\r\n", WR_REQUEST_TRAILER, 400, 0},
    {CHUNKED "0\r\nA: b\r\n c\r\n\r\n", WR_REQUEST_TRAILER, 400, 0},
    {CHUNKED "0\r\n\n", WR_REQUEST_TRAILER, 400, 0},
    {CHUNKED "0\r\n\rGET", WR_REQUEST_TRAILER, 400, 0},
    {CHUNKED "0\r\n\x01", WR_REQUEST_TRAILER, 400, 0},
};

/* Checks the fault of a text in one piece, byte by byte, and in two pieces cut anywhere. */
static void check_text(const char *text, size_t bytes, enum wr_request_fault fault, int status)
{
    struct request_fixture single = rig_read_single(text, bytes), whole = rig_read_whole(text, bytes);

    if (whole.request.fault != fault || single.request.fault != fault)
        print_error("%.200s: %s; %s\n", text, wr_request_fault_text((enum wr_request_fault)whole.request.fault),
                    wr_request_fault_text((enum wr_request_fault)single.request.fault));
    assert_int_equal(whole.step, WR_REQUEST_REFUSED);
    assert_int_equal(whole.request.fault, fault);
    assert_int_equal(single.step, WR_REQUEST_REFUSED);
    assert_int_equal(single.request.fault, fault);
    assert_int_equal(wr_request_fault_status(fault), status);
    assert_false(wr_request_keeps_alive(&whole.request) || wr_request_expects_continue(&whole.request));
    for (size_t cut = 0; cut < bytes && bytes < 1024; cut++)
        assert_int_equal(rig_read(text, bytes, &cut, 1).request.fault, fault);
}

static void check_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check_text(rows[i].text, rows[i].bytes > 0 ? rows[i].bytes : strlen(rows[i].text), rows[i].fault,
                   rows[i].status);
}

#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof(rows)[0])

static void malformed_request_line_is_refused(void **state)
{
    (void)state;
    CHECK_ROWS(request_lines);
}

static void malformed_header_line_of_a_request_is_refused(void **state)
{
    (void)state;
    CHECK_ROWS(field_lines);
}

static void request_body_with_an_ambiguous_end_is_refused(void **state)
{
    (void)state;
    CHECK_ROWS(framings);
}

static void bad_chunks_and_trailers_are_refused(void **state)
{
    (void)state;
    CHECK_ROWS(chunks);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static char text[1 << 18];
static size_t text_bytes;

static void put(const char *piece)
{
    size_t bytes = strlen(piece);

    assert_true(bytes <= sizeof text - text_bytes);
    memcpy(text + text_bytes, piece, bytes);
    text_bytes += bytes;
}

static void fill(size_t bytes)
{
    assert_true(bytes <= sizeof text - text_bytes);
    memset(text + text_bytes, 'a', bytes);
    text_bytes += bytes;
}

static void begin(const char *piece)
{
    text_bytes = 0;
    put(piece);
}

static void check_accepted(void)
{
    assert_int_equal(rig_read_whole(text, text_bytes).step, WR_REQUEST_END);
}

/* Appends "GET /aaa HTTP/1.1\r\n" with a length of `bytes`. */
static void put_line(size_t bytes)
{
    begin("GET /");
    fill(bytes - strlen("GET / HTTP/1.1\r\n"));
    put(" HTTP/1.1\r\n");
}

static void a_target_that_is_too_long_is_414(void **state)
{
    (void)state;
    put_line(WR_REQUEST_LINE_MAX);
    put(HOST "\r\n");
    check_accepted();
    put_line(WR_REQUEST_LINE_MAX + 1);
    check_text(text, text_bytes, WR_REQUEST_TARGET_LONG, 414);
    put_line(65536);
    put(HOST "\r\n");
    check_text(text, text_bytes, WR_REQUEST_TARGET_LONG, 414);
    begin("\r\n");
    fill(WR_REQUEST_LINE_MAX);
    check_text(text, text_bytes, WR_REQUEST_TARGET_LONG, 414);
}

/* Appends "A: aaa\r\n" with a length of `bytes`. */
static void put_field(size_t bytes)
{
    put("A: ");
    fill(bytes - strlen("A: \r\n"));
    put("\r\n");
}

static void a_header_that_is_too_large_is_431(void **state)
{
    (void)state;
    begin(GET);
    put_field(WR_REQUEST_LINE_MAX);
    put("\r\n");
    check_accepted();
    begin(GET);
    put_field(WR_REQUEST_LINE_MAX + 1);
    check_text(text, text_bytes, WR_REQUEST_LINE_LONG, 431);

    for (size_t over = 0; over < 2; over++) {
        begin(GET);
        while (WR_REQUEST_HEAD_MAX - text_bytes > WR_REQUEST_LINE_MAX)
            put_field(8192);
        put_field(WR_REQUEST_HEAD_MAX - 2 - text_bytes + over);
        put("\r\n");
        if (over == 0)
            check_accepted();
        else
            check_text(text, text_bytes, WR_REQUEST_HEAD_LARGE, 431);
    }
    for (int extra = 0; extra < 2; extra++) {
        begin(GET);
        for (int i = 1; i < WR_REQUEST_FIELDS_MAX + extra; i++)
            put("A:\r\n");
        put("\r\n");
        if (extra == 0)
            check_accepted();
        else
            check_text(text, text_bytes, WR_REQUEST_FIELDS, 431);
    }
}

static void framing_bytes_around_chunks_are_bounded(void **state)
{
    (void)state;
    begin(CHUNKED "1;");
    fill(WR_CHUNKS_LINE_MAX);
    check_text(text, text_bytes, WR_REQUEST_CHUNK, 400);
    begin(CHUNKED);
    for (int i = 0; i < WR_REQUEST_FRAMING_MAX / 5 - 2; i++)
        put("1\r\nx\r\n");
    size_t whole = text_bytes;
    put("0\r\n\r\n");
    check_accepted();
    text_bytes = whole;
    for (int i = 0; i < 4; i++)
        put("1\r\nx\r\n");
    check_text(text, text_bytes, WR_REQUEST_FRAMING, 400);
    for (size_t over = 0; over < 2; over++) {
        begin(CHUNKED "0\r\n");
        put_field(WR_REQUEST_TRAILER_MAX - 2 + over);
        put("\r\n");
        if (over == 0)
            check_accepted();
        else
            check_text(text, text_bytes, WR_REQUEST_TRAILER_LARGE, 431);
    }
}

static void every_refusal_has_a_status_and_a_reason(void **state)
{
    (void)state;
    static const int statuses[] = {400, 413, 414, 417, 431, 501, 505};

    for (int fault = WR_REQUEST_OK + 1; fault < WR_REQUEST_FAULT_COUNT; fault++) {
        bool is_known = false;
        for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
            is_known = is_known || wr_request_fault_status((enum wr_request_fault)fault) == statuses[i];
        assert_true(is_known);
        assert_true(strlen(wr_request_fault_text((enum wr_request_fault)fault)) > 5);
    }
}

WEIR_TESTS(test(malformed_request_line_is_refused), test(malformed_header_line_of_a_request_is_refused),
           test(request_body_with_an_ambiguous_end_is_refused), test(bad_chunks_and_trailers_are_refused),
           test(a_target_that_is_too_long_is_414), test(a_header_that_is_too_large_is_431),
           test(framing_bytes_around_chunks_are_bounded), test(every_refusal_has_a_status_and_a_reason))
