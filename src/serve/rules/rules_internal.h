/* SPDX-License-Identifier: MIT */
/* rules_internal.h - internal structures of a rulebook.
 *
 *     wr_rules -- snapshot --+-- counter: checks the rules (weir_admission)
 *          |                   `-- rules --+-- match, key, lists: as configured
 *          |                               |-- tables: one for its limits, one per plan  } outlive
 *          `-- rule_stats_list, by name -----------`-- rule_stats: the rule's name and counters       } snapshots
 *
 * An snapshot is a snapshot of the rules that never changes. A reload builds a new one, which takes
 * over the tables of unchanged rules, and swaps the pointer. It then waits until no thread reads
 * the old one (epoch.h), and releases it. Reservations and pending requests keep the snapshot they
 * began with.
 */
#ifndef WR_SERVE_RULES_RULES_INTERNAL_H
#define WR_SERVE_RULES_RULES_INTERNAL_H

#include "base/rng.h"
#include "core/admit/match.h"
#include "core/admit/numbered_keys.h"
#include "core/admit/ranges.h"
#include "limiter/admission/admission.h"
#include "serve/rules/epoch.h"
#include "serve/rules/rules.h"

#include <pthread.h>

/* Limit of rule names over the lifetime of a rulebook. Names are never freed: verdicts point to
 * them. */
#define WR_RULE_NAMES_MAX 10000
#define WR_RULE_STATS_STRIPES 8 /* copies of each counter, so that threads rarely share a cache line */

/* Numbers of a rule's plans, as in weir_ruling.plan. */
#define WR_RULE_PLAN_OWN 0
#define WR_RULE_PLAN_ALLOW 1 /* keys listed in allow_keys */
#define WR_RULE_PLAN_DENY 2
#define WR_RULE_PLAN_FIRST 3 /* the first plan of the configuration file */

#define WR_RULE_LISTED_KEYS_MAX ((2 + WR_RULE_PLANS_MAX) * WR_RULE_KEYS_MAX)

struct wr_cause_counts {
    _Alignas(WR_CACHE_LINE) _Atomic uint64_t causes[WR_CAUSE_COUNT];
    _Atomic uint64_t shadowed;
};

/* Counts one request, in the stripe of the calling thread. */
void wr_cause_counts_add(struct wr_cause_counts *stripes, enum wr_cause cause, bool shadowed);
void wr_cause_counts_sum(const struct wr_cause_counts *stripes, uint64_t *ret_causes, uint64_t *ret_shadowed);

struct wr_rule_stats {
    struct wr_rule_stats *next;
    char name[WEIR_RULE_NAME_MAX + 1];
    struct wr_cause_counts tallies[WR_RULE_STATS_STRIPES];
};

/* The table of a rule or plan, and the limits it was created for. */
struct wr_rule_table {
    atomic_uint holders; /* number of snapshots' rules that use it */
    weir_table *table;
    /* limit shared through the store, of which the table is this node's part; NULL: not shared */
    struct wr_shared_limit *budget;
    const weir_allocator *allocator;
    weir_stack stack; /* limits in force */
    bool has_release; /* a limit counts permits in flight until they are released */
    wr_rule_word key[WEIR_KEY_PARTS_MAX];
};

/* A rule in the form that requests are compared with. */
struct wr_compiled_rule {
    struct wr_rule_stats *rule_stats;
    const struct wr_rule_settings *written;
    struct wr_match match;
    weir_key_rule key, parts[WEIR_KEY_PARTS_MAX];
    const weir_key_rule *part_list[WEIR_KEY_PARTS_MAX];
    struct wr_span methods[WR_RULE_METHODS_MAX];
    struct wr_glob paths[WR_RULE_PATTERNS_MAX], hosts[WR_RULE_PATTERNS_MAX];
    struct wr_header_pattern headers[WR_RULE_PATTERNS_MAX];
    struct wr_numbered_key words[WR_RULE_LISTED_KEYS_MAX]; /* listed keys; `number` is the plan */
    size_t word_count;
    weir_rule rule;
    weir_stack stacks[1 + WR_RULE_PLANS_MAX];
    struct wr_rule_table *rule_tables[1 + WR_RULE_PLANS_MAX];
    uint64_t max_keys; /* limit of keys in each table */
    weir_key_store repository, plans[WR_RULE_PLAN_FIRST - 1 + WR_RULE_PLANS_MAX];
};

struct wr_rules_snapshot {
    atomic_uint holders; /* references: the rulebook, reservations, pending requests */
    const weir_allocator *allocator;
    /* copy of the settings, `count` rules; texts of the rules point into it */
    struct wr_rule_settings *written;
    uint32_t count;
    struct wr_compiled_rule *rules;
    weir_admission *counter;
    unsigned wanted;      /* WR_ASKED_... bits: parts of the request that rules look at */
    unsigned exact;       /* weir_exact bits: path differences that services distinguish */
    weir_key_rule client; /* how to find the client's address, for the network lists */
    wr_rule_word forwarded_header;
    wr_rule_word secret;
    weir_network trusted[WR_RULES_NETWORKS_MAX];
    struct wr_range allow[WR_RULES_NETWORKS_MAX], deny[WR_RULES_NETWORKS_MAX];
    size_t allow_count, deny_count;
    bool opens_on_error;
    bool has_shared; /* a rule is shared with other processes */
    int64_t lease_ns, forget_ns;
};

