/* SPDX-License-Identifier: MIT */
/* shard.h - a few hundred keys under one lock.
 *
 * A table consists of many small shards. A shard is an open-addressed hash table in one block of
 * memory: one control byte per slot, in groups of 16 that are compared at once, then the slots, in
 * whole cache lines.
 *
 *     control  | tag ... tag | tag ... | ...    0 empty, 1 removed, else 8 bits of the key's hash
 *     slots    | entry | entry | ...            entry: 16-byte header | state | key or its address
 *
 * The control bytes of a million keys are a megabyte and stay in the caches. Most keys are where
 * their hash says, and both lines are prefetched together, so a decision costs about one cache
 * miss. Shards are small and grow by a page, so that growing one delays other requests little and
 * wastes little memory. blocks.h allocates the blocks.
 *
 * Invariants: an entry is found by searching from its home group up to the first group with an
 * empty slot; live + removed slots never fill a block, so there is such a group. All functions
 * except wr_shard_prefetch_unlocked require the shard's lock.
 */
#ifndef WR_LIMITER_TABLE_SHARD_H
#define WR_LIMITER_TABLE_SHARD_H

#include "base/alloc.h"
#include "base/bits.h"
#include "limiter/queue/queue.h"
#include "limiter/table/blocks.h"

#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define WR_GROUP_SLOTS 16
#define WR_CONTROL_EMPTY 0
#define WR_CONTROL_REMOVED 1

struct wr_entry {
    uint32_t hash; /* low 32 bits of the hash; gives the home group when the block grows */
    uint16_t key_bytes;
    uint8_t plan;
    uint8_t flags;
    uint32_t used_at; /* time of the last use, in ticks of the table */
    uint32_t denied;  /* number of refusals; stops at UINT32_MAX */
    /* the state and the key follow */
};

#define WR_ENTRY_WAITED_FOR 1  /* the key has a queue of waiters */
#define WR_ENTRY_ASKED_TWICE 2 /* the key was requested more than once */

/* Layout of an entry, the same for all entries of a table. */
struct wr_layout {
    uint32_t entry_bytes;  /* size of an entry; a multiple of a cache line */
    uint32_t key_offset;   /* offset of the key, or of the pointer to it */
    uint32_t inline_bytes; /* longest key stored in the entry itself */
};

/* Queues of callers that wait for keys of a shard. */
struct wr_key_queue;

/* The memory of a shard's entries. */
struct wr_block {
    uint32_t groups;  /* number of groups; 0: nothing is allocated */
    uint8_t *control; /* start of the memory block */
    struct wr_chunk *chunk;
    unsigned char *slots; /* start of the slots, in the same memory block */
};

struct wr_shard {
    _Alignas(WR_CACHE_LINE_BYTES) struct wr_lock lock;
    /* copies of block.groups and block.control, read by wr_shard_prefetch_unlocked without the
     * lock */
    _Atomic uint32_t hint_groups;
    _Atomic(uint8_t *) hint_control;
    struct wr_block block;
    uint64_t acquired, rejected;
    struct wr_key_queue *lines;
    uint32_t live, removed; /* numbers of slots in use, and of removed ones */
    bool closed;
    bool plan_set; /* index of the table's plan set that is in force here */
    /* The members below are rarely used. */
    uint32_t hand; /* slot at which the search for a key to evict continues */
    uint64_t keys_created, keys_removed, keys_evicted, overflowed;
    size_t long_key_bytes; /* memory of keys that are not inline, bytes */
};

static inline void *wr_entry_state(struct wr_entry *entry)
{
    return entry + 1;
}

/* Records that the state of an entry changes. */
static inline void wr_entry_use(struct wr_entry *entry, uint32_t tick)
{
    entry->used_at = tick > entry->used_at ? tick : entry->used_at;
}

/* Records that a key was requested again. */
static inline void wr_entry_touch(struct wr_entry *entry, uint32_t tick)
{
    wr_entry_use(entry, tick);
    entry->flags |= WR_ENTRY_ASKED_TWICE;
}

