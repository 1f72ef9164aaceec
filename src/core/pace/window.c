/* SPDX-License-Identifier: MIT */
/* window.c - Counts responses and failures in a ring of time buckets. */
#include "core/pace/window.h"

#include "base/bits.h"

#include <string.h>

static size_t bucket_count(const weir_pace_options *options)
{
    return (size_t)((options->window_ns + options->window_step_ns - 1) / options->window_step_ns);
}

size_t wr_window_bytes(const weir_pace_options *options)
{
    return offsetof(struct wr_window, totals) + bucket_count(options) * (sizeof(uint16_t) + WR_WINDOW_KINDS);
}

/* Returns the number of the bucket at `now`, which may be negative. */
static uint32_t bucket_number_at(const weir_pace_options *options, int64_t now)
{
    return (uint32_t)(now / options->window_step_ns - (now % options->window_step_ns < 0));
}

static uint8_t *failures_in_bucket(const struct wr_window *window, unsigned kind, unsigned bucket)
{
    return (uint8_t *)(uintptr_t)(window->totals + window->count) + kind * window->count + bucket;
}

void wr_window_init(struct wr_window *window, const weir_pace_options *options, int64_t now)
{
    window->count = (uint8_t)bucket_count(options);
    window->head = bucket_number_at(options, now);
}

void wr_window_move(struct wr_window *window, const weir_pace_options *options, int64_t from, int64_t to)
{
    window->head += bucket_number_at(options, to) - bucket_number_at(options, from);
}

bool wr_window_ok(const struct wr_window *window, const weir_pace_options *options)
{
    return window->count == bucket_count(options) && window->at < window->count;
}

static void empty_bucket(struct wr_window *window, unsigned bucket)
{
    window->totals[bucket] = 0;
    for (unsigned kind = 0; kind < WR_WINDOW_KINDS; kind++)
        *failures_in_bucket(window, kind, bucket) = 0;
}

void wr_window_clear(struct wr_window *window)
{
    for (unsigned i = 0; i < window->count; i++)
        empty_bucket(window, i);
}

/* Moves to the bucket of `now` and empties every bucket that is entered. */
static void advance_window(struct wr_window *window, const weir_pace_options *options, int64_t now)
{
    uint32_t number = bucket_number_at(options, now);
    uint32_t passed = number - window->head;
    window->head = number;
    for (uint32_t i = 0; i < passed && i < window->count; i++) {
        window->at = (uint8_t)(window->at + 1 < window->count ? window->at + 1 : 0);
        empty_bucket(window, window->at);
    }
}

static void halve_bucket(struct wr_window *window, unsigned bucket)
{
    window->totals[bucket] /= 2;
    for (unsigned kind = 0; kind < WR_WINDOW_KINDS; kind++)
        *failures_in_bucket(window, kind, bucket) /= 2;
}

void wr_window_add(struct wr_window *window, const weir_pace_options *options, enum wr_window_kind kind, int64_t now)
{
    advance_window(window, options, now);
    if (window->totals[window->at] == UINT16_MAX ||
        (kind != WR_WINDOW_OK && *failures_in_bucket(window, kind, window->at) == UINT8_MAX))
        halve_bucket(window, window->at);
    window->totals[window->at]++;
    if (kind != WR_WINDOW_OK)
        ++*failures_in_bucket(window, kind, window->at);
}

struct wr_window_sums wr_window_sum(const struct wr_window *window, const weir_pace_options *options, int64_t now)
{
    struct wr_window_sums sums = {0};
    uint32_t passed = bucket_number_at(options, now) - window->head;
    /* Number of valid buckets, counted back from `at`. */
    unsigned kept = passed < window->count ? window->count - passed : 0;
    unsigned bucket = window->at;

    for (unsigned i = 0; i < kept; i++) {
        sums.total += window->totals[bucket];
        for (unsigned kind = 0; kind < WR_WINDOW_KINDS; kind++)
            sums.failures[kind] += *failures_in_bucket(window, kind, bucket);
        bucket = bucket > 0 ? bucket - 1 : window->count - 1u;
    }
    return sums;
}

static uint32_t good_in_bucket(const struct wr_window *window, unsigned bucket)
{
    uint32_t good = window->totals[bucket];
    for (unsigned kind = 0; kind < WR_WINDOW_KINDS; kind++)
        good -= *((const uint8_t *)(window->totals + window->count) + kind * window->count + bucket);
    return good;
}

double wr_window_good_rate(const struct wr_window *window, const weir_pace_options *options, int64_t span_ns,
                           int64_t now)
{
    int64_t step_ns = options->window_step_ns;
    int64_t passed_ns = now - (int64_t)bucket_number_at(options, now) * step_ns;
    int64_t known_ns = (window->count - 1) * step_ns + passed_ns;
    uint32_t passed = bucket_number_at(options, now) - window->head;
    unsigned bucket = window->at;
    double good = 0;

    if (span_ns > known_ns)
        span_ns = known_ns;
    for (int64_t i = passed; i < window->count; i++) {
        /* Length of the span that lies before the end of this bucket. */
        int64_t left_ns = span_ns - passed_ns - (i - 1) * step_ns;
        if (left_ns <= 0)
            break;
        good += good_in_bucket(window, bucket) * (i == 0 || left_ns >= step_ns ? 1 : (double)left_ns / (double)step_ns);
        bucket = bucket > 0 ? bucket - 1 : window->count - 1u;
    }
    return span_ns > 0 ? good * 1e9 / (double)span_ns : 0;
}

double wr_window_error_rate(const struct wr_window_sums *sums)
{
    uint32_t failures = 0;
    for (unsigned kind = 0; kind < WR_WINDOW_KINDS; kind++)
        failures += sums->failures[kind];
    return sums->total > 0 ? (double)failures / sums->total : 0;
}
