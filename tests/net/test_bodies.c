/* SPDX-License-Identifier: MIT */
/* test_bodies.c - endless bodies, plain and compressed, and bodies that cannot be decoded (A3,
 * A5). */
#include "net/rig.h"

#include <zlib.h>

#define OK "HTTP/1.1 200 OK\r\n"
#define MEMORY_MAX (4L << 20)
#define AHEAD_MAX ((uint64_t)2 << 20)
#define BODY_LIMIT (1 << 20) /* equals body_max of rig_options */

static void assert_cut(const struct got *got)
{
    if (got->result.end != WR_NET_DONE)
        fail_msg("%s", got->words);
    assert_int_equal(got->result.status, 200);
    assert_true(got->result.is_truncated);
    assert_int_equal(got->result.body_bytes, BODY_LIMIT);
    assert_int_equal(got->body_bytes, BODY_LIMIT);
}

/* A3: an endless body is truncated at the limit and its connection is closed. */
static void endless_body_is_truncated_and_takes_no_memory(void **state)
{
    static const char block[65536] = "x";
    const struct hostile_step say = {
        .what = HOSTILE_SEND, .text = block, .bytes = sizeof block, .times = HOSTILE_FOREVER};
    const struct hostile_step plain[] = {READ, SAY(OK "\r\n"), say, END};
    const struct hostile_step counted[] = {READ, SAY(OK "Content-Length: 9000000000000000000\r\n\r\n"), say, END};
    const struct hostile_step chunked[] = {READ, SAY(OK "Transfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\n"), say,
                                           END};
    const struct hostile_step *const cases[] = {plain, counted, chunked};
    struct wr_net_stats stats;
    struct net_fixture rig;
    struct got got;

    (void)state;
    rig_set_up(&rig, rig_options());
    (void)rig_get_steps(&rig, plain, &got); /* allocates everything that the first use needs */
    rig_memory_mark();
    for (size_t i = 0; i < 3; i++) {
        int port = rig_get_steps(&rig, cases[i], &got);
        assert_cut(&got);
        hostile_await_ended(rig.server, port, 1);
    }
    assert_true(rig_memory_grown() < MEMORY_MAX);
    wr_net_stats(rig.net, &stats);
    assert_int_equal(stats.connections, 0);
    rig_tear_down(&rig);
}

/* ---- decompression bombs: a start, and a piece that may be repeated for ever ----------------- */

struct bomb {
    const char *coding;
    char begin[256];
    size_t begin_bytes;
    char piece[8192];
    size_t piece_bytes;
};

/* Returns a bomb whose piece can repeat: a full flush empties the window, so that blocks can follow
 * each other. */
static struct bomb deflate_bomb(const char *coding, int window_bits)
{
    static unsigned char zeros[1 << 20];
    struct bomb bomb = {.coding = coding};
    z_stream stream = {.next_in = zeros, .avail_in = sizeof zeros};

    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, window_bits, 9, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = zeros;
    stream.avail_in = 1;
    stream.next_out = (unsigned char *)bomb.begin;
    stream.avail_out = sizeof bomb.begin;
    assert_int_equal(deflate(&stream, Z_FULL_FLUSH), Z_OK);
    bomb.begin_bytes = sizeof bomb.begin - stream.avail_out;
    stream.next_in = zeros;
    stream.avail_in = sizeof zeros;
    stream.next_out = (unsigned char *)bomb.piece;
    stream.avail_out = sizeof bomb.piece;
    assert_int_equal(deflate(&stream, Z_FULL_FLUSH), Z_OK);
    assert_true(stream.avail_in == 0 && stream.avail_out > 0);
    bomb.piece_bytes = sizeof bomb.piece - stream.avail_out;
    (void)deflateEnd(&stream);
    return bomb;
}

/* RFC 8878: a frame with a window of 128 KB, then run-length blocks: one byte repeated 128 KB
 * times. */
static struct bomb zstd_bomb(void)
{
    static const char begin[] = "\x28\xb5\x2f\xfd\x00\x38", block[] = "\x02\x00\x10\x00";
    struct bomb bomb = {.coding = "zstd", .begin_bytes = sizeof begin - 1, .piece_bytes = 4000};

    memcpy(bomb.begin, begin, sizeof begin - 1);
    for (size_t i = 0; i < bomb.piece_bytes; i += 4)
        memcpy(bomb.piece + i, block, 4);
    return bomb;
}

/* Brotli of endless zeros: after a start the encoder repeats the same 100 bytes, each time for a
 * megabyte. */
