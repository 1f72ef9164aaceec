/* SPDX-License-Identifier: MIT */
/* string_set.h - a set of names that only grows, and that is searched without a lock.
 *
 * A search uses the current table. Threads that add names wait for each other. A full table is
 * replaced by one of twice its size. Old tables are kept until the set is released, because a
 * search may still use one: in all they take as much memory as the current table.
 */
#ifndef WR_CRAWL_ENGINE_STRING_SET_H
#define WR_CRAWL_ENGINE_STRING_SET_H

#include "base/hash.h"

#include <pthread.h>
#include <stdatomic.h>
#include <weir/memory.h>

struct wr_string_set_table;

struct wr_string_set {
    const weir_allocator *allocator;
    const struct wr_hash_key *hash_key;
    size_t max; /* maximum number of names */
    _Atomic(struct wr_string_set_table *) table;
    pthread_mutex_t lock; /* held while a name is added */
    size_t count;         /* number of names; the lock protects it */
};

/* Makes the set empty, without memory of its own. `hash_key` must outlive it. */
void wr_string_set_init(struct wr_string_set *ret_names, const weir_allocator *allocator,
                        const struct wr_hash_key *hash_key, size_t max);
void wr_string_set_release(struct wr_string_set *names);

/* Adds a copy of the name, unless the set has it. Returns 0, WEIR_E_FULL or WEIR_E_NOMEM. */
int wr_string_set_add(struct wr_string_set *names, const char *name, size_t bytes);
bool wr_string_set_has(const struct wr_string_set *names, const char *name, size_t bytes);

#endif
