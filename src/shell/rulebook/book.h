/* SPDX-License-Identifier: MIT */
/* book.h - what a rulebook is made of.
 *
 *     wr_rulebook ── edition ──┬── counter (weir_counter: asks the rules)
 *          │                   └── rules ──┬── match, key, lists: how it was written
 *          │                               ├── tables, one for its own limits and one for each plan   } outlive
 *          └── shelves, by name ───────────┴── shelf: the rule's name and tallies                     } editions
 *
 * An edition never changes. A reload makes another, hands it the tables of rules that stay, and swaps the pointer; then
 * it waits until nobody reads the old one (grace.h) and lets go of it. Holds and turns keep the edition that they were
 * made by.
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

#define WR_SHELVES_MAX 10000 /* names of rules over the life of a book: each stays, for verdicts point to it */
#define WR_STRIPES 8         /* of tallies, so that threads seldom meet */

/* Plans of a weir_rule. */
#define WR_PLAN_OWN 0
#define WR_PLAN_ALLOW 1 /* the allow_keys */
#define WR_PLAN_DENY 2
#define WR_PLAN_FIRST 3 /* of those in the file */

#define WR_LISTED_MAX ((2 + WR_BOOK_PLANS_MAX) * WR_BOOK_KEYS_MAX)

struct wr_causes {
    _Alignas(WR_CACHE_LINE) _Atomic uint64_t causes[WR_CAUSE_COUNT];
    _Atomic uint64_t shadowed;
};

/* Counts one request, in the calling thread's stripe. */
void wr_causes_add(struct wr_causes *stripes, enum wr_cause cause, bool shadowed);
void wr_causes_sum(const struct wr_causes *stripes, uint64_t *ret_causes, uint64_t *ret_shadowed);

struct wr_shelf {
    struct wr_shelf *next;
    char name[WEIR_RULE_NAME_MAX + 1];
    struct wr_causes tallies[WR_STRIPES];
};

/* A table and what it was made for. */
struct wr_drawer {
    atomic_uint holders; /* rules of editions */
    weir_table *table;
    struct wr_budget *budget; /* NULL: it is this process's own; else the table is this node's part of it */
    const weir_allocator *allocator;
    weir_stack stack; /* in force */
    bool has_release; /* permits are in flight until released */
    wr_book_word key[WEIR_KEY_PARTS_MAX];
};

/* A rule as it was read. */
struct wr_edition_rule {
    struct wr_shelf *shelf;
    const struct wr_book_rule *written;
    struct wr_match match;
    weir_key key, parts[WEIR_KEY_PARTS_MAX];
    const weir_key *part_list[WEIR_KEY_PARTS_MAX];
    struct wr_span methods[WR_BOOK_METHODS_MAX];
    struct wr_glob paths[WR_BOOK_PATTERNS_MAX], hosts[WR_BOOK_PATTERNS_MAX];
    struct wr_header_pattern headers[WR_BOOK_PATTERNS_MAX];
    struct wr_word words[WR_LISTED_MAX]; /* keys that are listed: their number is the plan */
    size_t word_count;
    weir_rule rule;
    weir_stack stacks[1 + WR_BOOK_PLANS_MAX];
    struct wr_drawer *drawers[1 + WR_BOOK_PLANS_MAX];
    uint64_t max_keys; /* of each */
    weir_repository repository, plans[WR_PLAN_FIRST - 1 + WR_BOOK_PLANS_MAX];
};

struct wr_edition {
    atomic_uint holders; /* the book, holds and turns */
    const weir_allocator *allocator;
    struct wr_book_rule *written; /* `count`; what texts of the rules point to */
    uint32_t count;
    struct wr_edition_rule *rules;
    weir_counter *counter;
    unsigned wanted; /* WR_ASKED_… */
    unsigned exact;  /* weir_exact: what services tell apart */
    weir_key client; /* for the lists of networks */
    wr_book_word forwarded_header;
    wr_book_word secret;
    weir_network trusted[WR_BOOK_NETWORKS_MAX];
    struct wr_range allow[WR_BOOK_NETWORKS_MAX], deny[WR_BOOK_NETWORKS_MAX];
    size_t allow_count, deny_count;
    bool opens_on_error;
    bool has_shared; /* rules that other processes share */
    int64_t lease_ns, forget_ns;
};

