/* SPDX-License-Identifier: MIT */
/* plan_state.h - the internal state of a plan. Only the files of core/plan include it.
 *
 *     plan ── hosts (map) ── host ── gate, robots × 2, errands
 *       │                     └─ host_queue ── host_queue ...           a host queue for each job that was here
 *       └─ jobs ── job ── ready: host queues whose host may be asked now, longest ready first
 *
 * A host is in the heap `timed` under the time of its next change without an event. Or it is ready:
 * itself in `urgent`, or its host queues in the ready lists of their jobs. Or it is in the list
 * `idle`, with nothing to do. Otherwise it waits for an event. reschedule.c puts it into its place
 * after each event of the host.
 */
#ifndef WR_CORE_PLAN_PLAN_STATE_H
#define WR_CORE_PLAN_PLAN_STATE_H

#include "base/alloc.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/rng.h"
#include "core/plan/inspect.h"
#include "core/plan/known_urls.h"
#include "core/plan/plan.h"
#include "core/plan/pool.h"
#include "core/plan/trap.h"

#define WR_ORIGINS 2              /* origins of a host: http and https */
#define WR_DUE_BATCH 32           /* due hosts moved before one is picked: 10 000 may be due at once */
#define WR_LOAD_LEAST 2           /* least tasks of a host queue in memory */
#define WR_BUDGET_CHUNK_PAGES 256 /* pages taken by one DRAW */
#define WR_BUDGET_CHUNK_BYTES ((uint64_t)16 << 20)
#define WR_EVICT_TRIES 8 /* idle hosts examined to find one to evict */
#define WR_HOSTS_CHUNK 256
#define WR_RULES_SMALL 4096 /* bytes; rules up to this size are never dropped */

struct wr_host_queue {
    struct wr_list_link ready;    /* link in the job's list of ready host queues */
    struct wr_list_link loads;    /* link in the plan's list of host queues to load */
    struct wr_list_link of_job;   /* link in the job's list of all host queues */
    struct wr_host_queue *beside; /* next host queue of the host */
    struct wr_plan_host *host;
    struct wr_job *job;
    struct wr_tasks fifo[WR_ORIGINS];
    struct wr_tasks flying;
    struct wr_tasks delayed;       /* tasks with a backoff, sorted by its end, `at` */
    struct wr_plan_position after; /* position of the last row loaded */
    uint64_t served;               /* the plan's count of starts when it last started */
    uint64_t in_store;             /* tasks queued in the store, after `after` */
    uint64_t since;                /* part of in_store accepted since the current LOAD began */
    uint32_t queued[WR_ORIGINS];   /* queued tasks per origin, in fifo and delayed */
    uint32_t in_flight;
    uint32_t accepted;
    bool loading;
    bool active;       /* counted in wr_plan.host_queues */
    uint16_t sitemaps; /* sitemaps accepted since this queue exists */
};

/* Hosts that share a gate. The gate and the key follow this struct in memory. */
struct wr_group {
    struct wr_heap_item timer; /* must be first; in groups_timed while hosts wait */
    struct wr_list_link idle;  /* link in the plan's list of groups without members */
    struct wr_list line;       /* hosts that wait for this gate alone, linked by `place` */
    uint32_t members;
    uint32_t bytes; /* size of the block: this, gate, key */
    uint16_t key_bytes;
};

/* Counts of the requests to a host: see struct wr_plan_host_report. */
struct wr_host_figures {
    int64_t first_at, last_at, closest_ns;
    uint64_t bytes;
    uint32_t requests, successes, rejected, failures, retries, hasty;
    uint32_t slice;                  /* number of the last slice of time with a start */
    uint16_t starts[WR_PLAN_SLICES]; /* starts per slice, at slice modulo WR_PLAN_SLICES */
};

