/* SPDX-License-Identifier: MIT */
/* test_client_secrets.c - secrets for one origin are not sent to another and not shown (A13, A14,
 * C10, V10). */
#include "rig.h"

#include "lib/hostile.h"
#include "lib/hostile_tls.h"

#include <unistd.h>

static const char *const secrets[] = {"Authorization: Bearer s3cret", "Cookie: id=s3cret",
                                      "Proxy-Authorization: s3cret", "X-Api-Key: s3cret", NULL};

static struct origin_reply lead_to(void *context, const struct origin_request *request)
{
    if (strcmp(request->path, "/end") == 0)
        return (struct origin_reply){.status = 200};
    return (struct origin_reply){.status = 302, .fields = context};
}

/* ---- A13: another host, another port, another scheme ---- */

/* Fetches url with secrets in headers and options. The fetch follows one redirect. */
static void get_with_secrets(struct client_fixture *rig, const char *url)
{
    weir_fetch_options options;
    weir_fetch_options_init(&options);
    options.headers = secrets;
    options.etag = "\"s3cret\"";
    weir_response *response = get_with(rig, url, &options);
    assert_int_equal(response->status, 200);
    assert_int_equal(response->hops, 1);
    weir_response_free(response);
}

static void assert_no_secret(const char *text)
{
    assert_null(strstr(text, "s3cret"));
    assert_null(strcasestr(text, "Authorization"));
    assert_null(strcasestr(text, "Cookie"));
    assert_null(strcasestr(text, "Referer"));
}

static void secrets_are_not_sent_to_another_host_or_port(void **state)
{
    (void)state;
    static const char *const places[] = {"127.0.0.1", "127.0.0.2"}; /* another port, another host */
    for (size_t i = 0; i < 2; i++) {
        struct client_fixture rig;
        char location[100], url[100];
        struct origin *other = origin_new(lead_to, NULL, places[i]);
        (void)snprintf(location, sizeof location, "Location: http://%s:%d/end\r\n", places[i], origin_port(other));
        struct origin *origin = origin_new(lead_to, location, NULL);
        rig_set_up(&rig);
        (void)snprintf(url, sizeof url, "http://user:s3cret@127.0.0.1:%d/start", origin_port(origin));
        get_with_secrets(&rig, url);
        assert_non_null(strstr(origin_request(origin, 0).text, "Bearer s3cret"));
        assert_no_secret(origin_request(other, 0).text);
        rig_tear_down(&rig);
        origin_free(origin);
        origin_free(other);
    }
}

/* A redirect from https to http on the same host carries no secret. */
static void secrets_are_not_redirected_from_https_to_http(void **state)
{
    (void)state;
    char authority[] = "/tmp/weir-authority-XXXXXX", answer[200], url[100];
    struct hostile_tls tls;
    struct hostile_request request;
    struct client_fixture rig;
    int fd = mkstemp(authority);
    assert_true(fd >= 0);
    (void)close(fd);
    hostile_tls_write_authority(authority);
    hostile_tls_init(&tls, HOSTILE_GOOD, NULL, false);
    struct hostile *server = hostile_new();
    struct origin *plain = origin_new(lead_to, NULL, NULL);
    (void)snprintf(answer, sizeof answer,
                   "HTTP/1.1 307 Over there\r\nLocation: http://127.0.0.1:%d/end\r\nContent-Length: 0\r\n\r\n",
                   origin_port(plain));
    const struct hostile_step steps[] = {READ, {.what = HOSTILE_SEND, .text = answer}, END};
    int port = hostile_listen(server, &(struct hostile_case){.steps = {steps}, .tls = &tls});
    rig_init(&rig);
    rig.options.ca_file = authority;
    rig_start(&rig);
    (void)snprintf(url, sizeof url, "https://user:s3cret@127.0.0.1:%d/start", port);
    get_with_secrets(&rig, url);
    assert_true(hostile_request(server, port, 0, &request));
    assert_non_null(strstr(request.text, "Bearer s3cret"));
    assert_no_secret(origin_request(plain, 0).text);
    rig_tear_down(&rig);
    hostile_free(server);
    origin_free(plain);
    hostile_tls_release(&tls);
    (void)unlink(authority);
}

