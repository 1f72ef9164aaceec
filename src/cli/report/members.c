/* SPDX-License-Identifier: MIT */
/* members.c - appends members of a report as JSON. */
#include "cli/report/members.h"

#include <math.h>

#include "crawl/engine/engine.h"

void wr_append_member_text(struct wr_buf *buf, const char *name, const char *text)
{
    wr_append_json_text(buf, name, wr_span_of(text != NULL && text[0] != '\0' ? text : NULL));
}

void wr_append_member_seconds(struct wr_buf *buf, const char *name, int64_t ns)
{
    wr_append_json_decimal(buf, name, ns > 0 ? (uint64_t)ns / 1000 : 0, 6);
}

void wr_append_member_seconds_or_null(struct wr_buf *buf, const char *name, int64_t ns)
{
    if (ns > 0)
        wr_append_member_seconds(buf, name, ns);
    else
        wr_append_json_null(buf, name);
}

void wr_append_member_rate(struct wr_buf *buf, const char *name, double rate)
{
    if (!(rate > 0) || isinf(rate) || rate > 1e15) {
        wr_append_json_null(buf, name);
        return;
    }
    wr_buf_append_string(buf, name);
    wr_buf_append_number(buf, rate);
}

void wr_append_member_statuses(struct wr_buf *buf, const uint64_t *counts)
{
    const char *before = "";
    wr_buf_append_string(buf, ",\n \"statuses\": {");
    for (size_t status = 1; status <= WR_STATUSES_COUNT; status++) {
        uint64_t count = counts[status % WR_STATUSES_COUNT];
        if (count == 0)
            continue;
        wr_buf_append_string(buf, before);
        wr_buf_append_string(buf, "\"");
        if (status < WR_STATUSES_COUNT)
            wr_buf_append_u64(buf, status);
        else
            wr_buf_append_string(buf, "none");
        wr_append_json_count(buf, "\": ", count);
        before = ", ";
    }
    wr_buf_append_string(buf, "}");
}
