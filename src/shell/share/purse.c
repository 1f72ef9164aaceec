/* SPDX-License-Identifier: MIT */
/* purse.c - the accounts of keys on this node: lease, state last seen, and debt. The lock of their
 * shard is held. */
#include "shell/share/agency.h"

#include "base/alloc.h"
#include "shell/clock/clock.h"

#include <string.h>

#define LOOKED_AT 16 /* keys to try for one without requests in flight */
#define CLOSED_WAIT WEIR_SECOND
#define LATE_WAIT WR_OUTAGE_FIRST /* wait until the store has been probed */

/* ---- keys ------------------------------------------------------------------------------------ */

static size_t purse_bytes(size_t key_bytes, size_t seen_room)
{
    return sizeof(struct wr_purse) + key_bytes + seen_room;
}

char *wr_purse_seen(struct wr_purse *purse)
{
    return purse->text + purse->key_bytes;
}

static void forget(struct wr_budget *budget, struct wr_purses *purses, struct wr_purse *purse)
{
    purses->owed -= (uint64_t)purse->owed + purse->billed;
    purses->held -= purse->held;
    purses->untold -= purse->life != purses->life && purses->untold > 0;
    wr_list_take(&purse->link);
    wr_list_take(&purse->due);
    wr_list_take(&purse->flight);
    (void)wr_map_remove(&purses->map, purse->text, purse->key_bytes);
    wr_give(budget->agency->allocator, purse, purse_bytes(purse->key_bytes, purse->seen_room),
            _Alignof(struct wr_purse));
}

static bool is_needless(const struct wr_purse *purse, int64_t now)
{
    return purse->owed == 0 && purse->billed == 0 && purse->held + purse->flying == 0 && !wr_list_holds(&purse->due) &&
           now >= purse->fresh_at && wr_lease_idle(&purse->lease, now);
}

static struct wr_purse *rotate(struct wr_purses *purses)
{
    struct wr_purse *oldest = WR_LINKED(purses->order.first, struct wr_purse, link);

    wr_list_take(&oldest->link);
    wr_list_push(&purses->order, &oldest->link);
    return oldest;
}

/* Removes the oldest account if it is idle. If the shard is full it removes an account in any case,
 * if possible one without requests in flight. Permits that it held stay charged. */
static void make_room(struct wr_budget *budget, struct wr_purses *purses, int64_t now)
{
    if (purses->order.first == NULL)
        return;
    struct wr_purse *oldest = rotate(purses); /* all others are tried before it is tried again */
    bool is_full = purses->map.count >= purses->map.max;
    for (int i = 0; is_full && i < LOOKED_AT && oldest->held > 0; i++)
        oldest = rotate(purses);
    if (is_full || is_needless(oldest, now))
        forget(budget, purses, oldest);
}

struct wr_purse *wr_purse_get(struct wr_budget *budget, struct wr_purses *purses, const char *key, size_t key_bytes,
                              int64_t now)
{
    const weir_allocator *allocator = budget->agency->allocator;
    struct wr_purse *purse = wr_map_get(&purses->map, key, key_bytes);
    size_t seen_room = WR_SEEN_HEAD + (size_t)budget->options.stack.count * WR_SEEN_LIMIT;

    if (purse != NULL)
        return purse;
    make_room(budget, purses, now);
    purse = wr_take(allocator, purse_bytes(key_bytes, seen_room), _Alignof(struct wr_purse));
    if (purse == NULL)
        return NULL;
    purse->key_bytes = (uint32_t)key_bytes;
    purse->seen_room = (uint32_t)seen_room;
    purse->quota = budget->quota;
    /* from the clock: late answers to an earlier account of this key do not match */
    purse->lease.number = (uint32_t)now;
    purse->life = purses->life;
    memcpy(purse->text, key, key_bytes);
    if (wr_map_put(&purses->map, purse->text, key_bytes, purse, NULL) < 0) {
        wr_give(allocator, purse, purse_bytes(key_bytes, seen_room), _Alignof(struct wr_purse));
        return NULL;
    }
    wr_list_push(&purses->order, &purse->link);
    return purse;
}

void wr_purses_release(struct wr_budget *budget, struct wr_purses *purses)
{
    while (purses->order.first != NULL)
        forget(budget, purses, WR_LINKED(purses->order.first, struct wr_purse, link));
    wr_map_release(&purses->map);
    (void)pthread_mutex_destroy(&purses->lock);
}

/* ---- counters -------------------------------------------------------------------------------- */