struct wr_hold;

#define WR_ORIGINS_MAX 16
#define WR_ORIGIN_NONE UINT32_MAX /* of a hold that another daemon has made */

/* Those that are free are linked in a ring, so that finding one takes no search however few are left. */
struct wr_hold_slot {
    struct wr_hold *hold; /* NULL: free */
    uint32_t next, before;
};

/* Reservations and permits in flight. */
struct wr_holds {
    pthread_mutex_t lock;
    struct wr_hold_slot *slots; /* `max`, and one in which the ring begins */
    uint32_t max, count;
    uint32_t origins, counts[WR_ORIGINS_MAX]; /* of each origin, which has an equal part */
    struct wr_rng rng;
    _Atomic uint64_t expired;
};

struct wr_rulebook {
    const weir_clock *clock;
    const weir_allocator *allocator;
    _Atomic(struct wr_edition *) edition;
    struct wr_grace grace;
    pthread_mutex_t changing; /* one reload at a time */
    pthread_mutex_t saving;   /* one save at a time */
    void (*moment_now)(struct wr_moment *ret_moment);
    struct wr_shelf *shelves;
    size_t shelf_count;
    wr_book_word secret;
    struct wr_agency *agency; /* to the store; NULL: no rule is shared */
    struct wr_holds holds;
    struct wr_causes tallies[WR_STRIPES];
    _Atomic uint64_t reloads, reloads_failed, restored;
    _Atomic uint64_t waiting;
    atomic_bool is_copied; /* another book may have a copy of its keys */
};

/* ---- editions (edition.c) ---- */

/* Reads the settings, which it copies. Tables are taken over from `old` where they fit; it may be NULL. WEIR_E_INVAL
 * (the detail says what), WEIR_E_NOMEM, WEIR_E_SYSTEM. Changes nothing that `old` uses. */
int wr_edition_new(struct wr_rulebook *book, const struct wr_rulebook_settings *settings, const struct wr_edition *old,
                   struct wr_edition **ret_edition);

/* Puts the limits and bounds of the new edition in force in the tables that it took over. WEIR_E_NOMEM: all are as they
 * were. */
int wr_edition_enforce(const struct wr_edition *edition);

void wr_edition_hold(struct wr_edition *edition);
void wr_edition_drop(struct wr_edition *edition); /* the last one frees it */

/* NULL if there is none. */
const struct wr_edition_rule *wr_edition_find(const struct wr_edition *edition, const char *rule);

/* ---- tables (drawer.c) ---- */

/* What a drawer is for. */
struct wr_drawer_wish {
    const struct wr_book_rule *rule;
    const char *plan; /* NULL: the rule's own limits */
    const weir_stack *stack;
    uint64_t max_keys;
    int64_t forget_ns;
};

/* The one of `old` if it fits, or a new one; one holder more in either case. */
int wr_drawer_get(const struct wr_rulebook *book, const struct wr_drawer_wish *wish, struct wr_drawer *old,
                  struct wr_drawer **ret_drawer);
void wr_drawer_drop(struct wr_drawer *drawer); /* NULL is fine */

/* The one that a ruling is decided by; NULL: it is by a list. */
struct wr_drawer *wr_drawer_of(const struct wr_edition *edition, const weir_ruling *ruling);

weir_repository wr_drawer_repository(struct wr_drawer *drawer);

/* ---- limits that are shared (shared.c) ---- */

static inline bool wr_rule_is_shared(const struct wr_book_rule *rule)
{
    return rule->share.overshoot[0] != '\0';
}

/* Makes book->agency if a rule needs it, or sees that it is still the same. WEIR_E_INVAL, WEIR_E_NOMEM,
 * WEIR_E_SYSTEM. */
int wr_book_join(struct wr_rulebook *book, const struct wr_rulebook_settings *settings);

