/* SPDX-License-Identifier: MIT */
/* test_plain.c - requests as they are sent, and responses of servers that behave well. */
#include "net/rig.h"

#define HELLO "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Odd: a\r\n\r\nhello"

static const struct hostile_step hello[] = {READ, SAY(HELLO), AGAIN, END};

static int listen_hello(struct net_fixture *rig)
{
    return hostile_listen(rig->server, &(struct hostile_case){.steps = {hello}});
}

static void assert_hello(const struct got *got)
{
    if (got->result.end != WR_NET_DONE)
        fail_msg("%s", got->words);
    assert_int_equal(got->result.status, 200);
    assert_string_equal(got->body, "hello");
}

static void response_is_reported_in_order_and_completely(void **state)
{
    struct net_fixture rig;
    struct got got;
    struct hostile_request request;

    (void)state;
    rig_set_up(&rig, rig_options());
    int port = rig_get_steps(&rig, hello, &got);
    assert_hello(&got);
    assert_string_equal(got.fields, "Content-Length: 5\nX-Odd: a\n");
    assert_int_equal(got.result.sends, 1);
    assert_int_equal(got.result.port, port);
    assert_int_equal(got.result.version, 11);
    assert_int_equal(got.result.body_bytes, 5);
    assert_int_equal(got.result.wire_bytes, 5);
    assert_int_equal(got.result.address.bytes[12], 127);
    assert_false(got.result.is_reused || got.result.is_truncated);
    assert_true(got.result.asked_at <= got.result.resolved_at && got.result.resolved_at <= got.result.sent_at);
    assert_true(got.result.sent_at <= got.result.first_byte_at && got.result.first_byte_at <= got.result.done_at);
    assert_true(hostile_request(rig.server, port, 0, &request));
    assert_true(strncmp(request.text, "GET / HTTP/1.1\r\n", 16) == 0);
    assert_non_null(strstr(request.text, "\r\nUser-Agent: weir-test/1\r\n"));
    assert_non_null(strstr(request.text, "\r\nAccept-Encoding: deflate, gzip, br, zstd\r\n"));
    assert_null(strstr(request.text, "Cookie"));
    assert_true(got.result.resolved_at <= got.sent_at[0] && got.sent_at[0] <= request.at);
    rig_tear_down(&rig);
}

/* F3: on a new connection and on a reused one. */
static void late_request_is_reported_with_its_time(void **state)
{
    struct net_fixture rig;

    (void)state;
    rig_set_up(&rig, rig_options());
    int port = listen_hello(&rig);
    for (int i = 0; i < 2; i++) {
        struct got got = {.pauses_ns = 60 * MS};
        assert_int_equal(rig_try(&rig, rig_url(port), &(struct wr_net_request){0}, &got), 0);
        rig_run(&rig);
        assert_hello(&got);
        assert_int_equal(got.result.is_reused, i > 0);
        assert_true(got.lates > 0); /* more than once if the machine stalls as well */
        assert_true(got.late_at >= got.sent_at[0] + 60 * MS);
        assert_true(got.result.sent_at <= got.result.first_byte_at && got.late_at <= got.result.done_at);
    }
    rig_tear_down(&rig);
}

static void connection_is_reused_unless_the_request_was_the_last(void **state)
{
    struct net_fixture rig;
    struct got got[4];

    (void)state;
    rig_set_up(&rig, rig_options());
    int port = listen_hello(&rig);
    for (int i = 0; i < 3; i++) {
        rig_get(&rig, rig_url(port), &got[i]);
        assert_hello(&got[i]);
        assert_int_equal(got[i].result.is_reused, i > 0);
        assert_int_equal(got[i].result.port, port);
    }
    assert_int_equal(hostile_connections(rig.server, port), 1);
    memset(&got[3], 0, sizeof got[3]);
    assert_int_equal(rig_try(&rig, rig_url(port), &(struct wr_net_request){.is_last = true}, &got[3]), 0);
    rig_run(&rig);
    assert_hello(&got[3]);
    hostile_await_ended(rig.server, port, 1);
    rig_get(&rig, rig_url(port), &got[0]);
    rig_get(&rig, rig_url(port), &got[1]); /* is_last applied to that request only */
    assert_true(got[1].result.is_reused);
    assert_int_equal(hostile_connections(rig.server, port), 2);
    rig_tear_down(&rig);
}

