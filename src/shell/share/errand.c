/* SPDX-License-Identifier: MIT */
/* errand.c - requests to the store: made by a caller, ended by the agency, freed by the last. */
#include "shell/share/agency.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "shell/clock/clock.h"

#include <string.h>

#define REMINDED 64 /* keys that are checked under one lock */

/* Returns the next message number of the key. It also rises if the key was forgotten. */
static uint64_t next_message(struct wr_purse *purse)
{
    uint64_t now_us = (uint64_t)wr_boottime_now() / 1000;

    purse->message = now_us > purse->message ? now_us : purse->message + 1;
    return purse->message;
}

/* Moves the debt into a bill. While one is open, new debt waits until it is answered. */
static void make_bill(struct wr_purse *purse, uint64_t number)
{
    if (purse->billed > 0)
        return;
    purse->billed = purse->owed;
    purse->bill = number;
    purse->owed = 0;
}

/* Marks everything that the account has to report as handed to an errand. */
static void hand_over(const struct wr_budget *budget, struct wr_purses *purses, struct wr_purse *purse,
                      uint32_t permits)
{
    purse->back = 0;
    wr_list_take(&purse->due);
    if (!budget->has_flight)
        return;
    purse->flying += permits;
    purse->told_at = wr_boottime_now();
    if (wr_list_holds(&purse->flight)) {
        wr_list_take(&purse->flight);
        wr_list_push(&purses->flights, &purse->flight);
    }
}

struct wr_errand *wr_errand_new(struct wr_budget *budget, struct wr_purses *purses, struct wr_purse *purse,
                                uint32_t permits, const struct wr_share_move *move)
{
    const struct wr_agency *agency = budget->agency;
    const char *seen = wr_purse_seen(purse);
    size_t before = strlen(agency->prefix) + 2 + strlen(budget->name) + 1, seen_bytes = strlen(seen) + 1;
    size_t text_bytes = before + purse->key_bytes + 1 + seen_bytes;
    size_t bytes = sizeof(struct wr_errand) + text_bytes;
    struct wr_errand *errand = wr_take(agency->allocator, bytes, _Alignof(struct wr_errand));
    struct wr_buf text;

    if (errand == NULL)
        return NULL;
    uint64_t message = next_message(purse);
    make_bill(purse, message);
    *errand = (struct wr_errand){
        .budget = budget,
        .purses = purses,
        .permits = permits,
        .extra = move->extra,
        .number = move->number,
        .owed = purse->billed,
        .bill = purse->bill,
        .back = purse->back,
        .back_at = purse->back_at,
        .held = purse->held + purse->flying,
        .message = message,
        .asked_at = wr_boottime_now(),
        .bytes = bytes,
        .key_at = before,
        .key_bytes = purse->key_bytes,
        .store_key_bytes = before + purse->key_bytes + 1,
        .seen_at = before + purse->key_bytes + 1,
    };
    wr_buf_init_fixed(&text, errand->text, text_bytes);
    wr_buf_append_string(&text, agency->prefix);
    wr_buf_append(&text, ":{", 2);
    wr_buf_append_string(&text, budget->name);
    wr_buf_append_char(&text, '\n'); /* a separator, because names have no line feed */
    wr_buf_append(&text, purse->text, purse->key_bytes);
    wr_buf_append_char(&text, '}');
    memcpy(errand->text + errand->seen_at, seen, seen_bytes);
    hand_over(budget, purses, purse, permits);
    wr_budget_hold(budget);
    return errand;
}

