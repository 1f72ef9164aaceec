/* SPDX-License-Identifier: MIT */
/* book.h - internal structures of a rulebook.
 *
 *     wr_rulebook -- edition --+-- counter: checks the rules (weir_counter)
 *          |                   `-- rules --+-- match, key, lists: as configured
 *          |                               |-- tables: one for its limits, one per plan  } outlive
 *          `-- shelves, by name -----------`-- shelf: the rule's name and counters       } editions
 *
 * An edition is a snapshot of the rules that never changes. A reload builds a new one, which takes
 * over the tables of unchanged rules, and swaps the pointer. It then waits until no thread reads
 * the old one (grace.h), and releases it. Reservations and pending requests keep the edition they
 * began with.
 */
#ifndef WR_SHELL_RULEBOOK_BOOK_H
#define WR_SHELL_RULEBOOK_BOOK_H

#include "base/rng.h"
#include "core/admit/match.h"
#include "core/admit/ranges.h"
#include "core/admit/words.h"
#include "shell/counter/counter.h"
#include "shell/rulebook/grace.h"
#include "shell/rulebook/rulebook.h"

#include <pthread.h>

/* Limit of rule names over the lifetime of a rulebook. Names are never freed: verdicts point to
 * them. */
#define WR_SHELVES_MAX 10000
#define WR_STRIPES 8 /* copies of each counter, so that threads rarely share a cache line */

/* Numbers of a rule's plans, as in weir_ruling.plan. */
#define WR_PLAN_OWN 0
#define WR_PLAN_ALLOW 1 /* keys listed in allow_keys */
#define WR_PLAN_DENY 2
#define WR_PLAN_FIRST 3 /* the first plan of the configuration file */

#define WR_LISTED_MAX ((2 + WR_BOOK_PLANS_MAX) * WR_BOOK_KEYS_MAX)

struct wr_causes {
    _Alignas(WR_CACHE_LINE) _Atomic uint64_t causes[WR_CAUSE_COUNT];
    _Atomic uint64_t shadowed;
};

/* Counts one request, in the stripe of the calling thread. */
void wr_causes_add(struct wr_causes *stripes, enum wr_cause cause, bool shadowed);
void wr_causes_sum(const struct wr_causes *stripes, uint64_t *ret_causes, uint64_t *ret_shadowed);

struct wr_shelf {
    struct wr_shelf *next;
    char name[WEIR_RULE_NAME_MAX + 1];
    struct wr_causes tallies[WR_STRIPES];
};

/* The table of a rule or plan, and the limits it was created for. */
struct wr_drawer {
    atomic_uint holders; /* number of editions' rules that use it */
    weir_table *table;
    /* limit shared through the store, of which the table is this node's part; NULL: not shared */
    struct wr_budget *budget;
    const weir_allocator *allocator;
    weir_stack stack; /* limits in force */
    bool has_release; /* a limit counts permits in flight until they are released */
    wr_book_word key[WEIR_KEY_PARTS_MAX];
};

/* A rule in the form that requests are compared with. */
struct wr_edition_rule {
    struct wr_shelf *shelf;
    const struct wr_book_rule *written;
    struct wr_match match;
    weir_key key, parts[WEIR_KEY_PARTS_MAX];
    const weir_key *part_list[WEIR_KEY_PARTS_MAX];
    struct wr_span methods[WR_BOOK_METHODS_MAX];
    struct wr_glob paths[WR_BOOK_PATTERNS_MAX], hosts[WR_BOOK_PATTERNS_MAX];
    struct wr_header_pattern headers[WR_BOOK_PATTERNS_MAX];
    struct wr_word words[WR_LISTED_MAX]; /* listed keys; `number` is the plan */
    size_t word_count;
    weir_rule rule;
    weir_stack stacks[1 + WR_BOOK_PLANS_MAX];
    struct wr_drawer *drawers[1 + WR_BOOK_PLANS_MAX];
    uint64_t max_keys; /* limit of keys in each table */
    weir_repository repository, plans[WR_PLAN_FIRST - 1 + WR_BOOK_PLANS_MAX];
};

struct wr_edition {
    atomic_uint holders; /* references: the rulebook, reservations, pending requests */
    const weir_allocator *allocator;
    /* copy of the settings, `count` rules; texts of the rules point into it */
    struct wr_book_rule *written;
    uint32_t count;
    struct wr_edition_rule *rules;
    weir_counter *counter;
    unsigned wanted; /* WR_ASKED_... bits: parts of the request that rules look at */
    unsigned exact;  /* weir_exact bits: path differences that services distinguish */
    weir_key client; /* how to find the client's address, for the network lists */
    wr_book_word forwarded_header;
    wr_book_word secret;
    weir_network trusted[WR_BOOK_NETWORKS_MAX];
    struct wr_range allow[WR_BOOK_NETWORKS_MAX], deny[WR_BOOK_NETWORKS_MAX];
    size_t allow_count, deny_count;
    bool opens_on_error;
    bool has_shared; /* a rule is shared with other processes */
    int64_t lease_ns, forget_ns;
};

