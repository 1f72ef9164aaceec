/* SPDX-License-Identifier: MIT */
/* test_request.c - tests accepted requests: their parsed values, and that the pieces in which they
 * arrive do not matter. */
#include "request_rig.h"

#include "base/rng.h"

#define HOST "Host: weir\r\n"

struct row {
    const char *text;
    enum wr_request_method method;
    const char *target;
    int minor;
    const char *host, *body;
    bool keeps, waits;
    size_t unread;
};

static const struct row rows[] = {
    {"GET / HTTP/1.1\r\n" HOST "\r\n", WR_METHOD_GET, "/", 1, "weir", "", true, false, 0},
    {"GET /check?a=b HTTP/1.0\r\n\r\n", WR_METHOD_GET, "/check?a=b", 0, "", "", false, false, 0},
    {"\r\nHEAD //x/%20?| HTTP/1.1\r\nhOST:[::1]:80\r\n\r\n", WR_METHOD_HEAD, "//x/%20?|", 1, "[::1]:80", "", true,
     false, 0},
    {"OPTIONS / HTTP/1.1\r\nHost:\r\n\r\n", WR_METHOD_OPTIONS, "/", 1, "", "", true, false, 0},
    {"PATCH / HTTP/1.1\r\n" HOST "\r\nGET", WR_METHOD_PATCH, "/", 1, "weir", "", true, false, 3},
    {"PUT / HTTP/1.1\r\n" HOST "Connection: x, Close\r\n\r\n", WR_METHOD_PUT, "/", 1, "weir", "", false, false, 0},
    {"DELETE / HTTP/1.1\r\n" HOST "Connection: closed,\tclose-\r\n\r\n", WR_METHOD_DELETE, "/", 1, "weir", "", true,
     false, 0},
    {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", WR_METHOD_GET, "/", 0, "", "", true, false, 0},
    {"GET / HTTP/1.0\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n", WR_METHOD_GET, "/", 0, "", "", false,
     false, 0},
    {"POST /v1/try HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhelloGET", WR_METHOD_POST, "/v1/try", 1, "weir",
     "hello", true, false, 3},
    {"POST / HTTP/1.1\r\n" HOST "content-length: \t005 \r\nX: \xe4\t\r\n\r\nhello", WR_METHOD_POST, "/", 1, "weir",
     "hello", true, false, 0},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\nExpect: 100-continue\r\n\r\n", WR_METHOD_POST, "/", 1, "weir", "",
     true, false, 0},
    {"POST / HTTP/1.0\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\nab", WR_METHOD_POST, "/", 0, "", "ab", false,
     false, 0},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n2;x=y\r\n, \r\n0\r\n\r\nPOST",
     WR_METHOD_POST, "/", 1, "weir", "hello, ", true, false, 4},
    {"POST / HTTP/1.1\r\n" HOST "transfer-encoding: Chunked\r\n\r\n1\r\na\r\n0\r\nA: b\r\nContent-Length:9\r\n\r\n\r\n",
     WR_METHOD_POST, "/", 1, "weir", "a", true, false, 2},
};

/* Returns whether the client waits for 100 Continue. This is known before the body. */
static bool waits(const char *text)
{
    struct wr_request request;

    wr_request_init(&request);
    assert_int_equal(wr_request_head(&request, wr_span_of(text)), WR_REQUEST_HEAD);
    return wr_request_expects_continue(&request);
}

static void check(const struct request_fixture *rig, const struct row *row)
{
    assert_int_equal(rig->request.fault, WR_REQUEST_OK);
    assert_int_equal(rig->step, WR_REQUEST_END);
    assert_int_equal(rig->request.method, row->method);
    assert_int_equal(rig->request.minor, row->minor);
    assert_true(wr_span_is(wr_request_target(&rig->request), row->target));
    assert_true(wr_span_is(wr_request_span(&rig->request, rig->request.host), row->host));
    assert_int_equal(rig->body_bytes, strlen(row->body));
    assert_memory_equal(rig->body, row->body, rig->body_bytes);
    assert_int_equal(wr_request_keeps_alive(&rig->request), row->keeps);
    assert_int_equal(rig->taken, strlen(row->text) - row->unread);
}

static void valid_requests_are_parsed_as_meant(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct request_fixture rig = rig_read_whole(rows[i].text, strlen(rows[i].text));
        check(&rig, &rows[i]);
        assert_int_equal(waits(rows[i].text), rows[i].waits);
    }
}

static void a_request_cut_anywhere_is_the_same_request(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t bytes = strlen(rows[i].text);
        struct request_fixture single = rig_read_single(rows[i].text, bytes);
        check(&single, &rows[i]);
        for (size_t a = 0; a < bytes; a++)
            for (size_t b = a; b < bytes; b++) {
                struct request_fixture rig = rig_read(rows[i].text, bytes, (size_t[]){a, b}, 2);
                check(&rig, &rows[i]);
            }
    }
}