/* User name and password in a Location are not sent either. */
static void credentials_in_a_location_are_not_sent(void **state)
{
    (void)state;
    struct client_fixture rig;
    char location[100];
    struct origin *other = origin_new(lead_to, NULL, NULL);
    (void)snprintf(location, sizeof location, "Location: http://a:s3cret@127.0.0.1:%d/end\r\n", origin_port(other));
    struct origin *origin = origin_new(lead_to, location, NULL);
    rig_set_up(&rig);
    weir_response *response = get(&rig, url_at(origin_port(origin), "/start"));
    assert_int_equal(response->status, 200);
    assert_null(strstr(response->url, "s3cret"));
    assert_no_secret(origin_request(other, 0).text);
    weir_response_free(response);
    rig_tear_down(&rig);
    origin_free(origin);
    origin_free(other);
}

/* If the caller gives both, the header wins over the credentials of the URL. */
static void caller_header_takes_precedence_over_url_credentials(void **state)
{
    (void)state;
    static const char *const headers[] = {"Authorization: Bearer mine", "X-Other: more", NULL};
    struct client_fixture rig;
    char url[100];
    weir_fetch_options options;
    struct origin *origin = origin_new(lead_to, NULL, NULL);
    rig_set_up(&rig);
    weir_fetch_options_init(&options);
    options.headers = headers;
    (void)snprintf(url, sizeof url, "http://user:s3cret@127.0.0.1:%d/end", origin_port(origin));
    weir_response_free(get_with(&rig, url, &options));
    assert_non_null(strstr(origin_request(origin, 0).text, "Authorization: Bearer mine"));
    assert_null(strstr(origin_request(origin, 0).text, "Basic"));
    rig_tear_down(&rig);
    origin_free(origin);
}

/* ---- A14: cookies ---- */

#define COOKIES 10000

static void cookies_are_neither_kept_nor_sent(void **state)
{
    (void)state;
    static char many[64 * COOKIES];
    int bytes = snprintf(many, sizeof many, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n");
    for (int i = 0; i < COOKIES; i++)
        bytes += snprintf(many + bytes, sizeof many - (size_t)bytes, "Set-Cookie: c%d=1\r\n", i);
    (void)snprintf(many + bytes, sizeof many - (size_t)bytes, "\r\nok");
    static char large[(1 << 20) + 200];
    memset(large, 'x', sizeof large - 1);
    memcpy(large, "HTTP/1.1 200 OK\r\nSet-Cookie: a=", 31);
    memcpy(large + sizeof large - 26, "\r\nContent-Length: 2\r\n\r\nok", 26);
    const struct hostile_step too_wide[] = {
        READ,
        SAY("HTTP/1.1 302 Moved\r\nSet-Cookie: a=b; Domain=1; Path=/\r\nSet-Cookie: c=d; Domain=com\r\n"
            "Location: /next\r\nContent-Length: 0\r\n\r\n"),
        READ,
        SAY("HTTP/1.1 200 OK\r\nSet-Cookie: e=f\r\nContent-Length: 2\r\n\r\nok"),
        AGAIN,
        END};
    const struct hostile_step too_many[] = {READ, {.what = HOSTILE_SEND, .text = many}, END};
    const struct hostile_step too_large[] = {READ, {.what = HOSTILE_SEND, .text = large}, END};
    const struct hostile_step *const cases[] = {too_wide, too_many, too_large};
    static const weir_failure failures[] = {WEIR_FAILURE_NONE, WEIR_FAILURE_NONE, WEIR_FAILURE_FRAMING};
    struct hostile *server = hostile_new();
    for (size_t i = 0; i < 3; i++) {
        struct client_fixture rig;
        struct hostile_request request;
        int port = hostile_listen(server, &(struct hostile_case){.steps = {cases[i]}});
        rig_init(&rig);
        rig.pace.retry.base_ns = MS;
        rig_start(&rig);
        for (int k = 0; k < 2; k++)
            /* headers are limited to 256 KiB */
            assert_int_equal(get_failure(&rig, url_at(port, "/")), failures[i]);
        for (int k = 0; hostile_request(server, port, k, &request); k++)
            assert_null(strcasestr(request.text, "Cookie"));
        rig_tear_down(&rig);
    }
    hostile_free(server);
}

/* ---- C10: line breaks on the wire ---- */

static void line_breaks_in_a_url_never_add_request_lines(void **state)
{
    (void)state;
    static const char *const tails[] = {"/a\r\nEvil: x", "/a\nEvil: x", "/?q=\r\n\r\nGET /evil HTTP/1.1\r\n\r\n",
                                        "/\xc2\x85\xe2\x80\xa8 Evil: x", "/%0d%0aEvil: x"};
    struct client_fixture rig;
    struct origin *origin = origin_new(lead_to, "", NULL);
    rig_set_up(&rig);
    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        /* the line break was dropped or encoded */
        assert_int_equal(get_status(&rig, url_at(origin_port(origin), tails[i])), 302);
        assert_int_equal(origin_requests(origin), (int)i + 1);
        assert_null(strstr(origin_request(origin, (int)i).text, "\nEvil"));
        assert_null(strstr(origin_request(origin, (int)i).text, "\nGET"));
    }
    rig_tear_down(&rig);
    origin_free(origin);
}

