/* SPDX-License-Identifier: MIT */
/* limit.h - rules, decisions, and limiters for one stream of requests.
 *
 * A weir_limit is a rule ("100 at once, 10 a second"). A weir_limiter applies one or several rules
 * to one stream of requests. For one stream per user, address or route see table.h, which most
 * servers need.
 *
 *     weir_limit limit;
 *     weir_limiter *limiter;
 *     weir_decision decision;
 *
 *     weir_limit_token_bucket(&limit, 100, 10, WEIR_SECOND);
 *     weir_limiter_new(&limit, 1, NULL, &limiter);
 *     if (weir_limiter_try(limiter, 1, &decision) == 0 && decision.verdict == WEIR_GO)
 *         serve();
 *
 * Which rule?
 *     token bucket     a mean rate, with bursts up to the capacity; the usual choice
 *     fixed window     a quota per window; around a boundary, twice the quota may pass
 *     sliding window   a quota over the last window, estimated from two counters
 *     sliding log      the same, exact, at 8 bytes per permit
 *     leaky bucket     evenly spaced starts, no burst; waiters queue up to the capacity
 *     concurrency      at most N in flight; each granted permit must be released
 *
 * Which function?
 *     try              decides without waiting; a refusal has the time after which to try again
 *     acquire          blocks until the request may start; waiters are granted in order
 *     enqueue          the same for an event loop
 *     reserve, settle  take an estimate now, and correct it to the real cost later
 *
 * Several rules in one limiter ("10 a second and 1000 an hour") are checked together: all of them
 * grant, or nothing is charged.
 *
 * Exact: permits are integers, and a rate is a count per period whose remainder is never dropped. A
 * clock that stands still or goes back only delays requests.
 *
 * Threads: weir_limiter and weir_cancel may be used from any thread. weir_limit is a plain value.
 * The weir_stack functions at the end are pure: no clock, no lock, no allocation. Permits belong to
 * the limiter, not to the thread that took them. After fork() a child may use the objects that it
 * creates itself, but none that were created before.
 */
#ifndef WEIR_LIMIT_H
#define WEIR_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/error.h>
#include <weir/memory.h>
#include <weir/time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- decisions ------------------------------------------------------------------------------- */

typedef enum weir_verdict {
    WEIR_GO,   /* granted and charged */
    WEIR_WAIT, /* not now: try again after wait_ns */
    WEIR_DENY, /* never: more permits than the limit holds; wait_ns is WEIR_UNTIL_RELEASE */
} weir_verdict;

/* The reasons why a request has to wait: the same in decisions, logs, metrics and on dashboards. */
#define WEIR_REASONS(X)                                                                           \
    X(WEIR_REASON_NONE, "none")                         /* nothing holds the request */           \
    X(WEIR_REASON_PACE, "pace")                         /* time between two starts */             \
    X(WEIR_REASON_TOKENS, "tokens")                     /* a bucket or window is used up */       \
    X(WEIR_REASON_ROBOTS_DELAY, "robots_delay")         /* Crawl-delay of robots.txt */           \
    X(WEIR_REASON_RETRY_AFTER, "retry_after")           /* the server named a time */             \
    X(WEIR_REASON_RATE_LIMIT_RESET, "rate_limit_reset") /* the server's quota is used up */       \
    X(WEIR_REASON_BREAKER, "breaker")                   /* the circuit breaker is open */         \
    X(WEIR_REASON_CONCURRENCY, "concurrency")           /* too many in flight */                  \
    X(WEIR_REASON_ROBOTS, "robots")                     /* robots.txt is not known yet */         \
    X(WEIR_REASON_RETRY, "retry")                       /* back-off after a failure */            \
    X(WEIR_REASON_JOB_LIMIT, "job_limit")               /* the job's own limits */                \
    X(WEIR_REASON_PAUSED, "paused")                     /* paused by a user */                    \
    X(WEIR_REASON_GLOBAL, "global")                     /* a limit over all hosts */              \
    X(WEIR_REASON_SHARE, "share")                       /* another process has the shared gate */ \
    X(WEIR_REASON_QUEUE, "queue")                       /* other callers wait before it */

typedef enum weir_reason {
#define X(reason, name) reason,
    WEIR_REASONS(X)
#undef X
} weir_reason;

/* Returns the name of a reason: "tokens", "concurrency", ...; "none" for an unknown number. */
WEIR_API const char *weir_reason_name(weir_reason reason);

#define WEIR_UNTIL_RELEASE INT64_MAX /* wait_ns: no time changes the decision; do not add to it */

