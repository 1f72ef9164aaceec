/* SPDX-License-Identifier: MIT */
/* warm_run.c - starts the requests of weir warm and handles their responses.
 *
 * The sitemaps of a site are read one after the other, while pages that are already known are
 * fetched. Pages start only when WR_WARM_BATCH are known, or all. Only a few pages per site are
 * requested at a time: later requests queue behind them, and a probe that is a minute late is
 * useless.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cli/kit/console.h"
#include "cli/kit/signals.h"
#include "cli/warm/warm_state.h"
#include "http/client/client_extras.h"

#define LOOK_EVERY_NS (100 * WEIR_MILLISECOND)
#define LINE_EVERY_NS (10 * WEIR_SECOND) /* interval of progress lines without a terminal */

static int64_t warm_now(void)
{
    return weir_clock_now(weir_clock_monotonic());
}

/* ---- responses, on the client's thread ---- */

static char *copy_or_null(const char *text)
{
    /* NULL without memory; the report then lacks the text. */
    return text[0] != '\0' ? strdup(text) : NULL;
}

static struct wr_warm_response warm_response_of(const weir_response *response)
{
    struct wr_warm_response answer = {.latency_ns = response->latency_ns};
    struct wr_cache cache = {0};
    struct wr_span name, value;
    answer.is_sound = response->failure == WEIR_FAILURE_NONE && response->status < 400;
    for (size_t cursor = 0; wr_response_next_field(response, &cursor, &name, &value);)
        wr_cache_field(&cache, name, value);
    answer.cache = wr_cache_result(&cache);
    return answer;
}

static void end_warm_page(struct wr_warm *warm, struct wr_warm_page *page)
{
    page->course.step = WR_WARM_DONE;
    page->has_ended = true;
    warm->finished++;
    warm->hits += page->course.is_sound && wr_cache_is_hit(page->course.after);
    warm->broken += wr_warm_is_broken(page);
    wr_warm_queue_put(&warm->ended, page);
}

static void note_first_response(struct wr_warm_page *page, const weir_response *response)
{
    page->status = response->status;
    page->failure = response->failure;
    page->bytes = response->body_bytes;
    page->hops = response->hops;
    page->detail = copy_or_null(response->detail);
    if (strcmp(response->url, page->url) != 0)
        page->final_url = copy_or_null(response->url);
}

/* Handles the response to one step of a page. A cancelled request has no response, but earlier
 * responses remain valid. */
static void take_page_step(struct wr_warm *warm, struct wr_warm_page *page, const weir_response *response)
{
    bool is_first = page->course.step == WR_WARM_GET;
    bool is_cancelled = response->failure == WEIR_FAILURE_CANCELLED;
    page->requests += response->attempts + response->hops;
    if (is_cancelled && is_first)
        return;
    if (is_first)
        note_first_response(page, response);
    struct wr_warm_response answer = warm_response_of(response);
    enum wr_warm_step step = is_cancelled ? WR_WARM_DONE : wr_warm_next_step(&page->course, &answer);
    int64_t due_at = warm_now() + wr_warm_jitter(wr_rng_next(&warm->rng));
    if (step == WR_WARM_FINAL_GET)
        wr_warm_queue_put(&warm->again, page);
    else if (step == WR_WARM_DONE || wr_heap_push(&warm->probes, due_at, &page->item) != 0)
        end_warm_page(warm, page);
}

static void on_page_response(void *context, weir_response *response)
{
    struct wr_warm_page *page = context;
    struct wr_warm *warm = page->site->warm;
    (void)pthread_mutex_lock(&warm->lock);
    page->site->asked--;
    warm->under_way--;
    take_page_step(warm, page, response);
    (void)pthread_cond_signal(&warm->changed);
    (void)pthread_mutex_unlock(&warm->lock);
    weir_response_free(response);
}

static bool ignore_page_body(void *context, const char *bytes, size_t count)
{
    (void)context, (void)bytes, (void)count;
    return true;
}

/* ---- requests; the lock is held ---- */