/* Counts a refusal. */
static inline void wr_entry_deny(struct wr_entry *entry)
{
    entry->denied += entry->denied != UINT32_MAX;
}

static inline const char *wr_entry_key(const struct wr_entry *entry, const struct wr_layout *layout)
{
    const unsigned char *at = (const unsigned char *)entry + layout->key_offset;
    if (entry->key_bytes <= layout->inline_bytes)
        return (const char *)at;
    const char *key;
    memcpy(&key, at, sizeof key);
    return key;
}

static inline struct wr_entry *wr_shard_entry_at(const struct wr_block *block, const struct wr_layout *layout,
                                                 size_t slot)
{
    return (struct wr_entry *)(void *)(block->slots + slot * layout->entry_bytes);
}

/* Returns 2 ... 255, from hash bits that select neither shard nor group. */
static inline uint8_t wr_hash_tag(uint64_t hash)
{
    uint8_t tag = (uint8_t)(hash >> 32);
    return (uint8_t)(tag + (tag < 2 ? 2 : 0));
}

/* Returns the group at which the search for a key begins. */
static inline uint32_t wr_home_group(uint32_t groups, uint32_t hash)
{
    return (uint32_t)((uint64_t)hash * groups >> 32);
}

/* Returns the first slot (even, within the home group) of a key's pair: two slots preferred for
 * it. */
static inline uint32_t wr_home_slot_pair(uint32_t hash)
{
    return hash % (WR_GROUP_SLOTS / 2) * 2;
}

/* Returns a bit for each of the group's 16 control bytes that equals `byte`. */
static inline uint32_t wr_control_match(const uint8_t *group, uint8_t byte)
{
#if defined(__SSE2__)
    __m128i bytes = _mm_load_si128((const __m128i *)(const void *)group);
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8((char)byte)));
#else
    uint32_t bits = 0;
    for (uint32_t i = 0; i < WR_GROUP_SLOTS; i++)
        bits |= (uint32_t)(group[i] == byte) << i;
    return bits;
#endif
}

static inline uint64_t wr_differ8(const char *a, const char *b)
{
    uint64_t x, y;
    memcpy(&x, a, 8);
    memcpy(&y, b, 8);
    return x ^ y;
}

/* Compares keys, without a loop for common lengths: if the hash is equal, the key nearly always
 * is. */
static inline bool wr_same_key(const char *a, const char *b, size_t bytes)
{
    if (bytes >= 16 && bytes <= 32)
        return (wr_differ8(a, b) | wr_differ8(a + 8, b + 8) | wr_differ8(a + bytes - 16, b + bytes - 16) |
                wr_differ8(a + bytes - 8, b + bytes - 8)) == 0;
    if (bytes >= 8 && bytes < 16)
        return (wr_differ8(a, b) | wr_differ8(a + bytes - 8, b + bytes - 8)) == 0;
    return memcmp(a, b, bytes) == 0;
}

static inline bool wr_entry_is(const struct wr_entry *entry, const struct wr_layout *layout, uint64_t hash,
                               const char *key, size_t key_bytes)
{
    return entry->hash == (uint32_t)hash && entry->key_bytes == key_bytes &&
           wr_same_key(wr_entry_key(entry, layout), key, key_bytes);
}

/* Returns the key's entry; NULL if it does not exist. */
struct wr_entry *wr_shard_find(const struct wr_shard *shard, const struct wr_layout *layout, uint64_t hash,
                               const char *key, size_t key_bytes);

/* Returns the size of the control bytes, in whole cache lines. The slots follow them. */
static inline size_t wr_control_bytes(uint32_t groups)
{
    return wr_round_up((size_t)groups * WR_GROUP_SLOTS, WR_CACHE_LINE_BYTES);
}

/* Prefetches the control bytes of a key and its pair of slots, where three of four keys are; the
 * misses overlap. Needs no lock: outdated values only make the prefetch useless. */
