/* SPDX-License-Identifier: MIT */
/* window.h - Counts the responses and failures of the last 30 s, by default in buckets of 2 s.
 *
 *     |..|..|..|..|..|..|##|      `at` is the bucket of now; the one after it is the oldest
 *
 * Buckets begin at multiples of the step, so all counts of one bucket expire together. Counters are
 * small: 16 bits for responses, 8 for failures of each kind. A bucket that would overflow is
 * halved: its share of failures stays, its weight falls. Counts are exact up to 255 failures of a
 * kind and 65535 responses in a bucket.
 */
#ifndef WR_CORE_PACE_WINDOW_H
#define WR_CORE_PACE_WINDOW_H

#include <weir/pace.h>

enum wr_window_kind {
    WR_WINDOW_SERVER,   /* 5xx */
    WR_WINDOW_REJECTED, /* 429 and similar statuses */
    WR_WINDOW_LOST,     /* no response */
    WR_WINDOW_SOFT,     /* unrelated to the host's health, such as an error with Retry-After */
    WR_WINDOW_KINDS,
    WR_WINDOW_OK = WR_WINDOW_KINDS,
};

struct wr_window {
    uint32_t head; /* number of the bucket of the latest response; wraps */
    uint8_t at;    /* index of that bucket in the ring */
    uint8_t count; /* number of buckets */
    uint16_t totals[];
    /* followed by uint8_t failures[WR_WINDOW_KINDS][count] */
};

struct wr_window_sums {
    uint32_t total;
    uint32_t failures[WR_WINDOW_KINDS];
};

size_t wr_window_bytes(const weir_pace_options *options);

/* Initialises zeroed memory. `now` never goes back between calls. */
void wr_window_init(struct wr_window *window, const weir_pace_options *options, int64_t now);
void wr_window_add(struct wr_window *window, const weir_pace_options *options, enum wr_window_kind kind, int64_t now);
/* Converts the window from a clock that shows `from` to one that shows `to`. A bucket may expire up
 * to one step sooner or later. */
void wr_window_move(struct wr_window *window, const weir_pace_options *options, int64_t from, int64_t to);
/* Returns true if a window from another process fits these options. */
bool wr_window_ok(const struct wr_window *window, const weir_pace_options *options);
void wr_window_clear(struct wr_window *window);
struct wr_window_sums wr_window_sum(const struct wr_window *window, const weir_pace_options *options, int64_t now);

/* Returns the good responses per second in the last `span_ns`. The oldest bucket counts by the
 * share that lies within. */
double wr_window_good_rate(const struct wr_window *window, const weir_pace_options *options, int64_t span_ns,
                           int64_t now);

/* Returns the share of failures of all kinds among the responses; 0 without responses. */
double wr_window_error_rate(const struct wr_window_sums *sums);

#endif
