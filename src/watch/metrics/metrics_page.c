/* SPDX-License-Identifier: MIT */
/* metrics_page.c - serves GET /metrics for a server with several loops. */
#include "watch/metrics/metrics_page.h"

#include <pthread.h>
#include <stdlib.h>

#include "http/loop/watchdog.h"
#include "limiter/memory/memory.h"

#define METRICS_PAGE_MAX ((size_t)4 << 20)

struct wr_metrics_page {
    struct wr_metrics_page_options options;
    pthread_mutex_t lock; /* guards the members below */
    struct wr_buf text;
    int64_t made_at;
    bool is_made;
};

int wr_metrics_page_new(const struct wr_metrics_page_options *options, struct wr_metrics_page **ret_page)
{
    struct wr_metrics_page *page = calloc(1, sizeof *page);
    if (page == NULL)
        return WEIR_E_NOMEM;
    page->options = *options;
    wr_buf_init(&page->text, wr_allocator_or_system(NULL), METRICS_PAGE_MAX);
    (void)pthread_mutex_init(&page->lock, NULL);
    *ret_page = page;
    return 0;
}

bool wr_metrics_may_read(struct wr_http_exchange *exchange)
{
    if (exchange->method == WR_METHOD_GET || exchange->method == WR_METHOD_HEAD)
        return true;
    wr_http_reply(exchange, 405, wr_span_of("Allow: GET, HEAD\r\n"), WR_HTTP_NOTHING);
    return false;
}

void wr_metrics_reply(struct wr_http_exchange *exchange, struct wr_span text)
{
    if (text.bytes == 0)
        wr_http_refuse(exchange, 503, "out of memory");
    else
        wr_http_reply(exchange, 200, wr_span_of("Content-Type: " WR_METRICS_TYPE "\r\nCache-Control: no-store\r\n"),
                      text);
}

/* Writes the page again if it is outdated. The lock is held: other threads wait for it and then use
 * the new page. */
static void refresh_page(struct wr_metrics_page *page)
{
    WR_DOING("/metrics");
    struct wr_metrics metrics = {.buf = &page->text};
    int64_t now = weir_clock_now(weir_clock_monotonic());
    if (page->is_made && now - page->made_at < WR_METRICS_FRESH_NS)
        return;
    wr_buf_clear(&page->text);
    page->options.write(page->options.context, &metrics);
    page->made_at = now;
    page->is_made = true;
}

void wr_metrics_page_answer(struct wr_metrics_page *page, struct wr_http_exchange *exchange)
{
    if (!wr_metrics_may_read(exchange))
        return;
    (void)pthread_mutex_lock(&page->lock);
    refresh_page(page);
    wr_metrics_reply(exchange, page->text.error == 0 ? wr_buf_from(&page->text, 0) : (struct wr_span){NULL, 0});
    (void)pthread_mutex_unlock(&page->lock);
}

void wr_metrics_page_free(struct wr_metrics_page *page)
{
    if (page == NULL)
        return;
    wr_buf_release(&page->text);
    (void)pthread_mutex_destroy(&page->lock);
    free(page);
}
