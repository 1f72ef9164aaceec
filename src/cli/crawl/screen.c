/* SPDX-License-Identifier: MIT */
/* screen.c - shows progress and messages on standard error while a crawl runs. */
#include "cli/crawl/screen.h"

#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/kit/console.h"
#include "cli/kit/format.h"

#define REDRAW_NS (200 * WEIR_MILLISECOND)
#define LINE_NS (5 * WEIR_SECOND)
#define SAMPLE_NS WEIR_SECOND
#define SETTLED_NS (3 * WEIR_SECOND) /* before this the remaining time cannot be estimated */
#define LINES_MAX 3
/* Maximum wait for a slow reader of standard error; then the line is dropped. */
#define READER_MS 200
#define LINE_ROOM 256

/* ---- rate and remaining time ---- */

static void take_progress_sample(struct wr_screen *screen, const struct wr_engine_stats *stats)
{
    const struct wr_screen_sample *last = &screen->samples[(screen->count + WR_SCREEN_SAMPLES - 1) % WR_SCREEN_SAMPLES];
    if (screen->count > 0 && stats->elapsed_ns - last->at < SAMPLE_NS)
        return;
    screen->samples[screen->count++ % WR_SCREEN_SAMPLES] = (struct wr_screen_sample){stats->elapsed_ns, stats->pages};
}

/* Returns the pages per second over the last 15 seconds. */
static double recent_rate(const struct wr_screen *screen, const struct wr_engine_stats *stats)
{
    size_t oldest = screen->count > WR_SCREEN_SAMPLES ? screen->count % WR_SCREEN_SAMPLES : 0;
    const struct wr_screen_sample *from = &screen->samples[oldest];
    int64_t passed_ns = stats->elapsed_ns - from->at;
    if (screen->count == 0 || passed_ns <= 0)
        return 0;
    return (double)(stats->pages - from->pages) * 1e9 / (double)passed_ns;
}

/* Formats the remaining time: that of the queue at the recent rate, or that of the slowest host if
 * it is longer. "?" if it is not known. */
static void format_left(const struct wr_screen *screen, double rate, const struct wr_engine_stats *stats,
                        char *ret_text, size_t room)
{
    char figure[32];
    double left_s = rate > 0 ? (double)stats->queued / rate : 0;
    double host_s = (double)(screen->last_at - stats->elapsed_ns) / 1e9;
    left_s = stats->queued > 0 && host_s > left_s ? host_s : left_s;
    if ((rate <= 0 && left_s <= 0) || stats->is_seeding || stats->elapsed_ns < SETTLED_NS || left_s > 1e8)
        figure[0] = '?', figure[1] = '\0';
    else
        wr_format_duration((int64_t)(left_s * 1e9), figure, sizeof figure);
    (void)snprintf(ret_text, room, "%s", figure);
}

/* ---- lines ---- */

static void format_totals(const struct wr_screen *screen, const struct wr_engine_stats *stats, char *ret_line)
{
    char left[32], bytes[32];
    double rate = recent_rate(screen, stats);
    format_left(screen, rate, stats, left, sizeof left);
    wr_format_bytes(stats->bytes, bytes, sizeof bytes);
    (void)snprintf(ret_line, LINE_ROOM,
                   "%" PRIu64 " page%s, %.1f/s, ETA %s, %" PRIu64 " in flight, %" PRIu64 " queued, %" PRIu64
                   " failed, %" PRIu64 " rejected, %s",
                   stats->pages, wr_plural_ending(stats->pages), rate, left, stats->in_flight, stats->queued,
                   stats->failed, stats->rejected, bytes);
}

static void format_hosts(const struct wr_engine_stats *stats, char *ret_line)
{
    char passed[32], blocked[48] = "";
    wr_format_duration(stats->elapsed_ns, passed, sizeof passed);
    if (stats->blocked_hosts > 0)
        (void)snprintf(blocked, sizeof blocked, ", %" PRIu64 " of them blocked", stats->blocked_hosts);
    (void)snprintf(ret_line, LINE_ROOM,
                   "%s, %" PRIu64 " host%s%s, %" PRIu64 " connection%s, %" PRIu64 " denied by robots.txt, %" PRIu64
                   " retries%s",
                   passed, stats->hosts, wr_plural_ending(stats->hosts), blocked, stats->connections,
                   wr_plural_ending(stats->connections), stats->denied, stats->retries,
                   stats->is_seeding ? ", reading seeds" : "");
}

/* Formats the progress and returns the number of lines. */
static size_t format_lines(const struct wr_screen *screen, const struct wr_engine_stats *stats,
                           char ret_lines[LINES_MAX][LINE_ROOM])
{
    format_totals(screen, stats, ret_lines[0]);
    format_hosts(stats, ret_lines[1]);
    if (stats->is_paused)
        (void)snprintf(ret_lines[2], LINE_ROOM, "PAUSED: %s", stats->pause_why);
    else if (stats->is_draining)
        (void)snprintf(ret_lines[2], LINE_ROOM, "stopping: finishing requests in flight; Ctrl-C stops at once");
    else if (stats->has_no_hosts)
        (void)snprintf(ret_lines[2], LINE_ROOM, WR_VIEW_NO_HOSTS_LEFT);
    else
        return 2;
    return 3;
}

/* ---- writing ---- */

