/* SPDX-License-Identifier: MIT */
/* test_held.c - bodies that arrive faster than their owner accepts them (V6), with and without
 * libcurl. */
#include "net/rig.h"

#include <zlib.h>

#define OK "HTTP/1.1 200 OK\r\n"
#define LARGE_BYTES ((size_t)4 << 20)
/* bytes that may follow wr_net_pause_body, because they had been read already */
#define HELD_MAX ((size_t)256 << 10)

static unsigned char plain[LARGE_BYTES];

static size_t pack(unsigned char *ret_packed, size_t room)
{
    z_stream stream = {.next_in = plain, .avail_in = sizeof plain, .next_out = ret_packed, .avail_out = (unsigned)room};

    for (size_t i = 0; i < sizeof plain; i++)
        plain[i] = (unsigned char)(i * i >> 9 ^ i % 251);
    assert_int_equal(deflateInit2(&stream, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    (void)deflateEnd(&stream);
    return room - stream.avail_out;
}

/* Timer that resumes a paused body at regular intervals. */
struct valve {
    uv_timer_t timer;
    struct got *got;
    /* body bytes at the last timer call, and the most that came between two calls */
    size_t seen, most;
    int times;
};

static void on_time(uv_timer_t *timer)
{
    struct valve *valve = timer->data;
    struct got *got = valve->got;
    size_t came = got->body_bytes - valve->seen;

    valve->most = came > valve->most ? came : valve->most;
    valve->seen = got->body_bytes;
    valve->times++;
    if (got->is_done)
        (void)uv_timer_stop(timer);
    else if (got->bodies > 0)
        wr_net_resume_body(got->transfer);
}

static void valve_open(struct valve *valve, struct got *got, int64_t every_ns)
{
    *valve = (struct valve){.got = got};
    got->holds = true;
    (void)uv_timer_init(&got->rig->loop, &valve->timer);
    valve->timer.data = valve;
    (void)uv_timer_start(&valve->timer, on_time, (uint64_t)(every_ns / MS), (uint64_t)(every_ns / MS));
}

static void get_held(const struct hostile_step *steps, struct wr_net_options options, int64_t every_ns,
                     struct got *ret_got, struct valve *ret_valve)
{
    struct net_fixture rig;

    memset(ret_got, 0, sizeof *ret_got);
    rig_set_up(&rig, options);
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {steps}});
    rig_start(&rig, rig_url(port), ret_got);
    valve_open(ret_valve, ret_got, every_ns);
    rig_run(&rig);
    uv_close((uv_handle_t *)&ret_valve->timer, NULL);
    rig_tear_down(&rig);
}

static struct wr_net_options calm(void)
{
    struct wr_net_options options = rig_options();

    options.body_max = 2 * LARGE_BYTES;
    return options;
}

static void paused_body_waits_and_is_complete(void **state)
{
    static unsigned char packed[2 * LARGE_BYTES];
    size_t bytes = pack(packed, sizeof packed);
    char coded[128], counted[128];

    (void)state;
    snprintf(coded, sizeof coded, OK "Content-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n", bytes);
    snprintf(counted, sizeof counted, OK "Content-Length: %zu\r\n\r\n", LARGE_BYTES);
    const struct {
        const char *head;
        const unsigned char *body;
        size_t bytes;
    } rows[] = {{coded, packed, bytes}, {counted, plain, LARGE_BYTES}, {OK "\r\n", plain, LARGE_BYTES}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct hostile_step steps[] = {
            READ,
            {.what = HOSTILE_SEND, .text = rows[i].head},
            {.what = HOSTILE_SEND, .text = (const char *)rows[i].body, .bytes = rows[i].bytes},
            END};
        struct valve valve;
        struct got got;
        get_held(steps, calm(), 5 * MS, &got, &valve);
        print_message("%zu: %d times, %zu bytes at most\n", i, valve.times, valve.most);
        if (got.result.end != WR_NET_DONE || got.body_bytes != LARGE_BYTES)
            fail_msg("%zu: %s: %zu bytes", i, got.words, got.body_bytes);
        assert_memory_equal(got.body, plain, GOT_BODY_MAX);
        assert_int_equal(got.result.wire_bytes, rows[i].bytes);
        assert_true(valve.most <= HELD_MAX);
    }
}

struct holder {
    uv_timer_t timer;
    struct got *got;
    weir_clock *clock;
};

static void let_go(uv_timer_t *timer)
{
    const struct holder *holder = timer->data;

    wr_net_resume_body(holder->got->transfer);
    advance(holder->clock, WEIR_SECOND);
}

/* The server is not slow: its body is not read. The clock advances while the body is paused, and by
 * a second when it resumes: then the net checks the limits before the rest of the body arrives. */
static void time_while_a_body_is_paused_does_not_count_as_slow(void **state)
{
    static const struct hostile_step steps[] = {READ, SAY(OK "Content-Length: 10\r\n\r\nhello"), PAUSE(3500 * MS),
                                                SAY("again"), END};
    struct wr_net_options options = calm();
    struct got got = {.holds = true};
    struct net_fixture rig;
    weir_clock *clock = fake_clock();
    struct holder holder = {.got = &got, .clock = clock};

    (void)state;
    options.clock = clock;
    options.total_ns = 2 * WEIR_SECOND;
    options.speed_ns = 10 * WEIR_SECOND;
    rig_set_up(&rig, options);
    rig_start(&rig, rig_url(hostile_listen(rig.server, &(struct hostile_case){.steps = {steps}})), &got);
    while (got.bodies == 0)
        rig_turn(&rig);
    got.holds = false;
    advance(clock, WEIR_HOUR);
    (void)uv_timer_init(&rig.loop, &holder.timer);
    holder.timer.data = &holder;
    (void)uv_timer_start(&holder.timer, let_go, 2100, 0);
    rig_run(&rig);
    if (got.result.end != WR_NET_DONE)
        fail_msg("%s", got.words);
    assert_string_equal(got.body, "helloagain");
    uv_close((uv_handle_t *)&holder.timer, NULL);
    rig_tear_down(&rig);
    weir_clock_fake_free(clock);
}

static void paused_body_can_be_cancelled(void **state)
{
    static const struct hostile_step steps[] = {READ, SAY(OK "\r\nhello"), HOLD, END};
    struct got got = {.holds = true, .cancels_in_body = true};
    struct net_fixture rig;

    (void)state;
    rig_set_up(&rig, calm());
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {steps}});
    rig_start(&rig, rig_url(port), &got);
    rig_run(&rig);
    assert_int_equal(got.result.end, WR_NET_CANCELLED);
    rig_tear_down(&rig);
}

WEIR_TESTS(test(paused_body_waits_and_is_complete), test(time_while_a_body_is_paused_does_not_count_as_slow),
           test(paused_body_can_be_cancelled))
