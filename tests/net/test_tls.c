/* SPDX-License-Identifier: MIT */
/* test_tls.c - certificates, failing handshakes (A17), and HTTP/2 if both sides support it. */
#include "net/rig.h"

#include "lib/hostile_tls.h"
#include "limiter/clock/clock.h"

#include <unistd.h>

static const struct hostile_step hello[] = {READ, SAY("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), AGAIN, END};

static char authority[] = "/tmp/weir-authority-XXXXXX";

static void remove_authority(void)
{
    (void)unlink(authority);
}

/* Returns options of a net that trusts the test certificate authority. */
static struct wr_net_options trusting(void)
{
    struct wr_net_options options = rig_options();

    if (strstr(authority, "XXXXXX") != NULL) {
        int fd = mkstemp(authority);
        assert_true(fd >= 0);
        (void)close(fd);
        (void)atexit(remove_authority);
        hostile_tls_write_authority(authority);
    }
    options.ca_file = authority;
    return options;
}

/* Returns options with short limits for servers that never stop: otherwise the test would not
 * end. */
static struct wr_net_options hasty(void)
{
    struct wr_net_options options = trusting();

    options.first_byte_ns = options.speed_ns = WEIR_SECOND;
    options.speed_min = 1000;
    options.total_ns = 3 * WEIR_SECOND;
    return options;
}

static void name_localhost(struct net_fixture *rig)
{
    rig->names[0] = (struct rig_name){"localhost", {"127.0.0.1"}};
}

static int get_tls(struct net_fixture *rig, const struct hostile_tls *tls, const struct hostile_step *steps,
                   struct got *ret_got)
{
    int port = hostile_listen(rig->server, &(struct hostile_case){.steps = {steps}, .tls = tls});

    rig_get(rig, rig_url_of("https", "localhost", port, "/"), ret_got);
    return port;
}

static void server_with_a_valid_certificate_is_trusted(void **state)
{
    struct hostile_tls tls;
    struct net_fixture rig;
    struct got got;

    (void)state;
    hostile_tls_init(&tls, HOSTILE_GOOD, NULL, false);
    rig_set_up(&rig, trusting());
    name_localhost(&rig);
    int port = get_tls(&rig, &tls, hello, &got);
    if (got.result.end != WR_NET_DONE)
        fail_msg("%s", got.words);
    assert_string_equal(got.body, "hello");
    assert_int_equal(got.result.version, 11);
    rig_get(&rig, rig_url_of("https", "localhost", port, "/"), &got);
    assert_true(got.result.is_reused);
    /* the certificate names this address, too */
    rig_get(&rig, rig_url_of("https", "127.0.0.1", port, "/"), &got);
    assert_int_equal(got.result.end, WR_NET_DONE);
    rig_tear_down(&rig);
    hostile_tls_release(&tls);
}

/* A17: a wrong certificate is refused before any request is sent, and the error says why. */
static void wrong_certificate_ends_the_transfer(void **state)
{
    static const struct {
        enum hostile_certificate kind;
        const char *words;
    } rows[] = {
        {HOSTILE_SELF_SIGNED, "self"},
        {HOSTILE_EXPIRED, "expired"},
        {HOSTILE_OTHER_HOST, "matches target host"},
        {HOSTILE_LONG_CHAIN, ""},
    };
    struct hostile_tls tls;
    struct net_fixture rig;
    struct got got;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        hostile_tls_init(&tls, rows[i].kind, NULL, false);
        rig_set_up(&rig, trusting());
        name_localhost(&rig);
        int port = get_tls(&rig, &tls, hello, &got);
        if (got.result.end != WR_NET_TLS || strstr(got.words, rows[i].words) == NULL)
            fail_msg("row %zu: %s", i, got.words);
        assert_int_equal(got.result.blame, WR_NET_BLAME_HOST);
        assert_int_equal(got.result.sends, 0);
        /* no request is sent before the server is authenticated */
        assert_int_equal(hostile_requests(rig.server, port), 0);
        rig_tear_down(&rig);
        hostile_tls_release(&tls);
    }
}

static void certificate_of_an_unknown_authority_is_refused(void **state)
{
    struct wr_net_options options = trusting();
    struct hostile_tls tls;
    struct net_fixture rig;
    struct got got;

    (void)state;
    options.ca_file = NULL;
    hostile_tls_init(&tls, HOSTILE_GOOD, NULL, false);
    rig_set_up(&rig, options);
    name_localhost(&rig);
    (void)get_tls(&rig, &tls, hello, &got);
    assert_int_equal(got.result.end, WR_NET_TLS);
    assert_int_equal(got.result.retry, WR_NET_NEVER);
    rig_tear_down(&rig);
    hostile_tls_release(&tls);
}

/* A17: a handshake that stalls, breaks or is plain text fails. */
static void handshake_that_stalls_breaks_or_is_plain_text_fails(void **state)
{
    static const struct hostile_step stalls[] = {HOLD, GREET, END};
    static const struct hostile_step plain[] = {SAY("HTTP/1.1 400 Speak plainly\r\n\r\n"), HOLD, GREET, END};
    static const struct hostile_step breaks[] = {SIP, RESET, GREET, END};
    struct wr_net_options options = trusting();
    struct hostile_tls tls;
    struct net_fixture rig;
    struct got got;

    (void)state;
    options.connect_ns = 300 * MS;
    hostile_tls_init(&tls, HOSTILE_GOOD, NULL, false);
    rig_set_up(&rig, options);
    name_localhost(&rig);
    int port = get_tls(&rig, &tls, stalls, &got);
    assert_int_equal(got.result.end, WR_NET_CONNECT_TIMEOUT);
    hostile_await_ended(rig.server, port, 1);
    rig_tear_down(&rig);
    rig_set_up(&rig, trusting());
    name_localhost(&rig);
    (void)get_tls(&rig, &tls, plain, &got);
    assert_int_equal(got.result.end, WR_NET_TLS);
    (void)get_tls(&rig, &tls, breaks, &got);
    assert_int_equal(got.result.end, WR_NET_TLS);
    assert_int_equal(got.result.retry, WR_NET_LATER);
    rig_tear_down(&rig);
    hostile_tls_release(&tls);
}

/* A17: a server that renegotiates for ever does not keep the transfer alive. */
static void endless_renegotiation_ends_by_the_time_limits(void **state)
{
    static const struct hostile_step steps[] = {ASK_AGAIN, AGAIN, END};
    struct wr_net_options options = hasty();
    struct hostile_tls tls;
    struct net_fixture rig;
    struct got got;

    (void)state;
    hostile_tls_init(&tls, HOSTILE_GOOD, NULL, true);
    rig_set_up(&rig, options);
    name_localhost(&rig);
    (void)get_tls(&rig, &tls, steps, &got);
    assert_int_not_equal(got.result.end, WR_NET_DONE);
    rig_tear_down(&rig);
    hostile_tls_release(&tls);
}

/* A18: an attacker may have cut a body without a length that ends without close_notify. */
static void body_that_ends_without_close_notify_is_broken(void **state)
{
    static const struct hostile_step cut[] = {READ, SAY("HTTP/1.1 200 OK\r\n\r\nhel"), PAUSE(20 * MS), RESET, END};
    static const struct hostile_step whole[] = {READ, SAY("HTTP/1.1 200 OK\r\n\r\nhello"), END};
    struct hostile_tls tls;
    struct net_fixture rig;
    struct got got;

    (void)state;
    hostile_tls_init(&tls, HOSTILE_GOOD, NULL, false);
    rig_set_up(&rig, trusting());
    name_localhost(&rig);
    (void)get_tls(&rig, &tls, whole, &got);
    assert_int_equal(got.result.end, WR_NET_DONE);
    assert_string_equal(got.body, "hello");
    (void)get_tls(&rig, &tls, cut, &got);
    assert_int_equal(got.result.end, WR_NET_BROKEN);
    rig_tear_down(&rig);
    hostile_tls_release(&tls);
}

/* ---- HTTP/2, frame by frame ------------------------------------------------------------------ */

#define SETTINGS         \
    "\0\0\0\4\0\0\0\0\0" \
    "\0\0\0\4\1\0\0\0\0"
#define HEAD(stream) "\0\0\1\1\4\0\0\0" stream "\x88" /* :status 200 */
#define BODY(stream) "\0\0\5\0\1\0\0\0" stream "hello"
#define REFUSE(stream) "\0\0\4\3\0\0\0\0" stream "\0\0\0\7"
#define GONE(code) "\0\0\x8\7\0\0\0\0\0\0\0\0\0\0\0\0" code

static void http2_is_used_if_both_sides_support_it(void **state)
{
    static const struct hostile_step steps[] = {
        SIP, SAY(SETTINGS HEAD("\1") BODY("\1")), SIP, PAUSE(20 * MS), SAY(HEAD("\3") BODY("\3")), HOLD, END};
    struct hostile_tls tls;
    struct net_fixture rig;
    struct got got[2];

    (void)state;
    hostile_tls_init(&tls, HOSTILE_GOOD, "h2", false);
    rig_set_up(&rig, trusting());
    name_localhost(&rig);
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {steps}, .tls = &tls});
    memset(got, 0, sizeof got);
    for (int i = 0; i < 2; i++)
        rig_start(&rig, rig_url_of("https", "localhost", port, "/"), &got[i]);
    rig_run(&rig);
    for (int i = 0; i < 2; i++) {
        if (got[i].result.end != WR_NET_DONE)
            fail_msg("%d: %s", i, got[i].words);
        assert_int_equal(got[i].result.version, 20);
        assert_string_equal(got[i].body, "hello");
        assert_int_equal(got[i].sends, 1);
    }
    assert_int_equal(hostile_connections(rig.server, port), 1); /* one connection carries both */
    rig_tear_down(&rig);
    hostile_tls_release(&tls);
}

