/* SPDX-License-Identifier: MIT */
/* test_http_room.c - a server without memory or room: it still answers every request that has
 * begun, and one listener does not use up the share of another. */
#include "serve/rig.h"

#include "lib/alloc.h"

#include <linux/sockios.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define HOST "Host: localhost\r\n"
#define JSON "Content-Type: application/json\r\n"
#define GET(target) "GET " target " HTTP/1.1\r\n" HOST "\r\n"
#define FOLDER "/tmp/weir-room-XXXXXX"

/* ---- M7: responses without memory ---- */

struct poor {
    struct http_server_fixture rig;
    test_allocator memory;
};

static void poor_start(struct poor *poor)
{
    test_allocator_init(&poor->memory);
    rig_init(&poor->rig);
    poor->rig.options.allocator = &poor->memory.allocator;
    rig_start(&poor->rig);
}

static void poor_lose(struct poor *poor)
{
    atomic_store(&poor->memory.fail_for_ever, true);
    atomic_store(&poor->memory.fail_at, 1);
}

static void poor_stop(struct poor *poor)
{
    rig_stop(&poor->rig);
    assert_int_equal(atomic_load(&poor->memory.live), 0);
}

/* The first allocation after the connection fails: for the response, for half a request that is
 * stored, or for a delayed response. */
static void request_without_memory_is_answered(void **state)
{
    static const struct {
        const char *first, *second;
    } table[] = {
        {GET("/ok"), ""},
        {GET("/ok") GET("/late?x"), ""},
        {GET("/large"), ""},
        {GET("/stream"), NULL}, /* an endless response: the connection is closed */
        {GET("/late?x"), ""},
        {"GET /ok HT", ""},
        {"POST /echo HTTP/1.1\r\n" HOST JSON "Content-Length: 9\r\n\r\nhalf", ""},
        {"", GET("/ok")}, /* the allocation of the connection fails */
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct poor poor;
        poor_start(&poor);
        if (table[i].first[0] == '\0')
            poor_lose(&poor);
        int fd = dial(&poor.rig);
        while (rig_stats(&poor.rig).accepted == 0)
            (void)usleep(1000);
        poor_lose(&poor);
        say(fd, table[i].first);
        say(fd, table[i].second != NULL ? table[i].second : "");
        int status = status_of(hear_end(fd));
        if (status != 503 && table[i].second != NULL)
            fail_msg("row %zu: %d", i, status);
        assert_int_equal(atomic_load(&poor.rig.gone), atomic_load(&poor.rig.held));
        (void)close(fd);
        poor_stop(&poor);
    }
}

/* J6: the newest request is admitted, and the one that is evicted gets a 503. */
static void evicted_request_gets_a_503(void **state)
{
    enum {
        MOST = 4
    };
    static const char *const begun[] = {"GET /ok HT",
                                        "POST /echo HTTP/1.1\r\n" HOST JSON "Content-Length: 9\r\n\r\nhalf"};
    (void)state;
    for (size_t i = 0; i < sizeof begun / sizeof begun[0]; i++) {
        struct http_server_fixture rig;
        int fds[MOST];
        rig_init(&rig);
        rig.options.connections_max = MOST;
        rig_start(&rig);
        for (int k = 0; k < MOST; k++) {
            fds[k] = dial(&rig);
            say(fds[k], begun[i]);
            (void)usleep(3000); /* connections are ordered by milliseconds */
        }
        int extra = dial(&rig);
        say(extra, GET("/ok"));
        assert_int_equal(status_of(hear(extra, 1)), 200);
        assert_int_equal(status_of(hear_end(fds[0])), 503);
        assert_int_equal(rig_stats(&rig).turned, 1);
        for (int k = 0; k < MOST; k++)
            (void)close(fds[k]);
        rig_close(&rig, extra);
    }
}

