/* SPDX-License-Identifier: MIT */
/* test_flush.c - wr_net_flush sends a queued request at once. */
#include "net/rig.h"

#define HELLO "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

static const struct hostile_step hello[] = {READ, SAY(HELLO), AGAIN, END};

static void flush_sends_at_once_on_a_live_connection(void **state)
{
    static const struct hostile_step closes[] = {READ, SAY(HELLO), END};
    struct net_fixture rig;
    struct got first, second, third;

    (void)state;
    rig_set_up(&rig, rig_options());
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {closes, hello}});
    rig_get(&rig, rig_url(port), &first);
    /* the loop has not noticed the closed connection yet */
    hostile_await_ended(rig.server, port, 1);
    memset(&second, 0, sizeof second);
    rig_start(&rig, rig_url(port), &second);
    wr_net_flush(rig.net);
    rig_run(&rig);
    assert_int_equal(second.result.end, WR_NET_DONE);
    assert_int_equal(second.result.sends, 1);
    assert_int_equal(hostile_connections(rig.server, port), 2);
    memset(&third, 0, sizeof third);
    rig_start(&rig, rig_url(port), &third);
    assert_int_equal(third.sends, 0);
    wr_net_flush(rig.net);
    assert_int_equal(third.sends, 1);
    rig_run(&rig);
    assert_int_equal(third.result.end, WR_NET_DONE);
    assert_true(third.result.is_reused);
    rig_tear_down(&rig);
}

WEIR_TESTS(test(flush_sends_at_once_on_a_live_connection))
