/* SPDX-License-Identifier: MIT */
/* test_http1.c - the direct HTTP/1.1 path gives the same results as libcurl; and its own
 * connections. */
#include "net/rig.h"

#include "http/net/net_internal.h"

#include <sys/socket.h>
#include <zlib.h>

#define OK "HTTP/1.1 200 OK\r\n"
#define HELLO OK "Content-Length: 5\r\n\r\nhello"

static const struct hostile_step hello[] = {READ, SAY(HELLO), AGAIN, END};

/* ---- the direct path and libcurl ------------------------------------------------------------- */

/* A response and its bytes. The server then keeps the connection or closes it. */
struct answer {
    const char *text;
    size_t bytes;
    const char *method;
    bool is_closed;
    /* libcurl 8.14 misses "close" after another token and keeps the connection */
    bool may_libcurl_reuse;
};

#define ANSWER(literal) .text = (literal), .bytes = sizeof(literal) - 1
/* 25 bytes */
#define GZIP_HELLO \
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\x07\x00\x86\xa6\x10\x36\x05\x00\x00\x00"
#define ZLIB_HELLO "\x78\x9c\xcb\x48\xcd\xc9\xc9\x07\x00\x06\x2c\x02\x15" /* 13 bytes */
#define RAW_HELLO "\xcb\x48\xcd\xc9\xc9\x07\x00"                          /* 7 bytes */
#define BR_HELLO "\x0b\x02\x80hello\x03"                                  /* 9 bytes */
#define ZSTD_HELLO "\x28\xb5\x2f\xfd\x20\x05\x29\x00\x00hello"            /* 14 bytes */

