/* SPDX-License-Identifier: MIT */
/* test_result.c - tests of how transfers end, of proxy URLs, and of memory for another transfer. */
#include "http/net/net_internal.h"
#include "lib/test.h"
#include "limiter/memory/reserve.h"

#include <errno.h>
#include <stdlib.h>

struct result_fixture {
    struct wr_net net;
    struct wr_transfer transfer;
};

static struct result_fixture *rig_new(void)
{
    struct result_fixture *rig = calloc(1, sizeof *rig);
    assert_non_null(rig);
    rig->transfer.net = &rig->net;
    rig->transfer.judged = WR_GUARD_PUBLIC;
    rig->transfer.is_head_reported = true;
    rig->transfer.is_idempotent = true;
    rig->transfer.failures = wr_reserve_failures();
    return rig;
}

/* ---- ends of transfers ---- */

static void transfer_ends_have_names_and_texts(void **state)
{
    (void)state;
    assert_string_equal(wr_net_end_name(WR_NET_DONE), "done");
    assert_string_equal(wr_net_end_text(WR_NET_DONE), "answered");
    assert_string_equal(wr_net_end_name(WR_NET_PROXY), "proxy");
    assert_string_equal(wr_net_end_text(WR_NET_NO_NAME), "there is no such host");
    for (int end = WR_NET_DONE; end <= WR_NET_PROXY; end++)
        for (int other = WR_NET_DONE; other < end; other++) {
            assert_string_not_equal(wr_net_end_name((enum wr_net_end)end), wr_net_end_name((enum wr_net_end)other));
            assert_string_not_equal(wr_net_end_text((enum wr_net_end)end), wr_net_end_text((enum wr_net_end)other));
        }
}

static void first_end_of_a_transfer_is_kept(void **state)
{
    (void)state;
    struct result_fixture *rig = rig_new();
    wr_transfer_set_end(&rig->transfer, WR_NET_NO_NAME, NULL);
    wr_transfer_set_end(&rig->transfer, WR_NET_BROKEN, "late");
    assert_int_equal(rig->transfer.result.end, WR_NET_NO_NAME);
    assert_int_equal(rig->transfer.result.retry, WR_NET_NEVER);
    assert_int_equal(rig->transfer.result.blame, WR_NET_BLAME_HOST);
    assert_string_equal(rig->transfer.result.words, "there is no such host");
    wr_result_from_curl(&rig->transfer, CURLE_OK);
    assert_int_equal(rig->transfer.result.end, WR_NET_NO_NAME);
    free(rig);
}

static void texts_of_a_server_are_shown_in_printable_characters_only(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"", "no connection"},
        {"refused", "no connection: refused"},
        {"a\033[31m\nb\x7f\xc3\xbc", "no connection: a?[31m?b???"},
    };
    for (size_t i = 0; i < 3; i++) {
        struct result_fixture *rig = rig_new();
        wr_transfer_set_end(&rig->transfer, WR_NET_CONNECT, rows[i][0]);
        assert_string_equal(rig->transfer.result.words, rows[i][1]);
        free(rig);
    }
    struct result_fixture *rig = rig_new();
    char words[1000];
    memset(words, 'x', sizeof words - 1);
    words[sizeof words - 1] = '\0';
    wr_transfer_set_end(&rig->transfer, WR_NET_CONNECT, words);
    assert_true(strlen(rig->transfer.result.words) < sizeof rig->transfer.words);
    assert_memory_equal(rig->transfer.result.words, "no connection: xxx", 18);
    free(rig);
}

