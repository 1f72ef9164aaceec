/* SPDX-License-Identifier: MIT */
/* agency.h - what an agency and its budgets are made of.
 *
 * Locks, in this order: agency->lock (the list of budgets, the seat, and errands that are to be sent), then a shelf's
 * (its keys, their leases, and errands that are on their way).
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

#define WR_SHARE_SHELVES 16 /* of a budget, so that threads seldom meet */
#define WR_NODE_DIGITS 32
#define WR_ADDRESS_BYTES 1024

struct wr_agency {
    const weir_allocator *allocator;
    uint32_t nodes;
    int64_t timeout_ns;
    char prefix[WR_SHARE_PREFIX_MAX + 1];
    char address[WR_ADDRESS_BYTES]; /* what tells stores apart */
    char who[WR_NODE_DIGITS + 1];   /* this node's name */
    pthread_t thread;
    uv_loop_t loop;
    struct wr_wakeup called;
    uv_timer_t beat;
    struct wr_wire *wire;
    atomic_bool is_down, is_lost; /* as struct wr_outage has it */
    atomic_uint outages;
    pthread_mutex_t lock;
    struct wr_list budgets;
    struct wr_list errands; /* to be sent */
    bool is_called, is_ending, has_thread, has_heard;
    pthread_cond_t heard; /* the first answer, or that there is none */
    struct wr_seat seat;
    int64_t asked_at; /* for a seat */
    bool is_asking;
    uint64_t store_born;   /* 0: not known */
    uint32_t telling;      /* errands on their way that nobody waits for */
    uint32_t lives;        /* how often the store began anew, or may have */
    uint32_t budget_count; /* ever made */
    struct wr_agency_view view;
};

/* A key. */
struct wr_purse {
    struct wr_list_link link;   /* in the order in which they came */
    struct wr_list_link due;    /* if it has something to tell the store, ... */
    struct wr_list_link flight; /* ... or some requests are in flight: the one that was told of longest ago is first */
    struct wr_lease lease;
    uint32_t owed;         /* admitted without the store, and beside that ... */
    uint32_t billed;       /* ... what it was told of and has not answered: told again under the same number, ... */
    uint64_t bill;         /* ... this one, it is charged once */
    uint32_t back;         /* charged, and not used: ... */
    int64_t back_at;       /* ... at this instant of the store or later */
    uint64_t held, flying; /* in flight; and perhaps, for they are being asked for */
    uint64_t message;      /* to the store, about that */
    int64_t told_at;
    uint32_t life;    /* of the store, to which this was told */
    uint32_t outage;  /* in which its share began used up; 0: in none */
    weir_quota quota; /* as the store told it last */
    int64_t fresh_at; /* when nothing is left of it */
    int64_t second;   /* of the two below */
    uint64_t spent, charged;
    uint32_t key_bytes, seen_room;
    char text[]; /* the key, then what was last seen, terminated */
};

struct wr_purses {
    _Alignas(WR_CACHE_LINE) pthread_mutex_t lock;
    struct wr_map map;
    struct wr_list order, due, flights;
    uint32_t life, untold; /* of the store; and how many keys it may not know */
    struct wr_seat seat;   /* the agency's */
    uint64_t granted[WR_SOURCE_COUNT], refused[WR_SOURCE_COUNT];
    uint64_t overshoot, owed, held, damaged;
    int64_t longest_wait_ns;
};

struct wr_budget {
    struct wr_list_link link;
    atomic_uint holders; /* the owner, and errands */
    struct wr_agency *agency;
    struct wr_budget_options options; /* without the name */
    char name[WEIR_KEY_MAX];
    char who[WR_NODE_DIGITS + 12]; /* this node and budget: another one of the same name may be on its way out */
    struct wr_tariff tariff;
    struct wr_share_terms terms;
    weir_quota quota;        /* of a key that is new */
    bool has_part, has_rate; /* a limit other than: */
    bool has_flight;         /* one on requests in flight, of which ... */
    uint32_t flight_part;    /* ... so many are this node's part */
    weir_stack part;
    weir_table *table;
    struct wr_hash_key hash_key;
    struct wr_purses purses[WR_SHARE_SHELVES];
};

