/* SPDX-License-Identifier: MIT */
/* test_codings.c - nested content codings, codings with little output and codings that decode
 * slowly (A5, A6, M11), over HTTP and TLS, with and without libcurl. */
#include "net/rig.h"

#include "lib/hostile_tls.h"

#include <time.h>
#include <unistd.h>
#include <zlib.h>

#define OK "HTTP/1.1 200 OK\r\n"
#define HELLO OK "Content-Length: 5\r\n\r\nhello"
/* 25 bytes */
#define GZIP_HELLO \
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\x07\x00\x86\xa6\x10\x36\x05\x00\x00\x00"
#define GZIP_BEGIN "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"

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

/* ---- a net, and a server with or without TLS ------------------------------------------------- */

struct place {
    struct net_fixture rig;
    struct hostile_tls tls;
    bool is_tls;
};

static void place_set_up(struct place *place, struct wr_net_options options, bool is_tls)
{
    rig_set_up(&place->rig, options);
    place->rig.names[0] = (struct rig_name){"localhost", {"127.0.0.1"}};
    place->is_tls = is_tls;
    hostile_tls_init(&place->tls, HOSTILE_GOOD, NULL, false);
}

static void place_tear_down(struct place *place)
{
    rig_tear_down(&place->rig);
    hostile_tls_release(&place->tls);
}

static int place_listen(struct place *place, const struct hostile_step *steps)
{
    return hostile_listen(place->rig.server,
                          &(struct hostile_case){.steps = {steps}, .tls = place->is_tls ? &place->tls : NULL});
}

static const char *place_url(const struct place *place, int port)
{
    return rig_url_of(place->is_tls ? "https" : "http", "localhost", port, "/");
}

/* Starts a GET and waits until the server is done; the steps may be freed then. */
static void place_get(struct place *place, const struct hostile_step *steps, struct got *ret_got)
{
    int port = place_listen(place, steps);

    rig_get(&place->rig, place_url(place, port), ret_got);
    hostile_await_ended(place->rig.server, port, 1);
}

/* ---- more than one coding -------------------------------------------------------------------- */

static void assert_refused(const struct got *got, const char *words, const char *name)
{
    if (got->result.end != WR_NET_CODING || strstr(got->words, words) == NULL)
        fail_msg("%s: %s", name, got->words);
    assert_int_equal(got->result.retry, WR_NET_NEVER);
    assert_int_equal(got->result.blame, WR_NET_BLAME_HOST);
    assert_int_equal(got->body_bytes, 0);
    assert_int_equal(got->result.status, 200); /* the head was read and reported */
    assert_int_equal(got->heads, 1);
}

static void two_codings(bool is_tls)
{
    static const char *const nested[] = {
        "Content-Encoding: gzip, br\r\n",
        "Content-Encoding: gzip,gzip\r\n",
        "Content-Encoding: zstd\r\nContent-Encoding: br\r\n",
        "content-encoding: x-gzip\r\nX: y\r\nCONTENT-ENCODING: deflate\r\n",
        "Content-Encoding: identity, gzip, identity, , br\r\n",
        "Content-Encoding: unheard-of, gzip\r\n",
        "Content-Encoding: br, br, br, br, br, br, br, br, br, br, br, br\r\n",
    };
    struct place place;
    struct got got;
    char head[512];

    place_set_up(&place, trusting(), is_tls);
    for (size_t i = 0; i < sizeof nested / sizeof nested[0]; i++) {
        snprintf(head, sizeof head, OK "%sContent-Length: 25\r\n\r\n", nested[i]);
        const struct hostile_step steps[] = {READ, {.what = HOSTILE_SEND, .text = head}, SAY(GZIP_HELLO), HOLD, END};
        place_get(&place, steps, &got);
        assert_refused(&got, "more than one Content-Encoding", nested[i]);
    }
    place_tear_down(&place);
}

/* A6: two nested codings turn a few bytes into gigabytes, and real servers use only one. */
static void body_with_more_than_one_content_coding_is_refused(void **state)
{
    (void)state;
    two_codings(false);
    two_codings(true);
}

/* Empty entries and "identity" do not count as codings; two codings do not matter in a response
 * without a body. */
