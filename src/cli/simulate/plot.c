/* SPDX-License-Identifier: MIT */
/* plot.c - draws a panel per pacer, one below the other, with the same axes.
 *
 *      name of the scenario                                         legend
 *      pacer                                            goodput, rejected
 *     r |        . . . . . . . . . limit
 *     a |    /\___/\__________ delivered, sent
 *     t |   /
 *     e |__/_________________________________________________
 *         | |    |           rejections: a tick per moment, longer for more
 *        ====----########    mode of the pacer
 *        0      5 min     10 min
 */
#include "cli/simulate/plot.h"

#include <math.h>
#include <string.h>

#include "cli/simulate/scenario_file.h"
#include "cli/simulate/scores.h"
#include "cli/simulate/svg.h"

/* Sizes in pixels. */
#define HEAD_HEIGHT 74  /* height of title and legend */
#define PANEL_HEAD 26   /* height of the pacer's name */
#define PLOT_HEIGHT 190 /* height of the curves */
#define RUG_HEIGHT 14   /* height of the rejections */
#define BAND_HEIGHT 9   /* height of the modes */
#define AXIS_HEIGHT 44  /* height of the times and the space below them */
#define PANEL_HEIGHT (PANEL_HEAD + PLOT_HEIGHT + RUG_HEIGHT + BAND_HEIGHT + AXIS_HEIGHT)
#define FOOT_HEIGHT 34 /* height of the modes' legend */

#define POINTS 300 /* maximum number of points of a curve */
/* Minimum average of requests per point: with fewer the curves are noise. */
#define STEADY_ANSWERS 6
#define TICKS 600 /* maximum number of rejection ticks */
/* Maximum rate to draw, times the limit: a pacer that hammers would flatten all other curves. */
#define OVERSHOOT_MAX 2.2

struct pacer_plot {
    FILE *file;
    const struct wr_scenario *scenario;
    const struct wr_track *tracks;
    size_t count;
    double duration_s, top; /* ends of the axes, s and requests per second */
    double limits[WR_TRACK_BINS];
    const char *modes[WR_TRACK_MODES];
    int mode_count;
};

/* ---- helpers ---- */

/* Returns the height of a rate in the panel whose curves end at `bottom`. */
static double plot_rate_y(const struct pacer_plot *plot, double bottom, double rate)
{
    double share = rate / plot->top;
    return bottom - PLOT_HEIGHT * (share < 1 ? share : 1);
}

static const char *mode_colour(const struct pacer_plot *plot, const char *name)
{
    static const struct {
        const char *name, *colour;
    } known[] = {
        {"start", "#e3a008"}, {"search", "#a371f7"}, {"cruise", "#2da44e"},
        {"probe", "#1b9fd0"}, {"verify", "#3b6fe0"}, {"blocked", "#d1475c"},
        {"hold", "#8b949e"},  {"raise", "#1b9fd0"},  {"cut", "#d4703b"},
    };
    static const char *const others[] = {"#6e7781", "#12a594", "#db61a2", "#7a9a01", "#8d6e63", "#57606a"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i].colour;
    size_t mode = 0;
    while (mode < (size_t)plot->mode_count && strcmp(plot->modes[mode], name) != 0)
        mode++;
    return others[mode % (sizeof others / sizeof others[0])];
}

/* ---- data ---- */

/* Finds the limit of each bin from all pacers, because one may have been silent where another was
 * not. Bins without any event keep the limit before them. */
static void find_limits(struct pacer_plot *plot)
{
    double last = (double)NAN;
    for (size_t i = 0; i < WR_TRACK_BINS; i++) {
        plot->limits[i] = (double)NAN;
        for (size_t track = 0; isnan(plot->limits[i]) && track < plot->count; track++)
            plot->limits[i] = plot->tracks[track].bins[i].limit;
        if (isnan(plot->limits[i]))
            plot->limits[i] = last;
        last = plot->limits[i];
    }
}

/* Returns true if the pacer reports its mode. Models of other programs do not, and get no
 * colour. */
static bool reports_mode(const char *mode)
{
    return strcmp(mode, "peer") != 0;
}

static void find_modes(struct pacer_plot *plot)
{
    for (size_t track = 0; track < plot->count; track++)
        for (int i = 0; i < plot->tracks[track].mode_count; i++) {
            const char *mode = plot->tracks[track].modes[i];
            int known = 0;
            while (known < plot->mode_count && strcmp(plot->modes[known], mode) != 0)
                known++;
            if (known == plot->mode_count && known < WR_TRACK_MODES && reports_mode(mode))
                plot->modes[plot->mode_count++] = mode;
        }
}

