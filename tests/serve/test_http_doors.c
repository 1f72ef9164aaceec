/* SPDX-License-Identifier: MIT */
/* test_http_doors.c - which clients and requests the HTTP server admits, and its time limits: J6,
 * J7, J10, J14. */
#include "serve/rig.h"

#include <grp.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/error.h>

#define HOST "Host: localhost\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"
#define FOLDER "/tmp/weir-test-XXXXXX"

/* ---- J7: requests that two programs could read differently ---- */

struct smuggled {
    const char *text;
    int status;
};

/* After each of these the client sends another request, which must never be answered. */
static const struct smuggled matrix[] = {
    {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
    {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n", 400},
    {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd", 400},
    {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd", 400},
    {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: +4\r\n\r\nabcd", 400},
    {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 4,4\r\n\r\nabcd", 400},
    {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 0x4\r\n\r\nabcd", 400},
    {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\nabcd", 400},
    {"POST /echo HTTP/1.1\r\n" HOST "Content-Length : 4\r\n\r\nabcd", 400},
    {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\nabcd", 501},
    {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 501},
    {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501},
    {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400},
    {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding:\x0b"
     "chunked\r\n\r\n0\r\n\r\n",
     400},
    {"POST /echo HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
    {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n", 400},
    {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n", 400},
    {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1\na\r\n0\r\n\r\n", 400},
    {"GET /ok HTTP/1.1\n" HOST "\r\n", 400},
    {"GET /ok HTTP/1.1\r\nHost: localhost\nX: y\r\n\r\n", 400},
    {"GET /ok HTTP/1.1\r\n" HOST "X: a\r\n b\r\n\r\n", 400},
    {"GET /ok HTTP/1.1\r\n" HOST "Host: other\r\n\r\n", 400},
    {"GET /ok HTTP/1.1\r\n\r\n", 400},
    {"GET /ok HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
    {"GET http://localhost/ok HTTP/1.1\r\n" HOST "\r\n", 400},
    {"get /ok HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET  /ok HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET /ok\r\n", 400},
    {"GET /ok HTTP/2.0\r\n" HOST "\r\n", 505},
    {"GET /ok HTTP/1.1\rX\r\n" HOST "\r\n", 400},
    {"GET /o\x01k HTTP/1.1\r\n" HOST "\r\n", 400},
    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
    {"\x16\x03\x01\x02\r\n\r\n", 400},
};

static void ambiguous_requests_are_refused_and_their_followers_never_read(void **state)
{
    struct http_server_fixture rig;
    (void)state;
    rig_init(&rig);
    rig_start(&rig);
    for (size_t i = 0; i < sizeof matrix / sizeof matrix[0]; i++) {
        for (int split = 0; split < 2; split++) {
            int fd = dial(&rig);
            size_t half = split == 0 ? 0 : strlen(matrix[i].text) / 2;
            say_bytes(fd, matrix[i].text, half);
            if (half > 0)
                (void)usleep(2000);
            say(fd, matrix[i].text + half);
            say(fd, GET("/query?smuggled"));
            const char *text = hear_end(fd);
            if (status_of(text) != matrix[i].status || count_of(text, "HTTP/1.1 ") != 1)
                fail_msg("row %zu: %s", i, text);
            assert_non_null(strstr(text, "Connection: close\r\n"));
            assert_non_null(strstr(text, "{\"error\": \""));
            assert_null(strstr(text, "smuggled"));
            (void)close(fd);
        }
    }
    assert_int_equal(rig_stats(&rig).requests, 0);
    rig_stop(&rig);
}

/* J7: the response can be read, although the client sent more than the server accepts. */
static void overlong_requests_are_answered_before_their_end(void **state)
{
    static const struct {
        const char *before, *after;
        size_t bytes;
        int status;
    } table[] = {
        {"GET /", " HTTP/1.1\r\n" HOST "\r\n", 65536, 414},
        {"GET /ok HTTP/1.1\r\n" HOST "X: ", "\r\n\r\n", 100000, 431},
        {"GET /ok HTTP/1.1\r\n" HOST "Content-Length: 2000000\r\n\r\n", "", 200000, 413},
    };
    static char filler[100001 * 2];
    struct http_server_fixture rig;
    (void)state;
    memset(filler, 'a', sizeof filler);
    rig_init(&rig);
    rig_start(&rig);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        int fd = dial(&rig);
        say(fd, table[i].before);
        say_bytes(fd, filler, table[i].bytes);
        say(fd, table[i].after);
        assert_int_equal(status_of(hear_end(fd)), table[i].status);
        (void)close(fd);
    }
    rig_stop(&rig);
}

/* J6: an endless chunked body on a GET. */
static void huge_body_is_refused_as_soon_as_it_is_too_large(void **state)
{
    static char chunk[65536 + 16];
    struct http_server_fixture rig;
    (void)state;
    int fd = rig_open(&rig);
    int head = snprintf(chunk, sizeof chunk, "10000\r\n");
    memset(chunk + head, 'b', 65536);
    memcpy(chunk + head + 65536, "\r\n", 2);
    say(fd, "GET /ok HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 40; i++)
        say_bytes(fd, chunk, (size_t)head + 65536 + 2);
    assert_int_equal(rig_stats(&rig).requests, 0);
    (void)close(fd);
    fd = dial(&rig);
    say(fd, "GET /ok HTTP/1.1\r\n" HOST "Content-Length: 2000000\r\n\r\n");
    assert_int_equal(status_of(hear_end(fd)), 413);
    rig_close(&rig, fd);
}

/* ---- J6: time limits and memory limits ---- */

static void heads_bodies_and_idle_connections_have_time_limits(void **state)
{
    static const char *const table[] = {
        "",                                     /* connects and sends nothing */
        "GET /ok HT",                           /* a head that does not end */
        "GET /ok HTTP/1.1\r\n" HOST "X: y\r\n", /* a head that does not end */
        /* bodies that do not end */
        "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\nabc",
        "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n",
    };
    enum {
        COUNT = sizeof table / sizeof table[0]
    };
    struct http_server_fixture rig;
    int fds[COUNT];
    (void)state;
    rig_init(&rig);
    rig.options.head_ns = rig.options.body_ns = rig.options.idle_ns =
        2 * WEIR_SECOND; /* from the connection to the last byte sent */
    rig_start(&rig);
    for (int i = 0; i < COUNT; i++) {
        fds[i] = dial(&rig);
        say(fds[i], table[i]);
    }
    int idle = dial(&rig);
    say(idle, GET("/ok"));
    (void)hear(idle, 1);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(status_of(hear_end(fds[i])), i == 0 ? 0 : 408);
        (void)close(fds[i]);
    }
    assert_true(is_hung_up(idle));
    (void)close(idle);
    assert_int_equal(rig_stats(&rig).late, COUNT);
    rig_stop(&rig);
}

/* A byte now and then does not extend the limit. */
static void slow_request_head_is_disconnected_despite_steady_bytes(void **state)
{
    struct http_server_fixture rig;
    int sent = 0;
    (void)state;
    rig_init(&rig);
    rig.options.head_ns = 300 * WEIR_MILLISECOND;
    rig_start(&rig);
    int fd = dial(&rig);
    say(fd, "GET /ok HTTP/1.1\r\nX: ");
    while (sent < 2000 && send(fd, "a", 1, MSG_NOSIGNAL) == 1) {
        (void)usleep(10000);
        sent++;
    }
    assert_true(sent < 2000);
    rig_close(&rig, fd);
}

static void oldest_idle_connection_is_evicted_and_busy_ones_stay(void **state)
{
    enum {
        MOST = 8
    };
    struct http_server_fixture rig;
    int fds[MOST];
    (void)state;
    rig_init(&rig);
    rig.options.connections_max = MOST;
    rig_start(&rig);
    for (int i = 0; i < MOST; i++) {
        fds[i] = dial(&rig);
        say(fds[i], i == 0 ? GET("/late?0") : GET("/ok"));
        if (i > 0)
            (void)hear(fds[i], 1);
        else
            wait_until(&rig.held, 1);
        (void)usleep(3000); /* connections are ordered by milliseconds */
    }
    int extra = dial(&rig);
    say(extra, GET("/ok"));
    assert_int_equal(status_of(hear(extra, 1)), 200);
    assert_true(is_hung_up(fds[1]));
    say(fds[2], GET("/ok"));
    assert_int_equal(status_of(hear(fds[2], 1)), 200);
    rig_release(&rig);
    assert_int_equal(status_of(hear(fds[0], 1)), 200);
    assert_int_equal(rig_stats(&rig).turned, 1);
    for (int i = 0; i < MOST; i++)
        (void)close(fds[i]);
    (void)close(extra);
    rig_stop(&rig);
}

/* J6: connections to one listener do not use up the places of another. */
static void connections_to_one_listener_do_not_crowd_out_another(void **state)
{
    enum {
        MOST = 8
    };
    char folder[] = FOLDER, path[128], address[160];
    struct http_server_fixture rig;
    int fds[4 * MOST];
    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/s", folder);
    (void)snprintf(address, sizeof address, "unix:%s", path);
    rig_init(&rig);
    rig.listens[1].address = address;
    rig.options.listen_count = 2;
    rig.options.connections_max = MOST;
    rig_start(&rig);
    int mine = dial_unix(path);
    say(mine, GET("/peer"));
    assert_non_null(strstr(hear(mine, 1), "\r\n\r\nunix:"));
    for (int i = 0; i < 4 * MOST; i++) {
        fds[i] = dial(&rig);
        say(fds[i], "GET /slow");
    }
    say(mine, GET("/ok"));
    assert_int_equal(status_of(hear(mine, 1)), 200);
    for (int i = 0; i < 4 * MOST; i++)
        (void)close(fds[i]);
    (void)close(mine);
    rig_stop(&rig);
    assert_int_equal(access(path, F_OK), -1); /* the server removed its socket */
    assert_int_equal(rmdir(folder), 0);
}

static void unfinished_requests_share_a_memory_limit(void **state)
{
    enum {
        CLIENTS = 40
    };
    static char half[20000];
    struct http_server_fixture rig;
    int fds[CLIENTS], refused = 0;
    (void)state;
    rig_init(&rig);
    rig.options.buffered_max = 256 << 10;
    rig_start(&rig);
    memset(half, 'h', sizeof half);
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = dial(&rig);
        say(fds[i], "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 100000\r\n\r\n");
        say_bytes(fds[i], half, sizeof half);
    }
    for (int i = 0; i < CLIENTS; i++) {
        char byte;
        (void)usleep(5000);
        refused += recv(fds[i], &byte, 1, MSG_DONTWAIT) >= 0;
        assert_true(rig_stats(&rig).buffered_bytes <= rig.options.buffered_max);
    }
    assert_true(refused > CLIENTS / 2 && refused < CLIENTS);
    for (int i = 0; i < CLIENTS; i++)
        (void)close(fds[i]);
    rig_stop(&rig);
}

/* ---- J14: Unix sockets ---- */

struct place {
    char folder[sizeof FOLDER], path[64], address[80];
    struct http_server_fixture rig;
};

static void place_set_up(struct place *place)
{
    memcpy(place->folder, FOLDER, sizeof FOLDER);
    assert_non_null(mkdtemp(place->folder));
    (void)snprintf(place->path, sizeof place->path, "%s/weir.sock", place->folder);
    (void)snprintf(place->address, sizeof place->address, "unix:%s", place->path);
    rig_init(&place->rig);
    place->rig.listens[0].address = place->address;
}

static void place_tear_down(struct place *place)
{
    (void)unlink(place->path);
    assert_int_equal(rmdir(place->folder), 0);
}

static void unix_socket_is_accessible_to_its_owner_by_default(void **state)
{
    static const mode_t modes[][2] = {{0, 0600}, {0660, 0660}, {0666, 0666}};
    struct place place;
    struct stat node;
    (void)state;
    (void)umask(0022);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        place_set_up(&place);
        place.rig.listens[0].mode = modes[i][0];
        rig_start(&place.rig);
        assert_int_equal(stat(place.path, &node), 0);
        assert_int_equal(node.st_mode & 0777, modes[i][1]);
        rig_stop(&place.rig);
        place_tear_down(&place);
    }
}

static void stale_socket_is_replaced_but_not_one_in_use_nor_a_file(void **state)
{
    struct place place;
    struct wr_http_server *second = NULL;
    (void)state;
    place_set_up(&place);
    rig_start(&place.rig);
    assert_int_equal(wr_http_server_new(&place.rig.options, &second), WEIR_E_SYSTEM);
    assert_non_null(strstr(weir_error_detail(), "in use"));
    char kept[80];
    (void)snprintf(kept, sizeof kept, "%s.kept", place.path);
    /* so that the server does not remove it when it stops */
    assert_int_equal(rename(place.path, kept), 0);
    rig_stop(&place.rig);
    assert_int_equal(rename(kept, place.path), 0);
    rig_start(&place.rig);
    int fd = dial_unix(place.path);
    say(fd, GET("/ok"));
    assert_int_equal(status_of(hear(fd, 1)), 200);
    (void)close(fd);
    rig_stop(&place.rig);
    FILE *file = fopen(place.path, "w");
    assert_non_null(file);
    (void)fclose(file);
    assert_int_equal(wr_http_server_new(&place.rig.options, &second), WEIR_E_INVAL);
    place_tear_down(&place);
}

/* Returns the status that another user gets who connects; 0: no response. */
static int status_for(const char *path, uid_t user, gid_t group)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        if (setgroups(1, &group) != 0 || setgid(group) != 0 || setuid(user) != 0)
            _exit(99);
        int fd = dial_unix(path);
        if (fd < 0)
            _exit(0);
        say(fd, GET("/ok"));
        _exit(status_of(hear_end(fd)) / 10);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status) * 10;
}

/* The mode of the file is checked, and the user at the other end, too: a descriptor may come from
 * anywhere. */
static void other_users_at_the_unix_socket_are_rejected(void **state)
{
    struct place place;
    const struct passwd *nobody = getpwnam("nobody");
    (void)state;
    if (geteuid() != 0 || nobody == NULL)
        SKIP("only root can connect as another user");
    uid_t user = nobody->pw_uid;
    gid_t group = nobody->pw_gid;
    const struct {
        struct wr_http_listen_options listen;
        int status;
    } table[] = {
        {{.mode = 0600}, 0},
        {{.mode = 0666}, 200},
        {{.mode = 0666, .has_user = true, .user = user}, 200},
        {{.mode = 0666, .has_user = true, .user = user + 1}, 0},
        {{.mode = 0660, .has_group = true, .group = group}, 200},
        {{.mode = 0660, .has_group = true, .group = group + 1}, 0},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        place_set_up(&place);
        assert_int_equal(chmod(place.folder, 0755), 0);
        place.rig.listens[0] = table[i].listen;
        place.rig.listens[0].address = place.address;
        place.rig.options.idle_ns = 100 * WEIR_MILLISECOND;
        rig_start(&place.rig);
        assert_int_equal(status_for(place.path, user, group), table[i].status);
        rig_stop(&place.rig);
        place_tear_down(&place);
    }
}

static void listening_socket_given_as_a_descriptor_is_used(void **state)
{
    struct http_server_fixture rig, other;
    (void)state;
    rig_init(&rig);
    rig_start(&rig);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    rig_init(&other);
    other.listens[0] = (struct wr_http_listen_options){.fd = listener, .has_fd = true};
    struct wr_http_server *none = NULL;
    assert_int_equal(wr_http_server_new(&other.options, &none), WEIR_E_INVAL); /* it does not listen */
    assert_int_equal(listen(listener, 16), 0);
    rig_start(&other);
    int fd = dial(&other);
    say(fd, GET("/peer"));
    assert_non_null(strstr(hear(fd, 1), "\r\n\r\n127.0.0.1"));
    (void)close(fd);
    rig_stop(&other);
    rig_stop(&rig);
}

static void invalid_listening_addresses_are_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        "8080",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:x",
        "127.0.0.1:65536",
        "example.org:80",
        "::1:80",
        "[::1]",
        "[127.0.0.1]:80",
        "unix:",
        "[::1:80",
        "127.1:80",
        "127.0.0.1:-1",
        "127.0.0.1: 80",
    };
    struct http_server_fixture rig;
    struct wr_http_server *server = NULL;
    (void)state;
    rig_init(&rig);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        rig.listens[0].address = wrong[i];
        if (wr_http_server_new(&rig.options, &server) != WEIR_E_INVAL)
            fail_msg("%s", wrong[i]);
        assert_non_null(strstr(weir_error_detail(), "listening address"));
    }
    static const char *const right[] = {":0", "localhost:0", "127.0.0.1:0", "[::1]:0"};
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        rig.listens[0].address = right[i];
        int error = wr_http_server_new(&rig.options, &server);
        /* the machine may have no IPv6 */
        assert_true(error == 0 || (i == 3 && error == WEIR_E_SYSTEM));
        if (error == 0)
            wr_http_server_free(server);
    }
}

/* ---- J10: tokens ---- */

static void bearer_token_must_match_exactly(void **state)
{
    static const struct {
        const char *fields;
        int status;
    } table[] = {
        {"", 401},
        {"Authorization: Bearer s3cret\r\n", 204},
        /* RFC 9110 11.1: the scheme is case-insensitive */
        {"Authorization: bearer s3cret\r\n", 204},
        {"Authorization: Basic s3cret\r\n", 401},
        {"Authorization: Bearer s3creT\r\n", 401},
        {"Authorization: Bearer s3cret2\r\n", 401},
        {"Authorization: Bearer s3cre\r\n", 401},
        {"Authorization: Bearer \r\n", 401},
        {"Authorization: Basic s3cret\r\n", 401},
        {"Authorization: s3cret\r\n", 401},
    };
    struct http_server_fixture rig;
    char text[512];
    (void)state;
    int fd = rig_open(&rig);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        (void)snprintf(text, sizeof text, "GET /token HTTP/1.1\r\n" HOST "%s\r\n", table[i].fields);
        say(fd, text);
        if (status_of(hear(fd, 1)) != table[i].status)
            fail_msg("row %zu", i);
    }
    rig_close(&rig, fd);
}

WEIR_TESTS(test(ambiguous_requests_are_refused_and_their_followers_never_read),
           test(overlong_requests_are_answered_before_their_end), test(huge_body_is_refused_as_soon_as_it_is_too_large),
           test(heads_bodies_and_idle_connections_have_time_limits),
           test(slow_request_head_is_disconnected_despite_steady_bytes),
           test(oldest_idle_connection_is_evicted_and_busy_ones_stay),
           test(connections_to_one_listener_do_not_crowd_out_another), test(unfinished_requests_share_a_memory_limit),
           test(unix_socket_is_accessible_to_its_owner_by_default),
           test(stale_socket_is_replaced_but_not_one_in_use_nor_a_file),
           test(other_users_at_the_unix_socket_are_rejected), test(listening_socket_given_as_a_descriptor_is_used),
           test(invalid_listening_addresses_are_refused), test(bearer_token_must_match_exactly))
