/* SPDX-License-Identifier: MIT */
/* limit.h - may this go now?
 *
 * A weir_limit is a rule ("100 at once, 10 a second"); a weir_limiter applies one or several rules to one
 * stream of requests. For one stream per user, address or route see table.h, which most servers want.
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
 *     fixed window     a quota per window; twice the quota may pass around a boundary
 *     sliding window   a quota over the last window, estimated from two counters
 *     sliding log      the same, exact, at 8 bytes per permit
 *     leaky bucket     evenly spaced starts, no burst; waiters queue up to the capacity
 *     concurrency      so many at once; each must be released
 *
 * Which verb?
 *     try              now or not at all; the decision says how long to wait
 *     acquire          block until it may go, first come first served
 *     enqueue          the same for an event loop
 *     reserve, settle  take an estimate now, and settle what it really cost later
 *
 * Several rules in one limiter ("10 a second and 1000 an hour") are checked together: all grant, or nothing is
 * charged.
 *
 * Exact: permits are integers, a rate is a count per period whose remainder is never dropped, and a clock
 * that stands still or goes back only ever delays.
 *
 * Threads: weir_limiter and weir_cancel may be used from any thread. weir_limit is a plain value. The
 * weir_stack functions at the end are pure: no clock, no lock, no allocation. Permits belong to the limiter, not
 * to the thread that took them. After fork() a child may use what it makes itself, and nothing made before.
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

/* ---- decisions ---------------------------------------------------------------------------------------- */

typedef enum weir_verdict {
    WEIR_GO,   /* granted, and charged */
    WEIR_WAIT, /* not now: ask again after wait_ns */
    WEIR_DENY, /* never: more permits than the limit holds; wait_ns is WEIR_UNTIL_RELEASE */
} weir_verdict;

/* One vocabulary for what holds a request back: in decisions, logs, metrics and on screens. */
#define WEIR_REASONS(X)                                                                     \
    X(WEIR_REASON_NONE, "none")                         /* nothing does */                  \
    X(WEIR_REASON_PACE, "pace")                         /* the spacing between starts */    \
    X(WEIR_REASON_TOKENS, "tokens")                     /* a bucket or window is used up */ \
    X(WEIR_REASON_ROBOTS_DELAY, "robots_delay")         /* Crawl-delay */                   \
    X(WEIR_REASON_RETRY_AFTER, "retry_after")           /* the server named a time */       \
    X(WEIR_REASON_RATE_LIMIT_RESET, "rate_limit_reset") /* the server's quota is used up */ \
    X(WEIR_REASON_BREAKER, "breaker")                   /* the circuit breaker is open */   \
    X(WEIR_REASON_CONCURRENCY, "concurrency")           /* too many in flight */            \
    X(WEIR_REASON_ROBOTS, "robots")                     /* robots.txt is not known yet */   \
    X(WEIR_REASON_RETRY, "retry")                       /* backing off after a failure */   \
    X(WEIR_REASON_JOB_LIMIT, "job_limit")               /* the job's own limits */          \
    X(WEIR_REASON_PAUSED, "paused")                     /* somebody paused it */            \
    X(WEIR_REASON_GLOBAL, "global")                     /* a limit over everything */       \
    X(WEIR_REASON_SHARE, "share")                       /* another process has its turn */  \
    X(WEIR_REASON_QUEUE, "queue")                       /* others were here first */

typedef enum weir_reason {
#define X(reason, name) reason,
    WEIR_REASONS(X)
#undef X
} weir_reason;

/* "tokens", "concurrency", …; "none" for a number that is no reason. */
WEIR_API const char *weir_reason_name(weir_reason reason);

#define WEIR_UNTIL_RELEASE INT64_MAX /* wait_ns when no time can change the answer: do not add to it */

typedef struct weir_decision {
    weir_verdict verdict;
    weir_reason reason; /* what held; NONE with WEIR_GO */
    int64_t wait_ns; /* until the answer may change; 0 with WEIR_GO; WEIR_UNTIL_RELEASE if only a release, or nothing,
                        can change it */
} weir_decision;

