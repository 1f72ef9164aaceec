/* SPDX-License-Identifier: MIT */
/* blocks.h - allocates the memory of a table's shards.
 *
 * A shard's block grows from one kilobyte to dozens while the table fills, and all shards grow at
 * the same time. In malloc's heap every outgrown block would leave a hole, with other objects
 * between the holes: a table of a million keys took 240 bytes per key instead of 88. So blocks are
 * not in a heap:
 *
 *   - A large block consists of whole pages, which are returned to the system when it grows.
 *   - Smaller blocks of equal size share a chunk, which is freed when its last block has grown.
 *
 *     chunk   | link, used | block | block | ... |         used: one bit per block
 *
 * Lock order: the lock is taken while a shard's lock is held; no lock is taken while it is held.
 */
#ifndef WR_LIMITER_TABLE_BLOCKS_H
#define WR_LIMITER_TABLE_BLOCKS_H

#include "base/list.h"
#include "limiter/queue/lock.h"

#include <stdint.h>
#include <weir/memory.h>

#define WR_CACHE_LINE_BYTES 64 /* size of a cache line */
#define WR_BLOCK_PAGE_BYTES 4096
#define WR_BLOCK_SMALL_BYTES (4 * WR_BLOCK_PAGE_BYTES) /* blocks below this size share chunks */

struct wr_blocks {
    const weir_allocator *allocator;
    size_t most; /* limit of blocks in use: one per shard */
    struct wr_lock lock;
    struct wr_list
        /* lists of chunks that have a free block, by the size of a block in cache lines */
        open[WR_BLOCK_SMALL_BYTES / WR_CACHE_LINE_BYTES];
    _Atomic size_t bytes; /* memory taken from the allocator, bytes */
};

struct wr_chunk;

/* `most` (limit of blocks in use) is at least 1. */
void wr_blocks_init(struct wr_blocks *ret_blocks, const weir_allocator *allocator, size_t most);

/* Returns `bytes` rounded up to whole cache lines, or to whole pages for large blocks. */
size_t wr_block_room(size_t bytes);

/* Allocates a block of `room` bytes (a result of wr_block_room), aligned to a cache line, with
 * undefined content. Returns NULL if memory is short. *ret_chunk must be passed to
 * wr_block_give. */
void *wr_block_take(struct wr_blocks *blocks, size_t room, struct wr_chunk **ret_chunk);

void wr_block_give(struct wr_blocks *blocks, void *block, size_t room, struct wr_chunk *chunk);

#endif
