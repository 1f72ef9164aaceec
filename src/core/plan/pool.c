/* SPDX-License-Identifier: MIT */
/* pool.c - allocates tasks and their text, and queues tasks. */
#include "core/plan/pool.h"

#include "base/alloc.h"
#include "base/bits.h"

#include <assert.h>
#include <stdalign.h>
#include <weir/error.h>

static uint32_t blocks_for(size_t count)
{
    return (uint32_t)(wr_round_up(count, WR_POOL_BLOCK) / WR_POOL_BLOCK);
}

int wr_pool_init(struct wr_pool *ret_pool, const weir_allocator *allocator, uint32_t tasks, size_t text_bytes)
{
    struct wr_pool pool = {.allocator = allocator, .free_task = WR_NO_TASK, .free_cell = WR_NO_TASK};
    pool.task_blocks_max = blocks_for(tasks);
    pool.cell_blocks_max = blocks_for(text_bytes / WR_CELL_TEXT + 1);
    pool.tasks = wr_alloc_array(allocator, pool.task_blocks_max, sizeof(void *), alignof(void *));
    pool.cells = wr_alloc_array(allocator, pool.cell_blocks_max, sizeof(void *), alignof(void *));
    *ret_pool = pool;
    if (pool.tasks != NULL && pool.cells != NULL)
        return 0;
    wr_pool_release(ret_pool);
    return WEIR_E_NOMEM;
}

void wr_pool_release(struct wr_pool *pool)
{
    const weir_allocator *allocator = pool->allocator;
    for (uint32_t i = 0; i < pool->task_blocks; i++)
        wr_free(allocator, pool->tasks[i], WR_POOL_BLOCK * sizeof(struct wr_task), alignof(struct wr_task));
    for (uint32_t i = 0; i < pool->cell_blocks; i++)
        wr_free(allocator, pool->cells[i], WR_POOL_BLOCK * sizeof(struct wr_text_cell), alignof(struct wr_text_cell));
    wr_free(allocator, pool->tasks, pool->task_blocks_max * sizeof(void *), alignof(void *));
    wr_free(allocator, pool->cells, pool->cell_blocks_max * sizeof(void *), alignof(void *));
    *pool = (struct wr_pool){.allocator = allocator};
}

static struct wr_text_cell *cell_at(const struct wr_pool *pool, uint32_t number)
{
    return &pool->cells[number / WR_POOL_BLOCK][number % WR_POOL_BLOCK];
}

static int add_task_block(struct wr_pool *pool)
{
    if (pool->task_blocks == pool->task_blocks_max)
        return WEIR_E_FULL;
    struct wr_task *block = wr_alloc_array(pool->allocator, WR_POOL_BLOCK, sizeof *block, alignof(struct wr_task));
    if (block == NULL)
        return WEIR_E_NOMEM;
    uint32_t first = pool->task_blocks * WR_POOL_BLOCK;
    pool->tasks[pool->task_blocks++] = block;
    for (uint32_t i = WR_POOL_BLOCK; i-- > 0;) {
        block[i].next = pool->free_task;
        pool->free_task = first + i;
    }
    return 0;
}

static int add_cell_block(struct wr_pool *pool)
{
    if (pool->cell_blocks == pool->cell_blocks_max)
        return WEIR_E_FULL;
    struct wr_text_cell *block =
        wr_alloc_array(pool->allocator, WR_POOL_BLOCK, sizeof *block, alignof(struct wr_text_cell));
    if (block == NULL)
        return WEIR_E_NOMEM;
    uint32_t first = pool->cell_blocks * WR_POOL_BLOCK;
    pool->cells[pool->cell_blocks++] = block;
    for (uint32_t i = WR_POOL_BLOCK; i-- > 0;) {
        block[i].next = pool->free_cell;
        pool->free_cell = first + i;
    }
    return 0;
}

static void free_text_cells(struct wr_pool *pool, uint32_t number)
{
    while (number != WR_NO_TASK) {
        struct wr_text_cell *cell = cell_at(pool, number);
        uint32_t next = cell->next;
        cell->next = pool->free_cell;
        pool->free_cell = number;
        pool->used_cells--;
        number = next;
    }
}

/* Copies the text from its end to its start, so that each cell can refer to the next. */
static int take_text_cells(struct wr_pool *pool, struct wr_span text, uint32_t *ret_first)
{
    uint32_t first = WR_NO_TASK;
    for (size_t end = text.bytes; end > 0;) {
        size_t bytes = (end - 1) % WR_CELL_TEXT + 1;
        int error = pool->free_cell == WR_NO_TASK ? add_cell_block(pool) : 0;
        if (error != 0) {
            free_text_cells(pool, first);
            return error;
        }
        uint32_t number = pool->free_cell;
        struct wr_text_cell *cell = cell_at(pool, number);
        pool->free_cell = cell->next;
        pool->used_cells++;
        cell->next = first;
        memcpy(cell->text, text.data + end - bytes, bytes);
        first = number;
        end -= bytes;
    }
    *ret_first = first;
    return 0;
}

