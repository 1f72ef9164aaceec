/* SPDX-License-Identifier: MIT */
/* test_proxy.c - requests through a proxy, which may fail by itself (E7, V10). */
#include "net/rig.h"

#include "lib/hostile_tls.h"

#define TEXT_64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define TEXT_256 TEXT_64 TEXT_64 TEXT_64 TEXT_64
#define TEXT_1024 TEXT_256 TEXT_256 TEXT_256 TEXT_256

static const struct hostile_step hello[] = {READ, SAY("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), AGAIN, END};

/* Writes the certificates that the net trusts to a new file and returns its path; the caller
 * unlinks it. */
static const char *make_authority(void)
{
    static char path[32];

    snprintf(path, sizeof path, "/tmp/weir-proxy-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0 && close(fd) == 0);
    hostile_tls_write_authority(path);
    return path;
}

/* Replaces the net of the fixture by one behind a proxy, whose certificate is checked against
 * ca_file. Returns the replaced net. */
static struct wr_net *behind_tls(struct net_fixture *rig, const char *proxy, bool allow_private, const char *ca_file)
{
    struct wr_net_options options = rig_options();
    struct wr_net *usual = rig->net;

    options.allocator = &rig->memory.allocator;
    options.loop = &rig->loop;
    options.resolver = rig->resolver;
    options.proxy = proxy;
    options.allow_private = allow_private;
    options.ca_file = ca_file;
    assert_int_equal(wr_net_new(&options, &rig->net), 0);
    return usual;
}

static struct wr_net *behind(struct net_fixture *rig, const char *proxy, bool allow_private)
{
    return behind_tls(rig, proxy, allow_private, NULL);
}

static void ended(struct net_fixture *rig, struct wr_net *usual)
{
    wr_net_close(rig->net);
    rig->net = usual;
    rig_tear_down(rig);
}

static void proxy_is_resolved_by_name_and_gets_its_password(void **state)
{
    struct net_fixture rig;
    struct got got;
    struct hostile_request request;
    char proxy[64];

    (void)state;
    rig_set_up(&rig, rig_options());
    rig.names[0] = (struct rig_name){"proxy.example", {"127.0.0.1"}};
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {hello}});
    snprintf(proxy, sizeof proxy, "http://us%%65r:s%%3acret@proxy.example:%d", port);
    struct wr_net *usual = behind(&rig, proxy, true);
    rig_get(&rig, "http://site.example/a", &got);
    assert_int_equal(got.result.end, WR_NET_DONE);
    assert_string_equal(got.body, "hello");
    assert_int_equal(rig.lookups, 1); /* the proxy resolves the name of the target */
    assert_true(hostile_request(rig.server, port, 0, &request));
    assert_true(strncmp(request.text, "GET http://site.example/a HTTP/1.1\r\nHost: site.example\r\n", 50) == 0);
    assert_non_null(strstr(request.text, "\r\nProxy-Authorization: Basic dXNlcjpzOmNyZXQ=\r\n"));
    ended(&rig, usual);
}

/* A17: ca_file applies to the proxy, too; a proxy with another certificate is refused. */
static void https_proxy_is_checked_with_the_same_certificates(void **state)
{
    static const enum hostile_certificate kinds[] = {HOSTILE_GOOD, HOSTILE_SELF_SIGNED, HOSTILE_EXPIRED,
                                                     HOSTILE_OTHER_HOST};
    const char *authority = make_authority();
    char proxy[64];

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct hostile_tls tls;
        struct net_fixture rig;
        struct got got;

        hostile_tls_init(&tls, kinds[i], NULL, false);
        rig_set_up(&rig, rig_options());
        rig.names[0] = (struct rig_name){"localhost", {"127.0.0.1"}};
        int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {hello}, .tls = &tls});
        snprintf(proxy, sizeof proxy, "https://localhost:%d", port);
        struct wr_net *usual = behind_tls(&rig, proxy, true, authority);
        rig_get(&rig, "http://site.example/a", &got);
        assert_int_equal(got.result.end, i == 0 ? WR_NET_DONE : WR_NET_PROXY);
        assert_int_equal(hostile_requests(rig.server, port), i == 0);
        ended(&rig, usual);
        hostile_tls_release(&tls);
    }
    assert_int_equal(unlink(authority), 0);
}

/* E7: the failure of a proxy is not blamed on the target. */
static void failure_of_a_proxy_is_blamed_on_the_proxy(void **state)
{
    static const struct hostile_step denied[] = {READ, SAY("HTTP/1.1 407 Who?\r\nContent-Length: 0\r\n\r\n"), AGAIN,
                                                 END};
    static const struct hostile_step bad[] = {READ, SAY("HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n"), AGAIN, END};
    static const struct {
        const struct hostile_step *steps;
        const char *url;
        enum wr_net_end end;
        int status;
    } rows[] = {
        {denied, "http://site.example/", WR_NET_DONE, 407}, {bad, "http://site.example/", WR_NET_DONE, 502},
        {denied, "https://site.example/", WR_NET_PROXY, 0}, {bad, "https://site.example/", WR_NET_PROXY, 0},
        {NULL, "http://site.example/", WR_NET_PROXY, 0},    {NULL, "https://site.example/", WR_NET_PROXY, 0},
    };
    struct net_fixture rig;
    struct got got;
    char proxy[64];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rig_set_up(&rig, rig_options());
        int port = rows[i].steps == NULL ? hostile_refuse(rig.server)
                                         : hostile_listen(rig.server, &(struct hostile_case){.steps = {rows[i].steps}});
        snprintf(proxy, sizeof proxy, "http://user:secret@127.0.0.1:%d", port);
        struct wr_net *usual = behind(&rig, proxy, true);
        rig_get(&rig, rows[i].url, &got);
        if (got.result.end != rows[i].end || got.result.blame != WR_NET_BLAME_PROXY)
            fail_msg("row %zu: %s", i, got.words);
        assert_int_equal(got.result.status, rows[i].status);
        assert_null(strstr(got.words, "secret"));
        ended(&rig, usual);
    }
}

