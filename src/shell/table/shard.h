/* SPDX-License-Identifier: MIT */
/* shard.h - a few hundred keys under one lock.
 *
 * A table is many small shards. A shard is an open-addressed hash table in one block: a byte of control per slot, in
 * groups of 16 that are compared at once, and the slots themselves, which are whole cache lines.
 *
 *     control  │ tag … tag │ tag … tag │ …          0 empty, 1 removed, else 8 bits of the key's hash
 *     slots    │ entry │ entry │ …                  entry: header 16 │ state of the rules │ key, or pointer to it
 *
 * The control bytes of a million keys are a megabyte and stay near, and most keys lie where their hash says; both are
 * fetched at once, so a decision waits about once for memory. Shards are small so that growing one (by a page;
 * memory stays tight) stalls nobody for long. Blocks come from blocks.h.
 *
 * Invariants: entries are found from their home group on, up to the first group with an empty slot; live + removed
 * never fills a block, so there is one. Everything here but wr_shard_hint runs with the shard's lock held.
 */
#ifndef WR_SHELL_TABLE_SHARD_H
#define WR_SHELL_TABLE_SHARD_H

#include "base/alloc.h"
#include "base/bits.h"
#include "shell/line/line.h"
#include "shell/table/blocks.h"

#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define WR_GROUP 16
#define WR_EMPTY 0
#define WR_REMOVED 1

struct wr_entry {
    uint32_t hash; /* its low half: finds the home group again when the block grows */
    uint16_t key_bytes;
    uint8_t plan;
    uint8_t flags;
    uint32_t used_at; /* in ticks of the table */
    uint32_t denied;  /* refusals */
    /* state, key */
};

#define WR_WAITED_FOR 1 /* somebody stands in line for it */
#define WR_PROVEN 2     /* asked for more than once */

/* Sizes that all entries of a table share. */
struct wr_layout {
    uint32_t entry_bytes;  /* a multiple of a cache line */
    uint32_t key_offset;   /* of the key or the pointer to it */
    uint32_t inline_bytes; /* keys up to this are inline */
};

/* The lines of the keys of one shard that are waited for. */
struct wr_key_line;

/* Where the entries of a shard are. */
struct wr_block {
    uint32_t groups;  /* 0: none yet */
    uint8_t *control; /* the memory */
    struct wr_chunk *chunk;
    unsigned char *slots; /* inside it */
};

struct wr_shard {
    _Alignas(WR_LINE_BYTES) struct wr_lock lock;
    _Atomic uint32_t hint_groups; /* these two: the block as wr_shard_hint reads it, without the lock */
    _Atomic(uint8_t *) hint_control;
    struct wr_block block;
    uint64_t acquired, rejected;
    struct wr_key_line *lines;
    uint32_t live, removed; /* slots */
    bool closed;
    bool plan_set; /* which of the table's two sets of plans is in force here */
    /* Cold. */
    uint32_t hand; /* where the search for somebody to evict goes on */
    uint64_t keys_created, keys_removed, keys_evicted, overflowed;
    size_t long_key_bytes; /* of keys that are not inline */
};

static inline void *wr_entry_state(struct wr_entry *entry)
{
    return entry + 1;
}

/* Its state changes. */
static inline void wr_entry_use(struct wr_entry *entry, uint32_t tick)
{
    entry->used_at = tick > entry->used_at ? tick : entry->used_at;
}

/* It was asked for. */
static inline void wr_entry_touch(struct wr_entry *entry, uint32_t tick)
{
    wr_entry_use(entry, tick);
    entry->flags |= WR_PROVEN;
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

static inline struct wr_entry *wr_slot(const struct wr_block *block, const struct wr_layout *layout, size_t slot)
{
    return (struct wr_entry *)(void *)(block->slots + slot * layout->entry_bytes);
}

/* 2 … 255, from bits that choose neither shard nor group. */
static inline uint8_t wr_tag(uint64_t hash)
{
    uint8_t tag = (uint8_t)(hash >> 32);
    return (uint8_t)(tag + (tag < 2 ? 2 : 0));
}

/* The group where the search for a key begins. */
static inline uint32_t wr_home(uint32_t groups, uint32_t hash)
{
    return (uint32_t)((uint64_t)hash * groups >> 32);
}

/* The even slot, within its home group, of the pair of slots that a key takes if one of them is free. */
static inline uint32_t wr_pair(uint32_t hash)
{
    return hash % (WR_GROUP / 2) * 2;
}

/* A bit for each of the group's 16 control bytes that equals `byte`. */
static inline uint32_t wr_match(const uint8_t *group, uint8_t byte)
{
#if defined(__SSE2__)
    __m128i bytes = _mm_load_si128((const __m128i *)(const void *)group);
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8((char)byte)));
#else
    uint32_t bits = 0;
    for (uint32_t i = 0; i < WR_GROUP; i++)
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

