/* SPDX-License-Identifier: MIT */
/* test_http_pages.c - the server refuses exactly the requests that a page of another origin can
 * make a browser send. */
#include "serve/rig.h"

#include <unistd.h>

#define HOST "Host: localhost\r\n"
#define FOLDER "/tmp/weir-pages-XXXXXX"

struct asked {
    const char *line, *fields, *body;
    int status;
};

static void ask_each(int fd, const struct asked *table, size_t count)
{
    char text[1024];
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(text, sizeof text, "%s\r\n%sContent-Length: %zu\r\n\r\n%s", table[i].line, table[i].fields,
                       strlen(table[i].body), table[i].body);
        say(fd, text);
        int status = status_of(hear(fd, 1));
        if (status != table[i].status)
            fail_msg("row %zu: %d", i, status);
    }
}

static void cross_origin_requests_are_refused_on_every_path(void **state)
{
    static const char *const paths[] = {"/ok", "/late", "/stream", "/nothing", "/"};
    static const struct {
        const char *fields;
        int is_ours;
    } table[] = {
        {"Host: localhost\r\n", 1},
        {"Host: LocalHost:8080\r\n", 1},
        {"Host: 127.0.0.1:8080\r\n", 1},
        {"Host: [::1]:8080\r\n", 1},
        {"Host: 192.0.2.7\r\n", 1}, /* an address cannot be rebound like a name */
        {"Host: weir.example:1\r\n", 1},
        {"Host: WEIR.example\r\n", 1},
        {"Host: evil.example\r\n", 0},
        {"Host: localhost.evil.example\r\n", 0},
        {"Host: 127.0.0.1.evil.example\r\n", 0},
        {"Host: evil.weir.example\r\n", 0},
        {"Host: evil.example:80\r\nOrigin: http://evil.example:80\r\n", 0},
        {"Host: localhost:80\r\nOrigin: http://localhost:80\r\n", 1},
        {"Host: localhost\r\nOrigin: https://localhost\r\n", 1},
        {"Host: localhost\r\nOrigin: http://localhost:81\r\n", 0},
        {"Host: localhost\r\nOrigin: http://evil.example\r\n", 0},
        {"Host: localhost\r\nOrigin: null\r\n", 0},
        {"Host: localhost\r\nOrigin: \r\n", 0},
        {"Host: localhost\r\nOrigin: http://localhost\r\nOrigin: http://evil.example\r\n", 0},
        {"Host: localhost\r\nSec-Fetch-Site: same-origin\r\n", 1},
        {"Host: localhost\r\nSec-Fetch-Site: none\r\n", 1},
        {"Host: localhost\r\nSec-Fetch-Site: same-site\r\n", 0},
        {"Host: localhost\r\nSec-Fetch-Site: cross-site\r\n", 0},
        {"Host: localhost\r\nSec-Fetch-Site: \r\n", 0},
        {"Host: localhost\r\nSec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site\r\n", 0},
        {"Host: localhost\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n", 0},
    };
    struct http_server_fixture rig;
    char text[512];
    uint64_t refused = 0;
    (void)state;
    rig_init(&rig);
    rig_start(&rig);
    for (size_t path = 0; path < sizeof paths / sizeof paths[0]; path++)
        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
            if (table[i].is_ours && path > 0)
                continue; /* other tests check these responses */
            int fd = dial(&rig);
            (void)snprintf(text, sizeof text, "GET %s HTTP/1.1\r\n%s\r\n", paths[path], table[i].fields);
            say(fd, text);
            if ((status_of(hear(fd, 1)) == 403) == table[i].is_ours)
                fail_msg("%s, row %zu", paths[path], i);
            refused += !table[i].is_ours;
            (void)close(fd);
        }
    assert_int_equal(rig_stats(&rig).foreign, refused);
    assert_int_equal(atomic_load(&rig.held), 0);
    rig_stop(&rig);
}

/* A link on a foreign page may lead to the start page only. */
static void link_on_a_foreign_page_reaches_the_start_page_only(void **state)
{
#define LINK HOST "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n"
    static const struct asked table[] = {
        {"GET / HTTP/1.1", LINK "Sec-Fetch-Dest: document\r\n", "", 204},
        {"GET /?a HTTP/1.1", LINK "Sec-Fetch-Dest: document\r\n", "", 204},
        {"GET /ok HTTP/1.1", LINK "Sec-Fetch-Dest: document\r\n", "", 403},
        {"GET / HTTP/1.1", LINK "Sec-Fetch-Dest: iframe\r\n", "", 403},
        {"GET / HTTP/1.1", LINK "Sec-Fetch-Dest: document\r\nOrigin: http://evil.example\r\n", "", 403},
        {"POST / HTTP/1.1", LINK "Sec-Fetch-Dest: document\r\n", "", 403},
        {"GET / HTTP/1.1", HOST "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: document\r\n",
         "", 403},
        {"GET / HTTP/1.1", "Host: evil.example\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n", "", 403},
    };
    struct http_server_fixture rig;
    (void)state;
    int fd = rig_open(&rig);
    ask_each(fd, table, sizeof table / sizeof table[0]);
    rig_close(&rig, fd);
}

