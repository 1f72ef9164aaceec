/* SPDX-License-Identifier: MIT */
/* gate.h - one host's gate: when may the next request to it start, and which bound says so?
 *
 *     earliest start = max( last start + interval,      interval = max(minimum, Crawl-delay, 1/max_rate)
 *                           strategy,                   strategy.h
 *                           Retry-After, quota reset,   what the server said
 *                           breaker )                   breaker.h
 *     and only while in flight < min(max_in_flight, strategy's cap), nothing is reserved but unsent, and not paused
 *
 * A request's life:  ask (GO) -> reserve -> sent -> tell        the usual way
 *                                reserve -> give                not used after all
 *                                reserve -> sent -> drop        given up; nothing is known of it
 *
 * A gate is a header, and behind it, as the options ask: strategy, latency ring, error window. It holds no pointers and
 * may be copied. Pure: `now` is an argument; one that goes back is taken as the latest seen, so it can only delay.
 */
#ifndef WR_CORE_PACE_GATE_H
#define WR_CORE_PACE_GATE_H

#include "core/pace/strategy.h"

struct wr_gate;

/* What a start needs to remember until it is answered. */
struct wr_gate_start {
    uint32_t seq;
    uint32_t in_flight;
    int64_t sent_at;
};

/* What a tell changed, for events and counters. */
enum wr_gate_news {
    WR_NEWS_DELAY = 1,       /* the learned delay */
    WR_NEWS_RETRY_AFTER = 2, /* a server-directed wait began or grew */
    WR_NEWS_BREAKER = 4,     /* the breaker's state */
    WR_NEWS_REJECTED = 8,    /* it was a rejection */
    WR_NEWS_HOPELESS = 16,   /* cancel_after was reached, just now */
};

/* Bytes of a gate under these options, a multiple of 8. */
size_t wr_gate_bytes(const weir_pace_options *options);

/* Fills zeroed memory. `memory` may be NULL; `wall_now` matters only with it. R23: with a memory the first start waits
 * one full interval, a stored window is clamped and honoured, an open breaker is half open. */
void wr_gate_init(struct wr_gate *gate, const weir_pace_options *options, const weir_pace_memory *memory, int64_t now,
                  int64_t wall_now);

/* The same where it is known that nothing was sent for an interval: the first start need only wait for what the server
 * said. */
void wr_gate_init_rested(struct wr_gate *gate, const weir_pace_options *options, const weir_pace_memory *memory,
                         int64_t now, int64_t wall_now);

/* Whether a request may start now. Changes nothing. WEIR_UNTIL_RELEASE where only an answer can change it; a send or an
 * answer may change any other wait too. BREAKER with a wait: it is open; with WEIR_UNTIL_RELEASE: half open, and all
 * probes are in flight. */
weir_decision wr_gate_ask(const struct wr_gate *gate, const weir_pace_options *options, int64_t now);

/* The same for who holds this reservation and has not sent yet: an answer may have come since that forbids it.
 * Who did not use it in time is judged like anybody else. */
weir_decision wr_gate_ask_again(const struct wr_gate *gate, const weir_pace_options *options, uint32_t seq,
                                int64_t now);

/* When it may go as far as anybody can tell: what another has reserved is sent in a moment, and not when it would
 * expire. */
weir_decision wr_gate_ask_beyond(const struct wr_gate *gate, const weir_pace_options *options, int64_t now);

/* Every bound on its own, in the order of the reasons. Returns how many, at most WEIR_PACE_BOUNDS_MAX. */
size_t wr_gate_bounds(const struct wr_gate *gate, const weir_pace_options *options, int64_t now,
                      weir_pace_bound ret_bounds[WEIR_PACE_BOUNDS_MAX]);

/* After GO: counts it in flight and holds the gate until sent or given back, so there is never more than one. Returns
 * the reservation's number, which becomes the start's; 0 if pacing is off. */
uint32_t wr_gate_reserve(struct wr_gate *gate, const weir_pace_options *options, int64_t now);
void wr_gate_give(struct wr_gate *gate, const weir_pace_options *options, uint32_t seq, int64_t now);

/* Whether the reservation stays for as long as its holder waits for another gate. When it does no more, its time begins
 * anew. */
void wr_gate_keep(struct wr_gate *gate, const weir_pace_options *options, uint32_t seq, bool keeps, int64_t now);

