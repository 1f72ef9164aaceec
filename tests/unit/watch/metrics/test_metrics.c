/* SPDX-License-Identifier: MIT */
/* test_metrics.c - tests of metrics as text, with any bytes in a label. */
#include "base/rng.h"
#include "lib/test.h"
#include "watch/metrics/metrics.h"

#include <math.h>
#include <weir/time.h>

#define ROOM 16384

struct text {
    struct wr_buf buf;
    struct wr_metrics metrics;
    char memory[ROOM];
};

static struct wr_metrics *begin(struct text *text)
{
    wr_buf_init_fixed(&text->buf, text->memory, sizeof text->memory);
    text->metrics = (struct wr_metrics){.buf = &text->buf, .name = "m"};
    return &text->metrics;
}

static struct wr_span bytes_of(const char *data, size_t bytes)
{
    return (struct wr_span){data, bytes};
}

static void family_has_its_help_and_type_before_its_samples(void **state)
{
    struct text text;
    (void)state;
    struct wr_metrics *metrics = begin(&text);
    wr_metrics_counter(metrics, "weir_x_total", "What x is.", UINT64_MAX);
    wr_metrics_gauge(metrics, "weir_y", "What y is.", -0.25);
    assert_string_equal(text.memory, "# HELP weir_x_total What x is.\n# TYPE weir_x_total counter\n"
                                     "weir_x_total 18446744073709551615\n"
                                     "# HELP weir_y What y is.\n# TYPE weir_y gauge\nweir_y -0.25\n");
}

