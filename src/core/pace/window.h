/* SPDX-License-Identifier: MIT */
/* window.h - what came back lately: answers and failures of the last 30 s, in buckets of 2 s.
 *
 *     |..|..|..|..|..|..|##|      `at` is the bucket of now; the one after it is the oldest and falls out next
 *
 * Buckets begin at multiples of the step, so all that happened in one falls out together. Counts are small (16 bits of
 * answers, 8 of failures of each kind): a bucket that would overflow is halved, which keeps its share of failures and
 * lowers its weight. Exact up to 255 failures of a kind and 65535 answers in a bucket.
 */
#ifndef WR_CORE_PACE_WINDOW_H
#define WR_CORE_PACE_WINDOW_H

#include <weir/pace.h>

enum wr_window_kind {
    WR_WINDOW_SERVER,   /* 5xx */
    WR_WINDOW_REJECTED, /* 429 */
    WR_WINDOW_LOST,     /* no answer */
    WR_WINDOW_SOFT,     /* one of those that says nothing of the host's health: with Retry-After, for one */
    WR_WINDOW_KINDS,
    WR_WINDOW_OK = WR_WINDOW_KINDS,
};

struct wr_window {
    uint32_t head; /* the number of the bucket of the latest answer; wraps */
    uint8_t at;    /* which one it is */
    uint8_t count; /* of buckets */
    uint16_t totals[];
    /* uint8_t failures[WR_WINDOW_KINDS][count] */
};

struct wr_window_sums {
    uint32_t total;
    uint32_t failures[WR_WINDOW_KINDS];
};

size_t wr_window_bytes(const weir_pace_options *options);

/* Fills zeroed memory. `now` never goes back between calls. */
void wr_window_init(struct wr_window *window, const weir_pace_options *options, int64_t now);
void wr_window_add(struct wr_window *window, const weir_pace_options *options, enum wr_window_kind kind, int64_t now);
/* It is `to` by another clock when it was `from` by the last; a bucket may end up to a step sooner or later. */
void wr_window_move(struct wr_window *window, const weir_pace_options *options, int64_t from, int64_t to);
/* Whether one that comes from elsewhere is of these options. */
bool wr_window_ok(const struct wr_window *window, const weir_pace_options *options);
void wr_window_clear(struct wr_window *window);
struct wr_window_sums wr_window_sum(const struct wr_window *window, const weir_pace_options *options, int64_t now);

/* Good answers per second in the last `span_ns`. Of the oldest bucket, the share counts that lies within. */
double wr_window_good_rate(const struct wr_window *window, const weir_pace_options *options, int64_t span_ns,
                           int64_t now);

/* Failures of all kinds / answers; 0 if there were none. */
double wr_window_error_rate(const struct wr_window_sums *sums);

#endif