/* What is left, for people and response headers. */
typedef struct weir_quota {
    uint32_t limit;     /* the most that can be granted at once or in a window */
    uint32_t remaining; /* what would be granted now */
    int64_t reset_ns;   /* until `remaining` is `limit` again if nothing more is asked */
    int64_t period_ns;  /* the time in which `limit` permits come back; 0 for concurrency */
} weir_quota;

/* ---- rules -------------------------------------------------------------------------------------------- */

#define WEIR_PERMITS_MAX UINT32_MAX /* of a capacity, a refill and a request */
#define WEIR_LOG_MAX 65536          /* permits of a sliding log, at 8 bytes each */
#define WEIR_STACK_MAX 8            /* rules in one limiter */
#define WEIR_QUEUE_MAX 1000000      /* waiters in one queue */

struct weir_algorithm;

/* One rule. Make it with one of the functions below and read its fields as you like; to change one, make
 * the rule anew. */
typedef struct weir_limit {
    const struct weir_algorithm *algorithm;
    uint32_t permits;   /* capacity, quota of the window, or most in flight */
    uint32_t refill;    /* token bucket: permits that come back per period */
    int64_t period_ns;  /* refill period, window, or leak interval; 0 for concurrency */
    uint32_t initial;   /* token bucket: permits at first */
    uint32_t queue_max; /* most waiters in acquire and enqueue */
    const void *params; /* of an algorithm of your own */
    /* Derived: what one permit and a full bucket cost in time, as whole ns and a remainder in 1/refill ns. */
    int64_t cost_ns, full_ns;
    uint32_t cost_rem, full_rem;
} weir_limit;

/* All return 0 or WEIR_E_INVAL and then leave *ret_limit alone. Every count is at least 1, every period
 * 1 ns … WEIR_DURATION_MAX, and a bucket must fill within WEIR_DURATION_MAX. */

/* `refill` permits per `period_ns`, continuously; starts full. */
WEIR_API int weir_limit_token_bucket(weir_limit *ret_limit, uint32_t capacity, uint32_t refill, int64_t period_ns);

/* The same, but all `refill` permits come at once at the end of each period, and the bucket starts with
 * `initial` permits (clamped to the capacity). */
WEIR_API int weir_limit_stepped_bucket(weir_limit *ret_limit, uint32_t capacity, uint32_t refill, int64_t period_ns,
                                       uint32_t initial);

/* `permits` per window; windows follow each other from the first request on, without drift. */
WEIR_API int weir_limit_fixed_window(weir_limit *ret_limit, uint32_t permits, int64_t window_ns);

/* previous x (1 - elapsed/window) + current < permits. */
WEIR_API int weir_limit_sliding_window(weir_limit *ret_limit, uint32_t permits, int64_t window_ns);

/* At most `permits` (<= WEIR_LOG_MAX) in any half-open window. */
WEIR_API int weir_limit_sliding_log(weir_limit *ret_limit, uint32_t permits, int64_t window_ns);

/* One start per `interval_ns`; at most `capacity` waiters, and further ones are refused at once. The permits of one
 * request, at most `capacity` too, start together, and the next start waits for all their intervals. */
WEIR_API int weir_limit_leaky_bucket(weir_limit *ret_limit, uint32_t capacity, int64_t interval_ns);

/* At most `permits` in flight; every granted permit must be released. */
WEIR_API int weir_limit_concurrency(weir_limit *ret_limit, uint32_t permits);

/* A rule of your own algorithm (see weir_algorithm below). `params` must outlive all that uses the rule. */
WEIR_API int weir_limit_custom(weir_limit *ret_limit, const struct weir_algorithm *algorithm, uint32_t permits,
                               int64_t period_ns, const void *params);

/* "token_bucket", "fixed_window", "sliding_window", "sliding_log", "leaky_bucket", "concurrency", or your own. */
WEIR_API const char *weir_limit_name(const weir_limit *limit);

