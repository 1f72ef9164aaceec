/* SPDX-License-Identifier: MIT */
/* test_daemon.c - a daemon in numbers: they are those of what it decided. With --print, the text. */
#include "lib/test.h"
#include "shell/metrics/daemon.h"
#include "unit/shell/rulebook/rig.h"

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

/* The text of a daemon that has decided a little. */
static void write_text(void)
{
    struct rig rig;
    struct wr_buf buf;
    struct wr_metrics metrics = {.buf = &buf};
    struct wr_http *server;
    struct wr_http_options options;
    const struct wr_http_listen listen = {.address = "127.0.0.1:0", .fd = -1};
    rig_open(&rig, yaml);
    for (int i = 0; i < 5; i++)
        (void)rig_try(&rig, &(struct call){.target = "/api/x", .peer = "203.0.113.7", .headers = {"x-key", "secret"}});
    (void)rig_try(&rig, &(struct call){.target = "/api/x", .peer = "203.0.113.8", .headers = {"x-key", "other"}});
    assert_int_not_equal(rig_reload(&rig, "rules: [{name: wrong, key: nobody, limit: 3/m}]\n"), 0);
    wr_http_options_init(&options);
    options.listens = &listen;
    options.listen_count = 1;
    options.answer = answer;
    assert_int_equal(wr_http_new(&options, &server), 0);
    wr_buf_init_fixed(&buf, text, sizeof text);
    wr_metrics_daemon(&metrics, rig.book, server);
    assert_int_equal(buf.error, 0);
    wr_http_free(server);
    rig_close(&rig);
}

static void assert_line(const char *line)
{
    const char *found = strstr(text, line);
    if (found == NULL || (found > text && found[-1] != '\n') || found[strlen(line)] != '\n')
        fail_msg("there is no line %s in\n%s", line, text);
}

static void numbers_of_a_daemon_are_what_it_decided(void **state)
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
static void callers_keys_are_in_no_label(void **state)
{
    (void)state;
    write_text();
    assert_null(strstr(text, "secret"));
    assert_null(strstr(text, "203.0.113"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {test(numbers_of_a_daemon_are_what_it_decided),
                                       test(callers_keys_are_in_no_label)};
    if (argc == 2 && strcmp(argv[1], "--print") == 0) {
        write_text();
        (void)fputs(text, stdout);
        return 0;
    }
    return weir_tests_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