/* V10: user, password and fragment of a URL are not sent. */
static void user_and_fragment_of_a_url_are_not_sent(void **state)
{
    struct net_fixture rig;
    struct got got;
    struct hostile_request request;

    (void)state;
    rig_set_up(&rig, rig_options());
    int port = listen_hello(&rig);
    rig_get(&rig, rig_url_of("http", "user:secret@127.0.0.1", port, "/a/../b?c=%20d#e"), &got);
    assert_hello(&got);
    assert_true(hostile_request(rig.server, port, 0, &request));
    assert_true(strncmp(request.text, "GET /b?c=%20d HTTP/1.1\r\n", 24) == 0);
    assert_null(strstr(request.text, "secret"));
    assert_null(strstr(request.text, "Authorization"));
    rig_tear_down(&rig);
}

static void own_fields_and_validators_are_sent(void **state)
{
    static const struct wr_net_field fields[] = {
        {{"Authorization", 13}, {"Bearer x", 8}},
        {{"X-Empty", 7}, {NULL, 0}},
        {{"Accept", 6}, {"text/html", 9}},
    };
    struct net_fixture rig;
    struct got got;
    struct hostile_request request;

    (void)state;
    rig_set_up(&rig, rig_options());
    int port = listen_hello(&rig);
    memset(&got, 0, sizeof got);
    assert_int_equal(rig_try(&rig, rig_url(port),
                             &(struct wr_net_request){.fields = fields,
                                                      .field_count = 3,
                                                      .etag = wr_span_of("\"a\\\"b\""),
                                                      .last_modified = wr_span_of("Thu, 01 Jan 1970 00:00:00 GMT")},
                             &got),
                     0);
    rig_run(&rig);
    assert_hello(&got);
    rig_get(&rig, rig_url(port), &got);
    assert_true(hostile_request(rig.server, port, 0, &request));
    assert_non_null(strstr(request.text, "\r\nAuthorization: Bearer x\r\n"));
    assert_non_null(strstr(request.text, "\r\nX-Empty:\r\n"));
    assert_non_null(strstr(request.text, "\r\nAccept: text/html\r\n"));
    assert_non_null(strstr(request.text, "\r\nIf-None-Match: \"a\\\"b\"\r\n"));
    assert_non_null(strstr(request.text, "\r\nIf-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT\r\n"));
    /* the next request has none of these fields */
    assert_true(hostile_request(rig.server, port, 1, &request));
    assert_null(strstr(request.text, "Bearer"));
    assert_null(strstr(request.text, "If-"));
    rig_tear_down(&rig);
}

/* C11: a validator that is too long or has line breaks is not sent. */
static void invalid_validators_are_not_sent(void **state)
{
    static char long_one[1 << 20];
    struct net_fixture rig;
    struct got got;
    struct hostile_request request;

    (void)state;
    memset(long_one, 'x', sizeof long_one);
    rig_set_up(&rig, rig_options());
    int port = listen_hello(&rig);
    memset(&got, 0, sizeof got);
    assert_int_equal(rig_try(&rig, rig_url(port),
                             &(struct wr_net_request){.etag = {long_one, sizeof long_one},
                                                      .last_modified = wr_span_of("x\r\nEvil: 1")},
                             &got),
                     0);
    rig_run(&rig);
    assert_hello(&got);
    assert_true(hostile_request(rig.server, port, 0, &request));
    assert_null(strstr(request.text, "If-"));
    assert_null(strstr(request.text, "Evil"));
    rig_tear_down(&rig);
}

