/* SPDX-License-Identifier: MIT */
/* agency.h - internals of the Redis client (agency) and its shared limits (budgets).
 *
 * Locks, in this order: agency->lock protects the list of budgets, the seat, and errands to send.
 * The lock of a wr_purses protects its keys, their leases, and errands in progress.
 */
#ifndef WR_SHELL_SHARE_AGENCY_H
#define WR_SHELL_SHARE_AGENCY_H

#include "base/bits.h"
#include "base/list.h"
#include "base/map.h"
#include "shell/loop/wakeup.h"
#include "shell/share/budget.h"
#include "shell/share/charge.h"

#include <pthread.h>
#include <stdatomic.h>

#define WR_SHARE_SHELVES 16 /* shards of a budget, to reduce lock contention */
#define WR_NODE_DIGITS 32
#define WR_ADDRESS_BYTES 1024

struct wr_agency {
    const weir_allocator *allocator;
    uint32_t nodes;
    int64_t timeout_ns;
    char prefix[WR_SHARE_PREFIX_MAX + 1];
    char address[WR_ADDRESS_BYTES]; /* identifies the store: address, credentials and prefix */
    char who[WR_NODE_DIGITS + 1];   /* random name of this node */
    pthread_t thread;
    uv_loop_t loop;
    struct wr_wakeup called;
    uv_timer_t beat;
    struct wr_wire *wire;
    atomic_bool is_down, is_lost; /* state of the breaker, see struct wr_outage */
    atomic_uint outages;
    pthread_mutex_t lock;
    struct wr_list budgets;
    struct wr_list errands; /* store requests to send */
    bool is_called, is_ending, has_thread, has_heard;
    pthread_cond_t heard; /* signalled when the first answer came or was missed */
    struct wr_seat seat;
    int64_t asked_at; /* time of the last request for a seat */
    bool is_asking;
    uint64_t store_born;   /* since when the store knows of seats; 0: unknown */
    uint32_t telling;      /* store requests in progress that no caller waits for */
    uint32_t lives;        /* how often the store lost its data, or may have */
    uint32_t budget_count; /* budgets ever made */
    struct wr_agency_view view;
};

/* The account of a key on this node. */
struct wr_purse {
    struct wr_list_link link; /* membership in purses->order */
    struct wr_list_link due;  /* in purses->due, if the store must be told something */
    /* in purses->flights, if requests are in flight; least recently reported first */
    struct wr_list_link flight;
    struct wr_lease lease;
    uint32_t owed;         /* permits admitted without the store and not billed yet */
    uint32_t billed;       /* permits of the open bill, which is sent until it is answered */
    uint64_t bill;         /* number of the open bill; the store charges it once */
    uint32_t back;         /* permits that were charged but not used */
    int64_t back_at;       /* earliest store time at which those were charged */
    uint64_t held, flying; /* permits in flight, and permits asked for that may be */
    uint64_t message;      /* number of the last message about the key */
    int64_t told_at;
    uint32_t life;    /* agency->lives when the key was last reported */
    uint32_t outage;  /* outage for which its share was set up; 0: none */
    weir_quota quota; /* quota by the last answer of the store */
    int64_t fresh_at; /* when the key is as good as new */
    int64_t second;   /* second to which `spent` and `charged` belong */
    uint64_t spent, charged;
    uint32_t key_bytes, seen_room;
    char text[]; /* the key, then the state last seen, NUL-terminated */
};

struct wr_purses {
    _Alignas(WR_CACHE_LINE) pthread_mutex_t lock;
    struct wr_map map;
    struct wr_list order, due, flights;
    uint32_t life, untold; /* agency->lives, and keys not reported in that life */
    struct wr_seat seat;   /* copy of the agency's seat */
    uint64_t granted[WR_SOURCE_COUNT], refused[WR_SOURCE_COUNT];
    uint64_t overshoot, owed, held, damaged;
    int64_t longest_wait_ns;
};

struct wr_budget {
    struct wr_list_link link;
    atomic_uint holders; /* references: the owner and errands */
    struct wr_agency *agency;
    struct wr_budget_options options; /* copy of the options without the name */
    char name[WEIR_KEY_MAX];
    /* name of the node and this budget, because another budget of the same name may still exist */
    char who[WR_NODE_DIGITS + 12];
    struct wr_tariff tariff;
    struct wr_share_terms terms;
    weir_quota quota; /* quota of a new key */
    /* each limit can be divided by nodes; one is not on requests in flight */
    bool has_part, has_rate;
    bool has_flight;      /* some limit is on requests in flight */
    uint32_t flight_part; /* this node's part of that limit, permits */
    weir_stack part;
    weir_table *table;
    struct wr_hash_key hash_key;
    struct wr_purses purses[WR_SHARE_SHELVES];
};

