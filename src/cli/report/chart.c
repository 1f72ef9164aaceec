/* SPDX-License-Identifier: MIT */
/* chart.c - draws the pace of a host over the time of a run as SVG.
 *
 *     8/s |      ______            steps: requests per second in each step
 *         |_____|      |____
 *       0 |------------------ - - dashed: the allowed pace, as known at the end
 *         0              2m 10s
 */
#include <inttypes.h>
#include <math.h>

#include "cli/kit/format.h"
#include "cli/report/html.h"

/* About the width in pixels, also on a phone and in two columns: labels keep their size. */
#define WIDTH 400
#define LEFT 52
#define RIGHT 8
#define TOP 10
#define HEIGHT 96 /* height of the curve, pixels */
/* Maximum allowed pace to draw, times the fastest step: a higher one would flatten the curve. */
#define ALLOWED_MAX 3

struct chart {
    const struct wr_report_data_host *host;
    double elapsed_s, step_s;
    double top; /* rate per second at the upper end of the axis */
};

/* Returns the rate in a step, per second. The last step may have ended early. */
static double rate_at(const struct chart *chart, size_t i)
{
    double from = (double)i * chart->step_s, length = chart->elapsed_s - from;
    length = length < chart->step_s ? length : chart->step_s;
    /* A shorter last step is counted as this long: its rate would be noise. */
    double least = chart->step_s / 4;
    return chart->host->starts[i] < 0 ? 0 : (double)chart->host->starts[i] / (length > least ? length : least);
}

static double time_x(const struct chart *chart, double at_s)
{
    double share = at_s / chart->elapsed_s;
    return LEFT + (WIDTH - LEFT - RIGHT) * (share < 1 ? share : 1);
}

static double rate_y(const struct chart *chart, double rate)
{
    return TOP + HEIGHT * (1 - rate / chart->top);
}

static void write_curve(const struct chart *chart, FILE *out)
{
    bool is_drawn = false;
    fputs("<path class=\"pace\" d=\"", out);
    for (size_t i = 0; i < chart->host->points; i++) {
        double from = time_x(chart, (double)i * chart->step_s), to = time_x(chart, (double)(i + 1) * chart->step_s);
        double y = rate_y(chart, rate_at(chart, i));
        if (chart->host->starts[i] < 0) {
            is_drawn = false;
            continue;
        }
        fprintf(out, "%c%.1f %.1fL%.1f %.1f", is_drawn ? 'L' : 'M', from, y, to, y);
        is_drawn = true;
    }
    fputs("\"/>\n", out);
}

static void write_label(FILE *out, const char *anchor, double x, double y, const char *text)
{
    fprintf(out, "<text text-anchor=\"%s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", anchor, x, y, text);
}

static void write_rate_picture(const struct chart *chart, FILE *out)
{
    char top[32], passed[32];
    double allowed = chart->host->allowed;
    wr_format_rate(chart->top, top, sizeof top);
    wr_format_duration((int64_t)(chart->elapsed_s * 1e9), passed, sizeof passed);
    fprintf(out, "<svg viewBox=\"0 0 %d %d\" aria-hidden=\"true\">\n", WIDTH, TOP + HEIGHT + 20);
    fprintf(out, "<path class=\"axis\" d=\"M%d %dV%dH%d\"/>\n", LEFT, TOP, TOP + HEIGHT, WIDTH - RIGHT);
    write_label(out, "end", LEFT - 6, TOP + 8, top);
    write_label(out, "end", LEFT - 6, TOP + HEIGHT, "0");
    write_label(out, "start", LEFT, TOP + HEIGHT + 16, "0");
    write_label(out, "end", WIDTH - RIGHT, TOP + HEIGHT + 16, passed);
    if (isfinite(allowed) && allowed <= chart->top)
        fprintf(out, "<path class=\"allowed\" d=\"M%d %.1fH%d\"/>\n", LEFT, rate_y(chart, allowed), WIDTH - RIGHT);
    write_curve(chart, out);
    fputs("</svg>\n", out);
}

void wr_html_rate_chart(const struct wr_report_data *facts, const struct wr_report_data_host *host, FILE *out)
{
    struct chart chart = {host, (double)facts->elapsed_ns / 1e9, (double)facts->step_ns / 1e9, 0};
    char fastest[32], allowed[32];
    if (host->points == 0 || facts->elapsed_ns <= 0 || facts->step_ns <= 0)
        return;
    for (size_t i = 0; i < host->points; i++)
        chart.top = rate_at(&chart, i) > chart.top ? rate_at(&chart, i) : chart.top;
    if (!(chart.top > 0))
        return;
    wr_format_rate(chart.top, fastest, sizeof fastest);
    wr_format_rate(host->allowed, allowed, sizeof allowed);
    if (isfinite(host->allowed) && host->allowed > chart.top && host->allowed < chart.top * ALLOWED_MAX)
        chart.top = host->allowed;
    fputs("<figure>\n<figcaption><b>", out);
    wr_html_text(out, host->name);
    fprintf(out, "</b>: %" PRIu64 " request%s, at most %s, allowed %s</figcaption>\n", host->requests,
            wr_plural_ending(host->requests), fastest, allowed);
    write_rate_picture(&chart, out);
    fputs("</figure>\n", out);
}