struct wr_plan_host {
    struct wr_heap_item timer;   /* item in `timed`; must be first */
    struct wr_heap_item large;   /* item in `largest`, by bytes of its rules */
    struct wr_list_link place;   /* link in `urgent`, `idle` or the queue of its group */
    struct wr_list_link expires; /* link in `expiring`: hosts whose tasks end unsent */
    struct wr_list_link unsaved;
    struct wr_list_link recalls; /* link in `recalls`: hosts that load only their memory */
    struct wr_host_queue *host_queues;
    struct wr_group *group;  /* the group whose gate it shares; NULL: none */
    weir_pace_options *pace; /* options with a user's interval; NULL: the plan's */
    int64_t forgot_at;       /* requests sent before this time teach the gate nothing */
    struct wr_tasks errands;
    struct wr_robots_lifecycle robots[WR_ORIGINS];
    struct wr_robots *rules[WR_ORIGINS]; /* rules of its robots.txt, owned by the host */
    int64_t could_at[WR_ORIGINS];        /* per held origin: when a page was last possible */
    int64_t pushed_until;                /* no start before: a request was given back */
    uint32_t claims;                     /* tasks here, unanswered actions, unposted results */
    uint32_t owed;                       /* unposted results in claims (wr_plan_host_begin_post) */
    uint32_t grouped;                    /* requests in flight at the group's gate */
    uint32_t steps;                      /* requests by which a job's concurrency is reduced */
    uint8_t expiring;                    /* one bit per origin, set while the tasks of that origin expire */
    uint8_t held;                        /* bit per origin: its tasks wait, and may expire */
    uint8_t gave_up;                     /* bit per origin: tasks expired, the cause persists */
    int64_t blocked_until;               /* end of the block by a firewall */
    uint8_t blocked_by, walls;           /* number of the wall; walls in a row (wr_plan_firewall_seen) */
    uint8_t lost[WR_ORIGINS];            /* per origin: tag of wr_plan_origin_unreachable; 0: none */
    uint8_t hop;                         /* bit per origin: robots.txt redirects within the host */
    uint8_t asked;                       /* bit per origin: a task fetches the robots.txt */
    uint8_t away;                        /* bit per origin: robots.txt redirects to another host */
    uint8_t expiring_for;                /* reason of the expiry, a weir_reason */
    uint8_t held_by;                     /* reason of the hold: weir_reason or WR_HELD_READY */
    bool hopeless;                       /* report WR_GATE_CHANGE_HOPELESS with the next page */
    bool recalling;                      /* a LOAD of its memory alone is in progress */
    bool remembered;                     /* the store's answer about its memory has come */
    bool steered;                        /* a user paused or paced it: the store is older */
    uint16_t key_bytes;
    uint32_t key_at;                                     /* offset of the key in the memory block */
    uint32_t bytes;                                      /* size of the block: this, gate, key */
    int32_t learned_s, wait_stated_s, breaker_changed_s; /* last change of pace, stated wait, breaker, s; 0: none */
    int64_t held_since;                                  /* since when held_by has been the reason, ns */
    uint64_t lease;                                      /* token of the lease; 0: not leased */
    int64_t leased_until;
    bool lacks_lease; /* nothing is sent until the host is leased */
    uint64_t marked;  /* the caller's beat, see wr_plan_host_set_lease_seen */
    int64_t rested;
    int64_t held_ns; /* see wr_plan_host_was_released; until its first tasks are loaded */
    bool has_rested; /* see wr_plan_host_was_released; until its memory has come */
    bool yields;
    struct wr_plan_waited waited; /* all waits of its next tasks, ms by reason */
    struct wr_plan_waited taken;  /* part of `waited` booked to pages that started or ended */
    struct wr_host_figures figures;
};

struct wr_job {
    struct wr_plan_job options;
    struct wr_list ready;       /* host queues that can start a page */
    struct wr_list host_queues; /* all host queues of the job */
    uint32_t in_flight;
    int64_t open;                      /* tasks accepted and not ended, in memory or in the store */
    uint64_t left[WR_BUDGET_KINDS];    /* pages and bytes granted and not used */
    uint64_t granted[WR_BUDGET_KINDS]; /* pages and bytes of the last grant */
    uint64_t owed_bytes;               /* bytes fetched beyond the grants: a page may be larger */
    bool is_last[WR_BUDGET_KINDS], drawing[WR_BUDGET_KINDS];
    int64_t hosts_after;   /* id of the last host that HOSTS listed */
    int64_t hosts_at;      /* no HOSTS before this time: there was no room */
    int64_t hosts_wait_ns; /* last wait before HOSTS; 0: a host found room since */
    uint32_t found;        /* hosts that this pass over the store brought */
    bool listing;          /* HOSTS is in progress */
    bool dormant;          /* the store may have hosts that are not in memory */
    bool missed;           /* a host found no room since this pass began */
    bool full;             /* a host found no room in the current answer to HOSTS */
    weir_reason paused;    /* why nothing of it starts; NONE: it is not paused */
    bool ended, timed_out;
    int64_t limited_at;                      /* last time that its limits delayed a start */
    struct wr_list_link *next_to_reschedule; /* next host queue whose host to reschedule */
    bool says_drained, says_over;            /* DRAINED or OVER is due */
    enum wr_budget_kind over;
};