static void libcurl_codes_map_to_transfer_ends(void **state)
{
    (void)state;
    static const struct {
        CURLcode code;
        enum wr_net_end end;
        enum wr_net_retry retry;
        enum wr_net_blame blame;
    } rows[] = {
        {CURLE_OK, WR_NET_DONE, WR_NET_NEVER, WR_NET_BLAME_NONE},
        {CURLE_COULDNT_RESOLVE_HOST, WR_NET_NAME_FAILED, WR_NET_LATER, WR_NET_BLAME_NONE},
        {CURLE_COULDNT_RESOLVE_PROXY, WR_NET_PROXY, WR_NET_LATER, WR_NET_BLAME_PROXY},
        {CURLE_PROXY, WR_NET_PROXY, WR_NET_LATER, WR_NET_BLAME_PROXY},
        {CURLE_COULDNT_CONNECT, WR_NET_CONNECT, WR_NET_LATER, WR_NET_BLAME_HOST},
        {CURLE_OPERATION_TIMEDOUT, WR_NET_CONNECT_TIMEOUT, WR_NET_LATER, WR_NET_BLAME_HOST},
        /* a handshake that failed */
        {CURLE_SSL_CONNECT_ERROR, WR_NET_TLS, WR_NET_LATER, WR_NET_BLAME_HOST},
        {CURLE_SSL_CERTPROBLEM, WR_NET_TLS, WR_NET_NEVER, WR_NET_BLAME_HOST},
        {CURLE_SSL_CIPHER, WR_NET_TLS, WR_NET_NEVER, WR_NET_BLAME_HOST},
        {CURLE_PEER_FAILED_VERIFICATION, WR_NET_TLS, WR_NET_NEVER, WR_NET_BLAME_HOST},
        {CURLE_SSL_CACERT_BADFILE, WR_NET_TLS, WR_NET_NEVER, WR_NET_BLAME_HOST},
        {CURLE_SSL_ISSUER_ERROR, WR_NET_TLS, WR_NET_NEVER, WR_NET_BLAME_HOST},
        {CURLE_SSL_INVALIDCERTSTATUS, WR_NET_TLS, WR_NET_NEVER, WR_NET_BLAME_HOST},
        {CURLE_OUT_OF_MEMORY, WR_NET_SCARCE, WR_NET_FREE, WR_NET_BLAME_NONE},
        {CURLE_BAD_CONTENT_ENCODING, WR_NET_PROTOCOL, WR_NET_LATER, WR_NET_BLAME_HOST},
        {CURLE_RECV_ERROR, WR_NET_BROKEN, WR_NET_LATER, WR_NET_BLAME_HOST},
        {CURLE_SEND_ERROR, WR_NET_BROKEN, WR_NET_LATER, WR_NET_BLAME_HOST},
        {CURLE_GOT_NOTHING, WR_NET_BROKEN, WR_NET_LATER, WR_NET_BLAME_HOST},
        {CURLE_PARTIAL_FILE, WR_NET_BROKEN, WR_NET_LATER, WR_NET_BLAME_HOST},
        {CURLE_WEIRD_SERVER_REPLY, WR_NET_PROTOCOL, WR_NET_LATER, WR_NET_BLAME_HOST},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct result_fixture *rig = rig_new();
        wr_result_from_curl(&rig->transfer, rows[i].code);
        const struct wr_net_result *result = &rig->transfer.result;
        if (result->end != rows[i].end || result->retry != rows[i].retry || result->blame != rows[i].blame)
            fail_msg("%s: %s", curl_easy_strerror(rows[i].code), result->words);
        if (rows[i].code == CURLE_OK)
            assert_string_equal(result->words, "answered");
        else
            assert_non_null(strstr(result->words, curl_easy_strerror(rows[i].code)));
        free(rig);
    }
}