static const struct answer answers[] = {
    {ANSWER(HELLO)},
    {ANSWER(OK "Content-Length: 0\r\n\r\n")},
    {ANSWER(OK "Connection: close\r\nContent-Length: 5\r\n\r\nhello")},
    {ANSWER(OK "Connection: x, Close\r\nContent-Length: 5\r\n\r\nhello"), .may_libcurl_reuse = true},
    {ANSWER(OK "Connection: keep-alive\r\nContent-Length: 5\r\n\r\nhello")},
    {ANSWER("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello")},
    {ANSWER("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 5\r\n\r\nhello")},
    {ANSWER("HTTP/1.0 200 OK\r\n\r\nhello"), .is_closed = true},
    {ANSWER(OK "\r\nhello"), .is_closed = true},
    {ANSWER(OK "\r\n"), .is_closed = true},
    {ANSWER("HTTP/1.1 200\nContent-Length: 5\n\nhello")},
    {ANSWER("HTTP/1.1 404 Not Found\r\nX: y\r\nContent-Length: 5\r\n\r\nhello")},
    {ANSWER("HTTP/1.1 204 No Content\r\n\r\n")},
    {ANSWER("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n")},
    {ANSWER("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nETag: \"x\"\r\n\r\n")},
    {ANSWER(OK "Content-Length: 5\r\n\r\n"), .method = "HEAD"},
    {ANSWER(OK "Transfer-Encoding: chunked\r\n\r\n"), .method = "HEAD"},
    {ANSWER(OK "Content-Encoding: gzip\r\n\r\n"), .method = "HEAD"},
    {ANSWER("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n" HELLO)},
    {ANSWER(OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")},
    {ANSWER(OK "Transfer-Encoding: chunked\r\n\r\n1;a=b\r\nh\r\n004 \r\nello\r\n0\r\nX: y\r\n\r\n")},
    {ANSWER(OK "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")},
    {ANSWER(OK "Transfer-Encoding: identity\r\n\r\nhello"), .is_closed = true},
    {ANSWER(OK "Content-Encoding: gzip\r\nContent-Length: 25\r\n\r\n" GZIP_HELLO)},
    {ANSWER(OK "Content-Encoding: X-GZIP\r\n\r\n" GZIP_HELLO), .is_closed = true},
    {ANSWER(OK "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n19\r\n" GZIP_HELLO "\r\n0\r\n\r\n")},
    {ANSWER(OK "Content-Encoding: gzip\r\nContent-Length: 20\r\n\r\n\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"
               "\xcb\x48\xcd\xc9\xc9\x07\x00\x86\xa6\x10")}, /* cut inside the gzip trailer */
    {ANSWER(OK "Content-Encoding: gzip\r\nContent-Length: 0\r\n\r\n")},
    {ANSWER(OK "Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello")},
    {ANSWER(OK "Content-Encoding: deflate\r\nContent-Length: 13\r\n\r\n" ZLIB_HELLO)},
    {ANSWER(OK "Content-Encoding: deflate\r\nContent-Length: 7\r\n\r\n" RAW_HELLO)},
    {ANSWER(OK "Content-Encoding: br\r\nContent-Length: 9\r\n\r\n" BR_HELLO)},
    {ANSWER(OK "Content-Encoding: br\r\nContent-Length: 5\r\n\r\n\xff\xff\xff\xff\xff")},
    {ANSWER(OK "Content-Encoding: zstd\r\nContent-Length: 14\r\n\r\n" ZSTD_HELLO)},
    {ANSWER(OK "Content-Encoding: zstd\r\nContent-Length: 5\r\n\r\nhello")},
    {ANSWER(OK "Content-Encoding: identity, gzip\r\nContent-Length: 25\r\n\r\n" GZIP_HELLO)},
    {ANSWER(OK "Content-Encoding: unheard-of\r\nContent-Length: 5\r\n\r\nhello")},
    {ANSWER(OK "Content-Length: 6\r\n\r\nhello"), .is_closed = true},
    {ANSWER(OK "Content-Le"), .is_closed = true},
    {ANSWER("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n")},
    {ANSWER("")},
};

/* Results of two requests in a row by one of the two paths. */
struct outcome {
    struct got first, second;
    int connections;
};

static void get_twice(const struct answer *answer, bool by_libcurl, size_t piece, struct outcome *ret_outcome)
{
    static struct hostile_step steps[256];
    struct wr_net_options options = rig_options();
    struct wr_net_request request = {.method = answer->method};
    struct got *const gots[] = {&ret_outcome->first, &ret_outcome->second};
    struct net_fixture rig;
    size_t count = 1;

    steps[0] = (struct hostile_step)READ;
    for (size_t at = 0; at < answer->bytes; at += piece)
        steps[count++] = (struct hostile_step){.what = HOSTILE_SEND,
                                               .text = answer->text + at,
                                               .bytes = answer->bytes - at < piece ? answer->bytes - at : piece,
                                               .pause_ns = piece < answer->bytes ? 200000 : 0};
    steps[count++] =
        (struct hostile_step){.what = answer->is_closed || answer->bytes == 0 ? HOSTILE_END : HOSTILE_AGAIN};
    steps[count] = (struct hostile_step)END;
    options.uses_libcurl_only = by_libcurl;
    rig_set_up(&rig, options);
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {steps}});
    memset(ret_outcome, 0, sizeof *ret_outcome);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rig_try(&rig, rig_url(port), &request, gots[i]), 0);
        rig_run(&rig);
    }
    ret_outcome->connections = hostile_connections(rig.server, port);
    rig_tear_down(&rig);
}

/* Returns true if both results are equal. The wire bytes of an aborted body depend on timing and
 * are not compared. */
static bool is_same(const struct got *a, const struct got *b)
{
    bool is_done = a->result.end == WR_NET_DONE;

    return a->result.end == b->result.end && a->result.retry == b->result.retry && a->result.blame == b->result.blame &&
           a->result.status == b->result.status && a->result.version == b->result.version &&
           a->result.is_truncated == b->result.is_truncated && a->result.sends == b->result.sends &&
           a->result.is_reused == b->result.is_reused && (!is_done || a->result.wire_bytes == b->result.wire_bytes) &&
           a->result.body_bytes == b->result.body_bytes && a->heads == b->heads && strcmp(a->fields, b->fields) == 0 &&
           strcmp(a->body, b->body) == 0 && (!is_done || strcmp(a->lines, b->lines) == 0);
}

static void assert_both_ways(size_t i, size_t piece)
{
    static struct outcome http1, curl;

    get_twice(&answers[i], false, piece, &http1);
    get_twice(&answers[i], true, piece, &curl);
    bool is_reused = answers[i].may_libcurl_reuse && http1.connections == 2 && curl.connections == 1;
    if (!is_same(&http1.first, &curl.first) ||
        (!is_reused && (!is_same(&http1.second, &curl.second) || http1.connections != curl.connections)))
        fail_msg("answer %zu by %zu: \"%.40s…\": %s, \"%s\", version %d, wire %d, %d sends, %d connections; by libcurl "
                 "%s, \"%s\", version %d, wire %d, %d sends, %d connections",
                 i, piece, answers[i].text, http1.first.words, http1.first.body, http1.first.result.version,
                 (int)http1.first.result.wire_bytes, (int)http1.second.result.sends, http1.connections,
                 curl.first.words, curl.first.body, curl.first.result.version, (int)curl.first.result.wire_bytes,
                 (int)curl.second.result.sends, curl.connections);
}

