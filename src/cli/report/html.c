/* SPDX-License-Identifier: MIT */
/* html.c - writes the report of a crawl as an HTML page. */
#include "cli/report/html.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cli/kit/format.h"
#include "cli/report/report_text.h"

#define HOSTS_SHOWN 200
#define COURSES_SHOWN 12

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri "
    "'none'; form-action 'none'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n"
    "<style>\n"
    ":root { --ink: #1f2328; --faint: #57606a; --paper: #ffffff; --line: #d0d7de; --bar: #1f6feb; --bad: #cf222e; }\n"
    "@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --faint: #9198a1; --paper: #0d1117; --line: #30363d;"
    " --bar: #58a6ff; --bad: #ff6a69; } }\n"
    "body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 64rem;"
    " margin: 0 auto; padding: 1rem; }\n"
    "h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }\n"
    ".faint { color: var(--faint); } .bad { color: var(--bad); font-weight: 600; }\n"
    "p, td, th, figcaption { overflow-wrap: anywhere; }\n"
    ".wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; "
    "}\n"
    "caption { text-align: left; color: var(--faint); padding-bottom: .25rem; }\n"
    "th, td { text-align: right; padding: .25rem .5rem; border-bottom: 1px solid var(--line); white-space: nowrap; }\n"
    "th[scope=row], .left { text-align: left; white-space: normal; } th[scope=row] { font-weight: 400;"
    " min-width: 8rem; }\n"
    ".wide th[scope=row] { min-width: 11rem; } .wide td.left { min-width: 19rem; overflow-wrap: normal; }\n"
    ".bars td:last-child { width: 60%; } .bars svg { display: block; width: 100%; height: .75rem; }\n"
    ".totals { max-width: 32rem; }\n"
    ".courses { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 24rem), 1fr)); gap: 1rem 2rem;"
    " align-items: end; }\n"
    "figure { margin: 0; } figure svg { display: block; width: 100%; height: auto; }\n"
    "svg text { font-size: 12px; fill: var(--faint); } rect { fill: var(--bar); } .bad rect { fill: var(--bad); }\n"
    "path { fill: none; } .axis { stroke: var(--line); } .pace { stroke: var(--bar); stroke-width: 2; }\n"
    ".allowed { stroke: var(--faint); stroke-dasharray: 5 4; }\n"
    "</style>\n";

void wr_html_text(FILE *out, const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        unsigned char byte = (unsigned char)*c;
        if (byte == '&' || byte == '<' || byte == '>' || byte == '"' || byte == '\'')
            fprintf(out, "&#%u;", byte);
        else
            fputc(byte < 0x20 || byte == 0x7f ? '?' : byte, out);
    }
}

/* ---- totals ---- */

static void write_row(FILE *out, const char *name, uint64_t count)
{
    fprintf(out, "<tr><th scope=\"row\">%s</th><td>%" PRIu64 "</td></tr>\n", name, count);
}

static void write_html_top(const struct wr_report_data *facts, const char *title, FILE *out)
{
    char passed[32], bytes[32];
    wr_format_duration(facts->elapsed_ns, passed, sizeof passed);
    wr_format_bytes(facts->bytes, bytes, sizeof bytes);
    fputs(head, out);
    fprintf(out, "<title>%s: weir report</title>\n</head>\n<body>\n<main>\n<h1>%s</h1>\n<p>", title, title);
    wr_html_text(out, wr_report_end_words(facts->end));
    fprintf(out, " after %s: <b>%" PRIu64 "</b> page%s, %.1f/s, %s", passed, facts->pages,
            wr_plural_ending(facts->pages),
            facts->elapsed_ns > 0 ? (double)facts->pages * 1e9 / (double)facts->elapsed_ns : 0, bytes);
    if (facts->queued > 0)
        fprintf(out, "; %" PRIu64 " still queued", facts->queued);
    fputs("</p>\n", out);
    if (facts->ended_at[0] != '\0') {
        fputs("<p class=\"faint\">ended ", out);
        wr_html_text(out, facts->ended_at);
        fputs("</p>\n", out);
    }
    if (facts->too_soon > 0)
        fprintf(out,
                "<p class=\"bad\">%" PRIu64 " requests were sent sooner than the interval of their host allows.</p>\n",
                facts->too_soon);
}