static void infinite_and_nan_metrics_have_their_prometheus_names(void **state)
{
    static const struct {
        double number;
        const char *line;
    } cases[] = {{INFINITY, "m +Inf\n"}, {-INFINITY, "m -Inf\n"},
                 {NAN, "m NaN\n"},       {1e300, "m +Inf\n"},
                 {0, "m 0\n"},           {999999999999999.0, "m 999999999999999\n"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct text text;
        wr_metrics_number(begin(&text), NULL, cases[i].number);
        assert_string_equal(text.memory, cases[i].line);
    }
}

static void metric_times_are_in_seconds(void **state)
{
    struct text text;
    (void)state;
    wr_metrics_seconds(begin(&text), WR_METRIC_LABEL("a", wr_span_of("b")), 1500 * WEIR_MILLISECOND + 1);
    assert_string_equal(text.memory, "m{a=\"b\"} 1.500000001\n");
}

static void buckets_of_a_histogram_add_up(void **state)
{
    static const struct wr_buckets buckets = {2, {WEIR_MILLISECOND, 2 * WEIR_SECOND}};
    struct wr_histogram histogram = {0};
    struct wr_histogram_sum sum = {0};
    struct text text;
    (void)state;
    static const int64_t times[] = {0, WEIR_MILLISECOND, WEIR_SECOND, 2 * WEIR_SECOND, 7 * WEIR_SECOND};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        wr_histogram_add(&histogram, &buckets, times[i]);
    wr_histogram_sum(&histogram, &sum);
    wr_metrics_histogram(begin(&text), WR_METRIC_LABEL("reason", wr_span_of("pace")), &buckets, &sum);
    assert_string_equal(text.memory, "m_bucket{reason=\"pace\",le=\"0.001\"} 2\n"
                                     "m_bucket{reason=\"pace\",le=\"2\"} 4\n"
                                     "m_bucket{reason=\"pace\",le=\"+Inf\"} 5\n"
                                     "m_sum{reason=\"pace\"} 10.001\n"
                                     "m_count{reason=\"pace\"} 5\n");
}

/* J12 */
static void label_cannot_forge_a_line(void **state)
{
    static const struct {
        struct wr_span value;
        const char *written;
    } cases[] = {
        {{"\"} 1\nforged 2", 13}, "\\\"} 1\\nforged 2"},
        {{"a\\", 2}, "a\\\\"},
        {{"a\0b\x1b[2J\r\x7f", 9},
         "a\xef\xbf\xbd"
         "b\xef\xbf\xbd[2J\xef\xbf\xbd\xef\xbf\xbd"},
        {{"\xff\xc3", 2}, "\xef\xbf\xbd\xef\xbf\xbd"},
        {{"\xc2\x9b", 2}, "\xef\xbf\xbd"},
        {{"m\xc3\xbcller", 7}, "m\xc3\xbcller"},
        {{NULL, 0}, ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct text text;
        char line[256];
        wr_metrics_count(begin(&text), WR_METRIC_LABEL("host", cases[i].value), 1);
        (void)snprintf(line, sizeof line, "m{host=\"%s\"} 1\n", cases[i].written);
        assert_string_equal(text.memory, line);
    }
}

/* Reads the line of a sample as Prometheus does. Returns the length of the value of its only label,
 * unescaped; fails the test if the line has anything else. */
static size_t read_label(const char *line, char *ret_value)
{
    size_t bytes = 0;
    assert_memory_equal(line, "m{l=\"", 5);
    for (line += 5; *line != '"'; line++) {
        assert_true((unsigned char)*line >= 0x20);
        bool is_escaped = *line == '\\';
        line += is_escaped;
        assert_true(!is_escaped || *line == 'n' || *line == '\\' || *line == '"');
        ret_value[bytes++] = is_escaped && *line == 'n' ? '\n' : *line;
    }
    assert_string_equal(line, "\"} 7\n");
    return bytes;
}

static void any_bytes_make_one_sample_of_valid_text(void **state)
{
    static const char alphabet[] = "\"\\\n{},= a#\xc3\xbc\xff\x80\xe2\x80\xae\0";
    struct wr_rng rng;
    (void)state;
    wr_rng_init(&rng, weir_test_seed());
    for (int round = 0; round < 20000; round++) {
        struct text text;
        char value[64], back[ROOM];
        size_t bytes = (size_t)wr_rng_below(&rng, sizeof value);
        for (size_t i = 0; i < bytes; i++)
            value[i] = alphabet[wr_rng_below(&rng, sizeof alphabet)];
        wr_metrics_count(begin(&text), WR_METRIC_LABEL("l", bytes_of(value, bytes)), 7);
        struct wr_span read = {back, read_label(text.memory, back)};
        for (size_t i = 0; i < read.bytes; i++)
            back[i] = back[i] == '\n' ? ' ' : back[i];
        assert_true(wr_span_is_clean(read));
    }
}

static void long_label_is_cut_between_characters(void **state)
{
    struct text text;
    char value[2 * WR_METRIC_LABEL_MAX], back[ROOM];
    (void)state;
    for (size_t i = 0; i + 1 < sizeof value; i += 2)
        memcpy(value + i, "\xc3\xbc", 2);
    memcpy(value, "a", 1);
    memcpy(value + 1, "b", 1);
    memmove(value + 1, value + 2, sizeof value - 2); /* now the limit falls inside a character */
    wr_metrics_count(begin(&text), WR_METRIC_LABEL("l", bytes_of(value, sizeof value - 1)), 7);
    struct wr_span read = {back, read_label(text.memory, back)};
    assert_int_equal(read.bytes, WR_METRIC_LABEL_MAX - 1);
    assert_true(wr_span_is_clean(read));
}

static void program_metrics_report_cpu_memory_and_files(void **state)
{
    struct text text;
    (void)state;
    wr_metrics_program(begin(&text));
    assert_non_null(strstr(text.memory, "weir_build_info{version=\""));
    assert_non_null(strstr(text.memory, "process_cpu_seconds_total "));
    const char *memory = strstr(text.memory, "\nprocess_resident_memory_bytes ");
    assert_non_null(memory);
    assert_true(strtoull(strchr(memory, ' '), NULL, 10) > 65536);
    const char *files = strstr(text.memory, "\nprocess_open_fds ");
    assert_non_null(files);
    assert_true(strtoull(strchr(files, ' '), NULL, 10) >= 3);
    assert_int_equal(text.buf.error, 0);
}

WEIR_TESTS(test(family_has_its_help_and_type_before_its_samples),
           test(infinite_and_nan_metrics_have_their_prometheus_names), test(metric_times_are_in_seconds),
           test(buckets_of_a_histogram_add_up), test(label_cannot_forge_a_line),
           test(any_bytes_make_one_sample_of_valid_text), test(long_label_is_cut_between_characters),
           test(program_metrics_report_cpu_memory_and_files))