int wr_pool_take(struct wr_pool *pool, struct wr_span text, uint32_t *ret_number)
{
    uint32_t first;
    assert(text.bytes <= UINT16_MAX);
    int error = pool->free_task == WR_NO_TASK ? add_task_block(pool) : 0;
    if (error == 0)
        error = take_text_cells(pool, text, &first);
    if (error != 0)
        return error;
    *ret_number = pool->free_task;
    struct wr_task *task = wr_task_at(pool, *ret_number);
    pool->free_task = task->next;
    pool->used++;
    *task = (struct wr_task){.next = WR_NO_TASK,
                             .text = first,
                             .text_bytes = (uint16_t)text.bytes,
                             .order = pool->orders++,
                             .flags = WR_TASK_USED};
    return 0;
}

void wr_pool_give(struct wr_pool *pool, uint32_t number)
{
    struct wr_task *task = wr_task_at(pool, number);
    assert((task->flags & WR_TASK_USED) != 0);
    free_text_cells(pool, task->text);
    *task = (struct wr_task){.next = pool->free_task};
    pool->free_task = number;
    pool->used--;
}

int wr_pool_reserve(struct wr_pool *pool, uint32_t count)
{
    int error = 0;
    while (error == 0 && pool->task_blocks * (size_t)WR_POOL_BLOCK < (size_t)pool->used + count)
        error = add_task_block(pool);
    while (error == 0 && pool->cell_blocks * (size_t)WR_POOL_BLOCK < (size_t)pool->used_cells + count)
        error = add_cell_block(pool);
    return error;
}

void wr_pool_text(const struct wr_pool *pool, const struct wr_task *task, char *memory)
{
    size_t at = 0;
    for (uint32_t number = task->text; number != WR_NO_TASK; number = cell_at(pool, number)->next) {
        size_t left = task->text_bytes - at;
        size_t bytes = left < WR_CELL_TEXT ? left : WR_CELL_TEXT;
        memcpy(memory + at, cell_at(pool, number)->text, bytes);
        at += bytes;
    }
}

size_t wr_pool_bytes(const struct wr_pool *pool)
{
    return pool->task_blocks_max * sizeof(void *) + pool->cell_blocks_max * sizeof(void *) +
           (size_t)pool->task_blocks * WR_POOL_BLOCK * sizeof(struct wr_task) +
           (size_t)pool->cell_blocks * WR_POOL_BLOCK * sizeof(struct wr_text_cell);
}

/* ---- queues ---- */

void wr_tasks_push(struct wr_pool *pool, struct wr_tasks *tasks, uint32_t number)
{
    wr_task_at(pool, number)->next = WR_NO_TASK;
    if (tasks->count++ == 0)
        tasks->first = number;
    else
        wr_task_at(pool, tasks->last)->next = number;
    tasks->last = number;
}

void wr_tasks_push_front(struct wr_pool *pool, struct wr_tasks *tasks, uint32_t number)
{
    wr_task_at(pool, number)->next = tasks->first;
    tasks->first = number;
    if (tasks->count++ == 0)
        tasks->last = number;
}

void wr_tasks_insert(struct wr_pool *pool, struct wr_tasks *tasks, uint32_t number)
{
    struct wr_task *task = wr_task_at(pool, number);
    if (tasks->count == 0 || wr_task_at(pool, tasks->last)->at <= task->at) {
        wr_tasks_push(pool, tasks, number);
        return;
    }
    uint32_t before = WR_NO_TASK;
    for (uint32_t n = tasks->first; wr_task_at(pool, n)->at <= task->at; n = wr_task_at(pool, n)->next)
        before = n;
    if (before == WR_NO_TASK) {
        wr_tasks_push_front(pool, tasks, number);
        return;
    }
    task->next = wr_task_at(pool, before)->next;
    wr_task_at(pool, before)->next = number;
    tasks->count++;
}

uint32_t wr_tasks_take(struct wr_pool *pool, struct wr_tasks *tasks, uint32_t before)
{
    uint32_t number = before == WR_NO_TASK ? tasks->first : wr_task_at(pool, before)->next;
    uint32_t next = wr_task_at(pool, number)->next;
    if (before == WR_NO_TASK)
        tasks->first = next;
    else
        wr_task_at(pool, before)->next = next;
    if (tasks->last == number)
        tasks->last = before;
    tasks->count--;
    return number;
}

void wr_tasks_remove(struct wr_pool *pool, struct wr_tasks *tasks, const struct wr_task *task)
{
    uint32_t before = WR_NO_TASK, number = tasks->first;
    while (wr_task_at(pool, number) != task) {
        before = number;
        number = wr_task_at(pool, number)->next;
    }
    wr_tasks_take(pool, tasks, before);
}
