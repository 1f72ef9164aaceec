/* SPDX-License-Identifier: MIT */
/* test_breaks.c - broken connections and resent requests (A18; R20: every wire request passes the
 * gate). */
#include "net/rig.h"

#define OK "HTTP/1.1 200 OK\r\n"
#define HELLO OK "Content-Length: 5\r\n\r\nhello"

/* A18: a truncated response is not reported as complete. */
static void connection_that_breaks_early_gives_no_complete_response(void **state)
{
    static const struct hostile_step before[] = {READ, RESET, END};
    static const struct hostile_step closed[] = {READ, END};
    static const struct hostile_step in_head[] = {READ, SAY(OK "Content-Le"), PAUSE(20 * MS), RESET, END};
    static const struct hostile_step in_body[] = {READ, SAY(OK "Content-Length: 5\r\n\r\nhel"), PAUSE(20 * MS), RESET,
                                                  END};
    static const struct hostile_step in_chunk[] = {READ, SAY(OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhel"),
                                                   PAUSE(20 * MS), RESET, END};
    static const struct hostile_step in_rest[] = {READ, SAY(OK "\r\nhel"), PAUSE(20 * MS), RESET, END};
    const struct hostile_step *const cases[] = {before, closed, in_head, in_body, in_chunk, in_rest};
    struct net_fixture rig;
    struct got got;

    (void)state;
    rig_set_up(&rig, rig_options());
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int port = rig_get_steps(&rig, cases[i], &got);
        if (got.result.end != WR_NET_BROKEN)
            fail_msg("case %zu: %s", i, got.words);
        assert_int_equal(got.result.retry, WR_NET_LATER);
        assert_int_equal(got.result.blame, WR_NET_BLAME_HOST);
        /* net does not let libcurl retry */
        assert_int_equal(hostile_connections(rig.server, port), 1);
        assert_int_equal(got.result.sends, got.sends);
    }
    rig_tear_down(&rig);
}

static void reset_after_the_last_byte_does_no_harm(void **state)
{
    static const struct hostile_step resets[] = {READ, SAY(HELLO), PAUSE(20 * MS), RESET, END};
    static const struct hostile_step good[] = {READ, SAY(HELLO), END};
    struct net_fixture rig;
    struct got got;

    (void)state;
    rig_set_up(&rig, rig_options());
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {resets, good}});
    rig_get(&rig, rig_url(port), &got);
    assert_int_equal(got.result.end, WR_NET_DONE);
    assert_string_equal(got.body, "hello");
    hostile_await_ended(rig.server, port, 1);
    rig_get(&rig, rig_url(port), &got);
    assert_int_equal(got.result.end, WR_NET_DONE);
    /* the closed connection was noticed before it was used */
    assert_int_equal(got.result.sends, 1);
    rig_tear_down(&rig);
}

/* A18: a request that changes state is not sent twice. */
static void request_that_must_not_be_repeated_is_not_resent(void **state)
{
    static const struct hostile_step breaks[] = {READ, RESET, END};
    struct net_fixture rig;
    struct got got;

    (void)state;
    rig_set_up(&rig, rig_options());
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {breaks}});
    memset(&got, 0, sizeof got);
    assert_int_equal(rig_try(&rig, rig_url(port), &(struct wr_net_request){.method = "POST", .body = {"x", 1}}, &got),
                     0);
    rig_run(&rig);
    assert_int_equal(got.result.end, WR_NET_BROKEN);
    assert_int_equal(got.result.retry, WR_NET_NEVER);
    rig_get(&rig, rig_url(hostile_refuse(rig.server)), &got);
    memset(&got, 0, sizeof got);
    assert_int_equal(
        rig_try(&rig, rig_url(hostile_refuse(rig.server)), &(struct wr_net_request){.method = "POST"}, &got), 0);
    rig_run(&rig);
    assert_int_equal(got.result.end, WR_NET_CONNECT);
    assert_int_equal(got.result.retry, WR_NET_LATER); /* no byte of the request was sent */
    rig_tear_down(&rig);
}

/* ---- a reused connection that dies while the request is sent: the request is resent ---------- */

static const struct hostile_step dies[] = {READ, SAY(HELLO), READ, END};
static const struct hostile_step is_reset[] = {READ, SAY(HELLO), READ, RESET, END};
static const struct hostile_step lives[] = {READ, SAY(HELLO), AGAIN, END};

