/* SPDX-License-Identifier: MIT */
/* limit_trials_plot.c - draws a panel per limit, one below the other, with the same axes.
 *
 *      traffic
 *      limit                               granted, in any window, Retry-After
 *     r |      ______
 *     a |     |      |  asked
 *     t |     |xxxxxx|  granted
 *     e |_____|______|_______________________
 *              | | |    refused: a tick per moment, longer for more requests
 */
#include <inttypes.h>
#include <math.h>

#include "base/bits.h"
#include "cli/simulate/limit_trials.h"
#include "cli/simulate/svg.h"

#define HEAD_HEIGHT 74
#define PANEL_HEAD 24
#define PLOT_HEIGHT 84
#define RUG_HEIGHT 14
#define PANEL_HEIGHT (PANEL_HEAD + PLOT_HEIGHT + RUG_HEIGHT + 12)
#define FOOT_HEIGHT 34 /* height of the time axis, pixels */

#define BINS_MAX 60
/* Minimum average of requests per step: with fewer the curves are noise. */
#define STEADY_REQUESTS 8

struct trial_bins {
    double asked[BINS_MAX], granted[BINS_MAX], refused[BINS_MAX];
};

struct trials_plot {
    FILE *file;
    const struct wr_limit_trials_table *table;
    int64_t duration_ns;
    size_t bins;
    double duration_s, top; /* ends of the axes, s and requests per second */
};

/* Returns a number of bins that divides 60, so that their times are round. */
static size_t choose_bins(size_t requests)
{
    static const size_t numbers[] = {BINS_MAX, 30, 20, 15};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (requests >= STEADY_REQUESTS * numbers[i])
            return numbers[i];
    return 12;
}

/* Returns the last time of a request or of a grant after a wait. */
static int64_t last_instant(const struct wr_limit_trials_table *table)
{
    int64_t last = table->plan.traffic->duration_ns;
    for (size_t i = 0; i < table->count; i++)
        for (size_t n = 0; n < table->rows[i].sum.asked; n++)
            if (table->rows[i].answers[n].granted_at > last)
                last = table->rows[i].answers[n].granted_at;
    return last;
}

static size_t trial_bin_of(const struct trials_plot *plot, int64_t at)
{
    wr_i128 bin = (wr_i128)at * (int64_t)plot->bins / plot->duration_ns;
    return bin < (wr_i128)plot->bins ? (size_t)bin : plot->bins - 1;
}

static void fill_trial_bins(const struct trials_plot *plot, const struct wr_limit_trials_row *row,
                            struct trial_bins *ret_bins)
{
    *ret_bins = (struct trial_bins){.asked = {0}};
    for (size_t i = 0; i < row->sum.asked; i++) {
        const struct wr_trial_answer *answer = &row->answers[i];
        ret_bins->asked[trial_bin_of(plot, answer->asked_at)]++;
        if (answer->granted_at >= 0)
            ret_bins->granted[trial_bin_of(plot, answer->granted_at)]++;
        else
            ret_bins->refused[trial_bin_of(plot, answer->asked_at)]++;
    }
}

static double trial_bin_s(const struct trials_plot *plot)
{
    return plot->duration_s / (double)plot->bins;
}

/* Draws counts per bin as a line of steps. */
static void draw_steps(const struct trials_plot *plot, const double *counts, double bottom, const char *class)
{
    fprintf(plot->file, "<path class=\"%s\" d=\"M%d %.1f", class, WR_SVG_LEFT, bottom);
    for (size_t i = 0; i < plot->bins; i++)
        fprintf(plot->file, "V%.1fH%.1f", bottom - PLOT_HEIGHT * counts[i] / trial_bin_s(plot) / plot->top,
                wr_svg_x(plot->duration_s, (double)(i + 1) * trial_bin_s(plot)));
    fprintf(plot->file, "V%.1f\"/>\n", bottom);
}

static void draw_refusals(const struct trials_plot *plot, const double *counts, double bottom)
{
    fputs("<path class=\"rejected\" d=\"", plot->file);
    for (size_t i = 0; i < plot->bins; i++)
        if (counts[i] > 0)
            wr_svg_tick(plot->file, wr_svg_x(plot->duration_s, ((double)i + 0.5) * trial_bin_s(plot)), bottom + 2,
                        RUG_HEIGHT - 3, counts[i]);
    fputs("\"/>\n", plot->file);
}

