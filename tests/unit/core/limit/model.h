/* SPDX-License-Identifier: MIT */
/* model.h - simple, slow limiters that the real ones are compared with.
 *
 * Each model only decides whether n permits are granted at an instant. The wait, the remaining
 * permits and the reset time follow from that: the test checks the instant that the limiter names
 * and the nanosecond before it.
 *     smooth bucket    permits as a fraction, refilled by the elapsed time
 *     stepped bucket   the same with whole periods
 *     windows          a list of charges with the number of their window, counted anew each time
 *     log              all instants, counted anew each time
 *     leaky bucket     the earliest next start
 *     concurrency      a number */
#ifndef WEIR_TEST_LIMIT_MODEL_H
#define WEIR_TEST_LIMIT_MODEL_H

#include "core/limit/algorithm.h"
#include "lib/test.h"

enum kind {
    SMOOTH,
    STEPPED,
    FIXED,
    SLIDING,
    LOGGED,
    LEAKY,
    AT_ONCE,
    KINDS,
};

#define CHARGES_MAX 4096

struct charge {
    int64_t slot; /* number of the window; for the log: the instant */
    uint64_t count;
};

struct model {
    enum kind kind;
    weir_limit limit;
    /* buckets: instant of `left`; leaky: next start; windows: start of window 0 */
    int64_t last_at;
    wr_i128 left;     /* smooth: in units of 1/period_ns permit; stepped: permits */
    uint64_t given;   /* buckets: units given back so far */
    uint64_t changes; /* number of changes of the rule */
    int64_t slot;     /* windows: the newest window that was charged */
    uint64_t in_flight;
    uint64_t lost; /* log: instants dropped because a smaller quota had no room */
    size_t charges;
    struct charge charge[CHARGES_MAX];
};

/* State that the model stores with a reservation, so that it can be cancelled. */
struct model_receipt {
    int64_t at;
    /* windows: the window; log: the instant; leaky: the next start after this one */
    int64_t charged;
    uint64_t missing, given, changes;
    bool too_late; /* charged so long after `at` that the limiter's mark cannot express it */
};

static inline int64_t floor_div(wr_i128 a, int64_t b)
{
    return (int64_t)(a / b - (a % b < 0));
}

static inline void model_start(struct model *ret_model, enum kind kind, const weir_limit *limit, int64_t now)
{
    memset(ret_model, 0, offsetof(struct model, charge));
    ret_model->kind = kind;
    ret_model->limit = *limit;
    ret_model->last_at = kind == LEAKY ? INT64_MIN / 4 : now;
    ret_model->left = kind == SMOOTH ? (wr_i128)limit->permits * limit->period_ns : limit->initial;
}

/* ---- buckets: the level at an instant, as last_at and left would be then --------------------- */

static inline wr_i128 smooth_left(const struct model *model, int64_t now)
{
    wr_i128 most = (wr_i128)model->limit.permits * model->limit.period_ns;
    wr_i128 left = model->left + (wr_i128)(now - model->last_at) * model->limit.refill;
    return left < most ? left : most;
}

static inline wr_i128 stepped_left(const struct model *model, int64_t now, int64_t *ret_last_at)
{
    int64_t steps = now > model->last_at ? floor_div(now - model->last_at, model->limit.period_ns) : 0;
    wr_i128 left = model->left + (wr_i128)steps * model->limit.refill;
    *ret_last_at = model->last_at + steps * model->limit.period_ns;
    return left < model->limit.permits ? left : model->limit.permits;
}

/* Returns the deepest possible debt: WEIR_DURATION_MAX of refill below an empty bucket. */
static inline wr_i128 deepest(enum kind kind, const weir_limit *limit)
{
    return -(wr_i128)(kind == SMOOTH ? WEIR_DURATION_MAX : WEIR_DURATION_MAX / limit->period_ns) * limit->refill;
}

static inline void take_bucket(struct model *model, wr_i128 before, wr_i128 parts)
{
    wr_i128 least = deepest(model->kind, &model->limit);
    least = before < least ? before : least;
    model->left = before - parts > least ? before - parts : least;
}

/* ---- windows and logs: counted anew each time ------------------------------------------------ */