struct wr_hold;

#define WR_ORIGINS_MAX 16
#define WR_ORIGIN_NONE UINT32_MAX /* origin of a reservation taken over from another daemon */

/* Slot of a reservation. Free slots form a ring, so that one is found without a search. */
struct wr_hold_slot {
    struct wr_hold *hold; /* the reservation; NULL: the slot is free */
    uint32_t next, before;
};

/* The table of reservations, which includes permits in flight. */
struct wr_holds {
    pthread_mutex_t lock;
    struct wr_hold_slot *slots; /* `max` slots, then the head of the ring of free slots */
    uint32_t max, count;
    /* reservations of each origin; each may have an equal part of `max` */
    uint32_t origins, counts[WR_ORIGINS_MAX];
    struct wr_rng rng;
    _Atomic uint64_t expired;
};

struct wr_rulebook {
    const weir_clock *clock;
    const weir_allocator *allocator;
    _Atomic(struct wr_edition *) edition;
    struct wr_grace grace;
    pthread_mutex_t changing; /* serialises reloads */
    pthread_mutex_t saving;   /* serialises saves */
    void (*moment_now)(struct wr_moment *ret_moment);
    struct wr_shelf *shelves;
    size_t shelf_count;
    wr_book_word secret;
    /* connection to the store of shared limits; NULL: no rule is shared */
    struct wr_agency *agency;
    struct wr_holds holds;
    struct wr_causes tallies[WR_STRIPES];
    _Atomic uint64_t reloads, reloads_failed, restored;
    _Atomic uint64_t waiting;
    atomic_bool is_copied; /* another rulebook may have a copy of the keys */
};

/* ---- snapshots (edition.c) ---- */

/* Builds an edition from the settings, which it copies. Takes over tables from `old` (may be NULL)
 * where they fit, and changes nothing that `old` uses. Returns WEIR_E_INVAL (see the error detail),
 * WEIR_E_NOMEM or WEIR_E_SYSTEM on failure. */
int wr_edition_new(struct wr_rulebook *book, const struct wr_rulebook_settings *settings, const struct wr_edition *old,
                   struct wr_edition **ret_edition);

/* Applies the limits and bounds of the new edition to the tables that it took over. Returns
 * WEIR_E_NOMEM on failure, with all tables unchanged. */
int wr_edition_enforce(const struct wr_edition *edition);

void wr_edition_hold(struct wr_edition *edition);
void wr_edition_drop(struct wr_edition *edition); /* frees the edition with its last reference */

/* Returns NULL if there is no rule of this name. */
const struct wr_edition_rule *wr_edition_find(const struct wr_edition *edition, const char *rule);

/* ---- tables (drawer.c) ---- */

/* The rule or plan that a table is needed for. */
struct wr_drawer_wish {
    const struct wr_book_rule *rule;
    const char *plan; /* name of the plan; NULL: the rule's own limits */
    const weir_stack *stack;
    uint64_t max_keys;
    int64_t forget_ns;
};

/* Returns `old` if it fits, or else a new one. Adds a reference in either case. */
int wr_drawer_get(const struct wr_rulebook *book, const struct wr_drawer_wish *wish, struct wr_drawer *old,
                  struct wr_drawer **ret_drawer);
void wr_drawer_drop(struct wr_drawer *drawer); /* accepts NULL */

/* Returns the table that decides a ruling; NULL if a list of keys decides it. */
struct wr_drawer *wr_drawer_of(const struct wr_edition *edition, const weir_ruling *ruling);

weir_repository wr_drawer_repository(struct wr_drawer *drawer);

/* ---- shared limits (shared.c) ---- */

static inline bool wr_rule_is_shared(const struct wr_book_rule *rule)
{
    return rule->share.overshoot[0] != '\0';
}

/* Creates book->agency if a rule is shared, or checks that an existing one has the same options.
 * Returns WEIR_E_INVAL, WEIR_E_NOMEM or WEIR_E_SYSTEM on failure. */
int wr_book_join(struct wr_rulebook *book, const struct wr_rulebook_settings *settings);

int wr_book_budget(const struct wr_rulebook *book, const struct wr_drawer_wish *wish, struct wr_budget **ret_budget);
bool wr_book_budget_is(const struct wr_rulebook *book, const struct wr_drawer_wish *wish,
                       const struct wr_budget *budget);

