/* SPDX-License-Identifier: MIT */
/* test_key.c - tests the six key extractors, and requests without a usable key (S3-24 ... S3-30,
 * J5, J8, V10). */
#include "core/admit/key.h"
#include "lib/test.h"

#include "base/rng.h"
#include "core/admit/rule_cost.h"

struct request {
    weir_request request;
    weir_header headers[4];
    weir_header_list list;
};

static void request_init(struct request *ret_request, const char *target, const weir_header *headers, size_t count)
{
    weir_request_init(&ret_request->request, "GET", target, "203.0.113.7");
    memcpy(ret_request->headers, headers, count * sizeof *headers);
    ret_request->list = (weir_header_list){ret_request->headers, count};
    ret_request->request.header = weir_header_list_find;
    ret_request->request.header_context = &ret_request->list;
}

static void user_init(struct request *ret_request, const char *user)
{
    weir_header header = {"X-User-Id", user};
    request_init(ret_request, "/a", &header, user != NULL);
}

/* Returns the key as a string. Fails the test if the request has no key. */
static const char *key_of(const weir_key_rule *key, const weir_request *request)
{
    static char buffer[WEIR_KEY_MAX + 1];
    size_t bytes = 0;
    weir_request_fault fault = WEIR_FAULT_NONE;

    if (weir_key_extract(key, request, buffer, WEIR_KEY_MAX, &bytes, &fault) < 0)
        fail_msg("no key: %s, %s", weir_request_fault_name(fault), weir_error_detail());
    buffer[bytes] = '\0';
    return buffer;
}

static weir_request_fault fault_of(const weir_key_rule *key, const weir_request *request)
{
    char buffer[WEIR_KEY_MAX];
    size_t bytes = 4711;
    weir_request_fault fault = WEIR_FAULT_NONE;

    assert_int_equal(weir_key_extract(key, request, buffer, WEIR_KEY_MAX, &bytes, &fault), WEIR_E_ABSENT);
    assert_int_equal(bytes, 4711);
    return fault;
}

/* S3-24, S3-25 */
static void the_global_key_is_the_same_for_all(void **state)
{
    weir_key_rule key;
    weir_request request;

    (void)state;
    weir_key_rule_init(&key, WEIR_KEY_GLOBAL);
    weir_request_init(&request, NULL, NULL, NULL);
    assert_string_equal(key_of(&key, &request), "__global__");
    weir_request_init(&request, "POST", "/x", "1.2.3.4");
    assert_string_equal(key_of(&key, &request), "__global__");
}

/* S3-27 */
static void the_user_key_is_a_header_or_anonymous(void **state)
{
    weir_key_rule key;
    struct request request;
    weir_header token = {"AUTHORIZATION", "Bearer x"};

    (void)state;
    weir_key_rule_init(&key, WEIR_KEY_USER);
    user_init(&request, "alice");
    assert_string_equal(key_of(&key, &request.request), "alice");
    user_init(&request, " \tAlice Smith\t ");
    assert_string_equal(key_of(&key, &request.request), "Alice Smith");
    user_init(&request, NULL);
    assert_string_equal(key_of(&key, &request.request), "anonymous");
    user_init(&request, "");
    assert_string_equal(key_of(&key, &request.request), "anonymous");
    user_init(&request, "  ");
    assert_string_equal(key_of(&key, &request.request), "anonymous");
    request.request.header = NULL;
    assert_string_equal(key_of(&key, &request.request), "anonymous");

    key.header = "authorization";
    request_init(&request, "/", &token, 1);
    assert_string_equal(key_of(&key, &request.request), "x"); /* any scheme is accepted */
}

/* S3-28 */
static void the_route_key_is_the_path(void **state)
{
    weir_key_rule key;
    weir_request request;

    (void)state;
    weir_key_rule_init(&key, WEIR_KEY_ROUTE);
    weir_request_init(&request, "GET", "/api/v1/items?page=2#top", NULL);
    assert_string_equal(key_of(&key, &request), "/api/v1/items");
    key.with_method = true;
    assert_string_equal(key_of(&key, &request), "GET /api/v1/items");
    weir_request_init(&request, "BREW", "/pot", NULL);
    assert_string_equal(key_of(&key, &request), "OTHER /pot");
    weir_request_init(&request, "GET", NULL, NULL);
    assert_int_equal(fault_of(&key, &request), WEIR_FAULT_MISSING);
}