static void response_is_the_same_with_and_without_libcurl(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
        assert_both_ways(i, 1 << 20);
}

static void response_in_small_pieces_is_the_same_with_and_without_libcurl(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
        assert_both_ways(i, 1);
}

/* The direct path and libcurl send the same bytes. */
static void request_is_the_same_with_and_without_libcurl(void **state)
{
    static const struct wr_net_field fields[] = {
        {{"X-Empty", 7}, {NULL, 0}}, {{"accept", 6}, {"text/html", 9}}, {{"Authorization", 13}, {"Bearer x", 8}}};
    static const struct wr_net_field agent[] = {{{"User-Agent", 10}, {"me", 2}}, {{"Accept-Encoding", 15}, {"br", 2}}};
    static const struct wr_net_request requests[] = {
        {.method = NULL},
        {.fields = fields, .field_count = 3},
        {.fields = agent, .field_count = 2, .etag = {"\"a\"", 3}, .last_modified = {"x", 1}},
    };
    struct hostile_request by[2];
    struct net_fixture rig;
    struct got got;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        for (int way = 0; way < 2; way++) {
            struct wr_net_options options = rig_options();
            options.uses_libcurl_only = way == 1;
            rig_set_up(&rig, options);
            rig.names[0] = (struct rig_name){"site.example.", {"127.0.0.1"}};
            int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {hello}});
            memset(&got, 0, sizeof got);
            const char *url = rig_url_of("http", "user@SITE.example.", port, "/a/../b;c?d=%20&e#f");
            assert_int_equal(rig_try(&rig, url, &requests[i], &got), 0);
            rig_run(&rig);
            assert_int_equal(got.result.end, WR_NET_DONE);
            assert_true(hostile_request(rig.server, port, 0, &by[way]));
            rig_tear_down(&rig);
            /* hides the port, which differs between the runs */
            char *number = strstr(by[way].text, "site.example.:");
            assert_non_null(number);
            memset(number + strlen("site.example.:"), '0', strspn(number + strlen("site.example.:"), "0123456789"));
        }
        assert_string_equal(by[0].text, by[1].text);
    }
}

/* ---- the direct path only -------------------------------------------------------------------- */

/* A request that fails on a dead reused connection is resent once, on a new connection. If that one
 * dies, too, the transfer fails. */
static void request_is_resent_at_most_once(void **state)
{
    static const struct hostile_step dies[] = {READ, SAY(HELLO), READ, END};
    static const struct hostile_step dead[] = {READ, END};
    struct net_fixture rig;
    struct got got;

    (void)state;
    rig_set_up(&rig, rig_options());
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {dies, dead}});
    rig_get(&rig, rig_url(port), &got);
    rig_get(&rig, rig_url(port), &got);
    assert_int_equal(got.result.end, WR_NET_BROKEN);
    assert_int_equal(got.result.sends, 2);
    assert_int_equal(got.sends, 2);
    assert_false(got.result.is_reused);
    assert_int_equal(hostile_requests(rig.server, port), 3);
    rig_tear_down(&rig);
}

/* The resend does not use another idle connection, which may be dead, too: a server that stops
 * closes all at once. */
static void resent_request_uses_a_new_connection(void **state)
{
    static const struct hostile_step dies[] = {READ, SAY(HELLO), READ, END};
    struct net_fixture rig;
    struct got got[2], next;

    (void)state;
    rig_set_up(&rig, rig_options());
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {dies, dies, hello}});
    memset(got, 0, sizeof got);
    for (int i = 0; i < 2; i++)
        rig_start(&rig, rig_url(port), &got[i]);
    rig_run(&rig);
    assert_int_equal(hostile_connections(rig.server, port), 2);
    rig_get(&rig, rig_url(port), &next);
    assert_int_equal(next.result.end, WR_NET_DONE);
    assert_int_equal(next.result.sends, 2);
    assert_int_equal(hostile_connections(rig.server, port), 3);
    rig_tear_down(&rig);
}

