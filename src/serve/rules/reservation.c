/* SPDX-License-Identifier: MIT */
/* reservation.c - reservations: grants that are ended by their number, or when their lease expires.
 *
 * A number consists of the slot and, above it, 32 random bits, so that stale and guessed numbers
 * match no reservation. It is below 2^53, hence exact as a number in JSON. */
#include "base/alloc.h"
#include "base/error.h"
#include "core/admit/usage_record.h"
#include "limiter/clock/clock.h"
#include "limiter/memory/memory.h"
#include "serve/rules/rules_internal.h"

#include <string.h>

#define SLOT_BITS 21
#define SLOTS_PER_LOCK 1024 /* slots examined per lock; decisions wait for the lock */

struct wr_reservation {
    uint64_t number;
    int64_t ends_at;
    struct wr_rules_snapshot *snapshot;
    size_t bytes; /* size of this memory block */
    uint32_t origin, count;
    weir_ruling rulings[]; /* `count` rulings, followed by their keys, concatenated */
};

/* ---- packing --------------------------------------------------------------------------------- */

/* Copies the rulings of an admission and their keys. Returns NULL if memory is short. */
static struct wr_reservation *pack_reservation(const weir_allocator *allocator, const weir_admission_result *admission)
{
    size_t bytes = sizeof(struct wr_reservation) + admission->count * sizeof(weir_ruling);

    for (uint32_t i = 0; i < admission->count; i++)
        bytes += admission->rulings[i].key_bytes;
    struct wr_reservation *hold = wr_alloc(allocator, bytes, _Alignof(struct wr_reservation));
    if (hold == NULL)
        return NULL;
    hold->bytes = bytes;
    hold->count = admission->count;
    memcpy(hold->rulings, admission->rulings, admission->count * sizeof(weir_ruling));
    char *keys = (char *)&hold->rulings[admission->count];
    for (uint32_t i = 0; i < admission->count; i++) {
        memcpy(keys, admission->keys + admission->rulings[i].key_at, admission->rulings[i].key_bytes);
        keys += admission->rulings[i].key_bytes;
    }
    return hold;
}

static void unpack_admission(const struct wr_reservation *hold, weir_admission_result *ret_admission)
{
    const char *keys = (const char *)&hold->rulings[hold->count];

    wr_admission_start(ret_admission);
    ret_admission->count = hold->count;
    memcpy(ret_admission->rulings, hold->rulings, hold->count * sizeof(weir_ruling));
    for (uint32_t i = 0; i < hold->count; i++) {
        memcpy(ret_admission->keys + hold->rulings[i].key_at, keys, hold->rulings[i].key_bytes);
        keys += hold->rulings[i].key_bytes;
    }
}

static void free_reservation(const weir_allocator *allocator, struct wr_reservation *hold)
{
    wr_rules_snapshot_unref(hold->snapshot);
    wr_free(allocator, hold, hold->bytes, _Alignof(struct wr_reservation));
}

/* ---- slots ----------------------------------------------------------------------------------- */

/* Appends a slot to the ring of free slots. */
static void add_free_slot(struct wr_reservations *holds, uint32_t slot)
{
    struct wr_reservation_slot *slots = holds->slots, *begin = &slots[holds->max];

    slots[slot] = (struct wr_reservation_slot){.hold = NULL, .next = holds->max, .before = begin->before};
    slots[begin->before].next = slot;
    begin->before = slot;
}

/* Removes a slot from the ring of free slots and fills it. */
static void fill_slot(struct wr_reservations *holds, uint32_t slot, struct wr_reservation *hold)
{
    struct wr_reservation_slot *slots = holds->slots;

    slots[slots[slot].before].next = slots[slot].next;
    slots[slots[slot].next].before = slots[slot].before;
    slots[slot].hold = hold;
    holds->count++;
}

