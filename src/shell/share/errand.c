/* SPDX-License-Identifier: MIT */
/* errand.c - one ask on its way: made by a caller, ended by the agency, freed by whoever is last. */
#include "shell/share/agency.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "shell/clock/clock.h"

#include <string.h>

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
    *errand = (struct wr_errand){
        .budget = budget,
        .purses = purses,
        .permits = permits,
        .extra = move->extra,
        .number = move->number,
        .owed = purse->owed,
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
    wr_buf_append_char(&text, '\n'); /* no name has one */
    wr_buf_append(&text, purse->text, purse->key_bytes);
    wr_buf_append_char(&text, '}');
    memcpy(errand->text + errand->seen_at, seen, seen_bytes);
    purses->owed -= purse->owed; /* until it is known what became of it */
    purse->owed = 0;
    wr_budget_hold(budget);
    return errand;
}

static void free_errand(struct wr_errand *errand)
{
    struct wr_budget *budget = errand->budget;
    wr_give(budget->agency->allocator, errand, errand->bytes, _Alignof(struct wr_errand));
    wr_budget_drop(budget);
}

/* ---- answers ------------------------------------------------------------------------------------------- */

static void take_answer(struct wr_errand *errand, struct wr_purse *purse, const struct wr_charge_told *told,
                        int64_t now)
{
    struct wr_purses *purses = errand->purses;
    const struct wr_share_reply *reply = &told->reply;
    size_t seen_bytes = strlen(told->seen) + 1;

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
    };
}

static void go_without(struct wr_errand *errand, struct wr_purse *purse, int64_t now)
{
    wr_purse_owe(errand->purses, purse, errand->owed);
    wr_lease_missed(&purse->lease, errand->number);
    if (errand->permits > 0 && errand->is_wanted)
        wr_purse_decide_alone(errand->budget, errand->purses, purse, errand->permits, now, &errand->told);
}

void wr_errand_end(struct wr_errand *errand, const struct wr_charge_told *told)
{
    struct wr_purses *purses = errand->purses;
    int64_t now = wr_monotonic_now();

    (void)pthread_mutex_lock(&purses->lock);
    errand->told =
        (struct wr_share_told){.decision = {WEIR_WAIT, WEIR_REASON_NONE, WEIR_SECOND}, .source = WR_SOURCE_CLOSED};
    struct wr_purse *purse =
        wr_purse_get(errand->budget, purses, errand->text + errand->key_at, errand->key_bytes, now);
    if (purse != NULL && told != NULL)
        take_answer(errand, purse, told, now);
    else if (purse != NULL)
        go_without(errand, purse, now);
    if (errand->permits > 0)
        wr_purses_count(purses, &errand->told);
    errand->is_over = true;
    bool is_wanted = errand->is_wanted;
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
    (void)pthread_mutex_unlock(&purses->lock);
    if (is_over)
        free_errand(errand);
}

/* ---- asking -------------------------------------------------------------------------------------------- */

/* Decides, and may make an errand to hold more; or makes one that is to decide, which is for permits. */
static int decide(struct wr_budget *budget, struct wr_purses *purses, struct wr_purse *purse, uint32_t permits,
                  bool can_wait, struct wr_errand **ret_errand, struct wr_share_told *ret_told)
{
    int64_t now = wr_monotonic_now();

    if (atomic_load(&budget->agency->is_down)) {
        wr_purse_decide_alone(budget, purses, purse, permits, now, ret_told);
        return 0;
    }
    struct wr_share_move move = wr_lease_try(&budget->terms, &purse->lease, &purses->seat, now, permits);
    bool asks = move.way == WR_SHARE_ASK;
    if (asks && !can_wait) {
        wr_lease_missed(&purse->lease, move.number); /* it will be asked for by whoever can wait */
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
    struct wr_purse *purse = wr_purse_get(budget, purses, key, key_bytes, wr_monotonic_now());
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

void wr_budget_own_up(struct wr_budget *budget, struct wr_list *errands)
{
    static const struct wr_share_move nothing = {.way = WR_SHARE_ASK};

    for (size_t i = 0; i < WR_SHARE_SHELVES; i++) {
        struct wr_purses *purses = &budget->purses[i];
        (void)pthread_mutex_lock(&purses->lock);
        for (struct wr_list_link *link = purses->order.first; purses->owed > 0 && link != NULL; link = link->next) {
            struct wr_purse *purse = WR_LINKED(link, struct wr_purse, link);
            struct wr_errand *errand = purse->owed > 0 ? wr_errand_new(budget, purses, purse, 0, &nothing) : NULL;
            if (errand != NULL)
                wr_list_push(errands, &errand->link);
        }
        (void)pthread_mutex_unlock(&purses->lock);
    }
}
