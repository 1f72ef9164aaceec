/* SPDX-License-Identifier: MIT */
/* test_path.c - tests that targets, methods, hosts and credentials which a service may read alike
 * get one spelling or are refused (J5, M1 ... M5). */
#include "lib/test.h"

#include "base/rng.h"
#include "core/admit/credentials.h"
#include "core/admit/host_name.h"
#include "core/admit/match.h"
#include "core/admit/method.h"

static char buffer[WEIR_KEY_MAX + 1];

static weir_request_fault route(const char *target)
{
    struct wr_buf buf;

    wr_buf_init_fixed(&buf, buffer, sizeof buffer);
    return wr_route_append(&buf, wr_span_of(target), 0);
}

/* ---- routes ---------------------------------------------------------------------------------- */

static void all_spellings_of_a_path_are_one_route(void **state)
{
    static const struct {
        const char *target, *expected;
    } cases[] = {
        {"/login", "/login"},
        {"/login?user=a", "/login"},
        {"/login?a#b?c", "/login"},
        {"/login?", "/login"},
        {"/Login", "/login"},
        {"/LOGIN/", "/login"},
        {"/login//", "/login"},
        {"/login;a=1", "/login"},
        {"/login;", "/login"},
        {"/login%3Ba", "/login"},
        {"/a//login", "/a/login"},
        {"/a/;x/login", "/a/login"},
        {"%2Flogin", NULL},
        {"//login", NULL},
        {"/%2Flogin", NULL},
        {"/login%2f", "/login"},
        {"http://example.org/login", "/login"},
        {"HTTPS://user@example.org:8443/login?x=http://y/z", "/login"},
        {"/", "/"},
        {"", "/"},
        {"?q", "/"},
        {"?/login", "/"},
        {"http://example.org", "/"},
        {"http://example.org?q", "/"},
        {"/...", "/..."},
        {"/a/..b", "/a/..b"},
        {"/.well-known/x", "/.well-known/x"},
        {"/users/@me:x,2!", "/users/@me:x,2!"},
        {"/users/%40me", "/users/@me"},
        {"/caf%c3%a9", "/caf%C3%A9"},
        {"/%e2%80%a6", "/%E2%80%A6"},       /* three bytes; the second is small */
        {"/%f0%90%80%80", "/%F0%90%80%80"}, /* the smallest character of four bytes */
        {"/a%20b", "/a%20b"},
        {"/~me", "/~me"},
        {"/%7eme", "/~me"},
        {"/a\"<>^`{|}[]", "/a%22%3C%3E%5E%60%7B%7C%7D%5B%5D"},
        {"/100%25", "/100%25"},
        {"/%256cogin", "/%256cogin"}, /* services decode only once */
        {"/a%3Fb%23c", "/a%3Fb%23c"},
        {"/a%2Fb", "/a/b"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(route(cases[i].target), cases[i].expected == NULL ? WEIR_FAULT_TARGET : WEIR_FAULT_NONE);
        if (cases[i].expected != NULL)
            assert_string_equal(buffer, cases[i].expected);
    }
}

static void exact_bits_keep_differences_between_paths(void **state)
{
    static const struct {
        unsigned exact;
        const char *target, *expected;
    } cases[] = {
        {WEIR_EXACT_CASE, "/Login/;A", "/Login"},
        {WEIR_EXACT_SLASHES, "/x//Login/;A", "/x//login/"},
        {WEIR_EXACT_PARAMS, "/x//Login/;A", "/x/login/;a"},
        {WEIR_EXACT_ALL, "/x//Login/;A", "/x//Login/;A"},
        {WEIR_EXACT_ALL, "/a%2Fb", "/a/b"}, /* no WEIR_EXACT_... bit keeps %2F */
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wr_buf buf;
        wr_buf_init_fixed(&buf, buffer, sizeof buffer);
        assert_int_equal(wr_route_append(&buf, wr_span_of(cases[i].target), cases[i].exact), WEIR_FAULT_NONE);
        assert_string_equal(buffer, cases[i].expected);
    }
}

struct refused {
    const char *target;
    weir_request_fault fault;
};

static void assert_refused(const struct refused *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (route(cases[i].target) != cases[i].fault)
            fail_msg("%s: %s", cases[i].target, weir_request_fault_name(route(cases[i].target)));
    }
}