/* The server has seen the request: a byte of the response had arrived. */
static void partly_answered_request_is_not_resent(void **state)
{
    static const struct hostile_step breaks[] = {READ, SAY(HELLO), READ, SAY("H"), END};
    struct net_fixture rig;
    struct got got;

    (void)state;
    rig_set_up(&rig, rig_options());
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {breaks, hello}});
    rig_get(&rig, rig_url(port), &got);
    rig_get(&rig, rig_url(port), &got);
    assert_int_equal(got.result.end, WR_NET_BROKEN);
    assert_int_equal(got.result.sends, 1);
    assert_int_equal(hostile_connections(rig.server, port), 1);
    rig_tear_down(&rig);
}

/* A refusal by the gate does not close an idle connection. */
static void refusal_by_the_gate_does_not_close_an_idle_connection(void **state)
{
    struct net_fixture rig;
    struct got got;

    (void)state;
    rig_set_up(&rig, rig_options());
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {hello}});
    rig_get(&rig, rig_url(port), &got);
    memset(&got, 0, sizeof got);
    got.refuse_from = 1;
    rig_start(&rig, rig_url(port), &got);
    rig_run(&rig);
    assert_int_equal(got.result.end, WR_NET_REFUSED);
    assert_int_equal(got.result.sends, 0);
    rig_get(&rig, rig_url(port), &got);
    assert_true(got.result.is_reused);
    assert_int_equal(hostile_connections(rig.server, port), 1);
    rig_tear_down(&rig);
}

static void connection_idle_for_too_long_is_not_reused(void **state)
{
    struct wr_net_options options = rig_options();
    weir_clock *clock = fake_clock();
    struct net_fixture rig;
    struct got got;

    (void)state;
    options.idle_ns = WEIR_SECOND;
    options.clock = clock;
    rig_set_up(&rig, options);
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {hello}});
    rig_get(&rig, rig_url(port), &got);
    advance(clock, WEIR_SECOND);
    rig_get(&rig, rig_url(port), &got);
    assert_true(got.result.is_reused);
    advance(clock, WEIR_SECOND + 1);
    rig_get(&rig, rig_url(port), &got);
    assert_int_equal(got.result.end, WR_NET_DONE);
    assert_false(got.result.is_reused);
    assert_int_equal(hostile_connections(rig.server, port), 2);
    rig_tear_down(&rig);
    weir_clock_fake_free(clock);
}

static enum wr_guard_class first_only(void *context, const struct wr_address *address)
{
    return address->bytes[15] == *(const int *)context ? WR_GUARD_PUBLIC : WR_GUARD_PRIVATE;
}

/* D5: an idle connection is not reused if its address is no longer allowed. */
static void connection_to_an_address_no_longer_allowed_is_not_reused(void **state)
{
    struct wr_net_options options = rig_options();
    int allowed = 1;
    struct net_fixture rig;
    struct got got;

    (void)state;
    options.allow_private = false;
    options.judge = first_only;
    options.judge_context = &allowed;
    rig_set_up(&rig, options);
    rig.names[0] = (struct rig_name){"site.example", {"127.0.0.1 127.0.0.2"}};
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {hello}});
    rig_get(&rig, rig_url_of("http", "site.example", port, "/"), &got);
    assert_int_equal(got.result.end, WR_NET_DONE);
    allowed = 2;
    rig_get(&rig, rig_url_of("http", "site.example", port, "/"), &got);
    assert_int_equal(got.result.end, WR_NET_CONNECT); /* no server listens at 127.0.0.2 */
    assert_int_equal(hostile_requests(rig.server, port), 1);
    rig_tear_down(&rig);
}