/* libcurl resends a refused stream: the gate is asked for that resend, too. */
static void refused_stream_is_resent_only_if_the_gate_allows_it(void **state)
{
    static const struct hostile_step refuses[] = {SIP, SAY(SETTINGS REFUSE("\1")), HOLD, END};
    struct hostile_tls tls;
    struct net_fixture rig;
    struct got got;

    (void)state;
    hostile_tls_init(&tls, HOSTILE_GOOD, "h2", false);
    rig_set_up(&rig, trusting());
    name_localhost(&rig);
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {refuses}, .tls = &tls});
    memset(&got, 0, sizeof got);
    got.refuse_from = 2;
    rig_start(&rig, rig_url_of("https", "localhost", port, "/"), &got);
    rig_run(&rig);
    assert_int_equal(got.result.end, WR_NET_REFUSED);
    assert_int_equal(got.result.sends, 1);
    rig_tear_down(&rig);
    hostile_tls_release(&tls);
}

static void http2_that_breaks_is_a_failure(void **state)
{
    static const struct hostile_step goes[] = {SIP, SAY(SETTINGS HEAD("\1") GONE("\1")), END};
    /* The servers of these two cases close after the next bytes. libcurl 8.14 sends GOAWAY, but
     * reports the failure only after another event on the socket. */
    static const struct hostile_step garbage[] = {SIP, SAY("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), SIP,
                                                  END};
    static const struct hostile_step huge[] = {SIP, SAY(SETTINGS "\xff\xff\xff\0\0\0\0\0\1"), SIP, END};
    const struct hostile_step *const cases[] = {goes, garbage, huge};
    struct hostile_tls tls;
    struct net_fixture rig;
    struct got got;

    (void)state;
    hostile_tls_init(&tls, HOSTILE_GOOD, "h2", false);
    rig_set_up(&rig, trusting());
    name_localhost(&rig);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)get_tls(&rig, &tls, cases[i], &got);
        if (got.result.end != WR_NET_PROTOCOL && got.result.end != WR_NET_BROKEN)
            fail_msg("case %zu: %s", i, got.words);
        assert_int_equal(got.result.retry, WR_NET_LATER);
    }
    rig_tear_down(&rig);
    hostile_tls_release(&tls);
}