static inline int64_t slot_of(const struct model *model, int64_t now)
{
    int64_t slot = floor_div(now - model->last_at, model->limit.period_ns);
    return slot > model->slot ? slot : model->slot;
}

static inline uint64_t counted(const struct model *model, int64_t first, int64_t last)
{
    uint64_t count = 0;
    for (size_t i = 0; i < model->charges; i++)
        count += model->charge[i].slot >= first && model->charge[i].slot <= last ? model->charge[i].count : 0;
    return count;
}

static inline void charge(struct model *model, int64_t slot, uint64_t count)
{
    /* Windows forget only charges that no longer count. The log drops those beyond its quota, as
     * documented. */
    size_t kept = 0;
    for (size_t i = 0; i < model->charges; i++)
        if (model->kind == LOGGED || model->charge[i].slot >= slot - 1)
            model->charge[kept++] = model->charge[i];
    model->charges = kept;
    assert_true(model->charges < CHARGES_MAX);
    model->charge[model->charges++] = (struct charge){slot, count};
    uint64_t all = counted(model, INT64_MIN, INT64_MAX);
    for (size_t i = 0; model->kind == LOGGED && all > model->limit.permits; i++) {
        uint64_t excess = all - model->limit.permits;
        uint64_t drop = model->charge[i].count < excess ? model->charge[i].count : excess;
        model->charge[i].count -= drop;
        all -= drop;
    }
    while (model->kind == LOGGED && model->charges > 0 && model->charge[0].count == 0)
        memmove(model->charge, model->charge + 1, --model->charges * sizeof model->charge[0]);
}

static inline void uncharge(struct model *model, int64_t slot, uint64_t count)
{
    for (size_t i = 0; i < model->charges && count > 0; i++) {
        if (model->charge[i].slot == slot) {
            uint64_t drop = model->charge[i].count < count ? model->charge[i].count : count;
            model->charge[i].count -= drop;
            count -= drop;
        }
    }
}

/* ---- operations of a model ------------------------------------------------------------------- */

static inline bool sliding_grants(const struct model *model, int64_t now, uint32_t permits)
{
    int64_t slot = slot_of(model, now), window_ns = model->limit.period_ns;
    int64_t elapsed_ns = now - model->last_at - slot * window_ns;
    wr_i128 prev = counted(model, slot - 1, slot - 1), curr = counted(model, slot, slot);
    elapsed_ns = elapsed_ns > 0 ? elapsed_ns : 0;
    /* Computes prev x (1 - elapsed/window) + curr + (n - 1) < max, multiplied by window. */
    return prev * (window_ns - elapsed_ns) + (curr + permits - 1) * window_ns <
           (wr_i128)model->limit.permits * window_ns;
}

static inline bool model_grants(const struct model *model, int64_t now, uint32_t permits)
{
    int64_t slot, ignored;
    if (permits > model->limit.permits)
        return false;
    switch (model->kind) {
    case SMOOTH:
        return smooth_left(model, now) >= (wr_i128)permits * model->limit.period_ns;
    case STEPPED:
        return stepped_left(model, now, &ignored) >= permits;
    case FIXED:
        slot = slot_of(model, now);
        return counted(model, slot, slot) + permits <= model->limit.permits;
    case SLIDING:
        return sliding_grants(model, now, permits);
    case LOGGED:
        return counted(model, now - model->limit.period_ns + 1, INT64_MAX) + permits <= model->limit.permits;
    case LEAKY:
        return now >= model->last_at;
    default:
        return model->in_flight + permits <= model->limit.permits;
    }
}

static inline bool model_fresh(const struct model *model, int64_t now)
{
    int64_t slot, ignored;
    switch (model->kind) {
    case STEPPED:
        return stepped_left(model, now, &ignored) >= model->limit.initial;
    case FIXED:
        slot = slot_of(model, now);
        return counted(model, slot, slot) == 0;
    case SLIDING:
        slot = slot_of(model, now);
        return counted(model, slot - 1, slot) == 0;
    case LEAKY:
        return model_grants(model, now, 1);
    default:
        return model_grants(model, now, model->limit.permits);
    }
}

/* Returns the permits of a unit. Large buckets record missing permits in units, so that a capacity
 * is at most 2^16 units. */
