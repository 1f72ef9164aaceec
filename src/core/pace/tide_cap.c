/* SPDX-License-Identifier: MIT */
/* tide_cap.c - Determines how many requests tide may have in flight. The latency shows a queue:
 * beyond a point more requests only wait longer. Rejections at a constant number in flight show a
 * concurrency limit. */
#include "core/pace/tide.h"
#include <math.h>

#define CAP_MOST 100000.0f

void wr_tide_cap_sent(struct wr_tide *tide, const struct wr_pace_start *start)
{
    float in_flight = (float)start->in_flight;
    tide->flight += (in_flight - tide->flight) / 32;
    if (start->in_flight >= wr_tide_cap(tide))
        tide->epoch_full++;
}

/* Returns log2 of x within 0.09, in a few instructions. */
static float rough_log2(int64_t x)
{
    uint64_t n = x > 1 ? (uint64_t)x : 1;
    int top = 63 - __builtin_clzll(n);
    uint64_t rest = n << (63 - top) & ~(UINT64_C(1) << 63);
    return (float)top + (float)(rest >> 40) * 0x1p-23f;
}

static void begin_epoch(struct wr_tide *tide, int64_t now)
{
    tide->epoch_n = tide->epoch_full = 0;
    tide->epoch_logs = 0;
    tide->epoch_at = now;
}

static void try_more(struct wr_tide *tide)
{
    if (tide->traits & WR_TIDE_CONCURRENCY) {
        if (tide->cap_up++ < (1u << tide->crowd_wait) / tide->epoch_n)
            return;
        tide->cap += 1;
        /* The last increase was a success. */
        if (tide->cap_tried && tide->crowd_wait > TIDE_CROWD_WAIT_LEAST)
            tide->crowd_wait--;
        tide->cap_tried = true;
        tide->cap_up = 0;
        return;
    }
    static const float factors[] = {1.1f, 1.2f, 1.4f};
    tide->cap = wr_tide_least(tide->cap * factors[tide->cap_up] + 0.5f, CAP_MOST);
    if (tide->cap_up < 2)
        tide->cap_up++;
}

/* Adjusts the cap by the latencies of a whole epoch. */
static void end_epoch(struct wr_tide *tide, int64_t now)
{
    float mean = tide->epoch_logs / (float)tide->epoch_n;
    float rate = (float)tide->epoch_n / wr_tide_most(wr_tide_seconds(now - tide->epoch_at), 1e-6f);
    bool full = 2 * tide->epoch_full >= tide->epoch_n;

    if (tide->base <= 0)
        tide->base = mean;
    if (mean < tide->base)
        tide->base += TIDE_BASE_FALLS * (mean - tide->base);
    float queue = mean - tide->base;
    if (tide->cap_test) {
        tide->cap_test = false;
        if (rate < TIDE_CAP_FELL * tide->epoch_rate) {
            tide->cap /= TIDE_CAP_TEST;
            tide->base += TIDE_BASE_RISES * queue;
        }
    } else if (!full) {
        return;
    } else if (!tide->cap_found) {
        if (queue > TIDE_QUEUE_FIRST) {
            tide->cap = wr_tide_most(TIDE_CAP_FIRST, 1.5f * tide->cap * exp2f(-queue) + 2);
            tide->cap_found = true;
        }
    } else if (queue > TIDE_QUEUE_HIGH && tide->cap > 2) {
        tide->cap_test = true;
        tide->cap_up = 0;
        tide->cap *= TIDE_CAP_TEST;
        tide->epoch_rate = rate;
    } else if (queue < TIDE_QUEUE_LOW) {
        try_more(tide);
    }
}

void wr_tide_cap_accepted(struct wr_tide *tide, const struct wr_pace_response *answer, int64_t now)
{
    if (tide->crowd_ok < UINT16_MAX) {
        tide->crowd_ok++;
        tide->crowd_past = (uint16_t)(tide->crowd_past + (answer->in_flight_then >= tide->crowd_at));
    }
    tide->epoch_logs += rough_log2(answer->latency_ns);
    tide->epoch_n++;
    if (!tide->cap_found && 2 * (float)answer->in_flight_then >= tide->cap)
        tide->cap = wr_tide_least(tide->cap + TIDE_CAP_GROWS, CAP_MOST);
    float enough = tide->cap_found ? wr_tide_most(TIDE_EPOCH, TIDE_EPOCH_CAPS * tide->cap)
                                   : wr_tide_most(TIDE_EPOCH_FIRST, tide->cap / 2);
    if ((float)tide->epoch_n < enough)
        return;
    end_epoch(tide, now);
    begin_epoch(tide, now);
}

/* Returns 2^log, the inverse of rough_log2. */
static float rough_exp2(float log)
{
    int top = (int)log;
    return (float)(INT64_C(1) << (top < 62 ? top : 62)) * (1 + log - (float)top);
}

