/* SPDX-License-Identifier: MIT */
/* metrics.c - writes metric families and samples as text. */
#include "watch/metrics/metrics.h"

#include <math.h>
#include <weir/time.h>

/* the largest number that wr_buf_append_number can write */
#define NUMBER_MAX 1e18

/* ---- families ---- */

void wr_metrics_family(struct wr_metrics *metrics, const char *name, enum wr_metric_kind kind, const char *help)
{
    static const char *const kinds[] = {
        [WR_METRIC_COUNTER] = "counter", [WR_METRIC_GAUGE] = "gauge", [WR_METRIC_HISTOGRAM] = "histogram"};
    struct wr_buf *buf = metrics->buf;
    metrics->name = name;
    wr_buf_append_string(buf, "# HELP ");
    wr_buf_append_string(buf, name);
    wr_buf_append_char(buf, ' ');
    wr_buf_append_string(buf, help);
    wr_buf_append_string(buf, "\n# TYPE ");
    wr_buf_append_string(buf, name);
    wr_buf_append_char(buf, ' ');
    wr_buf_append_string(buf, kinds[kind]);
    wr_buf_append_char(buf, '\n');
}

/* ---- labels ---- */

static bool is_control(uint32_t point)
{
    return point < 0x20 || (point >= 0x7f && point < 0xa0);
}

/* Appends one character of a label's value, escaped if necessary. */
static void append_label_point(struct wr_buf *buf, struct wr_span point, uint32_t number)
{
    if (number == '\n')
        wr_buf_append_string(buf, "\\n");
    else if (number == '"' || number == '\\')
        wr_buf_append_escaped(buf, point, '"');
    else if (number == 0xfffd || is_control(number)) /* invalid UTF-8, or a control character */
        wr_buf_append_string(buf, "\xef\xbf\xbd");
    else
        wr_buf_append_span(buf, point);
}

static void append_label_value(struct wr_buf *buf, struct wr_span value)
{
    struct wr_span left = value;
    while (left.bytes > 0) {
        struct wr_span point = left;
        uint32_t number = wr_span_take_point(&left);
        point.bytes -= left.bytes;
        if (value.bytes - left.bytes > WR_METRIC_LABEL_MAX)
            break;
        append_label_point(buf, point, number);
    }
}

static void append_label(struct wr_buf *buf, const char *name, struct wr_span value, bool *is_first)
{
    wr_buf_append_char(buf, *is_first ? '{' : ',');
    *is_first = false;
    wr_buf_append_string(buf, name);
    wr_buf_append_string(buf, "=\"");
    append_label_value(buf, value);
    wr_buf_append_char(buf, '"');
}

/* Appends the name and labels of a sample; for a bucket of a histogram also its bound `upper`. */
static void append_series(const struct wr_metrics *metrics, const char *suffix, const struct wr_metric_label *labels,
                          const char *upper)
{
    struct wr_buf *buf = metrics->buf;
    bool is_first = true;
    wr_buf_append_string(buf, metrics->name);
    wr_buf_append_string(buf, suffix);
    for (; labels != NULL && labels->name != NULL; labels++)
        append_label(buf, labels->name, labels->value, &is_first);
    if (upper != NULL)
        append_label(buf, "le", wr_span_of(upper), &is_first);
    wr_buf_append_string(buf, is_first ? " " : "} ");
}

/* ---- samples ---- */

static void append_number(struct wr_buf *buf, double number)
{
    if (isnan(number))
        wr_buf_append_string(buf, "NaN");
    else if (number >= NUMBER_MAX || number <= -NUMBER_MAX)
        wr_buf_append_string(buf, number > 0 ? "+Inf" : "-Inf");
    else
        wr_buf_append_number(buf, number);
}

void wr_metrics_count(struct wr_metrics *metrics, const struct wr_metric_label *labels, uint64_t value)
{
    append_series(metrics, "", labels, NULL);
    wr_buf_append_u64(metrics->buf, value);
    wr_buf_append_char(metrics->buf, '\n');
}

void wr_metrics_number(struct wr_metrics *metrics, const struct wr_metric_label *labels, double value)
{
    append_series(metrics, "", labels, NULL);
    append_number(metrics->buf, value);
    wr_buf_append_char(metrics->buf, '\n');
}

void wr_metrics_seconds(struct wr_metrics *metrics, const struct wr_metric_label *labels, int64_t ns)
{
    wr_metrics_number(metrics, labels, (double)ns / (double)WEIR_SECOND);
}

/* Writes a histogram; its buckets are cumulative. */
void wr_metrics_histogram(struct wr_metrics *metrics, const struct wr_metric_label *labels,
                          const struct wr_buckets *buckets, const struct wr_histogram_sum *sum)
{
    uint64_t count = 0;
    for (size_t i = 0; i <= buckets->count; i++) {
        char text[32];
        struct wr_buf upper;
        wr_buf_init_fixed(&upper, text, sizeof text);
        append_number(&upper, i < buckets->count ? (double)buckets->upper_ns[i] / (double)WEIR_SECOND : INFINITY);
        count += sum->counts[i];
        append_series(metrics, "_bucket", labels, text);
        wr_buf_append_u64(metrics->buf, count);
        wr_buf_append_char(metrics->buf, '\n');
    }
    append_series(metrics, "_sum", labels, NULL);
    append_number(metrics->buf, (double)sum->sum_ns / (double)WEIR_SECOND);
    wr_buf_append_char(metrics->buf, '\n');
    append_series(metrics, "_count", labels, NULL);
    wr_buf_append_u64(metrics->buf, count);
    wr_buf_append_char(metrics->buf, '\n');
}

void wr_metrics_counter(struct wr_metrics *metrics, const char *name, const char *help, uint64_t value)
{
    wr_metrics_family(metrics, name, WR_METRIC_COUNTER, help);
    wr_metrics_count(metrics, NULL, value);
}

void wr_metrics_gauge(struct wr_metrics *metrics, const char *name, const char *help, double value)
{
    wr_metrics_family(metrics, name, WR_METRIC_GAUGE, help);
    wr_metrics_number(metrics, NULL, value);
}