/* A request to the store about a key. The caller owns it until it frees it, and the
 * agency until it ends. */
struct wr_errand {
    struct wr_list_link link; /* membership in agency->errands */
    struct wr_budget *budget;
    struct wr_purses *purses;
    weir_wake *wake;
    void *context;
    uint32_t permits, extra, owed, number, back;
    int64_t back_at;
    uint64_t held, message, bill;
    int64_t asked_at;
    bool resets;                        /* asks the store to forget the key */
    bool is_told_of;                    /* counted in agency->telling */
    bool is_over, is_wanted, is_polled; /* protected by the lock of `purses` */
    struct wr_share_told told;
    size_t bytes; /* bytes of this block */
    size_t store_key_bytes, key_at, key_bytes, seen_at;
    /* the key in the store, which ends with the caller's key and '}'; then the state last seen */
    char text[];
};

/* Sends an errand. If the store is down the errand ends at once. No lock is held. */
void wr_agency_send(struct wr_agency *agency, struct wr_errand *errand);

/* ---- errand.c ---- */

/* Makes an errand of everything that the store must be told about a key. Returns NULL if there is
 * no memory. The lock of `purses` is held. */
struct wr_errand *wr_errand_new(struct wr_budget *budget, struct wr_purses *purses, struct wr_purse *purse,
                                uint32_t permits, const struct wr_share_move *move);

/* Ends an errand with the store's answer; NULL: none. May free it. */
void wr_errand_end(struct wr_errand *errand, const struct wr_charge_told *told);

/* Makes at most `most` errands for keys that have something to report, and adds them to `errands`.
 * Returns their number. */
uint32_t wr_budget_own_up(struct wr_budget *budget, uint32_t life, uint32_t most, struct wr_list *errands);

/* ---- purse.c: the lock of `purses` is held --------------------------------------------------- */

/* Finds or makes the account of a key. Returns NULL if there is no memory. */
struct wr_purse *wr_purse_get(struct wr_budget *budget, struct wr_purses *purses, const char *key, size_t key_bytes,
                              int64_t now);

char *wr_purse_seen(struct wr_purse *purse);

/* Sets the decision of a move that needs no store. */
void wr_purse_tell(struct wr_purses *purses, struct wr_purse *purse, const struct wr_share_move *move, uint32_t permits,
                   int64_t now, struct wr_share_told *ret_told);

/* Decides without the store: by the lease, or else by the fallback. */
void wr_purse_decide_alone(struct wr_budget *budget, struct wr_purses *purses, struct wr_purse *purse, uint32_t permits,
                           int64_t now, struct wr_share_told *ret_told);

/* Decides by the fallback alone. */
void wr_purse_fall_back(struct wr_budget *budget, struct wr_purses *purses, struct wr_purse *purse, uint32_t permits,
                        struct wr_share_told *ret_told);

/* Counts what the store has charged: `permits` of a request, and extra. */
void wr_purse_note_charged(struct wr_purses *purses, struct wr_purse *purse, uint32_t permits, uint32_t extra,
                           int64_t now);

void wr_purse_owe(struct wr_purses *purses, struct wr_purse *purse, uint32_t permits);

/* Notes that permits which the store charged at `charged_at` were not used. */
void wr_purse_back(struct wr_purses *purses, struct wr_purse *purse, uint32_t permits, int64_t charged_at);

/* Corrects a grant that cost `used` permits in the end. */
void wr_purse_settle(struct wr_budget *budget, struct wr_purses *purses, struct wr_purse *purse,
                     const struct wr_grant *grant, uint32_t used);

/* Changes the number of permits in flight: `lands` have ended, `starts` begin. */
void wr_purse_fly(struct wr_budget *budget, struct wr_purses *purses, struct wr_purse *purse, uint64_t lands,
                  uint64_t starts);

/* Marks the key as having something to report to the store. */
void wr_purse_due(struct wr_purses *purses, struct wr_purse *purse);
void wr_purses_count(struct wr_purses *purses, const struct wr_share_told *told);
void wr_purses_release(struct wr_budget *budget, struct wr_purses *purses);

/* ---- budget.c ---- */

struct wr_purses *wr_budget_purses(struct wr_budget *budget, const char *key, size_t key_bytes);

/* Copies the seat to all shards. agency->lock is held. */
void wr_budget_take_seat(struct wr_budget *budget, const struct wr_seat *seat);

void wr_budget_hold(struct wr_budget *budget);
void wr_budget_drop(struct wr_budget *budget); /* the last one frees the budget */

#endif