static size_t host_key(void *context, const weir_request *request, char *buffer, size_t buffer_bytes)
{
    *(int *)context += 1;
    if (request->host_bytes <= buffer_bytes)
        memcpy(buffer, request->host, request->host_bytes);
    return request->host_bytes;
}

/* S3-29 */
static void custom_key_is_the_result_of_the_function(void **state)
{
    static char long_host[WEIR_KEY_MAX + 1];
    weir_key_rule key;
    weir_request request;
    int calls = 0;

    (void)state;
    memset(long_host, 'h', sizeof long_host);
    weir_key_rule_init(&key, WEIR_KEY_CUSTOM);
    key.custom = host_key;
    key.custom_context = &calls;
    weir_request_init(&request, "GET", "/", NULL);
    request.host = "example.org";
    request.host_bytes = 11;
    assert_string_equal(key_of(&key, &request), "example.org");
    request.host_bytes = 0;
    assert_int_equal(fault_of(&key, &request), WEIR_FAULT_MISSING);
    request.host = long_host;
    request.host_bytes = WEIR_KEY_MAX + 1;
    assert_int_equal(fault_of(&key, &request), WEIR_FAULT_LONG);
    request.host_bytes = WEIR_KEY_MAX;
    assert_int_equal(strlen(key_of(&key, &request)), WEIR_KEY_MAX);
    request.host = "a\nb";
    request.host_bytes = 3;
    assert_int_equal(fault_of(&key, &request), WEIR_FAULT_BYTES);
    assert_int_equal(calls, 5);
}

/* S3-30 */
static void a_composite_key_joins_its_parts(void **state)
{
    weir_key_rule ip, user, route, key;
    const weir_key_rule *parts[] = {&user, &route, &ip};
    struct request request;

    (void)state;
    weir_key_rule_init(&ip, WEIR_KEY_IP);
    weir_key_rule_init(&user, WEIR_KEY_USER);
    weir_key_rule_init(&route, WEIR_KEY_ROUTE);
    weir_key_rule_init(&key, WEIR_KEY_COMPOSITE);
    key.parts = parts;
    key.parts_count = 3;
    user_init(&request, "alice");
    assert_string_equal(key_of(&key, &request.request), "alice:/a:203.0.113.7");
    user_init(&request, NULL);
    assert_string_equal(key_of(&key, &request.request), "anonymous:/a:203.0.113.7");
    user_init(&request, "a:b\\c");
    assert_string_equal(key_of(&key, &request.request), "a\\:b\\\\c:/a:203.0.113.7");
    key.separator = '|';
    request.request.peer = "2001:db8::1";
    request.request.peer_bytes = 11;
    assert_string_equal(key_of(&key, &request.request), "a:b\\\\c|/a|2001:db8::/64");
}

static void a_composite_has_no_key_if_a_part_has_none(void **state)
{
    weir_key_rule user, route, key;
    const weir_key_rule *parts[] = {&user, &route};
    struct request request;

    (void)state;
    weir_key_rule_init(&user, WEIR_KEY_USER);
    weir_key_rule_init(&route, WEIR_KEY_ROUTE);
    weir_key_rule_init(&key, WEIR_KEY_COMPOSITE);
    key.parts = parts;
    key.parts_count = 2;
    user_init(&request, "alice");
    request.request.target = NULL;
    request.request.target_bytes = 0;
    assert_int_equal(fault_of(&key, &request.request), WEIR_FAULT_MISSING);
    key.fallback = "others";
    assert_string_equal(key_of(&key, &request.request), "others");
    key.fallback = NULL;
    route.fallback = "nowhere";
    assert_string_equal(key_of(&key, &request.request), "alice:nowhere");
}

/* ---- composites cannot collide --------------------------------------------------------------- */

#define TRIPLES 3000

struct triple {
    char parts[3][8];
    char key[WEIR_KEY_MAX + 1];
};

static size_t part_key(void *context, const weir_request *request, char *buffer, size_t buffer_bytes)
{
    const char *text = *(const char **)context;
    (void)request;
    (void)buffer_bytes;
    memcpy(buffer, text, strlen(text));
    return strlen(text);
}

static void triple_draw(struct triple *triple, struct wr_rng *rng)
{
    static const char alphabet[] = "a:\\b";

    for (int i = 0; i < 3; i++) {
        size_t bytes = 1 + (size_t)wr_rng_below(rng, 5);
        for (size_t j = 0; j < bytes; j++)
            triple->parts[i][j] = alphabet[wr_rng_below(rng, sizeof alphabet - 1)];
        triple->parts[i][bytes] = '\0';
    }
}