static void one_coding_among_empty_and_identity_entries_is_decoded(void **state)
{
    static const char *const heads[] = {
        "Content-Encoding: identity, gzip\r\n",
        "Content-Encoding: identity\r\nContent-Encoding: gzip, identity\r\nContent-Encoding:\r\n",
        "Content-Encoding: , ,gzip\r\n",
    };
    static const struct hostile_step none[] = {
        READ, SAY("HTTP/1.1 304 Not Modified\r\nContent-Encoding: gzip, br\r\n\r\n"), END};
    struct place place;
    struct got got;
    char head[512];

    (void)state;
    for (int is_tls = 0; is_tls < 2; is_tls++) {
        place_set_up(&place, trusting(), is_tls);
        for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
            snprintf(head, sizeof head, OK "%sContent-Length: 25\r\n\r\n", heads[i]);
            const struct hostile_step steps[] = {READ, {.what = HOSTILE_SEND, .text = head}, SAY(GZIP_HELLO), END};
            place_get(&place, steps, &got);
            if (got.result.end != WR_NET_DONE)
                fail_msg("%s: %s", heads[i], got.words);
            assert_string_equal(got.body, "hello");
        }
        place_get(&place, none, &got);
        assert_int_equal(got.result.end, WR_NET_DONE);
        place_tear_down(&place);
    }
}

/* ---- codings with little output -------------------------------------------------------------- */

/* A compressed stream that decodes to nothing: a start, and a piece that is sent for ever. */
struct barren {
    const char *name, *coding;
    const char *begin;
    size_t begin_bytes;
    const char *piece;
    size_t piece_bytes;
};

#define BARREN(name, coding, begin, piece)                               \
    {                                                                    \
        name, coding, begin, sizeof(begin) - 1, piece, sizeof(piece) - 1 \
    }

/* Streams of RFC 1951, 1952, 7932 and 8878. */
static const struct barren barrens[] = {
    BARREN("a name without end", "gzip", "\x1f\x8b\x08\x08\0\0\0\0\0\x03", "aaaaaaaa"),
    BARREN("a comment without end", "gzip", "\x1f\x8b\x08\x10\0\0\0\0\0\x03", "aaaaaaaa"),
    BARREN("empty stored blocks", "gzip", GZIP_BEGIN, "\x00\x00\x00\xff\xff"),
    BARREN("empty stored blocks", "deflate", "\x78\x9c", "\x00\x00\x00\xff\xff"),
    BARREN("empty fixed blocks", "gzip", GZIP_BEGIN, "\x02\x08\x20\x80\x00"),
    BARREN("members after the first", "gzip", GZIP_HELLO, "\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0"),
    BARREN("skippable frames", "zstd", "", "\x50\x2a\x4d\x18\x00\x00\x00\x00"),
    BARREN("a skippable frame of 4 GB", "zstd", "\x50\x2a\x4d\x18\xff\xff\xff\xff", "aaaaaaaa"),
    BARREN("empty frames", "zstd", "", "\x28\xb5\x2f\xfd\x20\x00\x01\x00\x00"),
    BARREN("empty frames with a window of 8 MB", "zstd", "", "\x28\xb5\x2f\xfd\x00\x68\x01\x00\x00"),
    BARREN("empty blocks", "zstd", "\x28\xb5\x2f\xfd\x00\x38", "\x00\x00\x00"),
    /* window of 16 bits, then meta-blocks of 6 bits, aligned */
    BARREN("empty metadata", "br", "\x0c", "\x06"),
};

static void never_ends(struct place *place, const struct barren *barren)
{
    static char many[8192];
    size_t bytes = sizeof many / barren->piece_bytes * barren->piece_bytes;
    struct got got;
    char head[128];

    for (size_t i = 0; i < bytes; i++)
        many[i] = barren->piece[i % barren->piece_bytes];
    snprintf(head, sizeof head, OK "Content-Encoding: %s\r\n\r\n", barren->coding);
    struct hostile_step steps[] = {READ,
                                   {.what = HOSTILE_SEND, .text = head},
                                   {.what = HOSTILE_SEND, .text = barren->begin, .bytes = barren->begin_bytes},
                                   {.what = HOSTILE_SEND, .text = many, .bytes = bytes, .times = HOSTILE_FOREVER},
                                   END};
    if (barren->begin_bytes == 0) /* 0 bytes would mean: up to the '\0' */
        steps[2] = steps[3];
    place_get(place, steps, &got);
    if (got.result.end != WR_NET_CODING || strstr(got.words, "decode to no output") == NULL)
        fail_msg("%s: %s: %s", barren->coding, barren->name, got.words);
    assert_true(got.body_bytes <= 5);
    assert_true(got.result.wire_bytes < 4 << 20);
}

