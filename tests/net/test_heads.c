/* SPDX-License-Identifier: MIT */
/* test_heads.c - response heads that are too large, too many, or ambiguous (A4, A6 - A9, A19,
 * C9). */
#include "net/rig.h"

#define OK "HTTP/1.1 200 OK\r\n"
#define MEMORY_MAX (4L << 20)

/* One server that sends this response, then holds the connection open or closes it. */
struct row {
    struct hostile_step say;
    const char *words; /* text that the error must contain */
};

static void assert_refused(struct net_fixture *rig, const struct hostile_step *say, const char *words)
{
    const struct hostile_step steps[] = {READ, *say, HOLD, END};
    struct got got;

    int port = rig_get_steps(rig, steps, &got);
    if (got.result.end != WR_NET_PROTOCOL || strstr(got.words, words) == NULL)
        fail_msg("\"%.60s\" ended as %s: %s", say->text, wr_net_end_name(got.result.end), got.words);
    assert_int_equal(got.result.blame, WR_NET_BLAME_HOST);
    hostile_await_ended(rig->server, port, 1); /* the connection is closed, not reused */
}

static void assert_all_refused(const struct row *rows, size_t count)
{
    struct net_fixture rig;

    rig_set_up(&rig, rig_options());
    for (size_t i = 0; i < count; i++)
        assert_refused(&rig, &rows[i].say, rows[i].words);
    rig_tear_down(&rig);
}

#define ASSERT_ALL_REFUSED(rows) assert_all_refused(rows, sizeof rows / sizeof rows[0])

/* A4: an endless response head is refused and takes no memory. */
static void endless_response_heads_are_refused_and_take_no_memory(void **state)
{
    static const struct hostile_step lines[] = {
        READ, SAY(OK), REPEAT("X-Line: 0123456789012345678901234567890123456789\r\n", HOSTILE_FOREVER, 0), END};
    static const struct hostile_step line[] = {
        READ, SAY(OK "X: "), REPEAT("0123456789012345678901234567890123456789", HOSTILE_FOREVER, 0), END};
    static const struct hostile_step first[] = {
        READ, SAY("HTTP/1.1 200 "), REPEAT("0123456789012345678901234567890123456789", HOSTILE_FOREVER, 0), END};
    static const struct hostile_step trailer[] = {
        READ, SAY(OK "Transfer-Encoding: chunked\r\n\r\n0\r\n"),
        REPEAT("X-Line: 0123456789012345678901234567890123456789\r\n", HOSTILE_FOREVER, 0), END};
    const struct hostile_step *const cases[] = {lines, line, first, trailer};
    struct net_fixture rig;
    struct got got;

    (void)state;
    rig_set_up(&rig, rig_options());
    rig_memory_mark();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int port = rig_get_steps(&rig, cases[i], &got);
        if (got.result.end != WR_NET_PROTOCOL)
            fail_msg("case %zu: %s", i, got.words);
        assert_true(got.result.head_bytes <= 256 * 1024);
        hostile_await_ended(rig.server, port, 1);
    }
    assert_true(rig_memory_grown() < MEMORY_MAX);
    rig_tear_down(&rig);
}

/* A6: libcurl would decode a gzip transfer coding without being asked. */
static void transfer_coding_other_than_chunked_is_refused(void **state)
{
    static const struct row rows[] = {
        {SAY(OK "Transfer-Encoding: gzip, gzip, gzip, chunked\r\n\r\n"), "Transfer-Encoding"},
        {SAY(OK "Transfer-Encoding: gzip, chunked\r\n\r\n"), "Transfer-Encoding"},
        {SAY(OK "Transfer-Encoding: gzip\r\n\r\n"), "Transfer-Encoding"},
        {SAY(OK "Transfer-Encoding: deflate\r\nTransfer-Encoding: chunked\r\n\r\n"), "Transfer-Encoding"},
    };
    (void)state;
    ASSERT_ALL_REFUSED(rows);
}

/* A6: a thousand content codings are refused like two. */
static void thousand_content_codings_are_refused(void **state)
{
    static const struct hostile_step lines[] = {
        READ, SAY(OK), REPEAT("Content-Encoding: gzip\r\n", 1000, 0), SAY("\r\nhello"), HOLD, END};
    static const struct hostile_step line[] = {
        READ, SAY(OK "Content-Encoding: "), REPEAT("gzip, ", 1000, 0), SAY("\r\n\r\nhello"), HOLD, END};
    struct net_fixture rig;
    struct got got;

    (void)state;
    rig_set_up(&rig, rig_options());
    (void)rig_get_steps(&rig, lines, &got);
    assert_int_equal(got.result.end, WR_NET_CODING);
    (void)rig_get_steps(&rig, line, &got);
    assert_int_equal(got.result.end, WR_NET_CODING);
    rig_tear_down(&rig);
}