static inline uint64_t unit_of(const struct model *model)
{
    uint64_t unit = 1;
    while (model->limit.permits / unit > UINT16_MAX)
        unit *= 2;
    return unit;
}

static inline uint64_t units_missing(const struct model *model)
{
    wr_i128 most = model->limit.permits, part = model->kind == SMOOTH ? model->limit.period_ns : 1;
    wr_i128 missing = (most * part - model->left) / part;
    return (uint64_t)(missing < most ? missing : most) / unit_of(model);
}

static inline void take_window(struct model *model, int64_t now, uint32_t permits, struct model_receipt *receipt)
{
    receipt->charged = model->slot = slot_of(model, now);
    receipt->too_late = model->last_at + model->slot * model->limit.period_ns - now > UINT32_MAX;
    charge(model, model->slot, permits);
}

static inline void take_log(struct model *model, int64_t now, uint32_t permits, struct model_receipt *receipt)
{
    int64_t at = now;
    for (size_t i = 0; i < model->charges; i++)
        at = model->charge[i].count > 0 && model->charge[i].slot > at ? model->charge[i].slot : at;
    receipt->charged = at;
    receipt->too_late = at - now > UINT32_MAX;
    charge(model, at, permits);
}

/* Takes permits from the leaky bucket. Its debt ends two WEIR_DURATION_MAX from now. */
static inline void take_leaky(struct model *model, int64_t now, uint32_t permits)
{
    int64_t from_at = now > model->last_at ? now : model->last_at;
    int64_t most_at = now + 2 * WEIR_DURATION_MAX > from_at ? now + 2 * WEIR_DURATION_MAX : from_at;
    wr_i128 next_at = from_at + (wr_i128)permits * model->limit.period_ns;
    model->last_at = next_at < most_at ? (int64_t)next_at : most_at;
}

static inline void model_take(struct model *model, int64_t now, uint32_t permits, struct model_receipt *ret_receipt)
{
    struct model_receipt receipt = {.at = now, .changes = model->changes, .given = model->given};
    switch (model->kind) {
    case SMOOTH:
        take_bucket(model, smooth_left(model, now), (wr_i128)permits * model->limit.period_ns);
        model->last_at = now;
        break;
    case STEPPED:
        take_bucket(model, stepped_left(model, now, &model->last_at), permits);
        break;
    case FIXED:
    case SLIDING:
        take_window(model, now, permits, &receipt);
        break;
    case LOGGED:
        take_log(model, now, permits, &receipt);
        break;
    case LEAKY:
        take_leaky(model, now, permits);
        receipt.charged = model->last_at;
        break;
    default:
        model->in_flight += permits;
    }
    receipt.missing = model->kind <= STEPPED ? units_missing(model) : 0;
    *ret_receipt = receipt;
}

/* Gives back permits by the rule of mark.h, min(k, max(k, p - g) - e), in the units of the
 * model. */
static inline void give_bucket(struct model *model, int64_t now, const struct model_receipt *receipt, uint32_t permits)
{
    wr_i128 part = model->kind == SMOOTH ? model->limit.period_ns : 1, unit = unit_of(model);
    wr_i128 behind = (wr_i128)receipt->missing - (wr_i128)(model->given - receipt->given);
    wr_i128 came = (wr_i128)(now - receipt->at) * model->limit.refill;
    if (model->kind == STEPPED) {
        int64_t at = receipt->at;
        model->left = stepped_left(model, now, &model->last_at);
        /* steps in (at, last_at] */
        came = at < model->last_at ? -(wr_i128)floor_div(at - model->last_at, model->limit.period_ns) : 0;
        came *= model->limit.refill;
    }
    wr_i128 back = (behind * unit > permits ? behind * unit : permits) * part - came;
    wr_i128 left = model->kind == SMOOTH ? smooth_left(model, now) : model->left;
    wr_i128 most = model->limit.permits * part;
    back = back < permits * part ? back : permits * part;
    if (receipt->changes != model->changes || behind < -(1 << 20) || back <= 0 || left == most)
        return;
    model->left = left + back < most ? left + back : most;
    model->last_at = model->kind == SMOOTH ? now : model->last_at;
    model->given += (uint64_t)((permits + unit - 1) / unit);
}

