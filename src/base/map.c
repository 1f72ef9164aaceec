/* SPDX-License-Identifier: MIT */
/* map.c - an open-addressed hash map with linear probing.
 *
 *     home(hash)
 *        v
 *     [  a ][  b ][  c ][    ]     b and c are at or after their home, with no free slot between
 *
 * Removing moves later keys back instead of leaving a mark, so that removed keys cost nothing and
 * the map never needs a cleanup. Slots store the full hash: a probe reads the bytes of a key only
 * when it is almost certainly the right one, and growing hardly ever reads any.
 *
 * A growing map has two tables; each new key moves a few others to the wider one. Moving 100 000
 * keys at once takes 30 ms, too long for a loop that starts requests on time.
 */
#include "base/map.h"

#include "base/alloc.h"

#include <assert.h>
#include <stdalign.h>
#include <string.h>

#define FIRST_ROOM 8
#define MOVES 8 /* slots moved per new key; all are moved long before the wider table is crowded */

void wr_map_init(struct wr_map *ret_map, const weir_allocator *allocator, const struct wr_hash_key *hash_key,
                 size_t max)
{
    assert(max >= 1);
    *ret_map = (struct wr_map){.allocator = allocator, .hash_key = hash_key, .max = max};
}

/* ---- one table ---- */

static size_t home_of(const struct wr_map_table *table, const struct wr_map_slot *slot)
{
    return (size_t)slot->hash & (table->room - 1);
}

static size_t next_slot_index(const struct wr_map_table *table, size_t place)
{
    return (place + 1) & (table->room - 1);
}

static bool is_same_key(const struct wr_map_slot *a, const struct wr_map_slot *b)
{
    return a->hash == b->hash && a->key_bytes == b->key_bytes &&
           (a->key_bytes == 0 || memcmp(a->key, b->key, a->key_bytes) == 0);
}

/* Returns the slot that holds the key, or the free slot where it would go. There is always a free
 * slot. */
static struct wr_map_slot *find_slot_in_table(const struct wr_map_table *table, const struct wr_map_slot *wanted)
{
    size_t place = home_of(table, wanted);
    while (table->slots[place].value != NULL && !is_same_key(&table->slots[place], wanted))
        place = next_slot_index(table, place);
    return &table->slots[place];
}

/* Moves later keys back into the free slot `hole`, up to the next free slot. A key may move unless
 * its home lies after the hole: a search from its home would then miss it. */
static void close_hole(struct wr_map_table *table, size_t hole)
{
    for (size_t place = next_slot_index(table, hole); table->slots[place].value != NULL;
         place = next_slot_index(table, place)) {
        size_t from_home = (place - home_of(table, &table->slots[place])) & (table->room - 1);
        size_t from_hole = (place - hole) & (table->room - 1);
        if (from_home >= from_hole) {
            table->slots[hole] = table->slots[place];
            hole = place;
        }
    }
    table->slots[hole] = (struct wr_map_slot){0};
}

static void free_map_table(const struct wr_map *map, struct wr_map_table *table)
{
    wr_free(map->allocator, table->slots, table->room * sizeof *table->slots, alignof(struct wr_map_slot));
    *table = (struct wr_map_table){NULL, 0};
}

/* ---- both tables ---- */

static struct wr_map_slot make_map_slot(const struct wr_map *map, const void *key, size_t key_bytes, void *value)
{
    return (struct wr_map_slot){wr_hash(map->hash_key, key, key_bytes), key, key_bytes, value};
}

/* Returns the slot of the key and the table that holds it, or NULL if the key is not in the map. */
static struct wr_map_slot *find_key_slot(struct wr_map *map, const struct wr_map_slot *wanted,
                                         struct wr_map_table **ret_table)
{
    struct wr_map_table *tables[] = {&map->now, &map->old};
    for (size_t i = 0; i < 2; i++) {
        struct wr_map_slot *slot = tables[i]->room > 0 ? find_slot_in_table(tables[i], wanted) : NULL;
        if (slot != NULL && slot->value != NULL) {
            *ret_table = tables[i];
            return slot;
        }
    }
    return NULL;
}