typedef struct weir_decision {
    weir_verdict verdict;
    weir_reason reason; /* reason for the wait; WEIR_REASON_NONE with WEIR_GO */
    /* Time until the decision may change; 0 with WEIR_GO; WEIR_UNTIL_RELEASE if only a release, or
     * nothing, can change it. */
    int64_t wait_ns;
} weir_decision;

/* The permits that a limit has left, for people and for response headers. */
typedef struct weir_quota {
    uint32_t limit;     /* most permits that can be granted at once or in a window */
    uint32_t remaining; /* permits that would be granted now */
    int64_t reset_ns;   /* time until `remaining` is `limit` again, without further requests */
    int64_t period_ns;  /* time in which `limit` permits come back; 0 for concurrency */
} weir_quota;

/* ---- rules ----------------------------------------------------------------------------------- */

#define WEIR_PERMITS_MAX UINT32_MAX /* most permits of a capacity, a refill and a request */
#define WEIR_LOG_MAX 65536          /* most permits of a sliding log, at 8 bytes each */
#define WEIR_STACK_MAX 8            /* most rules in one limiter */
#define WEIR_QUEUE_MAX 1000000      /* most waiters in one queue */

struct weir_algorithm;

/* One rule. Create it with one of the functions below. Its fields may be read, but not changed; to
 * change a rule, create a new one. */
typedef struct weir_limit {
    const struct weir_algorithm *algorithm;
    uint32_t permits;   /* capacity, quota of the window, or most in flight */
    uint32_t refill;    /* token bucket: permits that come back per period */
    int64_t period_ns;  /* refill period, window, or leak interval; 0 for concurrency */
    uint32_t initial;   /* token bucket: permits at the beginning */
    uint32_t queue_max; /* most waiters in acquire and enqueue */
    const void *params; /* parameters of your own algorithm */
    /* Derived: the time that one permit and a full bucket cost, as whole ns and a remainder in
     * 1/refill ns. */
    int64_t cost_ns, full_ns;
    uint32_t cost_rem, full_rem;
} weir_limit;

/* Each function returns 0, or WEIR_E_INVAL without changing *ret_limit. Every count is at least 1,
 * every period is 1 ns to WEIR_DURATION_MAX, and a bucket must fill within WEIR_DURATION_MAX. */

/* Limits to a mean rate of `refill` permits per `period_ns`, which come back continuously, with
 * bursts up to `capacity`. The bucket starts full. */
WEIR_API int weir_limit_token_bucket(weir_limit *ret_limit, uint32_t capacity, uint32_t refill, int64_t period_ns);

/* Does the same, but all `refill` permits come back at once at the end of each period. The bucket
 * starts with `initial` permits, at most its capacity. */
WEIR_API int weir_limit_stepped_bucket(weir_limit *ret_limit, uint32_t capacity, uint32_t refill, int64_t period_ns,
                                       uint32_t initial);

/* Limits to `permits` per window. Windows follow each other from the first request on, without
 * drift. */
WEIR_API int weir_limit_fixed_window(weir_limit *ret_limit, uint32_t permits, int64_t window_ns);

/* Limits to a quota over the last window, estimated from two counters: grants a permit while
 * previous * (1 - elapsed/window) + current < permits. */
WEIR_API int weir_limit_sliding_window(weir_limit *ret_limit, uint32_t permits, int64_t window_ns);

/* Limits to `permits` (at most WEIR_LOG_MAX) in any half-open window. */
WEIR_API int weir_limit_sliding_log(weir_limit *ret_limit, uint32_t permits, int64_t window_ns);

/* Allows one start per `interval_ns`. At most `capacity` callers wait; further ones are refused at
 * once. The permits of one request, also at most `capacity`, start together, and the next start
 * waits for all their intervals. */
WEIR_API int weir_limit_leaky_bucket(weir_limit *ret_limit, uint32_t capacity, int64_t interval_ns);

/* Allows at most `permits` in flight. Every granted permit must be released. */
WEIR_API int weir_limit_concurrency(weir_limit *ret_limit, uint32_t permits);

/* Creates a rule with your own algorithm (see weir_algorithm below). `params` must outlive every
 * object that uses the rule. `period_ns` may be 0. */
WEIR_API int weir_limit_custom(weir_limit *ret_limit, const struct weir_algorithm *algorithm, uint32_t permits,
                               int64_t period_ns, const void *params);

/* Parses a limit as weir.yaml has it; a text without an algorithm is a token bucket:
 *
 *     10/s    100/min burst=20    1000/h sliding_window    concurrent=20
 *
 * Algorithms: token_bucket, fixed_window, sliding_window, sliding_log, leaky_bucket. Periods: s, m,
 * h, d, ms, us, ns, also sec, min, hr, and multiples such as 10s. Returns 0 or WEIR_E_INVAL. */