/* Returns the maximum in flight. If far more are in flight than the rate needs, responses have
 * stopped, and no request is added. */
uint32_t wr_tide_cap(const struct wr_tide *tide)
{
    if (tide->base <= 0)
        return (uint32_t)tide->cap;
    float needed = tide->rate * rough_exp2(tide->base) * 1e-9f;
    return (uint32_t)wr_tide_least(tide->cap, TIDE_STALL + TIDE_STALL_TIMES * needed);
}

static void set_cap(struct wr_tide *tide, float cap)
{
    tide->cap = wr_tide_most(1, floorf(cap));
    tide->cap_found = true;
    tide->cap_test = false;
    tide->cap_up = 0;
    tide->epoch_n = tide->epoch_full = 0;
    tide->epoch_logs = 0;
}

/* Returns true if rejections point at a concurrency limit. They come at the same number in flight
 * at any rate, or far above the usual number. */
static bool points_at_crowd(struct wr_tide *tide, const struct wr_pace_response *answer)
{
    float n = (float)answer->in_flight_then;
    bool spike = n >= 1.1f * tide->flight + 1;
    bool alike = fabsf(n - (float)tide->crowd_at) <= wr_tide_most(spike, 0.1f * n);
    float share = (float)(tide->crowd_past + 1) / (float)(tide->crowd_ok + 1);
    bool even = (tide->mode == WR_TIDE_CRUISE && tide->phase < 2) || tide->traits & WR_TIDE_STRAY_503;
    bool known = even && tide->crowd_ok >= TIDE_CLEAN;

    if (!alike || (known && share > TIDE_CROWD_OFTEN))
        tide->crowd_n = 0;
    if (spike || (alike && known && share < TIDE_CROWD_RARE))
        tide->crowd_n++;
    if (alike && known && share < TIDE_CROWD_RARE / 4)
        tide->crowd_n++;
    tide->crowd_at = answer->in_flight_then < UINT16_MAX ? (uint16_t)answer->in_flight_then : UINT16_MAX;
    tide->crowd_ok = tide->crowd_past = 0;
    return tide->crowd_n >= TIDE_CROWD;
}

/* Returns true if responses took long recently: a rejection is then from a full queue. If a
 * concurrency limit is known, more responses are needed to show that. */
static bool queue_is_full(const struct wr_tide *tide)
{
    uint32_t enough = tide->traits & WR_TIDE_CONCURRENCY ? 48 : 12;
    return tide->base > 0 && tide->epoch_n >= enough &&
           tide->epoch_logs / (float)tide->epoch_n - tide->base > TIDE_QUEUE_FULL;
}

/* Adapts the time until a higher cap is tried: longer after a failed attempt, short if the limit
 * fell. */
static void crowd_wait(struct wr_tide *tide)
{
    unsigned wait = tide->crowd_wait + (tide->cap_tried ? 2u : 0);
    tide->crowd_n = tide->cap_tried ? 0 : (tide->crowd_n + 1u) & 15;
    if (tide->crowd_n >= TIDE_CROWD)
        wait = TIDE_CROWD_WAIT;
    tide->crowd_wait = (wait < TIDE_CROWD_WAIT_MOST ? wait : TIDE_CROWD_WAIT_MOST) & 15;
    tide->cap_tried = false;
}

static void find_crowd(struct wr_tide *tide, float n)
{
    float before = wr_tide_most(tide->rate, tide->mode == WR_TIDE_CRUISE ? tide->centre : tide->resume);
    tide->traits |= WR_TIDE_CONCURRENCY;
    tide->crowd_n = 0;
    set_cap(tide, n - 1);
    wr_tide_restart(tide, 1.5f * before);
}

bool wr_tide_cap_stray(struct wr_tide *tide, const struct wr_pace_response *answer)
{
    float n = (float)answer->in_flight_then;
    if (n <= 1 || !points_at_crowd(tide, answer))
        return false;
    find_crowd(tide, wr_tide_least(n, tide->cap));
    wr_tide_cut(tide);
    return true;
}

bool wr_tide_cap_rejected(struct wr_tide *tide, const struct wr_pace_response *answer)
{
    float n = (float)answer->in_flight_then;
    if (answer->status == 403 || answer->retry_after_ns >= TIDE_BLOCK_RETRY_NS || n <= 1)
        return false;
    if (queue_is_full(tide)) {
        set_cap(tide, TIDE_QUEUE_CUT * wr_tide_least(n, tide->cap));
    } else if (tide->traits & WR_TIDE_CONCURRENCY) {
        if (n < tide->cap - 1)
            return false;
        crowd_wait(tide);
        set_cap(tide, wr_tide_least(n, tide->cap) - 1);
    } else if (points_at_crowd(tide, answer)) {
        find_crowd(tide, n);
    } else {
        return false;
    }
    wr_tide_cut(tide);
    return true;
}
