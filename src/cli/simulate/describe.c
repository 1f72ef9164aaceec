/* SPDX-License-Identifier: MIT */
/* describe.c - describes a scenario in a few words. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/buf.h"
#include "cli/simulate/scenario_file.h"

__attribute__((format(printf, 2, 3))) static void append_format(struct wr_buf *buf, const char *format, ...)
{
    char piece[128];
    va_list args;
    va_start(args, format);
    vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    wr_buf_append_string(buf, piece);
}

static void describe_window(struct wr_buf *buf, const char *name, const struct wr_origin *origin)
{
    append_format(buf, "%s, %" PRIu32 " per ", name, origin->limiter.quota);
    wr_buf_append_duration(buf, origin->limiter.window_ns);
    if (origin->limiter.block_ns == 0)
        return;
    wr_buf_append_string(buf, ", more are blocked for ");
    wr_buf_append_duration(buf, origin->limiter.block_ns);
    wr_buf_append_string(buf, origin->limiter.extend ? ", extended by requests" : "");
}

static void describe_limiter(struct wr_buf *buf, const struct wr_origin *origin)
{
    switch (origin->limiter.kind) {
    case WR_LIMITER_TOKEN_BUCKET:
        append_format(buf, "token bucket, %g/s, burst %g", origin->limiter.rate, origin->limiter.burst);
        return;
    case WR_LIMITER_FIXED_WINDOW:
        describe_window(buf, "window", origin);
        return;
    case WR_LIMITER_SLIDING_COUNTER:
        describe_window(buf, origin->limiter.counts_refused ? "counter, refused ones too" : "counter", origin);
        return;
    case WR_LIMITER_SLOW_DOWN:
        describe_window(buf, "slower beyond", origin);
        return;
    case WR_LIMITER_SLIDING_BAN:
        append_format(buf, "sliding window, %" PRIu32 " per ", origin->limiter.quota);
        wr_buf_append_duration(buf, origin->limiter.window_ns);
        if (origin->limiter.ban_ns == 0)
            return;
        wr_buf_append_string(buf, ", more are banned for ");
        wr_buf_append_duration(buf, origin->limiter.ban_ns);
        append_format(buf, " (%d)%s", origin->limiter.status, origin->limiter.extend ? ", extended by requests" : "");
        return;
    case WR_LIMITER_CONCURRENCY:
        append_format(buf, "at most %" PRIu32 " at a time", origin->limiter.max);
        return;
    case WR_LIMITER_NONE:
        break;
    }
    wr_buf_append_string(buf, origin->station.servers > 0 ? "" : "no limit");
}

static void describe_station(struct wr_buf *buf, const struct wr_origin *origin)
{
    if (origin->station.servers == 0)
        return;
    wr_buf_append_string(buf, buf->length > 0 ? ", " : "");
    append_format(buf, "%" PRIu32 " server%s, queue of %" PRIu32, origin->station.servers,
                  origin->station.servers > 1 ? "s" : "", origin->station.queue);
}

static void describe_trouble(struct wr_buf *buf, const struct wr_origin *origin)
{
    static const char *const varies[] = {
        [WR_VARY_STEP] = ", a quarter in the middle third",
        [WR_VARY_JUMP] = ", 2.5 times in the second half",
        [WR_VARY_SINE] = ", rises and falls",
        [WR_VARY_WALK] = ", wanders",
    };
    if (origin->reject.how != WR_REJECT_ANSWER)
        wr_buf_append_string(buf, origin->reject.how == WR_REJECT_RESET ? ", resets" : ", is silent");
    else if (origin->reject.delay_ns > 0)
        append_format(buf, ", says %d after %g s", origin->reject.status, (double)origin->reject.delay_ns * 1e-9);
    if (origin->reject.retry_after || origin->reject.always)
        wr_buf_append_string(buf, origin->reject.always ? ", Retry-After on all" : ", Retry-After");
    if (origin->reject.wait_ns > 0)
        append_format(buf, " of %g s", (double)origin->reject.wait_ns * 1e-9);
    if (origin->reject.headers)
        wr_buf_append_string(buf, ", X-RateLimit");
    if (origin->vary.kind != WR_VARY_NONE)
        wr_buf_append_string(buf, varies[origin->vary.kind]);
    if (origin->cross > 0)
        append_format(buf, ", others take %g %%", 100 * origin->cross);
    if (origin->errors.p500 > 0)
        append_format(buf, ", %g %% are 500", 100 * origin->errors.p500);
    if (origin->errors.p503 > 0)
        append_format(buf, ", %g %% are 503", 100 * origin->errors.p503);
    if (origin->outage.to_ns > 0) {
        wr_buf_append_string(buf, ", down for ");
        wr_buf_append_duration(buf, origin->outage.to_ns - origin->outage.from_ns);
    }
    if (origin->service.tail > 0 || origin->service.sigma > 1)
        wr_buf_append_string(buf, ", heavy-tailed latency");
    if (origin->service.mean_ns > WEIR_SECOND)
        append_format(buf, ", responses take %g s", (double)origin->service.mean_ns * 1e-9);
}

void wr_scenario_describe(const struct wr_scenario *scenario, char *ret_text, size_t text_bytes)
{
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, ret_text, text_bytes);
    if (scenario->crowd.hosts > 0) {
        append_format(&buf, "%" PRIu32 " hosts of %" PRIu32 " kinds, the largest with %" PRIu32 " URLs",
                      scenario->crowd.hosts, scenario->mix_count, scenario->crowd.largest);
        return;
    }
    describe_limiter(&buf, &scenario->origin);
    describe_station(&buf, &scenario->origin);
    describe_trouble(&buf, &scenario->origin);
}