WEIR_API int weir_limit_parse(const char *text, weir_limit *ret_limit);

#define WEIR_LIMIT_TEXT_MAX 64 /* enough bytes for the text of any limit, with its NUL */

/* Writes a limit as weir_limit_parse reads it, with a NUL; its length goes to *ret_bytes (may be
 * NULL). Returns 0; WEIR_E_SPACE; WEIR_E_INVAL for a stepped bucket and for algorithms of your
 * own, which have no text. */
WEIR_API int weir_limit_format(const weir_limit *limit, char *buffer, size_t buffer_bytes, size_t *ret_bytes);

/* Returns the name of the algorithm: "token_bucket", "fixed_window", "sliding_window",
 * "sliding_log", "leaky_bucket", "concurrency", or the name of your own. */
WEIR_API const char *weir_limit_name(const weir_limit *limit);

/* ---- limiters -------------------------------------------------------------------------------- */

typedef struct weir_limiter weir_limiter;
typedef struct weir_cancel weir_cancel;
typedef struct weir_ticket weir_ticket;

/* Fill with weir_limiter_options_init, then change what you need. */
typedef struct weir_limiter_options {
    size_t size;                     /* size of this structure */
    const weir_clock *clock;         /* NULL: weir_clock_fast() */
    const weir_allocator *allocator; /* NULL: the system's allocator */
} weir_limiter_options;

typedef struct weir_limiter_stats {
    uint64_t acquired;    /* permits granted */
    uint64_t rejected;    /* permits refused: by try, or by an acquire that failed */
    uint32_t current;     /* permits that would be granted now */
    uint32_t max;         /* most permits that can be granted */
    uint32_t queue_depth; /* callers that wait */
} weir_limiter_stats;

/* A receipt for permits that were taken. With it they can be given back. All zero: nothing was
 * taken. */
typedef struct weir_receipt {
    int64_t at;                     /* instant at which the permits were taken */
    uint32_t permits;               /* permits taken; 0 once settled */
    uint32_t place;                 /* for table.h: where the charge was made */
    uint32_t marks[WEIR_STACK_MAX]; /* marks of the algorithms, one per rule */
} weir_receipt;

/* Sets all options to their defaults. NULL is allowed. */
WEIR_API void weir_limiter_options_init(weir_limiter_options *ret_options);

/* Creates a limiter with `count` rules (1 to WEIR_STACK_MAX). The rules are copied. `options` may
 * be NULL. WEIR_E_INVAL, WEIR_E_NOMEM. */
WEIR_API int weir_limiter_new(const weir_limit *limits, size_t count, const weir_limiter_options *options,
                              weir_limiter **ret_limiter);

/* Takes `permits` if all rules grant them now and no caller waits; never blocks. Returns 0 with the
 * decision, or WEIR_E_INVAL or WEIR_E_CLOSED. */
WEIR_API int weir_limiter_try(weir_limiter *limiter, uint32_t permits, weir_decision *ret_decision);

/* Takes `permits`, waiting for at most `timeout_ns`: 0 to WEIR_DURATION_MAX, or WEIR_FOREVER for no
 * timeout. With 0 it acts as try; it does not pass other waiters. Waiters are granted in order. The
 * call waits until the timeout even if the wait is known to be longer. Returns 0 only if the
 * permits were granted. Otherwise nothing was taken: WEIR_E_TIMEOUT, WEIR_E_CANCELLED,
 * WEIR_E_CLOSED, WEIR_E_FULL, WEIR_E_NEVER, WEIR_E_NOMEM, WEIR_E_SYSTEM, WEIR_E_INVAL. `cancel`,
 * `ret_receipt` and `ret_decision` may be NULL. The receipt is filled if the call is granted. After
 * a failure the decision has the reason and the remaining wait. It is WEIR_WAIT with
 * WEIR_REASON_NONE if no rule holds the request, or if the rules could not be asked. Only
 * WEIR_E_INVAL does not change it. */
WEIR_API int weir_limiter_acquire(weir_limiter *limiter, uint32_t permits, int64_t timeout_ns, weir_cancel *cancel,
                                  weir_receipt *ret_receipt, weir_decision *ret_decision);

/* Does the same as try, and fills the receipt if granted. `ret_receipt` may be NULL. */
WEIR_API int weir_limiter_reserve(weir_limiter *limiter, uint32_t permits, weir_receipt *ret_receipt,
                                  weir_decision *ret_decision);

