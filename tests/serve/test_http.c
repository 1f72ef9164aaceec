/* SPDX-License-Identifier: MIT */
/* test_http.c - the HTTP server: requests in pieces, responses at once and later, streams, and
 * stopping. */
#include "serve/rig.h"

#include "base/list.h"
#include "serve/server/http_server_internal.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define HOST "Host: localhost\r\n"
#define JSON "Content-Type: application/json\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"

static void connection_is_kept_for_the_next_request(void **state)
{
    struct http_server_fixture rig;
    (void)state;
    int fd = rig_open(&rig);
    for (int i = 0; i < 3; i++) {
        say(fd, GET("/ok"));
        const char *text = hear(fd, 1);
        assert_int_equal(status_of(text), 200);
        assert_non_null(strstr(text, "Content-Length: 3\r\n"));
        assert_non_null(strstr(text, "\r\nDate: "));
        assert_null(strstr(text, "Connection:"));
        assert_non_null(strstr(text, "\r\n\r\nok\n"));
    }
    assert_int_equal(rig_stats(&rig).requests, 3);
    assert_int_equal(rig_stats(&rig).accepted, 1);
    rig_close(&rig, fd);
}

/* Requests about the lifetime of the connection, the field in the response, and whether the server
 * closes. */
static void client_decides_whether_its_connection_is_kept(void **state)
{
    static const struct {
        const char *request, *says;
        bool closes;
    } table[] = {
        {"GET /ok HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", "Connection: close\r\n", true},
        {"GET /ok HTTP/1.0\r\n\r\n", "Connection: close\r\n", true},
        {"GET /ok HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "Connection: keep-alive\r\n", false},
    };
    struct http_server_fixture rig;
    (void)state;
    rig_init(&rig);
    rig_start(&rig);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        int fd = dial(&rig);
        say(fd, table[i].request);
        const char *text = table[i].closes ? hear_end(fd) : hear(fd, 1);
        assert_int_equal(status_of(text), 200);
        assert_non_null(strstr(text, table[i].says));
        (void)close(fd);
    }
    rig_stop(&rig);
}