static void request_page(struct wr_warm *warm, struct wr_warm_page *page)
{
    weir_fetch_options how;
    bool is_first = page->course.step == WR_WARM_GET;
    weir_fetch_options_init(&how);
    how.method = page->course.step == WR_WARM_PROBE ? "HEAD" : "GET";
    how.headers = page->is_at_home ? NULL : warm->omitted;
    how.on_body = ignore_page_body;
    /* Later requests only check the cache: no retries. */
    how.attempts = is_first && warm->settings->pace.attempts > 1 ? 0 : 1;
    if (is_first && warm->first_page_at == 0)
        warm->first_page_at = warm_now();
    int error = weir_client_fetch_async(warm->client, page->url, &how, on_page_response, page, NULL);
    if (error == 0) {
        page->site->asked++;
        warm->under_way++;
        return;
    }
    if (is_first) {
        page->failure = WEIR_FAILURE_INTERNAL;
        page->detail = copy_or_null(error == WEIR_E_INVAL ? weir_error_detail() : weir_error_text(error));
    }
    end_warm_page(warm, page);
}

static void request_due_pages(struct wr_warm *warm)
{
    struct wr_warm_page *page;
    int64_t due_at, moment = warm_now();
    while ((page = (struct wr_warm_page *)wr_heap_peek(&warm->probes, &due_at)) != NULL && due_at <= moment) {
        (void)wr_heap_pop(&warm->probes);
        request_page(warm, page);
    }
    while ((page = wr_warm_queue_take(&warm->again)) != NULL)
        request_page(warm, page);
}

/* Requests the front page before the sitemaps are read. It is a page whatever they list, and at the
 * pace of a new host the user would otherwise see no result for seconds. */
static void request_front_page(struct wr_warm *warm, struct wr_warm_site *site)
{
    if (!site->wants_front || site->wants_robots || site->is_reading || site->is_unreachable)
        return;
    site->wants_front = false;
    if (site->pages.first != NULL)
        request_page(warm, wr_warm_queue_take(&site->pages));
}

static void request_new_pages(struct wr_warm *warm, struct wr_warm_site *site)
{
    site->is_given |= site->pages.count >= WR_WARM_BATCH || wr_warm_site_is_read(site);
    while (site->is_given && site->asked < warm->window && site->pages.first != NULL)
        request_page(warm, wr_warm_queue_take(&site->pages));
}

/* Starts all requests that are due. Returns true while there is something to wait for. */
static bool request_all_due(struct wr_warm *warm)
{
    bool has_more = false;
    request_due_pages(warm);
    for (struct wr_warm_site *site = warm->sites; site != NULL; site = site->next) {
        request_front_page(warm, site);
        wr_warm_site_request_next(site);
        request_new_pages(warm, site);
        has_more = has_more || site->pages.first != NULL || !wr_warm_site_is_read(site);
    }
    return has_more || warm->under_way > 0 || warm->probes.count > 0 || warm->again.first != NULL;
}

/* ---- waiting and progress ---- */

/* Waits for a response, the next probe, or the next progress line. The lock is held. */
static void wait_for_warm_change(struct wr_warm *warm)
{
    struct timespec until;
    int64_t due_at, wait_ns = LOOK_EVERY_NS;
    if (wr_heap_peek(&warm->probes, &due_at) != NULL && due_at - warm_now() < wait_ns)
        wait_ns = due_at > warm_now() ? due_at - warm_now() : 0;
    (void)clock_gettime(CLOCK_MONOTONIC, &until); /* the clock that `changed` uses */
    wait_ns += until.tv_nsec;
    until.tv_sec += (time_t)(wait_ns / WEIR_SECOND);
    until.tv_nsec = (long)(wait_ns % WEIR_SECOND);
    (void)pthread_cond_timedwait(&warm->changed, &warm->lock, &until);
}

struct warm_progress {
    uint64_t finished, found, hits, broken, sitemaps;
    bool is_reading;
};