int wr_reservations_init(struct wr_reservations *ret_holds, uint32_t max, uint32_t origins,
                         const weir_allocator *allocator)
{
    uint64_t seed;
    int error = wr_random(&seed, sizeof seed);

    if (error < 0)
        return error;
    if (max == 0 || max > 1u << SLOT_BITS)
        return wr_invalid("holds is out of range; it must be 1 ... 2097152");
    struct wr_reservation_slot *slots =
        wr_alloc_array(allocator, max + 1, sizeof *slots, _Alignof(struct wr_reservation_slot));
    if (slots == NULL)
        return WEIR_E_NOMEM;
    if (pthread_mutex_init(&ret_holds->lock, NULL) != 0) {
        wr_free(allocator, slots, (max + 1) * sizeof *slots, _Alignof(struct wr_reservation_slot));
        return WEIR_E_SYSTEM;
    }
    ret_holds->slots = slots;
    ret_holds->max = max;
    ret_holds->origins = origins > 0 && origins <= WR_ORIGINS_MAX ? origins : 1;
    slots[max].next = slots[max].before = max;
    for (uint32_t i = 0; i < max; i++)
        add_free_slot(ret_holds, i);
    wr_rng_init(&ret_holds->rng, seed);
    return 0;
}

void wr_reservations_release(struct wr_rules *book)
{
    struct wr_reservations *holds = &book->holds;

    if (holds->slots == NULL)
        return;
    for (uint32_t i = 0; i < holds->max; i++) {
        if (holds->slots[i].hold != NULL)
            free_reservation(book->allocator, holds->slots[i].hold);
    }
    wr_free(book->allocator, holds->slots, (holds->max + 1) * sizeof *holds->slots,
            _Alignof(struct wr_reservation_slot));
    (void)pthread_mutex_destroy(&holds->lock);
}

/* Returns true if `origin` may add a reservation. Each origin has an equal part, so that one cannot
 * block the others. */
static bool origin_has_room(const struct wr_reservations *holds, uint32_t origin)
{
    uint32_t part = holds->max / holds->origins;
    return holds->count < holds->max && holds->counts[origin] < (part > 0 ? part : 1);
}

/* Puts a reservation into the slot that has been free longest. Returns false if there is no
 * room. */
static bool place_reservation(struct wr_reservations *holds, struct wr_reservation *hold)
{
    (void)pthread_mutex_lock(&holds->lock);
    uint32_t slot = holds->slots[holds->max].next;
    bool has_room = origin_has_room(holds, hold->origin);
    if (has_room) {
        /* never 0, which means no reservation */
        uint64_t chance = wr_rng_next(&holds->rng) >> 32 | 1;
        hold->number = chance << SLOT_BITS | slot;
        fill_slot(holds, slot, hold);
        holds->counts[hold->origin]++;
    }
    (void)pthread_mutex_unlock(&holds->lock);
    return has_room;
}

/* Puts a reservation that already has a number into its slot. Returns false if the slot is in
 * use. */
static bool place_restored(struct wr_reservations *holds, struct wr_reservation *hold)
{
    uint32_t slot = (uint32_t)(hold->number & ((1u << SLOT_BITS) - 1));

    (void)pthread_mutex_lock(&holds->lock);
    bool has_room = slot < holds->max && holds->slots[slot].hold == NULL;
    if (has_room)
        fill_slot(holds, slot, hold);
    (void)pthread_mutex_unlock(&holds->lock);
    return has_room;
}

/* Removes the reservation with this number from its slot. Returns NULL if there is none. */
static struct wr_reservation *remove_reservation(struct wr_reservations *holds, uint64_t number)
{
    uint32_t slot = (uint32_t)(number & ((1u << SLOT_BITS) - 1));
    struct wr_reservation *hold = NULL;

    (void)pthread_mutex_lock(&holds->lock);
    if (slot < holds->max && holds->slots[slot].hold != NULL && holds->slots[slot].hold->number == number) {
        hold = holds->slots[slot].hold;
        add_free_slot(holds, slot);
        holds->count--;
        if (hold->origin != WR_ORIGIN_NONE)
            holds->counts[hold->origin]--;
    }
    (void)pthread_mutex_unlock(&holds->lock);
    return hold;
}

/* ---- adding ---------------------------------------------------------------------------------- */

/* Returns the permits of a verdict that could not be reserved, and sets its cause. */
static void return_permits(const struct wr_rules_snapshot *snapshot, enum wr_cause cause, struct wr_verdict *verdict)
{
    (void)weir_admission_cancel(snapshot->counter, &verdict->admission);
    verdict->cause = cause;
    if (cause == WR_CAUSE_FAILED_OPEN)
        return;
    verdict->allowed = verdict->admission.allowed = false;
    verdict->status = 503;
    verdict->retry_after_ns = WEIR_SECOND;
}

