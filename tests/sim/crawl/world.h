/* SPDX-License-Identifier: MIT */
/* world.h - simulates a whole crawl in virtual time: plans, a store, a web, and an engine that
 * connects slowly, gives up, loses answers, and crashes. */
#ifndef WEIR_TEST_CRAWL_WORLD_H
#define WEIR_TEST_CRAWL_WORLD_H

#include "base/heap.h"
#include "base/rng.h"
#include "core/plan/ledger.h"
#include "core/plan/plan.h"
#include "sim/crawl/laws.h"

#define LOOPS_MAX 3
#define EVENTS_MAX 8192

enum event_kind {
    EVENT_WAKE,    /* a loop wakes up */
    EVENT_CONNECT, /* a request can be sent */
    EVENT_HEAD,    /* the head of a response has arrived */
    EVENT_ANSWER,  /* a response has arrived */
    EVENT_LINKS,   /* the links of a page are offered, from `next` on */
    EVENT_POSTED,  /* a link is posted by another loop */
    EVENT_LOADED,
    EVENT_LISTED,
    EVENT_ERRAND, /* an errand from another loop */
    EVENT_CAME,   /* the answer of an errand returns to its loop */
    EVENT_COMMIT,
};

enum grouping {
    GROUPS_NONE,
    GROUPS_DOMAIN, /* known when a host is created */
    GROUPS_ADDRESS /* learned just before a request is sent */
};
#define GROUPS 4 /* number of groups per loop */

struct event {
    struct wr_heap_item item; /* must be the first member */
    struct event *next_free;
    enum event_kind kind;
    uint32_t loop, row, next;
    int64_t at;
    struct wr_plan_action action;
    char url[WEB_URL];
    struct web_answer answer;
    bool was_sent, is_lost;
    uint32_t group; /* group of the host, for the laws */
    /* For links and errands: */
    uint32_t job, depth, hops;
    struct wr_plan_host *host; /* for errands: the host whose robots.txt it is */
    bool is_https, is_new, was_new;
    uint32_t asker; /* loop that asked for the errand */
};

struct world {
    uint64_t seed;
    struct wr_rng rng;
    struct web web;
    struct store store;
    struct laws laws;
    struct wr_hash_key key;
    struct wr_plan_options options;
    struct wr_plan *plans[LOOPS_MAX];
    struct wr_ledger ledgers[STORE_JOBS + 1];
    bool over[STORE_JOBS + 1], paused[STORE_JOBS + 1];
    uint32_t loops, jobs;
    struct wr_plan_job job_options;
    uint64_t page_budget;
    int64_t now;
    struct wr_heap heap;
    struct event events[EVENTS_MAX];
    struct event *free_events;
    struct event *errands[64]; /* indexed by tag */
    bool is_incomplete;        /* after a restart, the plans do not know all fingerprints */
    uint32_t crashes_left, crashes, steps, accepted;
    enum grouping grouping;
    int64_t held_until;         /* end of a hold on all plans */
    int64_t wake_at[LOOPS_MAX]; /* time of the next EVENT_WAKE; 0: none */
};

/* Runs the world of a seed. Returns NULL, or the law that was broken, with details in
 * `ret_detail`. */
const char *world_run(uint64_t seed, char ret_detail[160], struct wr_plan_stats *ret_stats);

/* engine.c */
struct event *world_event(struct world *world, enum event_kind kind, int64_t at);
void world_pump(struct world *world, uint32_t loop);
void world_happen(struct world *world, struct event *event);
uint32_t world_loop_of(const struct world *world, uint32_t host);
enum wr_add_url_verdict world_offer(struct world *world, uint32_t loop, const struct event *link);
bool world_once_in(struct world *world, uint64_t n);
uint64_t world_fingerprint(const struct world *world, const char *url);
void world_parse(const char *text, char memory[WR_URL_ROOM], struct wr_url *ret_url);
void world_end_job(struct world *world, uint32_t job);
int64_t world_commit_at(struct world *world);
/* Returns the index of the host in the web. */
uint32_t world_index_of(const struct wr_plan_host *host);

/* loads.c */
void world_loaded(struct world *world, struct event *event);
void world_listed(struct world *world, struct event *event);
void world_draw(struct world *world, uint32_t loop, const struct wr_plan_action *action);

#endif