/* A3, A5, M11: the input of a decoder is bounded by its output. */
static void content_coding_that_decodes_to_nothing_is_refused(void **state)
{
    struct wr_net_options options = trusting();
    struct place place;

    (void)state;
    options.body_max = 1 << 30;
    for (int is_tls = 0; is_tls < 2; is_tls++) {
        place_set_up(&place, options, is_tls);
        for (size_t i = 0; i < sizeof barrens / sizeof barrens[0]; i++)
            never_ends(&place, &barrens[i]);
        place_tear_down(&place);
    }
}

/* ---- windows --------------------------------------------------------------------------------- */

/* T19: a decoder needs as much memory as its window. RFC 9659 allows 8 MB at most. */
static void zstd_window_has_at_most_8_mb(void **state)
{
    static const struct {
        struct hostile_step say;
        bool is_taken;
    } rows[] = {
        {SAY(OK "Content-Encoding: zstd\r\nContent-Length: 14\r\n\r\n\x28\xb5\x2f\xfd\x00\x68\x29\x00\x00hello"), true},
        {SAY(OK "Content-Encoding: zstd\r\nContent-Length: 14\r\n\r\n\x28\xb5\x2f\xfd\x00\x69\x29\x00\x00hello"),
         false},
        {SAY(OK "Content-Encoding: zstd\r\nContent-Length: 14\r\n\r\n\x28\xb5\x2f\xfd\x00\x70\x29\x00\x00hello"),
         false},
        {SAY(OK "Content-Encoding: zstd\r\nContent-Length: 14\r\n\r\n\x28\xb5\x2f\xfd\x00\xa8\x29\x00\x00hello"),
         false},
        /* a single segment, whose window is its size: 16 MB and a byte */
        {SAY(OK
             "Content-Encoding: zstd\r\nContent-Length: 14\r\n\r\n\x28\xb5\x2f\xfd\xa0\x01\x00\x00\x01\x28\x00\x00he"),
         false},
        /* a window of 128 MB in a frame of zstd 0.7 */
        {SAY(OK "Content-Encoding: zstd\r\nContent-Length: "
                "17\r\n\r\n\x27\xb5\x2f\xfd\x00\x88\x40\x00\x05hello\xc0\x00\x00"),
         false},
    };
    struct place place;
    struct got got;

    (void)state;
    place_set_up(&place, trusting(), false);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct hostile_step steps[] = {READ, rows[i].say, END};
        place_get(&place, steps, &got);
        if ((got.result.end == WR_NET_DONE) != rows[i].is_taken)
            fail_msg("row %zu: %s", i, got.words);
        assert_string_equal(got.body, rows[i].is_taken ? "hello" : "");
    }
    place_tear_down(&place);
}

/* Windows above 16 MB are a brotli extension that no browser supports. */
static void brotli_window_has_at_most_16_mb(void **state)
{
    static const struct hostile_step large[] = {
        READ, SAY(OK "Content-Encoding: br\r\nContent-Length: 4\r\n\r\n\x11\x1e\x03\x00"), END};
    struct place place;
    struct got got;

    (void)state;
    place_set_up(&place, trusting(), false);
    place_get(&place, large, &got);
    assert_int_equal(got.result.end, WR_NET_CODING);
    place_tear_down(&place);
}

/* ---- codings that decode slowly -------------------------------------------------------------- */

#define SLOW_BYTES ((size_t)220 << 10)
#define CALL_MAX_NS (50 * MS * SLOW) /* a normal round of this loop takes some 2 ms */

/* A bit string in the order of brotli: lowest bit first. */
struct bits {
    unsigned char bytes[SLOW_BYTES + 4096];
    size_t count;
};

static void add_bits(struct bits *bits, unsigned value, int count)
{
    for (int i = 0; i < count; i++, bits->count++)
        bits->bytes[bits->count / 8] |= (unsigned char)((value >> i & 1) << bits->count % 8);
}

/* Adds a prefix code of one symbol, which takes no bits where it is used (RFC 7932 3.4). */
static void add_code(struct bits *bits, unsigned symbol, int symbol_bits)
{
    add_bits(bits, 1, 2);
    add_bits(bits, 0, 2);
    add_bits(bits, symbol, symbol_bits);
}

/* Adds a meta-block of one byte whose context map (256 * 64 entries, four bytes long) must be
 * inverted by move-to-front (RFC 7932 7.3). */
