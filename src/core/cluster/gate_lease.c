/* SPDX-License-Identifier: MIT */
/* gate_lease.c - decides when to ask for the turn of a host's gate, extend it and pass it on. */
#include "core/cluster/gate_lease.h"

#include <weir/limit.h>

#define POLL_LEAST (2 * WEIR_MILLISECOND) /* shortest poll interval, for the first in the queue */
#define POLL_MOST (100 * WEIR_MILLISECOND)
#define POLL_STEP (25 * WEIR_MILLISECOND) /* extra poll interval per place in the queue */
#define POLL_FAR (250 * WEIR_MILLISECOND)

static int64_t earlier_instant(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t clamp_ns(int64_t ns, int64_t least, int64_t most)
{
    return ns < least ? least : ns > most ? most : ns;
}

bool wr_gate_lease_is_held(const struct wr_gate_lease *gate_lease, int64_t now)
{
    return gate_lease->token != 0 && now < gate_lease->until;
}

static struct wr_gate_lease_move begin_call(struct wr_gate_lease *gate_lease, enum wr_gate_lease_verb verb,
                                            const struct wr_gate_lease_local *here, int64_t pass_ns, int64_t now)
{
    gate_lease->asked = verb;
    gate_lease->asked_at = gate_lease->told_at = now;
    gate_lease->flights_told = here->flights;
    gate_lease->asked_to_queue =
        here->wants && !here->leaves && (verb == WR_GATE_LEASE_WANT || verb == WR_GATE_LEASE_PASS);
    return (struct wr_gate_lease_move){
        .verb = verb, .at = now, .pass_ns = pass_ns, .waits = gate_lease->asked_to_queue};
}

static struct wr_gate_lease_move gate_check_at(int64_t at)
{
    return (struct wr_gate_lease_move){.verb = WR_GATE_LEASE_NOTHING, .at = at};
}

/* ---- while this process has the turn ---- */

/* Returns when the turn may be passed on, as things are now; WEIR_FOREVER if only an event can end
 * it. */
static int64_t pass_at(const struct wr_gate_lease *gate_lease, const struct wr_gate_lease_local *here, int64_t now)
{
    if (here->leaves)
        return now;
    if (here->is_reserved)
        return WEIR_FOREVER;
    if (!here->wants)
        return gate_lease->wanted_at + (gate_lease->waiting > 0 ? WR_GATE_LEASE_LINGER_NS : WR_GATE_LEASE_IDLE_NS);
    int64_t end_at = gate_lease->taken_at + WR_GATE_LEASE_TURN_NS;
    if (gate_lease->waiting == 0 || here->starts == gate_lease->taken_starts)
        return WEIR_FOREVER;
    bool is_late = here->wait_ns != WEIR_UNTIL_RELEASE && here->wait_ns >= end_at - now;
    return is_late ? now : end_at; /* no request would start in the rest of the turn */
}

/* Returns the expected time until the turn is passed on, ns. The store reports it to waiting
 * processes. */
static int64_t pass_in(const struct wr_gate_lease *gate_lease, const struct wr_gate_lease_local *here, int64_t now)
{
    int64_t left_ns = gate_lease->taken_at + WR_GATE_LEASE_TURN_NS - now;
    int64_t wait_ns = here->wait_ns != WEIR_UNTIL_RELEASE ? here->wait_ns : 0;
    if (here->wants && here->starts == gate_lease->taken_starts && wait_ns > left_ns)
        left_ns = wait_ns;
    return clamp_ns(left_ns, 0, WEIR_MINUTE);
}

static struct wr_gate_lease_move next_held(struct wr_gate_lease *gate_lease, const struct wr_gate_lease_local *here,
                                           int64_t now)
{
    int64_t go_at = pass_at(gate_lease, here, now);
    if (go_at <= now) {
        struct wr_gate_lease_move move = begin_call(gate_lease, WR_GATE_LEASE_PASS, here, 0, now);
        gate_lease->token = 0; /* ends the turn here even if the call is lost */
        return move;
    }
    if (here->has_news || gate_lease->due_at <= now)
        return begin_call(gate_lease, WR_GATE_LEASE_HOLD, here, pass_in(gate_lease, here, now), now);
    return gate_check_at(earlier_instant(earlier_instant(go_at, gate_lease->due_at), gate_lease->until));
}

/* ---- without the turn ---- */

static struct wr_gate_lease_move next_away(struct wr_gate_lease *gate_lease, const struct wr_gate_lease_local *here,
                                           int64_t now)
{
    bool wants = here->wants && !here->leaves;
    bool is_stale = here->has_letters || (!wants && gate_lease->is_in_queue) ||
                    (here->flights == 0 && gate_lease->flights_told != 0);
    if (wants && (is_stale || gate_lease->due_at <= now))
        return begin_call(gate_lease, WR_GATE_LEASE_WANT, here, 0, now);
    if (wants)
        return gate_check_at(gate_lease->due_at);
    if (here->flights > 0 && gate_lease->told_at + WR_GATE_LEASE_IN_FLIGHT_RENEW_NS <= now)
        is_stale = true;
    if (is_stale)
        return begin_call(gate_lease, WR_GATE_LEASE_WRITE, here, 0, now);
    struct wr_gate_lease_move move =
        gate_check_at(here->flights > 0 ? gate_lease->told_at + WR_GATE_LEASE_IN_FLIGHT_RENEW_NS : WEIR_FOREVER);
    move.is_over = here->flights == 0;
    return move;
}

struct wr_gate_lease_move wr_gate_lease_next(struct wr_gate_lease *gate_lease, const struct wr_gate_lease_local *here,
                                             int64_t now)
{
    if (here->wants || here->starts != gate_lease->starts)
        gate_lease->wanted_at = now;
    gate_lease->starts = here->starts;
    if (gate_lease->asked != WR_GATE_LEASE_NOTHING)
        return gate_check_at(WEIR_FOREVER);
    if (now < gate_lease->rest_until)
        return gate_check_at(gate_lease->rest_until);
    if (wr_gate_lease_is_held(gate_lease, now))
        return next_held(gate_lease, here, now);
    gate_lease->token = 0; /* the turn may belong to another process by now */
    return next_away(gate_lease, here, now);
}

/* ---- replies ---- */

/* Returns the time until the next call. The first in the queue asks when the turn should end, and
 * often from then on; processes further back ask later and less often. */
static int64_t poll_in(const struct wr_gate_lease_reply *reply)
{
    if (reply->place == 0)
        return clamp_ns(reply->busy_ns, POLL_LEAST, POLL_MOST);
    return clamp_ns(reply->busy_ns, POLL_STEP * (reply->place < 10 ? (int64_t)reply->place : 10), POLL_FAR);
}

static void extend_gate_lease(struct wr_gate_lease *gate_lease, int64_t now)
{
    bool is_alone = gate_lease->others == 0 && gate_lease->waiting == 0;
    gate_lease->until = gate_lease->asked_at + WR_GATE_LEASE_NS - WR_GATE_LEASE_NS / 100;
    gate_lease->due_at = now + (is_alone ? WR_GATE_LEASE_RENEW_NS : WR_GATE_LEASE_SHARED_RENEW_NS);
}

bool wr_gate_lease_answered(struct wr_gate_lease *gate_lease, const struct wr_gate_lease_reply *reply, int64_t now)
{
    enum wr_gate_lease_verb asked = gate_lease->asked;
    gate_lease->asked = WR_GATE_LEASE_NOTHING;
    gate_lease->waiting = reply->waiting;
    gate_lease->others = reply->others;
    gate_lease->due_at = now;
    if (reply->token > gate_lease->seen)
        gate_lease->seen = reply->token;
    if (asked == WR_GATE_LEASE_HOLD && reply->is_ours) {
        extend_gate_lease(gate_lease, now);
        return false;
    }
    gate_lease->token = 0;
    gate_lease->is_in_queue = gate_lease->asked_to_queue && !reply->is_ours;
    if (asked != WR_GATE_LEASE_WANT)
        return false;
    gate_lease->due_at = now + poll_in(reply);
    if (!reply->is_ours)
        return false;
    gate_lease->token = reply->token;
    gate_lease->taken_at = gate_lease->wanted_at = now;
    extend_gate_lease(gate_lease, now);
    return true;
}

void wr_gate_lease_taken(struct wr_gate_lease *gate_lease, uint64_t starts)
{
    gate_lease->taken_starts = gate_lease->starts = starts;
}

void wr_gate_lease_missed(struct wr_gate_lease *gate_lease, int64_t now)
{
    gate_lease->is_in_queue = gate_lease->is_in_queue || gate_lease->asked_to_queue;
    gate_lease->asked = WR_GATE_LEASE_NOTHING;
    gate_lease->rest_until = now + WR_GATE_LEASE_RETRY_NS;
}
