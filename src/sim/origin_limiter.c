/* SPDX-License-Identifier: MIT */
/* origin_limiter.c - Implements the rate limiters of origins.
 *
 *     token_bucket     a token per request; `rate` new ones per second (times the factor), up to
 *                      `burst`; other clients take tokens at random instants
 *     fixed_window     `quota` per window. Windows begin at 0.63, 1.63, ... of their length,
 *                      because the server's clock does not start with ours, or with the first
 *                      request after the last window. A request beyond the quota may block
 *                      for `block`, after which counting begins anew
 *     sliding_ban      at most `quota` admitted within any `window`; a further request causes
 *                      a ban for `ban`, or is only refused if that is 0
 *     concurrency      at most `max` requests inside
 *     sliding_counter  the count of this window plus the share of the last one that is still within
 *                      `window`, at most `quota`; refused requests may count too
 *     slow_down        requests beyond `quota` in a window take longer, each by `step` more
 */
#include "sim/origin.h"

#include <math.h>
#include <stdalign.h>

#define WINDOW_PHASE 0.37
#define ALMOST 1e-9                    /* tokens; rounding error of sums of floats */
#define PATIENCE_NS (30 * WEIR_SECOND) /* timeout of a client that gets no response */
/* Maximum wait that is stated, s: a large bucket with a slow refill takes centuries. */
#define SAID_MAX_S 1e9

/* Returns a duration rounded up to whole seconds, at least 1 s. */
static int64_t whole_seconds(double s)
{
    return s <= 1 ? WEIR_SECOND : (int64_t)ceil(fmin(s, SAID_MAX_S) - ALMOST) * WEIR_SECOND;
}

static uint32_t ring_size(const struct wr_origin *origin)
{
    if (origin->limiter.kind == WR_LIMITER_SLIDING_BAN)
        return (uint32_t)ceil(origin->limiter.quota * WR_VARY_MOST);
    return origin->limiter.kind == WR_LIMITER_CONCURRENCY ? (uint32_t)ceil(origin->limiter.max * WR_VARY_MOST) : 0;
}

int wr_origin_limiter_init(struct wr_sim_origin *site)
{
    const struct wr_origin *origin = site->origin;
    struct wr_origin_limiter *origin_limiter = &site->origin_limiter;

    *origin_limiter = (struct wr_origin_limiter){
        .level = origin->limiter.burst, .window_at = -WEIR_DURATION_MAX, .banned_until = INT64_MIN};
    origin_limiter->others_sum = INFINITY;
    if (origin->cross > 0)
        origin_limiter->others_sum = wr_chance_gap(&site->others) / (origin->cross * origin->limiter.rate);
    origin_limiter->room = ring_size(origin);
    if (origin_limiter->room == 0)
        return 0;
    origin_limiter->times =
        wr_alloc_array(site->allocator, origin_limiter->room, sizeof *origin_limiter->times, alignof(int64_t));
    return origin_limiter->times == NULL ? WEIR_E_NOMEM : 0;
}

void wr_origin_limiter_release(struct wr_sim_origin *site)
{
    wr_free(site->allocator, site->origin_limiter.times, site->origin_limiter.room * sizeof *site->origin_limiter.times,
            alignof(int64_t));
    site->origin_limiter.times = NULL;
}

/* Returns a quota or a maximum with the variation at `now`, at least 1. */
static uint32_t quota_varied(const struct wr_sim_origin *site, uint32_t number, int64_t now)
{
    if (site->vary.kind == WR_VARY_NONE)
        return number;
    double here = floor(number * wr_vary_factor(&site->vary, wr_seconds(now)) + ALMOST);
    return here < 1 ? 1 : (uint32_t)here;
}

/* ---- token bucket ---------------------------------------------------------------------------- */

static void refill_bucket_to(struct wr_sim_origin *site, double sum)
{
    struct wr_origin_limiter *bucket = &site->origin_limiter;
    bucket->level += site->origin->limiter.rate * (sum - bucket->level_sum);
    if (bucket->level > site->origin->limiter.burst)
        bucket->level = site->origin->limiter.burst;
    bucket->level_sum = sum;
}

