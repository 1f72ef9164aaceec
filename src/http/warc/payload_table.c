/* SPDX-License-Identifier: MIT */
/* payload_table.c - remembers which payloads the archive has, in a table of fixed size. */
#include "http/warc/warc.h"

#include "base/alloc.h"

struct slot {
    struct wr_payload_key key;
    int64_t wall_at;
    char *url; /* NULL: the slot is free */
    size_t url_bytes;
};

struct wr_payload_table {
    const weir_allocator *allocator;
    struct slot slots[WR_PAYLOAD_TABLE_SLOTS];
};

int wr_payload_table_new(const weir_allocator *allocator, struct wr_payload_table **ret_seen)
{
    struct wr_payload_table *seen = wr_alloc(allocator, sizeof *seen, _Alignof(struct wr_payload_table));
    if (seen == NULL)
        return WEIR_E_NOMEM;
    seen->allocator = allocator;
    *ret_seen = seen;
    return 0;
}

static void empty_slot(struct wr_payload_table *seen, struct slot *slot)
{
    wr_free(seen->allocator, slot->url, slot->url_bytes, 1);
    slot->url = NULL;
}

void wr_payload_table_free(struct wr_payload_table *seen)
{
    if (seen == NULL)
        return;
    for (size_t i = 0; i < WR_PAYLOAD_TABLE_SLOTS; i++)
        empty_slot(seen, &seen->slots[i]);
    wr_free(seen->allocator, seen, sizeof *seen, _Alignof(struct wr_payload_table));
}

/* Uses the keyed hash, so that untrusted payloads cannot collide on purpose. */
static size_t payload_slot_of(const struct wr_payload_key *key)
{
    return (size_t)(key->keyed % WR_PAYLOAD_TABLE_SLOTS);
}

bool wr_payload_table_find(const struct wr_payload_table *seen, const struct wr_payload_key *key,
                           struct wr_warc_original *ret_original)
{
    const struct slot *slot = &seen->slots[payload_slot_of(key)];
    if (slot->url == NULL || slot->key.keyed != key->keyed || slot->key.bytes != key->bytes ||
        memcmp(slot->key.digest, key->digest, sizeof key->digest) != 0)
        return false;
    *ret_original = (struct wr_warc_original){{slot->url, slot->url_bytes}, slot->wall_at};
    return true;
}

void wr_payload_table_put(struct wr_payload_table *seen, const struct wr_payload_key *key,
                          const struct wr_warc_original *original)
{
    struct slot *slot = &seen->slots[payload_slot_of(key)];
    if (key->bytes < WR_PAYLOAD_BYTES_MIN || original->url.bytes > WR_PAYLOAD_URL_MAX)
        return;
    char *url = wr_alloc(seen->allocator, original->url.bytes, 1);
    if (url == NULL)
        return;
    memcpy(url, original->url.data, original->url.bytes);
    empty_slot(seen, slot);
    *slot = (struct slot){.key = *key, .wall_at = original->wall_at, .url = url, .url_bytes = original->url.bytes};
}
