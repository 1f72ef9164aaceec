/* SPDX-License-Identifier: MIT */
/* rulebook.h - the rules of a daemon: who may come in, read from a file and changed while it runs.
 *
 *     struct wr_rulebook *book;
 *     struct wr_verdict verdict;
 *
 *     wr_rulebook_new(settings, NULL, &book, why, sizeof why);
 *     wr_rulebook_try(book, &request, &verdict);
 *     if (!verdict.allowed)
 *         reply(verdict.status, fields of &verdict.admission);
 *
 * A rule says which requests it is for (method, path, host, headers), what of them is the key, and which limits each
 * key has. `match: first`: the first rule that fits decides; `all`: all that fit must grant. Rules in shadow count and
 * charge, but refuse nobody and end no search. Requests that no rule fits are allowed.
 *
 * Which verb?
 *     try            now or not at all
 *     reserve        the same, to be settled later: `commit` what it cost, or `cancel`
 *     enqueue        stand in line, from an event loop
 *     end            the request has ended (for limits on requests in flight)
 *
 * What was granted and must be ended is a *hold*, with a number. There are at most `holds` of them, and each ends by
 * itself when its lease is over: so nobody can keep permits in flight for ever, and the book is bounded.
 *
 * A reload puts other rules in force for all threads at once, or changes nothing. Rules that keep their name, key and
 * kinds of limits keep what they know of their callers.
 *
 * Threads: every function but new and free may be called from any thread. `try` takes no lock but a table's, and
 * allocates only where a key is new. Reload and free wait for decisions that are under way, which never block.
 */
#ifndef WR_SHELL_RULEBOOK_RULEBOOK_H
#define WR_SHELL_RULEBOOK_RULEBOOK_H

#include "shell/clock/moment.h"
#include "shell/rulebook/settings.h"
#include "shell/share/budget.h"

#include <weir/admit.h>

struct wr_rulebook;
struct wr_turn;

struct wr_rulebook_options {
    const weir_clock *clock;                          /* default: weir_clock_fast() */
    const weir_allocator *allocator;                  /* default: the system's */
    void (*moment_now)(struct wr_moment *ret_moment); /* for save and load; default: wr_moment_now */
    uint32_t origins; /* places that requests come from, each with an equal part of the holds; default 1 */
};

/* `options` may be NULL. WEIR_E_INVAL, WEIR_E_NOMEM, WEIR_E_SYSTEM; `ret_why` (WR_CONFIG_WHY_BYTES) says what is wrong
 * and what would be right, in one line. */
int wr_rulebook_new(const struct wr_rulebook_settings *settings, const struct wr_rulebook_options *options,
                    struct wr_rulebook **ret_book, char *ret_why, size_t why_bytes);

/* Whether a book could be made of these settings; makes none. */
int wr_rulebook_check(const struct wr_rulebook_settings *settings, char *ret_why, size_t why_bytes);

/* Errors as new; then the old rules stay in force. holds_max and secret stay as they were when the book was made. */
int wr_rulebook_reload(struct wr_rulebook *book, const struct wr_rulebook_settings *settings, char *ret_why,
                       size_t why_bytes);
/* There was to be a reload, but the settings could not even be read: it counts as one that failed. */
void wr_rulebook_unread(struct wr_rulebook *book);

/* No other call may be using it, and all turns must be freed. NULL is fine. */
void wr_rulebook_free(struct wr_rulebook *book);

/* ---- verdicts ------------------------------------------------------------------------------------------ */

/* Why a request is allowed or not. The names are labels of metrics. */
#define WR_CAUSES(X)                                                                       \
    X(WR_CAUSE_GRANTED, "granted")         /* all rules that fit grant it */               \
    X(WR_CAUSE_UNMATCHED, "unmatched")     /* no rule fits: allowed */                     \
    X(WR_CAUSE_ALLOW_LIST, "allow_list")   /* allowed, nothing charged */                  \
    X(WR_CAUSE_FAILED_OPEN, "failed_open") /* a rule failed, and on_error says: allowed */ \
    X(WR_CAUSE_LIMITED, "limited")         /* over the limit */                            \
    X(WR_CAUSE_DENY_LIST, "deny_list")     /* refused, whatever the limits */              \
    X(WR_CAUSE_MALFORMED, "malformed")     /* no usable key, cost or path */               \
    X(WR_CAUSE_FAILED, "failed")           /* a rule failed, and on_error says: refused */ \
    X(WR_CAUSE_TIMED_OUT, "timed_out")     /* waited in vain */                            \
    X(WR_CAUSE_FULL, "full")               /* too many wait already, or there are too many holds */

enum wr_cause {
#define X(cause, name) cause,
    WR_CAUSES(X)
#undef X
};
#define WR_CAUSE_COUNT (WR_CAUSE_FULL + 1)

const char *wr_cause_name(enum wr_cause cause);

