/* SPDX-License-Identifier: MIT */
/* key_account.c - the accounts of keys on this node: lease, state last seen, and debt. The lock of
 * their shard is held. */
#include "cluster/limit/redis_client.h"

#include "base/alloc.h"
#include "limiter/clock/clock.h"

#include <string.h>

#define LOOKED_AT 16 /* keys to try for one without requests in flight */
#define CLOSED_WAIT WEIR_SECOND
#define LATE_WAIT WR_OUTAGE_FIRST /* wait until the store has been probed */

/* ---- keys ------------------------------------------------------------------------------------ */

static size_t account_bytes(size_t key_bytes, size_t seen_room)
{
    return sizeof(struct wr_key_account) + key_bytes + seen_room;
}

char *wr_key_account_state(struct wr_key_account *key_account)
{
    return key_account->text + key_account->key_bytes;
}

static void remove_account(struct wr_shared_limit *budget, struct wr_key_accounts *key_accounts,
                           struct wr_key_account *key_account)
{
    key_accounts->owed -= (uint64_t)key_account->owed + key_account->billed;
    key_accounts->held -= key_account->held;
    key_accounts->unreported_keys -= key_account->life != key_accounts->life && key_accounts->unreported_keys > 0;
    wr_list_remove(&key_account->link);
    wr_list_remove(&key_account->due);
    wr_list_remove(&key_account->flight);
    (void)wr_map_remove(&key_accounts->map, key_account->text, key_account->key_bytes);
    wr_free(budget->redis_client->allocator, key_account, account_bytes(key_account->key_bytes, key_account->seen_room),
            _Alignof(struct wr_key_account));
}

static bool is_idle_account(const struct wr_key_account *key_account, int64_t now)
{
    return key_account->owed == 0 && key_account->billed == 0 && key_account->held + key_account->flying == 0 &&
           !wr_list_is_linked(&key_account->due) && now >= key_account->fresh_at &&
           wr_permit_lease_is_idle(&key_account->lease, now);
}

static struct wr_key_account *rotate_accounts(struct wr_key_accounts *key_accounts)
{
    struct wr_key_account *oldest = WR_LINKED(key_accounts->order.first, struct wr_key_account, link);

    wr_list_remove(&oldest->link);
    wr_list_push(&key_accounts->order, &oldest->link);
    return oldest;
}

/* Removes the oldest account if it is idle. If the shard is full it removes an account in any case,
 * if possible one without requests in flight. Permits that it held stay charged. */
static void evict_account(struct wr_shared_limit *budget, struct wr_key_accounts *key_accounts, int64_t now)
{
    if (key_accounts->order.first == NULL)
        return;
    struct wr_key_account *oldest = rotate_accounts(key_accounts); /* all others are tried before it is tried again */
    bool is_full = key_accounts->map.count >= key_accounts->map.max;
    for (int i = 0; is_full && i < LOOKED_AT && oldest->held > 0; i++)
        oldest = rotate_accounts(key_accounts);
    if (is_full || is_idle_account(oldest, now))
        remove_account(budget, key_accounts, oldest);
}

struct wr_key_account *wr_key_account_get(struct wr_shared_limit *budget, struct wr_key_accounts *key_accounts,
                                          const char *key, size_t key_bytes, int64_t now)
{
    const weir_allocator *allocator = budget->redis_client->allocator;
    struct wr_key_account *key_account = wr_map_get(&key_accounts->map, key, key_bytes);
    size_t seen_room = WR_KEY_STATE_HEAD + (size_t)budget->options.stack.count * WR_KEY_STATE_LIMIT;

    if (key_account != NULL)
        return key_account;
    evict_account(budget, key_accounts, now);
    key_account = wr_alloc(allocator, account_bytes(key_bytes, seen_room), _Alignof(struct wr_key_account));
    if (key_account == NULL)
        return NULL;
    key_account->key_bytes = (uint32_t)key_bytes;
    key_account->seen_room = (uint32_t)seen_room;
    key_account->quota = budget->quota;
    /* from the clock: late answers to an earlier account of this key do not match */
    key_account->lease.number = (uint32_t)now;
    key_account->life = key_accounts->life;
    memcpy(key_account->text, key, key_bytes);
    if (wr_map_put(&key_accounts->map, key_account->text, key_bytes, key_account, NULL) < 0) {
        wr_free(allocator, key_account, account_bytes(key_bytes, seen_room), _Alignof(struct wr_key_account));
        return NULL;
    }
    wr_list_push(&key_accounts->order, &key_account->link);
    return key_account;
}

void wr_key_accounts_release(struct wr_shared_limit *budget, struct wr_key_accounts *key_accounts)
{
    while (key_accounts->order.first != NULL)
        remove_account(budget, key_accounts, WR_LINKED(key_accounts->order.first, struct wr_key_account, link));
    wr_map_release(&key_accounts->map);
    (void)pthread_mutex_destroy(&key_accounts->lock);
}

/* ---- counters -------------------------------------------------------------------------------- */

void wr_key_accounts_count(struct wr_key_accounts *key_accounts, const struct wr_shared_limit_decision *told)
{
    uint64_t *counts = told->decision.verdict == WEIR_GO ? key_accounts->granted : key_accounts->refused;
    counts[told->source]++;
}

