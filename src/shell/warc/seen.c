/* SPDX-License-Identifier: MIT */
/* seen.c - remembers which payloads the archive has, in a table of fixed size. */
#include "shell/warc/warc.h"

#include "base/alloc.h"

struct slot {
    struct wr_seen_key key;
    int64_t wall_at;
    char *url; /* NULL: the slot is free */
    size_t url_bytes;
};

struct wr_seen {
    const weir_allocator *allocator;
    struct slot slots[WR_SEEN_SLOTS];
};

int wr_seen_new(const weir_allocator *allocator, struct wr_seen **ret_seen)
{
    struct wr_seen *seen = wr_take(allocator, sizeof *seen, _Alignof(struct wr_seen));
    if (seen == NULL)
        return WEIR_E_NOMEM;
    seen->allocator = allocator;
    *ret_seen = seen;
    return 0;
}

static void empty(struct wr_seen *seen, struct slot *slot)
{
    wr_give(seen->allocator, slot->url, slot->url_bytes, 1);
    slot->url = NULL;
}

void wr_seen_free(struct wr_seen *seen)
{
    if (seen == NULL)
        return;
    for (size_t i = 0; i < WR_SEEN_SLOTS; i++)
        empty(seen, &seen->slots[i]);
    wr_give(seen->allocator, seen, sizeof *seen, _Alignof(struct wr_seen));
}

/* Uses the keyed hash, so that untrusted payloads cannot collide on purpose. */
static size_t slot_of(const struct wr_seen_key *key)
{
    return (size_t)(key->keyed % WR_SEEN_SLOTS);
}

bool wr_seen_find(const struct wr_seen *seen, const struct wr_seen_key *key, struct wr_warc_original *ret_original)
{
    const struct slot *slot = &seen->slots[slot_of(key)];
    if (slot->url == NULL || slot->key.keyed != key->keyed || slot->key.bytes != key->bytes ||
        memcmp(slot->key.digest, key->digest, sizeof key->digest) != 0)
        return false;
    *ret_original = (struct wr_warc_original){{slot->url, slot->url_bytes}, slot->wall_at};
    return true;
}

void wr_seen_put(struct wr_seen *seen, const struct wr_seen_key *key, const struct wr_warc_original *original)
{
    struct slot *slot = &seen->slots[slot_of(key)];
    if (key->bytes < WR_SEEN_LEAST || original->url.bytes > WR_SEEN_URL_MAX)
        return;
    char *url = wr_take(seen->allocator, original->url.bytes, 1);
    if (url == NULL)
        return;
    memcpy(url, original->url.data, original->url.bytes);
    empty(seen, slot);
    *slot = (struct slot){.key = *key, .wall_at = original->wall_at, .url = url, .url_bytes = original->url.bytes};
}
