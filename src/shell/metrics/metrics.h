/* SPDX-License-Identifier: MIT */
/* metrics.h - numbers as Prometheus reads them: its text format, version 0.0.4.
 *
 *     struct wr_metrics metrics = {.buf = &buf};
 *     wr_metrics_family(&metrics, "weir_crawl_hosts", WR_METRIC_GAUGE, "Hosts in memory, by what they do.");
 *     wr_metrics_count(&metrics, WR_LABEL("state", wr_span_of("idle")), 3);      weir_crawl_hosts{state="idle"} 3
 *
 * Pull: whoever is asked reads what rooms count anyway. Units are seconds and bytes, a counter's name ends in _total.
 *
 * A label's value may come from strangers: it is escaped, and made valid UTF-8 without control characters, so that it
 * can neither forge a line nor spoil the whole answer. How many values a label has is for the caller to bound: the
 * first so many, and "other" for the rest. Keys of callers are never labels: they may be secrets, and are too many.
 */
#ifndef WR_SHELL_METRICS_METRICS_H
#define WR_SHELL_METRICS_METRICS_H

#include "base/buf.h"
#include "base/histogram.h"

#define WR_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define WR_METRICS_OTHER "other"
#define WR_LABEL_MAX 512 /* bytes of a value, before it is escaped; the rest is cut off */

enum wr_metric_kind {
    WR_METRIC_COUNTER,
    WR_METRIC_GAUGE,
    WR_METRIC_HISTOGRAM,
};

struct wr_metrics {
    struct wr_buf *buf;
    const char *name; /* of the family that samples belong to */
};

struct wr_label {
    const char *name;
    struct wr_span value;
};

/* One label; several are an array of them that ends with a name NULL. */
#define WR_LABEL(name, value) ((const struct wr_label[]){{(name), (value)}, {NULL, {NULL, 0}}})

/* `name` and `help` are ours and stay. */
void wr_metrics_family(struct wr_metrics *metrics, const char *name, enum wr_metric_kind kind, const char *help);

/* Samples of the family; `labels` may be NULL. */
void wr_metrics_count(struct wr_metrics *metrics, const struct wr_label *labels, uint64_t value);
/* Any, INFINITY and NAN as well. */
void wr_metrics_number(struct wr_metrics *metrics, const struct wr_label *labels, double value);
void wr_metrics_seconds(struct wr_metrics *metrics, const struct wr_label *labels, int64_t ns);
void wr_metrics_histogram(struct wr_metrics *metrics, const struct wr_label *labels, const struct wr_buckets *buckets,
                          const struct wr_histogram_sum *sum);

/* A family with one sample. */
void wr_metrics_counter(struct wr_metrics *metrics, const char *name, const char *help, uint64_t value);
void wr_metrics_gauge(struct wr_metrics *metrics, const char *name, const char *help, double value);

/* Which program this is, and what the system says of it: build, processor time, memory, descriptors. */
void wr_metrics_program(struct wr_metrics *metrics);

#endif