/* Refills the bucket and takes the tokens of other clients. They send `cross` of the rate, so their
 * gaps are even in the integral of the factor, like the refill. */
static void refill_bucket(struct wr_sim_origin *site, int64_t now)
{
    struct wr_origin_limiter *bucket = &site->origin_limiter;
    double sum = site->vary.kind == WR_VARY_NONE ? wr_seconds(now) : wr_vary_sum(&site->vary, wr_seconds(now));
    while (bucket->others_sum <= sum) {
        refill_bucket_to(site, bucket->others_sum);
        if (bucket->level >= 1)
            bucket->level -= 1;
        bucket->others_sum += wr_chance_gap(&site->others) / (site->origin->cross * site->origin->limiter.rate);
    }
    refill_bucket_to(site, sum);
}

static double token_wait_s(const struct wr_sim_origin *site, double tokens, int64_t now)
{
    double rate = site->origin->limiter.rate * wr_vary_factor(&site->vary, wr_seconds(now));
    return tokens <= 0 ? 0 : tokens / rate;
}

static bool bucket_ask(struct wr_sim_origin *site, int64_t now, double *ret_wait_s)
{
    refill_bucket(site, now);
    if (site->origin_limiter.level < 1 - ALMOST) {
        *ret_wait_s = token_wait_s(site, 1 - site->origin_limiter.level, now);
        return false;
    }
    site->origin_limiter.level -= 1;
    return true;
}

/* ---- windows --------------------------------------------------------------------------------- */

static int64_t phase_ns(int64_t window_ns)
{
    return (int64_t)(WINDOW_PHASE * (double)window_ns);
}

static int64_t window_end(const struct wr_sim_origin *site)
{
    return site->origin_limiter.window_at + site->origin->limiter.window_ns;
}

/* Returns the beginning of the window that contains `now`. */
static int64_t window_begin_of(const struct wr_sim_origin *site, int64_t now)
{
    int64_t length = site->origin->limiter.window_ns;
    if (site->origin->limiter.starts == WR_STARTS_BY_CLOCK)
        return (now + phase_ns(length)) / length * length - phase_ns(length);
    int64_t passed = now - site->origin_limiter.window_at;
    if (passed < length)
        return site->origin_limiter.window_at;
    return passed < 2 * length && site->origin->limiter.kind == WR_LIMITER_SLIDING_COUNTER
               /* A sliding counter continues where the last window ended. */
               ? site->origin_limiter.window_at + length
               : now;
}

static void advance_window_to(struct wr_sim_origin *site, int64_t now)
{
    struct wr_origin_limiter *origin_limiter = &site->origin_limiter;
    int64_t window_at = window_begin_of(site, now);
    if (window_at == origin_limiter->window_at)
        return;
    origin_limiter->before = window_at == window_end(site) ? origin_limiter->used : 0;
    origin_limiter->window_at = window_at;
    origin_limiter->used = 0;
}

/* Returns true during a ban or block. A request during one may restart it. */
static bool is_banned(struct wr_sim_origin *site, int64_t length_ns, int64_t now)
{
    if (now >= site->origin_limiter.banned_until)
        return false;
    if (site->origin->limiter.extend)
        site->origin_limiter.banned_until = now + length_ns;
    return true;
}

static void start_ban(struct wr_sim_origin *site, int64_t length_ns, int64_t now)
{
    site->origin_limiter.banned_until = now + length_ns;
    site->origin_limiter.bans++;
}

static bool window_ask(struct wr_sim_origin *site, int64_t now, double *ret_wait_s)
{
    int64_t block_ns = site->origin->limiter.block_ns;
    bool blocked = is_banned(site, block_ns, now);
    advance_window_to(site, now);
    if (!blocked && site->origin_limiter.used < quota_varied(site, site->origin->limiter.quota, now)) {
        site->origin_limiter.used++;
        return true;
    }
    if (!blocked && block_ns > 0) {
        start_ban(site, block_ns, now);
        site->origin_limiter.used = 0; /* counting restarts after the block */
    }
    *ret_wait_s = wr_seconds((block_ns > 0 ? site->origin_limiter.banned_until : window_end(site)) - now);
    return false;
}