static void responses_without_a_body_send_none(void **state)
{
    struct http_server_fixture rig;
    (void)state;
    int fd = rig_open(&rig);
    say(fd, GET("/empty") "HEAD /ok HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
    const char *text = hear_end(fd);
    assert_int_equal(status_of(text), 204);
    const char *second = strstr(text, "HTTP/1.1 200");
    assert_non_null(second);
    /* RFC 9110 8.6: a 204 has no Content-Length */
    assert_true(strstr(text, "Content-Length") > second);
    assert_non_null(strstr(second, "Content-Length: 3\r\n"));
    assert_null(strstr(text, "ok\n"));
    rig_close(&rig, fd);
}

static void request_may_arrive_byte_by_byte(void **state)
{
    static const char text[] = "POST /echo?a=b HTTP/1.1\r\n" HOST JSON "Content-Length: 5\r\n\r\nhello"
                               "POST /echo HTTP/1.1\r\n" HOST JSON "Transfer-Encoding: chunked\r\n\r\n"
                               "3;x=y\r\nabc\r\n4\r\ndefg\r\n0\r\nX-T: 1\r\n\r\n" GET("/query?q=1");
    struct http_server_fixture rig;
    (void)state;
    int fd = rig_open(&rig);
    for (size_t i = 0; i < sizeof text - 1; i++) {
        say_bytes(fd, text + i, 1);
        (void)usleep(100);
    }
    const char *got = hear(fd, 3);
    assert_non_null(strstr(got, "\r\n\r\nhello"));
    assert_non_null(strstr(got, "\r\n\r\nabcdefg"));
    assert_non_null(strstr(got, "\r\n\r\nq=1"));
    rig_close(&rig, fd);
}

static void chunks_that_arrive_together_are_joined(void **state)
{
    struct http_server_fixture rig;
    (void)state;
    int fd = rig_open(&rig);
    say(fd, "POST /echo HTTP/1.1\r\n" HOST JSON "Transfer-Encoding: chunked\r\n\r\n"
            "1\r\na\r\n2\r\nbc\r\n0\r\n\r\n" GET("/ok"));
    const char *got = hear(fd, 2);
    assert_non_null(strstr(got, "\r\n\r\nabcHTTP/1.1 200 OK"));
    rig_close(&rig, fd);
}

static void expect_100_continue_is_answered(void **state)
{
    struct http_server_fixture rig;
    (void)state;
    int fd = rig_open(&rig);
    say(fd, "POST /echo HTTP/1.1\r\n" HOST JSON "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    assert_int_equal(status_of(hear(fd, 1)), 100);
    say(fd, "hi");
    assert_non_null(strstr(hear(fd, 1), "\r\n\r\nhi"));
    say(fd, "POST /echo HTTP/1.1\r\n" HOST JSON "Expect: 100-continue\r\nContent-Length: 2\r\n\r\nhi");
    assert_int_equal(status_of(hear(fd, 1)), 200); /* the body was there already */
    say(fd, "POST /echo HTTP/1.1\r\n" HOST JSON "Expect: 100-continue\r\nContent-Length: 2000000\r\n\r\n");
    assert_int_equal(status_of(hear_end(fd)), 413); /* the client does not need to send the body */
    rig_close(&rig, fd);
}

/* J6: pipelined requests are answered in order. */
static void ten_thousand_pipelined_requests_are_answered_in_order(void **state)
{
    enum {
        COUNT = 10000
    };
    static char all[COUNT * 64];
    struct wr_buf buf;
    struct http_server_fixture rig;
    (void)state;
    int fd = rig_open(&rig);
    wr_buf_init_fixed(&buf, all, sizeof all);
    for (uint64_t i = 0; i < COUNT; i++) {
        wr_buf_append_string(&buf, "GET /query?_");
        wr_buf_append_u64(&buf, i);
        wr_buf_append_string(&buf, "_ HTTP/1.1\r\n" HOST "\r\n");
    }
    assert_int_equal(buf.error, 0);
    /* the child writes while this process reads, so that neither blocks the other */
    if (fork() == 0) {
        say_bytes(fd, all, buf.length);
        _exit(0);
    }
    const char *text = hear(fd, COUNT);
    for (uint64_t i = 0; i < COUNT; i++) {
        char word[32];
        (void)snprintf(word, sizeof word, "\r\n\r\n_%u_", (unsigned)i);
        text = strstr(text, word);
        assert_non_null(text);
    }
    rig_close(&rig, fd);
}

/* Takes half of a loop's time slice for each response. */
static void answer_slowly(void *context, struct wr_http_exchange *exchange)
{
    int64_t until = weir_clock_now(weir_clock_monotonic()) + WEIR_MILLISECOND;
    (void)context;
    while (weir_clock_now(weir_clock_monotonic()) < until)
        continue;
    wr_http_reply(exchange, 204, WR_HTTP_NOTHING, WR_HTTP_NOTHING);
}

/* The client sends nothing more that would wake the loop: it waits for all responses. */
static void pipelined_requests_over_many_loop_rounds_are_answered(void **state)
{
    enum {
        COUNT = 40
    };
    struct http_server_fixture rig;
    (void)state;
    rig_init(&rig);
    rig.options.answer = answer_slowly;
    rig_start(&rig);
    int fd = dial(&rig);
    char text[COUNT * 64] = "";
    for (int i = 0; i < COUNT; i++)
        (void)strcat(text, "GET /ok HTTP/1.1\r\nHost: localhost\r\n\r\n");
    say(fd, text);
    const char *answers = hear(fd, COUNT);
    assert_int_equal(count_of(answers, "HTTP/1.1 204 "), COUNT);
    rig_close(&rig, fd);
}

/* J6: the server does not read from a client that does not read. */
static void client_that_never_reads_is_throttled_and_then_disconnected(void **state)
{
    struct http_server_fixture rig;
    struct wr_http_server_stats stats;
    (void)state;
    rig_init(&rig);
    rig.options.send_ns = 500 * WEIR_MILLISECOND;
    rig_start(&rig);
    int fd = dial(&rig);
    for (int i = 0; i < 20; i++)
        say(fd, GET("/large"));
    for (int i = 0; i < 20000; i++) {
        stats = rig_stats(&rig);
        assert_true(stats.buffered_bytes <= (size_t)9 << 20); /* one response, never twenty */
        if (stats.late == 1)
            break;
        (void)usleep(1000);
    }
    assert_int_equal(stats.late, 1);
    assert_true(stats.requests < 20);
    rig_close(&rig, fd);
}

static void large_responses_are_sent_as_they_are_read(void **state)
{
    struct http_server_fixture rig;
    (void)state;
    int fd = rig_open(&rig);
    say(fd, GET("/large") GET("/query?end"));
    (void)usleep(50000); /* by now the kernel's buffers are full and the rest waits in the server */
    const char *text = hear(fd, 2);
    assert_true(strlen(text) > (size_t)4 << 20);
    assert_non_null(strstr(text, "xHTTP/1.1 200 OK"));
    rig_close(&rig, fd);
}

/* ---- delayed responses ---- */

static void delayed_response_delays_later_ones_on_its_connection(void **state)
{
    struct http_server_fixture rig;
    (void)state;
    int fd = rig_open(&rig);
    say(fd, GET("/late?first") GET("/late?second") GET("/ok"));
    wait_until(&rig.held, 1);
    int other = dial(&rig); /* other connections do not wait */
    say(other, GET("/ok"));
    assert_int_equal(status_of(hear(other, 1)), 200);
    assert_int_equal(atomic_load(&rig.held), 1);
    rig_release(&rig);
    assert_non_null(strstr(hear(fd, 1), "\r\n\r\nfirst"));
    wait_until(&rig.held, 2);
    say(fd, GET("/ok"));
    rig_release(&rig);
    const char *text = hear(fd, 3);
    assert_non_null(strstr(text, "\r\n\r\nsecond"));
    assert_int_equal(count_of(text, "\r\n\r\nok\n"), 2);
    (void)close(fd);
    (void)close(other);
    rig_stop(&rig);
}

/* K3: the owner of a held exchange learns that its client is gone. */
static void client_that_leaves_before_its_response_is_reported(void **state)
{
    struct http_server_fixture rig;
    (void)state;
    int fd = rig_open(&rig);
    say(fd, GET("/late?x"));
    wait_until(&rig.held, 1);
    (void)close(fd);
    wait_until(&rig.gone, 1);
    rig_stop(&rig);
}

/* K3: a server that stops ends every held exchange. */
static void stopping_server_ends_all_unanswered_exchanges(void **state)
{
    struct http_server_fixture rig;
    (void)state;
    int fd = rig_open(&rig);
    say(fd, GET("/late?x"));
    wait_until(&rig.held, 1);
    wr_http_server_stop(rig.server, 0);
    assert_int_equal(atomic_load(&rig.gone), 1);
    assert_int_equal(status_of(hear_end(fd)), 503);
    rig_close(&rig, fd);
}

static void *stop_gently(void *server)
{
    wr_http_server_stop(server, 20 * WEIR_SECOND);
    return NULL;
}

static void stopping_server_answers_pending_requests(void **state)
{
    struct http_server_fixture rig;
    pthread_t thread;
    (void)state;
    int fd = rig_open(&rig), idle = dial(&rig);
    say(idle, GET("/ok"));
    (void)hear(idle, 1);
    say(fd, GET("/late?x"));
    wait_until(&rig.held, 1);
    assert_int_equal(pthread_create(&thread, NULL, stop_gently, rig.server), 0);
    assert_true(is_hung_up(idle));
    rig_release(&rig);
    const char *text = hear_end(fd);
    assert_int_equal(status_of(text), 200);
    assert_non_null(strstr(text, "Connection: close\r\n"));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(atomic_load(&rig.gone), 0);
    (void)close(fd);
    (void)close(idle);
    rig_stop(&rig);
}

/* ---- streams ---- */

static void stream_delivers_what_is_written_and_ends_with_the_server(void **state)
{
    struct http_server_fixture rig;
    (void)state;
    int fd = rig_open(&rig);
    say(fd, GET("/stream"));
    wait_until(&rig.held, 1);
    assert_int_equal(rig_stats(&rig).streams, 1);
    assert_int_equal(rig_stream(&rig, wr_span_of("data: 1\n\n")), 0);
    assert_int_equal(rig_stream(&rig, wr_span_of("data: 2\n\n")), 0);
    wr_http_server_stop(rig.server, 20 * WEIR_SECOND);
    const char *text = hear_end(fd);
    assert_int_equal(status_of(text), 200);
    assert_null(strstr(text, "Content-Length"));
    assert_non_null(strstr(text, "\r\n\r\ndata: 1\n\ndata: 2\n\n"));
    assert_int_equal(atomic_load(&rig.gone), 1);
    rig_close(&rig, fd);
}

static void stream_accepts_a_piece_of_any_size_if_the_last_was_read(void **state)
{
    static char piece[1 << 20];
    struct http_server_fixture rig;
    (void)state;
    rig_init(&rig);
    rig.options.stream_max = 4096;
    rig_start(&rig);
    int fd = dial(&rig);
    say(fd, GET("/stream"));
    wait_until(&rig.held, 1);
    memset(piece, 'z', sizeof piece);
    assert_int_equal(rig_stream(&rig, (struct wr_span){piece, sizeof piece}), 0);
    size_t heard = 0;
    while (heard < sizeof piece) {
        ssize_t got = hear_some(fd, piece, sizeof piece);
        assert_true(got > 0);
        heard += (size_t)got;
    }
    (void)close(fd);
    rig_stop(&rig);
}

static void stream_whose_reader_stalls_is_bounded_and_then_ended(void **state)
{
    static char piece[32768];
    struct http_server_fixture rig;
    int error = 0;
    (void)state;
    rig_init(&rig);
    rig.options.send_ns = 500 * WEIR_MILLISECOND;
    rig_start(&rig);
    int fd = dial(&rig);
    say(fd, GET("/stream"));
    wait_until(&rig.held, 1);
    memset(piece, 'y', sizeof piece);
    for (int i = 0; i < 10000 && error == 0; i++)
        error = rig_stream(&rig, (struct wr_span){piece, sizeof piece});
    assert_int_equal(error, WEIR_E_FULL);
    assert_true(rig_stats(&rig).buffered_bytes <= 2 * rig.options.stream_max);
    wait_until(&rig.gone, 1);
    assert_int_equal(rig_stats(&rig).late, 1);
    rig_close(&rig, fd);
}

static void http_server_loop_receives_ticks(void **state)
{
    struct http_server_fixture rig;
    (void)state;
    rig_init(&rig);
    rig_start(&rig);
    wait_until(&rig.ticks, 3);
    rig_stop(&rig);
}

static void several_server_loops_share_the_connections(void **state)
{
    enum {
        CLIENTS = 200
    };
    struct http_server_fixture rig;
    int fds[CLIENTS];
    (void)state;
    rig_init(&rig);
    rig.options.loops = 4;
    rig_start(&rig);
    for (int i = 0; i < CLIENTS; i++)
        fds[i] = dial(&rig);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < CLIENTS; i++)
            say(fds[i], GET("/ok"));
    for (int i = 0; i < CLIENTS; i++) {
        assert_int_equal(count_of(hear(fds[i], 3), "\r\n\r\nok\n"), 3);
        (void)close(fds[i]);
    }
    assert_int_equal(rig_stats(&rig).requests, 3 * CLIENTS);
    rig_stop(&rig);
}

/* ---- few descriptors ---- */

/* Takes descriptors until `left` are left, at most `most`. Returns how many it took. */
static size_t take_descriptors(size_t left, int *ret_taken, size_t most)
{
    size_t count = 0;
    while (count < most && (ret_taken[count] = dup(STDERR_FILENO)) >= 0)
        count++;
    assert_true(count < most && count > left && errno == EMFILE);
    for (; left > 0; left--)
        (void)close(ret_taken[--count]);
    return count;
}

static void connection_with_the_last_descriptor_is_served(void **state)
{
    enum {
        FILES = 256
    };
    struct rlimit before, few;
    struct http_server_fixture rig;
    int taken[FILES];
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){FILES, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    rig_init(&rig);
    rig_start(&rig);
    size_t count = take_descriptors(2, taken, FILES);
    for (int i = 0; i < 3; i++) {
        int fd = dial(&rig);
        say(fd, GET("/ok"));
        assert_int_equal(status_of(hear(fd, 1)), 200);
        (void)close(fd);
        while (rig_stats(&rig).connections > 0)
            (void)usleep(1000);
    }
    while (count > 0)
        (void)close(taken[--count]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    rig_stop(&rig);
}

/* ---- handover to another process ---- */

struct handover {
    struct http_server_fixture rig;
    struct wr_http_posted_call halt;
    sem_t goes_on;
    size_t given, asked; /* number of connections, and bytes of their unanswered requests */
};

static void wait_for_all(struct wr_http_posted_call *note)
{
    (void)sem_wait(&WR_LINKED(note, struct handover, halt)->goes_on);
}

static void *freeze(void *server)
{
    wr_http_server_freeze(server);
    return NULL;
}

static void wait_for_frost(struct wr_http_server *server)
{
    for (bool is_frozen = false; !is_frozen; (void)usleep(100)) {
        (void)pthread_mutex_lock(&server->freeze_lock);
        is_frozen = server->is_frozen;
        (void)pthread_mutex_unlock(&server->freeze_lock);
    }
}

static void count_baggage(void *context, const struct wr_http_conn_state *baggage)
{
    struct handover *handover = context;
    handover->given++;
    handover->asked += baggage->in.bytes;
}

/* A reply and the freeze meet in either order: the other process receives exactly the requests that
 * were not answered here. */
static void request_is_answered_once_before_or_after_a_handover(void **state)
{
    (void)state;
    for (int frost_first = 0; frost_first < 2; frost_first++) {
        struct handover handover = {.halt = {.run = wait_for_all}};
        struct http_server_fixture *rig = &handover.rig;
        pthread_t thread;
        rig_init(rig);
        rig_start(rig);
        assert_int_equal(sem_init(&handover.goes_on, 0, 0), 0);
        int fd = dial(rig);
        say(fd, GET("/late"));
        wait_until(&rig->held, 1);
        wr_http_post(wr_http_server_loop(rig->server, 0), &handover.halt);
        if (!frost_first)
            rig_release(rig);
        assert_int_equal(pthread_create(&thread, NULL, freeze, rig->server), 0);
        wait_for_frost(rig->server);
        if (frost_first)
            rig_release(rig);
        (void)sem_post(&handover.goes_on);
        (void)pthread_join(thread, NULL);
        wr_http_server_each_conn(rig->server, count_baggage, &handover);
        wr_http_server_abandon(rig->server);
        wr_http_server_free(rig->server);
        assert_int_equal(handover.given, 1);
        assert_int_equal(count_of(hear_end(fd), "HTTP/1.1 200"), handover.asked == 0);
        (void)sem_destroy(&handover.goes_on);
        (void)close(fd);
    }
}

/* Copies a connection into the next server, as another process would receive it. */
static void adopt(void *next, const struct wr_http_conn_state *baggage)
{
    struct wr_http_conn_state luggage = *baggage;
    luggage.fd = dup(baggage->fd);
    wr_http_server_adopt_conn(next, &luggage);
}

static void half_sent_response_continues_after_a_handover(void **state)
{
    (void)state;
    static const char *const questions[] = {GET("/large"), "GET /large HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n"};
    for (int closes = 0; closes < 2; closes++) {
        struct http_server_fixture rig, next;
        const int little = 65536; /* the rest of the response waits in the server */
        int fd = rig_open(&rig);
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof little), 0);
        rig_init(&next);
        assert_int_equal(wr_http_server_new(&next.options, &next.server), 0);
        say(fd, questions[closes]);
        while (rig_stats(&rig).buffered_bytes == 0)
            (void)usleep(1000);
        wr_http_server_freeze(rig.server);
        wr_http_server_each_conn(rig.server, adopt, next.server);
        wr_http_server_abandon(rig.server);
        wr_http_server_free(rig.server);
        assert_int_equal(wr_http_server_start(next.server), 0);
        assert_true(strlen(closes ? hear_end(fd) : hear(fd, 1)) > (size_t)4 << 20);
        if (!closes) {
            say(fd, GET("/ok"));
            assert_int_equal(status_of(hear(fd, 1)), 200);
        }
        (void)close(fd);
        while (rig_stats(&next).connections > 0)
            (void)usleep(1000);
        rig_stop(&next);
    }
}

WEIR_TESTS(test(connection_is_kept_for_the_next_request), test(client_decides_whether_its_connection_is_kept),
           test(responses_without_a_body_send_none), test(request_may_arrive_byte_by_byte),
           test(chunks_that_arrive_together_are_joined), test(expect_100_continue_is_answered),
           test(ten_thousand_pipelined_requests_are_answered_in_order),
           test(pipelined_requests_over_many_loop_rounds_are_answered),
           test(client_that_never_reads_is_throttled_and_then_disconnected),
           test(large_responses_are_sent_as_they_are_read), test(delayed_response_delays_later_ones_on_its_connection),
           test(client_that_leaves_before_its_response_is_reported),
           test(stopping_server_ends_all_unanswered_exchanges), test(stopping_server_answers_pending_requests),
           test(stream_delivers_what_is_written_and_ends_with_the_server),
           test(stream_accepts_a_piece_of_any_size_if_the_last_was_read),
           test(stream_whose_reader_stalls_is_bounded_and_then_ended), test(http_server_loop_receives_ticks),
           test(several_server_loops_share_the_connections), test(connection_with_the_last_descriptor_is_served),
           test(request_is_answered_once_before_or_after_a_handover),
           test(half_sent_response_continues_after_a_handover))