/* ---- limiters ----------------------------------------------------------------------------------------- */

typedef struct weir_limiter weir_limiter;
typedef struct weir_cancel weir_cancel;
typedef struct weir_ticket weir_ticket;

/* Fill with weir_limiter_options_init, then change what you need. */
typedef struct weir_limiter_options {
    size_t size;                     /* of this struct */
    const weir_clock *clock;         /* NULL: weir_clock_fast() */
    const weir_allocator *allocator; /* NULL: the system's */
} weir_limiter_options;

typedef struct weir_limiter_stats {
    uint64_t acquired;    /* permits granted */
    uint64_t rejected;    /* permits refused: by try, or by an acquire that failed */
    uint32_t current;     /* permits that would be granted now */
    uint32_t max;         /* the most that can be granted */
    uint32_t queue_depth; /* callers that wait */
} weir_limiter_stats;

/* A receipt for permits taken: lets them be given back. All zero is "nothing taken". */
typedef struct weir_receipt {
    int64_t at;                     /* when they were taken */
    uint32_t permits;               /* how many; 0 once settled */
    uint32_t place;                 /* for table.h: where the charge lies */
    uint32_t marks[WEIR_STACK_MAX]; /* of the algorithms */
} weir_receipt;

/* NULL is fine. */
WEIR_API void weir_limiter_options_init(weir_limiter_options *ret_options);

/* Makes a limiter of `count` rules (1 … WEIR_STACK_MAX), which are copied. `options` may be NULL.
 * WEIR_E_INVAL, WEIR_E_NOMEM. */
WEIR_API int weir_limiter_new(const weir_limit *limits, size_t count, const weir_limiter_options *options,
                              weir_limiter **ret_limiter);

/* Takes `permits` if all rules grant them now and nobody waits; never blocks. Returns 0 with the decision,
 * or WEIR_E_INVAL or WEIR_E_CLOSED. */
WEIR_API int weir_limiter_try(weir_limiter *limiter, uint32_t permits, weir_decision *ret_decision);

/* Takes `permits`, waiting for at most `timeout_ns` (0 … WEIR_DURATION_MAX, or WEIR_FOREVER: as long as it takes; 0: as
 * try, though not past others). First come, first served. Waits until the deadline even if the wait is known to be
 * longer. 0 when granted. WEIR_E_TIMEOUT, WEIR_E_CANCELLED, WEIR_E_CLOSED, WEIR_E_FULL, WEIR_E_NEVER, WEIR_E_NOMEM,
 * WEIR_E_SYSTEM, WEIR_E_INVAL: nothing was taken. `cancel`, `ret_receipt` and `ret_decision` may be NULL; the receipt
 * is filled if granted. The decision also tells who failed what holds, and for how long from now: WEIR_WAIT with
 * WEIR_REASON_NONE where nothing does, or nobody could be asked. Only WEIR_E_INVAL leaves it alone. */
WEIR_API int weir_limiter_acquire(weir_limiter *limiter, uint32_t permits, int64_t timeout_ns, weir_cancel *cancel,
                                  weir_receipt *ret_receipt, weir_decision *ret_decision);

/* As try, with a receipt if granted; with NULL it takes without one. */
WEIR_API int weir_limiter_reserve(weir_limiter *limiter, uint32_t permits, weir_receipt *ret_receipt,
                                  weir_decision *ret_decision);

/* Ends a reservation: `used` permits were really used. Fewer than reserved gives the rest back, more charges
 * the difference whatever the limit says, 0 cancels. Gives back exactly what was taken and not yet come back by
 * itself. For concurrency the permits stay taken until released, but for what is given back here.
 * A receipt settles once; again is a no-op. WEIR_E_INVAL, WEIR_E_CLOSED. */
WEIR_API int weir_limiter_settle(weir_limiter *limiter, weir_receipt *receipt, uint32_t used);

/* Ends `permits` in flight. Only concurrency minds; with nothing in flight a no-op. WEIR_E_INVAL, WEIR_E_CLOSED. */
WEIR_API int weir_limiter_release(weir_limiter *limiter, uint32_t permits);