/* Returns a port to which the net has an idle connection that will break at the next request. */
static int warmed_up(struct net_fixture *rig, const struct hostile_step *steps)
{
    struct got got;
    int port = hostile_listen(rig->server, &(struct hostile_case){.steps = {steps, lives}});

    rig_get(rig, rig_url(port), &got);
    assert_int_equal(got.result.end, WR_NET_DONE);
    return port;
}

static void the_gate_is_asked_again_before_a_silent_resend(void **state)
{
    const struct hostile_step *const cases[] = {dies, is_reset};
    struct net_fixture rig;
    struct got got;
    struct hostile_request request;

    (void)state;
    for (size_t n = 0; n < 2; n++) {
        rig_set_up(&rig, rig_options());
        int port = warmed_up(&rig, cases[n]);
        rig_get(&rig, rig_url(port), &got);
        assert_int_equal(got.result.end, WR_NET_DONE);
        assert_int_equal(got.result.sends, 2);
        assert_int_equal(got.sends, 2);
        /* before_send allowed each of them */
        assert_int_equal(hostile_requests(rig.server, port), 3);
        for (int i = 0; i < 2; i++) {
            assert_true(hostile_request(rig.server, port, i + 1, &request));
            assert_int_equal(request.connection, i);
            assert_true(request.at >= got.sent_at[i] && (i > 0 || request.at <= got.sent_at[1]));
        }
        rig_tear_down(&rig);
    }
}

static void resend_that_the_gate_refuses_may_be_retried_for_free(void **state)
{
    struct net_fixture rig;
    struct got got;

    (void)state;
    rig_set_up(&rig, rig_options());
    int port = warmed_up(&rig, dies);
    memset(&got, 0, sizeof got);
    got.refuse_from = 2;
    rig_start(&rig, rig_url(port), &got);
    rig_run(&rig);
    assert_int_equal(got.result.end, WR_NET_REFUSED);
    assert_int_equal(got.result.retry, WR_NET_FREE);
    assert_int_equal(got.result.blame, WR_NET_BLAME_NONE);
    assert_int_equal(got.result.sends, 1);
    assert_int_equal(hostile_requests(rig.server, port), 2);
    rig_get(&rig, rig_url(port), &got);
    assert_int_equal(got.result.end, WR_NET_DONE);
    rig_tear_down(&rig);
}

static void a_post_is_not_resent_silently(void **state)
{
    struct wr_net_options options = rig_options();
    struct net_fixture rig;
    struct got got;

    (void)state;
    options.uses_libcurl_only = true; /* only libcurl reuses connections for a POST */
    rig_set_up(&rig, options);
    int port = warmed_up(&rig, dies);
    memset(&got, 0, sizeof got);
    assert_int_equal(rig_try(&rig, rig_url(port), &(struct wr_net_request){.method = "POST", .body = {"x", 1}}, &got),
                     0);
    rig_run(&rig);
    assert_int_equal(got.result.end, WR_NET_BROKEN);
    assert_int_equal(got.result.retry, WR_NET_NEVER);
    assert_int_equal(got.sends, 1);
    assert_int_equal(hostile_requests(rig.server, port), 2);
    rig_tear_down(&rig);
}

static void first_send_that_the_gate_refuses_writes_nothing(void **state)
{
    struct net_fixture rig;
    struct got got;

    (void)state;
    rig_set_up(&rig, rig_options());
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {lives}});
    memset(&got, 0, sizeof got);
    got.refuse_from = 1;
    rig_start(&rig, rig_url(port), &got);
    rig_run(&rig);
    assert_int_equal(got.result.end, WR_NET_REFUSED);
    assert_int_equal(got.result.retry, WR_NET_FREE);
    assert_int_equal(got.result.sends, 0);
    assert_int_equal(got.result.port, 0);
    hostile_await_ended(rig.server, port, 1);
    assert_int_equal(hostile_requests(rig.server, port), 0);
    rig_tear_down(&rig);
}

WEIR_TESTS(test(connection_that_breaks_early_gives_no_complete_response), test(reset_after_the_last_byte_does_no_harm),
           test(request_that_must_not_be_repeated_is_not_resent), test(the_gate_is_asked_again_before_a_silent_resend),
           test(resend_that_the_gate_refuses_may_be_retried_for_free), test(a_post_is_not_resent_silently),
           test(first_send_that_the_gate_refuses_writes_nothing))