struct wr_reservation;

#define WR_ORIGINS_MAX 16
#define WR_ORIGIN_NONE UINT32_MAX /* origin of a reservation taken over from another daemon */

/* Slot of a reservation. Free slots form a ring, so that one is found without a search. */
struct wr_reservation_slot {
    struct wr_reservation *hold; /* the reservation; NULL: the slot is free */
    uint32_t next, before;
};

/* The table of reservations, which includes permits in flight. */
struct wr_reservations {
    pthread_mutex_t lock;
    struct wr_reservation_slot *slots; /* `max` slots, then the head of the ring of free slots */
    uint32_t max, count;
    /* reservations of each origin; each may have an equal part of `max` */
    uint32_t origins, counts[WR_ORIGINS_MAX];
    struct wr_rng rng;
    _Atomic uint64_t expired;
};

struct wr_rules {
    const weir_clock *clock;
    const weir_allocator *allocator;
    _Atomic(struct wr_rules_snapshot *) snapshot;
    struct wr_epoch epoch;
    pthread_mutex_t changing; /* serialises reloads */
    pthread_mutex_t saving;   /* serialises saves */
    void (*moment_now)(struct wr_moment *ret_moment);
    struct wr_rule_stats *rule_stats_list;
    size_t rule_stats_count;
    wr_rule_word secret;
    /* connection to the store of shared limits; NULL: no rule is shared */
    struct wr_redis_client *redis_client;
    struct wr_reservations holds;
    struct wr_cause_counts tallies[WR_RULE_STATS_STRIPES];
    _Atomic uint64_t reloads, reloads_failed, restored;
    _Atomic uint64_t waiting;
    atomic_bool is_copied; /* another rulebook may have a copy of the keys */
};

/* ---- snapshots (snapshot.c) ---- */

/* Builds a snapshot from the settings, which it copies. Takes over tables from `old` (may be NULL)
 * where they fit, and changes nothing that `old` uses. Returns WEIR_E_INVAL (see the error detail),
 * WEIR_E_NOMEM or WEIR_E_SYSTEM on failure. */
int wr_rules_snapshot_new(struct wr_rules *book, const struct wr_rules_settings *settings,
                          const struct wr_rules_snapshot *old, struct wr_rules_snapshot **ret_edition);

/* Applies the limits and bounds of the new snapshot to the tables that it took over. Returns
 * WEIR_E_NOMEM on failure, with all tables unchanged. */
int wr_rules_snapshot_apply_limits(const struct wr_rules_snapshot *snapshot);

void wr_rules_snapshot_ref(struct wr_rules_snapshot *snapshot);
void wr_rules_snapshot_unref(struct wr_rules_snapshot *snapshot); /* frees the snapshot with its last reference */

/* Returns NULL if there is no rule of this name. */
const struct wr_compiled_rule *wr_rules_snapshot_find(const struct wr_rules_snapshot *snapshot, const char *rule);

/* ---- tables (rule_table.c) ---- */

/* The rule or plan that a table is needed for. */
struct wr_rule_table_options {
    const struct wr_rule_settings *rule;
    const char *plan; /* name of the plan; NULL: the rule's own limits */
    const weir_stack *stack;
    uint64_t max_keys;
    int64_t forget_ns;
};

/* Returns `old` if it fits, or else a new one. Adds a reference in either case. */
int wr_rule_table_get(const struct wr_rules *book, const struct wr_rule_table_options *table_options,
                      struct wr_rule_table *old, struct wr_rule_table **ret_drawer);
void wr_rule_table_unref(struct wr_rule_table *rule_table); /* accepts NULL */

/* Returns the table that decides a ruling; NULL if a list of keys decides it. */
struct wr_rule_table *wr_rule_table_of(const struct wr_rules_snapshot *snapshot, const weir_ruling *ruling);

weir_key_store wr_rule_table_key_store(struct wr_rule_table *rule_table);

/* ---- shared limits (shared_rules.c) ---- */

static inline bool wr_rule_is_shared(const struct wr_rule_settings *rule)
{
    return rule->share.overshoot[0] != '\0';
}

/* Creates book->redis_client if a rule is shared, or checks that an existing one has the same
 * options. Returns WEIR_E_INVAL, WEIR_E_NOMEM or WEIR_E_SYSTEM on failure. */
int wr_rules_open_store(struct wr_rules *book, const struct wr_rules_settings *settings);

int wr_rules_shared_limit_new(const struct wr_rules *book, const struct wr_rule_table_options *table_options,
                              struct wr_shared_limit **ret_budget);
bool wr_rules_shared_limit_fits(const struct wr_rules *book, const struct wr_rule_table_options *table_options,
                                const struct wr_shared_limit *budget);

