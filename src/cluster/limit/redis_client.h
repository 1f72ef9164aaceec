/* SPDX-License-Identifier: MIT */
/* redis_client.h - internals of the Redis client (redis_client) and its shared limits (budgets).
 *
 * Locks, in this order: redis_client->lock protects the list of budgets, the membership, and
 * errands to send. The lock of a wr_key_accounts protects its keys, their leases, and errands in
 * progress.
 */
#ifndef WR_CLUSTER_LIMIT_REDIS_CLIENT_H
#define WR_CLUSTER_LIMIT_REDIS_CLIENT_H

#include "base/bits.h"
#include "base/list.h"
#include "base/map.h"
#include "cluster/limit/charge.h"
#include "cluster/limit/shared_limit.h"
#include "http/loop/wakeup.h"

#include <pthread.h>
#include <stdatomic.h>

#define WR_SHARED_LIMIT_SHARDS 16 /* shards of a budget, to reduce lock contention */
#define WR_NODE_DIGITS 32
#define WR_REDIS_ADDRESS_BYTES 1024

struct wr_redis_client {
    const weir_allocator *allocator;
    uint32_t nodes;
    int64_t timeout_ns;
    char prefix[WR_REDIS_PREFIX_MAX + 1];
    char address[WR_REDIS_ADDRESS_BYTES]; /* identifies the store: address, credentials and prefix */
    char who[WR_NODE_DIGITS + 1];         /* random name of this node */
    pthread_t thread;
    uv_loop_t loop;
    struct wr_wakeup called;
    uv_timer_t beat;
    struct wr_redis_connection *wire;
    atomic_bool is_down, is_lost; /* state of the breaker, see struct wr_outage */
    atomic_uint outages;
    pthread_mutex_t lock;
    struct wr_list budgets;
    struct wr_list errands; /* store requests to send */
    bool is_called, is_ending, has_thread, has_first_answer;
    pthread_cond_t heard; /* signalled when the first answer came or was missed */
    struct wr_membership membership;
    int64_t asked_at; /* time of the last request for a membership */
    bool is_asking;
    uint64_t store_born;   /* since when the store knows of seats; 0: unknown */
    uint32_t telling;      /* store requests in progress that no caller waits for */
    uint32_t lives;        /* how often the store lost its data, or may have */
    uint32_t budget_count; /* budgets ever made */
    struct wr_redis_client_view view;
};

/* The account of a key on this node. */
struct wr_key_account {
    struct wr_list_link link; /* membership in key_accounts->order */
    struct wr_list_link due;  /* in key_accounts->due, if the store must be told something */
    /* in key_accounts->flights, if requests are in flight; least recently reported first */
    struct wr_list_link flight;
    struct wr_permit_lease lease;
    uint32_t owed;         /* permits admitted without the store and not billed yet */
    uint32_t billed;       /* permits of the open bill, which is sent until it is answered */
    uint64_t bill;         /* number of the open bill; the store charges it once */
    uint32_t back;         /* permits that were charged but not used */
    int64_t back_at;       /* earliest store time at which those were charged */
    uint64_t held, flying; /* permits in flight, and permits asked for that may be */
    uint64_t message;      /* number of the last message about the key */
    int64_t told_at;
    uint32_t life;    /* redis_client->lives when the key was last reported */
    uint32_t outage;  /* outage for which its share was set up; 0: none */
    weir_quota quota; /* quota by the last answer of the store */
    int64_t fresh_at; /* when the key is as good as new */
    int64_t second;   /* second to which `spent` and `charged` belong */
    uint64_t spent, charged;
    uint32_t key_bytes, seen_room;
    char text[]; /* the key, then the state last seen, NUL-terminated */
};

struct wr_key_accounts {
    _Alignas(WR_CACHE_LINE) pthread_mutex_t lock;
    struct wr_map map;
    struct wr_list order, due, flights;
    uint32_t life, unreported_keys;  /* redis_client->lives, and keys not reported in that life */
    struct wr_membership membership; /* copy of the redis_client's membership */
    uint64_t granted[WR_SOURCE_COUNT], refused[WR_SOURCE_COUNT];
    uint64_t overshoot, owed, held, damaged;
    int64_t longest_wait_ns;
};

struct wr_shared_limit {
    struct wr_list_link link;
    atomic_uint holders; /* references: the owner and errands */
    struct wr_redis_client *redis_client;
    struct wr_shared_limit_options options; /* copy of the options without the name */
    char name[WEIR_KEY_MAX];
    /* name of the node and this budget, because another budget of the same name may still exist */
    char who[WR_NODE_DIGITS + 12];
    struct wr_charge_limits charge_limits;
    struct wr_permit_lease_terms terms;
    weir_quota quota; /* quota of a new key */
    /* each limit can be divided by nodes; one is not on requests in flight */
    bool has_part, has_rate;
    bool has_flight;      /* some limit is on requests in flight */
    uint32_t flight_part; /* this node's part of that limit, permits */
    weir_stack part;
    weir_table *table;
    struct wr_hash_key hash_key;
    struct wr_key_accounts key_accounts[WR_SHARED_LIMIT_SHARDS];
};

/* A request to the store about a key. The caller owns it until it frees it, and the
 * redis_client until it ends. */