static void message_of_libcurl_decides_where_its_code_does_not(void **state)
{
    (void)state;
    static const struct {
        CURLcode code;
        const char *error_text;
        enum wr_net_end end;
    } rows[] = {
        {CURLE_RECV_ERROR, "Illegal or missing hexadecimal sequence in chunked-encoding", WR_NET_PROTOCOL},
        {CURLE_RECV_ERROR, "Too large hexadecimal number", WR_NET_PROTOCOL},
        {CURLE_RECV_ERROR, "Connection reset by peer", WR_NET_BROKEN},
        {CURLE_PEER_FAILED_VERIFICATION, "malloc failure", WR_NET_SCARCE},
        {CURLE_RECV_ERROR, "Out of memory", WR_NET_SCARCE},
        {CURLE_COULDNT_RESOLVE_HOST, "getaddrinfo() thread failed to start", WR_NET_SCARCE},
        {CURLE_SSL_CONNECT_ERROR, "Insufficient randomness", WR_NET_SCARCE},
        {CURLE_OK, "malloc failure", WR_NET_DONE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct result_fixture *rig = rig_new();
        snprintf(rig->transfer.error_text, sizeof rig->transfer.error_text, "%s", rows[i].error_text);
        wr_result_from_curl(&rig->transfer, rows[i].code);
        if (rig->transfer.result.end != rows[i].end)
            fail_msg("%s: %s", rows[i].error_text, rig->transfer.result.words);
        assert_non_null(strstr(rig->transfer.result.words, rows[i].error_text));
        free(rig);
    }
}

static void truncated_head_is_a_broken_response(void **state)
{
    (void)state;
    struct result_fixture *rig = rig_new();
    rig->transfer.is_head_reported = false;
    wr_result_from_curl(&rig->transfer, CURLE_OK);
    assert_int_equal(rig->transfer.result.end, WR_NET_BROKEN);
    assert_string_equal(rig->transfer.result.words,
                        "the connection ended before the response was complete: the header was truncated");
    free(rig);
}

static void too_long_head_line_is_not_out_of_memory(void **state)
{
    (void)state;
    for (int sends = 0; sends <= 2; sends++)
        for (int is_told = 0; is_told <= 1; is_told++) {
            struct result_fixture *rig = rig_new();
            rig->transfer.result.sends = (uint32_t)sends;
            rig->transfer.is_head_reported = is_told;
            wr_result_from_curl(&rig->transfer, CURLE_OUT_OF_MEMORY);
            assert_int_equal(rig->transfer.result.end, sends > 0 && !is_told ? WR_NET_PROTOCOL : WR_NET_SCARCE);
            free(rig);
        }
}

static void failed_connection_is_blocked_scarce_or_a_fault_of_the_peer(void **state)
{
    (void)state;
    static const int scarce[] = {EMFILE, ENFILE, ENOBUFS, ENOMEM, EADDRNOTAVAIL};
    static const int others[] = {0, ECONNREFUSED, ETIMEDOUT, EACCES};
    struct result_fixture *rig;
    for (size_t i = 0; i < 5; i++) {
        assert_true(wr_result_is_scarce(scarce[i]));
        rig = rig_new();
        rig->transfer.socket_errno = scarce[i];
        wr_result_from_curl(&rig->transfer, CURLE_COULDNT_CONNECT);
        assert_int_equal(rig->transfer.result.end, WR_NET_SCARCE);
        free(rig);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_false(wr_result_is_scarce(others[i]));
        for (int has_proxy = 0; has_proxy <= 1; has_proxy++) {
            rig = rig_new();
            rig->net.proxy.is_set = has_proxy;
            rig->transfer.socket_errno = others[i];
            wr_result_from_curl(&rig->transfer, CURLE_COULDNT_CONNECT);
            assert_int_equal(rig->transfer.result.end, has_proxy ? WR_NET_PROXY : WR_NET_CONNECT);
            free(rig);
        }
    }
    rig = rig_new();
    rig->transfer.judged = WR_GUARD_LOOPBACK;
    wr_result_from_curl(&rig->transfer, CURLE_COULDNT_CONNECT);
    assert_int_equal(rig->transfer.result.end, WR_NET_BLOCKED);
    assert_non_null(strstr(rig->transfer.result.words, wr_guard_text(WR_GUARD_LOOPBACK)));
    free(rig);
    rig = rig_new();
    rig->transfer.judged = WR_GUARD_LOOPBACK; /* another address was reached */
    wr_result_from_curl(&rig->transfer, CURLE_RECV_ERROR);
    assert_int_equal(rig->transfer.result.end, WR_NET_BROKEN);
    free(rig);
}

static void proxy_is_blamed_for_a_request_that_was_not_sent(void **state)
{
    (void)state;
    for (uint32_t sends = 0; sends <= 1; sends++)
        for (int has_proxy = 0; has_proxy <= 1; has_proxy++) {
            struct result_fixture *rig = rig_new();
            rig->net.proxy.is_set = has_proxy;
            rig->transfer.result.sends = sends;
            wr_result_from_curl(&rig->transfer, CURLE_RECV_ERROR);
            assert_int_equal(rig->transfer.result.end, sends == 0 && has_proxy ? WR_NET_PROXY : WR_NET_BROKEN);
            free(rig);
        }
}

static void gateway_statuses_are_attributed_to_the_proxy(void **state)
{
    (void)state;
    static const int its_own[] = {407, 502, 504}, not_its_own[] = {200, 403, 429, 500, 503, 505};
    struct result_fixture *rig = rig_new();
    rig->net.proxy.is_set = true;
    for (size_t i = 0; i < 3; i++) {
        rig->transfer.result.status = its_own[i];
        assert_true(wr_net_is_proxy_response(&rig->transfer));
        rig->transfer.is_https = true; /* a response through TLS is the server's */
        assert_false(wr_net_is_proxy_response(&rig->transfer));
        rig->transfer.is_https = false;
    }
    for (size_t i = 0; i < 6; i++) {
        rig->transfer.result.status = not_its_own[i];
        assert_false(wr_net_is_proxy_response(&rig->transfer));
    }
    rig->transfer.result.status = 502;
    wr_result_fill(&rig->transfer);
    assert_int_equal(rig->transfer.result.blame, WR_NET_BLAME_PROXY);
    rig->net.proxy.is_set = false;
    assert_false(wr_net_is_proxy_response(&rig->transfer));
    free(rig);
}

static void request_that_is_not_idempotent_is_never_retried_once_sent(void **state)
{
    (void)state;
    for (uint32_t sends = 0; sends <= 1; sends++)
        for (int is_idempotent = 0; is_idempotent <= 1; is_idempotent++) {
            struct result_fixture *rig = rig_new();
            rig->transfer.bypasses_libcurl = true;
            rig->transfer.is_idempotent = is_idempotent;
            rig->transfer.result.sends = sends;
            rig->transfer.head.bytes = 321;
            rig->transfer.body.wire = 4711;
            rig->transfer.http1.version = 11;
            wr_transfer_set_end(&rig->transfer, WR_NET_BROKEN, NULL);
            wr_result_fill(&rig->transfer);
            const struct wr_net_result *result = &rig->transfer.result;
            assert_int_equal(result->retry, sends > 0 && !is_idempotent ? WR_NET_NEVER : WR_NET_LATER);
            assert_int_equal(result->blame, WR_NET_BLAME_HOST);
            assert_true(result->head_bytes == 321 && result->wire_bytes == 4711 && result->version == 11);
            free(rig);
        }
    static const char *const twice[] = {NULL, "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"};
    static const char *const once[] = {"POST", "PATCH", "CONNECT", "get", "", "BREW"};
    for (size_t i = 0; i < sizeof twice / sizeof twice[0]; i++)
        assert_true(wr_net_is_idempotent(twice[i]));
    for (size_t i = 0; i < sizeof once / sizeof once[0]; i++)
        assert_false(wr_net_is_idempotent(once[i]));
}

/* ---- the URL of the proxy ---- */

static void proxy_url_is_parsed_into_its_parts(void **state)
{
    (void)state;
    static const struct {
        const char *text, *url, *host, *user, *password;
        int port;
        bool is_https;
    } rows[] = {
        {"http://proxy.example:3128", "http://proxy.example:3128", "proxy.example", "", "", 3128, false},
        {"http://proxy.example", "http://proxy.example:80", "proxy.example", "", "", 80, false},
        {"https://proxy.example/", "https://proxy.example:443", "proxy.example", "", "", 443, true},
        {"http://[2001:db8::1]:1", "http://[2001:db8::1]:1", "2001:db8::1", "", "", 1, false},
        {"http://me@a:8080", "http://a:8080", "a", "me", "", 8080, false},
        {"http://me:se%40cret:x@a:8080", "http://a:8080", "a", "me", "se@cret:x", 8080, false},
        {"https://%6De:@a", "https://a:443", "a", "me", "", 443, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wr_proxy proxy;
        if (wr_proxy_parse(rows[i].text, &proxy) != 0)
            fail_msg("%s", rows[i].text);
        assert_true(proxy.is_set);
        assert_string_equal(proxy.url, rows[i].url);
        assert_string_equal(proxy.host, rows[i].host);
        assert_string_equal(proxy.user, rows[i].user);
        assert_string_equal(proxy.password, rows[i].password);
        assert_int_equal(proxy.port, rows[i].port);
        assert_int_equal(proxy.is_https, rows[i].is_https);
        assert_int_equal(wr_net_proxy_check(rows[i].text), 0);
    }
}

static void invalid_proxy_url_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    char longest[400];
    snprintf(longest, sizeof longest, "http://%0256d@a:1", 0);
    const char *const texts[] = {
        "",        "proxy.example:3128", "socks5://a:1080", "http://a/path",         "http://a/?q",
        "http://", "http://a:99999",     "http://a%00b@c",  "http://me:se%00cret@a", longest};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct wr_proxy proxy = {.port = 4711};
        if (wr_proxy_parse(texts[i], &proxy) != WEIR_E_INVAL)
            fail_msg("%s was taken", texts[i]);
        assert_true(proxy.port == 4711 && !proxy.is_set);
        assert_non_null(strstr(weir_error_detail(), "a proxy is http://host:port"));
        assert_int_equal(wr_net_proxy_check(texts[i]), WEIR_E_INVAL);
    }
}