static bool same_parts(const struct triple *a, const struct triple *b)
{
    return strcmp(a->parts[0], b->parts[0]) == 0 && strcmp(a->parts[1], b->parts[1]) == 0 &&
           strcmp(a->parts[2], b->parts[2]) == 0;
}

/* The parts contain the separator and the escape character, which could cause collisions. Two keys
 * are equal only if all of their parts are. */
static void different_parts_never_make_the_same_key(void **state)
{
    static struct triple triples[TRIPLES];
    const char *texts[3];
    weir_key_rule parts[3], key;
    const weir_key_rule *pointers[] = {&parts[0], &parts[1], &parts[2]};
    weir_request request;
    struct wr_rng rng;

    (void)state;
    wr_rng_init(&rng, weir_test_seed());
    weir_request_init(&request, NULL, NULL, NULL);
    weir_key_rule_init(&key, WEIR_KEY_COMPOSITE);
    key.parts = pointers;
    key.parts_count = 3;
    for (int i = 0; i < 3; i++) {
        weir_key_rule_init(&parts[i], WEIR_KEY_CUSTOM);
        parts[i].custom = part_key;
        parts[i].custom_context = &texts[i];
    }
    for (int i = 0; i < TRIPLES; i++) {
        triple_draw(&triples[i], &rng);
        for (int j = 0; j < 3; j++)
            texts[j] = triples[i].parts[j];
        snprintf(triples[i].key, sizeof triples[i].key, "%s", key_of(&key, &request));
    }
    for (int i = 0; i < TRIPLES; i++) {
        for (int j = 0; j < i; j++)
            assert_int_equal(strcmp(triples[i].key, triples[j].key) == 0, same_parts(&triples[i], &triples[j]));
    }
}

/* ---- requests without a usable key ----------------------------------------------------------- */

/* Test double of a header list whose value may hold any bytes. */
struct raw {
    const char *data;
    size_t bytes;
    size_t lines;
};

static const char *raw_find(void *context, const char *name, size_t index, size_t *ret_bytes)
{
    const struct raw *raw = context;

    assert_string_equal(name, "x-user-id"); /* names arrive in lower case, as documented */
    if (index >= raw->lines)
        return NULL;
    *ret_bytes = raw->bytes;
    return raw->data;
}

/* J5 */
static void malformed_keys_are_refused_or_share_one_key(void **state)
{
    static char megabyte[1 << 20];
    static const struct {
        struct raw raw;
        weir_request_fault fault;
    } cases[] = {
        {{megabyte, sizeof megabyte, 1}, WEIR_FAULT_LONG},
        {{megabyte, WEIR_KEY_MAX + 1, 1}, WEIR_FAULT_LONG},
        {{"a\0b", 3, 1}, WEIR_FAULT_BYTES},
        {{"\0", 1, 1}, WEIR_FAULT_BYTES},
        {{"a\r\nSet-Cookie: x", 16, 1}, WEIR_FAULT_BYTES},
        {{"\x1b[31m", 5, 1}, WEIR_FAULT_BYTES},
        {{"a\x7f", 2, 1}, WEIR_FAULT_BYTES},
        /* invalid UTF-8: a lone continuation byte */
        {{"a\x80", 2, 1}, WEIR_FAULT_BYTES},
        {{"\xc0\xaf", 2, 1}, WEIR_FAULT_BYTES},         /* over-long encoding of a slash */
        {{"\xe0\x80\xaf", 3, 1}, WEIR_FAULT_BYTES},     /* over-long encoding in three bytes */
        {{"\xed\xa0\x80", 3, 1}, WEIR_FAULT_BYTES},     /* a surrogate */
        {{"\xf4\x90\x80\x80", 4, 1}, WEIR_FAULT_BYTES}, /* beyond U+10FFFF */
        {{"\xf5\x80\x80\x80", 4, 1}, WEIR_FAULT_BYTES},
        {{"caf\xc3", 4, 1}, WEIR_FAULT_BYTES}, /* incomplete character */
        {{"alice", 5, 2}, WEIR_FAULT_REPEATED},
        {{"", 0, 2}, WEIR_FAULT_REPEATED},
    };
    weir_key_rule key;
    weir_request request;

    (void)state;
    memset(megabyte, 'a', sizeof megabyte);
    weir_request_init(&request, "GET", "/", NULL);
    request.header = raw_find;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct raw raw = cases[i].raw;
        request.header_context = &raw;
        weir_key_rule_init(&key, WEIR_KEY_USER);
        assert_int_equal(fault_of(&key, &request), cases[i].fault);
        key.share_malformed = true;
        assert_string_equal(key_of(&key, &request), "anonymous");
    }
}

