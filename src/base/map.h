/* SPDX-License-Identifier: MIT */
/* map.h - from a byte string to a pointer.
 *
 *     wr_map_init(&map, allocator, &hash_key, 10000);
 *     wr_map_put(&map, host->name, host->name_bytes, host, NULL);
 *     host = wr_map_get(&map, name, name_bytes);
 *
 * Keys are borrowed: the map keeps the pointer, so that a key usually lies in its own value and costs nothing more. It
 * must not change or go away while it is in the map. Keys are bytes: any, also '\0', and of any length, also 0.
 *
 * Getting, removing, and replacing a value take no memory; a new key does now and then. None takes long: a map that
 * has grown moves its keys bit by bit. With a secret hash key nobody can choose keys that make it slow.
 */
#ifndef WR_BASE_MAP_H
#define WR_BASE_MAP_H

#include "base/hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/error.h>
#include <weir/memory.h>

struct wr_map_slot {
    uint64_t hash;
    const void *key;
    size_t key_bytes;
    void *value; /* NULL: the slot is free */
};

struct wr_map_table {
    struct wr_map_slot *slots;
    size_t room; /* slots: 0 or a power of two */
};

struct wr_map {
    const weir_allocator *allocator;
    const struct wr_hash_key *hash_key;
    struct wr_map_table now;
    struct wr_map_table old; /* after it has grown: keys that have not been moved yet */
    size_t moved;            /* slots of old, from the first, which are free */
    size_t count;            /* keys, at most 3/4 of now.room */
    size_t max;              /* most keys */
};

/* At most `max` keys (1 or more). Takes no memory yet. `hash_key` must outlive the map. */
void wr_map_init(struct wr_map *ret_map, const weir_allocator *allocator, const struct wr_hash_key *hash_key,
                 size_t max);

/* The key's value, or NULL. */
void *wr_map_get(const struct wr_map *map, const void *key, size_t key_bytes);

/* Gives the key this value, which is not NULL. If it had one, the new key and value take the place of the old ones.
 * The old value, or NULL, goes to ret_old, which may be NULL. WEIR_E_FULL, WEIR_E_NOMEM: the map is as it was. */
int wr_map_put(struct wr_map *map, const void *key, size_t key_bytes, void *value, void **ret_old);

/* Takes the key out and returns its value, or NULL if there is none. */
void *wr_map_remove(struct wr_map *map, const void *key, size_t key_bytes);

/* Bytes that its slots take. */
size_t wr_map_bytes(const struct wr_map *map);

/* Walks over all keys in no particular order: start with *cursor 0, and end at NULL. The map must not change meanwhile
 * (values may be replaced, keys neither come nor go).
 *     for (size_t cursor = 0; (slot = wr_map_next(&map, &cursor)) != NULL;) */
const struct wr_map_slot *wr_map_next(const struct wr_map *map, size_t *cursor);

/* Invariant: every key can be reached, and they are as many as counted. For asserts and tests. */
bool wr_map_ok(const struct wr_map *map);

void wr_map_release(struct wr_map *map);

#endif