static void expect_100_continue_is_known_before_the_body(void **state)
{
    (void)state;
    assert_true(waits("POST / HTTP/1.1\r\n" HOST "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\n"));
    assert_true(waits("POST / HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n"));
    assert_false(waits("POST / HTTP/1.1\r\n" HOST "Expect: 100-continue\r\n\r\n"));
    assert_false(waits("POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\n"));
    assert_false(waits("POST / HTTP/1.0\r\n" HOST "Expect: 100-continue\r\nContent-Length: 1\r\n\r\n"));
}

static void fields_are_found_by_name_in_their_order(void **state)
{
    (void)state;
    static const char text[] =
        "GET / HTTP/1.1\r\nX-A: 1\r\n" HOST "x-a:2 \r\nX-AB: 3\r\nX-Empty:\r\nX-a: \t4\t4 \r\n\r\n";
    struct request_fixture rig = rig_read_whole(text, strlen(text));
    struct wr_span value = {"untouched", 9};
    uint32_t cursor = 0;

    assert_int_equal(rig.request.field_count, 6);
    assert_true(wr_request_find(&rig.request, "X-A", &cursor, &value) && wr_span_is(value, "1"));
    assert_true(wr_request_find(&rig.request, "X-A", &cursor, &value) && wr_span_is(value, "2"));
    assert_true(wr_request_find(&rig.request, "X-A", &cursor, &value) && wr_span_is(value, "4\t4"));
    assert_false(wr_request_find(&rig.request, "X-A", &cursor, &value));
    cursor = 0;
    assert_false(wr_request_find(&rig.request, "X", &cursor, &value));
    assert_true(wr_span_is(value, "4\t4"));
    cursor = 0;
    assert_true(wr_request_find(&rig.request, "x-EMPTY", &cursor, &value) && wr_span_is(value, ""));
}

static void pipelined_requests_follow_each_other(void **state)
{
    (void)state;
    struct wr_span text = wr_span_of("POST /1 HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc"
                                     "POST /2 HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1\r\nz\r\n0\r\n\r\n"
                                     "\r\nGET /3 HTTP/1.1\r\n" HOST "\r\n"
                                     "GET /4 HTTP/1.1\r\n" HOST "\r\n");
    for (char number = '1'; number <= '4'; number++) {
        struct request_fixture rig = rig_read_whole(text.data, text.bytes);
        assert_int_equal(rig.step, WR_REQUEST_END);
        assert_int_equal(wr_request_target(&rig.request).data[1], number);
        text = wr_span_after(text, rig.taken);
    }
    assert_int_equal(text.bytes, 0);
}

static void request_head_may_move_in_memory_while_it_arrives(void **state)
{
    (void)state;
    static const char text[] = "GET /moved HTTP/1.1\r\n" HOST "\r\n";
    char here[64], there[64];
    struct wr_request request;

    memcpy(here, text, sizeof text);
    memcpy(there, text, sizeof text);
    wr_request_init(&request);
    assert_int_equal(wr_request_head(&request, (struct wr_span){here, 25}), WR_REQUEST_MORE);
    memset(here, 'x', sizeof here);
    assert_int_equal(wr_request_head(&request, wr_span_of(there)), WR_REQUEST_HEAD);
    assert_true(wr_span_is(wr_request_target(&request), "/moved"));
    assert_ptr_equal(wr_request_target(&request).data, there + 4);
    assert_int_equal(wr_request_head(&request, wr_span_of(text)), WR_REQUEST_HEAD);
    assert_ptr_equal(wr_request_target(&request).data, text + 4);
}

static void large_request_body_is_parsed_in_any_pieces(void **state)
{
    (void)state;
    static char text[WR_REQUEST_BODY_MAX + 128];
    int head =
        snprintf(text, sizeof text, "POST / HTTP/1.1\r\n" HOST "Content-Length: %d\r\n\r\n", WR_REQUEST_BODY_MAX);
    size_t bytes = (size_t)head + WR_REQUEST_BODY_MAX, cuts[40];
    struct wr_rng rng;

    wr_rng_init(&rng, weir_test_seed());
    memset(text + head, 'b', WR_REQUEST_BODY_MAX);
    for (int round = 0; round < 20; round++) {
        size_t at = 0;
        for (size_t i = 0; i < 40; i++)
            cuts[i] = at += (size_t)wr_rng_below(&rng, bytes / 40);
        struct request_fixture rig = rig_read(text, bytes, cuts, 40);
        assert_int_equal(rig.step, WR_REQUEST_END);
        assert_int_equal(rig.body_bytes, WR_REQUEST_BODY_MAX);
        assert_int_equal(rig.taken, bytes);
    }
}

WEIR_TESTS(test(valid_requests_are_parsed_as_meant), test(a_request_cut_anywhere_is_the_same_request),
           test(expect_100_continue_is_known_before_the_body), test(fields_are_found_by_name_in_their_order),
           test(pipelined_requests_follow_each_other), test(request_head_may_move_in_memory_while_it_arrives),
           test(large_request_body_is_parsed_in_any_pieces))