#define FOREVER(literal) REPEAT(literal, HOSTILE_FOREVER, 0)
#define INTERIM               \
    "\0\0\5\1\4\0\0\0\1\x8\3" \
    "103"
#define PING              \
    "\0\0\x8\6\0\0\0\0\0" \
    "pingping"
#define CHANGE "\0\0\6\4\0\0\0\0\0\0\3\0\0\0\x64"
#define OPEN_HEAD "\0\0\1\1\0\0\0\0\1\x88"
#define MORE_HEAD               \
    "\0\0\5\x9\0\0\0\0\1\x10\1" \
    "a\1"                       \
    "b"
#define NOTHING "\0\0\0\0\0\0\0\0\1"

#define TICK_MS 20
#define HELD_MAX_NS (2 * WEIR_SECOND)

/* Longest time that the loop worked between two calls of its timer, in processor time of its
 * thread. */
struct ticker {
    uv_timer_t timer;
    int64_t last_at, longest_ns;
};

static void on_tick(uv_timer_t *timer)
{
    struct ticker *ticker = timer->data;
    int64_t now = wr_thread_cpu_now();

    if (now - ticker->last_at > ticker->longest_ns)
        ticker->longest_ns = now - ticker->last_at;
    ticker->last_at = now;
}

static void server_that_never_stops_sending_does_not_block_the_loop(void **state)
{
    static const struct hostile_step pings[] = {SIP, SAY(SETTINGS), FOREVER(PING), END};
    static const struct hostile_step changes[] = {SIP, SAY(SETTINGS), FOREVER(CHANGE), END};
    const struct hostile_step *const cases[] = {pings, changes};
    struct ticker ticker = {.last_at = wr_thread_cpu_now()};
    struct hostile_tls tls;
    struct net_fixture rig;
    struct got got;

    (void)state;
    hostile_tls_init(&tls, HOSTILE_GOOD, "h2", false);
    rig_set_up(&rig, hasty());
    name_localhost(&rig);
    (void)uv_timer_init(&rig.loop, &ticker.timer);
    ticker.timer.data = &ticker;
    (void)uv_timer_start(&ticker.timer, on_tick, TICK_MS, TICK_MS);
    uv_unref((uv_handle_t *)&ticker.timer);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)get_tls(&rig, &tls, cases[i], &got);
        if (got.result.end == WR_NET_DONE || got.result.blame != WR_NET_BLAME_HOST)
            fail_msg("case %zu: %s", i, got.words);
    }
    on_tick(&ticker.timer);
    assert_true(ticker.longest_ns < HELD_MAX_NS);
    uv_close((uv_handle_t *)&ticker.timer, NULL);
    rig_tear_down(&rig);
    hostile_tls_release(&tls);
}

