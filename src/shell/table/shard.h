/* SPDX-License-Identifier: MIT */
/* shard.h - a few hundred keys under one lock.
 *
 * A table is many small shards. A shard is an open-addressed hash table in one block: a byte of control per slot, in
 * groups of 16 that are compared at once, and the slots themselves, which are whole cache lines.
 *
 *     control  │ tag … tag │ tag … tag │ …          0 empty, 1 removed, else 8 bits of the key's hash
 *     slots    │ entry │ entry │ …                  entry: header 16 │ state of the rules │ key, or pointer to it
 *
 * The control bytes of a million keys are a megabyte and stay in the caches, so a decision costs one miss: the entry's
 * line. Shards are small so that growing one (by a quarter; memory stays tight) stalls nobody for long.
 *
 * Invariants: entries are found from their home group on, up to the first group with an empty slot; live + removed
 * never fills a block, so there is one. Everything here runs with the shard's lock held.
 */
#ifndef WEIR_SHELL_TABLE_SHARD_H
#define WEIR_SHELL_TABLE_SHARD_H

#include "base/alloc.h"
#include "shell/table/line.h"

#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define WR_GROUP 16
#define WR_LINE_BYTES 64 /* of a cache line */
#define WR_EMPTY 0
#define WR_REMOVED 1

struct wr_entry {
    uint32_t hash;    /* its low half: finds the home group again when the block grows */
    uint32_t used_at; /* in ticks of the table */
    uint32_t denied;  /* refusals */
    uint16_t key_bytes;
    uint8_t plan;
    uint8_t flags;
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
    uint32_t groups;      /* 0: none yet */
    uint8_t *control;     /* the memory */
    unsigned char *slots; /* inside it */
};

struct wr_shard {
    _Alignas(WR_LINE_BYTES) struct wr_lock lock;
    struct wr_block block;
    uint64_t acquired, rejected;
    struct wr_key_line *lines;
    uint32_t live, removed; /* slots */
    bool closed;
    bool change_parity; /* which of the table's two sets of plans is in force here */
    /* Cold. */
    uint32_t hand; /* where the search for somebody to evict goes on */
    uint64_t keys_created, keys_removed, keys_evicted, overflowed;
    size_t long_key_bytes; /* of keys that are not inline */
};

static inline void *wr_entry_state(struct wr_entry *entry)
{
    return entry + 1;
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
    return (uint8_t)(2 + ((hash >> 32 & 0xff) * 254 >> 8));
}

static inline uint32_t wr_home(const struct wr_block *block, uint32_t hash)
{
    return (uint32_t)((uint64_t)hash * block->groups >> 32);
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

/* Equality without a branch per word: a key of the right hash is nearly always the right key. */
static inline bool wr_same_key(const char *a, const char *b, size_t bytes)
{
    if (bytes < 8)
        return memcmp(a, b, bytes) == 0;
    uint64_t differ = 0, x, y;
    for (size_t i = 0; i + 8 < bytes; i += 8) {
        memcpy(&x, a + i, 8);
        memcpy(&y, b + i, 8);
        differ |= x ^ y;
    }
    memcpy(&x, a + bytes - 8, 8);
    memcpy(&y, b + bytes - 8, 8);
    return (differ | (x ^ y)) == 0;
}

/* The key's entry, or NULL. */
static inline struct wr_entry *wr_shard_find(const struct wr_shard *shard, const struct wr_layout *layout,
                                             uint64_t hash, const char *key, size_t key_bytes)
{
    const struct wr_block *block = &shard->block;
    if (block->groups == 0)
        return NULL;
    uint32_t group = wr_home(block, (uint32_t)hash);
    for (;;) {
        const uint8_t *control = block->control + (size_t)group * WR_GROUP;
        for (uint32_t hits = wr_match(control, wr_tag(hash)); hits != 0; hits &= hits - 1) {
            struct wr_entry *entry = wr_slot(block, layout, group * WR_GROUP + (uint32_t)__builtin_ctz(hits));
            if (entry->hash == (uint32_t)hash && entry->key_bytes == key_bytes &&
                wr_same_key(wr_entry_key(entry, layout), key, key_bytes))
                return entry;
        }
        if (wr_match(control, WR_EMPTY) != 0)
            return NULL;
        group = group + 1 == block->groups ? 0 : group + 1;
    }
}

/* Fetches the lines that finding this key will touch. Under the lock: the block could go away otherwise. */
void wr_shard_prefetch(const struct wr_shard *shard, const struct wr_layout *layout, uint64_t hash);

/* Adds a key that is not there; its state is zeroed. NULL for want of memory: nothing has changed. */
struct wr_entry *wr_shard_add(struct wr_shard *shard, const struct wr_layout *layout, const weir_allocator *allocator,
                              uint64_t hash, const char *key, size_t key_bytes);

/* Removes an entry that is there. */
void wr_shard_remove(struct wr_shard *shard, const struct wr_layout *layout, const weir_allocator *allocator,
                     struct wr_entry *entry);

/* Frees the block and all keys. */
void wr_shard_release(struct wr_shard *shard, const struct wr_layout *layout, const weir_allocator *allocator);

/* The first entry in slot `from` or later, and its slot; NULL at the end. */
struct wr_entry *wr_shard_next(const struct wr_shard *shard, const struct wr_layout *layout, size_t from,
                               size_t *ret_slot);

/* Bytes of the block. */
size_t wr_shard_bytes(const struct wr_shard *shard, const struct wr_layout *layout);

#endif
