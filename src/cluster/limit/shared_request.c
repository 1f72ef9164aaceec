/* SPDX-License-Identifier: MIT */
/* shared_request.c - requests to the store: made by a caller, ended by the redis_client, freed by
 * the last. */
#include "cluster/limit/redis_client.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "limiter/clock/clock.h"

#include <string.h>

#define REMINDED 64 /* keys that are checked under one lock */

/* Returns the next message number of the key. It also rises if the key was forgotten. */
static uint64_t next_message(struct wr_key_account *key_account)
{
    uint64_t now_us = (uint64_t)wr_boottime_now() / 1000;

    key_account->message = now_us > key_account->message ? now_us : key_account->message + 1;
    return key_account->message;
}

/* Moves the debt into a bill. While one is open, new debt waits until it is answered. */
static void make_bill(struct wr_key_account *key_account, uint64_t number)
{
    if (key_account->billed > 0)
        return;
    key_account->billed = key_account->owed;
    key_account->bill = number;
    key_account->owed = 0;
}

/* Marks everything that the account has to report as handed to an shared_request. */
static void mark_as_reported(const struct wr_shared_limit *budget, struct wr_key_accounts *key_accounts,
                             struct wr_key_account *key_account, uint32_t permits)
{
    key_account->back = 0;
    wr_list_remove(&key_account->due);
    if (!budget->has_flight)
        return;
    key_account->flying += permits;
    key_account->told_at = wr_boottime_now();
    if (wr_list_is_linked(&key_account->flight)) {
        wr_list_remove(&key_account->flight);
        wr_list_push(&key_accounts->flights, &key_account->flight);
    }
}

struct wr_shared_request *wr_shared_request_new(struct wr_shared_limit *budget, struct wr_key_accounts *key_accounts,
                                                struct wr_key_account *key_account, uint32_t permits,
                                                const struct wr_permit_lease_move *move)
{
    const struct wr_redis_client *redis_client = budget->redis_client;
    const char *seen = wr_key_account_state(key_account);
    size_t before = strlen(redis_client->prefix) + 2 + strlen(budget->name) + 1, seen_bytes = strlen(seen) + 1;
    size_t text_bytes = before + key_account->key_bytes + 1 + seen_bytes;
    size_t bytes = sizeof(struct wr_shared_request) + text_bytes;
    struct wr_shared_request *shared_request =
        wr_alloc(redis_client->allocator, bytes, _Alignof(struct wr_shared_request));
    struct wr_buf text;

    if (shared_request == NULL)
        return NULL;
    uint64_t message = next_message(key_account);
    make_bill(key_account, message);
    *shared_request = (struct wr_shared_request){
        .budget = budget,
        .key_accounts = key_accounts,
        .permits = permits,
        .extra = move->extra,
        .number = move->number,
        .owed = key_account->billed,
        .bill = key_account->bill,
        .back = key_account->back,
        .back_at = key_account->back_at,
        .held = key_account->held + key_account->flying,
        .message = message,
        .asked_at = wr_boottime_now(),
        .bytes = bytes,
        .key_at = before,
        .key_bytes = key_account->key_bytes,
        .store_key_bytes = before + key_account->key_bytes + 1,
        .seen_at = before + key_account->key_bytes + 1,
    };
    wr_buf_init_fixed(&text, shared_request->text, text_bytes);
    wr_buf_append_string(&text, redis_client->prefix);
    wr_buf_append(&text, ":{", 2);
    wr_buf_append_string(&text, budget->name);
    wr_buf_append_char(&text, '\n'); /* a separator, because names have no line feed */
    wr_buf_append(&text, key_account->text, key_account->key_bytes);
    wr_buf_append_char(&text, '}');
    memcpy(shared_request->text + shared_request->seen_at, seen, seen_bytes);
    mark_as_reported(budget, key_accounts, key_account, permits);
    wr_shared_limit_ref(budget);
    return shared_request;
}

