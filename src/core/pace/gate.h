/* SPDX-License-Identifier: MIT */
/* gate.h - The gate of one host: when the next request may start, and which bound delays it.
 *
 *     earliest start = max( last start + interval,     interval = max(min, Crawl-delay, 1/max_rate)
 *                           strategy,                  strategy.h
 *                           Retry-After, quota reset,  stated by the server
 *                           breaker )                  breaker.h
 *     and only while in flight < min(max_in_flight, strategy's cap), unreserved, not paused
 *
 * A request's life:  ask (GO) -> reserve -> sent -> tell        a normal request
 *                                reserve -> give                the request is not sent
 *                                reserve -> sent -> drop        abandoned, the outcome is unknown
 *
 * A gate is a header followed by parts whose sizes depend on the options: strategy, latency ring,
 * error window. It contains no pointers and may be copied. All functions are pure: the time is the
 * argument `now`. A `now` that goes back counts as the latest one seen, so it can only delay.
 */
#ifndef WR_CORE_PACE_GATE_H
#define WR_CORE_PACE_GATE_H

#include "core/pace/strategy.h"

struct wr_gate;

/* Data of a start, kept until its response. */
struct wr_gate_start {
    uint32_t seq;
    uint32_t in_flight;
    int64_t sent_at;
};

/* Changes that a response caused, for events and counters. */
enum wr_gate_change {
    WR_GATE_CHANGE_DELAY = 1,       /* the learned delay changed */
    WR_GATE_CHANGE_RETRY_AFTER = 2, /* a wait that the server asked for began or grew */
    WR_GATE_CHANGE_BREAKER = 4,     /* the breaker changed its state */
    WR_GATE_CHANGE_REJECTED = 8,    /* the response was a rejection */
    WR_GATE_CHANGE_HOPELESS = 16,   /* this response reached cancel_after */
};

/* Returns the size of a gate under these options, a multiple of 8 bytes. */
size_t wr_gate_bytes(const weir_pace_options *options);

/* Initialises zeroed memory. `memory` may be NULL; `wall_now` is used only with it. With a memory
 * the first start waits one full interval, a stored server wait is limited and obeyed, and an open
 * breaker becomes half open. */
void wr_gate_init(struct wr_gate *gate, const weir_pace_options *options, const weir_pace_memory *memory, int64_t now,
                  int64_t wall_now);

/* Initialises like wr_gate_init if no request was sent to the host for one interval: the first
 * start waits only for what the server asked. */
void wr_gate_init_rested(struct wr_gate *gate, const weir_pace_options *options, const weir_pace_memory *memory,
                         int64_t now, int64_t wall_now);

/* Decides whether a request may start now; changes nothing. The wait is WEIR_UNTIL_RELEASE if time
 * alone cannot end it. Any other wait may change with a start or a response. WEIR_REASON_BREAKER
 * means open if there is a time, and half open with all probes in flight if not. */
weir_decision wr_gate_ask(const struct wr_gate *gate, const weir_pace_options *options, int64_t now);

/* Decides again for the holder of reservation `seq` before it sends, because a response may have
 * forbidden the start since. An expired reservation is ignored. */
weir_decision wr_gate_ask_again(const struct wr_gate *gate, const weir_pace_options *options, uint32_t seq,
                                int64_t now);

/* Decides as if the existing reservation were the caller's: it is expected to be sent soon, long
 * before it expires. */
weir_decision wr_gate_ask_as_holder(const struct wr_gate *gate, const weir_pace_options *options, int64_t now);

/* Lists every bound separately, in the order of weir_reason. Returns their number, at most
 * WEIR_PACE_BOUNDS_MAX. */
size_t wr_gate_bounds(const struct wr_gate *gate, const weir_pace_options *options, int64_t now,
                      weir_pace_bound ret_bounds[WEIR_PACE_BOUNDS_MAX]);

/* Reserves a start after WEIR_GO: counts it as in flight and blocks all others until wr_gate_sent
 * or wr_gate_give, so there is at most one reservation. Returns its number, which becomes the
 * start's; 0 if pacing is off. */
uint32_t wr_gate_reserve(struct wr_gate *gate, const weir_pace_options *options, int64_t now);
void wr_gate_give(struct wr_gate *gate, const weir_pace_options *options, uint32_t seq, int64_t now);

/* Sets whether the reservation cannot expire, because its holder waits for another gate. Either way
 * its time limit starts anew. */
void wr_gate_keep(struct wr_gate *gate, const weir_pace_options *options, uint32_t seq, bool keeps, int64_t now);

/* Returns true if starts are spaced. If not (profile unlimited), do not hold the gate while
 * connecting: call wr_gate_sent at once. Right before the request is written, call
 * wr_gate_ask_unwritten, because the host may have asked for a pause since, and then
 * wr_gate_written. WEIR_DENY means that starts are spaced by now: reserve one. */
