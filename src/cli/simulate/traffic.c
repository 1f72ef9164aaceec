/* SPDX-License-Identifier: MIT */
/* traffic.c - parses the times of requests from a text. */
#include "cli/simulate/traffic.h"

#include <string.h>

#include "base/bits.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/span.h"

static int refuse_traffic(struct wr_span part, const char *wrong)
{
    return wr_invalid_text("traffic", part.data, part.bytes, wrong, WR_NOWHERE,
                           "write parts as \"100/s for 2s\", \"30 at once\" or \"pause 8s\", with commas between");
}

/* Splits a text at the first `between`. Returns false if it does not occur. */
static bool split_at(struct wr_span text, const char *between, struct wr_span *ret_left, struct wr_span *ret_right)
{
    size_t bytes = strlen(between);
    for (size_t at = 0; at + bytes <= text.bytes; at++) {
        if (memcmp(text.data + at, between, bytes) != 0)
            continue;
        *ret_left = wr_span_trim((struct wr_span){text.data, at});
        *ret_right = wr_span_trim(wr_span_after(text, at + bytes));
        return true;
    }
    return false;
}

static int parse_traffic_part(struct wr_span text, struct wr_traffic_part *ret_part)
{
    struct wr_span left, right;
    uint64_t count;
    *ret_part = (struct wr_traffic_part){.count = 0};
    if (split_at(text, "pause ", &left, &right) && left.bytes == 0)
        return wr_parse_duration(right.data, right.bytes, &ret_part->duration_ns);
    if (split_at(text, " for ", &left, &right)) {
        int error = wr_parse_rate(left.data, left.bytes, &ret_part->count, &ret_part->period_ns);
        return error != 0 ? error : wr_parse_duration(right.data, right.bytes, &ret_part->duration_ns);
    }
    if (!split_at(text, " at once", &left, &right) || right.bytes > 0 ||
        !wr_scan_u64(left.data, left.bytes, 1, WR_TRAFFIC_MAX, &count))
        return refuse_traffic(text, "not understood");
    ret_part->count = (uint32_t)count;
    return 0;
}

/* Returns the number of requests of a part: those at 0, period/count, 2 x period/count, ... before
 * its end. Returns at most WR_TRAFFIC_MAX + 1, so that a sum that is too large is noticed. */
static size_t traffic_part_count(const struct wr_traffic_part *part)
{
    if (part->period_ns == 0)
        return part->count <= WR_TRAFFIC_MAX ? part->count : WR_TRAFFIC_MAX + 1;
    wr_u128 times = (wr_u128)(uint64_t)part->duration_ns * part->count + (uint64_t)part->period_ns - 1;
    times /= (uint64_t)part->period_ns;
    return times <= WR_TRAFFIC_MAX ? (size_t)times : WR_TRAFFIC_MAX + 1;
}

int wr_traffic_parse(const char *text, struct wr_traffic *ret_traffic)
{
    struct wr_traffic traffic = {.part_count = 0};
    struct wr_span rest = wr_span_of(text), part;
    for (bool more = true; more;) {
        part = rest;
        more = split_at(rest, ",", &part, &rest);
        part = wr_span_trim(part);
        if (traffic.part_count == WR_TRAFFIC_PARTS_MAX)
            return refuse_traffic(part, "more than 32 parts");
        struct wr_traffic_part *here = &traffic.parts[traffic.part_count++];
        int error = parse_traffic_part(part, here);
        if (error != 0)
            return error;
        traffic.requests += traffic_part_count(here);
        if (here->duration_ns > WEIR_DURATION_MAX - traffic.duration_ns)
            return refuse_traffic(part, "too long");
        traffic.duration_ns += here->duration_ns;
        if (traffic.requests > WR_TRAFFIC_MAX)
            return refuse_traffic(part, "more than 1000000 requests");
    }
    if (traffic.requests == 0)
        return refuse_traffic(wr_span_of(text), "no requests");
    if (traffic.duration_ns == 0) /* only parts that come all at once */
        traffic.duration_ns = WEIR_SECOND;
    *ret_traffic = traffic;
    return 0;
}

void wr_traffic_fill(const struct wr_traffic *traffic, int64_t *ret_at)
{
    int64_t start_at = 0;
    for (size_t i = 0; i < traffic->part_count; i++) {
        const struct wr_traffic_part *part = &traffic->parts[i];
        size_t count = traffic_part_count(part);
        for (size_t n = 0; n < count; n++)
            *ret_at++ = start_at + (part->count > 0 ? (int64_t)((wr_i128)n * part->period_ns / part->count) : 0);
        start_at += part->duration_ns;
    }
}
