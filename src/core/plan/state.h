/* SPDX-License-Identifier: MIT */
/* state.h - what a plan is made of. Only the files of core/plan look inside.
 *
 *     plan ── hosts (map) ── host ── gate, robots × 2, errands
 *       │                     └─ lane ── lane …              one for each job that has been here
 *       └─ jobs ── job ── ready: lanes whose host may be asked now, the longest ready first
 *
 * A host is in the heap (`timed`) under the time at which something may change by itself; ready, that is, itself in
 * `urgent`, or its lanes in their jobs' ready lists; in the list of the idle if it has nothing to do at all; or
 * nowhere, until something is told. settle.c puts it there after everything that happens to it.
 */
#ifndef WR_CORE_PLAN_STATE_H
#define WR_CORE_PLAN_STATE_H

#include "base/alloc.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/rng.h"
#include "core/plan/known.h"
#include "core/plan/look.h"
#include "core/plan/plan.h"
#include "core/plan/pool.h"
#include "core/plan/trap.h"

#define WR_ORIGINS 2      /* of a host: http and https */
#define WR_DUE_BATCH 32   /* hosts that are moved before one is picked: 10 000 may be due at once */
#define WR_LOAD_LEAST 2   /* tasks */
#define WR_DRAW_CHUNK 256 /* pages */
#define WR_DRAW_CHUNK_BYTES ((uint64_t)16 << 20)
#define WR_EVICT_LOOKS 8 /* idle hosts that are looked at to find one that may go */
#define WR_HOSTS_CHUNK 256
#define WR_RULES_SMALL 4096 /* bytes: such rules are never dropped */

struct wr_lane {
    struct wr_list_link ready;  /* in its job's list */
    struct wr_list_link loads;  /* in the plan's list of lanes that want to load */
    struct wr_list_link of_job; /* in its job's list of all lanes */
    struct wr_lane *beside;     /* the host's next one */
    struct wr_plan_host *host;
    struct wr_job *job;
    struct wr_tasks fifo[WR_ORIGINS];
    struct wr_tasks flying;
    struct wr_tasks delayed;       /* by ready_at */
    struct wr_plan_position after; /* of the last one loaded */
    uint64_t served;               /* the plan's count of starts then */
    uint64_t in_store;             /* queued there, after `after` */
    uint64_t since;                /* of them, accepted since the load that is under way was asked for */
    uint32_t queued[WR_ORIGINS];   /* in fifo and delayed */
    uint32_t in_flight;
    uint32_t accepted;
    bool loading;
    bool active;       /* counted in the plan's lanes */
    uint16_t sitemaps; /* accepted since the lane is there */
};

/* Its gate and key lie behind it. */
struct wr_group {
    struct wr_heap_item timer; /* first; in the heap only while somebody waits */
    struct wr_list_link idle;  /* in the plan's list, without members */
    struct wr_list line;       /* hosts that wait for its gate alone, by `place` */
    uint32_t members;
    uint32_t bytes; /* of the block */
    uint16_t key_bytes;
};

/* What was sent to a host: see struct wr_plan_host_report. */
struct wr_figures {
    int64_t first_at, last_at, closest_ns;
    uint64_t bytes;
    uint32_t requests, successes, rejected, failures, retries, hasty;
    uint32_t slice;                  /* of time, the last in which something was sent */
    uint16_t starts[WR_PLAN_SLICES]; /* in each, by its number modulo WR_PLAN_SLICES */
};

