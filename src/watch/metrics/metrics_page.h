/* SPDX-License-Identifier: MIT */
/* metrics_page.h - GET /metrics of a server with several loops. The page is written at most four
 * times a second, however many requests there are. Any thread may use it. */
#ifndef WR_WATCH_METRICS_METRICS_PAGE_H
#define WR_WATCH_METRICS_METRICS_PAGE_H

#include "serve/server/http_server.h"
#include "watch/metrics/metrics.h"

#define WR_METRICS_FRESH_NS (250 * WEIR_MILLISECOND)

struct wr_metrics_page;

struct wr_metrics_page_options {
    /* writes all families; called in one thread at a time */
    void (*write)(void *context, struct wr_metrics *metrics);
    void *context;
};

/* Returns WEIR_E_NOMEM on failure. */
int wr_metrics_page_new(const struct wr_metrics_page_options *options, struct wr_metrics_page **ret_page);

/* Sends the page. Refuses methods other than GET and HEAD. */
void wr_metrics_page_answer(struct wr_metrics_page *page, struct wr_http_exchange *exchange);

/* Accepts NULL. */
void wr_metrics_page_free(struct wr_metrics_page *page);

/* Returns true for GET and HEAD; refuses other methods. */
bool wr_metrics_may_read(struct wr_http_exchange *exchange);
/* Responds with 200 and the text; with 503 if it is empty. */
void wr_metrics_reply(struct wr_http_exchange *exchange, struct wr_span text);

#endif