/* Puts other rules in force at once, of the same algorithms in the same order. What has been used stays used:
 * permits left are carried over, but never more than the new rule holds. WEIR_E_INVAL (also if the algorithms
 * differ), WEIR_E_NOMEM, WEIR_E_CLOSED: the old rules stay in force. */
WEIR_API int weir_limiter_change(weir_limiter *limiter, const weir_limit *limits, size_t count);

/* The strictest rule's quota. WEIR_E_INVAL, WEIR_E_CLOSED. */
WEIR_API int weir_limiter_peek(weir_limiter *limiter, weir_quota *ret_quota);

/* WEIR_E_INVAL, WEIR_E_CLOSED. */
WEIR_API int weir_limiter_stats_get(weir_limiter *limiter, weir_limiter_stats *ret_stats);

/* Fails all waiters and all later calls with WEIR_E_CLOSED. May be called again. */
WEIR_API void weir_limiter_close(weir_limiter *limiter);

/* Closes, and frees once the last waiter has left. NULL is fine. */
WEIR_API void weir_limiter_free(weir_limiter *limiter);

/* ---- cancellation: one token for any number of waiting calls ------------------------------------------- */

WEIR_API int weir_cancel_new(const weir_allocator *allocator, weir_cancel **ret_cancel);
/* Ends every acquire that waits with this token, and every later one, with WEIR_E_CANCELLED. */
WEIR_API void weir_cancel_fire(weir_cancel *cancel);
/* No call may be using it. NULL is fine. */
WEIR_API void weir_cancel_free(weir_cancel *cancel);

/* ---- event loops: stand in the queue without a thread -------------------------------------------------- */

/* Called when polling the ticket may have become worthwhile: from whichever thread caused it, with no lock
 * held, and never from within another wake. Usually it just wakes the loop (uv_async_send, eventfd). It may call
 * weir, also to free its own ticket; to free another, whose wake may be running elsewhere, could wait for ever. */
typedef void weir_wake(void *context);

/* Stands in the queue for `permits`, until `timeout_ns` has passed. Then call weir_ticket_poll at once and as
 * it says. Errors as weir_limiter_acquire; if the call fails, `wake` is never called. */
WEIR_API int weir_limiter_enqueue(weir_limiter *limiter, uint32_t permits, int64_t timeout_ns, weir_wake *wake,
                                  void *context, weir_ticket **ret_ticket);

/* 0 with WEIR_GO: the permits are yours. 0 with WEIR_WAIT: poll again after wait_ns or when woken, whichever is
 * first. WEIR_E_TIMEOUT, WEIR_E_CLOSED, or WEIR_E_NEVER (the rules were changed to less than it wants): it will never
 * be granted. A granted ticket stays granted. Poll on time: those behind wait for you. */
WEIR_API int weir_ticket_poll(weir_ticket *ticket, weir_decision *ret_decision);

/* The receipt of a granted ticket, always the same one: settle it once. WEIR_E_INVAL unless granted. */
WEIR_API int weir_ticket_receipt(const weir_ticket *ticket, weir_receipt *ret_receipt);

/* Leaves the queue if still in it; granted permits stay taken. When this returns, `wake` is not running (but
 * for the very call that frees) and will not be called again. NULL is fine. */
WEIR_API void weir_ticket_free(weir_ticket *ticket);

/* ---- algorithms of your own ---------------------------------------------------------------------------- */

/* An algorithm is a set of pure functions over a rule and a state of fixed size. Yours runs wherever ours do:
 * in limiters, tables, stacks and queues. `now` may stand still or go back between calls; then it must not
 * grant more. `permits` is at least 1, and in `ask` at most limit->permits. `take` can be given more, through
 * settle or weir_stack_take (an overcharge), and so can `give` and `release`. */
