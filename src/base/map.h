/* SPDX-License-Identifier: MIT */
/* map.h - a hash map from byte strings to pointers.
 *
 *     wr_map_init(&map, allocator, &hash_key, 10000);
 *     wr_map_put(&map, host->name, host->name_bytes, host, NULL);
 *     host = wr_map_get(&map, name, name_bytes);
 *
 * Keys are borrowed: the map stores the pointer, so that a key can be part of its own value and
 * need no copy. The bytes of a key must not change or be freed while the key is in the map. Any
 * bytes are allowed, also '\0', and any length, also 0.
 *
 * Getting, removing, and replacing a value do not allocate; adding a key sometimes does. No call
 * takes long: a map that has grown moves its keys a few at a time. With a secret hash key,
 * untrusted input cannot make the map slow.
 */
#ifndef WR_BASE_MAP_H
#define WR_BASE_MAP_H

#include "base/hash.h"
#include "base/seam.h"

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
    size_t room; /* number of slots: 0 or a power of two */
};

struct wr_map {
    const weir_allocator *allocator;
    const struct wr_hash_key *hash_key;
    struct wr_map_table now;
    struct wr_map_table old; /* after growing: the keys that have not been moved yet */
    /* number of slots at the start of `old` that are already moved and free */
    size_t moved;
    size_t count; /* number of keys, at most 3/4 of now.room */
    size_t max;   /* maximum number of keys */
};

/* Initializes a map for at most `max` keys (at least 1). Allocates nothing yet. `hash_key` must
 * outlive the map. */
WR_SEAM void wr_map_init(struct wr_map *ret_map, const weir_allocator *allocator, const struct wr_hash_key *hash_key,
                         size_t max);

/* Returns the value of the key, or NULL if the key is not in the map. */
WR_SEAM void *wr_map_get(const struct wr_map *map, const void *key, size_t key_bytes);

/* Sets the value of the key; `value` is not NULL. If the key was in the map, the new key pointer
 * and value replace the old ones. *ret_old (`ret_old` may be NULL) becomes the old value or NULL.
 * Returns WEIR_E_FULL or WEIR_E_NOMEM if that fails; the map is then unchanged. */
WR_SEAM int wr_map_put(struct wr_map *map, const void *key, size_t key_bytes, void *value, void **ret_old);

/* Removes the key and returns its value, or NULL if the key is not in the map. */
WR_SEAM void *wr_map_remove(struct wr_map *map, const void *key, size_t key_bytes);

/* Returns the bytes of memory that the slots take. */
size_t wr_map_bytes(const struct wr_map *map);

/* Iterates over all keys in no particular order: *cursor starts at 0, and NULL ends the iteration.
 * Meanwhile values may be replaced, but no key may be added or removed.
 *     for (size_t cursor = 0; (slot = wr_map_next(&map, &cursor)) != NULL;)
 */
WR_SEAM const struct wr_map_slot *wr_map_next(const struct wr_map *map, size_t *cursor);

/* Returns true if the invariant holds: every key can be reached, and `count` is right. For asserts
 * and tests. */
bool wr_map_ok(const struct wr_map *map);

WR_SEAM void wr_map_release(struct wr_map *map);

#endif