static void well_formed_user_key_is_used_unchanged(void **state)
{
    static char longest[WEIR_KEY_MAX];
    static const struct raw cases[] = {
        {longest, sizeof longest, 1}, {"caf\xc3\xa9", 5, 1},      {"\xe2\x82\xac", 3, 1}, {"\xed\x9f\xbf", 3, 1},
        {"\xf0\x9f\x8c\x8a", 4, 1},   {"\xf4\x8f\xbf\xbf", 4, 1}, {"a b\"<>", 6, 1},      {"\xc2\x80", 2, 1}};
    weir_key_rule key;
    weir_request request;

    (void)state;
    memset(longest, 'a', sizeof longest);
    weir_request_init(&request, "GET", "/", NULL);
    request.header = raw_find;
    weir_key_rule_init(&key, WEIR_KEY_USER);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct raw raw = cases[i];
        request.header_context = &raw;
        const char *text = key_of(&key, &request);
        assert_int_equal(strlen(text), raw.bytes);
        assert_memory_equal(text, raw.data, raw.bytes);
    }
}

static void key_that_does_not_fit_the_buffer_is_an_error(void **state)
{
    char buffer[8] = "1234567";
    size_t bytes = 4711;
    weir_key_rule key;
    struct request request;

    (void)state;
    weir_key_rule_init(&key, WEIR_KEY_USER);
    user_init(&request, "alice");
    assert_int_equal(weir_key_extract(&key, &request.request, buffer, 4, &bytes, NULL), WEIR_E_SPACE);
    assert_string_equal(buffer, "1234567");
    assert_int_equal(bytes, 4711);
    assert_int_equal(weir_key_extract(&key, &request.request, buffer, 5, &bytes, NULL), 0);
    assert_int_equal(bytes, 5);
    assert_string_equal(buffer, "alice67");
}

static void missing_key_without_a_fallback_is_refused(void **state)
{
    weir_key_rule key;
    struct request request;

    (void)state;
    weir_key_rule_init(&key, WEIR_KEY_USER);
    key.fallback = NULL;
    user_init(&request, NULL);
    assert_int_equal(fault_of(&key, &request.request), WEIR_FAULT_MISSING);
    user_init(&request, " ");
    assert_int_equal(fault_of(&key, &request.request), WEIR_FAULT_MISSING);
}

/* V10 */
static void a_secret_value_does_not_show_in_its_key(void **state)
{
    static char token[4096];
    weir_key_rule key;
    struct request request;
    char first[64], other[64];

    (void)state;
    memset(token, 't', sizeof token - 1);
    weir_key_rule_init(&key, WEIR_KEY_USER);
    key.secret = "pepper";
    user_init(&request, token); /* longer than WEIR_KEY_MAX */
    snprintf(first, sizeof first, "%s", key_of(&key, &request.request));
    assert_int_equal(strlen(first), 33);
    assert_int_equal(first[0], '#');
    assert_null(strstr(first, "tt"));
    assert_string_equal(key_of(&key, &request.request), first);
    key.secret = "salt";
    assert_string_not_equal(key_of(&key, &request.request), first);
    token[0] = 'T';
    key.secret = "pepper";
    snprintf(other, sizeof other, "%s", key_of(&key, &request.request));
    assert_string_not_equal(other, first);
    user_init(&request, NULL);
    assert_string_equal(key_of(&key, &request.request), "anonymous");
    user_init(&request, "abc");
    key.secret = "x";
    assert_string_equal(key_of(&key, &request.request), "#d15c609c78b3106ec54b9f5c4c704376");
}

