/* SPDX-License-Identifier: MIT */
/* names.h - a set of names that only grows, and is asked without a lock.
 *
 * Whoever asks takes what is there now; whoever adds waits for others who do. A table that has become too small is
 * followed by one of twice its size and kept until the end, for somebody may still be reading it: that costs as much
 * again as the last one.
 */
#ifndef WR_SHELL_ENGINE_NAMES_H
#define WR_SHELL_ENGINE_NAMES_H

#include "base/hash.h"

#include <pthread.h>
#include <stdatomic.h>
#include <weir/memory.h>

struct wr_names_table;

struct wr_names {
    const weir_allocator *allocator;
    const struct wr_hash_key *hash_key;
    size_t max; /* names */
    _Atomic(struct wr_names_table *) table;
    pthread_mutex_t lock; /* of those who add */
    size_t count;         /* under the lock */
};

/* `hash_key` must outlive it. Takes no memory yet. */
void wr_names_init(struct wr_names *ret_names, const weir_allocator *allocator, const struct wr_hash_key *hash_key,
                   size_t max);
void wr_names_release(struct wr_names *names);

/* Copies the name. One that is there is fine. WEIR_E_FULL, WEIR_E_NOMEM. */
int wr_names_add(struct wr_names *names, const char *name, size_t bytes);
bool wr_names_has(const struct wr_names *names, const char *name, size_t bytes);

#endif
