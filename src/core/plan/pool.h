/* SPDX-License-Identifier: MIT */
/* pool.h - the tasks in memory, and their text, in blocks that are taken when first needed and kept.
 *
 * A task is named by its number. Its path and query lie in a chain of cells: most fit into one.
 */
#ifndef WR_CORE_PLAN_POOL_H
#define WR_CORE_PLAN_POOL_H

#include "base/span.h"

#include <stdint.h>
#include <weir/memory.h>

#define WR_NO_TASK UINT32_MAX
#define WR_POOL_BLOCK 1024 /* tasks, or cells */
#define WR_CELL_TEXT 60

enum wr_task_flags {
    WR_TASK_HTTPS = 1,
    WR_TASK_ROBOTS = 2, /* the host's robots.txt */
    WR_TASK_ERRAND = 4,
    WR_TASK_SENT = 8,      /* else, in flight, it is reserved */
    WR_TASK_LOOSE = 16,    /* counted as sent before it was written: the host does not space its starts */
    WR_TASK_USED = 32,     /* not free */
    WR_TASK_FLIES = 64,    /* in flight: with the caller */
    WR_TASK_GROUPED = 128, /* and counted at its host's group */
};

struct wr_task {
    uint64_t fingerprint; /* an errand's tag */
    int64_t at;           /* queued: not before; sent: when */
    void *owner;          /* its lane; of errands and robots.txt, the host */
    uint32_t next;        /* in its queue */
    uint32_t text;        /* its first cell */
    uint32_t seq;         /* of its start; queued: when it came, in ms, modulo 2^32 */
    uint32_t group_seq;   /* of its start at the group's gate */
    uint16_t in_flight;   /* of its start, at most UINT16_MAX */
    uint16_t group_in_flight;
    uint32_t order; /* of loading: who came first */
    uint16_t text_bytes;
    uint16_t depth;
    uint8_t hops, failures, blocks, flags;
};

/* Requests in flight as a task keeps them. */
static inline uint16_t wr_task_clamp(uint32_t in_flight)
{
    return (uint16_t)(in_flight < UINT16_MAX ? in_flight : UINT16_MAX);
}

/* First in, first out; or in the order of `at`. */
struct wr_tasks {
    uint32_t first, last;
    uint32_t count;
};

struct wr_cell {
    uint32_t next;
    char text[WR_CELL_TEXT];
};

struct wr_pool {
    const weir_allocator *allocator;
    struct wr_task **tasks; /* blocks */
    struct wr_cell **cells;
    uint32_t task_blocks, cell_blocks;         /* taken */
    uint32_t task_blocks_max, cell_blocks_max; /* of which there is room for the pointers */
    uint32_t free_task, free_cell;             /* chains */
    uint32_t used, used_cells, orders;
};

/* WEIR_E_NOMEM. */
int wr_pool_init(struct wr_pool *ret_pool, const weir_allocator *allocator, uint32_t tasks, size_t text_bytes);
void wr_pool_release(struct wr_pool *pool);

static inline struct wr_task *wr_task_at(const struct wr_pool *pool, uint32_t number)
{
    return &pool->tasks[number / WR_POOL_BLOCK][number % WR_POOL_BLOCK];
}

/* A task with this text, all else zero but the flag USED. WEIR_E_FULL, WEIR_E_NOMEM. */
int wr_pool_take(struct wr_pool *pool, struct wr_span text, uint32_t *ret_number);
void wr_pool_give(struct wr_pool *pool, uint32_t number);

/* Takes the memory for `count` more tasks whose text fits into one cell, as that of a robots.txt does: the next `count`
 * such calls of wr_pool_take cannot fail. WEIR_E_FULL, WEIR_E_NOMEM. */
int wr_pool_reserve(struct wr_pool *pool, uint32_t count);

/* Copies the text of a task; `memory` has room for its text_bytes. */
void wr_pool_text(const struct wr_pool *pool, const struct wr_task *task, char *memory);

size_t wr_pool_bytes(const struct wr_pool *pool);

/* ---- queues ---- */

#define WR_TASKS_NONE ((struct wr_tasks){WR_NO_TASK, WR_NO_TASK, 0})

void wr_tasks_push(struct wr_pool *pool, struct wr_tasks *tasks, uint32_t number);
void wr_tasks_push_front(struct wr_pool *pool, struct wr_tasks *tasks, uint32_t number);
/* By its time, after those of the same. */
void wr_tasks_insert(struct wr_pool *pool, struct wr_tasks *tasks, uint32_t number);
/* Takes it out, wherever it is. */
void wr_tasks_remove(struct wr_pool *pool, struct wr_tasks *tasks, const struct wr_task *task);
/* Takes out the one after `before` (WR_NO_TASK: the first), which must be there. */
uint32_t wr_tasks_take(struct wr_pool *pool, struct wr_tasks *tasks, uint32_t before);

#endif
