/* SPDX-License-Identifier: MIT */
/* request_gates.c - Finds the gates of a request: of its host, its registrable domain and its
 * address. */
#include "limiter/pacer/pacer.h"

#include "base/address.h"
#include "base/ascii.h"

static const struct wr_span domain_prefix = {"domain:", 7}, address_prefix = {"address:", 8};

#define DOMAIN_MAX 253 /* maximum length of a DNS name; the key of its gate has room for the prefix, too */

/* ---- domains ---- */

/* Finds the registrable domain in a host key. Stores its offset and returns its length; returns 0
 * if the key has no domain. */
static size_t find_domain(const weir_pacer *pacer, const char *key, size_t key_bytes, size_t *ret_at)
{
    const char *port = memchr(key, ':', key_bytes);
    size_t name_bytes = port != NULL ? (size_t)(port - key) : key_bytes;
    size_t bytes = pacer->domain_of(pacer->domain_context, key, name_bytes);
    if (bytes > name_bytes || bytes > DOMAIN_MAX)
        return 0;
    *ret_at = name_bytes - bytes;
    return bytes;
}

/* ---- keys ---- */

static bool begins_with_prefix(const char *key, size_t key_bytes, struct wr_span prefix)
{
    return key_bytes > prefix.bytes && memcmp(key, prefix.data, prefix.bytes) == 0;
}

/* Returns true for the key of a group. "domain:8080" is a host and its port. */
bool wr_key_is_group(const char *key, size_t key_bytes)
{
    if (!begins_with_prefix(key, key_bytes, domain_prefix) && !begins_with_prefix(key, key_bytes, address_prefix))
        return false;
    size_t at = (size_t)((const char *)memchr(key, ':', key_bytes) - key) + 1;
    while (at < key_bytes && wr_ascii_is_digit(key[at]))
        at++;
    return at < key_bytes;
}

static int set_permit_address(weir_permit *permit, const char *text)
{
    struct wr_address address;
    struct wr_buf buf;
    if (!wr_address_parse_peer(wr_span_of(text), &address))
        return wr_invalid_text("address", text, strlen(text), "not a numeric address", WR_NOWHERE,
                               "use one like 192.0.2.1 or 2001:db8::1");
    wr_buf_init_fixed(&buf, permit->address, sizeof permit->address);
    wr_address_append(&buf, &address);
    permit->address_bytes = (uint16_t)buf.length;
    return 0;
}

int wr_permit_set_keys(weir_permit *permit, const weir_pacer *pacer, const char *key, size_t key_bytes,
                       const char *address)
{
    size_t domain_at = 0, domain_bytes = 0;
    permit->address_bytes = 0;
    if (address != NULL && (pacer->groups & WEIR_GROUP_ADDRESS) != 0 && set_permit_address(permit, address) != 0)
        return WEIR_E_INVAL;
    if ((pacer->groups & WEIR_GROUP_DOMAIN) != 0)
        domain_bytes = find_domain(pacer, key, key_bytes, &domain_at);
    memcpy(permit->key, key, key_bytes);
    permit->key[key_bytes] = '\0';
    permit->key_bytes = (uint16_t)key_bytes;
    permit->hash = wr_hash(&pacer->table->hash_key, key, key_bytes);
    permit->domain_at = (uint16_t)domain_at;
    permit->domain_bytes = (uint16_t)domain_bytes;
    return 0;
}

/* ---- gates ---- */

static void add_request_gate(struct wr_request_gates *gates, const weir_pacer *pacer, struct wr_key_query query,
                             bool waits_always)
{
    struct wr_table_part *part = &gates->parts[gates->count++];
    part->table = pacer->table;
    part->query = query;
    part->query.waits_always = waits_always;
}

/* Writes prefix + name to `text`. Returns the length. */
static size_t append_to_prefix(char *text, struct wr_span prefix, const char *name, size_t name_bytes)
{
    memcpy(text, prefix.data, prefix.bytes);
    memcpy(text + prefix.bytes, name, name_bytes);
    return prefix.bytes + name_bytes;
}

void wr_request_gates_init(struct wr_request_gates *ret_gates, const weir_pacer *pacer, const weir_permit *permit,
                           int64_t now, bool waits_always)
{
    ret_gates->count = 0;
    add_request_gate(ret_gates, pacer,
                     (struct wr_key_query){permit->key, permit->key_bytes, permit->hash, now, 1, false}, waits_always);
    if (permit->domain_bytes > 0) {
        size_t bytes =
            append_to_prefix(ret_gates->domain, domain_prefix, permit->key + permit->domain_at, permit->domain_bytes);
        add_request_gate(ret_gates, pacer, wr_table_query(pacer->table, ret_gates->domain, bytes, 1, now),
                         waits_always);
    }
    if (permit->address_bytes > 0) {
        size_t bytes = append_to_prefix(ret_gates->address, address_prefix, permit->address, permit->address_bytes);
        add_request_gate(ret_gates, pacer, wr_table_query(pacer->table, ret_gates->address, bytes, 1, now),
                         waits_always);
    }
}

struct wr_gate_waiters wr_request_gates_waiters(const struct wr_request_gates *gates, int64_t now)
{
    struct wr_gate_waiters called = {{NULL}};
    for (size_t i = 0; i < gates->count; i++) {
        const struct wr_table_part *part = &gates->parts[i];
        struct wr_queue *line = wr_key_queue(part->table, part->shard, part->entry);
        called.first[i] = line != NULL ? wr_queue_first(line, now) : NULL;
    }
    return called;
}

void wr_gate_waiters_wake(const struct wr_gate_waiters *called)
{
    for (size_t i = 0; i < WR_REQUEST_GATES_MAX; i++)
        wr_ticket_wake(called->first[i]);
}
