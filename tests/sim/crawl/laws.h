/* SPDX-License-Identifier: MIT */
/* laws.h - watches a whole crawl from outside: by what is sent and what is answered, and by what the store has.
 *
 * V1  spacing and requests in flight per host    V2  no request in a window that a server named, across crashes
 * V3  no page while robots.txt is unknown, none that it denies
 * R14 requests in flight per job
 * V4  no URL twice at once, none that has ended  V6  bounds
 * D8  the same spacing, in flight and windows per group of hosts
 * R28 a page's wait is all the time since it came, and no more is charged to its host than went by
 * and what the plans report of a host is what was sent to it
 */
#ifndef WEIR_TEST_CRAWL_LAWS_H
#define WEIR_TEST_CRAWL_LAWS_H

#include "core/plan/plan.h"
#include "sim/crawl/store.h"

#define LAW_GROUPS 16

struct law_host {
    int64_t last_send_at, window_end, known_since;
    uint32_t in_flight;
    int64_t delay_ns[2]; /* Crawl-delay, as last told */
    bool robots_known[2], denies[2];
    /* Of this life: */
    int64_t gone_at; /* when a page last went, or ended */
    int64_t closest_ns;
    uint32_t sends;
    uint32_t reported; /* of them, by reports */
    int64_t reported_closest_ns;
    bool left; /* and came back perhaps */
};

struct law_group {
    int64_t last_send_at, window_end;
    uint32_t in_flight;
};

struct laws {
    const struct wr_plan_options *options;
    struct law_host hosts[WEB_HOSTS_MAX];
    int64_t durable_window_end[WEB_HOSTS_MAX];
    struct law_group groups[LAW_GROUPS]; /* the first: none */
    uint32_t in_flight[STORE_JOBS + 1];  /* of each job */
    uint32_t concurrency;                /* the most of each; 0: any */
    const char *broken;                  /* the first law that was */
    char detail[160];
};

void laws_init(struct laws *laws, const struct wr_plan_options *options);
void laws_break(struct laws *laws, const char *law, struct wr_span url, int64_t now);
/* `row` is NULL for what is no page. */
void laws_send(struct laws *laws, struct store_row *row, struct wr_span url, int64_t now);
/* Of what was sent, at the group of its host. */
void laws_group_send(struct laws *laws, uint32_t group, struct wr_span url, int64_t now);
void laws_group_hear(struct laws *laws, uint32_t group, int64_t retry_after_ns, int64_t now);
void laws_group_answer(struct laws *laws, uint32_t group, int64_t retry_after_ns, int64_t now);
void laws_answer(struct laws *laws, struct store_row *row, struct wr_span url, int64_t retry_after_ns, int64_t now);
/* The head of an answer is there. */
void laws_hear(struct laws *laws, struct wr_span url, int64_t retry_after_ns, int64_t now);
/* A page goes, or ends; it came at this time. */
void laws_waited(struct laws *laws, uint32_t host, const struct wr_plan_action *action, int64_t came_at, int64_t now);
void laws_reported(struct laws *laws, uint32_t host, const struct wr_plan_host_report *report, int64_t now);
/* All hosts have been reported, and the plans are gone. */
void laws_life_ended(struct laws *laws, int64_t now);
/* The answer's window is stored. */
void laws_window_committed(struct laws *laws, uint32_t host);
void laws_robots(struct laws *laws, uint32_t host, bool is_https, bool denies, int64_t delay_ns);
void laws_restart(struct laws *laws, const struct store *store, int64_t now);

#endif