/* A7: invalid and contradictory lengths are refused. */
static void invalid_and_contradictory_lengths_are_refused(void **state)
{
    static const struct row rows[] = {
        {SAY(OK "Content-Length: -5\r\n\r\nhello"), ""},
        {SAY(OK "Content-Length: 18446744073709551616\r\n\r\nhello"), "not a number"},
        {SAY(OK "Content-Length: 18446744073709551621\r\n\r\nhello"), "not a number"},
        {SAY(OK "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"), "differ"},
        {SAY(OK "Content-Length: 5, 6\r\n\r\nhello"), "not a number"},
        {SAY(OK "Content-Length: 5 6\r\n\r\nhello"), "not a number"},
        {SAY(OK "Content-Length : 5\r\n\r\nhello"), "malformed"},
        {SAY(OK "Content-Length: five\r\n\r\nhello"), ""},
    };
    (void)state;
    ASSERT_ALL_REFUSED(rows);
}

/* A7: surplus bytes must not be read as the response to the next request. */
static void content_length_that_does_not_match_ends_the_connection(void **state)
{
    static const struct hostile_step more[] = {READ, SAY(OK "Content-Length: 10\r\n\r\nhello"), END};
    static const struct hostile_step less[] = {
        READ, SAY(OK "Content-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"), HOLD, END};
    static const struct hostile_step later[] = {READ,           SAY(OK "Content-Length: 5\r\n\r\nhello"),
                                                PAUSE(30 * MS), SAY(OK "Content-Length: 4\r\n\r\nevil"),
                                                HOLD,           END};
    static const struct hostile_step good[] = {READ, SAY(OK "Content-Length: 4\r\n\r\ngood"), END};
    const struct hostile_step *const cases[] = {less, later};
    struct net_fixture rig;
    struct got got;

    (void)state;
    rig_set_up(&rig, rig_options());
    (void)rig_get_steps(&rig, more, &got);
    assert_int_equal(got.result.end, WR_NET_BROKEN);
    assert_int_equal(got.result.status, 200);
    for (size_t i = 0; i < 2; i++) {
        int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {cases[i], good}});
        rig_get(&rig, rig_url(port), &got);
        assert_string_equal(got.body, "hello");
        /* the surplus bytes have arrived */
        hostile_await_steps(rig.server, port, 0, i == 0 ? 2 : 4);
        rig_get(&rig, rig_url(port), &got);
        assert_string_equal(got.body, "good");
        assert_int_equal(got.result.sends, 1);
        assert_int_equal(hostile_connections(rig.server, port), 2);
    }
    rig_tear_down(&rig);
}

#define CHUNKED OK "Transfer-Encoding: chunked\r\n\r\n"