struct wr_plan {
    struct wr_plan_options options;
    struct wr_statuses statuses;
    struct wr_rng rng;
    struct wr_map hosts;
    struct wr_heap timed;
    struct wr_heap largest; /* hosts by bytes of their rules, largest first, without small ones */
    struct wr_map groups;
    struct wr_heap groups_timed;
    struct wr_list idle_groups;
    struct wr_plan_host *called; /* host that its group calls now; it need not wait */
    struct wr_list urgent, idle, expiring, unsaved, loads, recalls;
    struct wr_job *jobs; /* max_jobs entries; id 0: free */
    uint32_t places;     /* entries of `jobs` ever used, from the first */
    uint32_t turn;       /* index of the job whose turn it is */
    bool is_pages_turn;  /* the next action is a page; false: a robots.txt or its redirect */
    struct wr_pool pool;
    struct wr_known_urls known;
    struct wr_variants variants;
    size_t gate_bytes;
    uint32_t in_flight;
    uint32_t host_queues; /* host queues with tasks in memory or in the store */
    int64_t hold_until;
    int64_t full_at;  /* last time at which max_in_flight or a hold stopped starts */
    bool starved;     /* a LOAD found no room, and no task has ended since */
    uint32_t loading; /* LOADs in progress, at most max_loads */
    struct wr_plan_stats stats;
    size_t host_bytes_sum;
    size_t rules_bytes;
    char url[WR_URL_ROOM];
};

/* ---- hosts.c ---- */

static inline const weir_pace_options *wr_host_pace_options(const struct wr_plan *plan, const struct wr_plan_host *host)
{
    return host->pace != NULL ? host->pace : &plan->options.pace;
}

static inline struct wr_gate *wr_host_gate_of(struct wr_plan_host *host)
{
    return (struct wr_gate *)(host + 1);
}

/* Finds or makes a host. Returns 0, WEIR_E_FULL or WEIR_E_NOMEM. */
int wr_host_get_or_make(struct wr_plan *plan, struct wr_span key, int64_t now, struct wr_plan_host **ret_host);
int wr_host_queue_get_or_make(struct wr_plan *plan, struct wr_plan_host *host, struct wr_job *job,
                              struct wr_host_queue **ret_lane);
struct wr_host_queue *wr_host_queue_find(const struct wr_plan_host *host, const struct wr_job *job);
void wr_host_queue_free(struct wr_plan *plan, struct wr_host_queue *host_queue);
/* Frees all hosts. */
void wr_hosts_free(struct wr_plan *plan);
/* Makes room in a heap of `count` items for one more, so that a push never fails. */
int wr_heap_make_room(struct wr_heap *heap, size_t count);
/* Sets or removes the rules of an origin, and passes the Crawl-delay to the gate. */
void wr_host_set_rules(struct wr_plan *plan, struct wr_plan_host *host, bool is_https, struct wr_robots *rules,
                       int64_t now);
/* Sets the interval that a user chose; 0: none. WEIR_E_NOMEM leaves it unchanged. */
int wr_host_set_pace(struct wr_plan *plan, struct wr_plan_host *host, int64_t interval_ns);
/* Returns true if there is room for the rules. If necessary evicts idle hosts, or drops the rules
 * of the host that has the most, if it has more than this one would have. */
bool wr_rules_fit(struct wr_plan *plan, const struct wr_plan_host *host, bool is_https, const struct wr_robots *rules,
                  int64_t now);

static inline bool wr_host_is_blocked(const struct wr_plan_host *host, int64_t now)
{
    return now < host->blocked_until;
}

/* Removes a host from memory, without a check that it is idle. */
void wr_host_remove(struct wr_plan *plan, struct wr_plan_host *host, int64_t now);

/* ---- lease.c ---- */

