/* SPDX-License-Identifier: MIT */
/* rules.h - the rules of a daemon, which decide about requests and can be replaced while it
 * runs.
 *
 *     struct wr_rules *book;
 *     struct wr_verdict verdict;
 *
 *     wr_rules_new(settings, NULL, &book, why, sizeof why);
 *     wr_rules_try(book, &request, &verdict);
 *     if (!verdict.allowed)
 *         reply(verdict.status, fields of &verdict.admission);
 *
 * A rule says which requests it applies to (method, path, host, headers), which part of them is the
 * key, and the limits of each key. With `match: first` the first matching rule decides; with `all`
 * every matching rule must grant. Shadow rules count and charge, but never refuse and never end the
 * search. A request that matches no rule is allowed.
 *
 *     try            decides at once
 *     reserve        like try; later `commit` the real cost, or `cancel`
 *     enqueue        waits in a queue, for an event loop
 *     end            reports the end of a request, for limits on requests in flight
 *
 * A grant that must be ended is a reservation, with a number (a hold in the API). There are at most
 * `holds` of them, and each ends with its lease. This bounds memory, and permits in flight cannot
 * stay taken forever.
 *
 * A reload replaces the rules for all threads at once, or changes nothing. Rules that keep their
 * name, key and kinds of limits keep the state of their keys.
 *
 * Threads: any may call all functions except new and free. `try` takes only a table's lock, and
 * allocates only for a new key. Reload and free wait for running decisions, which never block.
 */
#ifndef WR_SERVE_RULES_RULES_H
#define WR_SERVE_RULES_RULES_H

#include "cluster/limit/shared_limit.h"
#include "limiter/clock/moment.h"
#include "serve/rules/rules_settings.h"

#include <weir/admit.h>

struct wr_rules;
struct wr_pending_request;

struct wr_rules_options {
    const weir_clock *clock;         /* clock; default: weir_clock_fast() */
    const weir_allocator *allocator; /* allocator; default: the system's */
    /* for save and load; default: wr_moment_now */
    void (*moment_now)(struct wr_moment *ret_moment);
    /* sources of requests, each with an equal part of the reservations; default 1 */
    uint32_t origins;
};

/* Creates a rulebook; `options` may be NULL. Returns WEIR_E_INVAL, WEIR_E_NOMEM or WEIR_E_SYSTEM on
 * failure. Then `ret_why` (WR_CONFIG_WHY_BYTES) has the reason and a remedy, in one line. */
int wr_rules_new(const struct wr_rules_settings *settings, const struct wr_rules_options *options,
                 struct wr_rules **ret_book, char *ret_why, size_t why_bytes);

/* Checks whether a rulebook could be created from the settings. Errors are those of new. */
int wr_rules_check(const struct wr_rules_settings *settings, char *ret_why, size_t why_bytes);

/* Replaces the rules. On failure the old ones stay in force; errors are those of new. holds_max and
 * secret keep the values of wr_rules_new. */
int wr_rules_reload(struct wr_rules *book, const struct wr_rules_settings *settings, char *ret_why, size_t why_bytes);
/* Counts a reload as failed because the settings could not be read. */
void wr_rules_count_failed_reload(struct wr_rules *book);

/* All other calls must have returned and all pending requests must be freed before. Accepts
 * NULL. */
void wr_rules_free(struct wr_rules *book);

/* ---- verdicts -------------------------------------------------------------------------------- */