/* Ends a reservation: `used` permits were really used. If it is less than reserved, the rest is
 * given back. If it is more, the difference is charged, whatever the limit says. 0 cancels the
 * reservation. Gives back exactly the permits that were taken and have not come back by themselves.
 * For concurrency the permits stay taken until released, except those given back here. A receipt
 * settles once; settling it again changes nothing. WEIR_E_INVAL, WEIR_E_CLOSED. */
WEIR_API int weir_limiter_settle(weir_limiter *limiter, weir_receipt *receipt, uint32_t used);

/* Ends `permits` in flight. It changes only concurrency limits, and does nothing if no permit is in
 * flight. WEIR_E_INVAL, WEIR_E_CLOSED. */
WEIR_API int weir_limiter_release(weir_limiter *limiter, uint32_t permits);

/* Replaces the rules at once. The new rules must have the same algorithms in the same order. Used
 * permits stay used: the permits left are carried over, but never more than the new rule holds.
 * WEIR_E_INVAL (also if the algorithms differ), WEIR_E_NOMEM, WEIR_E_CLOSED: the old rules stay in
 * force. */
WEIR_API int weir_limiter_change(weir_limiter *limiter, const weir_limit *limits, size_t count);

/* Returns the quota of the strictest rule. WEIR_E_INVAL, WEIR_E_CLOSED. */
WEIR_API int weir_limiter_peek(weir_limiter *limiter, weir_quota *ret_quota);

/* Returns the counters of the limiter. WEIR_E_INVAL, WEIR_E_CLOSED. */
WEIR_API int weir_limiter_stats_get(weir_limiter *limiter, weir_limiter_stats *ret_stats);

/* Fails all waiters and all later calls with WEIR_E_CLOSED. May be called repeatedly. */
WEIR_API void weir_limiter_close(weir_limiter *limiter);

/* Closes the limiter, and frees it after the last waiter has left. NULL is allowed. */
WEIR_API void weir_limiter_free(weir_limiter *limiter);

/* ---- cancellation: one token for any number of waiting calls --------------------------------- */

WEIR_API int weir_cancel_new(const weir_allocator *allocator, weir_cancel **ret_cancel);
/* Ends every acquire that waits with this token, and every later one, with WEIR_E_CANCELLED. */
WEIR_API void weir_cancel_fire(weir_cancel *cancel);
/* Frees a token. No call may be using it. NULL is allowed. */
WEIR_API void weir_cancel_free(weir_cancel *cancel);

/* ---- event loops: wait in the queue without a thread ----------------------------------------- */

/* Called when a poll of the ticket may succeed: from the thread that caused it, with no lock held,
 * and never from within another wake. Usually it just wakes the loop (uv_async_send, eventfd). It
 * may call weir, and may free its own ticket. It must not free another ticket, whose wake may be
 * running elsewhere: that could block forever. */
typedef void weir_wake(void *context);

/* Enters the queue for `permits`, until `timeout_ns` has passed. Call weir_ticket_poll at once, and
 * then when it says. The errors are those of weir_limiter_acquire. After an error, `wake` is never
 * called. */
WEIR_API int weir_limiter_enqueue(weir_limiter *limiter, uint32_t permits, int64_t timeout_ns, weir_wake *wake,
                                  void *context, weir_ticket **ret_ticket);

/* Returns 0 with WEIR_GO if the permits are granted. Returns 0 with WEIR_WAIT if not: poll again
 * after wait_ns or when woken, whichever is first. WEIR_E_TIMEOUT, WEIR_E_CLOSED, or WEIR_E_NEVER
 * (the rules were changed to fewer permits than it needs): it will never be granted. A granted
 * ticket stays granted. Poll on time, because later waiters wait for this ticket. */
WEIR_API int weir_ticket_poll(weir_ticket *ticket, weir_decision *ret_decision);

/* Returns the receipt of a granted ticket, always the same one: settle it once. WEIR_E_INVAL unless
 * granted. */
WEIR_API int weir_ticket_receipt(const weir_ticket *ticket, weir_receipt *ret_receipt);

/* Leaves the queue. Granted permits stay taken. When it returns, `wake` is not running, unless
 * `wake` itself frees the ticket, and will not be called again. NULL is allowed. */
WEIR_API void weir_ticket_free(weir_ticket *ticket);

/* ---- your own algorithms --------------------------------------------------------------------- */

/* A set of pure functions over a rule and a state of fixed size. Your algorithm works wherever
 * those of weir do: in limiters, tables, stacks and queues. `now` may stand still or go back
 * between calls; the functions must not grant more then. `permits` is at least 1, and in `ask` at
 * most limit->permits. `take`, `give` and `release` may get more, through settle or weir_stack_take
 * (an overcharge). */