void *wr_map_get(const struct wr_map *map, const void *key, size_t key_bytes)
{
    if (map->count == 0)
        return NULL;
    struct wr_map_slot wanted = make_map_slot(map, key, key_bytes, NULL);
    void *value = find_slot_in_table(&map->now, &wanted)->value;
    return value == NULL && map->old.room > 0 ? find_slot_in_table(&map->old, &wanted)->value : value;
}

static void move_slots_to_wider(struct wr_map *map)
{
    for (int i = 0; i < MOVES && map->moved < map->old.room; i++) {
        const struct wr_map_slot *slot = &map->old.slots[map->moved];
        if (slot->value == NULL) {
            map->moved++;
            continue;
        }
        *find_slot_in_table(&map->now, slot) = *slot;
        close_hole(&map->old, map->moved);
    }
    if (map->moved == map->old.room)
        free_map_table(map, &map->old);
}

static int grow_map(struct wr_map *map)
{
    struct wr_map_table wider = {.room = map->now.room == 0 ? FIRST_ROOM : map->now.room * 2};
    wider.slots = wr_alloc_array(map->allocator, wider.room, sizeof *wider.slots, alignof(struct wr_map_slot));
    if (wider.slots == NULL)
        return WEIR_E_NOMEM;
    assert(map->old.room == 0);
    map->old = map->now;
    map->now = wider;
    map->moved = 0;
    return 0;
}

static bool is_map_crowded(const struct wr_map *map)
{
    return map->count >= map->now.room / 4 * 3;
}

static int put_new(struct wr_map *map, const struct wr_map_slot *slot)
{
    if (map->count == map->max)
        return WEIR_E_FULL;
    if (is_map_crowded(map) && grow_map(map) != 0)
        return WEIR_E_NOMEM;
    if (map->old.room > 0)
        move_slots_to_wider(map);
    *find_slot_in_table(&map->now, slot) = *slot;
    map->count++;
    return 0;
}

int wr_map_put(struct wr_map *map, const void *key, size_t key_bytes, void *value, void **ret_old)
{
    assert(value != NULL);
    struct wr_map_slot wanted = make_map_slot(map, key, key_bytes, value);
    struct wr_map_table *table;
    struct wr_map_slot *slot = find_key_slot(map, &wanted, &table);
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

void *wr_map_remove(struct wr_map *map, const void *key, size_t key_bytes)
{
    if (map->count == 0)
        return NULL;
    struct wr_map_slot wanted = make_map_slot(map, key, key_bytes, NULL);
    struct wr_map_table *table;
    struct wr_map_slot *slot = find_key_slot(map, &wanted, &table);
    if (slot == NULL)
        return NULL;
    void *value = slot->value;
    close_hole(table, (size_t)(slot - table->slots));
    map->count--;
    return value;
}

size_t wr_map_bytes(const struct wr_map *map)
{
    return (map->now.room + map->old.room) * sizeof(struct wr_map_slot);
}

const struct wr_map_slot *wr_map_next(const struct wr_map *map, size_t *cursor)
{
    while (*cursor < map->old.room + map->now.room) {
        size_t place = (*cursor)++;
        const struct wr_map_slot *slot =
            place < map->old.room ? &map->old.slots[place] : &map->now.slots[place - map->old.room];
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
        if (find_slot_in_table(cursor <= map->old.room ? &map->old : &map->now, slot) != slot)
            return false;
    for (size_t i = 0; i < map->old.room && i < map->moved; i++)
        if (map->old.slots[i].value != NULL)
            return false;
    return count == map->count && count <= map->max && count <= map->now.room / 4 * 3;
}

void wr_map_release(struct wr_map *map)
{
    free_map_table(map, &map->now);
    free_map_table(map, &map->old);
    *map = (struct wr_map){0};
}