struct wr_shared_request {
    struct wr_list_link link; /* membership in redis_client->errands */
    struct wr_shared_limit *budget;
    struct wr_key_accounts *key_accounts;
    weir_wake *wake;
    void *context;
    uint32_t permits, extra, owed, number, back;
    int64_t back_at;
    uint64_t held, message, bill;
    int64_t asked_at;
    bool resets;                        /* asks the store to forget the key */
    bool is_report;                     /* counted in redis_client->telling */
    bool is_over, is_wanted, is_polled; /* protected by the lock of `key_accounts` */
    struct wr_shared_limit_decision told;
    size_t bytes; /* bytes of this block */
    size_t store_key_bytes, key_at, key_bytes, seen_at;
    /* the key in the store, which ends with the caller's key and '}'; then the state last seen */
    char text[];
};

/* Sends an shared_request. If the store is down the shared_request ends at once. No lock is
 * held. */
void wr_redis_client_send(struct wr_redis_client *redis_client, struct wr_shared_request *shared_request);

/* ---- shared_request.c ---- */

/* Makes an shared_request of everything that the store must be told about a key. Returns NULL if
 * there is no memory. The lock of `key_accounts` is held. */
struct wr_shared_request *wr_shared_request_new(struct wr_shared_limit *budget, struct wr_key_accounts *key_accounts,
                                                struct wr_key_account *key_account, uint32_t permits,
                                                const struct wr_permit_lease_move *move);

/* Ends an shared_request with the store's answer; NULL: none. May free it. */
void wr_shared_request_end(struct wr_shared_request *shared_request, const struct wr_charge_reply *told);

/* Makes at most `most` errands for keys that have something to report, and adds them to `errands`.
 * Returns their number. */
uint32_t wr_shared_limit_make_reports(struct wr_shared_limit *budget, uint32_t life, uint32_t most,
                                      struct wr_list *errands);

/* ---- key_account.c: the lock of `key_accounts` is held
 * --------------------------------------------------- */

/* Finds or makes the account of a key. Returns NULL if there is no memory. */
struct wr_key_account *wr_key_account_get(struct wr_shared_limit *budget, struct wr_key_accounts *key_accounts,
                                          const char *key, size_t key_bytes, int64_t now);

char *wr_key_account_state(struct wr_key_account *key_account);

/* Sets the decision of a move that needs no store. */
void wr_key_account_set_decision(struct wr_key_accounts *key_accounts, struct wr_key_account *key_account,
                                 const struct wr_permit_lease_move *move, uint32_t permits, int64_t now,
                                 struct wr_shared_limit_decision *ret_told);

/* Decides without the store: by the lease, or else by the fallback. */
void wr_key_account_decide_alone(struct wr_shared_limit *budget, struct wr_key_accounts *key_accounts,
                                 struct wr_key_account *key_account, uint32_t permits, int64_t now,
                                 struct wr_shared_limit_decision *ret_told);

/* Decides by the fallback alone. */
void wr_key_account_fall_back(struct wr_shared_limit *budget, struct wr_key_accounts *key_accounts,
                              struct wr_key_account *key_account, uint32_t permits,
                              struct wr_shared_limit_decision *ret_told);

/* Counts what the store has charged: `permits` of a request, and extra. */
void wr_key_account_note_charged(struct wr_key_accounts *key_accounts, struct wr_key_account *key_account,
                                 uint32_t permits, uint32_t extra, int64_t now);

void wr_key_account_add_debt(struct wr_key_accounts *key_accounts, struct wr_key_account *key_account,
                             uint32_t permits);

/* Notes that permits which the store charged at `charged_at` were not used. */
void wr_key_account_add_unused(struct wr_key_accounts *key_accounts, struct wr_key_account *key_account,
                               uint32_t permits, int64_t charged_at);

/* Corrects a grant that cost `used` permits in the end. */
void wr_key_account_settle(struct wr_shared_limit *budget, struct wr_key_accounts *key_accounts,
                           struct wr_key_account *key_account, const struct wr_shared_limit_grant *grant,
                           uint32_t used);

/* Changes the number of permits in flight: `lands` have ended, `starts` begin. */
void wr_key_account_move_in_flight(struct wr_shared_limit *budget, struct wr_key_accounts *key_accounts,
                                   struct wr_key_account *key_account, uint64_t lands, uint64_t starts);

/* Marks the key as having something to report to the store. */
void wr_key_account_mark_due(struct wr_key_accounts *key_accounts, struct wr_key_account *key_account);
void wr_key_accounts_count(struct wr_key_accounts *key_accounts, const struct wr_shared_limit_decision *told);
void wr_key_accounts_release(struct wr_shared_limit *budget, struct wr_key_accounts *key_accounts);

/* ---- shared_limit.c ---- */

struct wr_key_accounts *wr_shared_limit_accounts(struct wr_shared_limit *budget, const char *key, size_t key_bytes);

/* Copies the membership to all shards. redis_client->lock is held. */
void wr_shared_limit_set_membership(struct wr_shared_limit *budget, const struct wr_membership *membership);

void wr_shared_limit_ref(struct wr_shared_limit *budget);
void wr_shared_limit_unref(struct wr_shared_limit *budget); /* the last one frees the budget */

#endif
