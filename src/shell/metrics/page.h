/* SPDX-License-Identifier: MIT */
/* page.h - GET /metrics of a server with several loops: found anew at most four times a second, however often it is
 * asked for. From any thread. */
#ifndef WR_SHELL_METRICS_PAGE_H
#define WR_SHELL_METRICS_PAGE_H

#include "shell/http/http.h"
#include "shell/metrics/metrics.h"

#define WR_METRICS_FRESH_NS (250 * WEIR_MILLISECOND)

struct wr_metrics_page;

struct wr_metrics_page_options {
    void (*write)(void *context, struct wr_metrics *metrics); /* all families; one thread at a time */
    void *context;
};

/* WEIR_E_NOMEM. */
int wr_metrics_page_new(const struct wr_metrics_page_options *options, struct wr_metrics_page **ret_page);

/* Answers, whatever is asked: refuses what is not GET or HEAD. */
void wr_metrics_page_answer(struct wr_metrics_page *page, struct wr_http_exchange *exchange);

/* NULL is fine. */
void wr_metrics_page_free(struct wr_metrics_page *page);

/* Whether it is GET or HEAD; else it is refused. */
bool wr_metrics_may_read(struct wr_http_exchange *exchange);
/* 200 with the text; 503 if there is none. */
void wr_metrics_reply(struct wr_http_exchange *exchange, struct wr_span text);

#endif