static struct bomb brotli_bomb(void)
{
    static const char begin[] =
        "\xf4\xff\x1f\xf0\x4f\x00\xc4\x63\x81\x40\xee\x7d\x80\xfe\xff\x03\xfe\x09\x80\x38\x2c\x02\xd0\xbd"
        "\x0f\xd0\xff\x7f\xc0\x3f\x01\x10\x87\x05\x00\xba\xf7\x01\xfa\xff\x0f\xf8\x27\x00\xe2\xb0\x00\x40"
        "\xf7\x3e\x40\xff\xff\x01\xff\x04\x40\x1c\x16\x00\xe8\xde\x07\xe8\xff\x3f\xe0\x9f\x00\x88\xc3\x02"
        "\x00\xdd\xfb\x00\xfd\xff\x07\xfc\x13\x00\x71\x58\x00\xa0\x7b\x1f\xa0\xff\xff\x80\x7f\x02\x20\x0e"
        "\x0b\x00\x74\xef\x03\xf4\xff\x1f\xf0";
    static const char piece[] =
        "\x4f\x00\xc4\x61\x01\x80\xee\x7d\x80\xfe\xff\x03\xfe\x09\x80\x38\x2c\x00\xd0\xbd\x0f\xd0\xff\x7f"
        "\xc0\x3f\x01\x10\x87\x05\x00\xba\xf7\x01\xfa\xff\x0f\xf8\x27\x00\xe2\xb0\x00\x40\xf7\x3e\x40\xff"
        "\xff\x01\xff\x04\x40\x1c\x16\x00\xe8\xde\x07\xe8\xff\x3f\xe0\x9f\x00\x88\xc3\x02\x00\xdd\xfb\x00"
        "\xfd\xff\x07\xfc\x13\x00\x71\x58\x00\xa0\x7b\x1f\xa0\xff\xff\x80\x7f\x02\x20\x0e\x0b\x00\x74\xef"
        "\x03\xf4\xff\x1f\xf0";
    struct bomb bomb = {.coding = "br", .begin_bytes = sizeof begin - 1, .piece_bytes = sizeof piece - 1};

    memcpy(bomb.begin, begin, sizeof begin - 1);
    memcpy(bomb.piece, piece, sizeof piece - 1);
    return bomb;
}

static void explode(struct net_fixture *rig, const struct bomb *bomb, int times, struct got *ret_got)
{
    char head[256];

    snprintf(head, sizeof head, OK "Content-Encoding: %s\r\n\r\n", bomb->coding);
    const struct hostile_step steps[] = {
        READ,
        {.what = HOSTILE_SEND, .text = head},
        {.what = HOSTILE_SEND, .text = bomb->begin, .bytes = bomb->begin_bytes},
        {.what = HOSTILE_SEND, .text = bomb->piece, .bytes = bomb->piece_bytes, .times = times},
        HOLD,
        END};
    int port = rig_get_steps(rig, steps, ret_got);
    hostile_await_ended(rig->server, port, 1);
}

/* A5: the limit applies to the decoded bytes while they are decoded. */
static void decompression_bombs_are_truncated_and_take_no_memory(void **state)
{
    const struct bomb bombs[] = {deflate_bomb("gzip", 15 + 16), deflate_bomb("deflate", 15),
                                 deflate_bomb("x-gzip", 15 + 16), brotli_bomb(), zstd_bomb()};
    struct net_fixture rig;
    struct got got;

    (void)state;
    rig_set_up(&rig, rig_options());
    /* allocates everything that the first use needs */
    for (size_t i = 0; i < sizeof bombs / sizeof bombs[0]; i++)
        explode(&rig, &bombs[i], HOSTILE_FOREVER, &got);
    rig_memory_mark();
    for (size_t i = 0; i < sizeof bombs / sizeof bombs[0]; i++) {
        explode(&rig, &bombs[i], HOSTILE_FOREVER, &got);
        assert_cut(&got);
        /* some undecoded bytes wait when the limit is reached */
        assert_true(got.result.wire_bytes < AHEAD_MAX);
        explode(&rig, &bombs[i], 2, &got); /* two pieces arrive as one */
        assert_cut(&got);
    }
    assert_true(rig_memory_grown() < MEMORY_MAX);
    rig_tear_down(&rig);
}

static void body_of_exactly_the_limit_is_complete(void **state)
{
    static const struct hostile_step steps[] = {READ, SAY(OK "Content-Length: 5\r\n\r\nhello"), END};
    struct net_fixture rig;
    struct got got;

    (void)state;
    rig_set_up(&rig, rig_options());
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {steps}});
    for (uint64_t limit = 4; limit <= 6; limit++) {
        memset(&got, 0, sizeof got);
        assert_int_equal(rig_try(&rig, rig_url(port), &(struct wr_net_request){.body_max = limit}, &got), 0);
        rig_run(&rig);
        if (got.result.end != WR_NET_DONE)
            fail_msg("%s, sends %u", got.words, got.result.sends);
        assert_int_equal(got.result.is_truncated, limit < 5);
        assert_int_equal(got.body_bytes, limit < 5 ? 4 : 5);
    }
    rig_tear_down(&rig);
}

static void body_that_cannot_be_decoded_is_not_delivered(void **state)
{
    static const struct hostile_step broken[] = {
        READ, SAY(OK "Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello"), END};
    static const struct hostile_step unknown[] = {
        READ, SAY(OK "Content-Encoding: rot13\r\nContent-Length: 5\r\n\r\nhello"), END};
    static const struct hostile_step none[] = {
        READ, SAY(OK "Content-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello"), END};
    struct net_fixture rig;
    struct got got;

    (void)state;
    rig_set_up(&rig, rig_options());
    (void)rig_get_steps(&rig, broken, &got);
    assert_int_equal(got.result.end, WR_NET_CODING);
    assert_int_equal(got.body_bytes, 0);
    (void)rig_get_steps(&rig, unknown, &got);
    assert_int_equal(got.result.end, WR_NET_CODING);
    assert_int_equal(got.body_bytes, 0);
    (void)rig_get_steps(&rig, none, &got);
    assert_int_equal(got.result.end, WR_NET_DONE);
    assert_string_equal(got.body, "hello");
    rig_tear_down(&rig);
}

WEIR_TESTS(test(endless_body_is_truncated_and_takes_no_memory),
           test(decompression_bombs_are_truncated_and_take_no_memory), test(body_of_exactly_the_limit_is_complete),
           test(body_that_cannot_be_decoded_is_not_delivered))