static void target_that_is_not_a_path_has_no_route(void **state)
{
    static const struct refused cases[] = {
        {"*", WEIR_FAULT_TARGET},
        {"**", WEIR_FAULT_TARGET},
        {"example.org:443", WEIR_FAULT_TARGET},
        {"login", WEIR_FAULT_TARGET},
        {"#f", WEIR_FAULT_TARGET},
        {" /login", WEIR_FAULT_TARGET},
        {"\\login", WEIR_FAULT_TARGET},
        {"://x/login", WEIR_FAULT_TARGET},
        {"//", WEIR_FAULT_TARGET},
        {"//x/login", WEIR_FAULT_TARGET},
        {"///x/login", WEIR_FAULT_TARGET},
        {"/%2fx/login", WEIR_FAULT_TARGET},
        {"/;/x/login", WEIR_FAULT_TARGET},
        {"/%3B/x", WEIR_FAULT_TARGET},
        {"http://h//x", WEIR_FAULT_TARGET},
        {"http:/login", WEIR_FAULT_TARGET},
        {"http:///login", WEIR_FAULT_TARGET},
        {"http://", WEIR_FAULT_TARGET},
        {"http://h#/login", WEIR_FAULT_TARGET},
        {"http://h\\login", WEIR_FAULT_TARGET},
        {"ftp://h/login", WEIR_FAULT_TARGET},
    };

    (void)state;
    assert_refused(cases, sizeof cases / sizeof cases[0]);
    assert_int_equal(route(NULL), WEIR_FAULT_MISSING);
}

static void ambiguous_paths_that_no_client_needs_are_refused(void **state)
{
    static const struct refused cases[] = {
        {"/.", WEIR_FAULT_DOTS},
        {"/..", WEIR_FAULT_DOTS},
        {"/../login", WEIR_FAULT_DOTS},
        {"/./login", WEIR_FAULT_DOTS},
        {"/x/../login", WEIR_FAULT_DOTS},
        {"/x/..?", WEIR_FAULT_DOTS},
        {"/x/..;/login", WEIR_FAULT_DOTS},
        {"/x/..%3B/login", WEIR_FAULT_DOTS},
        {"/x/..%2Flogin", WEIR_FAULT_DOTS},
        {"/x%2F../login", WEIR_FAULT_DOTS},
        {"/x%2f..", WEIR_FAULT_DOTS},
        {"/a%4g", WEIR_FAULT_ESCAPE},
        {"/a%g4", WEIR_FAULT_ESCAPE},
        {"/x/%2e%2e/login", WEIR_FAULT_ESCAPE},
        {"/%6cogin", WEIR_FAULT_ESCAPE},
        {"/%4Cogin", WEIR_FAULT_ESCAPE},
        {"/%31", WEIR_FAULT_ESCAPE},
        {"/a%2Db%5Fc", WEIR_FAULT_ESCAPE},
        {"/100%", WEIR_FAULT_ESCAPE},
        {"/%zz", WEIR_FAULT_ESCAPE},
        {"/%2", WEIR_FAULT_ESCAPE},
        {"/a;b%2Fc", WEIR_FAULT_ESCAPE},
        {"/a;b/c%3Bd", WEIR_FAULT_ESCAPE},
        {"/a%3Bb;c", WEIR_FAULT_ESCAPE},
        {"/login#x", WEIR_FAULT_BYTES},
        {"/\\x/login", WEIR_FAULT_BYTES},
        {"/x\\login", WEIR_FAULT_BYTES},
        {"/x%5Clogin", WEIR_FAULT_BYTES},
        {"/x%5clogin", WEIR_FAULT_BYTES},
        {"/a\r\nb", WEIR_FAULT_BYTES},
        {"/login%0A", WEIR_FAULT_BYTES},
        {"/login%00", WEIR_FAULT_BYTES},
        {"/login\t", WEIR_FAULT_BYTES},
        {"/%7F", WEIR_FAULT_BYTES},
        {"/a\x7f", WEIR_FAULT_BYTES},
        {"/login\xa0", WEIR_FAULT_BYTES},
        {"/caf\xc3\xa9", WEIR_FAULT_BYTES},
        {"/a b", WEIR_FAULT_BYTES},
        {"/..%c0%af", WEIR_FAULT_BYTES},
        {"/%C0%AE%C0%AE/login", WEIR_FAULT_BYTES},
        {"/%e0%80%af", WEIR_FAULT_BYTES},
        {"/%F0%80%80%AF", WEIR_FAULT_BYTES},
        {"/\xc0%af", WEIR_FAULT_BYTES},
        {"/%fc", WEIR_FAULT_NONE}, /* Latin-1, as old clients send it */
        {"/%C0x", WEIR_FAULT_NONE},
    };

    (void)state;
    assert_refused(cases, sizeof cases / sizeof cases[0]);
}

