/* SPDX-License-Identifier: MIT */
/* fuzz_fields.c - fuzzes response fields. Limits are within their bounds. Another Retry-After never
 * shortens the wait, and another field without limits changes nothing. The same holds for cache
 * fields, where the nearest cache decides. */
#include "core/web/http/cache.h"
#include "core/web/http/field.h"
#include "core/web/http/server_limits.h"

#include "fuzz/fuzz.h"

#define NOW_NS (INT64_C(1794700800) * WEIR_SECOND) /* 2026-11-15 */

static void add(struct wr_server_limits *limits, const char *name, const char *value)
{
    wr_server_limits_field(limits, wr_span_of(name), wr_span_of(value));
}

static void check_bounds(const weir_server_limits *said)
{
    fuzz_check(said->retry_after_ns >= -1 && said->retry_after_ns <= WR_SERVER_LIMITS_MAX_NS);
    fuzz_check(said->reset_ns >= -1 && said->reset_ns <= WR_SERVER_LIMITS_MAX_NS);
    fuzz_check(said->limit >= -1 && said->limit <= INT64_C(1000000000000000000));
    fuzz_check(said->remaining >= -1 && said->remaining <= INT64_C(1000000000000000000));
    fuzz_check(said->limit != 0 || said->remaining == 0);
}

static void check_more(struct wr_server_limits *limits, const weir_server_limits *said)
{
    add(limits, "X-RateLimit-Reset", "soon");
    add(limits, "Content-Type", "text/html; charset=\"utf-8\"");
    weir_server_limits again = wr_server_limits_result(limits);
    fuzz_check(memcmp(&again, said, sizeof again) == 0);
    add(limits, "Retry-After", "60");
    again = wr_server_limits_result(limits);
    fuzz_check(again.retry_after_ns >= said->retry_after_ns && again.retry_after_ns >= WEIR_MINUTE);
    add(limits, "Retry-After", "99999999999999999999999");
    fuzz_check(wr_server_limits_result(limits).retry_after_ns == WR_SERVER_LIMITS_MAX_NS);
}

static void check_words(struct wr_span value)
{
    struct wr_content_type type = wr_content_type_parse(value);

    fuzz_check(type.type.bytes <= value.bytes && type.charset.bytes <= value.bytes);
    fuzz_check(wr_robots_directives_parse(value, wr_span_of("weir")) <= (WR_ROBOTS_NOFOLLOW | WR_ROBOTS_NOINDEX));
}

static void check_cache(struct wr_cache *cache)
{
    enum wr_cache_status before = wr_cache_result(cache);

    fuzz_check(before < WR_CACHE_COUNT && wr_cache_name(before)[0] != '\0');
    wr_cache_field(cache, wr_span_of("X-Cache"), wr_span_of("Error from cloudfront"));
    wr_cache_field(cache, wr_span_of("Age"), wr_span_of("0"));
    fuzz_check(wr_cache_result(cache) == before);
    wr_cache_field(cache, wr_span_of("CF-Cache-Status"), wr_span_of("EXPIRED"));
    fuzz_check(wr_cache_result(cache) == WR_CACHE_EXPIRED);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct wr_span rest = {(const char *)data, bytes}, name, value;
    struct wr_server_limits limits;
    struct wr_cache cache = {0};

    wr_server_limits_init(&limits, NOW_NS);
    while (rest.bytes > 0) {
        size_t end = wr_span_find(rest, '\n');
        struct wr_span line = {rest.data, end};
        rest = wr_span_after(rest, end < rest.bytes ? end + 1 : end);
        if (!wr_field_parse(line, &name, &value))
            continue;
        wr_server_limits_field(&limits, name, value);
        wr_cache_field(&cache, name, value);
        check_words(value);
    }
    check_cache(&cache);
    weir_server_limits said = wr_server_limits_result(&limits);
    check_bounds(&said);
    check_more(&limits, &said);
    return 0;
}