/* Large for the sake of its keys: pass it by pointer. Everything in it stays good as long as the book. */
struct wr_verdict {
    uint32_t origin; /* to be set before: which of options.origins asks */
    bool allowed;
    enum wr_cause cause;
    bool shadowed;            /* a rule in shadow would have refused it */
    int status;               /* that fits: 200, 429, 403 (deny list), 400, 503 */
    const char *rule;         /* the name of the decisive one; NULL if none was */
    int64_t retry_after_ns;   /* until coming again may help; 0 if allowed; WEIR_UNTIL_RELEASE if no time helps */
    uint64_t hold;            /* 0: there is nothing to end */
    weir_fault fault;         /* with MALFORMED */
    weir_admission admission; /* the rulings, for weir_fields_format and for quotas; count 0 if no rule was asked */
};

/* The verdict on a request that is not known well enough to be asked about: MALFORMED. */
void wr_rulebook_refuse(struct wr_rulebook *book, weir_fault fault, struct wr_verdict *ret_verdict);

/* Never blocks, never fails: what goes wrong inside is in the verdict, as on_error says. If a rule that granted has a
 * limit on requests in flight, verdict.hold must be ended (or ends with its lease). request->cost, where it is not 0,
 * is what each rule charges in place of its own. */
void wr_rulebook_try(struct wr_rulebook *book, const weir_request *request, struct wr_verdict *ret_verdict);

/* Some rules are shared with other processes (`share`), and their store may have to be asked. Then try, reserve and
 * try_key fail, as on_error says. Who can wait uses try_now first: false if a store must be asked; then nothing has
 * been charged or counted, and the verdict says nothing. A turn asks. */
bool wr_rulebook_try_now(struct wr_rulebook *book, const weir_request *request, struct wr_verdict *ret_verdict);
bool wr_rulebook_reserve_now(struct wr_rulebook *book, const weir_request *request, int64_t lease_ns,
                             struct wr_verdict *ret_verdict);
/* WEIR_E_CLOSED: as false of try_now. */
int wr_rulebook_try_key_now(struct wr_rulebook *book, const char *rule, const char *key, size_t key_bytes,
                            uint32_t cost, struct wr_verdict *ret_verdict);

/* The same with a hold, if it is allowed and any rule was asked. `lease_ns` 0: as the settings say. */
void wr_rulebook_reserve(struct wr_rulebook *book, const weir_request *request, int64_t lease_ns,
                         struct wr_verdict *ret_verdict);

/* One rule by its name and a key that you have already, as try does; `cost` 0: what the rule says. Plans by header are
 * not looked at. WEIR_E_ABSENT: there is no such rule. WEIR_E_INVAL: not a key. */
int wr_rulebook_try_key(struct wr_rulebook *book, const char *rule, const char *key, size_t key_bytes, uint32_t cost,
                        struct wr_verdict *ret_verdict);

/* Whether a peer is one of `trusted`, and so what it says of the request that it asks about is believed. */
bool wr_rulebook_trusts(struct wr_rulebook *book, struct wr_span peer);

/* ---- holds --------------------------------------------------------------------------------------------- */

/* At most so many times what the limit holds is charged, whatever `used` says. */
#define WR_COMMIT_LIMITS_MAX 100

/* What was reserved cost `used` permits really (0: nothing, as cancel), and the request has ended. WEIR_E_ABSENT: there
 * is no such hold (any more). */
int wr_rulebook_commit(struct wr_rulebook *book, uint64_t hold, uint32_t used);

/* It was not served after all: all is given back. WEIR_E_ABSENT. */
int wr_rulebook_cancel(struct wr_rulebook *book, uint64_t hold);

/* The request has ended; what it was charged stays. WEIR_E_ABSENT. */
int wr_rulebook_end(struct wr_rulebook *book, uint64_t hold);

/* ---- standing in line ---------------------------------------------------------------------------------- */

/* Stands in line until all rules that fit grant, for at most `timeout_ns` (WEIR_FOREVER: as long as it takes; 0: as
 * try, though not past others). `wake` is called as weir_wake says, when polling may have become worthwhile. Rules are
 * waited for in their order, and what one has granted is kept while the next is waited for. Poll the turn at once.
 * WEIR_E_NOMEM, WEIR_E_INVAL (the timeout). */
int wr_rulebook_enqueue(struct wr_rulebook *book, const weir_request *request, int64_t timeout_ns, weir_wake *wake,
                        void *context, struct wr_turn **ret_turn);

/* As enqueue, for one that does not wait for its permits, only for a store: what try, reserve and try_key are where
 * rules are shared. `wish` says which. WEIR_E_ABSENT, WEIR_E_INVAL: as try_key. */
struct wr_turn_wish {
    const weir_request *request; /* or: */
    const char *rule, *key;      /* one rule by its name and key */
    size_t key_bytes;
    uint32_t cost;    /* with a key */
    bool holds;       /* with a hold in any case, as reserve, */
    int64_t lease_ns; /* for so long */
};
int wr_rulebook_enqueue_wish(struct wr_rulebook *book, const struct wr_turn_wish *wish, weir_wake *wake, void *context,
                             struct wr_turn **ret_turn);

/* True: it is over, and *ret_verdict is the answer (again and again the same, but for the hold, which is told once).
 * False: poll again after *ret_wait_ns (from now) or when woken, whichever is first; the verdict is untouched. */