struct wr_plan_host {
    struct wr_heap_item timer;   /* first */
    struct wr_heap_item large;   /* in `largest` */
    struct wr_list_link place;   /* in `urgent`, `idle`, or its group's line */
    struct wr_list_link expires; /* in `expiring` */
    struct wr_list_link unsaved;
    struct wr_list_link recalls; /* in the list of those whose memory alone is wanted */
    struct wr_lane *lanes;
    struct wr_group *group;  /* NULL: none */
    weir_pace_options *pace; /* its own, since somebody set them; NULL: the plan's */
    int64_t forgot_at;       /* answers to what was sent before teach nothing */
    struct wr_tasks errands;
    struct wr_lifecycle robots[WR_ORIGINS];
    struct wr_robots *rules[WR_ORIGINS]; /* ours */
    int64_t could_at[WR_ORIGINS];        /* of those that are held: when a page was last possible (R6) */
    int64_t pushed_until;                /* something was given back: not again before (U4) */
    uint32_t claims;                     /* tasks here and in flight, and what the caller was asked for, or owes */
    uint32_t owed;                       /* of them: see wr_plan_host_owe */
    uint32_t grouped;                    /* requests that are counted at the group */
    uint32_t steps;                      /* by which a job's concurrency is lowered here */
    uint8_t expiring;                    /* bit: origin */
    uint8_t held;                        /* bit: origin: its tasks are kept waiting by what may expire (R6) */
    uint8_t gave_up;                     /* bit: origin: its tasks have expired, and whatever held them still does */
    int64_t blocked_until;               /* it lets nobody in */
    uint8_t blocked_by, walls;           /* see wr_plan_wall */
    uint8_t lost[WR_ORIGINS];            /* the tag of wr_plan_give_up; 0: nobody did */
    uint8_t hop;                         /* bit: the robots.txt goes on here */
    uint8_t asked;                       /* bit: the robots.txt is being fetched by a task */
    uint8_t away;                        /* bit: it goes on elsewhere, by an errand of the caller's */
    uint8_t expiring_for;                /* weir_reason */
    uint8_t held_by;                     /* weir_reason, or WR_HELD_READY */
    bool hopeless;                       /* WR_NEWS_HOPELESS is to be told with the next page */
    bool recalling;                      /* the store is asked for its memory alone */
    bool remembered;                     /* the store has said what it knows */
    bool steered;                        /* somebody paused it or set its pace: the store knows nothing newer */
    uint16_t key_bytes;
    uint32_t key_at;                     /* in the block */
    uint32_t bytes;                      /* of the block: this, gate, key */
    int32_t learned_s, heard_s, broke_s; /* when its pace, a wait it named, its breaker last changed; 0: never */
    int64_t held_since;                  /* if it is held */
    uint64_t lease;                      /* its token; 0: it is not leased */
    int64_t leased_until;
    bool unlent;     /* it is left alone until it is leased */
    uint64_t marked; /* see wr_plan_host_mark */
    int64_t rested;
    int64_t held_ns; /* see wr_plan_host_rested_for; until its first tasks have come */
    bool has_rested; /* the same; when its memory has come it matters no more */
    bool yields;
    struct wr_plan_waited waited; /* in all */
    struct wr_plan_waited taken;  /* of it, by pages that went or ended */
    struct wr_figures figures;
};

struct wr_job {
    struct wr_plan_job options;
    struct wr_list ready; /* of lanes */
    struct wr_list lanes; /* all */
    uint32_t in_flight;
    int64_t open;               /* tasks accepted and not ended, wherever they are */
    uint64_t left[WR_DRAWS];    /* of what was granted */
    uint64_t granted[WR_DRAWS]; /* the last time */
    uint64_t owed_bytes;        /* fetched beyond what was left: a page may be larger */
    bool is_last[WR_DRAWS], drawing[WR_DRAWS];
    int64_t hosts_after;   /* the id of the last host that HOSTS listed */
    int64_t hosts_at;      /* no HOSTS before: there was no room */
    int64_t hosts_wait_ns; /* the last wait for it; 0: a host found room since */
    uint32_t found;        /* hosts that this pass over them brought */
    bool listing;          /* HOSTS is under way */
    bool dormant;          /* the store may have hosts that are not here */
    bool missed;           /* and there were some for which there was no room, since this pass over them began */
    bool full;             /* or in the answer that is being given */
    weir_reason paused;    /* why nothing of it is started; NONE: it is */
    bool ended, timed_out;
    int64_t limited_at;           /* when it last had something to start and might not */
    struct wr_list_link *stirred; /* the next of its lanes whose host is to be looked at again */
    bool says_drained, says_over; /* an action is due */
    enum wr_draw over;
};

struct wr_plan {
    struct wr_plan_options options;
    struct wr_statuses statuses;
    struct wr_rng rng;
    struct wr_map hosts;
    struct wr_heap timed;
    struct wr_heap largest; /* hosts by the bytes of their rules, the most first; small ones are in none */
    struct wr_map groups;
    struct wr_heap groups_timed;
    struct wr_list idle_groups;
    struct wr_plan_host *called; /* by its group, just now: it need not stand in line */
    struct wr_list urgent, idle, expiring, unsaved, loads, recalls;
    struct wr_job *jobs; /* max_jobs; id 0: free */
    uint32_t places;     /* of them, that were ever used: the first ones */
    uint32_t turn;       /* the job whose turn it is */
    bool is_pages_turn;  /* else that of robots.txt and errands */
    struct wr_pool pool;
    struct wr_known known;
    struct wr_variants variants;
    size_t gate_bytes;
    uint32_t in_flight;
    uint32_t lanes; /* with tasks in window or store */
    int64_t hold_until;
    int64_t full_at;  /* when there was last no room for one more in flight */
    bool starved;     /* a load found no room; until a task has ended */
    uint32_t loading; /* LOADs that are not answered yet */
    struct wr_plan_stats stats;
    size_t host_bytes_sum;
    size_t rules_bytes;
    char url[WR_URL_ROOM];
};

/* ---- hosts.c ---- */