static inline void wr_shard_prefetch_unlocked(const struct wr_shard *shard, const struct wr_layout *layout,
                                              uint64_t hash)
{
    uint32_t groups = atomic_load_explicit(&shard->hint_groups, memory_order_relaxed);
    uintptr_t control = (uintptr_t)atomic_load_explicit(&shard->hint_control, memory_order_relaxed);
    size_t first = (size_t)wr_home_group(groups, (uint32_t)hash) * WR_GROUP_SLOTS;
    uintptr_t pair =
        control + wr_control_bytes(groups) + (first + wr_home_slot_pair((uint32_t)hash)) * layout->entry_bytes;
    __builtin_prefetch((const void *)(control + first));
    __builtin_prefetch((const void *)pair, 1);
    __builtin_prefetch((const void *)(pair + layout->entry_bytes), 1);
}

/* Returns the likely entry of a hash: the first slot of its home group with its tag. NULL if there
 * is no such slot. */
static inline struct wr_entry *wr_shard_likely_entry(const struct wr_shard *shard, const struct wr_layout *layout,
                                                     uint64_t hash)
{
    const struct wr_block *block = &shard->block;
    if (__builtin_expect(block->groups == 0, 0))
        return NULL;
    size_t first = (size_t)wr_home_group(block->groups, (uint32_t)hash) * WR_GROUP_SLOTS;
    uint32_t hits = wr_control_match(block->control + first, wr_hash_tag(hash));
    if (__builtin_expect(hits == 0, 0))
        return NULL;
    return wr_shard_entry_at(block, layout, first + (uint32_t)__builtin_ctz(hits));
}

/* Returns the key's entry if it is the likely one. NULL means that it may be elsewhere. */
static inline struct wr_entry *wr_shard_find_fast(const struct wr_shard *shard, const struct wr_layout *layout,
                                                  uint64_t hash, const char *key, size_t key_bytes)
{
    struct wr_entry *entry = wr_shard_likely_entry(shard, layout, hash);
    bool is = entry != NULL && wr_entry_is(entry, layout, hash, key, key_bytes);
    return __builtin_expect(is, 1) ? entry : NULL;
}

/* Like wr_shard_find_fast, for entries of many cache lines: prefetches all lines together. */
static inline struct wr_entry *wr_shard_find_fast_large(const struct wr_shard *shard, const struct wr_layout *layout,
                                                        uint64_t hash, const char *key, size_t key_bytes)
{
    struct wr_entry *entry = wr_shard_likely_entry(shard, layout, hash);
    if (__builtin_expect(entry == NULL, 0))
        return NULL;
    for (uint32_t at = layout->entry_bytes; at > 0; at -= WR_CACHE_LINE_BYTES)
        __builtin_prefetch((const char *)entry + at - WR_CACHE_LINE_BYTES, 1);
    return __builtin_expect(wr_entry_is(entry, layout, hash, key, key_bytes), 1) ? entry : NULL;
}

/* Prefetches the lines needed to find this key. The lock must be held, as the block may be replaced
 * otherwise. */
void wr_shard_prefetch(const struct wr_shard *shard, const struct wr_layout *layout, uint64_t hash);

/* Adds a key that must not exist yet, with zeroed state. Returns NULL if memory is short; then
 * nothing has changed. */
struct wr_entry *wr_shard_add(struct wr_shard *shard, const struct wr_layout *layout, struct wr_blocks *blocks,
                              uint64_t hash, const char *key, size_t key_bytes);

/* Removes an existing entry. */
void wr_shard_remove(struct wr_shard *shard, const struct wr_layout *layout, struct wr_blocks *blocks,
                     struct wr_entry *entry);

/* Frees the block and all keys. */
void wr_shard_release(struct wr_shard *shard, const struct wr_layout *layout, struct wr_blocks *blocks);

/* Iterates over the entries; *slot is 0 at first. Returns the next entry and advances *slot; NULL
 * at the end. */
struct wr_entry *wr_shard_next(const struct wr_shard *shard, const struct wr_layout *layout, size_t *slot);

#endif