/* A server that repeats HTTP/2 frames for ever: the request ends by its time limits at the
 * latest. */
static void endless_http2_frames_end_by_the_time_limits(void **state)
{
    static const struct hostile_step interims[] = {SIP, SAY(SETTINGS), FOREVER(INTERIM), END};
    static const struct hostile_step pings[] = {SIP, SAY(SETTINGS), FOREVER(PING), END};
    static const struct hostile_step changes[] = {SIP, SAY(SETTINGS), FOREVER(CHANGE), END};
    static const struct hostile_step heads[] = {SIP, SAY(SETTINGS OPEN_HEAD), FOREVER(MORE_HEAD), END};
    static const struct hostile_step nothings[] = {SIP, SAY(SETTINGS HEAD("\1")), FOREVER(NOTHING), END};
    const struct hostile_step *const cases[] = {interims, pings, changes, heads, nothings};
    struct hostile_tls tls;
    struct net_fixture rig;
    struct got got;

    (void)state;
    hostile_tls_init(&tls, HOSTILE_GOOD, "h2", false);
    rig_set_up(&rig, hasty());
    name_localhost(&rig);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)get_tls(&rig, &tls, cases[i], &got);
        if (got.result.end == WR_NET_DONE || got.result.blame != WR_NET_BLAME_HOST)
            fail_msg("case %zu: %s", i, got.words);
    }
    rig_tear_down(&rig);
    hostile_tls_release(&tls);
}

WEIR_TESTS(test(server_with_a_valid_certificate_is_trusted), test(wrong_certificate_ends_the_transfer),
           test(certificate_of_an_unknown_authority_is_refused),
           test(handshake_that_stalls_breaks_or_is_plain_text_fails),
           test(endless_renegotiation_ends_by_the_time_limits), test(body_that_ends_without_close_notify_is_broken),
           test(http2_is_used_if_both_sides_support_it), test(refused_stream_is_resent_only_if_the_gate_allows_it),
           test(http2_that_breaks_is_a_failure), test(endless_http2_frames_end_by_the_time_limits),
           test(server_that_never_stops_sending_does_not_block_the_loop))