/* Returns the receipt of a shared limit's grant, for its settlement. `place` is the source plus
 * one; 0 means unknown. */
static inline weir_receipt wr_budget_receipt(const struct wr_share_told *told, uint32_t permits)
{
    return (weir_receipt){.at = told->charged_at, .permits = permits, .place = (uint32_t)told->source + 1};
}

/* Repositories that grant every request (open) or none (shut). */
weir_repository wr_repository_open(void);
weir_repository wr_repository_shut(void);

/* ---- decisions (decide.c) ---- */

/* Resets a verdict before a request is decided. */
void wr_verdict_start(struct wr_verdict *verdict);

/* Refuses a request if `error` arose because it took too many steps. Returns true if so; the
 * verdict is then complete and counted. */
bool wr_verdict_of_work(struct wr_rulebook *book, const struct wr_asked *asked, int error, struct wr_verdict *verdict);

/* Completes a verdict from its admission, or from `error` of the counter. */
void wr_verdict_conclude(const struct wr_edition *edition, int error, struct wr_verdict *verdict);

/* Counts a verdict for the rulebook and its rules. Call it once for each request. */
void wr_verdict_count(struct wr_rulebook *book, const struct wr_edition *edition, const struct wr_verdict *verdict);

/* Decides requests for which no rule is checked: malformed ones, and clients on a network list.
 * Returns true if so; the verdict is then complete and counted. */
bool wr_verdict_at_once(struct wr_rulebook *book, const struct wr_edition *edition, const weir_request *request,
                        struct wr_asked *ret_asked, struct wr_verdict *ret_verdict);

/* ---- reservations (hold.c) ---- */

int wr_holds_init(struct wr_holds *ret_holds, uint32_t max, uint32_t origins, const weir_allocator *allocator);
void wr_holds_release(struct wr_rulebook *book);

/* Creates a reservation of the permits that an allowed verdict took, and sets verdict->hold. On
 * failure returns the permits, and the verdict becomes FULL, FAILED or FAILED_OPEN. */
void wr_hold_add(struct wr_rulebook *book, struct wr_edition *edition, int64_t lease_ns, struct wr_verdict *verdict);

/* Ends the reservations whose lease has expired. */
void wr_holds_expire(struct wr_rulebook *book);

#define WR_HOLD_BYTES_MAX (64 + WEIR_RULINGS_MAX * (2 * (WR_BOOK_WORD_MAX + 8) + 2 * WEIR_KEY_MAX + 16))

/* Appends the lines of a state file (state.c) for the reservation in `slot`, if there is one.
 * Writes only permits of tables that `edition` has too. Returns false if `slot` is past the end. */
bool wr_hold_append(struct wr_rulebook *book, const struct wr_edition *edition, uint32_t slot, int64_t now,
                    struct wr_buf *buf);

/* Adds a reservation of another daemon under its old number; `admission` has the permits taken for
 * it here. Returns false if there is no room. */
bool wr_hold_put(struct wr_rulebook *book, struct wr_edition *edition, uint64_t number, int64_t lease_ns,
                 const weir_admission *admission);

/* Returns the table that decided a ruling; NULL if a list of keys decided it. */
static inline struct wr_drawer *wr_ruling_drawer(const struct wr_edition *edition, const weir_ruling *ruling)
{
    if (ruling->plan == WR_PLAN_ALLOW || ruling->plan == WR_PLAN_DENY)
        return NULL;
    return edition->rules[ruling->rule].drawers[ruling->plan == WR_PLAN_OWN ? 0 : ruling->plan - WR_PLAN_FIRST + 1];
}

/* Returns true if a verdict took permits that stay taken until they are released. */
bool wr_verdict_in_flight(const struct wr_edition *edition, const struct wr_verdict *verdict);

/* Begins and ends a section in which the current edition is read. */
static inline struct wr_edition *wr_book_enter(struct wr_rulebook *book, struct wr_grace_pass *ret_pass)
{
    *ret_pass = wr_grace_enter(&book->grace);
    return atomic_load(&book->edition);
}

/* Returns the current edition with a reference, for operations longer than a decision. The caller
 * drops it. */
static inline struct wr_edition *wr_book_borrow(struct wr_rulebook *book)
{
    struct wr_grace_pass pass;
    struct wr_edition *edition = wr_book_enter(book, &pass);
    wr_edition_hold(edition);
    wr_grace_leave(pass);
    return edition;
}

static inline void wr_book_leave(struct wr_grace_pass pass)
{
    wr_grace_leave(pass);
}

#endif