/* A8: invalid chunks are refused. */
static void invalid_chunks_are_refused(void **state)
{
    static const struct row rows[] = {
        {SAY(OK "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"), "both"},
        {SAY(OK "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n5\r\nhello\r\n0\r\n\r\n"), "both"},
        {SAY(OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
         "Transfer-Encoding"},
        {SAY(OK "Transfer-Encoding:\r\n chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"), "Transfer-Encoding"},
        {SAY(CHUNKED "fffffffffffffffff\r\nhello"), ""},
        {SAY(CHUNKED "ffffffffffffffff\r\nhello"), ""},
        {SAY(CHUNKED "8000000000000000\r\nhello"), ""},
        {SAY(CHUNKED "-1\r\nhello"), ""},
        {SAY(CHUNKED "0x10\r\nabcdefghijklmnop\r\n0\r\n\r\n"), ""},
        {SAY(CHUNKED "\r\nhello"), ""},
        {SAY(CHUNKED "g\r\nhello"), ""},
        {SAY(CHUNKED "5\r\nhelloXX\r\n0\r\n\r\n"), ""},
    };
    (void)state;
    ASSERT_ALL_REFUSED(rows);
}

/* A8: a body without its last chunk is incomplete. */
static void chunks_that_end_too_soon_make_a_broken_response(void **state)
{
    static const struct hostile_step steps[] = {READ, SAY(CHUNKED "5\r\nhello\r\n"), END};
    struct net_fixture rig;
    struct got got;

    (void)state;
    rig_set_up(&rig, rig_options());
    (void)rig_get_steps(&rig, steps, &got);
    assert_int_equal(got.result.end, WR_NET_BROKEN);
    rig_tear_down(&rig);
}

/* A9: an endless series of interim responses is refused. */
static void endless_interim_responses_are_refused(void **state)
{
    static const struct hostile_step few[] = {READ, REPEAT("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", 3, 0),
                                              SAY(OK "Content-Length: 5\r\n\r\nhello"), END};
    static const char *const floods[] = {"HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 102 Processing\r\n\r\n",
                                         "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"};
    struct net_fixture rig;
    struct got got;

    (void)state;
    rig_set_up(&rig, rig_options());
    (void)rig_get_steps(&rig, few, &got);
    assert_int_equal(got.result.end, WR_NET_DONE);
    assert_string_equal(got.fields, "Content-Length: 5\n");
    for (size_t i = 0; i < 3; i++) {
        const struct hostile_step flood = {.what = HOSTILE_SEND, .text = floods[i], .times = HOSTILE_FOREVER};
        assert_refused(&rig, &flood, "interim");
    }
    rig_tear_down(&rig);
}

/* A19: bytes that are no HTTP response are refused. */
static void response_that_is_not_http_is_refused(void **state)
{
    static const struct row rows[] = {
        {SAY("<html>hello</html>\r\n"), "HTTP/0.9"},
        {SAY("ICY 200 OK\r\nicy-name: x\r\n\r\n"), ""},
        {SAY("\x16\x03\x01\x00\xff\x80\x00\n\n\x7f"), ""},
        {SAY("HTTP/1.1 998 Denied\r\n\r\n"), "status line"},
        {SAY("HTTP/1.1 000 None\r\n\r\n"), ""},
        {SAY("HTTP/1.1 99 None\r\n\r\n"), ""},
        {SAY("HTTP/9.9 200 OK\r\n\r\n"), ""},
        {SAY("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"), "status line"},
        {SAY("SSH-2.0-OpenSSH_9.2\r\n"), ""},
        {SAY(OK "no colon\r\n\r\n"), ""},
        {SAY(OK "A: b\0c\r\n\r\n"), ""},
        {SAY(OK "A: b\r\n c\0d\r\n\r\n"), ""},
        {SAY("HTTP/1.1 200\0OK\r\n\r\n"), ""},
        {SAY("HTTP/1.1 200 O\0K\r\n\r\n"), ""},
    };
    (void)state;
    ASSERT_ALL_REFUSED(rows);
}

/* C9: folded fields are joined and malformed fields are dropped. */
static void odd_fields_are_joined_or_dropped_and_never_split(void **state)
{
    static const struct hostile_step steps[] = {
        READ,
        SAY("HTTP/1.1 200 OK\r\ncOnTeNt-LeNgTh: 5\r\nA: 1\r\n 2\r\n\t3\r\nB : 4\r\n"
            "C: 5\rD: 6\r\nE F: 7\r\nG:8\r\n\r\nhello"),
        END};
    struct net_fixture rig;
    struct got got;

    (void)state;
    rig_set_up(&rig, rig_options());
    (void)rig_get_steps(&rig, steps, &got);
    assert_int_equal(got.result.end, WR_NET_DONE);
    assert_string_equal(got.fields, "cOnTeNt-LeNgTh: 5\nA: 1 2 3\nB: 4\nG: 8\n");
    assert_string_equal(got.body, "hello");
    rig_tear_down(&rig);
}

/* The bare head is for archives: it holds no fields of the caller, which may be secret. */
static void bare_request_head_omits_the_fields_of_the_caller(void **state)
{
    static const struct wr_net_field fields[] = {{{"Authorization", 13}, {"Bearer x", 8}}, {{"accept", 6}, {"y", 1}}};
    char memory[WR_URL_ROOM], text[512];
    struct wr_url url;
    struct wr_buf buf;
    struct net_fixture rig;

    (void)state;
    rig_set_up(&rig, rig_options());
    assert_int_equal(wr_url_parse(wr_span_of("http://u:p@a.example/b?c#d"), NULL, NULL, memory, sizeof memory, &url),
                     WR_URL_OK);
    const struct wr_net_request request = {.url = &url, .fields = fields, .field_count = 2, .etag = {"\"a\"", 3}};
    wr_buf_init_fixed(&buf, text, sizeof text);
    wr_net_append_head(&buf, rig.net, &request, true);
    assert_string_equal(text, "GET /b?c HTTP/1.1\r\nHost: a.example\r\nUser-Agent: weir-test/1\r\n"
                              "Accept-Encoding: deflate, gzip, br, zstd\r\nIf-None-Match: \"a\"\r\n\r\n");
    rig_tear_down(&rig);
}

static void response_head_lines_are_reported_as_received(void **state)
{
    static const struct hostile_step steps[] = {
        READ,
        SAY("HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 Fine\r\nx-ODD:  1 \r\nTransfer-Encoding: chunked\r\n\r\n"
            "1\r\nh\r\n0\r\nT: u\r\n\r\n"),
        AGAIN, END};
    struct net_fixture rig;
    struct got got;

    (void)state;
    rig_set_up(&rig, rig_options());
    (void)rig_get_steps(&rig, steps, &got);
    assert_string_equal(got.lines, "HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 Fine\r\nx-ODD:  1 \r\n"
                                   "Transfer-Encoding: chunked\r\n\r\n");
    rig_tear_down(&rig);
}

WEIR_TESTS(test(bare_request_head_omits_the_fields_of_the_caller), test(response_head_lines_are_reported_as_received),
           test(endless_response_heads_are_refused_and_take_no_memory),
           test(transfer_coding_other_than_chunked_is_refused), test(thousand_content_codings_are_refused),
           test(invalid_and_contradictory_lengths_are_refused),
           test(content_length_that_does_not_match_ends_the_connection), test(invalid_chunks_are_refused),
           test(chunks_that_end_too_soon_make_a_broken_response), test(endless_interim_responses_are_refused),
           test(response_that_is_not_http_is_refused), test(odd_fields_are_joined_or_dropped_and_never_split))