static void body_types_that_a_form_can_post_are_refused(void **state)
{
    static const struct asked table[] = {
        {"POST /echo HTTP/1.1", HOST "Content-Type: application/json\r\n", "{}", 200},
        {"POST /echo HTTP/1.1", HOST "Content-Type: Application/JSON;charset=utf-8\r\n", "{}", 200},
        {"POST /echo HTTP/1.1", HOST "Content-Type: application/json ; a=b\r\n", "{}", 200},
        {"POST /echo HTTP/1.1", HOST "Content-Type: text/plain\r\n", "{}", 415},
        {"POST /echo HTTP/1.1", HOST "Content-Type: application/x-www-form-urlencoded\r\n", "{}", 415},
        {"POST /echo HTTP/1.1", HOST "Content-Type: multipart/form-data; boundary=application/json\r\n", "{}", 415},
        {"POST /echo HTTP/1.1", HOST "Content-Type: application/jsonp\r\n", "{}", 415},
        {"POST /echo HTTP/1.1", HOST "Content-Type: text/plain; application/json\r\n", "{}", 415},
        {"POST /echo HTTP/1.1", HOST "Content-Type: application/json\r\nContent-Type: text/plain\r\n", "{}", 415},
        {"POST /echo HTTP/1.1", HOST "Content-Type: \r\n", "{}", 415},
        {"POST /echo HTTP/1.1", HOST, "{}", 415}, /* a page can post a body without a type */
        {"GET /ok HTTP/1.1", HOST, "x", 415},
        /* there is no body */
        {"POST /echo HTTP/1.1", HOST "Content-Type: text/plain\r\n", "", 200},
        {"POST /echo HTTP/1.1", HOST, "", 200},
    };
    struct http_server_fixture rig;
    (void)state;
    int fd = rig_open(&rig);
    ask_each(fd, table, sizeof table / sizeof table[0]);
    rig_close(&rig, fd);
}

/* A proxy forwards its client's Origin and Sec-Fetch fields; but the Host of its request is its
 * own. */
static bool speaks(void *context, const struct wr_http_exchange *exchange)
{
    struct wr_span value;
    uint32_t cursor = 0;
    (void)context;
    return wr_request_find(exchange->request, "x-proxied", &cursor, &value);
}

static void fields_forwarded_by_a_proxy_are_not_held_against_it(void **state)
{
#define PROXIED HOST "X-Proxied: 1\r\n"
    static const struct asked table[] = {
        {"GET /ok HTTP/1.1", PROXIED "Origin: http://evil.example\r\n", "", 200},
        {"GET /ok HTTP/1.1", PROXIED "Sec-Fetch-Site: cross-site\r\n", "", 200},
        {"POST /echo HTTP/1.1", PROXIED "Content-Type: text/plain\r\n", "x", 200},
        {"GET /ok HTTP/1.1", "Host: evil.example\r\nX-Proxied: 1\r\n", "", 403},
        {"GET /ok HTTP/1.1", HOST "Origin: http://evil.example\r\n", "", 403},
    };
    struct http_server_fixture rig;
    (void)state;
    rig_init(&rig);
    rig.options.speaks = speaks;
    rig_start(&rig);
    int fd = dial(&rig);
    ask_each(fd, table, sizeof table / sizeof table[0]);
    rig_close(&rig, fd);
}

/* No browser uses a Unix socket, and old clients send no Host. */
static void requests_that_no_browser_sends_are_admitted_by_any_host(void **state)
{
    char folder[] = FOLDER, path[128], address[160];
    struct http_server_fixture rig;
    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/s", folder);
    (void)snprintf(address, sizeof address, "unix:%s", path);
    rig_init(&rig);
    rig.listens[1].address = address;
    rig.options.listen_count = 2;
    rig_start(&rig);
    int near = dial_unix(path), old = dial(&rig);
    say(near, "GET /ok HTTP/1.1\r\nHost: weir\r\n\r\n");
    assert_int_equal(status_of(hear(near, 1)), 200);
    say(near, "GET /ok HTTP/1.1\r\nHost: weir\r\nOrigin: http://evil.example\r\n\r\n");
    assert_int_equal(status_of(hear(near, 1)), 403);
    say(old, "GET /ok HTTP/1.0\r\n\r\n");
    assert_int_equal(status_of(hear_end(old)), 200);
    (void)close(near);
    rig_close(&rig, old);
    assert_int_equal(rmdir(folder), 0);
}

WEIR_TESTS(test(cross_origin_requests_are_refused_on_every_path),
           test(link_on_a_foreign_page_reaches_the_start_page_only), test(body_types_that_a_form_can_post_are_refused),
           test(fields_forwarded_by_a_proxy_are_not_held_against_it),
           test(requests_that_no_browser_sends_are_admitted_by_any_host))