static void connection_beyond_the_limit_gets_a_503(void **state)
{
    struct http_server_fixture rig;
    (void)state;
    rig_init(&rig);
    rig.options.connections_max = 1;
    rig_start(&rig);
    int busy = dial(&rig);
    say(busy, GET("/late?x"));
    wait_until(&rig.held, 1);
    int extra = dial(&rig);
    assert_int_equal(status_of(hear_end(extra)), 503);
    (void)close(extra);
    rig_release(&rig);
    assert_int_equal(status_of(hear(busy, 1)), 200);
    rig_close(&rig, busy);
}

/* ---- M8: the memory of each listener ---- */

#define HALF_BYTES 20000
#define STALLED "POST /echo HTTP/1.1\r\n" HOST JSON "Content-Length: 100000\r\n\r\n"

static char half[HALF_BYTES];

static void stall(int fd)
{
    memset(half, 'h', sizeof half);
    say(fd, STALLED);
    say_bytes(fd, half, sizeof half);
}

/* Sends a request without its last byte, in two parts, so that the server must store it. */
static void begin_honest(int fd)
{
    say(fd, "POST /echo HTTP/1.1\r\n" HOST JSON "Content-Length: 20001\r\n\r\n");
    say_bytes(fd, half, sizeof half);
}

static void wait_for_bytes(const struct http_server_fixture *rig, uint64_t least)
{
    for (int i = 0; i < 20000 && rig_stats(rig).buffered_bytes < least; i++)
        (void)usleep(1000);
    assert_true(rig_stats(rig).buffered_bytes >= least);
}

static void stalled_bodies_at_one_listener_do_not_use_memory_of_another(void **state)
{
    enum {
        CLIENTS = 40
    };
    char folder[] = FOLDER, path[128], address[160];
    struct http_server_fixture rig;
    int fds[CLIENTS];
    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/s", folder);
    (void)snprintf(address, sizeof address, "unix:%s", path);
    rig_init(&rig);
    rig.listens[1].address = address;
    rig.options.listen_count = 2;
    rig.options.buffered_max = 512 << 10; /* 256 KiB for each listener */
    rig_start(&rig);
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = dial(&rig);
        stall(fds[i]);
    }
    wait_for_bytes(&rig, 200 << 10);
    int mine[7]; /* the number of clients that fit */
    for (int i = 0; i < 7; i++) {
        mine[i] = dial_unix(path);
        begin_honest(mine[i]);
    }
    wait_for_bytes(&rig, 400 << 10);
    assert_true(rig_stats(&rig).buffered_bytes <= rig.options.buffered_max);
    for (int i = 0; i < 7; i++) {
        say(mine[i], "!");
        assert_int_equal(status_of(hear(mine[i], 1)), 200);
        (void)close(mine[i]);
    }
    for (int i = 0; i < CLIENTS; i++)
        (void)close(fds[i]);
    rig_stop(&rig);
    assert_int_equal(rmdir(folder), 0);
}

/* Stalled requests at one listener do not keep newer ones out. */
static void longest_stalled_request_is_evicted_for_a_newer_one(void **state)
{
    enum {
        FIT = 8 /* requests of 32 KiB each */
    };
    struct http_server_fixture rig;
    int fds[FIT];
    (void)state;
    rig_init(&rig);
    rig.options.buffered_max = FIT * (32 << 10) + (16 << 10); /* one more request does not fit */
    rig_start(&rig);
    for (int i = 0; i < FIT; i++) {
        fds[i] = dial(&rig);
        stall(fds[i]);
        wait_for_bytes(&rig, ((uint64_t)i + 1) * (32 << 10));
        (void)usleep(3000); /* connections are ordered by milliseconds */
    }
    int mine = dial(&rig);
    begin_honest(mine);
    assert_int_equal(status_of(hear_end(fds[0])), 503);
    say(mine, "!");
    assert_int_equal(status_of(hear(mine, 1)), 200);
    for (int i = 0; i < FIT; i++)
        (void)close(fds[i]);
    rig_close(&rig, mine);
}