void wr_key_account_add_debt(struct wr_key_accounts *key_accounts, struct wr_key_account *key_account, uint32_t permits)
{
    uint32_t adds = permits < UINT32_MAX - key_account->owed ? permits : UINT32_MAX - key_account->owed;
    key_account->owed += adds;
    key_accounts->owed += adds;
    if (adds > 0)
        wr_key_account_mark_due(key_accounts, key_account);
}

void wr_key_account_mark_due(struct wr_key_accounts *key_accounts, struct wr_key_account *key_account)
{
    wr_list_push(&key_accounts->due, &key_account->due);
}

void wr_key_account_add_unused(struct wr_key_accounts *key_accounts, struct wr_key_account *key_account,
                               uint32_t permits, int64_t charged_at)
{
    if (permits == 0 || charged_at == 0)
        return; /* the permits stay charged, because the time of the charge is unknown */
    key_account->back_at =
        key_account->back == 0 || charged_at < key_account->back_at ? charged_at : key_account->back_at;
    key_account->back += permits < UINT32_MAX - key_account->back ? permits : UINT32_MAX - key_account->back;
    wr_key_account_mark_due(key_accounts, key_account);
}

void wr_key_account_move_in_flight(struct wr_shared_limit *budget, struct wr_key_accounts *key_accounts,
                                   struct wr_key_account *key_account, uint64_t lands, uint64_t starts)
{
    if (!budget->has_flight || lands == starts)
        return;
    uint64_t left = lands < key_account->held ? key_account->held - lands : 0;
    key_accounts->held += left + starts - key_account->held;
    key_account->held = left + starts;
    if (key_account->held > 0)
        wr_list_push(&key_accounts->flights, &key_account->flight);
    else
        wr_list_remove(&key_account->flight);
}

void wr_key_account_settle(struct wr_shared_limit *budget, struct wr_key_accounts *key_accounts,
                           struct wr_key_account *key_account, const struct wr_shared_limit_grant *grant, uint32_t used)
{
    uint32_t back = used < grant->permits ? grant->permits - used : 0;
    bool is_alone = grant->source == WR_SOURCE_SHARE || grant->source == WR_SOURCE_OPEN;

    wr_key_account_move_in_flight(budget, key_accounts, key_account, grant->permits, used);
    if (budget->has_flight)
        wr_key_account_mark_due(key_accounts, key_account);
    if (used > grant->permits) {
        wr_key_account_add_debt(key_accounts, key_account, used - grant->permits);
    } else if (is_alone) { /* only debt that is not charged yet can be cancelled */
        back = back < key_account->owed ? back : key_account->owed;
        key_account->owed -= back;
        key_accounts->owed -= back;
    } else if (back > 0) {
        back -= wr_permit_lease_give_back(&budget->terms, &key_account->lease, &key_accounts->membership,
                                          wr_boottime_now(), back);
        wr_key_account_add_unused(key_accounts, key_account, back, grant->charged_at);
    }
}

static void begin_second(struct wr_key_account *key_account, int64_t now)
{
    int64_t second = now / WEIR_SECOND;
    if (second != key_account->second)
        key_account->spent = key_account->charged = 0;
    key_account->second = second;
}

static void note_spent(struct wr_key_accounts *key_accounts, struct wr_key_account *key_account, uint32_t permits,
                       int64_t now)
{
    begin_second(key_account, now);
    key_account->spent += permits;
    if (key_account->spent > key_account->charged &&
        key_account->spent - key_account->charged > key_accounts->overshoot)
        key_accounts->overshoot = key_account->spent - key_account->charged;
}

void wr_key_account_note_charged(struct wr_key_accounts *key_accounts, struct wr_key_account *key_account,
                                 uint32_t permits, uint32_t extra, int64_t now)
{
    begin_second(key_account, now);
    key_account->charged += (uint64_t)permits + extra;
    note_spent(key_accounts, key_account, permits, now);
}

/* ---- decisions ------------------------------------------------------------------------------- */

static weir_quota account_quota(const struct wr_key_account *key_account)
{
    weir_quota quota = key_account->quota;
    uint32_t room = quota.limit - quota.remaining;
    quota.remaining += key_account->lease.left < room ? key_account->lease.left : room;
    return quota;
}

void wr_key_account_set_decision(struct wr_key_accounts *key_accounts, struct wr_key_account *key_account,
                                 const struct wr_permit_lease_move *move, uint32_t permits, int64_t now,
                                 struct wr_shared_limit_decision *ret_told)
{
    bool goes = move->way == WR_PERMIT_LEASE_GO;
    *ret_told = (struct wr_shared_limit_decision){
        .decision = {goes ? WEIR_GO : WEIR_WAIT, goes ? WEIR_REASON_NONE : WEIR_REASON_TOKENS,
                     goes ? 0 : move->wait_ns},
        .quota = account_quota(key_account),
        .source = goes ? WR_SOURCE_LEASE : WR_SOURCE_CACHE,
    };
    if (goes)
        note_spent(key_accounts, key_account, permits, now);
}