static void write_sentence(FILE *out, const char *before, const char *text, const char *between, const char *more)
{
    if (text[0] == '\0')
        return;
    fprintf(out, "<p>%s", before);
    wr_html_text(out, text);
    fputs(between, out);
    wr_html_text(out, more);
    fputs("</p>\n", out);
}

static void write_html_totals(const struct wr_report_data *facts, FILE *out)
{
    write_sentence(out, "Why: ", facts->why, "", "");
    write_sentence(out, facts->failed > 1 ? "Failed, for example: " : "Failed: ", facts->failed_url, ": ",
                   facts->failed_why);
    fputs("<h2>Totals</h2>\n<table class=\"totals\">\n<caption>This run</caption>\n<tbody>\n", out);
    write_row(out, "pages fetched", facts->fetched);
    if (facts->unchanged > 0)
        write_row(out, "unchanged pages", facts->unchanged);
    write_row(out, "pages that failed", facts->failed);
    write_row(out, "denied by robots.txt", facts->denied);
    write_row(out, "redirects", facts->redirects);
    if (facts->blocked_hosts > 0) {
        write_row(out, "pages blocked by firewalls", facts->blocked);
        write_row(out, "hosts with a blocking firewall", facts->blocked_hosts);
    }
    write_row(out, "requests", facts->requests);
    write_row(out, "requests for robots.txt", facts->robots);
    write_row(out, "answered 429, 403 or 503", facts->rejected);
    write_row(out, "retries", facts->retries);
    if (facts->beyond > 0)
        write_row(out, "links skipped by --max-pages or --host-pages", facts->beyond);
    if (facts->deeper > 0)
        write_row(out, "links skipped by --depth", facts->deeper);
    if (facts->unread > 0)
        write_row(out, "sitemaps skipped, nested too deep or too many per host", facts->unread);
    fputs("</tbody>\n</table>\n", out);
}

/* ---- bars ---- */

static void begin_bars(FILE *out, const char *title, const char *caption, const char *name, const char *count)
{
    fprintf(out,
            "<h2>%s</h2>\n<table class=\"bars\">\n<caption>%s</caption>\n<thead><tr><th scope=\"col\" class=\"left\">%s"
            "</th><th scope=\"col\">%s</th><td></td></tr></thead>\n<tbody>\n",
            title, caption, name, count);
}

static void write_bar(FILE *out, const char *name, const char *figure, double share, bool is_bad)
{
    fprintf(out,
            "<tr><th scope=\"row\">%s</th><td>%s</td><td%s><svg viewBox=\"0 0 100 1\" preserveAspectRatio=\"none\" "
            "aria-hidden=\"true\"><rect width=\"%.2f\" height=\"1\"/></svg></td></tr>\n",
            name, figure, is_bad ? " class=\"bad\"" : "", 100 * share);
}

static void write_html_statuses(const struct wr_report_data *facts, FILE *out)
{
    uint64_t most = 0;
    for (size_t i = 0; i < facts->status_count; i++)
        most = facts->statuses[i].count > most ? facts->statuses[i].count : most;
    if (most == 0)
        return;
    begin_bars(out, "Statuses", "Responses by status, including robots.txt and retries", "status", "answers");
    for (size_t i = 0; i < facts->status_count; i++) {
        const struct wr_report_data_status *status = &facts->statuses[i];
        char name[32] = "no answer", count[32];
        if (status->status > 0)
            (void)snprintf(name, sizeof name, "%d", status->status);
        (void)snprintf(count, sizeof count, "%" PRIu64, status->count);
        write_bar(out, name, count, (double)status->count / (double)most, status->status == 0 || status->status >= 400);
    }
    fputs("</tbody>\n</table>\n", out);
}