/* M8: clients that do not read their response do not keep newer requests out. A Unix socket itself
 * takes about 200 KB of the 4 MB. */
static void unread_response_is_evicted_for_a_newer_request(void **state)
{
    enum {
        FIT = 2,
        KEPT = 4 << 20 /* bytes of each response that the server holds */
    };
    char folder[] = FOLDER, path[128], address[160];
    struct http_server_fixture rig;
    int fds[FIT];
    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/s", folder);
    (void)snprintf(address, sizeof address, "unix:%s", path);
    rig_init(&rig);
    rig.listens[0].address = address;
    /* a request of 20 000 bytes does not fit beside them */
    rig.options.buffered_max = FIT * KEPT + (16 << 10);
    rig_start(&rig);
    for (int i = 0; i < FIT; i++) {
        fds[i] = dial_unix(path);
        say(fds[i], GET("/large"));
        wait_for_bytes(&rig, ((uint64_t)i + 1) * KEPT);
        (void)usleep(3000); /* connections are ordered by milliseconds */
    }
    int mine = dial_unix(path);
    memset(half, 'h', sizeof half);
    begin_honest(mine);
    for (int i = 0; i < 20000 && rig_stats(&rig).turned == 0; i++)
        (void)usleep(1000);
    assert_int_equal(rig_stats(&rig).turned, 1);
    say(mine, "!");
    assert_int_equal(status_of(hear(mine, 1)), 200);
    assert_true(strlen(hear_end(fds[0])) < KEPT);
    (void)close(fds[1]);
    rig_close(&rig, mine);
    assert_int_equal(rmdir(folder), 0);
}

/* ---- M12: bytes are not moved repeatedly ---- */

static atomic_size_t moved; /* bytes moved by memmove, which the linker wraps */

void *__real_memmove(void *to, const void *from, size_t bytes);
void *__wrap_memmove(void *to, const void *from, size_t bytes);

void *__wrap_memmove(void *to, const void *from, size_t bytes)
{
    (void)atomic_fetch_add(&moved, bytes);
    return __real_memmove(to, from, bytes);
}

/* Sends each byte after the server has read the one before: a Unix socket reports the unread
 * bytes. */
static void say_slowly(int fd, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        int unread = 1;
        say_bytes(fd, text + i, 1);
        while (unread > 0) {
            (void)sched_yield();
            assert_int_equal(ioctl(fd, SIOCOUTQ, &unread), 0);
        }
    }
}

static void request_arriving_byte_by_byte_is_not_moved_with_each_byte(void **state)
{
    static const char head[] = "POST /echo HTTP/1.1\r\n" HOST JSON "Content-Length: 4000\r\n\r\n";
    char folder[] = FOLDER, path[128], address[160], body[4000];
    struct http_server_fixture rig;
    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/socket", folder);
    (void)snprintf(address, sizeof address, "unix:%s", path);
    memset(body, 'x', sizeof body);
    rig_init(&rig);
    rig.listens[0].address = address;
    rig_start(&rig);
    int fd = dial_unix(path);
    atomic_store(&moved, 0);
    say_slowly(fd, head, sizeof head - 1);
    say_slowly(fd, body, sizeof body);
    assert_int_equal(status_of(hear(fd, 1)), 200);
    assert_true(atomic_load(&moved) < 8 * (sizeof head + sizeof body));
    rig_close(&rig, fd);
    (void)rmdir(folder);
}

WEIR_TESTS(test(request_without_memory_is_answered), test(evicted_request_gets_a_503),
           test(connection_beyond_the_limit_gets_a_503),
           test(stalled_bodies_at_one_listener_do_not_use_memory_of_another),
           test(longest_stalled_request_is_evicted_for_a_newer_one),
           test(unread_response_is_evicted_for_a_newer_request),
           test(request_arriving_byte_by_byte_is_not_moved_with_each_byte))
