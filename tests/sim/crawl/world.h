/* SPDX-License-Identifier: MIT */
/* world.h - a whole crawl in virtual time: plans, a store, a web, and an engine between them that connects slowly,
 * gives up, loses answers, and crashes. */
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
    EVENT_WAKE,    /* a loop */
    EVENT_CONNECT, /* a request can be written */
    EVENT_HEAD,    /* the head of its answer is there */
    EVENT_ANSWER,  /* it is answered */
    EVENT_LINKS,   /* a page's links are offered, from `next` on */
    EVENT_POSTED,  /* a link of another loop's */
    EVENT_LOADED,
    EVENT_LISTED,
    EVENT_ERRAND, /* to be done by another loop */
    EVENT_CAME,   /* its answer, back */
    EVENT_COMMIT,
};

enum grouping {
    GROUPS_NONE,
    GROUPS_DOMAIN, /* known when a host is made */
    GROUPS_ADDRESS /* learned when a request is about to be sent */
};
#define GROUPS 4 /* of each loop */

struct event {
    struct wr_heap_item item; /* first */
    struct event *next_free;
    enum event_kind kind;
    uint32_t loop, row, next;
    int64_t at;
    struct wr_plan_action action;
    char url[WEB_URL];
    struct web_answer answer;
    bool was_sent, is_lost;
    uint32_t group; /* for the laws */
    /* Of a link or an errand: */
    uint32_t job, depth, hops;
    struct wr_plan_host *host; /* of an errand: whose robots.txt */
    bool is_https, is_new, was_new;
    uint32_t asker; /* its loop */
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
    struct event *errands[64]; /* by tag */
    bool is_incomplete;        /* the plans do not know all fingerprints after a restart */
    uint32_t crashes_left, crashes, steps, accepted;
    enum grouping grouping;
    int64_t held_until;         /* all plans */
    int64_t wake_at[LOOPS_MAX]; /* of the next EVENT_WAKE; 0: none */
};

/* One world from a seed. Returns NULL, or which law was broken; `ret_detail` says where. */
const char *world_run(uint64_t seed, char ret_detail[160], struct wr_plan_stats *ret_stats);

/* engine.c */
struct event *world_event(struct world *world, enum event_kind kind, int64_t at);
void world_pump(struct world *world, uint32_t loop);
void world_happen(struct world *world, struct event *event);
uint32_t world_loop_of(const struct world *world, uint32_t host);
enum wr_offer_verdict world_offer(struct world *world, uint32_t loop, const struct event *link);
bool world_once_in(struct world *world, uint64_t n);
uint64_t world_fingerprint(const struct world *world, const char *url);
void world_parse(const char *text, char memory[WR_URL_ROOM], struct wr_url *ret_url);
void world_end_job(struct world *world, uint32_t job);
int64_t world_commit_at(struct world *world);
/* Which host of the web it is. */
uint32_t world_index_of(const struct wr_plan_host *host);

/* loads.c */
void world_loaded(struct world *world, struct event *event);
void world_listed(struct world *world, struct event *event);
void world_draw(struct world *world, uint32_t loop, const struct wr_plan_action *action);

#endif