/* E7, A3: libcurl would read this endless response without yielding to other transfers. */
static void endless_refusal_of_a_proxy_does_not_block_the_loop(void **state)
{
    static const struct hostile_step counted[] = {
        READ, SAY("HTTP/1.1 407 Who?\r\nContent-Length: 1000000000000\r\n\r\n"), REPEAT(TEXT_1024, 1 << 20, 0), END};
    static const struct hostile_step chunks[] = {READ, SAY("HTTP/1.1 407 Who?\r\nTransfer-Encoding: chunked\r\n\r\n"),
                                                 REPEAT("400\r\n" TEXT_1024 "\r\n", 1 << 20, 0), END};
    static const struct hostile_step *const steps[] = {counted, chunks};
    const char *authority = make_authority();
    struct hostile_tls tls;
    struct net_fixture rig;
    struct got got;
    char proxy[64];

    (void)state;
    hostile_tls_init(&tls, HOSTILE_GOOD, NULL, false);
    for (size_t i = 0; i < 2 * sizeof steps / sizeof steps[0]; i++) {
        bool is_tls = i % 2 == 1;
        rig_set_up(&rig, rig_options());
        rig.names[0] = (struct rig_name){"localhost", {"127.0.0.1"}};
        int port =
            hostile_listen(rig.server, &(struct hostile_case){.steps = {steps[i / 2]}, .tls = is_tls ? &tls : NULL});
        snprintf(proxy, sizeof proxy, "%s://localhost:%d", is_tls ? "https" : "http", port);
        struct wr_net *usual = behind_tls(&rig, proxy, true, authority);
        rig_get(&rig, "https://site.example/", &got);
        assert_int_equal(got.result.end, WR_NET_PROXY);
        assert_int_equal(got.result.blame, WR_NET_BLAME_PROXY);
        assert_non_null(strstr(got.words, "sends an endless header"));
        ended(&rig, usual);
    }
    hostile_tls_release(&tls);
    assert_int_equal(unlink(authority), 0);
}

/* E7: if the proxy fails, the request is not sent directly. */
static void nothing_is_sent_directly_if_the_proxy_fails(void **state)
{
    struct net_fixture rig;
    struct got got;
    char proxy[64];

    (void)state;
    rig_set_up(&rig, rig_options());
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {hello}});
    snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", hostile_refuse(rig.server));
    assert_int_equal(setenv("no_proxy", "*", 1), 0);
    struct wr_net *usual = behind(&rig, proxy, true);
    rig_get(&rig, rig_url(port), &got);
    assert_int_equal(got.result.end, WR_NET_PROXY);
    assert_int_equal(unsetenv("no_proxy"), 0);
    ended(&rig, usual);
    rig_set_up(&rig, rig_options());
    usual = behind(&rig, "http://absent.example:3128", true);
    rig_get(&rig, "http://site.example/", &got);
    assert_int_equal(got.result.end, WR_NET_PROXY);
    assert_int_equal(got.result.blame, WR_NET_BLAME_PROXY);
    ended(&rig, usual);
}

/* A12: the proxy may have a private address; the target may not. */
static void target_behind_a_proxy_is_checked_before_the_request(void **state)
{
    struct net_fixture rig;
    struct got got;
    char proxy[64];

    (void)state;
    rig_set_up(&rig, rig_options());
    rig.names[0] = (struct rig_name){"inside.example", {"10.0.0.1"}};
    rig.names[1] = (struct rig_name){"outside.example", {"93.184.216.34"}};
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {hello}});
    snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", port);
    struct wr_net *usual = behind(&rig, proxy, false);
    rig_get(&rig, "http://inside.example/", &got);
    assert_int_equal(got.result.end, WR_NET_BLOCKED);
    rig_get(&rig, "http://169.254.169.254/latest/meta-data/", &got);
    assert_int_equal(got.result.end, WR_NET_BLOCKED);
    assert_int_equal(hostile_connections(rig.server, port), 0);
    rig_get(&rig, "http://outside.example/", &got);
    assert_int_equal(got.result.end, WR_NET_DONE);
    ended(&rig, usual);
}

static void invalid_proxy_urls_are_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "proxy",
                                      "ftp://proxy:1",
                                      "http://proxy:99999",
                                      "http://proxy:1/path",
                                      "http://a%00b@proxy:1",
                                      "http://pro xy:1"};
    struct net_fixture rig;
    struct wr_net *net;

    (void)state;
    rig_set_up(&rig, rig_options());
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct wr_net_options options = {.loop = &rig.loop, .resolver = rig.resolver, .proxy = bad[i]};
        assert_int_equal(wr_net_new(&options, &net), WEIR_E_INVAL);
    }
    rig_tear_down(&rig);
}

WEIR_TESTS(test(https_proxy_is_checked_with_the_same_certificates),
           test(proxy_is_resolved_by_name_and_gets_its_password), test(failure_of_a_proxy_is_blamed_on_the_proxy),
           test(endless_refusal_of_a_proxy_does_not_block_the_loop), test(nothing_is_sent_directly_if_the_proxy_fails),
           test(target_behind_a_proxy_is_checked_before_the_request), test(invalid_proxy_urls_are_refused))
