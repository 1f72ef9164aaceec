/* SPDX-License-Identifier: MIT */
/* string_set.c - a set of names that only grows, and that is searched without a lock. */
#include "crawl/engine/string_set.h"

#include <string.h>
#include <weir/error.h>

#include "base/alloc.h"

#define ROOM_MIN 64

struct set_string {
    uint64_t hash;
    size_t bytes;
    char text[];
};

/* A table of the set. At least half of its slots are free, so every search ends at a free one. */
struct wr_string_set_table {
    size_t room;                        /* number of slots, a power of two */
    struct wr_string_set_table *before; /* the table that this one replaced */
    _Atomic(struct set_string *) slots[];
};

static size_t table_bytes(size_t room)
{
    return sizeof(struct wr_string_set_table) + room * sizeof(_Atomic(struct set_string *));
}

void wr_string_set_init(struct wr_string_set *ret_names, const weir_allocator *allocator,
                        const struct wr_hash_key *hash_key, size_t max)
{
    *ret_names = (struct wr_string_set){.allocator = allocator, .hash_key = hash_key, .max = max};
    (void)pthread_mutex_init(&ret_names->lock, NULL);
}

void wr_string_set_release(struct wr_string_set *names)
{
    struct wr_string_set_table *table = atomic_load(&names->table), *before;
    for (size_t i = 0; table != NULL && i < table->room; i++) {
        struct set_string *name = atomic_load(&table->slots[i]);
        if (name != NULL)
            wr_free(names->allocator, name, sizeof *name + name->bytes, _Alignof(struct set_string));
    }
    for (; table != NULL; table = before) {
        before = table->before;
        wr_free(names->allocator, table, table_bytes(table->room), _Alignof(struct wr_string_set_table));
    }
    (void)pthread_mutex_destroy(&names->lock);
}

static bool is_same_string(const struct set_string *name, uint64_t hash, const char *text, size_t bytes)
{
    return name->hash == hash && name->bytes == bytes && memcmp(name->text, text, bytes) == 0;
}

static bool find_string(const struct wr_string_set_table *table, uint64_t hash, const char *text, size_t bytes)
{
    if (table == NULL)
        return false;
    for (size_t i = (size_t)hash;; i++) {
        const struct set_string *name =
            atomic_load_explicit(&table->slots[i & (table->room - 1)], memory_order_acquire);
        if (name == NULL)
            return false;
        if (is_same_string(name, hash, text, bytes))
            return true;
    }
}

bool wr_string_set_has(const struct wr_string_set *names, const char *name, size_t bytes)
{
    const struct wr_string_set_table *table = atomic_load_explicit(&names->table, memory_order_acquire);
    return table != NULL && find_string(table, wr_hash(names->hash_key, name, bytes), name, bytes);
}

static void put_string(struct wr_string_set_table *table, struct set_string *name)
{
    size_t i = (size_t)name->hash & (table->room - 1);
    while (atomic_load_explicit(&table->slots[i], memory_order_relaxed) != NULL)
        i = (i + 1) & (table->room - 1);
    atomic_store_explicit(&table->slots[i], name, memory_order_release);
}

/* Replaces the table by one of twice its size. The lock is held. */
static int grow_string_set(struct wr_string_set *names)
{
    struct wr_string_set_table *old = atomic_load(&names->table);
    size_t room = old != NULL ? 2 * old->room : ROOM_MIN;
    struct wr_string_set_table *table =
        wr_alloc(names->allocator, table_bytes(room), _Alignof(struct wr_string_set_table));
    if (table == NULL)
        return WEIR_E_NOMEM;
    table->room = room;
    table->before = old;
    for (size_t i = 0; old != NULL && i < old->room; i++) {
        struct set_string *name = atomic_load(&old->slots[i]);
        if (name != NULL)
            put_string(table, name);
    }
    atomic_store_explicit(&names->table, table, memory_order_release);
    return 0;
}

/* Adds a name, unless the set has it. The lock is held. */
static int add_string(struct wr_string_set *names, uint64_t hash, const char *text, size_t bytes)
{
    const struct wr_string_set_table *table = atomic_load(&names->table);
    if (find_string(table, hash, text, bytes))
        return 0;
    if (names->count == names->max)
        return WEIR_E_FULL;
    if ((table == NULL || 2 * (names->count + 1) > table->room) && grow_string_set(names) != 0)
        return WEIR_E_NOMEM;
    struct set_string *name = wr_alloc(names->allocator, sizeof *name + bytes, _Alignof(struct set_string));
    if (name == NULL)
        return WEIR_E_NOMEM;
    name->hash = hash;
    name->bytes = bytes;
    memcpy(name->text, text, bytes);
    put_string(atomic_load(&names->table), name);
    names->count++;
    return 0;
}

int wr_string_set_add(struct wr_string_set *names, const char *name, size_t bytes)
{
    uint64_t hash = wr_hash(names->hash_key, name, bytes);
    (void)pthread_mutex_lock(&names->lock);
    int error = add_string(names, hash, name, bytes);
    (void)pthread_mutex_unlock(&names->lock);
    return error;
}
