/* SPDX-License-Identifier: MIT */
/* referrer.c - the URL of the page that led to a task, for its line. It is kept for tasks in
 * windows and in flight. Tasks found on one page share it. */
#include "base/alloc.h"
#include "crawl/engine/engine_state.h"

struct wr_referrer {
    size_t users;
    size_t bytes;
    char url[];
};

struct referrer_entry {
    uint64_t fingerprint; /* key of the map */
    struct wr_referrer *referrer;
};

#define ENTRIES_MAX ((size_t)1 << 24)
#define USUAL_BYTES 512 /* URLs up to this length do not count towards LONG_BYTES */
/* Longer URLs of a loop in all; beyond it a line has no referrer. */
#define LONG_BYTES ((size_t)16 << 20)

void wr_referrers_init(struct wr_crawl_loop *loop)
{
    wr_map_init(&loop->referrers, loop->engine->allocator, &loop->engine->hash_key, ENTRIES_MAX);
}

static void release_referrer(struct wr_crawl_loop *loop, struct wr_referrer *referrer)
{
    if (--referrer->users > 0)
        return;
    loop->referrer_bytes -= referrer->bytes > USUAL_BYTES ? referrer->bytes : 0;
    wr_free(loop->engine->allocator, referrer, sizeof *referrer + referrer->bytes, _Alignof(struct wr_referrer));
}

/* Returns the last referrer if its URL is the same, else a new one, with one user more. Returns
 * NULL if memory or room is short. */
static struct wr_referrer *hold_referrer(struct wr_crawl_loop *loop, struct wr_span url)
{
    struct wr_referrer *last = loop->last_referrer;
    if (last != NULL && last->bytes == url.bytes && memcmp(last->url, url.data, url.bytes) == 0) {
        last->users++;
        return last;
    }
    bool is_long = url.bytes > USUAL_BYTES;
    if (is_long && loop->referrer_bytes + url.bytes > LONG_BYTES)
        return NULL;
    struct wr_referrer *referrer =
        wr_alloc(loop->engine->allocator, sizeof *referrer + url.bytes, _Alignof(struct wr_referrer));
    if (referrer == NULL)
        return NULL;
    loop->referrer_bytes += is_long ? url.bytes : 0;
    referrer->users = 2; /* the caller, and last_referrer */
    referrer->bytes = url.bytes;
    memcpy(referrer->url, url.data, url.bytes);
    if (last != NULL)
        release_referrer(loop, last);
    loop->last_referrer = referrer;
    return referrer;
}

static void free_referrer_entry(struct wr_crawl_loop *loop, struct referrer_entry *entry)
{
    release_referrer(loop, entry->referrer);
    wr_free(loop->engine->allocator, entry, sizeof *entry, _Alignof(struct referrer_entry));
}

/* Sets the referrer of a task. If memory or room is short, the task's line has none. */
void wr_referrer_put(struct wr_crawl_loop *loop, uint64_t fingerprint, struct wr_span url)
{
    void *old = NULL;
    struct wr_referrer *referrer = hold_referrer(loop, url);
    struct referrer_entry *entry =
        referrer != NULL ? wr_alloc(loop->engine->allocator, sizeof *entry, _Alignof(struct referrer_entry)) : NULL;
    if (entry == NULL) {
        if (referrer != NULL)
            release_referrer(loop, referrer);
        return;
    }
    entry->fingerprint = fingerprint;
    entry->referrer = referrer;
    if (wr_map_put(&loop->referrers, &entry->fingerprint, sizeof entry->fingerprint, entry, &old) != 0)
        old = entry;
    if (old != NULL)
        free_referrer_entry(loop, old);
}

struct wr_span wr_referrer_get(const struct wr_crawl_loop *loop, uint64_t fingerprint)
{
    const struct referrer_entry *entry = wr_map_get(&loop->referrers, &fingerprint, sizeof fingerprint);
    return entry != NULL ? (struct wr_span){entry->referrer->url, entry->referrer->bytes} : (struct wr_span){NULL, 0};
}

void wr_referrer_drop(struct wr_crawl_loop *loop, uint64_t fingerprint)
{
    struct referrer_entry *entry = wr_map_remove(&loop->referrers, &fingerprint, sizeof fingerprint);
    if (entry != NULL)
        free_referrer_entry(loop, entry);
}

void wr_referrers_release(struct wr_crawl_loop *loop)
{
    const struct wr_map_slot *slot;
    for (size_t cursor = 0; (slot = wr_map_next(&loop->referrers, &cursor)) != NULL;)
        free_referrer_entry(loop, slot->value);
    wr_map_release(&loop->referrers);
    if (loop->last_referrer != NULL)
        release_referrer(loop, loop->last_referrer);
    loop->last_referrer = NULL;
}
