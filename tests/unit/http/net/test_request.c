/* SPDX-License-Identifier: MIT */
/* test_request.c - tests of the head of a request, and of the results of the system's resolver. The
 * linker replaces getaddrinfo and freeaddrinfo of the C library by those below. */
#include "http/net/net_internal.h"
#include "lib/alloc.h"
#include "lib/test.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>

/* ---- the request ---- */

static struct wr_net *net_new(const char *agent)
{
    struct wr_net *net = calloc(1, sizeof *net);
    assert_non_null(net);
    net->options.agent = agent;
    net->options.head_max = 1000;
    return net;
}

static void parse(const char *text, struct wr_url *ret_url)
{
    static char memory[WR_URL_ROOM];
    assert_int_equal(wr_url_parse(wr_span_of(text), NULL, NULL, memory, sizeof memory, ret_url), WR_URL_OK);
}

static const char *head_of(const struct wr_net *net, const struct wr_net_request *request, bool is_bare)
{
    static char memory[4096];
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, memory, sizeof memory);
    wr_net_append_head(&buf, net, request, is_bare);
    assert_int_equal(buf.error, 0);
    return memory;
}

static void plain_request_has_host_agent_accept_and_encodings(void **state)
{
    (void)state;
    struct wr_net *net = net_new("weir/1");
    struct wr_url url;
    parse("http://example.org:8080/a?b#c", &url);
    struct wr_net_request request = {.url = &url};
    assert_string_equal(head_of(net, &request, false), "GET /a?b HTTP/1.1\r\nHost: example.org:8080\r\n"
                                                       "User-Agent: weir/1\r\nAccept: */*\r\n"
                                                       "Accept-Encoding: deflate, gzip, br, zstd\r\n\r\n");
    request.method = "HEAD";
    net->options.agent = NULL;
    parse("http://example.org", &url);
    assert_string_equal(head_of(net, &request, false), "HEAD / HTTP/1.1\r\nHost: example.org\r\nAccept: */*\r\n"
                                                       "Accept-Encoding: deflate, gzip, br, zstd\r\n\r\n");
    free(net);
}

static void header_fields_of_the_caller_replace_ours(void **state)
{
    (void)state;
    struct wr_net *net = net_new("weir/1");
    struct wr_url url;
    parse("http://a/", &url);
    const struct wr_net_field fields[] = {{wr_span_of("user-AGENT"), wr_span_of("me")},
                                          {wr_span_of("X-Empty"), wr_span_of("")},
                                          {wr_span_of("ACCEPT-encoding"), wr_span_of("gzip")}};
    struct wr_net_request request = {.url = &url, .fields = fields, .field_count = 3};
    assert_string_equal(head_of(net, &request, false), "GET / HTTP/1.1\r\nHost: a\r\nAccept: */*\r\nuser-AGENT: me\r\n"
                                                       "X-Empty:\r\nACCEPT-encoding: gzip\r\n\r\n");
    assert_string_equal(head_of(net, &request, true), "GET / HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n");
    request.field_count = 1;
    assert_string_equal(head_of(net, &request, false), "GET / HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n"
                                                       "Accept-Encoding: deflate, gzip, br, zstd\r\n"
                                                       "user-AGENT: me\r\n\r\n");
    free(net);
}

static void validators_are_sent_back_only_if_they_are_valid(void **state)
{
    (void)state;
    struct wr_net *net = net_new(NULL);
    struct wr_url url;
    static char longest[5000];
    parse("http://a/", &url);
    struct wr_net_request request = {
        .url = &url, .etag = wr_span_of("W/\"x\""), .last_modified = wr_span_of("Tue, 01 Jan 2030 00:00:00 GMT")};
    const char *head = head_of(net, &request, false);
    assert_non_null(strstr(head, "\r\nIf-None-Match: W/\"x\"\r\n"));
    assert_non_null(strstr(head, "\r\nIf-Modified-Since: Tue, 01 Jan 2030 00:00:00 GMT\r\n"));
    memset(longest, 'x', sizeof longest - 1);
    const char *const odd[] = {"", "a\r\nb: c", "a\tb\001", longest};
    for (size_t i = 0; i < 4; i++) {
        assert_false(wr_net_validator_is_usable(wr_span_of(odd[i])));
        request.etag = request.last_modified = wr_span_of(odd[i]);
        head = head_of(net, &request, false);
        assert_null(strstr(head, "If-None-Match"));
        assert_null(strstr(head, "If-Modified-Since"));
    }
    free(net);
}