/* C10: fields, methods and agents that would inject a line are refused. */
static void request_fields_that_would_inject_lines_are_refused(void **state)
{
    static const struct wr_net_field bad[] = {
        {{"X", 1}, {"a\r\nEvil: 1", 10}},
        {{"X", 1}, {"a\nb", 3}},
        {{"X", 1}, {"a\0b", 3}},
        {{"X: 1\r\nY", 7}, {"a", 1}},
        {{"X Y", 3}, {"a", 1}},
        {{"", 0}, {"a", 1}},
        {{"X:", 2}, {"a", 1}},
        {{"X", 1}, {"\x7f", 1}},
        {{"Host", 4}, {"evil", 4}},
        {{"content-length", 14}, {"5", 1}},
        {{"Transfer-Encoding", 17}, {"chunked", 7}},
    };
    static const char *const methods[] = {"GE T", "GET\r\nX: y", "", "CONNECT"};
    struct net_fixture rig;
    struct got got = {.rig = NULL};
    struct wr_net *net;

    (void)state;
    rig_set_up(&rig, rig_options());
    int port = listen_hello(&rig);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(
            rig_try(&rig, rig_url(port), &(struct wr_net_request){.fields = &bad[i], .field_count = 1}, &got),
            WEIR_E_INVAL);
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        assert_int_equal(rig_try(&rig, rig_url(port), &(struct wr_net_request){.method = methods[i]}, &got),
                         WEIR_E_INVAL);
    assert_int_equal(rig_try(&rig, rig_url(port), &(struct wr_net_request){.body = {"x", 1}}, &got), WEIR_E_INVAL);
    struct wr_net_options options = rig_options();
    options.loop = &rig.loop;
    options.resolver = rig.resolver;
    options.agent = "weir\r\nEvil: 1";
    assert_int_equal(wr_net_new(&options, &net), WEIR_E_INVAL);
    rig_run(&rig);
    assert_false(got.is_done);
    assert_int_equal(hostile_connections(rig.server, port), 0);
    rig_tear_down(&rig);
}

static void method_and_body_apply_to_their_request_only(void **state)
{
    static const struct hostile_step steps[] = {
        READ, SAY("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), READ, SAY(HELLO), READ, SAY(HELLO), READ, SAY(HELLO),
        END};
    static const struct wr_net_request requests[] = {
        {.method = "HEAD"}, {.method = "POST", .body = {"a=b\0c", 5}}, {.method = "DELETE"}, {.method = "GET"}};
    static const char *const begins[] = {"HEAD / ", "POST / ", "DELETE / ", "GET / "};
    /* unless libcurl sends everything, it sends POST and DELETE on a connection of its own */
    bool is_one_way = rig_options().uses_libcurl_only;
    struct net_fixture rig;
    struct got got;
    struct hostile_request request;

    (void)state;
    rig_set_up(&rig, rig_options());
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {steps, hello}});
    for (int i = 0; i < 4; i++) {
        memset(&got, 0, sizeof got);
        assert_int_equal(rig_try(&rig, rig_url(port), &requests[i], &got), 0);
        rig_run(&rig);
        assert_int_equal(got.result.end, WR_NET_DONE);
        assert_int_equal(got.body_bytes, i == 0 ? 0 : 5);
        assert_true(hostile_request(rig.server, port, i, &request));
        assert_true(strncmp(request.text, begins[i], strlen(begins[i])) == 0);
        assert_int_equal(strstr(request.text, "\r\nContent-Length: 5\r\n") != NULL, i == 1);
        assert_null(strstr(request.text, "Expect"));
        assert_int_equal(request.connection, is_one_way || i == 0 || i == 3 ? 0 : 1);
    }
    rig_tear_down(&rig);
}