/* Returns true if standard error takes output within `patience_ms`. A crawl must not block on a
 * terminal or pipe that is not read. */
static bool stderr_is_writable(int patience_ms)
{
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&ready, 1, patience_ms) != 0;
}

/* Erases the lines drawn last. The lock is held. */
static void erase_lines(struct wr_screen *screen)
{
    for (; screen->drawn > 0; screen->drawn--)
        fputs("\033[A\r\033[K", stderr); /* cursor up one line, clear the line */
}

static int terminal_columns(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1 : 79;
}

static void redraw_lines(struct wr_screen *screen, const struct wr_engine_stats *stats)
{
    char lines[LINES_MAX][LINE_ROOM];
    size_t count = format_lines(screen, stats, lines);
    int columns = terminal_columns(); /* cut here: a line that wraps would be two lines to erase */
    (void)pthread_mutex_lock(&screen->lock);
    erase_lines(screen);
    for (; screen->drawn < count; screen->drawn++)
        fprintf(stderr, "%.*s\n", columns, lines[screen->drawn]);
    (void)fflush(stderr);
    (void)pthread_mutex_unlock(&screen->lock);
}

static void append_progress_line(struct wr_screen *screen, const struct wr_engine_stats *stats)
{
    char lines[LINES_MAX][LINE_ROOM];
    size_t count = format_lines(screen, stats, lines);
    (void)pthread_mutex_lock(&screen->lock);
    fprintf(stderr, "%s; %s%s%s\n", lines[0], lines[1], count > 2 ? "; " : "", count > 2 ? lines[2] : "");
    (void)pthread_mutex_unlock(&screen->lock);
}

static void update_full_view(struct wr_screen *screen, const struct wr_engine_stats *stats)
{
    char left[32];
    struct wr_view_totals totals = {.stats = stats, .rate = recent_rate(screen, stats), .left = left};
    format_left(screen, totals.rate, stats, left, sizeof left);
    wr_view_update(screen->view, &totals);
}

void wr_screen_show(struct wr_screen *screen, const struct wr_engine_stats *stats, int64_t last_at)
{
    int64_t every_ns = screen->kind == WR_SCREEN_LINES ? LINE_NS : REDRAW_NS;
    if (screen->kind == WR_SCREEN_NONE)
        return;
    take_progress_sample(screen, stats);
    screen->last_at = last_at;
    if (screen->kind == WR_SCREEN_VIEW) {
        update_full_view(screen, stats);
        return;
    }
    if (stats->elapsed_ns - screen->shown_at < every_ns || !stderr_is_writable(0))
        return;
    screen->shown_at = stats->elapsed_ns;
    if (screen->kind == WR_SCREEN_LINES)
        append_progress_line(screen, stats);
    else
        redraw_lines(screen, stats);
}

void wr_screen_say(struct wr_screen *screen, const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    (void)pthread_mutex_lock(&screen->lock);
    if (screen->view != NULL) {
        wr_view_say(screen->view, line);
    } else if (stderr_is_writable(READER_MS)) {
        erase_lines(screen);
        wr_complain("%s", line);
    }
    (void)pthread_mutex_unlock(&screen->lock);
}

void wr_screen_clear(struct wr_screen *screen)
{
    (void)pthread_mutex_lock(&screen->lock);
    erase_lines(screen);
    wr_view_close(screen->view);
    screen->view = NULL;
    (void)fflush(stderr);
    (void)pthread_mutex_unlock(&screen->lock);
}

unsigned wr_screen_quit_count(const struct wr_screen *screen)
{
    return screen->view == NULL ? 0 : wr_view_quit_count(screen->view);
}

/* ---- start and end ---- */

/* Returns true if standard error is a terminal that can move the cursor up. */
static bool can_redraw(void)
{
    const char *terminal = getenv("TERM");
    return isatty(STDERR_FILENO) && terminal != NULL && strcmp(terminal, "dumb") != 0;
}

enum view_choice {
    VIEW_AUTO,
    VIEW_FULL,
    VIEW_SHORT,
    VIEW_LINES
};
const char *const wr_screen_views[] = {"auto", "full", "short", "lines", NULL};

void wr_screen_init(struct wr_screen *ret_screen, int view, bool is_quiet, bool shares_output)
{
    bool is_ours = can_redraw() && !(shares_output && isatty(STDOUT_FILENO));
    *ret_screen = (struct wr_screen){.kind = WR_SCREEN_LINES};
    (void)pthread_mutex_init(&ret_screen->lock, NULL);
    if (is_quiet)
        ret_screen->kind = WR_SCREEN_NONE;
    else if (is_ours && view != VIEW_LINES)
        ret_screen->kind = view == VIEW_FULL ? WR_SCREEN_VIEW : WR_SCREEN_REDRAWN;
}

/* Opens the full-screen view; falls back to a few lines if that fails. */
void wr_screen_begin(struct wr_screen *screen, struct wr_engine *engine)
{
    if (screen->kind != WR_SCREEN_VIEW)
        return;
    struct wr_view *view = wr_view_open(engine);
    (void)pthread_mutex_lock(&screen->lock);
    screen->view = view;
    (void)pthread_mutex_unlock(&screen->lock);
    if (view == NULL)
        screen->kind = WR_SCREEN_REDRAWN;
}

void wr_screen_release(struct wr_screen *screen)
{
    (void)pthread_mutex_destroy(&screen->lock);
}