/* The cause of a decision. The names are labels of metrics. */
#define WR_CAUSES(X)                                                                \
    X(WR_CAUSE_GRANTED, "granted")         /* all matching rules grant */           \
    X(WR_CAUSE_UNMATCHED, "unmatched")     /* allowed: no rule matches */           \
    X(WR_CAUSE_ALLOW_LIST, "allow_list")   /* allowed; no limit is charged */       \
    X(WR_CAUSE_FAILED_OPEN, "failed_open") /* allowed by on_error: a rule failed */ \
    X(WR_CAUSE_LIMITED, "limited")         /* over a limit */                       \
    X(WR_CAUSE_DENY_LIST, "deny_list")     /* refused regardless of limits */       \
    X(WR_CAUSE_MALFORMED, "malformed")     /* no usable key, cost or path */        \
    X(WR_CAUSE_FAILED, "failed")           /* refused by on_error: a rule failed */ \
    X(WR_CAUSE_TIMED_OUT, "timed_out")     /* waited until the timeout */           \
    X(WR_CAUSE_FULL, "full")               /* too many waiters or reservations */

enum wr_cause {
#define X(cause, name) cause,
    WR_CAUSES(X)
#undef X
};
#define WR_CAUSE_COUNT (WR_CAUSE_FULL + 1)

const char *wr_cause_name(enum wr_cause cause);

/* The decision about a request. Large because of its keys: pass it by pointer. Its pointers stay
 * valid as long as the rulebook. */
struct wr_verdict {
    uint32_t origin; /* input: which of options.origins sends the request */
    bool allowed;
    enum wr_cause cause;
    bool shadowed;    /* a shadow rule would have refused the request */
    int status;       /* HTTP status: 200, 429, 403 (deny list), 400, 503 */
    const char *rule; /* name of the decisive rule; NULL if there was none */
    /* time until a retry may succeed; 0 if allowed; WEIR_UNTIL_RELEASE if unknown */
    int64_t retry_after_ns;
    uint64_t hold;            /* number of the reservation; 0 if there is none */
    weir_request_fault fault; /* why the request is malformed; with MALFORMED */
    /* the rulings, for weir_fields_format; count 0 if no rule was checked */
    weir_admission_result admission;
};

/* Makes the MALFORMED verdict for a request of which too little is known to check rules. */
void wr_rules_refuse_malformed(struct wr_rules *book, weir_request_fault fault, struct wr_verdict *ret_verdict);

/* Decides a request. Never blocks and never fails: internal errors become a verdict by on_error. If
 * a granting rule limits requests in flight, verdict.hold must be ended; otherwise it ends with its
 * lease. request->cost, unless 0, replaces the cost of each rule. */
void wr_rules_try(struct wr_rules *book, const weir_request *request, struct wr_verdict *ret_verdict);

/* Rules with `share` may have to ask their store. Then try, reserve and try_key fail as on_error
 * says. A caller that can wait uses try_now first. It returns false if a store must be asked:
 * nothing was charged or counted, the verdict is invalid, and a pending request must be enqueued to
 * ask it. */
bool wr_rules_try_now(struct wr_rules *book, const weir_request *request, struct wr_verdict *ret_verdict);
bool wr_rules_reserve_now(struct wr_rules *book, const weir_request *request, int64_t lease_ns,
                          struct wr_verdict *ret_verdict);
/* Returns WEIR_E_CLOSED where try_now returns false. */
int wr_rules_try_key_now(struct wr_rules *book, const char *rule, const char *key, size_t key_bytes, uint32_t cost,
                         struct wr_verdict *ret_verdict);

/* Decides like try. If the request is allowed and a rule was checked, makes a reservation for
 * `lease_ns`; 0: the lease of the settings. */
void wr_rules_reserve(struct wr_rules *book, const weir_request *request, int64_t lease_ns,
                      struct wr_verdict *ret_verdict);

/* Decides by one rule, given its name and a key; `cost` 0: the rule's cost. Ignores plan_header.
 * Returns WEIR_E_ABSENT if there is no such rule, WEIR_E_INVAL if the key is invalid. */
int wr_rules_try_key(struct wr_rules *book, const char *rule, const char *key, size_t key_bytes, uint32_t cost,
                     struct wr_verdict *ret_verdict);

/* Returns true if a peer is in `trusted`, so that its description of a request is believed. */
bool wr_rules_peer_is_trusted(struct wr_rules *book, struct wr_span peer);