/* Returns the number of bins that make one point of a curve. */
static size_t bins_per_point(const struct wr_track *track)
{
    double sent = 0;
    for (size_t i = 0; i < WR_TRACK_BINS; i++)
        sent += track->bins[i].sent;
    double bins = fmax(WR_TRACK_BINS / POINTS, ceil(STEADY_ANSWERS * WR_TRACK_BINS / fmax(sent, 1)));
    return bins < WR_TRACK_BINS / 10 ? (size_t)bins : WR_TRACK_BINS / 10;
}

/* Returns the rate per second over the bins of a point. `offset` is the offset of the count in
 * struct wr_track_bin. */
static double point_rate(const struct wr_track *track, size_t from, size_t bins, size_t offset)
{
    double sum = 0;
    size_t to = from + bins < WR_TRACK_BINS ? from + bins : WR_TRACK_BINS;
    for (size_t i = from; i < to; i++)
        sum += *(const uint32_t *)(const void *)((const char *)&track->bins[i] + offset);
    return sum / ((double)(to - from) * track->bin_s);
}

static void find_top(struct pacer_plot *plot)
{
    double limit = 0, sent = 0;
    for (size_t i = 0; i < WR_TRACK_BINS; i++)
        /* The comparison is false for NAN. */
        limit = plot->limits[i] > limit ? plot->limits[i] : limit;
    for (size_t track = 0; track < plot->count; track++) {
        size_t bins = bins_per_point(&plot->tracks[track]);
        for (size_t i = 0; i < WR_TRACK_BINS; i += bins)
            sent = fmax(sent, point_rate(&plot->tracks[track], i, bins, offsetof(struct wr_track_bin, sent)));
    }
    double top = fmax(limit, limit > 0 ? fmin(sent, OVERSHOOT_MAX * limit) : sent);
    plot->top = top > 0 ? 1.08 * top : 1;
}

/* ---- a panel ---- */

static void draw_limit(const struct pacer_plot *plot, double bottom)
{
    double before = (double)NAN, bin_s = plot->duration_s / WR_TRACK_BINS;
    size_t first = 0;
    while (first < WR_TRACK_BINS && isnan(plot->limits[first]))
        first++;
    if (first == WR_TRACK_BINS)
        return;
    fprintf(plot->file, "<path class=\"limit\" d=\"M%d %.1f", WR_SVG_LEFT,
            plot_rate_y(plot, bottom, plot->limits[first]));
    for (size_t i = first; i < WR_TRACK_BINS; i++) {
        double y = plot_rate_y(plot, bottom, plot->limits[i]);
        if (fabs(y - before) < 0.05)
            continue;
        if (fabs(y - before) > 3) /* draws a step instead of a slope */
            fprintf(plot->file, "H%.1f", wr_svg_x(plot->duration_s, (double)i * bin_s));
        fprintf(plot->file, "L%.1f %.1f", wr_svg_x(plot->duration_s, (double)i * bin_s), y);
        before = y;
    }
    fprintf(plot->file, "H%d\"/>\n", WR_SVG_LEFT + WR_SVG_PLOT_WIDTH);
}

/* Draws a curve. `closed` extends it down to the axis, to be filled. */
static void draw_curve(const struct pacer_plot *plot, const struct wr_track *track, double bottom, const char *class,
                       size_t offset, bool closed)
{
    size_t bins = bins_per_point(track);
    char verb = 'M';
    fprintf(plot->file, "<path class=\"%s\" d=\"", class);
    for (size_t i = 0; i < WR_TRACK_BINS; i += bins, verb = 'L') {
        size_t to = i + bins < WR_TRACK_BINS ? i + bins : WR_TRACK_BINS;
        fprintf(plot->file, "%c%.1f %.1f", verb, wr_svg_x(plot->duration_s, (double)(i + to) / 2 * track->bin_s),
                plot_rate_y(plot, bottom, point_rate(track, i, bins, offset)));
    }
    if (closed)
        fprintf(plot->file, "V%.1fH%.1fZ", bottom, wr_svg_x(plot->duration_s, (double)bins / 2 * track->bin_s));
    fputs("\"/>\n", plot->file);
}

static void draw_rejections(const struct pacer_plot *plot, const struct wr_track *track, double top)
{
    size_t bins = WR_TRACK_BINS / TICKS;
    fputs("<path class=\"rejected\" d=\"", plot->file);
    for (size_t i = 0; i < WR_TRACK_BINS; i += bins) {
        uint32_t rejected = 0;
        for (size_t bin = i; bin < i + bins; bin++)
            rejected += track->bins[bin].rejected;
        if (rejected == 0)
            continue;
        double x = wr_svg_x(plot->duration_s, ((double)i + (double)bins / 2) * track->bin_s);
        wr_svg_tick(plot->file, x, top + 2, RUG_HEIGHT - 3, rejected);
    }
    fputs("\"/>\n", plot->file);
}

/* Draws all periods of a mode as one path, because some pacers change their mode with every
 * response. The first period begins at the left edge. */
