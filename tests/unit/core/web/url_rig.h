/* SPDX-License-Identifier: MIT */
/* url_rig.h - tables of URLs. Tests have no IDNA tables; a stand-in knows a few names. */
#ifndef WEIR_TEST_URL_RIG_H
#define WEIR_TEST_URL_RIG_H

#include "lib/test.h"

#include "core/web/url/url.h"

struct url_case {
    const char *input, *expected;
};

/* Results of UTS 46. "" means that the name is mapped to nothing. */
static const struct url_case stand_in_names[] = {
    {"b\303\274cher.example", "xn--bcher-kva.example"},
    {"B\303\234CHER.example", "xn--bcher-kva.example"},
    {"xn--bcher-kva.example", "xn--bcher-kva.example"},
    {"XN--BCHER-KVA.example", "xn--bcher-kva.example"},
    {"\xc2\xad", ""},                                    /* soft hyphen */
    {"\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.1", "127.1"}, /* full-width digits */
    /* "0X7F.1" in full-width characters */
    {"\xef\xbc\x90\xef\xbc\xb8\xef\xbc\x97\xef\xbc\xa6\xef\xbc\x8e\xef\xbc\x91", "0x7f.1"},
    /* "%41" in full-width characters */
    {"\xef\xbc\x85\xef\xbc\x94\xef\xbc\x91.example", "%41.example"},
    {"a\343\200\200b.example", "a b.example"}, /* ideographic space */
    {"a\343\200\202example", "a.example"},     /* ideographic full stop */
    {"\xe3\x80\x82", "."},
};

static inline int stand_in_to_ascii(void *context, struct wr_span domain, struct wr_buf *buf)
{
    (void)context;
    for (size_t i = 0; i < sizeof stand_in_names / sizeof stand_in_names[0]; i++) {
        if (strlen(stand_in_names[i].input) != domain.bytes ||
            memcmp(stand_in_names[i].input, domain.data, domain.bytes) != 0)
            continue;
        wr_buf_append_string(buf, stand_in_names[i].expected);
        return 0;
    }
    return WEIR_E_INVAL;
}

static const struct wr_idna stand_in = {.to_ascii = stand_in_to_ascii};

/* Parses a URL. Returns the fault, or WR_URL_OK and the URL in memory that is reused after eight
 * calls. */
static inline enum wr_url_fault parse_bytes(const char *input, size_t bytes, const struct wr_url *base,
                                            struct wr_url *ret_url)
{
    static char memory[8][WR_URL_ROOM];
    static unsigned next;
    return wr_url_parse((struct wr_span){input, bytes}, base, &stand_in, memory[next++ % 8], WR_URL_ROOM, ret_url);
}

static inline enum wr_url_fault parse(const char *input, const struct wr_url *base, struct wr_url *ret_url)
{
    return parse_bytes(input, strlen(input), base, ret_url);
}

/* Returns a base that is valid until the next call. */
static inline const struct wr_url *base_of(const char *input)
{
    static char memory[WR_URL_ROOM];
    static struct wr_url base;
    assert_int_equal(wr_url_parse(wr_span_of(input), NULL, &stand_in, memory, sizeof memory, &base), WR_URL_OK);
    return &base;
}

/* Checks that the offsets of the parts agree with the text. */
static inline void check_parts(const struct wr_url *url)
{
    assert_int_equal(strlen(url->text), url->bytes);
    assert_true(url->bytes <= WR_URL_MAX);
    assert_int_equal(strncmp(url->text, url->is_https ? "https://" : "http://", url->is_https ? 8 : 7), 0);
    assert_true(url->host_at >= 7 && url->host_at < url->host_end && url->host_end <= url->path_at);
    assert_true(url->path_at < url->query_at && url->query_at <= url->fragment_at && url->fragment_at <= url->bytes);
    assert_int_equal(url->text[url->path_at], '/');
    assert_true(url->query_at == url->fragment_at || url->text[url->query_at] == '?');
    assert_true(url->fragment_at == url->bytes || url->text[url->fragment_at] == '#');
    for (size_t i = 0; i < url->bytes; i++)
        assert_true(url->text[i] > 0x20 && url->text[i] < 0x7f);
}

/* Checks that the text of a URL parses as itself, also against a base. */
static inline void check_stable(const struct wr_url *url)
{
    struct wr_url again, base;
    assert_int_equal(parse(url->text, NULL, &again), WR_URL_OK);
    assert_string_equal(again.text, url->text);
    assert_int_equal(parse("http://other.example/x/y?z", NULL, &base), WR_URL_OK);
    assert_int_equal(parse(url->text, &base, &again), WR_URL_OK);
    assert_string_equal(again.text, url->text);
    assert_memory_equal(&again.bytes, &url->bytes, sizeof *url - offsetof(struct wr_url, bytes) - 1);
}

static inline void check_one(const struct url_case *url_case, const struct wr_url *base)
{
    struct wr_url url;
    enum wr_url_fault fault = parse(url_case->input, base, &url);
    if (fault != WR_URL_OK)
        fail_msg("\"%s\": %s", url_case->input, wr_url_fault_text(fault));
    if (strcmp(url.text, url_case->expected) != 0)
        fail_msg("\"%s\" became %s and not %s", url_case->input, url.text, url_case->expected);
    check_parts(&url);
    check_stable(&url);
}

#define check_all(cases, base)                                         \
    do {                                                               \
        for (size_t i_ = 0; i_ < sizeof cases / sizeof cases[0]; i_++) \
            check_one(&cases[i_], base);                               \
    } while (0)

static inline void check_refused(const char *const *inputs, size_t count, const struct wr_url *base,
                                 enum wr_url_fault expected)
{
    for (size_t i = 0; i < count; i++) {
        struct wr_url url = {.bytes = 4711};
        enum wr_url_fault fault = parse(inputs[i], base, &url);
        if (fault != expected)
            fail_msg("\"%s\": %s", inputs[i], wr_url_fault_text(fault));
        assert_int_equal(url.bytes, 4711);
    }
}

#define check_all_refused(inputs, base, fault) check_refused(inputs, sizeof inputs / sizeof inputs[0], base, fault)

#endif