static void a_route_fits_up_to_the_last_byte(void **state)
{
    char target[WEIR_KEY_MAX + 2];

    (void)state;
    memset(target, 'a', sizeof target);
    target[0] = '/';
    target[WEIR_KEY_MAX] = '\0';
    assert_int_equal(route(target), WEIR_FAULT_NONE);
    assert_int_equal(strlen(buffer), WEIR_KEY_MAX);
    target[WEIR_KEY_MAX] = 'a';
    target[WEIR_KEY_MAX + 1] = '\0';
    assert_int_equal(route(target), WEIR_FAULT_LONG);
    /* '
     * ' becomes the three bytes %7C */
    target[WEIR_KEY_MAX - 1] = '|';
    target[WEIR_KEY_MAX] = '\0';
    assert_int_equal(route(target), WEIR_FAULT_LONG);
}

/* The key of a route is its own key: a second pass changes nothing. */
static void a_route_is_its_own_route(void **state)
{
    static const char alphabet[] = "/.;%2F3BaAx|? ";
    struct wr_rng rng;

    (void)state;
    wr_rng_init(&rng, weir_test_seed());
    for (int round = 0; round < 100000; round++) {
        char target[32] = "/x", once[sizeof buffer];
        size_t bytes = 2 + (size_t)wr_rng_below(&rng, 29);
        for (size_t i = 2; i < bytes; i++)
            target[i] = alphabet[wr_rng_below(&rng, sizeof alphabet - 1)];
        if (route(target) != WEIR_FAULT_NONE)
            continue;
        memcpy(once, buffer, sizeof once);
        assert_int_equal(once[0], '/');
        assert_null(strstr(once, "//"));
        assert_null(strchr(once, ';'));
        assert_int_equal(route(once), WEIR_FAULT_NONE);
        assert_string_equal(buffer, once);
    }
}

/* ---- readings -------------------------------------------------------------------------------- */

/* Returns all readings of a target, separated by blanks, or the name of the fault. */
static const char *readings_of(const char *target, unsigned exact)
{
    static struct wr_request_reading asked;
    static char memory[16 * (WR_READ_MAX / 16 + 8)];
    struct wr_buf all;
    weir_request request;

    wr_buf_init_fixed(&all, memory, sizeof memory);
    weir_request_init(&request, "GET", target, NULL);
    weir_request_fault fault = wr_request_reading_begin(&request, WR_READS_PATH, exact, &asked);
    if (fault != WEIR_FAULT_NONE)
        return weir_request_fault_name(fault);
    do {
        wr_buf_append_string(&all, all.length > 0 ? " " : "");
        wr_buf_append_span(&all, (struct wr_span){asked.request.target, asked.request.target_bytes});
    } while (wr_request_reading_next(&asked));
    assert_int_equal(asked.loose, 0); /* back at the first reading */
    assert_memory_equal(memory, asked.request.target, asked.request.target_bytes);
    return memory;
}