/* Returns the receipt of a shared limit's grant, for its settlement. `place` is the source plus
 * one; 0 means unknown. */
static inline weir_receipt wr_shared_limit_receipt(const struct wr_shared_limit_decision *told, uint32_t permits)
{
    return (weir_receipt){.at = told->charged_at, .permits = permits, .place = (uint32_t)told->source + 1};
}

/* Repositories that grant every request (open) or none (shut). */
weir_key_store wr_key_store_grant_all(void);
weir_key_store wr_key_store_grant_none(void);

/* ---- decisions (rules_decide.c) ---- */

/* Resets a verdict before a request is decided. */
void wr_verdict_reset(struct wr_verdict *verdict);

/* Refuses a request if `error` arose because it took too many steps. Returns true if so; the
 * verdict is then complete and counted. */
bool wr_verdict_refuse_costly(struct wr_rules *book, const struct wr_request_reading *asked, int error,
                              struct wr_verdict *verdict);

/* Completes a verdict from its admission, or from `error` of the counter. */
void wr_verdict_conclude(const struct wr_rules_snapshot *snapshot, int error, struct wr_verdict *verdict);

/* Counts a verdict for the rulebook and its rules. Call it once for each request. */
void wr_verdict_count(struct wr_rules *book, const struct wr_rules_snapshot *snapshot,
                      const struct wr_verdict *verdict);

/* Decides requests for which no rule is checked: malformed ones, and clients on a network list.
 * Returns true if so; the verdict is then complete and counted. */
bool wr_verdict_without_rules(struct wr_rules *book, const struct wr_rules_snapshot *snapshot,
                              const weir_request *request, struct wr_request_reading *ret_asked,
                              struct wr_verdict *ret_verdict);

/* ---- reservations (reservation.c) ---- */

int wr_reservations_init(struct wr_reservations *ret_holds, uint32_t max, uint32_t origins,
                         const weir_allocator *allocator);
void wr_reservations_release(struct wr_rules *book);

/* Creates a reservation of the permits that an allowed verdict took, and sets verdict->hold. On
 * failure returns the permits, and the verdict becomes FULL, FAILED or FAILED_OPEN. */
void wr_reservation_add(struct wr_rules *book, struct wr_rules_snapshot *snapshot, int64_t lease_ns,
                        struct wr_verdict *verdict);

/* Ends the reservations whose lease has expired. */
void wr_reservations_expire(struct wr_rules *book);

#define WR_RESERVATION_BYTES_MAX (64 + WEIR_RULINGS_MAX * (2 * (WR_RULE_WORD_MAX + 8) + 2 * WEIR_KEY_MAX + 16))

/* Appends the lines of a state file (key_file.c) for the reservation in `slot`, if there is one.
 * Writes only permits of tables that `snapshot` has too. Returns false if `slot` is past the
 * end. */
bool wr_reservation_append(struct wr_rules *book, const struct wr_rules_snapshot *snapshot, uint32_t slot, int64_t now,
                           struct wr_buf *buf);

/* Adds a reservation of another daemon under its old number; `admission` has the permits taken for
 * it here. Returns false if there is no room. */
bool wr_reservation_restore(struct wr_rules *book, struct wr_rules_snapshot *snapshot, uint64_t number,
                            int64_t lease_ns, const weir_admission_result *admission);

/* Returns the table that decided a ruling; NULL if a list of keys decided it. */
static inline struct wr_rule_table *wr_ruling_table(const struct wr_rules_snapshot *snapshot, const weir_ruling *ruling)
{
    if (ruling->plan == WR_RULE_PLAN_ALLOW || ruling->plan == WR_RULE_PLAN_DENY)
        return NULL;
    return snapshot->rules[ruling->rule]
        .rule_tables[ruling->plan == WR_RULE_PLAN_OWN ? 0 : ruling->plan - WR_RULE_PLAN_FIRST + 1];
}

/* Returns true if a verdict took permits that stay taken until they are released. */
bool wr_verdict_needs_release(const struct wr_rules_snapshot *snapshot, const struct wr_verdict *verdict);

/* Begins and ends a section in which the current snapshot is read. */
static inline struct wr_rules_snapshot *wr_rules_read_begin(struct wr_rules *book, struct wr_epoch_guard *ret_pass)
{
    *ret_pass = wr_epoch_enter(&book->epoch);
    return atomic_load(&book->snapshot);
}

/* Returns the current snapshot with a reference, for operations longer than a decision. The caller
 * drops it. */
static inline struct wr_rules_snapshot *wr_rules_snapshot_get(struct wr_rules *book)
{
    struct wr_epoch_guard pass;
    struct wr_rules_snapshot *snapshot = wr_rules_read_begin(book, &pass);
    wr_rules_snapshot_ref(snapshot);
    wr_epoch_leave(pass);
    return snapshot;
}

static inline void wr_rules_read_end(struct wr_epoch_guard pass)
{
    wr_epoch_leave(pass);
}

#endif