static void describe_trial(const struct wr_limit_trials_table *table, const struct wr_trial_sum *sum, char *ret_text,
                           size_t room)
{
    char more[64] = "";
    if (sum->longest_ns > 0)
        snprintf(more, sizeof more, "  ·  waits up to %.2g s", (double)sum->longest_ns * 1e-9);
    else if (sum->retry_max_s > 0 && sum->retry_min_s == sum->retry_max_s)
        snprintf(more, sizeof more, "  ·  Retry-After %" PRId64 " s", sum->retry_max_s);
    else if (sum->retry_max_s > 0)
        snprintf(more, sizeof more, "  ·  Retry-After %" PRId64 " to %" PRId64 " s", sum->retry_min_s,
                 sum->retry_max_s);
    snprintf(ret_text, room, "granted %zu of %zu  ·  at most %zu in any %g s, %zu at once%s", sum->granted, sum->asked,
             sum->most_in_window, (double)table->window_ns * 1e-9, sum->most_in_flight, more);
}

static void draw_trial_panel(const struct trials_plot *plot, const struct wr_limit_trials_row *row, double top)
{
    double bottom = top + PANEL_HEAD + PLOT_HEIGHT;
    struct trial_bins bins;
    char text[192];
    fill_trial_bins(plot, row, &bins);
    describe_trial(plot->table, &row->sum, text, sizeof text);
    wr_svg_text(plot->file, "name", "start", WR_SVG_LEFT, top + 15, row->text);
    wr_svg_text(plot->file, "", "end", WR_SVG_LEFT + WR_SVG_PLOT_WIDTH, top + 15, text);
    wr_svg_grid(plot->file, plot->top, bottom, PLOT_HEIGHT);
    draw_steps(plot, bins.asked, bottom, "limit");
    draw_steps(plot, bins.granted, bottom, "water");
    draw_steps(plot, bins.granted, bottom, "delivered");
    draw_refusals(plot, bins.refused, bottom);
}

static void draw_trial_legend(FILE *file)
{
    static const struct {
        const char *class, *name, *shape;
    } signs[] = {{"limit", "asked", "h22"}, {"delivered", "granted", "h22"}, {"rejected", "refused", "m9 -5v10"}};
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        double x = WR_SVG_LEFT + 100 * (double)i;
        fprintf(file, "<path class=\"%s\" d=\"M%.0f 52%s\"/>\n", signs[i].class, x, signs[i].shape);
        wr_svg_text(file, "", "start", x + 28, 56, signs[i].name);
    }
}

static void format_trial_title(const struct wr_limit_trials_table *table, char *ret_title, size_t room)
{
    int bytes =
        snprintf(ret_title, room, "%s; each takes %g s", table->traffic_text, (double)table->plan.take_ns * 1e-9);
    if (table->plan.wait_ns > 0 && (size_t)bytes < room)
        snprintf(ret_title + bytes, room - (size_t)bytes, ", and waits up to %g s", (double)table->plan.wait_ns * 1e-9);
}

void wr_limit_trials_plot(FILE *file, const struct wr_limit_trials_table *table)
{
    struct trials_plot plot = {.file = file, .table = table, .duration_ns = last_instant(table)};
    char title[384];
    double height = HEAD_HEIGHT + (double)table->count * PANEL_HEIGHT + FOOT_HEIGHT, most = 1;
    plot.bins = choose_bins(table->plan.traffic->requests);
    plot.duration_s = (double)plot.duration_ns * 1e-9;
    for (size_t i = 0; i < table->count; i++) {
        struct trial_bins bins;
        fill_trial_bins(&plot, &table->rows[i], &bins);
        for (size_t bin = 0; bin < plot.bins; bin++)
            most = fmax(most, fmax(bins.asked[bin], bins.granted[bin]));
    }
    plot.top = 1.08 * most / trial_bin_s(&plot);
    format_trial_title(table, title, sizeof title);
    wr_svg_begin(file, height, title);
    draw_trial_legend(file);
    for (size_t i = 0; i < table->count; i++)
        draw_trial_panel(&plot, &table->rows[i], HEAD_HEIGHT + (double)i * PANEL_HEIGHT);
    wr_svg_times(file, plot.duration_s, height - FOOT_HEIGHT - 6);
    fputs("</svg>\n", file);
}