static inline void model_give(struct model *model, int64_t now, const struct model_receipt *receipt, uint32_t permits)
{
    switch (model->kind) {
    case SMOOTH:
    case STEPPED:
        give_bucket(model, now, receipt, permits);
        break;
    case FIXED:
    case SLIDING:
        model->slot = slot_of(model, now);
        uncharge(model, receipt->charged, permits);
        break;
    case LOGGED:
        uncharge(model, receipt->charged, permits);
        break;
    case LEAKY:
        if (model->last_at == receipt->charged &&
            model->last_at - receipt->at >= (wr_i128)permits * model->limit.period_ns)
            model->last_at -= permits * model->limit.period_ns;
        break;
    default:
        model->in_flight -= permits < model->in_flight ? permits : model->in_flight;
    }
}

static inline void model_release(struct model *model, uint32_t permits)
{
    if (model->kind == AT_ONCE)
        model->in_flight -= permits < model->in_flight ? permits : model->in_flight;
}

/* ---- a change of the rule -------------------------------------------------------------------- */

/* Carries a window over. It keeps its start if `now` is inside the new length; otherwise it starts
 * now. */
static inline void carry_window(struct model *model, const weir_limit *to, int64_t now)
{
    int64_t slot = slot_of(model, now);
    int64_t start_at = model->last_at + slot * model->limit.period_ns;
    uint64_t prev = counted(model, slot - 1, slot - 1), curr = counted(model, slot, slot);
    model->last_at = now - start_at < to->period_ns ? start_at : now;
    model->slot = 0;
    model->charges = 2;
    model->charge[0] = (struct charge){-1, prev};
    model->charge[1] = (struct charge){0, curr};
}

static inline void carry_bucket(struct model *model, const weir_limit *to, int64_t now)
{
    const weir_limit *from = &model->limit;
    if (from->permits == to->permits && from->refill == to->refill && from->period_ns == to->period_ns)
        return;
    if (model->kind == SMOOTH) {
        wr_i128 left = smooth_left(model, now) * to->period_ns;
        model->left = left / from->period_ns - (left % from->period_ns < 0);
        model->last_at = now;
    } else {
        model->left = stepped_left(model, now, &model->last_at);
        model->last_at = now - model->last_at < to->period_ns ? model->last_at : now;
    }
    wr_i128 most = model->kind == SMOOTH ? (wr_i128)to->permits * to->period_ns : to->permits;
    wr_i128 least = deepest(model->kind, to);
    model->left = model->left < most ? model->left : most;
    model->left = model->left > least ? model->left : least;
    model->changes++;
}

/* Carries a leaky bucket over. Each interval still to pass, at least one, becomes a new
 * interval. */
static inline void carry_leaky(struct model *model, const weir_limit *to, int64_t now)
{
    int64_t intervals = -floor_div(now - (wr_i128)model->last_at, model->limit.period_ns);
    intervals = intervals > 1 ? intervals : 1;
    model->last_at -= intervals * model->limit.period_ns;
    model->last_at += (intervals < to->permits ? intervals : to->permits) * to->period_ns;
}

/* Carries a log over. Drops instants beyond the new quota, and restores those that a smaller quota
 * had dropped. */
static inline void carry_log(struct model *model, uint64_t inside)
{
    charge(model, INT64_MIN / 4, 0);
    uint64_t kept = counted(model, INT64_MIN, INT64_MAX);
    model->lost = inside >= kept && inside > 0 ? model->lost + inside - kept : 0;
    uint64_t back = model->limit.permits - kept < model->lost ? model->limit.permits - kept : model->lost;
    model->lost -= back;
    if (back > 0)
        model->charge[0].count += back;
}

static inline void model_carry(struct model *model, const weir_limit *to, int64_t now)
{
    if (model->kind <= STEPPED)
        carry_bucket(model, to, now);
    if (model->kind == FIXED || model->kind == SLIDING)
        carry_window(model, to, now);
    if (model->kind == LEAKY)
        carry_leaky(model, to, now);
    uint64_t inside = counted(model, now - model->limit.period_ns + 1, INT64_MAX);
    model->limit = *to;
    if (model->kind == LOGGED)
        carry_log(model, inside);
}

#endif