static void draw_mode(const struct pacer_plot *plot, const struct wr_track *track, double top, int mode)
{
    int current = -1;
    double from = 0;
    fprintf(plot->file, "<path fill=\"%s\" d=\"", mode_colour(plot, track->modes[mode]));
    for (size_t i = 0; i <= WR_TRACK_BINS; i++) {
        int here = i == WR_TRACK_BINS ? -2 : track->bins[i].mode;
        if (here == -1 || here == current)
            continue;
        double x = current < 0 ? WR_SVG_LEFT : wr_svg_x(plot->duration_s, (double)i * track->bin_s);
        if (current == mode)
            fprintf(plot->file, "M%.1f %.1fH%.1fv%dH%.1fz", from, top, x, BAND_HEIGHT, from);
        from = x;
        current = here;
    }
    fputs("\"/>\n", plot->file);
}

static void draw_pacer_panel(const struct pacer_plot *plot, const struct wr_track *track, double top)
{
    const struct wr_score *score = &track->score;
    double bottom = top + PANEL_HEAD + PLOT_HEIGHT;
    char text[128];
    snprintf(text, sizeof text, "goodput %.1f %%  ·  rejected %.2f %% (%.0f of %.0f)", 100 * score->goodput,
             100 * score->rejected, score->rejections, score->sent);
    wr_svg_text(plot->file, "name", "start", WR_SVG_LEFT, top + 15, track->pacer->name);
    wr_svg_text(plot->file, "", "end", WR_SVG_LEFT + WR_SVG_PLOT_WIDTH, top + 15, text);
    wr_svg_grid(plot->file, plot->top, bottom, PLOT_HEIGHT);
    draw_curve(plot, track, bottom, "water", offsetof(struct wr_track_bin, ok), true);
    draw_limit(plot, bottom);
    draw_curve(plot, track, bottom, "sent", offsetof(struct wr_track_bin, sent), false);
    draw_curve(plot, track, bottom, "delivered", offsetof(struct wr_track_bin, ok), false);
    draw_rejections(plot, track, bottom);
    for (int mode = 0; mode < track->mode_count; mode++)
        if (reports_mode(track->modes[mode]))
            draw_mode(plot, track, bottom + RUG_HEIGHT, mode);
    wr_svg_times(plot->file, plot->duration_s, bottom + RUG_HEIGHT + BAND_HEIGHT);
}

/* ---- legends ---- */

static void draw_curve_legend(const struct pacer_plot *plot)
{
    static const struct {
        const char *class, *name;
    } lines[] = {
        {"limit", "what the origin allows"}, {"sent", "sent"}, {"delivered", "delivered"}, {"rejected", "rejected"}};
    static const int widths[] = {172, 66, 96, 84};
    double x = WR_SVG_LEFT;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; x += widths[i++]) {
        bool tick = i == sizeof lines / sizeof lines[0] - 1;
        fprintf(plot->file, "<path class=\"%s\" d=\"M%.0f %dh%d%s\"/>\n", lines[i].class, x + (tick ? 9 : 0),
                tick ? 47 : 52, tick ? 0 : 22, tick ? "v10" : "");
        wr_svg_text(plot->file, "", "start", x + (tick ? 16 : 28), 56, lines[i].name);
    }
}

static void draw_mode_legend(const struct pacer_plot *plot, double top)
{
    double x = WR_SVG_LEFT + 96;
    if (plot->mode_count > 0)
        wr_svg_text(plot->file, "", "start", WR_SVG_LEFT, top + 9, "pacer's mode:");
    for (int i = 0; i < plot->mode_count; i++) {
        fprintf(plot->file, "<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"9\" rx=\"2\" fill=\"%s\"/>\n", x, top,
                mode_colour(plot, plot->modes[i]));
        wr_svg_text(plot->file, "", "start", x + 18, top + 9, plot->modes[i]);
        x += 36 + 7 * (double)strlen(plot->modes[i]);
    }
}

void wr_plot_write(FILE *file, const struct wr_scenario *scenario, const struct wr_track *tracks, size_t count)
{
    struct pacer_plot plot = {.file = file, .scenario = scenario, .tracks = tracks, .count = count};
    double height = HEAD_HEIGHT + (double)count * PANEL_HEIGHT + FOOT_HEIGHT;
    char description[256], title[384];
    plot.duration_s = (double)scenario->duration_ns * 1e-9;
    find_limits(&plot);
    find_modes(&plot);
    find_top(&plot);
    wr_scenario_describe(scenario, description, sizeof description);
    snprintf(title, sizeof title, "%s: %s", scenario->name, description);
    wr_svg_begin(file, height, title);
    draw_curve_legend(&plot);
    for (size_t i = 0; i < count; i++)
        draw_pacer_panel(&plot, &tracks[i], HEAD_HEIGHT + (double)i * PANEL_HEIGHT);
    draw_mode_legend(&plot, height - FOOT_HEIGHT);
    fputs("</svg>\n", file);
}