/* ---- V10: errors and details show no secret ---- */

static void refusals_show_no_secret(void **state)
{
    (void)state;
    static const char *const lines[] = {"Authorization: Bearer s3cret\r\n", "X-Api-Key s3cret", "Host: s3cret",
                                        "Cookie: \x01s3cret", "s3cret"};
    static const char *const urls[] = {"http://user:s3cret@example.org:99999/", "ftp://user:s3cret@example.org/",
                                       "http://user:s3cret@", "http://user:s3cret@[/"};
    static const char *const proxies[] = {"http://user:s3cret@", "socks5://user:s3cret@x", "http://user:s3cret@a\n",
                                          "user:s3cret@proxy"};
    struct client_fixture rig;
    weir_client *client;
    weir_response *response;
    rig_set_up(&rig);
    /* the last line looks like a header name, so the error may show it */
    for (size_t i = 0; i < 4; i++) {
        weir_fetch_options options;
        const char *const headers[] = {lines[i], NULL};
        weir_fetch_options_init(&options);
        options.headers = headers;
        assert_int_equal(weir_client_fetch(rig.client, "http://127.0.0.1/", &options, NULL, &response), WEIR_E_INVAL);
        assert_null(strstr(weir_error_detail(), "s3cret"));
    }
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        assert_int_equal(weir_client_fetch(rig.client, urls[i], NULL, NULL, &response), WEIR_E_INVAL);
        assert_null(strstr(weir_error_detail(), "s3cret"));
    }
    for (size_t i = 0; i < sizeof proxies / sizeof proxies[0]; i++) {
        weir_client_options options = rig.options;
        options.proxy = proxies[i];
        assert_int_equal(weir_client_new(&options, &client), WEIR_E_INVAL);
        assert_null(strstr(weir_error_detail(), "s3cret"));
    }
    rig_tear_down(&rig);
}

/* The proxy or the server fails. */
static void failures_show_no_secret(void **state)
{
    (void)state;
    struct hostile *server = hostile_new();
    static const struct hostile_step nonsense[] = {READ, SAY("s3cret? never heard\r\n\r\n"), END};
    const int ports[] = {hostile_refuse(server), hostile_listen(server, &(struct hostile_case){.steps = {nonsense}})};
    for (int i = 0; i < 4; i++) {
        struct client_fixture rig;
        char url[100], proxy[100];
        rig_init(&rig);
        rig.pace.retry.base_ns = MS;
        (void)snprintf(proxy, sizeof proxy, "http://user:s3cret@127.0.0.1:%d", ports[i % 2]);
        if (i >= 2)
            rig.options.proxy = proxy;
        rig_start(&rig);
        (void)snprintf(url, sizeof url, "http://user:s3cret@127.0.0.1:%d/", ports[i % 2]);
        weir_response *response = get(&rig, url);
        assert_int_not_equal(response->failure, WEIR_FAILURE_NONE);
        assert_null(strstr(response->detail, "s3cret"));
        assert_null(strstr(response->url, "s3cret"));
        weir_response_free(response);
        rig_tear_down(&rig);
    }
    hostile_free(server);
}

WEIR_TESTS(test(caller_header_takes_precedence_over_url_credentials),
           test(secrets_are_not_sent_to_another_host_or_port), test(secrets_are_not_redirected_from_https_to_http),
           test(credentials_in_a_location_are_not_sent), test(cookies_are_neither_kept_nor_sent),
           test(line_breaks_in_a_url_never_add_request_lines), test(refusals_show_no_secret),
           test(failures_show_no_secret))
