/* SPDX-License-Identifier: MIT */
/* map.c - an open-addressed hash map with linear probing.
 *
 *     home(hash)
 *        v
 *     [  a ][  b ][  c ][    ]      b and c are at or after their home, without a free slot in between
 *
 * Removing moves later ones back instead of leaving a mark, so that keys that come and go leave no trace and the map
 * never needs cleaning up. Slots remember the full hash: a probe reads a key's bytes only when it is almost certainly
 * the right one, and growing as good as none.
 */
#include "base/map.h"

#include "base/alloc.h"

#include <assert.h>
#include <stdalign.h>
#include <string.h>

#define FIRST_ROOM 8

void wr_map_init(struct wr_map *ret_map, const weir_allocator *allocator, const struct wr_hash_key *hash_key,
                 size_t max)
{
    assert(max >= 1 && max <= SIZE_MAX / 256);
    *ret_map = (struct wr_map){.allocator = allocator, .hash_key = hash_key, .max = max};
}

static size_t home_of(const struct wr_map *map, const struct wr_map_slot *slot)
{
    return (size_t)slot->hash & (map->room - 1);
}

static size_t after(const struct wr_map *map, size_t place)
{
    return (place + 1) & (map->room - 1);
}

static bool same(const struct wr_map_slot *a, const struct wr_map_slot *b)
{
    return a->hash == b->hash && a->key_bytes == b->key_bytes &&
           (a->key_bytes == 0 || memcmp(a->key, b->key, a->key_bytes) == 0);
}

/* Where this key is, or the free slot where it would go. There is always a free slot. */
static struct wr_map_slot *find(const struct wr_map *map, const struct wr_map_slot *wanted)
{
    size_t place = home_of(map, wanted);
    while (map->slots[place].value != NULL && !same(&map->slots[place], wanted))
        place = after(map, place);
    return &map->slots[place];
}

static struct wr_map_slot slot_of(const struct wr_map *map, const void *key, size_t key_bytes, void *value)
{
    return (struct wr_map_slot){wr_hash(map->hash_key, key, key_bytes), key, key_bytes, value};
}

void *wr_map_get(const struct wr_map *map, const void *key, size_t key_bytes)
{
    if (map->count == 0)
        return NULL;
    struct wr_map_slot wanted = slot_of(map, key, key_bytes, NULL);
    return find(map, &wanted)->value;
}

static void give_slots(struct wr_map *map)
{
    wr_give(map->allocator, map->slots, map->room * sizeof *map->slots, alignof(struct wr_map_slot));
}

static int grow(struct wr_map *map)
{
    struct wr_map wider = *map;
    wider.room = map->room == 0 ? FIRST_ROOM : map->room * 2;
    wider.slots = wr_take_array(map->allocator, wider.room, sizeof *wider.slots, alignof(struct wr_map_slot));
    if (wider.slots == NULL)
        return WEIR_E_NOMEM;
    const struct wr_map_slot *slot;
    for (size_t cursor = 0; (slot = wr_map_next(map, &cursor)) != NULL;)
        *find(&wider, slot) = *slot;
    give_slots(map);
    *map = wider;
    return 0;
}

static bool is_crowded(const struct wr_map *map)
{
    return map->count >= map->room / 4 * 3;
}

static int put_new(struct wr_map *map, const struct wr_map_slot *slot)
{
    if (map->count == map->max)
        return WEIR_E_FULL;
    if (is_crowded(map) && grow(map) != 0)
        return WEIR_E_NOMEM;
    *find(map, slot) = *slot;
    map->count++;
    return 0;
}

int wr_map_put(struct wr_map *map, const void *key, size_t key_bytes, void *value, void **ret_old)
{
    assert(value != NULL);
    struct wr_map_slot wanted = slot_of(map, key, key_bytes, value);
    struct wr_map_slot *slot = map->room > 0 ? find(map, &wanted) : NULL;
    void *old = slot != NULL ? slot->value : NULL;

    if (old != NULL)
        *slot = wanted;
    else {
        int error = put_new(map, &wanted);
        if (error != 0)
            return error;
    }
    if (ret_old != NULL)
        *ret_old = old;
    return 0;
}

/* Fills the hole with the next one after it that may stand there, and so on to the next free slot. One may stand at the
 * hole unless its home lies after it: then a search from its home would miss it. */
static void close_hole(struct wr_map *map, size_t hole)
{
    for (size_t place = after(map, hole); map->slots[place].value != NULL; place = after(map, place)) {
        size_t from_home = (place - home_of(map, &map->slots[place])) & (map->room - 1);
        size_t from_hole = (place - hole) & (map->room - 1);
        if (from_home >= from_hole) {
            map->slots[hole] = map->slots[place];
            hole = place;
        }
    }
    map->slots[hole] = (struct wr_map_slot){0};
}

void *wr_map_remove(struct wr_map *map, const void *key, size_t key_bytes)
{
    if (map->count == 0)
        return NULL;
    struct wr_map_slot wanted = slot_of(map, key, key_bytes, NULL);
    struct wr_map_slot *slot = find(map, &wanted);
    void *value = slot->value;
    if (value != NULL) {
        close_hole(map, (size_t)(slot - map->slots));
        map->count--;
    }
    return value;
}

const struct wr_map_slot *wr_map_next(const struct wr_map *map, size_t *cursor)
{
    while (*cursor < map->room) {
        const struct wr_map_slot *slot = &map->slots[(*cursor)++];
        if (slot->value != NULL)
            return slot;
    }
    return NULL;
}

bool wr_map_ok(const struct wr_map *map)
{
    size_t count = 0;
    const struct wr_map_slot *slot;
    for (size_t cursor = 0; (slot = wr_map_next(map, &cursor)) != NULL; count++)
        if (find(map, slot) != slot)
            return false;
    return count == map->count && count <= map->max && count <= map->room / 4 * 3;
}

void wr_map_release(struct wr_map *map)
{
    give_slots(map);
    *map = (struct wr_map){0};
}
