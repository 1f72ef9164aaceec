/* SPDX-License-Identifier: MIT */
/* serves.c - measures a request to the daemon, from its bytes to those of the response: GET /check
 * as nginx sends it, POST /v1/try, and a decision by ten rules. Sockets and clocks are replaced by
 * stubs (meson.build). */
#include "cost.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "serve/daemon/serve_internal.h"

#define REQUESTS 1000
#define STEP_NS (10 * WEIR_MICROSECOND)

static const char rules[] = "rules:\n"
                            "  - {name: login, match: {method: POST, path: /login}, key: ip, limit: 5/s}\n"
                            "  - {name: one, match: {path: /one/**}, key: ip, limit: 5/s}\n"
                            "  - {name: two, match: {path: /two/**}, key: ip, limit: 5/s}\n"
                            "  - {name: three, match: {path: /three/**}, key: ip, limit: 5/s}\n"
                            "  - {name: four, match: {path: '/four/*/five'}, key: ip, limit: 5/s}\n"
                            "  - {name: hosts, match: {host: '*.example.net'}, key: host, limit: 5/s}\n"
                            "  - {name: six, match: {method: [PUT, DELETE], path: /six/**}, key: ip, limit: 5/s}\n"
                            "  - {name: seven, match: {path: '/seven/**'}, key: ip, limit: 5/s}\n"
                            "  - {name: eight, match: {path: '/eight/**'}, key: ip, limit: 5/s}\n"
                            "  - {name: articles, match: {path: '/articles/**'}, key: 'header:x-user-id',"
                            " limit: 1000000/s burst=1000000}\n"
                            "admission: {trusted: [unix], max_keys: 10000}\n";

static const char check_head[] =
    "GET /check HTTP/1.1\r\n"
    "Host: weir\r\n"
    "X-Original-URI: /articles/2026/november/weirs?page=2&sort=date\r\n"
    "X-Original-Method: GET\r\n"
    "X-Original-Host: www.example.org\r\n"
    "X-Real-IP: 203.0.113.9\r\n"
    "X-Forwarded-For: 203.0.113.9\r\n"
    "X-Forwarded-Proto: https\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n"
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"
    "Accept-Language: en-US,en;q=0.5\r\n"
    "Accept-Encoding: gzip, deflate, br, zstd\r\n"
    "Cookie: session=9b1d2c3e4f5a6b7c8d9e0f1a2b3c4d5e; theme=dark\r\n"
    "X-User-Id: user-000000\r\n"
    "\r\n";

static const char try_request[] = "POST /v1/try HTTP/1.1\r\n"
                                  "Host: localhost\r\n"
                                  "Content-Type: application/json\r\n"
                                  "Content-Length: 46\r\n"
                                  "\r\n"
                                  "{\"rule\": \"articles\", \"key\": \"user-000000\"}    ";

static struct wr_serve *serve;
static struct wr_request request;
static char asked[1024];
static size_t replies;
static int last_status;

/* ---- responses are discarded ---- */

void __wrap_wr_http_reply(struct wr_http_exchange *exchange, int status, struct wr_span fields, struct wr_span body);

void __wrap_wr_http_reply(struct wr_http_exchange *exchange, int status, struct wr_span fields, struct wr_span body)
{
    (void)exchange;
    replies += fields.bytes + body.bytes > 0;
    last_status = status;
}

/* ---- only the rounds advance the time ---- */

const weir_clock *__wrap_weir_clock_fast(void);
const weir_clock *__wrap_weir_clock_monotonic(void);

const weir_clock *__wrap_weir_clock_fast(void)
{
    return &cost_clock.clock;
}

const weir_clock *__wrap_weir_clock_monotonic(void)
{
    return &cost_clock.clock;
}

/* ---- the daemon ---- */

static void write_rules(char path[])
{
    int fd = mkstemp(path);
    ssize_t bytes = fd < 0 ? -1 : write(fd, rules, sizeof rules - 1);
    cost_need(bytes == (ssize_t)sizeof rules - 1 && close(fd) == 0, "the rules could not be written");
}

static void open_daemon(void)
{
    static struct wr_serve_options options;
    char why[WR_CONFIG_WHY_BYTES] = "", path[] = "/tmp/weir-ledger-XXXXXX";
    struct wr_http_listen_options listen = {.address = "127.0.0.1:0", .fd = -1};

    write_rules(path);
    wr_serve_options_init(&options);
    options.config = path;
    options.http.listens = &listen;
    options.http.listen_count = 1;
    int error = wr_serve_new(&options, &serve, why, sizeof why);
    (void)unlink(path);
    cost_need(error == 0, why);
}

static void close_daemon(void)
{
    wr_serve_free(serve);
}

/* Writes the number of one of 1000 callers into the caller's name in `text`. */
static void name_caller(char *text, uint32_t number)
{
    char *digits = strstr(text, "user-");
    cost_need(digits != NULL, "a request without a caller");
    digits += strlen("user-");
    for (int i = 5; i >= 0; i--, number /= 10)
        digits[i] = (char)('0' + (i > 2 ? number % 10 : 0));
}

/* The part of the server between reading and answering. */
static struct wr_http_exchange read_asked(size_t bytes, const char *path, enum wr_request_method method)
{
    struct wr_span rest = {asked, bytes}, piece = {NULL, 0};
    wr_request_init(&request);
    cost_need(wr_request_head(&request, rest) == WR_REQUEST_HEAD, "a head that is refused");
    rest = wr_span_after(rest, request.head_bytes);
    struct wr_http_exchange exchange = {.request = &request,
                                        .method = method,
                                        .path = wr_span_of(path),
                                        .host = wr_span_of("weir"),
                                        .peer = wr_span_of("unix:")};
    if (wr_request_body(&request, &rest, &piece) == WR_REQUEST_BODY)
        exchange.body = piece;
    return exchange;
}

static void open_check(void)
{
    open_daemon();
    memcpy(asked, check_head, sizeof check_head);
}

static void check(uint32_t number)
{
    name_caller(asked, number);
    cost_clock.now += STEP_NS;
    struct wr_http_exchange exchange = read_asked(sizeof check_head - 1, "/check", WR_METHOD_GET);
    wr_serve_check(serve->workers[0], &exchange);
    cost_need(last_status == 204, "/check refuses");
}

static void open_try(void)
{
    open_daemon();
    memcpy(asked, try_request, sizeof try_request);
}

static void try_key(uint32_t number)
{
    name_caller(asked, number);
    cost_clock.now += STEP_NS;
    struct wr_http_exchange exchange = read_asked(sizeof try_request - 1, "/v1/try", WR_METHOD_POST);
    cost_need(wr_serve_api(serve->workers[0], &exchange) && last_status == 200, "/v1/try refuses");
}

const struct cost_figure cost_serves[] = {
    {"check", REQUESTS, open_check, check, close_daemon},
    {"v1_try", REQUESTS, open_try, try_key, close_daemon},
    {.name = NULL},
};
