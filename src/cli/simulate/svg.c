/* SPDX-License-Identifier: MIT */
/* svg.c - draws the common parts of all plots: light and dark style, texts and axes. */
#include "cli/simulate/svg.h"

#include <math.h>

static const char style[] =
    "<style>\n"
    "text { font-family: system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif; font-size: 12px;"
    " fill: #57606a; }\n"
    ".title { font-size: 17px; font-weight: 600; fill: #1f2328; }\n"
    ".name { font-size: 13px; font-weight: 600; fill: #1f2328; }\n"
    ".paper { fill: #ffffff; }\n"
    ".grid { stroke: #e7e9ec; stroke-width: 1; }\n"
    ".axis { stroke: #afb8c1; stroke-width: 1; }\n"
    ".limit { fill: none; stroke: #57606a; stroke-width: 1.4; stroke-dasharray: 5 3; }\n"
    ".water { fill: #1f6feb; fill-opacity: 0.10; }\n"
    ".sent { fill: none; stroke: #e08e0b; stroke-width: 1.2; stroke-linejoin: round; }\n"
    ".delivered { fill: none; stroke: #1f6feb; stroke-width: 1.8; stroke-linejoin: round; }\n"
    ".rejected { stroke: #cf222e; stroke-width: 1.5; }\n"
    "@media (prefers-color-scheme: dark) {\n"
    "text { fill: #9198a1; } .title, .name { fill: #e6edf3; } .paper { fill: #0d1117; }\n"
    ".grid { stroke: #21262d; } .axis { stroke: #484f58; } .limit { stroke: #9198a1; } .water { fill: #58a6ff; }\n"
    ".sent { stroke: #f0b23e; } .delivered { stroke: #58a6ff; } .rejected { stroke: #ff6a69; }\n"
    "}\n"
    "</style>\n";

static void write_escaped(FILE *file, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '&':
            fputs("&amp;", file);
            break;
        case '<':
            fputs("&lt;", file);
            break;
        case '>':
            fputs("&gt;", file);
            break;
        case '"':
            fputs("&quot;", file);
            break;
        default:
            fputc((unsigned char)*text < 0x20 ? '?' : *text, file);
        }
    }
}

void wr_svg_text(FILE *file, const char *class, const char *anchor, double x, double y, const char *text)
{
    fprintf(file, "<text class=\"%s\" text-anchor=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, anchor, x, y);
    write_escaped(file, text);
    fputs("</text>\n", file);
}

double wr_svg_x(double duration_s, double at_s)
{
    return WR_SVG_LEFT + WR_SVG_PLOT_WIDTH * at_s / duration_s;
}

/* Returns 1, 2 or 5 times a power of ten, so that about `count` steps reach `end`. */
static double round_step(double end, double count)
{
    double raw = end / count, power = pow(10, floor(log10(raw))), digit = raw / power;
    return power * (digit > 5 ? 10 : digit > 2 ? 5 : digit > 1 ? 2 : 1);
}

void wr_svg_grid(FILE *file, double top, double bottom, double height)
{
    double step = round_step(top, 5);
    char text[32];
    for (int i = 0; i * step <= top; i++) {
        double y = bottom - height * i * step / top;
        fprintf(file, "<line class=\"%s\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n", i == 0 ? "axis" : "grid",
                WR_SVG_LEFT, WR_SVG_LEFT + WR_SVG_PLOT_WIDTH, y, y);
        snprintf(text, sizeof text, "%g", i * step);
        wr_svg_text(file, "", "end", WR_SVG_LEFT - 8, y + 4, text);
    }
    fprintf(file, "<text text-anchor=\"middle\" transform=\"translate(14 %.1f) rotate(-90)\">requests/s</text>\n",
            bottom - height / 2);
}

void wr_svg_times(FILE *file, double duration_s, double y)
{
    static const struct {
        double s;
        const char *name;
    } units[] = {{3600, "h"}, {60, "min"}, {1, "s"}};
    static const double steps[] = {1,   2,   5,   10,   15,   20,   30,    60,    120,
                                   300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400};
    size_t unit = 0, step = 0;
    char text[32];
    while (step + 1 < sizeof steps / sizeof steps[0] && duration_s / steps[step] > 10)
        step++;
    while (steps[step] < units[unit].s)
        unit++;
    for (double at_s = 0; at_s <= duration_s * 1.0001; at_s += steps[step]) {
        double x = wr_svg_x(duration_s, at_s);
        fprintf(file, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", x, x, y, y + 4);
        snprintf(text, sizeof text, at_s > 0 ? "%g %s" : "%g", at_s / units[unit].s, units[unit].name);
        wr_svg_text(file, "", at_s + steps[step] / 3 > duration_s ? "end" : "middle", x, y + 17, text);
    }
}

void wr_svg_tick(FILE *file, double x, double y, double height, double count)
{
    fprintf(file, "M%.1f %.1fv%.1f", x, y, fmin(height, 5 * (1 + log10(count) / 2)));
}

void wr_svg_begin(FILE *file, double height, const char *title)
{
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" width=\"%d\" height=\"%.0f\" "
            "role=\"img\">\n",
            WR_SVG_WIDTH, height, WR_SVG_WIDTH, height);
    fputs("<title>", file);
    write_escaped(file, title);
    fprintf(file, "</title>\n%s<rect class=\"paper\" width=\"%d\" height=\"%.0f\" rx=\"6\"/>\n", style, WR_SVG_WIDTH,
            height);
    wr_svg_text(file, "title", "start", WR_SVG_LEFT, 30, title);
}