bool wr_turn_poll(struct wr_turn *turn, struct wr_verdict *ret_verdict, int64_t *ret_wait_ns);

/* Leaves the line, and gives back what was granted if no poll has told of it. As weir_ticket_free. NULL is fine. */
void wr_turn_free(struct wr_turn *turn);

/* ---- looking ------------------------------------------------------------------------------------------- */

#define WR_RULE_TEXT_BYTES 256

struct wr_rule_view {
    const char *name;                /* as long as the book */
    bool shadow;                     /* */
    uint32_t plans;                  /* besides the rule's own limits */
    uint64_t causes[WR_CAUSE_COUNT]; /* requests for which this rule was decisive, or that it granted */
    uint64_t shadowed;               /* would have been refused, but for the shadow */
    weir_table_stats table;          /* sums over its plans */
    char limits[WR_BOOK_LIMITS_MAX * (WR_BOOK_WORD_MAX + 1)]; /* as they were written */
    bool is_shared;                                           /* with other processes */
    struct wr_budget_view share; /* sums over its plans; bound and overshoot: the most of any */
    char match[WR_RULE_TEXT_BYTES], key[WR_RULE_TEXT_BYTES]; /* in short; what is too long is cut */
};

/* What the book counts besides: requests that ended before any rule was asked are in `causes` (UNMATCHED, ALLOW_LIST,
 * DENY_LIST, MALFORMED, FULL …). */
struct wr_rulebook_view {
    uint32_t rules;                  /* in force */
    uint64_t causes[WR_CAUSE_COUNT]; /* all requests */
    uint64_t shadowed;
    uint64_t reloads, reloads_failed;
    uint64_t holds, holds_max, holds_expired;
    uint64_t waiting;  /* turns that are not over */
    uint64_t restored; /* keys that wr_rulebook_load put back */
    bool has_store;    /* some rule is shared: */
    struct wr_agency_view store;
};

void wr_rulebook_view_get(struct wr_rulebook *book, struct wr_rulebook_view *ret_view);

/* The `index`-th rule in force. WEIR_E_ABSENT: there are not so many. */
int wr_rulebook_rule_get(struct wr_rulebook *book, uint32_t index, struct wr_rule_view *ret_view);

/* The first `most` keys of a rule, over all its plans; give them to wr_rulebook_top_free. WEIR_E_ABSENT, WEIR_E_NOMEM,
 * WEIR_E_INVAL. Keys are what strangers sent: escape them. */
int wr_rulebook_top(struct wr_rulebook *book, const char *rule, weir_table_order order, size_t most,
                    weir_table_entry **ret_entries, size_t *ret_count);
void wr_rulebook_top_free(struct wr_rulebook *book, weir_table_entry *entries);

/* Forgets a key of a rule, in all its plans. WEIR_E_ABSENT: no such rule or key. WEIR_E_CLOSED: other processes share
 * it, and their store is down. */
int wr_rulebook_reset(struct wr_rulebook *book, const char *rule, const char *key, size_t key_bytes);

/* To be called now and then (each second, say): ends holds whose lease is over and forgets keys that need no
 * remembering. */
void wr_rulebook_tick(struct wr_rulebook *book);

/* ---- over a restart ------------------------------------------------------------------------------------ */

/* Whether such a file could be written and read there, as far as can be seen beforehand. WEIR_E_SYSTEM with `ret_why`.
 */
int wr_rulebook_state_check(const char *path, char *ret_why, size_t why_bytes);

/* Writes the keys that constrain to a file that only its owner may read, in place of what was there: either all of it
 * or nothing. WEIR_E_SYSTEM, WEIR_E_NOMEM, with `ret_why`. */
int wr_rulebook_save(struct wr_rulebook *book, const char *path, char *ret_why, size_t why_bytes);

/* By which token: keys are digests. */
const char *wr_rulebook_secret(const struct wr_rulebook *book);

/* That of the book before, unless the settings have one: else its keys would not be found. WEIR_E_NOMEM, and then
 * nothing has changed but the secret. */
int wr_rulebook_take_secret(struct wr_rulebook *book, const struct wr_rulebook_settings *settings, const char *secret);

/* The same for a book that goes on where this one ends, in any number of parts, each to be loaded before the next: the
 * first has all keys, each further one those that have changed since the one before, so that the last, for which
 * nobody may decide any more, is short. That has the holds, too: what was taken here is ended there, by the same
 * number. */
struct wr_rulebook_copy {
    bool has_begun;
    int64_t at; /* when the part before was begun */
};

int wr_rulebook_copy(struct wr_rulebook *book, struct wr_rulebook_copy *copy, bool is_last, const char *path,
                     char *ret_why, size_t why_bytes);

/* Puts them back. What does not fit the rules any more is left out, and nothing in the file can make a key
 * worse off than one that has just used up its limit. A file that is not there is no error. WEIR_E_INVAL: it is not
 * such a file (nothing was put back). WEIR_E_SYSTEM, WEIR_E_NOMEM. */
int wr_rulebook_load(struct wr_rulebook *book, const char *path, char *ret_why, size_t why_bytes);

#endif