/* Returns true if the lease, if one is needed, allows a request now. */
bool wr_host_is_leased(const struct wr_plan *plan, const struct wr_plan_host *host, int64_t now);
/* Returns true if the host needs a lease and has none. */
bool wr_host_lacks_lease(const struct wr_plan *plan, const struct wr_plan_host *host);

/* ---- jobs.c ---- */

/* Drops all tasks from memory, except those in flight. */
void wr_host_queue_drop_tasks(struct wr_plan *plan, struct wr_host_queue *host_queue);

struct wr_job *wr_job_find(const struct wr_plan *plan, uint32_t id);
/* Counts `count` tasks of the job as ended. */
void wr_job_task_ended(struct wr_job *job, int64_t count);
bool wr_job_may_start(const struct wr_job *job);
/* Fills in the next action of a job. Returns false if no job has one. */
bool wr_jobs_next_action(struct wr_plan *plan, int64_t now, struct wr_plan_action *ret_action);
/* Returns the earliest deadline of a job, or time of its next HOSTS. */
int64_t wr_jobs_deadline(const struct wr_plan *plan, int64_t now);

/* ---- host_queue.c ---- */

/* Returns true if no tasks are in memory, none known in the store, and no LOAD is in progress. */
bool wr_host_queue_is_empty(const struct wr_host_queue *host_queue);
/* Lists a host queue for LOAD if it needs tasks. */
void wr_host_queue_list_for_load(struct wr_plan *plan, struct wr_host_queue *host_queue);
void wr_host_queue_push(struct wr_plan *plan, struct wr_host_queue *host_queue, uint32_t number, int64_t now);
/* Puts back, to the front, a task that was not sent. */
void wr_host_queue_push_front(struct wr_plan *plan, struct wr_host_queue *host_queue, uint32_t number, int64_t now);
/* Returns the first task that is due and of an origin in the set `open`, or WR_NO_TASK.
 * wr_host_queue_pop removes it. */
uint32_t wr_host_queue_peek(const struct wr_plan *plan, const struct wr_host_queue *host_queue, uint32_t open,
                            int64_t now);
uint32_t wr_host_queue_pop(struct wr_plan *plan, struct wr_host_queue *host_queue, uint32_t open, int64_t now);
/* Removes the first task of the origin, due or not. Returns WR_NO_TASK if none is left. */
uint32_t wr_host_queue_pop_any(struct wr_plan *plan, struct wr_host_queue *host_queue, bool is_https);
/* Returns true if a task with the fingerprint is in memory. */
bool wr_host_queue_has(const struct wr_plan *plan, const struct wr_host_queue *host_queue, uint64_t fingerprint);
bool wr_host_queue_is_full(const struct wr_host_queue *host_queue);
bool wr_loads_next_action(struct wr_plan *plan, struct wr_plan_action *ret_action);

/* ---- reschedule.c ---- */

/* The status of a host: the work that it can start now, or the reason that it cannot. */
struct wr_host_readiness {
    weir_decision gate;
    struct wr_robots_action life[WR_ORIGINS]; /* robots.txt state of the origins in `wanted` */
    uint32_t wanted;                          /* bit per origin: tasks are queued */
    uint32_t open;                            /* bit per origin: its robots.txt is known */
    uint32_t held;                            /* bit per origin: held by something that may expire */
    int64_t soonest_at;                       /* end of the next backoff; WEIR_FOREVER: none */
    bool lines;                               /* only the gate of its group holds it */
    bool urgent;                              /* a robots.txt or an errand must be sent */
    bool startable;                           /* a page could start if the gate is open */
    weir_reason held_for[WR_ORIGINS];
};

void wr_host_readiness_of(const struct wr_plan *plan, struct wr_plan_host *host, int64_t now,
                          struct wr_host_readiness *ret_standing);
/* Returns the least time until the host's next start after this one; WEIR_FOREVER: nothing is
 * left. */
int64_t wr_host_next_start_ns(const struct wr_plan *plan, struct wr_plan_host *host, int64_t now);
/* Reschedules a host: puts it into the heap or list of its status. */
void wr_host_reschedule(struct wr_plan *plan, struct wr_plan_host *host, int64_t now);
/* Removes a host from the heap and the lists, but leaves it in the queue of its group. */
void wr_host_unschedule(struct wr_plan *plan, struct wr_plan_host *host);

/* ---- group.c ---- */