/* ---- reservations ---------------------------------------------------------------------------- */

/* A commit charges at most this many times the limit, whatever `used` says. */
#define WR_COMMIT_LIMITS_MAX 100

/* Ends a reservation whose real cost was `used` permits; 0 cancels it. Returns WEIR_E_ABSENT if
 * there is no such reservation. */
int wr_reservation_commit(struct wr_rules *book, uint64_t hold, uint32_t used);

/* Cancels a reservation: returns all permits. Returns WEIR_E_ABSENT if there is none. */
int wr_reservation_cancel(struct wr_rules *book, uint64_t hold);

/* Ends a reservation; the permits stay charged, except those in flight. Returns WEIR_E_ABSENT. */
int wr_reservation_end(struct wr_rules *book, uint64_t hold);

/* ---- waiting in a queue ---------------------------------------------------------------------- */

/* Waits until all matching rules grant, for at most `timeout_ns`. WEIR_FOREVER sets no limit; 0
 * decides like try, but never overtakes waiters. `wake` (see weir_wake) is called when a poll may
 * succeed. Rules are waited for in order; permits of one are kept during the wait for the next.
 * Poll the pending request at once. Returns WEIR_E_NOMEM, or WEIR_E_INVAL for an invalid
 * timeout. */
int wr_rules_enqueue(struct wr_rules *book, const weir_request *request, int64_t timeout_ns, weir_wake *wake,
                     void *context, struct wr_pending_request **ret_pending);

/* Like try, reserve or try_key, but waits for the store of shared rules, and only for it.
 * `rules_request` selects the call. Returns WEIR_E_NOMEM, or WEIR_E_ABSENT or WEIR_E_INVAL as
 * try_key. */
struct wr_rules_request {
    const weir_request *request; /* the request to decide, unless rule and key are given */
    const char *rule, *key;      /* name of one rule, and a key */
    size_t key_bytes;
    uint32_t cost;    /* cost of the request, if a key is given; 0: the cost that the rule has */
    bool holds;       /* always makes a reservation, as reserve does */
    int64_t lease_ns; /* lease of the reservation; 0: that of the settings */
};
int wr_rules_enqueue_for_store(struct wr_rules *book, const struct wr_rules_request *rules_request, weir_wake *wake,
                               void *context, struct wr_pending_request **ret_pending);

/* Returns true when the request is decided; *ret_verdict is the decision. Later polls return the
 * same, without the hold. Returns false if the pending request must be polled again after
 * *ret_wait_ns, or earlier if it is woken; the verdict is then unchanged. */
bool wr_pending_request_poll(struct wr_pending_request *pending, struct wr_verdict *ret_verdict, int64_t *ret_wait_ns);

/* Leaves the queue as weir_ticket_free does, and returns what was granted but not reported by a
 * poll. Accepts NULL. */
void wr_pending_request_free(struct wr_pending_request *pending);

/* ---- inspection ------------------------------------------------------------------------------ */

#define WR_RULE_TEXT_BYTES 256

struct wr_rule_view {
    const char *name; /* name of the rule; valid as long as the rulebook */
    bool shadow;
    /* number of plans besides the rule's own limits */
    uint32_t plans;
    /* requests granted, or decided, by this rule */
    uint64_t causes[WR_CAUSE_COUNT];
    uint64_t shadowed;                                        /* requests refused in shadow mode */
    weir_table_stats table;                                   /* totals over the rule's plans */
    char limits[WR_RULE_LIMITS_MAX * (WR_RULE_WORD_MAX + 1)]; /* the limits as configured */
    bool is_shared;                                           /* rule shared between processes */
    struct wr_shared_limit_view share; /* totals over the rule's plans; bound and overshoot: maximum */
    /* short descriptions; cut off if too long */
    char match[WR_RULE_TEXT_BYTES], key[WR_RULE_TEXT_BYTES];
};