typedef struct weir_algorithm {
    size_t size; /* of this struct */
    const char *name;
    weir_reason reason; /* what a refusal says */
    /* Bytes of state (at most 1 MiB), aligned to 8. */
    size_t (*state_bytes)(const weir_limit *limit);
    /* Makes a new state out of zeroed memory, also when called in place of a NULL `carry`. */
    void (*start)(const weir_limit *limit, void *state, int64_t now);
    /* 0 or less: may be taken now. Else the wait in ns, or WEIR_UNTIL_RELEASE. */
    int64_t (*ask)(const weir_limit *limit, const void *state, int64_t now, uint32_t permits);
    /* Charges, granted or not. Returns a mark for `give`. */
    uint32_t (*take)(const weir_limit *limit, void *state, int64_t now, uint32_t permits);
    /* Gives back `permits` of those taken at `at` with `mark`, unless they came back by themselves. */
    void (*give)(const weir_limit *limit, void *state, int64_t now, int64_t at, uint32_t mark, uint32_t permits);
    /* The request ended; NULL where it does not matter. */
    void (*release)(const weir_limit *limit, void *state, uint32_t permits);
    void (*peek)(const weir_limit *limit, const void *state, int64_t now, weir_quota *ret_quota);
    /* Whether the state decides as a new one would: it may be forgotten. */
    bool (*fresh)(const weir_limit *limit, const void *state, int64_t now);
    /* Fills the zeroed `to_state` with what `from_state` has used. NULL: `start` is called instead. */
    void (*carry)(const weir_limit *from, const void *from_state, const weir_limit *to, void *to_state, int64_t now);
    /* After a refusal: what holds now, of several bounds. NULL: `reason`. */
    weir_reason (*why)(const weir_limit *limit, const void *state, int64_t now);
    /* After a refusal: 0 if it is worth waiting, or the WEIR_E_ code with which acquire and tickets fail instead.
     * NULL: 0. */
    int (*give_up)(const weir_limit *limit, const void *state, int64_t now);
} weir_algorithm;

/* ---- the pure core ------------------------------------------------------------------------------------- */

/* Rules that are checked together, and where each one's state lies. */
typedef struct weir_stack {
    uint32_t count;
    uint32_t state_bytes;
    uint32_t offsets[WEIR_STACK_MAX];
    weir_limit limits[WEIR_STACK_MAX];
} weir_stack;

/* WEIR_E_INVAL unless 1 … WEIR_STACK_MAX sound rules. The caller provides state_bytes of zeroed memory aligned to 8. */
WEIR_API int weir_stack_init(weir_stack *ret_stack, const weir_limit *limits, size_t count);

WEIR_API void weir_stack_start(const weir_stack *stack, void *state, int64_t now);

/* What would happen now; changes nothing. */
WEIR_API weir_decision weir_stack_ask(const weir_stack *stack, const void *state, int64_t now, uint32_t permits);

/* Charges all rules, granted or not. `ret_receipt` may be NULL. */
WEIR_API void weir_stack_take(const weir_stack *stack, void *state, int64_t now, uint32_t permits,
                              weir_receipt *ret_receipt);

/* Ask, then take if granted. */
WEIR_API weir_decision weir_stack_try(const weir_stack *stack, void *state, int64_t now, uint32_t permits,
                                      weir_receipt *ret_receipt);

WEIR_API void weir_stack_settle(const weir_stack *stack, void *state, int64_t now, weir_receipt *receipt,
                                uint32_t used);
WEIR_API void weir_stack_release(const weir_stack *stack, void *state, uint32_t permits);
/* The quota of the rule with the smallest share left. */
WEIR_API void weir_stack_peek(const weir_stack *stack, const void *state, int64_t now, weir_quota *ret_quota);
WEIR_API bool weir_stack_fresh(const weir_stack *stack, const void *state, int64_t now);
/* Fills the zeroed `to_state` with what `from_state` has used. WEIR_E_INVAL unless both have the same algorithms
 * in the same order. */
WEIR_API int weir_stack_carry(const weir_stack *from, const void *from_state, const weir_stack *to, void *to_state,
                              int64_t now);

#ifdef __cplusplus
}
#endif
#endif