static struct warm_progress progress_of(const struct wr_warm *warm)
{
    struct warm_progress glance = {warm->finished, warm->pages_count,   warm->hits,
                                   warm->broken,   warm->sitemaps_read, false};
    for (const struct wr_warm_site *site = warm->sites; site != NULL; site = site->next)
        glance.is_reading = glance.is_reading || !wr_warm_site_is_read(site);
    return glance;
}

static void show_warm_progress(const struct wr_warm *warm, const struct warm_progress *glance, int64_t *shown_at)
{
    bool is_terminal = isatty(STDERR_FILENO);
    int64_t moment = warm_now();
    if (warm->settings->quiet || moment - *shown_at < (is_terminal ? LOOK_EVERY_NS : LINE_EVERY_NS))
        return;
    *shown_at = moment;
    double passed_s = (double)(moment - warm->began_at) / WEIR_SECOND;
    char line[256];
    snprintf(line, sizeof line,
             "%" PRIu64 " of %" PRIu64 "%s pages, %.1f/s, %" PRIu64 " out of the cache, %" PRIu64 " broken, %" PRIu64
             " sitemaps read",
             glance->finished, glance->found, glance->is_reading ? "+" : "",
             passed_s > 0 ? (double)glance->finished / passed_s : 0, glance->hits, glance->broken, glance->sitemaps);
    if (is_terminal)
        wr_progress("%s", line);
    else
        fprintf(stderr, "%s\n", line);
}

static void write_ended_lines(struct wr_warm *warm, struct wr_warm_queue *ended)
{
    const struct wr_warm_page *page;
    if (warm->lines != NULL && ended->first != NULL && isatty(fileno(warm->lines)))
        wr_progress("%s", "");
    while ((page = wr_warm_queue_take(ended)) != NULL)
        if (warm->lines != NULL)
            wr_warm_write_line(warm, page);
    if (warm->lines != NULL && fflush(warm->lines) != 0)
        warm->lines_failed = true;
}

/* Takes the pages that have ended since the last call. */
static struct wr_warm_queue take_ended_pages(struct wr_warm *warm)
{
    struct wr_warm_queue ended = warm->ended;
    warm->ended = (struct wr_warm_queue){NULL, NULL, 0};
    return ended;
}

/* Parses a part of the sitemaps. Returns true if there is more to parse. The lock is held. */
static bool parse_sitemaps(struct wr_warm *warm)
{
    bool has_more = false;
    for (struct wr_warm_site *site = warm->sites; site != NULL; site = site->next)
        has_more |= wr_warm_site_parse_some(site);
    return has_more;
}

/* Stops all requests. Pages that wait for another request end with what is known of them. */
static void stop_requests(struct wr_warm *warm)
{
    struct wr_warm_page *page;
    weir_client_close(warm->client);
    (void)parse_sitemaps(warm); /* ends the sitemaps, because the client is closed */
    while ((page = (struct wr_warm_page *)wr_heap_pop(&warm->probes)) != NULL)
        end_warm_page(warm, page);
    while ((page = wr_warm_queue_take(&warm->again)) != NULL)
        end_warm_page(warm, page);
    write_ended_lines(warm, &warm->ended);
    wr_progress("%s", "");
}

void wr_warm_fetch_pages(struct wr_warm *warm)
{
    int64_t shown_at = warm->began_at;
    bool goes_on = true;
    while (goes_on) {
        (void)pthread_mutex_lock(&warm->lock);
        bool has_more = parse_sitemaps(warm);
        goes_on = request_all_due(warm) && !warm->no_memory && wr_signals_count() == 0 && !warm->lines_failed;
        warm->is_over = !goes_on;
        if (goes_on && warm->ended.first == NULL && !has_more)
            wait_for_warm_change(warm);
        struct wr_warm_queue ended = take_ended_pages(warm);
        struct warm_progress glance = progress_of(warm);
        (void)pthread_mutex_unlock(&warm->lock);
        write_ended_lines(warm, &ended);
        show_warm_progress(warm, &glance, &shown_at);
    }
    stop_requests(warm);
}
