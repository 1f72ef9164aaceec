/* SPDX-License-Identifier: MIT */
/* test_daemon.c - tests that the metrics of a daemon equal what it decided. */
#include "lib/test.h"
#include "unit/serve/rules/rig.h"
#include "watch/metrics/daemon_metrics.h"
#include "watch/metrics/metrics_page.h"

#include <arpa/inet.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROOM (1 << 20)

static const char yaml[] = "rules:\n"
                           "  - {name: watch, key: ip, limit: 1/m, shadow: true}\n"
                           "  - {name: api, match: {path: /api/**}, key: 'header:x-key', limit: 3/m}\n";
static char text[ROOM];

static void answer(void *context, struct wr_http_exchange *exchange)
{
    (void)context;
    wr_http_reply(exchange, 204, WR_HTTP_NOTHING, WR_HTTP_NOTHING);
}

/* Writes the metrics of a daemon after a few decisions to `text`. */
static void write_text(void)
{
    struct rules_fixture rig;
    struct wr_buf buf;
    struct wr_metrics metrics = {.buf = &buf};
    struct wr_http_server *server;
    struct wr_http_server_options options;
    const struct wr_http_listen_options listen = {.address = "127.0.0.1:0", .fd = -1};
    rig_open(&rig, yaml);
    for (int i = 0; i < 5; i++)
        (void)rig_try(&rig, &(struct call){.target = "/api/x", .peer = "203.0.113.7", .headers = {"x-key", "secret"}});
    (void)rig_try(&rig, &(struct call){.target = "/api/x", .peer = "203.0.113.8", .headers = {"x-key", "other"}});
    assert_int_not_equal(rig_reload(&rig, "rules: [{name: wrong, limit: 3/m, cost: 4}]\n"), 0);
    wr_http_server_options_init(&options);
    options.listens = &listen;
    options.listen_count = 1;
    options.answer = answer;
    assert_int_equal(wr_http_server_new(&options, &server), 0);
    wr_buf_init_fixed(&buf, text, sizeof text);
    wr_metrics_daemon(&metrics, rig.book, server);
    assert_int_equal(buf.error, 0);
    wr_http_server_free(server);
    rig_close(&rig);
}

static void assert_line(const char *line)
{
    const char *found = strstr(text, line);
    if (found == NULL || (found > text && found[-1] != '\n') || found[strlen(line)] != '\n')
        fail_msg("there is no line %s in\n%s", line, text);
}

static void metrics_of_a_daemon_equal_its_decisions(void **state)
{
    (void)state;
    write_text();
    assert_line("weir_serve_requests_total{verdict=\"granted\"} 4");
    assert_line("weir_serve_requests_total{verdict=\"limited\"} 2");
    assert_line("weir_serve_rule_decisions_total{rule=\"api\",verdict=\"granted\"} 4");
    assert_line("weir_serve_rule_decisions_total{rule=\"api\",verdict=\"limited\"} 2");
    assert_line("weir_serve_rule_keys{rule=\"api\"} 2");
    assert_line("weir_serve_rules 2");
    assert_line("weir_serve_rule_shadowed_total{rule=\"watch\"} 2");
    assert_line("weir_serve_reloads_total{result=\"failed\"} 1");
    assert_line("weir_serve_waiting_requests 0");
    assert_line("weir_http_connections 0");
    assert_line("weir_http_answers_total{class=\"2xx\"} 0");
}

/* V10, J12 */
static void keys_of_callers_are_in_no_label(void **state)
{
    (void)state;
    write_text();
    assert_null(strstr(text, "secret"));
    assert_null(strstr(text, "203.0.113"));
}

/* ---- the page ---- */

static atomic_int writes;

static void write_page(void *context, struct wr_metrics *metrics)
{
    (void)context;
    (void)atomic_fetch_add(&writes, 1);
    wr_metrics_counter(metrics, "weir_x_total", "X.", 7);
}

static void answer_page(void *context, struct wr_http_exchange *exchange)
{
    wr_metrics_page_answer(context, exchange);
}

/* Returns the response to a request on a new connection. */
static const char *ask(const struct wr_http_server *server, const char *request)
{
    const struct sockaddr_in place = {.sin_family = AF_INET,
                                      .sin_port = htons(wr_http_server_port(server, 0)),
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    size_t heard = 0;
    ssize_t got;
    assert_int_equal(connect(fd, (const struct sockaddr *)&place, sizeof place), 0);
    assert_int_equal(write(fd, request, strlen(request)), strlen(request));
    while ((got = read(fd, text + heard, sizeof text - 1 - heard)) > 0)
        heard += (size_t)got;
    text[heard] = '\0';
    (void)close(fd);
    return text;
}

/* I5: a hundred requests render the page once or twice. Requests with another Host or method are
 * refused. */
static void metrics_page_is_rendered_rarely_however_often_it_is_requested(void **state)
{
    struct wr_metrics_page *page;
    struct wr_http_server *server;
    struct wr_http_server_options options;
    const struct wr_http_listen_options listen = {.address = "127.0.0.1:0", .fd = -1};
    (void)state;
    assert_int_equal(wr_metrics_page_new(&(struct wr_metrics_page_options){.write = write_page}, &page), 0);
    wr_http_server_options_init(&options);
    options.listens = &listen;
    options.listen_count = 1;
    options.loops = 2;
    options.answer = answer_page;
    options.context = page;
    assert_int_equal(wr_http_server_new(&options, &server), 0);
    assert_int_equal(wr_http_server_start(server), 0);
    int64_t began_at = weir_clock_now(weir_clock_monotonic());
    for (int i = 0; i < 100; i++)
        assert_non_null(strstr(ask(server, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
                               "weir_x_total 7\n"));
    int64_t took_ns = weir_clock_now(weir_clock_monotonic()) - began_at;
    assert_true(atomic_load(&writes) >= 1 && atomic_load(&writes) <= 1 + took_ns / WR_METRICS_FRESH_NS);
    assert_memory_equal(ask(server, "GET /metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"),
                        "HTTP/1.1 403", 12);
    assert_memory_equal(ask(server, "DELETE /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
                        "HTTP/1.1 405", 12);
    wr_http_server_free(server);
    wr_metrics_page_free(page);
}

WEIR_TESTS(test(metrics_of_a_daemon_equal_its_decisions), test(keys_of_callers_are_in_no_label),
           test(metrics_page_is_rendered_rarely_however_often_it_is_requested))
