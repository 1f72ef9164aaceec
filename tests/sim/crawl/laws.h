/* SPDX-License-Identifier: MIT */
/* laws.h - checks the laws of a crawl from outside: by requests, responses, and the contents of the
 * store.
 *
 * V1  spacing and requests in flight per host
 * V2  no request in a window that a server named, across crashes
 * V3  no page while robots.txt is unknown, and none that it denies
 * R14 requests in flight per job
 * V4  no URL twice at the same time, and none that has ended
 * V6  bounds
 * D8  spacing, requests in flight and windows per group of hosts
 * R28 the wait of a page is all the time since it arrived, and its host accounts for no more than
 *     passed
 * Reports: the plans report exactly the requests that were sent to a host. */
#ifndef WEIR_TEST_CRAWL_LAWS_H
#define WEIR_TEST_CRAWL_LAWS_H

#include "core/plan/plan.h"
#include "sim/crawl/store.h"

#define LAW_GROUPS 16

struct law_host {
    int64_t last_send_at, window_end, known_since;
    uint32_t in_flight;
    int64_t delay_ns[2]; /* latest Crawl-delay of http and https */
    bool robots_known[2], denies[2];
    /* State since the last restart: */
    int64_t gone_at; /* last time that a page was sent or ended */
    int64_t closest_ns;
    uint32_t sends;
    uint32_t reported; /* number of sends in reports */
    int64_t reported_closest_ns;
    bool left; /* the plan has dropped the host, which may have returned since */
};

struct law_group {
    int64_t last_send_at, window_end;
    uint32_t in_flight;
};

struct laws {
    const struct wr_plan_options *options;
    struct law_host hosts[WEB_HOSTS_MAX];
    int64_t durable_window_end[WEB_HOSTS_MAX];
    struct law_group groups[LAW_GROUPS]; /* groups[0]: no group */
    uint32_t in_flight[STORE_JOBS + 1];  /* requests in flight of each job */
    uint32_t concurrency;                /* most requests in flight per job; 0: no limit */
    const char *broken;                  /* first law that was broken, or NULL */
    char detail[160];
};

void laws_init(struct laws *laws, const struct wr_plan_options *options);
void laws_break(struct laws *laws, const char *law, struct wr_span url, int64_t now);
/* Records a request. `row` is NULL if it is not a page. */
void laws_send(struct laws *laws, struct store_row *row, struct wr_span url, int64_t now);
/* Records a request at the group of its host. */
void laws_group_send(struct laws *laws, uint32_t group, struct wr_span url, int64_t now);
void laws_group_hear(struct laws *laws, uint32_t group, int64_t retry_after_ns, int64_t now);
void laws_group_answer(struct laws *laws, uint32_t group, int64_t retry_after_ns, int64_t now);
void laws_answer(struct laws *laws, struct store_row *row, struct wr_span url, int64_t retry_after_ns, int64_t now);
/* Records the head of a response. */
void laws_hear(struct laws *laws, struct wr_span url, int64_t retry_after_ns, int64_t now);
/* Checks the wait of a page that is sent or ends. `came_at`: time of its arrival. */
void laws_waited(struct laws *laws, uint32_t host, const struct wr_plan_action *action, int64_t came_at, int64_t now);
void laws_reported(struct laws *laws, uint32_t host, const struct wr_plan_host_report *report, int64_t now);
/* Checks the figures of all hosts after the plans have ended. */
void laws_life_ended(struct laws *laws, int64_t now);
/* Records that the window of an answer is stored. */
void laws_window_committed(struct laws *laws, uint32_t host);
void laws_robots(struct laws *laws, uint32_t host, bool is_https, bool denies, int64_t delay_ns);
void laws_restart(struct laws *laws, const struct store *store, int64_t now);

#endif