static void free_errand(struct wr_errand *errand)
{
    struct wr_budget *budget = errand->budget;
    wr_give(budget->agency->allocator, errand, errand->bytes, _Alignof(struct wr_errand));
    wr_budget_drop(budget);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void settle_bill(const struct wr_errand *errand, struct wr_purse *purse)
{
    if (errand->bill == purse->bill) {
        errand->purses->owed -= purse->billed;
        purse->billed = 0;
    }
    if (purse->owed > 0)
        wr_purse_due(errand->purses, purse);
}

static void take_answer(struct wr_errand *errand, struct wr_purse *purse, const struct wr_charge_told *told,
                        int64_t now)
{
    struct wr_purses *purses = errand->purses;
    const struct wr_share_reply *reply = &told->reply;
    size_t seen_bytes = strlen(told->seen) + 1;

    purse->outage = 0;
    settle_bill(errand, purse);
    purses->damaged += told->damaged;
    wr_lease_told(&errand->budget->terms, &purse->lease, &purses->seat, now, errand->number, errand->permits, reply);
    if (seen_bytes <= purse->seen_room)
        memcpy(wr_purse_seen(purse), told->seen, seen_bytes);
    purse->quota = errand->budget->quota;
    if (told->quota.remaining < purse->quota.limit)
        purse->quota.remaining = told->quota.remaining;
    purse->quota.reset_ns = told->quota.reset_ns;
    purse->fresh_at = now + told->quota.reset_ns;
    wr_purse_note_charged(purses, purse, reply->granted ? errand->permits : 0, reply->extra, now);
    errand->told = (struct wr_share_told){
        .decision = {reply->granted ? WEIR_GO : WEIR_WAIT, reply->granted ? WEIR_REASON_NONE : WEIR_REASON_TOKENS,
                     reply->granted ? 0 : reply->wait_ns},
        .quota = purse->quota,
        .source = WR_SOURCE_STORE,
        .charged_at = told->at,
    };
    if (reply->granted)
        wr_purse_fly(errand->budget, purses, purse, 0, errand->permits);
}

static void go_without(struct wr_errand *errand, struct wr_purse *purse, int64_t now)
{
    struct wr_budget *budget = errand->budget;

    wr_lease_missed(&purse->lease, errand->number);
    if (errand->permits > 0 && errand->is_wanted)
        wr_purse_decide_alone(budget, errand->purses, purse, errand->permits, now, &errand->told);
    /* the store may count more requests than are in flight */
    if (budget->has_flight || purse->owed > 0 || purse->billed > 0)
        wr_purse_due(errand->purses, purse);
}

/* Gives a grant back that its caller does not use. */
static void undo(struct wr_errand *errand, struct wr_purse *purse)
{
    const struct wr_share_told *told = &errand->told;
    const struct wr_grant grant = {errand->permits, told->source, told->charged_at};

    if (errand->permits > 0 && told->decision.verdict == WEIR_GO)
        wr_purse_settle(errand->budget, errand->purses, purse, &grant, 0);
}

void wr_errand_end(struct wr_errand *errand, const struct wr_charge_told *told)
{
    struct wr_purses *purses = errand->purses;
    int64_t now = wr_boottime_now();

    (void)pthread_mutex_lock(&purses->lock);
    errand->told =
        (struct wr_share_told){.decision = {WEIR_WAIT, WEIR_REASON_NONE, WEIR_SECOND}, .source = WR_SOURCE_CLOSED};
    struct wr_purse *purse =
        wr_purse_get(errand->budget, purses, errand->text + errand->key_at, errand->key_bytes, now);
    bool is_wanted = errand->is_wanted;
    if (purse != NULL) {
        purse->flying -= errand->permits < purse->flying ? errand->permits : purse->flying;
        if (told != NULL)
            take_answer(errand, purse, told, now);
        else
            go_without(errand, purse, now);
        if (!is_wanted)
            undo(errand, purse);
    }
    if (errand->permits > 0)
        wr_purses_count(purses, &errand->told);
    if (is_wanted && now - errand->asked_at > purses->longest_wait_ns)
        purses->longest_wait_ns = now - errand->asked_at;
    errand->is_over = true;
    if (is_wanted)
        errand->wake(errand->context);
    (void)pthread_mutex_unlock(&purses->lock);
    if (!is_wanted)
        free_errand(errand);
}

bool wr_errand_poll(struct wr_errand *errand, struct wr_share_told *ret_told)
{
    (void)pthread_mutex_lock(&errand->purses->lock);
    bool is_over = errand->is_over;
    if (is_over)
        *ret_told = errand->told;
    errand->is_polled = is_over;
    (void)pthread_mutex_unlock(&errand->purses->lock);
    return is_over;
}

void wr_errand_free(struct wr_errand *errand)
{
    if (errand == NULL)
        return;
    struct wr_purses *purses = errand->purses;
    (void)pthread_mutex_lock(&purses->lock);
    bool is_over = errand->is_over;
    errand->is_wanted = false;
    struct wr_purse *purse = wr_map_get(&purses->map, errand->text + errand->key_at, errand->key_bytes);
    if (is_over && !errand->is_polled && purse != NULL)
        undo(errand, purse);
    (void)pthread_mutex_unlock(&purses->lock);
    if (is_over)
        free_errand(errand);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Decides; may also make an errand for more permits. Or makes an errand that decides, whose
 * `permits` is not 0. */
static int decide(struct wr_budget *budget, struct wr_purses *purses, struct wr_purse *purse, uint32_t permits,
                  bool can_wait, struct wr_errand **ret_errand, struct wr_share_told *ret_told)
{
    int64_t now = wr_boottime_now();

    if (atomic_load(&budget->agency->is_down)) {
        wr_purse_decide_alone(budget, purses, purse, permits, now, ret_told);
        return 0;
    }
    struct wr_share_move move = wr_lease_try(&budget->terms, &purse->lease, &purses->seat, now, permits);
    bool asks = move.way == WR_SHARE_ASK;
    if (asks && !can_wait) {
        wr_lease_missed(&purse->lease, move.number); /* a caller that can wait will ask for it */
        return WEIR_E_CLOSED;
    }
    if (!asks)
        wr_purse_tell(purses, purse, &move, permits, now, ret_told);
    if (asks || move.extra > 0)
        *ret_errand = wr_errand_new(budget, purses, purse, asks ? permits : 0, &move);
    if (*ret_errand == NULL)
        wr_lease_missed(&purse->lease, move.number);
    return asks && *ret_errand == NULL ? WEIR_E_NOMEM : 0;
}

int wr_budget_ask(struct wr_budget *budget, const char *key, size_t key_bytes, uint32_t permits, weir_wake *wake,
                  void *context, struct wr_errand **ret_errand, struct wr_share_told *ret_told)
{
    struct wr_purses *purses = wr_budget_purses(budget, key, key_bytes);
    struct wr_errand *errand = NULL;

    *ret_errand = NULL;
    if (permits > budget->tariff.permits) {
        *ret_told = (struct wr_share_told){.decision = {WEIR_DENY, WEIR_REASON_TOKENS, 0}, .quota = budget->quota};
        return 0;
    }
    (void)pthread_mutex_lock(&purses->lock);
    struct wr_purse *purse = wr_purse_get(budget, purses, key, key_bytes, wr_boottime_now());
    int error = purse == NULL ? WEIR_E_NOMEM : decide(budget, purses, purse, permits, wake != NULL, &errand, ret_told);
    bool decides = errand != NULL && errand->permits > 0;
    if (decides) {
        errand->is_wanted = true;
        errand->wake = wake;
        errand->context = context;
        *ret_errand = errand;
    } else if (error == 0) {
        wr_purses_count(purses, ret_told);
    }
    (void)pthread_mutex_unlock(&purses->lock);
    if (errand != NULL)
        wr_agency_send(budget->agency, errand);
    return error;
}

/* ---- reports without a waiting caller -------------------------------------------------------- */

static const struct wr_share_move nothing = {.way = WR_SHARE_ASK};

/* Marks keys that the store may have lost as due. At most REMINDED at a time, because callers wait
 * for the lock. */
static void remind(struct wr_purses *purses, uint32_t life, int64_t now)
{
    if (purses->life != life) {
        purses->life = life;
        purses->untold = (uint32_t)purses->map.count;
    }
    for (int i = 0; i < REMINDED && purses->untold > 0; i++) {
        struct wr_purse *purse = WR_LINKED(purses->order.first, struct wr_purse, link);
        wr_list_take(&purse->link);
        wr_list_push(&purses->order, &purse->link);
        if (purse->life == life)
            continue;
        purse->life = life;
        purses->untold--;
        if (now < purse->fresh_at || purse->held > 0)
            wr_purse_due(purses, purse);
    }
}

/* Marks keys as due whose requests in flight would expire in the store. */
static void renew(struct wr_purses *purses, int64_t now)
{
    for (struct wr_list_link *link = purses->flights.first; link != NULL; link = link->next) {
        struct wr_purse *purse = WR_LINKED(link, struct wr_purse, flight);
        if (now - purse->told_at < WR_FLIGHT_NS / 3)
            return;
        wr_purse_due(purses, purse);
    }
}

uint32_t wr_budget_own_up(struct wr_budget *budget, uint32_t life, uint32_t most, struct wr_list *errands)
{
    int64_t now = wr_boottime_now();
    uint32_t count = 0;

    for (size_t i = 0; i < WR_SHARE_SHELVES; i++) {
        struct wr_purses *purses = &budget->purses[i];
        (void)pthread_mutex_lock(&purses->lock);
        remind(purses, life, now);
        renew(purses, now);
        while (count < most && purses->due.first != NULL) {
            struct wr_purse *purse = WR_LINKED(purses->due.first, struct wr_purse, due);
            struct wr_errand *errand = wr_errand_new(budget, purses, purse, 0, &nothing);
            if (errand == NULL)
                break;
            errand->is_told_of = true;
            wr_list_push(errands, &errand->link);
            count++;
        }
        (void)pthread_mutex_unlock(&purses->lock);
    }
    return count;
}

/* Reports to the store at once if it is up and there is something to report. Releases the lock. */
static void tell_and_unlock(struct wr_budget *budget, struct wr_purses *purses, struct wr_purse *purse, bool resets)
{
    struct wr_errand *errand = NULL;

    if (purse != NULL && (resets || wr_list_holds(&purse->due)) && !atomic_load(&budget->agency->is_down))
        errand = wr_errand_new(budget, purses, purse, 0, &nothing);
    if (errand != NULL)
        errand->resets = resets;
    (void)pthread_mutex_unlock(&purses->lock);
    if (errand != NULL)
        wr_agency_send(budget->agency, errand);
}

void wr_budget_settle(struct wr_budget *budget, const char *key, size_t key_bytes, const struct wr_grant *grant,
                      uint32_t used)
{
    struct wr_purses *purses = wr_budget_purses(budget, key, key_bytes);

    (void)pthread_mutex_lock(&purses->lock);
    struct wr_purse *purse = wr_map_get(&purses->map, key, key_bytes);
    if (purse != NULL)
        wr_purse_settle(budget, purses, purse, grant, used);
    tell_and_unlock(budget, purses, purse, false);
}

void wr_budget_release(struct wr_budget *budget, const char *key, size_t key_bytes, uint32_t permits)
{
    struct wr_purses *purses = wr_budget_purses(budget, key, key_bytes);

    if (!budget->has_flight)
        return;
    (void)pthread_mutex_lock(&purses->lock);
    struct wr_purse *purse = wr_map_get(&purses->map, key, key_bytes);
    if (purse != NULL) {
        wr_purse_fly(budget, purses, purse, permits, 0);
        wr_purse_due(purses, purse);
    }
    tell_and_unlock(budget, purses, purse, false);
}

int wr_budget_resume(struct wr_budget *budget, const char *key, size_t key_bytes, uint32_t permits)
{
    struct wr_purses *purses = wr_budget_purses(budget, key, key_bytes);

    (void)pthread_mutex_lock(&purses->lock);
    struct wr_purse *purse = wr_purse_get(budget, purses, key, key_bytes, wr_boottime_now());
    if (purse != NULL) {
        wr_purse_fly(budget, purses, purse, 0, permits);
        wr_purse_due(purses, purse);
    }
    tell_and_unlock(budget, purses, purse, false);
    return purse != NULL ? 0 : WEIR_E_NOMEM;
}

int wr_budget_reset(struct wr_budget *budget, const char *key, size_t key_bytes)
{
    struct wr_purses *purses = wr_budget_purses(budget, key, key_bytes);
    bool is_down = atomic_load(&budget->agency->is_down);

    (void)pthread_mutex_lock(&purses->lock);
    struct wr_purse *purse = wr_purse_get(budget, purses, key, key_bytes, wr_boottime_now());
    if (purse != NULL) {
        purses->owed -= (uint64_t)purse->owed + purse->billed;
        purse->owed = purse->billed = purse->back = 0;
        wr_lease_forget(&purse->lease);
        wr_purse_seen(purse)[0] = '\0';
        purse->quota = budget->quota;
    }
    tell_and_unlock(budget, purses, purse, true);
    return purse == NULL ? WEIR_E_NOMEM : is_down ? WEIR_E_CLOSED : 0;
}