static inline const weir_pace_options *wr_host_pace(const struct wr_plan *plan, const struct wr_plan_host *host)
{
    return host->pace != NULL ? host->pace : &plan->options.pace;
}

static inline struct wr_gate *wr_host_gate_of(struct wr_plan_host *host)
{
    return (struct wr_gate *)(host + 1);
}

/* Found, or made. WEIR_E_FULL, WEIR_E_NOMEM. */
int wr_host_need(struct wr_plan *plan, struct wr_span key, int64_t now, struct wr_plan_host **ret_host);
int wr_lane_need(struct wr_plan *plan, struct wr_plan_host *host, struct wr_job *job, struct wr_lane **ret_lane);
struct wr_lane *wr_lane_find(const struct wr_plan_host *host, const struct wr_job *job);
void wr_lane_free(struct wr_plan *plan, struct wr_lane *lane);
/* All of them. */
void wr_hosts_free(struct wr_plan *plan);
/* In a heap for one more than there are: who is in it must never fail to find its place. */
int wr_heap_make_room(struct wr_heap *heap, size_t count);
/* The rules of an origin have come, or went; tells the gate of Crawl-delay. */
void wr_host_set_rules(struct wr_plan *plan, struct wr_plan_host *host, bool is_https, struct wr_robots *rules,
                       int64_t now);
/* Somebody sets its interval; 0: nobody. WEIR_E_NOMEM: it is as it was. */
int wr_host_set_pace(struct wr_plan *plan, struct wr_plan_host *host, int64_t interval_ns);
/* Whether there is room for them, if need be by forgetting hosts that are idle, or else the rules of the host that has
 * the most, if it has more than this one would have. */
bool wr_rules_fit(struct wr_plan *plan, const struct wr_plan_host *host, bool is_https, const struct wr_robots *rules,
                  int64_t now);

static inline bool wr_host_is_blocked(const struct wr_plan_host *host, int64_t now)
{
    return now < host->blocked_until;
}

/* Without asking anybody. */
void wr_host_forget(struct wr_plan *plan, struct wr_plan_host *host, int64_t now);

/* ---- lease.c ---- */

/* It may be asked now. */
bool wr_host_is_lent(const struct wr_plan *plan, const struct wr_plan_host *host, int64_t now);
/* It is another's. */
bool wr_host_is_lost(const struct wr_plan *plan, const struct wr_plan_host *host);

/* ---- jobs.c ---- */

/* Lets all go that it has in memory, but for what is in flight. */
void wr_lane_purge(struct wr_plan *plan, struct wr_lane *lane);

struct wr_job *wr_job_find(const struct wr_plan *plan, uint32_t id);
/* One of its tasks has ended. */
void wr_job_task_ended(struct wr_job *job, int64_t count);
bool wr_job_may_start(const struct wr_job *job);
/* Whether the job has something to say; fills it in. */
bool wr_jobs_say(struct wr_plan *plan, int64_t now, struct wr_plan_action *ret_action);
/* The earliest deadline. */
int64_t wr_jobs_deadline(const struct wr_plan *plan, int64_t now);

/* ---- lane.c ---- */

/* Neither here nor, as far as is known, in the store. */
bool wr_lane_is_empty(const struct wr_lane *lane);
/* Lists it for LOAD if it wants to. */
void wr_lane_want(struct wr_plan *plan, struct wr_lane *lane);
void wr_lane_push(struct wr_plan *plan, struct wr_lane *lane, uint32_t number, int64_t now);
/* To the front: it was not sent after all. */
void wr_lane_push_back(struct wr_plan *plan, struct wr_lane *lane, uint32_t number, int64_t now);
/* Takes out the first task of an origin in the set `open` that is due; WR_NO_TASK. */
uint32_t wr_lane_peek(const struct wr_plan *plan, const struct wr_lane *lane, uint32_t open, int64_t now);
uint32_t wr_lane_pop(struct wr_plan *plan, struct wr_lane *lane, uint32_t open, int64_t now);
/* Of this origin, any. */
uint32_t wr_lane_pop_any(struct wr_plan *plan, struct wr_lane *lane, bool is_https);
/* Whether it has this task. */
bool wr_lane_has(const struct wr_plan *plan, const struct wr_lane *lane, uint64_t fingerprint);
bool wr_lane_is_full(const struct wr_lane *lane);
bool wr_loads_say(struct wr_plan *plan, struct wr_plan_action *ret_action);

/* ---- settle.c ---- */

/* What a host can do now, and if nothing, what for. */
struct wr_standing {
    weir_decision gate;
    struct wr_life_action life[WR_ORIGINS]; /* of those that are wanted */
    uint32_t wanted;                        /* bit: origin: somebody has tasks there */
    uint32_t open;                          /* bit: origin: its rules are known */
    uint32_t held;                          /* bit: origin: by what may expire */
    int64_t soonest_at;                     /* when the next backoff ends that has not; WEIR_FOREVER */
    bool lines;                             /* it is the group that holds it */
    bool urgent;                            /* a robots.txt or an errand is to be sent */
    bool startable;                         /* a page is */
    weir_reason held_for[WR_ORIGINS];
};