void wr_purses_count(struct wr_purses *purses, const struct wr_share_told *told)
{
    uint64_t *counts = told->decision.verdict == WEIR_GO ? purses->granted : purses->refused;
    counts[told->source]++;
}

void wr_purse_owe(struct wr_purses *purses, struct wr_purse *purse, uint32_t permits)
{
    uint32_t adds = permits < UINT32_MAX - purse->owed ? permits : UINT32_MAX - purse->owed;
    purse->owed += adds;
    purses->owed += adds;
    if (adds > 0)
        wr_purse_due(purses, purse);
}

void wr_purse_due(struct wr_purses *purses, struct wr_purse *purse)
{
    wr_list_push(&purses->due, &purse->due);
}

void wr_purse_back(struct wr_purses *purses, struct wr_purse *purse, uint32_t permits, int64_t charged_at)
{
    if (permits == 0 || charged_at == 0)
        return; /* the permits stay charged, because the time of the charge is unknown */
    purse->back_at = purse->back == 0 || charged_at < purse->back_at ? charged_at : purse->back_at;
    purse->back += permits < UINT32_MAX - purse->back ? permits : UINT32_MAX - purse->back;
    wr_purse_due(purses, purse);
}

void wr_purse_fly(struct wr_budget *budget, struct wr_purses *purses, struct wr_purse *purse, uint64_t lands,
                  uint64_t starts)
{
    if (!budget->has_flight || lands == starts)
        return;
    uint64_t left = lands < purse->held ? purse->held - lands : 0;
    purses->held += left + starts - purse->held;
    purse->held = left + starts;
    if (purse->held > 0)
        wr_list_push(&purses->flights, &purse->flight);
    else
        wr_list_take(&purse->flight);
}

void wr_purse_settle(struct wr_budget *budget, struct wr_purses *purses, struct wr_purse *purse,
                     const struct wr_grant *grant, uint32_t used)
{
    uint32_t back = used < grant->permits ? grant->permits - used : 0;
    bool is_alone = grant->source == WR_SOURCE_SHARE || grant->source == WR_SOURCE_OPEN;

    wr_purse_fly(budget, purses, purse, grant->permits, used);
    if (budget->has_flight)
        wr_purse_due(purses, purse);
    if (used > grant->permits) {
        wr_purse_owe(purses, purse, used - grant->permits);
    } else if (is_alone) { /* only debt that is not charged yet can be cancelled */
        back = back < purse->owed ? back : purse->owed;
        purse->owed -= back;
        purses->owed -= back;
    } else if (back > 0) {
        back -= wr_lease_give_back(&budget->terms, &purse->lease, &purses->seat, wr_boottime_now(), back);
        wr_purse_back(purses, purse, back, grant->charged_at);
    }
}

static void begin_second(struct wr_purse *purse, int64_t now)
{
    int64_t second = now / WEIR_SECOND;
    if (second != purse->second)
        purse->spent = purse->charged = 0;
    purse->second = second;
}

static void note_spent(struct wr_purses *purses, struct wr_purse *purse, uint32_t permits, int64_t now)
{
    begin_second(purse, now);
    purse->spent += permits;
    if (purse->spent > purse->charged && purse->spent - purse->charged > purses->overshoot)
        purses->overshoot = purse->spent - purse->charged;
}

void wr_purse_note_charged(struct wr_purses *purses, struct wr_purse *purse, uint32_t permits, uint32_t extra,
                           int64_t now)
{
    begin_second(purse, now);
    purse->charged += (uint64_t)permits + extra;
    note_spent(purses, purse, permits, now);
}

/* ---- decisions ------------------------------------------------------------------------------- */

static weir_quota quota_of(const struct wr_purse *purse)
{
    weir_quota quota = purse->quota;
    uint32_t room = quota.limit - quota.remaining;
    quota.remaining += purse->lease.left < room ? purse->lease.left : room;
    return quota;
}

void wr_purse_tell(struct wr_purses *purses, struct wr_purse *purse, const struct wr_share_move *move, uint32_t permits,
                   int64_t now, struct wr_share_told *ret_told)
{
    bool goes = move->way == WR_SHARE_GO;
    *ret_told = (struct wr_share_told){
        .decision = {goes ? WEIR_GO : WEIR_WAIT, goes ? WEIR_REASON_NONE : WEIR_REASON_TOKENS,
                     goes ? 0 : move->wait_ns},
        .quota = quota_of(purse),
        .source = goes ? WR_SOURCE_LEASE : WR_SOURCE_CACHE,
    };
    if (goes)
        note_spent(purses, purse, permits, now);
}