static void add_slow_block(struct bits *bits)
{
    add_bits(bits, 0, 1 + 2 + 16 + 1); /* not the last block, one byte, compressed */
    add_bits(bits, 1 | 7 << 1, 4);     /* number of literal block types: 129 … */
    add_bits(bits, 127, 7);            /* … + 127 */
    add_code(bits, 0, 9);
    add_code(bits, 0, 5);
    /* its block count; one type of the other kinds; no postfix */
    add_bits(bits, 0, 2 + 1 + 1 + 2 + 4);
    for (int i = 0; i < 256; i++)
        add_bits(bits, 0, 2); /* context mode of this type */
    add_bits(bits, 1 | 1 << 1, 4);
    add_bits(bits, 1, 1); /* four literal prefix trees */
    add_bits(bits, 0, 1);
    add_code(bits, 3, 2);
    add_bits(bits, 1, 1); /* inverse move-to-front */
    add_bits(bits, 0, 1);
    for (int i = 0; i < 4; i++)
        add_code(bits, 'x', 8);
    /* one literal and two copied bytes, which the end of the block cuts off */
    add_code(bits, 8, 10);
    add_code(bits, 0, 6);
}

static const struct bits *slow_brotli(void)
{
    static struct bits bits;

    if (bits.count == 0)
        add_bits(&bits, 0, 1); /* a window of 16 bits */
    while (bits.count / 8 < SLOW_BYTES)
        add_slow_block(&bits);
    return &bits;
}

static int64_t thread_cpu(void)
{
    struct timespec now;

    assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
    return now.tv_sec * WEIR_SECOND + now.tv_nsec;
}

/* Longest time that the loop worked between two checks of its timers, in processor time of its
 * thread. */
struct watch {
    uv_prepare_t prepare;
    int64_t at, most;
};

static void on_look(uv_prepare_t *prepare)
{
    struct watch *watch = prepare->data;
    int64_t now = thread_cpu();

    if (watch->at != 0 && now - watch->at > watch->most)
        watch->most = now - watch->at;
    watch->at = now;
}

static void watch_begin(struct watch *watch, uv_loop_t *loop)
{
    *watch = (struct watch){.at = 0};
    (void)uv_prepare_init(loop, &watch->prepare);
    watch->prepare.data = watch;
    (void)uv_prepare_start(&watch->prepare, on_look);
    uv_unref((uv_handle_t *)&watch->prepare);
}

static void slow_beside_hello(bool is_tls)
{
    static const struct hostile_step hello[] = {READ, SAY(HELLO), AGAIN, END};
    const struct bits *bits = slow_brotli();
    struct watch watch;
    struct place place;
    struct got slow, other;
    char head[128], other_url[512];

    snprintf(head, sizeof head, OK "Content-Encoding: br\r\nContent-Length: %zu\r\n\r\n", SLOW_BYTES);
    const struct hostile_step steps[] = {READ,
                                         {.what = HOSTILE_SEND, .text = head},
                                         {.what = HOSTILE_SEND, .text = (const char *)bits->bytes, .bytes = SLOW_BYTES},
                                         HOLD,
                                         END};
    place_set_up(&place, trusting(), is_tls);
    watch_begin(&watch, &place.rig.loop);
    memset(&slow, 0, sizeof slow);
    memset(&other, 0, sizeof other);
    snprintf(other_url, sizeof other_url, "%s", place_url(&place, place_listen(&place, hello)));
    slow.then = &other;
    slow.then_url = other_url;
    rig_start(&place.rig, place_url(&place, place_listen(&place, steps)), &slow);
    rig_run(&place.rig);
    if (slow.result.end != WR_NET_DONE || slow.body_bytes < 1000)
        fail_msg("%s: %zu bytes", slow.words, slow.body_bytes);
    assert_string_equal(other.body, "hello");
    if (other.result.done_at >= slow.result.done_at)
        fail_msg("the slow transfer delayed the other one");
    if (watch.most > CALL_MAX_NS)
        fail_msg("the loop was blocked for %d ms", (int)(watch.most / MS));
    uv_close((uv_handle_t *)&watch.prepare, NULL);
    place_tear_down(&place);
}

/* M11: a brotli context map costs 2 µs per input byte. Transfers of other hosts continue
 * meanwhile. */
static void body_that_decodes_slowly_does_not_block_other_transfers(void **state)
{
    (void)state;
    slow_beside_hello(false);
    slow_beside_hello(true);
}

/* ---- bodies that wait for their decoder ------------------------------------------------------ */

#define LARGE_BYTES ((size_t)6 << 20)
#define LARGES 8

static unsigned char byte_at(size_t i)
{
    return (unsigned char)(i * i >> 9 ^ i % 251);
}