static void write_html_waits(const struct wr_report_data *facts, FILE *out)
{
    int64_t most = 0;
    for (size_t i = 1; i <= WEIR_REASON_QUEUE; i++)
        most = facts->waited_ns[i] > most ? facts->waited_ns[i] : most;
    if (most == 0)
        return;
    begin_bars(out, "Waiting", "Total wait of all pages, by reason", "reason", "time");
    for (size_t i = 1; i <= WEIR_REASON_QUEUE; i++) {
        char figure[32];
        if (facts->waited_ns[i] <= 0)
            continue;
        wr_format_duration(facts->waited_ns[i], figure, sizeof figure);
        write_bar(out, weir_reason_name((weir_reason)i), figure, (double)facts->waited_ns[i] / (double)most, false);
    }
    fputs("</tbody>\n</table>\n", out);
}

/* ---- hosts ---- */

static void write_rate_charts(const struct wr_report_data *facts, FILE *out)
{
    size_t shown = facts->host_count < COURSES_SHOWN ? facts->host_count : COURSES_SHOWN;
    fputs("<h2>Pace over time</h2>\n<p class=\"faint\">Requests per second of the hosts with the most requests. "
          "Dashed: the "
          "allowed pace, as known at the end.</p>\n<div class=\"courses\">\n",
          out);
    for (size_t i = 0; i < shown; i++)
        wr_html_rate_chart(facts, &facts->hosts[i], out);
    fputs("</div>\n", out);
}

static void write_html_host(const struct wr_report_data_host *host, FILE *out)
{
    char reached[32], allowed[32], closest[32] = "-", waits[128];
    wr_format_rate(host->reached, reached, sizeof reached);
    wr_format_rate(host->allowed, allowed, sizeof allowed);
    if (host->closest_ns > 0)
        wr_format_duration(host->closest_ns, closest, sizeof closest);
    wr_report_waits(host->waited_ns, waits, sizeof waits);
    fputs("<tr><th scope=\"row\">", out);
    wr_html_text(out, host->name);
    fprintf(out,
            "</th><td>%" PRIu64 "</td><td>%" PRIu64 "</td><td>%" PRIu64 "</td><td>%" PRIu64
            "</td><td>%s</td><td>%s</td><td>%s</td><td class=\"left\">%s</td></tr>\n",
            host->requests, host->ok, host->rejected, host->failed, reached, allowed, closest, waits);
}

static void write_html_hosts(const struct wr_report_data *facts, FILE *out)
{
    static const char *const columns[] = {"requests", "ok", "rejected", "failed", "reached", "allowed", "closest"};
    size_t shown = facts->host_count < HOSTS_SHOWN ? facts->host_count : HOSTS_SHOWN;
    uint64_t more = facts->host_count - shown + facts->hosts_left_out;
    fputs("<h2>Hosts</h2>\n<div class=\"wide\" role=\"region\" aria-label=\"Hosts\" tabindex=\"0\">\n<table>\n"
          "<caption>Hosts with the most requests</caption>\n<thead><tr><th scope=\"col\" class=\"left\">host</th>",
          out);
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        fprintf(out, "<th scope=\"col\">%s</th>", columns[i]);
    fputs("<th scope=\"col\" class=\"left\">waited for</th></tr></thead>\n<tbody>\n", out);
    for (size_t i = 0; i < shown; i++)
        write_html_host(&facts->hosts[i], out);
    fputs("</tbody>\n</table>\n</div>\n", out);
    if (more > 0)
        fprintf(out, "<p>… and %" PRIu64 " host%s more</p>\n", more, wr_plural_ending(more));
}

bool wr_report_html(const struct wr_report_data *facts, const char *title, FILE *out)
{
    errno = 0;
    write_html_top(facts, title, out);
    write_html_totals(facts, out);
    write_html_statuses(facts, out);
    write_html_waits(facts, out);
    if (facts->host_count > 0) {
        write_rate_charts(facts, out);
        write_html_hosts(facts, out);
    }
    fputs("</main>\n</body>\n</html>\n", out);
    return fflush(out) == 0 && !ferror(out);
}