/* Returns how much of its share a key has when an outage begins: nothing if the store is down, so
 * that the window in which it was lost admits no more than any other. If only an answer is missing:
 * this node's part of what the last answer left. */
static uint32_t left_of_share(const struct wr_budget *budget, struct wr_purse *purse)
{
    uint64_t owed = (uint64_t)purse->owed + purse->billed;
    uint32_t left = purse->quota.remaining > owed ? (uint32_t)(purse->quota.remaining - owed) : 0;

    if (atomic_load(&budget->agency->is_down) || wr_purse_seen(purse)[0] == '\0')
        return 0;
    return left / budget->agency->nodes;
}

static void begin_share(struct wr_budget *budget, struct wr_purse *purse)
{
    uint32_t outage = atomic_load(&budget->agency->outages), left = left_of_share(budget, purse);
    weir_quota quota = {.remaining = UINT32_MAX};
    weir_decision decision;

    if (purse->outage == outage)
        return;
    purse->outage = outage;
    if (weir_table_peek(budget->table, purse->text, purse->key_bytes, &quota) != 0) {
        for (uint32_t i = 0; i < budget->part.count; i++)
            quota.remaining =
                budget->part.limits[i].permits < quota.remaining ? budget->part.limits[i].permits : quota.remaining;
    }
    if (quota.remaining > left &&
        weir_table_try(budget->table, purse->text, purse->key_bytes, quota.remaining - left, &decision) != 0)
        /* some limits take one permit at a time */
        (void)weir_table_try(budget->table, purse->text, purse->key_bytes, 1, &decision);
}

static bool ask_share(struct wr_budget *budget, struct wr_purse *purse, uint32_t permits,
                      struct wr_share_told *ret_told)
{
    struct wr_share_told told = {.source = WR_SOURCE_SHARE, .quota = purse->quota};

    if (!budget->has_part)
        return false;
    if (budget->has_flight && purse->held + permits > budget->flight_part) {
        told.decision = (weir_decision){WEIR_WAIT, WEIR_REASON_CONCURRENCY, WEIR_UNTIL_RELEASE};
    } else if (budget->has_rate) {
        begin_share(budget, purse);
        if (weir_table_try(budget->table, purse->text, purse->key_bytes, permits, &told.decision) != 0 ||
            told.decision.verdict == WEIR_DENY)
            return false;
        (void)weir_table_peek(budget->table, purse->text, purse->key_bytes, &told.quota);
    }
    *ret_told = told;
    return true;
}

/* Returns true if an exact rule must refuse: the store is only late and still admits requests of
 * other nodes, so any grant here could exceed the limit. */
static bool is_late(const struct wr_budget *budget)
{
    return budget->terms.batch == 0 && budget->options.fallback != WR_FALLBACK_OPEN &&
           !atomic_load(&budget->agency->is_lost);
}

void wr_purse_fall_back(struct wr_budget *budget, struct wr_purses *purses, struct wr_purse *purse, uint32_t permits,
                        struct wr_share_told *ret_told)
{
    enum wr_fallback fallback = budget->options.fallback;
    bool opens = fallback == WR_FALLBACK_OPEN;

    if (is_late(budget)) {
        *ret_told = (struct wr_share_told){
            .decision = {WEIR_WAIT, WEIR_REASON_NONE, LATE_WAIT}, .quota = purse->quota, .source = WR_SOURCE_LATE};
        return;
    }
    if (fallback != WR_FALLBACK_SHARE || !ask_share(budget, purse, permits, ret_told))
        *ret_told = (struct wr_share_told){
            .decision = {opens ? WEIR_GO : WEIR_WAIT, WEIR_REASON_NONE, opens ? 0 : CLOSED_WAIT},
            .quota = purse->quota,
            .source = opens ? WR_SOURCE_OPEN : WR_SOURCE_CLOSED,
        };
    if (ret_told->decision.verdict != WEIR_GO)
        return;
    wr_purse_owe(purses, purse, permits);
    wr_purse_fly(budget, purses, purse, 0, permits);
}

void wr_purse_decide_alone(struct wr_budget *budget, struct wr_purses *purses, struct wr_purse *purse, uint32_t permits,
                           int64_t now, struct wr_share_told *ret_told)
{
    struct wr_share_move move = wr_lease_try(&budget->terms, &purse->lease, &purses->seat, now, permits);

    wr_lease_missed(&purse->lease, move.number); /* no more permits are asked for */
    if (move.way == WR_SHARE_ASK)
        wr_purse_fall_back(budget, purses, purse, permits, ret_told);
    else
        wr_purse_tell(purses, purse, &move, permits, now, ret_told);
}
