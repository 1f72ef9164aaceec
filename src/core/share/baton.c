/* SPDX-License-Identifier: MIT */
/* baton.c - decides when to ask for the turn of a host's gate, extend it and pass it on. */
#include "core/share/baton.h"

#include <weir/limit.h>

#define POLL_LEAST (2 * WEIR_MILLISECOND) /* shortest poll interval, for the first in the queue */
#define POLL_MOST (100 * WEIR_MILLISECOND)
#define POLL_STEP (25 * WEIR_MILLISECOND) /* extra poll interval per place in the queue */
#define POLL_FAR (250 * WEIR_MILLISECOND)

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t within(int64_t ns, int64_t least, int64_t most)
{
    return ns < least ? least : ns > most ? most : ns;
}

bool wr_baton_is_held(const struct wr_baton *baton, int64_t now)
{
    return baton->token != 0 && now < baton->until;
}

static struct wr_baton_move call(struct wr_baton *baton, enum wr_baton_verb verb, const struct wr_baton_here *here,
                                 int64_t pass_ns, int64_t now)
{
    baton->asked = verb;
    baton->asked_at = baton->told_at = now;
    baton->flights_told = here->flights;
    baton->asked_line = here->wants && !here->leaves && (verb == WR_BATON_WANT || verb == WR_BATON_PASS);
    return (struct wr_baton_move){.verb = verb, .at = now, .pass_ns = pass_ns, .waits = baton->asked_line};
}

static struct wr_baton_move look_at(int64_t at)
{
    return (struct wr_baton_move){.verb = WR_BATON_NOTHING, .at = at};
}

/* ---- while this process has the turn ---- */

/* Returns when the turn may be passed on, as things are now; WEIR_FOREVER if only an event can end
 * it. */
static int64_t pass_at(const struct wr_baton *baton, const struct wr_baton_here *here, int64_t now)
{
    if (here->leaves)
        return now;
    if (here->is_reserved)
        return WEIR_FOREVER;
    if (!here->wants)
        return baton->wanted_at + (baton->waiting > 0 ? WR_BATON_LINGER : WR_BATON_IDLE);
    int64_t end_at = baton->taken_at + WR_BATON_TURN;
    if (baton->waiting == 0 || here->starts == baton->taken_starts)
        return WEIR_FOREVER;
    bool is_late = here->wait_ns != WEIR_UNTIL_RELEASE && here->wait_ns >= end_at - now;
    return is_late ? now : end_at; /* no request would start in the rest of the turn */
}

/* Returns the expected time until the turn is passed on, ns. The store reports it to waiting
 * processes. */
static int64_t pass_in(const struct wr_baton *baton, const struct wr_baton_here *here, int64_t now)
{
    int64_t left_ns = baton->taken_at + WR_BATON_TURN - now;
    int64_t wait_ns = here->wait_ns != WEIR_UNTIL_RELEASE ? here->wait_ns : 0;
    if (here->wants && here->starts == baton->taken_starts && wait_ns > left_ns)
        left_ns = wait_ns;
    return within(left_ns, 0, WEIR_MINUTE);
}

static struct wr_baton_move next_held(struct wr_baton *baton, const struct wr_baton_here *here, int64_t now)
{
    int64_t go_at = pass_at(baton, here, now);
    if (go_at <= now) {
        struct wr_baton_move move = call(baton, WR_BATON_PASS, here, 0, now);
        baton->token = 0; /* ends the turn here even if the call is lost */
        return move;
    }
    if (here->has_news || baton->due_at <= now)
        return call(baton, WR_BATON_HOLD, here, pass_in(baton, here, now), now);
    return look_at(sooner(sooner(go_at, baton->due_at), baton->until));
}

/* ---- without the turn ---- */

static struct wr_baton_move next_away(struct wr_baton *baton, const struct wr_baton_here *here, int64_t now)
{
    bool wants = here->wants && !here->leaves;
    bool is_stale = here->has_letters || (!wants && baton->in_line) || (here->flights == 0 && baton->flights_told != 0);
    if (wants && (is_stale || baton->due_at <= now))
        return call(baton, WR_BATON_WANT, here, 0, now);
    if (wants)
        return look_at(baton->due_at);
    if (here->flights > 0 && baton->told_at + WR_BATON_BEAT <= now)
        is_stale = true;
    if (is_stale)
        return call(baton, WR_BATON_WRITE, here, 0, now);
    struct wr_baton_move move = look_at(here->flights > 0 ? baton->told_at + WR_BATON_BEAT : WEIR_FOREVER);
    move.is_over = here->flights == 0;
    return move;
}

struct wr_baton_move wr_baton_next(struct wr_baton *baton, const struct wr_baton_here *here, int64_t now)
{
    if (here->wants || here->starts != baton->starts)
        baton->wanted_at = now;
    baton->starts = here->starts;
    if (baton->asked != WR_BATON_NOTHING)
        return look_at(WEIR_FOREVER);
    if (now < baton->rest_until)
        return look_at(baton->rest_until);
    if (wr_baton_is_held(baton, now))
        return next_held(baton, here, now);
    baton->token = 0; /* the turn may belong to another process by now */
    return next_away(baton, here, now);
}

/* ---- replies ---- */

/* Returns the time until the next call. The first in the queue asks when the turn should end, and
 * often from then on; processes further back ask later and less often. */
static int64_t poll_in(const struct wr_baton_reply *reply)
{
    if (reply->place == 0)
        return within(reply->busy_ns, POLL_LEAST, POLL_MOST);
    return within(reply->busy_ns, POLL_STEP * (reply->place < 10 ? (int64_t)reply->place : 10), POLL_FAR);
}

static void extend(struct wr_baton *baton, int64_t now)
{
    bool is_alone = baton->others == 0 && baton->waiting == 0;
    baton->until = baton->asked_at + WR_BATON_LEASE - WR_BATON_LEASE / 100;
    baton->due_at = now + (is_alone ? WR_BATON_KEEP : WR_BATON_READ);
}

bool wr_baton_told(struct wr_baton *baton, const struct wr_baton_reply *reply, int64_t now)
{
    enum wr_baton_verb asked = baton->asked;
    baton->asked = WR_BATON_NOTHING;
    baton->waiting = reply->waiting;
    baton->others = reply->others;
    baton->due_at = now;
    if (reply->token > baton->seen)
        baton->seen = reply->token;
    if (asked == WR_BATON_HOLD && reply->is_ours) {
        extend(baton, now);
        return false;
    }
    baton->token = 0;
    baton->in_line = baton->asked_line && !reply->is_ours;
    if (asked != WR_BATON_WANT)
        return false;
    baton->due_at = now + poll_in(reply);
    if (!reply->is_ours)
        return false;
    baton->token = reply->token;
    baton->taken_at = baton->wanted_at = now;
    extend(baton, now);
    return true;
}

void wr_baton_took(struct wr_baton *baton, uint64_t starts)
{
    baton->taken_starts = baton->starts = starts;
}

void wr_baton_missed(struct wr_baton *baton, int64_t now)
{
    baton->in_line = baton->in_line || baton->asked_line;
    baton->asked = WR_BATON_NOTHING;
    baton->rest_until = now + WR_BATON_AGAIN;
}
