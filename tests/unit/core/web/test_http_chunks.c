/* SPDX-License-Identifier: MIT */
/* test_http_chunks.c - tests chunked bodies that every parser reads alike, and those that are
 * refused (A8). */
#include "lib/test.h"

#include "core/web/http/chunks.h"

/* Result of reading a text in pieces of `each` bytes: the body, and the step at which it ended. */
struct read {
    enum wr_chunks_step step;
    char body[256];
    size_t body_bytes, unread;
};

static struct read read_in_pieces(const char *text, size_t bytes, size_t each)
{
    struct read read = {.step = WR_CHUNKS_MORE};
    struct wr_chunks chunks;

    wr_chunks_init(&chunks);
    for (size_t at = 0; at < bytes && read.step == WR_CHUNKS_MORE; at += each) {
        struct wr_span rest = {text + at, bytes - at < each ? bytes - at : each}, piece;
        while ((read.step = wr_chunks_next(&chunks, &rest, &piece)) == WR_CHUNKS_BODY) {
            assert_true(piece.bytes > 0);
            memcpy(read.body + read.body_bytes, piece.data, piece.bytes);
            read.body_bytes += piece.bytes;
        }
        read.unread = rest.bytes + (bytes - at < each ? 0 : bytes - at - each);
    }
    return read;
}

struct row {
    const char *text;
    enum wr_chunks_step step;
    const char *body;
    size_t unread;
};

static const struct row rows[] = {
    {"5\r\nhello\r\n0\r\n\r\n", WR_CHUNKS_LAST, "hello", 2},
    {"5\r\nhello\r\n7\r\n, world\r\n0\r\nA: b\r\n\r\nX", WR_CHUNKS_LAST, "hello, world", 9},
    {"00000005\r\nhello\r\n0000\r\n", WR_CHUNKS_LAST, "hello", 0},
    {"A\r\n0123456789\r\n", WR_CHUNKS_MORE, "0123456789", 0},
    {"a\r\n0123456789\r\n", WR_CHUNKS_MORE, "0123456789", 0},
    {"2 \t\r\nab\r\n0 \r\n", WR_CHUNKS_LAST, "ab", 0},
    {"2;a=b;c=\"d\xc3\xa4\t\"\r\nab\r\n0 ;x\r\n", WR_CHUNKS_LAST, "ab", 0},
    {"0\r\n\r\n", WR_CHUNKS_LAST, "", 2},
    {"5\r\nhel", WR_CHUNKS_MORE, "hel", 0},
    {"7fffffffffffffff\r\nhel", WR_CHUNKS_MORE, "hel", 0},
    {"8000000000000000\r\nhel", WR_CHUNKS_BAD, "", 5},
    {"ffffffffffffffff\r\nhel", WR_CHUNKS_BAD, "", 5},
    {"10000000000000005\r\nhello", WR_CHUNKS_BAD, "", 7},
    {"00000000000000005\r\nhello", WR_CHUNKS_BAD, "", 7},
    {"\r\nhello", WR_CHUNKS_BAD, "", 6},
    {"-1\r\nhello", WR_CHUNKS_BAD, "", 8},
    {"+1\r\nh", WR_CHUNKS_BAD, "", 4},
    {" 1\r\nh", WR_CHUNKS_BAD, "", 4},
    {"0x1\r\nh", WR_CHUNKS_BAD, "", 4},
    {"g\r\n", WR_CHUNKS_BAD, "", 2},
    {"1 1\r\n", WR_CHUNKS_BAD, "", 2},
    {";a\r\n", WR_CHUNKS_BAD, "", 3},
    {"1\nh\r\n", WR_CHUNKS_BAD, "", 3},
    {"1\rh\r\n", WR_CHUNKS_BAD, "", 2},
    {"1;a\nh\r\n", WR_CHUNKS_BAD, "", 3},
    {"1;\x7f\r\nh", WR_CHUNKS_BAD, "", 3},
    {"1\r\nh\n0\r\n", WR_CHUNKS_BAD, "h", 3},
    {"1\r\nhX\r\n0\r\n", WR_CHUNKS_BAD, "h", 5},
    {"1\r\nh\r0\r\n", WR_CHUNKS_BAD, "h", 2},
};

static void a_body_is_the_same_however_it_is_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t each = 1; each <= 40; each++) {
            struct read read = read_in_pieces(rows[i].text, strlen(rows[i].text), each);
            if (read.step != rows[i].step || strcmp(read.body, rows[i].body) != 0 || read.unread != rows[i].unread)
                fail_msg("row %zu by %zu: step %d, \"%s\", %zu unread", i, each, read.step, read.body, read.unread);
        }
}

static void line_of_a_chunk_size_is_bounded(void **state)
{
    char text[WR_CHUNKS_LINE_MAX + 8];

    (void)state;
    for (size_t more = 0; more < 2; more++) {
        size_t line = WR_CHUNKS_LINE_MAX + more; /* "1;xxx...\r\n" */
        memset(text, 'x', sizeof text);
        memcpy(text, "1;", 2);
        memcpy(text + line - 2, "\r\n", 2);
        struct read read = read_in_pieces(text, line + 1, 7);
        assert_int_equal(read.step, more == 0 ? WR_CHUNKS_MORE : WR_CHUNKS_BAD);
        assert_int_equal(read.body_bytes, more == 0 ? 1 : 0);
    }
}

static void bytes_after_the_last_chunk_are_not_read(void **state)
{
    struct wr_chunks chunks;
    struct wr_span piece, last = wr_span_of("0\r\nA: b\r\n"), bad = wr_span_of("xyz");

    (void)state;
    wr_chunks_init(&chunks);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(wr_chunks_next(&chunks, &last, &piece), WR_CHUNKS_LAST);
        assert_int_equal(last.bytes, 6);
    }
    wr_chunks_init(&chunks);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(wr_chunks_next(&chunks, &bad, &piece), WR_CHUNKS_BAD);
        assert_int_equal(bad.bytes, 2);
    }
}

WEIR_TESTS(test(a_body_is_the_same_however_it_is_cut), test(line_of_a_chunk_size_is_bounded),
           test(bytes_after_the_last_chunk_are_not_read))
