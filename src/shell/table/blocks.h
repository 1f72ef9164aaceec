/* SPDX-License-Identifier: MIT */
/* blocks.h - the memory of a table's shards.
 *
 * The block of a shard grows from one kilobyte to dozens while the table fills, and all shards grow at the same time.
 * In the heap of malloc each former block would leave a hole, and other objects lie between the holes: a table of a
 * million keys took 240 bytes per key where 88 are needed. So no block lies in a heap:
 *
 *   - A block of more than a page consists of whole pages, which return to the system when the block has grown.
 *   - Smaller blocks of equal size share a chunk, which is returned when the last of its blocks has grown.
 *
 *     chunk   │ link, used │ block │ block │ … │         used: one bit per block
 *
 * Lock: taken while a shard's lock is held; nothing is locked under it.
 */
#ifndef WR_SHELL_TABLE_BLOCKS_H
#define WR_SHELL_TABLE_BLOCKS_H

#include "base/list.h"
#include "shell/line/lock.h"

#include <stdint.h>
#include <weir/memory.h>

#define WR_LINE_BYTES 64 /* of a cache line */
#define WR_BLOCK_PAGE_BYTES 4096
#define WR_BLOCK_SMALL_BYTES (4 * WR_BLOCK_PAGE_BYTES) /* blocks below this size share chunks */

struct wr_blocks {
    const weir_allocator *allocator;
    size_t most; /* blocks that the table can have at the same time: one per shard */
    struct wr_lock lock;
    struct wr_list
        open[WR_BLOCK_SMALL_BYTES / WR_LINE_BYTES]; /* by the lines of a block: chunks that have a free one */
    _Atomic size_t bytes;                           /* taken from the allocator */
};

struct wr_chunk;

/* `most` is at least 1. */
void wr_blocks_init(struct wr_blocks *ret_blocks, const weir_allocator *allocator, size_t most);

/* The bytes that a block of at least `bytes` really has: whole lines, or whole pages. */
size_t wr_block_room(size_t bytes);

/* A block of `room` bytes, which wr_block_room has returned, aligned to a line. NULL for want of memory. Its content is
 * undefined. *ret_chunk goes back with the block. */
void *wr_block_take(struct wr_blocks *blocks, size_t room, struct wr_chunk **ret_chunk);

void wr_block_give(struct wr_blocks *blocks, void *block, size_t room, struct wr_chunk *chunk);

#endif