int wr_book_budget(const struct wr_rulebook *book, const struct wr_drawer_wish *wish, struct wr_budget **ret_budget);
bool wr_book_budget_is(const struct wr_rulebook *book, const struct wr_drawer_wish *wish,
                       const struct wr_budget *budget);

/* What a budget granted, for its settle: `place` is one more than the source, or 0 if that is not known any more. */
static inline weir_receipt wr_budget_receipt(const struct wr_share_told *told, uint32_t permits)
{
    return (weir_receipt){.at = told->charged_at, .permits = permits, .place = (uint32_t)told->source + 1};
}

/* Everybody and nobody. */
weir_repository wr_repository_open(void);
weir_repository wr_repository_shut(void);

/* ---- decisions (decide.c) ---- */

/* Nothing was asked yet. */
void wr_verdict_start(struct wr_verdict *verdict);

/* Refuses a request that took too many steps, the reason for an error of the counter: true, and the verdict is complete
 * and counted. */
bool wr_verdict_of_work(struct wr_rulebook *book, const struct wr_asked *asked, int error, struct wr_verdict *verdict);

/* Fills a verdict out of its admission; `error` is the counter's. */
void wr_verdict_conclude(const struct wr_edition *edition, int error, struct wr_verdict *verdict);

/* Counts it, at the book and at its rules: once for each request. */
void wr_verdict_count(struct wr_rulebook *book, const struct wr_edition *edition, const struct wr_verdict *verdict);

/* What ends a request before any rule is asked: true, and the verdict is complete and counted. */
bool wr_verdict_at_once(struct wr_rulebook *book, const struct wr_edition *edition, const weir_request *request,
                        struct wr_asked *ret_asked, struct wr_verdict *ret_verdict);

/* ---- holds (hold.c) ---- */

int wr_holds_init(struct wr_holds *ret_holds, uint32_t max, uint32_t origins, const weir_allocator *allocator);
void wr_holds_release(struct wr_rulebook *book);

/* Makes a hold of what an allowed verdict has taken, and sets verdict->hold. If that fails the permits are given back
 * and the verdict is FULL, or FAILED or FAILED_OPEN. */
void wr_hold_add(struct wr_rulebook *book, struct wr_edition *edition, int64_t lease_ns, struct wr_verdict *verdict);

/* Ends those whose lease is over. */
void wr_holds_expire(struct wr_rulebook *book);

#define WR_HOLD_BYTES_MAX (64 + WEIR_RULINGS_MAX * (2 * (WR_BOOK_WORD_MAX + 8) + 2 * WEIR_KEY_MAX + 16))

/* Lines of a state file (state.c) about the hold in a slot, if there is one: what it has of tables that `edition` has,
 * too. False: there are no more slots. */
bool wr_hold_append(struct wr_rulebook *book, const struct wr_edition *edition, uint32_t slot, int64_t now,
                    struct wr_buf *buf);

/* A hold of another daemon, under its number, of what was taken here in its name. False: there is no room for it. */
bool wr_hold_put(struct wr_rulebook *book, struct wr_edition *edition, uint64_t number, int64_t lease_ns,
                 const weir_admission *admission);

/* The drawer that a ruling was decided by; NULL: that of the keys that are listed. */
static inline struct wr_drawer *wr_ruling_drawer(const struct wr_edition *edition, const weir_ruling *ruling)
{
    if (ruling->plan == WR_PLAN_ALLOW || ruling->plan == WR_PLAN_DENY)
        return NULL;
    return edition->rules[ruling->rule].drawers[ruling->plan == WR_PLAN_OWN ? 0 : ruling->plan - WR_PLAN_FIRST + 1];
}

/* Whether a verdict took permits that only a release ends. */
bool wr_verdict_in_flight(const struct wr_edition *edition, const struct wr_verdict *verdict);

/* Enters and leaves a part that reads the book's edition. */
static inline struct wr_edition *wr_book_enter(struct wr_rulebook *book, struct wr_grace_pass *ret_pass)
{
    *ret_pass = wr_grace_enter(&book->grace);
    return atomic_load(&book->edition);
}

/* The edition in force, to be dropped: for what takes longer than a decision. */
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