static void failed_request_allocation_is_an_error_and_the_next_request_works(void **state)
{
    (void)state;
    test_allocator memory;
    struct wr_net *net = net_new("weir/1");
    struct wr_transfer *transfer = calloc(1, sizeof *transfer);
    assert_non_null(transfer);
    struct wr_url url;
    test_allocator_init(&memory);
    net->allocator = &memory.allocator;
    transfer->net = net;
    transfer->port = 8080;
    memcpy(transfer->host, "example.org", 12);
    parse("http://example.org:8080/a", &url);
    struct wr_net_request request = {.url = &url, .method = "HEAD", .is_last = true};
    memory.fail_at = 1;
    assert_int_equal(wr_http1_set_request(transfer, &request), WEIR_E_NOMEM);
    memory.fail_at = 0;
    wr_http1_clear(transfer);
    transfer->http1.is_fresh = transfer->http1.is_kept = transfer->http1.is_given_up = true;
    transfer->http1.version = 11;
    transfer->http1.frame = WR_FRAMING_COMPLETE;
    transfer->http1.race_at = 4711;
    transfer->http1.received = 4711;
    assert_int_equal(wr_http1_set_request(transfer, &request), 0);
    const struct wr_http1_transfer *http1 = &transfer->http1;
    assert_true(http1->is_head && http1->is_last && !http1->is_fresh && !http1->is_kept && !http1->is_given_up);
    assert_true(http1->version == 0 && http1->frame == WR_FRAMING_HEAD && http1->race_at == 0 && http1->received == 0);
    assert_memory_equal(http1->request.bytes, "HEAD /a HTTP/1.1\r\n", 18);
    assert_int_equal(http1->key_bytes, 13);
    assert_memory_equal(http1->key, "example.org", 11);
    assert_memory_equal(http1->key + 11, &transfer->port, 2);
    wr_http1_clear(transfer);
    assert_int_equal(http1->request.length, 0);
    assert_true(http1->request.room > 0); /* kept for the next request */
    request.method = "GET";
    request.is_last = false;
    assert_int_equal(wr_http1_set_request(transfer, &request), 0);
    assert_false(http1->is_head || http1->is_last);
    assert_memory_equal(http1->request.bytes, "GET /a HTTP/1.1\r\n", 17);
    wr_http1_free(transfer);
    assert_int_equal(memory.live, 0);
    free(transfer);
    free(net);
}

static void memory_of_a_large_request_is_not_kept(void **state)
{
    (void)state;
    test_allocator memory;
    struct wr_net *net = net_new("weir/1");
    struct wr_transfer *transfer = calloc(1, sizeof *transfer);
    static char cookie[20000];
    assert_non_null(transfer);
    struct wr_url url;
    test_allocator_init(&memory);
    net->allocator = &memory.allocator;
    transfer->net = net;
    parse("http://a/", &url);
    memset(cookie, 'x', sizeof cookie - 1);
    const struct wr_net_field field = {wr_span_of("Cookie"), wr_span_of(cookie)};
    struct wr_net_request request = {.url = &url, .fields = &field, .field_count = 1};
    assert_int_equal(wr_http1_set_request(transfer, &request), 0);
    assert_true(transfer->http1.request.length > sizeof cookie);
    wr_http1_clear(transfer);
    assert_true(transfer->http1.request.length == 0 && transfer->http1.request.room == 0);
    wr_http1_free(transfer);
    assert_int_equal(memory.live, 0);
    free(transfer);
    free(net);
}

static void only_plain_get_and_head_without_a_proxy_bypass_libcurl(void **state)
{
    (void)state;
    static const char *const methods[] = {NULL, "GET", "HEAD", "POST", "get"};
    struct wr_net *net = net_new(NULL);
    struct wr_url url;
    for (size_t i = 0; i < 5; i++)
        for (int what = 0; what < 4; what++) {
            parse(what == 1 ? "https://a/" : "http://a/", &url);
            net->proxy.is_set = what == 2;
            net->options.uses_libcurl_only = what == 3;
            struct wr_net_request request = {.url = &url, .method = methods[i]};
            assert_int_equal(wr_http1_can_send(net, &request), what == 0 && i < 3);
        }
    free(net);
}

/* ---- the system's resolver ---- */

static int failure;
static struct addrinfo *records;
static bool is_freed;

int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **ret);
void __wrap_freeaddrinfo(struct addrinfo *list);

int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **ret)
{
    assert_string_equal(name, "example.org");
    assert_null(service);
    assert_true(hints->ai_family == AF_UNSPEC && hints->ai_socktype == SOCK_STREAM);
    is_freed = false;
    *ret = records;
    return failure;
}