/* Returns how much of its share a key has when an outage begins: nothing if the store is down, so
 * that the window in which it was lost admits no more than any other. If only an answer is missing:
 * this node's part of what the last answer left. */
static uint32_t node_share_left(const struct wr_shared_limit *budget, struct wr_key_account *key_account)
{
    uint64_t owed = (uint64_t)key_account->owed + key_account->billed;
    uint32_t left = key_account->quota.remaining > owed ? (uint32_t)(key_account->quota.remaining - owed) : 0;

    if (atomic_load(&budget->redis_client->is_down) || wr_key_account_state(key_account)[0] == '\0')
        return 0;
    return left / budget->redis_client->nodes;
}

static void begin_node_share(struct wr_shared_limit *budget, struct wr_key_account *key_account)
{
    uint32_t outage = atomic_load(&budget->redis_client->outages), left = node_share_left(budget, key_account);
    weir_quota quota = {.remaining = UINT32_MAX};
    weir_decision decision;

    if (key_account->outage == outage)
        return;
    key_account->outage = outage;
    if (weir_table_peek(budget->table, key_account->text, key_account->key_bytes, &quota) != 0) {
        for (uint32_t i = 0; i < budget->part.count; i++)
            quota.remaining =
                budget->part.limits[i].permits < quota.remaining ? budget->part.limits[i].permits : quota.remaining;
    }
    if (quota.remaining > left && weir_table_try(budget->table, key_account->text, key_account->key_bytes,
                                                 quota.remaining - left, &decision) != 0)
        /* some limits take one permit at a time */
        (void)weir_table_try(budget->table, key_account->text, key_account->key_bytes, 1, &decision);
}

static bool try_node_share(struct wr_shared_limit *budget, struct wr_key_account *key_account, uint32_t permits,
                           struct wr_shared_limit_decision *ret_told)
{
    struct wr_shared_limit_decision told = {.source = WR_SOURCE_SHARE, .quota = key_account->quota};

    if (!budget->has_part)
        return false;
    if (budget->has_flight && key_account->held + permits > budget->flight_part) {
        told.decision = (weir_decision){WEIR_WAIT, WEIR_REASON_CONCURRENCY, WEIR_UNTIL_RELEASE};
    } else if (budget->has_rate) {
        begin_node_share(budget, key_account);
        if (weir_table_try(budget->table, key_account->text, key_account->key_bytes, permits, &told.decision) != 0 ||
            told.decision.verdict == WEIR_DENY)
            return false;
        (void)weir_table_peek(budget->table, key_account->text, key_account->key_bytes, &told.quota);
    }
    *ret_told = told;
    return true;
}

/* Returns true if an exact rule must refuse: the store is only late and still admits requests of
 * other nodes, so any grant here could exceed the limit. */
static bool must_refuse_late(const struct wr_shared_limit *budget)
{
    return budget->terms.batch == 0 && budget->options.fallback != WR_FALLBACK_OPEN &&
           !atomic_load(&budget->redis_client->is_lost);
}

void wr_key_account_fall_back(struct wr_shared_limit *budget, struct wr_key_accounts *key_accounts,
                              struct wr_key_account *key_account, uint32_t permits,
                              struct wr_shared_limit_decision *ret_told)
{
    enum wr_shared_limit_fallback fallback = budget->options.fallback;
    bool opens = fallback == WR_FALLBACK_OPEN;

    if (must_refuse_late(budget)) {
        *ret_told = (struct wr_shared_limit_decision){.decision = {WEIR_WAIT, WEIR_REASON_NONE, LATE_WAIT},
                                                      .quota = key_account->quota,
                                                      .source = WR_SOURCE_LATE};
        return;
    }
    if (fallback != WR_FALLBACK_SHARE || !try_node_share(budget, key_account, permits, ret_told))
        *ret_told = (struct wr_shared_limit_decision){
            .decision = {opens ? WEIR_GO : WEIR_WAIT, WEIR_REASON_NONE, opens ? 0 : CLOSED_WAIT},
            .quota = key_account->quota,
            .source = opens ? WR_SOURCE_OPEN : WR_SOURCE_CLOSED,
        };
    if (ret_told->decision.verdict != WEIR_GO)
        return;
    wr_key_account_add_debt(key_accounts, key_account, permits);
    wr_key_account_move_in_flight(budget, key_accounts, key_account, 0, permits);
}

void wr_key_account_decide_alone(struct wr_shared_limit *budget, struct wr_key_accounts *key_accounts,
                                 struct wr_key_account *key_account, uint32_t permits, int64_t now,
                                 struct wr_shared_limit_decision *ret_told)
{
    struct wr_permit_lease_move move =
        wr_permit_lease_try(&budget->terms, &key_account->lease, &key_accounts->membership, now, permits);

    wr_permit_lease_missed(&key_account->lease, move.number); /* no more permits are asked for */
    if (move.way == WR_PERMIT_LEASE_ASK)
        wr_key_account_fall_back(budget, key_accounts, key_account, permits, ret_told);
    else
        wr_key_account_set_decision(key_accounts, key_account, &move, permits, now, ret_told);
}
