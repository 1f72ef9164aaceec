/* SPDX-License-Identifier: MIT */
/* metrics.h - writes metrics for Prometheus: its text format, version 0.0.4.
 *
 *     struct wr_metrics metrics = {.buf = &buf};
 *     wr_metrics_family(&metrics, "weir_crawl_hosts", WR_METRIC_GAUGE, "Hosts by state.");
 *     wr_metrics_count(&metrics, WR_METRIC_LABEL("state", wr_span_of("idle")), 3);
 *
 * The last line writes weir_crawl_hosts{state="idle"} 3. A page of metrics reads counters that
 * exist anyway. Units are seconds and bytes; the name of a counter ends in _total.
 *
 * The value of a label may be untrusted input. It is escaped, made valid UTF-8 and stripped of
 * control characters, so it cannot forge a line or invalidate the page. The caller must limit the
 * number of values of a label: the first N, and "other" for the rest. Keys of callers must never be
 * labels: they may be secrets, and are too many.
 */
#ifndef WR_WATCH_METRICS_METRICS_H
#define WR_WATCH_METRICS_METRICS_H

#include "base/buf.h"
#include "base/histogram.h"

#define WR_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define WR_METRICS_OTHER "other"
#define WR_METRIC_LABEL_MAX 512 /* bytes of a value before escaping; longer ones are cut off */

enum wr_metric_kind {
    WR_METRIC_COUNTER,
    WR_METRIC_GAUGE,
    WR_METRIC_HISTOGRAM,
};

struct wr_metrics {
    struct wr_buf *buf;
    const char *name; /* name of the current family */
};

struct wr_metric_label {
    const char *name;
    struct wr_span value;
};

/* An array of one label. Arrays of labels end with a NULL name. */
#define WR_METRIC_LABEL(name, value) ((const struct wr_metric_label[]){{(name), (value)}, {NULL, {NULL, 0}}})

/* Begins a family. `name` and `help` must be constants. */
void wr_metrics_family(struct wr_metrics *metrics, const char *name, enum wr_metric_kind kind, const char *help);

/* Write samples of the current family; `labels` may be NULL. */
void wr_metrics_count(struct wr_metrics *metrics, const struct wr_metric_label *labels, uint64_t value);
/* Accepts every value, including INFINITY and NAN. */
void wr_metrics_number(struct wr_metrics *metrics, const struct wr_metric_label *labels, double value);
void wr_metrics_seconds(struct wr_metrics *metrics, const struct wr_metric_label *labels, int64_t ns);
void wr_metrics_histogram(struct wr_metrics *metrics, const struct wr_metric_label *labels,
                          const struct wr_buckets *buckets, const struct wr_histogram_sum *sum);

/* Write a family with one sample. */
void wr_metrics_counter(struct wr_metrics *metrics, const char *name, const char *help, uint64_t value);
void wr_metrics_gauge(struct wr_metrics *metrics, const char *name, const char *help, double value);

/* Writes the version of the program, its processor time, memory and descriptors. */
void wr_metrics_program(struct wr_metrics *metrics);

#endif