/* J8 */
static void costs_from_a_header_are_checked(void **state)
{
    static const struct {
        const char *value; /* NULL: header absent */
        uint32_t cost;
        uint32_t permits; /* 0: refused */
    } cases[] = {
        {NULL, 0, 2},
        {"", 0, 2},
        {"1", 0, 1},
        {"50", 0, 50},
        {" 7 ", 0, 7},
        {"51", 0, 0},
        {"0", 0, 0},
        {"-1", 0, 0},
        {"+1", 0, 0},
        {"1e18", 0, 0},
        {"NaN", 0, 0},
        {"1.5", 0, 0},
        {"0x10", 0, 0},
        {"1,1", 0, 0},
        {"18446744073709551617", 0, 0},
        /* a cost set by the program overrides the header and has no maximum */
        {"4294967297", 0, 0},
        {"9", 1000, 1000},
        {"junk", 3, 3},
    };
    weir_rule rule;

    (void)state;
    weir_rule_init(&rule, "r", NULL, NULL);
    rule.permits = 2;
    rule.cost_header = "x-cost";
    rule.cost_max = 50;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        weir_header header = {"X-Cost", cases[i].value};
        struct request request;
        uint32_t permits = 4711;
        request_init(&request, "/", &header, 1);
        request.request.cost = cases[i].cost;
        weir_request_fault fault = wr_rule_cost(&rule, &request.request, &permits);
        assert_int_equal(fault, cases[i].permits == 0 ? WEIR_FAULT_COST : WEIR_FAULT_NONE);
        assert_int_equal(permits, cases[i].permits == 0 ? 4711 : cases[i].permits);
    }
}

static void a_repeated_cost_is_refused(void **state)
{
    weir_header headers[] = {{"x-cost", "1"}, {"X-Cost", "1"}};
    struct request request;
    weir_rule rule;
    uint32_t permits;

    (void)state;
    weir_rule_init(&rule, "r", NULL, NULL);
    rule.cost_header = "x-cost";
    request_init(&request, "/", headers, 2);
    assert_int_equal(wr_rule_cost(&rule, &request.request, &permits), WEIR_FAULT_REPEATED);
}

/* ---- bad arguments --------------------------------------------------------------------------- */

static void assert_refused(const weir_key_rule *key, const char *because)
{
    char buffer[WEIR_KEY_MAX];
    size_t bytes = 4711;
    weir_request request;

    weir_request_init(&request, "GET", "/", "203.0.113.7");
    assert_int_equal(weir_key_extract(key, &request, buffer, WEIR_KEY_MAX, &bytes, NULL), WEIR_E_INVAL);
    assert_non_null(strstr(weir_error_detail(), because));
    assert_int_equal(bytes, 4711);
}

static void keys_that_make_no_sense_are_refused(void **state)
{
    weir_key_rule key, part;
    const weir_key_rule *parts[] = {&part, &part, NULL};

    (void)state;
    assert_refused(NULL, "weir_key_rule_init");
#define REFUSED(kind, change, because)          \
    do {                                        \
        weir_key_rule_init(&key, kind);         \
        weir_key_rule_init(&part, WEIR_KEY_IP); \
        key.parts = parts;                      \
        key.parts_count = 2;                    \
        change;                                 \
        assert_refused(&key, because);          \
    } while (0)
    REFUSED(WEIR_KEY_IP, key.size = 0, "weir_key_rule_init");
    REFUSED((weir_key_kind)99, (void)0, "kind");
    REFUSED((weir_key_kind)-1, (void)0, "kind");
    REFUSED(WEIR_KEY_USER, key.header = NULL, "x-user-id");
    REFUSED(WEIR_KEY_USER, key.header = "", "lower case");
    REFUSED(WEIR_KEY_USER, key.header = "X-User-Id", "lower case");
    REFUSED(WEIR_KEY_USER, key.header = "x user", "lower case");
    REFUSED(WEIR_KEY_USER, key.fallback = "", "fallback");
    REFUSED(WEIR_KEY_USER, key.fallback = "a\nb", "fallback");
    REFUSED(WEIR_KEY_USER, key.secret = "", "secret");
    REFUSED(WEIR_KEY_ROUTE, key.share_malformed = true, "fallback");
    REFUSED(WEIR_KEY_CUSTOM, (void)0, "function");
    REFUSED(WEIR_KEY_IP, key.hops = (weir_hops)7, "WEIR_HOPS_TRUSTED");
    REFUSED(WEIR_KEY_IP, key.trusted_count = 1, "trusted");
    REFUSED(WEIR_KEY_IP, key.v4_prefix = 0, "1 ... 32");
    REFUSED(WEIR_KEY_IP, key.v4_prefix = 33, "1 ... 32");
    REFUSED(WEIR_KEY_IP, key.v6_prefix = 0, "1 ... 128");
    REFUSED(WEIR_KEY_IP, key.v6_prefix = 129, "1 ... 128");
    REFUSED(WEIR_KEY_COMPOSITE, key.parts_count = 1, "2 ... 8");
    REFUSED(WEIR_KEY_COMPOSITE, key.parts_count = 9, "2 ... 8");
    REFUSED(WEIR_KEY_COMPOSITE, key.parts = NULL, "2 ... 8");
    REFUSED(WEIR_KEY_COMPOSITE, key.parts_count = 3, "weir_key_rule_init");
    REFUSED(WEIR_KEY_COMPOSITE, key.separator = '\\', "separator");
    REFUSED(WEIR_KEY_COMPOSITE, key.separator = ' ', "separator");
    REFUSED(WEIR_KEY_COMPOSITE, key.separator = '\n', "separator");
    REFUSED(WEIR_KEY_COMPOSITE, key.separator = '\xe9', "separator");
    REFUSED(WEIR_KEY_COMPOSITE, key.secret = "x", "part");
    REFUSED(WEIR_KEY_COMPOSITE, part.kind = WEIR_KEY_COMPOSITE, "composite");
    REFUSED(WEIR_KEY_COMPOSITE, part.kind = WEIR_KEY_CUSTOM, "function");
    REFUSED(WEIR_KEY_COMPOSITE, part.kind = (weir_key_kind)99, "kind");
#undef REFUSED
}