void __wrap_freeaddrinfo(struct addrinfo *list)
{
    assert_ptr_equal(list, records);
    is_freed = true;
}

static void resolver_failures_are_distinguished(void **state)
{
    (void)state;
    static const struct {
        int failure;
        enum wr_dns_answer_kind kind;
    } rows[] = {{EAI_NONAME, WR_DNS_ABSENT}, {EAI_NODATA, WR_DNS_ABSENT}, {EAI_AGAIN, WR_DNS_FAILED},
                {EAI_FAIL, WR_DNS_FAILED},   {EAI_SYSTEM, WR_DNS_FAILED}, {EAI_MEMORY, WR_DNS_SCARCE}};
    records = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wr_dns_answer answer;
        failure = rows[i].failure;
        wr_lookup_system(NULL, "example.org", &answer);
        assert_int_equal(answer.kind, rows[i].kind);
        assert_int_equal(answer.count, 0);
    }
}

static struct sockaddr_in v4[1100];
static struct sockaddr_in6 v6[1100];
static struct addrinfo list[1100];

static void list_record(size_t i, size_t count, int family)
{
    v4[i] = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000200U + (uint32_t)i)};
    v6[i] = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr.s6_addr = {0x20, 1, [15] = (uint8_t)i}};
    list[i] = (struct addrinfo){.ai_addr = family == AF_INET ? (void *)&v4[i] : (void *)&v6[i],
                                .ai_next = i + 1 < count ? &list[i + 1] : NULL};
    if (family == AF_UNIX)
        v6[i].sin6_family = AF_UNIX;
}

static void four_addresses_of_each_family_are_kept_in_their_order(void **state)
{
    (void)state;
    struct wr_dns_answer answer;
    for (size_t i = 0; i < 20; i++)
        list_record(i, 20, i % 2 == 0 ? AF_INET : AF_INET6);
    records = list;
    failure = 0;
    wr_lookup_system(NULL, "example.org", &answer);
    assert_true(is_freed);
    assert_int_equal(answer.kind, WR_DNS_FOUND);
    assert_int_equal(answer.count, 8);
    for (uint8_t i = 0; i < 8; i++) {
        assert_int_equal(wr_address_is_v4(&answer.list[i]), i % 2 == 0);
        assert_int_equal(answer.list[i].bytes[15], i);
        assert_int_equal(answer.list[i].bytes[12], i % 2 == 0 ? 0xc0 : 0);
    }
}

static void answer_without_an_address_is_an_absent_name(void **state)
{
    (void)state;
    struct wr_dns_answer answer;
    list_record(0, 1, AF_UNIX);
    records = list;
    failure = 0;
    wr_lookup_system(NULL, "example.org", &answer);
    assert_true(is_freed);
    assert_int_equal(answer.kind, WR_DNS_ABSENT);
}

static void resolver_examines_a_thousand_records_of_an_answer(void **state)
{
    (void)state;
    struct wr_dns_answer answer;
    failure = 0;
    records = list;
    /* The only address is the last of the first thousand records, or the first after them. */
    for (size_t at = 999; at <= 1000; at++) {
        for (size_t i = 0; i < 1100; i++)
            list_record(i, 1100, i == at ? AF_INET : AF_UNIX);
        wr_lookup_system(NULL, "example.org", &answer);
        assert_int_equal(answer.count, at == 999);
    }
}

static void brackets_of_an_address_are_removed(void **state)
{
    (void)state;
    static const char *const rows[][2] = {{"[::1]", "::1"}, {"example.org", "example.org"}, {"[", "["}, {"[]", "[]"},
                                          {"", ""},         {"1.2.3.4", "1.2.3.4"}};
    for (size_t i = 0; i < 6; i++) {
        char host[WR_NAME_MAX + 1];
        memset(host, 'x', sizeof host);
        wr_host_copy(wr_span_of(rows[i][0]), host);
        assert_string_equal(host, rows[i][1]);
    }
}

WEIR_TESTS(test(plain_request_has_host_agent_accept_and_encodings), test(header_fields_of_the_caller_replace_ours),
           test(validators_are_sent_back_only_if_they_are_valid),
           test(failed_request_allocation_is_an_error_and_the_next_request_works),
           test(memory_of_a_large_request_is_not_kept), test(only_plain_get_and_head_without_a_proxy_bypass_libcurl),
           test(resolver_failures_are_distinguished), test(four_addresses_of_each_family_are_kept_in_their_order),
           test(answer_without_an_address_is_an_absent_name), test(resolver_examines_a_thousand_records_of_an_answer),
           test(brackets_of_an_address_are_removed))