/* Returns the use within one window's length up to now, if the window before was used evenly. */
static double count_in_sliding_window(const struct wr_sim_origin *site, int64_t now)
{
    double left = wr_seconds(window_end(site) - now) / wr_seconds(site->origin->limiter.window_ns);
    return site->origin_limiter.used + site->origin_limiter.before * left;
}

static bool counter_ask(struct wr_sim_origin *site, int64_t now, double *ret_wait_s)
{
    advance_window_to(site, now);
    bool fits = count_in_sliding_window(site, now) + 1 <= quota_varied(site, site->origin->limiter.quota, now) + ALMOST;
    site->origin_limiter.used += fits || site->origin->limiter.counts_refused;
    *ret_wait_s = wr_seconds(window_end(site) - now);
    return fits;
}

/* Returns how much longer this request takes. All requests are admitted. */
static int64_t slowed_ns(struct wr_sim_origin *site, int64_t now)
{
    const struct wr_origin *origin = site->origin;
    advance_window_to(site, now);
    uint32_t quota = quota_varied(site, origin->limiter.quota, now);
    int64_t beyond = site->origin_limiter.used++ < quota ? 0 : (int64_t)(site->origin_limiter.used - quota);
    int64_t most = origin->limiter.most_ns;
    return beyond > most / origin->limiter.step_ns ? most : beyond * origin->limiter.step_ns;
}

static void forget_old_times(struct wr_origin_limiter *log, int64_t before)
{
    while (log->count > 0 && log->times[log->first] <= before) {
        log->first = log->first + 1 == log->room ? 0 : log->first + 1;
        log->count--;
    }
}

static bool ban_ask(struct wr_sim_origin *site, int64_t now, double *ret_wait_s)
{
    struct wr_origin_limiter *log = &site->origin_limiter;
    int64_t ban_ns = site->origin->limiter.ban_ns;
    bool banned = is_banned(site, ban_ns, now);
    forget_old_times(log, now - site->origin->limiter.window_ns);
    if (!banned && log->count < quota_varied(site, site->origin->limiter.quota, now)) {
        uint64_t place = (uint64_t)log->first + log->count++;
        log->times[place < log->room ? place : place - log->room] = now;
        return true;
    }
    if (!banned && ban_ns > 0)
        start_ban(site, ban_ns, now);
    int64_t until = ban_ns > 0 ? log->banned_until : log->times[log->first] + site->origin->limiter.window_ns;
    *ret_wait_s = wr_seconds(until - now);
    return false;
}

/* ---- concurrency ----------------------------------------------------------------------------- */

static void remove_finished(struct wr_origin_limiter *inside, int64_t now)
{
    for (uint32_t i = 0; i < inside->count;)
        if (inside->times[i] <= now)
            inside->times[i] = inside->times[--inside->count];
        else
            i++;
}

static bool concurrency_limiter_ask(struct wr_sim_origin *site, int64_t now, double *ret_wait_s)
{
    if (site->origin_limiter.count >= quota_varied(site, site->origin->limiter.max, now))
        remove_finished(&site->origin_limiter, now);
    *ret_wait_s = wr_seconds(site->origin->service.mean_ns);
    return site->origin_limiter.count < quota_varied(site, site->origin->limiter.max, now);
}

void wr_origin_limiter_note_end(struct wr_sim_origin *site, int64_t done_at)
{
    if (site->origin->limiter.kind == WR_LIMITER_CONCURRENCY)
        site->origin_limiter.times[site->origin_limiter.count++] = done_at;
}

/* ---- all limiters ---------------------------------------------------------------------------- */