static void caller_may_refuse_the_body_or_the_rest_of_it(void **state)
{
    struct net_fixture rig;
    struct got got;

    (void)state;
    rig_set_up(&rig, rig_options());
    int port = listen_hello(&rig);
    memset(&got, 0, sizeof got);
    got.wants_no_body = true;
    rig_start(&rig, rig_url(port), &got);
    rig_run(&rig);
    assert_int_equal(got.result.end, WR_NET_DONE);
    assert_int_equal(got.result.status, 200);
    assert_true(got.result.is_truncated);
    assert_int_equal(got.body_bytes, 0);
    memset(&got, 0, sizeof got);
    got.stop_after = 3;
    rig_start(&rig, rig_url(port), &got);
    rig_run(&rig);
    assert_int_equal(got.result.end, WR_NET_DONE);
    assert_true(got.result.is_truncated);
    /* a connection with unread bytes is not reused */
    assert_int_equal(hostile_connections(rig.server, port), 2);
    rig_tear_down(&rig);
}

static void names_are_resolved_by_weir_and_cached(void **state)
{
    struct net_fixture rig;
    struct got got;
    struct hostile_request request;
    char host[64];

    (void)state;
    rig_set_up(&rig, rig_options());
    rig.names[0] = (struct rig_name){"site.example", {"127.0.0.1"}};
    rig.names[1] = (struct rig_name){"site.example.", {"127.0.0.1"}};
    rig.names[2] = (struct rig_name){"xn--bcher-kva.example", {"127.0.0.1"}};
    rig.names[3] = (struct rig_name){"localhost", {"127.0.0.1"}};
    int port = listen_hello(&rig);
    for (int i = 0; i < 2; i++) {
        rig_get(&rig, rig_url_of("http", "SITE.example", port, "/"), &got);
        assert_hello(&got);
    }
    assert_int_equal(rig.lookups, 1);
    assert_true(hostile_request(rig.server, port, 0, &request));
    snprintf(host, sizeof host, "\r\nHost: site.example:%d\r\n", port);
    assert_non_null(strstr(request.text, host));
    rig_get(&rig, rig_url_of("http", "site.example.", port, "/"), &got); /* D4: a trailing dot */
    assert_hello(&got);
    rig_get(&rig, rig_url_of("http", "b\303\274cher.example", port, "/"), &got);
    assert_hello(&got);
    rig_get(&rig, rig_url_of("http", "localhost", port, "/"), &got);
    assert_hello(&got);
    assert_int_equal(rig.lookups, 4);
    rig_get(&rig, "http://absent.example/", &got);
    assert_int_equal(got.result.end, WR_NET_NO_NAME);
    assert_int_equal(got.result.retry, WR_NET_NEVER);
    rig_get(&rig, "http://failing.example/", &got);
    assert_int_equal(got.result.end, WR_NET_NAME_FAILED);
    assert_int_equal(got.result.retry, WR_NET_LATER);
    assert_int_equal(got.result.sends, 0);
    rig_tear_down(&rig);
}

static void addresses_in_every_spelling_need_no_lookup(void **state)
{
    static const char *const hosts[] = {"127.0.0.1",          "127.1",     "0x7f000001", "2130706433",
                                        "[::ffff:127.0.0.1]", "127.0.0.1."};
    struct net_fixture rig;
    struct got got;

    (void)state;
    rig_set_up(&rig, rig_options());
    int port = listen_hello(&rig);
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        rig_get(&rig, rig_url_of("http", hosts[i], port, "/"), &got);
        assert_hello(&got);
    }
    int port6 = hostile_listen(rig.server, &(struct hostile_case){.steps = {hello}, .address = "::1"});
    for (int i = 0; i < 2; i++) {
        rig_get(&rig, rig_url_of("http", "[::1]", port6, "/"), &got);
        assert_hello(&got);
    }
    assert_int_equal(hostile_connections(rig.server, port6), 1);
    assert_int_equal(rig.lookups, 0);
    rig_tear_down(&rig);
}