void wr_host_stand(const struct wr_plan *plan, struct wr_plan_host *host, int64_t now,
                   struct wr_standing *ret_standing);
/* The least time until its next start, after one; WEIR_FOREVER: it has no more. */
int64_t wr_host_next(const struct wr_plan *plan, struct wr_plan_host *host, int64_t now);
/* Puts it where it belongs. */
void wr_host_settle(struct wr_plan *plan, struct wr_plan_host *host, int64_t now);
/* Takes it out of heap and lists, but not out of its group's line. */
void wr_host_unplace(struct wr_plan *plan, struct wr_plan_host *host);

/* ---- group.c ---- */

/* What the host's group says, if it has one; QUEUE: others are in line before it. */
weir_decision wr_group_ask(const struct wr_plan *plan, const struct wr_plan_host *host, int64_t now);
/* Stands in line or leaves it; who is in it stays where it is. */
void wr_group_line(struct wr_plan_host *host, bool waits);
/* Calls the first in line, if the gate is open, or when it will be. NULL: nothing. */
void wr_group_settle(struct wr_plan *plan, struct wr_group *group, int64_t now);
/* Those whose time has come, a few at a time. Returns whether there are more. */
bool wr_groups_move_due(struct wr_plan *plan, int64_t now);
/* An empty key: leaves. WEIR_E_FULL, WEIR_E_NOMEM: the host is as it was. */
int wr_group_join(struct wr_plan *plan, struct wr_plan_host *host, struct wr_span key, int64_t now);
void wr_group_leave(struct wr_plan *plan, struct wr_plan_host *host);
void wr_groups_free(struct wr_plan *plan);
bool wr_group_ok(const struct wr_plan *plan, struct wr_group *group);

/* The same as is said to the host's gate. */
void wr_group_reserve(struct wr_plan *plan, struct wr_plan_host *host, struct wr_task *task, int64_t now);
weir_decision wr_group_may_send(struct wr_plan *plan, struct wr_plan_host *host, struct wr_task *task, int64_t now);
void wr_group_sent(const struct wr_plan *plan, struct wr_plan_host *host, struct wr_task *task, int64_t now);
void wr_group_drop(const struct wr_plan *plan, struct wr_plan_host *host, struct wr_task *task, int64_t now);
void wr_group_tell(const struct wr_plan *plan, struct wr_plan_host *host, struct wr_task *task,
                   const weir_outcome *outcome, double unit, int64_t now);
void wr_group_hear(const struct wr_plan *plan, struct wr_plan_host *host, const struct wr_task *task,
                   const weir_outcome *outcome, double unit, int64_t now);
/* NULL: it has none. */
struct wr_gate *wr_group_gate(const struct wr_plan_host *host);
int64_t wr_group_delay(const struct wr_plan *plan, const struct wr_plan_host *host, int64_t now);

/* ---- report.c ---- */

#define WR_HELD_READY WR_PLAN_REASONS /* by nothing of its own */

/* From now on it is held by this. */
void wr_host_held(const struct wr_plan *plan, struct wr_plan_host *host, uint8_t by, int64_t now);
/* What its next task has waited so far. */
struct wr_plan_waited wr_host_waited(const struct wr_plan *plan, struct wr_plan_host *host, int64_t now);
/* This is its next task, and goes: what it has waited. */
struct wr_plan_waited wr_task_waited(const struct wr_plan *plan, struct wr_plan_host *host, const struct wr_task *task,
                                     int64_t now);
/* `least_ns` should lie between two. Returns whether it was too soon. */
bool wr_figures_sent(struct wr_figures *figures, int64_t least_ns, int64_t now);
void wr_figures_told(struct wr_figures *figures, int status, bool is_rejection);
/* How many were sent in each slice of time, the oldest first; the last is the one that is not over. */
void wr_figures_recent(const struct wr_figures *figures, int64_t now, uint16_t ret_starts[WR_PLAN_SLICES]);
/* What an answer changed: when, for who looks, and to whoever listens. */
void wr_host_news(const struct wr_plan *plan, struct wr_plan_host *host, uint32_t news, int status, int64_t now);

/* ---- flight.c ---- */

/* Reserves a start for this task. */
void wr_task_reserve(struct wr_plan *plan, struct wr_plan_host *host, uint32_t number, int64_t now);
/* The task is gone; of a page, the job knows. */
void wr_task_end(struct wr_plan *plan, uint32_t number);

static inline bool wr_is_https(const struct wr_task *task)
{
    return (task->flags & WR_TASK_HTTPS) != 0;
}

#endif