/* ---- memory ---- */

static void transfer_is_counted_once_from_start_to_end(void **state)
{
    (void)state;
    struct result_fixture *one = rig_new(), *other = rig_new();
    assert_true(wr_memory_guard_admit(&one->transfer));
    assert_true(one->transfer.is_admitted && one->transfer.is_young && !one->net.is_short);
    assert_false(wr_memory_guard_alloc_failed(&one->transfer));
    assert_true(wr_memory_guard_admit(&other->transfer));
    wr_memory_guard_mark_grown(&one->transfer);
    assert_true(one->transfer.is_admitted && !one->transfer.is_young);
    wr_memory_guard_mark_grown(&one->transfer);
    wr_memory_guard_release(&one->transfer);
    assert_false(one->transfer.is_admitted || one->transfer.is_young);
    wr_memory_guard_release(&one->transfer);
    wr_memory_guard_release(&other->transfer);
    assert_false(other->transfer.is_admitted || other->transfer.is_young);
    assert_true(wr_memory_guard_admit(&one->transfer));
    wr_memory_guard_release(&one->transfer);
    free(one);
    free(other);
}

WEIR_TESTS(test(transfer_ends_have_names_and_texts), test(first_end_of_a_transfer_is_kept),
           test(texts_of_a_server_are_shown_in_printable_characters_only), test(libcurl_codes_map_to_transfer_ends),
           test(message_of_libcurl_decides_where_its_code_does_not), test(truncated_head_is_a_broken_response),
           test(too_long_head_line_is_not_out_of_memory),
           test(failed_connection_is_blocked_scarce_or_a_fault_of_the_peer),
           test(proxy_is_blamed_for_a_request_that_was_not_sent), test(gateway_statuses_are_attributed_to_the_proxy),
           test(request_that_is_not_idempotent_is_never_retried_once_sent), test(proxy_url_is_parsed_into_its_parts),
           test(invalid_proxy_url_is_refused_and_changes_nothing), test(transfer_is_counted_once_from_start_to_end))