static void many_hosts_share_few_handles_and_keep_their_own_connections(void **state)
{
    struct net_fixture rig;
    struct got got[8];
    struct hostile_request request;
    char name[32];

    (void)state;
    rig_set_up(&rig, rig_options());
    int port = listen_hello(&rig);
    for (int i = 0; i < 8; i++) {
        static const char *const names[] = {"h0.example", "h1.example", "h2.example", "h3.example",
                                            "h4.example", "h5.example", "h6.example", "h7.example"};
        rig.names[i] = (struct rig_name){names[i], {"127.0.0.1"}};
    }
    for (int round = 0; round < 5; round++) {
        memset(got, 0, sizeof got);
        for (int i = 0; i < 8; i++) {
            snprintf(name, sizeof name, "h%d.example", (i + round) % 8);
            rig_start(&rig, rig_url_of("http", name, port, "/"), &got[i]);
        }
        rig_run(&rig);
        for (int i = 0; i < 8; i++)
            assert_hello(&got[i]);
    }
    assert_int_equal(rig.lookups, 8);
    assert_int_equal(hostile_requests(rig.server, port), 40);
    assert_int_equal(hostile_connections(rig.server, port), 8);
    assert_true(hostile_request(rig.server, port, 39, &request));
    rig_tear_down(&rig);
}

/* The proxy variables of the environment do not apply to the net. */
static void proxy_environment_variables_are_ignored(void **state)
{
    struct net_fixture rig;
    struct got got;

    (void)state;
    assert_int_equal(setenv("http_proxy", "http://127.0.0.1:1/", 1), 0);
    assert_int_equal(setenv("all_proxy", "http://127.0.0.1:1/", 1), 0);
    rig_set_up(&rig, rig_options());
    rig_get(&rig, rig_url(listen_hello(&rig)), &got);
    assert_hello(&got);
    rig_tear_down(&rig);
    assert_int_equal(unsetenv("http_proxy"), 0);
    assert_int_equal(unsetenv("all_proxy"), 0);
}

/* A14: the net stores no cookies, so that no cookie can be too wide, too many or too large. */
static void cookies_are_not_kept(void **state)
{
    static const struct hostile_step sets[] = {READ,
                                               SAY("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"),
                                               REPEAT("Set-Cookie: a=b; Domain=example; Path=/\r\n", 1000, 0),
                                               SAY("\r\nhello"),
                                               AGAIN,
                                               END};
    struct net_fixture rig;
    struct got got;
    struct hostile_request request;

    (void)state;
    rig_set_up(&rig, rig_options());
    rig.names[0] = (struct rig_name){"site.example", {"127.0.0.1"}};
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {sets}});
    for (int i = 0; i < 2; i++) {
        rig_get(&rig, rig_url_of("http", "site.example", port, "/"), &got);
        assert_hello(&got);
    }
    assert_true(hostile_request(rig.server, port, 1, &request));
    assert_null(strstr(request.text, "Cookie"));
    rig_tear_down(&rig);
}

WEIR_TESTS(test(cookies_are_not_kept), test(response_is_reported_in_order_and_completely),
           test(late_request_is_reported_with_its_time), test(connection_is_reused_unless_the_request_was_the_last),
           test(user_and_fragment_of_a_url_are_not_sent), test(own_fields_and_validators_are_sent),
           test(invalid_validators_are_not_sent), test(request_fields_that_would_inject_lines_are_refused),
           test(method_and_body_apply_to_their_request_only), test(caller_may_refuse_the_body_or_the_rest_of_it),
           test(names_are_resolved_by_weir_and_cached), test(addresses_in_every_spelling_need_no_lookup),
           test(many_hosts_share_few_handles_and_keep_their_own_connections),
           test(proxy_environment_variables_are_ignored))
