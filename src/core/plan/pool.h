/* SPDX-License-Identifier: MIT */
/* pool.h - holds the tasks in memory and their text, in blocks that are allocated when first
 * needed, and kept.
 *
 * A task is identified by its number. Its path and query are in a chain of cells; most fit into
 * one.
 */
#ifndef WR_CORE_PLAN_POOL_H
#define WR_CORE_PLAN_POOL_H

#include "base/span.h"

#include <stdint.h>
#include <weir/memory.h>

#define WR_NO_TASK UINT32_MAX
#define WR_POOL_BLOCK 1024 /* tasks or cells per block */
#define WR_CELL_TEXT 60

enum wr_task_flags {
    WR_TASK_HTTPS = 1,
    WR_TASK_ROBOTS = 2, /* the task fetches the host's robots.txt */
    WR_TASK_ROBOTS_HOP = 4,
    WR_TASK_SENT = 8, /* sent; without it, a task in flight is reserved */
    /* Counted as sent before it was written, because the host's starts are not spaced. */
    WR_TASK_UNSPACED = 16,
    WR_TASK_USED = 32,      /* the pool entry is in use */
    WR_TASK_IN_FLIGHT = 64, /* the request is in flight: the caller has it */
    WR_TASK_GROUPED = 128,  /* in flight, and counted at the group of its host */
};

struct wr_task {
    uint64_t fingerprint; /* fingerprint of the URL, or tag of an errand */
    int64_t at;           /* queued: earliest start; sent: time of sending */
    void *owner;          /* its host queue; for errands and robots.txt, the host */
    uint32_t next;        /* next task in its queue */
    uint32_t text;        /* number of the first cell of its text */
    uint32_t seq;         /* number of its start at the gate; queued: arrival, ms mod 2^32 */
    uint32_t group_seq;   /* number of its start at the group's gate */
    uint16_t in_flight;   /* requests in flight at its start, at most UINT16_MAX */
    uint16_t group_in_flight;
    uint32_t order; /* order of loading, for first come, first served */
    uint16_t text_bytes;
    uint16_t depth;
    uint8_t hops, failures, blocks, flags;
};

/* Returns a number of requests in flight, clamped to what a task can store. */
static inline uint16_t wr_task_clamp(uint32_t in_flight)
{
    return (uint16_t)(in_flight < UINT16_MAX ? in_flight : UINT16_MAX);
}

/* A queue of tasks: first in, first out, or sorted by `at`. */
struct wr_tasks {
    uint32_t first, last;
    uint32_t count;
};

struct wr_text_cell {
    uint32_t next;
    char text[WR_CELL_TEXT];
};

struct wr_pool {
    const weir_allocator *allocator;
    struct wr_task **tasks; /* blocks of WR_POOL_BLOCK tasks */
    struct wr_text_cell **cells;
    uint32_t task_blocks, cell_blocks;         /* blocks allocated so far */
    uint32_t task_blocks_max, cell_blocks_max; /* length of the arrays of pointers */
    uint32_t free_task, free_cell;             /* first task and cell of the chains of free ones */
    uint32_t used, used_cells, orders;
};

/* Makes a pool. Returns 0 or WEIR_E_NOMEM. */
int wr_pool_init(struct wr_pool *ret_pool, const weir_allocator *allocator, uint32_t tasks, size_t text_bytes);
void wr_pool_release(struct wr_pool *pool);

static inline struct wr_task *wr_task_at(const struct wr_pool *pool, uint32_t number)
{
    return &pool->tasks[number / WR_POOL_BLOCK][number % WR_POOL_BLOCK];
}

/* Takes a task with this text; all else is zero except the flag USED. Returns 0, WEIR_E_FULL or
 * WEIR_E_NOMEM. */
int wr_pool_take(struct wr_pool *pool, struct wr_span text, uint32_t *ret_number);
void wr_pool_give(struct wr_pool *pool, uint32_t number);

/* Allocates memory for `count` more tasks whose text fits into one cell, as that of a robots.txt
 * does: the next `count` such calls of wr_pool_take cannot fail. Returns 0, WEIR_E_FULL or
 * WEIR_E_NOMEM. */
int wr_pool_reserve(struct wr_pool *pool, uint32_t count);

/* Copies the text of a task to `memory`, which must have room for text_bytes. */
void wr_pool_text(const struct wr_pool *pool, const struct wr_task *task, char *memory);

size_t wr_pool_bytes(const struct wr_pool *pool);

/* ---- queues ---- */

#define WR_TASKS_NONE ((struct wr_tasks){WR_NO_TASK, WR_NO_TASK, 0})

void wr_tasks_push(struct wr_pool *pool, struct wr_tasks *tasks, uint32_t number);
void wr_tasks_push_front(struct wr_pool *pool, struct wr_tasks *tasks, uint32_t number);
/* Inserts a task by its time `at`, after those with the same time. */
void wr_tasks_insert(struct wr_pool *pool, struct wr_tasks *tasks, uint32_t number);
/* Removes a task, wherever it is in the queue. */
void wr_tasks_remove(struct wr_pool *pool, struct wr_tasks *tasks, const struct wr_task *task);
/* Removes the task after `before` (WR_NO_TASK: the first), which must exist. */
uint32_t wr_tasks_take(struct wr_pool *pool, struct wr_tasks *tasks, uint32_t before);

#endif
