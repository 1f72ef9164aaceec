/* SPDX-License-Identifier: MIT */
/* bench_request.c - weir bench request: measures the daemon's request parser on a request from
 * nginx. */
#include "core/web/request/http_request.h"

#include <stdio.h>
#include <weir/time.h>

#include "cli/bench/bench.h"
#include "cli/bench/sample.h"
#include "cli/kit/command_options.h"
#include "cli/kit/console.h"

#define ROUNDS 301 /* Rounds are short: most end before another process wants the processor. */
#define REQUESTS_PER_ROUND 2000

struct bench_request_settings {
    bool json;
};

static const struct wr_option options[] = {
    {"json", WR_FLAG(struct bench_request_settings, json), .help = "Print JSON"},
};

static const struct wr_usage usage = {
    .who = "weir bench request",
    .about = "Measures how fast a request of nginx's auth_request is parsed: 12 fields, most of them\n"
             "from its client (the median of 301 rounds, and the best round).\n",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

static const char text[] = "GET /check HTTP/1.1\r\n"
                           "Host: weir\r\n"
                           "X-Original-URI: /articles/2026/november/weirs?page=2&sort=date\r\n"
                           "X-Original-Method: GET\r\n"
                           "X-Real-IP: 203.0.113.9\r\n"
                           "X-Forwarded-For: 203.0.113.9\r\n"
                           "X-Forwarded-Proto: https\r\n"
                           "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n"
                           "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"
                           "Accept-Language: en-US,en;q=0.5\r\n"
                           "Accept-Encoding: gzip, deflate, br, zstd\r\n"
                           "Cookie: session=9b1d2c3e4f5a6b7c8d9e0f1a2b3c4d5e; theme=dark\r\n"
                           "X-Api-Key: k-0123456789abcdef\r\n"
                           "\r\n";

/* Parses one request. Returns false if the parser rejects it, which must not happen. */
static bool parse_bench_request(struct wr_request *request)
{
    struct wr_span rest = {text, sizeof text - 1}, piece;

    wr_request_init(request);
    if (wr_request_head(request, rest) != WR_REQUEST_HEAD)
        return false;
    rest = wr_span_after(rest, request->head_bytes);
    return wr_request_body(request, &rest, &piece) == WR_REQUEST_END;
}

int wr_bench_request_run(int argc, char **argv)
{
    static struct wr_sample sample;
    static struct wr_request request;
    struct bench_request_settings settings = {.json = false};
    uint64_t read = 0;
    int status;

    if (!wr_options_parse(&usage, &argc, argv, &settings, &status))
        return status;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t start_at = weir_clock_now(weir_clock_monotonic());
        for (int i = 0; i < REQUESTS_PER_ROUND; i++)
            read += parse_bench_request(&request);
        int64_t took_ns = weir_clock_now(weir_clock_monotonic()) - start_at;
        wr_sample_add(&sample, (double)took_ns / REQUESTS_PER_ROUND);
    }
    wr_print(settings.json ? "{\"request_bytes\": %zu, \"fields\": %u, \"requests\": %llu, \"ns_per_request\": %.1f, "
                             "\"best_ns_per_request\": %.1f}\n"
                           : "request of %zu bytes with %u fields, %llu times: %.1f ns (best %.1f)\n",
             sizeof text - 1, (unsigned)request.field_count, (unsigned long long)read, wr_sample_median(&sample),
             wr_sample_least(&sample));
    return WR_EXIT_OK;
}
