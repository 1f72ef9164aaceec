/* SPDX-License-Identifier: MIT */
/* shard.c - finds, adds and removes the keys of a shard, and grows it. */
#include "limiter/table/shard.h"

#include <assert.h>

/* Limits the load to 13 of 16 slots. Beyond it too many keys lie outside their home group. */
static uint32_t most_slots(uint32_t groups)
{
    return groups * 13;
}

static size_t shard_block_bytes(uint32_t groups, const struct wr_layout *layout)
{
    return wr_control_bytes(groups) + (size_t)groups * WR_GROUP_SLOTS * layout->entry_bytes;
}

static size_t shard_block_room(uint32_t groups, const struct wr_layout *layout)
{
    return wr_block_room(shard_block_bytes(groups, layout));
}

/* Returns at least `groups`: as many as fit into the same memory. */
static uint32_t fill_pages(uint32_t groups, const struct wr_layout *layout)
{
    size_t room = shard_block_room(groups, layout);
    while (shard_block_bytes(groups + 1, layout) <= room)
        groups++;
    return groups;
}

static void give_block(struct wr_shard *shard, const struct wr_layout *layout, struct wr_blocks *blocks)
{
    if (shard->block.groups != 0)
        wr_block_give(blocks, shard->block.control, shard_block_room(shard->block.groups, layout), shard->block.chunk);
}

static size_t slot_of_entry(const struct wr_shard *shard, const struct wr_layout *layout, const struct wr_entry *entry)
{
    return (size_t)((const unsigned char *)entry - shard->block.slots) / layout->entry_bytes;
}

struct wr_entry *wr_shard_find(const struct wr_shard *shard, const struct wr_layout *layout, uint64_t hash,
                               const char *key, size_t key_bytes)
{
    const struct wr_block *block = &shard->block;
    if (block->groups == 0)
        return NULL;
    uint32_t group = wr_home_group(block->groups, (uint32_t)hash);
    for (;;) {
        const uint8_t *control = block->control + (size_t)group * WR_GROUP_SLOTS;
        for (uint32_t hits = wr_control_match(control, wr_hash_tag(hash)); hits != 0; hits &= hits - 1) {
            struct wr_entry *entry =
                wr_shard_entry_at(block, layout, group * WR_GROUP_SLOTS + (uint32_t)__builtin_ctz(hits));
            if (wr_entry_is(entry, layout, hash, key, key_bytes))
                return entry;
        }
        if (wr_control_match(control, WR_CONTROL_EMPTY) != 0)
            return NULL;
        group = group + 1 == block->groups ? 0 : group + 1;
    }
}

/* Returns the slot for a key of this hash: one of its pair if free, or else the first free slot
 * from its home group on. */
static size_t free_slot(const struct wr_block *block, uint32_t hash)
{
    uint32_t group = wr_home_group(block->groups, hash);
    uint32_t wanted = 3u << wr_home_slot_pair(hash);
    for (;; wanted = 0) {
        const uint8_t *control = block->control + (size_t)group * WR_GROUP_SLOTS;
        uint32_t free = wr_control_match(control, WR_CONTROL_EMPTY) | wr_control_match(control, WR_CONTROL_REMOVED);
        free = (free & wanted) != 0 ? free & wanted : free;
        if (free != 0)
            return (size_t)group * WR_GROUP_SLOTS + (uint32_t)__builtin_ctz(free);
        group = group + 1 == block->groups ? 0 : group + 1;
    }
}

/* Moves all entries to a new block. It is larger, unless removed keys take up much of the present
 * one. */
static bool rebuild(struct wr_shard *shard, const struct wr_layout *layout, struct wr_blocks *blocks)
{
    uint32_t groups = shard->block.groups;
    if (groups == 0 || shard->live >= most_slots(groups) - most_slots(groups) / 8)
        groups = fill_pages(groups + groups / 12 + 1, layout);
    struct wr_block grown = {.groups = groups};
    grown.control = wr_block_take(blocks, shard_block_room(groups, layout), &grown.chunk);
    if (grown.control == NULL)
        return false;
    memset(grown.control, WR_CONTROL_EMPTY, wr_control_bytes(groups));
    grown.slots = grown.control + wr_control_bytes(groups);
    size_t slot = 0;
    struct wr_entry *entry;
    while ((entry = wr_shard_next(shard, layout, &slot)) != NULL) {
        size_t to = free_slot(&grown, entry->hash);
        grown.control[to] = shard->block.control[slot - 1];
        memcpy(wr_shard_entry_at(&grown, layout, to), entry, layout->entry_bytes);
    }
    give_block(shard, layout, blocks);
    shard->block = grown;
    atomic_store_explicit(&shard->hint_groups, grown.groups, memory_order_relaxed);
    atomic_store_explicit(&shard->hint_control, grown.control, memory_order_relaxed);
    shard->removed = 0;
    shard->hand = 0;
    return true;
}