static void bad_requests_and_buffers_are_refused(void **state)
{
    char buffer[WEIR_KEY_MAX];
    size_t bytes;
    weir_key_rule key;
    weir_request request;

    (void)state;
    weir_key_rule_init(&key, WEIR_KEY_GLOBAL);
    weir_request_init(&request, "GET", "/", NULL);
    assert_int_equal(weir_key_extract(&key, NULL, buffer, WEIR_KEY_MAX, &bytes, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_key_extract(&key, &request, NULL, WEIR_KEY_MAX, &bytes, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_key_extract(&key, &request, buffer, WEIR_KEY_MAX, NULL, NULL), WEIR_E_INVAL);
    request.peer_bytes = 3;
    assert_int_equal(weir_key_extract(&key, &request, buffer, WEIR_KEY_MAX, &bytes, NULL), WEIR_E_INVAL);
    assert_non_null(strstr(weir_error_detail(), "0 bytes"));
    request.size = 0;
    assert_int_equal(weir_key_extract(&key, &request, buffer, WEIR_KEY_MAX, &bytes, NULL), WEIR_E_INVAL);
    weir_key_rule_init(NULL, WEIR_KEY_IP);
    weir_request_init(NULL, NULL, NULL, NULL);
}

static void faults_have_names(void **state)
{
    (void)state;
    assert_string_equal(weir_request_fault_name(WEIR_FAULT_MISSING), "missing");
    assert_string_equal(weir_request_fault_name(WEIR_FAULT_COST), "bad_cost");
    assert_string_equal(weir_request_fault_name((weir_request_fault)99), "none");
    assert_string_equal(weir_request_fault_name((weir_request_fault)-1), "none");
}

static void digest_of_a_secret_is_a_hash_sign_and_32_hex_digits_in_small_letters(void **state)
{
    (void)state;
    static const char good[] = "#0123456789abcdef0123456789abcdef";
    char text[sizeof good];
    assert_true(wr_digest_is(wr_span_of(good)));
    assert_false(wr_digest_is((struct wr_span){good, sizeof good - 2}));
    assert_false(wr_digest_is(wr_span_of("#0123456789abcdef0123456789abcdef0")));
    for (size_t i = 0; i < sizeof good - 1; i++) {
        memcpy(text, good, sizeof good);
        text[i] = 'g';
        assert_false(wr_digest_is(wr_span_of(text)));
        text[i] = 'A';
        assert_false(wr_digest_is(wr_span_of(text)));
    }
}

WEIR_TESTS(test(the_global_key_is_the_same_for_all), test(the_user_key_is_a_header_or_anonymous),
           test(the_route_key_is_the_path), test(custom_key_is_the_result_of_the_function),
           test(a_composite_key_joins_its_parts), test(a_composite_has_no_key_if_a_part_has_none),
           test(different_parts_never_make_the_same_key), test(malformed_keys_are_refused_or_share_one_key),
           test(well_formed_user_key_is_used_unchanged), test(key_that_does_not_fit_the_buffer_is_an_error),
           test(missing_key_without_a_fallback_is_refused), test(a_secret_value_does_not_show_in_its_key),
           test(costs_from_a_header_are_checked), test(a_repeated_cost_is_refused),
           test(keys_that_make_no_sense_are_refused), test(bad_requests_and_buffers_are_refused),
           test(faults_have_names), test(digest_of_a_secret_is_a_hash_sign_and_32_hex_digits_in_small_letters))
