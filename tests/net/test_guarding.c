/* SPDX-License-Identifier: MIT */
/* test_guarding.c - forbidden addresses are blocked, whatever URL or name leads to them (A12, D4,
 * D5). */
#include "net/rig.h"

static const struct hostile_step hello[] = {READ, SAY("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), AGAIN, END};

static struct wr_net_options guarded(void)
{
    struct wr_net_options options = rig_options();

    options.allow_private = false;
    return options;
}

static void assert_blocked(const struct got *got, enum wr_guard_class class)
{
    if (got->result.end != WR_NET_BLOCKED)
        fail_msg("%s", got->words);
    assert_non_null(strstr(got->words, wr_guard_text(class)));
    assert_int_equal(got->result.retry, WR_NET_NEVER);
    assert_int_equal(got->result.blame, WR_NET_BLAME_NONE);
    assert_int_equal(got->result.sends, 0);
}

/* A12, D4: each spelling of a private address is blocked. */
static void private_addresses_are_blocked_in_every_spelling(void **state)
{
    static const struct {
        const char *host;
        enum wr_guard_class class;
    } rows[] = {
        {"127.0.0.1", WR_GUARD_LOOPBACK},
        {"127.1", WR_GUARD_LOOPBACK},
        {"0x7f000001", WR_GUARD_LOOPBACK},
        {"0177.0.0.1", WR_GUARD_LOOPBACK},
        {"2130706433", WR_GUARD_LOOPBACK},
        {"127.0.0.1.", WR_GUARD_LOOPBACK},
        {"0", WR_GUARD_UNSPECIFIED},
        {"[::1]", WR_GUARD_LOOPBACK},
        {"[::]", WR_GUARD_UNSPECIFIED},
        {"[::ffff:10.0.0.1]", WR_GUARD_PRIVATE},
        {"[::ffff:7f00:1]", WR_GUARD_LOOPBACK},
        {"[64:ff9b::7f00:1]", WR_GUARD_LOOPBACK},
        {"169.254.169.254", WR_GUARD_METADATA},
        {"user@127.0.0.1", WR_GUARD_LOOPBACK},
        {"\357\274\221\357\274\222\357\274\227.1", WR_GUARD_LOOPBACK}, /* full-width digits */
        {"inside.example", WR_GUARD_PRIVATE},
        {"here.example", WR_GUARD_LOOPBACK},
    };
    struct net_fixture rig;
    struct got got;

    (void)state;
    rig_set_up(&rig, guarded());
    rig.names[0] = (struct rig_name){"inside.example", {"192.168.1.1 10.0.0.1"}};
    rig.names[1] = (struct rig_name){"here.example", {"127.0.0.1"}};
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {hello}});
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rig_get(&rig, rig_url_of("http", rows[i].host, port, "/"), &got);
        assert_blocked(&got, rows[i].class);
    }
    assert_int_equal(hostile_connections(rig.server, port), 0);
    rig_tear_down(&rig);
}

/* ---- addresses are checked when the socket is opened ----------------------------------------- */

struct judge {
    int asked;
    int ends_after; /* number of calls that allow the address; later calls block it */
};

static enum wr_guard_class change_mind(void *context, const struct wr_address *address)
{
    struct judge *judge = context;

    (void)address;
    return judge->asked++ < judge->ends_after ? WR_GUARD_PUBLIC : WR_GUARD_PRIVATE;
}

/* D5: an address is checked when its name is resolved and once more when the socket is opened. */
static void connected_address_is_checked_again(void **state)
{
    struct wr_net_options options = guarded();
    struct judge judge = {.ends_after = 1};
    struct net_fixture rig;
    struct got got;

    (void)state;
    options.judge = change_mind;
    options.judge_context = &judge;
    rig_set_up(&rig, options);
    rig.names[0] = (struct rig_name){"site.example", {"127.0.0.1"}};
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {hello}});
    rig_get(&rig, rig_url_of("http", "site.example", port, "/"), &got);
    assert_blocked(&got, WR_GUARD_PRIVATE);
    assert_int_equal(judge.asked, 2);
    judge = (struct judge){.ends_after = 100};
    rig_get(&rig, rig_url_of("http", "site.example", port, "/"), &got);
    assert_int_equal(got.result.end, WR_NET_DONE);
    assert_int_equal(hostile_connections(rig.server, port), 1);
    rig_tear_down(&rig);
}

static enum wr_guard_class only_home(void *context, const struct wr_address *address)
{
    (void)context;
    return address->bytes[12] == 127 ? WR_GUARD_PUBLIC : WR_GUARD_PRIVATE;
}

/* Blocked addresses of a name are skipped. If one of them were tried, the next address would be
 * tried after a delay, and in this test the clock stands still. */
static void name_with_some_blocked_addresses_uses_an_allowed_one(void **state)
{
    struct wr_net_options options = guarded();
    weir_clock *clock = fake_clock();
    struct net_fixture rig;
    struct got got;

    (void)state;
    options.judge = only_home;
    options.clock = clock;
    rig_set_up(&rig, options);
    rig.names[0] = (struct rig_name){"mixed.example", {"10.0.0.1 fd00::1 127.0.0.1 192.168.0.1"}};
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {hello}});
    rig_get(&rig, rig_url_of("http", "mixed.example", port, "/"), &got);
    assert_int_equal(got.result.end, WR_NET_DONE);
    assert_int_equal(got.result.address.bytes[12], 127);
    rig_tear_down(&rig);
    weir_clock_fake_free(clock);
}

/* D5: a resolved address is pinned for as long as it is cached, even if its TTL is shorter. */
static void name_keeps_the_address_that_was_checked(void **state)
{
    struct wr_net_options options = guarded();
    struct net_fixture rig;
    struct got got;

    (void)state;
    options.judge = only_home;
    rig_set_up(&rig, options);
    rig.names[0] = (struct rig_name){"rebinding.example", {"127.0.0.1", "10.0.0.1"}};
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {hello}});
    for (int i = 0; i < 3; i++) {
        memset(&got, 0, sizeof got);
        assert_int_equal(rig_try(&rig, rig_url_of("http", "rebinding.example", port, "/"),
                                 &(struct wr_net_request){.is_last = true}, &got),
                         0);
        rig_run(&rig);
        assert_int_equal(got.result.end, WR_NET_DONE);
        assert_int_equal(got.result.address.bytes[12], 127);
    }
    assert_int_equal(rig.lookups, 1);
    assert_int_equal(hostile_connections(rig.server, port), 3);
    rig_tear_down(&rig);
}

WEIR_TESTS(test(private_addresses_are_blocked_in_every_spelling), test(connected_address_is_checked_again),
           test(name_with_some_blocked_addresses_uses_an_allowed_one), test(name_keeps_the_address_that_was_checked))