static bool store_key(struct wr_shard *shard, struct wr_entry *entry, const struct wr_layout *layout,
                      struct wr_blocks *blocks, const char *key, size_t key_bytes)
{
    unsigned char *at = (unsigned char *)entry + layout->key_offset;
    if (key_bytes <= layout->inline_bytes) {
        memcpy(at, key, key_bytes);
        return true;
    }
    char *copy = wr_alloc(blocks->allocator, key_bytes, 1);
    if (copy == NULL)
        return false;
    memcpy(copy, key, key_bytes);
    memcpy(at, &copy, sizeof copy);
    shard->long_key_bytes += key_bytes;
    return true;
}

static void give_key(struct wr_shard *shard, const struct wr_entry *entry, const struct wr_layout *layout,
                     struct wr_blocks *blocks)
{
    if (entry->key_bytes <= layout->inline_bytes)
        return;
    wr_free(blocks->allocator, (void *)(uintptr_t)wr_entry_key(entry, layout), entry->key_bytes, 1);
    shard->long_key_bytes -= entry->key_bytes;
}

struct wr_entry *wr_shard_add(struct wr_shard *shard, const struct wr_layout *layout, struct wr_blocks *blocks,
                              uint64_t hash, const char *key, size_t key_bytes)
{
    if (shard->live + shard->removed >= most_slots(shard->block.groups) && !rebuild(shard, layout, blocks))
        return NULL;
    size_t slot = free_slot(&shard->block, (uint32_t)hash);
    struct wr_entry *entry = wr_shard_entry_at(&shard->block, layout, slot);
    memset(entry, 0, layout->entry_bytes);
    if (!store_key(shard, entry, layout, blocks, key, key_bytes))
        return NULL;
    entry->hash = (uint32_t)hash;
    entry->key_bytes = (uint16_t)key_bytes;
    shard->removed -= shard->block.control[slot] == WR_CONTROL_REMOVED;
    shard->block.control[slot] = wr_hash_tag(hash);
    shard->live++;
    return entry;
}

void wr_shard_remove(struct wr_shard *shard, const struct wr_layout *layout, struct wr_blocks *blocks,
                     struct wr_entry *entry)
{
    size_t slot = slot_of_entry(shard, layout, entry);
    assert(shard->block.control[slot] > WR_CONTROL_REMOVED);
    give_key(shard, entry, layout, blocks);
    /* A search skips groups without an empty slot. If this one had none, it must not get one
     * now. */
    bool passed_by =
        wr_control_match(shard->block.control + slot / WR_GROUP_SLOTS * WR_GROUP_SLOTS, WR_CONTROL_EMPTY) == 0;
    shard->block.control[slot] = passed_by ? WR_CONTROL_REMOVED : WR_CONTROL_EMPTY;
    shard->removed += passed_by;
    shard->live--;
}

struct wr_entry *wr_shard_next(const struct wr_shard *shard, const struct wr_layout *layout, size_t *slot)
{
    while (*slot < (size_t)shard->block.groups * WR_GROUP_SLOTS) {
        size_t here = (*slot)++;
        if (shard->block.control[here] > WR_CONTROL_REMOVED)
            return wr_shard_entry_at(&shard->block, layout, here);
    }
    return NULL;
}

void wr_shard_prefetch(const struct wr_shard *shard, const struct wr_layout *layout, uint64_t hash)
{
    if (shard->block.groups == 0)
        return;
    uint32_t group = wr_home_group(shard->block.groups, (uint32_t)hash);
    uint32_t hits = wr_control_match(shard->block.control + (size_t)group * WR_GROUP_SLOTS, wr_hash_tag(hash));
    if (hits != 0)
        __builtin_prefetch(
            wr_shard_entry_at(&shard->block, layout, group * WR_GROUP_SLOTS + (uint32_t)__builtin_ctz(hits)), 1);
}

void wr_shard_release(struct wr_shard *shard, const struct wr_layout *layout, struct wr_blocks *blocks)
{
    size_t slot = 0;
    struct wr_entry *entry;
    while ((entry = wr_shard_next(shard, layout, &slot)) != NULL)
        give_key(shard, entry, layout, blocks);
    give_block(shard, layout, blocks);
}