void wr_reservation_add(struct wr_rules *book, struct wr_rules_snapshot *snapshot, int64_t lease_ns,
                        struct wr_verdict *verdict)
{
    struct wr_reservation *hold = pack_reservation(book->allocator, &verdict->admission);

    if (hold == NULL) {
        return_permits(snapshot, snapshot->opens_on_error ? WR_CAUSE_FAILED_OPEN : WR_CAUSE_FAILED, verdict);
        return;
    }
    if (lease_ns <= 0 || lease_ns > WEIR_DURATION_MAX)
        lease_ns = snapshot->lease_ns;
    hold->ends_at = wr_clock_now(book->clock) + lease_ns;
    hold->snapshot = snapshot;
    hold->origin = verdict->origin < book->holds.origins ? verdict->origin : 0;
    wr_rules_snapshot_ref(snapshot);
    if (place_reservation(&book->holds, hold)) {
        verdict->hold = hold->number;
        return;
    }
    free_reservation(book->allocator, hold);
    return_permits(snapshot, WR_CAUSE_FULL, verdict);
}

/* ---- ending ---------------------------------------------------------------------------------- */

/* Limits the `used` permits of a commit, so that a caller's mistake does not block its key for
 * years. */
static uint32_t max_used_permits(const struct wr_rules_snapshot *snapshot, const weir_ruling *ruling)
{
    uint32_t plan = ruling->plan >= WR_RULE_PLAN_FIRST ? ruling->plan - WR_RULE_PLAN_FIRST + 1 : 0;
    const weir_stack *stack = &snapshot->rules[ruling->rule].stacks[plan];
    uint32_t most = 0;

    for (uint32_t i = 0; i < stack->count; i++)
        most = stack->limits[i].permits > most ? stack->limits[i].permits : most;
    return most < UINT32_MAX / WR_COMMIT_LIMITS_MAX ? most * WR_COMMIT_LIMITS_MAX : UINT32_MAX;
}

/* Replaces the estimated cost by `used` permits, at each rule that granted the request. */
static void settle_used(const struct wr_rules_snapshot *snapshot, weir_admission_result *admission, uint32_t used)
{
    for (uint32_t i = 0; i < admission->count; i++) {
        uint32_t most = max_used_permits(snapshot, &admission->rulings[i]);
        if (admission->rulings[i].reserved)
            (void)weir_admission_settle(snapshot->counter, admission, i, used < most ? used : most);
    }
}

enum reservation_ending {
    ENDED,
    COMMITTED,
    CANCELLED
};

static int end_reservation(struct wr_rules *book, uint64_t number, enum reservation_ending how, uint32_t used)
{
    struct wr_reservation *hold = remove_reservation(&book->holds, number);
    weir_admission_result admission;

    if (hold == NULL)
        return WEIR_E_ABSENT;
    weir_admission *counter = hold->snapshot->counter;
    unpack_admission(hold, &admission);
    if (how == COMMITTED && used > 0)
        settle_used(hold->snapshot, &admission, used);
    if (how == CANCELLED || (how == COMMITTED && used == 0))
        (void)weir_admission_cancel(counter, &admission);
    else
        (void)weir_admission_release(counter, &admission);
    free_reservation(book->allocator, hold);
    return 0;
}

int wr_reservation_commit(struct wr_rules *book, uint64_t hold, uint32_t used)
{
    return end_reservation(book, hold, COMMITTED, used);
}

int wr_reservation_cancel(struct wr_rules *book, uint64_t hold)
{
    return end_reservation(book, hold, CANCELLED, 0);
}

int wr_reservation_end(struct wr_rules *book, uint64_t hold)
{
    return end_reservation(book, hold, ENDED, 0);
}

/* Returns the number of the next expired reservation in the slots *at ... `end` - 1; 0 if there is
 * none. */
static uint64_t next_expired(struct wr_reservations *holds, uint32_t *at, uint32_t end, int64_t now)
{
    uint64_t number = 0;

    (void)pthread_mutex_lock(&holds->lock);
    for (; *at < end && number == 0; ++*at) {
        const struct wr_reservation *hold = holds->slots[*at].hold;
        if (hold != NULL && hold->ends_at <= now)
            number = hold->number;
    }
    (void)pthread_mutex_unlock(&holds->lock);
    return number;
}