static void a_path_is_read_in_each_way_that_a_service_may_read_it(void **state)
{
    static const struct {
        const char *target, *readings;
    } rows[] = {
        {"/login", "/login"},
        {"/login?A=/B/;c", "/login"},
        {"/caf%c3%a9", "/caf%C3%A9"},
        {"/Login", "/Login /login"},
        {"/login/", "/login/ /login"},
        {"/login;x", "/login;x /login"},
        {"/Login/", "/Login/ /login/ /Login /login"},
        {"/a//b", "/a//b /a/b"},
        /* nginx merges slashes but keeps a trailing one */
        {"/a//b/", "/a//b/ /a/b/ /a//b /a/b"},
        /* ASP.NET decodes every escape except %2F */
        {"/a%2Fb%40c", "/a%2Fb%40c /a%2Fb@c /a/b%40c /a/b@c"},
        {"/a%2fb", "/a%2Fb /a/b"},
        {"/%40me", "/%40me /@me"},
        {"/a%3Bb", "/a%3Bb /a%3Bb /a;b /a"},
        {"/a%2F/b", "/a%2F/b /a%2F/b /a//b /a/b"},
        {"/a/;x", "/a/;x /a/;x /a/ /a/ /a/;x /a/;x /a /a"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_string_equal(readings_of(rows[i].target, 0), rows[i].readings);
    assert_string_equal(readings_of("/Login/", WEIR_EXACT_CASE), "/Login/ /Login");
    assert_string_equal(readings_of("/Login/;x", WEIR_EXACT_ALL), "/Login/;x");
    assert_string_equal(readings_of("/a//Login/", WEIR_EXACT_SLASHES), "/a//Login/ /a//login/");
}

/* The readings of a path take at most WR_READ_MAX bytes, however unusual it is. */
static void a_path_with_many_readings_must_be_short(void **state)
{
    static char target[WR_PATH_MAX + 3];

    (void)state;
    memset(target, 'a', sizeof target - 1);
    memcpy(target, "/A;b//%40", 9);
    assert_string_equal(readings_of(target, 0), "too_long");
    target[WR_READ_MAX / 16] = '\0';
    assert_string_not_equal(readings_of(target, 0), "too_long");
    target[WR_READ_MAX / 16] = 'a';
    target[WR_READ_MAX / 16 + 1] = '\0';
    assert_string_equal(readings_of(target, 0), "too_long");
}

/* ---- methods --------------------------------------------------------------------------------- */

static void callers_cannot_make_up_methods(void **state)
{
    static char long_one[1000 + 1] = "GET";
    static const struct {
        const char *method, *expected;
    } cases[] = {{"GET", "GET"}, {"DELETE", "DELETE"}, {"pAtCh", "PATCH"}, {"get", "GET"},     {"GETX", "OTHER"},
                 {"", "OTHER"},  {NULL, "OTHER"},      {"GE", "OTHER"},    {"A\x01", "OTHER"}, {long_one, "OTHER"}};

    (void)state;
    memset(long_one + 3, 'T', sizeof long_one - 1 - 3);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wr_buf buf;
        wr_buf_init_fixed(&buf, buffer, sizeof buffer);
        wr_method_append(&buf, wr_span_of(cases[i].method));
        assert_string_equal(buffer, cases[i].expected);
    }
}

static void methods_are_compared_without_case_and_head_is_a_get(void **state)
{
    static const struct {
        const char *wanted, *method;
        bool fits;
    } rows[] = {
        {"POST", "POST", true}, {"POST", "post", true}, {"POST", "pOsT", true},         {"GET", "HEAD", true},
        {"GET", "head", true},  {"HEAD", "GET", false}, {"PROPFIND", "propfind", true}, {"POST", "POST ", false},
        {"POST", "POS", false}, {"POST", "", false},    {"GET", "OPTIONS", false},      {"POST", NULL, false}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (wr_method_fits(wr_span_of(rows[i].wanted), wr_span_of(rows[i].method)) != rows[i].fits)
            fail_msg("%s and %s", rows[i].wanted, rows[i].method);
    }
}

static void a_method_that_is_no_token_is_refused_where_a_rule_names_methods(void **state)
{
    static const struct {
        const char *method;
        weir_request_fault fault;
    } rows[] = {{"POST", WEIR_FAULT_NONE},
                {"x-!#$%&'*+.^_`|~9", WEIR_FAULT_NONE},
                {"", WEIR_FAULT_NONE},
                {NULL, WEIR_FAULT_NONE},
                {"PO ST", WEIR_FAULT_BYTES},
                {"POST ", WEIR_FAULT_BYTES},
                {"POST\t/login", WEIR_FAULT_BYTES},
                {"POST\x01", WEIR_FAULT_BYTES},
                {"(POST)", WEIR_FAULT_BYTES},
                {"P\xd0\x9eST", WEIR_FAULT_BYTES}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weir_request request;
        struct wr_request_reading asked;
        weir_request_init(&request, rows[i].method, "/login", NULL);
        weir_request_fault fault = wr_request_reading_begin(&request, WR_READS_METHOD | WR_READS_PATH, 0, &asked);
        if (fault != rows[i].fault)
            fail_msg("%s: %s", rows[i].method, weir_request_fault_name(fault));
        assert_int_equal(wr_request_reading_begin(&request, WR_READS_PATH, 0, &asked), WEIR_FAULT_NONE);
    }
}

/* ---- hosts ----------------------------------------------------------------------------------- */

static void a_host_has_one_spelling_or_is_refused(void **state)
{
    static const struct {
        const char *host, *written; /* NULL: refused */
    } rows[] = {
        {"Example.ORG", "example.org"},
        {"example.org:8080", "example.org"},
        {"example.org:", "example.org"},
        {"example.org.", "example.org"},
        {"example.org.:80", "example.org"},
        {"a_b-c.example", "a_b-c.example"},
        {"192.0.2.1:80", "192.0.2.1"},
        {"192.0.2.1.", "192.0.2.1"},
        {"1a2", "1a2"},
        {"[2001:DB8::1]:443", "[2001:db8::1]"},
        {"[2001:db8:0:0::1]", "[2001:db8::1]"},
        {"[::ffff:192.0.2.1]", "[::ffff:c000:201]"},
        {"api.example.org:x", NULL},
        {"api.example.org:0x50", NULL},
        {"api.example.org:80:80", NULL},
        {"api.example.org:-1", NULL},
        {"api.example.org:+80", NULL},
        {"api.example.org:80,", NULL},
        {"api.example.org:99999", NULL},
        {"api.example.org:000080", NULL},
        {"api.example.org::80", NULL},
        {"api.example.org..", NULL},
        {".api.example.org", NULL},
        {"api..example.org", NULL},
        {".", NULL},
        {":80", NULL},
        {"a,b", NULL},
        {"a b", NULL},
        {"u@api.example.org", NULL},
        {"api.example.org/x", NULL},
        {"api.example.org?x", NULL},
        {"api%2Eexample.org", NULL},
        {"\xc3\xa4.example", NULL},
        {"2130706433", NULL},
        {"127.1", NULL},
        {"0x7f.0.0.1", NULL},
        {"127.0.0.0x1", NULL},
        {"0127.0.0.1", NULL},
        {"::1", NULL},
        {"[::1", NULL},
        {"[::1]x", NULL},
        {"[::1]:x", NULL},
        {"[fe80::1%25eth0]", NULL},
        {"[]", NULL},
        {"[example.org]", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wr_buf buf;
        wr_buf_init_fixed(&buf, buffer, sizeof buffer);
        weir_request_fault fault = wr_host_append(&buf, wr_span_of(rows[i].host));
        if (fault != (rows[i].written == NULL ? WEIR_FAULT_HOST : WEIR_FAULT_NONE))
            fail_msg("%s: %s", rows[i].host, weir_request_fault_name(fault));
        if (rows[i].written != NULL)
            assert_string_equal(buffer, rows[i].written);
    }
}

static void ports_of_a_host_are_0_to_65535(void **state)
{
    static const struct {
        const char *host;
        weir_request_fault fault;
    } rows[] = {{"example.org:0", WEIR_FAULT_NONE},
                {"example.org:65535", WEIR_FAULT_NONE},
                {"example.org:65536", WEIR_FAULT_HOST}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wr_buf buf;
        wr_buf_init_fixed(&buf, buffer, sizeof buffer);
        assert_int_equal(wr_host_append(&buf, wr_span_of(rows[i].host)), rows[i].fault);
    }
}

/* Returns the host that rules are compared with, or the name of the fault. */
static const char *host_of(const char *target, const char *host)
{
    static struct wr_request_reading asked;
    weir_request request;

    weir_request_init(&request, "GET", target, NULL);
    request.host = host;
    request.host_bytes = host == NULL ? 0 : strlen(host);
    weir_request_fault fault = wr_request_reading_begin(&request, WR_READS_HOST, 0, &asked);
    return fault != WEIR_FAULT_NONE     ? weir_request_fault_name(fault)
           : asked.request.host == NULL ? "none"
                                        : asked.request.host;
}

/* RFC 9112 3.2.2 */
static void a_target_that_is_a_url_names_the_host(void **state)
{
    (void)state;
    assert_string_equal(host_of("/", "Example.org:80"), "example.org");
    assert_string_equal(host_of("/", NULL), "none");
    assert_string_equal(host_of("http://Example.org:80/x", NULL), "example.org");
    assert_string_equal(host_of("http://example.org", "EXAMPLE.org.:8080"), "example.org");
    assert_string_equal(host_of("http://example.org/", "other.example"), "bad_host");
    assert_string_equal(host_of("http://u@example.org/", NULL), "bad_host");
    assert_string_equal(host_of("http://example.org:x/", "example.org"), "bad_host");
    assert_string_equal(host_of("http://example.org/", ""), "bad_host");
    assert_string_equal(host_of("/", ""), "bad_host");
    assert_string_equal(host_of("/", " "), "bad_host");
    assert_string_equal(host_of("/", " example.org\t"), "example.org");
    assert_string_equal(host_of("http:// example.org/", "example.org"), "bad_host");
}

/* ---- credentials ----------------------------------------------------------------------------- */

static void spellings_of_one_credential_are_one(void **state)
{
    static const struct {
        const char *value, *token; /* NULL: refused */
    } rows[] = {
        {"Bearer x", "x"},
        {"bearer x", "x"},
        {"BEARER  x", "x"},
        {"Bearer\tx", "x"},
        {" Bearer \t x \t", "x"},
        {"Token x", "x"},
        {"x", "x"},
        {"Bearer a.b-c_d~e+f/g==", "a.b-c_d~e+f/g=="},
        {"Bearer 1|abc", "1|abc"},
        {"Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"},
        {"basic  QQ==", "QQ=="},
        {"Bearer eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.AQI", "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.AQI"},
        {"Bearer a.b.c", "a.b.c"},
        {"Bearer x y", NULL},
        {"Bearer x,", NULL},
        {"Bearer x, Bearer y", NULL},
        {"Bearer \"x\"", NULL},
        {"Bearer 'x'", NULL},
        {"Bearer token=x", NULL},
        {"Token token=\"x\", a=b", NULL},
        {"Bearer x;y", NULL},
        {"Bearer =x", NULL},
        {"Bearer \xc2\xa0x", NULL},
        {"Digest username=\"a\", nonce=\"b\"", NULL},
        {"Basic QR==", NULL}, /* many decoders read the same byte as from QQ== */
        {"Basic QQ=", NULL},
        {"Basic QQ", NULL},
        {"Basic QQ====", NULL},
        {"Basic Q-==", NULL},
        {"Basic Q!Q==", NULL},
        /* decodes to the same signature as AQI */
        {"Bearer eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.AQJ", NULL},
        {"Bearer eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.AQI=", NULL},
        {"Bearer eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.A!QI", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wr_span token;
        weir_request_fault fault = wr_credentials_read(wr_span_of(rows[i].value), &token);
        if (fault != (rows[i].token == NULL ? WEIR_FAULT_CREDENTIALS : WEIR_FAULT_NONE))
            fail_msg("%s: %s", rows[i].value, weir_request_fault_name(fault));
        if (rows[i].token != NULL)
            assert_true(wr_span_is(token, rows[i].token));
    }
}

WEIR_TESTS(test(all_spellings_of_a_path_are_one_route), test(exact_bits_keep_differences_between_paths),
           test(target_that_is_not_a_path_has_no_route), test(ambiguous_paths_that_no_client_needs_are_refused),
           test(a_route_fits_up_to_the_last_byte), test(a_route_is_its_own_route),
           test(a_path_is_read_in_each_way_that_a_service_may_read_it), test(a_path_with_many_readings_must_be_short),
           test(callers_cannot_make_up_methods), test(methods_are_compared_without_case_and_head_is_a_get),
           test(a_method_that_is_no_token_is_refused_where_a_rule_names_methods),
           test(a_host_has_one_spelling_or_is_refused), test(ports_of_a_host_are_0_to_65535),
           test(a_target_that_is_a_url_names_the_host), test(spellings_of_one_credential_are_one))
