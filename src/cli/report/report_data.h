/* SPDX-License-Identifier: MIT */
/* report_data.h - reads the report of a crawl from its JSON. Both the text and the HTML page are
 * made from these values, at the end of the crawl as well as later.
 *
 * The JSON may come from a file that was modified. Numbers are limited to their range, missing
 * values are 0 or empty, and texts have no control characters.
 */
#ifndef WR_CLI_REPORT_REPORT_DATA_H
#define WR_CLI_REPORT_REPORT_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <weir/limit.h>

#include "base/span.h"
#include "crawl/engine/rate_history.h"

#define WR_REPORT_DATA_HOSTS 1000 /* number of hosts in a stored report: those with the most requests */
#define WR_REPORT_DATA_STATUSES 64

struct wr_report_data_host {
    char *name;
    uint64_t requests, ok, rejected, failed, retries, bytes, too_soon;
    /* Per second; reached is 0 with fewer than two requests, allowed is INFINITY without a
     * limit. */
    double reached, allowed;
    int64_t closest_ns, robots_delay_ns;
    int64_t waited_ns[WEIR_REASON_QUEUE + 1];
    int64_t starts[WR_RATE_HISTORY_POINTS]; /* number of requests in each step; -1: not known */
    size_t points;
};

struct wr_report_data_status {
    int status; /* HTTP status; 0: no answer */
    uint64_t count;
};

struct wr_report_data {
    uint64_t job;
    /* Texts of the report; "" if missing. */
    char *end, *why, *state, *out, *ended_at, *failed_url, *failed_why;
    int64_t elapsed_ns, step_ns;
    uint64_t pages, fetched, unchanged, failed, denied, redirects, blocked, blocked_hosts, requests, robots, rejected,
        retries;
    uint64_t bytes, queued, seeds_refused, beyond, deeper, unread, max_pages, host_pages, depth;
    uint64_t too_soon;
    int64_t waited_ns[WEIR_REASON_QUEUE + 1]; /* waits of all hosts by reason, ns */
    struct wr_report_data_status statuses[WR_REPORT_DATA_STATUSES];
    size_t status_count;
    struct wr_report_data_host *hosts;
    size_t host_count;
    uint64_t hosts_left_out;
};

/* Parses a report. Returns WEIR_E_INVAL if it is not a report, or WEIR_E_NOMEM. */
int wr_report_data_read(struct wr_span json, struct wr_report_data *ret_facts);
void wr_report_data_release(struct wr_report_data *facts);

#endif
