/* SPDX-License-Identifier: MIT */
/* blocks.c - allocates the memory of a table's shards. */
#include "limiter/table/blocks.h"

#include "base/alloc.h"
#include "base/bits.h"

#include <assert.h>

#define CHUNK_BYTES ((size_t)64 << 10)
#define BLOCKS_MAX 32 /* blocks per chunk; a larger chunk would rarely become empty */

struct wr_chunk {
    /* link in wr_blocks.open, if a block is free */
    _Alignas(WR_CACHE_LINE_BYTES) struct wr_list_link link;
    uint64_t used;
    uint32_t count; /* number of blocks in the chunk */
};

void wr_blocks_init(struct wr_blocks *ret_blocks, const weir_allocator *allocator, size_t most)
{
    *ret_blocks = (struct wr_blocks){.allocator = allocator, .most = most};
}

static bool is_small(size_t room)
{
    return room < WR_BLOCK_SMALL_BYTES;
}

size_t wr_block_room(size_t bytes)
{
    size_t room = wr_round_up(bytes, WR_CACHE_LINE_BYTES);
    return is_small(room) ? room : wr_round_up(bytes, WR_BLOCK_PAGE_BYTES);
}

/* Returns the blocks of a chunk. A table with few shards has small chunks, as it needs no more
 * blocks than shards. */
static uint32_t blocks_in_chunk(const struct wr_blocks *blocks, size_t room)
{
    size_t count = (CHUNK_BYTES - sizeof(struct wr_chunk)) / room;
    count = count < BLOCKS_MAX ? count : BLOCKS_MAX;
    return (uint32_t)(count < blocks->most ? count : blocks->most);
}

static size_t chunk_bytes(uint32_t count, size_t room)
{
    return sizeof(struct wr_chunk) + count * room;
}

static uint64_t all_used(const struct wr_chunk *chunk)
{
    return (UINT64_C(1) << chunk->count) - 1;
}

static void *take_block_memory(struct wr_blocks *blocks, size_t bytes, size_t align)
{
    void *memory = wr_alloc(blocks->allocator, bytes, align);
    if (memory != NULL)
        (void)atomic_fetch_add_explicit(&blocks->bytes, bytes, memory_order_relaxed);
    return memory;
}

static void give_block_memory(struct wr_blocks *blocks, void *memory, size_t bytes, size_t align)
{
    (void)atomic_fetch_sub_explicit(&blocks->bytes, bytes, memory_order_relaxed);
    wr_free(blocks->allocator, memory, bytes, align);
}

/* ---- small blocks; the lock is held ---- */

static struct wr_chunk *open_chunk(struct wr_blocks *blocks, size_t room)
{
    struct wr_list *open = &blocks->open[room / WR_CACHE_LINE_BYTES];
    if (open->first != NULL)
        return WR_LINKED(open->first, struct wr_chunk, link);
    uint32_t count = blocks_in_chunk(blocks, room);
    struct wr_chunk *chunk = take_block_memory(blocks, chunk_bytes(count, room), WR_CACHE_LINE_BYTES);
    if (chunk == NULL)
        return NULL;
    chunk->count = count;
    wr_list_push(open, &chunk->link);
    return chunk;
}

static void *take_small(struct wr_blocks *blocks, size_t room, struct wr_chunk **ret_chunk)
{
    struct wr_chunk *chunk = open_chunk(blocks, room);
    if (chunk == NULL)
        return NULL;
    unsigned index = (unsigned)__builtin_ctzll(~chunk->used);
    chunk->used |= UINT64_C(1) << index;
    if (chunk->used == all_used(chunk))
        wr_list_remove(&chunk->link);
    *ret_chunk = chunk;
    return (unsigned char *)(chunk + 1) + index * room;
}

static void give_small(struct wr_blocks *blocks, const void *block, size_t room, struct wr_chunk *chunk)
{
    size_t index = (size_t)((const unsigned char *)block - (const unsigned char *)(chunk + 1)) / room;
    assert(index < chunk->count && (chunk->used >> index & 1) != 0);
    chunk->used &= ~(UINT64_C(1) << index);
    wr_list_push(&blocks->open[room / WR_CACHE_LINE_BYTES], &chunk->link);
    if (chunk->used != 0)
        return;
    wr_list_remove(&chunk->link);
    give_block_memory(blocks, chunk, chunk_bytes(chunk->count, room), WR_CACHE_LINE_BYTES);
}

/* ---- all blocks ---- */

void *wr_block_take(struct wr_blocks *blocks, size_t room, struct wr_chunk **ret_chunk)
{
    assert(room == wr_block_room(room));
    if (is_small(room)) {
        wr_lock_take(&blocks->lock);
        void *block = take_small(blocks, room, ret_chunk);
        wr_lock_give(&blocks->lock);
        return block;
    }
    void *block = take_block_memory(blocks, room, WR_BLOCK_PAGE_BYTES);
    if (block != NULL)
        *ret_chunk = NULL;
    return block;
}

void wr_block_give(struct wr_blocks *blocks, void *block, size_t room, struct wr_chunk *chunk)
{
    if (chunk == NULL) {
        give_block_memory(blocks, block, room, WR_BLOCK_PAGE_BYTES);
        return;
    }
    wr_lock_take(&blocks->lock);
    give_small(blocks, block, room, chunk);
    wr_lock_give(&blocks->lock);
}