static bool ask_origin_limiter(struct wr_sim_origin *site, int64_t now, double *ret_wait_s)
{
    switch (site->origin->limiter.kind) {
    case WR_LIMITER_TOKEN_BUCKET:
        return bucket_ask(site, now, ret_wait_s);
    case WR_LIMITER_FIXED_WINDOW:
        return window_ask(site, now, ret_wait_s);
    case WR_LIMITER_SLIDING_BAN:
        return ban_ask(site, now, ret_wait_s);
    case WR_LIMITER_CONCURRENCY:
        return concurrency_limiter_ask(site, now, ret_wait_s);
    case WR_LIMITER_SLIDING_COUNTER:
        return counter_ask(site, now, ret_wait_s);
    case WR_LIMITER_SLOW_DOWN:
    case WR_LIMITER_NONE:
        break;
    }
    return true;
}

static int64_t refused_after(const struct wr_origin *origin)
{
    if (origin->reject.how == WR_REJECT_SILENCE)
        return origin->reject.delay_ns > 0 ? origin->reject.delay_ns : PATIENCE_NS;
    return WR_REJECT_NS + origin->reject.delay_ns;
}

bool wr_origin_limiter_ask(struct wr_sim_origin *site, int64_t now, struct wr_sim_reply *reply)
{
    const struct wr_origin *origin = site->origin;
    double wait_s = 0;
    if (ask_origin_limiter(site, now, &wait_s))
        return true;
    bool bans = origin->limiter.kind == WR_LIMITER_SLIDING_BAN;
    bool answers = origin->reject.how == WR_REJECT_ANSWER;
    reply->cause = WR_REPLY_TOO_MUCH;
    reply->status = !answers ? 0 : bans ? origin->limiter.status : origin->reject.status;
    reply->done_at = now + refused_after(origin);
    if (origin->reject.retry_after && answers)
        reply->retry_after_ns = origin->reject.wait_ns > 0 ? origin->reject.wait_ns : whole_seconds(wait_s);
    return false;
}

int64_t wr_origin_limiter_delay_ns(struct wr_sim_origin *site, int64_t now)
{
    return site->origin->limiter.kind == WR_LIMITER_SLOW_DOWN ? slowed_ns(site, now) : 0;
}

static void set_quota_headers(struct wr_sim_reply *reply, uint32_t limit, int64_t remaining, double reset_s)
{
    reply->quota_limit = limit;
    reply->quota_remaining = remaining > 0 ? remaining : 0;
    reply->quota_reset_ns = whole_seconds(reset_s);
}

void wr_origin_limiter_headers(struct wr_sim_origin *site, int64_t now, struct wr_sim_reply *reply)
{
    const struct wr_origin_limiter *origin_limiter = &site->origin_limiter;
    uint32_t quota = quota_varied(site, site->origin->limiter.quota, now);
    double burst = site->origin->limiter.burst;
    int64_t free_at = now;

    switch (site->origin->limiter.kind) {
    case WR_LIMITER_TOKEN_BUCKET:
        set_quota_headers(reply, (uint32_t)burst, (int64_t)origin_limiter->level,
                          token_wait_s(site, burst - origin_limiter->level, now));
        return;
    case WR_LIMITER_FIXED_WINDOW:
        if (now < origin_limiter->banned_until)
            set_quota_headers(reply, quota, 0, wr_seconds(origin_limiter->banned_until - now));
        else
            set_quota_headers(reply, quota, (int64_t)quota - origin_limiter->used, wr_seconds(window_end(site) - now));
        return;
    case WR_LIMITER_SLIDING_COUNTER:
        set_quota_headers(reply, quota, (int64_t)(quota - count_in_sliding_window(site, now)),
                          wr_seconds(window_end(site) - now));
        return;
    case WR_LIMITER_SLIDING_BAN:
        if (origin_limiter->count > 0)
            free_at = origin_limiter->times[origin_limiter->first] + site->origin->limiter.window_ns;
        if (now < origin_limiter->banned_until)
            set_quota_headers(reply, quota, 0, wr_seconds(origin_limiter->banned_until - now));
        else
            set_quota_headers(reply, quota, (int64_t)quota - origin_limiter->count, wr_seconds(free_at - now));
        return;
    case WR_LIMITER_CONCURRENCY:
    case WR_LIMITER_SLOW_DOWN:
    case WR_LIMITER_NONE:
        return; /* these limiters have no quota */
    }
}
