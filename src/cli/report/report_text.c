/* SPDX-License-Identifier: MIT */
/* report_text.c - prints the report of a crawl as text. */
#include "cli/report/report_text.h"

#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/kit/format.h"

#define HOSTS_SHOWN 20
#define REASONS_SHOWN 3
#define NAME_COLUMNS 32
#define NAME_COLUMNS_MIN 16
/* Minimum width of the last column: room for one reason. */
#define WAITS_COLUMNS_MIN 24
#define WAITED_NS_MIN (10 * WEIR_MILLISECOND) /* minimum wait to mention, ns */

/* ---- totals ---- */

const char *wr_report_end_words(const char *end)
{
    static const char *const words[][2] = {{"budget", "stopped at its limit of time or bytes"},
                                           {"broken", "interrupted by an error"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(words[i][0], end) == 0)
            return words[i][1];
    return end;
}

static void print_end(const struct wr_report_data *facts, FILE *out)
{
    char passed[32], bytes[32];
    wr_format_duration(facts->elapsed_ns, passed, sizeof passed);
    wr_format_bytes(facts->bytes, bytes, sizeof bytes);
    fprintf(out, "%s after %s: %" PRIu64 " page%s, %.1f/s, %s", wr_report_end_words(facts->end), passed, facts->pages,
            wr_plural_ending(facts->pages),
            facts->elapsed_ns > 0 ? (double)facts->pages * 1e9 / (double)facts->elapsed_ns : 0, bytes);
    if (facts->queued > 0)
        fprintf(out, "; %" PRIu64 " still queued", facts->queued);
    fputc('\n', out);
    if (strcmp(facts->end, "stopped") != 0 && facts->why[0] != '\0')
        fprintf(out, "why: %s\n", facts->why);
}

static void print_failure(const struct wr_report_data *facts, FILE *out)
{
    if (facts->failed_url[0] != '\0')
        fprintf(out, "failed: %s%s: %s\n", facts->failed > 1 ? "for example " : "", facts->failed_url,
                facts->failed_why);
}

/* Prints how much was skipped, and by which option. */
static void print_skipped_links(const struct wr_report_data *facts, FILE *out)
{
    const char *by = facts->host_pages == 0  ? "--max-pages"
                     : facts->max_pages == 0 ? "--host-pages"
                                             : "--max-pages or --host-pages";
    if (facts->beyond > 0)
        fprintf(out, "skipped: %" PRIu64 " link%s beyond %s\n", facts->beyond, wr_plural_ending(facts->beyond), by);
    if (facts->deeper > 0)
        fprintf(out, "skipped: %" PRIu64 " link%s deeper than --depth %" PRIu64 "\n", facts->deeper,
                wr_plural_ending(facts->deeper), facts->depth);
    if (facts->unread > 0)
        fprintf(out, "skipped: %" PRIu64 " sitemap%s, nested too deep or too many per host\n", facts->unread,
                wr_plural_ending(facts->unread));
}

static void print_report_totals(const struct wr_report_data *facts, FILE *out)
{
    fprintf(out,
            "pages: %" PRIu64 " fetched, %" PRIu64 " failed, %" PRIu64 " denied by robots.txt, %" PRIu64
            " redirect%s\n",
            facts->fetched, facts->failed, facts->denied, facts->redirects, wr_plural_ending(facts->redirects));
    if (facts->unchanged > 0)
        fprintf(out, "unchanged: %" PRIu64 " of the fetched pages\n", facts->unchanged);
    print_failure(facts, out);
    print_skipped_links(facts, out);
    if (facts->blocked_hosts > 0)
        fprintf(out, "blocked: %" PRIu64 " of these pages, by firewalls of %" PRIu64 " host%s\n", facts->blocked,
                facts->blocked_hosts, wr_plural_ending(facts->blocked_hosts));
    fprintf(out,
            "requests: %" PRIu64 ", %" PRIu64 " of these for robots.txt; %" PRIu64 " answered 429, 403 or 503, %" PRIu64
            " retries\n",
            facts->requests, facts->robots, facts->rejected, facts->retries);
    if (facts->seeds_refused > 0)
        fprintf(out, "seeds: %" PRIu64 " skipped lines that are not URLs\n", facts->seeds_refused);
    if (strcmp(facts->out, "-") != 0 && facts->out[0] != '\0')
        fprintf(out, "lines: %s\n", facts->out);
}

/* ---- hosts ---- */

/* Formats as many reasons as fit, the longest wait first. */
void wr_report_waits(const int64_t waited_ns[WEIR_REASON_QUEUE + 1], char *ret_text, size_t room)
{
    bool is_told[WEIR_REASON_QUEUE + 1] = {false};
    size_t used = 0;
    (void)snprintf(ret_text, room, "-");
    for (int n = 0; n < REASONS_SHOWN; n++) {
        char figure[32], text[96];
        size_t most = 0;
        for (size_t i = 1; i <= WEIR_REASON_QUEUE; i++)
            if (!is_told[i] && (most == 0 || waited_ns[i] > waited_ns[most]))
                most = i;
        if (most == 0 || waited_ns[most] < WAITED_NS_MIN)
            return;
        is_told[most] = true;
        wr_format_duration(waited_ns[most], figure, sizeof figure);
        (void)snprintf(text, sizeof text, "%s%s %s", n > 0 ? ", " : "", weir_reason_name((weir_reason)most), figure);
        if (n > 0 && used + strlen(text) >= room)
            return;
        (void)snprintf(ret_text + used, room - used, "%s", text);
        used += strlen(ret_text + used);
    }
}

enum {
    REQUESTS,
    OK,
    REJECTED,
    FAILED,
    REACHED,
    ALLOWED,
    CLOSEST,
    COLUMNS
};

static const struct report_column {
    const char *head;
    int width;
} columns[COLUMNS] = {
    [REQUESTS] = {"requests", 8}, [OK] = {"ok", 8},           [REJECTED] = {"rejected", 8}, [FAILED] = {"failed", 6},
    [REACHED] = {"reached", 8},   [ALLOWED] = {"allowed", 8}, [CLOSEST] = {"closest", 8},
};

struct report_layout {
    bool is_hidden[COLUMNS];
    int name, waits; /* widths of the first and the last column */
};

/* Hides columns in the order of `which` until the line fits into `room`. Returns the width of the
 * line. */
static int hide_columns(struct report_layout *layout, const int *which, size_t count, int room)
{
    int taken = layout->name + 2 + WAITS_COLUMNS_MIN;
    for (int i = 0; i < COLUMNS; i++)
        taken += layout->is_hidden[i] ? 0 : 1 + columns[i].width;
    for (size_t i = 0; i < count && taken > room; i++) {
        layout->is_hidden[which[i]] = true;
        taken -= 1 + columns[which[i]].width;
    }
    return taken;
}

/* Fits the lines to the width of a terminal; 0 means a file or a program, without a limit. */
static void fit_columns(int room, struct report_layout *ret_layout)
{
    static const int first[] = {OK, CLOSEST, ALLOWED}, then[] = {REACHED, FAILED, REJECTED, REQUESTS};
    *ret_layout = (struct report_layout){.name = NAME_COLUMNS, .waits = INT16_MAX};
    if (room == 0)
        return;
    int beyond = hide_columns(ret_layout, first, 3, room) - room;
    if (beyond > 0)
        ret_layout->name = NAME_COLUMNS - beyond > NAME_COLUMNS_MIN ? NAME_COLUMNS - beyond : NAME_COLUMNS_MIN;
    ret_layout->waits = room - hide_columns(ret_layout, then, 4, room) + WAITS_COLUMNS_MIN;
    if (ret_layout->waits < 1)
        ret_layout->waits = 1;
}

static int output_columns(FILE *out)
{
    struct winsize size;
    return isatty(fileno(out)) && ioctl(fileno(out), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static void print_row(const struct report_layout *layout, const char *name, char cells[COLUMNS][32], const char *waits,
                      FILE *out)
{
    size_t bytes = strlen(name);
    if (bytes > (size_t)layout->name)
        fprintf(out, "%.*s...", layout->name - 3, name);
    else
        fprintf(out, "%-*s", layout->name, name);
    for (int i = 0; i < COLUMNS; i++)
        if (!layout->is_hidden[i])
            fprintf(out, " %*s", columns[i].width, cells[i]);
    fprintf(out, "  %.*s\n", layout->waits, waits);
}

static void print_heads(const struct report_layout *layout, FILE *out)
{
    char cells[COLUMNS][32];
    for (int i = 0; i < COLUMNS; i++)
        (void)snprintf(cells[i], sizeof cells[i], "%s", columns[i].head);
    fputc('\n', out);
    print_row(layout, "host", cells, "waited for", out);
}

static void print_host(const struct report_layout *layout, const struct wr_report_data_host *host, FILE *out)
{
    char cells[COLUMNS][32], waits[128];
    const uint64_t counts[] = {
        [REQUESTS] = host->requests, [OK] = host->ok, [REJECTED] = host->rejected, [FAILED] = host->failed};
    for (int i = REQUESTS; i <= FAILED; i++)
        (void)snprintf(cells[i], sizeof cells[i], "%" PRIu64, counts[i]);
    wr_format_rate(host->reached, cells[REACHED], sizeof cells[REACHED]);
    wr_format_rate(host->allowed, cells[ALLOWED], sizeof cells[ALLOWED]);
    (void)snprintf(cells[CLOSEST], sizeof cells[CLOSEST], "-");
    if (host->closest_ns > 0)
        wr_format_duration(host->closest_ns, cells[CLOSEST], sizeof cells[CLOSEST]);
    size_t room = (size_t)layout->waits + 1;
    wr_report_waits(host->waited_ns, waits, room < sizeof waits ? room : sizeof waits);
    print_row(layout, host->name, cells, waits, out);
}

void wr_report_text(const struct wr_report_data *facts, const char *where, FILE *out)
{
    size_t shown = facts->host_count < HOSTS_SHOWN ? facts->host_count : HOSTS_SHOWN;
    uint64_t more = facts->host_count - shown + facts->hosts_left_out;
    struct report_layout layout;
    fit_columns(output_columns(out), &layout);
    print_end(facts, out);
    print_report_totals(facts, out);
    if (shown > 0)
        print_heads(&layout, out);
    for (size_t i = 0; i < shown; i++)
        print_host(&layout, &facts->hosts[i], out);
    if (more > 0)
        fprintf(out, "… and %" PRIu64 " host%s more%s%s%s\n", more, wr_plural_ending(more), where != NULL ? ": " : "",
                where != NULL ? where : "", where != NULL ? " has them all" : "");
    if (facts->too_soon > 0)
        fprintf(out,
                "WARNING: %" PRIu64
                " requests were sent sooner than the interval of their host allows; please report this\n",
                facts->too_soon);
}