typedef struct weir_algorithm {
    size_t size; /* size of this structure */
    const char *name;
    weir_reason reason; /* reason of a refusal */
    /* Returns the bytes of state (at most 1 MiB), which is aligned to 8. */
    size_t (*state_bytes)(const weir_limit *limit);
    /* Turns zeroed memory into a new state. Also called instead of `carry`, if that is NULL. */
    void (*start)(const weir_limit *limit, void *state, int64_t now);
    /* Returns 0 or less if the permits may be taken now. Otherwise returns the wait in ns, or
     * WEIR_UNTIL_RELEASE. */
    int64_t (*ask)(const weir_limit *limit, const void *state, int64_t now, uint32_t permits);
    /* Charges permits, whether granted or not. Returns a mark for `give`. */
    uint32_t (*take)(const weir_limit *limit, void *state, int64_t now, uint32_t permits);
    /* Gives back `permits` of those taken at `at` with `mark`, unless they came back by
     * themselves. */
    void (*give)(const weir_limit *limit, void *state, int64_t now, int64_t at, uint32_t mark, uint32_t permits);
    /* Ends a request. NULL: releases do not matter. */
    void (*release)(const weir_limit *limit, void *state, uint32_t permits);
    void (*peek)(const weir_limit *limit, const void *state, int64_t now, weir_quota *ret_quota);
    /* Returns whether the state decides as a new one would, so that it may be forgotten. */
    bool (*fresh)(const weir_limit *limit, const void *state, int64_t now);
    /* Fills the zeroed `to_state` with the permits that `from_state` has used. NULL: `start` is
     * called. */
    void (*carry)(const weir_limit *from, const void *from_state, const weir_limit *to, void *to_state, int64_t now);
    /* Returns the current reason after a refusal, if there are several bounds. NULL: `reason`. */
    weir_reason (*why)(const weir_limit *limit, const void *state, int64_t now);
    /* Returns 0 after a refusal if waiting may help, or the WEIR_E_ code with which acquire and
     * tickets fail. NULL: always 0. */
    int (*give_up)(const weir_limit *limit, const void *state, int64_t now);
} weir_algorithm;

/* ---- the pure core --------------------------------------------------------------------------- */

/* Rules that are checked together, and the offsets of their states. */
typedef struct weir_stack {
    uint32_t count;
    uint32_t state_bytes;
    uint32_t offsets[WEIR_STACK_MAX];
    weir_limit limits[WEIR_STACK_MAX];
} weir_stack;

/* Fills a stack with 1 to WEIR_STACK_MAX rules. The caller provides state_bytes of zeroed memory
 * aligned to 8. WEIR_E_INVAL if a rule or their number is invalid. */
WEIR_API int weir_stack_init(weir_stack *ret_stack, const weir_limit *limits, size_t count);

WEIR_API void weir_stack_start(const weir_stack *stack, void *state, int64_t now);

/* Returns the decision for a request now; changes nothing. */
WEIR_API weir_decision weir_stack_ask(const weir_stack *stack, const void *state, int64_t now, uint32_t permits);

/* Charges all rules, whether they grant or not. `ret_receipt` may be NULL. */
WEIR_API void weir_stack_take(const weir_stack *stack, void *state, int64_t now, uint32_t permits,
                              weir_receipt *ret_receipt);

/* Asks, and takes if granted. `ret_receipt` may be NULL. */
WEIR_API weir_decision weir_stack_try(const weir_stack *stack, void *state, int64_t now, uint32_t permits,
                                      weir_receipt *ret_receipt);

WEIR_API void weir_stack_settle(const weir_stack *stack, void *state, int64_t now, weir_receipt *receipt,
                                uint32_t used);
WEIR_API void weir_stack_release(const weir_stack *stack, void *state, uint32_t permits);
/* Returns the quota of the rule with the smallest share left. */
WEIR_API void weir_stack_peek(const weir_stack *stack, const void *state, int64_t now, weir_quota *ret_quota);
WEIR_API bool weir_stack_fresh(const weir_stack *stack, const void *state, int64_t now);
/* Fills the zeroed `to_state` with the permits that `from_state` has used. WEIR_E_INVAL unless both
 * have the same algorithms in the same order. */
WEIR_API int weir_stack_carry(const weir_stack *from, const void *from_state, const weir_stack *to, void *to_state,
                              int64_t now);

#ifdef __cplusplus
}
#endif
#endif