/* Figures of the whole rulebook. `causes` includes requests that ended before any rule was checked
 * (UNMATCHED, ALLOW_LIST, DENY_LIST, MALFORMED, FULL ...). */
struct wr_rules_view {
    uint32_t rules;                  /* rules in force */
    uint64_t causes[WR_CAUSE_COUNT]; /* all requests, by cause */
    uint64_t shadowed;
    uint64_t reloads, reloads_failed;
    uint64_t holds, holds_max, holds_expired;
    uint64_t waiting;  /* pending requests that are not decided yet */
    uint64_t restored; /* keys restored by wr_rules_load_keys */
    bool has_store;    /* a rule is shared; `store` is valid */
    struct wr_redis_client_view store;
};

void wr_rules_view_get(struct wr_rules *book, struct wr_rules_view *ret_view);

/* Describes the rule with this index. Returns WEIR_E_ABSENT if there are fewer rules. */
int wr_rule_view_get(struct wr_rules *book, uint32_t index, struct wr_rule_view *ret_view);

/* Returns the first `most` keys of a rule in this order, over all plans. Free them with
 * wr_rules_top_keys_free. Returns WEIR_E_ABSENT, WEIR_E_NOMEM or WEIR_E_INVAL on failure. Keys are
 * untrusted input: escape them. */
int wr_rules_top_keys(struct wr_rules *book, const char *rule, weir_table_order order, size_t most,
                      weir_table_entry **ret_entries, size_t *ret_count);
void wr_rules_top_keys_free(struct wr_rules *book, weir_table_entry *entries);

/* Removes a key of a rule, in all its plans. Returns WEIR_E_ABSENT if there is no such rule or key;
 * WEIR_E_CLOSED if the rule is shared and the store is down. */
int wr_rules_reset_key(struct wr_rules *book, const char *rule, const char *key, size_t key_bytes);

/* Periodic work, to be called about once a second: ends reservations with an expired lease, and
 * removes keys that have their full limit. */
void wr_rules_tick(struct wr_rules *book);

/* ---- restart and handover -------------------------------------------------------------------- */

/* Checks, as far as possible beforehand, that a state file can be written and read at `path`.
 * Returns WEIR_E_SYSTEM with `ret_why` otherwise. */
int wr_rules_check_state_path(const char *path, char *ret_why, size_t why_bytes);

/* Writes the keys with used limits to a file that only its owner may read. Replaces the old file
 * atomically. Returns WEIR_E_SYSTEM or WEIR_E_NOMEM with `ret_why`. */
int wr_rules_save_keys(struct wr_rules *book, const char *path, char *ret_why, size_t why_bytes);

/* Returns the secret under which token: keys are digests. */
const char *wr_rules_secret(const struct wr_rules *book);

/* Takes over the secret of a previous rulebook, unless the settings have one; otherwise its token:
 * keys would not be found. Returns WEIR_E_NOMEM on failure; then only the secret has changed. */
int wr_rules_adopt_secret(struct wr_rules *book, const struct wr_rules_settings *settings, const char *secret);

/* Writes the keys for a rulebook that continues after this one, in any number of parts, each loaded
 * before the next is written. The first part has all keys; each later one has those changed since
 * the part before. So the last part, during which no process may decide, is short. It includes the
 * reservations, which keep their numbers. */
struct wr_rules_copy {
    bool has_begun;
    int64_t at; /* start time of the previous part */
};

int wr_rules_copy(struct wr_rules *book, struct wr_rules_copy *copy, bool is_last, const char *path, char *ret_why,
                  size_t why_bytes);

/* Restores the keys of a state file. Skips keys of changed rules. Whatever the file says, a key is
 * at worst one that has just used up its limit. A missing file is not an error. Returns
 * WEIR_E_INVAL if the file is invalid (nothing is restored), WEIR_E_SYSTEM or WEIR_E_NOMEM. */
int wr_rules_load_keys(struct wr_rules *book, const char *path, char *ret_why, size_t why_bytes);

#endif