/* Whether starts are spaced at all. If not (`unlimited`), do not hold the gate while connecting: call wr_gate_sent at
 * once. Before it is really written call wr_gate_ask_unwritten, for the host may have asked to be left alone since
 * (WEIR_DENY: starts are spaced by now, so reserve one), and then wr_gate_written. */
bool wr_gate_spaces(const struct wr_gate *gate, const weir_pace_options *options);
weir_decision wr_gate_ask_unwritten(const struct wr_gate *gate, const weir_pace_options *options, int64_t now);
void wr_gate_written(struct wr_gate *gate, const weir_pace_options *options, int64_t now);

/* It is being written. */
struct wr_gate_start wr_gate_sent(struct wr_gate *gate, const weir_pace_options *options, uint32_t seq, int64_t now);

/* It got out so long ago, later than was said: the process was stopped, or had no processor. The next start waits a
 * whole interval from there. */
void wr_gate_late(struct wr_gate *gate, const weir_pace_options *options, int64_t ago_ns, int64_t now);

/* How it ended. `start` may be NULL: feedback of somebody who held no reservation. `unit` is a random number, 0 <= unit
 * < 1, for the jitter: a wait for the server or the breaker longer than jitter_over_ns gets up to 10 % longer. Returns
 * news, a set of wr_gate_news. */
uint32_t wr_gate_tell(struct wr_gate *gate, const weir_pace_options *options, const struct wr_gate_start *start,
                      const weir_outcome *outcome, int64_t now, double unit);

/* The head of the answer to a start is there: what it says of waiting binds at once, and the rest is told at the end.
 * Returns news. */
uint32_t wr_gate_hear(struct wr_gate *gate, const weir_pace_options *options, const struct wr_gate_start *start,
                      const weir_outcome *outcome, int64_t now, double unit);

/* It was given up after it was sent. */
void wr_gate_drop(struct wr_gate *gate, const weir_pace_options *options, const struct wr_gate_start *start,
                  int64_t now);

void wr_gate_robots_delay(struct wr_gate *gate, int64_t delay_ns, int64_t now);
/* What lies between two starts at least, whatever the strategy says: minimum, Crawl-delay, 1/max_rate. */
int64_t wr_gate_least(const struct wr_gate *gate, const weir_pace_options *options);
void wr_gate_pause(struct wr_gate *gate, bool paused);
bool wr_gate_paused(const struct wr_gate *gate);

/* Forgets what was learned: pace, breaker, latencies. What the server said stays (Crawl-delay, Retry-After, quota), as
 * do the last start and requests in flight. A reservation is judged anew when it is to be sent. Starts are numbered
 * anew: of answers to those before, hear what they say of waiting, and drop them. */
void wr_gate_forget(struct wr_gate *gate, const weir_pace_options *options, int64_t now);

/* A server-directed window learned elsewhere: no start before `until`. Never shortens. */
void wr_gate_hold(struct wr_gate *gate, const weir_pace_options *options, int64_t until, int64_t now);

/* Fills `to` (zeroed, of wr_gate_bytes(to_options)) with what `from` knows. Both have the same strategy, ring and
 * window. */
void wr_gate_carry(const struct wr_gate *from, const weir_pace_options *from_options, struct wr_gate *to,
                   const weir_pace_options *to_options, int64_t now);

void wr_gate_remember(const struct wr_gate *gate, const weir_pace_options *options, int64_t now, int64_t wall_now,
                      weir_pace_memory *ret_memory);
/* Whether its memory changed since wr_gate_saved. */
bool wr_gate_unsaved(const struct wr_gate *gate);
void wr_gate_saved(struct wr_gate *gate);

/* R9: nothing in flight or reserved, now past every bound and twice the interval after the last start, not paused; and
 * breaker closed and strategy settled, or nothing happened for an hour; and no Crawl-delay, or nothing happened for a
 * day. Whether unsaved learning matters is the caller's to say. */
bool wr_gate_forgettable(const struct wr_gate *gate, const weir_pace_options *options, int64_t now);

/* Between starts, all bounds but waiting times taken together. */
int64_t wr_gate_delay(const struct wr_gate *gate, const weir_pace_options *options, int64_t now);

weir_breaker_state wr_gate_breaker(const struct wr_gate *gate, int64_t now);

/* All of weir_pace_entry but key, key_bytes and waiters. */
void wr_gate_look(const struct wr_gate *gate, const weir_pace_options *options, int64_t now,
                  weir_pace_entry *ret_entry);

/* Asserted invariants. */
bool wr_gate_ok(const struct wr_gate *gate, const weir_pace_options *options);

#endif