bool wr_gate_spaces(const struct wr_gate *gate, const weir_pace_options *options);
weir_decision wr_gate_ask_unwritten(const struct wr_gate *gate, const weir_pace_options *options, int64_t now);
void wr_gate_written(struct wr_gate *gate, const weir_pace_options *options, int64_t now);

/* Records that the request is being written, and returns the data of its start. */
struct wr_gate_start wr_gate_sent(struct wr_gate *gate, const weir_pace_options *options, uint32_t seq, int64_t now);

/* Records that a request left `ago_ns` ago, later than was reported, because the process was
 * stopped or got no CPU. The next start is delayed by as much, or waits a whole interval from then
 * if the delay was longer. */
void wr_gate_sent_late(struct wr_gate *gate, const weir_pace_options *options, int64_t ago_ns, int64_t now);

/* Records the outcome of a request. `start` is NULL for feedback without a reservation. `unit` is a
 * random number for the jitter, 0 <= unit < 1: a wait for the server or the breaker longer than
 * jitter_over_ns grows by up to 10 %. Returns a set of wr_gate_change. */
uint32_t wr_gate_tell(struct wr_gate *gate, const weir_pace_options *options, const struct wr_gate_start *start,
                      const weir_outcome *outcome, int64_t now, double unit);

/* Records the head of a response: a wait that it states applies at once, the rest is recorded by
 * wr_gate_tell at the end. Returns a set of wr_gate_change. */
uint32_t wr_gate_tell_head(struct wr_gate *gate, const weir_pace_options *options, const struct wr_gate_start *start,
                           const weir_outcome *outcome, int64_t now, double unit);

/* Ends a request that was sent and then abandoned. */
void wr_gate_drop(struct wr_gate *gate, const weir_pace_options *options, const struct wr_gate_start *start,
                  int64_t now);

void wr_gate_robots_delay(struct wr_gate *gate, int64_t delay_ns, int64_t now);
/* Returns the minimum time between two starts under any strategy: the longest of the minimum
 * interval, Crawl-delay and 1/max_rate. */
int64_t wr_gate_min_interval(const struct wr_gate *gate, const weir_pace_options *options);
void wr_gate_pause(struct wr_gate *gate, bool paused);
bool wr_gate_paused(const struct wr_gate *gate);

/* Discards what was learned: pace, breaker, latencies. Keeps what the server stated (Crawl-delay,
 * Retry-After, quota), the last start and the requests in flight. The holder of a reservation must
 * ask again before it sends. Starts are numbered from 1 again: pass a response to an earlier start
 * to wr_gate_tell_head and wr_gate_drop, not to wr_gate_tell. */
void wr_gate_forget(struct wr_gate *gate, const weir_pace_options *options, int64_t now);

/* Obeys a server wait that was learned elsewhere: no start before `until`. Never shortens it. */
void wr_gate_hold(struct wr_gate *gate, const weir_pace_options *options, int64_t until, int64_t now);

/* Fills `to` (zeroed, wr_gate_bytes(to_options) bytes) with the state of `from`. Strategy, ring and
 * window must be the same in both options. */
void wr_gate_carry(const struct wr_gate *from, const weir_pace_options *from_options, struct wr_gate *to,
                   const weir_pace_options *to_options, int64_t now);

void wr_gate_remember(const struct wr_gate *gate, const weir_pace_options *options, int64_t now, int64_t wall_now,
                      weir_pace_memory *ret_memory);
/* Returns true if the memory of the gate changed since wr_gate_saved. */
bool wr_gate_unsaved(const struct wr_gate *gate);
void wr_gate_saved(struct wr_gate *gate);

/* Returns true if the gate may be discarded: nothing in flight or reserved, no bound active, not
 * paused, and at least two intervals since the last start. The breaker must be closed and the
 * strategy settled, unless nothing happened for an hour. A Crawl-delay keeps the gate for a day.
 * The caller checks for unsaved learning. */
bool wr_gate_forgettable(const struct wr_gate *gate, const weir_pace_options *options, int64_t now);

/* Returns the time between starts: the longest of all intervals, without temporary waits. */
int64_t wr_gate_delay(const struct wr_gate *gate, const weir_pace_options *options, int64_t now);

weir_breaker_state wr_gate_breaker(const struct wr_gate *gate, int64_t now);

/* Fills in weir_pace_entry except key, key_bytes and waiters. */
void wr_gate_inspect(const struct wr_gate *gate, const weir_pace_options *options, int64_t now,
                     weir_pace_entry *ret_entry);

/* Checks the invariants of a gate, for assertions. */
bool wr_gate_ok(const struct wr_gate *gate, const weir_pace_options *options);

#endif
