/* SPDX-License-Identifier: MIT */
/* store.c - a simulated store. */
#include "sim/crawl/store.h"

#include <stdlib.h>
#include <string.h>

/* Searches from the latest row, because those are requested most. There are few rows. */
uint32_t store_find(const struct store *store, uint32_t job, uint64_t fingerprint)
{
    for (uint32_t i = store->count; i-- > 0;)
        if (store->rows[i].fingerprint == fingerprint && store->rows[i].job == job && !store->rows[i].is_gone)
            return i;
    return UINT32_MAX;
}

static struct store_op *push(struct store *store, int64_t commit_at)
{
    if (store->waiting == STORE_OPS)
        abort();
    struct store_op *op = &store->ops[(store->first + store->waiting++) % STORE_OPS];
    store->last_at = commit_at > store->last_at ? commit_at : store->last_at;
    op->at = store->last_at;
    return op;
}

bool store_insert(struct store *store, const struct store_row *row, int64_t commit_at, uint32_t *ret_row)
{
    *ret_row = store_find(store, row->job, row->fingerprint);
    if (*ret_row != UINT32_MAX)
        return false;
    if (store->count == STORE_ROWS)
        abort();
    *ret_row = store->count++;
    store->rows[*ret_row] = *row;
    store->open[row->job]++;
    struct store_op *op = push(store, commit_at);
    op->kind = STORE_INSERT;
    op->row = *ret_row;
    return true;
}

void store_end(struct store *store, uint32_t row, bool failed, int64_t commit_at)
{
    struct store_op *op = push(store, commit_at);
    op->kind = STORE_END;
    op->row = row;
    store->rows[row].has_ended = true;
    store->rows[row].failed = failed;
    store->open[store->rows[row].job]--;
}

void store_host(struct store *store, uint32_t host, int64_t commit_at)
{
    struct store_op *op = push(store, commit_at);
    op->kind = STORE_HOST;
    op->host = host;
    op->known = store->posted[host];
}

void store_commit(struct store *store, int64_t now)
{
    while (store->waiting > 0 && store->ops[store->first].at <= now) {
        const struct store_op *op = &store->ops[store->first];
        if (op->kind == STORE_INSERT)
            store->rows[op->row].is_committed = true;
        else if (op->kind == STORE_END)
            store->rows[op->row].end_committed = true;
        else
            store->committed[op->host] = op->known;
        store->first = (store->first + 1) % STORE_OPS;
        store->waiting--;
    }
}

void store_crash(struct store *store)
{
    store->waiting = 0;
    store->last_at = 0;
    memset(store->open, 0, sizeof store->open);
    for (uint32_t i = 0; i < store->count; i++) {
        struct store_row *row = &store->rows[i];
        row->is_gone = !row->is_committed;
        row->has_ended = row->end_committed;
        row->flies = false;
        store->open[row->job] += !row->is_gone && !row->has_ended;
    }
    for (uint32_t i = 0; i < WEB_HOSTS_MAX; i++)
        store->posted[i] = store->committed[i];
}

uint32_t store_queued(const struct store *store, uint32_t job, uint32_t host)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < store->count; i++) {
        const struct store_row *row = &store->rows[i];
        count += row->job == job && row->host == host && row->is_committed && !row->has_ended && !row->is_gone;
    }
    return count;
}