/* Asks the gate of the host's group, if it has one. QUEUE: other hosts wait before it. */
weir_decision wr_group_ask(const struct wr_plan *plan, const struct wr_plan_host *host, int64_t now);
/* Adds the host to the queue of its group, or removes it. In the queue it keeps its place. */
void wr_group_set_waiting(struct wr_plan_host *host, bool waits);
/* Calls the first host in the queue if the group's gate is open, else sets the timer. `group` may
 * be NULL. */
void wr_group_reschedule(struct wr_plan *plan, struct wr_group *group, int64_t now);
/* Serves groups whose time has come, a few at a time. Returns true if more are left. */
bool wr_groups_move_due(struct wr_plan *plan, int64_t now);
/* Moves a host to a group; an empty key: to none. WEIR_E_FULL and WEIR_E_NOMEM leave the host
 * unchanged. */
int wr_group_join(struct wr_plan *plan, struct wr_plan_host *host, struct wr_span key, int64_t now);
void wr_group_leave(struct wr_plan *plan, struct wr_plan_host *host);
void wr_groups_free(struct wr_plan *plan);
bool wr_group_ok(const struct wr_plan *plan, struct wr_group *group);

/* Report the events of a request to the group's gate, as to the host's gate. */
void wr_group_reserve(struct wr_plan *plan, struct wr_plan_host *host, struct wr_task *task, int64_t now);
weir_decision wr_group_may_send(struct wr_plan *plan, struct wr_plan_host *host, struct wr_task *task, int64_t now);
void wr_group_sent(const struct wr_plan *plan, struct wr_plan_host *host, struct wr_task *task, int64_t now);
void wr_group_drop(const struct wr_plan *plan, struct wr_plan_host *host, struct wr_task *task, int64_t now);
void wr_group_tell(const struct wr_plan *plan, struct wr_plan_host *host, struct wr_task *task,
                   const weir_outcome *outcome, double unit, int64_t now);
void wr_group_tell_head(const struct wr_plan *plan, struct wr_plan_host *host, const struct wr_task *task,
                        const weir_outcome *outcome, double unit, int64_t now);
/* Returns the gate of the host's group; NULL if it has no group. */
struct wr_gate *wr_group_gate(const struct wr_plan_host *host);
int64_t wr_group_delay(const struct wr_plan *plan, const struct wr_plan_host *host, int64_t now);

/* ---- report.c ---- */

#define WR_HELD_READY WR_PLAN_REASONS /* value of held_by for a host that could start */

/* Records what holds the host from now on. */
void wr_host_set_held_by(const struct wr_plan *plan, struct wr_plan_host *host, uint8_t by, int64_t now);
/* Returns how long the host's next task has waited so far. */
struct wr_plan_waited wr_host_waited(const struct wr_plan *plan, struct wr_plan_host *host, int64_t now);
/* Returns how long the host's next task, which starts or ends now, has waited. */
struct wr_plan_waited wr_task_waited(const struct wr_plan *plan, struct wr_plan_host *host, const struct wr_task *task,
                                     int64_t now);
/* Counts a start, which must be `least_ns` after the last. Returns true if it came too soon. */
bool wr_host_figures_sent(struct wr_host_figures *figures, int64_t least_ns, int64_t now);
void wr_host_figures_finished(struct wr_host_figures *figures, int status, bool is_rejection);
/* Returns the starts in each slice of time, oldest first; the last slice is not over. */
void wr_host_figures_recent(const struct wr_host_figures *figures, int64_t now, uint16_t ret_starts[WR_PLAN_SLICES]);
/* Records when a response changed the pace, wait or breaker, and calls the `news` callback. */
void wr_host_note_gate_changes(const struct wr_plan *plan, struct wr_plan_host *host, uint32_t news, int status,
                               int64_t now);

/* ---- in_flight.c ---- */

/* Reserves a start at the host's gate, and its group's, for a task. */
void wr_task_reserve(struct wr_plan *plan, struct wr_plan_host *host, uint32_t number, int64_t now);
/* Frees a task. If it is a page, its job counts it as ended. */
void wr_task_end(struct wr_plan *plan, uint32_t number);

static inline bool wr_task_is_https(const struct wr_task *task)
{
    return (task->flags & WR_TASK_HTTPS) != 0;
}

#endif
