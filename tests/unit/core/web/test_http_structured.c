/* SPDX-License-Identifier: MIT */
/* test_http_structured.c - tests the parser of Structured Fields (RFC 9651). */
#include "lib/test.h"

#include "core/web/http/structured.h"

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])

/* One member of a List, and what follows it. */
struct row {
    const char *text;
    enum wr_sf_kind kind;
    int more, after;
};

static void each_kind_of_structured_item_is_read_to_its_end(void **state)
{
    static const struct row rows[] = {
        {"12", WR_SF_INTEGER, 1, 0},        {"-3", WR_SF_INTEGER, 1, 0},      {"1.5", WR_SF_DECIMAL, 1, 0},
        {"abc", WR_SF_TOKEN, 1, 0},         {"*a/b", WR_SF_TOKEN, 1, 0},      {"\"a b\"", WR_SF_STRING, 1, 0},
        {"?0", WR_SF_OTHER, 1, 0},          {"?1", WR_SF_OTHER, 1, 0},        {":YWJj:", WR_SF_OTHER, 1, 0},
        {"::", WR_SF_OTHER, 1, 0},          {":+/9=:", WR_SF_OTHER, 1, 0},    {"%\"f%c3%bc\"", WR_SF_OTHER, 1, 0},
        {"@1659578233", WR_SF_OTHER, 1, 0}, {"@-1", WR_SF_OTHER, 1, 0},       {"?1, 2", WR_SF_OTHER, 1, 1},
        {":YWJj:, 2", WR_SF_OTHER, 1, 1},   {"%\"a\", 2", WR_SF_OTHER, 1, 1}, {"@1, 2", WR_SF_OTHER, 1, 1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct wr_sf sf = {.rest = wr_span_of(rows[i].text)};
        struct wr_sf_value value;
        struct wr_span name;
        int more = wr_sf_member(&sf, &value);
        if (more != rows[i].more || value.kind != rows[i].kind)
            fail_msg("%s: %d, of kind %d", rows[i].text, more, (int)value.kind);
        assert_int_equal(wr_sf_parameter(&sf, &name, &value), 0);
        assert_int_equal(wr_sf_member(&sf, &value), rows[i].after);
    }
}

static void structured_items_without_an_end_are_malformed(void **state)
{
    static const char *const texts[] = {"?", "?2", "?x",   ":", ":YW", ":Y_W:", "%", "%a",  "%a\"",    "%\"a",  "\"a",
                                        "@", "@x", "@1.5", "-", "!",   "?,",    "=", "@?1", "%%\"a\"", ":YW\":"};

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct wr_sf sf = {.rest = wr_span_of(texts[i])};
        struct wr_sf_value value;
        int more = wr_sf_member(&sf, &value);
        if (more != -1)
            fail_msg("%s: %d", texts[i], more);
    }
}

WEIR_TESTS(test(each_kind_of_structured_item_is_read_to_its_end), test(structured_items_without_an_end_are_malformed))