void wr_reservations_expire(struct wr_rules *book)
{
    int64_t now = wr_clock_now(book->clock);
    struct wr_reservations *holds = &book->holds;
    uint32_t at = 0;

    while (at < holds->max) {
        uint32_t end = holds->max - at > SLOTS_PER_LOCK ? at + SLOTS_PER_LOCK : holds->max;
        uint64_t number = next_expired(holds, &at, end, now);
        /* fails if another thread has ended it meanwhile */
        if (number != 0 && wr_reservation_end(book, number) == 0)
            atomic_fetch_add(&holds->expired, 1);
    }
}

/* ---- handover to another daemon -------------------------------------------------------------- */

/* Returns true if the ruling holds permits of a table that `snapshot` still uses. */
static bool is_in_snapshot(const struct wr_rules_snapshot *snapshot, const struct wr_reservation *hold,
                           const weir_ruling *ruling)
{
    const struct wr_rule_table *rule_table = wr_ruling_table(hold->snapshot, ruling);
    const struct wr_compiled_rule *rule =
        wr_rules_snapshot_find(snapshot, hold->snapshot->rules[ruling->rule].rule_stats->name);
    bool is_there = false;

    for (uint32_t i = 0; rule != NULL && i <= rule->written->plan_count; i++)
        is_there = is_there || rule->rule_tables[i] == rule_table;
    return ruling->permits > 0 && rule_table != NULL && is_there;
}

static void append_ruling(struct wr_buf *buf, const struct wr_rules_snapshot *snapshot, const weir_ruling *ruling,
                          const char *key, int64_t now)
{
    const struct wr_compiled_rule *rule = &snapshot->rules[ruling->rule];
    int64_t ago_ns = ruling->reserved && now > ruling->receipt.at ? now - ruling->receipt.at : 0;
    struct wr_limit_usage past = {ruling->permits, ago_ns < WEIR_DURATION_MAX ? ago_ns : WEIR_DURATION_MAX};

    wr_buf_append_string(buf, "r ");
    wr_buf_append_string(buf, rule->rule_stats->name);
    if (ruling->plan >= WR_RULE_PLAN_FIRST) {
        wr_buf_append_string(buf, "\np ");
        wr_buf_append_string(buf, rule->written->plans[ruling->plan - WR_RULE_PLAN_FIRST].name);
    }
    wr_buf_append_char(buf, '\n');
    wr_usage_record_append(buf, 't', (struct wr_span){key, ruling->key_bytes}, &past, 1);
    wr_buf_append_char(buf, '\n');
}

static void append_reservation(struct wr_buf *buf, const struct wr_rules_snapshot *snapshot,
                               const struct wr_reservation *hold, int64_t now)
{
    const char *key = (const char *)&hold->rulings[hold->count];

    wr_buf_append_string(buf, "h ");
    wr_buf_append_u64(buf, hold->number);
    wr_buf_append_char(buf, ' ');
    wr_buf_append_u64(buf, hold->ends_at > now ? (uint64_t)(hold->ends_at - now) : 0);
    wr_buf_append_char(buf, '\n');
    for (uint32_t i = 0; i < hold->count; i++) {
        if (is_in_snapshot(snapshot, hold, &hold->rulings[i]))
            append_ruling(buf, hold->snapshot, &hold->rulings[i], key, now);
        key += hold->rulings[i].key_bytes;
    }
}

bool wr_reservation_append(struct wr_rules *book, const struct wr_rules_snapshot *snapshot, uint32_t slot, int64_t now,
                           struct wr_buf *buf)
{
    struct wr_reservations *holds = &book->holds;

    (void)pthread_mutex_lock(&holds->lock);
    if (slot < holds->max && holds->slots[slot].hold != NULL)
        append_reservation(buf, snapshot, holds->slots[slot].hold, now);
    (void)pthread_mutex_unlock(&holds->lock);
    return slot < holds->max;
}

bool wr_reservation_restore(struct wr_rules *book, struct wr_rules_snapshot *snapshot, uint64_t number,
                            int64_t lease_ns, const weir_admission_result *admission)
{
    struct wr_reservation *hold = pack_reservation(book->allocator, admission);

    if (hold == NULL)
        return false;
    hold->number = number;
    hold->ends_at = wr_clock_now(book->clock) + lease_ns;
    hold->snapshot = snapshot;
    hold->origin = WR_ORIGIN_NONE;
    wr_rules_snapshot_ref(snapshot);
    if (place_restored(&book->holds, hold))
        return true;
    free_reservation(book->allocator, hold);
    return false;
}