/* V6: transfers beyond the limit of connections wait for one, in order. */
static void transfers_wait_for_a_connection(void **state)
{
    static const struct hostile_step slow[] = {READ, PAUSE(5 * MS), SAY(HELLO), AGAIN, END};
    struct wr_net_options options = rig_options();
    struct wr_net_stats stats;
    struct net_fixture rig;
    struct got *got = calloc(16, sizeof *got);

    (void)state;
    assert_non_null(got);
    options.connections_max = 2;
    rig_set_up(&rig, options);
    rig.names[0] = (struct rig_name){"site.example", {"127.0.0.1"}};
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {slow}});
    for (int i = 0; i < 16; i++)
        rig_start(&rig, rig_url_of("http", i % 3 == 0 ? "site.example" : "127.0.0.1", port, "/"), &got[i]);
    do {
        rig_turn(&rig);
        wr_net_stats(rig.net, &stats);
        assert_true(stats.connections <= 2);
    } while (stats.transfers > 0);
    for (int i = 0; i < 16; i++)
        assert_int_equal(got[i].result.end, WR_NET_DONE);
    rig_tear_down(&rig);
    free(got);
}

/* V6: the direct path and libcurl share one limit of connections. An idle connection of one path is
 * closed for the other. */
static void direct_path_and_libcurl_share_the_connection_limit(void **state)
{
    struct wr_net_options options = rig_options();
    struct wr_net_stats stats;
    struct net_fixture rig;
    struct got got;

    (void)state;
    options.connections_max = 3;
    rig_set_up(&rig, options);
    for (int i = 0; i < 24; i++) {
        int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {hello}});
        memset(&got, 0, sizeof got);
        assert_int_equal(
            rig_try(&rig, rig_url(port), &(struct wr_net_request){.method = i % 5 < 3 ? "GET" : "POST"}, &got), 0);
        while (!got.is_done) {
            rig_turn(&rig);
            wr_net_stats(rig.net, &stats);
            assert_true(stats.connections <= 3);
        }
        if (got.result.end != WR_NET_DONE)
            fail_msg("request %d: %s", i, got.words);
    }
    rig_tear_down(&rig);
}

/* The send buffer of the socket is smaller than the request. */
static void large_request_is_sent_in_parts(void **state)
{
    static const struct hostile_step slow[] = {READ, SAY(HELLO), PAUSE(50 * MS), AGAIN, END};
    static char large[900000];
    const struct wr_net_field field = {{"X-Large", 7}, {large, sizeof large}};
    struct wr_net_options options = rig_options();
    struct hostile_request request;
    const int small = 4096;
    struct net_fixture rig;
    struct got got;

    (void)state;
    memset(large, 'x', sizeof large);
    rig_set_up(&rig, options);
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {slow}});
    rig_get(&rig, rig_url(port), &got);
    assert_int_equal(setsockopt(rig.net->http1.youngest->fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
    for (int i = 1; i < 3; i++) {
        memset(&got, 0, sizeof got);
        assert_int_equal(
            rig_try(&rig, rig_url(port), &(struct wr_net_request){.fields = &field, .field_count = 1}, &got), 0);
        rig_run(&rig);
        assert_int_equal(got.result.end, WR_NET_DONE);
        assert_true(hostile_request(rig.server, port, i, &request));
        assert_true(request.bytes > sizeof large);
        assert_true(got.result.is_reused);
    }
    rig_tear_down(&rig);
}

/* A compressed body that arrives in pieces decodes to the original. */
static void compressed_body_decodes_to_the_original(void **state)
{
    static const struct {
        const char *name;
        int window_bits;
    } codings[] = {{"gzip", 31}, {"deflate", 15}, {"deflate", -15}};
    static unsigned char plain[200000], packed[220000];
    struct net_fixture rig;
    struct got got;
    char head[128];

    (void)state;
    for (size_t i = 0; i < sizeof plain; i++)
        plain[i] = (unsigned char)(i * i >> 7 ^ i % 251);
    for (size_t i = 0; i < sizeof codings / sizeof codings[0]; i++) {
        z_stream stream = {.next_in = plain, .avail_in = sizeof plain, .next_out = packed, .avail_out = sizeof packed};
        assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, codings[i].window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
        assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
        size_t bytes = sizeof packed - stream.avail_out;
        (void)deflateEnd(&stream);
        (void)snprintf(head, sizeof head, OK "Content-Encoding: %s\r\nContent-Length: %zu\r\n\r\n", codings[i].name,
                       bytes);
        const struct hostile_step steps[] = {
            READ,
            {.what = HOSTILE_SEND, .text = head},
            {.what = HOSTILE_SEND, .text = (const char *)packed, .bytes = 1000, .pause_ns = MS},
            {.what = HOSTILE_SEND, .text = (const char *)packed + 1000, .bytes = bytes - 1000},
            END};
        rig_set_up(&rig, rig_options());
        (void)rig_get_steps(&rig, steps, &got);
        assert_int_equal(got.result.end, WR_NET_DONE);
        assert_int_equal(got.body_bytes, sizeof plain);
        assert_int_equal(got.result.wire_bytes, bytes);
        assert_memory_equal(got.body, plain, GOT_BODY_MAX);
        rig_tear_down(&rig);
    }
}

/* ---- cancelling ------------------------------------------------------------------------------ */

struct canceller {
    struct wr_transfer *other;
    bool is_done;
};

static bool cancel_other(void *context, const struct wr_head *head)
{
    struct canceller *canceller = context;

    (void)head;
    wr_net_cancel(canceller->other);
    return true;
}

static void note_done(void *context, const struct wr_net_result *result)
{
    struct canceller *canceller = context;

    assert_int_equal(result->end, WR_NET_DONE);
    canceller->is_done = true;
}

/* K3: a callback may also cancel a transfer that waits for its connection or its response. */
static void callback_may_cancel_another_transfer(void **state)
{
    static const struct wr_net_callbacks calls = {.on_head = cancel_other, .on_done = note_done};
    static const struct hostile_step silent[] = {READ, HOLD, END};
    char memory[WR_URL_ROOM];
    struct wr_url url;
    struct net_fixture rig;
    struct got got;

    (void)state;
    for (int is_waiting = 0; is_waiting < 2; is_waiting++) {
        struct wr_net_options options = rig_options();
        struct canceller canceller = {.is_done = false};
        struct wr_transfer *transfer;
        options.connections_max = is_waiting ? 1 : 8;
        rig_set_up(&rig, options);
        int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {hello}});
        int other = hostile_listen(rig.server, &(struct hostile_case){.steps = {silent}});
        assert_int_equal(wr_url_parse(wr_span_of(rig_url(port)), NULL, NULL, memory, sizeof memory, &url), WR_URL_OK);
        assert_int_equal(wr_net_start(rig.net, &(struct wr_net_request){.url = &url}, &calls, &canceller, &transfer),
                         0);
        memset(&got, 0, sizeof got);
        rig_start(&rig, rig_url(other), &got);
        canceller.other = got.transfer;
        rig_run(&rig);
        assert_true(canceller.is_done);
        assert_int_equal(got.result.end, WR_NET_CANCELLED);
        rig_tear_down(&rig);
    }
}

