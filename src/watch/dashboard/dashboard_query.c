/* SPDX-License-Identifier: MIT */
/* dashboard_query.c - parses the query of a URL into a struct. */
#include "watch/dashboard/dashboard_query.h"

#include "base/ascii.h"
#include "base/error.h"
#include "base/parse.h"

#define MOST_DEFAULT 50

/* Decodes a value. Returns false if it is too long, badly encoded or contains a NUL. */
static bool decode_parameter(struct wr_span value, char *ret_text, size_t room)
{
    size_t length = 0;
    memset(ret_text, 0, room);
    while (value.bytes > 0) {
        char c = value.data[0] == '+' ? ' ' : value.data[0];
        size_t taken = 1;
        if (c == '%') {
            int high = value.bytes > 2 ? wr_ascii_hex_value(value.data[1]) : -1;
            int low = value.bytes > 2 ? wr_ascii_hex_value(value.data[2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = (char)(high * 16 + low);
            taken = 3;
        }
        if (c == '\0' || length + 1 >= room)
            return false;
        ret_text[length++] = c;
        value = wr_span_after(value, taken);
    }
    return true;
}

static bool decode_number(struct wr_span value, uint64_t most, uint64_t *ret_number)
{
    return wr_scan_u64(value.data, value.bytes, 0, most, ret_number);
}

static bool read_query_parameter(struct wr_span name, struct wr_span value, struct wr_dashboard_query *query,
                                 struct wr_dashboard_since *since)
{
    uint64_t number = 0;
    bool well = true;
    if (wr_span_is(name, "view"))
        return decode_parameter(value, query->view, sizeof query->view);
    if (wr_span_is(name, "sort"))
        return decode_parameter(value, query->sort, sizeof query->sort);
    if (wr_span_is(name, "q"))
        return decode_parameter(value, query->text, sizeof query->text);
    if (wr_span_is(name, "name"))
        return decode_parameter(value, query->name, sizeof query->name);
    if (wr_span_is(name, "run"))
        return decode_parameter(value, since->run, sizeof since->run);
    if (wr_span_is(name, "since"))
        return decode_number(value, UINT64_MAX, &since->number);
    if (wr_span_is(name, "reverse")) {
        well = decode_number(value, 1, &number);
        query->is_reversed = number == 1;
    } else if (wr_span_is(name, "most")) {
        well = decode_number(value, WR_DASHBOARD_ROWS_MAX, &number) && number > 0;
        query->most = (uint32_t)number;
    }
    return well;
}

int wr_dashboard_query_parse(struct wr_span text, struct wr_dashboard_query *ret_query,
                             struct wr_dashboard_since *ret_since)
{
    struct wr_dashboard_query query;
    struct wr_dashboard_since since;
    memset(&query, 0, sizeof query); /* clears the padding, too: queries are compared with memcmp */
    memset(&since, 0, sizeof since);
    memcpy(query.view, "overview", sizeof "overview");
    query.most = MOST_DEFAULT;
    while (text.bytes > 0) {
        size_t end = wr_span_find(text, '&');
        struct wr_span pair = {text.data, end};
        size_t equals = wr_span_find(pair, '=');
        struct wr_span name = {pair.data, equals};
        struct wr_span value = equals < pair.bytes ? wr_span_after(pair, equals + 1) : (struct wr_span){NULL, 0};
        if (!read_query_parameter(name, value, &query, &since))
            return wr_invalid("the query is malformed; use for example view=hosts&sort=wait&most=50");
        text = wr_span_after(text, end < text.bytes ? end + 1 : end);
    }
    *ret_query = query;
    *ret_since = since;
    return 0;
}