/* Equality, for the usual lengths without a loop: a key of the right hash is nearly always the right key. */
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

/* The key's entry, or NULL. */
struct wr_entry *wr_shard_find(const struct wr_shard *shard, const struct wr_layout *layout, uint64_t hash,
                               const char *key, size_t key_bytes);

/* Bytes of control, in whole lines; the slots follow. */
static inline size_t wr_control_bytes(uint32_t groups)
{
    return wr_round_up((size_t)groups * WR_GROUP, WR_LINE_BYTES);
}

/* Begins to fetch what finding this key will need: its control bytes, and the pair of slots in which three of four keys
 * lie; together they cost one wait. Needs no lock: what it reads may be out of date, and then it fetches in vain. */
static inline void wr_shard_hint(const struct wr_shard *shard, const struct wr_layout *layout, uint64_t hash)
{
    uint32_t groups = atomic_load_explicit(&shard->hint_groups, memory_order_relaxed);
    uintptr_t control = (uintptr_t)atomic_load_explicit(&shard->hint_control, memory_order_relaxed);
    size_t first = (size_t)wr_home(groups, (uint32_t)hash) * WR_GROUP;
    uintptr_t pair = control + wr_control_bytes(groups) + (first + wr_pair((uint32_t)hash)) * layout->entry_bytes;
    __builtin_prefetch((const void *)(control + first));
    __builtin_prefetch((const void *)pair, 1);
    __builtin_prefetch((const void *)(pair + layout->entry_bytes), 1);
}

/* The entry that a key of this hash nearly always has, the first of its tag in its home group; NULL if there is none.
 */
static inline struct wr_entry *wr_shard_guess(const struct wr_shard *shard, const struct wr_layout *layout,
                                              uint64_t hash)
{
    const struct wr_block *block = &shard->block;
    if (__builtin_expect(block->groups == 0, 0))
        return NULL;
    size_t first = (size_t)wr_home(block->groups, (uint32_t)hash) * WR_GROUP;
    uint32_t hits = wr_match(block->control + first, wr_tag(hash));
    if (__builtin_expect(hits == 0, 0))
        return NULL;
    return wr_slot(block, layout, first + (uint32_t)__builtin_ctz(hits));
}

/* The key's entry if it is that one; else NULL, and it may be elsewhere. */
static inline struct wr_entry *wr_shard_glance(const struct wr_shard *shard, const struct wr_layout *layout,
                                               uint64_t hash, const char *key, size_t key_bytes)
{
    struct wr_entry *entry = wr_shard_guess(shard, layout, hash);
    bool is = entry != NULL && wr_entry_is(entry, layout, hash, key, key_bytes);
    return __builtin_expect(is, 1) ? entry : NULL;
}

/* The same where entries are many lines: fetches all of them at once, not one after the other as they are needed. */
static inline struct wr_entry *wr_shard_glance_large(const struct wr_shard *shard, const struct wr_layout *layout,
                                                     uint64_t hash, const char *key, size_t key_bytes)
{
    struct wr_entry *entry = wr_shard_guess(shard, layout, hash);
    if (__builtin_expect(entry == NULL, 0))
        return NULL;
    for (uint32_t at = layout->entry_bytes; at > 0; at -= WR_LINE_BYTES)
        __builtin_prefetch((const char *)entry + at - WR_LINE_BYTES, 1);
    return __builtin_expect(wr_entry_is(entry, layout, hash, key, key_bytes), 1) ? entry : NULL;
}

/* Fetches the lines that finding this key will touch. Under the lock: the block could go away otherwise. */
void wr_shard_prefetch(const struct wr_shard *shard, const struct wr_layout *layout, uint64_t hash);

/* Adds a key that is not there; its state is zeroed. NULL for want of memory: nothing has changed. */
struct wr_entry *wr_shard_add(struct wr_shard *shard, const struct wr_layout *layout, struct wr_blocks *blocks,
                              uint64_t hash, const char *key, size_t key_bytes);

/* Removes an entry that is there. */
void wr_shard_remove(struct wr_shard *shard, const struct wr_layout *layout, struct wr_blocks *blocks,
                     struct wr_entry *entry);

/* Frees the block and all keys. */
void wr_shard_release(struct wr_shard *shard, const struct wr_layout *layout, struct wr_blocks *blocks);

/* Walks over the entries: begin with a *slot of 0. The next entry, and the slot after it; NULL at the end. */
struct wr_entry *wr_shard_next(const struct wr_shard *shard, const struct wr_layout *layout, size_t *slot);

#endif