/* One ask on its way. It belongs to its caller until that frees it, and to the agency until it is over. */
struct wr_errand {
    struct wr_list_link link; /* in agency->errands */
    struct wr_budget *budget;
    struct wr_purses *purses;
    weir_wake *wake;
    void *context;
    uint32_t permits, extra, owed, number, back;
    int64_t back_at;
    uint64_t held, message, bill;
    int64_t asked_at;
    bool resets;                        /* the key is to be forgotten */
    bool is_told_of;                    /* counts in agency->telling */
    bool is_over, is_wanted, is_polled; /* under the purses' lock */
    struct wr_share_told told;
    size_t bytes; /* of this block */
    size_t store_key_bytes, key_at, key_bytes, seen_at;
    char text[]; /* the key as the store knows it, which ends with ours; then what was seen */
};

/* Hands errands over; if the store is down they end at once. With no lock held. */
void wr_agency_send(struct wr_agency *agency, struct wr_errand *errand);

/* ---- errand.c ---- */

/* An errand for what is to be asked of a key, out of its purse. NULL for want of memory. With the purses' lock. */
struct wr_errand *wr_errand_new(struct wr_budget *budget, struct wr_purses *purses, struct wr_purse *purse,
                                uint32_t permits, const struct wr_share_move *move);

/* The store's answer, or NULL. The errand may be gone then. */
void wr_errand_end(struct wr_errand *errand, const struct wr_charge_told *told);

/* Makes errands for keys that have something to tell, at most so many, and puts them into `errands`. Returns how many.
 */
uint32_t wr_budget_own_up(struct wr_budget *budget, uint32_t life, uint32_t most, struct wr_list *errands);

/* ---- purse.c: with the purses' lock ---- */

/* Makes one if need be. NULL for want of memory. */
struct wr_purse *wr_purse_get(struct wr_budget *budget, struct wr_purses *purses, const char *key, size_t key_bytes,
                              int64_t now);

char *wr_purse_seen(struct wr_purse *purse);

/* What a move comes to that needs no store. */
void wr_purse_tell(struct wr_purses *purses, struct wr_purse *purse, const struct wr_share_move *move, uint32_t permits,
                   int64_t now, struct wr_share_told *ret_told);

/* Decides without the store: by the lease, then as the fallback says. */
void wr_purse_decide_alone(struct wr_budget *budget, struct wr_purses *purses, struct wr_purse *purse, uint32_t permits,
                           int64_t now, struct wr_share_told *ret_told);

/* The fallback alone. */
void wr_purse_fall_back(struct wr_budget *budget, struct wr_purses *purses, struct wr_purse *purse, uint32_t permits,
                        struct wr_share_told *ret_told);

/* What the store said, to an ask that is for `permits` and extra. */
void wr_purse_note_charged(struct wr_purses *purses, struct wr_purse *purse, uint32_t permits, uint32_t extra,
                           int64_t now);

void wr_purse_owe(struct wr_purses *purses, struct wr_purse *purse, uint32_t permits);

/* What was charged by the store at this instant was not used. */
void wr_purse_back(struct wr_purses *purses, struct wr_purse *purse, uint32_t permits, int64_t charged_at);

/* Of permits that were granted only `used` were needed, in the end. */
void wr_purse_settle(struct wr_budget *budget, struct wr_purses *purses, struct wr_purse *purse,
                     const struct wr_grant *grant, uint32_t used);

/* So many more, or less, are in flight. */
void wr_purse_fly(struct wr_budget *budget, struct wr_purses *purses, struct wr_purse *purse, uint64_t lands,
                  uint64_t starts);

/* The store is to be told of it. */
void wr_purse_due(struct wr_purses *purses, struct wr_purse *purse);
void wr_purses_count(struct wr_purses *purses, const struct wr_share_told *told);
void wr_purses_release(struct wr_budget *budget, struct wr_purses *purses);

/* ---- budget.c ---- */

struct wr_purses *wr_budget_purses(struct wr_budget *budget, const char *key, size_t key_bytes);

/* With agency->lock held. */
void wr_budget_take_seat(struct wr_budget *budget, const struct wr_seat *seat);

void wr_budget_hold(struct wr_budget *budget);
void wr_budget_drop(struct wr_budget *budget); /* the last one frees it */

#endif