/* ---- idle connections ------------------------------------------------------------------------ */

/* Idle connections are found by host, youngest first; the list by age holds all of them. */
static void idle_connections_are_used_youngest_first(void **state)
{
    struct net_fixture rig;
    struct got got[3], next;

    (void)state;
    rig_set_up(&rig, rig_options());
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {hello}});
    memset(got, 0, sizeof got);
    for (int i = 0; i < 3; i++)
        rig_start(&rig, rig_url(port), &got[i]);
    rig_run(&rig);
    assert_int_equal(hostile_connections(rig.server, port), 3);
    assert_true(wr_map_ok(&rig.net->http1.idle));
    const struct wr_http1_conn *youngest = rig.net->http1.youngest, *oldest = rig.net->http1.oldest;
    assert_true(youngest->older->older == oldest && oldest->older == NULL && youngest->next->next == oldest);
    rig_get(&rig, rig_url(port), &next);
    assert_true(next.result.is_reused);
    assert_true(rig.net->http1.youngest == youngest && rig.net->http1.oldest == oldest);
    rig_tear_down(&rig);
}

WEIR_TESTS(test(response_is_the_same_with_and_without_libcurl),
           test(response_in_small_pieces_is_the_same_with_and_without_libcurl),
           test(request_is_the_same_with_and_without_libcurl), test(request_is_resent_at_most_once),
           test(resent_request_uses_a_new_connection), test(partly_answered_request_is_not_resent),
           test(refusal_by_the_gate_does_not_close_an_idle_connection),
           test(connection_idle_for_too_long_is_not_reused),
           test(connection_to_an_address_no_longer_allowed_is_not_reused), test(transfers_wait_for_a_connection),
           test(direct_path_and_libcurl_share_the_connection_limit), test(large_request_is_sent_in_parts),
           test(compressed_body_decodes_to_the_original), test(callback_may_cancel_another_transfer),
           test(idle_connections_are_used_youngest_first))