static size_t pack(unsigned char *ret_packed, size_t room)
{
    static unsigned char plain[LARGE_BYTES];
    z_stream stream = {.next_in = plain, .avail_in = sizeof plain, .next_out = ret_packed, .avail_out = (unsigned)room};

    for (size_t i = 0; i < sizeof plain; i++)
        plain[i] = byte_at(i);
    assert_int_equal(deflateInit2(&stream, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = plain;
    stream.avail_in = sizeof plain;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    (void)deflateEnd(&stream);
    return room - stream.avail_out;
}

static void larges(bool is_tls)
{
    static unsigned char packed[2 * LARGE_BYTES];
    static struct got got[LARGES];
    struct wr_net_options options = trusting();
    size_t bytes = pack(packed, sizeof packed);
    struct place place;
    char head[128];

    snprintf(head, sizeof head, OK "Content-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n", bytes);
    const struct hostile_step steps[] = {READ,
                                         {.what = HOSTILE_SEND, .text = head},
                                         {.what = HOSTILE_SEND, .text = (const char *)packed, .bytes = bytes},
                                         AGAIN,
                                         END};
    options.body_max = 2 * LARGE_BYTES;
    place_set_up(&place, options, is_tls);
    int port = place_listen(&place, steps);
    for (int round = 0; round < 2; round++) {
        memset(got, 0, sizeof got);
        for (int i = 0; i < LARGES; i++)
            rig_start(&place.rig, place_url(&place, port), &got[i]);
        rig_run(&place.rig);
        for (int i = 0; i < LARGES; i++) {
            if (got[i].result.end != WR_NET_DONE || got[i].body_bytes != LARGE_BYTES)
                fail_msg("%d: %s: %zu bytes", i, got[i].words, got[i].body_bytes);
            assert_int_equal(got[i].result.wire_bytes, bytes);
            for (size_t at = 0; at < GOT_BODY_MAX; at++)
                if ((unsigned char)got[i].body[at] != byte_at(at))
                    fail_msg("%d: wrong byte at %zu", i, at);
        }
    }
    /* The first round may use fewer than eight connections: the last transfer may find one that is
     * idle. */
    assert_in_range(hostile_connections(place.rig.server, port), 1, LARGES);
    place_tear_down(&place);
}

/* Bodies need more decoding time than one round of the loop has: no byte is lost, and connections
 * are reused. */
static void bodies_decoded_over_many_loop_rounds_are_complete(void **state)
{
    (void)state;
    larges(false);
    larges(true);
}

/* A5, K3: a body that waits to be decoded may reach its limit, be cancelled, stopped, overdue, or
 * closed with the net. */
static void body_that_waits_for_its_decoder_can_be_ended(void **state)
{
    const struct bits *bits = slow_brotli();
    struct place place;
    struct got got;
    char head[128];

    (void)state;
    snprintf(head, sizeof head, OK "Content-Encoding: br\r\nContent-Length: %zu\r\n\r\n", SLOW_BYTES);
    const struct hostile_step steps[] = {READ,
                                         {.what = HOSTILE_SEND, .text = head},
                                         {.what = HOSTILE_SEND, .text = (const char *)bits->bytes, .bytes = SLOW_BYTES},
                                         HOLD,
                                         END};
    for (int i = 0; i < 10; i++) {
        struct wr_net_options options = trusting();
        options.total_ns = i % 5 == 3 ? 100 * MS : options.total_ns;
        options.body_max = i % 5 == 0 ? 1000 : options.body_max;
        place_set_up(&place, options, i >= 5);
        int port = place_listen(&place, steps);
        memset(&got, 0, sizeof got);
        got.cancels_in_body = i % 5 == 1;
        got.stop_after = i % 5 == 2 ? 500 : 0;
        rig_start(&place.rig, place_url(&place, port), &got);
        while (i % 5 == 4 && got.bodies == 0)
            rig_turn(&place.rig);
        if (i % 5 != 4) {
            static const enum wr_net_end ends[] = {WR_NET_DONE, WR_NET_CANCELLED, WR_NET_DONE, WR_NET_TOTAL_TIMEOUT};
            rig_run(&place.rig);
            if (got.result.end != ends[i % 5])
                fail_msg("%d: %s", i, got.words);
            assert_true(got.body_bytes <= 1000 || i % 5 == 3);
        }
        place_tear_down(&place);
        assert_true(got.is_done);
    }
}

WEIR_TESTS(test(body_with_more_than_one_content_coding_is_refused),
           test(one_coding_among_empty_and_identity_entries_is_decoded),
           test(content_coding_that_decodes_to_nothing_is_refused), test(zstd_window_has_at_most_8_mb),
           test(brotli_window_has_at_most_16_mb), test(body_that_decodes_slowly_does_not_block_other_transfers),
           test(bodies_decoded_over_many_loop_rounds_are_complete), test(body_that_waits_for_its_decoder_can_be_ended))