static void free_shared_request(struct wr_shared_request *shared_request)
{
    struct wr_shared_limit *budget = shared_request->budget;
    wr_free(budget->redis_client->allocator, shared_request, shared_request->bytes, _Alignof(struct wr_shared_request));
    wr_shared_limit_unref(budget);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void settle_bill(const struct wr_shared_request *shared_request, struct wr_key_account *key_account)
{
    if (shared_request->bill == key_account->bill) {
        shared_request->key_accounts->owed -= key_account->billed;
        key_account->billed = 0;
    }
    if (key_account->owed > 0)
        wr_key_account_mark_due(shared_request->key_accounts, key_account);
}

static void take_charge_reply(struct wr_shared_request *shared_request, struct wr_key_account *key_account,
                              const struct wr_charge_reply *told, int64_t now)
{
    struct wr_key_accounts *key_accounts = shared_request->key_accounts;
    const struct wr_permit_lease_reply *reply = &told->reply;
    size_t seen_bytes = strlen(told->seen) + 1;

    key_account->outage = 0;
    settle_bill(shared_request, key_account);
    key_accounts->damaged += told->damaged;
    wr_permit_lease_answered(&shared_request->budget->terms, &key_account->lease, &key_accounts->membership, now,
                             shared_request->number, shared_request->permits, reply);
    if (seen_bytes <= key_account->seen_room)
        memcpy(wr_key_account_state(key_account), told->seen, seen_bytes);
    key_account->quota = shared_request->budget->quota;
    if (told->quota.remaining < key_account->quota.limit)
        key_account->quota.remaining = told->quota.remaining;
    key_account->quota.reset_ns = told->quota.reset_ns;
    key_account->fresh_at = now + told->quota.reset_ns;
    wr_key_account_note_charged(key_accounts, key_account, reply->granted ? shared_request->permits : 0, reply->extra,
                                now);
    shared_request->told = (struct wr_shared_limit_decision){
        .decision = {reply->granted ? WEIR_GO : WEIR_WAIT, reply->granted ? WEIR_REASON_NONE : WEIR_REASON_TOKENS,
                     reply->granted ? 0 : reply->wait_ns},
        .quota = key_account->quota,
        .source = WR_SOURCE_STORE,
        .charged_at = told->at,
    };
    if (reply->granted)
        wr_key_account_move_in_flight(shared_request->budget, key_accounts, key_account, 0, shared_request->permits);
}

static void decide_without_reply(struct wr_shared_request *shared_request, struct wr_key_account *key_account,
                                 int64_t now)
{
    struct wr_shared_limit *budget = shared_request->budget;

    wr_permit_lease_missed(&key_account->lease, shared_request->number);
    if (shared_request->permits > 0 && shared_request->is_wanted)
        wr_key_account_decide_alone(budget, shared_request->key_accounts, key_account, shared_request->permits, now,
                                    &shared_request->told);
    /* the store may count more requests than are in flight */
    if (budget->has_flight || key_account->owed > 0 || key_account->billed > 0)
        wr_key_account_mark_due(shared_request->key_accounts, key_account);
}

/* Gives a grant back that its caller does not use. */
static void give_grant_back(struct wr_shared_request *shared_request, struct wr_key_account *key_account)
{
    const struct wr_shared_limit_decision *told = &shared_request->told;
    const struct wr_shared_limit_grant grant = {shared_request->permits, told->source, told->charged_at};

    if (shared_request->permits > 0 && told->decision.verdict == WEIR_GO)
        wr_key_account_settle(shared_request->budget, shared_request->key_accounts, key_account, &grant, 0);
}

void wr_shared_request_end(struct wr_shared_request *shared_request, const struct wr_charge_reply *told)
{
    struct wr_key_accounts *key_accounts = shared_request->key_accounts;
    int64_t now = wr_boottime_now();

    (void)pthread_mutex_lock(&key_accounts->lock);
    shared_request->told = (struct wr_shared_limit_decision){.decision = {WEIR_WAIT, WEIR_REASON_NONE, WEIR_SECOND},
                                                             .source = WR_SOURCE_CLOSED};
    struct wr_key_account *key_account =
        wr_key_account_get(shared_request->budget, key_accounts, shared_request->text + shared_request->key_at,
                           shared_request->key_bytes, now);
    bool is_wanted = shared_request->is_wanted;
    if (key_account != NULL) {
        key_account->flying -=
            shared_request->permits < key_account->flying ? shared_request->permits : key_account->flying;
        if (told != NULL)
            take_charge_reply(shared_request, key_account, told, now);
        else
            decide_without_reply(shared_request, key_account, now);
        if (!is_wanted)
            give_grant_back(shared_request, key_account);
    }
    if (shared_request->permits > 0)
        wr_key_accounts_count(key_accounts, &shared_request->told);
    if (is_wanted && now - shared_request->asked_at > key_accounts->longest_wait_ns)
        key_accounts->longest_wait_ns = now - shared_request->asked_at;
    shared_request->is_over = true;
    if (is_wanted)
        shared_request->wake(shared_request->context);
    (void)pthread_mutex_unlock(&key_accounts->lock);
    if (!is_wanted)
        free_shared_request(shared_request);
}

bool wr_shared_request_poll(struct wr_shared_request *shared_request, struct wr_shared_limit_decision *ret_told)
{
    (void)pthread_mutex_lock(&shared_request->key_accounts->lock);
    bool is_over = shared_request->is_over;
    if (is_over)
        *ret_told = shared_request->told;
    shared_request->is_polled = is_over;
    (void)pthread_mutex_unlock(&shared_request->key_accounts->lock);
    return is_over;
}

void wr_shared_request_free(struct wr_shared_request *shared_request)
{
    if (shared_request == NULL)
        return;
    struct wr_key_accounts *key_accounts = shared_request->key_accounts;
    (void)pthread_mutex_lock(&key_accounts->lock);
    bool is_over = shared_request->is_over;
    shared_request->is_wanted = false;
    struct wr_key_account *key_account =
        wr_map_get(&key_accounts->map, shared_request->text + shared_request->key_at, shared_request->key_bytes);
    if (is_over && !shared_request->is_polled && key_account != NULL)
        give_grant_back(shared_request, key_account);
    (void)pthread_mutex_unlock(&key_accounts->lock);
    if (is_over)
        free_shared_request(shared_request);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Decides; may also make an shared_request for more permits. Or makes an shared_request that
 * decides, whose
 * `permits` is not 0. */
static int decide_or_request(struct wr_shared_limit *budget, struct wr_key_accounts *key_accounts,
                             struct wr_key_account *key_account, uint32_t permits, bool can_wait,
                             struct wr_shared_request **ret_errand, struct wr_shared_limit_decision *ret_told)
{
    int64_t now = wr_boottime_now();

    if (atomic_load(&budget->redis_client->is_down)) {
        wr_key_account_decide_alone(budget, key_accounts, key_account, permits, now, ret_told);
        return 0;
    }
    struct wr_permit_lease_move move =
        wr_permit_lease_try(&budget->terms, &key_account->lease, &key_accounts->membership, now, permits);
    bool asks = move.way == WR_PERMIT_LEASE_ASK;
    if (asks && !can_wait) {
        wr_permit_lease_missed(&key_account->lease, move.number); /* a caller that can wait will ask for it */
        return WEIR_E_CLOSED;
    }
    if (!asks)
        wr_key_account_set_decision(key_accounts, key_account, &move, permits, now, ret_told);
    if (asks || move.extra > 0)
        *ret_errand = wr_shared_request_new(budget, key_accounts, key_account, asks ? permits : 0, &move);
    if (*ret_errand == NULL)
        wr_permit_lease_missed(&key_account->lease, move.number);
    return asks && *ret_errand == NULL ? WEIR_E_NOMEM : 0;
}

int wr_shared_limit_ask(struct wr_shared_limit *budget, const char *key, size_t key_bytes, uint32_t permits,
                        weir_wake *wake, void *context, struct wr_shared_request **ret_errand,
                        struct wr_shared_limit_decision *ret_told)
{
    struct wr_key_accounts *key_accounts = wr_shared_limit_accounts(budget, key, key_bytes);
    struct wr_shared_request *shared_request = NULL;

    *ret_errand = NULL;
    if (permits > budget->charge_limits.permits) {
        *ret_told =
            (struct wr_shared_limit_decision){.decision = {WEIR_DENY, WEIR_REASON_TOKENS, 0}, .quota = budget->quota};
        return 0;
    }
    (void)pthread_mutex_lock(&key_accounts->lock);
    struct wr_key_account *key_account = wr_key_account_get(budget, key_accounts, key, key_bytes, wr_boottime_now());
    int error = key_account == NULL ? WEIR_E_NOMEM
                                    : decide_or_request(budget, key_accounts, key_account, permits, wake != NULL,
                                                        &shared_request, ret_told);
    bool decides = shared_request != NULL && shared_request->permits > 0;
    if (decides) {
        shared_request->is_wanted = true;
        shared_request->wake = wake;
        shared_request->context = context;
        *ret_errand = shared_request;
    } else if (error == 0) {
        wr_key_accounts_count(key_accounts, ret_told);
    }
    (void)pthread_mutex_unlock(&key_accounts->lock);
    if (shared_request != NULL)
        wr_redis_client_send(budget->redis_client, shared_request);
    return error;
}

/* ---- reports without a waiting caller -------------------------------------------------------- */

static const struct wr_permit_lease_move nothing = {.way = WR_PERMIT_LEASE_ASK};

/* Marks keys that the store may have lost as due. At most REMINDED at a time, because callers wait
 * for the lock. */
static void mark_lost_keys_due(struct wr_key_accounts *key_accounts, uint32_t life, int64_t now)
{
    if (key_accounts->life != life) {
        key_accounts->life = life;
        key_accounts->unreported_keys = (uint32_t)key_accounts->map.count;
    }
    for (int i = 0; i < REMINDED && key_accounts->unreported_keys > 0; i++) {
        struct wr_key_account *key_account = WR_LINKED(key_accounts->order.first, struct wr_key_account, link);
        wr_list_remove(&key_account->link);
        wr_list_push(&key_accounts->order, &key_account->link);
        if (key_account->life == life)
            continue;
        key_account->life = life;
        key_accounts->unreported_keys--;
        if (now < key_account->fresh_at || key_account->held > 0)
            wr_key_account_mark_due(key_accounts, key_account);
    }
}

/* Marks keys as due whose requests in flight would expire in the store. */
static void mark_in_flight_due(struct wr_key_accounts *key_accounts, int64_t now)
{
    for (struct wr_list_link *link = key_accounts->flights.first; link != NULL; link = link->next) {
        struct wr_key_account *key_account = WR_LINKED(link, struct wr_key_account, flight);
        if (now - key_account->told_at < WR_IN_FLIGHT_NS / 3)
            return;
        wr_key_account_mark_due(key_accounts, key_account);
    }
}

uint32_t wr_shared_limit_make_reports(struct wr_shared_limit *budget, uint32_t life, uint32_t most,
                                      struct wr_list *errands)
{
    int64_t now = wr_boottime_now();
    uint32_t count = 0;

    for (size_t i = 0; i < WR_SHARED_LIMIT_SHARDS; i++) {
        struct wr_key_accounts *key_accounts = &budget->key_accounts[i];
        (void)pthread_mutex_lock(&key_accounts->lock);
        mark_lost_keys_due(key_accounts, life, now);
        mark_in_flight_due(key_accounts, now);
        while (count < most && key_accounts->due.first != NULL) {
            struct wr_key_account *key_account = WR_LINKED(key_accounts->due.first, struct wr_key_account, due);
            struct wr_shared_request *shared_request =
                wr_shared_request_new(budget, key_accounts, key_account, 0, &nothing);
            if (shared_request == NULL)
                break;
            shared_request->is_report = true;
            wr_list_push(errands, &shared_request->link);
            count++;
        }
        (void)pthread_mutex_unlock(&key_accounts->lock);
    }
    return count;
}

/* Reports to the store at once if it is up and there is something to report. Releases the lock. */
static void report_and_unlock(struct wr_shared_limit *budget, struct wr_key_accounts *key_accounts,
                              struct wr_key_account *key_account, bool resets)
{
    struct wr_shared_request *shared_request = NULL;

    if (key_account != NULL && (resets || wr_list_is_linked(&key_account->due)) &&
        !atomic_load(&budget->redis_client->is_down))
        shared_request = wr_shared_request_new(budget, key_accounts, key_account, 0, &nothing);
    if (shared_request != NULL)
        shared_request->resets = resets;
    (void)pthread_mutex_unlock(&key_accounts->lock);
    if (shared_request != NULL)
        wr_redis_client_send(budget->redis_client, shared_request);
}

void wr_shared_limit_settle(struct wr_shared_limit *budget, const char *key, size_t key_bytes,
                            const struct wr_shared_limit_grant *grant, uint32_t used)
{
    struct wr_key_accounts *key_accounts = wr_shared_limit_accounts(budget, key, key_bytes);

    (void)pthread_mutex_lock(&key_accounts->lock);
    struct wr_key_account *key_account = wr_map_get(&key_accounts->map, key, key_bytes);
    if (key_account != NULL)
        wr_key_account_settle(budget, key_accounts, key_account, grant, used);
    report_and_unlock(budget, key_accounts, key_account, false);
}

void wr_shared_limit_release(struct wr_shared_limit *budget, const char *key, size_t key_bytes, uint32_t permits)
{
    struct wr_key_accounts *key_accounts = wr_shared_limit_accounts(budget, key, key_bytes);

    if (!budget->has_flight)
        return;
    (void)pthread_mutex_lock(&key_accounts->lock);
    struct wr_key_account *key_account = wr_map_get(&key_accounts->map, key, key_bytes);
    if (key_account != NULL) {
        wr_key_account_move_in_flight(budget, key_accounts, key_account, permits, 0);
        wr_key_account_mark_due(key_accounts, key_account);
    }
    report_and_unlock(budget, key_accounts, key_account, false);
}

int wr_shared_limit_resume(struct wr_shared_limit *budget, const char *key, size_t key_bytes, uint32_t permits)
{
    struct wr_key_accounts *key_accounts = wr_shared_limit_accounts(budget, key, key_bytes);

    (void)pthread_mutex_lock(&key_accounts->lock);
    struct wr_key_account *key_account = wr_key_account_get(budget, key_accounts, key, key_bytes, wr_boottime_now());
    if (key_account != NULL) {
        wr_key_account_move_in_flight(budget, key_accounts, key_account, 0, permits);
        wr_key_account_mark_due(key_accounts, key_account);
    }
    report_and_unlock(budget, key_accounts, key_account, false);
    return key_account != NULL ? 0 : WEIR_E_NOMEM;
}

int wr_shared_limit_reset(struct wr_shared_limit *budget, const char *key, size_t key_bytes)
{
    struct wr_key_accounts *key_accounts = wr_shared_limit_accounts(budget, key, key_bytes);
    bool is_down = atomic_load(&budget->redis_client->is_down);

    (void)pthread_mutex_lock(&key_accounts->lock);
    struct wr_key_account *key_account = wr_key_account_get(budget, key_accounts, key, key_bytes, wr_boottime_now());
    if (key_account != NULL) {
        key_accounts->owed -= (uint64_t)key_account->owed + key_account->billed;
        key_account->owed = key_account->billed = key_account->back = 0;
        wr_permit_lease_clear(&key_account->lease);
        wr_key_account_state(key_account)[0] = '\0';
        key_account->quota = budget->quota;
    }
    report_and_unlock(budget, key_accounts, key_account, true);
    return key_account == NULL ? WEIR_E_NOMEM : is_down ? WEIR_E_CLOSED : 0;
}
